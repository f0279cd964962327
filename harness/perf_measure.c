/* Blocks of interleaved launches and their ratios. See perf_measure.h. */
#include "perf_measure.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_LAUNCHES (2 * PABD_PERF_SIDES)

int pabd_perf_open_instructions(char *why, size_t size) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.type = PERF_TYPE_HARDWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.inherit = 1; /* children are added when they end */
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  int counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0ul);
  if (counter < 0) snprintf(why, size, "the machine gives no instruction counts: %s", strerror(errno));
  return counter;
}

static double read_counter(int counter) {
  uint64_t value;
  return counter >= 0 && read(counter, &value, sizeof value) == (ssize_t)sizeof value ? (double)value : NAN;
}

static void launch(const pabd_perf_setup *setup, pabd_perf_side side, const pabd_case *c, int with_judge,
                   pabd_run_result *out) {
  const pabd_perf_build *build = &setup->builds[side];
  pabd_job job = {.c = c,
                  .engine = build->engine,
                  .settings = build->settings,
                  .setting_count = build->setting_count,
                  .threads = setup->threads,
                  .time_limit = setup->time_limit,
                  .with_judge = with_judge,
                  .trajectory = -1,
                  .stride = 1,
                  .value_size = 4};
  pabd_child_run(&job, setup->stop, NULL, NULL, out);
}

void pabd_perf_run_exact(const pabd_perf_setup *setup, pabd_perf_side side, int counter, pabd_perf_exact *out) {
  double begin = read_counter(counter);
  launch(setup, side, setup->c, 1, &out->result);
  out->instructions = read_counter(counter) - begin;
}

/* A batch under way. */
typedef struct batch {
  const pabd_perf_setup *setup;
  int32_t row_count, frame_count, block_count, block_capacity;
  char names[PABD_PERF_ROWS][48];
  /* Shape [block_capacity][PABD_PERF_SIDES][PABD_PERF_ROWS][frame_count], ms: faster of the side's two launches in the
   * block; INFINITY where a row did not report. Written by keep_launch. */
  float *ms;
} batch;

static float *frames_of(const batch *b, int32_t block, pabd_perf_side side, int32_t row) {
  return b->ms +
         (((size_t)block * PABD_PERF_SIDES + (size_t)side) * PABD_PERF_ROWS + (size_t)row) * (size_t)b->frame_count;
}

/* Index of the row of that name; it is added when there is room, else -1. */
static int32_t find_row(batch *b, const char *name) {
  int32_t at = 0;
  while (at < b->row_count && strcmp(b->names[at], name) != 0) ++at;
  if (at == PABD_PERF_ROWS) return -1;
  if (at == b->row_count) snprintf(b->names[b->row_count++], sizeof b->names[0], "%.47s", name);
  return at;
}

static void keep_row(batch *b, pabd_perf_side side, const char *name, const double *ms) {
  int32_t row = find_row(b, name);
  if (row < 0) return;
  float *kept = frames_of(b, b->block_count, side, row);
  for (int32_t k = 0; k < b->frame_count; ++k) kept[k] = fminf(kept[k], (float)ms[k + 1]); /* NAN loses */
}

static void keep_launch(batch *b, pabd_perf_side side, const pabd_samples *samples) {
  keep_row(b, side, "step", samples->wall_ms);
  keep_row(b, side, "collide", samples->collide_ms);
  keep_row(b, side, "solve", samples->solve_ms);
  for (int32_t k = 0; k < samples->stage_count; ++k) keep_row(b, side, samples->stages[k].name, samples->stages[k].ms);
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Adds a block: six launches, mirrored in random order. */
static pabd_status run_block(batch *b, const pabd_case *c, uint64_t *seed, pabd_error *error) {
  pabd_perf_side order[BLOCK_LAUNCHES] = {PABD_PERF_BASE, PABD_PERF_TWIN, PABD_PERF_HEAD};
  for (uint64_t k = PABD_PERF_SIDES - 1; k > 0; --k) {
    uint64_t j = next_random(seed) % (k + 1);
    pabd_perf_side swapped = order[k];
    order[k] = order[j];
    order[j] = swapped;
  }
  for (int32_t k = 0; k < PABD_PERF_SIDES; ++k) order[BLOCK_LAUNCHES - 1 - k] = order[k];
  float *first = frames_of(b, b->block_count, PABD_PERF_BASE, 0),
        *end = frames_of(b, b->block_count + 1, PABD_PERF_BASE, 0);
  for (float *at = first; at < end; ++at) *at = INFINITY;
  for (int32_t k = 0; k < BLOCK_LAUNCHES; ++k) {
    pabd_run_result result;
    launch(b->setup, order[k], c, 0, &result);
    pabd_run_state state = result.state;
    if (state == PABD_RUN_OK) keep_launch(b, order[k], &result.samples);
    if (state != PABD_RUN_OK && state != PABD_RUN_INTERRUPTED)
      pabd_fail(error, PABD_ERR_INTERNAL, "a launch of the %s failed: %.400s",
                order[k] == PABD_PERF_HEAD ? "head" : "base", result.reason);
    pabd_run_result_free(&result);
    if (state != PABD_RUN_OK) return PABD_ERR_INTERNAL;
  }
  ++b->block_count;
  return PABD_OK;
}

/* Time of a side in a row over the blocks in `drawn` (each not 0): fastest block of each frame, summed over the frames
 * after the warm-up in which the row reported. */
static double side_time(const batch *b, pabd_perf_side side, int32_t row, const uint8_t *drawn, float *room) {
  double sum = 0;
  for (int32_t k = 0; k < b->frame_count; ++k) room[k] = INFINITY;
  for (int32_t block = 0; block < b->block_count; ++block) {
    const float *ms = frames_of(b, block, side, row);
    for (int32_t k = 0; drawn[block] && k < b->frame_count; ++k) room[k] = ms[k] < room[k] ? ms[k] : room[k];
  }
  for (int32_t k = b->setup->warmup; k < b->frame_count; ++k) {
    if (room[k] < INFINITY) sum += room[k];
  }
  return sum;
}

#define RESAMPLES 300

/* Both ratios of a row with their intervals. All sides see the same resampled blocks. */
static void evaluate_row(const batch *b, int32_t row, pabd_perf_row *out, float *room) {
  uint8_t drawn[256];
  double change[RESAMPLES], self[RESAMPLES];
  uint64_t seed = 1;
  memset(drawn, 1, sizeof drawn);
  double base = side_time(b, PABD_PERF_BASE, row, drawn, room), twin = side_time(b, PABD_PERF_TWIN, row, drawn, room),
         head = side_time(b, PABD_PERF_HEAD, row, drawn, room);
  for (int32_t k = 0; k < RESAMPLES; ++k) {
    memset(drawn, 0, sizeof drawn);
    for (int32_t j = 0; j < b->block_count; ++j) drawn[next_random(&seed) % (uint64_t)b->block_count] = 1;
    double of_base = side_time(b, PABD_PERF_BASE, row, drawn, room);
    change[k] = side_time(b, PABD_PERF_HEAD, row, drawn, room) / of_base;
    self[k] = side_time(b, PABD_PERF_TWIN, row, drawn, room) / of_base;
  }
  out->change = pabd_ratio_of_draws(base, head, change, RESAMPLES, b->block_count);
  out->self = pabd_ratio_of_draws(base, twin, self, RESAMPLES, b->block_count);
  out->verdict = pabd_change_of_time(b->setup->rules, &out->change, 0);
  out->twin_verdict = pabd_change_of_time(b->setup->rules, &out->self, 0);
}

/* Rows below this part of the step, or below this time a frame, are not gated: the clock's own noise. */
#define LEAST_SHARE 0.03
#define LEAST_MS 0.002
/* A batch may end when the A/A intervals of all gated rows are within 1/x .. x. */
#define NARROW 1.05

/* Fills `out` from the batch. Returns 1 when all A/A tests are narrow; else `out` is filled up to the first row that is
 * not, unless this `is_last`. */
static int evaluate(const batch *b, int is_last, pabd_perf_times *out, float *room) {
  uint8_t all[256];
  int is_narrow = 1;
  double frames = b->frame_count > b->setup->warmup ? b->frame_count - b->setup->warmup : 1;
  memset(all, 1, sizeof all);
  memset(out, 0, sizeof *out);
  out->row_count = b->row_count, out->block_count = b->block_count, out->frame_count = b->frame_count;
  for (int32_t row = 0; row < b->row_count && (is_narrow || is_last); ++row) {
    pabd_perf_row *r = &out->rows[row];
    memcpy(r->name, b->names[row], sizeof r->name);
    r->base_ms = side_time(b, PABD_PERF_BASE, row, all, room) / frames;
    r->head_ms = side_time(b, PABD_PERF_HEAD, row, all, room) / frames;
    r->share = out->rows[0].base_ms > 0 ? r->base_ms / out->rows[0].base_ms : 0;
    r->is_gated = r->share >= LEAST_SHARE && r->base_ms >= LEAST_MS && r->head_ms > 0;
    if (!r->is_gated) continue;
    evaluate_row(b, row, r, room);
    is_narrow &= r->self.low > 1 / NARROW && r->self.high < NARROW;
  }
  return is_narrow;
}

pabd_status pabd_perf_run_times(const pabd_perf_setup *setup, int32_t least, int32_t most, int32_t frame_count,
                                uint64_t seed, pabd_perf_times *out, pabd_error *error) {
  pabd_case shorter = *setup->c;
  if (most > 255) most = 255;
  if (frame_count < shorter.frame_count) shorter.frame_count = frame_count;
  batch b = {.setup = setup, .frame_count = shorter.frame_count, .block_capacity = most};
  b.ms = malloc((size_t)most * PABD_PERF_SIDES * PABD_PERF_ROWS * (size_t)b.frame_count * sizeof *b.ms);
  float *room = malloc((size_t)b.frame_count * sizeof *room);
  pabd_status status = b.ms && room ? PABD_OK : pabd_fail(error, PABD_ERR_MEMORY, "out of memory for times");
  int is_done = 0;
  while (status == PABD_OK && !is_done) {
    status = run_block(&b, &shorter, &seed, error);
    /* Judged every third block: not so often that chance ends a batch, nor so rarely that time is wasted. */
    if (status == PABD_OK && b.block_count >= least && ((b.block_count - least) % 3 == 0 || b.block_count == most))
      is_done = evaluate(&b, b.block_count == most, out, room) || b.block_count == most;
  }
  free(b.ms);
  free(room);
  return status;
}
