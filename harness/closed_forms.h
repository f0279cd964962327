/* Closed forms and published reference values of the validation suite, each with its source.
 *
 * Everything is in SI units and double. Elliptic functions and quadrature come from GSL. Where no closed form exists
 * (heavy top, Andrews' squeezer, flyball governor, slider-crank) a table of reference states stands instead. The tests
 * (tests/test_closed_forms.c) compare each function with values tabulated independently. */
#ifndef PABD_CLOSED_FORMS_H
#define PABD_CLOSED_FORMS_H

#include <stdint.h>

#include "pabd_scene.h"

/* ---- integrators ---- */

/* One-step maps of x'' = -w^2 x - 2 z w x', as textbooks define them. */
typedef enum pabd_scheme {
  PABD_SCHEME_SYMPLECTIC, /* v then x */
  PABD_SCHEME_IMPLICIT,   /* backward Euler */
  PABD_SCHEME_EXPLICIT,
  PABD_SCHEME_MIDPOINT, /* implicit midpoint = trapezoid here */
  PABD_SCHEME_VERLET,   /* kick, drift, kick */
  PABD_SCHEME_EXACT,    /* the solution itself */
  PABD_SCHEME_COUNT
} pabd_scheme;

const char *pabd_scheme_name(pabd_scheme scheme);
/* Height and velocity of free fall from rest after n steps of h. */
void pabd_exact_free_fall(pabd_scheme scheme, double g, double h, int32_t n, double *z, double *v);
/* m x'' + b x' + k x = 0 after one step of h from (*x, *v). */
void pabd_oscillator_step(pabd_scheme scheme, double m, double k, double b, double h, double *x, double *v);
/* Damped oscillation (underdamped), Kane / Drake MassDamperSpring. */
void pabd_exact_oscillator(double m, double k, double b, double x0, double v0, double t, double *x, double *v);

/* ---- free bodies ---- */

/* Torque-free body of moments (i, i, j): Kane, Likins, Levinson, Spacecraft Dynamics; Drake's FreeBody. Body rates and
 * attitude (body to world) at t, from attitude identity. */
void pabd_exact_free_body(double i, double j, pabd_dvec3 rates, double t, pabd_dquat *q, pabd_dvec3 *w);
/* Torque-free body of three different moments: Jacobi's elliptic functions; the attitude by quadrature. Body rates and
 * attitude at t, from attitude identity. */
void pabd_exact_brick(pabd_dvec3 inertia, pabd_dvec3 rates, double t, pabd_dquat *q, pabd_dvec3 *w);
/* Constants of that motion: parameter m, rate n (1/s), period (s). */
void pabd_exact_brick_constants(pabd_dvec3 inertia, pabd_dvec3 rates, double *m, double *n, double *period);
/* Steady precession of a gyroscope: roots of (i3 - i1) cos(theta) W^2 + i3 spin W - m g l = 0; the slow one, and the
 * fast one (INFINITY at 90 degrees). i1 about the fixed point. */
double pabd_exact_precession(double i1, double i3, double spin, double mgl, double theta, int fast);

/* ---- mechanisms ---- */

/* Pendulum released at rest from the horizontal, w0^2 = m g l / I about the pivot: angle from the downward vertical. */
double pabd_exact_pendulum(double w0, double t);
/* N-four-bar mechanism (IFToMM A02), links of 1 m and 1 kg, started upright with the top at 1 m/s: position and
 * velocity of the top of the first link. */
void pabd_exact_four_bar(int32_t n, double g, double t, double *x, double *z, double *vx, double *vz);
/* Tension in joint k (1 at the top) of a hanging chain of n links of m and an end body of end_mass. */
double pabd_exact_tension(int32_t n, double m, double end_mass, double g, int32_t k);
/* Catenary of n rods of length a and mass m over the span: horizontal force H, by Newton's rule; *sag (may be NULL). */
double pabd_exact_catenary(int32_t n, double a, double m, double g, double span, double *sag);
/* Angle of rod k (1..n) of that catenary, rad. */
double pabd_exact_catenary_angle(int32_t n, double m, double g, double force, int32_t k);
/* Spectral radius of Gauss-Seidel on a vertical chain of n bodies (n - 1 of mass 1, the last of `ratio`), or on a stack
 * (`ratio` the mass of each over the one below): consistently ordered tridiagonal rows, so radius = (Jacobi's)^2. */
double pabd_exact_gs_radius(int32_t n, double ratio);
double pabd_exact_gs_radius_stack(int32_t n, double ratio);
/* Factor of one multiplier step on one row: 1 / (1 + k h^2 / m). */
double pabd_exact_contraction(double k, double h, double m);

/* ---- impact and friction ---- */

void pabd_exact_impact(double m1, double m2, double v1, double v2, double e, double *w1, double *w2);
/* Time of bounce n (0: the first) of a ball dropped from h0, and the height after it. */
double pabd_exact_bounce_time(double h0, double g, double e, int32_t n);
double pabd_exact_bounce_height(double h0, double e, int32_t n);
/* Rocking block of half width b and half height h (Housner 1963): slenderness angle, rate p, ratio of angular rates at
 * an impact, amplitude after n impacts over alpha (exact, not the slender limit), and the time of the first impact. */
double pabd_exact_rocking_amplitude(double b, double h, double amplitude, int32_t n);
double pabd_exact_rocking_first_impact(double b, double h, double g, double amplitude);
/* Rolling balls on a driven box (SimBenchmark): accelerations of box and balls. */
void pabd_exact_rolling(double box_mass, int32_t balls, double ball_mass, double mu, double force, double g,
                        double *box, double *ball);
/* Least friction for which Painleve's paradox exists at an angle, (1 + 3 cos^2) / (3 sin cos). */
double pabd_exact_painleve(double theta);

/* ---- reference tables ---- */

typedef struct pabd_reference_row {
  double t;
  double y[8];
} pabd_reference_row;

typedef struct pabd_reference_table {
  const char *source;
  int32_t columns, count;
  const pabd_reference_row *rows;
} pabd_reference_table;

extern const pabd_reference_table pabd_reference_heavy_top;          /* x, y, z of the center, q */
extern const pabd_reference_table pabd_reference_andrews;            /* F x, y, E x, y (m), beta, beta' */
extern const pabd_reference_table pabd_reference_flyball;            /* s, rod angle, shaft speed */
extern const pabd_reference_table pabd_reference_slider_crank;       /* theta, theta', x, vx: universal joint */
extern const pabd_reference_table pabd_reference_slider_crank_balls; /* theta, x: rod without roll */

#endif
