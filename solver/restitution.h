/* Restitution: how fast a contact leaves again.
 *
 * All steps integrate flight by v <- v + h g, z <- z + h v, which keeps v^2/2 + a z - a h v/2 (a: deceleration along
 * the normal) instead of the energy. Impact and rebound speed follow from that quantity, so that a ball that falls from
 * H comes back to e^2 H for any h, although an impact is only seen at the end of the substep that closes the gap. */
#ifndef PABD_RESTITUTION_H
#define PABD_RESTITUTION_H

#include "state.h"

/* Relative acceleration along the normal that brings the bodies together, m/s^2: only bodies that can move fall. */
PABD_FN real bounce_deceleration(vec3 gravity, vec3 n, real inv_mass_a, real inv_mass_b) {
  real moves_a = inv_mass_a > R(0) ? R(1) : R(0), moves_b = inv_mass_b > R(0) ? R(1) : R(0);
  return -v3_dot(gravity, n) * (moves_a - moves_b);
}

/* Speed at which a contact will close that comes in at `approach` < 0 with `gap` still to go, m/s. */
PABD_FN real bounce_impact(real approach, real gap, real deceleration, real h) {
  real impact2 = approach * approach + deceleration * (R(2) * gap - h * approach);
  return real_sqrt(real_max(impact2, R(0)));
}
/* Speed of leaving that has, from the `gap` where the step has left the contact, the motion of one that leaves gap 0 at
 * `rebound` (e times the impact speed), m/s. */
PABD_FN real bounce_leave(real rebound, real gap, real deceleration, real h) {
  real drift = R(0.5) * deceleration * h;
  return drift + real_sqrt(real_max(drift * drift + rebound * rebound - R(2) * deceleration * gap, R(0)));
}

/* Slower contacts than this are plastic, m/s: what gravity gives in two substeps. */
PABD_FN real bounce_threshold(vec3 gravity, real h) {
  return R(2) * h * v3_norm(gravity);
}

/* restitution.c: before a step of length h, the rebound that each contact of the range will owe; after it, impulses for
 * those that have carried a force. */
void pabd_restitution_begin(pabd_sim *sim, const pabd_range *range, real h);
void pabd_restitution_apply(pabd_sim *sim, const pabd_range *range, real h);

#endif
