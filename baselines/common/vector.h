/* Vectors and rotations in double for the engines that are written here; nothing but arithmetic. */
#ifndef PABD_VECTOR_H
#define PABD_VECTOR_H

#include <math.h>

#include "pabd_scene.h"

static inline pabd_dvec3 v3(double x, double y, double z) {
  return (pabd_dvec3){x, y, z};
}
static inline pabd_dvec3 v3_add(pabd_dvec3 a, pabd_dvec3 b) {
  return v3(a.x + b.x, a.y + b.y, a.z + b.z);
}
static inline pabd_dvec3 v3_sub(pabd_dvec3 a, pabd_dvec3 b) {
  return v3(a.x - b.x, a.y - b.y, a.z - b.z);
}
static inline pabd_dvec3 v3_scale(double s, pabd_dvec3 a) {
  return v3(s * a.x, s * a.y, s * a.z);
}
/* a + s b */
static inline pabd_dvec3 v3_along(pabd_dvec3 a, double s, pabd_dvec3 b) {
  return v3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}
static inline double v3_dot(pabd_dvec3 a, pabd_dvec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static inline pabd_dvec3 v3_cross(pabd_dvec3 a, pabd_dvec3 b) {
  return v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static inline double v3_length(pabd_dvec3 a) {
  return sqrt(v3_dot(a, a));
}
/* `otherwise` where a is (nearly) zero. */
static inline pabd_dvec3 v3_unit(pabd_dvec3 a, pabd_dvec3 otherwise) {
  const double length = v3_length(a);
  return length > 1e-30 ? v3_scale(1 / length, a) : otherwise;
}
/* A unit vector normal to the unit vector n, a function of n alone. */
static inline pabd_dvec3 v3_normal_to(pabd_dvec3 n) {
  const double x = fabs(n.x), y = fabs(n.y), z = fabs(n.z);
  const pabd_dvec3 e = x <= y && x <= z ? v3(1, 0, 0) : y <= z ? v3(0, 1, 0) : v3(0, 0, 1);
  return v3_unit(v3_cross(n, e), e);
}

/* Columns of the rotation matrix of a unit quaternion. */
static inline void quat_axes(pabd_dquat q, pabd_dvec3 axis[3]) {
  const double w = q.w, x = q.x, y = q.y, z = q.z;
  axis[0] = v3(1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y));
  axis[1] = v3(2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x));
  axis[2] = v3(2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y));
}
static inline pabd_dvec3 quat_rotate(pabd_dquat q, pabd_dvec3 v) {
  const pabd_dvec3 u = v3(q.x, q.y, q.z), t = v3_scale(2, v3_cross(u, v));
  return v3_add(v3_along(v, q.w, t), v3_cross(u, t));
}
static inline pabd_dquat quat_conj(pabd_dquat q) {
  return (pabd_dquat){q.w, -q.x, -q.y, -q.z};
}
static inline pabd_dvec3 quat_rotate_back(pabd_dquat q, pabd_dvec3 v) {
  return quat_rotate(quat_conj(q), v);
}
static inline pabd_dquat quat_mul(pabd_dquat a, pabd_dquat b) {
  return (pabd_dquat){a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                      a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
static inline pabd_dquat quat_unit(pabd_dquat q) {
  const double s = 1 / sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  return (pabd_dquat){s * q.w, s * q.x, s * q.y, s * q.z};
}
/* normalize(q + (0, r) q / 2): a turn by 2 atan(|r| / 2) about r (world). */
static inline pabd_dquat quat_add(pabd_dquat q, pabd_dvec3 r) {
  const pabd_dquat d = quat_mul((pabd_dquat){0, r.x, r.y, r.z}, q);
  return quat_unit((pabd_dquat){q.w + d.w / 2, q.x + d.x / 2, q.y + d.y / 2, q.z + d.z / 2});
}
/* 2 vec(a b*), on the nearer side: the turn from b to a by its sine (world). */
static inline pabd_dvec3 quat_sub(pabd_dquat a, pabd_dquat b) {
  const pabd_dquat d = quat_mul(a, quat_conj(b));
  return v3_scale(d.w < 0 ? -2 : 2, v3(d.x, d.y, d.z));
}
/* Rotation vector of a unit quaternion, at most pi long. */
static inline pabd_dvec3 quat_log(pabd_dquat q) {
  const pabd_dvec3 u = q.w < 0 ? v3(-q.x, -q.y, -q.z) : v3(q.x, q.y, q.z);
  const double s = v3_length(u);
  return s > 1e-12 ? v3_scale(2 * atan2(s, fabs(q.w)) / s, u) : v3_scale(2, u);
}
#endif
