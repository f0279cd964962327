/* The command `wp`: runs the work-precision plan (harness/plans/wp.json) for the named cases and writes its page. It is
 * `run --plan wp` and `report` in one: resumable and interleaved like any other plan. */
#include <stdio.h>

#include "command_tools.h"
#include "commands.h"
#include "report.h"

static int work_precision(const pabd_arguments *a) {
  pabd_error error = {""};
  const char *out = pabd_argument(a, "out"), *engines[PABD_ARGUMENT_CAPACITY];
  if (!out) out = "results/wp";
  const char *const options[][2] = {{"--plan", "wp"}, {"--repeat", pabd_argument(a, "repeat")}};
  int32_t engine_count = pabd_argument_list(a, "engine", engines, PABD_ARGUMENT_CAPACITY);
  int code = pabd_run_from(a, out, options, 2, a->words, a->word_count, engines, engine_count);
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
