/* Integer scan and sort on the device, by CUB; see cuda_primitives.h. */
#include "cuda_primitives.h"

#include <cub/cub.cuh>

namespace {

/* a + b, at most INT32_MAX, for numbers that are not negative: the order of sums does not matter. */
struct saturating_sum {
  __host__ __device__ int32_t operator()(int32_t a, int32_t b) const { return a > INT32_MAX - b ? INT32_MAX : a + b; }
};

}  // namespace

cudaError_t pabd_cuda_temporary_bytes(int32_t scanned, int32_t sorted, size_t *bytes) {
  size_t scan_bytes = 0, sort_bytes = 0;
  cudaError_t code = cub::DeviceScan::ExclusiveScan(NULL, scan_bytes, (const int32_t *)NULL, (int32_t *)NULL,
                                                    saturating_sum(), (int32_t)0, (int)scanned, (cudaStream_t)0);
  if (code == cudaSuccess)
    code = cub::DeviceRadixSort::SortKeys(NULL, sort_bytes, (const uint64_t *)NULL, (uint64_t *)NULL, (int)sorted, 0,
                                          64, (cudaStream_t)0);
  *bytes = scan_bytes > sort_bytes ? scan_bytes : sort_bytes;
  return code;
}

cudaError_t pabd_cuda_scan(void *temporary, size_t bytes, const int32_t *in, int32_t *out, int32_t count,
                           cudaStream_t stream) {
  return cub::DeviceScan::ExclusiveScan(temporary, bytes, in, out, saturating_sum(), (int32_t)0, (int)count, stream);
}

cudaError_t pabd_cuda_sort(void *temporary, size_t bytes, uint64_t *keys, uint64_t *scratch, int32_t count,
                           int32_t low_bits, int32_t high, int32_t high_bits, cudaStream_t stream) {
  cudaError_t code = cub::DeviceRadixSort::SortKeys(temporary, bytes, (const uint64_t *)keys, scratch, (int)count, 0,
                                                    (int)low_bits, stream);
  if (code != cudaSuccess) return code;
  return cub::DeviceRadixSort::SortKeys(temporary, bytes, (const uint64_t *)scratch, keys, (int)count, (int)high,
                                        (int)(high + high_bits), stream);
}
