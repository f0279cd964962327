/* Reading a simulation: poses, velocities, statistics, contacts; frozen contacts and the trace. */
#include "pabd.h"

#include <stdlib.h>
#include <string.h>

#include "jacobi_kernels.h"
#include "perf_model.h"
#include "state.h"

const char *pabd_precision(void) {
  return PABD_REAL_NAME;
}

static void put_vec(double *out, vec3 v) {
  out[0] = (double)v.x, out[1] = (double)v.y, out[2] = (double)v.z;
}
static void put_quat(double *out, quat q) {
  /* unit in double as well, so that a reader need not care for float's rounding */
  double w = (double)q.w, x = (double)q.x, y = (double)q.y, z = (double)q.z,
         s = 1.0 / sqrt(w * w + x * x + y * y + z * z);
  out[0] = s * w, out[1] = s * x, out[2] = s * y, out[3] = s * z;
}

/* With a device the host's fields are a copy that is fetched when someone looks; a failed copy leaves the one before.
 */
static void fetch(const pabd_sim *sim, int32_t contacts) {
  if (sim->device) sim->device->fetch((pabd_sim *)(uintptr_t)sim, contacts);
}

void pabd_sim_read(const pabd_sim *sim, double *pose, double *velocity) {
  fetch(sim, 0);
  const pabd_view *v = &sim->view;
  for (int32_t i = 0; i < v->body_count; ++i) {
    if (pose) {
      put_vec(pose + 7 * i, v->pos[i]);
      put_quat(pose + 7 * i + 3, v->rot[i]);
    }
    if (velocity) {
      put_vec(velocity + 6 * i, v->vel[i]);
      put_vec(velocity + 6 * i + 3, v->omega[i]);
    }
  }
}

void pabd_sim_read_iterate(const pabd_sim *sim, double *pose, double *momentum) {
  const pabd_view *v = &sim->view;
  for (int32_t i = 0; i < v->body_count; ++i) {
    pabd_motion8 m = v->total[i];
    if (pose) {
      put_vec(pose + 7 * i, v3_add(v->pos[i], m.d));
      put_quat(pose + 7 * i + 3, quat_mul(m.q, v->rot[i]));
    }
    if (momentum) {
      vec3 p = v->motion[i] == PABD_DYNAMIC ? v3_scale(v->mass[i], v3_madd(v->vel_star[i], R(1) / v->h, v->inc_pos[i]))
                                            : v3(R(0), R(0), R(0));
      put_vec(momentum + 3 * i, p);
    }
  }
}

/* Compulsory bytes and operations of the last frame, where the model covers all of it. */
static void add_model(const pabd_sim *sim, pabd_stats *stats) {
  const pabd_params *p = &sim->params;
  if (stats->bodies_jacobi == 0 || stats->bodies_gs > 0 || stats->bodies_direct > 0) return;
  const pabd_perf_load load = {stats->body_count,
                               stats->shape_count,
                               stats->pair_count,
                               stats->contact_count,
                               2 * stats->contact_count,
                               stats->bond_count,
                               sim->capacity_pair,
                               p->substeps,
                               p->sweeps,
                               p->relax_sweeps,
                               p->multipliers};
  const pabd_perf_machine none = {"", 1.0, 1.0, 0.0, 0.0, 0.0};
  pabd_perf_stage stages[PABD_PERF_STAGES];
  double total_ms;
  int32_t count = pabd_perf_predict(&load, &none, stages, &total_ms);
  for (int32_t k = 0; k < count; ++k)
    stats->model_bytes += stages[k].bytes, stats->model_operations += stages[k].operations;
}

void pabd_sim_stats(const pabd_sim *sim, pabd_stats *stats) {
  *stats = sim->stats;
  add_model(sim, stats);
}

int32_t pabd_sim_contacts(const pabd_sim *sim, pabd_contact_point *contacts, int32_t capacity) {
  fetch(sim, 1);
  const pabd_view *v = &sim->view;
  int32_t stride = v->stride_contact;
  for (int32_t c = 0; c < v->contact_count && c < capacity; ++c) {
    int32_t a = v->contact_a[c], b = v->contact_b[c];
    vec3 n = plane_get(v->contact_normal, stride, c), t1 = plane_get(v->contact_tangent, stride, c),
         t2 = v3_cross(n, t1);
    vec3 ya = v3_madd(v3_add(v->pos[a], quat_rotate(v->rot[a], plane_get(v->contact_core_a, stride, c))),
                      -v->contact_offset_a[c], n);
    vec3 yb = v3_madd(v3_add(v->pos[b], quat_rotate(v->rot[b], plane_get(v->contact_core_b, stride, c))),
                      v->contact_offset_b[c], n);
    vec3 middle = v3_scale(R(0.5), v3_add(ya, yb)), f = plane_get(v->contact_lambda, stride, c);
    f = v3_add(v3_scale(f.x, n), v3_add(v3_scale(f.y, t1), v3_scale(f.z, t2)));
    pabd_contact_point *out = &contacts[c];
    out->body_a = a, out->body_b = b, out->feature = v->contact_feature[c];
    out->point = (pabd_dvec3){(double)middle.x, (double)middle.y, (double)middle.z};
    out->normal = (pabd_dvec3){(double)n.x, (double)n.y, (double)n.z};
    out->force = (pabd_dvec3){(double)f.x, (double)f.y, (double)f.z};
    out->gap = (double)v->contact_gap0[c];
    out->friction = (double)v->contact_mu[c], out->restitution = (double)v->contact_restitution[c];
  }
  return v->contact_count;
}

pabd_status pabd_sim_set_contacts(pabd_sim *sim, const pabd_contact_point *contacts, int32_t count, pabd_error *error) {
  if (sim->device)
    return pabd_fail(error, PABD_ERR_UNSUPPORTED, "a simulation on a device takes no contacts from outside");
  if (count > sim->capacity_contact)
    return pabd_fail(error, PABD_ERR_INPUT, "%d contacts exceed the capacity of %d (contacts_per_body)", count,
                     sim->capacity_contact);
  for (int32_t k = 0; k < count; ++k) {
    const pabd_contact_point *c = &contacts[k];
    double norm = c->normal.x * c->normal.x + c->normal.y * c->normal.y + c->normal.z * c->normal.z;
    if (c->body_a < 0 || c->body_a >= sim->view.body_count || c->body_b < 0 || c->body_b >= sim->view.body_count ||
        c->body_a == c->body_b)
      return pabd_fail(error, PABD_ERR_INPUT, "contact %d: bodies %d and %d must be two of 0 .. %d", k, c->body_a,
                       c->body_b, sim->view.body_count - 1);
    if (!(norm > 0.999 && norm < 1.001) || !isfinite(c->gap) || !(c->friction >= 0.0))
      return pabd_fail(error, PABD_ERR_INPUT, "contact %d: needs a unit normal, a finite gap and friction >= 0", k);
  }
  pabd_contact_point *copy = NULL;
  if (count >= 0) {
    copy = malloc(sizeof *copy * ((size_t)count + 1));
    if (!copy) return pabd_fail(error, PABD_ERR_MEMORY, "no memory for %d contacts", count);
    if (count > 0) memcpy(copy, contacts, sizeof *copy * (size_t)count);
  }
  free((void *)(uintptr_t)sim->frozen);
  sim->frozen = copy;
  sim->frozen_count = count >= 0 ? count : 0;
  return PABD_OK;
}

void pabd_sim_set_trace(pabd_sim *sim, pabd_sweep_fn trace, void *user) {
  sim->trace = trace;
  sim->trace_user = user;
}
