/* Cases: every shipped file loads, the canonical scenes have the contract's numbers, parameters and hash behave, and
 * every bad file is refused in one line.
 *
 * Positions and masses are checked against formulas written out here, not against the generators. Runs in the root
 * folder. */
#include <dirent.h>
#include <errno.h>

#include "expression.h"
#include "generate.h"
#include "judge.h"
#include "nearest.h"
#include "pabd_case.h"
#include "test.h"

#define PI 3.14159265358979323846

static pabd_case loaded; /* too large for some stacks; one at a time */

static pabd_status load(const char *name, const char *const *overrides, int32_t count, pabd_error *error) {
  char path[300];
  snprintf(path, sizeof path, "cases/%s.json", name);
  return pabd_case_load(path, overrides, count, &loaded, error);
}

/* Loads or reports; up to four overrides, ended by NULL. */
static int open_case(const char *name, const char *a, const char *b, const char *c) {
  const char *overrides[] = {a, b, c};
  int32_t count = a == NULL ? 0 : b == NULL ? 1 : c == NULL ? 2 : 3;
  pabd_error error;
  return CHECK_MSG(load(name, overrides, count, &error) == PABD_OK, "%s: %s", name, error.text);
}

static void near3(pabd_dvec3 v, double x, double y, double z, double tolerance) {
  CHECK_NEAR(v.x, x, tolerance);
  CHECK_NEAR(v.y, y, tolerance);
  CHECK_NEAR(v.z, z, tolerance);
}

static pabd_dvec3 anchor_of(const pabd_scene *s, int32_t joint, int side) {
  const pabd_joint *j = &s->joints[joint];
  int32_t body = side == 0 ? j->body_a : j->body_b;
  pabd_dpose frame = side == 0 ? j->frame_a : j->frame_b;
  return body == PABD_WORLD ? frame.p : pabd_dpose_apply(s->bodies[body].pose, frame.p);
}

static double kinetic(const pabd_scene *s) {
  double sum = 0;
  for (int32_t i = 0; i < s->body_count; ++i) {
    const pabd_body *b = &s->bodies[i];
    if (b->motion != PABD_DYNAMIC) continue;
    pabd_dvec3 w = pabd_dquat_rotate(pabd_dquat_conj(b->pose.q), b->angular);
    sum += 0.5 * b->mass * (b->linear.x * b->linear.x + b->linear.y * b->linear.y + b->linear.z * b->linear.z) +
           0.5 * (b->inertia.x * w.x * w.x + b->inertia.y * w.y * w.y + b->inertia.z * w.z * w.z);
  }
  return sum;
}

/* ---- All files ---- */

TEST(all_shipped_cases_load) {
  DIR *folder = opendir("cases");
  REQUIRE(folder != NULL);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)length - 5, entry->d_name);
    ++count;
    if (!open_case(name, NULL, NULL, NULL)) continue;
    CHECK_STR(loaded.id, name);
    CHECK_MSG(loaded.frame_count > 0 && loaded.energy_ref > 0 && loaded.metric_count > 0, "%s", name);
    CHECK_NEAR(loaded.frame_count * loaded.scene.frame_time, loaded.duration, 1e-9);
    CHECK_MSG(strlen(loaded.hash) == 16, "%s: hash %s", name, loaded.hash);
    CHECK_MSG(loaded.title[0] != '\0' && loaded.claim[0] != '\0' && loaded.tags[0] != '\0', "%s", name);
    // Joints start closed, and no two bodies of a canonical scene share a name.
    for (int32_t j = 0; j < loaded.scene.joint_count; ++j) {
      pabd_dvec3 a = anchor_of(&loaded.scene, j, 0), b = anchor_of(&loaded.scene, j, 1);
      double gap = sqrt(pow(a.x - b.x, 2) + pow(a.y - b.y, 2) + pow(a.z - b.z, 2));
      pabd_joint_kind kind = loaded.scene.joints[j].kind;
      double expected = kind == PABD_DISTANCE ? loaded.scene.joints[j].rest : 0.0;
      if (kind == PABD_SPRING || strcmp(name, "al-one") == 0) continue;
      CHECK_MSG(fabs(gap - expected) < 1e-12, "%s: joint %d starts %g m open", name, (int)j, gap - expected);
    }
    pabd_case_free(&loaded);
    CHECK(loaded.scene.bodies == NULL);
  }
  closedir(folder);
  CHECK_MSG(count >= 25, "only %d case files", count);
}

TEST(contract_cases_are_there) {
  static const char *const ids[] = {"stack",   "stack-rough", "chain",        "chain-hanging", "al-one",   "al-chain",
                                    "pair",    "pile",        "pile-settled", "pendulum",      "spin",     "slide",
                                    "incline", "rope",        "hinge-chain",  "slider-chain",  "ring",     "tower",
                                    "wall",    "pyramid",     "landing",      "loaded-chain",  "hit-stack"};
  for (size_t k = 0; k < sizeof ids / sizeof ids[0]; ++k) {
    if (open_case(ids[k], NULL, NULL, NULL)) pabd_case_free(&loaded);
  }
}

TEST(judge_writes_what_is_expected) {
  // A bound on a key that nobody writes would never bind: feed the judge the start pose three times and look for each
  // key.
  static const char *const variants[][3] = {{"stack", NULL},
                                            {"stack", "ratio=100"},
                                            {"hit-stack", NULL},
                                            {"chain", NULL},
                                            {"chain", "ratio=1e4"},
                                            {"chain-hanging", NULL},
                                            {"rope", NULL},
                                            {"hinge-chain", NULL},
                                            {"ring", NULL},
                                            {"slider-chain", NULL},
                                            {"landing", NULL},
                                            {"loaded-chain", NULL},
                                            {"pendulum", NULL},
                                            {"pair", NULL},
                                            {"spin", NULL},
                                            {"pile", "n=3"},
                                            {"pile", "n=12"},
                                            {"pile-settled", "n=3"},
                                            {"tower", NULL},
                                            {"wall", NULL},
                                            {"pyramid", "base=4"},
                                            {"slide", NULL},
                                            {"incline", "offset_deg=0.5"},
                                            {"incline", NULL},
                                            {"free-fall", NULL},
                                            {"pile", "ball=false", "n=3"}};
  int bounds = 0;
  for (size_t v = 0; v < sizeof variants / sizeof variants[0]; ++v) {
    if (!open_case(variants[v][0], variants[v][1], variants[v][2], NULL)) continue;
    const pabd_scene *s = &loaded.scene;
    double *pose = calloc((size_t)s->body_count, 7 * sizeof *pose),
           *velocity = calloc((size_t)s->body_count, 6 * sizeof *velocity);
    for (int32_t i = 0; i < s->body_count; ++i) {
      const pabd_body *b = &s->bodies[i];
      double p[7] = {b->pose.p.x, b->pose.p.y, b->pose.p.z, b->pose.q.w, b->pose.q.x, b->pose.q.y, b->pose.q.z};
      memcpy(pose + 7 * (size_t)i, p, sizeof p);
    }
    if (loaded.settle_time > 0) loaded.settle_time = 0;  // three frames reach no other window
    pabd_judge *judge = pabd_judge_create(&loaded);
    pabd_metrics metrics;
    pabd_metrics_init(&metrics);
    for (int32_t frame = 0; frame < 3; ++frame) CHECK(pabd_judge_frame(judge, frame, pose, velocity, 0) == PABD_OK);
    CHECK(pabd_judge_finish(judge, &metrics) == PABD_OK);
    for (int32_t k = 0; k < loaded.expect_count; ++k, ++bounds) {
      CHECK_MSG(pabd_metrics_get(&metrics, loaded.expects[k].metric) != NULL, "%s %s: the judge writes no \"%s\"",
                variants[v][0], variants[v][1] ? variants[v][1] : "", loaded.expects[k].metric);
    }
    pabd_judge_destroy(judge);
    pabd_metrics_free(&metrics);
    free(pose);
    free(velocity);
    pabd_case_free(&loaded);
  }
  CHECK_MSG(bounds > 50, "only %d bounds", bounds);
}

/* ---- The contract's numbers ---- */

TEST(stack) {
  if (!open_case("stack", "gap=-0.001", "ratio=100", NULL)) return;
  const pabd_scene *s = &loaded.scene;
  REQUIRE(CHECK_INT(s->body_count, 7));
  CHECK(s->bodies[0].motion == PABD_STATIC);
  CHECK_NEAR(s->bodies[0].pose.p.z + s->shapes[0].half.z, 0, 0);
  near3(s->shapes[0].half, 100, 100, 1, 0);
  for (int i = 0; i < 6; ++i) {
    const pabd_body *b = &s->bodies[i + 1];
    CHECK_NEAR(b->mass, pow(100, i), 1e-9 * b->mass);
    CHECK_NEAR(b->inertia.x, b->mass / 6, 1e-12 * b->mass);
    near3(b->pose.p, 0, 0, 0.5 + i - 0.001 * (i + 1), 1e-14);
  }
  CHECK_NEAR(s->friction[0], 0.5, 0);
  CHECK_NEAR(s->restitution[0], 0, 0);
  CHECK_NEAR(loaded.duration, 10, 0);
  CHECK_INT(loaded.frame_count, 600);
  CHECK_NEAR(loaded.settle_time, 2, 0);
  near3(s->gravity, 0, 0, -9.81, 0);
  pabd_case_free(&loaded);
}

TEST(stack_rough) {
  double first = 0;
  for (int seed = 1; seed <= 24; ++seed) {
    char text[32];
    snprintf(text, sizeof text, "seed=%d", seed);
    if (!open_case("stack-rough", text, NULL, NULL)) return;
    double below = 0;
    for (int i = 0; i < 6; ++i) {
      const pabd_body *b = &loaded.scene.bodies[i + 1];
      double gap = b->pose.p.z - (0.5 + i) - below, angle = 2 * acos(fmin(1, b->pose.q.w));
      below += gap;
      CHECK(gap >= 0 && gap <= 0.02);
      CHECK(fabs(b->pose.p.x) <= 0.05 && fabs(b->pose.p.y) <= 0.05);
      CHECK(angle <= sqrt(3) * PI / 180 + 1e-7);
      CHECK_NEAR(b->mass, pow(10, i), 1e-9 * b->mass);
    }
    if (seed == 1) first = loaded.scene.bodies[1].pose.p.x;
    if (seed == 2) CHECK(loaded.scene.bodies[1].pose.p.x != first);
    pabd_case_free(&loaded);
  }
}

TEST(random_numbers_are_splitmix64) {
  // Published first outputs for the seed 1234567: 6457827717110365317, 3203168211198807973.
  uint64_t state = 1234567;
  CHECK_NEAR(splitmix64_uniform(&state), (double)(6457827717110365317u >> 11) * 0x1p-53, 0);
  CHECK_NEAR(splitmix64_uniform(&state), (double)(3203168211198807973u >> 11) * 0x1p-53, 0);
}

static void check_chain(int n, double ratio, int along_z) {
  const pabd_scene *s = &loaded.scene;
  REQUIRE(CHECK_INT(s->body_count, n + 1));
  REQUIRE(CHECK_INT(s->joint_count, n + 1));
  for (int i = 0; i <= n; ++i) {
    double at = i == n ? n + 0.5 : i + 0.5, edge = i == n ? 1 : 0.2;
    near3(s->bodies[i].pose.p, along_z ? 0 : at, 0, along_z ? -at : 0, 1e-12);
    CHECK_NEAR(s->bodies[i].mass, i == n ? ratio : 1, 0);
    near3(s->shapes[i].half, 0.5, 0.5 * edge, 0.5 * edge, 1e-15);
    // The long axis lies along the chain.
    pabd_dvec3 x = pabd_dquat_rotate(s->bodies[i].pose.q, (pabd_dvec3){1, 0, 0});
    near3(x, along_z ? 0 : 1, 0, along_z ? -1 : 0, 1e-15);
    near3(anchor_of(s, i, 0), along_z ? 0 : i, 0, along_z ? -i : 0, 1e-12);
    near3(anchor_of(s, i, 1), along_z ? 0 : i, 0, along_z ? -i : 0, 1e-12);
    CHECK_INT(s->joints[i].body_a, i - 1);
    CHECK_INT(s->joints[i].body_b, i);
  }
  for (int i = 0; i < n; ++i) CHECK(pabd_scene_ignores(s, 0, i + 1));
  CHECK_NEAR(loaded.energy_ref, 9.81 * (0.5 * n * n + ratio * (n + 0.5)), 1e-9 * loaded.energy_ref);
}

TEST(chain) {
  if (!open_case("chain", NULL, NULL, NULL)) return;
  check_chain(10, 1000, 0);
  CHECK_STR(loaded.scene.bodies[10].name, "end");
  pabd_case_free(&loaded);
  if (!open_case("chain", "n=20", "ratio=10000", NULL)) return;
  check_chain(20, 10000, 0);
  pabd_case_free(&loaded);
  if (!open_case("chain-hanging", NULL, NULL, NULL)) return;
  check_chain(10, 100, 1);
  pabd_case_free(&loaded);
}

TEST(chain_variants) {
  if (!open_case("rope", "n=1000", NULL, NULL)) return;
  const pabd_scene *s = &loaded.scene;
  CHECK_INT(s->body_count, 1001);
  CHECK_NEAR(s->bodies[0].mass, 0.01, 0);
  CHECK_NEAR(s->bodies[1000].mass, 1, 1e-15);  // 100 links
  near3(s->bodies[999].pose.p, 99.95, 0, 0, 1e-9);
  near3(s->bodies[1000].pose.p, 100.05, 0, 0, 1e-9);
  pabd_case_free(&loaded);
  if (!open_case("hinge-chain", NULL, NULL, NULL)) return;
  for (int j = 0; j <= 10; ++j) {
    CHECK(s->joints[j].kind == PABD_HINGE);
    pabd_dvec3 axis = pabd_dquat_rotate(s->joints[j].frame_b.q, (pabd_dvec3){0, 0, 1});
    near3(axis, 0, 1, 0, 1e-15);
  }
  pabd_case_free(&loaded);
  if (!open_case("slider-chain", NULL, NULL, NULL)) return;
  CHECK_INT(s->joint_count, 11);
  CHECK(s->joints[0].body_a == PABD_WORLD);
  for (int j = 0; j <= 10; ++j) {
    CHECK(s->joints[j].kind == PABD_SLIDER && s->joints[j].has_limits);
    CHECK_NEAR(s->joints[j].lower, -0.2, 0);
    CHECK_NEAR(s->joints[j].upper, 0.2, 0);
    CHECK_NEAR(s->joints[j].stiffness, 1e4, 0);
    near3(pabd_dquat_rotate(s->joints[j].frame_a.q, (pabd_dvec3){0, 0, 1}), 1, 0, 0, 1e-15);
  }
  pabd_case_free(&loaded);
  if (!open_case("pendulum", "links=3", NULL, NULL)) return;
  CHECK_INT(s->body_count, 3);
  CHECK_INT(s->joint_count, 3);
  CHECK_NEAR(loaded.energy_ref, 9.81 * 4.5, 1e-12);
  pabd_case_free(&loaded);
}

TEST(ring) {
  if (!open_case("ring", NULL, NULL, NULL)) return;
  const pabd_scene *s = &loaded.scene;
  CHECK_INT(s->body_count, 10);
  CHECK_INT(s->joint_count, 11);
  double low = 0, heavy_z = 0;
  for (int i = 0; i < 10; ++i) {
    const pabd_body *b = &s->bodies[i];
    low = fmin(low, b->pose.p.z);
    if (b->mass == 100) heavy_z = b->pose.p.z;
    // Rigid turn about the origin with (0, 1, 0) rad/s.
    near3(b->linear, b->pose.p.z, 0, -b->pose.p.x, 1e-14);
    near3(b->angular, 0, 1, 0, 0);
    CHECK_NEAR(b->pose.p.y, 0, 0);
  }
  CHECK_NEAR(heavy_z, low, 1e-12);
  // Corners on a circle of the decagon's radius about its center.
  double radius = 0.5 / sin(PI / 10);
  for (int j = 1; j <= 10; ++j) {
    pabd_dvec3 c = anchor_of(s, j, 0);
    CHECK_NEAR(c.x * c.x + (c.z + radius) * (c.z + radius), radius * radius, 1e-12);
  }
  near3(anchor_of(s, 0, 1), 0, 0, 0, 1e-14);
  CHECK(s->joints[0].body_a == PABD_WORLD);
  pabd_case_free(&loaded);
}

TEST(al_one) {
  if (!open_case("al-one", NULL, NULL, NULL)) return;
  CHECK_NEAR(loaded.scene.bodies[0].mass, 1, 0);
  near3(loaded.scene.bodies[0].pose.p, 0, 0, -9.81 / 1e4, 1e-18);
  /* the row itself starts open by the penalty's gap */
  near3(anchor_of(&loaded.scene, 0, 0), 0, 0, 0, 1e-18);
  near3(anchor_of(&loaded.scene, 0, 1), 0, 0, -9.81 / 1e4, 1e-18);
  CHECK_NEAR(loaded.scene.joints[0].rest, 0, 0);
  CHECK_INT(loaded.frame_count, 1);
  CHECK_STR(loaded.metrics[0].kind, "contraction");
  CHECK_NEAR(loaded.metrics[0].reference, 0.264706, 5e-7);
  CHECK_NEAR(loaded.metrics[0].number[0], 1e4, 0);
  pabd_case_free(&loaded);
}

TEST(al_chain) {
  for (int variant = 0; variant < 4; ++variant) {
    int ball = variant & 1, swing = variant & 2 ? 30 : 0;
    if (!open_case("al-chain", ball ? "joint=ball" : "joint=distance", swing ? "swing_deg=30" : "swing_deg=0",
                   "ratio=100"))
      return;
    const pabd_scene *s = &loaded.scene;
    REQUIRE(CHECK_INT(s->body_count, 20));
    for (int i = 0; i < 20; ++i) {
      double rest = ball ? 0 : 0.05, at = (i + 1) * rest + (i + 0.5) * 0.2, a = swing * PI / 180;
      CHECK_NEAR(s->bodies[i].mass, i == 19 ? 80 : 0.8, 1e-13);
      near3(s->bodies[i].pose.p, at * sin(a), 0, -at * cos(a), 1e-14);
      near3(s->shapes[i].half, 0.1, 0.1, 0.1, 1e-16);
      CHECK(s->joints[i].kind == (ball ? PABD_SPHERICAL : PABD_DISTANCE));
      CHECK_NEAR(s->joints[i].rest, rest, 0);
      // The anchor is the upper face's center, in the body's own frame.
      near3(s->joints[i].frame_b.p, 0, 0, 0.1, 1e-14);
    }
    near3(anchor_of(s, 0, 0), 0, 0, 0, 1e-15);
    pabd_case_free(&loaded);
  }
}

TEST(pair) {
  if (!open_case("pair", NULL, NULL, NULL)) return;
  const pabd_scene *s = &loaded.scene;
  pabd_dvec3 total = {0, 0, 0}, at[2];
  for (int i = 0; i < 2; ++i) {
    const pabd_body *b = &s->bodies[i];
    total.x += b->mass * b->linear.x, total.y += b->mass * b->linear.y, total.z += b->mass * b->linear.z;
    pabd_dvec3 r = {-b->pose.p.x, -b->pose.p.y, -b->pose.p.z}, w = b->angular;
    at[i] = (pabd_dvec3){b->linear.x + w.y * r.z - w.z * r.y, b->linear.y + w.z * r.x - w.x * r.z,
                         b->linear.z + w.x * r.y - w.y * r.x};
  }
  near3(total, 0, 0, 0, 1e-15);
  near3(at[0], at[1].x, at[1].y, at[1].z, 1e-15);  // the joint's own velocity is zero
  CHECK_NEAR(s->bodies[1].mass, 10, 0);
  near3(s->gravity, 0, 0, 0, 0);
  CHECK_NEAR(loaded.momentum_ref, hypot(15.0 / 11, 5.0 / 11), 1e-15);
  CHECK_NEAR(loaded.energy_ref, kinetic(s), 1e-14);
  pabd_case_free(&loaded);
}

TEST(pile) {
  if (!open_case("pile", "dy=0.3", NULL, NULL)) return;
  const pabd_scene *s = &loaded.scene;
  CHECK_INT(s->body_count, 1002);
  int32_t ball = pabd_scene_find_body(s, "ball");
  REQUIRE(ball >= 0);
  CHECK_NEAR(s->bodies[ball].mass, 500, 0);
  near3(s->bodies[ball].pose.p, -(5.05 + 1.5 + 0.5), 0.3, 5.05, 1e-14);
  near3(s->bodies[ball].linear, 20, 0, 0, 0);
  CHECK_NEAR(s->shapes[ball].radius, 1.5, 1e-15);
  int32_t first = s->body_count - 1000;
  for (int k = 0, i = 0; i < 10; ++i) {
    for (int j = 0; j < 10; ++j, ++k) {
      // Order: x fastest, then y, then z.
      near3(s->bodies[first + k + 100 * 3 - 0].pose.p, (j - 4.5) * 1.01, (i - 4.5) * 1.01, 0.51 + 1.01 * 3, 1e-13);
    }
  }
  CHECK_NEAR(loaded.energy_ref, 174360, 10);  // the contract's 174 kJ
  CHECK_INT(loaded.frame_count, 200);
  pabd_case_free(&loaded);
  if (!open_case("pile", "n=20", NULL, NULL)) return;
  CHECK_NEAR(loaded.energy_ref, 1.99e6, 0.005e6);
  CHECK_NEAR(s->bodies[pabd_scene_find_body(s, "ball")].mass, 4000, 0);
  CHECK_INT(loaded.expect_count > 0, 1);
  pabd_case_free(&loaded);
  if (!open_case("pile", "ball=false", "n=2", NULL)) return;
  CHECK_INT(s->body_count, 9);
  CHECK_INT(pabd_scene_find_body(s, "ball"), -1);
  pabd_case_free(&loaded);
  // A small pile: the ball must not reach into the ground.
  if (!open_case("pile", "n=1", NULL, NULL)) return;
  CHECK_NEAR(s->bodies[pabd_scene_find_body(s, "ball")].pose.p.z, 0.505, 1e-15);
  pabd_case_free(&loaded);
  if (!open_case("pile-settled", NULL, NULL, NULL)) return;
  CHECK_INT(s->body_count, 1001);
  CHECK_INT(loaded.frame_count, 300);
  pabd_case_free(&loaded);
}

TEST(towers) {
  const pabd_scene *s = &loaded.scene;
  if (!open_case("tower", NULL, NULL, NULL)) return;
  CHECK_INT(s->body_count, 21);
  near3(s->bodies[20].pose.p, 0, 0, 19.5 + 0.020, 1e-13);
  CHECK_INT(loaded.metrics[2].body, 20);
  CHECK_INT(loaded.frame_count, 1800);
  pabd_case_free(&loaded);
  if (!open_case("wall", NULL, NULL, NULL)) return;
  CHECK_INT(s->body_count, 101);
  near3(s->bodies[1].pose.p, -4.5, 0, 0.251, 1e-14);
  near3(s->bodies[11].pose.p, -4.25, 0, 0.752, 1e-14);
  near3(s->shapes[1].half, 0.495, 0.25, 0.25, 1e-15);
  pabd_case_free(&loaded);
  if (!open_case("pyramid", NULL, NULL, NULL)) return;
  CHECK_INT(s->body_count, 211);
  near3(s->bodies[1].pose.p, -9.5 * 1.01, 0, 0.501, 1e-13);
  near3(s->bodies[210].pose.p, 0, 0, 19.5 + 0.020, 1e-13);
  CHECK_STR(s->bodies[loaded.metrics[2].body].name, "box209");
  pabd_case_free(&loaded);
}

TEST(spin) {
  if (!open_case("spin", NULL, NULL, NULL)) return;
  const pabd_body *b = &loaded.scene.bodies[0];
  CHECK_NEAR(b->mass, 120, 1e-12);
  near3(b->inertia, 4, 10.4, 13.6, 1e-12);
  near3(b->angular, 0.1, 10, 0, 0);
  CHECK_NEAR(loaded.metrics[2].reference, 0.9649, 0);
  CHECK_NEAR(loaded.metrics[2].reference + 4 * loaded.metrics[2].number[0], 8.6833, 1e-4);
  pabd_case_free(&loaded);
}

TEST(slide) {
  const pabd_scene *s = &loaded.scene;
  if (!open_case("slide", NULL, NULL, NULL)) return;
  near3(s->bodies[1].linear, 5, 0, 0, 0);
  near3(s->bodies[1].pose.p, 0, 0, 0.25, 0);
  CHECK_NEAR(s->bodies[1].mass, 10, 0);
  CHECK_NEAR(loaded.metrics[2].reference, 2.54842, 5e-6);
  // The bounds are the sums they claim to be.
  for (int32_t k = 0; k < loaded.expect_count; ++k) {
    const pabd_case_expect *e = &loaded.expects[k];
    int substeps = strstr(e->engines, "paper")        ? 1
                   : strstr(e->engines, "jacobi")     ? 4
                   : strstr(e->engines, "contact-gs") ? 8
                                                      : 0;
    double h = 1.0 / 60 / substeps, v = 5, distance = 0;
    if (substeps == 0) continue;
    while (v > 0) {
      v = fmax(0, v - 0.5 * 9.81 * h);
      distance += v * h;
    }
    CHECK_NEAR(e->bound, distance, 6e-6);
  }
  pabd_case_free(&loaded);
  if (!open_case("slide", "direction=diagonal", NULL, NULL)) return;
  near3(s->bodies[1].linear, 5 / sqrt(2), 5 / sqrt(2), 0, 1e-14);
  pabd_case_free(&loaded);
  if (!open_case("slide", "direction=angle", "angle_deg=30", NULL)) return;
  near3(s->bodies[1].linear, 2.5 * sqrt(3), 2.5, 0, 1e-14);
  pabd_case_free(&loaded);
}

TEST(incline) {
  const pabd_scene *s = &loaded.scene;
  for (int sign = -1; sign <= 1; sign += 2) {
    if (!open_case("incline", sign > 0 ? "offset_deg=0.5" : "offset_deg=-0.5", NULL, NULL)) return;
    double angle = atan(0.5) + sign * 0.5 * PI / 180;
    // The slope falls along x, its surface passes through the origin, and the box lies on it.
    pabd_dvec3 n = pabd_dquat_rotate(s->bodies[0].pose.q, (pabd_dvec3){0, 0, 1});
    near3(n, sin(angle), 0, cos(angle), 1e-14);
    near3(s->bodies[0].pose.p, -n.x, 0, -n.z, 1e-14);
    near3(s->bodies[1].pose.p, 0.25 * n.x, 0, 0.25 * n.z, 1e-14);
    CHECK_NEAR(fabs(s->bodies[0].pose.q.w - s->bodies[1].pose.q.w), 0, 0);
    if (sign > 0) CHECK_NEAR(loaded.metrics[2].reference, 1.196, 5e-4);
    CHECK_INT(loaded.expect_count, 1);
    pabd_case_free(&loaded);
  }
}

TEST(mixed_scenes) {
  const pabd_scene *s = &loaded.scene;
  if (!open_case("landing", NULL, NULL, NULL)) return;
  CHECK_INT(s->body_count, 12);
  near3(anchor_of(s, 0, 0), 0, 0, 6, 0);
  near3(s->bodies[11].pose.p, 10.5, 0, 6, 1e-13);
  CHECK_NEAR(s->bodies[11].mass, 100, 0);
  CHECK(!pabd_scene_ignores(s, 0, 11) && pabd_scene_ignores(s, 1, 11));
  pabd_case_free(&loaded);
  if (!open_case("loaded-chain", NULL, NULL, NULL)) return;
  int32_t platform = pabd_scene_find_body(s, "platform"), box = pabd_scene_find_body(s, "box0");
  REQUIRE(platform >= 0 && box >= 0);
  CHECK_INT(s->body_count, 5 + 1 + 8);
  CHECK_NEAR(s->bodies[box].pose.p.z - s->bodies[platform].pose.p.z, 0.5 + 0.1 + 0.001, 1e-13);
  CHECK(!pabd_scene_ignores(s, platform, box));
  near3(anchor_of(s, 5, 1), 0, 0, -5, 1e-14);
  pabd_case_free(&loaded);
  if (!open_case("hit-stack", NULL, NULL, NULL)) return;
  int32_t ball = pabd_scene_find_body(s, "ball");
  near3(s->bodies[ball].linear, 10, 0, 0, 0);
  CHECK_NEAR(s->bodies[ball].mass, 1000, 0);
  CHECK_NEAR(s->bodies[ball].pose.p.z, s->bodies[pabd_scene_find_body(s, "box2")].pose.p.z, 1e-15);
  pabd_case_free(&loaded);
}

TEST(sanity_references) {
  if (!open_case("spring-damper", NULL, NULL, NULL)) return;
  // m x'' + c x' + k x = 0 from 0.1 m at rest, by a fine Runge-Kutta run.
  double x = 0.1, v = 0, h = 1e-4;
  for (int k = 0; k < 10000; ++k) {
    double x1 = v, v1 = -100 * x - 2 * v, x2 = v + 0.5 * h * v1,
           v2 = -100 * (x + 0.5 * h * x1) - 2 * (v + 0.5 * h * v1);
    double x3 = v + 0.5 * h * v2, v3 = -100 * (x + 0.5 * h * x2) - 2 * (v + 0.5 * h * v2);
    double x4 = v + h * v3, v4 = -100 * (x + h * x3) - 2 * (v + h * v3);
    x += h / 6 * (x1 + 2 * x2 + 2 * x3 + x4);
    v += h / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
  }
  CHECK_NEAR(loaded.metrics[1].reference, 0.1 - x, 1e-10);
  pabd_case_free(&loaded);
  if (!open_case("pendulum-distance", NULL, NULL, NULL)) return;
  CHECK_NEAR(loaded.metrics[2].reference, 2.3678419475762374 / 4, 1e-12);
  pabd_case_free(&loaded);
}

/* ---- Compounds and joints of explicit scenes ---- */

static pabd_status load_text(const char *text, pabd_error *error) {
  char path[128];
  snprintf(path, sizeof path, "/tmp/pabd-test-case-%ld.json", (long)getpid());
  FILE *file = fopen(path, "w");
  if (file == NULL) return PABD_ERR_IO;
  fputs(text, file);
  fclose(file);
  pabd_status status = pabd_case_load(path, NULL, 0, &loaded, error);
  remove(path);
  return status;
}

#define HEAD                                                                                                          \
  "{\"schema\":1,\"family\":\"t\",\"title\":\"t\",\"claim\":\"t\",\"duration\":1,\"energy_ref\":{\"rule\":\"given\"," \
  "\"value\":1},"                                                                                                     \
  "\"metrics\":[{\"kind\":\"energy\"}],"

TEST(compound_with_joint) {
  // A lopsided hammer: the frame moves to the principal frame, the joint stays where the file put it in the world.
  pabd_error error = {{0}};
  REQUIRE(CHECK_MSG(
      load_text(
          HEAD "\"bodies\":[{\"name\":\"hammer\",\"position\":[1,2,3],\"rotation_vector_deg\":[0,0,90],\"shapes\":["
               "{\"kind\":\"box\",\"size\":[1,0.1,0.1],\"density\":500},"
               "{\"kind\":\"cylinder\",\"radius\":0.1,\"length\":0.3,\"position\":[0.5,0.05,0],\"density\":7800}]}],"
               "\"joints\":[{\"kind\":\"hinge\",\"a\":\"world\",\"b\":\"hammer\",\"anchor\":[1,1.5,3],\"axis\":[0,0,2],"
               "\"start\":0.25,\"limits\":[-1,1],\"motor\":{\"kind\":\"rate\",\"target\":2,\"max\":5}}]}",
          &error) == PABD_OK,
      "%s", error.text));
  const pabd_scene *s = &loaded.scene;
  double handle = 500 * 0.01, head = 7800 * PI * 0.01 * 0.3;
  CHECK_NEAR(s->bodies[0].mass, handle + head, 1e-11);
  double part = head / (handle + head);  // of the way to the head, in the turned frame: x -> y, y -> -x
  near3(s->bodies[0].pose.p, 1 - 0.05 * part, 2 + 0.5 * part, 3, 1e-13);
  near3(anchor_of(s, 0, 1), 1, 1.5, 3, 1e-13);
  pabd_dvec3 axis =
      pabd_dquat_rotate(pabd_dquat_mul(s->bodies[0].pose.q, s->joints[0].frame_b.q), (pabd_dvec3){0, 0, 1});
  near3(axis, 0, 0, 1, 1e-14);
  // b's frame leads a's by the start angle.
  pabd_dquat turn = pabd_dquat_mul(pabd_dquat_conj(s->joints[0].frame_a.q),
                                   pabd_dquat_mul(s->bodies[0].pose.q, s->joints[0].frame_b.q));
  CHECK_NEAR(2 * atan2(turn.z, turn.w), 0.25, 1e-14);
  CHECK(s->joints[0].motor == PABD_MOTOR_RATE && s->joints[0].motor_max == 5 && s->joints[0].has_limits);
  pabd_case_free(&loaded);
}

TEST(materials_and_pairs) {
  pabd_error error = {{0}};
  REQUIRE(CHECK_MSG(
      load_text(HEAD
                "\"materials\":[{\"name\":\"ice\",\"friction\":0.04},{\"name\":\"rubber\",\"friction\":1,"
                "\"restitution\":0.8}],\"material_pairs\":[{\"a\":\"rubber\",\"b\":\"ice\",\"friction\":0.1}],"
                "\"bodies\":[{\"motion\":\"static\",\"shape\":{\"kind\":\"plane\",\"material\":\"ice\"}},"
                "{\"mass\":1,\"position\":[0,0,1],\"shape\":{\"kind\":\"capsule\",\"radius\":0.1,\"length\":0.4,"
                "\"material\":\"rubber\"}}],\"loads\":[{\"body\":1,\"force\":[1,0,0],\"end\":0.5}],\"ignore\":[[0,1]]}",
                &error) == PABD_OK,
      "%s", error.text));
  const pabd_scene *s = &loaded.scene;
  CHECK_INT(s->material_count, 2);
  CHECK_NEAR(s->friction[0], 0.04, 0);
  CHECK_NEAR(s->friction[1], 0.1, 0);
  CHECK_NEAR(s->friction[2], 0.1, 0);
  CHECK_NEAR(s->friction[3], 1, 0);
  CHECK_NEAR(s->restitution[1], 0.8, 0);
  CHECK_NEAR(s->shapes[1].half_length, 0.2, 0);
  CHECK_INT(s->shapes[1].material, 1);
  CHECK(pabd_scene_ignores(s, 0, 1));
  CHECK_NEAR(s->loads[0].end, 0.5, 0);
  // Scaled to the mass: the capsule's shape of inertia stays.
  pabd_dvec3 i = pabd_shape_inertia(&s->shapes[1], 1);
  near3(s->bodies[1].inertia, i.x, i.y, i.z, 1e-15);
  pabd_case_free(&loaded);
}

/* ---- Parameters and hash ---- */

TEST(hash) {
  char plain[17] = "", changed[17] = "";
  if (!open_case("stack", NULL, NULL, NULL)) return;
  memcpy(plain, loaded.hash, sizeof plain);
  pabd_case_free(&loaded);
  if (!open_case("stack", NULL, NULL, NULL)) return;
  CHECK_STR(loaded.hash, plain);
  pabd_case_free(&loaded);
  if (!open_case("stack", "gap=0.001", NULL, NULL)) return;
  memcpy(changed, loaded.hash, sizeof changed);
  CHECK(strcmp(changed, plain) != 0);
  pabd_case_free(&loaded);
  // The value counts, not how it was written.
  if (!open_case("stack", "gap=1e-3", NULL, NULL)) return;
  CHECK_STR(loaded.hash, changed);
  CHECK_STR(loaded.params[1].value, "0.001");
  CHECK_STR(loaded.params[1].initial, "0");
  pabd_case_free(&loaded);
  if (!open_case("stack", "gap=0", NULL, NULL)) return;
  CHECK_STR(loaded.hash, plain);
  pabd_case_free(&loaded);
}

TEST(bad_overrides) {
  static const char *const list[][2] = {
      {"raito=5", "did you mean \"ratio\"?"},
      {"ratio=abc", "not a finite number"},
      {"ratio=nan", "not a finite number"},
      {"ratio=1e999", "not a finite number"},
      {"ratio=-1", "params.ratio: -1 is out of range"},
      {"ratio=", "not a finite number"},
      {"ratio=10kg", "not a finite number"},
      {"count=2.5", "not a whole number"},
      {"count=1000000000", "1 .. 50"},
      {"ratio", "key=value"},
      {"=5", "key=value"},
      {"", "key=value"},
      {"gap=0.5", "-0.05 .. 0.05 m"},
  };
  for (size_t k = 0; k < sizeof list / sizeof list[0]; ++k) {
    pabd_error error = {{0}};
    CHECK_MSG(load("stack", &list[k][0], 1, &error) == PABD_ERR_INPUT, "\"%s\" passed", list[k][0]);
    CHECK_CONTAINS(error.text, list[k][1]);
    CHECK_CONTAINS(error.text, "cases/stack.json");
    CHECK(loaded.scene.bodies == NULL);
  }
  const char *choice = "joint=rope", *flag = "ball=maybe";
  pabd_error error = {{0}};
  CHECK(load("al-chain", &choice, 1, &error) == PABD_ERR_INPUT);
  CHECK_CONTAINS(error.text, "distance | ball");
  CHECK(load("pile", &flag, 1, &error) == PABD_ERR_INPUT);
  CHECK_CONTAINS(error.text, "true | false");
  CHECK(load("no-such-case", NULL, 0, &error) == PABD_ERR_IO);
  CHECK_CONTAINS(error.text, "no-such-case.json");
  CHECK(pabd_case_load("cases", NULL, 0, &loaded, &error) == PABD_ERR_IO);
  CHECK(pabd_case_load("/dev/zero", NULL, 0, &loaded, &error) == PABD_ERR_IO);
}

/* ---- Bad files ---- */

static char *read_text_file(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return NULL;
  char *text = calloc(4096, 1);
  size_t count = fread(text, 1, 4095, file);
  (void)count;
  fclose(file);
  return text;
}

TEST(bad_files_are_refused_in_one_line) {
  DIR *folder = opendir("tests/bad_cases");
  REQUIRE(folder != NULL);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
    char path[512], expected_path[512];
    snprintf(path, sizeof path, "tests/bad_cases/%s", entry->d_name);
    snprintf(expected_path, sizeof expected_path, "tests/bad_cases/%.*s.txt", (int)length - 5, entry->d_name);
    char *expected = read_text_file(expected_path);
    if (!CHECK_MSG(expected != NULL && expected[0] != '\0', "%s: no file of expected fragments", path)) continue;
    pabd_error error = {{0}};
    memset(&loaded, 0x5a, sizeof loaded);
    CHECK_MSG(pabd_case_load(path, NULL, 0, &loaded, &error) == PABD_ERR_INPUT, "%s was accepted", path);
    CHECK_MSG(strchr(error.text, '\n') == NULL, "%s: more than one line", path);
    CHECK_MSG(strstr(error.text, path) == error.text, "%s: does not begin with the file: %s", path, error.text);
    CHECK_MSG(loaded.scene.bodies == NULL && loaded.scene.friction == NULL, "%s: something is left allocated", path);
    for (char *save = NULL, *line = strtok_r(expected, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
      CHECK_MSG(strstr(error.text, line) != NULL, "%s: \"%s\" is not in \"%s\"", path, line, error.text);
    }
    free(expected);
    ++count;
  }
  closedir(folder);
  CHECK_MSG(count >= 100, "only %d bad files", count);
}

TEST(every_prefix_of_a_case_is_refused) {
  // Cut everywhere: never a crash, never accepted.
  FILE *file = fopen("cases/al-chain.json", "r");
  REQUIRE(file != NULL);
  static char text[16384];
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  while (size > 0 && text[size - 1] == '\n') --size;
  for (size_t cut = 0; cut < size; cut += 1 + cut % 7) {
    char kept = text[cut];
    pabd_error error = {{0}};
    text[cut] = '\0';
    CHECK_MSG(load_text(text, &error) == PABD_ERR_INPUT, "a cut at byte %zu was accepted", cut);
    text[cut] = kept;
  }
}

TEST(random_damage_never_crashes) {
  FILE *file = fopen("cases/loaded-chain.json", "r");
  REQUIRE(file != NULL);
  static char text[16384], hurt[16384];
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  uint64_t state = 7;
  for (int trial = 0; trial < 2000; ++trial) {
    memcpy(hurt, text, size + 1);
    int hits = 1 + (int)(3 * splitmix64_uniform(&state));
    for (int k = 0; k < hits; ++k) {
      size_t at = (size_t)(splitmix64_uniform(&state) * (double)size);
      hurt[at] = "{}[]\",:0123456789-$.eE tfn"[(int)(26 * splitmix64_uniform(&state))];
    }
    pabd_error error = {{0}};
    pabd_status status = load_text(hurt, &error);
    CHECK_MSG(
        status == PABD_OK || (status == PABD_ERR_INPUT && error.text[0] != '\0' && strchr(error.text, '\n') == NULL),
        "trial %d: status %d, \"%s\"", trial, (int)status, error.text);
    if (status == PABD_OK) pabd_case_free(&loaded);
  }
}

/* ---- Expressions and near misses ---- */

TEST(expressions) {
  static const struct {
    const char *text;
    double value;
  } list[] = {{"1 + 2 * 3", 7},
              {"(1 + 2) * 3", 9},
              {"-2^2", -4},
              {"2^3^2", 512},
              {"2^-1", 0.5},
              {"7 % 4 - 1", 2},
              {"8 / 4 / 2", 1},
              {"$n * 0.5", 5},
              {"$n > 9 && $n < 11 ? 1 : 2", 1},
              {"$n == 10 || 0", 1},
              {"!$on", 0},
              {"!($n != 10)", 1},
              {"$kind == 'ball' ? 3 : 4", 3},
              {"$kind != 'ball'", 0},
              {"max(min(1, 2), -3)", 1},
              {"atan2(1, 1) * 4 - pi", 0},
              {"deg(rad(30))", 30},
              {"1 ? 2 : 1 / 0", 2},
              {"1e3 + .5", 1000.5},
              {"floor(-0.5) + round(2.5) + abs(-1)", 3},
              {"0 ? 1 : 0 ? 2 : 3", 3}};
  pabd_case_param params[3] = {{.key = "n", .type = "int", .value = "10"},
                               {.key = "on", .type = "bool", .value = "true"},
                               {.key = "kind", .type = "choice", .value = "ball"}};
  for (size_t k = 0; k < sizeof list / sizeof list[0]; ++k) {
    expression_value v;
    pabd_error error = {{0}};
    CHECK_MSG(expression_evaluate(list[k].text, params, 3, &v, &error) == PABD_OK, "%s: %s", list[k].text, error.text);
    CHECK_MSG(!v.is_text && fabs(v.number - list[k].value) < 1e-14, "%s gives %.17g", list[k].text, v.number);
  }
  static const char *const bad[] = {"",        "1 +",      "* 2",       "1 2",    "(1",        "1)",
                                    "$",       "$m",       "foo(1)",    "sqrt 4", "min(1)",    "max(1, 2, 3)",
                                    "'a' + 1", "'a' == 1", "'a' < 'b'", "1 ? 2",  "'open",     "1 / 0",
                                    "log(0)",  "1 = 1",    "--",        "!",      "$kind * 2", "1 &&"};
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; ++k) {
    expression_value v;
    pabd_error error = {{0}};
    CHECK_MSG(expression_evaluate(bad[k], params, 3, &v, &error) == PABD_ERR_INPUT, "\"%s\" was accepted", bad[k]);
    CHECK(error.text[0] != '\0');
  }
}

TEST(nearest_word) {
  static const char *const words[] = {"velocity", "angular_velocity", "mass", "shape", "shapes"};
  static const char *const tries[][2] = {{"velocty", "velocity"},
                                         {"msas", "mass"},
                                         {"shap", "shape"},
                                         {"shapess", "shapes"},
                                         {"anguler_velocity", "angular_velocity"},
                                         {"friction", NULL},
                                         {"x", NULL},
                                         {"", NULL}};
  for (size_t k = 0; k < sizeof tries / sizeof tries[0]; ++k) {
    const char *best = NULL;
    for (int w = 0; w < 5; ++w) best = nearest(tries[k][0], words[w], best);
    CHECK_MSG((best == NULL) == (tries[k][1] == NULL) && (best == NULL || strcmp(best, tries[k][1]) == 0), "%s -> %s",
              tries[k][0], best ? best : "(none)");
  }
}

/* ---- Memory ---- */

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

/* The build hides symbols; these must be seen by the C library and by cJSON. */
#define INTERPOSE __attribute__((visibility("default")))

static volatile long allowed_allocations = -1; /* < 0: no limit */
static volatile long live_blocks;              /* volatile: compilers take malloc for free of side effects */

/* From the n-th allocation on there is no memory. */
static int refuse(void) {
  if (allowed_allocations < 0) return 0;
  if (allowed_allocations-- > 0) return 0;
  allowed_allocations = 0;
  errno = ENOMEM;
  return 1;
}

INTERPOSE void *malloc(size_t size) {
  void *memory = refuse() ? NULL : __libc_malloc(size);
  live_blocks += memory != NULL;
  return memory;
}

INTERPOSE void *calloc(size_t count, size_t size) {
  void *memory = refuse() ? NULL : __libc_calloc(count, size);
  live_blocks += memory != NULL;
  return memory;
}

INTERPOSE void *realloc(void *old, size_t size) {
  if (refuse()) return NULL;
  void *memory = __libc_realloc(old, size);
  live_blocks += memory != NULL && old == NULL;
  return memory;
}

INTERPOSE void free(void *memory) {
  live_blocks -= memory != NULL;
  __libc_free(memory);
}

TEST(every_failing_allocation_is_reported) {
  static const char *const names[] = {"stack", "loaded-chain", "al-chain"};
  long count = live_blocks;
  char *probe = strdup("called inside the C library");
  int counted = live_blocks != count;
  free(probe);
  if (!counted) SKIP("another allocator is in force (valgrind)");
  for (int c = 0; c < 3; ++c) {
    pabd_error error;
    long before = live_blocks, n = 0;
    for (;; ++n) {
      allowed_allocations = n;
      pabd_status status = load(names[c], NULL, 0, &error);
      allowed_allocations = -1;
      if (status == PABD_OK) break;
      // fopen's own failure comes as an I/O error with "Cannot allocate memory".
      if (!CHECK_MSG(status == PABD_ERR_MEMORY || (status == PABD_ERR_IO && strstr(error.text, "memory")),
                     "%s, allocation %ld: %s: %s", names[c], n, pabd_status_text(status), error.text)) {
        break;
      }
      CHECK_MSG(live_blocks == before, "%s, allocation %ld: %ld blocks are left", names[c], n, live_blocks - before);
      if (n > 100000) break;
    }
    pabd_case_free(&loaded);
    CHECK_INT(live_blocks, before);
    CHECK_MSG(n > 50, "%s: only %ld allocations", names[c], n);
  }
}
#endif
