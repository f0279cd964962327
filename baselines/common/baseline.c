/* What engine adapters share; the functions are described in baseline.h. */
#include "common/baseline.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ---- Settings ---- */

/* Index of `value` among the words of "a | b | c", or -1. */
static int32_t choice_index(const char *range, const char *value) {
  size_t length = strlen(value);
  int32_t index = 0;
  for (const char *word = range;; ++index) {
    while (*word == ' ') ++word;
    size_t size = strcspn(word, " |");
    if (size == length && size > 0 && strncmp(word, value, size) == 0) return index;
    word += strcspn(word, "|");
    if (*word++ != '|') return -1;
  }
}

static int parse_number(const char *text, double *value) {
  char *end;
  errno = 0;
  *value = strtod(text, &end);
  while (isspace((unsigned char)*end)) ++end;
  return end != text && *end == '\0' && !isnan(*value) && !(errno == ERANGE && isinf(*value));
}

static int in_range(const char *range, double value) {
  double low = -INFINITY, high = INFINITY;
  const char *dots = strstr(range, "..");
  if (dots == NULL) return 1;
  low = strtod(range, NULL);
  high = strtod(dots + 2, NULL);
  return value >= low && value <= high;
}

static pabd_status parse_one(const char *engine, const pabd_setting_info *info, const char *text, double *value,
                             pabd_error *error) {
  double number = 0.0;
  int good = 0;
  if (strcmp(info->type, "choice") == 0) {
    number = choice_index(info->range, text);
    good = number >= 0;
  } else if (strcmp(info->type, "bool") == 0) {
    static const char *const words[] = {"0", "1", "false", "true", "off", "on", "no", "yes"};
    for (int k = 0; k < 8; ++k)
      if (strcasecmp(text, words[k]) == 0) number = k % 2, good = 1;
  } else if (strcmp(info->type, "text") == 0) {
    good = 1;
  } else {
    good = parse_number(text, &number) && in_range(info->range, number);
    if (strcmp(info->type, "int") == 0) good = good && number == floor(number) && fabs(number) <= INT_MAX;
  }
  if (!good)
    return pabd_fail(error, PABD_ERR_INPUT, "engine %s: %s = \"%s\" is not allowed: %s, %s", engine, info->key, text,
                     strcmp(info->type, "int") == 0    ? "an integer"
                     : strcmp(info->type, "real") == 0 ? "a number"
                     : strcmp(info->type, "bool") == 0 ? "0 or 1"
                                                       : "one of",
                     info->range);
  *value = number;
  return PABD_OK;
}

pabd_status pabd_settings_parse(const char *engine, const pabd_setting_info *infos, int32_t count,
                                const pabd_setting *given, int32_t given_count, double *values, pabd_error *error) {
  for (int32_t i = 0; i < count; ++i) {
    pabd_status status = parse_one(engine, &infos[i], infos[i].initial, &values[i], error);
    assert(status == PABD_OK && "a setting's initial value is outside its own range");
    if (status != PABD_OK) return status;
  }
  for (int32_t g = 0; g < given_count; ++g) {
    int32_t i = 0;
    while (i < count && strcmp(infos[i].key, given[g].key) != 0) ++i;
    if (i == count) {
      char list[380] = "";
      for (int32_t k = 0; k < count; ++k) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", k == 0 ? "" : ", ", infos[k].key);
      }
      return pabd_fail(error, PABD_ERR_INPUT, "engine %s: no setting \"%s\"; it has: %s", engine, given[g].key, list);
    }
    PABD_TRY(parse_one(engine, &infos[i], given[g].value, &values[i], error));
  }
  return PABD_OK;
}

const char *pabd_setting_text(const pabd_setting_info *info, const pabd_setting *given, int32_t given_count) {
  const char *text = info->initial;
  for (int32_t g = 0; g < given_count; ++g)
    if (strcmp(given[g].key, info->key) == 0) text = given[g].value;
  return text;
}

void pabd_setting_print(const pabd_setting_info *info, double value, char *buffer, int32_t size) {
  if (size <= 0) return;
  if (strcmp(info->type, "choice") == 0) {
    const char *word = info->range;
    for (int32_t index = 0; index < (int32_t)value; ++index) word += strcspn(word, "|") + 1;
    while (*word == ' ') ++word;
    snprintf(buffer, (size_t)size, "%.*s", (int)strcspn(word, " |"), word);
  } else if (strcmp(info->type, "real") == 0) {
    snprintf(buffer, (size_t)size, "%.9g", value);
  } else {
    snprintf(buffer, (size_t)size, "%.0f", value);
  }
}

/* ---- Scene against engine ---- */

uint64_t pabd_scene_needs(const pabd_scene *scene) {
  static const uint64_t shape_bit[PABD_SHAPE_KIND_COUNT] = {PABD_CAN_SPHERE, PABD_CAN_CAPSULE,  PABD_CAN_BOX,
                                                            PABD_CAN_PLANE,  PABD_CAN_CYLINDER, PABD_CAN_HULL};
  static const uint64_t joint_bit[PABD_JOINT_KIND_COUNT] = {PABD_CAN_SPHERICAL, PABD_CAN_HINGE,    PABD_CAN_SLIDER,
                                                            PABD_CAN_FIXED,     PABD_CAN_DISTANCE, PABD_CAN_SPRING,
                                                            PABD_CAN_UNIVERSAL};
  uint64_t needs = 0;
  for (int32_t s = 0; s < scene->shape_count; ++s) {
    needs |= shape_bit[scene->shapes[s].kind];
    if (s > 0 && scene->shapes[s].body == scene->shapes[s - 1].body &&
        scene->bodies[scene->shapes[s].body].motion != PABD_STATIC)
      needs |= PABD_CAN_COMPOUND;
  }
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    needs |= joint_bit[joint->kind];
    if (joint->has_limits && joint->kind != PABD_DISTANCE) needs |= PABD_CAN_LIMITS;
    if (joint->motor != PABD_MOTOR_NONE) needs |= PABD_CAN_MOTORS;
    if (joint->kind != PABD_SPRING && (joint->stiffness > 0 || joint->damping > 0)) needs |= PABD_CAN_SPRING;
  }
  for (int32_t b = 0; b < scene->body_count; ++b) {
    if (scene->bodies[b].motion == PABD_KINEMATIC) needs |= PABD_CAN_KINEMATIC;
    if (scene->bodies[b].world != scene->bodies[0].world) needs |= PABD_CAN_WORLDS;
  }
  if (scene->load_count > 0) needs |= PABD_CAN_LOADS;
  double friction, restitution;
  if (!pabd_scene_uniform_materials(scene, &friction, &restitution)) needs |= PABD_CAN_PAIR_MATERIALS;
  for (int32_t m = 0; m < scene->material_count * scene->material_count; ++m)
    if (scene->restitution[m] != 0) needs |= PABD_CAN_RESTITUTION;
  return needs;
}

pabd_status pabd_scene_supported(const char *engine, const pabd_scene *scene, uint64_t capabilities,
                                 pabd_error *error) {
  static const char *const names[] = {
      "spheres",         "capsules",         "boxes",
      "planes",          "cylinders",        "convex hulls",
      "compounds",       "spherical joints", "hinges",
      "sliders",         "fixed joints",     "distance joints",
      "springs",         "universal joints", "joint limits",
      "motors",          "restitution",      "kinematic bodies",
      "applied loads",   "a friction cone",  "a table of friction or restitution values",
      "contact reports", "given contacts",   "threads",
      "determinism",     "traces",           "several worlds"};
  uint64_t missing = pabd_scene_needs(scene) & ~capabilities;
  if (missing == 0) return PABD_OK;
  char list[400] = "";
  for (size_t bit = 0; bit < sizeof names / sizeof names[0]; ++bit) {
    if (!(missing >> bit & 1)) continue;
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", names[bit]);
  }
  return pabd_fail(error, PABD_ERR_UNSUPPORTED, "%s cannot express: %s", engine, list);
}

int pabd_scene_uniform_materials(const pabd_scene *scene, double *friction, double *restitution) {
  *friction = scene->friction[0];
  *restitution = scene->restitution[0];
  for (int32_t m = 1; m < scene->material_count * scene->material_count; ++m)
    if (scene->friction[m] != *friction || scene->restitution[m] != *restitution) return 0;
  return 1;
}

/* A copy of count elements; NULL for none. Sets *failed when memory is out. */
static void *copy_array(const void *source, int32_t count, size_t size, int *failed) {
  if (count <= 0) return NULL;
  void *copy = malloc((size_t)count * size);
  if (copy == NULL)
    *failed = 1;
  else
    memcpy(copy, source, (size_t)count * size);
  return copy;
}

pabd_status pabd_scene_copy(const pabd_scene *scene, pabd_scene *copy) {
  int failed = 0;
  *copy = *scene;
  copy->body_capacity = scene->body_count;
  copy->shape_capacity = scene->shape_count;
  copy->joint_capacity = scene->joint_count;
  copy->load_capacity = scene->load_count;
  copy->vertex_capacity = scene->vertex_count;
  copy->ignored_capacity = scene->ignored_count;
  copy->bodies = copy_array(scene->bodies, scene->body_count, sizeof *scene->bodies, &failed);
  copy->shapes = copy_array(scene->shapes, scene->shape_count, sizeof *scene->shapes, &failed);
  copy->joints = copy_array(scene->joints, scene->joint_count, sizeof *scene->joints, &failed);
  copy->loads = copy_array(scene->loads, scene->load_count, sizeof *scene->loads, &failed);
  copy->vertices = copy_array(scene->vertices, scene->vertex_count, sizeof *scene->vertices, &failed);
  copy->ignored = copy_array(scene->ignored, scene->ignored_count, sizeof *scene->ignored, &failed);
  int32_t entries = scene->material_count * scene->material_count;
  copy->friction = copy_array(scene->friction, entries, sizeof *scene->friction, &failed);
  copy->restitution = copy_array(scene->restitution, entries, sizeof *scene->restitution, &failed);
  if (!failed) return PABD_OK;
  pabd_scene_free(copy);
  memset(copy, 0, sizeof *copy);
  return PABD_ERR_MEMORY;
}

int32_t *pabd_scene_shape_ranges(const pabd_scene *scene) {
  int32_t *first = calloc((size_t)scene->body_count + 2, sizeof *first);
  if (first == NULL) return NULL;
  for (int32_t s = 0; s < scene->shape_count; ++s) ++first[scene->shapes[s].body + 1];
  for (int32_t b = 0; b < scene->body_count; ++b) first[b + 1] += first[b];
  return first;
}

pabd_status pabd_filter_init(pabd_filter *filter, const pabd_scene *scene) {
  int32_t(*pairs)[2] = NULL;
  int32_t count = 0;
  size_t bodies = (size_t)scene->body_count;
  memset(filter, 0, sizeof *filter);
  PABD_TRY(pabd_scene_filter_pairs(scene, &pairs, &count));
  filter->body_count = scene->body_count;
  filter->first = calloc(bodies + 2, sizeof *filter->first);
  filter->partner = malloc(((size_t)count + 1) * sizeof *filter->partner);
  filter->group = malloc((bodies + 1) * sizeof *filter->group);
  filter->world = malloc((bodies + 1) * sizeof *filter->world);
  filter->still = malloc(bodies + 1);
  if (!filter->first || !filter->partner || !filter->group || !filter->world || !filter->still) {
    free(pairs);
    pabd_filter_free(filter);
    return PABD_ERR_MEMORY;
  }
  for (int32_t k = 0; k < count; ++k) {
    ++filter->first[pairs[k][0] + 1];
    filter->partner[k] = pairs[k][1];
  }
  for (int32_t b = 0; b < scene->body_count; ++b) {
    filter->first[b + 1] += filter->first[b];
    filter->group[b] = scene->bodies[b].group;
    filter->world[b] = scene->bodies[b].world;
    filter->still[b] = scene->bodies[b].motion != PABD_DYNAMIC;
  }
  free(pairs);
  return PABD_OK;
}

void pabd_filter_free(pabd_filter *filter) {
  free(filter->first);
  free(filter->partner);
  free(filter->group);
  free(filter->world);
  free(filter->still);
  memset(filter, 0, sizeof *filter);
}

int pabd_filter_ignores(const pabd_filter *filter, int32_t body_a, int32_t body_b) {
  if (body_a == body_b || filter->world[body_a] != filter->world[body_b]) return 1;
  if (filter->still[body_a] && filter->still[body_b]) return 1;
  if (filter->group[body_a] > 0 && filter->group[body_a] == filter->group[body_b]) return 1;
  int32_t low = body_a < body_b ? body_a : body_b, high = body_a < body_b ? body_b : body_a;
  int32_t from = filter->first[low], to = filter->first[low + 1];
  while (from < to) {
    int32_t middle = from + (to - from) / 2;
    if (filter->partner[middle] == high) return 1;
    if (filter->partner[middle] < high)
      from = middle + 1;
    else
      to = middle;
  }
  return 0;
}

/* ---- Time-dependent parts ---- */

int pabd_scene_loads(const pabd_scene *scene, double start, double end, double *force) {
  int acts = 0;
  for (int32_t l = 0; l < scene->load_count; ++l) acts |= scene->loads[l].start < end && scene->loads[l].end > start;
  if (!acts) return 0;
  memset(force, 0, (size_t)scene->body_count * 6 * sizeof *force);
  for (int32_t l = 0; l < scene->load_count; ++l) {
    const pabd_load *load = &scene->loads[l];
    double share = (fmin(end, load->end) - fmax(start, load->start)) / (end - start);
    if (!(share > 0)) continue;
    double *sum = force + (size_t)load->body * 6;
    sum[0] += share * load->force.x, sum[1] += share * load->force.y, sum[2] += share * load->force.z;
    sum[3] += share * load->torque.x, sum[4] += share * load->torque.y, sum[5] += share * load->torque.z;
  }
  return 1;
}

pabd_dpose pabd_body_kinematic_pose(const pabd_body *body, double time) {
  pabd_dvec3 turn = {body->angular.x * time, body->angular.y * time, body->angular.z * time};
  pabd_dpose pose;
  pose.p.x = body->pose.p.x + body->linear.x * time;
  pose.p.y = body->pose.p.y + body->linear.y * time;
  pose.p.z = body->pose.p.z + body->linear.z * time;
  pose.q = pabd_dquat_normalize(pabd_dquat_mul(pabd_dquat_from_rotation_vector(turn), body->pose.q));
  return pose;
}

double pabd_joint_motor_target(const pabd_joint *joint, double time) {
  if (joint->motor_amplitude == 0) return joint->motor_target;
  return joint->motor_target + joint->motor_amplitude * sin(joint->motor_frequency * time + joint->motor_phase);
}

int pabd_scene_has_drivers(const pabd_scene *scene) {
  for (int32_t j = 0; j < scene->joint_count; ++j)
    if (scene->joints[j].motor != PABD_MOTOR_NONE) return 1;
  for (int32_t b = 0; b < scene->body_count; ++b)
    if (scene->bodies[b].motion == PABD_KINEMATIC) return 1;
  return 0;
}

/* ---- Springs ---- */

static pabd_dvec3 add(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.x + b.x, a.y + b.y, a.z + b.z};
}
static pabd_dvec3 sub(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.x - b.x, a.y - b.y, a.z - b.z};
}
static pabd_dvec3 scale(double s, pabd_dvec3 a) {
  return (pabd_dvec3){s * a.x, s * a.y, s * a.z};
}
static double dot(pabd_dvec3 a, pabd_dvec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static pabd_dvec3 cross(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* One end of a joint in the world: frame, lever arm about the centre of mass, velocities. */
typedef struct joint_end {
  pabd_dpose frame;
  pabd_dvec3 arm, linear, angular;
} joint_end;

static joint_end end_of(int32_t body, pabd_dpose frame, const double *pose, const double *velocity) {
  joint_end end = {.frame = frame};
  if (body == PABD_WORLD) return end;
  const double *p = pose + (size_t)body * 7, *v = velocity + (size_t)body * 6;
  pabd_dpose at = {{p[0], p[1], p[2]}, {p[3], p[4], p[5], p[6]}};
  end.frame = pabd_dpose_mul(at, frame);
  end.arm = sub(end.frame.p, at.p);
  end.linear = (pabd_dvec3){v[0], v[1], v[2]};
  end.angular = (pabd_dvec3){v[3], v[4], v[5]};
  return end;
}

/* Coordinate and rate along `axis` (from a to b) of the anchors. */
static double coordinate(const pabd_joint *joint, const joint_end *a, const joint_end *b, double *rate,
                         pabd_dvec3 *axis) {
  pabd_dvec3 x = {1, 0, 0}, y = {0, 1, 0}, z = {0, 0, 1};
  pabd_dvec3 between = sub(b->frame.p, a->frame.p);
  pabd_dvec3 speed = sub(add(b->linear, cross(b->angular, b->arm)), add(a->linear, cross(a->angular, a->arm)));
  if (joint->kind == PABD_HINGE) {
    *axis = pabd_dquat_rotate(a->frame.q, z);
    pabd_dvec3 bx = pabd_dquat_rotate(b->frame.q, x);
    *rate = dot(*axis, sub(b->angular, a->angular));
    return atan2(dot(bx, pabd_dquat_rotate(a->frame.q, y)), dot(bx, pabd_dquat_rotate(a->frame.q, x)));
  }
  if (joint->kind == PABD_SLIDER) {
    *axis = pabd_dquat_rotate(a->frame.q, z);
    *rate = dot(*axis, speed) + dot(cross(a->angular, *axis), between);
    return dot(*axis, between);
  }
  double length = sqrt(dot(between, between));
  *axis = length > 0 ? scale(1 / length, between) : z;
  *rate = dot(*axis, speed);
  return length;
}

double pabd_joint_coordinate(const pabd_scene *scene, const pabd_joint *joint, const double *pose,
                             const double *velocity, double *rate) {
  (void)scene;
  joint_end a = end_of(joint->body_a, joint->frame_a, pose, velocity);
  joint_end b = end_of(joint->body_b, joint->frame_b, pose, velocity);
  pabd_dvec3 axis;
  double speed, value = coordinate(joint, &a, &b, &speed, &axis);
  if (rate) *rate = speed;
  return value;
}

static int is_spring(const pabd_joint *joint) {
  return joint->stiffness > 0 || joint->damping > 0;
}

int pabd_scene_has_springs(const pabd_scene *scene) {
  for (int32_t j = 0; j < scene->joint_count; ++j)
    if (is_spring(&scene->joints[j])) return 1;
  return 0;
}

void pabd_scene_spring_forces(const pabd_scene *scene, const double *pose, const double *velocity, double *force) {
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    if (!is_spring(joint)) continue;
    joint_end a = end_of(joint->body_a, joint->frame_a, pose, velocity);
    joint_end b = end_of(joint->body_b, joint->frame_b, pose, velocity);
    pabd_dvec3 axis;
    double rate, value = coordinate(joint, &a, &b, &rate, &axis);
    double pull = -joint->stiffness * (value - joint->rest) - joint->damping * rate; /* on b, along the axis */
    for (int side = 0; side < 2; ++side) {
      int32_t body = side ? joint->body_b : joint->body_a;
      if (body == PABD_WORLD) continue;
      pabd_dvec3 f = scale(side ? pull : -pull, axis);
      /* A slider's force on a acts at b's anchor, so that the pair is in balance also when the anchors are apart. */
      pabd_dvec3 arm = side ? b.arm : sub(joint->kind == PABD_SLIDER ? b.frame.p : a.frame.p, sub(a.frame.p, a.arm));
      pabd_dvec3 torque = joint->kind == PABD_HINGE ? f : cross(arm, f);
      double *sum = force + (size_t)body * 6;
      if (joint->kind != PABD_HINGE) sum[0] += f.x, sum[1] += f.y, sum[2] += f.z;
      sum[3] += torque.x, sum[4] += torque.y, sum[5] += torque.z;
    }
  }
}

pabd_status pabd_scene_springs_stable(const char *engine, const pabd_scene *scene, double step, pabd_error *error) {
  if (!pabd_scene_has_springs(scene)) return PABD_OK;
  double *row = calloc((size_t)scene->body_count + 1, sizeof *row); /* bound on omega^2 from body i's row of K/m */
  if (row == NULL) return PABD_ERR_MEMORY;
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    if (!is_spring(joint)) continue;
    int both = joint->body_a != PABD_WORLD && scene->bodies[joint->body_a].motion == PABD_DYNAMIC &&
               scene->bodies[joint->body_b].motion == PABD_DYNAMIC;
    for (int side = 0; side < 2; ++side) {
      int32_t body = side ? joint->body_b : joint->body_a;
      if (body == PABD_WORLD || scene->bodies[body].motion != PABD_DYNAMIC) continue;
      const pabd_body *at = &scene->bodies[body];
      /* A damper of c adds c/h to the stiffness that the bound must cover (h omega < 2 becomes k h^2 + 2 c h < 4 m). */
      double stiffness = joint->stiffness + 2 * joint->damping / step;
      double light = 1 / fmin(at->inertia.x, fmin(at->inertia.y, at->inertia.z));
      pabd_dvec3 arm = side ? joint->frame_b.p : joint->frame_a.p;
      double inverse = joint->kind == PABD_HINGE ? light : 1 / at->mass + dot(arm, arm) * light;
      row[body] += (both ? 2 : 1) * stiffness * inverse;
    }
  }
  double worst = 0;
  for (int32_t b = 0; b < scene->body_count; ++b) worst = fmax(worst, row[b]);
  free(row);
  if (step * step * worst < 4) return PABD_OK;
  return pabd_fail(error, PABD_ERR_UNSUPPORTED,
                   "%s: its springs are explicit forces here, unstable at this step for a spring this stiff (%.3g 1/s "
                   "times the substep %.3g s is not below 2); %.0f times as many substeps suffice",
                   engine, sqrt(worst), step, ceil(step * sqrt(worst) / 1.99));
}

/* ---- Small things ---- */

double pabd_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

void pabd_stats_stage(pabd_engine_stats *stats, const char *name, int32_t is_collide, double ms) {
  assert(stats->stage_count < PABD_STAGE_MAX);
  if (stats->stage_count < PABD_STAGE_MAX)
    stats->stages[stats->stage_count++] = (pabd_stage_time){name, is_collide, ms};
}

void pabd_stats_counter(pabd_engine_stats *stats, const char *name, const char *unit, double value) {
  assert(stats->counter_count < PABD_COUNTER_MAX);
  if (stats->counter_count < PABD_COUNTER_MAX)
    stats->counters[stats->counter_count++] = (pabd_counter){name, unit, value};
}

int pabd_state_finite(const double *pose, const double *velocity, int32_t body_count) {
  /* x - x is 0 for finite x and NaN for the others: one sum, one test. */
  double sum = 0;
  for (int64_t k = 0; k < (int64_t)body_count * 7; ++k) sum += pose[k] - pose[k];
  for (int64_t k = 0; k < (int64_t)body_count * 6; ++k) sum += velocity[k] - velocity[k];
  return sum == 0;
}
