/* An engine with one planted fault, for the tests of engine-check: our solver behind a door that lies in one way.
 *
 * It loads engines/pabd.so from the folder above its own, hands it the scene (changed, where the fault is one of
 * physics) and changes what it reads back (where the fault is one of the adapter). Setting `fault` says which; "none"
 * must pass every check. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pabd_engine.h"

static const char *const faults[] = {"none",     "quaternion", "body-frame", "damping", "units",  "pyramid",
                                     "sleeping", "stale",      "nan",        "clock",   "inertia"};
enum { NONE, QUATERNION, BODY_FRAME, DAMPING, UNITS, PYRAMID, SLEEPING, STALE, NOT_A_NUMBER, CLOCK, INERTIA, FAULTS };
enum { FROZEN_AFTER = 20 };

typedef struct faulty_world {
  void *inner;
  int fault, frame, bodies;
  double *pose, *velocity;          /* [bodies][7], [6]: as read before */
  double *stale_pose, *stale_speed; /* one frame older */
  int *slow;                        /* [bodies]: frames below the speed of sleep */
  double step_ms;
} faulty_world;

static const pabd_engine *inner;

static pabd_status load(pabd_error *error) {
  Dl_info self;
  char path[4096];
  if (inner) return PABD_OK;
  if (!dladdr((void *)&load, &self) || !self.dli_fname)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "faulty: where am I?");
  snprintf(path, sizeof path, "%s", self.dli_fname);
  char *slash = strrchr(path, '/');
  if (!slash) return pabd_fail(error, PABD_ERR_UNAVAILABLE, "faulty: loaded without a path");
  snprintf(slash, sizeof path - (size_t)(slash - path), "/../../engines/pabd.so");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return pabd_fail(error, PABD_ERR_UNAVAILABLE, "faulty: %.300s", dlerror());
  pabd_engine_entry_fn entry;
  *(void **)&entry = dlsym(library, PABD_ENGINE_ENTRY_NAME);
  inner = entry ? entry() : NULL;
  return inner ? PABD_OK : pabd_fail(error, PABD_ERR_UNAVAILABLE, "faulty: no table in %.300s", path);
}

static const pabd_setting_info settings_table[] = {
    {"fault", "choice", "none",
     "none | quaternion | body-frame | damping | units | pyramid | sleeping | stale | nan | clock | inertia", "1",
     "what is wrong", "planted"}};

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  memset(info, 0, sizeof *info);
  info->name = "faulty", info->version = "1", info->precision = "double", info->device = "cpu", info->license = "MIT";
  info->build = "test";
  PABD_TRY(load(error));
  pabd_engine_info own;
  PABD_TRY(inner->probe(&own, error));
  info->capabilities =
      own.capabilities & ~(uint64_t)(PABD_CAN_SET_CONTACTS | PABD_CAN_TRACE | PABD_CAN_REPORT_CONTACTS |
                                     PABD_CAN_THREADS | PABD_CAN_RESTITUTION);
  return PABD_OK;
}

static const pabd_setting_info *settings(int32_t *count) {
  *count = 1;
  return settings_table;
}

/* The scene as the fault has it. */
static void spoil(pabd_scene *scene, int fault) {
  for (int32_t i = 0; i < scene->body_count; ++i) {
    pabd_body *b = &scene->bodies[i];
    double vx = b->linear.x, vy = b->linear.y;
    if (b->motion != PABD_DYNAMIC) continue;
    if (fault == INERTIA) b->inertia.x *= 1.5, b->inertia.y *= 1.5, b->inertia.z *= 1.5;
    if (fault == DAMPING) {
      pabd_load load = {i, {-0.01 * b->mass * vx, -0.01 * b->mass * vy, 0}, {0, 0, 0}, 0, 1e9};
      pabd_scene_add_load(scene, &load);
    }
    /* a pyramid aligned with x and y bounds each component: its bound along the diagonal is larger */
    if (fault == PYRAMID && hypot(vx, vy) > 0)
      for (int32_t m = 0; m < scene->material_count * scene->material_count; ++m)
        scene->friction[m] *= (fabs(vx) + fabs(vy)) / hypot(vx, vy);
  }
  if (fault == UNITS) scene->gravity.z *= 0.3048;
}

static void destroy(void *world) {
  faulty_world *w = world;
  if (!w) return;
  if (w->inner) inner->destroy(w->inner);
  free(w->pose), free(w->velocity), free(w->stale_pose), free(w->stale_speed), free(w->slow);
  free(w);
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t count, void **world,
                          pabd_error *error) {
  PABD_TRY(load(error));
  faulty_world *w = calloc(1, sizeof *w);
  if (!w) return PABD_ERR_MEMORY;
  for (int32_t k = 0; k < count; ++k)
    for (int f = 0; f < FAULTS; ++f)
      if (strcmp(given[k].key, "fault") == 0 && strcmp(given[k].value, faults[f]) == 0) w->fault = f;
  size_t bodies = (size_t)scene->body_count + 1;
  w->bodies = scene->body_count;
  w->pose = calloc(bodies * 7, sizeof(double)), w->velocity = calloc(bodies * 6, sizeof(double));
  w->stale_pose = calloc(bodies * 7, sizeof(double)), w->stale_speed = calloc(bodies * 6, sizeof(double));
  w->slow = calloc(bodies, sizeof(int));
  /* a copy of what the faults change; the rest is shared */
  pabd_scene own = *scene;
  size_t materials = (size_t)scene->material_count * (size_t)scene->material_count;
  own.bodies = malloc(bodies * sizeof *own.bodies);
  own.friction = malloc(materials * sizeof *own.friction);
  own.load_capacity = scene->load_count + scene->body_count + 1;
  own.loads = malloc((size_t)own.load_capacity * sizeof *own.loads);
  pabd_status status = PABD_ERR_MEMORY;
  if (w->pose && w->velocity && w->stale_pose && w->stale_speed && w->slow && own.bodies && own.friction && own.loads) {
    memcpy(own.bodies, scene->bodies, (size_t)scene->body_count * sizeof *own.bodies);
    memcpy(own.friction, scene->friction, materials * sizeof *own.friction);
    if (scene->load_count) memcpy(own.loads, scene->loads, (size_t)scene->load_count * sizeof *own.loads);
    spoil(&own, w->fault);
    /* islands solved exactly where they are small, so that only the fault can fail */
    const pabd_setting setting = {"global_step", "auto"};
    status = inner->create(&own, &setting, 1, &w->inner, error);
  }
  free(own.bodies), free(own.friction), free(own.loads);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  inner->read(w->inner, w->pose, w->velocity);
  *world = w;
  return PABD_OK;
}

static pabd_status step(void *world, pabd_error *error) {
  faulty_world *w = world;
  double pose[7], velocity[6];
  memcpy(w->stale_pose, w->pose, (size_t)w->bodies * 7 * sizeof *pose);
  memcpy(w->stale_speed, w->velocity, (size_t)w->bodies * 6 * sizeof *velocity);
  pabd_status status = inner->step(w->inner, error);
  inner->read(w->inner, w->pose, w->velocity);
  ++w->frame;
  for (int i = 0; i < w->bodies; ++i) {
    const double *v = w->velocity + 6 * (size_t)i;
    int is_slow = fabs(v[0]) + fabs(v[1]) + fabs(v[2]) + fabs(v[3]) + fabs(v[4]) + fabs(v[5]) < 0.05;
    if (w->slow[i] <= FROZEN_AFTER) w->slow[i] = is_slow ? w->slow[i] + 1 : 0;
    if (w->fault == SLEEPING && w->slow[i] > FROZEN_AFTER) {
      memcpy(w->pose + 7 * (size_t)i, w->stale_pose + 7 * (size_t)i, sizeof pose);
      memset(w->velocity + 6 * (size_t)i, 0, sizeof velocity);
    }
  }
  return status;
}

static void read_state(void *world, double *pose, double *velocity) {
  const faulty_world *w = world;
  int is_stale = w->fault == STALE && w->frame > 0;
  memcpy(pose, is_stale ? w->stale_pose : w->pose, (size_t)w->bodies * 7 * sizeof *pose);
  memcpy(velocity, is_stale ? w->stale_speed : w->velocity, (size_t)w->bodies * 6 * sizeof *velocity);
  for (int i = 0; i < w->bodies; ++i) {
    double *p = pose + 7 * (size_t)i, *v = velocity + 6 * (size_t)i;
    const pabd_dquat q = {p[3], p[4], p[5], p[6]};
    if (w->fault == QUATERNION) p[3] = q.x, p[4] = q.y, p[5] = q.z, p[6] = q.w;
    if (w->fault == BODY_FRAME) {
      const pabd_dvec3 b = pabd_dquat_rotate(pabd_dquat_conj(q), (pabd_dvec3){v[3], v[4], v[5]});
      v[3] = b.x, v[4] = b.y, v[5] = b.z;
    }
    if (w->fault == NOT_A_NUMBER && w->frame > 20) p[0] = NAN;
  }
}

static void stats(void *world, pabd_engine_stats *out) {
  const faulty_world *w = world;
  inner->stats(w->inner, out);
  double own = 0;
  for (int k = 0; k < out->stage_count; ++k) own += out->stages[k].ms;
  out->self_ms = w->fault == CLOCK ? 0.1 * own : 0;
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  (void)index;
  snprintf(buffer, (size_t)size, "%s", faults[((faulty_world *)world)->fault]);
}

static const pabd_engine table = {PABD_ENGINE_ABI, sizeof(pabd_engine), probe, settings, create, step,   read_state,
                                  stats,           setting_value,       NULL,  NULL,     NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
