/* What the tests on the stand-in and gpu-check on a device share: which fields must have the same bits, a scene with
 * everything in it, and the settings under which it runs. */
#ifndef PABD_TESTS_BOTH_H
#define PABD_TESTS_BOTH_H

#include <stdint.h>
#include <string.h>

#include "state.h"

/* Fields that only one side fills, or whose rows beyond the live ones differ. */
static int is_private(const char *name) {
  static const char *const names[] = {"island",  "pair_class", "node_order", "sort_key", "pair_scratch",
                                      "big_key", "hit_count",  "morton",     "pair_key", NULL};
  for (int k = 0; names[k]; ++k)
    if (strcmp(names[k], name) == 0) return 1;
  return 0;
}

/* First field that differs between two simulations, or NULL; its row in *row, the number of such fields in *count. */
static const char *first_difference(const pabd_sim *a, const pabd_sim *b, size_t *row, int *count) {
  const char *first = NULL;
  *count = 0, *row = 0;
#define FIELD(type, name, rows, planes, unit, writer)                                                       \
  if (!is_private(#name) &&                                                                                 \
      memcmp(a->view.name, b->view.name, sizeof(type) * (size_t)a->capacity_##rows * (planes)) != 0) {      \
    const unsigned char *x = (const unsigned char *)a->view.name, *y = (const unsigned char *)b->view.name; \
    size_t at = 0;                                                                                          \
    while (x[at] == y[at]) ++at;                                                                            \
    if (!first) first = #name, *row = at / sizeof(type);                                                    \
    *count += 1;                                                                                            \
  }
#include "fields.def"
#undef FIELD
  int32_t pairs = a->stats.pair_count;
  if (pairs != b->stats.pair_count || a->stats.contact_count != b->stats.contact_count ||
      memcmp(a->view.pair_key, b->view.pair_key, sizeof *a->view.pair_key * (size_t)pairs) != 0) {
    if (!first) first = "pair_key";
    *count += 1;
  }
  return first;
}

static uint32_t random_state = 1;
static double uniform(double low, double high) {
  random_state = random_state * 1664525u + 1013904223u;
  return low + (high - low) * (double)(random_state >> 8) / 16777216.0;
}

/* Boxes, spheres and capsules falling into each other on two slabs and a plane, a kinematic body, a chain with every
 * kind of bond, a load that comes and goes; `worlds` copies of it side by side in one scene. */
static void add_busy(pabd_scene *scene, int32_t bodies, int32_t worlds) {
  pabd_scene_init(scene);
  for (int32_t w = 0; w < worlds; ++w) {
    int32_t first = scene->body_count;
    random_state = 5; /* the same in each world */
    for (int k = 0; k < 3; ++k) {
      pabd_body ground = pabd_body_default();
      ground.motion = PABD_STATIC, ground.world = w;
      ground.pose.p.z = k == 0 ? -1 : -0.2;
      ground.pose.p.x = 4.0 * (k - 1);
      pabd_shape shape = pabd_shape_default(k == 2 ? PABD_PLANE : PABD_BOX);
      shape.half = (pabd_dvec3){20, 20, 1};
      if (k == 1) shape.half = (pabd_dvec3){0.2, 0.3, 0.1};
      shape.body = pabd_scene_add_body(scene, &ground);
      pabd_scene_add_shape(scene, &shape);
    }
    for (int i = 0; i < bodies; ++i) {
      pabd_body body = pabd_body_default();
      body.mass = uniform(0.5, 5), body.world = w;
      body.pose.p = (pabd_dvec3){uniform(-1, 1), uniform(-1, 1), 0.3 + 0.03 * i};
      body.pose.q = pabd_dquat_from_rotation_vector((pabd_dvec3){uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)});
      body.linear = (pabd_dvec3){uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
      body.angular = (pabd_dvec3){uniform(-2, 2), uniform(-2, 2), uniform(-2, 2)};
      if (i == 3) body.motion = PABD_KINEMATIC;
      if (i == 4) body.pose.p.z = 40; /* free for long */
      pabd_shape shape = pabd_shape_default(i % 3 == 0 ? PABD_SPHERE : i % 3 == 1 ? PABD_BOX : PABD_CAPSULE);
      shape.half = (pabd_dvec3){0.3, 0.2, 0.25}, shape.radius = 0.2, shape.half_length = 0.2;
      body.inertia = pabd_shape_inertia(&shape, body.mass);
      shape.body = pabd_scene_add_body(scene, &body);
      pabd_scene_add_shape(scene, &shape);
    }
    const pabd_joint_kind kinds[] = {PABD_SPHERICAL, PABD_HINGE, PABD_SLIDER, PABD_FIXED, PABD_DISTANCE, PABD_SPRING};
    for (int i = 0; i < 12 && 8 + i < bodies; ++i) {
      pabd_joint joint = pabd_joint_default(kinds[i % 6]);
      joint.body_b = first + 3 + 7 + i, joint.body_a = i % 5 == 0 ? PABD_WORLD : joint.body_b - 1;
      joint.rest = 0.3;
      if (joint.kind == PABD_SPRING) joint.stiffness = 200, joint.damping = 5;
      pabd_dpose frame = {scene->bodies[joint.body_b].pose.p,
                          pabd_dquat_from_rotation_vector((pabd_dvec3){0.3, 0.2, 0.1})};
      pabd_joint_place(scene, &joint, frame);
      pabd_scene_add_joint(scene, &joint);
    }
    pabd_load load = {0};
    load.body = first + 9, load.force = (pabd_dvec3){30, 0, 10}, load.start = 0.05, load.end = 0.15;
    pabd_scene_add_load(scene, &load);
  }
}

typedef struct setting {
  const char *key, *value;
} setting;
static const struct {
  const char *what;
  setting settings[6];
} busy_runs[] = {
    {"default", {{NULL, NULL}}},
    {"paper",
     {{"local_step", "mass"},
      {"prediction", "linear"},
      {"velocity_rule", "lemma1"},
      {"multipliers", "0"},
      {"tolerance", "20"},
      {"sweeps", "12"}}},
    {"tolerance", {{"tolerance", "50"}, {"sweeps", "9"}}},
    {"relax off", {{"relax_sweeps", "0"}, {"stiffness_rule", "ramp"}, {"dual_period", "2"}}},
    {"overflowing pairs", {{"pairs_per_body", "2"}}},
    {"overflowing contacts", {{"contacts_per_body", "1"}}},
};

/* Small versions of the cases with a size, so that all of them run. */
static const char *case_size(const char *name) {
  return strcmp(name, "pile") == 0 || strcmp(name, "pile-settled") == 0 ? "n=4" : NULL;
}

#endif
