/* Growing text, HTML escaping and number formatting for the report. See report_text.h. */
#include "report_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pabd_text_block {
  pabd_text_block *next;
  char bytes[];
};

void pabd_text_free(pabd_text *text) {
  if (!text) return;
  while (text->blocks) {
    pabd_text_block *next = text->blocks->next;
    free(text->blocks);
    text->blocks = next;
  }
  free(text->data);
  *text = (pabd_text){0};
}

void pabd_text_add_bytes(pabd_text *text, const char *bytes, size_t size) {
  if (text->failed) return;
  if (text->size + size + 1 > text->capacity) {
    size_t capacity = text->capacity ? text->capacity : 4096;
    while (capacity < text->size + size + 1) capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
      text->failed = 1;
      return;
    }
    text->data = data;
    text->capacity = capacity;
  }
  memcpy(text->data + text->size, bytes, size);
  text->size += size;
  text->data[text->size] = 0;
}

void pabd_text_add(pabd_text *text, const char *format, ...) {
  char small[1024];
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(small, sizeof small, format, arguments);
  va_end(arguments);
  if (length >= 0 && (size_t)length < sizeof small) {
    pabd_text_add_bytes(text, small, (size_t)length);
  } else if (length >= 0) {
    char *large = malloc((size_t)length + 1);
    if (large) {
      vsnprintf(large, (size_t)length + 1, format, again);
      pabd_text_add_bytes(text, large, (size_t)length);
      free(large);
    } else {
      text->failed = 1;
    }
  }
  va_end(again);
}

static char *arena_bytes(pabd_text *arena, size_t size) {
  pabd_text_block *block = malloc(sizeof *block + size);
  if (!block) {
    arena->failed = 1;
    return NULL;
  }
  block->next = arena->blocks;
  arena->blocks = block;
  return block->bytes;
}

const char *pabd_text_format(pabd_text *arena, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char *bytes = length < 0 ? NULL : arena_bytes(arena, (size_t)length + 1);
  if (bytes) vsnprintf(bytes, (size_t)length + 1, format, again);
  va_end(again);
  return bytes ? bytes : "";
}

const char *pabd_text_escape(pabd_text *arena, const char *raw) {
  if (!raw) return "";
  size_t size = strlen(raw);
  char *bytes = arena_bytes(arena, 6 * size + 1);
  if (!bytes) return "";
  char *out = bytes;
  for (const char *c = raw; *c; ++c) {
    const char *entity = *c == '&'    ? "&amp;"
                         : *c == '<'  ? "&lt;"
                         : *c == '>'  ? "&gt;"
                         : *c == '"'  ? "&quot;"
                         : *c == '\'' ? "&#39;"
                                      : NULL;
    if (entity) {
      out = stpcpy(out, entity);
    } else if ((unsigned char)*c >= 32 || *c == '\n' || *c == '\t') { /* control characters are not allowed in HTML */
      *out++ = *c;
    }
  }
  *out = 0;
  return bytes;
}

const char *pabd_text_slug(pabd_text *arena, const char *raw) {
  size_t size = strlen(raw);
  char *bytes = arena_bytes(arena, size + 2);
  if (!bytes) return "";
  char *out = bytes;
  for (const char *c = raw; *c; ++c) {
    char lower = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    int plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (!plain && (lower == '.' || lower == '-')) plain = 1;
    if (lower == '.') lower = 'p';
    if (plain)
      *out++ = lower;
    else if (out > bytes && out[-1] != '_')
      *out++ = '_';
  }
  while (out > bytes && out[-1] == '_') --out;
  if (out == bytes) *out++ = '_';
  *out = 0;
  return bytes;
}

const char *pabd_text_number(pabd_text *arena, double value, int digits) {
  if (isnan(value)) return "\xE2\x80\x93";
  if (isinf(value)) return value > 0 ? "\xE2\x88\x9E" : "\xE2\x88\x92\xE2\x88\x9E";
  if (value == 0) return "0";
  double size = fabs(value);
  if (size >= 1e7 || size < 1e-4) return pabd_text_format(arena, "%.*e", digits - 1, value);
  /* Rounded to the wanted digits first, so that 9.996 with three digits becomes 10.0 and not 10.00. */
  char rounded[40];
  snprintf(rounded, sizeof rounded, "%.*e", digits - 1, value);
  value = strtod(rounded, NULL);
  int exponent = (int)floor(log10(fabs(value)) + 1e-9);
  int decimals = digits - 1 - exponent;
  if (decimals < 0) decimals = 0;
  char plain[64], grouped[80];
  snprintf(plain, sizeof plain, "%.*f", decimals, value);
  /* A narrow space between thousands from 10 000 on. */
  const char *dot = strchr(plain, '.');
  int whole = (int)(dot ? dot - plain : (long)strlen(plain)), first = plain[0] == '-' ? 1 : 0;
  if (whole - first < 5) return pabd_text_format(arena, "%s", plain);
  char *out = grouped;
  for (int k = 0; plain[k]; ++k) {
    if (k < whole && k > first && (whole - k) % 3 == 0) out = stpcpy(out, "\xE2\x80\xAF");
    *out++ = plain[k];
  }
  *out = 0;
  return pabd_text_format(arena, "%s", grouped);
}

const char *pabd_text_quantity(pabd_text *arena, double value, const char *unit, int digits) {
  double size = fabs(value);
  if (isnan(value)) return pabd_text_number(arena, value, digits);
  if (strcmp(unit, "m") == 0 && size < 0.1 && size > 0) {
    if (size < 1e-5)
      return pabd_text_format(arena, "%s\xC2\xA0\xC2\xB5m", pabd_text_number(arena, value * 1e6, digits));
    return pabd_text_format(arena, "%s\xC2\xA0mm", pabd_text_number(arena, value * 1e3, digits));
  }
  if (!unit[0] || strcmp(unit, "1") == 0 || strcmp(unit, "-") == 0) return pabd_text_number(arena, value, digits);
  return pabd_text_format(arena, "%s\xC2\xA0%s", pabd_text_number(arena, value, digits), unit);
}
