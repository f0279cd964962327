/* Command lines: options from a table, help from the same table, and the quoted line for records. */
#ifndef PABD_CLI_H
#define PABD_CLI_H

#include <stddef.h>
#include <stdint.h>

#include "pabd_status.h"

#define PABD_ARGUMENT_CAPACITY 512

typedef struct pabd_option {
  const char *name;     /* without the dashes */
  const char *argument; /* its name in the help, NULL for a switch; "[N]": may be left out, and is given as --name=N */
  const char *help;
} pabd_option;

struct pabd_arguments;

typedef struct pabd_command {
  const char *name;
  const char *synopsis;                               /* arguments, for the usage line */
  const char *summary;                                /* one line for the overview */
  const char *help;                                   /* text and examples */
  const pabd_option *options;                         /* ends with a NULL name */
  int (*run)(const struct pabd_arguments *arguments); /* returns the exit code */
} pabd_command;

typedef struct pabd_arguments {
  const pabd_command *command;
  const char *command_line; /* quoted, as typed */
  int32_t word_count;
  const char *words[PABD_ARGUMENT_CAPACITY]; /* arguments that are no options */
  int32_t option_count;
  struct {
    const pabd_option *option;
    const char *value; /* "" for a switch */
  } options[PABD_ARGUMENT_CAPACITY];
} pabd_arguments;

/* Parses what follows the command's name. Unknown options: PABD_ERR_INPUT with the nearest. */
pabd_status pabd_arguments_parse(const pabd_command *command, int count, char **texts, pabd_arguments *out,
                                 pabd_error *error);
/* Last value given, or NULL. */
const char *pabd_argument(const pabd_arguments *arguments, const char *option);
/* All values given, in order; returns the count. */
int32_t pabd_argument_list(const pabd_arguments *arguments, const char *option, const char **values, int32_t capacity);
/* A number in low .. high, or `absent` when the option was not given. */
pabd_status pabd_argument_int(const pabd_arguments *arguments, const char *option, int64_t low, int64_t high,
                              int64_t absent, int64_t *out, pabd_error *error);
pabd_status pabd_argument_real(const pabd_arguments *arguments, const char *option, double low, double high,
                               double absent, double *out, pabd_error *error);
/* "A..B", "A" or "1,2,4" of positive whole numbers. */
pabd_status pabd_argument_counts(const pabd_arguments *arguments, const char *option, int32_t *values, int32_t capacity,
                                 int32_t *count, pabd_error *error);

void pabd_print_command_help(const pabd_command *command);
/* Prints "pabd-bench: <text>" to stderr and returns the exit code 2. */
int pabd_complain(const pabd_error *error);
/* The command line with shell quotes where they are needed. */
void pabd_quote_command(int count, char **texts, char *out, size_t size);

#endif
