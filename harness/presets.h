/* Presets: named groups of engine settings, in JSON files that anybody can edit.
 *
 * Two layouts. One file an engine, baselines/presets/<engine>.json (an engine named by path may bring
 * <file>.presets.json):
 *   {"engine": "bullet", "presets": {"default": {"source": "...", "settings": {"iterations": 10}}, ...}}
 * One file a preset, solver/presets/<preset>.json, for our own solver (pabd and all pabd-...):
 *   {"engine": "pabd", "preset": "jacobi", "source": "...", "default": true, "settings": {"substeps": 4}}
 * Values may be numbers, booleans or texts; they reach the engine as text. The engine's default preset is "default",
 * else the one marked so, else none: the engine's own defaults. */
#ifndef PABD_PRESETS_H
#define PABD_PRESETS_H

#include "engine_load.h"
#include "places.h"

typedef struct pabd_key_value {
  char key[PABD_KEY_SIZE];
  char value[PABD_VALUE_SIZE];
} pabd_key_value;

typedef struct pabd_preset {
  char name[PABD_KEY_SIZE];
  char source[400];
  char fault[400]; /* why the engine refuses it (a key or value it does not know); empty when all is well */
  int32_t is_default;
  int32_t setting_count;
  pabd_key_value settings[PABD_SETTING_CAPACITY];
} pabd_preset;

typedef struct pabd_presets {
  char file[PABD_PATH_SIZE]; /* file or folder they came from; empty when there is none */
  int32_t count;
  pabd_preset *presets;
} pabd_presets;

/* Reads the presets of an engine and checks each key against the engine's settings (when it is available); what does
 * not fit makes that one preset faulty, not its neighbors. A file that cannot be read is an error. */
pabd_status pabd_presets_load(const pabd_places *places, const pabd_engine_desc *engine, pabd_presets *out,
                              pabd_error *error);
void pabd_presets_free(pabd_presets *presets);
/* NULL when the engine has none. */
const pabd_preset *pabd_presets_default(const pabd_presets *presets);

#endif
