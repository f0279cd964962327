/* The device side of kernels.def: state in one allocation, launches by kernel number. Statuses: PABD_ERR_UNAVAILABLE
 * (no device, old driver, a failed launch: the error text says which) and PABD_ERR_MEMORY. */
#ifndef PABD_BACKEND_CUDA_H
#define PABD_BACKEND_CUDA_H

#include "state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pabd_cuda_state {
  void *memory; /* device, `bytes` long: the layout of pabd_sim.memory; owned */
  size_t bytes;
  pabd_view view; /* pointers into `memory` */
} pabd_cuda_state;

/* Name of the first device into name[size]. */
pabd_status pabd_cuda_probe(char *name, int32_t size, pabd_error *error);
/* Takes device memory and copies the simulation's state there. On failure nothing is left allocated after
 * pabd_cuda_destroy. */
pabd_status pabd_cuda_create(const pabd_sim *sim, pabd_cuda_state *state, pabd_error *error);
void pabd_cuda_destroy(pabd_cuda_state *state);
pabd_status pabd_cuda_upload(const pabd_sim *sim, pabd_cuda_state *state, pabd_error *error);
/* Copies the device's block into memory[state->bytes]. */
pabd_status pabd_cuda_download(const pabd_cuda_state *state, void *memory, pabd_error *error);
/* Asynchronous launch of rows [first, first + count) of the kernel's range. */
pabd_status pabd_cuda_launch(const pabd_cuda_state *state, pabd_kernel k, int32_t first, int32_t count,
                             pabd_error *error);
/* Waits; reports errors of earlier launches. */
pabd_status pabd_cuda_synchronize(pabd_error *error);

#ifdef __cplusplus
}
#endif
#endif
