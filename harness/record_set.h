/* A set of records read from a results folder, a folder of records or single files, with repeats put together.
 *
 * A *group* is everything that shares case, parameters, engine, preset, settings beside the preset, threads and traced
 * frames: its records are repeats of one configuration. Its key is the same text in every set, so that groups of two
 * sets can be matched. */
#ifndef PABD_RECORD_SET_H
#define PABD_RECORD_SET_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "pabd_status.h"

typedef struct pabd_record_group {
  char *key;            /* identity, owned */
  const char *label;    /* case with what differs from its defaults, of the first record */
  const char *engine;   /* "bullet:advised" */
  int32_t threads;      /* 0: the run had no engine */
  int32_t record_count; /* repeats, in order of repeat */
  const cJSON **records;
} pabd_record_group;

typedef struct pabd_record_set {
  const char *source; /* path as given */
  int32_t record_count, group_count;
  cJSON **records;
  const cJSON **members;     /* the records in the order of the groups, which point into it */
  pabd_record_group *groups; /* sorted by key */
} pabd_record_set;

/* Reads `path`: a results folder (its records/), a folder of records, or one record. Every record must pass the schema;
 * the first that does not is PABD_ERR_INPUT, and so is a path without records. Free in any case. */
pabd_status pabd_record_set_read(const char *path, pabd_record_set *out, pabd_error *error);
void pabd_record_set_free(pabd_record_set *set);
/* NULL when there is none. */
const pabd_record_group *pabd_record_set_find(const pabd_record_set *set, const char *key);

/* Members of a checked record, never NULL: "" when absent. `block` may be NULL. */
const char *pabd_record_text(const cJSON *record, const char *block, const char *key);
/* NAN when absent or null; looks through {"value": ...}. */
double pabd_record_number(const cJSON *record, const char *block, const char *key);

#endif
