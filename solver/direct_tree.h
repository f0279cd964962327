/* Ball-joint trees: the fast path, one 3x3 elimination a body and Newton iteration.
 *
 * Written at the joint point, y = J_e d = dp + dphi x arm, a body's block is A~ = T_f^-T A T_e^-1 and the hard joint
 * leaves lambda = S y + s,   S = A~11 - A~12 A~22^-1 A~21,   s = g~1 - A~12 A~22^-1 g~2,   y = J_ep d_p - C, so the
 * parent gets A_p += J_fp^T S J_ep and g_p += J_fp^T (s - S C). Same equations as the general elimination
 * (direct_blocks.h), which the tests hold it against. Bodies come children first. A~22 mixes the masses of a whole
 * chain: it is eliminated row by row, for an inverse by cofactors loses all digits in single precision from a ratio of
 * 2000 on.
 *
 * The force itself drops out of the right side (it has no moment about the joint point); it enters by its geometric
 * stiffness alone.
 *
 * Rows of 3x3 matrices are short vectors whose fourth element carries the right side along. */

typedef real lane4 __attribute__((vector_size(4 * sizeof(real))));
#define LANES(v, a, b, c, d) __builtin_shufflevector(v, v, a, b, c, d)

static inline lane4 lane4_of(vec3 a) {
  return (lane4){a.x, a.y, a.z, R(0)};
}
static inline vec3 lane4_vec3(lane4 a) {
  return v3(a[0], a[1], a[2]);
}
static inline lane4 lane4_cross(lane4 a, lane4 b) { /* fourth: 0 */
  lane4 c = a * LANES(b, 1, 2, 0, 3) - LANES(a, 1, 2, 0, 3) * b;
  return LANES(c, 1, 2, 0, 3);
}
/* Columns of a right side beside a matrix: the fourth element of each row. */
typedef struct rows3 {
  lane4 r[3];
} rows3;
static inline rows3 rows3_zero(void) {
  return (rows3){{{0}, {0}, {0}}};
}
static inline void rows3_add(rows3 *a, const rows3 *b) {
  for (int k = 0; k < 3; ++k) a->r[k] += b->r[k];
}
static inline void rows3_subtract(rows3 *a, const rows3 *b) {
  for (int k = 0; k < 3; ++k) a->r[k] -= b->r[k];
}
/* m [x], right side dropped */
static inline rows3 rows3_times_skew(const rows3 *m, lane4 x) {
  rows3 out;
  lane4 x1 = LANES(x, 1, 2, 0, 3);
  for (int k = 0; k < 3; ++k) {
    lane4 c = m->r[k] * x1 - LANES(m->r[k], 1, 2, 0, 3) * x;
    c[3] = R(0);
    out.r[k] = LANES(c, 1, 2, 0, 3);
  }
  return out;
}
/* [x] m, right side included */
static inline rows3 skew_times_rows3(vec3 x, const rows3 *m) {
  rows3 out;
  out.r[0] = x.y * m->r[2] - x.z * m->r[1];
  out.r[1] = x.z * m->r[0] - x.x * m->r[2];
  out.r[2] = x.x * m->r[1] - x.y * m->r[0];
  return out;
}
/* a m, right side of m included */
static inline rows3 rows3_product(const rows3 *a, const rows3 *m) {
  rows3 out;
  for (int k = 0; k < 3; ++k) out.r[k] = a->r[k][0] * m->r[0] + a->r[k][1] * m->r[1] + a->r[k][2] * m->r[2];
  return out;
}
/* m <- d^-1 m, right side included; pivots in order */
static inline void rows3_solve(const rows3 *d, rows3 *m) {
  real p0 = R(1) / d->r[0][0];
  real l1 = d->r[1][0] * p0, l2 = d->r[2][0] * p0;
  lane4 d1 = d->r[1] - l1 * d->r[0], d2 = d->r[2] - l2 * d->r[0];
  lane4 m1 = m->r[1] - l1 * m->r[0], m2 = m->r[2] - l2 * m->r[0];
  real p1 = R(1) / d1[1], l3 = d2[1] * p1;
  d2 -= l3 * d1, m2 -= l3 * m1;
  m->r[2] = m2 * (R(1) / d2[2]);
  m->r[1] = (m1 - d1[2] * m->r[2]) * p1;
  m->r[0] = (m->r[0] - d->r[0][1] * m->r[1] - d->r[0][2] * m->r[2]) * p0;
}
/* m (x, 1), or m (x, 0) where x[3] is 0 */
static inline vec3 rows3_apply(const rows3 *m, lane4 x) {
  vec3 out;
  lane4 a = m->r[0] * x, b = m->r[1] * x, c = m->r[2] * x;
  out.x = (a[0] + a[1]) + (a[2] + a[3]);
  out.y = (b[0] + b[1]) + (b[2] + b[3]);
  out.z = (c[0] + c[1]) + (c[2] + c[3]);
  return out;
}
/* m += s ((f . x) 1 - x f^T) */
static inline void rows3_geometric(rows3 *m, real s, vec3 f, vec3 x) {
  real d = s * v3_dot(f, x);
  lane4 g = lane4_of(v3_scale(-s, f));
  m->r[0] += x.x * g, m->r[1] += x.y * g, m->r[2] += x.z * g;
  m->r[0][0] += d, m->r[1][1] += d, m->r[2][2] += d;
}
static inline rows3 rows3_from(mat3 m) {
  return (rows3){{lane4_of(m.x), lane4_of(m.y), lane4_of(m.z)}};
}

/* A body and the joint to its parent. */
struct tree_work {
  int32_t parent;         /* local; -1: no joint (free root) */
  int32_t fixed;          /* 1: the parent is a fixed body */
  real sign;              /* +1: the body is b of the scene's joint */
  vec3 xc0, xp0;          /* m: arms at the start of the step */
  vec3 c0;                /* m: joint error at the start */
  vec3 force;             /* N: joint force on the body */
  rows3 A1, A12, A2, A22; /* A11 with g1, A12, A21 with g2, A22 */
  rows3 G, S;             /* A~22^-1 A~21 with A~22^-1 g~2; S with s */
  vec3 c;                 /* m: joint error of the iterate */
  vec3 xc, xp;            /* m: arms at the iterate */
};

static void tree_begin(core *w) {
  const direct_island *island = w->island;
  for (int32_t i = 0; i < island->body_count; ++i) {
    tree_work *t = &w->tree[i];
    t->parent = island->tree_parent[i];
    if (t->parent < 0) continue;
    t->fixed = t->parent >= island->body_count;
    const direct_joint *j = &w->joints[island->joint[island->tree_joint[i]]];
    int is_b = j->body_b == island->body[i];
    t->sign = is_b ? R(1) : R(-1);
    const direct_body *c = w->at[i], *p = w->at[t->parent];
    dvec3 xc = dq_rotate(c->q, is_b ? j->anchor_b : j->anchor_a),
          xp = dq_rotate(p->q, is_b ? j->anchor_a : j->anchor_b);
    t->xc0 = v3_from(xc), t->xp0 = v3_from(xp);
    t->c0 = v3_from(d3_add(d3_sub(c->p, p->p), d3_sub(xc, xp)));
    t->force = v3_scale(t->sign, v3((real)j->state.lambda[0], (real)j->state.lambda[1], (real)j->state.lambda[2]));
  }
}

/* Relative velocity of the joint point: what the velocity projection takes away. */
static vec3 tree_rate(const core *w, const tree_work *t, int32_t i, vec3 xc, vec3 xp) {
  const direct_body *c = w->at[i], *p = w->at[t->parent];
  dvec3 vc = d3_add(c->v, d3_cross(omega_of(c), d3_from(xc))),
        vp = d3_add(velocity_of(p), d3_cross(omega_of(p), d3_from(xp)));
  return v3_from(d3_sub(vc, vp));
}

static void tree_solve(core *w) {
  const direct_island *island = w->island;
  const step_work *step = &w->step;
  int32_t n = island->body_count;
  real gamma = step->gamma;
  for (int32_t i = 0; i < n; ++i) {
    tree_work *t = &w->tree[i];
    vec3 g1 = v3_zero(), g2 = v3_zero();
    mat3 A22;
    real mass = w->body[i].mt;
    if (step->projection)
      A22 = mat3_from_sym3(w->body[i].J), mass = w->body[i].mass;
    else
      body_evaluate(step, &w->body[i], &g1, &g2, &A22);
    t->A1.r[0] = (lane4){mass, R(0), R(0), g1.x};
    t->A1.r[1] = (lane4){R(0), mass, R(0), g1.y};
    t->A1.r[2] = (lane4){R(0), R(0), mass, g1.z};
    t->A2.r[0] = (lane4){R(0), R(0), R(0), g2.x};
    t->A2.r[1] = (lane4){R(0), R(0), R(0), g2.y};
    t->A2.r[2] = (lane4){R(0), R(0), R(0), g2.z};
    t->A12 = rows3_zero();
    t->A22 = rows3_from(A22);
  }
  for (int32_t i = 0; i < n; ++i) {
    tree_work *t = &w->tree[i];
    const body_work *b = &w->body[i];
    if (t->parent < 0) { /* free root: its translation is an unknown of its own */
      t->G = t->A2;
      rows3_solve(&t->A22, &t->G);
      t->S = t->A1;
      rows3 BG = rows3_product(&t->A12, &t->G);
      rows3_subtract(&t->S, &BG);
      continue;
    }
    const body_work *pb = &w->body[t->parent];
    vec3 turn_c = quat_turn(b->dq, t->xc0), turn_p = quat_turn(pb->dq, t->xp0);
    vec3 xc = v3_add(t->xc0, turn_c), xp = v3_add(t->xp0, turn_p);
    vec3 xcf = v3_madd(t->xc0, gamma, turn_c), xpf = v3_madd(t->xp0, gamma, turn_p);
    t->xc = xc, t->xp = xp;
    rows3 A1 = t->A1, D = t->A22;
    if (step->projection) {
      t->c = tree_rate(w, t, i, xc, xp);
    } else {
      t->c = v3_add(t->c0, v3_add(v3_sub(b->dp, pb->dp), v3_sub(turn_c, turn_p)));
      rows3_geometric(&D, gamma, t->force, xc);
    }
    /* at the joint point */
    lane4 x = lane4_of(xc);
    rows3 B = rows3_times_skew(&A1, x);
    rows3_add(&B, &t->A12);
    rows3 shift = skew_times_rows3(xcf, &A1);
    t->G = t->A2;
    rows3_subtract(&t->G, &shift);
    rows3 AX = rows3_times_skew(&t->A2, x), XB = skew_times_rows3(xcf, &B);
    rows3_add(&D, &AX);
    rows3_subtract(&D, &XB);
    rows3_solve(&D, &t->G);
    rows3 BG = rows3_product(&B, &t->G);
    t->S = A1;
    rows3_subtract(&t->S, &BG);
    if (t->fixed) continue;
    tree_work *p = &w->tree[t->parent];
    /* right side: load on the parent in place of s */
    rows3 S = t->S;
    vec3 load = rows3_apply(&S, (lane4){-t->c.x, -t->c.y, -t->c.z, R(1)});
    if (!step->projection) rows3_geometric(&p->A22, -gamma, t->force, xp);
    S.r[0][3] = load.x, S.r[1][3] = load.y, S.r[2][3] = load.z;
    rows3 SX = rows3_times_skew(&S, lane4_of(xp)), XS = skew_times_rows3(xpf, &S), XSX = skew_times_rows3(xpf, &SX);
    rows3_add(&p->A1, &S);
    rows3_subtract(&p->A12, &SX);
    rows3_add(&p->A2, &XS);
    rows3_subtract(&p->A22, &XSX);
  }
  for (int32_t i = n - 1; i >= 0; --i) {
    tree_work *t = &w->tree[i];
    body_work *b = &w->body[i];
    vec3 y;
    if (t->parent < 0) {
      rows3 S = t->S, Y = t->S;
      rows3_solve(&S, &Y);
      y = v3(-Y.r[0][3], -Y.r[1][3], -Y.r[2][3]);
    } else {
      y = v3_neg(t->c);
      if (!t->fixed) {
        const body_work *p = &w->body[t->parent];
        y = v3_add(y, v3_add(p->step, v3_cross(p->turn, t->xp)));
      }
      t->force = rows3_apply(&t->S, (lane4){y.x, y.y, y.z, R(1)});
    }
    b->turn = v3_neg(rows3_apply(&t->G, (lane4){y.x, y.y, y.z, R(1)}));
    b->step = t->parent < 0 ? y : v3_sub(y, v3_cross(b->turn, t->xc));
  }
}

static void tree_commit(core *w) {
  const direct_island *island = w->island;
  for (int32_t i = 0; i < island->body_count; ++i) {
    const tree_work *t = &w->tree[i];
    if (t->parent < 0) continue;
    direct_joint *j = &w->joints[island->joint[island->tree_joint[i]]];
    vec3 f = v3_scale(t->sign, t->force);
    j->state.lambda[0] = (double)f.x, j->state.lambda[1] = (double)f.y, j->state.lambda[2] = (double)f.z;
  }
}
