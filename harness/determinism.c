/* The command `determinism`: the same case again and with other thread counts must give the same bits.
 *
 * Each run keeps a hash a frame and, as far as memory allows, all states; where two runs part, the first frame, body
 * and field that differ are printed with both values. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "child.h"
#include "command_tools.h"
#include "commands.h"
#include "plan.h"
#include "progress.h"

/* Memory for the states of one run; beyond it, a difference is known by its frame only. */
#define STATE_LIMIT ((size_t)1 << 30)

/* Units in the last place between two numbers, as a double; NAN when it has no sense. */
static double ulps_between(double a, double b) {
  int64_t x, y;
  if (!isfinite(a) || !isfinite(b)) return NAN;
  memcpy(&x, &a, sizeof x);
  memcpy(&y, &b, sizeof y);
  if (x < 0) x = INT64_MIN - x;
  if (y < 0) y = INT64_MIN - y;
  return fabs((double)x - (double)y);
}

/* Says where two results part. Returns 1 when they are the same. */
static int compare(const pabd_case *c, const pabd_run_result *a, const pabd_run_result *b, char *out, size_t size) {
  static const char *const fields[13] = {"x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"};
  if (a->state != b->state || a->frames_done != b->frames_done) {
    snprintf(out, size, "%s after %d frames, but %s after %d", pabd_run_state_text(a->state), a->frames_done,
             pabd_run_state_text(b->state), b->frames_done);
    if (a->state_hash == b->state_hash) return 0;
  }
  int32_t frame = 0, shared = a->frames_done < b->frames_done ? a->frames_done : b->frames_done;
  while (frame <= shared && a->samples.hash[frame] == b->samples.hash[frame]) ++frame;
  if (frame > shared) return a->state == b->state && a->frames_done == b->frames_done;
  snprintf(out, size, "first differing frame %d", frame);
  if (frame >= a->samples.state_frames || frame >= b->samples.state_frames) return 0;
  int32_t bodies = c->scene.body_count;
  const double *p = a->samples.states + (size_t)frame * (size_t)bodies * 13;
  const double *q = b->samples.states + (size_t)frame * (size_t)bodies * 13;
  /* A frame's block holds all poses, then all velocities. */
  for (int32_t i = 0; i < bodies; ++i) {
    for (int k = 0; k < 13; ++k) {
      size_t at = k < 7 ? (size_t)i * 7 + (size_t)k : (size_t)bodies * 7 + (size_t)i * 6 + (size_t)k - 7;
      if (memcmp(&p[at], &q[at], sizeof *p) == 0) continue;
      const char *name = c->scene.bodies[i].name;
      snprintf(out, size, "frame %d, body %d%s%s%s, %s: %.17g is not %.17g (%.3g ulp in double)", frame, i,
               name[0] ? " '" : "", name, name[0] ? "'" : "", fields[k], p[at], q[at], ulps_between(p[at], q[at]));
      return 0;
    }
  }
  return 0;
}

/* All runs of one case on one engine. Returns 0 same, 1 different, 2 bad input. */
static int compare_runs(const pabd_plan *plan, const pabd_run *run, const int32_t *threads, int32_t thread_count,
                        int32_t repeats, double time_limit, pabd_progress *progress, cJSON *list) {
  const pabd_plan_case *of_case = plan->cases[run->case_index];
  const pabd_plan_engine *of_engine = plan->engines[run->engine_index];
  const pabd_engine_desc *desc = &of_engine->engine->desc;
  pabd_run_result first, next;
  char label[440], text[400] = "", missing[300];
  int code = 0, has_first = 0;
  snprintf(label, sizeof label, "%.200s  %.200s", of_case->label, of_engine->label);
  uint64_t lacks = pabd_scene_needs(&of_case->c.scene) & ~desc->capabilities;
  pabd_capability_list(lacks, missing, sizeof missing);
  if (!desc->is_available || lacks) {
    printf("na    %s: %s%s\n", label,
           desc->is_available ? "the engine cannot do " : "not available: ", desc->is_available ? missing : desc->why);
    return 0;
  }
  for (int32_t k = 0; k < thread_count * repeats && code == 0 && !pabd_stop_wanted; ++k) {
    pabd_key_value settings[PABD_SETTING_CAPACITY];
    int32_t now = threads[k / repeats];
    pabd_job job = {.c = &of_case->c,
                    .engine = desc,
                    .settings = settings,
                    .setting_count = pabd_plan_settings(of_engine, now, settings),
                    .threads = now,
                    .time_limit = time_limit,
                    .keep_states = 1,
                    .state_limit = STATE_LIMIT,
                    .trajectory = -1,
                    .stride = 1,
                    .value_size = 8};
    char named[480];
    snprintf(named, sizeof named, "%s  %d threads  run %d", label, now, k % repeats);
    pabd_progress_begin_run(progress, named);
    pabd_child_run(&job, &pabd_stop_wanted, pabd_progress_tick, progress, has_first ? &next : &first);
    pabd_run_result *result = has_first ? &next : &first;
    pabd_progress_end_run(progress,
                          pabd_run_state_text(result->state) ? pabd_run_state_text(result->state) : result->reason, 0);
    pabd_progress_clear(progress);
    if (!pabd_run_state_text(result->state)) {
      if (!pabd_stop_wanted) {
        pabd_error error;
        snprintf(error.text, sizeof error.text, "%.220s: %.280s", label, result->reason);
        code = pabd_complain(&error);
      }
    } else if (has_first && !compare(&of_case->c, &first, &next, text, sizeof text)) {
      printf("DIFF  %s: %d threads, run %d against %d threads, run 0: %s\n", label, now, k % repeats, threads[0], text);
      code = 1;
    }
    if (has_first) pabd_run_result_free(&next);
    has_first = 1;
  }
  if (has_first && code == 0 && !pabd_stop_wanted) {
    printf("same  %s: %016" PRIx64 " in %d runs (threads", label, first.state_hash, thread_count * repeats);
    for (int32_t k = 0; k < thread_count; ++k) printf("%s%d", k ? ", " : " ", threads[k]);
    printf("; %d frames, %s)\n", first.frames_done, pabd_run_state_text(first.state));
  }
  if (list && has_first && code < 2 && !pabd_stop_wanted) {
    cJSON *entry = cJSON_CreateObject(), *counts = cJSON_AddArrayToObject(entry, "threads");
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, first.state_hash);
    cJSON_AddStringToObject(entry, "case", of_case->label);
    cJSON_AddStringToObject(entry, "engine", of_engine->label);
    for (int32_t k = 0; k < thread_count; ++k) cJSON_AddItemToArray(counts, cJSON_CreateNumber(threads[k]));
    cJSON_AddNumberToObject(entry, "runs", thread_count * repeats);
    cJSON_AddNumberToObject(entry, "frames", first.frames_done);
    cJSON_AddBoolToObject(entry, "same", code == 0);
    cJSON_AddStringToObject(entry, "state_hash", hash);
    cJSON_AddStringToObject(entry, "difference", text);
    cJSON_AddItemToArray(list, entry);
  }
  if (has_first) pabd_run_result_free(&first);
  fflush(stdout);
  return code;
}

static int determinism(const pabd_arguments *a) {
  pabd_error error = {""};
  pabd_catalog catalog;
  pabd_plan plan;
  int32_t threads[16] = {1, 2}, thread_count = 0;
  int64_t repeats;
  double time_limit;
  const char *engines[PABD_ARGUMENT_CAPACITY] = {"pabd"}, *json = pabd_argument(a, "json"),
             *tag = pabd_argument(a, "tag");
  if (pabd_argument_counts(a, "threads", threads, 16, &thread_count, &error) != PABD_OK ||
      pabd_argument_int(a, "repeat", 1, 1000, 2, &repeats, &error) != PABD_OK ||
      pabd_argument_real(a, "time-limit", 0.01, 1e7, 300, &time_limit, &error) != PABD_OK)
    return pabd_complain(&error);
  if (thread_count == 0) thread_count = 2;
  if (a->word_count == 0 && !tag) {
    pabd_fail(&error, PABD_ERR_INPUT,
              "determinism: which case? For example: pabd-bench determinism stack --engine pabd");
    return pabd_complain(&error);
  }
  if (pabd_catalog_open(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &catalog, &error) != PABD_OK)
    return pabd_complain(&error);
  pabd_plan_init(&plan, 0);
  pabd_request request = pabd_request_default();
  int32_t given = pabd_argument_list(a, "engine", engines, PABD_ARGUMENT_CAPACITY);
  request.cases = a->words;
  request.case_count = a->word_count;
  request.engines = engines;
  request.engine_count = given ? given : 1;
  request.tag = tag;
  int code = 0;
  if (pabd_plan_add(&plan, &catalog, &request, &error) != PABD_OK) {
    code = pabd_complain(&error);
  } else {
    pabd_stop_watch();
    pabd_progress progress;
    cJSON *list = json ? cJSON_CreateArray() : NULL;
    pabd_progress_start(&progress, plan.run_count * thread_count * (int32_t)repeats, pabd_argument(a, "quiet") != NULL);
    for (int32_t k = 0; k < plan.run_count && !pabd_stop_wanted; ++k) {
      int one =
          compare_runs(&plan, &plan.runs[k], threads, thread_count, (int32_t)repeats, time_limit, &progress, list);
      if (one > code) code = one;
    }
    pabd_progress_clear(&progress);
    if (list && pabd_write_json(json, list, &error) != PABD_OK) code = pabd_complain(&error);
    cJSON_Delete(list);
    if (pabd_stop_wanted) code = 130;
  }
  pabd_plan_free(&plan);
  pabd_catalog_close(&catalog);
  return code;
}

static const pabd_option determinism_options[] = {
    {"engine", "NAME[:preset][:k=v,...]", "engine, may be given often (default: pabd)"},
    {"threads", "N,N,...", "thread counts to compare (default 1,2)"},
    {"repeat", "N", "runs for each thread count (default 2)"},
    {"tag", "T", "only cases with this tag"},
    {"json", "FILE", "also write the findings as a list"},
    {"time-limit", "S", "seconds of wall time for one run (default 300)"},
    {"quiet", NULL, "no progress"},
    PABD_PLACE_OPTIONS,
    {NULL, NULL, NULL}};

const pabd_command pabd_command_determinism = {
    "determinism",
    "CASE[:key=value,...]... [--engine NAME]... [options]",
    "compare the bits of repeated runs and thread counts",
    "Runs each case several times and with several thread counts and compares the hashes of all states, frame by "
    "frame.\n"
    "Where two runs part it prints the first frame, body and field that differ.\n\n"
    "Examples:\n"
    "  pabd-bench determinism stack pile:n=5 --engine pabd --threads 1,2,4\n"
    "  pabd-bench determinism --tag ci --engine pabd --engine bullet\n\n"
    "Exit code: 0 all the same; 1 a difference; 2 bad input.",
    determinism_options,
    determinism};
