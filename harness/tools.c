/* Small commands on results: export a trajectory, check records, write the report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "files.h"
#include "record_check.h"
#include "report.h"
#include "trajectory.h"

static int export_trajectory(const pabd_arguments *arguments) {
  pabd_error error = {""};
  pabd_trajectory trajectory;
  const char *target = pabd_argument(arguments, "csv");
  if (arguments->word_count != 1 || !target) {
    pabd_fail(&error, PABD_ERR_INPUT, "export: needs one trajectory file and --csv FILE (or --csv -)");
    return pabd_complain(&error);
  }
  if (pabd_trajectory_read(arguments->words[0], &trajectory, &error) != PABD_OK) return pabd_complain(&error);
  pabd_status status;
  if (strcmp(target, "-") == 0) {
    status = pabd_trajectory_write_csv(&trajectory, stdout, &error);
  } else {
    /* Through a hidden file, so that a table is whole or absent. */
    pabd_new_file file;
    status = pabd_new_file_open(&file, target, &error);
    FILE *stream = status == PABD_OK ? fdopen(dup(file.descriptor), "w") : NULL;
    if (status == PABD_OK && !stream) status = pabd_fail(&error, PABD_ERR_IO, "%s: cannot write", target);
    if (stream) {
      status = pabd_trajectory_write_csv(&trajectory, stream, &error);
      if (fclose(stream) != 0 && status == PABD_OK) status = pabd_fail(&error, PABD_ERR_IO, "%s: cannot write", target);
    }
    if (status == PABD_OK)
      status = pabd_new_file_commit(&file, &error);
    else
      pabd_new_file_abandon(&file);
  }
  pabd_trajectory_free(&trajectory);
  return status == PABD_OK ? 0 : pabd_complain(&error);
}

static const pabd_option export_options[] = {{"csv", "FILE", "table to write; - for standard output"},
                                             {NULL, NULL, NULL}};
const pabd_command pabd_command_export = {
    "export",
    "TRAJECTORY --csv FILE|-",
    "write a recorded trajectory as a table",
    "Writes the poses of a trajectory (a .traj file beside a record, see run --trajectory) as CSV: frame, time, body,\n"
    "position and quaternion (w, x, y, z), one row a body and sampled frame.\n\n"
    "Example:\n"
    "  pabd-bench export results/local/records/stack__pabd-jacobi__r0.traj --csv stack.csv",
    export_options,
    export_trajectory};

/* Checks one file; 1 when it is good. */
static int check_file(const char *path) {
  pabd_error error = {""};
  if (pabd_record_check_file(path, &error) == PABD_OK) return 1;
  printf("%s\n", error.text);
  return 0;
}

static int check_records(const pabd_arguments *arguments) {
  pabd_error error = {""};
  int32_t good = 0, bad = 0;
  for (int32_t k = 0; k < arguments->word_count; ++k) {
    const char *path = arguments->words[k];
    char folder[PABD_PATH_SIZE], file[PABD_PATH_SIZE], **names;
    int32_t count;
    if (!pabd_is_folder(path)) {
      *(check_file(path) ? &good : &bad) += 1;
      continue;
    }
    pabd_path_format(folder, "%s/records", path);
    if (!pabd_is_folder(folder)) pabd_path_format(folder, "%s", path);
    if (pabd_list_folder(folder, ".json", &names, &count, &error) != PABD_OK) return pabd_complain(&error);
    for (int32_t j = 0; j < count; ++j) {
      pabd_path_format(file, "%s/%s.json", folder, names[j]);
      *(check_file(file) ? &good : &bad) += 1;
    }
    pabd_free_names(names, count);
  }
  if (good + bad == 0) {
    pabd_fail(&error, PABD_ERR_INPUT, "check: no records found; name a results folder or record files");
    return pabd_complain(&error);
  }
  printf("%d good, %d bad\n", good, bad);
  return bad ? 1 : 0;
}

static const pabd_option no_options[] = {{NULL, NULL, NULL}};
const pabd_command pabd_command_check = {"check",
                                         "DIR|FILE...",
                                         "check records against the schema",
                                         "Checks records (all of DIR/records, or single files) against schema 1 "
                                         "(harness/README.md). Prints one line for each\n"
                                         "bad record and a count; exit code 1 when one is bad.",
                                         no_options,
                                         check_records};

static int write_report(const pabd_arguments *arguments) {
  pabd_error error = {""};
  if (arguments->word_count != 1) {
    pabd_fail(&error, PABD_ERR_INPUT, "report: needs one results folder");
    return pabd_complain(&error);
  }
  if (pabd_report_write(arguments->words[0], arguments->command_line, &error) != PABD_OK) return pabd_complain(&error);
  printf("%s/report.html\n", arguments->words[0]);
  return 0;
}

const pabd_command pabd_command_report = {"report",
                                          "DIR",
                                          "write DIR/report.html from the records in DIR",
                                          "Reads DIR/records and writes one self-contained page, DIR/report.html: the "
                                          "matrix of cases and engines, then each\n"
                                          "case with curves and tables. Pictures and tables lie beside it.\n\n"
                                          "Example:\n"
                                          "  pabd-bench report results/bench",
                                          no_options,
                                          write_report};
