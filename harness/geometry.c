/* Signed gaps between spheres, capsules, boxes, planes, cylinders and hulls.
 *
 * Round shapes are cores (a point, a segment) with a radius; gap = distance of the cores - radii while the cores do not
 * overlap. Boxes against boxes: 15 separating axes, which give the least translation exactly when they overlap and,
 * apart, the largest separation (a lower bound of the distance; exact for face and edge regions). Everything else:
 * minimal difference by GJK, and by an exact expansion over the support when overlapping. */
#include "geometry.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef pabd_dvec3 vec;

static vec sub(vec a, vec b) {
  return (vec){a.x - b.x, a.y - b.y, a.z - b.z};
}
static vec scale(double s, vec a) {
  return (vec){s * a.x, s * a.y, s * a.z};
}
static vec madd(vec a, double s, vec b) {
  return (vec){a.x + s * b.x, a.y + s * b.y, a.z + s * b.z};
}
static double dot(vec a, vec b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static vec cross(vec a, vec b) {
  return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static double norm(vec a) {
  return sqrt(dot(a, a));
}

static double half_of(const pabd_placed *s, int k) {
  return k == 0 ? s->half.x : k == 1 ? s->half.y : s->half.z;
}

/* Farthest point of a shape along d (any length). */
static vec support(const pabd_placed *s, vec d) {
  switch (s->kind) {
    case PABD_SPHERE:
      return madd(s->p, s->radius / fmax(norm(d), 1e-300), d);
    case PABD_CAPSULE:
      return madd(madd(s->p, dot(d, s->axis[2]) > 0 ? s->half_length : -s->half_length, s->axis[2]),
                  s->radius / fmax(norm(d), 1e-300), d);
    case PABD_BOX: {
      vec r = s->p;
      for (int k = 0; k < 3; ++k) r = madd(r, dot(d, s->axis[k]) > 0 ? half_of(s, k) : -half_of(s, k), s->axis[k]);
      return r;
    }
    case PABD_CYLINDER: {
      vec r = madd(s->p, dot(d, s->axis[2]) > 0 ? s->half_length : -s->half_length, s->axis[2]);
      vec side = madd(d, -dot(d, s->axis[2]), s->axis[2]);
      double length = norm(side);
      return length > 1e-12 * norm(d) ? madd(r, s->radius / length, side) : r;
    }
    case PABD_HULL: {
      double best = -INFINITY;
      vec r = s->p, local = {dot(d, s->axis[0]), dot(d, s->axis[1]), dot(d, s->axis[2])};
      for (int32_t k = 0; k < s->vertex_count; ++k) {
        vec v = s->vertices[k];
        if (dot(v, local) <= best) continue;
        best = dot(v, local);
        r = madd(madd(madd(s->p, v.x, s->axis[0]), v.y, s->axis[1]), v.z, s->axis[2]);
      }
      return r;
    }
    default:
      return s->p;
  }
}

pabd_placed pabd_place(const pabd_scene *scene, const pabd_shape *shape, const double pose[7]) {
  pabd_dpose body = {{pose[0], pose[1], pose[2]}, {pose[3], pose[4], pose[5], pose[6]}},
             at = pabd_dpose_mul(body, shape->local);
  pabd_placed s;
  memset(&s, 0, sizeof s);
  s.kind = shape->kind, s.p = at.p, s.half = shape->half, s.radius = shape->radius, s.half_length = shape->half_length;
  s.axis[0] = pabd_dquat_rotate(at.q, (vec){1, 0, 0}), s.axis[1] = pabd_dquat_rotate(at.q, (vec){0, 1, 0}),
  s.axis[2] = pabd_dquat_rotate(at.q, (vec){0, 0, 1});
  s.vertices = shape->kind == PABD_HULL ? scene->vertices + shape->first_vertex : NULL;
  s.vertex_count = shape->vertex_count;
  if (s.kind == PABD_PLANE) {
    for (int k = 0; k < 3; ++k) s.lo[k] = -INFINITY, s.hi[k] = INFINITY;
  } else {
    s.hi[0] = support(&s, (vec){1, 0, 0}).x, s.lo[0] = support(&s, (vec){-1, 0, 0}).x;
    s.hi[1] = support(&s, (vec){0, 1, 0}).y, s.lo[1] = support(&s, (vec){0, -1, 0}).y;
    s.hi[2] = support(&s, (vec){0, 0, 1}).z, s.lo[2] = support(&s, (vec){0, 0, -1}).z;
  }
  return s;
}

/* ---- boxes */

static double radius_along(const pabd_placed *s, vec n) {
  return s->half.x * fabs(dot(n, s->axis[0])) + s->half.y * fabs(dot(n, s->axis[1])) +
         s->half.z * fabs(dot(n, s->axis[2]));
}
static double box_box(const pabd_placed *a, const pabd_placed *b, vec *normal) {
  vec between = sub(a->p, b->p);
  double best = -INFINITY;
  for (int k = 0; k < 15; ++k) {
    vec n = k < 3 ? a->axis[k] : k < 6 ? b->axis[k - 3] : cross(a->axis[(k - 6) / 3], b->axis[(k - 6) % 3]);
    double length = norm(n);
    if (length < 1e-9) continue; /* parallel edges: the face axes cover them */
    n = scale(1 / length, n);
    double along = dot(n, between), gap = fabs(along) - radius_along(a, n) - radius_along(b, n);
    if (gap <= best) continue;
    best = gap;
    *normal = along >= 0 ? n : scale(-1, n);
  }
  return best;
}

/* Nearest point of a box to x, in its frame; inside = 1 when x is in the box. */
static double point_box(vec x, const pabd_placed *b, vec *normal) {
  vec d = sub(x, b->p);
  double q[3] = {dot(d, b->axis[0]), dot(d, b->axis[1]), dot(d, b->axis[2])}, outside = 0, least = INFINITY;
  vec out = {0, 0, 0}, face = {0, 0, 1};
  for (int k = 0; k < 3; ++k) {
    double h = half_of(b, k), over = fabs(q[k]) - h, sign = q[k] >= 0 ? 1 : -1;
    if (over > 0) {
      out = madd(out, sign * over, b->axis[k]);
      outside += over * over;
    }
    if (-over < least) least = -over, face = scale(sign, b->axis[k]);
  }
  if (outside > 0) {
    double distance = sqrt(outside);
    *normal = scale(1 / distance, out);
    return distance;
  }
  *normal = face;
  return -least;
}

/* Signed distance of a segment (centre c, half vector h) to a box: outside by golden section on the convex distance,
 * inside by the axes of a segment against a box. */
static double segment_box(vec c, vec h, const pabd_placed *b, vec *normal) {
  double low = -1, high = 1;
  const double golden = 0.6180339887498949;
  vec n;
  double t1 = high - golden * (high - low), t2 = low + golden * (high - low);
  double f1 = fmax(point_box(madd(c, t1, h), b, &n), 0), f2 = fmax(point_box(madd(c, t2, h), b, &n), 0);
  for (int pass = 0; pass < 80 && high - low > 1e-15; ++pass) {
    if (f1 <= f2) {
      high = t2, t2 = t1, f2 = f1, t1 = high - golden * (high - low), f1 = fmax(point_box(madd(c, t1, h), b, &n), 0);
    } else {
      low = t1, t1 = t2, f1 = f2, t2 = low + golden * (high - low), f2 = fmax(point_box(madd(c, t2, h), b, &n), 0);
    }
  }
  double best = point_box(madd(c, 0.5 * (low + high), h), b, normal);
  for (int end = -1; end <= 1; end += 2) {
    double d = point_box(madd(c, end, h), b, &n);
    if (fmax(d, 0) < fmax(best, 0)) best = d, *normal = n;
  }
  if (best > 1e-12) return best;
  /* the core overlaps: least translation over 3 faces and 3 cross axes */
  vec between = sub(c, b->p);
  best = -INFINITY;
  for (int k = 0; k < 6; ++k) {
    vec axis = k < 3 ? b->axis[k] : cross(h, b->axis[k - 3]);
    double length = norm(axis);
    if (length < 1e-9 * fmax(norm(h), 1e-30)) continue;
    axis = scale(1 / length, axis);
    double along = dot(axis, between), gap = fabs(along) - radius_along(b, axis) - fabs(dot(h, axis));
    if (gap > best) best = gap, *normal = along >= 0 ? axis : scale(-1, axis);
  }
  return best;
}

/* Closest points of two segments (centres, half vectors), exact by cases. */
static double segment_segment(vec ca, vec ha, vec cb, vec hb, vec *normal) {
  vec r = sub(ca, cb);
  double aa = dot(ha, ha), bb = dot(hb, hb), ab = dot(ha, hb), ra = dot(r, ha), rb = dot(r, hb), best = INFINITY;
  double det = aa * bb - ab * ab;
  vec delta = {0, 0, 0};
  /* interior solution, then the four ends clamped on the other segment */
  for (int k = 0; k < 5; ++k) {
    double s, t;
    if (k == 0) {
      if (!(det > 1e-14 * aa * bb)) continue;
      s = (ab * rb - bb * ra) / det, t = (aa * rb - ab * ra) / det;
      if (fabs(s) > 1 || fabs(t) > 1) continue;
    } else if (k < 3) {
      s = k == 1 ? -1 : 1;
      t = bb > 0 ? (rb + s * ab) / bb : 0;
      t = fmin(fmax(t, -1), 1);
    } else {
      t = k == 3 ? -1 : 1;
      s = aa > 0 ? (t * ab - ra) / aa : 0;
      s = fmin(fmax(s, -1), 1);
    }
    vec d = sub(madd(r, s, ha), scale(t, hb));
    if (norm(d) < best) best = norm(d), delta = d;
  }
  *normal = best > 0 ? scale(1 / best, delta) : (vec){0, 0, 1};
  if (best == 0) {
    vec n = cross(ha, hb);
    if (norm(n) > 0) *normal = scale(1 / norm(n), n);
  }
  return best;
}

/* ---- general convex pairs: signed distance as the maximum over directions of the separation.
 * gap = max over unit n of min over x in a, y in b of n . (x - y); concave in n while the shapes are apart, so GJK's
 * direction is polished by projected subgradient steps; overlapping shapes are searched from many directions. Used for
 * cylinders and hulls only. */
static double separation(const pabd_placed *a, const pabd_placed *b, vec n) {
  return dot(n, sub(support(a, scale(-1, n)), support(b, n)));
}
static double convex(const pabd_placed *a, const pabd_placed *b, vec *normal) {
  double best = -INFINITY;
  vec best_n = {0, 0, 1};
  /* a fixed set of start directions on a Fibonacci sphere, face axes and centre line, then a shrinking pattern search
   * around the best few */
  enum { STARTS = 200, KEEP = 6 };
  vec keep[KEEP];
  double value[KEEP];
  for (int k = 0; k < KEEP; ++k) value[k] = -INFINITY, keep[k] = best_n;
  for (int k = 0; k < STARTS + 7; ++k) {
    vec n;
    if (k < STARTS) {
      double z = 1 - (2 * k + 1.0) / STARTS, phi = k * 2.399963229728653, r = sqrt(1 - z * z);
      n = (vec){r * cos(phi), r * sin(phi), z};
    } else if (k < STARTS + 6) {
      n = k < STARTS + 3 ? a->axis[k - STARTS] : b->axis[k - STARTS - 3];
      if (separation(a, b, scale(-1, n)) > separation(a, b, n)) n = scale(-1, n);
    } else {
      n = sub(a->p, b->p);
      if (norm(n) == 0) continue;
      n = scale(1 / norm(n), n);
    }
    double v = separation(a, b, n);
    for (int j = 0; j < KEEP; ++j) {
      if (v <= value[j]) continue;
      for (int m = KEEP - 1; m > j; --m) value[m] = value[m - 1], keep[m] = keep[m - 1];
      value[j] = v, keep[j] = n;
      break;
    }
  }
  for (int k = 0; k < KEEP; ++k) {
    vec n = keep[k];
    double v = value[k], step = 0.15;
    while (step > 1e-9) {
      vec u = fabs(n.x) < 0.6 ? cross(n, (vec){1, 0, 0}) : cross(n, (vec){0, 1, 0});
      u = scale(1 / norm(u), u);
      vec w = cross(n, u);
      int better = 0;
      for (int j = 0; j < 8; ++j) {
        double phi = 0.7853981633974483 * j;
        vec m = madd(madd(n, step * cos(phi), u), step * sin(phi), w);
        m = scale(1 / norm(m), m);
        double s = separation(a, b, m);
        if (s > v) v = s, n = m, better = 1;
      }
      if (!better) step *= 0.5;
    }
    if (v > best) best = v, best_n = n;
  }
  *normal = best_n;
  return best;
}

/* ---- dispatch: first shape's kind, second's */

static double gap_of(const pabd_placed *a, const pabd_placed *b, vec *normal, int *known) {
  *known = 1;
  if (b->kind == PABD_PLANE && a->kind != PABD_PLANE) {
    *normal = b->axis[2];
    return dot(b->axis[2], sub(support(a, scale(-1, b->axis[2])), b->p));
  }
  if (a->kind == PABD_SPHERE && b->kind == PABD_SPHERE) {
    vec d = sub(a->p, b->p);
    double length = norm(d);
    *normal = length > 0 ? scale(1 / length, d) : (vec){0, 0, 1};
    return length - a->radius - b->radius;
  }
  if (a->kind == PABD_SPHERE && b->kind == PABD_BOX) return point_box(a->p, b, normal) - a->radius;
  if (a->kind == PABD_CAPSULE && b->kind == PABD_BOX)
    return segment_box(a->p, scale(a->half_length, a->axis[2]), b, normal) - a->radius;
  if ((a->kind == PABD_CAPSULE || a->kind == PABD_SPHERE) && b->kind == PABD_CAPSULE) {
    vec ha = scale(a->kind == PABD_CAPSULE ? a->half_length : 0, a->axis[2]);
    return segment_segment(a->p, ha, b->p, scale(b->half_length, b->axis[2]), normal) - a->radius - b->radius;
  }
  if (a->kind == PABD_BOX && b->kind == PABD_BOX) return box_box(a, b, normal);
  *known = 0;
  return 0;
}

double pabd_placed_gap(const pabd_placed *a, const pabd_placed *b, pabd_dvec3 *normal) {
  vec n = {0, 0, 1};
  int known;
  double gap = gap_of(a, b, &n, &known);
  if (!known) {
    gap = gap_of(b, a, &n, &known);
    n = scale(-1, n);
  }
  if (!known) gap = convex(a, b, &n);
  if (normal) *normal = n;
  return gap;
}
