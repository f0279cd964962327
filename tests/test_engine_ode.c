/* ODE's adapter against closed forms, and against what ODE is known to do (baselines/README.md). */
#include "engine_conformance.h"

static conformance quick, direct;
static int ready;
static char why[300];

static void open_engine(void) {
  static const pabd_setting for_quick[] = {{"contact_forces", "1"}};
  static const pabd_setting for_direct[] = {{"contact_forces", "1"}, {"stepper", "direct"}};
  static int done;
  if (done) return;
  done = 1;
  /* Double, friction a pyramid on ODE's axes: 1.76 m along the diagonal. */
  quick = (conformance){.settings = for_quick,
                        .setting_count = 1,
                        .round_off = 1e-12,
                        .slide_axis = 0.003,
                        .joint_gap = 0.02,
                        .rest_depth = 4e-3, /* exactly touching contacts are found one frame late */
                        .impact = 0.65,     /* a penetration of 4 cm is removed by velocity, which stays */
                        .spring = 0.06,     /* implicit Euler damps: 0.15 of the amplitude in half a period */
                        .restitution = 0.12,
                        .motor = 0.02,
                        .contact_force = 0.05};
  ready = conformance_open(&quick, "ode", why, sizeof why);
  direct = quick;
  direct.settings = for_direct;
  direct.setting_count = 2;
}

#define FOR_BOTH(name, check) \
  TEST(quick_##name) {        \
    open_engine();            \
    if (!ready) SKIP(why);    \
    check(&quick);            \
  }                           \
  TEST(direct_##name) {       \
    open_engine();            \
    if (!ready) SKIP(why);    \
    check(&direct);           \
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
FOR_BOTH(kinematic, check_kinematic)
FOR_BOTH(pair_materials, check_pair_materials)
FOR_BOTH(filters, check_filters)
FOR_BOTH(shapes, check_shapes)
FOR_BOTH(determinism, check_determinism)
FOR_BOTH(no_sleep, check_no_sleep)
FOR_BOTH(settings, check_settings)

/* The 1:10 stack falls with QuickStep; the direct step holds it from an overlap of 1 mm, and not when exactly touching.
 */
TEST(stack) {
  open_engine();
  if (!ready) SKIP(why);
  CHECK_NEAR(stack_falls(&quick, 10, 0, NULL, 0), 0.32, 0.04);
  CHECK_NEAR(stack_falls(&direct, 10, -1e-3, NULL, 0), 10, 0);
  CHECK_NEAR(stack_falls(&direct, 10, 0, NULL, 0), 0.32, 0.04);
}
