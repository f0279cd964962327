/* What engine adapters share: settings as text, checks against a capability mask, collision filters, loads, drivers.
 *
 * An adapter needs none of this (the engine table in pabd_engine.h is all the harness knows), but with it an adapter is
 * little more than calls of its engine. Sources in baselines/common/ are linked into every engine, this header is the
 * only one they have. Everything here is in SI units and double, as the scene is. */
#ifndef PABD_BASELINE_H
#define PABD_BASELINE_H

#include "pabd_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Settings ----
 * Types "int", "real" (range "low .. high", either side may be "inf"), "bool" (0 or 1, also false/true, off/on),
 * "choice" (range "a | b | c", the value is the index) and "text" (any text; no value here, see pabd_setting_text). */

/* Fills values[count] from the table's initial values, then from `given`. Unknown keys and bad values give
 * PABD_ERR_INPUT and one line with key, value and what is allowed. */
pabd_status pabd_settings_parse(const char *engine, const pabd_setting_info *infos, int32_t count,
                                const pabd_setting *given, int32_t given_count, double *values, pabd_error *error);
/* The text in force of a "text" setting: the last one given, else its initial value. */
const char *pabd_setting_text(const pabd_setting_info *info, const pabd_setting *given, int32_t given_count);
/* Writes a value the way pabd_settings_parse reads it. */
void pabd_setting_print(const pabd_setting_info *info, double value, char *buffer, int32_t size);

/* ---- Scene against engine ---- */

/* The capabilities (PABD_CAN_...) without which an engine cannot express the scene. */
uint64_t pabd_scene_needs(const pabd_scene *scene);
/* PABD_ERR_UNSUPPORTED naming everything that the scene needs and `capabilities` lacks; PABD_OK if nothing. */
pabd_status pabd_scene_supported(const char *engine, const pabd_scene *scene, uint64_t capabilities, pabd_error *error);
/* 1 when the material table has one friction and one restitution value only. Outputs are its first entries. */
int pabd_scene_uniform_materials(const pabd_scene *scene, double *friction, double *restitution);
/* Deep copy; *copy is zeroed on failure. Free with pabd_scene_free. */
pabd_status pabd_scene_copy(const pabd_scene *scene, pabd_scene *copy);
/* first[body_count + 1]: shapes of body i are first[i] .. first[i + 1] - 1 (shapes are sorted by body). Malloc'ed. */
int32_t *pabd_scene_shape_ranges(const pabd_scene *scene);

/* Which pairs of bodies never collide: the rule of pabd_scene_ignores as a table, O(log k) a question. */
typedef struct pabd_filter {
  int32_t body_count;
  int32_t *first;         /* [body_count + 1]: partners of body i (higher index) are partner[first[i]] .. */
  int32_t *partner;       /* sorted within a body */
  int32_t *group, *world; /* [body_count] */
  uint8_t *still;         /* [body_count]: static or kinematic */
} pabd_filter;
pabd_status pabd_filter_init(pabd_filter *filter, const pabd_scene *scene);
void pabd_filter_free(pabd_filter *filter);
int pabd_filter_ignores(const pabd_filter *filter, int32_t body_a, int32_t body_b);

/* ---- Time-dependent parts of a scene ---- */

/* Mean applied force and torque over [start, end), world frame: force[6] per body, zeroed first. Returns 0 (and leaves
 * `force` alone) when no load acts then. */
int pabd_scene_loads(const pabd_scene *scene, double start, double end, double *force);
/* Pose of a kinematic body at time t: it moves with its constant start velocities. */
pabd_dpose pabd_body_kinematic_pose(const pabd_body *body, double time);
/* Target of a position motor at time t. */
double pabd_joint_motor_target(const pabd_joint *joint, double time);
/* Has the scene a driver (motor or moving kinematic body), so that driver work must be counted? */
int pabd_scene_has_drivers(const pabd_scene *scene);

/* ---- Springs as explicit forces, for engines that have none ----
 * A PABD_SPRING pulls along the line of its anchors, a spring on the free coordinate of a hinge or slider about and
 * along the joint's axis. Force at the poses and velocities of the beginning of the substep. */

/* Adds the springs' forces and torques to force[6] per body; pose [body_count][7], velocity [body_count][6]. */
void pabd_scene_spring_forces(const pabd_scene *scene, const double *pose, const double *velocity, double *force);
int pabd_scene_has_springs(const pabd_scene *scene);
/* Such forces with semi-implicit Euler are unstable past h omega = 2. PABD_ERR_UNSUPPORTED, with the number of substeps
 * that suffices, when a bound on h omega (Gershgorin) is above that at the time step `step`. */
pabd_status pabd_scene_springs_stable(const char *engine, const pabd_scene *scene, double step, pabd_error *error);

/* ---- Small things ---- */

/* Free coordinate of a hinge (rad, -pi .. pi) or slider (m), and its rate; poses and velocities as above. */
double pabd_joint_coordinate(const pabd_scene *scene, const pabd_joint *joint, const double *pose,
                             const double *velocity, double *rate);
/* Wall clock in milliseconds from an arbitrary start. */
double pabd_now_ms(void);
/* Adds to the statistics; silently full when the capacity is reached (a programmer's mistake: asserts). */
void pabd_stats_stage(pabd_engine_stats *stats, const char *name, int32_t is_collide, double ms);
void pabd_stats_counter(pabd_engine_stats *stats, const char *name, const char *unit, double value);
/* Are the poses and velocities of all bodies finite? */
int pabd_state_finite(const double *pose, const double *velocity, int32_t body_count);

#ifdef __cplusplus
}
#endif
#endif
