/* The parts of the report's page and what they share. report.c puts them together. */
#ifndef PABD_REPORT_INTERNAL_H
#define PABD_REPORT_INTERNAL_H

#include "report_data.h"
#include "report_plot.h"

/* One cell of the summary: a row on a variant, over all starts and repeats. */
typedef struct pabd_report_cell {
  int count; /* records */
  int outcome_count[PABD_OUTCOME_COUNT];
  pabd_outcome worst;       /* of the outcomes met, in the order of the enumeration, n.a. aside */
  double end;               /* earliest end among those that did not hold, s */
  pabd_report_spread error; /* of the row's error metric, over all records that have one */
  double error_worst;
  const char *error_unit, *better;
  pabd_report_spread time; /* step_ms_p50 over records with a valid time */
  pabd_report_spread time_invalid;
  int pass_count, fail_count; /* verdicts */
  const char *reason;         /* of the first record that is not ok */
} pabd_report_cell;

pabd_report_cell pabd_report_cell_of(pabd_report *report, const pabd_report_row *row, int variant,
                                     const char *error_key);
int pabd_report_cell_held(const pabd_report_cell *cell); /* ran, and every run held */
/* "collapsed at 0.42 s", "3 of 24 held", "held" */
const char *pabd_report_cell_text(pabd_report *report, const pabd_report_cell *cell);

/* Does the variant take part in the summary (no changed settings)? */
int pabd_report_is_main(const pabd_report_variant *variant);
/* The same without the setting `key`: "sweeps=3 alpha=0" without sweeps is "alpha=0". */
const char *pabd_report_without(pabd_report *report, const char *overrides, const char *key);
/* Value of a setting inside "key=value key=value", NAN or NULL when absent. */
const char *pabd_report_override(pabd_report *report, const char *overrides, const char *key);

/* Escaped text for the page. */
#define ESC(text) pabd_text_escape(&report->html, (text))
/* Appends to the page. */
#define PUT(...) pabd_text_add(&report->html, __VA_ARGS__)

/* The engine's mark as a small colored text. */
void pabd_put_mark(pabd_report *report, const pabd_report_variant *variant);
/* A figure whose picture is put in once it is drawn. */
void pabd_put_plot(pabd_report *report, const pabd_plot *plot, const char *caption);
/* The beginning of a page: head with title and style. */
void pabd_report_put_top(pabd_report *report, const char *title);
/* Draws the plots, puts them into the page and writes it. */
pabd_status pabd_report_finish(pabd_report *report, pabd_plots *plots, const char *path, pabd_error *error);
/* What is missing and which command makes it. */
void pabd_put_missing(pabd_report *report, const char *what, const char *command);

void pabd_report_put_claims(pabd_report *report);                            /* report_claims.c */
void pabd_report_put_matrix(pabd_report *report);                            /* report_summary.c */
void pabd_report_put_cases(pabd_report *report, pabd_plots *plots);          /* report_cases.c */
void pabd_report_put_studies(pabd_report *report, pabd_plots *plots);        /* report_studies.c */
void pabd_report_put_work_precision(pabd_report *report, pabd_plots *plots); /* report_wp.c; nothing without its runs */
void pabd_report_put_ablation(pabd_report *report, pabd_plots *plots);       /* report_ablation.c */
void pabd_report_put_headline(pabd_report *report, pabd_plots *plots); /* report_studies.c: sweeps shown at the top */

/* Curves of the row's error against a numeric case parameter that takes at least three values; 0 when there is none. */
int pabd_report_put_sweeps(pabd_report *report, pabd_plots *plots, const char *case_id);

#endif
