/* Metrics and series: the growable set that the judge and the child process fill.
 *
 * Order of insertion is kept, because records and reports print in it. A key appears once; setting it again replaces
 * value, unit and direction. Lookups are linear: a run has some dozens of keys. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pabd_metrics_init(pabd_metrics *m) {
  memset(m, 0, sizeof *m);
}

void pabd_metrics_free(pabd_metrics *m) {
  if (!m) return;
  for (int32_t k = 0; k < m->series_count; ++k) free(m->series[k].values);
  free(m->series);
  free(m->metrics);
  memset(m, 0, sizeof *m);
}

/* Doubles the array when it is full. Returns 0 when memory is out; the array is then as before. */
static int grow(void **items, int32_t count, int32_t *capacity, size_t size) {
  if (count < *capacity) return 1;
  int32_t wanted = *capacity ? *capacity * 2 : 16;
  void *moved = realloc(*items, (size_t)wanted * size);
  if (!moved) return 0;
  *items = moved;
  *capacity = wanted;
  return 1;
}

pabd_status pabd_metrics_set(pabd_metrics *m, const char *key, double value, const char *unit, const char *better) {
  pabd_metric *metric = (pabd_metric *)pabd_metrics_get(m, key);
  if (!metric) {
    if (!grow((void **)&m->metrics, m->metric_count, &m->metric_capacity, sizeof *m->metrics)) return PABD_ERR_MEMORY;
    metric = &m->metrics[m->metric_count++];
    snprintf(metric->key, sizeof metric->key, "%s", key);
  }
  metric->value = value;
  snprintf(metric->unit, sizeof metric->unit, "%s", unit);
  snprintf(metric->better, sizeof metric->better, "%s", better);
  return PABD_OK;
}

const pabd_metric *pabd_metrics_get(const pabd_metrics *m, const char *key) {
  for (int32_t k = 0; k < m->metric_count; ++k) {
    if (strcmp(m->metrics[k].key, key) == 0) return &m->metrics[k];
  }
  return NULL;
}

pabd_status pabd_series_append(pabd_metrics *m, const char *key, const char *unit, double value) {
  pabd_series *series = NULL;
  for (int32_t k = 0; k < m->series_count && !series; ++k) {
    if (strcmp(m->series[k].key, key) == 0) series = &m->series[k];
  }
  if (!series) {
    if (!grow((void **)&m->series, m->series_count, &m->series_capacity, sizeof *m->series)) return PABD_ERR_MEMORY;
    series = &m->series[m->series_count++];
    memset(series, 0, sizeof *series);
    snprintf(series->key, sizeof series->key, "%s", key);
    snprintf(series->unit, sizeof series->unit, "%s", unit);
  }
  /* The capacity follows from the count (next power of two from 64), so the struct needs no field for it. */
  int32_t count = series->count;
  if (count == 0 || (count >= 64 && (count & (count - 1)) == 0)) {
    size_t wanted = count == 0 ? 64 : (size_t)count * 2;
    double *moved = realloc(series->values, wanted * sizeof *moved);
    if (!moved) return PABD_ERR_MEMORY;
    series->values = moved;
  }
  series->values[series->count++] = value;
  return PABD_OK;
}
