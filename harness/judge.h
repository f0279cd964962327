/* The judge: accuracy metrics from poses and velocities alone, in double, the same for every engine.
 *
 * Fed once a frame; knows the case (scene, metric list, windows) and nothing of engines. The only number it takes from
 * an engine is the cumulative work of its drivers (motors, kinematic bodies), needed to balance energy. Keys, windows
 * and definitions: the project's contract, repeated in harness/README.md. */
#ifndef PABD_JUDGE_H
#define PABD_JUDGE_H

#include "pabd_case.h"
#include "record.h"

typedef struct pabd_judge pabd_judge;

/* `c` must outlive the judge. NULL when memory is out. */
pabd_judge *pabd_judge_create(const pabd_case *c);
/* Frame 0 is the start state, then one call a frame. pose [body_count][7], velocity [body_count][6] as in
 * pabd_engine.h. driver_work: J, cumulative, 0 if none. Returns PABD_DIVERGED when a number is not finite or a body is
 * beyond any use (1e6 m from its start): the run is then over, its metrics so far stand. */
pabd_status pabd_judge_frame(pabd_judge *judge, int32_t frame, const double *pose, const double *velocity,
                             double driver_work);
/* Writes all metrics and series of the case into `out`. */
pabd_status pabd_judge_finish(pabd_judge *judge, pabd_metrics *out);
void pabd_judge_destroy(pabd_judge *judge);

/* Exact geometry, used by the judge and tested on its own: signed gap between two shapes (negative: the least
 * translation that separates them), from the scene's shapes at given body poses ([7] each). `normal` (may be NULL) from
 * b to a. */
double pabd_judge_gap(const pabd_scene *scene, const pabd_shape *shape_a, const double *pose_a,
                      const pabd_shape *shape_b, const double *pose_b, pabd_dvec3 *normal);
/* 64-bit FNV-1a of the exact bytes of poses and velocities, for `state_hash`. */
uint64_t pabd_state_hash(uint64_t seed, const double *pose, const double *velocity, int32_t body_count);

#endif
