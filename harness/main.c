/* pabd-bench: runs canonical cases of rigid multibody dynamics on many engines and judges them all alike. This file
 * only dispatches; each command has a file of its own. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "names.h"

static const pabd_command *const commands[] = {
    &pabd_command_list,       &pabd_command_describe,     &pabd_command_run,   &pabd_command_determinism,
    &pabd_command_report,     &pabd_command_export,       &pabd_command_check, &pabd_command_validate,
    &pabd_command_compare,    &pabd_command_engine_check, &pabd_command_wp,    &pabd_command_figures,
    &pabd_command_perf_check,
};
#define COMMAND_COUNT ((int32_t)(sizeof commands / sizeof commands[0]))

static void print_overview(FILE *out) {
  fprintf(out,
          "usage: pabd-bench COMMAND ...\n\n"
          "Runs rigid body cases (stacks, chains, piles, ...) on physics engines; a judge that no engine shares code\n"
          "with measures what came out; every run leaves one JSON record.\n\nCommands:\n");
  for (int32_t k = 0; k < COMMAND_COUNT; ++k) fprintf(out, "  %-12s %s\n", commands[k]->name, commands[k]->summary);
  fprintf(out,
          "\nTo begin with:\n"
          "  pabd-bench list                                        what there is\n"
          "  pabd-bench describe stack                              what a case claims, and its parameters\n"
          "  pabd-bench run stack --engine pabd --engine bullet     run, into results/local\n"
          "  pabd-bench report results/local                        the page with pictures and tables\n"
          "  pabd-bench run --help                                  all about runs\n");
}

int main(int count, char **texts) {
  static char command_line[4096];
  static pabd_arguments arguments;
  pabd_error error = {""};
  pabd_quote_command(count, texts, command_line, sizeof command_line);
  if (count < 2) {
    print_overview(stderr);
    return 2;
  }
  int wants_help = strcmp(texts[1], "help") == 0 || strcmp(texts[1], "--help") == 0 || strcmp(texts[1], "-h") == 0;
  if (wants_help && count == 2) {
    print_overview(stdout);
    return 0;
  }
  const char *name = wants_help ? texts[2] : texts[1], *known[COMMAND_COUNT];
  const pabd_command *command = NULL;
  for (int32_t k = 0; k < COMMAND_COUNT; ++k) {
    known[k] = commands[k]->name;
    if (strcmp(known[k], name) == 0) command = commands[k];
  }
  if (!command) {
    const char *near = pabd_nearest(name, known, COMMAND_COUNT);
    pabd_fail(&error, PABD_ERR_INPUT, "no command '%.80s'%s%s (pabd-bench --help)", name, near ? "; nearest: " : "",
              near ? near : "");
    return pabd_complain(&error);
  }
  if (wants_help) {
    pabd_print_command_help(command);
    return 0;
  }
  if (pabd_arguments_parse(command, count - 2, texts + 2, &arguments, &error) != PABD_OK) return pabd_complain(&error);
  arguments.command_line = command_line;
  if (pabd_argument(&arguments, "help")) {
    pabd_print_command_help(command);
    return 0;
  }
  return command->run(&arguments);
}
