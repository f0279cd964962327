/* Single bodies and when things happen: standing, first low point, stopping, creeping, flips, closed-form positions.
 *
 * Starts are the scene's. Times are of frames, but for zero crossings and low points, which are interpolated. */
#include <math.h>
#include <stdlib.h>

#include "judge_internal.h"
#include "vec3.h"

static pabd_status nothing_to_begin(pabd_judge *judge, pabd_watch *w) {
  (void)judge;
  (void)w;
  return PABD_OK;
}

static void nothing_to_do(pabd_judge *judge, pabd_watch *w) {
  (void)judge;
  (void)w;
}

static pabd_dvec3 move_of(const pabd_judge *judge, int32_t body) {
  return v3_sub(pabd_body_position(judge->pose, body), judge->scene->bodies[body].pose.p);
}

/* ---- Survive ---- */

enum { FALL_TIME, TILT_MAX, DRIFT_MAX, SINK_MAX, RISE_MAX }; /* numbers */

/* data: char [body_count], 1 for dynamic bodies that carry a box. */
static pabd_status survive_begin(pabd_judge *judge, pabd_watch *w) {
  const pabd_scene *scene = judge->scene;
  char *is_box = w->data = calloc((size_t)scene->body_count + 1, 1);
  if (!is_box) return PABD_ERR_MEMORY;
  for (int32_t k = 0; k < scene->shape_count; ++k) {
    int32_t body = scene->shapes[k].body;
    is_box[body] |= scene->shapes[k].kind == PABD_BOX && scene->bodies[body].motion == PABD_DYNAMIC;
  }
  w->number[FALL_TIME] = NAN;
  return PABD_OK;
}

/* Angle between the direction in the body that was up at the start, and up. */
static double tilt_of(const pabd_judge *judge, int32_t body) {
  static const pabd_dvec3 up = {0, 0, 1};
  pabd_dvec3 in_body = pabd_dquat_rotate(pabd_dquat_conj(judge->scene->bodies[body].pose.q), up);
  pabd_dvec3 now = pabd_dquat_rotate(pabd_body_rotation(judge->pose, body), in_body);
  return atan2(hypot(now.x, now.y), now.z);
}

static void survive_frame(pabd_judge *judge, pabd_watch *w) {
  const char *is_box = w->data;
  const double *limit = w->metric->number; /* sink m, tilt degrees, drift m, rise m */
  double tilt = 0, drift = 0, rise = 0, sink = 0;
  for (int32_t i = 0; i < judge->scene->body_count; ++i) {
    if (!is_box[i]) continue;
    pabd_dvec3 move = move_of(judge, i);
    tilt = fmax(tilt, tilt_of(judge, i));
    drift = fmax(drift, hypot(move.x, move.y));
    rise = fmax(rise, move.z);
    if (w->metric->body < 0 || w->metric->body == i) sink = fmax(sink, -move.z);
  }
  w->number[TILT_MAX] = fmax(w->number[TILT_MAX], tilt);
  w->number[DRIFT_MAX] = fmax(w->number[DRIFT_MAX], drift);
  w->number[RISE_MAX] = fmax(w->number[RISE_MAX], rise);
  w->number[SINK_MAX] = fmax(w->number[SINK_MAX], sink);
  int has_fallen = sink >= limit[0] || tilt >= limit[1] * M_PI / 180 || drift >= limit[2] || rise >= limit[3];
  if (has_fallen && isnan(w->number[FALL_TIME])) w->number[FALL_TIME] = judge->time;
}

static pabd_status survive_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  /* A run that ended early has stood no longer than it ran. */
  double stood = isnan(w->number[FALL_TIME]) ? judge->time : w->number[FALL_TIME];
  int stands = isnan(w->number[FALL_TIME]) && !judge->is_diverged && judge->frame == judge->c->frame_count;
  if (stands) stood = fmax(stood, judge->c->duration); /* which need not be a whole number of frames */
  PABD_TRY(pabd_judge_put(w, out, "survive_s", stood, "s", "higher"));
  PABD_TRY(pabd_judge_put(w, out, "stands", stands, "1", "higher"));
  PABD_TRY(pabd_judge_put(w, out, "tilt_max", w->number[TILT_MAX], "rad", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "drift_max", w->number[DRIFT_MAX], "m", "lower"));
  PABD_TRY(pabd_judge_put(w, out, "rise_max", w->number[RISE_MAX], "m", "lower"));
  return pabd_judge_put(w, out, "sink_max", w->number[SINK_MAX], "m", "lower");
}

const pabd_judge_kind pabd_judge_survive = {"survive", survive_begin, survive_frame, survive_finish};

/* ---- First low point ---- */

static pabd_status first_low_begin(pabd_judge *judge, pabd_watch *w) {
  return pabd_judge_track(judge, "", "m", 0, &w->track[0]);
}

static void first_low_frame(pabd_judge *judge, pabd_watch *w) {
  pabd_judge_note(judge, w->track[0], judge->pose[7 * (size_t)w->metric->body + 2]);
}

static pabd_status first_low_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  const double *z = judge->tracks[w->track[0]].values;
  double lowest = INFINITY, low_time = NAN, low = NAN;
  for (int32_t f = 0; f <= judge->frame; ++f) lowest = fmin(lowest, z[f]);
  for (int32_t f = 1; f < judge->frame; ++f) {
    /* A tenth of the largest drop at least, so that jitter at the start is no low point. */
    if (!(z[f] < z[f - 1] && z[f] <= z[f + 1]) || z[0] - z[f] < 0.1 * (z[0] - lowest)) continue;
    double slope = 0.5 * (z[f + 1] - z[f - 1]), curvature = z[f + 1] - 2 * z[f] + z[f - 1];
    double at = curvature > 0 ? -slope / curvature : 0; /* in frames, within +-1/2 */
    low_time = (f + at) * judge->scene->frame_time;
    low = z[f] + 0.5 * slope * at;
    break;
  }
  PABD_TRY(pabd_judge_put(w, out, "first_low_s", low_time, "s", "equal"));
  PABD_TRY(pabd_judge_put(w, out, "first_low_z", low, "m", "info"));
  if (isnan(w->metric->reference)) return PABD_OK;
  return pabd_judge_put(w, out, "first_low_s_err", fabs(low_time - w->metric->reference), "s", "lower");
}

const pabd_judge_kind pabd_judge_first_low = {"first_low", first_low_begin, first_low_frame, first_low_finish};

/* ---- Stopping distance ---- */

static pabd_status stop_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  const pabd_body *body = &judge->scene->bodies[w->metric->body];
  pabd_dvec3 move = move_of(judge, w->metric->body);
  double distance = v3_norm(move), speed = v3_norm(body->linear);
  PABD_TRY(pabd_judge_put(w, out, "stop_distance", distance, "m", "equal"));
  if (!isnan(w->metric->reference))
    PABD_TRY(pabd_judge_put(w, out, "stop_distance_err", fabs(distance - w->metric->reference), "m", "lower"));
  if (speed == 0) return PABD_OK;
  /* How far off the line it was sent along: friction that is not isotropic turns it. */
  double along = v3_dot(move, body->linear) / speed;
  double aside = v3_norm(v3_madd(move, -along / speed, body->linear));
  return pabd_judge_put(w, out, "stop_aside", aside, "m", "lower");
}

const pabd_judge_kind pabd_judge_stop_distance = {"stop_distance", nothing_to_begin, nothing_to_do, stop_finish};

/* ---- Creep ---- */

/* data: double [body_count][2], x and y at the start of the window; flag 0: captured. */
static pabd_status creep_begin(pabd_judge *judge, pabd_watch *w) {
  w->data = malloc(((size_t)judge->scene->body_count + 1) * 2 * sizeof(double));
  return w->data ? PABD_OK : PABD_ERR_MEMORY;
}

static void creep_frame(pabd_judge *judge, pabd_watch *w) {
  double *from = w->data;
  if (judge->time < w->metric->number[0] - 1e-9) return;
  for (int32_t i = 0; i < judge->scene->body_count; ++i) {
    if (judge->scene->bodies[i].motion != PABD_DYNAMIC || (w->metric->body >= 0 && w->metric->body != i)) continue;
    const double *x = judge->pose + 7 * (size_t)i;
    if (!w->flag[0]) from[2 * i] = x[0], from[2 * i + 1] = x[1];
    w->number[0] = fmax(w->number[0], hypot(x[0] - from[2 * i], x[1] - from[2 * i + 1]));
  }
  w->flag[0] = 1;
}

static pabd_status creep_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  (void)judge;
  return pabd_judge_put(w, out, "creep", w->flag[0] ? w->number[0] : NAN, "m", "lower");
}

const pabd_judge_kind pabd_judge_creep = {"creep", creep_begin, creep_frame, creep_finish};

/* ---- Flips ---- */

enum { LAST_COSINE, FIRST_FLIP, WORST_FLIP }; /* numbers; flag 0: flips seen */

static pabd_status flips_begin(pabd_judge *judge, pabd_watch *w) {
  w->number[FIRST_FLIP] = NAN;
  return pabd_judge_track(judge, "axis_cosine", "1", 0, &w->track[0]);
}

static void flips_frame(pabd_judge *judge, pabd_watch *w) {
  int32_t body = w->metric->body;
  pabd_dvec3 momentum = pabd_body_angular_momentum(judge->scene, judge->pose, judge->velocity, body);
  pabd_dvec3 axis = pabd_dquat_rotate(pabd_body_rotation(judge->pose, body), w->metric->axis);
  double size = v3_norm(momentum) * v3_norm(axis), cosine = size > 0 ? v3_dot(axis, momentum) / size : 0;
  pabd_judge_note(judge, w->track[0], cosine);
  double last = w->number[LAST_COSINE];
  if (cosine == 0) return; /* neither side: the crossing counts when the sign has changed */
  if (cosine * last < 0) {
    double at = judge->time - judge->scene->frame_time * cosine / (cosine - last);
    double expected = w->metric->reference + w->flag[0] * w->metric->number[0];
    if (w->flag[0] == 0) w->number[FIRST_FLIP] = at;
    if (!isnan(expected)) w->number[WORST_FLIP] = fmax(w->number[WORST_FLIP], fabs(at - expected));
    ++w->flag[0];
  }
  w->number[LAST_COSINE] = cosine;
}

static pabd_status flips_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  PABD_TRY(pabd_judge_put(w, out, "flips", w->flag[0], "1", "equal"));
  PABD_TRY(pabd_judge_put(w, out, "first_flip_s", w->number[FIRST_FLIP], "s", "equal"));
  double first = w->metric->reference, interval = w->metric->number[0];
  if (isnan(first)) return PABD_OK;
  /* A flip that did not come is late by at least the time since it should have come. */
  double worst = w->number[WORST_FLIP], missing = first + w->flag[0] * interval;
  if ((interval > 0 || w->flag[0] == 0) && missing < judge->time) worst = fmax(worst, judge->time - missing);
  return pabd_judge_put(w, out, "flip_s_err_max", worst, "s", "lower");
}

const pabd_judge_kind pabd_judge_flips = {"flips", flips_begin, flips_frame, flips_finish};

/* ---- Closed-form positions ---- */

static void free_fall_frame(pabd_judge *judge, pabd_watch *w) {
  double t = judge->time;
  pabd_dvec3 move = move_of(judge, w->metric->body);
  pabd_dvec3 expected =
      v3_scale(t, v3_madd(judge->scene->bodies[w->metric->body].linear, 0.5 * t, judge->scene->gravity));
  w->number[0] = v3_norm(v3_sub(move, expected));
  pabd_tally_add(judge, &w->tally[0], w->number[0]);
}

static pabd_status free_fall_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  (void)judge;
  PABD_TRY(pabd_judge_put(w, out, "free_fall_err_end", w->number[0], "m", "lower"));
  return pabd_judge_put(w, out, "free_fall_err_max", w->tally[0].max, "m", "lower");
}

const pabd_judge_kind pabd_judge_free_fall = {"free_fall", nothing_to_begin, free_fall_frame, free_fall_finish};

static pabd_status contraction_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  double height = judge->pose[7 * (size_t)w->metric->body + 2];
  double start = judge->scene->bodies[w->metric->body].pose.p.z;
  PABD_TRY(pabd_judge_put(w, out, "gap_end", height, "m", "info"));
  return pabd_judge_put(w, out, "gap_ratio_end", start != 0 ? height / start : NAN, "1", "equal");
}

const pabd_judge_kind pabd_judge_contraction = {"contraction", nothing_to_begin, nothing_to_do, contraction_finish};

static pabd_status position_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  double along = v3_dot(w->metric->axis, move_of(judge, w->metric->body));
  PABD_TRY(pabd_judge_put(w, out, "position_end", along, "m", "info"));
  if (isnan(w->metric->reference)) return PABD_OK;
  return pabd_judge_put(w, out, "position_err_end", fabs(along - w->metric->reference), "m", "lower");
}

const pabd_judge_kind pabd_judge_position = {"position", nothing_to_begin, nothing_to_do, position_finish};
