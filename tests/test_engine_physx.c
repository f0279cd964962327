/* PhysX's adapter (a Python program behind the pipe protocol) against closed forms. */
#include "engine_conformance.h"

static conformance physx;
static int ready;
static char why[300];

static void open_engine(void) {
  static int done;
  if (done) return;
  done = 1;
  /* Float, PGS 4/1. */
  physx = (conformance){.round_off = 4e-6,
                        .slide_axis = 0.01,
                        .slide_diagonal = 0.01,

                        .joint_gap = 0.03, /* three ball joints that make a fixed one give a little */
                        .rest_depth = 8e-3,
                        .impact = 0.01,
                        .restitution = 0.12};
  ready = conformance_open(&physx, "physx", why, sizeof why);
}

#define CHECK_WITH(name, check) \
  TEST(name) {                  \
    open_engine();              \
    if (!ready) SKIP(why);      \
    check(&physx);              \
  }

CHECK_WITH(free_fall, check_free_fall)
CHECK_WITH(spin, check_spin)
CHECK_WITH(inertia, check_inertia)
CHECK_WITH(slide, check_slide)
CHECK_WITH(impact, check_impact)
CHECK_WITH(restitution, check_restitution)
CHECK_WITH(rest, check_rest)
CHECK_WITH(pendulum, check_pendulum)
CHECK_WITH(joints, check_joints)
CHECK_WITH(rope, check_rope)
CHECK_WITH(filters, check_filters)
CHECK_WITH(shapes, check_shapes)
CHECK_WITH(determinism, check_determinism)
CHECK_WITH(no_sleep, check_no_sleep)
CHECK_WITH(settings, check_settings)
