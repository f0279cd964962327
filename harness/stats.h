/* Statistics of timing samples. */
#ifndef PABD_STATS_H
#define PABD_STATS_H

#include <stdint.h>

typedef struct pabd_summary {
  int32_t count;
  double mean, p50, p95, p99, max, min;
} pabd_summary;

/* Quantile q in 0..1 of sorted values, linear between neighbors (rank q (count - 1)). NAN when count is 0. */
double pabd_quantile(const double *sorted, int32_t count, double q);
/* Copies and sorts; values that are not finite are left out. All fields NAN when nothing is left or memory is out. */
pabd_summary pabd_summarize(const double *values, int32_t count);

#endif
