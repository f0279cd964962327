/* The JSON record of one run (schema 1, in words in README.md). */
#ifndef PABD_RECORD_JSON_H
#define PABD_RECORD_JSON_H

#include <cjson/cJSON.h>

#include "child.h"
#include "expect.h"
#include "plan.h"

/* Facts of an invocation that every one of its records carries. */
typedef struct pabd_invocation {
  const char *root;    /* project folder */
  const char *command; /* command line, quoted */
} pabd_invocation;

/* Adds what the harness measured itself (times, memory) to the run's metrics and series: step_ms_*, collide_ms_*,
 * solve_ms_*, cpu_ms_mean, create_ms, rtf, peak_rss_mib; series step_ms. */
pabd_status pabd_record_add_timing(const pabd_case *c, const pabd_run *run, pabd_run_result *result);
/* Builds the record. `trajectory`: file name beside the record, or NULL. `order`: place among the invocation's runs.
 * NULL when memory is out. The caller deletes it. */
cJSON *pabd_record_build(const pabd_plan *plan, const pabd_run *run, const pabd_run_result *result,
                         const pabd_invocation *invocation, const char *trajectory, int32_t order,
                         pabd_verdict *verdict);
/* Why this run's times say nothing about the scene; NULL when they are good. */
const char *pabd_record_timing_fault(const pabd_case *c, const pabd_run *run, const pabd_run_result *result,
                                     pabd_verdict verdict);
/* Checks the record against the schema and writes <folder>/<name>.json, whole or not at all. */
pabd_status pabd_record_write(const cJSON *record, const char *folder, const char *name, pabd_error *error);

#endif
