/* Scenes as plain data: growable arrays, mass properties, filters, checks, and the small maths that users share.
 *
 * Volumes and inertias are closed forms; a convex hull is split into tetrahedra from its centroid, each integrated
 * exactly (the covariance of a tetrahedron with corners a, b, c, d about the origin is V/20 (sum of corner products +
 * product of the corner sums)). Principal axes by cyclic Jacobi rotations.
 * Invariant: a scene's counts never exceed its capacities, and a failed call leaves the scene as it was. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pabd_scene.h"

#define PI 3.14159265358979323846

/* ---- Status ---- */

const char *pabd_status_text(pabd_status status) {
  switch (status) {
#define STATUS_TEXT(name, text) \
  case name:                    \
    return text;
    PABD_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    default:
      return "unknown status";
  }
}

// In parentheses: for static analysis the name is a macro, see pabd_status.h.
pabd_status(pabd_fail)(pabd_error *error, pabd_status status, const char *format, ...) {
  if (error == NULL) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  // One line, whatever a file put into a name.
  for (char *c = error->text; *c != '\0'; ++c) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
  }
  return status;
}

/* ---- Maths ---- */

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

pabd_dvec3 pabd_dquat_rotate(pabd_dquat q, pabd_dvec3 v) {
  // v + 2 w (u x v) + 2 u x (u x v), u the vector part.
  pabd_dvec3 u = {q.x, q.y, q.z};
  pabd_dvec3 t = scale(2.0, cross(u, v));
  return add(add(v, scale(q.w, t)), cross(u, t));
}

pabd_dquat pabd_dquat_mul(pabd_dquat a, pabd_dquat b) {
  return (pabd_dquat){a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                      a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

pabd_dquat pabd_dquat_conj(pabd_dquat q) {
  return (pabd_dquat){q.w, -q.x, -q.y, -q.z};
}

pabd_dquat pabd_dquat_from_rotation_vector(pabd_dvec3 r) {
  double angle = sqrt(dot(r, r));
  // sin(angle/2)/angle; the series is exact to double below 1e-3 (next term angle^6/322560).
  double s =
      angle < 1e-3 ? 0.5 - angle * angle / 48.0 + angle * angle * angle * angle / 3840.0 : sin(0.5 * angle) / angle;
  return (pabd_dquat){cos(0.5 * angle), s * r.x, s * r.y, s * r.z};
}

pabd_dquat pabd_dquat_normalize(pabd_dquat q) {
  double n = sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  if (!(n > 0.0)) return (pabd_dquat){1, 0, 0, 0};
  return (pabd_dquat){q.w / n, q.x / n, q.y / n, q.z / n};
}

pabd_dpose pabd_dpose_mul(pabd_dpose a, pabd_dpose b) {
  return (pabd_dpose){pabd_dpose_apply(a, b.p), pabd_dquat_mul(a.q, b.q)};
}

pabd_dpose pabd_dpose_inverse(pabd_dpose a) {
  pabd_dquat q = pabd_dquat_conj(a.q);
  return (pabd_dpose){scale(-1.0, pabd_dquat_rotate(q, a.p)), q};
}

pabd_dvec3 pabd_dpose_apply(pabd_dpose a, pabd_dvec3 point) {
  return add(a.p, pabd_dquat_rotate(a.q, point));
}

/* ---- Building ---- */

/* `array` with room for `extra` more elements of `size` bytes, at least doubled when it must move; *capacity follows.
 * NULL when memory is out: the old array is then still valid. */
static void *reserved(void *array, int32_t count, int32_t extra, int32_t *capacity, size_t size) {
  assert(count >= 0 && extra >= 0);
  if (extra > INT32_MAX - count) return NULL;
  int32_t need = count + extra;
  if (need <= *capacity) return array;
  int32_t grown = *capacity < 8 ? 8 : *capacity;
  while (grown < need) grown = grown > INT32_MAX / 2 ? INT32_MAX : 2 * grown;
  if ((size_t)grown > SIZE_MAX / size) return NULL;
  void *moved = realloc(array, (size_t)grown * size);
  if (moved != NULL) *capacity = grown;
  return moved;
}

pabd_status pabd_scene_init(pabd_scene *scene) {
  memset(scene, 0, sizeof *scene);
  scene->gravity = (pabd_dvec3){0, 0, -9.81};
  scene->frame_time = 1.0 / 60.0;
  return pabd_scene_set_materials(scene, 1, 0.5, 0.0);
}

void pabd_scene_free(pabd_scene *scene) {
  if (scene == NULL) return;
  free(scene->bodies);
  free(scene->shapes);
  free(scene->joints);
  free(scene->loads);
  free(scene->vertices);
  free(scene->ignored);
  free(scene->friction);
  free(scene->restitution);
  memset(scene, 0, sizeof *scene);
}

pabd_status pabd_scene_set_materials(pabd_scene *scene, int32_t count, double friction, double restitution) {
  assert(count >= 1);
  size_t entries = (size_t)count * (size_t)count;
  double *f = malloc(entries * sizeof *f);
  double *r = malloc(entries * sizeof *r);
  if (f == NULL || r == NULL) {
    free(f);
    free(r);
    return PABD_ERR_MEMORY;
  }
  for (size_t i = 0; i < entries; ++i) {
    f[i] = friction;
    r[i] = restitution;
  }
  free(scene->friction);
  free(scene->restitution);
  scene->material_count = count;
  scene->friction = f;
  scene->restitution = r;
  return PABD_OK;
}

static const pabd_dpose identity_pose = {{0, 0, 0}, {1, 0, 0, 0}};

pabd_body pabd_body_default(void) {
  pabd_body body;
  memset(&body, 0, sizeof body);
  body.motion = PABD_DYNAMIC;
  body.pose = identity_pose;
  return body;
}

pabd_shape pabd_shape_default(pabd_shape_kind kind) {
  pabd_shape shape;
  memset(&shape, 0, sizeof shape);
  shape.kind = kind;
  shape.local = identity_pose;
  return shape;
}

pabd_joint pabd_joint_default(pabd_joint_kind kind) {
  pabd_joint joint;
  memset(&joint, 0, sizeof joint);
  joint.kind = kind;
  joint.body_a = PABD_WORLD;
  joint.frame_a = identity_pose;
  joint.frame_b = identity_pose;
  joint.motor_max = INFINITY;
  return joint;
}

int32_t pabd_scene_add_body(pabd_scene *scene, const pabd_body *body) {
  void *room = reserved(scene->bodies, scene->body_count, 1, &scene->body_capacity, sizeof *body);
  if (room == NULL) return -1;
  scene->bodies = room;
  scene->bodies[scene->body_count] = *body;
  return scene->body_count++;
}

int32_t pabd_scene_add_shape(pabd_scene *scene, const pabd_shape *shape) {
  assert(scene->shape_count == 0 || scene->shapes[scene->shape_count - 1].body <= shape->body);
  void *room = reserved(scene->shapes, scene->shape_count, 1, &scene->shape_capacity, sizeof *shape);
  if (room == NULL) return -1;
  scene->shapes = room;
  scene->shapes[scene->shape_count] = *shape;
  return scene->shape_count++;
}

int32_t pabd_scene_add_joint(pabd_scene *scene, const pabd_joint *joint) {
  void *room = reserved(scene->joints, scene->joint_count, 1, &scene->joint_capacity, sizeof *joint);
  if (room == NULL) return -1;
  scene->joints = room;
  scene->joints[scene->joint_count] = *joint;
  return scene->joint_count++;
}

int32_t pabd_scene_add_load(pabd_scene *scene, const pabd_load *load) {
  void *room = reserved(scene->loads, scene->load_count, 1, &scene->load_capacity, sizeof *load);
  if (room == NULL) return -1;
  scene->loads = room;
  scene->loads[scene->load_count] = *load;
  return scene->load_count++;
}

int32_t pabd_scene_add_vertices(pabd_scene *scene, const pabd_dvec3 *vertices, int32_t count) {
  assert(count > 0);
  void *room = reserved(scene->vertices, scene->vertex_count, count, &scene->vertex_capacity, sizeof *vertices);
  if (room == NULL) return -1;
  scene->vertices = room;
  int32_t first = scene->vertex_count;
  memcpy(scene->vertices + first, vertices, (size_t)count * sizeof *vertices);
  scene->vertex_count += count;
  return first;
}

int32_t pabd_scene_ignore_pair(pabd_scene *scene, int32_t body_a, int32_t body_b) {
  void *room = reserved(scene->ignored, scene->ignored_count, 1, &scene->ignored_capacity, sizeof *scene->ignored);
  if (room == NULL) return -1;
  scene->ignored = room;
  scene->ignored[scene->ignored_count][0] = body_a;
  scene->ignored[scene->ignored_count][1] = body_b;
  return scene->ignored_count++;
}

int32_t pabd_scene_find_body(const pabd_scene *scene, const char *name) {
  for (int32_t i = 0; i < scene->body_count; ++i) {
    if (name[0] != '\0' && strncmp(scene->bodies[i].name, name, PABD_NAME_SIZE) == 0) return i;
  }
  return -1;
}

int32_t pabd_scene_find_joint(const pabd_scene *scene, const char *name) {
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    if (name[0] != '\0' && strncmp(scene->joints[j].name, name, PABD_NAME_SIZE) == 0) return j;
  }
  return -1;
}

static pabd_dpose body_pose(const pabd_scene *scene, int32_t body) {
  assert(body == PABD_WORLD || (body >= 0 && body < scene->body_count));
  return body == PABD_WORLD ? identity_pose : scene->bodies[body].pose;
}

void pabd_joint_place(const pabd_scene *scene, pabd_joint *joint, pabd_dpose world_frame) {
  joint->frame_a = pabd_dpose_mul(pabd_dpose_inverse(body_pose(scene, joint->body_a)), world_frame);
  joint->frame_b = pabd_dpose_mul(pabd_dpose_inverse(body_pose(scene, joint->body_b)), world_frame);
  joint->frame_a.q = pabd_dquat_normalize(joint->frame_a.q);
  joint->frame_b.q = pabd_dquat_normalize(joint->frame_b.q);
}

/* ---- Mass properties ---- */

typedef struct hull_face {
  int32_t a, b, c; /* counter-clockwise seen from outside */
} hull_face;

typedef struct hull {
  int32_t face_count, face_capacity;
  hull_face *faces;
} hull;

static double face_distance(const pabd_dvec3 *v, hull_face f, pabd_dvec3 point, double *area) {
  pabd_dvec3 n = cross(sub(v[f.b], v[f.a]), sub(v[f.c], v[f.a]));
  double length = sqrt(dot(n, n));
  if (area != NULL) *area = 0.5 * length;
  return length > 0.0 ? dot(n, sub(point, v[f.a])) / length : 0.0;
}

static int push_face(hull *h, int32_t a, int32_t b, int32_t c) {
  void *room = reserved(h->faces, h->face_count, 1, &h->face_capacity, sizeof *h->faces);
  if (room == NULL) return 0;
  h->faces = room;
  h->faces[h->face_count++] = (hull_face){a, b, c};
  return 1;
}

/* First four corners of the hull: two far apart, one far from their line, one far from their plane. 0 if flat. */
static int first_tetrahedron(const pabd_dvec3 *v, int32_t count, double tolerance, int32_t corner[4]) {
  corner[0] = 0;
  double best = 0.0;
  for (int32_t i = 0; i < count; ++i) {
    pabd_dvec3 d = sub(v[i], v[0]);
    if (dot(d, d) > best) best = dot(d, d), corner[1] = i;
  }
  pabd_dvec3 axis = sub(v[corner[1]], v[0]);
  double length = sqrt(best);
  if (!(length > tolerance)) return 0;
  best = 0.0;
  for (int32_t i = 0; i < count; ++i) {
    pabd_dvec3 n = cross(axis, sub(v[i], v[0]));
    if (dot(n, n) > best) best = dot(n, n), corner[2] = i;
  }
  if (!(sqrt(best) > tolerance * length)) return 0;
  best = 0.0;
  hull_face base = {corner[0], corner[1], corner[2]};
  for (int32_t i = 0; i < count; ++i) {
    double d = fabs(face_distance(v, base, v[i], NULL));
    if (d > best) best = d, corner[3] = i;
  }
  return best > tolerance;
}

/* Convex hull by adding points one by one: the faces that see the point are replaced by a fan from their rim. Points
 * within the tolerance of a face do not see it, so coplanar points make flat fans and nothing degenerate.
 * Returns 1, 0 when the points are flat, -1 when memory is out. */
static int build_hull(const pabd_dvec3 *v, int32_t count, hull *h) {
  memset(h, 0, sizeof *h);
  if (count < 4) return 0;
  double size = 0.0;
  for (int32_t i = 0; i < count; ++i) {
    pabd_dvec3 d = sub(v[i], v[0]);
    size = fmax(size, sqrt(dot(d, d)));
  }
  double tolerance = 1e-12 * size;  // a few thousand rounding errors of a distance
  int32_t k[4] = {0, 0, 0, 0};
  if (!first_tetrahedron(v, count, 1e3 * tolerance, k)) return 0;
  if (face_distance(v, (hull_face){k[0], k[1], k[2]}, v[k[3]], NULL) > 0.0) {
    int32_t swap = k[1];
    k[1] = k[2];
    k[2] = swap;
  }
  if (!push_face(h, k[0], k[1], k[2]) || !push_face(h, k[0], k[3], k[1]) || !push_face(h, k[1], k[3], k[2]) ||
      !push_face(h, k[2], k[3], k[0])) {
    return -1;
  }
  hull fan = {0};
  for (int32_t i = 0; i < count; ++i) {
    // Split the faces into those that see the point (dropped) and the rest (kept).
    int32_t kept = 0;
    fan.face_count = 0;
    for (int32_t f = 0; f < h->face_count; ++f) {
      if (face_distance(v, h->faces[f], v[i], NULL) > tolerance) {
        if (!push_face(&fan, h->faces[f].a, h->faces[f].b, h->faces[f].c)) goto out_of_memory;
      } else {
        h->faces[kept++] = h->faces[f];
      }
    }
    h->face_count = kept;
    // An edge of a dropped face is on the rim when no dropped face has it the other way round.
    int32_t dropped = fan.face_count;
    for (int32_t f = 0; f < dropped; ++f) {
      int32_t corner[4] = {fan.faces[f].a, fan.faces[f].b, fan.faces[f].c, fan.faces[f].a};
      for (int e = 0; e < 3; ++e) {
        int inner = 0;
        for (int32_t g = 0; g < dropped && !inner; ++g) {
          hull_face o = fan.faces[g];
          inner = (o.a == corner[e + 1] && o.b == corner[e]) || (o.b == corner[e + 1] && o.c == corner[e]) ||
                  (o.c == corner[e + 1] && o.a == corner[e]);
        }
        if (!inner && !push_face(h, corner[e], corner[e + 1], i)) goto out_of_memory;
      }
    }
  }
  free(fan.faces);
  return 1;
out_of_memory:
  free(fan.faces);
  return -1;
}

/* Adds the tetrahedron's volume, first moment and second moment (xx, yy, zz, xy, xz, yz of integral x x^T), all about
 * the origin. */
static void add_tetrahedron(const pabd_dvec3 corner[4], double *volume, pabd_dvec3 *first, double second[6]) {
  double v = dot(sub(corner[1], corner[0]), cross(sub(corner[2], corner[0]), sub(corner[3], corner[0]))) / 6.0;
  pabd_dvec3 sum = {0, 0, 0};
  for (int i = 0; i < 4; ++i) sum = add(sum, corner[i]);
  *volume += v;
  *first = add(*first, scale(0.25 * v, sum));
  double w = v / 20.0;
  second[0] += w * sum.x * sum.x, second[1] += w * sum.y * sum.y, second[2] += w * sum.z * sum.z;
  second[3] += w * sum.x * sum.y, second[4] += w * sum.x * sum.z, second[5] += w * sum.y * sum.z;
  for (int i = 0; i < 4; ++i) {
    pabd_dvec3 c = corner[i];
    second[0] += w * c.x * c.x, second[1] += w * c.y * c.y, second[2] += w * c.z * c.z;
    second[3] += w * c.x * c.y, second[4] += w * c.x * c.z, second[5] += w * c.y * c.z;
  }
}

/* Moments of a hull at unit density in its own frame; zero when it is flat or memory is out. */
static pabd_mass_moments hull_moments(const pabd_dvec3 *v, int32_t count) {
  pabd_mass_moments m;
  memset(&m, 0, sizeof m);
  hull h;
  if (build_hull(v, count, &h) == 1) {
    pabd_dvec3 inside = {0, 0, 0};  // any inner point; near the hull, so that no digits cancel
    for (int32_t i = 0; i < count; ++i) inside = add(inside, scale(1.0 / count, v[i]));
    double volume = 0.0, second[6] = {0};
    pabd_dvec3 first = {0, 0, 0};
    for (int32_t f = 0; f < h.face_count; ++f) {
      pabd_dvec3 corner[4] = {
          {0, 0, 0}, sub(v[h.faces[f].a], inside), sub(v[h.faces[f].b], inside), sub(v[h.faces[f].c], inside)};
      add_tetrahedron(corner, &volume, &first, second);
    }
    pabd_dvec3 c = scale(1.0 / volume, first);
    double cxx = second[0] - volume * c.x * c.x, cyy = second[1] - volume * c.y * c.y;
    double czz = second[2] - volume * c.z * c.z;
    m.mass = volume;
    m.center = add(inside, c);
    m.inertia[0] = cyy + czz;
    m.inertia[1] = cxx + czz;
    m.inertia[2] = cxx + cyy;
    m.inertia[3] = -(second[3] - volume * c.x * c.y);
    m.inertia[4] = -(second[4] - volume * c.x * c.z);
    m.inertia[5] = -(second[5] - volume * c.y * c.z);
  }
  free(h.faces);
  return m;
}

double pabd_shape_volume(const pabd_scene *scene, const pabd_shape *shape) {
  double r = shape->radius, l = shape->half_length;
  switch (shape->kind) {
    case PABD_SPHERE:
      return 4.0 / 3.0 * PI * r * r * r;
    case PABD_CAPSULE:
      return PI * r * r * (2.0 * l + 4.0 / 3.0 * r);
    case PABD_BOX:
      return 8.0 * shape->half.x * shape->half.y * shape->half.z;
    case PABD_CYLINDER:
      return 2.0 * PI * r * r * l;
    case PABD_HULL:
      return hull_moments(scene->vertices + shape->first_vertex, shape->vertex_count).mass;
    default:
      return 0.0;
  }
}

pabd_dvec3 pabd_shape_inertia(const pabd_shape *shape, double mass) {
  double r = shape->radius, l = shape->half_length;
  switch (shape->kind) {
    case PABD_SPHERE: {
      double i = 0.4 * mass * r * r;
      return (pabd_dvec3){i, i, i};
    }
    case PABD_CAPSULE: {
      // Cylinder and two half balls; a half ball's centre of mass lies 3/8 r beyond the cylinder's end, and its moment
      // about the capsule's centre comes to (2/5 r^2 + l^2 + 3/4 l r) a mass.
      double ends = mass * (4.0 / 3.0 * r) / (2.0 * l + 4.0 / 3.0 * r), middle = mass - ends;
      double along = middle * 0.5 * r * r + ends * 0.4 * r * r;
      double across = middle * (0.25 * r * r + l * l / 3.0) + ends * (0.4 * r * r + l * l + 0.75 * l * r);
      return (pabd_dvec3){across, across, along};
    }
    case PABD_BOX: {
      double x = shape->half.x * shape->half.x, y = shape->half.y * shape->half.y, z = shape->half.z * shape->half.z;
      return (pabd_dvec3){mass / 3.0 * (y + z), mass / 3.0 * (x + z), mass / 3.0 * (x + y)};
    }
    case PABD_CYLINDER: {
      double across = mass * (0.25 * r * r + l * l / 3.0);
      return (pabd_dvec3){across, across, 0.5 * mass * r * r};
    }
    default:
      return (pabd_dvec3){0, 0, 0};  // a hull's axes are not its frame's: pabd_shape_mass_moments
  }
}

static void matrix_from_quat(pabd_dquat q, double m[3][3]) {
  pabd_dvec3 x = pabd_dquat_rotate(q, (pabd_dvec3){1, 0, 0});
  pabd_dvec3 y = pabd_dquat_rotate(q, (pabd_dvec3){0, 1, 0});
  pabd_dvec3 z = pabd_dquat_rotate(q, (pabd_dvec3){0, 0, 1});
  double columns[3][3] = {{x.x, y.x, z.x}, {x.y, y.y, z.y}, {x.z, y.z, z.z}};
  memcpy(m, columns, sizeof columns);
}

/* I -> R I R^T for the packed tensor. */
static void rotate_tensor(pabd_dquat q, double t[6]) {
  double full[3][3] = {{t[0], t[3], t[4]}, {t[3], t[1], t[5]}, {t[4], t[5], t[2]}}, r[3][3], out[3][3] = {{0}};
  matrix_from_quat(q, r);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) {
        for (int l = 0; l < 3; ++l) out[i][j] += r[i][k] * full[k][l] * r[j][l];
      }
    }
  }
  t[0] = out[0][0], t[1] = out[1][1], t[2] = out[2][2], t[3] = out[0][1], t[4] = out[0][2], t[5] = out[1][2];
}

pabd_mass_moments pabd_shape_mass_moments(const pabd_scene *scene, const pabd_shape *shape, double density) {
  pabd_mass_moments m;
  memset(&m, 0, sizeof m);
  if (shape->kind == PABD_HULL) {
    m = hull_moments(scene->vertices + shape->first_vertex, shape->vertex_count);
    m.mass *= density;
    for (int i = 0; i < 6; ++i) m.inertia[i] *= density;
  } else {
    m.mass = density * pabd_shape_volume(scene, shape);
    pabd_dvec3 inertia = pabd_shape_inertia(shape, m.mass);
    m.inertia[0] = inertia.x, m.inertia[1] = inertia.y, m.inertia[2] = inertia.z;
  }
  m.center = pabd_dpose_apply(shape->local, m.center);
  pabd_dquat q = shape->local.q;
  if (q.x != 0.0 || q.y != 0.0 || q.z != 0.0) rotate_tensor(q, m.inertia);
  return m;
}

pabd_mass_moments pabd_mass_moments_add(pabd_mass_moments a, pabd_mass_moments b) {
  pabd_mass_moments sum = a;
  sum.mass = a.mass + b.mass;
  if (!(sum.mass > 0.0)) return sum;
  sum.center = scale(1.0 / sum.mass, add(scale(a.mass, a.center), scale(b.mass, b.center)));
  // Parallel axes, both at once: the reduced mass times the squared distance of the two centres.
  pabd_dvec3 d = sub(b.center, a.center);
  double reduced = a.mass * b.mass / sum.mass;
  double shift[6] = {
      d.y * d.y + d.z * d.z, d.x * d.x + d.z * d.z, d.x * d.x + d.y * d.y, -d.x * d.y, -d.x * d.z, -d.y * d.z};
  for (int i = 0; i < 6; ++i) sum.inertia[i] = a.inertia[i] + b.inertia[i] + reduced * shift[i];
  return sum;
}

pabd_dvec3 pabd_mass_moments_principal(const pabd_mass_moments *moments, pabd_dquat *rotation) {
  const double *t = moments->inertia;
  double a[3][3] = {{t[0], t[3], t[4]}, {t[3], t[1], t[5]}, {t[4], t[5], t[2]}};
  pabd_dquat q = {1, 0, 0, 0};
  double size = fabs(a[0][0]) + fabs(a[1][1]) + fabs(a[2][2]);
  for (int pass = 0; pass < 32; ++pass) {
    double off = fabs(a[0][1]) + fabs(a[0][2]) + fabs(a[1][2]);
    if (!(off > 1e-15 * size)) break;  // below rounding of the diagonal
    for (int k = 0; k < 3; ++k) {
      // Rotate about axis k so that the entry of the other two axes vanishes; the smaller angle, so axes stay near
      // theirs.
      int i = (k + 1) % 3, j = (k + 2) % 3;
      if (!(fabs(a[i][j]) > 1e-17 * size)) continue;
      double angle = 0.5 * atan2(2.0 * a[i][j], a[i][i] - a[j][j]);
      if (angle > 0.25 * PI) angle -= 0.5 * PI;
      if (angle < -0.25 * PI) angle += 0.5 * PI;
      double c = cos(angle), s = sin(angle);
      double r[3][3] = {{0}}, out[3][3] = {{0}};
      r[k][k] = 1.0, r[i][i] = c, r[j][j] = c, r[j][i] = s, r[i][j] = -s;
      for (int m = 0; m < 3; ++m) {
        for (int n = 0; n < 3; ++n) {
          for (int o = 0; o < 3; ++o) {
            for (int p = 0; p < 3; ++p) out[m][n] += r[o][m] * a[o][p] * r[p][n];
          }
        }
      }
      memcpy(a, out, sizeof a);
      double half[3] = {0, 0, 0};
      half[k] = sin(0.5 * angle);
      q = pabd_dquat_normalize(pabd_dquat_mul(q, (pabd_dquat){cos(0.5 * angle), half[0], half[1], half[2]}));
    }
  }
  *rotation = q;
  return (pabd_dvec3){a[0][0], a[1][1], a[2][2]};
}

pabd_status pabd_scene_mass_from_densities(pabd_scene *scene, int32_t body, const double *densities) {
  assert(body >= 0 && body < scene->body_count);
  // The body's shapes are one range, usually the last one.
  int32_t end = scene->shape_count;
  while (end > 0 && scene->shapes[end - 1].body > body) --end;
  int32_t first = end;
  while (first > 0 && scene->shapes[first - 1].body == body) --first;

  pabd_mass_moments sum;
  memset(&sum, 0, sizeof sum);
  for (int32_t k = first; k < end; ++k) {
    pabd_mass_moments part = pabd_shape_mass_moments(scene, &scene->shapes[k], densities[k - first]);
    sum = sum.mass > 0.0 ? pabd_mass_moments_add(sum, part) : part;
  }
  pabd_body *b = &scene->bodies[body];
  pabd_dpose principal;
  pabd_dvec3 inertia = pabd_mass_moments_principal(&sum, &principal.q);
  if (!(sum.mass > 0.0) || !(inertia.x > 0.0) || !(inertia.y > 0.0) || !(inertia.z > 0.0)) return PABD_ERR_INPUT;
  principal.p = sum.center;
  pabd_dpose inverse = pabd_dpose_inverse(principal);
  b->mass = sum.mass;
  b->inertia = inertia;
  // A body that already has its principal frame keeps its numbers to the last bit.
  if (principal.p.x == 0.0 && principal.p.y == 0.0 && principal.p.z == 0.0 && principal.q.w == 1.0) return PABD_OK;
  // The velocity was that of the old origin.
  b->linear = add(b->linear, cross(b->angular, pabd_dquat_rotate(b->pose.q, principal.p)));
  b->pose = pabd_dpose_mul(b->pose, principal);
  b->pose.q = pabd_dquat_normalize(b->pose.q);
  for (int32_t k = first; k < end; ++k) {
    scene->shapes[k].local = pabd_dpose_mul(inverse, scene->shapes[k].local);
    scene->shapes[k].local.q = pabd_dquat_normalize(scene->shapes[k].local.q);
  }
  return PABD_OK;
}

pabd_status pabd_scene_mass_from_density(pabd_scene *scene, int32_t body, double density) {
  int32_t count = 0;
  for (int32_t k = scene->shape_count - 1; k >= 0 && scene->shapes[k].body >= body; --k)
    count += scene->shapes[k].body == body;
  double few[8] = {0}, *densities = count <= 8 ? few : malloc((size_t)count * sizeof *densities);
  if (densities == NULL) return PABD_ERR_MEMORY;
  for (int32_t k = 0; k < count; ++k) densities[k] = density;
  pabd_status status = pabd_scene_mass_from_densities(scene, body, densities);
  if (densities != few) free(densities);
  return status;
}

/* ---- Filters ---- */

int pabd_scene_ignores(const pabd_scene *scene, int32_t body_a, int32_t body_b) {
  if (body_a == body_b) return 1;
  const pabd_body *a = &scene->bodies[body_a], *b = &scene->bodies[body_b];
  if (a->motion != PABD_DYNAMIC && b->motion != PABD_DYNAMIC) return 1;
  if (a->world != b->world) return 1;
  if (a->group > 0 && a->group == b->group) return 1;
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    if (joint->collide) continue;
    if ((joint->body_a == body_a && joint->body_b == body_b) || (joint->body_a == body_b && joint->body_b == body_a))
      return 1;
  }
  for (int32_t k = 0; k < scene->ignored_count; ++k) {
    const int32_t *pair = scene->ignored[k];
    if ((pair[0] == body_a && pair[1] == body_b) || (pair[0] == body_b && pair[1] == body_a)) return 1;
  }
  return 0;
}

static int compare_pairs(const void *left, const void *right) {
  const int32_t *a = left, *b = right;
  if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
  return (a[1] > b[1]) - (a[1] < b[1]);
}

pabd_status pabd_scene_filter_pairs(const pabd_scene *scene, int32_t (**pairs)[2], int32_t *count) {
  *pairs = NULL;
  *count = 0;
  size_t most = (size_t)scene->joint_count + (size_t)scene->ignored_count;
  if (most > INT32_MAX) return PABD_ERR_MEMORY;
  int32_t(*list)[2] = malloc((most > 0 ? most : 1) * sizeof *list);
  if (list == NULL) return PABD_ERR_MEMORY;
  int32_t n = 0;
  for (int32_t j = 0; j < scene->joint_count + scene->ignored_count; ++j) {
    int32_t a, b;
    if (j < scene->joint_count) {
      if (scene->joints[j].collide) continue;
      a = scene->joints[j].body_a, b = scene->joints[j].body_b;
    } else {
      a = scene->ignored[j - scene->joint_count][0], b = scene->ignored[j - scene->joint_count][1];
    }
    if (a == PABD_WORLD || b == PABD_WORLD || a == b) continue;
    list[n][0] = a < b ? a : b;
    list[n][1] = a < b ? b : a;
    ++n;
  }
  qsort(list, (size_t)n, sizeof *list, compare_pairs);
  int32_t unique = 0;
  for (int32_t k = 0; k < n; ++k) {
    if (unique > 0 && compare_pairs(list[unique - 1], list[k]) == 0) continue;
    list[unique][0] = list[k][0];
    list[unique][1] = list[k][1];
    ++unique;
  }
  *pairs = list;
  *count = unique;
  return PABD_OK;
}

/* ---- Checks ---- */

static int finite3(pabd_dvec3 v) {
  return isfinite(v.x) && isfinite(v.y) && isfinite(v.z);
}

static int zero3(pabd_dvec3 v) {
  return v.x == 0.0 && v.y == 0.0 && v.z == 0.0;
}

static int unit4(pabd_dquat q) {
  return fabs(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z - 1.0) <= 1e-9;  // also false for NaN
}

static int valid_pose(pabd_dpose p) {
  return finite3(p.p) && unit4(p.q);
}

/* "body 7 'bob'" or "body 7". Returns `buffer`. */
static const char *label(char buffer[64], const char *what, int32_t index, const char *name) {
  if (name != NULL && name[0] != '\0') {
    snprintf(buffer, 64, "%s %d '%.*s'", what, (int)index, PABD_NAME_SIZE - 1, name);
  } else {
    snprintf(buffer, 64, "%s %d", what, (int)index);
  }
  return buffer;
}

static pabd_status check_body(const pabd_scene *scene, int32_t i, pabd_error *error) {
  const pabd_body *b = &scene->bodies[i];
  char text[64];
  if (memchr(b->name, '\0', PABD_NAME_SIZE) == NULL) {
    return pabd_fail(error, PABD_ERR_INPUT, "body %d: its name is not terminated", (int)i);
  }
  label(text, "body", i, b->name);
  if ((int)b->motion < 0 || b->motion >= PABD_MOTION_COUNT) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: motion = %d is no motion (dynamic 0, static 1, kinematic 2)", text,
                     (int)b->motion);
  }
  if (!finite3(b->pose.p)) return pabd_fail(error, PABD_ERR_INPUT, "%s: its position is not finite", text);
  if (!unit4(b->pose.q)) return pabd_fail(error, PABD_ERR_INPUT, "%s: its rotation is not a unit quaternion", text);
  if (!finite3(b->linear) || !finite3(b->angular)) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: its velocity is not finite", text);
  }
  if (b->motion == PABD_STATIC && (!zero3(b->linear) || !zero3(b->angular))) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: a static body has no velocity (kinematic ones have)", text);
  }
  if (b->group < 0 || b->world < 0) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: group = %d and world = %d must be >= 0", text, (int)b->group,
                     (int)b->world);
  }
  if (b->motion != PABD_DYNAMIC) return PABD_OK;
  if (!(b->mass > 0.0) || !isfinite(b->mass)) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: mass = %g must be > 0 kg and finite", text, b->mass);
  }
  pabd_dvec3 m = b->inertia;
  if (!finite3(m) || !(m.x > 0.0) || !(m.y > 0.0) || !(m.z > 0.0)) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: inertia = (%g, %g, %g) must be > 0 kg m^2 and finite", text, m.x, m.y,
                     m.z);
  }
  // A flat body sits on the limit; 1e-9 covers the rounding of its moments.
  double sum = m.x + m.y + m.z, largest = fmax(m.x, fmax(m.y, m.z));
  if (2.0 * largest > sum * (1.0 + 1e-9)) {
    return pabd_fail(error, PABD_ERR_INPUT,
                     "%s: inertia = (%g, %g, %g): no solid has one moment above the sum of the others", text, m.x, m.y,
                     m.z);
  }
  return PABD_OK;
}

static pabd_status check_shape(const pabd_scene *scene, int32_t k, pabd_error *error) {
  const pabd_shape *s = &scene->shapes[k];
  if (s->body < 0 || s->body >= scene->body_count) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: body = %d must be 0 .. %d", (int)k, (int)s->body,
                     (int)scene->body_count - 1);
  }
  if (k > 0 && scene->shapes[k - 1].body > s->body) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: shapes must be in the order of their bodies", (int)k);
  }
  if ((int)s->kind < 0 || s->kind >= PABD_SHAPE_KIND_COUNT) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: kind = %d is no shape", (int)k, (int)s->kind);
  }
  if (s->material < 0 || s->material >= scene->material_count) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: material = %d must be 0 .. %d", (int)k, (int)s->material,
                     (int)scene->material_count - 1);
  }
  if (!valid_pose(s->local)) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: its frame is not finite or its quaternion is not unit", (int)k);
  }
  int round = s->kind == PABD_SPHERE || s->kind == PABD_CAPSULE || s->kind == PABD_CYLINDER;
  if (round && (!(s->radius > 0.0) || !isfinite(s->radius))) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: radius = %g must be > 0 m and finite", (int)k, s->radius);
  }
  if ((s->kind == PABD_CAPSULE || s->kind == PABD_CYLINDER) && (!(s->half_length > 0.0) || !isfinite(s->half_length))) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: half_length = %g must be > 0 m and finite", (int)k,
                     s->half_length);
  }
  if (s->kind == PABD_BOX && (!finite3(s->half) || !(s->half.x > 0.0) || !(s->half.y > 0.0) || !(s->half.z > 0.0))) {
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: half = (%g, %g, %g) must be > 0 m and finite", (int)k, s->half.x,
                     s->half.y, s->half.z);
  }
  if (s->kind == PABD_PLANE && scene->bodies[s->body].motion != PABD_STATIC) {
    char text[64];
    return pabd_fail(error, PABD_ERR_INPUT, "shape %d: a plane belongs to a static body, and %s is not static", (int)k,
                     label(text, "body", s->body, scene->bodies[s->body].name));
  }
  if (s->kind == PABD_HULL) {
    int64_t last = (int64_t)s->first_vertex + s->vertex_count;
    if (s->first_vertex < 0 || s->vertex_count < 4 || last > scene->vertex_count) {
      return pabd_fail(error, PABD_ERR_INPUT, "shape %d: a hull needs at least 4 vertices out of the scene's %d",
                       (int)k, (int)scene->vertex_count);
    }
    for (int32_t i = s->first_vertex; i < last; ++i) {
      if (!finite3(scene->vertices[i]))
        return pabd_fail(error, PABD_ERR_INPUT, "shape %d: vertex %d is not finite", (int)k, (int)i);
    }
    if (!(pabd_shape_volume(scene, s) > 0.0)) {
      return pabd_fail(error, PABD_ERR_INPUT, "shape %d: the vertices of the hull lie in a plane", (int)k);
    }
  }
  return PABD_OK;
}

static pabd_status check_joint(const pabd_scene *scene, int32_t j, pabd_error *error) {
  const pabd_joint *joint = &scene->joints[j];
  char text[64];
  if (memchr(joint->name, '\0', PABD_NAME_SIZE) == NULL) {
    return pabd_fail(error, PABD_ERR_INPUT, "joint %d: its name is not terminated", (int)j);
  }
  label(text, "joint", j, joint->name);
  if ((int)joint->kind < 0 || joint->kind >= PABD_JOINT_KIND_COUNT) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: kind = %d is no joint", text, (int)joint->kind);
  }
  if (joint->body_b < 0 || joint->body_b >= scene->body_count || joint->body_a < PABD_WORLD ||
      joint->body_a >= scene->body_count) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: bodies %d and %d must be 0 .. %d (the first may be the world, -1)",
                     text, (int)joint->body_a, (int)joint->body_b, (int)scene->body_count - 1);
  }
  if (joint->body_a == joint->body_b)
    return pabd_fail(error, PABD_ERR_INPUT, "%s: it joins body %d to itself", text, (int)joint->body_a);
  const pabd_body *bodies = scene->bodies;
  int a_moves = joint->body_a != PABD_WORLD && bodies[joint->body_a].motion == PABD_DYNAMIC;
  if (!a_moves && bodies[joint->body_b].motion != PABD_DYNAMIC) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: it joins two bodies that no force can move; one must be dynamic",
                     text);
  }
  if (joint->body_a != PABD_WORLD && bodies[joint->body_a].world != bodies[joint->body_b].world) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: it joins bodies of two worlds", text);
  }
  if (!valid_pose(joint->frame_a) || !valid_pose(joint->frame_b)) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: a frame is not finite or its quaternion is not unit", text);
  }
  if (!isfinite(joint->rest) || ((joint->kind == PABD_DISTANCE || joint->kind == PABD_SPRING) && joint->rest < 0.0)) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: rest = %g must be finite, and >= 0 m between two points", text,
                     joint->rest);
  }
  if (!(joint->stiffness >= 0.0) || !(joint->damping >= 0.0) || !isfinite(joint->stiffness) ||
      !isfinite(joint->damping)) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: stiffness = %g and damping = %g must be >= 0 and finite", text,
                     joint->stiffness, joint->damping);
  }
  int one_free = joint->kind == PABD_HINGE || joint->kind == PABD_SLIDER;
  if ((joint->stiffness > 0.0 || joint->damping > 0.0) && !one_free && joint->kind != PABD_SPRING) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: only springs, hinges and sliders have stiffness and damping", text);
  }
  if (joint->has_limits) {
    if (!one_free && joint->kind != PABD_DISTANCE) {
      return pabd_fail(error, PABD_ERR_INPUT, "%s: only hinges, sliders and distance joints have limits", text);
    }
    if (isnan(joint->lower) || isnan(joint->upper) || joint->lower > joint->upper) {
      return pabd_fail(error, PABD_ERR_INPUT, "%s: limits %g .. %g: the lower must not exceed the upper", text,
                       joint->lower, joint->upper);
    }
    if (joint->kind == PABD_DISTANCE && joint->lower < 0.0) {
      return pabd_fail(error, PABD_ERR_INPUT, "%s: lower limit %g of a distance must be >= 0 m", text, joint->lower);
    }
  }
  if ((int)joint->motor < 0 || joint->motor >= PABD_MOTOR_KIND_COUNT) {
    return pabd_fail(error, PABD_ERR_INPUT, "%s: motor = %d is no motor", text, (int)joint->motor);
  }
  if (joint->motor != PABD_MOTOR_NONE) {
    if (!one_free) return pabd_fail(error, PABD_ERR_INPUT, "%s: only hinges and sliders have motors", text);
    if (!(joint->motor_max >= 0.0)) {
      return pabd_fail(error, PABD_ERR_INPUT, "%s: motor_max = %g must be >= 0", text, joint->motor_max);
    }
    if (!isfinite(joint->motor_target) || !isfinite(joint->motor_amplitude) || !isfinite(joint->motor_frequency) ||
        !isfinite(joint->motor_phase)) {
      return pabd_fail(error, PABD_ERR_INPUT, "%s: a number of its motor is not finite", text);
    }
  }
  return PABD_OK;
}

pabd_status pabd_scene_check(const pabd_scene *scene, pabd_error *error) {
  if (error != NULL) error->text[0] = '\0';
  if (!finite3(scene->gravity)) return pabd_fail(error, PABD_ERR_INPUT, "gravity is not finite");
  if (!(scene->frame_time > 0.0) || !isfinite(scene->frame_time)) {
    return pabd_fail(error, PABD_ERR_INPUT, "frame_time = %g must be > 0 s", scene->frame_time);
  }
  if (scene->body_count < 1) return pabd_fail(error, PABD_ERR_INPUT, "the scene has no bodies");
  if (scene->material_count < 1) return pabd_fail(error, PABD_ERR_INPUT, "the scene has no materials");
  for (int32_t a = 0; a < scene->material_count; ++a) {
    for (int32_t b = 0; b < scene->material_count; ++b) {
      size_t at = (size_t)a * scene->material_count + b, mirror = (size_t)b * scene->material_count + a;
      double f = scene->friction[at], r = scene->restitution[at];
      if (!(f >= 0.0) || !isfinite(f)) {
        return pabd_fail(error, PABD_ERR_INPUT, "materials %d and %d: friction = %g must be >= 0 and finite", (int)a,
                         (int)b, f);
      }
      if (!(r >= 0.0 && r <= 1.0)) {
        return pabd_fail(error, PABD_ERR_INPUT, "materials %d and %d: restitution = %g must be 0 .. 1", (int)a, (int)b,
                         r);
      }
      if (f != scene->friction[mirror] || r != scene->restitution[mirror]) {
        return pabd_fail(error, PABD_ERR_INPUT, "materials %d and %d: the table is not symmetric", (int)a, (int)b);
      }
    }
  }
  for (int32_t i = 0; i < scene->body_count; ++i) PABD_TRY(check_body(scene, i, error));
  for (int32_t k = 0; k < scene->shape_count; ++k) PABD_TRY(check_shape(scene, k, error));
  for (int32_t j = 0; j < scene->joint_count; ++j) PABD_TRY(check_joint(scene, j, error));
  for (int32_t l = 0; l < scene->load_count; ++l) {
    const pabd_load *load = &scene->loads[l];
    if (load->body < 0 || load->body >= scene->body_count) {
      return pabd_fail(error, PABD_ERR_INPUT, "load %d: body = %d must be 0 .. %d", (int)l, (int)load->body,
                       (int)scene->body_count - 1);
    }
    if (!finite3(load->force) || !finite3(load->torque)) {
      return pabd_fail(error, PABD_ERR_INPUT, "load %d: its force or torque is not finite", (int)l);
    }
    if (isnan(load->start) || isnan(load->end) || load->start > load->end) {
      return pabd_fail(error, PABD_ERR_INPUT, "load %d: it ends at %g s, before its start at %g s", (int)l, load->end,
                       load->start);
    }
  }
  for (int32_t k = 0; k < scene->ignored_count; ++k) {
    for (int side = 0; side < 2; ++side) {
      int32_t body = scene->ignored[k][side];
      if (body < 0 || body >= scene->body_count) {
        return pabd_fail(error, PABD_ERR_INPUT, "ignored pair %d: body = %d must be 0 .. %d", (int)k, (int)body,
                         (int)scene->body_count - 1);
      }
    }
  }
  return PABD_OK;
}
