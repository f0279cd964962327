/* The families of bodies of the contract: stack, chain, string, grid, wall, pyramid, ring.
 *
 * Each family is one function: read the keys, check the count, append. Formulas of the start poses stand beside the
 * code and in cases/README.md. Invariant: what is generated depends on the keys alone (the rough stack's random numbers
 * come from its seed), so a case's hash names its scene. */
#include "generate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scene_read.h"

#define PI 3.14159265358979323846

static pabd_dvec3 scaled(double s, pabd_dvec3 a) {
  return (pabd_dvec3){s * a.x, s * a.y, s * a.z};
}

/* Velocity of a point at `arm` from the center of a turn. */
static pabd_dvec3 velocity_about(pabd_dvec3 rate, pabd_dvec3 arm) {
  return (pabd_dvec3){rate.y * arm.z - rate.z * arm.y, rate.z * arm.x - rate.x * arm.z,
                      rate.x * arm.y - rate.y * arm.x};
}
static pabd_dvec3 sum(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.x + b.x, a.y + b.y, a.z + b.z};
}

double splitmix64_uniform(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (double)(z >> 11) * 0x1p-53;
}

static double uniform(uint64_t *state, double low, double high) {
  return low + (high - low) * splitmix64_uniform(state);
}

static pabd_status fail_memory(reader *r) {
  return pabd_fail(r->error, PABD_ERR_MEMORY, "%.200s: out of memory while generating bodies", r->file);
}

static pabd_status check_count(reader *r, const pabd_scene *scene, double count) {
  if (count + scene->body_count > CASE_BODY_MAX) {
    return read_fail(r, "would make %.10g bodies (allowed: %d in a case)", count + scene->body_count, CASE_BODY_MAX);
  }
  return PABD_OK;
}

/* What all families share: the boxes' prototype. */
typedef struct family {
  pabd_body body;
  pabd_shape shape;
  char prefix[12]; /* leaves room for an index in a name */
} family;

static pabd_status read_family(reader *r, const cJSON *object, const char *const *materials, const char *prefix,
                               pabd_dvec3 size, family *f) {
  int material = 0;
  f->body = pabd_body_default();
  f->body.mass = 1.0;
  f->shape = pabd_shape_default(PABD_BOX);
  snprintf(f->prefix, sizeof f->prefix, "%s", prefix);
  PABD_TRY(read_text_or(r, object, "prefix", f->prefix, sizeof f->prefix));
  PABD_TRY(read_vec3_or(r, object, "size", range_length, &size));
  f->shape.half = scaled(0.5, size);
  PABD_TRY(read_real_or(r, object, "mass", range_mass, &f->body.mass));
  PABD_TRY(read_int_or(r, object, "group", 0, INT32_MAX, &f->body.group));
  PABD_TRY(read_name_or(r, object, "material", materials, &material));
  f->shape.material = material;
  return PABD_OK;
}

static pabd_status add_member(reader *r, pabd_scene *scene, family *f, int32_t number) {
  snprintf(f->body.name, sizeof f->body.name, "%s%d", f->prefix, (int)number);
  return add_solid(scene, &f->body, &f->shape) < 0 ? fail_memory(r) : PABD_OK;
}

/* Cube i: mass = mass ratio^i, bottom at base + the heights and gaps below. With a seed, gap, tilt and offset of each
 * are drawn in the order gap, tilt x, y, z, offset x, y; without it all gaps are `gap`. */
static pabd_status generate_stack(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind",         "count",      "size",     "mass",   "ratio", "gap",
                                     "base",         "group",      "material", "prefix", "seed",  "gap_max",
                                     "tilt_max_deg", "offset_max", "when",     NULL};
  int32_t count, seed = 0;
  double ratio = 1.0, gap = 0.0, gap_max = 0.0, tilt_max = 0.0, offset_max = 0.0;
  pabd_dvec3 base = {0, 0, 0};
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_int(r, object, "count", 1, CASE_BODY_MAX, &count));
  PABD_TRY(check_count(r, scene, count));
  PABD_TRY(read_family(r, object, materials, "box", (pabd_dvec3){1, 1, 1}, &f));
  PABD_TRY(read_real_or(r, object, "ratio", (range){1e-6, 1e6, 0, ""}, &ratio));
  PABD_TRY(read_vec3_or(r, object, "base", range_position, &base));
  int rough = read_has(object, "seed");
  if (rough && read_has(object, "gap"))
    return read_fail(r, "has both \"gap\" and \"seed\" (allowed: one; \"gap_max\" goes with \"seed\")");
  if (!rough && (read_has(object, "gap_max") || read_has(object, "tilt_max_deg") || read_has(object, "offset_max"))) {
    return read_fail(r, "\"gap_max\", \"tilt_max_deg\" and \"offset_max\" need a \"seed\"");
  }
  PABD_TRY(read_real_or(r, object, "gap", (range){-1.0, 1e3, 0, "m"}, &gap));
  PABD_TRY(read_int_or(r, object, "seed", 0, INT32_MAX, &seed));
  PABD_TRY(read_real_or(r, object, "gap_max", (range){0.0, 1e3, 0, "m"}, &gap_max));
  PABD_TRY(read_real_or(r, object, "tilt_max_deg", (range){0.0, 180.0, 0, "degrees"}, &tilt_max));
  PABD_TRY(read_real_or(r, object, "offset_max", (range){0.0, 1e3, 0, "m"}, &offset_max));

  double mass = f.body.mass, edge = 2.0 * f.shape.half.z, gaps = 0.0, tilt = tilt_max * PI / 180.0;
  uint64_t state = (uint64_t)(uint32_t)seed;
  for (int32_t i = 0; i < count; ++i) {
    pabd_dvec3 turn = {0, 0, 0}, offset = {0, 0, 0};
    if (rough) {
      gaps += uniform(&state, 0.0, gap_max);
      turn.x = uniform(&state, -tilt, tilt);
      turn.y = uniform(&state, -tilt, tilt);
      turn.z = uniform(&state, -tilt, tilt);
      offset.x = uniform(&state, -offset_max, offset_max);
      offset.y = uniform(&state, -offset_max, offset_max);
    } else {
      gaps = gap * (i + 1);
    }
    f.body.mass = mass * pow(ratio, i);
    if (f.body.mass > range_mass.high)
      return read_fail(r, "body %d would have %g kg (allowed: at most %g kg)", (int)i, f.body.mass, range_mass.high);
    f.body.pose.p = (pabd_dvec3){base.x + offset.x, base.y + offset.y, base.z + (0.5 + i) * edge + gaps};
    f.body.pose.q = pabd_dquat_normalize(pabd_dquat_from_rotation_vector(turn));
    PABD_TRY(add_member(r, scene, &f, i));
  }
  return PABD_OK;
}

/* Link i spans start + direction * [i, i+1] * length, its x axis along the direction; joint i at the link's beginning
 * (joint 0 to the world), and one more at the end cube's face centre when there is an end cube. The whole starts with
 * the angular velocity `rate` about `start`; odd joints have `alternate_axis` where it is given. */
static pabd_status generate_chain(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind",           "count",        "size",   "mass",      "start",   "direction",
                                     "joint",          "axis",         "limits", "stiffness", "damping", "end_edge",
                                     "end_mass",       "end_velocity", "group",  "material",  "prefix",  "when",
                                     "alternate_axis", "rate",         NULL};
  static const char *const joint_kinds[] = {"spherical", "hinge", "slider", "fixed", NULL};
  static const pabd_joint_kind kinds[] = {PABD_SPHERICAL, PABD_HINGE, PABD_SLIDER, PABD_FIXED};
  int32_t count;
  int joint_kind = 0;
  double end_edge = 0.0, end_mass = 0.0, stiffness = 0.0, damping = 0.0, limits[2] = {0, 0};
  pabd_dvec3 start = {0, 0, 0}, direction = {1, 0, 0}, axis = {0, 0, 1}, end_velocity = {0, 0, 0}, rate = {0, 0, 0};
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_int(r, object, "count", 1, CASE_BODY_MAX, &count));
  PABD_TRY(check_count(r, scene, count + 1.0));
  PABD_TRY(read_family(r, object, materials, "link", (pabd_dvec3){1, 0.2, 0.2}, &f));
  PABD_TRY(read_vec3_or(r, object, "start", range_position, &start));
  PABD_TRY(read_vec3_or(r, object, "direction", range_position, &direction));
  double length = sqrt(direction.x * direction.x + direction.y * direction.y + direction.z * direction.z);
  if (!(length > 1e-9)) return read_fail(r, "\"direction\" is zero (allowed: a direction, of any length)");
  direction = scaled(1.0 / length, direction);
  PABD_TRY(read_name_or(r, object, "joint", joint_kinds, &joint_kind));
  PABD_TRY(read_vec3_or(r, object, "axis", range_position, &axis));
  if (!(axis.x * axis.x + axis.y * axis.y + axis.z * axis.z > 1e-18))
    return read_fail(r, "\"axis\" is zero (allowed: a direction)");
  pabd_dvec3 other_axis = axis;
  PABD_TRY(read_vec3_or(r, object, "alternate_axis", range_position, &other_axis));
  if (!(other_axis.x * other_axis.x + other_axis.y * other_axis.y + other_axis.z * other_axis.z > 1e-18))
    return read_fail(r, "\"alternate_axis\" is zero (allowed: a direction)");
  PABD_TRY(read_vec3_or(r, object, "rate", range_position, &rate));
  int limited = read_has(object, "limits");
  int one_free = kinds[joint_kind] == PABD_HINGE || kinds[joint_kind] == PABD_SLIDER;
  if (!one_free && (limited || read_has(object, "stiffness") || read_has(object, "damping"))) {
    return read_fail(r, "limits, stiffness and damping need \"joint\": \"hinge\" or \"slider\"");
  }
  if (limited) {
    PABD_TRY(read_reals(r, object, "limits", range_position, 2, limits));
    if (limits[0] > limits[1])
      return read_fail(r, "limits %g .. %g: the lower exceeds the upper", limits[0], limits[1]);
  }
  PABD_TRY(read_real_or(r, object, "stiffness", range_not_negative, &stiffness));
  PABD_TRY(read_real_or(r, object, "damping", range_not_negative, &damping));
  int has_end = read_has(object, "end_edge") || read_has(object, "end_mass");
  if (has_end) {
    PABD_TRY(read_real(r, object, "end_edge", range_length, &end_edge));
    PABD_TRY(read_real(r, object, "end_mass", range_mass, &end_mass));
    PABD_TRY(read_vec3_or(r, object, "end_velocity", range_velocity, &end_velocity));
  }

  double pitch = 2.0 * f.shape.half.x;
  int32_t before = PABD_WORLD;
  f.body.pose.q = rotation_to_axis((pabd_dvec3){1, 0, 0}, direction);
  f.body.angular = rate;
  for (int32_t i = 0; i < count + has_end; ++i) {
    int32_t index = scene->body_count;
    pabd_dpose frame = {start, rotation_to_axis((pabd_dvec3){0, 0, 1}, i % 2 ? other_axis : axis)};
    frame.p = sum(start, scaled(i * pitch, direction));
    if (i < count) {
      f.body.pose.p = sum(start, scaled((i + 0.5) * pitch, direction));
      f.body.linear = velocity_about(rate, scaled((i + 0.5) * pitch, direction));
      PABD_TRY(add_member(r, scene, &f, i));
    } else {
      f.body.pose.p = sum(frame.p, scaled(0.5 * end_edge, direction));
      f.body.mass = end_mass;
      f.body.linear = sum(end_velocity, velocity_about(rate, scaled(count * pitch + 0.5 * end_edge, direction)));
      f.shape.half = (pabd_dvec3){0.5 * end_edge, 0.5 * end_edge, 0.5 * end_edge};
      snprintf(f.body.name, sizeof f.body.name, "end");
      if (add_solid(scene, &f.body, &f.shape) < 0) return fail_memory(r);
    }
    pabd_joint joint = pabd_joint_default(kinds[joint_kind]);
    snprintf(joint.name, sizeof joint.name, "joint%d", (int)i);
    joint.body_a = before;
    joint.body_b = index;
    joint.has_limits = limited;
    joint.lower = limits[0];
    joint.upper = limits[1];
    joint.stiffness = stiffness;
    joint.damping = damping;
    pabd_joint_place(scene, &joint, frame);
    if (pabd_scene_add_joint(scene, &joint) < 0) return fail_memory(r);
    before = index;
  }
  return PABD_OK;
}

/* Cubes on a string: cube i's centre at distance (i+1) rest + (i+0.5) edge from the anchor, along -z turned about y by
 * swing (towards +x); joints between the facing face centres, the first from the anchor in the world. */
static pabd_status generate_string(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind", "count",     "size",  "mass",     "end_mass", "start", "joint",
                                     "rest", "swing_deg", "group", "material", "prefix",   "when",  NULL};
  static const char *const joint_kinds[] = {"distance", "ball", NULL};
  int32_t count;
  int ball = 0;
  double end_mass, rest = 0.0, swing = 0.0;
  pabd_dvec3 start = {0, 0, 0};
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_int(r, object, "count", 1, CASE_BODY_MAX, &count));
  PABD_TRY(check_count(r, scene, count));
  PABD_TRY(read_family(r, object, materials, "cube", (pabd_dvec3){0.2, 0.2, 0.2}, &f));
  end_mass = f.body.mass;
  PABD_TRY(read_real_or(r, object, "end_mass", range_mass, &end_mass));
  PABD_TRY(read_vec3_or(r, object, "start", range_position, &start));
  PABD_TRY(read_name_or(r, object, "joint", joint_kinds, &ball));
  PABD_TRY(read_real_or(r, object, "rest", (range){0.0, 1e6, 0, "m"}, &rest));
  PABD_TRY(read_real_or(r, object, "swing_deg", (range){-180.0, 180.0, 0, "degrees"}, &swing));
  if (ball) rest = 0.0;

  double edge = 2.0 * f.shape.half.z, angle = swing * PI / 180.0;
  pabd_dvec3 down = {sin(angle), 0.0, -cos(angle)};
  f.body.pose.q = pabd_dquat_normalize(pabd_dquat_from_rotation_vector((pabd_dvec3){0, -angle, 0}));
  int32_t before = PABD_WORLD;
  for (int32_t i = 0; i < count; ++i) {
    int32_t index = scene->body_count;
    double top = (i + 1) * rest + i * edge;
    if (i == count - 1) f.body.mass = end_mass;
    f.body.pose.p = sum(start, scaled(top + 0.5 * edge, down));
    PABD_TRY(add_member(r, scene, &f, i));
    pabd_joint joint = pabd_joint_default(ball ? PABD_SPHERICAL : PABD_DISTANCE);
    snprintf(joint.name, sizeof joint.name, "joint%d", (int)i);
    joint.body_a = before;
    joint.body_b = index;
    pabd_dpose frame = {sum(start, scaled(top, down)), {1, 0, 0, 0}};
    pabd_joint_place(scene, &joint, frame);
    pabd_joint upper = joint;
    frame.p = sum(start, scaled(top - rest, down));
    pabd_joint_place(scene, &upper, frame);
    joint.frame_a = upper.frame_a;
    joint.rest = rest;
    if (pabd_scene_add_joint(scene, &joint) < 0) return fail_memory(r);
    before = index;
  }
  return PABD_OK;
}

/* Box, or with "radius" ball, (i, j, k) (moved by a random +-jitter in x and y, 0..jitter in z, drawn in this order) at
 * (center.x + (i - (nx-1)/2) pitch.x, center.y + (j - (ny-1)/2) pitch.y, center.z + k pitch.z). */
static pabd_status generate_grid(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind",     "counts", "size",   "mass",   "pitch", "center", "group",
                                     "material", "prefix", "radius", "jitter", "seed",  "when",   NULL};
  double counts[3], radius = 0.0, jitter = 0.0;
  int32_t seed = 0;
  pabd_dvec3 pitch, center = {0, 0, 0};
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_reals(r, object, "counts", (range){1, CASE_BODY_MAX, 0, "bodies"}, 3, counts));
  for (int axis = 0; axis < 3; ++axis) {
    if (counts[axis] != floor(counts[axis]))
      return read_fail(r, "counts[%d] = %g is not a whole number", axis, counts[axis]);
  }
  PABD_TRY(check_count(r, scene, counts[0] * counts[1] * counts[2]));
  PABD_TRY(read_family(r, object, materials, "box", (pabd_dvec3){1, 1, 1}, &f));
  PABD_TRY(read_vec3(r, object, "pitch", range_length, &pitch));
  PABD_TRY(read_vec3_or(r, object, "center", range_position, &center));
  PABD_TRY(read_real_or(r, object, "radius", range_length, &radius));
  PABD_TRY(read_real_or(r, object, "jitter", range_not_negative, &jitter));
  PABD_TRY(read_int_or(r, object, "seed", 0, INT32_MAX, &seed));
  if (radius > 0) {
    pabd_shape sphere = pabd_shape_default(PABD_SPHERE);
    sphere.radius = radius, sphere.material = f.shape.material;
    f.shape = sphere;
  }
  uint64_t state = (uint64_t)(uint32_t)seed;
  int32_t number = 0;
  for (int32_t k = 0; k < (int32_t)counts[2]; ++k) {
    for (int32_t j = 0; j < (int32_t)counts[1]; ++j) {
      for (int32_t i = 0; i < (int32_t)counts[0]; ++i) {
        f.body.pose.p = (pabd_dvec3){center.x + (i - 0.5 * (counts[0] - 1)) * pitch.x,
                                     center.y + (j - 0.5 * (counts[1] - 1)) * pitch.y, center.z + k * pitch.z};
        if (jitter > 0) {
          f.body.pose.p.x += uniform(&state, -jitter, jitter);
          f.body.pose.p.y += uniform(&state, -jitter, jitter);
          f.body.pose.p.z += uniform(&state, 0.0, jitter);
        }
        PABD_TRY(add_member(r, scene, &f, number++));
      }
    }
  }
  return PABD_OK;
}

/* Courses of bricks along x: brick i of course k at x = (i - (n-1)/2) pitch (+ shift for odd k),
 * z = (k + 0.5) height + (k + 1) gap. */
static pabd_status generate_wall(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind", "courses", "count",    "size",   "mass", "pitch", "shift",
                                     "gap",  "group",   "material", "prefix", "when", NULL};
  int32_t courses, count, number = 0;
  double pitch, shift = 0.0, gap = 0.0;
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_int(r, object, "courses", 1, CASE_BODY_MAX, &courses));
  PABD_TRY(read_int(r, object, "count", 1, CASE_BODY_MAX, &count));
  PABD_TRY(check_count(r, scene, (double)courses * count));
  PABD_TRY(read_family(r, object, materials, "brick", (pabd_dvec3){0.99, 0.5, 0.5}, &f));
  PABD_TRY(read_real(r, object, "pitch", range_length, &pitch));
  PABD_TRY(read_real_or(r, object, "shift", range_position, &shift));
  PABD_TRY(read_real_or(r, object, "gap", (range){-1.0, 1e3, 0, "m"}, &gap));
  double height = 2.0 * f.shape.half.z;
  for (int32_t k = 0; k < courses; ++k) {
    for (int32_t i = 0; i < count; ++i) {
      f.body.pose.p =
          (pabd_dvec3){(i - 0.5 * (count - 1)) * pitch + (k % 2) * shift, 0.0, (k + 0.5) * height + (k + 1) * gap};
      PABD_TRY(add_member(r, scene, &f, number++));
    }
  }
  return PABD_OK;
}

/* Row k has base - k cubes, at x = (i - (base-k-1)/2) pitch, z = (k + 0.5) height + (k + 1) gap. */
static pabd_status generate_pyramid(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind",  "base",     "size",   "mass", "pitch", "gap",
                                     "group", "material", "prefix", "when", NULL};
  int32_t base, number = 0;
  double pitch, gap = 0.0;
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_int(r, object, "base", 1, 2000, &base));
  PABD_TRY(check_count(r, scene, 0.5 * base * (base + 1.0)));
  PABD_TRY(read_family(r, object, materials, "box", (pabd_dvec3){1, 1, 1}, &f));
  PABD_TRY(read_real(r, object, "pitch", range_length, &pitch));
  PABD_TRY(read_real_or(r, object, "gap", (range){-1.0, 1e3, 0, "m"}, &gap));
  double height = 2.0 * f.shape.half.z;
  for (int32_t k = 0; k < base; ++k) {
    for (int32_t i = 0; i < base - k; ++i) {
      f.body.pose.p = (pabd_dvec3){(i - 0.5 * (base - k - 1)) * pitch, 0.0, (k + 0.5) * height + (k + 1) * gap};
      PABD_TRY(add_member(r, scene, &f, number++));
    }
  }
  return PABD_OK;
}

/* Regular polygon in the x-z plane with its top corner at the origin: corner k at R (sin a, 0, cos a - 1), a = 2 pi k /
 * n, R = length / (2 sin(pi/n)). Link k joins corners k and k+1; ball joints at all corners, one more holds link 0 to
 * the world at the top. The whole turns about y at `rate` about the top corner. `heavy_mass` is that of the link that
 * begins at the bottom corner (k = n/2). */
static pabd_status generate_ring(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind",  "count",    "size",   "mass", "heavy_mass", "rate",
                                     "group", "material", "prefix", "when", NULL};
  int32_t count;
  double heavy, rate = 0.0;
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_int(r, object, "count", 3, CASE_BODY_MAX, &count));
  PABD_TRY(check_count(r, scene, count));
  PABD_TRY(read_family(r, object, materials, "link", (pabd_dvec3){1, 0.2, 0.2}, &f));
  heavy = f.body.mass;
  PABD_TRY(read_real_or(r, object, "heavy_mass", range_mass, &heavy));
  PABD_TRY(read_real_or(r, object, "rate", range_velocity, &rate));
  double mass = f.body.mass, radius = f.shape.half.x / sin(PI / count);
  int32_t first = scene->body_count;
  f.body.angular = (pabd_dvec3){0, rate, 0};
  for (int32_t k = 0; k < count; ++k) {
    double a = 2.0 * PI * k / count, b = 2.0 * PI * (k + 1) / count;
    pabd_dvec3 from = {radius * sin(a), 0.0, radius * (cos(a) - 1.0)},
               to = {radius * sin(b), 0.0, radius * (cos(b) - 1.0)};
    f.body.pose.p = scaled(0.5, sum(from, to));
    // The link's x axis points along its edge: a turn about y alone, so that y stays y.
    double turn = atan2(-(to.z - from.z), to.x - from.x);
    f.body.pose.q = pabd_dquat_from_rotation_vector((pabd_dvec3){0, turn, 0});
    f.body.pose.q = pabd_dquat_normalize(f.body.pose.q);
    f.body.linear = (pabd_dvec3){rate * f.body.pose.p.z, 0.0, -rate * f.body.pose.p.x};
    f.body.mass = k == count / 2 ? heavy : mass;
    PABD_TRY(add_member(r, scene, &f, k));
  }
  for (int32_t k = -1; k < count; ++k) {
    pabd_joint joint = pabd_joint_default(PABD_SPHERICAL);
    double a = 2.0 * PI * (k < 0 ? 0 : k) / count;
    snprintf(joint.name, sizeof joint.name, "joint%d", (int)k + 1);
    joint.body_a = k < 0 ? PABD_WORLD : first + (k + count - 1) % count;
    joint.body_b = first + (k < 0 ? 0 : k);
    pabd_joint_place(scene, &joint, (pabd_dpose){{radius * sin(a), 0.0, radius * (cos(a) - 1.0)}, {1, 0, 0, 0}});
    if (pabd_scene_add_joint(scene, &joint) < 0) return fail_memory(r);
  }
  return PABD_OK;
}

/* IFToMM's N-four-bar mechanism: rods of 1 m (slender: inertia m L^2/12) in the x-z plane, count + 1 of them upright on
 * ground hinges at x = 0..count, count level ones between their tops; the top moves with 1 m/s along x. */
static pabd_status generate_four_bar(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const keys[] = {"kind", "count", "size", "mass", "group", "material", "when", NULL};
  int32_t count;
  family f;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_int(r, object, "count", 1, 100000, &count));
  PABD_TRY(check_count(r, scene, 2.0 * count + 1));
  PABD_TRY(read_family(r, object, materials, "rod", (pabd_dvec3){1, 0.05, 0.05}, &f));
  double length = 2.0 * f.shape.half.x;
  double across = f.body.mass * length * length / 12.0;
  f.body.inertia = (pabd_dvec3){0.1 * across, across, across};
  int32_t first = scene->body_count;
  for (int32_t k = 0; k < 2 * count + 1; ++k) { /* the upright ones first */
    int upright = k <= count;
    snprintf(f.body.name, sizeof f.body.name, "%s%d", upright ? "post" : "bar", (int)(upright ? k : k - count - 1));
    f.body.pose.p =
        upright ? (pabd_dvec3){k * length, 0, 0.5 * length} : (pabd_dvec3){(k - count - 0.5) * length, 0, length};
    f.body.pose.q = upright ? pabd_dquat_from_rotation_vector((pabd_dvec3){0, -0.5 * PI, 0}) : (pabd_dquat){1, 0, 0, 0};
    f.body.linear = (pabd_dvec3){upright ? 0.5 : 1.0, 0, 0};
    f.body.angular = (pabd_dvec3){0, upright ? 1.0 / length : 0.0, 0};
    f.shape.body = pabd_scene_add_body(scene, &f.body);
    if (f.shape.body < 0 || pabd_scene_add_shape(scene, &f.shape) < 0) return fail_memory(r);
  }
  pabd_dquat axes = pabd_dquat_from_rotation_vector((pabd_dvec3){-0.5 * PI, 0, 0}); /* z to y */
  for (int32_t k = 0; k < 3 * count + 1; ++k) {
    pabd_joint joint = pabd_joint_default(PABD_HINGE);
    snprintf(joint.name, sizeof joint.name, "joint%d", (int)k);
    int32_t bar = k <= count ? 0 : (k - count - 1) / 2, right = k <= count ? 0 : (k - count - 1) % 2;
    double x = k <= count ? k : bar + right;
    joint.body_a = k <= count ? PABD_WORLD : first + bar + right;
    joint.body_b = first + (k <= count ? k : count + 1 + bar);
    pabd_joint_place(scene, &joint, (pabd_dpose){{x * length, 0, k <= count ? 0 : length}, axes});
    if (pabd_scene_add_joint(scene, &joint) < 0) return fail_memory(r);
  }
  return PABD_OK;
}

pabd_status generate(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene) {
  static const char *const kinds[] = {"stack", "chain", "string", "grid", "wall", "pyramid", "ring", "four-bar", NULL};
  int kind;
  if (!cJSON_IsObject(object)) return read_fail(r, "must be an object {...} with a \"kind\"");
  PABD_TRY(read_name(r, object, "kind", kinds, &kind));
  switch (kind) {
    case 0:
      return generate_stack(r, object, materials, scene);
    case 1:
      return generate_chain(r, object, materials, scene);
    case 2:
      return generate_string(r, object, materials, scene);
    case 3:
      return generate_grid(r, object, materials, scene);
    case 4:
      return generate_wall(r, object, materials, scene);
    case 5:
      return generate_pyramid(r, object, materials, scene);
    case 6:
      return generate_ring(r, object, materials, scene);
    default:
      return generate_four_bar(r, object, materials, scene);
  }
}
