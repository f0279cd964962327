/* Records read and put together by configuration. See record_set.h. */
#include "record_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "record_check.h"

const char *pabd_record_text(const cJSON *record, const char *block, const char *key) {
  if (block) record = cJSON_GetObjectItemCaseSensitive(record, block);
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, key));
  return text ? text : "";
}

double pabd_record_number(const cJSON *record, const char *block, const char *key) {
  if (block) record = cJSON_GetObjectItemCaseSensitive(record, block);
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(record, key);
  if (cJSON_IsObject(item)) item = cJSON_GetObjectItemCaseSensitive(item, "value");
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static pabd_status no_memory(pabd_error *error) {
  return pabd_fail(error, PABD_ERR_MEMORY, "out of memory for the records");
}

static int compare_members(const void *a, const void *b) {
  const cJSON *x = *(const cJSON *const *)a, *y = *(const cJSON *const *)b;
  return strcmp(x->string, y->string);
}

/* "{key=value,...}" with keys sorted, so that the order in the file does not matter; malloc'ed. */
static char *sorted_members(const cJSON *object) {
  int32_t count = cJSON_GetArraySize(object), k = 0;
  const cJSON **members = malloc(((size_t)count + 1) * sizeof *members), *item;
  char *text = NULL;
  size_t size = 0;
  FILE *stream = members ? open_memstream(&text, &size) : NULL;
  if (stream) {
    cJSON_ArrayForEach(item, object) members[k++] = item;
    qsort(members, (size_t)count, sizeof *members, compare_members);
    for (k = 0; k < count; ++k) {
      item = members[k];
      if (cJSON_IsObject(item)) item = cJSON_GetObjectItemCaseSensitive(item, "value");
      fprintf(stream, "%s%s=", k ? "," : "", members[k]->string);
      if (cJSON_IsString(item))
        fputs(item->valuestring, stream);
      else if (cJSON_IsNumber(item))
        fprintf(stream, "%.17g", item->valuedouble);
      else
        fputs(cJSON_IsTrue(item) ? "true" : cJSON_IsFalse(item) ? "false" : "null", stream);
    }
    /* A memory stream that could not grow fails when it is closed. */
    int is_bad = ferror(stream);
    if (fclose(stream) != 0 || is_bad) {
      free(text);
      text = NULL;
    }
  }
  free(members);
  return text;
}

/* Identity of a record's configuration, malloc'ed; NULL when memory is out. */
static char *key_of(const cJSON *record) {
  const cJSON *case_block = cJSON_GetObjectItemCaseSensitive(record, "case");
  const cJSON *engine = cJSON_GetObjectItemCaseSensitive(record, "engine");
  const cJSON *frames =
      cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(record, "run"), "trace_frames");
  char *params = sorted_members(cJSON_GetObjectItemCaseSensitive(case_block, "params"));
  char *overrides = sorted_members(cJSON_GetObjectItemCaseSensitive(engine, "overrides")), *key = NULL;
  if (params && overrides &&
      asprintf(&key, "%s{%s} %s:%s{%s} t%g%s", pabd_record_text(case_block, NULL, "id"), params,
               pabd_record_text(engine, NULL, "name"), pabd_record_text(engine, NULL, "preset"), overrides,
               pabd_record_number(record, "run", "threads"), cJSON_IsArray(frames) ? " traced" : "") < 0)
    key = NULL;
  free(params);
  free(overrides);
  return key;
}

typedef struct keyed {
  char *key;
  cJSON *record;
} keyed;

static int compare_keyed(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  if (order) return order;
  double p = pabd_record_number(x->record, "run", "repeat"), q = pabd_record_number(y->record, "run", "repeat");
  return (p > q) - (p < q);
}

/* Sorts the records by key and repeat and cuts them into groups. */
static pabd_status make_groups(pabd_record_set *set, pabd_error *error) {
  size_t count = (size_t)set->record_count;
  keyed *list = calloc(count + 1, sizeof *list);
  set->members = calloc(count + 1, sizeof(const cJSON *));
  set->groups = calloc(count + 1, sizeof *set->groups);
  pabd_status status = list && set->members && set->groups ? PABD_OK : no_memory(error);
  for (size_t k = 0; k < count && status == PABD_OK; ++k) {
    list[k] = (keyed){key_of(set->records[k]), set->records[k]};
    if (!list[k].key) status = no_memory(error);
  }
  if (status == PABD_OK) {
    qsort(list, count, sizeof *list, compare_keyed);
    for (size_t k = 0; k < count; ++k) {
      set->members[k] = list[k].record;
      /* Keys are handed over to the groups; what is left in the list is freed below. */
      pabd_record_group *last = set->group_count ? &set->groups[set->group_count - 1] : NULL;
      if (last && last->key && list[k].key && strcmp(last->key, list[k].key) == 0) {
        ++last->record_count;
        continue;
      }
      set->groups[set->group_count++] =
          (pabd_record_group){.key = list[k].key,
                              .label = pabd_record_text(list[k].record, "case", "label"),
                              .engine = pabd_record_text(list[k].record, "engine", "label"),
                              .threads = (int32_t)pabd_record_number(list[k].record, "run", "threads"),
                              .record_count = 1,
                              .records = set->members + k};
      list[k].key = NULL;
    }
  }
  for (size_t k = 0; list && k < count; ++k) free(list[k].key);
  free(list);
  return status;
}

static pabd_status add_record(pabd_record_set *set, const char *path, pabd_error *error) {
  PABD_TRY(pabd_record_read(path, &set->records[set->record_count], error));
  ++set->record_count;
  return PABD_OK;
}

pabd_status pabd_record_set_read(const char *path, pabd_record_set *out, pabd_error *error) {
  char folder[PABD_PATH_SIZE], file[PABD_PATH_SIZE], **names = NULL;
  int32_t count = 0;
  *out = (pabd_record_set){.source = path};
  if (pabd_is_folder(path)) {
    pabd_path_format(folder, "%s/records", path);
    if (!pabd_is_folder(folder)) pabd_path_format(folder, "%s", path);
    PABD_TRY(pabd_list_folder(folder, ".json", &names, &count, error));
    if (count == 0) {
      pabd_free_names(names, count);
      return pabd_fail(error, PABD_ERR_INPUT, "%.300s: no records in it (files *.json, or a folder records/ with them)",
                       path);
    }
  }
  out->records = calloc((size_t)count + 1, sizeof *out->records);
  pabd_status status = out->records ? PABD_OK : no_memory(error);
  if (status == PABD_OK && !names) status = add_record(out, path, error);
  for (int32_t k = 0; names && k < count && status == PABD_OK; ++k) {
    pabd_path_format(file, "%s/%s.json", folder, names[k]);
    status = add_record(out, file, error);
  }
  if (names) pabd_free_names(names, count);
  return status == PABD_OK ? make_groups(out, error) : status;
}

void pabd_record_set_free(pabd_record_set *set) {
  for (int32_t k = 0; set->groups && k < set->group_count; ++k) free(set->groups[k].key);
  for (int32_t k = 0; k < set->record_count; ++k) cJSON_Delete(set->records[k]);
  free(set->groups);
  free(set->members);
  free(set->records);
  *set = (pabd_record_set){0};
}

static int compare_key_to_group(const void *key, const void *group) {
  return strcmp(key, ((const pabd_record_group *)group)->key);
}

const pabd_record_group *pabd_record_set_find(const pabd_record_set *set, const char *key) {
  if (set->group_count == 0) return NULL;
  return bsearch(key, set->groups, (size_t)set->group_count, sizeof *set->groups, compare_key_to_group);
}
