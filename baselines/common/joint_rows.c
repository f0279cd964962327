/* Joints as rows; described in joint_rows.h. Alignment is written as products of axes, s . t = 0 with s fixed in b and
 * t in a: exact gradient s x t for any angle, no branch of an arc function. */
#include "common/joint_rows.h"

#include <math.h>
#include <string.h>

#include "common/vector.h"

typedef struct builder {
  pabd_row *rows;
  int32_t count;
  double arm;
  pabd_dvec3 arm_a, arm_b, between; /* between: from a's anchor to b's */
} builder;

static pabd_row *add_row(builder *b, pabd_row_kind kind, pabd_row_group group, double value) {
  pabd_row *row = &b->rows[b->count++];
  memset(row, 0, sizeof *row);
  row->kind = kind, row->group = group, row->value = value;
  row->limit = INFINITY;
  return row;
}

/* Along a direction; fixed in a (`turns`), so that a's rotation moves b's anchor past it, or fixed in the world. */
static pabd_row *add_along(builder *b, pabd_row_kind kind, pabd_row_group group, pabd_dvec3 u, int turns,
                           double value) {
  pabd_row *row = add_row(b, kind, group, value);
  row->linear = u;
  row->arm_a = turns ? v3_add(b->arm_a, b->between) : b->arm_a;
  row->arm_b = b->arm_b;
  row->turn_a = v3_cross(u, row->arm_a);
  row->turn_b = v3_cross(row->arm_b, u);
  return row;
}

static pabd_row *add_about(builder *b, pabd_row_kind kind, pabd_row_group group, pabd_dvec3 axis, double angle) {
  pabd_row *row = add_row(b, kind, group, b->arm * angle);
  row->angular = 1;
  row->turn_b = v3_scale(b->arm, axis);
  row->turn_a = v3_scale(-b->arm, axis);
  return row;
}

/* s (of b) and t (of a) stay normal to each other. */
static void add_normal(builder *b, pabd_dvec3 s, pabd_dvec3 t) {
  add_about(b, PABD_ROW_HARD, PABD_ROW_TURN, v3_cross(s, t), v3_dot(s, t));
}

static void add_anchor(builder *b) {
  add_along(b, PABD_ROW_HARD, PABD_ROW_PLACE, v3(1, 0, 0), 0, b->between.x);
  add_along(b, PABD_ROW_HARD, PABD_ROW_PLACE, v3(0, 1, 0), 0, b->between.y);
  add_along(b, PABD_ROW_HARD, PABD_ROW_PLACE, v3(0, 0, 1), 0, b->between.z);
}

/* Limits, spring and motor of the free coordinate: `axis` of a, angle of a hinge or way of a slider. */
static void add_coordinate(builder *b, const pabd_joint *joint, pabd_dvec3 axis, double at) {
  const int hinge = joint->kind == PABD_HINGE;
  const double arm = hinge ? b->arm : 1;
#define ADD(kind, value, sign)                                            \
  (hinge ? add_about(b, kind, PABD_ROW_FREE, v3_scale(sign, axis), value) \
         : add_along(b, kind, PABD_ROW_FREE, v3_scale(sign, axis), 1, value))
  if (joint->has_limits) {
    ADD(PABD_ROW_LIMIT, at - joint->lower, 1);
    ADD(PABD_ROW_LIMIT, joint->upper - at, -1);
  }
  if (joint->stiffness > 0 || joint->damping > 0) {
    pabd_row *row = ADD(PABD_ROW_SPRING, at - joint->rest, 1);
    row->stiffness = joint->stiffness / (arm * arm);
    row->damping = joint->damping / (arm * arm);
  }
  if (joint->motor != PABD_MOTOR_NONE) ADD(PABD_ROW_MOTOR, at, 1)->limit = joint->motor_max / arm;
#undef ADD
}

int32_t pabd_joint_rows(const pabd_joint *joint, pabd_dpose a, pabd_dpose b, double arm, pabd_row *rows) {
  builder build = {.rows = rows, .arm = arm};
  pabd_dvec3 xa[3], xb[3];
  build.arm_a = quat_rotate(a.q, joint->frame_a.p);
  build.arm_b = quat_rotate(b.q, joint->frame_b.p);
  build.between = v3_sub(v3_add(b.p, build.arm_b), v3_add(a.p, build.arm_a));
  quat_axes(quat_mul(a.q, joint->frame_a.q), xa);
  quat_axes(quat_mul(b.q, joint->frame_b.q), xb);
  switch (joint->kind) {
    case PABD_SPHERICAL:
      add_anchor(&build);
      break;
    case PABD_HINGE:
      add_anchor(&build);
      add_normal(&build, xb[2], xa[0]);
      add_normal(&build, xb[2], xa[1]);
      add_coordinate(&build, joint, xa[2], atan2(v3_dot(xb[0], xa[1]), v3_dot(xb[0], xa[0])));
      break;
    case PABD_SLIDER:
      add_along(&build, PABD_ROW_HARD, PABD_ROW_PLACE, xa[0], 1, v3_dot(build.between, xa[0]));
      add_along(&build, PABD_ROW_HARD, PABD_ROW_PLACE, xa[1], 1, v3_dot(build.between, xa[1]));
      add_normal(&build, xb[0], xa[1]);
      add_normal(&build, xb[1], xa[2]);
      add_normal(&build, xb[2], xa[0]);
      add_coordinate(&build, joint, xa[2], v3_dot(build.between, xa[2]));
      break;
    case PABD_FIXED:
      add_anchor(&build);
      add_normal(&build, xb[0], xa[1]);
      add_normal(&build, xb[1], xa[2]);
      add_normal(&build, xb[2], xa[0]);
      break;
    case PABD_UNIVERSAL:
      add_anchor(&build);
      add_normal(&build, xb[1], xa[0]);
      break;
    default: { /* PABD_DISTANCE, PABD_SPRING */
      const double length = v3_length(build.between);
      const pabd_dvec3 n = v3_unit(build.between, v3(0, 0, 1));
      if (joint->kind == PABD_SPRING) {
        pabd_row *row = add_along(&build, PABD_ROW_SPRING, PABD_ROW_FREE, n, 0, length - joint->rest);
        row->stiffness = joint->stiffness, row->damping = joint->damping, row->length = length;
      } else if (joint->has_limits) {
        add_along(&build, PABD_ROW_LIMIT, PABD_ROW_FREE, n, 0, length - joint->lower)->length = length;
        add_along(&build, PABD_ROW_LIMIT, PABD_ROW_FREE, v3_scale(-1, n), 0, joint->upper - length)->length = length;
      } else if (joint->rest > 0) {
        add_along(&build, PABD_ROW_HARD, PABD_ROW_PLACE, n, 0, length - joint->rest)->length = length;
      } else {
        add_anchor(&build); /* anchors at distance 0 coincide: the direction would be lost at the solution */
      }
      break;
    }
  }
  return build.count;
}
