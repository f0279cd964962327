/* The records of a results folder, read and put in order for the report.
 *
 * A *run* is everything that shares case, parameters, engine and settings; its records are the repeats. An *instance*
 * is a case with its parameters; a *row* is all instances that differ only in parameters that vary a start (seed, gap,
 * ball offset) and make one line of the summary matrix. A *variant* is an engine with its preset and the settings in
 * which it differs from that preset: one column. */
#ifndef PABD_REPORT_DATA_H
#define PABD_REPORT_DATA_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "pabd_case.h"
#include "places.h"
#include "report_text.h"

typedef struct pabd_report_style {
  const char *name;   /* "engine:preset" or "engine" */
  const char *color;  /* #rrggbb */
  int point, dash;    /* gnuplot point type and dash type */
  const char *symbol; /* the same mark in text, UTF-8 */
} pabd_report_style;

typedef struct pabd_report_record {
  const char *file; /* name inside records/, with .json */
  cJSON *root;
  int instance, variant, run;
} pabd_report_record;

typedef struct pabd_report_instance {
  const char *case_id, *family, *title, *hash;
  const char *label;   /* "ratio=10 gap=0.001": parameters that vary in this folder or differ from the case's default */
  const char *key;     /* identity: case and all parameters */
  const cJSON *params; /* of a record */
  int row;
  int is_loaded;         /* 0 not tried, 1 loaded, -1 failed */
  pabd_case *loaded;     /* the case read again for its picture, claim and duration; NULL when that failed */
  const char *load_note; /* why it failed, or that the file has changed since the run; NULL: all is well */
} pabd_report_instance;

typedef struct pabd_report_row {
  const char *case_id, *family, *title, *label;
  const char *key;
  int *instances;
  int instance_count;
} pabd_report_row;

typedef struct pabd_report_variant {
  const char *engine, *preset, *overrides; /* overrides: "local_step=mass sweeps=8" or "" */
  const char *base;                        /* "pabd:jacobi" */
  const char *label;                       /* base and overrides */
  const char *slug;
  int is_ours;      /* an engine of this project's solver */
  int is_reference; /* a reference, no competitor */
  int unavailable;  /* all of its runs have status na */
  pabd_report_style style;
} pabd_report_variant;

typedef struct pabd_report_run {
  int instance, variant;
  int *records;
  int record_count;
} pabd_report_run;

typedef enum pabd_outcome {
  PABD_OUTCOME_HELD,      /* ran to the end and, where the case asks for it, stands */
  PABD_OUTCOME_COLLAPSED, /* ran to the end; survive_s is shorter than the run */
  PABD_OUTCOME_DIVERGED,
  PABD_OUTCOME_CRASHED,
  PABD_OUTCOME_TIMEOUT,
  PABD_OUTCOME_NA,
  PABD_OUTCOME_COUNT
} pabd_outcome;

typedef struct pabd_report_skip {
  const char *file, *why;
} pabd_report_skip;

typedef struct pabd_report {
  const char *dir, *command_line;
  pabd_places places;
  int has_places;
  double base_threads; /* of the runs that are not marked with their number of threads */
  pabd_text html;      /* the page; also the arena of all texts */
  pabd_report_record *records;
  pabd_report_instance *instances;
  pabd_report_row *rows;
  pabd_report_variant *variants;
  pabd_report_run *runs;
  int *run_table; /* [instance_count][variant_count]: index of the run, or -1 */
  pabd_report_skip *skips;
  int record_count, instance_count, row_count, variant_count, run_count, skip_count;
} pabd_report;

/* Reads <dir>/records/ (json files). What cannot be read becomes a skip; nothing at all readable is PABD_ERR_INPUT. */
pabd_status pabd_report_read(pabd_report *report, pabd_error *error);
void pabd_report_free(pabd_report *report);

/* The style of an engine: the one table of colors and marks. */
pabd_report_style pabd_report_style_of(const char *engine, const char *preset, int is_changed);

/* Text of a string member, or `fallback`. Never NULL when fallback is not. */
const char *pabd_json_text(const cJSON *object, const char *key, const char *fallback);
/* A scalar, or the "value" of an object, as text ("" when it is neither). */
const char *pabd_json_scalar(pabd_text *arena, const cJSON *item);
/* Finite number of a member that is a scalar or an object with "value"; NAN otherwise. */
double pabd_json_number(const cJSON *object, const char *key);

double pabd_record_metric(const pabd_report_record *record, const char *key); /* NAN: none */
const char *pabd_record_metric_unit(const pabd_report_record *record, const char *key);
const char *pabd_record_metric_better(const pabd_report_record *record, const char *key);
/* A series as an array of doubles (null: NAN), malloc'ed; 0 values when absent. */
int pabd_record_series(const pabd_report_record *record, const char *key, double **values, const char **unit);
/* A setting in force of the record's engine as text, or NULL. */
const char *pabd_record_setting(pabd_report *report, const pabd_report_record *record, const char *key);
pabd_outcome pabd_record_outcome(pabd_report *report, const pabd_report_record *record);
/* The time of the end: collapse, divergence or end of the run, s; NAN when unknown. */
double pabd_record_end(pabd_report *report, const pabd_report_record *record);
/* Duration that the case asks for, s; NAN when unknown. */
double pabd_record_duration(pabd_report *report, const pabd_report_record *record);
double pabd_record_frame_time(pabd_report *report, const pabd_report_record *record);

/* NULL when there is none. */
pabd_report_run *pabd_report_find_run(pabd_report *report, int instance, int variant);
/* The case of an instance, loaded at first use; NULL with instance->load_note when that fails. */
pabd_case *pabd_report_case(pabd_report *report, int instance);
/* A parameter of an instance as text or number. */
const char *pabd_instance_param(pabd_report *report, int instance, const char *key);
double pabd_instance_number(pabd_report *report, int instance, const char *key);
/* The state hashes of a record: its hex text or NULL. */
const char *pabd_record_hash(const pabd_report_record *record);

/* Statistics over the records of a run. `wanted` is a metric key. */
typedef struct pabd_report_spread {
  int count;
  double low, middle, high; /* least, median, largest */
} pabd_report_spread;
pabd_report_spread pabd_run_spread(pabd_report *report, const pabd_report_run *run, const char *key);
pabd_report_spread pabd_spread_of(double *values, int count); /* sorts; NANs are dropped */

const char *pabd_outcome_symbol(pabd_outcome outcome);
const char *pabd_outcome_word(pabd_outcome outcome);
const char *pabd_outcome_class(pabd_outcome outcome); /* CSS class */

/* A metric in words ("largest penetration after settling"), or its key when it is not known. */
const char *pabd_metric_words(const char *key);
/* The metric that stands for the error of a case: picked from what its records hold. NULL when there is none. */
const char *pabd_row_error_key(pabd_report *report, const pabd_report_row *row);

#endif
