/* Where our solver loses and where it wins: computed from the cells of the summary, with fixed rules.
 *
 * A loss is: a run that does not come to its end or falls apart; a missed bound of the case; an error more than 10 %
 * larger than the best competitor's; a frame time more than 10 % longer than the fastest competitor's. A win is: it
 * stands where a competitor does not; an error or time more than 10 % better than that of every competitor. Only
 * competitors that hold are compared in error, only valid times in time. */
#include <math.h>
#include <string.h>

#include "report_internal.h"

typedef enum claim_kind {
  CLAIM_STATUS,
  CLAIM_BOUND,
  CLAIM_ERROR,
  CLAIM_MOMENTUM,
  CLAIM_TIME,
  CLAIM_KIND_COUNT
} claim_kind;

/* One line: a case and a kind, over rows and presets. */
typedef struct claim {
  const char *case_id;
  claim_kind kind;
  int is_win;
  int count[64], rows[64]; /* per variant: rows that lose or win, rows compared */
  double worst;            /* how much, to pick the example */
  const char *example;
} claim;

#define CLAIM_MAX 400
#define MARGIN 1.1       /* smaller differences are called a draw */
#define ERROR_FLOOR 1e-6 /* m or relative: below this two errors are both nothing */

typedef struct claims {
  claim items[CLAIM_MAX];
  int count;
} claims;

static claim *claim_of(claims *all, const char *case_id, claim_kind kind, int is_win) {
  for (int k = 0; k < all->count; ++k)
    if (strcmp(all->items[k].case_id, case_id) == 0 && all->items[k].kind == kind && all->items[k].is_win == is_win)
      return &all->items[k];
  if (all->count == CLAIM_MAX) return NULL;
  all->items[all->count] = (claim){.case_id = case_id, .kind = kind, .is_win = is_win, .worst = -INFINITY};
  return &all->items[all->count++];
}

static void note(claims *all, const char *case_id, claim_kind kind, int is_win, int variant, double how_much,
                 const char *example) {
  claim *c = claim_of(all, case_id, kind, is_win);
  if (!c || variant >= 64) return;
  ++c->count[variant];
  if (how_much > c->worst) c->worst = how_much, c->example = example;
}

static const char *where(pabd_report *report, const pabd_report_row *row, int variant) {
  const pabd_report_variant *v = &report->variants[variant];
  return pabd_text_format(&report->html, "%s%s%s", ESC(v->label), row->label[0] ? ", " : "", ESC(row->label));
}

/* Rows of the case on which the variant was run, for "3 of 8". */
static int rows_run(pabd_report *report, const char *case_id, int variant) {
  int count = 0;
  for (int r = 0; r < report->row_count; ++r) {
    if (strcmp(report->rows[r].case_id, case_id) != 0) continue;
    int has = 0;
    for (int k = 0; k < report->rows[r].instance_count; ++k)
      has |= pabd_report_find_run(report, report->rows[r].instances[k], variant) != NULL;
    count += has;
  }
  return count;
}

static double momentum_kept(pabd_report *report, const pabd_report_row *row, int variant) {
  return pabd_report_cell_of(report, row, variant, "impact_momentum_kept").error.middle;
}

static void compare_row(pabd_report *report, claims *all, const pabd_report_row *row, int ours) {
  pabd_text *arena = &report->html;
  const char *error_key = pabd_row_error_key(report, row);
  pabd_report_cell own = pabd_report_cell_of(report, row, ours, error_key);
  if (own.count == 0) return;
  int ran = own.count - own.outcome_count[PABD_OUTCOME_NA];
  const char *place = where(report, row, ours);
  if (ran == 0) return;
  int held = pabd_report_cell_held(&own);
  if (!held)
    note(all, row->case_id, CLAIM_STATUS, 0, ours,
         (double)(ran - own.outcome_count[PABD_OUTCOME_HELD]) / ran + (isnan(own.end) ? 0.5 : 1 / (1 + own.end)),
         pabd_text_format(arena, "%s: %s", place, pabd_report_cell_text(report, &own)));
  if (held && own.fail_count) {
    /* Which bound, by how much. */
    for (int k = 0; k < row->instance_count; ++k) {
      const pabd_report_run *run = pabd_report_find_run(report, row->instances[k], ours);
      for (int r = 0; run && r < run->record_count; ++r) {
        const cJSON *item;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(report->records[run->records[r]].root, "expect")) {
          if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "binds")) ||
              !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(item, "ok")))
            continue;
          const char *metric = pabd_json_text(item, "metric", "");
          const char *unit = pabd_record_metric_unit(&report->records[run->records[r]], metric);
          double value = pabd_json_number(item, "value"), bound = pabd_json_number(item, "bound");
          claim *c = claim_of(all, row->case_id, CLAIM_BOUND, 0);
          double over = bound != 0 ? fabs(value / bound) : fabs(value);
          if (!c || ours >= 64) continue;
          if (isnan(over) || over > c->worst) {
            c->worst = isnan(over) ? INFINITY : over;
            c->example =
                pabd_text_format(arena, "%s: %s is %s, bound %s %s", place, ESC(pabd_metric_words(metric)),
                                 pabd_text_quantity(arena, value, unit, 3), ESC(pabd_json_text(item, "op", "")),
                                 pabd_text_quantity(arena, bound, unit, 3));
          }
        }
      }
    }
    claim *c = claim_of(all, row->case_id, CLAIM_BOUND, 0);
    if (c && ours < 64) ++c->count[ours];
  }

  /* Against the others. */
  int best = -1, fastest = -1, fell = -1, compared_error = 0, compared_time = 0;
  double best_error = INFINITY, fastest_time = INFINITY;
  int lower = strcmp(own.better, "lower") == 0, higher = strcmp(own.better, "higher") == 0;
  double own_error = higher ? -own.error_worst : own.error_worst;
  for (int v = 0; v < report->variant_count; ++v) {
    const pabd_report_variant *other = &report->variants[v];
    if (other->is_ours || other->is_reference || !pabd_report_is_main(other)) continue;
    pabd_report_cell cell = pabd_report_cell_of(report, row, v, error_key);
    int other_ran = cell.count - cell.outcome_count[PABD_OUTCOME_NA];
    if (other_ran == 0) continue;
    if (!pabd_report_cell_held(&cell)) {
      if (held) {
        fell = v;
        note(all, row->case_id, CLAIM_STATUS, 1, ours, isnan(cell.end) ? 0 : 1 / (1 + cell.end),
             pabd_text_format(arena, "%s holds, %s: %s", place, ESC(other->label),
                              pabd_report_cell_text(report, &cell)));
        claim *c = claim_of(all, row->case_id, CLAIM_STATUS, 1);
        if (c && ours < 64 && fell != v) --c->count[ours];
      }
      continue;
    }
    double error = higher ? -cell.error_worst : cell.error_worst;
    if (!isnan(error) && (lower || higher)) {
      ++compared_error;
      if (error < best_error) best_error = error, best = v;
    }
    if (cell.time.count) {
      ++compared_time;
      if (cell.time.middle < fastest_time) fastest_time = cell.time.middle, fastest = v;
    }
  }
  if (held && compared_error && lower && !isnan(own_error) && fmax(own_error, best_error) > ERROR_FLOOR) {
    double ratio = own_error / fmax(best_error, 1e-300);
    const char *values = pabd_text_format(
        arena, "%s: %s against %s of %s", place, pabd_text_quantity(arena, own_error, own.error_unit, 3),
        pabd_text_quantity(arena, best_error, own.error_unit, 3), ESC(report->variants[best].label));
    if (ratio > MARGIN) note(all, row->case_id, CLAIM_ERROR, 0, ours, ratio, values);
    if (ratio < 1 / MARGIN) note(all, row->case_id, CLAIM_ERROR, 1, ours, 1 / fmax(ratio, 1e-300), values);
  }
  if (compared_time && own.time.count) {
    double ratio = own.time.middle / fastest_time;
    const char *values = pabd_text_format(
        arena, "%s: %s ms a frame against %s ms of %s", place, pabd_text_number(arena, own.time.middle, 3),
        pabd_text_number(arena, fastest_time, 3), ESC(report->variants[fastest].label));
    if (ratio > MARGIN) note(all, row->case_id, CLAIM_TIME, 0, ours, ratio, values);
    if (ratio < 1 / MARGIN) note(all, row->case_id, CLAIM_TIME, 1, ours, 1 / ratio, values);
  }

  /* A ball stopped in mid-air makes a pile look good: converged solvers keep 0.90 to 0.93 of its momentum. */
  double kept = momentum_kept(report, row, ours);
  if (!isnan(kept)) {
    double miss = kept < 0.90 ? 0.90 - kept : kept > 0.93 ? kept - 0.93 : 0;
    if (miss > 0.05)
      note(all, row->case_id, CLAIM_MOMENTUM, 0, ours, miss,
           pabd_text_format(arena, "%s keeps %s of the ball's momentum at 0.2 s; converged solvers keep 0.90 to 0.93",
                            place, pabd_text_number(arena, kept, 2)));
    for (int v = 0; v < report->variant_count && miss <= 0.05; ++v) {
      if (report->variants[v].is_ours || !pabd_report_is_main(&report->variants[v])) continue;
      double other = momentum_kept(report, row, v);
      double other_miss = other < 0.90 ? 0.90 - other : other > 0.93 ? other - 0.93 : 0;
      if (!isnan(other) && other_miss > 0.05)
        note(all, row->case_id, CLAIM_MOMENTUM, 1, ours, other_miss,
             pabd_text_format(arena, "%s keeps %s of the ball's momentum, %s %s", place,
                              pabd_text_number(arena, kept, 2), ESC(report->variants[v].label),
                              pabd_text_number(arena, other, 2)));
    }
  }
}

static void put_list(pabd_report *report, const claims *all, int is_win) {
  static const char *const words[2][CLAIM_KIND_COUNT] = {
      {"does not hold", "misses the case's own bound", "is less exact than the best competitor that holds",
       "spoils the impact", "is slower than the fastest competitor"},
      {"holds where a competitor does not", "", "is more exact than every competitor that holds", "keeps the impact",
       "is faster than every competitor"}};
  int shown = 0;
  PUT("<ul class=\"claims\">\n");
  for (int kind = 0; kind < CLAIM_KIND_COUNT; ++kind) {
    for (int k = 0; k < all->count; ++k) {
      const claim *c = &all->items[k];
      if (c->is_win != is_win || (int)c->kind != kind) continue;
      PUT("<li><b><a href=\"#case-%s\">%s</a></b> %s: ", pabd_text_slug(&report->html, c->case_id), ESC(c->case_id),
          words[is_win][kind]);
      int first = 1;
      for (int v = 0; v < report->variant_count && v < 64; ++v) {
        if (!c->count[v]) continue;
        int rows = rows_run(report, c->case_id, v);
        int count = c->count[v] < rows ? c->count[v] : rows;
        PUT("%s", first ? "" : ", ");
        pabd_put_mark(report, &report->variants[v]);
        PUT("\xC2\xA0%s", ESC(report->variants[v].label));
        if (rows > 1) PUT("\xC2\xA0(%d\xC2\xA0of\xC2\xA0%d)", count, rows);
        first = 0;
      }
      if (c->example) PUT(". <small>Most: %s.</small>", c->example);
      PUT("</li>\n");
      ++shown;
    }
  }
  if (!shown)
    PUT("<li>%s</li>\n", is_win ? "Nowhere in these records." : "Nowhere in these records: look at what was not run.");
  PUT("</ul>\n");
}

void pabd_report_put_claims(pabd_report *report) {
  static claims all; /* large; a report is written by one thread, once */
  all.count = 0;
  int has_ours = 0, has_others = 0;
  for (int v = 0; v < report->variant_count; ++v) {
    const pabd_report_variant *variant = &report->variants[v];
    if (variant->unavailable) continue;
    has_ours |= variant->is_ours && pabd_report_is_main(variant);
    has_others |= !variant->is_ours;
    if (!variant->is_ours || !pabd_report_is_main(variant)) continue;
    for (int r = 0; r < report->row_count; ++r) compare_row(report, &all, &report->rows[r], v);
  }
  PUT("<div class=\"two\"><section><h2 id=\"losses\">Where our solver loses</h2>\n");
  if (!has_ours) {
    PUT("<p class=\"missing\">These records hold no run of our solver.</p>\n");
  } else {
    put_list(report, &all, 0);
  }
  PUT("</section><section><h2 id=\"wins\">Where it wins</h2>\n");
  if (has_ours) put_list(report, &all, 1);
  PUT("</section></div>\n<p><small>Computed from the cells of the summary by fixed rules: differences below 10 %% "
      "count as "
      "a draw; errors are compared only with competitors that hold, times only where both are valid; each preset "
      "counts by "
      "itself, and \"2 of 5\" counts settings of the case. Which presets are ours: those named pabd.%s</small></p>\n",
      has_others ? "" : " No competitor is in these records, so nothing is compared with one.");
}
