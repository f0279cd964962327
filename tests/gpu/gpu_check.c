/* gpu-check: what a machine with a GPU can say about the device back end. Compares with the CPU bit for bit on scenes
 * and canonical cases, measures kernels, frames, batches and a copy, and writes one JSON file and one page.
 *
 * Linked twice: against CUDA (build/gpu-check) and against the stand-in (build/tests/gpu_check_standin), where its
 * logic is tested and everything it writes says "stand-in". harness/gpu_check.sh runs it; exit 0 all the same bits, 1 a
 * difference, 2 bad use, 3 no device (one line says why). */
#include <cjson/cJSON.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend_cuda.h"
#include "both.h"
#include "pabd_case.h"
#include "perf_model.h"

#ifdef PABD_STANDIN
#include "standin/standin.h"
#define IS_STANDIN 1
#else
#define IS_STANDIN 0
#endif

static cJSON *root;
static int differences;
static int plant_fault; /* stand-in only: flip a bit of what the device computed */

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---------------------------------------------------------------- comparison with the CPU */

/* Steps between two floats on the line of floats; INT32_MAX where one is not a number. */
static int64_t ulps(float a, float b) {
  int32_t x, y;
  if (isnan(a) || isnan(b)) return INT32_MAX;
  memcpy(&x, &a, sizeof x);
  memcpy(&y, &b, sizeof y);
  int64_t i = x < 0 ? (int64_t)INT32_MIN - x : x, j = y < 0 ? (int64_t)INT32_MIN - y : y;
  return i > j ? i - j : j - i;
}
static int64_t most_ulps(const pabd_sim *a, const pabd_sim *b) {
  int64_t most = 0;
  const float *x[] = {(const float *)a->view.pos, (const float *)a->view.rot, (const float *)a->view.vel};
  const float *y[] = {(const float *)b->view.pos, (const float *)b->view.rot, (const float *)b->view.vel};
  const int width[] = {3, 4, 3};
  for (int f = 0; f < 3; ++f)
    for (int64_t k = 0; k < (int64_t)width[f] * a->view.body_count; ++k) {
      int64_t u = ulps(x[f][k], y[f][k]);
      if (u > most) most = u;
    }
  return most;
}

/* Runs a scene on both; adds one entry to `list`. */
static void compare(cJSON *list, const char *name, const pabd_scene *scene, const setting *settings, int count,
                    int frames) {
  pabd_params params = pabd_params_default();
  pabd_error error = {""};
  cJSON *entry = cJSON_CreateObject();
  pabd_sim *cpu = NULL, *device = NULL;
  for (int k = 0; k < count; ++k) pabd_params_set(&params, settings[k].key, settings[k].value, &error);
  cJSON_AddStringToObject(entry, "name", name);
  cJSON_AddNumberToObject(entry, "bodies", scene->body_count);
  pabd_status status = pabd_sim_create(scene, &params, &cpu, &error);
  if (status == PABD_OK) status = pabd_sim_create(scene, &params, &device, &error);
  if (status == PABD_OK) status = pabd_cuda_attach(device, &error);
  if (status == PABD_ERR_UNSUPPORTED) {
    cJSON_AddStringToObject(entry, "result", "na");
    cJSON_AddStringToObject(entry, "reason", error.text);
  } else {
    const char *field = NULL;
    int frame = 0, fields = 0;
    size_t row = 0;
    int64_t worst = 0;
    for (; frame < frames && status == PABD_OK && !field; ++frame) {
      pabd_status a = pabd_sim_step(cpu), b = pabd_sim_step(device);
      if (b != PABD_OK && b != PABD_DIVERGED) {
        status = b;
        snprintf(error.text, sizeof error.text, "%s", pabd_device_error(device));
        break;
      }
      status = pabd_cuda_download(device, &error);
      if (plant_fault && frame == 1) ((unsigned char *)device->view.vel)[0] ^= 1;
      if (status == PABD_OK) field = first_difference(cpu, device, &row, &fields);
      if (field) worst = most_ulps(cpu, device);
      if (a != b && !field) field = "status";
      if (a != PABD_OK) break;
    }
    cJSON_AddNumberToObject(entry, "frames", frame);
    if (status != PABD_OK) {
      cJSON_AddStringToObject(entry, "result", "error");
      cJSON_AddStringToObject(entry, "reason", error.text);
      ++differences;
    } else if (field) {
      cJSON_AddStringToObject(entry, "result", "differs");
      cJSON_AddNumberToObject(entry, "frame", frame - 1);
      cJSON_AddStringToObject(entry, "field", field);
      cJSON_AddNumberToObject(entry, "row", (double)row);
      cJSON_AddNumberToObject(entry, "most_ulps", (double)worst);
      ++differences;
    } else {
      cJSON_AddStringToObject(entry, "result", "same bits");
    }
  }
  printf("%-24s %s\n", name, cJSON_GetObjectItem(entry, "result")->valuestring);
  fflush(stdout);
  cJSON_AddItemToArray(list, entry);
  pabd_sim_destroy(cpu);
  pabd_sim_destroy(device);
}

static void compare_scenes(cJSON *list, int quick) {
  pabd_scene scene;
  add_busy(&scene, 60, 1);
  for (int r = 0; r < (int)(sizeof busy_runs / sizeof *busy_runs); ++r) {
    char name[64];
    int count = 0;
    while (count < 6 && busy_runs[r].settings[count].key) ++count;
    snprintf(name, sizeof name, "busy scene, %s", busy_runs[r].what);
    compare(list, name, &scene, busy_runs[r].settings, count, quick ? 5 : 60);
  }
  pabd_scene_free(&scene);
  add_busy(&scene, 24, 7);
  compare(list, "busy scene, seven worlds", &scene, NULL, 0, quick ? 3 : 60);
  pabd_scene_free(&scene);
}

static void compare_cases(cJSON *list, int quick) {
  glob_t files;
  if (glob("cases/*.json", 0, NULL, &files) != 0) return;
  for (size_t k = 0; k < files.gl_pathc; ++k) {
    pabd_case c;
    pabd_error error = {""};
    char name[64];
    const char *slash = strrchr(files.gl_pathv[k], '/');
    snprintf(name, sizeof name, "%.*s", (int)strlen(slash + 1) - 5, slash + 1);
    const char *size = case_size(name);
    if (pabd_case_load(files.gl_pathv[k], &size, size != NULL, &c, &error) != PABD_OK) {
      fprintf(stderr, "gpu-check: %s\n", error.text);
      ++differences;
      continue;
    }
    compare(list, name, &c.scene, NULL, 0, quick ? 3 : 120);
    pabd_case_free(&c);
  }
  globfree(&files);
}

/* ---------------------------------------------------------------- measuring */

static pabd_sim *pile(const char *size, int32_t device, pabd_error *error) {
  pabd_case c;
  if (pabd_case_load("cases/pile.json", &size, 1, &c, error) != PABD_OK) return NULL;
  pabd_params params = pabd_params_default();
  pabd_sim *sim = NULL;
  pabd_status status = pabd_sim_create(&c.scene, &params, &sim, error);
  pabd_case_free(&c);
  if (status == PABD_OK && device && (status = pabd_cuda_attach(sim, error)) != PABD_OK) {
    pabd_sim_destroy(sim);
    sim = NULL;
  }
  return status == PABD_OK ? sim : NULL;
}
static pabd_perf_load load_of(const pabd_sim *sim) {
  const pabd_params *p = &sim->params;
  pabd_perf_load load = {sim->view.body_count,
                         sim->view.shape_count,
                         sim->stats.pair_count,
                         sim->stats.contact_count,
                         2 * sim->stats.contact_count,
                         sim->view.bond_count,
                         sim->capacity_pair,
                         p->substeps,
                         p->sweeps,
                         p->relax_sweeps,
                         p->multipliers};
  return load;
}
static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Milliseconds of a frame, median of groups; graph or plain launches, no read-back within a group. */
static double frame_ms(pabd_sim *sim, int32_t graph, int frames, pabd_error *error) {
  enum { GROUPS = 7 };
  double ms[GROUPS];
  for (int g = 0; g < GROUPS; ++g) {
    double begin = now_s();
    for (int f = 0; f < frames; ++f)
      if (pabd_cuda_enqueue_frame(sim, graph, error) != PABD_OK) return NAN;
    if (pabd_cuda_wait(sim, error) != PABD_OK) return NAN;
    ms[g] = 1e3 * (now_s() - begin) / frames;
  }
  qsort(ms, GROUPS, sizeof *ms, compare_doubles);
  return ms[GROUPS / 2];
}

/* Times of every kernel in one settled pile, with the bandwidth and the operations that the model counts for them. */
static void measure_kernels(const char *size, double copy, int settle) {
  pabd_error error = {""};
  pabd_sim *sim = pile(size, 1, &error);
  cJSON *list = cJSON_AddArrayToObject(root, "kernels");
  cJSON_AddStringToObject(root, "kernels_of", size);
  if (!sim) return;
  for (int f = 0; f < settle; ++f) pabd_cuda_enqueue_frame(sim, 1, &error);
  int32_t count = pabd_cuda_kernel_count();
  float *ms = calloc((size_t)count, sizeof *ms), sort_ms = 0, scan_ms = 0;
  int32_t *calls = calloc((size_t)count, sizeof *calls);
  pabd_status status = pabd_cuda_read_stats(sim, &error);
  if (status == PABD_OK) status = pabd_cuda_time_kernels(sim, ms, calls, &sort_ms, &scan_ms, &error);
  pabd_perf_load load = load_of(sim);
  for (int32_t k = 0; k < count && status == PABD_OK; ++k) {
    if (calls[k] == 0) continue;
    cJSON *entry = cJSON_CreateObject();
    double gathered = 0, bytes = pabd_perf_kernel_bytes(pabd_cuda_kernel_name(k), &load, &gathered);
    cJSON_AddStringToObject(entry, "name", pabd_cuda_kernel_name(k));
    cJSON_AddNumberToObject(entry, "calls", calls[k]);
    cJSON_AddNumberToObject(entry, "ms", (double)ms[k]);
    if (bytes > 0 && ms[k] > 0) {
      double rate = bytes * calls[k] / (1e-3 * (double)ms[k]);
      cJSON_AddNumberToObject(entry, "bytes_per_call", bytes);
      cJSON_AddNumberToObject(entry, "gb_per_s", 1e-9 * rate);
      if (copy > 0) cJSON_AddNumberToObject(entry, "of_copy", rate / copy);
      cJSON_AddNumberToObject(
          entry, "gop_per_s",
          1e-9 * pabd_perf_kernel_operations(pabd_cuda_kernel_name(k), &load) * calls[k] / (1e-3 * (double)ms[k]));
    }
    cJSON_AddItemToArray(list, entry);
  }
  cJSON_AddNumberToObject(root, "sort_ms", (double)sort_ms);
  cJSON_AddNumberToObject(root, "scan_ms", (double)scan_ms);
  free(ms), free(calls);
  pabd_sim_destroy(sim);
}

static const pabd_perf_machine *known_device(const char *name) {
  for (int32_t k = 0; pabd_perf_device(k); ++k)
    if (strstr(name, pabd_perf_device(k)->name)) return pabd_perf_device(k);
  return NULL;
}

static void measure_piles(const char *device_name, int quick) {
  static const char *const sizes[] = {"n=4", "n=10", "n=20", "n=30", "n=50", "n=80", "n=100"};
  cJSON *list = cJSON_AddArrayToObject(root, "piles");
  for (int k = quick ? 0 : 1; k < (quick ? 1 : 7); ++k) {
    pabd_error error = {""};
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "size", sizes[k] + 2);
    pabd_sim *sim = pile(sizes[k], 1, &error);
    if (!sim) {
      cJSON_AddStringToObject(entry, "error", error.text);
    } else {
      for (int f = 0; f < (quick ? 2 : 60); ++f) pabd_cuda_enqueue_frame(sim, 1, &error);
      pabd_cuda_read_stats(sim, &error);
      double graph = frame_ms(sim, 1, quick ? 1 : 10, &error), plain = frame_ms(sim, 0, quick ? 1 : 10, &error);
      pabd_status status = pabd_cuda_read_stats(sim, &error);
      cJSON_AddNumberToObject(entry, "bodies", sim->view.body_count);
      cJSON_AddNumberToObject(entry, "pairs", sim->stats.pair_count);
      cJSON_AddNumberToObject(entry, "contacts", sim->stats.contact_count);
      cJSON_AddNumberToObject(entry, "overflow", sim->stats.overflow_pairs + sim->stats.overflow_contacts);
      cJSON_AddNumberToObject(entry, "graph_ms", graph);
      cJSON_AddNumberToObject(entry, "plain_ms", plain);
      cJSON_AddBoolToObject(entry, "diverged", status == PABD_DIVERGED);
      const pabd_perf_machine *machine = known_device(device_name);
      if (machine) {
        pabd_perf_stage stages[PABD_PERF_STAGES];
        double total;
        pabd_perf_load load = load_of(sim);
        pabd_perf_predict(&load, machine, stages, &total);
        cJSON_AddNumberToObject(entry, "predicted_ms", total);
      }
      if (error.text[0]) cJSON_AddStringToObject(entry, "error", error.text);
      printf("pile %-4s %8d bodies: %.3f ms a frame (graph), %.3f (plain launches)\n", sizes[k] + 2,
             sim->view.body_count, graph, plain);
      fflush(stdout);
      pabd_sim_destroy(sim);
    }
    cJSON_AddItemToArray(list, entry);
  }
}

/* Independent copies of one small scene in one launch. */
static void measure_batches(const int32_t *worlds, int count, int quick) {
  cJSON *list = cJSON_AddArrayToObject(root, "batches");
  for (int k = 0; k < count; ++k) {
    pabd_scene scene;
    pabd_params params = pabd_params_default();
    pabd_error error = {""};
    pabd_sim *sim = NULL;
    add_busy(&scene, 24, worlds[k]);
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddNumberToObject(entry, "worlds", worlds[k]);
    cJSON_AddNumberToObject(entry, "bodies", scene.body_count);
    pabd_status status = pabd_sim_create(&scene, &params, &sim, &error);
    if (status == PABD_OK) status = pabd_cuda_attach(sim, &error);
    double ms = status == PABD_OK ? frame_ms(sim, 1, quick ? 1 : 20, &error) : NAN;
    if (status == PABD_OK && ms > 0) {
      cJSON_AddNumberToObject(entry, "frame_ms", ms);
      cJSON_AddNumberToObject(entry, "world_steps_per_s", 1e3 * worlds[k] / ms);
      printf("batch of %d worlds: %.3f ms a frame, %.0f world-steps/s\n", worlds[k], ms, 1e3 * worlds[k] / ms);
    }
    if (error.text[0]) cJSON_AddStringToObject(entry, "error", error.text);
    cJSON_AddItemToArray(list, entry);
    pabd_sim_destroy(sim);
    pabd_scene_free(&scene);
  }
}

/* Stages of the CPU back end beside the model with this machine's own bandwidth and peak. */
static void measure_host(int quick) {
  pabd_perf_machine host = pabd_perf_measure_host();
  cJSON *entry = cJSON_AddObjectToObject(root, "host");
  cJSON_AddNumberToObject(entry, "triad_gb_per_s", 1e-9 * host.bandwidth);
  cJSON_AddNumberToObject(entry, "cache_gb_per_s", 1e-9 * host.cache_bandwidth);
  cJSON_AddNumberToObject(entry, "peak_gop_per_s", 1e-9 * host.peak);
  cJSON *list = cJSON_AddArrayToObject(entry, "piles");
  static const char *const sizes[] = {"n=10", "n=20", "n=30"};
  for (int k = 0; k < (quick ? 1 : 3); ++k) {
    enum { FRAMES = 15 };
    static double ms[PABD_TIMER_MAX][FRAMES];
    const char *names[PABD_TIMER_MAX];
    int32_t name_count = 0;
    pabd_error error = {""};
    pabd_sim *sim = pile(sizes[k], 0, &error);
    if (!sim) continue;
    memset(ms, 0, sizeof ms);
    for (int f = 0; f < (quick ? 10 : 60); ++f) pabd_sim_step(sim);
    for (int f = 0; f < FRAMES; ++f) {
      pabd_sim_step(sim);
      for (int32_t t = 0; t < sim->stats.timer_count; ++t) {
        int32_t at = 0;
        while (at < name_count && strcmp(names[at], sim->stats.timers[t].name) != 0) ++at;
        if (at == name_count) names[name_count++] = sim->stats.timers[t].name;
        ms[at][f] = sim->stats.timers[t].ms;
      }
    }
    pabd_perf_stage stages[PABD_PERF_STAGES];
    double total;
    pabd_perf_load load = load_of(sim);
    load.ends = sim->view.end_first[sim->view.body_count];
    int32_t count = pabd_perf_predict(&load, &host, stages, &total);
    cJSON *item = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(item, "stages");
    cJSON_AddStringToObject(item, "size", sizes[k] + 2);
    cJSON_AddNumberToObject(item, "bodies", load.bodies);
    int32_t within = 0, judged = 0;
    for (int32_t s = 0; s < count; ++s)
      for (int32_t t = 0; t < name_count; ++t) {
        if (strcmp(names[t], stages[s].name) != 0) continue;
        qsort(ms[t], FRAMES, sizeof **ms, compare_doubles);
        double measured = ms[t][0]; /* the least: the machine's other work only adds */
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", stages[s].name);
        cJSON_AddNumberToObject(row, "predicted_ms", stages[s].ms);
        cJSON_AddNumberToObject(row, "measured_ms", measured);
        cJSON_AddItemToArray(rows, row);
        ++judged;
        within += fabs(stages[s].ms - measured) <= 0.3 * measured;
      }
    cJSON_AddNumberToObject(item, "within_30_percent", within);
    cJSON_AddNumberToObject(item, "stages_compared", judged);
    cJSON_AddItemToArray(list, item);
    printf("CPU, pile %s: %d of %d stages predicted within 30 %%\n", sizes[k] + 2, within, judged);
    pabd_sim_destroy(sim);
  }
}

/* ---------------------------------------------------------------- predictions and the compiler's figures */

static void add_predictions(void) {
  static const int32_t sizes[] = {1000, 8000, 125000, 1000000};
  pabd_params params = pabd_params_default();
  cJSON *list = cJSON_AddArrayToObject(root, "predictions");
  for (int32_t d = 0; pabd_perf_device(d); ++d) {
    const pabd_perf_machine *m = pabd_perf_device(d);
    cJSON *entry = cJSON_CreateObject(), *ms = cJSON_AddArrayToObject(entry, "frame_ms");
    cJSON_AddStringToObject(entry, "device", m->name);
    cJSON_AddNumberToObject(entry, "gb_per_s", 1e-9 * m->bandwidth);
    cJSON_AddNumberToObject(entry, "gop_per_s", 1e-9 * m->peak);
    for (int k = 0; k < 4; ++k) {
      pabd_perf_stage stages[PABD_PERF_STAGES];
      double total;
      pabd_perf_load load = pabd_perf_pile(sizes[k], &params);
      pabd_perf_predict(&load, m, stages, &total);
      cJSON_AddItemToArray(ms, cJSON_CreateNumber(total));
    }
    cJSON_AddItemToArray(list, entry);
  }
  /* the arithmetic of one of them */
  pabd_perf_stage stages[PABD_PERF_STAGES];
  double total;
  pabd_perf_load load = pabd_perf_pile(125000, &params);
  const pabd_perf_machine *m = known_device("RTX 4090");
  int32_t count = pabd_perf_predict(&load, m, stages, &total);
  cJSON *entry = cJSON_AddObjectToObject(root, "arithmetic"), *rows = cJSON_AddArrayToObject(entry, "stages");
  cJSON_AddStringToObject(entry, "device", m->name);
  cJSON_AddNumberToObject(entry, "bodies", load.bodies);
  cJSON_AddNumberToObject(entry, "total_ms", total);
  for (int32_t k = 0; k < count; ++k) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "name", stages[k].name);
    cJSON_AddNumberToObject(row, "calls", stages[k].calls);
    cJSON_AddNumberToObject(row, "megabytes", 1e-6 * stages[k].bytes);
    cJSON_AddNumberToObject(row, "megaoperations", 1e-6 * stages[k].operations);
    cJSON_AddNumberToObject(row, "ms", stages[k].ms);
    cJSON_AddItemToArray(rows, row);
  }
}

/* Warps that a multiprocessor can hold of a kernel with so many registers, as a part of those it has room for. */
static double occupancy(int architecture, int registers, int shared_bytes, int threads) {
  static const struct {
    int architecture, warps, blocks, shared;
  } chips[] = {{75, 32, 16, 65536},  {80, 64, 32, 167936},  {86, 48, 16, 102400}, {89, 48, 24, 102400},
               {90, 64, 32, 233472}, {100, 64, 32, 233472}, {120, 48, 24, 102400}};
  for (size_t k = 0; k < sizeof chips / sizeof *chips; ++k) {
    if (chips[k].architecture != architecture) continue;
    int warp = (registers * 32 + 255) / 256 * 256, warps_by_registers = 65536 / (warp > 0 ? warp : 256) / 4 * 4;
    int blocks = warps_by_registers / (threads / 32);
    if (blocks > chips[k].blocks) blocks = chips[k].blocks;
    if (shared_bytes > 0 && blocks > chips[k].shared / (shared_bytes + 1024))
      blocks = chips[k].shared / (shared_bytes + 1024);
    int warps = blocks * (threads / 32);
    if (warps > chips[k].warps) warps = chips[k].warps;
    return (double)warps / chips[k].warps;
  }
  return 0.0;
}

static void add_compiler_figures(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  char *text = calloc(1, (size_t)size + 1);
  rewind(file);
  if (text && fread(text, 1, (size_t)size, file) == (size_t)size) {
    cJSON *figures = cJSON_Parse(text), *kernel;
    cJSON_ArrayForEach(kernel, cJSON_GetObjectItem(figures, "kernels")) {
      const char *name = cJSON_GetObjectItem(kernel, "kernel")->valuestring;
      if (strncmp(name, "grid_", 5) != 0 && strncmp(name, "compare_", 8) != 0) continue;
      cJSON_AddNumberToObject(kernel, "occupancy",
                              occupancy(atoi(cJSON_GetObjectItem(kernel, "architecture")->valuestring + 3),
                                        cJSON_GetObjectItem(kernel, "registers")->valueint,
                                        cJSON_GetObjectItem(kernel, "shared_bytes")->valueint, 128));
    }
    if (figures) cJSON_AddItemToObject(root, "compiler", figures);
  }
  free(text);
  fclose(file);
}

/* ---------------------------------------------------------------- the page */

static double number_of(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(object, key);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}
static const char *text_of(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(object, key);
  return cJSON_IsString(item) ? item->valuestring : "";
}
static void put_number(FILE *f, double value, const char *format) {
  fputs(" | ", f);
  if (isfinite(value))         /* NAN: not measured */
    fprintf(f, format, value); /* formats are literals of this file */
}

static void write_compiler_table(FILE *f) {
  static const int architectures[] = {75, 80, 86, 89, 90, 100, 120};
  const cJSON *figures = cJSON_GetObjectItem(root, "compiler"), *kernels = cJSON_GetObjectItem(figures, "kernels"), *k;
  if (!kernels) return;
  fprintf(f,
          "\n## What the compiler says\n\n%s. Registers a thread, and in brackets the stack in bytes where there is "
          "one; no kernel of ours spills. Last: theoretical occupancy of 128-thread blocks on sm_89.\n\n| kernel |",
          text_of(figures, "compiler"));
  for (int a = 0; a < 7; ++a) fprintf(f, " sm_%d |", architectures[a]);
  fprintf(f, " occupancy |\n|---|---|---|---|---|---|---|---|---|\n");
  cJSON_ArrayForEach(k, kernels) {
    const char *name = text_of(k, "kernel");
    if (!cJSON_HasObjectItem(k, "occupancy") || strcmp(text_of(k, "architecture"), "sm_75") != 0) continue;
    fprintf(f, "| `%s` |", name + (strncmp(name, "grid_", 5) == 0 ? 5 : 0));
    double occupied = 0;
    for (int a = 0; a < 7; ++a) {
      const cJSON *o;
      char wanted[16];
      snprintf(wanted, sizeof wanted, "sm_%d", architectures[a]);
      cJSON_ArrayForEach(o, kernels) {
        if (strcmp(text_of(o, "kernel"), name) != 0 || strcmp(text_of(o, "architecture"), wanted) != 0) continue;
        fprintf(f, " %.0f", number_of(o, "registers"));
        if (number_of(o, "stack_bytes") > 0) fprintf(f, " (%.0f)", number_of(o, "stack_bytes"));
        if (architectures[a] == 89) occupied = number_of(o, "occupancy");
      }
      fputs(" |", f);
    }
    fprintf(f, " %.0f %% |\n", 100 * occupied);
  }
  fprintf(f,
          "\nThe same sweep twice (`solver/dense_sweep.h`): with the 13-number block, and with a dense 12x12 Hessian, "
          "under the same launch bounds. Numbers a thread holds: registers + (stack + spilled bytes)/4.\n\n"
          "| architecture | 13-number block | dense 12x12 |\n|---|---|---|\n");
  for (int a = 0; a < 7; ++a) {
    double held[2] = {NAN, NAN};
    char wanted[16];
    snprintf(wanted, sizeof wanted, "sm_%d", architectures[a]);
    cJSON_ArrayForEach(k, kernels) {
      int dense = strcmp(text_of(k, "kernel"), "compare_dense_sweep") == 0;
      if ((!dense && strcmp(text_of(k, "kernel"), "compare_block_sweep") != 0) ||
          strcmp(text_of(k, "architecture"), wanted) != 0)
        continue;
      held[dense] =
          number_of(k, "registers") +
          (number_of(k, "stack_bytes") + number_of(k, "spill_store_bytes") + number_of(k, "spill_load_bytes")) / 4;
    }
    fprintf(f, "| %s | %.0f | %.0f |\n", wanted, held[0], held[1]);
  }
}

static void write_predictions(FILE *f) {
  const cJSON *p, *item;
  fprintf(f,
          "\n## Predictions (nothing of this was measured on these devices)\n\nmilliseconds a frame of settling piles, "
          "collision and solver, preset `jacobi`. Assumed: 80 %% of the maker's bandwidth, 50 %% of the add/multiply "
          "rate (10 %% where warps part), 2 us a kernel.\n\n"
          "| device | GB/s | Gop/s | 10^3 | 20^3 | 50^3 | 10^6 |\n|---|---|---|---|---|---|---|\n");
  cJSON_ArrayForEach(p, cJSON_GetObjectItem(root, "predictions")) {
    fprintf(f, "| %s | %.0f | %.0f", text_of(p, "device"), number_of(p, "gb_per_s"), number_of(p, "gop_per_s"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(p, "frame_ms")) put_number(f, item->valuedouble, "%.2f");
    fputs(" |\n", f);
  }
  const cJSON *a = cJSON_GetObjectItem(root, "arithmetic");
  fprintf(f,
          "\nThe arithmetic of one of them: %s, %.0f bodies, %.2f ms.\n\n"
          "| stage | calls | MB a frame | Mop a frame | ms |\n|---|---|---|---|---|\n",
          text_of(a, "device"), number_of(a, "bodies"), number_of(a, "total_ms"));
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(a, "stages"))
      fprintf(f, "| `%s` | %.0f | %.1f | %.1f | %.3f |\n", text_of(item, "name"), number_of(item, "calls"),
              number_of(item, "megabytes"), number_of(item, "megaoperations"), number_of(item, "ms"));
}

static void write_host(FILE *f) {
  const cJSON *host = cJSON_GetObjectItem(root, "host"), *p, *s;
  if (!host) return;
  fprintf(
      f,
      "\n## The model on the host's CPU\n\nTriad %.1f GB/s (in cache %.1f), %.0f Gop/s, one thread; measured: lower "
      "quartile of 9 frames. Efficiencies were fitted at 10^3 on one machine.\n",
      number_of(host, "triad_gb_per_s"), number_of(host, "cache_gb_per_s"), number_of(host, "peak_gop_per_s"));
  cJSON_ArrayForEach(p, cJSON_GetObjectItem(host, "piles")) {
    fprintf(f,
            "\nPile %s^3 (%.0f bodies): %.0f of %.0f stages within 30 %%.\n\n"
            "| stage | predicted ms | measured ms | ratio |\n|---|---|---|---|\n",
            text_of(p, "size"), number_of(p, "bodies"), number_of(p, "within_30_percent"),
            number_of(p, "stages_compared"));
    cJSON_ArrayForEach(s, cJSON_GetObjectItem(p, "stages"))
        fprintf(f, "| `%s` | %.3f | %.3f | %.2f |\n", text_of(s, "name"), number_of(s, "predicted_ms"),
                number_of(s, "measured_ms"), number_of(s, "predicted_ms") / number_of(s, "measured_ms"));
  }
}

static void write_measured(FILE *f) {
  const cJSON *k;
  fprintf(f, "\n## Same bits as the CPU?\n\n| scene | bodies | frames | result |\n|---|---|---|---|\n");
  cJSON_ArrayForEach(k, cJSON_GetObjectItem(root, "comparisons")) {
    fprintf(f, "| %s | %.0f", text_of(k, "name"), number_of(k, "bodies"));
    put_number(f, number_of(k, "frames"), "%.0f");
    fprintf(f, " | %s", text_of(k, "result"));
    if (strcmp(text_of(k, "result"), "differs") == 0)
      fprintf(f, " in frame %.0f, first %s; %.0f ulp", number_of(k, "frame"), text_of(k, "field"),
              number_of(k, "most_ulps"));
    fprintf(f, " %s |\n", text_of(k, "reason"));
  }
  fprintf(f,
          "\n## Frame times of piles\n\n| size | bodies | pairs | contacts | graph ms | plain ms | predicted ms |\n"
          "|---|---|---|---|---|---|---|\n");
  cJSON_ArrayForEach(k, cJSON_GetObjectItem(root, "piles")) {
    fprintf(f, "| %s^3", text_of(k, "size"));
    put_number(f, number_of(k, "bodies"), "%.0f");
    put_number(f, number_of(k, "pairs"), "%.0f");
    put_number(f, number_of(k, "contacts"), "%.0f");
    put_number(f, number_of(k, "graph_ms"), "%.3f");
    put_number(f, number_of(k, "plain_ms"), "%.3f");
    put_number(f, number_of(k, "predicted_ms"), "%.3f");
    fprintf(f, " %s |\n", text_of(k, "error"));
  }
  fprintf(f,
          "\n## Kernels in a pile of %s\n\nA copy within the device's memory reaches %.1f GB/s (read and written). "
          "Sorts %.3f ms, scans %.3f ms a frame. Each call is waited for, so small ones read long.\n\n"
          "| kernel | calls | ms a frame | GB/s | of the copy | Gop/s |\n|---|---|---|---|---|---|\n",
          text_of(root, "kernels_of"), number_of(root, "copy_gb_per_s"), number_of(root, "sort_ms"),
          number_of(root, "scan_ms"));
  cJSON_ArrayForEach(k, cJSON_GetObjectItem(root, "kernels")) {
    fprintf(f, "| `%s` | %.0f | %.4f", text_of(k, "name"), number_of(k, "calls"), number_of(k, "ms"));
    put_number(f, number_of(k, "gb_per_s"), "%.1f");
    put_number(f, 100 * number_of(k, "of_copy"), "%.0f %%");
    put_number(f, number_of(k, "gop_per_s"), "%.1f");
    fputs(" |\n", f);
  }
  fprintf(
      f,
      "\n## Batches of independent worlds (24 bodies and 12 joints each)\n\n| worlds | ms a frame | world-steps/s |\n"
      "|---|---|---|\n");
  cJSON_ArrayForEach(k, cJSON_GetObjectItem(root, "batches")) {
    fprintf(f, "| %.0f", number_of(k, "worlds"));
    put_number(f, number_of(k, "frame_ms"), "%.3f");
    put_number(f, number_of(k, "world_steps_per_s"), "%.0f");
    fprintf(f, " %s |\n", text_of(k, "error"));
  }
}

static int write_page(const char *path, int measured) {
  char temporary[512];
  snprintf(temporary, sizeof temporary, "%s.part", path);
  FILE *f = fopen(temporary, "w");
  if (!f) return 0;
  if (measured) {
    const cJSON *device = cJSON_GetObjectItem(root, "device");
    fprintf(f, "# gpu-check: %s\n\n", text_of(device, "name"));
    if (IS_STANDIN) fprintf(f, "**Made on the stand-in for the CUDA runtime: nothing here ran on a GPU.**\n\n");
    fprintf(f, "Verdict: %s. Driver %.0f, runtime %.0f, compute capability %s, %.1f GB.\n", text_of(root, "verdict"),
            number_of(device, "driver"), number_of(device, "runtime"), text_of(device, "capability"),
            1e-9 * number_of(device, "memory"));
    write_measured(f);
  } else {
    fprintf(f,
            "# The device back end without a device\n\nWhat can be said of it where there is no GPU: the compiler's "
            "figures, and what the performance model predicts. Nothing here ran on a GPU.\n");
  }
  write_predictions(f);
  write_host(f);
  write_compiler_table(f);
  return fclose(f) == 0 && rename(temporary, path) == 0;
}
static int write_json(const char *path) {
  char temporary[512], *text = cJSON_Print(root);
  snprintf(temporary, sizeof temporary, "%s.part", path);
  FILE *f = fopen(temporary, "w");
  int ok = f && text && fprintf(f, "%s\n", text) > 0;
  if (f && fclose(f) != 0) ok = 0;
  free(text);
  return ok && rename(temporary, path) == 0;
}

/* ---------------------------------------------------------------- main */

static int usage(void) {
  fprintf(stderr,
          "usage: gpu-check [--out DIR] [--name NAME] [--quick] [--worlds N]   measure and compare\n"
          "       gpu-check --probe        the device, or why there is none (exit 3)\n"
          "       gpu-check --small        a few frames of small scenes, nothing written (for sanitizers)\n"
          "       gpu-check --model [--no-host] [--out DIR]   predictions, the model on this CPU, compiler figures\n");
  return 2;
}

static int finish(const char *folder, const char *name, int measured) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s.json", folder, name);
  int ok = write_json(path);
  snprintf(path, sizeof path, "%s/%s.md", folder, name);
  ok = write_page(path, measured) && ok;
  if (!ok) fprintf(stderr, "gpu-check: cannot write to %s\n", folder);
  if (ok) printf("wrote %s\n", path);
  return ok;
}

int main(int argc, char **argv) {
  const char *folder = "results/gpu", *name = NULL;
  int quick = 0, probe = 0, small = 0, model = 0, no_host = 0;
  int32_t worlds[8] = {1, 16, 256, 1024}, world_counts = 4;
  for (int k = 1; k < argc; ++k) {
    if (strcmp(argv[k], "--out") == 0 && k + 1 < argc)
      folder = argv[++k];
    else if (strcmp(argv[k], "--name") == 0 && k + 1 < argc)
      name = argv[++k];
    else if (strcmp(argv[k], "--worlds") == 0 && k + 1 < argc && atoi(argv[k + 1]) > 0)
      worlds[0] = atoi(argv[++k]), world_counts = 1;
    else if (strcmp(argv[k], "--quick") == 0)
      quick = 1;
    else if (strcmp(argv[k], "--probe") == 0)
      probe = 1;
    else if (strcmp(argv[k], "--small") == 0)
      small = 1;
    else if (strcmp(argv[k], "--model") == 0)
      model = 1;
    else if (strcmp(argv[k], "--no-host") == 0)
      no_host = 1;
    else
      return usage();
  }
#ifdef PABD_STANDIN
  const char *wanted = getenv("PABD_STANDIN_DEVICES");
  if (wanted) standin_set_device(atoi(wanted), 13000, (size_t)8 << 30);
  const char *fault = getenv("PABD_STANDIN_FAULT");
  plant_fault = fault && fault[0];
#endif
  root = cJSON_CreateObject();
  cJSON_AddNumberToObject(root, "schema", 1);
  pabd_error error = {""};
  pabd_cuda_info info;
  int code = 0;
  if (model) {
    if (!no_host) measure_host(quick);
    add_predictions();
    add_compiler_figures("build/cuda/ptxas.json");
    code = finish(folder, name ? name : "model", 0) ? 0 : 2;
  } else if (pabd_cuda_probe(&info, &error) != PABD_OK) {
    printf("gpu-check: not run: %s\n", error.text);
    code = 3;
  } else if (probe) {
    printf("%s\n", info.name);
  } else {
    cJSON *device = cJSON_AddObjectToObject(root, "device");
    char capability[16];
    snprintf(capability, sizeof capability, "%d.%d", info.major, info.minor);
    cJSON_AddStringToObject(device, "name", info.name);
    cJSON_AddBoolToObject(device, "stand_in", IS_STANDIN);
    cJSON_AddStringToObject(device, "capability", capability);
    cJSON_AddNumberToObject(device, "multiprocessors", info.multiprocessors);
    cJSON_AddNumberToObject(device, "driver", info.driver);
    cJSON_AddNumberToObject(device, "runtime", info.runtime);
    cJSON_AddNumberToObject(device, "memory", (double)info.memory);
    cJSON *list = cJSON_AddArrayToObject(root, "comparisons");
    compare_scenes(list, quick || small);
    if (!small) {
      double copy = 0;
      compare_cases(list, quick);
      if (pabd_cuda_copy_bandwidth(quick ? 1 << 20 : 1 << 28, &copy, &error) == PABD_OK)
        cJSON_AddNumberToObject(root, "copy_gb_per_s", 1e-9 * copy);
      measure_kernels(quick ? "n=4" : "n=50", copy, quick ? 2 : 60);
      measure_piles(info.name, quick);
      measure_batches(quick && world_counts > 1 ? (const int32_t[]){1, 16} : worlds,
                      quick && world_counts > 1 ? 2 : world_counts, quick);
      measure_host(quick);
      add_predictions();
      add_compiler_figures("build/cuda/ptxas.json");
      cJSON_AddStringToObject(root, "verdict", differences ? "differs from the CPU" : "same bits as the CPU");
      if (!finish(folder, name ? name : "gpu-check", 1)) code = 2;
    }
    if (code == 0) code = differences > 0;
  }
  cJSON_Delete(root);
  return code;
}
