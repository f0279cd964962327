/* One frame: this function is the method's table of contents. */
#include <math.h>
#include <string.h>

#include "contact_rows.h"
#include "restitution.h"

static void begin_frame(pabd_sim *sim);
static void step_direct(pabd_sim *sim, const pabd_range *range);
static void move_kinematic(pabd_sim *sim);
static pabd_status check_state(pabd_sim *sim);

pabd_status pabd_sim_step(pabd_sim *sim) {
  if (sim->device) return sim->device->step(sim);
  begin_frame(sim);

  /* find contacts, once a frame */
  if (!sim->frozen) pabd_collide(sim); /* bounds -> LBVH -> pairs -> manifolds */
  pabd_islands(sim);                   /* who is linked to whom, and who solves it */
  pabd_contacts_fill(sim);             /* rows, warm start from the frame before */

  /* solve, class by class */
  pabd_step_free(sim, &sim->range[PABD_CLASS_FREE]);
  if (sim->range[PABD_CLASS_JACOBI].body_count > 0) pabd_step_jacobi(sim, &sim->range[PABD_CLASS_JACOBI]);
  if (sim->range[PABD_CLASS_GS].body_count > 0) pabd_step_contact_gs(sim, &sim->range[PABD_CLASS_GS]);
  if (sim->range[PABD_CLASS_DIRECT].body_count > 0) step_direct(sim, &sim->range[PABD_CLASS_DIRECT]);

  move_kinematic(sim);
  pabd_contacts_save(sim);
  return check_state(sim);
}

void pabd_apply_loads(pabd_sim *sim) {
  pabd_view *v = &sim->view;
  for (int32_t i = 0; i < v->body_count && sim->load_count > 0; ++i)
    v->load_force[i] = v->load_torque[i] = v3(R(0), R(0), R(0));
  for (int32_t l = 0; l < sim->load_count; ++l) {
    const pabd_load *load = &sim->loads[l];
    /* the load of a frame is the one that acts at its middle */
    double middle = sim->time + 0.5 * (double)v->h_frame;
    if (middle < load->start || middle >= load->end || v->motion[load->body] != PABD_DYNAMIC) continue;
    v->load_force[load->body] =
        v3_add(v->load_force[load->body], v3((real)load->force.x, (real)load->force.y, (real)load->force.z));
    v->load_torque[load->body] =
        v3_add(v->load_torque[load->body], v3((real)load->torque.x, (real)load->torque.y, (real)load->torque.z));
  }
}

void pabd_clear_stats(pabd_sim *sim) {
  pabd_stats *stats = &sim->stats;
  stats->timer_count = 0;
  sim->stage_same = 0, sim->stage_end_ms = 0.0;
  stats->sweeps = 0, stats->contact_evaluations = 0;
  stats->overflow_pairs = stats->overflow_contacts = stats->overflow_fill = 0;
  stats->newton_iterations = stats->newton_failures = 0;
  stats->ladder_halvings = stats->ladder_bdf2 = stats->ladder_euler = stats->ladder_exhausted = 0;
  stats->ladder_limited = 0;
  stats->residual = stats->rigidity_defect = stats->bond_error = 0.0;
}

/* Bounces of direct islands are seen once a frame; h of their flight is that of the steps of islands with contacts. */
static void step_direct(pabd_sim *sim, const pabd_range *range) {
  int32_t fast = sim->params.direct_impact_substeps, slow = sim->params.direct_contact_substeps;
  real h = sim->view.h_frame / (real)(fast > slow ? fast : slow);
  pabd_restitution_begin(sim, range, h);
  pabd_step_direct(sim, range);
  pabd_restitution_apply(sim, range, h);
}

/* Applied loads, scalars of the frame, cleared statistics. */
static void begin_frame(pabd_sim *sim) {
  pabd_view *v = &sim->view;
  pabd_clear_stats(sim);
  v->h = v->h_frame;
  pabd_apply_loads(sim);
  pabd_launch(sim, PABD_K_frame_begin, 0, v->body_count);
  for (int32_t j = 0; j < v->bond_count; ++j) bond_decay_at(j, v);
}

static void move_kinematic(pabd_sim *sim) {
  pabd_view *v = &sim->view;
  for (int32_t k = sim->stats.dynamic_count; k < v->body_count; ++k) kinematic_at(v->body_order[k], v);
}

static pabd_status check_state(pabd_sim *sim) {
  const pabd_view *v = &sim->view;
  sim->frame += 1;
  sim->time = (double)sim->frame * (double)v->h_frame;
  sim->stats.driver_work = sim->driver_work;
  sim->stats.diverged_body = -1;
  int32_t closed = 0;
  for (int32_t c = 0; c < v->contact_count; ++c) closed += v->contact_lambda[c] > R(0);
  sim->stats.contact_closed_count = closed;
  for (int32_t i = 0; i < v->body_count; ++i)
    if (body_is_lost(i, v)) {
      sim->stats.diverged_body = i;
      return PABD_DIVERGED;
    }
  return PABD_OK;
}
