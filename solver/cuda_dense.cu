/* The two sweeps of dense_sweep.h as kernels, side by side under the same bounds, for the compiler's figures
 * (build/cuda/ptxas.json). No simulation runs them. */
#include <cuda_runtime.h>

#include "dense_sweep.h"

enum { BLOCK = 128 };

#define ROW (int32_t)(blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __launch_bounds__(BLOCK) compare_block_sweep(pabd_view v, int32_t count) {
  int32_t i = ROW;
  if (i < count) block_sweep_at(i, &v);
}
extern "C" __global__ void __launch_bounds__(BLOCK)
    compare_dense_sweep(pabd_view v, int32_t count, const real *hessian, int32_t stride) {
  int32_t i = ROW;
  if (i < count) dense_sweep_at(i, &v, hessian + i, stride);
}
