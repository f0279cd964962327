/* The closed forms of the validation suite against values tabulated independently (40-digit and 8th-order runs). */
#include "closed_forms.h"

#include "test.h"

TEST(integrator_maps) {
  double z, v, x = 0.1, u = 0;
  pabd_exact_free_fall(PABD_SCHEME_SYMPLECTIC, 9.81, 0.01, 100, &z, &v);
  CHECK_NEAR(z, -4.95405, 1e-12);
  CHECK_NEAR(v, -9.81, 1e-12);
  pabd_exact_free_fall(PABD_SCHEME_VERLET, 9.81, 0.01, 100, &z, &v);
  CHECK_NEAR(z, -4.905, 1e-12);
  for (int k = 0; k < 100; ++k) pabd_oscillator_step(PABD_SCHEME_IMPLICIT, 1, 100, 0, 0.01, &x, &u);
  CHECK_NEAR((0.5 * u * u + 50 * x * x) / 0.5, 0.369711, 5e-7);
  x = 0.1, u = 0;
  double h0 = 0.5 * u * u + 50 * x * x - 0.5 * 0.01 * 100 * x * u;
  for (int k = 0; k < 100; ++k) pabd_oscillator_step(PABD_SCHEME_SYMPLECTIC, 1, 100, 0, 0.01, &x, &u);
  CHECK_NEAR(0.5 * u * u + 50 * x * x - 0.5 * 0.01 * 100 * x * u, h0, 1e-13);
  /* the one-step maps of all schemes approach the solution */
  for (int s = 0; s < PABD_SCHEME_COUNT; ++s) {
    double a = 0.1, b = 0.2, c, d;
    for (int k = 0; k < 10000; ++k) pabd_oscillator_step((pabd_scheme)s, 1, 100, 2, 1e-5, &a, &b);
    pabd_exact_oscillator(1, 100, 2, 0.1, 0.2, 0.1, &c, &d);
    CHECK_NEAR(a, c, 1e-5);
    CHECK_NEAR(b, d, 2e-4);
  }
}

TEST(free_body_of_drake) {
  pabd_dquat q;
  pabd_dvec3 w;
  pabd_exact_free_body(0.04, 0.02, (pabd_dvec3){2, -3, 4}, 10, &q, &w);
  CHECK_NEAR(q.w, 0.42160745, 1e-8);
  CHECK_NEAR(q.x, -0.01096378, 1e-8);
  CHECK_NEAR(q.y, 0.85780142, 1e-8);
  CHECK_NEAR(q.z, -0.29377487, 1e-8);
  CHECK_NEAR(w.x, -1.92267163, 1e-8);
  CHECK_NEAR(w.y, -3.05013669, 1e-8);
}

TEST(tumbling_brick) {
  static const double rows[5][8] = {
      {1, 0.0743308134534, 0.4035191264344, 0.4953212612912, 0.9481835029, 0.0599100766, 0.1848388457, 0.2513830318},
      {5, -0.2956497894504, 0.1681090554884, 0.5830556519755, -0.0106592762, -0.0252190815, 0.3729723277, 0.9274384187},
      {10, -0.0422178080523, -0.4110698854212, 0.4909365553464, -0.8384058668, 0.5427629348, -0.0478879835,
       0.0138108690},
      {20, -0.0946445746293, 0.3964677812135, 0.4993087098289, 0.9970792903, 0.0387212728, 0.0333802242, -0.0567389850},
      {30, 0.2202324653430, -0.3036432161227, 0.5431392879442, -0.8811471853, 0.4701825278, 0.0117282523,
       0.0486875395}};
  pabd_dvec3 inertia = {0.001894220, 0.006211019, 0.007194665}, w;
  double degree = 3.14159265358979323846 / 180, m, n, period;
  pabd_dvec3 rates = {10 * degree, 20 * degree, 30 * degree};
  pabd_exact_brick_constants(inertia, rates, &m, &n, &period);
  CHECK_NEAR(n, 0.3993222960729121, 1e-13);
  CHECK_NEAR(m, 0.3358980371611688, 1e-12);
  CHECK_NEAR(period, 17.38448927193939, 1e-11);
  for (int k = 0; k < 5; ++k) {
    pabd_dquat q;
    pabd_exact_brick(inertia, rates, rows[k][0], &q, &w);
    double sign = q.w * rows[k][4] + q.x * rows[k][5] + q.y * rows[k][6] + q.z * rows[k][7] < 0 ? -1 : 1;
    CHECK_NEAR(w.x, rows[k][1], 1e-11);
    CHECK_NEAR(w.y, rows[k][2], 1e-11);
    CHECK_NEAR(w.z, rows[k][3], 1e-11);
    CHECK_NEAR(sign * q.w, rows[k][4], 2e-10);
    CHECK_NEAR(sign * q.x, rows[k][5], 2e-10);
    CHECK_NEAR(sign * q.y, rows[k][6], 2e-10);
    CHECK_NEAR(sign * q.z, rows[k][7], 2e-10);
  }
}

TEST(gyroscope) {
  double theta = 60 * 3.14159265358979323846 / 180;
  CHECK_NEAR(pabd_exact_precession(0.0425333333333333, 0.005, 200, 1.962, 0.5 * 3.14159265358979323846, 0), 1.962,
             1e-12);
  CHECK_NEAR(pabd_exact_precession(0.0425333333333333, 0.005, 200, 1.962, theta, 0), 2.0401076, 1e-7);
  CHECK_NEAR(pabd_exact_precession(0.0425333333333333, 0.005, 200, 1.962, theta, 1), 51.245860, 1e-6);
}

TEST(pendulum) {
  static const double rows[][3] = {{0.5, -0.391048791551, -0.920369948785},  {1, 0.986291751132, -0.165010853126},
                                   {2, -0.793566195343, -0.608483930444},    {5, -0.942305435044, -0.334754338414},
                                   {9.99, -0.316436469913, -0.948613704576}, {10, -0.275087462576, -0.961419205099},
                                   {20, 0.996907173991, -0.078588080809},    {100, -0.181513351427, -0.983388480334},
                                   {1000, 0.683230188552, -0.730203060423},  {2000, 0.814603068589, -0.580018827837}};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
    double theta = pabd_exact_pendulum(sqrt(9.81), rows[k][0]);
    CHECK_NEAR(-sin(theta), rows[k][1], 2e-11);
    CHECK_NEAR(-cos(theta), rows[k][2], 2e-11);
  }
}

TEST(four_bar) {
  static const double rows[][6] = {{2, 1, -0.195020301949, -0.980799205662, -6.676678036881, 1.327578325160},
                                   {2, 4, 0.117616102377, 0.993059138451, 1.069039265029, -0.126615049167},
                                   {2, 5, -0.811310461005, -0.584615545349, -3.569117397193, 4.953105171313},
                                   {2, 10, 0.328458111541, 0.944518538179, 1.423051470207, -0.494868845487},
                                   {40, 1, -0.115356880632, -0.993324111300, -6.669987523942, 0.774600098662},
                                   {40, 5, -0.540190050676, -0.841543052464, -5.436369112579, 3.489628365197},
                                   {40, 20, 0.410901153763, 0.911679900972, 1.566785371909, -0.706162235594}};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
    double x, z, vx, vz;
    pabd_exact_four_bar((int32_t)rows[k][0], 9.81, rows[k][1], &x, &z, &vx, &vz);
    CHECK_NEAR(x, rows[k][2], 1e-10);
    CHECK_NEAR(z, rows[k][3], 1e-10);
    CHECK_NEAR(vx, rows[k][4], 1e-9);
    CHECK_NEAR(vz, rows[k][5], 1e-9);
  }
}

TEST(chains) {
  double sag, force = pabd_exact_catenary(10, 1, 1, 9.81, 6, &sag), degree = 3.14159265358979323846 / 180;
  CHECK_NEAR(force, 15.9816645482, 1e-9);
  CHECK_NEAR(sag, 3.6554503630, 1e-9);
  CHECK_NEAR(pabd_exact_catenary_angle(10, 1, 9.81, force, 1) / degree, -70.0983962, 1e-6);
  CHECK_NEAR(pabd_exact_catenary_angle(10, 1, 9.81, force, 5) / degree, -17.0619942, 1e-6);
  CHECK_NEAR(sqrt(force * force + pow(5 * 9.81, 2)), 51.5879453141, 1e-9);
  CHECK_NEAR(pabd_exact_tension(10, 1, 100, 9.81, 1), 110 * 9.81, 1e-12);
  CHECK_NEAR(pabd_exact_gs_radius(5, 1), 0.9045085, 1e-7);
  CHECK_NEAR(pabd_exact_gs_radius(5, 100), 0.9975370, 1e-7);
  CHECK_NEAR(pabd_exact_gs_radius(10, 10), 0.9915898, 1e-7);
  CHECK_NEAR(pabd_exact_gs_radius(10, 1000), 0.9998892, 1e-7);
  CHECK_NEAR(pabd_exact_gs_radius(20, 100), 0.9995055, 1e-7);
  CHECK_NEAR(pabd_exact_gs_radius_stack(2, 10), 0.90909, 1e-5);
  CHECK_NEAR(pabd_exact_gs_radius_stack(2, 1e4), 0.9999, 1e-6);
  CHECK_NEAR(pabd_exact_gs_radius_stack(10, 1), 0.975528, 1e-6);
  CHECK_NEAR(pabd_exact_contraction(1e4, 1.0 / 60, 1), 0.264706, 1e-6);
}

TEST(impacts) {
  double a, b;
  pabd_exact_impact(1, 3, 2, -1, 0.5, &a, &b);
  CHECK_NEAR(a, -1.375, 1e-15);
  CHECK_NEAR(b, 0.125, 1e-15);
  CHECK_NEAR(pabd_exact_bounce_time(1, 9.81, 0.5, 0), 0.4515236410, 1e-10);
  CHECK_NEAR(pabd_exact_bounce_time(1, 9.81, 0.5, 60), 1.3545709230, 1e-9);
  CHECK_NEAR(pabd_exact_bounce_time(1, 9.81, 0.8, 200), 4.0637127689, 1e-9);
  CHECK_NEAR(pabd_exact_bounce_height(1, 0.5, 2), 0.0625, 1e-15);
}

TEST(rocking_block) {
  static const double after[] = {0.386714, 0.306397, 0.246057, 0.199314, 0.162415, 0.132918};
  for (int k = 0; k < 6; ++k) CHECK_NEAR(pabd_exact_rocking_amplitude(0.1, 0.4, 0.5, k + 1), after[k], 1e-6);
  CHECK_NEAR(pabd_exact_rocking_amplitude(0.05, 0.5, 0.5, 4), 0.421584, 1e-6);
  CHECK_NEAR(pabd_exact_rocking_first_impact(0.1, 0.4, 9.81, 0.5), 0.3123085751, 1e-9);
  CHECK_NEAR(pabd_exact_rocking_first_impact(0.1, 0.4, 9.81, 0.8), 0.5430513640, 1e-8);
  CHECK_NEAR(pabd_exact_rocking_first_impact(0.05, 0.5, 9.81, 0.5), 0.3442695654, 1e-9);
}

TEST(friction_and_rolling) {
  double box, ball;
  pabd_exact_rolling(10, 25, 1, 0.4, 150, 9.81, &box, &ball);
  CHECK_NEAR(ball, 0.211, 1e-12);
  CHECK_NEAR(box, 0.7385, 1e-12);
  CHECK_NEAR(pabd_exact_painleve(atan(2.0)), 4.0 / 3.0, 1e-12);
}

TEST(tables_agree_with_their_mechanisms) {
  const pabd_reference_table *top = &pabd_reference_heavy_top;
  for (int k = 0; k < top->count; ++k) { /* center = q (0, 1, 0) */
    const double *y = top->rows[k].y;
    pabd_dvec3 at = pabd_dquat_rotate((pabd_dquat){y[3], y[4], y[5], y[6]}, (pabd_dvec3){0, 1, 0});
    CHECK_NEAR(at.x, y[0], 1e-8);
    CHECK_NEAR(at.y, y[1], 1e-8);
    CHECK_NEAR(at.z, y[2], 1e-8);
  }
  const pabd_reference_table *squeezer = &pabd_reference_andrews;
  for (int k = 0; k < squeezer->count; ++k) { /* F = 7 mm (cos beta, sin beta) */
    const double *y = squeezer->rows[k].y;
    CHECK_NEAR(y[0], 0.007 * cos(y[4]), 1e-11);
    CHECK_NEAR(y[1], 0.007 * sin(y[4]), 1e-11);
  }
  const pabd_reference_table *crank = &pabd_reference_slider_crank;
  for (int k = 0; k < crank->count; ++k) {
    const double *y = crank->rows[k].y;
    double by = 0.1 - 0.08 * sin(y[0]), bz = 0.12 + 0.08 * cos(y[0]);
    CHECK_NEAR(sqrt(0.09 - by * by - bz * bz), y[2], 1e-9);
  }
}
