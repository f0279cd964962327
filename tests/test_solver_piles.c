/* What keeps large piles sound: bounded removal of overlap, bounded stiffness, and rotations of very stiff blocks. */
#include "polar.h"
#include "state.h"
#include "test.h"

static int32_t add_cube(pabd_scene *scene, pabd_motion motion, double mass, double x, double z) {
  pabd_body body = pabd_body_default();
  pabd_shape shape = pabd_shape_default(PABD_BOX);
  shape.half = (pabd_dvec3){0.5, 0.5, 0.5};
  body.motion = motion;
  body.mass = mass;
  body.inertia = pabd_shape_inertia(&shape, mass);
  body.pose.p = (pabd_dvec3){x, 0, z};
  shape.body = pabd_scene_add_body(scene, &body);
  pabd_scene_add_shape(scene, &shape);
  return shape.body;
}

static pabd_sim *create(const pabd_scene *scene, const char *const *settings) {
  pabd_params params = pabd_params_default();
  pabd_error error = {""};
  pabd_sim *sim = NULL;
  for (; settings && settings[0]; settings += 2)
    CHECK_MSG(pabd_params_set(&params, settings[0], settings[1], &error) == PABD_OK, "%s", error.text);
  CHECK_MSG(pabd_sim_create(scene, &params, &sim, &error) == PABD_OK, "%s", error.text);
  return sim;
}

/* Two cubes that overlap by 0.4 m and no gravity: they part no faster than the setting, and do part. */
TEST(overlap_is_removed_at_a_bounded_speed) {
  static const struct {
    const char *step, *key;
  } paths[] = {{"jacobi", "pushout_speed"}, {"contact-gs", "gs_pushout_speed"}};
  for (int path = 0; path < 2; ++path) {
    double speed[2];
    for (int fast = 0; fast < 2; ++fast) {
      pabd_scene scene;
      pabd_scene_init(&scene);
      scene.gravity.z = 0;
      add_cube(&scene, PABD_DYNAMIC, 1, 0, 0);
      add_cube(&scene, PABD_DYNAMIC, 1, 0, 0.6);
      const char *settings[] = {"global_step", paths[path].step, paths[path].key, fast ? "2" : "0.2", NULL};
      pabd_sim *sim = create(&scene, settings);
      real before = sim->view.pos[1].z - sim->view.pos[0].z;
      CHECK(pabd_sim_step(sim) == PABD_OK);
      speed[fast] = (double)((sim->view.pos[1].z - sim->view.pos[0].z - before) / sim->view.h_frame);
      pabd_sim_destroy(sim);
      pabd_scene_free(&scene);
    }
    CHECK_MSG(speed[0] > 0.02 && speed[0] < 0.25, "%s parts at %g m/s", paths[path].step, speed[0]);
    CHECK_MSG(speed[1] > 3 * speed[0] && speed[1] < 2.5, "%s parts at %g m/s", paths[path].step, speed[1]);
  }
}

/* A heavy cube runs into a row of light ones: kappa of the load rule never passes what stops all masses in a substep.
 * (Without the bound the rule feeds on itself: 3e13 N/m in a pile of 8000 cubes, whose cube is no float any more.) */
TEST(stiffness_is_bounded_by_the_masses) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity.z = 0;
  int32_t hammer = add_cube(&scene, PABD_DYNAMIC, 1000, -0.9, 0);
  scene.bodies[hammer].linear = (pabd_dvec3){200, 0, 0};
  for (int i = 0; i < 8; ++i) add_cube(&scene, PABD_DYNAMIC, 1, 0.9 * i, 0.02 * (i % 2));
  const char *settings[] = {"growth", "1000", "delta", "1e-7", NULL};
  pabd_sim *sim = create(&scene, settings);
  double most = 0, bound = 1008.0 * 240 * 240;
  for (int f = 0; f < 30; ++f) {
    CHECK(pabd_sim_step(sim) == PABD_OK);
    for (int32_t c = 0; c < sim->view.contact_count; ++c) most = fmax(most, (double)sim->view.contact_kappa[c]);
  }
  CHECK_MSG(most <= 1.0001 * bound, "kappa %g, bound %g", most, bound);
  CHECK_MSG(most > 0.1 * bound, "kappa %g: the bound was not tried", most);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

/* The nearest rotation and the inverse do not depend on the unit of stiffness, up to values whose cube overflows. */
TEST(stiff_blocks_stay_in_range) {
  real scales[] = {R(1), R(1e-14), R(1e14)};
  quat first = quat_make(R(1), R(0), R(0), R(0));
  for (int k = 0; k < 3; ++k) {
    sym3 S = sym3_scale(scales[k], sym3_make(R(2), R(3), R(4), R(0.3), R(-0.2), R(0.1)));
    mat3 E;
    E.x = v3_scale(scales[k], v3(R(0.01), R(-0.05), R(0.02)));
    E.y = v3_scale(scales[k], v3(R(0.04), R(0.01), R(-0.03)));
    E.z = v3_scale(scales[k], v3(R(0.02), R(0.06), R(-0.02)));
    quat q = polar_increment(S, E, R(1e-12));
    if (k == 0) first = q;
    CHECK_NEAR(q.w, first.w, 1e-6);
    CHECK_NEAR(q.x, first.x, 1e-6);
    CHECK_NEAR(q.y, first.y, 1e-6);
    CHECK_NEAR(q.z, first.z, 1e-6);
    vec3 back = sym3_mul(sym3_inverse(S), sym3_mul(S, v3(R(1), R(-2), R(3))));
    CHECK_NEAR(back.x, 1, 1e-5);
    CHECK_NEAR(back.y, -2, 1e-5);
    CHECK_NEAR(back.z, 3, 1e-5);
  }
}

/* A pyramid of 105 cubes stands still: at rest contact-gs is solved further and friction is anchored. Without that (0
 * bodies) it sways. */
static double pyramid_creep(const char *rest_bodies) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  pabd_body ground = pabd_body_default();
  pabd_shape plane = pabd_shape_default(PABD_BOX);
  ground.motion = PABD_STATIC, ground.pose.p.z = -1, plane.half = (pabd_dvec3){100, 100, 1};
  plane.body = pabd_scene_add_body(&scene, &ground);
  pabd_scene_add_shape(&scene, &plane);
  for (int row = 0; row < 14; ++row)
    for (int k = 0; k < 14 - row; ++k) add_cube(&scene, PABD_DYNAMIC, 1, 1.01 * (k + 0.5 * row), 0.501 + 1.001 * row);
  const char *settings[] = {"global_step", "contact-gs", "gs_rest_bodies", rest_bodies, NULL};
  pabd_sim *sim = create(&scene, settings);
  double most = 0;
  vec3 start[106];
  for (int f = 1; f <= 480; ++f) {
    if (!CHECK(pabd_sim_step(sim) == PABD_OK)) break;
    for (int32_t i = 1; i < 106; ++i) {
      vec3 p = sim->view.pos[i];
      if (f == 120) start[i] = p;
      if (f > 120) most = fmax(most, hypot((double)(p.x - start[i].x), (double)(p.y - start[i].y)));
    }
  }
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
  return most;
}
TEST(pyramid_does_not_creep) {
  double creep = pyramid_creep("500"), without = pyramid_creep("0");
  CHECK_MSG(creep < 1e-4, "%g m in 6 s", creep);
  CHECK_MSG(without > 2 * creep, "%g m without, %g m with", without, creep);
}

/* A ball falls 1 m on the ground and comes back to e^2 m, and then to e^4 m, on every path. (Flight and contact have
 * different substeps in some paths: a few mm at the change.) */
TEST(balls_bounce_on_every_path) {
  static const char *const paths[] = {"jacobi", "contact-gs", "direct", "auto"};
  static const double restitutions[] = {0.5, 0.8, 1};
  for (int path = 0; path < 4; ++path) {
    for (int k = 0; k < 3; ++k) {
      double e = restitutions[k];
      pabd_scene scene;
      pabd_scene_init(&scene);
      pabd_scene_set_materials(&scene, 1, 0.5, e);
      pabd_body ground = pabd_body_default(), body = pabd_body_default();
      pabd_shape plane = pabd_shape_default(PABD_BOX), ball = pabd_shape_default(PABD_SPHERE);
      ground.motion = PABD_STATIC, ground.pose.p.z = -1, plane.half = (pabd_dvec3){10, 10, 1};
      plane.body = pabd_scene_add_body(&scene, &ground);
      pabd_scene_add_shape(&scene, &plane);
      ball.radius = 0.2, body.mass = 2, body.inertia = pabd_shape_inertia(&ball, 2), body.pose.p.z = 1.2;
      ball.body = pabd_scene_add_body(&scene, &body);
      pabd_scene_add_shape(&scene, &ball);
      const char *settings[] = {"global_step", paths[path], NULL};
      pabd_sim *sim = create(&scene, settings);
      double top[3] = {0, 0, 0};
      int bounces = 0, falling = 1;
      for (int f = 0; f < 240 && bounces < 3; ++f) {
        if (!CHECK(pabd_sim_step(sim) == PABD_OK)) break;
        double z = (double)sim->view.pos[1].z - 0.2, speed = (double)sim->view.vel[1].z;
        if (falling && speed > 0) falling = 0, ++bounces;
        if (!falling && speed < 0) falling = 1;
        if (bounces > 0 && bounces < 3) top[bounces] = fmax(top[bounces], z);
      }
      CHECK_MSG(fabs(top[1] - e * e) < fmax(0.01 * e * e, 0.004), "%s, e = %g: %g m, not %g", paths[path], e, top[1],
                e * e);
      CHECK_MSG(fabs(top[2] - e * e * e * e) < 0.025 * e * e * e * e + 0.002, "%s, e = %g: second %g m, not %g",
                paths[path], e, top[2], e * e * e * e);
      pabd_sim_destroy(sim);
      pabd_scene_free(&scene);
    }
  }
}
