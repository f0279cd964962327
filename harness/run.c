/* The command `run`: builds the plan, runs what has no record yet, writes one record a run, and tells how it went.
 *
 * Order of writing: trajectory first, then the record that names it. Interrupted runs leave nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "catalog.h"
#include "child.h"
#include "command_tools.h"
#include "commands.h"
#include "expect.h"
#include "plan.h"
#include "progress.h"
#include "record_check.h"
#include "record_json.h"

/* Everything a run needs from its invocation. */
typedef struct session {
  const pabd_plan *plan;
  pabd_invocation invocation;
  char out[PABD_PATH_SIZE], records[PABD_PATH_SIZE];
  int is_forced, trajectory_size;
  pabd_progress progress;
  cJSON *collected; /* list for --json, or NULL */
  int32_t counts[PABD_RUN_FAILED + 1], skipped, failed_expects, unavailable;
  char complaint[512]; /* first bad input or failure of the harness */
} session;

static uint64_t seed_from_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return ((uint64_t)now.tv_sec * 1000003u ^ (uint64_t)now.tv_nsec) % 1000000000u; /* short enough to type again */
}

static void run_label(const pabd_plan *plan, const pabd_run *run, char *out, size_t size) {
  int used = snprintf(out, size, "%.110s  %.110s", plan->cases[run->case_index]->label,
                      plan->engines[run->engine_index]->label);
  if (run->threads != 1) used += snprintf(out + used, size - (size_t)used, "  %d threads", run->threads);
  snprintf(out + used, size - (size_t)used, "  r%d", run->repeat);
}

static const char *text_of(const cJSON *object, const char *block, const char *key) {
  if (block) object = cJSON_GetObjectItemCaseSensitive(object, block);
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return text ? text : "";
}

/* The record of this very run, if it is there already and holds all that is asked for now. The caller deletes it. */
static cJSON *existing_record(const session *s, const pabd_run *run) {
  char path[PABD_PATH_SIZE], key[17];
  cJSON *record;
  pabd_path_format(path, "%s/%s.json", s->records, run->name);
  if (!pabd_is_file(path) || pabd_record_read(path, &record, NULL) != PABD_OK) return NULL;
  snprintf(key, sizeof key, "%016llx", (unsigned long long)run->key);
  int is_same = strcmp(text_of(record, "run", "key"), key) == 0;
  const char *status = text_of(record, NULL, "status"), *trajectory = text_of(record, NULL, "trajectory");
  if (is_same && run->stride != 0 && strcmp(status, "na") != 0) {
    pabd_path_format(path, "%s/%s", s->records, trajectory);
    is_same = trajectory[0] && pabd_is_file(path);
  }
  /* A run that once had too little time deserves more. */
  const cJSON *limit = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(record, "run"), "time_limit");
  if (is_same && strcmp(status, "timeout") == 0 && run->time_limit > limit->valuedouble) is_same = 0;
  if (is_same) return record;
  cJSON_Delete(record);
  return NULL;
}

/* Should be here but is not: engines that are set up on demand only do not count. */
static int is_missing(const pabd_engine_desc *engine) {
  return !engine->is_available && strncmp(engine->why, "not set up", 10) != 0;
}

/* Runs without a child: an engine that is not here, or that lacks what the scene needs. Returns 1 when that is so. */
static int is_not_applicable(const pabd_plan *plan, const pabd_run *run, pabd_run_result *result) {
  const pabd_engine_desc *engine = &plan->engines[run->engine_index]->engine->desc;
  char names[400];
  memset(result, 0, sizeof *result);
  result->state = PABD_RUN_NA;
  if (!engine->is_available) {
    snprintf(result->reason, sizeof result->reason, "not available: %s", engine->why);
    return 1;
  }
  uint64_t lacks = pabd_scene_needs(&plan->cases[run->case_index]->c.scene) & ~engine->capabilities;
  if (run->trace_from > 0 && !(engine->capabilities & PABD_CAN_TRACE)) lacks |= PABD_CAN_TRACE;
  if (!lacks) return 0;
  pabd_capability_list(lacks, names, sizeof names);
  snprintf(result->reason, sizeof result->reason, "the engine cannot do what the scene needs: %s", names);
  return 1;
}

/* One line for the progress display. */
static void describe_result(const pabd_run_result *result, const cJSON *record, char *out, size_t size) {
  const char *verdict = text_of(record, NULL, "verdict");
  const pabd_metric *step = pabd_metrics_get(&result->metrics, "step_ms_p50");
  int used = snprintf(out, size, "%s", pabd_run_state_text(result->state));
  if (strcmp(verdict, "none") != 0) used += snprintf(out + used, size - (size_t)used, ", %s", verdict);
  const cJSON *expect;
  cJSON_ArrayForEach(expect, cJSON_GetObjectItemCaseSensitive(record, "expect")) {
    if (result->state == PABD_RUN_NA || !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(expect, "binds"))) continue;
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(expect, "ok"))) continue;
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(expect, "value");
    char measured[32] = "nothing";
    if (cJSON_IsNumber(value)) snprintf(measured, sizeof measured, "%.4g", value->valuedouble);
    used +=
        snprintf(out + used, size - (size_t)used, " (%s = %s, expected %s %.4g)", text_of(expect, NULL, "metric"),
                 measured, text_of(expect, NULL, "op"), cJSON_GetObjectItemCaseSensitive(expect, "bound")->valuedouble);
    break;
  }
  if (step) used += snprintf(out + used, size - (size_t)used, ", step %.3g ms", step->value);
  if (result->state != PABD_RUN_NA) used += snprintf(out + used, size - (size_t)used, ", %.1f s", result->wall_s);
  if (result->warning_count) used += snprintf(out + used, size - (size_t)used, ", %d warnings", result->warning_count);
  if (result->reason[0]) snprintf(out + used, size - (size_t)used, ": %s", result->reason);
}

/* Runs the child with a trajectory file if one is wanted. `name`: "" or the trajectory's file name. */
static void execute(session *s, const pabd_run *run, pabd_new_file *trajectory, char *name, size_t name_size,
                    pabd_run_result *result) {
  const pabd_plan_case *of_case = s->plan->cases[run->case_index];
  const pabd_plan_engine *of_engine = s->plan->engines[run->engine_index];
  pabd_key_value settings[PABD_SETTING_CAPACITY];
  pabd_error error = {""};
  pabd_job job = {.c = &of_case->c,
                  .engine = &of_engine->engine->desc,
                  .settings = settings,
                  .setting_count = pabd_plan_settings(of_engine, run->threads, settings),
                  .threads = run->threads,
                  .time_limit = run->time_limit,
                  .with_judge = 1,
                  .trajectory = -1,
                  .stride = 1,
                  .value_size = s->trajectory_size,
                  .trace_from = run->trace_from,
                  .trace_to = run->trace_to};
  trajectory->descriptor = -1;
  name[0] = 0;
  pabd_trajectory_header header = {.value_size = (uint32_t)job.value_size,
                                   .body_count = (uint32_t)of_case->c.scene.body_count,
                                   .frame_time = of_case->c.scene.frame_time};
  if (run->stride != 0) {
    char path[PABD_PATH_SIZE];
    job.stride = run->stride > 0 ? run->stride : (of_case->c.frame_count + 59) / 60;
    if (job.stride < 1) job.stride = 1;
    header.stride = (uint32_t)job.stride;
    snprintf(name, name_size, "%s.traj", run->name);
    pabd_path_format(path, "%s/%s", s->records, name);
    pabd_status status = pabd_new_file_open(trajectory, path, &error);
    /* The header comes first in the file; it is written again when the counts are known. */
    if (status == PABD_OK) status = pabd_write_all(trajectory->descriptor, &header, sizeof header, &error);
    if (status != PABD_OK) {
      memset(result, 0, sizeof *result);
      result->state = PABD_RUN_FAILED;
      snprintf(result->reason, sizeof result->reason, "%s", error.text);
      return;
    }
    job.trajectory = trajectory->descriptor;
  }
  pabd_child_run(&job, &pabd_stop_wanted, pabd_progress_tick, &s->progress, result);
  if (job.trajectory < 0 || !pabd_run_state_text(result->state)) return;
  if (result->trajectory_samples == 0) { /* nothing to show: an engine that is `na`, or died at once */
    pabd_new_file_abandon(trajectory);
    name[0] = 0;
    return;
  }
  header.sample_count = result->trajectory_samples;
  header.frame_count = (uint32_t)result->frames_done;
  if (pabd_trajectory_write_header(job.trajectory, header, &error) != PABD_OK) {
    result->state = PABD_RUN_FAILED;
    snprintf(result->reason, sizeof result->reason, "%s", error.text);
  }
}

/* Runs one entry of the plan and writes its record. */
static void do_run(session *s, int32_t order) {
  const pabd_run *run = &s->plan->runs[order];
  const pabd_case *c = &s->plan->cases[run->case_index]->c;
  pabd_new_file trajectory = {.descriptor = -1};
  pabd_run_result result;
  pabd_error error = {""};
  char label[256], text[1200], trajectory_name[PABD_RUN_NAME_SIZE + 8] = "";
  run_label(s->plan, run, label, sizeof label);
  pabd_progress_begin_run(&s->progress, label);
  if (!is_not_applicable(s->plan, run, &result))
    execute(s, run, &trajectory, trajectory_name, sizeof trajectory_name, &result);
  else if (is_missing(&s->plan->engines[run->engine_index]->engine->desc))
    ++s->unavailable;
  if (pabd_run_state_text(result.state) && pabd_record_add_timing(c, run, &result) != PABD_OK) {
    result.state = PABD_RUN_FAILED;
    snprintf(result.reason, sizeof result.reason, "out of memory for the run's metrics");
  }
  cJSON *record = NULL;
  pabd_verdict verdict = PABD_VERDICT_NONE;
  if (pabd_run_state_text(result.state)) {
    record = pabd_record_build(s->plan, run, &result, &s->invocation, trajectory_name[0] ? trajectory_name : NULL,
                               order, &verdict);
    pabd_status status = record ? PABD_OK : pabd_fail(&error, PABD_ERR_MEMORY, "out of memory for the record");
    if (status == PABD_OK && trajectory_name[0]) status = pabd_new_file_commit(&trajectory, &error);
    if (status == PABD_OK) status = pabd_record_write(record, s->records, run->name, &error);
    if (status != PABD_OK) {
      result.state = PABD_RUN_FAILED;
      snprintf(result.reason, sizeof result.reason, "%s", error.text);
    }
  }
  pabd_new_file_abandon(&trajectory);
  ++s->counts[result.state];
  s->failed_expects += verdict == PABD_VERDICT_FAIL;
  if (pabd_run_state_text(result.state)) {
    describe_result(&result, record, text, sizeof text);
    pabd_progress_end_run(&s->progress, text, result.state != PABD_RUN_OK || verdict == PABD_VERDICT_FAIL);
  } else if (result.state != PABD_RUN_INTERRUPTED) {
    if (!s->complaint[0]) snprintf(s->complaint, sizeof s->complaint, "%.220s: %.280s", label, result.reason);
    snprintf(text, sizeof text, "no record: %s", result.reason);
    pabd_progress_end_run(&s->progress, text, 1);
  }
  if (record && s->collected && result.state != PABD_RUN_FAILED)
    cJSON_AddItemToArray(s->collected, record);
  else
    cJSON_Delete(record);
  pabd_run_result_free(&result);
}

/* ---- options to plan ------------------------------------------------------------------------------------------------
 */

typedef struct options {
  int64_t repeat, threads, warmup, seed;
  double time_limit;
  int32_t stride, trace_from, trace_to;
  const char *engines[PABD_ARGUMENT_CAPACITY];
  int32_t engine_count;
} options;

static pabd_status read_options(const pabd_arguments *a, options *o, pabd_error *error) {
  int32_t frames[2] = {0, 0}, frame_count = 0;
  memset(o, 0, sizeof *o);
  PABD_TRY(pabd_argument_int(a, "repeat", 1, 1000, -1, &o->repeat, error));
  PABD_TRY(pabd_argument_int(a, "threads", 1, 1024, -1, &o->threads, error));
  PABD_TRY(pabd_argument_int(a, "warmup", 0, 100000, -1, &o->warmup, error));
  PABD_TRY(pabd_argument_int(a, "seed", 0, INT64_MAX, (int64_t)seed_from_clock(), &o->seed, error));
  PABD_TRY(pabd_argument_real(a, "time-limit", 0.01, 1e7, -1, &o->time_limit, error));
  PABD_TRY(pabd_argument_counts(a, "trace-frames", frames, 2, &frame_count, error));
  if (pabd_argument(a, "trace") || frame_count > 0) {
    o->trace_from = frame_count > 0 ? frames[0] : 1;
    o->trace_to = frame_count > 1 ? frames[1] : o->trace_from;
    if (o->trace_to < o->trace_from)
      return pabd_fail(error, PABD_ERR_INPUT, "run: --trace-frames=%d..%d: the second must not be less", o->trace_from,
                       o->trace_to);
  }
  const char *stride = pabd_argument(a, "trajectory");
  if (stride && stride[0]) {
    int64_t value;
    PABD_TRY(pabd_argument_int(a, "trajectory", 1, 100000, 1, &value, error));
    o->stride = (int32_t)value;
  } else if (stride || pabd_argument(a, "trajectory-double")) {
    o->stride = -1;
  }
  o->engine_count = pabd_argument_list(a, "engine", o->engines, PABD_ARGUMENT_CAPACITY);
  return PABD_OK;
}

static pabd_status build_plan(const pabd_arguments *a, const options *o, pabd_catalog *catalog, pabd_plan *plan,
                              pabd_error *error) {
  const char *file = pabd_argument(a, "plan"), *tag = pabd_argument(a, "tag");
  pabd_plan_init(plan, (uint64_t)o->seed);
  if (file) {
    pabd_plan_overrides overrides = {.repeat = (int32_t)o->repeat,
                                     .threads = (int32_t)o->threads,
                                     .warmup = (int32_t)o->warmup,
                                     .stride = o->stride,
                                     .trace_from = o->trace_from,
                                     .trace_to = o->trace_to,
                                     .time_limit = o->time_limit,
                                     .case_patterns = a->words,
                                     .case_pattern_count = a->word_count,
                                     .engine_patterns = o->engines,
                                     .engine_pattern_count = o->engine_count,
                                     .tag = tag};
    PABD_TRY(pabd_plan_add_file(plan, catalog, file, &overrides, error));
  } else {
    static const char *const default_engine[] = {"pabd"};
    if (a->word_count == 0 && !tag)
      return pabd_fail(error, PABD_ERR_INPUT,
                       "run: which case? For example: pabd-bench run stack --engine pabd --engine bullet "
                       "(pabd-bench list shows all)");
    pabd_request request = pabd_request_default();
    request.cases = a->words;
    request.case_count = a->word_count;
    request.engines = o->engine_count ? o->engines : default_engine;
    request.engine_count = o->engine_count ? o->engine_count : 1;
    request.tag = tag;
    if (o->repeat > 0) request.repeat = (int32_t)o->repeat;
    if (o->threads > 0) request.threads = (int32_t)o->threads;
    if (o->warmup >= 0) request.warmup = (int32_t)o->warmup;
    if (o->time_limit > 0) request.time_limit = o->time_limit;
    request.stride = o->stride;
    request.trace_from = o->trace_from;
    request.trace_to = o->trace_to;
    PABD_TRY(pabd_plan_add(plan, catalog, &request, error));
  }
  pabd_plan_order(plan);
  return PABD_OK;
}

/* Plain or catalogued, every engine of the plan that is not here is named once, before anything runs. */
static void announce(const pabd_plan *plan, const session *s, int is_quiet) {
  if (is_quiet) return;
  fprintf(stderr, "%d runs: %d cases, %d engines and presets; order seed %llu; records in %s\n", plan->run_count,
          plan->case_count, plan->engine_count, (unsigned long long)plan->order_seed, s->records);
  for (int32_t k = 0; k < plan->engine_count; ++k) {
    const pabd_engine_desc *engine = &plan->engines[k]->engine->desc;
    int is_first = 1;
    for (int32_t j = 0; j < k; ++j) is_first &= plan->engines[j]->engine != plan->engines[k]->engine;
    if (!engine->is_available && is_first)
      fprintf(stderr, "engine %s is not available: %s\n", engine->name, engine->why);
  }
}

static void print_summary(const session *s) {
  const char *separator = "";
  fprintf(stderr, "done: ");
  for (int k = 0; k <= PABD_RUN_NA; ++k) {
    if (!s->counts[k]) continue;
    fprintf(stderr, "%s%d %s", separator, s->counts[k], pabd_run_state_text((pabd_run_state)k));
    separator = ", ";
  }
  if (s->skipped) fprintf(stderr, "%s%d already there", separator, s->skipped);
  if (s->failed_expects) fprintf(stderr, "; %d runs missed a bound that binds them", s->failed_expects);
  fprintf(stderr, "\n");
}

/* Drops what has a record already. */
static void skip_existing(session *s, pabd_plan *plan) {
  int32_t kept = 0;
  for (int32_t k = 0; k < plan->run_count; ++k) {
    cJSON *record = s->is_forced ? NULL : existing_record(s, &plan->runs[k]);
    if (!record) {
      plan->runs[kept++] = plan->runs[k];
      continue;
    }
    ++s->skipped;
    s->failed_expects += strcmp(text_of(record, NULL, "verdict"), "fail") == 0;
    if (s->collected)
      cJSON_AddItemToArray(s->collected, record);
    else
      cJSON_Delete(record);
  }
  plan->run_count = kept;
}

static int run_plan(session *s, pabd_plan *plan, const pabd_arguments *a) {
  pabd_error error = {""};
  int is_quiet = pabd_argument(a, "quiet") != NULL;
  const char *json = pabd_argument(a, "json"), *ci = getenv("CI");
  if (pabd_make_folders(s->records, &error) != PABD_OK) return pabd_complain(&error);
  pabd_remove_leftovers(s->records);
  if (json) s->collected = cJSON_CreateArray();
  announce(plan, s, is_quiet);
  skip_existing(s, plan);

  pabd_stop_watch();
  pabd_progress_start(&s->progress, plan->run_count, is_quiet);
  for (int32_t k = 0; k < plan->run_count && !pabd_stop_wanted; ++k) do_run(s, k);
  pabd_progress_clear(&s->progress);
  pabd_stop_unwatch();

  if (!is_quiet) print_summary(s);
  int code = 0;
  if (json && pabd_write_json(json, s->collected, &error) != PABD_OK) code = pabd_complain(&error);
  cJSON_Delete(s->collected);
  if (pabd_stop_wanted) {
    fprintf(stderr, "interrupted: the run that was going on left no record; start again to go on\n");
    return 130;
  }
  if (s->complaint[0]) {
    snprintf(error.text, sizeof error.text, "%s", s->complaint);
    return pabd_complain(&error);
  }
  if (code) return code;
  if (s->unavailable && ci && strcmp(ci, "true") == 0) {
    fprintf(stderr, "an engine is not available, which is a failure with CI=true\n");
    return 1;
  }
  return s->failed_expects && pabd_argument(a, "strict") ? 1 : 0;
}

static int run(const pabd_arguments *a) {
  pabd_error error = {""};
  pabd_catalog catalog;
  pabd_plan plan;
  static options o;
  static session s;
  memset(&s, 0, sizeof s);
  if (read_options(a, &o, &error) != PABD_OK) return pabd_complain(&error);
  if (pabd_catalog_open(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &catalog, &error) != PABD_OK)
    return pabd_complain(&error);
  int code;
  if (build_plan(a, &o, &catalog, &plan, &error) != PABD_OK) {
    code = pabd_complain(&error);
  } else if (pabd_argument(a, "dry-run")) {
    for (int32_t k = 0; k < plan.run_count; ++k) {
      char label[256];
      run_label(&plan, &plan.runs[k], label, sizeof label);
      printf("%s\n", label);
    }
    code = 0;
  } else {
    const char *out = pabd_argument(a, "out");
    s.plan = &plan;
    s.invocation = (pabd_invocation){catalog.places.root, a->command_line};
    if (out)
      pabd_path_format(s.out, "%s", out);
    else
      pabd_path_format(s.out, "%s/results/%s", catalog.places.root, plan.name[0] ? plan.name : "local");
    pabd_path_format(s.records, "%s/records", s.out);
    s.is_forced = pabd_argument(a, "force") != NULL;
    s.trajectory_size = pabd_argument(a, "trajectory-double") ? 8 : 4;
    code = run_plan(&s, &plan, a);
  }
  pabd_plan_free(&plan);
  pabd_catalog_close(&catalog);
  return code;
}

static const pabd_option run_options[] = {
    {"engine", "NAME[:preset][:k=v,...]", "engine to run, may be given often (default: pabd); NAME may be a .so file"},
    {"tag", "T", "only cases with this tag (all of them when no case is named)"},
    {"plan", "FILE", "run a plan: a file, or the name of one in harness/plans"},
    {"repeat", "N", "repeats, each with a record of its own (default 1)"},
    {"threads", "N", "threads for engines that have them (default 1)"},
    {"out", "DIR", "results folder (default: results/<plan> or results/local)"},
    {"json", "FILE", "also write all records of this command as one list; - for standard output"},
    {"trajectory", "[STRIDE]", "also write poses, every STRIDE frames (default: about 60 samples)"},
    {"trajectory-double", NULL, "poses in double instead of float"},
    {"trace", NULL, "also record the sweeps of frame 1, for engines that can"},
    {"trace-frames", "A..B", "record the sweeps of these frames"},
    {"strict", NULL, "exit code 1 when a bound that binds the engine fails"},
    {"force", NULL, "run again what has a record"},
    {"seed", "N", "seed of the random order (default: from the clock; it is recorded)"},
    {"time-limit", "S", "seconds of wall time for one run (default 300)"},
    {"warmup", "N", "first frames left out of timing (default 2)"},
    {"dry-run", NULL, "only print what would run, in order"},
    {"quiet", NULL, "no progress"},
    PABD_PLACE_OPTIONS,
    {NULL, NULL, NULL}};

const pabd_command pabd_command_run = {
    "run",
    "[CASE[:key=value,...]]... [--engine NAME[:preset][:key=value,...]]... [options]",
    "run cases on engines, one record a run",
    "Runs every named case on every named engine. CASE, NAME and preset may be patterns (quote them: '*').\n"
    "A run that crashes, hangs or diverges is a result and has a record like any other; a run whose record is there\n"
    "already (same case, engine, library, preset, settings, threads and repeat) is skipped.\n\n"
    "Examples:\n"
    "  pabd-bench run stack                                   our solver, default preset\n"
    "  pabd-bench run stack:ratio=100 chain:n=20 --engine pabd:hard --engine bullet:advised\n"
    "  pabd-bench run stack:gap={-0.001,0,0.001} --engine 'bullet*:*'     (the shell makes three cases of this)\n"
    "  pabd-bench run pile --engine pabd --engine bullet-native --repeat 5 --seed 7\n"
    "  pabd-bench run chain --engine pabd:jacobi:sweeps=20,local_step=mass --trajectory\n"
    "  pabd-bench run --tag ci --engine './my_engine.so' --strict\n"
    "  pabd-bench run --plan bench                            what `make bench` runs\n"
    "  pabd-bench run --plan bench 'stack*' --engine pabd     only a part of it\n"
    "  pabd-bench run al-one --engine pabd-double --json - --quiet | less\n\n"
    "Exit code: 0 every run has a record; 1 with --strict, a bound that binds an engine failed; 2 bad input;\n"
    "130 interrupted.",
    run_options,
    run};
