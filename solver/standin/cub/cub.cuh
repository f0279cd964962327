/* Stand-in for the two device-wide algorithms of CUB that backend_cuda.cu uses: the same calls with their two-step
 * protocol for temporary memory, done by plain loops when the stream runs. */
#ifndef PABD_STANDIN_CUB_H
#define PABD_STANDIN_CUB_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../cuda_runtime.h"

namespace cub {

/* First call: size only. Second: memory must be there and large enough; it is overwritten, as it would be. */
inline bool standin_temporary(void *memory, size_t &bytes, size_t needed) {
  if (!memory) bytes = needed;
  return memory != nullptr;
}

struct DeviceScan {
  template <typename In, typename Out, typename Operation, typename T>
  static cudaError_t ExclusiveScan(void *memory, size_t &bytes, In in, Out out, Operation operation, T initial,
                                   int count, cudaStream_t stream) {
    const size_t needed = 256 + (size_t)count / 128;
    if (!standin_temporary(memory, bytes, needed)) return cudaSuccess;
    if (bytes < needed) return cudaErrorInvalidValue;
    return standin_enqueue(stream, [=]() {
      std::memset(memory, 0xa5, needed);
      T sum = initial;
      for (int i = 0; i < count; ++i) {
        T value = in[i];
        out[i] = sum;
        sum = operation(sum, value);
      }
    });
  }
};

struct DeviceRadixSort {
  template <typename Key>
  static cudaError_t SortKeys(void *memory, size_t &bytes, const Key *in, Key *out, int count, int begin_bit,
                              int end_bit, cudaStream_t stream) {
    const size_t needed = 4096 + (size_t)count * sizeof(Key);
    if (!standin_temporary(memory, bytes, needed)) return cudaSuccess;
    if (bytes < needed || begin_bit < 0 || end_bit > (int)sizeof(Key) * 8 || begin_bit > end_bit || in == out)
      return cudaErrorInvalidValue;
    return standin_enqueue(stream, [=]() {
      std::memset(memory, 0xa5, needed);
      int bits = end_bit - begin_bit;
      Key mask = bits >= (int)sizeof(Key) * 8 ? ~(Key)0 : (((Key)1 << bits) - 1);
      std::vector<Key> keys(in, in + count);
      std::stable_sort(keys.begin(), keys.end(),
                       [=](Key a, Key b) { return ((a >> begin_bit) & mask) < ((b >> begin_bit) & mask); });
      std::copy(keys.begin(), keys.end(), out);
    });
  }
};

}  // namespace cub
#endif
