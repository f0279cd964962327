/* Where and how a run was made: what a reader needs to judge, and to repeat, a number. */
#ifndef PABD_ENV_H
#define PABD_ENV_H

#include <cjson/cJSON.h>

/* The record's "env" block (caller deletes it; NULL when memory is out). What is fixed for the process is gathered
 * once; load average and date are taken at each call. `root`: project folder, for the commit; `command`: the command
 * line. */
cJSON *pabd_env_json(const char *root, const char *command);

#endif
