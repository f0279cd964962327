/* Broad phase as element bodies: world bounds of shapes, Morton keys, Karras' linear hierarchy, refit, partner search.
 *
 * Karras, "Maximizing parallelism in the construction of BVHs, octrees, and k-d trees" (2012), sections 3 and 4. A key
 * is world | Morton code of the centre | shape, so keys are unique, equal codes are told apart by the shape's index,
 * and the depth is at most 64: a traversal stack of 64 entries cannot overflow. A pair is found once, by the leaf that
 * comes first in key order; leaves of other worlds lie outside the range of leaves searched. Common C11/CUDA dialect.
 */
#ifndef PABD_LBVH_H
#define PABD_LBVH_H

#include "state.h"

#define PABD_STACK_SIZE 64
#define PABD_BIG_CAPACITY 64 /* solid shapes of a world handled like planes; each costs every leaf one test */

PABD_FN int32_t clz64(uint64_t x) { /* x != 0 */
#ifdef __CUDA_ARCH__
  return __clzll((long long)x);
#else
  return __builtin_clzll(x);
#endif
}

PABD_FN int is_movable(const pabd_view *s, int32_t shape) {
  return s->motion[s->shape_body[shape]] == PABD_DYNAMIC;
}

/* Margin of one body: half the margin at rest and what its own motion can close in a frame. The margins of two bodies
 * cover the margin of the pair (pair_margin), for |v_a - v_b| <= |v_a| + |v_b|. */
PABD_FN real body_margin(const pabd_view *s, int32_t body, real reach) {
  real margin = R(0.5) * s->margin + s->h_frame * v3_norm(s->vel[body]) + reach;
  return real_min(margin, s->margin_max);
}

/* Speculative margin of a pair: margin + h_frame (|v_a - v_b| + |w_a| r_a/2 + |w_b| r_b/2), at most margin_max. */
PABD_FN real pair_margin(const pabd_view *s, int32_t a, int32_t b, real reach_a, real reach_b) {
  real margin = s->margin + s->h_frame * v3_norm(v3_sub(s->vel[a], s->vel[b])) + reach_a + reach_b;
  return real_min(margin, s->margin_max);
}

/* Half extents of the world bounds of a shape about shape_frame.pos + *center. */
PABD_FN vec3 shape_extent(const pabd_view *s, int32_t i, const pabd_shape_frame *f, vec3 *center) {
  const mat3 *m = &f->rot;
  *center = v3(R(0), R(0), R(0));
  switch (s->shape_kind[i]) {
    case PABD_SPHERE:
      return v3(f->half.x, f->half.x, f->half.x);
    case PABD_CAPSULE:
      return v3(f->half.x + f->half.y * real_abs(m->x.z), f->half.x + f->half.y * real_abs(m->y.z),
                f->half.x + f->half.y * real_abs(m->z.z));
    case PABD_CYLINDER: { /* disc of radius r normal to the axis u: r sqrt(1 - u_k^2) along k */
      real x = real_max(R(0), R(1) - m->x.z * m->x.z), y = real_max(R(0), R(1) - m->y.z * m->y.z),
           z = real_max(R(0), R(1) - m->z.z * m->z.z);
      return v3(f->half.x * real_sqrt(x) + f->half.y * real_abs(m->x.z),
                f->half.x * real_sqrt(y) + f->half.y * real_abs(m->y.z),
                f->half.x * real_sqrt(z) + f->half.y * real_abs(m->z.z));
    }
    case PABD_HULL: {
      vec3 lo = v3(R(1e30), R(1e30), R(1e30)), hi = v3_neg(lo);
      for (int32_t k = 0; k < s->shape_vertex_count[i]; ++k) {
        vec3 p = mat3_mul(*m, s->vertex[s->shape_first_vertex[i] + k]);
        lo = v3(real_min(lo.x, p.x), real_min(lo.y, p.y), real_min(lo.z, p.z));
        hi = v3(real_max(hi.x, p.x), real_max(hi.y, p.y), real_max(hi.z, p.z));
      }
      *center = v3_scale(R(0.5), v3_add(lo, hi));
      return v3_scale(R(0.5), v3_sub(hi, lo));
    }
    case PABD_BOX:
      return v3(real_abs(m->x.x) * f->half.x + real_abs(m->x.y) * f->half.y + real_abs(m->x.z) * f->half.z,
                real_abs(m->y.x) * f->half.x + real_abs(m->y.y) * f->half.y + real_abs(m->y.z) * f->half.z,
                real_abs(m->z.x) * f->half.x + real_abs(m->z.y) * f->half.y + real_abs(m->z.z) * f->half.z);
    default:
      return v3(R(1e30), R(1e30), R(1e30)); /* plane: handled apart */
  }
}

/* bounds: world frame of shape i and its box, fattened by the body's margin. A body whose numbers are no longer finite
 * gets an empty box that meets nothing. */
PABD_FN void bounds_at(int32_t i, const pabd_view *s) {
  int32_t body = s->shape_body[i];
  quat q = s->rot[body];
  vec3 local = s->shape_pos[i];
  quat turn = s->shape_rot[i];
  pabd_shape_frame f;
  f.pos = v3_add(s->pos[body], quat_rotate(q, local));
  f.rot = quat_matrix(quat_mul(q, turn));
  f.half = s->shape_kind[i] == PABD_BOX ? s->shape_half[i] : v3(s->shape_radius[i], s->shape_half_length[i], R(0));
  f.reach = R(0.5) * s->h_frame * v3_norm(s->omega[body]) * s->radius[body];
  vec3 center, half = shape_extent(s, i, &f, &center);
  center = v3_add(f.pos, center);
  real margin = body_margin(s, body, f.reach);
  half = v3_add(half, v3(margin, margin, margin));
  vec3 lo = v3_sub(center, half), hi = v3_add(center, half);
  real sum = lo.x + lo.y + lo.z - hi.x - hi.y - hi.z;
  if (!(real_abs(sum) < R(1e32))) {
    lo = v3(R(1e30), R(1e30), R(1e30));
    hi = v3_neg(lo);
  }
  s->shape_frame[i] = f;
  s->box_lo[i] = lo;
  s->box_hi[i] = hi;
}

PABD_FN int32_t bits_for(uint32_t count) { /* bits that hold 0 .. count - 1 */
  int32_t bits = 0;
  while (bits < 32 && ((uint64_t)1 << bits) < count) ++bits;
  return bits;
}
PABD_FN real largest(vec3 a) {
  return real_max(a.x, real_max(a.y, a.z));
}

/* Layout of the sort keys for shape_count shapes in worlds 0 .. world_max: fixed for good. */
PABD_FN void key_layout(pabd_view *v, int32_t world_max) {
  v->shape_bits = bits_for((uint32_t)v->shape_count);
  v->world_bits = bits_for((uint32_t)world_max + 1u);
  v->morton_bits = (63 - v->shape_bits - v->world_bits) / 3;
  /* 12 bits an axis are plenty */
  if (v->morton_bits > 12) v->morton_bits = 12;
}
/* Center of the bounds of a movable shape; 0 for others, and where it is not finite. */
PABD_FN int shape_center(const pabd_view *v, int32_t i, vec3 *center) {
  if (v->motion[v->shape_body[i]] != PABD_DYNAMIC || !(v->box_lo[i].x <= v->box_hi[i].x)) return 0;
  *center = v3_scale(R(0.5), v3_add(v->box_lo[i], v->box_hi[i]));
  return 1;
}
/* Cells of the Morton codes from the bounds of those centers; returns the size of the scene, m. One cell size for all
 * axes: cells are cubes, so neighbors in the code are neighbors in space. */
PABD_FN real key_cells(pabd_view *v, vec3 lo, vec3 hi) {
  if (!(lo.x <= hi.x)) lo = hi = v3(R(0), R(0), R(0));
  real size = largest(v3_sub(hi, lo));
  real scale = (real)((int32_t)1 << v->morton_bits) / real_max(size, R(1e-6));
  v->morton_lo = lo;
  v->morton_scale = v3(scale, scale, scale);
  return size;
}
/* An immovable shape as large as the scene is tested against every leaf. */
PABD_FN int shape_is_large(const pabd_view *v, int32_t i, real size) {
  return largest(v3_sub(v->box_hi[i], v->box_lo[i])) >= R(0.5) * size;
}

/* Spreads the low 20 bits of x to every third bit. */
PABD_FN uint64_t spread3(uint64_t x) {
  x &= 0xfffffu;
  x = (x | x << 32) & 0x001f00000000ffffull;
  x = (x | x << 16) & 0x001f0000ff0000ffull;
  x = (x | x << 8) & 0x100f00f00f00f00full;
  x = (x | x << 4) & 0x10c30c30c30c30c3ull;
  x = (x | x << 2) & 0x1249249249249249ull;
  return x;
}

PABD_FN uint64_t morton_cell(real x, real lo, real scale, int32_t bits) {
  real top = (real)(((int32_t)1 << bits) - 1), cell = (x - lo) * scale;
  if (!(cell > R(0))) return 0; /* also what is not a number */
  return (uint64_t)(cell < top ? cell : top);
}

PABD_FN uint64_t morton_key(const pabd_view *s, int32_t shape) {
  vec3 c = v3_scale(R(0.5), v3_add(s->box_lo[shape], s->box_hi[shape]));
  uint64_t code = spread3(morton_cell(c.x, s->morton_lo.x, s->morton_scale.x, s->morton_bits)) << 2 |
                  spread3(morton_cell(c.y, s->morton_lo.y, s->morton_scale.y, s->morton_bits)) << 1 |
                  spread3(morton_cell(c.z, s->morton_lo.z, s->morton_scale.z, s->morton_bits));
  uint64_t world = (uint64_t)s->body_world[s->shape_body[shape]];
  return (world << (3 * s->morton_bits) | code) << s->shape_bits | (uint64_t)shape;
}

PABD_FN int32_t leaf_shape(const pabd_view *s, int32_t leaf) {
  return (int32_t)(s->morton[leaf] & (((uint64_t)1 << s->shape_bits) - 1));
}

/* Length of the common prefix of the keys of two leaves, -1 outside the list. */
PABD_FN int32_t common_prefix(const pabd_view *s, int32_t i, int32_t j) {
  if (j < 0 || j >= s->leaf_count) return -1;
  return clz64(s->morton[i] ^ s->morton[j]);
}

/* build_nodes: inner node i of leaf_count - 1; its range of leaves starts or ends at leaf i. */
PABD_FN void build_nodes_at(int32_t i, const pabd_view *s) {
  int32_t before = common_prefix(s, i, i - 1), after = common_prefix(s, i, i + 1);
  int32_t d = after > before ? 1 : -1, least = after > before ? before : after;
  int32_t reach = 2;
  while (common_prefix(s, i, i + reach * d) > least) reach *= 2;
  int32_t length = 0;
  for (int32_t t = reach / 2; t > 0; t /= 2)
    if (common_prefix(s, i, i + (length + t) * d) > least) length += t;
  int32_t other = i + length * d, prefix = common_prefix(s, i, other), split = 0;
  for (int32_t t = length;
       t > 1;) { /* first leaf, from i, that differs from i in the first bit after the common prefix */
    t = (t + 1) / 2;
    if (split + t < length && common_prefix(s, i, i + (split + t) * d) > prefix) split += t;
  }
  split = i + split * d + (d < 0 ? -1 : 0);
  int32_t first = d > 0 ? i : other, last = d > 0 ? other : i;
  pabd_node *node = &s->node[i];
  node->left = first == split ? ~split : split;
  node->right = last == split + 1 ? ~(split + 1) : split + 1;
  node->split = split;
  node->last = last;
}

/* refit: bounds of both children of node i; the nodes one level deeper come first. */
PABD_FN void refit_at(int32_t i, const pabd_view *s) {
  pabd_node *node = &s->node[i];
  for (int32_t side = 0; side < 2; ++side) {
    int32_t child = side ? node->right : node->left;
    if (child < 0) {
      int32_t shape = leaf_shape(s, ~child);
      node->lo[side] = s->box_lo[shape];
      node->hi[side] = s->box_hi[shape];
    } else {
      const pabd_node *c = &s->node[child];
      node->lo[side] =
          v3(real_min(c->lo[0].x, c->lo[1].x), real_min(c->lo[0].y, c->lo[1].y), real_min(c->lo[0].z, c->lo[1].z));
      node->hi[side] =
          v3(real_max(c->hi[0].x, c->hi[1].x), real_max(c->hi[0].y, c->hi[1].y), real_max(c->hi[0].z, c->hi[1].z));
    }
  }
}

PABD_FN int boxes_meet(vec3 alo, vec3 ahi, vec3 blo,
                       vec3 bhi) { /* bitwise: no branches; false for what is not a number */
  return (alo.x <= bhi.x) & (blo.x <= ahi.x) & (alo.y <= bhi.y) & (blo.y <= ahi.y) & (alo.z <= bhi.z) &
         (blo.z <= ahi.z);
}

/* First index of a sorted list whose key is not below `key`. */
PABD_FN int32_t first_not_below(const uint64_t *keys, int32_t count, uint64_t key) {
  int32_t low = 0, high = count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

PABD_FN int is_filtered(const pabd_view *s, uint64_t key) {
  int32_t k = first_not_below(s->filter, s->filter_count, key);
  return k < s->filter_count && s->filter[k] == key;
}

/* Do two shapes collide at all? (Worlds are told apart by the ranges of leaves and big shapes.) */
PABD_FN int shapes_collide(const pabd_view *s, int32_t i, int32_t j) {
  int32_t a = s->shape_body[i], b = s->shape_body[j];
  if (a == b || (s->motion[a] != PABD_DYNAMIC && s->motion[b] != PABD_DYNAMIC)) return 0;
  if (s->body_group[a] > 0 && s->body_group[a] == s->body_group[b]) return 0;
  if (s->filter_count > 0) {
    uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a);
    if (is_filtered(s, low << 32 | high)) return 0;
  }
  return 1;
}

PABD_FN uint64_t shape_pair_key(int32_t i, int32_t j) {
  return i < j ? (uint64_t)i << 32 | (uint64_t)j : (uint64_t)j << 32 | (uint64_t)i;
}

/* Does the fattened box of shape i reach the big shape j? A plane's own margin is margin/2 (it does not move). */
PABD_FN int meets_big(const pabd_view *s, int32_t i, int32_t j) {
  if (s->shape_kind[j] != PABD_PLANE) return boxes_meet(s->box_lo[i], s->box_hi[i], s->box_lo[j], s->box_hi[j]);
  const mat3 *m = &s->shape_frame[j].rot;
  vec3 n = v3(m->x.z, m->y.z, m->z.z);
  vec3 half = v3_scale(R(0.5), v3_sub(s->box_hi[i], s->box_lo[i]));
  vec3 offset = v3_sub(v3_scale(R(0.5), v3_add(s->box_lo[i], s->box_hi[i])), s->shape_frame[j].pos);
  real lowest = v3_dot(n, offset) - real_abs(n.x) * half.x - real_abs(n.y) * half.y - real_abs(n.z) * half.z;
  return lowest <= R(0.5) * s->margin && half.x >= R(0);
}

/* Partners of leaf p: big shapes, and leaves after p in key order. The first `capacity` pair keys go to out[]; returns
 * how many there are. */
PABD_FN int32_t find_partners(const pabd_view *s, int32_t p, uint64_t *out, int32_t capacity) {
  int32_t i = leaf_shape(s, p), count = 0;
  uint64_t world = (uint64_t)s->body_world[s->shape_body[i]];
  int32_t k = 0;
  if (s->world_bits > 0) k = first_not_below(s->big_key, s->big_count, world << 32);
  for (; k < s->big_count && s->big_key[k] >> 32 == world; ++k) {
    int32_t j = (int32_t)(s->big_key[k] & 0xffffffffu);
    if (!meets_big(s, i, j) || !shapes_collide(s, i, j)) continue;
    if (count < capacity) out[count] = shape_pair_key(i, j);
    ++count;
  }
  if (s->leaf_count < 2) return count;

  int32_t end = s->leaf_count; /* one past the last leaf of this world */
  if (s->world_bits > 0)
    end = first_not_below(s->morton, s->leaf_count,
                          (world + 1) << (3 * s->morton_bits + s->shape_bits)); /* 63 bits at most: no overflow */

  vec3 lo = s->box_lo[i], hi = s->box_hi[i];
  int32_t stack[PABD_STACK_SIZE], depth = 0, n = 0;
  for (;;) {
    const pabd_node *node = &s->node[n];
    int left = boxes_meet(lo, hi, node->lo[0], node->hi[0]) & (node->split > p);
    int right = boxes_meet(lo, hi, node->lo[1], node->hi[1]) & (node->last > p) & (node->split + 1 < end);
    for (int32_t side = 0; side < 2; ++side) {
      int32_t child = side ? node->right : node->left;
      if (!(side ? right : left) || child >= 0 || ~child >= end) continue;
      int32_t j = leaf_shape(s, ~child);
      if (!shapes_collide(s, i, j)) continue;
      if (count < capacity) out[count] = shape_pair_key(i, j);
      ++count;
    }
    left = left && node->left >= 0;
    right = right && node->right >= 0;
    if (left && right && depth < PABD_STACK_SIZE)
      stack[depth++] = node->right; /* depth < 64 always holds: unique keys */
    if (left)
      n = node->left;
    else if (right)
      n = node->right;
    else if (depth > 0)
      n = stack[--depth];
    else
      return count;
  }
}

/* count_pairs: partners of leaf p; the first pair_slots of them are noted in pair_scratch, so that few leaves search
 * twice. */
PABD_FN void count_pairs_at(int32_t p, const pabd_view *s) {
  s->hit_count[p] = find_partners(s, p, s->pair_scratch + (size_t)p * (size_t)s->pair_slots, s->pair_slots);
}

/* fill_pairs: pair keys of leaf p to their place. hit_count holds offsets now, cut off at the capacity. */
PABD_FN void fill_pairs_at(int32_t p, const pabd_view *s) {
  int32_t first = s->hit_count[p], end = p + 1 < s->leaf_count ? s->hit_count[p + 1] : s->pair_count,
          count = end - first;
  if (count > s->pair_slots) {
    find_partners(s, p, s->pair_key + first, count);
    return;
  }
  for (int32_t k = 0; k < count; ++k)
    s->pair_key[first + k] = s->pair_scratch[(size_t)p * (size_t)s->pair_slots + (size_t)k];
}

#endif
