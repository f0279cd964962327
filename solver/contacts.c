/* Contact rows from manifolds: fill, warm start by feature, gather lists of bodies.
 *
 * Rows are sorted by class of their island, (direct: island,) pair and feature order within the manifold; islands.c has
 * put each pair's first row into pair_first. Multipliers of the frame before are found by pair key and feature;
 * friction is carried as a world vector, for the tangents may have turned. */
#include <assert.h>
#include <string.h>

#include "jacobi_kernels.h"
#include "state.h"

/* First old row, in key order, whose key is not below `key`. */
static int32_t find_old(const pabd_view *v, uint64_t key) {
  int32_t low = 0, high = v->old_count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (v->old_key[v->old_order[middle]] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Multiplier and stiffness of the same feature one frame ago; a feature that changed its name falls back to nothing. */
static void warm_start(const pabd_view *v, int32_t c, uint64_t key, uint32_t feature, vec3 n, vec3 t1, real scale) {
  int32_t stride = v->stride_contact;
  vec3 lambda = v3(R(0), R(0), R(0));
  real kappa = R(0);
  for (int32_t k = find_old(v, key); k < v->old_count; ++k) {
    int32_t o = v->old_order[k];
    if (v->old_key[o] != key) break;
    if (v->old_feature[o] != feature) continue;
    vec3 world = plane_get(v->old_lambda, stride, o); /* normal, then world tangential force in old_tangent */
    vec3 tangential = plane_get(v->old_tangent, stride, o);
    lambda = v3(scale * world.x, scale * v3_dot(t1, tangential), scale * v3_dot(v3_cross(n, t1), tangential));
    kappa = v->old_kappa[o];
    break;
  }
  plane_set(v->contact_lambda, stride, c, lambda);
  v->contact_kappa[c] = kappa;
}

static void fill_contact(const pabd_view *v, int32_t c, int32_t a, int32_t b, vec3 n, vec3 point, real gap,
                         real round_a, real round_b) {
  int32_t stride = v->stride_contact;
  v->contact_a[c] = a;
  v->contact_b[c] = b;
  plane_set(v->contact_normal, stride, c, n);
  plane_set(v->contact_tangent, stride, c, v3_tangent(n));
  /* flat sides: the common point moves with the body; round ones: the core does, and the contact point stays on the
   * normal */
  real offset_a = round_a > R(0) ? round_a + R(0.5) * gap : R(0),
       offset_b = round_b > R(0) ? round_b + R(0.5) * gap : R(0);
  vec3 ra = v3_madd(v3_sub(point, v->pos[a]), offset_a, n), rb = v3_madd(v3_sub(point, v->pos[b]), -offset_b, n);
  plane_set(v->contact_core_a, stride, c, quat_unrotate(v->rot[a], ra));
  plane_set(v->contact_core_b, stride, c, quat_unrotate(v->rot[b], rb));
  v->contact_offset_a[c] = offset_a;
  v->contact_offset_b[c] = offset_b;
  v->contact_gap[c] = gap;
  /* by the same operations as contact_begin, so that the gap at detection comes back exactly */
  vec3 wa = quat_rotate(v->rot[a], plane_get(v->contact_core_a, stride, c));
  vec3 wb = quat_rotate(v->rot[b], plane_get(v->contact_core_b, stride, c));
  v->contact_bias0[c] = v3_dot(n, v3_add(v3_sub(v->pos[a], v->pos[b]), v3_sub(wa, wb)));
  v->contact_gap0[c] = gap;
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
  real scale = sim->params.warm_start && sim->params.multipliers ? (real)(sim->params.alpha * sim->params.gamma) : R(0);
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
      warm_start(v, c, v->contact_key[c], f->feature, n, v3_tangent(n), scale);
    }
  } else {
#pragma omp parallel for schedule(static) num_threads(sim->params.threads) if (sim->params.threads > 1)
    for (int32_t p = 0; p < v->pair_count; ++p) {
      if (v->pair_first[p] < 0) continue;
      uint64_t key = v->pair_key[p];
      int32_t sa = (int32_t)(key >> 32), sb = (int32_t)(key & 0xffffffffu), a = v->shape_body[sa],
              b = v->shape_body[sb];
      int32_t material = v->shape_material[sa] * v->material_count + v->shape_material[sb];
      vec3 n = v->manifold_normal[p], t1 = v3_tangent(n);
      for (int32_t k = 0; k < v->manifold_count[p]; ++k) {
        int32_t c = v->pair_first[p] + k;
        if (c >= sim->capacity_contact) break;
        fill_contact(v, c, a, b, n, v->manifold_point[4 * p + k], v->manifold_gap[4 * p + k], v->manifold_round_a[p],
                     v->manifold_round_b[p]);
        v->contact_key[c] = key;
        v->contact_feature[c] = v->manifold_feature[4 * p + k];
        v->contact_mu[c] = v->friction[material];
        v->contact_restitution[c] = v->restitution[material];
        warm_start(v, c, key, v->contact_feature[c], n, t1, scale);
      }
    }
  }
  gather_lists(sim);
  pabd_stage_end(sim, "contact_fill", 1, begin);
}

void pabd_contacts_save(pabd_sim *sim) {
  double begin = pabd_stage_begin(sim);
  pabd_view *v = &sim->view;
  int32_t stride = v->stride_contact;
  v->old_count = v->contact_count;
#pragma omp parallel for simd schedule(static) num_threads(sim->params.threads) if (sim->params.threads > 1)
  for (int32_t c = 0; c < v->contact_count; ++c) {
    vec3 n = plane_get(v->contact_normal, stride, c), t1 = plane_get(v->contact_tangent, stride, c),
         t2 = v3_cross(n, t1);
    vec3 lambda = plane_get(v->contact_lambda, stride, c);
    v->old_key[c] = v->contact_key[c];
    v->old_feature[c] = v->contact_feature[c];
    plane_set(v->old_lambda, stride, c, lambda);
    plane_set(v->old_tangent, stride, c, v3_add(v3_scale(lambda.y, t1), v3_scale(lambda.z, t2)));
    v->old_kappa[c] = v->contact_kappa[c];
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
