/* What the engines written here have in common besides their method: bodies, contacts, loads, kinematics, reports. */
#ifndef PABD_RIGID_H
#define PABD_RIGID_H

#include "common/collide.h"
#include "common/joint_rows.h"

typedef struct pabd_rigid {
  pabd_scene scene; /* our own copy */
  pabd_collider *collider;
  int frozen; /* contacts are given from outside */
  int32_t body_count, joint_count;
  /* State, [body_count]: center of mass (m), orientation, velocities (m/s, rad/s, world). */
  pabd_dvec3 *p, *v, *w;
  pabd_dquat *q;
  double *inverse_mass;              /* [body_count], 1/kg, 0 for static and kinematic bodies */
  pabd_dvec3 *inverse_inertia;       /* [body_count], 1/(kg m^2), principal, 0 as above */
  pabd_dvec3 *acceleration, *torque; /* [body_count]: loads and gravity over mass, m/s^2; torque of loads, N m */
  double *arm;                       /* [joint_count], m: what makes a length of an angle, from the radii of gyration */
  double *pose, *load, *reach;       /* [body_count][7], [6], [1]: scratch */
  double time, driver_work;          /* s, J */
  double collide_ms, solve_ms;       /* of the last frame */
  int has_drivers;
} pabd_rigid;

pabd_status pabd_rigid_init(pabd_rigid *r, const pabd_scene *scene, pabd_error *error);
void pabd_rigid_free(pabd_rigid *r);
void pabd_rigid_read(const pabd_rigid *r, double *pose, double *velocity);
/* Fills acceleration and torque for [time, time + h). */
void pabd_rigid_forces(pabd_rigid *r, double h);
/* The contacts at the present poses, within margin and, when h > 0, what the two bodies can move towards each other in
 * h. Frozen contacts are carried along instead. */
pabd_status pabd_rigid_contacts(pabd_rigid *r, double margin, double h, const pabd_point **points, int32_t *count);
pabd_status pabd_rigid_set_contacts(pabd_rigid *r, const pabd_contact *contacts, int32_t count, pabd_error *error);
/* One contact for a report; force on a, N. */
pabd_contact pabd_rigid_report(const pabd_point *point, pabd_dvec3 force);
/* Rates of the motors' coordinates (m/s, rad/s times arm) into rate[joint_count]; joints without a motor are left. A
 * motor's row is the last of its joint. */
void pabd_rigid_motor_rates(const pabd_rigid *r, double *rate);
/* What a motor wants its coordinate to move in [time, time + h), `at` being where it is: its rate's way; or, for a
 * servo, the target's own way and the share h / frame_time of what is left (all of it in one substep would make a
 * force-bounded servo of small steps swing for seconds). rad or m. */
double pabd_rigid_motor_way(const pabd_rigid *r, int32_t joint, double at, double h);
/* Turn of the velocity by the gyroscopic torque in h: one step of Newton's method on the
 * implicit equation in the body frame (Catto 2015), which can only lose energy. Returns the new angular velocity
 * (world). */
pabd_dvec3 pabd_rigid_gyroscopic(const pabd_rigid *r, int32_t body, pabd_dvec3 w, double h);
/* World-frame inverse inertia times a vector; and inertia times a vector (0 for bodies that are not dynamic). */
pabd_dvec3 pabd_rigid_inverse_inertia(const pabd_rigid *r, int32_t body, pabd_dvec3 t);
/* First body whose state is not finite, or -1. */
int32_t pabd_rigid_lost(const pabd_rigid *r);
pabd_dpose pabd_rigid_pose(const pabd_rigid *r, int32_t body); /* the identity for PABD_WORLD */
/* One frame of `substeps` steps: each gets *h, its time in r->time, and `world`. PABD_DIVERGED, with the engine's name,
 * when a body's state is not finite. */
typedef pabd_status (*pabd_rigid_step_fn)(void *world);
pabd_status pabd_rigid_frame(pabd_rigid *r, const char *engine, int substeps, pabd_rigid_step_fn step, void *world,
                             double *h, pabd_error *error);
void pabd_rigid_stats(const pabd_rigid *r, pabd_engine_stats *out);

#endif
