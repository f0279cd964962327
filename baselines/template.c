/* A minimal engine, to copy and fill: free rigid bodies under gravity and loads, semi-implicit Euler. No contacts, no
 * joints.
 *
 * It is complete: it refuses what it cannot do, checks its settings, tells its stages, frees what it made. Replace
 * `body` and the loop in step() by calls of your engine, then raise `capabilities` one by one;
 * tests/engine_conformance.h has a check for each. Equations: v += h f/m, w += h I^-1 (t - w x I w) in the body frame,
 * then p += h v, q = exp(h w) q. Invariant: poses are of the center of mass and the principal frame, velocities are in
 * the world frame. */
#include <stdlib.h>
#include <string.h>

#include "common/baseline.h"

/* 1. Settings: one line each, the order is the order in records. Say where each default comes from. */
enum { SUBSTEPS, SETTING_COUNT };

static const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"substeps", "int", "1", "1 .. 10000", "1", "steps a frame, each of frame_time / substeps", "one step a frame"},
};

/* 2. What a scene may contain. Everything else is answered with "not supported" before create() does anything. */
static const uint64_t capabilities = PABD_CAN_LOADS | PABD_CAN_DETERMINISM;

typedef struct template_world {
  double value[SETTING_COUNT];
  pabd_scene scene;                /* our own copy */
  double *pose, *velocity, *force; /* [body_count][7], [6], [6] */
  double time, step_ms;
} template_world;

/* 3. Can it run here? An engine that needs a device or a library says PABD_ERR_UNAVAILABLE and why. */
static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  *info = (pabd_engine_info){"template", "1", "double", "cpu", "MIT", "source", capabilities};
  return PABD_OK;
}

static const pabd_setting_info *settings(int32_t *count) {
  *count = SETTING_COUNT;
  return settings_table;
}

static void destroy(void *world) {
  template_world *w = world;
  if (w == NULL) return;
  pabd_scene_free(&w->scene);
  free(w->pose);
  free(w->velocity);
  free(w->force);
  free(w);
}

static pabd_status build(template_world *w, const pabd_scene *scene) {
  const size_t bodies = (size_t)scene->body_count + 1;
  PABD_TRY(pabd_scene_copy(scene, &w->scene));
  w->pose = calloc(bodies * 7, sizeof *w->pose);
  w->velocity = calloc(bodies * 6, sizeof *w->velocity);
  w->force = calloc(bodies * 6, sizeof *w->force);
  if (!w->pose || !w->velocity || !w->force) return PABD_ERR_MEMORY;
  for (int32_t b = 0; b < scene->body_count; ++b) {
    const pabd_body *body = &scene->bodies[b];
    const double pose[7] = {body->pose.p.x, body->pose.p.y, body->pose.p.z, body->pose.q.w,
                            body->pose.q.x, body->pose.q.y, body->pose.q.z};
    const double velocity[6] = {body->linear.x,  body->linear.y,  body->linear.z,
                                body->angular.x, body->angular.y, body->angular.z};
    memcpy(w->pose + (size_t)b * 7, pose, sizeof pose);
    if (body->motion == PABD_DYNAMIC) memcpy(w->velocity + (size_t)b * 6, velocity, sizeof velocity);
  }
  return PABD_OK;
}

/* 4. A world from a scene. Order: settings, capabilities, memory; on failure nothing is left behind. */
static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                          pabd_error *error) {
  double value[SETTING_COUNT];
  *world = NULL;
  PABD_TRY(pabd_settings_parse("template", settings_table, SETTING_COUNT, given, given_count, value, error));
  PABD_TRY(pabd_scene_supported("template", scene, capabilities, error));
  template_world *w = calloc(1, sizeof *w);
  if (w == NULL) return PABD_ERR_MEMORY;
  memcpy(w->value, value, sizeof value);
  const pabd_status status = build(w, scene);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *world = w;
  return PABD_OK;
}

static void step_body(const pabd_scene *scene, const pabd_body *body, double *p, double *v, const double *f, double h) {
  const pabd_dvec3 g = scene->gravity, i = body->inertia;
  const pabd_dquat q = {p[3], p[4], p[5], p[6]};
  v[0] += h * (g.x + f[0] / body->mass);
  v[1] += h * (g.y + f[1] / body->mass);
  v[2] += h * (g.z + f[2] / body->mass);
  pabd_dvec3 w = pabd_dquat_rotate(pabd_dquat_conj(q), (pabd_dvec3){v[3], v[4], v[5]});
  const pabd_dvec3 t = pabd_dquat_rotate(pabd_dquat_conj(q), (pabd_dvec3){f[3], f[4], f[5]});
  const pabd_dvec3 l = {i.x * w.x, i.y * w.y, i.z * w.z};
  w = (pabd_dvec3){w.x + h * (t.x - (w.y * l.z - w.z * l.y)) / i.x, w.y + h * (t.y - (w.z * l.x - w.x * l.z)) / i.y,
                   w.z + h * (t.z - (w.x * l.y - w.y * l.x)) / i.z};
  w = pabd_dquat_rotate(q, w);
  v[3] = w.x, v[4] = w.y, v[5] = w.z;
  for (int k = 0; k < 3; ++k) p[k] += h * v[k];
  const pabd_dquat turned =
      pabd_dquat_normalize(pabd_dquat_mul(pabd_dquat_from_rotation_vector((pabd_dvec3){h * w.x, h * w.y, h * w.z}), q));
  p[3] = turned.w, p[4] = turned.x, p[5] = turned.y, p[6] = turned.z;
}

/* 5. One frame. Numbers that are gone are a result: PABD_DIVERGED, never an abort. */
static pabd_status step(void *world, pabd_error *error) {
  template_world *w = world;
  const double h = w->scene.frame_time / w->value[SUBSTEPS], start = w->time, clock = pabd_now_ms();
  for (int s = 0; s < (int)w->value[SUBSTEPS]; ++s) {
    w->time = start + s * h;
    if (!pabd_scene_loads(&w->scene, w->time, w->time + h, w->force))
      memset(w->force, 0, (size_t)w->scene.body_count * 6 * sizeof *w->force);
    for (int32_t b = 0; b < w->scene.body_count; ++b)
      if (w->scene.bodies[b].motion == PABD_DYNAMIC)
        step_body(&w->scene, &w->scene.bodies[b], w->pose + (size_t)b * 7, w->velocity + (size_t)b * 6,
                  w->force + (size_t)b * 6, h);
    w->time = start + (s + 1) * h;
  }
  w->step_ms = pabd_now_ms() - clock;
  if (!pabd_state_finite(w->pose, w->velocity, w->scene.body_count))
    return pabd_fail(error, PABD_DIVERGED, "template: a body has no finite state at %.4g s", w->time);
  return PABD_OK;
}

/* 6. The state, in the scene's body order: p, q (w, x, y, z); linear, angular. */
static void read_state(void *world, double *pose, double *velocity) {
  const template_world *w = world;
  memcpy(pose, w->pose, (size_t)w->scene.body_count * 7 * sizeof *pose);
  memcpy(velocity, w->velocity, (size_t)w->scene.body_count * 6 * sizeof *velocity);
}

/* 7. What it says of its last frame: stages (collide or not) and counters. */
static void stats(void *world, pabd_engine_stats *out) {
  const template_world *w = world;
  memset(out, 0, sizeof *out);
  pabd_stats_stage(out, "integrate", 0, w->step_ms);
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((template_world *)world)->value[index], buffer, size);
}

/* 8. The table and the one exported function. NULL: contacts, given contacts, traces. */
static const pabd_engine table = {PABD_ENGINE_ABI, sizeof(pabd_engine), probe, settings, create, step,   read_state,
                                  stats,           setting_value,       NULL,  NULL,     NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
