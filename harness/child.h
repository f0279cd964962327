/* One run in a child process: the engine steps and the judge judges there; the parent watches the clock and the exit.
 *
 * What the child finds out lies in shared memory, so that a run that crashes, hangs or is killed still leaves how far
 * it came, its samples and the metrics of its last snapshot. The parent never loads an engine. */
#ifndef PABD_CHILD_H
#define PABD_CHILD_H

#include <signal.h>

#include "engine_load.h"
#include "presets.h"
#include "record.h"
#include "trajectory.h"

#define PABD_WARNING_CAPACITY 12

typedef enum pabd_run_state {
  PABD_RUN_OK,
  PABD_RUN_DIVERGED,
  PABD_RUN_CRASHED,
  PABD_RUN_TIMEOUT,
  PABD_RUN_NA,          /* the engine cannot do this, or is not available */
  PABD_RUN_BAD_INPUT,   /* the engine refused a setting or the scene as wrong: no record, exit code 2 */
  PABD_RUN_INTERRUPTED, /* by the person: no record */
  PABD_RUN_FAILED,      /* the harness itself could not do its work: no record, exit code 2 */
} pabd_run_state;

typedef struct pabd_job {
  const pabd_case *c;
  const pabd_engine_desc *engine;
  const pabd_key_value *settings;
  int32_t setting_count;
  int32_t threads;
  double time_limit;   /* s */
  int32_t with_judge;  /* 0: only hashes (and states) are wanted */
  int32_t keep_states; /* keep poses and velocities of all frames that fit in state_limit bytes */
  size_t state_limit;
  int32_t trajectory;           /* descriptor of a new file, or -1 */
  int32_t stride;               /* of the trajectory, >= 1 */
  int32_t value_size;           /* 4 or 8 */
  int32_t trace_from, trace_to; /* frames, from 1; 0: none */
} pabd_job;

/* Per-frame samples and what the engine says of itself. Arrays have frame_count + 1 entries; entry f belongs to frame
 * f, entry 0 is unused. Owned by the result. */
typedef struct pabd_samples {
  const double *wall_ms, *cpu_ms;      /* of step(), by the harness's clocks */
  const double *self_ms;               /* the engine's own step time, NAN where it gives none */
  const double *collide_ms, *solve_ms; /* sums over its stages, NAN where it gives none */
  const uint64_t *hash;                /* state hash after each frame; entry 0 after reading the start state */
  const double *states; /* [state_frames][body_count][13]: pose, velocity; frame 0 first; NULL unless kept */
  int32_t state_frames;
  int32_t stage_count;
  struct {
    char name[48];
    int32_t is_collide;
    const double *ms; /* NAN in frames where the stage did not report */
  } stages[PABD_STAGE_MAX];
  int32_t counter_count;
  struct {
    char name[48], unit[16];
    double last, sum, max; /* sum and max over frames with a finite value */
    int32_t count;
  } counters[PABD_COUNTER_MAX];
} pabd_samples;

typedef struct pabd_run_result {
  pabd_run_state state;
  char reason[700]; /* one line; empty when all is well */
  int32_t frames_done;
  uint64_t state_hash; /* over all frames done, the start state included */
  int32_t has_hash;
  pabd_metrics metrics;  /* by the judge, then "trace.*" series */
  int32_t metrics_frame; /* the frame up to which the metrics go */
  pabd_samples samples;
  int32_t setting_count;
  char (*settings)[PABD_VALUE_SIZE]; /* values in force, in the order of the engine's list */
  double create_ms, wall_s;          /* wall_s: the whole child */
  double peak_rss_mib;
  uint32_t trajectory_samples;
  char output[2048]; /* the last lines that the child printed */
  int32_t warning_count;
  char warnings[PABD_WARNING_CAPACITY][200];
  void *shared; /* the mapping that the arrays above lie in */
  size_t shared_size;
} pabd_run_result;

/* Called by the parent a few times a second while the child runs. */
typedef void (*pabd_tick_fn)(int32_t frame, int32_t frame_count, void *user);

/* Runs the job to its end. `stop` (may be NULL): set by a signal handler to end the run early. `out` must be freed. */
void pabd_child_run(const pabd_job *job, const volatile sig_atomic_t *stop, pabd_tick_fn tick, void *user,
                    pabd_run_result *out);
void pabd_run_result_free(pabd_run_result *result);
/* "ok", "diverged", ...: the record's status; NULL for states that make no record. */
const char *pabd_run_state_text(pabd_run_state state);

#endif
