/* The device back end: a simulation whose state lives in GPU memory and whose frames run there.
 *
 * A simulation is created on the host as always, then attached; from then on pabd_sim_step does a frame on the device
 * and pabd_sim_read fetches what it needs. Statuses: PABD_ERR_UNAVAILABLE (no device, old driver, a failed call: the
 * text says which), PABD_ERR_MEMORY, PABD_ERR_UNSUPPORTED (a setting that only the CPU has). */
#ifndef PABD_BACKEND_CUDA_H
#define PABD_BACKEND_CUDA_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pabd_cuda_info {
  char name[256];
  int32_t major, minor, multiprocessors;
  int32_t driver, runtime; /* 1000 major + 10 minor */
  int64_t memory;          /* B */
} pabd_cuda_info;

/* Kernels by number: those of kernels.def, then those of device_kernels.def. */
int32_t pabd_cuda_kernel_count(void);
const char *pabd_cuda_kernel_name(int32_t k);

/* First device. */
pabd_status pabd_cuda_probe(pabd_cuda_info *info, pabd_error *error);
/* Takes device memory, copies the state there and captures the frame as a graph. On failure the simulation stays as it
 * was, on the CPU, and nothing is left allocated. */
pabd_status pabd_cuda_attach(pabd_sim *sim, pabd_error *error);
/* Queues a frame; does not wait and reads nothing back. `graph` 0: plain launches, the same work. */
pabd_status pabd_cuda_enqueue_frame(pabd_sim *sim, int32_t graph, pabd_error *error);
/* Waits; reports errors of earlier work. */
pabd_status pabd_cuda_wait(pabd_sim *sim, pabd_error *error);
/* Waits and reads the counts of the last frame into sim->stats: one copy of a few hundred bytes. PABD_DIVERGED where a
 * state is not finite. */
pabd_status pabd_cuda_read_stats(pabd_sim *sim, pabd_error *error);
/* Copies all fields of the view back into the host's. */
pabd_status pabd_cuda_download(pabd_sim *sim, pabd_error *error);
/* Time of each kernel over one frame of plain launches, each waited for. ms [kernel_count], calls [kernel_count]; sorts
 * and scans under *sort_ms and *scan_ms. */
pabd_status pabd_cuda_time_kernels(pabd_sim *sim, float *ms, int32_t *calls, float *sort_ms, float *scan_ms,
                                   pabd_error *error);
/* Bandwidth of a copy within the device's memory, bytes read and written a second. */
pabd_status pabd_cuda_copy_bandwidth(int64_t bytes, double *bytes_per_s, pabd_error *error);

#ifdef __cplusplus
}
#endif
#endif
