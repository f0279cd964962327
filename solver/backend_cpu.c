/* CPU launchers of every kernel of kernels.def (OpenMP).
 *
 * Rows of `bodies` go through body_order and of `bonds` through bond_order, so a launch covers one class of islands;
 * all other rows are taken as they are. Each row writes only itself, so neither the number of threads nor the order can
 * change a bit. */
#include <omp.h>

#include "jacobi_kernels.h"
#include "state.h"

#define ROW_bodies(v, k) (v).body_order[k]
#define ROW_bonds(v, k) (v).bond_order[k]
#define ROW_contacts(v, k) (k)

/* The view is copied to the stack so that the compiler sees that no store can change its pointers. */
#define KERNEL(name, rows, reads, writes)                                                                             \
  static void cpu_##name(int32_t first, int32_t count, const pabd_view *view, int32_t threads) {                      \
    const pabd_view v = *view;                                                                                        \
    if (threads <= 1 || count < 64) {                                                                                 \
      for (int32_t k = first; k < first + count; ++k) name##_at(ROW_##rows(v, k), &v);                                \
      return;                                                                                                         \
    }                                                                                                                 \
    _Pragma("omp parallel for schedule(static) num_threads(threads)") for (int32_t k = first; k < first + count; ++k) \
        name##_at(ROW_##rows(v, k), &v);                                                                              \
  }
#define SIMD_KERNEL(name, rows, reads, writes)                                                                        \
  __attribute__((flatten)) static void cpu_##name(int32_t first, int32_t count, const pabd_view *view,                \
                                                  int32_t threads) {                                                  \
    const pabd_view v = *view;                                                                                        \
    if (threads <= 1 || count < 256) {                                                                                \
      _Pragma("omp simd") for (int32_t k = first; k < first + count; ++k) name##_at(ROW_##rows(v, k), &v);            \
      return;                                                                                                         \
    }                                                                                                                 \
    _Pragma("omp parallel for simd schedule(static) num_threads(threads)") for (int32_t k = first; k < first + count; \
                                                                                ++k) name##_at(ROW_##rows(v, k), &v); \
  }
#include "kernels.def"
#undef KERNEL
#undef SIMD_KERNEL

typedef void (*launcher)(int32_t first, int32_t count, const pabd_view *view, int32_t threads);
static const struct {
  const char *name;
  launcher launch;
  void (*row)(int32_t i, const pabd_view *view);
} kernels[PABD_KERNEL_COUNT] = {
#define KERNEL(name, rows, reads, writes) {#name, cpu_##name, name##_at},
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
};

void pabd_launch(pabd_sim *sim, pabd_kernel k, int32_t first, int32_t count) {
  if (count <= 0) return;
  double begin = pabd_stage_begin(sim);
  kernels[k].launch(first, count, &sim->view, sim->params.threads);
  pabd_stage_end(sim, kernels[k].name, 0, begin);
}

const char *pabd_kernel_name(pabd_kernel k) {
  return kernels[k].name;
}
void pabd_kernel_row(pabd_kernel k, int32_t i, const pabd_view *view) {
  kernels[k].row(i, view);
}
