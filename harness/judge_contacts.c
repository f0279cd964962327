/* Overlap of shapes, and whether a pile stays a pile.
 *
 * Statistics "at the end" are of the last frame in which pairs were looked for (judge.c: every frame up to 10,000
 * shapes; the last frame of the run always). Only pairs deeper than PABD_DEPTH_FLOOR enter mean and quantile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geometry.h"
#include "judge_internal.h"
#include "stats.h"
#include "vec3.h"

enum { TOUCHING, SWEEPS }; /* the first numbers of both kinds: the mean number of contacts */

static void count_contact_pairs(const pabd_judge *judge, pabd_watch *w) {
  w->number[TOUCHING] += judge->found.touching;
  w->number[SWEEPS] += 1;
}

static pabd_status put_contact_pairs(const pabd_watch *w, pabd_metrics *out) {
  double mean = w->number[SWEEPS] > 0 ? w->number[TOUCHING] / w->number[SWEEPS] : NAN;
  return pabd_judge_put(w, out, "contact_pairs_mean", mean, "1", "info");
}

/* ---- Penetration ---- */

static pabd_status penetration_begin(pabd_judge *judge, pabd_watch *w) {
  PABD_TRY(pabd_judge_needs_pairs(judge));
  return pabd_judge_track(judge, "penetration", "m", 1, &w->track[0]);
}

static void penetration_frame(pabd_judge *judge, pabd_watch *w) {
  if (!judge->is_swept) return;
  pabd_judge_note(judge, w->track[0], judge->found.deepest);
  pabd_tally_add(judge, &w->tally[0], judge->found.deepest);
  count_contact_pairs(judge, w);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static pabd_status penetration_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  int32_t count = judge->found.depth_count, over_10mm = 0;
  double mean = 0, p99 = 0;
  if (count > 0) {
    double *sorted = malloc((size_t)count * sizeof *sorted);
    if (!sorted) return PABD_ERR_MEMORY;
    memcpy(sorted, judge->found.depths, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    for (int32_t k = 0; k < count; ++k) {
      mean += sorted[k];
      over_10mm += sorted[k] > 0.01;
    }
    mean /= count;
    p99 = pabd_quantile(sorted, count, 0.99);
    free(sorted);
  }
  PABD_TRY(pabd_judge_put(w, out, "penetration_max", w->tally[0].max, "m", "lower"));
  if (judge->is_settled)
    PABD_TRY(pabd_judge_put(w, out, "penetration_settled_max", w->tally[0].settled_max, "m", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "penetration_max_end", judge->found.deepest, "m", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "penetration_mean_end", mean, "m", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "penetration_p99_end", p99, "m", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "pairs_over_10mm_end", over_10mm, "1", "lower"));
  return put_contact_pairs(w, out);
}

const pabd_judge_kind pabd_judge_penetration = {"penetration", penetration_begin, penetration_frame,
                                                penetration_finish};

/* ---- Pile ---- */

enum { START_MOMENTUM = SWEEPS + 1, IMPACT_MOMENTUM, LAST_MOMENTUM, FLOOR, FLOOR_X, FLOOR_Y }; /* numbers */
enum { HAS_FLOOR, HAS_IMPACT };                                                                /* flags */

#define LOST_DISTANCE 1000.0 /* m from its start, with or without a floor */

/* The widest shape that cannot move is the floor: a body is lost below its top or beyond its sides. */
static void find_floor(const pabd_scene *scene, pabd_watch *w) {
  double widest = 0;
  for (int32_t k = 0; k < scene->shape_count; ++k) {
    const pabd_body *body = &scene->bodies[scene->shapes[k].body];
    if (body->motion != PABD_STATIC) continue;
    const double pose[7] = {body->pose.p.x, body->pose.p.y, body->pose.p.z, body->pose.q.w,
                            body->pose.q.x, body->pose.q.y, body->pose.q.z};
    pabd_solid s = pabd_solid_place(scene, &scene->shapes[k], pose);
    pabd_dvec3 low, high;
    pabd_solid_bounds(&s, &low, &high);
    if (!(high.x - low.x > widest)) continue;
    widest = high.x - low.x;
    w->flag[HAS_FLOOR] = 1;
    w->number[FLOOR] = s.kind == PABD_PLANE ? s.p.z : high.z;
    w->number[FLOOR_X] = fmax(fabs(low.x), fabs(high.x));
    w->number[FLOOR_Y] = fmax(fabs(low.y), fabs(high.y));
  }
}

static pabd_status pile_begin(pabd_judge *judge, pabd_watch *w) {
  find_floor(judge->scene, w);
  w->number[START_MOMENTUM] = w->number[LAST_MOMENTUM] = judge->start.momentum.x;
  PABD_TRY(pabd_judge_needs_pairs(judge));
  PABD_TRY(pabd_judge_track(judge, "contact_pairs", "1", 0, &w->track[0]));
  return pabd_judge_track(judge, "com_height", "m", 0, &w->track[1]);
}

/* The pile is all dynamic bodies but the ball. */
static int is_of_pile(const pabd_judge *judge, const pabd_watch *w, int32_t body) {
  return judge->scene->bodies[body].motion == PABD_DYNAMIC && body != w->metric->body;
}

static double height_of_pile(const pabd_judge *judge, const pabd_watch *w) {
  double mass = 0, height = 0;
  for (int32_t i = 0; i < judge->scene->body_count; ++i) {
    if (!is_of_pile(judge, w, i)) continue;
    mass += judge->scene->bodies[i].mass;
    height += judge->scene->bodies[i].mass * judge->pose[7 * (size_t)i + 2];
  }
  return mass > 0 ? height / mass : NAN;
}

static void pile_frame(pabd_judge *judge, pabd_watch *w) {
  if (judge->is_swept) {
    count_contact_pairs(judge, w);
    pabd_judge_note(judge, w->track[0], judge->found.touching);
  }
  pabd_judge_note(judge, w->track[1], height_of_pile(judge, w));
  double at = w->metric->number[0], h = judge->scene->frame_time, now = judge->now.momentum.x;
  if (!w->flag[HAS_IMPACT] && judge->time >= at - 1e-9) {
    double past = fmax(0, judge->time - at) / h; /* part of the frame after that time */
    w->number[IMPACT_MOMENTUM] = now + past * (w->number[LAST_MOMENTUM] - now);
    w->flag[HAS_IMPACT] = 1;
  }
  w->number[LAST_MOMENTUM] = now;
}

static pabd_status pile_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  const pabd_scene *scene = judge->scene;
  const double *n = w->number;
  double squares = 0;
  int32_t lost = 0, count = 0;
  for (int32_t i = 0; i < scene->body_count; ++i) {
    pabd_dvec3 x = pabd_body_position(judge->pose, i);
    if (scene->bodies[i].motion == PABD_DYNAMIC) {
      int is_off = w->flag[HAS_FLOOR] && (x.z < n[FLOOR] || fabs(x.x) > n[FLOOR_X] || fabs(x.y) > n[FLOOR_Y]);
      lost += is_off || v3_norm(v3_sub(x, scene->bodies[i].pose.p)) > LOST_DISTANCE;
    }
    if (!is_of_pile(judge, w, i)) continue;
    ++count;
    squares += x.x * x.x + x.y * x.y;
  }
  PABD_TRY(pabd_judge_put(w, out, "com_height_end", height_of_pile(judge, w), "m", "info"));
  PABD_TRY(pabd_judge_put(w, out, "spread_end", count > 0 ? sqrt(squares / count) : NAN, "m", "info"));
  PABD_TRY(put_contact_pairs(w, out));
  PABD_TRY(pabd_judge_put(w, out, "bodies_lost", lost, "1", "lower"));
  if (!w->flag[HAS_IMPACT] || n[START_MOMENTUM] == 0) return PABD_OK;
  return pabd_judge_put(w, out, "impact_momentum_kept", n[IMPACT_MOMENTUM] / n[START_MOMENTUM], "1", "info");
}

const pabd_judge_kind pabd_judge_pile = {"pile", pile_begin, pile_frame, pile_finish};
