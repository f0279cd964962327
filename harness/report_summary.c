/* The summary: cells over starts and repeats, and the matrix of cases and engines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_internal.h"

pabd_report_cell pabd_report_cell_of(pabd_report *report, const pabd_report_row *row, int variant,
                                     const char *error_key) {
  pabd_report_cell cell = {
      .worst = PABD_OUTCOME_NA, .end = NAN, .error_worst = NAN, .error_unit = "", .better = "info"};
  int capacity = 0;
  for (int k = 0; k < row->instance_count; ++k) {
    const pabd_report_run *run = pabd_report_find_run(report, row->instances[k], variant);
    capacity += run ? run->record_count : 0;
  }
  double *errors = malloc(sizeof *errors * (size_t)(3 * capacity + 1));
  if (!errors) {
    report->html.failed = 1;
    return cell;
  }
  double *times = errors + capacity, *invalid = times + capacity;
  int error_count = 0, time_count = 0, invalid_count = 0, seen = 0;
  for (int k = 0; k < row->instance_count; ++k) {
    const pabd_report_run *run = pabd_report_find_run(report, row->instances[k], variant);
    for (int r = 0; run && r < run->record_count; ++r) {
      const pabd_report_record *record = &report->records[run->records[r]];
      pabd_outcome outcome = pabd_record_outcome(report, record);
      ++cell.count;
      ++cell.outcome_count[outcome];
      if (outcome != PABD_OUTCOME_NA && (!seen || outcome > cell.worst)) cell.worst = outcome, seen = 1;
      if (outcome != PABD_OUTCOME_HELD && outcome != PABD_OUTCOME_NA)
        cell.end = fmin(isnan(cell.end) ? INFINITY : cell.end, pabd_record_end(report, record));
      if (outcome != PABD_OUTCOME_HELD && !cell.reason) {
        cell.reason = pabd_json_text(record->root, "reason", NULL);
        if (cell.reason && !cell.reason[0]) cell.reason = NULL;
      }
      const char *verdict = pabd_json_text(record->root, "verdict", "none");
      cell.pass_count += strcmp(verdict, "pass") == 0;
      cell.fail_count += strcmp(verdict, "fail") == 0;
      if (error_key && !isnan(pabd_record_metric(record, error_key))) {
        errors[error_count++] = pabd_record_metric(record, error_key);
        cell.error_unit = pabd_record_metric_unit(record, error_key);
        cell.better = pabd_record_metric_better(record, error_key);
      }
      double ms = pabd_record_metric(record, "step_ms_p50");
      const cJSON *timing = cJSON_GetObjectItemCaseSensitive(record->root, "timing");
      if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(timing, "timing_valid")))
        invalid[invalid_count++] = ms;
      else
        times[time_count++] = ms;
    }
  }
  if (isinf(cell.end)) cell.end = NAN;
  cell.error = pabd_spread_of(errors, error_count);
  cell.error_worst = strcmp(cell.better, "higher") == 0 ? cell.error.low : cell.error.high;
  cell.time = pabd_spread_of(times, time_count);
  cell.time_invalid = pabd_spread_of(invalid, invalid_count);
  free(errors);
  return cell;
}

int pabd_report_cell_held(const pabd_report_cell *cell) {
  return cell->count > 0 && cell->outcome_count[PABD_OUTCOME_HELD] == cell->count;
}

const char *pabd_report_cell_text(pabd_report *report, const pabd_report_cell *cell) {
  pabd_text *arena = &report->html;
  int ran = cell->count - cell->outcome_count[PABD_OUTCOME_NA];
  if (cell->count == 0) return "not run";
  if (ran == 0) return "n.a.";
  int held = cell->outcome_count[PABD_OUTCOME_HELD];
  if (held == ran) return ran > 1 && cell->count > 1 ? pabd_text_format(arena, "held (%d of %d)", held, ran) : "held";
  const char *word = pabd_outcome_word(cell->worst);
  const char *when =
      isnan(cell->end) ? "" : pabd_text_format(arena, " at %s\xC2\xA0s", pabd_text_number(arena, cell->end, 2));
  if (ran == 1) return pabd_text_format(arena, "%s%s", word, when);
  if (held == 0) return pabd_text_format(arena, "%s%s (%d of %d)", word, when, ran, ran);
  return pabd_text_format(arena, "%d of %d held; %s%s", held, ran, word, when);
}

int pabd_report_is_main(const pabd_report_variant *variant) {
  return variant->overrides[0] == 0;
}

const char *pabd_report_without(pabd_report *report, const char *overrides, const char *key) {
  const char *text = "";
  size_t length = strlen(key);
  for (const char *c = overrides; *c;) {
    size_t size = strcspn(c, " ");
    if (!(strncmp(c, key, length) == 0 && c[length] == '='))
      text = pabd_text_format(&report->html, "%s%s%.*s", text, text[0] ? " " : "", (int)size, c);
    c += size;
    while (*c == ' ') ++c;
  }
  return text;
}

const char *pabd_report_override(pabd_report *report, const char *overrides, const char *key) {
  size_t length = strlen(key);
  for (const char *c = overrides; *c;) {
    size_t size = strcspn(c, " ");
    if (strncmp(c, key, length) == 0 && c[length] == '=')
      return pabd_text_format(&report->html, "%.*s", (int)(size - length - 1), c + length + 1);
    c += size;
    while (*c == ' ') ++c;
  }
  return NULL;
}

/* "1.20 (1.1 - 1.4) ms" */
static const char *time_text(pabd_report *report, const pabd_report_spread *time) {
  pabd_text *arena = &report->html;
  if (time->count == 0) return "";
  if (time->count == 1 || time->high < 1.005 * time->low)
    return pabd_text_format(arena, "%s\xC2\xA0ms", pabd_text_number(arena, time->middle, 3));
  return pabd_text_format(arena, "%s\xC2\xA0ms <small>(%s\xE2\x80\xA6%s)</small>",
                          pabd_text_number(arena, time->middle, 3), pabd_text_number(arena, time->low, 2),
                          pabd_text_number(arena, time->high, 2));
}

#define NOTE_MAX 200

void pabd_report_put_matrix(pabd_report *report) {
  const char *notes[NOTE_MAX];
  int note_count = 0, column_count = 0;
  int *columns = malloc(sizeof *columns * (size_t)(report->variant_count + 1));
  if (!columns) {
    report->html.failed = 1;
    return;
  }
  for (int v = 0; v < report->variant_count; ++v)
    if (pabd_report_is_main(&report->variants[v])) columns[column_count++] = v;
  PUT("<h2 id=\"summary\">Summary</h2>\n<p>Each cell: what happened; the case's own error metric (named under the "
      "case; "
      "the worst over starts and repeats); the median frame time, with its least and largest value over repeats. "
      "Times in <i>(italics in brackets)</i> are of runs that fell apart, missed a bound that binds them, or were "
      "traced, "
      "and must not be compared. "
      "<span class=\"held\">%s held</span> (ran to its end, and stands where the case asks for that; how exact "
      "it was is its number), <span class=\"collapsed\">%s collapsed</span>, "
      "<span class=\"diverged\">%s diverged</span>, <span class=\"crashed\">%s crashed</span>, "
      "<span class=\"timeout\">%s timeout</span>, <span class=\"na\">%s not available</span>; an empty cell was not "
      "run. "
      "<b>!</b>: misses a bound that the case sets for this engine.</p>\n",
      pabd_outcome_symbol(PABD_OUTCOME_HELD), pabd_outcome_symbol(PABD_OUTCOME_COLLAPSED),
      pabd_outcome_symbol(PABD_OUTCOME_DIVERGED), pabd_outcome_symbol(PABD_OUTCOME_CRASHED),
      pabd_outcome_symbol(PABD_OUTCOME_TIMEOUT), pabd_outcome_symbol(PABD_OUTCOME_NA));
  PUT("<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>case <small>and error metric</small></th>");
  for (int c = 0; c < column_count; ++c) {
    const pabd_report_variant *v = &report->variants[columns[c]];
    PUT("<th>");
    pabd_put_mark(report, v);
    PUT("<br>%s%s%s</th>", ESC(v->engine), v->preset[0] ? "<br>" : "", ESC(v->preset));
  }
  PUT("</tr></thead><tbody>\n");
  const char *family = NULL;
  for (int r = 0; r < report->row_count; ++r) {
    const pabd_report_row *row = &report->rows[r];
    int has_cells = 0;
    for (int c = 0; c < column_count && !has_cells; ++c)
      for (int k = 0; k < row->instance_count; ++k)
        has_cells |= pabd_report_find_run(report, row->instances[k], columns[c]) != NULL;
    if (!has_cells) continue;
    if (!family || strcmp(family, row->family) != 0)
      PUT("<tr class=\"family\"><th colspan=\"%d\">%s</th></tr>\n", column_count + 1, ESC(row->family));
    family = row->family;
    const char *error_key = pabd_row_error_key(report, row);
    PUT("<tr><th><a href=\"#case-%s\">%s</a> %s", pabd_text_slug(&report->html, row->case_id), ESC(row->case_id),
        ESC(row->label));
    if (row->instance_count > 1) PUT(" <small>(%d starts)</small>", row->instance_count);
    if (error_key) PUT("<br><small>%s</small>", ESC(pabd_metric_words(error_key)));
    PUT("</th>");
    for (int c = 0; c < column_count; ++c) {
      pabd_report_cell cell = pabd_report_cell_of(report, row, columns[c], error_key);
      if (cell.count == 0) {
        PUT("<td></td>");
        continue;
      }
      int note = -1;
      if (cell.reason) {
        for (int k = 0; k < note_count; ++k)
          if (strcmp(notes[k], cell.reason) == 0) note = k;
        if (note < 0 && note_count < NOTE_MAX) notes[note = note_count++] = cell.reason;
      }
      PUT("<td class=\"%s\"%s%s%s><b>%s</b> %s%s", pabd_outcome_class(cell.worst), cell.reason ? " title=\"" : "",
          cell.reason ? ESC(cell.reason) : "", cell.reason ? "\"" : "", pabd_outcome_symbol(cell.worst),
          pabd_report_cell_text(report, &cell), cell.fail_count && pabd_report_cell_held(&cell) ? " <b>!</b>" : "");
      if (note >= 0) PUT("<sup><a href=\"#note-%d\">%d</a></sup>", note + 1, note + 1);
      if (!isnan(cell.error_worst))
        PUT("<br>%s", pabd_text_quantity(&report->html, cell.error_worst, cell.error_unit, 3));
      if (cell.time.count)
        PUT("<br>%s", time_text(report, &cell.time));
      else if (cell.time_invalid.count)
        PUT("<br><i>(%s)</i>", time_text(report, &cell.time_invalid));
      PUT("</td>");
    }
    PUT("</tr>\n");
  }
  PUT("</tbody></table></div>\n");
  if (note_count) {
    PUT("<ol class=\"notes\">");
    for (int k = 0; k < note_count; ++k) PUT("<li id=\"note-%d\">%s</li>", k + 1, ESC(notes[k]));
    PUT("</ol>\n");
  }
  free(columns);
}
