/* Contact rows as element bodies: from manifolds, with the multipliers of the frame before, and back to be kept.
 *
 * Multipliers are found by pair key and feature; friction is carried as a world vector, for the tangents may have
 * turned. Rows of a pair are contiguous from pair_first. Common C11/CUDA dialect; contacts.c and the device order the
 * calls. */
#ifndef PABD_CONTACT_ROWS_H
#define PABD_CONTACT_ROWS_H

#include "jacobi_kernels.h"

/* First old row, in key order, whose key is not below `key`. */
PABD_FN int32_t find_old(const pabd_view *v, uint64_t key) {
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

/* Multiplier and stiffness of the same feature one frame ago; a feature that changed its name falls back to nothing.
 * `first`: find_old of the key. */
PABD_FN void warm_start(const pabd_view *v, int32_t c, uint64_t key, int32_t first, uint32_t feature, vec3 n, vec3 t1) {
  int32_t stride = v->stride_contact;
  vec3 lambda = v3(R(0), R(0), R(0)), slip = lambda;
  real kappa = R(0), scale = v->warm_scale;
  for (int32_t k = first; k < v->old_count; ++k) {
    int32_t o = v->old_order[k];
    if (v->old_key[o] != key) break;
    if (v->old_feature[o] != feature) continue;
    vec3 world = plane_get(v->old_lambda, stride, o); /* normal, then world tangential force in old_tangent */
    vec3 tangential = plane_get(v->old_tangent, stride, o);
    lambda = v3(scale * world.x, scale * v3_dot(t1, tangential), scale * v3_dot(v3_cross(n, t1), tangential));
    kappa = v->old_kappa[o];
    slip = plane_get(v->old_slip, stride, o);
    break;
  }
  plane_set(v->contact_lambda, stride, c, lambda);
  v->contact_kappa[c] = kappa;
  v->contact_slip[c] = v3_dot(t1, slip);
  v->contact_slip[stride + c] = v3_dot(v3_cross(n, t1), slip);
}

PABD_FN void fill_contact(const pabd_view *v, int32_t c, int32_t a, int32_t b, vec3 n, vec3 point, real gap,
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

/* contact_fill: the rows of pair p, those within the capacity. */
PABD_FN void contact_fill_at(int32_t p, const pabd_view *v) {
  if (v->pair_first[p] < 0) return;
  uint64_t key = v->pair_key[p];
  int32_t sa = (int32_t)(key >> 32), sb = (int32_t)(key & 0xffffffffu), a = v->shape_body[sa], b = v->shape_body[sb];
  int32_t material = v->shape_material[sa] * v->material_count + v->shape_material[sb];
  vec3 n = v->manifold_normal[p], t1 = v3_tangent(n);
  int32_t first = find_old(v, key);
  for (int32_t k = 0; k < v->manifold_count[p]; ++k) {
    int32_t c = v->pair_first[p] + k;
    if (c >= v->stride_contact) break; /* the capacity */
    fill_contact(v, c, a, b, n, v->manifold_point[4 * p + k], v->manifold_gap[4 * p + k], v->manifold_round_a[p],
                 v->manifold_round_b[p]);
    v->contact_key[c] = key;
    v->contact_feature[c] = v->manifold_feature[4 * p + k];
    v->contact_mu[c] = v->friction[material];
    v->contact_restitution[c] = v->restitution[material];
    warm_start(v, c, key, first, v->contact_feature[c], n, t1);
  }
}

/* contact_save: row c for the next frame. */
PABD_FN void contact_save_at(int32_t c, const pabd_view *v) {
  int32_t stride = v->stride_contact;
  vec3 n = plane_get(v->contact_normal, stride, c), t1 = plane_get(v->contact_tangent, stride, c), t2 = v3_cross(n, t1);
  vec3 lambda = plane_get(v->contact_lambda, stride, c);
  v->old_key[c] = v->contact_key[c];
  v->old_feature[c] = v->contact_feature[c];
  plane_set(v->old_lambda, stride, c, lambda);
  plane_set(v->old_tangent, stride, c, v3_add(v3_scale(lambda.y, t1), v3_scale(lambda.z, t2)));
  v->old_kappa[c] = v->contact_kappa[c];
  plane_set(v->old_slip, stride, c,
            v3_add(v3_scale(v->contact_slip[c], t1), v3_scale(v->contact_slip[stride + c], t2)));
}

/* Is the state of body i not finite, or beyond all bounds? */
PABD_FN int body_is_lost(int32_t i, const pabd_view *v) {
  vec3 p = v->pos[i], w = v->omega[i], u = v->vel[i];
  real sum = p.x + p.y + p.z + u.x + u.y + u.z;
  return !(real_abs(sum) < R(1e30)) || !(v3_norm2(w) < v->omega_max * v->omega_max);
}

/* Prescribed motion of a kinematic body over the whole frame. */
PABD_FN void kinematic_at(int32_t i, const pabd_view *v) {
  if (v->motion[i] != PABD_KINEMATIC) return;
  v->pos[i] = v3_madd(v->pos_frame[i], v->h_frame, v->vel[i]);
  v->rot[i] = quat_normalize(quat_mul(quat_exp(v3_scale(v->h_frame, v->omega[i])), v->rot_frame[i]));
}

/* Multipliers of joints decay from frame to frame as those of contacts do. */
PABD_FN void bond_decay_at(int32_t j, const pabd_view *v) {
  v->bond_lambda[j] = v3_scale(v->warm_scale, v->bond_lambda[j]);
}

#endif
