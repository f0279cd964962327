/* Ratios with intervals, and verdicts. See compare_stats.h.
 *
 * The percentile bootstrap of a median needs no resampled array: draw indices, count them, walk to the middle. */
#include "compare_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define RESAMPLES 10000
#define BOOTSTRAP_LIMIT 256 /* samples a side; more are thinned, their interval is narrow anyway */

pabd_rules pabd_rules_default(void) {
  return (pabd_rules){.time_ratio = 1.10, .time_interval = 1.05, .accuracy = 0.01, .floor = 1e-9, .least_count = 3};
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double pabd_median(double *values, int32_t count) {
  if (count <= 0) return NAN;
  qsort(values, (size_t)count, sizeof *values, compare_doubles);
  return pabd_quantile(values, count, 0.5);
}

/* splitmix64: intervals must be the same whenever the data are. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* Median of one resample with replacement of sorted values, count <= BOOTSTRAP_LIMIT. */
static double resampled_median(const double *sorted, int32_t count, uint64_t *state) {
  uint16_t drawn[BOOTSTRAP_LIMIT] = {0};
  for (int32_t k = 0; k < count; ++k) ++drawn[(next_random(state) >> 32) * (uint64_t)count >> 32];
  int32_t low_rank = (count - 1) / 2, high_rank = count / 2, seen = 0;
  double low = NAN;
  for (int32_t k = 0; k < count; ++k) {
    seen += drawn[k];
    if (isnan(low) && seen > low_rank) low = sorted[k];
    if (seen > high_rank) return 0.5 * (low + sorted[k]);
  }
  return sorted[count - 1];
}

/* Every n-th of sorted values when there are too many for the bootstrap. */
static int32_t thin(const double *sorted, int32_t count, double *out) {
  int32_t kept = count < BOOTSTRAP_LIMIT ? count : BOOTSTRAP_LIMIT;
  for (int32_t k = 0; k < kept; ++k) out[k] = sorted[(int64_t)k * count / kept];
  return kept;
}

static void interval(double *draws, int32_t count, pabd_ratio *out) {
  qsort(draws, (size_t)count, sizeof *draws, compare_doubles);
  out->low = pabd_quantile(draws, count, 0.025);
  out->high = pabd_quantile(draws, count, 0.975);
}

pabd_ratio pabd_ratio_of(double *before, int32_t before_count, double *after, int32_t after_count) {
  pabd_ratio out = {.before = pabd_median(before, before_count),
                    .after = pabd_median(after, after_count),
                    .ratio = NAN,
                    .low = NAN,
                    .high = NAN,
                    .before_count = before_count,
                    .after_count = after_count};
  if (before_count <= 0 || after_count <= 0) return out;
  out.is_exact = before[0] == before[before_count - 1] && after[0] == after[after_count - 1];
  if (out.before == 0 || out.before * out.after < 0) return out;
  out.ratio = out.after / out.before;
  if (out.is_exact) {
    out.low = out.high = out.ratio;
    return out;
  }
  double a[BOOTSTRAP_LIMIT], b[BOOTSTRAP_LIMIT], *draws = malloc(RESAMPLES * sizeof *draws);
  if (!draws) return out;
  int32_t a_count = thin(before, before_count, a), b_count = thin(after, after_count, b);
  uint64_t state = 1;
  for (int32_t k = 0; k < RESAMPLES; ++k) {
    double x = resampled_median(a, a_count, &state), y = resampled_median(b, b_count, &state);
    draws[k] = x != 0 ? y / x : y == 0 ? 1 : copysign(HUGE_VAL, y);
  }
  interval(draws, RESAMPLES, &out);
  free(draws);
  return out;
}

pabd_ratio pabd_ratio_of_draws(double before, double after, double *draws, int32_t draw_count, int32_t count) {
  pabd_ratio out = {.before = before,
                    .after = after,
                    .ratio = before > 0 ? after / before : NAN,
                    .low = NAN,
                    .high = NAN,
                    .before_count = count,
                    .after_count = count};
  if (before > 0) interval(draws, draw_count, &out);
  return out;
}

pabd_change pabd_change_of_time(const pabd_rules *rules, const pabd_ratio *ratio, int higher_is_better) {
  if (!(ratio->before > 0 && ratio->after > 0)) return PABD_CHANGE_INCOMPARABLE;
  if (ratio->before_count < rules->least_count || ratio->after_count < rules->least_count || isnan(ratio->low))
    return PABD_CHANGE_UNDECIDED;
  int is_up = ratio->ratio > rules->time_ratio && ratio->low > rules->time_interval;
  int is_down = ratio->ratio < 1 / rules->time_ratio && ratio->high < 1 / rules->time_interval;
  if (is_up) return higher_is_better ? PABD_CHANGE_BETTER : PABD_CHANGE_WORSE;
  if (is_down) return higher_is_better ? PABD_CHANGE_WORSE : PABD_CHANGE_BETTER;
  return ratio->low > 1 / rules->time_ratio && ratio->high < rules->time_ratio ? PABD_CHANGE_NONE
                                                                               : PABD_CHANGE_UNDECIDED;
}

pabd_change pabd_change_of_metric(const pabd_rules *rules, const pabd_ratio *ratio, const char *better) {
  if (isnan(ratio->before) || isnan(ratio->after)) return PABD_CHANGE_INCOMPARABLE;
  double before = fabs(ratio->before), after = fabs(ratio->after), size = fmax(before, after);
  double change = fabs(ratio->after - ratio->before);
  if (change <= rules->floor || change <= rules->accuracy * size) return PABD_CHANGE_NONE;
  if (!ratio->is_exact) {
    /* Repeats scatter: a change is one only when the interval of the ratio is clear of 1. */
    if (ratio->before_count < rules->least_count || ratio->after_count < rules->least_count)
      return PABD_CHANGE_UNDECIDED;
    if (!isnan(ratio->low) && ratio->low <= 1 && ratio->high >= 1) return PABD_CHANGE_UNDECIDED;
  }
  /* Errors are judged by their size: a drift of -2 is worse than one of 1. */
  if (strcmp(better, "lower") == 0) {
    if (fabs(after - before) <= rules->floor || fabs(after - before) <= rules->accuracy * size) return PABD_CHANGE_NONE;
    return after > before ? PABD_CHANGE_WORSE : PABD_CHANGE_BETTER;
  }
  if (strcmp(better, "higher") == 0) return ratio->after < ratio->before ? PABD_CHANGE_WORSE : PABD_CHANGE_BETTER;
  return PABD_CHANGE_OTHER;
}

const char *pabd_change_text(pabd_change change) {
  static const char *const texts[PABD_CHANGE_COUNT] = {"no difference", "better",  "worse",
                                                       "undecided",     "changed", "not comparable"};
  return texts[change];
}
