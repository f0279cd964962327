/* The command `engine-check`: tells an adapter's author in a minute whether it is right.
 *
 * Each check is a small scene with a closed form, run in a child process like any other run; poses and velocities alone
 * are judged. A check that fails says what is probably wrong: units, quaternion order, frame of the angular velocity,
 * stale poses, hidden damping, sleeping, mass or inertia. What an engine declares that it does by another law (no
 * friction cone) is shown as declared, with the number, and does not fail. Tolerances allow for one step of 1/60 s a
 * frame by any first-order scheme; they are far below what the faults do. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "child.h"
#include "command_tools.h"
#include "commands.h"
#include "plan.h"

#define GRAVITY 9.81
#define FRAME (1.0 / 60)
#define STATE_LIMIT ((size_t)1 << 28)
#define CHECK_CAPACITY 64

typedef enum verdict { PASS, FAIL, DECLARED, NOT_POSSIBLE } verdict;
static const char *const verdict_text[] = {"pass", "FAIL", "declared", "na"};

/* One line of the answer. */
typedef struct finding {
  const char *name, *quantity, *unit;
  double measured, expected, tolerance;
  verdict verdict;
  char hint[400];
} finding;

typedef struct checker {
  const pabd_engine_desc *engine;
  const pabd_plan_engine *with;
  double time_limit;
  finding findings[CHECK_CAPACITY];
  int32_t count;
} checker;

/* A scene that ran. */
typedef struct trial {
  pabd_case c;
  pabd_run_result result;
  int has_result, bodies, frames;
} trial;

/* ---- scenes ---- */

static void begin(trial *t, const char *id, int frames) {
  memset(t, 0, sizeof *t);
  pabd_scene_init(&t->c.scene);
  snprintf(t->c.id, sizeof t->c.id, "%s", id);
  t->frames = t->c.frame_count = frames;
  t->c.duration = frames * FRAME;
  t->c.energy_ref = 1, t->c.settle_time = -1;
}

static int32_t add(trial *t, pabd_motion motion, double mass, const pabd_shape *shape, pabd_dvec3 at) {
  pabd_body body = pabd_body_default();
  body.motion = motion;
  body.pose.p = at;
  if (motion == PABD_DYNAMIC) body.mass = mass, body.inertia = pabd_shape_inertia(shape, mass);
  int32_t index = pabd_scene_add_body(&t->c.scene, &body);
  pabd_shape own = *shape;
  own.body = index;
  pabd_scene_add_shape(&t->c.scene, &own);
  return index;
}
static int32_t add_box(trial *t, pabd_motion motion, double mass, pabd_dvec3 half, pabd_dvec3 at) {
  pabd_shape shape = pabd_shape_default(PABD_BOX);
  shape.half = half;
  return add(t, motion, mass, &shape, at);
}
static int32_t add_sphere(trial *t, double mass, double radius, pabd_dvec3 at) {
  pabd_shape shape = pabd_shape_default(PABD_SPHERE);
  shape.radius = radius;
  return add(t, PABD_DYNAMIC, mass, &shape, at);
}
static void add_ground(trial *t) {
  add_box(t, PABD_STATIC, 0, (pabd_dvec3){100, 100, 1}, (pabd_dvec3){0, 0, -1});
}
static void no_gravity(trial *t) {
  t->c.scene.gravity = (pabd_dvec3){0, 0, 0};
}

/* ---- running and reading ---- */

static void end(trial *t) {
  if (t->has_result) pabd_run_result_free(&t->result);
  pabd_case_free(&t->c);
}

static finding *note(checker *k, const char *name, const char *quantity, const char *unit) {
  finding *f = &k->findings[k->count < CHECK_CAPACITY - 1 ? k->count++ : k->count];
  *f = (finding){name, quantity, unit, NAN, NAN, NAN, FAIL, ""};
  return f;
}

/* Runs the scene. On failure adds one finding of that name and returns 0. */
static int run(checker *k, trial *t, const char *name) {
  char missing[300];
  uint64_t lacks = pabd_scene_needs(&t->c.scene) & ~k->engine->capabilities;
  t->bodies = t->c.scene.body_count;
  if (lacks) {
    finding *f = note(k, name, "", "");
    f->verdict = NOT_POSSIBLE;
    pabd_capability_list(lacks, missing, sizeof missing);
    snprintf(f->hint, sizeof f->hint, "the engine says that it has no %.300s", missing);
    return 0;
  }
  pabd_key_value settings[PABD_SETTING_CAPACITY];
  pabd_job job = {.c = &t->c,
                  .engine = k->engine,
                  .settings = settings,
                  .setting_count = pabd_plan_settings(k->with, 1, settings),
                  .threads = 1,
                  .time_limit = k->time_limit,
                  .keep_states = 1,
                  .state_limit = STATE_LIMIT,
                  .trajectory = -1,
                  .stride = 1,
                  .value_size = 8};
  pabd_child_run(&job, &pabd_stop_wanted, NULL, NULL, &t->result);
  t->has_result = 1;
  if (t->result.state == PABD_RUN_OK && t->result.samples.state_frames > t->frames) return 1;
  finding *f = note(k, name, "", "");
  const char *what = pabd_run_state_text(t->result.state);
  f->verdict = t->result.state == PABD_RUN_NA ? NOT_POSSIBLE : FAIL;
  snprintf(f->hint, sizeof f->hint, "%s: %.350s", what ? what : "refused", t->result.reason);
  return 0;
}

/* Row of a body at a frame: pose (k < 7), velocity (7 .. 12). */
static double at(const trial *t, int frame, int body, int entry) {
  const double *block = t->result.samples.states + (size_t)frame * (size_t)t->bodies * 13;
  return entry < 7 ? block[body * 7 + entry] : block[(size_t)t->bodies * 7 + (size_t)body * 6 + (size_t)(entry - 7)];
}
static pabd_dquat orientation(const trial *t, int frame, int body) {
  return (pabd_dquat){at(t, frame, body, 3), at(t, frame, body, 4), at(t, frame, body, 5), at(t, frame, body, 6)};
}
static pabd_dvec3 angular(const trial *t, int frame, int body) {
  return (pabd_dvec3){at(t, frame, body, 10), at(t, frame, body, 11), at(t, frame, body, 12)};
}
static double distance(pabd_dvec3 a, pabd_dvec3 b) {
  return sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z));
}
static double angle_between(pabd_dquat a, pabd_dquat b) {
  pabd_dquat d = pabd_dquat_mul(pabd_dquat_conj(a), b);
  return 2 * atan2(sqrt(d.x * d.x + d.y * d.y + d.z * d.z), fabs(d.w));
}

static finding *judge(checker *k, const char *name, const char *quantity, const char *unit, double measured,
                      double expected, double tolerance) {
  finding *f = note(k, name, quantity, unit);
  f->measured = measured, f->expected = expected, f->tolerance = tolerance;
  f->verdict = fabs(measured - expected) <= tolerance ? PASS : FAIL; /* a NaN fails */
  return f;
}
#define HINT(f, ...) \
  if ((f)->verdict == FAIL) snprintf((f)->hint, sizeof(f)->hint, __VA_ARGS__)

/* ---- the checks ---- */

/* z = v t - g t^2/2 within the first-order error g h t/2 of one step a frame; x = v t exactly. */
static void check_free_fall(checker *k) {
  trial t;
  begin(&t, "free-fall", 60);
  int32_t b = add_sphere(&t, 2, 0.5, (pabd_dvec3){0, 0, 20});
  t.c.scene.bodies[b].linear = (pabd_dvec3){1.5, -0.5, 4};
  if (run(k, &t, "free fall")) {
    double fell = 4 - (at(&t, 60, b, 2) - 20), exact = 0.5 * GRAVITY, ratio = fell / exact;
    finding *f = judge(k, "free fall", "drop by gravity in 1 s", "m", fell, exact, 0.5 * GRAVITY * FRAME + 1e-3);
    HINT(f, "%s",
         fabs(ratio - 100) < 5 || fabs(ratio - 0.01) < 0.001 ? "off by a factor of 100: centimeters?"
         : fabs(ratio - 0.3048) < 0.02 || fabs(ratio - 3.281) < 0.2
             ? "off by the length of a foot: wrong units of length?"
             : "gravity is not what the scene says (units, or set twice?), or the step is not 1/60 s");
    double moved = at(&t, 60, b, 0);
    f = judge(k, "uniform motion", "way at 1.5 m/s in 1 s", "m", moved, 1.5, 2e-3);
    HINT(f, "%s",
         fabs(moved - 1.5 * 59 / 60) < 2e-3
             ? "the pose is that of the frame before: read() returns stale poses"
             : "the way is not speed times time: damping, wrong step length, or units of velocity");
    f = judge(k, "start state", "first pose against the scene's", "m",
              distance((pabd_dvec3){at(&t, 0, b, 0), at(&t, 0, b, 1), at(&t, 0, b, 2)}, (pabd_dvec3){0, 0, 20}), 0,
              1e-5);
    HINT(f, "read() before the first step must give the scene's poses: center of mass, not the shape's origin?");
  }
  end(&t);
}

/* An isotropic body turns about a fixed, tilted world axis from a tilted start. */
static void check_spin(checker *k) {
  trial t;
  begin(&t, "spin", 60);
  no_gravity(&t);
  int32_t b = add_sphere(&t, 1, 0.5, (pabd_dvec3){0, 0, 5});
  pabd_dvec3 w = {0.7, -1.1, 1.9};
  pabd_dquat q = pabd_dquat_from_rotation_vector((pabd_dvec3){0.4, 0.9, -0.3});
  t.c.scene.bodies[b].pose.q = q, t.c.scene.bodies[b].angular = w;
  if (run(k, &t, "quaternion order")) {
    pabd_dquat first = orientation(&t, 0, b), swapped = {first.z, first.w, first.x, first.y};
    finding *f = judge(k, "quaternion order", "start orientation off by", "rad", angle_between(first, q), 0, 1e-3);
    swapped = (pabd_dquat){at(&t, 0, b, 6), at(&t, 0, b, 3), at(&t, 0, b, 4), at(&t, 0, b, 5)};
    HINT(f, "%s",
         angle_between(swapped, q) < 1e-3 ? "quaternions are given as (x, y, z, w); the table wants (w, x, y, z)"
         : angle_between(pabd_dquat_conj(first), q) < 1e-3
             ? "the rotation is the inverse: world to body instead of body to world"
             : "not the scene's orientation");
    pabd_dvec3 seen = angular(&t, 60, b), body = pabd_dquat_rotate(pabd_dquat_conj(orientation(&t, 60, b)), w);
    f = judge(k, "angular velocity", "against the start's, world frame", "rad/s", distance(seen, w), 0, 0.03);
    HINT(f, "%s",
         distance(seen, body) < 0.05 ? "angular velocity is in the body's frame; the table wants the world's"
                                     : "a free sphere must keep its angular velocity: damping, or another frame");
    pabd_dquat turned = pabd_dquat_mul(pabd_dquat_from_rotation_vector(w), q);
    f = judge(k, "rotation", "orientation after 1 s off by", "rad", angle_between(orientation(&t, 60, b), turned), 0,
              0.03);
    HINT(f, "turned by another angle or axis than world angular velocity times time");
  }
  end(&t);
}

/* Constant torques about the principal axes: w = t torque / I. */
static void check_inertia(checker *k) {
  trial t;
  begin(&t, "inertia", 60);
  no_gravity(&t);
  double inertia[3] = {0.1, 0.2, 0.25}, most = 0, seen = 0;
  for (int axis = 0; axis < 3; ++axis) {
    int32_t b = add_box(&t, PABD_DYNAMIC, 3, (pabd_dvec3){0.2, 0.2, 0.2}, (pabd_dvec3){3.0 * axis, 0, 5});
    t.c.scene.bodies[b].inertia = (pabd_dvec3){inertia[0], inertia[1], inertia[2]};
    pabd_load load = {b, {0, 0, 0}, {axis == 0 ? 0.2 : 0, axis == 1 ? 0.2 : 0, axis == 2 ? 0.2 : 0}, 0, 10};
    pabd_scene_add_load(&t.c.scene, &load);
  }
  if (run(k, &t, "inertia")) {
    for (int axis = 0; axis < 3; ++axis) {
      double ratio = at(&t, 60, axis, 10 + axis) * inertia[axis] / 0.2;
      if (!(fabs(ratio - 1) < most)) most = fabs(ratio - 1), seen = ratio;
    }
    finding *f = judge(k, "inertia", "rate under torque, worst axis / expected", "1", seen, 1, 0.02);
    HINT(
        f,
        "inertia is not the scene's principal one (recomputed from shapes, or axes swapped?), or torque is not in N m");
  }
  end(&t);
}

/* Nothing acts: speed and spin stay for 5 s. */
static void check_damping(checker *k) {
  trial t;
  begin(&t, "damping", 300);
  no_gravity(&t);
  int32_t b = add_sphere(&t, 1, 0.5, (pabd_dvec3){0, 0, 5});
  t.c.scene.bodies[b].linear = (pabd_dvec3){3, 0, 0}, t.c.scene.bodies[b].angular = (pabd_dvec3){0, 0, 4};
  if (run(k, &t, "linear damping")) {
    finding *f = judge(k, "linear damping", "speed after 5 s / start", "1", at(&t, 300, b, 7) / 3, 1, 1e-3);
    HINT(f, "hidden linear damping (or a speed limit): set it to zero");
    f = judge(k, "angular damping", "spin after 5 s / start", "1", at(&t, 300, b, 12) / 4, 1, 1e-3);
    HINT(f, "hidden angular damping (or a spin limit): set it to zero");
  }
  end(&t);
}

/* A body at 5 mm/s goes on for 5 s. */
static void check_sleep(checker *k) {
  trial t;
  begin(&t, "sleep", 300);
  no_gravity(&t);
  int32_t b = add_sphere(&t, 1, 0.5, (pabd_dvec3){0, 0, 5});
  t.c.scene.bodies[b].linear = (pabd_dvec3){0.005, 0, 0};
  if (run(k, &t, "sleeping")) {
    finding *f = judge(k, "sleeping", "way at 5 mm/s in 5 s", "m", at(&t, 300, b, 0), 0.025, 5e-4);
    HINT(f, "a slow body stopped: sleeping (deactivation) is on");
  }
  end(&t);
}

/* A ball rests on the ground at its radius. */
static void check_rest(checker *k) {
  trial t;
  begin(&t, "rest", 180);
  add_ground(&t);
  int32_t b = add_sphere(&t, 1, 0.25, (pabd_dvec3){0, 0, 0.25});
  if (run(k, &t, "rest height")) {
    finding *f = judge(k, "rest height", "center of a ball of radius 0.25 m", "m", at(&t, 180, b, 2), 0.25, 3e-3);
    HINT(f, "sinks or floats: a collision margin that is part of the shape, or half extents taken for sizes?");
  }
  end(&t);
}

/* Stopping distance of a flat box, v^2/(2 mu g), in a direction; within v h/2 of the step and 2 %. */
static int slide(checker *k, double degrees, double *way) {
  trial t;
  begin(&t, "slide", 150);
  add_ground(&t);
  int32_t b = add_box(&t, PABD_DYNAMIC, 2, (pabd_dvec3){0.5, 0.5, 0.1}, (pabd_dvec3){0, 0, 0.1});
  t.c.scene.bodies[b].linear = (pabd_dvec3){5 * cos(degrees * M_PI / 180), 5 * sin(degrees * M_PI / 180), 0};
  int done = run(k, &t, "sliding");
  if (done) *way = hypot(at(&t, 150, b, 0), at(&t, 150, b, 1));
  end(&t);
  return done;
}
static void check_friction(checker *k) {
  double exact = 25 / (2 * 0.5 * GRAVITY), way[3];
  for (int n = 0; n < 3; ++n)
    if (!slide(k, n == 0 ? 0 : n == 1 ? 30 : 45, &way[n])) return;
  finding *f =
      judge(k, "sliding distance", "5 m/s to rest, coefficient 0.5", "m", way[0], exact, 0.02 * exact + 2.5 * FRAME);
  HINT(f, "friction of the pair is not 0.5 (combined by product or mean?), or the normal force is off");
  double low = fmin(way[0], fmin(way[1], way[2])), high = fmax(way[0], fmax(way[1], way[2]));
  f = judge(k, "cone isotropy", "longest / shortest way over 0, 30, 45 degrees", "1", high / low, 1, 0.03);
  if (f->verdict == FAIL && !(k->engine->capabilities & PABD_CAN_FRICTION_CONE)) {
    f->verdict = DECLARED;
    snprintf(f->hint, sizeof f->hint, "the engine declares no friction cone");
  }
  HINT(f, "friction depends on direction (a pyramid), but the engine declares a cone");
}

/* 1 kg at 2 m/s meets 3 kg at rest, no restitution: momentum stays, both go on at 0.5 m/s. */
static void check_impact(checker *k) {
  trial t;
  begin(&t, "impact", 90);
  no_gravity(&t);
  int32_t a = add_sphere(&t, 1, 0.5, (pabd_dvec3){0, 0, 5}), b = add_sphere(&t, 3, 0.5, (pabd_dvec3){1.7, 0, 5});
  t.c.scene.bodies[a].linear = (pabd_dvec3){2, 0, 0};
  if (run(k, &t, "central impact")) {
    double after[2] = {at(&t, 90, a, 7), at(&t, 90, b, 7)};
    finding *f = judge(k, "impact momentum", "after / before", "1", (after[0] + 3 * after[1]) / 2, 1, 2e-3);
    HINT(f, "momentum is lost or made: masses are not the scene's, or damping");
    f = judge(k, "central impact", "speed of the struck body", "m/s", after[1], 0.5, 0.05);
    if (f->verdict == FAIL && fabs((after[0] + 3 * after[1]) / 2 - 1) < 2e-3 && after[1] > 0.5) {
      f->verdict = DECLARED;
      snprintf(f->hint, sizeof f->hint, "bounces with e = %.2f where the scene says 0: a compliant contact",
               (after[1] - after[0]) / 2);
    }
    HINT(f, "mass ratio or restitution is not the scene's");
  }
  end(&t);
}

/* A rod on a ball joint: period of small swings 2 pi sqrt(I_pivot/(m g l)), and the anchor stays. */
static void check_ball_joint(checker *k) {
  const double e = 0.1, half = 0.5, mass = 2;
  trial t;
  begin(&t, "ball-joint", 240);
  int32_t b =
      add_box(&t, PABD_DYNAMIC, mass, (pabd_dvec3){half, 0.1, 0.1}, (pabd_dvec3){half * sin(e), 0, 5 - half * cos(e)});
  t.c.scene.bodies[b].pose.q = pabd_dquat_from_rotation_vector((pabd_dvec3){0, M_PI / 2 - e, 0});
  pabd_joint joint = pabd_joint_default(PABD_SPHERICAL);
  joint.body_a = PABD_WORLD, joint.body_b = b;
  pabd_joint_place(&t.c.scene, &joint, (pabd_dpose){{0, 0, 5}, {1, 0, 0, 0}});
  pabd_scene_add_joint(&t.c.scene, &joint);
  if (run(k, &t, "ball joint")) {
    double pivot = t.c.scene.bodies[b].inertia.y + mass * half * half;
    double period = 2 * M_PI * sqrt(pivot / (mass * GRAVITY * half)) * (1 + e * e / 16), gap = 0;
    double first = NAN, last = NAN;
    int crossings = 0;
    for (int n = 1; n <= 240; ++n) {
      double before = at(&t, n - 1, b, 0), now = at(&t, n, b, 0);
      if (before * now <= 0 && before != 0) {
        double when = (n - 1 + before / (before - now)) * FRAME;
        if (crossings++ == 0) first = when;
        last = when;
      }
      pabd_dvec3 arm = pabd_dquat_rotate(orientation(&t, n, b), joint.frame_b.p);
      arm = pabd_dquat_rotate(orientation(&t, n, b), t.c.scene.joints[0].frame_b.p);
      pabd_dvec3 end_point = {at(&t, n, b, 0) + arm.x, at(&t, n, b, 1) + arm.y, at(&t, n, b, 2) + arm.z};
      gap = fmax(gap, distance(end_point, (pabd_dvec3){0, 0, 5}));
    }
    double seen = crossings > 1 ? 2 * (last - first) / (crossings - 1) : NAN;
    finding *f = judge(k, "pendulum period", "rod on a ball joint", "s", seen, period, 0.02 * period);
    HINT(f, "the anchor's arm, the inertia or gravity is not the scene's");
    f = judge(k, "ball joint", "largest gap of the anchor", "m", gap, 0, 5e-3);
    HINT(f, "the joint comes apart: its frames are taken in another frame (shape's, world's), or it is very soft");
  }
  end(&t);
}

/* A ball dropped with e = 0.5 rises to a quarter of its height. */
static void check_restitution(checker *k) {
  if (!(k->engine->capabilities & PABD_CAN_RESTITUTION)) return;
  trial t;
  begin(&t, "restitution", 120);
  pabd_scene_set_materials(&t.c.scene, 1, 0.5, 0.5);
  add_ground(&t);
  int32_t b = add_sphere(&t, 1, 0.25, (pabd_dvec3){0, 0, 2.25});
  if (run(k, &t, "restitution")) {
    double top = 0;
    int hit = 0;
    for (int n = 1; n <= 120; ++n) {
      if (at(&t, n, b, 9) > 0) hit = 1;
      if (hit) top = fmax(top, at(&t, n, b, 2) - 0.25);
    }
    finding *f = judge(k, "restitution", "height of the rebound from 2 m, e = 0.5", "m", top, 0.5, 0.08);
    HINT(f, "restitution of the pair is not the scene's (combined by product?), or a speed threshold swallows it");
  }
  end(&t);
}

/* Balls fall on each other. `spread`: apart from each other, so that nothing touches. */
static void heap(trial *t, int count, double spread) {
  begin(t, "heap", 60);
  add_ground(t);
  for (int n = 0; n < count; ++n)
    add_box(t, PABD_DYNAMIC, 1, (pabd_dvec3){0.25, 0.25, 0.25},
            (pabd_dvec3){spread * (n % 5) + 0.01 * (n / 25), spread * (n / 5 % 5),
                         0.3 + 0.52 * (n / 25) + (spread > 1 ? 60 : 0)});
}
static void check_determinism(checker *k) {
  trial a, b;
  heap(&a, 50, 0.51);
  heap(&b, 50, 0.51);
  if (run(k, &a, "determinism") && run(k, &b, "determinism")) {
    finding *f =
        judge(k, "determinism", "two equal runs, 1: same bits", "1", a.result.state_hash == b.result.state_hash, 1, 0);
    if (f->verdict == FAIL && !(k->engine->capabilities & PABD_CAN_DETERMINISM)) {
      f->verdict = DECLARED;
      snprintf(f->hint, sizeof f->hint, "the engine does not declare determinism");
    }
    HINT(f, "an uninitialized value, a race, or a clock in the step");
  }
  end(&a);
  end(&b);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double median_of(const double *values, int first, int count) {
  double sorted[256];
  int n = 0;
  for (int i = first; i < first + count && n < 256; ++i)
    if (isfinite(values[i])) sorted[n++] = values[i];
  qsort(sorted, (size_t)n, sizeof *sorted, by_value);
  return n ? sorted[n / 2] : NAN;
}

/* An engine that reports its own step time (an external one) must not report less than its steps take. What the
 * harness's clock sees beyond it is the cost of the protocol, which the same bodies without any contact show too. */
static void check_clock(checker *k) {
  trial busy, idle;
  heap(&busy, 125, 0.51);
  heap(&idle, 125, 5);
  if (run(k, &busy, "honest clock") && run(k, &idle, "honest clock")) {
    const pabd_samples *s = &busy.result.samples, *r = &idle.result.samples;
    double own = median_of(s->self_ms, 11, 50), wall = median_of(s->wall_ms, 11, 50);
    if (!isfinite(own)) {
      finding *f = note(k, "honest clock", "the harness's clock counts", "");
      f->verdict = PASS;
    } else {
      double overhead = fmax(0, median_of(r->wall_ms, 11, 50) - median_of(r->self_ms, 11, 50));
      double claimed = own / fmax(1e-9, wall - overhead);
      finding *f = judge(k, "honest clock", "own step time / wall time less the protocol's", "1", claimed, 1, 0.4);
      HINT(f, "%s",
           claimed < 1 ? "the engine reports less time than its steps take"
                       : "the engine reports more time than passes");
    }
  }
  end(&busy);
  end(&idle);
}

/* ---- the command ---- */

static void print_finding(const finding *f) {
  if (isfinite(f->expected) || isfinite(f->measured))
    printf("%-8s %-17s %s: %.5g%s%s, expected %.5g +- %.2g\n", verdict_text[f->verdict], f->name, f->quantity,
           f->measured, strcmp(f->unit, "1") ? " " : "", strcmp(f->unit, "1") ? f->unit : "", f->expected,
           f->tolerance);
  else
    printf("%-8s %-17s %s\n", verdict_text[f->verdict], f->name, f->quantity[0] ? f->quantity : f->hint);
  if (f->hint[0] && (isfinite(f->expected) || f->quantity[0])) printf("         -> %s\n", f->hint);
  fflush(stdout);
}

static cJSON *json_of(const checker *k) {
  cJSON *root = cJSON_CreateObject(), *list = NULL;
  cJSON_AddNumberToObject(root, "schema", 1);
  cJSON_AddStringToObject(root, "engine", k->with->label);
  cJSON_AddStringToObject(root, "version", k->engine->version);
  list = cJSON_AddArrayToObject(root, "checks");
  for (int32_t n = 0; n < k->count; ++n) {
    const finding *f = &k->findings[n];
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "name", f->name);
    cJSON_AddStringToObject(entry, "quantity", f->quantity);
    cJSON_AddStringToObject(entry, "unit", f->unit);
    cJSON_AddStringToObject(entry, "verdict", f->verdict == FAIL ? "fail" : verdict_text[f->verdict]);
    if (isfinite(f->measured)) cJSON_AddNumberToObject(entry, "measured", f->measured);
    if (isfinite(f->expected)) cJSON_AddNumberToObject(entry, "expected", f->expected);
    if (isfinite(f->tolerance)) cJSON_AddNumberToObject(entry, "tolerance", f->tolerance);
    cJSON_AddStringToObject(entry, "hint", f->hint);
    cJSON_AddItemToArray(list, entry);
  }
  return root;
}

static void (*const all_checks[])(checker *) = {check_free_fall,  check_spin,        check_inertia,     check_damping,
                                                check_sleep,      check_rest,        check_friction,    check_impact,
                                                check_ball_joint, check_restitution, check_determinism, check_clock};

/* Returns 0 all well, 1 a check failed, 2 not available. */
static int check_one(const pabd_plan_engine *with, double time_limit, cJSON *out) {
  static checker k;
  k = (checker){.engine = &with->engine->desc, .with = with, .time_limit = time_limit};
  if (!k.engine->is_available) {
    printf("%s is not available: %s\n", with->label, k.engine->why);
    return 2;
  }
  printf("%s (%s, %s)\n", with->label, k.engine->version, k.engine->precision);
  int32_t printed = 0, failed = 0, declared = 0, impossible = 0;
  for (size_t n = 0; n < sizeof all_checks / sizeof *all_checks && !pabd_stop_wanted; ++n) {
    all_checks[n](&k);
    for (; printed < k.count; ++printed) {
      verdict v = k.findings[printed].verdict;
      failed += v == FAIL, declared += v == DECLARED, impossible += v == NOT_POSSIBLE;
      print_finding(&k.findings[printed]);
    }
  }
  printf("%s: %d passed, %d failed, %d declared, %d not possible\n", with->label,
         k.count - failed - declared - impossible, failed, declared, impossible);
  if (out) cJSON_AddItemToArray(out, json_of(&k));
  return failed > 0;
}

static int engine_check(const pabd_arguments *a) {
  pabd_error error = {""};
  pabd_catalog catalog;
  pabd_plan plan;
  double time_limit;
  const char *json = pabd_argument(a, "json"), *anchor[] = {"free-fall"};
  if (pabd_argument_real(a, "time-limit", 0.01, 1e7, 30, &time_limit, &error) != PABD_OK) return pabd_complain(&error);
  if (a->word_count == 0) {
    pabd_fail(&error, PABD_ERR_INPUT,
              "engine-check: which engine? For example: pabd-bench engine-check ./my_engine.so");
    return pabd_complain(&error);
  }
  if (pabd_catalog_open(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &catalog, &error) != PABD_OK)
    return pabd_complain(&error);
  /* the plan resolves names, presets and settings; its case is not run */
  pabd_plan_init(&plan, 0);
  pabd_request request = pabd_request_default();
  request.cases = anchor, request.case_count = 1;
  request.engines = a->words, request.engine_count = a->word_count;
  int code = 0;
  if (pabd_plan_add(&plan, &catalog, &request, &error) != PABD_OK) {
    code = pabd_complain(&error);
  } else {
    pabd_stop_watch();
    cJSON *list = json ? cJSON_CreateArray() : NULL;
    for (int32_t n = 0; n < plan.engine_count && !pabd_stop_wanted; ++n) {
      if (n > 0) printf("\n");
      int one = check_one(plan.engines[n], time_limit, list);
      if (one > code) code = one;
    }
    if (list && pabd_write_json(json, list, &error) != PABD_OK) code = pabd_complain(&error);
    cJSON_Delete(list);
    if (pabd_stop_wanted) code = 130;
  }
  pabd_plan_free(&plan);
  pabd_catalog_close(&catalog);
  return code;
}

static const pabd_option engine_check_options[] = {
    {"json", "FILE", "also write the findings (- for standard output)"},
    {"time-limit", "S", "seconds of wall time for one scene (default 30)"},
    PABD_PLACE_OPTIONS,
    {NULL, NULL, NULL}};

const pabd_command pabd_command_engine_check = {
    "engine-check",
    "ENGINE[:preset][:k=v,...]...",
    "check an engine's adapter against closed forms",
    "Runs small scenes with known answers and says, a line each, whether the engine's adapter is right: units, stale\n"
    "poses, quaternion order, frame of the angular velocity, mass and inertia, hidden damping, sleeping, friction,\n"
    "impact, ball joint, restitution, determinism, an honest clock. What fails comes with its probable cause.\n\n"
    "Examples:\n"
    "  pabd-bench engine-check bullet\n"
    "  pabd-bench engine-check ./my_engine.so --json findings.json\n\n"
    "Exit code: 0 all well (declared deviations aside); 1 a check failed; 2 bad input or not available.",
    engine_check_options,
    engine_check};
