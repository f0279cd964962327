/* The numeric core of the exact island solver: integrators, Newton iteration, fallback ladder.
 *
 * One step of size h solves, for the increments dp and dq of all bodies of an island and the multipliers of its joints,
 *   m (b0 v - m_h)/h - f = sum of joint and contact forces,     v = a0 dp/h + v_h,
 *   (b0 L - L_h)/h - torque = sum of their moments,             L = R I W,  W = a0 R_n^T theta/h + W_h,
 * with hard joint rows C = 0 at the end of the step. theta is the Cayley vector of R R_n^T, so no trigonometry. a0, b0,
 * the history terms and gamma (force arms between start 0 and end 1 of the step) choose implicit Euler, the
 * energy-momentum step or BDF2. Invariant: an island's state changes only in commit(), after a converged (or finally
 * accepted) iterate.
 *
 * Included by direct_core_float.c and direct_core_double.c, which set the working precision `real` and DIRECT_NAME. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "direct.h"
#include "direct_math.h"
#include "real.h"

/* Rotation error left that is accepted, e = |dphi|^2/2: quadratic convergence makes it a prediction. */
#ifdef PABD_REAL_DOUBLE
#define TOLERANCE 1e-18
#define CONTACT_TOLERANCE 1e-18
#define PROXIMAL 1e-9 /* relative compliance of rows that may be redundant */
#else
#define TOLERANCE 1e-6
#define CONTACT_TOLERANCE 1e-11 /* a looser one doubles the loss of a rocking block, at any step */
#define PROXIMAL 1e-6
#endif
#define BDF2_RATIO 2.0    /* longest step over the one before: BDF2 is zero-stable below 1 + sqrt(2) */
#define ENERGY_RISE 1e-4  /* of the kinetic energy in a step: more than that is a failure */
#define GROWTH_FLOOR 1e-5 /* growth of e counts as failure only above it */
#define JOINT_ITERATIONS 12
#define DEPTH_MOMENTUM 3 /* halvings of the energy-momentum step before anything else is tried */
#define DEPTH_MAX 6
#define ACTIVE_ROUNDS 16 /* changes of the active set in a step; the second half one row at a time */

typedef enum scheme { SCHEME_EULER, SCHEME_MOMENTUM, SCHEME_BDF2 } scheme;

/* One body in one step. Axes are the world's; `start` means the pose at the step's start. */
typedef struct body_work {
  real mass, mt;   /* kg; a0 b0 m/h^2 */
  sym3 J;          /* kg m^2: inertia at the start pose */
  vec3 v_h, w_h;   /* m/s, rad/s: history terms */
  dvec3 v_history; /* m/s: v_h before rounding */
  vec3 kp, kphi;   /* N, N m: constant parts of the equations */
  vec3 dp;         /* m: iterate */
  quat dq;         /* 1: iterate, R R_n^T */
  vec3 spin;       /* kg m^2/s: L of the iterate */
  vec3 step, turn; /* of the Newton iteration: dp, dphi */
} body_work;

/* Coefficients of the step at work. */
typedef struct step_work {
  scheme kind;
  double h, a0, b0, r; /* r: weight of the last step in the history terms of BDF2 */
  real a0h, b0h, k0;   /* a0/h, b0/h, a0 b0/h^2 */
  real gamma;
  int projection; /* 1: velocity projection with the mass matrix instead of a step */
} step_work;

typedef struct tree_work tree_work;
typedef struct joint_work joint_work;
typedef struct contact_work contact_work;
typedef struct block block;
typedef struct block_row block_row;

typedef struct core {
  const direct_island *island;
  direct_island *result;
  direct_body *bodies;
  direct_joint *joints;
  direct_body **at;      /* [bodies] state by local index */
  direct_body *fixed;    /* [bodies] moving copies of fixed bodies */
  body_work *body;       /* [bodies] */
  tree_work *tree;       /* [bodies] */
  joint_work *joint;     /* [joints] */
  contact_work *contact; /* [contacts] */
  block *blocks;         /* [blocks] */
  block_row *rhs;        /* [nodes] */
  int32_t *position;     /* [nodes] by node */
  int32_t *size;         /* [nodes] unknowns by position */
  step_work step;
  double time; /* s since the frame's start */
} core;

/* Inertia of one body at the iterate: L, the gradient's own part and the rotation block of the Newton matrix,
 * a0 b0/h^2 R I R_n^T (1 - [theta]/2 + theta theta^T/4) - b0/h [L]. */
static inline void body_evaluate(const step_work *s, body_work *b, vec3 *g1, vec3 *g2, mat3 *A22) {
  quat q = b->dq;
  vec3 theta = v3_scale(R(2) / q.w, quat_vec(q));
  vec3 w = v3_madd(b->w_h, s->a0h, theta);
  mat3 rot = quat_matrix(q), J = mat3_from_sym3(b->J);
  vec3 L = mat3_mul(rot, sym3_mul(b->J, w));
  b->spin = L;
  *g1 = v3_madd(b->kp, b->mt, b->dp);
  *g2 = v3_madd(b->kphi, s->b0h, L);
  vec3 half = v3_scale(R(0.5), theta);
  mat3 JB = mat3_sub(J, mat3_times_skew(J, half));
  JB = mat3_outer(JB, sym3_mul(b->J, half), half);
  mat3 A = mat3_product(rot, JB);
  vec3 l = v3_scale(s->b0h, L);
  A = mat3_scale(s->k0, A);
  A.x.y += l.z, A.x.z -= l.y, A.y.x -= l.z, A.y.z += l.x, A.z.x += l.y, A.z.y -= l.x;
  *A22 = A;
}

/* Velocities of the state; fixed bodies have prescribed ones. */
static dvec3 omega_of(const direct_body *d) {
  if (d->motion == PABD_KINEMATIC) return d->w;
  if (d->motion != PABD_DYNAMIC) return d3(0, 0, 0);
  dvec3 L = dq_unrotate(d->q, d->L);
  return dq_rotate(d->q, d3(L.x / d->inertia.x, L.y / d->inertia.y, L.z / d->inertia.z));
}
static dvec3 velocity_of(const direct_body *d) {
  return d->motion == PABD_STATIC ? d3(0, 0, 0) : d->v;
}

#include "direct_tree.h"

#include "direct_rows.h"

#include "direct_blocks.h"

/* ---- setting up a step
 * ------------------------------------------------------------------------------------------------------- */

static void step_coefficients(step_work *s, scheme kind, double h, double ratio) {
  s->kind = kind;
  s->h = h;
  s->a0 = kind == SCHEME_EULER ? 1.0 : kind == SCHEME_MOMENTUM ? 2.0 : (1.0 + 2.0 * ratio) / (1.0 + ratio);
  s->b0 = kind == SCHEME_BDF2 ? s->a0 : 1.0;
  s->r = kind == SCHEME_BDF2 ? ratio * ratio / (1.0 + ratio) : 0.0;
  s->a0h = (real)(s->a0 / h), s->b0h = (real)(s->b0 / h), s->k0 = (real)(s->a0 * s->b0 / (h * h));
  s->gamma = kind == SCHEME_MOMENTUM ? R(0.5) : R(1);
  s->projection = 0;
}

/* Constants of one dynamic body for the step, and its first iterate: the last step's motion extrapolated. */
static void body_begin(const step_work *s, body_work *b, const direct_body *d) {
  double h = s->h, m = d->mass;
  quat q = quat_from(d->q);
  b->mass = (real)m;
  /* Coefficients rounded one by one (2/h, 2m/h^2) would multiply the velocity by 1 + 1e-8 in every step, always to the
   * same side. So the equations use the rounded ones throughout: v' = m_h/b0 to the last digit for a free body. */
  b->mt = (real)(s->a0 * s->b0 * m / (h * h));
  double rate = (double)s->b0h, own = (double)b->mt / ((double)s->a0h * rate);
  b->J = sym3_rotate_diagonal(q, v3_from(d->inertia));
  /* the world angular velocity that belongs to L */
  dvec3 Lb = dq_unrotate(d->q, d->L);
  dvec3 w = dq_rotate(d->q, d3(Lb.x / d->inertia.x, Lb.y / d->inertia.y, Lb.z / d->inertia.z));
  dvec3 turn = d3(0, 0, 0);
  if (d->step_h > 0.0) turn = dq_rotate(d->q, d->turn);
  dvec3 v_h = d3(0, 0, 0), w_h = d3(0, 0, 0), m_h = d->v, L_h = d->L;
  if (s->kind == SCHEME_MOMENTUM) {
    v_h = d3_scale(-1.0, d->v), w_h = d3_scale(-1.0, w);
  } else if (s->kind == SCHEME_BDF2) {
    double ratio = h / d->step_h;
    v_h = d3_scale(-s->r / h, d->step), w_h = d3_scale(-s->r / h, turn);
    m_h = d3_sub(d3_scale(1.0 + ratio, d->v), d3_scale(s->r, d->v_prev));
    L_h = d3_sub(d3_scale(1.0 + ratio, d->L), d3_scale(s->r, d->L_prev));
  }
  b->v_h = v3_from(v_h), b->w_h = v3_from(w_h);
  b->v_history = v_h;
  dvec3 kp = d3_sub(d3_scale(own * rate, d3_sub(v_h, d3_scale(1.0 / s->b0, m_h))), d->force);
  b->kp = v3_from(kp);
  b->kphi = v3_from(d3_sub(d3_scale(-rate / s->b0, L_h), d->torque));
  /* first iterate: constant acceleration as over the last step, where there is one */
  dvec3 dp = d3_scale(h, d->v), dphi = d3_scale(h, w);
  if (d->step_h > 0.0) {
    double k = h / d->step_h;
    dp = d3_add(dp, d3_scale(k * k, d3_sub(d3_scale(d->step_h, d->v), d->step)));
    dphi = d3_add(dphi, d3_scale(k * k, d3_sub(d3_scale(d->step_h, w), turn)));
  }
  b->dp = v3_from(dp);
  b->dq = quat_normalize(quat_make(R(1), (real)(0.5 * dphi.x), (real)(0.5 * dphi.y), (real)(0.5 * dphi.z)));
}

/* Prescribed motion of a fixed body over the step. */
static void fixed_begin(double h, body_work *b, const direct_body *d) {
  memset(b, 0, sizeof *b);
  b->dq = quat_make(R(1), R(0), R(0), R(0));
  if (d->motion != PABD_KINEMATIC) return;
  b->dp = v3_from(d3_scale(h, d->v));
  b->dq = quat_exp(v3_from(d3_scale(h, d->w)));
}

static void step_begin(core *w) {
  const direct_island *island = w->island;
  for (int32_t i = 0; i < island->body_count; ++i) body_begin(&w->step, &w->body[i], w->at[i]);
  for (int32_t i = island->body_count; i < island->local_count; ++i) fixed_begin(w->step.h, &w->body[i], w->at[i]);
  if (island->is_tree)
    tree_begin(w);
  else
    rows_begin(w);
}

/* ---- Newton
 * --------------------------------------------------------------------------------------------------------------------
 */

/* Adds the solved step to the iterate; returns e. `cap` limits the rotation (rad). */
static real apply_step(core *w, real cap) {
  const direct_island *island = w->island;
  real largest = R(0), sum = R(0);
  for (int32_t i = 0; i < island->body_count; ++i) {
    real a = v3_norm2(w->body[i].turn);
    largest = real_max(largest, a);
    sum += a; /* a NaN stays in the sum */
  }
  if (!(sum < R(1e12))) return R(1e30);
  real scale = R(1);
  if (largest > cap * cap) scale = cap / real_sqrt(largest);
  for (int32_t i = 0; i < island->body_count; ++i) {
    body_work *b = &w->body[i];
    real k = R(0.5) * scale;
    vec3 t = v3_scale(k, b->turn);
    b->dp = v3_madd(b->dp, scale, b->step);
    b->dq = quat_normalize(quat_mul(quat_make(R(1), t.x, t.y, t.z), b->dq));
  }
  return R(0.5) * largest;
}

/* One converged solution of the step's equations for the present active set. 1: converged, 0: failed. */
static int newton(core *w) {
  const direct_island *island = w->island;
  int with_contacts = island->contact_count > 0;
  int limit = island->max_iterations;
  if (!with_contacts && limit > JOINT_ITERATIONS) limit = JOINT_ITERATIONS;
  real before = R(1e30);
  real cap = with_contacts ? R(0.2) : R(1e3);
  real tolerance = R(TOLERANCE);
  if (with_contacts && island->joint_count == 0) tolerance = R(CONTACT_TOLERANCE);
  if (with_contacts) contacts_evaluate(w, 0);
  for (int k = 0; k < limit; ++k) {
    w->result->counts.iterations += 1;
    if (island->is_tree)
      tree_solve(w);
    else
      rows_solve(w);
    real e = apply_step(w, cap);
    if (!(e < R(1e29))) return 0;
    int settled = !with_contacts || contacts_evaluate(w, k + 1);
    real slow = island->is_tree ? R(0) : R(PROXIMAL) * real_sqrt(R(2) * e);
    if (e + slow < tolerance && settled) return 1;
    if (!with_contacts && e > before && e > R(GROWTH_FLOOR)) return 0;
    before = e;
  }
  return 0;
}

/* Newton with the active set of the limits and the bounds of the motors. A set that does not settle is a failure: the
 * step is halved. */
static int solve(core *w) {
  if (!newton(w)) return 0;
  if (w->island->is_tree) return 1;
  for (int k = 0; k < ACTIVE_ROUNDS; ++k) {
    if (!rows_change_active(w, k >= ACTIVE_ROUNDS / 2)) return 1;
    if (!newton(w)) return 0;
  }
  return !rows_change_active(w, 0);
}

/* ---- taking the step
 * ----------------------------------------------------------------------------------------------------------------- */

static void commit(core *w, int converged) {
  const direct_island *island = w->island;
  const step_work *s = &w->step;
  if (island->is_tree)
    tree_commit(w);
  else
    rows_commit(w, converged);
  for (int32_t i = 0; i < island->body_count; ++i) {
    body_work *b = &w->body[i];
    direct_body *d = w->at[i];
    vec3 theta = v3_scale(R(2) / b->dq.w, quat_vec(b->dq));
    vec3 omega = v3_madd(b->w_h, s->a0h, theta);
    vec3 L = quat_rotate(b->dq, sym3_mul(b->J, omega));
    d->v_prev = d->v, d->L_prev = d->L;
    d->step = d3_from(b->dp);
    d->v = d3_add(b->v_history, d3_scale((double)s->a0h, d->step));
    d->L = d3_from(L);
    d->turn = dq_unrotate(d->q, d3_from(theta));
    d->step_h = s->h;
    d->p = d3_add(d->p, d->step);
    d->q = dq_normalize(dq_mul(dq_from(b->dq), d->q));
  }
  for (int32_t i = island->body_count; i < island->local_count; ++i) {
    direct_body *d = w->at[i];
    if (d->motion != PABD_KINEMATIC) continue;
    d->p = d3_add(d->p, d3_scale(s->h, d->v));
    d->q = dq_normalize(dq_mul(dq_from(w->body[i].dq), d->q));
  }
  w->time += s->h;
}

/* Velocities onto the tangent of the joints (and of active limits) at the present pose, by the smallest impulse:
 * removes energy, never adds any. Used after a limit was hit and when an island comes back from a dissipative step. */
static void project_velocities(core *w) {
  const direct_island *island = w->island;
  if (island->joint_count == 0) return;
  step_coefficients(&w->step, SCHEME_EULER, 1.0, 1.0);
  step_begin(w);
  w->step.projection = 1;
  for (int32_t i = 0; i < island->local_count; ++i) {
    w->body[i].dp = v3_zero();
    w->body[i].dq = quat_make(R(1), R(0), R(0), R(0));
  }
  if (island->is_tree) {
    tree_solve(w);
  } else {
    for (int k = 0; k < ACTIVE_ROUNDS; ++k) { /* a limit pushes, it does not pull */
      rows_solve(w);
      if (!rows_release_pulling(w)) break;
    }
  }
  for (int32_t i = 0; i < island->body_count; ++i) {
    const body_work *b = &w->body[i];
    direct_body *d = w->at[i];
    d->v = d3_add(d->v, d3_from(b->step));
    d->L = d3_add(d->L, d3_from(sym3_mul(b->J, b->turn)));
    d->step_h = 0.0;
  }
}

/* Rise of the kinetic energy over the step, less the work of loads, springs and motors, over the sum of both kinetic
 * energies (and that of a creep of 1 cm/s, below which rounding has its say). Joints and hits do no positive work, so a
 * converged step with a rise has converged to a wrong solution, or its history terms feed energy. `kept`: the share of
 * the new kinetic energy that is accounted for. */
static double energy_rise(core *w, double *kept) {
  const direct_island *island = w->island;
  const step_work *s = &w->step;
  double before = 0.0, after = 0.0, floor = 0.0, work = island->is_tree ? 0.0 : rows_work(w);
  for (int32_t i = 0; i < island->body_count; ++i) {
    const body_work *b = &w->body[i];
    const direct_body *d = w->at[i];
    vec3 theta = v3_scale(R(2) / b->dq.w, quat_vec(b->dq));
    vec3 v = v3_madd(b->v_h, s->a0h, b->dp), omega = v3_madd(b->w_h, s->a0h, theta); /* at the start pose, as J */
    before += 0.5 * d->mass * d3_dot(d->v, d->v) + 0.5 * d3_dot(omega_of(d), d->L);
    after += 0.5 * d->mass * (double)v3_norm2(v) + 0.5 * (double)v3_dot(omega, sym3_mul(b->J, omega));
    work += d3_dot(d->force, d3_from(b->dp)) + d3_dot(d->torque, d3_from(theta));
    floor += 0.5e-4 * d->mass;
  }
  if (kept) *kept = after > 0.0 ? fmin(1.0, fmax(0.0, before + work) / after) : 1.0;
  return (after - before - work) / (before + after + floor);
}

static int try_scheme(core *w, scheme kind, double h) {
  const direct_island *island = w->island;
  double ratio = 1.0;
  if (kind == SCHEME_BDF2) {
    double last = w->at[0]->step_h;
    if (island->body_count == 0 || !(h <= BDF2_RATIO * last))
      kind = SCHEME_EULER; /* no step before, or one so short that the history terms would feed energy */
    else
      ratio = h / last;
  }
  step_coefficients(&w->step, kind, h, ratio);
  step_begin(w);
  /* trees of balls keep energy by construction; anything else is checked, and so is what is left when it fails */
  if (solve(w) &&
      (island->contact_count > 0 || (island->is_tree && kind == SCHEME_MOMENTUM) || energy_rise(w, NULL) < ENERGY_RISE))
    return 1;
  w->result->counts.failures += 1;
  return 0;
}

/* What an unconverged step gained, or one beside contacts (whose overlap is pushed out), is taken away; velocities that
 * fit the joints still do so. */
static void scale_velocities(core *w, double factor) {
  w->result->counts.limited += 1;
  for (int32_t i = 0; i < w->island->body_count; ++i) {
    direct_body *d = w->at[i];
    d->v = d3_scale(factor, d->v), d->L = d3_scale(factor, d->L);
  }
}

/* The fallback ladder: energy-momentum, its halves; then BDF2; then Euler and its halves; at the bottom the last
 * iterate is taken. */
static void advance(core *w, scheme kind, double h, int depth) {
  const direct_island *island = w->island;
  if (island->contact_count > 0) { /* an unconverged iterate is taken; its contact multipliers are not */
    int solved = try_scheme(w, SCHEME_EULER, h);
    double kept = 1.0;
    if (!solved) {
      if (depth < (island->joint_count > 0 ? DEPTH_MAX : 2)) {
        w->result->counts.halvings += 1;
        advance(w, kind, 0.5 * h, depth + 1);
        advance(w, kind, 0.5 * h, depth + 1);
        return;
      }
      w->result->counts.exhausted += 1;
    }
    if (island->joint_count > 0 && energy_rise(w, &kept) < ENERGY_RISE) kept = 1.0;
    commit(w, solved);
    if (kept < 1.0) scale_velocities(w, sqrt(kept));
    return;
  }
  int done = try_scheme(w, kind, h);
  if (!done && kind == SCHEME_MOMENTUM && depth < DEPTH_MOMENTUM) {
    w->result->counts.halvings += 1;
    advance(w, kind, 0.5 * h, depth + 1);
    advance(w, kind, 0.5 * h, depth + 1);
    return;
  }
  if (!done && kind != SCHEME_BDF2 && w->at[0]->step_h > 0.0) {
    w->result->counts.bdf2 += 1;
    done = try_scheme(w, SCHEME_BDF2, h);
  }
  if (!done && kind != SCHEME_EULER) {
    w->result->counts.euler += 1;
    done = try_scheme(w, SCHEME_EULER, h);
  }
  if (!done && depth < DEPTH_MAX) {
    w->result->counts.halvings += 1;
    advance(w, kind, 0.5 * h, depth + 1);
    advance(w, kind, 0.5 * h, depth + 1);
    return;
  }
  double kept = 1.0;
  if (!done) {
    w->result->counts.exhausted += 1;
    energy_rise(w, &kept);
  }
  commit(w, done);
  if (kept < 1.0) scale_velocities(w, sqrt(kept));
  if (!island->is_tree && rows_hit(w)) project_velocities(w);
}

/* ---- one frame
 * ----------------------------------------------------------------------------------------------------------------------
 */

static size_t carve(core *w, char *memory, const direct_capacity *c) {
  size_t used = 0;
#define CARVE(field, count)                                                    \
  do {                                                                         \
    if (w) w->field = (void *)(memory + used);                                 \
    used += (sizeof *((core *)0)->field * (size_t)(count) + 63) & ~(size_t)63; \
  } while (0)
  CARVE(blocks, c->blocks);
  CARVE(rhs, c->nodes);
  CARVE(body, c->bodies);
  CARVE(tree, c->bodies);
  CARVE(joint, c->joints);
  CARVE(contact, c->contacts);
  CARVE(at, c->bodies);
  CARVE(fixed, c->bodies);
  CARVE(position, c->nodes);
  CARVE(size, c->nodes);
#undef CARVE
  return used;
}

size_t DIRECT_NAME(direct_core_bytes)(const direct_capacity *capacity) {
  return carve(NULL, NULL, capacity);
}

void DIRECT_NAME(direct_core_step)(void *memory, const direct_capacity *capacity, direct_island *island,
                                   direct_body *bodies, direct_joint *joints) {
  core w;
  memset(&w, 0, sizeof w);
  carve(&w, memory, capacity);
  w.island = island, w.result = island, w.bodies = bodies, w.joints = joints;
  for (int32_t i = 0; i < island->local_count; ++i) {
    int32_t body = island->body[i];
    if (i < island->body_count) {
      w.at[i] = &bodies[body];
      continue;
    }
    direct_body *d = &w.fixed[i - island->body_count];
    if (body >= 0) {
      *d = bodies[body];
    } else {
      memset(d, 0, sizeof *d);
      d->motion = PABD_STATIC;
      d->q.w = 1.0;
    }
    w.at[i] = d;
  }
  if (!island->is_tree) rows_attach(&w);
  double h = island->h_frame / island->substeps;
  int with_contacts = island->contact_count > 0;
  scheme kind = SCHEME_EULER;
  if (!with_contacts) {
    if (island->integrator == PABD_INTEGRATOR_AUTO || island->integrator == PABD_INTEGRATOR_ENERGY_MOMENTUM)
      kind = SCHEME_MOMENTUM;
    if (island->integrator == PABD_INTEGRATOR_BDF2) kind = SCHEME_BDF2;
  }
  /* after a dissipative step the velocities do not lie in the joints' tangent: the energy-momentum step would keep that
   * for ever */
  int fresh = 0;
  for (int32_t i = 0; i < island->body_count; ++i) fresh |= !(w.at[i]->step_h > 0.0);
  if (fresh && kind != SCHEME_EULER) project_velocities(&w);
  for (int32_t k = 0; k < island->substeps; ++k) advance(&w, kind, h, 0);
  if (with_contacts)
    for (int32_t i = 0; i < island->body_count; ++i) w.at[i]->step_h = 0.0;
}
