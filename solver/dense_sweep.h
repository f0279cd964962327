/* The sweep of one body with the 13-number block, and the same sweep with a dense 12x12 Hessian, for comparison only.
 *
 * Both do the paper's step with the mass metric: dq = H^-1 (-g) on the affine body, then back to a rigid motion. The
 * dense one holds H as what it is without the paper's observation: a symmetric 12x12 matrix of 78 numbers in memory,
 * factored as L L^T. Unknowns: translation, then the columns of the linear part, in the material axes of the sweep.
 * tests/test_device_dense.c shows that both give the same motion; the compiler's figures show what each costs. */
#ifndef PABD_DENSE_SWEEP_H
#define PABD_DENSE_SWEEP_H

#include "jacobi_kernels.h"

enum { PABD_DENSE = 12, PABD_DENSE_COUNT = 78 };

#ifdef __CUDA_ARCH__
#define PABD_UNROLL _Pragma("unroll")
#else
#define PABD_UNROLL
#endif

/* Entry (row, column <= row) of the lower triangle. */
PABD_FN int32_t dense_at(int32_t row, int32_t column) {
  return row * (row + 1) / 2 + column;
}

/* The Hessian of body i into out[k * stride]: the block's numbers, each on the diagonal of a 3x3 block. */
PABD_FN void dense_block_at(int32_t i, const pabd_view *s, real *out, int32_t stride) {
  pabd_block block = s->block[i];
  vec3 b = block.b;
  sym3 D = sym3_rank1(block.S, R(1) / block.a, b);
  const real h[10] = {block.a, b.x, D.xx, b.y, D.xy, D.yy, b.z, D.xz, D.yz, D.zz};
  for (int32_t row = 0; row < PABD_DENSE; ++row)
    for (int32_t column = 0; column <= row; ++column)
      out[(size_t)dense_at(row, column) * (size_t)stride] =
          row % 3 == column % 3 ? h[dense_at(row / 3, column / 3)] : R(0);
}

/* What both need: forces on the affine body in material axes, (T^T g_p, E). */
typedef struct pabd_sweep_input {
  mat3 T, E;
  vec3 g_p; /* N, world */
  quat inc; /* 1 */
} pabd_sweep_input;

PABD_FN pabd_sweep_input sweep_input(int32_t i, const pabd_view *s, sym3 Pi) {
  pabd_sweep_input in;
  vec3 F;
  mat3 G;
  in.inc = s->inc_rot[i];
  gather(i, s, &F, &G);
  in.g_p = v3_madd(F, -s->mass[i] * s->inv_h2, s->inc_pos[i]);
  in.T = quat_matrix(s->total[i].q);
  in.E.x = v3_add(v3_add(v3_scale(in.T.x.x, G.x), v3_scale(in.T.y.x, G.y)), v3_scale(in.T.z.x, G.z));
  in.E.y = v3_add(v3_add(v3_scale(in.T.x.y, G.x), v3_scale(in.T.y.y, G.y)), v3_scale(in.T.z.y, G.z));
  in.E.z = v3_add(v3_add(v3_scale(in.T.x.z, G.x), v3_scale(in.T.y.z, G.y)), v3_scale(in.T.z.z, G.z));
  vec3 inc_vec = quat_unrotate(s->turn_pred[i], quat_vec(in.inc));
  mat3 W = quat_minus_identity(quat_make(in.inc.w, -inc_vec.x, -inc_vec.y, -inc_vec.z));
  in.E = mat3_add(in.E, mat3_mul_sym3(W, Pi));
  return in;
}
/* Local step in the mass metric, and the new iterate. d: m, material axes. */
PABD_FN void sweep_finish(int32_t i, const pabd_view *s, const pabd_sweep_input *in, sym3 Pi, vec3 d, mat3 dA) {
  quat turn = polar_increment(Pi, mat3_mul_sym3(dA, Pi), SWEEP_POLAR);
  vec3 turn_vec = mat3_mul(in->T, quat_vec(turn));
  quat inc = quat_renormalize(quat_mul(quat_make(turn.w, turn_vec.x, turn_vec.y, turn_vec.z), in->inc));
  s->inc_pos[i] = v3_add(s->inc_pos[i], mat3_mul(in->T, d));
  s->inc_rot[i] = inc;
  pabd_motion8 m;
  m.d = v3_add(s->step_pred[i], s->inc_pos[i]), m.pad = R(0), m.q = quat_mul(inc, s->turn_pred[i]);
  s->total[i] = m;
}

PABD_FN void block_sweep_at(int32_t i, const pabd_view *s) {
  if (s->motion[i] != PABD_DYNAMIC) return;
  pabd_block block = s->block[i];
  pabd_sweep_input in = sweep_input(i, s, block.Pi);
  real inv_a = R(1) / block.a;
  vec3 force = mat3_tmul(in.T, in.g_p);
  mat3 dA = mat3_mul_sym3(mat3_outer(in.E, v3_scale(-inv_a, force), block.b), sym3_inverse(block.S));
  vec3 d = v3_scale(inv_a, v3_sub(force, mat3_mul(dA, block.b)));
  sweep_finish(i, s, &in, block.Pi, d, dA);
}

/* hessian[k * stride]: the 78 numbers of body i. */
PABD_FN void dense_sweep_at(int32_t i, const pabd_view *s, const real *hessian, int32_t stride) {
  if (s->motion[i] != PABD_DYNAMIC) return;
  sym3 Pi = s->block[i].Pi;
  pabd_sweep_input in = sweep_input(i, s, Pi);
  vec3 force = mat3_tmul(in.T, in.g_p);
  real x[PABD_DENSE] = {force.x,  force.y,  force.z,  in.E.x.x, in.E.y.x, in.E.z.x,
                        in.E.x.y, in.E.y.y, in.E.z.y, in.E.x.z, in.E.y.z, in.E.z.z};
  real L[PABD_DENSE_COUNT];
  PABD_UNROLL
  for (int32_t k = 0; k < PABD_DENSE_COUNT; ++k) L[k] = hessian[(size_t)k * (size_t)stride];
  PABD_UNROLL
  for (int32_t c = 0; c < PABD_DENSE; ++c) {
    PABD_UNROLL
    for (int32_t r = c; r < PABD_DENSE; ++r) {
      real sum = L[dense_at(r, c)];
      PABD_UNROLL
      for (int32_t k = 0; k < c; ++k) sum -= L[dense_at(r, k)] * L[dense_at(c, k)];
      L[dense_at(r, c)] = r == c ? real_sqrt(sum) : sum / L[dense_at(c, c)];
    }
  }
  PABD_UNROLL
  for (int32_t r = 0; r < PABD_DENSE; ++r) {
    PABD_UNROLL
    for (int32_t k = 0; k < r; ++k) x[r] -= L[dense_at(r, k)] * x[k];
    x[r] = x[r] / L[dense_at(r, r)];
  }
  PABD_UNROLL
  for (int32_t r = PABD_DENSE - 1; r >= 0; --r) {
    PABD_UNROLL
    for (int32_t k = r + 1; k < PABD_DENSE; ++k) x[r] -= L[dense_at(k, r)] * x[k];
    x[r] = x[r] / L[dense_at(r, r)];
  }
  mat3 dA;
  dA.x = v3(x[3], x[6], x[9]), dA.y = v3(x[4], x[7], x[10]), dA.z = v3(x[5], x[8], x[11]);
  sweep_finish(i, s, &in, Pi, v3(x[0], x[1], x[2]), dA);
}

#endif
