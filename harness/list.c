/* The command `list`: cases, engines, presets and plans at a glance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "commands.h"

static int by_family(const void *a, const void *b) {
  const pabd_case *x = *(pabd_case *const *)a, *y = *(pabd_case *const *)b;
  int order = strcmp(x->family, y->family);
  return order ? order : strcmp(x->id, y->id);
}

/* A case that cannot be read is shown with its trouble, and makes the exit code 2. */
static int list_cases(const pabd_catalog *catalog) {
  int code = 0;
  int32_t count = 0;
  pabd_case **cases = calloc((size_t)catalog->case_count + 1, sizeof *cases);
  if (!cases) return 2;
  printf("Cases (pabd-bench describe CASE):\n");
  for (int32_t k = 0; k < catalog->case_count; ++k) {
    char path[PABD_PATH_SIZE];
    pabd_error error = {""};
    pabd_case *c = calloc(1, sizeof *c);
    if (!c) break;
    pabd_catalog_case_path(catalog, catalog->case_ids[k], path);
    if (pabd_case_load(path, NULL, 0, c, &error) == PABD_OK) {
      cases[count++] = c;
      continue;
    }
    free(c);
    code = pabd_complain(&error);
  }
  qsort(cases, (size_t)count, sizeof *cases, by_family);
  for (int32_t k = 0; k < count; ++k) {
    const pabd_case *c = cases[k];
    if (k == 0 || strcmp(cases[k - 1]->family, c->family) != 0) printf("  %s\n", c->family);
    printf("    %-18s %-60s %s\n", c->id, c->title, c->tags);
  }
  for (int32_t k = 0; k < count; ++k) {
    pabd_case_free(cases[k]);
    free(cases[k]);
  }
  free(cases);
  if (catalog->case_count == 0) printf("    none in %s/cases\n", catalog->places.root);
  return code;
}

static int list_engines(pabd_catalog *catalog) {
  int code = 0;
  printf("Engines (pabd-bench describe ENGINE):\n");
  for (int32_t k = 0; k < catalog->engine_name_count; ++k) {
    const pabd_catalog_engine *engine;
    pabd_error error = {""};
    if (pabd_catalog_engine_open(catalog, catalog->engine_names[k], &engine, &error) != PABD_OK) {
      printf("    %-18s its presets cannot be read\n", catalog->engine_names[k]);
      code = pabd_complain(&error);
      continue;
    }
    const pabd_engine_desc *desc = &engine->desc;
    if (!desc->is_available) {
      printf("    %-18s not available: %s\n", desc->name, desc->why);
      continue;
    }
    printf("    %-18s %s, %s, %s", desc->name, desc->version, desc->precision, desc->device);
    const pabd_preset *initial = pabd_presets_default(&engine->presets);
    for (int32_t j = 0; j < engine->presets.count; ++j) {
      const pabd_preset *preset = &engine->presets.presets[j];
      printf("%s%s%s", j ? ", " : "; presets: ", preset->name, preset == initial ? "*" : "");
    }
    printf("\n");
  }
  if (catalog->engine_name_count == 0)
    printf("    none in %s\n", catalog->places.engines);
  else
    printf("    (* the preset that is used when none is named)\n");
  return code;
}

static int list_plans(const pabd_catalog *catalog) {
  char folder[PABD_PATH_SIZE], **names;
  int32_t count;
  pabd_error error = {""};
  pabd_path_format(folder, "%s/harness/plans", catalog->places.root);
  if (pabd_list_folder(folder, ".json", &names, &count, &error) != PABD_OK) return pabd_complain(&error);
  printf("Plans (pabd-bench run --plan NAME):\n");
  for (int32_t k = 0; k < count; ++k) printf("    %s\n", names[k]);
  pabd_free_names(names, count);
  return 0;
}

static int list(const pabd_arguments *a) {
  pabd_error error = {""};
  pabd_catalog catalog;
  const char *what = a->word_count ? a->words[0] : "";
  int all = !what[0], cases = strcmp(what, "cases") == 0, engines = strcmp(what, "engines") == 0,
      plans = strcmp(what, "plans") == 0;
  if (a->word_count > 1 || !(all || cases || engines || plans)) {
    pabd_fail(&error, PABD_ERR_INPUT, "list: '%.60s'? Allowed: cases, engines, plans, or nothing for all", what);
    return pabd_complain(&error);
  }
  if (pabd_catalog_open(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &catalog, &error) != PABD_OK)
    return pabd_complain(&error);
  int code = 0;
  if (all || cases) code |= list_cases(&catalog);
  if (all || engines) code |= list_engines(&catalog);
  if (all || plans) code |= list_plans(&catalog);
  pabd_catalog_close(&catalog);
  return code;
}

static const pabd_option list_options[] = {PABD_PLACE_OPTIONS, {NULL, NULL, NULL}};
const pabd_command pabd_command_list = {
    "list",
    "[cases|engines|plans]",
    "show cases, engines with presets, and plans",
    "Shows cases by family with their tags, engines with version, precision, device and presets (or why they are not\n"
    "available), and plans.\n\n"
    "Examples:\n"
    "  pabd-bench list\n"
    "  pabd-bench list engines",
    list_options,
    list};
