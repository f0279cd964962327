/* Rows of all joint kinds (joints.h). With anchors y_a, y_b, d = y_b - y_a and the frames' axes x, y, z:
 * spherical d = 0; hinge d = 0, z_b.x_a = z_b.y_a = 0; slider d.x_a = d.y_a = 0 and no relative turn; fixed both;
 * universal d = 0, x_a.y_b = 0; distance |d| = rest or between bounds; spring elastic in |d| - rest. Limits, motors and
 * springs of the free coordinate add bounded and elastic rows. Turning: d(R u) = phi x u, whence every gradient below.
 */
#include "joints.h"

#include "maths.h"

/* One side of a joint in the world: body position's arm to the anchor, the anchor, the frame's axes. */
typedef struct side {
  double arm[3], anchor[3], axis[3][3];
} side;

static void place(const pabd_dpose *frame, const reference_pose *at, side *out) {
  const double local[3] = {frame->p.x, frame->p.y, frame->p.z}, f[4] = {frame->q.w, frame->q.x, frame->q.y, frame->q.z};
  double q[4], m[9];
  quat_rotate(at->q, local, out->arm);
  madd3(out->anchor, at->p, 1, out->arm);
  quat_mul(at->q, f, q);
  quat_normalize(q);
  quat_matrix(q, m);
  for (int k = 0; k < 3; ++k) set3(out->axis[k], m[k], m[3 + k], m[6 + k]);
}

static reference_row *add(reference_row *rows, int *count, reference_law law) {
  reference_row *row = &rows[(*count)++];
  memset(row, 0, sizeof *row);
  row->law = law;
  return row;
}

/* Value u.w and its gradient, u fixed in a and w fixed in b. */
static void axes_product(const double *u, const double *w, double *value, double *gradient) {
  *value = dot(u, w);
  memset(gradient, 0, 12 * sizeof *gradient);
  cross(u, w, gradient + 3);
  cross(w, u, gradient + 9);
}

/* Value d.u, u fixed in a. */
static void along_axis(const side *a, const side *b, const double *u, double *value, double *gradient) {
  double d[3], way[3];
  sub3(d, b->anchor, a->anchor);
  *value = dot(d, u);
  set3(gradient, -u[0], -u[1], -u[2]);
  sub3(way, b->anchor, a->anchor);
  madd3(way, way, 1, a->arm); /* u turns with a about a's center */
  cross(u, way, gradient + 3);
  copy3(gradient + 6, u);
  cross(b->arm, u, gradient + 9);
}

/* Value d.u with u fixed in the world. */
static void along_world(const side *a, const side *b, const double *u, double *value, double *gradient) {
  double d[3];
  sub3(d, b->anchor, a->anchor);
  *value = dot(d, u);
  set3(gradient, -u[0], -u[1], -u[2]);
  cross(u, a->arm, gradient + 3);
  copy3(gradient + 6, u);
  cross(b->arm, u, gradient + 9);
}

static void ball(const side *a, const side *b, reference_row *rows, int *count) {
  for (int k = 0; k < 3; ++k) {
    const double u[3] = {k == 0, k == 1, k == 2};
    reference_row *row = add(rows, count, REFERENCE_EQUAL);
    along_world(a, b, u, &row->value, row->gradient);
  }
}

/* Length |d|, its gradient; at length 0 the direction is not defined and the gradient is 0. */
static void length(const side *a, const side *b, double *value, double *gradient) {
  double d[3], unused;
  sub3(d, b->anchor, a->anchor);
  *value = norm(d);
  memset(gradient, 0, 12 * sizeof *gradient);
  if (*value < 1e-12) return;
  for (int k = 0; k < 3; ++k) d[k] /= *value;
  along_world(a, b, d, &unused, gradient);
}

/* Angle of b's frame about a's z, within half a turn of `near`. */
static void angle(const side *a, const side *b, double near, double *value, double *gradient) {
  double c, s, dc[12], ds[12];
  axes_product(a->axis[0], b->axis[0], &c, dc);
  axes_product(a->axis[1], b->axis[0], &s, ds);
  const double square = s * s + c * c;
  *value = near + remainder(atan2(s, c) - near, 2 * M_PI);
  for (int k = 0; k < 12; ++k) gradient[k] = (c * ds[k] - s * dc[k]) / square;
}

static void axes_normal(const double *u, const double *w, reference_row *rows, int *count) {
  reference_row *row = add(rows, count, REFERENCE_EQUAL);
  axes_product(u, w, &row->value, row->gradient);
}

/* value >= bound (sign +1) or value <= bound (sign -1); the multiplier only pushes inwards. */
static void limit(double value, const double *gradient, double bound, double sign, reference_row *rows, int *count) {
  reference_row *row = add(rows, count, REFERENCE_BOUNDED);
  row->value = sign * (value - bound);
  for (int k = 0; k < 12; ++k) row->gradient[k] = sign * gradient[k];
  row->low = 0, row->high = INFINITY;
}

static void limits(const pabd_joint *joint, double value, const double *gradient, reference_row *rows, int *count) {
  if (!joint->has_limits) return;
  /* A length cannot be below zero: no row that would never act, and has no gradient there. */
  if (isfinite(joint->lower) && !(joint->kind == PABD_DISTANCE && joint->lower <= 0))
    limit(value, gradient, joint->lower, 1, rows, count);
  if (isfinite(joint->upper)) limit(value, gradient, joint->upper, -1, rows, count);
}

static void free_coordinate(const pabd_joint *joint, double value, const double *gradient,
                            const reference_moment *moment, reference_row *rows, int *count) {
  limits(joint, value, gradient, rows, count);
  if (joint->stiffness > 0 || joint->damping > 0) {
    reference_row *row = add(rows, count, REFERENCE_ELASTIC);
    row->value = value - joint->rest;
    memcpy(row->gradient, gradient, sizeof row->gradient);
    row->stiffness = joint->stiffness, row->damping = joint->damping;
  }
  if (joint->motor == PABD_MOTOR_NONE) return;
  reference_row *row = add(rows, count, REFERENCE_BOUNDED);
  double miss = value - moment->last_coordinate - moment->target_way;
  if (joint->motor == PABD_MOTOR_POSITION) {
    miss = value - moment->target;
    if (joint->kind == PABD_HINGE) miss = remainder(miss, 2 * M_PI);
  }
  row->value = miss;
  memcpy(row->gradient, gradient, sizeof row->gradient);
  row->low = -joint->motor_max, row->high = joint->motor_max;
  row->is_motor = 1;
}

int reference_joint_rows(const pabd_joint *joint, const reference_pose *pose_a, const reference_pose *pose_b,
                         const reference_moment *moment, reference_row *rows) {
  side a, b;
  int count = 0;
  double value, gradient[12];
  place(&joint->frame_a, pose_a, &a);
  place(&joint->frame_b, pose_b, &b);
  switch (joint->kind) {
    case PABD_SPHERICAL:
      ball(&a, &b, rows, &count);
      break;
    case PABD_HINGE:
      ball(&a, &b, rows, &count);
      axes_normal(a.axis[0], b.axis[2], rows, &count);
      axes_normal(a.axis[1], b.axis[2], rows, &count);
      angle(&a, &b, moment->last_coordinate, &value, gradient);
      free_coordinate(joint, value, gradient, moment, rows, &count);
      break;
    case PABD_SLIDER:
    case PABD_FIXED:
      if (joint->kind == PABD_FIXED)
        ball(&a, &b, rows, &count);
      else
        for (int k = 0; k < 2; ++k) {
          reference_row *row = add(rows, &count, REFERENCE_EQUAL);
          along_axis(&a, &b, a.axis[k], &row->value, row->gradient);
        }
      axes_normal(a.axis[0], b.axis[2], rows, &count);
      axes_normal(a.axis[1], b.axis[2], rows, &count);
      axes_normal(a.axis[1], b.axis[0], rows, &count);
      if (joint->kind == PABD_SLIDER) {
        along_axis(&a, &b, a.axis[2], &value, gradient);
        free_coordinate(joint, value, gradient, moment, rows, &count);
      }
      break;
    case PABD_DISTANCE:
      if (!joint->has_limits && joint->rest <= 0) {
        ball(&a, &b, rows, &count);
        break;
      }
      length(&a, &b, &value, gradient);
      limits(joint, value, gradient, rows, &count);
      if (!joint->has_limits) {
        reference_row *row = add(rows, &count, REFERENCE_EQUAL);
        row->value = value - joint->rest;
        memcpy(row->gradient, gradient, sizeof row->gradient);
      }
      break;
    case PABD_SPRING: {
      length(&a, &b, &value, gradient);
      reference_row *row = add(rows, &count, REFERENCE_ELASTIC);
      row->value = value - joint->rest;
      memcpy(row->gradient, gradient, sizeof row->gradient);
      row->stiffness = joint->stiffness, row->damping = joint->damping;
      break;
    }
    case PABD_UNIVERSAL:
      ball(&a, &b, rows, &count);
      axes_normal(a.axis[0], b.axis[1], rows, &count);
      break;
    default:
      break;
  }
  return count;
}

double reference_joint_coordinate(const pabd_joint *joint, const reference_pose *pose_a, const reference_pose *pose_b,
                                  double near) {
  side a, b;
  double value = 0, gradient[12];
  place(&joint->frame_a, pose_a, &a);
  place(&joint->frame_b, pose_b, &b);
  if (joint->kind == PABD_HINGE) angle(&a, &b, near, &value, gradient);
  if (joint->kind == PABD_SLIDER) along_axis(&a, &b, a.axis[2], &value, gradient);
  return value;
}
