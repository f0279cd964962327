/* A plan: which cases run on which engines, with what settings, how often and in what order.
 *
 * Built from the command line, from a plan file (harness/plans/<name>.json, see harness/README.md), or both. Everything
 * that can be wrong with names, parameters and settings is found while the plan is built, before anything runs. */
#ifndef PABD_PLAN_H
#define PABD_PLAN_H

#include "catalog.h"

#define PABD_RUN_NAME_SIZE 240

/* A case with parameters in force, loaded. */
typedef struct pabd_plan_case {
  pabd_case c;
  char label[200]; /* "stack" or "stack:ratio=10,gap=0.001": only what differs from the defaults */
  char slug[120];  /* the same for file names */
} pabd_plan_case;

/* An engine with preset and overrides. */
typedef struct pabd_plan_engine {
  const pabd_catalog_engine *engine;
  const pabd_preset *preset; /* NULL: the engine's own defaults */
  int32_t override_count;    /* given beside the preset; "threads" is not among them */
  pabd_key_value *overrides;
  char label[200]; /* "bullet:advised" or "pabd:jacobi:substeps=8" */
} pabd_plan_engine;

typedef struct pabd_run {
  int32_t case_index, engine_index; /* into the plan's lists */
  int32_t repeat, threads;
  double time_limit;            /* s of wall time for the whole child process */
  int32_t warmup;               /* first frames left out of timing */
  int32_t stride;               /* of the trajectory: 0 none, -1 about 60 samples, else every n-th frame */
  int32_t trace_from, trace_to; /* frames to trace, from 1; 0, 0: none */
  uint64_t key; /* identity: case hash, engine, library hash, preset, settings, threads, repeat, warmup, trace */
  char name[PABD_RUN_NAME_SIZE]; /* file name of the record without .json */
} pabd_run;

typedef struct pabd_plan {
  char name[64]; /* of the plan file; empty for a command line */
  uint64_t order_seed;
  int32_t case_count, engine_count, run_count;
  pabd_plan_case **cases;
  pabd_plan_engine **engines;
  pabd_run *runs; /* in the order in which they run */
} pabd_plan;

/* One group of runs: all cases x all engines x repeats. Texts as on the command line. */
typedef struct pabd_request {
  const char *const *cases; /* CASE[:key=value,...], CASE may be a pattern */
  int32_t case_count;
  const char *const *engines; /* NAME[:preset][:key=value,...], NAME and preset may be patterns */
  int32_t engine_count;
  const char *tag; /* NULL, or: only cases that carry this tag (all cases when case_count is 0) */
  int32_t repeat, threads, warmup, stride, trace_from, trace_to;
  double time_limit;
} pabd_request;

/* Values that a person gave on the command line; they replace those of a plan file. Negative or NULL: not given. */
typedef struct pabd_plan_overrides {
  int32_t repeat, threads, warmup, stride, trace_from, trace_to;
  double time_limit;
  const char *const *case_patterns; /* keep only these cases */
  int32_t case_pattern_count;
  const char *const *engine_patterns; /* keep only these engines (NAME[:preset]) */
  int32_t engine_pattern_count;
  const char *tag;
} pabd_plan_overrides;

void pabd_plan_init(pabd_plan *plan, uint64_t order_seed);
void pabd_plan_free(pabd_plan *plan);
/* Defaults: one repeat, one thread, 2 warm-up frames, no trajectory, no trace, 300 s. */
pabd_request pabd_request_default(void);
/* Adds the runs of a request. Bad names and values: PABD_ERR_INPUT. */
pabd_status pabd_plan_add(pabd_plan *plan, pabd_catalog *catalog, const pabd_request *request, pabd_error *error);
/* Adds the runs of a plan file; `name` is a path or the name of a file in harness/plans. */
pabd_status pabd_plan_add_file(pabd_plan *plan, pabd_catalog *catalog, const char *name,
                               const pabd_plan_overrides *overrides, pabd_error *error);
/* Orders the runs: case by case; within a case round by round of repeats, engines shuffled in each round, so that drift
 * of the machine's speed meets all engines alike. */
void pabd_plan_order(pabd_plan *plan);
/* Settings in force as key and value: the preset's, then overrides, then threads. Returns the count; at most
 * PABD_SETTING_CAPACITY are written. */
int32_t pabd_plan_settings(const pabd_plan_engine *engine, int32_t threads, pabd_key_value *out);

#endif
