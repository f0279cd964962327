/* The solver's number type, the markers of the common C11/CUDA dialect, and 3-vector algebra.
 *
 * Everything here is plain functions in the common subset of C11 and CUDA C++: only + - * / sqrt fabs and comparisons,
 * so that a result has the same bits on the CPU (built with -ffp-contract=off) and on a device (built with
 * --fmad=false). sin, cos and atan2 are written here for that reason (error bounds beside them). */
#ifndef PABD_REAL_H
#define PABD_REAL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef PABD_REAL_COUNTED /* a class that counts its operations (C++, tests of the performance model only) */
typedef counted_real real;
#define PABD_REAL_NAME "counted"
#define PABD_EPSILON 1.1920929e-7f
#elif defined(PABD_REAL_DOUBLE)
typedef double real;
#define PABD_REAL_NAME "double"
#define PABD_EPSILON 2.2204460492503131e-16
#else
typedef float real;
#define PABD_REAL_NAME "float"
#define PABD_EPSILON 1.1920929e-7f
#endif

#ifdef __CUDACC__
#define PABD_FN static __host__ __device__ __forceinline__
#else
#define PABD_FN static inline
#endif

/* Before a loop: unrolling it on the device would cost registers (and spills) for nothing. */
#ifdef __CUDA_ARCH__
#define PABD_NO_UNROLL _Pragma("unroll 1")
#else
#define PABD_NO_UNROLL
#endif

#define R(x) ((real)(x))

typedef struct vec3 {
  real x, y, z;
} vec3;

typedef struct quat { /* w, x, y, z; unit where it is a rotation */
  real w, x, y, z;
} quat;

typedef struct sym3 { /* symmetric 3x3 */
  real xx, yy, zz, xy, xz, yz;
} sym3;

typedef struct mat3 { /* rows */
  vec3 x, y, z;
} mat3;

PABD_FN real real_sqrt(real a) {
#ifdef PABD_REAL_DOUBLE
  return sqrt(a);
#else
  return sqrtf(a);
#endif
}
PABD_FN real real_abs(real a) {
  return a < R(0) ? -a : a;
}
PABD_FN real real_min(real a, real b) {
  return a < b ? a : b;
}
PABD_FN real real_max(real a, real b) {
  return a > b ? a : b;
}
PABD_FN real real_clamp(real a, real lo, real hi) {
  return a < lo ? lo : (a > hi ? hi : a);
}

PABD_FN vec3 v3(real x, real y, real z) {
  vec3 r;
  r.x = x, r.y = y, r.z = z;
  return r;
}
PABD_FN vec3 v3_add(vec3 a, vec3 b) {
  return v3(a.x + b.x, a.y + b.y, a.z + b.z);
}
PABD_FN vec3 v3_sub(vec3 a, vec3 b) {
  return v3(a.x - b.x, a.y - b.y, a.z - b.z);
}
PABD_FN vec3 v3_neg(vec3 a) {
  return v3(-a.x, -a.y, -a.z);
}
PABD_FN vec3 v3_scale(real s, vec3 a) {
  return v3(s * a.x, s * a.y, s * a.z);
}
PABD_FN vec3 v3_madd(vec3 a, real s, vec3 b) {
  return v3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
} /* a + s b */
PABD_FN real v3_dot(vec3 a, vec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
PABD_FN vec3 v3_cross(vec3 a, vec3 b) {
  return v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
PABD_FN vec3 v3_mul(vec3 a, vec3 b) {
  return v3(a.x * b.x, a.y * b.y, a.z * b.z);
}
PABD_FN real v3_norm2(vec3 a) {
  return v3_dot(a, a);
}
PABD_FN real v3_norm(vec3 a) {
  return real_sqrt(v3_dot(a, a));
}
/* Unit vector along a, or the fallback when a is shorter than 1e-20. */
PABD_FN vec3 v3_unit(vec3 a, vec3 fallback) {
  real n = v3_norm(a);
  return n > R(1e-20) ? v3_scale(R(1) / n, a) : fallback;
}
/* A unit vector normal to the unit vector n, the same bits for the same n. */
PABD_FN vec3 v3_tangent(vec3 n) {
  vec3 t = real_abs(n.x) < R(0.57735027) ? v3(R(0), n.z, -n.y) : v3(n.y, -n.x, R(0));
  return v3_scale(R(1) / v3_norm(t), t);
}

PABD_FN quat quat_make(real w, real x, real y, real z) {
  quat r;
  r.w = w, r.x = x, r.y = y, r.z = z;
  return r;
}
PABD_FN quat quat_mul(quat a, quat b) {
  return quat_make(a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                   a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w);
}
PABD_FN quat quat_conj(quat a) {
  return quat_make(a.w, -a.x, -a.y, -a.z);
}
PABD_FN vec3 quat_vec(quat a) {
  return v3(a.x, a.y, a.z);
}
PABD_FN quat quat_normalize(quat a) {
  real s = R(1) / real_sqrt(a.w * a.w + a.x * a.x + a.y * a.y + a.z * a.z);
  return quat_make(s * a.w, s * a.x, s * a.y, s * a.z);
}
/* One Newton step towards unit length, for a quaternion that is unit up to rounding: no root, no division. */
PABD_FN quat quat_renormalize(quat a) {
  real s = R(1.5) - R(0.5) * (a.w * a.w + a.x * a.x + a.y * a.y + a.z * a.z);
  return quat_make(s * a.w, s * a.x, s * a.y, s * a.z);
}
/* q v q*: v + 2 w (u x v) + 2 u x (u x v). */
PABD_FN vec3 quat_rotate(quat q, vec3 v) {
  vec3 u = quat_vec(q), t = v3_scale(R(2), v3_cross(u, v));
  return v3_add(v, v3_add(v3_scale(q.w, t), v3_cross(u, t)));
}
PABD_FN vec3 quat_unrotate(quat q, vec3 v) {
  return quat_rotate(quat_conj(q), v);
}
/* (q v q* - v), without the cancellation of forming q v q* first: exact for small rotations in float. */
PABD_FN vec3 quat_turn(quat q, vec3 v) {
  vec3 u = quat_vec(q), t = v3_scale(R(2), v3_cross(u, v));
  return v3_add(v3_scale(q.w, t), v3_cross(u, t));
}
PABD_FN mat3 quat_matrix(quat q) {
  real xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z, xy = q.x * q.y, xz = q.x * q.z, yz = q.y * q.z;
  real wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z;
  mat3 m;
  m.x = v3(R(1) - R(2) * (yy + zz), R(2) * (xy - wz), R(2) * (xz + wy));
  m.y = v3(R(2) * (xy + wz), R(1) - R(2) * (xx + zz), R(2) * (yz - wx));
  m.z = v3(R(2) * (xz - wy), R(2) * (yz + wx), R(1) - R(2) * (xx + yy));
  return m;
}

/* sin(x)/x and cos x for |x| <= pi/2 by Taylor in x^2 (degree 16): error below 2e-12 absolute. */
PABD_FN real sinc_small(real x) {
  real y = x * x;
  return R(1) - y * (R(1.0 / 6) -
                     y * (R(1.0 / 120) -
                          y * (R(1.0 / 5040) -
                               y * (R(1.0 / 362880) - y * (R(1.0 / 39916800) - y * (R(1.0 / 6227020800.0) -
                                                                                    y * R(1.0 / 1307674368000.0)))))));
}
PABD_FN real cos_small(real x) {
  real y = x * x;
  return R(1) - y * (R(1.0 / 2) -
                     y * (R(1.0 / 24) -
                          y * (R(1.0 / 720) - y * (R(1.0 / 40320) - y * (R(1.0 / 3628800) -
                                                                         y * (R(1.0 / 479001600.0) -
                                                                              y * (R(1.0 / 87178291200.0) -
                                                                                   y * R(1.0 / 20922789888000.0))))))));
}
/* atan(t) for any t: two half-angle reductions, then Taylor; error below 1e-15 (double). */
PABD_FN real real_atan(real t) {
  real a = t / (R(1) + real_sqrt(R(1) + t * t));
  real b = a / (R(1) + real_sqrt(R(1) + a * a)), c = b / (R(1) + real_sqrt(R(1) + b * b)), y = c * c; /* |c| <= 0.199 */
  real p =
      R(1) -
      y * (R(1.0 / 3) -
           y * (R(1.0 / 5) -
                y * (R(1.0 / 7) -
                     y * (R(1.0 / 9) -
                          y * (R(1.0 / 11) -
                               y * (R(1.0 / 13) -
                                    y * (R(1.0 / 15) - y * (R(1.0 / 17) - y * (R(1.0 / 19) - y * R(1.0 / 21))))))))));
  return R(8) * c * p;
}
/* Angle of (x, y) in (-pi, pi]. */
PABD_FN real real_atan2(real y, real x) {
  real h = real_sqrt(x * x + y * y);
  if (!(h > R(0))) return R(0);
  if (x > R(0)) return R(2) * real_atan(y / (h + x));
  if (y != R(0)) return R(2) * real_atan((h - x) / y);
  return x < R(0) ? R(3.14159265358979323846) : R(0);
}

/* exp: unit quaternion of the rotation vector r (rad). Angles above pi are reduced by halving (three squarings). */
PABD_FN quat quat_exp(vec3 r) {
  real angle = v3_norm(r);
  int halvings = 0;
  while (angle > R(3.0) && halvings < 12) {
    angle = angle * R(0.5), r = v3_scale(R(0.5), r);
    ++halvings;
  }
  real half = R(0.5) * angle, s = R(0.5) * sinc_small(half);
  quat q = quat_make(cos_small(half), s * r.x, s * r.y, s * r.z);
  for (; halvings > 0; --halvings) q = quat_mul(q, q);
  return quat_normalize(q);
}
/* log: rotation vector of the unit quaternion q, angle in [0, pi]. */
PABD_FN vec3 quat_log(quat q) {
  if (q.w < R(0)) q = quat_make(-q.w, -q.x, -q.y, -q.z);
  vec3 u = quat_vec(q);
  real n = v3_norm(u);
  /* angle = 2 atan(n/w); for small n the ratio is a series, free of 0/0 */
  real scale =
      n < R(1e-3) * q.w ? R(2) / q.w * (R(1) - (n / q.w) * (n / q.w) * R(1.0 / 3)) : R(2) * real_atan2(n, q.w) / n;
  return v3_scale(scale, u);
}

PABD_FN sym3 sym3_make(real xx, real yy, real zz, real xy, real xz, real yz) {
  sym3 s;
  s.xx = xx, s.yy = yy, s.zz = zz, s.xy = xy, s.xz = xz, s.yz = yz;
  return s;
}
PABD_FN vec3 sym3_mul(sym3 s, vec3 v) {
  return v3(s.xx * v.x + s.xy * v.y + s.xz * v.z, s.xy * v.x + s.yy * v.y + s.yz * v.z,
            s.xz * v.x + s.yz * v.y + s.zz * v.z);
}
PABD_FN real sym3_trace(sym3 s) {
  return s.xx + s.yy + s.zz;
}
PABD_FN sym3 sym3_add(sym3 a, sym3 b) {
  return sym3_make(a.xx + b.xx, a.yy + b.yy, a.zz + b.zz, a.xy + b.xy, a.xz + b.xz, a.yz + b.yz);
}
PABD_FN sym3 sym3_scale(real k, sym3 a) {
  return sym3_make(k * a.xx, k * a.yy, k * a.zz, k * a.xy, k * a.xz, k * a.yz);
}
/* s + k v v^T */
PABD_FN sym3 sym3_rank1(sym3 s, real k, vec3 v) {
  vec3 w = v3_scale(k, v);
  return sym3_make(s.xx + w.x * v.x, s.yy + w.y * v.y, s.zz + w.z * v.z, s.xy + w.x * v.y, s.xz + w.x * v.z,
                   s.yz + w.y * v.z);
}
/* tr(s) 1 - s: the tensor K of r -> sum r x (w x r) from second moments; its own inverse operation is K -> tr(K)/2 1 -
 * K. */
PABD_FN sym3 sym3_gyration(sym3 s) {
  return sym3_make(s.yy + s.zz, s.xx + s.zz, s.xx + s.yy, -s.xy, -s.xz, -s.yz);
}
/* Inverse of a symmetric positive definite matrix, by cofactors. */
/* Worked at unit trace, for the product of three entries (stiffnesses) can leave the range of float. */
PABD_FN sym3 sym3_inverse(sym3 s) {
  real unit = R(1) / (s.xx + s.yy + s.zz);
  s = sym3_scale(unit, s);
  real cxx = s.yy * s.zz - s.yz * s.yz, cxy = s.xz * s.yz - s.xy * s.zz, cxz = s.xy * s.yz - s.xz * s.yy;
  real k = unit / (s.xx * cxx + s.xy * cxy + s.xz * cxz);
  return sym3_make(k * cxx, k * (s.xx * s.zz - s.xz * s.xz), k * (s.xx * s.yy - s.xy * s.xy), k * cxy, k * cxz,
                   k * (s.xy * s.xz - s.xx * s.yz));
}
/* q diag(d) q^T */
PABD_FN sym3 sym3_rotate_diagonal(quat q, vec3 d) {
  mat3 m = quat_matrix(q);
  vec3 cx = v3(m.x.x, m.y.x, m.z.x), cy = v3(m.x.y, m.y.y, m.z.y), cz = v3(m.x.z, m.y.z, m.z.z);
  sym3 s = sym3_make(R(0), R(0), R(0), R(0), R(0), R(0));
  s = sym3_rank1(s, d.x, cx);
  s = sym3_rank1(s, d.y, cy);
  return sym3_rank1(s, d.z, cz);
}

PABD_FN vec3 mat3_mul(mat3 m, vec3 v) {
  return v3(v3_dot(m.x, v), v3_dot(m.y, v), v3_dot(m.z, v));
}
PABD_FN vec3 mat3_tmul(mat3 m, vec3 v) { /* m^T v */
  return v3(m.x.x * v.x + m.y.x * v.y + m.z.x * v.z, m.x.y * v.x + m.y.y * v.y + m.z.y * v.z,
            m.x.z * v.x + m.y.z * v.y + m.z.z * v.z);
}
PABD_FN mat3 mat3_zero(void) {
  mat3 m;
  m.x = m.y = m.z = v3(R(0), R(0), R(0));
  return m;
}
/* m + f r^T */
PABD_FN mat3 mat3_outer(mat3 m, vec3 f, vec3 r) {
  m.x = v3_madd(m.x, f.x, r);
  m.y = v3_madd(m.y, f.y, r);
  m.z = v3_madd(m.z, f.z, r);
  return m;
}
PABD_FN mat3 mat3_add(mat3 a, mat3 b) {
  a.x = v3_add(a.x, b.x), a.y = v3_add(a.y, b.y), a.z = v3_add(a.z, b.z);
  return a;
}
/* a b^T */
PABD_FN mat3 mat3_mul_transposed(mat3 a, mat3 b) {
  mat3 m;
  m.x = v3(v3_dot(a.x, b.x), v3_dot(a.x, b.y), v3_dot(a.x, b.z));
  m.y = v3(v3_dot(a.y, b.x), v3_dot(a.y, b.y), v3_dot(a.y, b.z));
  m.z = v3(v3_dot(a.z, b.x), v3_dot(a.z, b.y), v3_dot(a.z, b.z));
  return m;
}
/* a s, s symmetric */
PABD_FN mat3 mat3_mul_sym3(mat3 a, sym3 s) {
  a.x = sym3_mul(s, a.x), a.y = sym3_mul(s, a.y), a.z = sym3_mul(s, a.z);
  return a;
}
/* The vector t with [t]x = m^T-antisymmetric part doubled: t = sum over columns r_k x m_k for m = sum f r^T, i.e. sum r
 * x f. */
PABD_FN vec3 mat3_moment(mat3 m) {
  return v3(m.z.y - m.y.z, m.x.z - m.z.x, m.y.x - m.x.y);
}

#endif
