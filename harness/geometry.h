/* Exact geometry of the judge: signed gaps between shapes in double, by closed forms and separating axes.
 *
 * Shares no code with any solver. A gap is negative where shapes overlap: minus the least translation that separates
 * them. */
#ifndef PABD_GEOMETRY_H
#define PABD_GEOMETRY_H

#include "pabd_scene.h"

/* A shape at its place in the world. */
typedef struct pabd_placed {
  pabd_shape_kind kind;
  pabd_dvec3 p;       /* m: origin of the shape frame */
  pabd_dvec3 axis[3]; /* 1: its axes in the world */
  pabd_dvec3 half;    /* m */
  double radius, half_length;
  const pabd_dvec3 *vertices; /* hull: [vertex_count], shape frame */
  int32_t vertex_count;
  double lo[3], hi[3]; /* m: axis-aligned bounds; infinite for planes */
} pabd_placed;

pabd_placed pabd_place(const pabd_scene *scene, const pabd_shape *shape, const double pose[7]);
/* Gap from b to a; normal (may be NULL) from b to a, unit. +-INFINITY never comes back for finite shapes. */
double pabd_placed_gap(const pabd_placed *a, const pabd_placed *b, pabd_dvec3 *normal);

#endif
