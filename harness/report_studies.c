/* Sweeps and studies: pictures that need many runs. Each shows what there is, or says which command makes it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_internal.h"

#define BENCH "pabd-bench run --plan bench --out DIR, then pabd-bench report DIR"

/* ---- sweeps over a parameter of the case ---- */

/* The row's parameters without `key`, as identity of the sweep that it belongs to. */
static const char *rest_of_row(pabd_report *report, const pabd_report_row *row, const char *key) {
  const char *params = strchr(row->key, '|');
  return pabd_report_without(report, params ? params + 1 : "", key);
}

typedef struct sweep_point {
  double x;
  int row;
} sweep_point;

static int compare_points(const void *a, const void *b) {
  const sweep_point *p = a, *q = b;
  return p->x < q->x ? -1 : p->x > q->x;
}

/* "0.42 s" for a run that did not hold. */
static const char *failure_text(pabd_report *report, const pabd_report_cell *cell, const char *label) {
  static const char *const verbs[PABD_OUTCOME_COUNT] = {"", "falls", "diverges", "crashes", "times out", "n.a."};
  int ran = cell->count - cell->outcome_count[PABD_OUTCOME_NA], held = cell->outcome_count[PABD_OUTCOME_HELD];
  const char *text = isnan(cell->end) ? verbs[cell->worst]
                                      : pabd_text_format(&report->html, "%s at %s s", verbs[cell->worst],
                                                         pabd_text_number(&report->html, cell->end, 2));
  (void)label;
  if (held) text = pabd_text_format(&report->html, "%s (%d of %d)", text, ran - held, ran);
  return text;
}

/* One sweep: plot and table. `points` are rows in order of x. */
static void put_sweep(pabd_report *report, pabd_plots *plots, const char *case_id, const char *key, const char *rest,
                      const sweep_point *points, int count) {
  const pabd_report_row *first = &report->rows[points[0].row];
  const char *error_key = pabd_row_error_key(report, first);
  if (!error_key) return;
  const char *unit = "";
  for (int r = 0; r < report->record_count && !unit[0]; ++r)
    unit = pabd_record_metric_unit(&report->records[r], error_key);
  const char *x_unit =
      pabd_json_text(cJSON_GetObjectItemCaseSensitive(report->instances[first->instances[0]].params, key), "unit", "1");
  pabd_plot *plot = pabd_plot_begin(
      plots, pabd_text_slug(&report->html, pabd_text_format(&report->html, "sweep %s %s %s", case_id, key, rest)));
  if (!plot) {
    report->html.failed = 1;
    return;
  }
  plot->is_wide = 1;
  plot->title = pabd_text_format(&report->html, "%s over %s", case_id, key);
  plot->x_label = pabd_text_format(&report->html, "%s [%s]", key, x_unit[0] ? x_unit : "1");
  plot->log_x = points[0].x > 0 && points[count - 1].x >= 8 * points[0].x;
  double low = INFINITY, high = 0;
  for (int v = 0; v < report->variant_count; ++v) {
    if (!pabd_report_is_main(&report->variants[v])) continue;
    for (int k = 0; k < count; ++k) {
      pabd_report_cell cell = pabd_report_cell_of(report, &report->rows[points[k].row], v, error_key);
      if (!pabd_report_cell_held(&cell) || isnan(cell.error_worst)) continue;
      double value = fabs(cell.error_worst);
      if (value > 0) low = fmin(low, value);
      high = fmax(high, value);
    }
  }
  plot->log_y = low < high / 8;
  plot->floor = plot->log_y ? fmax(low, 1e-9) : 0;
  plot->y_label = pabd_text_format(&report->html, "%s [%s]", pabd_metric_words(error_key), unit);
  for (int v = 0; v < report->variant_count; ++v) {
    const pabd_report_variant *variant = &report->variants[v];
    if (!pabd_report_is_main(variant)) continue;
    double *x = malloc(sizeof *x * (size_t)count), *y = malloc(sizeof *y * (size_t)count);
    int n = 0;
    for (int k = 0; x && y && k < count; ++k) {
      pabd_report_cell cell = pabd_report_cell_of(report, &report->rows[points[k].row], v, error_key);
      if (cell.count == 0 || cell.count == cell.outcome_count[PABD_OUTCOME_NA]) continue;
      if (pabd_report_cell_held(&cell))
        x[n] = points[k].x, y[n++] = cell.error_worst;
      else
        pabd_plot_fail(plot, points[k].x, "", variant->style);
    }
    pabd_plot_add(plot, PABD_CURVE_POINTS, variant->label, variant->style, x, y, n);
  }
  PUT("<div class=\"plots\">");
  pabd_put_plot(report, plot,
                plot->failure_count
                    ? "Marks on the upper edge: runs that fell, diverged or crashed there (the table has the "
                      "times). Of several starts the worst counts."
                    : "Of several starts the worst counts.");
  PUT("</div><div class=\"scroll\"><table class=\"stick\"><thead><tr><th>%s</th>", ESC(plot->x_label));
  for (int k = 0; k < count; ++k) PUT("<th class=\"n\">%s</th>", pabd_text_number(&report->html, points[k].x, 4));
  PUT("</tr></thead><tbody>\n");
  for (int v = 0; v < report->variant_count; ++v) {
    const pabd_report_variant *variant = &report->variants[v];
    int any = 0;
    for (int k = 0; k < count; ++k)
      any |= pabd_report_cell_of(report, &report->rows[points[k].row], v, error_key).count > 0;
    if (!any || !pabd_report_is_main(variant)) continue;
    PUT("<tr><th>");
    pabd_put_mark(report, variant);
    PUT(" %s</th>", ESC(variant->label));
    for (int k = 0; k < count; ++k) {
      pabd_report_cell cell = pabd_report_cell_of(report, &report->rows[points[k].row], v, error_key);
      if (cell.count == 0)
        PUT("<td></td>");
      else if (pabd_report_cell_held(&cell))
        PUT("<td class=\"n\">%s</td>", pabd_text_quantity(&report->html, cell.error_worst, cell.error_unit, 3));
      else if (cell.worst == PABD_OUTCOME_NA)
        PUT("<td class=\"na\">n.a.</td>");
      else
        PUT("<td class=\"n %s\"><b>%s</b> %s</td>", pabd_outcome_class(cell.worst), pabd_outcome_symbol(cell.worst),
            failure_text(report, &cell, variant->label));
    }
    PUT("</tr>\n");
  }
  PUT("</tbody></table></div>\n");
}

int pabd_report_put_sweeps(pabd_report *report, pabd_plots *plots, const char *case_id) {
  int shown = 0;
  const pabd_report_instance *first = NULL;
  for (int k = 0; k < report->instance_count && !first; ++k)
    if (strcmp(report->instances[k].case_id, case_id) == 0) first = &report->instances[k];
  if (!first) return 0;
  sweep_point *points = malloc(sizeof *points * (size_t)report->row_count);
  const char **done = malloc(sizeof *done * (size_t)report->row_count);
  const cJSON *param;
  cJSON_ArrayForEach(param, first->params) {
    const char *key = param->string;
    int done_count = 0;
    for (int r = 0; key && points && done && r < report->row_count; ++r) {
      if (strcmp(report->rows[r].case_id, case_id) != 0) continue;
      const char *rest = rest_of_row(report, &report->rows[r], key);
      int known = 0, count = 0;
      for (int k = 0; k < done_count; ++k) known |= strcmp(done[k], rest) == 0;
      if (known) continue;
      done[done_count++] = rest;
      for (int m = r; m < report->row_count; ++m) {
        if (strcmp(report->rows[m].case_id, case_id) != 0 ||
            strcmp(rest_of_row(report, &report->rows[m], key), rest) != 0)
          continue;
        double x = pabd_instance_number(report, report->rows[m].instances[0], key);
        if (!isnan(x)) points[count++] = (sweep_point){x, m};
      }
      if (count < 3) continue;
      qsort(points, (size_t)count, sizeof *points, compare_points);
      const char *slug = pabd_report_without(report, rest, "count"); /* only to tell plots of one case apart */
      put_sweep(report, plots, case_id, key, done_count > 1 ? slug : "", points, count);
      ++shown;
    }
  }
  free(points);
  free(done);
  return shown;
}

void pabd_report_put_headline(pabd_report *report, pabd_plots *plots) {
  PUT("<h2 id=\"sweeps\">How far the mass ratio goes</h2>\n");
  PUT("<h3>Stack: each cube heavier than the one below it by the ratio</h3>\n");
  if (!pabd_report_put_sweeps(report, plots, "stack"))
    pabd_put_missing(report, "the stack over mass ratios",
                     "pabd-bench run stack:ratio=1 stack:ratio=2 stack:ratio=5 "
                     "stack:ratio=10 --engine 'pabd:*' --engine 'bullet:*' --out DIR");
  PUT("<h3>Chain: one heavy cube at its end</h3>\n");
  if (!pabd_report_put_sweeps(report, plots, "chain"))
    pabd_put_missing(report, "the chain over mass ratios",
                     "pabd-bench run chain:ratio=1 chain:ratio=10 chain:ratio=100 "
                     "chain:ratio=1000 --engine 'pabd:*' --engine 'bullet:*' --out DIR");
}

/* ---- helpers ---- */

static pabd_report_style study_style(int k) {
  static const char *const colors[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                       "#E69F00", "#56B4E9", "#000000", "#999933"};
  static const int points[] = {7, 9, 5, 13, 11, 6, 4, 8};
  return (pabd_report_style){"", colors[k % 8], points[k % 8], 1 + k / 8, ""};
}

static double last_value(const pabd_report_record *record, const char *key) {
  double *values = NULL, last = NAN;
  int count = pabd_record_series(record, key, &values, NULL);
  for (int k = 0; k < count; ++k)
    if (!isnan(values[k])) last = values[k];
  free(values);
  return last;
}

static int is_case(pabd_report *report, const pabd_report_record *record, const char *case_id) {
  return strcmp(report->instances[record->instance].case_id, case_id) == 0;
}

static double counter_of(const pabd_report_record *record, const char *name, const char *field) {
  const cJSON *counters = cJSON_GetObjectItemCaseSensitive(record->root, "counters");
  return pabd_json_number(cJSON_GetObjectItemCaseSensitive(counters, name), field);
}

static void begin_plot(pabd_plots *plots, pabd_report *report, pabd_plot **plot, const char *name, const char *title,
                       const char *x, const char *y) {
  *plot = pabd_plot_begin(plots, name);
  if (!*plot) {
    report->html.failed = 1;
    return;
  }
  (*plot)->title = title;
  (*plot)->x_label = x;
  (*plot)->y_label = y;
}

/* ---- multipliers ---- */

/* al-one: the gap after k multiplier steps against 1/(1 + kappa h^2/m)^(k-1). One run a k: "sweeps" counts the steps.
 */
static void put_contraction(pabd_report *report, pabd_plots *plots) {
  PUT("<h3>One row, one body: contraction of the multiplier steps</h3>\n");
  enum { step_max = 64 };
  pabd_plot *plot = NULL;
  double kappa = NAN, step = NAN;
  const char *labels[16];
  int label_count = 0, style = 0;
  for (int r = 0; r < report->record_count; ++r) {
    const pabd_report_record *record = &report->records[r];
    if (!is_case(report, record, "al-one") || isnan(pabd_record_metric(record, "gap_ratio_end"))) continue;
    const pabd_report_variant *v = &report->variants[record->variant];
    if (!pabd_report_override(report, v->overrides, "sweeps")) continue;
    if (isnan(kappa)) {
      kappa = pabd_instance_number(report, record->instance, "kappa");
      step = pabd_record_frame_time(report, record);
    }
    const char *base =
        pabd_text_format(&report->html, "%s %s", v->base, pabd_report_without(report, v->overrides, "sweeps"));
    int known = 0;
    for (int k = 0; k < label_count; ++k) known |= strcmp(labels[k], base) == 0;
    if (!known && label_count < 16) labels[label_count++] = base;
  }
  if (!label_count) {
    pabd_put_missing(report, "the multiplier steps one by one", BENCH);
    return;
  }
  double ratio = 1 / (1 + kappa * step * step); /* mass 1 kg */
  begin_plot(plots, report, &plot, "al_one_contraction", "Gap after multiplier steps (al-one)", "multiplier step [1]",
             "|gap| / start gap [1]");
  if (!plot) return;
  plot->log_y = 1;
  PUT("<p>The gap must shrink by 1/(1 + \xCE\xBAh\xC2\xB2/m) = %.6f with each step (\xCE\xBA = %s N/m, h = %s s, m = 1 "
      "kg).</p>\n",
      ratio, pabd_text_number(&report->html, kappa, 4), pabd_text_number(&report->html, step, 6));
  const char *table = "";
  int longest = 0;
  for (int l = 0; l < label_count; ++l) {
    double gap[step_max];
    for (int k = 0; k < step_max; ++k) gap[k] = NAN;
    pabd_report_style of_engine = study_style(l);
    const char *name = labels[l];
    for (int r = 0; r < report->record_count; ++r) {
      const pabd_report_record *record = &report->records[r];
      if (!is_case(report, record, "al-one")) continue;
      const pabd_report_variant *v = &report->variants[record->variant];
      const char *sweeps = pabd_report_override(report, v->overrides, "sweeps");
      if (!sweeps || strcmp(labels[l], pabd_text_format(&report->html, "%s %s", v->base,
                                                        pabd_report_without(report, v->overrides, "sweeps"))) != 0)
        continue;
      int k = atoi(sweeps);
      if (k < 1 || k >= step_max) continue;
      gap[k] = pabd_record_metric(record, "gap_ratio_end");
      of_engine = pabd_report_style_of(v->engine, v->preset, 0);
      name = v->base;
      if (k > longest) longest = k;
    }
    double *x = malloc(sizeof *x * step_max), *y = malloc(sizeof *y * step_max);
    int n = 0;
    for (int k = 1; x && y && k < step_max; ++k)
      if (!isnan(gap[k])) x[n] = k, y[n++] = gap[k];
    pabd_plot_add(plot, PABD_CURVE_POINTS, name, of_engine, x, y, n);
    table = pabd_text_format(&report->html, "%s<tr><th>%s</th>", table, ESC(name));
    for (int k = 2; k <= longest; ++k) {
      double factor = gap[k] / gap[k - 1];
      table = isnan(factor) ? pabd_text_format(&report->html, "%s<td></td>", table)
                            : pabd_text_format(&report->html, "%s<td class=\"n\">%.7f<br><small>%+.1e</small></td>",
                                               table, factor, factor / ratio - 1);
    }
    table = pabd_text_format(&report->html, "%s</tr>\n", table);
    (void)style;
  }
  double *x = malloc(sizeof *x * step_max), *y = malloc(sizeof *y * step_max);
  for (int k = 0; x && y && k < longest; ++k) x[k] = k + 1, y[k] = pow(ratio, k);
  pabd_plot_add(plot, PABD_CURVE_THEORY, pabd_text_format(&report->html, "theory: slope %.6f a step", ratio),
                study_style(0), x, y, longest);
  PUT("<div class=\"plots\">");
  pabd_put_plot(report, plot, "The dashed line is the prediction, not a fit.");
  PUT("</div><div class=\"scroll\"><table class=\"stick\"><thead><tr><th>factor of step</th>");
  for (int k = 2; k <= longest; ++k) PUT("<th class=\"n\">%d</th>", k);
  PUT("</tr></thead><tbody>%s</tbody></table></div><p><small>Below each factor: its relative distance from the "
      "prediction.</small></p>\n",
      table);
}

/* chain-hanging: end gap of joint k against T_k / kappa. */
static void put_hanging(pabd_report *report, pabd_plots *plots) {
  PUT("<h3>Hanging chain: gap of each joint against tension over stiffness</h3>\n");
  pabd_plot *plot = NULL;
  double low = INFINITY, high = 0;
  int style = 0;
  const char *seen[32], *table = "";
  int seen_count = 0;
  for (int r = 0; r < report->record_count; ++r) {
    const pabd_report_record *record = &report->records[r];
    if (!is_case(report, record, "chain-hanging")) continue;
    const char *kappa_text = pabd_record_setting(report, record, "stiffness");
    const char *rule = pabd_record_setting(report, record, "stiffness_rule");
    const pabd_case *c = pabd_report_case(report, record->instance);
    if (!kappa_text || !c || !rule || strcmp(rule, "fixed") != 0) continue;
    const pabd_report_variant *v = &report->variants[record->variant];
    const char *identity =
        pabd_text_format(&report->html, "%s %s", v->label, report->instances[record->instance].label);
    int known = 0;
    for (int k = 0; k < seen_count; ++k) known |= strcmp(seen[k], identity) == 0;
    if (known || seen_count == 32) continue;
    seen[seen_count++] = identity;
    double kappa = atof(kappa_text);
    if (!(kappa > 0)) continue;
    double *x = malloc(sizeof *x * (size_t)(c->scene.joint_count + 1)),
           *y = malloc(sizeof *y * (size_t)(c->scene.joint_count + 1));
    int n = 0;
    double worst = 0, largest = 0;
    for (int32_t j = 0; x && y && j < c->scene.joint_count; ++j) {
      double weight = 0; /* of all that hangs below the joint: bodies are in order down the chain */
      for (int32_t b = c->scene.joints[j].body_b; b < c->scene.body_count; ++b)
        if (c->scene.bodies[b].motion == PABD_DYNAMIC) weight += c->scene.bodies[b].mass * fabs(c->scene.gravity.z);
      double gap = fabs(last_value(record, pabd_text_format(&report->html, "joint_gap_%d", (int)j)));
      if (isnan(gap)) continue;
      x[n] = weight / kappa, y[n] = gap;
      worst = fmax(worst, fabs(gap * kappa / weight - 1)), largest = fmax(largest, gap);
      low = fmin(low, x[n]), high = fmax(high, x[n]);
      ++n;
    }
    if (!n) {
      free(x);
      free(y);
      continue;
    }
    if (!plot) {
      begin_plot(plots, report, &plot, "chain_hanging_gaps", "Gap of joint k (chain-hanging)",
                 "tension / stiffness, T_k / kappa [m]", "gap at the end [m]");
      if (!plot) return;
      plot->log_x = plot->log_y = 1;
      plot->floor = 1e-9;
    }
    const char *multipliers = pabd_record_setting(report, record, "multipliers");
    int is_off = multipliers && (strcmp(multipliers, "0") == 0 || strcmp(multipliers, "false") == 0);
    pabd_plot_add(
        plot, PABD_CURVE_POINTS,
        pabd_text_format(
            &report->html, "multipliers %s, %s sweeps", is_off ? "off" : "on",
            pabd_record_setting(report, record, "sweeps") ? pabd_record_setting(report, record, "sweeps") : "?"),
        study_style(style++), x, y, n);
    table = pabd_text_format(&report->html,
                             "%s<tr><th>%s</th><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n", table,
                             ESC(identity), is_off ? "off" : "on", pabd_text_quantity(&report->html, largest, "m", 3),
                             is_off ? pabd_text_format(&report->html, "%.3g %%", 100 * worst) : "(should be 0 gap)");
  }
  if (!plot) {
    pabd_put_missing(report, "the hanging chain with a fixed stiffness", BENCH);
    return;
  }
  double *x = malloc(2 * sizeof *x), *y = malloc(2 * sizeof *y);
  if (x && y) x[0] = y[0] = low, x[1] = y[1] = high;
  pabd_plot_add(plot, PABD_CURVE_THEORY, "theory: gap = T_k / kappa", study_style(0), x, y, 2);
  PUT("<p>Without multipliers a joint of stiffness \xCE\xBA opens by exactly its tension over \xCE\xBA; with them the "
      "gap must "
      "close.</p><div class=\"plots\">");
  pabd_put_plot(report, plot, "Each mark is a joint. Values below 1e-9 m lie on the lower edge.");
  PUT("</div><div class=\"scroll\"><table class=\"stick\"><thead><tr><th>run</th><th>multipliers</th>"
      "<th class=\"n\">largest gap at the end</th><th class=\"n\">largest distance from "
      "T/\xCE\xBA</th></tr></thead><tbody>%s"
      "</tbody></table></div>\n",
      table);
}

/* Any case that was run with multipliers off and on. */
static void put_multipliers(pabd_report *report) {
  int shown = 0;
  for (int r = 0; r < report->row_count; ++r) {
    const pabd_report_row *row = &report->rows[r];
    if (strcmp(row->case_id, "al-one") == 0) continue;
    for (int off = 0; off < report->variant_count; ++off) {
      const char *value = pabd_report_override(report, report->variants[off].overrides, "multipliers");
      if (!value || (strcmp(value, "0") != 0 && strcmp(value, "false") != 0)) continue;
      for (int on = 0; on < report->variant_count; ++on) {
        const pabd_report_variant *a = &report->variants[off], *b = &report->variants[on];
        if (on == off || strcmp(a->base, b->base) != 0) continue;
        const char *b_value = pabd_report_override(report, b->overrides, "multipliers");
        if (!b_value && b->overrides[0]) continue;
        if (strcmp(pabd_report_without(report, a->overrides, "multipliers"),
                   pabd_report_without(report, b->overrides, "multipliers")) != 0)
          continue;
        const char *key = pabd_row_error_key(report, row);
        pabd_report_cell off_cell = pabd_report_cell_of(report, row, off, key);
        pabd_report_cell on_cell = pabd_report_cell_of(report, row, on, key);
        if (!off_cell.count || !on_cell.count) continue;
        if (b_value == NULL && shown) { /* the preset itself and an explicit 1 are the same run: show one */
          int has_explicit = 0;
          for (int k = 0; k < report->variant_count; ++k) {
            const char *k_value = pabd_report_override(report, report->variants[k].overrides, "multipliers");
            has_explicit |= k != off && strcmp(report->variants[k].base, a->base) == 0 && k_value &&
                            pabd_report_cell_of(report, row, k, key).count > 0;
          }
          if (has_explicit) continue;
        }
        if (!shown++)
          PUT("<h3>Multipliers off and on</h3>\n<div class=\"scroll\"><table "
              "class=\"stick\"><thead><tr><th>case</th><th>engine</th>"
              "<th>metric</th><th class=\"n\">off</th><th class=\"n\">on</th></tr></thead><tbody>\n");
        PUT("<tr><th>%s %s</th><td>", ESC(row->case_id), ESC(row->label));
        pabd_put_mark(report, a);
        PUT(" %s %s</td><td>%s</td><td class=\"n\">%s<br><small>%s</small></td><td "
            "class=\"n\">%s<br><small>%s</small></td></tr>\n",
            ESC(a->base), ESC(pabd_report_without(report, a->overrides, "multipliers")),
            key ? ESC(pabd_metric_words(key)) : "",
            pabd_text_quantity(&report->html, off_cell.error_worst, off_cell.error_unit, 3),
            pabd_report_cell_text(report, &off_cell),
            pabd_text_quantity(&report->html, on_cell.error_worst, on_cell.error_unit, 3),
            pabd_report_cell_text(report, &on_cell));
      }
    }
  }
  if (shown) PUT("</tbody></table></div>\n");
}

/* ---- ablation: local steps ---- */

static const char *const local_steps[] = {"mass", "hessian", "frobenius", "skew"};

static void put_pair_plot(pabd_report *report, pabd_plots *plots, const char *metric, const char *name,
                          const char *title, const char *y_label, int slope) {
  pabd_plot *plot = NULL;
  const char *bases[32];
  int base_count = 0, style = 0;
  double anchor_x = NAN, anchor_y = NAN, x_low = INFINITY, x_high = 0;
  for (int pass = 0; pass < 4; ++pass) {
    base_count = 0;
    for (int v = 0; v < report->variant_count; ++v) {
      const pabd_report_variant *variant = &report->variants[v];
      const char *local = pabd_report_override(report, variant->overrides, "local_step");
      const char *substeps = pabd_report_override(report, variant->overrides, "substeps");
      if (!local || !substeps || strcmp(local, local_steps[pass]) != 0) continue;
      const char *base = pabd_text_format(&report->html, "%s %s", variant->base,
                                          pabd_report_without(report, variant->overrides, "substeps"));
      int known = 0;
      for (int k = 0; k < base_count; ++k) known |= strcmp(bases[k], base) == 0;
      if (known || base_count == 32) continue;
      bases[base_count++] = base;
      double *x = malloc(32 * sizeof *x), *y = malloc(32 * sizeof *y);
      int n = 0;
      for (int r = 0; x && y && r < report->record_count && n < 32; ++r) {
        const pabd_report_record *record = &report->records[r];
        const pabd_report_variant *other = &report->variants[record->variant];
        const char *count = pabd_report_override(report, other->overrides, "substeps");
        if (!is_case(report, record, "pair") || !count ||
            strcmp(base, pabd_text_format(&report->html, "%s %s", other->base,
                                          pabd_report_without(report, other->overrides, "substeps"))) != 0)
          continue;
        double value = pabd_record_metric(record, metric);
        if (isnan(value)) continue;
        int at = n++; /* sorted by step size */
        double h = pabd_record_frame_time(report, record) / atof(count);
        for (; at > 0 && x[at - 1] > h; --at) x[at] = x[at - 1], y[at] = y[at - 1];
        x[at] = h, y[at] = fmax(fabs(value), 1e-16);
        x_low = fmin(x_low, h), x_high = fmax(x_high, h);
      }
      if (n && !plot) {
        begin_plot(plots, report, &plot, name, title, "substep [s]", y_label);
        if (!plot) return;
        plot->log_x = plot->log_y = 1;
        plot->floor = 1e-16;
      }
      if (plot) {
        if (n && strcmp(local, "hessian") == 0 && strncmp(variant->base, "pabd-double", 11) == 0)
          anchor_x = x[n - 1], anchor_y = y[n - 1];
        pabd_report_style s = study_style(pass);
        if (strncmp(variant->base, "pabd-double", 11) == 0) s.dash = 2, s.point = s.point == 7 ? 6 : s.point - 1;
        pabd_plot_add(plot, PABD_CURVE_POINTS,
                      pabd_text_format(&report->html, "%s, %s", local,
                                       strncmp(variant->base, "pabd-double", 11) ? "float" : "double"),
                      s, x, y, n);
        ++style;
      }
    }
  }
  if (!plot) return;
  if (slope && !isnan(anchor_x)) {
    double *x = malloc(2 * sizeof *x), *y = malloc(2 * sizeof *y);
    if (x && y) x[0] = x_low, x[1] = x_high, y[0] = anchor_y * x_low / anchor_x, y[1] = anchor_y * x_high / anchor_x;
    pabd_plot_add(plot, PABD_CURVE_THEORY, "slope 1 through the coarsest hessian run", study_style(0), x, y, 2);
  }
  pabd_put_plot(report, plot, slope ? "The dashed line has slope 1: error in proportion to the substep." : NULL);
}

static void put_ablation(pabd_report *report, pabd_plots *plots) {
  PUT("<h2 id=\"ablation\">Ablation: the local step</h2>\n<p>The local step takes a body's affine motion back to a "
      "rigid one. "
      "<b>mass</b>: nearest in the metric of the mass (the paper as we read it); <b>hessian</b>: nearest in the metric "
      "of the "
      "body's own quadratic (our default); <b>frobenius</b>: nearest rotation entry by entry; <b>skew</b>: the "
      "antisymmetric "
      "part used as a rotation increment.</p>\n");
  int any = 0;
  for (int v = 0; v < report->variant_count; ++v)
    any |= pabd_report_override(report, report->variants[v].overrides, "local_step") != NULL;
  if (!any) {
    pabd_put_missing(report, "the four local steps",
                     "pabd-bench run pair stack chain --engine pabd:jacobi:local_step=mass --engine "
                     "pabd:jacobi:local_step=hessian (and frobenius, skew) --out DIR");
    return;
  }
  PUT("<div class=\"plots\">");
  put_pair_plot(report, plots, "lin_mom_err", "pair_linear_momentum", "Isolated pair: linear momentum error",
                "largest |p - p(0)| / reference [1]", 0);
  put_pair_plot(report, plots, "ang_mom_err", "pair_angular_momentum", "Isolated pair: angular momentum error",
                "largest |L - L(0)| / reference [1]", 1);
  PUT("</div>\n<div class=\"scroll\"><table class=\"stick\"><thead><tr><th>case, engine and other "
      "settings</th><th>metric</th>");
  for (int k = 0; k < 4; ++k) PUT("<th>%s</th>", local_steps[k]);
  PUT("</tr></thead><tbody>\n");
  for (int r = 0; r < report->row_count; ++r) {
    const pabd_report_row *row = &report->rows[r];
    const char *seen[64], *key = pabd_row_error_key(report, row);
    int seen_count = 0;
    for (int v = 0; v < report->variant_count; ++v) {
      const pabd_report_variant *variant = &report->variants[v];
      if (!pabd_report_override(report, variant->overrides, "local_step")) continue;
      const char *rest = pabd_report_without(report, variant->overrides, "local_step");
      const char *identity = pabd_text_format(&report->html, "%s %s", variant->base, rest);
      int known = 0;
      for (int k = 0; k < seen_count; ++k) known |= strcmp(seen[k], identity) == 0;
      if (known || seen_count == 64) continue;
      seen[seen_count++] = identity;
      int cells = 0;
      const char *line = "";
      for (int k = 0; k < 4; ++k) {
        line = pabd_text_format(&report->html, "%s<td", line);
        int found = 0;
        for (int m = 0; m < report->variant_count && !found; ++m) {
          const pabd_report_variant *other = &report->variants[m];
          const char *local = pabd_report_override(report, other->overrides, "local_step");
          if (!local || strcmp(local, local_steps[k]) != 0 || strcmp(other->base, variant->base) != 0 ||
              strcmp(pabd_report_without(report, other->overrides, "local_step"), rest) != 0)
            continue;
          pabd_report_cell cell = pabd_report_cell_of(report, row, m, key);
          if (!cell.count) continue;
          found = 1;
          ++cells;
          line = pabd_text_format(&report->html, "%s class=\"%s\"><b>%s</b> %s<br>%s</td>", line,
                                  pabd_outcome_class(cell.worst), pabd_outcome_symbol(cell.worst),
                                  pabd_report_cell_text(report, &cell),
                                  pabd_text_quantity(&report->html, cell.error_worst, cell.error_unit, 3));
        }
        if (!found) line = pabd_text_format(&report->html, "%s></td>", line);
      }
      if (!cells) continue;
      PUT("<tr><th>%s %s<br><small>%s</small></th><td>%s</td>%s</tr>\n", ESC(row->case_id), ESC(row->label),
          ESC(identity), key ? ESC(pabd_metric_words(key)) : "", line);
    }
  }
  PUT("</tbody></table></div>\n");
}

/* ---- piles ---- */

static void put_piles(pabd_report *report, pabd_plots *plots) {
  PUT("<h2 id=\"piles\">Large piles</h2>\n");
  static const char *const keys[] = {"step_ms_p50",          "collide_ms_p50",  "solve_ms_p50",
                                     "penetration_mean_end", "penetration_max", "impact_momentum_kept",
                                     "spread_end",           "com_height_end",  "contact_pairs_mean",
                                     "energy_rise_sum",      "bodies_lost"};
  static const char *const heads[] = {"frame p50",
                                      "collide",
                                      "solve",
                                      "mean depth at the end",
                                      "largest depth",
                                      "momentum kept at 0.2 s",
                                      "spread",
                                      "height of the centre",
                                      "pairs in contact",
                                      "energy rises / reference",
                                      "lost"};
  enum { key_count = sizeof keys / sizeof *keys };
  int shown = 0;
  for (int r = 0; r < report->row_count; ++r) {
    const pabd_report_row *row = &report->rows[r];
    if (strcmp(row->case_id, "pile") != 0 && strcmp(row->case_id, "pile-settled") != 0) continue;
    if (!shown++) {
      PUT("<p>Depth alone rewards a solver that stops the ball in mid-air or scatters the boxes, so the momentum that "
          "the "
          "impact keeps stands beside it: converged solvers agree on 0.90 to 0.93 of the ball's. Median over starts "
          "and "
          "repeats, with the least and largest.</p>\n<div class=\"scroll\"><table class=\"stick\"><thead><tr><th>pile "
          "and engine"
          "</th><th>status</th>");
      for (int k = 0; k < key_count; ++k) {
        const char *unit = "";
        for (int m = 0; m < report->record_count && !unit[0]; ++m)
          unit = pabd_record_metric_unit(&report->records[m], keys[k]);
        PUT("<th class=\"n\">%s [%s]</th>", heads[k],
            unit[0] ? ESC(strcmp(unit, "m") == 0 && k < 5 ? "mm" : unit) : "1");
      }
      PUT("</tr></thead><tbody>\n");
    }
    PUT("<tr class=\"family\"><th colspan=\"%d\">%s %s</th></tr>\n", key_count + 2, ESC(row->case_id), ESC(row->label));
    for (int v = 0; v < report->variant_count; ++v) {
      pabd_report_cell cell = pabd_report_cell_of(report, row, v, NULL);
      if (!cell.count) continue;
      PUT("<tr><th>");
      pabd_put_mark(report, &report->variants[v]);
      PUT(" %s</th><td class=\"%s\"><b>%s</b> %s%s</td>", ESC(report->variants[v].label),
          pabd_outcome_class(cell.worst), pabd_outcome_symbol(cell.worst), pabd_report_cell_text(report, &cell),
          cell.time_invalid.count ? "<br><small>time not comparable</small>" : "");
      for (int k = 0; k < key_count; ++k) {
        pabd_report_cell of_key = pabd_report_cell_of(report, row, v, keys[k]);
        pabd_report_spread s = of_key.error;
        double scale = strcmp(of_key.error_unit, "m") == 0 && k < 5 ? 1e3 : 1;
        PUT("<td class=\"n\">%s", s.count ? pabd_text_number(&report->html, scale * s.middle, 3) : "");
        if (s.count > 1 && s.high - s.low > 0.005 * fabs(s.middle))
          PUT("<br><small>%s\xE2\x80\xA6%s</small>", pabd_text_number(&report->html, scale * s.low, 2),
              pabd_text_number(&report->html, scale * s.high, 2));
        PUT("</td>");
      }
      PUT("</tr>\n");
    }
  }
  if (!shown) {
    pabd_put_missing(report, "piles",
                     "pabd-bench run pile pile:n=20 --engine pabd:jacobi --engine bullet-native --out DIR");
    return;
  }
  PUT("</tbody></table></div>\n");

  /* Momentum over the sweeps of traced frames. */
  PUT("<h3>Momentum over the sweeps of the impact</h3>\n");
  pabd_plot *plot = NULL, *residual = NULL;
  int style = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const char *series = pass ? "trace.residual" : "trace.momentum_x";
    for (int r = 0; r < report->record_count; ++r) {
      const pabd_report_record *record = &report->records[r];
      const char *case_id = report->instances[record->instance].case_id;
      double *y = NULL, *start = NULL;
      int count = pabd_record_series(record, series, &y, NULL);
      if (count < 2 || strncmp(case_id, "pile", 4) != 0) {
        free(y);
        continue;
      }
      pabd_plot **target = pass ? &residual : &plot;
      if (!*target)
        begin_plot(
            plots, report, target, pass ? "trace_residual" : "trace_momentum",
            pass ? "Residual over the sweeps of the traced frames" : "Momentum over the sweeps of the traced frames",
            "sweep, counted through the traced frames [1]",
            pass ? "largest residual force [N]" : "momentum along x / momentum at the start [1]");
      if (!*target) return;
      double scale = 1;
      if (!pass && pabd_record_series(record, "momentum_x", &start, NULL) > 0 && start[0] != 0) scale = 1 / start[0];
      free(start);
      double *x = malloc(sizeof *x * (size_t)count);
      for (int k = 0; x && k < count; ++k) x[k] = k + 1, y[k] *= scale;
      (*target)->log_y = pass;
      (*target)->is_wide = 1;
      const pabd_report_variant *v = &report->variants[record->variant];
      pabd_report_style s = v->overrides[0] ? study_style(1 + style++ % 7) : v->style;
      pabd_plot_add(
          *target, PABD_CURVE_LINE,
          pabd_text_format(&report->html, "%s %s, %s", case_id, report->instances[record->instance].label, v->label), s,
          x, y, count);
    }
  }
  if (plot) {
    plot->band[0] = 0.90, plot->band[1] = 0.93;
    PUT("<p>All bodies' momentum along x that the iterate implies after each sweep. The shaded band is what converged "
        "solvers "
        "keep at 0.2 s; sweeps that stop early leave the ball's momentum lost, not merely late.</p>\n<div "
        "class=\"plots\">");
    /* `plot` may have moved when the second plot was begun: find both again by name. */
    for (int k = 0; k < plots->count; ++k)
      if (!strncmp(plots->items[k].name, "trace_", 6)) {
        if (!strcmp(plots->items[k].name, "trace_momentum"))
          plots->items[k].band[0] = 0.90, plots->items[k].band[1] = 0.93;
        pabd_put_plot(report, &plots->items[k], NULL);
      }
    PUT("</div>\n");
  } else {
    pabd_put_missing(report, "momentum over sweeps",
                     "pabd-bench run pile:n=5 --engine pabd:jacobi --trace 1:6 --out DIR");
  }
}

/* ---- memory, determinism ---- */

static void put_memory(pabd_report *report) {
  PUT("<h2 id=\"memory\">Memory</h2>\n");
  int shown = 0;
  const char *seen[256];
  int seen_count = 0;
  for (int r = 0; r < report->record_count; ++r) {
    const pabd_report_record *record = &report->records[r];
    double body = counter_of(record, "bytes_per_body", "last"),
           contact = counter_of(record, "bytes_per_contact", "last");
    double bytes = counter_of(record, "bytes", "last");
    if (isnan(body) && isnan(bytes)) continue;
    if (strncmp(report->instances[record->instance].case_id, "pile", 4) != 0) continue;
    const pabd_report_variant *v = &report->variants[record->variant];
    const char *row_label = report->rows[report->instances[record->instance].row].label;
    const char *identity =
        pabd_text_format(&report->html, "%s %s|%s", report->instances[record->instance].case_id, row_label, v->label);
    int known = 0;
    for (int k = 0; k < seen_count; ++k) known |= strcmp(seen[k], identity) == 0;
    if (known || seen_count == 256) continue;
    seen[seen_count++] = identity;
    if (!shown++)
      PUT("<p>As the engine tells it; the peak is the whole process by the system's count, judge included.</p>\n"
          "<div class=\"scroll\"><table class=\"stick\"><thead><tr><th>run</th><th class=\"n\">bodies [1]</th><th "
          "class=\"n\">contacts, largest [1]</th>"
          "<th class=\"n\">bytes a body [B]</th><th class=\"n\">bytes a contact [B]</th><th class=\"n\">engine, all "
          "[MiB]</th>"
          "<th class=\"n\">process peak [MiB]</th></tr></thead><tbody>\n");
    PUT("<tr><th>");
    pabd_put_mark(report, v);
    PUT(" %s<br>%s %s</th><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td "
        "class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
        ESC(v->label), ESC(report->instances[record->instance].case_id), ESC(row_label),
        pabd_text_number(&report->html,
                         pabd_json_number(cJSON_GetObjectItemCaseSensitive(record->root, "case"), "body_count"), 6),
        pabd_text_number(&report->html, counter_of(record, "contacts", "max"), 6),
        pabd_text_number(&report->html, body, 4), pabd_text_number(&report->html, contact, 4),
        pabd_text_number(&report->html, bytes / 1048576, 3),
        pabd_text_number(&report->html, pabd_record_metric(record, "peak_rss_mib"), 4));
  }
  if (shown)
    PUT("</tbody></table></div>\n");
  else
    pabd_put_missing(report, "memory of piles", "pabd-bench run pile pile:n=20 --engine pabd:jacobi --out DIR");
}

static void put_determinism(pabd_report *report) {
  PUT("<h2 id=\"determinism\">Determinism</h2>\n<p>The hash covers the exact bytes of all poses and velocities of all "
      "frames. Runs "
      "that differ only in the number of threads or in being repeated should have one hash.</p>\n");
  int shown = 0, equal = 0;
  const char *lines = "";
  for (int i = 0; i < report->instance_count; ++i) {
    const char *seen[256];
    int seen_count = 0;
    for (int v = 0; v < report->variant_count; ++v) {
      const pabd_report_variant *variant = &report->variants[v];
      const char *identity = pabd_text_format(&report->html, "%s %s", variant->base,
                                              pabd_report_without(report, variant->overrides, "threads"));
      int known = 0;
      for (int k = 0; k < seen_count; ++k) known |= strcmp(seen[k], identity) == 0;
      if (known || seen_count == 256) continue;
      seen[seen_count++] = identity;
      const char *hashes[16], *threads = "";
      int hash_count = 0, runs = 0;
      for (int m = v; m < report->variant_count; ++m) {
        const pabd_report_variant *other = &report->variants[m];
        const pabd_report_run *run = pabd_report_find_run(report, i, m);
        if (!run || strcmp(identity, pabd_text_format(&report->html, "%s %s", other->base,
                                                      pabd_report_without(report, other->overrides, "threads"))) != 0)
          continue;
        int counted = 0;
        for (int r = 0; r < run->record_count; ++r) {
          const char *hash = pabd_record_hash(&report->records[run->records[r]]);
          if (!hash) continue;
          ++runs;
          if (!counted++) {
            const char *n = pabd_report_override(report, other->overrides, "threads");
            threads = pabd_text_format(&report->html, "%s%s%s", threads, threads[0] ? ", " : "",
                                       n ? n : pabd_text_format(&report->html, "%g", report->base_threads));
          }
          int has = 0;
          for (int k = 0; k < hash_count; ++k) has |= strcmp(hashes[k], hash) == 0;
          if (!has && hash_count < 16) hashes[hash_count++] = hash;
        }
      }
      if (runs < 2) continue;
      ++shown;
      equal += hash_count == 1;
      lines = pabd_text_format(&report->html,
                               "%s<tr><th>%s %s</th><td>%s</td><td>%s</td><td class=\"n\">%d</td><td "
                               "class=\"%s\">%s</td><td><code>%s%s</code></td></tr>\n",
                               lines, ESC(report->instances[i].case_id), ESC(report->instances[i].label), ESC(identity),
                               ESC(threads), runs, hash_count == 1 ? "pass" : "fail",
                               hash_count == 1 ? "equal" : pabd_text_format(&report->html, "%d different", hash_count),
                               ESC(hashes[0]), hash_count > 1 ? " \xE2\x80\xA6" : "");
    }
  }
  if (!shown) {
    pabd_put_missing(report, "repeats or several thread counts",
                     "pabd-bench run stack --engine pabd:jacobi --threads 1,2 --repeat 2 --out DIR");
    return;
  }
  PUT("<details%s><summary>%d of %d comparisons are bit for bit equal</summary><div class=\"scroll\"><table "
      "class=\"stick\"><thead><tr><th>case</th><th>engine</th>"
      "<th>threads</th><th "
      "class=\"n\">runs</th><th>hashes</th><th>hash</th></tr></thead><tbody>%s</tbody></table></div></details>\n",
      equal < shown ? " open" : "", equal, shown, lines);
}

void pabd_report_put_studies(pabd_report *report, pabd_plots *plots) {
  PUT("<h2 id=\"studies\">Augmented Lagrangian</h2>\n");
  put_contraction(report, plots);
  put_hanging(report, plots);
  put_multipliers(report);
  put_ablation(report, plots);
  pabd_report_put_ablation(report, plots);
  put_piles(report, plots);
  put_memory(report);
  put_determinism(report);
}
