/* Progress of a list of runs: one line that is redrawn on a terminal, one plain line a run elsewhere.
 *
 * Time left = the rest of this run, by its frames, + the mean time of finished runs for each run that waits. It is a
 * guess, hence rounded, and absent until there is something to guess from. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void pabd_progress_start(pabd_progress *p, int32_t total, int is_quiet) {
  memset(p, 0, sizeof *p);
  p->is_terminal = isatty(STDERR_FILENO);
  p->is_quiet = is_quiet;
  p->total = total;
  p->begun = now();
}

void pabd_progress_clear(pabd_progress *p) {
  if (p->is_terminal && !p->is_quiet) fprintf(stderr, "\r\033[K");
}

static void format_seconds(double seconds, char *out, size_t size) {
  if (seconds < 60)
    snprintf(out, size, "%.0f s", seconds);
  else if (seconds < 5400)
    snprintf(out, size, "%d:%02d min", (int)seconds / 60, (int)seconds % 60);
  else
    snprintf(out, size, "%.1f h", seconds / 3600);
}

void pabd_progress_begin_run(pabd_progress *p, const char *label) {
  snprintf(p->label, sizeof p->label, "%s", label);
  p->run_begun = now();
  p->last_drawn = 0;
  pabd_progress_tick(0, 0, p);
}

void pabd_progress_tick(int32_t frame, int32_t frame_count, void *user) {
  pabd_progress *p = user;
  double time = now();
  if (!p->is_terminal || p->is_quiet || time - p->last_drawn < 0.15) return;
  p->last_drawn = time;
  char left[32] = "", line[400];
  double spent = time - p->run_begun, rest = -1, mean = p->done ? p->seconds_done / p->done : -1;
  if (frame > 0 && frame_count > 0) {
    double whole = spent * frame_count / frame;
    rest = whole - spent + (p->total - p->done - 1) * (mean >= 0 ? mean : whole);
  } else if (mean >= 0) {
    rest = (p->total - p->done) * mean - spent;
  }
  if (rest >= 0) format_seconds(rest, left, sizeof left);
  snprintf(line, sizeof line, "[%d/%d] %.200s", p->done + 1, p->total, p->label);
  size_t used = strlen(line);
  if (frame_count > 0) used += (size_t)snprintf(line + used, sizeof line - used, "  frame %d/%d", frame, frame_count);
  if (left[0]) snprintf(line + used, sizeof line - used, "  %s left", left);
  struct winsize window;
  int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 10 ? window.ws_col - 1 : 79;
  fprintf(stderr, "\r\033[K%.*s", width, line);
  fflush(stderr);
}

void pabd_progress_end_run(pabd_progress *p, const char *text, int is_notable) {
  ++p->done;
  p->seconds_done += now() - p->run_begun;
  if (p->is_quiet || (p->is_terminal && !is_notable)) return;
  pabd_progress_clear(p);
  fprintf(stderr, "[%d/%d] %s: %s\n", p->done, p->total, p->label, text);
  fflush(stderr);
}
