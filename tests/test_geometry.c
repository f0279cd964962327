/* The judge's geometry against brute force, against its own general routine, and against closed forms.
 *
 * Oracle: the gap is the largest separation over all directions. So a routine is right when (1) the normal it returns
 * has that separation, measured with support functions written here, and (2) no other direction has more: sampled ones
 * and the best of them refined by descent. Apart or overlapping, both halves are needed to pass, and each is blind to
 * how the number was found. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "geometry.h"
#include "judge.h"
#include "pabd_scene.h"
#include "test.h"
#include "vec3.h"

#if defined(__SANITIZE_ADDRESS__)
#define PAIRS 2000 /* ten times slower */
#else
#define PAIRS 20000
#endif

static uint64_t random_state;
static double uniform(double low, double high) { /* splitmix64 */
  uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return low + (high - low) * ((double)(z >> 11) * 0x1p-53);
}

static pabd_dvec3 direction(void) {
  for (;;) {
    pabd_dvec3 v = {uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
    double length = v3_norm(v);
    if (length > 0.1 && length <= 1) return v3_scale(1 / length, v);
  }
}

/* ---- the oracle: supports from the scene's own maths, not from the judge's ---- */

static double highest(const pabd_scene *scene, const pabd_shape *shape, const double *pose, pabd_dvec3 d) {
  pabd_dpose at = pabd_dpose_mul(
      (pabd_dpose){{pose[0], pose[1], pose[2]}, pabd_dquat_normalize((pabd_dquat){pose[3], pose[4], pose[5], pose[6]})},
      shape->local);
  pabd_dvec3 l = pabd_dquat_rotate(pabd_dquat_conj(at.q), d);
  double base = v3_dot(at.p, d);
  switch (shape->kind) {
    case PABD_SPHERE:
      return base + shape->radius * v3_norm(d);
    case PABD_CAPSULE:
      return base + shape->radius * v3_norm(d) + shape->half_length * fabs(l.z);
    case PABD_BOX:
      return base + shape->half.x * fabs(l.x) + shape->half.y * fabs(l.y) + shape->half.z * fabs(l.z);
    case PABD_CYLINDER:
      return base + shape->radius * hypot(l.x, l.y) + shape->half_length * fabs(l.z);
    case PABD_PLANE:
      return l.z > 0 && hypot(l.x, l.y) <= 1e-12 * l.z ? base : INFINITY;
    default: {
      double best = -INFINITY;
      for (int32_t k = 0; k < shape->vertex_count; ++k)
        best = fmax(best, v3_dot(l, scene->vertices[shape->first_vertex + k]));
      return base + best;
    }
  }
}

typedef struct pair {
  const pabd_scene *scene;
  pabd_shape a, b;
  double pose_a[7], pose_b[7];
} pair;

static double separation(const pair *p, pabd_dvec3 n) {
  double s = -highest(p->scene, &p->a, p->pose_a, v3_scale(-1, n)) - highest(p->scene, &p->b, p->pose_b, n);
  return isnan(s) ? -INFINITY : s;
}

/* Largest separation found by sampling and by descent from the best sample. A lower bound of the gap. */
static double best_separation(const pair *p, int samples) {
  double best = -INFINITY;
  pabd_dvec3 n = {0, 0, 1};
  for (int k = 0; k < samples; ++k) {
    pabd_dvec3 m = direction();
    double s = separation(p, m);
    if (s > best) best = s, n = m;
  }
  double radius = 0.3;
  for (int step = 0; step < 25; ++step, radius *= 0.6) {
    for (int k = 0; k < 8; ++k) {
      pabd_dvec3 m = v3_madd(n, radius * uniform(0, 1), direction());
      m = v3_scale(1 / v3_norm(m), m);
      double s = separation(p, m);
      if (s > best) best = s, n = m;
    }
  }
  return best;
}

/* ---- random pairs ---- */

static pabd_shape random_shape(pabd_scene *scene, pabd_shape_kind kind) {
  pabd_shape s = pabd_shape_default(kind);
  s.radius = uniform(0.05, 0.8);
  s.half_length = uniform(0.05, 1);
  s.half = (pabd_dvec3){uniform(0.05, 1), uniform(0.05, 1), uniform(0.05, 1)};
  if (uniform(0, 1) < 0.5)
    s.local = (pabd_dpose){{uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)},
                           pabd_dquat_from_rotation_vector(v3_scale(uniform(0, 3), direction()))};
  if (kind == PABD_HULL) {
    pabd_dvec3 v[24];
    int count = 4 + (int)uniform(0, 20);
    for (int k = 0; k < count; ++k) v[k] = v3_scale(uniform(0.2, 1), direction());
    scene->vertex_count = scene->vertex_count > 1000 ? 0 : scene->vertex_count;
    s.first_vertex = pabd_scene_add_vertices(scene, v, count);
    s.vertex_count = count;
  }
  return s;
}

static void random_pose(double *pose, double spread) {
  pabd_dquat q = pabd_dquat_from_rotation_vector(v3_scale(uniform(0, 3.14), direction()));
  /* One in three lies along the axes, or nearly so: what piles are made of, and what breaks cross products. */
  double kind = uniform(0, 1);
  if (kind < 0.2) q = (pabd_dquat){1, 0, 0, 0};
  if (kind > 0.85) q = pabd_dquat_from_rotation_vector(v3_scale(pow(10, uniform(-12, -2)), direction()));
  if (kind > 0.2 && kind < 0.3) q = (pabd_dquat){0, 0, 1, 0};
  const double values[7] = {
      uniform(-spread, spread), uniform(-spread, spread), uniform(-spread, spread), q.w, q.x, q.y, q.z};
  memcpy(pose, values, sizeof values);
}

static int uses_convex(pabd_shape_kind a, pabd_shape_kind b) {
  return a != PABD_PLANE && b != PABD_PLANE;
}

static void check_pairs(pabd_shape_kind kind_a, pabd_shape_kind kind_b) {
  pabd_scene scene;
  REQUIRE(pabd_scene_init(&scene) == PABD_OK);
  random_state = 1000u * (unsigned)kind_a + (unsigned)kind_b;
  int apart = 0, overlapping = 0;
  double worst_normal = 0, worst_sample = 0, worst_convex = 0;
  for (int k = 0; k < PAIRS; ++k) {
    pair p = {.scene = &scene, .a = random_shape(&scene, kind_a), .b = random_shape(&scene, kind_b)};
    double spread = uniform(0, 1) < 0.3 ? 0.2 : 1.5;
    random_pose(p.pose_a, spread);
    random_pose(p.pose_b, spread);
    pabd_dvec3 n, mirrored_n;
    double gap = pabd_judge_gap(&scene, &p.a, p.pose_a, &p.b, p.pose_b, &n);
    double mirrored = pabd_judge_gap(&scene, &p.b, p.pose_b, &p.a, p.pose_a, &mirrored_n);
    *(gap > 0 ? &apart : &overlapping) += 1;
    worst_normal = fmax(worst_normal, fabs(separation(&p, n) - gap));
    worst_sample = fmax(worst_sample, best_separation(&p, 100) - gap);
    if (!CHECK_NEAR(mirrored, gap, 1e-8)) printf("  pair %d\n", k);
    CHECK_NEAR(v3_norm(n), 1, 1e-9);
    if (uses_convex(kind_a, kind_b)) {
      pabd_solid a = pabd_solid_place(&scene, &p.a, p.pose_a), b = pabd_solid_place(&scene, &p.b, p.pose_b);
      pabd_dvec3 convex_n;
      double convex = pabd_convex_gap(&a, &b, &convex_n);
      worst_convex = fmax(worst_convex, fabs(convex - gap));
      if (fabs(convex - gap) > 2e-8) CHECK_MSG(0, "pair %d: general routine %.12g, special %.12g", k, convex, gap);
      double limit = uniform(0, 0.5), within = pabd_solid_gap_within(&a, &b, limit);
      CHECK_MSG(gap <= 0       ? fabs(within - gap) < 1e-9
                : gap <= limit ? within > 0 && within <= limit + 1e-12
                               : within > limit - 1e-12,
                "pair %d: within %g: %g, gap %g", k, limit, within, gap);
    }
  }
  printf("  %d apart, %d overlapping; normal %.1e, samples %.1e, general routine %.1e m\n", apart, overlapping,
         worst_normal, worst_sample, worst_convex);
  CHECK(worst_normal < 3e-8);
  CHECK(worst_sample < 3e-8);
  CHECK(apart > PAIRS / 20 && overlapping > PAIRS / 20);
  pabd_scene_free(&scene);
}

TEST(sphere_sphere) {
  check_pairs(PABD_SPHERE, PABD_SPHERE);
}
TEST(sphere_capsule) {
  check_pairs(PABD_SPHERE, PABD_CAPSULE);
}
TEST(sphere_box) {
  check_pairs(PABD_SPHERE, PABD_BOX);
}
TEST(sphere_plane) {
  check_pairs(PABD_SPHERE, PABD_PLANE);
}
TEST(sphere_cylinder) {
  check_pairs(PABD_SPHERE, PABD_CYLINDER);
}
TEST(sphere_hull) {
  check_pairs(PABD_SPHERE, PABD_HULL);
}
TEST(capsule_capsule) {
  check_pairs(PABD_CAPSULE, PABD_CAPSULE);
}
TEST(capsule_box) {
  check_pairs(PABD_CAPSULE, PABD_BOX);
}
TEST(capsule_plane) {
  check_pairs(PABD_CAPSULE, PABD_PLANE);
}
TEST(capsule_cylinder) {
  check_pairs(PABD_CAPSULE, PABD_CYLINDER);
}
TEST(capsule_hull) {
  check_pairs(PABD_CAPSULE, PABD_HULL);
}
TEST(box_box) {
  check_pairs(PABD_BOX, PABD_BOX);
}
TEST(box_plane) {
  check_pairs(PABD_BOX, PABD_PLANE);
}
TEST(box_cylinder) {
  check_pairs(PABD_BOX, PABD_CYLINDER);
}
TEST(box_hull) {
  check_pairs(PABD_BOX, PABD_HULL);
}
TEST(plane_cylinder) {
  check_pairs(PABD_PLANE, PABD_CYLINDER);
}
TEST(plane_hull) {
  check_pairs(PABD_PLANE, PABD_HULL);
}
TEST(cylinder_cylinder) {
  check_pairs(PABD_CYLINDER, PABD_CYLINDER);
}
TEST(cylinder_hull) {
  check_pairs(PABD_CYLINDER, PABD_HULL);
}
TEST(hull_hull) {
  check_pairs(PABD_HULL, PABD_HULL);
}
