/* The catalog: all cases, engines and presets that a command line can name, found once and looked up by pattern. */
#ifndef PABD_CATALOG_H
#define PABD_CATALOG_H

#include "engine_load.h"
#include "places.h"
#include "presets.h"

typedef struct pabd_catalog_engine {
  pabd_engine_desc desc;
  pabd_presets presets;
} pabd_catalog_engine;

typedef struct pabd_catalog {
  pabd_places places;
  char **case_ids; /* sorted */
  int32_t case_count;
  char **engine_names; /* sorted: built, noted as unavailable, or known by a preset file */
  int32_t engine_name_count;
  pabd_catalog_engine **engines; /* probed so far; stable addresses */
  int32_t engine_count;
} pabd_catalog;

pabd_status pabd_catalog_open(const char *root, const char *engines, pabd_catalog *out, pabd_error *error);
void pabd_catalog_close(pabd_catalog *catalog);

/* Case ids that match the pattern, or the path itself when it names a file ("./my.json"), malloc'ed (pabd_free_names).
 * None: PABD_ERR_INPUT with the nearest name. */
pabd_status pabd_catalog_find_cases(const pabd_catalog *catalog, const char *pattern, char ***ids, int32_t *count,
                                    pabd_error *error);
/* Path of the case's file. */
void pabd_catalog_case_path(const pabd_catalog *catalog, const char *id, char path[PABD_PATH_SIZE]);

/* Engine names that match the pattern, or the path of a shared object, as above. */
pabd_status pabd_catalog_find_engines(const pabd_catalog *catalog, const char *pattern, char ***names, int32_t *count,
                                      pabd_error *error);
/* Probes the engine (once) and reads its presets. Broken presets: PABD_ERR_INPUT. */
pabd_status pabd_catalog_engine_open(pabd_catalog *catalog, const char *name, const pabd_catalog_engine **out,
                                     pabd_error *error);
/* The preset of that name; NULL name: the default one (*out may then be NULL). Unknown: the nearest name. */
pabd_status pabd_catalog_find_preset(const pabd_catalog_engine *engine, const char *name, const pabd_preset **out,
                                     pabd_error *error);

#endif
