/* Plots of the report: data files, and gnuplot as a child process.
 *
 * Each plot leaves in <dir>/plots: NAME.svg, NAME.png, NAME.csv, and in plots/data what gnuplot read: NAME.tsv (one
 * block a curve) and NAME.gp (titles, axes, colors). By hand, in that folder: gnuplot -c <root>/plots/curves.gp
 * data/NAME.gp */
#ifndef PABD_REPORT_PLOT_H
#define PABD_REPORT_PLOT_H

#include "report_data.h"

typedef enum pabd_curve_kind {
  PABD_CURVE_LINE,   /* measured over time: a line, the mark now and then */
  PABD_CURVE_POINTS, /* measured at chosen values: marks joined by a line */
  PABD_CURVE_THEORY  /* computed from a formula: a thin dashed line, no mark */
} pabd_curve_kind;

typedef struct pabd_curve {
  pabd_curve_kind kind;
  const char *label;
  pabd_report_style style;
  double *x, *y; /* owned; points with a value that cannot be drawn are left out */
  int count;
} pabd_curve;

/* A run that has no value to draw: a cross on the upper edge, with a word beside it. */
typedef struct pabd_plot_failure {
  double x;
  const char *text;
  pabd_report_style style;
} pabd_plot_failure;

#define PABD_PLOT_CURVES 40
#define PABD_PLOT_FAILURES 64

typedef struct pabd_plot {
  const char *name, *title, *x_label, *y_label;
  int log_x, log_y;
  int is_wide;
  double floor;   /* log_y: smaller absolute values are drawn here (0: left out) */
  double band[2]; /* shaded band of y; NAN: none */
  int curve_count, failure_count;
  pabd_curve curves[PABD_PLOT_CURVES];
  pabd_plot_failure failures[PABD_PLOT_FAILURES];
} pabd_plot;

typedef struct pabd_plots {
  int count, capacity;
  pabd_plot *items;
  const char *trouble; /* why there are no pictures; NULL: all is well */
} pabd_plots;

/* A new empty plot, valid until the next one is begun; NULL when memory is out. */
pabd_plot *pabd_plot_begin(pabd_plots *plots, const char *name);
/* Takes over x and y (malloc'ed). */
void pabd_plot_add(pabd_plot *plot, pabd_curve_kind kind, const char *label, pabd_report_style style, double *x,
                   double *y, int count);
void pabd_plot_fail(pabd_plot *plot, double x, const char *text, pabd_report_style style);
/* Writes the data files and runs gnuplot over all plots. Trouble with gnuplot is told in plots->trouble, not an error.
 */
pabd_status pabd_plots_draw(pabd_report *report, pabd_plots *plots, pabd_error *error);
void pabd_plots_free(pabd_plots *plots);

#endif
