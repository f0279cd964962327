/* Scenes: mass properties against closed forms and numerical integration, filters, checks, the small maths.
 *
 * References come from formulas that the code does not use: slices of a capsule summed numerically, a hull that is a
 * box or a prism, the tensor rebuilt from its principal axes. */
#include "pabd_scene.h"
#include "test.h"

#define PI 3.14159265358979323846

static uint64_t random_state = 1;

static double uniform(double low, double high) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(random_state >> 11) * 0x1p-53;
}

static pabd_dquat random_rotation(void) {
  return pabd_dquat_from_rotation_vector((pabd_dvec3){uniform(-3, 3), uniform(-3, 3), uniform(-3, 3)});
}

TEST(status_texts) {
  CHECK_STR(pabd_status_text(PABD_OK), "ok");
  CHECK_STR(pabd_status_text(PABD_ERR_INPUT), "bad input");
  CHECK_STR(pabd_status_text((pabd_status)99), "unknown status");
  pabd_error error;
  CHECK(pabd_fail(&error, PABD_ERR_IO, "%s: %d", "a\nb", 7) == PABD_ERR_IO);
  CHECK_STR(error.text, "a b: 7");  // one line, whatever comes in
  CHECK(pabd_fail(NULL, PABD_ERR_IO, "nobody reads this") == PABD_ERR_IO);
}

TEST(quaternions) {
  pabd_dquat q = pabd_dquat_from_rotation_vector((pabd_dvec3){0, 0, PI / 2});
  pabd_dvec3 v = pabd_dquat_rotate(q, (pabd_dvec3){1, 2, 3});
  CHECK_NEAR(v.x, -2, 1e-15);
  CHECK_NEAR(v.y, 1, 1e-15);
  CHECK_NEAR(v.z, 3, 1e-15);
  // Near zero the series must meet the closed form.
  double angle = 1e-5;
  for (int k = 0; k < 22; ++k, angle *= 1.37) {
    pabd_dquat s = pabd_dquat_from_rotation_vector((pabd_dvec3){angle, 0, 0});
    CHECK_NEAR(s.x, sin(0.5 * angle), 1e-18);
  }
  for (int k = 0; k < 20; ++k) {
    pabd_dpose a = {{uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)}, random_rotation()};
    pabd_dpose b = {{uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)}, random_rotation()};
    pabd_dvec3 x = {uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
    pabd_dvec3 one = pabd_dpose_apply(pabd_dpose_mul(a, b), x), two = pabd_dpose_apply(a, pabd_dpose_apply(b, x));
    pabd_dvec3 back = pabd_dpose_apply(pabd_dpose_inverse(a), pabd_dpose_apply(a, x));
    CHECK_NEAR(one.x, two.x, 1e-14);
    CHECK_NEAR(one.z, two.z, 1e-14);
    CHECK_NEAR(back.x, x.x, 1e-14);
    CHECK_NEAR(back.y, x.y, 1e-14);
  }
  q = pabd_dquat_normalize((pabd_dquat){0, 0, 0, 0});
  CHECK_NEAR(q.w, 1, 0);
}

TEST(volumes) {
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  pabd_shape s = pabd_shape_default(PABD_SPHERE);
  s.radius = 2;
  s.half_length = 3;
  s.half = (pabd_dvec3){1, 2, 3};
  CHECK_NEAR(pabd_shape_volume(&scene, &s), 32.0 * PI / 3.0, 1e-13);
  s.kind = PABD_BOX;
  CHECK_NEAR(pabd_shape_volume(&scene, &s), 48, 0);
  s.kind = PABD_CYLINDER;
  CHECK_NEAR(pabd_shape_volume(&scene, &s), 24 * PI, 1e-13);
  s.kind = PABD_CAPSULE;
  CHECK_NEAR(pabd_shape_volume(&scene, &s), 24 * PI + 32.0 * PI / 3.0, 1e-13);
  s.kind = PABD_PLANE;
  CHECK_NEAR(pabd_shape_volume(&scene, &s), 0, 0);
  pabd_scene_free(&scene);
}

/* Moments of a solid of revolution about z, radius rho(z), by slices. */
static void revolve(const pabd_shape *s, double *volume, double *along, double *across) {
  int n = 200000;
  double top = s->half_length + (s->kind == PABD_CYLINDER ? 0.0 : s->radius);
  if (s->kind == PABD_SPHERE) top = s->radius;
  *volume = *along = *across = 0.0;
  for (int k = 0; k < n; ++k) {
    double z = top * (2.0 * (k + 0.5) / n - 1.0), slice = 2.0 * top / n, beyond = fabs(z) - s->half_length;
    double r2 = s->radius * s->radius;
    if (s->kind == PABD_SPHERE) r2 -= z * z;
    if (s->kind == PABD_CAPSULE && beyond > 0.0) r2 -= beyond * beyond;
    double area = PI * r2;
    *volume += area * slice;
    *along += 0.5 * area * r2 * slice;
    *across += (0.25 * area * r2 + area * z * z) * slice;
  }
}

TEST(inertia_of_round_shapes) {
  static const pabd_shape_kind kinds[] = {PABD_SPHERE, PABD_CAPSULE, PABD_CYLINDER};
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  for (int k = 0; k < 3; ++k) {
    double volume, along, across;
    pabd_shape s = pabd_shape_default(kinds[k]);
    s.radius = 0.3;
    s.half_length = kinds[k] == PABD_SPHERE ? 0.0 : 0.7;
    revolve(&s, &volume, &along, &across);
    // Midpoint slices: relative error about 1e-10 at this count (the caps' ends are only Hoelder continuous).
    CHECK_NEAR(pabd_shape_volume(&scene, &s), volume, 1e-8 * volume);
    pabd_dvec3 i = pabd_shape_inertia(&s, volume);
    CHECK_NEAR(i.z, along, 1e-8 * along);
    CHECK_NEAR(i.x, across, 1e-8 * across);
    CHECK_NEAR(i.y, i.x, 0);
  }
  pabd_shape box = pabd_shape_default(PABD_BOX);
  box.half = (pabd_dvec3){0.5, 0.3, 0.1};  // spin's box: m/12 (b^2 + c^2)
  pabd_dvec3 i = pabd_shape_inertia(&box, 120);
  CHECK_NEAR(i.x, 10 * (0.36 + 0.04), 1e-14);
  CHECK_NEAR(i.y, 10 * (1.0 + 0.04), 1e-14);
  CHECK_NEAR(i.z, 10 * (1.0 + 0.36), 1e-14);
  pabd_scene_free(&scene);
}

TEST(hull_is_a_box) {
  // The corners of a turned and shifted box, in random order and with points inside, must give the box's moments.
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  for (int trial = 0; trial < 20; ++trial) {
    pabd_dvec3 half = {uniform(0.1, 2), uniform(0.1, 2), uniform(0.1, 2)};
    pabd_dpose pose = {{uniform(-9, 9), uniform(-9, 9), uniform(-9, 9)}, random_rotation()};
    pabd_dvec3 v[20];
    for (int c = 0; c < 20; ++c) {
      pabd_dvec3 p = {c & 1 ? half.x : -half.x, c & 2 ? half.y : -half.y, c & 4 ? half.z : -half.z};
      if (c >= 8) p = (pabd_dvec3){uniform(-1, 1) * half.x, uniform(-1, 1) * half.y, c < 14 ? half.z : 0.0};
      v[(7 * c) % 20] = pabd_dpose_apply(pose, p);
    }
    pabd_shape hull = pabd_shape_default(PABD_HULL), box = pabd_shape_default(PABD_BOX);
    hull.first_vertex = pabd_scene_add_vertices(&scene, v, 20);
    hull.vertex_count = 20;
    box.half = half;
    box.local = pose;
    pabd_mass_moments a = pabd_shape_mass_moments(&scene, &hull, 3.0), b = pabd_shape_mass_moments(&scene, &box, 3.0);
    CHECK_NEAR(a.mass, b.mass, 1e-11 * b.mass);
    CHECK_NEAR(a.center.x, pose.p.x, 1e-11);
    CHECK_NEAR(a.center.z, pose.p.z, 1e-11);
    for (int k = 0; k < 6; ++k)
      CHECK_NEAR(a.inertia[k], b.inertia[k], 1e-10 * (b.inertia[0] + b.inertia[1] + b.inertia[2]));
  }
  pabd_scene_free(&scene);
}

TEST(hull_is_a_prism) {
  // Regular n-gon prism: area n/2 R^2 sin(2 pi/n), polar second moment of area A R^2/6 (2 + cos(2 pi/n)).
  enum { N = 60 };
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  pabd_dvec3 v[2 * N];
  for (int k = 0; k < N; ++k) {
    v[k] = (pabd_dvec3){cos(2 * PI * k / N), sin(2 * PI * k / N), -0.25};
    v[N + k] = (pabd_dvec3){v[k].x, v[k].y, 0.75};
  }
  pabd_shape hull = pabd_shape_default(PABD_HULL);
  hull.first_vertex = pabd_scene_add_vertices(&scene, v, 2 * N);
  hull.vertex_count = 2 * N;
  pabd_mass_moments m = pabd_shape_mass_moments(&scene, &hull, 1.0);
  double area = 0.5 * N * sin(2 * PI / N), polar = area / 6.0 * (2.0 + cos(2 * PI / N));
  CHECK_NEAR(pabd_shape_volume(&scene, &hull), area, 1e-12);
  CHECK_NEAR(m.center.z, 0.25, 1e-13);
  CHECK_NEAR(m.inertia[2], polar, 1e-12);
  CHECK_NEAR(m.inertia[0], 0.5 * polar + area / 12.0, 1e-12);
  CHECK_NEAR(m.inertia[3], 0, 1e-13);
  // Flat and broken hulls have no volume.
  hull.vertex_count = N;
  CHECK_NEAR(pabd_shape_volume(&scene, &hull), 0, 0);
  scene.vertices[3].x = NAN;
  CHECK(!(pabd_shape_volume(&scene, &hull) > 0));
  pabd_scene_free(&scene);
}

TEST(compound_dumbbell) {
  // Two balls of 1 and 3 kg, 4 m apart along a turned direction, given in a frame that is neither central nor
  // principal.
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  pabd_body b = pabd_body_default();
  b.pose.p = (pabd_dvec3){5, 6, 7};
  b.pose.q = random_rotation();
  b.angular = (pabd_dvec3){0, 0, 2};
  pabd_scene_add_body(&scene, &b);
  pabd_shape s = pabd_shape_default(PABD_SPHERE);
  s.radius = 0.5;
  double volume = pabd_shape_volume(&scene, &s), densities[2] = {1 / volume, 3 / volume};
  pabd_scene_add_shape(&scene, &s);
  pabd_dvec3 d = pabd_dquat_rotate(random_rotation(), (pabd_dvec3){4, 0, 0});
  s.local.p = d;
  pabd_scene_add_shape(&scene, &s);
  pabd_dvec3 before[2];
  for (int k = 0; k < 2; ++k) before[k] = pabd_dpose_apply(b.pose, scene.shapes[k].local.p);
  REQUIRE(pabd_scene_mass_from_densities(&scene, 0, densities) == PABD_OK);
  const pabd_body *c = &scene.bodies[0];
  CHECK_NEAR(c->mass, 4, 1e-13);
  pabd_dvec3 center = pabd_dpose_apply(b.pose, (pabd_dvec3){0.75 * d.x, 0.75 * d.y, 0.75 * d.z});
  CHECK_NEAR(c->pose.p.x, center.x, 1e-13);
  CHECK_NEAR(c->pose.p.y, center.y, 1e-13);
  // About the line: 2/5 m r^2; across it that plus reduced mass times distance squared.
  double along = 0.4 * 4 * 0.25, across = along + 0.75 * 16;
  double low = fmin(c->inertia.x, fmin(c->inertia.y, c->inertia.z));
  CHECK_NEAR(low, along, 1e-12);
  CHECK_NEAR(c->inertia.x + c->inertia.y + c->inertia.z, along + 2 * across, 1e-12);
  // The solid stays where it was, and a body that turned about its old origin now moves there too.
  for (int k = 0; k < 2; ++k) {
    pabd_dvec3 after = pabd_dpose_apply(c->pose, scene.shapes[k].local.p);
    CHECK_NEAR(after.x, before[k].x, 1e-13);
    CHECK_NEAR(after.z, before[k].z, 1e-13);
  }
  CHECK_NEAR(c->linear.x, -2 * (c->pose.p.y - 6), 1e-13);
  CHECK_NEAR(c->linear.y, 2 * (c->pose.p.x - 5), 1e-13);
  pabd_error error;
  CHECK_MSG(pabd_scene_check(&scene, &error) == PABD_OK, "%s", error.text);
  pabd_scene_free(&scene);
}

TEST(principal_axes_rebuild_the_tensor) {
  for (int trial = 0; trial < 200; ++trial) {
    double moment[3] = {uniform(1, 2), uniform(1, 2), trial % 3 == 0 ? 1.5 : uniform(1, 2)};
    if (trial % 5 == 0) moment[1] = moment[0];  // a repeated moment has no unique axes
    pabd_dquat q = trial % 7 == 0 ? (pabd_dquat){1, 0, 0, 0} : random_rotation();
    double r[3][3], t[3][3] = {{0}}, back[3][3] = {{0}};
    for (int k = 0; k < 3; ++k) {
      pabd_dvec3 axis = pabd_dquat_rotate(q, (pabd_dvec3){k == 0, k == 1, k == 2});
      r[0][k] = axis.x, r[1][k] = axis.y, r[2][k] = axis.z;
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 3; ++k) t[i][j] += r[i][k] * moment[k] * r[j][k];
      }
    }
    pabd_mass_moments m = {1, {0, 0, 0}, {t[0][0], t[1][1], t[2][2], t[0][1], t[0][2], t[1][2]}};
    pabd_dquat found;
    pabd_dvec3 p = pabd_mass_moments_principal(&m, &found);
    double values[3] = {p.x, p.y, p.z};
    for (int k = 0; k < 3; ++k) {
      pabd_dvec3 axis = pabd_dquat_rotate(found, (pabd_dvec3){k == 0, k == 1, k == 2});
      double a[3] = {axis.x, axis.y, axis.z};
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) back[i][j] += a[i] * values[k] * a[j];
      }
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) CHECK_NEAR(back[i][j], t[i][j], 2e-14);  // tens of rounding errors of numbers near 2
    }
    if (trial % 7 == 0) CHECK_NEAR(found.w, 1, 0);  // diagonal already: the frame stays
  }
}

TEST(box_keeps_its_frame) {
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  pabd_body b = pabd_body_default();
  b.pose.q = random_rotation();
  pabd_scene_add_body(&scene, &b);
  pabd_shape s = pabd_shape_default(PABD_BOX);
  s.half = (pabd_dvec3){0.5, 0.3, 0.1};
  pabd_scene_add_shape(&scene, &s);
  REQUIRE(pabd_scene_mass_from_density(&scene, 0, 1000) == PABD_OK);
  pabd_dpose p = scene.bodies[0].pose;
  CHECK(p.p.x == b.pose.p.x && p.p.y == b.pose.p.y && p.p.z == b.pose.p.z);
  CHECK(p.q.w == b.pose.q.w && p.q.x == b.pose.q.x && p.q.y == b.pose.q.y && p.q.z == b.pose.q.z);
  CHECK_NEAR(scene.bodies[0].mass, 120, 1e-12);
  pabd_scene_free(&scene);
}

static void three_bodies(pabd_scene *scene) {
  pabd_scene_init(scene);
  for (int i = 0; i < 3; ++i) {
    pabd_body b = pabd_body_default();
    snprintf(b.name, sizeof b.name, "body%d", i);
    b.mass = 1;
    b.inertia = (pabd_dvec3){1, 1, 1};
    b.pose.p.x = i;
    pabd_scene_add_body(scene, &b);
    pabd_shape s = pabd_shape_default(PABD_SPHERE);
    s.radius = 0.4;
    s.body = i;
    pabd_scene_add_shape(scene, &s);
  }
}

TEST(joint_frames_coincide) {
  pabd_scene scene;
  three_bodies(&scene);
  scene.bodies[1].pose.q = random_rotation();
  pabd_joint j = pabd_joint_default(PABD_HINGE);
  j.body_a = 1;
  j.body_b = 2;
  pabd_dpose world = {{1.5, 0.2, 0.1}, random_rotation()};
  pabd_joint_place(&scene, &j, world);
  pabd_dpose a = pabd_dpose_mul(scene.bodies[1].pose, j.frame_a), b = pabd_dpose_mul(scene.bodies[2].pose, j.frame_b);
  CHECK_NEAR(a.p.x, 1.5, 1e-14);
  CHECK_NEAR(b.p.y, 0.2, 1e-14);
  CHECK_NEAR(fabs(a.q.w * b.q.w + a.q.x * b.q.x + a.q.y * b.q.y + a.q.z * b.q.z), 1, 1e-14);
  CHECK_INT(pabd_scene_add_joint(&scene, &j), 0);
  CHECK(pabd_scene_check(&scene, NULL) == PABD_OK);
  pabd_scene_free(&scene);
}

TEST(filters) {
  pabd_scene scene;
  three_bodies(&scene);
  pabd_joint j = pabd_joint_default(PABD_SPHERICAL);
  j.body_a = 2;
  j.body_b = 1;
  pabd_scene_add_joint(&scene, &j);
  pabd_scene_add_joint(&scene, &j);  // a second joint of the same pair must not double the entry
  j.body_a = PABD_WORLD;
  pabd_scene_add_joint(&scene, &j);
  pabd_scene_ignore_pair(&scene, 2, 0);
  int32_t(*pairs)[2], count;
  REQUIRE(pabd_scene_filter_pairs(&scene, &pairs, &count) == PABD_OK);
  REQUIRE(CHECK_INT(count, 2));
  CHECK(pairs[0][0] == 0 && pairs[0][1] == 2);
  CHECK(pairs[1][0] == 1 && pairs[1][1] == 2);
  free(pairs);
  CHECK(pabd_scene_ignores(&scene, 1, 2));
  CHECK(pabd_scene_ignores(&scene, 0, 2));
  CHECK(!pabd_scene_ignores(&scene, 0, 1));
  CHECK(pabd_scene_ignores(&scene, 1, 1));
  scene.joints[0].collide = scene.joints[1].collide = 1;
  CHECK(!pabd_scene_ignores(&scene, 1, 2));
  scene.bodies[0].group = scene.bodies[1].group = 5;
  CHECK(pabd_scene_ignores(&scene, 0, 1));
  scene.bodies[0].group = 0;
  scene.bodies[0].world = 1;
  CHECK(pabd_scene_ignores(&scene, 0, 1));
  scene.bodies[0].world = 0;
  scene.bodies[0].motion = PABD_STATIC;
  CHECK(!pabd_scene_ignores(&scene, 0, 1));
  scene.bodies[1].motion = PABD_KINEMATIC;
  CHECK(pabd_scene_ignores(&scene, 0, 1));
  pabd_scene_free(&scene);
}

TEST(names) {
  pabd_scene scene;
  three_bodies(&scene);
  CHECK_INT(pabd_scene_find_body(&scene, "body2"), 2);
  CHECK_INT(pabd_scene_find_body(&scene, "body3"), -1);
  scene.bodies[1].name[0] = '\0';
  CHECK_INT(pabd_scene_find_body(&scene, ""), -1);
  CHECK_INT(pabd_scene_find_joint(&scene, "joint"), -1);
  pabd_scene_free(&scene);
}

/* Each change must be refused with a line that holds the fragment. */
typedef struct broken {
  void (*change)(pabd_scene *);
  const char *fragment;
} broken;

static void negative_mass(pabd_scene *s) {
  s->bodies[1].mass = -1;
}

static void nan_mass(pabd_scene *s) {
  s->bodies[1].mass = NAN;
}

static void triangle(pabd_scene *s) {
  s->bodies[1].inertia.x = 3;
}

static void nan_position(pabd_scene *s) {
  s->bodies[1].pose.p.y = NAN;
}

static void long_quaternion(pabd_scene *s) {
  s->bodies[1].pose.q.w = 1.1;
}

static void infinite_velocity(pabd_scene *s) {
  s->bodies[1].angular.z = INFINITY;
}

static void moving_static(pabd_scene *s) {
  s->bodies[1].motion = PABD_STATIC;
  s->bodies[1].linear.x = 1;
}

static void dynamic_plane(pabd_scene *s) {
  s->shapes[1].kind = PABD_PLANE;
}

static void zero_radius(pabd_scene *s) {
  s->shapes[1].radius = 0;
}

static void bad_material(pabd_scene *s) {
  s->shapes[1].material = 1;
}

static void unsorted(pabd_scene *s) {
  s->shapes[0].body = 2;
}

static void bad_hull(pabd_scene *s) {
  s->shapes[1].kind = PABD_HULL;
  s->shapes[1].vertex_count = 4;
}

static void joint_body(pabd_scene *s) {
  s->joints[0].body_b = 3;
}

static void joint_self(pabd_scene *s) {
  s->joints[0].body_a = 1;
}

static void joint_worlds(pabd_scene *s) {
  s->bodies[1].world = 1;
}

static void joint_statics(pabd_scene *s) {
  s->bodies[0].motion = s->bodies[1].motion = PABD_STATIC;
}

static void joint_limits(pabd_scene *s) {
  s->joints[0].has_limits = 1;
  s->joints[0].lower = 1;
}

static void joint_motor(pabd_scene *s) {
  s->joints[0].kind = PABD_SPHERICAL;
  s->joints[0].motor = PABD_MOTOR_RATE;
}

static void joint_stiffness(pabd_scene *s) {
  s->joints[0].stiffness = -1;
}

static void load_body(pabd_scene *s) {
  pabd_load load = {.body = 9};
  pabd_scene_add_load(s, &load);
}

static void ignored_body(pabd_scene *s) {
  pabd_scene_ignore_pair(s, 0, 9);
}

static void lopsided(pabd_scene *s) {
  pabd_scene_set_materials(s, 2, 0.5, 0);
  s->friction[1] = 0.4;
}

static void bouncy(pabd_scene *s) {
  s->restitution[0] = 1.5;
}

static void no_time(pabd_scene *s) {
  s->frame_time = 0;
}

TEST(checks) {
  static const broken list[] = {
      {negative_mass, "body 1 'body1': mass = -1 must be > 0 kg"},
      {nan_mass, "body 1 'body1': mass"},
      {triangle, "sum of the others"},
      {nan_position, "position is not finite"},
      {long_quaternion, "unit quaternion"},
      {infinite_velocity, "velocity is not finite"},
      {moving_static, "static body has no velocity"},
      {dynamic_plane, "a plane belongs to a static body"},
      {zero_radius, "shape 1: radius = 0"},
      {bad_material, "material = 1 must be 0 .. 0"},
      {unsorted, "order of their bodies"},
      {bad_hull, "at least 4 vertices"},
      {joint_body, "joint 0"},
      {joint_self, "to itself"},
      {joint_worlds, "two worlds"},
      {joint_statics, "no force can move"},
      {joint_limits, "lower must not exceed"},
      {joint_motor, "only hinges and sliders have motors"},
      {joint_stiffness, "stiffness = -1"},
      {load_body, "load 0: body = 9"},
      {ignored_body, "ignored pair 0"},
      {lopsided, "not symmetric"},
      {bouncy, "restitution = 1.5"},
      {no_time, "frame_time = 0"},
  };
  for (size_t k = 0; k < sizeof list / sizeof list[0]; ++k) {
    pabd_scene scene;
    pabd_error error = {"untouched"};
    three_bodies(&scene);
    pabd_joint j = pabd_joint_default(PABD_HINGE);
    j.body_a = 0;
    j.body_b = 1;
    pabd_scene_add_joint(&scene, &j);
    CHECK_MSG(pabd_scene_check(&scene, &error) == PABD_OK, "sound scene refused: %s", error.text);
    list[k].change(&scene);
    CHECK_MSG(pabd_scene_check(&scene, &error) == PABD_ERR_INPUT, "case %zu (%s) passed", k, list[k].fragment);
    CHECK_CONTAINS(error.text, list[k].fragment);
    pabd_scene_free(&scene);
  }
  pabd_scene_free(NULL);
}

TEST(arrays_grow) {
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  for (int i = 0; i < 5000; ++i) {
    pabd_body b = pabd_body_default();
    b.mass = i;
    CHECK_INT(pabd_scene_add_body(&scene, &b), i);
  }
  CHECK_NEAR(scene.bodies[4321].mass, 4321, 0);
  CHECK(scene.body_capacity >= 5000 && scene.body_capacity < 2 * 5000);
  pabd_scene_free(&scene);
  CHECK(scene.bodies == NULL && scene.body_count == 0);
  pabd_scene_free(&scene);
}
