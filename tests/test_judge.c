/* The judge against closed forms, and planted faults that it must find and put a right number on.
 *
 * States are made here from formulas (or from a fine integration of Euler's equations), fed frame by frame, and the
 * metrics compared. No engine and no solver takes part. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "geometry.h"
#include "judge.h"
#include "judge_pairs.h"
#include "pabd_case.h"
#include "test.h"
#include "vec3.h"

#define FRAME (1.0 / 60)
#define GRAVITY 9.81

/* ---- a case made by hand, and the states that are fed ---- */

typedef struct trial {
  pabd_case c;
  pabd_judge *judge;
  pabd_metrics out;
  double *pose, *velocity;
} trial;

static void trial_init(trial *t, int32_t frames) {
  memset(t, 0, sizeof *t);
  if (pabd_scene_init(&t->c.scene) != PABD_OK) abort();
  t->c.frame_count = frames;
  t->c.duration = frames * FRAME;
  t->c.settle_time = -1;
  t->c.energy_ref = 1;
  pabd_metrics_init(&t->out);
}

static pabd_case_metric *trial_metric(trial *t, const char *kind) {
  pabd_case_metric *m = &t->c.metrics[t->c.metric_count++];
  *m = (pabd_case_metric){.body = -1, .joint = -1, .reference = NAN};
  snprintf(m->kind, sizeof m->kind, "%s", kind);
  return m;
}

static int32_t trial_body(trial *t, double mass, pabd_dvec3 position) {
  pabd_body b = pabd_body_default();
  b.mass = mass;
  b.inertia = (pabd_dvec3){0.1 * mass, 0.2 * mass, 0.25 * mass};
  b.pose.p = position;
  return pabd_scene_add_body(&t->c.scene, &b);
}

static int32_t trial_box(trial *t, double mass, pabd_dvec3 position, pabd_dvec3 half) {
  int32_t body = trial_body(t, mass, position);
  pabd_shape s = pabd_shape_default(PABD_BOX);
  s.body = body;
  s.half = half;
  pabd_scene_add_shape(&t->c.scene, &s);
  return body;
}

static int32_t trial_ground(trial *t) {
  int32_t body = trial_box(t, 1, (pabd_dvec3){0, 0, -1}, (pabd_dvec3){100, 100, 1});
  t->c.scene.bodies[body].motion = PABD_STATIC;
  return body;
}

/* Starts the judge; the state arrays hold the scene's start. */
static void trial_begin(trial *t) {
  size_t n = (size_t)t->c.scene.body_count;
  t->pose = calloc(n * 7 + 1, sizeof *t->pose);
  t->velocity = calloc(n * 6 + 1, sizeof *t->velocity);
  t->judge = pabd_judge_create(&t->c);
  if (!t->pose || !t->velocity || !t->judge) abort();
  for (size_t i = 0; i < n; ++i) {
    const pabd_body *b = &t->c.scene.bodies[i];
    const double x[7] = {b->pose.p.x, b->pose.p.y, b->pose.p.z, b->pose.q.w, b->pose.q.x, b->pose.q.y, b->pose.q.z};
    const double v[6] = {b->linear.x, b->linear.y, b->linear.z, b->angular.x, b->angular.y, b->angular.z};
    memcpy(t->pose + 7 * i, x, sizeof x);
    memcpy(t->velocity + 6 * i, v, sizeof v);
  }
}

static void put_position(trial *t, int32_t body, pabd_dvec3 p) {
  t->pose[7 * body] = p.x, t->pose[7 * body + 1] = p.y, t->pose[7 * body + 2] = p.z;
}

static void put_rotation(trial *t, int32_t body, pabd_dquat q) {
  t->pose[7 * body + 3] = q.w, t->pose[7 * body + 4] = q.x, t->pose[7 * body + 5] = q.y, t->pose[7 * body + 6] = q.z;
}

static void put_velocity(trial *t, int32_t body, pabd_dvec3 v, pabd_dvec3 w) {
  const double values[6] = {v.x, v.y, v.z, w.x, w.y, w.z};
  memcpy(t->velocity + 6 * (size_t)body, values, sizeof values);
}

static pabd_status feed(trial *t, int32_t frame) {
  return pabd_judge_frame(t->judge, frame, t->pose, t->velocity, 0);
}

static double result(trial *t, const char *key) {
  pabd_metrics_free(&t->out);
  pabd_metrics_init(&t->out);
  if (pabd_judge_finish(t->judge, &t->out) != PABD_OK) return NAN;
  const pabd_metric *m = pabd_metrics_get(&t->out, key);
  return m ? m->value : NAN;
}

static int has(trial *t, const char *key) {
  result(t, key);
  return pabd_metrics_get(&t->out, key) != NULL;
}

/* Of the last finish. */
static const pabd_series *find_series(const trial *t, const char *key) {
  for (int32_t k = 0; k < t->out.series_count; ++k) {
    if (strcmp(t->out.series[k].key, key) == 0) return &t->out.series[k];
  }
  return NULL;
}

static const pabd_series *series(trial *t, const char *key) {
  result(t, "");
  return find_series(t, key);
}

static void trial_end(trial *t) {
  pabd_judge_destroy(t->judge);
  pabd_metrics_free(&t->out);
  pabd_scene_free(&t->c.scene);
  free(t->pose);
  free(t->velocity);
}

static pabd_dquat turn(double x, double y, double z) {
  return pabd_dquat_from_rotation_vector((pabd_dvec3){x, y, z});
}

static const pabd_dvec3 zero = {0, 0, 0};

/* ---- kinds ---- */

TEST(every_kind_of_the_case_files_is_known) {
#define COMMA ,
#define X(name, body, joint, names, numbers, meaning) {#name, body},
  static const struct {
    const char *name;
    int takes_body;
  } listed[] = {
#include "metric_kinds.def"
  };
#undef X
#undef COMMA
  for (size_t k = 0; k < sizeof listed / sizeof listed[0]; ++k) {
    trial t;
    trial_init(&t, 4);
    int32_t body = trial_box(&t, 2, (pabd_dvec3){0, 0, 1}, (pabd_dvec3){0.5, 0.5, 0.5});
    pabd_joint joint = pabd_joint_default(PABD_SPHERICAL);
    joint.body_a = PABD_WORLD;
    joint.body_b = body;
    joint.frame_a.p = t.c.scene.bodies[body].pose.p;
    pabd_scene_add_joint(&t.c.scene, &joint);
    pabd_case_metric *m = trial_metric(&t, listed[k].name);
    m->body = listed[k].takes_body == 2 ? body : -1;
    m->axis = (pabd_dvec3){0, 0, 1};
    trial_begin(&t);
    for (int32_t f = 0; f <= 4; ++f) CHECK(feed(&t, f) == PABD_OK);
    result(&t, "");
    CHECK_MSG(
        t.out.metric_count > 1 || strcmp(listed[k].name, "gap_series") == 0 || strcmp(listed[k].name, "momentum") == 0,
        "kind %s writes nothing", listed[k].name);
    for (int32_t i = 0; i < t.out.metric_count; ++i) {
      CHECK_MSG(t.out.metrics[i].unit[0] && t.out.metrics[i].better[0], "%s has no unit or direction",
                t.out.metrics[i].key);
    }
    trial_end(&t);
  }
}

TEST(second_metric_of_a_kind_has_its_own_key) {
  trial t;
  trial_init(&t, 1);
  int32_t a = trial_body(&t, 1, zero), b = trial_body(&t, 1, zero);
  pabd_case_metric *m = trial_metric(&t, "position");
  m->body = a, m->axis = (pabd_dvec3){1, 0, 0};
  m = trial_metric(&t, "position");
  m->body = b, m->axis = (pabd_dvec3){1, 0, 0};
  trial_begin(&t);
  feed(&t, 0);
  put_position(&t, a, (pabd_dvec3){1, 0, 0});
  put_position(&t, b, (pabd_dvec3){2, 0, 0});
  feed(&t, 1);
  CHECK_NEAR(result(&t, "position_end"), 1, 0);
  CHECK_NEAR(result(&t, "position_end_2"), 2, 0);
  trial_end(&t);
}

/* ---- energy and momentum ---- */

/* A thrown body, with its velocity wrong by a factor. */
static void throw_body(trial *t, double factor) {
  trial_init(t, 60);
  int32_t ball = trial_body(t, 3, (pabd_dvec3){1, 2, 10});
  pabd_body *b = &t->c.scene.bodies[ball];
  b->linear = (pabd_dvec3){4, -1, 2};
  b->angular = (pabd_dvec3){0, 0, 5};
  t->c.energy_ref = 100;
  trial_metric(t, "energy");
  trial_metric(t, "momentum");
  trial_metric(t, "free_fall")->body = ball;
  trial_metric(t, "com");
  trial_begin(t);
  for (int32_t f = 0; f <= 60; ++f) {
    double s = f * FRAME;
    put_position(t, ball, (pabd_dvec3){1 + 4 * s, 2 - s, 10 + 2 * s - 0.5 * GRAVITY * s * s});
    put_velocity(t, ball, (pabd_dvec3){4 * factor, -factor, (2 - GRAVITY * s) * factor}, (pabd_dvec3){0, 0, 5});
    put_rotation(t, ball, turn(0, 0, 5 * s));
    CHECK(feed(t, f) == PABD_OK);
  }
}

TEST(free_flight_has_no_error) {
  trial t;
  throw_body(&t, 1);
  CHECK_NEAR(result(&t, "energy_rel_err_max"), 0, 1e-13);
  CHECK_NEAR(result(&t, "energy_rel_err_rms"), 0, 1e-13);
  CHECK_NEAR(result(&t, "lin_mom_err"), 0, 1e-13);
  CHECK_NEAR(result(&t, "ang_mom_err"), 0, 1e-13);
  CHECK_NEAR(result(&t, "free_fall_err_max"), 0, 1e-13);
  CHECK_NEAR(result(&t, "com_move_max"), sqrt(16 + 1 + pow(2 - 0.5 * GRAVITY, 2)), 1e-12);
  CHECK_STR(pabd_metrics_get(&t.out, "energy_rel_err_max")->better, "lower");
  trial_end(&t);
}

TEST(wrong_velocity_is_found_in_energy_and_momentum) {
  trial t;
  throw_body(&t, 1.01);
  double speed = 16 + 1 + pow(2 - GRAVITY, 2);
  CHECK_NEAR(result(&t, "energy_rel_err_end"), 1.5 * speed * (1.01 * 1.01 - 1) / 100, 1e-12);
  CHECK_NEAR(result(&t, "lin_mom_err"), 0.01 / 1.01, 1e-12);
  CHECK_NEAR(result(&t, "free_fall_err_end"), 0, 1e-13);
  trial_end(&t);
}

TEST(gain_and_rises_follow_their_definitions) {
  /* Kinetic energies of a body without gravity: 8, 2, 5, 4, 6, 1, 3 J. */
  static const double energy[7] = {8, 2, 5, 4, 6, 1, 3};
  trial t;
  trial_init(&t, 6);
  t.c.scene.gravity = zero;
  t.c.energy_ref = 10;
  t.c.settle_time = 3 * FRAME;
  int32_t body = trial_body(&t, 2, zero);
  t.c.scene.bodies[body].linear.x = sqrt(8);
  trial_metric(&t, "energy");
  trial_metric(&t, "settle_kinetic");
  trial_begin(&t);
  for (int32_t f = 0; f < 7; ++f) {
    put_velocity(&t, body, (pabd_dvec3){sqrt(energy[f]), 0, 0}, zero);
    feed(&t, f);
    if (f == 2) CHECK(!has(&t, "energy_gain_settled_max"));
  }
  CHECK_NEAR(result(&t, "energy_rel_err_end"), 0.5, 1e-12);
  CHECK_NEAR(result(&t, "energy_rel_end"), -0.5, 1e-12);
  CHECK_NEAR(result(&t, "energy_rel_err_max"), 0.7, 1e-12);
  CHECK_NEAR(result(&t, "energy_rel_err_settled_max"), 0.7, 1e-12);
  CHECK_NEAR(result(&t, "energy_gain_max"), 0.4, 1e-12);         /* from 2 to 6 */
  CHECK_NEAR(result(&t, "energy_gain_settled_max"), 0.2, 1e-12); /* window: 4 6 1 3 */
  CHECK_NEAR(result(&t, "energy_rise_sum"), 0.7, 1e-12);         /* 3 + 2 + 2 */
  CHECK_NEAR(result(&t, "energy_rise_sum_j"), 7, 1e-12);
  CHECK_NEAR(result(&t, "energy_rise_settled_sum"), 0.4, 1e-12); /* 2 + 2 */
  CHECK_NEAR(result(&t, "kinetic_end"), 3, 1e-12);
  CHECK_NEAR(result(&t, "kinetic_settled_max"), 6, 1e-12);
  trial_end(&t);
}

TEST(drift_rate_is_the_slope) {
  trial t;
  trial_init(&t, 100);
  t.c.scene.gravity = zero;
  t.c.energy_ref = 4;
  int32_t body = trial_body(&t, 2, zero);
  t.c.scene.bodies[body].linear.x = 3;
  trial_metric(&t, "energy");
  trial_begin(&t);
  for (int32_t f = 0; f <= 100; ++f) {
    put_velocity(&t, body, (pabd_dvec3){sqrt(9 + 0.5 * f * FRAME), 0, 0}, zero);
    feed(&t, f);
  }
  CHECK_NEAR(result(&t, "energy_drift_rate"), 0.125, 1e-10);
  trial_end(&t);
}

/* Euler's equations by small Runge-Kutta steps, world frame. */
static void spin_step(pabd_dquat *q, pabd_dvec3 momentum, pabd_dvec3 inertia, double h) {
  pabd_dquat k[4], at = *q;
  for (int s = 0; s < 4; ++s) {
    pabd_dvec3 l = pabd_dquat_rotate(pabd_dquat_conj(at), momentum);
    pabd_dvec3 w = pabd_dquat_rotate(at, (pabd_dvec3){l.x / inertia.x, l.y / inertia.y, l.z / inertia.z});
    k[s] = pabd_dquat_mul((pabd_dquat){0, 0.5 * w.x, 0.5 * w.y, 0.5 * w.z}, at);
    double step = s < 2 ? 0.5 * h : h;
    at = (pabd_dquat){q->w + step * k[s].w, q->x + step * k[s].x, q->y + step * k[s].y, q->z + step * k[s].z};
  }
  *q = pabd_dquat_normalize((pabd_dquat){q->w + h / 6 * (k[0].w + 2 * k[1].w + 2 * k[2].w + k[3].w),
                                         q->x + h / 6 * (k[0].x + 2 * k[1].x + 2 * k[2].x + k[3].x),
                                         q->y + h / 6 * (k[0].y + 2 * k[1].y + 2 * k[2].y + k[3].y),
                                         q->z + h / 6 * (k[0].z + 2 * k[1].z + 2 * k[2].z + k[3].z)});
}

/* The spin case; `swap` feeds quaternions as x, y, z, w. */
static void spin_box(trial *t, int swap, double drop_flips_after) {
  trial_init(t, 600);
  t->c.scene.gravity = zero;
  int32_t box = trial_box(t, 120, zero, (pabd_dvec3){0.5, 0.3, 0.1});
  pabd_body *b = &t->c.scene.bodies[box];
  b->inertia = pabd_shape_inertia(&t->c.scene.shapes[0], 120);
  b->angular = (pabd_dvec3){0.1, 10, 0};
  t->c.energy_ref = 0.5 * (b->inertia.x * 0.01 + b->inertia.y * 100);
  trial_metric(t, "energy");
  trial_metric(t, "momentum");
  pabd_case_metric *m = trial_metric(t, "flips");
  m->body = box;
  m->axis = (pabd_dvec3){0, 1, 0};
  m->reference = 0.9649;
  m->number[0] = 1.9296;
  trial_begin(t);
  pabd_dvec3 inertia = b->inertia, momentum = {inertia.x * 0.1, inertia.y * 10, 0};
  pabd_dquat q = {1, 0, 0, 0};
  for (int32_t f = 0; f <= 600; ++f) {
    for (int s = 0; s < 50 && f > 0 && f * FRAME < drop_flips_after; ++s) spin_step(&q, momentum, inertia, FRAME / 50);
    pabd_dvec3 l = pabd_dquat_rotate(pabd_dquat_conj(q), momentum);
    pabd_dvec3 w = pabd_dquat_rotate(q, (pabd_dvec3){l.x / inertia.x, l.y / inertia.y, l.z / inertia.z});
    put_rotation(t, box, swap ? (pabd_dquat){q.x, q.y, q.z, q.w} : q);
    put_velocity(t, box, zero, w);
    CHECK(feed(t, f) == PABD_OK);
  }
}

TEST(spinning_box_keeps_energy_and_momentum_and_flips_on_time) {
  trial t;
  spin_box(&t, 0, 100);
  CHECK_NEAR(result(&t, "energy_rel_err_max"), 0, 1e-9);
  CHECK_NEAR(result(&t, "ang_mom_err"), 0, 1e-9);
  CHECK_NEAR(result(&t, "flips"), 5, 0);
  CHECK_NEAR(result(&t, "first_flip_s"), 0.9649, 2e-4);
  CHECK_NEAR(result(&t, "flip_s_err_max"), 0, 5e-4);
  trial_end(&t);
}

TEST(wrong_quaternion_order_is_found) {
  trial t;
  spin_box(&t, 1, 100);
  CHECK(result(&t, "ang_mom_err") > 0.1);
  CHECK(result(&t, "energy_rel_err_max") > 0.1);
  trial_end(&t);
}

TEST(flip_that_does_not_come_is_late) {
  trial t;
  spin_box(&t, 0, 2);
  CHECK_NEAR(result(&t, "flips"), 1, 0);
  CHECK(result(&t, "flip_s_err_max") > 6.9); /* since 2.8945 s */
  trial_end(&t);
}

TEST(loads_are_not_an_energy_error) {
  trial t;
  trial_init(&t, 120);
  t.c.scene.gravity = zero;
  int32_t body = trial_body(&t, 2, zero);
  t.c.scene.bodies[body].inertia = (pabd_dvec3){0.5, 0.5, 0.5};
  pabd_load load = {body, {6, 0, 0}, {0, 2, 0}, 0.25, 1.5};
  pabd_scene_add_load(&t.c.scene, &load);
  trial_metric(&t, "energy");
  trial_metric(&t, "momentum");
  trial_begin(&t);
  for (int32_t f = 0; f <= 120; ++f) {
    double s = fmin(fmax(f * FRAME - 0.25, 0), 1.25), after = fmax(f * FRAME - 1.5, 0);
    put_position(&t, body, (pabd_dvec3){1.5 * s * s + 3 * s * after, 0, 0});
    put_rotation(&t, body, turn(0, 2 * s * s + 4 * s * after, 0));
    put_velocity(&t, body, (pabd_dvec3){3 * s, 0, 0}, (pabd_dvec3){0, 4 * s, 0});
    feed(&t, f);
  }
  CHECK_NEAR(result(&t, "energy_rel_err_max"), 0, 1e-10);
  CHECK_NEAR(result(&t, "lin_mom_err"), 0, 1e-12);
  CHECK_NEAR(result(&t, "ang_mom_err"), 0, 1e-12);
  trial_end(&t);
}

TEST(driver_work_is_subtracted) {
  trial t;
  trial_init(&t, 1);
  t.c.scene.gravity = zero;
  t.c.energy_ref = 10;
  int32_t body = trial_body(&t, 2, zero);
  trial_metric(&t, "energy");
  trial_begin(&t);
  pabd_judge_frame(t.judge, 0, t.pose, t.velocity, 0);
  put_velocity(&t, body, (pabd_dvec3){2, 0, 0}, zero);
  pabd_judge_frame(t.judge, 1, t.pose, t.velocity, 3);
  CHECK_NEAR(result(&t, "energy_rel_end"), 0.1, 1e-14);
  trial_end(&t);
}

TEST(springs_store_energy) {
  /* A mass on a spring along z with rest 1 m, and a wheel on a hinge spring that turns more than once. */
  trial t;
  trial_init(&t, 300);
  t.c.scene.gravity = zero;
  int32_t mass = trial_body(&t, 1, (pabd_dvec3){0, 0, -1.1}), wheel = trial_body(&t, 1, (pabd_dvec3){5, 0, 0});
  t.c.scene.bodies[wheel].inertia = (pabd_dvec3){1, 1, 1};
  t.c.scene.bodies[wheel].angular.z = 10; /* amplitude 10 rad at omega 1 */
  pabd_joint spring = pabd_joint_default(PABD_SPRING);
  spring.body_a = PABD_WORLD, spring.body_b = mass, spring.rest = 1, spring.stiffness = 100;
  pabd_scene_add_joint(&t.c.scene, &spring);
  pabd_joint hinge = pabd_joint_default(PABD_HINGE);
  hinge.body_a = PABD_WORLD, hinge.body_b = wheel, hinge.stiffness = 1;
  hinge.frame_a.p = (pabd_dvec3){5, 0, 0};
  pabd_scene_add_joint(&t.c.scene, &hinge);
  trial_metric(&t, "energy");
  trial_metric(&t, "joints");
  trial_begin(&t);
  for (int32_t f = 0; f <= 300; ++f) {
    double s = f * FRAME;
    put_position(&t, mass, (pabd_dvec3){0, 0, -1 - 0.1 * cos(10 * s)});
    put_velocity(&t, mass, (pabd_dvec3){0, 0, sin(10 * s)}, zero);
    put_rotation(&t, wheel, turn(0, 0, 10 * sin(s)));
    put_velocity(&t, wheel, zero, (pabd_dvec3){0, 0, 10 * cos(s)});
    feed(&t, f);
  }
  CHECK_NEAR(result(&t, "energy_rel_err_max"), 0, 1e-10);
  CHECK_NEAR(result(&t, "joint_pos_err_max"), 0, 1e-14);
  CHECK_NEAR(result(&t, "joint_ang_err_max"), 0, 1e-12);
  trial_end(&t);
}

TEST(momentum_of_a_pendulum_is_about_its_anchor) {
  /* A point mass on a distance joint, by fine integration of phi'' = -(g/l) sin phi. */
  trial t;
  trial_init(&t, 120);
  int32_t bob = trial_body(&t, 2, (pabd_dvec3){1 + 0.5, 0, 3});
  t.c.scene.bodies[bob].inertia = (pabd_dvec3){1e-9, 1e-9, 1e-9};
  pabd_joint rod = pabd_joint_default(PABD_DISTANCE);
  rod.body_a = PABD_WORLD, rod.body_b = bob, rod.rest = 0.5;
  rod.frame_a.p = (pabd_dvec3){1, 0, 3};
  pabd_scene_add_joint(&t.c.scene, &rod);
  t.c.energy_ref = 2 * GRAVITY * 0.5;
  trial_metric(&t, "momentum");
  trial_metric(&t, "energy");
  trial_metric(&t, "joints");
  pabd_case_metric *m = trial_metric(&t, "first_low");
  m->body = bob;
  m->reference = 1.8540746773013719 / sqrt(GRAVITY / 0.5);
  trial_begin(&t);
  double phi = 0.5 * M_PI, rate = 0;
  for (int32_t f = 0; f <= 120; ++f) {
    for (int s = 0; s < 2000 && f > 0; ++s) { /* leapfrog */
      double h = FRAME / 2000;
      rate -= 0.5 * h * GRAVITY / 0.5 * sin(phi);
      phi += h * rate;
      rate -= 0.5 * h * GRAVITY / 0.5 * sin(phi);
    }
    put_position(&t, bob, (pabd_dvec3){1 + 0.5 * sin(phi), 0, 3 - 0.5 * cos(phi)});
    put_velocity(&t, bob, (pabd_dvec3){0.5 * rate * cos(phi), 0, 0.5 * rate * sin(phi)}, zero);
    feed(&t, f);
  }
  CHECK_NEAR(result(&t, "ang_mom_err"), 0, 1e-5);
  CHECK(!has(&t, "lin_mom_err")); /* the anchor pulls */
  CHECK_NEAR(result(&t, "energy_rel_err_max"), 0, 1e-6);
  CHECK_NEAR(result(&t, "joint_pos_err_max"), 0, 1e-14);
  CHECK_NEAR(result(&t, "first_low_s_err"), 0, 2e-4);
  CHECK_NEAR(result(&t, "first_low_z"), 2.5, 1e-3);
  trial_end(&t);
}

TEST(momentum_on_a_ground_is_no_error) {
  trial t;
  trial_init(&t, 1);
  trial_ground(&t);
  trial_box(&t, 1, (pabd_dvec3){0, 0, 0.5}, (pabd_dvec3){0.5, 0.5, 0.5});
  trial_metric(&t, "momentum");
  trial_metric(&t, "energy");
  trial_begin(&t);
  feed(&t, 0);
  feed(&t, 1);
  CHECK(!has(&t, "lin_mom_err") && !has(&t, "ang_mom_err"));
  CHECK(series(&t, "momentum_x") != NULL);
  CHECK_STR(pabd_metrics_get(&t.out, "energy_rel_err_max")->better, "info"); /* contacts may take energy */
  CHECK_STR(pabd_metrics_get(&t.out, "energy_gain_max")->better, "lower");
  trial_end(&t);
}

TEST(only_dynamic_bodies_count) {
  trial t;
  trial_init(&t, 1);
  int32_t still = trial_body(&t, 5, zero), driven = trial_body(&t, 7, zero);
  trial_body(&t, 1, zero);
  t.c.scene.bodies[still].motion = PABD_STATIC;
  t.c.scene.bodies[driven].motion = PABD_KINEMATIC;
  t.c.scene.gravity = zero;
  trial_metric(&t, "energy");
  trial_metric(&t, "com");
  trial_begin(&t);
  feed(&t, 0);
  put_velocity(&t, driven, (pabd_dvec3){9, 9, 9}, zero);
  put_velocity(&t, still, (pabd_dvec3){9, 9, 9}, zero);
  put_position(&t, driven, (pabd_dvec3){3, 3, 3});
  feed(&t, 1);
  CHECK_NEAR(result(&t, "energy_rel_err_max"), 0, 0);
  CHECK_NEAR(result(&t, "com_move_max"), 0, 0);
  trial_end(&t);
}

/* ---- joints ---- */

/* One joint between two bodies at generic places; body b is then moved by `shift` (a's frame) and turned by `twist`
 * (a's frame, about the anchor). */
static void move_joint(trial *t, pabd_joint joint, pabd_dvec3 shift, pabd_dvec3 twist) {
  trial_init(t, 1);
  t->c.scene.gravity = (pabd_dvec3){0, 0, -GRAVITY};
  int32_t a = trial_body(t, 1, (pabd_dvec3){0.3, -0.2, 1}), b = trial_body(t, 1, (pabd_dvec3){1.3, 0.1, 0.7});
  t->c.scene.bodies[a].pose.q = turn(0.3, -0.5, 0.9);
  t->c.scene.bodies[b].pose.q = turn(-0.7, 0.2, 0.4);
  joint.body_a = a, joint.body_b = b;
  pabd_dpose at = {{0.8, 0, 0.9}, turn(0.1, 0.6, -0.3)};
  pabd_joint_place(&t->c.scene, &joint, at);
  if (joint.kind == PABD_DISTANCE) joint.frame_a.p.x -= joint.rest > 0 ? joint.rest : joint.lower;
  pabd_scene_add_joint(&t->c.scene, &joint);
  trial_metric(t, "joints");
  trial_metric(t, "gap_series");
  trial_begin(t);
  feed(t, 0);
  /* New pose of b: the joint frame moved, then the body behind it. */
  pabd_dpose moved = {at.p, pabd_dquat_mul(at.q, pabd_dquat_from_rotation_vector(twist))};
  moved.p = v3_add(at.p, pabd_dquat_rotate(at.q, shift));
  pabd_dpose body = pabd_dpose_mul(moved, pabd_dpose_inverse(joint.frame_b));
  put_position(t, b, body.p);
  put_rotation(t, b, body.q);
  feed(t, 1);
}

TEST(joint_errors_equal_what_was_planted) {
  static const struct {
    pabd_joint_kind kind;
    double shift[3], twist[3];
    double position, angle; /* expected; angle < 0: none */
  } rows[] = {
      {PABD_SPHERICAL, {0.003, 0, 0}, {0.4, 0.5, -0.6}, 0.003, -1},
      {PABD_HINGE, {0, 0.003, 0.004}, {0, 0, 2}, 0.005, 0},
      {PABD_HINGE, {0, 0, 0}, {0.02, 0, 0}, 0, 0.02},
      {PABD_SLIDER, {0, 0, 0.7}, {0, 0, 0}, 0, 0},
      {PABD_SLIDER, {0.003, 0.004, 0.7}, {0, 0, 0}, 0.005, 0},
      {PABD_SLIDER, {0, 0, 0.7}, {0, 0, 0.03}, 0, 0.03},
      {PABD_FIXED, {0.001, 0.002, 0.002}, {0, 0.04, 0}, 0.003, 0.04},
      {PABD_UNIVERSAL, {0, 0, 0.002}, {0.5, 0, 0}, 0.002, 0},
      {PABD_UNIVERSAL, {0, 0, 0}, {0, 0.5, 0}, 0, 0},
      {PABD_UNIVERSAL, {0, 0, 0}, {0, 0, 0.06}, 0, 0.06},
  };
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
    trial t;
    move_joint(&t, pabd_joint_default(rows[k].kind), (pabd_dvec3){rows[k].shift[0], rows[k].shift[1], rows[k].shift[2]},
               (pabd_dvec3){rows[k].twist[0], rows[k].twist[1], rows[k].twist[2]});
    if (!CHECK_NEAR(result(&t, "joint_pos_err_max"), rows[k].position, 1e-13)) printf("  row %d\n", (int)k);
    CHECK_NEAR(result(&t, "joint_pos_err_rms"), rows[k].position / sqrt(2), 1e-13); /* two frames, one joint */
    if (rows[k].angle < 0) {
      CHECK(!has(&t, "joint_ang_err_max"));
    } else if (!CHECK_NEAR(result(&t, "joint_ang_err_max"), rows[k].angle, 1e-12)) {
      printf("  row %d\n", (int)k);
    }
    trial_end(&t);
  }
}

TEST(distance_joints_rods_and_ropes) {
  pabd_joint rod = pabd_joint_default(PABD_DISTANCE);
  rod.rest = 0.5;
  trial t;
  move_joint(&t, rod, zero, zero);
  /* The anchors were 0.5 m apart; now b is anywhere: compare with the distance itself. */
  CHECK_NEAR(result(&t, "joint_pos_err_max"), 0, 1e-13);
  trial_end(&t);
  pabd_joint rope = pabd_joint_default(PABD_DISTANCE);
  rope.has_limits = 1, rope.lower = 0, rope.upper = 0.2;
  move_joint(&t, rope, (pabd_dvec3){0, 0.15, 0}, zero);
  CHECK_NEAR(result(&t, "joint_pos_err_max"), 0, 1e-13); /* slack */
  trial_end(&t);
  move_joint(&t, rope, (pabd_dvec3){0, 0.25, 0}, zero);
  CHECK_NEAR(result(&t, "joint_pos_err_max"), 0.05, 1e-13);
  CHECK_NEAR(series(&t, "joint_gap_0")->values[1], 0.05, 1e-13);
  trial_end(&t);
}

TEST(limits_of_hinges_and_sliders) {
  pabd_joint hinge = pabd_joint_default(PABD_HINGE);
  hinge.has_limits = 1, hinge.lower = -0.5, hinge.upper = 1;
  trial t;
  move_joint(&t, hinge, zero, (pabd_dvec3){0, 0, 0.9});
  CHECK_NEAR(result(&t, "joint_limit_ang_err_max"), 0, 1e-12);
  trial_end(&t);
  move_joint(&t, hinge, zero, (pabd_dvec3){0, 0, 1.2});
  CHECK_NEAR(result(&t, "joint_limit_ang_err_max"), 0.2, 1e-12);
  trial_end(&t);
  move_joint(&t, hinge, zero, (pabd_dvec3){0, 0, -0.6});
  CHECK_NEAR(result(&t, "joint_limit_ang_err_max"), 0.1, 1e-12);
  trial_end(&t);
  pabd_joint slider = pabd_joint_default(PABD_SLIDER);
  slider.has_limits = 1, slider.lower = -0.2, slider.upper = 0.2;
  move_joint(&t, slider, (pabd_dvec3){0, 0, -0.23}, zero);
  CHECK_NEAR(result(&t, "joint_limit_err_max"), 0.03, 1e-13);
  CHECK(!has(&t, "joint_limit_ang_err_max"));
  trial_end(&t);
}

TEST(joint_velocity_error) {
  trial t;
  trial_init(&t, 0);
  int32_t a = trial_body(&t, 1, zero), b = trial_body(&t, 1, (pabd_dvec3){1, 0, 0});
  pabd_joint joint = pabd_joint_default(PABD_SLIDER); /* along z */
  joint.body_a = a, joint.body_b = b;
  pabd_joint_place(&t.c.scene, &joint, (pabd_dpose){{1, 0, 0}, {1, 0, 0, 0}});
  pabd_scene_add_joint(&t.c.scene, &joint);
  trial_metric(&t, "joints");
  trial_begin(&t);
  /* a turns about y at 2 rad/s and carries b along: (0, 0, -2) at x = 1; b also slides, and drifts by 0.3 along y. */
  put_velocity(&t, a, zero, (pabd_dvec3){0, 2, 0});
  put_velocity(&t, b, (pabd_dvec3){0, 0.3, -2 + 0.7}, (pabd_dvec3){0, 2, 0});
  feed(&t, 0);
  CHECK_NEAR(result(&t, "joint_vel_err_max"), 0.3, 1e-14);
  trial_end(&t);
}

TEST(hanging_chain_against_tension) {
  enum { LINKS = 5 };
  const double kappa = 1e6;
  trial t;
  trial_init(&t, 0);
  double z = 0, below = 0;
  for (int i = 0; i < LINKS; ++i) below += 1 + i;
  int32_t last = PABD_WORLD;
  for (int i = 0; i < LINKS; ++i) {
    z -= below * GRAVITY / kappa; /* the gap that a spring of kappa would have */
    int32_t link = trial_body(&t, 1 + i, (pabd_dvec3){0, 0, z - 0.5});
    pabd_joint joint = pabd_joint_default(PABD_SPHERICAL);
    joint.body_a = last, joint.body_b = link;
    joint.frame_a.p = last == PABD_WORLD ? zero : (pabd_dvec3){0, 0, -0.5};
    joint.frame_b.p = (pabd_dvec3){0, 0, 0.5};
    pabd_scene_add_joint(&t.c.scene, &joint);
    below -= 1 + i;
    z -= 1;
    last = link;
  }
  trial_metric(&t, "hanging_gap")->number[0] = kappa;
  trial_metric(&t, "gap_series");
  trial_begin(&t);
  feed(&t, 0);
  CHECK_NEAR(result(&t, "hanging_gap_rel_err"), 0, 1e-9);
  CHECK_NEAR(series(&t, "joint_gap_0")->values[0], 15 * GRAVITY / kappa, 1e-14);
  trial_end(&t);
}

/* ---- contacts ---- */

TEST(overlap_of_a_millimeter_is_a_millimeter) {
  trial t;
  trial_init(&t, 1);
  trial_ground(&t);
  const pabd_dvec3 half = {0.5, 0.5, 0.5};
  int32_t lower = trial_box(&t, 1, (pabd_dvec3){0, 0, 0.5}, half);
  int32_t upper = trial_box(&t, 10, (pabd_dvec3){0, 0, 1.5}, half);
  t.c.settle_time = 1 * FRAME;
  trial_metric(&t, "penetration");
  trial_begin(&t);
  put_position(&t, lower, (pabd_dvec3){0, 0, 0.498});
  feed(&t, 0);
  CHECK_NEAR(result(&t, "penetration_max"), 0.002, 1e-14);
  put_position(&t, lower, (pabd_dvec3){0, 0, 0.4995});
  put_position(&t, upper, (pabd_dvec3){0.2, 0.1, 1.4985});
  put_rotation(&t, upper, turn(0, 0, 0.7));
  feed(&t, 1);
  CHECK_NEAR(result(&t, "penetration_max"), 0.002, 1e-14);
  CHECK_NEAR(result(&t, "penetration_settled_max"), 0.001, 1e-14);
  CHECK_NEAR(result(&t, "penetration_max_end"), 0.001, 1e-14);
  CHECK_NEAR(result(&t, "penetration_mean_end"), 0.00075, 1e-14);
  CHECK_NEAR(result(&t, "penetration_p99_end"), 0.0005 + 0.99 * 0.0005, 1e-14);
  CHECK_NEAR(result(&t, "pairs_over_10mm_end"), 0, 0);
  CHECK_NEAR(result(&t, "contact_pairs_mean"), 1.5, 0); /* the upper box is 2 mm off in frame 0 */
  trial_end(&t);
}

TEST(contact_pairs_are_counted_within_a_millimeter) {
  static const double gaps[4] = {-0.001, 0.0005, 0.00099, 0.0011};
  trial t;
  trial_init(&t, 3);
  trial_ground(&t);
  int32_t box = trial_box(&t, 1, (pabd_dvec3){0, 0, 0.5}, (pabd_dvec3){0.5, 0.5, 0.5});
  trial_metric(&t, "penetration");
  trial_begin(&t);
  for (int32_t f = 0; f < 4; ++f) {
    put_position(&t, box, (pabd_dvec3){0, 0, 0.5 + gaps[f]});
    feed(&t, f);
  }
  CHECK_NEAR(result(&t, "contact_pairs_mean"), 0.75, 0);
  trial_end(&t);
}

TEST(pairs_that_do_not_collide_are_no_overlap) {
  trial t;
  trial_init(&t, 0);
  const pabd_dvec3 half = {0.5, 0.5, 0.5};
  /* All at one place, and yet: joined, same group, listed, other world. */
  int32_t a = trial_box(&t, 1, zero, half), b = trial_box(&t, 1, zero, half);
  int32_t c = trial_box(&t, 1, (pabd_dvec3){10, 0, 0}, half), d = trial_box(&t, 1, (pabd_dvec3){10, 0, 0}, half);
  int32_t e = trial_box(&t, 1, (pabd_dvec3){20, 0, 0}, half), f = trial_box(&t, 1, (pabd_dvec3){20, 0, 0}, half);
  trial_box(&t, 1, (pabd_dvec3){30, 0, 0}, half);
  int32_t h = trial_box(&t, 1, (pabd_dvec3){30, 0, 0}, half);
  pabd_joint joint = pabd_joint_default(PABD_SPHERICAL);
  joint.body_a = b, joint.body_b = a;
  pabd_scene_add_joint(&t.c.scene, &joint);
  t.c.scene.bodies[c].group = t.c.scene.bodies[d].group = 3;
  pabd_scene_ignore_pair(&t.c.scene, f, e);
  t.c.scene.bodies[h].world = 1;
  trial_metric(&t, "penetration");
  trial_begin(&t);
  feed(&t, 0);
  CHECK_NEAR(result(&t, "penetration_max"), 0, 0);
  CHECK_NEAR(result(&t, "contact_pairs_mean"), 0, 0);
  trial_end(&t);
}

TEST(static_bodies_stay_where_the_scene_put_them) {
  trial t;
  trial_init(&t, 0);
  int32_t ground = trial_ground(&t);
  trial_box(&t, 1, (pabd_dvec3){0, 0, 0.49}, (pabd_dvec3){0.5, 0.5, 0.5});
  trial_metric(&t, "penetration");
  trial_begin(&t);
  put_position(&t, ground, (pabd_dvec3){0, 0, -2}); /* an engine that lowers the ground hides nothing */
  feed(&t, 0);
  CHECK_NEAR(result(&t, "penetration_max"), 0.01, 1e-14);
  trial_end(&t);
}

static uint64_t random_state = 7;
static double uniform(double low, double high) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return low + (high - low) * ((double)(random_state >> 11) * 0x1p-53);
}

/* Random clouds of shapes: compounds, groups, joints, worlds, a plane, a few large ones. */
static void build_cloud(pabd_scene *scene, int bodies, double spread, double scale) {
  if (pabd_scene_init(scene) != PABD_OK) abort();
  for (int i = 0; i < bodies; ++i) {
    pabd_body b = pabd_body_default();
    b.mass = 1;
    b.inertia = (pabd_dvec3){1, 1, 1};
    b.motion = i == 0 || uniform(0, 1) < 0.1 ? PABD_STATIC : uniform(0, 1) < 0.05 ? PABD_KINEMATIC : PABD_DYNAMIC;
    b.group = uniform(0, 1) < 0.2 ? (int)uniform(1, 4) : 0;
    b.world = uniform(0, 1) < 0.1;
    b.pose.p = (pabd_dvec3){uniform(-spread, spread), uniform(-spread, spread), uniform(-spread, spread)};
    b.pose.q = turn(uniform(-2, 2), uniform(-2, 2), uniform(-2, 2));
    pabd_scene_add_body(scene, &b);
    int shapes = uniform(0, 1) < 0.2 ? 3 : 1;
    for (int k = 0; k < shapes; ++k) {
      static const pabd_shape_kind kinds[5] = {PABD_SPHERE, PABD_CAPSULE, PABD_BOX, PABD_BOX, PABD_CYLINDER};
      pabd_shape s = pabd_shape_default(i == 0 ? PABD_PLANE : kinds[(int)uniform(0, 5)]);
      double size = scale * (uniform(0, 1) < 0.02 ? 10 : 1);
      s.body = i;
      s.radius = size * uniform(0.1, 0.4);
      s.half_length = size * uniform(0.1, 0.5);
      s.half = (pabd_dvec3){size * uniform(0.1, 0.5), size * uniform(0.1, 0.5), size * uniform(0.1, 0.5)};
      if (k > 0) s.local.p = (pabd_dvec3){uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
      pabd_scene_add_shape(scene, &s);
    }
  }
  for (int k = 0; k < bodies; ++k) {
    pabd_joint joint = pabd_joint_default(PABD_SPHERICAL);
    joint.body_a = (int32_t)uniform(0, bodies);
    joint.body_b = (int32_t)uniform(0, bodies);
    joint.collide = uniform(0, 1) < 0.3;
    if (joint.body_a != joint.body_b) pabd_scene_add_joint(scene, &joint);
  }
}

TEST(broad_phase_finds_what_all_pairs_find) {
  for (int round = 0; round < 12; ++round) {
    pabd_scene scene;
    int bodies = round < 6 ? 60 : 400;
    build_cloud(&scene, bodies, round % 3 == 0 ? 2 : round % 3 == 1 ? 6 : 40, round % 2 ? 1 : 3);
    double *pose = calloc((size_t)bodies * 7, sizeof *pose);
    REQUIRE(pose != NULL);
    for (int i = 0; i < bodies; ++i) {
      pabd_dpose at = scene.bodies[i].pose;
      const double x[7] = {at.p.x, at.p.y, at.p.z, at.q.w, at.q.x, at.q.y, at.q.z};
      memcpy(pose + 7 * (size_t)i, x, sizeof x);
    }
    int32_t touching = 0, deep = 0;
    double deepest = 0, sum = 0;
    for (int32_t i = 0; i < scene.shape_count; ++i) {
      for (int32_t j = i + 1; j < scene.shape_count; ++j) {
        int32_t a = scene.shapes[i].body, b = scene.shapes[j].body;
        if (pabd_scene_ignores(&scene, a, b)) continue;
        double gap = pabd_judge_gap(&scene, &scene.shapes[i], pose + 7 * (size_t)a, &scene.shapes[j],
                                    pose + 7 * (size_t)b, NULL);
        touching += gap <= PABD_TOUCH_GAP;
        if (-gap > PABD_DEPTH_FLOOR) ++deep, sum -= gap;
        deepest = fmax(deepest, -gap);
      }
    }
    pabd_pair_finder *finder = pabd_pair_finder_create(&scene);
    REQUIRE(finder != NULL);
    pabd_pair_summary found;
    for (int again = 0; again < 2; ++again) { /* a second sweep starts from a clean slate */
      CHECK(pabd_pair_finder_sweep(finder, pose, &found) == PABD_OK);
      CHECK_INT(found.touching, touching);
      CHECK_INT(found.depth_count, deep);
      CHECK_NEAR(found.deepest, deepest, 1e-8);
      double found_sum = 0;
      for (int32_t k = 0; k < found.depth_count; ++k) found_sum += found.depths[k];
      CHECK_NEAR(found_sum, sum, 1e-6);
    }
    CHECK(touching > 5 || round % 3 == 2);
    pabd_pair_finder_destroy(finder);
    pabd_scene_free(&scene);
    free(pose);
  }
}

TEST(pile_metrics) {
  trial t;
  trial_init(&t, 20);
  trial_ground(&t);
  const pabd_dvec3 half = {0.5, 0.5, 0.5};
  int32_t a = trial_box(&t, 1, (pabd_dvec3){3, 0, 0.5}, half), b = trial_box(&t, 3, (pabd_dvec3){0, 4, 0.5}, half);
  int32_t ball = trial_body(&t, 2, (pabd_dvec3){-9, 0, 1});
  t.c.scene.bodies[ball].linear.x = 10;
  pabd_case_metric *m = trial_metric(&t, "pile");
  m->body = ball;
  m->number[0] = 0.2;
  trial_begin(&t);
  for (int32_t f = 0; f <= 20; ++f) {
    put_velocity(&t, ball, (pabd_dvec3){10 - 0.25 * f, 0, 0}, zero);
    put_velocity(&t, a, (pabd_dvec3){0.1 * f, 0, 0}, zero);
    if (f == 20) put_position(&t, b, (pabd_dvec3){0, 4, -0.1}); /* it fell through */
    feed(&t, f);
    if (f == 11) CHECK(!has(&t, "impact_momentum_kept"));
  }
  CHECK_NEAR(result(&t, "impact_momentum_kept"), (20 - 0.5 * 12 + 1.2) / 20, 1e-12); /* frame 12 is 0.2 s */
  CHECK_NEAR(result(&t, "com_height_end"), (0.5 - 0.3) / 4, 1e-14);
  CHECK_NEAR(result(&t, "spread_end"), sqrt((9.0 + 16.0) / 2), 1e-14);
  CHECK_NEAR(result(&t, "bodies_lost"), 1, 0);
  trial_end(&t);
}

/* ---- events ---- */

static double survive_with(void (*plant)(trial *t, int32_t body, double s)) {
  trial t;
  trial_init(&t, 60);
  trial_ground(&t);
  int32_t low = trial_box(&t, 1, (pabd_dvec3){0, 0, 0.5}, (pabd_dvec3){0.5, 0.5, 0.5});
  int32_t top = trial_box(&t, 1, (pabd_dvec3){0, 0, 1.5}, (pabd_dvec3){0.5, 0.5, 0.5});
  (void)low;
  t.c.duration = 1;
  pabd_case_metric *m = trial_metric(&t, "survive");
  m->body = top;
  m->number[0] = 0.5, m->number[1] = 30, m->number[2] = 0.5, m->number[3] = 0.25;
  trial_begin(&t);
  for (int32_t f = 0; f <= 60; ++f) {
    plant(&t, top, f * FRAME);
    if (feed(&t, f) != PABD_OK) break;
  }
  double survived = result(&t, "survive_s");
  CHECK_NEAR(result(&t, "stands"), survived >= 1, 0);
  trial_end(&t);
  return survived;
}

static void stand(trial *t, int32_t body, double s) {
  put_position(t, body, (pabd_dvec3){0.49 * s, 0, 1.5 - 0.4 * s});
}
static void sink(trial *t, int32_t body, double s) {
  put_position(t, body, (pabd_dvec3){0, 0, 1.5 - s});
}
static void rise(trial *t, int32_t body, double s) {
  put_position(t, body, (pabd_dvec3){0, 0, 1.5 + s});
}
static void drift(trial *t, int32_t body, double s) {
  put_position(t, body, (pabd_dvec3){0.6 * s, 0.8 * s, 1.5});
}
static void tilt(trial *t, int32_t body, double s) {
  put_rotation(t, body, turn(0, s, 0));
}
static void yaw(trial *t, int32_t body, double s) {
  put_rotation(t, body, turn(0, 0, 3 * s));
}
static void explode(trial *t, int32_t body, double s) {
  if (s > 0.5) put_position(t, body, (pabd_dvec3){0, NAN, 1.5});
}

TEST(survive_follows_its_definition) {
  CHECK_NEAR(survive_with(stand), 1, 0);
  CHECK_NEAR(survive_with(yaw), 1, 0);
  CHECK_NEAR(survive_with(sink), 0.5, FRAME + 1e-9);
  CHECK_NEAR(survive_with(rise), 0.25, FRAME + 1e-9);
  CHECK_NEAR(survive_with(drift), 0.5, FRAME + 1e-9);
  CHECK_NEAR(survive_with(tilt), M_PI / 6, FRAME + 1e-9);
  CHECK_NEAR(survive_with(explode), 0.5, 1e-9); /* no longer than its numbers were good */
}

TEST(first_low_point_by_a_parabola) {
  trial t;
  trial_init(&t, 200);
  int32_t body = trial_body(&t, 1, (pabd_dvec3){0, 0, 1});
  pabd_case_metric *m = trial_metric(&t, "first_low");
  m->body = body;
  m->reference = M_PI / 2.1;
  trial_begin(&t);
  for (int32_t f = 0; f <= 200; ++f) {
    double s = f * FRAME;
    /* A jitter at the start must not count. */
    put_position(&t, body, (pabd_dvec3){0, 0, cos(2.1 * s) - (f == 2 ? 3e-3 : 0)});
    feed(&t, f);
  }
  CHECK_NEAR(result(&t, "first_low_s_err"), 0, 1e-5);
  CHECK_NEAR(result(&t, "first_low_z"), -1, 1e-6);
  trial_end(&t);
}

TEST(single_body_metrics) {
  trial t;
  trial_init(&t, 120);
  int32_t body = trial_body(&t, 1, (pabd_dvec3){1, 2, 3}), other = trial_body(&t, 1, (pabd_dvec3){0, 0, 0});
  t.c.scene.bodies[body].linear = (pabd_dvec3){2, 0, 0};
  pabd_case_metric *m = trial_metric(&t, "stop_distance");
  m->body = body, m->reference = 3;
  m = trial_metric(&t, "creep");
  m->number[0] = 1;
  m = trial_metric(&t, "creep");
  m->body = body, m->number[0] = 0;
  m = trial_metric(&t, "position");
  m->body = body, m->axis = (pabd_dvec3){0, 1, 0}, m->reference = 0.5;
  m = trial_metric(&t, "contraction");
  m->body = body;
  trial_begin(&t);
  for (int32_t f = 0; f <= 120; ++f) {
    double s = f * FRAME / 2; /* 0 .. 1 */
    put_position(&t, body, (pabd_dvec3){1 + 3 * s, 2 + 0.4 * s, 3 - 1.5 * s});
    put_position(&t, other, (pabd_dvec3){f == 90 ? 7 : 0, 0, 0});
    feed(&t, f);
  }
  CHECK_NEAR(result(&t, "stop_distance"), sqrt(9 + 0.16 + 2.25), 1e-12);
  CHECK_NEAR(result(&t, "stop_distance_err"), sqrt(9 + 0.16 + 2.25) - 3, 1e-12);
  CHECK_NEAR(result(&t, "stop_aside"), sqrt(0.16 + 2.25), 1e-12);
  CHECK_NEAR(result(&t, "creep"), 7, 1e-12);
  CHECK_NEAR(result(&t, "creep_2"), hypot(3, 0.4), 1e-12);
  CHECK_NEAR(result(&t, "position_err_end"), 0.1, 1e-12);
  CHECK_NEAR(result(&t, "gap_end"), 1.5, 1e-12);
  CHECK_NEAR(result(&t, "gap_ratio_end"), 0.5, 1e-12);
  trial_end(&t);
}

/* ---- bad numbers, series, hash ---- */

TEST(bad_numbers_end_the_run_and_leave_the_metrics) {
  static const double bad[4] = {NAN, INFINITY, -INFINITY, 2e6};
  for (int k = 0; k < 4; ++k) {
    trial t;
    trial_init(&t, 10);
    t.c.scene.gravity = zero;
    int32_t body = trial_body(&t, 2, zero);
    trial_metric(&t, "energy");
    trial_begin(&t);
    feed(&t, 0);
    put_velocity(&t, body, (pabd_dvec3){1, 0, 0}, zero);
    CHECK(feed(&t, 1) == PABD_OK);
    t.pose[1] = bad[k];
    CHECK(feed(&t, 2) == PABD_DIVERGED);
    t.pose[1] = 0;
    CHECK(feed(&t, 3) == PABD_DIVERGED); /* and stays so */
    CHECK_NEAR(result(&t, "energy_rel_end"), 1, 1e-14);
    CHECK_INT(series(&t, "t")->count, 2);
    trial_end(&t);
  }
  trial t;
  trial_init(&t, 10);
  trial_body(&t, 2, zero);
  trial_metric(&t, "energy");
  trial_begin(&t);
  t.velocity[4] = NAN;
  CHECK(feed(&t, 0) == PABD_DIVERGED);
  CHECK(!has(&t, "energy_rel_end")); /* nothing was measured, nothing is said */
  trial_end(&t);
}

TEST(quaternion_off_unit_length_is_reported_and_harmless) {
  trial t;
  trial_init(&t, 0);
  trial_ground(&t);
  int32_t box = trial_box(&t, 1, (pabd_dvec3){0, 0, 0.49}, (pabd_dvec3){0.5, 0.5, 0.5});
  trial_metric(&t, "penetration");
  trial_begin(&t);
  put_rotation(&t, box, (pabd_dquat){1.02, 0, 0, 0});
  feed(&t, 0);
  CHECK_NEAR(result(&t, "quaternion_norm_err_max"), 0.02, 1e-14);
  CHECK_NEAR(result(&t, "penetration_max"), 0.01, 1e-14);
  trial_end(&t);
}

TEST(long_series_are_thinned_and_keep_their_peaks) {
  trial t;
  trial_init(&t, 5000);
  t.c.scene.gravity = zero;
  int32_t body = trial_body(&t, 2, zero);
  trial_metric(&t, "energy");
  trial_begin(&t);
  for (int32_t f = 0; f <= 5000; ++f) {
    put_velocity(&t, body, (pabd_dvec3){f == 3210 ? 7 : 1e-3 * f, 0, 0}, zero);
    feed(&t, f);
  }
  const pabd_series *error = series(&t, "energy_rel_err"), *kinetic = find_series(&t, "kinetic_energy"),
                    *time = find_series(&t, "t");
  REQUIRE(error && kinetic && time);
  CHECK(error->count <= 601 && error->count > 300);
  CHECK_INT(error->count, kinetic->count);
  CHECK_INT(error->count, time->count);
  double peak = 0;
  for (int32_t k = 0; k < error->count; ++k) peak = fmax(peak, error->values[k]);
  CHECK_NEAR(peak, 49, 1e-12);
  CHECK_NEAR(time->values[0], 0, 0);
  CHECK_NEAR(time->values[time->count - 1], 5000 * FRAME, 1e-9);
  for (int32_t k = 0; k < kinetic->count; ++k) {
    double v = 1e-3 * time->values[k] / FRAME;
    if (fabs(time->values[k] - 3210 * FRAME) > 0.5 * FRAME) CHECK_NEAR(kinetic->values[k], v * v, 1e-9);
  }
  trial_end(&t);
}

TEST(short_series_have_a_value_a_frame) {
  trial t;
  throw_body(&t, 1);
  CHECK_INT(series(&t, "t")->count, 61);
  CHECK_INT(series(&t, "energy_rel_err")->count, 61);
  CHECK_NEAR(series(&t, "momentum_z")->values[60], 3 * (2 - GRAVITY), 1e-12);
  trial_end(&t);
}

TEST(finish_changes_nothing) {
  trial t, u;
  throw_body(&t, 1.01);
  trial_init(&u, 60);
  pabd_scene_free(&u.c.scene);
  u.c = t.c;
  u.judge = pabd_judge_create(&u.c);
  REQUIRE(u.judge != NULL);
  /* The same frames, with a finish after each. */
  for (int32_t f = 0; f <= 60; ++f) {
    double s = f * FRAME;
    pabd_dquat q = turn(0, 0, 5 * s);
    const double x[7] = {1 + 4 * s, 2 - s, 10 + 2 * s - 0.5 * GRAVITY * s * s, q.w, q.x, q.y, q.z};
    const double v[6] = {4 * 1.01, -1.01, (2 - GRAVITY * s) * 1.01, 0, 0, 5};
    CHECK(pabd_judge_frame(u.judge, f, x, v, 0) == PABD_OK);
    result(&u, "");
  }
  result(&t, "");
  CHECK_INT(t.out.metric_count, u.out.metric_count);
  for (int32_t k = 0; k < t.out.metric_count; ++k) {
    CHECK_STR(t.out.metrics[k].key, u.out.metrics[k].key);
    CHECK(t.out.metrics[k].value == u.out.metrics[k].value);
  }
  pabd_judge_destroy(u.judge);
  pabd_metrics_free(&u.out);
  trial_end(&t);
}

TEST(state_hash_is_fnv1a_of_the_bytes) {
  const uint64_t start = 14695981039346656037ull;
  double pose[7] = {1, 2, 3, 1, 0, 0, 0}, velocity[6] = {0.5, 0, 0, 0, 0, -1};
  unsigned char bytes[13 * 8];
  memcpy(bytes, pose, sizeof pose);
  memcpy(bytes + sizeof pose, velocity, sizeof velocity);
  uint64_t expected = start;
  for (size_t k = 0; k < sizeof bytes; ++k) {
    expected ^= bytes[k];
    expected *= 0x100000001b3ull;
  }
  CHECK(pabd_state_hash(start, pose, velocity, 1) == expected);
  CHECK(pabd_state_hash(start, pose, velocity, 0) == start);
  pose[6] = -0.0; /* equal numbers, other bits */
  CHECK(pabd_state_hash(start, pose, velocity, 1) != expected);
  pose[6] = 0;
  velocity[5] = nextafter(-1, 0);
  CHECK(pabd_state_hash(start, pose, velocity, 1) != expected);
}

/* ---- cost ---- */

TEST(cost_of_a_pile_of_8002_bodies) {
  enum { N = 20 };
  trial t;
  trial_init(&t, 20);
  trial_ground(&t);
  for (int i = 0; i < N * N * N; ++i) {
    /* As in the pile case, at rest: 0.1 mm of overlap between layers, each box turned a little, some more. */
    int x = i % N, y = i / N % N, z = i / (N * N);
    pabd_dvec3 at = {x * 1.01, y * 1.01, 0.4999 + z * 0.9999};
    int32_t body = trial_box(&t, 1, at, (pabd_dvec3){0.5, 0.5, 0.5});
    t.c.scene.bodies[body].pose.q = turn(uniform(-1e-4, 1e-4), uniform(-1e-4, 1e-4), uniform(-0.3, 0.3) * (i % 7 == 0));
  }
  int32_t ball = trial_body(&t, 4000, (pabd_dvec3){-5, 9, 10});
  pabd_shape sphere = pabd_shape_default(PABD_SPHERE);
  sphere.body = ball, sphere.radius = 3;
  pabd_scene_add_shape(&t.c.scene, &sphere);
  trial_metric(&t, "energy");
  trial_metric(&t, "penetration");
  trial_metric(&t, "momentum");
  trial_metric(&t, "pile")->body = ball;
  trial_begin(&t);
  clock_t begin = clock();
  for (int32_t f = 0; f <= 20; ++f) CHECK(feed(&t, f) == PABD_OK);
  double ms = 1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC / 21;
  printf("  %d bodies: %.1f ms a frame, %.0f contacts\n", t.c.scene.body_count, ms, result(&t, "contact_pairs_mean"));
  CHECK(ms < 2000); /* a sanitized build on a busy machine; about 20 ms where it matters */
  CHECK(result(&t, "contact_pairs_mean") >= N * N * N);
  trial_end(&t);
}
