/* The stand-in's runtime: see cuda_runtime.h beside it. C++ because the interface that it stands in for is. */
#include "standin.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "cuda_runtime.h"

dim3 blockIdx, blockDim, gridDim, threadIdx;

typedef std::vector<std::function<void()>> work_list;
struct standin_graph {
  work_list work;
};
struct standin_stream {
  work_list queue;
  standin_graph *capture = nullptr;
};
struct standin_event {
  double ms = -1.0;
};

namespace {

struct allocation {
  char *map;        /* with a guard page on both sides */
  size_t map_bytes; /* all of it */
  size_t bytes;
  std::vector<std::pair<char *, size_t>> gaps; /* never to be touched */
};

int device_count = 1, driver_version = 13000;
size_t device_memory = (size_t)8 << 30;
uint32_t order_seed = 1;
int protect = 0, inside = 0;
standin_counts counts;
std::map<char *, allocation> live, host_blocks;
std::vector<standin_stream *> streams;
std::map<std::string, std::pair<int, int>> planted;
standin_stream default_stream;

size_t page() {
  return (size_t)sysconf(_SC_PAGESIZE);
}
standin_stream *stream_of(cudaStream_t stream) {
  return stream ? stream : &default_stream;
}
void open(const allocation &a) {
  mprotect(a.map + page(), a.map_bytes - 2 * page(), PROT_READ | PROT_WRITE);
  for (auto &gap : a.gaps) mprotect(gap.first, gap.second, PROT_NONE);
}
/* Device memory may be touched from here to leave(). */
void enter() {
  if (inside++ == 0 && protect)
    for (auto &a : live) open(a.second);
}
void leave() {
  if (--inside == 0 && protect)
    for (auto &a : live) mprotect(a.second.map + page(), a.second.map_bytes - 2 * page(), PROT_NONE);
}
bool in_device(const void *at, size_t bytes) {
  auto after = live.upper_bound((char *)const_cast<void *>(at));
  if (after == live.begin()) return false;
  const auto &a = *--after;
  return (const char *)at >= a.first && (const char *)at + bytes <= a.first + a.second.bytes;
}
void drain(standin_stream *stream) {
  work_list work;
  work.swap(stream->queue);
  if (work.empty()) return;
  enter();
  for (auto &w : work) w();
  leave();
}
void drain_all() {
  drain(&default_stream);
  for (auto *s : streams) drain(s);
}
bool capturing() {
  for (auto *s : streams)
    if (s->capture) return true;
  return false;
}
double now_ms() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}
/* The kth of n in an order that is a permutation: k times a stride without a common factor, shifted. */
struct order {
  uint64_t n, stride, shift;
  explicit order(uint64_t n_, uint64_t salt) : n(n_), stride(1), shift(0) {
    if (order_seed == 0 || n < 2) return;
    shift = (order_seed * 2654435761u + salt) % n;
    for (stride = 1 + (order_seed * 40503u + salt * 7u) % n;; ++stride) {
      uint64_t a = n, b = stride % n;
      while (b) {
        uint64_t t = a % b;
        a = b, b = t;
      }
      if (a == 1) break;
    }
  }
  uint64_t operator()(uint64_t k) const { return (k * stride + shift) % n; }
};

}  // namespace

cudaError_t standin_planted(const char *call) {
  auto p = planted.find(call);
  if (p == planted.end() || --p->second.first > 0) return cudaSuccess;
  cudaError_t code = (cudaError_t)p->second.second;
  planted.erase(p);
  return code;
}
#define PLANTED()                                     \
  do {                                                \
    cudaError_t planted_ = standin_planted(__func__); \
    if (planted_ != cudaSuccess) return planted_;     \
  } while (0)

cudaError_t standin_enqueue(cudaStream_t stream, std::function<void()> work) {
  standin_stream *s = stream_of(stream);
  (s->capture ? s->capture->work : s->queue).push_back(std::move(work));
  return cudaSuccess;
}

void standin_run_grid(dim3 grid, dim3 block, const std::function<void()> &thread) {
  gridDim = grid, blockDim = block;
  order blocks(grid.x, (uint64_t)counts.launches), threads(block.x, 3);
  ++counts.launches;
  for (unsigned b = 0; b < grid.x; ++b) {
    blockIdx = dim3((unsigned)blocks(b));
    for (unsigned t = 0; t < block.x; ++t) {
      threadIdx = dim3((unsigned)threads(t));
      thread();
    }
  }
}

void standin_gap(void *from, size_t bytes) {
  auto after = live.upper_bound((char *)from);
  if (after == live.begin()) return;
  allocation &a = (--after)->second;
  size_t p = page();
  char *first = (char *)(((size_t)from + p - 1) / p * p), *end = (char *)(((size_t)from + bytes) / p * p);
  if (first >= end) return;
  a.gaps.push_back({first, (size_t)(end - first)});
  mprotect(first, (size_t)(end - first), PROT_NONE);
}

/* ---- tests' side */

extern "C" void standin_set_device(int count, int driver, size_t memory) {
  device_count = count, driver_version = driver, device_memory = memory;
}
extern "C" void standin_plant(const char *call, int nth, int error) {
  if (nth <= 0 || error == 0)
    planted.erase(call);
  else
    planted[call] = {nth, error};
}
extern "C" void standin_set_order(uint32_t seed) {
  order_seed = seed;
}
extern "C" void standin_protect(int on) {
  if (protect && !on) {
    enter();
    protect = 0;
    leave();
  } else if (on && !protect) {
    protect = 1;
    ++inside;
    leave();
  }
}
extern "C" standin_counts standin_count(void) {
  counts.live_allocations = (int64_t)(live.size() + host_blocks.size());
  counts.live_streams = (int64_t)streams.size();
  return counts;
}

/* ---- the runtime's side */

const char *cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "invalid argument";
  }
}
cudaError_t cudaGetLastError() {
  return standin_planted("cudaGetLastError");
}
cudaError_t cudaGetDeviceCount(int *count) {
  PLANTED();
  *count = device_count;
  if (driver_version < 13000) return cudaErrorInsufficientDriver;
  return device_count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  PLANTED();
  if (device >= device_count) return cudaErrorInvalidValue;
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "stand-in (no GPU)");
  properties->major = 8, properties->minor = 9;
  properties->multiProcessorCount = 2, properties->maxThreadsPerMultiProcessor = 1536;
  properties->totalGlobalMem = device_memory;
  return cudaSuccess;
}

static cudaError_t take(void **memory, size_t bytes, std::map<char *, allocation> &where) {
  size_t p = page(), inner = (bytes + p - 1) / p * p;
  if (inner == 0) inner = p;
  char *map = (char *)mmap(nullptr, inner + 2 * p, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == (char *)MAP_FAILED) return cudaErrorMemoryAllocation;
  mprotect(map + p, inner, PROT_READ | PROT_WRITE);
  /* the end of the block lies at the guard page, as far as alignment lets it */
  char *at = map + p + (inner - bytes) / 256 * 256;
  std::memset(map + p, 0xcd, inner);
  if (protect && !inside && &where == &live) mprotect(map + p, inner, PROT_NONE);
  where[at] = {map, inner + 2 * p, bytes, {}};
  ++counts.allocations;
  *memory = at;
  return cudaSuccess;
}
static cudaError_t give(void *memory, std::map<char *, allocation> &where) {
  if (!memory) return cudaSuccess;
  auto a = where.find((char *)memory);
  if (a == where.end()) return cudaErrorInvalidValue;
  /* the address range stays reserved and closed: a late access traps */
  mmap(a->second.map, a->second.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  where.erase(a);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **memory, size_t bytes) {
  PLANTED();
  if (capturing()) return cudaErrorStreamCaptureUnsupported;
  size_t used = bytes;
  for (auto &a : live) used += a.second.bytes;
  if (used > device_memory) return cudaErrorMemoryAllocation;
  counts.bytes = (int64_t)used;
  return take(memory, bytes, live);
}
cudaError_t cudaFree(void *memory) {
  drain_all();
  return give(memory, live);
}
cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  PLANTED();
  return take(memory, bytes, host_blocks);
}
cudaError_t cudaFreeHost(void *memory) {
  return give(memory, host_blocks);
}

static cudaError_t check_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  bool to_device = kind != cudaMemcpyDeviceToHost, from_device = kind != cudaMemcpyHostToDevice;
  return in_device(to, bytes) == to_device && in_device(from, bytes) == from_device ? cudaSuccess
                                                                                    : cudaErrorInvalidValue;
}
static void copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  enter();
  std::memmove(to, from, bytes);
  leave();
  counts.copies_to_host += kind == cudaMemcpyDeviceToHost;
  counts.copies_to_device += kind == cudaMemcpyHostToDevice;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  PLANTED();
  if (capturing()) return cudaErrorStreamCaptureUnsupported;
  cudaError_t code = check_copy(to, from, bytes, kind);
  if (code != cudaSuccess) return code;
  drain_all();
  copy(to, from, bytes, kind);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  PLANTED();
  cudaError_t code = check_copy(to, from, bytes, kind);
  if (code != cudaSuccess) return code;
  return standin_enqueue(stream, [=]() { copy(to, from, bytes, kind); });
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  PLANTED();
  if (!in_device(to, bytes)) return cudaErrorInvalidValue;
  return standin_enqueue(stream, [=]() { std::memset(to, value, bytes); });
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  PLANTED();
  *stream = new standin_stream;
  streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  drain(stream);
  for (size_t k = 0; k < streams.size(); ++k)
    if (streams[k] == stream) streams.erase(streams.begin() + (long)k--);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  PLANTED();
  if (stream_of(stream)->capture) return cudaErrorStreamCaptureUnsupported;
  ++counts.waits;
  drain(stream_of(stream));
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  PLANTED();
  if (capturing()) return cudaErrorStreamCaptureUnsupported;
  ++counts.waits;
  drain_all();
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  PLANTED();
  if (!stream || stream->capture) return cudaErrorInvalidValue;
  stream->capture = new standin_graph;
  ++counts.live_graphs;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  if (!stream || !stream->capture) return cudaErrorInvalidValue;
  *graph = stream->capture;
  stream->capture = nullptr;
  PLANTED();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long) {
  PLANTED();
  *executable = new standin_graph(*graph);
  ++counts.live_graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  PLANTED();
  ++counts.graph_launches;
  for (auto &work : executable->work) {
    cudaError_t code = standin_enqueue(stream, work);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  counts.live_graphs -= graph != nullptr;
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return cudaGraphDestroy(executable);
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
  PLANTED();
  *event = new standin_event;
  ++counts.live_events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  counts.live_events -= event != nullptr;
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return standin_enqueue(stream, [=]() { event->ms = now_ms(); });
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end) {
  if (begin->ms < 0 || end->ms < 0) return cudaErrorNotReady;
  *ms = (float)(end->ms - begin->ms);
  return cudaSuccess;
}
