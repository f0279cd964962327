/* Progress of a list of runs: one line that is redrawn on a terminal, one plain line a run elsewhere. On stderr. */
#ifndef PABD_PROGRESS_H
#define PABD_PROGRESS_H

#include <stdint.h>

typedef struct pabd_progress {
  int is_terminal, is_quiet;
  int32_t total, done; /* runs; skipped ones are not in `total` */
  double begun, run_begun, last_drawn;
  double seconds_done; /* of finished runs */
  char label[256];
} pabd_progress;

void pabd_progress_start(pabd_progress *p, int32_t total, int is_quiet);
void pabd_progress_begin_run(pabd_progress *p, const char *label);
/* As pabd_tick_fn: redraws at most a few times a second. `user` is the pabd_progress. */
void pabd_progress_tick(int32_t frame, int32_t frame_count, void *user);
/* `text` tells the outcome. `is_notable`: keep the line on a terminal too. */
void pabd_progress_end_run(pabd_progress *p, const char *text, int is_notable);
/* Clears the line, so that other text can be printed. */
void pabd_progress_clear(pabd_progress *p);

#endif
