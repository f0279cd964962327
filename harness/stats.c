/* Statistics of timing samples. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

double pabd_quantile(const double *sorted, int32_t count, double q) {
  if (count <= 0) return NAN;
  double rank = q * (count - 1);
  int32_t low = (int32_t)floor(rank);
  if (low < 0) return sorted[0];
  if (low >= count - 1) return sorted[count - 1];
  return sorted[low] + (rank - low) * (sorted[low + 1] - sorted[low]);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

pabd_summary pabd_summarize(const double *values, int32_t count) {
  pabd_summary summary = {0, NAN, NAN, NAN, NAN, NAN, NAN};
  double *sorted = malloc(((size_t)count + 1) * sizeof *sorted);
  if (!sorted) return summary;
  int32_t kept = 0;
  for (int32_t k = 0; k < count; ++k) {
    if (isfinite(values[k])) sorted[kept++] = values[k];
  }
  if (kept > 0) {
    qsort(sorted, (size_t)kept, sizeof *sorted, compare_doubles);
    double sum = 0;
    for (int32_t k = 0; k < kept; ++k) sum += sorted[k];
    summary.count = kept;
    summary.mean = sum / kept;
    summary.p50 = pabd_quantile(sorted, kept, 0.50);
    summary.p95 = pabd_quantile(sorted, kept, 0.95);
    summary.p99 = pabd_quantile(sorted, kept, 0.99);
    summary.min = sorted[0];
    summary.max = sorted[kept - 1];
  }
  free(sorted);
  return summary;
}
