/* From JSON to pabd_scene; the schema in words is in cases/README.md.
 *
 * Mass rules of a body: "mass" and "inertia" are taken as given, the body's frame is then its principal frame;
 * otherwise the moments come from the shapes (each shape's "density", else the body's "density", else uniform and
 * scaled to "mass") and the body's frame moves to the principal frame, the solid staying where the file put it. Joints
 * are placed after that, in world coordinates, so a file never needs to know principal frames. */
#include "scene_read.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"

static const char *const motion_names[] = {"dynamic", "static", "kinematic", NULL};
static const char *const shape_names[] = {"sphere", "capsule", "box", "plane", "cylinder", "hull", NULL};
static const char *const joint_names[] = {"spherical", "hinge",  "slider",    "fixed",
                                          "distance",  "spring", "universal", NULL};
static const char *const motor_names[] = {"none", "rate", "position", NULL};

/* The enums and the names above are one list each; a new kind must enter both. */
_Static_assert(sizeof motion_names / sizeof motion_names[0] == PABD_MOTION_COUNT + 1, "motion names");
_Static_assert(sizeof shape_names / sizeof shape_names[0] == PABD_SHAPE_KIND_COUNT + 1, "shape names");
_Static_assert(sizeof joint_names / sizeof joint_names[0] == PABD_JOINT_KIND_COUNT + 1, "joint names");
_Static_assert(sizeof motor_names / sizeof motor_names[0] == PABD_MOTOR_KIND_COUNT + 1, "motor names");

typedef struct material_table {
  int32_t count;
  char names[CASE_MATERIAL_MAX][PABD_NAME_SIZE];
  const char *pointers[CASE_MATERIAL_MAX + 1]; /* for read_name; ended by NULL */
} material_table;

static double dot(pabd_dvec3 a, pabd_dvec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

static pabd_dvec3 cross(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static pabd_dvec3 scaled(double s, pabd_dvec3 a) {
  return (pabd_dvec3){s * a.x, s * a.y, s * a.z};
}

pabd_dquat rotation_to_axis(pabd_dvec3 from, pabd_dvec3 to) {
  pabd_dvec3 a = scaled(1.0 / sqrt(dot(from, from)), from), b = scaled(1.0 / sqrt(dot(to, to)), to);
  double c = dot(a, b);
  if (c < -1.0 + 1e-14) {
    // Opposite: half a turn about any normal; the coordinate axis least along `a` gives a good one.
    pabd_dvec3 helper = fabs(a.x) < 0.6 ? (pabd_dvec3){1, 0, 0} : (pabd_dvec3){0, 1, 0};
    pabd_dvec3 n = cross(a, helper);
    n = scaled(1.0 / sqrt(dot(n, n)), n);
    return (pabd_dquat){0, n.x, n.y, n.z};
  }
  pabd_dvec3 n = cross(a, b);
  return pabd_dquat_normalize((pabd_dquat){1.0 + c, n.x, n.y, n.z});
}

int32_t add_solid(pabd_scene *scene, const pabd_body *body, const pabd_shape *shape) {
  pabd_body copy = *body;
  copy.inertia = pabd_shape_inertia(shape, copy.mass);
  int32_t index = pabd_scene_add_body(scene, &copy);
  if (index < 0) return -1;
  pabd_shape placed = *shape;
  placed.body = index;
  return pabd_scene_add_shape(scene, &placed) < 0 ? -1 : index;
}

static pabd_status fail_memory(reader *r) {
  return pabd_fail(r->error, PABD_ERR_MEMORY, "%.200s: out of memory while building the scene", r->file);
}

/* ---- Materials ---- */

static pabd_status read_materials(reader *r, const cJSON *top, material_table *table, pabd_scene *scene) {
  static const char *const material_keys[] = {"name", "friction", "restitution", NULL};
  static const char *const pair_keys[] = {"a", "b", "friction", "restitution", NULL};
  const range friction_range = {0.0, 1e6, 0, ""}, restitution_range = {0.0, 1.0, 0, ""};
  double friction[CASE_MATERIAL_MAX], restitution[CASE_MATERIAL_MAX];
  const cJSON *list, *item;
  memset(table, 0, sizeof *table);

  PABD_TRY(read_array_or(r, top, "materials", &list));
  cJSON_ArrayForEach(item, list) {
    int outer = read_enter(r, "materials"), inner = read_enter_index(r, table->count);
    if (table->count == CASE_MATERIAL_MAX) return read_fail(r, "too many materials (allowed: %d)", CASE_MATERIAL_MAX);
    PABD_TRY(read_keys(r, item, material_keys));
    char *name = table->names[table->count];
    PABD_TRY(read_text(r, item, "name", name, PABD_NAME_SIZE));
    for (int32_t m = 0; m < table->count; ++m) {
      if (strcmp(table->names[m], name) == 0)
        return read_fail(r, "the name \"%s\" is taken by materials[%d]", name, (int)m);
    }
    friction[table->count] = 0.5;
    restitution[table->count] = 0.0;
    PABD_TRY(read_real_or(r, item, "friction", friction_range, &friction[table->count]));
    PABD_TRY(read_real_or(r, item, "restitution", restitution_range, &restitution[table->count]));
    table->pointers[table->count] = name;
    ++table->count;
    read_leave(r, inner);
    read_leave(r, outer);
  }
  if (table->count == 0) {
    snprintf(table->names[0], PABD_NAME_SIZE, "default");
    table->pointers[0] = table->names[0];
    friction[0] = 0.5;
    restitution[0] = 0.0;
    table->count = 1;
  }
  if (pabd_scene_set_materials(scene, table->count, 0.5, 0.0) != PABD_OK) return fail_memory(r);
  // A pair that the file does not name gets the geometric mean of the friction and the larger restitution.
  for (int32_t a = 0; a < table->count; ++a) {
    for (int32_t b = 0; b < table->count; ++b) {
      double mean = friction[a] == friction[b] ? friction[a] : sqrt(friction[a] * friction[b]);
      scene->friction[a * table->count + b] = mean;
      scene->restitution[a * table->count + b] = restitution[a] > restitution[b] ? restitution[a] : restitution[b];
    }
  }
  PABD_TRY(read_array_or(r, top, "material_pairs", &list));
  int32_t index = 0;
  cJSON_ArrayForEach(item, list) {
    int outer = read_enter(r, "material_pairs"), inner = read_enter_index(r, index++), a, b;
    PABD_TRY(read_keys(r, item, pair_keys));
    PABD_TRY(read_name(r, item, "a", table->pointers, &a));
    PABD_TRY(read_name(r, item, "b", table->pointers, &b));
    int32_t at = a * table->count + b, mirror = b * table->count + a;
    PABD_TRY(read_real_or(r, item, "friction", friction_range, &scene->friction[at]));
    PABD_TRY(read_real_or(r, item, "restitution", restitution_range, &scene->restitution[at]));
    scene->friction[mirror] = scene->friction[at];
    scene->restitution[mirror] = scene->restitution[at];
    read_leave(r, inner);
    read_leave(r, outer);
  }
  return PABD_OK;
}

/* ---- Bodies ---- */

static pabd_status read_vertices(reader *r, const cJSON *object, pabd_scene *scene, pabd_shape *shape) {
  const cJSON *list, *item;
  PABD_TRY(read_array_or(r, object, "vertices", &list));
  if (list == NULL)
    return read_fail(r, "the key \"vertices\" is missing (a hull needs 4 .. %d points)", CASE_HULL_VERTEX_MAX);
  int mark = read_enter(r, "vertices");
  int count = cJSON_GetArraySize(list);
  if (count < 4 || count > CASE_HULL_VERTEX_MAX)
    return read_fail(r, "has %d points (allowed: 4 .. %d)", count, CASE_HULL_VERTEX_MAX);
  pabd_dvec3 vertices[CASE_HULL_VERTEX_MAX];
  int32_t i = 0;
  cJSON_ArrayForEach(item, list) {
    int inner = read_enter_index(r, i);
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 3) return read_fail(r, "must be a list of 3 numbers");
    double x[3];
    int k = 0;
    for (const cJSON *child = item->child; child != NULL; child = child->next) {
      PABD_TRY(read_item_real(r, child, range_position, &x[k++]));
    }
    vertices[i++] = (pabd_dvec3){x[0], x[1], x[2]};
    read_leave(r, inner);
  }
  shape->vertex_count = count;
  shape->first_vertex = pabd_scene_add_vertices(scene, vertices, count);
  if (shape->first_vertex < 0) return fail_memory(r);
  if (!(pabd_shape_volume(scene, shape) > 0.0))
    return read_fail(r, "the points lie in one plane (allowed: a hull with a volume)");
  read_leave(r, mark);
  return PABD_OK;
}

static pabd_status read_shape(reader *r, const cJSON *object, const material_table *materials, pabd_scene *scene,
                              pabd_shape *shape, double *density) {
  static const char *const keys[] = {"kind",
                                     "radius",
                                     "length",
                                     "size",
                                     "vertices",
                                     "material",
                                     "position",
                                     "rotation",
                                     "density",
                                     "rotation_vector",
                                     "rotation_vector_deg",
                                     NULL};
  // Which size keys each kind has, in the order of the enum.
  static const char *const sizes[PABD_SHAPE_KIND_COUNT][3] = {{"radius", NULL, NULL},     {"radius", "length", NULL},
                                                              {"size", NULL, NULL},       {NULL, NULL, NULL},
                                                              {"radius", "length", NULL}, {"vertices", NULL, NULL}};
  static const char *const all_sizes[] = {"radius", "length", "size", "vertices"};
  int kind, material = 0;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_name(r, object, "kind", shape_names, &kind));
  *shape = pabd_shape_default((pabd_shape_kind)kind);
  for (int s = 0; s < 4; ++s) {
    int belongs = 0;
    for (int k = 0; k < 3 && sizes[kind][k] != NULL; ++k) belongs |= strcmp(sizes[kind][k], all_sizes[s]) == 0;
    if (!belongs && read_has(object, all_sizes[s])) {
      return read_fail(r, "a %s has no \"%s\"", shape_names[kind], all_sizes[s]);
    }
  }
  PABD_TRY(read_name_or(r, object, "material", materials->pointers, &material));
  shape->material = material;
  PABD_TRY(read_pose_or(r, object, &shape->local));
  *density = 0.0;
  PABD_TRY(read_real_or(r, object, "density", (range){0.0, 1e9, 1, "kg/m^3"}, density));
  switch (shape->kind) {
    case PABD_SPHERE:
      return read_real(r, object, "radius", range_length, &shape->radius);
    case PABD_CAPSULE:
    case PABD_CYLINDER: {
      double length;
      PABD_TRY(read_real(r, object, "radius", range_length, &shape->radius));
      PABD_TRY(read_real(r, object, "length", range_length, &length));
      shape->half_length = 0.5 * length;
      return PABD_OK;
    }
    case PABD_BOX: {
      pabd_dvec3 size;
      PABD_TRY(read_vec3(r, object, "size", range_length, &size));
      shape->half = scaled(0.5, size);
      return PABD_OK;
    }
    case PABD_HULL:
      return read_vertices(r, object, scene, shape);
    default:
      return PABD_OK;
  }
}

static pabd_status read_mass(reader *r, const cJSON *object, pabd_scene *scene, int32_t body, int32_t first_shape,
                             double *densities) {
  pabd_body *b = &scene->bodies[body];
  int32_t shape_count = scene->shape_count - first_shape;
  int has_mass = read_has(object, "mass"), has_inertia = read_has(object, "inertia"),
      has_density = read_has(object, "density");
  int shape_density = 0;
  for (int32_t k = 0; k < shape_count; ++k) shape_density |= densities[k] > 0.0;
  if (b->motion != PABD_DYNAMIC) {
    if (has_mass || has_inertia || has_density || shape_density) {
      return read_fail(r, "a %s body has no mass, inertia or density (it is moved by nothing)",
                       motion_names[b->motion]);
    }
    return PABD_OK;
  }
  if (has_inertia) {
    if (!has_mass || has_density || shape_density)
      return read_fail(r, "\"inertia\" goes with \"mass\", and not with a density");
    PABD_TRY(read_real(r, object, "mass", range_mass, &b->mass));
    PABD_TRY(read_vec3(r, object, "inertia", (range){0.0, 1e15, 1, "kg m^2"}, &b->inertia));
    pabd_dvec3 m = b->inertia;
    double largest = fmax(m.x, fmax(m.y, m.z));
    if (2.0 * largest > (m.x + m.y + m.z) * (1.0 + 1e-9)) {
      read_enter(r, "inertia");
      return read_fail(r, "%g, %g, %g: one moment exceeds the sum of the others (no solid has that)", m.x, m.y, m.z);
    }
    return PABD_OK;
  }
  if (has_mass == (has_density || shape_density)) {
    return read_fail(r, "a dynamic body needs either \"mass\" or a \"density\" (of the body, or of each shape)");
  }
  if (shape_count == 0) return read_fail(r, "a dynamic body without shapes needs \"mass\" and \"inertia\"");
  double density = 1.0;
  PABD_TRY(read_real_or(r, object, "density", (range){0.0, 1e9, 1, "kg/m^3"}, &density));
  for (int32_t k = 0; k < shape_count; ++k) {
    if (densities[k] > 0.0) continue;
    if (shape_density && !has_density)
      return read_fail(r, "shapes[%d] has no density (each shape needs one, or the body)", (int)k);
    densities[k] = density;
  }
  if (pabd_scene_mass_from_densities(scene, body, densities) != PABD_OK) {
    return read_fail(r, "its shapes have no volume, so no mass follows from them");
  }
  if (has_mass) {
    double mass;
    PABD_TRY(read_real(r, object, "mass", range_mass, &mass));
    b->inertia = scaled(mass / b->mass, b->inertia);
    b->mass = mass;
  }
  return PABD_OK;
}

static pabd_status read_one_body(reader *r, const cJSON *object, const material_table *materials, pabd_scene *scene) {
  static const char *const keys[] = {"name",
                                     "motion",
                                     "position",
                                     "rotation",
                                     "rotation_vector",
                                     "rotation_vector_deg",
                                     "velocity",
                                     "angular_velocity",
                                     "mass",
                                     "inertia",
                                     "density",
                                     "group",
                                     "world",
                                     "shape",
                                     "shapes",
                                     "when",
                                     NULL};
  int motion = PABD_DYNAMIC;
  pabd_body body = pabd_body_default();
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_text_or(r, object, "name", body.name, sizeof body.name));
  if (strcmp(body.name, "world") == 0) return read_fail(r, "\"world\" is the name of the fixed world (choose another)");
  PABD_TRY(read_name_or(r, object, "motion", motion_names, &motion));
  body.motion = (pabd_motion)motion;
  PABD_TRY(read_pose_or(r, object, &body.pose));
  PABD_TRY(read_vec3_or(r, object, "velocity", range_velocity, &body.linear));
  PABD_TRY(read_vec3_or(r, object, "angular_velocity", range_velocity, &body.angular));
  if (body.motion == PABD_STATIC && (read_has(object, "velocity") || read_has(object, "angular_velocity"))) {
    return read_fail(r, "a static body has no velocity (a kinematic one has)");
  }
  PABD_TRY(read_int_or(r, object, "group", 0, INT32_MAX, &body.group));
  PABD_TRY(read_int_or(r, object, "world", 0, INT32_MAX, &body.world));
  if (scene->body_count >= CASE_BODY_MAX) return read_fail(r, "too many bodies (allowed: %d)", CASE_BODY_MAX);
  int32_t index = pabd_scene_add_body(scene, &body);
  if (index < 0) return fail_memory(r);

  const cJSON *list, *one;
  PABD_TRY(read_array_or(r, object, "shapes", &list));
  PABD_TRY(read_object_or(r, object, "shape", &one));
  if (list != NULL && one != NULL) return read_fail(r, "has both \"shape\" and \"shapes\" (allowed: one of them)");
  int32_t first = scene->shape_count;
  int count = one != NULL ? 1 : list != NULL ? cJSON_GetArraySize(list) : 0;
  double *densities = calloc((size_t)count + 1, sizeof *densities);
  if (densities == NULL) return fail_memory(r);
  pabd_status status = PABD_OK;
  int32_t k = 0;
  for (const cJSON *item = one != NULL    ? one
                           : list != NULL ? list->child
                                          : NULL;
       item != NULL && status == PABD_OK; item = one != NULL ? NULL : item->next, ++k) {
    pabd_shape shape;
    int mark = read_enter(r, one != NULL ? "shape" : "shapes");
    if (one == NULL) read_enter_index(r, k);
    status = read_shape(r, item, materials, scene, &shape, &densities[k]);
    if (status == PABD_OK && shape.kind == PABD_PLANE && body.motion != PABD_STATIC) {
      status = read_fail(r, "a plane belongs to a static body (this one is %s)", motion_names[body.motion]);
    }
    if (status == PABD_OK) {
      read_leave(r, mark);
      shape.body = index;
      if (pabd_scene_add_shape(scene, &shape) < 0) status = fail_memory(r);
    }
  }
  if (status == PABD_OK) status = read_mass(r, object, scene, index, first, densities);
  free(densities);
  return status;
}

/* ---- Joints, loads, pairs ---- */

static int is_zero(pabd_dvec3 v) {
  return dot(v, v) < 1e-24;
}

/* The joint's frames from anchors and axes in world coordinates. */
static pabd_status place_joint(reader *r, const cJSON *object, const pabd_scene *scene, pabd_joint *joint) {
  pabd_dvec3 axis = {0, 0, 1}, x_axis = {0, 0, 0};
  pabd_dpose frame = {{0, 0, 0}, {1, 0, 0, 0}};
  int two_points = joint->kind == PABD_DISTANCE || joint->kind == PABD_SPRING;
  if (two_points) {
    pabd_dvec3 a, b;
    if (read_has(object, "anchor") || read_has(object, "axis")) {
      return read_fail(r, "a %s joint has \"anchor_a\" and \"anchor_b\", no \"anchor\" and no axis",
                       joint_names[joint->kind]);
    }
    PABD_TRY(read_vec3(r, object, "anchor_a", range_position, &a));
    PABD_TRY(read_vec3(r, object, "anchor_b", range_position, &b));
    frame.p = a;
    pabd_joint_place(scene, joint, frame);
    pabd_joint at_b = *joint;
    frame.p = b;
    pabd_joint_place(scene, &at_b, frame);
    joint->frame_b = at_b.frame_b;
    pabd_dvec3 d = {a.x - b.x, a.y - b.y, a.z - b.z};
    joint->rest = sqrt(dot(d, d));
    return PABD_OK;
  }
  if (read_has(object, "anchor_a") || read_has(object, "anchor_b")) {
    return read_fail(r, "a %s joint has one \"anchor\" (only distance and spring have two)", joint_names[joint->kind]);
  }
  PABD_TRY(read_vec3(r, object, "anchor", range_position, &frame.p));
  int needs_axis = joint->kind == PABD_HINGE || joint->kind == PABD_SLIDER;
  if (needs_axis) {
    PABD_TRY(read_vec3(r, object, "axis", range_position, &axis));
  } else {
    PABD_TRY(read_vec3_or(r, object, "axis", range_position, &axis));
  }
  if (is_zero(axis)) {
    read_enter(r, "axis");
    return read_fail(r, "is zero (allowed: a direction, of any length)");
  }
  frame.q = rotation_to_axis((pabd_dvec3){0, 0, 1}, axis);
  if (read_has(object, "x_axis")) {
    PABD_TRY(read_vec3(r, object, "x_axis", range_position, &x_axis));
    // Turn about z until x lies in the plane of z and x_axis.
    pabd_dvec3 local = pabd_dquat_rotate(pabd_dquat_conj(frame.q), x_axis);
    local.z = 0.0;
    if (is_zero(local)) {
      read_enter(r, "x_axis");
      return read_fail(r, "is zero or along the axis (allowed: a direction across it)");
    }
    frame.q = pabd_dquat_mul(frame.q, rotation_to_axis((pabd_dvec3){1, 0, 0}, local));
  }
  pabd_joint_place(scene, joint, frame);
  // A start value of the free coordinate: turn or shift a's frame back by it.
  double start = 0.0;
  PABD_TRY(read_real_or(r, object, "start", range_any, &start));
  if (start != 0.0) {
    if (!needs_axis)
      return read_fail(r, "\"start\" is the free coordinate of a hinge or slider (a %s has none)",
                       joint_names[joint->kind]);
    pabd_dpose back = {{0, 0, 0}, {1, 0, 0, 0}};
    if (joint->kind == PABD_HINGE) {
      back.q = pabd_dquat_from_rotation_vector((pabd_dvec3){0, 0, -start});
    } else {
      back.p.z = -start;
    }
    joint->frame_a = pabd_dpose_mul(joint->frame_a, back);
    joint->frame_a.q = pabd_dquat_normalize(joint->frame_a.q);
  }
  return PABD_OK;
}

static pabd_status read_motor(reader *r, const cJSON *object, pabd_joint *joint) {
  static const char *const keys[] = {"kind", "target", "max", "amplitude", "frequency", "phase", NULL};
  const cJSON *motor;
  PABD_TRY(read_object_or(r, object, "motor", &motor));
  if (motor == NULL) return PABD_OK;
  int mark = read_enter(r, "motor"), kind;
  if (joint->kind != PABD_HINGE && joint->kind != PABD_SLIDER) {
    return read_fail(r, "only a hinge or a slider has a motor (this is a %s joint)", joint_names[joint->kind]);
  }
  PABD_TRY(read_keys(r, motor, keys));
  PABD_TRY(read_name(r, motor, "kind", motor_names, &kind));
  joint->motor = (pabd_motor_kind)kind;
  PABD_TRY(read_real_or(r, motor, "target", range_any, &joint->motor_target));
  PABD_TRY(read_real_or(r, motor, "max", range_not_negative, &joint->motor_max));
  PABD_TRY(read_real_or(r, motor, "amplitude", range_any, &joint->motor_amplitude));
  PABD_TRY(read_real_or(r, motor, "frequency", range_any, &joint->motor_frequency));
  PABD_TRY(read_real_or(r, motor, "phase", range_any, &joint->motor_phase));
  read_leave(r, mark);
  return PABD_OK;
}

static pabd_status read_one_joint(reader *r, const cJSON *object, pabd_scene *scene) {
  static const char *const keys[] = {"kind",     "name",   "a",      "b",       "anchor", "anchor_a",
                                     "anchor_b", "axis",   "x_axis", "start",   "rest",   "stiffness",
                                     "damping",  "limits", "motor",  "collide", "when",   NULL};
  int kind;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_name(r, object, "kind", joint_names, &kind));
  pabd_joint joint = pabd_joint_default((pabd_joint_kind)kind);
  PABD_TRY(read_text_or(r, object, "name", joint.name, sizeof joint.name));
  PABD_TRY(read_body(r, object, "a", scene, 1, &joint.body_a));
  PABD_TRY(read_body(r, object, "b", scene, 0, &joint.body_b));
  if (joint.body_a == joint.body_b)
    return read_fail(r, "joins a body to itself (allowed: two bodies, or the world and a body)");
  if ((joint.body_a == PABD_WORLD || scene->bodies[joint.body_a].motion != PABD_DYNAMIC) &&
      scene->bodies[joint.body_b].motion != PABD_DYNAMIC) {
    return read_fail(r, "joins two bodies that no force can move (at least one must be dynamic)");
  }
  PABD_TRY(place_joint(r, object, scene, &joint));
  int one_free = kind == PABD_HINGE || kind == PABD_SLIDER, two_points = kind == PABD_DISTANCE || kind == PABD_SPRING;
  if (read_has(object, "rest") && !one_free && !two_points)
    return read_fail(r, "a %s joint has no \"rest\"", joint_names[kind]);
  PABD_TRY(read_real_or(r, object, "rest", two_points ? (range){0.0, 1e6, 0, "m"} : range_position, &joint.rest));
  if ((read_has(object, "stiffness") || read_has(object, "damping")) && !one_free && kind != PABD_SPRING) {
    return read_fail(r, "a %s joint has no stiffness or damping (spring, hinge and slider have)", joint_names[kind]);
  }
  PABD_TRY(read_real_or(r, object, "stiffness", range_not_negative, &joint.stiffness));
  PABD_TRY(read_real_or(r, object, "damping", range_not_negative, &joint.damping));
  if (read_has(object, "limits")) {
    double limits[2];
    if (!one_free && kind != PABD_DISTANCE) {
      return read_fail(r, "a %s joint has no limits (hinge, slider and distance have)", joint_names[kind]);
    }
    PABD_TRY(
        read_reals(r, object, "limits", kind == PABD_DISTANCE ? (range){0.0, 1e6, 0, "m"} : range_position, 2, limits));
    if (limits[0] > limits[1]) {
      read_enter(r, "limits");
      return read_fail(r, "%g .. %g: the lower limit exceeds the upper", limits[0], limits[1]);
    }
    joint.has_limits = 1;
    joint.lower = limits[0];
    joint.upper = limits[1];
  }
  PABD_TRY(read_motor(r, object, &joint));
  int collide = 0;
  PABD_TRY(read_bool_or(r, object, "collide", &collide));
  joint.collide = collide;
  return pabd_scene_add_joint(scene, &joint) < 0 ? fail_memory(r) : PABD_OK;
}

static pabd_status read_one_load(reader *r, const cJSON *object, pabd_scene *scene) {
  static const char *const keys[] = {"body", "force", "torque", "start", "end", "when", NULL};
  pabd_load load;
  memset(&load, 0, sizeof load);
  load.end = INFINITY;
  PABD_TRY(read_keys(r, object, keys));
  PABD_TRY(read_body(r, object, "body", scene, 0, &load.body));
  PABD_TRY(read_vec3_or(r, object, "force", range_any, &load.force));
  PABD_TRY(read_vec3_or(r, object, "torque", range_any, &load.torque));
  PABD_TRY(read_real_or(r, object, "start", range_not_negative, &load.start));
  PABD_TRY(read_real_or(r, object, "end", range_not_negative, &load.end));
  if (load.end < load.start) return read_fail(r, "ends at %g s, before its start at %g s", load.end, load.start);
  return pabd_scene_add_load(scene, &load) < 0 ? fail_memory(r) : PABD_OK;
}

static pabd_status read_one_pair(reader *r, const cJSON *item, pabd_scene *scene) {
  int32_t pair[2];
  if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2) return read_fail(r, "must be a list of two bodies");
  for (int side = 0; side < 2; ++side) {
    int mark = read_enter_index(r, side);
    PABD_TRY(read_item_body(r, side == 0 ? item->child : item->child->next, scene, 0, &pair[side]));
    read_leave(r, mark);
  }
  return pabd_scene_ignore_pair(scene, pair[0], pair[1]) < 0 ? fail_memory(r) : PABD_OK;
}

/* ---- The whole scene ---- */

/* Calls for each wanted element of the list under `key`. */
#define FOR_EACH_WANTED(key, call)                         \
  do {                                                     \
    const cJSON *list_, *item;                             \
    PABD_TRY(read_array_or(r, top, key, &list_));          \
    int32_t index_ = 0;                                    \
    int outer_ = read_enter(r, key);                       \
    cJSON_ArrayForEach(item, list_) {                      \
      int wanted_, inner_ = read_enter_index(r, index_++); \
      PABD_TRY(read_when(r, item, &wanted_));              \
      if (wanted_) PABD_TRY(call);                         \
      read_leave(r, inner_);                               \
    }                                                      \
    read_leave(r, outer_);                                 \
  } while (0)

pabd_status read_scene(reader *r, const cJSON *top, pabd_scene *scene) {
  PABD_TRY(read_vec3_or(r, top, "gravity", (range){-1e5, 1e5, 0, "m/s^2"}, &scene->gravity));
  PABD_TRY(read_real_or(r, top, "frame_time", (range){1e-6, 1.0, 0, "s"}, &scene->frame_time));
  material_table materials;
  PABD_TRY(read_materials(r, top, &materials, scene));
  FOR_EACH_WANTED("bodies", read_one_body(r, item, &materials, scene));
  FOR_EACH_WANTED("generate", generate(r, item, materials.pointers, scene));
  PABD_TRY(read_index_names(r, scene, 1));
  FOR_EACH_WANTED("joints", read_one_joint(r, item, scene));
  PABD_TRY(read_index_names(r, scene, 0));
  FOR_EACH_WANTED("loads", read_one_load(r, item, scene));
  FOR_EACH_WANTED("ignore", read_one_pair(r, item, scene));
  if (scene->body_count == 0)
    return read_fail(r, "the case has no bodies (allowed: 1 .. %d, in \"bodies\" or by \"generate\")", CASE_BODY_MAX);
  pabd_error cause = {{0}};
  if (pabd_scene_check(scene, &cause) != PABD_OK) return read_fail(r, "%s", cause.text);
  return PABD_OK;
}
