/* The device back end without a device: its host side and its kernels' rows run on the stand-in (solver/standin), with
 * blocks and threads in permuted orders, and every field must have the bits of the CPU back end, frame by frame, on
 * every canonical case. Nothing here ran on a GPU. */
#include <glob.h>

#include "backend_cuda.h"
#include "pabd_case.h"
#include "standin/standin.h"
#include "state.h"
#include "test.h"

/* Fields that only one side fills, or whose rows beyond the live ones differ. */
static int is_private(const char *name) {
  static const char *const names[] = {"island",  "pair_class", "node_order", "sort_key", "pair_scratch",
                                      "big_key", "hit_count",  "morton",     "pair_key", NULL};
  for (int k = 0; names[k]; ++k)
    if (strcmp(names[k], name) == 0) return 1;
  return 0;
}

/* Number of fields that differ; names the first. */
static int compare_fields(const pabd_sim *a, const pabd_sim *b, const char *where, int frame) {
  int bad = 0;
#define FIELD(type, name, rows, planes, unit, writer)                                                                \
  if (!is_private(#name) &&                                                                                          \
      memcmp(a->view.name, b->view.name, sizeof(type) * (size_t)a->capacity_##rows * (planes)) != 0 && bad++ == 0) { \
    const unsigned char *x = (const unsigned char *)a->view.name, *y = (const unsigned char *)b->view.name;          \
    size_t at = 0;                                                                                                   \
    while (x[at] == y[at]) ++at;                                                                                     \
    test_fail(__FILE__, __LINE__, "%s, frame %d: field %s differs, first in row %zu", where, frame, #name,           \
              at / sizeof(type));                                                                                    \
  }
#include "fields.def"
#undef FIELD
  const pabd_view *v = &a->view, *w = &b->view;
  if (a->stats.pair_count != b->stats.pair_count || a->stats.contact_count != b->stats.contact_count) {
    test_fail(__FILE__, __LINE__, "%s, frame %d: %d and %d pairs, %d and %d contacts", where, frame,
              a->stats.pair_count, b->stats.pair_count, a->stats.contact_count, b->stats.contact_count);
    return bad + 1;
  }
  if (memcmp(v->pair_key, w->pair_key, sizeof *v->pair_key * (size_t)a->stats.pair_count) != 0) {
    test_fail(__FILE__, __LINE__, "%s, frame %d: pair keys differ", where, frame);
    ++bad;
  }
  return bad;
}

static void compare_stats(const pabd_stats *a, const pabd_stats *b, const char *where, int frame) {
#define SAME(field)                                                                                      \
  if (a->field != b->field)                                                                              \
  test_fail(__FILE__, __LINE__, "%s, frame %d: %s is %g and %g", where, frame, #field, (double)a->field, \
            (double)b->field)
  SAME(dynamic_count);
  SAME(contact_closed_count);
  SAME(bodies_free);
  SAME(bodies_jacobi);
  SAME(contact_evaluations);
  SAME(sweeps);
  SAME(overflow_pairs);
  SAME(overflow_contacts);
  SAME(residual);
  SAME(rigidity_defect);
  SAME(bond_error);
  SAME(diverged_body);
#undef SAME
}

typedef struct setting {
  const char *key, *value;
} setting;

/* Runs a scene on both back ends. Returns 0 where the device has no such setting or the solver no such joint. */
static int run_both(const pabd_scene *scene, const setting *settings, int count, int frames, const char *where) {
  pabd_params params = pabd_params_default();
  pabd_error error = {""};
  for (int k = 0; k < count; ++k)
    if (pabd_params_set(&params, settings[k].key, settings[k].value, &error) != PABD_OK)
      test_fail(__FILE__, __LINE__, "%s", error.text);
  pabd_sim *cpu = NULL, *device = NULL;
  pabd_status status = pabd_sim_create(scene, &params, &cpu, &error);
  if (status == PABD_ERR_UNSUPPORTED) return 0;
  CHECK(status == PABD_OK);
  CHECK(pabd_sim_create(scene, &params, &device, &error) == PABD_OK);
  status = pabd_cuda_attach(device, &error);
  if (status != PABD_OK) test_fail(__FILE__, __LINE__, "%s: %s", where, error.text);
  for (int frame = 0; frame < frames && status == PABD_OK; ++frame) {
    pabd_status a = pabd_sim_step(cpu), b = pabd_sim_step(device);
    if (a != b) test_fail(__FILE__, __LINE__, "%s, frame %d: status %d and %d", where, frame, a, b);
    compare_stats(&cpu->stats, &device->stats, where, frame);
    int bad = 0;
    if (pabd_cuda_download(device, &error) != PABD_OK) test_fail(__FILE__, __LINE__, "%s: %s", where, error.text);
    bad += compare_fields(cpu, device, where, frame);
    if (bad > 0 || a != b || a != PABD_OK) break;
  }
  pabd_sim_destroy(cpu);
  pabd_sim_destroy(device);
  return 1;
}

/* Small versions of the cases with a size, so that all of them run. */
static void shrink(const char *name, const char **overrides, int *count) {
  *count = 0;
  if (strcmp(name, "pile") == 0) overrides[(*count)++] = "n=4";
  if (strcmp(name, "pile-settled") == 0) overrides[(*count)++] = "n=4";
}

TEST(every_case_has_the_bits_of_the_cpu) {
  glob_t files;
  REQUIRE(glob("cases/*.json", 0, NULL, &files) == 0);
  int ran = 0, refused = 0;
  for (size_t k = 0; k < files.gl_pathc; ++k) {
    pabd_case c;
    pabd_error error = {""};
    char name[64];
    const char *slash = strrchr(files.gl_pathv[k], '/'), *overrides[4];
    int override_count = 0;
    snprintf(name, sizeof name, "%.*s", (int)strlen(slash + 1) - 5, slash + 1);
    shrink(name, overrides, &override_count);
    if (pabd_case_load(files.gl_pathv[k], overrides, override_count, &c, &error) != PABD_OK) {
      test_fail(__FILE__, __LINE__, "%s", error.text);
      continue;
    }
    standin_set_order((uint32_t)(k + 1));
    int frames = c.scene.body_count > 100 ? 20 : 40;
    if (run_both(&c.scene, NULL, 0, frames, name))
      ++ran;
    else
      ++refused;
    pabd_case_free(&c);
  }
  globfree(&files);
  printf("%d cases ran on both back ends, %d need joints that the method lacks\n", ran, refused);
  CHECK(ran > 20);
}
