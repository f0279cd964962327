/* The validation suite's page, JSON and table of passes. See validate.h. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command_tools.h"
#include "env.h"
#include "report_internal.h"
#include "validate.h"

static const char *const light_names[] = {"na", "red", "amber", "green"};
static const char *const gate_words[] = {"exact", "order", "tolerance", "behavior"};

static const char *gate_word(char gate) {
  return gate_words[gate == 'X' ? 0 : gate == 'O' ? 1 : gate == 'T' ? 2 : 3];
}

static const pabd_cell *cell_at(const pabd_validation *v, int32_t row, int32_t column) {
  return &v->cells[row * v->column_count + column];
}

static void add_number(cJSON *object, const char *key, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(object, key, value);
  else
    cJSON_AddNullToObject(object, key);
}

static pabd_status write_json(const pabd_validation *v, const char *date, pabd_error *error) {
  static const char *const efforts[] = {"ci", "quick", "full"};
  cJSON *top = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(top, "cells");
  cJSON_AddNumberToObject(top, "schema", 1);
  cJSON_AddStringToObject(top, "subset", efforts[v->effort]);
  cJSON_AddStringToObject(top, "command", v->command_line);
  cJSON_AddStringToObject(top, "date", date);
  add_number(top, "wall_s", v->wall_s);
  for (int32_t r = 0; r < v->row_count; ++r) {
    const pabd_row *row = v->rows[r];
    for (int32_t c = 0; c < v->column_count; ++c) {
      const pabd_cell *cell = cell_at(v, r, c);
      cJSON *one = cJSON_CreateObject();
      char gate[2] = {row->gate, 0};
      cJSON_AddItemToArray(list, one);
      cJSON_AddStringToObject(one, "number", row->number);
      cJSON_AddStringToObject(one, "row", row->key);
      cJSON_AddStringToObject(one, "title", row->title);
      cJSON_AddStringToObject(one, "gate", gate);
      cJSON_AddStringToObject(one, "engine", v->columns[c].label);
      cJSON_AddStringToObject(one, "light", light_names[cell->light]);
      cJSON_AddStringToObject(one, "reason", cell->reason);
      cJSON_AddStringToObject(one, "note", cell->note);
      add_number(one, "error", cell->best);
      add_number(one, "at", cell->best_x);
      add_number(one, "order", cell->order);
      add_number(one, "time_to_1e-1_s", cell->time_low);
      add_number(one, "time_to_1e-3_s", cell->time_high);
      cJSON *levels = cJSON_AddArrayToObject(one, "levels");
      for (int32_t k = 0; k < cell->level_count; ++k) {
        const pabd_level *level = &cell->levels[k];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(levels, item);
        add_number(item, "x", level->x);
        add_number(item, "error", level->error);
        add_number(item, "consistency", level->consistency);
        add_number(item, "value", level->value);
        add_number(item, "wall_s", level->wall_s);
        const char *state = pabd_run_state_text((pabd_run_state)level->state);
        cJSON_AddStringToObject(item, "status", state ? state : "failed");
        cJSON_AddStringToObject(item, "note", level->note);
      }
    }
  }
  char path[PABD_PATH_SIZE];
  pabd_path_format(path, "%s/validate.json", v->dir);
  pabd_status status = pabd_write_json(path, top, error);
  cJSON_Delete(top);
  return status;
}

/* Passes a column: green over all that apply, by gate. */
static void count_gate(const pabd_validation *v, int32_t column, char gate, int32_t counts[4]) {
  memset(counts, 0, 4 * sizeof *counts);
  for (int32_t r = 0; r < v->row_count; ++r)
    if (gate == 0 || v->rows[r]->gate == gate) ++counts[cell_at(v, r, column)->light];
}

static pabd_status write_markdown(const pabd_validation *v, const char *date, pabd_error *error) {
  pabd_text out = {0};
  char path[PABD_PATH_SIZE];
  pabd_text_add(&out,
                "| engine | exact | order | tolerance | behavior | all | n.a. |\n|---|---|---|---|---|---|---|\n");
  for (int32_t c = 0; c < v->column_count; ++c) {
    int32_t counts[4];
    pabd_text_add(&out, "| `%s` |", v->columns[c].label);
    for (const char *gate = "XOTB";; ++gate) {
      count_gate(v, c, *gate, counts);
      pabd_text_add(&out, " %d of %d |", counts[PABD_GREEN],
                    counts[PABD_GREEN] + counts[PABD_AMBER] + counts[PABD_RED]);
      if (!*gate) break;
    }
    pabd_text_add(&out, " %d |\n", counts[PABD_NA]);
  }
  pabd_text_add(&out, "\n`%s`, %s\n", v->command_line, date);
  pabd_path_format(path, "%s/validate.md", v->dir);
  pabd_status status = out.failed ? pabd_fail(error, PABD_ERR_MEMORY, "out of memory")
                                  : pabd_file_write_whole(path, out.data, out.size, error);
  pabd_text_free(&out);
  return status;
}

/* ---- plots ---- */

/* A slope triangle as a theory line: order p through (x1, y1), one decade long. */
static void add_slope(pabd_plot *plot, double p, const char *label, double x, double y, double over) {
  pabd_report_style none = {0};
  double *xs = malloc(4 * sizeof *xs), *ys = malloc(4 * sizeof *ys);
  if (xs && ys) {
    xs[0] = x, ys[0] = y;
    xs[1] = x * over, ys[1] = y * pow(over, p);
    xs[2] = x * over, ys[2] = y;
    xs[3] = x, ys[3] = y;
  }
  pabd_plot_add(plot, PABD_CURVE_THEORY, label, none, xs, ys, 4);
}

static void put_row_plot(pabd_report *report, pabd_plots *plots, const pabd_validation *v, int32_t r) {
  const pabd_row *row = v->rows[r];
  int drawn = 0;
  for (int32_t c = 0; c < v->column_count; ++c) {
    int measured = 0;
    for (int32_t k = 0; k < cell_at(v, r, c)->level_count; ++k) measured += isfinite(cell_at(v, r, c)->levels[k].error);
    drawn += measured > 1;
  }
  if (!drawn) return;
  pabd_plot *plot = pabd_plot_begin(plots, row->key);
  if (!plot) return;
  int is_steps = row->ladder == PABD_LADDER_STEPS, is_cone = strcmp(row->key, "v25-cone") == 0;
  plot->title = row->title;
  plot->x_label = is_steps           ? "step / s"
                  : is_cone          ? "direction of the push / deg"
                  : row->gate == 'X' ? "multiplier steps"
                                     : "sweeps";
  plot->y_label = is_cone ? "acceleration along the push / (m/s^2)" : row->words;
  plot->log_x = is_steps || (row->ladder == PABD_LADDER_SETTING && row->gate != 'X');
  plot->log_y = !is_cone;
  plot->floor = is_cone ? 0 : 1e-16;
  plot->is_wide = 1;
  double x_low = INFINITY, x_high = 0, y_high = 0, finest = INFINITY;
  for (int32_t c = 0; c < v->column_count; ++c) {
    const pabd_cell *cell = cell_at(v, r, c);
    double *x = malloc(PABD_VALIDATE_LEVELS * sizeof *x), *y = malloc(PABD_VALIDATE_LEVELS * sizeof *y);
    int count = 0;
    for (int32_t k = 0; x && y && k < cell->level_count; ++k) {
      const pabd_level *level = &cell->levels[k];
      double value = row->gate == 'X' || is_cone ? level->value : level->error;
      if (!isfinite(value)) continue;
      x[count] = is_cone ? 15 * level->x : level->x, y[count++] = value;
      x_low = fmin(x_low, level->x), x_high = fmax(x_high, level->x), y_high = fmax(y_high, value);
      if (level->x <= x_low) finest = fmin(finest, value);
    }
    pabd_report_style style = pabd_report_style_of(v->columns[c].engine->desc.stem,
                                                   v->columns[c].preset ? v->columns[c].preset->name : "", 0);
    pabd_plot_add(plot, PABD_CURVE_POINTS, v->columns[c].label, style, x, y, count);
  }
  if (is_steps && row->gate != 'B' && x_high > 2 * x_low) {
    double over = fmin(4, x_high / x_low);
    add_slope(plot, 1, "slope 1", x_low, fmax(finest, 1e-12), over);
    add_slope(plot, 2, "slope 2", x_low, fmax(finest, 1e-12), over);
    double *x = malloc(2 * sizeof *x), *y = malloc(2 * sizeof *y);
    if (x && y) {
      x[0] = x_low, x[1] = x_high;
      for (int k = 0; k < 2; ++k) y[k] = 6e-8 * sqrt(1 / x[k]);
    }
    pabd_plot_add(plot, PABD_CURVE_THEORY, "rounding of float, about", (pabd_report_style){0}, x, y, 2);
  }
  if (row->theory) {
    double *x = malloc(24 * sizeof *x), *y = malloc(24 * sizeof *y);
    for (int k = 0; x && y && k < 24; ++k) {
      x[k] = row->gate == 'X' ? 1 + k * (x_high - 1) / 23 : pow(x_high, k / 23.0);
      y[k] = row->theory(row, x[k]);
    }
    pabd_plot_add(plot, PABD_CURVE_THEORY, "theory", (pabd_report_style){0}, x, y, 24);
  }
  if (is_cone) {
    double *x = malloc(2 * sizeof *x), *y = malloc(2 * sizeof *y);
    if (x && y) x[0] = 0, x[1] = 90, y[0] = y[1] = 0.15 * 0.5 * 9.81;
    pabd_plot_add(plot, PABD_CURVE_THEORY, "Coulomb", (pabd_report_style){0}, x, y, 2);
  }
  pabd_put_plot(report, plot, row->source);
}

/* ---- page ---- */

static const char *number_text(pabd_report *report, double value) {
  if (isinf(value)) return "failed";
  return isnan(value) ? "–" : pabd_text_format(&report->html, "%.1e", value);
}

static void put_matrix(pabd_report *report, const pabd_validation *v) {
  PUT("<h2 id=\"table\">Rows and engines</h2>\n<p>Green: the row's gate is passed (exact: 1e-12 in double, 2e-6 in "
      "float; order and tolerance: 1e-3 unless the row says otherwise). Amber: 1e-1 (exact: 1e-3). The number is the "
      "error at the best step, with that step; for rows of variants the worst variant decides. <i>p</i>: fitted order; "
      "<i>own</i>: the same error against the engine's own finest step (self-consistency), at twice the finest "
      "step.</p>\n"
      "<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>row</th>");
  for (int32_t c = 0; c < v->column_count; ++c) PUT("<th>%s</th>", ESC(v->columns[c].label));
  PUT("</tr></thead><tbody>\n");
  for (int32_t r = 0; r < v->row_count; ++r) {
    const pabd_row *row = v->rows[r];
    PUT("<tr><th><a href=\"#%s\">%s</a> %s<br><small>%s; %s</small></th>", row->key, row->number, ESC(row->title),
        gate_word(row->gate), ESC(row->words));
    for (int32_t c = 0; c < v->column_count; ++c) {
      const pabd_cell *cell = cell_at(v, r, c);
      if (cell->light == PABD_NA) {
        PUT("<td class=\"light-na\" title=\"%s\">n.a.</td>", ESC(cell->reason));
        continue;
      }
      PUT("<td class=\"light-%s\" title=\"%s\"><b>%s</b>", light_names[cell->light],
          ESC(cell->note[0] ? cell->note : cell->reason), number_text(report, cell->best));
      if (row->ladder == PABD_LADDER_STEPS && row->gate != 'X' && isfinite(cell->best_x))
        PUT("<br><small>%.3g ms</small>", 1e3 * cell->best_x);
      if (row->gate == 'X' && row->ladder == PABD_LADDER_STEPS) PUT("<br><small>%s</small>", ESC(cell->note));
      if (row->gate == 'O' && isfinite(cell->order)) {
        double off = fmin(fabs(cell->order - 1), fabs(cell->order - 2));
        PUT("<br><small>p = %.2f%s</small>", cell->order,
            !cell->is_monotone ? ", not monotone"
            : off > 0.15       ? ", neither 1 nor 2"
                               : "");
      }
      for (int32_t k = cell->level_count - 1; k >= 0; --k) {
        if (!isfinite(cell->levels[k].consistency)) continue;
        PUT("<br><small>own %.1e</small>", cell->levels[k].consistency);
        break;
      }
      PUT("</td>");
    }
    PUT("</tr>\n");
  }
  PUT("</tbody></table></div>\n");
}

static void put_times(pabd_report *report, const pabd_validation *v) {
  PUT("<h2 id=\"times\">Time to accuracy</h2>\n<p>As the IFToMM benchmark scores: wall time of the whole run at the "
      "cheapest step whose error is at most 1e-1, and 1e-3. A dash: not reached at a step that was run.</p>\n"
      "<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>row</th>");
  for (int32_t c = 0; c < v->column_count; ++c) PUT("<th>%s</th>", ESC(v->columns[c].label));
  PUT("</tr></thead><tbody>\n");
  for (int32_t r = 0; r < v->row_count; ++r) {
    const pabd_row *row = v->rows[r];
    if (row->gate != 'O' || (!row->exact && !row->table)) continue;
    PUT("<tr><th>%s %s</th>", row->number, ESC(row->title));
    for (int32_t c = 0; c < v->column_count; ++c) {
      const pabd_cell *cell = cell_at(v, r, c);
      if (cell->light == PABD_NA) {
        PUT("<td class=\"light-na\">n.a.</td>");
        continue;
      }
      PUT("<td>%s<br>%s</td>", pabd_text_quantity(&report->html, 1e3 * cell->time_low, "ms", 2),
          pabd_text_quantity(&report->html, 1e3 * cell->time_high, "ms", 2));
    }
    PUT("</tr>\n");
  }
  PUT("</tbody></table></div>\n");
}

static void put_misses(pabd_report *report, const pabd_validation *v) {
  PUT("<h2 id=\"misses\">Misses of our solver</h2>\n<ul>\n");
  for (int32_t r = 0; r < v->row_count; ++r)
    for (int32_t c = 0; c < v->column_count; ++c) {
      const pabd_cell *cell = cell_at(v, r, c);
      if (strncmp(v->columns[c].label, "pabd", 4) != 0 || cell->light == PABD_GREEN || cell->light == PABD_NA) continue;
      PUT("<li class=\"light-%s\">%s %s, <code>%s</code>: %s %s %s</li>\n", light_names[cell->light],
          v->rows[r]->number, ESC(v->rows[r]->title), ESC(v->columns[c].label), number_text(report, cell->best),
          ESC(cell->note), ESC(cell->reason));
    }
  PUT("</ul>\n<h2 id=\"na\">Not applicable</h2>\n<ul>\n");
  for (int32_t r = 0; r < v->row_count; ++r)
    for (int32_t c = 0; c < v->column_count; ++c) {
      const pabd_cell *cell = cell_at(v, r, c);
      if (cell->light != PABD_NA) continue;
      PUT("<li>%s %s, <code>%s</code>: %s</li>\n", v->rows[r]->number, ESC(v->rows[r]->title), ESC(v->columns[c].label),
          ESC(cell->reason));
    }
  PUT("</ul>\n");
}

static void put_summary(pabd_report *report, const pabd_validation *v) {
  PUT("<div class=\"scroll\"><table><thead><tr><th>engine</th><th>green</th><th>amber</th><th>red</th><th>n.a.</th>"
      "</tr></thead><tbody>\n");
  for (int32_t c = 0; c < v->column_count; ++c) {
    int32_t counts[4];
    count_gate(v, c, 0, counts);
    PUT("<tr><th>%s</th><td class=\"n light-green\">%d</td><td class=\"n light-amber\">%d</td>"
        "<td class=\"n light-red\">%d</td><td class=\"n\">%d</td></tr>\n",
        ESC(v->columns[c].label), counts[PABD_GREEN], counts[PABD_AMBER], counts[PABD_RED], counts[PABD_NA]);
  }
  PUT("</tbody></table></div>\n");
}

pabd_status pabd_validate_report(const pabd_validation *v, pabd_error *error) {
  pabd_report report_data = {.dir = v->dir, .command_line = v->command_line}, *report = &report_data;
  pabd_plots plots = {0};
  char date[40], path[PABD_PATH_SIZE];
  time_t now = time(NULL);
  struct tm utc;
  gmtime_r(&now, &utc);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  pabd_path_format(path, "%s/plots", v->dir);
  PABD_TRY(pabd_make_folders(path, error));
  PABD_TRY(write_json(v, date, error));
  PABD_TRY(write_markdown(v, date, error));
  report->has_places = pabd_places_find(NULL, NULL, &report->places, error) == PABD_OK;

  pabd_report_put_top(report, "Validation suite");
  PUT("<h1>Validation suite</h1>\n<p class=\"lead\">Closed forms, published references and laws against every engine. "
      "%d rows, %d engines and presets, %s; <code>%s</code>; %.0f s.</p>\n"
      "<nav><a href=\"#table\">Table</a><a href=\"#times\">Time to accuracy</a><a href=\"#misses\">Our misses</a>"
      "<a href=\"#na\">Not applicable</a><a href=\"#plots\">Plots</a><a href=\"validate.json\">JSON</a></nav>\n",
      v->row_count, v->column_count, date, ESC(v->command_line), v->wall_s);
  put_summary(report, v);
  put_matrix(report, v);
  put_times(report, v);
  put_misses(report, v);
  PUT("<h2 id=\"plots\">Convergence</h2>\n");
  for (int32_t r = 0; r < v->row_count; ++r) {
    PUT("<h3 id=\"%s\">%s %s</h3>\n<p><small>case <code>%s%s%s</code>; %s; reference: %s%s%s</small></p>\n",
        v->rows[r]->key, v->rows[r]->number, ESC(v->rows[r]->title), v->rows[r]->file,
        v->rows[r]->overrides[0] ? ":" : "", v->rows[r]->overrides, ESC(v->rows[r]->words), ESC(v->rows[r]->source),
        v->rows[r]->table ? "; " : "", v->rows[r]->table ? ESC(v->rows[r]->table->source) : "");
    put_row_plot(report, &plots, v, r);
  }
  PUT("</body></html>\n");
  pabd_path_format(path, "%s/validate.html", v->dir);
  pabd_status status = pabd_report_finish(report, &plots, path, error);
  pabd_plots_free(&plots);
  pabd_text_free(&report->html);
  return status;
}
