/* The command `compare`: did anything get better or worse from one set of records to another?
 *
 * Configurations are matched by case, parameters, engine, preset, settings and threads. What is simulated is compared
 * as a number: it is the same on every machine. What is measured with a clock is compared only on one machine, by the
 * median over launches and its bootstrap interval (compare_stats.h). What cannot be compared is said, never guessed. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_tools.h"
#include "commands.h"
#include "files.h"
#include "names.h"

/* Launches a side before tails of step times are judged. */
#define TAIL_LAUNCHES 10

/* ---- one configuration --------------------------------------------------------------------------------------------
 */

/* Measured with a clock, or by the operating system: different in every launch. */
static int is_measured(const char *key) {
  static const char *const patterns[] = {"step_ms_*", "collide_ms_*", "solve_ms_*", "wall_ms_*",
                                         "cpu_ms_*",  "create_ms",    "rtf",        "peak_rss_mib"};
  for (size_t k = 0; k < sizeof patterns / sizeof *patterns; ++k) {
    if (pabd_glob_match(patterns[k], key)) return 1;
  }
  return 0;
}

static pabd_finding *add_finding(pabd_pairing *pairing, const char *key) {
  if (pairing->finding_count == pairing->finding_capacity) {
    int32_t capacity = pairing->finding_capacity ? 2 * pairing->finding_capacity : 64;
    pabd_finding *grown = realloc(pairing->findings, (size_t)capacity * sizeof *grown);
    if (!grown) return NULL;
    pairing->findings = grown;
    pairing->finding_capacity = capacity;
  }
  pabd_finding *finding = &pairing->findings[pairing->finding_count++];
  memset(finding, 0, sizeof *finding);
  snprintf(finding->key, sizeof finding->key, "%s", key);
  return finding;
}

static void set_why(pabd_finding *finding, pabd_change change, const char *why) {
  finding->change = change;
  snprintf(finding->why, sizeof finding->why, "%s", why);
}

/* A text that all records of a group share, or "(differs)". */
static const char *common_text(const pabd_record_group *group, const char *block, const char *key) {
  const char *first = pabd_record_text(group->records[0], block, key);
  for (int32_t k = 1; k < group->record_count; ++k) {
    if (strcmp(first, pabd_record_text(group->records[k], block, key)) != 0) return "(differs)";
  }
  return first;
}

/* How bad an end, or a verdict, is: more is worse; -1: no result at all. */
static int badness(const char *text) {
  static const char *const order[] = {"ok", "pass", "diverged", "timeout", "crashed", "fail"};
  for (int k = 0; k < 6; ++k) {
    if (strcmp(text, order[k]) == 0) return k;
  }
  return -1;
}

/* Texts of status, verdict and hash: compared as they are. `fault`: why a difference says nothing, or NULL. */
static pabd_status compare_texts(pabd_pairing *pairing, const char *key, const char *better, const char *fault) {
  pabd_finding *finding = add_finding(pairing, key);
  if (!finding) return PABD_ERR_MEMORY;
  const char *before = common_text(pairing->before, NULL, key), *after = common_text(pairing->after, NULL, key);
  snprintf(finding->before, sizeof finding->before, "%s", before);
  snprintf(finding->after, sizeof finding->after, "%s", after);
  snprintf(finding->better, sizeof finding->better, "%s", better);
  finding->ratio = (pabd_ratio){.before = NAN,
                                .after = NAN,
                                .ratio = NAN,
                                .low = NAN,
                                .high = NAN,
                                .before_count = pairing->before->record_count,
                                .after_count = pairing->after->record_count};
  int is_hash = strcmp(key, "state_hash") == 0;
  if (is_hash && (strcmp(before, "(differs)") == 0 || strcmp(after, "(differs)") == 0)) {
    set_why(finding, PABD_CHANGE_INCOMPARABLE, "repeats of one side differ among themselves: not deterministic");
  } else if (strcmp(before, after) != 0) {
    int old_badness = badness(before), new_badness = badness(after);
    finding->change = PABD_CHANGE_OTHER;
    if (!is_hash && old_badness >= 0 && new_badness >= 0)
      finding->change = new_badness > old_badness ? PABD_CHANGE_WORSE : PABD_CHANGE_BETTER;
    if (fault) set_why(finding, PABD_CHANGE_INCOMPARABLE, fault);
  }
  return PABD_OK;
}

/* Values of a metric over a group's repeats; NANs left out. Returns the count. */
static int32_t values_of(const pabd_record_group *group, const char *block, const char *key, const char *member,
                         double *out) {
  int32_t count = 0;
  for (int32_t k = 0; k < group->record_count; ++k) {
    const cJSON *in = cJSON_GetObjectItemCaseSensitive(group->records[k], block);
    double value = pabd_record_number(in, member ? key : NULL, member ? member : key);
    if (!isnan(value)) out[count++] = value;
  }
  return count;
}

/* All that the metrics, stages and counters of one pairing need. */
typedef struct scratch {
  double *before, *after;
  const char *no_values, *no_times; /* why not comparable; NULL: comparable */
  const char *no_trust;             /* why times that were measured say nothing; NULL: they do */
} scratch;

/* Tails of a launch's frames are themselves rare events: a few launches say nothing of them. */
static int is_tail(const char *key) {
  return pabd_glob_match("*_max", key) || pabd_glob_match("*_p9[59]", key);
}

/* Below this the clock and its calls are a good part of what was measured, ms. */
#define LEAST_MS 0.001

static void judge_time(const pabd_comparison *comparison, pabd_finding *finding, const scratch *s) {
  pabd_rules rules = comparison->rules;
  if (is_tail(finding->key) && rules.least_count < TAIL_LAUNCHES) rules.least_count = TAIL_LAUNCHES;
  int32_t fewest = finding->ratio.before_count < finding->ratio.after_count ? finding->ratio.before_count
                                                                            : finding->ratio.after_count;
  finding->change = pabd_change_of_time(&rules, &finding->ratio, strcmp(finding->better, "higher") == 0);
  if (finding->change == PABD_CHANGE_NONE) return;
  if (s->no_trust) {
    set_why(finding, PABD_CHANGE_UNDECIDED, s->no_trust);
  } else if (fewest < rules.least_count) {
    snprintf(finding->why, sizeof finding->why, "needs %d launches on each side", rules.least_count);
  } else if (strcmp(finding->unit, "ms") == 0 && finding->ratio.before < LEAST_MS && finding->ratio.after < LEAST_MS) {
    set_why(finding, PABD_CHANGE_UNDECIDED, "too short for the clock");
  } else if (finding->change == PABD_CHANGE_UNDECIDED) {
    snprintf(finding->why, sizeof finding->why, "the interval is too wide (%d launches)", fewest);
  }
}

/* One number of a block. `member`: NULL for metrics, else the statistic of stages and counters. */
static pabd_status compare_numbers(const pabd_comparison *comparison, pabd_pairing *pairing, scratch *s,
                                   const char *block, const char *key, const char *member, const char *prefix,
                                   int is_time) {
  const cJSON *old_item =
      cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(pairing->before->records[0], block), key);
  const cJSON *new_item =
      cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(pairing->after->records[0], block), key);
  char name[128];
  snprintf(name, sizeof name, "%s%.80s", prefix, key);
  pabd_finding *finding = add_finding(pairing, name);
  if (!finding) return PABD_ERR_MEMORY;
  const cJSON *either = new_item ? new_item : old_item;
  snprintf(finding->unit, sizeof finding->unit, "%s", pabd_record_text(either, NULL, "unit"));
  snprintf(finding->better, sizeof finding->better, "%s",
           !member   ? pabd_record_text(either, NULL, "better")
           : is_time ? "lower"
                     : "info");
  int32_t old_count = values_of(pairing->before, block, key, member, s->before);
  int32_t new_count = values_of(pairing->after, block, key, member, s->after);
  finding->ratio = pabd_ratio_of(s->before, old_count, s->after, new_count);
  if (!old_item || !new_item) {
    set_why(finding, PABD_CHANGE_INCOMPARABLE,
            old_item ? "only the old records have it" : "only the new records have it");
  } else if (strcmp(pabd_record_text(old_item, NULL, "unit"), pabd_record_text(new_item, NULL, "unit")) != 0) {
    set_why(finding, PABD_CHANGE_INCOMPARABLE, "the unit has changed");
  } else if (!member &&
             strcmp(pabd_record_text(old_item, NULL, "better"), pabd_record_text(new_item, NULL, "better")) != 0) {
    set_why(finding, PABD_CHANGE_INCOMPARABLE, "the direction has changed");
  } else if (s->no_values || (is_time && s->no_times)) {
    set_why(finding, PABD_CHANGE_INCOMPARABLE, s->no_values ? s->no_values : s->no_times);
  } else if (old_count == 0 && new_count == 0) {
    finding->change = PABD_CHANGE_NONE; /* neither run has the event that the metric is about */
  } else if (old_count == 0 || new_count == 0) {
    set_why(finding, PABD_CHANGE_OTHER, old_count ? "the new records have no value" : "the old records have no value");
  } else if (is_time && strcmp(finding->better, "info") == 0) {
    set_why(finding, PABD_CHANGE_NONE, "not judged: no direction");
  } else if (is_time) {
    judge_time(comparison, finding, s);
  } else {
    finding->change = pabd_change_of_metric(&comparison->rules, &finding->ratio, finding->better);
  }
  return PABD_OK;
}

/* All keys of a block, of either side. */
static pabd_status compare_block(const pabd_comparison *comparison, pabd_pairing *pairing, scratch *s,
                                 const char *block, const char *member, const char *prefix) {
  const cJSON *sides[2] = {cJSON_GetObjectItemCaseSensitive(pairing->before->records[0], block),
                           cJSON_GetObjectItemCaseSensitive(pairing->after->records[0], block)};
  for (int side = 0; side < 2; ++side) {
    const cJSON *item;
    cJSON_ArrayForEach(item, sides[side]) {
      if (side == 1 && cJSON_GetObjectItemCaseSensitive(sides[0], item->string)) continue;
      int is_time = strcmp(block, "stages") == 0 || (!member && is_measured(item->string));
      PABD_TRY(compare_numbers(comparison, pairing, s, block, item->string, member, prefix, is_time));
    }
  }
  return PABD_OK;
}

static int all_times_are_valid(const pabd_record_group *group) {
  for (int32_t k = 0; k < group->record_count; ++k) {
    const cJSON *timing = cJSON_GetObjectItemCaseSensitive(group->records[k], "timing");
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(timing, "timing_valid"))) return 0;
  }
  return 1;
}

/* Why times of these two must not be compared; NULL when they may. */
static const char *machine_fault(const pabd_pairing *pairing) {
  static const char *const keys[] = {"cpu", "governor", "gpu", "driver"};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k) {
    const char *before = common_text(pairing->before, "env", keys[k]),
               *after = common_text(pairing->after, "env", keys[k]);
    if (strcmp(before, after) != 0) return "times of different machines (env differs)";
  }
  for (int32_t k = 0; k < pairing->before->record_count; ++k) {
    for (int32_t j = 0; j < pairing->after->record_count; ++j) {
      if (pabd_record_number(pairing->before->records[k], "env", "cores") !=
          pabd_record_number(pairing->after->records[j], "env", "cores"))
        return "times of different machines (env differs)";
    }
  }
  return NULL;
}

/* More runnable threads than this part of the cores: launches wait for each other. */
#define LOAD_LIMIT 0.75

static int is_loaded(const cJSON *record) {
  return pabd_record_number(record, "env", "loadavg") > LOAD_LIMIT * pabd_record_number(record, "env", "cores");
}

static int any_is_loaded(const pabd_record_group *group) {
  for (int32_t k = 0; k < group->record_count; ++k) {
    if (is_loaded(group->records[k])) return 1;
  }
  return 0;
}

static pabd_status compare_pairing(const pabd_comparison *comparison, pabd_pairing *pairing) {
  size_t room = (size_t)pairing->before->record_count + (size_t)pairing->after->record_count;
  scratch s = {malloc(room * sizeof *s.before), malloc(room * sizeof *s.after), NULL, NULL, NULL};
  const char *status_before = common_text(pairing->before, NULL, "status"),
             *status_after = common_text(pairing->after, NULL, "status");
  const char *case_before = common_text(pairing->before, "case", "hash"),
             *case_after = common_text(pairing->after, "case", "hash");
  const char *other_case = NULL;
  if (!comparison->any_case && (strcmp(case_before, case_after) != 0 || strcmp(case_before, "(differs)") == 0))
    s.no_values = other_case = "the case has changed (its hash differs)";
  else if (strcmp(status_before, "ok") != 0 || strcmp(status_after, "ok") != 0)
    s.no_values = "a run did not come to its end";
  if (!all_times_are_valid(pairing->before) || !all_times_are_valid(pairing->after))
    s.no_times = "times are not valid (timing_valid)";
  else if (!comparison->any_machine)
    s.no_times = machine_fault(pairing);
  if (!comparison->any_machine && (any_is_loaded(pairing->before) || any_is_loaded(pairing->after)))
    s.no_trust = "made on a loaded machine; use make perf-check";
  pabd_status result = s.before && s.after ? PABD_OK : PABD_ERR_MEMORY;
  if (result == PABD_OK) result = compare_texts(pairing, "status", "info", other_case);
  if (result == PABD_OK) result = compare_texts(pairing, "verdict", "info", other_case);
  if (result == PABD_OK) result = compare_texts(pairing, "state_hash", "equal", s.no_values);
  if (result == PABD_OK) result = compare_block(comparison, pairing, &s, "metrics", NULL, "");
  if (result == PABD_OK) result = compare_block(comparison, pairing, &s, "stages", "p50", "stage.");
  if (result == PABD_OK) result = compare_block(comparison, pairing, &s, "counters", "mean", "counter.");
  free(s.before);
  free(s.after);
  return result;
}

/* ---- two sets -------------------------------------------------------------------------------------------------------
 */

static void warn(pabd_comparison *comparison, const char *line) {
  pabd_text *text = &comparison->warnings;
  size_t size = strlen(line);
  for (const char *at = text->data; at && *at; at = strchr(at, '\n') + 1) {
    if (strncmp(at, line, size) == 0 && at[size] == '\n') return;
  }
  pabd_text_add(text, "%s\n", line);
}

/* What in two environments makes a reader doubt. */
static void warn_about(pabd_comparison *comparison, const cJSON *before, const cJSON *after) {
  static const struct {
    const char *key;
    int stops_times;
  } keys[] = {{"cpu", 1}, {"governor", 1}, {"gpu", 1}, {"driver", 1}, {"compiler", 0}, {"flags", 0}, {"os", 0}};
  char line[900];
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k) {
    const char *x = pabd_record_text(before, "env", keys[k].key), *y = pabd_record_text(after, "env", keys[k].key);
    if (strcmp(x, y) == 0) continue;
    snprintf(line, sizeof line, "env.%s differs: \"%.300s\" was, \"%.300s\" is%s", keys[k].key, x, y,
             keys[k].stops_times && !comparison->any_machine ? "; times are not compared" : "");
    warn(comparison, line);
  }
  double x = pabd_record_number(before, "env", "cores"), y = pabd_record_number(after, "env", "cores");
  if (x != y) {
    snprintf(line, sizeof line, "env.cores differs: %g was, %g is%s", x, y,
             comparison->any_machine ? "" : "; times are not compared");
    warn(comparison, line);
  }
}

static void warn_about_side(pabd_comparison *comparison, const pabd_record_set *set, const char *name) {
  char line[200];
  int32_t loaded = 0, dirty = 0;
  for (int32_t k = 0; k < set->record_count; ++k) {
    loaded += is_loaded(set->records[k]);
    const cJSON *env = cJSON_GetObjectItemCaseSensitive(set->records[k], "env");
    dirty += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(env, "dirty"));
  }
  if (loaded) {
    snprintf(line, sizeof line, "%d of %d %s records were made on a loaded machine (load above 0.75 of the cores)",
             loaded, set->record_count, name);
    warn(comparison, line);
  }
  if (dirty) {
    snprintf(line, sizeof line, "%d of %d %s records come from a working tree with uncommitted changes", dirty,
             set->record_count, name);
    warn(comparison, line);
  }
}

pabd_status pabd_compare(pabd_comparison *c, pabd_error *error) {
  int32_t room = c->before.group_count + c->after.group_count + 1;
  c->pairings = calloc((size_t)room, sizeof *c->pairings);
  c->only_before = calloc((size_t)room, sizeof(const pabd_record_group *));
  c->only_after = calloc((size_t)room, sizeof(const pabd_record_group *));
  pabd_status status = c->pairings && c->only_before && c->only_after ? PABD_OK : PABD_ERR_MEMORY;
  for (int32_t k = 0; k < c->before.group_count && status == PABD_OK; ++k) {
    const pabd_record_group *before = &c->before.groups[k], *after = pabd_record_set_find(&c->after, before->key);
    if (!after) {
      c->only_before[c->only_before_count++] = before;
      continue;
    }
    pabd_pairing *pairing = &c->pairings[c->pairing_count++];
    *pairing = (pabd_pairing){.before = before, .after = after};
    warn_about(c, before->records[0], after->records[0]);
    status = compare_pairing(c, pairing);
    for (int32_t j = 0; j < pairing->finding_count; ++j) ++c->counts[pairing->findings[j].change];
  }
  for (int32_t k = 0; k < c->after.group_count && status == PABD_OK; ++k) {
    const pabd_record_group *after = &c->after.groups[k];
    if (!pabd_record_set_find(&c->before, after->key)) c->only_after[c->only_after_count++] = after;
  }
  if (status != PABD_OK || c->warnings.failed) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory to compare");
  if (c->pairing_count == 0)
    return pabd_fail(error, PABD_ERR_INPUT,
                     "compare: nothing in common: no case, engine, preset, settings and threads are in both %.150s (%d "
                     "configurations) and %.150s (%d)",
                     c->before.source, c->before.group_count, c->after.source, c->after.group_count);
  warn_about_side(c, &c->before, "old");
  warn_about_side(c, &c->after, "new");
  return PABD_OK;
}

void pabd_comparison_free(pabd_comparison *c) {
  for (int32_t k = 0; k < c->pairing_count; ++k) free(c->pairings[k].findings);
  free(c->pairings);
  free(c->only_before);
  free(c->only_after);
  pabd_text_free(&c->warnings);
  pabd_record_set_free(&c->before);
  pabd_record_set_free(&c->after);
}

/* ---- the command ----------------------------------------------------------------------------------------------------
 */

static pabd_status write_outputs(const pabd_comparison *comparison, const pabd_arguments *a, pabd_error *error) {
  const char *json = pabd_argument(a, "json"), *markdown = pabd_argument(a, "markdown");
  pabd_text text = {0};
  pabd_comparison_markdown(comparison, pabd_argument(a, "all") != NULL, &text);
  pabd_status status = text.failed ? pabd_fail(error, PABD_ERR_MEMORY, "out of memory for the table") : PABD_OK;
  /* The table goes to standard output unless something else was sent there. */
  if (status == PABD_OK && !(json && strcmp(json, "-") == 0))
    status = pabd_write_text(markdown ? markdown : "-", text.data, error);
  pabd_text_free(&text);
  if (status != PABD_OK || !json) return status;
  cJSON *tree = pabd_comparison_json(comparison);
  status = pabd_write_json(json, tree, error);
  cJSON_Delete(tree);
  return status;
}

static int compare(const pabd_arguments *a) {
  pabd_error error = {""};
  pabd_comparison comparison = {.rules = pabd_rules_default()};
  pabd_rules *rules = &comparison.rules;
  if (a->word_count != 2) {
    pabd_fail(&error, PABD_ERR_INPUT, "compare: needs two results folders or records, OLD and NEW");
    return pabd_complain(&error);
  }
  if (pabd_argument_real(a, "time", 0.001, 10, rules->time_ratio - 1, &rules->time_ratio, &error) != PABD_OK ||
      pabd_argument_real(a, "accuracy", 0, 10, rules->accuracy, &rules->accuracy, &error) != PABD_OK ||
      pabd_argument_real(a, "floor", 0, 1e6, rules->floor, &rules->floor, &error) != PABD_OK)
    return pabd_complain(&error);
  rules->time_interval = 1 + 0.5 * rules->time_ratio;
  rules->time_ratio += 1;
  comparison.any_case = pabd_argument(a, "any-case") != NULL;
  comparison.any_machine = pabd_argument(a, "any-machine") != NULL;
  pabd_status status = pabd_record_set_read(a->words[0], &comparison.before, &error);
  if (status == PABD_OK) status = pabd_record_set_read(a->words[1], &comparison.after, &error);
  if (status == PABD_OK) status = pabd_compare(&comparison, &error);
  if (status == PABD_OK) status = write_outputs(&comparison, a, &error);
  int code = status != PABD_OK ? pabd_complain(&error) : comparison.counts[PABD_CHANGE_WORSE] ? 1 : 0;
  pabd_comparison_free(&comparison);
  return code;
}

static const pabd_option compare_options[] = {
    {"all", NULL, "show everything, not only what differs"},
    {"json", "FILE", "also write all findings; - for standard output (instead of the table)"},
    {"markdown", "FILE", "write the table to a file instead of standard output"},
    {"time", "X", "a time counts as changed beyond 1+X, with an interval beyond 1+X/2 (default 0.10)"},
    {"accuracy", "X", "relative change from which a simulated metric counts as changed (default 0.01)"},
    {"floor", "X", "changes of simulated metrics below this, in their unit, are rounding (default 1e-9)"},
    {"any-machine", NULL, "judge times even of different or loaded machines"},
    {"any-case", NULL, "compare even when the case has changed"},
    {NULL, NULL, NULL}};

const pabd_command pabd_command_compare = {
    "compare",
    "OLD NEW [options]",
    "what got better or worse between two sets of records",
    "OLD and NEW are results folders, folders of records, or single records. Runs are matched by case, parameters,\n"
    "engine, preset, settings and threads; repeats are put together. Each metric gets its ratio (new over old), a 95 "
    "%\n"
    "interval and a verdict: better, worse, no difference, undecided (too few or too scattered launches), changed (no\n"
    "direction) or not comparable (with the reason). Times are compared on one machine only and need three launches "
    "on\n"
    "each side (tails: ten) on a machine without other load; the rule: median ratio beyond 1.10 and interval beyond\n"
    "1.05. To compare two versions in one job with\n"
    "interleaved launches, use `make perf-check`.\n\n"
    "Examples:\n"
    "  pabd-bench compare results/before results/after\n"
    "  pabd-bench compare old.json new.json --all --json findings.json\n\n"
    "Exit code: 0 nothing is worse; 1 something is worse; 2 bad input, or nothing in common.",
    compare_options,
    compare};
