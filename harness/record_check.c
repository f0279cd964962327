/* The validator of records: schema 1 as a table of keys and types, then the rules that tie keys together. */
#include "record_check.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "record.h"

/* Types of the table. NUMBER: finite; COUNT: whole, >= 0; OPTIONAL_...: or null. */
typedef enum kind {
  TEXT,
  WORD, /* a text that is not empty */
  OPTIONAL_TEXT,
  NUMBER,
  OPTIONAL_NUMBER,
  COUNT,
  BOOL,
  OPTIONAL_BOOL,
  HASH, /* 16 hexadecimal digits */
  OPTIONAL_HASH,
  OBJECT,
  ARRAY,
  OPTIONAL_ARRAY,
  ANY
} kind;

static const char *const kind_texts[] = {"a text",
                                         "a text that is not empty",
                                         "a text or null",
                                         "a number",
                                         "a number or null",
                                         "a whole number >= 0",
                                         "true or false",
                                         "true, false or null",
                                         "16 hexadecimal digits",
                                         "16 hexadecimal digits or null",
                                         "an object",
                                         "a list",
                                         "a list or null",
                                         "present"};

typedef struct field {
  const char *block; /* "" = the record itself */
  const char *key;
  kind type;
} field;

static const field fields[] = {
    {"", "schema", COUNT},
    {"", "status", WORD},
    {"", "reason", TEXT},
    {"", "verdict", WORD},
    {"", "run", OBJECT},
    {"", "case", OBJECT},
    {"", "engine", OBJECT},
    {"", "env", OBJECT},
    {"", "state_hash", OPTIONAL_HASH},
    {"", "metrics", OBJECT},
    {"", "expect", ARRAY},
    {"", "series", OBJECT},
    {"", "timing", OBJECT},
    {"", "stages", OBJECT},
    {"", "counters", OBJECT},
    {"", "warnings", ARRAY},
    {"", "output", TEXT},
    {"", "trajectory", OPTIONAL_TEXT},
    {"run", "key", HASH},
    {"run", "name", WORD},
    {"run", "plan", TEXT},
    {"run", "repeat", COUNT},
    {"run", "threads", COUNT},
    {"run", "time_limit", NUMBER},
    {"run", "order", COUNT},
    {"run", "order_seed", WORD},
    {"run", "trace_frames", OPTIONAL_ARRAY},
    {"case", "id", WORD},
    {"case", "family", TEXT},
    {"case", "title", TEXT},
    {"case", "claim", TEXT},
    {"case", "tags", TEXT},
    {"case", "hash", HASH},
    {"case", "label", WORD},
    {"case", "params", OBJECT},
    {"case", "seed", OPTIONAL_NUMBER},
    {"case", "duration", NUMBER},
    {"case", "frame_time", NUMBER},
    {"case", "frame_count", COUNT},
    {"case", "settle_time", OPTIONAL_NUMBER},
    {"case", "energy_ref", OPTIONAL_NUMBER},
    {"case", "energy_rule", TEXT},
    {"case", "body_count", COUNT},
    {"case", "joint_count", COUNT},
    {"engine", "name", WORD},
    {"engine", "version", TEXT},
    {"engine", "preset", TEXT},
    {"engine", "preset_source", TEXT},
    {"engine", "label", WORD},
    {"engine", "precision", TEXT},
    {"engine", "device", TEXT},
    {"engine", "license", TEXT},
    {"engine", "build", TEXT},
    {"engine", "library_hash", HASH},
    {"engine", "capabilities", ARRAY},
    {"engine", "overrides", OBJECT},
    {"engine", "params", OBJECT},
    {"env", "commit", WORD},
    {"env", "dirty", OPTIONAL_BOOL},
    {"env", "cpu", WORD},
    {"env", "cores", COUNT},
    {"env", "compiler", WORD},
    {"env", "flags", TEXT},
    {"env", "governor", WORD},
    {"env", "gpu", WORD},
    {"env", "driver", WORD},
    {"env", "os", WORD},
    {"env", "loadavg", OPTIONAL_NUMBER},
    {"env", "date", WORD},
    {"env", "command", TEXT},
    {"timing", "timing_valid", BOOL},
    {"timing", "why", TEXT},
    {"timing", "clock", WORD},
    {"timing", "warmup", COUNT},
    {"timing", "samples", COUNT},
    {"timing", "frames_done", COUNT},
    {"timing", "metrics_frame", COUNT},
    {"timing", "wall_s", NUMBER},
};

static int is_one_of(const char *text, const char *const *words, int count) {
  for (int k = 0; k < count; ++k) {
    if (strcmp(text, words[k]) == 0) return 1;
  }
  return 0;
}

static int is_hash(const cJSON *item) {
  return cJSON_IsString(item) && strlen(item->valuestring) == 16 && strspn(item->valuestring, "0123456789abcdef") == 16;
}

static int is_number(const cJSON *item) {
  return cJSON_IsNumber(item) && isfinite(item->valuedouble);
}

static int has_kind(const cJSON *item, kind type) {
  int is_null = cJSON_IsNull(item);
  switch (type) {
    case TEXT:
      return cJSON_IsString(item);
    case WORD:
      return cJSON_IsString(item) && item->valuestring[0];
    case OPTIONAL_TEXT:
      return is_null || cJSON_IsString(item);
    case NUMBER:
      return is_number(item);
    case OPTIONAL_NUMBER:
      return is_null || is_number(item);
    case COUNT:
      return is_number(item) && item->valuedouble >= 0 && item->valuedouble == floor(item->valuedouble);
    case BOOL:
      return cJSON_IsBool(item);
    case OPTIONAL_BOOL:
      return is_null || cJSON_IsBool(item);
    case HASH:
      return is_hash(item);
    case OPTIONAL_HASH:
      return is_null || is_hash(item);
    case OBJECT:
      return cJSON_IsObject(item);
    case ARRAY:
      return cJSON_IsArray(item);
    case OPTIONAL_ARRAY:
      return is_null || cJSON_IsArray(item);
    case ANY:
      return item != NULL;
  }
  return 0;
}

static pabd_status need(const char *file, const char *where, const cJSON *object, const char *key, kind type,
                        pabd_error *error) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  const char *dot = where[0] ? "." : "";
  if (!item) return pabd_fail(error, PABD_ERR_INPUT, "%s: %s%s%s is missing", file, where, dot, key);
  if (!has_kind(item, type))
    return pabd_fail(error, PABD_ERR_INPUT, "%s: %s%s%s must be %s", file, where, dot, key, kind_texts[type]);
  return PABD_OK;
}

static pabd_status check_word(const char *file, const cJSON *record, const char *key, const char *const *words,
                              int count, const char *allowed, pabd_error *error) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(record, key);
  if (is_one_of(item->valuestring, words, count)) return PABD_OK;
  return pabd_fail(error, PABD_ERR_INPUT, "%s: %s = \"%.40s\" must be one of %s", file, key, item->valuestring,
                   allowed);
}

static pabd_status check_metrics(const char *file, const cJSON *record, pabd_error *error) {
  static const char *const directions[] = {"lower", "higher", "equal", "info"};
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record, "metrics")) {
    PABD_TRY(need(file, item->string, item, "value", OPTIONAL_NUMBER, error));
    PABD_TRY(need(file, item->string, item, "unit", WORD, error));
    PABD_TRY(need(file, item->string, item, "better", WORD, error));
    if (!is_one_of(cJSON_GetObjectItemCaseSensitive(item, "better")->valuestring, directions, 4))
      return pabd_fail(error, PABD_ERR_INPUT, "%s: metrics.%s.better must be one of lower, higher, equal, info", file,
                       item->string);
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record, "series")) {
    PABD_TRY(need(file, item->string, item, "unit", WORD, error));
    PABD_TRY(need(file, item->string, item, "values", ARRAY, error));
    const cJSON *value;
    cJSON_ArrayForEach(value, cJSON_GetObjectItemCaseSensitive(item, "values")) {
      if (!has_kind(value, OPTIONAL_NUMBER))
        return pabd_fail(error, PABD_ERR_INPUT, "%s: series.%s.values must hold numbers or null", file, item->string);
    }
  }
  return PABD_OK;
}

static pabd_status check_expects(const char *file, const cJSON *record, pabd_error *error) {
  static const char *const operators[] = {"<=", ">=", "<", ">", "=="};
  static const field of_expect[] = {{"expect", "metric", WORD},          {"expect", "op", WORD},
                                    {"expect", "bound", NUMBER},         {"expect", "tolerance", OPTIONAL_NUMBER},
                                    {"expect", "reason", TEXT},          {"expect", "engines", TEXT},
                                    {"expect", "binds", BOOL},           {"expect", "ok", BOOL},
                                    {"expect", "value", OPTIONAL_NUMBER}};
  int binding = 0, broken = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record, "expect")) {
    for (size_t k = 0; k < sizeof of_expect / sizeof of_expect[0]; ++k)
      PABD_TRY(need(file, "expect", item, of_expect[k].key, of_expect[k].type, error));
    if (!is_one_of(cJSON_GetObjectItemCaseSensitive(item, "op")->valuestring, operators, 5))
      return pabd_fail(error, PABD_ERR_INPUT, "%s: expect.op must be one of <=, >=, <, >, ==", file);
    int binds = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "binds"));
    int ok = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "ok"));
    if (ok && cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(item, "value")))
      return pabd_fail(error, PABD_ERR_INPUT, "%s: expect.ok is true for '%s', which has no value", file,
                       cJSON_GetObjectItemCaseSensitive(item, "metric")->valuestring);
    binding += binds;
    broken += binds && !ok;
  }
  /* The verdict must follow from what is written. */
  const char *status = cJSON_GetObjectItemCaseSensitive(record, "status")->valuestring;
  const char *verdict = cJSON_GetObjectItemCaseSensitive(record, "verdict")->valuestring;
  const char *wanted = "pass";
  if (binding == 0 || strcmp(status, "na") == 0)
    wanted = "none";
  else if (broken > 0 || strcmp(status, "ok") != 0)
    wanted = "fail";
  if (strcmp(verdict, wanted) != 0)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: verdict is \"%s\", but status and expect say \"%s\"", file, verdict,
                     wanted);
  return PABD_OK;
}

static pabd_status check_parts(const char *file, const cJSON *record, pabd_error *error) {
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record, "stages")) {
    static const char *const parts[] = {"collide", "solve"};
    PABD_TRY(need(file, item->string, item, "part", WORD, error));
    if (!is_one_of(cJSON_GetObjectItemCaseSensitive(item, "part")->valuestring, parts, 2))
      return pabd_fail(error, PABD_ERR_INPUT, "%s: stages.%s.part must be collide or solve", file, item->string);
    static const char *const keys[] = {"p50", "p95", "max", "mean"};
    for (int k = 0; k < 4; ++k) PABD_TRY(need(file, item->string, item, keys[k], OPTIONAL_NUMBER, error));
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record, "counters")) {
    static const char *const keys[] = {"last", "mean", "max"};
    PABD_TRY(need(file, item->string, item, "unit", TEXT, error));
    for (int k = 0; k < 3; ++k) PABD_TRY(need(file, item->string, item, keys[k], OPTIONAL_NUMBER, error));
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record, "warnings")) {
    if (!cJSON_IsString(item)) return pabd_fail(error, PABD_ERR_INPUT, "%s: warnings must hold texts", file);
  }
  const cJSON *engine = cJSON_GetObjectItemCaseSensitive(record, "engine");
  static const char *const lists[] = {"overrides", "params"};
  for (int k = 0; k < 2; ++k) {
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(engine, lists[k])) {
      if (!cJSON_IsString(item))
        return pabd_fail(error, PABD_ERR_INPUT, "%s: engine.%s.%s must be a text", file, lists[k], item->string);
    }
  }
  cJSON_ArrayForEach(item,
                     cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(record, "case"), "params")) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, "value");
    if (!is_number(value) && !cJSON_IsString(value))
      return pabd_fail(error, PABD_ERR_INPUT, "%s: case.params.%s.value must be a number or a text", file,
                       item->string);
    PABD_TRY(need(file, item->string, item, "unit", TEXT, error));
  }
  return PABD_OK;
}

/* Rules between keys: what a record of this status must and must not say. */
static pabd_status check_sense(const char *file, const cJSON *record, pabd_error *error) {
  const char *status = cJSON_GetObjectItemCaseSensitive(record, "status")->valuestring;
  const char *reason = cJSON_GetObjectItemCaseSensitive(record, "reason")->valuestring;
  const cJSON *timing = cJSON_GetObjectItemCaseSensitive(record, "timing");
  int is_ok = strcmp(status, "ok") == 0;
  int is_valid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(timing, "timing_valid"));
  int has_why = cJSON_GetObjectItemCaseSensitive(timing, "why")->valuestring[0] != 0;
  double done = cJSON_GetObjectItemCaseSensitive(timing, "frames_done")->valuedouble;
  double wanted =
      cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(record, "case"), "frame_count")->valuedouble;
  if (!is_ok && !reason[0]) return pabd_fail(error, PABD_ERR_INPUT, "%s: status \"%s\" needs a reason", file, status);
  if (strpbrk(reason, "\n\r")) return pabd_fail(error, PABD_ERR_INPUT, "%s: reason must be one line", file);
  if (is_ok && done != wanted)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: status \"ok\" after %g of %g frames", file, done, wanted);
  if (done > wanted) return pabd_fail(error, PABD_ERR_INPUT, "%s: %g of %g frames done", file, done, wanted);
  if (is_ok && cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(record, "state_hash")))
    return pabd_fail(error, PABD_ERR_INPUT, "%s: status \"ok\" needs a state_hash", file);
  if (is_valid && !is_ok)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: timing_valid must be false for status \"%s\"", file, status);
  if (is_valid == has_why)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: timing.why must say why, exactly when timing_valid is false", file);
  return PABD_OK;
}

pabd_status pabd_record_check(const char *file, const cJSON *record, pabd_error *error) {
  static const char *const statuses[] = {"ok", "diverged", "crashed", "timeout", "na"};
  static const char *const verdicts[] = {"pass", "fail", "none"};
  if (!cJSON_IsObject(record)) return pabd_fail(error, PABD_ERR_INPUT, "%s: not a JSON object", file);
  const cJSON *schema = cJSON_GetObjectItemCaseSensitive(record, "schema");
  if (!is_number(schema) || schema->valuedouble != PABD_RECORD_SCHEMA)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: schema must be %d", file, PABD_RECORD_SCHEMA);
  for (size_t k = 0; k < sizeof fields / sizeof fields[0]; ++k) {
    const cJSON *block = fields[k].block[0] ? cJSON_GetObjectItemCaseSensitive(record, fields[k].block) : record;
    PABD_TRY(need(file, fields[k].block, block, fields[k].key, fields[k].type, error));
  }
  PABD_TRY(check_word(file, record, "status", statuses, 5, "ok, diverged, crashed, timeout, na", error));
  PABD_TRY(check_word(file, record, "verdict", verdicts, 3, "pass, fail, none", error));
  PABD_TRY(check_metrics(file, record, error));
  PABD_TRY(check_expects(file, record, error));
  PABD_TRY(check_parts(file, record, error));
  return check_sense(file, record, error);
}

/* Parses; on failure says where. */
static pabd_status parse(const char *file, const char *text, size_t size, cJSON **out, pabd_error *error) {
  const char *end = text;
  *out = cJSON_ParseWithLengthOpts(text, size, &end, 0);
  if (*out) {
    while (end < text + size && isspace((unsigned char)*end)) ++end;
    if (end == text + size) return PABD_OK;
    cJSON_Delete(*out);
    *out = NULL;
  }
  int line = 1;
  for (const char *at = text; at < end && at < text + size; ++at) line += *at == '\n';
  return pabd_fail(error, PABD_ERR_INPUT, "%s:%d: not valid JSON, or cut short", file, line);
}

pabd_status pabd_record_check_text(const char *file, const char *text, size_t size, pabd_error *error) {
  cJSON *record;
  PABD_TRY(parse(file, text, size, &record, error));
  pabd_status status = pabd_record_check(file, record, error);
  cJSON_Delete(record);
  return status;
}

pabd_status pabd_record_read(const char *path, cJSON **out, pabd_error *error) {
  char *text;
  size_t size;
  *out = NULL;
  PABD_TRY(pabd_file_read(path, &text, &size, error));
  pabd_status status = parse(path, text, size, out, error);
  free(text);
  if (status == PABD_OK) status = pabd_record_check(path, *out, error);
  if (status != PABD_OK) {
    cJSON_Delete(*out);
    *out = NULL;
  }
  return status;
}

pabd_status pabd_record_check_file(const char *path, pabd_error *error) {
  cJSON *record;
  PABD_TRY(pabd_record_read(path, &record, error));
  cJSON_Delete(record);
  return PABD_OK;
}
