/* The device back end: state in one allocation, a frame as one CUDA graph, the kernel bodies of the CPU.
 *
 * Every kernel runs over a range whose length lies on the device (device.h), one row a thread, in strides; the launch
 * is as wide as the range can get. Scans and sorts are CUB's, over integers. No float atomics, and reductions fold in a
 * fixed shape; built with --fmad=false, so results have the CPU's bits where the host is built with -ffp-contract=off.
 * Host code here is C but for the kernels' table and CUB; the tests build it against solver/standin. */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cuda.h"
#include "cuda_primitives.h"
#include "device_rows.h"

static_assert(sizeof(pabd_view) + sizeof(pabd_device) < 4000, "both are passed to kernels by value");

#define ROW_bodies(v, k) (v).body_order[k]
#define ROW_bonds(v, k) (v).bond_order[k]
#define ROW_contacts(v, k) (k)

/* 6 blocks a multiprocessor leave 85 registers a thread: without the second number ptxas aims lower and spills in
 * `block`. */
enum { BLOCK = 128, RESIDENT = 6, RESIDENT_OWN = 5, WAVES = 4, LEVEL_MAX = 8, ALIGN = 256 };

/* ---------------------------------------------------------------- kernels */

/* Rows of a range; those of a pass are as many as its results. */
#define FOR_ROWS(which)                                                       \
  const pabd_rows rows = d.counts->range[which];                              \
  const int32_t count = (which) == PABD_RANGE_pass ? d.to_count : rows.count; \
  for (int32_t k = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x); k < count; k += (int32_t)(gridDim.x * blockDim.x))

#define KERNEL(name, rows_of, reads, writes)                                                                         \
  static __global__ void __launch_bounds__(BLOCK, RESIDENT) grid_##name(pabd_view v, pabd_device d, int32_t which) { \
    FOR_ROWS(which) name##_at(ROW_##rows_of(v, rows.first + k), &v);                                                 \
  }
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
#define DEVICE_KERNEL(name, range)                              \
  static __global__ void __launch_bounds__(BLOCK, RESIDENT_OWN) \
      grid_##name(pabd_view v, pabd_device d, int32_t which) {  \
    FOR_ROWS(which) name##_row(rows.first + k, &v, &d);         \
  }
#include "device_kernels.def"
#undef DEVICE_KERNEL

typedef void (*grid_function)(pabd_view v, pabd_device d, int32_t which);

/* Numbers of the device's own kernels follow those of kernels.def. */
enum {
  DEVICE_FIRST = PABD_KERNEL_COUNT - 1,
#define DEVICE_KERNEL(name, range) D_##name,
#include "device_kernels.def"
#undef DEVICE_KERNEL
  ALL_KERNELS
};
static const struct {
  const char *name;
  grid_function grid;
  int32_t range; /* the one it usually runs over */
} table[ALL_KERNELS] = {
#define KERNEL(name, rows, reads, writes) {#name, grid_##name, PABD_RANGE_one},
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
#define DEVICE_KERNEL(name, range) {#name, grid_##name, PABD_RANGE_##range},
#include "device_kernels.def"
#undef DEVICE_KERNEL
};

/* ---------------------------------------------------------------- state */

typedef struct cuda_state {
  char *memory; /* device: counts, all fields, temporary memory of CUB */
  size_t bytes;
  pabd_view view;     /* pointers into memory */
  pabd_device device; /* the same */
  void *temporary;    /* of CUB, in memory */
  size_t temporary_bytes;
  pabd_counts *host_counts; /* page-locked: where counts are read back to */
  cudaStream_t stream;
  cudaGraphExec_t graph;
  int32_t width[PABD_RANGE_COUNT];     /* most rows that a range can have */
  int32_t grid_max;                    /* blocks that fill the device a few times */
  int32_t fetched_state, fetched_rows; /* 1: the host's copy is of this frame */
  unsigned char *load_active;          /* [load_count] loads in force on the device */
  /* per-kernel timing: events around each call, or NULL */
  struct call_time *times;
  pabd_error error;
} cuda_state;

/* What pabd_cuda_time_kernels collects: kernels by number, then sort, scan. */
typedef struct call_time {
  float ms[ALL_KERNELS + 2];
  int32_t calls[ALL_KERNELS + 2];
  cudaEvent_t begin, end;
} call_time;

static cuda_state *state_of(const pabd_sim *sim) {
  return (cuda_state *)sim->device_state;
}

static pabd_status cuda_fail(pabd_error *error, const char *what, cudaError_t code) {
  pabd_status status = code == cudaErrorMemoryAllocation ? PABD_ERR_MEMORY : PABD_ERR_UNAVAILABLE;
  return pabd_fail(error, status, "%s: %s", what, cudaGetErrorString(code));
}
#define CUDA_TRY(what, call)                                        \
  do {                                                              \
    cudaError_t code_ = (call);                                     \
    if (code_ != cudaSuccess) return cuda_fail(error, what, code_); \
  } while (0)

extern "C" int32_t pabd_cuda_kernel_count(void) {
  return ALL_KERNELS;
}
extern "C" const char *pabd_cuda_kernel_name(int32_t k) {
  return table[k].name;
}

extern "C" pabd_status pabd_cuda_probe(pabd_cuda_info *info, pabd_error *error) {
  int count = 0, driver = 0, runtime = 0;
  memset(info, 0, sizeof *info);
  cudaError_t code = cudaGetDeviceCount(&count);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  info->driver = driver, info->runtime = runtime;
  if (code == cudaErrorInsufficientDriver && driver > 0)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE,
                     "the CUDA driver is too old: it supports CUDA %d.%d, this needs %d.%d", driver / 1000,
                     driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  if (code == cudaErrorInsufficientDriver || code == cudaErrorNoDevice || (code == cudaSuccess && count == 0))
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "no CUDA device%s", driver == 0 ? " (no driver)" : "");
  if (code != cudaSuccess) return cuda_fail(error, "no CUDA device", code);
  cudaDeviceProp properties;
  CUDA_TRY("no properties of the CUDA device", cudaGetDeviceProperties(&properties, 0));
  snprintf(info->name, sizeof info->name, "%s", properties.name);
  info->major = properties.major, info->minor = properties.minor;
  info->multiprocessors = properties.multiProcessorCount;
  info->memory = (int64_t)properties.totalGlobalMem;
  if (10 * properties.major + properties.minor < 75)
    return pabd_fail(error, PABD_ERR_UNAVAILABLE, "%s has compute capability %d.%d; at least 7.5 is needed",
                     properties.name, properties.major, properties.minor);
  return PABD_OK;
}

/* ---------------------------------------------------------------- memory */

/* Rows of a reduction's levels: n values, then a PABD_REDUCE-th of them, ... down to one. Returns all rows. */
static int32_t reduce_rows(int32_t n, int32_t *level_rows, int32_t *levels) {
  int32_t sum = 0, count = 0;
  do {
    n = (n + PABD_REDUCE - 1) / PABD_REDUCE;
    if (n < 1) n = 1;
    if (level_rows) level_rows[count] = n;
    ++count;
    sum += n;
  } while (n > 1);
  if (levels) *levels = count;
  return sum;
}

typedef struct sizes {
#define X(name) int32_t capacity_##name;
  PABD_ROWS_LIST(X)
#undef X
  int32_t capacity_partial, capacity_fixed, capacity_fixed_plus1, capacity_shape_plus1, capacity_pair_plus1;
  int32_t summary_rows; /* values of the largest list that the summary folds */
} sizes;

static int32_t largest_of(int32_t a, int32_t b) {
  return a > b ? a : b;
}
static sizes sizes_of(const pabd_sim *sim, int32_t fixed_count) {
  sizes z;
#define X(name) z.capacity_##name = sim->capacity_##name;
  PABD_ROWS_LIST(X)
#undef X
  z.summary_rows = largest_of(sim->capacity_body, largest_of(sim->capacity_contact, sim->capacity_bond));
  z.capacity_partial = reduce_rows(largest_of(z.summary_rows, sim->capacity_shape), NULL, NULL);
  z.capacity_fixed = fixed_count > 0 ? fixed_count : 1;
  z.capacity_fixed_plus1 = fixed_count + 1;
  z.capacity_shape_plus1 = sim->capacity_shape + 1;
  z.capacity_pair_plus1 = sim->capacity_pair + 1;
  return z;
}

/* Takes `bytes` from the block; with the stand-in they end at an unmapped page. Returns their place. */
static size_t place(char *base, size_t *at, size_t bytes) {
  size_t alignment = ALIGN;
#ifdef PABD_STANDIN
  size_t page = 4096, begin = *at;
  alignment = 64;
  size_t end = (begin + bytes + page - 1) / page * page; /* a page boundary, relative to a base on one */
  size_t from = (end - bytes) / alignment * alignment;
  if (base) standin_gap(base + end, page);
  *at = end + page;
  return from;
#else
  (void)base;
  size_t from = *at;
  *at = (from + bytes + alignment - 1) / alignment * alignment;
  return from;
#endif
}

/* Total size; with a base the pointers are set as well. */
static size_t carve(char *base, const sizes *z, cuda_state *s) {
  size_t at = 0;
#define DEVICE_FIELD(type, name, rows, planes, unit, writer)                              \
  {                                                                                       \
    size_t from = place(base, &at, sizeof(type) * (size_t)z->capacity_##rows * (planes)); \
    if (base) s->device.name = (type *)(void *)(base + from);                             \
  }
#define FIELD(type, name, rows, planes, unit, writer)                                     \
  {                                                                                       \
    size_t from = place(base, &at, sizeof(type) * (size_t)z->capacity_##rows * (planes)); \
    if (base) s->view.name = (type *)(void *)(base + from);                               \
  }
#include "device_fields.def"
#include "fields.def"
#undef FIELD
#undef DEVICE_FIELD
  size_t from = place(base, &at, sizeof(pabd_counts));
  if (base) s->device.counts = (pabd_counts *)(void *)(base + from);
  from = place(base, &at, s->temporary_bytes);
  if (base) s->temporary = base + from;
  return at;
}

/* Copies every field of the view up or down. */
static pabd_status copy_fields(const pabd_sim *sim, cudaMemcpyKind kind, pabd_error *error) {
  cuda_state *s = state_of(sim);
#define FIELD(type, name, rows, planes, unit, writer)                                           \
  {                                                                                             \
    size_t bytes = sizeof(type) * (size_t)sim->capacity_##rows * (planes);                      \
    CUDA_TRY("copy of the state", kind == cudaMemcpyHostToDevice                                \
                                      ? cudaMemcpy(s->view.name, sim->view.name, bytes, kind)   \
                                      : cudaMemcpy(sim->view.name, s->view.name, bytes, kind)); \
  }
#include "fields.def"
#undef FIELD
  return PABD_OK;
}

/* ---------------------------------------------------------------- calls */

static pabd_status timed_begin(cuda_state *s, pabd_error *error) {
  if (s->times) CUDA_TRY("timing", cudaEventRecord(s->times->begin, s->stream));
  return PABD_OK;
}
static pabd_status timed_end(cuda_state *s, int32_t slot, pabd_error *error) {
  if (!s->times) return PABD_OK;
  float ms = 0;
  CUDA_TRY("timing", cudaEventRecord(s->times->end, s->stream));
  CUDA_TRY("timing", cudaStreamSynchronize(s->stream));
  CUDA_TRY("timing", cudaEventElapsedTime(&ms, s->times->begin, s->times->end));
  s->times->ms[slot] += ms;
  s->times->calls[slot] += 1;
  return PABD_OK;
}

static pabd_status launch_pass(cuda_state *s, int32_t k, int32_t which, int32_t rows, const pabd_device *d,
                               pabd_error *error) {
  int32_t blocks = (rows + BLOCK - 1) / BLOCK;
  if (blocks < 1) return PABD_OK; /* the range is always empty */
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(blocks < s->grid_max ? blocks : s->grid_max));
  config.blockDim = dim3(BLOCK);
  config.stream = s->stream;
  PABD_TRY(timed_begin(s, error));
  CUDA_TRY(table[k].name, cudaLaunchKernelEx(&config, table[k].grid, s->view, *d, which));
  return timed_end(s, k, error);
}
static pabd_status launch(cuda_state *s, int32_t k, int32_t which, pabd_error *error) {
  return launch_pass(s, k, which, s->width[which], &s->device, error);
}
/* A kernel of the device's own, over its usual range. */
static pabd_status run(cuda_state *s, int32_t k, pabd_error *error) {
  return launch(s, k, table[k].range, error);
}

/* All levels of a reduction of n values. Leaves device.to at the place of the result. */
static pabd_status reduce(cuda_state *s, int32_t k, int32_t n, pabd_error *error) {
  int32_t rows[LEVEL_MAX], levels = 0, from = -1, from_count = n, to = 0;
  reduce_rows(n, rows, &levels);
  for (int32_t level = 0; level < levels; ++level) {
    pabd_device d = s->device;
    d.from = from, d.from_count = from_count, d.to = to, d.to_count = rows[level];
    PABD_TRY(launch_pass(s, k, PABD_RANGE_pass, rows[level], &d, error));
    from = to, from_count = rows[level];
    s->device.to = to;
    to += rows[level];
  }
  return PABD_OK;
}

static pabd_status scan(cuda_state *s, const int32_t *in, int32_t *out, int32_t count, pabd_error *error) {
  PABD_TRY(timed_begin(s, error));
  CUDA_TRY("scan", pabd_cuda_scan(s->temporary, s->temporary_bytes, in, out, count, s->stream));
  return timed_end(s, ALL_KERNELS + 1, error);
}
/* By the bits [0, low_bits) and then [high, high + high_bits), by way of scratch[count]. */
static pabd_status sort(cuda_state *s, uint64_t *keys, uint64_t *scratch, int32_t count, int32_t low_bits, int32_t high,
                        int32_t high_bits, pabd_error *error) {
  PABD_TRY(timed_begin(s, error));
  CUDA_TRY("sort", pabd_cuda_sort(s->temporary, s->temporary_bytes, keys, scratch, count, low_bits, high, high_bits,
                                  s->stream));
  return timed_end(s, ALL_KERNELS, error);
}
/* Temporary memory for the longest scan and the longest sort. */
static pabd_status size_temporary(const pabd_sim *sim, const sizes *z, size_t *bytes, pabd_error *error) {
  int32_t scanned = largest_of(largest_of(z->capacity_shape_plus1, z->capacity_pair_plus1),
                               largest_of(z->capacity_body_plus1, z->capacity_fixed_plus1));
  CUDA_TRY("scan and sort",
           pabd_cuda_temporary_bytes(scanned, largest_of(sim->capacity_shape, sim->capacity_pair), bytes));
  return PABD_OK;
}

/* ---------------------------------------------------------------- a frame */

static pabd_status collide(const pabd_sim *sim, cuda_state *s, pabd_error *error) {
  pabd_view *v = &s->view;
  pabd_device *d = &s->device;
  int32_t shapes = v->shape_count;
  PABD_TRY(run(s, D_bounds, error));
  PABD_TRY(reduce(s, D_reduce_bounds, shapes, error));
  PABD_TRY(run(s, D_begin_keys, error));
  PABD_TRY(run(s, D_fixed_large, error));
  PABD_TRY(scan(s, d->fixed_large, d->fixed_rank, d->fixed_count + 1, error));
  PABD_TRY(run(s, D_fixed_big, error));
  PABD_TRY(scan(s, d->fixed_big, d->fixed_place, d->fixed_count + 1, error));
  PABD_TRY(run(s, D_big_keys, error));
  PABD_TRY(run(s, D_leaf_keys, error));
  /* one bit more than the keys have: PABD_NO_KEY comes last */
  int32_t bits = v->shape_bits + v->world_bits + 3 * v->morton_bits + 1, low = bits / 2;
  PABD_TRY(sort(s, v->morton, v->sort_key, shapes, low, low, bits - low, error));
  PABD_TRY(run(s, D_end_keys, error));
  PABD_TRY(run(s, D_build_nodes, error));
  PABD_TRY(run(s, D_refit_climb, error));
  PABD_TRY(run(s, D_count_pairs, error));
  PABD_TRY(scan(s, d->leaf_hits, d->leaf_offset, shapes + 1, error));
  PABD_TRY(run(s, D_end_count, error));
  PABD_TRY(run(s, D_fill_pairs, error));
  PABD_TRY(run(s, D_pad_pairs, error));
  /* the low shape of a key is below the high one, so its bits are never all ones: PABD_NO_KEY comes last */
  bits = v->shape_bits > 0 ? v->shape_bits : 1;
  PABD_TRY(sort(s, v->pair_key, v->pair_scratch, sim->capacity_pair, bits, 32, bits, error));
  return run(s, D_narrow, error);
}

static pabd_status fill_rows(const pabd_sim *sim, cuda_state *s, pabd_error *error) {
  pabd_device *d = &s->device;
  PABD_TRY(run(s, D_pair_points, error));
  PABD_TRY(scan(s, d->pair_points, d->pair_offset, sim->capacity_pair + 1, error));
  PABD_TRY(run(s, D_pair_first, error));
  PABD_TRY(run(s, D_link_clear, error));
  PABD_TRY(run(s, D_link_pairs, error));
  PABD_TRY(run(s, D_body_free, error));
  PABD_TRY(scan(s, d->body_free, d->body_rank, s->view.body_count + 1, error));
  PABD_TRY(run(s, D_body_order, error));
  PABD_TRY(run(s, D_contact_fill, error));
  PABD_TRY(run(s, D_count_ends, error));
  PABD_TRY(scan(s, d->end_count, s->view.end_first, s->view.body_count + 1, error));
  PABD_TRY(run(s, D_begin_ends, error));
  PABD_TRY(run(s, D_place_ends, error));
  return run(s, D_sort_ends, error);
}

static pabd_status sweep_substep(const pabd_sim *sim, cuda_state *s, int32_t substep, int32_t summary_rows,
                                 pabd_error *error) {
  const pabd_params *p = &sim->params;
  int early = p->tolerance > 0.0;
  if (early) PABD_TRY(run(s, D_begin_sweeps, error));
  int32_t bodies = early ? PABD_RANGE_sweep_bodies : PABD_RANGE_jacobi;
  int32_t contacts = early ? PABD_RANGE_sweep_contacts : PABD_RANGE_contacts;
  int32_t bonds = early ? PABD_RANGE_sweep_bonds : PABD_RANGE_bonds;
  for (int32_t sweep = 0; sweep < p->sweeps; ++sweep) {
    int dual = p->multipliers && sweep > 0 && sweep % p->dual_period == 0;
    s->view.report_now = early || (sweep + 1 == p->sweeps && substep + 1 == p->substeps);
    PABD_TRY(launch(s, dual ? PABD_K_contact_dual : PABD_K_contact_force, contacts, error));
    PABD_TRY(launch(s, dual ? PABD_K_bond_dual : PABD_K_bond_force, bonds, error));
    PABD_TRY(launch(s, PABD_K_body_sweep, bodies, error));
    if (!early) continue;
    PABD_TRY(reduce(s, D_reduce_summary, summary_rows, error));
    PABD_TRY(run(s, D_end_sweep, error));
  }
  return PABD_OK;
}

static pabd_status jacobi_substep(const pabd_sim *sim, cuda_state *s, int32_t substep, int32_t summary_rows,
                                  pabd_error *error) {
  const pabd_params *p = &sim->params;
  substep_begin(&s->view, substep, p->substeps);
  /* free bodies are predicted and moved with the others: they have the same substeps */
  PABD_TRY(launch(s, PABD_K_predict, PABD_RANGE_predict, error));
  PABD_TRY(launch(s, PABD_K_contact_begin, PABD_RANGE_contacts, error));
  PABD_TRY(launch(s, PABD_K_bond_begin, PABD_RANGE_bonds, error));
  PABD_TRY(launch(s, PABD_K_block, PABD_RANGE_jacobi, error));
  PABD_TRY(sweep_substep(sim, s, substep, summary_rows, error));
  PABD_TRY(launch(s, PABD_K_update, PABD_RANGE_dynamic, error));
  if (!p->multipliers) return PABD_OK;
  if (p->relax_sweeps > 0) {
    PABD_TRY(launch(s, PABD_K_relax_begin, PABD_RANGE_contacts, error));
    PABD_TRY(launch(s, PABD_K_relax_block, PABD_RANGE_jacobi, error));
    for (int32_t sweep = 0; sweep < p->relax_sweeps; ++sweep) {
      PABD_TRY(launch(s, PABD_K_relax_contact, PABD_RANGE_contacts, error));
      PABD_TRY(launch(s, PABD_K_relax_body, PABD_RANGE_jacobi, error));
    }
    PABD_TRY(launch(s, PABD_K_relax_contact, PABD_RANGE_contacts, error));
  }
  PABD_TRY(launch(s, PABD_K_bond_dual, PABD_RANGE_bonds, error));
  if (p->relax_sweeps == 0) PABD_TRY(launch(s, PABD_K_contact_dual, PABD_RANGE_contacts, error));
  return PABD_OK;
}

/* The work of a frame, in the order of pabd_sim_step. */
static pabd_status queue_frame(const pabd_sim *sim, cuda_state *s, pabd_error *error) {
  sizes z = sizes_of(sim, s->device.fixed_count);
  s->view.h = s->view.h_frame;
  PABD_TRY(launch(s, PABD_K_frame_begin, PABD_RANGE_bodies, error));
  PABD_TRY(run(s, D_decay, error));
  PABD_TRY(collide(sim, s, error));
  PABD_TRY(fill_rows(sim, s, error));
  for (int32_t substep = 0; substep < sim->params.substeps; ++substep)
    PABD_TRY(jacobi_substep(sim, s, substep, z.summary_rows, error));
  PABD_TRY(run(s, D_kinematic, error));
  PABD_TRY(run(s, D_contact_save, error));
  PABD_TRY(reduce(s, D_reduce_summary, z.summary_rows, error));
  return run(s, D_end_frame, error);
}

/* ---------------------------------------------------------------- attaching */

static pabd_status check_settings(const pabd_sim *sim, pabd_error *error) {
  const pabd_params *p = &sim->params;
  if (p->global_step != PABD_STEP_JACOBI)
    return pabd_fail(error, PABD_ERR_UNSUPPORTED, "the device has global_step = jacobi only");
  if (p->acceleration != PABD_ACCEL_NONE)
    return pabd_fail(error, PABD_ERR_UNSUPPORTED, "the device has acceleration = none only");
  /* bounces are taken one contact after another (restitution.c) */
  for (int32_t k = 0; k < sim->capacity_material2; ++k)
    if (sim->view.restitution[k] > R(0)) return pabd_fail(error, PABD_ERR_UNSUPPORTED, "the device has no restitution");
  return PABD_OK;
}

static int compare_keys(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Lists that stay: immovable shapes, ranks of movable bodies, bonds with something to solve. */
static pabd_status fill_fixed(pabd_sim *sim, cuda_state *s, pabd_counts *counts, pabd_error *error) {
  const pabd_view *v = &sim->view;
  pabd_device *d = &s->device;
  int32_t n = v->body_count, shapes = v->shape_count, fixed = 0;
  size_t room = (size_t)n + 3 * (size_t)shapes + 1;
  int32_t *rank = (int32_t *)calloc(room, sizeof(int32_t)), *shape = rank + n, *sorted = shape + shapes;
  int32_t *zero = sorted + shapes;
  uint64_t *keys = (uint64_t *)calloc((size_t)shapes + 1, sizeof(uint64_t));
  if (!rank || !keys) {
    free(rank), free(keys);
    return pabd_fail(error, PABD_ERR_MEMORY, "no memory for the lists of a device");
  }
  int32_t movable = 0;
  for (int32_t i = 0; i < n; ++i) {
    rank[i] = movable;
    movable += v->motion[i] == PABD_DYNAMIC;
  }
  for (int32_t i = 0; i < shapes; ++i) {
    if (v->shape_kind[i] != PABD_PLANE && v->motion[v->shape_body[i]] == PABD_DYNAMIC) continue;
    /* places in the list ascend with the shapes, so world and place sort as world and shape do */
    keys[fixed] = (uint64_t)v->body_world[v->shape_body[i]] << 32 | (uint64_t)fixed;
    shape[fixed++] = i;
  }
  qsort(keys, (size_t)fixed, sizeof *keys, compare_keys);
  for (int32_t k = 0; k < fixed; ++k) sorted[k] = (int32_t)(keys[k] & 0xffffffffu);
  free(keys);
  int32_t bonds = 0;
  for (int32_t j = 0; j < v->bond_count; ++j)
    if ((v->bond_a[j] >= 0 && v->motion[v->bond_a[j]] == PABD_DYNAMIC) || v->motion[v->bond_b[j]] == PABD_DYNAMIC)
      sim->view.bond_order[bonds++] = j;
  cudaError_t code = cudaMemcpy(d->dynamic_rank, rank, sizeof *rank * (size_t)n, cudaMemcpyHostToDevice);
  if (code == cudaSuccess && fixed > 0)
    code = cudaMemcpy(d->fixed_shape, shape, sizeof *shape * (size_t)fixed, cudaMemcpyHostToDevice);
  if (code == cudaSuccess && fixed > 0)
    code = cudaMemcpy(d->fixed_sorted, sorted, sizeof *sorted * (size_t)fixed, cudaMemcpyHostToDevice);
  if (code == cudaSuccess && shapes > 0)
    code = cudaMemcpy(d->shape_big, zero, sizeof *zero * (size_t)shapes, cudaMemcpyHostToDevice);
  free(rank);
  if (code != cudaSuccess) return cuda_fail(error, "copy of the lists of a device", code);

  memset(counts, 0, sizeof *counts);
  const struct {
    pabd_device_range which;
    int32_t first, count, width;
  } ranges[] = {{PABD_RANGE_one, 0, 1, 1},
                {PABD_RANGE_bodies, 0, n, n},
                {PABD_RANGE_bodies_plus1, 0, n + 1, n + 1},
                {PABD_RANGE_shapes, 0, shapes, shapes},
                {PABD_RANGE_shapes_plus1, 0, shapes + 1, shapes + 1},
                {PABD_RANGE_bonds_all, 0, v->bond_count, v->bond_count},
                {PABD_RANGE_bonds, 0, bonds, bonds},
                {PABD_RANGE_pairs_capacity, 0, sim->capacity_pair, sim->capacity_pair},
                {PABD_RANGE_pairs_plus1, 0, sim->capacity_pair + 1, sim->capacity_pair + 1},
                {PABD_RANGE_fixed_bodies, movable, n - movable, n - movable},
                {PABD_RANGE_fixed_plus1, 0, fixed + 1, fixed + 1},
                {PABD_RANGE_pass, 0, 0, 0}, /* cut by each pass */
                {PABD_RANGE_leaves, 0, 0, shapes},
                {PABD_RANGE_nodes, 0, 0, shapes > 1 ? shapes - 1 : 0},
                {PABD_RANGE_pairs, 0, 0, sim->capacity_pair},
                {PABD_RANGE_contacts, 0, 0, sim->capacity_contact},
                {PABD_RANGE_predict, 0, 0, n},
                {PABD_RANGE_dynamic, 0, movable, movable},
                {PABD_RANGE_jacobi, 0, 0, movable},
                {PABD_RANGE_sweep_bodies, 0, 0, movable},
                {PABD_RANGE_sweep_contacts, 0, 0, sim->capacity_contact},
                {PABD_RANGE_sweep_bonds, 0, 0, bonds}};
  static_assert(sizeof ranges / sizeof *ranges == PABD_RANGE_COUNT, "every range has a start");
  for (int32_t k = 0; k < PABD_RANGE_COUNT; ++k) {
    counts->range[ranges[k].which].first = ranges[k].first;
    counts->range[ranges[k].which].count = ranges[k].count;
    s->width[ranges[k].which] = ranges[k].width;
  }
  d->dynamic_count = movable;
  sim->stats.dynamic_count = movable;
  return PABD_OK;
}

static void release(cuda_state *s) {
  if (!s) return;
  if (s->graph) cudaGraphExecDestroy(s->graph);
  if (s->stream) cudaStreamDestroy(s->stream);
  if (s->memory) cudaFree(s->memory);
  if (s->host_counts) cudaFreeHost(s->host_counts);
  free(s->load_active);
  free(s);
}

static pabd_status capture(const pabd_sim *sim, cuda_state *s, pabd_error *error) {
  CUDA_TRY("graph of a frame", cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal));
  pabd_status status = queue_frame(sim, s, error);
  cudaGraph_t graph = NULL;
  cudaError_t code = cudaStreamEndCapture(s->stream, &graph);
  if (status == PABD_OK && code == cudaSuccess) code = cudaGraphInstantiate(&s->graph, graph, 0);
  if (graph) cudaGraphDestroy(graph);
  if (status != PABD_OK) return status;
  return code == cudaSuccess ? PABD_OK : cuda_fail(error, "graph of a frame", code);
}

static pabd_status prepare(pabd_sim *sim, cuda_state *s, pabd_error *error) {
  pabd_view *v = &sim->view;
  pabd_cuda_info info;
  PABD_TRY(check_settings(sim, error));
  PABD_TRY(pabd_cuda_probe(&info, error));
  s->grid_max = info.multiprocessors * RESIDENT * WAVES;
  int32_t fixed = 0, world_max = 0;
  for (int32_t i = 0; i < v->shape_count; ++i) {
    int32_t body = v->shape_body[i];
    fixed += v->shape_kind[i] == PABD_PLANE || v->motion[body] != PABD_DYNAMIC;
    if (v->body_world[body] > world_max) world_max = v->body_world[body];
  }
  key_layout(v, world_max);
  s->device.fixed_count = fixed, s->device.world_count = world_max + 1;
  s->device.capacity_pair = sim->capacity_pair;
  s->device.tolerance = sim->params.tolerance;

  sizes z = sizes_of(sim, fixed);
  PABD_TRY(size_temporary(sim, &z, &s->temporary_bytes, error));
  s->bytes = carve(NULL, &z, s);
  cudaError_t code = cudaMalloc((void **)&s->memory, s->bytes);
  if (code != cudaSuccess) {
    s->memory = NULL;
    cudaGetLastError(); /* not to be met again by the next call */
    return code == cudaErrorMemoryAllocation
               ? pabd_fail(error, PABD_ERR_MEMORY, "no %.1f MB of memory on %s (it has %.1f MB in all)",
                           1e-6 * (double)s->bytes, info.name, 1e-6 * (double)info.memory)
               : cuda_fail(error, "memory of the device", code);
  }
  CUDA_TRY("page-locked memory", cudaMallocHost((void **)&s->host_counts, sizeof *s->host_counts));
  CUDA_TRY("stream", cudaStreamCreate(&s->stream));
  s->load_active = (unsigned char *)calloc((size_t)sim->load_count + 1, 1);
  if (!s->load_active) return pabd_fail(error, PABD_ERR_MEMORY, "no memory for the loads of a device");

  s->view = *v;
  carve(s->memory, &z, s);
  pabd_counts counts;
  PABD_TRY(fill_fixed(sim, s, &counts, error));
  PABD_TRY(copy_fields(sim, cudaMemcpyHostToDevice, error));
  CUDA_TRY("copy of the counts", cudaMemcpy(s->device.counts, &counts, sizeof counts, cudaMemcpyHostToDevice));
  return capture(sim, s, error);
}

static pabd_status device_step(pabd_sim *sim);
static pabd_status device_fetch(pabd_sim *sim, int32_t contacts);
static void device_destroy(pabd_sim *sim) {
  release(state_of(sim));
  sim->device = NULL, sim->device_state = NULL;
}
static const pabd_device_ops operations = {device_step, device_fetch, device_destroy};

extern "C" pabd_status pabd_cuda_attach(pabd_sim *sim, pabd_error *error) {
  cuda_state *s = (cuda_state *)calloc(1, sizeof *s);
  if (!s) return pabd_fail(error, PABD_ERR_MEMORY, "no memory for a device's state");
  sim->device_state = s;
  pabd_status status = prepare(sim, s, error);
  if (status != PABD_OK) {
    device_destroy(sim);
    return status;
  }
  sim->device = &operations;
  sim->stats.bytes = (int64_t)s->bytes;
  return PABD_OK;
}

/* ---------------------------------------------------------------- stepping */

/* Loads go up only in frames in which one begins or ends. */
static pabd_status update_loads(pabd_sim *sim, cuda_state *s, pabd_error *error) {
  int changed = 0;
  double middle = sim->time + 0.5 * (double)sim->view.h_frame;
  for (int32_t l = 0; l < sim->load_count; ++l) {
    unsigned char active = !(middle < sim->loads[l].start || middle >= sim->loads[l].end);
    changed |= active != s->load_active[l];
    s->load_active[l] = active;
  }
  if (!changed) return PABD_OK;
  pabd_apply_loads(sim);
  size_t bytes = sizeof(vec3) * (size_t)sim->view.body_count;
  CUDA_TRY("copy of the loads", cudaStreamSynchronize(s->stream));
  CUDA_TRY("copy of the loads", cudaMemcpy(s->view.load_force, sim->view.load_force, bytes, cudaMemcpyHostToDevice));
  CUDA_TRY("copy of the loads", cudaMemcpy(s->view.load_torque, sim->view.load_torque, bytes, cudaMemcpyHostToDevice));
  return PABD_OK;
}

extern "C" pabd_status pabd_cuda_enqueue_frame(pabd_sim *sim, int32_t graph, pabd_error *error) {
  cuda_state *s = state_of(sim);
  PABD_TRY(update_loads(sim, s, error));
  if (graph)
    CUDA_TRY("launch of a frame", cudaGraphLaunch(s->graph, s->stream));
  else
    PABD_TRY(queue_frame(sim, s, error));
  s->fetched_state = s->fetched_rows = 0;
  sim->frame += 1;
  sim->time = (double)sim->frame * (double)sim->view.h_frame;
  return PABD_OK;
}

extern "C" pabd_status pabd_cuda_wait(pabd_sim *sim, pabd_error *error) {
  CUDA_TRY("device", cudaStreamSynchronize(state_of(sim)->stream));
  CUDA_TRY("device", cudaGetLastError());
  return PABD_OK;
}

extern "C" pabd_status pabd_cuda_read_stats(pabd_sim *sim, pabd_error *error) {
  cuda_state *s = state_of(sim);
  CUDA_TRY("copy of the counts", cudaMemcpyAsync(s->host_counts, s->device.counts, sizeof *s->host_counts,
                                                 cudaMemcpyDeviceToHost, s->stream));
  PABD_TRY(pabd_cuda_wait(sim, error));
  const pabd_counts *c = s->host_counts;
  const pabd_params *p = &sim->params;
  pabd_stats *stats = &sim->stats;
  pabd_clear_stats(sim);
  stats->pair_count = c->pair_count, stats->contact_count = c->contact_count;
  stats->overflow_pairs = c->overflow_pairs, stats->overflow_contacts = c->overflow_contacts;
  stats->contact_closed_count = c->summary.closed;
  stats->bodies_free = c->free_count, stats->bodies_jacobi = c->jacobi_count;
  stats->residual = (double)c->summary.residual, stats->rigidity_defect = (double)c->summary.defect;
  stats->bond_error = (double)c->summary.bond_error;
  if (c->jacobi_count > 0) stats->sweeps = p->tolerance > 0.0 ? c->sweeps : p->substeps * p->sweeps;
  int32_t passes = !p->multipliers ? 0 : p->relax_sweeps > 0 ? p->relax_sweeps + 1 : 1;
  stats->contact_evaluations = (int64_t)c->contact_count * (stats->sweeps + (int64_t)p->substeps * passes);
  stats->diverged_body = c->summary.lost < INT32_MAX ? c->summary.lost : -1;
  sim->view.contact_count = c->contact_count, sim->view.pair_count = c->pair_count;
  sim->view.old_count = c->old_count;
  return stats->diverged_body >= 0 ? PABD_DIVERGED : PABD_OK;
}

static pabd_status device_step(pabd_sim *sim) {
  cuda_state *s = state_of(sim);
  s->error.text[0] = '\0';
  PABD_TRY(pabd_cuda_enqueue_frame(sim, 1, &s->error));
  return pabd_cuda_read_stats(sim, &s->error);
}

extern "C" const char *pabd_device_error(const pabd_sim *sim) {
  return sim->device ? state_of(sim)->error.text : "";
}
extern "C" pabd_status pabd_device_probe(char *name, int32_t size, pabd_error *error) {
  pabd_cuda_info info;
  pabd_status status = pabd_cuda_probe(&info, error);
  snprintf(name, (size_t)size, "%s", info.name[0] ? info.name : "none");
  return status;
}
extern "C" pabd_status pabd_device_attach(pabd_sim *sim, pabd_error *error) {
  return pabd_cuda_attach(sim, error);
}

extern "C" pabd_status pabd_cuda_download(pabd_sim *sim, pabd_error *error) {
  PABD_TRY(pabd_cuda_wait(sim, error));
  return copy_fields(sim, cudaMemcpyDeviceToHost, error);
}

/* State of bodies, and contact rows where they are wanted, once a frame at most. */
static pabd_status device_fetch(pabd_sim *sim, int32_t contacts) {
  cuda_state *s = state_of(sim);
  pabd_error *error = &s->error;
  if (!s->fetched_state) {
    PABD_TRY(pabd_cuda_wait(sim, error));
    size_t n = (size_t)sim->view.body_count;
    CUDA_TRY("copy of the state", cudaMemcpy(sim->view.pos, s->view.pos, sizeof(vec3) * n, cudaMemcpyDeviceToHost));
    CUDA_TRY("copy of the state", cudaMemcpy(sim->view.rot, s->view.rot, sizeof(quat) * n, cudaMemcpyDeviceToHost));
    CUDA_TRY("copy of the state", cudaMemcpy(sim->view.vel, s->view.vel, sizeof(vec3) * n, cudaMemcpyDeviceToHost));
    CUDA_TRY("copy of the state", cudaMemcpy(sim->view.omega, s->view.omega, sizeof(vec3) * n, cudaMemcpyDeviceToHost));
    s->fetched_state = 1;
  }
  if (!contacts || s->fetched_rows) return PABD_OK;
  pabd_status status = pabd_cuda_read_stats(sim, error);
  if (status != PABD_OK && status != PABD_DIVERGED) return status;
  PABD_TRY(copy_fields(sim, cudaMemcpyDeviceToHost, error));
  s->fetched_rows = 1;
  return PABD_OK;
}

/* ---------------------------------------------------------------- measuring */

extern "C" pabd_status pabd_cuda_time_kernels(pabd_sim *sim, float *ms, int32_t *calls, float *sort_ms, float *scan_ms,
                                              pabd_error *error) {
  cuda_state *s = state_of(sim);
  call_time times;
  memset(&times, 0, sizeof times);
  CUDA_TRY("timing", cudaEventCreate(&times.begin));
  cudaError_t code = cudaEventCreate(&times.end);
  if (code != cudaSuccess) {
    cudaEventDestroy(times.begin);
    return cuda_fail(error, "timing", code);
  }
  s->times = &times;
  pabd_status status = pabd_cuda_enqueue_frame(sim, 0, error);
  if (status == PABD_OK) status = pabd_cuda_wait(sim, error);
  s->times = NULL;
  cudaEventDestroy(times.begin);
  cudaEventDestroy(times.end);
  memcpy(ms, times.ms, sizeof *ms * ALL_KERNELS);
  memcpy(calls, times.calls, sizeof *calls * ALL_KERNELS);
  *sort_ms = times.ms[ALL_KERNELS], *scan_ms = times.ms[ALL_KERNELS + 1];
  return status;
}

static pabd_status time_copies(char *memory, int64_t bytes, cudaEvent_t begin, cudaEvent_t end, double *bytes_per_s,
                               pabd_error *error) {
  float best = 0;
  for (int round = 0; round < 8; ++round) {
    float ms = 0;
    CUDA_TRY("copy", cudaEventRecord(begin, 0));
    CUDA_TRY("copy", cudaMemcpyAsync(memory + bytes, memory, (size_t)bytes, cudaMemcpyDeviceToDevice, 0));
    CUDA_TRY("copy", cudaEventRecord(end, 0));
    CUDA_TRY("copy", cudaDeviceSynchronize());
    CUDA_TRY("copy", cudaEventElapsedTime(&ms, begin, end));
    if (round > 1 && (best == 0 || ms < best)) best = ms;
  }
  *bytes_per_s = best > 0 ? 2.0 * (double)bytes / (1e-3 * (double)best) : 0.0;
  return PABD_OK;
}

extern "C" pabd_status pabd_cuda_copy_bandwidth(int64_t bytes, double *bytes_per_s, pabd_error *error) {
  char *memory = NULL;
  cudaEvent_t begin = NULL, end = NULL;
  CUDA_TRY("memory for a copy", cudaMalloc((void **)&memory, 2 * (size_t)bytes));
  cudaError_t code = cudaMemsetAsync(memory, 0, 2 * (size_t)bytes, 0);
  if (code == cudaSuccess) code = cudaEventCreate(&begin);
  if (code == cudaSuccess) code = cudaEventCreate(&end);
  pabd_status status =
      code == cudaSuccess ? time_copies(memory, bytes, begin, end, bytes_per_s, error) : cuda_fail(error, "copy", code);
  if (end) cudaEventDestroy(end);
  if (begin) cudaEventDestroy(begin);
  cudaFree(memory);
  return status;
}
