/* Stage timers: one accumulator per name, read by the statistics of a frame. Off (params.timers = 0) they cost one
 * branch. */
#include <string.h>
#include <time.h>

#include "state.h"

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

double pabd_stage_begin(pabd_sim *sim) {
  return sim->params.timers ? now_ms() : 0.0;
}

void pabd_stage_end(pabd_sim *sim, const char *name, int32_t is_collide, double begin) {
  if (!sim->params.timers) return;
  double ms = now_ms() - begin;
  pabd_stats *stats = &sim->stats;
  /* names are literals: the pointer is the key; the same text under another pointer is looked for only once a frame */
  int32_t at = 0;
  while (at < stats->timer_count && stats->timers[at].name != name) ++at;
  if (at == stats->timer_count) {
    at = 0;
    while (at < stats->timer_count && strcmp(stats->timers[at].name, name) != 0) ++at;
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
