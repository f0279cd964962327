/* Each joint kind of the Jacobi step against a closed form, the multiplier's contraction, and the momentum of an
 * isolated pair. */
#include "pabd.h"
#include "real.h"
#include "test.h"

static const double g = 9.81;
static const int is_float = sizeof(real) == 4;

/* A rod along x, 1 x 0.2 x 0.2 m, mass 2 kg, centre at (x, 0, 0). */
static int32_t add_rod(pabd_scene *scene, double x) {
  pabd_shape box = pabd_shape_default(PABD_BOX);
  box.half = (pabd_dvec3){0.5, 0.1, 0.1};
  pabd_body body = pabd_body_default();
  body.mass = 2;
  body.inertia = pabd_shape_inertia(&box, body.mass);
  body.pose.p.x = x;
  return pabd_scene_add_body(scene, &body);
}
static void add_joint(pabd_scene *scene, pabd_joint_kind kind, int32_t a, int32_t b, pabd_dvec3 at, pabd_dvec3 turn) {
  pabd_joint joint = pabd_joint_default(kind);
  joint.body_a = a, joint.body_b = b;
  pabd_dpose frame = {at, pabd_dquat_from_rotation_vector(turn)};
  pabd_joint_place(scene, &joint, frame);
  pabd_scene_add_joint(scene, &joint);
}
static pabd_sim *create(pabd_scene *scene, pabd_params params) {
  pabd_sim *sim = NULL;
  pabd_error error = {""};
  if (pabd_sim_create(scene, &params, &sim, &error) != PABD_OK) printf("%s\n", error.text);
  pabd_scene_free(scene);
  return sim;
}
static pabd_params accurate(int32_t substeps, int32_t sweeps) {
  pabd_params params = pabd_params_default();
  params.substeps = substeps, params.sweeps = sweeps;
  return params;
}

/* Period of small swings of a rod about its end: 2 pi sqrt(I_pivot/(m g l)). Start at angle e below... released at e
 * from hanging; the quarter period is when it passes the vertical. */
static double quarter_period(pabd_joint_kind kind, double *side_tilt) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t rod = add_rod(&scene, 0.5);
  /* hang it: turn the rod to point down, 0.05 rad off the vertical, then joint at its upper end; hinge axis y */
  const double e = 0.05;
  scene.bodies[rod].pose.q = pabd_dquat_from_rotation_vector((pabd_dvec3){0, M_PI / 2 - e, 0});
  scene.bodies[rod].pose.p = (pabd_dvec3){0.5 * sin(e), 0, -0.5 * cos(e)};
  add_joint(&scene, kind, PABD_WORLD, rod, (pabd_dvec3){0, 0, 0}, (pabd_dvec3){-M_PI / 2, 0, 0});
  pabd_sim *sim = create(&scene, accurate(32, 40));
  if (!sim) return NAN;
  double pose[7], before = sin(e), when = NAN;
  *side_tilt = 0;
  for (int frame = 1; frame <= 60; ++frame) {
    pabd_sim_step(sim);
    pabd_sim_read(sim, pose, NULL);
    double now = pose[0] / 0.5;
    if (before > 0 && now <= 0 && isnan(when)) when = (frame - 1 + before / (before - now)) / 60.0;
    before = now;
    if (fabs(pose[1]) > *side_tilt) *side_tilt = fabs(pose[1]);
  }
  pabd_sim_destroy(sim);
  return when;
}
TEST(spherical_and_hinge_pendulum) {
  const double inertia = 2.0 / 12 * (1 + 0.04) + 2.0 * 0.25, quarter = M_PI / 2 * sqrt(inertia / (2.0 * g * 0.5));
  double tilt;
  /* amplitude 0.05: 1.6e-4 relative; implicit Euler at h = 1/1920 shifts the phase by less than 1e-3 */
  CHECK_NEAR(quarter_period(PABD_SPHERICAL, &tilt), quarter, 1.5e-3 * quarter);
  CHECK_NEAR(quarter_period(PABD_HINGE, &tilt), quarter, 1.5e-3 * quarter);
  CHECK(tilt < 1e-5);
}

TEST(hinge_resists_across_and_yields_along) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity.z = 0;
  int32_t rod = add_rod(&scene, 0.5);
  pabd_load load = {rod, {0, 0, 0}, {0.3, 0.7, 0}, 0, 10};
  pabd_scene_add_load(&scene, &load);
  add_joint(&scene, PABD_HINGE, PABD_WORLD, rod, (pabd_dvec3){0.5, 0, 0},
            (pabd_dvec3){-M_PI / 2, 0, 0}); /* axis y through the centre */
  pabd_sim *sim = create(&scene, accurate(4, 60));
  REQUIRE(sim != NULL);
  double pose[7], velocity[6];
  for (int frame = 0; frame < 30; ++frame) pabd_sim_step(sim);
  pabd_sim_read(sim, pose, velocity);
  /* about y: w = torque t / I, exact for a constant torque; about x: held */
  CHECK_NEAR(velocity[4], 0.7 * 0.5 / (2.0 / 12 * 1.04), 1e-3 * 2.02);
  CHECK(fabs(velocity[3]) < 2e-3);
  CHECK(fabs(pose[4]) < 1e-4);
  pabd_sim_destroy(sim);
}

TEST(slider_falls_along_its_axis) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t rod = add_rod(&scene, 0);
  const double slope = M_PI / 4; /* axis z turned about y: (sin, 0, cos) */
  add_joint(&scene, PABD_SLIDER, PABD_WORLD, rod, (pabd_dvec3){0.3, 0, 0}, (pabd_dvec3){0, slope, 0});
  pabd_sim *sim = create(&scene, accurate(4, 60));
  REQUIRE(sim != NULL);
  double pose[7];
  for (int frame = 0; frame < 60; ++frame) pabd_sim_step(sim);
  pabd_sim_read(sim, pose, NULL);
  const double h = 1.0 / 240, fall = 0.5 * g * cos(slope) * (1.0 + h); /* symplectic Euler: g t (t + h)/2 */
  CHECK_NEAR(pose[0], -fall * sin(slope), 2e-3);
  CHECK_NEAR(pose[2], -fall * cos(slope), 2e-3);
  CHECK_NEAR(pose[0], pose[2], 2e-4); /* on the axis */
  CHECK_NEAR(fabs(pose[3]), 1.0, 1e-5);
  pabd_sim_destroy(sim);
}

TEST(fixed_holds_a_cantilever) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t first = add_rod(&scene, 0.5), second = add_rod(&scene, 1.5);
  add_joint(&scene, PABD_FIXED, PABD_WORLD, first, (pabd_dvec3){0, 0, 0}, (pabd_dvec3){0, 0, 0});
  add_joint(&scene, PABD_FIXED, first, second, (pabd_dvec3){1, 0, 0}, (pabd_dvec3){0, 0, 0});
  pabd_sim *sim = create(&scene, accurate(4, 100));
  REQUIRE(sim != NULL);
  double pose[14];
  for (int frame = 0; frame < 240; ++frame) pabd_sim_step(sim);
  pabd_sim_read(sim, pose, NULL);
  CHECK_NEAR(pose[9], 0.0, 2e-3);
  CHECK_NEAR(pose[7], 1.5, 2e-3);
  pabd_sim_destroy(sim);
}

TEST(distance_joint_carries_its_load) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t rod = add_rod(&scene, 0);
  scene.bodies[rod].pose.p.z = -2;
  pabd_joint joint = pabd_joint_default(PABD_DISTANCE);
  joint.body_a = PABD_WORLD, joint.body_b = rod, joint.rest = 2;
  pabd_scene_add_joint(&scene, &joint);
  pabd_sim *sim = create(&scene, accurate(4, 30));
  REQUIRE(sim != NULL);
  double pose[7];
  for (int frame = 0; frame < 300; ++frame) pabd_sim_step(sim);
  pabd_sim_read(sim, pose, NULL);
  CHECK_NEAR(pose[2], -2.0, 1e-4);
  pabd_sim_destroy(sim);
}

TEST(rope_is_slack_and_then_taut) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t rod = add_rod(&scene, 0);
  scene.bodies[rod].pose.p.z = -1;
  pabd_joint joint = pabd_joint_default(PABD_DISTANCE);
  joint.body_a = PABD_WORLD, joint.body_b = rod, joint.has_limits = 1, joint.lower = 0, joint.upper = 2;
  pabd_scene_add_joint(&scene, &joint);
  pabd_sim *sim = create(&scene, accurate(4, 30));
  REQUIRE(sim != NULL);
  double pose[7], h = 1.0 / 240;
  for (int frame = 0; frame < 20; ++frame) pabd_sim_step(sim);
  pabd_sim_read(sim, pose, NULL);
  double t = 20.0 / 60;
  CHECK_NEAR(pose[2], -1 - 0.5 * g * t * (t + h), 1e-5); /* free fall: the slack rope does nothing */
  for (int frame = 0; frame < 300; ++frame) pabd_sim_step(sim);
  pabd_sim_read(sim, pose, NULL);
  CHECK_NEAR(pose[2], -2.0, 1e-3);
  pabd_sim_destroy(sim);
}

TEST(spring_damper_follows_implicit_euler) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity.z = 0;
  int32_t rod = add_rod(&scene, 0);
  scene.bodies[rod].pose.p.z = -1.2;
  pabd_joint joint = pabd_joint_default(PABD_SPRING);
  joint.body_a = PABD_WORLD, joint.body_b = rod, joint.rest = 1, joint.stiffness = 50, joint.damping = 1.5;
  pabd_scene_add_joint(&scene, &joint);
  pabd_sim *sim = create(&scene, accurate(1, 200));
  REQUIRE(sim != NULL);
  /* m (x+ - x - h v)/h^2 = -k (x+ - 1) - c (x+ - x)/h */
  double m = 2, h = 1.0 / 60, x = 1.2, v = 0, pose[7];
  for (int frame = 0; frame < 60; ++frame) {
    pabd_sim_step(sim);
    double next = (m / (h * h) * (x + h * v) + 50 + 1.5 / h * x) / (m / (h * h) + 50 + 1.5 / h);
    v = (next - x) / h, x = next;
  }
  pabd_sim_read(sim, pose, NULL);
  CHECK_NEAR(-pose[2], x, is_float ? 2e-5 : 1e-9);
  pabd_sim_destroy(sim);
}

/* One body, one hard row, kappa fixed: each multiplier step contracts the gap by 1/(1 + kappa h^2/m). */
typedef struct gaps {
  double z[16];
  int count;
} gaps;
static void on_sweep(const pabd_sweep_trace *trace, const pabd_sim *sim, void *user) {
  (void)trace;
  gaps *list = user;
  double pose[7];
  pabd_sim_read_iterate(sim, pose, NULL);
  if (list->count < 16) list->z[list->count++] = pose[2];
}
TEST(multiplier_contraction) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  pabd_body body = pabd_body_default();
  body.mass = 1, body.inertia = (pabd_dvec3){0.004, 0.004, 0.004};
  body.pose.p.z = -g / 1e4;
  int32_t ball = pabd_scene_add_body(&scene, &body);
  pabd_joint joint = pabd_joint_default(PABD_SPHERICAL);
  joint.body_a = PABD_WORLD, joint.body_b = ball;
  pabd_scene_add_joint(&scene, &joint);
  pabd_params params = accurate(1, 9);
  params.stiffness_rule = PABD_STIFFNESS_FIXED, params.stiffness = 1e4, params.alpha = 0, params.relax_sweeps = 0;
  pabd_sim *sim = create(&scene, params);
  REQUIRE(sim != NULL);
  gaps list = {{0}, 0};
  pabd_sim_set_trace(sim, on_sweep, &list);
  pabd_sim_step(sim);
  const double factor = 1.0 / (1.0 + 1e4 / 3600.0);
  REQUIRE(list.count == 9);
  CHECK_NEAR(list.z[0], -g / 1e4,
             is_float ? 1e-9 : 1e-15); /* the steady penalty gap is a fixed point without multipliers */
  for (int k = 1; k < (is_float ? 5 : 9); ++k)
    CHECK_NEAR(list.z[k] / list.z[k - 1], factor, (is_float ? 1e-3 : 1e-6) * factor);
  pabd_sim_destroy(sim);
}

/* contract.md, `pair`: total momentum 0, joint velocity 0. Converged, the H metric keeps linear momentum; the mass
 * metric does not; the angular error of implicit Euler is first order in the substep. */
static void pair_momentum(int32_t local_step, int32_t substeps, double *linear, double *angular) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity.z = 0;
  const double mass[2] = {1, 10};
  const pabd_dvec3 velocity[2] = {{0, -15.0 / 11, 5.0 / 11}, {0, 3.0 / 22, -1.0 / 22}},
                   omega[2] = {{0, 0, 4}, {0, 1, -1}};
  for (int i = 0; i < 2; ++i) {
    int32_t rod = add_rod(&scene, i ? 0.5 : -0.5);
    pabd_body *body = &scene.bodies[rod];
    body->inertia =
        (pabd_dvec3){body->inertia.x * mass[i] / 2, body->inertia.y * mass[i] / 2, body->inertia.z * mass[i] / 2};
    body->mass = mass[i], body->linear = velocity[i], body->angular = omega[i];
  }
  pabd_body bodies[2] = {scene.bodies[0], scene.bodies[1]};
  add_joint(&scene, PABD_SPHERICAL, 0, 1, (pabd_dvec3){0, 0, 0}, (pabd_dvec3){0, 0, 0});
  pabd_params params = accurate(substeps, 300);
  params.local_step = local_step;
  pabd_sim *sim = create(&scene, params);
  double p[3] = {0}, l[2][3] = {{0}};
  for (int moment = 0; sim && moment < 2; ++moment) {
    double pose[14], vel[12];
    for (int frame = 0; moment == 1 && frame < 60; ++frame) pabd_sim_step(sim);
    pabd_sim_read(sim, pose, vel);
    for (int i = 0; i < 2; ++i) {
      double *x = pose + 7 * i, *v = vel + 6 * i, m = mass[i];
      pabd_dquat q = {x[3], x[4], x[5], x[6]};
      pabd_dvec3 w = pabd_dquat_rotate(pabd_dquat_conj(q), (pabd_dvec3){v[3], v[4], v[5]});
      w = pabd_dquat_rotate(
          q, (pabd_dvec3){w.x * bodies[i].inertia.x, w.y * bodies[i].inertia.y, w.z * bodies[i].inertia.z});
      l[moment][0] += w.x + m * (x[1] * v[2] - x[2] * v[1]);
      l[moment][1] += w.y + m * (x[2] * v[0] - x[0] * v[2]);
      l[moment][2] += w.z + m * (x[0] * v[1] - x[1] * v[0]);
      for (int k = 0; k < 3 && moment == 1; ++k) p[k] += m * v[k];
    }
  }
  pabd_sim_destroy(sim);
  double scale = sqrt(15.0 * 15 + 25) / 11; /* momentum of the lighter body at the start */
  *linear = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) / scale;
  *angular = sqrt(pow(l[1][0] - l[0][0], 2) + pow(l[1][1] - l[0][1], 2) + pow(l[1][2] - l[0][2], 2));
}
TEST(pair_keeps_momentum_with_the_hessian_metric) {
  double linear, coarse, fine;
  pair_momentum(PABD_LOCAL_HESSIAN, 4, &linear, &coarse);
  CHECK(linear < (is_float ? 1e-5 : 1e-10));
  pair_momentum(PABD_LOCAL_HESSIAN, 8, &linear, &fine);
  CHECK(linear < (is_float ? 1e-5 : 1e-10));
  CHECK_NEAR(coarse / fine, 2.0, 0.15); /* first order */
  pair_momentum(PABD_LOCAL_MASS, 4, &linear, &coarse);
  CHECK(linear > 0.1); /* the paper's metric fails, visibly */
}

/* A ball sunk 0.4 m into the ground without gravity. alpha = 0.95 removes a twentieth of an overlap a substep, 4.8 m/s
 * here; pushout_speed bounds that. Returns the height gained in one frame, m. */
static double pushed_out(double pushout_speed) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  pabd_body ground = pabd_body_default(), ball = pabd_body_default();
  pabd_shape box = pabd_shape_default(PABD_BOX), sphere = pabd_shape_default(PABD_SPHERE);
  box.half = (pabd_dvec3){5, 5, 1};
  ground.motion = PABD_STATIC, ground.pose.p.z = -1;
  sphere.radius = 0.5;
  ball.mass = 1, ball.inertia = pabd_shape_inertia(&sphere, 1), ball.pose.p.z = 0.1;
  box.body = pabd_scene_add_body(&scene, &ground), sphere.body = pabd_scene_add_body(&scene, &ball);
  pabd_scene_add_shape(&scene, &box), pabd_scene_add_shape(&scene, &sphere);
  pabd_params params = pabd_params_default();
  params.pushout_speed = pushout_speed, params.sweeps = 60;
  pabd_sim *sim = create(&scene, params);
  if (!sim) return NAN;
  double pose[14];
  pabd_sim_step(sim);
  pabd_sim_read(sim, pose, NULL);
  pabd_sim_destroy(sim);
  return pose[9] - 0.1;
}
TEST(deep_overlaps_are_pushed_apart_at_a_bounded_speed) {
  CHECK_NEAR(pushed_out(0.5), 0.5 / 60, 0.02 * 0.5 / 60);
  CHECK_NEAR(pushed_out(1.0), 1.0 / 60, 0.02 * 1.0 / 60);
  CHECK_NEAR(pushed_out(1e9), 0.4 * (1 - pow(0.95, 4)), 1e-3);
}
