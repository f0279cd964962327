/* MuJoCo's adapter against closed forms, and against what MuJoCo is known to do (baselines/README.md). */
#include "engine_conformance.h"

static conformance standard, stiff;
static int ready;
static char why[300];

static void open_engine(void) {
  static const pabd_setting for_stiff[] = {
      {"cone", "elliptic"}, {"contact_steps", "2"}, {"contact_dmin", "0.99"}, {"contact_dmax", "0.9999"},
      {"joint_steps", "2"}, {"joint_dmin", "0.99"}, {"joint_dmax", "0.9999"}, {"contact_width", "0.001"}};
  static int done;
  if (done) return;
  done = 1;
  /* Double; soft contacts and joints, the default's friction a pyramid: 3.56 m along the diagonal. */
  standard = (conformance){.round_off = 1e-12,
                           .slide_axis = 0.003,
                           .joint_gap = 0.03,
                           .energy_gain = 0.1, /* explicit Euler terms of a free body on a connect */
                           .rest_depth = 4e-3,
                           .impact = 1, /* a soft contact gives back some of it */
                           .contact_force = 0.02};
  ready = conformance_open(&standard, "mujoco", why, sizeof why);
  stiff = standard;
  stiff.settings = for_stiff;
  stiff.setting_count = sizeof for_stiff / sizeof for_stiff[0];
  stiff.slide_diagonal = 0.003;
}

#define FOR_BOTH(name, check) \
  TEST(standard_##name) {     \
    open_engine();            \
    if (!ready) SKIP(why);    \
    check(&standard);         \
  }                           \
  TEST(stiff_##name) {        \
    open_engine();            \
    if (!ready) SKIP(why);    \
    check(&stiff);            \
  }

FOR_BOTH(free_fall, check_free_fall)
FOR_BOTH(spin, check_spin)
FOR_BOTH(inertia, check_inertia)
FOR_BOTH(slide, check_slide)
FOR_BOTH(impact, check_impact)
FOR_BOTH(rest, check_rest)
FOR_BOTH(pendulum, check_pendulum)
FOR_BOTH(joints, check_joints)
FOR_BOTH(spring, check_spring)
FOR_BOTH(rope, check_rope)
FOR_BOTH(filters, check_filters)
FOR_BOTH(shapes, check_shapes)
FOR_BOTH(determinism, check_determinism)
FOR_BOTH(no_sleep, check_no_sleep)
FOR_BOTH(settings, check_settings)

/* The 1:10 stack sinks with MuJoCo's defaults and is held with stiff contacts. */
TEST(stack) {
  open_engine();
  if (!ready) SKIP(why);
  CHECK_NEAR(stack_falls(&standard, 10, 0, NULL, 0), 0.32, 0.04);
  CHECK_NEAR(stack_falls(&stiff, 10, 0, NULL, 0), 10, 0);
}
