/* The catalog: all cases, engines and presets that a command line can name, found once and looked up by pattern. */
#include "catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

/* Seconds that loading an engine and asking its name may take; a GPU's first use takes a few. */
#define PROBE_LIMIT 30.0

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a copy of `name` unless it is there. */
static pabd_status add_name(char ***names, int32_t *count, const char *name, pabd_error *error) {
  for (int32_t k = 0; k < *count; ++k) {
    if (strcmp((*names)[k], name) == 0) return PABD_OK;
  }
  char **moved = realloc(*names, ((size_t)*count + 1) * sizeof *moved);
  if (moved) *names = moved;
  char *copy = moved ? strdup(name) : NULL;
  if (!copy) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  (*names)[(*count)++] = copy;
  return PABD_OK;
}

/* An engine that has a preset file but was not built is known too: it is "not available", not a typing error. */
static pabd_status add_preset_names(pabd_catalog *catalog, pabd_error *error) {
  char folder[PABD_PATH_SIZE], **names;
  int32_t count;
  pabd_path_format(folder, "%s/baselines/presets", catalog->places.root);
  PABD_TRY(pabd_list_folder(folder, ".json", &names, &count, error));
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < count && status == PABD_OK; ++k)
    status = add_name(&catalog->engine_names, &catalog->engine_name_count, names[k], error);
  pabd_free_names(names, count);
  static const char *const ours[] = {"pabd", "pabd-double", "pabd-cuda"};
  pabd_path_format(folder, "%s/solver", catalog->places.root);
  for (int k = 0; k < 3 && status == PABD_OK && pabd_is_folder(folder); ++k)
    status = add_name(&catalog->engine_names, &catalog->engine_name_count, ours[k], error);
  if (status == PABD_OK && catalog->engine_name_count > 1)
    qsort(catalog->engine_names, (size_t)catalog->engine_name_count, sizeof *catalog->engine_names, compare_names);
  return status;
}

/* The cases of cases/validation stand beside the others, by name alone. */
static pabd_status add_validation_cases(pabd_catalog *catalog, pabd_error *error) {
  char folder[PABD_PATH_SIZE], **names;
  int32_t count;
  pabd_path_format(folder, "%s/cases/validation", catalog->places.root);
  PABD_TRY(pabd_list_folder(folder, ".json", &names, &count, error));
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < count && status == PABD_OK; ++k)
    status = add_name(&catalog->case_ids, &catalog->case_count, names[k], error);
  pabd_free_names(names, count);
  if (status == PABD_OK && catalog->case_count > 1)
    qsort(catalog->case_ids, (size_t)catalog->case_count, sizeof *catalog->case_ids, compare_names);
  return status;
}

pabd_status pabd_catalog_open(const char *root, const char *engines, pabd_catalog *out, pabd_error *error) {
  char folder[PABD_PATH_SIZE];
  memset(out, 0, sizeof *out);
  PABD_TRY(pabd_places_find(root, engines, &out->places, error));
  pabd_path_format(folder, "%s/cases", out->places.root);
  pabd_status status = pabd_list_folder(folder, ".json", &out->case_ids, &out->case_count, error);
  if (status == PABD_OK) status = add_validation_cases(out, error);
  if (status == PABD_OK)
    status = pabd_engine_stems(out->places.engines, &out->engine_names, &out->engine_name_count, error);
  if (status == PABD_OK) status = add_preset_names(out, error);
  if (status != PABD_OK) pabd_catalog_close(out);
  return status;
}

void pabd_catalog_close(pabd_catalog *catalog) {
  if (!catalog) return;
  pabd_free_names(catalog->case_ids, catalog->case_count);
  pabd_free_names(catalog->engine_names, catalog->engine_name_count);
  for (int32_t k = 0; k < catalog->engine_count; ++k) {
    pabd_presets_free(&catalog->engines[k]->presets);
    free(catalog->engines[k]);
  }
  free(catalog->engines);
  memset(catalog, 0, sizeof *catalog);
}

/* All known names that match, or an error that helps. `kind`: "case" or "engine". */
static pabd_status find_names(char *const *known, int32_t known_count, const char *kind, const char *pattern,
                              char ***out, int32_t *count, pabd_error *error) {
  *out = NULL;
  *count = 0;
  for (int32_t k = 0; k < known_count; ++k) {
    if (!pabd_glob_match(pattern, known[k])) continue;
    pabd_status status = add_name(out, count, known[k], error);
    if (status != PABD_OK) {
      pabd_free_names(*out, *count);
      *out = NULL;
      *count = 0;
      return status;
    }
  }
  if (*count > 0) return PABD_OK;
  if (known_count == 0)
    return pabd_fail(error, PABD_ERR_INPUT, "no %s '%.100s': there are no %ss at all here", kind, pattern, kind);
  const char *near = pabd_is_glob(pattern) ? NULL : pabd_nearest(pattern, (const char *const *)known, known_count);
  if (near) return pabd_fail(error, PABD_ERR_INPUT, "no %s '%.100s'; nearest: %s", kind, pattern, near);
  return pabd_fail(error, PABD_ERR_INPUT, "no %s %s '%.100s' (pabd-bench list shows all)", kind,
                   pabd_is_glob(pattern) ? "matches" : "is called", pattern);
}

static pabd_status single_name(const char *name, char ***out, int32_t *count, pabd_error *error) {
  *out = NULL;
  *count = 0;
  return add_name(out, count, name, error);
}

pabd_status pabd_catalog_find_cases(const pabd_catalog *catalog, const char *pattern, char ***ids, int32_t *count,
                                    pabd_error *error) {
  if (strchr(pattern, '/') || pabd_is_file(pattern)) return single_name(pattern, ids, count, error);
  return find_names(catalog->case_ids, catalog->case_count, "case", pattern, ids, count, error);
}

void pabd_catalog_case_path(const pabd_catalog *catalog, const char *id, char path[PABD_PATH_SIZE]) {
  if (strchr(id, '/') || pabd_is_file(id))
    pabd_path_format(path, "%s", id);
  else
    pabd_path_format(path, "%s/cases/%s.json", catalog->places.root, id);
  if (pabd_is_file(path)) return;
  char other[PABD_PATH_SIZE];
  pabd_path_format(other, "%s/cases/validation/%s.json", catalog->places.root, id);
  if (pabd_is_file(other)) pabd_path_format(path, "%s", other);
}

static int is_library_path(const char *name) {
  size_t length = strlen(name);
  return strchr(name, '/') || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

pabd_status pabd_catalog_find_engines(const pabd_catalog *catalog, const char *pattern, char ***names, int32_t *count,
                                      pabd_error *error) {
  if (is_library_path(pattern)) return single_name(pattern, names, count, error);
  return find_names(catalog->engine_names, catalog->engine_name_count, "engine", pattern, names, count, error);
}

pabd_status pabd_catalog_engine_open(pabd_catalog *catalog, const char *name, const pabd_catalog_engine **out,
                                     pabd_error *error) {
  char file[PABD_PATH_SIZE];
  if (is_library_path(name))
    pabd_path_format(file, "%s", name);
  else
    pabd_path_format(file, "%s/%s.so", catalog->places.engines, name);
  for (int32_t k = 0; k < catalog->engine_count; ++k) {
    if (strcmp(catalog->engines[k]->desc.file, file) != 0) continue;
    *out = catalog->engines[k];
    return PABD_OK;
  }
  pabd_catalog_engine **moved =
      realloc(catalog->engines, ((size_t)catalog->engine_count + 1) * sizeof *catalog->engines);
  if (moved) catalog->engines = moved;
  pabd_catalog_engine *engine = moved ? calloc(1, sizeof *engine) : NULL;
  if (!engine) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  if (is_library_path(name) || pabd_is_file(file))
    pabd_engine_probe(file, PROBE_LIMIT, &engine->desc);
  else
    pabd_engine_missing(catalog->places.engines, name, &engine->desc);
  pabd_status status = pabd_presets_load(&catalog->places, &engine->desc, &engine->presets, error);
  if (status != PABD_OK) {
    free(engine);
    return status;
  }
  catalog->engines[catalog->engine_count++] = engine;
  *out = engine;
  return PABD_OK;
}

pabd_status pabd_catalog_find_preset(const pabd_catalog_engine *engine, const char *name, const pabd_preset **out,
                                     pabd_error *error) {
  const pabd_presets *presets = &engine->presets;
  *out = NULL;
  if (!name) {
    const pabd_preset *preset = *out = pabd_presets_default(presets);
    if (preset && preset->fault[0]) return pabd_fail(error, PABD_ERR_INPUT, "%.200s: %s", presets->file, preset->fault);
    return PABD_OK;
  }
  const char *known[256];
  int32_t count = presets->count < 256 ? presets->count : 256;
  for (int32_t k = 0; k < count; ++k) {
    known[k] = presets->presets[k].name;
    if (strcmp(known[k], name) == 0) {
      *out = &presets->presets[k];
      if ((*out)->fault[0]) return pabd_fail(error, PABD_ERR_INPUT, "%.200s: %s", presets->file, (*out)->fault);
      return PABD_OK;
    }
  }
  if (count == 0)
    return pabd_fail(error, PABD_ERR_INPUT, "engine %s has no presets, so none called '%s'", engine->desc.name, name);
  const char *near = pabd_nearest(name, known, count);
  return pabd_fail(error, PABD_ERR_INPUT, "engine %s has no preset '%s'; nearest: %s (pabd-bench describe %s)",
                   engine->desc.name, name, near ? near : known[0], engine->desc.name);
}
