/* See command_tools.h. */
#include "command_tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "files.h"

volatile sig_atomic_t pabd_stop_wanted;

static struct sigaction old_interrupt, old_terminate;

static void on_stop(int number) {
  (void)number;
  pabd_stop_wanted = 1;
}

void pabd_stop_watch(void) {
  struct sigaction action = {.sa_handler = on_stop};
  pabd_stop_wanted = 0;
  sigaction(SIGINT, &action, &old_interrupt);
  sigaction(SIGTERM, &action, &old_terminate);
}

void pabd_stop_unwatch(void) {
  sigaction(SIGINT, &old_interrupt, NULL);
  sigaction(SIGTERM, &old_terminate, NULL);
}

pabd_status pabd_write_text(const char *target, const char *text, pabd_error *error) {
  if (strcmp(target, "-") != 0) return pabd_file_write_whole(target, text, strlen(text), error);
  if (fputs(text, stdout) < 0 || fflush(stdout) != 0)
    return pabd_fail(error, PABD_ERR_IO, "cannot write to standard output: %s", strerror(errno));
  return PABD_OK;
}

pabd_status pabd_write_json(const char *target, const cJSON *tree, pabd_error *error) {
  char *text = tree ? cJSON_Print(tree) : NULL;
  if (!text) return pabd_fail(error, PABD_ERR_MEMORY, "%s: out of memory for the JSON", target);
  pabd_status status = pabd_write_text(target, text, error);
  if (status == PABD_OK && strcmp(target, "-") == 0) status = pabd_write_text(target, "\n", error);
  cJSON_free(text);
  return status;
}

int pabd_run_from(const pabd_arguments *from, const char *out, const char *const (*options)[2], int32_t option_count,
                  const char *const *cases, int32_t case_count, const char *const *engines, int32_t engine_count) {
  static pabd_arguments run;
  pabd_error error = {""};
  const char *texts[PABD_ARGUMENT_CAPACITY];
  const char *const places[][2] = {
      {"--out", out}, {"--root", pabd_argument(from, "root")}, {"--engines-dir", pabd_argument(from, "engines-dir")}};
  int32_t place_count = (int32_t)(sizeof places / sizeof *places), count = 0;
  if (2 * (place_count + option_count + engine_count) + case_count > PABD_ARGUMENT_CAPACITY) {
    pabd_fail(&error, PABD_ERR_INPUT, "too many cases and engines for one run (at most %d words)",
              PABD_ARGUMENT_CAPACITY);
    return pabd_complain(&error);
  }
  for (int32_t k = 0; k < place_count + option_count; ++k) {
    const char *const *pair = k < place_count ? places[k] : options[k - place_count];
    if (pair[1]) texts[count++] = pair[0], texts[count++] = pair[1];
  }
  for (int32_t k = 0; k < engine_count; ++k) texts[count++] = "--engine", texts[count++] = engines[k];
  for (int32_t k = 0; k < case_count; ++k) texts[count++] = cases[k];
  if (pabd_arguments_parse(&pabd_command_run, count, (char **)texts, &run, &error) != PABD_OK)
    return pabd_complain(&error);
  run.command_line = from->command_line;
  return pabd_command_run.run(&run);
}
