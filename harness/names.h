/* Names as people type them: shell globs, and the nearest known name for a misspelt one. */
#ifndef PABD_NAMES_H
#define PABD_NAMES_H

#include <stdint.h>

/* Does `text` match the shell pattern (* ? [abc])? Without a pattern character: equal. */
int pabd_glob_match(const char *pattern, const char *text);
int pabd_is_glob(const char *text);
/* Does the comma-separated list contain a pattern that matches? Spaces around entries do not count. */
int pabd_list_match(const char *list, const char *text);

/* Optimal string alignment distance: insertions, deletions, replacements and swaps of neighbors. */
int32_t pabd_edit_distance(const char *a, const char *b);
/* The known name that was probably meant, or NULL when none is near: a prefix, a part, or few typing errors apart. */
const char *pabd_nearest(const char *word, const char *const *names, int32_t count);

#endif
