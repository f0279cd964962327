/* A case's bounds held against a run: which engines they bind, what was measured, and the verdict. */
#ifndef PABD_EXPECT_H
#define PABD_EXPECT_H

#include "child.h"
#include "plan.h"

typedef struct pabd_expect_result {
  const pabd_case_expect *expect;
  int32_t binds; /* this engine, preset and settings */
  int32_t ok;    /* the bound holds; 0 when the metric is missing or not a number */
  double value;  /* NAN: not measured */
} pabd_expect_result;

typedef enum pabd_verdict { PABD_VERDICT_NONE, PABD_VERDICT_PASS, PABD_VERDICT_FAIL } pabd_verdict;

const char *pabd_verdict_text(pabd_verdict verdict);
/* Does the bound's list of NAME[:preset] patterns bind this engine? An entry with a preset binds the preset as its file
 * has it, not a variant with overrides; an entry without one binds every preset and variant of the engine. */
int pabd_expect_binds(const char *engines, const pabd_plan_engine *engine);
/* Does `value op bound` hold? NAN never does. */
int pabd_expect_holds(const pabd_case_expect *expect, double value);
/* Fills results[0 .. c->expect_count). The value is the metric of that name, else the engine's counter "counter.<name>"
 * (its largest value). Verdict: none when nothing binds or the run is `na`; fail when a binding bound does not hold or
 * the run did not come to its end; else pass. */
pabd_verdict pabd_expect_evaluate(const pabd_case *c, const pabd_plan_engine *engine, const pabd_run_result *run,
                                  pabd_expect_result *results);

#endif
