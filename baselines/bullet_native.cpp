/* Bullet through its own C++ interface: a bare btDiscreteDynamicsWorld, the same library as `bullet`.
 *
 * The C API spends about as long around the step as in it (commands, a virtual machine for multibodies, state copies),
 * so a comparison with it alone would flatter everybody else. The only C++ file of the suite; nothing but glue. One
 * step is stepSimulation(h, 0): predict, collide, islands, solve, integrate (semi-implicit Euler). Hidden laws of
 * Bullet, all recorded in the settings or in baselines/README.md: velocity-dependent single friction direction, contact
 * and joint errors corrected by a fraction `erp` a step, penetrations past the split threshold by pseudo velocities,
 * angular velocity clamped to a quarter turn a step, contacts kept up to the breaking threshold. Invariant: no body
 * sleeps, none is damped, masses and inertias are the scene's. */
#include <btBulletDynamicsCommon.h>

#include <BulletDynamics/ConstraintSolver/btNNCGConstraintSolver.h>
#include <BulletDynamics/MLCPSolvers/btDantzigSolver.h>
#include <BulletDynamics/MLCPSolvers/btMLCPSolver.h>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "common/baseline.h"

#ifndef PABD_BULLET_BUILD
#define PABD_BULLET_BUILD "source"
#endif

extern btScalar gContactBreakingThreshold;
extern ContactAddedCallback gContactAddedCallback;

namespace {

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
  SOR,
  RESTITUTION_THRESHOLD,
  FRICTION_DIRECTIONS,
  GYROSCOPIC,
  BREAKING_THRESHOLD,
  HULL_MARGIN,
  RESIDUAL,
  RANDOM_ORDER,
  SIMD,
  POOL,
  SETTING_COUNT
};

const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"iterations", "int", "10", "1 .. 100000", "1", "sweeps of the velocity solver a substep",
     "btContactSolverInfo: m_numIterations = 10"},
    {"substeps", "int", "1", "1 .. 10000", "1", "stepSimulation calls a frame, each of frame_time / substeps",
     "one call a frame is how Bullet is called by default"},
    {"solver", "choice", "si", "si | nncg | dantzig", "1",
     "sequential impulse, nonlinear conjugate gradient on top of it, or the pivoting direct MLCP solver",
     "btDefaultCollisionConfiguration users take sequential impulse"},
    {"erp", "real", "0.2", "0 .. 1", "1", "fraction of a joint's position error removed in a substep",
     "btContactSolverInfo: m_erp = 0.2"},
    {"contact_erp", "real", "0.2", "0 .. 1", "1", "fraction of a penetration removed in a substep",
     "btContactSolverInfo: m_erp2 = 0.2"},
    {"cfm", "real", "0", "0 .. 1e6", "1", "constraint force mixing of all rows (softness)",
     "btContactSolverInfo: m_globalCfm = 0"},
    {"warm_start", "real", "0.85", "0 .. 1", "1", "fraction of the last normal impulse used as start, 0: none",
     "btContactSolverInfo: m_warmstartingFactor = 0.85"},
    {"split_impulse", "bool", "1", "0 | 1", "1",
     "deep penetrations are removed by pseudo velocities that carry no energy",
     "btContactSolverInfo: m_splitImpulse = true"},
    {"split_impulse_threshold", "real", "-0.04", "-1e6 .. 0", "m",
     "split impulse acts on gaps below this, others change the velocity",
     "btContactSolverInfo: m_splitImpulsePenetrationThreshold = -0.04"},
    {"slop", "real", "0", "-1 .. 1", "m", "added to every contact gap: penetration allowed",
     "btContactSolverInfo: m_linearSlop = 0"},
    {"sor", "real", "1", "0.01 .. 2", "1", "over-relaxation of contact rows", "btContactSolverInfo: m_sor = 1"},
    {"restitution_threshold", "real", "0.2", "0 .. inf", "m/s", "slower impacts are plastic",
     "btContactSolverInfo: m_restitutionVelocityThreshold = 0.2"},
    {"friction_directions", "int", "1", "1 .. 2", "1",
     "1: along the sliding velocity, isotropic; 2: that and the direction across, each bounded by itself (a pyramid)",
     "btContactSolverInfo: SOLVER_USE_2_FRICTION_DIRECTIONS is off"},
    {"gyroscopic", "choice", "implicit_body", "none | explicit | implicit_world | implicit_body", "1",
     "gyroscopic torque: none, explicit (at most 100 N m), one Newton step in the world or body frame",
     "btRigidBody: BT_ENABLE_GYROSCOPIC_FORCE_IMPLICIT_BODY"},
    {"contact_breaking_threshold", "real", "0.02", "0 .. 1", "m", "gap at which a contact point is made and dropped",
     "gContactBreakingThreshold = 0.02 (per shape never above its own size's share)"},
    {"hull_margin", "real", "0", "0 .. 0.1", "m", "layer around convex hulls (Bullet's 0.04 would grow the shape)",
     "0: the judge's hull and Bullet's are the same"},
    {"residual", "real", "0", "0 .. inf", "1", "stop sweeping below this least-squares residual, 0: never",
     "btContactSolverInfo: m_leastSquaresResidualThreshold = 0"},
    {"random_order", "bool", "0", "0 | 1", "1", "sweep rows in random order (a fixed seed)",
     "btContactSolverInfo: SOLVER_RANDMIZE_ORDER is off"},
    {"simd", "bool", "1", "0 | 1", "1", "SIMD row kernels", "btContactSolverInfo: SOLVER_SIMD"},
    {"pool", "int", "4096", "64 .. 10000000", "1", "contact manifolds and pairs that come from a pool, not from malloc",
     "btDefaultCollisionConstructionInfo: 4096"},
};

const uint64_t capabilities = PABD_CAN_SPHERE | PABD_CAN_CAPSULE | PABD_CAN_BOX | PABD_CAN_PLANE | PABD_CAN_CYLINDER |
                              PABD_CAN_HULL | PABD_CAN_COMPOUND | PABD_CAN_SPHERICAL | PABD_CAN_HINGE |
                              PABD_CAN_SLIDER | PABD_CAN_FIXED | PABD_CAN_DISTANCE | PABD_CAN_SPRING |
                              PABD_CAN_UNIVERSAL | PABD_CAN_LIMITS | PABD_CAN_MOTORS | PABD_CAN_RESTITUTION |
                              PABD_CAN_KINEMATIC | PABD_CAN_LOADS | PABD_CAN_FRICTION_CONE | PABD_CAN_PAIR_MATERIALS |
                              PABD_CAN_REPORT_CONTACTS | PABD_CAN_DETERMINISM | PABD_CAN_WORLDS;

btVector3 vector(pabd_dvec3 v) {
  return btVector3((btScalar)v.x, (btScalar)v.y, (btScalar)v.z);
}
btTransform transform(pabd_dpose x) {
  return btTransform(btQuaternion((btScalar)x.q.x, (btScalar)x.q.y, (btScalar)x.q.z, (btScalar)x.q.w), vector(x.p));
}
bool is_identity(const pabd_dpose &x) {
  return x.p.x == 0 && x.p.y == 0 && x.p.z == 0 && x.q.x == 0 && x.q.y == 0 && x.q.z == 0;
}

/* Bullet has no distance joint; this is one more row for its solver, written through the interface that its own joints
 * use. |b - a| = rest, or kept between two bounds (then a bound that is not reached yet only limits the approach). */
class distance_joint : public btTypedConstraint {
 public:
  distance_joint(btRigidBody &a, btRigidBody &b, const btVector3 &pivot_a, const btVector3 &pivot_b,
                 const pabd_joint &joint)
      : btTypedConstraint(D6_CONSTRAINT_TYPE, a, b),
        pivot_a_(pivot_a),
        pivot_b_(pivot_b),
        rest_((btScalar)joint.rest),
        lower_((btScalar)joint.lower),
        upper_((btScalar)joint.upper),
        bounded_(joint.has_limits != 0) {}

  void getInfo1(btConstraintInfo1 *info) override {
    info->m_numConstraintRows = 1;
    info->nub = 5;
  }

  void getInfo2(btConstraintInfo2 *info) override {
    const btVector3 arm_a = m_rbA.getCenterOfMassTransform().getBasis() * pivot_a_;
    const btVector3 arm_b = m_rbB.getCenterOfMassTransform().getBasis() * pivot_b_;
    btVector3 n = m_rbB.getCenterOfMassPosition() + arm_b - m_rbA.getCenterOfMassPosition() - arm_a;
    const btScalar length = n.length();
    if (length > SIMD_EPSILON)
      n /= length;
    else
      n.setValue(0, 0, 1);
    const btVector3 turn_a = -arm_a.cross(n), turn_b = arm_b.cross(n);
    for (int k = 0; k < 3; ++k) {
      info->m_J1linearAxis[k] = -n[k];
      info->m_J1angularAxis[k] = turn_a[k];
      info->m_J2linearAxis[k] = n[k];
      info->m_J2angularAxis[k] = turn_b[k];
    }
    info->m_lowerLimit[0] = -SIMD_INFINITY;
    info->m_upperLimit[0] = SIMD_INFINITY;
    btScalar error = length - rest_, share = info->erp;
    if (bounded_) {
      const bool near_upper = upper_ - length < length - lower_;
      error = near_upper ? length - upper_ : length - lower_;
      if (near_upper) {
        info->m_upperLimit[0] = 0;
        if (error < 0) share = 1;
      } else {
        info->m_lowerLimit[0] = 0;
        if (error > 0) share = 1;
      }
    }
    info->m_constraintError[0] = -share * info->fps * error;
  }

  void setParam(int, btScalar, int) override {}
  btScalar getParam(int, int) const override { return 0; }

 private:
  btVector3 pivot_a_, pivot_b_;
  btScalar rest_, lower_, upper_;
  bool bounded_;
};

/* The world with a clock around its two big stages. */
class timed_world : public btDiscreteDynamicsWorld {
 public:
  using btDiscreteDynamicsWorld::btDiscreteDynamicsWorld;
  void performDiscreteCollisionDetection() override {
    const double start = pabd_now_ms();
    btDiscreteDynamicsWorld::performDiscreteCollisionDetection();
    collide_ms += pabd_now_ms() - start;
  }
  double collide_ms = 0, solve_ms = 0;

 protected:
  void solveConstraints(btContactSolverInfo &info) override {
    const double start = pabd_now_ms();
    btDiscreteDynamicsWorld::solveConstraints(info);
    solve_ms += pabd_now_ms() - start;
  }
};

struct engine_world;

/* What a collision object's user pointer leads to. */
struct object_tag {
  engine_world *world;
  int32_t body;        /* scene index, -1: the world's anchor */
  int32_t first_shape; /* scene index of the object's first (or only) shape, -1: none */
};

struct filter_callback : public btOverlapFilterCallback {
  const pabd_filter *filter = nullptr;
  bool needBroadphaseCollision(btBroadphaseProxy *a, btBroadphaseProxy *b) const override {
    const object_tag *x = (const object_tag *)((btCollisionObject *)a->m_clientObject)->getUserPointer();
    const object_tag *y = (const object_tag *)((btCollisionObject *)b->m_clientObject)->getUserPointer();
    return x->first_shape >= 0 && y->first_shape >= 0 && !pabd_filter_ignores(filter, x->body, y->body);
  }
};

/* A motor or a joint to a kinematic body: its reaction is asked for, so that the driver's work can be counted. */
struct driven_joint {
  int32_t joint;
  btTypedConstraint *constraint;
  btJointFeedback feedback;
  double rate; /* of the free coordinate before the substep */
};

struct engine_world {
  double value[SETTING_COUNT];
  pabd_scene scene = {};
  pabd_filter filter = {};
  filter_callback overlap;
  std::unique_ptr<btDefaultCollisionConfiguration> configuration;
  std::unique_ptr<btCollisionDispatcher> dispatcher;
  std::unique_ptr<btDbvtBroadphase> broadphase;
  std::unique_ptr<btMLCPSolverInterface> lcp;
  std::unique_ptr<btConstraintSolver> solver;
  btMLCPSolver *mlcp = nullptr;
  std::unique_ptr<timed_world> world;
  std::vector<std::unique_ptr<btCollisionShape>> shapes;
  std::vector<std::unique_ptr<object_tag>> tags;
  std::vector<std::unique_ptr<btRigidBody>> objects; /* all, the world's anchor first */
  std::vector<btRigidBody *> body;                   /* [body_count]: the object that moves; of a static body, any */
  std::vector<std::unique_ptr<btTypedConstraint>> joints;
  std::vector<std::unique_ptr<driven_joint>> driven;
  std::vector<double> force, pose, velocity; /* [body_count][6], [7], [6], substep scratch */
  bool has_springs = false, has_drivers = false;
  double time = 0, driver_work = 0;
  double collide_ms = 0, solve_ms = 0, other_ms = 0;

  ~engine_world() {
    if (world) {
      for (auto &joint : joints) world->removeConstraint(joint.get());
      for (auto &object : objects)
        if (object->getBroadphaseHandle()) world->removeRigidBody(object.get());
    }
    joints.clear();
    world.reset();
    objects.clear();
    pabd_filter_free(&filter);
    pabd_scene_free(&scene);
  }
};

/* Friction and restitution of a pair of shapes from the scene's table; used when the table holds more than one value.
 */
bool contact_added(btManifoldPoint &point, const btCollisionObjectWrapper *a, int, int index_a,
                   const btCollisionObjectWrapper *b, int, int index_b) {
  const object_tag *x = (const object_tag *)a->getCollisionObject()->getUserPointer();
  const object_tag *y = (const object_tag *)b->getCollisionObject()->getUserPointer();
  const bool compound_a = a->getCollisionObject()->getCollisionShape()->isCompound();
  const bool compound_b = b->getCollisionObject()->getCollisionShape()->isCompound();
  const pabd_scene &scene = x->world->scene;
  const int32_t i = scene.shapes[x->first_shape + (compound_a && index_a > 0 ? index_a : 0)].material;
  const int32_t j = scene.shapes[y->first_shape + (compound_b && index_b > 0 ? index_b : 0)].material;
  point.m_combinedFriction = (btScalar)scene.friction[i * scene.material_count + j];
  point.m_combinedRestitution = (btScalar)scene.restitution[i * scene.material_count + j];
  return true;
}

btCollisionShape *make_shape(engine_world &w, const pabd_shape &shape) {
  std::unique_ptr<btCollisionShape> made;
  switch (shape.kind) {
    case PABD_SPHERE:
      made.reset(new btSphereShape((btScalar)shape.radius));
      break;
    case PABD_CAPSULE:
      made.reset(new btCapsuleShapeZ((btScalar)shape.radius, (btScalar)(2 * shape.half_length)));
      break;
    case PABD_BOX: /* the margin lies inside: the outer size is the given one */
      made.reset(new btBoxShape(vector(shape.half)));
      break;
    case PABD_PLANE:
      made.reset(new btStaticPlaneShape(btVector3(0, 0, 1), 0));
      break;
    case PABD_CYLINDER: /* margin inside, too */
      made.reset(
          new btCylinderShapeZ(btVector3((btScalar)shape.radius, (btScalar)shape.radius, (btScalar)shape.half_length)));
      break;
    default: {
      btConvexHullShape *hull = new btConvexHullShape();
      made.reset(hull);
      for (int32_t k = 0; k < shape.vertex_count; ++k)
        hull->addPoint(vector(w.scene.vertices[shape.first_vertex + k]), false);
      hull->setMargin((btScalar)w.value[HULL_MARGIN]);
      hull->recalcLocalAabb();
      break;
    }
  }
  w.shapes.push_back(std::move(made));
  return w.shapes.back().get();
}

btRigidBody *add_object(engine_world &w, int32_t index, int32_t first_shape, btCollisionShape *shape,
                        const btTransform &at, bool uniform, double friction, double restitution) {
  const pabd_body *body = index >= 0 ? &w.scene.bodies[index] : nullptr;
  const bool dynamic = body && body->motion == PABD_DYNAMIC;
  btRigidBody::btRigidBodyConstructionInfo info(dynamic ? (btScalar)body->mass : 0, nullptr, shape,
                                                dynamic ? vector(body->inertia) : btVector3(0, 0, 0));
  info.m_startWorldTransform = at;
  info.m_linearDamping = info.m_angularDamping = 0;
  info.m_additionalDamping = false;
  info.m_rollingFriction = info.m_spinningFriction = 0;
  /* Bullet multiplies the two bodies' values. */
  info.m_friction = (btScalar)std::sqrt(friction);
  info.m_restitution = (btScalar)std::sqrt(restitution);
  std::unique_ptr<btRigidBody> object(new btRigidBody(info));
  w.tags.emplace_back(new object_tag{&w, index, first_shape});
  object->setUserPointer(w.tags.back().get());
  if (!uniform) object->setCollisionFlags(object->getCollisionFlags() | btCollisionObject::CF_CUSTOM_MATERIAL_CALLBACK);
  static const int gyroscopic[] = {0, BT_ENABLE_GYROSCOPIC_FORCE_EXPLICIT, BT_ENABLE_GYROSCOPIC_FORCE_IMPLICIT_WORLD,
                                   BT_ENABLE_GYROSCOPIC_FORCE_IMPLICIT_BODY};
  object->setFlags(gyroscopic[(int)w.value[GYROSCOPIC]]);
  object->setSleepingThresholds(0, 0);
  object->forceActivationState(DISABLE_DEACTIVATION);
  if (body && body->motion == PABD_KINEMATIC)
    object->setCollisionFlags((object->getCollisionFlags() & ~btCollisionObject::CF_STATIC_OBJECT) |
                              btCollisionObject::CF_KINEMATIC_OBJECT);
  if (body && body->motion != PABD_STATIC) {
    object->setLinearVelocity(vector(body->linear));
    object->setAngularVelocity(vector(body->angular));
  }
  w.objects.push_back(std::move(object));
  return w.objects.back().get();
}

void add_bodies(engine_world &w) {
  double friction, restitution;
  const bool uniform = pabd_scene_uniform_materials(&w.scene, &friction, &restitution) != 0;
  if (!uniform) {
    gContactAddedCallback = contact_added;
    friction = 0.5, restitution = 0; /* never used: the callback overwrites them */
  }
  std::unique_ptr<int32_t, decltype(&free)> ranges(pabd_scene_shape_ranges(&w.scene), &free);
  if (!ranges) throw std::bad_alloc();
  w.shapes.emplace_back(new btEmptyShape());
  btCollisionShape *empty = w.shapes.back().get();
  add_object(w, -1, -1, empty, btTransform::getIdentity(), true, 0, 0); /* the anchor of joints to the world */
  w.body.resize(w.scene.body_count);
  for (int32_t b = 0; b < w.scene.body_count; ++b) {
    const pabd_body &body = w.scene.bodies[b];
    const int32_t first = ranges.get()[b], count = ranges.get()[b + 1] - first;
    const btTransform at = transform(body.pose);
    if (count == 0) {
      w.body[b] = add_object(w, b, -1, empty, at, uniform, friction, restitution);
    } else if (body.motion == PABD_STATIC) {
      /* One object a shape: planes cannot be part of a compound. */
      for (int32_t s = first; s < first + count; ++s)
        w.body[b] = add_object(w, b, s, make_shape(w, w.scene.shapes[s]), at * transform(w.scene.shapes[s].local),
                               uniform, friction, restitution);
    } else if (count == 1 && is_identity(w.scene.shapes[first].local)) {
      w.body[b] = add_object(w, b, first, make_shape(w, w.scene.shapes[first]), at, uniform, friction, restitution);
    } else {
      btCompoundShape *compound = new btCompoundShape(true, count);
      w.shapes.emplace_back(compound);
      for (int32_t s = first; s < first + count; ++s)
        compound->addChildShape(transform(w.scene.shapes[s].local), make_shape(w, w.scene.shapes[s]));
      w.body[b] = add_object(w, b, first, compound, at, uniform, friction, restitution);
    }
  }
  for (size_t k = 1; k < w.objects.size(); ++k) w.world->addRigidBody(w.objects[k].get());
}

btTypedConstraint *make_joint(engine_world &w, const pabd_joint &joint) {
  btRigidBody &a = joint.body_a == PABD_WORLD ? *w.objects[0] : *w.body[joint.body_a];
  btRigidBody &b = *w.body[joint.body_b];
  const btTransform frame_a = transform(joint.frame_a), frame_b = transform(joint.frame_b);
  const btScalar most = joint.motor_max < (double)SIMD_INFINITY ? (btScalar)joint.motor_max : SIMD_INFINITY;
  switch (joint.kind) {
    case PABD_SPHERICAL:
      return new btPoint2PointConstraint(a, b, frame_a.getOrigin(), frame_b.getOrigin());
    case PABD_HINGE: {
      btHingeConstraint *hinge = new btHingeConstraint(a, b, frame_a, frame_b, true);
      /* Relaxation 0: the default 1 lets a limit bounce elastically. */
      if (joint.has_limits) hinge->setLimit((btScalar)joint.lower, (btScalar)joint.upper, 0.9f, 0.3f, 0.0f);
      if (joint.motor != PABD_MOTOR_NONE) hinge->enableAngularMotor(true, 0, 0);
      return hinge;
    }
    case PABD_FIXED:
      return new btFixedConstraint(a, b, frame_a, frame_b);
    case PABD_DISTANCE:
      return new distance_joint(a, b, frame_a.getOrigin(), frame_b.getOrigin(), joint);
    case PABD_SLIDER: {
      btGeneric6DofSpring2Constraint *slider = new btGeneric6DofSpring2Constraint(a, b, frame_a, frame_b);
      slider->setLinearLowerLimit(btVector3(0, 0, joint.has_limits ? (btScalar)joint.lower : 1));
      slider->setLinearUpperLimit(btVector3(0, 0, joint.has_limits ? (btScalar)joint.upper : -1));
      slider->setAngularLowerLimit(btVector3(0, 0, 0));
      slider->setAngularUpperLimit(btVector3(0, 0, 0));
      if (joint.motor != PABD_MOTOR_NONE) {
        slider->enableMotor(2, true);
        slider->setMaxMotorForce(2, most);
      }
      return slider;
    }
    default: { /* PABD_UNIVERSAL: Bullet keeps the z axis of its frame a normal to the x axis of its frame b */
      const btMatrix3x3 cycle(0, 0, 1, 1, 0, 0, 0, 1, 0); /* x' = y, y' = z, z' = x */
      btGeneric6DofSpring2Constraint *universal =
          new btGeneric6DofSpring2Constraint(a, b, frame_a * btTransform(cycle), frame_b * btTransform(cycle));
      universal->setLinearLowerLimit(btVector3(0, 0, 0));
      universal->setLinearUpperLimit(btVector3(0, 0, 0));
      universal->setAngularLowerLimit(btVector3(1, 0, 1));
      universal->setAngularUpperLimit(btVector3(-1, 0, -1));
      return universal;
    }
  }
}

void add_joints(engine_world &w) {
  for (int32_t j = 0; j < w.scene.joint_count; ++j) {
    const pabd_joint &joint = w.scene.joints[j];
    if (joint.kind == PABD_SPRING) continue; /* an explicit force */
    w.joints.emplace_back(make_joint(w, joint));
    btTypedConstraint *made = w.joints.back().get();
    w.world->addConstraint(made, false); /* who collides with whom is the filter's business */
    const bool to_kinematic = (joint.body_a != PABD_WORLD && w.scene.bodies[joint.body_a].motion == PABD_KINEMATIC) ||
                              w.scene.bodies[joint.body_b].motion == PABD_KINEMATIC;
    if (joint.motor == PABD_MOTOR_NONE && !to_kinematic) continue;
    w.driven.emplace_back(new driven_joint{j, made, {}, 0});
    made->setJointFeedback(&w.driven.back()->feedback);
  }
}

void add_world(engine_world &w) {
  btDefaultCollisionConstructionInfo construction;
  construction.m_defaultMaxPersistentManifoldPoolSize = (int)w.value[POOL];
  construction.m_defaultMaxCollisionAlgorithmPoolSize = (int)w.value[POOL];
  gContactBreakingThreshold = (btScalar)w.value[BREAKING_THRESHOLD]; /* read when a manifold is made */
  w.configuration.reset(new btDefaultCollisionConfiguration(construction));
  w.dispatcher.reset(new btCollisionDispatcher(w.configuration.get()));
  w.broadphase.reset(new btDbvtBroadphase());
  if (w.value[SOLVER] == 2) {
    w.lcp.reset(new btDantzigSolver());
    w.mlcp = new btMLCPSolver(w.lcp.get());
    w.solver.reset(w.mlcp);
  } else if (w.value[SOLVER] == 1) {
    w.solver.reset(new btNNCGConstraintSolver());
  } else {
    w.solver.reset(new btSequentialImpulseConstraintSolver());
  }
  w.world.reset(new timed_world(w.dispatcher.get(), w.broadphase.get(), w.solver.get(), w.configuration.get()));
  w.overlap.filter = &w.filter;
  w.world->getPairCache()->setOverlapFilterCallback(&w.overlap);
  w.world->setGravity(vector(w.scene.gravity));
  btContactSolverInfo &info = w.world->getSolverInfo();
  info.m_numIterations = (int)w.value[ITERATIONS];
  info.m_erp = (btScalar)w.value[ERP];
  info.m_erp2 = (btScalar)w.value[CONTACT_ERP];
  info.m_globalCfm = (btScalar)w.value[CFM];
  info.m_warmstartingFactor = (btScalar)w.value[WARM_START];
  info.m_splitImpulse = (int)w.value[SPLIT_IMPULSE];
  info.m_splitImpulsePenetrationThreshold = (btScalar)w.value[SPLIT_THRESHOLD];
  info.m_linearSlop = (btScalar)w.value[SLOP];
  info.m_sor = (btScalar)w.value[SOR];
  info.m_restitutionVelocityThreshold = (btScalar)w.value[RESTITUTION_THRESHOLD];
  info.m_leastSquaresResidualThreshold = (btScalar)w.value[RESIDUAL];
  info.m_solverMode = (w.value[WARM_START] > 0 ? SOLVER_USE_WARMSTARTING : 0) | (w.value[SIMD] > 0 ? SOLVER_SIMD : 0) |
                      (w.value[FRICTION_DIRECTIONS] > 1 ? SOLVER_USE_2_FRICTION_DIRECTIONS : 0) |
                      (w.value[RANDOM_ORDER] > 0 ? SOLVER_RANDMIZE_ORDER : 0);
}

void read_state(const engine_world &w, double *pose, double *velocity) {
  for (int32_t b = 0; b < w.scene.body_count; ++b) {
    const pabd_body &body = w.scene.bodies[b];
    double *p = pose + (size_t)b * 7, *v = velocity + (size_t)b * 6;
    if (body.motion == PABD_DYNAMIC) {
      const btTransform &at = w.body[b]->getWorldTransform();
      const btQuaternion q = at.getRotation().normalized();
      const btVector3 &linear = w.body[b]->getLinearVelocity(), &angular = w.body[b]->getAngularVelocity();
      for (int k = 0; k < 3; ++k) p[k] = at.getOrigin()[k], v[k] = linear[k], v[3 + k] = angular[k];
      p[3] = q.w(), p[4] = q.x(), p[5] = q.y(), p[6] = q.z();
      continue;
    }
    const bool moves = body.motion == PABD_KINEMATIC;
    const pabd_dpose at = moves ? pabd_body_kinematic_pose(&body, w.time) : body.pose;
    const pabd_dvec3 none = {0, 0, 0}, linear = moves ? body.linear : none, angular = moves ? body.angular : none;
    const double row[] = {at.p.x, at.p.y, at.p.z, at.q.w, at.q.x, at.q.y, at.q.z};
    const double rates[] = {linear.x, linear.y, linear.z, angular.x, angular.y, angular.z};
    memcpy(p, row, sizeof row);
    memcpy(v, rates, sizeof rates);
  }
}

void set_motors(engine_world &w, double h) {
  for (auto &driven : w.driven) {
    const pabd_joint &joint = w.scene.joints[driven->joint];
    if (joint.motor == PABD_MOTOR_NONE) continue;
    const double at = pabd_joint_coordinate(&w.scene, &joint, w.pose.data(), w.velocity.data(), &driven->rate);
    double speed = joint.motor_target;
    if (joint.motor == PABD_MOTOR_POSITION) {
      double way = pabd_joint_motor_target(&joint, w.time + h) - at;
      if (joint.kind == PABD_HINGE) way = std::remainder(way, 2 * M_PI);
      speed = way / h;
    }
    if (joint.kind == PABD_HINGE) {
      const double impulse = joint.motor_max * h;
      static_cast<btHingeConstraint *>(driven->constraint)
          ->enableAngularMotor(true, (btScalar)speed,
                               impulse < (double)SIMD_INFINITY ? (btScalar)impulse : SIMD_INFINITY);
    } else { /* a linear motor's rate is that of a against b */
      static_cast<btGeneric6DofSpring2Constraint *>(driven->constraint)->setTargetVelocity(2, (btScalar)-speed);
    }
  }
}

double dot6(const btVector3 &f, const btVector3 &t, const pabd_body &body) {
  return f.x() * body.linear.x + f.y() * body.linear.y + f.z() * body.linear.z + t.x() * body.angular.x +
         t.y() * body.angular.y + t.z() * body.angular.z;
}

/* Work of motors and kinematic bodies in the substep that just ended, from the impulses that Bullet applied. */
void count_work(engine_world &w, double h) {
  read_state(w, w.pose.data(), w.velocity.data());
  for (auto &driven : w.driven) {
    const pabd_joint &joint = w.scene.joints[driven->joint];
    const btJointFeedback &f = driven->feedback;
    if (joint.motor != PABD_MOTOR_NONE) {
      /* The mean of the rates before and after gives the change of kinetic energy exactly. */
      double rate;
      pabd_joint_coordinate(&w.scene, &joint, w.pose.data(), w.velocity.data(), &rate);
      const btTransform frame =
          (joint.body_a == PABD_WORLD ? btTransform::getIdentity() : w.body[joint.body_a]->getWorldTransform()) *
          transform(joint.frame_a);
      const btVector3 axis = frame.getBasis().getColumn(2);
      const double drive = axis.dot(joint.kind == PABD_HINGE ? f.m_appliedTorqueBodyB : f.m_appliedForceBodyB);
      w.driver_work += h * drive * (rate + driven->rate) / 2;
    }
    if (joint.body_a != PABD_WORLD && w.scene.bodies[joint.body_a].motion == PABD_KINEMATIC)
      w.driver_work -= h * dot6(f.m_appliedForceBodyA, f.m_appliedTorqueBodyA, w.scene.bodies[joint.body_a]);
    if (w.scene.bodies[joint.body_b].motion == PABD_KINEMATIC)
      w.driver_work -= h * dot6(f.m_appliedForceBodyB, f.m_appliedTorqueBodyB, w.scene.bodies[joint.body_b]);
  }
  for (int m = 0; m < w.dispatcher->getNumManifolds(); ++m) {
    const btPersistentManifold *manifold = w.dispatcher->getManifoldByIndexInternal(m);
    for (int side = 0; side < 2; ++side) {
      const btCollisionObject *object = side ? manifold->getBody1() : manifold->getBody0();
      const int32_t index = ((const object_tag *)object->getUserPointer())->body;
      if (w.scene.bodies[index].motion != PABD_KINEMATIC) continue;
      for (int k = 0; k < manifold->getNumContacts(); ++k) {
        const btManifoldPoint &point = manifold->getContactPoint(k);
        btVector3 impulse = point.m_normalWorldOnB * point.m_appliedImpulse +
                            point.m_lateralFrictionDir1 * point.m_appliedImpulseLateral1;
        if (w.value[FRICTION_DIRECTIONS] > 1) impulse += point.m_lateralFrictionDir2 * point.m_appliedImpulseLateral2;
        if (side) impulse = -impulse; /* now on the kinematic body */
        const btVector3 arm =
            (side ? point.m_positionWorldOnB : point.m_positionWorldOnA) - object->getWorldTransform().getOrigin();
        w.driver_work -= dot6(impulse, arm.cross(impulse), w.scene.bodies[index]);
      }
    }
  }
}

pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  static char version[48];
  (void)error;
  snprintf(version, sizeof version, "3.2.7 (library reports %d.%02d)", btGetVersion() / 100, btGetVersion() % 100);
  *info = {"bullet-native",   version,     sizeof(btScalar) == 4 ? "float" : "double", "cpu", "zlib",
           PABD_BULLET_BUILD, capabilities};
  return PABD_OK;
}

const pabd_setting_info *settings(int32_t *count) {
  *count = SETTING_COUNT;
  return settings_table;
}

pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                   pabd_error *error) {
  *world = nullptr;
  try {
    std::unique_ptr<engine_world> w(new engine_world);
    PABD_TRY(pabd_settings_parse("bullet-native", settings_table, SETTING_COUNT, given, given_count, w->value, error));
    PABD_TRY(pabd_scene_supported("bullet-native", scene, capabilities, error));
    PABD_TRY(pabd_scene_springs_stable("bullet-native", scene, scene->frame_time / w->value[SUBSTEPS], error));
    PABD_TRY(pabd_scene_copy(scene, &w->scene));
    PABD_TRY(pabd_filter_init(&w->filter, scene));
    w->has_springs = pabd_scene_has_springs(scene) != 0;
    w->has_drivers = pabd_scene_has_drivers(scene) != 0;
    w->force.resize((size_t)scene->body_count * 6);
    w->pose.resize((size_t)scene->body_count * 7);
    w->velocity.resize((size_t)scene->body_count * 6);
    add_world(*w);
    add_bodies(*w);
    add_joints(*w);
    *world = w.release();
    return PABD_OK;
  } catch (const std::bad_alloc &) {
    return pabd_fail(error, PABD_ERR_MEMORY, "bullet-native: out of memory for %d bodies", scene->body_count);
  }
}

pabd_status step(void *world, pabd_error *error) {
  engine_world &w = *(engine_world *)world;
  const double start = pabd_now_ms(), h = w.scene.frame_time / w.value[SUBSTEPS], frame_start = w.time;
  w.world->collide_ms = w.world->solve_ms = 0;
  for (int s = 0; s < (int)w.value[SUBSTEPS]; ++s) {
    w.time = frame_start + s * h;
    if (w.has_springs || w.has_drivers) read_state(w, w.pose.data(), w.velocity.data());
    int acts = pabd_scene_loads(&w.scene, w.time, w.time + h, w.force.data());
    if (w.has_springs) {
      if (!acts) std::fill(w.force.begin(), w.force.end(), 0.0);
      pabd_scene_spring_forces(&w.scene, w.pose.data(), w.velocity.data(), w.force.data());
      acts = 1;
    }
    for (int32_t b = 0; acts && b < w.scene.body_count; ++b) {
      const double *f = &w.force[(size_t)b * 6];
      if (w.scene.bodies[b].motion != PABD_DYNAMIC) continue;
      w.body[b]->applyCentralForce(btVector3((btScalar)f[0], (btScalar)f[1], (btScalar)f[2]));
      w.body[b]->applyTorque(btVector3((btScalar)f[3], (btScalar)f[4], (btScalar)f[5]));
    }
    if (w.has_drivers) {
      set_motors(w, h);
      /* A kinematic body is put where it will be; Bullet takes its velocity from the way it has come. */
      for (int32_t b = 0; b < w.scene.body_count; ++b)
        if (w.scene.bodies[b].motion == PABD_KINEMATIC)
          w.body[b]->setWorldTransform(transform(pabd_body_kinematic_pose(&w.scene.bodies[b], w.time + h)));
    }
    w.world->stepSimulation((btScalar)h, 0);
    w.time = frame_start + (s + 1) * h;
    if (w.has_drivers) count_work(w, h);
  }
  w.collide_ms = w.world->collide_ms;
  w.solve_ms = w.world->solve_ms;
  w.other_ms = pabd_now_ms() - start - w.collide_ms - w.solve_ms;
  for (btRigidBody *body : w.body) {
    /* Bullet takes a body whose bounding box has grown beyond all bounds out of the simulation, without a word. */
    const btVector3 &p = body->getWorldTransform().getOrigin();
    if (body->getActivationState() == DISABLE_SIMULATION || !std::isfinite(p.x() + p.y() + p.z()))
      return pabd_fail(error, PABD_DIVERGED, "bullet-native: body %d has no finite position at %.4g s",
                       ((const object_tag *)body->getUserPointer())->body, w.time);
  }
  return PABD_OK;
}

void read(void *world, double *pose, double *velocity) {
  read_state(*(engine_world *)world, pose, velocity);
}

void stats(void *world, pabd_engine_stats *out) {
  const engine_world &w = *(engine_world *)world;
  memset(out, 0, sizeof *out);
  int contacts = 0, manifolds = 0;
  for (int m = 0; m < w.dispatcher->getNumManifolds(); ++m) {
    const int points = w.dispatcher->getManifoldByIndexInternal(m)->getNumContacts();
    contacts += points;
    manifolds += points > 0;
  }
  pabd_stats_stage(out, "collide", 1, w.collide_ms);
  pabd_stats_stage(out, "solve", 0, w.solve_ms);
  pabd_stats_stage(out, "predict_integrate", 0, w.other_ms);
  pabd_stats_counter(out, "contacts", "1", contacts);
  pabd_stats_counter(out, "manifolds", "1", manifolds);
  if (w.has_drivers) pabd_stats_counter(out, "driver_work", "J", w.driver_work);
  if (w.mlcp) pabd_stats_counter(out, "mlcp_fallbacks", "1", w.mlcp->getNumFallbacks());
}

void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((engine_world *)world)->value[index], buffer, size);
}

int32_t contacts(void *world, pabd_contact *out, int32_t capacity) {
  const engine_world &w = *(engine_world *)world;
  const double rate = w.value[SUBSTEPS] / w.scene.frame_time; /* impulse to force */
  int32_t count = 0;
  for (int m = 0; m < w.dispatcher->getNumManifolds(); ++m) {
    const btPersistentManifold *manifold = w.dispatcher->getManifoldByIndexInternal(m);
    for (int k = 0; k < manifold->getNumContacts(); ++k, ++count) {
      if (count >= capacity) continue;
      const btManifoldPoint &point = manifold->getContactPoint(k);
      pabd_contact &c = out[count];
      c.body_a = ((const object_tag *)manifold->getBody0()->getUserPointer())->body;
      c.body_b = ((const object_tag *)manifold->getBody1()->getUserPointer())->body;
      c.feature = 0; /* Bullet matches points by distance */
      const btVector3 middle = (point.m_positionWorldOnA + point.m_positionWorldOnB) / 2, &n = point.m_normalWorldOnB;
      btVector3 impulse = n * point.m_appliedImpulse + point.m_lateralFrictionDir1 * point.m_appliedImpulseLateral1;
      if (w.value[FRICTION_DIRECTIONS] > 1) impulse += point.m_lateralFrictionDir2 * point.m_appliedImpulseLateral2;
      c.point = {middle.x(), middle.y(), middle.z()};
      c.normal = {n.x(), n.y(), n.z()};
      c.gap = point.getDistance();
      c.friction = point.m_combinedFriction;
      c.restitution = point.m_combinedRestitution;
      c.force = {impulse.x() * rate, impulse.y() * rate, impulse.z() * rate};
    }
  }
  return count;
}

void destroy(void *world) {
  delete (engine_world *)world;
}

const pabd_engine table = {PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings, create,  step,   read,
                           stats,           setting_value,       contacts, nullptr,  nullptr, destroy};

}  // namespace

extern "C" PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
extern "C" PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
