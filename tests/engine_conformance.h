/* Is an engine adapter right? Checks that any engine must pass, whatever its solver, against closed forms.
 *
 * Used by tests/test_engine_*.c: each opens one engine ($(B)/engines/NAME.so) by the exported table alone and calls the
 * checks below with the tolerances that its precision and its declared laws (friction pyramid, soft contacts) allow. A
 * check that the engine declares itself unable to run (PABD_CAN_...) is passed over. Scenes are small; all in SI units.
 */
#ifndef PABD_ENGINE_CONFORMANCE_H
#define PABD_ENGINE_CONFORMANCE_H

#include <dlfcn.h>

#include "pabd_engine.h"
#include "test.h"

#define GRAVITY 9.81
#define FRAME (1.0 / 60.0)
#define MOST_BODIES 256

typedef struct conformance {
  const pabd_engine *engine;
  pabd_engine_info info;
  const pabd_setting *settings; /* preset under test */
  int32_t setting_count;
  int internal_substeps; /* semi-implicit Euler steps that the engine makes of one of ours; 0: 1 */
  double round_off;      /* relative error of one frame's arithmetic: 1e-6 float, 1e-12 double */
  double slide_axis;     /* relative tolerance of the sliding distance along x */
  double slide_diagonal; /* along the diagonal; 0: the engine's law is not isotropic, do not check */
  double slide_distance; /* expected: 0: the discrete reference for one substep */
  double joint_gap;      /* m a joint of a light swinging body may open */
  double energy_gain;    /* of a pendulum in a second, relative to its fall energy; 0: 0.05 */
  double rest_depth;     /* m a box of 1 kg may sink into the ground */
  double impact;         /* relative error of momentum in a central impact */
  double restitution;    /* absolute error of the coefficient of restitution */
  double spring;         /* m off after half a period and a period of 1 s, amplitude 0.3 m; 0: 0.02 */
  double motor;          /* relative error of a motor's speed and of its work */
  double contact_force;  /* relative error of reported contact forces at rest; 0: do not check */
} conformance;

/* Opens <folder>/<name>.so once; returns 0 and prints why when it is not there (the test then skips). */
__attribute__((unused)) static int conformance_open_at(conformance *c, const char *folder, const char *name, char *why,
                                                       size_t size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    char line[200] = "";
    snprintf(path, sizeof path, "%s/%s.unavailable", folder, name);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
      if (fgets(line, sizeof line, file) == NULL) line[0] = '\0';
      fclose(file);
      snprintf(why, size, "engine %s is not available: %s", name, line);
    } else {
      const char *text = dlerror();
      snprintf(why, size, "engine %s cannot be opened: %s", name, text ? text : "?");
    }
    return 0;
  }
  pabd_engine_entry_fn entry;
  *(void **)&entry = dlsym(library, PABD_ENGINE_ENTRY_NAME);
  c->engine = entry();
  pabd_error error = {""};
  if (c->engine->probe(&c->info, &error) != PABD_OK) {
    snprintf(why, size, "engine %s is not available: %s", name, error.text);
    return 0;
  }
  return 1;
}

__attribute__((unused)) static int conformance_open(conformance *c, const char *name, char *why, size_t size) {
  return conformance_open_at(c, PABD_BUILD_DIR "/engines", name, why, size);
}

/* A running world with its state. */
typedef struct run {
  const conformance *c;
  void *world;
  pabd_status status; /* of create, then of the first step that failed */
  pabd_error error;
  int32_t body_count;
  double pose[MOST_BODIES][7], velocity[MOST_BODIES][6];
} run;

static void run_start(run *r, const conformance *c, const pabd_scene *scene, const pabd_setting *more,
                      int32_t more_count) {
  pabd_setting all[64];
  int32_t count = 0;
  for (int32_t k = 0; k < c->setting_count; ++k) all[count++] = c->settings[k];
  for (int32_t k = 0; k < more_count; ++k) all[count++] = more[k];
  memset(r, 0, sizeof *r);
  r->c = c;
  r->body_count = scene->body_count;
  r->status = c->engine->create(scene, all, count, &r->world, &r->error);
  if (r->status == PABD_OK) c->engine->read(r->world, &r->pose[0][0], &r->velocity[0][0]);
}

static void run_frames(run *r, int frames) {
  for (int k = 0; k < frames && r->status == PABD_OK; ++k) r->status = r->c->engine->step(r->world, &r->error);
  if (r->world) r->c->engine->read(r->world, &r->pose[0][0], &r->velocity[0][0]);
}

static void run_end(run *r) {
  r->c->engine->destroy(r->world);
}

static int run_good(const run *r, const char *what) {
  return CHECK_MSG(r->status == PABD_OK, "%s: %s: %s", what, pabd_status_text(r->status), r->error.text);
}

__attribute__((unused)) static double run_counter(const run *r, const char *name) {
  pabd_engine_stats stats;
  r->c->engine->stats(r->world, &stats);
  for (int32_t k = 0; k < stats.counter_count; ++k)
    if (strcmp(stats.counters[k].name, name) == 0) return stats.counters[k].value;
  return NAN;
}

static int lacks(const conformance *c, uint64_t capability) {
  return (c->info.capabilities & capability) != capability;
}

/* ---- scene helpers ---- */

static int32_t add_body(pabd_scene *scene, pabd_motion motion, double mass, pabd_dvec3 inertia, pabd_dvec3 at) {
  pabd_body body = pabd_body_default();
  body.motion = motion;
  body.mass = mass;
  body.inertia = inertia;
  body.pose.p = at;
  return pabd_scene_add_body(scene, &body);
}

__attribute__((unused)) static int32_t add_box(pabd_scene *scene, pabd_motion motion, double mass, pabd_dvec3 half,
                                               pabd_dvec3 at) {
  pabd_shape shape = pabd_shape_default(PABD_BOX);
  shape.half = half;
  int32_t body = add_body(scene, motion, mass, pabd_shape_inertia(&shape, mass > 0 ? mass : 1), at);
  shape.body = body;
  pabd_scene_add_shape(scene, &shape);
  return body;
}

__attribute__((unused)) static int32_t add_sphere(pabd_scene *scene, double mass, double radius, pabd_dvec3 at) {
  pabd_shape shape = pabd_shape_default(PABD_SPHERE);
  shape.radius = radius;
  int32_t body = add_body(scene, PABD_DYNAMIC, mass, pabd_shape_inertia(&shape, mass), at);
  shape.body = body;
  pabd_scene_add_shape(scene, &shape);
  return body;
}

__attribute__((unused)) static int32_t add_ground(pabd_scene *scene) {
  return add_box(scene, PABD_STATIC, 0, (pabd_dvec3){100, 100, 1}, (pabd_dvec3){0, 0, -1});
}

__attribute__((unused)) static int32_t add_joint(pabd_scene *scene, pabd_joint_kind kind, int32_t a, int32_t b,
                                                 pabd_dpose at) {
  pabd_joint joint = pabd_joint_default(kind);
  joint.body_a = a;
  joint.body_b = b;
  pabd_joint_place(scene, &joint, at);
  return pabd_scene_add_joint(scene, &joint);
}

static pabd_dquat turn(double x, double y, double z) {
  return pabd_dquat_from_rotation_vector((pabd_dvec3){x, y, z});
}

static double norm3(const double *v) {
  return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* Angle of the rotation between a quaternion row and q. */
static double angle_between(const double *row, pabd_dquat q) {
  pabd_dquat d = pabd_dquat_mul(pabd_dquat_conj(q), (pabd_dquat){row[0], row[1], row[2], row[3]});
  double s = sqrt(d.x * d.x + d.y * d.y + d.z * d.z);
  return 2 * atan2(s, fabs(d.w));
}

/* ---- the checks ---- */

/* Free fall against the discrete solution of semi-implicit Euler, with a start velocity: z = z0 + v t - g h^2 n(n+1)/2.
 */
__attribute__((unused)) static void check_free_fall(const conformance *c) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t b = add_body(&scene, PABD_DYNAMIC, 2, (pabd_dvec3){0.1, 0.2, 0.25}, (pabd_dvec3){1, 2, 3});
  scene.bodies[b].linear = (pabd_dvec3){1.5, -0.5, 4};
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 60);
  if (run_good(&r, "free fall")) {
    CHECK_NEAR(r.pose[b][0], 1 + 1.5, 60 * c->round_off * 3);
    CHECK_NEAR(r.pose[b][1], 2 - 0.5, 60 * c->round_off * 3);
    double n = 60.0 * (c->internal_substeps > 0 ? c->internal_substeps : 1);
    CHECK_NEAR(r.pose[b][2], 3 + 4 - GRAVITY * (n + 1) / (2 * n), 60 * c->round_off * 8);
    CHECK_NEAR(r.velocity[b][2], 4 - GRAVITY, 60 * c->round_off * 8);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Frames and quaternion order: an isotropic body turns about a tilted world axis from a tilted start. A body-frame
 * angular velocity or a quaternion in another order fails at once. */
__attribute__((unused)) static void check_spin(const conformance *c) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t b = add_body(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.4, 0.4, 0.4}, (pabd_dvec3){0, 0, 0});
  pabd_dvec3 w = {0.7, -1.1, 1.9};
  scene.bodies[b].pose.q = turn(0.4, 0.9, -0.3);
  scene.bodies[b].angular = w;
  run r;
  run_start(&r, c, &scene, NULL, 0);
  if (run_good(&r, "spin")) {
    CHECK_NEAR(angle_between(&r.pose[b][3], scene.bodies[b].pose.q), 0, 1e-3);
    run_frames(&r, 60);
    pabd_dquat end = pabd_dquat_mul(turn(w.x, w.y, w.z), scene.bodies[b].pose.q);
    CHECK_NEAR(angle_between(&r.pose[b][3], end), 0, 2e-3);
    CHECK_NEAR(r.velocity[b][3], w.x, 1e-4);
    CHECK_NEAR(r.velocity[b][4], w.y, 1e-4);
    CHECK_NEAR(r.velocity[b][5], w.z, 1e-4);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Mass and inertia: one frame of a force and a torque on a tilted anisotropic body; w = R I^-1 R^T t h, v = f h / m. */
__attribute__((unused)) static void check_inertia(const conformance *c) {
  if (lacks(c, PABD_CAN_LOADS)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  pabd_dvec3 inertia = {0.5, 0.8, 1.2}, torque = {3, -2, 5};
  int32_t b = add_body(&scene, PABD_DYNAMIC, 7, inertia, (pabd_dvec3){0, 0, 0});
  pabd_dquat q = turn(0.5, -0.2, 0.8);
  scene.bodies[b].pose.q = q;
  pabd_load load = {b, {1, 2, -4}, torque, 0, 1};
  pabd_scene_add_load(&scene, &load);
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 1);
  if (run_good(&r, "inertia")) {
    pabd_dvec3 local = pabd_dquat_rotate(pabd_dquat_conj(q), torque);
    pabd_dvec3 w = pabd_dquat_rotate(q, (pabd_dvec3){local.x / inertia.x, local.y / inertia.y, local.z / inertia.z});
    CHECK_NEAR(r.velocity[b][0], 1 * FRAME / 7, 10 * c->round_off);
    CHECK_NEAR(r.velocity[b][1], 2 * FRAME / 7, 10 * c->round_off);
    CHECK_NEAR(r.velocity[b][2], -4 * FRAME / 7, 10 * c->round_off);
    /* A gyroscopic term evaluated at the end of the step is of second order in the small rate gained. */
    CHECK_NEAR(r.velocity[b][3], w.x * FRAME, 2e-4);
    CHECK_NEAR(r.velocity[b][4], w.y * FRAME, 2e-4);
    CHECK_NEAR(r.velocity[b][5], w.z * FRAME, 2e-4);
  }
  /* The load is over after one second. */
  run_frames(&r, 99);
  double before = r.velocity[b][0];
  CHECK_NEAR(before, 1.0 / 7, 1e-4);
  run_end(&r);
  pabd_scene_free(&scene);
}

static double slide_once(const conformance *c, double dx, double dy) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  int32_t b = add_box(&scene, PABD_DYNAMIC, 10, (pabd_dvec3){0.5, 0.5, 0.25}, (pabd_dvec3){0, 0, 0.25});
  scene.bodies[b].linear = (pabd_dvec3){5 * dx, 5 * dy, 0};
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 180);
  run_good(&r, "slide");
  double distance = hypot(r.pose[b][0], r.pose[b][1]);
  run_end(&r);
  pabd_scene_free(&scene);
  return distance;
}

/* Sliding distance of semi-implicit Euler with a frame of 1/60 s: 2.50685 m, in both directions. */
__attribute__((unused)) static void check_slide(const conformance *c) {
  double expected = c->slide_distance > 0 ? c->slide_distance : 2.50685;
  double axis = slide_once(c, 1, 0), diagonal = slide_once(c, sqrt(0.5), sqrt(0.5));
  printf("  %s: slides %.4f m along x, %.4f m along the diagonal (reference %.5f)\n", c->info.name, axis, diagonal,
         expected);
  CHECK_NEAR(axis, expected, expected * c->slide_axis);
  if (c->slide_diagonal > 0) CHECK_NEAR(diagonal, expected, expected * c->slide_diagonal);
  /* Who declares a cone must have one. */
  if (!lacks(c, PABD_CAN_FRICTION_CONE)) CHECK_NEAR(diagonal / axis, 1, 0.01);
  if (lacks(c, PABD_CAN_FRICTION_CONE) && !(c->slide_diagonal > 0)) CHECK(fabs(diagonal / axis - 1) > 0.01);
}

/* Plastic central impact: momentum kept, common speed afterwards. */
__attribute__((unused)) static void check_impact(const conformance *c) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t a = add_sphere(&scene, 1, 0.5, (pabd_dvec3){-1, 0, 0});
  int32_t b = add_sphere(&scene, 3, 0.5, (pabd_dvec3){1, 0, 0});
  scene.bodies[a].linear.x = 4;
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 60);
  if (run_good(&r, "impact")) {
    CHECK_NEAR(r.velocity[a][0] + 3 * r.velocity[b][0], 4, 4 * fmax(c->round_off * 100, 1e-9));
    CHECK_NEAR(r.velocity[a][0], 1, c->impact);
    CHECK_NEAR(r.velocity[b][0], 1, c->impact);
    CHECK_NEAR(norm3(&r.velocity[a][3]), 0, 1e-4);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Restitution 0.5 of a ball dropped from 1 m; the coefficient from the speeds before and after. */
__attribute__((unused)) static void check_restitution(const conformance *c) {
  if (lacks(c, PABD_CAN_RESTITUTION)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  pabd_scene_set_materials(&scene, 1, 0.5, 0.5);
  add_ground(&scene);
  int32_t b = add_sphere(&scene, 1, 0.1, (pabd_dvec3){0, 0, 1.1});
  run r;
  run_start(&r, c, &scene, NULL, 0);
  double down = 0, up = 0;
  for (int k = 0; k < 60 && r.status == PABD_OK; ++k) {
    run_frames(&r, 1);
    if (up == 0) down = fmin(down, r.velocity[b][2]);
    up = fmax(up, r.velocity[b][2]);
  }
  if (run_good(&r, "restitution")) CHECK_NEAR(up / -down, 0.5, c->restitution);
  run_end(&r);
  pabd_scene_free(&scene);
}

/* A box on the ground neither sinks nor moves; reported contact forces carry its weight. */
__attribute__((unused)) static void check_rest(const conformance *c) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t ground = add_ground(&scene);
  int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.5, 0.5}, (pabd_dvec3){3, -2, 0.501});
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 180);
  if (run_good(&r, "rest")) {
    CHECK_NEAR(r.pose[b][2], 0.5, c->rest_depth);
    CHECK_NEAR(r.pose[b][0], 3, 1e-2);
    CHECK_NEAR(norm3(&r.velocity[b][0]), 0, 1e-2);
    if (!lacks(c, PABD_CAN_REPORT_CONTACTS) && c->contact_force > 0) {
      pabd_contact contacts[32];
      int32_t count = c->engine->contacts(r.world, contacts, 32);
      double force = 0;
      CHECK(count >= 3 && count <= 32);
      for (int32_t k = 0; k < count && k < 32; ++k) {
        const pabd_contact *p = &contacts[k];
        CHECK((p->body_a == ground && p->body_b == b) || (p->body_a == b && p->body_b == ground));
        CHECK_NEAR(p->normal.z, p->body_a == b ? 1 : -1, 1e-3);
        CHECK_NEAR(p->point.z, 0, 0.05);
        CHECK_NEAR(p->friction, 0.5, 1e-6);
        force += p->body_a == b ? p->force.z : -p->force.z;
      }
      CHECK_NEAR(force, GRAVITY, GRAVITY * c->contact_force);
    }
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Ball-joint pendulum from horizontal: the anchor stays, the low point is where it must be, no energy comes from
 * nothing. */
__attribute__((unused)) static void check_pendulum(const conformance *c) {
  if (lacks(c, PABD_CAN_SPHERICAL)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.1, 0.1}, (pabd_dvec3){0.5, 0, 2});
  add_joint(&scene, PABD_SPHERICAL, PABD_WORLD, b, (pabd_dpose){{0, 0, 2}, {1, 0, 0, 0}});
  double inertia = scene.bodies[b].inertia.y + 0.25, worst = 0, low_time = 0, low = 3, gain = 0;
  run r;
  run_start(&r, c, &scene, NULL, 0);
  for (int k = 1; k <= 60 && r.status == PABD_OK; ++k) {
    run_frames(&r, 1);
    pabd_dquat q = {r.pose[b][3], r.pose[b][4], r.pose[b][5], r.pose[b][6]};
    pabd_dvec3 end = pabd_dquat_rotate(q, (pabd_dvec3){-0.5, 0, 0});
    double gap[3] = {r.pose[b][0] + end.x, r.pose[b][1] + end.y, r.pose[b][2] + end.z - 2};
    worst = fmax(worst, norm3(gap));
    if (r.pose[b][2] < low) low = r.pose[b][2], low_time = k * FRAME;
    double speed = norm3(&r.velocity[b][0]), rate = norm3(&r.velocity[b][3]);
    gain =
        fmax(gain, 0.5 * speed * speed + 0.5 * scene.bodies[b].inertia.y * rate * rate + GRAVITY * (r.pose[b][2] - 2));
  }
  if (run_good(&r, "pendulum")) {
    /* Quarter period of a physical pendulum from 90 degrees: 1.18034 times the small-angle one. */
    double quarter = M_PI / 2 * sqrt(inertia / (GRAVITY * 0.5)) * 1.18034;
    CHECK_NEAR(worst, 0, c->joint_gap);
    CHECK_NEAR(low, 1.5, c->joint_gap + 0.02);
    CHECK_NEAR(low_time, quarter, 0.04 * quarter + FRAME);
    CHECK_NEAR(gain / (GRAVITY * 0.5), 0, c->energy_gain > 0 ? c->energy_gain : 0.05);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* One joint of `kind` between the world and a body that hangs to the side, its frame's z along `axis`; after a second
 * the joint's own definition must hold to `tolerance` and the free coordinate must have moved where it can. */
static void check_joint_kind(const conformance *c, pabd_joint_kind kind) {
  static const uint64_t bit[] = {PABD_CAN_SPHERICAL, PABD_CAN_HINGE,  PABD_CAN_SLIDER,   PABD_CAN_FIXED,
                                 PABD_CAN_DISTANCE,  PABD_CAN_SPRING, PABD_CAN_UNIVERSAL};
  if (lacks(c, bit[kind])) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t base = add_box(&scene, PABD_STATIC, 0, (pabd_dvec3){0.1, 0.1, 0.1}, (pabd_dvec3){0, 0, 5});
  scene.bodies[base].pose.q = turn(0.3, -0.2, 0.5);
  int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.3, 0.1, 0.2}, (pabd_dvec3){0.4, 0.1, 5});
  scene.bodies[b].pose.q = turn(-0.1, 0.2, 0.7);
  /* Hinge about y (swings), slider along a slope, the universal's two axes x (a) and y (b) horizontal at 45 degrees. */
  pabd_dquat frame = kind == PABD_HINGE    ? turn(-M_PI / 2, 0, 0)
                     : kind == PABD_SLIDER ? turn(0, 2.2, 0)
                                           : turn(0, 0, 0.785);
  int32_t j = add_joint(&scene, kind, base, b, (pabd_dpose){{0, 0, 5}, frame});
  if (kind == PABD_DISTANCE) {
    scene.joints[j].frame_b.p = (pabd_dvec3){0, 0, 0};
    scene.joints[j].rest = hypot(0.4, 0.1);
  }
  run r;
  run_start(&r, c, &scene, NULL, 0);
  if (kind == PABD_FIXED && r.status == PABD_ERR_UNSUPPORTED) {
    /* An engine may refuse bodies whose axes are not parallel, and say so. */
    CHECK_CONTAINS(r.error.text, "parallel");
    scene.bodies[b].pose.q = scene.bodies[base].pose.q;
    pabd_joint_place(&scene, &scene.joints[j], (pabd_dpose){{0, 0, 5}, frame});
    run_start(&r, c, &scene, NULL, 0);
  }
  run_frames(&r, 45);
  if (run_good(&r, "joint")) {
    const pabd_joint *joint = &scene.joints[j];
    pabd_dpose a = pabd_dpose_mul(scene.bodies[base].pose, joint->frame_a);
    pabd_dpose at = {{r.pose[b][0], r.pose[b][1], r.pose[b][2]},
                     {r.pose[b][3], r.pose[b][4], r.pose[b][5], r.pose[b][6]}};
    pabd_dpose e = pabd_dpose_mul(pabd_dpose_inverse(a), pabd_dpose_mul(at, joint->frame_b)); /* b's frame in a's */
    pabd_dvec3 bz = pabd_dquat_rotate(e.q, (pabd_dvec3){0, 0, 1}), by = pabd_dquat_rotate(e.q, (pabd_dvec3){0, 1, 0});
    double side = sqrt(e.p.x * e.p.x + e.p.y * e.p.y), gap = sqrt(side * side + e.p.z * e.p.z);
    double angle = 2 * atan2(sqrt(e.q.x * e.q.x + e.q.y * e.q.y + e.q.z * e.q.z), fabs(e.q.w));
    double tilt = atan2(hypot(bz.x, bz.y), bz.z);
    double moved = angle_between(&r.pose[b][3], scene.bodies[b].pose.q);
    double tolerance = c->joint_gap, angular = 4 * c->joint_gap;
    if (kind == PABD_DISTANCE) {
      CHECK_NEAR(gap, joint->rest, tolerance);
      CHECK(hypot(r.pose[b][0] - 0.4, r.pose[b][1] - 0.1) > 0.3);
    } else if (kind == PABD_SLIDER) {
      CHECK_NEAR(side, 0, tolerance);
      CHECK_NEAR(angle, 0, angular);
      CHECK(fabs(e.p.z) > 0.3); /* it slid down */
    } else {
      CHECK_NEAR(gap, 0, tolerance);
      if (kind == PABD_FIXED) CHECK_NEAR(angle, 0, angular);
      if (kind == PABD_HINGE) CHECK_NEAR(tilt, 0, angular);
      if (kind == PABD_UNIVERSAL) CHECK_NEAR(by.x, 0, angular);
      if (kind != PABD_FIXED) CHECK(moved > 0.3);
    }
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

__attribute__((unused)) static void check_joints(const conformance *c) {
  for (int kind = PABD_SPHERICAL; kind < PABD_JOINT_KIND_COUNT; ++kind)
    if (kind != PABD_SPRING) check_joint_kind(c, (pabd_joint_kind)kind);
}

/* Spring and damper against the closed form of an undamped oscillator's frequency, and the sign of the force. */
__attribute__((unused)) static void check_spring(const conformance *c) {
  if (lacks(c, PABD_CAN_SPRING)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t b = add_box(&scene, PABD_DYNAMIC, 2, (pabd_dvec3){0.1, 0.1, 0.1}, (pabd_dvec3){1.3, 0, 0});
  pabd_joint joint = pabd_joint_default(PABD_SPRING);
  joint.body_a = PABD_WORLD;
  joint.body_b = b;
  joint.rest = 1;
  joint.stiffness = 2 * 4 * M_PI * M_PI; /* 1 Hz */
  pabd_scene_add_joint(&scene, &joint);
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 30);
  if (run_good(&r, "spring")) {
    double tolerance = c->spring > 0 ? c->spring : 0.02;
    CHECK_NEAR(r.pose[b][0], 0.7, tolerance);
    run_frames(&r, 30);
    CHECK_NEAR(r.pose[b][0], 1.3, tolerance * 1.5);
    CHECK_NEAR(r.pose[b][1], 0, 1e-4);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Motors: sign, speed, and the work they report against the energy they put in. */
static void check_motor(const conformance *c, pabd_joint_kind kind, pabd_motor_kind motor) {
  if (lacks(c, PABD_CAN_MOTORS | (kind == PABD_HINGE ? PABD_CAN_HINGE : PABD_CAN_SLIDER))) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t b = add_box(&scene, PABD_DYNAMIC, 2, (pabd_dvec3){0.2, 0.1, 0.3}, (pabd_dvec3){0, 0, 0});
  /* The axis is a principal one, else the reaction of the bearing would mix the gyroscopic law into the work. */
  scene.bodies[b].pose.q = turn(0.3, 0.2, 0);
  int32_t j = add_joint(&scene, kind, PABD_WORLD, b, (pabd_dpose){{0, 0, 0}, turn(0.3, 0.2, 0)});
  pabd_joint *joint = &scene.joints[j];
  joint->motor = motor;
  joint->motor_target = motor == PABD_MOTOR_RATE ? 1.5 : 0.4;
  joint->motor_max = motor == PABD_MOTOR_RATE ? 0.5 : 50;
  pabd_dvec3 axis = pabd_dquat_rotate(joint->frame_a.q, (pabd_dvec3){0, 0, 1});
  run r;
  run_start(&r, c, &scene, NULL, 0);
  if (!run_good(&r, "motor")) {
    pabd_scene_free(&scene);
    return;
  }
  int at = kind == PABD_HINGE ? 3 : 0;
  if (motor == PABD_MOTOR_RATE) {
    /* The largest force acts at first: one frame of it gives a known speed. */
    run_frames(&r, 1);
    const double *v = &r.velocity[b][at];
    double inertia = kind == PABD_HINGE ? scene.bodies[b].inertia.z : 2, first = 0.5 * FRAME / inertia;
    CHECK_NEAR(v[0] * axis.x + v[1] * axis.y + v[2] * axis.z, first, first * c->motor);
    run_frames(&r, 599);
    CHECK_NEAR(v[0] * axis.x + v[1] * axis.y + v[2] * axis.z, 1.5, 1.5 * c->motor);
    double energy = 0.5 * inertia * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    CHECK_NEAR(run_counter(&r, "driver_work"), energy, energy * c->motor);
  } else {
    run_frames(&r, 300);
    double angle = angle_between(&r.pose[b][3], scene.bodies[b].pose.q);
    double way = r.pose[b][0] * axis.x + r.pose[b][1] * axis.y + r.pose[b][2] * axis.z;
    CHECK_NEAR(kind == PABD_HINGE ? angle : way, 0.4, 0.4 * fmax(c->motor, 0.01));
    if (kind == PABD_HINGE)
      CHECK_NEAR(angle_between(&r.pose[b][3],
                               pabd_dquat_mul(turn(0.4 * axis.x, 0.4 * axis.y, 0.4 * axis.z), scene.bodies[b].pose.q)),
                 0, fmax(c->motor, 0.01));
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

__attribute__((unused)) static void check_motors(const conformance *c) {
  check_motor(c, PABD_HINGE, PABD_MOTOR_RATE);
  check_motor(c, PABD_HINGE, PABD_MOTOR_POSITION);
  check_motor(c, PABD_SLIDER, PABD_MOTOR_RATE);
  check_motor(c, PABD_SLIDER, PABD_MOTOR_POSITION);
}

/* Limits with the right sign: a hinge and a slider driven by gravity stop at their upper and lower bound. */
__attribute__((unused)) static void check_limits(const conformance *c) {
  if (lacks(c, PABD_CAN_LIMITS)) return;
  for (int kind = PABD_HINGE; kind <= PABD_SLIDER; ++kind) {
    if (lacks(c, kind == PABD_HINGE ? PABD_CAN_HINGE : PABD_CAN_SLIDER)) continue;
    for (int side = 0; side < 2; ++side) {
      pabd_scene scene;
      pabd_scene_init(&scene);
      int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.3, 0.1, 0.1}, (pabd_dvec3){0.4, 0, 0});
      /* Hinge about +y turns z-down into a positive angle about y for a body on +x; about -y into a negative one. */
      pabd_dquat frame = kind == PABD_HINGE ? turn(side ? M_PI / 2 : -M_PI / 2, 0, 0) : turn(0, side ? 0 : M_PI, 0);
      int32_t j = add_joint(&scene, (pabd_joint_kind)kind, PABD_WORLD, b, (pabd_dpose){{0, 0, 0}, frame});
      scene.joints[j].has_limits = 1;
      scene.joints[j].lower = -0.3;
      scene.joints[j].upper = 0.2;
      run r;
      run_start(&r, c, &scene, NULL, 0);
      run_frames(&r, 240);
      if (run_good(&r, "limits")) {
        double bound = side ? -0.3 : 0.2;
        double value = kind == PABD_HINGE ? (side ? -1 : 1) * angle_between(&r.pose[b][3], (pabd_dquat){1, 0, 0, 0})
                                          : r.pose[b][2] * (side ? 1 : -1);
        CHECK_MSG(fabs(value - bound) < 0.03, "%s limit: stops at %.4f, bound %.4f",
                  kind == PABD_HINGE ? "hinge" : "slider", value, bound);
      }
      run_end(&r);
      pabd_scene_free(&scene);
    }
  }
}

/* A distance joint with bounds is a rope: slack above, taut below. */
__attribute__((unused)) static void check_rope(const conformance *c) {
  if (lacks(c, PABD_CAN_DISTANCE)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t b = add_sphere(&scene, 1, 0.1, (pabd_dvec3){0, 0, -0.5});
  pabd_joint joint = pabd_joint_default(PABD_DISTANCE);
  joint.body_a = PABD_WORLD;
  joint.body_b = b;
  joint.has_limits = 1;
  joint.lower = 0;
  joint.upper = 1;
  pabd_scene_add_joint(&scene, &joint);
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 15); /* still falling freely: 0.5 g h^2 n (n + 1) */
  if (run_good(&r, "rope")) {
    double n = 15.0 * (c->internal_substeps > 0 ? c->internal_substeps : 1);
    CHECK_NEAR(r.pose[b][2], -0.5 - GRAVITY * (n + 1) / (2 * n) / 16, 1e-3);
    run_frames(&r, 225);
    CHECK_NEAR(r.pose[b][2], -1, c->joint_gap);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* A kinematic plate moves as told and drags a box along by friction; its work is what the box gained plus what slipped.
 */
__attribute__((unused)) static void check_kinematic(const conformance *c) {
  if (lacks(c, PABD_CAN_KINEMATIC)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t plate = add_box(&scene, PABD_KINEMATIC, 0, (pabd_dvec3){5, 5, 0.5}, (pabd_dvec3){0, 0, -0.5});
  scene.bodies[plate].linear = (pabd_dvec3){1, 0, 0};
  int32_t b = add_box(&scene, PABD_DYNAMIC, 2, (pabd_dvec3){0.5, 0.5, 0.25}, (pabd_dvec3){0, 0, 0.25});
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 60);
  if (run_good(&r, "kinematic")) {
    CHECK_NEAR(r.pose[plate][0], 1, 1e-3);
    CHECK_NEAR(r.velocity[plate][0], 1, 1e-3);
    CHECK_NEAR(r.velocity[b][0], 1, 0.02);
    /* Friction mu m g pushes for t = 1 / (mu g) at the plate's speed 1: work m v^2, half of it heat. */
    CHECK_NEAR(run_counter(&r, "driver_work"), 2.0, 0.25);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Friction belongs to the pair: two equal boxes of different material slide to different distances. */
__attribute__((unused)) static void check_pair_materials(const conformance *c) {
  if (lacks(c, PABD_CAN_PAIR_MATERIALS)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  pabd_scene_set_materials(&scene, 3, 0.5, 0);
  scene.friction[0 * 3 + 1] = scene.friction[1 * 3 + 0] = 0.25;
  scene.friction[0 * 3 + 2] = scene.friction[2 * 3 + 0] = 0.8;
  add_ground(&scene);
  int32_t a = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.5, 0.25}, (pabd_dvec3){0, -2, 0.25});
  int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.5, 0.25}, (pabd_dvec3){0, 2, 0.25});
  scene.shapes[1].material = 1;
  scene.shapes[2].material = 2;
  scene.bodies[a].linear.x = scene.bodies[b].linear.x = 3;
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 120);
  if (run_good(&r, "pair materials")) {
    CHECK_NEAR(r.pose[a][0], 9 / (2 * 0.25 * GRAVITY), 0.06);
    CHECK_NEAR(r.pose[b][0], 9 / (2 * 0.8 * GRAVITY), 0.06);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Filters: boxes of one group, joined bodies, listed pairs and other worlds pass through each other; the rest does not.
 */
__attribute__((unused)) static void check_filters(const conformance *c) {
  for (int rule = 0; rule < 4; ++rule) {
    if (rule == 3 && lacks(c, PABD_CAN_WORLDS)) continue;
    pabd_scene scene;
    pabd_scene_init(&scene);
    scene.gravity = (pabd_dvec3){0, 0, 0};
    int32_t a = add_sphere(&scene, 1, 0.5, (pabd_dvec3){-1, 0, 0});
    int32_t b = add_sphere(&scene, 1, 0.5, (pabd_dvec3){1, 0, 0});
    scene.bodies[a].linear.x = 3;
    if (rule == 1) scene.bodies[a].group = scene.bodies[b].group = 4;
    if (rule == 2) pabd_scene_ignore_pair(&scene, b, a);
    if (rule == 3) scene.bodies[b].world = 1;
    run r;
    run_start(&r, c, &scene, NULL, 0);
    run_frames(&r, 60);
    if (run_good(&r, "filters"))
      CHECK_MSG(rule == 0 ? r.velocity[b][0] > 1 : r.velocity[b][0] == 0, "filter rule %d: other body moves at %g m/s",
                rule, r.velocity[b][0]);
    run_end(&r);
    pabd_scene_free(&scene);
  }
}

/* Every shape the engine claims rests on the ground at its own height (also of a plane, where it can). */
__attribute__((unused)) static void check_shapes(const conformance *c) {
  static const uint64_t bit[] = {PABD_CAN_SPHERE, PABD_CAN_CAPSULE,  PABD_CAN_BOX,
                                 PABD_CAN_PLANE,  PABD_CAN_CYLINDER, PABD_CAN_HULL};
  for (int plane = 0; plane < 2; ++plane) {
    if (plane && lacks(c, PABD_CAN_PLANE)) continue;
    for (int kind = PABD_SPHERE; kind <= PABD_HULL + 1; ++kind) {
      int compound = kind > PABD_HULL; /* two spheres side by side, offset from the body's frame */
      if (kind == PABD_PLANE || lacks(c, compound ? PABD_CAN_COMPOUND : bit[kind])) continue;
      pabd_scene scene;
      pabd_scene_init(&scene);
      if (plane) {
        int32_t ground = add_body(&scene, PABD_STATIC, 0, (pabd_dvec3){1, 1, 1}, (pabd_dvec3){0, 0, -1});
        pabd_shape half_space = pabd_shape_default(PABD_PLANE);
        half_space.body = ground;
        half_space.local.p.z = 1;
        pabd_scene_add_shape(&scene, &half_space);
      } else {
        add_ground(&scene);
      }
      pabd_shape shape = pabd_shape_default(compound ? PABD_SPHERE : (pabd_shape_kind)kind);
      shape.radius = 0.3;
      shape.half_length = 0.4;
      shape.half = (pabd_dvec3){0.4, 0.3, 0.2};
      double height = kind == PABD_CAPSULE                    ? 0.7
                      : kind == PABD_CYLINDER                 ? 0.4
                      : kind == PABD_BOX || kind == PABD_HULL ? 0.2
                                                              : 0.3;
      if (kind == PABD_HULL) {
        pabd_dvec3 corners[8];
        for (int k = 0; k < 8; ++k)
          corners[k] = (pabd_dvec3){k & 1 ? 0.4 : -0.4, k & 2 ? 0.3 : -0.3, k & 4 ? 0.2 : -0.2};
        shape.first_vertex = pabd_scene_add_vertices(&scene, corners, 8);
        shape.vertex_count = 8;
      }
      int32_t b = add_body(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.1, 0.1, 0.1}, (pabd_dvec3){0, 0, height + 0.05});
      shape.body = b;
      if (compound) shape.local.p.x = 0.5;
      pabd_scene_add_shape(&scene, &shape);
      if (compound) {
        shape.local.p.x = -0.5;
        pabd_scene_add_shape(&scene, &shape);
      }
      run r;
      run_start(&r, c, &scene, NULL, 0);
      run_frames(&r, 90); /* a capsule on its end is unstable but falls over slowly */
      if (run_good(&r, "shapes"))
        CHECK_MSG(fabs(r.pose[b][2] - height) < c->rest_depth + 1e-3, "shape %d on %s: height %.5f, should be %.3f",
                  kind, plane ? "plane" : "box", r.pose[b][2], height);
      run_end(&r);
      pabd_scene_free(&scene);
    }
  }
}

/* Two runs of a small heap give the same bits; and nothing sleeps, for the heap's boxes keep contact forces. */
__attribute__((unused)) static void check_determinism(const conformance *c) {
  static run first, second;
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  for (int k = 0; k < 27; ++k) {
    const int column = k % 3, row = k / 3 % 3, layer = k / 9;
    add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.25, 0.25, 0.25},
            (pabd_dvec3){column * 0.45, row * 0.47, 0.3 + layer * 0.6});
  }
  run_start(&first, c, &scene, NULL, 0);
  run_start(&second, c, &scene, NULL, 0);
  run_frames(&first, 60);
  run_frames(&second, 60);
  if (run_good(&first, "determinism")) {
    CHECK(memcmp(first.pose, second.pose, sizeof first.pose) == 0);
    CHECK(memcmp(first.velocity, second.velocity, sizeof first.velocity) == 0);
    CHECK(norm3(&first.velocity[5][0]) != 0);
  }
  run_end(&first);
  run_end(&second);
  pabd_scene_free(&scene);
}

/* A sleeping body would not notice that it is pushed gently after ten seconds. */
__attribute__((unused)) static void check_no_sleep(const conformance *c) {
  if (lacks(c, PABD_CAN_LOADS)) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  int32_t b = add_sphere(&scene, 1, 0.2, (pabd_dvec3){0, 0, 0});
  scene.bodies[b].linear.x = 1e-3;
  scene.bodies[b].angular.y = 1e-3;
  pabd_load load = {b, {1e-3, 0, 0}, {0, 0, 0}, 8, 9};
  pabd_scene_add_load(&scene, &load);
  run r;
  run_start(&r, c, &scene, NULL, 0);
  run_frames(&r, 480);
  if (run_good(&r, "no sleep")) {
    CHECK_NEAR(r.velocity[b][0], 1e-3, 1e-7); /* no damping either */
    CHECK_NEAR(r.velocity[b][4], 1e-3, 1e-6);
    CHECK_NEAR(r.pose[b][0], 8e-3, 1e-5);
    run_frames(&r, 60);
    CHECK_NEAR(r.velocity[b][0], 2e-3, 1e-6);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Settings: unknown keys, bad types and ranges are bad input with a line that names them; values in force are told. */
__attribute__((unused)) static void check_settings(const conformance *c) {
  static const pabd_setting wrong[][1] = {{{"no_such_setting", "1"}}, {{"substeps", "0.5"}}, {{"substeps", "many"}}};
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_sphere(&scene, 1, 0.1, (pabd_dvec3){0, 0, 0});
  for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; ++k) {
    run r;
    run_start(&r, c, &scene, wrong[k], 1);
    CHECK(r.status == PABD_ERR_INPUT);
    CHECK(r.world == NULL);
    CHECK_CONTAINS(r.error.text, wrong[k]->key);
  }
  int32_t count = 0;
  const pabd_setting_info *infos = c->engine->settings(&count);
  CHECK(count > 0);
  pabd_setting given = {"substeps", "3"};
  run r;
  run_start(&r, c, &scene, &given, 1);
  for (int32_t k = 0; k < count && r.world; ++k) {
    char text[64] = "";
    c->engine->setting_value(r.world, k, text, sizeof text);
    if (strcmp(infos[k].key, "substeps") == 0) CHECK_STR(text, "3");
    CHECK_MSG(text[0] != '\0' || strcmp(infos[k].type, "text") == 0, "setting %s has no value", infos[k].key);
    CHECK(infos[k].meaning[0] && infos[k].source[0] && infos[k].unit[0]);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* First time the 1:10 stack's top has sunk 0.5 m, or the duration. */
__attribute__((unused)) static double stack_falls(const conformance *c, double ratio, double gap,
                                                  const pabd_setting *more, int32_t more_count) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  int32_t top = 0;
  for (int k = 0; k < 6; ++k)
    top = add_box(&scene, PABD_DYNAMIC, pow(ratio, k), (pabd_dvec3){0.5, 0.5, 0.5},
                  (pabd_dvec3){0, 0, 0.5 + k + gap * (k + 1)});
  run r;
  run_start(&r, c, &scene, more, more_count);
  double start = r.pose[top][2], when = 10;
  for (int k = 1; k <= 600 && r.status == PABD_OK; ++k) {
    run_frames(&r, 1);
    if (r.pose[top][2] < start - 0.5) {
      when = k * FRAME;
      break;
    }
  }
  run_end(&r);
  pabd_scene_free(&scene);
  return when;
}

#endif
