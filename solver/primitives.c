/* Integer primitives with one result for any number of threads: exclusive scan, radix sort.
 *
 * The sort is a least-significant-digit radix sort of 8-bit digits. It is stable and the keys of its callers are
 * unique, so the order is a property of the keys alone; digits that all keys share are skipped (codes rarely fill 64
 * bits). */
#include <omp.h>
#include <string.h>

#include "state.h"

#define RADIX 256
#define SORT_THREADS_MAX 64
#define SORT_KEYS_PER_THREAD 16384 /* below this a thread costs more than it saves */

int32_t pabd_scan_exclusive(int32_t *values, int32_t count) {
  int32_t sum = 0;
  for (int32_t i = 0; i < count; ++i) {
    int32_t value = values[i];
    values[i] = sum;
    sum += value;
  }
  return sum;
}

static void insertion_sort(uint64_t *keys, int32_t count) {
  for (int32_t i = 1; i < count; ++i) {
    uint64_t key = keys[i];
    int32_t k = i;
    for (; k > 0 && keys[k - 1] > key; --k) keys[k] = keys[k - 1];
    keys[k] = key;
  }
}

/* One stable pass by the digit at `shift`, serially. Returns 0 (nothing moved) when all keys share the digit. */
static int pass_serial(const uint64_t *from, uint64_t *to, int32_t count, int shift) {
  int32_t offset[RADIX] = {0};
  for (int32_t i = 0; i < count; ++i) ++offset[from[i] >> shift & (RADIX - 1)];
  if (offset[from[0] >> shift & (RADIX - 1)] == count) return 0;
  pabd_scan_exclusive(offset, RADIX);
  for (int32_t i = 0; i < count; ++i) to[offset[from[i] >> shift & (RADIX - 1)]++] = from[i];
  return 1;
}

/* The same by `parts` threads: each counts and moves one contiguous part, and parts keep their order within a digit. */
static int pass_parallel(const uint64_t *from, uint64_t *to, int32_t count, int shift, int32_t parts) {
  int32_t offset[SORT_THREADS_MAX][RADIX];
#pragma omp parallel for schedule(static) num_threads(parts)
  for (int32_t t = 0; t < parts; ++t) {
    int32_t begin = (int32_t)((int64_t)count * t / parts), end = (int32_t)((int64_t)count * (t + 1) / parts);
    memset(offset[t], 0, sizeof offset[t]);
    for (int32_t i = begin; i < end; ++i) ++offset[t][from[i] >> shift & (RADIX - 1)];
  }
  int32_t sum = 0, trivial = 0;
  for (int32_t d = 0; d < RADIX; ++d) {
    int32_t before = sum;
    for (int32_t t = 0; t < parts; ++t) {
      int32_t value = offset[t][d];
      offset[t][d] = sum;
      sum += value;
    }
    trivial |= sum - before == count;
  }
  if (trivial) return 0;
#pragma omp parallel for schedule(static) num_threads(parts)
  for (int32_t t = 0; t < parts; ++t) {
    int32_t begin = (int32_t)((int64_t)count * t / parts), end = (int32_t)((int64_t)count * (t + 1) / parts);
    for (int32_t i = begin; i < end; ++i) to[offset[t][from[i] >> shift & (RADIX - 1)]++] = from[i];
  }
  return 1;
}

void pabd_sort_u64(uint64_t *keys, uint64_t *scratch, int32_t count, int32_t threads) {
  if (count <= 32) {
    insertion_sort(keys, count);
    return;
  }
  int32_t parts = count / SORT_KEYS_PER_THREAD;
  if (parts > threads) parts = threads;
  if (parts > SORT_THREADS_MAX) parts = SORT_THREADS_MAX;
  uint64_t *from = keys, *to = scratch;
  for (int shift = 0; shift < 64; shift += 8) {
    int moved = parts > 1 ? pass_parallel(from, to, count, shift, parts) : pass_serial(from, to, count, shift);
    if (!moved) continue;
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != keys) memcpy(keys, from, sizeof *keys * (size_t)count);
}
