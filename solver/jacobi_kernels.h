/* Kernel bodies of the paper's method: prediction, rows, 13-number block, global and local step, velocities, relax
 * sweeps.
 *
 * One plain function for one row, in the common C11/CUDA dialect (kernels.def lists them with what they read and
 * write). Everything works in increments: a substep starts at the pose (pos, rot); the iterate of a body is total =
 * (displacement, rotation) since then = increment o prediction, so that differences of nearby poses are never formed in
 * float. Lengths of arms and the block are in world axes at the substep's start; "current" means turned by total.q.
 * Conventions of contacts: normal n from b to a, gap g > 0 apart, force on a = lambda_n n + friction, lambda_n >= 0. */
#ifndef PABD_JACOBI_KERNELS_H
#define PABD_JACOBI_KERNELS_H

#include "polar.h"
#include "state.h"

PABD_FN vec3 plane_get(const real *field, int32_t stride, int32_t c) {
  return v3(field[c], field[stride + c], field[2 * stride + c]);
}
PABD_FN void plane_set(real *field, int32_t stride, int32_t c, vec3 v) {
  field[c] = v.x, field[stride + c] = v.y, field[2 * stride + c] = v.z;
}

/* Records field by field: a copy of the whole record would keep a pass over contacts from vectorizing. */
PABD_FN vec3 vec3_at(const vec3 *list, int32_t i) {
  return v3(list[i].x, list[i].y, list[i].z);
}
PABD_FN quat quat_at(const quat *list, int32_t i) {
  return quat_make(list[i].w, list[i].x, list[i].y, list[i].z);
}
PABD_FN quat turn_at(const pabd_motion8 *list, int32_t i) {
  return quat_make(list[i].q.w, list[i].q.x, list[i].q.y, list[i].q.z);
}

/* Displacement of the point at arm r (world, start) under a body's motion: d + (R - 1) r. */
PABD_FN vec3 motion_of(pabd_motion8 m, vec3 r) {
  return v3_add(m.d, quat_turn(m.q, r));
}

PABD_FN pabd_motion8 motion_identity(void) {
  pabd_motion8 m;
  m.d = v3(R(0), R(0), R(0)), m.pad = R(0), m.q = quat_make(R(1), R(0), R(0), R(0));
  return m;
}
PABD_FN vec3 inverse_inertia_apply(vec3 inv_inertia, quat q, vec3 l) {
  return quat_rotate(q, v3_mul(inv_inertia, quat_unrotate(q, l)));
}
PABD_FN vec3 inertia_apply(vec3 inertia, quat q, vec3 w) {
  return quat_rotate(q, v3_mul(inertia, quat_unrotate(q, w)));
}

/* Scalars of the view for substep `substep` of `count`. */
PABD_FN void substep_begin(pabd_view *v, int32_t substep, int32_t count) {
  v->h = v->h_frame / (real)count;
  v->inv_h2 = R(1) / (v->h * v->h);
  v->substep = substep;
  v->substep_count = count;
  v->report_now = 0;
  /* no load is larger than all masses brought to rest in a substep, or carried: the load rule stops there */
  v->kappa_most = v->mass_total * real_max(v->inv_h2, v3_norm(v->gravity) / v->delta);
}

/* ---------------------------------------------------------------- prediction (method, section 3) */

PABD_FN void frame_begin_at(int32_t i, const pabd_view *s) {
  s->pos_frame[i] = s->pos[i];
  s->rot_frame[i] = s->rot[i];
}

/* Dynamic: v* = v + h f/m, L* = L + h torque; the rotation advances with L* held constant: w_mid = I(R_mid)^-1 L*,
 * R_mid half way to R~, by fixed-point passes (two give wrong flips of a spinning box at 4 substeps). Linear
 * prediction: the paper's A~ = (1 + h [w]) R, whose nearest rotation turns by atan(h |w|). Kinematic: prescribed motion
 * over the frame. */
PABD_FN void predict_at(int32_t i, const pabd_view *s) {
  if (s->motion[i] == PABD_STATIC) return;
  if (s->motion[i] == PABD_KINEMATIC) {
    real t0 = s->h_frame * R(s->substep) / R(s->substep_count),
         t1 = s->h_frame * R(s->substep + 1) / R(s->substep_count);
    vec3 w = s->omega[i];
    quat q0 = quat_mul(quat_exp(v3_scale(t0, w)), s->rot_frame[i]);
    s->pos[i] = v3_madd(s->pos_frame[i], t0, s->vel[i]);
    s->rot[i] = quat_normalize(q0);
    pabd_motion8 m = motion_identity();
    m.d = v3_scale(t1 - t0, s->vel[i]);
    m.q = quat_exp(v3_scale(t1 - t0, w));
    s->total[i] = m;
    return;
  }
  real h = s->h;
  vec3 v = v3_madd(s->vel[i], h, v3_madd(s->gravity, s->inv_mass[i], s->load_force[i]));
  vec3 l = v3_madd(s->spin[i], h, s->load_torque[i]);
  quat q0 = s->rot[i], turn;
  if (s->prediction == PABD_PREDICT_MOMENTUM) {
    vec3 k = s->inv_inertia[i], w = inverse_inertia_apply(k, q0, l);
    /* L and w are parallel for an isotropic body: w is constant. Else the mid orientation turns by h w/2, a quarter
     * angle u = h w/4 with tan u = u + u^3/3 + O(u^5); with tan u = u alone the flips of a spinning box drift by 0.12 s
     * in 10 s */
    int32_t passes = k.x == k.y && k.y == k.z ? 0 : s->predict_passes;
    for (int32_t pass = 0; pass < passes; ++pass) {
      vec3 u = v3_scale(R(0.25) * h, w);
      u = v3_scale(R(1) + R(1.0 / 3) * v3_norm2(u), u);
      quat mid = quat_mul(quat_normalize(quat_make(R(1), u.x, u.y, u.z)), q0);
      w = inverse_inertia_apply(k, mid, l);
    }
    turn = quat_exp(v3_scale(h, w));
  } else {
    vec3 w = inverse_inertia_apply(s->inv_inertia[i], q0, l);
    turn = quat_from_tangent(v3_scale(h, w));
  }
  s->vel_star[i] = v;
  s->spin_star[i] = l;
  s->step_pred[i] = v3_scale(h, v);
  s->turn_pred[i] = turn;
  s->inc_pos[i] = v3(R(0), R(0), R(0));
  s->inc_rot[i] = quat_make(R(1), R(0), R(0), R(0));
  pabd_motion8 m;
  m.d = s->step_pred[i], m.pad = R(0), m.q = turn;
  s->total[i] = m;
}

/* ---------------------------------------------------------------- contact rows */

/* Reduced mass of a pair of which at least one body is dynamic. */
PABD_FN real reduced(real inv_a, real inv_b) {
  return R(1) / (inv_a + inv_b);
}

/* kappa of a hard row. Written without branches, so that a pass over contacts vectorizes. */
PABD_FN real stiffness_of(const pabd_view *s, real base, real fixed, real load, real before, real error) {
  /* load rule: growing at most by the factor `growth` and falling at most by a tenth a substep keeps impacts from
   * feeding back */
  real by_load =
      real_max(base, real_max(real_min(real_min(load / s->delta, s->kappa_most), s->growth * before), R(0.9) * before));
  real ramp = real_max(real_min(fixed, base), before + s->beta * error);
  return s->stiffness_rule == PABD_STIFFNESS_LOAD
             ? by_load
             : (s->stiffness_rule == PABD_STIFFNESS_FIXED ? fixed
                                                          : (s->stiffness_rule == PABD_STIFFNESS_MASS ? base : ramp));
}

/* World arms, constant part of C and stiffness for this substep. Round shapes: the contact point stays on the fixed
 * normal at distance `offset` from the core, so its motion is that of the core plus a rolling slip; the arm is chosen
 * so that both agree at the predicted rotation (a material arm would sink a rolling ball by r (1 - cos)). */
PABD_FN void contact_begin_at(int32_t c, const pabd_view *s) {
  int32_t stride = s->stride_contact, a = s->contact_a[c], b = s->contact_b[c];
  vec3 n = plane_get(s->contact_normal, stride, c), t1 = plane_get(s->contact_tangent, stride, c), t2 = v3_cross(n, t1);
  vec3 ra = quat_rotate(quat_at(s->rot, a), plane_get(s->contact_core_a, stride, c));
  vec3 rb = quat_rotate(quat_at(s->rot, b), plane_get(s->contact_core_b, stride, c));
  vec3 oa = v3_scale(-s->contact_offset_a[c], n), ob = v3_scale(s->contact_offset_b[c], n);
  vec3 apart = v3_add(v3_sub(vec3_at(s->pos, a), vec3_at(s->pos, b)), v3_sub(ra, rb));
  real gap = s->contact_gap[c] + (v3_dot(n, apart) - s->contact_bias0[c]);
  quat qa = turn_at(s->total, a), qb = turn_at(s->total, b);
  vec3 ta = quat_unrotate(qa, oa), tb = quat_unrotate(qb, ob);
  vec3 slip = v3_sub(v3_sub(v3_scale(R(2), v3_cross(quat_vec(qa), oa)), v3_sub(oa, ta)),
                     v3_sub(v3_scale(R(2), v3_cross(quat_vec(qb), ob)), v3_sub(ob, tb)));
  plane_set(s->contact_arm_a, stride, c, v3_add(ra, ta));
  plane_set(s->contact_arm_b, stride, c, v3_add(rb, tb));
  real removed = s->multipliers ? R(1) - s->alpha : R(1);
  /* overlap is removed at a bounded speed: what is pushed out faster keeps part of that speed as kinetic energy */
  real pushed = s->multipliers ? real_max(removed * gap, -s->pushout_speed * s->h) : gap;
  real bias = (gap < R(0) ? pushed : gap) + v3_dot(n, slip);
  plane_set(s->contact_c0, stride, c, v3(bias, v3_dot(t1, slip), v3_dot(t2, slip)));
  s->contact_gap0[c] = gap;
  real base = s->stiffness_scale * reduced(s->inv_mass[a], s->inv_mass[b]) * s->inv_h2;
  s->contact_kappa[c] =
      stiffness_of(s, base, s->kappa_fixed, s->contact_lambda[c], s->contact_kappa[c], gap < R(0) ? -gap : R(0));
}

/* Force of the multipliers (fn, f1, f2) after the bounds: push only, friction scaled back onto the cone. */
PABD_FN vec3 cone_project(vec3 f, real mu) {
  real n = real_max(f.x, R(0)), t = real_sqrt(f.y * f.y + f.z * f.z), limit = mu * n;
  real scale = t > limit ? limit / t : R(1);
  return v3(n, scale * f.y, scale * f.z);
}
PABD_FN vec3 contact_c(int32_t c, const pabd_view *s, vec3 relative, vec3 n, vec3 t1, vec3 t2) {
  int32_t stride = s->stride_contact;
  return v3(v3_dot(n, relative) + s->contact_c0[c], v3_dot(t1, relative) + s->contact_c0[stride + c],
            v3_dot(t2, relative) + s->contact_c0[2 * stride + c]);
}
/* The row force, and with `dual` first the multiplier step at the same iterate (the extrapolated dual of section 6). */
PABD_FN void contact_eval(int32_t c, const pabd_view *s, vec3 relative, int dual) {
  int32_t stride = s->stride_contact;
  vec3 n = plane_get(s->contact_normal, stride, c), t1 = plane_get(s->contact_tangent, stride, c), t2 = v3_cross(n, t1);
  vec3 k = v3_scale(s->contact_kappa[c], contact_c(c, s, relative, n, t1, t2));
  vec3 lambda = plane_get(s->contact_lambda, stride, c);
  real mu = s->contact_mu[c];
  if (dual) {
    lambda = cone_project(v3_sub(lambda, v3_scale(s->dual_damping, k)), mu);
    plane_set(s->contact_lambda, stride, c, lambda);
  }
  vec3 f = cone_project(v3_sub(lambda, k), mu);
  plane_set(s->contact_force, stride, c, v3_add(v3_scale(f.x, n), v3_add(v3_scale(f.y, t1), v3_scale(f.z, t2))));
}
PABD_FN vec3 motion_at(const pabd_motion8 *total, int32_t body, vec3 r) {
  vec3 d = v3(total[body].d.x, total[body].d.y, total[body].d.z);
  return v3_add(d, quat_turn(turn_at(total, body), r));
}
PABD_FN vec3 contact_relative(int32_t c, const pabd_view *s) {
  int32_t stride = s->stride_contact;
  return v3_sub(motion_at(s->total, s->contact_a[c], plane_get(s->contact_arm_a, stride, c)),
                motion_at(s->total, s->contact_b[c], plane_get(s->contact_arm_b, stride, c)));
}
PABD_FN void contact_force_at(int32_t c, const pabd_view *s) {
  contact_eval(c, s, contact_relative(c, s), 0);
}
PABD_FN void contact_dual_at(int32_t c, const pabd_view *s) {
  contact_eval(c, s, contact_relative(c, s), 1);
}

/* ---------------------------------------------------------------- joint rows (bonds) */

PABD_FN pabd_motion8 bond_total(const pabd_view *s, int32_t body) {
  return body < 0 ? motion_identity() : s->total[body];
}

PABD_FN void bond_begin_at(int32_t j, const pabd_view *s) {
  int32_t a = s->bond_a[j], b = s->bond_b[j];
  uint32_t kind = s->bond_kind[j];
  vec3 ra = a < 0 ? s->bond_local_a[j] : quat_rotate(s->rot[a], s->bond_local_a[j]);
  vec3 rb = quat_rotate(s->rot[b], s->bond_local_b[j]);
  vec3 pa = a < 0 ? v3(R(0), R(0), R(0)) : s->pos[a];
  vec3 start = kind == PABD_BOND_DIRECTION ? v3_sub(ra, rb) : v3_add(v3_sub(pa, s->pos[b]), v3_sub(ra, rb));
  vec3 axis = a < 0 ? s->bond_axis_local[j] : quat_rotate(s->rot[a], s->bond_axis_local[j]);
  real inv_a = a < 0 ? R(0) : s->inv_mass[a], inv_b = s->inv_mass[b];
  real base, fixed = s->kappa_fixed, load = v3_norm(s->bond_lambda[j]), error;
  real removed = s->multipliers ? R(1) - s->alpha : R(1);
  s->bond_arm_a[j] = ra;
  s->bond_arm_b[j] = rb;
  s->bond_start[j] = start;
  s->bond_axis[j] = axis;
  if (kind == PABD_BOND_DIRECTION) {
    /* stiffness in N m: reduced mean inertia over h^2 */
    vec3 ia = a < 0 ? v3(R(0), R(0), R(0)) : s->inv_inertia[a], ib = s->inv_inertia[b];
    base = s->stiffness_scale * R(3) / (ia.x + ia.y + ia.z + ib.x + ib.y + ib.z) * s->inv_h2;
    fixed = s->kappa_angle_fixed;
  } else {
    base = s->stiffness_scale * reduced(inv_a, inv_b) * s->inv_h2;
  }
  if (kind == PABD_BOND_SPRING) {
    /* f = -(k (d - L) + c (d - d0)/h) = -ks (d - Lc) */
    real d0 = v3_norm(start), ks = s->bond_stiffness[j] + s->bond_damping[j] / s->h;
    s->bond_kappa[j] = ks;
    s->bond_stamp[j] = ks;
    s->bond_c0[j] = v3((s->bond_stiffness[j] * s->bond_rest[j] + s->bond_damping[j] / s->h * d0) / ks, R(0), R(0));
    return;
  }
  if (kind == PABD_BOND_DISTANCE) {
    real d0 = v3_norm(start);
    error = d0 - s->bond_rest[j];
    s->bond_c0[j] = v3((R(1) - removed) * error, R(0), R(0)); /* C = d - rest - this */
    error = real_abs(error);
    load = real_abs(s->bond_lambda[j].x);
  } else if (kind == PABD_BOND_LINE) {
    vec3 off = v3_madd(start, -v3_dot(axis, start), axis);
    error = v3_norm(off);
    s->bond_c0[j] = v3_scale(R(1) - removed, off);
  } else {
    error = v3_norm(start);
    s->bond_c0[j] = v3_scale(R(1) - removed, start);
  }
  /* cap of the load term on joints: without it a heavy chain goes to NaN */
  real cap = s->joint_cap * base;
  real kappa = stiffness_of(s, base, fixed, real_min(load, cap * s->delta), s->bond_kappa[j], error);
  s->bond_kappa[j] = kappa;
  /* positive part of the split for a distance row: tension adds w+ = lambda/d */
  real d = kind == PABD_BOND_DISTANCE ? v3_norm(start) : R(1);
  s->bond_stamp[j] =
      kind == PABD_BOND_DISTANCE ? kappa + real_max(s->bond_lambda[j].x, R(0)) / real_max(d, R(1e-6)) : kappa;
}

/* Evaluates a bond at the iterate; with `dual` the multiplier step comes first. Force is that on a's end. */
PABD_FN void bond_eval(int32_t j, const pabd_view *s, int dual) {
  uint32_t kind = s->bond_kind[j];
  pabd_motion8 ma = bond_total(s, s->bond_a[j]), mb = bond_total(s, s->bond_b[j]);
  vec3 rb = s->bond_arm_b[j];
  real kappa = s->bond_kappa[j];
  if (kind == PABD_BOND_DIRECTION) {
    vec3 r = v3_add(s->bond_start[j], v3_sub(quat_turn(ma.q, s->bond_arm_a[j]), quat_turn(mb.q, rb)));
    vec3 k = v3_scale(kappa, v3_sub(r, s->bond_c0[j]));
    if (dual) s->bond_lambda[j] = v3_madd(s->bond_lambda[j], s->dual_damping, k);
    s->bond_force[j] = v3_neg(v3_add(s->bond_lambda[j], k));
    s->bond_error[j] = v3_norm(r);
    return;
  }
  if (kind == PABD_BOND_LINE) {
    /* the force acts at b's point on both bodies: a's arm is the slid point, R_a^T (y_b - p_a), refreshed here */
    vec3 axis = quat_rotate(ma.q, s->bond_axis[j]);
    vec3 root = s->bond_a[j] < 0 ? s->bond_local_a[j] : quat_rotate(s->rot[s->bond_a[j]], s->bond_local_a[j]);
    vec3 r = v3_add(s->bond_start[j], v3_sub(motion_of(ma, root), motion_of(mb, rb)));
    vec3 off = v3_madd(r, -v3_dot(axis, r), axis);
    vec3 k = v3_scale(kappa, v3_sub(off, s->bond_c0[j]));
    vec3 lambda = s->bond_lambda[j];
    if (dual) lambda = v3_madd(lambda, s->dual_damping, k);
    lambda = v3_madd(lambda, -v3_dot(axis, lambda), axis);
    if (dual) s->bond_lambda[j] = lambda;
    vec3 f = v3_neg(v3_add(lambda, k));
    s->bond_force[j] = v3_madd(f, -v3_dot(axis, f), axis);
    s->bond_arm_a[j] = v3_sub(root, quat_unrotate(ma.q, r)); /* R_a^T (y_b - p_a) = root - R_a^T r */
    s->bond_error[j] = v3_norm(off);
    return;
  }
  vec3 r = v3_add(s->bond_start[j], v3_sub(motion_of(ma, s->bond_arm_a[j]), motion_of(mb, rb)));
  if (kind == PABD_BOND_POINT) {
    vec3 k = v3_scale(kappa, v3_sub(r, s->bond_c0[j]));
    if (dual) s->bond_lambda[j] = v3_madd(s->bond_lambda[j], s->dual_damping, k);
    s->bond_force[j] = v3_neg(v3_add(s->bond_lambda[j], k));
    s->bond_error[j] = v3_norm(r);
    return;
  }
  real d = v3_norm(r);
  vec3 u = v3_unit(r, v3(R(0), R(0), R(1)));
  if (kind == PABD_BOND_SPRING) {
    s->bond_force[j] = v3_scale(-kappa * (d - s->bond_c0[j].x), u);
    s->bond_error[j] = R(0);
    return;
  }
  real k = kappa * (d - s->bond_rest[j] - s->bond_c0[j].x), lambda = s->bond_lambda[j].x;
  if (dual) {
    lambda = real_clamp(lambda + s->dual_damping * k, s->bond_low[j], s->bond_high[j]);
    s->bond_lambda[j].x = lambda;
  }
  s->bond_force[j] = v3_scale(-real_clamp(lambda + k, s->bond_low[j], s->bond_high[j]), u);
  real wrong = d - s->bond_rest[j];
  /* a rope's slack and a strut's gap are no errors */
  if (!(s->bond_low[j] < R(0)) && wrong < R(0)) wrong = R(0);
  if (!(s->bond_high[j] > R(0)) && wrong > R(0)) wrong = R(0);
  s->bond_error[j] = real_abs(wrong);
}
PABD_FN void bond_force_at(int32_t j, const pabd_view *s) {
  bond_eval(j, s, 0);
}
PABD_FN void bond_dual_at(int32_t j, const pabd_view *s) {
  bond_eval(j, s, 1);
}

/* ---------------------------------------------------------------- the 13-number block (method section 4, paper 4.3) */

/* Stiffness and arm of one end in the list of body i. Returns 0 for an end that stamps nothing. */
PABD_FN int contact_stamp(int32_t code, const pabd_view *s, real *k, vec3 *r) {
  int32_t c = code >> 1, stride = s->stride_contact;
  if (!s->stamp_open && s->contact_gap0[c] > R(0)) return 0;
  int both = s->inv_mass[s->contact_a[c]] > R(0) && s->inv_mass[s->contact_b[c]] > R(0);
  *k = both ? s->bond_factor * s->contact_kappa[c] : s->contact_kappa[c];
  *r = plane_get((code & 1) ? s->contact_arm_b : s->contact_arm_a, stride, c);
  return 1;
}
PABD_FN void bond_stamp(int32_t code, const pabd_view *s, real *k, vec3 *r) {
  int32_t j = code >> 1, a = s->bond_a[j];
  int both = a >= 0 && s->inv_mass[a] > R(0) && s->inv_mass[s->bond_b[j]] > R(0);
  *k = both ? s->bond_factor * s->bond_stamp[j] : s->bond_stamp[j];
  *r = (code & 1) ? s->bond_arm_b[j] : s->bond_arm_a[j];
}
/* a, b, D and S = D - b b^T/a. S is summed about the weighted centre c = b/a, because the difference loses all digits
 * in float where k h^2/m is large: S = Pi/h^2 + sum k (r - c)(r - c)^T + (m/h^2) c c^T. */
PABD_FN pabd_block block_of(int32_t i, const pabd_view *s, quat rot) {
  pabd_block block;
  real m = s->mass[i] * s->inv_h2, k;
  vec3 r;
  block.a = m;
  block.b = v3(R(0), R(0), R(0));
  PABD_NO_UNROLL
  for (int32_t e = s->end_first[i]; e < s->end_first[i + 1]; ++e) {
    if (!contact_stamp(s->contact_end[e], s, &k, &r)) continue;
    block.a += k;
    block.b = v3_madd(block.b, k, r);
  }
  PABD_NO_UNROLL
  for (int32_t e = s->bond_end_first[i]; e < s->bond_end_first[i + 1]; ++e) {
    if (s->bond_kind[s->bond_end[e] >> 1] == PABD_BOND_DIRECTION) continue;
    bond_stamp(s->bond_end[e], s, &k, &r);
    block.a += k;
    block.b = v3_madd(block.b, k, r);
  }
  vec3 c = v3_scale(R(1) / block.a, block.b);
  block.Pi = sym3_scale(s->inv_h2, sym3_rotate_diagonal(rot, s->moment[i]));
  sym3 S = sym3_rank1(block.Pi, m, c);
  PABD_NO_UNROLL
  for (int32_t e = s->end_first[i]; e < s->end_first[i + 1]; ++e)
    if (contact_stamp(s->contact_end[e], s, &k, &r)) S = sym3_rank1(S, k, v3_sub(r, c));
  PABD_NO_UNROLL
  for (int32_t e = s->bond_end_first[i]; e < s->bond_end_first[i + 1]; ++e) {
    bond_stamp(s->bond_end[e], s, &k, &r);
    S = sym3_rank1(S, k, s->bond_kind[s->bond_end[e] >> 1] == PABD_BOND_DIRECTION ? r : v3_sub(r, c));
  }
  block.S = S;
  return block;
}
PABD_FN void block_at(int32_t i, const pabd_view *s) {
  if (s->motion[i] == PABD_DYNAMIC) s->block[i] = block_of(i, s, s->rot[i]);
}

/* ---------------------------------------------------------------- global and local step (method sections 4 and 5) */

/* Gathers the bond forces of body i in list order: F = sum f, G = sum f r^T (arms in start axes; directions: no part in
 * F). */
PABD_FN void gather(int32_t i, const pabd_view *s, vec3 *force, mat3 *moment) {
  int32_t stride = s->stride_contact;
  vec3 F = v3(R(0), R(0), R(0));
  mat3 G = mat3_zero();
  for (int32_t e = s->end_first[i]; e < s->end_first[i + 1]; ++e) {
    int32_t code = s->contact_end[e], c = code >> 1;
    vec3 f = plane_get(s->contact_force, stride, c), r;
    if (code & 1) {
      f = v3_neg(f);
      r = plane_get(s->contact_arm_b, stride, c);
    } else {
      r = plane_get(s->contact_arm_a, stride, c);
    }
    F = v3_add(F, f);
    G = mat3_outer(G, f, r);
  }
  for (int32_t e = s->bond_end_first[i]; e < s->bond_end_first[i + 1]; ++e) {
    int32_t code = s->bond_end[e], j = code >> 1;
    vec3 f = (code & 1) ? v3_neg(s->bond_force[j]) : s->bond_force[j];
    if (s->bond_kind[j] != PABD_BOND_DIRECTION) F = v3_add(F, f);
    G = mat3_outer(G, f, (code & 1) ? s->bond_arm_b[j] : s->bond_arm_a[j]);
  }
  *force = F;
  *moment = G;
}

/* (R(q) - 1) as a matrix, without cancellation for small rotations. */
PABD_FN mat3 quat_minus_identity(quat q) {
  real xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z;
  mat3 m;
  m.x = v3(R(-2) * (yy + zz), R(2) * (q.x * q.y - q.w * q.z), R(2) * (q.x * q.z + q.w * q.y));
  m.y = v3(R(2) * (q.x * q.y + q.w * q.z), R(-2) * (xx + zz), R(2) * (q.y * q.z - q.w * q.x));
  m.z = v3(R(2) * (q.x * q.z - q.w * q.y), R(2) * (q.y * q.z + q.w * q.x), R(-2) * (xx + yy));
  return m;
}
/* The sweep is itself an iteration with the right fixed point: a Newton step of the polar factor below 1e-2 rad is good
 * enough in it. */
#define SWEEP_POLAR R(1e-4)

/* Global step: dQ = H^-1 (-g) on the affine body, g the gradient at the iterate; local step: back to a rigid motion,
 * per variant.
 *
 * In material axes (those of the substep's start): the affine iterate is A = T (1 + dA), T the rigid one, and what
 * drives dA is E = T^T (sum f r^T) - (inertia) - (T^T g_p) b^T/a,    (1 + dA) = 1 + E S^-1, where the inertia is T^T (A
 * - A~) Pi/h^2 = (1 - inc^T) Pi/h^2 with inc the increment turned into these axes. */
PABD_FN void body_sweep_at(int32_t i, const pabd_view *s) {
  if (s->motion[i] != PABD_DYNAMIC) return;
  pabd_block block = s->block[i];
  quat inc = s->inc_rot[i], total = s->total[i].q;
  vec3 F;
  mat3 G;
  gather(i, s, &F, &G);
  vec3 g_p = v3_madd(F, -s->mass[i] * s->inv_h2, s->inc_pos[i]);
  mat3 T = quat_matrix(total), E;
  E.x = v3_add(v3_add(v3_scale(T.x.x, G.x), v3_scale(T.y.x, G.y)), v3_scale(T.z.x, G.z));
  E.y = v3_add(v3_add(v3_scale(T.x.y, G.x), v3_scale(T.y.y, G.y)), v3_scale(T.z.y, G.z));
  E.z = v3_add(v3_add(v3_scale(T.x.z, G.x), v3_scale(T.y.z, G.y)), v3_scale(T.z.z, G.z));
  /* (inc^T - 1) without cancellation; the linear prediction's A~ = T~ (1 + Y) adds inc^T Y */
  vec3 inc_vec = quat_unrotate(s->turn_pred[i], quat_vec(inc));
  mat3 W = quat_minus_identity(quat_make(inc.w, -inc_vec.x, -inc_vec.y, -inc_vec.z));
  if (s->prediction == PABD_PREDICT_LINEAR) {
    /* Y = (sqrt(1 + h^2 w^2) - 1)(1 - n n^T), with 1/sqrt(1 + h^2 w^2) the cosine of the predicted turn */
    vec3 u = quat_vec(s->turn_pred[i]);
    real sin2 = v3_norm2(u);
    if (sin2 > R(1e-16)) {
      real stretch = R(2) * sin2 / (R(1) - R(2) * sin2), k = -stretch / sin2;
      sym3 Y = sym3_rank1(sym3_make(stretch, stretch, stretch, R(0), R(0), R(0)), k, u);
      mat3 WY = mat3_mul_sym3(W, Y); /* inc^T Y = Y + (inc^T - 1) Y */
      W = mat3_add(W, WY);
      W.x.x += Y.xx, W.y.y += Y.yy, W.z.z += Y.zz;
      W.x.y += Y.xy, W.y.x += Y.xy, W.x.z += Y.xz, W.z.x += Y.xz, W.y.z += Y.yz, W.z.y += Y.yz;
    }
  }
  E = mat3_add(E, mat3_mul_sym3(W, block.Pi));
  if (s->report_now) {
    /* residual: the rigid gradient (force and torque) of the iterate that came in */
    real gyration = real_sqrt((s->moment[i].x + s->moment[i].y + s->moment[i].z) / s->mass[i]);
    s->residual[i] = real_max(v3_norm(g_p), v3_norm(mat3_moment(E)) / gyration);
  }
  /* eliminate the translation */
  real inv_a = R(1) / block.a;
  E = mat3_outer(E, v3_scale(-inv_a, mat3_tmul(T, g_p)), block.b);
  quat turn;
  vec3 lever; /* (A - T) b in material axes: how the linear part moves the point where the bonds pull */
  if (s->local_step == PABD_LOCAL_HESSIAN && !s->report_now) {
    turn = polar_increment(block.S, E, SWEEP_POLAR);
    lever = quat_turn(turn, block.b);
  } else {
    mat3 dA = mat3_mul_sym3(E, sym3_inverse(block.S));
    if (s->report_now) {
      /* |A^T A - 1| of the affine iterate */
      mat3 At;
      At.x = v3(dA.x.x, dA.y.x, dA.z.x), At.y = v3(dA.x.y, dA.y.y, dA.z.y), At.z = v3(dA.x.z, dA.y.z, dA.z.z);
      mat3 d = mat3_add(mat3_mul_transposed(At, At), mat3_add(dA, At));
      s->defect[i] = real_sqrt(v3_norm2(d.x) + v3_norm2(d.y) + v3_norm2(d.z));
    }
    lever = mat3_mul(dA, block.b);
    if (s->local_step == PABD_LOCAL_HESSIAN) {
      turn = polar_increment(block.S, E, SWEEP_POLAR);
      lever = quat_turn(turn, block.b);
    } else if (s->local_step == PABD_LOCAL_MASS) {
      turn = polar_increment(block.Pi, mat3_mul_sym3(dA, block.Pi), SWEEP_POLAR);
    } else if (s->local_step == PABD_LOCAL_FROBENIUS) {
      turn = polar_increment(sym3_make(R(1), R(1), R(1), R(0), R(0), R(0)), dA, SWEEP_POLAR);
    } else {
      turn = quat_exp(v3_scale(R(0.5), mat3_moment(dA)));
    }
  }
  vec3 d = v3_madd(s->inc_pos[i], inv_a, v3_sub(g_p, mat3_mul(T, lever)));
  vec3 turn_vec = mat3_mul(T, quat_vec(turn)); /* into current axes */
  inc = quat_renormalize(quat_mul(quat_make(turn.w, turn_vec.x, turn_vec.y, turn_vec.z), inc));
  s->inc_pos[i] = d;
  s->inc_rot[i] = inc;
  pabd_motion8 m;
  m.d = v3_add(s->step_pred[i], d), m.pad = R(0), m.q = quat_mul(inc, s->turn_pred[i]);
  s->total[i] = m;
}

/* ---------------------------------------------------------------- velocities (method section 3.3) */

PABD_FN void update_at(int32_t i, const pabd_view *s) {
  if (s->motion[i] == PABD_STATIC) return;
  pabd_motion8 m = s->total[i];
  quat rot = quat_normalize(quat_mul(m.q, s->rot[i]));
  s->pos[i] = v3_add(s->pos[i], m.d);
  s->rot[i] = rot;
  if (s->motion[i] == PABD_KINEMATIC) return; /* velocities are prescribed */
  real inv_h = R(1) / s->h;
  if (s->velocity_rule == PABD_VELOCITY_MOMENTUM) {
    s->vel[i] = v3_madd(s->vel_star[i], inv_h, s->inc_pos[i]);
    vec3 turned = v3_scale(inv_h, quat_log(s->inc_rot[i]));
    s->spin[i] = v3_add(s->spin_star[i], inertia_apply(s->inertia[i], rot, turned));
    s->omega[i] = inverse_inertia_apply(s->inv_inertia[i], rot, s->spin[i]);
  } else {
    /* Lemma 1: [w] = (Adot A^-1 - (Adot A^-1)^T)/2 with Adot = (A - A0)/h: sin(angle)/h about the axis */
    s->vel[i] = v3_scale(inv_h, m.d);
    s->omega[i] = v3_scale(R(2) * m.q.w * inv_h, quat_vec(m.q));
    s->spin[i] = inertia_apply(s->inertia[i], rot, s->omega[i]);
  }
}

/* ---------------------------------------------------------------- relax sweeps (ours, method section 7a): velocities
 * only, bias off */

/* Arms and gaps at the new pose. C = h J(q1)(v, w) + max(g1, 0) on the normal row. */
PABD_FN void relax_begin_at(int32_t c, const pabd_view *s) {
  int32_t stride = s->stride_contact, a = s->contact_a[c], b = s->contact_b[c];
  vec3 n = plane_get(s->contact_normal, stride, c);
  vec3 ra = plane_get(s->contact_arm_a, stride, c), rb = plane_get(s->contact_arm_b, stride, c);
  pabd_motion8 ma = s->total[a], mb = s->total[b];
  real gap = s->contact_gap0[c] + v3_dot(n, v3_sub(motion_of(ma, ra), motion_of(mb, rb)));
  plane_set(s->contact_arm_a, stride, c, quat_rotate(ma.q, ra));
  plane_set(s->contact_arm_b, stride, c, quat_rotate(mb.q, rb));
  plane_set(s->contact_c0, stride, c, v3(gap > R(0) ? gap : R(0), R(0), R(0)));
}
PABD_FN void relax_contact_at(int32_t c, const pabd_view *s) {
  int32_t stride = s->stride_contact, a = s->contact_a[c], b = s->contact_b[c];
  vec3 va = v3_add(s->vel[a], v3_cross(s->omega[a], plane_get(s->contact_arm_a, stride, c)));
  vec3 vb = v3_add(s->vel[b], v3_cross(s->omega[b], plane_get(s->contact_arm_b, stride, c)));
  contact_eval(c, s, v3_scale(s->h, v3_sub(va, vb)), 1);
}
/* Block at the new pose; joint forces are kept as they are and only stamp the block. */
PABD_FN void relax_block_at(int32_t i, const pabd_view *s) {
  if (s->motion[i] != PABD_DYNAMIC || s->end_first[i + 1] == s->end_first[i]) return;
  s->block[i] = block_of(i, s, s->rot[i]);
  pabd_wrench kept;
  kept.force = kept.torque = v3(R(0), R(0), R(0));
  quat q = s->total[i].q;
  for (int32_t e = s->bond_end_first[i]; e < s->bond_end_first[i + 1]; ++e) {
    int32_t code = s->bond_end[e], j = code >> 1;
    vec3 f = (code & 1) ? v3_neg(s->bond_force[j]) : s->bond_force[j];
    vec3 r = quat_rotate(q, (code & 1) ? s->bond_arm_b[j] : s->bond_arm_a[j]);
    if (s->bond_kind[j] != PABD_BOND_DIRECTION) kept.force = v3_add(kept.force, f);
    kept.torque = v3_add(kept.torque, v3_cross(r, f));
  }
  s->kept[i] = kept;
}
/* One linear block solve towards (v*, L*): velocities only. Bodies without candidates stay untouched, bit for bit. */
PABD_FN void relax_body_at(int32_t i, const pabd_view *s) {
  if (s->motion[i] != PABD_DYNAMIC || s->end_first[i + 1] == s->end_first[i]) return;
  int32_t stride = s->stride_contact;
  vec3 F = s->kept[i].force, tau = s->kept[i].torque;
  for (int32_t e = s->end_first[i]; e < s->end_first[i + 1]; ++e) {
    int32_t code = s->contact_end[e], c = code >> 1;
    vec3 f = plane_get(s->contact_force, stride, c), r;
    if (code & 1) {
      f = v3_neg(f);
      r = plane_get(s->contact_arm_b, stride, c);
    } else {
      r = plane_get(s->contact_arm_a, stride, c);
    }
    F = v3_add(F, f);
    tau = v3_add(tau, v3_cross(r, f));
  }
  real inv_h = R(1) / s->h;
  pabd_block block = s->block[i];
  vec3 g_p = v3_madd(F, -s->mass[i] * inv_h, v3_sub(s->vel[i], s->vel_star[i]));
  vec3 g_r = v3_madd(tau, -inv_h, v3_sub(s->spin[i], s->spin_star[i]));
  real inv_a = R(1) / block.a;
  vec3 c = v3_scale(inv_a, block.b);
  vec3 turn = sym3_mul(sym3_inverse(sym3_gyration(block.S)), v3_sub(g_r, v3_cross(c, g_p)));
  vec3 step = v3_sub(v3_scale(inv_a, g_p), v3_cross(turn, c));
  s->vel[i] = v3_madd(s->vel[i], inv_h, step);
  vec3 w = v3_madd(s->omega[i], inv_h, turn);
  s->omega[i] = w;
  s->spin[i] = v3_add(s->spin[i], inertia_apply(s->inertia[i], s->rot[i], v3_scale(inv_h, turn)));
}

#endif
