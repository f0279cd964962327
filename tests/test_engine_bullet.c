/* Bullet's two adapters against closed forms, and against what Bullet is known to do (baselines/README.md). */
#include "engine_conformance.h"

static conformance engines[2];
static int ready[2];
static char why[2][300];

/* Float, contacts hard, friction along the sliding velocity (isotropic), restitution by velocity. */
static void open_both(void) {
  static const char *const names[2] = {"bullet-native", "bullet"};
  static int done;
  if (done) return;
  done = 1;
  for (int k = 0; k < 2; ++k) {
    engines[k] = (conformance){.round_off = 2e-6,
                               .slide_axis = 0.003,
                               .slide_diagonal = 0.006,
                               .joint_gap = 0.02,
                               .rest_depth = 1e-3,
                               .impact = 1e-4,
                               .restitution = 0.12, /* a deep first contact adds its correction to the bounce */
                               .motor = 0.01,
                               .contact_force = 0.02};
    ready[k] = conformance_open(&engines[k], names[k], why[k], sizeof why[k]);
  }
}

#define FOR_BOTH(name, check)    \
  TEST(native_##name) {          \
    open_both();                 \
    if (!ready[0]) SKIP(why[0]); \
    check(&engines[0]);          \
  }                              \
  TEST(capi_##name) {            \
    open_both();                 \
    if (!ready[1]) SKIP(why[1]); \
    check(&engines[1]);          \
  }

FOR_BOTH(free_fall, check_free_fall)
FOR_BOTH(spin, check_spin)
FOR_BOTH(inertia, check_inertia)
FOR_BOTH(slide, check_slide)
FOR_BOTH(impact, check_impact)
FOR_BOTH(restitution, check_restitution)
FOR_BOTH(rest, check_rest)
FOR_BOTH(pendulum, check_pendulum)
FOR_BOTH(joints, check_joints)
FOR_BOTH(spring, check_spring)
FOR_BOTH(motors, check_motors)
FOR_BOTH(limits, check_limits)
FOR_BOTH(rope, check_rope)
FOR_BOTH(kinematic, check_kinematic)
FOR_BOTH(pair_materials, check_pair_materials)
FOR_BOTH(filters, check_filters)
FOR_BOTH(shapes, check_shapes)
FOR_BOTH(determinism, check_determinism)
FOR_BOTH(no_sleep, check_no_sleep)
FOR_BOTH(settings, check_settings)

/* The 1:10 stack falls nearly freely at 10 and at 50 iterations, equal masses stand: Bullet's known behavior. */
static void check_stack(const conformance *c) {
  static const pabd_setting fifty = {"iterations", "50"};
  CHECK_NEAR(stack_falls(c, 10, 0, NULL, 0), 0.32, 0.04);
  CHECK_NEAR(stack_falls(c, 10, 0, &fifty, 1), 0.32, 0.04);
  CHECK_NEAR(stack_falls(c, 1, 0, NULL, 0), 10, 0);
}
FOR_BOTH(stack, check_stack)
