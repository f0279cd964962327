/* Names as people type them: shell globs, and the nearest known name for a misspelt one. */
#include "names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define WORD_SIZE 64

int pabd_is_glob(const char *text) {
  return strpbrk(text, "*?[") != NULL;
}

int pabd_glob_match(const char *pattern, const char *text) {
  return fnmatch(pattern, text, 0) == 0;
}

int pabd_list_match(const char *list, const char *text) {
  char entry[256];
  while (*list) {
    size_t length = strcspn(list, ",");
    const char *start = list;
    list += length + (list[length] == ',');
    while (length && isspace((unsigned char)*start)) ++start, --length;
    while (length && isspace((unsigned char)start[length - 1])) --length;
    if (length == 0 || length >= sizeof entry) continue;
    memcpy(entry, start, length);
    entry[length] = 0;
    if (pabd_glob_match(entry, text)) return 1;
  }
  return 0;
}

static int32_t least(int32_t a, int32_t b) {
  return a < b ? a : b;
}

int32_t pabd_edit_distance(const char *a, const char *b) {
  int32_t row[3][WORD_SIZE + 1]; /* the last three rows of the distance table */
  size_t length_a = strnlen(a, WORD_SIZE), length_b = strnlen(b, WORD_SIZE);
  for (size_t k = 0; k <= length_b; ++k) row[0][k] = (int32_t)k;
  for (size_t i = 1; i <= length_a; ++i) {
    int32_t *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
    now[0] = (int32_t)i;
    for (size_t k = 1; k <= length_b; ++k) {
      int same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[k - 1]);
      now[k] = least(last[k - 1] + !same, least(last[k], now[k - 1]) + 1);
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) now[k] = least(now[k], before[k - 2] + 1);
    }
  }
  return row[length_a % 3][length_b];
}

const char *pabd_nearest(const char *word, const char *const *names, int32_t count) {
  const char *best = NULL;
  int32_t best_score = INT32_MAX;
  size_t length = strlen(word);
  if (length == 0) return NULL;
  for (int32_t k = 0; k < count; ++k) {
    int32_t distance = pabd_edit_distance(word, names[k]);
    /* A beginning or a part of a longer name is a better guess than letters changed: "pend" means "pendulum". */
    int is_part = length >= 3 && strstr(names[k], word) != NULL;
    int32_t score = is_part ? (strncmp(names[k], word, length) == 0 ? 0 : 1) : distance;
    if (!is_part && distance > 1 + (int32_t)length / 3) continue;
    if (score < best_score) best_score = score, best = names[k];
  }
  return best;
}
