/* Nearest proper rotation of a 3x3 matrix: argmax of tr(R^T M) over det R = +1, also for reflected or rank-deficient M.
 *
 * Newton on the rotation group from a warm start: with B = M R^T, g = moment(B), K = tr(B) 1 - sym(B) the step is K^-1
 * g, read as a tangent of the angle (exact in one step where M is a scaled rotation). It converges quadratically where
 * K is positive definite, which is the second-order condition of the maximum; elsewhere the 4x4 quaternion form
 * (Davenport's K matrix) is solved by cyclic Jacobi rotations, which cannot fail. Error <= 1e-6 rad in float, tested
 * against reflections and rank deficiency. */
#ifndef PABD_POLAR_H
#define PABD_POLAR_H

#include "real.h"

/* Largest eigenvector of Davenport's symmetric 4x4 matrix of m by cyclic Jacobi: global, slow, rarely needed. */
PABD_FN quat polar_global(mat3 m) {
  real k[4][4], v[4][4];
  real t = m.x.x + m.y.y + m.z.z;
  k[0][0] = t;
  k[0][1] = k[1][0] = m.z.y - m.y.z;
  k[0][2] = k[2][0] = m.x.z - m.z.x;
  k[0][3] = k[3][0] = m.y.x - m.x.y;
  k[1][1] = m.x.x + m.x.x - t;
  k[2][2] = m.y.y + m.y.y - t;
  k[3][3] = m.z.z + m.z.z - t;
  k[1][2] = k[2][1] = m.x.y + m.y.x;
  k[1][3] = k[3][1] = m.x.z + m.z.x;
  k[2][3] = k[3][2] = m.y.z + m.z.y;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) v[i][j] = i == j ? R(1) : R(0);
  for (int sweep = 0; sweep < 12; ++sweep) {
    for (int p = 0; p < 3; ++p) {
      for (int q = p + 1; q < 4; ++q) {
        real apq = k[p][q];
        if (apq == R(0)) continue;
        real theta = (k[q][q] - k[p][p]) / (R(2) * apq);
        real tt = (theta >= R(0) ? R(1) : R(-1)) / (real_abs(theta) + real_sqrt(theta * theta + R(1)));
        real c = R(1) / real_sqrt(tt * tt + R(1)), s = tt * c;
        for (int i = 0; i < 4; ++i) {
          real a = k[i][p], b = k[i][q];
          k[i][p] = c * a - s * b;
          k[i][q] = s * a + c * b;
        }
        for (int i = 0; i < 4; ++i) {
          real a = k[p][i], b = k[q][i];
          k[p][i] = c * a - s * b;
          k[q][i] = s * a + c * b;
        }
        for (int i = 0; i < 4; ++i) {
          real a = v[i][p], b = v[i][q];
          v[i][p] = c * a - s * b;
          v[i][q] = s * a + c * b;
        }
      }
    }
  }
  int best = 0;
  for (int i = 1; i < 4; ++i)
    if (k[i][i] > k[best][best]) best = i;
  real n = v[0][best] * v[0][best] + v[1][best] * v[1][best] + v[2][best] * v[2][best] + v[3][best] * v[3][best];
  if (!(n > R(0.25)))
    return quat_make(R(1), R(0), R(0), R(0)); /* not a number came in: the caller sees it in the state */
  return quat_normalize(quat_make(v[0][best], v[1][best], v[2][best], v[3][best]));
}

/* Rotation step of the Newton iteration for b near its own symmetric factor; *ok = 0 where K is not positive definite.
 */
PABD_FN vec3 polar_newton(mat3 b, vec3 moment, int *ok) {
  sym3 sym =
      sym3_make(b.x.x, b.y.y, b.z.z, R(0.5) * (b.x.y + b.y.x), R(0.5) * (b.x.z + b.z.x), R(0.5) * (b.y.z + b.z.y));
  sym3 k = sym3_gyration(sym);
  /* of unit trace: products of three stiffnesses leave the range of float */
  real scale = k.xx + k.yy + k.zz, unit = R(1) / scale;
  k = sym3_scale(unit, k);
  real minor = k.xx * k.yy - k.xy * k.xy;
  real det =
      k.xx * (k.yy * k.zz - k.yz * k.yz) - k.xy * (k.xy * k.zz - k.xz * k.yz) + k.xz * (k.xy * k.yz - k.yy * k.xz);
  *ok = scale > R(0) && k.xx > R(0) && minor > R(1e-6) && det > R(1e-6);
  return v3_scale(unit, sym3_mul(sym3_inverse(k), moment));
}
/* Quaternion of the rotation about d by the angle whose tangent is |d|. */
PABD_FN quat quat_from_tangent(vec3 d) {
  real s = R(1) / (R(1) + real_sqrt(R(1) + v3_norm2(d)));
  return quat_normalize(quat_make(R(1), s * d.x, s * d.y, s * d.z));
}

/* Rotation from the identity to the nearest rotation of S + E, S symmetric. The first Newton step takes the moment of E
 * alone: formed from the sum it would carry S's rounding, which in float is a constant force of 1e-3 N on a stiff body
 * that has converged. `enough`: squared step after which no further Newton step is taken; the error left is of the
 * order of that squared step. */
PABD_FN quat polar_increment(sym3 S, mat3 E, real enough) {
  mat3 b = E;
  b.x.x += S.xx, b.y.y += S.yy, b.z.z += S.zz;
  b.x.y += S.xy, b.y.x += S.xy, b.x.z += S.xz, b.z.x += S.xz, b.y.z += S.yz, b.z.y += S.yz;
  quat q = quat_make(R(1), R(0), R(0), R(0));
  mat3 c = b;
  vec3 moment = mat3_moment(E);
  for (int pass = 0; pass < 8; ++pass) {
    int ok;
    vec3 d = polar_newton(c, moment, &ok);
    if (!ok) return polar_global(b);
    real size = v3_norm2(d);
    /* small steps, the common case of a converging sweep, need no roots: (1 - d^2/8, d/2) is unit to d^4 */
    if (pass == 0 && size < R(1e-6) && size < enough)
      return quat_make(R(1) - R(0.125) * size, R(0.5) * d.x, R(0.5) * d.y, R(0.5) * d.z);
    q = quat_normalize(quat_mul(quat_from_tangent(d), q));
    if (size < enough) return q;
    c = mat3_mul_transposed(b, quat_matrix(q));
    moment = mat3_moment(c);
  }
  return polar_global(b);
}

/* Nearest proper rotation of m, warm start q. */
PABD_FN quat polar(mat3 m, quat q) {
  return quat_normalize(
      quat_mul(polar_increment(sym3_make(R(0), R(0), R(0), R(0), R(0), R(0)), mat3_mul_transposed(m, quat_matrix(q)),
                               sizeof(real) == 4 ? R(1e-7) : R(1e-15)),
               q));
}

#endif
