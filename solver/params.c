/* Defaults, parser and table of the parameters, all from params.def. */
#include "params.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pabd_params pabd_params_default(void) {
  pabd_params p;
#define PARAM_INT(name, initial, low, high, unit, meaning, source) p.name = (initial);
#define PARAM_REAL(name, initial, low, high, unit, meaning, source) p.name = (initial);
#define PARAM_CHOICE(name, initial, choices, meaning, source) p.name = (initial);
#include "params.def"
#undef PARAM_INT
#undef PARAM_REAL
#undef PARAM_CHOICE
  return p;
}

typedef enum kind { KIND_INT, KIND_REAL, KIND_CHOICE } kind;
typedef struct row {
  kind kind;
  size_t offset;
  double low, high;
} row;

static const row rows[] = {
#define PARAM_INT(name, initial, low, high, unit, meaning, source) {KIND_INT, offsetof(pabd_params, name), low, high},
#define PARAM_REAL(name, initial, low, high, unit, meaning, source) {KIND_REAL, offsetof(pabd_params, name), low, high},
#define PARAM_CHOICE(name, initial, choices, meaning, source) {KIND_CHOICE, offsetof(pabd_params, name), 0, 0},
#include "params.def"
#undef PARAM_INT
#undef PARAM_REAL
#undef PARAM_CHOICE
};
static const pabd_param_info infos[] = {
#define PARAM_INT(name, initial, low, high, unit, meaning, source) \
  {#name, "int", #initial, #low " .. " #high, unit, meaning, source},
#define PARAM_REAL(name, initial, low, high, unit, meaning, source) \
  {#name, "real", #initial, #low " .. " #high, unit, meaning, source},
#define PARAM_CHOICE(name, initial, choices, meaning, source) \
  {#name, "choice", #initial, choices, "1", meaning, source},
#include "params.def"
#undef PARAM_INT
#undef PARAM_REAL
#undef PARAM_CHOICE
};
enum { ROW_COUNT = (int)(sizeof rows / sizeof rows[0]) };

int32_t pabd_params_count(void) {
  return ROW_COUNT;
}

/* Text of entry `index` of a list "a | b | c" into buffer; 0 when there is no such entry. */
static int choice_text(const char *choices, int32_t index, char *buffer, size_t size) {
  const char *at = choices;
  for (int32_t i = 0; at; ++i) {
    const char *end = strstr(at, " | ");
    size_t length = end ? (size_t)(end - at) : strlen(at);
    if (i == index) {
      snprintf(buffer, size, "%.*s", (int)length, at);
      return 1;
    }
    at = end ? end + 3 : NULL;
  }
  return 0;
}

const pabd_param_info *pabd_params_info(int32_t index) {
  /* the default of a choice is shown as its word */
  static pabd_param_info shown[ROW_COUNT];
  static char words[ROW_COUNT][32];
  if (index < 0 || index >= ROW_COUNT) return NULL;
  shown[index] = infos[index];
  if (rows[index].kind == KIND_CHOICE) {
    choice_text(infos[index].range, (int32_t)strtol(infos[index].initial, NULL, 10), words[index], sizeof words[index]);
    shown[index].initial = words[index];
  }
  return &shown[index];
}

/* Edit distance, for "did you mean". */
static int distance(const char *a, const char *b) {
  int la = (int)strlen(a), lb = (int)strlen(b), line[64];
  if (la > 62 || lb > 62) return 99;
  for (int j = 0; j <= lb; ++j) line[j] = j;
  for (int i = 1; i <= la; ++i) {
    int diagonal = line[0];
    line[0] = i;
    for (int j = 1; j <= lb; ++j) {
      int keep = diagonal + (a[i - 1] != b[j - 1]), insert = line[j - 1] + 1, erase = line[j] + 1;
      diagonal = line[j];
      line[j] = keep < insert ? (keep < erase ? keep : erase) : (insert < erase ? insert : erase);
    }
  }
  return line[lb];
}

pabd_status pabd_params_set(pabd_params *params, const char *key, const char *value, pabd_error *error) {
  int32_t best = 0;
  for (int32_t i = 0; i < ROW_COUNT; ++i) {
    if (strcmp(infos[i].name, key) != 0) {
      if (distance(infos[i].name, key) < distance(infos[best].name, key)) best = i;
      continue;
    }
    void *field = (char *)params + rows[i].offset;
    if (rows[i].kind == KIND_CHOICE) {
      char word[64];
      for (int32_t k = 0; choice_text(infos[i].range, k, word, sizeof word); ++k) {
        if (strcmp(word, value) == 0) {
          *(int32_t *)field = k;
          return PABD_OK;
        }
      }
      return pabd_fail(error, PABD_ERR_INPUT, "%s = \"%s\" must be one of: %s", key, value, infos[i].range);
    }
    char *end;
    errno = 0;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(number))
      return pabd_fail(error, PABD_ERR_INPUT, "%s = \"%s\" is not a number (allowed: %s %s)", key, value,
                       infos[i].range, infos[i].unit);
    if (rows[i].kind == KIND_INT && number != floor(number))
      return pabd_fail(error, PABD_ERR_INPUT, "%s = %s must be an integer in %s", key, value, infos[i].range);
    if (number < rows[i].low || number > rows[i].high)
      return pabd_fail(error, PABD_ERR_INPUT, "%s = %s is outside %s [%s]", key, value, infos[i].range, infos[i].unit);
    if (rows[i].kind == KIND_INT)
      *(int32_t *)field = (int32_t)number;
    else
      *(double *)field = number;
    return PABD_OK;
  }
  return pabd_fail(error, PABD_ERR_INPUT, "unknown parameter \"%s\"; nearest: \"%s\"", key, infos[best].name);
}

void pabd_params_get(const pabd_params *params, int32_t index, char *buffer, int32_t size) {
  if (size <= 0) return;
  buffer[0] = '\0';
  if (index < 0 || index >= ROW_COUNT) return;
  const void *field = (const char *)params + rows[index].offset;
  if (rows[index].kind == KIND_CHOICE)
    choice_text(infos[index].range, *(const int32_t *)field, buffer, (size_t)size);
  else if (rows[index].kind == KIND_INT)
    snprintf(buffer, (size_t)size, "%d", *(const int32_t *)field);
  else
    snprintf(buffer, (size_t)size, "%.9g", *(const double *)field);
}
