/* One run in a child process: the engine steps and the judge judges there; the parent watches the clock and the exit.
 *
 * The child is the leader of a process group of its own and is killed by the kernel when the parent dies, so neither it
 * nor a program it started outlives the run. Results lie in one shared mapping (block, arrays, two snapshot slots). The
 * child writes metrics into the slot that is not valid and then flips an index; a kill at any point leaves the last
 * whole snapshot. Snapshots are taken as often as they cost less than 5 % of the run, outside the timed region. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"

/* Metrics and series of one run in one snapshot; address space only, pages are used as they are written. */
#define SLOT_SIZE ((size_t)192 << 20)
#define OUTPUT_SIZE 2048

enum { PHASE_LOAD, PHASE_CREATE, PHASE_START, PHASE_STEP, PHASE_READ, PHASE_JUDGE, PHASE_END, PHASE_DESTROY };
static const char *const phase_texts[] = {
    "while it was loaded",  "in create()",  "in its start state",   "in step()",
    "in read() or stats()", "in the judge", "after its last frame", "in destroy()"};

/* Fixed part of the shared mapping. */
typedef struct block {
  atomic_int phase, frame; /* frame: the last one that is complete */
  atomic_int valid_slot;   /* -1, 0 or 1 */
  int32_t slot_frame[2];
  int32_t is_finished, is_truncated;
  pabd_run_state state;
  char reason[700];
  uint64_t state_hash;
  int32_t has_hash;
  double create_ms;
  uint32_t trajectory_samples;
  int32_t setting_count;
  char settings[PABD_SETTING_CAPACITY][PABD_VALUE_SIZE];
  int32_t stage_count, counter_count;
  struct {
    char name[48];
    int32_t is_collide;
  } stages[PABD_STAGE_MAX];
  struct {
    char name[48], unit[16];
    double last, sum, max;
    int32_t count;
  } counters[PABD_COUNTER_MAX];
  int32_t warning_count;
  char warnings[PABD_WARNING_CAPACITY][200];
} block;

/* Pointers into the mapping; the same in parent and child because the mapping is inherited. */
typedef struct view {
  block *head;
  double *wall_ms, *cpu_ms, *self_ms, *collide_ms, *solve_ms, *stage_ms[PABD_STAGE_MAX];
  uint64_t *hash;
  double *states;
  int32_t state_frames;
  char *slot[2];
} view;

const char *pabd_run_state_text(pabd_run_state state) {
  switch (state) {
    case PABD_RUN_OK:
      return "ok";
    case PABD_RUN_DIVERGED:
      return "diverged";
    case PABD_RUN_CRASHED:
      return "crashed";
    case PABD_RUN_TIMEOUT:
      return "timeout";
    case PABD_RUN_NA:
      return "na";
    default:
      return NULL;
  }
}

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- snapshots: metrics as bytes ----------------------------------------------------------------------------------
 */

static int put(char *slot, size_t *used, const void *data, size_t size) {
  if (*used + size > SLOT_SIZE) return 0;
  memcpy(slot + *used, data, size);
  *used += size;
  return 1;
}

static int put_series(char *slot, size_t *used, const pabd_metrics *m) {
  for (int32_t k = 0; k < m->series_count; ++k) {
    const pabd_series *series = &m->series[k];
    if (!put(slot, used, series, sizeof *series)) return 0;
    if (!put(slot, used, series->values, (size_t)series->count * sizeof(double))) return 0;
  }
  return 1;
}

/* Two sets one after the other. Returns 0 when they do not fit. */
static int write_slot(char *slot, const pabd_metrics *judged, const pabd_metrics *traced) {
  size_t used = 0;
  int32_t counts[2] = {judged->metric_count, judged->series_count + traced->series_count};
  return put(slot, &used, counts, sizeof counts) &&
         put(slot, &used, judged->metrics, (size_t)counts[0] * sizeof(pabd_metric)) &&
         put_series(slot, &used, judged) && put_series(slot, &used, traced);
}

static pabd_status read_slot(const char *slot, pabd_metrics *out) {
  int32_t counts[2];
  memcpy(counts, slot, sizeof counts);
  slot += sizeof counts;
  for (int32_t k = 0; k < counts[0]; ++k, slot += sizeof(pabd_metric)) {
    pabd_metric metric;
    memcpy(&metric, slot, sizeof metric);
    PABD_TRY(pabd_metrics_set(out, metric.key, metric.value, metric.unit, metric.better));
  }
  for (int32_t k = 0; k < counts[1]; ++k) {
    pabd_series series;
    memcpy(&series, slot, sizeof series);
    slot += sizeof series;
    for (int32_t j = 0; j < series.count; ++j, slot += sizeof(double)) {
      double value;
      memcpy(&value, slot, sizeof value);
      PABD_TRY(pabd_series_append(out, series.key, series.unit, value));
    }
  }
  return PABD_OK;
}

/* ---- the child ----------------------------------------------------------------------------------------------------
 */

typedef struct context {
  const pabd_job *job;
  view v;
  pabd_judge *judge;
  pabd_metrics traced;
  double *pose, *velocity; /* [body_count][7], [body_count][6] */
  double started, snapshot_cost;
  uint32_t warned; /* bits of the warnings already given */
} context;

enum { WARN_START, WARN_STATIC, WARN_QUATERNION, WARN_STATS, WARN_CLOCK, WARN_THREADS, WARN_OVERFLOW };

static void warn_once(context *x, int kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void warn_once(context *x, int kind, const char *format, ...) {
  block *head = x->v.head;
  if (x->warned >> kind & 1 || head->warning_count == PABD_WARNING_CAPACITY) return;
  x->warned |= 1u << kind;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(head->warnings[head->warning_count], sizeof head->warnings[0], format, arguments);
  va_end(arguments);
  ++head->warning_count;
}

/* Leaves the run's end in the block. */
static void conclude(context *x, pabd_run_state state, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void conclude(context *x, pabd_run_state state, const char *format, ...) {
  block *head = x->v.head;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(head->reason, sizeof head->reason, format, arguments);
  va_end(arguments);
  head->state = state;
}

static void body_label(const pabd_case *c, int32_t i, char *out, size_t size) {
  const char *name = c->scene.bodies[i].name;
  snprintf(out, size, name[0] ? "body %d '%s'" : "body %d", i, name);
}

/* Is every number finite? If not, `reason` says which one is the first. */
static int is_finite_state(const context *x, int32_t frame, char *reason, size_t size) {
  static const char *const fields[13] = {"x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"};
  for (int32_t i = 0; i < x->job->c->scene.body_count; ++i) {
    for (int k = 0; k < 13; ++k) {
      double value = k < 7 ? x->pose[7 * i + k] : x->velocity[6 * i + k - 7];
      if (isfinite(value)) continue;
      char label[64];
      body_label(x->job->c, i, label, sizeof label);
      snprintf(reason, size, "frame %d: %s of %s is %s", frame, fields[k], label, isnan(value) ? "nan" : "infinite");
      return 0;
    }
  }
  return 1;
}

static double distance_to(const double *pose, pabd_dvec3 p) {
  return hypot(hypot(pose[0] - p.x, pose[1] - p.y), pose[2] - p.z);
}

/* Things no judge's metric shows: a start state of the engine's own making, static bodies that move, bad quaternions.
 */
static void check_state(context *x, int32_t frame) {
  const pabd_scene *scene = &x->job->c->scene;
  for (int32_t i = 0; i < scene->body_count; ++i) {
    const pabd_body *body = &scene->bodies[i];
    const double *pose = x->pose + 7 * i, *velocity = x->velocity + 6 * i;
    char label[64];
    double moved = distance_to(pose, body->pose.p),
           size = sqrt(body->pose.p.x * body->pose.p.x + body->pose.p.y * body->pose.p.y +
                       body->pose.p.z * body->pose.p.z);
    /* 1e-6 of the coordinate: what a single precision engine can keep. */
    if (body->motion == PABD_STATIC && moved > 1e-4 + 1e-6 * size) {
      body_label(x->job->c, i, label, sizeof label);
      warn_once(x, WARN_STATIC, "frame %d: static %s is %.3g m from its place", frame, label, moved);
    }
    double norm = sqrt(pose[3] * pose[3] + pose[4] * pose[4] + pose[5] * pose[5] + pose[6] * pose[6]);
    if (fabs(norm - 1) > 1e-3) {
      body_label(x->job->c, i, label, sizeof label);
      warn_once(x, WARN_QUATERNION, "frame %d: quaternion of %s has length %.6g", frame, label, norm);
    }
    if (frame > 0) continue;
    pabd_dquat q = body->pose.q;
    double turned = 2 * acos(fmin(1, fabs(pose[3] * q.w + pose[4] * q.x + pose[5] * q.y + pose[6] * q.z)));
    double velocity_off =
        hypot(hypot(velocity[0] - body->linear.x, velocity[1] - body->linear.y), velocity[2] - body->linear.z);
    double spin_off =
        hypot(hypot(velocity[3] - body->angular.x, velocity[4] - body->angular.y), velocity[5] - body->angular.z);
    double speed = hypot(hypot(body->linear.x, body->linear.y), body->linear.z) +
                   hypot(hypot(body->angular.x, body->angular.y), body->angular.z);
    if (moved > 1e-5 + 1e-6 * size || turned > 2e-3 || velocity_off + spin_off > 1e-4 * (1 + speed)) {
      body_label(x->job->c, i, label, sizeof label);
      warn_once(x, WARN_START, "start state of %s differs from the scene's: %.3g m, %.3g rad, %.3g m/s, %.3g rad/s",
                label, moved, turned, velocity_off, spin_off);
    }
  }
}

/* Copies a name that an engine gave; it may be NULL or unreadably long. */
static void copy_name(char *out, size_t size, const char *name) {
  snprintf(out, size, "%.*s", (int)size - 1, name ? name : "?");
}

/* Reads the engine's statistics of the frame into the block. Returns the cumulative work of its drivers, J. */
static double collect_stats(context *x, const pabd_engine *engine, void *world, int32_t frame) {
  block *head = x->v.head;
  pabd_engine_stats stats;
  memset(&stats, 0, sizeof stats);
  engine->stats(world, &stats);
  double work = 0, collide = 0, solve = 0;
  if (stats.stage_count < 0 || stats.stage_count > PABD_STAGE_MAX || stats.counter_count < 0 ||
      stats.counter_count > PABD_COUNTER_MAX) {
    warn_once(x, WARN_STATS, "frame %d: statistics with %d stages and %d counters are not read", frame,
              stats.stage_count, stats.counter_count);
    return 0;
  }
  for (int32_t k = 0; k < stats.stage_count; ++k) {
    char name[48];
    copy_name(name, sizeof name, stats.stages[k].name);
    int32_t at = 0;
    while (at < head->stage_count && strcmp(head->stages[at].name, name) != 0) ++at;
    if (at == PABD_STAGE_MAX) continue;
    if (at == head->stage_count) {
      memcpy(head->stages[at].name, name, sizeof name);
      head->stages[at].is_collide = stats.stages[k].is_collide != 0;
      ++head->stage_count;
    }
    x->v.stage_ms[at][frame] = stats.stages[k].ms;
    *(stats.stages[k].is_collide ? &collide : &solve) += stats.stages[k].ms;
  }
  if (stats.stage_count > 0) {
    x->v.collide_ms[frame] = collide;
    x->v.solve_ms[frame] = solve;
    /* Stages are parts of the step: together they cannot take longer (10 % and 0.1 ms for the clocks). Else none of
     * them is believed in this frame. */
    if (!(collide + solve <= 1.1 * x->v.wall_ms[frame] + 0.1)) {
      warn_once(x, WARN_CLOCK, "frame %d: stages of %.3g ms in a step of %.3g ms are not believed", frame,
                collide + solve, x->v.wall_ms[frame]);
      x->v.collide_ms[frame] = x->v.solve_ms[frame] = NAN;
      for (int32_t k = 0; k < head->stage_count; ++k) x->v.stage_ms[k][frame] = NAN;
    }
  }
  if (stats.self_ms > 0) {
    x->v.self_ms[frame] = stats.self_ms;
    if (stats.self_ms > 1.1 * x->v.wall_ms[frame] + 0.1)
      warn_once(x, WARN_CLOCK, "frame %d: the engine claims %.3g ms for a step of %.3g ms", frame, stats.self_ms,
                x->v.wall_ms[frame]);
  }
  for (int32_t k = 0; k < stats.counter_count; ++k) {
    char name[48];
    copy_name(name, sizeof name, stats.counters[k].name);
    int32_t at = 0;
    while (at < head->counter_count && strcmp(head->counters[at].name, name) != 0) ++at;
    if (at == PABD_COUNTER_MAX) continue;
    if (at == head->counter_count) {
      memcpy(head->counters[at].name, name, sizeof name);
      copy_name(head->counters[at].unit, sizeof head->counters[at].unit, stats.counters[k].unit);
      head->counters[at].max = -INFINITY;
      ++head->counter_count;
    }
    double value = stats.counters[k].value;
    head->counters[at].last = value;
    if (!isfinite(value)) continue;
    head->counters[at].sum += value;
    head->counters[at].max = fmax(head->counters[at].max, value);
    ++head->counters[at].count;
    if (strcmp(name, "driver_work") == 0) work = value;
    if (strcmp(name, "overflow") == 0 && value > 0)
      warn_once(x, WARN_OVERFLOW, "frame %d: the engine dropped %g pairs, contacts or blocks for lack of capacity",
                frame, value);
  }
  return work;
}

static void snapshot(context *x, int32_t frame) {
  if (!x->judge) return;
  double begin = seconds_of(CLOCK_MONOTONIC);
  int32_t slot = atomic_load(&x->v.head->valid_slot) == 0;
  pabd_metrics m;
  pabd_metrics_init(&m);
  if (pabd_judge_finish(x->judge, &m) == PABD_OK) {
    if (write_slot(x->v.slot[slot], &m, &x->traced)) {
      x->v.head->slot_frame[slot] = frame;
      atomic_store(&x->v.head->valid_slot, slot);
    } else {
      x->v.head->is_truncated = 1;
    }
  }
  pabd_metrics_free(&m);
  x->snapshot_cost += seconds_of(CLOCK_MONOTONIC) - begin;
}

/* One call a sweep. Sums over bodies are taken here: the record keeps curves, not states. */
static void on_trace(const pabd_trace *trace, void *user) {
  context *x = user;
  double momentum[3] = {0, 0, 0}, phase = 0;
  for (int32_t i = 0; i < trace->body_count && trace->momentum; ++i) {
    for (int k = 0; k < 3; ++k) momentum[k] += trace->momentum[3 * i + k];
  }
  static const char *const phases[] = {"sweep", "relax", "dual", "newton"};
  for (int k = 0; k < 4; ++k) {
    if (trace->phase && strcmp(trace->phase, phases[k]) == 0) phase = k;
  }
  const struct {
    const char *key, *unit;
    double value;
  } points[] = {{"trace.frame", "1", trace->frame},          {"trace.substep", "1", trace->substep},
                {"trace.sweep", "1", trace->sweep},          {"trace.phase", "1", phase},
                {"trace.residual", "N", trace->residual},    {"trace.joint_error", "m", trace->joint_error},
                {"trace.gap_min", "m", trace->gap_min},      {"trace.lambda_max", "N", trace->lambda_max},
                {"trace.objective", "J", trace->objective},  {"trace.momentum_x", "kg m/s", momentum[0]},
                {"trace.momentum_y", "kg m/s", momentum[1]}, {"trace.momentum_z", "kg m/s", momentum[2]}};
  for (size_t k = 0; k < sizeof points / sizeof points[0]; ++k) {
    if (pabd_series_append(&x->traced, points[k].key, points[k].unit, points[k].value) != PABD_OK) return;
  }
}

/* Hash, states, trajectory, judge: all that is done with a frame's state, outside the timed region. */
static pabd_status take_frame(context *x, int32_t frame, double work) {
  const pabd_job *job = x->job;
  block *head = x->v.head;
  int32_t bodies = job->c->scene.body_count;
  head->state_hash = pabd_state_hash(head->has_hash ? head->state_hash : PABD_HASH_START, x->pose, x->velocity, bodies);
  head->has_hash = 1;
  x->v.hash[frame] = head->state_hash;
  if (frame < x->v.state_frames) {
    double *state = x->v.states + (size_t)frame * (size_t)bodies * 13;
    memcpy(state, x->pose, (size_t)bodies * 7 * sizeof *state);
    memcpy(state + (size_t)bodies * 7, x->velocity, (size_t)bodies * 6 * sizeof *state);
  }
  char reason[200];
  int is_finite = is_finite_state(x, frame, reason, sizeof reason);
  if (is_finite) check_state(x, frame);
  if (job->trajectory >= 0 && is_finite && (frame % job->stride == 0 || frame == job->c->frame_count)) {
    pabd_error error = {""};
    if (pabd_trajectory_append(job->trajectory, (uint32_t)frame, (uint32_t)bodies, (uint32_t)job->value_size, x->pose,
                               &error) != PABD_OK) {
      conclude(x, PABD_RUN_FAILED, "%s", error.text);
      return PABD_ERR_IO;
    }
    ++head->trajectory_samples;
  }
  if (x->judge && pabd_judge_frame(x->judge, frame, x->pose, x->velocity, work) != PABD_OK && is_finite) {
    conclude(x, PABD_RUN_DIVERGED, "frame %d: a body is out of all bounds", frame);
    return PABD_DIVERGED;
  }
  if (!is_finite) {
    conclude(x, PABD_RUN_DIVERGED, "%s", reason);
    return PABD_DIVERGED;
  }
  return PABD_OK;
}

static void step_frames(context *x, const pabd_engine *engine, void *world) {
  const pabd_job *job = x->job;
  block *head = x->v.head;
  view *v = &x->v;
  pabd_error error = {""};
  int is_tracing = 0;
  atomic_store(&head->phase, PHASE_START);
  engine->read(world, x->pose, x->velocity);
  if (take_frame(x, 0, 0) != PABD_OK) return;
  for (int32_t frame = 1; frame <= job->c->frame_count; ++frame) {
    int wants_trace = frame >= job->trace_from && frame <= job->trace_to && engine->set_trace;
    if (wants_trace != is_tracing) {
      engine->set_trace(world, wants_trace ? on_trace : NULL, wants_trace ? x : NULL);
      is_tracing = wants_trace;
    }
    atomic_store(&head->phase, PHASE_STEP);
    double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), wall = seconds_of(CLOCK_MONOTONIC);
    pabd_status status = engine->step(world, &error);
    v->wall_ms[frame] = 1e3 * (seconds_of(CLOCK_MONOTONIC) - wall);
    v->cpu_ms[frame] = 1e3 * (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    if (status != PABD_OK && status != PABD_DIVERGED) {
      conclude(x, status == PABD_ERR_UNSUPPORTED ? PABD_RUN_NA : PABD_RUN_CRASHED, "frame %d: step() failed: %s%s%s",
               frame, pabd_status_text(status), error.text[0] ? ": " : "", error.text);
      return;
    }
    atomic_store(&head->phase, PHASE_READ);
    engine->read(world, x->pose, x->velocity);
    double work = collect_stats(x, engine, world, frame);
    atomic_store(&head->phase, PHASE_JUDGE);
    pabd_status taken = take_frame(x, frame, work);
    atomic_store(&head->frame, frame);
    if (taken != PABD_OK) return;
    if (status == PABD_DIVERGED) {
      conclude(x, PABD_RUN_DIVERGED, "frame %d: the engine says so: %s", frame,
               error.text[0] ? error.text : "diverged");
      return;
    }
    if (x->snapshot_cost <= 0.05 * (seconds_of(CLOCK_MONOTONIC) - x->started)) snapshot(x, frame);
  }
}

static void run_job(context *x) {
  const pabd_job *job = x->job;
  block *head = x->v.head;
  pabd_error error = {""};
  const pabd_engine *engine;
  char threads[16];
  x->started = seconds_of(CLOCK_MONOTONIC);
  /* For libraries that start threads on their own, whatever the engine's setting says. */
  snprintf(threads, sizeof threads, "%d", job->threads);
  setenv("OMP_NUM_THREADS", threads, 1);
  atomic_store(&head->phase, PHASE_LOAD);
  if (pabd_engine_open(job->engine->file, &engine, &error) != PABD_OK) {
    conclude(x, PABD_RUN_NA, "not available: %s", error.text);
    return;
  }
  pabd_engine_info info;
  memset(&info, 0, sizeof info);
  if (engine->probe(&info, &error) != PABD_OK) {
    conclude(x, PABD_RUN_NA, "not available: %s", error.text);
    return;
  }
  size_t bodies = (size_t)job->c->scene.body_count;
  x->pose = calloc(bodies * 7 + 1, sizeof *x->pose);
  x->velocity = calloc(bodies * 6 + 1, sizeof *x->velocity);
  if (job->with_judge) x->judge = pabd_judge_create(job->c);
  pabd_setting *settings = calloc((size_t)job->setting_count + 1, sizeof *settings);
  if (!x->pose || !x->velocity || !settings || (job->with_judge && !x->judge)) {
    conclude(x, PABD_RUN_FAILED, "out of memory");
    return;
  }
  for (int32_t k = 0; k < job->setting_count; ++k)
    settings[k] = (pabd_setting){job->settings[k].key, job->settings[k].value};
  if (job->threads > 1 && !(job->engine->capabilities & PABD_CAN_THREADS))
    warn_once(x, WARN_THREADS, "%d threads asked, but the engine has no threads", job->threads);

  atomic_store(&head->phase, PHASE_CREATE);
  void *world = NULL;
  double begin = seconds_of(CLOCK_MONOTONIC);
  pabd_status status = engine->create(&job->c->scene, settings, job->setting_count, &world, &error);
  head->create_ms = 1e3 * (seconds_of(CLOCK_MONOTONIC) - begin);
  free(settings);
  if (status != PABD_OK) {
    const char *text = error.text[0] ? error.text : pabd_status_text(status);
    if (status == PABD_ERR_UNSUPPORTED || status == PABD_ERR_UNAVAILABLE)
      conclude(x, PABD_RUN_NA, "%s", text);
    else if (status == PABD_ERR_INPUT)
      conclude(x, PABD_RUN_BAD_INPUT, "%s", text);
    else
      conclude(x, PABD_RUN_CRASHED, "create() failed: %s", text);
    return;
  }
  for (int32_t k = 0; k < job->engine->setting_count; ++k) {
    engine->setting_value(world, k, head->settings[k], PABD_VALUE_SIZE);
    head->settings[k][PABD_VALUE_SIZE - 1] = 0;
  }
  head->setting_count = job->engine->setting_count;
  step_frames(x, engine, world);
  snapshot(x, atomic_load(&head->frame));
  atomic_store(&head->phase, PHASE_DESTROY);
  head->is_finished = 1;
  engine->destroy(world);
}

/* The child's life. Never returns. */
static void child_main(const pabd_job *job, view v, int output, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1); /* the parent was gone before the line above */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  /* If memory runs out, this process is the one to go, not the harness. */
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    ssize_t ignored = write(score, "1000", 4);
    (void)ignored;
    close(score);
  }
  int nowhere = open("/dev/null", O_RDONLY);
  if (nowhere >= 0) dup2(nowhere, 0);
  dup2(output, 1);
  dup2(output, 2);
  setvbuf(stdout, NULL, _IOLBF, 0);
  context *x = calloc(1, sizeof *x);
  if (!x) _exit(1);
  x->job = job;
  x->v = v;
  pabd_metrics_init(&x->traced);
  run_job(x);
  v.head->is_finished = 1;
  fflush(NULL);
  _exit(0);
}

/* ---- the parent ---------------------------------------------------------------------------------------------------
 */

static size_t rounded(size_t size) {
  return (size + 4095) & ~(size_t)4095;
}

/* Offsets of the mapping's parts, bytes. */
typedef struct layout {
  size_t row; /* size of one row of doubles, [frame_count + 1] */
  size_t rows, hash, states, slots, size;
  int32_t state_frames;
} layout;

enum { PLAIN_ROWS = 5 }; /* wall, cpu, self, collide, solve; the stages' rows follow */

static layout measure(const pabd_job *job) {
  layout l = {0};
  size_t frames = (size_t)job->c->frame_count + 1;
  size_t state_size = (size_t)job->c->scene.body_count * 13 * sizeof(double);
  l.row = frames * sizeof(double);
  l.rows = rounded(sizeof(block));
  l.hash = l.rows + (PLAIN_ROWS + PABD_STAGE_MAX) * l.row;
  l.states = rounded(l.hash + l.row);
  if (job->keep_states && state_size > 0) {
    size_t fit = job->state_limit / state_size;
    l.state_frames = (int32_t)(fit < frames ? fit : frames);
  }
  l.slots = rounded(l.states + (size_t)l.state_frames * state_size);
  l.size = l.slots + 2 * SLOT_SIZE;
  return l;
}

static view attach(const layout *l, void *mapping) {
  char *base = mapping;
  view v = {.head = mapping, .state_frames = l->state_frames};
  double **rows[PLAIN_ROWS] = {&v.wall_ms, &v.cpu_ms, &v.self_ms, &v.collide_ms, &v.solve_ms};
  for (size_t k = 0; k < PLAIN_ROWS; ++k) *rows[k] = (void *)(base + l->rows + k * l->row);
  for (size_t k = 0; k < PABD_STAGE_MAX; ++k) v.stage_ms[k] = (void *)(base + l->rows + (PLAIN_ROWS + k) * l->row);
  v.hash = (void *)(base + l->hash);
  if (l->state_frames > 0) v.states = (void *)(base + l->states);
  for (size_t k = 0; k < 2; ++k) v.slot[k] = base + l->slots + k * SLOT_SIZE;
  return v;
}

/* Reads what the child printed; keeps the end. */
static void drain(int pipe_end, char output[OUTPUT_SIZE]) {
  char piece[1024];
  for (ssize_t got; (got = read(pipe_end, piece, sizeof piece)) > 0;) {
    size_t used = strlen(output), more = (size_t)got;
    for (size_t k = 0; k < more; ++k) {
      if (piece[k] == 0) piece[k] = ' ';
    }
    if (used + more > OUTPUT_SIZE - 1) {
      size_t drop = used + more - (OUTPUT_SIZE - 1);
      if (drop > used) drop = used;
      memmove(output, output + drop, used - drop + 1);
      used -= drop;
    }
    memcpy(output + used, piece, more);
    output[used + more] = 0;
  }
}

/* Last line of the child's output that is not empty, as a part of the reason. */
static void last_line(const char *output, char *line, size_t size) {
  const char *end = output + strlen(output);
  while (end > output && (unsigned char)end[-1] <= ' ') --end;
  const char *start = end;
  while (start > output && start[-1] != '\n' && end - start < 200) --start;
  snprintf(line, size, "%.*s", (int)(end - start), start);
}

/* Output of an engine may hold any bytes; records are UTF-8 text. */
static void make_printable(char *text) {
  for (; *text; ++text) {
    unsigned char c = (unsigned char)*text;
    if ((c < ' ' && c != '\n' && c != '\t') || c >= 127) *text = '?';
  }
}

/* Reasons are one line, whatever an engine wrote into its error text. */
static void make_line(char *text) {
  make_printable(text);
  for (; *text; ++text) {
    if (*text == '\n' || *text == '\t') *text = ' ';
  }
}

/* Waits for the child's exit, its time limit or the person. Returns the wait status; says what happened. */
static int wait_for(const pabd_job *job, pid_t child, int pipe_end, view *v, const volatile sig_atomic_t *stop,
                    pabd_tick_fn tick, void *user, char *output, int *is_late, int *is_stopped, struct rusage *usage) {
  int state = 0;
  double begin = seconds_of(CLOCK_MONOTONIC);
  int exit_notice = (int)syscall(SYS_pidfd_open, child, 0); /* < 0 on old kernels: poll the clock instead */
  *is_late = *is_stopped = 0;
  for (;;) {
    struct pollfd wanted[2] = {{pipe_end, POLLIN, 0}, {exit_notice, POLLIN, 0}};
    poll(wanted, exit_notice >= 0 ? 2 : 1, exit_notice >= 0 ? 200 : 20);
    drain(pipe_end, output);
    if (wait4(child, &state, WNOHANG, usage) == child) break;
    /* A closed pipe would make poll return at once, for ever. */
    if (wanted[0].revents & POLLHUP && !(wanted[0].revents & POLLIN)) {
      struct timespec pause = {0, 5000000};
      nanosleep(&pause, NULL);
    }
    *is_stopped = stop && *stop;
    *is_late = seconds_of(CLOCK_MONOTONIC) - begin > job->time_limit;
    if (*is_stopped || *is_late) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      wait4(child, &state, 0, usage);
      break;
    }
    if (tick) tick(atomic_load(&v->head->frame), job->c->frame_count, user);
  }
  kill(-child, SIGKILL); /* whatever it started */
  drain(pipe_end, output);
  if (exit_notice >= 0) close(exit_notice);
  return state;
}

static void fill_samples(const view *v, pabd_samples *out) {
  const block *head = v->head;
  *out = (pabd_samples){.wall_ms = v->wall_ms,
                        .cpu_ms = v->cpu_ms,
                        .self_ms = v->self_ms,
                        .collide_ms = v->collide_ms,
                        .solve_ms = v->solve_ms,
                        .hash = v->hash,
                        .states = v->states,
                        .state_frames = v->state_frames,
                        .stage_count = head->stage_count,
                        .counter_count = head->counter_count};
  for (int32_t k = 0; k < head->stage_count; ++k) {
    memcpy(out->stages[k].name, head->stages[k].name, sizeof out->stages[k].name);
    out->stages[k].is_collide = head->stages[k].is_collide;
    out->stages[k].ms = v->stage_ms[k];
  }
  for (int32_t k = 0; k < head->counter_count; ++k) {
    memcpy(out->counters[k].name, head->counters[k].name, sizeof out->counters[k].name);
    memcpy(out->counters[k].unit, head->counters[k].unit, sizeof out->counters[k].unit);
    out->counters[k].last = head->counters[k].last;
    out->counters[k].sum = head->counters[k].sum;
    out->counters[k].max = head->counters[k].max;
    out->counters[k].count = head->counters[k].count;
  }
}

void pabd_child_run(const pabd_job *job, const volatile sig_atomic_t *stop, pabd_tick_fn tick, void *user,
                    pabd_run_result *out) {
  memset(out, 0, sizeof *out);
  pabd_metrics_init(&out->metrics);
  out->state = PABD_RUN_FAILED;
  layout sizes = measure(job);
  void *base = mmap(NULL, sizes.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  int ends[2];
  if (base == MAP_FAILED) {
    snprintf(out->reason, sizeof out->reason, "out of memory for the run's results");
    return;
  }
  out->shared = base;
  out->shared_size = sizes.size;
  view v = attach(&sizes, base);
  atomic_store(&v.head->valid_slot, -1);
  size_t samples = (size_t)job->c->frame_count + 1;
  for (size_t k = 0; k < samples; ++k)
    v.self_ms[k] = v.collide_ms[k] = v.solve_ms[k] = v.wall_ms[k] = v.cpu_ms[k] = NAN;
  for (size_t k = 0; k < samples * PABD_STAGE_MAX; ++k) v.stage_ms[0][k] = NAN; /* the rows are neighbors */
  if (pipe2(ends, O_CLOEXEC) != 0) {
    snprintf(out->reason, sizeof out->reason, "cannot make a pipe: %s", strerror(errno));
    return;
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  double begin = seconds_of(CLOCK_MONOTONIC);
  fflush(NULL);
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    close(ends[0]);
    child_main(job, v, ends[1], parent);
  }
  close(ends[1]);
  if (child < 0) {
    snprintf(out->reason, sizeof out->reason, "cannot start a process: %s", strerror(errno));
    close(ends[0]);
    return;
  }
  setpgid(child, child); /* both sides do it, so that neither has to wait for the other */
  int is_late, is_stopped;
  struct rusage usage;
  memset(&usage, 0, sizeof usage);
  int state = wait_for(job, child, ends[0], &v, stop, tick, user, out->output, &is_late, &is_stopped, &usage);
  close(ends[0]);
  make_printable(out->output);
  out->wall_s = seconds_of(CLOCK_MONOTONIC) - begin;
  out->peak_rss_mib = (double)usage.ru_maxrss / 1024;

  const block *head = v.head;
  int32_t phase = atomic_load(&head->phase);
  out->frames_done = atomic_load(&head->frame);
  out->state_hash = head->state_hash;
  out->has_hash = head->has_hash;
  out->create_ms = head->create_ms;
  out->trajectory_samples = head->trajectory_samples;
  out->setting_count = head->setting_count;
  out->settings = v.head->settings;
  out->warning_count = head->warning_count;
  memcpy(out->warnings, head->warnings, sizeof out->warnings);
  fill_samples(&v, &out->samples);

  int slot = atomic_load(&head->valid_slot);
  if (slot >= 0) {
    out->metrics_frame = head->slot_frame[slot];
    if (read_slot(v.slot[slot], &out->metrics) != PABD_OK) {
      snprintf(out->reason, sizeof out->reason, "out of memory for the run's metrics");
      return;
    }
  }
  char where[80], said[220] = "";
  if (phase == PHASE_STEP)
    snprintf(where, sizeof where, "in step() of frame %d", out->frames_done + 1);
  else
    snprintf(where, sizeof where, "%s", phase_texts[phase]);
  last_line(out->output, said, sizeof said);
  const char *before = said[0] ? "; its last words: " : "";
  if (is_stopped) {
    out->state = PABD_RUN_INTERRUPTED;
    snprintf(out->reason, sizeof out->reason, "interrupted");
  } else if (head->is_finished) {
    out->state = head->state;
    snprintf(out->reason, sizeof out->reason, "%s", head->reason);
    int died = is_late || WIFSIGNALED(state) || WEXITSTATUS(state) != 0;
    if (phase == PHASE_DESTROY && died && out->warning_count < PABD_WARNING_CAPACITY)
      snprintf(out->warnings[out->warning_count++], sizeof out->warnings[0], "the engine %s in destroy()%s%.100s",
               is_late ? "hung" : "crashed", before, said);
  } else if (is_late) {
    out->state = PABD_RUN_TIMEOUT;
    snprintf(out->reason, sizeof out->reason, "over the time limit of %g s %s%s%s", job->time_limit, where, before,
             said);
  } else if (WIFSIGNALED(state)) {
    out->state = PABD_RUN_CRASHED;
    snprintf(out->reason, sizeof out->reason, "%s %s%s%s", strsignal(WTERMSIG(state)), where, before, said);
  } else {
    out->state = PABD_RUN_CRASHED;
    snprintf(out->reason, sizeof out->reason, "ended with exit status %d %s%s%s", WEXITSTATUS(state), where, before,
             said);
  }
  make_line(out->reason);
  for (int32_t k = 0; k < out->warning_count; ++k) make_line(out->warnings[k]);
  if (head->is_truncated && out->warning_count < PABD_WARNING_CAPACITY)
    snprintf(out->warnings[out->warning_count++], sizeof out->warnings[0],
             "metrics did not fit into memory after frame %d", out->metrics_frame);
}

void pabd_run_result_free(pabd_run_result *result) {
  if (!result) return;
  pabd_metrics_free(&result->metrics);
  if (result->shared) munmap(result->shared, result->shared_size);
  memset(result, 0, sizeof *result);
}
