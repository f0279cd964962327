/* The pipe protocol: the Python template behind the bridge, and programs that do not keep to it. */
#include "engine_conformance.h"

static conformance python_template;
static char why[300];

static int open_engine(void) {
  static const pabd_setting program[] = {{"program", "exec python3 baselines/external/template.py"}};
  if (python_template.engine) return 1;
  if (!CHECK_MSG(conformance_open(&python_template, "external", why, sizeof why), "%s", why)) return 0;
  python_template.settings = program;
  python_template.setting_count = 1;
  python_template.round_off = 1e-12;
  return 1;
}

TEST(free_fall) {
  if (open_engine()) check_free_fall(&python_template);
}

TEST(spin) {
  if (open_engine()) check_spin(&python_template);
}

/* The program's settings travel, its own time is told, the pipe's cost is told apart. */
TEST(settings_and_time) {
  if (!open_engine()) return;
  static const pabd_setting more = {"settings", "substeps=4"};
  pabd_scene scene;
  pabd_scene_init(&scene);
  int32_t b = add_body(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){1, 1, 1}, (pabd_dvec3){0, 0, 0});
  run r;
  run_start(&r, &python_template, &scene, &more, 1);
  run_frames(&r, 1);
  if (run_good(&r, "substeps of the program")) {
    double h = FRAME / 4;
    CHECK_NEAR(r.pose[b][2], -GRAVITY * h * h * 4 * 5 / 2, 1e-12);
    pabd_engine_stats stats;
    python_template.engine->stats(r.world, &stats);
    CHECK(stats.self_ms > 0 && stats.self_ms < 100);
    CHECK(run_counter(&r, "protocol_ms") > 0);
  }
  run_end(&r);
  pabd_scene_free(&scene);
}

/* A refusal, a program that is not there, one that leaves, one that answers nonsense, and one that is killed by a
 * signal. */
TEST(broken_programs) {
  if (!open_engine()) return;
  static const struct {
    const char *program, *expected;
    pabd_status status;
    int with_shape;
  } rows[] = {
      {"exec python3 baselines/external/template.py", "free bodies only", PABD_ERR_UNSUPPORTED, 1},
      {"exec /no/such/program", "exit code", PABD_ERR_INTERNAL, 0},
      {"exit 3", "exit code 3", PABD_ERR_INTERNAL, 0},
      {"echo hello; cat >/dev/null", "hello", PABD_ERR_INTERNAL, 0},
      {"kill -9 $$", "signal 9", PABD_ERR_INTERNAL, 0},
      {"echo 'input mass is odd'; cat >/dev/null", "mass is odd", PABD_ERR_INPUT, 0},
      {"", "program", PABD_ERR_INPUT, 0},
  };
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
    pabd_setting given = {"program", rows[k].program};
    pabd_scene scene;
    pabd_scene_init(&scene);
    if (rows[k].with_shape)
      add_sphere(&scene, 1, 0.1, (pabd_dvec3){0, 0, 0});
    else
      add_body(&scene, PABD_DYNAMIC, 1, (pabd_dvec3){1, 1, 1}, (pabd_dvec3){0, 0, 0});
    run r;
    run_start(&r, &python_template, &scene, &given, 1);
    CHECK_MSG(r.status == rows[k].status, "program \"%s\": status \"%s\" (%s)", rows[k].program,
              pabd_status_text(r.status), r.error.text);
    CHECK(r.world == NULL);
    CHECK_CONTAINS(r.error.text, rows[k].expected);
    pabd_scene_free(&scene);
  }
}
