/* What a device needs beside the view: ranges and counts that live in its memory, and arrays of its own.
 *
 * No count comes back to the host within a frame. A kernel runs over a range, and its length is read on the device; the
 * launch is as wide as the capacity, or as the device (rows are taken in strides). */
#ifndef PABD_DEVICE_H
#define PABD_DEVICE_H

#include "state.h"

/* Ranges of rows. Those up to `fixed` are set once by the host; the others by kernels. */
/* clang-format off */
#define PABD_RANGES_LIST(X) \
  X(one) X(bodies) X(bodies_plus1) X(shapes) X(shapes_plus1) X(bonds_all) X(bonds) X(pairs_capacity) \
  X(pairs_plus1) X(fixed_bodies) X(fixed_plus1) X(pass) X(leaves) X(nodes) X(pairs) X(contacts) X(predict) \
  X(dynamic) X(jacobi) X(sweep_bodies) X(sweep_contacts) X(sweep_bonds)
/* clang-format on */

typedef enum pabd_device_range {
#define X(name) PABD_RANGE_##name,
  PABD_RANGES_LIST(X)
#undef X
      PABD_RANGE_COUNT
} pabd_device_range;

typedef struct pabd_rows {
  int32_t first, count;
} pabd_rows;

/* Statistics of a frame, in one reduction. */
typedef struct pabd_summary {
  real residual, defect, bond_error; /* N, 1, m */
  int32_t closed;                    /* contacts under load */
  int32_t lost;                      /* lowest body whose state is not finite, or INT32_MAX */
} pabd_summary;

/* In device memory; read back as a whole when someone asks. */
typedef struct pabd_counts {
  pabd_rows range[PABD_RANGE_COUNT];
  int32_t leaf_count, big_count, pair_slots, pair_count, contact_count, old_count;
  int32_t overflow_pairs, overflow_contacts;
  int32_t free_count, jacobi_count;
  int32_t sweeps;               /* done in this frame, where a tolerance may end them */
  vec3 morton_lo, morton_scale; /* m, cells/m */
  real size;                    /* m, of the scene */
  pabd_summary summary;
} pabd_counts;

/* Passed to kernels by value beside the view. */
typedef struct pabd_device {
  pabd_counts *counts;
#define DEVICE_FIELD(type, name, rows, planes, unit, writer) type *name;
#include "device_fields.def"
#undef DEVICE_FIELD
  int32_t capacity_pair, fixed_count, dynamic_count, world_count;
  double tolerance; /* N: sweeps end below this residual; 0 = never */
  /* one level of a reduction: rows [0, to_count) fold `from_count` values that start at `from`; -1: from the state */
  int32_t from, from_count, to, to_count;
} pabd_device;

#define PABD_REDUCE 64 /* values folded by one row of a reduction */

#endif
