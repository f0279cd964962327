/* The report: one self-contained page from the records of a results folder. Written by report*.c. */
#ifndef PABD_REPORT_H
#define PABD_REPORT_H

#include "pabd_status.h"

/* Reads <dir>/records and writes <dir>/report.html with its pictures and tables. `command_line`: shown at the foot. */
pabd_status pabd_report_write(const char *dir, const char *command_line, pabd_error *error);

#endif
