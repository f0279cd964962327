/* Loading a case: the file, its parameters, its scene, its metrics and bounds. Schema: cases/README.md.
 *
 * The JSON text is scanned once before it is parsed: nesting depth is bounded there, and a syntax error gets the key
 * path of the value where it happened. Everything hangs on the case from the first moment, so one pabd_case_free on
 * failure frees all. Invariant: the hash covers the file's bytes and every parameter in force, nothing else. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "energy_ref.h"
#include "nearest.h"
#include "pabd_case.h"
#include "scene_read.h"

#define FILE_SIZE_MAX (16 << 20)
#define NESTING_MAX 32
#define FRAME_MAX 10000000

/* ---- The file ---- */

/* The whole file, zero-terminated; *size without the zero. Only regular files: a pipe could keep the suite waiting. */
static pabd_status read_file(const char *path, char **text, size_t *size, pabd_error *error) {
  struct stat info;
  *text = NULL;
  if (stat(path, &info) != 0) return pabd_fail(error, PABD_ERR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return pabd_fail(error, PABD_ERR_IO, "%.300s: is not a regular file", path);
  if (info.st_size > FILE_SIZE_MAX) {
    return pabd_fail(error, PABD_ERR_INPUT, "%.300s: has %lld bytes (allowed: %d)", path, (long long)info.st_size,
                     FILE_SIZE_MAX);
  }
  FILE *file = fopen(path, "rb");
  if (file == NULL) return pabd_fail(error, PABD_ERR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  char *buffer = malloc((size_t)info.st_size + 1);
  if (buffer == NULL) {
    fclose(file);
    return pabd_fail(error, PABD_ERR_MEMORY, "%.300s: out of memory", path);
  }
  size_t count = fread(buffer, 1, (size_t)info.st_size, file);
  int failed = ferror(file);
  fclose(file);
  if (failed) {
    free(buffer);
    return pabd_fail(error, PABD_ERR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  }
  buffer[count] = '\0';
  *text = buffer;
  *size = count;
  return PABD_OK;
}

/* Walks over JSON text up to `stop` and keeps the way to where it is; knows strings, nothing else of the grammar. */
typedef struct locator {
  int depth, too_deep; /* too_deep: NESTING_MAX was passed */
  struct {
    int is_array;
    int32_t index; /* array: of the element */
    size_t key_at; /* object: where its latest key's text begins */
    int key_length;
  } level[NESTING_MAX];
} locator;

static void locate(const char *text, size_t stop, locator *l) {
  memset(l, 0, sizeof *l);
  for (size_t i = 0; i < stop; ++i) {
    char c = text[i];
    if (c == '"') {
      size_t begin = ++i;
      while (i < stop && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      size_t after = i + 1;
      while (after < stop && isspace((unsigned char)text[after])) ++after;
      if (l->depth > 0 && !l->level[l->depth - 1].is_array && after < stop && text[after] == ':') {
        l->level[l->depth - 1].key_at = begin;
        l->level[l->depth - 1].key_length = (int)(i - begin < 40 ? i - begin : 40);
      }
    } else if (c == '{' || c == '[') {
      if (l->depth == NESTING_MAX) {
        l->too_deep = 1;
        return;
      }
      memset(&l->level[l->depth], 0, sizeof l->level[0]);
      l->level[l->depth++].is_array = c == '[';
    } else if (c == '}' || c == ']') {
      if (l->depth > 0) --l->depth;
    } else if (c == ',' && l->depth > 0 && l->level[l->depth - 1].is_array) {
      ++l->level[l->depth - 1].index;
    }
  }
}

static void locator_path(const locator *l, const char *text, char *path, size_t size) {
  size_t used = 0;
  path[0] = '\0';
  for (int d = 0; d < l->depth; ++d) {
    int written = l->level[d].is_array ? snprintf(path + used, size - used, "[%d]", (int)l->level[d].index)
                                       : snprintf(path + used, size - used, "%s%.*s", used > 0 ? "." : "",
                                                  l->level[d].key_length, text + l->level[d].key_at);
    if (written < 0 || used + (size_t)written >= size) return;
    used += (size_t)written;
  }
}

/* What stands at the point where the parser gave up, in words. */
static const char *syntax_cause(const char *text, size_t size, size_t at) {
  while (at < size && isspace((unsigned char)text[at])) ++at;
  const char *here = text + at;
  if (at >= size) return "the file ends before the JSON does (was it cut off?)";
  if (*here == '-' || *here == '+') ++here;
  if (strncasecmp(here, "nan", 3) == 0 || strncasecmp(here, "inf", 3) == 0)
    return "not a number (allowed: finite numbers)";
  if (*here == ',') return "a comma where a value or key should be";
  if (*here == '}' || *here == ']') return "a closing bracket too early (is there a comma too many before it?)";
  if (*here == '/' || *here == '#') return "JSON has no comments (use a \"note\" key)";
  if (*here == '\'') return "texts stand in double quotes";
  return "not valid JSON here (is a comma or quote missing before it?)";
}

/* cJSON says the same of bad text and of a failed allocation; this tells them apart. */
static _Thread_local int allocation_failed;

static void *watched_malloc(size_t size) {
  void *memory = malloc(size);
  if (memory == NULL) allocation_failed = 1;
  return memory;
}

static pabd_status parse_json(const char *file, const char *text, size_t size, cJSON **out, pabd_error *error) {
  char path[128];
  locator l;
  *out = NULL;
  size_t blank = 0;
  while (blank < size && isspace((unsigned char)text[blank])) ++blank;
  if (blank == size) return pabd_fail(error, PABD_ERR_INPUT, "%.120s: is empty (allowed: one JSON object)", file);
  const char *zero = memchr(text, '\0', size);
  if (zero != NULL) {
    return pabd_fail(error, PABD_ERR_INPUT, "%.120s: a zero byte at offset %zu (allowed: JSON text)", file,
                     (size_t)(zero - text));
  }
  locate(text, size, &l);
  if (l.too_deep) {
    locator_path(&l, text, path, sizeof path);
    return pabd_fail(error, PABD_ERR_INPUT, "%.120s: %.120s: nested too deeply (allowed: %d levels)", file, path,
                     NESTING_MAX);
  }
  const char *end = NULL;
  allocation_failed = 0;
  cJSON_InitHooks(&(cJSON_Hooks){watched_malloc, free});
  cJSON *root = cJSON_ParseWithLengthOpts(text, size + 1, &end, 0);
  if (root == NULL && allocation_failed) return pabd_fail(error, PABD_ERR_MEMORY, "%.120s: out of memory", file);
  if (root != NULL) {
    while (isspace((unsigned char)*end)) ++end;
    if (*end == '\0') {
      *out = root;
      return PABD_OK;
    }
    cJSON_Delete(root);
  }
  size_t at = end == NULL ? size : (size_t)(end - text) < size ? (size_t)(end - text) : size;
  // Where a key should begin, the parser stops one character late.
  if (at > 0 && text[at - 1] != '"' && !isspace((unsigned char)text[at - 1])) {
    size_t before = at - 1;
    while (before > 0 && isspace((unsigned char)text[before - 1])) --before;
    if (before > 0 && (text[before - 1] == ',' || text[before - 1] == '{')) --at;
  }
  int line = 1, column = 1;
  for (size_t i = 0; i < at; ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n';
  }
  if (root != NULL) {
    return pabd_fail(error, PABD_ERR_INPUT,
                     "%.120s: line %d, column %d: something stands after the end (allowed: one JSON object)", file,
                     line, column);
  }
  locate(text, at, &l);
  locator_path(&l, text, path, sizeof path);
  return pabd_fail(error, PABD_ERR_INPUT, "%.120s: %s%sline %d, column %d: %s", file, path, path[0] != '\0' ? ": " : "",
                   line, column, syntax_cause(text, size, at));
}

/* ---- Parameters ---- */

static void format_real(double x, char out[PABD_KEY_SIZE]) {
  // The shortest text that reads back as the same double.
  for (int digits = 15; digits <= 17; ++digits) {
    snprintf(out, PABD_KEY_SIZE, "%.*g", digits, x);
    if (strtod(out, NULL) == x) return;
  }
}

/* Bounds and choices of one parameter while the file is read. */
typedef struct param_rule {
  double low, high;
  const cJSON *choices;
} param_rule;

static int is_choice(const cJSON *choices, const char *text) {
  const cJSON *item;
  cJSON_ArrayForEach(item, choices) {
    if (strcmp(item->valuestring, text) == 0) return 1;
  }
  return 0;
}

/* Puts `text` in force if the parameter's type and range allow it. */
static pabd_status set_param(reader *r, pabd_case_param *p, const param_rule *rule, const char *text) {
  if (strcmp(p->type, "choice") == 0) {
    if (!is_choice(rule->choices, text)) {
      const char *near = NULL;
      const cJSON *item;
      cJSON_ArrayForEach(item, rule->choices) near = nearest(text, item->valuestring, near);
      return read_fail(r, "\"%.60s\" is none of the choices%s%s%s (allowed: %s)", text, near ? "; did you mean \"" : "",
                       near ? near : "", near ? "\"?" : "", p->range);
    }
    snprintf(p->value, sizeof p->value, "%s", text);
    return PABD_OK;
  }
  if (strcmp(p->type, "bool") == 0) {
    int yes =
        strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcmp(text, "on") == 0 || strcmp(text, "yes") == 0;
    int no =
        strcmp(text, "false") == 0 || strcmp(text, "0") == 0 || strcmp(text, "off") == 0 || strcmp(text, "no") == 0;
    if (!yes && !no) return read_fail(r, "\"%.60s\" is neither true nor false (allowed: %s)", text, p->range);
    snprintf(p->value, sizeof p->value, "%s", yes ? "true" : "false");
    return PABD_OK;
  }
  char unit[sizeof p->unit + 1] = "";
  if (strcmp(p->unit, "1") != 0) snprintf(unit, sizeof unit, " %s", p->unit);
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end != '\0' || !isfinite(x)) {
    return read_fail(r, "\"%.60s\" is not a finite number (allowed: %s%s)", text, p->range, unit);
  }
  if (strcmp(p->type, "int") == 0 && x != floor(x)) {
    return read_fail(r, "\"%.60s\" is not a whole number (allowed: %s)", text, p->range);
  }
  if (x < rule->low || x > rule->high) {
    return read_fail(r, "%.10g is out of range (allowed: %s%s)", x, p->range, unit);
  }
  format_real(x, p->value);
  return PABD_OK;
}

static pabd_status read_one_param(reader *r, const cJSON *item, pabd_case_param *p, param_rule *rule) {
  static const char *const keys[] = {"type", "default", "range", "choices", "unit", "meaning", NULL};
  static const char *const types[] = {"int", "real", "choice", "bool", NULL};
  int type;
  size_t length = strlen(item->string);
  int plain = length > 0 && isalpha((unsigned char)item->string[0]);
  for (size_t i = 0; i < length; ++i) plain &= isalnum((unsigned char)item->string[i]) || item->string[i] == '_';
  if (!plain || length >= sizeof p->key) {
    return read_fail(r, "is no name for a parameter (allowed: up to %d letters, digits and _, a letter first)",
                     PABD_KEY_SIZE - 1);
  }
  snprintf(p->key, sizeof p->key, "%s", item->string);
  PABD_TRY(read_keys(r, item, keys));
  PABD_TRY(read_name(r, item, "type", types, &type));
  snprintf(p->type, sizeof p->type, "%s", types[type]);
  snprintf(p->unit, sizeof p->unit, "1");
  PABD_TRY(read_text_or(r, item, "unit", p->unit, sizeof p->unit));
  PABD_TRY(read_text(r, item, "meaning", p->meaning, sizeof p->meaning));
  *rule = (param_rule){-1e15, 1e15, NULL};
  if ((type == 2) != read_has(item, "choices"))
    return read_fail(r, "\"choices\" goes with \"type\": \"choice\", and with no other");
  if (read_has(item, "range") && type > 1)
    return read_fail(r, "\"range\" goes with the types int and real (this is a %s)", types[type]);
  if (type == 2) {
    PABD_TRY(read_array_or(r, item, "choices", &rule->choices));
    size_t used = 0;
    const cJSON *choice;
    cJSON_ArrayForEach(choice, rule->choices) {
      if (!cJSON_IsString(choice) || choice->valuestring[0] == '\0' || strlen(choice->valuestring) >= sizeof p->value) {
        return read_fail(r, "\"choices\" must be a list of short texts");
      }
      int written =
          snprintf(p->range + used, sizeof p->range - used, "%s%s", used > 0 ? " | " : "", choice->valuestring);
      used += (size_t)written;
      if (used >= sizeof p->range)
        return read_fail(r, "\"choices\" is too long (allowed: %d bytes)", (int)sizeof p->range - 1);
    }
    if (used == 0) return read_fail(r, "\"choices\" is empty");
  } else if (type == 3) {
    snprintf(p->range, sizeof p->range, "true | false");
  } else {
    double bounds[2] = {0, 0};
    PABD_TRY(read_reals(r, item, "range", (range){-1e15, 1e15, 0, ""}, 2, bounds));
    if (bounds[0] > bounds[1])
      return read_fail(r, "\"range\" %g .. %g: the lower bound exceeds the upper", bounds[0], bounds[1]);
    rule->low = bounds[0];
    rule->high = bounds[1];
    snprintf(p->range, sizeof p->range, "%.10g .. %.10g", bounds[0], bounds[1]);
  }
  // The default passes through the same checks as an override.
  const cJSON *initial = cJSON_GetObjectItemCaseSensitive(item, "default");
  if (initial == NULL) return read_fail(r, "the key \"default\" is missing (it is required)");
  char text[PABD_KEY_SIZE];
  int mark = read_enter(r, "default");
  if (cJSON_IsBool(initial) && type == 3) {
    snprintf(text, sizeof text, "%s", cJSON_IsTrue(initial) ? "true" : "false");
  } else if (cJSON_IsNumber(initial) && type < 2) {
    snprintf(text, sizeof text, "%.17g", initial->valuedouble);
  } else if (cJSON_IsString(initial) && type == 2) {
    snprintf(text, sizeof text, "%s", initial->valuestring);
  } else {
    return read_fail(r, "does not fit the type %s", types[type]);
  }
  PABD_TRY(set_param(r, p, rule, text));
  memcpy(p->initial, p->value, sizeof p->initial);
  read_leave(r, mark);
  return PABD_OK;
}

static pabd_status read_params(reader *r, const cJSON *top, const char *const *overrides, int32_t override_count,
                               pabd_case *c) {
  param_rule rules[sizeof c->params / sizeof c->params[0]] = {{0, 0, NULL}};
  const int32_t most = (int32_t)(sizeof c->params / sizeof c->params[0]);
  const cJSON *list, *item;
  PABD_TRY(read_object_or(r, top, "params", &list));
  int outer = read_enter(r, "params");
  cJSON_ArrayForEach(item, list) {
    if (c->param_count == most) return read_fail(r, "too many parameters (allowed: %d)", (int)most);
    for (int32_t i = 0; i < c->param_count; ++i) {
      if (strcmp(c->params[i].key, item->string) == 0)
        return read_fail(r, "the parameter \"%s\" stands twice", item->string);
    }
    int inner = read_enter(r, item->string);
    PABD_TRY(read_one_param(r, item, &c->params[c->param_count], &rules[c->param_count]));
    ++c->param_count;
    read_leave(r, inner);
  }
  read_leave(r, outer);
  for (int32_t o = 0; o < override_count; ++o) {
    const char *equals = strchr(overrides[o], '=');
    char key[PABD_KEY_SIZE];
    snprintf(key, sizeof key, "%.*s", equals ? (int)(equals - overrides[o] < 63 ? equals - overrides[o] : 63) : 63,
             overrides[o]);
    if (equals == NULL || equals == overrides[o]) {
      return read_fail(r, "\"%.60s\" sets nothing (allowed: key=value)", overrides[o]);
    }
    int32_t i = 0;
    const char *near = NULL;
    char names[160] = "";
    size_t used = 0;
    for (int32_t k = 0; k < c->param_count; ++k) {
      near = nearest(key, c->params[k].key, near);
      int written = snprintf(names + used, sizeof names - used, "%s%s", k > 0 ? ", " : "", c->params[k].key);
      used = used + (size_t)written < sizeof names ? used + (size_t)written : sizeof names - 1;
    }
    while (i < c->param_count && strcmp(c->params[i].key, key) != 0) ++i;
    if (i == c->param_count) {
      return read_fail(r, "has no parameter \"%s\"%s%s%s (allowed: %s)", key, near ? "; did you mean \"" : "",
                       near ? near : "", near ? "\"?" : "",
                       c->param_count > 0 ? names : "none, the case has no parameters");
    }
    int mark = read_enter(r, "params");
    read_enter(r, key);
    PABD_TRY(set_param(r, &c->params[i], &rules[i], equals + 1));
    read_leave(r, mark);
  }
  r->params = c->params;
  r->param_count = c->param_count;
  return PABD_OK;
}

/* ---- Metrics and bounds ---- */

typedef struct metric_kind {
  const char *name;
  int body, joint; /* 0 no, 1 optional, 2 required */
  const char *numbers;
  double initial[4];
} metric_kind;

#define COMMA ,
static const metric_kind metric_kinds[] = {
#define X(kind, body, joint, numbers, initial, meaning) {#kind, body, joint, numbers, initial},
#include "metric_kinds.def"
#undef X
};
#define METRIC_KIND_COUNT ((int)(sizeof metric_kinds / sizeof metric_kinds[0]))

static pabd_status read_one_metric(reader *r, const cJSON *object, const pabd_scene *scene, pabd_case_metric *m) {
  const char *names[METRIC_KIND_COUNT + 1];
  const char *keys[16] = {"kind", "axis", "reference", "when"};
  int kind, key_count = 4, number_count = 0;
  char numbers[64], *save = NULL, *number_names[4];
  for (int k = 0; k < METRIC_KIND_COUNT; ++k) names[k] = metric_kinds[k].name;
  names[METRIC_KIND_COUNT] = NULL;
  if (!cJSON_IsObject(object)) return read_fail(r, "must be an object {...} with a \"kind\"");
  PABD_TRY(read_name(r, object, "kind", names, &kind));
  const metric_kind *info = &metric_kinds[kind];
  if (info->body > 0) keys[key_count++] = "body";
  if (info->joint > 0) keys[key_count++] = "joint";
  snprintf(numbers, sizeof numbers, "%s", info->numbers);
  for (char *word = strtok_r(numbers, " ", &save); word != NULL && number_count < 4;
       word = strtok_r(NULL, " ", &save)) {
    keys[key_count++] = number_names[number_count++] = word;
  }
  keys[key_count] = NULL;
  PABD_TRY(read_keys(r, object, keys));
  snprintf(m->kind, sizeof m->kind, "%s", info->name);
  m->body = m->joint = -1;
  m->reference = NAN;
  if (info->body == 2 || (info->body == 1 && read_has(object, "body")))
    PABD_TRY(read_body(r, object, "body", scene, 0, &m->body));
  if (info->joint == 2 || (info->joint == 1 && read_has(object, "joint")))
    PABD_TRY(read_joint(r, object, "joint", scene, &m->joint));
  PABD_TRY(read_vec3_or(r, object, "axis", range_any, &m->axis));
  PABD_TRY(read_real_or(r, object, "reference", range_any, &m->reference));
  for (int k = 0; k < number_count; ++k) {
    m->number[k] = info->initial[k];
    PABD_TRY(read_real_or(r, object, number_names[k], range_any, &m->number[k]));
  }
  return PABD_OK;
}

static pabd_status read_one_expect(reader *r, const cJSON *object, pabd_case_expect *e) {
  static const char *const keys[] = {"metric", "op", "bound", "tolerance", "reason", "engines", "when", NULL};
  static const char *const ops[] = {"<=", ">=", "<", ">", "==", NULL};
  int op;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_text(r, object, "metric", e->metric, sizeof e->metric));
  PABD_TRY(read_name(r, object, "op", ops, &op));
  snprintf(e->op, sizeof e->op, "%s", ops[op]);
  PABD_TRY(read_real(r, object, "bound", range_any, &e->bound));
  if (read_has(object, "tolerance") != (op == 4))
    return read_fail(r, "\"tolerance\" goes with \"op\": \"==\", and is required there");
  PABD_TRY(read_real_or(r, object, "tolerance", range_not_negative, &e->tolerance));
  PABD_TRY(read_text(r, object, "reason", e->reason, sizeof e->reason));
  const cJSON *list, *item;
  PABD_TRY(read_array_or(r, object, "engines", &list));
  int mark = read_enter(r, "engines");
  if (list == NULL || list->child == NULL)
    return read_fail(r, "must list the engines bound by it (allowed: NAME or NAME:PRESET, with * and ?)");
  size_t used = 0;
  cJSON_ArrayForEach(item, list) {
    size_t length = cJSON_IsString(item) ? strlen(item->valuestring) : 0;
    if (length == 0 ||
        length != strspn(item->valuestring, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:*?")) {
      return read_fail(r, "must be a list of texts (allowed: NAME or NAME:PRESET, with * and ?)");
    }
    if (used + length + 2 > sizeof e->engines)
      return read_fail(r, "is too long (allowed: %d bytes)", (int)sizeof e->engines - 1);
    used +=
        (size_t)snprintf(e->engines + used, sizeof e->engines - used, "%s%s", used > 0 ? "," : "", item->valuestring);
  }
  read_leave(r, mark);
  return PABD_OK;
}

static pabd_status read_metrics(reader *r, const cJSON *top, pabd_case *c) {
  const cJSON *list, *item;
  const int32_t metric_max = (int32_t)(sizeof c->metrics / sizeof c->metrics[0]);
  const int32_t expect_max = (int32_t)(sizeof c->expects / sizeof c->expects[0]);
  for (int pass = 0; pass < 2; ++pass) {
    const char *key = pass == 0 ? "metrics" : "expect";
    int32_t index = 0;
    PABD_TRY(read_array_or(r, top, key, &list));
    int outer = read_enter(r, key);
    cJSON_ArrayForEach(item, list) {
      int wanted, inner = read_enter_index(r, index++);
      PABD_TRY(read_when(r, item, &wanted));
      if (wanted && pass == 0) {
        if (c->metric_count == metric_max) return read_fail(r, "too many metrics (allowed: %d)", (int)metric_max);
        PABD_TRY(read_one_metric(r, item, &c->scene, &c->metrics[c->metric_count]));
        ++c->metric_count;
      } else if (wanted) {
        if (c->expect_count == expect_max) return read_fail(r, "too many bounds (allowed: %d)", (int)expect_max);
        PABD_TRY(read_one_expect(r, item, &c->expects[c->expect_count]));
        ++c->expect_count;
      }
      read_leave(r, inner);
    }
    read_leave(r, outer);
  }
  if (c->metric_count == 0) return read_fail(r, "the case has no \"metrics\" (at least one is required)");
  return PABD_OK;
}

/* ---- The case ---- */

static pabd_status read_energy_ref(reader *r, const cJSON *top, pabd_case *c) {
  static const char *const keys[] = {"rule", "value", NULL};
  static const char *const rules[] = {"hanging", "reach", "height", "kinetic", "given", NULL};
  const cJSON *object;
  int rule;
  PABD_TRY(read_object_or(r, top, "energy_ref", &object));
  if (object == NULL) return read_fail(r, "the key \"energy_ref\" is missing (it is required)");
  int mark = read_enter(r, "energy_ref");
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_name(r, object, "rule", rules, &rule));
  snprintf(c->energy_rule, sizeof c->energy_rule, "%s", rules[rule]);
  if ((rule == ENERGY_GIVEN) != read_has(object, "value"))
    return read_fail(r, "\"value\" goes with \"rule\": \"given\", and with no other");
  if (rule == ENERGY_GIVEN) {
    PABD_TRY(read_real(r, object, "value", (range){0.0, 1e15, 1, "J"}, &c->energy_ref));
  } else if (energy_reference(&c->scene, (energy_rule)rule, &c->energy_ref) != PABD_OK) {
    return pabd_fail(r->error, PABD_ERR_MEMORY, "%.120s: out of memory", r->file);
  }
  if (!(c->energy_ref > 0.0) || !isfinite(c->energy_ref)) {
    return read_fail(r, "the rule \"%s\" gives %g J (allowed: > 0; choose another rule or \"given\")", rules[rule],
                     c->energy_ref);
  }
  read_leave(r, mark);
  return PABD_OK;
}

static pabd_status read_tags(reader *r, const cJSON *top, pabd_case *c) {
  const cJSON *list, *item;
  PABD_TRY(read_array_or(r, top, "tags", &list));
  int mark = read_enter(r, "tags");
  size_t used = 0;
  cJSON_ArrayForEach(item, list) {
    size_t length = cJSON_IsString(item) ? strlen(item->valuestring) : 0;
    if (length == 0 || length != strspn(item->valuestring, "abcdefghijklmnopqrstuvwxyz0123456789-_")) {
      return read_fail(r, "must be a list of words (allowed: small letters, digits, - and _)");
    }
    if (used + length + 2 > sizeof c->tags)
      return read_fail(r, "is too long (allowed: %d bytes)", (int)sizeof c->tags - 1);
    used += (size_t)snprintf(c->tags + used, sizeof c->tags - used, "%s%s", used > 0 ? "," : "", item->valuestring);
  }
  read_leave(r, mark);
  return PABD_OK;
}

static uint64_t fnv1a(uint64_t hash, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return hash;
}

static void hash_case(pabd_case *c, const char *text, size_t size) {
  uint64_t hash = fnv1a(0xcbf29ce484222325u, text, size);
  for (int32_t i = 0; i < c->param_count; ++i) {
    hash = fnv1a(hash, c->params[i].key, strlen(c->params[i].key) + 1);
    hash = fnv1a(hash, c->params[i].value, strlen(c->params[i].value) + 1);
  }
  snprintf(c->hash, sizeof c->hash, "%016llx", (unsigned long long)hash);
}

static pabd_status set_id(reader *r, const char *path, pabd_case *c) {
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  size_t length = strlen(base);
  if (length > 5 && strcmp(base + length - 5, ".json") == 0) length -= 5;
  if (length == 0 || length >= sizeof c->id)
    return read_fail(r, "the file's name is no id of a case (allowed: 1 .. %d letters)", PABD_KEY_SIZE - 1);
  memcpy(c->id, base, length);
  c->id[length] = '\0';
  return PABD_OK;
}

static pabd_status read_case(reader *r, const cJSON *top, const char *path, const char *const *overrides,
                             int32_t override_count, pabd_case *c) {
  static const char *const keys[] = {
      "schema",    "family",         "title",   "claim",      "tags",       "params",
      "duration",  "settle",         "gravity", "frame_time", "energy_ref", "momentum_ref",
      "materials", "material_pairs", "bodies",  "generate",   "joints",     "loads",
      "ignore",    "metrics",        "expect",  NULL};
  int32_t schema;
  PABD_TRY(read_keys(r, top, keys));
  PABD_TRY(read_int(r, top, "schema", 1, 1, &schema));
  PABD_TRY(set_id(r, path, c));
  PABD_TRY(read_text(r, top, "family", c->family, sizeof c->family));
  PABD_TRY(read_text(r, top, "title", c->title, sizeof c->title));
  PABD_TRY(read_text(r, top, "claim", c->claim, sizeof c->claim));
  PABD_TRY(read_tags(r, top, c));
  PABD_TRY(read_params(r, top, overrides, override_count, c));
  PABD_TRY(read_scene(r, top, &c->scene));
  PABD_TRY(read_real(r, top, "duration", (range){0.0, 1e6, 1, "s"}, &c->duration));
  double frames = floor(c->duration / c->scene.frame_time + 0.5);
  if (frames < 1.0 || frames > FRAME_MAX) {
    read_enter(r, "duration");
    return read_fail(r, "%g s makes %.10g frames of %g s (allowed: 1 .. %d frames)", c->duration, frames,
                     c->scene.frame_time, FRAME_MAX);
  }
  c->frame_count = (int32_t)frames;
  c->settle_time = -1.0;
  PABD_TRY(read_real_or(r, top, "settle", (range){0.0, 1e6, 0, "s"}, &c->settle_time));
  if (c->settle_time >= c->duration) {
    read_enter(r, "settle");
    return read_fail(r, "%g s is not before the end at %g s (allowed: 0 .. below the duration)", c->settle_time,
                     c->duration);
  }
  PABD_TRY(read_real_or(r, top, "momentum_ref", (range){0.0, 1e15, 0, "kg m/s"}, &c->momentum_ref));
  PABD_TRY(read_energy_ref(r, top, c));
  return read_metrics(r, top, c);
}

pabd_status pabd_case_load(const char *path, const char *const *overrides, int32_t override_count, pabd_case *out,
                           pabd_error *error) {
  char *text = NULL;
  size_t size = 0;
  cJSON *top = NULL;
  memset(out, 0, sizeof *out);
  if (error != NULL) error->text[0] = '\0';
  pabd_status status = read_file(path, &text, &size, error);
  if (status == PABD_OK) status = parse_json(path, text, size, &top, error);
  if (status == PABD_OK && pabd_scene_init(&out->scene) != PABD_OK) {
    status = pabd_fail(error, PABD_ERR_MEMORY, "%.120s: out of memory", path);
  }
  if (status == PABD_OK) {
    reader r = {.file = path, .error = error};
    status = read_case(&r, top, path, overrides, override_count, out);
    read_free(&r);
  }
  if (status == PABD_OK) hash_case(out, text, size);
  cJSON_Delete(top);
  free(text);
  if (status != PABD_OK) pabd_case_free(out);
  return status;
}

void pabd_case_free(pabd_case *c) {
  if (c == NULL) return;
  pabd_scene_free(&c->scene);
  memset(c, 0, sizeof *c);
}
