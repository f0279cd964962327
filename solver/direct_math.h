/* Small dense algebra of the exact island solver in the core's working precision `real`, and a little in double for the
 * state.
 *
 * [x] is the matrix of the cross product, [x] y = x × y. Only included by direct_core.h. */
#ifndef PABD_DIRECT_MATH_H
#define PABD_DIRECT_MATH_H

#include "direct.h"
#include "real.h"

static inline vec3 v3_zero(void) {
  return v3(R(0), R(0), R(0));
}

static inline mat3 mat3_rows(vec3 x, vec3 y, vec3 z) {
  mat3 m;
  m.x = x, m.y = y, m.z = z;
  return m;
}
static inline mat3 mat3_diagonal(real d) {
  return mat3_rows(v3(d, R(0), R(0)), v3(R(0), d, R(0)), v3(R(0), R(0), d));
}
static inline mat3 mat3_from_sym3(sym3 s) {
  return mat3_rows(v3(s.xx, s.xy, s.xz), v3(s.xy, s.yy, s.yz), v3(s.xz, s.yz, s.zz));
}
static inline mat3 mat3_sub(mat3 a, mat3 b) {
  return mat3_rows(v3_sub(a.x, b.x), v3_sub(a.y, b.y), v3_sub(a.z, b.z));
}
static inline mat3 mat3_scale(real s, mat3 a) {
  return mat3_rows(v3_scale(s, a.x), v3_scale(s, a.y), v3_scale(s, a.z));
}
/* r^T b for a row r */
static inline vec3 row_times(vec3 r, const mat3 *b) {
  return v3(r.x * b->x.x + r.y * b->y.x + r.z * b->z.x, r.x * b->x.y + r.y * b->y.y + r.z * b->z.y,
            r.x * b->x.z + r.y * b->y.z + r.z * b->z.z);
}
static inline mat3 mat3_product(mat3 a, mat3 b) {
  return mat3_rows(row_times(a.x, &b), row_times(a.y, &b), row_times(a.z, &b));
}
/* m [x] */
static inline mat3 mat3_times_skew(mat3 m, vec3 x) {
  return mat3_rows(v3_cross(m.x, x), v3_cross(m.y, x), v3_cross(m.z, x));
}
/* [x] m */
static inline mat3 skew_times(vec3 x, mat3 m) {
  return mat3_rows(v3_sub(v3_scale(x.y, m.z), v3_scale(x.z, m.y)), v3_sub(v3_scale(x.z, m.x), v3_scale(x.x, m.z)),
                   v3_sub(v3_scale(x.x, m.y), v3_scale(x.y, m.x)));
}
static inline mat3 mat3_skew(vec3 x) {
  return mat3_rows(v3(R(0), -x.z, x.y), v3(x.z, R(0), -x.x), v3(-x.y, x.x, R(0)));
}
/* s ((f . x) 1 - x f^T): geometric stiffness of a force f with its arm x. */
static inline mat3 mat3_geometric(real s, vec3 f, vec3 x) {
  real d = s * v3_dot(f, x);
  vec3 g = v3_scale(-s, f);
  mat3 m = mat3_rows(v3_scale(x.x, g), v3_scale(x.y, g), v3_scale(x.z, g));
  m.x.x += d, m.y.y += d, m.z.z += d;
  return m;
}
static inline mat3 mat3_inverse(mat3 m) {
  vec3 c0 = v3_cross(m.y, m.z), c1 = v3_cross(m.z, m.x), c2 = v3_cross(m.x, m.y);
  real k = R(1) / v3_dot(m.x, c0);
  return mat3_rows(v3(k * c0.x, k * c1.x, k * c2.x), v3(k * c0.y, k * c1.y, k * c2.y),
                   v3(k * c0.z, k * c1.z, k * c2.z));
}

/* -- double: state and the errors at the start of a step */
static inline dvec3 d3(double x, double y, double z) {
  dvec3 v;
  v.x = x, v.y = y, v.z = z;
  return v;
}
static inline dvec3 d3_add(dvec3 a, dvec3 b) {
  return d3(a.x + b.x, a.y + b.y, a.z + b.z);
}
static inline dvec3 d3_sub(dvec3 a, dvec3 b) {
  return d3(a.x - b.x, a.y - b.y, a.z - b.z);
}
static inline dvec3 d3_scale(double s, dvec3 a) {
  return d3(s * a.x, s * a.y, s * a.z);
}
static inline double d3_dot(dvec3 a, dvec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static inline dvec3 d3_cross(dvec3 a, dvec3 b) {
  return d3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static inline double d3_norm(dvec3 a) {
  return sqrt(d3_dot(a, a));
}
static inline dquat dq(double w, double x, double y, double z) {
  dquat q;
  q.w = w, q.x = x, q.y = y, q.z = z;
  return q;
}
static inline dquat dq_mul(dquat a, dquat b) {
  return dq(a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w);
}
static inline dquat dq_conj(dquat a) {
  return dq(a.w, -a.x, -a.y, -a.z);
}
static inline dquat dq_normalize(dquat q) {
  double s = 1.0 / sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  return dq(s * q.w, s * q.x, s * q.y, s * q.z);
}
static inline dvec3 dq_rotate(dquat q, dvec3 v) {
  dvec3 u = d3(q.x, q.y, q.z), t = d3_scale(2.0, d3_cross(u, v));
  return d3_add(v, d3_add(d3_scale(q.w, t), d3_cross(u, t)));
}
static inline dvec3 dq_unrotate(dquat q, dvec3 v) {
  return dq_rotate(dq_conj(q), v);
}

/* -- between the two */
static inline vec3 v3_from(dvec3 a) {
  return v3((real)a.x, (real)a.y, (real)a.z);
}
static inline dvec3 d3_from(vec3 a) {
  return d3((double)a.x, (double)a.y, (double)a.z);
}
static inline quat quat_from(dquat a) {
  return quat_make((real)a.w, (real)a.x, (real)a.y, (real)a.z);
}
static inline dquat dq_from(quat a) {
  return dq((double)a.w, (double)a.x, (double)a.y, (double)a.z);
}

#endif
