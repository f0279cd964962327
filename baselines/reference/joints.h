/* Joints of the reference engine as rows: value, gradient and law of each.
 *
 * A row has a value C(q_a, q_b), a gradient J with respect to (translation, rotation) of a and of b, and a law between
 * C and its multiplier: equality, elastic, or bounded. The generalized force of a row is J^T times its multiplier.
 * Invariant: J is the exact derivative of C (a test compares it with differences). */
#ifndef REFERENCE_JOINTS_H
#define REFERENCE_JOINTS_H

#include "pabd_scene.h"

#define REFERENCE_ROWS 12 /* most rows of one joint */

typedef struct reference_pose {
  double p[3], q[4];
} reference_pose;

typedef enum reference_law {
  REFERENCE_EQUAL,   /* C = 0 */
  REFERENCE_ELASTIC, /* multiplier = -(stiffness C + damping dC/dt) */
  REFERENCE_BOUNDED  /* multiplier in [low, high]: inside only where C = 0, low where C > 0, high where C < 0 */
} reference_law;

typedef struct reference_row {
  reference_law law;
  double value;              /* C, m or rad */
  double gradient[12];       /* a: translation, rotation; b: translation, rotation (world axes) */
  double stiffness, damping; /* elastic: N/m, N s/m, or N m/rad, N m s/rad */
  double low, high;          /* bounded: N or N m */
  int is_motor;
} reference_row;

/* What a row needs to know beside the poses. */
typedef struct reference_moment {
  double last_coordinate; /* free coordinate at the start of the step: angles are taken within half a turn of it */
  double target_way;      /* rate motors: how far the coordinate has to go in this step */
  double target;          /* position motors: where it has to be at the end */
  double last_rate;       /* motors: rate of the free coordinate at the start of the step */
  double last_elastic;    /* value of the elastic row at the start of the step */
} reference_moment;

/* Number of rows, the same at every pose. A body that is PABD_WORLD has the identity as its pose. */
int reference_joint_rows(const pabd_joint *joint, const reference_pose *a, const reference_pose *b,
                         const reference_moment *moment, reference_row *rows);
/* Free coordinate of a hinge (within half a turn of `near`) or slider. */
double reference_joint_coordinate(const pabd_joint *joint, const reference_pose *a, const reference_pose *b,
                                  double near);

#endif
