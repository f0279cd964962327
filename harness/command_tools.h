/* What several commands need: being stopped, writing an answer to a file or to standard output, running `run`. */
#ifndef PABD_COMMAND_TOOLS_H
#define PABD_COMMAND_TOOLS_H

#include <cjson/cJSON.h>
#include <signal.h>

#include "cli.h"

/* 1 once SIGINT or SIGTERM came while they were watched. */
extern volatile sig_atomic_t pabd_stop_wanted;
/* From here on the two signals set the flag (which starts at 0) and do nothing else. */
void pabd_stop_watch(void);
/* Gives the signals back as they were. The flag stays as it is. */
void pabd_stop_unwatch(void);

/* `target`: a file, written whole or not at all, or "-" for standard output. */
pabd_status pabd_write_text(const char *target, const char *text, pabd_error *error);
/* The same for a JSON tree, which stays the caller's. */
pabd_status pabd_write_json(const char *target, const cJSON *tree, pabd_error *error);

/* The command `run` from within another command `from`, into the folder `out`: its places are passed on, its command
 * line goes into the records. `options`: pairs of name and value, left out where the value is NULL. Returns the exit
 * code; trouble has been printed. */
int pabd_run_from(const pabd_arguments *from, const char *out, const char *const (*options)[2], int32_t option_count,
                  const char *const *cases, int32_t case_count, const char *const *engines, int32_t engine_count);

#endif
