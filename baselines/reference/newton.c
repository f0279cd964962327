/* Semismooth Newton on the equations of newton.h, with the whole Jacobian factored by UMFPACK.
 *
 * Contact law, after Alart and Curnier, with rho > 0 of each contact, t = mu - rho x (gap, slip), B(r) the disk of
 * radius r: normal mu_n = max(0, t_n), tangents mu_t = projection of t_t on B(friction max(0, t_n)); its zeros are
 * exactly the solutions of complementarity with Coulomb's cone, whatever rho. Joint bounds likewise with an interval.
 * Derivatives of J^T mu and of the inertial terms by central differences, of everything else in closed form.
 * Multipliers that the equations do not determine (a box on four points) are kept where they are by damping their
 * Newton step with a small multiple of the diagonal of J M^-1 J^T; the residual knows nothing of it, so the solution is
 * not regularized. */
#include "newton.h"

#include <float.h>
#include <stdlib.h>
#include <suitesparse/umfpack.h>

#include "maths.h"

#define DIFFERENCE 1e-6 /* m and rad: step of the central differences */
#define FREE 15         /* iterations that may climb to the unit, then as many that may not, and so on */
#define ROUNDING 16     /* roundings of the largest term that an equation may be off by */
#define MEMORY 8        /* merit values that the line search looks back on */

typedef struct reference_work {
  int32_t size; /* unknowns */
  int32_t capacity, triplet_count, triplet_capacity, entry_capacity;
  double *residual; /* [size]: equations, kg m (bodies) and m */
  double *scale;    /* [size]: into m */
  double *step;     /* [size] */
  double *base_row, *base_contact, *best_mu, *kept_mu;
  reference_pose *base_pose, *best_pose, *kept_pose;
  int32_t *row, *column, *start, *index;
  double *value, *entry, *weight;
  double arm;        /* longest arm of a joint or contact, m; 1 where directions are compared */
  double damping;    /* regularization in force */
  double force_size; /* m: size of the forces at the best iterate, not below the unit */
  double load;       /* largest term |J^T mu| / m, m */
  int out_of_memory;
} reference_work;

/* ---- bodies ---- */

/* World angular velocity of momentum L at orientation q. */
static void rate_of(const reference_body *body, const double *q, const double *momentum, double *out) {
  const double inverse[3] = {1 / body->inertia[0], 1 / body->inertia[1], 1 / body->inertia[2]};
  quat_scale(q, inverse, momentum, out);
}

static void middle(const reference_pose *start, const reference_pose *end, reference_pose *out) {
  double turn[3];
  for (int k = 0; k < 3; ++k) out->p[k] = (start->p[k] + end->p[k]) / 2;
  quat_log_between(start->q, end->q, turn);
  for (int k = 0; k < 3; ++k) turn[k] /= 2;
  memcpy(out->q, start->q, sizeof out->q);
  quat_turn(out->q, turn);
}

/* Turn of a free body in time h with its momentum kept: q = exp(h w) q0, w at the middle orientation. */
static void turn_freely(const reference_body *body, const double *momentum, double h, double *q) {
  double rate[3], turn[3] = {0, 0, 0}, last;
  rate_of(body, body->start.q, momentum, rate);
  for (int pass = 0; pass < 100; ++pass) {
    double half[4], moved[3];
    for (int k = 0; k < 3; ++k) moved[k] = h * rate[k] - turn[k], turn[k] = h * rate[k];
    last = norm(moved);
    if (last <= 1e-16 * (1 + norm(turn))) break;
    const double halved[3] = {turn[0] / 2, turn[1] / 2, turn[2] / 2};
    memcpy(half, body->start.q, sizeof half);
    quat_turn(half, halved);
    rate_of(body, half, momentum, rate);
  }
  memcpy(q, body->start.q, 4 * sizeof *q);
  quat_turn(q, turn);
}

void reference_predict(reference_problem *s) {
  for (int32_t b = 0; b < s->body_count; ++b) {
    reference_body *body = &s->body[b];
    if (body->slot < 0) {
      body->now = body->free;
      continue;
    }
    madd3(body->free_velocity, body->velocity, s->h / body->mass, body->force);
    madd3(body->free_momentum, body->momentum, s->h, body->torque);
    madd3(body->free.p, body->start.p, s->h, body->free_velocity);
    turn_freely(body, body->free_momentum, s->h, body->free.q);
    body->now = body->free;
  }
}

void reference_finish(reference_problem *s) {
  for (int32_t b = 0; b < s->body_count; ++b) {
    reference_body *body = &s->body[b];
    double turn[3], gain[3], way[3];
    if (body->slot < 0) continue;
    if (s->midpoint) {
      reference_pose half;
      middle(&body->start, &body->now, &half);
      quat_log_between(body->start.q, body->now.q, turn);
      quat_scale(half.q, body->inertia, turn, gain);
      sub3(way, body->now.p, body->start.p);
      for (int k = 0; k < 3; ++k) {
        body->velocity[k] = 2 * way[k] / s->h - body->velocity[k];
        body->momentum[k] = 2 * gain[k] / s->h - body->momentum[k];
      }
    } else {
      quat_log_between(body->free.q, body->now.q, turn);
      quat_scale(body->now.q, body->inertia, turn, gain);
      sub3(way, body->now.p, body->free.p);
      madd3(body->velocity, body->free_velocity, 1 / s->h, way);
      madd3(body->momentum, body->free_momentum, 1 / s->h, gain);
    }
  }
}

/* Inertial terms: what J^T mu must equal. */
static void inertial(const reference_problem *s, const reference_body *body, const reference_pose *pose, double *out) {
  double turn[3];
  if (s->midpoint) {
    reference_pose half;
    middle(&body->start, pose, &half);
    quat_log_between(body->start.q, pose->q, turn);
    quat_scale(half.q, body->inertia, turn, out + 3);
    for (int k = 0; k < 3; ++k) {
      out[k] =
          2 * body->mass * (pose->p[k] - body->start.p[k] - s->h * body->velocity[k]) - s->h * s->h * body->force[k];
      out[3 + k] = 2 * (out[3 + k] - s->h * body->momentum[k]) - s->h * s->h * body->torque[k];
    }
    return;
  }
  for (int k = 0; k < 3; ++k) out[k] = body->mass * (pose->p[k] - body->free.p[k]);
  if (!s->affine) {
    quat_log_between(body->free.q, pose->q, turn);
    quat_scale(pose->q, body->inertia, turn, out + 3);
    return;
  }
  /* Sum over the axes of Pi_k r~_k x r_k: gradient of the distance of the two rotations in the mass metric. */
  double now[9], free[9];
  const double trace = (body->inertia[0] + body->inertia[1] + body->inertia[2]) / 2;
  quat_matrix(pose->q, now);
  quat_matrix(body->free.q, free);
  set3(out + 3, 0, 0, 0);
  for (int k = 0; k < 3; ++k) {
    const double u[3] = {free[k], free[3 + k], free[6 + k]}, v[3] = {now[k], now[3 + k], now[6 + k]};
    double c[3];
    cross(u, v, c);
    madd3(out + 3, out + 3, trace - body->inertia[k], c);
  }
}

/* ---- joints ---- */

static const reference_pose world_pose = {{0, 0, 0}, {1, 0, 0, 0}};

static const reference_pose *pose_of(const reference_problem *s, int32_t body) {
  return body == PABD_WORLD ? &world_pose : &s->body[body].now;
}

static int32_t slot_of(const reference_problem *s, int32_t body) {
  return body == PABD_WORLD ? -1 : s->body[body].slot;
}

/* Rows at the end poses; the directions of their forces, which the midpoint rule takes at the middle poses. */
static int joint_at(const reference_problem *s, int32_t j, const reference_pose *a, const reference_pose *b,
                    reference_row *rows, double (*direction)[12]) {
  const pabd_joint *joint = &s->joint[j];
  const int count = reference_joint_rows(joint, a, b, &s->moment[j], rows);
  if (!s->midpoint) {
    for (int k = 0; k < count; ++k) memcpy(direction[k], rows[k].gradient, sizeof direction[k]);
    return count;
  }
  reference_pose half_a = world_pose, half_b;
  reference_row half[REFERENCE_ROWS];
  if (joint->body_a != PABD_WORLD) middle(&s->body[joint->body_a].start, a, &half_a);
  middle(&s->body[joint->body_b].start, b, &half_b);
  reference_joint_rows(joint, &half_a, &half_b, &s->moment[j], half);
  for (int k = 0; k < count; ++k) memcpy(direction[k], half[k].gradient, sizeof direction[k]);
  return count;
}

static int joint_force(const reference_problem *s, int32_t j, const reference_pose *a, const reference_pose *b,
                       double *out) {
  reference_row rows[REFERENCE_ROWS];
  double direction[REFERENCE_ROWS][12];
  const int count = joint_at(s, j, a, b, rows, direction);
  memset(out, 0, 12 * sizeof *out);
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < 12; ++i) out[i] += direction[k][i] * s->row_mu[s->first_row[j] + k];
  return count;
}

/* Elastic rows: mu = -h^2 (k C + d dC/dt), written as C-like = mu/s + (...) h^2/s with s = k h^2 + d h. */
static double elastic_scale(const reference_problem *s, const reference_row *row) {
  return fmax(row->stiffness * s->h * s->h * (s->midpoint ? 0.5 : 1) + row->damping * s->h, DBL_MIN);
}

/* ---- contacts ---- */

static void contact_side(const reference_body *body, const double *core, const double *offset, double *move,
                         double *roll, double *arm) {
  double start[3], turn[3];
  quat_rotate(body->now.q, core, arm);
  quat_rotate(body->start.q, core, start);
  for (int k = 0; k < 3; ++k) move[k] = (body->now.p[k] - body->start.p[k]) + (arm[k] - start[k]);
  set3(roll, 0, 0, 0);
  if (dot(offset, offset) > 0) {
    quat_log_between(body->start.q, body->now.q, turn);
    cross(turn, offset, roll);
  }
  madd3(arm, arm, 1, offset);
}

static void contact_at(const reference_problem *s, const reference_contact *c, double *motion, double *arm_a,
                       double *arm_b) {
  double move_a[3], roll_a[3], move_b[3], roll_b[3], way[3], slip[3];
  contact_side(&s->body[c->a], c->core_a, c->offset_a, move_a, roll_a, arm_a);
  contact_side(&s->body[c->b], c->core_b, c->offset_b, move_b, roll_b, arm_b);
  for (int k = 0; k < 3; ++k) way[k] = move_a[k] - move_b[k], slip[k] = way[k] + roll_a[k] - roll_b[k];
  motion[0] = c->gap + dot(c->normal, way);
  motion[1] = dot(c->tangent[0], slip);
  motion[2] = dot(c->tangent[1], slip);
}

void reference_contact_motion(const reference_problem *s, const reference_contact *c, double *out) {
  double arm_a[3], arm_b[3];
  contact_at(s, c, out, arm_a, arm_b);
}

static const double *contact_axis(const reference_contact *c, int k) {
  return k == 0 ? c->normal : c->tangent[k - 1];
}

static void contact_gradient(const reference_contact *c, int k, const double *arm_a, const double *arm_b, double *out) {
  const double *u = contact_axis(c, k);
  copy3(out, u);
  cross(arm_a, u, out + 3);
  set3(out + 6, -u[0], -u[1], -u[2]);
  cross(u, arm_b, out + 9);
}

/* The contact law at t = mu - rho x motion: values of the projections and their derivatives.
 * normal p(t_n) = max(0, t_n), radius r = friction p, tangents q = t_t min(1, r/|t_t|). With a width e > 0 (smoothing)
 * the maxima are rounded: max(a, b) = (a + b + sqrt((a - b)^2 + 4 e^2))/2. Without it the derivative is that of the
 * piece that t lies in. */
typedef struct contact_law {
  double p, dp;           /* normal force after projection; dp/dt_n */
  double q[2];            /* tangential force after projection */
  double dq[2][2], dr[2]; /* dq/dt_t; dq/dr, to be multiplied with dr/dt_n = friction dp */
} contact_law;

static double rounded_max(double a, double b, double e, double *da) {
  const double d = a - b, root = sqrt(d * d + 4 * e * e);
  *da = root > 0 ? (1 + d / root) / 2 : 0.5;
  /* Without cancellation on either side. */
  return d > 0 ? a + 2 * e * e / (root + d) : b + (root > 0 ? 2 * e * e / (root - d) : 0);
}

static contact_law law_of(const reference_problem *s, const reference_contact *c, const double *motion) {
  contact_law law;
  const double normal = c->mu[0] - c->rho[0] * motion[0], e = s->smoothing * c->rho[0];
  double t[2];
  for (int k = 0; k < 2; ++k) t[k] = c->mu[1 + k] - c->rho[1 + k] * motion[1 + k];
  memset(law.dq, 0, sizeof law.dq);
  memset(law.dr, 0, sizeof law.dr);
  if (!(e > 0)) {
    const double length = hypot(t[0], t[1]), radius = c->friction * fmax(0, normal);
    law.p = fmax(0, normal), law.dp = normal > 0;
    const int sticks = radius > 0 && length <= radius;
    for (int k = 0; k < 2; ++k) {
      const double u = length > 0 ? t[k] / length : 0;
      law.q[k] = sticks ? t[k] : radius * u;
      if (sticks) {
        law.dq[k][k] = 1;
      } else if (radius > 0) {
        law.dr[k] = u;
        for (int n = 0; n < 2; ++n) law.dq[k][n] = radius / length * ((k == n) - u * t[n] / length);
      }
    }
    return law;
  }
  law.p = rounded_max(normal, 0, e, &law.dp);
  const double radius = c->friction * law.p, length = sqrt(t[0] * t[0] + t[1] * t[1] + e * e);
  double by_length;
  const double most = rounded_max(length, radius, e, &by_length), share = radius / most;
  for (int k = 0; k < 2; ++k) {
    law.q[k] = share * t[k];
    law.dr[k] = t[k] / most * (1 - share * (1 - by_length));
    for (int n = 0; n < 2; ++n) law.dq[k][n] = share * ((k == n) - t[k] * by_length / most * t[n] / length);
  }
  return law;
}

/* ---- residual ---- */

static int32_t row_base(const reference_problem *s) {
  return 6 * s->free_count;
}
static int32_t contact_base(const reference_problem *s) {
  return 6 * s->free_count + s->row_count;
}

static void add_force(const reference_problem *s, int32_t slot, const double *force, double *load) {
  if (slot < 0) return;
  double *r = s->work->residual + 6 * (size_t)slot;
  for (int k = 0; k < 6; ++k) r[k] -= force[k], load[6 * (size_t)slot + (size_t)k] += fabs(force[k]);
}

/* Equations at the iterate. Returns the merit, half the sum of squares in m^2. */
static double evaluate(reference_problem *s) {
  reference_work *w = s->work;
  double *load = w->weight;
  memset(load, 0, (size_t)w->size * sizeof *load);
  for (int32_t b = 0; b < s->body_count; ++b) {
    const reference_body *body = &s->body[b];
    if (body->slot < 0) continue;
    inertial(s, body, &body->now, w->residual + 6 * (size_t)body->slot);
  }
  for (int32_t j = 0; j < s->joint_count; ++j) {
    const pabd_joint *joint = &s->joint[j];
    reference_row rows[REFERENCE_ROWS];
    double direction[REFERENCE_ROWS][12], force[12] = {0};
    const int count = joint_at(s, j, pose_of(s, joint->body_a), pose_of(s, joint->body_b), rows, direction);
    for (int k = 0; k < count; ++k) {
      const int32_t at = s->first_row[j] + k;
      const double mu = s->row_mu[at], rho = s->row_rho[at], h2 = s->h * s->h;
      double *r = &w->residual[row_base(s) + at];
      for (int i = 0; i < 12; ++i) force[i] += direction[k][i] * mu;
      if (rows[k].law == REFERENCE_EQUAL) {
        *r = rows[k].value;
      } else if (rows[k].law == REFERENCE_ELASTIC) {
        const double before = s->moment[j].last_elastic;
        const double level = s->midpoint ? (rows[k].value + before) / 2 : rows[k].value;
        *r = (mu + h2 * rows[k].stiffness * level + s->h * rows[k].damping * (rows[k].value - before)) /
             elastic_scale(s, &rows[k]);
      } else {
        const double t = mu - rho * rows[k].value, low = rows[k].low * h2, high = rows[k].high * h2;
        *r = (mu - fmin(fmax(t, low), high)) / rho;
      }
    }
    add_force(s, slot_of(s, joint->body_a), force, load);
    add_force(s, slot_of(s, joint->body_b), force + 6, load);
  }
  for (int32_t i = 0; i < s->contact_count; ++i) {
    const reference_contact *c = &s->contact[i];
    double motion[3], arm_a[3], arm_b[3], force[12] = {0}, gradient[12];
    contact_at(s, c, motion, arm_a, arm_b);
    for (int k = 0; k < 3; ++k) {
      contact_gradient(c, k, arm_a, arm_b, gradient);
      for (int n = 0; n < 12; ++n) force[n] += gradient[n] * c->mu[k];
    }
    add_force(s, s->body[c->a].slot, force, load);
    add_force(s, s->body[c->b].slot, force + 6, load);
    const contact_law law = law_of(s, c, motion);
    double *r = &w->residual[contact_base(s) + 3 * i];
    /* A closed contact's defect is the gap itself, a sticking one's the slip: no difference of large forces. */
    r[0] = s->smoothing == 0 && law.dp > 0 ? motion[0] : (c->mu[0] - law.p) / c->rho[0];
    for (int k = 0; k < 2; ++k)
      r[1 + k] = s->smoothing == 0 && law.dq[0][0] == 1 && law.dq[1][1] == 1 && law.dr[k] == 0
                     ? motion[1 + k]
                     : (c->mu[1 + k] - law.q[k]) / c->rho[1 + k];
  }
  double merit = 0, worst = 0, loaded = 0;
  for (int32_t k = 0; k < w->size; ++k) {
    const double defect = w->residual[k] * w->scale[k];
    merit += defect * defect / 2;
    worst = fmax(worst, fabs(defect));
    if (!isfinite(defect)) worst = INFINITY;
    if (k < row_base(s)) loaded = fmax(loaded, load[k] * w->scale[k]);
  }
  s->residual = worst;
  for (int32_t i = 0; i < s->contact_count; ++i)
    for (int k = 0; k < 3; ++k) loaded = fmax(loaded, fabs(s->contact[i].mu[k]) / s->contact[i].rho[k]);
  w->load = loaded;
  return merit;
}

/* ---- Jacobian ---- */

static void put(reference_work *w, int32_t row, int32_t column, double value) {
  if (value == 0) return;
  if (w->triplet_count == w->triplet_capacity) {
    const int32_t grown = 2 * w->triplet_capacity + 4096;
    int32_t *rows = realloc(w->row, (size_t)grown * sizeof *rows);
    if (rows) w->row = rows;
    int32_t *columns = realloc(w->column, (size_t)grown * sizeof *columns);
    if (columns) w->column = columns;
    double *values = realloc(w->value, (size_t)grown * sizeof *values);
    if (values) w->value = values;
    if (!rows || !columns || !values) {
      w->out_of_memory = 1;
      return;
    }
    w->triplet_capacity = grown;
  }
  w->row[w->triplet_count] = row, w->column[w->triplet_count] = column, w->value[w->triplet_count++] = value;
}

static void moved(const reference_pose *pose, int axis, double by, reference_pose *out) {
  *out = *pose;
  if (axis < 3) {
    out->p[axis] += by;
  } else {
    const double turn[3] = {axis == 3 ? by : 0, axis == 4 ? by : 0, axis == 5 ? by : 0};
    quat_turn(out->q, turn);
  }
}

static void assemble_bodies(reference_problem *s) {
  for (int32_t b = 0; b < s->body_count; ++b) {
    const reference_body *body = &s->body[b];
    if (body->slot < 0) continue;
    const int32_t base = 6 * body->slot;
    for (int k = 0; k < 3; ++k) put(s->work, base + k, base + k, body->mass * (s->midpoint ? 2 : 1));
    for (int k = 3; k < 6; ++k) {
      reference_pose pose;
      double up[6], down[6];
      moved(&body->now, k, DIFFERENCE, &pose);
      inertial(s, body, &pose, up);
      moved(&body->now, k, -DIFFERENCE, &pose);
      inertial(s, body, &pose, down);
      for (int i = 3; i < 6; ++i) put(s->work, base + i, base + k, (up[i] - down[i]) / (2 * DIFFERENCE));
    }
  }
}

static void assemble_joint(reference_problem *s, int32_t j) {
  const pabd_joint *joint = &s->joint[j];
  const reference_pose *pose[2] = {pose_of(s, joint->body_a), pose_of(s, joint->body_b)};
  const int32_t slot[2] = {slot_of(s, joint->body_a), slot_of(s, joint->body_b)};
  reference_row rows[REFERENCE_ROWS];
  double direction[REFERENCE_ROWS][12];
  const int count = joint_at(s, j, pose[0], pose[1], rows, direction);
  /* -d(J^T mu)/dq, and -J^T in the columns of the multipliers. */
  for (int side = 0; side < 2; ++side) {
    if (slot[side] < 0) continue;
    for (int axis = 0; axis < 6; ++axis) {
      reference_pose moved_pose;
      double up[12], down[12];
      moved(pose[side], axis, DIFFERENCE, &moved_pose);
      joint_force(s, j, side ? pose[0] : &moved_pose, side ? &moved_pose : pose[1], up);
      moved(pose[side], axis, -DIFFERENCE, &moved_pose);
      joint_force(s, j, side ? pose[0] : &moved_pose, side ? &moved_pose : pose[1], down);
      for (int i = 0; i < 12; ++i)
        if (slot[i / 6] >= 0)
          put(s->work, 6 * slot[i / 6] + i % 6, 6 * slot[side] + axis, -(up[i] - down[i]) / (2 * DIFFERENCE));
    }
  }
  for (int k = 0; k < count; ++k) {
    const int32_t at = s->first_row[j] + k, line = row_base(s) + at;
    const double mu = s->row_mu[at], rho = s->row_rho[at], h2 = s->h * s->h;
    double along = 1, own = s->work->damping / rho;
    if (rows[k].law == REFERENCE_ELASTIC) {
      own = 1 / elastic_scale(s, &rows[k]);
    } else if (rows[k].law == REFERENCE_BOUNDED) {
      const double t = mu - rho * rows[k].value;
      if (!(t > rows[k].low * h2 && t < rows[k].high * h2)) along = 0, own = 1 / rho;
    }
    put(s->work, line, line, own);
    for (int i = 0; i < 12; ++i) {
      if (slot[i / 6] < 0) continue;
      put(s->work, 6 * slot[i / 6] + i % 6, line, -direction[k][i]);
      put(s->work, line, 6 * slot[i / 6] + i % 6, along * rows[k].gradient[i]);
    }
  }
}

static void assemble_contact(reference_problem *s, int32_t index) {
  const reference_contact *c = &s->contact[index];
  const int32_t slot[2] = {s->body[c->a].slot, s->body[c->b].slot}, line = contact_base(s) + 3 * index;
  double motion[3], arm[2][3], gradient[3][12], force[3] = {0, 0, 0};
  contact_at(s, c, motion, arm[0], arm[1]);
  for (int k = 0; k < 3; ++k) {
    contact_gradient(c, k, arm[0], arm[1], gradient[k]);
    madd3(force, force, c->mu[k], contact_axis(c, k));
  }
  const contact_law law = law_of(s, c, motion);
  for (int side = 0; side < 2; ++side) {
    if (slot[side] < 0) continue;
    /* -J^T, and -d(r x F)/dphi = (r.F) 1 - r F^T for the force F on a, -F on b (offsets do not turn). */
    double core[3];
    sub3(core, arm[side], side ? c->offset_b : c->offset_a);
    const double sign = side ? -1 : 1, level = sign * dot(core, force);
    for (int i = 0; i < 3; ++i)
      for (int n = 0; n < 3; ++n)
        put(s->work, 6 * slot[side] + 3 + i, 6 * slot[side] + 3 + n, (i == n ? level : 0) - sign * core[i] * force[n]);
    for (int k = 0; k < 3; ++k)
      for (int i = 0; i < 6; ++i) put(s->work, 6 * slot[side] + i, line + k, -gradient[k][6 * side + i]);
  }
  /* Rows (mu_n - p)/rho and (mu_t - q)/rho, with t = mu - rho x motion in p and q; damping where mu drops out. */
  for (int k = 0; k < 3; ++k) {
    const double rho = c->rho[k];
    for (int n = 0; n < 3; ++n) {
      double slope = 0; /* of the projection's component k by t_n */
      if (k == 0 && n == 0) slope = law.dp;
      if (k > 0) slope = n == 0 ? law.dr[k - 1] * c->friction * law.dp : law.dq[k - 1][n - 1];
      double own = ((k == n) - slope) / rho;
      if (k == n) own = fmax(own, 0) + s->work->damping / rho;
      put(s->work, line + k, line + n, own);
      if (slope == 0) continue;
      for (int i = 0; i < 12; ++i)
        if (slot[i / 6] >= 0) put(s->work, line + k, 6 * slot[i / 6] + i % 6, slope * c->rho[n] / rho * gradient[n][i]);
    }
  }
}

/* step = -Jacobian^-1 residual. 0: solved; 1: singular or out of memory. */
static int newton_step(reference_problem *s) {
  reference_work *w = s->work;
  w->triplet_count = 0;
  /* Where the equations do not determine the multipliers they move by residual/damping: not less than their size, or a
   * contact that has to open would creep there. */
  w->damping = fmin(s->options.regularization, fmax(1e-15, 0.3 * s->residual / w->force_size));
  assemble_bodies(s);
  for (int32_t j = 0; j < s->joint_count; ++j) assemble_joint(s, j);
  for (int32_t i = 0; i < s->contact_count; ++i) assemble_contact(s, i);
  if (w->out_of_memory) return 1;
  if (w->triplet_count > w->entry_capacity) {
    free(w->index);
    free(w->entry);
    w->index = malloc((size_t)w->triplet_capacity * sizeof *w->index);
    w->entry = malloc((size_t)w->triplet_capacity * sizeof *w->entry);
    w->entry_capacity = w->index && w->entry ? w->triplet_capacity : 0;
    if (w->entry_capacity == 0) {
      w->out_of_memory = 1;
      return 1;
    }
  }
  if (umfpack_di_triplet_to_col(w->size, w->size, w->triplet_count, w->row, w->column, w->value, w->start, w->index,
                                w->entry, NULL) != UMFPACK_OK)
    return 1;
  void *symbolic = NULL, *numeric = NULL;
  double info[UMFPACK_INFO];
  int status = umfpack_di_symbolic(w->size, w->size, w->start, w->index, w->entry, &symbolic, NULL, info);
  if (status == UMFPACK_OK) status = umfpack_di_numeric(w->start, w->index, w->entry, symbolic, &numeric, NULL, info);
  if (status >= UMFPACK_OK) {
    s->pivot_fill = info[UMFPACK_LNZ] + info[UMFPACK_UNZ];
    for (int32_t k = 0; k < w->size; ++k) w->weight[k] = -w->residual[k];
    status = umfpack_di_solve(UMFPACK_A, w->start, w->index, w->entry, w->step, w->weight, numeric, NULL, info);
  }
  umfpack_di_free_symbolic(&symbolic);
  umfpack_di_free_numeric(&numeric);
  if (status == UMFPACK_ERROR_out_of_memory) w->out_of_memory = 1;
  if (status < UMFPACK_OK) return 1;
  for (int32_t k = 0; k < w->size; ++k)
    if (!isfinite(w->step[k])) return 1;
  return 0;
}

static void keep_base(reference_problem *s) {
  reference_work *w = s->work;
  for (int32_t b = 0; b < s->body_count; ++b) w->base_pose[b] = s->body[b].now;
  memcpy(w->base_row, s->row_mu, (size_t)s->row_count * sizeof *w->base_row);
  for (int32_t i = 0; i < s->contact_count; ++i) copy3(w->base_contact + 3 * (size_t)i, s->contact[i].mu);
}

static void take_step(reference_problem *s, double share) {
  const reference_work *w = s->work;
  for (int32_t b = 0; b < s->body_count; ++b) {
    reference_body *body = &s->body[b];
    if (body->slot < 0) continue;
    const double *d = w->step + 6 * (size_t)body->slot;
    body->now = w->base_pose[b];
    madd3(body->now.p, body->now.p, share, d);
    const double turn[3] = {share * d[3], share * d[4], share * d[5]};
    quat_turn(body->now.q, turn);
  }
  for (int32_t k = 0; k < s->row_count; ++k) s->row_mu[k] = w->base_row[k] + share * w->step[row_base(s) + k];
  for (int32_t i = 0; i < s->contact_count; ++i)
    madd3(s->contact[i].mu, w->base_contact + 3 * (size_t)i, share, w->step + contact_base(s) + 3 * (size_t)i);
}

double reference_goal(const reference_problem *s) {
  return fmax(s->options.tolerance * s->unit, ROUNDING * s->floor);
}

static double goal(reference_problem *s) {
  double far = 0;
  for (int32_t b = 0; b < s->body_count; ++b)
    if (s->body[b].slot >= 0) far = fmax(far, fmax(norm(s->body[b].now.p), norm(s->body[b].start.p)));
  far += s->work->arm;
  s->floor = DBL_EPSILON * (far + s->work->load);
  return reference_goal(s);
}

/* The iterate, kept for a retreat. */
static void save(const reference_problem *s, reference_pose *pose, double *mu) {
  for (int32_t b = 0; b < s->body_count; ++b) pose[b] = s->body[b].now;
  memcpy(mu, s->row_mu, (size_t)s->row_count * sizeof *mu);
  for (int32_t i = 0; i < s->contact_count; ++i) copy3(mu + s->row_count + 3 * (size_t)i, s->contact[i].mu);
}

static void restore(reference_problem *s, const reference_pose *pose, const double *mu) {
  for (int32_t b = 0; b < s->body_count; ++b) s->body[b].now = pose[b];
  memcpy(s->row_mu, mu, (size_t)s->row_count * sizeof *mu);
  for (int32_t i = 0; i < s->contact_count; ++i) copy3(s->contact[i].mu, mu + s->row_count + 3 * (size_t)i);
}

/* Newton with a line search that may climb above the last merit, but not above the largest of the last few. For FREE
 * iterations it may climb to the size of the forces (a contact that has to open to settle forces that the equations do
 * not determine raises the merit first); then it goes on from the best point without that freedom, and so on. */
static int newton(reference_problem *s) {
  reference_work *w = s->work;
  double history[MEMORY], merit = evaluate(s), best = INFINITY;
  for (int k = 0; k < MEMORY; ++k) history[k] = merit;
  for (int iteration = 0; iteration < s->options.max_iterations; ++iteration) {
    const int is_free = iteration / FREE % 2 == 0;
    if (s->watch) s->watch(s, iteration, s->watch_user);
    if (s->residual <= goal(s)) return 1;
    if (merit < best) {
      best = merit;
      w->force_size = fmax(s->unit, w->load);
      save(s, w->best_pose, w->best_mu);
    } else if (iteration % (2 * FREE) == FREE) {
      restore(s, w->best_pose, w->best_mu);
      merit = evaluate(s);
      for (int k = 0; k < MEMORY; ++k) history[k] = merit;
    }
    if (!isfinite(merit) || newton_step(s)) break;
    ++s->iterations;
    double ceiling = is_free ? 10 * w->force_size * w->force_size : 0, share = 1, least = INFINITY, least_share = 1;
    for (int k = 0; k < MEMORY; ++k) ceiling = fmax(ceiling, history[k]);
    keep_base(s);
    for (int halving = 0; halving < 10; ++halving, share /= 2) {
      take_step(s, share);
      merit = evaluate(s);
      if (merit < least) least = merit, least_share = share;
      if (merit <= ceiling * (1 - 1e-4 * share)) break;
    }
    if (!(merit <= ceiling) && isfinite(least)) {
      take_step(s, least_share);
      merit = evaluate(s);
    }
    history[iteration % MEMORY] = merit;
  }
  if (s->residual <= goal(s)) return 1;
  if (isfinite(best)) restore(s, w->best_pose, w->best_mu);
  evaluate(s);
  return 0;
}

/* ---- the solve ---- */

/* Scale of a row: 1 / (J M^-1 J^T) of it alone, at the start of the step. `a` is NULL for the world. */
static double row_scale(const reference_body *a, const reference_body *b, const double *gradient) {
  double sum = 0;
  for (int side = 0; side < 2; ++side) {
    const reference_body *body = side ? b : a;
    const double *g = gradient + 6 * side;
    double turned[3];
    if (body == NULL || body->slot < 0) continue;
    rate_of(body, body->start.q, g + 3, turned);
    sum += dot(g, g) / body->mass + dot(g + 3, turned);
  }
  return sum > 0 ? 1 / sum : 1;
}

static pabd_status size_work(reference_problem *s) {
  reference_work *w = s->work;
  const int32_t size = contact_base(s) + 3 * s->contact_count;
  w->size = size;
  w->out_of_memory = 0;
  if (size <= w->capacity) return PABD_OK;
  const size_t n = (size_t)size + (size_t)size / 2 + 16;
  double **real[] = {&w->residual,     &w->scale,  &w->step,    &w->base_row,
                     &w->base_contact, &w->weight, &w->best_mu, &w->kept_mu};
  for (int k = 0; k < 8; ++k) {
    free(*real[k]);
    *real[k] = calloc(n, sizeof **real[k]);
  }
  free(w->start);
  w->start = calloc(n + 1, sizeof *w->start);
  for (int k = 0; k < 8; ++k)
    if (*real[k] == NULL || w->start == NULL) {
      w->capacity = 0;
      return PABD_ERR_MEMORY;
    }
  w->capacity = (int32_t)n;
  return PABD_OK;
}

static void set_scales(reference_problem *s) {
  reference_work *w = s->work;
  double push = 0, speed = 0;
  for (int32_t b = 0; b < s->body_count; ++b) {
    const reference_body *body = &s->body[b];
    speed = fmax(speed, norm(body->velocity));
    if (body->slot < 0) continue;
    for (int k = 0; k < 3; ++k) {
      w->scale[6 * body->slot + k] = 1 / body->mass;
      w->scale[6 * body->slot + 3 + k] = 1 / (body->mass * body->radius);
    }
    push = fmax(push, norm(body->force) / body->mass);
    speed = fmax(speed, norm(body->momentum) / (body->mass * body->radius));
  }
  for (int32_t k = row_base(s); k < w->size; ++k) w->scale[k] = 1;
  w->arm = 0;
  for (int32_t j = 0; j < s->joint_count; ++j) {
    const pabd_joint *joint = &s->joint[j];
    const double a[3] = {joint->frame_a.p.x, joint->frame_a.p.y, joint->frame_a.p.z},
                 b[3] = {joint->frame_b.p.x, joint->frame_b.p.y, joint->frame_b.p.z};
    const int turns = joint->kind != PABD_SPHERICAL && joint->kind != PABD_DISTANCE && joint->kind != PABD_SPRING;
    w->arm = fmax(fmax(w->arm, turns), fmax(norm(a), norm(b)));
  }
  for (int32_t i = 0; i < s->contact_count; ++i)
    for (int side = 0; side < 2; ++side)
      if (s->body[side ? s->contact[i].b : s->contact[i].a].slot >= 0)
        w->arm = fmax(w->arm, norm(side ? s->contact[i].core_b : s->contact[i].core_a));
  s->unit = fmax(fmax(s->h * s->h * push, 1e-3 * s->h * speed), 1e-9);
  for (int32_t j = 0; j < s->joint_count; ++j) {
    const pabd_joint *joint = &s->joint[j];
    const reference_body *a = joint->body_a == PABD_WORLD ? NULL : &s->body[joint->body_a];
    const reference_body *b = s->body + joint->body_b; /* never the world */
    reference_row rows[REFERENCE_ROWS];
    const int count = reference_joint_rows(joint, a ? &a->start : &world_pose, &b->start, &s->moment[j], rows);
    for (int k = 0; k < count; ++k) {
      s->row_rho[s->first_row[j] + k] = row_scale(a, b, rows[k].gradient);
      if (rows[k].law == REFERENCE_ELASTIC) s->moment[j].last_elastic = rows[k].value;
    }
  }
  for (int32_t i = 0; i < s->contact_count; ++i) {
    reference_contact *c = &s->contact[i];
    const reference_body *a = &s->body[c->a], *b = &s->body[c->b];
    double arm_a[3], arm_b[3], gradient[12];
    quat_rotate(a->start.q, c->core_a, arm_a);
    quat_rotate(b->start.q, c->core_b, arm_b);
    madd3(arm_a, arm_a, 1, c->offset_a);
    madd3(arm_b, arm_b, 1, c->offset_b);
    for (int k = 0; k < 3; ++k) {
      contact_gradient(c, k, arm_a, arm_b, gradient);
      c->rho[k] = row_scale(a, b, gradient);
    }
    c->rho[1] = c->rho[2] = fmin(c->rho[1], c->rho[2]); /* one for both, or the disk would become an ellipse */
  }
}

/* Natural map of the cone: |mu - P(mu - rho u^)| with u^ = (gap + friction |slip|, slip), relative to the largest of mu
 * and rho u. Independent of the equations that Newton solves. */
static double natural_map(const reference_problem *s) {
  double miss = 0, size = 0;
  for (int32_t i = 0; i < s->contact_count; ++i) {
    const reference_contact *c = &s->contact[i];
    double u[3], t[3], along;
    reference_contact_motion(s, c, u);
    const double rho = fmin(c->rho[0], c->rho[1]), slip = hypot(u[1], u[2]), f = c->friction;
    t[0] = c->mu[0] - rho * (u[0] + f * slip);
    for (int k = 1; k < 3; ++k) t[k] = c->mu[k] - rho * u[k];
    const double side = hypot(t[1], t[2]);
    if (side <= f * t[0]) {
      along = t[0];
    } else if (f * side <= -t[0]) {
      along = 0, t[1] = t[2] = 0;
    } else {
      along = (t[0] + f * side) / (1 + f * f);
      const double shrink = side > 0 ? f * along / side : 0;
      t[1] *= shrink, t[2] *= shrink;
    }
    const double d[3] = {c->mu[0] - along, c->mu[1] - t[1], c->mu[2] - t[2]};
    miss += dot(d, d);
    size = fmax(size, fmax(dot(c->mu, c->mu), rho * rho * dot(u, u)));
  }
  return size > 0 ? sqrt(miss / size) : 0;
}

static void start_anew(reference_problem *s) {
  for (int32_t b = 0; b < s->body_count; ++b) s->body[b].now = s->body[b].free;
  memset(s->row_mu, 0, (size_t)s->row_count * sizeof *s->row_mu);
  for (int32_t i = 0; i < s->contact_count; ++i) set3(s->contact[i].mu, 0, 0, 0);
}

/* Continuation in the rounding of the contact law: its width shrinks from solve to solve, more slowly after a failure;
 * what comes out is where plain Newton starts. */
static int shrink_width(reference_problem *s, double width, double shrink, reference_pose *pose, double *mu) {
  const double tolerance = s->options.tolerance;
  int solved = 0;
  for (int solve = 0; solve < 200 && !s->work->out_of_memory; ++solve) {
    s->smoothing = width;
    s->options.tolerance = fmax(tolerance, 0.1 * width / s->unit);
    const int good = newton(s);
    if (good) {
      s->smoothing = 0, s->options.tolerance = tolerance;
      evaluate(s);
      if (s->residual <= goal(s)) return 1;
      if (width < 1e-4 * s->unit * tolerance) break;
      save(s, pose, mu);
      solved = 1;
    } else {
      if (shrink > 0.9) break;
      if (solved)
        restore(s, pose, mu), width /= shrink;
      else
        start_anew(s), width *= 100;
      shrink = sqrt(shrink);
      if (!solved) continue;
    }
    width *= shrink;
  }
  s->smoothing = 0;
  s->options.tolerance = tolerance;
  if (solved) restore(s, pose, mu);
  return newton(s);
}

/* Continuation in the free motion: from none of it, where the start pose solves the equations, to all. */
static int grow_motion(reference_problem *s, reference_pose *pose, double *mu) {
  reference_pose *whole = calloc((size_t)s->body_count + 1, sizeof *whole);
  double share = 0, way = 0.25;
  int done = 0;
  if (whole == NULL) {
    s->work->out_of_memory = 1;
    return 0;
  }
  for (int32_t b = 0; b < s->body_count; ++b) whole[b] = s->body[b].free, s->body[b].now = s->body[b].start;
  memset(s->row_mu, 0, (size_t)s->row_count * sizeof *s->row_mu);
  save(s, pose, mu);
  while (way > 1e-3 && !done && !s->work->out_of_memory) {
    const double next = fmin(1, share + way);
    for (int32_t b = 0; b < s->body_count; ++b) {
      reference_body *body = &s->body[b];
      double turn[3];
      quat_log_between(body->start.q, whole[b].q, turn);
      for (int k = 0; k < 3; ++k) {
        body->free.p[k] = body->start.p[k] + next * (whole[b].p[k] - body->start.p[k]);
        turn[k] *= next;
      }
      memcpy(body->free.q, body->start.q, sizeof body->free.q);
      quat_turn(body->free.q, turn);
      if (next == 1) body->free = whole[b];
      if (body->slot < 0) body->now = body->free;
    }
    if (newton(s)) {
      share = next, done = next == 1;
      save(s, pose, mu);
      way *= 2;
    } else {
      restore(s, pose, mu);
      way /= 4;
    }
  }
  for (int32_t b = 0; b < s->body_count; ++b) s->body[b].free = whole[b];
  free(whole);
  return done;
}

pabd_status reference_solve(reference_problem *s) {
  PABD_TRY(size_work(s));
  set_scales(s);
  s->iterations = s->fallbacks = 0;
  s->smoothing = 0;
  int done = newton(s);
  if (!done && !s->work->out_of_memory) {
    reference_pose *pose = malloc(((size_t)s->body_count + 1) * sizeof *pose);
    double *mu = malloc(((size_t)s->row_count + 3 * (size_t)s->contact_count + 1) * sizeof *mu);
    if (!pose || !mu) s->work->out_of_memory = 1;
    if (!s->work->out_of_memory) {
      const reference_pose *keep = s->work->kept_pose;
      double least = s->residual;
      save(s, s->work->kept_pose, s->work->kept_mu);
      for (int attempt = 0; attempt < (s->contact_count > 0 ? 3 : 1) && !done && !s->work->out_of_memory; ++attempt) {
        static const double start[] = {10, 1000, 0.3}, shrink[] = {0.1, 0.4, 0.5};
        ++s->fallbacks;
        start_anew(s);
        done = s->contact_count > 0 ? shrink_width(s, start[attempt] * s->unit, shrink[attempt], pose, mu) : newton(s);
        if (done || s->residual < least) {
          least = s->residual;
          save(s, s->work->kept_pose, s->work->kept_mu);
        }
      }
      if (!done) {
        restore(s, keep, s->work->kept_mu);
        evaluate(s);
      }
    }
    if (!done && !s->midpoint && s->contact_count == 0 && !s->work->out_of_memory) {
      ++s->fallbacks;
      done = grow_motion(s, pose, mu);
    }
    free(pose);
    free(mu);
  }
  if (s->work->out_of_memory) return PABD_ERR_MEMORY;
  s->natural_map = natural_map(s);
  s->loose = !done && s->residual <= fmax(s->options.accept * s->unit, s->options.tolerance * s->work->load);
  return done || s->loose ? PABD_OK : PABD_DIVERGED;
}

pabd_status reference_prepare(reference_problem *s) {
  s->work = calloc(1, sizeof *s->work);
  s->first_row = calloc((size_t)s->joint_count + 1, sizeof *s->first_row);
  s->moment = calloc((size_t)s->joint_count + 1, sizeof *s->moment);
  if (!s->work || !s->first_row || !s->moment) return PABD_ERR_MEMORY;
  s->work->base_pose = calloc((size_t)s->body_count + 1, sizeof *s->work->base_pose);
  s->work->best_pose = calloc((size_t)s->body_count + 1, sizeof *s->work->best_pose);
  s->work->kept_pose = calloc((size_t)s->body_count + 1, sizeof *s->work->kept_pose);
  for (int32_t j = 0; j < s->joint_count; ++j) {
    const pabd_joint *joint = &s->joint[j];
    reference_row rows[REFERENCE_ROWS];
    s->first_row[j + 1] =
        s->first_row[j] +
        reference_joint_rows(joint, joint->body_a == PABD_WORLD ? &world_pose : &s->body[joint->body_a].start,
                             &s->body[joint->body_b].start, &s->moment[j], rows);
  }
  s->row_count = s->first_row[s->joint_count];
  s->row_mu = calloc((size_t)s->row_count + 1, sizeof *s->row_mu);
  s->row_rho = calloc((size_t)s->row_count + 1, sizeof *s->row_rho);
  return s->row_mu && s->row_rho && s->work->base_pose && s->work->best_pose && s->work->kept_pose ? PABD_OK
                                                                                                   : PABD_ERR_MEMORY;
}

void reference_release(reference_problem *s) {
  reference_work *w = s->work;
  if (w) {
    void *all[] = {w->residual, w->scale,     w->step,    w->base_row,  w->base_contact, w->base_pose,
                   w->row,      w->column,    w->start,   w->index,     w->value,        w->entry,
                   w->weight,   w->best_pose, w->best_mu, w->kept_pose, w->kept_mu};
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k) free(all[k]);
  }
  free(w);
  free(s->first_row);
  free(s->moment);
  free(s->row_mu);
  free(s->row_rho);
  free(s->contact);
  free(s->body);
  s->work = NULL;
}
