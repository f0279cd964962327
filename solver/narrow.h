/* Narrow phase as element bodies: manifolds of sphere, capsule, box and plane pairs, and the dispatch by kind.
 *
 * A manifold has one unit normal from b to a and up to four points, each midway between the two surfaces, with its gap
 * along the normal (contract, section 1). All work is done relative to one of the two shapes, so that float keeps its
 * digits far from the origin. Feature ids name the vertices, edges and faces that make a point, never the order in
 * which they were met, so they stay the same while the shapes roll and slide by a little. Common C11/CUDA dialect. */
#ifndef PABD_NARROW_H
#define PABD_NARROW_H

#include "lbvh.h"
#include "state.h"

typedef struct pabd_manifold {
  int32_t count;
  vec3 normal;           /* 1: from b to a */
  real round_a, round_b; /* m: from the surface to the core along the normal */
  vec3 point[4];         /* m: relative to the position of shape a, world axes */
  real gap[4];           /* m */
  uint32_t feature[4];
} pabd_manifold;

PABD_FN vec3 shape_axis(const pabd_shape_frame *f) {
  return v3(f->rot.x.z, f->rot.y.z, f->rot.z.z);
} /* local z */

PABD_FN void manifold_add(pabd_manifold *m, vec3 point, real gap, uint32_t feature) {
  m->point[m->count] = point;
  m->gap[m->count] = gap;
  m->feature[m->count] = feature;
  ++m->count;
}

/* Two balls, the second one's center at d from the first. */
PABD_FN void collide_balls(vec3 d, real ra, real rb, real margin, pabd_manifold *m) {
  real distance = v3_norm(d), gap = distance - ra - rb;
  if (gap > margin) return;
  m->normal = v3_unit(v3_neg(d), v3(R(0), R(0), R(1)));
  m->round_a = ra, m->round_b = rb;
  manifold_add(m, v3_scale(-(ra + R(0.5) * gap), m->normal), gap, 0);
}

PABD_FN void collide_sphere_capsule(const pabd_shape_frame *a, const pabd_shape_frame *b, real margin,
                                    pabd_manifold *m) {
  vec3 d = v3_sub(b->pos, a->pos), axis = shape_axis(b);
  real t = real_clamp(-v3_dot(d, axis), -b->half.y, b->half.y);
  collide_balls(v3_madd(d, t, axis), a->half.x, b->half.x, margin, m);
}

PABD_FN void collide_sphere_plane(const pabd_shape_frame *a, const pabd_shape_frame *b, real margin, pabd_manifold *m) {
  vec3 n = shape_axis(b);
  real radius = a->half.x, gap = v3_dot(n, v3_sub(a->pos, b->pos)) - radius;
  if (gap > margin) return;
  m->normal = n;
  m->round_a = radius;
  manifold_add(m, v3_scale(-(radius + R(0.5) * gap), n), gap, 0);
}

PABD_FN void collide_capsule_plane(const pabd_shape_frame *a, const pabd_shape_frame *b, real margin,
                                   pabd_manifold *m) {
  vec3 n = shape_axis(b), d = v3_sub(a->pos, b->pos), u = v3_scale(a->half.y, shape_axis(a));
  real radius = a->half.x;
  m->normal = n;
  m->round_a = radius;
  for (int32_t end = 0; end < 2; ++end) {
    vec3 e = end ? u : v3_neg(u);
    real gap = v3_dot(n, v3_add(d, e)) - radius;
    if (gap <= margin) manifold_add(m, v3_madd(e, -(radius + R(0.5) * gap), n), gap, 1u + (uint32_t)end);
  }
}

PABD_FN void collide_sphere_box(const pabd_shape_frame *a, const pabd_shape_frame *b, real margin, pabd_manifold *m) {
  vec3 c = mat3_tmul(b->rot, v3_sub(a->pos, b->pos)), h = b->half; /* center in the box's frame */
  vec3 nearest = v3(real_clamp(c.x, -h.x, h.x), real_clamp(c.y, -h.y, h.y), real_clamp(c.z, -h.z, h.z));
  vec3 out = v3_sub(c, nearest), n;
  real distance = v3_norm(out), radius = a->half.x, gap = distance - radius;
  if (gap > margin) return;
  if (distance > R(4) * PABD_EPSILON * (h.x + h.y + h.z)) {
    n = v3_scale(R(1) / distance, out);
  } else { /* center inside: out through the nearest face */
    real x = h.x - real_abs(c.x), y = h.y - real_abs(c.y), z = h.z - real_abs(c.z);
    if (x <= y && x <= z)
      n = v3(c.x < R(0) ? R(-1) : R(1), R(0), R(0)), gap = -x - radius;
    else if (y <= z)
      n = v3(R(0), c.y < R(0) ? R(-1) : R(1), R(0)), gap = -y - radius;
    else
      n = v3(R(0), R(0), c.z < R(0) ? R(-1) : R(1)), gap = -z - radius;
  }
  m->normal = mat3_mul(b->rot, n);
  m->round_a = radius;
  manifold_add(m, v3_scale(-(radius + R(0.5) * gap), m->normal), gap, 0);
}

/* Closest points of the segments s u and d + t v, s and t in -1 .. 1. */
PABD_FN void closest_on_segments(vec3 u, vec3 d, vec3 v, real *s, real *t) {
  real uu = v3_norm2(u), vv = v3_norm2(v), uv = v3_dot(u, v), ud = v3_dot(u, d), vd = v3_dot(v, d);
  real det = uu * vv - uv * uv, a = R(0), b = R(0);
  if (det > R(1e-6) * uu * vv) a = real_clamp((ud * vv - vd * uv) / det, R(-1), R(1));
  if (vv > R(0)) {
    b = (a * uv - vd) / vv;
    if (b < R(-1) || b > R(1)) {
      b = real_clamp(b, R(-1), R(1));
      if (uu > R(0)) a = real_clamp((ud + b * uv) / uu, R(-1), R(1));
    }
  } else if (uu > R(0)) {
    a = real_clamp(ud / uu, R(-1), R(1));
  }
  *s = a, *t = b;
}

PABD_FN void collide_capsules(const pabd_shape_frame *a, const pabd_shape_frame *b, real margin, pabd_manifold *m) {
  vec3 d = v3_sub(b->pos, a->pos), ea = shape_axis(a), eb = shape_axis(b);
  vec3 u = v3_scale(a->half.y, ea), v = v3_scale(b->half.y, eb);
  real ra = a->half.x, rb = b->half.x, s, t;
  closest_on_segments(u, d, v, &s, &t);
  vec3 between = v3_sub(v3_madd(d, t, v), v3_scale(s, u)), cross = v3_cross(ea, eb);
  real distance = v3_norm(between), sine2 = v3_norm2(cross);
  if (distance - ra - rb > margin) return;
  m->round_a = ra, m->round_b = rb;
  if (distance > R(1e-5) * (ra + rb))
    m->normal = v3_scale(R(-1) / distance, between);
  else /* the segments meet: apart along their common normal */
    m->normal = v3_unit(cross, v3_tangent(ea));
  /* nearly parallel and side by side (the normal is square to both): two points, at the ends of the common stretch */
  real square = real_max(real_abs(v3_dot(m->normal, ea)), real_abs(v3_dot(m->normal, eb)));
  if (sine2 < R(0.01) && square < R(0.1) && a->half.y > R(0) && b->half.y > R(0)) {
    real middle = v3_dot(d, ea), reach = real_abs(v3_dot(v, ea));
    real low = real_max(middle - reach, -a->half.y), high = real_min(middle + reach, a->half.y);
    if (high - low > R(0.1) * real_min(ra, rb)) {
      real facing = v3_dot(ea, eb);
      for (int32_t end = 0; end < 2; ++end) {
        real x = end ? high : low, y = real_clamp((x - middle) / facing, -b->half.y, b->half.y);
        vec3 p = v3_scale(x, ea), q = v3_madd(d, y, eb);
        real gap = v3_dot(m->normal, v3_sub(p, q)) - ra - rb;
        if (gap <= margin) manifold_add(m, v3_madd(p, -(ra + R(0.5) * gap), m->normal), gap, 1u + (uint32_t)end);
      }
      if (m->count > 0) return;
    }
  }
  real gap = v3_dot(m->normal, v3_neg(between)) - ra - rb;
  manifold_add(m, v3_madd(v3_scale(s, u), -(ra + R(0.5) * gap), m->normal), gap, 0);
}

PABD_FN real v3_get(vec3 a, int32_t k) {
  return k == 0 ? a.x : (k == 1 ? a.y : a.z);
}
PABD_FN vec3 v3_axis(int32_t k, real value) {
  return v3(k == 0 ? value : R(0), k == 1 ? value : R(0), k == 2 ? value : R(0));
}

/* Derivative in t of half the squared distance of c + t u to the box, which never falls: the distance is convex. */
PABD_FN real segment_box_slope(vec3 c, vec3 u, vec3 h, real t) {
  vec3 q = v3_madd(c, t, u);
  vec3 out = v3(q.x - real_clamp(q.x, -h.x, h.x), q.y - real_clamp(q.y, -h.y, h.y), q.z - real_clamp(q.z, -h.z, h.z));
  return v3_dot(out, u);
}

/* Stretch low..high of t for which |c_k + t u_k| <= h_k. */
PABD_FN void clip_stretch(real c, real u, real h, real *low, real *high) {
  if (real_abs(u) < R(1e-12)) {
    if (real_abs(c) > h) *high = R(-2);
    return;
  }
  real t0 = (-h - c) / u, t1 = (h - c) / u;
  *low = real_max(*low, real_min(t0, t1));
  *high = real_min(*high, real_max(t0, t1));
}

PABD_FN void collide_capsule_box(const pabd_shape_frame *a, const pabd_shape_frame *b, real margin, pabd_manifold *m) {
  /* the capsule's segment c + t u in the box's frame */
  vec3 c = mat3_tmul(b->rot, v3_sub(a->pos, b->pos)), h = b->half;
  vec3 e = mat3_tmul(b->rot, shape_axis(a)), u = v3_scale(a->half.y, e);
  real radius = a->half.x;
  real reach = radius + margin;
  if (real_abs(c.x) - real_abs(u.x) > h.x + reach || real_abs(c.y) - real_abs(u.y) > h.y + reach ||
      real_abs(c.z) - real_abs(u.z) > h.z + reach)
    return;

  /* the closest point of the segment: the zero of a slope that is linear between breakpoints, by bisection and a last
   * secant */
  real low = R(-1), high = R(1), slope_low = segment_box_slope(c, u, h, low),
       slope_high = segment_box_slope(c, u, h, high), t;
  if (slope_low >= R(0)) {
    t = low;
  } else if (slope_high <= R(0)) {
    t = high;
  } else {
    for (int32_t k = 0; k < 16; ++k) {
      real middle = R(0.5) * (low + high), slope = segment_box_slope(c, u, h, middle);
      if (slope < R(0))
        low = middle, slope_low = slope;
      else
        high = middle, slope_high = slope;
    }
    t = slope_high > slope_low ? low - slope_low * (high - low) / (slope_high - slope_low) : low;
  }
  vec3 q = v3_madd(c, t, u);
  vec3 out = v3(q.x - real_clamp(q.x, -h.x, h.x), q.y - real_clamp(q.y, -h.y, h.y), q.z - real_clamp(q.z, -h.z, h.z));
  real distance = v3_norm(out);
  if (distance - radius > margin) return;

  vec3 n;
  int32_t face = -1; /* axis of the face the normal belongs to */
  if (distance > R(1e-5) * (h.x + h.y + h.z)) {
    n = v3_scale(R(1) / distance, out);
    for (int32_t k = 0; k < 3;
         ++k) { /* a segment that lies down on a face may stick out by rounding, a steep one may not */
      real aside = real_abs(v3_get(n, k == 2 ? 0 : k + 1)) + real_abs(v3_get(n, k == 0 ? 2 : k - 1));
      if (aside <= (real_abs(v3_get(e, k)) < R(0.5) ? R(1e-3) : R(0))) face = k;
    }
    if (face >= 0) n = v3_axis(face, v3_get(n, face) < R(0) ? R(-1) : R(1));
  } else { /* the segment enters the box: the axis of least overlap, a face unless an edge is clearly better */
    real best = R(-1e30);
    for (int32_t k = 0; k < 3; ++k) {
      real gap = real_abs(v3_get(c, k)) - v3_get(h, k) - real_abs(v3_get(u, k));
      if (gap > best) best = gap, face = k;
    }
    n = v3_axis(face, v3_get(c, face) < R(0) ? R(-1) : R(1));
    real bias = R(0.1) * radius;
    for (int32_t k = 0; k < 3; ++k) {
      vec3 axis = v3_cross(v3_axis(k, R(1)), e);
      real length = v3_norm(axis);
      if (length < R(0.1)) continue;
      axis = v3_scale((v3_dot(axis, c) < R(0) ? R(-1) : R(1)) / length, axis);
      real gap = v3_dot(axis, c) - real_abs(axis.x) * h.x - real_abs(axis.y) * h.y - real_abs(axis.z) * h.z;
      if (gap > best + bias) best = gap, n = axis, face = -1;
    }
  }

  m->normal = mat3_mul(b->rot, n);
  m->round_a = radius;
  real support = real_abs(n.x) * h.x + real_abs(n.y) * h.y + real_abs(n.z) * h.z + radius;
  vec3 eu = v3_scale(a->half.y, shape_axis(a));
  /* over a face, or along an edge nearly parallel to it: both ends of the stretch beside the feature */
  real t0 = R(-1), t1 = R(1);
  int32_t free_axes = 0;
  int is_parallel = 0;
  for (int32_t k = 0; k < 3; ++k) {
    int is_free = face >= 0 ? k != face : real_abs(v3_get(n, k)) < R(1e-4);
    if (!is_free) continue;
    clip_stretch(v3_get(c, k), v3_get(u, k), v3_get(h, k), &t0, &t1);
    ++free_axes;
    is_parallel = real_abs(v3_get(e, k)) > R(0.9998); /* within 1.1 degrees of that edge */
  }
  int is_stretch = a->half.y > R(0) && (face >= 0 || (free_axes == 1 && is_parallel));
  if (is_stretch && t1 > t0) {
    for (int32_t end = 0; end < 2; ++end) {
      real x = end ? t1 : t0, gap = v3_dot(n, v3_madd(c, x, u)) - support;
      if (gap <= margin)
        manifold_add(m, v3_madd(v3_scale(x, eu), -(radius + R(0.5) * gap), m->normal), gap, 1u + (uint32_t)end);
    }
    if (m->count > 0) return;
  }
  real gap = v3_dot(n, q) - support;
  if (gap <= margin) manifold_add(m, v3_madd(v3_scale(t, eu), -(radius + R(0.5) * gap), m->normal), gap, 0);
}

PABD_FN void collide_box_plane(const pabd_shape_frame *a, const pabd_shape_frame *b, real margin, pabd_manifold *m) {
  vec3 n = shape_axis(b), d = v3_sub(a->pos, b->pos);
  vec3 down = v3_neg(mat3_tmul(a->rot, n)); /* towards the plane, in the box's frame */
  real height = v3_dot(n, d);
  vec3 h = a->half;
  real lowest = height - real_abs(down.x) * h.x - real_abs(down.y) * h.y - real_abs(down.z) * h.z;
  if (lowest > margin) return;
  m->normal = n;
  /* the four corners of the face that looks down most */
  int32_t face = real_abs(down.x) >= real_abs(down.y) ? 0 : 1;
  if (real_abs(down.z) > real_abs(v3_get(down, face))) face = 2;
  uint32_t fixed = v3_get(down, face) >= R(0) ? 1u << face : 0u;
  for (uint32_t corner = 0; corner < 8; ++corner) {
    if ((corner & 1u << face) != fixed) continue;
    vec3 p = v3(corner & 1u ? h.x : -h.x, corner & 2u ? h.y : -h.y, corner & 4u ? h.z : -h.z);
    vec3 world = mat3_mul(a->rot, p);
    real gap = height + v3_dot(n, world);
    if (gap <= margin) manifold_add(m, v3_madd(world, R(-0.5) * gap, n), gap, corner);
  }
}

/* -- box against box
 * ---------------------------------------------------------------------------------------------------------- */

/* Corner of the clipped incident face: position over the reference face, height above it, and the edge that leaves the
 * corner (0..3 of the incident face, 4..7 sides of the reference face). */
typedef struct clip_corner {
  real x, y, gap;
  uint32_t edge;
} clip_corner;

/* Cuts a convex polygon by sign * (axis ? y : x) <= limit (Sutherland and Hodgman 1974); returns the new number of
 * corners. */
PABD_FN int32_t clip_polygon(const clip_corner *from, int32_t count, clip_corner *to, int32_t axis, real sign,
                             real limit, uint32_t side) {
  int32_t n = 0;
  for (int32_t i = 0; i < count; ++i) {
    const clip_corner *p = &from[i], *q = &from[i + 1 < count ? i + 1 : 0];
    real over_p = sign * (axis ? p->y : p->x) - limit, over_q = sign * (axis ? q->y : q->x) - limit;
    int p_in = over_p <= R(0), q_in = over_q <= R(0);
    if (p_in) to[n++] = *p;
    if (p_in == q_in) continue;
    real t = over_p / (over_p - over_q);
    clip_corner cut;
    cut.x = p->x + t * (q->x - p->x);
    cut.y = p->y + t * (q->y - p->y);
    cut.gap = p->gap + t * (q->gap - p->gap);
    cut.edge = p_in ? side : p->edge; /* leaving: the boundary goes on along the side; entering: along this edge */
    to[n++] = cut;
  }
  return n;
}

/* Keeps four of more points: the deepest, the farthest from it, and the farthest to either side of their line. Ties
 * within `tie` (m) go to the first corner, so that noise does not swap points. */
PABD_FN void keep_four(const clip_corner *p, int32_t count, real tie, int32_t keep[4]) {
  int32_t deepest = 0, farthest = 0, left = -1, right = -1;
  for (int32_t i = 1; i < count; ++i)
    if (p[i].gap < p[deepest].gap - tie) deepest = i;
  real best = R(-1);
  for (int32_t i = 0; i < count; ++i) {
    real dx = p[i].x - p[deepest].x, dy = p[i].y - p[deepest].y, d = dx * dx + dy * dy;
    if (d > best * R(1.001)) best = d, farthest = i;
  }
  real ex = p[farthest].x - p[deepest].x, ey = p[farthest].y - p[deepest].y, most_left = R(0), most_right = R(0);
  for (int32_t i = 0; i < count; ++i) {
    real area = ex * (p[i].y - p[deepest].y) - ey * (p[i].x - p[deepest].x);
    if (i == deepest || i == farthest) continue;
    if (area > most_left * R(1.001)) most_left = area, left = i;
    if (area < most_right * R(1.001)) most_right = area, right = i;
  }
  keep[0] = deepest, keep[1] = farthest, keep[2] = left, keep[3] = right;
}

/* Face contact. The reference box is `r` with half extents hr; the incident box has rotation M (its axes are the
 * columns, entry M[3 i + j]), half extents hi and center t in the reference box's frame. `name` tags the features with
 * the reference face. */
PABD_FN void collide_box_face(const pabd_shape_frame *r, vec3 hr3, vec3 hi3, const real M[9], const real t[3],
                              int32_t k, real margin, real tie, uint32_t name, vec3 origin, real normal_sign,
                              pabd_manifold *m) {
  const real hr[3] = {hr3.x, hr3.y, hr3.z}, hi[3] = {hi3.x, hi3.y, hi3.z};
  int32_t k1 = k == 2 ? 0 : k + 1, k2 = k == 0 ? 2 : k - 1;
  real sign = t[k] >= R(0) ? R(1) : R(-1); /* the face looks towards the incident box */
  real m0 = real_abs(M[3 * k]), m1 = real_abs(M[3 * k + 1]), m2 = real_abs(M[3 * k + 2]);
  int32_t j = m1 > m0 ? 1 : 0;
  if (m2 > (m1 > m0 ? m1 : m0)) j = 2;
  int32_t j1 = j == 2 ? 0 : j + 1, j2 = j == 0 ? 2 : j - 1;
  real facing = sign * M[3 * k + j] > R(0) ? -hi[j] : hi[j];
  uint32_t features =
      name | (uint32_t)k << 8 | (sign > R(0) ? 1u << 10 : 0u) | (uint32_t)j << 11 | (facing > R(0) ? 1u << 13 : 0u);

  /* the incident face over the reference face: center and half edges; height above the face as `gap` */
  real cx = t[k1] + facing * M[3 * k1 + j], cy = t[k2] + facing * M[3 * k2 + j],
       cg = sign * (t[k] + facing * M[3 * k + j]) - hr[k];
  real ux = hi[j1] * M[3 * k1 + j1], uy = hi[j1] * M[3 * k2 + j1], ug = sign * hi[j1] * M[3 * k + j1];
  real vx = hi[j2] * M[3 * k1 + j2], vy = hi[j2] * M[3 * k2 + j2], vg = sign * hi[j2] * M[3 * k + j2];
  clip_corner p[8], q[8];
  p[0].x = cx + ux + vx, p[0].y = cy + uy + vy, p[0].gap = cg + ug + vg, p[0].edge = 0;
  p[1].x = cx - ux + vx, p[1].y = cy - uy + vy, p[1].gap = cg - ug + vg, p[1].edge = 1;
  p[2].x = cx - ux - vx, p[2].y = cy - uy - vy, p[2].gap = cg - ug - vg, p[2].edge = 2;
  p[3].x = cx + ux - vx, p[3].y = cy + uy - vy, p[3].gap = cg + ug - vg, p[3].edge = 3;
  /* sides a little outside (tie), so that aligned boxes do not flip between corner and crossing at every rounding */
  real x_max = hr[k1] + tie, y_max = hr[k2] + tie, reach_x = real_abs(ux) + real_abs(vx),
       reach_y = real_abs(uy) + real_abs(vy);
  clip_corner *from = p, *to = q, *swap;
  int32_t count = 4;
  if (cx + reach_x > x_max) count = clip_polygon(from, count, to, 0, R(1), x_max, 4), swap = from, from = to, to = swap;
  if (cy + reach_y > y_max) count = clip_polygon(from, count, to, 1, R(1), y_max, 5), swap = from, from = to, to = swap;
  if (cx - reach_x < -x_max)
    count = clip_polygon(from, count, to, 0, R(-1), x_max, 6), swap = from, from = to, to = swap;
  if (cy - reach_y < -y_max)
    count = clip_polygon(from, count, to, 1, R(-1), y_max, 7), swap = from, from = to, to = swap;

  /* a corner's name is the pair of edges that meet there; then only what is within the margin stays */
  uint32_t before = count > 0 ? from[count - 1].edge : 0u;
  int32_t near = 0;
  for (int32_t i = 0; i < count; ++i) {
    uint32_t edge = from[i].edge;
    if (from[i].gap <= margin) {
      to[near] = from[i];
      to[near].edge = features | before << 4 | edge;
      ++near;
    }
    before = edge;
  }
  if (near == 0) return;

  int32_t keep[4] = {0, 1, 2, 3}, kept = near < 4 ? near : 4;
  if (near > 4) keep_four(to, near, tie, keep);
  vec3 ex = v3(v3_get(r->rot.x, k1), v3_get(r->rot.y, k1), v3_get(r->rot.z, k1));
  vec3 ey = v3(v3_get(r->rot.x, k2), v3_get(r->rot.y, k2), v3_get(r->rot.z, k2));
  vec3 n = v3_scale(sign, v3(v3_get(r->rot.x, k), v3_get(r->rot.y, k), v3_get(r->rot.z, k)));
  m->normal = v3_scale(normal_sign, n);
  for (int32_t i = 0; i < kept; ++i) {
    if (keep[i] < 0) continue;
    const clip_corner *c = &to[keep[i]];
    vec3 point = v3_madd(origin, hr[k] + R(0.5) * c->gap, n);
    point = v3_madd(v3_madd(point, c->x, ex), c->y, ey);
    manifold_add(m, point, c->gap, c->edge);
  }
}

/* Axis a_i x b_j: the two supporting edges, their closest points. C[3 i + j] = a_i . b_j, t = position of b in a's
 * frame. */
PABD_FN void collide_box_edges(const pabd_shape_frame *a, vec3 ha, vec3 hb, const real C[9], const real t[3], int32_t i,
                               int32_t j, real gap, pabd_manifold *m) {
  vec3 bj = v3(C[j], C[3 + j], C[6 + j]), axis = v3_cross(v3_axis(i, R(1)), bj), d = v3(t[0], t[1], t[2]);
  axis = v3_scale((v3_dot(axis, d) < R(0) ? R(-1) : R(1)) / v3_norm(axis), axis); /* from a to b */
  vec3 pa = v3(R(0), R(0), R(0)), pb = d;
  uint32_t feature = 1u << 15 | (uint32_t)i << 8 | (uint32_t)j << 10;
  for (int32_t k = 0; k < 3; ++k) {
    if (k != i) {
      real side = v3_get(axis, k) > R(0) ? R(1) : R(-1);
      pa = v3_add(pa, v3_axis(k, side * v3_get(ha, k)));
      if (side > R(0)) feature |= 1u << k;
    }
    if (k != j) {
      vec3 bk = v3(C[k], C[3 + k], C[6 + k]);
      real side = v3_dot(axis, bk) > R(0) ? R(-1) : R(1);
      pb = v3_madd(pb, side * v3_get(hb, k), bk);
      if (side > R(0)) feature |= 8u << k;
    }
  }
  real s, u;
  vec3 edge_a = v3_axis(i, v3_get(ha, i)), edge_b = v3_scale(v3_get(hb, j), bj);
  closest_on_segments(edge_a, v3_sub(pb, pa), edge_b, &s, &u);
  vec3 on_a = v3_madd(pa, s, edge_a), on_b = v3_madd(pb, u, edge_b);
  m->normal = v3_neg(mat3_mul(a->rot, axis));
  manifold_add(m, mat3_mul(a->rot, v3_scale(R(0.5), v3_add(on_a, on_b))), gap, feature);
}

/* Separating axes (Gottschalk, Lin and Manocha 1996): six face normals, then nine products of edges. The axis of
 * largest gap wins, a face unless an edge beats it by the edge bias: edge contacts carry one point and start piles
 * rolling. */
PABD_FN void collide_boxes(const pabd_shape_frame *fa, const pabd_shape_frame *fb, real margin, real edge_bias,
                           pabd_manifold *m) {
  const real *A = &fa->rot.x.x, *B = &fb->rot.x.x;
  const real ha[3] = {fa->half.x, fa->half.y, fa->half.z}, hb[3] = {fb->half.x, fb->half.y, fb->half.z};
  vec3 d = v3_sub(fb->pos, fa->pos);
  real C[9], D[9], t[3], u[3], gap_a[3], gap_b[3]; /* C[3 i + j] = a_i . b_j, D = |C|; d along the axes of a and of b */
  for (int32_t i = 0; i < 3; ++i) {
    for (int32_t j = 0; j < 3; ++j) {
      C[3 * i + j] = A[i] * B[j] + A[3 + i] * B[3 + j] + A[6 + i] * B[6 + j];
      D[3 * i + j] = real_abs(C[3 * i + j]);
    }
    t[i] = A[i] * d.x + A[3 + i] * d.y + A[6 + i] * d.z;
    u[i] = B[i] * d.x + B[3 + i] * d.y + B[6 + i] * d.z;
  }
  for (int32_t i = 0; i < 3; ++i) {
    gap_a[i] = real_abs(t[i]) - ha[i] - (D[3 * i] * hb[0] + D[3 * i + 1] * hb[1] + D[3 * i + 2] * hb[2]);
    gap_b[i] = real_abs(u[i]) - hb[i] - (D[i] * ha[0] + D[3 + i] * ha[1] + D[6 + i] * ha[2]);
  }
  int32_t face_a = gap_a[1] > gap_a[0] ? 1 : 0, face_b = gap_b[1] > gap_b[0] ? 1 : 0;
  if (gap_a[2] > gap_a[face_a]) face_a = 2;
  if (gap_b[2] > gap_b[face_b]) face_b = 2;
  if (gap_a[face_a] > margin || gap_b[face_b] > margin) return;

  real edge = R(-1e30);
  int32_t edge_axis = -1;
  for (int32_t i = 0; i < 3; ++i) {
    int32_t i1 = i == 2 ? 0 : i + 1, i2 = i == 0 ? 2 : i - 1;
    for (int32_t j = 0; j < 3; ++j) {
      int32_t j1 = j == 2 ? 0 : j + 1, j2 = j == 0 ? 2 : j - 1;
      real length2 = R(1) - C[3 * i + j] * C[3 * i + j];
      if (length2 < R(1e-3)) continue; /* parallel edges: the faces say the same, and without dividing noise by noise */
      real gap = real_abs(t[i2] * C[3 * i1 + j] - t[i1] * C[3 * i2 + j]) -
                 (ha[i1] * D[3 * i2 + j] + ha[i2] * D[3 * i1 + j]) - (hb[j1] * D[3 * i + j2] + hb[j2] * D[3 * i + j1]);
      gap = gap / real_sqrt(length2);
      if (gap > edge) edge = gap, edge_axis = 3 * i + j;
    }
  }
  if (edge > margin) return;

  /* a's face is the reference unless b's is better by more than rounding: no flips between equal faces */
  real size = real_min(real_min(ha[0], real_min(ha[1], ha[2])), real_min(hb[0], real_min(hb[1], hb[2])));
  real tie = R(1e-3) * size, best = real_max(gap_a[face_a], gap_b[face_b]);
  /* small boxes: 10 mm would forbid their edge contacts altogether, so the bias is at most a twentieth of the half
   * extent */
  real bias = real_min(edge_bias, R(0.05) * size);
  if (edge <= best + bias) {
    if (gap_b[face_b] > gap_a[face_a] + tie) {
      real T[9];
      for (int32_t i = 0; i < 3; ++i)
        for (int32_t j = 0; j < 3; ++j) T[3 * i + j] = C[3 * j + i];
      real back[3] = {-u[0], -u[1], -u[2]};
      collide_box_face(fb, fb->half, fa->half, T, back, face_b, margin, tie, 1u << 14, d, R(1), m);
    } else {
      collide_box_face(fa, fa->half, fb->half, C, t, face_a, margin, tie, 0u, v3(R(0), R(0), R(0)), R(-1), m);
    }
    if (m->count > 0) return;
  }
  /* An edge clearly better, or the incident face misses the reference face (edges that cross near a corner). An edge
   * axis far worse than the face would be a contact between boxes that do not touch. */
  if (edge_axis >= 0 && edge > best - (best < R(0) ? bias : R(0)))
    collide_box_edges(fa, fa->half, fb->half, C, t, edge_axis / 3, edge_axis % 3, edge, m);
}

/* -- dispatch
 * ----------------------------------------------------------------------------------------------------------------- */

/* One pair with kind a <= kind b. Slots without a routine give no contact; pabd_sim_create refuses such shapes. */
PABD_FN void collide_kinds(const pabd_view *s, int32_t i, int32_t j, real margin, pabd_manifold *m) {
  const pabd_shape_frame *a = &s->shape_frame[i], *b = &s->shape_frame[j];
  switch (s->shape_kind[i] * PABD_SHAPE_KIND_COUNT + s->shape_kind[j]) {
    case PABD_BOX *PABD_SHAPE_KIND_COUNT + PABD_BOX:
      collide_boxes(a, b, margin, s->edge_bias, m);
      break;
    case PABD_BOX *PABD_SHAPE_KIND_COUNT + PABD_PLANE:
      collide_box_plane(a, b, margin, m);
      break;
    case PABD_SPHERE *PABD_SHAPE_KIND_COUNT + PABD_SPHERE:
      collide_balls(v3_sub(b->pos, a->pos), a->half.x, b->half.x, margin, m);
      break;
    case PABD_SPHERE *PABD_SHAPE_KIND_COUNT + PABD_CAPSULE:
      collide_sphere_capsule(a, b, margin, m);
      break;
    case PABD_SPHERE *PABD_SHAPE_KIND_COUNT + PABD_BOX:
      collide_sphere_box(a, b, margin, m);
      break;
    case PABD_SPHERE *PABD_SHAPE_KIND_COUNT + PABD_PLANE:
      collide_sphere_plane(a, b, margin, m);
      break;
    case PABD_CAPSULE *PABD_SHAPE_KIND_COUNT + PABD_CAPSULE:
      collide_capsules(a, b, margin, m);
      break;
    case PABD_CAPSULE *PABD_SHAPE_KIND_COUNT + PABD_BOX:
      collide_capsule_box(a, b, margin, m);
      break;
    case PABD_CAPSULE *PABD_SHAPE_KIND_COUNT + PABD_PLANE:
      collide_capsule_plane(a, b, margin, m);
      break;
    default:
      break;
  }
}

/* narrow: manifold of pair p; points sorted by feature. */
PABD_FN void narrow_at(int32_t p, const pabd_view *s) {
  uint64_t key = s->pair_key[p];
  int32_t i = (int32_t)(key >> 32), j = (int32_t)(key & 0xffffffffu), a = s->shape_body[i], b = s->shape_body[j];
  real margin = pair_margin(s, a, b, s->shape_frame[i].reach, s->shape_frame[j].reach);
  pabd_manifold m;
  m.count = 0;
  m.normal = v3(R(0), R(0), R(1));
  m.round_a = m.round_b = R(0);
  int swapped = s->shape_kind[i] > s->shape_kind[j];
  collide_kinds(s, swapped ? j : i, swapped ? i : j, margin, &m);
  s->manifold_count[p] = m.count;
  if (m.count == 0) return;
  s->manifold_normal[p] = swapped ? v3_neg(m.normal) : m.normal;
  s->manifold_round_a[p] = swapped ? m.round_b : m.round_a;
  s->manifold_round_b[p] = swapped ? m.round_a : m.round_b;
  vec3 origin = s->shape_frame[swapped ? j : i].pos;
  for (int32_t k = 0; k < m.count; ++k) { /* a point's place is the number of smaller features (they are unique) */
    int32_t place = 4 * p;
    for (int32_t l = 0; l < m.count; ++l)
      place += m.feature[l] < m.feature[k] || (m.feature[l] == m.feature[k] && l < k);
    s->manifold_point[place] = v3_add(origin, m.point[k]);
    s->manifold_gap[place] = m.gap[k];
    s->manifold_feature[place] = m.feature[k];
  }
}

#endif
