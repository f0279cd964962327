/* A case's bounds held against a run: which engines they bind, what was measured, and the verdict. */
#include "expect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "names.h"

const char *pabd_verdict_text(pabd_verdict verdict) {
  return verdict == PABD_VERDICT_PASS ? "pass" : verdict == PABD_VERDICT_FAIL ? "fail" : "none";
}

int pabd_expect_binds(const char *engines, const pabd_plan_engine *engine) {
  char name[2 * PABD_KEY_SIZE + 2];
  /* Patterns with a preset see "name:preset"; a plain pattern must match the bare name. '*' would match across the
   * colon, so the two are told apart entry by entry. */
  while (*engines) {
    char entry[160];
    size_t length = strcspn(engines, ",");
    snprintf(entry, sizeof entry, "%.*s", (int)length, engines);
    engines += length + (engines[length] == ',');
    if (!strchr(entry, ':')) {
      if (pabd_list_match(entry, engine->engine->desc.name)) return 1;
      continue;
    }
    if (engine->override_count > 0) continue;
    snprintf(name, sizeof name, "%s:%s", engine->engine->desc.name, engine->preset ? engine->preset->name : "");
    if (pabd_list_match(entry, name)) return 1;
  }
  return 0;
}

int pabd_expect_holds(const pabd_case_expect *expect, double value) {
  if (isnan(value)) return 0;
  if (strcmp(expect->op, "<=") == 0) return value <= expect->bound;
  if (strcmp(expect->op, ">=") == 0) return value >= expect->bound;
  if (strcmp(expect->op, "<") == 0) return value < expect->bound;
  if (strcmp(expect->op, ">") == 0) return value > expect->bound;
  return fabs(value - expect->bound) <= expect->tolerance;
}

static double find_value(const pabd_run_result *run, const char *key) {
  const pabd_metric *metric = pabd_metrics_get(&run->metrics, key);
  if (metric) return metric->value;
  if (strncmp(key, "counter.", 8) != 0) return NAN;
  for (int32_t k = 0; k < run->samples.counter_count; ++k) {
    if (strcmp(run->samples.counters[k].name, key + 8) == 0 && run->samples.counters[k].count > 0)
      return run->samples.counters[k].max;
  }
  return NAN;
}

pabd_verdict pabd_expect_evaluate(const pabd_case *c, const pabd_plan_engine *engine, const pabd_run_result *run,
                                  pabd_expect_result *results) {
  int32_t binding = 0, broken = 0;
  for (int32_t k = 0; k < c->expect_count; ++k) {
    const pabd_case_expect *expect = &c->expects[k];
    double value = find_value(run, expect->metric);
    results[k] = (pabd_expect_result){expect, pabd_expect_binds(expect->engines, engine),
                                      pabd_expect_holds(expect, value), value};
    binding += results[k].binds;
    broken += results[k].binds && !results[k].ok;
  }
  if (binding == 0 || run->state == PABD_RUN_NA) return PABD_VERDICT_NONE;
  return broken > 0 || run->state != PABD_RUN_OK ? PABD_VERDICT_FAIL : PABD_VERDICT_PASS;
}
