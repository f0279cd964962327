/* Where cases, presets and engines are found. */
#ifndef PABD_PLACES_H
#define PABD_PLACES_H

#include "files.h"

typedef struct pabd_places {
  char root[PABD_PATH_SIZE];    /* project folder: holds cases/, baselines/presets/, solver/presets/, harness/plans/ */
  char engines[PABD_PATH_SIZE]; /* folder of engine shared objects */
} pabd_places;

/* `root` and `engines`: from the command line, or NULL. Then the environment (PABD_ROOT, PABD_ENGINES), then what lies
 * around the program: engines beside it in engines/, the root in the nearest folder above it that has cases/. */
pabd_status pabd_places_find(const char *root, const char *engines, pabd_places *out, pabd_error *error);

#endif
