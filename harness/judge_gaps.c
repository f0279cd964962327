/* Joint errors over all joints, signed gaps as series, and the gaps of a hanging chain against statics. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "judge_internal.h"
#include "vec3.h"

/* ---- Errors ---- */

enum { POSITION, ANGLE, LIMIT, LIMIT_ANGLE };                      /* tallies */
enum { VELOCITY_MAX, RMS_SUM, RMS_COUNT, ANGLE_SUM, ANGLE_COUNT }; /* numbers */

static pabd_status joints_begin(pabd_judge *judge, pabd_watch *w) {
  judge->needs_joints = 1;
  for (int32_t j = 0; j < judge->scene->joint_count; ++j) {
    const pabd_joint *joint = &judge->scene->joints[j];
    if (pabd_joint_has_position(joint)) w->flag[POSITION] = 1;
    if (pabd_joint_has_angle(joint)) w->flag[ANGLE] = 1;
    if (joint->has_limits && joint->kind == PABD_SLIDER) w->flag[LIMIT] = 1;
    if (joint->has_limits && joint->kind == PABD_HINGE) w->flag[LIMIT_ANGLE] = 1;
  }
  if (w->flag[POSITION]) PABD_TRY(pabd_judge_track(judge, "joint_pos_err", "m", 1, &w->track[POSITION]));
  if (w->flag[ANGLE]) PABD_TRY(pabd_judge_track(judge, "joint_ang_err", "rad", 1, &w->track[ANGLE]));
  return PABD_OK;
}

static void joints_frame(pabd_judge *judge, pabd_watch *w) {
  double position = 0, angle = 0, limit = 0, limit_angle = 0;
  for (int32_t j = 0; j < judge->scene->joint_count; ++j) {
    const pabd_joint *joint = &judge->scene->joints[j];
    const pabd_joint_state *s = &judge->joints[j];
    if (pabd_joint_has_position(joint)) {
      position = fmax(position, s->position_err);
      w->number[RMS_SUM] += s->position_err * s->position_err;
      w->number[RMS_COUNT] += 1;
      w->number[VELOCITY_MAX] = fmax(w->number[VELOCITY_MAX], s->velocity_err);
    }
    if (pabd_joint_has_angle(joint)) {
      angle = fmax(angle, s->angle_err);
      w->number[ANGLE_SUM] += s->angle_err * s->angle_err;
      w->number[ANGLE_COUNT] += 1;
    }
    if (joint->kind == PABD_SLIDER) limit = fmax(limit, s->limit_err);
    if (joint->kind == PABD_HINGE) limit_angle = fmax(limit_angle, s->limit_err);
  }
  pabd_tally_add(judge, &w->tally[POSITION], position);
  pabd_tally_add(judge, &w->tally[ANGLE], angle);
  pabd_tally_add(judge, &w->tally[LIMIT], limit);
  pabd_tally_add(judge, &w->tally[LIMIT_ANGLE], limit_angle);
  if (w->flag[POSITION]) pabd_judge_note(judge, w->track[POSITION], position);
  if (w->flag[ANGLE]) pabd_judge_note(judge, w->track[ANGLE], angle);
}

static pabd_status joints_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  static const char *const keys[4][2] = {{"joint_pos_err_max", "joint_pos_err_settled_max"},
                                         {"joint_ang_err_max", "joint_ang_err_settled_max"},
                                         {"joint_limit_err_max", "joint_limit_err_settled_max"},
                                         {"joint_limit_ang_err_max", "joint_limit_ang_err_settled_max"}};
  static const char *const units[4] = {"m", "rad", "m", "rad"};
  const double *n = w->number;
  for (int k = 0; k < 4; ++k) {
    if (!w->flag[k]) continue;
    PABD_TRY(pabd_judge_put(w, out, keys[k][0], w->tally[k].max, units[k], "lower"));
    if (judge->is_settled) PABD_TRY(pabd_judge_put(w, out, keys[k][1], w->tally[k].settled_max, units[k], "lower"));
  }
  if (w->flag[POSITION]) {
    PABD_TRY(pabd_judge_put(w, out, "joint_pos_err_rms", sqrt(n[RMS_SUM] / n[RMS_COUNT]), "m", "lower"));
    PABD_TRY(pabd_judge_put(w, out, "joint_vel_err_max", n[VELOCITY_MAX], "m/s", "lower"));
  }
  if (!w->flag[ANGLE]) return PABD_OK;
  return pabd_judge_put(w, out, "joint_ang_err_rms", sqrt(n[ANGLE_SUM] / n[ANGLE_COUNT]), "rad", "lower");
}

const pabd_judge_kind pabd_judge_joint_errors = {"joints", joints_begin, joints_frame, joints_finish};

/* ---- Gap series ---- */

#define GAP_SERIES_MAX 32 /* of a longer chain, so many joints evenly spaced, the first and the last among them */

typedef struct gap_list {
  int32_t count;
  int32_t joint[GAP_SERIES_MAX], track[GAP_SERIES_MAX];
} gap_list;

static pabd_status gap_series_begin(pabd_judge *judge, pabd_watch *w) {
  gap_list *list = w->data = calloc(1, sizeof *list);
  if (!list) return PABD_ERR_MEMORY;
  judge->needs_joints = 1;
  int32_t joints = judge->scene->joint_count;
  list->count = w->metric->joint >= 0 ? 1 : joints < GAP_SERIES_MAX ? joints : GAP_SERIES_MAX;
  for (int32_t k = 0; k < list->count; ++k) {
    char key[PABD_KEY_SIZE];
    list->joint[k] = w->metric->joint;
    if (w->metric->joint < 0)
      list->joint[k] = list->count < 2 ? 0 : (int32_t)((int64_t)k * (joints - 1) / (list->count - 1));
    snprintf(key, sizeof key, "joint_gap_%d", (int)list->joint[k]);
    PABD_TRY(pabd_judge_track(judge, key, "m", 1, &list->track[k]));
  }
  return PABD_OK;
}

static void gap_series_frame(pabd_judge *judge, pabd_watch *w) {
  const gap_list *list = w->data;
  for (int32_t k = 0; k < list->count; ++k) {
    pabd_judge_note(judge, list->track[k], judge->joints[list->joint[k]].signed_gap);
  }
}

static pabd_status gap_series_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  (void)judge;
  (void)w;
  (void)out;
  return PABD_OK; /* its series are written with all others */
}

const pabd_judge_kind pabd_judge_gap_series = {"gap_series", gap_series_begin, gap_series_frame, gap_series_finish};

/* ---- Hanging gap ---- */

/* Tension of each joint of a tree hung from the world: the weight of all that hangs below. data: double [joint_count],
 * N; NAN everywhere when there is a loop. */
static pabd_status hanging_begin(pabd_judge *judge, pabd_watch *w) {
  const pabd_scene *scene = judge->scene;
  size_t bodies = (size_t)scene->body_count, joints = (size_t)scene->joint_count;
  judge->needs_joints = 1;
  double *tension = w->data = malloc((joints + 1) * sizeof *tension);
  double *below = calloc(bodies + 1, sizeof *below);     /* kg, of the body and all below it */
  int32_t *above = malloc((bodies + 1) * sizeof *above); /* joint that holds it; -1 none yet */
  int32_t *order = malloc((bodies + 1) * sizeof *order);
  int32_t *first = calloc(bodies + 2, sizeof *first), *incident = malloc((2 * joints + 1) * sizeof *incident);
  pabd_status status = tension && below && above && order && first && incident ? PABD_OK : PABD_ERR_MEMORY;
  if (status == PABD_OK) {
    int has_loop = 0;
    int32_t found = 0;
    for (size_t j = 0; j < joints; ++j) {
      tension[j] = NAN;
      if (scene->joints[j].body_a != PABD_WORLD) ++first[scene->joints[j].body_a];
      ++first[scene->joints[j].body_b];
    }
    for (size_t i = 1; i <= bodies; ++i) first[i] += first[i - 1];
    for (size_t j = joints; j-- > 0;) {
      if (scene->joints[j].body_a != PABD_WORLD) incident[--first[scene->joints[j].body_a]] = (int32_t)j;
      incident[--first[scene->joints[j].body_b]] = (int32_t)j;
    }
    for (size_t i = 0; i < bodies; ++i) above[i] = -1;
    for (size_t j = 0; j < joints; ++j) {
      if (scene->joints[j].body_a != PABD_WORLD) continue;
      int32_t body = scene->joints[j].body_b;
      has_loop |= above[body] >= 0;
      above[body] = (int32_t)j;
      order[found++] = body;
      if (has_loop) break;
    }
    for (int32_t k = 0; k < found && !has_loop; ++k) {
      int32_t body = order[k];
      for (int32_t e = first[body]; e < first[body + 1]; ++e) {
        const pabd_joint *joint = &scene->joints[incident[e]];
        int32_t other = joint->body_a == body ? joint->body_b : joint->body_a;
        if (incident[e] == above[body]) continue;
        if (other == PABD_WORLD || above[other] >= 0) {
          has_loop = 1;
          break;
        }
        above[other] = incident[e];
        order[found++] = other;
      }
    }
    for (int32_t k = found - 1; k >= 0 && !has_loop; --k) {
      int32_t body = order[k];
      if (scene->bodies[body].motion == PABD_DYNAMIC) below[body] += scene->bodies[body].mass;
      const pabd_joint *joint = &scene->joints[above[body]];
      int32_t other = joint->body_a == body ? joint->body_b : joint->body_a;
      if (other != PABD_WORLD) below[other] += below[body];
      tension[above[body]] = below[body] * v3_norm(scene->gravity);
    }
  }
  free(below);
  free(above);
  free(order);
  free(first);
  free(incident);
  return status;
}

static void hanging_frame(pabd_judge *judge, pabd_watch *w) {
  (void)judge;
  (void)w;
}

static pabd_status hanging_finish(const pabd_judge *judge, const pabd_watch *w, pabd_metrics *out) {
  const double *tension = w->data;
  double worst = NAN;
  for (int32_t j = 0; j < judge->scene->joint_count; ++j) {
    if (!(tension[j] > 0) || !pabd_joint_has_position(&judge->scene->joints[j])) continue;
    double error = fabs(judge->joints[j].position_err * w->metric->number[0] / tension[j] - 1);
    if (isnan(worst) || error > worst) worst = error;
  }
  return pabd_judge_put(w, out, "hanging_gap_rel_err", worst, "1", "lower");
}

const pabd_judge_kind pabd_judge_hanging_gap = {"hanging_gap", hanging_begin, hanging_frame, hanging_finish};
