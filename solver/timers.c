/* Stage timers: one accumulator per name, read by the statistics of a frame. A stage begins where the one before it
 * ended, so the stages of a frame leave nothing out and the clock is read once a stage. Off (params.timers = 0) they
 * cost one branch. */
#include <string.h>
#include <time.h>

#include "state.h"

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

double pabd_stage_begin(pabd_sim *sim) {
  if (!sim->params.timers) return 0.0;
  return sim->stage_end_ms > 0.0 ? sim->stage_end_ms : now_ms();
}

void pabd_stage_end(pabd_sim *sim, const char *name, int32_t is_collide, double begin) {
  if (!sim->params.timers) return;
  sim->stage_end_ms = now_ms();
  double ms = sim->stage_end_ms - begin;
  pabd_stats *stats = &sim->stats;
  /* names are literals: the pointer is the key; the same text under another pointer is looked for only once a frame,
   * and not at all where the frame goes through the stages of the last one (their names still stand in the table) */
  int32_t at = 0;
  while (at < stats->timer_count && stats->timers[at].name != name) ++at;
  if (at == stats->timer_count) {
    int as_before = sim->stage_same == at && at < PABD_TIMER_MAX && stats->timers[at].name == name;
    if (as_before) {
      sim->stage_same += 1;
    } else {
      at = 0;
      while (at < stats->timer_count && strcmp(stats->timers[at].name, name) != 0) ++at;
    }
  }
  if (at < stats->timer_count) {
    stats->timers[at].ms += ms;
    stats->timers[at].calls += 1;
    return;
  }
  if (stats->timer_count == PABD_TIMER_MAX) return;
  pabd_timer *timer = &stats->timers[stats->timer_count++];
  timer->name = name, timer->is_collide = is_collide, timer->calls = 1, timer->ms = ms;
}
