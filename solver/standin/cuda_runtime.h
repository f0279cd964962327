/* A stand-in for the CUDA runtime calls that backend_cuda.cu uses, so that its host side and the rows of its kernels
 * run in the tests of a machine without a GPU. No emulator of a GPU: kernels run as loops over the grid.
 *
 * It is strict where a GPU is lax: work is queued and runs only when someone waits, so a missing wait is seen; blocks
 * and the threads in them run in a permuted order; device memory starts as garbage, lies between unmapped pages and is
 * unmapped when freed, so that a wild access traps; captured work runs only by replay. standin.h steers it from tests.
 * Kernels here use no shared memory and no barriers, so threads may run one after another. */
#ifndef PABD_STANDIN_CUDA_RUNTIME_H
#define PABD_STANDIN_CUDA_RUNTIME_H

#include <cstddef>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
extern dim3 blockIdx, blockDim, gridDim, threadIdx;

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };

struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor;
  size_t totalGlobalMem;
};
typedef struct standin_stream *cudaStream_t;
typedef struct standin_graph *cudaGraph_t;
typedef struct standin_graph *cudaGraphExec_t;
typedef struct standin_event *cudaEvent_t;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void *attrs = nullptr;
  unsigned numAttrs = 0;
};

const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **memory, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);

/* Whole pages within this part of a device allocation become a trap. */
#define PABD_STANDIN 1
void standin_gap(void *from, size_t bytes);
/* Queues work on a stream (or into the graph that is being captured). */
cudaError_t standin_enqueue(cudaStream_t stream, std::function<void()> work);
/* Runs one thread function for every thread of the grid, in a permuted order. */
void standin_run_grid(dim3 grid, dim3 block, const std::function<void()> &thread);
/* An error planted for the call, or cudaSuccess. */
cudaError_t standin_planted(const char *call);

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments &&...arguments) {
  cudaError_t planted = standin_planted("cudaLaunchKernelEx");
  if (planted != cudaSuccess) return planted;
  dim3 grid = config->gridDim, block = config->blockDim;
  if (grid.x == 0 || block.x == 0 || block.x > 1024) return cudaErrorInvalidConfiguration;
  return standin_enqueue(config->stream,
                         [=]() { standin_run_grid(grid, block, [=]() { kernel(Parameters(arguments)...); }); });
}

template <typename T>
T atomicAdd(T *at, T value) {
  T before = *at;
  *at = before + value;
  return before;
}
inline void __threadfence() {}

#endif
