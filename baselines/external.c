/* External engines: any program that speaks the pipe protocol (baselines/external/README.md) becomes an engine.
 *
 * Built once per program with PABD_EXTERNAL_NAME and PABD_EXTERNAL_COMMAND (rapier.so, physx.so, ...: their settings
 * are the program's own), and once without (external.so: the program is the setting "program", its settings travel in
 * the setting "settings"). A world is a child process with one socket as its standard input and output; its standard
 * error is ours. The step's time is the program's own clock (`self_ms`); what the pipe adds is the counter
 * "protocol_ms". Invariant: every child that was started is waited for, and dies with us if we are killed. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/baseline.h"

#define LINE_SIZE 4096
#define MOST_SETTINGS 64
#define TEXT_SIZE 240

#ifdef PABD_EXTERNAL_NAME
static const char engine_name[] = PABD_EXTERNAL_NAME;
#else
static const char engine_name[] = "external";
#define PABD_EXTERNAL_COMMAND ""
#endif

/* ---- Talking to a program ---- */

typedef struct program {
  pid_t pid; /* 0: none */
  int socket;
  size_t begin, end;
  char buffer[65536]; /* read but not yet used: begin .. end */
} program;

static pabd_status program_start(program *p, const char *command, pabd_error *error) {
  int pair[2];
  memset(p, 0, sizeof *p);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return pabd_fail(error, PABD_ERR_IO, "%s: no socket for its program: %s", engine_name, strerror(errno));
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) {
    close(pair[0]);
    close(pair[1]);
    return pabd_fail(error, PABD_ERR_IO, "%s: cannot start a process: %s", engine_name, strerror(errno));
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(pair[1], STDIN_FILENO);
    dup2(pair[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  close(pair[1]);
  p->pid = pid;
  p->socket = pair[0];
  return PABD_OK;
}

static void program_stop(program *p) {
  if (p->pid <= 0) return;
  close(p->socket); /* end of its input: it leaves by itself */
  for (int k = 0; k < 100; ++k) {
    if (waitpid(p->pid, NULL, WNOHANG) != 0) {
      p->pid = 0;
      return;
    }
    usleep(10000);
  }
  kill(p->pid, SIGKILL);
  waitpid(p->pid, NULL, 0);
  p->pid = 0;
}

static pabd_status program_ended(program *p, pabd_error *error) {
  int code = 0;
  const pid_t done = p->pid > 0 ? waitpid(p->pid, &code, WNOHANG) : 0;
  if (done > 0) {
    p->pid = 0;
    close(p->socket);
    if (WIFSIGNALED(code))
      return pabd_fail(error, PABD_ERR_INTERNAL, "%s: its program was ended by signal %d", engine_name, WTERMSIG(code));
    return pabd_fail(error, PABD_ERR_INTERNAL, "%s: its program ended with exit code %d", engine_name,
                     WEXITSTATUS(code));
  }
  return pabd_fail(error, PABD_ERR_INTERNAL, "%s: its program closed the connection", engine_name);
}

static pabd_status program_send(program *p, const char *bytes, size_t count, pabd_error *error) {
  while (count > 0) {
    const ssize_t sent = send(p->socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return program_ended(p, error);
    bytes += sent;
    count -= (size_t)sent;
  }
  return PABD_OK;
}

/* Reads exactly count bytes. */
static pabd_status program_read(program *p, void *to, size_t count, pabd_error *error) {
  char *out = to;
  while (count > 0) {
    if (p->begin == p->end) {
      const ssize_t got = recv(p->socket, p->buffer, sizeof p->buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        usleep(20000); /* let it become a zombie, so that its exit code can be told */
        return program_ended(p, error);
      }
      p->begin = 0;
      p->end = (size_t)got;
    }
    const size_t part = p->end - p->begin < count ? p->end - p->begin : count;
    memcpy(out, p->buffer + p->begin, part);
    p->begin += part;
    out += part;
    count -= part;
  }
  return PABD_OK;
}

static pabd_status program_line(program *p, char *line, size_t size, pabd_error *error) {
  for (size_t k = 0;; ++k) {
    char c;
    PABD_TRY(program_read(p, &c, 1, error));
    if (c == '\n' || k + 1 == size) {
      line[k] = '\0';
      return PABD_OK;
    }
    line[k] = c;
  }
}

/* ---- What a program says of itself ---- */

static struct {
  int done;
  pabd_status status;
  pabd_error error;
  char version[TEXT_SIZE], precision[TEXT_SIZE], device[TEXT_SIZE], license[TEXT_SIZE], build[TEXT_SIZE];
  uint64_t capabilities;
  int32_t setting_count;
  pabd_setting_info settings[MOST_SETTINGS];
} self = {.version = "?", .precision = "?", .device = "?", .license = "?", .build = "?"};

static const char *const capability_names[] = {
    "sphere",          "capsule",      "box",         "plane",       "cylinder", "hull",          "compound",
    "spherical",       "hinge",        "slider",      "fixed",       "distance", "spring",        "universal",
    "limits",          "motors",       "restitution", "kinematic",   "loads",    "friction_cone", "pair_materials",
    "report_contacts", "set_contacts", "threads",     "determinism", "trace",    "worlds"};

static void add_capabilities(uint64_t *capabilities, char *words) {
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
    for (size_t k = 0; k < sizeof capability_names / sizeof capability_names[0]; ++k)
      if (strcmp(word, capability_names[k]) == 0) *capabilities |= UINT64_C(1) << k;
}

/* key, type, initial, range, unit, meaning, source, separated by tabs; kept for as long as the library is loaded. */
static void add_setting(const char *text) {
  if (self.setting_count == MOST_SETTINGS) return;
  char *copy = strdup(text), *field[7];
  if (copy == NULL) return;
  for (int k = 0; k < 7; ++k) {
    field[k] = copy;
    copy += strcspn(copy, "\t");
    if (*copy == '\t') *copy++ = '\0';
  }
  self.settings[self.setting_count++] =
      (pabd_setting_info){field[0], field[1], field[2], field[3], field[4], field[5], field[6]};
}

static pabd_status ask_description(program *p, pabd_error *error) {
  char line[LINE_SIZE];
  PABD_TRY(program_send(p, "describe\n", 9, error));
  for (;;) {
    PABD_TRY(program_line(p, line, sizeof line, error));
    char *value = line + strcspn(line, " ");
    if (*value == ' ') *value++ = '\0';
    if (strcmp(line, "end") == 0) return PABD_OK;
    if (strcmp(line, "unavailable") == 0) return pabd_fail(error, PABD_ERR_UNAVAILABLE, "%s: %s", engine_name, value);
    if (strcmp(line, "version") == 0) snprintf(self.version, TEXT_SIZE, "%s", value);
    if (strcmp(line, "precision") == 0) snprintf(self.precision, TEXT_SIZE, "%s", value);
    if (strcmp(line, "device") == 0) snprintf(self.device, TEXT_SIZE, "%s", value);
    if (strcmp(line, "license") == 0) snprintf(self.license, TEXT_SIZE, "%s", value);
    if (strcmp(line, "build") == 0) snprintf(self.build, TEXT_SIZE, "%s", value);
    if (strcmp(line, "can") == 0) add_capabilities(&self.capabilities, value);
    if (strcmp(line, "setting") == 0) add_setting(value);
  }
}

/* Once per library: the named program describes itself; the generic bridge has two settings of its own. */
static void describe_self(void) {
  if (self.done) return;
  self.done = 1;
  if (PABD_EXTERNAL_COMMAND[0] == '\0') {
    static const char about[] = "a program that speaks the pipe protocol (baselines/external/README.md)";
    snprintf(self.build, TEXT_SIZE, "%s", about);
    snprintf(self.version, TEXT_SIZE, "protocol 1");
    snprintf(self.precision, TEXT_SIZE, "its own");
    snprintf(self.device, TEXT_SIZE, "its own");
    snprintf(self.license, TEXT_SIZE, "its own");
    self.capabilities = PABD_CAN_DETERMINISM; /* the program's own count when a world is made */
    add_setting("program\ttext\t\t\t1\tcommand line of the program\tthe user");
    add_setting("settings\ttext\t\t\t1\tits settings as key=value;key=value\tthe user");
    return;
  }
  program *p = malloc(sizeof *p);
  if (p == NULL) {
    self.status = PABD_ERR_MEMORY;
    return;
  }
  self.status = program_start(p, PABD_EXTERNAL_COMMAND, &self.error);
  if (self.status == PABD_OK) {
    self.status = ask_description(p, &self.error);
    program_stop(p);
    if (self.status == PABD_ERR_INTERNAL) self.status = PABD_ERR_UNAVAILABLE; /* it did not even start */
  }
  free(p);
}

/* ---- The scene as JSON ---- */

typedef struct text {
  char *bytes;
  size_t size, capacity;
  int failed;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...) {
  for (int attempt = 0; attempt < 2 && !t->failed; ++attempt) {
    va_list arguments;
    va_start(arguments, format);
    const size_t room = t->capacity - t->size;
    const int need = vsnprintf(room ? t->bytes + t->size : NULL, room, format, arguments);
    va_end(arguments);
    if (need >= 0 && (size_t)need < room) {
      t->size += (size_t)need;
      return;
    }
    const size_t capacity = 2 * t->capacity + (size_t)(need > 0 ? need : 0) + 4096;
    char *grown = realloc(t->bytes, capacity);
    if (grown == NULL) {
      t->failed = 1;
      return;
    }
    t->bytes = grown;
    t->capacity = capacity;
  }
}

/* JSON has no infinity: a number beyond every range stands for it. */
static void put_number(text *t, double v) {
  if (isinf(v))
    put(t, v > 0 ? "1e999" : "-1e999");
  else
    put(t, "%.17g", v);
}

static void put_numbers(text *t, const char *key, const double *v, int count) {
  put(t, "\"%s\":[", key);
  for (int k = 0; k < count; ++k) {
    if (k) put(t, ",");
    put_number(t, v[k]);
  }
  put(t, "]");
}

static void put_pose(text *t, const char *key, pabd_dpose x) {
  const double row[7] = {x.p.x, x.p.y, x.p.z, x.q.w, x.q.x, x.q.y, x.q.z};
  put_numbers(t, key, row, 7);
}

static void put_text(text *t, const char *s) {
  put(t, "\"");
  for (; *s; ++s) {
    if (*s == '"' || *s == '\\')
      put(t, "\\%c", *s);
    else if ((unsigned char)*s >= 0x20)
      put(t, "%c", *s);
  }
  put(t, "\"");
}

static void put_scene(text *t, const pabd_scene *scene, int32_t (*pairs)[2], int32_t pair_count) {
  static const char *const motions[] = {"dynamic", "static", "kinematic"};
  static const char *const shapes[] = {"sphere", "capsule", "box", "plane", "cylinder", "hull"};
  static const char *const joints[] = {"spherical", "hinge", "slider", "fixed", "distance", "spring", "universal"};
  static const char *const motors[] = {"none", "rate", "position"};
  const double gravity[3] = {scene->gravity.x, scene->gravity.y, scene->gravity.z};
  put(t, "\"frame_time\":%.17g,", scene->frame_time);
  put_numbers(t, "gravity", gravity, 3);
  put(t, ",\n\"bodies\":[");
  for (int32_t b = 0; b < scene->body_count; ++b) {
    const pabd_body *body = &scene->bodies[b];
    const double inertia[3] = {body->inertia.x, body->inertia.y, body->inertia.z};
    const double velocity[6] = {body->linear.x,  body->linear.y,  body->linear.z,
                                body->angular.x, body->angular.y, body->angular.z};
    put(t, "%s{\"motion\":\"%s\",\"mass\":%.17g,\"group\":%d,\"world\":%d,", b ? ",\n" : "\n", motions[body->motion],
        body->mass, body->group, body->world);
    put_numbers(t, "inertia", inertia, 3);
    put(t, ",");
    put_pose(t, "pose", body->pose);
    put(t, ",");
    put_numbers(t, "velocity", velocity, 6);
    put(t, "}");
  }
  put(t, "],\n\"shapes\":[");
  for (int32_t s = 0; s < scene->shape_count; ++s) {
    const pabd_shape *shape = &scene->shapes[s];
    const double half[3] = {shape->half.x, shape->half.y, shape->half.z};
    put(t, "%s{\"kind\":\"%s\",\"body\":%d,\"material\":%d,\"radius\":%.17g,\"half_length\":%.17g,", s ? ",\n" : "\n",
        shapes[shape->kind], shape->body, shape->material, shape->radius, shape->half_length);
    put_numbers(t, "half", half, 3);
    put(t, ",");
    put_pose(t, "local", shape->local);
    put(t, ",\"vertices\":[");
    for (int32_t k = 0; k < (shape->kind == PABD_HULL ? shape->vertex_count : 0); ++k) {
      const pabd_dvec3 v = scene->vertices[shape->first_vertex + k];
      put(t, "%s[%.17g,%.17g,%.17g]", k ? "," : "", v.x, v.y, v.z);
    }
    put(t, "]}");
  }
  put(t, "],\n\"joints\":[");
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    const double limits[2] = {joint->lower, joint->upper};
    put(t, "%s{\"kind\":\"%s\",\"a\":%d,\"b\":%d,", j ? ",\n" : "\n", joints[joint->kind], joint->body_a,
        joint->body_b);
    put_pose(t, "frame_a", joint->frame_a);
    put(t, ",");
    put_pose(t, "frame_b", joint->frame_b);
    put(t, ",\"rest\":%.17g,\"stiffness\":%.17g,\"damping\":%.17g,", joint->rest, joint->stiffness, joint->damping);
    put_numbers(t, "limits", limits, joint->has_limits ? 2 : 0);
    put(t, ",\"motor\":\"%s\",\"target\":%.17g,\"max\":", motors[joint->motor], joint->motor_target);
    put_number(t, joint->motor_max);
    put(t, ",\"amplitude\":%.17g,\"frequency\":%.17g,\"phase\":%.17g}", joint->motor_amplitude, joint->motor_frequency,
        joint->motor_phase);
  }
  put(t, "],\n\"loads\":[");
  for (int32_t l = 0; l < scene->load_count; ++l) {
    const pabd_load *load = &scene->loads[l];
    const double force[6] = {load->force.x,  load->force.y,  load->force.z,
                             load->torque.x, load->torque.y, load->torque.z};
    put(t, "%s{\"body\":%d,\"start\":%.17g,\"end\":", l ? "," : "", load->body, load->start);
    put_number(t, load->end);
    put(t, ",");
    put_numbers(t, "force", force, 6);
    put(t, "}");
  }
  put(t, "],\n\"ignored\":[");
  for (int32_t k = 0; k < pair_count; ++k) put(t, "%s[%d,%d]", k ? "," : "", pairs[k][0], pairs[k][1]);
  put(t, "],\n\"materials\":%d,", scene->material_count);
  put_numbers(t, "friction", scene->friction, scene->material_count * scene->material_count);
  put(t, ",");
  put_numbers(t, "restitution", scene->restitution, scene->material_count * scene->material_count);
}

/* ---- Worlds ---- */

typedef struct external_world {
  program program;
  int32_t body_count;
  double *state; /* [body_count][13]: p, q, linear, angular */
  double self_ms, protocol_ms;
  pabd_engine_stats stats; /* of the last frame; names point into `names` */
  char names[PABD_COUNTER_MAX][32];
  char value[MOST_SETTINGS][TEXT_SIZE]; /* in force */
} external_world;

/* "unsupported REASON", "input REASON", "diverged REASON", "error REASON"; anything else is a broken program. */
static pabd_status answer_status(const char *line, pabd_error *error) {
  static const struct {
    const char *word;
    pabd_status status;
  } known[] = {{"unsupported ", PABD_ERR_UNSUPPORTED},
               {"input ", PABD_ERR_INPUT},
               {"diverged ", PABD_DIVERGED},
               {"unavailable ", PABD_ERR_UNAVAILABLE},
               {"error ", PABD_ERR_INTERNAL}};
  for (size_t k = 0; k < sizeof known / sizeof known[0]; ++k) {
    const size_t length = strlen(known[k].word);
    if (strncmp(line, known[k].word, length) == 0)
      return pabd_fail(error, known[k].status, "%s: %s", engine_name, line + length);
  }
  return pabd_fail(error, PABD_ERR_INTERNAL, "%s: its program answers \"%.120s\", not \"ok\"", engine_name, line);
}

/* "ok SELF_MS NAME=VALUE ...", then the state. Names that end in _ms are stages, "collide_ms" is the collision's. */
static pabd_status take_state(external_world *w, int32_t frames, pabd_error *error) {
  char line[LINE_SIZE];
  const double start = pabd_now_ms();
  const int length = snprintf(line, sizeof line, "step %d\n", frames);
  PABD_TRY(program_send(&w->program, line, (size_t)length, error));
  PABD_TRY(program_line(&w->program, line, sizeof line, error));
  if (strncmp(line, "ok", 2) != 0) return answer_status(line, error);
  PABD_TRY(program_read(&w->program, w->state, (size_t)w->body_count * 13 * sizeof *w->state, error));
  char *cursor = line + 2;
  w->self_ms = strtod(cursor, &cursor);
  w->protocol_ms = pabd_now_ms() - start - w->self_ms;
  memset(&w->stats, 0, sizeof w->stats);
  int32_t used = 0;
  for (char *word = strtok(cursor, " "); word && used + 1 < PABD_COUNTER_MAX; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    if (equals == NULL) continue;
    *equals = '\0';
    const double value = strtod(equals + 1, NULL);
    const size_t size = strlen(word);
    char *name = w->names[used++];
    if (size > 3 && strcmp(word + size - 3, "_ms") == 0 && w->stats.stage_count < PABD_STAGE_MAX) {
      snprintf(name, sizeof w->names[0], "%.*s", (int)(size - 3 < 31 ? size - 3 : 31), word);
      pabd_stats_stage(&w->stats, name, strcmp(name, "collide") == 0, value);
    } else {
      snprintf(name, sizeof w->names[0], "%.31s", word);
      pabd_stats_counter(&w->stats, name, strcmp(name, "driver_work") == 0 ? "J" : "1", value);
    }
  }
  pabd_stats_counter(&w->stats, "protocol_ms", "ms", w->protocol_ms);
  w->stats.self_ms = w->self_ms;
  return PABD_OK;
}

static void destroy(void *world) {
  external_world *w = world;
  if (w == NULL) return;
  program_stop(&w->program);
  free(w->state);
  free(w);
}

static pabd_status send_scene(external_world *w, const pabd_scene *scene, const pabd_setting *settings, int32_t count,
                              pabd_error *error) {
  int32_t(*pairs)[2] = NULL, pair_count = 0;
  text t = {0};
  char line[LINE_SIZE];
  PABD_TRY(pabd_scene_filter_pairs(scene, &pairs, &pair_count));
  put(&t, "{\"settings\":{");
  for (int32_t k = 0; k < count; ++k) {
    if (k) put(&t, ",");
    put_text(&t, settings[k].key);
    put(&t, ":");
    put_text(&t, settings[k].value);
  }
  put(&t, "},\n");
  put_scene(&t, scene, pairs, pair_count);
  put(&t, "}\n");
  free(pairs);
  pabd_status status = t.failed ? PABD_ERR_MEMORY : PABD_OK;
  const int length = snprintf(line, sizeof line, "create %zu\n", t.size);
  if (status == PABD_OK) status = program_send(&w->program, line, (size_t)length, error);
  if (status == PABD_OK) status = program_send(&w->program, t.bytes, t.size, error);
  free(t.bytes);
  PABD_TRY(status);
  PABD_TRY(program_line(&w->program, line, sizeof line, error));
  return strncmp(line, "ok", 2) == 0 ? take_state(w, 0, error) : answer_status(line, error);
}

/* Splits "key=value;key=value" in place. */
static int32_t split_settings(char *from, pabd_setting *out, int32_t capacity) {
  int32_t count = 0;
  for (char *word = strtok(from, ";"); word && count < capacity; word = strtok(NULL, ";")) {
    char *equals = strchr(word, '=');
    if (equals == NULL) continue;
    *equals = '\0';
    out[count++] = (pabd_setting){word, equals + 1};
  }
  return count;
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                          pabd_error *error) {
  double number[MOST_SETTINGS];
  pabd_setting all[MOST_SETTINGS];
  char inner[1024] = "";
  const char *command = PABD_EXTERNAL_COMMAND;
  *world = NULL;
  describe_self();
  if (self.status != PABD_OK) return pabd_fail(error, self.status, "%s", self.error.text);
  PABD_TRY(pabd_settings_parse(engine_name, self.settings, self.setting_count, given, given_count, number, error));
  const int generic = command[0] == '\0';
  if (!generic) PABD_TRY(pabd_scene_supported(engine_name, scene, self.capabilities, error));
  external_world *w = calloc(1, sizeof *w);
  if (w == NULL) return PABD_ERR_MEMORY;
  w->body_count = scene->body_count;
  w->state = calloc((size_t)scene->body_count * 13 + 1, sizeof *w->state);
  int32_t count = 0;
  for (int32_t k = 0; k < self.setting_count; ++k) {
    if (strcmp(self.settings[k].type, "text") == 0)
      snprintf(w->value[k], TEXT_SIZE, "%s", pabd_setting_text(&self.settings[k], given, given_count));
    else
      pabd_setting_print(&self.settings[k], number[k], w->value[k], TEXT_SIZE);
    all[count++] = (pabd_setting){self.settings[k].key, w->value[k]};
  }
  pabd_status status = w->state ? PABD_OK : PABD_ERR_MEMORY;
  if (generic) {
    command = w->value[0];
    snprintf(inner, sizeof inner, "%s", pabd_setting_text(&self.settings[1], given, given_count));
    count = split_settings(inner, all, MOST_SETTINGS);
    if (command[0] == '\0')
      status = pabd_fail(error, PABD_ERR_INPUT, "external: the setting \"program\" (a command line) must be given");
  }
  if (status == PABD_OK) status = program_start(&w->program, command, error);
  if (status == PABD_OK) status = send_scene(w, scene, all, count, error);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *world = w;
  return PABD_OK;
}

static pabd_status step(void *world, pabd_error *error) {
  return take_state(world, 1, error);
}

static void read_state(void *world, double *pose, double *velocity) {
  const external_world *w = world;
  for (int32_t b = 0; b < w->body_count; ++b) {
    memcpy(pose + (size_t)b * 7, w->state + (size_t)b * 13, 7 * sizeof *pose);
    memcpy(velocity + (size_t)b * 6, w->state + (size_t)b * 13 + 7, 6 * sizeof *velocity);
  }
}

static void stats(void *world, pabd_engine_stats *out) {
  *out = ((external_world *)world)->stats;
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  if (size > 0) snprintf(buffer, (size_t)size, "%s", ((external_world *)world)->value[index]);
}

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  describe_self();
  *info = (pabd_engine_info){engine_name,  self.version, self.precision,   self.device,
                             self.license, self.build,   self.capabilities};
  return self.status == PABD_OK ? PABD_OK : pabd_fail(error, PABD_ERR_UNAVAILABLE, "%s", self.error.text);
}

static const pabd_setting_info *settings(int32_t *count) {
  describe_self();
  *count = self.setting_count;
  return self.settings;
}

static const pabd_engine table = {PABD_ENGINE_ABI, sizeof(pabd_engine), probe, settings, create, step,   read_state,
                                  stats,           setting_value,       NULL,  NULL,     NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
