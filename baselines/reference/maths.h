/* Vectors, quaternions and rotations of the reference engine, in double.
 *
 * The reference exists to check the other solvers, so it has its own: vectors are double[3], quaternions double[4] (w,
 * x, y, z), matrices double[9] by rows. exp and log are the exponential map of rotations and its inverse (angles to
 * pi). */
#ifndef REFERENCE_MATHS_H
#define REFERENCE_MATHS_H

#include <math.h>
#include <string.h>

static inline double dot(const double *a, const double *b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
static inline double norm(const double *a) {
  return sqrt(dot(a, a));
}
static inline void cross(const double *a, const double *b, double *out) {
  const double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
  out[0] = x, out[1] = y, out[2] = z;
}
static inline void set3(double *out, double x, double y, double z) {
  out[0] = x, out[1] = y, out[2] = z;
}
static inline void copy3(double *out, const double *a) {
  set3(out, a[0], a[1], a[2]);
}
/* out = a + s b */
static inline void madd3(double *out, const double *a, double s, const double *b) {
  set3(out, a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]);
}
static inline void sub3(double *out, const double *a, const double *b) {
  set3(out, a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

static inline void quat_mul(const double *a, const double *b, double *out) {
  const double w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  const double x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  const double y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  const double z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
  out[0] = w, out[1] = x, out[2] = y, out[3] = z;
}
static inline void quat_normalize(double *q) {
  const double s = 1 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (int k = 0; k < 4; ++k) q[k] *= s;
}
/* Quaternion of the rotation by |r| about r. */
static inline void quat_exp(const double *r, double *out) {
  const double angle = norm(r), half = angle / 2;
  const double s = angle > 1e-4 ? sin(half) / angle : 0.5 - angle * angle / 48;
  out[0] = cos(half), out[1] = s * r[0], out[2] = s * r[1], out[3] = s * r[2];
}
/* Rotation vector of b a*, the turn from a to b, at most pi. */
static inline void quat_log_between(const double *a, const double *b, double *out) {
  const double back[4] = {a[0], -a[1], -a[2], -a[3]};
  double d[4];
  quat_mul(b, back, d);
  if (d[0] < 0)
    for (int k = 0; k < 4; ++k) d[k] = -d[k];
  const double s = norm(d + 1), f = s > 1e-9 ? 2 * atan2(s, d[0]) / s : 2 / d[0];
  set3(out, f * d[1], f * d[2], f * d[3]);
}
/* q <- exp(r) q, normalized. */
static inline void quat_turn(double *q, const double *r) {
  double e[4];
  quat_exp(r, e);
  quat_mul(e, q, q);
  quat_normalize(q);
}
static inline void quat_matrix(const double *q, double *m) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  m[0] = 1 - 2 * (y * y + z * z), m[1] = 2 * (x * y - w * z), m[2] = 2 * (x * z + w * y);
  m[3] = 2 * (x * y + w * z), m[4] = 1 - 2 * (x * x + z * z), m[5] = 2 * (y * z - w * x);
  m[6] = 2 * (x * z - w * y), m[7] = 2 * (y * z + w * x), m[8] = 1 - 2 * (x * x + y * y);
}
static inline void matrix_apply(const double *m, const double *v, double *out) {
  const double x = dot(m, v), y = dot(m + 3, v), z = dot(m + 6, v);
  set3(out, x, y, z);
}
static inline void matrix_apply_transposed(const double *m, const double *v, double *out) {
  const double x = m[0] * v[0] + m[3] * v[1] + m[6] * v[2], y = m[1] * v[0] + m[4] * v[1] + m[7] * v[2],
               z = m[2] * v[0] + m[5] * v[1] + m[8] * v[2];
  set3(out, x, y, z);
}
static inline void quat_rotate(const double *q, const double *v, double *out) {
  double m[9];
  quat_matrix(q, m);
  matrix_apply(m, v, out);
}
static inline void quat_rotate_back(const double *q, const double *v, double *out) {
  double m[9];
  quat_matrix(q, m);
  matrix_apply_transposed(m, v, out);
}
/* out = R diag(d) R^T v: the inertia (or, with 1/d, its inverse) applied to a world vector. */
static inline void quat_scale(const double *q, const double *d, const double *v, double *out) {
  double local[3];
  quat_rotate_back(q, v, local);
  for (int k = 0; k < 3; ++k) local[k] *= d[k];
  quat_rotate(q, local, out);
}

#endif
