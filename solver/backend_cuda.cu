/* CUDA launchers of every kernel of kernels.def: the same bodies as on the CPU, one thread a row.
 *
 * State lives in one device allocation with the layout of the host's (same field list, same offsets), so a copy of the
 * block and a shift of the view's pointers is all it takes. Built with --fmad=false, so results have the CPU's bits
 * where the host is built with -ffp-contract=off. Without a device every call says so by its status; nothing here is
 * needed to build or test the CPU path. */
#include <cuda_runtime.h>

#include <stdio.h>
#include <string.h>

#include "backend_cuda.h"
#include "jacobi_kernels.h"

static_assert(sizeof(pabd_view) < 4096, "the view is passed to kernels by value");

#define ROW_bodies(v, k) (v).body_order[k]
#define ROW_bonds(v, k) (v).bond_order[k]
#define ROW_contacts(v, k) (k)
#define ROW_shapes(v, k) (k)
#define ROW_pairs(v, k) (k)
#define ROW_nodes(v, k) (k)

/* 6 blocks a multiprocessor leave 85 registers a thread: without the second number ptxas aims lower and spills in
 * `block`. */
enum { BLOCK = 128, RESIDENT = 6 };

#define KERNEL(name, rows, reads, writes)                                                                            \
  static __global__ void __launch_bounds__(BLOCK, RESIDENT) grid_##name(int32_t first, int32_t count, pabd_view v) { \
    int32_t k = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);                                                    \
    if (k < count) name##_at(ROW_##rows(v, first + k), &v);                                                          \
  }
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL

typedef void (*grid_function)(int32_t first, int32_t count, pabd_view v);
static const grid_function grids[PABD_KERNEL_COUNT] = {
#define KERNEL(name, rows, reads, writes) grid_##name,
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
};

static pabd_status cuda_fail(pabd_error *error, const char *what, cudaError_t code) {
  pabd_status status = code == cudaErrorMemoryAllocation ? PABD_ERR_MEMORY : PABD_ERR_UNAVAILABLE;
  return pabd_fail(error, status, "%s: %s", what, cudaGetErrorString(code));
}

extern "C" pabd_status pabd_cuda_probe(char *name, int32_t size, pabd_error *error) {
  int count = 0, driver = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver) {
    cudaDriverGetVersion(&driver);
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "the CUDA driver (%d.%d) is older than the runtime needs",
                     driver / 1000, driver % 1000 / 10);
  }
  if (code != cudaSuccess) return cuda_fail(error, "no CUDA device", code);
  if (count == 0) return pabd_fail(error, PABD_ERR_UNAVAILABLE, "no CUDA device");
  cudaDeviceProp properties;
  code = cudaGetDeviceProperties(&properties, 0);
  if (code != cudaSuccess) return cuda_fail(error, "no properties of the CUDA device", code);
  snprintf(name, (size_t)size, "%s", properties.name);
  return PABD_OK;
}

extern "C" pabd_status pabd_cuda_create(const pabd_sim *sim, pabd_cuda_state *state, pabd_error *error) {
  memset(state, 0, sizeof *state);
  cudaError_t code = cudaMalloc(&state->memory, sim->memory_bytes);
  if (code != cudaSuccess) return cuda_fail(error, "no device memory for the simulation's state", code);
  state->bytes = sim->memory_bytes;
  return pabd_cuda_upload(sim, state, error);
}

extern "C" void pabd_cuda_destroy(pabd_cuda_state *state) {
  if (state->memory) cudaFree(state->memory);
  memset(state, 0, sizeof *state);
}

extern "C" pabd_status pabd_cuda_upload(const pabd_sim *sim, pabd_cuda_state *state, pabd_error *error) {
  cudaError_t code = cudaMemcpy(state->memory, sim->memory, state->bytes, cudaMemcpyHostToDevice);
  if (code != cudaSuccess) return cuda_fail(error, "copy to the device", code);
  state->view = sim->view;
  /* the same offsets in the device's block */
#define FIELD(type, name, rows, planes, unit, writer) \
  state->view.name = (type *)((char *)state->memory + ((const char *)sim->view.name - (const char *)sim->memory));
#include "fields.def"
#undef FIELD
  return PABD_OK;
}

extern "C" pabd_status pabd_cuda_download(const pabd_cuda_state *state, void *memory, pabd_error *error) {
  cudaError_t code = cudaMemcpy(memory, state->memory, state->bytes, cudaMemcpyDeviceToHost);
  return code == cudaSuccess ? PABD_OK : cuda_fail(error, "copy from the device", code);
}

extern "C" pabd_status pabd_cuda_launch(const pabd_cuda_state *state, pabd_kernel k, int32_t first, int32_t count,
                                        pabd_error *error) {
  if (count <= 0) return PABD_OK;
  grids[k]<<<(unsigned)((count + BLOCK - 1) / BLOCK), BLOCK>>>(first, count, state->view);
  cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? PABD_OK : cuda_fail(error, pabd_kernel_name(k), code);
}

extern "C" pabd_status pabd_cuda_synchronize(pabd_error *error) {
  cudaError_t code = cudaDeviceSynchronize();
  return code == cudaSuccess ? PABD_OK : cuda_fail(error, "device", code);
}
