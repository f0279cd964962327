/* Vectors of LANES numbers (one register) for the contact-wise Gauss-Seidel, and records of eight numbers to and from
 * lanes.
 *
 * GCC vector extensions: + - * / and comparisons act per lane, so a lane computes exactly what scalar code would. A
 * record read by rows and turned by LANES log2 shuffles costs a quarter of the gathers that do the same. The results do
 * not depend on LANES. */
#ifndef PABD_LANES_H
#define PABD_LANES_H

#include <string.h>

#include "real.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#ifdef PABD_REAL_DOUBLE
#define LANES (VECTOR_BYTES / 8)
typedef int64_t lane_bits;
#else
#define LANES (VECTOR_BYTES / 4)
typedef int32_t lane_bits;
#endif
#define RECORD_PART (LANES < 8 ? LANES : 8) /* numbers of a record of eight in one vector */
#define LANES_FN static inline __attribute__((always_inline))

typedef real lanes __attribute__((vector_size(VECTOR_BYTES)));
typedef lane_bits lanes_mask __attribute__((vector_size(VECTOR_BYTES)));
typedef real record_part __attribute__((vector_size(RECORD_PART * sizeof(real)), aligned(sizeof(real))));

typedef struct lanes3 {
  lanes x, y, z;
} lanes3;
typedef struct lanes_sym3 {
  lanes xx, yy, zz, xy, xz, yz;
} lanes_sym3;
typedef struct lanes_quat {
  lanes w, x, y, z;
} lanes_quat;

LANES_FN lanes lanes_all(real a) {
  return (lanes){0} + a;
}
LANES_FN lanes lanes_select(lanes_mask mask, lanes a, lanes b) {
  return (lanes)((mask & (lanes_mask)a) | (~mask & (lanes_mask)b));
}
LANES_FN lanes lanes_max(lanes a, lanes b) {
  return lanes_select(a > b, a, b);
}
LANES_FN lanes lanes_sqrt(lanes a) {
  real t[LANES] __attribute__((aligned(VECTOR_BYTES)));
  memcpy(t, &a, sizeof t);
  for (int k = 0; k < LANES; ++k) t[k] = real_sqrt(t[k]);
  memcpy(&a, t, sizeof t);
  return a;
}

LANES_FN lanes3 l3(lanes x, lanes y, lanes z) {
  return (lanes3){x, y, z};
}
LANES_FN lanes3 l3_add(lanes3 a, lanes3 b) {
  return l3(a.x + b.x, a.y + b.y, a.z + b.z);
}
LANES_FN lanes3 l3_sub(lanes3 a, lanes3 b) {
  return l3(a.x - b.x, a.y - b.y, a.z - b.z);
}
LANES_FN lanes3 l3_scale(lanes s, lanes3 a) {
  return l3(s * a.x, s * a.y, s * a.z);
}
LANES_FN lanes3 l3_madd(lanes3 a, lanes s, lanes3 b) {
  return l3(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}
LANES_FN lanes l3_dot(lanes3 a, lanes3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
LANES_FN lanes3 l3_cross(lanes3 a, lanes3 b) {
  return l3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
LANES_FN lanes3 l3_select(lanes_mask mask, lanes3 a, lanes3 b) {
  return l3(lanes_select(mask, a.x, b.x), lanes_select(mask, a.y, b.y), lanes_select(mask, a.z, b.z));
}
LANES_FN lanes3 lanes_sym3_mul(lanes_sym3 s, lanes3 v) {
  return l3(s.xx * v.x + s.xy * v.y + s.xz * v.z, s.xy * v.x + s.yy * v.y + s.yz * v.z,
            s.xz * v.x + s.yz * v.y + s.zz * v.z);
}
LANES_FN lanes_quat lanes_quat_mul(lanes_quat a, lanes_quat b) {
  return (lanes_quat){a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                      a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
/* Rotation matrix of q: columns are the body's axes. */
LANES_FN void lanes_axes(lanes_quat q, lanes3 axis[3]) {
  lanes xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z, xy = q.x * q.y, xz = q.x * q.z, yz = q.y * q.z;
  lanes wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z, one = lanes_all(R(1)), two = lanes_all(R(2));
  axis[0] = l3(one - two * (yy + zz), two * (xy + wz), two * (xz - wy));
  axis[1] = l3(two * (xy - wz), one - two * (xx + zz), two * (yz + wx));
  axis[2] = l3(two * (xz + wy), two * (yz - wx), one - two * (xx + yy));
}
/* q diag(d) q^T v, with the axes of q */
LANES_FN lanes3 lanes_diagonal_mul(const lanes3 axis[3], lanes3 d, lanes3 v) {
  lanes3 sum = l3_scale(d.x * l3_dot(axis[0], v), axis[0]);
  sum = l3_madd(sum, d.y * l3_dot(axis[1], v), axis[1]);
  return l3_madd(sum, d.z * l3_dot(axis[2], v), axis[2]);
}
LANES_FN lanes_sym3 lanes_diagonal(const lanes3 axis[3], lanes3 d) {
  lanes3 x = l3_scale(d.x, axis[0]), y = l3_scale(d.y, axis[1]), z = l3_scale(d.z, axis[2]);
  return (lanes_sym3){
      x.x * axis[0].x + y.x * axis[1].x + z.x * axis[2].x, x.y * axis[0].y + y.y * axis[1].y + z.y * axis[2].y,
      x.z * axis[0].z + y.z * axis[1].z + z.z * axis[2].z, x.x * axis[0].y + y.x * axis[1].y + z.x * axis[2].y,
      x.x * axis[0].z + y.x * axis[1].z + z.x * axis[2].z, x.y * axis[0].z + y.y * axis[1].z + z.y * axis[2].z};
}
/* exp of the rotation vector r, |r| <= pi; sin and cos of half the angle by the series of real.h. */
LANES_FN lanes_quat lanes_quat_exp(lanes3 r) {
  lanes y = R(0.25) * l3_dot(r, r);
  lanes s = R(1) -
            y * (R(1.0 / 6) - y * (R(1.0 / 120) - y * (R(1.0 / 5040) - y * (R(1.0 / 362880) - y * R(1.0 / 39916800)))));
  lanes c =
      R(1) - y * (R(1.0 / 2) - y * (R(1.0 / 24) - y * (R(1.0 / 720) - y * (R(1.0 / 40320) - y * R(1.0 / 3628800)))));
  s = R(0.5) * s;
  return (lanes_quat){c, s * r.x, s * r.y, s * r.z};
}
LANES_FN lanes_quat lanes_quat_normalize(lanes_quat q) {
  lanes s = R(1) / lanes_sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  return (lanes_quat){s * q.w, s * q.x, s * q.y, s * q.z};
}

/* Lane k of the two vectors one after the other, picked by a mask that need not be a constant. */
#if defined(__clang__)
LANES_FN lanes lanes_pick(lanes a, lanes b, lanes_mask from) {
  lanes out;
  for (int k = 0; k < LANES; ++k) out[k] = from[k] < LANES ? a[from[k]] : b[from[k] - LANES];
  return out;
}
#else
#define lanes_pick __builtin_shuffle
#endif

/* Swaps bit `stage` of the row number with the same bit of the lane number, for `rows` vectors. */
#define LANES_EXCHANGE(r, rows, stage)                               \
  do {                                                               \
    lanes_mask low, high;                                            \
    for (int k = 0; k < LANES; ++k) {                                \
      low[k] = (k & (stage)) ? k - (stage) + LANES : k;              \
      high[k] = (k & (stage)) ? k + LANES : k + (stage);             \
    }                                                                \
    for (int i = 0; i < (rows); ++i)                                 \
      if (!(i & (stage))) {                                          \
        lanes exchange_a = (r)[i], exchange_b = (r)[i | (stage)];    \
        (r)[i] = lanes_pick(exchange_a, exchange_b, low);            \
        (r)[i | (stage)] = lanes_pick(exchange_a, exchange_b, high); \
      }                                                              \
  } while (0)

LANES_FN void lanes_transpose(lanes r[RECORD_PART]) {
  LANES_EXCHANGE(r, RECORD_PART, 1);
  if (RECORD_PART > 2) LANES_EXCHANGE(r, RECORD_PART, 2);
  if (RECORD_PART > 4) LANES_EXCHANGE(r, RECORD_PART, 4);
}

/* Vector of the parts at a (and, with 16 lanes, at b). */
LANES_FN lanes lanes_join(const real *a, const real *b) {
  record_part low, high;
  memcpy(&low, a, sizeof low);
#if VECTOR_BYTES == 64 && !defined(PABD_REAL_DOUBLE)
  memcpy(&high, b, sizeof high);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  (void)b, (void)high;
  return low;
#endif
}

/* out[k] = number k of the eight at base + stride * index[lane]. */
LANES_FN void lanes_load8(const real *base, int32_t stride, const int32_t *index, lanes out[8]) {
  for (int part = 0; part < 8 / RECORD_PART; ++part) {
    lanes *r = out + part * RECORD_PART;
    for (int j = 0; j < RECORD_PART; ++j) {
      const real *a = base + (size_t)stride * (size_t)index[j] + part * RECORD_PART;
      const real *b = base + (size_t)stride * (size_t)index[(j + RECORD_PART) % LANES] + part * RECORD_PART;
      r[j] = lanes_join(a, b);
    }
    lanes_transpose(r);
  }
}

/* The reverse, for lanes first .. end and only for indices below `limit`. Overwrites in[]. */
LANES_FN void lanes_store8(real *base, int32_t stride, const int32_t *index, int32_t limit, int first, int end,
                           lanes in[8]) {
  for (int part = 0; part < 8 / RECORD_PART; ++part) {
    lanes *r = in + part * RECORD_PART;
    lanes_transpose(r);
    for (int l = first; l < end; ++l) {
      if (index[l] >= limit) continue;
      memcpy(base + (size_t)stride * (size_t)index[l] + part * RECORD_PART,
             (const char *)&r[l % RECORD_PART] + sizeof(record_part) * (size_t)(l / RECORD_PART), sizeof(record_part));
    }
  }
}

#endif
