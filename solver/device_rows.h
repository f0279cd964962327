/* Bodies of the kernels of device_kernels.def: the serial passes of a frame, cut into rows.
 *
 * Results do not depend on the order of rows: integer sums, minima and maxima are the same in any order, what is
 * written by several rows is the same value, and lists that are filled in any order are sorted afterwards. So the state
 * after a frame has the bits of the CPU's. Common C11/CUDA dialect. */
#ifndef PABD_DEVICE_ROWS_H
#define PABD_DEVICE_ROWS_H

#include "contact_rows.h"
#include "device.h"
#include "lbvh.h"
#include "narrow.h"

#define PABD_NO_KEY (~(uint64_t)0) /* sorts after every key */

#ifdef __CUDACC__
#define DEVICE_FN static __device__ __forceinline__
#else
#define DEVICE_FN static inline
#endif

/* The view with the counts of this frame. */
DEVICE_FN pabd_view live_view(const pabd_view *s, const pabd_device *d) {
  pabd_view v = *s;
  v.leaf_count = d->counts->leaf_count, v.big_count = d->counts->big_count;
  v.pair_slots = d->counts->pair_slots, v.pair_count = d->counts->pair_count;
  v.old_count = d->counts->old_count;
  v.morton_lo = d->counts->morton_lo, v.morton_scale = d->counts->morton_scale;
  return v;
}
DEVICE_FN void set_range(const pabd_device *d, pabd_device_range which, int32_t first, int32_t count) {
  d->counts->range[which].first = first;
  d->counts->range[which].count = count;
}

DEVICE_FN void decay_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)d;
  bond_decay_at(k, s);
}

/* ---------------------------------------------------------------- keys */

DEVICE_FN void bounds_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)d;
  bounds_at(k, s);
}

/* Bounds of the centers of movable shapes; row k takes the values k, k + rows, k + 2 rows, ... */
DEVICE_FN void reduce_bounds_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  vec3 lo = v3(R(1e30), R(1e30), R(1e30)), hi = v3_neg(lo);
  for (int32_t i = k; i < d->from_count; i += d->to_count) {
    vec3 a, b;
    if (d->from < 0) {
      if (!shape_center(s, i, &a)) continue;
      b = a;
    } else {
      a = d->partial_lo[d->from + i], b = d->partial_hi[d->from + i];
    }
    lo = v3(real_min(lo.x, a.x), real_min(lo.y, a.y), real_min(lo.z, a.z));
    hi = v3(real_max(hi.x, b.x), real_max(hi.y, b.y), real_max(hi.z, b.z));
  }
  d->partial_lo[d->to + k] = lo;
  d->partial_hi[d->to + k] = hi;
}
/* d->to: place of the last level. */
DEVICE_FN void begin_keys_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)k;
  pabd_view v = *s;
  d->counts->size = key_cells(&v, d->partial_lo[d->to], d->partial_hi[d->to]);
  d->counts->morton_lo = v.morton_lo;
  d->counts->morton_scale = v.morton_scale;
}

DEVICE_FN void fixed_large_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  int32_t large = 0;
  if (k < d->fixed_count) {
    int32_t i = d->fixed_shape[k];
    large = s->shape_kind[i] != PABD_PLANE && shape_is_large(s, i, d->counts->size);
  }
  d->fixed_large[k] = large;
}
/* Planes, and the first solid shapes up to the capacity. */
DEVICE_FN int32_t is_big(int32_t place, const pabd_view *s, const pabd_device *d) {
  if (s->shape_kind[d->fixed_shape[place]] == PABD_PLANE) return 1;
  return d->fixed_large[place] && d->fixed_rank[place] < PABD_BIG_CAPACITY * d->world_count;
}
DEVICE_FN void fixed_big_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  int32_t big = 0;
  if (k < d->fixed_count) {
    int32_t place = d->fixed_sorted[k];
    big = is_big(place, s, d);
    d->shape_big[d->fixed_shape[place]] = big;
  }
  d->fixed_big[k] = big;
}
DEVICE_FN void big_keys_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  if (k == d->fixed_count) {
    d->counts->big_count = d->fixed_place[k];
  } else if (d->fixed_big[k]) {
    int32_t i = d->fixed_shape[d->fixed_sorted[k]];
    s->big_key[d->fixed_place[k]] = (uint64_t)s->body_world[s->shape_body[i]] << 32 | (uint64_t)i;
  }
}
DEVICE_FN void leaf_keys_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  pabd_view v = live_view(s, d);
  s->morton[k] = d->shape_big[k] ? PABD_NO_KEY : morton_key(&v, k);
}
DEVICE_FN void end_keys_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)k;
  pabd_counts *c = d->counts;
  c->leaf_count = first_not_below(s->morton, s->shape_count, PABD_NO_KEY);
  int32_t slots = c->leaf_count > 0 ? d->capacity_pair / c->leaf_count : 0;
  c->pair_slots = slots > 64 ? 64 : slots;
  set_range(d, PABD_RANGE_leaves, 0, c->leaf_count);
  set_range(d, PABD_RANGE_nodes, 0, c->leaf_count > 1 ? c->leaf_count - 1 : 0);
}

/* ---------------------------------------------------------------- hierarchy and pairs */

DEVICE_FN void build_nodes_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  pabd_view v = live_view(s, d);
  build_nodes_at(k, &v);
  const pabd_node *node = &s->node[k];
  if (node->left >= 0)
    d->node_parent[node->left] = k;
  else
    d->leaf_parent[~node->left] = k;
  if (node->right >= 0)
    d->node_parent[node->right] = k;
  else
    d->leaf_parent[~node->right] = k;
  if (k == 0) d->node_parent[0] = -1;
  d->node_visits[k] = 0;
}
/* From a leaf upwards; of two children the later one goes on, so both have their bounds by then. */
DEVICE_FN void refit_climb_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  if (d->counts->leaf_count < 2) return;
  for (int32_t n = d->leaf_parent[k]; n >= 0; n = d->node_parent[n]) {
    __threadfence();
    if (atomicAdd(&d->node_visits[n], 1) == 0) return;
    __threadfence();
    refit_at(n, s);
  }
}

DEVICE_FN void count_pairs_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  int32_t hits = 0;
  if (k < d->counts->leaf_count) {
    pabd_view v = live_view(s, d);
    hits = find_partners(&v, k, s->pair_scratch + (size_t)k * (size_t)v.pair_slots, v.pair_slots);
  }
  d->leaf_hits[k] = hits;
}
/* Offsets cut off at the capacity; the row after the last leaf holds the total. */
DEVICE_FN void end_count_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  int32_t offset = d->leaf_offset[k], capacity = d->capacity_pair;
  if (k < s->shape_count) {
    s->hit_count[k] = offset < capacity ? offset : capacity;
    return;
  }
  pabd_counts *c = d->counts;
  c->pair_count = offset < capacity ? offset : capacity;
  int32_t dropped = offset - c->pair_count;
  c->overflow_pairs = dropped < INT32_MAX / 2 ? dropped : INT32_MAX / 2;
  set_range(d, PABD_RANGE_pairs, 0, c->pair_count);
}
DEVICE_FN void fill_pairs_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  pabd_view v = live_view(s, d);
  fill_pairs_at(k, &v);
}
DEVICE_FN void pad_pairs_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  if (k >= d->counts->pair_count) s->pair_key[k] = PABD_NO_KEY;
}
DEVICE_FN void narrow_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)d;
  narrow_at(k, s);
}

/* ---------------------------------------------------------------- contact rows and the order of bodies */

DEVICE_FN void pair_points_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  d->pair_points[k] = k < d->counts->pair_count ? s->manifold_count[k] : 0;
}
DEVICE_FN void pair_first_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  pabd_counts *c = d->counts;
  if (k < c->pair_count) s->pair_first[k] = d->pair_points[k] > 0 ? d->pair_offset[k] : -1;
  if (k < d->capacity_pair) return;
  int32_t rows = d->pair_offset[k], capacity = s->stride_contact;
  c->contact_count = rows < capacity ? rows : capacity;
  c->overflow_contacts = rows - c->contact_count;
  set_range(d, PABD_RANGE_contacts, 0, c->contact_count);
}
DEVICE_FN void link_clear_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  d->body_linked[k] = s->bond_end_first[k + 1] > s->bond_end_first[k];
  d->end_count[k] = 0;
}
DEVICE_FN void link_pairs_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  if (s->manifold_count[k] == 0) return;
  uint64_t key = s->pair_key[k];
  d->body_linked[s->shape_body[(int32_t)(key >> 32)]] = 1; /* several rows may write the same 1 */
  d->body_linked[s->shape_body[(int32_t)(key & 0xffffffffu)]] = 1;
}
DEVICE_FN void body_free_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  d->body_free[k] = k < s->body_count && s->motion[k] == PABD_DYNAMIC && !d->body_linked[k];
}
/* Free bodies, linked ones, immovable ones; each in the order of their indices. */
DEVICE_FN void body_order_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  pabd_counts *c = d->counts;
  int32_t n = s->body_count, dynamic = d->dynamic_count, free_count = d->body_rank[n], rank = d->body_rank[k];
  if (k < n) {
    int32_t movable = d->dynamic_rank[k];
    int32_t place = s->motion[k] != PABD_DYNAMIC ? dynamic + k - movable
                    : d->body_free[k]            ? rank
                                                 : free_count + movable - rank;
    s->body_order[place] = k;
    return;
  }
  c->free_count = free_count;
  c->jacobi_count = dynamic - free_count;
  set_range(d, PABD_RANGE_jacobi, free_count, c->jacobi_count);
  /* immovable bodies are predicted where a linked one may meet them */
  set_range(d, PABD_RANGE_predict, 0, c->jacobi_count > 0 ? n : dynamic);
  c->sweeps = 0;
}
DEVICE_FN void contact_fill_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  pabd_view v = live_view(s, d);
  contact_fill_at(k, &v);
  if (s->pair_first[k] < 0) return;
  for (int32_t c = s->pair_first[k]; c < s->pair_first[k] + s->manifold_count[k] && c < s->stride_contact; ++c)
    s->contact_slip[c] = s->contact_slip[s->stride_contact + c] = R(0); /* contact-gs only */
}
DEVICE_FN void count_ends_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  int32_t a = s->contact_a[k], b = s->contact_b[k];
  if (s->motion[a] == PABD_DYNAMIC) atomicAdd(&d->end_count[a], 1);
  if (s->motion[b] == PABD_DYNAMIC) atomicAdd(&d->end_count[b], 1);
}
DEVICE_FN void begin_ends_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  d->end_count[k] = s->end_first[k];
}
DEVICE_FN void place_ends_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  int32_t a = s->contact_a[k], b = s->contact_b[k];
  if (s->motion[a] == PABD_DYNAMIC) s->contact_end[atomicAdd(&d->end_count[a], 1)] = 2 * k;
  if (s->motion[b] == PABD_DYNAMIC) s->contact_end[atomicAdd(&d->end_count[b], 1)] = 2 * k + 1;
}
DEVICE_FN void sift_down(int32_t *list, int32_t count, int32_t k) {
  int32_t value = list[k];
  for (int32_t child = 2 * k + 1; child < count; child = 2 * k + 1) {
    if (child + 1 < count && list[child + 1] > list[child]) ++child;
    if (list[child] <= value) break;
    list[k] = list[child];
    k = child;
  }
  list[k] = value;
}
/* The ends of one body in ascending order. */
DEVICE_FN void sort_ends_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)d;
  int32_t *list = s->contact_end + s->end_first[k], count = s->end_first[k + 1] - s->end_first[k];
  if (count <= 48) {
    for (int32_t i = 1; i < count; ++i) {
      int32_t value = list[i], j = i;
      for (; j > 0 && list[j - 1] > value; --j) list[j] = list[j - 1];
      list[j] = value;
    }
    return;
  }
  for (int32_t i = count / 2 - 1; i >= 0; --i) sift_down(list, count, i);
  for (int32_t end = count - 1; end > 0; --end) {
    int32_t value = list[end];
    list[end] = list[0];
    list[0] = value;
    sift_down(list, end, 0);
  }
}

/* ---------------------------------------------------------------- sweeps that may end early, and statistics */

DEVICE_FN void begin_sweeps_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)k, (void)s;
  pabd_counts *c = d->counts;
  c->range[PABD_RANGE_sweep_bodies] = c->range[PABD_RANGE_jacobi];
  c->range[PABD_RANGE_sweep_contacts] = c->range[PABD_RANGE_contacts];
  c->range[PABD_RANGE_sweep_bonds] = c->range[PABD_RANGE_bonds];
}
DEVICE_FN pabd_summary summary_none(void) {
  pabd_summary m;
  m.residual = m.defect = m.bond_error = R(0), m.closed = 0, m.lost = INT32_MAX;
  return m;
}
DEVICE_FN pabd_summary summary_fold(pabd_summary a, pabd_summary b) {
  if (!(b.residual <= a.residual)) a.residual = b.residual;
  a.defect = real_max(b.defect, a.defect);
  a.bond_error = real_max(b.bond_error, a.bond_error);
  a.closed += b.closed;
  a.lost = b.lost < a.lost ? b.lost : a.lost;
  return a;
}
/* Row k takes the bodies, bonds and contacts k, k + rows, ...; later levels take partial results. */
DEVICE_FN void reduce_summary_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  pabd_summary sum = summary_none();
  const pabd_counts *c = d->counts;
  if (d->from >= 0) {
    for (int32_t i = k; i < d->from_count; i += d->to_count) sum = summary_fold(sum, d->partial_summary[d->from + i]);
    d->partial_summary[d->to + k] = sum;
    return;
  }
  for (int32_t i = k; i < s->body_count; i += d->to_count) {
    pabd_summary one = summary_none();
    if (i < c->jacobi_count) {
      int32_t body = s->body_order[c->free_count + i];
      one.residual = s->residual[body], one.defect = s->defect[body];
    }
    if (body_is_lost(i, s)) one.lost = i;
    sum = summary_fold(sum, one);
  }
  for (int32_t i = k; i < c->range[PABD_RANGE_bonds].count; i += d->to_count)
    sum.bond_error = real_max(s->bond_error[s->bond_order[i]], sum.bond_error);
  for (int32_t i = k; i < c->contact_count; i += d->to_count) sum.closed += s->contact_lambda[i] > R(0);
  d->partial_summary[d->to + k] = sum;
}
/* After a sweep: count it; below the tolerance the other sweeps of this substep have no rows. */
DEVICE_FN void end_sweep_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)k, (void)s;
  pabd_counts *c = d->counts;
  if (c->range[PABD_RANGE_sweep_bodies].count == 0) return;
  c->sweeps += 1;
  if ((double)d->partial_summary[d->to].residual <= d->tolerance)
    c->range[PABD_RANGE_sweep_bodies].count = c->range[PABD_RANGE_sweep_contacts].count =
        c->range[PABD_RANGE_sweep_bonds].count = 0;
}

DEVICE_FN void kinematic_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)d;
  kinematic_at(s->body_order[k], s);
}
DEVICE_FN void contact_save_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)d;
  contact_save_at(k, s);
  s->old_order[k] = k; /* one class: rows are in key order */
}
DEVICE_FN void end_frame_row(int32_t k, const pabd_view *s, const pabd_device *d) {
  (void)k, (void)s;
  d->counts->summary = d->partial_summary[d->to];
  d->counts->old_count = d->counts->contact_count;
}

#endif
