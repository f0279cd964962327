/* Metrics, series and the JSON record of one run (schema 1). See harness/README.md for the schema in words. */
#ifndef PABD_RECORD_H
#define PABD_RECORD_H

#include <stdint.h>

#include "pabd_status.h"

#define PABD_RECORD_SCHEMA 1

typedef struct pabd_metric {
  char key[64];
  double value; /* NAN is written as null */
  char unit[16];
  char better[8]; /* lower, higher, equal, info */
} pabd_metric;

typedef struct pabd_series {
  char key[64];
  char unit[16];
  int32_t count;
  double *values; /* owned */
} pabd_series;

/* A growable set of metrics and series. */
typedef struct pabd_metrics {
  int32_t metric_count, metric_capacity;
  pabd_metric *metrics;
  int32_t series_count, series_capacity;
  pabd_series *series;
} pabd_metrics;

void pabd_metrics_init(pabd_metrics *m);
void pabd_metrics_free(pabd_metrics *m);
/* Adds or replaces. Aborts the run with PABD_ERR_MEMORY only. */
pabd_status pabd_metrics_set(pabd_metrics *m, const char *key, double value, const char *unit, const char *better);
/* NULL when absent. */
const pabd_metric *pabd_metrics_get(const pabd_metrics *m, const char *key);
/* Appends one value to the series of that key (created on first use). */
pabd_status pabd_series_append(pabd_metrics *m, const char *key, const char *unit, double value);

#endif
