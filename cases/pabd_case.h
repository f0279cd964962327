/* A case: a scene with a claim, a duration, the metrics that judge it and the bounds that are expected.
 *
 * Cases are JSON files (cases/<name>.json, schema in cases/README.md); generators in C build the families (stacks,
 * chains, grids). Parameters declared by a case can be overridden as key=value. Knows nothing of engines. */
#ifndef PABD_CASE_H
#define PABD_CASE_H

#include "pabd_scene.h"

#define PABD_KEY_SIZE 64

typedef struct pabd_case_param {
  char key[PABD_KEY_SIZE];
  char type[8];              /* "int", "real", "choice", "bool" */
  char value[PABD_KEY_SIZE]; /* in force, as text */
  char initial[PABD_KEY_SIZE];
  char range[160]; /* "1 .. 100" or "a | b" */
  char unit[16];
  char meaning[160];
} pabd_case_param;

/* One group of metrics the judge computes for this case. `kind` is a name of the judge's table (harness/judge.c), e.g.
 * "energy", "penetration", "joints", "momentum", "pile", "survive", "first_low", "stop_distance", "creep", "flips",
 * "gap_series". `body`/`joint`: index it refers to, or -1. `number`: parameters of the kind, by name in the JSON. */
typedef struct pabd_case_metric {
  char kind[32];
  int32_t body, joint;
  pabd_dvec3 axis;
  double reference; /* closed-form or published value, NAN where there is none */
  double number[4];
} pabd_case_metric;

typedef struct pabd_case_expect {
  char metric[PABD_KEY_SIZE];
  char op[4]; /* "<=", ">=", "<", ">", "==" (within tolerance) */
  double bound, tolerance;
  char reason[200];
  char
      engines[160]; /* comma-separated globs NAME[:preset] of the engines that it binds, e.g. "pabd:jacobi,pabd:hard" */
} pabd_case_expect;

typedef struct pabd_case {
  char id[PABD_KEY_SIZE]; /* file name without .json */
  char family[32];        /* "stack", "chain", "al", "pile", "sanity", ... : groups the report */
  char title[128];
  char claim[512]; /* what is tested, one or two sentences */
  char tags[128];  /* comma separated: ci, bench, figure, stress, validation */
  pabd_scene scene;
  double duration; /* s */
  int32_t frame_count;
  double settle_time;   /* s; metrics `_settled` start here; < 0: none */
  double energy_ref;    /* J, by the case's rule; > 0 */
  char energy_rule[64]; /* which rule */
  double momentum_ref;  /* kg m/s; 0 = largest single body's momentum in the run */
  int32_t param_count;
  pabd_case_param params[24];
  int32_t metric_count;
  pabd_case_metric metrics[24];
  int32_t expect_count;
  pabd_case_expect expects[32];
  char hash[17]; /* 16 hex digits of FNV-1a over the file's bytes and the parameters in force */
} pabd_case;

/* Reads the case file and builds its scene. `overrides` are "key=value" texts. On failure nothing is allocated and
 * `error` holds one line with file, key, cause and what is allowed. PABD_ERR_INPUT, PABD_ERR_IO or PABD_ERR_MEMORY. */
pabd_status pabd_case_load(const char *path, const char *const *overrides, int32_t override_count, pabd_case *out,
                           pabd_error *error);
void pabd_case_free(pabd_case *c);

#endif
