/* Contact rows from manifolds: fill, warm start by feature, gather lists of bodies.
 *
 * Rows are sorted by class of their island, (direct: island,) pair and feature order within the manifold; islands.c has
 * put each pair's first row into pair_first. Multipliers of the frame before are found by pair key and feature;
 * friction is carried as a world vector, for the tangents may have turned. */
#include <assert.h>
#include <string.h>

#include "contact_rows.h"
#include "state.h"

/* Even a parallel region of one thread takes half a microsecond, as much as all other work of a tiny scene. */
static int alone(const pabd_sim *sim, int32_t rows) {
  return sim->params.threads <= 1 || rows < 64;
}

/* Gather lists: counting sort of the ends by body, ascending in the contact index within a body. */
static void gather_lists(pabd_sim *sim) {
  pabd_view *v = &sim->view;
  int32_t *first = v->end_first;
  memset(first, 0, sizeof *first * (size_t)(v->body_count + 1));
  for (int32_t c = 0; c < v->contact_count; ++c) {
    first[v->contact_a[c]] += 1;
    first[v->contact_b[c]] += 1;
  }
  int32_t *next = sim->scratch;
  assert(sim->scratch_count >= (size_t)v->body_count);
  int32_t sum = 0;
  for (int32_t i = 0; i < v->body_count; ++i) {
    int32_t count = v->motion[i] == PABD_DYNAMIC ? first[i] : 0; /* only dynamic bodies gather */
    first[i] = sum;
    next[i] = sum;
    sum += count;
  }
  first[v->body_count] = sum;
  for (int32_t c = 0; c < v->contact_count; ++c) {
    int32_t a = v->contact_a[c], b = v->contact_b[c];
    if (v->motion[a] == PABD_DYNAMIC) v->contact_end[next[a]++] = 2 * c;
    if (v->motion[b] == PABD_DYNAMIC) v->contact_end[next[b]++] = 2 * c + 1;
  }
}

void pabd_contacts_fill(pabd_sim *sim) {
  double begin = pabd_stage_begin(sim);
  pabd_view *v = &sim->view;
  if (sim->frozen) {
    for (int32_t c = 0; c < v->contact_count; ++c) {
      const pabd_contact_point *f = &sim->frozen[sim->scratch[c]];
      vec3 n = v3((real)f->normal.x, (real)f->normal.y, (real)f->normal.z);
      fill_contact(v, c, f->body_a, f->body_b, n, v3((real)f->point.x, (real)f->point.y, (real)f->point.z),
                   (real)f->gap, R(0), R(0));
      v->contact_key[c] = (uint64_t)f->body_a << 32 | (uint32_t)f->body_b;
      v->contact_feature[c] = f->feature;
      v->contact_mu[c] = (real)f->friction;
      v->contact_restitution[c] = (real)f->restitution;
      warm_start(v, c, v->contact_key[c], find_old(v, v->contact_key[c]), f->feature, n, v3_tangent(n));
    }
  } else if (alone(sim, v->pair_count)) {
    for (int32_t p = 0; p < v->pair_count; ++p) contact_fill_at(p, v);
  } else {
#pragma omp parallel for schedule(static) num_threads(sim->params.threads)
    for (int32_t p = 0; p < v->pair_count; ++p) contact_fill_at(p, v);
  }
  gather_lists(sim);
  pabd_stage_end(sim, "contact_fill", 1, begin);
}

void pabd_contacts_save(pabd_sim *sim) {
  double begin = pabd_stage_begin(sim);
  pabd_view *v = &sim->view;
  v->old_count = v->contact_count;
  /* an anchor of friction is of use only to the solver that keeps it up to date */
  int32_t gs_first = sim->range[PABD_CLASS_GS].contact_first,
          gs_end = gs_first + sim->range[PABD_CLASS_GS].contact_count;
  for (int32_t c = 0; c < v->contact_count; ++c)
    if (c < gs_first || c >= gs_end) v->contact_slip[c] = v->contact_slip[v->stride_contact + c] = R(0);
  if (alone(sim, v->contact_count)) {
#pragma omp simd
    for (int32_t c = 0; c < v->contact_count; ++c) contact_save_at(c, v);
  } else {
#pragma omp parallel for simd schedule(static) num_threads(sim->params.threads)
    for (int32_t c = 0; c < v->contact_count; ++c) contact_save_at(c, v);
  }
  /* the rows in key order: one merge of the sorted runs (one run when all islands share a class) */
  int32_t sorted = 1;
  for (int32_t c = 1; c < v->old_count; ++c) sorted &= v->old_key[c - 1] <= v->old_key[c];
  for (int32_t c = 0; c < v->old_count; ++c) v->old_order[c] = c;
  if (!sorted) {
    /* insertion of whole runs by a bottom-up merge sort on the order, stable */
    int32_t *from = v->old_order, *to = sim->scratch;
    for (int32_t width = 1; width < v->old_count; width *= 2) {
      for (int32_t low = 0; low < v->old_count; low += 2 * width) {
        int32_t middle = low + width < v->old_count ? low + width : v->old_count;
        int32_t high = low + 2 * width < v->old_count ? low + 2 * width : v->old_count;
        int32_t l = low, r = middle;
        for (int32_t k = low; k < high; ++k) {
          int take_left = l < middle && (r >= high || v->old_key[from[l]] <= v->old_key[from[r]]);
          to[k] = take_left ? from[l++] : from[r++];
        }
      }
      int32_t *swap = from;
      from = to, to = swap;
    }
    if (from != v->old_order) memcpy(v->old_order, from, sizeof *from * (size_t)v->old_count);
  }
  pabd_stage_end(sim, "contact_save", 0, begin);
}
