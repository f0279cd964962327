/* The judge: takes one state a frame, measures what the case asks for, writes metrics and series.
 *
 * Reference values come from the scene, never from the engine's own frame 0: an engine that starts elsewhere is
 * measured against where it should have started. Series are at most PABD_SERIES_POINTS long: frame 0, then buckets of
 * equal length; of an error the value largest in size in each bucket is kept, of any other quantity the last, and `t`
 * is the time of the bucket's last frame. Invariant: a frame that is not finite changes nothing. */
#include "judge.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge_internal.h"
#include "vec3.h"

#define LOST_DISTANCE 1e6 /* m from its start: beyond any use */

static const pabd_judge_kind *const kinds[] = {
    &pabd_judge_energy,    &pabd_judge_penetration, &pabd_judge_joint_errors, &pabd_judge_momentum,
    &pabd_judge_pile,      &pabd_judge_survive,     &pabd_judge_first_low,    &pabd_judge_stop_distance,
    &pabd_judge_creep,     &pabd_judge_flips,       &pabd_judge_com,          &pabd_judge_settle_kinetic,
    &pabd_judge_free_fall, &pabd_judge_contraction, &pabd_judge_gap_series,   &pabd_judge_hanging_gap,
    &pabd_judge_position,
};

/* ---- Services ---- */

pabd_dvec3 pabd_body_position(const double *pose, int32_t body) {
  const double *x = pose + 7 * (size_t)body;
  return (pabd_dvec3){x[0], x[1], x[2]};
}

pabd_dquat pabd_body_rotation(const double *pose, int32_t body) {
  const double *x = pose + 7 * (size_t)body;
  return pabd_dquat_normalize((pabd_dquat){x[3], x[4], x[5], x[6]});
}

pabd_dvec3 pabd_body_angular_momentum(const pabd_scene *scene, const double *pose, const double *velocity,
                                      int32_t body) {
  const double *v = velocity + 6 * (size_t)body;
  pabd_dquat q = pabd_body_rotation(pose, body);
  pabd_dvec3 w = pabd_dquat_rotate(pabd_dquat_conj(q), (pabd_dvec3){v[3], v[4], v[5]});
  pabd_dvec3 inertia = scene->bodies[body].inertia;
  return pabd_dquat_rotate(q, (pabd_dvec3){inertia.x * w.x, inertia.y * w.y, inertia.z * w.z});
}

pabd_status pabd_judge_track(pabd_judge *judge, const char *key, const char *unit, int is_error, int32_t *out) {
  assert(judge->track_count < PABD_TRACK_CAPACITY);
  pabd_track *track = &judge->tracks[judge->track_count];
  size_t count = (size_t)judge->c->frame_count + 1;
  track->values = malloc(count * sizeof *track->values);
  if (!track->values) return PABD_ERR_MEMORY;
  for (size_t k = 0; k < count; ++k) track->values[k] = NAN;
  snprintf(track->key, sizeof track->key, "%s", key);
  snprintf(track->unit, sizeof track->unit, "%s", unit);
  track->is_error = is_error;
  *out = judge->track_count++;
  return PABD_OK;
}

void pabd_judge_note(pabd_judge *judge, int32_t track, double value) {
  judge->tracks[track].values[judge->frame] = value;
}

pabd_status pabd_judge_needs_pairs(pabd_judge *judge) {
  if (!judge->pairs) judge->pairs = pabd_pair_finder_create(judge->scene);
  return judge->pairs ? PABD_OK : PABD_ERR_MEMORY;
}

void pabd_tally_add(const pabd_judge *judge, pabd_tally *tally, double value) {
  tally->max = fmax(tally->max, value);
  tally->sum_squares += value * value;
  ++tally->count;
  if (!judge->is_settled) return;
  tally->settled_max = fmax(tally->settled_max, value);
  tally->settled_sum_squares += value * value;
  ++tally->settled_count;
}

double pabd_tally_rms(const pabd_tally *tally) {
  return tally->count > 0 ? sqrt(tally->sum_squares / (double)tally->count) : 0;
}

int pabd_judge_has_settle(const pabd_judge *judge) {
  return judge->c->settle_time >= 0 && judge->time >= judge->c->settle_time - 1e-9;
}

pabd_status pabd_judge_put(const pabd_watch *watch, pabd_metrics *out, const char *key, double value, const char *unit,
                           const char *better) {
  char full[PABD_KEY_SIZE];
  if (watch->ordinal == 0) return pabd_metrics_set(out, key, value, unit, better);
  snprintf(full, sizeof full, "%s_%d", key, (int)watch->ordinal + 1);
  return pabd_metrics_set(out, full, value, unit, better);
}

/* ---- Life ---- */

/* How often pairs are looked for. A sweep costs about 1 us a body, so it is done every frame where that is nothing. */
static int32_t stride_for(int32_t shapes) {
  return shapes <= 10000 ? 1 : shapes <= 100000 ? 5 : 20;
}

pabd_judge *pabd_judge_create(const pabd_case *c) {
  pabd_judge *judge = calloc(1, sizeof *judge);
  if (!judge) return NULL;
  size_t bodies = (size_t)c->scene.body_count + 1, joints = (size_t)c->scene.joint_count + 1;
  judge->c = c;
  judge->scene = &c->scene;
  judge->frame = -1;
  judge->sweep_stride = stride_for(c->scene.shape_count);
  judge->pose = calloc(bodies * 7, sizeof *judge->pose);
  judge->last_pose = calloc(bodies * 7, sizeof *judge->last_pose);
  judge->velocity = calloc(bodies * 6, sizeof *judge->velocity);
  judge->last_velocity = calloc(bodies * 6, sizeof *judge->last_velocity);
  judge->joints = calloc(joints, sizeof *judge->joints);
  judge->angles = malloc(joints * sizeof *judge->angles);
  pabd_status status =
      judge->pose && judge->last_pose && judge->velocity && judge->last_velocity && judge->joints && judge->angles
          ? PABD_OK
          : PABD_ERR_MEMORY;
  if (status == PABD_OK) {
    for (int32_t j = 0; j < c->scene.joint_count; ++j) judge->angles[j] = NAN;
    pabd_judge_balance_start(judge);
  }
  for (int32_t k = 0; k < c->metric_count && status == PABD_OK; ++k) {
    pabd_watch *watch = &judge->watches[judge->watch_count];
    watch->metric = &c->metrics[k];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
      if (strcmp(kinds[i]->name, c->metrics[k].kind) == 0) watch->kind = kinds[i];
    }
    assert(watch->kind && "the case loader knows a kind that the judge does not");
    if (!watch->kind) continue;
    for (int32_t i = 0; i < judge->watch_count; ++i) watch->ordinal += judge->watches[i].kind == watch->kind;
    ++judge->watch_count;
    status = watch->kind->begin(judge, watch);
  }
  if (status == PABD_OK) return judge;
  pabd_judge_destroy(judge);
  return NULL;
}

void pabd_judge_destroy(pabd_judge *judge) {
  if (!judge) return;
  for (int32_t k = 0; k < judge->track_count; ++k) free(judge->tracks[k].values);
  for (int32_t k = 0; k < judge->watch_count; ++k) free(judge->watches[k].data);
  pabd_pair_finder_destroy(judge->pairs);
  free(judge->pose);
  free(judge->last_pose);
  free(judge->velocity);
  free(judge->last_velocity);
  free(judge->joints);
  free(judge->angles);
  free(judge);
}

static int is_usable(const pabd_scene *scene, const double *pose, const double *velocity) {
  for (int32_t i = 0; i < scene->body_count; ++i) {
    const double *x = pose + 7 * (size_t)i, *v = velocity + 6 * (size_t)i;
    for (int k = 0; k < 7; ++k) {
      if (!isfinite(x[k])) return 0;
    }
    for (int k = 0; k < 6; ++k) {
      if (!isfinite(v[k])) return 0;
    }
    if (!(x[3] * x[3] + x[4] * x[4] + x[5] * x[5] + x[6] * x[6] > 1e-12)) return 0;
    if (!(v3_norm(v3_sub(pabd_body_position(x, 0), scene->bodies[i].pose.p)) <= LOST_DISTANCE)) return 0;
  }
  return 1;
}

pabd_status pabd_judge_frame(pabd_judge *judge, int32_t frame, const double *pose, const double *velocity,
                             double driver_work) {
  const pabd_scene *scene = judge->scene;
  if (judge->is_diverged) return PABD_DIVERGED;
  assert(frame == judge->frame + 1 && frame <= judge->c->frame_count);
  if (!is_usable(scene, pose, velocity)) {
    judge->is_diverged = 1;
    return PABD_DIVERGED;
  }
  size_t bodies = (size_t)scene->body_count;
  double *swap = judge->last_pose;
  judge->last_pose = judge->pose;
  judge->pose = swap;
  swap = judge->last_velocity;
  judge->last_velocity = judge->velocity;
  judge->velocity = swap;
  memcpy(judge->pose, pose, bodies * 7 * sizeof *pose);
  memcpy(judge->velocity, velocity, bodies * 6 * sizeof *velocity);
  judge->frame = frame;
  judge->time = frame * scene->frame_time;
  judge->is_settled = pabd_judge_has_settle(judge);
  judge->driver_work = isfinite(driver_work) ? driver_work : 0;
  for (size_t i = 0; i < bodies; ++i) {
    const double *q = pose + 7 * i + 3;
    double off = fabs(sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) - 1);
    judge->quaternion_err = fmax(judge->quaternion_err, off);
  }
  for (int32_t j = 0; j < scene->joint_count && judge->needs_joints; ++j) {
    judge->joints[j] = pabd_joint_measure(scene, &scene->joints[j], judge->pose, judge->velocity, judge->angles[j]);
    judge->angles[j] = judge->joints[j].coordinate;
  }
  pabd_judge_balance_frame(judge);
  pabd_status status = PABD_OK;
  judge->is_swept = judge->pairs && (frame % judge->sweep_stride == 0 || frame == judge->c->frame_count);
  if (judge->is_swept) status = pabd_pair_finder_sweep(judge->pairs, judge->pose, &judge->found);
  for (int32_t k = 0; k < judge->watch_count; ++k) judge->watches[k].kind->frame(judge, &judge->watches[k]);
  return status;
}

/* ---- Results ---- */

static pabd_status write_track(const pabd_judge *judge, const pabd_track *track, pabd_metrics *out) {
  int32_t frames = judge->frame, length = 1; /* frames after frame 0, and how many go into a bucket */
  while ((frames + length - 1) / length > PABD_SERIES_POINTS) ++length;
  PABD_TRY(pabd_series_append(out, track->key, track->unit, track->values[0]));
  for (int32_t from = 1; from <= frames; from += length) {
    int32_t to = from + length - 1 < frames ? from + length - 1 : frames;
    double value = track->values[to];
    for (int32_t f = from; track->is_error && f <= to; ++f) {
      if (isnan(value) || fabs(track->values[f]) > fabs(value)) value = track->values[f];
    }
    PABD_TRY(pabd_series_append(out, track->key, track->unit, value));
  }
  return PABD_OK;
}

pabd_status pabd_judge_finish(pabd_judge *judge, pabd_metrics *out) {
  if (judge->frame < 0) return PABD_OK; /* not even a start state */
  for (int32_t k = 0; k < judge->watch_count; ++k) {
    PABD_TRY(judge->watches[k].kind->finish(judge, &judge->watches[k], out));
  }
  PABD_TRY(pabd_metrics_set(out, "quaternion_norm_err_max", judge->quaternion_err, "1", "lower"));
  pabd_track time = {"t", "s", 0, calloc((size_t)judge->frame + 1, sizeof(double))};
  if (!time.values) return PABD_ERR_MEMORY;
  for (int32_t f = 0; f <= judge->frame; ++f) time.values[f] = f * judge->scene->frame_time;
  pabd_status status = write_track(judge, &time, out);
  free(time.values);
  for (int32_t k = 0; k < judge->track_count && status == PABD_OK; ++k) {
    if (judge->tracks[k].key[0]) status = write_track(judge, &judge->tracks[k], out);
  }
  return status;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
  const unsigned char *byte = data;
  for (size_t k = 0; k < size; ++k) hash = (hash ^ byte[k]) * 1099511628211ull;
  return hash;
}

uint64_t pabd_state_hash(uint64_t seed, const double *pose, const double *velocity, int32_t body_count) {
  seed = hash_bytes(seed, pose, (size_t)body_count * 7 * sizeof *pose);
  return hash_bytes(seed, velocity, (size_t)body_count * 6 * sizeof *velocity);
}
