/* The device back end without a device: its host side and its kernels' rows run on the stand-in (solver/standin), with
 * blocks and threads in permuted orders, and every field must have the bits of the CPU back end, frame by frame, on
 * every canonical case. Nothing here ran on a GPU. */
#include <glob.h>
#include <sys/wait.h>

#include "backend_cuda.h"
#include "gpu/both.h"
#include "pabd_case.h"
#include "standin/standin.h"
#include "state.h"
#include "test.h"

/* Number of fields that differ; names the first. */
static int compare_fields(const pabd_sim *a, const pabd_sim *b, const char *where, int frame) {
  size_t row;
  int count;
  const char *name = first_difference(a, b, &row, &count);
  if (name)
    test_fail(__FILE__, __LINE__, "%s, frame %d: %d fields differ, first %s in row %zu", where, frame, count, name,
              row);
  return count;
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
  if (status == PABD_ERR_UNSUPPORTED && strstr(error.text, "restitution")) {
    pabd_sim_destroy(cpu);
    pabd_sim_destroy(device);
    return 0;
  }
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

TEST(every_case_has_the_bits_of_the_cpu) {
  glob_t files;
  REQUIRE(glob("cases/*.json", 0, NULL, &files) == 0);
  int ran = 0, refused = 0;
  for (size_t k = 0; k < files.gl_pathc; ++k) {
    pabd_case c;
    pabd_error error = {""};
    char name[64];
    const char *slash = strrchr(files.gl_pathv[k], '/');
    snprintf(name, sizeof name, "%.*s", (int)strlen(slash + 1) - 5, slash + 1);
    const char *size = case_size(name);
    if (pabd_case_load(files.gl_pathv[k], &size, size != NULL, &c, &error) != PABD_OK) {
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
  printf("%d cases ran on both back ends, %d need what the method or the device lacks\n", ran, refused);
  CHECK(ran > 20);
}

/* ---------------------------------------------------------------- scenes that no case has */

TEST(busy_scene_under_many_settings) {
  pabd_scene scene;
  add_busy(&scene, 60, 1);
  for (int r = 0; r < (int)(sizeof busy_runs / sizeof *busy_runs); ++r) {
    int count = 0;
    while (count < 6 && busy_runs[r].settings[count].key) ++count;
    standin_set_order(100u + (uint32_t)r);
    CHECK(run_both(&scene, busy_runs[r].settings, count, 25, busy_runs[r].what));
  }
  pabd_scene_free(&scene);
}

TEST(a_difference_of_one_bit_is_seen) {
  pabd_scene scene;
  add_busy(&scene, 20, 1);
  pabd_params params = pabd_params_default();
  pabd_sim *a = NULL, *b = NULL;
  pabd_error error = {""};
  CHECK(pabd_sim_create(&scene, &params, &a, &error) == PABD_OK);
  CHECK(pabd_sim_create(&scene, &params, &b, &error) == PABD_OK);
  CHECK(compare_fields(a, b, "equal", 0) == 0);
  ((unsigned char *)b->view.omega)[40] ^= 1;
  int before = test_failures;
  int bad = compare_fields(a, b, "planted", 0);
  test_failures = before; /* the failure was wanted */
  CHECK(bad == 1);
  pabd_sim_destroy(a);
  pabd_sim_destroy(b);
  pabd_scene_free(&scene);
}

/* ---------------------------------------------------------------- batches */

TEST(worlds_of_a_batch_do_what_each_does_alone) {
  pabd_scene one, many;
  add_busy(&one, 24, 1);
  add_busy(&many, 24, 7);
  CHECK(run_both(&many, NULL, 0, 15, "seven worlds"));
  /* and every world has the poses of a world alone, bit for bit */
  pabd_params params = pabd_params_default();
  pabd_sim *alone = NULL, *batch = NULL;
  pabd_error error = {""};
  /* the load rule's bound knows the mass of the whole scene */
  CHECK(pabd_params_set(&params, "stiffness_rule", "mass", &error) == PABD_OK);
  CHECK(pabd_sim_create(&one, &params, &alone, &error) == PABD_OK && pabd_cuda_attach(alone, &error) == PABD_OK);
  CHECK(pabd_sim_create(&many, &params, &batch, &error) == PABD_OK && pabd_cuda_attach(batch, &error) == PABD_OK);
  for (int frame = 0; frame < 20; ++frame) {
    CHECK(pabd_sim_step(alone) == PABD_OK);
    CHECK(pabd_sim_step(batch) == PABD_OK);
  }
  size_t n = (size_t)one.body_count;
  double *pose = malloc(sizeof *pose * 7 * n), *poses = malloc(sizeof *poses * 7 * n * 7);
  pabd_sim_read(alone, pose, NULL);
  pabd_sim_read(batch, poses, NULL);
  int same = 1;
  for (size_t w = 0; w < 7; ++w) same &= memcmp(pose, poses + 7 * n * w, sizeof *pose * 7 * n) == 0;
  CHECK(same);
  free(pose), free(poses);
  pabd_sim_destroy(alone);
  pabd_sim_destroy(batch);
  pabd_scene_free(&one);
  pabd_scene_free(&many);
}

/* ---------------------------------------------------------------- the host side */

/* One graph launch and one small copy a frame; nothing is copied back where nobody asks. */
TEST(a_frame_is_one_launch_and_one_small_copy) {
  pabd_scene scene;
  add_busy(&scene, 30, 1);
  pabd_params params = pabd_params_default();
  pabd_sim *sim = NULL;
  pabd_error error = {""};
  CHECK(pabd_sim_create(&scene, &params, &sim, &error) == PABD_OK && pabd_cuda_attach(sim, &error) == PABD_OK);
  standin_counts before = standin_count();
  for (int frame = 0; frame < 3; ++frame) CHECK(pabd_cuda_enqueue_frame(sim, 1, &error) == PABD_OK);
  standin_counts queued = standin_count();
  CHECK(queued.graph_launches == before.graph_launches + 3);
  CHECK(queued.copies_to_host == before.copies_to_host && queued.launches == before.launches); /* nothing ran yet */
  CHECK(pabd_cuda_wait(sim, &error) == PABD_OK);
  standin_counts ran = standin_count();
  CHECK(ran.launches > queued.launches + 3 * 60);
  CHECK(ran.copies_to_host == before.copies_to_host && ran.allocations == before.allocations);
  CHECK(pabd_sim_step(sim) == PABD_OK);
  CHECK(standin_count().copies_to_host == ran.copies_to_host + 1);
  /* plain launches do the same work */
  pabd_sim *plain = NULL;
  CHECK(pabd_sim_create(&scene, &params, &plain, &error) == PABD_OK && pabd_cuda_attach(plain, &error) == PABD_OK);
  for (int frame = 0; frame < 4; ++frame) CHECK(pabd_cuda_enqueue_frame(plain, 0, &error) == PABD_OK);
  CHECK(pabd_cuda_read_stats(plain, &error) == PABD_OK);
  CHECK(pabd_cuda_download(plain, &error) == PABD_OK && pabd_cuda_download(sim, &error) == PABD_OK);
  CHECK(compare_fields(sim, plain, "graph and plain launches", 4) == 0);
  pabd_sim_destroy(sim);
  pabd_sim_destroy(plain);
  pabd_scene_free(&scene);
}

/* The state on the device is its own: what the host does to its copy, or what lies in fresh memory, has no effect, and
 * neither side touches the other's memory but through copies. */
TEST(host_and_device_memory_are_apart) {
  pabd_scene scene;
  add_busy(&scene, 30, 1);
  pabd_params params = pabd_params_default();
  pabd_sim *a = NULL, *b = NULL;
  pabd_error error = {""};
  standin_protect(1);
  CHECK(pabd_sim_create(&scene, &params, &a, &error) == PABD_OK);
  CHECK(pabd_sim_create(&scene, &params, &b, &error) == PABD_OK && pabd_cuda_attach(b, &error) == PABD_OK);
  memset(b->memory, 0xff, b->memory_bytes);
  for (int frame = 0; frame < 8; ++frame) {
    CHECK(pabd_sim_step(a) == PABD_OK);
    if (frame == 2) b->load_count = 0; /* its mass and motion are gone on the host; the device has them */
    CHECK(pabd_cuda_enqueue_frame(b, 1, &error) == PABD_OK);
    if (frame == 1) break; /* before the load begins: it is applied from the host's fields */
  }
  CHECK(pabd_cuda_download(b, &error) == PABD_OK);
  b->stats.pair_count = a->stats.pair_count, b->stats.contact_count = a->stats.contact_count;
  CHECK(compare_fields(a, b, "with the host's copy destroyed", 2) == 0);
  pabd_sim_destroy(a);
  pabd_sim_destroy(b);
  standin_protect(0);
  pabd_scene_free(&scene);
}

/* An index beyond a field's end is a trap, not a value of the next field. */
TEST(accesses_out_of_range_trap) {
  pabd_scene scene;
  add_busy(&scene, 30, 1);
  fflush(stdout);
  for (int wrong = 0; wrong < 2; ++wrong) {
    pid_t child = fork();
    if (child == 0) {
      signal(SIGSEGV, SIG_DFL);
      pabd_params params = pabd_params_default();
      pabd_sim *sim = NULL;
      pabd_error error = {""};
      if (pabd_sim_create(&scene, &params, &sim, &error) != PABD_OK) _exit(1);
      if (wrong) sim->view.stride_contact += 4096; /* planes two and three now lie outside */
      if (pabd_cuda_attach(sim, &error) != PABD_OK) _exit(2);
      for (int frame = 0; frame < 5; ++frame)
        if (pabd_sim_step(sim) != PABD_OK) _exit(3);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (wrong)
      CHECK(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) > 3)); /* the latter with sanitizers */
    else
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  pabd_scene_free(&scene);
}

TEST(errors_are_one_clear_line_and_nothing_is_lost) {
  pabd_scene scene;
  add_busy(&scene, 20, 1);
  pabd_params params = pabd_params_default();
  pabd_sim *sim = NULL;
  pabd_error error = {""};
  CHECK(pabd_sim_create(&scene, &params, &sim, &error) == PABD_OK);
  standin_counts before = standin_count();

  standin_set_device(0, 13000, (size_t)8 << 30);
  CHECK(pabd_cuda_attach(sim, &error) == PABD_ERR_UNAVAILABLE);
  CHECK_STR(error.text, "no CUDA device");
  standin_set_device(0, 0, (size_t)8 << 30);
  CHECK(pabd_cuda_attach(sim, &error) == PABD_ERR_UNAVAILABLE);
  CHECK_STR(error.text, "no CUDA device (no driver)");
  standin_set_device(1, 11040, (size_t)8 << 30);
  CHECK(pabd_cuda_attach(sim, &error) == PABD_ERR_UNAVAILABLE);
  CHECK_STR(error.text, "the CUDA driver is too old: it supports CUDA 11.4, this needs 13.0");
  standin_set_device(1, 13000, 100000);
  CHECK(pabd_cuda_attach(sim, &error) == PABD_ERR_MEMORY);
  CHECK(strstr(error.text, "MB of memory on stand-in") != NULL);
  standin_set_device(1, 13000, (size_t)8 << 30);

  /* every call that attaching makes may fail: the simulation then goes on, on the CPU */
  static const struct {
    const char *call;
    int nth;
  } calls[] = {{"cudaMallocHost", 1},
               {"cudaStreamCreate", 1},
               {"cudaMemcpy", 1},
               {"cudaMemcpy", 40},
               {"cudaStreamBeginCapture", 1},
               {"cudaLaunchKernelEx", 1},
               {"cudaLaunchKernelEx", 50},
               {"cudaStreamEndCapture", 1},
               {"cudaGraphInstantiate", 1},
               {"cudaGetDeviceProperties", 1}};
  for (int k = 0; k < (int)(sizeof calls / sizeof *calls); ++k) {
    standin_plant(calls[k].call, calls[k].nth, 719);
    pabd_status status = pabd_cuda_attach(sim, &error);
    standin_plant(calls[k].call, 0, 0);
    if (status != PABD_ERR_UNAVAILABLE || !strstr(error.text, "unspecified launch failure"))
      test_fail(__FILE__, __LINE__, "%s planted: status %d, \"%s\"", calls[k].call, status, error.text);
    CHECK(sim->device == NULL && pabd_sim_step(sim) == PABD_OK);
  }
  standin_counts after = standin_count();
  CHECK(after.live_allocations == before.live_allocations && after.live_streams == before.live_streams &&
        after.live_graphs == before.live_graphs);

  /* a frame that fails says so, and the state before it can be read */
  CHECK(pabd_cuda_attach(sim, &error) == PABD_OK);
  CHECK(pabd_sim_step(sim) == PABD_OK);
  standin_plant("cudaGraphLaunch", 1, 719);
  CHECK(pabd_sim_step(sim) == PABD_ERR_UNAVAILABLE);
  CHECK_STR(pabd_device_error(sim), "launch of a frame: unspecified launch failure");
  CHECK(pabd_sim_step(sim) == PABD_OK);
  CHECK_STR(pabd_device_error(sim), "");
  pabd_sim_destroy(sim);
  after = standin_count();
  CHECK(after.live_allocations == before.live_allocations && after.live_streams == before.live_streams &&
        after.live_graphs == before.live_graphs && after.live_events == 0);

  CHECK(pabd_params_set(&params, "global_step", "contact-gs", &error) == PABD_OK);
  CHECK(pabd_sim_create(&scene, &params, &sim, &error) == PABD_OK);
  CHECK(pabd_cuda_attach(sim, &error) == PABD_ERR_UNSUPPORTED);
  CHECK_STR(error.text, "the device has global_step = jacobi only");
  pabd_sim_destroy(sim);
  params = pabd_params_default();
  scene.restitution[0] = 0.5;
  CHECK(pabd_sim_create(&scene, &params, &sim, &error) == PABD_OK);
  CHECK(pabd_cuda_attach(sim, &error) == PABD_ERR_UNSUPPORTED);
  CHECK_STR(error.text, "the device has no restitution");
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}

TEST(kernel_times_cover_the_frame) {
  pabd_scene scene;
  add_busy(&scene, 30, 1);
  pabd_params params = pabd_params_default();
  pabd_sim *sim = NULL;
  pabd_error error = {""};
  CHECK(pabd_sim_create(&scene, &params, &sim, &error) == PABD_OK && pabd_cuda_attach(sim, &error) == PABD_OK);
  float ms[128] = {0}, sort_ms = 0, scan_ms = 0;
  int32_t calls[128] = {0};
  CHECK(pabd_cuda_time_kernels(sim, ms, calls, &sort_ms, &scan_ms, &error) == PABD_OK);
  int32_t sweeps = 0, idle = 0;
  for (int32_t k = 0; k < pabd_cuda_kernel_count(); ++k) {
    if (strcmp(pabd_cuda_kernel_name(k), "body_sweep") == 0) sweeps = calls[k];
    idle += calls[k] == 0;
  }
  CHECK(sweeps == params.substeps * params.sweeps);
  CHECK(idle <= 2); /* those of a tolerance */
  double bandwidth = 0;
  CHECK(pabd_cuda_copy_bandwidth(1 << 20, &bandwidth, &error) == PABD_OK && bandwidth > 1e6);
  CHECK(standin_count().live_events == 0);
  pabd_sim_destroy(sim);
  pabd_scene_free(&scene);
}
