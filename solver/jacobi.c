/* The paper's global step: Hessian-free block Jacobi with a local step back to rigid motion (method, sections 3 to 7a).
 *
 * One substep is: predict, rows and stiffness, 13-number blocks, sweeps (row forces with the multiplier step of the
 * sweep before, then one global and local step per body), poses and velocities, relax sweeps on the velocities of
 * bodies in contact. */
#include <math.h>
#include <string.h>

#include "restitution.h"

#include "jacobi_kernels.h"

static void launch_bodies(pabd_sim *sim, pabd_kernel k, const pabd_range *r) {
  pabd_launch(sim, k, r->body_first, r->body_count);
}
static void launch_contacts(pabd_sim *sim, pabd_kernel k, const pabd_range *r) {
  pabd_launch(sim, k, r->contact_first, r->contact_count);
  if (k != PABD_K_contact_begin && k != PABD_K_relax_begin) sim->stats.contact_evaluations += r->contact_count;
}
static void launch_bonds(pabd_sim *sim, pabd_kernel k, const pabd_range *r) {
  pabd_launch(sim, k, r->bond_first, r->bond_count);
}
/* Kinematic bodies move with every class that meets them; static and kinematic bodies are the tail of body_order. */
static void launch_fixed(pabd_sim *sim, pabd_kernel k) {
  int32_t dynamic = sim->stats.dynamic_count;
  pabd_launch(sim, k, dynamic, sim->view.body_count - dynamic);
}

/* Largest residual of the class's bodies, N. A maximum does not depend on order. */
static double residual_of(const pabd_sim *sim, const pabd_range *r) {
  real most = R(0);
  for (int32_t k = r->body_first; k < r->body_first + r->body_count; ++k) {
    real value = sim->view.residual[sim->view.body_order[k]];
    if (!(value <= most)) most = value; /* a NaN wins */
  }
  return (double)most;
}
static double defect_of(const pabd_sim *sim, const pabd_range *r) {
  real most = R(0);
  for (int32_t k = r->body_first; k < r->body_first + r->body_count; ++k) {
    real value = sim->view.defect[sim->view.body_order[k]];
    if (value > most) most = value;
  }
  return (double)most;
}
static double bond_error_of(const pabd_sim *sim, const pabd_range *r) {
  real most = R(0);
  for (int32_t k = r->bond_first; k < r->bond_first + r->bond_count; ++k) {
    real value = sim->view.bond_error[sim->view.bond_order[k]];
    if (value > most) most = value;
  }
  return (double)most;
}

/* Calls the trace, if there is one, with the iterate as it is. */
static void trace(pabd_sim *sim, const pabd_range *r, int32_t substep, int32_t sweep, const char *phase) {
  if (!sim->trace) return;
  const pabd_view *v = &sim->view;
  /* rows are evaluated once more without touching the multipliers, so that the numbers belong to this iterate */
  pabd_launch(sim, PABD_K_bond_force, r->bond_first, r->bond_count);
  pabd_sweep_trace t = {(int32_t)sim->frame,   substep,  sweep, phase, residual_of(sim, r),
                        bond_error_of(sim, r), INFINITY, 0.0,   NAN};
  for (int32_t c = r->contact_first; c < r->contact_first + r->contact_count; ++c) {
    if (v->contact_gap0[c] < t.gap_min) t.gap_min = v->contact_gap0[c];
    if (v->contact_lambda[c] > t.lambda_max) t.lambda_max = v->contact_lambda[c];
  }
  for (int32_t k = r->bond_first; k < r->bond_first + r->bond_count; ++k) {
    vec3 lambda = v->bond_lambda[v->bond_order[k]];
    double size = sqrt((double)v3_norm2(lambda));
    if (size > t.lambda_max) t.lambda_max = size;
  }
  sim->trace(&t, sim, sim->trace_user);
}

void pabd_step_free(pabd_sim *sim, const pabd_range *range) {
  for (int32_t substep = 0; substep < sim->params.substeps; ++substep) {
    substep_begin(&sim->view, substep, sim->params.substeps);
    launch_bodies(sim, PABD_K_predict, range);
    launch_bodies(sim, PABD_K_update, range);
  }
}

/* Chebyshev and Nesterov extrapolate the iterate along its last change; restarted where the residual grows. */
typedef struct acceleration {
  double omega, theta, residual;
  int32_t started;
} acceleration;

static void accelerate(pabd_sim *sim, const pabd_range *r, acceleration *state, int32_t sweep) {
  pabd_view *v = &sim->view;
  double residual = residual_of(sim, r), weight = 0.0;
  if (!state->started || residual > state->residual) {
    state->started = 1, state->omega = 1.0, state->theta = 1.0; /* restart */
  } else if (sim->params.acceleration == PABD_ACCEL_CHEBYSHEV) {
    double rho2 = sim->params.spectral_radius * sim->params.spectral_radius;
    state->omega = sweep == 1 ? 2.0 / (2.0 - rho2) : 4.0 / (4.0 - rho2 * state->omega);
    weight = state->omega - 1.0;
  } else {
    double theta = 0.5 * (1.0 + sqrt(1.0 + 4.0 * state->theta * state->theta));
    weight = (state->theta - 1.0) / theta;
    state->theta = theta;
  }
  state->residual = residual;
  for (int32_t k = r->body_first; k < r->body_first + r->body_count; ++k) {
    int32_t i = v->body_order[k];
    pabd_motion8 before = v->accel_prev[i], now;
    now.d = v->inc_pos[i], now.pad = R(0), now.q = v->inc_rot[i];
    if (weight > 0.0) {
      vec3 turn = quat_log(quat_mul(now.q, quat_conj(before.q)));
      v->inc_pos[i] = v3_madd(now.d, (real)weight, v3_sub(now.d, before.d));
      v->inc_rot[i] = quat_normalize(quat_mul(quat_exp(v3_scale((real)weight, turn)), now.q));
      v->total[i].d = v3_add(v->step_pred[i], v->inc_pos[i]);
      v->total[i].q = quat_mul(v->inc_rot[i], v->turn_pred[i]);
    }
    v->accel_prev[i] = now;
  }
}

static void sweep_substep(pabd_sim *sim, const pabd_range *range, int32_t substep) {
  const pabd_params *p = &sim->params;
  acceleration state = {1.0, 1.0, 0.0, 0};
  for (int32_t sweep = 0; sweep < p->sweeps; ++sweep) {
    /* the multiplier step belongs to the end of the sweep before and sees the same iterate: one pass does both */
    int dual = p->multipliers && sweep > 0 && sweep % p->dual_period == 0;
    sim->view.report_now = sim->trace || p->tolerance > 0.0 || p->acceleration != PABD_ACCEL_NONE ||
                           (sweep + 1 == p->sweeps && substep + 1 == p->substeps);
    launch_contacts(sim, dual ? PABD_K_contact_dual : PABD_K_contact_force, range);
    launch_bonds(sim, dual ? PABD_K_bond_dual : PABD_K_bond_force, range);
    launch_bodies(sim, PABD_K_body_sweep, range);
    if (p->acceleration != PABD_ACCEL_NONE) accelerate(sim, range, &state, sweep);
    sim->stats.sweeps += 1;
    trace(sim, range, substep, sweep, "sweep");
    if (p->tolerance > 0.0 && residual_of(sim, range) <= p->tolerance) break;
  }
}

static void relax_substep(pabd_sim *sim, const pabd_range *range, int32_t substep) {
  if (sim->params.relax_sweeps == 0 || range->contact_count == 0 || !sim->params.multipliers) return;
  launch_contacts(sim, PABD_K_relax_begin, range);
  launch_bodies(sim, PABD_K_relax_block, range);
  for (int32_t sweep = 0; sweep < sim->params.relax_sweeps; ++sweep) {
    launch_contacts(sim, PABD_K_relax_contact, range);
    launch_bodies(sim, PABD_K_relax_body, range);
    trace(sim, range, substep, sim->params.sweeps + sweep, "relax");
  }
  launch_contacts(sim, PABD_K_relax_contact, range); /* the multiplier step that belongs to the last relax sweep */
}

/* The multiplier step after the last sweep. Contacts took theirs in the relax sweeps, at the new pose; joints take it
 * here, after the relax sweeps, which need the joint forces of the last sweep as they were. */
static void finish_duals(pabd_sim *sim, const pabd_range *range) {
  if (!sim->params.multipliers) return;
  launch_bonds(sim, PABD_K_bond_dual, range);
  if (sim->params.relax_sweeps == 0) launch_contacts(sim, PABD_K_contact_dual, range);
}

void pabd_step_jacobi(pabd_sim *sim, const pabd_range *range) {
  for (int32_t substep = 0; substep < sim->params.substeps; ++substep) {
    substep_begin(&sim->view, substep, sim->params.substeps);
    pabd_restitution_begin(sim, range, sim->view.h);
    launch_bodies(sim, PABD_K_predict, range);
    launch_fixed(sim, PABD_K_predict);
    launch_contacts(sim, PABD_K_contact_begin, range);
    launch_bonds(sim, PABD_K_bond_begin, range);
    launch_bodies(sim, PABD_K_block, range);
    sweep_substep(sim, range, substep);
    launch_bodies(sim, PABD_K_update, range);
    relax_substep(sim, range, substep);
    finish_duals(sim, range);
    pabd_restitution_apply(sim, range, sim->view.h);
  }
  sim->stats.residual = fmax(sim->stats.residual, residual_of(sim, range));
  sim->stats.rigidity_defect = fmax(sim->stats.rigidity_defect, defect_of(sim, range));
  sim->stats.bond_error = fmax(sim->stats.bond_error, bond_error_of(sim, range));
}
