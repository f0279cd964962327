/* Restitution of islands that jacobi and direct solve: impulses in velocities after a step (contact-gs has its own
 * pass).
 *
 * Only contacts with restitution cost anything. They are few and depend on each other, so they are taken one after the
 * other in row order, a few times over: the same bits for any thread count. */
#include "restitution.h"

#include "jacobi_kernels.h"

enum { PASSES = 8 };

static vec3 arm_of(const pabd_view *v, int32_t c, int is_b, vec3 n) {
  int32_t stride = v->stride_contact, i = is_b ? v->contact_b[c] : v->contact_a[c];
  vec3 core = plane_get(is_b ? v->contact_core_b : v->contact_core_a, stride, c);
  real offset = is_b ? v->contact_offset_b[c] : -v->contact_offset_a[c];
  return v3_madd(quat_rotate(v->rot[i], core), offset, n);
}

static real normal_speed(const pabd_view *v, int32_t c, vec3 n, vec3 ra, vec3 rb) {
  int32_t a = v->contact_a[c], b = v->contact_b[c];
  vec3 va = v3_add(v->vel[a], v3_cross(v->omega[a], ra)), vb = v3_add(v->vel[b], v3_cross(v->omega[b], rb));
  return v3_dot(n, v3_sub(va, vb));
}

/* Gap at the present poses. */
static real gap_now(const pabd_view *v, int32_t c, vec3 n) {
  int32_t stride = v->stride_contact, a = v->contact_a[c], b = v->contact_b[c];
  vec3 ra = quat_rotate(v->rot[a], plane_get(v->contact_core_a, stride, c));
  vec3 rb = quat_rotate(v->rot[b], plane_get(v->contact_core_b, stride, c));
  vec3 apart = v3_add(v3_sub(v->pos[a], v->pos[b]), v3_sub(ra, rb));
  return v->contact_gap[c] + (v3_dot(n, apart) - v->contact_bias0[c]);
}

static real deceleration_of(const pabd_view *v, int32_t c, vec3 n) {
  return bounce_deceleration(v->gravity, n, v->inv_mass[v->contact_a[c]], v->inv_mass[v->contact_b[c]]);
}

static int has_restitution(const pabd_sim *sim) {
  const pabd_view *v = &sim->view;
  if (sim->frozen) return 1;
  for (int32_t k = 0; k < v->material_count * v->material_count; ++k)
    if (v->restitution[k] > R(0)) return 1;
  return 0;
}

void pabd_restitution_begin(pabd_sim *sim, const pabd_range *range, real h) {
  const pabd_view *v = &sim->view;
  if (!has_restitution(sim)) return;
  real threshold = bounce_threshold(v->gravity, h);
  for (int32_t c = range->contact_first; c < range->contact_first + range->contact_count; ++c) {
    v->contact_rebound[c] = R(0);
    if (!(v->contact_restitution[c] > R(0))) continue;
    vec3 n = plane_get(v->contact_normal, v->stride_contact, c);
    real speed = normal_speed(v, c, n, arm_of(v, c, 0, n), arm_of(v, c, 1, n));
    if (!(speed < -threshold)) continue;
    v->contact_rebound[c] =
        v->contact_restitution[c] * bounce_impact(speed, gap_now(v, c, n), deceleration_of(v, c, n), h);
  }
}

static void push(const pabd_view *v, int32_t i, vec3 impulse, vec3 arm) {
  if (!(v->inv_mass[i] > R(0))) return;
  v->vel[i] = v3_madd(v->vel[i], v->inv_mass[i], impulse);
  v->spin[i] = v3_add(v->spin[i], v3_cross(arm, impulse));
  v->omega[i] = inverse_inertia_apply(v->inv_inertia[i], v->rot[i], v->spin[i]);
}

void pabd_restitution_apply(pabd_sim *sim, const pabd_range *range, real h) {
  const pabd_view *v = &sim->view;
  if (!has_restitution(sim)) return;
  for (int pass = 0; pass < PASSES; ++pass) {
    for (int32_t c = range->contact_first; c < range->contact_first + range->contact_count; ++c) {
      if (!(v->contact_rebound[c] > R(0))) continue;
      int32_t a = v->contact_a[c], b = v->contact_b[c];
      vec3 n = plane_get(v->contact_normal, v->stride_contact, c), ra = arm_of(v, c, 0, n), rb = arm_of(v, c, 1, n);
      /* it has struck if it carries a force, or did so and has stopped: a frame of several steps may end just after */
      if (!(v->contact_lambda[c] > R(0)) && !(normal_speed(v, c, n, ra, rb) >= R(0) && gap_now(v, c, n) < v->margin))
        continue;
      vec3 qa = v3_cross(ra, n), qb = v3_cross(rb, n);
      real K = v->inv_mass[a] + v->inv_mass[b];
      if (v->inv_mass[a] > R(0)) K += v3_dot(qa, inverse_inertia_apply(v->inv_inertia[a], v->rot[a], qa));
      if (v->inv_mass[b] > R(0)) K += v3_dot(qb, inverse_inertia_apply(v->inv_inertia[b], v->rot[b], qb));
      real leave = bounce_leave(v->contact_rebound[c], gap_now(v, c, n), deceleration_of(v, c, n), h);
      real p = (leave - normal_speed(v, c, n, ra, rb)) / K;
      if (!(p > R(0))) continue;
      push(v, a, v3_scale(p, n), ra);
      push(v, b, v3_scale(-p, n), rb);
    }
  }
}
