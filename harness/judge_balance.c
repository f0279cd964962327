/* Conservation: energy, momentum, centre of mass, and kinetic energy once settled.
 *
 * Energy error e(t) = E(t) - E(0) - W_loads - W_drivers, with E = sum (m v^2 / 2 + w.I w / 2 - m g.x) over dynamic
 * bodies plus springs. A load's force is constant in a frame, so its work is force times displacement (torque times the
 * rotation vector of the frame); where a load begins or ends inside a frame it gets its share of it.
 * Momentum of a scene that nothing holds: p(t) - p(0) - M g t - loads, and L about the centre of mass less the loads'
 * torque. A scene held at one point by joints that carry no torque about it: L about that point less gravity's torque.
 * Elsewhere the world's reaction is unknown, neither is conserved, and no error is written. */
#include <math.h>
#include <stdlib.h>

#include "judge_internal.h"
#include "vec3.h"

/* ---- Totals ---- */

static pabd_totals totals_of(const pabd_scene *scene, const double *pose, const double *velocity) {
  pabd_totals t = {0};
  for (int32_t i = 0; i < scene->body_count; ++i) {
    const pabd_body *body = &scene->bodies[i];
    if (body->motion != PABD_DYNAMIC) continue;
    const double *v = velocity + 6 * (size_t)i;
    pabd_dvec3 x = pabd_body_position(pose, i), linear = {v[0], v[1], v[2]}, angular = {v[3], v[4], v[5]};
    pabd_dvec3 spin = pabd_body_angular_momentum(scene, pose, velocity, i), momentum = v3_scale(body->mass, linear);
    t.mass += body->mass;
    t.center = v3_madd(t.center, body->mass, x);
    t.momentum = v3_add(t.momentum, momentum);
    t.angular = v3_add(t.angular, v3_add(spin, v3_cross(x, momentum)));
    t.kinetic += 0.5 * v3_dot(momentum, linear) + 0.5 * v3_dot(spin, angular);
    t.potential -= body->mass * v3_dot(scene->gravity, x);
    t.largest_momentum = fmax(t.largest_momentum, v3_norm(momentum));
  }
  if (t.mass > 0) t.center = v3_scale(1 / t.mass, t.center);
  return t;
}

static double energy_of(const pabd_totals *t) {
  return t->kinetic + t->potential + t->spring;
}

static int stores_energy(const pabd_joint *joint) {
  return joint->stiffness > 0 &&
         (joint->kind == PABD_SPRING || joint->kind == PABD_HINGE || joint->kind == PABD_SLIDER);
}

void pabd_judge_balance_start(pabd_judge *judge) {
  const pabd_scene *scene = judge->scene;
  for (int32_t i = 0; i < scene->body_count; ++i) {
    const pabd_body *b = &scene->bodies[i];
    const double pose[7] = {b->pose.p.x, b->pose.p.y, b->pose.p.z, b->pose.q.w, b->pose.q.x, b->pose.q.y, b->pose.q.z};
    const double velocity[6] = {b->linear.x, b->linear.y, b->linear.z, b->angular.x, b->angular.y, b->angular.z};
    for (int k = 0; k < 7; ++k) judge->pose[7 * (size_t)i + k] = pose[k];
    for (int k = 0; k < 6; ++k) judge->velocity[6 * (size_t)i + k] = velocity[k];
  }
  judge->start = totals_of(scene, judge->pose, judge->velocity);
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    if (!stores_energy(&scene->joints[j])) continue;
    judge->needs_joints = 1;
    pabd_joint_state s = pabd_joint_measure(scene, &scene->joints[j], judge->pose, judge->velocity, NAN);
    judge->start.spring += s.spring_energy;
  }
  judge->now = judge->start;
}

double pabd_load_share(const pabd_judge *judge, const pabd_load *load) {
  if (judge->frame == 0) return 0;
  double h = judge->scene->frame_time, from = fmax(load->start, judge->time - h), to = fmin(load->end, judge->time);
  return to > from ? (to - from) / h : 0;
}

/* Rotation of a body in the frame that ended now, as a vector in the world. */
static pabd_dvec3 turn_of(const pabd_judge *judge, int32_t body) {
  const double *v = judge->velocity + 6 * (size_t)body, *u = judge->last_velocity + 6 * (size_t)body;
  double h = judge->scene->frame_time;
  pabd_dvec3 mean = v3_scale(0.5 * h, (pabd_dvec3){u[3] + v[3], u[4] + v[4], u[5] + v[5]});
  if (v3_norm(mean) > 3) return mean; /* near half a turn a frame the poses no longer tell */
  pabd_dquat d = pabd_dquat_mul(pabd_body_rotation(judge->pose, body),
                                pabd_dquat_conj(pabd_body_rotation(judge->last_pose, body)));
  double sine = sqrt(d.x * d.x + d.y * d.y + d.z * d.z);
  if (sine == 0) return (pabd_dvec3){0, 0, 0};
  double scale = 2 * atan2(d.w < 0 ? -sine : sine, fabs(d.w)) / sine;
  return v3_scale(scale, (pabd_dvec3){d.x, d.y, d.z});
}

void pabd_judge_balance_frame(pabd_judge *judge) {
  const pabd_scene *scene = judge->scene;
  judge->now = totals_of(scene, judge->pose, judge->velocity);
  for (int32_t j = 0; j < scene->joint_count && judge->needs_joints; ++j) {
    judge->now.spring += judge->joints[j].spring_energy;
  }
  judge->momentum_scale = fmax(judge->momentum_scale, judge->now.largest_momentum);
  for (int32_t k = 0; k < scene->load_count; ++k) {
    const pabd_load *load = &scene->loads[k];
    double share = pabd_load_share(judge, load);
    if (share == 0 || scene->bodies[load->body].motion != PABD_DYNAMIC) continue;
    pabd_dvec3 moved =
        v3_sub(pabd_body_position(judge->pose, load->body), pabd_body_position(judge->last_pose, load->body));
    judge->load_work += share * (v3_dot(load->force, moved) + v3_dot(load->torque, turn_of(judge, load->body)));
  }
}

/* ---- Energy ---- */

enum { ENERGY_ERROR, ENERGY_KINETIC };                                                          /* tracks */
enum { LAST, LOWEST, GAIN, RISE, SETTLED_LOWEST, SETTLED_GAIN, SETTLED_RISE, IS_CONSERVATIVE }; /* numbers */

/* Nothing in the scene may take energy: no contact is possible and no joint damps. */
static pabd_status find_conservative(pabd_judge *judge, int *is_conservative) {
  *is_conservative = 1;
  for (int32_t j = 0; j < judge->scene->joint_count; ++j) {
    if (judge->scene->joints[j].damping > 0) *is_conservative = 0;
  }
  pabd_pair_finder *pairs = judge->pairs ? judge->pairs : pabd_pair_finder_create(judge->scene);
  if (!pairs) return PABD_ERR_MEMORY;
  if (pabd_pair_finder_can_touch(pairs, 0)) *is_conservative = 0;
  if (pairs != judge->pairs) pabd_pair_finder_destroy(pairs);
  return PABD_OK;
}

static pabd_status energy_begin(pabd_judge *judge, pabd_watch *w) {
  int is_conservative;
  PABD_TRY(find_conservative(judge, &is_conservative));
  w->number[IS_CONSERVATIVE] = is_conservative;
  w->number[LOWEST] = w->number[SETTLED_LOWEST] = INFINITY;
  PABD_TRY(pabd_judge_track(judge, "energy_rel_err", "1", 1, &w->track[ENERGY_ERROR]));
  return pabd_judge_track(judge, "kinetic_energy", "J", 0, &w->track[ENERGY_KINETIC]);
}

static void energy_frame(pabd_judge *judge, pabd_watch *w) {
  double error = (energy_of(&judge->now) - energy_of(&judge->start) - judge->load_work - judge->driver_work) /
                 judge->c->energy_ref;
  pabd_judge_note(judge, w->track[ENERGY_ERROR], error);
  pabd_judge_note(judge, w->track[ENERGY_KINETIC], judge->now.kinetic);
  pabd_tally_add(judge, &w->tally[0], fabs(error));
  double *n = w->number, rise = judge->frame > 0 ? fmax(0, error - n[LAST]) : 0;
  n[RISE] += rise;
  n[LOWEST] = fmin(n[LOWEST], error);
  n[GAIN] = fmax(n[GAIN], error - n[LOWEST]);
  if (judge->is_settled) {
    if (isfinite(n[SETTLED_LOWEST])) n[SETTLED_RISE] += rise; /* not the rise that leads into the window */
    n[SETTLED_LOWEST] = fmin(n[SETTLED_LOWEST], error);
    n[SETTLED_GAIN] = fmax(n[SETTLED_GAIN], error - n[SETTLED_LOWEST]);
  }
  n[LAST] = error;
}

/* Least-squares slope over the last 80 % of the frames: drift, apart from bounded oscillation. */
static double drift_rate(const pabd_judge *judge, const double *values) {
  int32_t from = judge->frame / 5, count = judge->frame - from + 1;
  if (count < 3) return NAN;
  double middle = 0.5 * (from + judge->frame), top = 0, bottom = 0;
  for (int32_t f = from; f <= judge->frame; ++f) {
    top += (f - middle) * values[f];
    bottom += (f - middle) * (f - middle);
  }
  return top / bottom / judge->scene->frame_time;
}

static pabd_status energy_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  const double *n = w->number;
  /* Where contacts or dampers may take energy, a loss is no error; a gain always is. */
  const char *of_error = n[IS_CONSERVATIVE] != 0 ? "lower" : "info";
  PABD_TRY(pabd_judge_put(w, out, "energy_rel_err_end", fabs(n[LAST]), "1", of_error));
  PABD_TRY(pabd_judge_put(w, out, "energy_rel_end", n[LAST], "1", "info")); /* with its sign */
  PABD_TRY(pabd_judge_put(w, out, "energy_rel_err_max", w->tally[0].max, "1", of_error));
  PABD_TRY(pabd_judge_put(w, out, "energy_rel_err_rms", pabd_tally_rms(&w->tally[0]), "1", of_error));
  PABD_TRY(pabd_judge_put(w, out, "energy_gain_max", n[GAIN], "1", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "energy_rise_sum", n[RISE], "1", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "energy_rise_sum_j", n[RISE] * judge->c->energy_ref, "J", "lower"));
  double drift = drift_rate(judge, judge->tracks[w->track[ENERGY_ERROR]].values);
  PABD_TRY(pabd_judge_put(w, out, "energy_drift_rate", fabs(drift), "1/s", of_error));
  if (!judge->is_settled) return PABD_OK;
  PABD_TRY(pabd_judge_put(w, out, "energy_rel_err_settled_max", w->tally[0].settled_max, "1", of_error));
  PABD_TRY(pabd_judge_put(w, out, "energy_gain_settled_max", n[SETTLED_GAIN], "1", "lower"));
  return pabd_judge_put(w, out, "energy_rise_settled_sum", n[SETTLED_RISE], "1", "lower");
}

const pabd_judge_kind pabd_judge_energy = {"energy", energy_begin, energy_frame, energy_finish};

/* ---- Momentum ---- */

enum { HELD_NOT, HELD_AT_POINT, HELD_SOMEHOW };                               /* flag 0 */
enum { IMPULSE, ANGULAR_IMPULSE, PIVOT, LAST_PIVOT, LAST_TORQUE, LAST_RATE }; /* vectors */
enum { MOMENTUM_X, MOMENTUM_Y, MOMENTUM_Z, MOMENTUM_REL };                    /* tracks */
enum {
  ANGULAR_SCALE,
  LINEAR_MAX,
  ANGULAR_MAX,
  SETTLED_ANGULAR_MAX,
  SETTLED_LINEAR_MAX
}; /* numbers, not yet relative */

/* What holds the scene, and where. */
static pabd_status find_hold(pabd_judge *judge, pabd_watch *w) {
  const pabd_scene *scene = judge->scene;
  int hold = HELD_NOT;
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    int a_moves = joint->body_a != PABD_WORLD && scene->bodies[joint->body_a].motion == PABD_DYNAMIC;
    int b_moves = scene->bodies[joint->body_b].motion == PABD_DYNAMIC;
    if (a_moves == b_moves) continue;
    int32_t fixed = a_moves ? joint->body_b : joint->body_a;
    pabd_dvec3 anchor = a_moves ? joint->frame_b.p : joint->frame_a.p;
    if (fixed != PABD_WORLD) anchor = pabd_dpose_apply(scene->bodies[fixed].pose, anchor);
    int is_point = joint->kind == PABD_SPHERICAL || joint->kind == PABD_DISTANCE || joint->kind == PABD_SPRING;
    if (fixed != PABD_WORLD && scene->bodies[fixed].motion == PABD_KINEMATIC) is_point = 0;
    if (hold == HELD_AT_POINT && v3_norm(v3_sub(anchor, w->vector[PIVOT])) > 1e-9) is_point = 0;
    w->vector[PIVOT] = anchor;
    if (hold != HELD_SOMEHOW) hold = is_point ? HELD_AT_POINT : HELD_SOMEHOW;
  }
  pabd_pair_finder *pairs = judge->pairs ? judge->pairs : pabd_pair_finder_create(scene);
  if (!pairs) return PABD_ERR_MEMORY;
  if (pabd_pair_finder_can_touch(pairs, 1)) hold = HELD_SOMEHOW;
  if (pairs != judge->pairs) pabd_pair_finder_destroy(pairs);
  w->flag[0] = hold;
  return PABD_OK;
}

static pabd_status momentum_begin(pabd_judge *judge, pabd_watch *w) {
  PABD_TRY(find_hold(judge, w));
  PABD_TRY(pabd_judge_track(judge, "momentum_x", "kg m/s", 0, &w->track[MOMENTUM_X]));
  PABD_TRY(pabd_judge_track(judge, "momentum_y", "kg m/s", 0, &w->track[MOMENTUM_Y]));
  PABD_TRY(pabd_judge_track(judge, "momentum_z", "kg m/s", 0, &w->track[MOMENTUM_Z]));
  if (w->flag[0] == HELD_SOMEHOW) return PABD_OK;
  return pabd_judge_track(judge, w->flag[0] == HELD_NOT ? "lin_mom_err_abs" : "ang_mom_err_abs",
                          w->flag[0] == HELD_NOT ? "kg m/s" : "kg m^2/s", 1, &w->track[MOMENTUM_REL]);
}

/* Angular momentum about `pivot`. */
static pabd_dvec3 angular_about(const pabd_totals *t, pabd_dvec3 pivot) {
  return v3_sub(t->angular, v3_cross(pivot, t->momentum));
}

static void momentum_frame(pabd_judge *judge, pabd_watch *w) {
  const pabd_scene *scene = judge->scene;
  pabd_judge_note(judge, w->track[MOMENTUM_X], judge->now.momentum.x);
  pabd_judge_note(judge, w->track[MOMENTUM_Y], judge->now.momentum.y);
  pabd_judge_note(judge, w->track[MOMENTUM_Z], judge->now.momentum.z);
  if (w->flag[0] == HELD_SOMEHOW) return;
  int is_free = w->flag[0] == HELD_NOT;
  double h = scene->frame_time;
  pabd_dvec3 pivot = is_free ? judge->now.center : w->vector[PIVOT];
  pabd_dvec3 start_pivot = is_free ? judge->start.center : w->vector[PIVOT];
  pabd_dvec3 last_pivot = judge->frame > 0 ? w->vector[LAST_PIVOT] : pivot;
  w->vector[LAST_PIVOT] = pivot;
  for (int32_t k = 0; k < scene->load_count; ++k) {
    const pabd_load *load = &scene->loads[k];
    double span = pabd_load_share(judge, load) * h;
    if (span == 0 || scene->bodies[load->body].motion != PABD_DYNAMIC) continue;
    pabd_dvec3 arm = v3_scale(0.5, v3_add(v3_sub(pabd_body_position(judge->pose, load->body), pivot),
                                          v3_sub(pabd_body_position(judge->last_pose, load->body), last_pivot)));
    w->vector[IMPULSE] = v3_madd(w->vector[IMPULSE], span, load->force);
    w->vector[ANGULAR_IMPULSE] =
        v3_madd(w->vector[ANGULAR_IMPULSE], span, v3_add(load->torque, v3_cross(arm, load->force)));
  }
  if (!is_free) {
    /* Gravity's torque over the frame: trapezoid with the correction by its rate (4th order). */
    pabd_dvec3 weight = v3_scale(judge->now.mass, scene->gravity);
    pabd_dvec3 torque = v3_cross(v3_sub(judge->now.center, pivot), weight);
    pabd_dvec3 rate = v3_cross(judge->now.momentum, scene->gravity);
    if (judge->frame > 0) {
      pabd_dvec3 sum = v3_scale(0.5 * h, v3_add(w->vector[LAST_TORQUE], torque));
      sum = v3_madd(sum, h * h / 12, v3_sub(w->vector[LAST_RATE], rate));
      w->vector[ANGULAR_IMPULSE] = v3_add(w->vector[ANGULAR_IMPULSE], sum);
    }
    w->vector[LAST_TORQUE] = torque;
    w->vector[LAST_RATE] = rate;
  }
  for (int32_t i = 0; i < scene->body_count; ++i) {
    if (scene->bodies[i].motion != PABD_DYNAMIC) continue;
    const double *v = judge->velocity + 6 * (size_t)i;
    pabd_dvec3 arm = v3_sub(pabd_body_position(judge->pose, i), pivot);
    pabd_dvec3 own = v3_add(pabd_body_angular_momentum(scene, judge->pose, judge->velocity, i),
                            v3_scale(scene->bodies[i].mass, v3_cross(arm, (pabd_dvec3){v[0], v[1], v[2]})));
    w->number[ANGULAR_SCALE] = fmax(w->number[ANGULAR_SCALE], v3_norm(own));
  }
  pabd_dvec3 angular = v3_sub(angular_about(&judge->now, pivot), angular_about(&judge->start, start_pivot));
  double angular_err = v3_norm(v3_sub(angular, w->vector[ANGULAR_IMPULSE]));
  w->number[ANGULAR_MAX] = fmax(w->number[ANGULAR_MAX], angular_err);
  if (judge->is_settled) w->number[SETTLED_ANGULAR_MAX] = fmax(w->number[SETTLED_ANGULAR_MAX], angular_err);
  if (!is_free) {
    pabd_judge_note(judge, w->track[MOMENTUM_REL], angular_err);
    return;
  }
  pabd_dvec3 expected = v3_madd(w->vector[IMPULSE], judge->now.mass * judge->time, scene->gravity);
  double linear_err = v3_norm(v3_sub(v3_sub(judge->now.momentum, judge->start.momentum), expected));
  w->number[LINEAR_MAX] = fmax(w->number[LINEAR_MAX], linear_err);
  if (judge->is_settled) w->number[SETTLED_LINEAR_MAX] = fmax(w->number[SETTLED_LINEAR_MAX], linear_err);
  pabd_judge_note(judge, w->track[MOMENTUM_REL], linear_err);
}

static double relative(double error, double scale) {
  return scale > 0 ? error / scale : error > 0 ? NAN : 0;
}

static pabd_status momentum_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  const double *n = w->number;
  if (w->flag[0] == HELD_SOMEHOW) return PABD_OK;
  double linear_scale = judge->c->momentum_ref > 0 ? judge->c->momentum_ref : judge->momentum_scale;
  if (w->flag[0] == HELD_NOT)
    PABD_TRY(pabd_judge_put(w, out, "lin_mom_err", relative(n[LINEAR_MAX], linear_scale), "1", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "ang_mom_err", relative(n[ANGULAR_MAX], n[ANGULAR_SCALE]), "1", "lower"));
  if (!judge->is_settled) return PABD_OK;
  if (w->flag[0] == HELD_NOT) {
    double settled = relative(n[SETTLED_LINEAR_MAX], linear_scale);
    PABD_TRY(pabd_judge_put(w, out, "lin_mom_err_settled", settled, "1", "lower"));
  }
  double settled = relative(n[SETTLED_ANGULAR_MAX], n[ANGULAR_SCALE]);
  return pabd_judge_put(w, out, "ang_mom_err_settled", settled, "1", "lower");
}

const pabd_judge_kind pabd_judge_momentum = {"momentum", momentum_begin, momentum_frame, momentum_finish};

/* ---- Centre of mass ---- */

static pabd_status com_begin(pabd_judge *judge, pabd_watch *w) {
  return pabd_judge_track(judge, "com_move", "m", 1, &w->track[0]);
}

static void com_frame(pabd_judge *judge, pabd_watch *w) {
  double moved = v3_norm(v3_sub(judge->now.center, judge->start.center));
  pabd_judge_note(judge, w->track[0], moved);
  pabd_tally_add(judge, &w->tally[0], moved);
}

static pabd_status com_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  (void)judge;
  return pabd_judge_put(w, out, "com_move_max", w->tally[0].max, "m", "lower");
}

const pabd_judge_kind pabd_judge_com = {"com", com_begin, com_frame, com_finish};

/* ---- Kinetic energy once settled ---- */

static pabd_status settle_begin(pabd_judge *judge, pabd_watch *w) {
  (void)judge;
  (void)w;
  return PABD_OK;
}

static void settle_frame(pabd_judge *judge, pabd_watch *w) {
  pabd_tally_add(judge, &w->tally[0], judge->now.kinetic);
}

static pabd_status settle_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  PABD_TRY(pabd_judge_put(w, out, "kinetic_end", judge->now.kinetic, "J", "lower"));
  if (!judge->is_settled) return PABD_OK;
  return pabd_judge_put(w, out, "kinetic_settled_max", w->tally[0].settled_max, "J", "lower");
}

const pabd_judge_kind pabd_judge_settle_kinetic = {"settle_kinetic", settle_begin, settle_frame, settle_finish};
