/* A scene's joint as scalar rows C(x) with their gradients, for engines that solve constraints themselves.
 *
 * A row's value is in m, or in rad times the caller's arm for rows about an angle. Its gradient is -linear and turn_a
 * for body a, linear and turn_b for body b (a turn is a small world-frame rotation vector). The order and number of a
 * joint's rows depend on the joint alone, so that multipliers can be kept from step to step. */
#ifndef PABD_JOINT_ROWS_H
#define PABD_JOINT_ROWS_H

#include "pabd_scene.h"

typedef enum pabd_row_kind {
  PABD_ROW_HARD,   /* C = 0 */
  PABD_ROW_LIMIT,  /* C >= 0 */
  PABD_ROW_SPRING, /* value = coordinate - rest; stiffness and damping as in the scene, over arm^2 for angles */
  PABD_ROW_MOTOR   /* value = coordinate (not less the target); bounds of the motor's force: +-limit */
} pabd_row_kind;

typedef enum pabd_row_group {
  PABD_ROW_PLACE, /* anchors: up to three mutually normal directions */
  PABD_ROW_TURN,  /* alignment of axes */
  PABD_ROW_FREE   /* along or about the free coordinate */
} pabd_row_group;

typedef struct pabd_row {
  pabd_row_kind kind;
  pabd_row_group group;
  int32_t angular; /* 1: about an angle; linear is 0 */
  double value;
  pabd_dvec3 linear, turn_a, turn_b;
  pabd_dvec3 arm_a, arm_b; /* m, where a linear row's force acts, from the centers of mass; the geometric stiffness */
  double length;           /* m, distance of the anchors where the direction turns with them; 0: it does not */
  double stiffness, damping, limit;
} pabd_row;

#define PABD_ROWS_OF_JOINT 10

/* Writes the rows at these poses (a is the identity for the world) and returns their number. */
int32_t pabd_joint_rows(const pabd_joint *joint, pabd_dpose a, pabd_dpose b, double arm, pabd_row *rows);

#endif
