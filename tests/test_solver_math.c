/* Rotations, polar decomposition and parameters of the solver against closed forms computed in double. */
#include "params.h"
#include "polar.h"
#include "state.h"
#include "test.h"

static uint32_t random_state = 4711;
static double uniform(double low, double high) {
  random_state = random_state * 1664525u + 1013904223u;
  return low + (high - low) * (double)(random_state >> 8) / 16777216.0;
}
static const double rounding =
    sizeof(real) == 4 ? 6e-7 : 4e-12; /* a few roundings of the angle; Taylor bound in double */

static vec3 random_vector(double size) {
  return v3((real)uniform(-size, size), (real)uniform(-size, size), (real)uniform(-size, size));
}
static quat random_rotation(void) {
  return quat_exp(random_vector(3.0));
}
static double angle_between(quat a, quat b) {
  vec3 d = quat_log(quat_mul(a, quat_conj(b)));
  return sqrt((double)v3_norm2(d));
}

TEST(exp_and_log) {
  for (int i = 0; i < 2000; ++i) {
    vec3 r = random_vector(i % 2 ? 1.8 : 1e-4);
    double angle = sqrt((double)v3_dot(r, r));
    quat q = quat_exp(r);
    CHECK_NEAR(q.w, cos(angle / 2), rounding);
    CHECK_NEAR(q.x, angle > 0 ? sin(angle / 2) / angle * r.x : 0, rounding);
    if (angle < 3.1) {
      vec3 back = quat_log(q);
      CHECK_NEAR(back.x, r.x, 4 * rounding);
      CHECK_NEAR(back.y, r.y, 4 * rounding);
      CHECK_NEAR(back.z, r.z, 4 * rounding);
    }
  }
  quat far = quat_exp(v3(R(0), R(0), R(40.0)));
  CHECK_NEAR(far.w, cos(20.0), 60 * rounding);
}

TEST(arc_tangent) {
  for (int i = -200; i <= 200; ++i) {
    double x = sinh(0.05 * i);
    CHECK_NEAR(real_atan((real)x), atan((double)(real)x), rounding);
    CHECK_NEAR(real_atan2((real)x, R(-0.7)), atan2((double)(real)x, (double)R(-0.7)), 2 * rounding);
  }
}

TEST(turn_has_no_cancellation) {
  quat q = quat_exp(v3(R(1e-6), R(0), R(0)));
  vec3 d = quat_turn(q, v3(R(0), R(1), R(0)));
  CHECK_NEAR(d.z, 1e-6, 1e-12);
  CHECK(fabs((double)d.y + 0.5e-12) < 1e-17 * (sizeof(real) == 4 ? 1e5 : 1));
}

/* Nearest rotation by an independent route: Newton's iteration X <- (X + X^-T)/2 in double, for det > 0. */
static void polar_by_inverses(const mat3 *m, double out[9]) {
  double x[9] = {m->x.x, m->x.y, m->x.z, m->y.x, m->y.y, m->y.z, m->z.x, m->z.y, m->z.z};
  for (int pass = 0; pass < 100; ++pass) {
    double c[9] = {x[4] * x[8] - x[5] * x[7], x[5] * x[6] - x[3] * x[8], x[3] * x[7] - x[4] * x[6],
                   x[2] * x[7] - x[1] * x[8], x[0] * x[8] - x[2] * x[6], x[1] * x[6] - x[0] * x[7],
                   x[1] * x[5] - x[2] * x[4], x[2] * x[3] - x[0] * x[5], x[0] * x[4] - x[1] * x[3]};
    double det = x[0] * c[0] + x[1] * c[1] + x[2] * c[2];
    for (int k = 0; k < 9; ++k) x[k] = 0.5 * (x[k] + c[k] / det);
  }
  memcpy(out, x, sizeof x);
}

TEST(polar_of_stretched_rotations) {
  for (int i = 0; i < 2000; ++i) {
    mat3 m;
    m.x = random_vector(1.0), m.y = random_vector(1.0), m.z = random_vector(1.0);
    m.x.x += R(1.5), m.y.y += R(1.5), m.z.z += R(1.5);
    m = mat3_mul_transposed(m, quat_matrix(random_rotation()));
    double det = (double)v3_dot(m.x, v3_cross(m.y, m.z));
    if (det < 0.3) continue;
    double expected[9];
    polar_by_inverses(&m, expected);
    mat3 r = quat_matrix(polar(m, random_rotation()));
    const double got[9] = {r.x.x, r.x.y, r.x.z, r.y.x, r.y.y, r.y.z, r.z.x, r.z.y, r.z.z};
    /* the condition of the polar factor is 1/(s2 + s3): the shift above keeps it small; bound from the issue in float
     */
    for (int k = 0; k < 9; ++k) CHECK_NEAR(got[k], expected[k], sizeof(real) == 4 ? 3e-6 : 1e-10);
  }
}

TEST(polar_error_in_radians) {
  for (int i = 0; i < 2000; ++i) {
    /* M = R S with S known and well conditioned: the nearest rotation is R exactly */
    quat q = random_rotation();
    sym3 s = sym3_rotate_diagonal(random_rotation(),
                                  v3((real)uniform(0.5, 2), (real)uniform(0.5, 2), (real)uniform(0.5, 2)));
    mat3 m = mat3_mul_sym3(quat_matrix(q), s);
    CHECK(angle_between(polar(m, random_rotation()), q) < (sizeof(real) == 4 ? 1e-6 : 1e-12));
  }
}

/* Reflections: the nearest proper rotation flips the axis of the smallest singular value. */
TEST(polar_of_reflections_and_rank_deficiency) {
  for (int i = 0; i < 500; ++i) {
    quat u = random_rotation(), v = random_rotation();
    real s1 = R(3), s2 = R(2), s3 = i % 3 == 0 ? R(-0.7) : i % 3 == 1 ? R(0) : R(-1e-3);
    mat3 mu = quat_matrix(u), d = mat3_zero();
    d.x.x = s1, d.y.y = s2, d.z.z = s3;
    mat3 dv = mat3_mul_transposed(d, quat_matrix(v)); /* D V^T */
    mat3 m;
    m.x = mat3_tmul(dv, mu.x), m.y = mat3_tmul(dv, mu.y), m.z = mat3_tmul(dv, mu.z); /* U D V^T */
    quat expected = quat_mul(u, quat_conj(v));
    CHECK(angle_between(polar(m, random_rotation()), expected) < (sizeof(real) == 4 ? 3e-6 : 1e-9));
  }
  quat nothing = polar(mat3_zero(), quat_make(R(1), R(0), R(0), R(0)));
  CHECK_NEAR(nothing.w * nothing.w + nothing.x * nothing.x + nothing.y * nothing.y + nothing.z * nothing.z, 1.0, 1e-6);
}

TEST(small_increments_keep_their_digits) {
  /* S of 1e6 and a moment of 1e-3: the step must be moment/K to rounding, not to the rounding of S */
  sym3 s = sym3_make(R(1e6), R(2e6), R(3e6), R(0), R(0), R(0));
  mat3 e = mat3_zero();
  e.z.y = R(0.5e-3), e.y.z = R(-0.5e-3);
  quat q = polar_increment(s, e, R(1e-4));
  CHECK_NEAR(2.0 * (double)q.x * 5e9, 1.0, 1e-5);
}

TEST(block_inverse) {
  /* the closed-form inverse of [a b^T; b D] from a, b, S_inv (method, section 4) times the block is one */
  real a = R(7);
  vec3 b = v3(R(1), R(-2), R(0.5)), back = v3_scale(R(1) / a, b);
  sym3 d = sym3_make(R(5), R(6), R(7), R(0.3), R(-0.2), R(0.1));
  sym3 s_inv = sym3_inverse(sym3_rank1(d, R(-1) / a, b));
  vec3 bp = v3_neg(sym3_mul(s_inv, back));
  real ap = R(1) / a + v3_dot(back, sym3_mul(s_inv, back));
  CHECK_NEAR(a * ap + v3_dot(b, bp), 1.0, 1e-5);
  vec3 column = v3_add(v3_scale(a, bp), sym3_mul(s_inv, b));
  CHECK_NEAR(v3_norm(column), 0.0, 1e-5);
  vec3 row = v3_add(v3_scale(ap, b), sym3_mul(d, bp));
  CHECK_NEAR(v3_norm(row), 0.0, 1e-5);
}

TEST(parameters) {
  pabd_params p = pabd_params_default();
  pabd_error error = {""};
  CHECK(pabd_params_set(&p, "sweeps", "12", &error) == PABD_OK && p.sweeps == 12);
  CHECK(pabd_params_set(&p, "local_step", "mass", &error) == PABD_OK && p.local_step == PABD_LOCAL_MASS);
  CHECK(pabd_params_set(&p, "global_step", "auto", &error) == PABD_OK && p.global_step == PABD_STEP_AUTO);
  CHECK(pabd_params_set(&p, "integrator", "bdf2", &error) == PABD_OK && p.integrator == PABD_INTEGRATOR_BDF2);
  CHECK(pabd_params_set(&p, "stiffness_rule", "ramp", &error) == PABD_OK && p.stiffness_rule == PABD_STIFFNESS_RAMP);
  CHECK(pabd_params_set(&p, "acceleration", "chebyshev", &error) == PABD_OK && p.acceleration == PABD_ACCEL_CHEBYSHEV);
  CHECK(pabd_params_set(&p, "prediction", "linear", &error) == PABD_OK && p.prediction == PABD_PREDICT_LINEAR);
  CHECK(pabd_params_set(&p, "velocity_rule", "lemma1", &error) == PABD_OK && p.velocity_rule == PABD_VELOCITY_LEMMA1);
  CHECK(pabd_params_set(&p, "sweps", "3", &error) == PABD_ERR_INPUT && strstr(error.text, "sweeps"));
  CHECK(pabd_params_set(&p, "sweeps", "2.5", &error) == PABD_ERR_INPUT && strstr(error.text, "integer"));
  CHECK(pabd_params_set(&p, "sweeps", "0", &error) == PABD_ERR_INPUT && strstr(error.text, "1 .. 100000"));
  CHECK(pabd_params_set(&p, "alpha", "nan", &error) == PABD_ERR_INPUT && strstr(error.text, "not a number"));
  CHECK(pabd_params_set(&p, "alpha", "0.5x", &error) == PABD_ERR_INPUT);
  CHECK(pabd_params_set(&p, "local_step", "hesian", &error) == PABD_ERR_INPUT && strstr(error.text, "hessian"));
  for (int32_t i = 0; i < pabd_params_count(); ++i) {
    char text[64];
    pabd_params fresh = pabd_params_default();
    pabd_params_get(&fresh, i, text, sizeof text);
    CHECK(pabd_params_set(&fresh, pabd_params_info(i)->name, text, &error) == PABD_OK);
  }
}
