/* The command `wp`: runs the work-precision plan (harness/plans/wp.json) for the named cases and writes its page. It is
 * `run --plan wp` and `report` in one: resumable and interleaved like any other plan. */
#include <stdio.h>

#include "commands.h"
#include "report.h"

static int work_precision(const pabd_arguments *a) {
  static pabd_arguments run;
  pabd_error error = {""};
  char *texts[PABD_ARGUMENT_CAPACITY];
  const char *out = pabd_argument(a, "out"), *repeat = pabd_argument(a, "repeat"), *root = pabd_argument(a, "root"),
             *engines = pabd_argument(a, "engines-dir"), *wanted[PABD_ARGUMENT_CAPACITY];
  int count = 0;
  if (!out) out = "results/wp";
  const char *const fixed[][2] = {
      {"--plan", "wp"}, {"--out", out}, {"--repeat", repeat}, {"--root", root}, {"--engines-dir", engines}};
  for (size_t k = 0; k < sizeof fixed / sizeof *fixed; ++k)
    if (fixed[k][1]) texts[count++] = (char *)fixed[k][0], texts[count++] = (char *)fixed[k][1];
  int32_t given = pabd_argument_list(a, "engine", wanted, PABD_ARGUMENT_CAPACITY);
  for (int32_t k = 0; k < given && count + 2 < PABD_ARGUMENT_CAPACITY; ++k)
    texts[count++] = (char *)"--engine", texts[count++] = (char *)wanted[k];
  for (int32_t k = 0; k < a->word_count && count < PABD_ARGUMENT_CAPACITY; ++k) texts[count++] = (char *)a->words[k];
  if (pabd_arguments_parse(&pabd_command_run, count, texts, &run, &error) != PABD_OK) return pabd_complain(&error);
  run.command_line = a->command_line;
  int code = pabd_command_run.run(&run);
  if (code != 0) return code;
  if (pabd_report_write(out, a->command_line, &error) != PABD_OK) return pabd_complain(&error);
  printf("%s/report.html\n", out);
  return 0;
}

static const pabd_option work_precision_options[] = {
    {"engine", "PATTERN", "only these engines of the plan (NAME[:preset]), may be given often"},
    {"repeat", "N", "runs of each setting (default: the plan's)"},
    {"out", "DIR", "results folder (default results/wp)"},
    PABD_PLACE_OPTIONS,
    {NULL, NULL, NULL}};

const pabd_command pabd_command_wp = {
    "wp",
    "[CASE...] [--engine PATTERN]... [options]",
    "work-precision: error against frame time over each engine's knobs",
    "Runs every engine over its substeps and iterations on stack, chain, pendulum, slide and pile, and writes a page\n"
    "that answers: which is most exact at my frame time, and what does my accuracy cost? The settings are in\n"
    "harness/plans/wp.json; runs that are already there are skipped.\n\n"
    "Examples:\n"
    "  pabd-bench wp                                   everything (`make wp` also sets up all engines)\n"
    "  pabd-bench wp stack --engine 'pabd*' --engine 'bullet*'",
    work_precision_options,
    work_precision};
