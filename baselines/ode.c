/* ODE 0.16 through its C interface: QuickStep (projected Gauss-Seidel) or the direct step (Dantzig's LCP per island).
 *
 * ODE does collision and dynamics apart: a substep is dSpaceCollide, whose callback makes one contact joint a point,
 * then dWorldQuickStep or dWorldStep. Hidden laws, all settings or in baselines/README.md: friction is a pyramid on
 * axes that ODE picks (dContactApprox1 makes it proportional to the normal force at all), no contact exists before the
 * shapes touch, errors are corrected by ERP a substep, CFM is not scaled by mass. Springs are ODE's own implicit ones:
 * a stop or a double ball with erp = h k / (h k + c) and cfm = 1 / (h k + c). ODE reports a failed LCP only as a
 * message and goes on with a wrong answer: the messages are counted. Joints are made with bodies placed so that the
 * frames coincide, then put back, because ODE takes frames from the poses. Invariant: nothing sleeps, nothing is
 * damped, masses and inertias are the scene's. */
#include <math.h>
#include <ode/ode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/baseline.h"

#define MOST_POINTS 16 /* contact points asked for per pair of shapes, at most */

enum {
  STEPPER,
  ITERATIONS,
  SUBSTEPS,
  OVER_RELAXATION,
  ERP,
  CFM,
  MAX_CORRECTING_VELOCITY,
  SURFACE_LAYER,
  MAX_CONTACTS,
  FRICTION_DIRECTION,
  BOUNCE_VELOCITY,
  GYROSCOPIC,
  FINITE_ROTATION,
  SPACE,
  CONTACT_FORCES,
  SETTING_COUNT
};

static const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"stepper", "choice", "quick", "quick | direct", "1",
     "dWorldQuickStep (iterative) or dWorldStep (direct LCP, time and memory grow with the square of an island)",
     "ODE's manual offers both; quick for large systems"},
    {"iterations", "int", "20", "1 .. 100000", "1", "sweeps of QuickStep a substep", "ODE's default 20"},
    {"substeps", "int", "1", "1 .. 10000", "1", "collision and step calls a frame, each of frame_time / substeps",
     "one a frame is how ODE is called by default"},
    {"over_relaxation", "real", "1.3", "0.1 .. 2", "1", "over-relaxation of QuickStep", "ODE's default 1.3"},
    {"erp", "real", "0.2", "0 .. 1", "1", "fraction of a position error removed in a substep", "ODE's default 0.2"},
    {"cfm", "real", "1e-10", "0 .. 1e3", "1", "constraint force mixing (softness) of joints and contacts",
     "ODE's default in double"},
    {"max_correcting_velocity", "real", "inf", "0 .. inf", "m/s", "bound on the speed that removes a penetration",
     "ODE's default: none"},
    {"surface_layer", "real", "0", "0 .. 1", "m", "penetration allowed without correction", "ODE's default 0"},
    {"max_contacts", "int", "8", "1 .. 16", "1", "contact points asked for per pair of shapes",
     "as many as ODE's box-box test makes"},
    {"friction_direction", "choice", "fixed", "fixed | sliding", "1",
     "first axis of the friction pyramid: ODE's choice, or along the sliding velocity (a caller's remedy)",
     "ODE's default: its own choice"},
    {"bounce_velocity", "real", "0", "0 .. inf", "m/s", "slower impacts are plastic (where restitution is not 0)",
     "ODE has no default: 0 lets every impact bounce"},
    {"gyroscopic", "bool", "1", "0 | 1", "1", "gyroscopic torque (one implicit step)", "ODE's default: on"},
    {"finite_rotation", "bool", "0", "0 | 1", "1", "exact rotation update instead of the infinitesimal one",
     "ODE's default: off"},
    {"space", "choice", "sap", "sap | hash | simple", "1", "broad phase",
     "sweep and prune, the fastest of the three here"},
    {"contact_forces", "bool", "0", "0 | 1", "1", "keep contact forces for reports (costs time in the step)",
     "off: ODE keeps them only on demand"},
};

static const uint64_t capabilities =
    PABD_CAN_SPHERE | PABD_CAN_CAPSULE | PABD_CAN_BOX | PABD_CAN_PLANE | PABD_CAN_CYLINDER | PABD_CAN_COMPOUND |
    PABD_CAN_SPHERICAL | PABD_CAN_HINGE | PABD_CAN_SLIDER | PABD_CAN_FIXED | PABD_CAN_DISTANCE | PABD_CAN_SPRING |
    PABD_CAN_UNIVERSAL | PABD_CAN_LIMITS | PABD_CAN_MOTORS | PABD_CAN_RESTITUTION | PABD_CAN_KINEMATIC |
    PABD_CAN_LOADS | PABD_CAN_PAIR_MATERIALS | PABD_CAN_REPORT_CONTACTS | PABD_CAN_DETERMINISM | PABD_CAN_WORLDS;

/* A contact of the last substep, in the order in which the joints were made. */
typedef struct ode_contact {
  pabd_contact report;
  dJointFeedback feedback;
} ode_contact;

typedef struct ode_world {
  double value[SETTING_COUNT];
  pabd_scene scene;
  pabd_filter filter;
  dWorldID world;
  dSpaceID space;
  dJointGroupID contact_joints;
  dBodyID *body;                   /* [body_count], 0 for static bodies */
  dJointID *joint;                 /* [joint_count] */
  dJointFeedback *feedback;        /* [joint_count], of motors and of joints to kinematic bodies */
  double *rate;                    /* [joint_count]: a motor's rate before the substep */
  double *force, *pose, *velocity; /* [body_count][6], [7], [6]: substep scratch */
  ode_contact **contact;           /* [contact_capacity]: each stays where it is, ODE holds its feedback's address */
  int32_t contact_count, contact_capacity;
  unsigned long seed; /* of ODE's global generator, which orders QuickStep's rows: kept per world */
  int has_drivers, keep_forces, out_of_memory;
  double time, driver_work, collide_ms, solve_ms;
  int64_t messages; /* in total: "LCP internal error" and the like */
} ode_world;

static ode_world *stepping; /* whose step runs: ODE's message handler has no user pointer */
static char last_message[160];

static void count_message(int number, const char *text, va_list arguments) {
  (void)number;
  if (stepping) ++stepping->messages;
  vsnprintf(last_message, sizeof last_message, text, arguments);
}

/* ---- Building the world ---- */

static void set_rotation(pabd_dquat q, dQuaternion out) {
  out[0] = q.w, out[1] = q.x, out[2] = q.y, out[3] = q.z;
}

static void place(dBodyID body, pabd_dpose at) {
  dQuaternion q = {0};
  set_rotation(at.q, q);
  dBodySetPosition(body, at.p.x, at.p.y, at.p.z);
  dBodySetQuaternion(body, q);
}

static dGeomID make_geometry(ode_world *w, const pabd_shape *shape, pabd_dpose at) {
  switch (shape->kind) {
    case PABD_SPHERE:
      return dCreateSphere(w->space, shape->radius);
    case PABD_CAPSULE:
      return dCreateCapsule(w->space, shape->radius, 2 * shape->half_length);
    case PABD_BOX:
      return dCreateBox(w->space, 2 * shape->half.x, 2 * shape->half.y, 2 * shape->half.z);
    case PABD_CYLINDER:
      return dCreateCylinder(w->space, shape->radius, 2 * shape->half_length);
    default: { /* PABD_PLANE: static, given by its equation in the world */
      const pabd_dvec3 n = pabd_dquat_rotate(at.q, (pabd_dvec3){0, 0, 1});
      return dCreatePlane(w->space, n.x, n.y, n.z, n.x * at.p.x + n.y * at.p.y + n.z * at.p.z);
    }
  }
}

static void add_bodies(ode_world *w) {
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const pabd_body *body = &w->scene.bodies[b];
    if (body->motion == PABD_STATIC) continue; /* its geometries belong to no body */
    dBodyID made = w->body[b] = dBodyCreate(w->world);
    dBodySetData(made, (void *)(intptr_t)b);
    if (body->motion == PABD_DYNAMIC) {
      dMass mass;
      dMassSetParameters(&mass, body->mass, 0, 0, 0, body->inertia.x, body->inertia.y, body->inertia.z, 0, 0, 0);
      dBodySetMass(made, &mass);
    } else {
      dBodySetKinematic(made);
    }
    dBodySetGyroscopicMode(made, w->value[GYROSCOPIC] > 0);
    dBodySetFiniteRotationMode(made, w->value[FINITE_ROTATION] > 0 || body->motion == PABD_KINEMATIC);
    dBodySetAutoDisableFlag(made, 0);
    dBodySetLinearDamping(made, 0);
    dBodySetAngularDamping(made, 0);
    dBodySetMaxAngularSpeed(made, dInfinity);
    place(made, body->pose);
    dBodySetLinearVel(made, body->linear.x, body->linear.y, body->linear.z);
    dBodySetAngularVel(made, body->angular.x, body->angular.y, body->angular.z);
  }
  for (int32_t s = 0; s < w->scene.shape_count; ++s) {
    const pabd_shape *shape = &w->scene.shapes[s];
    const pabd_dpose at = pabd_dpose_mul(w->scene.bodies[shape->body].pose, shape->local);
    dGeomID made = make_geometry(w, shape, at);
    dQuaternion q = {0};
    dGeomSetData(made, (void *)(intptr_t)s);
    if (w->body[shape->body]) {
      dGeomSetBody(made, w->body[shape->body]);
      set_rotation(shape->local.q, q);
      dGeomSetOffsetPosition(made, shape->local.p.x, shape->local.p.y, shape->local.p.z);
      dGeomSetOffsetQuaternion(made, q);
    } else if (shape->kind != PABD_PLANE) {
      set_rotation(at.q, q);
      dGeomSetPosition(made, at.p.x, at.p.y, at.p.z);
      dGeomSetQuaternion(made, q);
    }
  }
}

/* ODE's body 1 is b, its body 2 a: then its angles and positions have the scene's sign, also with the world as a. */
static dJointID make_joint(ode_world *w, const pabd_joint *joint, double h) {
  dBodyID a = joint->body_a == PABD_WORLD ? 0 : w->body[joint->body_a], b = w->body[joint->body_b];
  const pabd_dpose pose_a =
      joint->body_a == PABD_WORLD ? (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}} : w->scene.bodies[joint->body_a].pose;
  const pabd_dpose frame = pabd_dpose_mul(pose_a, joint->frame_a); /* where both frames are put for a moment */
  const pabd_dpose other = pabd_dpose_mul(w->scene.bodies[joint->body_b].pose, joint->frame_b);
  const pabd_dvec3 x = pabd_dquat_rotate(frame.q, (pabd_dvec3){1, 0, 0}),
                   y = pabd_dquat_rotate(frame.q, (pabd_dvec3){0, 1, 0}),
                   z = pabd_dquat_rotate(frame.q, (pabd_dvec3){0, 0, 1});
  const double k = joint->stiffness, c = joint->damping;
  const int springs = k > 0 || c > 0;
  const double erp = springs ? h * k / (h * k + c) : 0, cfm = springs ? 1 / (h * k + c) : 0;
  dJointID made = 0;
  if (b == 0) return 0;
  if (joint->kind != PABD_DISTANCE && joint->kind != PABD_SPRING)
    place(b, pabd_dpose_mul(frame, pabd_dpose_inverse(joint->frame_b)));
  switch (joint->kind) {
    case PABD_SPHERICAL:
      made = dJointCreateBall(w->world, 0);
      dJointAttach(made, b, a);
      dJointSetBallAnchor(made, frame.p.x, frame.p.y, frame.p.z);
      break;
    case PABD_HINGE:
      made = dJointCreateHinge(w->world, 0);
      dJointAttach(made, b, a);
      dJointSetHingeAnchor(made, frame.p.x, frame.p.y, frame.p.z);
      dJointSetHingeAxis(made, z.x, z.y, z.z);
      if (springs || joint->has_limits) {
        dJointSetHingeParam(made, dParamLoStop, springs ? joint->rest : joint->lower);
        dJointSetHingeParam(made, dParamHiStop, springs ? joint->rest : joint->upper);
        dJointSetHingeParam(made, dParamLoStop,
                            springs ? joint->rest : joint->lower); /* each is checked against the other */
      }
      if (springs) {
        dJointSetHingeParam(made, dParamStopERP, erp);
        dJointSetHingeParam(made, dParamStopCFM, cfm);
      }
      break;
    case PABD_SLIDER:
      made = dJointCreateSlider(w->world, 0);
      dJointAttach(made, b, a);
      dJointSetSliderAxis(made, z.x, z.y, z.z);
      if (springs || joint->has_limits) {
        dJointSetSliderParam(made, dParamLoStop, springs ? joint->rest : joint->lower);
        dJointSetSliderParam(made, dParamHiStop, springs ? joint->rest : joint->upper);
        dJointSetSliderParam(made, dParamLoStop, springs ? joint->rest : joint->lower);
      }
      if (springs) {
        dJointSetSliderParam(made, dParamStopERP, erp);
        dJointSetSliderParam(made, dParamStopCFM, cfm);
      }
      break;
    case PABD_FIXED:
      made = dJointCreateFixed(w->world, 0);
      dJointAttach(made, b, a);
      dJointSetFixed(made);
      break;
    case PABD_UNIVERSAL:
      made = dJointCreateUniversal(w->world, 0);
      dJointAttach(made, b, a);
      dJointSetUniversalAnchor(made, frame.p.x, frame.p.y, frame.p.z);
      dJointSetUniversalAxis1(made, y.x, y.y, y.z);
      dJointSetUniversalAxis2(made, x.x, x.y, x.z);
      break;
    default: /* PABD_DISTANCE and PABD_SPRING: the double ball keeps its two anchors at a distance */
      made = dJointCreateDBall(w->world, 0);
      dJointAttach(made, b, a);
      dJointSetDBallAnchor1(made, other.p.x, other.p.y, other.p.z);
      dJointSetDBallAnchor2(made, frame.p.x, frame.p.y, frame.p.z);
      dJointSetDBallDistance(made, joint->rest);
      if (joint->kind == PABD_SPRING) {
        dJointSetDBallParam(made, dParamERP, erp);
        dJointSetDBallParam(made, dParamCFM, cfm);
      }
      break;
  }
  place(b, w->scene.bodies[joint->body_b].pose);
  return made;
}

static void add_joints(ode_world *w, double h) {
  for (int32_t j = 0; j < w->scene.joint_count; ++j) {
    const pabd_joint *joint = &w->scene.joints[j];
    w->joint[j] = make_joint(w, joint, h);
    const int to_kinematic = (joint->body_a != PABD_WORLD && w->scene.bodies[joint->body_a].motion == PABD_KINEMATIC) ||
                             w->scene.bodies[joint->body_b].motion == PABD_KINEMATIC;
    if (w->joint[j] && (joint->motor != PABD_MOTOR_NONE || to_kinematic))
      dJointSetFeedback(w->joint[j], &w->feedback[j]);
  }
}

static pabd_status check_scene(const pabd_scene *scene, pabd_error *error) {
  PABD_TRY(pabd_scene_supported("ode", scene, capabilities, error));
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    const int springs = joint->stiffness > 0 || joint->damping > 0;
    if (joint->kind == PABD_DISTANCE && joint->has_limits)
      return pabd_fail(error, PABD_ERR_UNSUPPORTED,
                       "ode: joint %d is a rope or rod between two bounds, ODE keeps one distance", j);
    if ((joint->kind == PABD_DISTANCE || joint->kind == PABD_SPRING) && !(joint->rest > 0))
      return pabd_fail(error, PABD_ERR_UNSUPPORTED,
                       "ode: joint %d has the distance 0, which ODE's double ball cannot keep", j);
    if (springs && joint->kind != PABD_SPRING && (joint->has_limits || joint->motor != PABD_MOTOR_NONE))
      return pabd_fail(error, PABD_ERR_UNSUPPORTED,
                       "ode: joint %d has a spring and limits or a motor; ODE's spring takes the place of the limits",
                       j);
  }
  return PABD_OK;
}

static void destroy(void *world) {
  ode_world *w = world;
  if (w == NULL) return;
  if (w->contact_joints) dJointGroupDestroy(w->contact_joints);
  if (w->space) dSpaceDestroy(w->space);
  if (w->world) dWorldDestroy(w->world);
  pabd_filter_free(&w->filter);
  pabd_scene_free(&w->scene);
  free(w->body);
  free(w->joint);
  free(w->feedback);
  free(w->rate);
  free(w->force);
  free(w->pose);
  free(w->velocity);
  for (int32_t k = 0; k < w->contact_capacity; ++k) free(w->contact[k]);
  free(w->contact);
  free(w);
}

static pabd_status build(ode_world *w, const pabd_scene *scene) {
  const size_t bodies = (size_t)scene->body_count + 1, joints = (size_t)scene->joint_count + 1;
  const double h = scene->frame_time / w->value[SUBSTEPS];
  PABD_TRY(pabd_scene_copy(scene, &w->scene));
  PABD_TRY(pabd_filter_init(&w->filter, scene));
  w->body = calloc(bodies, sizeof *w->body);
  w->force = calloc(bodies * 6, sizeof *w->force);
  w->pose = calloc(bodies * 7, sizeof *w->pose);
  w->velocity = calloc(bodies * 6, sizeof *w->velocity);
  w->joint = calloc(joints, sizeof *w->joint);
  w->feedback = calloc(joints, sizeof *w->feedback);
  w->rate = calloc(joints, sizeof *w->rate);
  if (!w->body || !w->force || !w->pose || !w->velocity || !w->joint || !w->feedback || !w->rate)
    return PABD_ERR_MEMORY;
  w->has_drivers = pabd_scene_has_drivers(scene);
  w->keep_forces = w->has_drivers || w->value[CONTACT_FORCES] > 0;
  w->seed = 0;
  w->world = dWorldCreate();
  dWorldSetGravity(w->world, scene->gravity.x, scene->gravity.y, scene->gravity.z);
  dWorldSetERP(w->world, w->value[ERP]);
  dWorldSetCFM(w->world, w->value[CFM]);
  dWorldSetQuickStepNumIterations(w->world, (int)w->value[ITERATIONS]);
  dWorldSetQuickStepW(w->world, w->value[OVER_RELAXATION]);
  dWorldSetContactMaxCorrectingVel(w->world, w->value[MAX_CORRECTING_VELOCITY]); /* inf is dInfinity */
  dWorldSetContactSurfaceLayer(w->world, w->value[SURFACE_LAYER]);
  dWorldSetAutoDisableFlag(w->world, 0);
  dWorldSetDamping(w->world, 0, 0);
  dWorldSetMaxAngularSpeed(w->world, dInfinity);
  w->space = w->value[SPACE] == 0   ? dSweepAndPruneSpaceCreate(0, dSAP_AXES_XYZ)
             : w->value[SPACE] == 1 ? dHashSpaceCreate(0)
                                    : dSimpleSpaceCreate(0);
  w->contact_joints = dJointGroupCreate(0);
  add_bodies(w);
  add_joints(w, h);
  return PABD_OK;
}

/* ---- Stepping ---- */

/* A contact's memory: reused from substep to substep. */
static ode_contact *next_contact(ode_world *w) {
  if (w->contact_count == w->contact_capacity) {
    const int32_t capacity = 2 * w->contact_capacity + 256;
    ode_contact **grown = realloc(w->contact, (size_t)capacity * sizeof *grown);
    if (grown == NULL) return NULL;
    w->contact = grown;
    while (w->contact_capacity < capacity) {
      if ((grown[w->contact_capacity] = calloc(1, sizeof **grown)) == NULL) return NULL;
      ++w->contact_capacity;
    }
  }
  return w->contact[w->contact_count++];
}

static void sliding_direction(dBodyID a, dBodyID b, dContact *contact) {
  dVector3 va = {0, 0, 0}, vb = {0, 0, 0};
  const dReal *p = contact->geom.pos, *n = contact->geom.normal;
  if (a) dBodyGetPointVel(a, p[0], p[1], p[2], va);
  if (b) dBodyGetPointVel(b, p[0], p[1], p[2], vb);
  const double v[3] = {va[0] - vb[0], va[1] - vb[1], va[2] - vb[2]};
  const double along = v[0] * n[0] + v[1] * n[1] + v[2] * n[2];
  const double t[3] = {v[0] - along * n[0], v[1] - along * n[1], v[2] - along * n[2]};
  const double speed = sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
  if (!(speed > 1e-6)) return;
  for (int k = 0; k < 3; ++k) contact->fdir1[k] = t[k] / speed;
  contact->surface.mode |= dContactFDir1;
}

static void near_callback(void *user, dGeomID x, dGeomID y) {
  ode_world *w = user;
  const pabd_shape *shape_x = &w->scene.shapes[(intptr_t)dGeomGetData(x)],
                   *shape_y = &w->scene.shapes[(intptr_t)dGeomGetData(y)];
  if (pabd_filter_ignores(&w->filter, shape_x->body, shape_y->body)) return;
  dContact points[MOST_POINTS];
  const int count = dCollide(x, y, (int)w->value[MAX_CONTACTS], &points[0].geom, sizeof points[0]);
  const size_t entry = (size_t)shape_x->material * (size_t)w->scene.material_count + (size_t)shape_y->material;
  const double friction = w->scene.friction[entry], restitution = w->scene.restitution[entry];
  dBodyID a = w->body[shape_x->body], b = w->body[shape_y->body];
  for (int k = 0; k < count; ++k) {
    memset(&points[k].surface, 0, sizeof points[k].surface);
    points[k].surface.mode = dContactApprox1;
    points[k].surface.mu = friction;
    if (restitution > 0) {
      points[k].surface.mode |= dContactBounce;
      points[k].surface.bounce = restitution;
      points[k].surface.bounce_vel = w->value[BOUNCE_VELOCITY];
    }
    if (w->value[FRICTION_DIRECTION] > 0) sliding_direction(a, b, &points[k]);
    dJointID joint = dJointCreateContact(w->world, w->contact_joints, &points[k]);
    dJointAttach(joint, a, b);
    ode_contact *keep = next_contact(w);
    if (keep == NULL) {
      w->out_of_memory = 1;
      return;
    }
    const dReal *p = points[k].geom.pos, *n = points[k].geom.normal; /* from y to x, as the scene's from b to a */
    keep->report = (pabd_contact){.body_a = shape_x->body,
                                  .body_b = shape_y->body,
                                  .point = {p[0], p[1], p[2]},
                                  .normal = {n[0], n[1], n[2]},
                                  .gap = -points[k].geom.depth,
                                  .friction = friction,
                                  .restitution = restitution};
    if (w->keep_forces) dJointSetFeedback(joint, &keep->feedback);
  }
}

static void read_state(void *world, double *pose, double *velocity) {
  ode_world *w = world;
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const pabd_body *body = &w->scene.bodies[b];
    double *p = pose + (size_t)b * 7, *v = velocity + (size_t)b * 6;
    if (body->motion == PABD_STATIC) {
      const double row[7] = {body->pose.p.x, body->pose.p.y, body->pose.p.z, body->pose.q.w,
                             body->pose.q.x, body->pose.q.y, body->pose.q.z};
      memcpy(p, row, sizeof row);
      memset(v, 0, 6 * sizeof *v);
      continue;
    }
    const dReal *at = dBodyGetPosition(w->body[b]), *q = dBodyGetQuaternion(w->body[b]);
    const dReal *linear = dBodyGetLinearVel(w->body[b]), *angular = dBodyGetAngularVel(w->body[b]);
    for (int k = 0; k < 3; ++k) p[k] = at[k], v[k] = linear[k], v[3 + k] = angular[k];
    for (int k = 0; k < 4; ++k) p[3 + k] = q[k];
  }
}

static void set_motors(ode_world *w, double h) {
  for (int32_t j = 0; j < w->scene.joint_count; ++j) {
    const pabd_joint *joint = &w->scene.joints[j];
    if (joint->motor == PABD_MOTOR_NONE || !w->joint[j]) continue;
    const double at = pabd_joint_coordinate(&w->scene, joint, w->pose, w->velocity, &w->rate[j]);
    double speed = joint->motor_target;
    if (joint->motor == PABD_MOTOR_POSITION) {
      double way = pabd_joint_motor_target(joint, w->time + h) - at;
      if (joint->kind == PABD_HINGE) way = remainder(way, 2 * M_PI);
      speed = way / h;
    }
    if (joint->kind == PABD_HINGE) {
      dJointSetHingeParam(w->joint[j], dParamVel, speed);
      dJointSetHingeParam(w->joint[j], dParamFMax, joint->motor_max);
    } else {
      dJointSetSliderParam(w->joint[j], dParamVel, speed);
      dJointSetSliderParam(w->joint[j], dParamFMax, joint->motor_max);
    }
  }
}

/* Power of a force and torque on a kinematic body, by its own motion. */
static double power_on(const pabd_body *body, const dReal *f, const dReal *t) {
  return f[0] * body->linear.x + f[1] * body->linear.y + f[2] * body->linear.z + t[0] * body->angular.x +
         t[1] * body->angular.y + t[2] * body->angular.z;
}

/* Work of motors and kinematic bodies in the substep that just ended (ODE's body 1 is the scene's b for joints, a for
 * contacts). */
static void count_work(ode_world *w, double h) {
  read_state(w, w->pose, w->velocity);
  for (int32_t j = 0; j < w->scene.joint_count; ++j) {
    const pabd_joint *joint = &w->scene.joints[j];
    const dJointFeedback *f = &w->feedback[j];
    if (!w->joint[j] || !dJointGetFeedback(w->joint[j])) continue;
    if (joint->motor != PABD_MOTOR_NONE) {
      double rate;
      dVector3 axis;
      pabd_joint_coordinate(&w->scene, joint, w->pose, w->velocity, &rate);
      if (joint->kind == PABD_HINGE)
        dJointGetHingeAxis(w->joint[j], axis);
      else
        dJointGetSliderAxis(w->joint[j], axis);
      const dReal *drive = joint->kind == PABD_HINGE ? f->t1 : f->f1;
      const double along = drive[0] * axis[0] + drive[1] * axis[1] + drive[2] * axis[2];
      w->driver_work += h * along * (rate + w->rate[j]) / 2; /* the mean rate gives the change of energy exactly */
    }
    if (joint->body_a != PABD_WORLD && w->scene.bodies[joint->body_a].motion == PABD_KINEMATIC)
      w->driver_work -= h * power_on(&w->scene.bodies[joint->body_a], f->f2, f->t2);
    if (w->scene.bodies[joint->body_b].motion == PABD_KINEMATIC)
      w->driver_work -= h * power_on(&w->scene.bodies[joint->body_b], f->f1, f->t1);
  }
  for (int32_t k = 0; k < w->contact_count; ++k) {
    const ode_contact *c = w->contact[k];
    if (w->scene.bodies[c->report.body_a].motion == PABD_KINEMATIC)
      w->driver_work -= h * power_on(&w->scene.bodies[c->report.body_a], c->feedback.f1, c->feedback.t1);
    if (w->scene.bodies[c->report.body_b].motion == PABD_KINEMATIC)
      w->driver_work -= h * power_on(&w->scene.bodies[c->report.body_b], c->feedback.f2, c->feedback.t2);
  }
}

static int32_t first_lost(const ode_world *w) {
  for (int32_t b = 0; b < w->scene.body_count; ++b)
    if (w->body[b]) {
      const dReal *p = dBodyGetPosition(w->body[b]);
      if (!isfinite(p[0] + p[1] + p[2])) return b;
    }
  return -1;
}

static pabd_status step(void *world, pabd_error *error) {
  ode_world *w = world;
  const double h = w->scene.frame_time / w->value[SUBSTEPS], start = w->time;
  w->collide_ms = w->solve_ms = 0;
  stepping = w;
  dRandSetSeed(w->seed);
  for (int s = 0; s < (int)w->value[SUBSTEPS] && !w->out_of_memory; ++s) {
    w->time = start + s * h;
    double clock = pabd_now_ms();
    dJointGroupEmpty(w->contact_joints);
    w->contact_count = 0;
    dSpaceCollide(w->space, w, near_callback);
    w->collide_ms += pabd_now_ms() - clock;
    if (pabd_scene_loads(&w->scene, w->time, w->time + h, w->force))
      for (int32_t b = 0; b < w->scene.body_count; ++b) {
        const double *f = w->force + (size_t)b * 6;
        if (w->scene.bodies[b].motion != PABD_DYNAMIC) continue;
        dBodyAddForce(w->body[b], f[0], f[1], f[2]);
        dBodyAddTorque(w->body[b], f[3], f[4], f[5]);
      }
    if (w->has_drivers) {
      read_state(w, w->pose, w->velocity);
      set_motors(w, h);
    }
    clock = pabd_now_ms();
    const int good = w->value[STEPPER] > 0 ? dWorldStep(w->world, h) : dWorldQuickStep(w->world, h);
    w->solve_ms += pabd_now_ms() - clock;
    if (!good) w->out_of_memory = 1;
    w->time = start + (s + 1) * h;
    if (w->has_drivers) count_work(w, h);
  }
  w->seed = dRandGetSeed();
  stepping = NULL;
  if (w->out_of_memory) return pabd_fail(error, PABD_ERR_MEMORY, "ode: out of memory at %.4g s", w->time);
  const int32_t lost = first_lost(w);
  if (lost >= 0) return pabd_fail(error, PABD_DIVERGED, "ode: body %d has no finite position at %.4g s", lost, w->time);
  return PABD_OK;
}

/* ---- The table ---- */

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  const int is_double = dCheckConfiguration("ODE_double_precision");
  *info = (pabd_engine_info){.name = "ode",
                             .version = "0.16.2",
                             .precision = is_double ? "double" : "float",
                             .device = "cpu",
                             .license = "LGPL-2.1 or BSD-3-Clause",
                             .build = "prebuilt: the distribution's package libode-dev",
                             .capabilities = capabilities};
  return PABD_OK;
}

static const pabd_setting_info *settings(int32_t *count) {
  *count = SETTING_COUNT;
  return settings_table;
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                          pabd_error *error) {
  double value[SETTING_COUNT];
  *world = NULL;
  PABD_TRY(pabd_settings_parse("ode", settings_table, SETTING_COUNT, given, given_count, value, error));
  PABD_TRY(check_scene(scene, error));
  if (!dInitODE2(0)) return pabd_fail(error, PABD_ERR_INTERNAL, "ode: dInitODE2 fails");
  dSetMessageHandler(count_message);
  ode_world *w = calloc(1, sizeof *w);
  if (w == NULL) return PABD_ERR_MEMORY;
  memcpy(w->value, value, sizeof value);
  pabd_status status = build(w, scene);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *world = w;
  return PABD_OK;
}

static void stats(void *world, pabd_engine_stats *out) {
  const ode_world *w = world;
  memset(out, 0, sizeof *out);
  pabd_stats_stage(out, "collide", 1, w->collide_ms);
  pabd_stats_stage(out, "solve", 0, w->solve_ms);
  pabd_stats_counter(out, "contacts", "1", w->contact_count);
  pabd_stats_counter(out, "messages", "1", (double)w->messages);
  if (w->has_drivers) pabd_stats_counter(out, "driver_work", "J", w->driver_work);
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((ode_world *)world)->value[index], buffer, size);
}

static int32_t contacts(void *world, pabd_contact *out, int32_t capacity) {
  const ode_world *w = world;
  for (int32_t k = 0; k < w->contact_count && k < capacity; ++k) {
    const dReal *f = w->contact[k]->feedback.f1;
    out[k] = w->contact[k]->report;
    /* Where a is static ODE takes b as its body 1. */
    const double sign = w->body[out[k].body_a] ? 1 : -1;
    out[k].force = w->keep_forces ? (pabd_dvec3){sign * f[0], sign * f[1], sign * f[2]} : (pabd_dvec3){NAN, NAN, NAN};
  }
  return w->contact_count;
}

static const pabd_engine table = {PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings, create, step,   read_state,
                                  stats,           setting_value,       contacts, NULL,     NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
