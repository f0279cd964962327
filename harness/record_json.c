/* The JSON record of one run: built from plan, result and environment, checked, and written whole.
 *
 * Numbers that are not finite become null. Series are written with nine digits: enough for any plot, a third of the
 * size. */
#include "record_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "files.h"
#include "record_check.h"
#include "stats.h"

static void add_number(cJSON *object, const char *key, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(object, key, value);
  else
    cJSON_AddNullToObject(object, key);
}

static void add_hex(cJSON *object, const char *key, uint64_t value) {
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, value);
  cJSON_AddStringToObject(object, key, text);
}

/* ---- what the harness measures itself ------------------------------------------------------------------------------
 */

/* Does the engine's own clock count? Only for engines that run outside (their pipe is not their step), and only when
 * it does not claim more than passed. */
static int uses_own_clock(const pabd_run_result *result) {
  int32_t given = 0;
  for (int32_t f = 1; f <= result->frames_done; ++f) {
    if (!(result->samples.self_ms[f] > 0)) continue;
    if (result->samples.self_ms[f] > 1.1 * result->samples.wall_ms[f] + 0.1) return 0;
    ++given;
  }
  return given > 0 && given == result->frames_done;
}

static pabd_status set_summary(pabd_metrics *m, const char *name, pabd_summary s) {
  static const char *const parts[] = {"p50", "p95", "p99", "max", "mean"};
  double values[] = {s.p50, s.p95, s.p99, s.max, s.mean};
  if (s.count == 0) return PABD_OK;
  for (int k = 0; k < 5; ++k) {
    char key[64];
    snprintf(key, sizeof key, "%s_%s", name, parts[k]);
    PABD_TRY(pabd_metrics_set(m, key, values[k], "ms", "lower"));
  }
  return PABD_OK;
}

pabd_status pabd_record_add_timing(const pabd_case *c, const pabd_run *run, pabd_run_result *result) {
  pabd_metrics *m = &result->metrics;
  const pabd_samples *s = &result->samples;
  if (result->state == PABD_RUN_NA) return PABD_OK;
  int32_t first = run->warmup + 1, count = result->frames_done - run->warmup;
  const double *step = uses_own_clock(result) ? s->self_ms : s->wall_ms;
  if (count > 0) {
    pabd_summary summary = pabd_summarize(step + first, count);
    PABD_TRY(set_summary(m, "step_ms", summary));
    PABD_TRY(set_summary(m, "collide_ms", pabd_summarize(s->collide_ms + first, count)));
    PABD_TRY(set_summary(m, "solve_ms", pabd_summarize(s->solve_ms + first, count)));
    if (step != s->wall_ms)
      PABD_TRY(pabd_metrics_set(m, "wall_ms_p50", pabd_summarize(s->wall_ms + first, count).p50, "ms", "info"));
    PABD_TRY(pabd_metrics_set(m, "cpu_ms_mean", pabd_summarize(s->cpu_ms + first, count).mean, "ms", "lower"));
    if (summary.mean > 0) PABD_TRY(pabd_metrics_set(m, "rtf", 1e3 * c->scene.frame_time / summary.mean, "1", "higher"));
  }
  if (result->create_ms > 0) PABD_TRY(pabd_metrics_set(m, "create_ms", result->create_ms, "ms", "lower"));
  PABD_TRY(pabd_metrics_set(m, "peak_rss_mib", result->peak_rss_mib, "MiB", "info"));
  /* Index = frame, as in the judge's series; frame 0 has no step. */
  if (result->frames_done > 0) {
    PABD_TRY(pabd_series_append(m, "step_ms", "ms", NAN));
    for (int32_t f = 1; f <= result->frames_done; ++f) PABD_TRY(pabd_series_append(m, "step_ms", "ms", step[f]));
  }
  return PABD_OK;
}

const char *pabd_record_timing_fault(const pabd_case *c, const pabd_run *run, const pabd_run_result *result,
                                     pabd_verdict verdict) {
  const pabd_metric *survived = pabd_metrics_get(&result->metrics, "survive_s");
  const pabd_metric *lost = pabd_metrics_get(&result->metrics, "bodies_lost");
  if (result->state != PABD_RUN_OK) return "the run did not come to its end";
  if (result->frames_done <= run->warmup) return "no frames after the warm-up";
  if (run->trace_from > 0) return "sweeps were traced";
  if (survived && survived->value < c->duration - 0.5 * c->scene.frame_time) return "the structure collapsed";
  if (lost && lost->value > 0) return "bodies were lost";
  if (verdict == PABD_VERDICT_FAIL) return "an expectation that binds this engine failed";
  return NULL;
}

/* ---- blocks of the record ------------------------------------------------------------------------------------------
 */

static void add_case(cJSON *record, const pabd_plan_case *item) {
  const pabd_case *c = &item->c;
  cJSON *block = cJSON_AddObjectToObject(record, "case"), *params;
  cJSON_AddStringToObject(block, "id", c->id);
  cJSON_AddStringToObject(block, "family", c->family);
  cJSON_AddStringToObject(block, "title", c->title);
  cJSON_AddStringToObject(block, "claim", c->claim);
  cJSON_AddStringToObject(block, "tags", c->tags);
  cJSON_AddStringToObject(block, "hash", c->hash);
  cJSON_AddStringToObject(block, "label", item->label);
  const cJSON *seed = NULL;
  params = cJSON_AddObjectToObject(block, "params");
  for (int32_t k = 0; k < c->param_count; ++k) {
    const pabd_case_param *param = &c->params[k];
    int is_number = strcmp(param->type, "int") == 0 || strcmp(param->type, "real") == 0;
    cJSON *entry = cJSON_AddObjectToObject(params, param->key);
    if (is_number) {
      add_number(entry, "value", strtod(param->value, NULL));
      add_number(entry, "initial", strtod(param->initial, NULL));
    } else {
      cJSON_AddStringToObject(entry, "value", param->value);
      cJSON_AddStringToObject(entry, "initial", param->initial);
    }
    cJSON_AddStringToObject(entry, "unit", param->unit);
    if (strcmp(param->key, "seed") == 0) seed = cJSON_GetObjectItemCaseSensitive(entry, "value");
  }
  cJSON_AddItemToObject(block, "seed", seed ? cJSON_Duplicate(seed, 1) : cJSON_CreateNull());
  add_number(block, "duration", c->duration);
  add_number(block, "frame_time", c->scene.frame_time);
  add_number(block, "frame_count", c->frame_count);
  add_number(block, "settle_time", c->settle_time >= 0 ? c->settle_time : NAN);
  add_number(block, "energy_ref", c->energy_ref);
  cJSON_AddStringToObject(block, "energy_rule", c->energy_rule);
  add_number(block, "body_count", c->scene.body_count);
  add_number(block, "joint_count", c->scene.joint_count);
}

static void add_engine(cJSON *record, const pabd_plan_engine *item, const pabd_run *run,
                       const pabd_run_result *result) {
  const pabd_engine_desc *desc = &item->engine->desc;
  cJSON *block = cJSON_AddObjectToObject(record, "engine");
  cJSON_AddStringToObject(block, "name", desc->name);
  cJSON_AddStringToObject(block, "version", desc->version);
  cJSON_AddStringToObject(block, "preset", item->preset ? item->preset->name : "");
  cJSON_AddStringToObject(block, "preset_source", item->preset ? item->preset->source : "");
  cJSON_AddStringToObject(block, "label", item->label);
  cJSON_AddStringToObject(block, "precision", desc->precision);
  cJSON_AddStringToObject(block, "device", desc->device);
  cJSON_AddStringToObject(block, "license", desc->license);
  cJSON_AddStringToObject(block, "build", desc->build);
  add_hex(block, "library_hash", desc->library_hash);
  cJSON *capabilities = cJSON_AddArrayToObject(block, "capabilities");
  for (int32_t bit = 0; pabd_capability_name(bit); ++bit) {
    if (desc->capabilities >> bit & 1)
      cJSON_AddItemToArray(capabilities, cJSON_CreateString(pabd_capability_name(bit)));
  }
  cJSON *overrides = cJSON_AddObjectToObject(block, "overrides");
  for (int32_t k = 0; k < item->override_count; ++k)
    cJSON_AddStringToObject(overrides, item->overrides[k].key, item->overrides[k].value);
  cJSON *params = cJSON_AddObjectToObject(block, "params");
  if (result->setting_count > 0) {
    for (int32_t k = 0; k < result->setting_count; ++k)
      cJSON_AddStringToObject(params, desc->settings[k].key, result->settings[k]);
  } else {
    /* No world was made: what it would have been asked for. */
    pabd_key_value settings[PABD_SETTING_CAPACITY];
    int32_t count = pabd_plan_settings(item, run->threads, settings);
    for (int32_t k = 0; k < count; ++k) cJSON_AddStringToObject(params, settings[k].key, settings[k].value);
  }
}

static void add_metrics(cJSON *record, const pabd_metrics *m) {
  cJSON *block = cJSON_AddObjectToObject(record, "metrics");
  for (int32_t k = 0; k < m->metric_count; ++k) {
    cJSON *entry = cJSON_AddObjectToObject(block, m->metrics[k].key);
    add_number(entry, "value", m->metrics[k].value);
    cJSON_AddStringToObject(entry, "unit", m->metrics[k].unit);
    cJSON_AddStringToObject(entry, "better", m->metrics[k].better);
  }
}

/* A raw JSON list; NULL when memory is out. */
static cJSON *number_list(const double *values, int32_t count) {
  char *text = malloc((size_t)count * 18 + 3), *at = text;
  if (!text) return NULL;
  *at++ = '[';
  for (int32_t k = 0; k < count; ++k) {
    if (k) *at++ = ',';
    at += isfinite(values[k]) ? sprintf(at, "%.9g", values[k]) : sprintf(at, "null");
  }
  *at++ = ']';
  *at = 0;
  cJSON *list = cJSON_CreateRaw(text);
  free(text);
  return list;
}

static void add_series(cJSON *record, const pabd_metrics *m) {
  cJSON *block = cJSON_AddObjectToObject(record, "series");
  for (int32_t k = 0; k < m->series_count; ++k) {
    cJSON *entry = cJSON_AddObjectToObject(block, m->series[k].key);
    cJSON_AddStringToObject(entry, "unit", m->series[k].unit);
    cJSON_AddItemToObject(entry, "values", number_list(m->series[k].values, m->series[k].count));
  }
}

static void add_expects(cJSON *record, const pabd_expect_result *results, int32_t count) {
  cJSON *block = cJSON_AddArrayToObject(record, "expect");
  for (int32_t k = 0; k < count; ++k) {
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "metric", results[k].expect->metric);
    cJSON_AddStringToObject(entry, "op", results[k].expect->op);
    add_number(entry, "bound", results[k].expect->bound);
    add_number(entry, "tolerance", results[k].expect->tolerance);
    cJSON_AddStringToObject(entry, "reason", results[k].expect->reason);
    cJSON_AddStringToObject(entry, "engines", results[k].expect->engines);
    cJSON_AddBoolToObject(entry, "binds", results[k].binds);
    cJSON_AddBoolToObject(entry, "ok", results[k].ok);
    add_number(entry, "value", results[k].value);
    cJSON_AddItemToArray(block, entry);
  }
}

static void add_timing(cJSON *record, const pabd_case *c, const pabd_run *run, const pabd_run_result *result,
                       pabd_verdict verdict) {
  cJSON *block = cJSON_AddObjectToObject(record, "timing");
  const char *fault = pabd_record_timing_fault(c, run, result, verdict);
  int32_t samples = result->frames_done - run->warmup;
  cJSON_AddBoolToObject(block, "timing_valid", fault == NULL);
  cJSON_AddStringToObject(block, "why", fault ? fault : "");
  cJSON_AddStringToObject(block, "clock", uses_own_clock(result) ? "engine" : "harness");
  add_number(block, "warmup", run->warmup);
  add_number(block, "samples", samples > 0 ? samples : 0);
  add_number(block, "frames_done", result->frames_done);
  add_number(block, "metrics_frame", result->metrics_frame);
  add_number(block, "wall_s", result->wall_s);
}

static void add_stages(cJSON *record, const pabd_run *run, const pabd_run_result *result) {
  cJSON *block = cJSON_AddObjectToObject(record, "stages");
  int32_t count = result->frames_done - run->warmup;
  for (int32_t k = 0; k < result->samples.stage_count; ++k) {
    cJSON *entry = cJSON_AddObjectToObject(block, result->samples.stages[k].name);
    pabd_summary s = pabd_summarize(result->samples.stages[k].ms + run->warmup + 1, count > 0 ? count : 0);
    cJSON_AddStringToObject(entry, "part", result->samples.stages[k].is_collide ? "collide" : "solve");
    cJSON_AddStringToObject(entry, "unit", "ms");
    add_number(entry, "p50", s.p50);
    add_number(entry, "p95", s.p95);
    add_number(entry, "max", s.max);
    add_number(entry, "mean", s.mean);
  }
  block = cJSON_AddObjectToObject(record, "counters");
  for (int32_t k = 0; k < result->samples.counter_count; ++k) {
    int32_t finite = result->samples.counters[k].count;
    cJSON *entry = cJSON_AddObjectToObject(block, result->samples.counters[k].name);
    cJSON_AddStringToObject(entry, "unit", result->samples.counters[k].unit);
    add_number(entry, "last", result->samples.counters[k].last);
    add_number(entry, "mean", finite ? result->samples.counters[k].sum / finite : NAN);
    add_number(entry, "max", finite ? result->samples.counters[k].max : NAN);
  }
}

static void add_run(cJSON *record, const pabd_plan *plan, const pabd_run *run, int32_t order) {
  cJSON *block = cJSON_AddObjectToObject(record, "run");
  char seed[24];
  add_hex(block, "key", run->key);
  cJSON_AddStringToObject(block, "name", run->name);
  cJSON_AddStringToObject(block, "plan", plan->name);
  add_number(block, "repeat", run->repeat);
  add_number(block, "threads", run->threads);
  add_number(block, "time_limit", run->time_limit);
  add_number(block, "order", order);
  /* 64 bits do not fit into a JSON number. */
  snprintf(seed, sizeof seed, "%" PRIu64, plan->order_seed);
  cJSON_AddStringToObject(block, "order_seed", seed);
  if (run->trace_from > 0) {
    cJSON *frames = cJSON_AddArrayToObject(block, "trace_frames");
    cJSON_AddItemToArray(frames, cJSON_CreateNumber(run->trace_from));
    cJSON_AddItemToArray(frames, cJSON_CreateNumber(run->trace_to));
  } else {
    cJSON_AddNullToObject(block, "trace_frames");
  }
}

cJSON *pabd_record_build(const pabd_plan *plan, const pabd_run *run, const pabd_run_result *result,
                         const pabd_invocation *invocation, const char *trajectory, int32_t order,
                         pabd_verdict *verdict) {
  const pabd_plan_case *of_case = plan->cases[run->case_index];
  const pabd_plan_engine *of_engine = plan->engines[run->engine_index];
  pabd_expect_result expects[sizeof of_case->c.expects / sizeof of_case->c.expects[0]];
  cJSON *record = cJSON_CreateObject();
  if (!record) return NULL;
  *verdict = pabd_expect_evaluate(&of_case->c, of_engine, result, expects);
  cJSON_AddNumberToObject(record, "schema", PABD_RECORD_SCHEMA);
  cJSON_AddStringToObject(record, "status", pabd_run_state_text(result->state));
  cJSON_AddStringToObject(record, "reason", result->reason);
  cJSON_AddStringToObject(record, "verdict", pabd_verdict_text(*verdict));
  add_run(record, plan, run, order);
  add_case(record, of_case);
  add_engine(record, of_engine, run, result);
  cJSON_AddItemToObject(record, "env", pabd_env_json(invocation->root, invocation->command));
  if (result->has_hash)
    add_hex(record, "state_hash", result->state_hash);
  else
    cJSON_AddNullToObject(record, "state_hash");
  add_metrics(record, &result->metrics);
  add_expects(record, expects, of_case->c.expect_count);
  add_timing(record, &of_case->c, run, result, *verdict);
  add_stages(record, run, result);
  cJSON *warnings = cJSON_AddArrayToObject(record, "warnings");
  for (int32_t k = 0; k < result->warning_count; ++k)
    cJSON_AddItemToArray(warnings, cJSON_CreateString(result->warnings[k]));
  cJSON_AddStringToObject(record, "output", result->output);
  if (trajectory)
    cJSON_AddStringToObject(record, "trajectory", trajectory);
  else
    cJSON_AddNullToObject(record, "trajectory");
  add_series(record, &result->metrics);
  return record;
}

pabd_status pabd_record_write(const cJSON *record, const char *folder, const char *name, pabd_error *error) {
  char *text = cJSON_Print(record), path[PABD_PATH_SIZE];
  if (!text) return pabd_fail(error, PABD_ERR_MEMORY, "%s: out of memory for the record", name);
  /* Check what will be read, not the tree in memory: raw lists are only parsed here. */
  pabd_path_format(path, "%s/%s.json", folder, name);
  pabd_status status = pabd_record_check_text(path, text, strlen(text), error);
  if (status == PABD_OK) {
    size_t length = strlen(text);
    text[length] = '\n'; /* instead of the terminating 0 */
    status = pabd_file_write_whole(path, text, length + 1, error);
  } else {
    status = PABD_ERR_INTERNAL;
  }
  free(text);
  return status;
}
