/* The host collision detection that the engines written here share: closed forms, the judge's exact geometry, features.
 */
#include "common/collide.h"
#include "geometry.h"
#include "test.h"

static double random_in(uint64_t *state, double low, double high) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(*state >> 11) / 9007199254740992.0;
}

static void pose_at(double *pose, double x, double y, double z, double rx, double ry, double rz) {
  const pabd_dquat q = pabd_dquat_from_rotation_vector((pabd_dvec3){rx, ry, rz});
  const double row[7] = {x, y, z, q.w, q.x, q.y, q.z};
  memcpy(pose, row, sizeof row);
}

static pabd_shape box_of(double x, double y, double z) {
  pabd_shape shape = pabd_shape_default(PABD_BOX);
  shape.half = (pabd_dvec3){x, y, z};
  return shape;
}

static pabd_shape round_of(pabd_shape_kind kind, double radius, double half_length) {
  pabd_shape shape = pabd_shape_default(kind);
  shape.radius = radius;
  shape.half_length = half_length;
  return shape;
}

TEST(box_on_box_has_four_corners) {
  const pabd_shape a = box_of(0.5, 0.5, 0.5), b = box_of(100, 100, 1);
  double pa[7], pb[7];
  pabd_point points[PABD_POINTS_OF_PAIR];
  pose_at(pa, 3, -2, 0.49, 0, 0, 0.3);
  pose_at(pb, 0, 0, -1, 0, 0, 0);
  REQUIRE(pabd_collide_pair(&a, pa, &b, pb, 0, points) == 4);
  for (int k = 0; k < 4; ++k) {
    CHECK_NEAR(points[k].gap, -0.01, 1e-12);
    CHECK_NEAR(points[k].normal.z, 1, 1e-12); /* from b, the ground, to a */
    CHECK_NEAR(points[k].point.z, -0.005, 1e-12);
    CHECK_NEAR(hypot(points[k].point.x - 3, points[k].point.y + 2), sqrt(0.5), 1e-12);
    for (int j = 0; j < k; ++j) CHECK(points[k].feature != points[j].feature);
  }
  REQUIRE(pabd_collide_pair(&b, pb, &a, pa, 0, points) == 4);
  CHECK_NEAR(points[0].normal.z, -1, 1e-12);
  pose_at(pa, 3, -2, 0.52, 0, 0, 0.3);
  CHECK_INT(pabd_collide_pair(&a, pa, &b, pb, 0.01, points), 0);
  CHECK_INT(pabd_collide_pair(&a, pa, &b, pb, 0.03, points), 4);
  CHECK_NEAR(points[0].gap, 0.02, 1e-12);
}

TEST(crossed_edges_have_one_point) {
  const pabd_shape a = box_of(0.5, 0.1, 0.1), b = box_of(0.1, 0.5, 0.1);
  double pa[7], pb[7];
  pabd_point points[PABD_POINTS_OF_PAIR];
  const double quarter = M_PI / 4; /* both stand on an edge */
  pose_at(pa, 0.02, 0, 0.27, quarter, 0, 0);
  pose_at(pb, 0, 0.03, 0, 0, quarter, 0);
  REQUIRE(pabd_collide_pair(&a, pa, &b, pb, 0, points) == 1);
  CHECK_NEAR(points[0].gap, 0.27 - 0.2 * sqrt(2), 1e-12);
  CHECK_NEAR(points[0].normal.z, 1, 1e-12);
  CHECK_NEAR(points[0].point.x, 0, 1e-12);
  CHECK_NEAR(points[0].point.y, 0, 1e-12);
}

/* The least gap of the points is the judge's exact gap where solids overlap, for every pair of kinds; where they are
 * apart no point says more than the distance (it may say less: separating axes measure vertices against faces). */
TEST(gaps_agree_with_the_judge) {
  uint64_t state = 5;
  int overlapping = 0;
  for (int round = 0; round < 6000; ++round) {
    pabd_shape s[2];
    double pose[2][7];
    for (int k = 0; k < 2; ++k) {
      const int kind = (round >> (2 * k)) % 3;
      s[k] = kind == 0 ? round_of(PABD_SPHERE, random_in(&state, 0.1, 0.6), 0)
             : kind == 1
                 ? round_of(PABD_CAPSULE, random_in(&state, 0.1, 0.3), random_in(&state, 0.1, 0.6))
                 : box_of(random_in(&state, 0.1, 0.6), random_in(&state, 0.1, 0.6), random_in(&state, 0.1, 0.6));
      pose_at(pose[k], random_in(&state, -0.5, 0.5), random_in(&state, -0.5, 0.5), random_in(&state, -0.5, 0.5),
              random_in(&state, -2, 2), random_in(&state, -2, 2), random_in(&state, -2, 2));
    }
    pabd_point points[PABD_POINTS_OF_PAIR];
    const int32_t count = pabd_collide_pair(&s[0], pose[0], &s[1], pose[1], 0.2, points);
    pabd_scene scene = {0};
    const pabd_solid a = pabd_solid_place(&scene, &s[0], pose[0]), b = pabd_solid_place(&scene, &s[1], pose[1]);
    pabd_dvec3 normal;
    const double exact = pabd_solid_gap(&a, &b, &normal);
    double least = INFINITY;
    for (int k = 0; k < count; ++k) {
      least = fmin(least, points[k].gap);
      CHECK_NEAR(points[k].normal.x * points[k].normal.x + points[k].normal.y * points[k].normal.y +
                     points[k].normal.z * points[k].normal.z,
                 1, 1e-9);
      CHECK(points[k].feature > 0);
      for (int j = 0; j < k; ++j) CHECK(points[k].feature != points[j].feature);
    }
    const int rounds = s[0].kind != PABD_BOX || s[1].kind != PABD_BOX;
    if (exact < 0) {
      ++overlapping;
      /* The preference for faces costs boxes up to a few parts in a hundred of the depth. */
      CHECK_MSG(count > 0 && fabs(least - exact) < (rounds ? 1e-6 : 1e-3 + 0.03 * fabs(exact)),
                "kinds %d %d: %d points, least gap %.9g, exact %.9g (round %d)", s[0].kind, s[1].kind, count, least,
                exact, round);
    } else if (count > 0) {
      CHECK_MSG(rounds ? fabs(least - exact) < 1e-6 : least > -1e-9,
                "kinds %d %d: least gap %.9g, exact %.9g (round %d)", s[0].kind, s[1].kind, least, exact, round);
    }
  }
  CHECK(overlapping > 2000);
}

TEST(planes) {
  const pabd_shape plane = pabd_shape_default(PABD_PLANE), box = box_of(0.5, 0.4, 0.3);
  const pabd_shape capsule = round_of(PABD_CAPSULE, 0.1, 0.5), ball = round_of(PABD_SPHERE, 0.2, 0);
  double flat[7], pose[7];
  pabd_point points[PABD_POINTS_OF_PAIR];
  pose_at(flat, 0, 0, 1, 0, 0, 0);
  pose_at(pose, 7, 8, 1.29, 0, 0, 1);
  REQUIRE(pabd_collide_pair(&box, pose, &plane, flat, 0, points) == 4);
  CHECK_NEAR(points[0].gap, -0.01, 1e-12);
  CHECK_NEAR(points[0].normal.z, 1, 1e-12);
  pose_at(pose, 7, 8, 1.09, M_PI / 2, 0, 0);
  REQUIRE(pabd_collide_pair(&plane, flat, &capsule, pose, 0, points) == 2);
  CHECK_NEAR(points[1].gap, -0.01, 1e-12);
  CHECK_NEAR(points[1].normal.z, -1, 1e-12);
  REQUIRE(pabd_collide_pair(&ball, pose, &plane, flat, 0, points) == 1);
  CHECK_NEAR(points[0].gap, -0.11, 1e-12);
}

/* A scene of many boxes: the sweep finds what a test of all pairs finds, in order, and twice the same. */
TEST(sweep_finds_every_pair) {
  uint64_t state = 9;
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  enum { COUNT = 300 };
  static double pose[COUNT][7], reach[COUNT];
  for (int32_t b = 0; b < COUNT; ++b) {
    pabd_body body = pabd_body_default();
    body.mass = 1;
    body.inertia = (pabd_dvec3){1, 1, 1};
    pabd_shape shape = b == 0 ? box_of(20, 20, 1) : box_of(0.3, 0.3, 0.3);
    if (b == 0) body.motion = PABD_STATIC;
    if (b == 1) shape = pabd_shape_default(PABD_PLANE), body.motion = PABD_STATIC;
    if (b == 7 || b == 8) body.group = 1;
    shape.body = pabd_scene_add_body(&scene, &body);
    pabd_scene_add_shape(&scene, &shape);
    reach[b] = b % 5 ? 0 : 0.02;
  }
  pabd_scene_ignore_pair(&scene, 20, 21);
  pabd_error error = {""};
  pabd_collider *collider;
  REQUIRE(pabd_collider_create(&collider, &scene, &error) == PABD_OK);
  for (int round = 0; round < 4; ++round) {
    for (int32_t b = 0; b < COUNT; ++b)
      pose_at(pose[b], random_in(&state, -2, 2), random_in(&state, -2, 2), random_in(&state, 0, 3),
              random_in(&state, -1, 1), random_in(&state, -1, 1), random_in(&state, -1, 1));
    pose_at(pose[0], 0, 0, -0.5, 0, 0, 0);
    pose_at(pose[1], 0, 0, 0.2, 0.01, 0, 0);
    REQUIRE(pabd_collider_sweep(collider, &pose[0][0], 0.01, reach) == PABD_OK);
    REQUIRE(pabd_collider_touch(collider, &pose[0][0], 0.01, reach) == PABD_OK);
    int32_t count, at = 0;
    const pabd_point *found = pabd_collider_points(collider, &count);
    CHECK(count > 500);
    for (int32_t a = 0; a < COUNT; ++a)
      for (int32_t b = a + 1; b < COUNT; ++b) {
        pabd_point points[PABD_POINTS_OF_PAIR];
        if (pabd_scene_ignores(&scene, a, b)) continue;
        const int32_t expected =
            pabd_collide_pair(&scene.shapes[a], pose[a], &scene.shapes[b], pose[b], 0.01 + reach[a] + reach[b], points);
        int32_t here = 0;
        for (; at < count && found[at].shape_a == a && found[at].shape_b == b; ++at) ++here;
        CHECK_INT(here, expected);
      }
    CHECK_INT(at, count);
  }
  pabd_collider_destroy(collider);
  pabd_scene_free(&scene);
}

/* Points keep their identity while a box rocks through zero and slides: `previous` is a bijection. */
TEST(points_persist) {
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  for (int b = 0; b < 2; ++b) {
    pabd_body body = pabd_body_default();
    body.mass = 1;
    body.inertia = (pabd_dvec3){1, 1, 1};
    body.motion = b ? PABD_DYNAMIC : PABD_STATIC;
    pabd_shape shape = box_of(0.5, 0.5, 0.5);
    shape.body = pabd_scene_add_body(&scene, &body);
    pabd_scene_add_shape(&scene, &shape);
  }
  pabd_error error = {""};
  pabd_collider *collider;
  REQUIRE(pabd_collider_create(&collider, &scene, &error) == PABD_OK);
  double pose[2][7];
  pose_at(pose[0], 0, 0, 0, 0, 0, 0);
  for (int frame = 0; frame < 40; ++frame) {
    const double angle = 1e-4 * sin(0.7 * frame);
    pose_at(pose[1], 0.001 * frame, 0, 0.999, angle, -angle, 2 * angle);
    REQUIRE(pabd_collider_sweep(collider, &pose[0][0], 0.01, NULL) == PABD_OK);
    REQUIRE(pabd_collider_touch(collider, &pose[0][0], 0.01, NULL) == PABD_OK);
    int32_t count;
    const pabd_point *points = pabd_collider_points(collider, &count);
    REQUIRE(CHECK_INT(count, 4));
    int seen = 0;
    for (int k = 0; k < count; ++k) {
      if (frame > 0) CHECK(points[k].previous >= 0);
      if (points[k].previous >= 0) seen |= 1 << points[k].previous;
      CHECK_NEAR(points[k].friction, 0.5, 0);
    }
    if (frame > 0) CHECK_INT(seen, 15);
  }
  const pabd_contact given = {
      .body_a = 1, .body_b = 0, .point = {0, 0, 0.5}, .normal = {0, 0, 1}, .gap = -0.001, .friction = 0.3};
  pose_at(pose[1], 0, 0, 0.999, 0, 0, 0);
  REQUIRE(pabd_collider_freeze(collider, &pose[0][0], &given, 1, &error) == PABD_OK);
  pose[1][2] += 0.003;
  int32_t count;
  for (int time = 0; time < 2; ++time) {
    REQUIRE(pabd_collider_carry(collider, &pose[0][0]) == PABD_OK);
    const pabd_point *points = pabd_collider_points(collider, &count);
    REQUIRE(CHECK_INT(count, 1));
    CHECK_NEAR(points[0].friction, 0.3, 0);
    CHECK_NEAR(points[0].gap, 0.002, 1e-12);
    CHECK_INT(points[0].previous, time - 1);
  }
  const pabd_contact wrong = {.body_a = 1, .body_b = 5, .normal = {0, 0, 1}};
  CHECK(pabd_collider_freeze(collider, &pose[0][0], &wrong, 1, &error) == PABD_ERR_INPUT);
  pabd_collider_destroy(collider);
  pabd_scene_free(&scene);
}
