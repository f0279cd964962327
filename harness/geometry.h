/* Exact signed gaps between convex solids, in double: the judge's own geometry.
 *
 * The gap of two solids is max over unit directions n of (min over a of n.x - max over b of n.x). Apart, that is the
 * Euclidean distance; overlapping, minus the length of the least translation that separates them. Every routine here
 * returns that number: closed forms and separating axes where they are exact, GJK and an expanding polytope elsewhere.
 * Shares no code with any solver. */
#ifndef PABD_GEOMETRY_H
#define PABD_GEOMETRY_H

#include "pabd_scene.h"

/* A shape placed in the world, ready for many queries. */
typedef struct pabd_solid {
  pabd_shape_kind kind;
  int32_t vertex_count;       /* hull */
  const pabd_dvec3 *vertices; /* [vertex_count] hull, shape frame, m; the scene's */
  pabd_dvec3 p;               /* origin of the shape frame, m */
  pabd_dvec3 axis[3];         /* its axes in the world, unit */
  pabd_dvec3 half;            /* box, m */
  double radius, half_length; /* m */
} pabd_solid;

/* `pose` [7] of the shape's body: p, q (w, x, y, z), q of any length > 0. */
pabd_solid pabd_solid_place(const pabd_scene *scene, const pabd_shape *shape, const double *pose);
/* Bounds in the world; infinite for a plane. */
void pabd_solid_bounds(const pabd_solid *s, pabd_dvec3 *low, pabd_dvec3 *high);
/* Radius of a ball around `center` (shape frame) that holds the shape; infinite for a plane. */
double pabd_shape_bound(const pabd_scene *scene, const pabd_shape *shape, pabd_dvec3 *center);

/* The gap; `normal` (may be NULL) from b to a. Two planes: the gap is -INFINITY, there is nothing to measure. */
double pabd_solid_gap(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 *normal);
/* For sweeps over many pairs: exact where the solids overlap; apart, some value in (0, limit] exactly when the gap is
 * at most `limit` (>= 0), else some value > limit. */
double pabd_solid_gap_within(const pabd_solid *a, const pabd_solid *b, double limit);

/* The general routine for any two solids but planes, to about 1e-9 of their size. Public so that tests can hold it
 * against the special ones. */
double pabd_convex_gap(const pabd_solid *a, const pabd_solid *b, pabd_dvec3 *normal);

#endif
