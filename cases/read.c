/* Readers of single JSON values; see read.h. Invariant: *out is written only on success. */
#include "read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"
#include "nearest.h"

#define PI 3.14159265358979323846

const range range_position = {-1e6, 1e6, 0, "m"};
const range range_velocity = {-1e5, 1e5, 0, "m/s or rad/s"};
const range range_length = {0.0, 1e6, 1, "m"};
const range range_mass = {0.0, 1e15, 1, "kg"};
const range range_any = {-1e15, 1e15, 0, ""};
const range range_not_negative = {0.0, 1e15, 0, ""};

pabd_status read_fail(reader *r, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return pabd_fail(r->error, PABD_ERR_INPUT, "%.120s: %s%s%s", r->file, r->path, r->path_length > 0 ? ": " : "", text);
}

int read_enter(reader *r, const char *key) {
  int mark = r->path_length;
  int written = snprintf(r->path + mark, sizeof r->path - (size_t)mark, "%s%.64s", mark > 0 ? "." : "", key);
  r->path_length = mark + written < (int)sizeof r->path ? mark + written : (int)sizeof r->path - 1;
  return mark;
}

int read_enter_index(reader *r, int32_t index) {
  int mark = r->path_length;
  int written = snprintf(r->path + mark, sizeof r->path - (size_t)mark, "[%d]", (int)index);
  r->path_length = mark + written < (int)sizeof r->path ? mark + written : (int)sizeof r->path - 1;
  return mark;
}

void read_leave(reader *r, int mark) {
  r->path_length = mark;
  r->path[mark] = '\0';
}

static const char *type_name(const cJSON *item) {
  if (cJSON_IsNull(item)) return "null";
  if (cJSON_IsBool(item)) return "true or false";
  if (cJSON_IsNumber(item)) return "a number";
  if (cJSON_IsString(item)) return "a text";
  if (cJSON_IsArray(item)) return "a list";
  return "an object";
}

/* "a, b, c": the allowed words, cut to fit. */
static const char *word_list(const char *const *words, char buffer[200]) {
  buffer[0] = '\0';
  size_t used = 0;
  for (int i = 0; words[i] != NULL; ++i) {
    int written = snprintf(buffer + used, 200 - used, "%s%s", i > 0 ? ", " : "", words[i]);
    if (written < 0 || used + (size_t)written >= 200) break;
    used += (size_t)written;
  }
  return buffer;
}

static pabd_status fail_unknown(reader *r, const char *what, const char *word, const char *const *words) {
  const char *near = NULL;
  for (int i = 0; words[i] != NULL; ++i) near = nearest(word, words[i], near);
  char list[200];
  word_list(words, list);
  if (near != NULL)
    return read_fail(r, "unknown %s \"%.60s\" (did you mean \"%s\"? allowed: %s)", what, word, near, list);
  return read_fail(r, "unknown %s \"%.60s\" (allowed: %s)", what, word, list);
}

pabd_status read_keys(reader *r, const cJSON *object, const char *const *keys) {
  if (!cJSON_IsObject(object)) return read_fail(r, "is %s, must be an object {...}", type_name(object));
  uint64_t seen = 0;  // no list has more than 64 keys
  for (const cJSON *item = object->child; item != NULL; item = item->next) {
    if (strcmp(item->string, "note") == 0) continue;
    int k = 0;
    while (keys[k] != NULL && strcmp(keys[k], item->string) != 0) ++k;
    if (keys[k] == NULL) return fail_unknown(r, "key", item->string, keys);
    if (seen >> k & 1) return read_fail(r, "the key \"%s\" stands twice (allowed: once)", item->string);
    seen |= (uint64_t)1 << k;
  }
  return PABD_OK;
}

static const cJSON *get(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}

int read_has(const cJSON *object, const char *key) {
  return get(object, key) != NULL;
}

/* The item under a required key, with the path entered. */
static pabd_status enter_required(reader *r, const cJSON *object, const char *key, int *mark, const cJSON **item) {
  *item = get(object, key);
  if (*item == NULL) return read_fail(r, "the key \"%s\" is missing (it is required)", key);
  *mark = read_enter(r, key);
  return PABD_OK;
}

static pabd_status evaluate(reader *r, const cJSON *item, expression_value *out) {
  pabd_error cause = {{0}};
  pabd_status status = expression_evaluate(item->valuestring, r->params, r->param_count, out, &cause);
  return status == PABD_OK ? status : read_fail(r, "%s", cause.text);
}

static pabd_status item_number(reader *r, const cJSON *item, double *out) {
  if (cJSON_IsNumber(item)) {
    if (!isfinite(item->valuedouble)) return read_fail(r, "%g is not a finite number", item->valuedouble);
    *out = item->valuedouble;
    return PABD_OK;
  }
  if (!cJSON_IsString(item)) return read_fail(r, "is %s, must be a number or an expression in a text", type_name(item));
  expression_value value;
  PABD_TRY(evaluate(r, item, &value));
  if (value.is_text) return read_fail(r, "is the text '%s', must be a number", value.text);
  *out = value.number;
  return PABD_OK;
}

pabd_status read_item_real(reader *r, const cJSON *item, range allowed, double *out) {
  double x = 0.0;
  PABD_TRY(item_number(r, item, &x));
  if (x < allowed.low || x > allowed.high || (allowed.above && x == allowed.low)) {
    const char *blank = allowed.unit[0] != '\0' ? " " : "";
    return read_fail(r, "%.10g is out of range (allowed: %s%.10g .. %.10g%s%s)", x, allowed.above ? "above " : "",
                     allowed.low, allowed.high, blank, allowed.unit);
  }
  *out = x;
  return PABD_OK;
}

pabd_status read_real(reader *r, const cJSON *object, const char *key, range allowed, double *out) {
  int mark = r->path_length;
  const cJSON *item;
  PABD_TRY(enter_required(r, object, key, &mark, &item));
  PABD_TRY(read_item_real(r, item, allowed, out));
  read_leave(r, mark);
  return PABD_OK;
}

pabd_status read_real_or(reader *r, const cJSON *object, const char *key, range allowed, double *out) {
  return read_has(object, key) ? read_real(r, object, key, allowed, out) : PABD_OK;
}

static pabd_status item_int(reader *r, const cJSON *item, int32_t low, int32_t high, int32_t *out) {
  double x = 0.0;
  PABD_TRY(item_number(r, item, &x));
  if (x != floor(x)) return read_fail(r, "%.10g is not a whole number (allowed: %d .. %d)", x, (int)low, (int)high);
  if (x < low || x > high) return read_fail(r, "%.10g is out of range (allowed: %d .. %d)", x, (int)low, (int)high);
  *out = (int32_t)x;
  return PABD_OK;
}

pabd_status read_int(reader *r, const cJSON *object, const char *key, int32_t low, int32_t high, int32_t *out) {
  int mark = r->path_length;
  const cJSON *item;
  PABD_TRY(enter_required(r, object, key, &mark, &item));
  PABD_TRY(item_int(r, item, low, high, out));
  read_leave(r, mark);
  return PABD_OK;
}

pabd_status read_int_or(reader *r, const cJSON *object, const char *key, int32_t low, int32_t high, int32_t *out) {
  return read_has(object, key) ? read_int(r, object, key, low, high, out) : PABD_OK;
}

pabd_status read_bool_or(reader *r, const cJSON *object, const char *key, int *out) {
  const cJSON *item = get(object, key);
  if (item == NULL) return PABD_OK;
  int mark = read_enter(r, key);
  if (cJSON_IsBool(item)) {
    *out = cJSON_IsTrue(item);
  } else if (cJSON_IsString(item)) {
    double x = 0.0;
    PABD_TRY(item_number(r, item, &x));
    *out = x != 0.0;
  } else {
    return read_fail(r, "is %s, must be true, false or an expression in a text", type_name(item));
  }
  read_leave(r, mark);
  return PABD_OK;
}

pabd_status read_when(reader *r, const cJSON *object, int *wanted) {
  *wanted = 1;
  if (!cJSON_IsObject(object)) return PABD_OK;  // read_keys will say so
  return read_bool_or(r, object, "when", wanted);
}

pabd_status read_reals(reader *r, const cJSON *object, const char *key, range allowed, int count, double *out) {
  int mark = r->path_length;
  const cJSON *item;
  double values[8] = {0};
  PABD_TRY(enter_required(r, object, key, &mark, &item));
  if (!cJSON_IsArray(item)) return read_fail(r, "is %s, must be a list of %d numbers", type_name(item), count);
  int size = cJSON_GetArraySize(item);
  if (size != count) return read_fail(r, "has %d entries, must have %d", size, count);
  int i = 0;
  for (const cJSON *child = item->child; child != NULL; child = child->next, ++i) {
    int inner = read_enter_index(r, i);
    PABD_TRY(read_item_real(r, child, allowed, &values[i]));
    read_leave(r, inner);
  }
  memcpy(out, values, (size_t)count * sizeof *out);
  read_leave(r, mark);
  return PABD_OK;
}

pabd_status read_vec3(reader *r, const cJSON *object, const char *key, range allowed, pabd_dvec3 *out) {
  double v[3] = {0};
  PABD_TRY(read_reals(r, object, key, allowed, 3, v));
  *out = (pabd_dvec3){v[0], v[1], v[2]};
  return PABD_OK;
}

pabd_status read_vec3_or(reader *r, const cJSON *object, const char *key, range allowed, pabd_dvec3 *out) {
  return read_has(object, key) ? read_vec3(r, object, key, allowed, out) : PABD_OK;
}

/* Texts: "$name" is an expression that gives a text; "link{$n - 1}" puts the value of each {expression} in. */
static pabd_status item_text(reader *r, const cJSON *item, char *out, size_t size) {
  expression_value value;
  pabd_error cause = {{0}};
  char inner[256], piece[PABD_KEY_SIZE];
  if (!cJSON_IsString(item)) return read_fail(r, "is %s, must be a text", type_name(item));
  const char *text = item->valuestring;
  if (text[0] == '$') {
    PABD_TRY(evaluate(r, item, &value));
    if (!value.is_text) return read_fail(r, "is the number %g, must be a text", value.number);
    text = value.text;
  }
  size_t used = 0;
  for (const char *c = text; *c != '\0';) {
    const char *close = *c == '{' ? strchr(c, '}') : NULL;
    size_t length = 1;
    const char *from = c;
    if (close != NULL && (size_t)(close - c) <= sizeof inner) {
      snprintf(inner, sizeof inner, "%.*s", (int)(close - c - 1), c + 1);
      if (expression_evaluate(inner, r->params, r->param_count, &value, &cause) != PABD_OK)
        return read_fail(r, "%s", cause.text);
      if (value.is_text) {
        snprintf(piece, sizeof piece, "%s", value.text);
      } else {
        snprintf(piece, sizeof piece, "%.15g", value.number);
      }
      from = piece;
      length = strlen(piece);
      c = close + 1;
    } else {
      ++c;
    }
    if (used + length >= size)
      return read_fail(r, "a text of more than %d bytes (allowed: 1 .. %d)", (int)size - 1, (int)size - 1);
    memmove(out + used, from, length);
    used += length;
  }
  out[used] = '\0';
  return used > 0 ? PABD_OK : read_fail(r, "an empty text (allowed: 1 .. %d bytes)", (int)size - 1);
}

pabd_status read_text(reader *r, const cJSON *object, const char *key, char *out, size_t size) {
  int mark = r->path_length;
  const cJSON *item;
  PABD_TRY(enter_required(r, object, key, &mark, &item));
  PABD_TRY(item_text(r, item, out, size));
  read_leave(r, mark);
  return PABD_OK;
}

pabd_status read_text_or(reader *r, const cJSON *object, const char *key, char *out, size_t size) {
  return read_has(object, key) ? read_text(r, object, key, out, size) : PABD_OK;
}

pabd_status read_name(reader *r, const cJSON *object, const char *key, const char *const *names, int *out) {
  char text[PABD_KEY_SIZE];
  PABD_TRY(read_text(r, object, key, text, sizeof text));
  int k = 0;
  while (names[k] != NULL && strcmp(names[k], text) != 0) ++k;
  if (names[k] == NULL) {
    read_enter(r, key);
    return fail_unknown(r, "value", text, names);
  }
  *out = k;
  return PABD_OK;
}

pabd_status read_name_or(reader *r, const cJSON *object, const char *key, const char *const *names, int *out) {
  return read_has(object, key) ? read_name(r, object, key, names, out) : PABD_OK;
}

pabd_status read_array_or(reader *r, const cJSON *object, const char *key, const cJSON **out) {
  *out = get(object, key);
  if (*out == NULL || cJSON_IsArray(*out)) return PABD_OK;
  read_enter(r, key);
  return read_fail(r, "is %s, must be a list [...]", type_name(*out));
}

pabd_status read_object_or(reader *r, const cJSON *object, const char *key, const cJSON **out) {
  *out = get(object, key);
  if (*out == NULL || cJSON_IsObject(*out)) return PABD_OK;
  read_enter(r, key);
  return read_fail(r, "is %s, must be an object {...}", type_name(*out));
}

pabd_status read_pose_or(reader *r, const cJSON *object, pabd_dpose *pose) {
  PABD_TRY(read_vec3_or(r, object, "position", range_position, &pose->p));
  int given =
      read_has(object, "rotation") + read_has(object, "rotation_vector") + read_has(object, "rotation_vector_deg");
  if (given > 1) {
    return read_fail(
        r, "has more than one of \"rotation\", \"rotation_vector\" and \"rotation_vector_deg\" (allowed: one)");
  }
  if (read_has(object, "rotation")) {
    double q[4] = {0};
    PABD_TRY(read_reals(r, object, "rotation", (range){-1e6, 1e6, 0, ""}, 4, q));
    double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    // Seven digits written by hand are off by this much at most; more is a mistake.
    if (!(fabs(norm - 1.0) <= 1e-6)) {
      read_enter(r, "rotation");
      return read_fail(r, "a quaternion of length %.9g (allowed: w, x, y, z of length 1 within 1e-6)", norm);
    }
    pose->q = pabd_dquat_normalize((pabd_dquat){q[0], q[1], q[2], q[3]});
    return PABD_OK;
  }
  pabd_dvec3 v = {0, 0, 0};
  range turns = {-1e4, 1e4, 0, "rad or degrees"};
  if (read_has(object, "rotation_vector")) {
    PABD_TRY(read_vec3(r, object, "rotation_vector", turns, &v));
    pose->q = pabd_dquat_normalize(pabd_dquat_from_rotation_vector(v));
  } else if (read_has(object, "rotation_vector_deg")) {
    PABD_TRY(read_vec3(r, object, "rotation_vector_deg", turns, &v));
    double s = PI / 180.0;
    pose->q = pabd_dquat_normalize(pabd_dquat_from_rotation_vector((pabd_dvec3){s * v.x, s * v.y, s * v.z}));
  }
  return PABD_OK;
}

static int compare_names(const void *left, const void *right) {
  const name_entry *a = left, *b = right;
  int order = strcmp(a->name, b->name);
  return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

pabd_status read_index_names(reader *r, const pabd_scene *scene, int bodies) {
  int32_t count = bodies ? scene->body_count : scene->joint_count;
  name_index *names = bodies ? &r->bodies : &r->joints;
  names->entries = malloc(((size_t)count + 1) * sizeof *names->entries);
  if (names->entries == NULL) return pabd_fail(r->error, PABD_ERR_MEMORY, "%.120s: out of memory", r->file);
  for (int32_t i = 0; i < count; ++i) {
    const char *name = bodies ? scene->bodies[i].name : scene->joints[i].name;
    if (name[0] != '\0') names->entries[names->count++] = (name_entry){name, i};
  }
  qsort(names->entries, (size_t)names->count, sizeof *names->entries, compare_names);
  for (int32_t i = 1; i < names->count; ++i) {
    const name_entry *a = &names->entries[i - 1], *b = &names->entries[i];
    if (strcmp(a->name, b->name) != 0) continue;
    return read_fail(r, "the name \"%s\" is used by %s %d and %d (names must be unique)", b->name,
                     bodies ? "bodies" : "joints", (int)a->index, (int)b->index);
  }
  return PABD_OK;
}

void read_free(reader *r) {
  free(r->bodies.entries);
  free(r->joints.entries);
  r->bodies = r->joints = (name_index){0, NULL};
}

/* Index of the name, or -1. */
static int32_t find_name(const name_index *names, const char *name) {
  int32_t low = 0, high = names->count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    int order = strcmp(names->entries[middle].name, name);
    if (order == 0) return names->entries[middle].index;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

/* Body or joint by index or name. `what` is "body" or "joint". */
static pabd_status item_index(reader *r, const cJSON *item, const pabd_scene *scene, int bodies, int world_allowed,
                              int32_t *out) {
  int32_t count = bodies ? scene->body_count : scene->joint_count;
  const char *what = bodies ? "body" : "joint";
  if (count == 0) return read_fail(r, "the case has no %s to refer to", what);
  if (cJSON_IsNumber(item)) return item_int(r, item, 0, count - 1, out);
  if (!cJSON_IsString(item)) return read_fail(r, "is %s, must be the name or index of a %s", type_name(item), what);
  char name[PABD_KEY_SIZE];
  PABD_TRY(item_text(r, item, name, sizeof name));
  if (bodies && strcmp(name, "world") == 0) {
    if (!world_allowed) return read_fail(r, "cannot be the world here (allowed: a body's name or index)");
    *out = PABD_WORLD;
    return PABD_OK;
  }
  int32_t index = find_name(bodies ? &r->bodies : &r->joints, name);
  if (index >= 0) {
    *out = index;
    return PABD_OK;
  }
  const char *near = NULL;
  for (int32_t i = 0; i < count && i < 1000; ++i)
    near = nearest(name, bodies ? scene->bodies[i].name : scene->joints[i].name, near);
  return read_fail(r, "no %s is named \"%.60s\"%s%s%s", what, name, near ? " (did you mean \"" : "", near ? near : "",
                   near ? "\"?)" : " (allowed: a name, or an index from 0)");
}

pabd_status read_item_body(reader *r, const cJSON *item, const pabd_scene *scene, int world_allowed, int32_t *out) {
  return item_index(r, item, scene, 1, world_allowed, out);
}

pabd_status read_body(reader *r, const cJSON *object, const char *key, const pabd_scene *scene, int world_allowed,
                      int32_t *out) {
  int mark = r->path_length;
  const cJSON *item;
  PABD_TRY(enter_required(r, object, key, &mark, &item));
  PABD_TRY(item_index(r, item, scene, 1, world_allowed, out));
  read_leave(r, mark);
  return PABD_OK;
}

pabd_status read_joint(reader *r, const cJSON *object, const char *key, const pabd_scene *scene, int32_t *out) {
  int mark = r->path_length;
  const cJSON *item;
  PABD_TRY(enter_required(r, object, key, &mark, &item));
  PABD_TRY(item_index(r, item, scene, 0, 0, out));
  read_leave(r, mark);
  return PABD_OK;
}
