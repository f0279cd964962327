/* libpabd: a solver of Projective Affine Body Dynamics for rigid multibody systems.
 *
 *   pabd_params params = pabd_params_default();
 *   pabd_sim *sim;
 *   pabd_sim_create(&scene, &params, &sim, &error);       // all memory is taken here
 *   for (...) pabd_sim_step(sim);                          // one frame of scene.frame_time; allocates nothing
 *   pabd_sim_read(sim, pose, velocity);
 *   pabd_sim_destroy(sim);
 *
 * A simulation copies what it needs from the scene. All calls for one simulation come from one thread; the step itself
 * uses params.threads threads and its bits do not depend on their number. */
#ifndef PABD_H
#define PABD_H

#include "pabd_scene.h"
#include "pabd_status.h"
#include "params.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pabd_sim pabd_sim;

#define PABD_TIMER_MAX 40

typedef struct pabd_timer {
  const char *name;   /* stage = kernel = timer = column name */
  int32_t is_collide; /* 1: collision, 0: solver */
  int32_t calls;      /* in the last frame */
  double ms;          /* wall time in the last frame */
} pabd_timer;

/* Statistics of the last frame. */
typedef struct pabd_stats {
  int32_t body_count, dynamic_count, shape_count, bond_count;
  int32_t pair_count, contact_count, contact_closed_count;
  int32_t island_count, island_jacobi, island_gs, island_direct; /* islands by global step */
  int32_t bodies_free, bodies_jacobi, bodies_gs, bodies_direct;
  int64_t contact_evaluations;                              /* contact rows evaluated by all passes */
  int32_t sweeps;                                           /* main sweeps done, all substeps */
  int32_t overflow_pairs, overflow_contacts, overflow_fill; /* dropped for lack of capacity, this frame */
  int32_t newton_iterations, newton_failures, ladder_halvings, ladder_bdf2, ladder_euler, ladder_exhausted,
      ladder_limited;                          /* direct */
  int32_t colors, color_overflow;              /* contact-gs */
  double residual;                             /* N, largest rigid gradient after the last sweep (jacobi) */
  double rigidity_defect;                      /* largest |A^T A - 1| before the projection */
  double bond_error;                           /* m, largest hard-row error seen */
  double driver_work;                          /* J, cumulative */
  int64_t bytes, bytes_bodies, bytes_contacts; /* memory of the simulation, all allocated at creation */
  double bytes_per_body, bytes_per_contact;
  double model_bytes, model_operations; /* of the Jacobi stages and collision by perf_model.h; 0 with other steps */
  int32_t diverged_body;                /* first body whose state is not finite, or -1 */
  int32_t timer_count;
  pabd_timer timers[PABD_TIMER_MAX];
} pabd_stats;

/* A contact given from or to outside (frozen contacts): world coordinates at the present poses. */
typedef struct pabd_contact_point {
  int32_t body_a, body_b;
  uint32_t feature;
  pabd_dvec3 point, normal; /* midpoint; unit, from b to a */
  double gap, friction, restitution;
  pabd_dvec3 force; /* N on a; output only */
} pabd_contact_point;

/* Called after each sweep when set; see pabd_engine.h for the meaning of the numbers. */
typedef struct pabd_sweep_trace {
  int32_t frame, substep, sweep;
  const char *phase;
  double residual, joint_error, gap_min, lambda_max, objective;
} pabd_sweep_trace;
typedef void (*pabd_sweep_fn)(const pabd_sweep_trace *trace, const pabd_sim *sim, void *user);

/* PABD_ERR_INPUT (scene fails its check), PABD_ERR_UNSUPPORTED (shape or joint without a kernel), PABD_ERR_MEMORY; *sim
 * is NULL then and nothing is left allocated. */
pabd_status pabd_sim_create(const pabd_scene *scene, const pabd_params *params, pabd_sim **sim, pabd_error *error);
void pabd_sim_destroy(pabd_sim *sim); /* NULL is fine */
/* One frame. PABD_DIVERGED when a state is not finite (stats.diverged_body); the state stays readable. */
pabd_status pabd_sim_step(pabd_sim *sim);
/* pose [body_count][7] (p, q as w x y z), velocity [body_count][6] (linear, angular; world). Either may be NULL. */
void pabd_sim_read(const pabd_sim *sim, double *pose, double *velocity);
/* Pose and linear momentum of the present iterate, inside a trace call. pose [body_count][7], momentum [body_count][3].
 */
void pabd_sim_read_iterate(const pabd_sim *sim, double *pose, double *momentum);
void pabd_sim_stats(const pabd_sim *sim, pabd_stats *stats);
int32_t pabd_sim_contacts(const pabd_sim *sim, pabd_contact_point *contacts, int32_t capacity);
/* The next frames use these contacts instead of collision detection; count < 0 ends that. */
pabd_status pabd_sim_set_contacts(pabd_sim *sim, const pabd_contact_point *contacts, int32_t count, pabd_error *error);
void pabd_sim_set_trace(pabd_sim *sim, pabd_sweep_fn trace, void *user);
const char *pabd_precision(void);

/* -- a device, where the library was linked with the back end for one (backend_cuda.cu) --
 * First device into name[size]; PABD_ERR_UNAVAILABLE with the reason. */
pabd_status pabd_device_probe(char *name, int32_t size, pabd_error *error);
/* From here on frames are done on the device. On failure the simulation stays on the CPU: PABD_ERR_UNAVAILABLE,
 * PABD_ERR_MEMORY, PABD_ERR_UNSUPPORTED (a setting that only the CPU has). */
pabd_status pabd_device_attach(pabd_sim *sim, pabd_error *error);
/* Why the last pabd_sim_step failed there; "" when it did not. */
const char *pabd_device_error(const pabd_sim *sim);

#ifdef __cplusplus
}
#endif
#endif
