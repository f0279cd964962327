/* Bodies and their bookkeeping for the engines written here; described in rigid.h. Invariant: bodies that are not
 * dynamic have inverse mass and inertia 0 and are moved by their own law alone. */
#include "common/rigid.h"

#include <stdlib.h>
#include <string.h>

#include "common/vector.h"

void pabd_rigid_free(pabd_rigid *r) {
  pabd_collider_destroy(r->collider);
  pabd_scene_free(&r->scene);
  free(r->p), free(r->v), free(r->w), free(r->q), free(r->inverse_mass), free(r->inverse_inertia);
  free(r->acceleration), free(r->torque), free(r->arm), free(r->pose), free(r->load), free(r->reach);
  memset(r, 0, sizeof *r);
}

static double gyration(const pabd_scene *scene, int32_t body) {
  if (body == PABD_WORLD || scene->bodies[body].motion != PABD_DYNAMIC) return 0;
  const pabd_body *b = &scene->bodies[body];
  return sqrt((b->inertia.x + b->inertia.y + b->inertia.z) / b->mass);
}

pabd_status pabd_rigid_init(pabd_rigid *r, const pabd_scene *scene, pabd_error *error) {
  const size_t bodies = (size_t)scene->body_count + 1, joints = (size_t)scene->joint_count + 1;
  memset(r, 0, sizeof *r);
  PABD_TRY(pabd_scene_copy(scene, &r->scene));
  PABD_TRY(pabd_collider_create(&r->collider, scene, error));
  r->body_count = scene->body_count;
  r->joint_count = scene->joint_count;
  r->has_drivers = pabd_scene_has_drivers(scene);
  r->p = calloc(bodies, sizeof *r->p);
  r->v = calloc(bodies, sizeof *r->v);
  r->w = calloc(bodies, sizeof *r->w);
  r->q = calloc(bodies, sizeof *r->q);
  r->inverse_mass = calloc(bodies, sizeof *r->inverse_mass);
  r->inverse_inertia = calloc(bodies, sizeof *r->inverse_inertia);
  r->acceleration = calloc(bodies, sizeof *r->acceleration);
  r->torque = calloc(bodies, sizeof *r->torque);
  r->arm = calloc(joints, sizeof *r->arm);
  r->pose = calloc(bodies * 7, sizeof *r->pose);
  r->load = calloc(bodies * 6, sizeof *r->load);
  r->reach = calloc(bodies, sizeof *r->reach);
  if (!r->p || !r->v || !r->w || !r->q || !r->inverse_mass || !r->inverse_inertia || !r->acceleration || !r->torque ||
      !r->arm || !r->pose || !r->load || !r->reach)
    return PABD_ERR_MEMORY;
  for (int32_t i = 0; i < r->body_count; ++i) {
    const pabd_body *body = &scene->bodies[i];
    r->p[i] = body->pose.p;
    r->q[i] = body->pose.q;
    if (body->motion == PABD_STATIC) continue;
    r->v[i] = body->linear;
    r->w[i] = body->angular;
    if (body->motion != PABD_DYNAMIC) continue;
    r->inverse_mass[i] = 1 / body->mass;
    r->inverse_inertia[i] = v3(1 / body->inertia.x, 1 / body->inertia.y, 1 / body->inertia.z);
  }
  for (int32_t j = 0; j < r->joint_count; ++j) {
    const double a = gyration(scene, scene->joints[j].body_a), b = gyration(scene, scene->joints[j].body_b);
    r->arm[j] = a + b > 0 ? a + b : 1;
  }
  return PABD_OK;
}

pabd_dpose pabd_rigid_pose(const pabd_rigid *r, int32_t body) {
  if (body == PABD_WORLD) return (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}};
  return (pabd_dpose){r->p[body], r->q[body]};
}

static void put_pose(double *row, pabd_dvec3 p, pabd_dquat q) {
  row[0] = p.x, row[1] = p.y, row[2] = p.z;
  row[3] = q.w, row[4] = q.x, row[5] = q.y, row[6] = q.z;
}

void pabd_rigid_read(const pabd_rigid *r, double *pose, double *velocity) {
  for (int32_t i = 0; i < r->body_count; ++i) {
    double *v = velocity + (size_t)i * 6;
    put_pose(pose + (size_t)i * 7, r->p[i], r->q[i]);
    v[0] = r->v[i].x, v[1] = r->v[i].y, v[2] = r->v[i].z;
    v[3] = r->w[i].x, v[4] = r->w[i].y, v[5] = r->w[i].z;
  }
}

void pabd_rigid_forces(pabd_rigid *r, double h) {
  const int loads = pabd_scene_loads(&r->scene, r->time, r->time + h, r->load);
  for (int32_t i = 0; i < r->body_count; ++i) {
    const double *f = r->load + (size_t)i * 6;
    r->acceleration[i] = r->inverse_mass[i] > 0 ? r->scene.gravity : v3(0, 0, 0);
    r->torque[i] = v3(0, 0, 0);
    if (!loads || !(r->inverse_mass[i] > 0)) continue;
    r->acceleration[i] = v3_along(r->acceleration[i], r->inverse_mass[i], v3(f[0], f[1], f[2]));
    r->torque[i] = v3(f[3], f[4], f[5]);
  }
}

pabd_status pabd_rigid_contacts(pabd_rigid *r, double margin, double h, const pabd_point **points, int32_t *count) {
  for (int32_t i = 0; i < r->body_count; ++i) {
    put_pose(r->pose + (size_t)i * 7, r->p[i], r->q[i]);
    r->reach[i] = h * v3_length(r->v[i]);
  }
  if (r->frozen) {
    PABD_TRY(pabd_collider_carry(r->collider, r->pose));
  } else {
    PABD_TRY(pabd_collider_sweep(r->collider, r->pose, margin, r->reach));
    PABD_TRY(pabd_collider_touch(r->collider, r->pose, margin, r->reach));
  }
  *points = pabd_collider_points(r->collider, count);
  return PABD_OK;
}

pabd_status pabd_rigid_set_contacts(pabd_rigid *r, const pabd_contact *contacts, int32_t count, pabd_error *error) {
  if (count < 0) {
    r->frozen = 0;
    return PABD_OK;
  }
  for (int32_t i = 0; i < r->body_count; ++i) put_pose(r->pose + (size_t)i * 7, r->p[i], r->q[i]);
  PABD_TRY(pabd_collider_freeze(r->collider, r->pose, contacts, count, error));
  r->frozen = 1;
  return PABD_OK;
}

pabd_contact pabd_rigid_report(const pabd_point *point, pabd_dvec3 force) {
  return (pabd_contact){.body_a = point->body_a,
                        .body_b = point->body_b,
                        .feature = point->feature,
                        .point = point->point,
                        .normal = point->normal,
                        .gap = point->gap,
                        .friction = point->friction,
                        .restitution = point->restitution,
                        .force = force};
}

pabd_dvec3 pabd_rigid_inverse_inertia(const pabd_rigid *r, int32_t body, pabd_dvec3 t) {
  const pabd_dvec3 s = r->inverse_inertia[body];
  pabd_dvec3 local = quat_rotate_back(r->q[body], t);
  return quat_rotate(r->q[body], v3(s.x * local.x, s.y * local.y, s.z * local.z));
}

static pabd_dvec3 of_body(const pabd_dvec3 *v, int32_t body) {
  return body == PABD_WORLD ? v3(0, 0, 0) : v[body];
}

void pabd_rigid_motor_rates(const pabd_rigid *r, double *rate) {
  for (int32_t j = 0; j < r->joint_count; ++j) {
    const pabd_joint *joint = &r->scene.joints[j];
    const int32_t a = joint->body_a, b = joint->body_b;
    if (joint->motor == PABD_MOTOR_NONE) continue;
    pabd_row rows[PABD_ROWS_OF_JOINT];
    const pabd_row *row =
        &rows[pabd_joint_rows(joint, pabd_rigid_pose(r, a), pabd_rigid_pose(r, b), r->arm[j], rows) - 1];
    rate[j] = v3_dot(row->linear, v3_sub(of_body(r->v, b), of_body(r->v, a))) + v3_dot(row->turn_a, of_body(r->w, a)) +
              v3_dot(row->turn_b, of_body(r->w, b));
  }
}

double pabd_rigid_motor_way(const pabd_rigid *r, int32_t j, double at, double h) {
  const pabd_joint *joint = &r->scene.joints[j];
  if (joint->motor == PABD_MOTOR_RATE) return joint->motor_target * h;
  const double target = pabd_joint_motor_target(joint, r->time);
  double left = target - at;
  if (joint->kind == PABD_HINGE) left = remainder(left, 2 * M_PI);
  return pabd_joint_motor_target(joint, r->time + h) - target + left * h / r->scene.frame_time;
}

pabd_dvec3 pabd_rigid_gyroscopic(const pabd_rigid *r, int32_t body, pabd_dvec3 w, double h) {
  if (!(r->inverse_mass[body] > 0)) return w;
  const pabd_dvec3 inertia = r->scene.bodies[body].inertia;
  const double i[3] = {inertia.x, inertia.y, inertia.z};
  const pabd_dvec3 u = quat_rotate_back(r->q[body], w);
  const double x[3] = {u.x, u.y, u.z};
  /* f(w) = h w x I w with derivative I + h ([w] I - [I w]); solved by Cramer's rule. */
  double m[3][3] = {{i[0], h * x[2] * (i[2] - i[1]), h * x[1] * (i[2] - i[1])},
                    {h * x[2] * (i[0] - i[2]), i[1], h * x[0] * (i[0] - i[2])},
                    {h * x[1] * (i[1] - i[0]), h * x[0] * (i[1] - i[0]), i[2]}};
  const pabd_dvec3 f =
      v3(h * x[1] * x[2] * (i[2] - i[1]), h * x[2] * x[0] * (i[0] - i[2]), h * x[0] * x[1] * (i[1] - i[0]));
  const pabd_dvec3 c0 = v3(m[0][0], m[1][0], m[2][0]), c1 = v3(m[0][1], m[1][1], m[2][1]),
                   c2 = v3(m[0][2], m[1][2], m[2][2]);
  const double determinant = v3_dot(c0, v3_cross(c1, c2));
  if (!(fabs(determinant) > 0)) return w;
  const pabd_dvec3 d = v3(v3_dot(f, v3_cross(c1, c2)) / determinant, v3_dot(c0, v3_cross(f, c2)) / determinant,
                          v3_dot(c0, v3_cross(c1, f)) / determinant);
  return quat_rotate(r->q[body], v3_sub(u, d));
}

int32_t pabd_rigid_lost(const pabd_rigid *r) {
  for (int32_t i = 0; i < r->body_count; ++i) {
    const double sum = r->p[i].x + r->p[i].y + r->p[i].z + r->q[i].w + r->q[i].x + r->v[i].x + r->v[i].y + r->v[i].z +
                       r->w[i].x + r->w[i].y + r->w[i].z;
    if (!isfinite(sum)) return i;
  }
  return -1;
}

void pabd_rigid_stats(const pabd_rigid *r, pabd_engine_stats *out) {
  int32_t count;
  pabd_collider_points(r->collider, &count);
  memset(out, 0, sizeof *out);
  pabd_stats_stage(out, "collide", 1, r->collide_ms);
  pabd_stats_stage(out, "solve", 0, r->solve_ms);
  pabd_stats_counter(out, "contacts", "1", count);
  if (r->has_drivers) pabd_stats_counter(out, "driver_work", "J", r->driver_work);
}

pabd_status pabd_rigid_frame(pabd_rigid *r, const char *engine, int substeps, pabd_rigid_step_fn step, void *world,
                             double *h, pabd_error *error) {
  const double start = r->time;
  r->collide_ms = r->solve_ms = 0;
  *h = r->scene.frame_time / substeps;
  for (int s = 0; s < substeps; ++s) {
    r->time = start + s * *h;
    PABD_TRY(step(world));
    const int32_t lost = pabd_rigid_lost(r);
    if (lost >= 0)
      return pabd_fail(error, PABD_DIVERGED, "%s: body %d has no finite state at %.4g s", engine, lost, r->time);
  }
  r->time = start + r->scene.frame_time;
  return PABD_OK;
}
