/* Growing text, HTML escaping and number formatting for the report.
 *
 * Running out of memory is sticky: the text is then marked failed, further calls do nothing, and the caller checks once
 * at the end. Texts made by pabd_text_escape, _format and _number live in the owner's arena until it is freed. */
#ifndef PABD_REPORT_TEXT_H
#define PABD_REPORT_TEXT_H

#include <stddef.h>

typedef struct pabd_text_block pabd_text_block; /* one allocation of the arena */

typedef struct pabd_text {
  char *data; /* NUL-terminated, or NULL while empty */
  size_t size, capacity;
  pabd_text_block *blocks;
  int failed;
} pabd_text;

void pabd_text_free(pabd_text *text);
void pabd_text_add(pabd_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pabd_text_add_bytes(pabd_text *text, const char *bytes, size_t size);
/* Arena strings. Never NULL: "" when memory is out (and the text is marked failed). */
const char *pabd_text_format(pabd_text *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *pabd_text_escape(pabd_text *arena, const char *raw); /* & < > " ' for HTML text and attributes */
/* A file name made of [a-z0-9_-] from any text; different texts may collide. */
const char *pabd_text_slug(pabd_text *arena, const char *raw);
/* `digits` significant digits for a reader: "0.0123", "1.2e-08", "12 300"; NAN is an en dash. */
const char *pabd_text_number(pabd_text *arena, double value, int digits);
/* The same with its unit: lengths below 0.1 m in mm (or um), times in ms; "1" and "-" print no unit. */
const char *pabd_text_quantity(pabd_text *arena, double value, const char *unit, int digits);

#endif
