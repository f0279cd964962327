/* The reference engine: what any adapter must pass, and what makes it a reference: exact static forces, the order of
 * its time steps, failure that is said. */
#include "engine_conformance.h"

static conformance reference;
static int ready;
static char why[300];
static void (*joint_force)(void *world, int32_t joint, double *force);

static void open_engine(void) {
  static int done;
  if (done) return;
  done = 1;
  reference = (conformance){.round_off = 1e-12,
                            .slide_axis = 1e-5,
                            .slide_diagonal = 1e-5,
                            .joint_gap = 1e-9,
                            .rest_depth = 1e-9,
                            .impact = 1e-6,
                            .spring = 0.06, /* implicit Euler damps: 0.15 of the amplitude in half a period */
                            .motor = 1e-6,
                            .contact_force = 1e-9};
  ready = conformance_open(&reference, "reference", why, sizeof why);
  if (!ready) return;
  void *library = dlopen(PABD_BUILD_DIR "/engines/reference.so", RTLD_NOW | RTLD_LOCAL);
  *(void **)&joint_force = dlsym(library, "pabd_reference_joint_force");
}

#define CONFORMANCE(name, check) \
  TEST(name) {                   \
    open_engine();               \
    if (!ready) SKIP(why);       \
    check(&reference);           \
  }

CONFORMANCE(free_fall, check_free_fall)
CONFORMANCE(spin, check_spin)
CONFORMANCE(inertia, check_inertia)
CONFORMANCE(slide, check_slide)
CONFORMANCE(impact, check_impact)
CONFORMANCE(rest, check_rest)
CONFORMANCE(pendulum, check_pendulum)
CONFORMANCE(joints, check_joints)
CONFORMANCE(spring, check_spring)
CONFORMANCE(motors, check_motors)
CONFORMANCE(limits, check_limits)
CONFORMANCE(kinematic, check_kinematic)
CONFORMANCE(pair_materials, check_pair_materials)
CONFORMANCE(filters, check_filters)
CONFORMANCE(shapes, check_shapes)
CONFORMANCE(determinism, check_determinism)
CONFORMANCE(no_sleep, check_no_sleep)
CONFORMANCE(settings, check_settings)

/* Cubes of 1, 10, .. 1e5 kg on each other: every interface carries the weight above it. */
TEST(stack_forces) {
  open_engine();
  if (!ready) SKIP(why);
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t below[7] = {add_ground(&scene)};
  for (int i = 0; i < 6; ++i)
    below[i + 1] = add_box(&scene, PABD_DYNAMIC, pow(10, i), (pabd_dvec3){0.5, 0.5, 0.5}, (pabd_dvec3){0, 0, 0.5 + i});
  run r;
  run_start(&r, &reference, &scene, NULL, 0);
  for (int frame = 0; frame < 10; ++frame) {
    run_frames(&r, 1);
    if (!run_good(&r, "stack")) break;
    pabd_contact contacts[64];
    const int32_t count = reference.engine->contacts(r.world, contacts, 64);
    REQUIRE(count >= 18 && count <= 64);
    double weight = 0, worst = 0;
    for (int i = 5; i >= 0; --i) {
      double force = 0, side = 0;
      weight += pow(10, i) * GRAVITY;
      for (int32_t k = 0; k < count; ++k) {
        const pabd_contact *c = &contacts[k];
        const int up = c->body_a == below[i + 1] && c->body_b == below[i];
        const int down = c->body_a == below[i] && c->body_b == below[i + 1];
        if (!up && !down) continue;
        force += up ? c->force.z : -c->force.z;
        side = fmax(side, hypot(c->force.x, c->force.y));
        CHECK(c->force.z * c->normal.z >= 0);
      }
      worst = fmax(worst, fabs(force / weight - 1));
      CHECK_NEAR(force / weight, 1, 1e-8);
      CHECK(side <= 0.5 * weight);
    }
    if (frame == 9)
      printf("  reference: stack 1:10, forces of the interfaces off by at most %.1e of the weight\n", worst);
    CHECK(run_counter(&r, "residual_relative") < 1e-8);
    CHECK(run_counter(&r, "natural_map") < 1e-9);
    CHECK(run_counter(&r, "steps_loose") == 0);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Ten links and a heavy end, hanging: every joint carries the weight below it, sideways nothing. */
TEST(chain_forces) {
  open_engine();
  if (!ready) SKIP(why);
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t last = PABD_WORLD;
  const int links = 10;
  for (int i = 0; i < links; ++i) {
    const int32_t b = add_box(&scene, PABD_DYNAMIC, i == links - 1 ? 1000 : 1, (pabd_dvec3){0.1, 0.1, 0.5},
                              (pabd_dvec3){0, 0, -0.5 - i});
    add_joint(&scene, PABD_SPHERICAL, last, b, (pabd_dpose){{0, 0, -i}, {1, 0, 0, 0}});
    last = b;
  }
  run r;
  run_start(&r, &reference, &scene, NULL, 0);
  run_frames(&r, 5);
  double weight = 0, worst = 0;
  if (run_good(&r, "chain"))
    for (int i = links - 1; i >= 0; --i) {
      double force[6];
      weight += (i == links - 1 ? 1000 : 1) * GRAVITY;
      joint_force(r.world, i, force);
      worst = fmax(worst, fabs(force[2] / weight - 1));
      CHECK_NEAR(force[2] / weight, 1, 1e-8);
      CHECK_NEAR(hypot(force[0], force[1]) / weight, 0, 1e-8);
    }
  printf("  reference: hanging chain 1000:1, joint forces off by at most %.1e\n", worst);
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Angle error of a physical pendulum after 0.5 s, released at 60 degrees, against the same at 4096 midpoint steps a
 * frame's worth. */
static double pendulum_end(const char *integrator, int substeps, double *end) {
  char count[16];
  snprintf(count, sizeof count, "%d", substeps);
  const pabd_setting settings[] = {{"integrator", integrator}, {"substeps", count}};
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.frame_time = 0.5;
  const double lean = M_PI / 3;
  int32_t b = add_body(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.02, 0.09, 0.09},
                       (pabd_dvec3){0.5 * cos(lean), 0, -0.5 * sin(lean)});
  scene.bodies[b].pose.q = turn(0, lean, 0);
  int32_t middle = add_body(&scene, PABD_DYNAMIC, 0.5, (pabd_dvec3){0.02, 0.05, 0.05},
                            (pabd_dvec3){1.5 * cos(lean), 0, -1.5 * sin(lean)});
  scene.bodies[middle].pose.q = turn(0, lean, 0);
  add_joint(&scene, PABD_SPHERICAL, PABD_WORLD, b, (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}});
  add_joint(&scene, PABD_SPHERICAL, b, middle, (pabd_dpose){{cos(lean), 0, -sin(lean)}, {1, 0, 0, 0}});
  run r;
  run_start(&r, &reference, &scene, settings, 2);
  run_frames(&r, 1);
  run_good(&r, integrator);
  memcpy(end, r.pose[middle], 3 * sizeof *end);
  run_end(&r);
  pabd_scene_free(&scene);
  return 0;
}

static double fitted_order(const char *integrator, int first) {
  double exact[3], end[3], x[4], y[4], sx = 0, sy = 0, sxx = 0, sxy = 0;
  pendulum_end("midpoint", 4096, exact);
  for (int k = 0; k < 4; ++k) {
    pendulum_end(integrator, first << k, end);
    const double d[3] = {end[0] - exact[0], end[1] - exact[1], end[2] - exact[2]};
    x[k] = log(first << k), y[k] = log(norm3(d));
    sx += x[k], sy += y[k], sxx += x[k] * x[k], sxy += x[k] * y[k];
  }
  const double order = -(4 * sxy - sx * sy) / (4 * sxx - sx * sx);
  printf("  reference: double pendulum, %s: fitted order %.3f, errors %.2e to %.2e m\n", integrator, order, exp(y[0]),
         exp(y[3]));
  return order;
}

TEST(order_of_euler) {
  open_engine();
  if (!ready) SKIP(why);
  CHECK_NEAR(fitted_order("euler", 128), 1, 0.05);
}

TEST(order_of_midpoint) {
  open_engine();
  if (!ready) SKIP(why);
  CHECK_NEAR(fitted_order("midpoint", 32), 2, 0.05);
}

/* A step that is not solved is a failure with a number, not a result. */
TEST(failure_is_said) {
  open_engine();
  if (!ready) SKIP(why);
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t b = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.1, 0.1}, (pabd_dvec3){0.5, 0, 0});
  scene.bodies[b].angular = (pabd_dvec3){0, 20, 5};
  add_joint(&scene, PABD_SPHERICAL, PABD_WORLD, b, (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}});
  const pabd_setting short_of[] = {{"iterations", "1"}, {"accept", "0"}};
  run r;
  run_start(&r, &reference, &scene, short_of, 2);
  run_frames(&r, 1);
  CHECK(r.status == PABD_DIVERGED);
  CHECK(strstr(r.error.text, "not converged") != NULL);
  run_end(&r);
  const pabd_setting few[] = {{"bodies_max", "1"}};
  add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.1, 0.1}, (pabd_dvec3){5, 0, 0});
  run_start(&r, &reference, &scene, few, 1);
  CHECK(r.status == PABD_ERR_UNSUPPORTED);
  CHECK(strstr(r.error.text, "bodies_max") != NULL);
  run_end(&r);
  const pabd_setting midpoint[] = {{"integrator", "midpoint"}};
  run_start(&r, &reference, &scene, midpoint, 1);
  CHECK(r.status == PABD_ERR_UNSUPPORTED);
  CHECK(strstr(r.error.text, "midpoint") != NULL);
  run_end(&r);
  pabd_scene_free(&scene);
}

/* Two codes that share nothing solve the same step: the affine reference and the suite's Jacobi method, swept until it
 * stands still, on two bodies that turn about a ball joint. The other inertia is another step, but of third order. */
TEST(same_step_as_converged_jacobi) {
  open_engine();
  if (!ready) SKIP(why);
  conformance swept = {0};
  if (!conformance_open(&swept, "pabd-double", why, sizeof why)) SKIP(why);
  const pabd_setting affine[] = {{"inertia", "affine"}};
  const pabd_setting many[] = {
      {"global_step", "jacobi"}, {"substeps", "1"}, {"sweeps", "4000"}, {"predict_passes", "32"}, {"alpha", "0"}};
  pabd_scene scene;
  pabd_scene_init(&scene);
  scene.gravity = (pabd_dvec3){0, 0, 0};
  const int32_t a = add_box(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){0.5, 0.1, 0.1}, (pabd_dvec3){-0.5, 0, 0});
  const int32_t b = add_box(&scene, PABD_DYNAMIC, 10, (pabd_dvec3){0.5, 0.1, 0.1}, (pabd_dvec3){0.5, 0, 0});
  scene.bodies[a].angular = (pabd_dvec3){0, 0, 4}, scene.bodies[b].angular = (pabd_dvec3){0, 1, -1};
  scene.bodies[a].linear = (pabd_dvec3){0, -15.0 / 11, 5.0 / 11};
  scene.bodies[b].linear = (pabd_dvec3){0, 3.0 / 22, -1.0 / 22};
  add_joint(&scene, PABD_SPHERICAL, a, b, (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}});
  run one, other, plain;
  run_start(&one, &reference, &scene, affine, 1);
  run_start(&plain, &reference, &scene, NULL, 0);
  run_start(&other, &swept, &scene, many, 5);
  run_frames(&one, 3);
  run_frames(&plain, 3);
  run_frames(&other, 3);
  if (run_good(&one, "affine") && run_good(&other, "jacobi") && run_good(&plain, "rotation")) {
    double apart = 0, inertia = 0;
    for (int32_t i = 0; i < scene.body_count; ++i)
      for (int k = 0; k < 7; ++k) {
        apart = fmax(apart, fabs(one.pose[i][k] - other.pose[i][k]));
        inertia = fmax(inertia, fabs(one.pose[i][k] - plain.pose[i][k]));
      }
    printf("  reference: pair after 3 frames, %.1e from converged Jacobi; the other inertia is %.1e away\n", apart,
           inertia);
    CHECK_NEAR(apart, 0, 5e-13);
    CHECK(inertia > 1e-12); /* the comparison can tell the two apart */
    CHECK_NEAR(inertia, 0, 1e-9);
  }
  run_end(&one);
  run_end(&plain);
  run_end(&other);
  pabd_scene_free(&scene);
}
