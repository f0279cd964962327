/* Where cases, presets and engines are found. */
#include "places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program; "." when the system does not tell. */
static void program_folder(char out[PABD_PATH_SIZE]) {
  ssize_t length = readlink("/proc/self/exe", out, PABD_PATH_SIZE - 1);
  if (length < 0) length = 0;
  out[length] = 0;
  char *slash = strrchr(out, '/');
  if (slash)
    *slash = 0;
  else
    snprintf(out, PABD_PATH_SIZE, ".");
}

static int has_cases(const char *folder) {
  char path[PABD_PATH_SIZE];
  pabd_path_format(path, "%s/cases", folder);
  return pabd_is_folder(path);
}

pabd_status pabd_places_find(const char *root, const char *engines, pabd_places *out, pabd_error *error) {
  char folder[PABD_PATH_SIZE];
  program_folder(folder);
  if (!engines) engines = getenv("PABD_ENGINES");
  if (!root) root = getenv("PABD_ROOT");
  if ((engines && strlen(engines) >= PABD_PATH_SIZE) || (root && strlen(root) >= PABD_PATH_SIZE))
    return pabd_fail(error, PABD_ERR_INPUT, "path of the project or of the engines is too long");
  if (engines)
    snprintf(out->engines, sizeof out->engines, "%s", engines);
  else
    pabd_path_format(out->engines, "%.*s/engines", PABD_PATH_SIZE - 16, folder);

  if (root) {
    snprintf(out->root, sizeof out->root, "%s", root);
    if (!has_cases(root)) return pabd_fail(error, PABD_ERR_INPUT, "%s: has no folder cases/ (--root, PABD_ROOT)", root);
    return PABD_OK;
  }
  for (;;) {
    snprintf(out->root, sizeof out->root, "%s", folder);
    if (has_cases(folder)) return PABD_OK;
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder) break;
    *slash = 0;
  }
  snprintf(out->root, sizeof out->root, ".");
  if (has_cases(".")) return PABD_OK;
  return pabd_fail(error, PABD_ERR_INPUT,
                   "no folder cases/ above the program or here; name the project with --root DIR");
}
