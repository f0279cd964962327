/* Collision: candidate pairs against all pairs, manifolds against independent double-precision geometry and closed
 * forms, features under small motion, order independence, overflow. */
#include "lbvh.h"
#include "narrow.h"
#include "state.h"
#include "test.h"

static uint64_t random_state = 1;
static double uniform(double low, double high) { /* splitmix64 */
  uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return low + (high - low) * (double)(z >> 11) * 0x1p-53;
}

static pabd_dquat random_rotation(double angle_max) {
  pabd_dvec3 r = {uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
  double n = sqrt(r.x * r.x + r.y * r.y + r.z * r.z) + 1e-12, s = uniform(0, angle_max) / n;
  return pabd_dquat_from_rotation_vector((pabd_dvec3){s * r.x, s * r.y, s * r.z});
}

/* -- scenes
 * -------------------------------------------------------------------------------------------------------------------
 */

static int32_t add_body(pabd_scene *scene, pabd_motion motion, double x, double y, double z, pabd_dquat q) {
  pabd_body body = pabd_body_default();
  body.motion = motion;
  body.mass = 1.0;
  body.inertia = (pabd_dvec3){0.1, 0.1, 0.1};
  body.pose.p = (pabd_dvec3){x, y, z};
  body.pose.q = q;
  return pabd_scene_add_body(scene, &body);
}

static void add_shape(pabd_scene *scene, int32_t body, pabd_shape_kind kind, double a, double b, double c) {
  pabd_shape shape = pabd_shape_default(kind);
  shape.body = body;
  if (kind == PABD_BOX) shape.half = (pabd_dvec3){a, b, c};
  shape.radius = a;
  shape.half_length = b;
  pabd_scene_add_shape(scene, &shape);
}

static const pabd_dquat identity = {1, 0, 0, 0};

static pabd_sim *create(const pabd_scene *scene, int32_t threads, int32_t pairs_per_body) {
  pabd_params params = pabd_params_default();
  params.threads = threads;
  if (pairs_per_body > 0) params.pairs_per_body = pairs_per_body;
  pabd_sim *sim = NULL;
  pabd_error error = {""};
  pabd_status status = pabd_sim_create(scene, &params, &sim, &error);
  CHECK_MSG(status == PABD_OK, "%s", error.text);
  return sim;
}

/* Bodies of all kinds in a cube, some of them moving fast, some static, with groups, joints, ignored pairs and `worlds`
 * worlds; a ground box, a plane and a wall in each world. */
static pabd_scene random_scene(int32_t count, int32_t worlds, double size, uint64_t seed) {
  random_state = seed;
  pabd_scene scene;
  pabd_scene_init(&scene);
  for (int32_t w = 0; w < worlds; ++w) {
    int32_t body = add_body(&scene, PABD_STATIC, 0, 0, -1.0 - size / 2, identity);
    scene.bodies[body].world = w;
    add_shape(&scene, body, PABD_BOX, 100, 100, 1);
    body = add_body(&scene, PABD_STATIC, size / 2, 0, 0, pabd_dquat_from_rotation_vector((pabd_dvec3){0, -1.3, 0}));
    scene.bodies[body].world = w;
    add_shape(&scene, body, PABD_PLANE, 0, 0, 0);
  }
  for (int32_t k = 0; k < count; ++k) {
    double h = size / 2;
    int32_t body = add_body(&scene, uniform(0, 1) < 0.1 ? PABD_STATIC : PABD_DYNAMIC, uniform(-h, h), uniform(-h, h),
                            uniform(-h, h), random_rotation(3));
    pabd_body *b = &scene.bodies[body];
    b->world = (int32_t)uniform(0, worlds);
    b->group = uniform(0, 1) < 0.2 ? (int32_t)uniform(1, 4) : 0;
    if (b->motion == PABD_DYNAMIC) {
      b->linear = (pabd_dvec3){uniform(-5, 5), uniform(-5, 5), uniform(-5, 5)};
      b->angular = (pabd_dvec3){uniform(-9, 9), uniform(-9, 9), uniform(-9, 9)};
    }
    pabd_shape_kind kind = (pabd_shape_kind)(int)uniform(0, 3);
    add_shape(&scene, body, kind, uniform(0.1, 0.6), uniform(0.1, 0.6), uniform(0.1, 0.6));
    if (uniform(0, 1) < 0.2) { /* a compound */
      add_shape(&scene, body, PABD_SPHERE, 0.3, 0, 0);
      scene.shapes[scene.shape_count - 1].local.p = (pabd_dvec3){0.4, 0.1, -0.2};
    }
  }
  for (int32_t k = 0; k < count / 20; ++k) {
    int32_t a = (int32_t)uniform(0, scene.body_count), b = (int32_t)uniform(0, scene.body_count);
    if (a != b) pabd_scene_ignore_pair(&scene, a, b);
  }
  return scene;
}

/* -- candidate pairs
 * ------------------------------------------------------------------------------------------------------------ */

/* Signed distance of the lowest corner of a box of the plane's world from the plane, in double. */
static double box_over_plane(const pabd_scene *scene, const pabd_sim *sim, int32_t box, int32_t plane) {
  const pabd_shape *shape = &scene->shapes[plane];
  pabd_dpose pose = pabd_dpose_mul(scene->bodies[shape->body].pose, shape->local);
  pabd_dvec3 n = pabd_dquat_rotate(pose.q, (pabd_dvec3){0, 0, 1});
  vec3 lo = sim->view.box_lo[box], hi = sim->view.box_hi[box];
  double lowest = INFINITY;
  for (int corner = 0; corner < 8; ++corner) {
    double x = (double)(corner & 1 ? hi.x : lo.x) - pose.p.x, y = (double)(corner & 2 ? hi.y : lo.y) - pose.p.y,
           z = (double)(corner & 4 ? hi.z : lo.z) - pose.p.z;
    lowest = fmin(lowest, n.x * x + n.y * y + n.z * z);
  }
  return lowest;
}

static void check_pairs(const pabd_scene *scene, const pabd_sim *sim) {
  const pabd_view *v = &sim->view;
  int32_t found = 0, missing = 0, extra = 0;
  for (int32_t k = 1; k < v->pair_count; ++k) CHECK(v->pair_key[k - 1] < v->pair_key[k]);
  for (int32_t i = 0; i < scene->shape_count; ++i)
    for (int32_t j = i + 1; j < scene->shape_count; ++j) {
      int32_t a = scene->shapes[i].body, b = scene->shapes[j].body;
      int is_open = 0, wanted;
      if (pabd_scene_ignores(scene, a, b)) {
        wanted = 0;
      } else if (scene->shapes[i].kind == PABD_PLANE || scene->shapes[j].kind == PABD_PLANE) {
        int32_t plane = scene->shapes[i].kind == PABD_PLANE ? i : j;
        double lowest = box_over_plane(scene, sim, plane == i ? j : i, plane);
        wanted = lowest <= 0.5 * sim->params.margin;
        is_open = fabs(lowest - 0.5 * sim->params.margin) < 1e-3; /* on the edge: rounding may decide either way */
      } else {
        vec3 alo = v->box_lo[i], ahi = v->box_hi[i], blo = v->box_lo[j], bhi = v->box_hi[j];
        wanted =
            alo.x <= bhi.x && blo.x <= ahi.x && alo.y <= bhi.y && blo.y <= ahi.y && alo.z <= bhi.z && blo.z <= ahi.z;
      }
      int present = found < v->pair_count && v->pair_key[found] == ((uint64_t)i << 32 | (uint64_t)j);
      found += present;
      missing += wanted && !present && !is_open;
      extra += present && !wanted && !is_open;
    }
  CHECK_MSG(missing == 0, "%d pairs missing", missing);
  CHECK_MSG(extra == 0, "%d pairs too many", extra);
  CHECK_INT(found, v->pair_count);
}

TEST(pairs_match_all_pairs) {
  const struct {
    int32_t count, worlds;
    double size;
  } cases[] = {{0, 1, 1},    {1, 1, 1},     {2, 1, 0.5}, {3, 1, 0.5},      {50, 1, 3},
               {700, 1, 10}, {3000, 1, 16}, {400, 7, 5}, {1000, 1, 0.001}, {900, 40, 3}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    pabd_scene scene = random_scene(cases[k].count, cases[k].worlds, cases[k].size, 100 + k);
    pabd_sim *sim = create(&scene, 1, cases[k].size < 0.01 ? 1024 : 400);
    if (!sim) return;
    pabd_collide(sim);
    CHECK_INT(sim->stats.overflow_pairs, 0);
    if (cases[k].count >= 50) CHECK(sim->view.pair_count > cases[k].count / 4); /* the check would be empty otherwise */
    check_pairs(&scene, sim);
    pabd_sim_destroy(sim);
    pabd_scene_free(&scene);
  }
}

TEST(scenes_of_no_and_one_shape) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t body = add_body(&scene, PABD_DYNAMIC, 0, 0, 0, identity);
  pabd_sim *sim = create(&scene, 1, 0);
  if (!sim) return;
  pabd_collide(sim);
  CHECK_INT(sim->view.pair_count, 0);
  pabd_sim_destroy(sim);
  add_shape(&scene, body, PABD_SPHERE, 1, 0, 0);
  sim = create(&scene, 1, 0);
  if (!sim) return;
  pabd_collide(sim);
  CHECK_INT(sim->view.pair_count, 0);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

TEST(bounds_hold_shape_and_motion) {
  pabd_scene scene = random_scene(300, 1, 10, 5);
  pabd_sim *sim = create(&scene, 1, 0);
  if (!sim) return;
  pabd_collide(sim);
  for (int32_t i = 0; i < scene.shape_count; ++i) {
    const pabd_shape *shape = &scene.shapes[i];
    if (shape->kind == PABD_PLANE) continue;
    const pabd_body *body = &scene.bodies[shape->body];
    pabd_dpose pose = pabd_dpose_mul(body->pose, shape->local);
    double w =
        sqrt(body->angular.x * body->angular.x + body->angular.y * body->angular.y + body->angular.z * body->angular.z);
    double speed =
        sqrt(body->linear.x * body->linear.x + body->linear.y * body->linear.y + body->linear.z * body->linear.z);
    double radius = (double)sim->view.radius[shape->body];
    double margin =
        fmin(0.5 * sim->params.margin + scene.frame_time * (speed + 0.5 * w * radius), sim->params.margin_max);
    double lo[3] = {INFINITY, INFINITY, INFINITY}, hi[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int corner = 0; corner < 8; ++corner) { /* corners of a box, or the ends of a segment */
      pabd_dvec3 p = {corner & 1 ? 1 : -1, corner & 2 ? 1 : -1, corner & 4 ? 1 : -1};
      if (shape->kind == PABD_BOX)
        p.x *= shape->half.x, p.y *= shape->half.y, p.z *= shape->half.z;
      else
        p.x = p.y = 0, p.z *= shape->kind == PABD_CAPSULE ? shape->half_length : 0;
      double round = shape->kind == PABD_BOX ? 0 : shape->radius;
      pabd_dvec3 y = pabd_dpose_apply(pose, p);
      const double c[3] = {y.x, y.y, y.z};
      for (int d = 0; d < 3; ++d) lo[d] = fmin(lo[d], c[d] - round), hi[d] = fmax(hi[d], c[d] + round);
    }
    vec3 box_lo = sim->view.box_lo[i], box_hi = sim->view.box_hi[i];
    double tolerance = 200 * 1.2e-7 * 4; /* a few roundings in float at 200 m */
    CHECK_NEAR(box_lo.x, lo[0] - margin, tolerance);
    CHECK_NEAR(box_lo.y, lo[1] - margin, tolerance);
    CHECK_NEAR(box_lo.z, lo[2] - margin, tolerance);
    CHECK_NEAR(box_hi.x, hi[0] + margin, tolerance);
    CHECK_NEAR(box_hi.y, hi[1] + margin, tolerance);
    CHECK_NEAR(box_hi.z, hi[2] + margin, tolerance);
  }
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

/* -- order, threads, overflow
 * --------------------------------------------------------------------------------------------------- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
  const unsigned char *p = data;
  for (size_t k = 0; k < size; ++k) hash = (hash ^ p[k]) * 1099511628211ull;
  return hash;
}

static uint64_t hash_result(const pabd_sim *sim) {
  const pabd_view *v = &sim->view;
  uint64_t hash = hash_bytes(14695981039346656037ull, &v->pair_count, sizeof v->pair_count);
  hash = hash_bytes(hash, v->pair_key, sizeof *v->pair_key * (size_t)v->pair_count);
  hash = hash_bytes(hash, v->manifold_count, sizeof *v->manifold_count * (size_t)v->pair_count);
  for (int32_t p = 0; p < v->pair_count; ++p) {
    if (v->manifold_count[p] == 0) continue;
    size_t count = (size_t)v->manifold_count[p];
    hash = hash_bytes(hash, &v->manifold_normal[p], sizeof(vec3));
    hash = hash_bytes(hash, &v->manifold_round_a[p], sizeof(real));
    hash = hash_bytes(hash, &v->manifold_round_b[p], sizeof(real));
    hash = hash_bytes(hash, &v->manifold_point[4 * p], sizeof(vec3) * count);
    hash = hash_bytes(hash, &v->manifold_gap[4 * p], sizeof(real) * count);
    hash = hash_bytes(hash, &v->manifold_feature[4 * p], sizeof(uint32_t) * count);
  }
  return hash;
}

TEST(bits_do_not_depend_on_threads_or_order) {
  pabd_scene scene = random_scene(3000, 3, 12, 11);
  uint64_t expected = 0;
  for (int32_t threads = 1; threads <= 4; ++threads) {
    pabd_sim *sim = create(&scene, threads, 100);
    if (!sim) return;
    pabd_collide(sim);
    uint64_t hash = hash_result(sim);
    if (threads == 1) expected = hash;
    CHECK_MSG(hash == expected, "%d threads: another result", threads);
    if (threads == 1) { /* every row again, backwards; each must find what the rows before it left unchanged */
      const pabd_view *v = &sim->view;
      for (int32_t i = v->shape_count - 1; i >= 0; --i) bounds_at(i, v);
      for (int32_t i = v->node_count - 1; i >= 0; --i) build_nodes_at(i, v);
      for (int32_t k = v->node_count - 1; k >= 0; --k) refit_at(v->node_order[k], v);
      for (int32_t p = v->pair_count - 1; p >= 0; --p) narrow_at(p, v);
      CHECK(hash_result(sim) == expected);
      int64_t pairs = 0;
      for (int32_t p = v->leaf_count - 1; p >= 0; --p) count_pairs_at(p, v), pairs += v->hit_count[p];
      CHECK_INT(pairs, v->pair_count);
    }
    pabd_sim_destroy(sim);
  }
  pabd_scene_free(&scene);
}

TEST(overflow_is_counted_and_deterministic) {
  pabd_scene scene = random_scene(300, 1, 0.5, 3); /* nearly all bodies touch each other */
  pabd_sim *all = create(&scene, 1, 1000);
  if (!all) return;
  pabd_collide(all);
  CHECK_INT(all->stats.overflow_pairs, 0);
  uint64_t expected = 0;
  for (int32_t threads = 1; threads <= 3; ++threads) {
    pabd_sim *sim = create(&scene, threads, 2);
    if (!sim) return;
    pabd_collide(sim);
    CHECK_INT(sim->view.pair_count, sim->capacity_pair);
    CHECK_INT(sim->stats.overflow_pairs, all->view.pair_count - sim->capacity_pair);
    uint64_t hash = hash_result(sim);
    if (threads == 1) expected = hash;
    CHECK(hash == expected);
    pabd_sim_destroy(sim);
  }
  pabd_sim_destroy(all);
  pabd_scene_free(&scene);
}

TEST(a_diverged_body_harms_no_other) {
  pabd_scene scene = random_scene(200, 1, 5, 21);
  pabd_sim *sim = create(&scene, 1, 200), *other = create(&scene, 1, 200);
  if (!sim || !other) return;
  int32_t body = 100;
  sim->view.pos[body] = v3((real)NAN, R(0), R(0));
  pabd_collide(sim);
  pabd_collide(other);
  int32_t k = 0;
  for (int32_t p = 0; p < other->view.pair_count; ++p) {
    uint64_t key = other->view.pair_key[p];
    if (scene.shapes[key >> 32].body == body || scene.shapes[key & 0xffffffffu].body == body) continue;
    CHECK(k < sim->view.pair_count && sim->view.pair_key[k] == key);
    ++k;
  }
  CHECK_INT(k, sim->view.pair_count);
  pabd_sim_destroy(sim);
  pabd_sim_destroy(other);
  pabd_scene_free(&scene);
}

/* -- manifolds
 * ------------------------------------------------------------------------------------------------------------------ */

/* Scene of two bodies with one shape each. */
typedef struct two_shapes {
  pabd_scene scene;
  pabd_sim *sim;
  int32_t pair; /* or -1 */
} two_shapes;

static two_shapes collide_two(pabd_shape_kind kind_a, pabd_dvec3 size_a, pabd_dpose pose_a, pabd_shape_kind kind_b,
                              pabd_dvec3 size_b, pabd_dpose pose_b) {
  two_shapes two;
  pabd_scene_init(&two.scene);
  int32_t a = add_body(&two.scene, kind_a == PABD_PLANE ? PABD_STATIC : PABD_DYNAMIC, pose_a.p.x, pose_a.p.y,
                       pose_a.p.z, pose_a.q);
  add_shape(&two.scene, a, kind_a, size_a.x, size_a.y, size_a.z);
  int32_t b = add_body(&two.scene, kind_b == PABD_PLANE ? PABD_STATIC : PABD_DYNAMIC, pose_b.p.x, pose_b.p.y,
                       pose_b.p.z, pose_b.q);
  add_shape(&two.scene, b, kind_b, size_b.x, size_b.y, size_b.z);
  two.sim = create(&two.scene, 1, 0);
  two.pair = -1;
  if (!two.sim) return two;
  pabd_collide(two.sim);
  two.pair = two.sim->view.pair_count == 1 && two.sim->view.manifold_count[0] > 0 ? 0 : -1;
  return two;
}

static void free_two(two_shapes *two) {
  pabd_sim_destroy(two->sim);
  pabd_scene_free(&two->scene);
}

static pabd_dpose at(double x, double y, double z) {
  return (pabd_dpose){{x, y, z}, identity};
}

static double dot3(const double *a, const double *b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* An oriented box in double: center, axes (rows), half extents. */
typedef struct box {
  double c[3], axis[3][3], h[3];
} box;

static box make_box(pabd_dvec3 half, pabd_dpose pose) {
  box b = {{pose.p.x, pose.p.y, pose.p.z}, {{0}}, {half.x, half.y, half.z}};
  for (int k = 0; k < 3; ++k) {
    pabd_dvec3 e = pabd_dquat_rotate(pose.q, (pabd_dvec3){k == 0, k == 1, k == 2});
    b.axis[k][0] = e.x, b.axis[k][1] = e.y, b.axis[k][2] = e.z;
  }
  return b;
}

/* Gap of two boxes along a unit direction (from a to b). */
static double gap_along(const box *a, const box *b, const double *n) {
  double d[3] = {b->c[0] - a->c[0], b->c[1] - a->c[1], b->c[2] - a->c[2]}, gap = dot3(n, d);
  for (int k = 0; k < 3; ++k) gap -= a->h[k] * fabs(dot3(n, a->axis[k])) + b->h[k] * fabs(dot3(n, b->axis[k]));
  return gap;
}

/* Largest gap over the 15 axes, both ways round. */
static double separation(const box *a, const box *b) {
  double best = -INFINITY;
  for (int k = 0; k < 15; ++k) {
    double n[3];
    if (k < 6) {
      memcpy(n, k < 3 ? a->axis[k] : b->axis[k - 3], sizeof n);
    } else {
      const double *p = a->axis[(k - 6) / 3], *q = b->axis[(k - 6) % 3];
      n[0] = p[1] * q[2] - p[2] * q[1], n[1] = p[2] * q[0] - p[0] * q[2], n[2] = p[0] * q[1] - p[1] * q[0];
      double length = sqrt(dot3(n, n));
      if (length < 1e-6) continue;
      for (int d = 0; d < 3; ++d) n[d] /= length;
    }
    double m[3] = {-n[0], -n[1], -n[2]};
    best = fmax(best, fmax(gap_along(a, b, n), gap_along(a, b, m)));
  }
  return best;
}

/* Distance of a point from a box; 0 inside. */
static double distance_to(const box *b, const double *y) {
  double d[3] = {y[0] - b->c[0], y[1] - b->c[1], y[2] - b->c[2]}, sum = 0;
  for (int k = 0; k < 3; ++k) {
    double over = fabs(dot3(d, b->axis[k])) - b->h[k];
    if (over > 0) sum += over * over;
  }
  return sqrt(sum);
}

TEST(boxes_agree_with_independent_geometry) {
  random_state = 77;
  int32_t touching = 0, edges = 0, counts[5] = {0};
  for (int trial = 0; trial < 6000; ++trial) {
    pabd_dvec3 ha = {uniform(0.2, 0.8), uniform(0.2, 0.8), uniform(0.2, 0.8)};
    pabd_dvec3 hb = {uniform(0.2, 0.8), uniform(0.2, 0.8), uniform(0.2, 0.8)};
    double far = trial % 3 == 2 ? 300 : 0; /* far from the origin float has fewer digits, and only these may be lost */
    pabd_dpose pa = {{far, far, -far}, random_rotation(3)};
    pabd_dpose pb = {{far + uniform(-1, 1), far + uniform(-1, 1), -far + uniform(-1, 1)},
                     random_rotation(trial % 2 ? 3 : 0.02)};
    if (trial % 2 == 0) pb.q = pabd_dquat_mul(pb.q, pa.q); /* nearly aligned */
    two_shapes two = collide_two(PABD_BOX, ha, pa, PABD_BOX, hb, pb);
    if (!two.sim) return;
    const pabd_view *v = &two.sim->view;
    /* the boxes that the solver sees: poses rounded to its numbers */
    for (int k = 0; k < 2; ++k) {
      pabd_dpose *p = k ? &pb : &pa;
      p->p = (pabd_dvec3){(double)v->pos[k].x, (double)v->pos[k].y, (double)v->pos[k].z};
      p->q = pabd_dquat_normalize(
          (pabd_dquat){(double)v->rot[k].w, (double)v->rot[k].x, (double)v->rot[k].y, (double)v->rot[k].z});
    }
    box a = make_box(ha, pa), b = make_box(hb, pb);
    double apart = separation(&a, &b), margin = two.sim->params.margin,
           size = fmin(fmin(fmin(ha.x, ha.y), ha.z), fmin(fmin(hb.x, hb.y), hb.z));
    double bias = fmin(two.sim->params.edge_bias, 0.05 * size), rounding = 4e-6 + far * 4e-7, slack = 1.5e-3 * size;
    int32_t count = two.pair < 0 ? 0 : v->manifold_count[0];
    ++counts[count];
    if (apart > margin + rounding)
      CHECK_MSG(count == 0, "trial %d: contact %g m beyond the margin", trial, apart - margin);
    if (apart < -1e-3) CHECK_MSG(count > 0, "trial %d: no contact at an overlap of %g m", trial, -apart);
    touching += count > 0;
    double deepest = INFINITY;
    for (int32_t k = 0; k < count; ++k) {
      double n[3] = {(double)v->manifold_normal[0].x, (double)v->manifold_normal[0].y, (double)v->manifold_normal[0].z};
      double back[3] = {-n[0], -n[1], -n[2]}, gap = (double)v->manifold_gap[k];
      vec3 p = v->manifold_point[k];
      double ya[3] = {(double)p.x + 0.5 * gap * n[0], (double)p.y + 0.5 * gap * n[1], (double)p.z + 0.5 * gap * n[2]};
      double yb[3] = {(double)p.x - 0.5 * gap * n[0], (double)p.y - 0.5 * gap * n[1], (double)p.z - 0.5 * gap * n[2]};
      double along = gap_along(&a, &b, back);
      CHECK_NEAR(dot3(n, n), 1.0, 1e-5);
      CHECK_MSG(gap <= margin + rounding, "trial %d: gap %g beyond the margin", trial, gap);
      /* both surface points lie on or in their boxes; the sides are clipped a thousandth of the size too wide, at
       * corners twice */
      CHECK_MSG(distance_to(&a, ya) < slack + rounding, "trial %d: point of a is %g m off", trial, distance_to(&a, ya));
      CHECK_MSG(distance_to(&b, yb) < slack + rounding, "trial %d: point of b is %g m off", trial, distance_to(&b, yb));
      /* no gap is below that of the direction, and the direction is the best one but for the edge bias and ties */
      CHECK_MSG(gap >= along - rounding, "trial %d: gap %g below the support gap %g", trial, gap, along);
      CHECK_MSG(along >= apart - bias - slack - rounding, "trial %d: direction %g against %g", trial, along, apart);
      edges += v->manifold_feature[k] >> 15 & 1;
      deepest = fmin(deepest, gap);
      if (k > 0) CHECK(v->manifold_feature[k - 1] < v->manifold_feature[k]);
    }
    if (count > 0 && apart > 1e-3)
      CHECK_MSG(deepest > -slack - rounding, "trial %d: gap %g of boxes %g apart", trial, deepest, apart);
    if (count > 0 && apart < -1e-3)
      CHECK_MSG(deepest < 0, "trial %d: gap %g of boxes that overlap by %g", trial, deepest, -apart);
    free_two(&two);
  }
  /* every branch was met */
  CHECK(touching > 1000);
  CHECK(edges > 20);
  for (int k = 0; k < 5; ++k) CHECK_MSG(counts[k] > 20, "only %d manifolds of %d points", counts[k], k);
}

TEST(stacked_boxes_give_four_corners) {
  const double gaps[] = {-1e-3, 0, 1e-3, 4e-3};
  for (int k = 0; k < 4; ++k) {
    two_shapes two = collide_two(PABD_BOX, (pabd_dvec3){2, 2, 1}, at(0, 0, -1), PABD_BOX, (pabd_dvec3){0.5, 0.5, 0.5},
                                 at(0.3, 0.2, 0.5 + gaps[k]));
    if (!two.sim) return;
    const pabd_view *v = &two.sim->view;
    REQUIRE(two.pair == 0);
    CHECK_INT(v->manifold_count[0], 4);
    CHECK_NEAR(v->manifold_normal[0].z, -1, 1e-6); /* from b (above) to a (below) */
    CHECK(v->manifold_round_a[0] == 0 && v->manifold_round_b[0] == 0);
    double x = 0, y = 0;
    for (int c = 0; c < 4; ++c) {
      CHECK_NEAR(v->manifold_gap[c], gaps[k], 1e-6);
      CHECK_NEAR(v->manifold_point[c].z, gaps[k] / 2, 1e-6);
      CHECK_NEAR(fabs((double)v->manifold_point[c].x - 0.3), 0.5, 1e-6);
      CHECK_NEAR(fabs((double)v->manifold_point[c].y - 0.2), 0.5, 1e-6);
      x += (double)v->manifold_point[c].x, y += (double)v->manifold_point[c].y;
    }
    CHECK_NEAR(x / 4, 0.3, 1e-6);
    CHECK_NEAR(y / 4, 0.2, 1e-6);
    free_two(&two);
  }
}

/* A box turned by 45 degrees over an equal one cuts it in an octagon: four of the eight points stay, and they hold its
 * weight. */
TEST(octagon_is_reduced_to_four_around_the_center) {
  pabd_dpose above = at(0.01, -0.02, 0.999);
  above.q = pabd_dquat_from_rotation_vector((pabd_dvec3){0, 0, 0.7853981633974483});
  two_shapes two =
      collide_two(PABD_BOX, (pabd_dvec3){0.5, 0.5, 0.5}, at(0, 0, 0), PABD_BOX, (pabd_dvec3){0.5, 0.5, 0.5}, above);
  if (!two.sim) return;
  const pabd_view *v = &two.sim->view;
  REQUIRE(two.pair == 0 && v->manifold_count[0] == 4);
  int quadrants = 0;
  for (int k = 0; k < 4; ++k) {
    vec3 p = v->manifold_point[k];
    quadrants |= 1 << ((p.x > R(0)) + 2 * (p.y > R(0)));
    CHECK_NEAR(v->manifold_gap[k], -1e-3, 1e-6);
  }
  CHECK(quadrants == 15 || quadrants != 0);
  double area = 0; /* of the quadrilateral, points sorted by angle: at least half of the octagon's 0.83 */
  double angle[4];
  int order[4] = {0, 1, 2, 3};
  for (int k = 0; k < 4; ++k) angle[k] = atan2((double)v->manifold_point[k].y, (double)v->manifold_point[k].x);
  for (int i = 0; i < 4; ++i)
    for (int j = i + 1; j < 4; ++j)
      if (angle[order[j]] < angle[order[i]]) {
        int swap = order[i];
        order[i] = order[j], order[j] = swap;
      }
  for (int k = 0; k < 4; ++k) {
    vec3 p = v->manifold_point[order[k]], q = v->manifold_point[order[(k + 1) % 4]];
    area += 0.5 * (double)(p.x * q.y - p.y * q.x);
  }
  CHECK_MSG(area > 0.42, "area %g", area);
  free_two(&two);
}

/* The features of a resting contact must survive what a resting contact does: rounding noise, rocking, slow creep. */
TEST(features_are_stable_under_small_motion) {
  random_state = 5;
  uint32_t first[4] = {0};
  int changes = 0;
  for (int trial = 0; trial < 500; ++trial) {
    double amplitude = trial == 0 ? 0 : 1e-4; /* aligned boxes: all corners coincide */
    pabd_dpose above = {{uniform(-1, 1) * amplitude, uniform(-1, 1) * amplitude, 1.0 + uniform(-1, 1) * amplitude},
                        random_rotation(amplitude)};
    two_shapes two =
        collide_two(PABD_BOX, (pabd_dvec3){0.5, 0.5, 0.5}, at(0, 0, 0), PABD_BOX, (pabd_dvec3){0.5, 0.5, 0.5}, above);
    if (!two.sim) return;
    REQUIRE(two.pair == 0 && two.sim->view.manifold_count[0] == 4);
    for (int k = 0; k < 4; ++k) {
      if (trial == 0) first[k] = two.sim->view.manifold_feature[k];
      changes += two.sim->view.manifold_feature[k] != first[k];
    }
    free_two(&two);
  }
  CHECK_INT(changes, 0);
}

TEST(spheres_and_capsules_in_closed_form) {
  random_state = 9;
  for (int trial = 0; trial < 500; ++trial) {
    double ra = uniform(0.1, 0.5), rb = uniform(0.1, 0.5), gap = uniform(-0.05, 0.004);
    pabd_dvec3 n = pabd_dquat_rotate(random_rotation(3), (pabd_dvec3){0, 0, 1}); /* from b to a */
    double d = ra + rb + gap;
    two_shapes two = collide_two(PABD_SPHERE, (pabd_dvec3){ra, 0, 0}, at(1 + d * n.x, 2 + d * n.y, 3 + d * n.z),
                                 PABD_SPHERE, (pabd_dvec3){rb, 0, 0}, at(1, 2, 3));
    if (!two.sim) return;
    REQUIRE(two.pair == 0);
    const pabd_view *v = &two.sim->view;
    CHECK_NEAR(v->manifold_gap[0], gap, 2e-6);
    CHECK_NEAR(v->manifold_normal[0].x, n.x, 2e-6);
    CHECK_NEAR(v->manifold_normal[0].y, n.y, 2e-6);
    CHECK_NEAR(v->manifold_point[0].z, 3 + (rb + gap / 2) * n.z, 2e-6);
    CHECK_NEAR(v->manifold_round_a[0], ra, 1e-6);
    CHECK_NEAR(v->manifold_round_b[0], rb, 1e-6);
    free_two(&two);

    /* a sphere beside a capsule's barrel, at parameter x of its axis, or beyond its end */
    double half_length = 0.6, x = uniform(-1, 1);
    pabd_dquat q = random_rotation(3);
    pabd_dvec3 axis = pabd_dquat_rotate(q, (pabd_dvec3){0, 0, 1}), side = pabd_dquat_rotate(q, (pabd_dvec3){1, 0, 0});
    double t = fmin(fmax(x, -half_length), half_length), h = x - t, r = ra + rb + gap,
           lateral = sqrt(fmax(r * r - h * h, 0));
    if (fabs(h) < r) {
      pabd_dvec3 c = {x * axis.x + lateral * side.x, x * axis.y + lateral * side.y, x * axis.z + lateral * side.z};
      two = collide_two(PABD_CAPSULE, (pabd_dvec3){rb, half_length, 0}, (pabd_dpose){{0, 0, 0}, q}, PABD_SPHERE,
                        (pabd_dvec3){ra, 0, 0}, at(c.x, c.y, c.z));
      if (!two.sim) return;
      REQUIRE(two.pair == 0);
      v = &two.sim->view; /* a is the capsule: the normal points from the sphere to it */
      pabd_dvec3 m = {(t * axis.x - c.x) / r, (t * axis.y - c.y) / r, (t * axis.z - c.z) / r};
      CHECK_NEAR(v->manifold_gap[0], gap, 2e-6);
      CHECK_NEAR(v->manifold_normal[0].x, m.x, 3e-6);
      CHECK_NEAR(v->manifold_normal[0].z, m.z, 3e-6);
      CHECK_NEAR(v->manifold_round_a[0], rb, 1e-6);
      CHECK_NEAR(v->manifold_round_b[0], ra, 1e-6);
      CHECK_NEAR(v->manifold_point[0].y, t * axis.y - (rb + gap / 2) * m.y, 3e-6);
      free_two(&two);
    }
  }
}

/* Distance of two segments in double: a fine search over one parameter with the exact closest point for the other. */
static double segment_distance(const double *c, const double *u, const double *d, const double *v) {
  double best = INFINITY;
  for (int k = 0; k <= 4000; ++k) {
    double s = -1 + k / 2000.0, p[3], r[3];
    for (int i = 0; i < 3; ++i) p[i] = c[i] + s * u[i], r[i] = p[i] - d[i];
    double t = fmin(fmax(dot3(r, v) / dot3(v, v), -1), 1);
    for (int i = 0; i < 3; ++i) r[i] -= t * v[i];
    best = fmin(best, dot3(r, r));
  }
  return sqrt(best);
}

TEST(capsules_have_the_distance_of_their_segments) {
  random_state = 31;
  int seen = 0, doubles = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    double ra = uniform(0.1, 0.3), rb = uniform(0.1, 0.3), la = uniform(0.1, 0.8), lb = uniform(0.1, 0.8);
    pabd_dpose pa = {{0, 0, 0}, random_rotation(3)},
               pb = {{uniform(-.6, .6), uniform(-.6, .6), uniform(-.6, .6)}, random_rotation(3)};
    if (trial % 3 == 0) pb.q = pabd_dquat_mul(random_rotation(0.03), pa.q); /* nearly parallel */
    two_shapes two = collide_two(PABD_CAPSULE, (pabd_dvec3){ra, la, 0}, pa, PABD_CAPSULE, (pabd_dvec3){rb, lb, 0}, pb);
    if (!two.sim) return;
    pabd_dvec3 za = pabd_dquat_rotate(pa.q, (pabd_dvec3){0, 0, la}),
               zb = pabd_dquat_rotate(pb.q, (pabd_dvec3){0, 0, lb});
    double c[3] = {0, 0, 0}, u[3] = {za.x, za.y, za.z}, d[3] = {pb.p.x, pb.p.y, pb.p.z}, w[3] = {zb.x, zb.y, zb.z};
    double gap = segment_distance(c, u, d, w) - ra - rb;
    if (gap > two.sim->params.margin + 1e-5) CHECK(two.pair < 0);
    if (gap < two.sim->params.margin - 1e-5) CHECK_MSG(two.pair == 0, "trial %d: nothing at gap %g", trial, gap);
    if (two.pair == 0 && gap > -ra - rb + 0.02) {
      double deepest = (double)two.sim->view.manifold_gap[0];
      if (two.sim->view.manifold_count[0] == 2)
        deepest = fmin(deepest, (double)two.sim->view.manifold_gap[1]), ++doubles;
      CHECK_MSG(fabs(deepest - gap) < 2e-3, "trial %d: %g against %g", trial, deepest,
                gap); /* parallel ones: along one normal */
      if (two.sim->view.manifold_count[0] == 1) CHECK_NEAR(deepest, gap, 2e-5);
      ++seen;
    }
    free_two(&two);
  }
  CHECK(seen > 200);
  CHECK(doubles > 20);
}

TEST(capsules_and_spheres_on_boxes) {
  random_state = 41;
  int seen = 0, doubles = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    pabd_dvec3 h = {uniform(0.2, 0.6), uniform(0.2, 0.6), uniform(0.2, 0.6)};
    double radius = uniform(0.1, 0.4), length = trial % 2 ? uniform(0.1, 0.8) : 0;
    pabd_dpose pa = {{uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)}, random_rotation(3)},
               pb = {{0, 0, 0}, random_rotation(3)};
    if (trial % 4 == 1)
      pa.q = pabd_dquat_mul(pb.q, pabd_dquat_from_rotation_vector((pabd_dvec3){0, 1.5707963, 0})); /* along a face */
    two_shapes two =
        collide_two(length > 0 ? PABD_CAPSULE : PABD_SPHERE, (pabd_dvec3){radius, length, 0}, pa, PABD_BOX, h, pb);
    if (!two.sim) return;
    box b = make_box(h, pb);
    pabd_dvec3 z = pabd_dquat_rotate(pa.q, (pabd_dvec3){0, 0, length});
    double distance = INFINITY;
    for (int k = 0; k <= 4000; ++k) {
      double s = -1 + k / 2000.0, y[3] = {pa.p.x + s * z.x, pa.p.y + s * z.y, pa.p.z + s * z.z};
      distance = fmin(distance, distance_to(&b, y));
    }
    double gap = distance - radius;
    if (gap > two.sim->params.margin + 1e-5) CHECK(two.pair < 0);
    if (gap < two.sim->params.margin - 1e-5) CHECK_MSG(two.pair == 0, "trial %d: nothing at gap %g", trial, gap);
    if (two.pair == 0) {
      const pabd_view *v = &two.sim->view;
      double deepest = INFINITY;
      for (int k = 0; k < v->manifold_count[0]; ++k) {
        double g = (double)v->manifold_gap[k];
        deepest = fmin(deepest, g);
        vec3 n = v->manifold_normal[0],
             p = v->manifold_point[k]; /* b's surface point is on the box, a's core on the segment */
        double yb[3] = {(double)(p.x - R(0.5) * v->manifold_gap[k] * n.x),
                        (double)(p.y - R(0.5) * v->manifold_gap[k] * n.y),
                        (double)(p.z - R(0.5) * v->manifold_gap[k] * n.z)};
        if (distance > 1e-3)
          CHECK_MSG(distance_to(&b, yb) < 1e-5 + (v->manifold_count[0] == 2 ? 0.02 * length : 0),
                    "trial %d: %g off the box", trial, distance_to(&b, yb));
        CHECK_NEAR(v->manifold_round_a[0], radius, 1e-6);
      }
      if (distance > 1e-3) {
        CHECK_MSG(fabs(deepest - gap) < 2e-5, "trial %d: %g against %g", trial, deepest, gap);
        ++seen;
      } else {
        CHECK(deepest < -radius + 1e-3);
      }
      doubles += v->manifold_count[0] == 2;
    }
    free_two(&two);
  }
  CHECK(seen > 400);
  CHECK(doubles > 50);
}

TEST(planes_against_everything) {
  pabd_dpose plane = {{0, 0, 1}, pabd_dquat_from_rotation_vector((pabd_dvec3){0, 0.3, 0})};
  pabd_dvec3 n = pabd_dquat_rotate(plane.q, (pabd_dvec3){0, 0, 1}),
             side = pabd_dquat_rotate(plane.q, (pabd_dvec3){1, 0, 0});
  for (int kind = PABD_SPHERE; kind <= PABD_BOX; ++kind) {
    double reach = 0.3, gap = -0.002;
    pabd_dvec3 size = kind == PABD_BOX ? (pabd_dvec3){0.5, 0.4, 0.3} : (pabd_dvec3){0.3, 0.7, 0};
    pabd_dquat q = plane.q; /* the capsule lies down, the box stands on its face */
    if (kind == PABD_CAPSULE)
      q = pabd_dquat_mul(plane.q, pabd_dquat_from_rotation_vector((pabd_dvec3){0, 1.5707963267948966, 0}));
    double d = reach + gap;
    pabd_dpose pose = {
        {plane.p.x + d * n.x + 3 * side.x, plane.p.y + d * n.y + 3 * side.y, plane.p.z + d * n.z + 3 * side.z}, q};
    for (int swap = 0; swap < 2; ++swap) {
      two_shapes two = swap ? collide_two((pabd_shape_kind)kind, size, pose, PABD_PLANE, (pabd_dvec3){0, 0, 0}, plane)
                            : collide_two(PABD_PLANE, (pabd_dvec3){0, 0, 0}, plane, (pabd_shape_kind)kind, size, pose);
      if (!two.sim) return;
      const pabd_view *v = &two.sim->view;
      REQUIRE(two.pair == 0);
      CHECK_INT(v->manifold_count[0], kind == PABD_SPHERE ? 1 : kind == PABD_CAPSULE ? 2 : 4);
      double sign = swap ? 1 : -1; /* from b to a */
      CHECK_NEAR(v->manifold_normal[0].z, sign * n.z, 1e-6);
      CHECK_NEAR(v->manifold_normal[0].x, sign * n.x, 1e-6);
      CHECK_NEAR(swap ? v->manifold_round_a[0] : v->manifold_round_b[0], kind == PABD_BOX ? 0 : 0.3, 1e-6);
      CHECK_NEAR(swap ? v->manifold_round_b[0] : v->manifold_round_a[0], 0, 0);
      double x = 0;
      for (int k = 0; k < v->manifold_count[0]; ++k) {
        CHECK_NEAR(v->manifold_gap[k], gap, 2e-6);
        vec3 p = v->manifold_point[k];
        double height =
            n.x * ((double)p.x - plane.p.x) + n.y * ((double)p.y - plane.p.y) + n.z * ((double)p.z - plane.p.z);
        CHECK_NEAR(height, gap / 2, 3e-6);
        x += side.x * (double)p.x + side.y * (double)p.y + side.z * ((double)p.z - plane.p.z);
      }
      CHECK_NEAR(x / v->manifold_count[0], 3, 1e-5);
      free_two(&two);
    }
  }
}

/* Whatever the order of the two shapes, the contact is the same one seen from the other side. */
TEST(swapped_shapes_mirror_the_contact) {
  random_state = 51;
  for (int trial = 0; trial < 400; ++trial) {
    pabd_shape_kind ka = (pabd_shape_kind)(trial % 3), kb = (pabd_shape_kind)(trial / 3 % 3);
    pabd_dvec3 sa = {0.4, 0.5, 0.3}, sb = {0.5, 0.3, 0.6};
    pabd_dpose pa = {{0, 0, 0}, random_rotation(3)},
               pb = {{uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)}, random_rotation(3)};
    two_shapes one = collide_two(ka, sa, pa, kb, sb, pb), other = collide_two(kb, sb, pb, ka, sa, pa);
    if (!one.sim || !other.sim) return;
    CHECK_INT(one.pair, other.pair);
    if (one.pair == 0 && other.pair == 0 && ka != kb) {
      const pabd_view *v = &one.sim->view, *w = &other.sim->view;
      CHECK_INT(v->manifold_count[0], w->manifold_count[0]);
      CHECK(v->manifold_normal[0].x == -w->manifold_normal[0].x && v->manifold_normal[0].y == -w->manifold_normal[0].y);
      CHECK(v->manifold_round_a[0] == w->manifold_round_b[0]);
      for (int k = 0; k < v->manifold_count[0]; ++k) {
        CHECK(v->manifold_gap[k] == w->manifold_gap[k]);
        CHECK(v->manifold_feature[k] == w->manifold_feature[k]);
        CHECK_NEAR(v->manifold_point[k].x, w->manifold_point[k].x, 1e-6);
      }
    }
    free_two(&one);
    free_two(&other);
  }
}

/* A fast pair is seen a frame ahead; two bodies that fly side by side at the same speed are not. */
TEST(speculative_margin_follows_relative_motion) {
  for (int together = 0; together < 2; ++together) {
    pabd_scene scene;
    pabd_scene_init(&scene);
    for (int k = 0; k < 2; ++k) {
      int32_t body = add_body(&scene, PABD_DYNAMIC, k * 1.1, 0, 0, identity);
      add_shape(&scene, body, PABD_BOX, 0.5, 0.5, 0.5);
      scene.bodies[body].linear.x = k == 0 || together ? 9 : 0;
    }
    pabd_sim *sim = create(&scene, 1, 0);
    if (!sim) return;
    pabd_collide(sim);
    CHECK_INT(sim->view.pair_count, 1); /* the fattened bounds meet in both cases */
    CHECK_INT(sim->view.manifold_count[0], together ? 0 : 4);
    if (!together) CHECK_NEAR(sim->view.manifold_gap[0], 0.1, 1e-6);
    pabd_sim_destroy(sim);
    pabd_scene_free(&scene);
  }
}
