/* Ball-joint trees: the fast path, one 3x3 inverse a body and Newton iteration.
 *
 * Written at the joint point, y = J_e d = dp + dphi x arm, a body's block is A~ = T_f^-T A T_e^-1 and the hard joint
 * leaves dlambda = S y + s,   S = A~11 - A~12 A~22^-1 A~21,   s = g~1 - A~12 A~22^-1 g~2,   y = J_ep d_p - C, so the
 * parent gets A_p += J_fp^T S J_ep and g_p += J_fp^T (s - S C). Same equations as the general elimination
 * (direct_blocks.h), which the tests hold it against. Bodies come children first. */

/* A body and the joint to its parent. */
struct tree_work {
  int32_t parent; /* local; -1: no joint (free root) */
  int32_t fixed;  /* 1: the parent is a fixed body */
  real sign;      /* +1: the body is b of the scene's joint */
  vec3 xc0, xp0;  /* m: arms at the start of the step */
  vec3 c0;        /* m: joint error at the start */
  vec3 force;     /* N: joint force on the body */
  vec3 force_start;
  mat3 A11, A12, A21, A22;
  vec3 g1, g2;
  mat3 G, S;   /* A~22^-1 A~21; see above */
  vec3 t, s;   /* A~22^-1 g~2; see above */
  vec3 c;      /* m: joint error of the iterate */
  vec3 xc, xp; /* m: arms at the iterate */
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
    t->force = v3_scale(t->sign, v3((real)j->lambda[0], (real)j->lambda[1], (real)j->lambda[2]));
  }
}

static void tree_solve(core *w) {
  const direct_island *island = w->island;
  const step_work *step = &w->step;
  int32_t n = island->body_count;
  real gamma = step->gamma;
  for (int32_t i = 0; i < n; ++i) {
    tree_work *t = &w->tree[i];
    if (!step->projection) {
      body_evaluate(step, &w->body[i], &t->g1, &t->g2, &t->A22);
      t->A11 = mat3_diagonal(w->body[i].mt);
    } else {
      t->g1 = t->g2 = v3_zero();
      t->A11 = mat3_diagonal(w->body[i].mass);
      t->A22 = mat3_from_sym3(w->body[i].J);
    }
    t->A12 = t->A21 = mat3_zero();
  }
  for (int32_t i = 0; i < n; ++i) {
    tree_work *t = &w->tree[i];
    const body_work *b = &w->body[i];
    vec3 xc = v3_zero(), xcf = v3_zero(), xp = v3_zero(), xpf = v3_zero();
    mat3 A22 = t->A22;
    vec3 g1 = t->g1, g2 = t->g2;
    if (t->parent >= 0) {
      const body_work *pb = &w->body[t->parent];
      vec3 turn_c = quat_turn(b->dq, t->xc0), turn_p = quat_turn(pb->dq, t->xp0);
      xc = v3_add(t->xc0, turn_c), xp = v3_add(t->xp0, turn_p);
      xcf = v3_madd(t->xc0, gamma, turn_c), xpf = v3_madd(t->xp0, gamma, turn_p);
      if (step->projection) {
        const direct_body *c = w->at[i], *p = w->at[t->parent];
        dvec3 Lb = dq_unrotate(c->q, c->L), wc, wp = p->w;
        wc = dq_rotate(c->q, d3(Lb.x / c->inertia.x, Lb.y / c->inertia.y, Lb.z / c->inertia.z));
        if (!t->fixed) {
          Lb = dq_unrotate(p->q, p->L);
          wp = dq_rotate(p->q, d3(Lb.x / p->inertia.x, Lb.y / p->inertia.y, Lb.z / p->inertia.z));
        }
        dvec3 rate = d3_sub(d3_add(c->v, d3_cross(wc, d3_from(xc))), d3_add(p->v, d3_cross(wp, d3_from(xp))));
        t->c = v3_from(rate);
      } else {
        t->c = v3_add(t->c0, v3_add(v3_sub(b->dp, pb->dp), v3_sub(turn_c, turn_p)));
        vec3 f = t->force;
        g1 = v3_sub(g1, f);
        g2 = v3_sub(g2, v3_cross(xcf, f));
        A22 = mat3_add(A22, mat3_geometric(gamma, f, xc));
      }
      t->xc = xc, t->xp = xp;
    }
    /* at the joint point */
    mat3 B = mat3_add(t->A12, mat3_times_skew(t->A11, xc));
    mat3 C = mat3_sub(t->A21, skew_times(xcf, t->A11));
    mat3 D = mat3_sub(mat3_add(A22, mat3_times_skew(t->A21, xc)), skew_times(xcf, B));
    mat3 inv = mat3_inverse(D);
    vec3 g2t = v3_sub(g2, v3_cross(xcf, g1));
    t->G = mat3_product(inv, C);
    t->t = mat3_mul(inv, g2t);
    t->S = mat3_sub(t->A11, mat3_product(B, t->G));
    t->s = v3_sub(g1, mat3_mul(B, t->t));
    if (t->parent < 0 || t->fixed) continue;
    tree_work *p = &w->tree[t->parent];
    vec3 load = v3_sub(t->s, mat3_mul(t->S, t->c));
    mat3 SX = mat3_times_skew(t->S, xp);
    p->A11 = mat3_add(p->A11, t->S);
    p->A12 = mat3_sub(p->A12, SX);
    p->A21 = mat3_add(p->A21, skew_times(xpf, t->S));
    p->A22 = mat3_sub(p->A22, skew_times(xpf, SX));
    if (!step->projection) {
      load = v3_add(load, t->force);
      p->A22 = mat3_sub(p->A22, mat3_geometric(gamma, t->force, xp));
    }
    p->g1 = v3_add(p->g1, load);
    p->g2 = v3_add(p->g2, v3_cross(xpf, load));
  }
  for (int32_t i = n - 1; i >= 0; --i) {
    tree_work *t = &w->tree[i];
    body_work *b = &w->body[i];
    vec3 y;
    if (t->parent < 0) { /* free root: its translation is an unknown of its own */
      y = v3_neg(mat3_mul(mat3_inverse(t->S), t->s));
    } else {
      y = v3_neg(t->c);
      if (!t->fixed) {
        const body_work *p = &w->body[t->parent];
        y = v3_add(y, v3_add(p->step, v3_cross(p->turn, t->xp)));
      }
      t->force = v3_add(t->force, v3_add(mat3_mul(t->S, y), t->s));
    }
    b->turn = v3_neg(v3_add(t->t, mat3_mul(t->G, y)));
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
    j->lambda[0] = (double)f.x, j->lambda[1] = (double)f.y, j->lambda[2] = (double)f.z;
    vec3 residual = t->c; /* before the last Newton step: an upper bound of what is left */
    (void)residual;
  }
}
