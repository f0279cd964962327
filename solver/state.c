/* Creation: sizes every field from the scene and the capacities, takes one allocation, carves it, and turns the scene
 * into bodies, shapes and bond rows. Nothing is allocated after this. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jacobi_kernels.h"
#include "state.h"

static vec3 vec_of(pabd_dvec3 v) {
  return v3((real)v.x, (real)v.y, (real)v.z);
}
static quat quat_of(pabd_dquat q) {
  return quat_make((real)q.w, (real)q.x, (real)q.y, (real)q.z);
}

/* -- bonds of joints --------------------------------------------------------------------------------------------------
 */

/* Adds one bond; with view->bond_kind NULL it only counts. */
static void add_bond(pabd_view *v, int32_t *count, int32_t joint, const pabd_joint *j, pabd_bond_kind kind,
                     pabd_dvec3 local_a, pabd_dvec3 local_b, double rest, double low, double high) {
  int32_t k = (*count)++;
  if (!v->bond_kind) return;
  v->bond_kind[k] = (uint32_t)kind;
  v->bond_joint[k] = joint;
  v->bond_a[k] = j->body_a;
  v->bond_b[k] = j->body_b;
  v->bond_local_a[k] = vec_of(local_a);
  v->bond_local_b[k] = vec_of(local_b);
  pabd_dvec3 z = {0, 0, 1};
  v->bond_axis_local[k] = vec_of(pabd_dquat_rotate(j->frame_a.q, z));
  v->bond_rest[k] = (real)rest;
  v->bond_stiffness[k] = kind == PABD_BOND_SPRING ? (real)j->stiffness : R(0);
  v->bond_damping[k] = kind == PABD_BOND_SPRING ? (real)j->damping : R(0);
  v->bond_low[k] = (real)low;
  v->bond_high[k] = (real)high;
}
static void add_directions(pabd_view *v, int32_t *count, int32_t joint, const pabd_joint *j, int x, int y, int z) {
  const pabd_dvec3 axes[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const int wanted[3] = {x, y, z};
  for (int k = 0; k < 3; ++k)
    if (wanted[k])
      add_bond(v, count, joint, j, PABD_BOND_DIRECTION, pabd_dquat_rotate(j->frame_a.q, axes[k]),
               pabd_dquat_rotate(j->frame_b.q, axes[k]), 0, -INFINITY, INFINITY);
}
/* A joint as one to four bonds (method, section 2). */
static void add_joint(pabd_view *v, int32_t *count, int32_t joint, const pabd_joint *j) {
  pabd_dvec3 a = j->frame_a.p, b = j->frame_b.p;
  switch (j->kind) {
    case PABD_SPHERICAL:
      add_bond(v, count, joint, j, PABD_BOND_POINT, a, b, 0, -INFINITY, INFINITY);
      break;
    case PABD_HINGE:
      add_bond(v, count, joint, j, PABD_BOND_POINT, a, b, 0, -INFINITY, INFINITY);
      add_directions(v, count, joint, j, 0, 0, 1);
      break;
    case PABD_SLIDER:
      add_bond(v, count, joint, j, PABD_BOND_LINE, a, b, 0, -INFINITY, INFINITY);
      add_directions(v, count, joint, j, 1, 1, 0);
      break;
    case PABD_FIXED:
      add_bond(v, count, joint, j, PABD_BOND_POINT, a, b, 0, -INFINITY, INFINITY);
      add_directions(v, count, joint, j, 1, 1, 0);
      break;
    case PABD_DISTANCE:
      if (!j->has_limits) {
        add_bond(v, count, joint, j, PABD_BOND_DISTANCE, a, b, j->rest, -INFINITY, INFINITY);
      } else {
        add_bond(v, count, joint, j, PABD_BOND_DISTANCE, a, b, j->upper, 0, INFINITY);
        if (j->lower > 0) add_bond(v, count, joint, j, PABD_BOND_DISTANCE, a, b, j->lower, -INFINITY, 0);
      }
      break;
    case PABD_SPRING:
      add_bond(v, count, joint, j, PABD_BOND_SPRING, a, b, j->rest, -INFINITY, INFINITY);
      break;
    case PABD_UNIVERSAL:
      add_bond(v, count, joint, j, PABD_BOND_POINT, a, b, 0, -INFINITY, INFINITY);
      break; /* its direction row: direct.c */
    default:
      break;
  }
}

/* What the row methods lack, as one line; the direct step has its own rows for these. */
static pabd_status check_support(const pabd_scene *scene, const pabd_params *params, pabd_error *error) {
  for (int32_t k = 0; k < scene->shape_count; ++k)
    if (scene->shapes[k].kind == PABD_HULL || scene->shapes[k].kind == PABD_CYLINDER)
      return pabd_fail(error, PABD_ERR_UNSUPPORTED, "shape %d: no narrow phase yet for %s", k,
                       scene->shapes[k].kind == PABD_HULL ? "convex hulls" : "cylinders");
  if (params->global_step == PABD_STEP_DIRECT || params->global_step == PABD_STEP_AUTO) return PABD_OK;
  for (int32_t k = 0; k < scene->joint_count; ++k) {
    const pabd_joint *j = &scene->joints[k];
    const char *what = j->kind == PABD_UNIVERSAL                   ? "universal joints"
                       : j->motor != PABD_MOTOR_NONE               ? "motors"
                       : j->has_limits && j->kind != PABD_DISTANCE ? "limits of hinges and sliders"
                       : (j->kind == PABD_HINGE || j->kind == PABD_SLIDER) && (j->stiffness > 0 || j->damping > 0)
                           ? "springs on hinges and sliders"
                           : NULL;
    if (what)
      return pabd_fail(error, PABD_ERR_UNSUPPORTED, "joint %d '%s': %s need global_step = direct or auto", k, j->name,
                       what);
  }
  return PABD_OK;
}

/* -- memory
 * ------------------------------------------------------------------------------------------------------------ */

enum { ALIGNMENT = 64 }; /* one cache line, and a full vector register */

static size_t aligned(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Total size of all fields; with `base` the view's pointers are set as well. */
static size_t carve(pabd_sim *sim, char *base, size_t *bytes_bodies, size_t *bytes_contacts) {
  size_t at = 0;
  *bytes_bodies = *bytes_contacts = 0;
#define FIELD(type, name, rows, planes, unit, writer)                                           \
  {                                                                                             \
    size_t bytes = aligned(sizeof(type) * (size_t)sim->capacity_##rows * (planes));             \
    if (base) sim->view.name = (type *)(void *)(base + at);                                     \
    if (strcmp(#rows, "body") == 0 || strcmp(#rows, "body_plus1") == 0) *bytes_bodies += bytes; \
    if (strcmp(#rows, "contact") == 0 || strcmp(#rows, "end") == 0) *bytes_contacts += bytes;   \
    at += bytes;                                                                                \
  }
#include "fields.def"
#undef FIELD
  return at;
}

static int compare_pairs(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static pabd_status fill_scene(pabd_sim *sim, const pabd_scene *scene);

pabd_status pabd_sim_create(const pabd_scene *scene, const pabd_params *params, pabd_sim **out, pabd_error *error) {
  *out = NULL;
  PABD_TRY(pabd_scene_check(scene, error));
  PABD_TRY(check_support(scene, params, error));
  int32_t(*pairs)[2] = NULL, pair_count = 0;
  pabd_sim *sim = calloc(1, sizeof *sim);
  if (!sim || pabd_scene_filter_pairs(scene, &pairs, &pair_count) != PABD_OK) goto no_memory;
  sim->params = *params;

  /* capacities */
  int32_t n = scene->body_count, bonds = 0;
  pabd_view count_only;
  memset(&count_only, 0, sizeof count_only);
  for (int32_t k = 0; k < scene->joint_count; ++k) add_joint(&count_only, &bonds, k, &scene->joints[k]);
  int64_t contacts = (int64_t)n * params->contacts_per_body + 256,
          candidate_pairs = (int64_t)n * params->pairs_per_body + 64;
  if (contacts > 500000000 || candidate_pairs > 500000000) {
    free(sim), free(pairs);
    return pabd_fail(error, PABD_ERR_INPUT,
                     "%d bodies with contacts_per_body = %d and pairs_per_body = %d exceed 5e8 rows", n,
                     params->contacts_per_body, params->pairs_per_body);
  }
  sim->capacity_body = n;
  sim->capacity_body_plus1 = n + 1;
  sim->capacity_shape = scene->shape_count > 0 ? scene->shape_count : 1;
  sim->capacity_node = sim->capacity_shape;
  sim->capacity_vertex = scene->vertex_count > 0 ? scene->vertex_count : 1;
  sim->capacity_material2 = scene->material_count * scene->material_count;
  sim->capacity_filter = pair_count > 0 ? pair_count : 1;
  sim->capacity_pair = scene->shape_count > 0 ? (int32_t)candidate_pairs : 1;
  sim->capacity_pair4 = 4 * sim->capacity_pair;
  sim->capacity_contact = scene->shape_count > 0 ? ((int32_t)contacts + 15) / 16 * 16 : 16;
  sim->capacity_end = 2 * sim->capacity_contact;
  sim->capacity_bond = bonds > 0 ? bonds : 1;
  sim->capacity_bond_end = 2 * sim->capacity_bond;

  /* one allocation for all fields */
  size_t bytes_bodies, bytes_contacts;
  sim->memory_bytes = carve(sim, NULL, &bytes_bodies, &bytes_contacts);
  sim->memory = aligned_alloc(ALIGNMENT, sim->memory_bytes);
  sim->joint_count = scene->joint_count;
  sim->joints = calloc((size_t)scene->joint_count + 1, sizeof *sim->joints);
  sim->joint_bond_first = calloc((size_t)scene->joint_count + 1, sizeof *sim->joint_bond_first);
  sim->load_count = scene->load_count;
  sim->loads = calloc((size_t)scene->load_count + 1, sizeof *sim->loads);
  sim->scratch_count = (size_t)(3 * n + 16) + (size_t)sim->capacity_contact;
  sim->scratch = calloc(sim->scratch_count, sizeof *sim->scratch);
  int32_t *islands = calloc((size_t)n * 10 + 1, sizeof *islands);
  sim->island_class = islands;
  if (!sim->memory || !sim->joints || !sim->joint_bond_first || !sim->loads || !sim->scratch || !islands)
    goto no_memory;
  sim->island_body_count = islands + n, sim->island_contact_count = islands + 2 * n,
  sim->island_bond_count = islands + 3 * n;
  sim->island_body_first = islands + 4 * n, sim->island_contact_first = islands + 5 * n,
  sim->island_bond_first = islands + 6 * n;
  _Static_assert(sizeof(float) == sizeof(int32_t), "one block of integers holds the speeds and masses as well");
  sim->island_speed = (float *)(void *)(islands + 7 * n);
  sim->island_mass_low = (float *)(void *)(islands + 8 * n), sim->island_mass_high = (float *)(void *)(islands + 9 * n);
  memset(sim->memory, 0, sim->memory_bytes);
  carve(sim, sim->memory, &bytes_bodies, &bytes_contacts);
  for (int32_t k = 0; k < pair_count; ++k) sim->view.filter[k] = (uint64_t)pairs[k][0] << 32 | (uint32_t)pairs[k][1];
  qsort(sim->view.filter, (size_t)pair_count, sizeof *sim->view.filter, compare_pairs);
  sim->view.filter_count = pair_count;
  free(pairs);
  pairs = NULL;
  if (fill_scene(sim, scene) != PABD_OK) goto no_memory;
  if (pabd_contact_gs_create(sim) != PABD_OK || pabd_direct_create(sim) != PABD_OK) goto no_memory;

  pabd_stats *stats = &sim->stats;
  stats->body_count = n, stats->shape_count = scene->shape_count, stats->bond_count = bonds;
  stats->bytes = (int64_t)sim->memory_bytes, stats->bytes_bodies = (int64_t)bytes_bodies,
  stats->bytes_contacts = (int64_t)bytes_contacts;
  stats->bytes_per_body = n > 0 ? (double)bytes_bodies / n : 0.0;
  stats->bytes_per_contact = (double)bytes_contacts / sim->capacity_contact;
  stats->diverged_body = -1;
  *out = sim;
  return PABD_OK;

no_memory:
  free(pairs);
  pabd_sim_destroy(sim);
  return pabd_fail(error, PABD_ERR_MEMORY, "no memory for a simulation of %d bodies", scene->body_count);
}

static pabd_status fill_scene(pabd_sim *sim, const pabd_scene *scene) {
  pabd_view *v = &sim->view;
  const pabd_params *p = &sim->params;
  v->stride_contact = sim->capacity_contact;
  v->body_count = scene->body_count, v->shape_count = scene->shape_count, v->material_count = scene->material_count;
  v->h_frame = (real)scene->frame_time;
  v->gravity = vec_of(scene->gravity);
  v->alpha = (real)p->alpha, v->delta = (real)p->delta, v->kappa_fixed = (real)p->stiffness;
  v->kappa_angle_fixed = (real)(p->stiffness_angle > 0 ? p->stiffness_angle : p->stiffness);
  v->stiffness_scale = (real)p->stiffness_scale, v->beta = (real)p->beta, v->bond_factor = (real)p->bond_factor;
  v->dual_damping = (real)p->dual_damping, v->growth = (real)p->growth;
  v->joint_cap = (real)p->sweeps * (real)p->sweeps; /* n^2, method section 6 */
  v->pushout_speed = (real)p->pushout_speed, v->mass_total = R(0);
  v->margin = (real)p->margin, v->margin_max = (real)p->margin_max, v->edge_bias = (real)p->edge_bias;
  v->stiffness_rule = p->stiffness_rule, v->local_step = p->local_step, v->prediction = p->prediction;
  v->velocity_rule = p->velocity_rule, v->multipliers = p->multipliers, v->stamp_open = p->stamp_open;
  v->predict_passes = p->predict_passes;
  v->warm_scale = p->warm_start && p->multipliers ? (real)(p->alpha * p->gamma) : R(0);
  v->omega_max = (real)p->angular_velocity_max;
  for (int32_t i = 0; i < scene->body_count; ++i) {
    const pabd_body *b = &scene->bodies[i];
    v->motion[i] = (uint32_t)b->motion;
    v->body_order[i] = i;
    v->island[i] = -1;
    v->body_group[i] = b->group, v->body_world[i] = b->world;
    v->pos[i] = v->pos_frame[i] = vec_of(b->pose.p);
    v->rot[i] = v->rot_frame[i] = quat_normalize(quat_of(b->pose.q));
    v->total[i] = motion_identity();
    v->inc_rot[i] = v->turn_pred[i] = quat_make(R(1), R(0), R(0), R(0));
    v->vel[i] = vec_of(b->linear);
    v->omega[i] = vec_of(b->angular);
    if (b->motion == PABD_STATIC) v->vel[i] = v->omega[i] = v3(R(0), R(0), R(0));
    if (b->motion != PABD_DYNAMIC) continue;
    v->mass[i] = (real)b->mass, v->inv_mass[i] = (real)(1.0 / b->mass);
    v->mass_total += v->mass[i];
    v->inertia[i] = vec_of(b->inertia);
    v->inv_inertia[i] = v3((real)(1.0 / b->inertia.x), (real)(1.0 / b->inertia.y), (real)(1.0 / b->inertia.z));
    /* Pi = tr(I)/2 - I; a flat or thin body may have a moment of zero */
    double half = 0.5 * (b->inertia.x + b->inertia.y + b->inertia.z);
    v->moment[i] = v3((real)fmax(half - b->inertia.x, 0.0), (real)fmax(half - b->inertia.y, 0.0),
                      (real)fmax(half - b->inertia.z, 0.0));
    v->spin[i] = inertia_apply(v->inertia[i], v->rot[i], v->omega[i]);
  }
  for (int32_t k = 0; k < scene->shape_count; ++k) {
    const pabd_shape *s = &scene->shapes[k];
    v->shape_kind[k] = (uint32_t)s->kind, v->shape_body[k] = s->body, v->shape_material[k] = s->material;
    v->shape_first_vertex[k] = s->first_vertex, v->shape_vertex_count[k] = s->vertex_count;
    v->shape_pos[k] = vec_of(s->local.p), v->shape_rot[k] = quat_of(s->local.q);
    v->shape_half[k] = vec_of(s->half), v->shape_radius[k] = (real)s->radius,
    v->shape_half_length[k] = (real)s->half_length;
    double reach = s->kind == PABD_BOX ? sqrt(s->half.x * s->half.x + s->half.y * s->half.y + s->half.z * s->half.z)
                   : s->kind == PABD_CAPSULE  ? s->radius + s->half_length
                   : s->kind == PABD_CYLINDER ? sqrt(s->radius * s->radius + s->half_length * s->half_length)
                   : s->kind == PABD_SPHERE   ? s->radius
                                              : 0.0;
    for (int32_t w = 0; s->kind == PABD_HULL && w < s->vertex_count; ++w) {
      pabd_dvec3 x = scene->vertices[s->first_vertex + w];
      reach = fmax(reach, sqrt(x.x * x.x + x.y * x.y + x.z * x.z));
    }
    pabd_dvec3 off = s->local.p;
    double radius = reach + sqrt(off.x * off.x + off.y * off.y + off.z * off.z);
    if (radius > (double)v->radius[s->body]) v->radius[s->body] = (real)radius;
  }
  for (int32_t k = 0; k < scene->vertex_count; ++k) v->vertex[k] = vec_of(scene->vertices[k]);
  for (int32_t k = 0; k < sim->capacity_material2; ++k) {
    v->friction[k] = (real)scene->friction[k];
    v->restitution[k] = (real)scene->restitution[k];
  }
  if (scene->joint_count > 0) memcpy(sim->joints, scene->joints, sizeof *sim->joints * (size_t)scene->joint_count);
  if (scene->load_count > 0) memcpy(sim->loads, scene->loads, sizeof *sim->loads * (size_t)scene->load_count);
  for (int32_t k = 0; k < scene->joint_count; ++k) {
    sim->joint_bond_first[k] = v->bond_count;
    add_joint(v, &v->bond_count, k, &scene->joints[k]);
  }
  sim->joint_bond_first[scene->joint_count] = v->bond_count;
  for (int32_t j = 0; j < v->bond_count; ++j) v->bond_order[j] = j;
  /* gather lists of bonds: fixed for good */
  int32_t *first = v->bond_end_first;
  memset(first, 0, sizeof *first * (size_t)(v->body_count + 1));
  for (int32_t j = 0; j < v->bond_count; ++j) {
    if (v->bond_a[j] >= 0 && v->motion[v->bond_a[j]] == PABD_DYNAMIC) first[v->bond_a[j] + 1] += 1;
    if (v->motion[v->bond_b[j]] == PABD_DYNAMIC) first[v->bond_b[j] + 1] += 1;
  }
  for (int32_t i = 0; i < v->body_count; ++i) first[i + 1] += first[i];
  int32_t *next = sim->scratch;
  memcpy(next, first, sizeof *next * (size_t)v->body_count);
  for (int32_t j = 0; j < v->bond_count; ++j) {
    if (v->bond_a[j] >= 0 && v->motion[v->bond_a[j]] == PABD_DYNAMIC) v->bond_end[next[v->bond_a[j]]++] = 2 * j;
    if (v->motion[v->bond_b[j]] == PABD_DYNAMIC) v->bond_end[next[v->bond_b[j]]++] = 2 * j + 1;
  }
  memset(sim->scratch, 0, sizeof *sim->scratch * sim->scratch_count);
  return PABD_OK;
}

void pabd_sim_destroy(pabd_sim *sim) {
  if (!sim) return;
  if (sim->device) sim->device->destroy(sim);
  pabd_contact_gs_destroy(sim);
  pabd_direct_destroy(sim);
  free(sim->memory);
  free(sim->joints);
  free(sim->joint_bond_first);
  free(sim->loads);
  free(sim->scratch);
  free(sim->island_class);
  free((void *)(uintptr_t)sim->frozen);
  free(sim);
}
