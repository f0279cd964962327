/* Integer primitives: scan and radix sort against plain definitions, and the same result for any number of threads. */
#include "state.h"
#include "test.h"

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

TEST(scan_is_exclusive) {
  int32_t values[5] = {3, 0, 2, 7, 1};
  CHECK_INT(pabd_scan_exclusive(values, 5), 13);
  const int32_t expected[5] = {0, 3, 3, 5, 12};
  for (int k = 0; k < 5; ++k) CHECK_INT(values[k], expected[k]);
  CHECK_INT(pabd_scan_exclusive(values, 0), 0);
  CHECK_INT(values[0], 0);
}

/* Keys with all bits in play, with only low bits, with few values (many equal keys), already sorted and reversed. */
static void fill_keys(uint64_t *keys, int32_t count, int kind) {
  uint64_t seed = 7u + (uint64_t)kind;
  for (int32_t i = 0; i < count; ++i) {
    uint64_t r = next_random(&seed);
    keys[i] = kind == 0   ? r
              : kind == 1 ? r & 0x3ff
              : kind == 2 ? (r & 3) << 61
              : kind == 3 ? (uint64_t)i << 20
                          : (uint64_t)(count - i) << 32 | (uint64_t)i;
  }
}

TEST(sort_matches_qsort_for_any_thread_count) {
  const int32_t counts[] = {0, 1, 2, 31, 33, 1000, 100003};
  for (size_t n = 0; n < sizeof counts / sizeof counts[0]; ++n) {
    int32_t count = counts[n];
    size_t bytes = sizeof(uint64_t) * (size_t)(count + 1);
    uint64_t *keys = malloc(bytes), *scratch = malloc(bytes), *expected = malloc(bytes);
    for (int kind = 0; kind < 5; ++kind) {
      fill_keys(expected, count, kind);
      qsort(expected, (size_t)count, sizeof *expected, compare_u64);
      for (int32_t threads = 1; threads <= 5; ++threads) {
        fill_keys(keys, count, kind);
        keys[count] = 12345;
        pabd_sort_u64(keys, scratch, count, threads);
        int32_t wrong = 0;
        for (int32_t i = 0; i < count; ++i) wrong += keys[i] != expected[i];
        CHECK_MSG(wrong == 0, "%d of %d keys out of place, kind %d, %d threads", wrong, count, kind, threads);
        CHECK_INT(keys[count], 12345);
      }
    }
    free(keys), free(scratch), free(expected);
  }
}
