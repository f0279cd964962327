/* Command lines: options from a table, help from the same table, and the quoted line for records. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

static const pabd_option help_option = {"help", NULL, "this text"};

static const pabd_option *find_option(const pabd_command *command, const char *name, size_t length) {
  for (const pabd_option *option = command->options; option->name; ++option) {
    if (strlen(option->name) == length && strncmp(option->name, name, length) == 0) return option;
  }
  if (strncmp("help", name, length) == 0 && length == 4) return &help_option;
  return NULL;
}

static pabd_status unknown_option(const pabd_command *command, const char *text, pabd_error *error) {
  const char *known[64];
  char word[64];
  int32_t count = 0;
  for (const pabd_option *option = command->options; option->name && count < 64; ++option)
    known[count++] = option->name;
  snprintf(word, sizeof word, "%.*s", (int)strcspn(text + 2, "="), text + 2);
  const char *near = pabd_nearest(word, known, count);
  return pabd_fail(error, PABD_ERR_INPUT, "%s: unknown option '%.80s'%s%s (pabd-bench %s --help)", command->name, text,
                   near ? "; nearest: --" : "", near ? near : "", command->name);
}

pabd_status pabd_arguments_parse(const pabd_command *command, int count, char **texts, pabd_arguments *out,
                                 pabd_error *error) {
  memset(out, 0, sizeof *out);
  out->command = command;
  int only_words = 0;
  for (int k = 0; k < count; ++k) {
    const char *text = texts[k];
    if (out->word_count == PABD_ARGUMENT_CAPACITY || out->option_count == PABD_ARGUMENT_CAPACITY)
      return pabd_fail(error, PABD_ERR_INPUT, "%s: more than %d arguments; use a plan file", command->name,
                       PABD_ARGUMENT_CAPACITY);
    if (only_words || strcmp(text, "-") == 0 || text[0] != '-') {
      out->words[out->word_count++] = text;
      continue;
    }
    if (strcmp(text, "--") == 0) {
      only_words = 1;
      continue;
    }
    if (strcmp(text, "-h") == 0) text = "--help";
    size_t length = strncmp(text, "--", 2) == 0 ? strcspn(text + 2, "=") : 0;
    const pabd_option *option = length ? find_option(command, text + 2, length) : NULL;
    if (!option) return unknown_option(command, text, error);
    const char *value = text[2 + length] == '=' ? text + 3 + length : NULL;
    int is_optional = option->argument && option->argument[0] == '[';
    if (!option->argument && value)
      return pabd_fail(error, PABD_ERR_INPUT, "%s: --%s takes no value", command->name, option->name);
    if (option->argument && !value && !is_optional) {
      if (k + 1 == count)
        return pabd_fail(error, PABD_ERR_INPUT, "%s: --%s needs a value: %s", command->name, option->name,
                         option->argument);
      value = texts[++k];
    }
    out->options[out->option_count].option = option;
    out->options[out->option_count++].value = value ? value : "";
  }
  return PABD_OK;
}

const char *pabd_argument(const pabd_arguments *arguments, const char *option) {
  for (int32_t k = arguments->option_count - 1; k >= 0; --k) {
    if (strcmp(arguments->options[k].option->name, option) == 0) return arguments->options[k].value;
  }
  return NULL;
}

int32_t pabd_argument_list(const pabd_arguments *arguments, const char *option, const char **values, int32_t capacity) {
  int32_t count = 0;
  for (int32_t k = 0; k < arguments->option_count && count < capacity; ++k) {
    if (strcmp(arguments->options[k].option->name, option) == 0) values[count++] = arguments->options[k].value;
  }
  return count;
}

pabd_status pabd_argument_int(const pabd_arguments *arguments, const char *option, int64_t low, int64_t high,
                              int64_t absent, int64_t *out, pabd_error *error) {
  const char *text = pabd_argument(arguments, option);
  *out = absent;
  if (!text) return PABD_OK;
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno == ERANGE || value < low || value > high)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: --%s=%.60s must be a whole number, %lld .. %lld",
                     arguments->command->name, option, text, (long long)low, (long long)high);
  *out = value;
  return PABD_OK;
}

pabd_status pabd_argument_real(const pabd_arguments *arguments, const char *option, double low, double high,
                               double absent, double *out, pabd_error *error) {
  const char *text = pabd_argument(arguments, option);
  *out = absent;
  if (!text) return PABD_OK;
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= low && value <= high))
    return pabd_fail(error, PABD_ERR_INPUT, "%s: --%s=%.60s must be a number, %g .. %g", arguments->command->name,
                     option, text, low, high);
  *out = value;
  return PABD_OK;
}

pabd_status pabd_argument_counts(const pabd_arguments *arguments, const char *option, int32_t *values, int32_t capacity,
                                 int32_t *count, pabd_error *error) {
  const char *text = pabd_argument(arguments, option), *at = text;
  *count = 0;
  if (!text) return PABD_OK;
  int is_range = strstr(text, "..") != NULL;
  for (;;) {
    char *end;
    long value = strtol(at, &end, 10);
    if (end == at || value < 1 || value > 1000000 || *count == capacity) break;
    values[(*count)++] = (int32_t)value;
    if (*end == 0 && (!is_range || *count == 2)) return PABD_OK;
    if (is_range ? strncmp(end, "..", 2) != 0 : *end != ',') break;
    at = end + (is_range ? 2 : 1);
  }
  *count = 0;
  return pabd_fail(error, PABD_ERR_INPUT, "%s: --%s=%.60s must be %s", arguments->command->name, option, text,
                   is_range ? "A..B with A, B >= 1" : "whole numbers >= 1, separated by commas");
}

void pabd_print_command_help(const pabd_command *command) {
  printf("usage: pabd-bench %s %s\n\n%s\n", command->name, command->synopsis, command->help);
  printf("\nOptions:\n");
  for (const pabd_option *option = command->options;; ++option) {
    const pabd_option *shown = option->name ? option : &help_option;
    char left[64];
    if (shown->argument && shown->argument[0] == '[')
      snprintf(left, sizeof left, "--%s[=%.*s]", shown->name, (int)strlen(shown->argument) - 2, shown->argument + 1);
    else
      snprintf(left, sizeof left, "--%s%s%s", shown->name, shown->argument ? " " : "",
               shown->argument ? shown->argument : "");
    printf("  %-26s %s\n", left, shown->help);
    if (!option->name) break;
  }
}

int pabd_complain(const pabd_error *error) {
  fflush(stdout);
  fprintf(stderr, "pabd-bench: %s\n", error->text);
  return 2;
}

void pabd_quote_command(int count, char **texts, char *out, size_t size) {
  size_t used = 0;
  out[0] = 0;
  for (int k = 0; k < count && used + 4 < size; ++k) {
    const char *text = texts[k];
    if (k == 0) {
      const char *slash = strrchr(text, '/');
      text = slash ? slash + 1 : text; /* the program, not where it happens to lie */
    }
    int is_plain =
        text[0] &&
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%") == strlen(text);
    used += (size_t)snprintf(out + used, size - used, "%s%s", k ? " " : "", is_plain ? "" : "'");
    for (; *text && used + 6 < size; ++text) {
      if (*text == '\'')
        used += (size_t)snprintf(out + used, size - used, "'\\''");
      else
        out[used++] = *text;
    }
    if (!is_plain) out[used++] = '\'';
    out[used] = 0;
  }
}
