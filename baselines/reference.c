/* The reference engine: every step's nonlinear problem solved to rounding, in double.
 *
 * It tells the error of a method from the error of the time step: what remains here is the step's. Exact joints with
 * multipliers, contacts by complementarity of the gap, Coulomb's cone; semismooth Newton with a sparse factorization
 * (reference/newton.c). Time steps: `euler` (implicit Euler in positions; a free body turns by the midpoint rule with
 * its angular momentum kept) and `midpoint` (second order; joints only). A step that does not converge is a failure
 * with a message, never a silent result. Meant for scenes of up to a few hundred bodies. Shares no code with the solver
 * that it judges. Invariant: poses and velocities that are read come from a converged step. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/baseline.h"
#include "common/collide.h"
#include "reference/maths.h"
#include "reference/newton.h"

enum {
  SUBSTEPS,
  INTEGRATOR,
  INERTIA,
  TOLERANCE,
  ACCEPT,
  ITERATIONS,
  REGULARIZATION,
  RECOVERY,
  PUSHOUT_SPEED,
  MARGIN,
  MARGIN_MAX,
  BODIES_MAX,
  SETTING_COUNT
};

static const pabd_setting_info settings_table[SETTING_COUNT] = {
    {"substeps", "int", "1", "1 .. 100000", "1", "steps a frame, each solved to the tolerance", "one step a frame"},
    {"integrator", "choice", "euler", "euler | midpoint", "1",
     "implicit Euler, or the implicit midpoint rule (second order; scenes without contacts only)", "ours"},
    {"inertia", "choice", "rotation", "rotation | affine", "1",
     "Euler's rotational inertia: I times the rotation vector, or the gradient of affine body dynamics' mass metric",
     "ours; affine: to compare with a converged affine method"},
    {"tolerance", "real", "1e-10", "1e-15 .. 1", "1",
     "largest residual, relative to what the applied forces move a body in a step; never below rounding", "ours"},
    {"accept", "real", "1e-6", "0 .. 1", "1",
     "a step that stalls above the tolerance is kept up to this relative residual, or up to the tolerance relative to "
     "its largest force, and counted (steps_loose); above both the run ends",
     "ours"},
    {"iterations", "int", "60", "1 .. 100000", "1",
     "Newton iterations of one attempt; up to some twenty attempts a step", "ours"},
    {"regularization", "real", "1e-9", "0 .. 1", "1",
     "damping of the multipliers' Newton step, relative to the diagonal of J M^-1 J^T; the solution does not depend on "
     "it where the forces are determined",
     "ours"},
    {"recovery", "real", "0.2", "0 .. 1", "1",
     "part of a contact's overlap at the start of a step that the step removes; joints always remove all", "ours"},
    {"pushout_speed", "real", "inf", "0 .. inf", "m/s", "fastest removal of contact overlap", "ours"},
    {"margin", "real", "0.005", "0 .. 1", "m",
     "contacts are found up to this gap plus what both bodies can go in a step", "as the suite's own solver"},
    {"margin_max", "real", "0.2", "0 .. 10", "m", "largest such reach of a body", "as the suite's own solver"},
    {"bodies_max", "int", "1000", "1 .. 1000000", "1",
     "scenes with more dynamic bodies are refused: a direct "
     "factorization of all contacts takes too long there",
     "ours"},
};

static const uint64_t capabilities = PABD_COLLIDE_CAN | PABD_CAN_SPHERICAL | PABD_CAN_HINGE | PABD_CAN_SLIDER |
                                     PABD_CAN_FIXED | PABD_CAN_DISTANCE | PABD_CAN_SPRING | PABD_CAN_UNIVERSAL |
                                     PABD_CAN_LIMITS | PABD_CAN_MOTORS | PABD_CAN_KINEMATIC | PABD_CAN_LOADS |
                                     PABD_CAN_FRICTION_CONE | PABD_CAN_PAIR_MATERIALS | PABD_CAN_REPORT_CONTACTS |
                                     PABD_CAN_SET_CONTACTS | PABD_CAN_DETERMINISM | PABD_CAN_TRACE | PABD_CAN_WORLDS;

typedef struct reference_world {
  double value[SETTING_COUNT];
  pabd_scene scene;
  reference_problem problem;
  pabd_collider *collider;
  double *size;              /* [body_count]: farthest point of a body from its center, m */
  double *reach;             /* [body_count]: how far it can go in a step, m */
  double *pose, *velocity;   /* [body_count][7], [6] */
  double *force;             /* [body_count][6] */
  reference_contact *before; /* contacts of the step before, in the order of its points */
  int32_t before_count, before_capacity;
  int frozen, taken; /* contacts are given; they are in `problem` */
  int32_t found;     /* contact points of `problem` are those of the collider */
  double time, collide_ms, solve_ms;
  double worst_residual, driver_work;
  int iterations, fallbacks; /* in the last frame */
  int32_t loose;             /* steps so far that were kept above the tolerance */
  int32_t frame, substep;
  pabd_trace_fn trace;
  void *trace_user;
  double *trace_pose, *trace_momentum;
} reference_world;

/* ---- Making a world ---- */

static void destroy(void *world) {
  reference_world *w = world;
  if (w == NULL) return;
  reference_release(&w->problem);
  pabd_collider_destroy(w->collider);
  free(w->size);
  free(w->reach);
  free(w->pose);
  free(w->velocity);
  free(w->force);
  free(w->before);
  free(w->trace_pose);
  free(w->trace_momentum);
  pabd_scene_free(&w->scene);
  free(w);
}

static void vector(pabd_dvec3 from, double *to) {
  set3(to, from.x, from.y, from.z);
}

static void pose(pabd_dpose from, reference_pose *to) {
  vector(from.p, to->p);
  to->q[0] = from.q.w, to->q[1] = from.q.x, to->q[2] = from.q.y, to->q[3] = from.q.z;
}

/* Farthest point of a shape from its body's center. */
static double shape_size(const pabd_shape *shape) {
  const double local[3] = {shape->local.p.x, shape->local.p.y, shape->local.p.z},
               half[3] = {shape->half.x, shape->half.y, shape->half.z};
  const double own = shape->kind == PABD_BOX       ? norm(half)
                     : shape->kind == PABD_PLANE   ? 0
                     : shape->kind == PABD_CAPSULE ? shape->radius + shape->half_length
                                                   : shape->radius;
  return norm(local) + own;
}

static int can_collide(const pabd_scene *scene) {
  for (int32_t a = 0; a < scene->shape_count; ++a)
    for (int32_t b = a + 1; b < scene->shape_count; ++b)
      if (!pabd_scene_ignores(scene, scene->shapes[a].body, scene->shapes[b].body)) return 1;
  return 0;
}

static pabd_status check_scene(const pabd_scene *scene, const double *value, pabd_error *error) {
  PABD_TRY(pabd_scene_supported("reference", scene, capabilities, error));
  int32_t moving = 0;
  for (int32_t b = 0; b < scene->body_count; ++b) moving += scene->bodies[b].motion == PABD_DYNAMIC;
  if (moving > value[BODIES_MAX])
    return pabd_fail(
        error, PABD_ERR_UNSUPPORTED,
        "reference: %d dynamic bodies; it takes at most bodies_max = %.0f, because it factors the whole step", moving,
        value[BODIES_MAX]);
  if (value[INTEGRATOR] > 0 && can_collide(scene))
    return pabd_fail(error, PABD_ERR_UNSUPPORTED,
                     "reference: integrator = midpoint is for scenes without contacts, and here bodies can collide");
  return PABD_OK;
}

static pabd_status build(reference_world *w, const pabd_scene *scene, pabd_error *error) {
  const size_t bodies = (size_t)scene->body_count + 1;
  reference_problem *s = &w->problem;
  PABD_TRY(pabd_scene_copy(scene, &w->scene));
  PABD_TRY(pabd_collider_create(&w->collider, scene, error));
  w->size = calloc(bodies, sizeof *w->size);
  w->reach = calloc(bodies, sizeof *w->reach);
  w->pose = calloc(bodies * 7, sizeof *w->pose);
  w->velocity = calloc(bodies * 6, sizeof *w->velocity);
  w->force = calloc(bodies * 6, sizeof *w->force);
  s->body = calloc(bodies, sizeof *s->body);
  if (!w->size || !w->reach || !w->pose || !w->velocity || !w->force || !s->body) return PABD_ERR_MEMORY;
  for (int32_t k = 0; k < scene->shape_count; ++k) {
    double *size = &w->size[scene->shapes[k].body];
    *size = fmax(*size, shape_size(&scene->shapes[k]));
  }
  s->h = scene->frame_time / w->value[SUBSTEPS];
  s->midpoint = w->value[INTEGRATOR] > 0;
  s->affine = w->value[INERTIA] > 0;
  s->options =
      (reference_options){w->value[TOLERANCE], w->value[ACCEPT], w->value[REGULARIZATION], (int)w->value[ITERATIONS]};
  s->body_count = scene->body_count;
  for (int32_t b = 0; b < scene->body_count; ++b) {
    const pabd_body *from = &w->scene.bodies[b];
    reference_body *body = &s->body[b];
    pose(from->pose, &body->start);
    quat_normalize(body->start.q);
    body->free = body->now = body->start;
    body->slot = from->motion == PABD_DYNAMIC ? s->free_count++ : -1;
    if (from->motion != PABD_STATIC) vector(from->linear, body->velocity);
    if (from->motion != PABD_DYNAMIC) continue;
    double rate[3];
    body->mass = from->mass;
    vector(from->inertia, body->inertia);
    vector(from->angular, rate);
    quat_scale(body->start.q, body->inertia, rate, body->momentum);
    body->radius = sqrt((from->inertia.x + from->inertia.y + from->inertia.z) / (3 * from->mass));
  }
  s->joint_count = scene->joint_count;
  s->joint = w->scene.joints;
  return reference_prepare(s);
}

static pabd_status create(const pabd_scene *scene, const pabd_setting *given, int32_t given_count, void **world,
                          pabd_error *error) {
  double value[SETTING_COUNT];
  *world = NULL;
  PABD_TRY(pabd_settings_parse("reference", settings_table, SETTING_COUNT, given, given_count, value, error));
  PABD_TRY(check_scene(scene, value, error));
  reference_world *w = calloc(1, sizeof *w);
  if (w == NULL) return PABD_ERR_MEMORY;
  memcpy(w->value, value, sizeof value);
  const pabd_status status = build(w, scene, error);
  if (status != PABD_OK) {
    destroy(w);
    return status;
  }
  *world = w;
  return PABD_OK;
}

/* ---- State ---- */

static void read_state(void *world, double *poses, double *velocities) {
  reference_world *w = world;
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const pabd_body *from = &w->scene.bodies[b];
    const reference_body *body = &w->problem.body[b];
    double *p = poses + (size_t)b * 7, *v = velocities + (size_t)b * 6;
    memcpy(p, body->start.p, 3 * sizeof *p);
    memcpy(p + 3, body->start.q, 4 * sizeof *p);
    memcpy(v, body->velocity, 3 * sizeof *v);
    if (body->slot >= 0) {
      const double inverse[3] = {1 / body->inertia[0], 1 / body->inertia[1], 1 / body->inertia[2]};
      quat_scale(body->start.q, inverse, body->momentum, v + 3);
    } else {
      set3(v + 3, 0, 0, 0);
      if (from->motion == PABD_KINEMATIC) vector(from->angular, v + 3);
    }
  }
}

/* ---- Contacts ---- */

static void basis(const double *n, double tangent[2][3]) {
  const double x[3] = {fabs(n[0]) < 0.6, fabs(n[0]) >= 0.6, 0};
  cross(n, x, tangent[0]);
  const double size = norm(tangent[0]);
  for (int k = 0; k < 3; ++k) tangent[0][k] /= size;
  cross(n, tangent[0], tangent[1]);
}

/* The body-fixed point of one side. Both sides take the same point in space, midway between the surfaces: then a motion
 * that both share is no slip and no gap, and the forces have one point of attack. Of a sphere or capsule that rolls it
 * is the point of its core, with an offset that stays with the contact. `side` +1: body a, against the normal from its
 * core. */
static void contact_point(const reference_world *w, const reference_body *body, const pabd_point *point, int32_t shape,
                          double side, double *core, double *offset) {
  double at[3], normal[3], way[3], radius = 0;
  vector(point->point, at);
  vector(point->normal, normal);
  if (point->round && shape >= 0) {
    const pabd_shape *s = &w->scene.shapes[shape];
    if (s->kind == PABD_SPHERE || s->kind == PABD_CAPSULE) radius = s->radius + point->gap / 2;
  }
  for (int k = 0; k < 3; ++k) offset[k] = -side * radius * normal[k];
  sub3(way, at, offset);
  sub3(way, way, body->start.p);
  quat_rotate_back(body->start.q, way, core);
}

/* The gap that a step starts from: of an overlap only the part that the step is to remove. */
static double recovered(const reference_world *w, double gap) {
  return gap < 0 ? fmax(w->value[RECOVERY] * gap, -w->value[PUSHOUT_SPEED] * w->problem.h) : gap;
}

static void take_point(reference_world *w, const pabd_point *point, reference_contact *c) {
  memset(c, 0, sizeof *c);
  c->a = point->body_a, c->b = point->body_b;
  vector(point->normal, c->normal);
  basis(c->normal, c->tangent);
  contact_point(w, &w->problem.body[c->a], point, point->shape_a, 1, c->core_a, c->offset_a);
  contact_point(w, &w->problem.body[c->b], point, point->shape_b, -1, c->core_b, c->offset_b);
  c->measured_gap = point->gap;
  c->gap = recovered(w, point->gap);
  c->friction = point->friction;
  if (point->previous >= 0 && point->previous < w->before_count) {
    const reference_contact *last = &w->before[point->previous];
    double force[3] = {0, 0, 0};
    for (int k = 0; k < 3; ++k) madd3(force, force, last->mu[k], k ? last->tangent[k - 1] : last->normal);
    c->mu[0] = fmax(0, dot(force, c->normal));
    for (int k = 0; k < 2; ++k) c->mu[1 + k] = dot(force, c->tangent[k]);
  }
}

static pabd_status find_contacts(reference_world *w, double h, pabd_error *error) {
  reference_problem *s = &w->problem;
  int32_t count;
  const double gravity[3] = {w->scene.gravity.x, w->scene.gravity.y, w->scene.gravity.z};
  if (w->scene.shape_count == 0 && !w->frozen) return PABD_OK;
  if (w->frozen && w->taken) return PABD_OK; /* given points go with the bodies, see follow_contacts */
  read_state(w, w->pose, w->velocity);
  for (int32_t b = 0; b < w->scene.body_count; ++b) {
    const double *v = w->velocity + (size_t)b * 6;
    const double fall = s->body[b].slot >= 0 ? h * norm(gravity) : 0;
    w->reach[b] = fmin(h * (norm(v) + fall + norm(v + 3) * fmin(w->size[b], 1e3)), w->value[MARGIN_MAX]);
  }
  /* Given points stay as they are, those of the collider follow the bodies. */
  if (!w->frozen) {
    PABD_TRY(pabd_collider_sweep(w->collider, w->pose, w->value[MARGIN], w->reach));
    PABD_TRY(pabd_collider_touch(w->collider, w->pose, w->value[MARGIN], w->reach));
  }
  const pabd_point *points = pabd_collider_points(w->collider, &count);
  /* Keep the forces of the step before for the start of Newton. */
  reference_contact *swap = w->before;
  const int32_t capacity = w->before_capacity;
  w->before = s->contact, w->before_count = s->contact_count, w->before_capacity = s->contact_capacity;
  s->contact = swap, s->contact_capacity = capacity;
  s->contact_count = 0;
  if (count > s->contact_capacity) {
    const int32_t larger = count + count / 2 + 16;
    free(s->contact);
    s->contact = malloc((size_t)larger * sizeof *s->contact);
    s->contact_capacity = s->contact ? larger : 0;
    if (s->contact == NULL) return pabd_fail(error, PABD_ERR_MEMORY, "reference: no memory for %d contacts", count);
  }
  for (int32_t k = 0; k < count; ++k) take_point(w, &points[k], &s->contact[k]);
  s->contact_count = count;
  w->taken = w->frozen;
  return PABD_OK;
}

/* Given contacts after a step: their gaps as the body-fixed points have moved. */
static void follow_contacts(reference_world *w) {
  for (int32_t k = 0; k < w->problem.contact_count; ++k) {
    reference_contact *c = &w->problem.contact[k];
    double motion[3];
    reference_contact_motion(&w->problem, c, motion);
    c->measured_gap += motion[0] - c->gap;
    c->gap = recovered(w, c->measured_gap);
  }
}

static int32_t contacts(void *world, pabd_contact *out, int32_t capacity) {
  reference_world *w = world;
  const reference_problem *s = &w->problem;
  int32_t count;
  pabd_error error = {""};
  /* Before the first step: what touches at the start. */
  if (w->frame == 0 && !w->frozen && find_contacts(w, s->h, &error) != PABD_OK) return 0;
  const pabd_point *points = pabd_collider_points(w->collider, &count);
  if (count != s->contact_count) return 0;
  for (int32_t k = 0; k < count && k < capacity; ++k) {
    const reference_contact *c = &s->contact[k];
    double force[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) madd3(force, force, c->mu[i] / (s->h * s->h), i ? c->tangent[i - 1] : c->normal);
    out[k] = (pabd_contact){points[k].body_a, points[k].body_b,      points[k].feature,
                            points[k].point,  points[k].normal,      points[k].gap,
                            c->friction,      points[k].restitution, {force[0], force[1], force[2]}};
  }
  return count;
}

static pabd_status set_contacts(void *world, const pabd_contact *given, int32_t count, pabd_error *error) {
  reference_world *w = world;
  w->problem.contact_count = w->before_count = 0;
  w->frozen = count >= 0, w->taken = 0;
  return pabd_collider_take(w->collider, given, count < 0 ? 0 : count, error);
}

/* ---- Stepping ---- */

/* Rate of a row at the state that bodies have. */
static double row_rate(const reference_world *w, const pabd_joint *joint, const double *gradient) {
  double rate = 0;
  for (int side = 0; side < 2; ++side) {
    const int32_t b = side ? joint->body_b : joint->body_a;
    if (b == PABD_WORLD) continue;
    const double *v = w->velocity + (size_t)b * 6;
    rate += dot(gradient + 6 * side, v) + dot(gradient + 6 * side + 3, v + 3);
  }
  return rate;
}

/* Before the first step: the rates that motors start from. */
static void start_motors(reference_world *w) {
  reference_problem *s = &w->problem;
  static const reference_pose world_pose = {{0, 0, 0}, {1, 0, 0, 0}};
  read_state(w, w->pose, w->velocity);
  for (int32_t j = 0; j < s->joint_count; ++j) {
    const pabd_joint *joint = &s->joint[j];
    reference_row rows[REFERENCE_ROWS];
    const int count =
        reference_joint_rows(joint, joint->body_a == PABD_WORLD ? &world_pose : &s->body[joint->body_a].start,
                             &s->body[joint->body_b].start, &s->moment[j], rows);
    for (int k = 0; k < count; ++k)
      if (rows[k].is_motor) s->moment[j].last_rate = row_rate(w, joint, rows[k].gradient);
  }
}

static void set_moments(reference_world *w, double start, double h) {
  reference_problem *s = &w->problem;
  for (int32_t j = 0; j < s->joint_count; ++j) {
    const pabd_joint *joint = &s->joint[j];
    reference_moment *m = &s->moment[j];
    if (joint->kind != PABD_HINGE && joint->kind != PABD_SLIDER) continue;
    static const reference_pose world_pose = {{0, 0, 0}, {1, 0, 0, 0}};
    m->last_coordinate =
        reference_joint_coordinate(joint, joint->body_a == PABD_WORLD ? &world_pose : &s->body[joint->body_a].start,
                                   &s->body[joint->body_b].start, m->last_coordinate);
    m->target_way = joint->motor == PABD_MOTOR_RATE ? h * joint->motor_target : 0;
    if (joint->motor == PABD_MOTOR_POSITION) m->target = pabd_joint_motor_target(joint, start + h);
  }
}

/* Work that a body of given motion does against the force and torque on it. */
static double given_work(const reference_world *w, int32_t b, const double *force, double h) {
  if (b == PABD_WORLD || w->scene.bodies[b].motion != PABD_KINEMATIC) return 0;
  double rate[3], linear[3];
  vector(w->scene.bodies[b].linear, linear);
  vector(w->scene.bodies[b].angular, rate);
  return -h * (dot(force, linear) + dot(force + 3, rate));
}

/* Motors by the mean of their rates before and after, which is the change of kinetic energy exactly. Poses and
 * velocities at the end of the step. */
static void count_work(reference_world *w, double h) {
  reference_problem *s = &w->problem;
  read_state(w, w->pose, w->velocity);
  static const reference_pose world_pose = {{0, 0, 0}, {1, 0, 0, 0}};
  for (int32_t j = 0; j < s->joint_count; ++j) {
    const pabd_joint *joint = &s->joint[j];
    reference_row rows[REFERENCE_ROWS];
    double force[12] = {0};
    const int count =
        reference_joint_rows(joint, joint->body_a == PABD_WORLD ? &world_pose : &s->body[joint->body_a].now,
                             &s->body[joint->body_b].now, &s->moment[j], rows);
    for (int k = 0; k < count; ++k) {
      const double f = s->row_mu[s->first_row[j] + k] / (h * h);
      for (int i = 0; i < 12; ++i) force[i] += f * rows[k].gradient[i];
      if (rows[k].is_motor) {
        const double rate = row_rate(w, joint, rows[k].gradient);
        w->driver_work += h * f * (rate + s->moment[j].last_rate) / 2;
        s->moment[j].last_rate = rate;
      }
    }
    w->driver_work += given_work(w, joint->body_a, force, h) + given_work(w, joint->body_b, force + 6, h);
  }
  for (int32_t k = 0; k < s->contact_count; ++k) {
    const reference_contact *c = &s->contact[k];
    for (int side = 0; side < 2; ++side) {
      const int32_t b = side ? c->b : c->a;
      if (w->scene.bodies[b].motion != PABD_KINEMATIC) continue;
      double force[6] = {0}, arm[3];
      for (int i = 0; i < 3; ++i)
        madd3(force, force, (side ? -1 : 1) * c->mu[i] / (h * h), i ? c->tangent[i - 1] : c->normal);
      quat_rotate(s->body[b].now.q, side ? c->core_b : c->core_a, arm);
      madd3(arm, arm, 1, side ? c->offset_b : c->offset_a);
      cross(arm, force, force + 3);
      w->driver_work += given_work(w, b, force, h);
    }
  }
}

static void watch(const reference_problem *s, int iteration, void *user) {
  reference_world *w = user;
  if (w->trace == NULL) return;
  double joint_error = 0, gap = INFINITY, lambda = 0;
  for (int32_t b = 0; b < s->body_count; ++b) {
    const reference_body *body = &s->body[b];
    memcpy(w->trace_pose + (size_t)b * 7, body->now.p, 3 * sizeof(double));
    memcpy(w->trace_pose + (size_t)b * 7 + 3, body->now.q, 4 * sizeof(double));
    for (int k = 0; k < 3; ++k)
      w->trace_momentum[(size_t)b * 3 + (size_t)k] =
          body->slot < 0 ? 0 : body->mass * (body->free_velocity[k] + (body->now.p[k] - body->free.p[k]) / s->h);
  }
  for (int32_t j = 0; j < s->joint_count; ++j) {
    static const reference_pose world_pose = {{0, 0, 0}, {1, 0, 0, 0}};
    reference_row rows[REFERENCE_ROWS];
    const pabd_joint *joint = &s->joint[j];
    const int count =
        reference_joint_rows(joint, joint->body_a == PABD_WORLD ? &world_pose : &s->body[joint->body_a].now,
                             &s->body[joint->body_b].now, &s->moment[j], rows);
    for (int k = 0; k < count; ++k) {
      if (rows[k].law == REFERENCE_EQUAL) joint_error = fmax(joint_error, fabs(rows[k].value));
      lambda = fmax(lambda, fabs(s->row_mu[s->first_row[j] + k]) / (s->h * s->h));
    }
  }
  for (int32_t k = 0; k < s->contact_count; ++k) {
    double motion[3];
    reference_contact_motion(s, &s->contact[k], motion);
    gap = fmin(gap, motion[0]);
    lambda = fmax(lambda, fabs(s->contact[k].mu[0]) / (s->h * s->h));
  }
  double heaviest = 0;
  for (int32_t b = 0; b < s->body_count; ++b)
    if (s->body[b].slot >= 0) heaviest = fmax(heaviest, s->body[b].mass);
  const pabd_trace line = {w->frame,
                           w->substep,
                           iteration,
                           "newton",
                           w->scene.body_count,
                           w->scene.joint_count,
                           w->trace_pose,
                           w->trace_momentum,
                           s->residual * heaviest / (s->h * s->h), /* a bound: the defect is a length here */
                           joint_error,
                           s->contact_count ? gap : NAN,
                           lambda,
                           NAN};
  w->trace(&line, w->trace_user);
}

static void set_trace(void *world, pabd_trace_fn trace, void *user) {
  reference_world *w = world;
  const size_t bodies = (size_t)w->scene.body_count + 1;
  if (w->trace_pose == NULL) w->trace_pose = calloc(bodies * 7, sizeof *w->trace_pose);
  if (w->trace_momentum == NULL) w->trace_momentum = calloc(bodies * 3, sizeof *w->trace_momentum);
  w->trace = w->trace_pose && w->trace_momentum ? trace : NULL;
  w->trace_user = user;
  w->problem.watch = w->trace ? watch : NULL;
  w->problem.watch_user = w;
}

static pabd_status substep(reference_world *w, double h, pabd_error *error) {
  reference_problem *s = &w->problem;
  const double start = w->time;
  const double clock = pabd_now_ms();
  PABD_TRY(find_contacts(w, h, error));
  w->collide_ms += pabd_now_ms() - clock;
  const int loaded = pabd_scene_loads(&w->scene, start, start + h, w->force);
  for (int32_t b = 0; b < s->body_count; ++b) {
    const pabd_body *from = &w->scene.bodies[b];
    reference_body *body = &s->body[b];
    if (from->motion == PABD_KINEMATIC) pose(pabd_body_kinematic_pose(from, start + h), &body->free);
    if (body->slot < 0) continue;
    const double gravity[3] = {w->scene.gravity.x, w->scene.gravity.y, w->scene.gravity.z};
    for (int k = 0; k < 3; ++k) {
      body->force[k] = body->mass * gravity[k] + (loaded ? w->force[(size_t)b * 6 + (size_t)k] : 0);
      body->torque[k] = loaded ? w->force[(size_t)b * 6 + 3 + (size_t)k] : 0;
    }
  }
  set_moments(w, start, h);
  if (w->frame == 0 && w->substep == 0) start_motors(w);
  reference_predict(s);
  const pabd_status status = reference_solve(s);
  w->iterations += s->iterations, w->fallbacks += s->fallbacks, w->loose += s->loose;
  w->worst_residual = fmax(w->worst_residual, s->residual / s->unit);
  if (status == PABD_ERR_MEMORY) return pabd_fail(error, status, "reference: out of memory at %.4g s", start);
  if (status != PABD_OK)
    return pabd_fail(error, status,
                     "reference: not converged at %.4g s: residual %.2g m, wanted %.2g m, after %d Newton iterations "
                     "and %d restarts (%d contacts)",
                     start, s->residual, reference_goal(s), s->iterations, s->fallbacks, s->contact_count);
  reference_finish(s);
  if (w->frozen) follow_contacts(w);
  for (int32_t b = 0; b < s->body_count; ++b) s->body[b].start = s->body[b].now;
  if (pabd_scene_has_drivers(&w->scene)) count_work(w, h);
  return PABD_OK;
}

static pabd_status step(void *world, pabd_error *error) {
  reference_world *w = world;
  const int substeps = (int)w->value[SUBSTEPS];
  const double h = w->scene.frame_time / substeps, start = w->time;
  w->collide_ms = w->solve_ms = w->worst_residual = 0;
  w->iterations = w->fallbacks = 0;
  for (int k = 0; k < substeps; ++k) {
    const double clock = pabd_now_ms(), collided = w->collide_ms;
    w->time = start + k * h;
    w->substep = k;
    PABD_TRY(substep(w, h, error));
    w->time = start + (k + 1) * h;
    w->solve_ms += pabd_now_ms() - clock - (w->collide_ms - collided);
  }
  ++w->frame;
  read_state(w, w->pose, w->velocity);
  if (!pabd_state_finite(w->pose, w->velocity, w->scene.body_count))
    return pabd_fail(error, PABD_DIVERGED, "reference: a body has no finite state at %.4g s", w->time);
  return PABD_OK;
}

/* ---- The table ---- */

static pabd_status probe(pabd_engine_info *info, pabd_error *error) {
  (void)error;
  *info = (pabd_engine_info){.name = "reference",
                             .version = "1.0.0",
                             .precision = "double",
                             .device = "cpu",
                             .license = "MIT; links UMFPACK (GPL-2.0-or-later)",
                             .build = "source; UMFPACK prebuilt: the distribution's libsuitesparse-dev",
                             .capabilities = capabilities};
  return PABD_OK;
}

static const pabd_setting_info *settings(int32_t *count) {
  *count = SETTING_COUNT;
  return settings_table;
}

static void stats(void *world, pabd_engine_stats *out) {
  const reference_world *w = world;
  const reference_problem *s = &w->problem;
  memset(out, 0, sizeof *out);
  pabd_stats_stage(out, "collide", 1, w->collide_ms);
  pabd_stats_stage(out, "newton", 0, w->solve_ms);
  pabd_stats_counter(out, "contacts", "1", s->contact_count);
  pabd_stats_counter(out, "newton_iterations", "1", w->iterations);
  pabd_stats_counter(out, "newton_restarts", "1", w->fallbacks);
  pabd_stats_counter(out, "steps_loose", "1", w->loose);
  pabd_stats_counter(out, "residual_relative", "1", w->worst_residual);
  pabd_stats_counter(out, "natural_map", "1", s->natural_map);
  pabd_stats_counter(out, "rounding_floor", "m", s->floor);
  pabd_stats_counter(out, "factor_entries", "1", s->pivot_fill);
  if (pabd_scene_has_drivers(&w->scene)) pabd_stats_counter(out, "driver_work", "J", w->driver_work);
}

static void setting_value(void *world, int32_t index, char *buffer, int32_t size) {
  pabd_setting_print(&settings_table[index], ((reference_world *)world)->value[index], buffer, size);
}

/* Force (N) and torque about its center (N m) of joint `joint` on its body b in the last substep, world frame. Beside
 * the engine table, for tests: the table has no joint forces. */
PABD_ENGINE_EXPORT void pabd_reference_joint_force(void *world, int32_t joint, double *force);
void pabd_reference_joint_force(void *world, int32_t joint, double *force) {
  const reference_world *w = world;
  const reference_problem *s = &w->problem;
  static const reference_pose world_pose = {{0, 0, 0}, {1, 0, 0, 0}};
  const pabd_joint *j = &s->joint[joint];
  reference_row rows[REFERENCE_ROWS];
  memset(force, 0, 6 * sizeof *force);
  const int count = reference_joint_rows(j, j->body_a == PABD_WORLD ? &world_pose : &s->body[j->body_a].now,
                                         &s->body[j->body_b].now, &s->moment[joint], rows);
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < 6; ++i)
      force[i] += rows[k].gradient[6 + i] * s->row_mu[s->first_row[joint] + k] / (s->h * s->h);
}

static const pabd_engine table = {
    PABD_ENGINE_ABI, sizeof(pabd_engine), probe,    settings,     create,    step,   read_state,
    stats,           setting_value,       contacts, set_contacts, set_trace, destroy};

PABD_ENGINE_EXPORT const pabd_engine *pabd_engine_entry(void);
const pabd_engine *pabd_engine_entry(void) {
  return &table;
}
