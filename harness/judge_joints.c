/* Joint errors by the joints' definitions in pabd_scene.h; nothing is asked of the engine.
 *
 * With anchors y_a, y_b and frames (x, y, z) of a and b: spherical |y_b - y_a|; hinge that and the angle of z_a, z_b;
 * slider the part of y_b - y_a off z_a and the angle of the relative rotation; fixed both in full; distance the length
 * less its rest or bounds; universal the gap and how far x_a, y_b are from a right angle. Springs have no error, only
 * energy. */
#include "judge_joints.h"

#include <math.h>

#include "vec3.h"

/* Anchor, axes and velocity of one side in the world. */
typedef struct side {
  pabd_dvec3 anchor;
  pabd_dquat q;
  pabd_dvec3 velocity, angular; /* of the anchor; of the body */
} side;

static side side_of(const pabd_scene *scene, int32_t body, pabd_dpose frame, const double *pose,
                    const double *velocity) {
  if (body == PABD_WORLD) return (side){frame.p, frame.q, {0, 0, 0}, {0, 0, 0}};
  const double *x = pose + 7 * (size_t)body, *v = velocity + 6 * (size_t)body;
  pabd_dpose at = {{x[0], x[1], x[2]}, pabd_dquat_normalize((pabd_dquat){x[3], x[4], x[5], x[6]})};
  /* A static body is where the scene put it. */
  if (scene->bodies[body].motion == PABD_STATIC) at = scene->bodies[body].pose;
  pabd_dpose placed = pabd_dpose_mul(at, frame);
  pabd_dvec3 arm = v3_sub(placed.p, at.p), linear = {v[0], v[1], v[2]}, angular = {v[3], v[4], v[5]};
  if (scene->bodies[body].motion == PABD_STATIC) return (side){placed.p, placed.q, {0, 0, 0}, {0, 0, 0}};
  return (side){placed.p, placed.q, v3_add(linear, v3_cross(angular, arm)), angular};
}

static double angle_between(pabd_dvec3 a, pabd_dvec3 b) {
  return atan2(v3_norm(v3_cross(a, b)), v3_dot(a, b));
}

static double beyond(const pabd_joint *joint, double value) {
  if (!joint->has_limits) return 0;
  return fmax(0, fmax(joint->lower - value, value - joint->upper));
}

int pabd_joint_has_angle(const pabd_joint *joint) {
  return joint->kind == PABD_HINGE || joint->kind == PABD_SLIDER || joint->kind == PABD_FIXED ||
         joint->kind == PABD_UNIVERSAL;
}

int pabd_joint_has_position(const pabd_joint *joint) {
  return joint->kind != PABD_SPRING;
}

pabd_joint_state pabd_joint_measure(const pabd_scene *scene, const pabd_joint *joint, const double *pose,
                                    const double *velocity, double last_angle) {
  static const pabd_dvec3 x_axis = {1, 0, 0}, y_axis = {0, 1, 0}, z_axis = {0, 0, 1};
  side a = side_of(scene, joint->body_a, joint->frame_a, pose, velocity);
  side b = side_of(scene, joint->body_b, joint->frame_b, pose, velocity);
  pabd_dvec3 d = v3_sub(b.anchor, a.anchor), v = v3_sub(b.velocity, a.velocity), z = pabd_dquat_rotate(a.q, z_axis);
  pabd_dquat relative = pabd_dquat_mul(pabd_dquat_conj(a.q), b.q);
  double length = v3_norm(d);
  pabd_joint_state s = {0};
  switch (joint->kind) {
    case PABD_SPHERICAL:
      s.position_err = length;
      s.velocity_err = v3_norm(v);
      break;
    case PABD_HINGE:
      s.position_err = length;
      s.velocity_err = v3_norm(v);
      s.angle_err = angle_between(z, pabd_dquat_rotate(b.q, z_axis));
      /* Twist of the relative rotation about z, in the turn nearest to the frame before. */
      s.coordinate = 2 * atan2(relative.z, relative.w);
      s.coordinate -= 2 * M_PI * round((s.coordinate - (isnan(last_angle) ? 0 : last_angle)) / (2 * M_PI));
      s.limit_err = beyond(joint, s.coordinate);
      break;
    case PABD_SLIDER:
      s.coordinate = v3_dot(d, z);
      v = v3_sub(v, v3_cross(a.angular, d)); /* as seen from a, whose turn carries b's anchor along */
      s.velocity_err = v3_norm(v3_madd(v, -v3_dot(v, z), z));
      d = v3_madd(d, -s.coordinate, z);
      s.position_err = v3_norm(d);
      s.limit_err = beyond(joint, s.coordinate);
      s.angle_err = 2 * atan2(sqrt(relative.x * relative.x + relative.y * relative.y + relative.z * relative.z),
                              fabs(relative.w));
      break;
    case PABD_FIXED:
      s.position_err = length;
      s.velocity_err = v3_norm(v);
      s.angle_err = 2 * atan2(sqrt(relative.x * relative.x + relative.y * relative.y + relative.z * relative.z),
                              fabs(relative.w));
      break;
    case PABD_DISTANCE:
      s.coordinate = length;
      s.position_err = joint->has_limits ? beyond(joint, length) : fabs(length - joint->rest);
      s.signed_gap = joint->has_limits ? copysign(s.position_err, length - joint->lower) : length - joint->rest;
      if (length > 0 && (!joint->has_limits || s.position_err > 0)) s.velocity_err = fabs(v3_dot(v, d)) / length;
      break;
    case PABD_SPRING:
      s.coordinate = length;
      break;
    case PABD_UNIVERSAL: {
      s.position_err = length;
      s.velocity_err = v3_norm(v);
      double along = v3_dot(pabd_dquat_rotate(a.q, x_axis), pabd_dquat_rotate(b.q, y_axis));
      s.angle_err = fabs(asin(fmin(1, fmax(-1, along))));
      break;
    }
    default:
      break;
  }
  if (joint->kind != PABD_DISTANCE) {
    double down = v3_dot(d, scene->gravity);
    s.signed_gap = down < 0 ? -s.position_err : s.position_err;
  }
  int has_spring = joint->kind == PABD_SPRING || joint->kind == PABD_HINGE || joint->kind == PABD_SLIDER;
  if (has_spring && joint->stiffness > 0) {
    double stretch = s.coordinate - joint->rest;
    s.spring_energy = 0.5 * joint->stiffness * stretch * stretch;
  }
  return s;
}
