/* The gap of any two convex solids from their support functions: GJK where they are apart, an expanding polytope (EPA)
 * where they overlap.
 *
 * Both work on the Minkowski difference of the cores (a sphere's is a point, a capsule's a segment; radii are
 * subtracted at the end, which is exact). EPA keeps a polytope inside the difference: its nearest face is a lower bound
 * of the depth, and every direction that was ever probed gives an upper bound, the overlap along it. The result is the
 * best upper bound, so whatever rounding does to the polytope, it is the overlap along the normal that is returned.
 * Invariant: normal.(lowest of a) - normal.(highest of b) = gap. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "geometry.h"
#include "vec3.h"

/* Relative to the size of the two cores. */
#define TOLERANCE 1e-11
#define GJK_ITERATIONS 300
#define POINT_CAPACITY 600
#define FACE_CAPACITY (2 * POINT_CAPACITY)

static double core_radius(const pabd_solid *s) {
  return s->kind == PABD_SPHERE || s->kind == PABD_CAPSULE ? s->radius : 0;
}

/* Farthest point of the core along d (any length). */
static pabd_dvec3 support(const pabd_solid *s, pabd_dvec3 d) {
  double x = v3_dot(d, s->axis[0]), y = v3_dot(d, s->axis[1]), z = v3_dot(d, s->axis[2]);
  pabd_dvec3 local = {0, 0, 0};
  switch (s->kind) {
    case PABD_SPHERE:
      return s->p;
    case PABD_CAPSULE:
      local.z = copysign(s->half_length, z);
      break;
    case PABD_BOX:
      local = (pabd_dvec3){copysign(s->half.x, x), copysign(s->half.y, y), copysign(s->half.z, z)};
      break;
    case PABD_CYLINDER: {
      double rho = hypot(x, y);
      if (rho > 0) local.x = s->radius * x / rho, local.y = s->radius * y / rho;
      local.z = copysign(s->half_length, z);
      break;
    }
    case PABD_HULL: {
      double best = -INFINITY;
      for (int32_t k = 0; k < s->vertex_count; ++k) {
        double along = x * s->vertices[k].x + y * s->vertices[k].y + z * s->vertices[k].z;
        if (along <= best) continue;
        best = along;
        local = s->vertices[k];
      }
      break;
    }
    default:
      assert(!"no support function");
  }
  return v3_madd(v3_madd(v3_madd(s->p, local.x, s->axis[0]), local.y, s->axis[1]), local.z, s->axis[2]);
}

/* Farthest point of the difference a - b along d. */
static pabd_dvec3 difference(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 d) {
  return v3_sub(support(a, d), support(b, v3_scale(-1, d)));
}

static double core_size(const pabd_solid *s) {
  switch (s->kind) {
    case PABD_SPHERE:
      return 0;
    case PABD_CAPSULE:
      return s->half_length;
    case PABD_BOX:
      return v3_norm(s->half);
    case PABD_CYLINDER:
      return hypot(s->radius, s->half_length);
    default: {
      double size = 0;
      for (int32_t k = 0; k < s->vertex_count; ++k) size = fmax(size, v3_norm(s->vertices[k]));
      return size;
    }
  }
}

/* ---- GJK ---- */

typedef struct simplex {
  int count;
  pabd_dvec3 x[4];
} simplex;

static pabd_dvec3 nearest_on_segment(const pabd_dvec3 *x, simplex *kept) {
  pabd_dvec3 u = v3_sub(x[1], x[0]);
  double squared = v3_dot(u, u), t = squared > 0 ? -v3_dot(x[0], u) / squared : 0;
  if (t <= 0 || t >= 1) {
    kept->count = 1;
    kept->x[0] = x[t > 0];
    return kept->x[0];
  }
  kept->count = 2;
  kept->x[0] = x[0], kept->x[1] = x[1];
  return v3_madd(x[0], t, u);
}

static pabd_dvec3 nearest_on_triangle(const pabd_dvec3 *x, simplex *kept) {
  pabd_dvec3 n = v3_cross(v3_sub(x[1], x[0]), v3_sub(x[2], x[0]));
  double squared = v3_dot(n, n);
  int inside = squared > 0;
  for (int k = 0; k < 3 && inside; ++k) {
    const pabd_dvec3 from = x[k], to = x[(k + 1) % 3];
    inside = v3_dot(v3_cross(v3_sub(to, from), n), from) >= 0; /* the origin is on the inner side of the edge */
  }
  if (inside) {
    kept->count = 3;
    memcpy(kept->x, x, 3 * sizeof *x);
    /* The foot of the origin on the plane. The vertex nearest to the origin keeps rounding small. */
    int nearest = 0;
    for (int k = 1; k < 3; ++k) nearest = v3_dot(x[k], x[k]) < v3_dot(x[nearest], x[nearest]) ? k : nearest;
    return v3_scale(v3_dot(x[nearest], n) / squared, n);
  }
  pabd_dvec3 best = {0, 0, 0};
  double best_squared = INFINITY;
  for (int k = 0; k < 3; ++k) {
    const pabd_dvec3 edge[2] = {x[k], x[(k + 1) % 3]};
    simplex part;
    pabd_dvec3 p = nearest_on_segment(edge, &part);
    if (v3_dot(p, p) >= best_squared) continue;
    best_squared = v3_dot(p, p);
    best = p;
    *kept = part;
  }
  return best;
}

/* Point of the simplex nearest to the origin; the simplex shrinks to the corners that carry it. Four corners are left
 * exactly when the origin is inside. */
static pabd_dvec3 nearest(simplex *s) {
  simplex kept = *s;
  pabd_dvec3 best = s->x[0];
  if (s->count == 2) best = nearest_on_segment(s->x, &kept);
  if (s->count == 3) best = nearest_on_triangle(s->x, &kept);
  if (s->count == 4) {
    /* Outside of a face: origin and opposite corner on different sides. A flat tetrahedron is always outside. */
    static const int faces[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
    double best_squared = INFINITY;
    int outside = 0;
    for (int f = 0; f < 4; ++f) {
      const pabd_dvec3 x[3] = {s->x[faces[f][0]], s->x[faces[f][1]], s->x[faces[f][2]]};
      pabd_dvec3 n = v3_cross(v3_sub(x[1], x[0]), v3_sub(x[2], x[0]));
      double of_origin = -v3_dot(n, x[0]), of_corner = v3_dot(n, v3_sub(s->x[faces[f][3]], x[0]));
      if (of_origin * of_corner > 0) continue;
      outside = 1;
      simplex part;
      pabd_dvec3 p = nearest_on_triangle(x, &part);
      if (v3_dot(p, p) >= best_squared) continue;
      best_squared = v3_dot(p, p);
      best = p;
      kept = part;
    }
    if (!outside) return (pabd_dvec3){0, 0, 0};
  }
  *s = kept;
  return best;
}

/* Distance of the cores, 0 when they overlap. `s` is left as the last simplex. */
static double gjk(const pabd_solid *a, const pabd_solid *b, double size, simplex *s, pabd_dvec3 *normal) {
  pabd_dvec3 v = v3_sub(a->p, b->p);
  if (v3_dot(v, v) == 0) v = (pabd_dvec3){1, 0, 0};
  s->count = 1;
  s->x[0] = difference(a, b, v3_scale(-1, v));
  v = s->x[0];
  double best_bound = -INFINITY; /* largest separation along any direction probed */
  for (int k = 0; k < GJK_ITERATIONS; ++k) {
    double distance = v3_norm(v);
    if (distance <= 1e-14 * size) return 0;
    pabd_dvec3 w = difference(a, b, v3_scale(-1, v));
    double bound = v3_dot(v, w) / distance;
    if (bound > best_bound) {
      best_bound = bound;
      *normal = v3_scale(1 / distance, v);
    }
    if (distance - best_bound <= TOLERANCE * size) break;
    int known = 0;
    for (int i = 0; i < s->count; ++i) known |= v3_dot(v3_sub(w, s->x[i]), v3_sub(w, s->x[i])) == 0;
    if (known) break;
    simplex before = *s;
    s->x[s->count++] = w;
    v = nearest(s);
    if (s->count == 4) return 0;
    if (v3_norm(v) >= distance) { /* rounding: no way down any more */
      *s = before;
      break;
    }
  }
  return best_bound > 0 ? best_bound : 0;
}

/* ---- EPA ---- */

typedef struct face {
  int32_t corner[3]; /* counterclockwise from outside */
  int32_t is_gone;
  pabd_dvec3 n;  /* unit, outward */
  double offset; /* n.x on the face; INFINITY for a face without area */
} face;

typedef struct polytope {
  int32_t point_count, face_count;
  pabd_dvec3 points[POINT_CAPACITY];
  face faces[FACE_CAPACITY];
  int32_t edge_count;
  int32_t edges[FACE_CAPACITY][2]; /* horizon, in the direction of the faces that go */
} polytope;

static void add_face(polytope *t, int32_t i, int32_t j, int32_t k, double size) {
  if (t->face_count == FACE_CAPACITY) return;
  face *f = &t->faces[t->face_count++];
  *f = (face){{i, j, k}, 0, {0, 0, 0}, INFINITY};
  pabd_dvec3 n = v3_cross(v3_sub(t->points[j], t->points[i]), v3_sub(t->points[k], t->points[i]));
  double length = v3_norm(n);
  if (length <= 1e-16 * size * size) return;
  f->n = v3_scale(1 / length, n);
  f->offset = (v3_dot(f->n, t->points[i]) + v3_dot(f->n, t->points[j]) + v3_dot(f->n, t->points[k])) / 3;
}

/* A simplex that touches the origin grown to a tetrahedron with volume. Returns 0 when the difference is flat. */
static int grow_to_tetrahedron(const pabd_solid *a, const pabd_solid *b, double size, simplex *s) {
  static const pabd_dvec3 tries[6] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
  for (int k = 0; s->count == 1 && k < 6; ++k) {
    pabd_dvec3 w = difference(a, b, tries[k]);
    if (v3_norm(v3_sub(w, s->x[0])) > 1e-6 * size) s->x[s->count++] = w;
  }
  if (s->count < 2) return 0;
  if (s->count == 2) {
    pabd_dvec3 u = v3_sub(s->x[1], s->x[0]), m = v3_normal_to(u), l = v3_cross(u, m);
    l = v3_scale(1 / v3_norm(l), l);
    for (int k = 0; s->count == 2 && k < 6; ++k) {
      double angle = 1.0471975511965976 * k;
      pabd_dvec3 w = difference(a, b, v3_madd(v3_scale(cos(angle), m), sin(angle), l));
      if (v3_norm(v3_cross(u, v3_sub(w, s->x[0]))) > 1e-6 * size * v3_norm(u)) s->x[s->count++] = w;
    }
  }
  if (s->count < 3) return 0;
  if (s->count == 3) {
    pabd_dvec3 n = v3_cross(v3_sub(s->x[1], s->x[0]), v3_sub(s->x[2], s->x[0]));
    double length = v3_norm(n);
    if (!(length > 0)) return 0;
    pabd_dvec3 best = {0, 0, 0};
    double height = 0;
    for (int k = 0; k < 2; ++k) {
      pabd_dvec3 w = difference(a, b, v3_scale(k ? -1 : 1, n));
      double h = fabs(v3_dot(n, v3_sub(w, s->x[0]))) / length;
      if (h > height) height = h, best = w;
    }
    if (height <= 1e-9 * size) return 0;
    s->x[s->count++] = best;
  }
  return 1;
}

/* Notes an edge of a face that goes; the same edge from the other side cancels it, what is left is the horizon. */
static void toggle_edge(polytope *t, int32_t i, int32_t j) {
  for (int32_t k = 0; k < t->edge_count; ++k) {
    if (t->edges[k][0] != j || t->edges[k][1] != i) continue;
    --t->edge_count;
    t->edges[k][0] = t->edges[t->edge_count][0];
    t->edges[k][1] = t->edges[t->edge_count][1];
    return;
  }
  if (t->edge_count == FACE_CAPACITY) return;
  t->edges[t->edge_count][0] = i;
  t->edges[t->edge_count++][1] = j;
}

static void drop_gone(polytope *t) {
  int32_t kept = 0;
  for (int32_t k = 0; k < t->face_count; ++k) {
    if (!t->faces[k].is_gone) t->faces[kept++] = t->faces[k];
  }
  t->face_count = kept;
}

/* Takes direction m (any length, from a to b's side out) if the overlap along it is less. */
static int probe(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 m, double *depth, pabd_dvec3 *normal) {
  double length = v3_norm(m);
  if (!(length > 0)) return 0;
  m = v3_scale(1 / length, m);
  double along = v3_dot(m, difference(a, b, m));
  if (along >= *depth) return 0;
  *depth = along;
  *normal = v3_scale(-1, m);
  return 1;
}

/* Lowers the overlap along *normal by compass search over directions: for round solids, where the polytope would need
 * ever more faces (a cylinder pushed in along a circle of equally good ways out). The overlap has a crease where the
 * direction is normal to a cylinder's axis; the compass has a needle along that crease. */
static double refine(const pabd_solid *a, const pabd_solid *b, double depth, pabd_dvec3 *normal) {
  const pabd_solid *solids[2] = {a, b};
  for (double radius = 0.1; radius > 1e-8;) {
    int is_better = 0;
    for (int side = 0; side < 2; ++side) {
      pabd_dvec3 n = v3_scale(-1, *normal), axis = solids[side]->axis[2], u = v3_cross(axis, n);
      is_better |= probe(a, b, v3_madd(n, -v3_dot(n, axis), axis), &depth, normal);
      n = v3_scale(-1, *normal);
      double length = v3_norm(u);
      u = length > 1e-3 ? v3_scale(1 / length, u) : v3_normal_to(n);
      pabd_dvec3 v = v3_cross(n, u);
      for (int k = 0; k < 8; ++k) {
        double angle = 0.78539816339744831 * k;
        pabd_dvec3 m = v3_madd(v3_madd(n, radius * cos(angle), u), radius * sin(angle), v);
        is_better |= probe(a, b, m, &depth, normal);
      }
    }
    radius = is_better ? fmin(0.5, 1.5 * radius) : 0.5 * radius;
  }
  return depth;
}

/* Depth of the origin in the difference of the cores (>= 0) and the way out, from b to a. */
static double epa(const pabd_solid *a, const pabd_solid *b, double size, simplex *s, pabd_dvec3 *normal) {
  if (!grow_to_tetrahedron(a, b, size, s)) {
    /* Flat, or touching at one point: the normal of the flat, or any probe that gives the least. */
    pabd_dvec3 n = s->count >= 3   ? v3_cross(v3_sub(s->x[1], s->x[0]), v3_sub(s->x[2], s->x[0]))
                   : s->count == 2 ? v3_normal_to(v3_sub(s->x[1], s->x[0]))
                                   : (pabd_dvec3){0, 0, 1};
    double length = v3_norm(n);
    *normal = length > 0 ? v3_scale(-1 / length, n) : (pabd_dvec3){0, 0, -1};
    return fmax(0, v3_dot(v3_scale(-1, *normal), difference(a, b, v3_scale(-1, *normal))));
  }
  polytope t;
  t.point_count = 4;
  t.face_count = t.edge_count = 0;
  memcpy(t.points, s->x, sizeof s->x);
  pabd_dvec3 n = v3_cross(v3_sub(s->x[1], s->x[0]), v3_sub(s->x[2], s->x[0]));
  if (v3_dot(n, v3_sub(s->x[3], s->x[0])) > 0) {
    t.points[1] = s->x[2], t.points[2] = s->x[1]; /* now corner 3 is below the first face */
  }
  add_face(&t, 0, 1, 2, size);
  add_face(&t, 0, 3, 1, size);
  add_face(&t, 1, 3, 2, size);
  add_face(&t, 2, 3, 0, size);
  double depth = INFINITY;
  int is_converged = 0;
  while (!is_converged && t.point_count < POINT_CAPACITY) {
    const face *nearest_face = NULL;
    for (int32_t k = 0; k < t.face_count; ++k) {
      if (!nearest_face || t.faces[k].offset < nearest_face->offset) nearest_face = &t.faces[k];
    }
    is_converged = nearest_face && nearest_face->offset >= depth - TOLERANCE * size;
    if (!nearest_face || is_converged) break;
    n = nearest_face->n;
    double offset = nearest_face->offset;
    pabd_dvec3 w = difference(a, b, n);
    double along = v3_dot(n, w);
    if (along < depth) {
      depth = along;
      *normal = v3_scale(-1, n);
    }
    is_converged = along - offset <= TOLERANCE * size; /* a face of the difference itself */
    if (is_converged) break;
    t.points[t.point_count] = w;
    t.edge_count = 0;
    for (int32_t k = 0; k < t.face_count; ++k) {
      face *f = &t.faces[k];
      if (!(v3_dot(f->n, w) - f->offset > 1e-15 * size)) continue;
      f->is_gone = 1;
      for (int e = 0; e < 3; ++e) toggle_edge(&t, f->corner[e], f->corner[(e + 1) % 3]);
    }
    drop_gone(&t);
    for (int32_t k = 0; k < t.edge_count; ++k) add_face(&t, t.edges[k][0], t.edges[k][1], t.point_count, size);
    ++t.point_count;
  }
  /* Slivers of a round solid may have hidden the nearest face, so "converged" is not to be believed there. */
  if (!is_converged || a->kind == PABD_CYLINDER || b->kind == PABD_CYLINDER) depth = refine(a, b, depth, normal);
  return fmax(0, depth);
}

double pabd_convex_gap(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 *normal) {
  assert(a->kind != PABD_PLANE && b->kind != PABD_PLANE);
  double size = core_size(a) + core_size(b);
  double radii = core_radius(a) + core_radius(b);
  pabd_dvec3 n = {0, 0, 1};
  simplex s;
  /* Two points: nothing but their line. */
  if (size == 0) size = v3_norm(v3_sub(a->p, b->p)) + radii;
  double distance = gjk(a, b, size, &s, &n);
  if (distance == 0) distance = -epa(a, b, size, &s, &n);
  if (normal) *normal = n;
  return distance - radii;
}
