/* The validation suite: rows (a case, its reference, how a run is measured, its gate) and cells (a row on an engine).
 *
 * A row is run over a ladder: of steps (the best step decides: is the tolerance reached at an affordable step?), of
 * case variants (the worst decides), or of a setting (a curve against theory). Errors come from poses and velocities
 * alone. Cells are plain data, so that worker processes can leave them in shared memory. */
#ifndef PABD_VALIDATE_H
#define PABD_VALIDATE_H

#include "catalog.h"
#include "child.h"
#include "closed_forms.h"

#define PABD_VALIDATE_OUTPUTS 8
#define PABD_VALIDATE_LEVELS 12

/* A finished run as measures see it. */
typedef struct pabd_view {
  const pabd_case *c;
  const double *states; /* [frames + 1][body_count][13], a frame's poses first, then its velocities */
  int32_t frames;
  double h;         /* frame time, s */
  int32_t is_float; /* precision of the engine */
  double x;         /* place on the ladder */
} pabd_view;

typedef struct pabd_level {
  double x;           /* step (s), number of the variant, or value of the setting */
  double error;       /* of the row's own definition; NAN when the run has none */
  double consistency; /* the same against this engine's own finest step (M15); NAN: none */
  double value;       /* what is printed where the error is not what a reader wants to see; NAN: the error */
  double wall_s;      /* step time of the whole run */
  int32_t substeps;   /* in a frame, where the measure found them out; else 0 */
  int32_t state;      /* pabd_run_state */
  char note[96];
} pabd_level;

typedef enum pabd_ladder { PABD_LADDER_STEPS, PABD_LADDER_VARIANTS, PABD_LADDER_SETTING } pabd_ladder;

typedef enum pabd_effort { PABD_EFFORT_CI, PABD_EFFORT_QUICK, PABD_EFFORT_FULL, PABD_EFFORT_COUNT } pabd_effort;

typedef struct pabd_row pabd_row;
struct pabd_row {
  const char *number; /* "V08" */
  const char *key;    /* unique, also names its plot */
  const char *title;
  const char *file;      /* case */
  const char *overrides; /* "joint=distance,n=2"; "" */
  char gate;             /* X, O, T, B: see harness/README.md */
  pabd_ladder ladder;
  double h0;                          /* largest step (the step, for variants) */
  int32_t levels[PABD_EFFORT_COUNT];  /* how many halvings and one; 0: the row is not in this subset */
  double duration[PABD_EFFORT_COUNT]; /* s; 0: the case's */
  const char *const *variants;        /* LADDER_VARIANTS: overrides, ended by NULL; with "h=" they set the step too */
  /* A trajectory against a reference: outputs of a frame, the same of the reference, their distance. */
  int32_t output_count;
  void (*outputs)(const pabd_view *view, int32_t frame, double *y);
  void (*exact)(const pabd_row *row, const pabd_view *view, double t, double *y);
  const pabd_reference_table *table; /* or: outputs at these times alone; `from_table` turns a table row into outputs */
  void (*from_table)(const double *row, double *y);
  double (*distance)(const pabd_row *row, const double *y, const double *reference); /* squared, normalized */
  double scale;
  double sample_time; /* s between compared states; 0: h0 */
  /* Or a measure of its own: fills error, value, note. */
  void (*measure)(const pabd_row *row, const pabd_view *view, pabd_level *level);
  /* LADDER_SETTING: settings of this engine and preset at ladder place `x`; NULL when it has none of the kind (then
   * *why says so). Texts "key=value,...". */
  const char *(*settings)(const char *engine, const char *preset, int32_t x, char *buffer, size_t size,
                          const char **why);
  double (*theory)(const pabd_row *row, double x); /* LADDER_SETTING: the line over it */
  double green, amber;                             /* gates on the error */
  const char *words;                               /* what the number is */
  const char *source;
  const char *missing; /* not NULL: why no engine is run on it */
};

extern const pabd_row pabd_rows[];
extern const int32_t pabd_row_count;

typedef enum pabd_light { PABD_NA, PABD_RED, PABD_AMBER, PABD_GREEN } pabd_light;

typedef struct pabd_cell {
  int32_t is_done;
  pabd_light light;
  char reason[240]; /* of NA, or of a run that did not end */
  int32_t level_count;
  pabd_level levels[PABD_VALIDATE_LEVELS];
  double best, best_x;        /* error that decides, and where */
  double order;               /* fitted on the three finest steps above the rounding floor; NAN */
  double steps;               /* integrator steps (frames times known substeps), for the rounding of exact rows */
  int32_t is_monotone;        /* errors fall with the step (above the floor) */
  double time_low, time_high; /* least wall time (s) with an error of at most 1e-1, 1e-3; NAN: not reached */
  char note[96];
} pabd_cell;

typedef struct pabd_column {
  const pabd_catalog_engine *engine;
  const pabd_preset *preset; /* NULL: the engine's own */
  char label[128];
} pabd_column;

typedef struct pabd_validation {
  const char *dir, *command_line;
  pabd_effort effort;
  int32_t column_count;
  pabd_column *columns;
  int32_t row_count;
  const pabd_row **rows;
  pabd_cell *cells; /* [row_count][column_count], shared memory */
  double wall_s;
} pabd_validation;

/* Error of a trajectory sampled every row->sample_time (or at the table's times): sqrt of the mean squared distance.
 * `samples` [count][PABD_VALIDATE_OUTPUTS] (times in `times`) may be NULL; they are what pabd_validate_consistency
 * compares. Returns the count. */
int32_t pabd_validate_sample(const pabd_row *row, const pabd_view *view, int32_t capacity, double *times,
                             double (*samples)[PABD_VALIDATE_OUTPUTS]);
double pabd_validate_error(const pabd_row *row, const pabd_view *view, int32_t count, const double *times,
                           double (*samples)[PABD_VALIDATE_OUTPUTS]);
/* Fits order, lights and times of a cell whose levels are filled. */
void pabd_validate_judge(const pabd_row *row, int32_t is_float, pabd_cell *cell);
/* <dir>/validate.html, .json, .md (the table of passes). */
pabd_status pabd_validate_report(const pabd_validation *v, pabd_error *error);

#endif
