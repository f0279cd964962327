/* Edit distance with swaps of neighbors (optimal string alignment), three rows of the table at a time. Words are cut at
 * WORD_MAX letters. */
#include "nearest.h"

#include <string.h>

#define WORD_MAX 64

static int smaller(int a, int b) {
  return a < b ? a : b;
}

static int edit_distance(const char *a, const char *b) {
  int la = (int)strnlen(a, WORD_MAX), lb = (int)strnlen(b, WORD_MAX);
  int rows[3][WORD_MAX + 1];
  int *before = rows[0], *above = rows[1], *row = rows[2];
  for (int j = 0; j <= lb; ++j) above[j] = before[j] = j;
  for (int i = 1; i <= la; ++i) {
    row[0] = i;
    for (int j = 1; j <= lb; ++j) {
      row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = smaller(row[j], before[j - 2] + 1);
    }
    int *free_row = before;
    before = above;
    above = row;
    row = free_row;
  }
  return above[lb];
}

const char *nearest(const char *word, const char *candidate, const char *best) {
  int length = (int)strnlen(candidate, WORD_MAX);
  int distance = edit_distance(word, candidate);
  if (distance > (length + 2) / 3 || distance >= length) return best;
  return best == NULL || distance < edit_distance(word, best) ? candidate : best;
}
