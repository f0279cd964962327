/* The Newton matrix of an island with any joints and contacts, and its elimination block by block.
 *
 *   [ A   -J_f^T ] [ d       ]     [ g ]
 *   [ J_e   D    ] [ dlambda ] = - [ r ]
 *
 * Nodes are bodies (6 unknowns) and joints (their rows). Values are not symmetric, the pattern is. Blocks have rows of
 * 8 numbers, one or two vector registers, unused ones 0. Order and fill come from direct_order.c: bodies before the
 * joints that need them, minimum degree; on trees without contacts that is the leaf-to-root elimination. Diagonal
 * blocks are inverted, without pivoting between nodes. */

typedef real vrow __attribute__((vector_size(DIRECT_ROWS * sizeof(real))));
struct block {
  vrow r[DIRECT_ROWS];
};
struct block_row {
  vrow r; /* right side, then solution of one node */
};

/* -- access: block of rows of node x and columns of node y */
static inline block *diagonal(const core *w, int32_t node) {
  return &w->blocks[w->position[node]];
}
static inline block *off_diagonal(const core *w, int32_t x, int32_t y, int32_t edge) {
  int32_t upper = w->position[x] < w->position[y];
  return &w->blocks[w->island->order.node_count + 2 * edge + (upper ? 0 : 1)];
}
static inline void block_add(block *m, int row, int column, mat3 a) {
  m->r[3 * row + 0][3 * column + 0] += a.x.x, m->r[3 * row + 0][3 * column + 1] += a.x.y,
      m->r[3 * row + 0][3 * column + 2] += a.x.z;
  m->r[3 * row + 1][3 * column + 0] += a.y.x, m->r[3 * row + 1][3 * column + 1] += a.y.y,
      m->r[3 * row + 1][3 * column + 2] += a.y.z;
  m->r[3 * row + 2][3 * column + 0] += a.z.x, m->r[3 * row + 2][3 * column + 1] += a.z.y,
      m->r[3 * row + 2][3 * column + 2] += a.z.z;
}
static inline void rhs_add(block_row *b, real s, vec3 g1, vec3 g2) {
  b->r[0] += s * g1.x, b->r[1] += s * g1.y, b->r[2] += s * g1.z;
  b->r[3] += s * g2.x, b->r[4] += s * g2.y, b->r[5] += s * g2.z;
}

/* -- assembly */
static void stamp_bodies(core *w) {
  const direct_island *island = w->island;
  for (int32_t i = 0; i < island->body_count; ++i) {
    block *m = diagonal(w, i);
    block_row *b = &w->rhs[w->position[i]];
    vec3 g1 = v3_zero(), g2 = v3_zero();
    mat3 A22;
    real mass = w->body[i].mt;
    if (w->step.projection) {
      A22 = mat3_from_sym3(w->body[i].J);
      mass = w->body[i].mass;
    } else {
      body_evaluate(&w->step, &w->body[i], &g1, &g2, &A22);
    }
    m->r[0][0] = m->r[1][1] = m->r[2][2] = mass;
    block_add(m, 1, 1, A22);
    rhs_add(b, R(-1), g1, g2);
  }
}

static real row_mobility(const body_work *b, sym3 inverse, vec3 j1, vec3 j2) {
  return v3_norm2(j1) / b->mass + v3_dot(j2, sym3_mul(inverse, j2));
}

static void stamp_joint(core *w, int32_t k) {
  const direct_island *island = w->island;
  joint_work *t = &w->joint[k];
  const direct_joint *j = &w->joints[island->joint[k]];
  joint_stamp stamp;
  joint_evaluate(w, t, &stamp);
  int32_t node = island->body_count + k;
  const int32_t *edge = &island->order.joint_edge[3 * k];
  block *diag = diagonal(w, node);
  block_row *rhs = &w->rhs[w->position[node]];
  int projection = w->step.projection;
  int dynamic[2] = {t->a < island->body_count, t->b < island->body_count};
  int32_t local[2] = {t->a, t->b};
  int loose = island->order.cut[k];
  /* a motor against a limit of the same coordinate: one of the two rows is redundant */
  int limit_on = 0;
  for (int r = 0; r < j->row_count; ++r) limit_on |= j->role[r] == DIRECT_LIMIT && t->row[r].state == ROW_ON;
  int need_mobility = loose || limit_on;
  sym3 inverse[2];
  for (int side = 0; side < 2; ++side)
    if (need_mobility && dynamic[side]) inverse[side] = sym3_inverse(w->body[local[side]].J);
  int on[DIRECT_ROWS];
  for (int r = 0; r < j->row_count; ++r) {
    const row_work *row = &t->row[r];
    on[r] = row->state == ROW_ON;
    if (projection) on[r] = on[r] && (j->role[r] == DIRECT_HARD || j->role[r] == DIRECT_LIMIT);
    if (!on[r]) {
      diag->r[r][r] = R(1);
      continue;
    }
    real residual = row->c - row->reference;
    if (projection) {
      residual = R(0);
      for (int side = 0; side < 2; ++side) {
        const direct_body *d = w->at[local[side]];
        residual +=
            v3_dot(stamp.e1[r][side], v3_from(velocity_of(d))) + v3_dot(stamp.e2[r][side], v3_from(omega_of(d)));
      }
    } else if (j->role[r] == DIRECT_SPRING) {
      diag->r[r][r] = row->compliance;
      residual += row->offset + row->lambda * row->compliance;
    }
    if ((loose && j->role[r] != DIRECT_SPRING) || (limit_on && j->role[r] == DIRECT_MOTOR)) {
      real mobility = R(0);
      for (int side = 0; side < 2; ++side)
        if (dynamic[side])
          mobility += row_mobility(&w->body[local[side]], inverse[side], stamp.e1[r][side], stamp.e2[r][side]);
      diag->r[r][r] = R(PROXIMAL) * mobility * (projection ? R(1) : R(1) / w->step.k0);
    }
    rhs->r[r] = -residual;
  }
  for (int side = 0; side < 2; ++side) {
    if (!dynamic[side]) continue;
    int32_t body = local[side];
    block *je = off_diagonal(w, node, body, edge[side]), *jf = off_diagonal(w, body, node, edge[side]);
    vec3 g1 = v3_zero(), g2 = v3_zero();
    for (int r = 0; r < j->row_count; ++r) {
      vec3 e1 = stamp.e1[r][side], e2 = stamp.e2[r][side], f1 = stamp.f1[r][side], f2 = stamp.f2[r][side];
      real lambda = t->row[r].lambda;
      g1 = v3_madd(g1, lambda, f1), g2 = v3_madd(g2, lambda, f2);
      if (!on[r]) continue;
      je->r[r] = (vrow){e1.x, e1.y, e1.z, e2.x, e2.y, e2.z, R(0), R(0)};
      jf->r[0][r] = -f1.x, jf->r[1][r] = -f1.y, jf->r[2][r] = -f1.z;
      jf->r[3][r] = -f2.x, jf->r[4][r] = -f2.y, jf->r[5][r] = -f2.z;
    }
    if (projection) continue;
    rhs_add(&w->rhs[w->position[body]], R(1), g1, g2);
    for (int other = 0; other < 2; ++other) {
      if (!dynamic[other] || (other != side && !j->coupled)) continue;
      block *m = other == side ? diagonal(w, body) : off_diagonal(w, body, local[other], edge[2]);
      for (int p = 0; p < 2; ++p)
        for (int q = 0; q < 2; ++q) block_add(m, p, q, stamp.k[side][p][other][q]);
    }
  }
}

/* K and its moments about both centers: diagonal blocks J^T K J of a and b, and the block between them. */
static void stamp_contacts(core *w) {
  const direct_island *island = w->island;
  for (int32_t k = 0; k < island->contact_count;) {
    const contact_work *first = &w->contact[k];
    int32_t pair = island->contact[k].pair, a = first->a, b = first->b;
    int dynamic_a = a < island->body_count, dynamic_b = b < island->body_count;
    const body_work *ba = &w->body[a], *bb = &w->body[b];
    mat3 K = mat3_zero(), KA = K, KB = K, AA = K, BB = K, AB = K, GA = K, GB = K, AK, BK, BA;
    vec3 force = v3_zero(), moment_a = force, moment_b = force;
    for (; k < island->contact_count && island->contact[k].pair == pair; ++k) {
      const contact_work *t = &w->contact[k];
      vec3 xa = v3_add(t->xa0, quat_turn(ba->dq, t->xa0)), xb = v3_add(t->xb0, quat_turn(bb->dq, t->xb0));
      vec3 f = v3_madd(v3_madd(v3_scale(t->force.x, t->n), t->force.y, t->t1), t->force.z, t->t2);
      if (dynamic_a) GA = mat3_add(GA, mat3_geometric(R(1), f, xa));
      if (dynamic_b) GB = mat3_sub(GB, mat3_geometric(R(1), f, xb));
      xa = v3_madd(xa, -t->offset_a, t->n), xb = v3_madd(xb, t->offset_b, t->n);
      force = v3_add(force, f);
      moment_a = v3_add(moment_a, v3_cross(xa, f)), moment_b = v3_add(moment_b, v3_cross(xb, f));
      mat3 c = mat3_outer(mat3_diagonal(t->kt), v3_scale(t->kn - t->kt, t->n), t->n);
      K = mat3_add(K, c);
      mat3 ca = mat3_times_skew(c, xa), cb = mat3_times_skew(c, xb);
      KA = mat3_add(KA, ca), KB = mat3_add(KB, cb);
      if (dynamic_a) AA = mat3_add(AA, skew_times(xa, ca));
      if (dynamic_b) BB = mat3_add(BB, skew_times(xb, cb));
      if (dynamic_a && dynamic_b) AB = mat3_add(AB, skew_times(xa, cb));
    }
    /* [x] K = -(K [x])^T for symmetric K */
    AK = mat3_scale(R(-1),
                    mat3_rows(v3(KA.x.x, KA.y.x, KA.z.x), v3(KA.x.y, KA.y.y, KA.z.y), v3(KA.x.z, KA.y.z, KA.z.z)));
    BK = mat3_scale(R(-1),
                    mat3_rows(v3(KB.x.x, KB.y.x, KB.z.x), v3(KB.x.y, KB.y.y, KB.z.y), v3(KB.x.z, KB.y.z, KB.z.z)));
    BA = mat3_rows(v3(AB.x.x, AB.y.x, AB.z.x), v3(AB.x.y, AB.y.y, AB.z.y), v3(AB.x.z, AB.y.z, AB.z.z));
    if (dynamic_a) {
      block *m = diagonal(w, a);
      block_add(m, 0, 0, K), block_add(m, 0, 1, mat3_scale(R(-1), KA)), block_add(m, 1, 0, AK);
      block_add(m, 1, 1, mat3_sub(GA, AA));
      rhs_add(&w->rhs[w->position[a]], R(1), force, moment_a);
    }
    if (dynamic_b) {
      block *m = diagonal(w, b);
      block_add(m, 0, 0, K), block_add(m, 0, 1, mat3_scale(R(-1), KB)), block_add(m, 1, 0, BK);
      block_add(m, 1, 1, mat3_sub(GB, BB));
      rhs_add(&w->rhs[w->position[b]], R(-1), force, moment_b);
    }
    if (dynamic_a && dynamic_b) {
      int32_t edge = island->order.pair_edge[pair];
      block *ab = off_diagonal(w, a, b, edge), *ba_block = off_diagonal(w, b, a, edge);
      mat3 minus = mat3_scale(R(-1), K);
      block_add(ab, 0, 0, minus), block_add(ab, 0, 1, KB), block_add(ab, 1, 0, mat3_scale(R(-1), AK)),
          block_add(ab, 1, 1, AB);
      block_add(ba_block, 0, 0, minus), block_add(ba_block, 0, 1, KA), block_add(ba_block, 1, 0, mat3_scale(R(-1), BK));
      block_add(ba_block, 1, 1, BA);
    }
  }
}

/* -- elimination */

/* Inverse in place by Gauss and Jordan, n x n, pivots in order. */
static inline __attribute__((always_inline)) void invert(block *m, int n) {
  for (int k = 0; k < n; ++k) {
    real pivot = R(1) / m->r[k][k];
    vrow row = m->r[k] * pivot;
    row[k] = pivot;
    for (int r = 0; r < n; ++r) {
      if (r == k) continue;
      real f = m->r[r][k];
      vrow other = m->r[r];
      other[k] = R(0);
      m->r[r] = other - f * row;
    }
    m->r[k] = row;
  }
}
/* m <- a m, a n x n */
static inline __attribute__((always_inline)) void premultiply(block *m, const block *a, int n) {
  vrow in[DIRECT_ROWS];
  for (int k = 0; k < n; ++k) in[k] = m->r[k];
  for (int r = 0; r < n; ++r) {
    vrow even = a->r[r][0] * in[0], odd = {0};
    for (int k = 1; k < n; ++k) {
      if (k & 1)
        odd += a->r[r][k] * in[k];
      else
        even += a->r[r][k] * in[k];
    }
    m->r[r] = even + odd;
  }
}
/* out -= l u, l rows x n, u n x 8 */
static inline __attribute__((always_inline)) void subtract(block *out, const block *l, const block *u, int rows,
                                                           int n) {
  vrow in[DIRECT_ROWS];
  for (int k = 0; k < n; ++k) in[k] = u->r[k];
  for (int r = 0; r < rows; ++r) {
    vrow even = l->r[r][0] * in[0], odd = {0};
    for (int k = 1; k < n; ++k) {
      if (k & 1)
        odd += l->r[r][k] * in[k];
      else
        even += l->r[r][k] * in[k];
    }
    out->r[r] -= even + odd;
  }
}
/* z = a b and c -= a b, a rows x n: scalars, a row at a time */
static inline void row_product(vrow *z, const block *a, const vrow *b, int rows, int n, int subtract_it) {
  const real *restrict x = (const real *)b, *restrict m = (const real *)a;
  real *restrict out = (real *)z;
  for (int r = 0; r < rows; ++r) {
    real even = m[DIRECT_ROWS * r] * x[0], odd = R(0);
    for (int k = 1; k < n; ++k) {
      if (k & 1)
        odd += m[DIRECT_ROWS * r + k] * x[k];
      else
        even += m[DIRECT_ROWS * r + k] * x[k];
    }
    if (subtract_it)
      out[r] -= even + odd;
    else
      out[r] = even + odd;
  }
}

/* Takes the node at position p, of n unknowns, out of the matrix. Instantiated for the common sizes below. */
static inline __attribute__((always_inline)) void eliminate_node(core *w, int32_t p, int n) {
  const direct_order *o = &w->island->order;
  block *edges = w->blocks + o->node_count, *d = &w->blocks[p];
  int32_t begin = o->first[p], end = o->first[p + 1];
  invert(d, n);
  vrow z = {0};
  row_product(&z, d, &w->rhs[p].r, n, n, 0);
  w->rhs[p].r = z;
  for (int32_t e = begin; e < end; ++e) {
    premultiply(&edges[2 * e], d, n);
    int32_t q = o->neighbor[e];
    row_product(&w->rhs[q].r, &edges[2 * e + 1], &z, w->size[q], n, 1);
  }
  for (int32_t e = begin; e < end; ++e) {
    int32_t q = o->neighbor[e], cursor = o->first[q];
    int rows = w->size[q];
    const block *u = &edges[2 * e], *l = &edges[2 * e + 1];
    subtract(&w->blocks[q], l, u, rows, n);
    for (int32_t f = e + 1; f < end; ++f) { /* the pair (q, q2): an edge of q, found in order */
      int32_t q2 = o->neighbor[f];
      while (o->neighbor[cursor] != q2) ++cursor;
      subtract(&edges[2 * cursor], l, &edges[2 * f], rows, n);
      subtract(&edges[2 * cursor + 1], &edges[2 * f + 1], u, w->size[q2], n);
    }
  }
}

static void eliminate(core *w) {
  const direct_order *o = &w->island->order;
  int32_t n = o->node_count;
  block *edges = w->blocks + n;
  for (int32_t p = 0; p < n; ++p) {
    switch (w->size[p]) {
      case 6:
        eliminate_node(w, p, 6);
        break;
      case 5:
        eliminate_node(w, p, 5);
        break;
      case 3:
        eliminate_node(w, p, 3);
        break;
      default:
        eliminate_node(w, p, w->size[p]);
        break;
    }
  }
  for (int32_t p = n - 1; p >= 0; --p) {
    for (int32_t e = o->first[p]; e < o->first[p + 1]; ++e) {
      int32_t q = o->neighbor[e];
      row_product(&w->rhs[p].r, &edges[2 * e], &w->rhs[q].r, w->size[p], w->size[q], 1);
    }
  }
}

/* One linear solve at the iterate: step and turn of the bodies, multipliers of the joints. */
static void rows_solve(core *w) {
  const direct_island *island = w->island;
  const direct_order *o = &island->order;
  memset(w->blocks, 0, sizeof *w->blocks * (size_t)(o->node_count + 2 * o->edge_count));
  memset(w->rhs, 0, sizeof *w->rhs * (size_t)o->node_count);
  stamp_bodies(w);
  for (int32_t k = 0; k < island->joint_count; ++k) stamp_joint(w, k);
  if (!w->step.projection) stamp_contacts(w);
  eliminate(w);
  for (int32_t i = 0; i < island->body_count; ++i) {
    vrow x = w->rhs[w->position[i]].r;
    w->body[i].step = v3(x[0], x[1], x[2]);
    w->body[i].turn = v3(x[3], x[4], x[5]);
  }
  for (int32_t k = 0; k < island->joint_count; ++k) {
    vrow x = w->rhs[w->position[island->body_count + k]].r;
    joint_work *t = &w->joint[k];
    const direct_joint *j = &w->joints[island->joint[k]];
    for (int r = 0; r < j->row_count; ++r)
      if (t->row[r].state == ROW_ON) t->row[r].lambda += x[r];
  }
}
