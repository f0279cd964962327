/* Records read and put in order. See report_data.h. Foreign or broken files are skipped with their reason, never fatal.
 */
#include "report_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "names.h"
#include "record.h"

/* One color an engine everywhere. Presets and Bullet take the set of Okabe and Ito, further engines the muted set of
 * P. Tol; both are told apart with the usual color deficiencies, and a mark stands beside each color. Entries with a
 * preset come first. Engines that are our solver in another build share the preset's color with a hollow mark. */
static const pabd_report_style style_table[] = {
    {"pabd:jacobi", "#0072B2", 7, 1, "\xE2\x97\x8F"},   {"pabd:hard", "#56B4E9", 5, 1, "\xE2\x96\xA0"},
    {"pabd:paper", "#CC79A7", 9, 1, "\xE2\x96\xB2"},    {"pabd:contact-gs", "#009E73", 13, 1, "\xE2\x97\x86"},
    {"pabd:direct", "#44AA99", 11, 1, "\xE2\x96\xBC"},  {"pabd:auto", "#000000", 15, 1, "\xE2\xAC\x9F"},
    {"pabd", "#0072B2", 7, 2, "\xE2\x97\x8F"},          {"pabd-double", "#0072B2", 6, 2, "\xE2\x97\x8B"},
    {"pabd-cuda", "#0072B2", 4, 4, "\xE2\x96\xA1"},     {"bullet", "#D55E00", 2, 1, "\xC3\x97"},
    {"bullet-native", "#E69F00", 1, 1, "\xE2\x9C\x9A"}, {"ode", "#999933", 8, 1, "\xE2\x96\xB3"},
    {"mujoco", "#882255", 12, 1, "\xE2\x97\x87"},       {"physx", "#117733", 10, 1, "\xE2\x96\xBD"},
    {"rapier", "#332288", 4, 1, "\xE2\x96\xA1"},        {"jolt", "#661100", 14, 1, "\xE2\xAC\xA0"},
    {"avbd", "#AA4499", 3, 1, "\xE2\x88\x97"},          {"xpbd", "#88CCEE", 6, 1, "\xE2\x97\x8B"},
    {"reference", "#555555", 2, 3, "\xE2\x9C\x95"},
};
static const pabd_report_style style_other = {"other", "#777777", 3, 4, "\xE2\x88\x97"};

static int is_our_engine(const char *engine) {
  return strcmp(engine, "pabd") == 0 || strncmp(engine, "pabd-", 5) == 0;
}

pabd_report_style pabd_report_style_of(const char *engine, const char *preset, int is_changed) {
  char name[160];
  pabd_report_style style = style_other;
  int found = 0;
  /* The preset's own entry; for other builds of our solver the preset's color with the build's mark. */
  snprintf(name, sizeof name, "%s:%s", is_our_engine(engine) ? "pabd" : engine, preset);
  for (size_t k = 0; k < sizeof style_table / sizeof *style_table; ++k)
    if (strcmp(style_table[k].name, name) == 0) style = style_table[k], found = 1;
  for (size_t k = 0; k < sizeof style_table / sizeof *style_table; ++k) {
    if (strcmp(style_table[k].name, engine) != 0) continue;
    if (!found) {
      style = style_table[k];
    } else if (strcmp(engine, "pabd") != 0) {
      style.point = style_table[k].point, style.dash = style_table[k].dash, style.symbol = style_table[k].symbol;
    }
  }
  /* Presets of the same engine, and changed settings, share its color and differ by dash. */
  if (!is_our_engine(engine)) {
    if (strcmp(preset, "advised") == 0) style.dash = 2;
    if (strcmp(preset, "tuned") == 0) style.dash = 3;
  }
  if (is_changed) style.dash = style.dash % 5 + 2;
  return style;
}

/* ---- JSON ---- */

const char *pabd_json_text(const cJSON *object, const char *key, const char *fallback) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsString(item) && item->valuestring ? item->valuestring : fallback;
}

const char *pabd_json_scalar(pabd_text *arena, const cJSON *item) {
  if (cJSON_IsObject(item)) item = cJSON_GetObjectItemCaseSensitive(item, "value");
  if (cJSON_IsString(item)) return item->valuestring;
  if (cJSON_IsTrue(item)) return "true";
  if (cJSON_IsFalse(item)) return "false";
  if (cJSON_IsNumber(item)) return pabd_text_format(arena, "%.12g", item->valuedouble);
  return "";
}

double pabd_json_number(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (cJSON_IsObject(item)) item = cJSON_GetObjectItemCaseSensitive(item, "value");
  if (cJSON_IsNumber(item)) return item->valuedouble;
  if (cJSON_IsString(item)) {
    char *end;
    double value = strtod(item->valuestring, &end);
    if (end != item->valuestring && *end == 0) return value;
  }
  return NAN;
}

static const cJSON *metric_of(const pabd_report_record *record, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(record->root, "metrics"), key);
}

double pabd_record_metric(const pabd_report_record *record, const char *key) {
  return pabd_json_number(cJSON_GetObjectItemCaseSensitive(record->root, "metrics"), key);
}

const char *pabd_record_metric_unit(const pabd_report_record *record, const char *key) {
  return pabd_json_text(metric_of(record, key), "unit", "");
}

const char *pabd_record_metric_better(const pabd_report_record *record, const char *key) {
  return pabd_json_text(metric_of(record, key), "better", "info");
}

int pabd_record_series(const pabd_report_record *record, const char *key, double **values, const char **unit) {
  *values = NULL;
  if (unit) *unit = "";
  const cJSON *series = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(record->root, "series"), key);
  const cJSON *list = cJSON_IsArray(series) ? series : cJSON_GetObjectItemCaseSensitive(series, "values");
  int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
  if (count == 0 || !(*values = malloc(sizeof **values * (size_t)count))) return 0;
  int k = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, list)(*values)[k++] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
  if (unit) *unit = pabd_json_text(series, "unit", "");
  return count;
}

const char *pabd_record_setting(pabd_report *report, const pabd_report_record *record, const char *key) {
  const cJSON *engine = cJSON_GetObjectItemCaseSensitive(record->root, "engine");
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(engine, "params"), key);
  return item ? pabd_json_scalar(&report->html, item) : NULL;
}

const char *pabd_record_hash(const pabd_report_record *record) {
  const cJSON *metrics = cJSON_GetObjectItemCaseSensitive(record->root, "metrics");
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(metrics, "state_hash");
  if (!item) item = cJSON_GetObjectItemCaseSensitive(record->root, "state_hash");
  if (cJSON_IsObject(item)) item = cJSON_GetObjectItemCaseSensitive(item, "value");
  return cJSON_IsString(item) && item->valuestring[0] ? item->valuestring : NULL;
}

/* ---- reading ---- */

static int compare_text(const char *a, const char *b) {
  return strcmp(a ? a : "", b ? b : "");
}

/* Why a parsed file is no record of ours; NULL when it is one. */
static const char *check_record(pabd_text *arena, const cJSON *root) {
  if (!cJSON_IsObject(root)) return "is not a JSON object";
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(root, "schema");
  if (!cJSON_IsNumber(schema)) return "key \"schema\" is missing: not a record";
  if (schema->valuedouble != PABD_RECORD_SCHEMA)
    return pabd_text_format(arena, "schema %g: this program reads schema %d", schema->valuedouble, PABD_RECORD_SCHEMA);
  const cJSON *block = cJSON_GetObjectItemCaseSensitive(root, "case");
  if (!pabd_json_text(block, "id", NULL)) return "key \"case.id\" must be a text";
  block = cJSON_GetObjectItemCaseSensitive(root, "engine");
  if (!pabd_json_text(block, "name", NULL)) return "key \"engine.name\" must be a text";
  const char *status = pabd_json_text(root, "status", NULL);
  if (!status) return "key \"status\" must be a text";
  static const char *const known[] = {"ok", "diverged", "crashed", "timeout", "na"};
  for (size_t k = 0; k < sizeof known / sizeof *known; ++k)
    if (strcmp(status, known[k]) == 0) return NULL;
  return pabd_text_format(arena, "status \"%s\" is none of ok, diverged, crashed, timeout, na", status);
}

static void *grow(pabd_report *report, void *array, int count, size_t size) {
  if (count & (count - 1)) return array; /* grows when the count reaches a power of two */
  void *larger = realloc(array, size * (count ? 2 * (size_t)count : 1));
  if (!larger) report->html.failed = 1;
  return larger;
}
#define GROW(report, array, count)                                               \
  do {                                                                           \
    void *grown = grow(report, (report)->array, count, sizeof *(report)->array); \
    if (!grown) return PABD_ERR_MEMORY;                                          \
    (report)->array = grown;                                                     \
  } while (0)

static pabd_status add_skip(pabd_report *report, const char *file, const char *why) {
  GROW(report, skips, report->skip_count);
  report->skips[report->skip_count++] = (pabd_report_skip){file, why};
  return PABD_OK;
}

/* "key=value key=value", sorted by key, without the keys in `without` (comma-separated). */
static const char *params_text(pabd_report *report, const cJSON *params, const char *without) {
  const cJSON *sorted[64];
  int count = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, params) {
    if (count == 64 || !item->string || (without && pabd_list_match(without, item->string))) continue;
    int at = count++;
    for (; at > 0 && compare_text(sorted[at - 1]->string, item->string) > 0; --at) sorted[at] = sorted[at - 1];
    sorted[at] = item;
  }
  const char *text = "";
  for (int k = 0; k < count; ++k)
    text = pabd_text_format(&report->html, "%s%s%s=%s", text, k ? " " : "", sorted[k]->string,
                            pabd_json_scalar(&report->html, sorted[k]));
  return text;
}

/* Parameters that only vary how a scene starts: their instances share a row. */
#define START_PARAMS "seed,gap,dy"

static pabd_status place_instance(pabd_report *report, pabd_report_record *record) {
  const cJSON *block = cJSON_GetObjectItemCaseSensitive(record->root, "case");
  const cJSON *params = cJSON_GetObjectItemCaseSensitive(block, "params");
  const char *id = pabd_json_text(block, "id", "");
  const char *key = pabd_text_format(&report->html, "%s|%s", id, params_text(report, params, NULL));
  for (int k = 0; k < report->instance_count; ++k) {
    if (strcmp(report->instances[k].key, key) == 0) {
      record->instance = k;
      return PABD_OK;
    }
  }
  GROW(report, instances, report->instance_count);
  record->instance = report->instance_count++;
  report->instances[record->instance] = (pabd_report_instance){.case_id = id,
                                                               .family = pabd_json_text(block, "family", "other"),
                                                               .title = pabd_json_text(block, "title", id),
                                                               .hash = pabd_json_text(block, "hash", ""),
                                                               .label = "",
                                                               .key = key,
                                                               .params = params};
  return PABD_OK;
}

static double threads_of(const pabd_report_record *record) {
  double threads = pabd_json_number(cJSON_GetObjectItemCaseSensitive(record->root, "run"), "threads");
  return threads >= 1 ? threads : 1;
}

static pabd_status place_variant(pabd_report *report, pabd_report_record *record) {
  const cJSON *block = cJSON_GetObjectItemCaseSensitive(record->root, "engine");
  const char *engine = pabd_json_text(block, "name", ""), *preset = pabd_json_text(block, "preset", "");
  const cJSON *changed = cJSON_GetObjectItemCaseSensitive(block, "overrides");
  const char *overrides = params_text(report, changed, "threads");
  double threads = threads_of(record);
  if (threads != report->base_threads)
    overrides = pabd_text_format(&report->html, "%s%sthreads=%g", overrides, overrides[0] ? " " : "", threads);
  for (int k = 0; k < report->variant_count; ++k) {
    const pabd_report_variant *v = &report->variants[k];
    if (strcmp(v->engine, engine) == 0 && strcmp(v->preset, preset) == 0 && strcmp(v->overrides, overrides) == 0) {
      record->variant = k;
      return PABD_OK;
    }
  }
  GROW(report, variants, report->variant_count);
  record->variant = report->variant_count++;
  pabd_report_variant *v = &report->variants[record->variant];
  *v = (pabd_report_variant){.engine = engine, .preset = preset, .overrides = overrides};
  v->base = preset[0] ? pabd_text_format(&report->html, "%s:%s", engine, preset) : engine;
  v->label = overrides[0] ? pabd_text_format(&report->html, "%s %s", v->base, overrides) : v->base;
  v->slug = pabd_text_slug(&report->html, v->label);
  v->is_ours = is_our_engine(engine);
  v->is_reference = strncmp(engine, "reference", 9) == 0;
  v->style = pabd_report_style_of(engine, preset, overrides[0] != 0);
  return PABD_OK;
}

/* Order of the page: families as listed, then by case and parameters as numbers. */
static int family_rank(const char *family) {
  static const char *const order[] = {"stack",    "chain",    "al",    "pile",  "momentum",
                                      "friction", "pendulum", "tower", "sanity"};
  int count = (int)(sizeof order / sizeof *order);
  for (int k = 0; k < count; ++k)
    if (strcmp(order[k], family) == 0) return k;
  return count;
}

/* Texts with numbers in them compare by the numbers: ratio=2 before ratio=10. */
static int compare_natural(const char *a, const char *b) {
  while (*a && *b) {
    char *end_a, *end_b;
    int digit_a = (*a >= '0' && *a <= '9') || (*a == '-' && a[1] >= '0' && a[1] <= '9');
    int digit_b = (*b >= '0' && *b <= '9') || (*b == '-' && b[1] >= '0' && b[1] <= '9');
    if (digit_a && digit_b) {
      double x = strtod(a, &end_a), y = strtod(b, &end_b);
      if (x != y) return x < y ? -1 : 1;
      a = end_a, b = end_b;
    } else {
      if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
      ++a, ++b;
    }
  }
  return (*a != 0) - (*b != 0);
}

static int compare_instances(const pabd_report_instance *a, const pabd_report_instance *b) {
  int order = family_rank(a->family) - family_rank(b->family);
  if (!order) order = compare_text(a->family, b->family);
  if (!order) order = compare_text(a->case_id, b->case_id);
  return order ? order : compare_natural(a->key, b->key);
}

/* Ours first, presets in the order of the style table, then other engines in its order, changed settings last. */
static int variant_rank(const pabd_report_variant *v) {
  int count = (int)(sizeof style_table / sizeof *style_table), rank = count;
  for (int k = count - 1; k >= 0; --k)
    if (strcmp(style_table[k].name, v->base) == 0 || strcmp(style_table[k].name, v->engine) == 0) rank = k;
  return (v->overrides[0] ? 1000 : 0) + rank;
}

static int compare_variants(const pabd_report_variant *a, const pabd_report_variant *b) {
  int order = variant_rank(a) - variant_rank(b);
  return order ? order : compare_natural(a->label, b->label);
}

/* Insertion sort of instances and variants, with the records' indices carried along. Both lists are short. */
static pabd_status sort_all(pabd_report *report) {
  int *where = malloc(sizeof *where * (size_t)(report->instance_count + report->variant_count + 1));
  int *from = malloc(sizeof *from * (size_t)(report->instance_count + report->variant_count + 1));
  if (!where || !from) {
    free(where);
    free(from);
    return PABD_ERR_MEMORY;
  }
  for (int k = 0; k < report->instance_count; ++k) from[k] = k;
  for (int k = 1; k < report->instance_count; ++k) {
    pabd_report_instance moved = report->instances[k];
    int moved_from = from[k], at = k;
    for (; at > 0 && compare_instances(&report->instances[at - 1], &moved) > 0; --at) {
      report->instances[at] = report->instances[at - 1];
      from[at] = from[at - 1];
    }
    report->instances[at] = moved;
    from[at] = moved_from;
  }
  for (int k = 0; k < report->instance_count; ++k) where[from[k]] = k;
  for (int r = 0; r < report->record_count; ++r) report->records[r].instance = where[report->records[r].instance];

  for (int k = 0; k < report->variant_count; ++k) from[k] = k;
  for (int k = 1; k < report->variant_count; ++k) {
    pabd_report_variant moved = report->variants[k];
    int moved_from = from[k], at = k;
    for (; at > 0 && compare_variants(&report->variants[at - 1], &moved) > 0; --at) {
      report->variants[at] = report->variants[at - 1];
      from[at] = from[at - 1];
    }
    report->variants[at] = moved;
    from[at] = moved_from;
  }
  for (int k = 0; k < report->variant_count; ++k) where[from[k]] = k;
  for (int r = 0; r < report->record_count; ++r) report->records[r].variant = where[report->records[r].variant];
  free(where);
  free(from);
  return PABD_OK;
}

/* Does a parameter take more than one value among the instances of its case? */
static int param_varies(pabd_report *report, const pabd_report_instance *instance, const char *key) {
  const char *value = pabd_json_scalar(&report->html, cJSON_GetObjectItemCaseSensitive(instance->params, key));
  for (int k = 0; k < report->instance_count; ++k) {
    const pabd_report_instance *other = &report->instances[k];
    if (strcmp(other->case_id, instance->case_id) != 0) continue;
    const char *text = pabd_json_scalar(&report->html, cJSON_GetObjectItemCaseSensitive(other->params, key));
    if (strcmp(text, value) != 0) return 1;
  }
  return 0;
}

static const char *label_of(pabd_report *report, pabd_report_instance *instance, int with_start) {
  const char *label = "";
  const cJSON *item;
  cJSON_ArrayForEach(item, instance->params) {
    if (!item->string || (!with_start && pabd_list_match(START_PARAMS, item->string))) continue;
    const char *initial = pabd_json_text(item, "initial", NULL), *value = pabd_json_scalar(&report->html, item);
    int is_changed = initial && strcmp(initial, value) != 0;
    if (!is_changed && !param_varies(report, instance, item->string)) continue;
    const char *unit = pabd_json_text(item, "unit", "");
    int has_unit = unit[0] && strcmp(unit, "1") != 0;
    label = pabd_text_format(&report->html, "%s%s%s=%s%s%s", label, label[0] ? " " : "", item->string, value,
                             has_unit ? "\xC2\xA0" : "", has_unit ? unit : "");
  }
  return label;
}

static pabd_status make_rows(pabd_report *report) {
  for (int k = 0; k < report->instance_count; ++k) {
    pabd_report_instance *instance = &report->instances[k];
    instance->label = label_of(report, instance, 1);
    const char *key = pabd_text_format(&report->html, "%s|%s", instance->case_id,
                                       params_text(report, instance->params, START_PARAMS));
    int at = -1;
    for (int r = 0; r < report->row_count; ++r)
      if (strcmp(report->rows[r].key, key) == 0) at = r;
    if (at < 0) {
      GROW(report, rows, report->row_count);
      at = report->row_count++;
      report->rows[at] = (pabd_report_row){.case_id = instance->case_id,
                                           .family = instance->family,
                                           .title = instance->title,
                                           .label = label_of(report, instance, 0),
                                           .key = key};
    }
    pabd_report_row *row = &report->rows[at];
    void *grown = grow(report, row->instances, row->instance_count, sizeof *row->instances);
    if (!grown) return PABD_ERR_MEMORY;
    row->instances = grown;
    row->instances[row->instance_count++] = k;
    instance->row = at;
  }
  return PABD_OK;
}

static pabd_status make_runs(pabd_report *report) {
  size_t size = (size_t)report->instance_count * (size_t)report->variant_count;
  report->run_table = malloc(sizeof *report->run_table * (size + 1));
  if (!report->run_table) return PABD_ERR_MEMORY;
  for (size_t k = 0; k < size; ++k) report->run_table[k] = -1;
  for (int r = 0; r < report->record_count; ++r) {
    pabd_report_record *record = &report->records[r];
    int *at = &report->run_table[record->instance * report->variant_count + record->variant];
    if (*at < 0) {
      GROW(report, runs, report->run_count);
      *at = report->run_count++;
      report->runs[*at] = (pabd_report_run){.instance = record->instance, .variant = record->variant};
    }
    pabd_report_run *run = &report->runs[*at];
    void *grown = grow(report, run->records, run->record_count, sizeof *run->records);
    if (!grown) return PABD_ERR_MEMORY;
    run->records = grown;
    run->records[run->record_count++] = r;
    record->run = *at;
  }
  return PABD_OK;
}

static pabd_status read_one(pabd_report *report, const char *folder, const char *name) {
  const char *file = pabd_text_format(&report->html, "%s.json", name);
  char path[PABD_PATH_SIZE];
  pabd_path_format(path, "%s/%s", folder, file);
  char *text;
  size_t size;
  pabd_error why = {{0}};
  pabd_status status = pabd_file_read(path, &text, &size, &why);
  if (status == PABD_ERR_MEMORY) return status;
  if (status != PABD_OK) return add_skip(report, file, pabd_text_format(&report->html, "%s", why.text));
  const char *end = NULL;
  cJSON *root = cJSON_ParseWithLengthOpts(text, size + 1, &end, 1);
  if (!root) {
    long offset = end ? (long)(end - text) : 0;
    int line = 1;
    for (long k = 0; k < offset && k < (long)size; ++k) line += text[k] == '\n';
    free(text);
    return add_skip(report, file,
                    pabd_text_format(&report->html, "is not valid JSON (line %d, byte %ld)", line, offset));
  }
  free(text);
  const char *bad = check_record(&report->html, root);
  if (bad) {
    bad = pabd_text_format(&report->html, "%s", bad);
    cJSON_Delete(root);
    return add_skip(report, file, bad);
  }
  void *grown = grow(report, report->records, report->record_count, sizeof *report->records);
  if (!grown) {
    cJSON_Delete(root);
    return PABD_ERR_MEMORY;
  }
  report->records = grown;
  pabd_report_record *record = &report->records[report->record_count++];
  *record = (pabd_report_record){.file = file, .root = root};
  return PABD_OK;
}

pabd_status pabd_report_read(pabd_report *report, pabd_error *error) {
  char folder[PABD_PATH_SIZE];
  pabd_path_format(folder, "%s/records", report->dir);
  if (!pabd_is_folder(folder))
    return pabd_fail(error, PABD_ERR_INPUT,
                     "%s: no such folder: a results folder holds records/ (see pabd-bench run --out)", folder);
  char **names = NULL;
  int32_t count = 0;
  PABD_TRY(pabd_list_folder(folder, ".json", &names, &count, error));
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < count && status == PABD_OK; ++k) status = read_one(report, folder, names[k]);
  pabd_free_names(names, count);
  if (status == PABD_OK && report->record_count == 0) {
    if (report->skip_count)
      return pabd_fail(error, PABD_ERR_INPUT, "%s: no record can be read (%s: %s)", folder, report->skips[0].file,
                       report->skips[0].why);
    return pabd_fail(error, PABD_ERR_INPUT, "%s: holds no records; run cases into it first (pabd-bench run --out %s)",
                     folder, report->dir);
  }
  /* Threads make a variant of their own where they differ from what most of the folder used: the least. */
  report->base_threads = INFINITY;
  for (int r = 0; r < report->record_count; ++r)
    report->base_threads = fmin(report->base_threads, threads_of(&report->records[r]));
  for (int r = 0; r < report->record_count && status == PABD_OK; ++r) {
    status = place_instance(report, &report->records[r]);
    if (status == PABD_OK) status = place_variant(report, &report->records[r]);
  }
  if (status == PABD_OK) status = sort_all(report);
  if (status == PABD_OK) status = make_rows(report);
  if (status == PABD_OK) status = make_runs(report);
  if (status != PABD_OK || report->html.failed)
    return pabd_fail(error, PABD_ERR_MEMORY, "%s: no memory for %d records", folder, report->record_count);
  for (int k = 0; k < report->variant_count; ++k) report->variants[k].unavailable = 1;
  for (int r = 0; r < report->record_count; ++r)
    if (strcmp(pabd_json_text(report->records[r].root, "status", ""), "na") != 0)
      report->variants[report->records[r].variant].unavailable = 0;
  report->has_places = pabd_places_find(NULL, NULL, &report->places, NULL) == PABD_OK;
  return PABD_OK;
}

void pabd_report_free(pabd_report *report) {
  for (int k = 0; k < report->record_count; ++k) cJSON_Delete(report->records[k].root);
  for (int k = 0; k < report->instance_count; ++k) {
    if (report->instances[k].loaded) pabd_case_free(report->instances[k].loaded);
    free(report->instances[k].loaded);
  }
  for (int k = 0; k < report->row_count; ++k) free(report->rows[k].instances);
  for (int k = 0; k < report->run_count; ++k) free(report->runs[k].records);
  free(report->records);
  free(report->instances);
  free(report->rows);
  free(report->variants);
  free(report->runs);
  free(report->skips);
  free(report->run_table);
  pabd_text_free(&report->html);
}

/* ---- questions ---- */

pabd_report_run *pabd_report_find_run(pabd_report *report, int instance, int variant) {
  int run = report->run_table[instance * report->variant_count + variant];
  return run < 0 ? NULL : &report->runs[run];
}

const char *pabd_instance_param(pabd_report *report, int instance, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(report->instances[instance].params, key);
  return item ? pabd_json_scalar(&report->html, item) : NULL;
}

double pabd_instance_number(pabd_report *report, int instance, const char *key) {
  return pabd_json_number(report->instances[instance].params, key);
}

pabd_case *pabd_report_case(pabd_report *report, int index) {
  pabd_report_instance *instance = &report->instances[index];
  if (instance->is_loaded) return instance->loaded;
  instance->is_loaded = -1;
  if (!report->has_places) {
    instance->load_note = "the folder of cases was not found";
    return NULL;
  }
  char path[PABD_PATH_SIZE];
  const char *overrides[64];
  int count = 0;
  if (strchr(instance->case_id, '/') || instance->case_id[0] == '.') {
    instance->load_note = "not a case of this project";
    return NULL;
  }
  pabd_path_format(path, "%s/cases/%s.json", report->places.root, instance->case_id);
  const cJSON *item;
  cJSON_ArrayForEach(item, instance->params) {
    if (count < 64 && item->string)
      overrides[count++] =
          pabd_text_format(&report->html, "%s=%s", item->string, pabd_json_scalar(&report->html, item));
  }
  pabd_case *loaded = calloc(1, sizeof *loaded);
  pabd_error why = {{0}};
  if (!loaded || pabd_case_load(path, overrides, count, loaded, &why) != PABD_OK) {
    free(loaded);
    instance->load_note = pabd_text_format(&report->html, "the case file could not be read again: %s", why.text);
    return NULL;
  }
  instance->loaded = loaded;
  instance->is_loaded = 1;
  if (instance->hash[0] && strcmp(instance->hash, loaded->hash) != 0)
    instance->load_note = "the case file has changed since the run; picture and claim are of the file as it is now";
  return loaded;
}

double pabd_record_duration(pabd_report *report, const pabd_report_record *record) {
  double duration = pabd_json_number(cJSON_GetObjectItemCaseSensitive(record->root, "case"), "duration");
  if (!isnan(duration)) return duration;
  const pabd_case *c = pabd_report_case(report, record->instance);
  return c ? c->duration : NAN;
}

double pabd_record_frame_time(pabd_report *report, const pabd_report_record *record) {
  double step = pabd_json_number(cJSON_GetObjectItemCaseSensitive(record->root, "case"), "frame_time");
  if (!isnan(step)) return step;
  const pabd_case *c = pabd_report_case(report, record->instance);
  return c ? c->scene.frame_time : 1.0 / 60;
}

/* Frames that were stepped: the longest series that the judge writes, less the start. */
static double frames_done(pabd_report *report, const pabd_report_record *record) {
  (void)report;
  static const char *const blocks[] = {"timing", "run", "case"};
  static const char *const keys[] = {"frames_done", "frames"};
  for (size_t b = 0; b < 2; ++b)
    for (size_t k = 0; k < 2; ++k) {
      double frames = pabd_json_number(cJSON_GetObjectItemCaseSensitive(record->root, blocks[b]), keys[k]);
      if (!isnan(frames)) return frames;
    }
  int longest = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record->root, "series")) {
    int count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(item, "values"));
    if (count > longest) longest = count;
  }
  return longest > 0 ? longest - 1 : NAN;
}

pabd_outcome pabd_record_outcome(pabd_report *report, const pabd_report_record *record) {
  const char *status = pabd_json_text(record->root, "status", "");
  if (strcmp(status, "diverged") == 0) return PABD_OUTCOME_DIVERGED;
  if (strcmp(status, "crashed") == 0) return PABD_OUTCOME_CRASHED;
  if (strcmp(status, "timeout") == 0) return PABD_OUTCOME_TIMEOUT;
  if (strcmp(status, "na") == 0) return PABD_OUTCOME_NA;
  double survived = pabd_record_metric(record, "survive_s");
  double duration = pabd_record_duration(report, record);
  if (survived < duration - 0.5 * pabd_record_frame_time(report, record)) return PABD_OUTCOME_COLLAPSED;
  return PABD_OUTCOME_HELD;
}

double pabd_record_end(pabd_report *report, const pabd_report_record *record) {
  pabd_outcome outcome = pabd_record_outcome(report, record);
  if (outcome == PABD_OUTCOME_COLLAPSED) return pabd_record_metric(record, "survive_s");
  if (outcome == PABD_OUTCOME_HELD) return pabd_record_duration(report, record);
  return frames_done(report, record) * pabd_record_frame_time(report, record);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

pabd_report_spread pabd_spread_of(double *values, int count) {
  pabd_report_spread spread = {0, NAN, NAN, NAN};
  for (int k = 0; k < count; ++k)
    if (!isnan(values[k])) values[spread.count++] = values[k];
  if (spread.count == 0) return spread;
  qsort(values, (size_t)spread.count, sizeof *values, compare_doubles);
  int n = spread.count;
  spread.low = values[0], spread.high = values[n - 1];
  spread.middle = n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
  return spread;
}

pabd_report_spread pabd_run_spread(pabd_report *report, const pabd_report_run *run, const char *key) {
  double *values = malloc(sizeof *values * (size_t)run->record_count);
  if (!values) return (pabd_report_spread){0, NAN, NAN, NAN};
  for (int k = 0; k < run->record_count; ++k) values[k] = pabd_record_metric(&report->records[run->records[k]], key);
  pabd_report_spread spread = pabd_spread_of(values, run->record_count);
  free(values);
  return spread;
}

/* ---- words ---- */

static const struct {
  const char *symbol, *word, *css;
} outcome_table[PABD_OUTCOME_COUNT] = {
    [PABD_OUTCOME_HELD] = {"\xE2\x9C\x93", "held", "held"},
    [PABD_OUTCOME_COLLAPSED] = {"\xE2\x96\xBC", "collapsed", "collapsed"},
    [PABD_OUTCOME_DIVERGED] = {"\xE2\x9C\x95", "diverged", "diverged"},
    [PABD_OUTCOME_CRASHED] = {"\xE2\x80\xBC", "crashed", "crashed"},
    [PABD_OUTCOME_TIMEOUT] = {"\xE2\x8F\xB1", "timeout", "timeout"},
    [PABD_OUTCOME_NA] = {"\xE2\x80\x93", "n.a.", "na"},
};

const char *pabd_outcome_symbol(pabd_outcome outcome) {
  return outcome_table[outcome].symbol;
}
const char *pabd_outcome_word(pabd_outcome outcome) {
  return outcome_table[outcome].word;
}
const char *pabd_outcome_class(pabd_outcome outcome) {
  return outcome_table[outcome].css;
}

static const struct {
  const char *key, *words;
} metric_words[] = {
    {"penetration_max", "largest penetration"},
    {"penetration_settled_max", "largest penetration once settled"},
    {"penetration_mean_end", "mean penetration at the end"},
    {"penetration_p99_end", "99th percentile of penetration at the end"},
    {"pairs_over_10mm_end", "pairs deeper than 10 mm at the end"},
    {"joint_pos_err_max", "largest joint gap"},
    {"joint_pos_err_settled_max", "largest joint gap once settled"},
    {"joint_pos_err_rms", "joint gap, rms over time and joints"},
    {"joint_ang_err_max", "largest joint angle error"},
    {"energy_rel_err_end", "energy error at the end / reference energy"},
    {"energy_rel_err_max", "largest energy error / reference energy"},
    {"energy_gain_max", "largest energy gain / reference energy"},
    {"energy_rise_sum", "sum of energy rises / reference energy"},
    {"lin_mom_err", "linear momentum error (relative)"},
    {"ang_mom_err", "angular momentum error (relative)"},
    {"survive_s", "time it stands"},
    {"impact_momentum_kept", "momentum kept in the impact"},
    {"com_height_end", "height of the centre of mass at the end"},
    {"spread_end", "spread of the pile at the end (rms)"},
    {"contact_pairs_mean", "pairs in contact, mean"},
    {"bodies_lost", "bodies lost"},
    {"first_low_s", "time of the first low point"},
    {"stop_distance", "stopping distance"},
    {"creep", "creep"},
    {"flips", "number of flips"},
    {"first_flip_s", "time of the first flip"},
    {"flip_s_err_max", "largest error of a flip's time"},
    {"gap_ratio_end", "gap at the end / gap at the start"},
    {"hanging_gap_rel_err", "joint gap against T/\xCE\xBA, relative error"},
    {"position_err_end", "position error at the end"},
    {"free_fall_err_end", "distance from the exact parabola at the end"},
    {"step_ms_p50", "frame time, median"},
    {"step_ms_p95", "frame time, 95th percentile"},
    {"step_ms_p99", "frame time, 99th percentile"},
    {"step_ms_max", "frame time, largest"},
    {"step_ms_mean", "frame time, mean"},
    {"kinetic_end", "kinetic energy at the end"},
    {"kinetic_settled_max", "largest kinetic energy once settled"},
    {"com_move_max", "largest move of the centre of mass"},
};

const char *pabd_metric_words(const char *key) {
  for (size_t k = 0; k < sizeof metric_words / sizeof *metric_words; ++k)
    if (strcmp(metric_words[k].key, key) == 0) return metric_words[k].words;
  return key;
}

/* A case's own error metric; the first that its records hold. */
static const struct {
  const char *cases, *keys;
} error_keys[] = {
    {"stack*,hit-stack,tower,wall,pyramid", "penetration_settled_max penetration_max"},
    {"pile*", "penetration_mean_end"},
    {"chain-hanging", "hanging_gap_rel_err joint_pos_err_settled_max joint_pos_err_max"},
    {"al-one", "gap_ratio_end"},
    {"pair", "lin_mom_err ang_mom_err"},
    {"spin", "flip_s_err_max ang_mom_err"},
    {"slide", "stop_distance_err stop_distance"},
    {"incline", "creep position_err_end stop_distance"},
    {"free-fall", "free_fall_err_end"},
    {"pendulum", "energy_rel_err_max joint_pos_err_max"},
    {"*",
     "position_err_end joint_pos_err_max joint_pos_err_settled_max penetration_settled_max penetration_max "
     "energy_rel_err_max"},
};

const char *pabd_row_error_key(pabd_report *report, const pabd_report_row *row) {
  for (size_t k = 0; k < sizeof error_keys / sizeof *error_keys; ++k) {
    if (!pabd_list_match(error_keys[k].cases, row->case_id)) continue;
    const char *keys = error_keys[k].keys;
    while (*keys) {
      size_t length = strcspn(keys, " ");
      const char *key = pabd_text_format(&report->html, "%.*s", (int)length, keys);
      for (int r = 0; r < report->record_count; ++r)
        if (report->instances[report->records[r].instance].row == row - report->rows &&
            !isnan(pabd_record_metric(&report->records[r], key)))
          return key;
      keys += length + (keys[length] == ' ');
    }
  }
  return NULL;
}
