/* The command `figures`: figures of the paper again, with the claim, the measured value and a computed verdict.
 *
 * harness/figures.json says for each figure what to run and which metric of which record decides each claim; nothing of
 * the verdict is written by hand. Runs go through `run`, so they are resumable and their records are like any other.
 * Leaves OUT/figures.json (claims and verdicts), OUT/figures.html (the map) and OUT/report.html (all curves). */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_tools.h"
#include "commands.h"
#include "places.h"
#include "report.h"
#include "report_internal.h"

/* Is `text` ("key=value,key=value" or "") what the instance has: those parameters, and defaults for the others? */
static int fits_case(pabd_report *report, int instance, const char *spec) {
  const pabd_report_instance *i = &report->instances[instance];
  const char *colon = strchr(spec, ':');
  size_t id = colon ? (size_t)(colon - spec) : strlen(spec);
  if (strlen(i->case_id) != id || strncmp(i->case_id, spec, id) != 0) return 0;
  const cJSON *param;
  cJSON_ArrayForEach(param, i->params) {
    const char *initial = pabd_json_scalar(&report->html, cJSON_GetObjectItemCaseSensitive(param, "initial"));
    char wanted[96];
    snprintf(wanted, sizeof wanted, "%s", initial);
    for (const char *at = colon ? colon + 1 : ""; *at;) {
      size_t length = strcspn(at, ","), key = strlen(param->string);
      if (length > key && at[key] == '=' && strncmp(at, param->string, key) == 0)
        snprintf(wanted, sizeof wanted, "%.*s", (int)(length - key - 1), at + key + 1);
      at += length + (at[length] == ',');
    }
    const char *value = pabd_json_scalar(&report->html, param);
    char *end = NULL;
    double a = strtod(value, &end), b = strtod(wanted, NULL);
    if (end && *end == '\0' && end != value ? a != b : strcmp(value, wanted) != 0) return 0;
  }
  return 1;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}
/* "key=value" parts of a text, split at commas or spaces and sorted, joined by spaces. */
static void normalize(const char *text, char *out, size_t size) {
  char copy[400], *parts[32], *state = NULL;
  int count = 0;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *part = strtok_r(copy, ", ", &state); part && count < 32; part = strtok_r(NULL, ", ", &state))
    parts[count++] = part;
  qsort(parts, (size_t)count, sizeof *parts, by_text);
  out[0] = '\0';
  for (int k = 0; k < count; ++k) {
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", k ? " " : "", parts[k]);
  }
}

static int fits_engine(const pabd_report_variant *v, const char *spec) {
  char wanted[400], own[400];
  const char *colon = strchr(spec, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
  size_t base = second ? (size_t)(second - spec) : strlen(spec);
  if (strlen(v->base) != base || strncmp(v->base, spec, base) != 0) return 0;
  normalize(second ? second + 1 : "", wanted, sizeof wanted);
  normalize(v->overrides, own, sizeof own);
  return strcmp(wanted, own) == 0;
}

typedef struct claim {
  double value;
  const char *unit, *verdict, *words; /* verdict: "holds", "fails", "not run" */
  const char *hash;
} claim;

static int holds(double value, const char *op, double bound) {
  if (strcmp(op, "<=") == 0) return value <= bound;
  if (strcmp(op, ">=") == 0) return value >= bound;
  return value == bound;
}

/* The value that decides: worst over repeats. A run that fell apart has no value and fails every claim but one that it
 * does not stand. */
static claim decide(pabd_report *report, const cJSON *check) {
  claim c = {NAN, "", "not run", "", ""};
  const char *case_spec = pabd_json_text(check, "case", ""), *engine = pabd_json_text(check, "engine", "");
  const char *metric = pabd_json_text(check, "metric", ""), *op = pabd_json_text(check, "op", "==");
  double bound = pabd_json_number(check, "bound");
  for (int i = 0; i < report->instance_count; ++i) {
    if (!fits_case(report, i, case_spec)) continue;
    for (int v = 0; v < report->variant_count; ++v) {
      if (!fits_engine(&report->variants[v], engine)) continue;
      const pabd_report_run *run = pabd_report_find_run(report, i, v);
      if (!run) continue;
      const pabd_report_record *record = &report->records[run->records[0]];
      pabd_report_spread spread = pabd_run_spread(report, run, metric);
      pabd_outcome outcome = pabd_record_outcome(report, record);
      c.hash = report->instances[i].hash;
      c.words = pabd_outcome_word(outcome);
      if (outcome == PABD_OUTCOME_NA) continue;
      int ended =
          outcome == PABD_OUTCOME_DIVERGED || outcome == PABD_OUTCOME_CRASHED || outcome == PABD_OUTCOME_TIMEOUT;
      if (ended || !spread.count) {
        int says_falls = strcmp(metric, "stands") == 0 && bound == 0;
        c.verdict = says_falls ? "holds" : "fails";
        continue;
      }
      c.value = strcmp(op, ">=") == 0 ? spread.low : spread.high;
      c.unit = pabd_record_metric_unit(record, metric);
      c.verdict = holds(c.value, op, bound) ? "holds" : "fails";
    }
  }
  return c;
}

/* Texts of a list, at most `room`; returns their number. */
static int32_t texts_of(const cJSON *list, const char **out, int32_t room) {
  const cJSON *item;
  int32_t count = 0;
  cJSON_ArrayForEach(item, list) {
    if (cJSON_IsString(item) && count < room) out[count++] = item->valuestring;
  }
  return count;
}

static int run_figure(const pabd_arguments *a, const cJSON *figure, const char *out) {
  const cJSON *group;
  cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(figure, "runs")) {
    const char *cases[64], *engines[64];
    int32_t case_count = texts_of(cJSON_GetObjectItemCaseSensitive(group, "cases"), cases, 64);
    int32_t engine_count = texts_of(cJSON_GetObjectItemCaseSensitive(group, "engines"), engines, 64);
    int code = pabd_run_from(a, out, NULL, 0, cases, case_count, engines, engine_count);
    if (code != 0) return code;
  }
  return 0;
}

static int is_wanted(const pabd_arguments *a, const char *id) {
  for (int32_t k = 0; k < a->word_count; ++k)
    if (strcmp(a->words[k], id) == 0) return 1;
  return a->word_count == 0;
}

static pabd_status write_map(const pabd_arguments *a, const cJSON *root, const char *out, pabd_error *error) {
  pabd_report report_data = {.dir = out, .command_line = a->command_line};
  pabd_report *report = &report_data;
  pabd_plots plots = {0};
  char path[PABD_PATH_SIZE];
  cJSON *answer = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(answer, "claims");
  cJSON_AddNumberToObject(answer, "schema", 1);
  pabd_status status = pabd_report_read(report, error);
  if (status == PABD_OK) {
    pabd_report_put_top(report, "Figures of the paper");
    PUT("<h1>Figures of the paper: map and verdicts</h1>\n<p>Every verdict is computed from the records of this "
        "folder. "
        "Claims of the paper are judged on <b>pabd:paper</b> (the paper as we read it) and <b>pabd:jacobi</b> (its "
        "global step with our settings); <b>pabd:auto</b> is ours and stands under its own name. What the paper does "
        "not print is our choice. All curves: <a href=\"report.html\">report.html</a>.</p>\n");
    const cJSON *figure, *check;
    cJSON_ArrayForEach(figure, cJSON_GetObjectItemCaseSensitive(root, "figures")) {
      const char *id = pabd_json_text(figure, "id", "");
      if (!is_wanted(a, id)) continue;
      printf("\n%s  %s\n", id, pabd_json_text(figure, "title", ""));
      PUT("<h2>%s: %s</h2><p>%s. Command: <code>make %s</code></p>\n<div class=\"scroll\"><table><thead><tr>"
          "<th>claim</th><th>whose</th><th>case</th><th>engine</th><th>expected</th><th class=\"n\">measured</th>"
          "<th>verdict</th><th>case hash</th></tr></thead><tbody>\n",
          ESC(id), ESC(pabd_json_text(figure, "title", "")), ESC(pabd_json_text(figure, "source", "")), ESC(id));
      cJSON_ArrayForEach(check, cJSON_GetObjectItemCaseSensitive(figure, "checks")) {
        claim c = decide(report, check);
        const char *metric = pabd_json_text(check, "metric", ""), *op = pabd_json_text(check, "op", "==");
        const char *text = pabd_json_text(check, "claim", ""), *engine = pabd_json_text(check, "engine", "");
        double bound = pabd_json_number(check, "bound");
        const char *measured = isnan(c.value) ? c.words : pabd_text_quantity(&report->html, c.value, c.unit, 3);
        printf("  %-8s %s\n           %s %s: %s %s %g, measured %s\n", c.verdict, text, engine,
               pabd_json_text(check, "case", ""), metric, op, bound, measured);
        PUT("<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s %s %s</td><td class=\"n\">%s</td><td "
            "class=\"%s\"><b>%s</b></td><td><code>%s</code></td></tr>\n",
            ESC(text), ESC(pabd_json_text(check, "of", "ours")), ESC(pabd_json_text(check, "case", "")), ESC(engine),
            ESC(pabd_metric_words(metric)), ESC(op), pabd_text_number(&report->html, bound, 3), ESC(measured),
            strcmp(c.verdict, "fails") == 0 ? pabd_outcome_class(PABD_OUTCOME_COLLAPSED)
                                            : pabd_outcome_class(PABD_OUTCOME_HELD),
            c.verdict, ESC(c.hash));
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "figure", id);
        cJSON_AddStringToObject(entry, "claim", text);
        cJSON_AddStringToObject(entry, "of", pabd_json_text(check, "of", "ours"));
        cJSON_AddStringToObject(entry, "case", pabd_json_text(check, "case", ""));
        cJSON_AddStringToObject(entry, "engine", engine);
        cJSON_AddStringToObject(entry, "metric", metric);
        cJSON_AddStringToObject(entry, "op", op);
        cJSON_AddNumberToObject(entry, "bound", bound);
        if (isfinite(c.value)) cJSON_AddNumberToObject(entry, "measured", c.value);
        cJSON_AddStringToObject(entry, "unit", c.unit);
        cJSON_AddStringToObject(entry, "outcome", c.words);
        cJSON_AddStringToObject(entry, "verdict", c.verdict);
        cJSON_AddItemToArray(list, entry);
      }
      PUT("</tbody></table></div>\n");
    }
    PUT("<p>This page: <code>%s</code></p></body></html>\n", ESC(a->command_line ? a->command_line : ""));
    pabd_path_format(path, "%s/figures.html", out);
    status = pabd_report_finish(report, &plots, path, error);
  }
  pabd_path_format(path, "%s/figures.json", out);
  if (status == PABD_OK) status = pabd_write_json(path, answer, error);
  cJSON_Delete(answer);
  pabd_plots_free(&plots);
  pabd_report_free(report);
  return status;
}

static int figures(const pabd_arguments *a) {
  pabd_error error = {""};
  pabd_places places;
  char path[PABD_PATH_SIZE], *text = NULL;
  size_t size = 0;
  const char *out = pabd_argument(a, "out") ? pabd_argument(a, "out") : "results/figures";
  if (pabd_places_find(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &places, &error) != PABD_OK)
    return pabd_complain(&error);
  pabd_path_format(path, "%s/harness/figures.json", places.root);
  if (pabd_file_read(path, &text, &size, &error) != PABD_OK) return pabd_complain(&error);
  cJSON *root = cJSON_Parse(text);
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "figures"), *figure;
  int code = 0;
  if (!cJSON_IsArray(list)) {
    pabd_fail(&error, PABD_ERR_INPUT, "%s: \"figures\" must be a list", path);
    code = pabd_complain(&error);
  }
  for (int32_t k = 0; k < a->word_count && code == 0; ++k) {
    int known = 0;
    cJSON_ArrayForEach(figure, list) known |= strcmp(pabd_json_text(figure, "id", ""), a->words[k]) == 0;
    if (!known) {
      size_t used = (size_t)snprintf(error.text, sizeof error.text, "no figure '%.60s'; there are:", a->words[k]);
      cJSON_ArrayForEach(figure, list) if (used < sizeof error.text) used +=
          (size_t)snprintf(error.text + used, sizeof error.text - used, " %s", pabd_json_text(figure, "id", ""));
      code = pabd_complain(&error);
    }
  }
  cJSON_ArrayForEach(figure, list) {
    if (code != 0 || !is_wanted(a, pabd_json_text(figure, "id", ""))) continue;
    code = run_figure(a, figure, out);
  }
  if (code == 0 &&
      (write_map(a, root, out, &error) != PABD_OK || pabd_report_write(out, a->command_line, &error) != PABD_OK))
    code = pabd_complain(&error);
  if (code == 0) printf("\n%s/figures.html\n", out);
  cJSON_Delete(root);
  free(text);
  return code;
}

static const pabd_option figures_options[] = {
    {"out", "DIR", "results folder (default results/figures)"}, PABD_PLACE_OPTIONS, {NULL, NULL, NULL}};

const pabd_command pabd_command_figures = {
    "figures",
    "[FIGURE...] [options]",
    "figures of the paper again, each claim with a computed verdict",
    "Runs what a figure of the paper shows (all of them, or those named), and says for each claim what was expected,\n"
    "what was measured and whether it holds. Claims and runs are in harness/figures.json.\n\n"
    "Examples:\n"
    "  pabd-bench figures fig-4\n"
    "  make figures",
    figures_options,
    figures};
