/* Side-by-side timing of two builds of an engine, and what of them is exact.
 *
 * Launches (child processes) come in blocks of six: base, base again ("twin") and head in a random order, then the same
 * three backwards, so that drift of the machine's speed meets all alike. A frame is the same work in every launch of a
 * side, and other load only ever adds to its time: so the fastest launch of each frame counts, and a side's time is the
 * sum over frames. The ratio head/base of a row (the whole step, its collide and solve parts, every stage) has its
 * interval from resampling whole blocks. The ratio twin/base is the A/A test: a batch goes on until that test is narrow
 * enough for every row that is gated, or the limit of blocks is reached. It never looks at the head to decide when to
 * stop. */
#ifndef PABD_PERF_MEASURE_H
#define PABD_PERF_MEASURE_H

#include <signal.h>

#include "child.h"
#include "compare_stats.h"

#define PABD_PERF_ROWS (PABD_STAGE_MAX + 3)

typedef enum pabd_perf_side { PABD_PERF_BASE, PABD_PERF_TWIN, PABD_PERF_HEAD, PABD_PERF_SIDES } pabd_perf_side;

/* One build of an engine with its settings. */
typedef struct pabd_perf_build {
  const pabd_engine_desc *engine;
  const pabd_key_value *settings;
  int32_t setting_count;
} pabd_perf_build;

typedef struct pabd_perf_row {
  char name[48];
  double base_ms, head_ms; /* a frame, median over blocks */
  double share;            /* of the base's step, 0..1 */
  pabd_ratio change, self; /* head over base, twin over base */
  int32_t is_gated;        /* long enough to be judged */
  pabd_change verdict, twin_verdict;
} pabd_perf_row;

typedef struct pabd_perf_times {
  int32_t row_count, block_count, frame_count;
  pabd_perf_row rows[PABD_PERF_ROWS]; /* the step first, then collide, solve, stages */
} pabd_perf_times;

/* One launch of everything with the judge, for what is exact. */
typedef struct pabd_perf_exact {
  pabd_run_result result;
  double instructions; /* user instructions of the launch; NAN when the machine does not give them */
} pabd_perf_exact;

typedef struct pabd_perf_setup {
  const pabd_case *c;
  int32_t threads, warmup;
  double time_limit; /* s, of one launch */
  pabd_perf_build builds[PABD_PERF_SIDES];
  const volatile sig_atomic_t *stop;
  const pabd_rules *rules;
} pabd_perf_setup;

/* Opens the counter of user instructions for this process and its children; -1 with the reason in `why`. */
int pabd_perf_open_instructions(char *why, size_t size);
/* One launch of a side with the judge. `counter`: of pabd_perf_open_instructions or -1. */
void pabd_perf_run_exact(const pabd_perf_setup *setup, pabd_perf_side side, int counter, pabd_perf_exact *out);
/* One batch: `least` to `most` blocks of launches of `frame_count` frames each. PABD_ERR_INTERNAL with the reason when
 * a launch fails. */
pabd_status pabd_perf_run_times(const pabd_perf_setup *setup, int32_t least, int32_t most, int32_t frame_count,
                                uint64_t seed, pabd_perf_times *out, pabd_error *error);

#endif
