/* Plots of the report. See report_plot.h.
 *
 * All plots go through one gnuplot process; when it stops at one, that one is named and the rest is tried again without
 * it, so a single bad plot costs only itself. */
#include "report_plot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"

#define TIME_POINTS 240 /* points a curve over time keeps: least and largest value of each stretch */

extern char **environ;

pabd_plot *pabd_plot_begin(pabd_plots *plots, const char *name) {
  if (plots->count == plots->capacity) {
    int capacity = plots->capacity ? 2 * plots->capacity : 32;
    pabd_plot *items = realloc(plots->items, sizeof *items * (size_t)capacity);
    if (!items) return NULL;
    plots->items = items;
    plots->capacity = capacity;
  }
  pabd_plot *plot = &plots->items[plots->count++];
  memset(plot, 0, sizeof *plot);
  plot->name = name;
  plot->title = plot->x_label = plot->y_label = "";
  plot->band[0] = plot->band[1] = NAN;
  return plot;
}

void pabd_plot_fail(pabd_plot *plot, double x, const char *text, pabd_report_style style) {
  if (plot->failure_count < PABD_PLOT_FAILURES)
    plot->failures[plot->failure_count++] = (pabd_plot_failure){x, text, style};
}

/* Keeps the first, least, largest and last value of each stretch of a long curve, in order. Returns the new count. */
static int thin_out(double *x, double *y, int count) {
  if (count <= TIME_POINTS) return count;
  int stretches = TIME_POINTS / 2, kept = 0;
  for (int s = 0; s < stretches; ++s) {
    int from = (int)((long)count * s / stretches), to = (int)((long)count * (s + 1) / stretches);
    int least = from, largest = from;
    for (int k = from; k < to; ++k) {
      if (y[k] < y[least]) least = k;
      if (y[k] > y[largest]) largest = k;
    }
    int first = least < largest ? least : largest, second = least < largest ? largest : least;
    x[kept] = x[first], y[kept++] = y[first];
    if (second != first) x[kept] = x[second], y[kept++] = y[second];
  }
  return kept;
}

void pabd_plot_add(pabd_plot *plot, pabd_curve_kind kind, const char *label, pabd_report_style style, double *x,
                   double *y, int count) {
  int kept = 0;
  for (int k = 0; x && y && k < count; ++k) {
    double value = plot->log_y ? fabs(y[k]) : y[k];
    if (plot->log_y && plot->floor > 0 && value < plot->floor) value = plot->floor;
    if (!isfinite(x[k]) || !isfinite(value) || (plot->log_y && value <= 0) || (plot->log_x && x[k] <= 0)) continue;
    x[kept] = x[k], y[kept++] = value;
  }
  if (kind == PABD_CURVE_LINE) kept = thin_out(x, y, kept);
  if (kept == 0 || plot->curve_count == PABD_PLOT_CURVES) {
    free(x);
    free(y);
    return;
  }
  plot->curves[plot->curve_count++] = (pabd_curve){kind, label, style, x, y, kept};
}

void pabd_plots_free(pabd_plots *plots) {
  for (int k = 0; k < plots->count; ++k) {
    for (int c = 0; c < plots->items[k].curve_count; ++c) {
      free(plots->items[k].curves[c].x);
      free(plots->items[k].curves[c].y);
    }
  }
  free(plots->items);
  *plots = (pabd_plots){0};
}

/* A gnuplot text in single quotes; a quote inside is doubled, line ends become spaces. */
static void put_quoted(pabd_text *out, const char *text) {
  pabd_text_add(out, "'");
  for (const char *c = text; *c; ++c) {
    if (*c == '\'')
      pabd_text_add(out, "''");
    else
      pabd_text_add_bytes(out, (unsigned char)*c < 32 ? " " : c, 1);
  }
  pabd_text_add(out, "'");
}

static void put_text(pabd_text *out, const char *name, const char *value) {
  pabd_text_add(out, "%s = ", name);
  put_quoted(out, value);
  pabd_text_add(out, "\n");
}

/* A list of one value a curve: measured curves first, then theory. */
#define FOR_CURVES(plot, c, is_theory)          \
  for (int c = 0; c < (plot)->curve_count; ++c) \
    if (((plot)->curves[c].kind == PABD_CURVE_THEORY) == (is_theory))

/* How many failures before k stand at the same place. */
static int failure_level(const pabd_plot *plot, int k) {
  int level = 0;
  for (int m = 0; m < k; ++m)
    level += fabs(plot->failures[m].x - plot->failures[k].x) < 1e-9 * (1 + fabs(plot->failures[k].x));
  return level;
}
/* Failures stand above the curves in rows of their own, so that none can be taken for a value. The picture grows by
 * what they need: the curves keep their height. Sizes in pixels of the SVG. */
enum { CURVE_HEIGHT = 200, FAILURE_ROW = 12, FAILURE_MARGIN = 22 };
static double failure_height(const pabd_plot *plot) {
  int levels = 0;
  for (int k = 0; k < plot->failure_count; ++k)
    if (failure_level(plot, k) + 1 > levels) levels = failure_level(plot, k) + 1;
  return levels > 0 ? FAILURE_MARGIN + FAILURE_ROW * levels : 0;
}
static double failure_band(const pabd_plot *plot) {
  return failure_height(plot) / (CURVE_HEIGHT + failure_height(plot));
}

static void put_parameters(pabd_text *out, const pabd_plot *plot) {
  int measured = 0, theory = 0, has_line = 0;
  FOR_CURVES(plot, c, 0)++ measured, has_line |= plot->curves[c].kind == PABD_CURVE_LINE;
  FOR_CURVES(plot, c, 1)++ theory;
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
  for (int c = 0; c < plot->curve_count; ++c) {
    for (int k = 0; k < plot->curves[c].count; ++k) {
      x_low = fmin(x_low, plot->curves[c].x[k]), x_high = fmax(x_high, plot->curves[c].x[k]);
      if (plot->curves[c].kind == PABD_CURVE_THEORY && measured) continue;
      y_low = fmin(y_low, plot->curves[c].y[k]), y_high = fmax(y_high, plot->curves[c].y[k]);
    }
  }
  for (int k = 0; k < plot->failure_count; ++k)
    x_low = fmin(x_low, plot->failures[k].x), x_high = fmax(x_high, plot->failures[k].x);
  pabd_text_add(out, "# Parameters of one plot, written by pabd-bench report.\n");
  put_text(out, "TITLE", plot->title);
  put_text(out, "X_LABEL", plot->x_label);
  put_text(out, "Y_LABEL", plot->y_label);
  pabd_text_add(out, "LOG_X = %d\nLOG_Y = %d\nWIDE = %d\nMEASURED = %d\nTHEORY = %d\nOVER_TIME = %d\nFAILURES = %d\n",
                plot->log_x, plot->log_y, plot->is_wide, measured, theory, has_line, plot->failure_count);
  /* The ranges are set here, so that failures at the edge and flat curves get a sensible axis. */
  if (!(x_low <= x_high)) x_low = plot->log_x ? 1 : 0, x_high = plot->log_x ? 10 : 1;
  if (!(y_low <= y_high)) y_low = plot->log_y ? 1e-3 : 0, y_high = 1;
  if (isfinite(plot->band[0])) y_low = fmin(y_low, plot->band[0]), y_high = fmax(y_high, plot->band[1]);
  if (plot->log_y) {
    double low = log10(y_low), high = log10(y_high), room = fmax(0.06 * (high - low), 0.12);
    low -= room, high += room;
    if (high - low < 0.8 + 2 * room) low = floor(low), high = ceil(high);
    if (failure_band(plot) > 0) { /* no tick in the band of failures */
      double step = fmax(1, ceil((high - low) / 6));
      pabd_text_add(out, "set ytics 1e%d, 1e%d, 1e%d\n", (int)ceil(low - 1e-9), (int)step, (int)floor(high + 1e-9));
    }
    high = low + (high - low) / (1 - failure_band(plot));
    y_low = pow(10, low), y_high = pow(10, high);
  } else {
    double room = fmax(0.06 * (y_high - y_low), 1e-9 + 0.02 * fmax(fabs(y_low), fabs(y_high)));
    y_high += room;
    if (y_low > 0 && y_low < 0.5 * y_high)
      y_low = 0;
    else
      y_low -= room;
    y_high = y_low + (y_high - y_low) / (1 - failure_band(plot));
  }
  if (plot->log_x) {
    double room = fmax(0.05 * log10(x_high / x_low), 0.05);
    x_low *= pow(10, -room), x_high *= pow(10, room);
  } else if (!has_line) {
    double room = fmax(0.05 * (x_high - x_low), 1e-9 + 0.02 * fabs(x_high));
    x_low -= room, x_high += room;
  }
  if (!(x_high > x_low)) x_high = x_low + 1;
  pabd_text_add(out, "FAILURE_HEIGHT = %.0f\n", failure_height(plot));
  pabd_text_add(out, "X_LOW = %.9g\nX_HIGH = %.9g\nY_LOW = %.9g\nY_HIGH = %.9g\n", x_low, x_high, y_low, y_high);
  pabd_text_add(out, "BAND_LOW = %.9g\nBAND_HIGH = %.9g\n", isfinite(plot->band[0]) ? plot->band[0] : 0,
                isfinite(plot->band[0]) ? plot->band[1] : 0);
  pabd_text_add(out, "array LABEL[%d]\narray COLOR[%d]\narray POINT[%d]\narray DASH[%d]\narray EVERY[%d]\n",
                measured + theory + 1, measured + 1, measured + 1, measured + 1, measured + 1);
  int at = 0;
  for (int is_theory = 0; is_theory < 2; ++is_theory) {
    FOR_CURVES(plot, c, is_theory) {
      const pabd_curve *curve = &plot->curves[c];
      pabd_text_add(out, "LABEL[%d] = ", ++at);
      put_quoted(out, curve->label);
      pabd_text_add(out, "\n");
      if (is_theory) continue;
      /* Marks of curves over time stand at different places, so that curves on top of each other can be told apart. */
      int every = curve->kind == PABD_CURVE_LINE ? curve->count / 5 + 3 * at : 1;
      pabd_text_add(out, "COLOR[%d] = '%s'\nPOINT[%d] = %d\nDASH[%d] = %d\nEVERY[%d] = %d\n", at, curve->style.color,
                    at, curve->style.point, at, curve->style.dash, at, every < 1 ? 1 : every);
    }
  }
  /* Failures stand in a band of their own above the curves; those at the same place below each other. */
  double band = failure_band(plot);
  if (band > 0)
    pabd_text_add(out,
                  "set arrow from graph 0, graph %.3f to graph 1, graph %.3f nohead lw 1 dt 3 lc rgb '#888888'\n"
                  "set label 'fell, diverged or crashed' at graph 0.005, graph %.3f left tc rgb '#666666' font ',9'\n",
                  1 - band, 1 - band, 1 - band + band * 10.0 / failure_height(plot));
  for (int k = 0; k < plot->failure_count; ++k) {
    const pabd_plot_failure *f = &plot->failures[k];
    int level = failure_level(plot, k);
    pabd_text_add(out, "set label %d ", k + 100);
    put_quoted(out, f->text);
    pabd_text_add(out,
                  " at first %.9g, graph %.3f point pt %d ps 0.9 lw 2 lc rgb '%s' offset character 0.7,0 left tc rgb "
                  "'%s' font ',10' noenhanced\n",
                  f->x, 1 - band * (6.0 + FAILURE_ROW * level) / failure_height(plot), f->style.point, f->style.color,
                  f->style.color);
  }
}

static void put_data(pabd_text *tsv, pabd_text *csv, const pabd_plot *plot) {
  pabd_text_add(tsv, "# %s\n# columns: %s\t%s\n", plot->title, plot->x_label, plot->y_label);
  pabd_text_add(csv, "curve,kind,x [%s],y [%s]\n", plot->x_label, plot->y_label);
  for (int is_theory = 0; is_theory < 2; ++is_theory) {
    FOR_CURVES(plot, c, is_theory) {
      const pabd_curve *curve = &plot->curves[c];
      pabd_text_add(tsv, "# %s\n", curve->label);
      for (int k = 0; k < curve->count; ++k) {
        pabd_text_add(tsv, "%.6g\t%.6g\n", curve->x[k], curve->y[k]);
        pabd_text_add(csv, "\"%s\",%s,%.9g,%.9g\n", curve->label, is_theory ? "theory" : "measured", curve->x[k],
                      curve->y[k]);
      }
      pabd_text_add(tsv, "\n\n");
    }
  }
  for (int k = 0; k < plot->failure_count; ++k)
    pabd_text_add(csv, "\"%s: %s\",failure,%.9g,\n", plot->failures[k].style.name, plot->failures[k].text,
                  plot->failures[k].x);
}

static pabd_status write_text(pabd_text *text, const char *path, pabd_error *error) {
  pabd_status status = text->failed ? pabd_fail(error, PABD_ERR_MEMORY, "%s: no memory", path)
                                    : pabd_file_write_whole(path, text->data ? text->data : "", text->size, error);
  pabd_text_free(text);
  return status;
}

static pabd_status write_plot(const char *folder, const pabd_plot *plot, pabd_error *error) {
  char path[PABD_PATH_SIZE];
  pabd_text parameters = {0}, tsv = {0}, csv = {0};
  put_parameters(&parameters, plot);
  pabd_text_add(&parameters, "DATA = 'data/%s.tsv'\nSVG = '%s.svg'\nPNG = '%s.png'\n", plot->name, plot->name,
                plot->name);
  put_data(&tsv, &csv, plot);
  pabd_path_format(path, "%s/data/%s.gp", folder, plot->name);
  pabd_status status = write_text(&parameters, path, error);
  pabd_path_format(path, "%s/data/%s.tsv", folder, plot->name);
  if (status == PABD_OK)
    status = write_text(&tsv, path, error);
  else
    pabd_text_free(&tsv);
  pabd_path_format(path, "%s/%s.csv", folder, plot->name);
  if (status == PABD_OK)
    status = write_text(&csv, path, error);
  else
    pabd_text_free(&csv);
  return status;
}

/* Runs gnuplot on a driver script inside `folder`; what it prints goes to a log. Returns its exit code, or -1 with
 * errno. */
static int run_gnuplot(const char *folder, const char *driver, const char *log) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  pid_t child;
  char *arguments[] = {"gnuplot", (char *)driver, NULL};
  posix_spawn_file_actions_addchdir_np(&actions, folder);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  int cause = posix_spawnp(&child, "gnuplot", &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (cause != 0) {
    errno = cause;
    return -1;
  }
  int state;
  while (waitpid(child, &state, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

pabd_status pabd_plots_draw(pabd_report *report, pabd_plots *plots, pabd_error *error) {
  char folder[PABD_PATH_SIZE], path[PABD_PATH_SIZE];
  pabd_path_format(folder, "%s/plots", report->dir);
  pabd_path_format(path, "%s/data", folder);
  PABD_TRY(pabd_make_folders(path, error));
  for (int k = 0; k < plots->count; ++k) {
    PABD_TRY(write_plot(folder, &plots->items[k], error));
    pabd_path_format(path, "%s/%s.svg", folder, plots->items[k].name); /* no picture of an earlier report */
    unlink(path);
    pabd_path_format(path, "%s/%s.png", folder, plots->items[k].name);
    unlink(path);
  }
  if (!report->has_places) {
    plots->trouble = "the folder plots/ with the gnuplot scripts was not found";
    return PABD_OK;
  }
  char root[PABD_PATH_SIZE];
  if (!realpath(report->places.root, root)) pabd_path_format(root, "%s", report->places.root);

  int first = 0;
  while (first < plots->count) {
    pabd_text driver = {0};
    pabd_text_add(&driver, "# All plots of this report; written by pabd-bench report.\n");
    for (int k = first; k < plots->count; ++k) {
      pabd_text_add(&driver, "reset session\ncall ");
      put_quoted(&driver, pabd_text_format(&driver, "%s/plots/curves.gp", root));
      pabd_text_add(&driver, " 'data/%s.gp'\n", plots->items[k].name);
    }
    pabd_path_format(path, "%s/data/all.gp", folder);
    PABD_TRY(write_text(&driver, path, error));
    int code = run_gnuplot(folder, "data/all.gp", "data/gnuplot.log");
    if (code < 0 ||
        code == 127) { /* 127: some C libraries start the child before they find that the program is missing */
      plots->trouble =
          code < 0 && errno != ENOENT
              ? pabd_text_format(&report->html, "gnuplot cannot be started: %s", strerror(errno))
              : "gnuplot is not installed (Debian: apt-get install gnuplot-nox); the data are in plots/data";
      return PABD_OK;
    }
    if (code == 0) break;
    /* The one it stopped at is the first without a picture. */
    int stopped = first;
    for (; stopped < plots->count; ++stopped) {
      pabd_path_format(path, "%s/%s.png", folder, plots->items[stopped].name);
      if (!pabd_is_file(path)) break;
    }
    if (!plots->trouble)
      plots->trouble =
          pabd_text_format(&report->html, "gnuplot stopped at plots/data/%s.gp; see plots/data/gnuplot.log",
                           stopped < plots->count ? plots->items[stopped].name : "all");
    first = stopped + 1;
    if (first < plots->count) { /* keep the log of the first trouble */
      char kept[PABD_PATH_SIZE];
      pabd_path_format(path, "%s/data/gnuplot.log", folder);
      pabd_path_format(kept, "%s/data/gnuplot-%d.log", folder, stopped);
      rename(path, kept);
    }
  }
  return PABD_OK;
}
