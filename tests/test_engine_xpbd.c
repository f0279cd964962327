/* XPBD with small steps, written here: the conformance checks, and closed forms. */
#include "engine_conformance.h"

static conformance usual;

static void open_engine(void) {
  static char why[300];
  static int done;
  if (done) return;
  done = 1;
  static const pabd_setting list[] = {
      {"rotation", "exact"}}; /* the linear one damps a spin of 2 rad/s by 6e-4 a second */
  usual = (conformance){.settings = list,
                        .setting_count = 1,
                        .internal_substeps = 20,
                        .round_off = 1e-12,
                        .slide_axis = 0.01,
                        .slide_diagonal = 0.01,
                        .slide_distance = 2.54634, /* sum of v_k h with 20 substeps */
                        .joint_gap = 1e-3,
                        .rest_depth = 1e-3,
                        .impact = 0.01,
                        .restitution = 0.04, /* read at the ends of frames: gravity has acted for up to 1/60 s since */
                        .spring = 0.02,
                        .motor = 0.05,
                        .contact_force = 0.05};
  const int there = conformance_open(&usual, "xpbd", why, sizeof why);
  CHECK_MSG(there, "%s", why);
  if (!there) exit(1);
}

#define CONFORMS(name)    \
  TEST(name) {            \
    open_engine();        \
    check_##name(&usual); \
  }

CONFORMS(free_fall)
CONFORMS(spin)
CONFORMS(inertia)
CONFORMS(slide)
CONFORMS(impact)
CONFORMS(restitution)
CONFORMS(rest)
CONFORMS(pendulum)
CONFORMS(joints)
CONFORMS(spring)
CONFORMS(motors)
CONFORMS(limits)
CONFORMS(rope)
CONFORMS(kinematic)
CONFORMS(pair_materials)
CONFORMS(filters)
CONFORMS(shapes)
CONFORMS(determinism)
CONFORMS(no_sleep)
CONFORMS(settings)

/* Time of the first zero crossing of a small swing is a quarter of 2 pi sqrt(J / (m g d)). */
TEST(pendulum_period) {
  open_engine();
  pabd_scene scene;
  pabd_scene_init(&scene);
  const double angle = 0.05;
  const int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.1, 0.1, 0.5},
                            (pabd_dvec3){0.5 * sin(angle), 0, -0.5 * cos(angle)});
  scene.bodies[b].pose.q = turn(0, -angle, 0);
  add_joint(&scene, PABD_SPHERICAL, PABD_WORLD, b, (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}});
  run r;
  run_start(&r, &usual, &scene, NULL, 0);
  double before = r.pose[b][0], crossing = 0;
  int crossings = 0;
  for (int k = 1; k <= 300 && crossings < 5; ++k) {
    run_frames(&r, 1);
    if ((r.pose[b][0] < 0) != (before < 0) && ++crossings == 5)
      crossing = (k - 1 + before / (before - r.pose[b][0])) * FRAME;
    before = r.pose[b][0];
  }
  const double inertia = scene.bodies[b].inertia.y + 0.25, period = 2 * M_PI * sqrt(inertia / (GRAVITY * 0.5));
  if (run_good(&r, "period"))
    CHECK_NEAR(crossing, period * 2.25, 0.01 * period); /* the fifth crossing: 2 1/4 periods */
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Static gap of a hanging chain: with one sweep from the anchor down, a joint carries the weight below it in one
 * substep only as a position error of the order g h^2 times the masses' ratio; so a quarter of the step, a sixteenth of
 * the gap. */
static double hanging_gap(const char *substeps) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t before = PABD_WORLD, body[5];
  for (int i = 0; i < 5; ++i) {
    body[i] = add_box(&scene, PABD_DYNAMIC, i == 4 ? 20 : 1, (pabd_dvec3){0.1, 0.1, 0.5}, (pabd_dvec3){0, 0, -0.5 - i});
    add_joint(&scene, PABD_SPHERICAL, before, body[i], (pabd_dpose){{0, 0, -i}, {1, 0, 0, 0}});
    before = body[i];
  }
  run r;
  const pabd_setting more = {"substeps", substeps};
  run_start(&r, &usual, &scene, &more, 1);
  run_frames(&r, 120);
  double sum = 0;
  for (int k = 0; k < 60; ++k) {
    run_frames(&r, 1);
    sum += (-4.5 - r.pose[body[4]][2]) / 60; /* all gaps of the line add up at the end */
  }
  run_good(&r, "hanging chain");
  run_end(&r);
  pabd_scene_free(&scene);
  return sum;
}

TEST(chain_gap_falls_with_the_square_of_the_substep) {
  open_engine();
  const double coarse = hanging_gap("10"), middle = hanging_gap("20"), fine = hanging_gap("40");
  printf("  hanging chain, sum of gaps at 10, 20, 40 substeps: %.3e %.3e %.3e m\n", coarse, middle, fine);
  CHECK(coarse > 0 && middle > 0 && fine > 0);
  CHECK_NEAR(coarse / middle, 4, 0.8);
  CHECK_NEAR(middle / fine, 4, 0.8);
}

/* Below the friction angle the box all but stays, above it slides by the closed form. */
TEST(friction_angle) {
  open_engine();
  for (int k = 0; k < 2; ++k) {
    pabd_scene scene;
    pabd_scene_init(&scene);
    const double angle = atan(0.5) + (k ? 2 : -2) * M_PI / 180;
    const int32_t ramp =
        add_box(&scene, PABD_STATIC, 0, (pabd_dvec3){50, 50, 1}, (pabd_dvec3){-sin(angle), 0, -cos(angle)});
    const int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.5, 0.25},
                              (pabd_dvec3){0.25 * sin(angle), 0, 0.25 * cos(angle)});
    scene.bodies[ramp].pose.q = scene.bodies[b].pose.q = turn(0, angle, 0);
    run r;
    run_start(&r, &usual, &scene, NULL, 0);
    run_frames(&r, 180);
    const double way = hypot(r.pose[b][0] - 0.25 * sin(angle), r.pose[b][2] - 0.25 * cos(angle));
    const double exact = fmax(0, (sin(angle) - 0.5 * cos(angle)) * GRAVITY * 9 / 2);
    if (run_good(&r, "ramp")) CHECK_MSG(fabs(way - exact) < 0.04, "%.4f m, closed form %.4f", way, exact);
    run_end(&r);
    pabd_scene_free(&scene);
  }
}

/* A ball thrown flat with spin 0 leaves sliding when v = 5/7 v0; mu g t < 2/7 v0 until then. */
TEST(ball_begins_to_roll) {
  open_engine();
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  const int32_t b = add_sphere(&scene, 1, 0.5, (pabd_dvec3){0, 0, 0.5});
  scene.bodies[b].linear.x = 7;
  run r;
  run_start(&r, &usual, &scene, NULL, 0);
  run_frames(&r, 12); /* 0.2 s: still sliding */
  if (run_good(&r, "ball")) {
    CHECK_NEAR(r.velocity[b][0], 7 - 0.5 * GRAVITY * 0.2, 0.02);
    run_frames(&r, 108);
    CHECK_NEAR(r.velocity[b][0], 5, 0.05);
    CHECK_NEAR(r.velocity[b][4], 10, 0.1);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Frozen contacts: a resting box keeps lying on the four points given, and falls when they are taken away. */
TEST(frozen_contacts) {
  open_engine();
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  const int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.5, 0.5}, (pabd_dvec3){0, 0, 0.5});
  run r;
  run_start(&r, &usual, &scene, NULL, 0);
  run_frames(&r, 30);
  pabd_contact kept[16];
  const int32_t count = usual.engine->contacts(r.world, kept, 16);
  REQUIRE(count == 4);
  CHECK(usual.engine->set_contacts(r.world, kept, count, &r.error) == PABD_OK);
  run_frames(&r, 60);
  CHECK_NEAR(r.pose[b][2], 0.5, 1e-3);
  CHECK(usual.engine->set_contacts(r.world, kept, 0, &r.error) == PABD_OK);
  run_frames(&r, 10);
  CHECK_NEAR(r.pose[b][2], 0.5 - GRAVITY * FRAME * FRAME * 50 * 201 / 200, 2e-3);
  run_end(&r);
  pabd_scene_free(&scene);
}
