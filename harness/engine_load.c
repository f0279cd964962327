/* Engines: finding shared objects, asking them who they are, and opening them for a run. */
#include "engine_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "names.h"

/* Names of the capability bits, in the order of pabd_engine.h. */
static const char *const capability_names[] = {
    "sphere",          "capsule",      "box",         "plane",       "cylinder", "hull",          "compound",
    "spherical",       "hinge",        "slider",      "fixed",       "distance", "spring",        "universal",
    "limits",          "motors",       "restitution", "kinematic",   "loads",    "friction_cone", "pair_materials",
    "report_contacts", "set_contacts", "threads",     "determinism", "trace",    "worlds"};

#define CAPABILITY_COUNT ((int32_t)(sizeof capability_names / sizeof capability_names[0]))
_Static_assert(sizeof capability_names / sizeof capability_names[0] == 27 && PABD_CAN_WORLDS == 1u << 26,
               "one name a capability bit");

const char *pabd_capability_name(int32_t bit) {
  return bit >= 0 && bit < CAPABILITY_COUNT ? capability_names[bit] : NULL;
}

void pabd_capability_list(uint64_t mask, char *out, size_t size) {
  size_t used = 0;
  out[0] = 0;
  for (int32_t bit = 0; bit < CAPABILITY_COUNT && used < size; ++bit) {
    if (!(mask >> bit & 1)) continue;
    used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", capability_names[bit]);
  }
}

uint64_t pabd_scene_needs(const pabd_scene *scene) {
  static const uint64_t of_shape[PABD_SHAPE_KIND_COUNT] = {PABD_CAN_SPHERE, PABD_CAN_CAPSULE,  PABD_CAN_BOX,
                                                           PABD_CAN_PLANE,  PABD_CAN_CYLINDER, PABD_CAN_HULL};
  static const uint64_t of_joint[PABD_JOINT_KIND_COUNT] = {PABD_CAN_SPHERICAL, PABD_CAN_HINGE,    PABD_CAN_SLIDER,
                                                           PABD_CAN_FIXED,     PABD_CAN_DISTANCE, PABD_CAN_SPRING,
                                                           PABD_CAN_UNIVERSAL};
  uint64_t needs = 0;
  for (int32_t k = 0; k < scene->shape_count; ++k) {
    needs |= of_shape[scene->shapes[k].kind];
    if (k > 0 && scene->shapes[k].body == scene->shapes[k - 1].body) needs |= PABD_CAN_COMPOUND;
  }
  for (int32_t k = 0; k < scene->joint_count; ++k) {
    const pabd_joint *joint = &scene->joints[k];
    needs |= of_joint[joint->kind];
    if (joint->has_limits) needs |= PABD_CAN_LIMITS;
    if (joint->motor != PABD_MOTOR_NONE) needs |= PABD_CAN_MOTORS;
    if (joint->stiffness > 0 || joint->damping > 0) needs |= PABD_CAN_SPRING;
  }
  for (int32_t k = 0; k < scene->body_count; ++k) {
    if (scene->bodies[k].motion == PABD_KINEMATIC) needs |= PABD_CAN_KINEMATIC;
    if (scene->bodies[k].world > 0) needs |= PABD_CAN_WORLDS;
  }
  if (scene->load_count > 0) needs |= PABD_CAN_LOADS;
  /* Materials count only where something can touch. */
  for (int32_t k = 0; scene->shape_count > 1 && k < scene->material_count * scene->material_count; ++k) {
    if (scene->restitution[k] > 0) needs |= PABD_CAN_RESTITUTION;
    if (scene->friction[k] != scene->friction[0]) needs |= PABD_CAN_PAIR_MATERIALS;
  }
  return needs;
}

int32_t pabd_engine_find_setting(const pabd_engine_desc *engine, const char *key) {
  for (int32_t k = 0; k < engine->setting_count; ++k) {
    if (strcmp(engine->settings[k].key, key) == 0) return k;
  }
  return -1;
}

/* One choice of "a | b | c". */
static int is_choice(const char *range, const char *value) {
  size_t length = strlen(value);
  while (*range) {
    range += strspn(range, " |");
    size_t part = strcspn(range, "|");
    size_t trimmed = part;
    while (trimmed && range[trimmed - 1] == ' ') --trimmed;
    if (trimmed == length && strncmp(range, value, length) == 0) return 1;
    range += part;
  }
  return 0;
}

pabd_status pabd_engine_check_setting(const pabd_engine_desc *engine, const char *key, const char *value,
                                      pabd_error *error) {
  int32_t index = pabd_engine_find_setting(engine, key);
  if (index < 0) {
    const char *names[PABD_SETTING_CAPACITY];
    for (int32_t k = 0; k < engine->setting_count; ++k) names[k] = engine->settings[k].key;
    const char *near = pabd_nearest(key, names, engine->setting_count);
    if (near)
      return pabd_fail(error, PABD_ERR_INPUT, "engine %s has no setting '%s'; nearest: %s (pabd-bench describe %s)",
                       engine->name, key, near, engine->name);
    return pabd_fail(error, PABD_ERR_INPUT, "engine %s has no setting '%s' (pabd-bench describe %s lists all)",
                     engine->name, key, engine->name);
  }
  const pabd_setting_text *setting = &engine->settings[index];
  int is_int = strcmp(setting->type, "int") == 0, is_real = strcmp(setting->type, "real") == 0;
  if (is_int || is_real) {
    char *end;
    double number = strtod(value, &end), low, high;
    /* Whether "inf" is allowed is the engine's business; "nan" never is. */
    if (end == value || *end || isnan(number) || (is_int && (number != floor(number) || isinf(number))))
      return pabd_fail(error, PABD_ERR_INPUT, "engine %s: %s=%s is not %s (%s)", engine->name, key, value,
                       is_int ? "a whole number" : "a number", setting->range);
    if (sscanf(setting->range, "%lf .. %lf", &low, &high) == 2 && (number < low || number > high))
      return pabd_fail(error, PABD_ERR_INPUT, "engine %s: %s=%s is out of range; allowed: %s", engine->name, key, value,
                       setting->range);
  } else if (strcmp(setting->type, "choice") == 0 && !is_choice(setting->range, value)) {
    return pabd_fail(error, PABD_ERR_INPUT, "engine %s: %s=%s is no choice; allowed: %s", engine->name, key, value,
                     setting->range);
  } else if (strcmp(setting->type, "bool") == 0 && !is_choice("0 | 1 | true | false | on | off | yes | no", value)) {
    return pabd_fail(error, PABD_ERR_INPUT, "engine %s: %s=%s is not a switch; allowed: 0, 1", engine->name, key,
                     value);
  }
  return PABD_OK;
}

pabd_status pabd_engine_open(const char *file, const pabd_engine **table, pabd_error *error) {
  /* Without a slash the loader would search the system's folders. */
  char path[PABD_PATH_SIZE + 2];
  snprintf(path, sizeof path, "%s%s", strchr(file, '/') ? "" : "./", file);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *text = dlerror();
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "cannot load: %s", text ? text : "unknown cause");
  }
  pabd_engine_entry_fn entry;
  *(void **)&entry = dlsym(library, PABD_ENGINE_ENTRY_NAME); /* the form that POSIX blesses */
  if (!entry) return pabd_fail(error, PABD_ERR_UNAVAILABLE, "does not export %s", PABD_ENGINE_ENTRY_NAME);
  const pabd_engine *engine = entry();
  if (!engine) return pabd_fail(error, PABD_ERR_UNAVAILABLE, "%s returned NULL", PABD_ENGINE_ENTRY_NAME);
  if (engine->abi != PABD_ENGINE_ABI)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "engine table version %u, this program speaks %u: rebuild the engine",
                     engine->abi, PABD_ENGINE_ABI);
  if (engine->size != sizeof *engine)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "engine table of %u bytes, expected %zu: rebuild the engine",
                     engine->size, sizeof *engine);
  if (!engine->probe || !engine->settings || !engine->create || !engine->step || !engine->read || !engine->stats ||
      !engine->setting_value || !engine->destroy)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "engine table lacks a function that every engine must have");
  *table = engine;
  return PABD_OK;
}

static void copy_text(char *out, size_t size, const char *text) {
  snprintf(out, size, "%s", text ? text : "");
}

/* Runs in the probing child; `out` lies in shared memory. */
static void probe_here(const char *file, pabd_engine_desc *out) {
  pabd_error error = {""};
  const pabd_engine *engine;
  if (pabd_engine_open(file, &engine, &error) != PABD_OK) {
    copy_text(out->why, sizeof out->why, error.text);
    return;
  }
  pabd_engine_info info;
  memset(&info, 0, sizeof info);
  pabd_status status = engine->probe(&info, &error);
  if (info.name && info.name[0]) copy_text(out->name, sizeof out->name, info.name);
  copy_text(out->version, sizeof out->version, info.version);
  copy_text(out->precision, sizeof out->precision, info.precision);
  copy_text(out->device, sizeof out->device, info.device);
  copy_text(out->license, sizeof out->license, info.license);
  copy_text(out->build, sizeof out->build, info.build);
  out->capabilities = info.capabilities;
  int32_t count = 0;
  const pabd_setting_info *settings = engine->settings(&count);
  if (!settings || count < 0) count = 0;
  if (count > PABD_SETTING_CAPACITY) count = PABD_SETTING_CAPACITY;
  for (int32_t k = 0; k < count; ++k) {
    copy_text(out->settings[k].key, sizeof out->settings[k].key, settings[k].key);
    copy_text(out->settings[k].type, sizeof out->settings[k].type, settings[k].type);
    copy_text(out->settings[k].initial, sizeof out->settings[k].initial, settings[k].initial);
    copy_text(out->settings[k].range, sizeof out->settings[k].range, settings[k].range);
    copy_text(out->settings[k].unit, sizeof out->settings[k].unit, settings[k].unit);
    copy_text(out->settings[k].meaning, sizeof out->settings[k].meaning, settings[k].meaning);
    copy_text(out->settings[k].source, sizeof out->settings[k].source, settings[k].source);
  }
  out->setting_count = count;
  if (status == PABD_OK)
    out->is_available = 1;
  else
    copy_text(out->why, sizeof out->why, error.text[0] ? error.text : pabd_status_text(status));
}

static void set_stem(pabd_engine_desc *out, const char *file) {
  const char *slash = strrchr(file, '/');
  const char *name = slash ? slash + 1 : file;
  size_t length = strlen(name);
  if (length > 3 && strcmp(name + length - 3, ".so") == 0) length -= 3;
  snprintf(out->stem, sizeof out->stem, "%.*s", (int)length, name);
  snprintf(out->name, sizeof out->name, "%s", out->stem);
}

void pabd_engine_probe(const char *file, double time_limit, pabd_engine_desc *out) {
  memset(out, 0, sizeof *out);
  copy_text(out->file, sizeof out->file, file);
  set_stem(out, file);
  pabd_error error = {""};
  if (!pabd_is_file(file)) {
    copy_text(out->why, sizeof out->why, "no such file");
    return;
  }
  if (pabd_hash_file(file, &out->library_hash, &error) != PABD_OK) {
    copy_text(out->why, sizeof out->why, error.text);
    return;
  }
  pabd_engine_desc *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    copy_text(out->why, sizeof out->why, "out of memory while probing");
    return;
  }
  *shared = *out;
  fflush(NULL);
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    struct rlimit no_core = {0, 0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    setrlimit(RLIMIT_CORE, &no_core);
    int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0) dup2(nowhere, 0), dup2(nowhere, 1), dup2(nowhere, 2);
    probe_here(file, shared);
    _exit(0);
  }
  int state = 0, waited = child < 0;
  struct timespec pause = {0, 2000000};
  for (double spent = 0; !waited && spent < time_limit; spent += 0.002) {
    if (waitpid(child, &state, WNOHANG) == child)
      waited = 1;
    else
      nanosleep(&pause, NULL);
  }
  int is_hung = !waited;
  if (child > 0) kill(-child, SIGKILL);
  if (is_hung) kill(child, SIGKILL), waitpid(child, &state, 0);
  *out = *shared;
  munmap(shared, sizeof *shared);
  if (child < 0)
    snprintf(out->why, sizeof out->why, "cannot start a process: %s", strerror(errno));
  else if (is_hung)
    snprintf(out->why, sizeof out->why, "hung while it was probed (%.0f s)", time_limit);
  else if (WIFSIGNALED(state))
    snprintf(out->why, sizeof out->why, "crashed while it was probed (%s)", strsignal(WTERMSIG(state)));
  else if (!out->is_available && !out->why[0])
    snprintf(out->why, sizeof out->why, "ended while it was probed (exit status %d)", WEXITSTATUS(state));
  if (out->why[0]) out->is_available = 0;
}

void pabd_engine_missing(const char *folder, const char *stem, pabd_engine_desc *out) {
  char path[PABD_PATH_SIZE];
  memset(out, 0, sizeof *out);
  pabd_path_format(path, "%s/%s.so", folder, stem);
  copy_text(out->file, sizeof out->file, path);
  copy_text(out->stem, sizeof out->stem, stem);
  copy_text(out->name, sizeof out->name, stem);
  pabd_path_format(path, "%s/%s.unavailable", folder, stem);
  char *text;
  if (pabd_file_read(path, &text, NULL, NULL) == PABD_OK) {
    snprintf(out->why, sizeof out->why, "%.*s", (int)strcspn(text, "\r\n"), text);
    free(text);
  }
  if (!out->why[0]) copy_text(out->why, sizeof out->why, "not built");
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

pabd_status pabd_engine_stems(const char *folder, char ***stems, int32_t *count, pabd_error *error) {
  char **built, **absent;
  int32_t built_count, absent_count;
  PABD_TRY(pabd_list_folder(folder, ".so", &built, &built_count, error));
  pabd_status status = pabd_list_folder(folder, ".unavailable", &absent, &absent_count, error);
  char **all = status == PABD_OK ? calloc((size_t)built_count + (size_t)absent_count + 1, sizeof *all) : NULL;
  if (!all) {
    pabd_free_names(built, built_count);
    if (status == PABD_OK) pabd_free_names(absent, absent_count);
    return status != PABD_OK ? status : pabd_fail(error, PABD_ERR_MEMORY, "out of memory");
  }
  int32_t n = 0;
  for (int32_t k = 0; k < built_count; ++k) all[n++] = built[k];
  for (int32_t k = 0; k < absent_count; ++k) {
    int is_known = 0;
    for (int32_t j = 0; j < built_count; ++j) is_known |= strcmp(built[j], absent[k]) == 0;
    if (is_known)
      free(absent[k]);
    else
      all[n++] = absent[k];
  }
  free(built);
  free(absent);
  qsort(all, (size_t)n, sizeof *all, compare_names);
  *stems = all;
  *count = n;
  return PABD_OK;
}
