/* Collision detection of a frame: bounds, hierarchy, candidate pairs, manifolds.
 *
 * The element bodies are in lbvh.h and narrow.h; this file orders them. Pairs come out sorted by (low shape, high
 * shape), so nothing after the sort depends on the hierarchy, on the number of threads or on the order of rows. When
 * pairs exceed the capacity, the leaves that come last in key order lose theirs, and the statistics count them. */
#include <assert.h>

#include "lbvh.h"
#include "narrow.h"
#include "state.h"

/* Runs body(row, view) for rows first .. first + count of the view; the copy tells the compiler that stores leave the
 * view alone. */
#define FOR_ROWS(sim, body, first_row, row_count, least, schedule_kind)                                          \
  do {                                                                                                           \
    const pabd_view rows_view = (sim)->view;                                                                     \
    int32_t rows_first = (first_row), rows_end = rows_first + (row_count), rows_threads = (sim)->params.threads; \
    if (rows_threads <= 1 || rows_end - rows_first < (least)) {                                                  \
      for (int32_t row = rows_first; row < rows_end; ++row) body(row, &rows_view);                               \
    } else {                                                                                                     \
      _Pragma(schedule_kind) for (int32_t row = rows_first; row < rows_end; ++row) body(row, &rows_view);        \
    }                                                                                                            \
  } while (0)
#define EVENLY "omp parallel for schedule(static) num_threads(rows_threads)"
#define BY_CHUNKS "omp parallel for schedule(dynamic, 64) num_threads(rows_threads)"

/* Bounds of the centers of movable shapes: the cells of the Morton codes. A ground of 200 m has no say in them. Then
 * the list of big shapes, and the keys of all others. */
static void make_keys(pabd_sim *sim) {
  pabd_view *v = &sim->view;
  vec3 lo = v3(R(1e30), R(1e30), R(1e30)), hi = v3_neg(lo);
  int32_t world_max = 0;
  for (int32_t i = 0; i < v->shape_count; ++i) {
    int32_t body = v->shape_body[i];
    if (v->body_world[body] > world_max) world_max = v->body_world[body];
    vec3 c;
    if (!shape_center(v, i, &c)) continue;
    lo = v3(real_min(lo.x, c.x), real_min(lo.y, c.y), real_min(lo.z, c.z));
    hi = v3(real_max(hi.x, c.x), real_max(hi.y, c.y), real_max(hi.z, c.z));
  }
  key_layout(v, world_max);
  real size = key_cells(v, lo, hi);

  v->leaf_count = v->big_count = 0;
  int64_t solid_big = 0, solid_big_max = (int64_t)PABD_BIG_CAPACITY * (world_max + 1);
  for (int32_t i = 0; i < v->shape_count; ++i) {
    int is_big = 0;
    if (v->shape_kind[i] == PABD_PLANE) {
      is_big = 1;
    } else if (v->motion[v->shape_body[i]] != PABD_DYNAMIC && solid_big < solid_big_max) {
      is_big = shape_is_large(v, i, size);
      solid_big += is_big;
    }
    if (is_big)
      v->big_key[v->big_count++] = (uint64_t)v->body_world[v->shape_body[i]] << 32 | (uint64_t)i;
    else
      v->morton[v->leaf_count++] = morton_key(v, i);
  }
  pabd_sort_u64(v->big_key, v->sort_key, v->big_count, 1);
}

/* Inner nodes in breadth-first order, with the first index of each level; returns the number of levels. */
static int32_t order_levels(const pabd_view *v, int32_t *level_first) {
  int32_t levels = 0, begin = 0, end = 1;
  v->node_order[0] = 0;
  while (begin < end) {
    assert(levels < PABD_STACK_SIZE);
    level_first[levels++] = begin;
    int32_t next = end;
    for (int32_t k = begin; k < end; ++k) {
      const pabd_node *node = &v->node[v->node_order[k]];
      if (node->left >= 0) v->node_order[next++] = node->left;
      if (node->right >= 0) v->node_order[next++] = node->right;
    }
    begin = end;
    end = next;
  }
  level_first[levels] = end;
  return levels;
}

PABD_FN void refit_ordered_at(int32_t k, const pabd_view *s) {
  refit_at(s->node_order[k], s);
}

static void find_pairs(pabd_sim *sim) {
  pabd_view *v = &sim->view;
  v->pair_count = 0;
  if (v->leaf_count == 0) return;
  v->pair_slots = sim->capacity_pair / v->leaf_count;
  if (v->pair_slots > 64) v->pair_slots = 64;
  FOR_ROWS(sim, count_pairs_at, 0, v->leaf_count, 256, BY_CHUNKS);
  int64_t total = 0;
  for (int32_t p = 0; p < v->leaf_count; ++p) {
    int32_t count = v->hit_count[p];
    v->hit_count[p] = (int32_t)(total < sim->capacity_pair ? total : sim->capacity_pair);
    total += count;
  }
  v->pair_count = (int32_t)(total < sim->capacity_pair ? total : sim->capacity_pair);
  int64_t dropped = total - v->pair_count;
  sim->stats.overflow_pairs += (int32_t)(dropped < INT32_MAX / 2 ? dropped : INT32_MAX / 2);
  FOR_ROWS(sim, fill_pairs_at, 0, v->leaf_count, 1024, EVENLY);
  pabd_sort_u64(v->pair_key, v->pair_scratch, v->pair_count, sim->params.threads);
}

void pabd_collide(pabd_sim *sim) {
  pabd_view *v = &sim->view;

  double begin = pabd_stage_begin(sim);
  FOR_ROWS(sim, bounds_at, 0, v->shape_count, 512, EVENLY);
  pabd_stage_end(sim, "bounds", 1, begin);

  begin = pabd_stage_begin(sim);
  make_keys(sim);
  pabd_sort_u64(v->morton, v->sort_key, v->leaf_count, sim->params.threads);
  pabd_stage_end(sim, "sort", 1, begin);

  int32_t level_first[PABD_STACK_SIZE + 1], levels = 0;
  v->node_count = v->leaf_count > 1 ? v->leaf_count - 1 : 0;
  begin = pabd_stage_begin(sim);
  if (v->node_count > 0) {
    FOR_ROWS(sim, build_nodes_at, 0, v->node_count, 512, EVENLY);
    levels = order_levels(v, level_first);
  }
  pabd_stage_end(sim, "build", 1, begin);

  begin = pabd_stage_begin(sim);
  for (int32_t l = levels - 1; l >= 0; --l)
    FOR_ROWS(sim, refit_ordered_at, level_first[l], level_first[l + 1] - level_first[l], 1024, EVENLY);
  pabd_stage_end(sim, "refit", 1, begin);

  begin = pabd_stage_begin(sim);
  find_pairs(sim);
  sim->stats.pair_count = v->pair_count;
  pabd_stage_end(sim, "pairs", 1, begin);

  begin = pabd_stage_begin(sim);
  FOR_ROWS(sim, narrow_at, 0, v->pair_count, 64, BY_CHUNKS);
  pabd_stage_end(sim, "narrow", 1, begin);
}
