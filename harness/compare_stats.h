/* Statistics of comparisons: ratios of medians with their bootstrap interval, and the rules that turn numbers into
 * verdicts. The rule for time: a change counts when the ratio is beyond `time_ratio` *and* the interval excludes
 * `time_interval`; its absence counts when the interval stays within `time_ratio`; all else is undecided. */
#ifndef PABD_COMPARE_STATS_H
#define PABD_COMPARE_STATS_H

#include <stdint.h>

typedef enum pabd_change {
  PABD_CHANGE_NONE,
  PABD_CHANGE_BETTER,
  PABD_CHANGE_WORSE,
  PABD_CHANGE_UNDECIDED,    /* too few or too scattered samples to say */
  PABD_CHANGE_OTHER,        /* differs, but the metric has no direction */
  PABD_CHANGE_INCOMPARABLE, /* the two numbers do not belong together */
  PABD_CHANGE_COUNT
} pabd_change;

typedef struct pabd_rules {
  double time_ratio;    /* median ratio from which a time counts as changed: 1.10 */
  double time_interval; /* the interval must exclude this ratio: 1.05 */
  double accuracy;      /* relative change from which a simulated metric counts as changed: 0.01 */
  double floor;         /* changes of simulated metrics below this (in their unit) are rounding: 1e-9 */
  int32_t least_count;  /* launches on each side below which a time is undecided: 3 */
} pabd_rules;

typedef struct pabd_ratio {
  double before, after;    /* medians */
  double ratio, low, high; /* after / before with its 95 % interval; NAN where it has no sense */
  int32_t before_count, after_count;
  int32_t is_exact; /* all values of each side are the same bits */
} pabd_ratio;

pabd_rules pabd_rules_default(void);
/* Median; NAN when count is 0. `values` is sorted in place. */
double pabd_median(double *values, int32_t count);
/* Ratio of the medians of two independent samples; interval by 10,000 resamples, the same for the same data. Sorts both
 * arrays. */
pabd_ratio pabd_ratio_of(double *before, int32_t before_count, double *after, int32_t after_count);
/* A ratio whose interval comes from resamples drawn elsewhere, `count` independent samples a side. Sorts `draws`. */
pabd_ratio pabd_ratio_of_draws(double before, double after, double *draws, int32_t draw_count, int32_t count);
/* Verdict on a time. `higher_is_better`: such as a real-time factor. */
pabd_change pabd_change_of_time(const pabd_rules *rules, const pabd_ratio *ratio, int higher_is_better);
/* Verdict on a simulated metric; better: "lower" (in size), "higher", else without direction. */
pabd_change pabd_change_of_metric(const pabd_rules *rules, const pabd_ratio *ratio, const char *better);
/* "no difference", "better", ... */
const char *pabd_change_text(pabd_change change);

#endif
