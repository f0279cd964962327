/* The performance model: are its operations those of the kernels (counted by running them), its bytes those of the
 * declared fields, and its times the arithmetic that it says? How well it predicts measured times is no test, for those
 * depend on the machine's other work: gpu-check prints both side by side. */
#include "pabd_case.h"
#include "perf_model.h"
#include "state.h"
#include "test.h"

int64_t count_operations(int32_t kernel, int32_t row, const void *view);

static pabd_sim *settled_pile(const char *size, int frames) {
  pabd_case c;
  pabd_error error = {""};
  if (pabd_case_load("cases/pile.json", &size, 1, &c, &error) != PABD_OK) {
    test_fail(__FILE__, __LINE__, "%s", error.text);
    return NULL;
  }
  pabd_params params = pabd_params_default();
  pabd_sim *sim = NULL;
  if (pabd_sim_create(&c.scene, &params, &sim, &error) != PABD_OK) test_fail(__FILE__, __LINE__, "%s", error.text);
  pabd_case_free(&c);
  for (int frame = 0; sim && frame < frames; ++frame) pabd_sim_step(sim);
  return sim;
}

static pabd_perf_load load_of(const pabd_sim *sim) {
  const pabd_view *v = &sim->view;
  const pabd_params *p = &sim->params;
  pabd_perf_load load = {
      v->body_count, v->shape_count,     v->pair_count, v->contact_count, v->end_first[v->body_count],
      v->bond_count, sim->capacity_pair, p->substeps,   p->sweeps,        p->relax_sweeps,
      p->multipliers};
  return load;
}

static int64_t count_rows(int32_t kernel, int32_t rows, const pabd_view *view) {
  int64_t sum = 0;
  for (int32_t i = 0; i < rows; ++i) sum += count_operations(kernel, i, view);
  return sum;
}

TEST(operations_are_those_of_the_kernels) {
  static const char *const kernels[] = {
#define KERNEL(name, rows, reads, writes) #name "/" #rows,
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
      "bounds/shapes", "narrow/pairs"};
  pabd_sim *sim = settled_pile("n=6", 90);
  REQUIRE(sim != NULL);
  const pabd_view *v = &sim->view;
  pabd_perf_load load = load_of(sim);
  CHECK(load.contacts > 300);
  for (int32_t k = 0; k < (int32_t)(sizeof kernels / sizeof *kernels); ++k) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(kernels[k], "/"), kernels[k]);
    const char *rows = strchr(kernels[k], '/') + 1;
    int32_t count = strcmp(rows, "bodies") == 0     ? v->body_count
                    : strcmp(rows, "contacts") == 0 ? v->contact_count
                    : strcmp(rows, "pairs") == 0    ? v->pair_count
                    : strcmp(rows, "shapes") == 0   ? v->shape_count
                                                    : 0;
    if (count == 0 || strcmp(name, "frame_begin") == 0) continue; /* copies only */
    double counted = (double)count_rows(k, count, v), modeled = pabd_perf_kernel_operations(name, &load);
    /* bodies on their way take other branches than those at rest */
    double most = strcmp(name, "narrow") == 0 ? 0.35 : 0.15;
    if (!(fabs(modeled - counted) <= most * counted))
      test_fail(__FILE__, __LINE__, "%s: the model has %.0f operations, counted are %.0f", name, modeled, counted);
  }
  pabd_sim_destroy(sim);
}

TEST(bytes_are_those_of_the_declared_fields) {
  pabd_perf_load load = {100, 100, 400, 300, 600, 0, 2400, 4, 3, 2, 1};
  double gathered = -1.0;
  /* frame_begin: pose in, pose out */
  CHECK_NEAR(pabd_perf_kernel_bytes("frame_begin", &load, &gathered), 100.0 * 2 * (12 + 16), 0.0);
  CHECK_NEAR(gathered, 0.0, 0.0);
  /* contact_force: two bodies, kappa and mu, seven vectors of three, one of them written; the iterate of all bodies
   * once */
  CHECK_NEAR(pabd_perf_kernel_bytes("contact_force", &load, &gathered), 300.0 * (8 + 8 + 8 * 12 - 12) + 100.0 * 32,
             300.0 * 12);
  CHECK_NEAR(gathered, 100.0 * 32, 0.0);
  CHECK_NEAR(pabd_perf_kernel_bytes("nothing", &load, &gathered), 0.0, 0.0);
}

TEST(times_are_the_longer_of_bytes_and_operations) {
  pabd_params params = pabd_params_default();
  pabd_perf_load load = pabd_perf_pile(1000, &params);
  pabd_perf_machine slow_memory = {"slow memory", 1e6, 1e15, 0.0, 0.0, 0.0};
  pabd_perf_machine slow_units = {"slow units", 1e15, 1e6, 0.0, 0.0, 0.0};
  pabd_perf_machine launches = {"launches", 1e18, 1e18, 1e-3, 0.0, 0.0};
  pabd_perf_stage stages[PABD_PERF_STAGES];
  double total = 0.0, sum = 0.0;
  int32_t count = pabd_perf_predict(&load, &slow_memory, stages, &total);
  CHECK(count > 15);
  for (int32_t k = 0; k < count; ++k) {
    sum += stages[k].ms;
    CHECK_NEAR(stages[k].ms, 1e3 * stages[k].bytes / 1e6, 1e-9 * stages[k].ms + 1e-6);
  }
  CHECK_NEAR(total, sum, 1e-9 * sum);
  pabd_perf_predict(&load, &slow_units, stages, &total);
  CHECK(total > 1e3);
  pabd_perf_predict(&load, &launches, stages, &total);
  CHECK(total > 60.0 && total < 200.0); /* ms: some 100 launches of 1 ms */
  for (int32_t k = 0; pabd_perf_device(k); ++k) {
    double small, large;
    pabd_perf_load pile = pabd_perf_pile(125000, &params);
    pabd_perf_predict(&load, pabd_perf_device(k), stages, &small);
    pabd_perf_predict(&pile, pabd_perf_device(k), stages, &large);
    CHECK(small > 0.05 && large > small && large < 100.0 * small);
  }
}
