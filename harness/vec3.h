/* Vectors and rotations in double for the judge's geometry and metrics. */
#ifndef PABD_VEC3_H
#define PABD_VEC3_H

#include <math.h>

#include "pabd_scene.h"

static inline pabd_dvec3 v3_add(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline pabd_dvec3 v3_sub(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline pabd_dvec3 v3_scale(double s, pabd_dvec3 a) {
  return (pabd_dvec3){s * a.x, s * a.y, s * a.z};
}

/* a + s b */
static inline pabd_dvec3 v3_madd(pabd_dvec3 a, double s, pabd_dvec3 b) {
  return (pabd_dvec3){a.x + s * b.x, a.y + s * b.y, a.z + s * b.z};
}

static inline double v3_dot(pabd_dvec3 a, pabd_dvec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline pabd_dvec3 v3_cross(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline double v3_norm(pabd_dvec3 a) {
  return sqrt(v3_dot(a, a));
}

/* Some unit vector normal to a, which need not be of unit length. */
static inline pabd_dvec3 v3_normal_to(pabd_dvec3 a) {
  pabd_dvec3 x = fabs(a.x) <= fabs(a.y) && fabs(a.x) <= fabs(a.z) ? (pabd_dvec3){1, 0, 0}
                 : fabs(a.y) <= fabs(a.z)                         ? (pabd_dvec3){0, 1, 0}
                                                                  : (pabd_dvec3){0, 0, 1};
  pabd_dvec3 n = v3_cross(a, x);
  double length = v3_norm(n);
  return length > 0 ? v3_scale(1 / length, n) : (pabd_dvec3){0, 0, 1};
}

#endif
