/* Engines: finding shared objects, asking them who they are, and opening them for a run.
 *
 * The harness's own process never loads an engine. A short-lived child does (with a time limit), and hands back a plain
 * description; so an engine that crashes or hangs while it is loaded is "not available: why", like one that is missing.
 */
#ifndef PABD_ENGINE_LOAD_H
#define PABD_ENGINE_LOAD_H

#include "files.h"
#include "pabd_case.h"
#include "pabd_engine.h"

#define PABD_SETTING_CAPACITY 160
#define PABD_VALUE_SIZE 96

typedef struct pabd_setting_text {
  char key[PABD_KEY_SIZE];
  char type[16];
  char initial[PABD_VALUE_SIZE];
  char range[256];
  char unit[24];
  char meaning[400];
  char source[240];
} pabd_setting_text;

/* What is known of an engine. Plain data without pointers, so that the probing child can leave it in shared memory. */
typedef struct pabd_engine_desc {
  char file[PABD_PATH_SIZE]; /* shared object */
  char name[PABD_KEY_SIZE];  /* as the engine says; the file's name where it could not say */
  char stem[PABD_KEY_SIZE];  /* file name without .so */
  int32_t is_available;
  char why[480]; /* why not available; empty when it is */
  char version[128], precision[16], device[128], license[128], build[480];
  uint64_t capabilities;
  uint64_t library_hash; /* FNV-1a of the file; 0 when it cannot be read */
  int32_t setting_count;
  pabd_setting_text settings[PABD_SETTING_CAPACITY];
} pabd_engine_desc;

/* Fills `out` from the shared object `file`. Never fails: trouble ends up in `why`. */
void pabd_engine_probe(const char *file, double time_limit, pabd_engine_desc *out);
/* Description of an engine that was not built: `why` from <folder>/<stem>.unavailable. */
void pabd_engine_missing(const char *folder, const char *stem, pabd_engine_desc *out);
/* Stems of all engines in the folder, built or with a note why not; sorted, unique. */
pabd_status pabd_engine_stems(const char *folder, char ***stems, int32_t *count, pabd_error *error);

/* Loads the table into this process (a run's child). Checks abi, size and the functions that every engine must have. */
pabd_status pabd_engine_open(const char *file, const pabd_engine **table, pabd_error *error);

/* Index of a setting, or -1. */
int32_t pabd_engine_find_setting(const pabd_engine_desc *engine, const char *key);
/* Does the value fit the setting's type and range? Only what can be told from the description is checked. */
pabd_status pabd_engine_check_setting(const pabd_engine_desc *engine, const char *key, const char *value,
                                      pabd_error *error);

/* Name of capability bit `bit` ("sphere", "hinge", ...), NULL past the last one. */
const char *pabd_capability_name(int32_t bit);
/* Capabilities that a scene cannot do without. */
uint64_t pabd_scene_needs(const pabd_scene *scene);
/* "hinge, limits": names of the bits in `mask`. */
void pabd_capability_list(uint64_t mask, char *out, size_t size);

#endif
