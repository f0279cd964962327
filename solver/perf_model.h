/* Performance model: bytes and operations of every stage of a frame, by count, and the time that a machine needs for
 * them.
 *
 * Bytes are the compulsory traffic of a launch: every field that the kernel declares (kernels.def), once for each live
 * row. Operations are + - * / sqrt of the kernel bodies, counted by running them with a number type that counts
 * (tests/gpu/count_operations.cpp keeps the table honest). A stage takes the longer of bytes over bandwidth and
 * operations over the rate that this kind of code reaches, and on a device one launch. What comes out for a machine
 * that was not measured is a prediction and must be labelled so. */
#ifndef PABD_PERF_MODEL_H
#define PABD_PERF_MODEL_H

#include <stdint.h>

#include "params.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a frame works on. */
typedef struct pabd_perf_load {
  int32_t bodies, shapes, pairs, contacts, ends, bonds; /* ends: contact ends of dynamic bodies */
  int32_t pair_capacity;                                /* a device sorts and scans all of it */
  int32_t substeps, sweeps, relax_sweeps, multipliers;
} pabd_perf_load;

typedef struct pabd_perf_machine {
  const char *name;
  double bandwidth; /* B/s: of memory, as printed by its maker, or measured (triad) */
  double peak;   /* operations/s in float, an add or a multiply each; half of a maker's figure that counts FMA as two */
  double launch; /* s: for each kernel of a graph; 0: a CPU */
  double cache_bytes, cache_bandwidth; /* B, B/s: launches that touch less than this much; 0 = not used */
} pabd_perf_machine;

#define PABD_PERF_STAGES 64
typedef struct pabd_perf_stage {
  const char *name;   /* as the stage timers */
  int32_t is_collide; /* 1: collision */
  double calls;       /* a frame */
  double bytes;       /* a frame: compulsory traffic */
  double operations;  /* a frame */
  double efficiency;  /* of the peak, for this kind of code */
  double ms;          /* a frame */
} pabd_perf_stage;

/* A pile of `bodies` boxes at rest, with `pairs` and `contacts` per body as measured in 10^3 to 30^3 piles. */
pabd_perf_load pabd_perf_pile(int32_t bodies, const pabd_params *params);
/* Stages of a frame of the Jacobi solver; returns their number, the whole frame in *total_ms. */
int32_t pabd_perf_predict(const pabd_perf_load *load, const pabd_perf_machine *machine,
                          pabd_perf_stage stages[PABD_PERF_STAGES], double *total_ms);
/* Named devices (figures of their makers); NULL past the last. */
const pabd_perf_machine *pabd_perf_device(int32_t index);
/* This machine, one thread: triad bandwidth and add/multiply rate, measured now (about 0.2 s). */
pabd_perf_machine pabd_perf_measure_host(void);
/* Compulsory bytes of one launch of a kernel of kernels.def; gathered ones (of rows of another kind) in *gathered. */
double pabd_perf_kernel_bytes(const char *kernel, const pabd_perf_load *load, double *gathered);
/* Operations of one launch of it. */
double pabd_perf_kernel_operations(const char *kernel, const pabd_perf_load *load);

#ifdef __cplusplus
}
#endif
#endif
