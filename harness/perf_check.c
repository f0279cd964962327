/* The command `perf-check`: is this build slower, or different, than the one it comes from?
 *
 * Both are built before, on this machine (perf_check.sh). First what is exact and free of noise: state hash, judged
 * metrics, the engine's counters (sweeps, contacts, bytes, launches, ...), instructions where the machine counts them.
 * Then times by stage in interleaved launches (perf_measure.h). A row whose A/A test does not say "no difference" is
 * refused: the machine cannot measure it now. An alarm needs a second, independent batch that agrees. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "catalog.h"
#include "command_tools.h"
#include "commands.h"
#include "perf_measure.h"
#include "plan.h"
#include "report_text.h"

/* More instructions than this are more work. */
#define INSTRUCTION_RATIO 1.02

typedef struct check {
  pabd_catalog base, head;
  pabd_plan plan; /* of the head: cases, engines, presets */
  pabd_rules rules;
  int64_t blocks, most_blocks;
  double launch_ms;
  int accepts_changes, with_times, is_self_test, counter;
  char no_counter[160]; /* why no instructions */
  pabd_text report;     /* Markdown */
  cJSON *list;
  int32_t benchmarks, skipped, changed, worse_exact, worse_time, refused_steps, timed;
} check;

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void progress(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fflush(stderr);
}

/* ---- exact ----------------------------------------------------------------------------------------------------------
 */

/* One exact quantity that differs. `is_worse` fails the check whatever was accepted. */
static void report_exact(check *k, cJSON *findings, const char *name, const char *before, const char *after,
                         int is_worse, const char *note) {
  pabd_text_add(&k->report, "| %s | %s | %s | %s%s |\n", name, before, after, is_worse ? "**worse**" : "changed", note);
  cJSON *entry = cJSON_CreateObject();
  cJSON_AddStringToObject(entry, "key", name);
  cJSON_AddStringToObject(entry, "base", before);
  cJSON_AddStringToObject(entry, "head", after);
  cJSON_AddStringToObject(entry, "verdict", is_worse ? "worse" : "changed");
  cJSON_AddItemToArray(findings, entry);
}

static void report_number(check *k, cJSON *findings, const char *name, double before, double after, int is_worse,
                          const char *note) {
  char old_text[40], new_text[40];
  snprintf(old_text, sizeof old_text, "%.9g", before);
  snprintf(new_text, sizeof new_text, "%.9g", after);
  report_exact(k, findings, name, old_text, new_text, is_worse, note);
}

/* Counters of which more means more work or more loss. The others only say that something is different. */
static int is_cost(const char *name) {
  static const char *const costs[] = {
      "sweeps",   "contacts",        "pairs",       "contact_evaluations", "bytes", "launches", "newton_iterations",
      "overflow", "newton_failures", "model_bytes", "model_operations"};
  for (size_t k = 0; k < sizeof costs / sizeof *costs; ++k) {
    if (strcmp(costs[k], name) == 0) return 1;
  }
  return 0;
}

/* Returns how many counters mean more work. */
static int compare_counters(check *k, cJSON *findings, const pabd_samples *base, const pabd_samples *head) {
  int worse = 0;
  for (int32_t j = 0; j < base->counter_count; ++j) {
    int32_t i = 0;
    while (i < head->counter_count && strcmp(head->counters[i].name, base->counters[j].name) != 0) ++i;
    char name[80];
    snprintf(name, sizeof name, "counter %s, sum over frames", base->counters[j].name);
    if (i == head->counter_count) {
      report_exact(k, findings, name, "counted", "not counted", 0, "");
      continue;
    }
    double before = base->counters[j].sum, after = head->counters[i].sum;
    if (before == after) continue;
    int is_worse = is_cost(base->counters[j].name) && after > before * (1 + k->rules.accuracy);
    worse += is_worse;
    report_number(k, findings, name, before, after, is_worse, is_worse ? ": more work" : "");
  }
  return worse;
}

/* Judged metrics. Returns how many are worse. */
static int compare_metrics(check *k, cJSON *findings, const pabd_run_result *base, const pabd_run_result *head) {
  int worse = 0;
  for (int32_t j = 0; j < base->metrics.metric_count; ++j) {
    const pabd_metric *before = &base->metrics.metrics[j], *after = pabd_metrics_get(&head->metrics, before->key);
    if (!after || (isnan(before->value) && isnan(after->value))) continue;
    double x = before->value, y = after->value;
    pabd_ratio ratio = pabd_ratio_of(&x, 1, &y, 1);
    pabd_change change = pabd_change_of_metric(&k->rules, &ratio, before->better);
    if (change == PABD_CHANGE_NONE) continue;
    int is_worse = change == PABD_CHANGE_WORSE;
    worse += is_worse;
    report_number(k, findings, before->key, x, y, is_worse, change == PABD_CHANGE_BETTER ? " (better)" : "");
  }
  return worse;
}

/* Runs base, base again and head with the judge. Returns 0, or 1 when the benchmark cannot be timed. */
static int check_exact(check *k, const pabd_perf_setup *setup, cJSON *entry, int32_t *frames) {
  pabd_perf_exact sides[PABD_PERF_SIDES];
  int worse = 0, is_bad = 0;
  for (int s = 0; s < PABD_PERF_SIDES; ++s) pabd_perf_run_exact(setup, (pabd_perf_side)s, k->counter, &sides[s]);
  const pabd_run_result *base = &sides[PABD_PERF_BASE].result, *twin = &sides[PABD_PERF_TWIN].result,
                        *head = &sides[PABD_PERF_HEAD].result;
  cJSON *findings = cJSON_AddArrayToObject(entry, "exact");
  size_t before = k->report.size;
  pabd_text_add(&k->report, "\n| exact | base | head | verdict |\n| --- | --- | --- | --- |\n");
  size_t header = k->report.size;
  char old_text[32], new_text[32];
  if (base->state != head->state) {
    const char *old_state = pabd_run_state_text(base->state), *new_state = pabd_run_state_text(head->state);
    worse += base->state == PABD_RUN_OK;
    report_exact(k, findings, "status", old_state ? old_state : "failed", new_state ? new_state : "failed",
                 base->state == PABD_RUN_OK, "");
  }
  snprintf(old_text, sizeof old_text, "%016" PRIx64, base->state_hash);
  snprintf(new_text, sizeof new_text, "%016" PRIx64, head->state_hash);
  cJSON_AddStringToObject(entry, "base_hash", old_text);
  cJSON_AddStringToObject(entry, "head_hash", new_text);
  int is_repeatable = base->state_hash == twin->state_hash;
  if (!is_repeatable)
    pabd_text_add(&k->report, "| state hash | | | refused: two launches of the base differ |\n");
  else if (base->state_hash != head->state_hash)
    report_exact(k, findings, "state hash of all frames", old_text, new_text, 0, "");
  if (base->state == PABD_RUN_OK && head->state == PABD_RUN_OK && is_repeatable) {
    worse += compare_metrics(k, findings, base, head);
    worse += compare_counters(k, findings, &base->samples, &head->samples);
  }
  double x = sides[PABD_PERF_BASE].instructions, y = sides[PABD_PERF_HEAD].instructions,
         twin_x = sides[PABD_PERF_TWIN].instructions;
  if (x > 0 && y > 0) {
    cJSON_AddNumberToObject(entry, "base_instructions", x);
    cJSON_AddNumberToObject(entry, "head_instructions", y);
    int is_steady = fabs(twin_x / x - 1) < 0.2 * (INSTRUCTION_RATIO - 1);
    int is_worse = is_steady && y > INSTRUCTION_RATIO * x;
    worse += is_worse;
    if (is_worse) report_number(k, findings, "user instructions", x, y, 1, ": more work");
  }
  int changed = cJSON_GetArraySize(findings) > 0;
  if (k->report.size == header && k->report.data) { /* no rows: no table */
    k->report.size = before;
    k->report.data[before] = 0;
    pabd_text_add(&k->report, "\nExact: the same in all %d frames (hash %s), metrics and counters.\n",
                  base->frames_done, old_text);
  }
  k->worse_exact += worse > 0;
  k->changed += changed;
  cJSON_AddBoolToObject(entry, "exact_same", !changed && is_repeatable);
  cJSON_AddNumberToObject(entry, "exact_worse", worse);
  if (base->state != PABD_RUN_OK || head->state != PABD_RUN_OK) {
    is_bad = 1;
    pabd_text_add(&k->report, "\nNot timed: a run did not come to its end (%s%s%s).\n", base->reason,
                  base->reason[0] && head->reason[0] ? "; " : "", head->reason);
  } else {
    /* As many frames as make a launch of the wanted length; the fastest frames tell the machine's speed. */
    double step_ms = NAN;
    double *copy = malloc(((size_t)base->frames_done + 1) * sizeof *copy);
    if (copy) {
      memcpy(copy, base->samples.wall_ms + 1, (size_t)base->frames_done * sizeof *copy);
      step_ms = pabd_median(copy, base->frames_done);
      free(copy);
    }
    double wanted = step_ms > 0 ? ceil(k->launch_ms / step_ms) + setup->warmup : 10;
    *frames = (int32_t)fmin(fmax(wanted, setup->warmup + 8), setup->c->frame_count);
  }
  for (int s = 0; s < PABD_PERF_SIDES; ++s) pabd_run_result_free(&sides[s].result);
  return is_bad;
}

/* ---- times ----------------------------------------------------------------------------------------------------------
 */

/* Only the A/A test can tell whether a row can be measured at all on this machine, now. */
static int is_refused(const pabd_perf_row *row) {
  return row->twin_verdict != PABD_CHANGE_NONE;
}

static int is_alarm(const pabd_perf_row *row) {
  return row->is_gated && !is_refused(row) && row->verdict == PABD_CHANGE_WORSE;
}

static const pabd_perf_row *row_named(const pabd_perf_times *times, const char *name) {
  for (int32_t k = 0; k < times->row_count; ++k) {
    if (strcmp(times->rows[k].name, name) == 0) return &times->rows[k];
  }
  return NULL;
}

static cJSON *ratio_json(const pabd_ratio *ratio) {
  cJSON *list = cJSON_CreateArray();
  const double values[3] = {ratio->ratio, ratio->low, ratio->high};
  for (int k = 0; k < 3; ++k)
    cJSON_AddItemToArray(list, isfinite(values[k]) ? cJSON_CreateNumber(values[k]) : cJSON_CreateNull());
  return list;
}

/* `second`: the batch that confirms, or NULL. Returns the number of confirmed alarms. */
static int report_times(check *k, cJSON *entry, const pabd_perf_times *first, const pabd_perf_times *second) {
  int alarms = 0;
  cJSON *rows = cJSON_AddArrayToObject(entry, "times");
  pabd_text_add(
      &k->report,
      "\n%d blocks of 6 launches of %d frames%s.\n\n| stage | base ms | head ms | head/base | 95 %% interval | A/A | "
      "verdict |\n| --- | --- | --- | --- | --- | --- | --- |\n",
      first->block_count, first->frame_count, second ? ", twice" : "");
  for (int32_t j = 0; j < first->row_count; ++j) {
    const pabd_perf_row *row = &first->rows[j], *again = second ? row_named(second, row->name) : NULL;
    const char *verdict = pabd_change_text(row->verdict);
    if (!row->is_gated) {
      verdict = "too short to gate";
    } else if (is_refused(row)) {
      verdict = "refused: its A/A test fails";
    } else if (is_alarm(row)) {
      int is_confirmed = again && is_alarm(again);
      verdict = is_confirmed ? "**worse**, confirmed" : "not confirmed by the second batch";
      alarms += is_confirmed;
    }
    int is_shown = row->is_gated;
    if (is_shown) {
      pabd_text_add(&k->report, "| %s | %.4g | %.4g | %.3f", row->name, row->base_ms, row->head_ms, row->change.ratio);
      if (again) pabd_text_add(&k->report, ", %.3f", again->change.ratio);
      pabd_text_add(&k->report, " | %.3f .. %.3f", row->change.low, row->change.high);
      if (again) pabd_text_add(&k->report, ", %.3f .. %.3f", again->change.low, again->change.high);
      pabd_text_add(&k->report, " | %.3f | %s |\n", row->self.ratio, verdict);
    }
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "stage", row->name);
    cJSON_AddNumberToObject(item, "base_ms", isfinite(row->base_ms) ? row->base_ms : 0);
    cJSON_AddNumberToObject(item, "head_ms", isfinite(row->head_ms) ? row->head_ms : 0);
    if (row->is_gated) cJSON_AddItemToObject(item, "ratio", ratio_json(&row->change));
    if (row->is_gated) cJSON_AddItemToObject(item, "self", ratio_json(&row->self));
    if (again) cJSON_AddItemToObject(item, "second_ratio", ratio_json(&again->change));
    if (again) cJSON_AddItemToObject(item, "second_self", ratio_json(&again->self));
    cJSON_AddStringToObject(item, "verdict", verdict);
    cJSON_AddItemToArray(rows, item);
  }
  if (first->row_count > 0 && is_refused(&first->rows[0])) ++k->refused_steps;
  return alarms;
}

static pabd_status check_times(check *k, const pabd_perf_setup *setup, cJSON *entry, int32_t frames,
                               pabd_error *error) {
  static pabd_perf_times first, second;
  uint64_t seed = (uint64_t)(seconds_now() * 1e6);
  PABD_TRY(pabd_perf_run_times(setup, (int32_t)k->blocks, (int32_t)k->most_blocks, frames, seed, &first, error));
  int wants_second = 0;
  for (int32_t j = 0; j < first.row_count; ++j) wants_second |= is_alarm(&first.rows[j]);
  if (wants_second)
    PABD_TRY(pabd_perf_run_times(setup, (int32_t)k->blocks, (int32_t)k->most_blocks, frames, seed + 1, &second, error));
  int alarms = report_times(k, entry, &first, wants_second ? &second : NULL);
  cJSON_AddNumberToObject(entry, "time_alarms", alarms);
  k->worse_time += alarms > 0;
  ++k->timed;
  return PABD_OK;
}

/* ---- a benchmark ----------------------------------------------------------------------------------------------------
 */

/* The same engine and preset in the base. */
static pabd_status find_base(check *k, const pabd_plan_engine *head, const pabd_catalog_engine **engine,
                             const pabd_preset **preset, pabd_error *error) {
  PABD_TRY(pabd_catalog_engine_open(&k->base, head->engine->desc.name, engine, error));
  if (!(*engine)->desc.is_available)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "the base's engine is not available: %.300s", (*engine)->desc.why);
  *preset = NULL;
  if (head->preset) PABD_TRY(pabd_catalog_find_preset(*engine, head->preset->name, preset, error));
  return PABD_OK;
}

static pabd_status check_benchmark(check *k, const pabd_run *run, cJSON *entry, pabd_error *error) {
  const pabd_plan_case *of_case = k->plan.cases[run->case_index];
  const pabd_plan_engine *of_engine = k->plan.engines[run->engine_index];
  const pabd_engine_desc *desc = &of_engine->engine->desc;
  const pabd_catalog_engine *base_engine;
  const pabd_preset *base_preset;
  static pabd_key_value head_settings[PABD_SETTING_CAPACITY], base_settings[PABD_SETTING_CAPACITY];
  if (!desc->is_available)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "the engine is not available: %.300s", desc->why);
  PABD_TRY(find_base(k, of_engine, &base_engine, &base_preset, error));
  /* The same overrides beside each side's own preset: a changed preset is a change of the product. */
  pabd_plan_engine as_base = *of_engine;
  as_base.engine = base_engine;
  as_base.preset = base_preset;
  pabd_perf_build base = {&base_engine->desc, base_settings, pabd_plan_settings(&as_base, run->threads, base_settings)};
  pabd_perf_build head = {desc, head_settings, pabd_plan_settings(of_engine, run->threads, head_settings)};
  pabd_perf_setup setup = {.c = &of_case->c,
                           .threads = run->threads,
                           .warmup = run->warmup,
                           .time_limit = run->time_limit,
                           .builds = {base, base, head},
                           .stop = &pabd_stop_wanted,
                           .rules = &k->rules};
  int32_t frames = 0;
  int is_bad = check_exact(k, &setup, entry, &frames);
  return is_bad || !k->with_times || pabd_stop_wanted ? PABD_OK : check_times(k, &setup, entry, frames, error);
}

static void check_all(check *k) {
  for (int32_t j = 0; j < k->plan.run_count && !pabd_stop_wanted; ++j) {
    const pabd_run *run = &k->plan.runs[j];
    const char *case_label = k->plan.cases[run->case_index]->label, *engine = k->plan.engines[run->engine_index]->label;
    pabd_error error = {""};
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "case", case_label);
    cJSON_AddStringToObject(entry, "engine", engine);
    pabd_text_add(&k->report, "\n## %s on %s%s\n", case_label, engine, run->threads > 1 ? " (threads)" : "");
    progress("[%d/%d] %s  %s\n", j + 1, k->plan.run_count, case_label, engine);
    ++k->benchmarks;
    if (check_benchmark(k, run, entry, &error) != PABD_OK && !pabd_stop_wanted) {
      ++k->skipped;
      pabd_text_add(&k->report, "\nSkipped: %s\n", error.text);
      cJSON_AddStringToObject(entry, "skipped", error.text);
    }
    cJSON_AddItemToArray(k->list, entry);
  }
}

/* ---- the command ----------------------------------------------------------------------------------------------------
 */

static int verdict_code(const check *k) {
  if (k->worse_exact || k->worse_time) return 1;
  if (k->changed && !k->accepts_changes) return 1;
  if (k->timed > 0 && k->refused_steps == k->timed) return 3;
  return 0;
}

static void summarize(const check *k, pabd_text *out) {
  int code = verdict_code(k);
  pabd_text_add(out, "# Performance check: %s\n\n",
                code == 1   ? "**failed**"
                : code == 3 ? "undecided, the machine is too noisy"
                            : "passed");
  pabd_text_add(out, "Base `%s`, head `%s`. %d benchmarks: %d with changed results%s, %d exactly worse, %d slower",
                k->base.places.root, k->head.places.root, k->benchmarks, k->changed,
                k->accepts_changes ? " (accepted)" : "", k->worse_exact, k->worse_time);
  if (k->skipped) pabd_text_add(out, ", %d skipped", k->skipped);
  if (k->refused_steps) pabd_text_add(out, ", %d of %d refused by the A/A test", k->refused_steps, k->timed);
  pabd_text_add(out, ".\n");
  if (k->no_counter[0]) pabd_text_add(out, "\nInstructions are not gated: %s.\n", k->no_counter);
  if (k->changed && !k->accepts_changes)
    pabd_text_add(
        out,
        "\nResults changed. If this is meant, accept it with `--accept-changes` (make perf-check ACCEPT=1); what "
        "is worse fails all the same.\n");
}

static pabd_status write_results(check *k, const pabd_arguments *a, pabd_error *error) {
  const char *json = pabd_argument(a, "json"), *markdown = pabd_argument(a, "markdown");
  pabd_text all = {0};
  summarize(k, &all);
  if (k->report.data) pabd_text_add_bytes(&all, k->report.data, k->report.size);
  pabd_text_add(&all,
                "\nRule for time: the ratio is beyond %.3g, its interval beyond %.3g, and a second batch agrees.\n",
                k->rules.time_ratio, k->rules.time_interval);
  pabd_status status = all.failed || k->report.failed
                           ? pabd_fail(error, PABD_ERR_MEMORY, "out of memory for the report")
                           : pabd_write_text(markdown ? markdown : "-", all.data, error);
  pabd_text_free(&all);
  if (status != PABD_OK || !json) return status;
  cJSON *root = cJSON_CreateObject();
  cJSON_AddNumberToObject(root, "schema", 1);
  cJSON_AddStringToObject(root, "base", k->base.places.root);
  cJSON_AddStringToObject(root, "head", k->head.places.root);
  cJSON_AddNumberToObject(root, "exit_code", verdict_code(k));
  cJSON_AddNumberToObject(root, "changed", k->changed);
  cJSON_AddNumberToObject(root, "exactly_worse", k->worse_exact);
  cJSON_AddNumberToObject(root, "slower", k->worse_time);
  cJSON_AddNumberToObject(root, "refused", k->refused_steps);
  cJSON_AddNumberToObject(root, "skipped", k->skipped);
  cJSON_AddItemReferenceToObject(root, "benchmarks", k->list);
  status = pabd_write_json(json, root, error);
  cJSON_Delete(root);
  return status;
}

static pabd_status make_plan(check *k, const pabd_arguments *a, pabd_error *error) {
  const char *engines[PABD_ARGUMENT_CAPACITY] = {"pabd"};
  int32_t engine_count = pabd_argument_list(a, "engine", engines, PABD_ARGUMENT_CAPACITY);
  int64_t threads;
  PABD_TRY(pabd_argument_int(a, "threads", 1, 1024, 1, &threads, error));
  pabd_plan_init(&k->plan, 0);
  if (a->word_count == 0) {
    pabd_plan_overrides overrides = {.repeat = 1,
                                     .threads = (int32_t)threads,
                                     .warmup = -1,
                                     .time_limit = -1,
                                     .engine_patterns = engines,
                                     .engine_pattern_count = engine_count};
    return pabd_plan_add_file(&k->plan, &k->head, "perf-check", &overrides, error);
  }
  pabd_request request = pabd_request_default();
  request.cases = a->words;
  request.case_count = a->word_count;
  request.engines = engines;
  request.engine_count = engine_count ? engine_count : 1;
  request.threads = (int32_t)threads;
  return pabd_plan_add(&k->plan, &k->head, &request, error);
}

static int perf_check(const pabd_arguments *a) {
  static check k;
  pabd_error error = {""};
  char base_engines[PABD_PATH_SIZE];
  const char *base = pabd_argument(a, "base"), *given = pabd_argument(a, "base-engines");
  memset(&k, 0, sizeof k);
  k.rules = pabd_rules_default();
  k.accepts_changes = pabd_argument(a, "accept-changes") != NULL;
  k.with_times = pabd_argument(a, "no-times") == NULL;
  if (!base) {
    pabd_fail(&error, PABD_ERR_INPUT,
              "perf-check: against what? --base DIR names a built project folder (make perf-check "
              "BASE=revision makes one)");
    return pabd_complain(&error);
  }
  if (pabd_argument_int(a, "blocks", 3, 200, 6, &k.blocks, &error) != PABD_OK ||
      pabd_argument_int(a, "most-blocks", 3, 255, 30, &k.most_blocks, &error) != PABD_OK ||
      pabd_argument_real(a, "launch-ms", 1, 60000, 40, &k.launch_ms, &error) != PABD_OK)
    return pabd_complain(&error);
  if (k.most_blocks < k.blocks) k.most_blocks = k.blocks;
  if (given)
    pabd_path_format(base_engines, "%s", given);
  else
    pabd_path_format(base_engines, "%s/build/engines", base);
  pabd_status status = pabd_catalog_open(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &k.head, &error);
  if (status != PABD_OK) return pabd_complain(&error);
  status = pabd_catalog_open(base, base_engines, &k.base, &error);
  if (status == PABD_OK) status = make_plan(&k, a, &error);
  int code = 2;
  if (status == PABD_OK) {
    pabd_stop_watch();
    k.counter = -1;
    if (pabd_argument(a, "no-instructions"))
      snprintf(k.no_counter, sizeof k.no_counter, "switched off");
    else
      k.counter = pabd_perf_open_instructions(k.no_counter, sizeof k.no_counter);
    k.list = cJSON_CreateArray();
    check_all(&k);
    if (pabd_stop_wanted)
      code = 130;
    else if ((status = write_results(&k, a, &error)) == PABD_OK)
      code = verdict_code(&k);
    cJSON_Delete(k.list);
    pabd_text_free(&k.report);
  }
  if (status != PABD_OK) code = pabd_complain(&error);
  pabd_plan_free(&k.plan);
  pabd_catalog_close(&k.base);
  pabd_catalog_close(&k.head);
  return code;
}

static const pabd_option perf_check_options[] = {
    {"base", "DIR", "project folder of the base, built (its engines in DIR/build/engines)"},
    {"base-engines", "DIR", "the base's engines, when they are elsewhere"},
    {"engine", "NAME[:preset][:k=v,...]", "engine, may be given often (default: as the plan perf-check says; pabd)"},
    {"threads", "N", "threads of the engine (default 1)"},
    {"blocks", "N", "least number of blocks of six launches (default 6)"},
    {"most-blocks", "N", "blocks after which a batch ends even if its A/A test is not narrow yet (default 30)"},
    {"launch-ms", "X", "length of a launch, ms of stepping (default 40)"},
    {"accept-changes", NULL, "changed results are meant; only what is worse fails"},
    {"no-instructions", NULL, "do not count instructions"},
    {"no-times", NULL, "only what is exact"},
    {"json", "FILE", "also write all findings; - for standard output"},
    {"markdown", "FILE", "write the report to a file instead of standard output"},
    PABD_PLACE_OPTIONS,
    {NULL, NULL, NULL}};

const pabd_command pabd_command_perf_check = {
    "perf-check",
    "--base DIR [CASE...] [--engine NAME]... [options]",
    "is this build slower, or different, than another one",
    "Compares the engines of this build with those of a base on this machine: first what is exact (state hashes, "
    "judged\n"
    "metrics, counters of work, instructions where the machine counts them), then the time of each stage in "
    "interleaved\n"
    "launches. A stage is slower when the ratio of the fastest frames is beyond 1.10, its 95 % interval beyond 1.05, "
    "and "
    "a\n"
    "second batch of launches agrees. Base against base is measured beside it; where that test does not come out as "
    "\"no\n"
    "difference\", the stage is refused. `make perf-check BASE=revision` builds both and runs this.\n\n"
    "Examples:\n"
    "  make perf-check BASE=main\n"
    "  pabd-bench perf-check --base build/perf/base stack pile:n=5 --engine pabd:jacobi\n\n"
    "Exit code: 0 no regression; 1 slower, worse, or results changed without --accept-changes; 2 bad input; 3 every "
    "time\n"
    "was refused by its A/A test; 130 interrupted.",
    perf_check_options,
    perf_check};
