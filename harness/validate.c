/* The command `validate`: every row of the suite on every engine over its ladder, then one table, a page and a JSON
 * file.
 *
 * Cells are shared out to worker processes; each run is a child process of its own as everywhere (child.h). A step of
 * the ladder is the engine's frame time; an engine's own substeps lie inside it. A ladder ends early where the next run
 * would take longer than the subset allows (the level is then marked so): an engine that needs an hour for 1e-3 has not
 * reached it at an affordable step. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command_tools.h"
#include "commands.h"
#include "names.h"
#include "progress.h"
#include "validate.h"

#define SAMPLE_CAPACITY 20000
#define STATE_LIMIT ((size_t)3 << 29)

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- trajectories against a reference ---- */

int32_t pabd_validate_sample(const pabd_row *row, const pabd_view *view, int32_t capacity, double *times,
                             double (*samples)[PABD_VALIDATE_OUTPUTS]) {
  int32_t count = 0;
  if (!row->outputs) return 0;
  double step = row->sample_time > 0 ? row->sample_time : row->h0;
  for (int32_t k = 1; count < capacity; ++k) {
    double t = row->table ? (k <= row->table->count ? row->table->rows[k - 1].t : INFINITY) : k * step;
    double place = t / view->h;
    if (!(place <= view->frames + 1e-6)) break;
    int32_t frame = (int32_t)floor(place + 0.5);
    memset(samples[count], 0, sizeof samples[count]);
    row->outputs(view, frame, samples[count]);
    times[count++] = t;
  }
  return count;
}

double pabd_validate_error(const pabd_row *row, const pabd_view *view, int32_t count, const double *times,
                           double (*samples)[PABD_VALIDATE_OUTPUTS]) {
  double sum = 0;
  if (count == 0 || (!row->exact && !row->table)) return NAN;
  for (int32_t k = 0; k < count; ++k) {
    double y[PABD_VALIDATE_OUTPUTS] = {0};
    if (!row->table)
      row->exact(row, view, times[k], y);
    else if (row->from_table)
      row->from_table(row->table->rows[k].y, y);
    else
      memcpy(y, row->table->rows[k].y, (size_t)row->output_count * sizeof *y);
    sum += row->distance(row, samples[k], y);
  }
  return sqrt(sum / count);
}

/* ---- one cell ---- */

static void replace_setting(pabd_key_value *list, int32_t *count, const char *key, const char *value) {
  int32_t k = 0;
  while (k < *count && strcmp(list[k].key, key) != 0) ++k;
  if (k == PABD_SETTING_CAPACITY) return;
  if (k == *count) ++*count;
  snprintf(list[k].key, sizeof list[k].key, "%s", key);
  snprintf(list[k].value, sizeof list[k].value, "%s", value);
}

static int32_t settings_of(const pabd_column *column, const char *more, pabd_key_value *list) {
  int32_t count = 0;
  for (int32_t k = 0; column->preset && k < column->preset->setting_count; ++k)
    replace_setting(list, &count, column->preset->settings[k].key, column->preset->settings[k].value);
  char text[512];
  snprintf(text, sizeof text, "%s", more ? more : "");
  for (char *save = NULL, *pair = strtok_r(text, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
    char *equals = strchr(pair, '=');
    if (!equals) continue;
    *equals = 0;
    replace_setting(list, &count, pair, equals + 1);
  }
  if (pabd_engine_find_setting(&column->engine->desc, "threads") >= 0) replace_setting(list, &count, "threads", "1");
  return count;
}

/* Loads the row's case with "h=..." and what else the ladder says. */
static pabd_status load_case(const pabd_catalog *catalog, const pabd_row *row, double h, double duration,
                             const char *variant, pabd_case *c, pabd_error *error) {
  char path[PABD_PATH_SIZE], text[512], step[64], *pairs[24];
  const char *overrides[24];
  int32_t count = 0;
  snprintf(text, sizeof text, "%s%s%s", row->overrides, row->overrides[0] && variant ? "," : "",
           variant ? variant : "");
  for (char *save = NULL, *pair = strtok_r(text, ",", &save); pair && count < 20; pair = strtok_r(NULL, ",", &save))
    pairs[count++] = pair;
  int has_step = 0, has_time = 0;
  for (int32_t k = 0; k < count; ++k) {
    overrides[k] = pairs[k];
    has_step |= strncmp(pairs[k], "h=", 2) == 0;
    has_time |= strncmp(pairs[k], "t=", 2) == 0;
  }
  char time_text[64];
  snprintf(step, sizeof step, "h=%.17g", h);
  snprintf(time_text, sizeof time_text, "t=%.17g", duration);
  if (!has_step) overrides[count++] = step;
  if (!has_time && duration > 0) overrides[count++] = time_text;
  pabd_catalog_case_path(catalog, row->file, path);
  return pabd_case_load(path, overrides, count, c, error);
}

typedef struct trajectory {
  int32_t count;
  double *times;
  double (*samples)[PABD_VALIDATE_OUTPUTS];
} trajectory;

static void not_applicable(pabd_cell *cell, const char *before, const char *text) {
  cell->light = PABD_NA;
  snprintf(cell->reason, sizeof cell->reason, "%s%.200s", before, text);
}

/* Runs one level. Returns 0 when the cell can have no further levels (cell->reason then says why). */
static int run_level(const pabd_catalog *catalog, const pabd_row *row, const pabd_column *column, pabd_effort effort,
                     int32_t k, pabd_cell *cell, trajectory *kept) {
  static const double limits[PABD_EFFORT_COUNT] = {10, 20, 300};
  pabd_level *level = &cell->levels[k];
  pabd_case c;
  pabd_error error = {""};
  pabd_run_result result;
  pabd_key_value settings[PABD_SETTING_CAPACITY];
  char more[400];
  const char *extra = NULL, *why = "";
  double h = row->ladder == PABD_LADDER_STEPS ? row->h0 / (double)(1 << k) : row->h0;
  *level = (pabd_level){.x = row->ladder == PABD_LADDER_STEPS      ? h
                             : row->ladder == PABD_LADDER_VARIANTS ? k
                             : row->gate == 'X'                    ? k + 1
                                                                   : 1 << k,
                        .error = NAN,
                        .consistency = NAN,
                        .value = NAN,
                        .wall_s = NAN};
  if (row->ladder == PABD_LADDER_SETTING) {
    extra = row->settings(column->engine->desc.stem, column->preset ? column->preset->name : "", (int32_t)level->x,
                          more, sizeof more, &why);
    if (!extra) {
      not_applicable(cell, "", why);
      return 0;
    }
  }
  if (load_case(catalog, row, h, row->duration[effort], row->variants ? row->variants[k] : NULL, &c, &error) !=
      PABD_OK) {
    not_applicable(cell, "case: ", error.text);
    return 0;
  }
  uint64_t lacks = pabd_scene_needs(&c.scene) & ~column->engine->desc.capabilities;
  if (lacks) {
    char names[160];
    pabd_capability_list(lacks, names, sizeof names);
    not_applicable(cell, "the engine cannot do: ", names);
    pabd_case_free(&c);
    return 0;
  }
  pabd_job job = {.c = &c,
                  .engine = &column->engine->desc,
                  .settings = settings,
                  .setting_count = settings_of(column, extra, settings),
                  .threads = 1,
                  .time_limit = limits[effort],
                  .keep_states = 1,
                  .state_limit = STATE_LIMIT,
                  .trajectory = -1,
                  .stride = 1,
                  .value_size = 8};
  pabd_child_run(&job, &pabd_stop_wanted, NULL, NULL, &result);
  level->state = (int32_t)result.state;
  int go_on = 1;
  if (result.state == PABD_RUN_OK && result.samples.state_frames > c.frame_count) {
    pabd_view view = {&c,
                      result.samples.states,
                      result.frames_done,
                      c.scene.frame_time,
                      strcmp(column->engine->desc.precision, "double") != 0,
                      level->x};
    level->wall_s = 0;
    cell->steps = result.frames_done;
    for (int32_t f = 1; f <= result.frames_done; ++f) {
      double own = result.samples.self_ms[f];
      level->wall_s += 1e-3 * (isfinite(own) ? own : result.samples.wall_ms[f]);
    }
    if (row->measure) {
      row->measure(row, &view, level);
      cell->steps *= level->substeps > 1 ? level->substeps : 1;
    } else {
      kept->count = pabd_validate_sample(row, &view, SAMPLE_CAPACITY, kept->times, kept->samples);
      level->error = pabd_validate_error(row, &view, kept->count, kept->times, kept->samples);
    }
  } else if (result.state == PABD_RUN_NA) {
    not_applicable(cell, "", result.reason);
    go_on = 0;
  } else {
    snprintf(level->note, sizeof level->note, "%s: %.70s",
             pabd_run_state_text(result.state) ? pabd_run_state_text(result.state) : "failed",
             result.state == PABD_RUN_OK ? "the states do not fit in memory" : result.reason);
    if (!cell->reason[0]) snprintf(cell->reason, sizeof cell->reason, "%s", level->note);
    go_on = result.state == PABD_RUN_DIVERGED || row->ladder != PABD_LADDER_STEPS;
  }
  pabd_run_result_free(&result);
  pabd_case_free(&c);
  return go_on && !pabd_stop_wanted;
}

static void run_cell(const pabd_catalog *catalog, const pabd_row *row, const pabd_column *column, pabd_effort effort,
                     pabd_cell *cell) {
  static const double budgets[PABD_EFFORT_COUNT] = {1, 3, 120};
  trajectory kept[PABD_VALIDATE_LEVELS] = {{0}};
  cell->best = cell->best_x = cell->order = cell->time_low = cell->time_high = NAN;
  if (row->missing) {
    not_applicable(cell, "", row->missing);
    return;
  }
  if (!column->engine->desc.is_available) {
    not_applicable(cell, "not available: ", column->engine->desc.why);
    return;
  }
  int32_t wanted = row->levels[effort];
  double last = 0;
  for (int32_t k = 0; k < wanted; ++k) {
    if (row->outputs) {
      kept[k].times = malloc(sizeof(double) * SAMPLE_CAPACITY);
      kept[k].samples = malloc(sizeof *kept[k].samples * SAMPLE_CAPACITY);
      if (!kept[k].times || !kept[k].samples) break;
    }
    if (k > 0 && row->ladder == PABD_LADDER_STEPS && 2 * last > budgets[effort]) {
      snprintf(cell->note, sizeof cell->note, "finer steps not run: over %g s each", budgets[effort]);
      break;
    }
    double begun = now_seconds();
    int go_on = run_level(catalog, row, column, effort, k, cell, &kept[k]);
    /* the engine's own step time, so that the start of an external program does not count */
    last = isfinite(cell->levels[k].wall_s) ? cell->levels[k].wall_s : now_seconds() - begun;
    if (cell->light == PABD_NA && cell->reason[0] && !go_on && isnan(cell->levels[k].error) &&
        cell->levels[k].state == 0 && isnan(cell->levels[k].wall_s) && k == 0)
      break;
    cell->level_count = k + 1;
    if (!go_on) break;
  }
  /* against its own finest step */
  int32_t finest = -1;
  for (int32_t k = 0; k < cell->level_count; ++k)
    if (kept[k].count > 0) finest = k;
  for (int32_t k = 0; row->outputs && k < finest; ++k) {
    if (kept[k].count == 0 || kept[k].count != kept[finest].count) continue;
    double sum = 0;
    for (int32_t j = 0; j < kept[k].count; ++j) sum += row->distance(row, kept[k].samples[j], kept[finest].samples[j]);
    cell->levels[k].consistency = sqrt(sum / kept[k].count);
    if (!row->exact && !row->table) cell->levels[k].error = cell->levels[k].consistency;
  }
  for (int32_t k = 0; k < PABD_VALIDATE_LEVELS; ++k) {
    free(kept[k].times);
    free(kept[k].samples);
  }
  int is_float = strcmp(column->engine->desc.precision, "double") != 0;
  pabd_validate_judge(row, is_float, cell);
}

/* ---- judging a cell ---- */

/* Order on the three finest steps above the rounding floor; errors must fall there. */
static void fit_order(int32_t is_float, pabd_cell *cell) {
  int32_t used[PABD_VALIDATE_LEVELS], count = 0;
  cell->is_monotone = 1;
  for (int32_t k = 0; k < cell->level_count; ++k) {
    const pabd_level *level = &cell->levels[k];
    double floor_error = (is_float ? 1e-6 : 1e-13) * sqrt(1 + 1 / level->x);
    if (!isfinite(level->error) || level->error < floor_error) {
      if (count > 0 && isfinite(level->error)) break;
      continue;
    }
    if (count > 0 && level->error > 0.9 * cell->levels[used[count - 1]].error) {
      if (level->error < 1e-3 && is_float) break; /* float's own noise */
      cell->is_monotone = 0;
    }
    used[count++] = k;
  }
  if (count < 2) return;
  const pabd_level *fine = &cell->levels[used[count - 1]],
                   *coarse = &cell->levels[used[count > 2 ? count - 3 : count - 2]];
  cell->order = log(coarse->error / fine->error) / log(coarse->x / fine->x);
}

static void judge_setting(const pabd_row *row, int32_t is_float, pabd_cell *cell) {
  if (row->gate == 'X') {
    cell->best = 0;
    for (int32_t k = 0; k < cell->level_count; ++k)
      cell->best = isfinite(cell->levels[k].error) ? fmax(cell->best, cell->levels[k].error) : INFINITY;
    cell->light = cell->best <= (is_float ? 2e-6 : 1e-12) ? PABD_GREEN : cell->best <= 1e-3 ? PABD_AMBER : PABD_RED;
    return;
  }
  /* the rate of the last two places that are above the noise, against the theory's */
  int32_t last = -1, before = -1;
  for (int32_t k = 0; k < cell->level_count; ++k)
    if (isfinite(cell->levels[k].error) && cell->levels[k].error > (is_float ? 3e-6 : 1e-12)) before = last, last = k;
  if (before < 0) {
    cell->light = last >= 0 || cell->level_count > 0 ? PABD_GREEN : PABD_RED;
    cell->best = 0;
    return;
  }
  double x0 = cell->levels[before].x, x1 = cell->levels[last].x;
  double rate = log(cell->levels[last].error / cell->levels[before].error) / (x1 - x0);
  double theory = log(row->theory(row, x1) / row->theory(row, x0)) / (x1 - x0);
  cell->best = fmax(0, 1 - rate / theory);
  cell->best_x = x1;
  snprintf(cell->note, sizeof cell->note, "factor a sweep %.5f, theory %.5f", exp(rate), exp(theory));
  cell->light = cell->best <= row->green ? PABD_GREEN : cell->best <= row->amber ? PABD_AMBER : PABD_RED;
}

void pabd_validate_judge(const pabd_row *row, int32_t is_float, pabd_cell *cell) {
  if (cell->reason[0] && cell->level_count == 0) return; /* n.a. */
  int32_t measured = 0;
  for (int32_t k = 0; k < cell->level_count; ++k) measured += isfinite(cell->levels[k].error);
  if (cell->level_count > 0 && measured == 0 && cell->levels[0].state == PABD_RUN_NA) {
    cell->light = PABD_NA;
    return;
  }
  cell->light = PABD_RED;
  if (row->ladder == PABD_LADDER_SETTING) {
    judge_setting(row, is_float, cell);
    return;
  }
  if (strcmp(row->key, "v35-dominoes") == 0) { /* the first variant is the reference of the others */
    double reference = cell->level_count > 0 ? cell->levels[0].value : NAN;
    for (int32_t k = 0; k < cell->level_count; ++k)
      cell->levels[k].error =
          isfinite(cell->levels[k].value / reference) ? fabs(cell->levels[k].value / reference - 1) : 1;
  }
  for (int32_t k = 0; k < cell->level_count; ++k) {
    const pabd_level *level = &cell->levels[k];
    if (!isfinite(level->error)) {
      if (row->ladder == PABD_LADDER_VARIANTS) cell->best = INFINITY, cell->best_x = level->x;
      continue;
    }
    int better = row->ladder == PABD_LADDER_STEPS ? !(cell->best <= level->error) : !(cell->best >= level->error);
    if (better) cell->best = level->error, cell->best_x = level->x;
    if (better && level->note[0]) snprintf(cell->note, sizeof cell->note, "%s", level->note);
    if (level->error <= 1e-1 && !(cell->time_low <= level->wall_s)) cell->time_low = level->wall_s;
    if (level->error <= 1e-3 && !(cell->time_high <= level->wall_s)) cell->time_high = level->wall_s;
  }
  if (row->ladder == PABD_LADDER_STEPS && (row->gate == 'O' || row->gate == 'T')) fit_order(is_float, cell);
  /* float: 2e-6 over 100 steps, growing as rounding does */
  double exact = is_float ? 2e-6 * sqrt(fmax(1, cell->steps / 100)) : 1e-12;
  double green = row->gate == 'X' ? exact : row->amber > 0 || row->gate == 'B' ? row->green : 1e-3;
  double amber = row->gate == 'X' ? 1e-3 : row->amber > 0 || row->gate == 'B' ? row->amber : 1e-1;
  cell->light = cell->best <= green ? PABD_GREEN : cell->best <= amber ? PABD_AMBER : PABD_RED;
}

/* ---- all cells ---- */

static pabd_status add_columns(pabd_catalog *catalog, pabd_validation *v, const char *text, int is_given,
                               pabd_error *error) {
  char name[PABD_PATH_SIZE], **names;
  snprintf(name, sizeof name, "%s", text);
  char *colon = strrchr(name, ':');
  const char *preset = NULL;
  if (colon) *colon = 0, preset = colon + 1;
  int32_t count;
  pabd_status found = pabd_catalog_find_engines(catalog, name, &names, &count, error);
  if (found != PABD_OK) return is_given ? found : PABD_OK; /* a default that this build does not know */
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < count && status == PABD_OK; ++k) {
    const pabd_catalog_engine *engine;
    status = pabd_catalog_engine_open(catalog, names[k], &engine, error);
    if (status != PABD_OK) break;
    int32_t matched = 0;
    for (int32_t p = -1; p < engine->presets.count; ++p) {
      const pabd_preset *one = p < 0 ? NULL : &engine->presets.presets[p];
      if (!preset && p < 0 && pabd_presets_default(&engine->presets)) one = pabd_presets_default(&engine->presets);
      if (preset ? !one || !pabd_glob_match(preset, one->name) : p >= 0) continue;
      pabd_column *moved = realloc(v->columns, ((size_t)v->column_count + 1) * sizeof *moved);
      if (!moved) {
        status = pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
        break;
      }
      v->columns = moved;
      pabd_column *column = &v->columns[v->column_count++];
      *column = (pabd_column){.engine = engine, .preset = one};
      snprintf(column->label, sizeof column->label, "%.60s%s%.60s", engine->desc.stem, one ? ":" : "",
               one ? one->name : "");
      ++matched;
    }
    if (status == PABD_OK && matched == 0) {
      const pabd_preset *none;
      status = pabd_catalog_find_preset(engine, preset, &none, error);
    }
  }
  pabd_free_names(names, count);
  return status;
}

typedef struct shared_state {
  atomic_int next, done;
} shared_state;

static void work(const pabd_catalog *catalog, const pabd_validation *v, shared_state *shared) {
  int32_t total = v->row_count * v->column_count;
  while (!pabd_stop_wanted) {
    int32_t k = atomic_fetch_add(&shared->next, 1);
    if (k >= total) break;
    pabd_cell cell = {0};
    run_cell(catalog, v->rows[k / v->column_count], &v->columns[k % v->column_count], v->effort, &cell);
    if (pabd_stop_wanted) break;
    cell.is_done = 1;
    v->cells[k] = cell;
    atomic_fetch_add(&shared->done, 1);
  }
}

static pabd_status run_all(const pabd_catalog *catalog, pabd_validation *v, int32_t jobs, int is_quiet,
                           pabd_error *error) {
  int32_t total = v->row_count * v->column_count;
  size_t size = sizeof(shared_state) + (size_t)total * sizeof(pabd_cell);
  shared_state *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return pabd_fail(error, PABD_ERR_MEMORY, "out of memory for %d cells", total);
  v->cells = (pabd_cell *)(shared + 1);
  double begun = now_seconds();
  pid_t workers[64];
  fflush(NULL);
  for (int32_t k = 0; k < jobs; ++k) {
    workers[k] = fork();
    if (workers[k] == 0) {
      work(catalog, v, shared);
      _exit(0);
    }
  }
  int32_t alive = jobs, told = 0;
  while (alive > 0) {
    for (int32_t k = 0; k < jobs; ++k) {
      int state;
      if (workers[k] > 0 && waitpid(workers[k], &state, WNOHANG) == workers[k]) workers[k] = 0, --alive;
      if (workers[k] < 0) workers[k] = 0, --alive;
    }
    int32_t done = atomic_load(&shared->done);
    int is_due = isatty(2) ? done != told : done * 20 / total != told * 20 / total;
    if (!is_quiet && is_due)
      fprintf(stderr, isatty(2) ? "\r%d of %d cells, %.0f s " : "%d of %d cells, %.0f s\n", done, total,
              now_seconds() - begun);
    told = done;
    usleep(100000);
  }
  if (!is_quiet && isatty(2)) fprintf(stderr, "\n");
  v->wall_s = now_seconds() - begun;
  return PABD_OK;
}

static void print_table(const pabd_validation *v) {
  static const char *const lights[] = {"na", "red", "amber", "green"};
  for (int32_t c = 0; c < v->column_count; ++c) {
    int32_t counts[4] = {0};
    for (int32_t r = 0; r < v->row_count; ++r) ++counts[v->cells[r * v->column_count + c].light];
    printf("%-26s", v->columns[c].label);
    for (int k = PABD_GREEN; k >= 0; --k) printf("  %3d %s", counts[k], lights[k]);
    printf("\n");
  }
}

static int validate(const pabd_arguments *a) {
  static const char *const standard[] = {"pabd:*",         "pabd-double:*",   "bullet-native:advised",
                                         "bullet:advised", "ode:advised",     "ode:direct",
                                         "mujoco:advised", "rapier:accurate", "physx:advised"};
  static const char *const smoke[] = {"pabd:auto", "pabd:jacobi", "pabd-double:auto"};
  static const char *const efforts[] = {"ci", "quick", "full"};
  pabd_error error = {""};
  pabd_catalog catalog;
  pabd_validation v = {.effort = PABD_EFFORT_QUICK, .command_line = a->command_line};
  const char *subset = pabd_argument(a, "subset"), *engines[PABD_ARGUMENT_CAPACITY];
  int64_t jobs;
  v.dir = pabd_argument(a, "out") ? pabd_argument(a, "out") : "results/validate";
  if (subset) {
    int32_t k = 0;
    while (k < PABD_EFFORT_COUNT && strcmp(efforts[k], subset) != 0) ++k;
    if (k == PABD_EFFORT_COUNT) {
      pabd_fail(&error, PABD_ERR_INPUT, "validate: --subset '%.60s' (allowed: ci, quick, full)", subset);
      return pabd_complain(&error);
    }
    v.effort = (pabd_effort)k;
  }
  if (pabd_argument_int(a, "jobs", 1, 64, 2, &jobs, &error) != PABD_OK ||
      pabd_catalog_open(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &catalog, &error) != PABD_OK)
    return pabd_complain(&error);
  int32_t given = pabd_argument_list(a, "engine", engines, PABD_ARGUMENT_CAPACITY);
  int is_ci = v.effort == PABD_EFFORT_CI;
  const char *const *list = given ? engines : is_ci ? smoke : standard;
  int32_t list_count = given   ? given
                       : is_ci ? (int32_t)(sizeof smoke / sizeof smoke[0])
                               : (int32_t)(sizeof standard / sizeof standard[0]);
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < list_count && status == PABD_OK; ++k)
    status = add_columns(&catalog, &v, list[k], given > 0, &error);
  v.rows = calloc((size_t)pabd_row_count, sizeof *v.rows);
  if (status == PABD_OK && !v.rows) status = pabd_fail(&error, PABD_ERR_MEMORY, "out of memory");
  for (int32_t r = 0; r < pabd_row_count && status == PABD_OK; ++r) {
    int wanted = a->word_count == 0;
    for (int32_t w = 0; w < a->word_count; ++w)
      wanted |= pabd_glob_match(a->words[w], pabd_rows[r].key) || strcasecmp(a->words[w], pabd_rows[r].number) == 0;
    if (wanted && pabd_rows[r].levels[v.effort] > 0) v.rows[v.row_count++] = &pabd_rows[r];
  }
  if (status == PABD_OK && v.row_count == 0)
    status = pabd_fail(&error, PABD_ERR_INPUT, "validate: no row matches (numbers as V08, or keys as v08-pendulum)");
  if (status == PABD_OK && v.column_count == 0)
    status = pabd_fail(&error, PABD_ERR_INPUT, "validate: no engine is there (make)");
  int code = 0;
  if (status == PABD_OK) {
    pabd_stop_watch();
    status = run_all(&catalog, &v, (int32_t)jobs, pabd_argument(a, "quiet") != NULL, &error);
  }
  if (status == PABD_OK && pabd_stop_wanted) code = 130;
  if (status == PABD_OK && !pabd_stop_wanted) {
    status = pabd_validate_report(&v, &error);
    if (status == PABD_OK) {
      print_table(&v);
      printf("%s/validate.html\n", v.dir);
    }
  }
  if (status != PABD_OK) code = pabd_complain(&error);
  free(v.columns);
  free((void *)v.rows);
  pabd_catalog_close(&catalog);
  return code;
}

static const pabd_option validate_options[] = {
    {"engine", "NAME[:preset]",
     "engine, may be given often; patterns are allowed (default: ours and the advised ones)"},
    {"subset", "NAME", "ci (seconds), quick (the default, minutes) or full (hours)"},
    {"out", "DIR", "folder for validate.html, .json, .md and plots (default results/validate)"},
    {"jobs", "N", "cells run at once (default 2)"},
    {"quiet", NULL, "no progress"},
    PABD_PLACE_OPTIONS,
    {NULL, NULL, NULL}};

const pabd_command pabd_command_validate = {
    "validate",
    "[ROW]... [options]",
    "closed forms and published references against every engine",
    "Runs the validation suite: each row is a case with a closed form, a published reference or a law, over a ladder "
    "of\n"
    "steps, case variants or sweeps. Rows are named by number (V08) or key (v08-pendulum), patterns allowed.\n\n"
    "Examples:\n"
    "  pabd-bench validate --subset ci\n"
    "  pabd-bench validate V08 'v10-*' --engine pabd:auto --engine bullet-native:advised\n\n"
    "Exit code: 0 the suite ran (what is red is a result); 2 bad input.",
    validate_options,
    validate};
