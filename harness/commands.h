/* The commands of pabd-bench. Each returns the exit code: 0 done, 1 an expectation failed, 2 bad input, 130
 * interrupted. */
#ifndef PABD_COMMANDS_H
#define PABD_COMMANDS_H

#include "cli.h"

extern const pabd_command pabd_command_list;         /* list.c */
extern const pabd_command pabd_command_describe;     /* describe.c */
extern const pabd_command pabd_command_run;          /* run.c */
extern const pabd_command pabd_command_determinism;  /* determinism.c */
extern const pabd_command pabd_command_export;       /* tools.c */
extern const pabd_command pabd_command_check;        /* tools.c */
extern const pabd_command pabd_command_report;       /* tools.c */
extern const pabd_command pabd_command_validate;     /* validate.c */
extern const pabd_command pabd_command_compare;      /* compare.c */
extern const pabd_command pabd_command_engine_check; /* engine_check.c */
extern const pabd_command pabd_command_wp;           /* wp.c */
extern const pabd_command pabd_command_figures;      /* figures.c */
extern const pabd_command pabd_command_perf_check;   /* perf_check.c */

/* Where things are; the same two options in every command that looks for them. */
#define PABD_PLACE_OPTIONS                                                                                 \
  {"root", "DIR", "project folder (holds cases/ and presets; default: found from the program's place)"}, { \
    "engines-dir", "DIR", "folder of engine shared objects (default: engines/ beside the program)"         \
  }

#endif
