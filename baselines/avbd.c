/* Augmented Vertex Block Descent for rigid bodies in three dimensions, written from the paper (Giles, Diaz, Yuksel, ACM
 * Transactions on Graphics 44(4), Art. 90, 2025; equation numbers are the paper's).
 *
 * A step minimizes 1/2 h^-2 |x - y|^2_M + sum (1/2 k C^2 + lambda C) one body at a time (6 x 6, eq. 4-6, 17), then
 * updates multipliers and penalties of all rows (eq. 11, 12), n times; velocities are backward differences. Rows are
 * stabilized by C*(x) - alpha C*(x_t) (eq. 18) and warm started (eq. 19). Contacts are linearized at the step's start
 * (eq. 15 and text); joints are not. Sign: a contact's C is its gap, its multiplier lambda <= 0, force on a is
 * -lambda n. Invariant: bodies and rows are visited in the scene's order, in double, by one thread: same bits always.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rigid.h"
#include "common/vector.h"

enum {
  ITERATIONS,
  SUBSTEPS,
  BETA,
  BETA_ANGULAR,
  ALPHA,
  GAMMA,
  PENALTY_START,
  PENALTY_MAX,
  MASS_SCALED,
  MARGIN,
  SPECULATIVE,
  STICK,
  POST_STABILIZE,
  RESCALE,
  GEOMETRIC,
  ROTATION,
  GYROSCOPIC,
  SETTING_COUNT
};

static const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"iterations", "int", "10", "1 .. 100000", "1", "sweeps a substep: all bodies once, then all multipliers",
     "the authors' 3-D demo: 10; the paper: 3 to 20"},
    {"substeps", "int", "1", "1 .. 10000", "1",
     "steps a frame, each of frame_time / substeps, with collision detection", "one a frame, as the authors do"},
    {"beta", "real", "1e4", "0 .. inf", "N/m^2", "growth of a penalty per meter of error (eq. 12)",
     "the authors' 3-D demo; the paper says 10 for scenes of unit density"},
    {"beta_angular", "real", "100", "0 .. inf", "N/m^2", "the same for rows about angles, in meters of their arm",
     "the authors' 3-D demo"},
    {"alpha", "real", "0.99", "0 .. 1", "1", "share of a row's error at the start of the step that is left (eq. 18)",
     "the authors' 3-D demo; the paper: 0.95"},
    {"gamma", "real", "0.999", "0 .. 1", "1", "share of penalties and multipliers kept from step to step (eq. 19)",
     "the authors' 3-D demo; the paper: 0.99"},
    {"penalty_start", "real", "1", "1e-12 .. inf", "N/m", "first and least penalty", "the authors' 3-D demo"},
    {"penalty_max", "real", "1e10", "1 .. inf", "N/m", "largest penalty", "the authors' 3-D demo"},
    {"mass_scaled", "bool", "0", "0 | 1", "1",
     "penalties and betas times the reduced mass of the two bodies and (1/60 s / h)^2, so that results do not depend "
     "on "
     "units",
     "off: the authors' constants are for unit density; the scaling is ours"},
    {"margin", "real", "0.01", "0 .. 1", "m", "depth at which contacts rest",
     "the authors' 3-D demo (COLLISION_MARGIN)"},
    {"speculative", "real", "0", "0 .. 10", "m",
     "contacts from this distance on, plus what the bodies move in a substep; 0: only between overlapping shapes",
     "0: the authors' demos"},
    {"stick", "real", "1e-5", "0 .. 1", "m", "contacts that slip less keep their anchors", "the authors' 3-D demo"},
    {"post_stabilize", "bool", "0", "0 | 1", "1",
     "sweeps with alpha 1, then one that moves positions and not velocities with alpha 0",
     "off; the authors' 2-D demo has it"},
    {"rescale", "bool", "0", "0 | 1", "1", "stiffness of clamped rows from their bound (eq. 14)",
     "off, as in the paper's results"},
    {"geometric", "bool", "1", "0 | 1", "1", "geometric stiffness of joints, diagonalized (eq. 17)", "on, the paper"},
    {"rotation", "choice", "linear", "linear | exact", "1",
     "rotation of a step by its half-angle's sine and tangent (eq. 20, 21) or exactly", "linear: the paper"},
    {"gyroscopic", "bool", "0", "0 | 1", "1", "gyroscopic torque (one implicit step)",
     "off: the paper and the demos have none"},
};

static const uint64_t capabilities = PABD_COLLIDE_CAN | PABD_CAN_SPHERICAL | PABD_CAN_HINGE | PABD_CAN_SLIDER |
                                     PABD_CAN_FIXED | PABD_CAN_DISTANCE | PABD_CAN_SPRING | PABD_CAN_UNIVERSAL |
                                     PABD_CAN_LIMITS | PABD_CAN_MOTORS | PABD_CAN_KINEMATIC | PABD_CAN_LOADS |
                                     PABD_CAN_FRICTION_CONE | PABD_CAN_PAIR_MATERIALS | PABD_CAN_REPORT_CONTACTS |
                                     PABD_CAN_SET_CONTACTS | PABD_CAN_DETERMINISM | PABD_CAN_WORLDS;

typedef struct avbd_contact {
  int32_t a, b;
  int stick, round;
  pabd_dvec3 local_a, local_b;          /* anchors in the bodies' frames, m */
  pabd_dvec3 direction[3];              /* normal (b to a) and two tangents, world */
  pabd_dvec3 turn_a[3], turn_b[3];      /* arm x direction: with the directions the gradient */
  double friction, start[3];            /* start: C at the step's start, m */
  double penalty[3], lambda[3];         /* N/m, N */
  double penalty_start, penalty_growth; /* N/m, N/m^2 */
  double kept;                          /* share of start[0] that is not corrected in this step */
} avbd_contact;

typedef struct avbd_world {
  double value[SETTING_COUNT];
  pabd_rigid r;
  /* [body_count]: pose at the step's start, inertial target, velocity before, move since the start (eq. 20). */
  pabd_dvec3 *p_start, *p_target, *v_before, *dp, *dw;
  pabd_dquat *q_start, *q_target;
  int32_t *joint_first, *joint_list;     /* CSR: joints of a body */
  int32_t *contact_first, *contact_list; /* CSR: contacts of a body, rebuilt every substep */
  int32_t contact_list_capacity;
  double *row_start, *row_penalty, *row_lambda; /* [joint_count][PABD_ROWS_OF_JOINT] */
  double *rate, *rate_after;                    /* [joint_count], of motors before and after the substep */
  avbd_contact *contact, *contact_before;       /* [contact_capacity] */
  int32_t contact_count, contact_capacity;
  double h, alpha; /* s; alpha in force */
} avbd_world;

/* ---- The 6 x 6 system of a body ---- */

typedef struct block {
  double h[6][8], f[8]; /* H, of which the lower triangle is read, and f; rows of eight are one vector's work */
} block;

/* Row with gradient (l, t), multiplier force `lambda` and stiffness k: H += k J J^T, f -= lambda J. */
static inline void stamp(block *s, pabd_dvec3 l, pabd_dvec3 t, double lambda, double k) {
  const double j[8] = {l.x, l.y, l.z, t.x, t.y, t.z, 0, 0};
  for (int b = 0; b < 8; ++b) s->f[b] -= lambda * j[b];
  for (int a = 0; a < 6; ++a) {
    const double scaled = k * j[a];
    for (int b = 0; b < 8; ++b) s->h[a][b] += scaled * j[b];
  }
}

/* Eq. 17: second derivative of a force's work under a turn, -(f . r) 1 + r f^T, as the diagonal of its column norms. */
static void stamp_geometric(block *s, pabd_dvec3 force, pabd_dvec3 arm) {
  const double f[3] = {force.x, force.y, force.z}, r[3] = {arm.x, arm.y, arm.z};
  const double along = v3_dot(force, arm);
  for (int c = 0; c < 3; ++c) {
    double square = 0;
    for (int a = 0; a < 3; ++a) {
      const double entry = r[a] * f[c] - (a == c ? along : 0);
      square += entry * entry;
    }
    s->h[3 + c][3 + c] += sqrt(square);
  }
}

/* LDL^T without pivoting; x <- H^-1 f. */
static void solve(block *s, double x[6]) {
  for (int j = 0; j < 6; ++j) {
    double d = s->h[j][j];
    for (int k = 0; k < j; ++k) d -= s->h[j][k] * s->h[j][k] * s->h[k][k];
    s->h[j][j] = d;
    for (int i = j + 1; i < 6; ++i) {
      double l = s->h[i][j];
      for (int k = 0; k < j; ++k) l -= s->h[i][k] * s->h[j][k] * s->h[k][k];
      s->h[i][j] = l / d;
    }
  }
  for (int i = 0; i < 6; ++i) {
    x[i] = s->f[i];
    for (int k = 0; k < i; ++k) x[i] -= s->h[i][k] * x[k];
  }
  for (int i = 6; i-- > 0;) {
    x[i] /= s->h[i][i];
    for (int k = i + 1; k < 6; ++k) x[i] -= s->h[k][i] * x[k];
  }
}

/* ---- Rows of joints ---- */

static int32_t rows_of(const avbd_world *w, int32_t j, pabd_row *rows) {
  const pabd_joint *joint = &w->r.scene.joints[j];
  return pabd_joint_rows(joint, pabd_rigid_pose(&w->r, joint->body_a), pabd_rigid_pose(&w->r, joint->body_b),
                         w->r.arm[j], rows);
}

/* What a row is held to: value (stabilized where eq. 18 says), bounds of its force, damping force and stiffness. */
typedef struct demand {
  double c, low, high, damping;
} demand;

static demand demand_of(const avbd_world *w, int32_t j, const pabd_row *row, double start) {
  demand d = {row->value, -INFINITY, INFINITY, 0};
  if (row->kind == PABD_ROW_HARD) {
    d.c = row->value - w->alpha * start;
  } else if (row->kind == PABD_ROW_LIMIT) {
    if (start < 0) d.c = row->value - w->alpha * start;
    d.high = 0; /* the force pushes C up only */
  } else if (row->kind == PABD_ROW_SPRING) {
    d.damping = row->damping / w->h;
  } else {
    const double arm = row->angular ? w->r.arm[j] : 1;
    double moved = (row->value - start) / arm;
    if (row->angular) moved = remainder(moved, 2 * M_PI);
    d.c = arm * (moved - pabd_rigid_motor_way(&w->r, j, start / arm, w->h));
    d.low = -row->limit, d.high = row->limit;
  }
  return d;
}

static double clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

/* libm's fmin and hypot are calls, for NaN's and overflow's sake; they took 40 % of a pile's time. */
static inline double least(double a, double b) {
  return a < b ? a : b;
}
static inline double norm(double a, double b) {
  return sqrt(a * a + b * b);
}

/* Stiffness in the Hessian of a row whose force is clamped (eq. 14). */
static double rescaled(const avbd_world *w, double k, double c, double lambda, double force) {
  if (w->value[RESCALE] == 0 || !(fabs(c) > 0)) return k;
  return least(k, fabs((force - lambda) / c));
}

static void stamp_joint(avbd_world *w, block *s, int32_t j, int32_t body) {
  const pabd_joint *joint = &w->r.scene.joints[j];
  const int is_a = joint->body_a == body;
  pabd_row rows[PABD_ROWS_OF_JOINT];
  const int32_t count = rows_of(w, j, rows);
  for (int32_t k = 0; k < count; ++k) {
    const pabd_row *row = &rows[k];
    const size_t at = (size_t)j * PABD_ROWS_OF_JOINT + (size_t)k;
    const demand d = demand_of(w, j, row, w->row_start[at]);
    const double lambda = w->row_lambda[at], stiffness = w->row_penalty[at];
    const double wanted = stiffness * d.c + lambda, clamped = clamp(wanted, d.low, d.high);
    const double force = clamped + d.damping * (row->value - w->row_start[at]);
    const pabd_dvec3 l = is_a ? v3_scale(-1, row->linear) : row->linear, t = is_a ? row->turn_a : row->turn_b;
    const double in_matrix = clamped == wanted ? stiffness : rescaled(w, stiffness, d.c, lambda, clamped);
    stamp(s, l, t, force, in_matrix + d.damping);
    if (w->value[GEOMETRIC] == 0 || row->angular) continue;
    stamp_geometric(s, v3_scale(force, l), is_a ? row->arm_a : row->arm_b);
    if (row->length > 0 && force > 0) { /* taut: turning the line costs force/length; a slack one's sign is dropped */
      const pabd_dvec3 t1 = v3_normal_to(row->linear), t2 = v3_cross(row->linear, t1);
      const pabd_dvec3 arm = is_a ? row->arm_a : row->arm_b;
      stamp(s, t1, v3_cross(arm, t1), 0, force / row->length);
      stamp(s, t2, v3_cross(arm, t2), 0, force / row->length);
    }
  }
}

static double reduced_mass(const avbd_world *w, int32_t a, int32_t b) {
  const double sum = (a == PABD_WORLD ? 0 : w->r.inverse_mass[a]) + (b == PABD_WORLD ? 0 : w->r.inverse_mass[b]);
  return sum > 0 ? 1 / sum : 1;
}

/* Factor from the settings' numbers, which are for 1 kg and 1/60 s, to this pair and step. */
static double scale_of(const avbd_world *w, int32_t a, int32_t b) {
  if (w->value[MASS_SCALED] == 0) return 1;
  return reduced_mass(w, a, b) / (3600 * w->h * w->h);
}

/* Eq. 19: penalties decay, multipliers keep the share that was load and not correction. */
static void warm_start_joints(avbd_world *w) {
  const double keep = w->value[GAMMA] * (w->value[POST_STABILIZE] > 0 ? 1 : w->value[ALPHA]);
  for (int32_t j = 0; j < w->r.joint_count; ++j) {
    const pabd_joint *joint = &w->r.scene.joints[j];
    const double scale = scale_of(w, joint->body_a, joint->body_b);
    pabd_row rows[PABD_ROWS_OF_JOINT];
    const int32_t count = rows_of(w, j, rows);
    for (int32_t k = 0; k < count; ++k) {
      const size_t at = (size_t)j * PABD_ROWS_OF_JOINT + (size_t)k;
      double *stiffness = &w->row_penalty[at];
      w->row_start[at] = rows[k].value;
      w->row_lambda[at] *= w->value[POST_STABILIZE] > 0 ? 1 : keep;
      *stiffness = clamp(w->value[GAMMA] * *stiffness, w->value[PENALTY_START] * scale, w->value[PENALTY_MAX] * scale);
      if (rows[k].kind == PABD_ROW_SPRING) *stiffness = least(*stiffness, rows[k].stiffness);
    }
  }
}

static void dual_joints(avbd_world *w) {
  for (int32_t j = 0; j < w->r.joint_count; ++j) {
    const pabd_joint *joint = &w->r.scene.joints[j];
    const double scale = scale_of(w, joint->body_a, joint->body_b);
    pabd_row rows[PABD_ROWS_OF_JOINT];
    const int32_t count = rows_of(w, j, rows);
    for (int32_t k = 0; k < count; ++k) {
      const size_t at = (size_t)j * PABD_ROWS_OF_JOINT + (size_t)k;
      const demand d = demand_of(w, j, &rows[k], w->row_start[at]);
      double *stiffness = &w->row_penalty[at];
      const double growth = (rows[k].angular ? w->value[BETA_ANGULAR] : w->value[BETA]) * scale * fabs(d.c);
      if (rows[k].kind == PABD_ROW_SPRING) { /* eq. 16: finite stiffness has no multiplier */
        *stiffness = least(*stiffness + growth, rows[k].stiffness);
        continue;
      }
      const double wanted = *stiffness * d.c + w->row_lambda[at];
      w->row_lambda[at] = clamp(wanted, d.low, d.high);
      if (wanted > d.low && wanted < d.high) *stiffness = least(*stiffness + growth, w->value[PENALTY_MAX] * scale);
    }
  }
}

/* ---- Contacts ---- */

static pabd_status reserve_contacts(avbd_world *w, int32_t count) {
  if (count > w->contact_capacity) {
    const int32_t capacity = count + count / 2 + 64;
    void *now = realloc(w->contact, (size_t)capacity * sizeof *w->contact);
    if (now) w->contact = now;
    void *before = realloc(w->contact_before, (size_t)capacity * sizeof *w->contact_before);
    if (before) w->contact_before = before;
    if (!now || !before) return PABD_ERR_MEMORY;
    w->contact_capacity = capacity;
  }
  if (2 * count > w->contact_list_capacity) {
    void *list = realloc(w->contact_list, (size_t)(3 * count + 64) * sizeof *w->contact_list);
    if (!list) return PABD_ERR_MEMORY;
    w->contact_list = list;
    w->contact_list_capacity = 3 * count + 64;
  }
  return PABD_OK;
}

static void list_contacts(avbd_world *w) {
  int32_t *first = w->contact_first;
  memset(first, 0, ((size_t)w->r.body_count + 2) * sizeof *first);
  for (int32_t c = 0; c < w->contact_count; ++c) ++first[w->contact[c].a + 2], ++first[w->contact[c].b + 2];
  for (int32_t i = 0; i < w->r.body_count; ++i) first[i + 2] += first[i + 1];
  for (int32_t c = 0; c < w->contact_count; ++c) {
    w->contact_list[first[w->contact[c].a + 1]++] = c;
    w->contact_list[first[w->contact[c].b + 1]++] = c;
  }
}

/* Contacts of the step: geometry, and what is kept of the same contact in the step before. */
static pabd_status find_contacts(avbd_world *w) {
  const pabd_point *points;
  int32_t count;
  pabd_rigid *r = &w->r;
  PABD_TRY(pabd_rigid_contacts(r, w->value[SPECULATIVE], w->value[SPECULATIVE] > 0 ? w->h : 0, &points, &count));
  PABD_TRY(reserve_contacts(w, count));
  avbd_contact *swap = w->contact_before;
  w->contact_before = w->contact;
  w->contact = swap;
  w->contact_count = count;
  const double keep = w->value[POST_STABILIZE] > 0 ? 1 : w->value[ALPHA] * w->value[GAMMA];
  for (int32_t k = 0; k < count; ++k) {
    const pabd_point *point = &points[k];
    const avbd_contact *before = point->previous >= 0 ? &w->contact_before[point->previous] : NULL;
    avbd_contact *c = &w->contact[k];
    const int32_t a = point->body_a, b = point->body_b;
    const double scale = scale_of(w, a, b);
    memset(c, 0, sizeof *c);
    c->a = a, c->b = b, c->round = point->round, c->friction = point->friction;
    c->direction[0] = point->normal;
    c->direction[1] = v3_normal_to(point->normal);
    c->direction[2] = v3_cross(c->direction[0], c->direction[1]);
    c->penalty_start = w->value[PENALTY_START] * scale;
    c->penalty_growth = w->value[BETA] * scale;
    if (before && before->stick && !point->round) {
      c->local_a = before->local_a, c->local_b = before->local_b;
    } else {
      c->local_a = quat_rotate_back(r->q[a], v3_sub(v3_along(point->point, point->gap / 2, point->normal), r->p[a]));
      c->local_b = quat_rotate_back(r->q[b], v3_sub(v3_along(point->point, -point->gap / 2, point->normal), r->p[b]));
    }
    const pabd_dvec3 arm_a = quat_rotate(r->q[a], c->local_a), arm_b = quat_rotate(r->q[b], c->local_b);
    const pabd_dvec3 apart = v3_sub(v3_add(r->p[a], arm_a), v3_add(r->p[b], arm_b));
    pabd_dvec3 force = v3(0, 0, 0);
    for (int e = 0; e < 3 && before; ++e) force = v3_along(force, keep * before->lambda[e], before->direction[e]);
    for (int e = 0; e < 3; ++e) {
      c->turn_a[e] = v3_cross(arm_a, c->direction[e]);
      c->turn_b[e] = v3_cross(arm_b, c->direction[e]);
      c->start[e] = v3_dot(apart, c->direction[e]);
      c->lambda[e] = v3_dot(force, c->direction[e]); /* the tangents may have turned */
      c->penalty[e] =
          clamp(before ? w->value[GAMMA] * before->penalty[e] : 0, c->penalty_start, w->value[PENALTY_MAX] * scale);
    }
    c->lambda[0] = least(c->lambda[0], 0);
    /* A gap is not an error that may be left: only what overlaps is stabilized. */
    c->kept = c->start[0] > 0 && w->value[SPECULATIVE] > 0 ? 0 : 1;
    c->start[0] += w->value[MARGIN];
  }
  list_contacts(w);
  return PABD_OK;
}

/* C of the contact's rows at the iterate, linear in the moves since the step's start. */
static void contact_values(const avbd_world *w, const avbd_contact *c, double value[3]) {
  const pabd_dvec3 d = v3_sub(w->dp[c->a], w->dp[c->b]);
  for (int e = 0; e < 3; ++e) {
    const double left = 1 - w->alpha * (e == 0 ? c->kept : 1);
    value[e] = left * c->start[e] + v3_dot(d, c->direction[e]) + v3_dot(w->dw[c->a], c->turn_a[e]) -
               v3_dot(w->dw[c->b], c->turn_b[e]);
  }
}

/* Forces of the rows on Coulomb's cone, the tangential pair scaled to it. Returns 1 inside the cone. */
static int contact_forces(const avbd_contact *c, const double value[3], double force[3]) {
  for (int e = 0; e < 3; ++e) force[e] = c->penalty[e] * value[e] + c->lambda[e];
  force[0] = least(force[0], 0);
  const double bound = c->friction * -force[0], size = norm(force[1], force[2]);
  if (size <= bound && size < bound) return 1;
  const double scale = size > 0 ? bound / size : 0;
  force[1] *= scale, force[2] *= scale;
  return 0;
}

static void stamp_contact(const avbd_world *w, block *s, const avbd_contact *c, int32_t body) {
  double value[3], force[3];
  contact_values(w, c, value);
  contact_forces(c, value, force);
  for (int e = 0; e < 3; ++e) {
    const double wanted = c->penalty[e] * value[e] + c->lambda[e];
    const double k = force[e] == wanted ? c->penalty[e] : rescaled(w, c->penalty[e], value[e], c->lambda[e], force[e]);
    if (c->a == body)
      stamp(s, c->direction[e], c->turn_a[e], force[e], k);
    else
      stamp(s, v3_scale(-1, c->direction[e]), v3_scale(-1, c->turn_b[e]), force[e], k);
  }
}

static void dual_contacts(avbd_world *w) {
  for (int32_t k = 0; k < w->contact_count; ++k) {
    avbd_contact *c = &w->contact[k];
    const double most = w->value[PENALTY_MAX] * c->penalty_start / w->value[PENALTY_START];
    double value[3], force[3];
    contact_values(w, c, value);
    const int inside = contact_forces(c, value, force);
    for (int e = 0; e < 3; ++e) c->lambda[e] = force[e];
    if (force[0] < 0) c->penalty[0] = least(c->penalty[0] + c->penalty_growth * fabs(value[0]), most);
    for (int e = 1; e < 3 && inside; ++e)
      c->penalty[e] = least(c->penalty[e] + c->penalty_growth * fabs(value[e]), most);
    c->stick = inside && norm(value[1], value[2]) < w->value[STICK];
  }
}

/* ---- The step ---- */

/* One body: H and f of eq. 4-6 at the iterate, then the update of eq. 21. */
static void descend(avbd_world *w, int32_t i) {
  pabd_rigid *r = &w->r;
  const double mass = r->scene.bodies[i].mass / (w->h * w->h);
  const pabd_dvec3 inertia = v3_scale(1 / (w->h * w->h), r->scene.bodies[i].inertia);
  pabd_dvec3 axis[3];
  block s;
  double x[6];
  memset(&s, 0, sizeof s);
  quat_axes(r->q[i], axis);
  stamp(&s, v3(0, 0, 0), axis[0], 0, inertia.x);
  stamp(&s, v3(0, 0, 0), axis[1], 0, inertia.y);
  stamp(&s, v3(0, 0, 0), axis[2], 0, inertia.z);
  const pabd_dvec3 d = v3_sub(r->p[i], w->p_target[i]), turn = quat_sub(r->q[i], w->q_target[i]);
  const double off[3] = {turn.x, turn.y, turn.z};
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) s.f[3 + a] -= (a >= b ? s.h[3 + a][3 + b] : s.h[3 + b][3 + a]) * off[b];
  s.h[0][0] += mass, s.h[1][1] += mass, s.h[2][2] += mass;
  s.f[0] -= mass * d.x, s.f[1] -= mass * d.y, s.f[2] -= mass * d.z;
  for (int32_t k = w->joint_first[i]; k < w->joint_first[i + 1]; ++k) stamp_joint(w, &s, w->joint_list[k], i);
  for (int32_t k = w->contact_first[i]; k < w->contact_first[i + 1]; ++k)
    stamp_contact(w, &s, &w->contact[w->contact_list[k]], i);
  solve(&s, x);
  r->p[i] = v3_add(r->p[i], v3(x[0], x[1], x[2]));
  r->q[i] = quat_add(r->q[i], v3(x[3], x[4], x[5]));
  w->dp[i] = v3_sub(r->p[i], w->p_start[i]);
  w->dw[i] = quat_sub(r->q[i], w->q_start[i]);
}

static void sweep(avbd_world *w) {
  for (int32_t i = 0; i < w->r.body_count; ++i)
    if (w->r.inverse_mass[i] > 0) descend(w, i);
}

/* Inertial targets y and the first iterate: gravity only as far as the last step really fell (eq. of VBD's adaptive
 * guess), so that resting bodies do not start inside each other. */
static void predict(avbd_world *w) {
  pabd_rigid *r = &w->r;
  const double h = w->h, size = v3_length(r->scene.gravity);
  const pabd_dvec3 down = v3_unit(r->scene.gravity, v3(0, 0, -1));
  for (int32_t i = 0; i < r->body_count; ++i) {
    const pabd_body *body = &r->scene.bodies[i];
    w->p_start[i] = r->p[i];
    w->q_start[i] = r->q[i];
    if (body->motion == PABD_KINEMATIC) {
      const pabd_dpose at = pabd_body_kinematic_pose(body, r->time + h);
      r->p[i] = at.p, r->q[i] = at.q;
    } else if (body->motion == PABD_DYNAMIC) {
      const pabd_dvec3 turn = v3_along(w->value[GYROSCOPIC] > 0 ? pabd_rigid_gyroscopic(r, i, r->w[i], h) : r->w[i], h,
                                       pabd_rigid_inverse_inertia(r, i, r->torque[i]));
      const double fell = size > 0 ? v3_dot(v3_sub(r->v[i], w->v_before[i]), down) / (h * size) : 0;
      w->p_target[i] = v3_along(v3_along(r->p[i], h, r->v[i]), h * h, r->acceleration[i]);
      w->q_target[i] = w->value[ROTATION] > 0
                           ? quat_unit(quat_mul(pabd_dquat_from_rotation_vector(v3_scale(h, turn)), r->q[i]))
                           : quat_add(r->q[i], v3_scale(h, turn));
      r->p[i] = v3_along(v3_along(r->p[i], h, r->v[i]), h * h * clamp(fell, 0, 1), r->scene.gravity);
      r->q[i] = w->q_target[i];
    }
    w->dp[i] = v3_sub(r->p[i], w->p_start[i]);
    w->dw[i] = quat_sub(r->q[i], w->q_start[i]);
  }
}

static void differentiate(avbd_world *w) {
  pabd_rigid *r = &w->r;
  for (int32_t i = 0; i < r->body_count; ++i) {
    if (!(r->inverse_mass[i] > 0)) continue;
    w->v_before[i] = r->v[i]; /* before it is overwritten: the guess of the next step compares the two */
    r->v[i] = v3_scale(1 / w->h, w->dp[i]);
    r->w[i] =
        v3_scale(1 / w->h, w->value[ROTATION] > 0 ? quat_log(quat_mul(r->q[i], quat_conj(w->q_start[i]))) : w->dw[i]);
  }
}

static double power_on(const avbd_world *w, int32_t body, pabd_dvec3 force, pabd_dvec3 torque) {
  if (body == PABD_WORLD || w->r.scene.bodies[body].motion != PABD_KINEMATIC) return 0;
  return v3_dot(force, w->r.v[body]) + v3_dot(torque, w->r.w[body]);
}

/* Work of motors (mean rate: exact for the change of kinetic energy) and of kinematic bodies in the substep. */
static void count_work(avbd_world *w) {
  const pabd_rigid *r = &w->r;
  double power = 0;
  pabd_rigid_motor_rates(r, w->rate_after);
  for (int32_t j = 0; j < r->joint_count; ++j) {
    const pabd_joint *joint = &r->scene.joints[j];
    pabd_row rows[PABD_ROWS_OF_JOINT];
    const int32_t count = rows_of(w, j, rows);
    for (int32_t k = 0; k < count; ++k) {
      const size_t at = (size_t)j * PABD_ROWS_OF_JOINT + (size_t)k;
      double lambda = w->row_lambda[at];
      if (rows[k].kind == PABD_ROW_SPRING)
        lambda = w->row_penalty[at] * rows[k].value + rows[k].damping / w->h * (rows[k].value - w->row_start[at]);
      power -= power_on(w, joint->body_a, v3_scale(lambda, rows[k].linear), v3_scale(-lambda, rows[k].turn_a));
      power -= power_on(w, joint->body_b, v3_scale(-lambda, rows[k].linear), v3_scale(-lambda, rows[k].turn_b));
    }
    if (joint->motor != PABD_MOTOR_NONE)
      power -= w->row_lambda[(size_t)j * PABD_ROWS_OF_JOINT + (size_t)count - 1] * (w->rate[j] + w->rate_after[j]) / 2;
  }
  for (int32_t k = 0; k < w->contact_count; ++k) {
    const avbd_contact *c = &w->contact[k];
    for (int e = 0; e < 3; ++e) {
      power -= power_on(w, c->a, v3_scale(-c->lambda[e], c->direction[e]), v3_scale(-c->lambda[e], c->turn_a[e]));
      power -= power_on(w, c->b, v3_scale(c->lambda[e], c->direction[e]), v3_scale(c->lambda[e], c->turn_b[e]));
    }
  }
  w->r.driver_work += w->h * power;
}

static pabd_status substep(void *world) {
  avbd_world *w = world;
  pabd_rigid *r = &w->r;
  double clock = pabd_now_ms();
  PABD_TRY(find_contacts(w));
  r->collide_ms += pabd_now_ms() - clock;
  clock = pabd_now_ms();
  w->alpha = w->value[POST_STABILIZE] > 0 ? 1 : w->value[ALPHA];
  pabd_rigid_forces(r, w->h);
  if (r->has_drivers) pabd_rigid_motor_rates(r, w->rate);
  warm_start_joints(w);
  predict(w);
  for (int k = 0; k < (int)w->value[ITERATIONS]; ++k) {
    sweep(w);
    dual_joints(w);
    dual_contacts(w);
  }
  differentiate(w);
  if (r->has_drivers) count_work(w);
  if (w->value[POST_STABILIZE] > 0) {
    w->alpha = 0;
    sweep(w);
  }
  r->solve_ms += pabd_now_ms() - clock;
  return PABD_OK;
}

static pabd_status step(void *world, pabd_error *error) {
  avbd_world *w = world;
  return pabd_rigid_frame(&w->r, "avbd", (int)w->value[SUBSTEPS], substep, w, &w->h, error);
}

/* ---- The table ---- */

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  *info = (pabd_engine_info){.name = "avbd",
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
  avbd_world *w = world;
  if (w == NULL) return;
  pabd_rigid_free(&w->r);
  free(w->p_start), free(w->p_target), free(w->v_before), free(w->dp), free(w->dw);
  free(w->q_start), free(w->q_target);
  free(w->joint_first), free(w->joint_list), free(w->contact_first), free(w->contact_list);
  free(w->row_start), free(w->row_penalty), free(w->row_lambda), free(w->rate), free(w->rate_after);
  free(w->contact), free(w->contact_before);
  free(w);
}

static void list_joints(avbd_world *w) {
  const pabd_scene *scene = &w->r.scene;
  int32_t *first = w->joint_first;
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    if (scene->joints[j].body_a != PABD_WORLD) ++first[scene->joints[j].body_a + 2];
    ++first[scene->joints[j].body_b + 2];
  }
  for (int32_t i = 0; i < scene->body_count; ++i) first[i + 2] += first[i + 1];
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    if (scene->joints[j].body_a != PABD_WORLD) w->joint_list[first[scene->joints[j].body_a + 1]++] = j;
    w->joint_list[first[scene->joints[j].body_b + 1]++] = j;
  }
}

static pabd_status build(avbd_world *w, const pabd_scene *scene, pabd_error *error) {
  const size_t bodies = (size_t)scene->body_count + 2, joints = (size_t)scene->joint_count + 1;
  PABD_TRY(pabd_rigid_init(&w->r, scene, error));
  w->p_start = calloc(bodies, sizeof *w->p_start);
  w->p_target = calloc(bodies, sizeof *w->p_target);
  w->v_before = calloc(bodies, sizeof *w->v_before);
  w->dp = calloc(bodies, sizeof *w->dp);
  w->dw = calloc(bodies, sizeof *w->dw);
  w->q_start = calloc(bodies, sizeof *w->q_start);
  w->q_target = calloc(bodies, sizeof *w->q_target);
  w->joint_first = calloc(bodies + 1, sizeof *w->joint_first);
  w->joint_list = calloc(joints * 2, sizeof *w->joint_list);
  w->contact_first = calloc(bodies + 1, sizeof *w->contact_first);
  w->row_start = calloc(joints * PABD_ROWS_OF_JOINT, sizeof *w->row_start);
  w->row_penalty = calloc(joints * PABD_ROWS_OF_JOINT, sizeof *w->row_penalty);
  w->row_lambda = calloc(joints * PABD_ROWS_OF_JOINT, sizeof *w->row_lambda);
  w->rate = calloc(joints, sizeof *w->rate);
  w->rate_after = calloc(joints, sizeof *w->rate_after);
  if (!w->p_start || !w->p_target || !w->v_before || !w->dp || !w->dw || !w->q_start || !w->q_target ||
      !w->joint_first || !w->joint_list || !w->contact_first || !w->row_start || !w->row_penalty || !w->row_lambda ||
      !w->rate || !w->rate_after)
    return PABD_ERR_MEMORY;
  for (int32_t i = 0; i < scene->body_count; ++i) w->v_before[i] = w->r.v[i];
  list_joints(w);
  return PABD_OK;
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                          pabd_error *error) {
  double value[SETTING_COUNT];
  *world = NULL;
  PABD_TRY(pabd_settings_parse("avbd", settings_table, SETTING_COUNT, given, given_count, value, error));
  PABD_TRY(pabd_scene_supported("avbd", scene, capabilities, error));
  avbd_world *w = calloc(1, sizeof *w);
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
  pabd_rigid_read(&((avbd_world *)world)->r, pose, velocity);
}

static void stats(void *world, pabd_engine_stats *out) {
  const avbd_world *w = world;
  double most = 0;
  pabd_rigid_stats(&w->r, out);
  for (int32_t k = 0; k < w->contact_count; ++k) most = fmax(most, w->contact[k].penalty[0]);
  for (int32_t k = 0; k < w->r.joint_count * PABD_ROWS_OF_JOINT; ++k) most = fmax(most, w->row_penalty[k]);
  pabd_stats_counter(out, "penalty_max", "N/m", most);
  pabd_stats_counter(out, "sweeps", "1", w->value[ITERATIONS] * w->value[SUBSTEPS]);
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((avbd_world *)world)->value[index], buffer, size);
}

static int32_t contacts(void *world, pabd_contact *out, int32_t capacity) {
  const avbd_world *w = world;
  int32_t count;
  const pabd_point *points = pabd_collider_points(w->r.collider, &count);
  for (int32_t k = 0; k < w->contact_count && k < capacity; ++k) {
    const avbd_contact *c = &w->contact[k];
    pabd_dvec3 force = v3(0, 0, 0);
    for (int e = 0; e < 3; ++e) force = v3_along(force, -c->lambda[e], c->direction[e]);
    out[k] = pabd_rigid_report(&points[k], force);
  }
  return w->contact_count;
}

static pabd_status set_contacts(void *world, const pabd_contact *given, int32_t count, pabd_error *error) {
  return pabd_rigid_set_contacts(&((avbd_world *)world)->r, given, count, error);
}

static const pabd_engine table = {
    PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings,     create, step,   read_state,
    stats,           setting_value,       contacts, set_contacts, NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
