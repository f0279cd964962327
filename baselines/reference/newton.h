/* The nonlinear problem of one time step, and the semismooth Newton method that solves it to rounding.
 *
 * Unknowns: end poses of the bodies, multipliers of all joint rows, three force components a contact. Multipliers are
 * kept as mu = h^2 x force (kg m), so that every equation is a length or a mass times a length. Euler: M (q - q~) =
 * J(q)^T mu with q~ the free motion; midpoint: 2 M (q - q0 - h v0) = h^2 f + J(q_mid)^T mu. Contacts: 0 <= gap(q) _|_
 * mu_n >= 0 and Coulomb's cone against the slip of the step. Invariant: a solve that says it converged has a residual
 * that was evaluated after the last change of any unknown. */
#ifndef REFERENCE_NEWTON_H
#define REFERENCE_NEWTON_H

#include "joints.h"

typedef struct reference_body {
  int32_t slot;                              /* place among the unknowns; -1: given motion */
  double mass, inertia[3];                   /* principal, body frame */
  double radius;                             /* of gyration, m: turns moments into forces */
  reference_pose start;                      /* at the beginning of the step */
  reference_pose free;                       /* Euler: where it would be without constraints; given motion: end pose */
  double velocity[3];                        /* at the beginning; after reference_finish at the end */
  double momentum[3];                        /* angular, world; the same */
  double force[3], torque[3];                /* applied in this step, gravity included */
  double free_velocity[3], free_momentum[3]; /* Euler: with the applied forces */
  reference_pose now;                        /* iterate */
} reference_body;

typedef struct reference_contact {
  int32_t a, b;
  double core_a[3], core_b[3];     /* body-fixed point, body frame: at the contact, or on the core of a round shape */
  double offset_a[3], offset_b[3]; /* world: from the core of a round shape to the contact, else 0 */
  double normal[3], tangent[2][3]; /* from b to a */
  double gap;                      /* m, that the step starts from; overlap counts in part (setting recovery) */
  double friction;
  double mu[3];        /* normal, tangents, kg m, on a */
  double rho[3];       /* kg: inverse diagonal of J M^-1 J^T at the start of the step */
  double measured_gap; /* m, for reports */
} reference_contact;

typedef struct reference_options {
  double tolerance;      /* relative residual */
  double accept;         /* relative residual that a solve which stalls may end with; it is marked as loose */
  double regularization; /* share of J M^-1 J^T's diagonal that damps the multipliers' Newton step */
  int max_iterations;
} reference_options;

typedef struct reference_problem reference_problem;
typedef void (*reference_watch)(const reference_problem *problem, int iteration, void *user);

struct reference_problem {
  double h;
  int midpoint; /* else Euler */
  int affine; /* Euler: inertia as in affine body dynamics (nearest in the mass metric), else by the rotation vector */
  reference_options options;

  int32_t body_count, free_count; /* free: slots */
  reference_body *body;
  int32_t joint_count, row_count;
  const pabd_joint *joint;
  reference_moment *moment; /* [joint_count] */
  int32_t *first_row;       /* [joint_count + 1] */
  double *row_mu, *row_rho; /* [row_count]: multipliers, kg m; their scale, kg */
  int32_t contact_count, contact_capacity;
  reference_contact *contact;

  reference_watch watch;
  void *watch_user;

  /* Of the last solve: */
  int iterations, fallbacks; /* Newton iterations; other ways of solving that were needed */
  int loose;                 /* accepted above the tolerance */
  double residual;           /* largest defect, m */
  double unit;               /* m: what the tolerance is relative to */
  double floor;              /* m: rounding of the largest terms */
  double natural_map;        /* relative natural-map residual of the contact law */
  double pivot_fill;         /* entries of the last factors */
  double smoothing;          /* m: 0, or the width over which the contact law is rounded off (fallback) */
  struct reference_work *work;
};

/* Rows of joints are counted and memory is made; bodies and joints must be set. */
pabd_status reference_prepare(reference_problem *problem);
void reference_release(reference_problem *problem);
/* Free motion of all bodies from start, velocity, momentum, force; sets `now` to it (Euler) or to an extrapolation. */
void reference_predict(reference_problem *problem);
/* Solves from `now` and the multipliers there are. PABD_OK, PABD_DIVERGED (not converged), PABD_ERR_MEMORY. */
pabd_status reference_solve(reference_problem *problem);
/* The residual that counts as solved: the tolerance, but not below the rounding of the largest terms, m. */
double reference_goal(const reference_problem *problem);
/* End velocities and momenta from the end poses. */
void reference_finish(reference_problem *problem);
/* Gap and slip of a contact at the iterate: out[3], m. */
void reference_contact_motion(const reference_problem *problem, const reference_contact *contact, double *out);

#endif
