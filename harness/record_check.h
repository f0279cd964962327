/* The validator of records: every record that any code writes, and every one that is read, must pass it. */
#ifndef PABD_RECORD_CHECK_H
#define PABD_RECORD_CHECK_H

#include <cjson/cJSON.h>

#include "pabd_status.h"

/* PABD_ERR_INPUT with "file: key: what is wrong (what is allowed)" for the first violation. `file` only for the text.
 */
pabd_status pabd_record_check(const char *file, const cJSON *record, pabd_error *error);
/* The same from text; also refuses what is not JSON, trailing bytes and texts that are cut short. */
pabd_status pabd_record_check_text(const char *file, const char *text, size_t size, pabd_error *error);
pabd_status pabd_record_check_file(const char *path, pabd_error *error);
/* Reads, parses and checks. The caller deletes *out. */
pabd_status pabd_record_read(const char *path, cJSON **out, pabd_error *error);

#endif
