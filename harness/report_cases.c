/* One section a case: claim, parameters, pictures, plots over time, bounds, percentiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "report_internal.h"
#include "report_scene.h"
#include "trajectory.h"

#define PICTURES_MAX 10   /* end pictures an instance */
#define SHOWN_INSTANCES 3 /* instances of a case with pictures and plots; the others are in the tables and sweeps */
#define CURVES_MAX 12

/* Does the variant belong into pictures and plots of this instance? Changed settings only where nothing else was run.
 */
static int is_shown(pabd_report *report, int instance, int variant) {
  const pabd_report_run *run = pabd_report_find_run(report, instance, variant);
  if (!run || report->variants[variant].unavailable) return 0;
  if (pabd_report_is_main(&report->variants[variant])) return 1;
  for (int v = 0; v < report->variant_count; ++v)
    if (pabd_report_is_main(&report->variants[v]) && pabd_report_find_run(report, instance, v)) return 0;
  return 1;
}

/* Instances that show most: those with most runs and trajectories, the first of equals. Returns how many were picked.
 */
static int pick_instances(pabd_report *report, const char *case_id, int picked[SHOWN_INSTANCES]) {
  int count = 0, row_count = 0;
  for (int r = 0; r < report->row_count; ++r) row_count += strcmp(report->rows[r].case_id, case_id) == 0;
  int wanted = row_count <= SHOWN_INSTANCES ? row_count : 1;
  while (count < wanted) {
    int best = -1;
    double best_score = -1;
    for (int k = 0; k < report->instance_count; ++k) {
      const pabd_report_instance *instance = &report->instances[k];
      if (strcmp(instance->case_id, case_id) != 0) continue;
      int taken = 0;
      for (int p = 0; p < count; ++p) taken |= report->instances[picked[p]].row == instance->row;
      if (taken) continue;
      double score = 0;
      for (int r = 0; r < report->record_count; ++r) {
        if (report->records[r].instance != k) continue;
        score += pabd_report_is_main(&report->variants[report->records[r].variant]) ? 1 : 0.2;
        score += cJSON_IsString(cJSON_GetObjectItemCaseSensitive(report->records[r].root, "trajectory")) ? 2 : 0;
      }
      if (score > best_score) best_score = score, best = k;
    }
    if (best < 0) break;
    picked[count++] = best;
  }
  return count;
}

/* The last sample of a record's trajectory, [body_count][7], malloc'ed; NULL when there is none or it does not fit. */
static double *end_pose(pabd_report *report, const pabd_report_record *record, int32_t body_count, double *time) {
  const char *name = pabd_json_text(record->root, "trajectory", NULL);
  if (!name || strchr(name, '/')) return NULL;
  char path[PABD_PATH_SIZE];
  pabd_path_format(path, "%s/records/%s", report->dir, name);
  pabd_trajectory trajectory;
  if (pabd_trajectory_read(path, &trajectory, NULL) != PABD_OK) return NULL;
  double *pose = NULL;
  if (trajectory.header.sample_count > 0 && trajectory.header.body_count == (uint32_t)body_count) {
    size_t size = 7 * (size_t)body_count, last = trajectory.header.sample_count - 1;
    pose = malloc(sizeof *pose * size);
    if (pose) memcpy(pose, trajectory.poses + last * size, sizeof *pose * size);
    *time = trajectory.frames[last] * trajectory.header.frame_time;
  }
  pabd_trajectory_free(&trajectory);
  return pose;
}

static void put_pictures(pabd_report *report, int instance_index) {
  pabd_case *c = pabd_report_case(report, instance_index);
  const pabd_report_instance *instance = &report->instances[instance_index];
  if (instance->load_note) PUT("<p class=\"missing\">%s.</p>\n", ESC(instance->load_note));
  if (!c || c->scene.shape_count == 0) return;
  double *pose[PICTURES_MAX] = {0}, time[PICTURES_MAX];
  int variant[PICTURES_MAX], count = 0;
  pabd_outcome outcome[PICTURES_MAX];
  pabd_scene_view view;
  pabd_scene_view_start(&view, &c->scene);
  for (int v = 0; v < report->variant_count && count < PICTURES_MAX; ++v) {
    if (!is_shown(report, instance_index, v)) continue;
    const pabd_report_run *run = pabd_report_find_run(report, instance_index, v);
    for (int r = 0; r < run->record_count && !pose[count]; ++r) {
      const pabd_report_record *record = &report->records[run->records[r]];
      pose[count] = end_pose(report, record, c->scene.body_count, &time[count]);
      outcome[count] = pabd_record_outcome(report, record);
    }
    if (!pose[count]) continue;
    pabd_scene_view_include(&view, &c->scene, pose[count]);
    variant[count++] = v;
  }
  PUT("<div class=\"scenes\">");
  PUT("<figure>");
  pabd_scene_draw(&report->html, &c->scene, NULL, &view,
                  pabd_text_format(&report->html, "%s at the start", instance->case_id));
  PUT("<figcaption>start%s</figcaption></figure>\n", c->scene.body_count > 200 ? " (outer bodies)" : "");
  for (int k = 0; k < count; ++k) {
    const pabd_report_variant *v = &report->variants[variant[k]];
    PUT("<figure>");
    int outside = pabd_scene_draw(&report->html, &c->scene, pose[k], &view,
                                  pabd_text_format(&report->html, "%s on %s", instance->case_id, v->label));
    PUT("<figcaption>");
    pabd_put_mark(report, v);
    PUT(" %s at %s\xC2\xA0s%s%s", ESC(v->label), pabd_text_number(&report->html, time[k], 3),
        outcome[k] == PABD_OUTCOME_HELD ? "" : ", ",
        outcome[k] == PABD_OUTCOME_HELD ? "" : pabd_outcome_word(outcome[k]));
    if (outside) PUT("; %d %s outside of the picture", outside, outside == 1 ? "body" : "bodies");
    PUT("</figcaption></figure>\n");
    free(pose[k]);
  }
  PUT("</div>\n");
}

/* ---- plots over time ---- */

static const struct {
  const char *key, *title, *label;
  int is_log;
  double floor;
} time_plots[] = {
    {"energy_rel_err", "Energy drift", "|energy error| / reference energy [1]", 1, 1e-8},
    {"joint_pos_err", "Constraint error", "largest joint gap [m]", 1, 1e-9},
    {"joint_ang_err", "Constraint error, angle", "largest joint angle error [rad]", 1, 1e-9},
    {"penetration", "Penetration", "largest penetration [m]", 1, 1e-7},
    {"lin_mom_err_abs", "Linear momentum error", "|p(t) - p(0)| [kg m/s]", 1, 1e-12},
    {"ang_mom_err_abs", "Angular momentum error", "|L(t) - L(0)| [kg m\xC2\xB2/s]", 1, 1e-12},
    {"momentum_x", "Momentum along x", "momentum along x [kg m/s]", 0, 0},
    {"axis_cosine", "Flips of the middle axis", "cos(body axis, angular momentum) [1]", 0, 0},
    {"com_height", "Height of the pile", "height of the centre of mass [m]", 0, 0},
    {"step_ms", "Frame time", "wall time of a frame [ms]", 1, 1e-5},
};

static int add_time_curve(pabd_report *report, pabd_plot *plot, const pabd_report_record *record, const char *key) {
  double *y = NULL, *t = NULL;
  int count = pabd_record_series(record, key, &y, NULL);
  int times = pabd_record_series(record, "t", &t, NULL);
  if (count < 2) {
    free(y);
    free(t);
    return 0;
  }
  if (times != count) { /* one value a frame */
    free(t);
    t = malloc(sizeof *t * (size_t)count);
    double step = pabd_record_frame_time(report, record);
    for (int k = 0; t && k < count; ++k) t[k] = k * step;
  }
  const pabd_report_variant *v = &report->variants[record->variant];
  int before = plot->curve_count;
  pabd_plot_add(plot, PABD_CURVE_LINE, v->label, v->style, t, y, count);
  return plot->curve_count > before;
}

static void put_time_plots(pabd_report *report, pabd_plots *plots, int instance_index) {
  const pabd_report_instance *instance = &report->instances[instance_index];
  PUT("<div class=\"plots\">");
  for (size_t p = 0; p < sizeof time_plots / sizeof *time_plots; ++p) {
    int wanted = 0;
    for (int r = 0; r < report->record_count && !wanted; ++r) {
      const cJSON *series = cJSON_GetObjectItemCaseSensitive(report->records[r].root, "series");
      wanted = report->records[r].instance == instance_index &&
               cJSON_GetObjectItemCaseSensitive(series, time_plots[p].key) != NULL;
    }
    if (!wanted) continue;
    const char *name = pabd_text_slug(&report->html, pabd_text_format(&report->html, "%s %s %s", instance->case_id,
                                                                      instance->label, time_plots[p].key));
    pabd_plot *plot = pabd_plot_begin(plots, name);
    if (!plot) {
      report->html.failed = 1;
      return;
    }
    plot->title = pabd_text_format(&report->html, "%s: %s%s%s", time_plots[p].title, instance->case_id,
                                   instance->label[0] ? " " : "", instance->label);
    plot->x_label = "simulated time [s]";
    plot->y_label = time_plots[p].label;
    plot->log_y = time_plots[p].is_log;
    plot->floor = time_plots[p].floor;
    for (int v = 0; v < report->variant_count && plot->curve_count < CURVES_MAX; ++v) {
      if (!is_shown(report, instance_index, v)) continue;
      const pabd_report_run *run = pabd_report_find_run(report, instance_index, v);
      const pabd_report_record *record = &report->records[run->records[0]];
      for (int r = 0; r < run->record_count; ++r) { /* a run that was not traced, if there is one */
        const cJSON *of_run = cJSON_GetObjectItemCaseSensitive(report->records[run->records[r]].root, "run");
        if (!cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(of_run, "trace_frames"))) {
          record = &report->records[run->records[r]];
          break;
        }
      }
      if (!add_time_curve(report, plot, record, time_plots[p].key)) continue;
      pabd_outcome outcome = pabd_record_outcome(report, record);
      double end = pabd_record_end(report, record);
      if (outcome != PABD_OUTCOME_HELD && outcome != PABD_OUTCOME_NA && !isnan(end))
        pabd_plot_fail(plot, end, pabd_outcome_word(outcome), report->variants[v].style);
    }
    if (plot->curve_count == 0) {
      --plots->count;
      continue;
    }
    pabd_put_plot(report, plot,
                  plot->log_y && plot->floor > 0
                      ? pabd_text_format(&report->html, "Values below %g lie on the lower edge.", plot->floor)
                      : NULL);
  }
  PUT("</div>\n");
}

/* ---- tables ---- */

static void put_parameters(pabd_report *report, int instance_index) {
  const pabd_report_instance *instance = &report->instances[instance_index];
  const cJSON *item;
  int first = 1;
  PUT("<p><small>Parameters: ");
  cJSON_ArrayForEach(item, instance->params) {
    const char *unit = pabd_json_text(item, "unit", "");
    PUT("%s%s = %s%s%s", first ? "" : ", ", ESC(item->string ? item->string : ""),
        ESC(pabd_json_scalar(&report->html, item)), unit[0] && strcmp(unit, "1") ? "\xC2\xA0" : "",
        unit[0] && strcmp(unit, "1") ? ESC(unit) : "");
    first = 0;
  }
  if (first) PUT("none");
  for (int r = 0; r < report->record_count; ++r) {
    if (report->records[r].instance != instance_index) continue;
    const cJSON *block = cJSON_GetObjectItemCaseSensitive(report->records[r].root, "case");
    PUT("; %.0f bodies, %.0f joints, %s\xC2\xA0s in steps of %s\xC2\xA0ms; reference energy %s\xC2\xA0J (%s)",
        pabd_json_number(block, "body_count"), pabd_json_number(block, "joint_count"),
        pabd_text_number(&report->html, pabd_json_number(block, "duration"), 3),
        pabd_text_number(&report->html, 1e3 * pabd_json_number(block, "frame_time"), 3),
        pabd_text_number(&report->html, pabd_json_number(block, "energy_ref"), 3),
        ESC(pabd_json_text(block, "energy_rule", "")));
    break;
  }
  PUT("</small></p>\n");
}

static void put_spread(pabd_report *report, pabd_report_spread s) {
  if (s.count == 0) {
    PUT("<td class=\"n\"></td>");
    return;
  }
  PUT("<td class=\"n\">%s", pabd_text_number(&report->html, s.middle, 3));
  if (s.count > 1 && s.high > 1.005 * s.low)
    PUT(" <small>%s\xE2\x80\xA6%s</small>", pabd_text_number(&report->html, s.low, 2),
        pabd_text_number(&report->html, s.high, 2));
  PUT("</td>");
}

static pabd_report_spread row_spread(pabd_report *report, const pabd_report_row *row, int variant, const char *key) {
  return pabd_report_cell_of(report, row, variant, key).error;
}

static void put_times(pabd_report *report, const char *case_id) {
  static const char *const keys[] = {"step_ms_p50", "step_ms_p95",    "step_ms_p99",
                                     "step_ms_max", "collide_ms_p50", "solve_ms_p50"};
  PUT("<details><summary>Frame times: percentiles</summary><div class=\"scroll\"><table class=\"stick\"><thead><tr>"
      "<th>run</th><th class=\"n\">p50 [ms]</th><th class=\"n\">p95 [ms]</th><th class=\"n\">p99 [ms]</th>"
      "<th class=\"n\">max [ms]</th><th class=\"n\">collide p50 [ms]</th><th class=\"n\">solve p50 [ms]</th>"
      "<th class=\"n\">runs</th><th>comparable</th></tr></thead><tbody>\n");
  for (int r = 0; r < report->row_count; ++r) {
    const pabd_report_row *row = &report->rows[r];
    if (strcmp(row->case_id, case_id) != 0) continue;
    for (int v = 0; v < report->variant_count; ++v) {
      pabd_report_cell cell = pabd_report_cell_of(report, row, v, NULL);
      if (cell.count == 0 || cell.count == cell.outcome_count[PABD_OUTCOME_NA]) continue;
      PUT("<tr><th>");
      pabd_put_mark(report, &report->variants[v]);
      PUT(" %s%s%s</th>", ESC(report->variants[v].label), row->label[0] ? "<br>" : "", ESC(row->label));
      for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k) put_spread(report, row_spread(report, row, v, keys[k]));
      const char *why = "";
      for (int k = 0; k < row->instance_count && !why[0]; ++k) {
        const pabd_report_run *run = pabd_report_find_run(report, row->instances[k], v);
        for (int m = 0; run && m < run->record_count && !why[0]; ++m)
          why = pabd_json_text(cJSON_GetObjectItemCaseSensitive(report->records[run->records[m]].root, "timing"), "why",
                               "");
      }
      PUT("<td class=\"n\">%d</td><td>%s</td></tr>\n", cell.count, cell.time_invalid.count ? ESC(why) : "yes");
    }
  }
  PUT("</tbody></table></div><p><small>Median of the runs, then least and largest of the runs. Warm-up frames are left "
      "out; "
      "collide and solve are the engine's own stage timers.</small></p></details>\n");
}

/* Bounds: one line a bound and variant; of several runs the one with the worst value. */
static void put_bounds(pabd_report *report, const char *case_id) {
  typedef struct bound_line {
    int row, variant, fails, count;
    const cJSON *item; /* of the worst run */
    const pabd_report_record *record;
  } bound_line;
  bound_line *lines = NULL;
  int count = 0, capacity = 0;
  for (int r = 0; r < report->record_count; ++r) {
    const pabd_report_record *record = &report->records[r];
    if (strcmp(report->instances[record->instance].case_id, case_id) != 0) continue;
    if (strcmp(pabd_json_text(record->root, "status", ""), "na") == 0) continue;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(record->root, "expect")) {
      if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "binds"))) continue;
      int row = report->instances[record->instance].row, at = -1;
      const char *metric = pabd_json_text(item, "metric", ""), *op = pabd_json_text(item, "op", "");
      for (int k = 0; k < count; ++k)
        if (lines[k].row == row && lines[k].variant == record->variant &&
            strcmp(pabd_json_text(lines[k].item, "metric", ""), metric) == 0 &&
            strcmp(pabd_json_text(lines[k].item, "op", ""), op) == 0)
          at = k;
      int fails = !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "ok"));
      if (at < 0) {
        if (count == capacity) {
          capacity = capacity ? 2 * capacity : 64;
          bound_line *grown = realloc(lines, sizeof *lines * (size_t)capacity);
          if (!grown) {
            report->html.failed = 1;
            break;
          }
          lines = grown;
        }
        lines[at = count++] = (bound_line){.row = row, .variant = record->variant, .item = item, .record = record};
      }
      double value = pabd_json_number(item, "value"), old = pabd_json_number(lines[at].item, "value");
      int is_worse =
          fails > (lines[at].fails > 0) || isnan(value) || (op[0] == '>' ? value < old : fabs(value) > fabs(old));
      if (is_worse) lines[at].item = item, lines[at].record = record;
      lines[at].fails += fails;
      ++lines[at].count;
    }
  }
  if (count) {
    int failed = 0;
    for (int k = 0; k < count; ++k) failed += lines[k].fails > 0;
    PUT("<details%s><summary>Bounds of the case: %d hold, %d fail</summary><div class=\"scroll\"><table "
        "class=\"stick\"><thead><tr>"
        "<th>run</th><th>metric</th><th class=\"n\">bound</th><th class=\"n\">measured (worst)</th><th>verdict</th>"
        "<th>reason of the bound</th></tr></thead><tbody>\n",
        failed ? " open" : "", count - failed, failed);
    for (int pass = 0; pass < 2; ++pass) { /* failures first */
      for (int k = 0; k < count; ++k) {
        if ((lines[k].fails > 0) != (pass == 0)) continue;
        const pabd_report_variant *v = &report->variants[lines[k].variant];
        const char *metric = pabd_json_text(lines[k].item, "metric", "");
        const char *unit = pabd_record_metric_unit(lines[k].record, metric);
        PUT("<tr><th>");
        pabd_put_mark(report, v);
        PUT(" %s%s%s</th><td>%s</td><td class=\"n\">%s %s</td><td class=\"n\">%s</td><td "
            "class=\"%s\">%s%s</td><td>%s</td></tr>\n",
            ESC(v->label), report->rows[lines[k].row].label[0] ? "<br>" : "", ESC(report->rows[lines[k].row].label),
            ESC(pabd_metric_words(metric)), ESC(pabd_json_text(lines[k].item, "op", "")),
            pabd_text_quantity(&report->html, pabd_json_number(lines[k].item, "bound"), unit, 4),
            pabd_text_quantity(&report->html, pabd_json_number(lines[k].item, "value"), unit, 4),
            lines[k].fails ? "fail" : "pass", lines[k].fails ? "\xE2\x9C\x95 fails" : "\xE2\x9C\x93 holds",
            lines[k].count > 1 ? pabd_text_format(&report->html, " (%d of %d runs)",
                                                  lines[k].fails ? lines[k].fails : lines[k].count, lines[k].count)
                               : "",
            ESC(pabd_json_text(lines[k].item, "reason", "")));
      }
    }
    PUT("</tbody></table></div></details>\n");
  }
  free(lines);
}

/* Every metric of every run: the whole truth, folded away. */
static void put_metrics(pabd_report *report, const char *case_id) {
  const char *keys[48];
  int key_count = 0;
  for (int r = 0; r < report->record_count; ++r) {
    if (strcmp(report->instances[report->records[r].instance].case_id, case_id) != 0) continue;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(report->records[r].root, "metrics")) {
      if (!item->string || strstr(item->string, "_ms_") || strcmp(item->string, "state_hash") == 0) continue;
      int known = 0;
      for (int k = 0; k < key_count; ++k) known |= strcmp(keys[k], item->string) == 0;
      if (!known && key_count < 48) keys[key_count++] = item->string;
    }
  }
  if (!key_count) return;
  PUT("<details><summary>All metrics</summary><div class=\"scroll\"><table "
      "class=\"stick\"><thead><tr><th>run</th><th>status</th>");
  for (int k = 0; k < key_count; ++k) {
    const char *unit = "";
    for (int r = 0; r < report->record_count && !unit[0]; ++r)
      if (strcmp(report->instances[report->records[r].instance].case_id, case_id) == 0)
        unit = pabd_record_metric_unit(&report->records[r], keys[k]);
    PUT("<th class=\"n\">%s<br>[%s]</th>", ESC(keys[k]), ESC(unit));
  }
  PUT("</tr></thead><tbody>\n");
  for (int r = 0; r < report->row_count; ++r) {
    const pabd_report_row *row = &report->rows[r];
    if (strcmp(row->case_id, case_id) != 0) continue;
    for (int v = 0; v < report->variant_count; ++v) {
      pabd_report_cell cell = pabd_report_cell_of(report, row, v, NULL);
      if (cell.count == 0) continue;
      PUT("<tr><th>");
      pabd_put_mark(report, &report->variants[v]);
      PUT(" %s%s%s</th><td class=\"%s\">%s</td>", ESC(report->variants[v].label), row->label[0] ? "<br>" : "",
          ESC(row->label), pabd_outcome_class(cell.worst), pabd_report_cell_text(report, &cell));
      for (int k = 0; k < key_count; ++k) put_spread(report, row_spread(report, row, v, keys[k]));
      PUT("</tr>\n");
    }
  }
  PUT("</tbody></table></div></details>\n");
}

void pabd_report_put_cases(pabd_report *report, pabd_plots *plots) {
  PUT("<h2 id=\"cases\">Cases</h2>\n<p>Pictures are drawn from the scene and the recorded end poses, all with the same "
      "view; "
      "darker bodies are heavier. An open joint shows as a red line. Plots over time show the first run of each "
      "engine.</p>\n");
  const char *case_id = NULL;
  for (int r = 0; r < report->row_count; ++r) {
    const pabd_report_row *row = &report->rows[r];
    if (case_id && strcmp(case_id, row->case_id) == 0) continue;
    case_id = row->case_id;
    const pabd_report_record *record = NULL;
    for (int k = 0; k < report->record_count && !record; ++k)
      if (strcmp(report->instances[report->records[k].instance].case_id, case_id) == 0) record = &report->records[k];
    const cJSON *block = cJSON_GetObjectItemCaseSensitive(record->root, "case");
    PUT("<h3 id=\"case-%s\">%s <small>(<code>%s</code>, %s)</small></h3>\n", pabd_text_slug(&report->html, case_id),
        ESC(row->title), ESC(case_id), ESC(row->family));
    const char *claim = pabd_json_text(block, "claim", "");
    if (claim[0]) PUT("<p>%s</p>\n", ESC(claim));
    int picked[SHOWN_INSTANCES], count = pick_instances(report, case_id, picked);
    for (int k = 0; k < count; ++k) {
      if (report->instances[picked[k]].label[0])
        PUT("<h4>%s %s</h4>\n", ESC(case_id), ESC(report->instances[picked[k]].label));
      put_parameters(report, picked[k]);
      put_pictures(report, picked[k]);
      put_time_plots(report, plots, picked[k]);
    }
    pabd_report_put_sweeps(report, plots, case_id);
    put_bounds(report, case_id);
    put_times(report, case_id);
    put_metrics(report, case_id);
  }
}
