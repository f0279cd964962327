/* A small engine for tests of the harness: bodies fly exactly (p + v t + g t^2 / 2, constant spin), nothing collides,
 * no joint holds. The setting "mode" makes it misbehave at frame "at": what the harness must survive and record.
 *
 * Include once a shared object. Before: FAKE_NAME (a text), and perhaps FAKE_CAPABILITIES, FAKE_ABI, FAKE_SIZE,
 * FAKE_PROBE (statements that run in probe). Uses the scene's maths only. */
#ifndef FAKE_H
#define FAKE_H

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pabd_engine.h"

#ifndef FAKE_CAPABILITIES
#define FAKE_CAPABILITIES                                                                                        \
  (PABD_CAN_SPHERE | PABD_CAN_BOX | PABD_CAN_PLANE | PABD_CAN_SPHERICAL | PABD_CAN_DISTANCE | PABD_CAN_THREADS | \
   PABD_CAN_TRACE | PABD_CAN_DETERMINISM)
#endif
#ifndef FAKE_ABI
#define FAKE_ABI PABD_ENGINE_ABI
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(pabd_engine)
#endif
#ifndef FAKE_PROBE
#define FAKE_PROBE ((void)0)
#endif

static const char *const fake_modes[] = {
    "good", "crash",  "abort",     "hang",    "nan",         "fly",         "diverged", "error", "exit", "slow",
    "liar", "refuse", "bad-input", "destroy", "thread-bits", "random-bits", "shout",    "self",  "fork"};
enum {
  FAKE_GOOD,
  FAKE_CRASH,
  FAKE_ABORT,
  FAKE_HANG,
  FAKE_NAN,
  FAKE_FLY,
  FAKE_DIVERGED,
  FAKE_ERROR,
  FAKE_EXIT,
  FAKE_SLOW,
  FAKE_LIAR,
  FAKE_REFUSE,
  FAKE_BAD_INPUT,
  FAKE_DESTROY,
  FAKE_THREAD_BITS, /* results depend on the thread count */
  FAKE_RANDOM_BITS, /* results depend on the clock */
  FAKE_SHOUT,
  FAKE_SELF, /* an external engine that brings its own clock */
  FAKE_FORK, /* starts a process that outlives it */
  FAKE_MODE_COUNT
};

static const pabd_setting_info fake_setting_list[] = {
    {"mode", "choice", "good",
     "good | crash | abort | hang | nan | fly | diverged | error | exit | slow | liar | refuse | bad-input | destroy | "
     "thread-bits | random-bits | shout | self | fork",
     "1", "how to misbehave", "test"},
    {"at", "int", "10", "0 .. 1000000", "1", "frame at which it begins", "test"},
    {"threads", "int", "1", "1 .. 64", "1", "threads", "test"},
    {"gain", "real", "1", "0 .. 2", "1", "factor on gravity", "test"},
};
enum { FAKE_SETTING_COUNT = sizeof fake_setting_list / sizeof fake_setting_list[0] };

typedef struct fake_world {
  int32_t body_count, frame;
  pabd_body *bodies; /* start state */
  pabd_dvec3 gravity;
  double frame_time;
  int mode, at, threads;
  double gain, noise;
  pabd_trace_fn trace;
  void *trace_user;
} fake_world;

static pabd_status fake_probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  *info = (pabd_engine_info){FAKE_NAME, "1.0", "double", "cpu", "MIT", "source: test", FAKE_CAPABILITIES};
  FAKE_PROBE;
  return PABD_OK;
}

static const pabd_setting_info *fake_settings(int32_t *count) {
  *count = FAKE_SETTING_COUNT;
  return fake_setting_list;
}

static void fake_destroy(void *world) {
  fake_world *w = world;
  if (!w) return;
  if (w->mode == FAKE_DESTROY) abort();
  free(w->bodies);
  free(w);
}

static pabd_status fake_create(const pabd_scene *scene, const pabd_setting *settings, int32_t count, void **world,
                               pabd_error *error) {
  fake_world *w = calloc(1, sizeof *w);
  w->at = 10;
  w->threads = 1;
  w->gain = 1;
  for (int32_t k = 0; k < count; ++k) {
    const char *key = settings[k].key, *value = settings[k].value;
    if (strcmp(key, "mode") == 0) {
      for (int m = 0; m < FAKE_MODE_COUNT; ++m) {
        if (strcmp(value, fake_modes[m]) == 0) w->mode = m;
      }
    } else if (strcmp(key, "at") == 0) {
      w->at = atoi(value);
    } else if (strcmp(key, "threads") == 0) {
      w->threads = atoi(value);
    } else if (strcmp(key, "gain") == 0) {
      w->gain = atof(value);
    }
  }
  if (w->mode == FAKE_REFUSE || w->mode == FAKE_BAD_INPUT) {
    int is_bad = w->mode == FAKE_BAD_INPUT;
    free(w);
    return pabd_fail(error, is_bad ? PABD_ERR_INPUT : PABD_ERR_UNSUPPORTED,
                     is_bad ? "setting mode=bad-input is refused" : "balls must be\nred");
  }
  w->body_count = scene->body_count;
  w->gravity = scene->gravity;
  w->frame_time = scene->frame_time;
  w->bodies = malloc((size_t)scene->body_count * sizeof *w->bodies + 1);
  memcpy(w->bodies, scene->bodies, (size_t)scene->body_count * sizeof *w->bodies);
  if (w->mode == FAKE_RANDOM_BITS) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    w->noise = 1e-12 * (double)(now.tv_nsec % 100000 + 1);
  }
  if (w->mode == FAKE_THREAD_BITS) w->noise = 1e-15 * w->threads;
  *world = w;
  return PABD_OK;
}

static pabd_status fake_step(void *world, pabd_error *error) {
  fake_world *w = world;
  struct timespec pause = {0, 5000000};
  ++w->frame;
  if (w->trace) {
    double momentum[3] = {1, 2, 3};
    for (int sweep = 0; sweep < 4; ++sweep) {
      pabd_trace trace = {w->frame, 0, sweep, "sweep", 1, 0, NULL, momentum, 1.0 / (1 + sweep), 0, 0, 0, NAN};
      w->trace(&trace, w->trace_user);
    }
  }
  if (w->frame < w->at) return PABD_OK;
  switch (w->mode) {
    case FAKE_CRASH:
      signal(SIGSEGV, SIG_DFL); /* a sanitizer would catch it */
      raise(SIGSEGV);
      break;
    case FAKE_ABORT:
      fprintf(stderr, "assertion failed: the end is near\n");
      abort();
    case FAKE_HANG:
      for (;;) nanosleep(&pause, NULL);
    case FAKE_DIVERGED:
      return pabd_fail(error, PABD_DIVERGED, "residual is 1e300");
    case FAKE_ERROR:
      return pabd_fail(error, PABD_ERR_INTERNAL, "out of luck");
    case FAKE_EXIT:
      exit(3);
    case FAKE_SLOW:
      nanosleep(&pause, NULL);
      break;
    case FAKE_SHOUT:
      for (int k = 0; k < 100; ++k) printf("frame %d of the engine says \001\377 something\n", w->frame);
      break;
    case FAKE_FORK:
      if (w->frame == w->at && fork() == 0) {
        for (;;) pause.tv_sec = 1, nanosleep(&pause, NULL);
      }
      break;
    default:
      break;
  }
  return PABD_OK;
}

static void fake_read(void *world, double *pose, double *velocity) {
  const fake_world *w = world;
  double t = w->frame * w->frame_time;
  int is_late = w->frame >= w->at;
  for (int32_t i = 0; i < w->body_count; ++i) {
    const pabd_body *b = &w->bodies[i];
    int falls = b->motion == PABD_DYNAMIC;
    double g[3] = {w->gravity.x, w->gravity.y, w->gravity.z}, p[3] = {b->pose.p.x, b->pose.p.y, b->pose.p.z};
    double v[3] = {b->linear.x, b->linear.y, b->linear.z};
    pabd_dvec3 turned = {b->angular.x * t, b->angular.y * t, b->angular.z * t};
    pabd_dquat q = pabd_dquat_mul(pabd_dquat_from_rotation_vector(turned), b->pose.q);
    for (int k = 0; k < 3; ++k) {
      double gain = falls ? g[k] * w->gain : 0;
      pose[7 * i + k] = p[k] + v[k] * t + 0.5 * gain * t * t + (is_late ? w->noise : 0);
      velocity[6 * i + k] = v[k] + gain * t;
    }
    pose[7 * i + 3] = q.w, pose[7 * i + 4] = q.x, pose[7 * i + 5] = q.y, pose[7 * i + 6] = q.z;
    velocity[6 * i + 3] = b->angular.x, velocity[6 * i + 4] = b->angular.y, velocity[6 * i + 5] = b->angular.z;
    if (!is_late) continue;
    if (w->mode == FAKE_NAN && i == w->body_count - 1) velocity[6 * i + 1] = NAN;
    if (w->mode == FAKE_FLY) pose[7 * i] = 1e12;
    if (w->mode == FAKE_LIAR) { /* moves what must not move, stretches its quaternions */
      pose[7 * i] += 0.5;
      for (int k = 3; k < 7; ++k) pose[7 * i + k] *= 1.5;
    }
  }
}

static void fake_stats(void *world, pabd_engine_stats *stats) {
  const fake_world *w = world;
  stats->stage_count = 2;
  stats->stages[0] = (pabd_stage_time){"broad", 1, 0.001};
  stats->stages[1] = (pabd_stage_time){"solve", 0, 0.002};
  stats->counter_count = 1;
  stats->counters[0] = (pabd_counter){"frames", "1", w->frame};
  if (w->mode == FAKE_SELF) stats->self_ms = 1e-6;
  if (w->mode == FAKE_LIAR && w->frame == w->at - 1)
    stats->counters[stats->counter_count++] = (pabd_counter){"overflow", "1", 17};
  if (w->mode == FAKE_LIAR && w->frame >= w->at) {
    stats->self_ms = 1e9;
    stats->stages[0] = (pabd_stage_time){NULL, 1, 1e9};
    if (w->frame > w->at) stats->stage_count = 1000000;
  }
}

static void fake_setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  const fake_world *w = world;
  switch (index) {
    case 0:
      snprintf(buffer, (size_t)size, "%s", fake_modes[w->mode]);
      break;
    case 1:
      snprintf(buffer, (size_t)size, "%d", w->at);
      break;
    case 2:
      snprintf(buffer, (size_t)size, "%d", w->threads);
      break;
    default:
      snprintf(buffer, (size_t)size, "%g", w->gain);
  }
}

static void fake_set_trace(void *world, pabd_trace_fn trace, void *user) {
  fake_world *w = world;
  w->trace = trace;
  w->trace_user = user;
}

static const pabd_engine fake_engine = {.abi = FAKE_ABI,
                                        .size = FAKE_SIZE,
                                        .probe = fake_probe,
                                        .settings = fake_settings,
                                        .create = fake_create,
                                        .step = fake_step,
                                        .read = fake_read,
                                        .stats = fake_stats,
                                        .setting_value = fake_setting_value,
                                        .set_trace = fake_set_trace,
                                        .destroy = fake_destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &fake_engine;
}

#endif
