/* Extended position based dynamics with small steps for rigid bodies, written from the papers: Macklin et al., Small
 * Steps in Physics Simulation (SCA 2019), and Mueller et al., Detailed Rigid Body Simulation with Extended Position
 * Based Dynamics (SCA 2020).
 *
 * A substep predicts poses, moves them onto the constraints one after the other (Gauss-Seidel, usually one iteration),
 * takes velocities from the moves and then corrects the velocities of contacts: restitution and dynamic friction.
 * Multipliers start at 0 every substep, lambda / h^2 is a force. Readings of ours where the second paper leaves it open
 * or did not hold here: dynamic friction is bounded by mu times the normal impulse of both stages and comes after all
 * restitution (the paper's order and bound let a box slide 7 % too far and down a slope below the friction angle);
 * pairs are sought every substep (the paper: once a frame, with bounds grown by the velocity; what is hit within the
 * frame may then pass into its neighbor). Invariant: one thread, an order that depends on the scene alone. */
#include <stdlib.h>
#include <string.h>

#include "common/rigid.h"
#include "common/vector.h"

enum { SUBSTEPS, ITERATIONS, ALTERNATE, MARGIN, BOUNCE_STEPS, ROTATION, GYROSCOPIC, SETTING_COUNT };

static const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"substeps", "int", "20", "1 .. 10000", "1",
     "steps a frame, each of frame_time / substeps, with collision detection",
     "20: what the AVBD paper (2025) compares XPBD with; the papers leave it to the user"},
    {"iterations", "int", "1", "1 .. 100000", "1", "sweeps over all joints and contacts a substep",
     "Macklin et al. 2019: one, and more substeps instead"},
    {"alternate", "bool", "1", "0 | 1", "1",
     "contacts are visited backwards every other substep (joints always forwards)",
     "ours, the papers leave the order open: always forwards, six equal cubes creep 0.9 m in 10 s instead of 0.2 m"},
    {"margin", "real", "0.01", "0 .. 1", "m", "contacts are made from this gap on; they act when shapes overlap",
     "ours: within a substep a body may be pushed into what was this near"},
    {"bounce_steps", "real", "2", "0 .. inf", "1",
     "slower impacts than this times gravity times the substep are plastic", "Mueller et al. 2020: 2"},
    {"rotation", "choice", "linear", "linear | exact", "1",
     "rotation of a substep by its half-angle's sine and tangent, or exactly", "linear: Mueller et al. 2020"},
    {"gyroscopic", "choice", "explicit", "off | explicit | implicit", "1",
     "gyroscopic torque: at the substep's start, or one step of an implicit equation", "explicit: Mueller et al. 2020"},
};

static const uint64_t capabilities =
    PABD_COLLIDE_CAN | PABD_CAN_SPHERICAL | PABD_CAN_HINGE | PABD_CAN_SLIDER | PABD_CAN_FIXED | PABD_CAN_DISTANCE |
    PABD_CAN_SPRING | PABD_CAN_UNIVERSAL | PABD_CAN_LIMITS | PABD_CAN_MOTORS | PABD_CAN_RESTITUTION |
    PABD_CAN_KINEMATIC | PABD_CAN_LOADS | PABD_CAN_FRICTION_CONE | PABD_CAN_PAIR_MATERIALS | PABD_CAN_REPORT_CONTACTS |
    PABD_CAN_SET_CONTACTS | PABD_CAN_DETERMINISM | PABD_CAN_WORLDS;

typedef struct xpbd_contact {
  int32_t a, b;
  pabd_dvec3 local_a, local_b;                /* surface points in the bodies' frames, m */
  pabd_dvec3 normal;                          /* world, b to a */
  pabd_dvec3 slip_before;                     /* point of a less point of b at the substep's start, m */
  double friction, restitution, speed_before; /* speed_before: of the normal gap, m/s */
  double lambda;                              /* kg m: normal, of the position stage */
  double bounce;                              /* N s: normal, of the velocity stage */
  pabd_dvec3 tangent;                         /* kg m: friction on a, of both stages */
} xpbd_contact;

typedef struct xpbd_world {
  double value[SETTING_COUNT];
  pabd_rigid r;
  pabd_dvec3 *p_start; /* [body_count]: pose at the substep's start */
  pabd_dquat *q_start;
  double *row_lambda;        /* [joint_count][PABD_ROWS_OF_JOINT], kg m: springs and motors, this substep */
  double *row_start;         /* [joint_count][PABD_ROWS_OF_JOINT]: value at the substep's start */
  double *rate, *rate_after; /* [joint_count]: of motors before and after the substep */
  xpbd_contact *contact;     /* [contact_capacity] */
  int32_t contact_count, contact_capacity;
  double h;
  int backwards;
} xpbd_world;

/* ---- Impulses on poses and velocities ---- */

/* Inverse mass that a row with gradient (l, t) of this body sees. */
static double inverse_mass(const xpbd_world *w, int32_t body, pabd_dvec3 l, pabd_dvec3 t) {
  if (body == PABD_WORLD || !(w->r.inverse_mass[body] > 0)) return 0;
  return w->r.inverse_mass[body] * v3_dot(l, l) + v3_dot(t, pabd_rigid_inverse_inertia(&w->r, body, t));
}

/* Work that a kinematic body does against impulse (l, t) * size on itself. */
static void count_kinematic(xpbd_world *w, int32_t body, pabd_dvec3 l, pabd_dvec3 t, double size) {
  if (w->r.scene.bodies[body].motion == PABD_KINEMATIC)
    w->r.driver_work -= size * (v3_dot(l, w->r.v[body]) + v3_dot(t, w->r.w[body]));
}

static void move(xpbd_world *w, int32_t body, pabd_dvec3 l, pabd_dvec3 t, double size) {
  if (body == PABD_WORLD) return;
  if (!(w->r.inverse_mass[body] > 0)) {
    count_kinematic(w, body, l, t, size / w->h);
    return;
  }
  const pabd_dvec3 turn = v3_scale(size, pabd_rigid_inverse_inertia(&w->r, body, t));
  w->r.p[body] = v3_along(w->r.p[body], size * w->r.inverse_mass[body], l);
  w->r.q[body] = quat_add(w->r.q[body], turn);
}

static void push(xpbd_world *w, int32_t body, pabd_dvec3 l, pabd_dvec3 t, double size) {
  if (!(w->r.inverse_mass[body] > 0)) {
    count_kinematic(w, body, l, t, size);
    return;
  }
  w->r.v[body] = v3_along(w->r.v[body], size * w->r.inverse_mass[body], l);
  w->r.w[body] = v3_along(w->r.w[body], size, pabd_rigid_inverse_inertia(&w->r, body, t));
}

/* ---- Joints ---- */

static int32_t rows_of(const xpbd_world *w, int32_t j, pabd_row *rows) {
  const pabd_joint *joint = &w->r.scene.joints[j];
  return pabd_joint_rows(joint, pabd_rigid_pose(&w->r, joint->body_a), pabd_rigid_pose(&w->r, joint->body_b),
                         w->r.arm[j], rows);
}

static double row_mass(const xpbd_world *w, const pabd_joint *joint, const pabd_row *row) {
  return inverse_mass(w, joint->body_a, row->linear, row->turn_a) +
         inverse_mass(w, joint->body_b, row->linear, row->turn_b);
}

static void move_row(xpbd_world *w, const pabd_joint *joint, const pabd_row *row, double size) {
  move(w, joint->body_a, v3_scale(-1, row->linear), row->turn_a, size);
  move(w, joint->body_b, row->linear, row->turn_b, size);
}

/* The hard rows of a group as one row along their joint error, |C| = 0. */
static void solve_group(xpbd_world *w, int32_t j, pabd_row_group group) {
  const pabd_joint *joint = &w->r.scene.joints[j];
  pabd_row rows[PABD_ROWS_OF_JOINT], sum;
  const int32_t count = rows_of(w, j, rows);
  memset(&sum, 0, sizeof sum);
  double square = 0;
  for (int32_t k = 0; k < count; ++k)
    if (rows[k].group == group) square += rows[k].value * rows[k].value;
  const double error = sqrt(square);
  if (!(error > 0)) return;
  for (int32_t k = 0; k < count; ++k) {
    if (rows[k].group != group) continue;
    const double share = rows[k].value / error;
    sum.linear = v3_along(sum.linear, share, rows[k].linear);
    sum.turn_a = v3_along(sum.turn_a, share, rows[k].turn_a);
    sum.turn_b = v3_along(sum.turn_b, share, rows[k].turn_b);
  }
  const double mass = row_mass(w, joint, &sum);
  if (mass > 0) move_row(w, joint, &sum, -error / mass);
}

/* Limits, springs, motors: rows along the free coordinate, one by one. */
static void solve_free(xpbd_world *w, int32_t j) {
  const pabd_joint *joint = &w->r.scene.joints[j];
  const double h = w->h;
  pabd_row rows[PABD_ROWS_OF_JOINT];
  const int32_t count = rows_of(w, j, rows);
  for (int32_t k = 0; k < count; ++k) {
    if (rows[k].group != PABD_ROW_FREE) continue;
    if (k > 0 && rows[k - 1].group == PABD_ROW_FREE) rows_of(w, j, rows); /* an earlier row moved the bodies */
    const pabd_row *row = &rows[k];
    const size_t at = (size_t)j * PABD_ROWS_OF_JOINT + (size_t)k;
    const double mass = row_mass(w, joint, row);
    double *lambda = &w->row_lambda[at], size = 0;
    if (!(mass > 0)) continue;
    if (row->kind == PABD_ROW_LIMIT) {
      if (row->value < 0) size = -row->value / mass;
    } else if (row->kind == PABD_ROW_SPRING) {
      /* (-C - a lambda - g (C - C_t)) / ((1 + g) w + a) with a = 1 / (k h^2), g = c / (k h), times k h^2: holds for k =
       * 0 too. */
      const double k2 = row->stiffness * h * h, c1 = row->damping * h;
      size = (-k2 * row->value - *lambda - c1 * (row->value - w->row_start[at])) / ((k2 + c1) * mass + 1);
    } else if (row->kind == PABD_ROW_MOTOR) {
      const double arm = row->angular ? w->r.arm[j] : 1, most = row->limit * h * h;
      double moved = (row->value - w->row_start[at]) / arm;
      if (row->angular) moved = remainder(moved, 2 * M_PI);
      const double c = arm * (moved - pabd_rigid_motor_way(&w->r, j, w->row_start[at] / arm, h));
      size = fmax(-most, fmin(most, *lambda - c / mass)) - *lambda;
    }
    *lambda += size;
    if (size != 0) move_row(w, joint, row, size);
  }
}

static void start_joints(xpbd_world *w) {
  for (int32_t j = 0; j < w->r.joint_count; ++j) {
    pabd_row rows[PABD_ROWS_OF_JOINT];
    const int32_t count = rows_of(w, j, rows);
    for (int32_t k = 0; k < count; ++k) {
      w->row_start[(size_t)j * PABD_ROWS_OF_JOINT + (size_t)k] = rows[k].value;
      w->row_lambda[(size_t)j * PABD_ROWS_OF_JOINT + (size_t)k] = 0;
    }
  }
}

/* ---- Contacts ---- */

static pabd_dvec3 velocity_at(const pabd_rigid *r, int32_t body, pabd_dvec3 arm) {
  return v3_add(r->v[body], v3_cross(r->w[body], arm));
}

/* Contacts at the predicted poses; what friction needs of the substep's start. */
static pabd_status find_contacts(xpbd_world *w) {
  pabd_rigid *r = &w->r;
  const pabd_point *points;
  int32_t count;
  PABD_TRY(pabd_rigid_contacts(r, w->value[MARGIN], 0, &points, &count));
  if (count > w->contact_capacity) {
    const int32_t capacity = count + count / 2 + 64;
    void *more = realloc(w->contact, (size_t)capacity * sizeof *w->contact);
    if (more == NULL) return PABD_ERR_MEMORY;
    w->contact = more;
    w->contact_capacity = capacity;
  }
  w->contact_count = count;
  for (int32_t k = 0; k < count; ++k) {
    const pabd_point *point = &points[k];
    xpbd_contact *c = &w->contact[k];
    const int32_t a = point->body_a, b = point->body_b;
    const pabd_dvec3 arm_a = v3_sub(v3_along(point->point, point->gap / 2, point->normal), r->p[a]);
    const pabd_dvec3 arm_b = v3_sub(v3_along(point->point, -point->gap / 2, point->normal), r->p[b]);
    memset(c, 0, sizeof *c);
    c->a = a, c->b = b;
    c->local_a = quat_rotate_back(r->q[a], arm_a);
    c->local_b = quat_rotate_back(r->q[b], arm_b);
    c->normal = point->normal;
    c->friction = point->friction;
    c->restitution = point->restitution;
    c->slip_before = v3_sub(v3_add(w->p_start[a], quat_rotate(w->q_start[a], c->local_a)),
                            v3_add(w->p_start[b], quat_rotate(w->q_start[b], c->local_b)));
    c->speed_before = v3_dot(c->normal, v3_sub(velocity_at(r, a, arm_a), velocity_at(r, b, arm_b)));
  }
  return PABD_OK;
}

/* Normal row, then static friction: the tangential move of the points since the substep's start is undone whole, if the
 * cone allows it whole; else dynamic friction acts on the velocities. */
static void solve_contact(xpbd_world *w, xpbd_contact *c) {
  pabd_rigid *r = &w->r;
  pabd_dvec3 arm_a = quat_rotate(r->q[c->a], c->local_a), arm_b = quat_rotate(r->q[c->b], c->local_b);
  const double gap = v3_dot(c->normal, v3_sub(v3_add(r->p[c->a], arm_a), v3_add(r->p[c->b], arm_b)));
  if (gap < 0) {
    const pabd_dvec3 turn_a = v3_cross(arm_a, c->normal), turn_b = v3_cross(arm_b, c->normal);
    const double mass = inverse_mass(w, c->a, c->normal, turn_a) + inverse_mass(w, c->b, c->normal, turn_b);
    const double size = -gap / mass;
    c->lambda += size;
    move(w, c->a, c->normal, turn_a, size);
    move(w, c->b, c->normal, turn_b, -size);
    arm_a = quat_rotate(r->q[c->a], c->local_a), arm_b = quat_rotate(r->q[c->b], c->local_b);
  }
  if (!(c->lambda > 0)) return;
  const pabd_dvec3 now = v3_sub(v3_add(r->p[c->a], arm_a), v3_add(r->p[c->b], arm_b));
  pabd_dvec3 slip = v3_sub(now, c->slip_before);
  slip = v3_along(slip, -v3_dot(slip, c->normal), c->normal);
  const double length = v3_length(slip);
  if (!(length > 0)) return;
  const pabd_dvec3 t = v3_scale(1 / length, slip), turn_a = v3_cross(arm_a, t), turn_b = v3_cross(arm_b, t);
  const double mass = inverse_mass(w, c->a, t, turn_a) + inverse_mass(w, c->b, t, turn_b), size = -length / mass;
  const pabd_dvec3 whole = v3_along(c->tangent, size, t);
  if (!(v3_length(whole) < c->friction * c->lambda)) return;
  c->tangent = whole;
  move(w, c->a, t, turn_a, size);
  move(w, c->b, t, turn_b, -size);
}

/* Velocity stage of a contact that acted: restitution, and what else the normal velocity must change. */
static void solve_bounce(xpbd_world *w, xpbd_contact *c) {
  pabd_rigid *r = &w->r;
  if (!(c->lambda > 0)) return;
  const pabd_dvec3 arm_a = quat_rotate(r->q[c->a], c->local_a), arm_b = quat_rotate(r->q[c->b], c->local_b);
  const double closing = v3_dot(c->normal, v3_sub(velocity_at(r, c->a, arm_a), velocity_at(r, c->b, arm_b)));
  const double slow = w->value[BOUNCE_STEPS] * v3_length(r->scene.gravity) * w->h;
  const double e = fabs(c->speed_before) <= slow ? 0 : c->restitution;
  const double change = -closing + fmax(-e * c->speed_before, 0);
  const pabd_dvec3 turn_a = v3_cross(arm_a, c->normal), turn_b = v3_cross(arm_b, c->normal);
  const double mass = inverse_mass(w, c->a, c->normal, turn_a) + inverse_mass(w, c->b, c->normal, turn_b);
  const double size = change / mass;
  c->bounce += size;
  push(w, c->a, c->normal, turn_a, size);
  push(w, c->b, c->normal, turn_b, -size);
}

/* Velocity stage: dynamic friction, up to what the normal impulse allows. */
static void solve_sliding(xpbd_world *w, xpbd_contact *c) {
  pabd_rigid *r = &w->r;
  if (!(c->lambda > 0)) return;
  const pabd_dvec3 arm_a = quat_rotate(r->q[c->a], c->local_a), arm_b = quat_rotate(r->q[c->b], c->local_b);
  const pabd_dvec3 v = v3_sub(velocity_at(r, c->a, arm_a), velocity_at(r, c->b, arm_b));
  const pabd_dvec3 sliding = v3_along(v, -v3_dot(v, c->normal), c->normal);
  const double speed = v3_length(sliding);
  const double left = c->friction * (c->lambda / w->h + c->bounce) - v3_length(c->tangent) / w->h;
  if (!(speed > 0 && left > 0)) return;
  const pabd_dvec3 t = v3_scale(1 / speed, sliding), turn_a = v3_cross(arm_a, t), turn_b = v3_cross(arm_b, t);
  const double mass = inverse_mass(w, c->a, t, turn_a) + inverse_mass(w, c->b, t, turn_b);
  const double size = -fmin(left, speed / mass);
  c->tangent = v3_along(c->tangent, size * w->h, t);
  push(w, c->a, t, turn_a, size);
  push(w, c->b, t, turn_b, -size);
}

/* ---- The substep ---- */

static pabd_dvec3 gyroscopic(const xpbd_world *w, int32_t i, double h) {
  const pabd_rigid *r = &w->r;
  if (w->value[GYROSCOPIC] == 0) return r->w[i];
  if (w->value[GYROSCOPIC] == 2) return pabd_rigid_gyroscopic(r, i, r->w[i], h);
  const pabd_dvec3 inertia = r->scene.bodies[i].inertia, u = quat_rotate_back(r->q[i], r->w[i]);
  const pabd_dvec3 torque = v3_cross(u, v3(inertia.x * u.x, inertia.y * u.y, inertia.z * u.z));
  return v3_along(r->w[i], -h, pabd_rigid_inverse_inertia(r, i, quat_rotate(r->q[i], torque)));
}

static void predict(xpbd_world *w) {
  pabd_rigid *r = &w->r;
  const double h = w->h;
  for (int32_t i = 0; i < r->body_count; ++i) {
    const pabd_body *body = &r->scene.bodies[i];
    w->p_start[i] = r->p[i];
    w->q_start[i] = r->q[i];
    if (body->motion == PABD_KINEMATIC) {
      const pabd_dpose at = pabd_body_kinematic_pose(body, r->time + h);
      r->p[i] = at.p, r->q[i] = at.q;
    } else if (body->motion == PABD_DYNAMIC) {
      r->v[i] = v3_along(r->v[i], h, r->acceleration[i]);
      r->w[i] = v3_along(gyroscopic(w, i, h), h, pabd_rigid_inverse_inertia(r, i, r->torque[i]));
      r->p[i] = v3_along(r->p[i], h, r->v[i]);
      r->q[i] = w->value[ROTATION] > 0
                    ? quat_unit(quat_mul(pabd_dquat_from_rotation_vector(v3_scale(h, r->w[i])), r->q[i]))
                    : quat_add(r->q[i], v3_scale(h, r->w[i]));
    }
  }
}

static void differentiate(xpbd_world *w) {
  pabd_rigid *r = &w->r;
  for (int32_t i = 0; i < r->body_count; ++i) {
    if (!(r->inverse_mass[i] > 0)) continue;
    r->v[i] = v3_scale(1 / w->h, v3_sub(r->p[i], w->p_start[i]));
    r->w[i] = v3_scale(1 / w->h, w->value[ROTATION] > 0 ? quat_log(quat_mul(r->q[i], quat_conj(w->q_start[i])))
                                                        : quat_sub(r->q[i], w->q_start[i]));
  }
}

/* Work of motors: their mean force times the mean rate. */
static void count_motors(xpbd_world *w) {
  pabd_rigid_motor_rates(&w->r, w->rate_after);
  for (int32_t j = 0; j < w->r.joint_count; ++j) {
    if (w->r.scene.joints[j].motor == PABD_MOTOR_NONE) continue;
    pabd_row rows[PABD_ROWS_OF_JOINT];
    const size_t last = (size_t)j * PABD_ROWS_OF_JOINT + (size_t)rows_of(w, j, rows) - 1;
    w->r.driver_work += w->row_lambda[last] / w->h * (w->rate[j] + w->rate_after[j]) / 2;
  }
}

static xpbd_contact *contact_at(xpbd_world *w, int32_t k) {
  return &w->contact[w->backwards ? w->contact_count - 1 - k : k];
}

static pabd_status substep(void *world) {
  xpbd_world *w = world;
  w->backwards = w->value[ALTERNATE] > 0 && !w->backwards;
  pabd_rigid *r = &w->r;
  double clock = pabd_now_ms();
  pabd_rigid_forces(r, w->h);
  if (r->has_drivers) pabd_rigid_motor_rates(r, w->rate);
  start_joints(w);
  predict(w);
  r->solve_ms += pabd_now_ms() - clock;
  clock = pabd_now_ms();
  PABD_TRY(find_contacts(w));
  r->collide_ms += pabd_now_ms() - clock;
  clock = pabd_now_ms();
  for (int k = 0; k < (int)w->value[ITERATIONS]; ++k) {
    for (int32_t j = 0; j < r->joint_count; ++j) {
      solve_free(w, j);
      solve_group(w, j, PABD_ROW_TURN);
      solve_group(w, j, PABD_ROW_PLACE);
    }
    for (int32_t c = 0; c < w->contact_count; ++c) solve_contact(w, contact_at(w, c));
  }
  differentiate(w);
  for (int32_t c = 0; c < w->contact_count; ++c) solve_bounce(w, contact_at(w, c));
  for (int32_t c = 0; c < w->contact_count; ++c) solve_sliding(w, contact_at(w, c));
  if (r->has_drivers) count_motors(w);
  r->solve_ms += pabd_now_ms() - clock;
  return PABD_OK;
}

static pabd_status step(void *world, pabd_error *error) {
  xpbd_world *w = world;
  return pabd_rigid_frame(&w->r, "xpbd", (int)w->value[SUBSTEPS], substep, w, &w->h, error);
}

/* ---- The table ---- */

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  *info = (pabd_engine_info){.name = "xpbd",
                             .version = "1",
                             .precision = "double",
                             .device = "cpu",
                             .license = "MIT",
                             .build = "source: the suite's own, with the suite's flags",
                             .capabilities = capabilities};
  return PABD_OK;
}

static const pabd_setting_info *settings(int32_t *count) {
  *count = SETTING_COUNT;
  return settings_table;
}

static void destroy(void *world) {
  xpbd_world *w = world;
  if (w == NULL) return;
  pabd_rigid_free(&w->r);
  free(w->p_start), free(w->q_start), free(w->row_lambda), free(w->row_start), free(w->rate), free(w->rate_after);
  free(w->contact);
  free(w);
}

static pabd_status build(xpbd_world *w, const pabd_scene *scene, pabd_error *error) {
  const size_t bodies = (size_t)scene->body_count + 1, joints = (size_t)scene->joint_count + 1;
  PABD_TRY(pabd_rigid_init(&w->r, scene, error));
  w->p_start = calloc(bodies, sizeof *w->p_start);
  w->q_start = calloc(bodies, sizeof *w->q_start);
  w->row_lambda = calloc(joints * PABD_ROWS_OF_JOINT, sizeof *w->row_lambda);
  w->row_start = calloc(joints * PABD_ROWS_OF_JOINT, sizeof *w->row_start);
  w->rate = calloc(joints, sizeof *w->rate);
  w->rate_after = calloc(joints, sizeof *w->rate_after);
  if (!w->p_start || !w->q_start || !w->row_lambda || !w->row_start || !w->rate || !w->rate_after)
    return PABD_ERR_MEMORY;
  return PABD_OK;
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                          pabd_error *error) {
  double value[SETTING_COUNT];
  *world = NULL;
  PABD_TRY(pabd_settings_parse("xpbd", settings_table, SETTING_COUNT, given, given_count, value, error));
  PABD_TRY(pabd_scene_supported("xpbd", scene, capabilities, error));
  xpbd_world *w = calloc(1, sizeof *w);
  if (w == NULL) return PABD_ERR_MEMORY;
  memcpy(w->value, value, sizeof value);
  w->h = scene->frame_time / value[SUBSTEPS];
  const pabd_status status = build(w, scene, error);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *world = w;
  return PABD_OK;
}

static void read_state(void *world, double *pose, double *velocity) {
  pabd_rigid_read(&((xpbd_world *)world)->r, pose, velocity);
}

static void stats(void *world, pabd_engine_stats *out) {
  const xpbd_world *w = world;
  pabd_rigid_stats(&w->r, out);
  pabd_stats_counter(out, "sweeps", "1", w->value[ITERATIONS] * w->value[SUBSTEPS]);
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((xpbd_world *)world)->value[index], buffer, size);
}

static int32_t contacts(void *world, pabd_contact *out, int32_t capacity) {
  const xpbd_world *w = world;
  int32_t count;
  const pabd_point *points = pabd_collider_points(w->r.collider, &count);
  const double scale = 1 / (w->h * w->h);
  for (int32_t k = 0; k < w->contact_count && k < capacity; ++k) {
    const xpbd_contact *c = &w->contact[k];
    out[k] = pabd_rigid_report(&points[k], v3_scale(scale, v3_along(c->tangent, c->lambda, c->normal)));
  }
  return w->contact_count;
}

static pabd_status set_contacts(void *world, const pabd_contact *given, int32_t count, pabd_error *error) {
  return pabd_rigid_set_contacts(&((xpbd_world *)world)->r, given, count, error);
}

static const pabd_engine table = {
    PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings,     create, step,   read_state,
    stats,           setting_value,       contacts, set_contacts, NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
