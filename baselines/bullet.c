/* Bullet 3.2.7 through its C API (b3ConnectPhysicsDirect and commands), maximal coordinates, sequential impulse.
 *
 * Every call is a command to an in-process server; a frame is `substeps` step commands of frame_time / substeps. The
 * server's world is a btSoftMultiBodyDynamicsWorld whose btMultiBodyConstraintSolver treats maximal-coordinate bodies
 * by plain sequential impulse; its parameters differ from the bare world's, so all of them are set here. What the API
 * cannot do is "not supported": joints but ball and fixed (a hinge is two ball joints on its axis), limits, motors,
 * friction tables, several worlds. Three traps, each met by a comment below: inertia changes reach the world tensor
 * only after a step; a ball joint carries at most 500 N s a substep; only one force fits a command. Invariant: no body
 * sleeps, none is damped, masses and inertias are the scene's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "PhysicsClientC_API.h"
#include "PhysicsDirectC_API.h"
#include "common/baseline.h"

#ifndef PABD_BULLET_BUILD
#define PABD_BULLET_BUILD "source"
#endif

#define BALL_JOINT_IMPULSE 500.0 /* N s: the API's default impulse clamp of a ball joint, which no command changes */
#define CLASS_CAPACITY 30        /* filter classes: one bit each */
#define FILTER_AND 0             /* B3_FILTER_GROUPAMASKB_AND_GROUPBMASKA, which its C headers do not have */

enum {
  ITERATIONS,
  SUBSTEPS,
  SOLVER,
  ERP,
  CONTACT_ERP,
  CFM,
  WARM_START,
  SPLIT_IMPULSE,
  SPLIT_THRESHOLD,
  SLOP,
  RESTITUTION_THRESHOLD,
  BREAKING_THRESHOLD,
  RESIDUAL,
  BATCH,
  HINGE_SPAN,
  SETTING_COUNT
};

static const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"iterations", "int", "10", "1 .. 100000", "1", "sweeps of the velocity solver a substep",
     "bare world's value (btContactSolverInfo); the C API's own is 50"},
    {"substeps", "int", "1", "1 .. 10000", "1", "step commands a frame, each of frame_time / substeps",
     "one step a frame is how Bullet is called by default"},
    {"solver", "choice", "si", "si | pgs | dantzig", "1",
     "sequential impulse, or an MLCP solved by projected Gauss-Seidel or Dantzig's pivoting", "the C API's default"},
    {"erp", "real", "0.2", "0 .. 1", "1", "fraction of a joint's position error removed in a substep",
     "btContactSolverInfo: m_erp = 0.2"},
    {"contact_erp", "real", "0.2", "0 .. 1", "1", "fraction of a penetration removed in a substep",
     "bare world's value; the C API's own is 0.08"},
    {"cfm", "real", "0", "0 .. 1e6", "1", "constraint force mixing of all rows (softness)",
     "btContactSolverInfo: m_globalCfm = 0"},
    {"warm_start", "real", "0.85", "0 .. 1", "1", "fraction of the last normal impulse used as start",
     "bare world's value; the C API's own is 0.1"},
    {"split_impulse", "bool", "1", "0 | 1", "1",
     "deep penetrations are removed by pseudo velocities that carry no energy",
     "btContactSolverInfo: m_splitImpulse = true"},
    {"split_impulse_threshold", "real", "-0.04", "-1e6 .. 0", "m",
     "split impulse acts on gaps below this, others change the velocity",
     "btContactSolverInfo: m_splitImpulsePenetrationThreshold = -0.04"},
    {"slop", "real", "0", "-1 .. 1", "m", "added to every contact gap: penetration allowed",
     "bare world's value; the C API's own is 1e-5"},
    {"restitution_threshold", "real", "0.2", "0 .. inf", "m/s", "slower impacts are plastic",
     "btContactSolverInfo: m_restitutionVelocityThreshold = 0.2"},
    {"contact_breaking_threshold", "real", "0.02", "0 .. 1", "m", "gap at which a contact point is made and dropped",
     "gContactBreakingThreshold = 0.02 (per shape never above its own size's share)"},
    {"residual", "real", "0", "0 .. inf", "1", "stop sweeping below this least-squares residual, 0: never",
     "bare world's value; the C API's own is 1e-7"},
    {"batch", "int", "128", "0 .. 1000000", "1", "islands are solved together until they have this many constraints",
     "bare world's value (m_minimumSolverBatchSize); the C API's own is 0"},
    {"hinge_span", "real", "0.1", "1e-4 .. 100", "m",
     "distance from the anchor of the two ball joints that make a hinge",
     "no source: half a link's width in the suite's chains"},
};

static const uint64_t capabilities =
    PABD_CAN_SPHERE | PABD_CAN_CAPSULE | PABD_CAN_BOX | PABD_CAN_PLANE | PABD_CAN_CYLINDER | PABD_CAN_HULL |
    PABD_CAN_COMPOUND | PABD_CAN_SPHERICAL | PABD_CAN_HINGE | PABD_CAN_FIXED | PABD_CAN_SPRING | PABD_CAN_RESTITUTION |
    PABD_CAN_LOADS | PABD_CAN_FRICTION_CONE | PABD_CAN_REPORT_CONTACTS | PABD_CAN_DETERMINISM;

typedef struct bullet_world {
  double value[SETTING_COUNT];
  pabd_scene scene;
  b3PhysicsClientHandle client;
  int32_t *id;      /* [body_count]: unique id of the moving bodies; of a static one, of its last object */
  int32_t *body_of; /* [id_capacity]: scene body of a unique id, -1 none */
  int32_t id_capacity;
  int32_t anchor;                  /* unique id of the world's anchor, -1 when no joint needs it */
  double *force, *pose, *velocity; /* [body_count][6], [7], [6]: substep scratch */
  int has_springs, broken;
  double time;
} bullet_world;

/* ---- Commands ---- */

static int submit(b3PhysicsClientHandle client, b3SharedMemoryCommandHandle command, int expected) {
  b3SharedMemoryStatusHandle status = b3SubmitClientCommandAndWaitStatus(client, command);
  return b3GetStatusType(status) == expected;
}

static void to_xyzw(pabd_dquat q, double *out) {
  out[0] = q.x, out[1] = q.y, out[2] = q.z, out[3] = q.w;
}

static int set_pose(bullet_world *w, int32_t id, pabd_dpose pose, pabd_dvec3 linear, pabd_dvec3 angular) {
  const double v[3] = {linear.x, linear.y, linear.z}, o[3] = {angular.x, angular.y, angular.z};
  b3SharedMemoryCommandHandle command = b3CreatePoseCommandInit(w->client, id);
  b3CreatePoseCommandSetBasePosition(command, pose.p.x, pose.p.y, pose.p.z);
  b3CreatePoseCommandSetBaseOrientation(command, pose.q.x, pose.q.y, pose.q.z, pose.q.w);
  b3CreatePoseCommandSetBaseLinearVelocity(command, v);
  b3CreatePoseCommandSetBaseAngularVelocity(command, o);
  return submit(w->client, command, CMD_CLIENT_COMMAND_COMPLETED);
}

static int set_physics(bullet_world *w, double step, pabd_dvec3 gravity) {
  b3SharedMemoryCommandHandle command = b3InitPhysicsParamCommand(w->client);
  b3PhysicsParamSetGravity(command, gravity.x, gravity.y, gravity.z);
  b3PhysicsParamSetTimeStep(command, step);
  b3PhysicsParamSetNumSubSteps(command, 0); /* stepSimulation(h, 0) */
  b3PhysicsParamSetRealTimeSimulation(command, 0);
  b3PhysicsParamSetNumSolverIterations(command, (int)w->value[ITERATIONS]);
  b3PhysicsParamSetDefaultNonContactERP(command, w->value[ERP]);
  b3PhysicsParamSetDefaultContactERP(command, w->value[CONTACT_ERP]);
  b3PhysicsParamSetDefaultGlobalCFM(command, w->value[CFM]);
  b3PhysicsParamSetWarmStartingFactor(command, w->value[WARM_START]);
  b3PhysicsParamSetUseSplitImpulse(command, (int)w->value[SPLIT_IMPULSE]);
  b3PhysicsParamSetSplitImpulsePenetrationThreshold(command, w->value[SPLIT_THRESHOLD]);
  b3PhysicsParamSetContactSlop(command, w->value[SLOP]);
  b3PhysicsParamSetRestitutionVelocityThreshold(command, w->value[RESTITUTION_THRESHOLD]);
  b3PhysicsParamSetContactBreakingThreshold(command, w->value[BREAKING_THRESHOLD]);
  b3PhysicsParamSetSolverResidualThreshold(command, w->value[RESIDUAL]);
  b3PhysicsParameterSetMinimumSolverIslandSize(command, (int)w->value[BATCH]);
  b3PhysicsParamSetCollisionFilterMode(command, FILTER_AND);
  if (w->value[SOLVER] != 0)
    b3PhysicsParameterSetConstraintSolverType(
        command, w->value[SOLVER] == 1 ? eConstraintSolverLCP_PGS : eConstraintSolverLCP_DANTZIG);
  return submit(w->client, command, CMD_CLIENT_COMMAND_COMPLETED);
}

/* ---- Building the world ---- */

/* A collision shape of scene shapes first .. first + count - 1; -1 on failure. `plain` drops the local frame. */
static int make_shape(bullet_world *w, int32_t first, int32_t count, int plain) {
  b3SharedMemoryCommandHandle command = b3CreateCollisionShapeCommandInit(w->client);
  for (int32_t s = first; s < first + count; ++s) {
    const pabd_shape *shape = &w->scene.shapes[s];
    const double half[3] = {shape->half.x, shape->half.y, shape->half.z}, up[3] = {0, 0, 1}, scale[3] = {1, 1, 1};
    int index = -1;
    switch (shape->kind) {
      case PABD_SPHERE:
        index = b3CreateCollisionShapeAddSphere(command, shape->radius);
        break;
      case PABD_CAPSULE:
        index = b3CreateCollisionShapeAddCapsule(command, shape->radius, 2 * shape->half_length);
        break;
      case PABD_BOX:
        index = b3CreateCollisionShapeAddBox(command, half);
        break;
      case PABD_PLANE:
        index = b3CreateCollisionShapeAddPlane(command, up, 0);
        break;
      case PABD_CYLINDER:
        index = b3CreateCollisionShapeAddCylinder(command, shape->radius, 2 * shape->half_length);
        break;
      default: /* the server puts its margin of 1 mm around a hull */
        index = b3CreateCollisionShapeAddConvexMesh(w->client, command, scale,
                                                    &w->scene.vertices[shape->first_vertex].x, shape->vertex_count);
        break;
    }
    if (index < 0) return -1;
    if (!plain) {
      const double p[3] = {shape->local.p.x, shape->local.p.y, shape->local.p.z};
      double q[4];
      to_xyzw(shape->local.q, q);
      b3CreateCollisionShapeSetChildTransform(command, index, p, q);
    }
  }
  b3SharedMemoryStatusHandle status = b3SubmitClientCommandAndWaitStatus(w->client, command);
  return b3GetStatusType(status) == CMD_CREATE_COLLISION_SHAPE_COMPLETED ? b3GetStatusCollisionShapeUniqueId(status)
                                                                         : -1;
}

/* One maximal-coordinate body of the server, -1 on failure. */
static int make_object(bullet_world *w, int32_t index, int shape, pabd_dpose at, double friction, double restitution) {
  const pabd_body *body = index >= 0 ? &w->scene.bodies[index] : NULL;
  const int dynamic = body && body->motion == PABD_DYNAMIC;
  const double zero[3] = {0, 0, 0}, unit[4] = {0, 0, 0, 1}, p[3] = {at.p.x, at.p.y, at.p.z};
  double q[4];
  to_xyzw(at.q, q);
  b3SharedMemoryCommandHandle command = b3CreateMultiBodyCommandInit(w->client);
  b3CreateMultiBodyUseMaximalCoordinates(command);
  b3CreateMultiBodyBase(command, dynamic ? body->mass : 0, shape, -1, p, q, zero, unit);
  b3SharedMemoryStatusHandle status = b3SubmitClientCommandAndWaitStatus(w->client, command);
  if (b3GetStatusType(status) != CMD_CREATE_MULTI_BODY_COMPLETED) return -1;
  const int id = b3GetStatusBodyIndex(status);
  if (id < 0) return -1;
  if (id >= w->id_capacity) {
    const int32_t capacity = 2 * id + 64;
    int32_t *grown = realloc(w->body_of, (size_t)capacity * sizeof *grown);
    if (grown == NULL) return -1;
    for (int32_t k = w->id_capacity; k < capacity; ++k) grown[k] = -1;
    w->body_of = grown;
    w->id_capacity = capacity;
  }
  w->body_of[id] = index;

  command = b3InitChangeDynamicsInfo(w->client);
  if (dynamic) {
    const double inertia[3] = {body->inertia.x, body->inertia.y, body->inertia.z};
    b3ChangeDynamicsInfoSetMass(command, id, -1, body->mass);
    b3ChangeDynamicsInfoSetLocalInertiaDiagonal(command, id, -1, inertia);
  }
  /* The server multiplies the two bodies' values. */
  b3ChangeDynamicsInfoSetLateralFriction(command, id, -1, sqrt(friction));
  b3ChangeDynamicsInfoSetRestitution(command, id, -1, sqrt(restitution));
  b3ChangeDynamicsInfoSetRollingFriction(command, id, -1, 0);
  b3ChangeDynamicsInfoSetSpinningFriction(command, id, -1, 0);
  b3ChangeDynamicsInfoSetLinearDamping(command, id, 0);
  b3ChangeDynamicsInfoSetAngularDamping(command, id, 0);
  b3ChangeDynamicsInfoSetActivationState(command, id, eActivationStateDisableSleeping);
  return submit(w->client, command, CMD_CLIENT_COMMAND_COMPLETED) ? id : -1;
}

/* Classes of bodies for group and mask bits: immovable or not, and the collision group. */
typedef struct filter_classes {
  int32_t count;
  int32_t still[CLASS_CAPACITY], group[CLASS_CAPACITY];
} filter_classes;

static int32_t class_of(filter_classes *classes, const pabd_body *body) {
  const int32_t still = body->motion != PABD_DYNAMIC, group = body->group > 0 ? body->group : 0;
  for (int32_t k = 0; k < classes->count; ++k)
    if (classes->still[k] == still && classes->group[k] == group) return k;
  if (classes->count == CLASS_CAPACITY) return -1;
  classes->still[classes->count] = still;
  classes->group[classes->count] = group;
  return classes->count++;
}

static void set_filter(bullet_world *w, int32_t id, int group, int mask) {
  b3SharedMemoryCommandHandle command = b3CollisionFilterCommandInit(w->client);
  b3SetCollisionFilterGroupMask(command, id, -1, group, mask);
  submit(w->client, command, CMD_CLIENT_COMMAND_COMPLETED);
}

static pabd_status set_filters(bullet_world *w, const int32_t *ranges, pabd_error *error) {
  filter_classes classes = {0};
  for (int32_t b = 0; b < w->scene.body_count; ++b)
    if (class_of(&classes, &w->scene.bodies[b]) < 0)
      return pabd_fail(error, PABD_ERR_UNSUPPORTED, "bullet: more than %d collision groups (its filter has 32 bits)",
                       CLASS_CAPACITY - 1);
  for (int32_t id = 0; id < w->id_capacity; ++id) {
    const int32_t b = w->body_of[id];
    if (b < 0 || ranges[b + 1] == ranges[b]) continue; /* the anchor and bodies without shapes keep group 0 */
    const int32_t own = class_of(&classes, &w->scene.bodies[b]);
    int mask = 0;
    for (int32_t k = 0; k < classes.count; ++k) {
      const int same_group = classes.group[own] > 0 && classes.group[k] == classes.group[own];
      const int both_still = classes.still[own] && classes.still[k];
      if (!same_group && !both_still) mask |= 1 << k;
    }
    set_filter(w, id, 1 << own, mask);
  }
  int32_t(*pairs)[2] = NULL, count = 0;
  PABD_TRY(pabd_scene_filter_pairs(&w->scene, &pairs, &count));
  for (int32_t k = 0; k < count; ++k) {
    for (int32_t id = 0; id < w->id_capacity; ++id) {
      /* A static body may consist of several objects. */
      if (w->body_of[id] != pairs[k][0] && (w->id[pairs[k][0]] != id)) continue;
      for (int32_t other = 0; other < w->id_capacity; ++other) {
        if (w->body_of[other] != pairs[k][1] && (w->id[pairs[k][1]] != other)) continue;
        b3SharedMemoryCommandHandle command = b3CollisionFilterCommandInit(w->client);
        b3SetCollisionFilterPair(command, id, other, -1, -1, 0);
        submit(w->client, command, CMD_CLIENT_COMMAND_COMPLETED);
      }
      if (w->scene.bodies[pairs[k][0]].motion != PABD_STATIC) break;
    }
  }
  free(pairs);
  return PABD_OK;
}

static pabd_status add_bodies(bullet_world *w, const int32_t *ranges, pabd_error *error) {
  double friction, restitution;
  pabd_scene_uniform_materials(&w->scene, &friction, &restitution);
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const pabd_body *body = &w->scene.bodies[b];
    const int32_t first = ranges[b], count = ranges[b + 1] - first;
    const int is_static = body->motion == PABD_STATIC && count > 0;
    w->id[b] = -1;
    /* One object per shape of a static body (planes cannot be part of a compound), one per other body. */
    for (int32_t s = 0; s < (is_static ? count : 1); ++s) {
      const pabd_dpose local = count > 0 ? w->scene.shapes[first].local : body->pose;
      const int centered =
          local.p.x == 0 && local.p.y == 0 && local.p.z == 0 && local.q.x == 0 && local.q.y == 0 && local.q.z == 0;
      int shape = -1;
      if (is_static)
        shape = make_shape(w, first + s, 1, 1);
      else if (count > 0)
        shape = make_shape(w, first, count, count == 1 && centered);
      if (count > 0 && shape < 0)
        return pabd_fail(error, PABD_ERR_UNSUPPORTED,
                         "bullet: the server makes no collision shape for body %d (at most 16 shapes a body)", b);
      const pabd_dpose at = is_static ? pabd_dpose_mul(body->pose, w->scene.shapes[first + s].local) : body->pose;
      w->id[b] = make_object(w, b, shape, at, friction, restitution);
      if (w->id[b] < 0) return pabd_fail(error, PABD_ERR_INTERNAL, "bullet: the server makes no body %d", b);
    }
  }
  return PABD_OK;
}

/* A changed inertia reaches the world tensor only when a step moves the body: one millisecond without gravity, velocity
 * or contacts, after which poses and velocities are set. Without it the first frame would use the shape's inertia. */
static pabd_status settle_inertia(bullet_world *w, pabd_error *error) {
  const pabd_dvec3 none = {0, 0, 0};
  for (int32_t id = 0; id < w->id_capacity; ++id)
    if (w->body_of[id] >= 0 || id == w->anchor) set_filter(w, id, 0, 0);
  int good = set_physics(w, 1e-3, none);
  good &= submit(w->client, b3InitStepSimulationCommand(w->client), CMD_STEP_FORWARD_SIMULATION_COMPLETED);
  good &= set_physics(w, w->scene.frame_time / w->value[SUBSTEPS], w->scene.gravity);
  for (int32_t b = 0; b < w->scene.body_count && good; ++b) {
    const pabd_body *body = &w->scene.bodies[b];
    if (body->motion == PABD_STATIC) continue;
    good &= set_pose(w, w->id[b], body->pose, body->linear, body->angular);
  }
  return good ? PABD_OK : pabd_fail(error, PABD_ERR_INTERNAL, "bullet: the server refuses its parameters");
}

static int add_constraint(bullet_world *w, int type, const pabd_joint *joint, pabd_dvec3 offset) {
  const pabd_dvec3 a = pabd_dpose_apply(joint->frame_a, offset), b = pabd_dpose_apply(joint->frame_b, offset);
  struct b3JointInfo info;
  memset(&info, 0, sizeof info);
  info.m_jointType = type;
  info.m_parentFrame[0] = a.x, info.m_parentFrame[1] = a.y, info.m_parentFrame[2] = a.z, info.m_parentFrame[6] = 1;
  info.m_childFrame[0] = b.x, info.m_childFrame[1] = b.y, info.m_childFrame[2] = b.z, info.m_childFrame[6] = 1;
  const int32_t parent = joint->body_a == PABD_WORLD ? w->anchor : w->id[joint->body_a];
  return submit(w->client, b3InitCreateUserConstraintCommand(w->client, parent, -1, w->id[joint->body_b], -1, &info),
                CMD_USER_CONSTRAINT_COMPLETED);
}

static pabd_status add_joints(bullet_world *w, pabd_error *error) {
  const double span = w->value[HINGE_SPAN];
  const pabd_dvec3 zero = {0, 0, 0}, up = {0, 0, span}, down = {0, 0, -span};
  for (int32_t j = 0; j < w->scene.joint_count; ++j) {
    const pabd_joint *joint = &w->scene.joints[j];
    int good = 1;
    if (joint->kind == PABD_SPHERICAL) good = add_constraint(w, ePoint2PointType, joint, zero);
    if (joint->kind == PABD_HINGE)
      good = add_constraint(w, ePoint2PointType, joint, up) && add_constraint(w, ePoint2PointType, joint, down);
    if (joint->kind == PABD_FIXED) {
      /* The server's fixed joint drops the frames' rotations: it holds the bodies' own axes parallel. */
      const pabd_dquat d = pabd_dquat_mul(joint->frame_a.q, pabd_dquat_conj(joint->frame_b.q));
      if (fabs(d.x) + fabs(d.y) + fabs(d.z) > 1e-9)
        return pabd_fail(
            error, PABD_ERR_UNSUPPORTED,
            "bullet: fixed joint %d holds bodies whose axes are not parallel, its C API can only make them so", j);
      good = add_constraint(w, eFixedType, joint, zero);
    }
    if (!good) return pabd_fail(error, PABD_ERR_INTERNAL, "bullet: the server makes no joint %d", j);
  }
  return PABD_OK;
}

static int32_t find_root(int32_t *root, int32_t k) {
  while (root[k] != k) k = root[k] = root[root[k]];
  return k;
}

/* Is there a joined group of bodies so heavy that its weight alone is more than a ball joint may carry in a substep? */
static pabd_status check_joint_loads(const pabd_scene *scene, double step, pabd_error *error) {
  const size_t n = (size_t)scene->body_count + 1;
  int32_t *root = malloc(n * sizeof *root);
  double *mass = calloc(n, sizeof *mass), worst = 0;
  if (root == NULL || mass == NULL) {
    free(root);
    free(mass);
    return PABD_ERR_MEMORY;
  }
  for (int32_t b = 0; b < scene->body_count; ++b) root[b] = b;
  for (int32_t j = 0; j < scene->joint_count; ++j)
    if (scene->joints[j].kind != PABD_SPRING && scene->joints[j].body_a != PABD_WORLD)
      root[find_root(root, scene->joints[j].body_a)] = find_root(root, scene->joints[j].body_b);
  for (int32_t b = 0; b < scene->body_count; ++b)
    if (scene->bodies[b].motion == PABD_DYNAMIC) mass[find_root(root, b)] += scene->bodies[b].mass;
  for (int32_t j = 0; j < scene->joint_count; ++j)
    if (scene->joints[j].kind == PABD_SPHERICAL || scene->joints[j].kind == PABD_HINGE)
      worst = fmax(worst, mass[find_root(root, scene->joints[j].body_b)]);
  free(root);
  free(mass);
  const double gravity = sqrt(scene->gravity.x * scene->gravity.x + scene->gravity.y * scene->gravity.y +
                              scene->gravity.z * scene->gravity.z);
  if (worst * gravity * step <= BALL_JOINT_IMPULSE) return PABD_OK;
  return pabd_fail(
      error, PABD_ERR_UNSUPPORTED,
      "bullet: a ball joint of its C API carries at most %.0f N s a substep, joined bodies here weigh %.0f N s "
      "(bullet-native has no such bound)",
      BALL_JOINT_IMPULSE, worst * gravity * step);
}

static void destroy(void *world) {
  bullet_world *w = world;
  if (w == NULL) return;
  if (w->client) b3DisconnectSharedMemory(w->client);
  pabd_scene_free(&w->scene);
  free(w->id);
  free(w->body_of);
  free(w->force);
  free(w->pose);
  free(w->velocity);
  free(w);
}

static pabd_status build(bullet_world *w, const pabd_scene *scene, pabd_error *error) {
  const size_t bodies = (size_t)scene->body_count + 1;
  PABD_TRY(pabd_scene_copy(scene, &w->scene));
  w->anchor = -1;
  w->id = malloc(bodies * sizeof *w->id);
  w->force = calloc(bodies * 6, sizeof *w->force);
  w->pose = calloc(bodies * 7, sizeof *w->pose);
  w->velocity = calloc(bodies * 6, sizeof *w->velocity);
  int32_t *ranges = pabd_scene_shape_ranges(&w->scene);
  if (!w->id || !w->force || !w->pose || !w->velocity || !ranges) {
    free(ranges);
    return PABD_ERR_MEMORY;
  }
  w->has_springs = pabd_scene_has_springs(&w->scene);
  pabd_status status = PABD_OK;
  w->client = b3ConnectPhysicsDirect();
  if (w->client == NULL || !b3CanSubmitCommand(w->client))
    status = pabd_fail(error, PABD_ERR_INTERNAL, "bullet: the in-process server does not answer");
  if (status == PABD_OK) status = add_bodies(w, ranges, error);
  for (int32_t j = 0; j < w->scene.joint_count && status == PABD_OK && w->anchor < 0; ++j) {
    if (w->scene.joints[j].body_a != PABD_WORLD || w->scene.joints[j].kind == PABD_SPRING) continue;
    const pabd_dpose origin = {{0, 0, 0}, {1, 0, 0, 0}};
    w->anchor = make_object(w, -1, -1, origin, 0, 0);
    if (w->anchor < 0) status = pabd_fail(error, PABD_ERR_INTERNAL, "bullet: the server makes no anchor");
  }
  if (status == PABD_OK) status = settle_inertia(w, error);
  if (status == PABD_OK) status = set_filters(w, ranges, error);
  if (status == PABD_OK) status = add_joints(w, error);
  free(ranges);
  return status;
}

/* ---- The table ---- */

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  *info = (pabd_engine_info){"bullet", "3.2.7", "float", "cpu", "zlib", PABD_BULLET_BUILD, capabilities};
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
  PABD_TRY(pabd_settings_parse("bullet", settings_table, SETTING_COUNT, given, given_count, value, error));
  PABD_TRY(pabd_scene_supported("bullet", scene, capabilities, error));
  PABD_TRY(pabd_scene_springs_stable("bullet", scene, scene->frame_time / value[SUBSTEPS], error));
  PABD_TRY(check_joint_loads(scene, scene->frame_time / value[SUBSTEPS], error));
  bullet_world *w = calloc(1, sizeof *w);
  if (w == NULL) return PABD_ERR_MEMORY;
  memcpy(w->value, value, sizeof value);
  pabd_status status = build(w, scene, error);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *world = w;
  return PABD_OK;
}

static void read_state(void *world, double *pose, double *velocity) {
  bullet_world *w = world;
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const pabd_body *body = &w->scene.bodies[b];
    double *p = pose + (size_t)b * 7, *v = velocity + (size_t)b * 6;
    if (body->motion == PABD_DYNAMIC) {
      const double *q = NULL, *rate = NULL;
      b3SharedMemoryStatusHandle status =
          b3SubmitClientCommandAndWaitStatus(w->client, b3RequestActualStateCommandInit(w->client, w->id[b]));
      if (!b3GetStatusActualState(status, NULL, NULL, NULL, NULL, &q, &rate, NULL)) {
        w->broken = 1;
        for (int k = 0; k < 7; ++k) p[k] = NAN;
        continue;
      }
      const pabd_dquat turn = pabd_dquat_normalize((pabd_dquat){q[6], q[3], q[4], q[5]});
      p[0] = q[0], p[1] = q[1], p[2] = q[2];
      p[3] = turn.w, p[4] = turn.x, p[5] = turn.y, p[6] = turn.z;
      memcpy(v, rate, 6 * sizeof *v);
      continue;
    }
    const double row[7] = {body->pose.p.x, body->pose.p.y, body->pose.p.z, body->pose.q.w,
                           body->pose.q.x, body->pose.q.y, body->pose.q.z};
    memcpy(p, row, sizeof row);
    memset(v, 0, 6 * sizeof *v);
  }
  if (!pabd_state_finite(pose, velocity, w->scene.body_count)) w->broken = 1;
}

/* The API adds the forces of one command over each other in its arrays: one force or torque a command. */
static void apply_forces(bullet_world *w) {
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const double *f = w->force + (size_t)b * 6, *p = w->pose + (size_t)b * 7;
    if (w->scene.bodies[b].motion != PABD_DYNAMIC) continue;
    if (f[0] != 0 || f[1] != 0 || f[2] != 0) {
      b3SharedMemoryCommandHandle command = b3ApplyExternalForceCommandInit(w->client);
      b3ApplyExternalForce(command, w->id[b], -1, f, p, EF_WORLD_FRAME);
      submit(w->client, command, CMD_CLIENT_COMMAND_COMPLETED);
    }
    if (f[3] != 0 || f[4] != 0 || f[5] != 0) {
      b3SharedMemoryCommandHandle command = b3ApplyExternalForceCommandInit(w->client);
      b3ApplyExternalTorque(command, w->id[b], -1, f + 3, EF_WORLD_FRAME);
      submit(w->client, command, CMD_CLIENT_COMMAND_COMPLETED);
    }
  }
}

static void get_contacts(bullet_world *w, struct b3ContactInformation *list) {
  list->m_numContactPoints = 0;
  b3SharedMemoryStatusHandle status =
      b3SubmitClientCommandAndWaitStatus(w->client, b3InitRequestContactPointInformation(w->client));
  if (b3GetStatusType(status) == CMD_CONTACT_POINT_INFORMATION_COMPLETED) b3GetContactPointInformation(w->client, list);
}

/* Force of a contact on its body A, N. */
static pabd_dvec3 contact_force(const struct b3ContactPointData *c) {
  double f[3];
  for (int k = 0; k < 3; ++k)
    f[k] =
        c->m_normalForce * c->m_contactNormalOnBInWS[k] + c->m_linearFrictionForce1 * c->m_linearFrictionDirection1[k];
  return (pabd_dvec3){f[0], f[1], f[2]};
}

static pabd_status step(void *world, pabd_error *error) {
  bullet_world *w = world;
  const double h = w->scene.frame_time / w->value[SUBSTEPS], start = w->time;
  for (int s = 0; s < (int)w->value[SUBSTEPS]; ++s) {
    w->time = start + s * h;
    int acts = pabd_scene_loads(&w->scene, w->time, w->time + h, w->force);
    if (acts || w->has_springs) read_state(w, w->pose, w->velocity);
    if (w->has_springs) {
      if (!acts) memset(w->force, 0, (size_t)w->scene.body_count * 6 * sizeof *w->force);
      pabd_scene_spring_forces(&w->scene, w->pose, w->velocity, w->force);
      acts = 1;
    }
    if (acts) apply_forces(w);
    if (!submit(w->client, b3InitStepSimulationCommand(w->client), CMD_STEP_FORWARD_SIMULATION_COMPLETED))
      return pabd_fail(error, PABD_ERR_INTERNAL, "bullet: the server does not step");
    w->time = start + (s + 1) * h;
  }
  /* Looking at every body would cost more than small steps do: read_state sees what is not finite. */
  return w->broken ? pabd_fail(error, PABD_DIVERGED, "bullet: a body has no finite state before %.4g s", w->time)
                   : PABD_OK;
}

/* The API has no stage timers, and asking for its contacts costs as much as a step: nothing of them here. */
static void stats(void *world, pabd_engine_stats *out) {
  (void)world;
  memset(out, 0, sizeof *out);
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((bullet_world *)world)->value[index], buffer, size);
}

static int32_t contacts(void *world, pabd_contact *out, int32_t capacity) {
  bullet_world *w = world;
  struct b3ContactInformation list;
  get_contacts(w, &list);
  for (int32_t k = 0; k < list.m_numContactPoints && k < capacity; ++k) {
    const struct b3ContactPointData *c = &list.m_contactPointData[k];
    const double *a = c->m_positionOnAInWS, *b = c->m_positionOnBInWS, *n = c->m_contactNormalOnBInWS;
    out[k] = (pabd_contact){.body_a = w->body_of[c->m_bodyUniqueIdA],
                            .body_b = w->body_of[c->m_bodyUniqueIdB],
                            .point = {(a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2},
                            .normal = {n[0], n[1], n[2]},
                            .gap = c->m_contactDistance,
                            .friction = w->scene.friction[0],
                            .restitution = w->scene.restitution[0],
                            .force = contact_force(c)};
  }
  return list.m_numContactPoints;
}

static const pabd_engine table = {PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings, create, step,   read_state,
                                  stats,           setting_value,       contacts, NULL,     NULL,   destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
