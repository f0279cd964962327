/* Typed reading of JSON values with one good error line: "file: key path: what is wrong (what is allowed)".
 *
 * A number may be written as a number or as an expression in a string ("$n * 0.5", cases/expression.h). The reader
 * keeps the key path of where it is: read_enter/read_enter_index go down, read_leave goes back up; on failure nobody
 * needs to. */
#ifndef PABD_CASES_READ_H
#define PABD_CASES_READ_H

#include <cjson/cJSON.h>

#include "pabd_case.h"

/* Names in sorted order, for look-ups in scenes of any size. */
typedef struct name_entry {
  const char *name; /* in the scene */
  int32_t index;
} name_entry;

typedef struct name_index {
  int32_t count;
  name_entry *entries; /* [count], sorted by name; owned */
} name_index;

typedef struct reader {
  const char *file;
  pabd_error *error;
  const pabd_case_param *params; /* in force, for expressions */
  int32_t param_count;
  char path[160]; /* "bodies[3].mass"; deeper levels are cut */
  int path_length;
  name_index bodies, joints; /* built once all bodies (joints) are there; freed by read_free */
} reader;

/* Allowed numbers: low .. high, without low where `above`. `unit` is for the message. */
typedef struct range {
  double low, high;
  int above;
  const char *unit;
} range;

/* Ranges that several readers use. Positions beyond 1e6 m have less than a micrometer in float and no use. */
extern const range range_position, range_velocity, range_length, range_mass, range_any, range_not_negative;

pabd_status read_fail(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
int read_enter(reader *r, const char *key); /* returns the mark for read_leave */
int read_enter_index(reader *r, int32_t index);
void read_leave(reader *r, int mark);

/* Is it an object, and is each of its keys in the list (ended by NULL), once? "note" is always allowed. */
pabd_status read_keys(reader *r, const cJSON *object, const char *const *keys);
int read_has(const cJSON *object, const char *key);
/* False when the object has "when" and that is false. */
pabd_status read_when(reader *r, const cJSON *object, int *wanted);

/* Each required one fails when the key is missing; each `_or` leaves *out alone then. */
pabd_status read_real(reader *r, const cJSON *object, const char *key, range allowed, double *out);
pabd_status read_real_or(reader *r, const cJSON *object, const char *key, range allowed, double *out);
pabd_status read_int(reader *r, const cJSON *object, const char *key, int32_t low, int32_t high, int32_t *out);
pabd_status read_int_or(reader *r, const cJSON *object, const char *key, int32_t low, int32_t high, int32_t *out);
pabd_status read_bool_or(reader *r, const cJSON *object, const char *key, int *out);
pabd_status read_vec3(reader *r, const cJSON *object, const char *key, range allowed, pabd_dvec3 *out);
pabd_status read_vec3_or(reader *r, const cJSON *object, const char *key, range allowed, pabd_dvec3 *out);
/* `count` numbers. */
pabd_status read_reals(reader *r, const cJSON *object, const char *key, range allowed, int count, double *out);
/* Text of 1 .. size - 1 bytes. A text that starts with "$" is an expression that must give a text; "{expression}"
 * inside a text is replaced by its value: "link{$n - 1}". */
pabd_status read_text(reader *r, const cJSON *object, const char *key, char *out, size_t size);
pabd_status read_text_or(reader *r, const cJSON *object, const char *key, char *out, size_t size);
/* Index of the text in `names` (ended by NULL). */
pabd_status read_name(reader *r, const cJSON *object, const char *key, const char *const *names, int *out);
pabd_status read_name_or(reader *r, const cJSON *object, const char *key, const char *const *names, int *out);
/* The array under `key`, or NULL when it is missing. */
pabd_status read_array_or(reader *r, const cJSON *object, const char *key, const cJSON **out);
pabd_status read_object_or(reader *r, const cJSON *object, const char *key, const cJSON **out);
/* A number straight from an item (an array's element). */
pabd_status read_item_real(reader *r, const cJSON *item, range allowed, double *out);

/* "position" and one of "rotation" (quaternion w, x, y, z), "rotation_vector" (rad) or "rotation_vector_deg". */
pabd_status read_pose_or(reader *r, const cJSON *object, pabd_dpose *pose);
/* A body by name or index, or "world" where that is allowed (PABD_WORLD). */
pabd_status read_body(reader *r, const cJSON *object, const char *key, const pabd_scene *scene, int world_allowed,
                      int32_t *out);
pabd_status read_item_body(reader *r, const cJSON *item, const pabd_scene *scene, int world_allowed, int32_t *out);
/* Indexes the names of all bodies (else joints); a name used twice is an error. */
pabd_status read_index_names(reader *r, const pabd_scene *scene, int bodies);
void read_free(reader *r);
pabd_status read_joint(reader *r, const cJSON *object, const char *key, const pabd_scene *scene, int32_t *out);

#endif
