/* A plan: which cases run on which engines, with what settings, how often and in what order. */
#include "plan.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "record.h"

#define SPEC_SIZE 1024
#define OVERRIDE_CAPACITY 64

void pabd_plan_init(pabd_plan *plan, uint64_t order_seed) {
  memset(plan, 0, sizeof *plan);
  plan->order_seed = order_seed;
}

void pabd_plan_free(pabd_plan *plan) {
  if (!plan) return;
  for (int32_t k = 0; k < plan->case_count; ++k) {
    pabd_case_free(&plan->cases[k]->c);
    free(plan->cases[k]);
  }
  for (int32_t k = 0; k < plan->engine_count; ++k) {
    free(plan->engines[k]->overrides);
    free(plan->engines[k]);
  }
  free(plan->cases);
  free(plan->engines);
  free(plan->runs);
  memset(plan, 0, sizeof *plan);
}

pabd_request pabd_request_default(void) {
  return (pabd_request){.repeat = 1, .threads = 1, .warmup = 2, .time_limit = 300};
}

/* Appends formatted text to a buffer; what does not fit is cut. */
static void append(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *buffer, size_t size, const char *format, ...) {
  size_t used = strlen(buffer);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer + used, size - used, format, arguments);
  va_end(arguments);
}

/* Copies with everything that does not belong into a file name replaced. */
static void sanitize(char *text) {
  for (; *text; ++text) {
    if (!isalnum((unsigned char)*text) && !strchr("+-.,=_", *text)) *text = '_';
  }
}

static pabd_status grow_list(void ***list, int32_t count, pabd_error *error) {
  void **moved = realloc(*list, ((size_t)count + 1) * sizeof *moved);
  if (!moved) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  *list = moved;
  return PABD_OK;
}

/* ---- specifications: NAME[:word][:key=value,...] ------------------------------------------------------------------
 */

typedef struct spec {
  char text[SPEC_SIZE]; /* cut into pieces in place */
  char *name, *word;    /* word: the preset, NULL when absent */
  int32_t pair_count;
  char *pairs[OVERRIDE_CAPACITY]; /* "key=value" */
} spec;

/* `may_have_word`: engines may name a preset. */
static pabd_status parse_spec(const char *text, const char *kind, int may_have_word, spec *out, pabd_error *error) {
  memset(out, 0, sizeof *out);
  if (strlen(text) >= sizeof out->text) return pabd_fail(error, PABD_ERR_INPUT, "%s '%.60s...': too long", kind, text);
  snprintf(out->text, sizeof out->text, "%s", text);
  char *rest = out->text;
  out->name = strsep(&rest, ":");
  if (!out->name[0]) return pabd_fail(error, PABD_ERR_INPUT, "%s '%.100s': no name before the ':'", kind, text);
  for (char *part; (part = strsep(&rest, ":"));) {
    if (!strchr(part, '=')) {
      if (!may_have_word || out->word || out->pair_count || !part[0])
        return pabd_fail(error, PABD_ERR_INPUT, "%s '%.100s': '%s' is not key=value", kind, text, part);
      out->word = part;
      continue;
    }
    for (char *pair; (pair = strsep(&part, ","));) {
      if (!strchr(pair, '=') || pair[0] == '=' || pair[strlen(pair) - 1] == '=')
        return pabd_fail(error, PABD_ERR_INPUT, "%s '%.100s': '%s' is not key=value", kind, text, pair);
      if (out->pair_count == OVERRIDE_CAPACITY)
        return pabd_fail(error, PABD_ERR_INPUT, "%s '%.100s': more than %d values", kind, text, OVERRIDE_CAPACITY);
      out->pairs[out->pair_count++] = pair;
    }
  }
  return PABD_OK;
}

/* ---- cases --------------------------------------------------------------------------------------------------------
 */

static void label_case(pabd_plan_case *item) {
  snprintf(item->label, sizeof item->label, "%s", item->c.id);
  snprintf(item->slug, sizeof item->slug, "%s", item->c.id);
  int is_first = 1;
  for (int32_t k = 0; k < item->c.param_count; ++k) {
    const pabd_case_param *param = &item->c.params[k];
    if (strcmp(param->value, param->initial) == 0) continue;
    append(item->label, sizeof item->label, "%c%s=%s", is_first ? ':' : ',', param->key, param->value);
    append(item->slug, sizeof item->slug, "%c%s=%s", is_first ? '-' : ',', param->key, param->value);
    is_first = 0;
  }
  /* A long list of parameters would make an unusable (or cut, hence ambiguous) file name: use the case's hash. */
  if (strlen(item->slug) > 80) snprintf(item->slug, sizeof item->slug, "%.60s-%s", item->c.id, item->c.hash);
  sanitize(item->slug);
}

/* Loads the case with these "key=value" texts unless the plan has it. */
static pabd_status add_case(pabd_plan *plan, const pabd_catalog *catalog, const char *id, const char *const *pairs,
                            int32_t pair_count, const char *tag, int32_t *index, pabd_error *error) {
  char path[PABD_PATH_SIZE];
  pabd_catalog_case_path(catalog, id, path);
  pabd_plan_case *item = calloc(1, sizeof *item);
  if (!item) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  pabd_status status = pabd_case_load(path, pairs, pair_count, &item->c, error);
  if (status != PABD_OK) {
    free(item);
    return status;
  }
  *index = -1;
  int is_wanted = !tag || pabd_list_match(item->c.tags, tag);
  for (int32_t k = 0; k < plan->case_count && is_wanted; ++k) {
    if (strcmp(plan->cases[k]->c.id, item->c.id) != 0 || strcmp(plan->cases[k]->c.hash, item->c.hash) != 0) continue;
    *index = k;
    is_wanted = 0;
  }
  if (is_wanted) {
    status = grow_list((void ***)&plan->cases, plan->case_count, error);
    if (status == PABD_OK) {
      label_case(item);
      *index = plan->case_count;
      plan->cases[plan->case_count++] = item;
      return PABD_OK;
    }
  }
  pabd_case_free(&item->c);
  free(item);
  return status;
}

/* ---- engines ------------------------------------------------------------------------------------------------------
 */

static void set_override(pabd_plan_engine *item, const char *key, const char *value) {
  int32_t k = 0;
  while (k < item->override_count && strcmp(item->overrides[k].key, key) != 0) ++k;
  item->override_count += k == item->override_count;
  snprintf(item->overrides[k].key, sizeof item->overrides[k].key, "%s", key);
  snprintf(item->overrides[k].value, sizeof item->overrides[k].value, "%s", value);
}

/* `threads`: in: as asked; out: as asked by an override, if there is one. */
static pabd_status add_engine(pabd_plan *plan, const pabd_catalog_engine *engine, const pabd_preset *preset,
                              const spec *from, int32_t *threads, int32_t *index, pabd_error *error) {
  const pabd_engine_desc *desc = &engine->desc;
  pabd_plan_engine *item = calloc(1, sizeof *item);
  if (item) item->overrides = calloc((size_t)from->pair_count + 1, sizeof *item->overrides);
  if (!item || !item->overrides) {
    free(item);
    return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  }
  item->engine = engine;
  item->preset = preset;
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < from->pair_count && status == PABD_OK; ++k) {
    char key[PABD_KEY_SIZE];
    const char *value = strchr(from->pairs[k], '=') + 1;
    snprintf(key, sizeof key, "%.*s", (int)(value - 1 - from->pairs[k]), from->pairs[k]);
    if (strlen(value) >= PABD_VALUE_SIZE)
      status = pabd_fail(error, PABD_ERR_INPUT, "engine %s: value of %s is too long", desc->name, key);
    else if (desc->is_available)
      status = pabd_engine_check_setting(desc, key, value, error);
    if (status != PABD_OK) break;
    if (strcmp(key, "threads") == 0)
      *threads = atoi(value);
    else
      set_override(item, key, value);
  }
  snprintf(item->label, sizeof item->label, "%s", desc->name);
  if (preset) append(item->label, sizeof item->label, ":%s", preset->name);
  for (int32_t k = 0; k < item->override_count; ++k)
    append(item->label, sizeof item->label, "%c%s=%s", k ? ',' : ':', item->overrides[k].key, item->overrides[k].value);
  for (int32_t k = 0; k < plan->engine_count && status == PABD_OK; ++k) {
    if (plan->engines[k]->engine != engine || strcmp(plan->engines[k]->label, item->label) != 0) continue;
    free(item->overrides);
    free(item);
    *index = k;
    return PABD_OK;
  }
  if (status == PABD_OK) status = grow_list((void ***)&plan->engines, plan->engine_count, error);
  if (status != PABD_OK) {
    free(item->overrides);
    free(item);
    return status;
  }
  *index = plan->engine_count;
  plan->engines[plan->engine_count++] = item;
  return PABD_OK;
}

int32_t pabd_plan_settings(const pabd_plan_engine *engine, int32_t threads, pabd_key_value *out) {
  int32_t count = 0;
  for (int32_t k = 0; engine->preset && k < engine->preset->setting_count; ++k) {
    if (strcmp(engine->preset->settings[k].key, "threads") != 0) out[count++] = engine->preset->settings[k];
  }
  for (int32_t k = 0; k < engine->override_count; ++k) {
    int32_t j = 0;
    while (j < count && strcmp(out[j].key, engine->overrides[k].key) != 0) ++j;
    if (j == PABD_SETTING_CAPACITY) continue;
    count += j == count;
    out[j] = engine->overrides[k];
  }
  if (pabd_engine_find_setting(&engine->engine->desc, "threads") >= 0 && count < PABD_SETTING_CAPACITY) {
    snprintf(out[count].key, sizeof out[count].key, "threads");
    snprintf(out[count].value, sizeof out[count].value, "%d", threads);
    ++count;
  }
  return count;
}

/* ---- runs ---------------------------------------------------------------------------------------------------------
 */

static int compare_settings(const void *a, const void *b) {
  return strcmp(((const pabd_key_value *)a)->key, ((const pabd_key_value *)b)->key);
}

/* Sets the run's key and name from everything that makes it what it is. */
static void identify(const pabd_plan *plan, pabd_run *run) {
  const pabd_plan_case *of_case = plan->cases[run->case_index];
  const pabd_plan_engine *of_engine = plan->engines[run->engine_index];
  const pabd_engine_desc *desc = &of_engine->engine->desc;
  const char *preset = of_engine->preset ? of_engine->preset->name : "";
  pabd_key_value settings[PABD_SETTING_CAPACITY];
  int32_t count = pabd_plan_settings(of_engine, run->threads, settings);
  qsort(settings, (size_t)count, sizeof *settings, compare_settings);
  uint64_t hash = pabd_hash_text(PABD_HASH_START, of_case->c.id);
  int32_t numbers[] = {PABD_RECORD_SCHEMA, run->threads, run->repeat, run->warmup, run->trace_from, run->trace_to};
  hash = pabd_hash_text(hash, of_case->c.hash);
  hash = pabd_hash_text(hash, desc->name);
  hash = pabd_hash_text(hash, preset);
  hash = pabd_hash_bytes(hash, &desc->library_hash, sizeof desc->library_hash);
  hash = pabd_hash_bytes(hash, numbers, sizeof numbers);
  for (int32_t k = 0; k < count; ++k) {
    hash = pabd_hash_text(hash, settings[k].key);
    hash = pabd_hash_text(hash, settings[k].value);
  }
  run->key = hash;

  snprintf(run->name, sizeof run->name, "%s__%.40s", of_case->slug, desc->name);
  if (preset[0]) append(run->name, sizeof run->name, "-%.30s", preset);
  if (of_engine->override_count > 0) {
    uint64_t of_overrides = PABD_HASH_START;
    memcpy(settings, of_engine->overrides, (size_t)of_engine->override_count * sizeof *settings);
    qsort(settings, (size_t)of_engine->override_count, sizeof *settings, compare_settings);
    for (int32_t k = 0; k < of_engine->override_count; ++k) {
      of_overrides = pabd_hash_text(of_overrides, settings[k].key);
      of_overrides = pabd_hash_text(of_overrides, settings[k].value);
    }
    append(run->name, sizeof run->name, "-%08x", (unsigned)(of_overrides ^ of_overrides >> 32));
  }
  if (run->threads != 1) append(run->name, sizeof run->name, "-t%d", run->threads);
  if (run->trace_from) append(run->name, sizeof run->name, "-trace");
  append(run->name, sizeof run->name, "__r%d", run->repeat);
  sanitize(run->name);
}

static pabd_status add_run(pabd_plan *plan, const pabd_request *request, int32_t case_index, int32_t engine_index,
                           int32_t threads, int32_t repeat, pabd_error *error) {
  if ((plan->run_count & (plan->run_count - 1)) == 0) { /* capacity: the next power of two */
    size_t wanted = plan->run_count ? 2 * (size_t)plan->run_count : 1;
    pabd_run *moved = realloc(plan->runs, wanted * sizeof *moved);
    if (!moved) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
    plan->runs = moved;
  }
  pabd_run *run = &plan->runs[plan->run_count];
  *run = (pabd_run){.case_index = case_index,
                    .engine_index = engine_index,
                    .repeat = repeat,
                    .threads = threads,
                    .time_limit = request->time_limit,
                    .warmup = request->warmup,
                    .stride = request->stride,
                    .trace_from = request->trace_from,
                    .trace_to = request->trace_to};
  identify(plan, run);
  for (int32_t k = 0; k < plan->run_count; ++k) {
    if (strcmp(plan->runs[k].name, run->name) != 0) continue;
    if (plan->runs[k].stride == 0) plan->runs[k].stride = run->stride; /* asked for twice: keep what either wants */
    return PABD_OK;
  }
  ++plan->run_count;
  return PABD_OK;
}

/* Engines that can hold no shape at all need to be told what they drive; a pattern does not mean them. */
static int is_bridge(const pabd_engine_desc *engine) {
  const uint64_t shapes =
      PABD_CAN_SPHERE | PABD_CAN_CAPSULE | PABD_CAN_BOX | PABD_CAN_PLANE | PABD_CAN_CYLINDER | PABD_CAN_HULL;
  return engine->is_available && !(engine->capabilities & shapes);
}

/* All engines x presets that one specification names. */
static pabd_status add_engine_spec(pabd_plan *plan, pabd_catalog *catalog, const char *text, const char *const *extra,
                                   int32_t extra_count, int32_t threads, int32_t (*out)[2], int32_t capacity,
                                   int32_t *count, pabd_error *error) {
  spec from;
  char **names = NULL;
  int32_t name_count = 0;
  PABD_TRY(parse_spec(text, "engine", 1, &from, error));
  for (int32_t k = 0; k < extra_count && from.pair_count < OVERRIDE_CAPACITY; ++k)
    from.pairs[from.pair_count++] = (char *)extra[k];
  PABD_TRY(pabd_catalog_find_engines(catalog, from.name, &names, &name_count, error));
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < name_count && status == PABD_OK; ++k) {
    const pabd_catalog_engine *engine;
    const pabd_preset *chosen[64];
    int32_t chosen_count = 0;
    status = pabd_catalog_engine_open(catalog, names[k], &engine, error);
    if (status != PABD_OK) break;
    if (pabd_is_glob(from.name) && is_bridge(&engine->desc)) continue;
    if (from.word && pabd_is_glob(from.word)) {
      for (int32_t j = 0; j < engine->presets.count && chosen_count < 64; ++j) {
        if (pabd_glob_match(from.word, engine->presets.presets[j].name) && !engine->presets.presets[j].fault[0])
          chosen[chosen_count++] = &engine->presets.presets[j];
      }
      if (chosen_count == 0 && !pabd_is_glob(from.name))
        status = pabd_fail(error, PABD_ERR_INPUT, "no preset of engine %s matches '%s'", names[k], from.word);
    } else {
      status = pabd_catalog_find_preset(engine, from.word, &chosen[chosen_count++], error);
      /* "*:tuned" means those engines that have it. */
      if (status != PABD_OK && pabd_is_glob(from.name)) status = PABD_OK, chosen_count = 0;
    }
    for (int32_t j = 0; j < chosen_count && status == PABD_OK; ++j) {
      if (*count == capacity) {
        status = pabd_fail(error, PABD_ERR_INPUT, "more than %d engines in one group of runs", capacity);
        break;
      }
      out[*count][1] = threads;
      status = add_engine(plan, engine, chosen[j], &from, &out[*count][1], &out[*count][0], error);
      *count += status == PABD_OK;
    }
  }
  pabd_free_names(names, name_count);
  if (status == PABD_OK && *count == 0) status = pabd_fail(error, PABD_ERR_INPUT, "engine '%s': nothing matches", text);
  return status;
}

/* Lists of values that multiply the runs of a group ("params" and "settings" of plan files). */
typedef struct value_list {
  char key[PABD_KEY_SIZE];
  int32_t count;
  char values[32][PABD_VALUE_SIZE];
} value_list;

typedef struct group {
  pabd_request request;
  const pabd_plan_overrides *kept; /* only cases that match its patterns; NULL: all */
  int32_t param_count, setting_count;
  value_list params[8], settings[8];
} group;

/* The `number`-th combination of the lists as "key=value" texts. Returns the number of combinations. */
static int64_t combination(const value_list *lists, int32_t count, int64_t number, char (*texts)[168],
                           const char **pointers) {
  int64_t total = 1;
  for (int32_t k = 0; k < count; ++k) {
    texts[k][0] = 0;
    append(texts[k], sizeof texts[k], "%s=%s", lists[k].key, lists[k].values[number / total % lists[k].count]);
    pointers[k] = texts[k];
    total *= lists[k].count;
  }
  return total;
}

static int keeps_case(const pabd_plan_overrides *kept, const char *id) {
  if (!kept || kept->case_pattern_count == 0) return 1;
  for (int32_t k = 0; k < kept->case_pattern_count; ++k) {
    if (pabd_glob_match(kept->case_patterns[k], id)) return 1;
  }
  return 0;
}

static pabd_status add_group(pabd_plan *plan, pabd_catalog *catalog, const group *g, pabd_error *error) {
  const pabd_request *request = &g->request;
  enum { ENGINE_CAPACITY = 512 };
  static int32_t engines[ENGINE_CAPACITY][2]; /* index in the plan, threads */
  int32_t engine_count = 0;
  char texts[8][168];
  const char *pointers[8] = {NULL};

  int64_t combinations = combination(g->settings, g->setting_count, 0, texts, pointers);
  for (int64_t n = 0; n < combinations; ++n) {
    combination(g->settings, g->setting_count, n, texts, pointers);
    for (int32_t k = 0; k < request->engine_count; ++k)
      PABD_TRY(add_engine_spec(plan, catalog, request->engines[k], pointers, g->setting_count, request->threads,
                               engines, ENGINE_CAPACITY, &engine_count, error));
  }

  static const char *const all_cases[] = {"*"};
  const char *const *patterns = request->case_count ? request->cases : all_cases;
  int32_t pattern_count = request->case_count ? request->case_count : 1, added = 0;
  combinations = combination(g->params, g->param_count, 0, texts, pointers);
  for (int32_t k = 0; k < pattern_count; ++k) {
    spec from;
    char **ids;
    int32_t id_count;
    PABD_TRY(parse_spec(patterns[k], "case", 0, &from, error));
    PABD_TRY(pabd_catalog_find_cases(catalog, from.name, &ids, &id_count, error));
    pabd_status status = PABD_OK;
    for (int32_t j = 0; j < id_count * (int32_t)combinations && status == PABD_OK; ++j) {
      if (!keeps_case(g->kept, ids[j / combinations])) continue;
      const char *pairs[OVERRIDE_CAPACITY + 8];
      int32_t pair_count = 0, case_index = -1;
      combination(g->params, g->param_count, j % combinations, texts, pointers);
      for (int32_t p = 0; p < g->param_count; ++p) pairs[pair_count++] = pointers[p];
      for (int32_t p = 0; p < from.pair_count; ++p) pairs[pair_count++] = from.pairs[p];
      status = add_case(plan, catalog, ids[j / combinations], pairs, pair_count, request->tag, &case_index, error);
      if (status != PABD_OK || case_index < 0) continue;
      ++added;
      for (int32_t e = 0; e < engine_count && status == PABD_OK; ++e) {
        for (int32_t r = 0; r < request->repeat && status == PABD_OK; ++r)
          status = add_run(plan, request, case_index, engines[e][0], engines[e][1], r, error);
      }
    }
    pabd_free_names(ids, id_count);
    PABD_TRY(status);
  }
  if (added == 0 && request->tag && !(g->kept && g->kept->case_pattern_count))
    return pabd_fail(error, PABD_ERR_INPUT, "no case carries the tag '%s' (pabd-bench list shows the tags)",
                     request->tag);
  return PABD_OK;
}

pabd_status pabd_plan_add(pabd_plan *plan, pabd_catalog *catalog, const pabd_request *request, pabd_error *error) {
  group *g = calloc(1, sizeof *g);
  if (!g) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  g->request = *request;
  pabd_status status = add_group(plan, catalog, g, error);
  free(g);
  return status;
}

/* ---- plan files ---------------------------------------------------------------------------------------------------
 */

static int scalar_text(const cJSON *value, char out[PABD_VALUE_SIZE]) {
  if (cJSON_IsString(value)) return snprintf(out, PABD_VALUE_SIZE, "%s", value->valuestring) < PABD_VALUE_SIZE;
  if (cJSON_IsBool(value)) return snprintf(out, PABD_VALUE_SIZE, "%d", cJSON_IsTrue(value)) > 0;
  if (!cJSON_IsNumber(value)) return 0;
  for (int digits = 6; digits <= 17; ++digits) {
    snprintf(out, PABD_VALUE_SIZE, "%.*g", digits, value->valuedouble);
    if (strtod(out, NULL) == value->valuedouble) break;
  }
  return 1;
}

/* {"key": value or [values], ...} */
static pabd_status read_lists(const char *path, const char *what, const cJSON *from, value_list lists[8],
                              int32_t *count, pabd_error *error) {
  if (!cJSON_IsObject(from))
    return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s' must be an object of values or lists of values", path, what);
  for (const cJSON *item = from->child; item; item = item->next) {
    if (*count == 8) return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s' has more than 8 keys", path, what);
    value_list *list = &lists[(*count)++];
    snprintf(list->key, sizeof list->key, "%s", item->string);
    const cJSON *value = cJSON_IsArray(item) ? item->child : item;
    for (; value; value = cJSON_IsArray(item) ? value->next : NULL) {
      if (list->count == 32 || !scalar_text(value, list->values[list->count++]))
        return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s.%s' must be a value or a list of at most 32 values", path,
                         what, item->string);
    }
    if (list->count == 0)
      return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s.%s' is an empty list", path, what, item->string);
  }
  return PABD_OK;
}

static pabd_status read_texts(const char *path, const char *what, const cJSON *from, const char ***out, int32_t *count,
                              pabd_error *error) {
  int32_t size = cJSON_IsArray(from) ? cJSON_GetArraySize(from) : 0;
  if (size == 0) return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s' must be a list of texts", path, what);
  *out = calloc((size_t)size, sizeof **out);
  if (!*out) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  for (const cJSON *item = from->child; item; item = item->next) {
    if (!cJSON_IsString(item)) return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s' must be a list of texts", path, what);
    (*out)[(*count)++] = item->valuestring;
  }
  return PABD_OK;
}

static pabd_status read_int(const char *path, const char *what, const cJSON *from, int32_t low, int32_t high,
                            int32_t *out, pabd_error *error) {
  if (!cJSON_IsNumber(from) || from->valuedouble != floor(from->valuedouble) || from->valuedouble < low ||
      from->valuedouble > high)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s' must be a whole number, %d .. %d", path, what, low, high);
  *out = (int32_t)from->valuedouble;
  return PABD_OK;
}

/* Keeps those entries whose engine part (NAME[:preset]) matches one of the patterns. */
static void keep_engines(const char **engines, int32_t *count, const pabd_plan_overrides *o) {
  int32_t kept = 0;
  for (int32_t k = 0; k < *count; ++k) {
    spec entry;
    int matches = 0;
    if (parse_spec(engines[k], "engine", 1, &entry, NULL) != PABD_OK) matches = 1; /* reported later */
    for (int32_t j = 0; j < o->engine_pattern_count && !matches; ++j) {
      spec wanted;
      if (parse_spec(o->engine_patterns[j], "engine", 1, &wanted, NULL) != PABD_OK) continue;
      matches = pabd_glob_match(wanted.name, entry.name) || pabd_glob_match(entry.name, wanted.name);
      if (wanted.word) matches = matches && pabd_glob_match(wanted.word, entry.word ? entry.word : "default");
    }
    if (matches) engines[kept++] = engines[k];
  }
  *count = kept;
}

/* One entry of "runs". */
static pabd_status read_group(pabd_plan *plan, pabd_catalog *catalog, const char *path, const cJSON *from,
                              const pabd_plan_overrides *o, pabd_error *error) {
  if (!cJSON_IsObject(from)) return pabd_fail(error, PABD_ERR_INPUT, "%s: entries of 'runs' must be objects", path);
  group *g = calloc(1, sizeof *g);
  if (!g) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  g->request = pabd_request_default();
  pabd_request *request = &g->request;
  const char **cases = NULL, **engines = NULL;
  int32_t thread_counts[8] = {1}, thread_count = 1;
  pabd_status status = PABD_OK;
  for (const cJSON *item = from->child; item && status == PABD_OK; item = item->next) {
    const char *key = item->string;
    if (strcmp(key, "why") == 0) continue;
    if (strcmp(key, "cases") == 0) {
      status = read_texts(path, key, item, &cases, &request->case_count, error);
    } else if (strcmp(key, "engines") == 0) {
      status = read_texts(path, key, item, &engines, &request->engine_count, error);
    } else if (strcmp(key, "tag") == 0 && cJSON_IsString(item)) {
      request->tag = item->valuestring;
    } else if (strcmp(key, "params") == 0) {
      status = read_lists(path, key, item, g->params, &g->param_count, error);
    } else if (strcmp(key, "settings") == 0) {
      status = read_lists(path, key, item, g->settings, &g->setting_count, error);
    } else if (strcmp(key, "repeat") == 0) {
      status = read_int(path, key, item, 1, 1000, &request->repeat, error);
    } else if (strcmp(key, "warmup") == 0) {
      status = read_int(path, key, item, 0, 100000, &request->warmup, error);
    } else if (strcmp(key, "threads") == 0) {
      if (cJSON_IsArray(item)) {
        thread_count = 0;
        for (const cJSON *value = item->child; value && thread_count < 8 && status == PABD_OK; value = value->next)
          status = read_int(path, key, value, 1, 1024, &thread_counts[thread_count++], error);
      } else {
        status = read_int(path, key, item, 1, 1024, &thread_counts[0], error);
      }
    } else if (strcmp(key, "time_limit") == 0 && cJSON_IsNumber(item) && item->valuedouble > 0) {
      request->time_limit = item->valuedouble;
    } else if (strcmp(key, "trajectory") == 0 && cJSON_IsBool(item)) {
      request->stride = cJSON_IsTrue(item) ? -1 : 0;
    } else if (strcmp(key, "trajectory") == 0 && cJSON_IsNumber(item)) {
      status = read_int(path, key, item, 1, 100000, &request->stride, error);
    } else if (strcmp(key, "trace_frames") == 0 && cJSON_GetArraySize(item) == 2) {
      status = read_int(path, key, item->child, 1, 1000000, &request->trace_from, error);
      if (status == PABD_OK)
        status = read_int(path, key, item->child->next, request->trace_from, 1000000, &request->trace_to, error);
    } else {
      status = pabd_fail(error, PABD_ERR_INPUT,
                         "%s: 'runs' has an unknown or ill-typed '%s' (allowed: why, cases, tag, params, engines, "
                         "settings, repeat, threads, warmup, time_limit, trajectory, trace_frames)",
                         path, key);
    }
  }
  if (status == PABD_OK && (!engines || (!cases && !request->tag)))
    status = pabd_fail(error, PABD_ERR_INPUT, "%s: each entry of 'runs' needs 'cases' (or 'tag') and 'engines'", path);
  /* What the person typed wins over the file. */
  if (status == PABD_OK) {
    if (o->repeat > 0) request->repeat = o->repeat;
    if (o->threads > 0) thread_counts[0] = o->threads, thread_count = 1;
    if (o->warmup >= 0) request->warmup = o->warmup;
    if (o->stride != 0) request->stride = o->stride;
    if (o->time_limit > 0) request->time_limit = o->time_limit;
    if (o->trace_from > 0) request->trace_from = o->trace_from, request->trace_to = o->trace_to;
    if (o->tag) request->tag = o->tag;
    g->kept = o;
    if (o->engine_pattern_count) keep_engines(engines, &request->engine_count, o);
    request->cases = cases;
    request->engines = engines;
    for (int32_t k = 0; k < thread_count && status == PABD_OK && request->engine_count > 0; ++k) {
      pabd_error cause = {""};
      request->threads = thread_counts[k];
      status = add_group(plan, catalog, g, &cause);
      if (status != PABD_OK) pabd_fail(error, status, "%s: %.400s", path, cause.text);
      /* A tag typed by the person may match nothing in this entry and something in the next. */
      if (status == PABD_ERR_INPUT && o->tag && strstr(cause.text, "carries the tag")) status = PABD_OK;
    }
  }
  free(cases);
  free(engines);
  free(g);
  return status;
}

pabd_status pabd_plan_add_file(pabd_plan *plan, pabd_catalog *catalog, const char *name,
                               const pabd_plan_overrides *overrides, pabd_error *error) {
  char path[PABD_PATH_SIZE], *text;
  size_t size;
  pabd_path_format(path, "%s", name);
  if (!pabd_is_file(path)) {
    char folder[PABD_PATH_SIZE], **known;
    int32_t known_count;
    pabd_path_format(folder, "%s/harness/plans", catalog->places.root);
    pabd_path_format(path, "%s/%s.json", folder, name);
    if (!pabd_is_file(path)) {
      PABD_TRY(pabd_list_folder(folder, ".json", &known, &known_count, error));
      const char *near = pabd_nearest(name, (const char *const *)known, known_count);
      pabd_fail(error, PABD_ERR_INPUT, "no plan '%.200s': neither a file nor in harness/plans%s%s", name,
                near ? "; nearest: " : "", near ? near : "");
      pabd_free_names(known, known_count);
      return PABD_ERR_INPUT;
    }
  }
  PABD_TRY(pabd_file_read(path, &text, &size, error));
  const char *end = text;
  cJSON *root = cJSON_ParseWithLengthOpts(text, size + 1, &end, 1);
  pabd_status status = PABD_OK;
  const cJSON *runs = cJSON_GetObjectItemCaseSensitive(root, "runs");
  if (!cJSON_IsObject(root)) {
    int line = 1;
    for (const char *at = text; at < end && at < text + size; ++at) line += *at == '\n';
    status = pabd_fail(error, PABD_ERR_INPUT, "%s:%d: not a JSON object", path, line);
  } else if (!cJSON_IsArray(runs)) {
    status = pabd_fail(error, PABD_ERR_INPUT, "%s: needs a list 'runs'", path);
  }
  const cJSON *title = cJSON_GetObjectItemCaseSensitive(root, "plan");
  if (status == PABD_OK && cJSON_IsString(title)) snprintf(plan->name, sizeof plan->name, "%s", title->valuestring);
  for (const cJSON *item = runs ? runs->child : NULL; item && status == PABD_OK; item = item->next)
    status = read_group(plan, catalog, path, item, overrides, error);
  if (status == PABD_OK && plan->run_count == 0)
    status = pabd_fail(error, PABD_ERR_INPUT, "%s: no run is left: nothing in the plan matches what was asked", path);
  cJSON_Delete(root);
  free(text);
  return status;
}

/* ---- order --------------------------------------------------------------------------------------------------------
 */

/* splitmix64: small, good enough to shuffle, and the same everywhere. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

typedef struct ordered_run {
  int32_t case_index, repeat, place;
  uint64_t draw;
  pabd_run run;
} ordered_run;

static int compare_order(const void *a, const void *b) {
  const ordered_run *x = a, *y = b;
  if (x->case_index != y->case_index) return x->case_index < y->case_index ? -1 : 1;
  if (x->repeat != y->repeat) return x->repeat < y->repeat ? -1 : 1;
  if (x->draw != y->draw) return x->draw < y->draw ? -1 : 1;
  return x->place - y->place;
}

void pabd_plan_order(pabd_plan *plan) {
  uint64_t state = plan->order_seed;
  ordered_run *order = calloc((size_t)plan->run_count + 1, sizeof *order);
  if (!order) return; /* unshuffled runs are still right */
  for (int32_t k = 0; k < plan->run_count; ++k) {
    const pabd_run *run = &plan->runs[k];
    order[k] = (ordered_run){run->case_index, run->repeat, k, next_random(&state), *run};
  }
  qsort(order, (size_t)plan->run_count, sizeof *order, compare_order);
  for (int32_t k = 0; k < plan->run_count; ++k) plan->runs[k] = order[k].run;
  free(order);
}
