/* Collision detection on the host; the functions are described in collide.h. Separating axes and face clipping after
 * the textbook recipe (Gottschalk, Lin, Manocha 1996; Ericson, Real-Time Collision Detection, 2005). Invariant: the
 * broad phase only finds pairs sooner; what it keeps is the set of pairs whose grown boxes overlap, in order. */
#include "common/collide.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/vector.h"

/* ---- Shapes in the world ---- */

typedef struct placed {
  pabd_shape_kind kind;
  pabd_dvec3 p, axis[3];
  double half[3];
  double radius, half_length;
} placed;

static placed place(const pabd_shape *shape, const double *pose) {
  const pabd_dquat q = {pose[3], pose[4], pose[5], pose[6]};
  placed s = {.kind = shape->kind,
              .p = v3_add(v3(pose[0], pose[1], pose[2]), quat_rotate(q, shape->local.p)),
              .half = {shape->half.x, shape->half.y, shape->half.z},
              .radius = shape->radius,
              .half_length = shape->half_length};
  quat_axes(quat_mul(q, shape->local.q), s.axis);
  return s;
}

/* Half of the extent along a unit direction; the plane's is without end. */
static double extent(const placed *s, pabd_dvec3 n) {
  switch (s->kind) {
    case PABD_SPHERE:
      return s->radius;
    case PABD_CAPSULE:
      return s->radius + s->half_length * fabs(v3_dot(n, s->axis[2]));
    case PABD_BOX:
      return s->half[0] * fabs(v3_dot(n, s->axis[0])) + s->half[1] * fabs(v3_dot(n, s->axis[1])) +
             s->half[2] * fabs(v3_dot(n, s->axis[2]));
    default:
      return INFINITY;
  }
}

/* ---- Points of a pair ---- */

typedef struct manifold {
  double reach;
  int32_t count;
  pabd_point *points; /* [PABD_POINTS_OF_PAIR] */
} manifold;

/* `normal` from b to a, `on_b` the point on b's surface. */
static void emit(manifold *m, uint32_t feature, int round, pabd_dvec3 normal, pabd_dvec3 on_b, double gap) {
  if (!(gap <= m->reach) || m->count == PABD_POINTS_OF_PAIR) return;
  m->points[m->count++] = (pabd_point){.feature = feature,
                                       .round = round,
                                       .previous = -1,
                                       .point = v3_along(on_b, gap / 2, normal),
                                       .normal = normal,
                                       .gap = gap};
}

static void flip(manifold *m) {
  for (int32_t k = 0; k < m->count; ++k) m->points[k].normal = v3_scale(-1, m->points[k].normal);
}

static double clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

/* A ball of `radius` at `center` (a) against b: shared by spheres and the ends of capsules. */
static void ball_ball(manifold *m, uint32_t feature, pabd_dvec3 center_a, double radius_a, pabd_dvec3 center_b,
                      double radius_b) {
  const pabd_dvec3 d = v3_sub(center_a, center_b);
  const pabd_dvec3 n = v3_unit(d, v3(0, 0, 1));
  emit(m, feature, 1, n, v3_along(center_b, radius_b, n), v3_length(d) - radius_a - radius_b);
}

static void ball_plane(manifold *m, uint32_t feature, pabd_dvec3 center, double radius, const placed *plane) {
  const pabd_dvec3 n = plane->axis[2];
  const double height = v3_dot(n, v3_sub(center, plane->p));
  emit(m, feature, 1, n, v3_along(center, -height, n), height - radius);
}

static void ball_box(manifold *m, uint32_t feature, pabd_dvec3 center, double radius, const placed *box) {
  const pabd_dvec3 d = v3_sub(center, box->p);
  const double at[3] = {v3_dot(d, box->axis[0]), v3_dot(d, box->axis[1]), v3_dot(d, box->axis[2])};
  pabd_dvec3 nearest = box->p;
  int inside = 1, face = 0;
  double depth = INFINITY;
  for (int k = 0; k < 3; ++k) {
    nearest = v3_along(nearest, clamp(at[k], -box->half[k], box->half[k]), box->axis[k]);
    if (fabs(at[k]) > box->half[k]) inside = 0;
    if (box->half[k] - fabs(at[k]) < depth) depth = box->half[k] - fabs(at[k]), face = k;
  }
  if (!inside) {
    const pabd_dvec3 out = v3_sub(center, nearest);
    emit(m, feature, 1, v3_unit(out, box->axis[2]), nearest, v3_length(out) - radius);
  } else {
    const pabd_dvec3 n = v3_scale(at[face] < 0 ? -1 : 1, box->axis[face]);
    emit(m, feature, 1, n, v3_along(center, depth, n), -depth - radius);
  }
}

static pabd_dvec3 segment_point(const placed *capsule, double t) {
  return v3_along(capsule->p, t * capsule->half_length, capsule->axis[2]);
}

/* Parameter in -1 .. 1 of the point of the capsule's segment that is nearest to x. */
static double segment_nearest(const placed *capsule, pabd_dvec3 x) {
  if (!(capsule->half_length > 0)) return 0;
  return clamp(v3_dot(v3_sub(x, capsule->p), capsule->axis[2]) / capsule->half_length, -1, 1);
}

static void capsule_capsule(manifold *m, const placed *a, const placed *b) {
  const double c = v3_dot(a->axis[2], b->axis[2]), sine = 1 - c * c;
  const pabd_dvec3 d = v3_sub(b->p, a->p);
  if (sine > 1e-6) { /* the nearest points of two segments */
    double t =
        segment_nearest(a, v3_along(a->p, (v3_dot(d, a->axis[2]) - c * v3_dot(d, b->axis[2])) / sine, a->axis[2]));
    const double u = segment_nearest(b, segment_point(a, t));
    t = segment_nearest(a, segment_point(b, u));
    ball_ball(m, 1, segment_point(a, t), a->radius, segment_point(b, u), b->radius);
    return;
  }
  /* Parallel: the ends of the stretch that they have in common (or the one nearest pair of ends). */
  const double middle = v3_dot(d, a->axis[2]), low = fmax(-a->half_length, middle - b->half_length),
               high = fmin(a->half_length, middle + b->half_length);
  const double ends[2] = {low, high};
  for (int k = 0; k < (low < high ? 2 : 1); ++k) {
    const pabd_dvec3 on_a = v3_along(a->p, clamp(ends[k], -a->half_length, a->half_length), a->axis[2]);
    ball_ball(m, 2 + (uint32_t)k, on_a, a->radius, segment_point(b, segment_nearest(b, on_a)), b->radius);
  }
}

static double box_distance(const placed *box, pabd_dvec3 x, pabd_dvec3 *nearest) {
  const pabd_dvec3 d = v3_sub(x, box->p);
  *nearest = box->p;
  for (int k = 0; k < 3; ++k)
    *nearest = v3_along(*nearest, clamp(v3_dot(d, box->axis[k]), -box->half[k], box->half[k]), box->axis[k]);
  return v3_length(v3_sub(x, *nearest));
}

/* The squared distance of a point of the segment to a box is convex in its parameter: bisection of its slope. */
static double segment_box_nearest(const placed *capsule, const placed *box) {
  double low = -1, high = 1;
  for (int k = 0; k < 50; ++k) {
    const double middle = (low + high) / 2;
    const pabd_dvec3 x = segment_point(capsule, middle);
    pabd_dvec3 nearest;
    box_distance(box, x, &nearest);
    const double slope = v3_dot(v3_sub(x, nearest), capsule->axis[2]);
    if (slope == 0) return middle;
    if (slope > 0)
      high = middle;
    else
      low = middle;
  }
  return (low + high) / 2;
}

/* Capsule a, box b. A capsule that lies on a face gets the two ends of the part above the face, else one point. */
static void capsule_box(manifold *m, const placed *a, const placed *b) {
  const pabd_dvec3 u = a->axis[2], d = v3_sub(a->p, b->p);
  pabd_dvec3 n, nearest;
  int face = -1;
  const double best = segment_box_nearest(a, b);
  const double distance = box_distance(b, segment_point(a, best), &nearest);
  if (distance > 1e-9) {
    n = v3_scale(1 / distance, v3_sub(segment_point(a, best), nearest));
    for (int k = 0; k < 3; ++k)
      if (fabs(v3_dot(n, b->axis[k])) > 1 - 1e-9) face = k;
  } else { /* the segment is in the box: least translation over the faces and the edges' cross products */
    double least = -INFINITY;
    n = b->axis[2];
    for (int k = 0; k < 6; ++k) {
      pabd_dvec3 axis = k < 3 ? b->axis[k] : v3_cross(u, b->axis[k - 3]);
      const double length = v3_length(axis);
      if (length < 1e-6) continue;
      axis = v3_scale((v3_dot(axis, d) < 0 ? -1 : 1) / length, axis);
      const double apart = v3_dot(axis, d) - extent(b, axis) - a->half_length * fabs(v3_dot(axis, u));
      if (apart > least + (k < 3 ? 0 : 1e-6)) least = apart, n = axis, face = k < 3 ? k : -1;
    }
  }
  if (face < 0) {
    /* The point of the segment that is deepest along n, or the nearest one. */
    const double t = distance > 1e-9 ? best : v3_dot(n, u) > 1e-9 ? -1 : v3_dot(n, u) < -1e-9 ? 1 : best;
    const pabd_dvec3 on_a = segment_point(a, t);
    const double gap = distance > 1e-9 ? distance : v3_dot(n, d) - extent(b, n) - a->half_length * fabs(v3_dot(n, u));
    emit(m, 1, 1, n, v3_along(on_a, -gap, n), gap - a->radius);
    return;
  }
  n = v3_scale(v3_dot(n, b->axis[face]) < 0 ? -1 : 1, b->axis[face]);
  double low = -1, high = 1; /* of the segment, clipped to the face's prism */
  for (int k = 0; k < 3; ++k) {
    if (k == face) continue;
    const double at = v3_dot(d, b->axis[k]), slope = a->half_length * v3_dot(u, b->axis[k]);
    if (fabs(slope) < 1e-12) continue;
    const double t1 = (-b->half[k] - at) / slope, t2 = (b->half[k] - at) / slope;
    low = fmax(low, fmin(t1, t2)), high = fmin(high, fmax(t1, t2));
  }
  if (!(high - low > 1e-3)) low = high = best;
  /* A deepest end beyond the prism's sides stays: it is what the least translation refers to. */
  const double fall = v3_dot(n, u) * a->half_length;
  if (distance <= 1e-9 && fall > 1e-9) low = -1;
  if (distance <= 1e-9 && fall < -1e-9) high = 1;
  for (int k = 0; k < (low < high ? 2 : 1); ++k) {
    const pabd_dvec3 on_a = segment_point(a, k ? high : low);
    const double gap = v3_dot(n, v3_sub(on_a, b->p)) - b->half[face];
    emit(m, 2 + (uint32_t)(face * 2 + k), 1, n, v3_along(on_a, -gap, n), gap - a->radius);
  }
}

/* ---- Box against box ---- */

typedef struct corner {
  pabd_dvec3 p;
  int in, out; /* edges of the incident face (0..3) or side planes of the reference face (4..7) that meet here */
} corner;

/* Sutherland and Hodgman's clipping by the half space n . x <= offset; returns the new number of corners. */
static int clip(const corner *from, int count, pabd_dvec3 n, double offset, int plane, corner *to) {
  int kept = 0;
  for (int k = 0; k < count; ++k) {
    const corner *here = &from[k], *next = &from[(k + 1) % count];
    const double d0 = v3_dot(n, here->p) - offset, d1 = v3_dot(n, next->p) - offset;
    if (d0 <= 0) to[kept++] = *here;
    if ((d0 <= 0) != (d1 <= 0)) {
      const pabd_dvec3 p = v3_along(here->p, d0 / (d0 - d1), v3_sub(next->p, here->p));
      to[kept++] = d0 <= 0 ? (corner){p, here->out, plane} : (corner){p, plane, here->out};
    }
  }
  return kept;
}

/* Drops corners that lie within `close` of the line through their neighbors; keeps at least two. */
static int simplify(corner *c, int count, double close) {
  for (int k = 0; k < count && count > 2;) {
    const pabd_dvec3 before = c[(k + count - 1) % count].p, after = c[(k + 1) % count].p;
    const pabd_dvec3 along = v3_sub(after, before), to = v3_sub(c[k].p, before);
    const double square = v3_dot(along, along), t = square > 0 ? clamp(v3_dot(to, along) / square, 0, 1) : 0;
    if (v3_length(v3_along(to, -t, along)) < close) {
      for (int j = k; j + 1 < count; ++j) c[j] = c[j + 1];
      --count;
    } else {
      ++k;
    }
  }
  return count;
}

/* Face `face` of `r` (outward normal out) against the face of `i` that looks most against it. */
static void face_points(manifold *m, const placed *r, int face, pabd_dvec3 out, const placed *i, uint32_t code) {
  int other = 0;
  double most = -1;
  for (int k = 0; k < 3; ++k) {
    const double c = fabs(v3_dot(out, i->axis[k]));
    if (c > most) most = c, other = k;
  }
  const double side = v3_dot(out, i->axis[other]) > 0 ? -1 : 1;
  const int u = (other + 1) % 3, v = (other + 2) % 3, ru = (face + 1) % 3, rv = (face + 2) % 3;
  const pabd_dvec3 center = v3_along(i->p, side * i->half[other], i->axis[other]);
  static const double sign_u[4] = {1, -1, -1, 1}, sign_v[4] = {1, 1, -1, -1};
  corner one[16], two[16];
  for (int k = 0; k < 4; ++k)
    one[k] =
        (corner){v3_along(v3_along(center, sign_u[k] * i->half[u], i->axis[u]), sign_v[k] * i->half[v], i->axis[v]),
                 (k + 3) % 4, k};
  const double at_u = v3_dot(r->axis[ru], r->p), at_v = v3_dot(r->axis[rv], r->p);
  int count = clip(one, 4, r->axis[ru], at_u + r->half[ru], 4, two);
  count = clip(two, count, v3_scale(-1, r->axis[ru]), -at_u + r->half[ru], 5, one);
  count = clip(one, count, r->axis[rv], at_v + r->half[rv], 6, two);
  count = clip(two, count, v3_scale(-1, r->axis[rv]), -at_v + r->half[rv], 7, one);
  const double top = v3_dot(out, r->p) + r->half[face];
  /* Corners that change the outline by less than this would only share their neighbors' force. */
  const double same = 0.02 * fmin(fmin(r->half[ru], r->half[rv]), fmin(i->half[u], i->half[v]));
  const uint32_t faces =
      (code * 6 + (uint32_t)(face * 2 + (v3_dot(out, r->axis[face]) > 0))) * 6 + (uint32_t)(other * 2 + (side > 0));
  count = simplify(one, count, same);
  for (int k = 0; k < count; ++k) {
    const double gap = v3_dot(out, one[k].p) - top;
    /* `out` points from r to i; the normal that emit wants, from "b" to "a", is taken with r as b. */
    emit(m, faces * 64 + (uint32_t)(one[k].in * 8 + one[k].out) + 1, 0, out, v3_along(one[k].p, -gap, out), gap);
  }
}

static void edge_point(manifold *m, const placed *a, int i, const placed *b, int j, pabd_dvec3 n, double gap) {
  /* The edges of axis i of a and j of b that face each other; n from b to a. */
  pabd_dvec3 on_a = a->p, on_b = b->p;
  uint32_t signs = 0;
  for (int k = 0; k < 3; ++k) {
    const int minus_a = v3_dot(n, a->axis[k]) > 0, plus_b = v3_dot(n, b->axis[k]) > 0;
    if (k != i)
      on_a = v3_along(on_a, (minus_a ? -1 : 1) * a->half[k], a->axis[k]), signs = signs * 2 + (uint32_t)minus_a;
    if (k != j) on_b = v3_along(on_b, (plus_b ? 1 : -1) * b->half[k], b->axis[k]), signs = signs * 2 + (uint32_t)plus_b;
  }
  const pabd_dvec3 d = v3_sub(on_b, on_a);
  const double c = v3_dot(a->axis[i], b->axis[j]), sine = 1 - c * c;
  const double t = (v3_dot(d, a->axis[i]) - c * v3_dot(d, b->axis[j])) / sine;
  const double s = (c * v3_dot(d, a->axis[i]) - v3_dot(d, b->axis[j])) / sine;
  on_a = v3_along(on_a, clamp(t, -a->half[i], a->half[i]), a->axis[i]);
  on_b = v3_along(on_b, clamp(s, -b->half[j], b->half[j]), b->axis[j]);
  /* Midway between both, so that a point of clamped edges is on neither side's account. */
  const pabd_dvec3 middle = v3_scale(0.5, v3_add(on_a, on_b));
  emit(m, (1u << 20) + (uint32_t)(i * 3 + j) * 16 + signs, 0, n, v3_along(middle, -gap / 2, n), gap);
}

static void box_box(manifold *m, const placed *a, const placed *b) {
  const pabd_dvec3 d = v3_sub(b->p, a->p);
  double c[3][3], da[3], db[3], best = -INFINITY, edge = -INFINITY;
  int face = 0, edge_i = -1, edge_j = -1;
  for (int i = 0; i < 3; ++i) {
    da[i] = v3_dot(d, a->axis[i]), db[i] = v3_dot(d, b->axis[i]);
    for (int j = 0; j < 3; ++j) c[i][j] = fabs(v3_dot(a->axis[i], b->axis[j]));
  }
  /* A face is as good as the best when it is within this; so the choice does not flicker between equal ones. */
  const double close =
      2e-3 * fmin(fmin(fmin(a->half[0], a->half[1]), a->half[2]), fmin(fmin(b->half[0], b->half[1]), b->half[2]));
  for (int k = 0; k < 6; ++k) {
    const int i = k % 3;
    const double apart =
        k < 3 ? fabs(da[i]) - a->half[i] - (b->half[0] * c[i][0] + b->half[1] * c[i][1] + b->half[2] * c[i][2])
              : fabs(db[i]) - b->half[i] - (a->half[0] * c[0][i] + a->half[1] * c[1][i] + a->half[2] * c[2][i]);
    if (apart > m->reach) return;
    if (k == 0 || apart > best + close) best = apart, face = k;
  }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const pabd_dvec3 n = v3_cross(a->axis[i], b->axis[j]);
      const double length = v3_length(n);
      if (length < 1e-3) continue;
      const pabd_dvec3 unit = v3_scale(1 / length, n);
      const double apart = fabs(v3_dot(d, unit)) - extent(a, unit) - extent(b, unit);
      if (apart > m->reach) return;
      if (apart > edge) edge = apart, edge_i = i, edge_j = j;
    }
  if (edge > best + 2 * close + 0.02 * fabs(best)) {
    pabd_dvec3 n = v3_cross(a->axis[edge_i], b->axis[edge_j]);
    n = v3_scale((v3_dot(n, d) > 0 ? -1 : 1) / v3_length(n), n);
    edge_point(m, a, edge_i, b, edge_j, n, edge);
    return;
  }
  if (face < 3) {
    face_points(m, a, face, v3_scale(da[face] < 0 ? -1 : 1, a->axis[face]), b, 0);
    flip(m);
  } else {
    face_points(m, b, face - 3, v3_scale(db[face - 3] < 0 ? 1 : -1, b->axis[face - 3]), a, 1);
  }
}

static void box_plane(manifold *m, const placed *box, const placed *plane) {
  const pabd_dvec3 n = plane->axis[2];
  for (uint32_t k = 0; k < 8; ++k) {
    pabd_dvec3 p = box->p;
    for (int e = 0; e < 3; ++e) p = v3_along(p, (k >> e & 1 ? 1 : -1) * box->half[e], box->axis[e]);
    const double gap = v3_dot(n, v3_sub(p, plane->p));
    emit(m, 1 + k, 0, n, v3_along(p, -gap, n), gap);
  }
}

/* One of a pair whose kinds are ordered: a's kind is not before b's in the enumeration sphere, capsule, box, plane. */
static void collide(manifold *m, const placed *a, const placed *b) {
  if (a->kind > b->kind) {
    collide(m, b, a);
    flip(m);
    return;
  }
  if (a->kind == PABD_SPHERE) {
    if (b->kind == PABD_SPHERE)
      ball_ball(m, 1, a->p, a->radius, b->p, b->radius);
    else if (b->kind == PABD_CAPSULE)
      ball_ball(m, 1, a->p, a->radius, segment_point(b, segment_nearest(b, a->p)), b->radius);
    else if (b->kind == PABD_BOX)
      ball_box(m, 1, a->p, a->radius, b);
    else
      ball_plane(m, 1, a->p, a->radius, b);
  } else if (a->kind == PABD_CAPSULE) {
    if (b->kind == PABD_CAPSULE) {
      capsule_capsule(m, a, b);
    } else if (b->kind == PABD_BOX) {
      capsule_box(m, a, b);
    } else {
      ball_plane(m, 1, segment_point(a, -1), a->radius, b);
      ball_plane(m, 2, segment_point(a, 1), a->radius, b);
    }
  } else if (a->kind == PABD_BOX) {
    if (b->kind == PABD_BOX)
      box_box(m, a, b);
    else
      box_plane(m, a, b);
  }
}

int32_t pabd_collide_pair(const pabd_shape *a, const double *pose_a, const pabd_shape *b, const double *pose_b,
                          double reach, pabd_point *points) {
  const placed at_a = place(a, pose_a), at_b = place(b, pose_b);
  manifold m = {reach, 0, points};
  collide(&m, &at_a, &at_b);
  return m.count;
}

/* ---- The collider ---- */

typedef struct bounds {
  double low[3], high[3];
  int32_t shape;
} bounds;

typedef struct point_list {
  int32_t count, capacity;
  pabd_point *points;
  pabd_dvec3 *in_a; /* [capacity]: the point in the frame of shape a, m */
} point_list;

typedef struct fixed_point { /* of the frozen-contacts mode */
  pabd_point given;
  pabd_dvec3 in_a, in_b; /* surface points in the bodies' frames, m */
} fixed_point;

struct pabd_collider {
  int32_t body_count, shape_count, material_count, small_count, axis;
  pabd_shape *shapes;             /* [shape_count] */
  double *friction, *restitution; /* [material_count^2] */
  pabd_filter filter;
  bounds *sorted; /* [shape_count]: small shapes along the axis, then planes and shapes much larger than most */
  placed *at;     /* [shape_count] */
  int32_t pair_count, pair_capacity;
  int32_t (*pairs)[2], (*unsorted)[2]; /* [pair_capacity] */
  int32_t *first;                      /* [shape_count + 1] scratch of the counting sort */
  point_list now, before;
  int32_t fixed_count, fixed_fresh;
  fixed_point *fixed; /* [fixed_count] */
};

void pabd_collider_destroy(pabd_collider *c) {
  if (c == NULL) return;
  pabd_filter_free(&c->filter);
  free(c->shapes), free(c->friction), free(c->restitution), free(c->sorted), free(c->at);
  free(c->pairs), free(c->unsorted), free(c->first);
  free(c->now.points), free(c->now.in_a), free(c->before.points), free(c->before.in_a), free(c->fixed);
  free(c);
}

static double bounding_radius(const pabd_shape *s) {
  if (s->kind == PABD_PLANE) return INFINITY;
  if (s->kind == PABD_BOX) return v3_length(s->half);
  return s->radius + (s->kind == PABD_CAPSULE ? s->half_length : 0);
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Shapes more than eight times the median size are swept apart: along a line they would overlap everything. */
static pabd_status sort_by_size(pabd_collider *c) {
  double *radius = malloc(((size_t)c->shape_count + 1) * sizeof *radius);
  if (radius == NULL) return PABD_ERR_MEMORY;
  for (int32_t s = 0; s < c->shape_count; ++s) radius[s] = bounding_radius(&c->shapes[s]);
  qsort(radius, (size_t)c->shape_count, sizeof *radius, by_value);
  const double limit = c->shape_count > 0 ? 8 * radius[c->shape_count / 2] : 0;
  free(radius);
  int32_t back = c->shape_count;
  for (int32_t s = c->shape_count; s-- > 0;)
    if (bounding_radius(&c->shapes[s]) > limit || c->shapes[s].kind == PABD_PLANE) c->sorted[--back].shape = s;
  c->small_count = back;
  int32_t front = 0;
  for (int32_t s = 0; s < c->shape_count; ++s)
    if (!(bounding_radius(&c->shapes[s]) > limit || c->shapes[s].kind == PABD_PLANE)) c->sorted[front++].shape = s;
  return PABD_OK;
}

static void *copy(const void *source, size_t size) {
  void *made = malloc(size + 1);
  if (made && size) memcpy(made, source, size);
  return made;
}

pabd_status pabd_collider_create(pabd_collider **out, const pabd_scene *scene, pabd_error *error) {
  *out = NULL;
  for (int32_t s = 0; s < scene->shape_count; ++s)
    if (scene->shapes[s].kind > PABD_PLANE)
      return pabd_fail(
          error, PABD_ERR_UNSUPPORTED,
          "shape %d is a cylinder or hull; the collision detection has spheres, capsules, boxes and planes", s);
  pabd_collider *c = calloc(1, sizeof *c);
  if (c == NULL) return PABD_ERR_MEMORY;
  const size_t shapes = (size_t)scene->shape_count;
  const size_t entries = (size_t)scene->material_count * (size_t)scene->material_count;
  c->body_count = scene->body_count;
  c->shape_count = scene->shape_count;
  c->material_count = scene->material_count;
  c->axis = -1;
  c->shapes = copy(scene->shapes, shapes * sizeof *c->shapes);
  c->friction = copy(scene->friction, entries * sizeof *c->friction);
  c->restitution = copy(scene->restitution, entries * sizeof *c->restitution);
  c->sorted = calloc(shapes + 1, sizeof *c->sorted);
  c->at = calloc(shapes + 1, sizeof *c->at);
  c->first = calloc(shapes + 2, sizeof *c->first);
  pabd_status status = PABD_ERR_MEMORY;
  if (c->shapes && c->friction && c->restitution && c->sorted && c->at && c->first)
    status = pabd_filter_init(&c->filter, scene);
  if (status == PABD_OK) status = sort_by_size(c);
  if (status != PABD_OK) {
    pabd_collider_destroy(c);
    return status;
  }
  *out = c;
  return PABD_OK;
}

static int overlap(const bounds *a, const bounds *b) {
  return a->low[0] <= b->high[0] && b->low[0] <= a->high[0] && a->low[1] <= b->high[1] && b->low[1] <= a->high[1] &&
         a->low[2] <= b->high[2] && b->low[2] <= a->high[2];
}

static pabd_status keep_pair(pabd_collider *c, const bounds *x, const bounds *y) {
  const int32_t a = x->shape < y->shape ? x->shape : y->shape, b = x->shape < y->shape ? y->shape : x->shape;
  if (pabd_filter_ignores(&c->filter, c->shapes[a].body, c->shapes[b].body)) return PABD_OK;
  if (c->pair_count == c->pair_capacity) {
    const int32_t capacity = c->pair_capacity * 2 + 256;
    void *pairs = realloc(c->pairs, (size_t)capacity * sizeof *c->pairs);
    if (pairs) c->pairs = pairs;
    void *unsorted = realloc(c->unsorted, (size_t)capacity * sizeof *c->unsorted);
    if (unsorted) c->unsorted = unsorted;
    if (!pairs || !unsorted) return PABD_ERR_MEMORY;
    c->pair_capacity = capacity;
  }
  c->unsorted[c->pair_count][0] = a;
  c->unsorted[c->pair_count++][1] = b;
  return PABD_OK;
}

static int by_low(const bounds *x, const bounds *y, int axis) {
  const double u = x->low[axis], v = y->low[axis];
  if (u != v) return u < v ? -1 : 1;
  return (x->shape > y->shape) - (x->shape < y->shape);
}
static int by_low_x(const void *a, const void *b) {
  return by_low(a, b, 0);
}
static int by_low_y(const void *a, const void *b) {
  return by_low(a, b, 1);
}
static int by_low_z(const void *a, const void *b) {
  return by_low(a, b, 2);
}

/* The list is nearly sorted from the last time: insertion, unless it turns out not to be. */
static void sort_bounds(pabd_collider *c, int axis) {
  int64_t moves = 16 * (int64_t)c->small_count;
  static int (*const compare[3])(const void *, const void *) = {by_low_x, by_low_y, by_low_z};
  if (axis == c->axis)
    for (int32_t k = 1; k < c->small_count && moves > 0; ++k) {
      const bounds here = c->sorted[k];
      int32_t j = k;
      for (; j > 0 && by_low(&c->sorted[j - 1], &here, axis) > 0; --j, --moves) c->sorted[j] = c->sorted[j - 1];
      c->sorted[j] = here;
    }
  if (axis != c->axis || moves <= 0) qsort(c->sorted, (size_t)c->small_count, sizeof *c->sorted, compare[axis]);
  c->axis = axis;
}

/* Pairs by (a, b): counting by a, insertion by b within. */
static void sort_pairs(pabd_collider *c) {
  memset(c->first, 0, ((size_t)c->shape_count + 2) * sizeof *c->first);
  for (int32_t k = 0; k < c->pair_count; ++k) ++c->first[c->unsorted[k][0] + 1];
  for (int32_t s = 0; s < c->shape_count; ++s) c->first[s + 1] += c->first[s];
  for (int32_t k = 0; k < c->pair_count; ++k)
    memcpy(c->pairs[c->first[c->unsorted[k][0]]++], c->unsorted[k], sizeof *c->pairs);
  /* first[a] is now the end of a's pairs. */
  for (int32_t k = 1; k < c->pair_count; ++k) {
    const int32_t a = c->pairs[k][0], b = c->pairs[k][1];
    int32_t j = k;
    for (; j > 0 && c->pairs[j - 1][0] == a && c->pairs[j - 1][1] > b; --j) c->pairs[j][1] = c->pairs[j - 1][1];
    c->pairs[j][1] = b;
  }
}

pabd_status pabd_collider_sweep(pabd_collider *c, const double *pose, double margin, const double *reach) {
  static const pabd_dvec3 unit[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  double sum[3] = {0}, square[3] = {0};
  for (int32_t k = 0; k < c->shape_count; ++k) {
    bounds *box = &c->sorted[k];
    const pabd_shape *shape = &c->shapes[box->shape];
    const placed s = place(shape, pose + (size_t)shape->body * 7);
    const double center[3] = {s.p.x, s.p.y, s.p.z};
    const double grown = margin / 2 + (reach ? reach[shape->body] : 0);
    for (int e = 0; e < 3; ++e) {
      const double half = extent(&s, unit[e]) + grown;
      box->low[e] = center[e] - half, box->high[e] = center[e] + half;
      if (k < c->small_count) sum[e] += center[e], square[e] += center[e] * center[e];
    }
  }
  int axis = 0;
  double widest = -1;
  for (int e = 0; e < 3; ++e) {
    const double spread = square[e] - sum[e] * sum[e] / fmax(1, c->small_count);
    if (spread > widest * 1.2) widest = spread, axis = e;
  }
  sort_bounds(c, axis);
  c->pair_count = 0;
  for (int32_t i = 0; i < c->small_count; ++i) {
    const bounds *a = &c->sorted[i];
    for (int32_t j = i + 1; j < c->small_count && c->sorted[j].low[axis] <= a->high[axis]; ++j)
      if (overlap(a, &c->sorted[j])) PABD_TRY(keep_pair(c, a, &c->sorted[j]));
  }
  for (int32_t j = c->small_count; j < c->shape_count; ++j)
    for (int32_t i = 0; i < j; ++i)
      if (overlap(&c->sorted[i], &c->sorted[j])) PABD_TRY(keep_pair(c, &c->sorted[i], &c->sorted[j]));
  sort_pairs(c);
  return PABD_OK;
}

static pabd_status reserve_points(point_list *list, int32_t more) {
  if (list->count + more <= list->capacity) return PABD_OK;
  const int32_t capacity = (list->count + more) * 2;
  void *points = realloc(list->points, (size_t)capacity * sizeof *list->points);
  if (points) list->points = points;
  void *in_a = realloc(list->in_a, (size_t)capacity * sizeof *list->in_a);
  if (in_a) list->in_a = in_a;
  if (!points || !in_a) return PABD_ERR_MEMORY;
  list->capacity = capacity;
  return PABD_OK;
}

static void swap_lists(pabd_collider *c) {
  const point_list old = c->before;
  c->before = c->now;
  c->now = old;
  c->now.count = 0;
}

static void sort_by_feature(pabd_point *points, int32_t count) {
  for (int32_t k = 1; k < count; ++k) {
    const pabd_point here = points[k];
    int32_t j = k;
    for (; j > 0 && points[j - 1].feature > here.feature; --j) points[j] = points[j - 1];
    points[j] = here;
  }
}

/* Finds the old points of the pair (both lists are sorted by pair, `old` walks along) and says which new one continues
 * which: by feature, and else by place, because a clipped corner changes its name when a box turns through zero. */
static void match(pabd_collider *c, pabd_point *points, const pabd_dvec3 *in_a, int32_t count, double near,
                  int32_t *old) {
  const point_list *before = &c->before;
  const int32_t a = points[0].shape_a, b = points[0].shape_b;
  while (*old < before->count &&
         (before->points[*old].shape_a < a || (before->points[*old].shape_a == a && before->points[*old].shape_b < b)))
    ++*old;
  int32_t end = *old;
  while (end < before->count && before->points[end].shape_a == a && before->points[end].shape_b == b) ++end;
  uint32_t taken = 0;
  for (int32_t k = 0; k < count; ++k)
    for (int32_t o = *old; o < end; ++o)
      if (points[k].feature == before->points[o].feature) points[k].previous = o, taken |= 1u << (o - *old);
  for (int32_t k = 0; k < count; ++k) {
    if (points[k].previous >= 0) continue;
    double least = near;
    int32_t best = -1;
    for (int32_t o = *old; o < end; ++o) {
      const double distance = v3_length(v3_sub(in_a[k], before->in_a[o]));
      if (!(taken >> (o - *old) & 1) && distance < least) least = distance, best = o;
    }
    if (best >= 0) points[k].previous = best, taken |= 1u << (best - *old);
  }
}

pabd_status pabd_collider_touch(pabd_collider *c, const double *pose, double margin, const double *reach) {
  int32_t old = 0;
  swap_lists(c);
  for (int32_t s = 0; s < c->shape_count; ++s) c->at[s] = place(&c->shapes[s], pose + (size_t)c->shapes[s].body * 7);
  for (int32_t k = 0; k < c->pair_count; ++k) {
    const int32_t a = c->pairs[k][0], b = c->pairs[k][1];
    const pabd_shape *shape_a = &c->shapes[a], *shape_b = &c->shapes[b];
    PABD_TRY(reserve_points(&c->now, PABD_POINTS_OF_PAIR));
    pabd_point *points = c->now.points + c->now.count;
    manifold m = {margin + (reach ? reach[shape_a->body] + reach[shape_b->body] : 0), 0, points};
    collide(&m, &c->at[a], &c->at[b]);
    if (m.count == 0) continue;
    sort_by_feature(points, m.count);
    const size_t pair = (size_t)shape_a->material * (size_t)c->material_count + (size_t)shape_b->material;
    for (int32_t j = 0; j < m.count; ++j) {
      points[j].body_a = shape_a->body, points[j].body_b = shape_b->body;
      points[j].shape_a = a, points[j].shape_b = b;
      points[j].friction = c->friction[pair], points[j].restitution = c->restitution[pair];
      const pabd_dvec3 d = v3_sub(points[j].point, c->at[a].p);
      c->now.in_a[c->now.count + j] =
          v3(v3_dot(d, c->at[a].axis[0]), v3_dot(d, c->at[a].axis[1]), v3_dot(d, c->at[a].axis[2]));
    }
    match(c, points, c->now.in_a + c->now.count, m.count,
          0.1 * fmin(bounding_radius(shape_a), bounding_radius(shape_b)), &old);
    c->now.count += m.count;
  }
  return PABD_OK;
}

const pabd_point *pabd_collider_points(const pabd_collider *c, int32_t *count) {
  *count = c->now.count;
  return c->now.points;
}

static pabd_status check_given(const pabd_collider *c, const pabd_contact *contacts, int32_t count, pabd_error *error) {
  for (int32_t k = 0; k < count; ++k) {
    const pabd_contact *from = &contacts[k];
    if (from->body_a < 0 || from->body_a >= c->body_count || from->body_b < 0 || from->body_b >= c->body_count ||
        from->body_a == from->body_b)
      return pabd_fail(error, PABD_ERR_INPUT, "contact %d: bodies %d and %d must be two of 0 .. %d", k, from->body_a,
                       from->body_b, c->body_count - 1);
    if (!(fabs(v3_length(from->normal) - 1) < 1e-3) || !isfinite(from->gap))
      return pabd_fail(error, PABD_ERR_INPUT, "contact %d: its normal must be a unit vector, its gap finite", k);
  }
  return PABD_OK;
}

pabd_status pabd_collider_take(pabd_collider *c, const pabd_contact *contacts, int32_t count, pabd_error *error) {
  PABD_TRY(check_given(c, contacts, count, error));
  swap_lists(c);
  PABD_TRY(reserve_points(&c->now, count));
  const int same = c->before.count == count; /* the same list again: points continue one by one */
  for (int32_t k = 0; k < count; ++k)
    c->now.points[k] = (pabd_point){.body_a = contacts[k].body_a,
                                    .body_b = contacts[k].body_b,
                                    .shape_a = -1,
                                    .shape_b = -1,
                                    .feature = contacts[k].feature,
                                    .previous = same && c->before.points[k].shape_a < 0 ? k : -1,
                                    .point = contacts[k].point,
                                    .normal = contacts[k].normal,
                                    .gap = contacts[k].gap,
                                    .friction = contacts[k].friction,
                                    .restitution = contacts[k].restitution};
  c->now.count = count;
  return PABD_OK;
}

static void put_vector(pabd_dvec3 *local, const double *pose, pabd_dvec3 world) {
  const pabd_dquat q = {pose[3], pose[4], pose[5], pose[6]};
  *local = quat_rotate_back(q, v3_sub(world, v3(pose[0], pose[1], pose[2])));
}

static pabd_dvec3 get_vector(const double *pose, pabd_dvec3 local) {
  const pabd_dquat q = {pose[3], pose[4], pose[5], pose[6]};
  return v3_add(v3(pose[0], pose[1], pose[2]), quat_rotate(q, local));
}

pabd_status pabd_collider_freeze(pabd_collider *c, const double *pose, const pabd_contact *contacts, int32_t count,
                                 pabd_error *error) {
  PABD_TRY(check_given(c, contacts, count, error));
  void *fixed = realloc(c->fixed, ((size_t)count + 1) * sizeof *c->fixed);
  if (fixed == NULL) return PABD_ERR_MEMORY;
  c->fixed = fixed;
  c->fixed_count = count;
  c->fixed_fresh = 1;
  for (int32_t k = 0; k < count; ++k) {
    const pabd_contact *from = &contacts[k];
    fixed_point *to = &c->fixed[k];
    to->given = (pabd_point){.body_a = from->body_a,
                             .body_b = from->body_b,
                             .shape_a = -1,
                             .shape_b = -1,
                             .feature = from->feature,
                             .normal = from->normal,
                             .friction = from->friction,
                             .restitution = from->restitution};
    put_vector(&to->in_a, pose + (size_t)from->body_a * 7, v3_along(from->point, from->gap / 2, from->normal));
    put_vector(&to->in_b, pose + (size_t)from->body_b * 7, v3_along(from->point, -from->gap / 2, from->normal));
  }
  return PABD_OK;
}

pabd_status pabd_collider_carry(pabd_collider *c, const double *pose) {
  swap_lists(c);
  PABD_TRY(reserve_points(&c->now, c->fixed_count));
  for (int32_t k = 0; k < c->fixed_count; ++k) {
    const fixed_point *from = &c->fixed[k];
    pabd_point *to = &c->now.points[k];
    *to = from->given;
    to->previous = c->fixed_fresh ? -1 : k; /* the list is always the same */
    const pabd_dvec3 a = get_vector(pose + (size_t)to->body_a * 7, from->in_a);
    const pabd_dvec3 b = get_vector(pose + (size_t)to->body_b * 7, from->in_b);
    to->gap = v3_dot(to->normal, v3_sub(a, b));
    to->point = v3_scale(0.5, v3_add(a, b));
  }
  c->now.count = c->fixed_count;
  c->fixed_fresh = 0;
  return PABD_OK;
}
