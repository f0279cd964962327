/* How far a joint is from its own definition, from the poses of its two bodies. */
#ifndef PABD_JUDGE_JOINTS_H
#define PABD_JUDGE_JOINTS_H

#include "pabd_scene.h"

typedef struct pabd_joint_state {
  double position_err;  /* m, >= 0: gap of the anchors in the directions the joint holds; distance: off its length */
  double angle_err;     /* rad, >= 0: angle between what should align */
  double velocity_err;  /* m/s, >= 0: relative velocity of the anchors in the held directions */
  double limit_err;     /* rad or m, >= 0: beyond the limits of the free coordinate of a hinge or slider */
  double coordinate;    /* the free coordinate: hinge rad (unwrapped), slider m, distance and spring: the length */
  double signed_gap;    /* m: position_err with a sign, see pabd_joint_measure */
  double spring_energy; /* J */
} pabd_joint_state;

/* pose [body_count][7], velocity [body_count][6]. `last_angle`: coordinate of a hinge in the frame before, to count its
 * turns, or NAN. The sign of the gap: distance joints too long +, too short -; others + when gravity pulls b's anchor
 * off a's, - the other way; unsigned (>= 0) without gravity. */
pabd_joint_state pabd_joint_measure(const pabd_scene *scene, const pabd_joint *joint, const double *pose,
                                    const double *velocity, double last_angle);
/* Which errors the kind can have. */
int pabd_joint_has_angle(const pabd_joint *joint);
int pabd_joint_has_position(const pabd_joint *joint);

#endif
