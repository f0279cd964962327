/* Integer scan and sort on the device: CUB behind four plain calls, so that only one file takes its time to compile. */
#ifndef PABD_CUDA_PRIMITIVES_H
#define PABD_CUDA_PRIMITIVES_H

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

/* Temporary memory that scans of up to `scanned` values and sorts of up to `sorted` keys need. */
cudaError_t pabd_cuda_temporary_bytes(int32_t scanned, int32_t sorted, size_t *bytes);
/* out[k] = sum of in[0 .. k - 1], at most INT32_MAX; values are not negative. */
cudaError_t pabd_cuda_scan(void *temporary, size_t bytes, const int32_t *in, int32_t *out, int32_t count,
                           cudaStream_t stream);
/* Sorts keys[count] by the bits [0, low_bits), then by [high, high + high_bits), by way of scratch[count]. Stable. */
cudaError_t pabd_cuda_sort(void *temporary, size_t bytes, uint64_t *keys, uint64_t *scratch, int32_t count,
                           int32_t low_bits, int32_t high, int32_t high_bits, cudaStream_t stream);

#endif
