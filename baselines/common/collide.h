/* Collision detection on the host for engines that have none of their own: sweep and prune, then contact points.
 *
 * Plain and exact enough to be read: spheres, capsules, boxes, planes and compounds of them, in double. Box against box
 * is the separating axis test of 15 axes, then clipping of the incident face (or one point for two edges); everything
 * else is a closed form. The normal points from b to a; gap = n . (y_a - y_b), positive when apart, so that a's surface
 * point is point + gap/2 n and b's is point - gap/2 n. Invariant: points come sorted by (shape_a, shape_b, feature)
 * with shape_a < shape_b, hence the list depends on the poses alone, and a point keeps its feature while the same
 * corners, edges and faces touch. */
#ifndef PABD_COLLIDE_H
#define PABD_COLLIDE_H

#include "common/baseline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shape kinds that this collision detection knows, for the capability mask. */
#define PABD_COLLIDE_CAN \
  ((uint64_t)(PABD_CAN_SPHERE | PABD_CAN_CAPSULE | PABD_CAN_BOX | PABD_CAN_PLANE | PABD_CAN_COMPOUND))

typedef struct pabd_point {
  int32_t body_a, body_b; /* of the scene */
  int32_t shape_a, shape_b;
  uint32_t feature;             /* > 0, unique within the pair of shapes; 0 only for points given from outside */
  int32_t round;                /* 1: a sphere or capsule touches here, its surface point wanders as it rolls */
  int32_t previous;             /* index of the same (shapes, feature) in the list before this one, or -1 */
  pabd_dvec3 point;             /* world, m: midway between the surfaces */
  pabd_dvec3 normal;            /* world, unit, from b to a */
  double gap;                   /* m */
  double friction, restitution; /* of the pair of materials */
} pabd_point;

typedef struct pabd_collider pabd_collider;

/* The collider copies what it needs of the scene. Shapes it does not know: PABD_ERR_UNSUPPORTED. */
pabd_status pabd_collider_create(pabd_collider **collider, const pabd_scene *scene, pabd_error *error);
void pabd_collider_destroy(pabd_collider *collider); /* may be NULL */

/* Broad phase: keeps the pairs of shapes whose bounding boxes, grown by margin + reach of the body, overlap, and whose
 * bodies the scene lets collide. pose [body_count][7]; reach [body_count], m, may be NULL. */
pabd_status pabd_collider_sweep(pabd_collider *collider, const double *pose, double margin, const double *reach);
/* Narrow phase of the pairs kept: points whose gap is at most margin + both reaches. The former list becomes the one
 * that `previous` refers to. Valid until the call after the next. */
pabd_status pabd_collider_touch(pabd_collider *collider, const double *pose, double margin, const double *reach);
const pabd_point *pabd_collider_points(const pabd_collider *collider, int32_t *count);
/* Instead of both: takes the points of the engine table's frozen-contacts mode (shapes are -1). */
pabd_status pabd_collider_take(pabd_collider *collider, const pabd_contact *contacts, int32_t count, pabd_error *error);
/* The same for engines that step on with them. Takes the points of the engine table's mode (shapes are -1) and fixes
 * both surface points to their bodies at these poses; from then on pabd_collider_carry, instead of sweep and touch,
 * makes the list: the same points and normals, with places and gaps at the new poses. */
pabd_status pabd_collider_freeze(pabd_collider *collider, const double *pose, const pabd_contact *contacts,
                                 int32_t count, pabd_error *error);
pabd_status pabd_collider_carry(pabd_collider *collider, const double *pose);

/* One pair of shapes at given poses of their bodies (each [7]); at most PABD_POINTS_OF_PAIR points within `reach`,
 * bodies and materials left 0. For tests. */
#define PABD_POINTS_OF_PAIR 8
int32_t pabd_collide_pair(const pabd_shape *a, const double *pose_a, const pabd_shape *b, const double *pose_b,
                          double reach, pabd_point *points);

#ifdef __cplusplus
}
#endif
#endif
