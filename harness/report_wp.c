/* The work-precision section: what accuracy costs, and which method is most exact at a given frame time.
 *
 * Every engine and preset that was run with at least three settings of its knobs (substeps, iterations, sweeps) on a
 * case is one curve: error against the median frame time. The front is what no other point beats in both. Two tables
 * answer the reader's two questions. Runs that fell, diverged or crashed have no point, however fast they were; they
 * are counted. Where the ranges of two times overlap, the table says so: that is no difference. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_internal.h"

enum { POINTS = 64, BASES = 32 };

typedef struct wp_case {
  const char *id, *key, *title, *error;
  double levels[3]; /* of the second table, in the metric's unit */
} wp_case;

static const wp_case wp_cases[] = {
    {"stack", "penetration_settled_max", "Mass-ratio stack", "largest settled overlap", {1e-2, 1e-3, 1e-4}},
    {"chain", "joint_pos_err_max", "Heavy chain, joints", "largest joint gap", {1e-1, 1e-2, 1e-3}},
    {"chain", "energy_rel_err_max", "Heavy chain, energy", "largest energy error", {1e-1, 1e-2, 1e-3}},
    {"pendulum", "energy_rel_err_max", "Pendulum, energy", "largest energy error", {1e-1, 1e-2, 1e-3}},
    {"pendulum", "joint_pos_err_max", "Pendulum, joints", "largest joint gap", {1e-1, 1e-2, 1e-3}},
    {"slide", "stop_distance_err", "Sliding box", "error of the stopping distance", {1e-1, 1e-2, 1e-3}},
    {"pile", "penetration_mean_end", "Pile under impact", "mean overlap at the end", {1e-2, 1e-3, 1e-4}},
};
static const double budgets[] = {0.25, 1, 4, 16}; /* ms a frame */

typedef struct wp_point {
  double ms, ms_low, ms_high, error;
  int variant;
} wp_point;

typedef struct wp_base {
  const char *name;
  int first_variant, tried, fell;
  int count;
  wp_point points[POINTS]; /* by time */
} wp_base;

static int by_time(const void *a, const void *b) {
  const wp_point *p = a, *q = b;
  return (p->ms > q->ms) - (p->ms < q->ms);
}

static int gather(pabd_report *report, const wp_case *c, const pabd_report_row *row, wp_base *bases,
                  const char **unit) {
  int count = 0;
  for (int v = 0; v < report->variant_count; ++v) {
    const pabd_report_variant *variant = &report->variants[v];
    pabd_report_cell cell = pabd_report_cell_of(report, row, v, c->key);
    if (cell.count == 0 || cell.worst == PABD_OUTCOME_NA) continue;
    int b = 0;
    while (b < count && strcmp(bases[b].name, variant->base) != 0) ++b;
    if (b == BASES) continue;
    if (b == count) bases[count++] = (wp_base){.name = variant->base, .first_variant = v};
    ++bases[b].tried;
    if (!pabd_report_cell_held(&cell) || !cell.error.count || !cell.time.count) {
      ++bases[b].fell;
    } else if (bases[b].count < POINTS) {
      *unit = cell.error_unit;
      bases[b].points[bases[b].count++] =
          (wp_point){cell.time.middle, cell.time.low, cell.time.high, fabs(cell.error_worst), v};
    }
  }
  int kept = 0;
  for (int b = 0; b < count; ++b) {
    if (bases[b].tried < 3) continue;
    qsort(bases[b].points, (size_t)bases[b].count, sizeof *bases[b].points, by_time);
    bases[kept++] = bases[b];
  }
  return kept;
}

/* Points that no other beats in both time and error, by time; returns their number. */
static int front_of(const wp_base *bases, int count, double *x, double *y, int room) {
  wp_point all[BASES * 8];
  int n = 0, kept = 0;
  for (int b = 0; b < count; ++b)
    for (int k = 0; k < bases[b].count && n < BASES * 8; ++k) all[n++] = bases[b].points[k];
  qsort(all, (size_t)n, sizeof *all, by_time);
  double best = INFINITY;
  for (int k = 0; k < n && kept < room; ++k)
    if (all[k].error < best) best = all[k].error, x[kept] = all[k].ms, y[kept++] = all[k].error;
  return kept;
}

static void put_plot(pabd_report *report, pabd_plots *plots, const wp_case *c, const wp_base *bases, int count,
                     const char *unit) {
  pabd_plot *plot = pabd_plot_begin(plots, pabd_text_format(&report->html, "wp_%s_%s", c->id, c->key));
  if (!plot) return;
  plot->title = pabd_text_format(&report->html, "%s: error against frame time", c->title);
  plot->x_label = "frame time, median [ms]";
  plot->y_label = pabd_text_format(&report->html, "%s [%s]", c->error, unit[0] ? unit : "1");
  plot->log_x = plot->log_y = 1;
  plot->floor = 1e-9;
  for (int b = 0; b < count; ++b) {
    if (bases[b].count == 0) continue;
    double *x = malloc(POINTS * sizeof *x), *y = malloc(POINTS * sizeof *y);
    int n = x && y ? front_of(&bases[b], 1, x, y, POINTS) : 0; /* what the engine itself does better is left out */
    const pabd_report_variant *v = &report->variants[bases[b].first_variant];
    pabd_plot_add(plot, PABD_CURVE_POINTS, bases[b].name, pabd_report_style_of(v->engine, v->preset, 0), x, y, n);
  }
  double *x = malloc(POINTS * sizeof *x), *y = malloc(POINTS * sizeof *y);
  int n = x && y ? front_of(bases, count, x, y, POINTS) : 0;
  pabd_plot_add(plot, PABD_CURVE_THEORY, "best of all", (pabd_report_style){"", "#222222", 1, 3, ""}, x, y, n);
  pabd_put_plot(report, plot,
                "Lower left is better. Each mark is one setting; an engine's settings that are both slower and less "
                "exact than another of its own are left out, and so are runs that did "
                "not hold.");
}

/* The settings of a point, as they would be typed after the preset. */
static const char *knobs(pabd_report *report, const wp_point *p) {
  const char *text = report->variants[p->variant].overrides;
  return text[0] ? text : "as it is";
}

static void put_budget_table(pabd_report *report, const wp_base *bases, int count, const char *unit) {
  enum { COLUMNS = sizeof budgets / sizeof *budgets };
  double best[COLUMNS];
  for (int t = 0; t < COLUMNS; ++t) {
    best[t] = INFINITY;
    for (int b = 0; b < count; ++b)
      for (int k = 0; k < bases[b].count; ++k)
        if (bases[b].points[k].ms <= budgets[t]) best[t] = fmin(best[t], bases[b].points[k].error);
  }
  PUT("<h4>Least error within a frame time</h4><div class=\"scroll\"><table "
      "class=\"stick\"><thead><tr><th>engine</th>");
  for (int t = 0; t < COLUMNS; ++t) PUT("<th class=\"n\">%g ms</th>", budgets[t]);
  PUT("<th class=\"n\">did not hold</th></tr></thead><tbody>\n");
  for (int b = 0; b < count; ++b) {
    PUT("<tr><th>");
    pabd_put_mark(report, &report->variants[bases[b].first_variant]);
    PUT(" %s</th>", ESC(bases[b].name));
    for (int t = 0; t < COLUMNS; ++t) {
      const wp_point *p = NULL;
      for (int k = 0; k < bases[b].count; ++k)
        if (bases[b].points[k].ms <= budgets[t] && (!p || bases[b].points[k].error < p->error)) p = &bases[b].points[k];
      if (!p)
        PUT("<td class=\"n\">none</td>");
      else
        PUT("<td class=\"n\">%s%s%s<br><small>%s</small></td>", p->error <= best[t] ? "<b>" : "",
            pabd_text_quantity(&report->html, p->error, unit, 2), p->error <= best[t] ? "</b>" : "",
            ESC(knobs(report, p)));
    }
    PUT("<td class=\"n\">%d of %d</td></tr>\n", bases[b].fell, bases[b].tried);
  }
  PUT("</tbody></table></div>\n");
}

static const wp_point *cheapest(const wp_base *base, double level) {
  for (int k = 0; k < base->count; ++k)
    if (base->points[k].error <= level) return &base->points[k];
  return NULL;
}

static void put_cost_table(pabd_report *report, const wp_case *c, const wp_base *bases, int count, const char *unit) {
  PUT("<h4>Frame time that an accuracy costs</h4><div class=\"scroll\"><table "
      "class=\"stick\"><thead><tr><th>engine</th>");
  for (int t = 0; t < 3; ++t) PUT("<th class=\"n\">%s</th>", pabd_text_quantity(&report->html, c->levels[t], unit, 2));
  PUT("</tr></thead><tbody>\n");
  for (int b = 0; b < count; ++b) {
    PUT("<tr><th>");
    pabd_put_mark(report, &report->variants[bases[b].first_variant]);
    PUT(" %s</th>", ESC(bases[b].name));
    for (int t = 0; t < 3; ++t) {
      const wp_point *p = cheapest(&bases[b], c->levels[t]), *first = NULL;
      for (int o = 0; o < count; ++o) {
        const wp_point *q = cheapest(&bases[o], c->levels[t]);
        if (q && (!first || q->ms < first->ms)) first = q;
      }
      if (!p) {
        PUT("<td class=\"n\">not reached</td>");
        continue;
      }
      int is_first = p == first, is_tie = !is_first && p->ms_low <= first->ms_high;
      PUT("<td class=\"n\">%s%s%s%s<br><small>%s</small></td>", is_first ? "<b>" : "",
          pabd_text_quantity(&report->html, p->ms, "ms", 2), is_first ? "</b>" : "",
          is_tie ? " (no difference from the fastest)" : "", ESC(knobs(report, p)));
    }
    PUT("</tr>\n");
  }
  PUT("</tbody></table></div>\n");
}

void pabd_report_put_work_precision(pabd_report *report, pabd_plots *plots) {
  static wp_base bases[BASES + 1];
  int sections = 0;
  for (size_t n = 0; n < sizeof wp_cases / sizeof *wp_cases; ++n) {
    const wp_case *c = &wp_cases[n];
    for (int r = 0; r < report->row_count; ++r) {
      const pabd_report_row *row = &report->rows[r];
      const char *unit = "";
      if (strcmp(row->case_id, c->id) != 0) continue;
      int count = gather(report, c, row, bases, &unit), with_points = 0;
      for (int b = 0; b < count; ++b) with_points += bases[b].count > 0;
      if (count < 3 || with_points < 2) continue;
      if (sections++ == 0)
        PUT("<h2 id=\"work-precision\">Work-precision: what accuracy costs</h2>\n"
            "<p>Every engine is run over its knobs (substeps, iterations, sweeps), far beyond what anybody would use "
            "live. Each setting is one mark: how long a frame took, and how wrong the result was, by the same judge. "
            "Two questions are answered for each case: which method is most exact at <em>your</em> frame time, and "
            "what "
            "<em>your</em> accuracy costs. Collision detection is each engine's own and its time counts (native mode). "
            "A run that diverged, or fell where the case asks it to stand, counts as not holding, whatever its time; "
            "elsewhere "
            "only its error tells.</p>\n");
      PUT("<h3>%s%s%s</h3><div class=\"plots\">", c->title, row->label[0] ? ": " : "", ESC(row->label));
      put_plot(report, plots, c, bases, count, unit);
      PUT("</div>\n");
      put_budget_table(report, bases, count, unit);
      put_cost_table(report, c, bases, count, unit);
      break; /* the first row of the case that has enough */
    }
  }
}
