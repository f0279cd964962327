/* The ablation section: what each ingredient of our solver earns.
 *
 * Every variant of the base `pabd:jacobi` whose changed settings begin with a known ingredient is one line of the
 * table; its errors and its time stand beside those of the unchanged base on four cases. Plots: error against time, one
 * curve from the base to each of an ingredient's variants. Nothing is judged here; numbers come from the records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_internal.h"

static const char base_name[] = "pabd:jacobi";

typedef struct ablation_ingredient {
  const char *key;  /* the first changed setting */
  const char *name; /* in words */
  const char *note; /* what the setting is, and what the base has */
  int group;        /* curve of the plots */
} ablation_ingredient;

static const ablation_ingredient ingredients[] = {
    {"local_step", "local step", "metric of the way back to a rigid motion; base: hessian", 0},
    {"bond_factor", "factor of pair bonds", "kappa of a bond between two moving bodies in each block; base: 2", 0},
    {"stamp_open", "open candidates", "open contact candidates stamp their kappa into the block; base: 1", 0},
    {"prediction", "prediction", "rotation of the prediction; base: angular momentum kept", 0},
    {"velocity_rule", "velocity rule", "base: from the momentum increment", 0},
    {"stiffness_rule", "stiffness rule", "how kappa of hard rows is found; base: load", 1},
    {"growth", "growth of stiffness", "largest growth in a substep by the load rule; base: 3", 1},
    {"pushout_speed", "push-out speed", "m/s; base: 0.3", 1},
    {"dual_damping", "dual damping", "fraction of the multiplier step; base: 1", 2},
    {"dual_period", "dual period", "sweeps between multiplier steps; base: 1", 2},
    {"multipliers", "multipliers", "augmented Lagrangian on or off; base: 1", 2},
    {"warm_start", "warm start", "multipliers carried on; base: 1", 2},
    {"relax_sweeps", "relax sweeps", "velocity sweeps without bias; base: 2", 3},
    {"substeps", "substeps against sweeps", "base: 4 x 3; 1 x 12, 2 x 6 and 12 x 1 are the same work", 3},
    {"sweeps", "more sweeps", "base: 3", 3},
    {"acceleration", "acceleration", "of the sweeps; base: none", 4},
    {"global_step", "global step", "base: jacobi", 5},
};
enum { INGREDIENTS = sizeof ingredients / sizeof *ingredients };
static const char *const group_names[] = {"step and blocks", "stiffness",    "multipliers",
                                          "sweeps",          "acceleration", "global step"};
enum { GROUPS = sizeof group_names / sizeof *group_names };

typedef struct ablation_case {
  const char *id, *title;
  const char *keys[3], *heads[3];
  int plot_key;
} ablation_case;

static const ablation_case cases[] = {
    {"stack", "stack", {"penetration_settled_max", NULL, NULL}, {"settled overlap", NULL, NULL}, 0},
    {"chain", "chain", {"joint_pos_err_max", "energy_gain_max", NULL}, {"joint gap", "energy gained", NULL}, 0},
    {"pendulum", "pendulum", {"energy_rel_err_max", "joint_pos_err_max", NULL}, {"energy error", "joint gap", NULL}, 0},
    {"pile",
     "pile",
     {"penetration_mean_end", "impact_momentum_kept", "energy_rise_sum"},
     {"mean overlap", "momentum kept", "energy rises"},
     1},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Which ingredient a variant of the base changes first, or -1. */
static int ingredient_of(pabd_report *report, const pabd_report_variant *variant) {
  if (strcmp(variant->base, base_name) != 0 || !variant->overrides[0]) return -1;
  /* a setting that several ingredients share (sweeps beside substeps or acceleration) belongs to the more special one
   */
  static const char *const order[] = {"global_step", "acceleration", "multipliers", "substeps"};
  for (size_t o = 0; o < sizeof order / sizeof *order; ++o)
    for (int k = 0; k < INGREDIENTS; ++k)
      if (strcmp(ingredients[k].key, order[o]) == 0 && pabd_report_override(report, variant->overrides, order[o]))
        return k;
  for (int k = 0; k < INGREDIENTS; ++k)
    if (pabd_report_override(report, variant->overrides, ingredients[k].key)) return k;
  return -1;
}

/* The first row of the case on which the base has records; NULL when there is none. */
static const pabd_report_row *row_of(pabd_report *report, const char *case_id, int base) {
  for (int r = 0; r < report->row_count; ++r)
    if (strcmp(report->rows[r].case_id, case_id) == 0 &&
        pabd_report_cell_of(report, &report->rows[r], base, NULL).count > 0)
      return &report->rows[r];
  return NULL;
}

static const char *ratio_text(pabd_report *report, double value, double base) {
  if (isnan(value) || isnan(base) || !(fabs(base) > 0)) return "";
  return pabd_text_format(&report->html, " <small>\xC3\x97%s</small>",
                          pabd_text_number(&report->html, value / base, 2));
}

static void put_cells(pabd_report *report, const ablation_case *c, const pabd_report_row *row, int variant, int base) {
  for (int k = 0; k < 3 && c->keys[k]; ++k) {
    pabd_report_cell cell = row ? pabd_report_cell_of(report, row, variant, c->keys[k]) : (pabd_report_cell){0};
    if (!cell.count) {
      PUT("<td></td>");
      continue;
    }
    pabd_report_cell reference = pabd_report_cell_of(report, row, base, c->keys[k]);
    const char *class = k == 0 ? pabd_outcome_class(cell.worst) : "";
    const char *word = k == 0 && cell.worst != PABD_OUTCOME_HELD
                           ? pabd_text_format(&report->html, "<b>%s %s</b><br>", pabd_outcome_symbol(cell.worst),
                                              pabd_report_cell_text(report, &cell))
                           : "";
    PUT("<td class=\"n %s\">%s%s%s</td>", class, word,
        cell.error.count ? pabd_text_quantity(&report->html, cell.error_worst, cell.error_unit, 3) : "",
        variant == base ? "" : ratio_text(report, cell.error_worst, reference.error_worst));
  }
  pabd_report_cell cell = row ? pabd_report_cell_of(report, row, variant, NULL) : (pabd_report_cell){0};
  if (!cell.count || !cell.time.count) {
    PUT("<td></td>");
    return;
  }
  pabd_report_cell reference = pabd_report_cell_of(report, row, base, NULL);
  PUT("<td class=\"n\">%s%s</td>", pabd_text_quantity(&report->html, cell.time.middle, "ms", 3),
      variant == base ? "" : ratio_text(report, cell.time.middle, reference.time.middle));
}

static void put_line(pabd_report *report, const pabd_report_row *const rows[CASES], int variant, int base,
                     const char *name) {
  PUT("<tr><th>%s</th>", ESC(name));
  for (int c = 0; c < CASES; ++c) put_cells(report, &cases[c], rows[c], variant, base);
  PUT("</tr>\n");
}

static pabd_report_style style_of_group(int k) {
  static const char *const colors[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"};
  static const int points[] = {7, 9, 5, 13, 11};
  pabd_report_style style = {"", colors[k % 7], points[k % 5], 1, ""};
  return style;
}

/* Error against time of all variants on one case. */
static void put_case_plot(pabd_report *report, pabd_plots *plots, const ablation_case *c, const pabd_report_row *row,
                          int base) {
  if (!row) return;
  const char *key = c->keys[c->plot_key];
  pabd_report_cell zero = pabd_report_cell_of(report, row, base, key);
  if (!zero.error.count || !zero.time.count) return;
  pabd_plot *plot = pabd_plot_begin(plots, pabd_text_format(&report->html, "ablation_%s", c->id));
  if (!plot) return;
  plot->title = pabd_text_format(&report->html, "Ablation, %s: %s against time", c->title, c->heads[c->plot_key]);
  plot->x_label = "frame time, median [ms]";
  plot->y_label = pabd_text_format(&report->html, "%s [%s]", c->heads[c->plot_key],
                                   zero.error_unit && strcmp(zero.error_unit, "1") != 0 ? zero.error_unit : "1");
  plot->log_x = plot->log_y = 1;
  plot->floor = 1e-8;
  for (int k = 0; k < GROUPS; ++k) {
    double *x = malloc(64 * sizeof *x), *y = malloc(64 * sizeof *y);
    int n = 0;
    for (int v = 0; x && y && v < report->variant_count && n + 2 <= 64; ++v) {
      int ingredient = ingredient_of(report, &report->variants[v]);
      if (ingredient < 0 || ingredients[ingredient].group != k) continue;
      pabd_report_cell cell = pabd_report_cell_of(report, row, v, key);
      if (!cell.error.count || !cell.time.count || cell.worst != PABD_OUTCOME_HELD) continue;
      /* out and back, so that every variant is joined to the base */
      x[n] = zero.time.middle, y[n++] = fabs(zero.error_worst);
      x[n] = cell.time.middle, y[n++] = fabs(cell.error_worst);
    }
    if (n)
      pabd_plot_add(plot, PABD_CURVE_POINTS, group_names[k], style_of_group(k), x, y, n);
    else
      free(x), free(y);
  }
  pabd_put_plot(report, plot, "Lines start at the default. Runs that did not hold are left out.");
}

void pabd_report_put_ablation(pabd_report *report, pabd_plots *plots) {
  int base = -1, lines = 0;
  unsigned seen = 0;
  for (int v = 0; v < report->variant_count; ++v) {
    const pabd_report_variant *variant = &report->variants[v];
    if (strcmp(variant->base, base_name) == 0 && !variant->overrides[0]) base = v;
    int k = ingredient_of(report, variant);
    if (k >= 0) ++lines, seen |= 1u << k;
  }
  PUT("<h2 id=\"ingredients\">Ablation: what each ingredient earns</h2>\n");
  if (base < 0 || lines < 8 || __builtin_popcount(seen) < 5) {
    pabd_put_missing(report, "the ablation of all ingredients", "make ablation");
    return;
  }
  const pabd_report_row *rows[CASES];
  for (int c = 0; c < CASES; ++c) rows[c] = row_of(report, cases[c].id, base);
  PUT("<p>The base is <b>%s</b>; each line changes one ingredient. Errors are the worst over the runs of a line, times "
      "the median of the frame's; the factor is against the base's.",
      base_name);
  for (int c = 0; c < CASES; ++c)
    if (rows[c]) PUT(" %s: %s.", cases[c].title, rows[c]->label[0] ? ESC(rows[c]->label) : "as it is");
  PUT("</p>\n<div class=\"scroll\"><table class=\"stick\"><thead><tr><th rowspan=\"2\">changed</th>");
  for (int c = 0; c < CASES; ++c) {
    int span = 1;
    for (int k = 0; k < 3 && cases[c].keys[k]; ++k) ++span;
    PUT("<th colspan=\"%d\">%s</th>", span, cases[c].title);
  }
  PUT("</tr><tr>");
  for (int c = 0; c < CASES; ++c) {
    for (int k = 0; k < 3 && cases[c].keys[k]; ++k) PUT("<th class=\"n\">%s</th>", cases[c].heads[k]);
    PUT("<th class=\"n\">frame</th>");
  }
  PUT("</tr></thead><tbody>\n");
  put_line(report, rows, base, base, "nothing: the default");
  for (int k = 0; k < INGREDIENTS; ++k) {
    if (!(seen & 1u << k)) continue;
    PUT("<tr><th><b>%s</b><br><small>%s</small></th><td colspan=\"12\"></td></tr>\n", ESC(ingredients[k].name),
        ESC(ingredients[k].note));
    for (int v = 0; v < report->variant_count; ++v)
      if (ingredient_of(report, &report->variants[v]) == k)
        put_line(report, rows, v, base, report->variants[v].overrides);
  }
  PUT("</tbody></table></div>\n<div class=\"plots\">");
  for (int c = 0; c < CASES; ++c) put_case_plot(report, plots, &cases[c], rows[c], base);
  PUT("</div>\n");
}
