/* The template for new engines does what it claims, so that a copy starts from something right. */
#include "engine_conformance.h"

static conformance template_engine;
static char why[300];

static int open_engine(void) {
  if (template_engine.engine) return 1;
  template_engine.round_off = 1e-12;
  return CHECK_MSG(conformance_open_at(&template_engine, PABD_BUILD_DIR "/tests/engines", "template", why, sizeof why),
                   "%s", why);
}

#define CHECK_WITH(name, check) \
  TEST(name) {                  \
    if (!open_engine()) return; \
    check(&template_engine);    \
  }

CHECK_WITH(free_fall, check_free_fall)
CHECK_WITH(spin, check_spin)
CHECK_WITH(inertia, check_inertia)
CHECK_WITH(settings, check_settings)

/* What it cannot do it refuses, with the reason. */
TEST(refusal) {
  if (!open_engine()) return;
  pabd_scene scene;
  pabd_scene_init(&scene);
  add_ground(&scene);
  int32_t b = add_sphere(&scene, 1, 0.1, (pabd_dvec3){0, 0, 1});
  add_joint(&scene, PABD_HINGE, PABD_WORLD, b, (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}});
  run r;
  run_start(&r, &template_engine, &scene, NULL, 0);
  CHECK(r.status == PABD_ERR_UNSUPPORTED);
  CHECK(r.world == NULL);
  CHECK_CONTAINS(r.error.text, "spheres");
  CHECK_CONTAINS(r.error.text, "boxes");
  CHECK_CONTAINS(r.error.text, "hinges");
  pabd_scene_free(&scene);
}
