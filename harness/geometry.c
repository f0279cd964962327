/* Signed gaps: one exact routine a pair of shapes where there is one, in a table; the general routine for the rest.
 *
 * Spheres and capsules are points and segments with a radius: the gap of the cores less the radii, with the depth of
 * the core in the other solid where it is inside. Boxes: the 15 separating axes give the depth, and a lower bound of
 * the distance; the distance itself is attained at a vertex and a box or at two edges. Planes: the lowest point.
 * Invariant: the normal that is returned attains the gap, n.(lowest of a) - n.(highest of b) = gap. */
#include "geometry.h"

#include <assert.h>
#include <math.h>

#include "judge.h"
#include "vec3.h"

/* Edges closer to parallel than this (sine) give no axis of their own: what is lost is 1e-8 of the box's size. */
#define PARALLEL_SINE 1e-8

/* ---- Placement ---- */

pabd_solid pabd_solid_place(const pabd_scene *scene, const pabd_shape *shape, const double *pose) {
  pabd_solid s = {.kind = shape->kind, .half = shape->half, .radius = shape->radius, .half_length = shape->half_length};
  if (shape->kind == PABD_HULL) {
    s.vertices = scene->vertices + shape->first_vertex;
    s.vertex_count = shape->vertex_count;
  }
  pabd_dquat q = pabd_dquat_normalize((pabd_dquat){pose[3], pose[4], pose[5], pose[6]});
  pabd_dpose at = pabd_dpose_mul((pabd_dpose){{pose[0], pose[1], pose[2]}, q}, shape->local);
  q = at.q;
  s.p = at.p;
  s.axis[0] = (pabd_dvec3){1 - 2 * (q.y * q.y + q.z * q.z), 2 * (q.x * q.y + q.w * q.z), 2 * (q.x * q.z - q.w * q.y)};
  s.axis[1] = (pabd_dvec3){2 * (q.x * q.y - q.w * q.z), 1 - 2 * (q.x * q.x + q.z * q.z), 2 * (q.y * q.z + q.w * q.x)};
  s.axis[2] = (pabd_dvec3){2 * (q.x * q.z + q.w * q.y), 2 * (q.y * q.z - q.w * q.x), 1 - 2 * (q.x * q.x + q.y * q.y)};
  return s;
}

static pabd_dvec3 to_world(const pabd_solid *s, double x, double y, double z) {
  return v3_madd(v3_madd(v3_madd(s->p, x, s->axis[0]), y, s->axis[1]), z, s->axis[2]);
}

static pabd_dvec3 to_local(const pabd_solid *s, pabd_dvec3 x) {
  pabd_dvec3 d = v3_sub(x, s->p);
  return (pabd_dvec3){v3_dot(d, s->axis[0]), v3_dot(d, s->axis[1]), v3_dot(d, s->axis[2])};
}

static pabd_dvec3 turned(const pabd_solid *s, pabd_dvec3 v) {
  return v3_madd(v3_madd(v3_scale(v.x, s->axis[0]), v.y, s->axis[1]), v.z, s->axis[2]);
}

/* Half extent of the shape along one world coordinate, given that coordinate of the three axes. */
static double reach(const pabd_solid *s, double x, double y, double z) {
  switch (s->kind) {
    case PABD_SPHERE:
      return s->radius;
    case PABD_CAPSULE:
      return s->radius + s->half_length * fabs(z);
    case PABD_CYLINDER:
      return s->radius * sqrt(x * x + y * y) + s->half_length * fabs(z);
    default:
      return s->half.x * fabs(x) + s->half.y * fabs(y) + s->half.z * fabs(z);
  }
}

void pabd_solid_bounds(const pabd_solid *s, pabd_dvec3 *low, pabd_dvec3 *high) {
  if (s->kind == PABD_PLANE) {
    *low = (pabd_dvec3){-INFINITY, -INFINITY, -INFINITY};
    *high = (pabd_dvec3){INFINITY, INFINITY, INFINITY};
    return;
  }
  if (s->kind == PABD_HULL) {
    *low = (pabd_dvec3){INFINITY, INFINITY, INFINITY};
    *high = (pabd_dvec3){-INFINITY, -INFINITY, -INFINITY};
    for (int32_t k = 0; k < s->vertex_count; ++k) {
      pabd_dvec3 x = to_world(s, s->vertices[k].x, s->vertices[k].y, s->vertices[k].z);
      *low = (pabd_dvec3){fmin(low->x, x.x), fmin(low->y, x.y), fmin(low->z, x.z)};
      *high = (pabd_dvec3){fmax(high->x, x.x), fmax(high->y, x.y), fmax(high->z, x.z)};
    }
    return;
  }
  const pabd_dvec3 *u = s->axis;
  pabd_dvec3 half = {reach(s, u[0].x, u[1].x, u[2].x), reach(s, u[0].y, u[1].y, u[2].y),
                     reach(s, u[0].z, u[1].z, u[2].z)};
  *low = v3_sub(s->p, half);
  *high = v3_add(s->p, half);
}

double pabd_shape_bound(const pabd_scene *scene, const pabd_shape *shape, pabd_dvec3 *center) {
  *center = (pabd_dvec3){0, 0, 0};
  switch (shape->kind) {
    case PABD_SPHERE:
      return shape->radius;
    case PABD_CAPSULE:
      return shape->radius + shape->half_length;
    case PABD_CYLINDER:
      return hypot(shape->radius, shape->half_length);
    case PABD_BOX:
      return v3_norm(shape->half);
    case PABD_HULL: {
      const pabd_dvec3 *v = scene->vertices + shape->first_vertex;
      pabd_dvec3 low = v[0], high = v[0];
      for (int32_t k = 1; k < shape->vertex_count; ++k) {
        low = (pabd_dvec3){fmin(low.x, v[k].x), fmin(low.y, v[k].y), fmin(low.z, v[k].z)};
        high = (pabd_dvec3){fmax(high.x, v[k].x), fmax(high.y, v[k].y), fmax(high.z, v[k].z)};
      }
      *center = v3_scale(0.5, v3_add(low, high));
      double radius = 0;
      for (int32_t k = 0; k < shape->vertex_count; ++k) radius = fmax(radius, v3_norm(v3_sub(v[k], *center)));
      return radius;
    }
    default:
      return INFINITY;
  }
}

/* ---- Points and segments ---- */

/* Signed gap of a point (local) and a box about the origin; normal from the box to the point, local. */
static double point_box(pabd_dvec3 x, pabd_dvec3 half, pabd_dvec3 *normal) {
  pabd_dvec3 outside = {fmax(0, fabs(x.x) - half.x), fmax(0, fabs(x.y) - half.y), fmax(0, fabs(x.z) - half.z)};
  double distance = v3_norm(outside);
  if (distance > 0) {
    *normal = (pabd_dvec3){copysign(outside.x, x.x) / distance, copysign(outside.y, x.y) / distance,
                           copysign(outside.z, x.z) / distance};
    return distance;
  }
  double gx = fabs(x.x) - half.x, gy = fabs(x.y) - half.y, gz = fabs(x.z) - half.z;
  if (gx >= gy && gx >= gz) {
    *normal = (pabd_dvec3){copysign(1, x.x), 0, 0};
    return gx;
  }
  if (gy >= gz) {
    *normal = (pabd_dvec3){0, copysign(1, x.y), 0};
    return gy;
  }
  *normal = (pabd_dvec3){0, 0, copysign(1, x.z)};
  return gz;
}

static double point_box_distance(pabd_dvec3 x, pabd_dvec3 half) {
  double dx = fmax(0, fabs(x.x) - half.x), dy = fmax(0, fabs(x.y) - half.y), dz = fmax(0, fabs(x.z) - half.z);
  return dx * dx + dy * dy + dz * dz;
}

/* Closest points of the segments p + s u and q + t v, s and t in -1..1. Squared distance; *d from the second point to
 * the first. The nearly parallel case is decided by the ends, so no precision is lost there. */
static double segment_segment(pabd_dvec3 p, pabd_dvec3 u, pabd_dvec3 q, pabd_dvec3 v, pabd_dvec3 *d) {
  pabd_dvec3 w = v3_sub(p, q);
  double a = v3_dot(u, u), b = v3_dot(u, v), c = v3_dot(v, v), e = v3_dot(u, w), f = v3_dot(v, w);
  double best = INFINITY;
  double determinant = a * c - b * b;
  if (determinant > 1e-14 * a * c) {
    double s = (b * f - c * e) / determinant, t = (a * f - b * e) / determinant;
    if (fabs(s) <= 1 && fabs(t) <= 1) {
      *d = v3_madd(v3_madd(w, s, u), -t, v);
      best = v3_dot(*d, *d);
      if (determinant > 1e-6 * a * c) return best;
    }
  }
  for (int k = 0; k < 4; ++k) {
    double s, t, end = k & 1 ? 1 : -1;
    if (k < 2) {
      s = end;
      t = c > 0 ? fmin(1, fmax(-1, (f + s * b) / c)) : 0;
    } else {
      t = end;
      s = a > 0 ? fmin(1, fmax(-1, (t * b - e) / a)) : 0;
    }
    pabd_dvec3 x = v3_madd(v3_madd(w, s, u), -t, v);
    double squared = v3_dot(x, x);
    if (squared < best) {
      best = squared;
      *d = x;
    }
  }
  return best;
}

/* Gap of two segments (center, half vector), as cores without thickness: >= 0. */
static double segment_gap(pabd_dvec3 p, pabd_dvec3 u, pabd_dvec3 q, pabd_dvec3 v, pabd_dvec3 *normal) {
  pabd_dvec3 d = {0, 0, 0};
  double distance = sqrt(segment_segment(p, u, q, v, &d));
  /* Cores that touch have no line between them: the way out is normal to both. */
  if (distance > 1e-15 * (v3_norm(u) + v3_norm(v) + v3_norm(p) + v3_norm(q))) {
    *normal = v3_scale(1 / distance, d);
    return distance;
  }
  pabd_dvec3 n = v3_cross(u, v);
  double length = v3_norm(n);
  if (length > PARALLEL_SINE * v3_norm(u) * v3_norm(v)) {
    *normal = v3_scale(1 / length, n);
  } else {
    *normal = v3_normal_to(v3_dot(u, u) >= v3_dot(v, v) ? u : v);
  }
  return 0;
}

static pabd_dvec3 half_segment(const pabd_solid *s) {
  return s->kind == PABD_CAPSULE ? v3_scale(s->half_length, s->axis[2]) : (pabd_dvec3){0, 0, 0};
}

/* Spheres and capsules. */
static double round_round(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 *normal) {
  return segment_gap(a->p, half_segment(a), b->p, half_segment(b), normal) - a->radius - b->radius;
}

/* ---- Planes ---- */

static double plane_any(const pabd_solid *plane, const pabd_solid *s, pabd_dvec3 *normal) {
  pabd_dvec3 n = plane->axis[2];
  *normal = v3_scale(-1, n);
  if (s->kind == PABD_PLANE) return -INFINITY;
  double lowest;
  if (s->kind == PABD_HULL) {
    lowest = INFINITY;
    pabd_dvec3 local = {v3_dot(n, s->axis[0]), v3_dot(n, s->axis[1]), v3_dot(n, s->axis[2])};
    for (int32_t k = 0; k < s->vertex_count; ++k) lowest = fmin(lowest, v3_dot(local, s->vertices[k]));
  } else {
    lowest = -reach(s, v3_dot(n, s->axis[0]), v3_dot(n, s->axis[1]), v3_dot(n, s->axis[2]));
  }
  return v3_dot(n, v3_sub(s->p, plane->p)) + lowest;
}

/* ---- Boxes ---- */

static double sphere_box(const pabd_solid *sphere, const pabd_solid *box, pabd_dvec3 *normal) {
  pabd_dvec3 n;
  double gap = point_box(to_local(box, sphere->p), box->half, &n);
  *normal = turned(box, n);
  return gap - sphere->radius;
}

/* Does the segment meet the box about the origin? Slab by slab. */
static int segment_meets_box(pabd_dvec3 p, pabd_dvec3 u, pabd_dvec3 half) {
  const double x[3] = {p.x, p.y, p.z}, d[3] = {u.x, u.y, u.z}, h[3] = {half.x, half.y, half.z};
  double enter = -1, leave = 1;
  for (int k = 0; k < 3; ++k) {
    if (d[k] == 0) {
      if (fabs(x[k]) > h[k]) return 0;
      continue;
    }
    double s = (-h[k] - x[k]) / d[k], t = (h[k] - x[k]) / d[k];
    enter = fmax(enter, fmin(s, t));
    leave = fmin(leave, fmax(s, t));
  }
  return enter <= leave;
}

static double capsule_box(const pabd_solid *capsule, const pabd_solid *box, pabd_dvec3 *normal) {
  pabd_dvec3 half = box->half, p = to_local(box, capsule->p), world_u = half_segment(capsule), n = {0, 0, 1};
  pabd_dvec3 u = {v3_dot(world_u, box->axis[0]), v3_dot(world_u, box->axis[1]), v3_dot(world_u, box->axis[2])};
  double gap;
  if (segment_meets_box(p, u, half)) {
    /* Least way out of the box swept by the segment: its faces, and edges swept into faces. */
    const double x[3] = {p.x, p.y, p.z}, d[3] = {fabs(u.x), fabs(u.y), fabs(u.z)}, h[3] = {half.x, half.y, half.z};
    gap = -INFINITY;
    for (int k = 0; k < 3; ++k) {
      double g = fabs(x[k]) - h[k] - d[k];
      if (g <= gap) continue;
      gap = g;
      n = (pabd_dvec3){k == 0 ? copysign(1, x[k]) : 0, k == 1 ? copysign(1, x[k]) : 0, k == 2 ? copysign(1, x[k]) : 0};
    }
    double length = v3_norm(u);
    for (int k = 0; k < 3 && length > 0; ++k) {
      pabd_dvec3 m = v3_cross(u, (pabd_dvec3){k == 0, k == 1, k == 2});
      double size = v3_norm(m);
      if (size <= PARALLEL_SINE * length) continue;
      m = v3_scale((v3_dot(m, p) < 0 ? -1 : 1) / size, m);
      double g = v3_dot(m, p) - (half.x * fabs(m.x) + half.y * fabs(m.y) + half.z * fabs(m.z));
      if (g <= gap) continue;
      gap = g;
      n = m;
    }
  } else {
    pabd_dvec3 best = {0, 0, 0};
    double squared = INFINITY;
    for (int k = 0; k < 2; ++k) {
      pabd_dvec3 m, end = v3_madd(p, k ? 1 : -1, u);
      double distance = point_box(end, half, &m);
      if (distance * distance >= squared) continue;
      squared = distance * distance;
      best = v3_scale(distance, m);
    }
    for (int k = 0; k < 12; ++k) {
      int i = k >> 2;
      double s = k & 1 ? 1 : -1, t = k & 2 ? 1 : -1;
      pabd_dvec3 q = i == 0   ? (pabd_dvec3){0, s * half.y, t * half.z}
                     : i == 1 ? (pabd_dvec3){s * half.x, 0, t * half.z}
                              : (pabd_dvec3){s * half.x, t * half.y, 0};
      pabd_dvec3 v = {i == 0 ? half.x : 0, i == 1 ? half.y : 0, i == 2 ? half.z : 0}, d = {0, 0, 0};
      double of_edge = segment_segment(p, u, q, v, &d);
      if (of_edge >= squared) continue;
      squared = of_edge;
      best = d;
    }
    gap = sqrt(squared);
    n = gap > 0 ? v3_scale(1 / gap, best) : (pabd_dvec3){0, 0, 1};
  }
  *normal = turned(box, n);
  return gap - capsule->radius;
}

/* The edges of a box that come within `reach` of another, by the bounds of each edge in the other's frame. Writes
 * middle and half vector, in the world, of at most 12 edges. */
static int edges_near(const pabd_solid *box, const pabd_solid *other, double reach, pabd_dvec3 *middles,
                      pabd_dvec3 *half_vectors) {
  const double h[3] = {box->half.x, box->half.y, box->half.z}, o[3] = {other->half.x, other->half.y, other->half.z};
  pabd_dvec3 center = to_local(other, box->p);
  double r[3][3]; /* r[i] = axis i of the box, times its half extent, in the other's frame */
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) r[i][j] = h[i] * v3_dot(box->axis[i], other->axis[j]);
  }
  const double c[3] = {center.x, center.y, center.z};
  int count = 0;
  for (int edge = 0; edge < 12; ++edge) {
    int i = edge >> 2, k = (i + 1) % 3, l = (i + 2) % 3;
    double s = edge & 1 ? 1 : -1, t = edge & 2 ? 1 : -1;
    int is_near = 1;
    for (int j = 0; j < 3 && is_near; ++j)
      is_near = fabs(c[j] + s * r[k][j] + t * r[l][j]) - fabs(r[i][j]) <= o[j] + reach;
    if (!is_near) continue;
    half_vectors[count] = v3_scale(h[i], box->axis[i]);
    middles[count++] = v3_madd(v3_madd(box->p, s * h[k], box->axis[k]), t * h[l], box->axis[l]);
  }
  return count;
}

/* Exact distance of two boxes that are apart by at least `least` (> 0, known from an axis whose unit vector is in
 * *normal, from b to a): at a vertex and a box, or at two edges. Any distance <= enough will do. */
static double box_box_distance(const pabd_solid *a, const pabd_solid *b, double least, double enough,
                               pabd_dvec3 *normal) {
  const pabd_solid *solids[2] = {a, b};
  double squared = INFINITY;
  pabd_dvec3 best = {0, 0, 0};
  for (int side = 0; side < 2; ++side) {
    const pabd_solid *box = solids[side], *other = solids[1 - side];
    pabd_dvec3 c = to_local(box, other->p), u[3], nearest = c;
    const double h[3] = {other->half.x, other->half.y, other->half.z};
    double of_side = INFINITY;
    for (int i = 0; i < 3; ++i) {
      pabd_dvec3 axis = other->axis[i];
      u[i] = v3_scale(h[i],
                      (pabd_dvec3){v3_dot(axis, box->axis[0]), v3_dot(axis, box->axis[1]), v3_dot(axis, box->axis[2])});
    }
    for (int k = 0; k < 8; ++k) {
      pabd_dvec3 x = v3_madd(v3_madd(v3_madd(c, k & 1 ? 1 : -1, u[0]), k & 2 ? 1 : -1, u[1]), k & 4 ? 1 : -1, u[2]);
      double of_vertex = point_box_distance(x, box->half);
      if (of_vertex < of_side) of_side = of_vertex, nearest = x;
    }
    if (of_side >= squared) continue;
    squared = of_side;
    pabd_dvec3 n;
    double distance = point_box(nearest, box->half, &n);
    best = v3_scale(side == 0 ? -distance : distance, turned(box, n));
  }
  /* A vertex that is as near as the axis allows cannot be beaten. */
  double distance = sqrt(squared);
  if (distance <= least * (1 + 1e-12)) return least;
  if (distance > enough) {
    /* Only edges that come nearer than what is known can change it. */
    pabd_dvec3 p[12], u[12], q[12], v[12];
    double reach = distance * (1 + 1e-12);
    int edges_a = edges_near(a, b, reach, p, u), edges_b = edges_near(b, a, reach, q, v);
    for (int i = 0; i < edges_a; ++i) {
      for (int j = 0; j < edges_b; ++j) {
        pabd_dvec3 d = {0, 0, 0};
        double of_edges = segment_segment(p[i], u[i], q[j], v[j], &d);
        if (of_edges >= squared) continue;
        squared = of_edges;
        best = d;
      }
    }
    distance = sqrt(squared);
  }
  if (!(distance > 0)) return least;
  *normal = v3_scale(1 / distance, best);
  return distance;
}

/* Largest separation over the 15 axes; may stop at the first that exceeds `limit`. The axis from b to a in *normal. */
static double box_box_axes(const pabd_solid *a, const pabd_solid *b, double limit, pabd_dvec3 *normal) {
  const double ha[3] = {a->half.x, a->half.y, a->half.z}, hb[3] = {b->half.x, b->half.y, b->half.z};
  pabd_dvec3 d = v3_sub(b->p, a->p);
  double t[3], r[3][3], m[3][3]; /* center of b in a's frame; r[i][j] = axis i of a . axis j of b, m its sizes */
  double best = -INFINITY, sign = 1;
  int kind = 0;
  for (int i = 0; i < 3; ++i) {
    t[i] = v3_dot(d, a->axis[i]);
    for (int j = 0; j < 3; ++j) {
      r[i][j] = v3_dot(a->axis[i], b->axis[j]);
      m[i][j] = fabs(r[i][j]);
    }
  }
  for (int i = 0; i < 3; ++i) {
    double gap = fabs(t[i]) - ha[i] - (hb[0] * m[i][0] + hb[1] * m[i][1] + hb[2] * m[i][2]);
    if (gap <= best) continue;
    best = gap, kind = i, sign = t[i];
  }
  if (best > limit) goto done;
  for (int j = 0; j < 3; ++j) {
    double along = t[0] * r[0][j] + t[1] * r[1][j] + t[2] * r[2][j];
    double gap = fabs(along) - hb[j] - (ha[0] * m[0][j] + ha[1] * m[1][j] + ha[2] * m[2][j]);
    if (gap <= best) continue;
    best = gap, kind = 3 + j, sign = along;
  }
  if (best > limit) goto done;
  for (int i = 0; i < 3; ++i) {
    int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
    for (int j = 0; j < 3; ++j) {
      int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
      double squared = r[i1][j] * r[i1][j] + r[i2][j] * r[i2][j];
      if (squared < PARALLEL_SINE * PARALLEL_SINE) continue;
      double along = t[i2] * r[i1][j] - t[i1] * r[i2][j];
      double gap = fabs(along) - (ha[i1] * m[i2][j] + ha[i2] * m[i1][j]) - (hb[j1] * m[i][j2] + hb[j2] * m[i][j1]);
      /* Compare before the root is taken: gap / length > best. */
      if (gap < 0 && best >= 0) continue;
      if (gap * fabs(gap) <= best * fabs(best) * squared) continue;
      best = gap / sqrt(squared), kind = 6 + 3 * i + j, sign = along;
    }
  }
done:
  if (kind < 3) {
    *normal = a->axis[kind];
  } else if (kind < 6) {
    *normal = b->axis[kind - 3];
  } else {
    pabd_dvec3 n = v3_cross(a->axis[(kind - 6) / 3], b->axis[(kind - 6) % 3]);
    *normal = v3_scale(1 / v3_norm(n), n);
  }
  if (sign > 0) *normal = v3_scale(-1, *normal); /* t runs from a to b */
  return best;
}

static double box_box(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 *normal) {
  double gap = box_box_axes(a, b, INFINITY, normal);
  return gap > 0 ? box_box_distance(a, b, gap, 0, normal) : gap;
}

/* ---- Cylinders ---- */

static double sphere_cylinder(const pabd_solid *sphere, const pabd_solid *cylinder, pabd_dvec3 *normal) {
  pabd_dvec3 x = to_local(cylinder, sphere->p);
  double rho = hypot(x.x, x.y);
  pabd_dvec3 out = rho > 0 ? (pabd_dvec3){x.x / rho, x.y / rho, 0} : (pabd_dvec3){1, 0, 0}, n;
  double radial = rho - cylinder->radius, axial = fabs(x.z) - cylinder->half_length, gap;
  if (radial > 0 && axial > 0) {
    gap = hypot(radial, axial);
    n = v3_scale(radial / gap, out);
    n.z = copysign(axial / gap, x.z);
  } else if (radial > axial) {
    gap = radial;
    n = out;
  } else {
    gap = axial;
    n = (pabd_dvec3){0, 0, copysign(1, x.z)};
  }
  *normal = turned(cylinder, n);
  return gap - sphere->radius;
}

/* ---- The table ---- */

typedef double (*gap_fn)(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 *normal);

/* [kind of a][kind of b]; where the entry is missing, the mirrored one is used with the normal turned round. */
static const gap_fn table[PABD_SHAPE_KIND_COUNT][PABD_SHAPE_KIND_COUNT] = {
    [PABD_SPHERE] = {[PABD_SPHERE] = round_round,
                     [PABD_CAPSULE] = round_round,
                     [PABD_BOX] = sphere_box,
                     [PABD_CYLINDER] = sphere_cylinder,
                     [PABD_HULL] = pabd_convex_gap},
    [PABD_CAPSULE] = {[PABD_CAPSULE] = round_round,
                      [PABD_BOX] = capsule_box,
                      [PABD_CYLINDER] = pabd_convex_gap,
                      [PABD_HULL] = pabd_convex_gap},
    [PABD_BOX] = {[PABD_BOX] = box_box, [PABD_CYLINDER] = pabd_convex_gap, [PABD_HULL] = pabd_convex_gap},
    [PABD_PLANE] = {[PABD_SPHERE] = plane_any,
                    [PABD_CAPSULE] = plane_any,
                    [PABD_BOX] = plane_any,
                    [PABD_PLANE] = plane_any,
                    [PABD_CYLINDER] = plane_any,
                    [PABD_HULL] = plane_any},
    [PABD_CYLINDER] = {[PABD_CYLINDER] = pabd_convex_gap, [PABD_HULL] = pabd_convex_gap},
    [PABD_HULL] = {[PABD_HULL] = pabd_convex_gap},
};

double pabd_solid_gap(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 *normal) {
  pabd_dvec3 n;
  gap_fn direct = table[a->kind][b->kind], mirrored = table[b->kind][a->kind];
  assert(direct || mirrored);
  double gap;
  if (direct) {
    gap = direct(a, b, &n);
  } else {
    gap = mirrored(b, a, &n);
    n = v3_scale(-1, n);
  }
  if (normal) *normal = n;
  return gap;
}

double pabd_solid_gap_within(const pabd_solid *a, const pabd_solid *b, double limit) {
  pabd_dvec3 n;
  if (a->kind == PABD_BOX && b->kind == PABD_BOX) {
    double gap = box_box_axes(a, b, limit, &n);
    return gap > 0 && gap <= limit ? box_box_distance(a, b, gap, limit, &n) : gap;
  }
  return pabd_solid_gap(a, b, &n);
}

double pabd_judge_gap(const pabd_scene *scene, const pabd_shape *shape_a, const double *pose_a,
                      const pabd_shape *shape_b, const double *pose_b, pabd_dvec3 *normal) {
  pabd_solid a = pabd_solid_place(scene, shape_a, pose_a), b = pabd_solid_place(scene, shape_b, pose_b);
  return pabd_solid_gap(&a, &b, normal);
}
