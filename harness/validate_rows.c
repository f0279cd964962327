/* The rows of the validation suite and how each is measured. See validate.h; sources stand in closed_forms.c and here.
 *
 * Distances: `relative` is the trajectory error of the A Coruna library and IFToMM (threshold 1e-3); `scaled` divides
 * by one length of the case, where outputs pass through zero or are small; `turned` is the angle between attitudes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate.h"
#include "vec3.h"

#define PI 3.14159265358979323846
#define G 9.81

/* ---- states ---- */

static const double *pose_of(const pabd_view *view, int32_t frame, int32_t body) {
  return view->states + (size_t)frame * (size_t)view->c->scene.body_count * 13 + (size_t)body * 7;
}

static const double *velocity_of(const pabd_view *view, int32_t frame, int32_t body) {
  size_t bodies = (size_t)view->c->scene.body_count;
  return view->states + (size_t)frame * bodies * 13 + bodies * 7 + (size_t)body * 6;
}

static int32_t body_named(const pabd_view *view, const char *name) {
  return pabd_scene_find_body(&view->c->scene, name);
}

static pabd_dvec3 vec_at(const double *p) {
  return (pabd_dvec3){p[0], p[1], p[2]};
}

static pabd_dquat attitude_of(const pabd_view *view, int32_t frame, int32_t body) {
  const double *p = pose_of(view, frame, body);
  return (pabd_dquat){p[3], p[4], p[5], p[6]};
}

/* World position of a point given in the body's frame. */
static pabd_dvec3 point_of(const pabd_view *view, int32_t frame, int32_t body, pabd_dvec3 local) {
  return v3_add(vec_at(pose_of(view, frame, body)), pabd_dquat_rotate(attitude_of(view, frame, body), local));
}

static double parameter(const pabd_view *view, const char *key) {
  double value = NAN;
  for (int32_t k = 0; k < view->c->param_count; ++k)
    if (strcmp(view->c->params[k].key, key) == 0) sscanf(view->c->params[k].value, "%lf", &value);
  return value;
}

static int parameter_is(const pabd_view *view, const char *key, const char *text) {
  for (int32_t k = 0; k < view->c->param_count; ++k)
    if (strcmp(view->c->params[k].key, key) == 0) return strcmp(view->c->params[k].value, text) == 0;
  return 0;
}

/* Energy of bodies and gravity; no springs. */
static double energy_at(const pabd_view *view, int32_t frame) {
  const pabd_scene *scene = &view->c->scene;
  double sum = 0;
  for (int32_t i = 0; i < scene->body_count; ++i) {
    const pabd_body *b = &scene->bodies[i];
    if (b->motion != PABD_DYNAMIC) continue;
    const double *v = velocity_of(view, frame, i);
    pabd_dvec3 w = pabd_dquat_rotate(pabd_dquat_conj(attitude_of(view, frame, i)), vec_at(v + 3));
    sum += 0.5 * b->mass * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) +
           0.5 * (b->inertia.x * w.x * w.x + b->inertia.y * w.y * w.y + b->inertia.z * w.z * w.z) -
           b->mass * v3_dot(scene->gravity, vec_at(pose_of(view, frame, i)));
  }
  return sum;
}

/* ---- distances ---- */

static double distance_relative(const pabd_row *row, const double *y, const double *r) {
  double sum = 0;
  for (int32_t j = 0; j < row->output_count; ++j) {
    double e = (y[j] - r[j]) / fmax(fabs(r[j]), 1e-3);
    sum += e * e;
  }
  return sum / row->output_count;
}

static double distance_scaled(const pabd_row *row, const double *y, const double *r) {
  double sum = 0;
  for (int32_t j = 0; j < row->output_count; ++j) sum += (y[j] - r[j]) * (y[j] - r[j]);
  return sum / (row->scale * row->scale);
}

/* Angle between two attitudes (4 numbers), squared. */
static double angle_square(const double *a, const double *b) {
  pabd_dquat d =
      pabd_dquat_mul(pabd_dquat_conj((pabd_dquat){a[0], a[1], a[2], a[3]}), (pabd_dquat){b[0], b[1], b[2], b[3]});
  double angle = 2 * atan2(sqrt(d.x * d.x + d.y * d.y + d.z * d.z), fabs(d.w));
  return angle * angle;
}

/* Attitude, then three numbers over the scale. */
static double distance_turned(const pabd_row *row, const double *y, const double *r) {
  double sum = angle_square(y, r);
  for (int j = 4; j < 7; ++j) sum += (y[j] - r[j]) * (y[j] - r[j]) / (row->scale * row->scale);
  return sum;
}

/* ---- V01, V02: which integrator ---- */

static const int substep_counts[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32, 64};

static void measure_free_fall(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  level->error = INFINITY;
  for (int s = 0; s < PABD_SCHEME_COUNT; ++s) {
    if (s == PABD_SCHEME_IMPLICIT || s == PABD_SCHEME_MIDPOINT || s == PABD_SCHEME_EXACT) continue; /* same here */
    for (size_t k = 0; k < sizeof substep_counts / sizeof substep_counts[0]; ++k) {
      int count = substep_counts[k];
      if (s == PABD_SCHEME_VERLET && count > 1) continue;
      double worst = 0, z, v, end;
      pabd_exact_free_fall((pabd_scheme)s, G, view->h / count, view->frames * count, &end, &v);
      for (int32_t f = 1; f <= view->frames; ++f) {
        pabd_exact_free_fall((pabd_scheme)s, G, view->h / count, f * count, &z, &v);
        worst = fmax(worst, fabs(pose_of(view, f, 0)[2] - z) / fabs(end));
        worst = fmax(worst, fabs(velocity_of(view, f, 0)[2] - v) / (G * view->h * view->frames));
      }
      if (worst < level->error) {
        level->error = worst;
        level->substeps = count;
        snprintf(level->note, sizeof level->note, "%s, %d substep%s",
                 s == PABD_SCHEME_VERLET ? "exact (Verlet, trapezoid)" : pabd_scheme_name((pabd_scheme)s), count,
                 count > 1 ? "s" : "");
      }
    }
  }
}

static void measure_spring_map(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double damping = parameter(view, "damping");
  level->error = INFINITY;
  for (int s = 0; s < PABD_SCHEME_COUNT; ++s) {
    for (size_t k = 0; k < sizeof substep_counts / sizeof substep_counts[0]; ++k) {
      int count = substep_counts[k];
      double x = 0.1, v = 0, worst = 0; /* x: stretch, downwards */
      if (s == PABD_SCHEME_EXACT && count > 1) continue;
      for (int32_t f = 1; f <= view->frames; ++f) {
        for (int n = 0; n < count; ++n) pabd_oscillator_step((pabd_scheme)s, 1, 100, damping, view->h / count, &x, &v);
        /* over the size of the numbers that the engine holds: 1.1 m, 1 m/s */
        worst = fmax(worst, fabs(-pose_of(view, f, 0)[2] - 1 - x) / 1.1);
        worst = fmax(worst, fabs(-velocity_of(view, f, 0)[2] - v));
      }
      if (worst < level->error) {
        level->error = worst;
        level->substeps = count;
        snprintf(level->note, sizeof level->note, "%s, %d substep%s", pabd_scheme_name((pabd_scheme)s), count,
                 count > 1 ? "s" : "");
      }
    }
  }
}

static void outputs_spring(const pabd_view *view, int32_t frame, double *y) {
  y[0] = -pose_of(view, frame, 0)[2] - 1;
}

static void exact_spring(const pabd_row *row, const pabd_view *view, double t, double *y) {
  (void)row;
  double v;
  pabd_exact_oscillator(1, 100, parameter(view, "damping"), 0.1, 0, t, y, &v);
}

/* ---- V03, V04: free bodies ---- */

static void outputs_free(const pabd_view *view, int32_t frame, double *y) {
  memcpy(y, pose_of(view, frame, 0) + 3, 4 * sizeof *y);
  memcpy(y + 4, velocity_of(view, frame, 0) + 3, 3 * sizeof *y);
}

static void put_attitude(pabd_dquat q, pabd_dvec3 body_rates, double *y) {
  pabd_dvec3 w = pabd_dquat_rotate(q, body_rates);
  y[0] = q.w, y[1] = q.x, y[2] = q.y, y[3] = q.z;
  y[4] = w.x, y[5] = w.y, y[6] = w.z;
}

static void exact_free_body(const pabd_row *row, const pabd_view *view, double t, double *y) {
  (void)row, (void)view;
  pabd_dquat q;
  pabd_dvec3 w;
  pabd_exact_free_body(0.04, 0.02, (pabd_dvec3){2, -3, 4}, t, &q, &w);
  put_attitude(q, w, y);
}

static void exact_brick(const pabd_row *row, const pabd_view *view, double t, double *y) {
  (void)row;
  pabd_dquat q;
  pabd_dvec3 w, rates = {10 * PI / 180, 20 * PI / 180, 30 * PI / 180};
  pabd_exact_brick(view->c->scene.bodies[0].inertia, rates, t, &q, &w);
  put_attitude(q, w, y);
}

/* ---- V06, V07: tops ---- */

static void outputs_top(const pabd_view *view, int32_t frame, double *y) {
  const double *p = pose_of(view, frame, 0);
  memcpy(y, p + 3, 4 * sizeof *y);
  memcpy(y + 4, p, 3 * sizeof *y);
}

static void top_from_table(const double *row, double *y) {
  memcpy(y, row + 3, 4 * sizeof *y);
  memcpy(y + 4, row, 3 * sizeof *y);
}

static void measure_gyroscope(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double turned = 0, before = 0, nutation = 0, theta0 = parameter(view, "theta") * PI / 180,
         rate = parameter(view, "rate");
  for (int32_t f = 1; f <= view->frames; ++f) {
    const double *p = pose_of(view, f, 0);
    double now = atan2(p[1], p[0]);
    turned += remainder(now - before, 2 * PI);
    before = now;
    double theta = atan2(hypot(p[0], p[1]), p[2]);
    nutation = fmax(nutation, fabs(theta - theta0));
  }
  double mean = turned / (view->frames * view->h);
  level->error = fmax(fabs(mean - rate) / rate, nutation);
  snprintf(level->note, sizeof level->note, "mean rate %.6g rad/s, nutation %.2g rad", mean, nutation);
}

/* ---- V08 to V14: mechanisms ---- */

static void outputs_pendulum(const pabd_view *view, int32_t frame, double *y) {
  const double *p = pose_of(view, frame, 0);
  y[0] = p[0], y[1] = p[2];
}

static void exact_pendulum(const pabd_row *row, const pabd_view *view, double t, double *y) {
  (void)row;
  /* with ball and hinge the sphere turns with its arm: I = m L^2 + 2/5 m r^2 */
  double inertia = parameter_is(view, "joint", "distance") ? 1 : 1 + 0.4 * 0.05 * 0.05;
  double theta = pabd_exact_pendulum(sqrt(G / inertia), t);
  y[0] = -sin(theta), y[1] = -cos(theta);
}

static void outputs_four_bar(const pabd_view *view, int32_t frame, double *y) {
  pabd_dvec3 top = point_of(view, frame, 0, (pabd_dvec3){0.5, 0, 0});
  const double *v = velocity_of(view, frame, 0);
  pabd_dvec3 at = v3_add(vec_at(v), v3_cross(vec_at(v + 3), v3_sub(top, vec_at(pose_of(view, frame, 0)))));
  y[0] = top.x, y[1] = top.z, y[2] = at.x, y[3] = at.z;
}

static void exact_four_bar(const pabd_row *row, const pabd_view *view, double t, double *y) {
  (void)row;
  pabd_exact_four_bar((int32_t)parameter(view, "n"), G, t, &y[0], &y[1], &y[2], &y[3]);
}

static void outputs_andrews(const pabd_view *view, int32_t frame, double *y) {
  pabd_dvec3 f = point_of(view, frame, body_named(view, "K1"), (pabd_dvec3){0.007 - 0.00092, 0, 0});
  pabd_dvec3 e = point_of(view, frame, body_named(view, "K2"), (pabd_dvec3){0.028 - 0.0115, 0, 0});
  y[0] = f.x, y[1] = f.y, y[2] = e.x, y[3] = e.y;
}

static void outputs_flyball(const pabd_view *view, int32_t frame, double *y) {
  int32_t arm = body_named(view, "right");
  y[0] = pose_of(view, frame, body_named(view, "slider"))[2];
  y[1] = asin(fmax(-1, fmin(1, -pabd_dquat_rotate(attitude_of(view, frame, arm), (pabd_dvec3){1, 0, 0}).z)));
  y[2] = velocity_of(view, frame, body_named(view, "shaft"))[5];
}

/* sin and cos of the crank's angle, slider over the rod's length */
static void outputs_crank(const pabd_view *view, int32_t frame, double *y) {
  pabd_dvec3 arm = pabd_dquat_rotate(attitude_of(view, frame, 0), (pabd_dvec3){0, 0, 1});
  y[0] = -arm.y, y[1] = arm.z, y[2] = pose_of(view, frame, 2)[0] / 0.3;
}

static void crank_from_table(const double *row, double *y) {
  y[0] = sin(row[0]), y[1] = cos(row[0]), y[2] = row[2] / 0.3;
}

static void crank_balls_from_table(const double *row, double *y) {
  y[0] = sin(row[0]), y[1] = cos(row[0]), y[2] = row[1] / 0.3;
}

/* ---- V15, V16: chains ---- */

/* Largest distance of the anchors of any joint in a frame. */
static double largest_gap(const pabd_view *view, int32_t frame) {
  const pabd_scene *scene = &view->c->scene;
  double worst = 0;
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    pabd_dvec3 a =
        joint->body_a == PABD_WORLD ? joint->frame_a.p : point_of(view, frame, joint->body_a, joint->frame_a.p);
    pabd_dvec3 b = point_of(view, frame, joint->body_b, joint->frame_b.p);
    worst = fmax(worst, v3_norm(v3_sub(a, b)));
  }
  return worst;
}

static void measure_gap(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  level->error = 0;
  for (int32_t f = 1; f <= view->frames; ++f) level->error = fmax(level->error, largest_gap(view, f));
  level->error /= row->scale;
}

/* Largest move of any body from its start. */
static void measure_move(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  const pabd_scene *scene = &view->c->scene;
  level->error = 0;
  for (int32_t f = 1; f <= view->frames; ++f)
    for (int32_t i = 0; i < scene->body_count; ++i)
      level->error =
          fmax(level->error, v3_norm(v3_sub(vec_at(pose_of(view, f, i)), scene->bodies[i].pose.p)) / row->scale);
}

/* Residual of the velocity rows after one step from rest: what the joints let through of g h. */
static void measure_first_step(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double worst = 0, before = 0;
  for (int32_t i = 0; i < view->c->scene.body_count; ++i) {
    double now = velocity_of(view, 1, i)[2];
    worst = fmax(worst, fabs(now - before));
    before = now;
  }
  level->error = worst / (G * view->h);
}

static const char *sweep_settings(const char *engine, const char *preset, int32_t x, char *buffer, size_t size,
                                  const char **why) {
  int ours = strncmp(engine, "pabd", 4) == 0;
  if (ours && strcmp(preset, "contact-gs") == 0) {
    *why = "rows of this preset are soft: sweeps converge to another system";
    return NULL;
  }
  if (ours && (strcmp(preset, "jacobi") == 0 || strcmp(preset, "hard") == 0))
    snprintf(buffer, size, "substeps=1,sweeps=%d,relax_sweeps=0,warm_start=0", x);
  else if (strcmp(engine, "bullet-native") == 0 || strcmp(engine, "bullet") == 0)
    snprintf(buffer, size, "iterations=%d,warm_start=0", x);
  else if (strcmp(engine, "ode") == 0 && strcmp(preset, "direct") != 0)
    snprintf(buffer, size, "stepper=quick,iterations=%d,over_relaxation=1", x);
  else {
    *why = ours ? "no sweeps of this preset to count" : "no sequential impulses with a count of iterations";
    return NULL;
  }
  return buffer;
}

static double chain_theory(const pabd_row *row, double x) {
  double n = 10, ratio = 10;
  sscanf(row->overrides, "n=%lf,ratio=%lf", &n, &ratio);
  return pow(pabd_exact_gs_radius((int32_t)n, ratio), x);
}

static void outputs_end(const pabd_view *view, int32_t frame, double *y) {
  const double *p = pose_of(view, frame, view->c->scene.body_count - 1);
  y[0] = p[0], y[1] = p[2];
}

/* ---- V17 ---- */

/* The gap over the one that free fall would make in the step, after x multiplier steps. */
static void measure_contraction(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  double gap = (pose_of(view, 0, 0)[2] - pose_of(view, 1, 0)[2]) / (G * view->h * view->h);
  level->value = gap;
  level->error = fabs(gap - row->theory(row, view->x));
}

static const char *multiplier_settings(const char *engine, const char *preset, int32_t x, char *buffer, size_t size,
                                       const char **why) {
  if (strncmp(engine, "pabd", 4) != 0) {
    *why = "no augmented Lagrangian whose penalty can be set";
    return NULL;
  }
  if (strcmp(preset, "contact-gs") == 0 || strcmp(preset, "auto") == 0) {
    *why = "this preset takes no multiplier steps (exact or sequential impulses)";
    return NULL;
  }
  snprintf(
      buffer, size,
      "substeps=1,relax_sweeps=0,stiffness_rule=fixed,stiffness=1e4,alpha=0,warm_start=0,multipliers=1,tolerance=0,"
      "sweeps=%d",
      x);
  return buffer;
}

static double multiplier_theory(const pabd_row *row, double x) {
  (void)row;
  return pow(pabd_exact_contraction(1e4, 1.0 / 60, 1), x);
}

/* ---- V19 ---- */

static void measure_braking(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double way = pose_of(view, view->frames, 1)[0] - pose_of(view, 0, 1)[0];
  level->value = way;
  level->error = fabs(way - 25.48419980) / 25.48419980; /* v^2 / (2 mu g) */
}

/* Should it roll over? By the load of the variant: below 1.3636 no. The height of the wheels' lower points counts. */
static void measure_rollover(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double lateral = parameter(view, "lateral"), most = 0;
  for (int32_t f = 1; f <= view->frames; ++f) {
    double up = pabd_dquat_rotate(attitude_of(view, f, 1), (pabd_dvec3){0, 0, 1}).z;
    most = fmax(most, acos(fmax(-1, fmin(1, up))));
  }
  level->value = most * 180 / PI;
  int should = lateral > 1.5 / (2 * 0.55), did = most > 20 * PI / 180, stayed = most < 3 * PI / 180;
  level->error = (should && did) || (!should && stayed) ? 0 : 1;
  snprintf(level->note, sizeof level->note, "largest roll %.3g deg", level->value);
}

/* ---- impacts ---- */

static void measure_impact(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double m2 = parameter(view, "ratio"), w1, w2;
  pabd_exact_impact(1, m2, 2, -1, parameter(view, "e"), &w1, &w2);
  double a = velocity_of(view, view->frames, 0)[0], b = velocity_of(view, view->frames, 1)[0];
  level->error = fmax(fabs(a - w1), fabs(b - w2)) / 3; /* over the closing speed */
  snprintf(level->note, sizeof level->note, "%.6g, %.6g m/s for %.6g, %.6g", a, b, w1, w2);
}

static void measure_bounce(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double e = parameter(view, "e");
  int32_t found = 0;
  level->error = 0;
  /* local maxima of the bottom's height, by a parabola through three frames */
  for (int32_t f = 1; f < view->frames && found < 2; ++f) {
    double a = pose_of(view, f - 1, 1)[2], b = pose_of(view, f, 1)[2], c = pose_of(view, f + 1, 1)[2];
    if (!(b > a && b >= c) || b < 0.1001) continue;
    double curve = a - 2 * b + c, top = curve < 0 ? b - (c - a) * (c - a) / (8 * curve) : b;
    double expected = pabd_exact_bounce_height(1, e, ++found);
    level->error = fmax(level->error, fabs(top - 0.1 - expected) / expected);
  }
  if (found < 2) level->error = 1;
  snprintf(level->note, sizeof level->note, "%d bounces seen", found);
}

static void measure_elastic_spheres(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double start = energy_at(view, 0), sum = 0;
  for (int32_t f = 1; f <= view->frames; ++f) {
    double d = energy_at(view, f) - start;
    sum += d * d;
  }
  level->value = sum / view->frames;
  level->error = sqrt(sum / view->frames) / start;
  snprintf(level->note, sizeof level->note, "mean (E-E0)^2 = %.3g J^2", level->value);
}

/* SimBenchmark's penetration: sum of squares over pairs and ground, mean over steps. */
static void measure_sunk_spheres(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double sum = 0;
  int32_t stride = view->frames > 400 ? view->frames / 400 : 1, used = 0;
  for (int32_t f = 1; f <= view->frames; f += stride, ++used) {
    for (int32_t i = 1; i < view->c->scene.body_count; ++i) {
      const double *a = pose_of(view, f, i);
      double deep = fmax(0, 0.1 - a[2]);
      sum += deep * deep;
      for (int32_t j = i + 1; j < view->c->scene.body_count; ++j) {
        const double *b = pose_of(view, f, j);
        double dx = a[0] - b[0], dy = a[1] - b[1], dz = a[2] - b[2], square = dx * dx + dy * dy + dz * dz;
        if (square >= 0.04) continue;
        deep = 0.2 - sqrt(square);
        sum += deep * deep;
      }
    }
  }
  level->error = sum / used;
}

/* ---- friction ---- */

static void outputs_along(const pabd_view *view, int32_t frame, double *y) {
  y[0] = pose_of(view, frame, 1)[0];
}

static void exact_incline(const pabd_row *row, const pabd_view *view, double t, double *y) {
  (void)row;
  double b = parameter(view, "angle") * PI / 180, mu = parameter(view, "mu");
  y[0] = 0.5 * fmax(0, G * (sin(b) - mu * cos(b))) * t * t;
}

static void measure_stick(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  double reference, way = pose_of(view, view->frames, 1)[0];
  exact_incline(row, view, view->frames * view->h, &reference);
  level->error = fabs(way - reference) / row->scale;
  snprintf(level->note, sizeof level->note, "went %.4g m for %.4g m", way, reference);
}

static void measure_cone(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double angle = parameter(view, "angle") * PI / 180, t = view->frames * view->h, force = 0.5 * G;
  const double *p = pose_of(view, view->frames, 1);
  double way = 0.5 * (parameter(view, "push") - 1) * force * t * t;
  level->error = hypot(p[0] - way * cos(angle), p[1] - way * sin(angle)) / (0.5 * force * t * t);
  level->value = 2 * (p[0] * cos(angle) + p[1] * sin(angle)) / (t * t); /* acceleration along the push */
  snprintf(level->note, sizeof level->note, "a = %.4g m/s^2, %.3g deg off", level->value,
           remainder(atan2(p[1], p[0]) - angle, 2 * PI) * 180 / PI);
}

static void outputs_rolling(const pabd_view *view, int32_t frame, double *y) {
  double sum = 0;
  for (int32_t i = 2; i < view->c->scene.body_count; ++i) sum += velocity_of(view, frame, i)[0];
  y[0] = velocity_of(view, frame, 1)[0];
  y[1] = sum / (view->c->scene.body_count - 2);
}

static void exact_rolling(const pabd_row *row, const pabd_view *view, double t, double *y) {
  (void)row, (void)view;
  pabd_exact_rolling(10, 25, 1, 0.4, 150, G, &y[0], &y[1]);
  y[0] *= t, y[1] *= t;
}

/* ---- V32 to V36 ---- */

static double tilt_of(const pabd_view *view, int32_t frame, int32_t body) {
  pabd_dvec3 up = pabd_dquat_rotate(attitude_of(view, frame, body), (pabd_dvec3){0, 0, 1});
  return atan2(up.x, up.z);
}

static void measure_rocking(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double start = parameter(view, "start"), alpha = atan2(0.1, 0.4), first = NAN, worst = 0, peak = 0;
  int32_t swings = 0;
  for (int32_t f = 1; f <= view->frames && swings < 4; ++f) {
    double before = tilt_of(view, f - 1, 1), now = tilt_of(view, f, 1);
    if (before * now < 0 || (now == 0 && before != 0)) {
      if (swings == 0) first = (f - 1 + before / (before - now)) * view->h;
      if (swings > 0) {
        double expected = pabd_exact_rocking_amplitude(0.1, 0.4, start, swings);
        worst = fmax(worst, fabs(peak / alpha - expected) / expected);
      }
      ++swings;
      peak = 0;
    }
    peak = fmax(peak, fabs(now));
  }
  double expected = pabd_exact_rocking_first_impact(0.1, 0.4, G, start);
  worst = isnan(first) ? 1 : fmax(worst, fabs(first - expected) / expected);
  if (swings < 4) worst = fmax(worst, 1);
  level->error = worst;
  snprintf(level->note, sizeof level->note, "first impact at %.6g s, %d impacts seen", first, swings);
}

static void measure_gain(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double lowest = energy_at(view, 0), gain = 0;
  for (int32_t f = 1; f <= view->frames; ++f) {
    double now = energy_at(view, f);
    gain = fmax(gain, now - lowest);
    lowest = fmin(lowest, now);
  }
  level->error = gain / view->c->energy_ref;
}

static void measure_dominoes(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  double scale = parameter(view, "scale"), passed[2] = {NAN, NAN};
  for (int32_t f = 1; f <= view->frames; ++f)
    for (int k = 0; k < 2; ++k)
      if (isnan(passed[k]) && tilt_of(view, f, k ? 16 : 6) > 20 * PI / 180) passed[k] = f * view->h;
  double speed = 10 * 0.025 * scale / (passed[1] - passed[0]);
  level->value = speed / sqrt(G * 0.05 * scale);
  level->error = isfinite(level->value) ? 0 : 1; /* compared with the first variant's afterwards */
  snprintf(level->note, sizeof level->note, "v / sqrt(g H) = %.4g", level->value);
}

static void measure_stands(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  const pabd_scene *scene = &view->c->scene;
  level->error = 0;
  for (int32_t f = 1; f <= view->frames && level->error == 0; ++f)
    for (int32_t i = 0; i < scene->body_count; ++i)
      if (v3_norm(v3_sub(vec_at(pose_of(view, f, i)), scene->bodies[i].pose.p)) > row->scale) {
        level->error = 1;
        level->value = f * view->h;
        snprintf(level->note, sizeof level->note, "moved by %.3g m at %.3g s", row->scale, level->value);
        break;
      }
}

/* Does the arch do what its thickness says? It has failed when a stone has moved by 5 % of the radius. */
static void measure_arch(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  const pabd_scene *scene = &view->c->scene;
  int should_stand = parameter(view, "thickness") > 0.107460;
  double most = 0;
  (void)row;
  for (int32_t i = 1; i < scene->body_count; ++i)
    most = fmax(most, v3_norm(v3_sub(vec_at(pose_of(view, view->frames, i)), scene->bodies[i].pose.p)));
  level->value = most;
  level->error = should_stand == (most < 0.05) ? 0 : 1;
  snprintf(level->note, sizeof level->note, "t/R = %.4f: moved by %.3g m, should %s", parameter(view, "thickness"),
           most, should_stand ? "stand" : "fall");
}

/* ---- laws ---- */

static void measure_momentum(const pabd_row *row, const pabd_view *view, pabd_level *level) {
  (void)row;
  const pabd_scene *scene = &view->c->scene;
  pabd_dvec3 p0 = {0, 0, 0}, l0 = {0, 0, 0};
  double linear = 0, angular = 0, p_ref = 0, l_ref = 0;
  for (int32_t f = 0; f <= view->frames; ++f) {
    pabd_dvec3 p = {0, 0, 0}, l = {0, 0, 0}, center = {0, 0, 0};
    double mass = 0;
    for (int32_t i = 0; i < scene->body_count; ++i) {
      center = v3_madd(center, scene->bodies[i].mass, vec_at(pose_of(view, f, i)));
      mass += scene->bodies[i].mass;
    }
    center = v3_scale(1 / mass, center);
    for (int32_t i = 0; i < scene->body_count; ++i) {
      const pabd_body *b = &scene->bodies[i];
      pabd_dquat q = attitude_of(view, f, i);
      pabd_dvec3 v = vec_at(velocity_of(view, f, i)),
                 w = pabd_dquat_rotate(pabd_dquat_conj(q), vec_at(velocity_of(view, f, i) + 3));
      pabd_dvec3 own = pabd_dquat_rotate(q, (pabd_dvec3){b->inertia.x * w.x, b->inertia.y * w.y, b->inertia.z * w.z});
      pabd_dvec3 turn = v3_add(own, v3_cross(v3_sub(vec_at(pose_of(view, f, i)), center), v3_scale(b->mass, v)));
      p = v3_madd(p, b->mass, v);
      l = v3_add(l, turn);
      if (f == 0) p_ref = fmax(p_ref, b->mass * v3_norm(v)), l_ref = fmax(l_ref, v3_norm(turn));
    }
    if (f == 0) p0 = p, l0 = l;
    linear = fmax(linear, v3_norm(v3_sub(p, p0)) / p_ref);
    angular = fmax(angular, v3_norm(v3_sub(l, l0)) / l_ref);
  }
  level->error = fmax(linear, angular);
  snprintf(level->note, sizeof level->note, "linear %.2g, angular %.2g", linear, angular);
}

/* ---- the rows ---- */

static const char *const cone_variants[] = {"angle=0",  "angle=15", "angle=30", "angle=45",
                                            "angle=60", "angle=75", "angle=90", NULL};
static const char *const stick_variants[] = {"mu=0.5", "mu=0.57", "mu=0.585", "mu=0.65", NULL};
static const char *const mass_variants[] = {"ratio=1", "ratio=3", "ratio=100", "ratio=10000", NULL};
static const char *const stack_variants[] = {"n=5,ratio=1",  "n=10,ratio=1",  "n=20,ratio=1",
                                             "n=4,ratio=10", "n=3,ratio=100", NULL};
static const char *const rollover_variants[] = {"lateral=1.25", "lateral=1.33", "lateral=1.4", "lateral=1.5", NULL};
static const char *const paradox_variants[] = {"angle=63.435,mu=1.5", "angle=55,mu=2", "angle=60,mu=1.2",
                                               "angle=70,mu=1.4", NULL};
static const char *const size_variants[] = {"scale=1,h=0.002,t=1.5", "scale=2,h=0.0028284271247461901,t=2.1213203",
                                            "scale=10,h=0.0063245553203367588,t=4.7434165", NULL};
static const char *const arch_variants[] = {"thickness=0.110684", "thickness=0.104236", NULL};
static const char *const layer_variants[] = {"layers=10", "layers=20", "layers=40", NULL};

#define STEPS(ci, quick, full) \
  { ci, quick, full }
#define LASTS(ci, quick, full) \
  { ci, quick, full }
/* A row that only says why no engine is run on it. */
#define ABSENT(number_, key_, title_, why_)                                                                     \
  {                                                                                                             \
    .number = number_, .key = key_, .title = title_, .file = "", .overrides = "", .gate = 'B', .missing = why_, \
    .levels = STEPS(1, 1, 1), .words = "", .source = ""                                                         \
  }

const pabd_row pabd_rows[] = {
    {.number = "V01",
     .key = "v01-free-fall",
     .title = "Free fall, exact to the digit",
     .file = "v01-free-fall",
     .overrides = "",
     .gate = 'X',
     .h0 = 0.01,
     .levels = STEPS(1, 1, 1),
     .measure = measure_free_fall,
     .words = "distance from the nearest known integrator",
     .source = "derivation"},
    {.number = "V02",
     .key = "v02-spring-map",
     .title = "Spring, exact to the digit",
     .file = "v02-spring",
     .overrides = "",
     .gate = 'X',
     .h0 = 0.01,
     .levels = STEPS(1, 1, 1),
     .measure = measure_spring_map,
     .words = "distance from the nearest known integrator",
     .source = "derivation"},
    {.number = "V02",
     .key = "v02-spring",
     .title = "Spring, 1 s",
     .file = "v02-spring",
     .overrides = "",
     .gate = 'O',
     .h0 = 0.01,
     .levels = STEPS(3, 5, 7),
     .output_count = 1,
     .outputs = outputs_spring,
     .exact = exact_spring,
     .distance = distance_scaled,
     .scale = 0.1,
     .words = "rms error over the amplitude",
     .source = "closed form"},
    {.number = "V02",
     .key = "v02-damped",
     .title = "Damped spring, 1 s",
     .file = "v02-spring",
     .overrides = "damping=2",
     .gate = 'O',
     .h0 = 0.01,
     .levels = STEPS(0, 5, 7),
     .output_count = 1,
     .outputs = outputs_spring,
     .exact = exact_spring,
     .distance = distance_scaled,
     .scale = 0.1,
     .words = "rms error over the amplitude",
     .source = "closed form (Drake MassDamperSpring)"},
    {.number = "V03",
     .key = "v03-free-body",
     .title = "Free axisymmetric body",
     .file = "v03-free-body",
     .overrides = "",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(3, 5, 7),
     .duration = LASTS(3, 10, 10),
     .output_count = 7,
     .outputs = outputs_free,
     .exact = exact_free_body,
     .distance = distance_turned,
     .scale = 5.3851648071345,
     .words = "rms angle (rad) and relative rate",
     .source = "Kane; Drake FreeBody"},
    {.number = "V04",
     .key = "v04-brick",
     .title = "Tumbling brick, 30 s",
     .file = "v04-brick",
     .overrides = "",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 4, 6),
     .output_count = 7,
     .outputs = outputs_free,
     .exact = exact_brick,
     .distance = distance_turned,
     .scale = 0.6530588,
     .sample_time = 0.5,
     .words = "rms angle (rad) and relative rate",
     .source = "Jacobi; NASA check case 2"},
    {.number = "V06",
     .key = "v06-heavy-top",
     .title = "Heavy top, 2 s",
     .file = "v06-heavy-top",
     .overrides = "",
     .gate = 'O',
     .h0 = 0.002,
     .levels = STEPS(0, 6, 8),
     .output_count = 7,
     .outputs = outputs_top,
     .table = &pabd_reference_heavy_top,
     .from_table = top_from_table,
     .distance = distance_turned,
     .scale = 1,
     .words = "rms angle (rad) and place (m) at the tabulated times",
     .source = "Lie-group literature; 8th-order run"},
    {.number = "V07",
     .key = "v07-gyroscope",
     .title = "Gyroscope, level",
     .file = "v07-gyroscope",
     .overrides = "",
     .gate = 'T',
     .h0 = 0.004,
     .levels = STEPS(0, 4, 6),
     .duration = LASTS(0, 3, 10),
     .measure = measure_gyroscope,
     .words = "relative rate, nutation (rad)",
     .source = "steady precession"},
    {.number = "V07",
     .key = "v07-gyroscope-60",
     .title = "Gyroscope, 60 degrees",
     .file = "v07-gyroscope",
     .overrides = "theta=60,rate=2.0401076",
     .gate = 'T',
     .h0 = 0.004,
     .levels = STEPS(0, 4, 6),
     .duration = LASTS(0, 3, 10),
     .measure = measure_gyroscope,
     .words = "relative rate, nutation (rad)",
     .source = "steady precession"},
    {.number = "V08",
     .key = "v08-pendulum",
     .title = "Pendulum on a ball joint, 10 s",
     .file = "v08-pendulum",
     .overrides = "",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(3, 5, 7),
     .output_count = 2,
     .outputs = outputs_pendulum,
     .exact = exact_pendulum,
     .distance = distance_relative,
     .words = "trajectory error (IFToMM)",
     .source = "elliptic functions; IFToMM A01"},
    {.number = "V08",
     .key = "v08-distance",
     .title = "Pendulum on a distance joint, 10 s",
     .file = "v08-pendulum",
     .overrides = "joint=distance",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 5, 7),
     .output_count = 2,
     .outputs = outputs_pendulum,
     .exact = exact_pendulum,
     .distance = distance_relative,
     .words = "trajectory error (IFToMM)",
     .source = "elliptic functions; IFToMM A01"},
    {.number = "V08",
     .key = "v08-long",
     .title = "Pendulum on a hinge, long",
     .file = "v08-pendulum",
     .overrides = "joint=hinge",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 5, 6),
     .duration = LASTS(0, 100, 2000),
     .output_count = 2,
     .outputs = outputs_pendulum,
     .exact = exact_pendulum,
     .distance = distance_relative,
     .sample_time = 0.5,
     .words = "trajectory error (IFToMM)",
     .source = "elliptic functions; IFToMM A01 at 2000 s"},
    {.number = "V10",
     .key = "v10-four-bar-2",
     .title = "N-four-bar, N = 2, 10 s",
     .file = "v10-four-bar",
     .overrides = "n=2",
     .gate = 'O',
     .h0 = 0.01,
     .levels = STEPS(0, 5, 7),
     .sample_time = 0.05,
     .output_count = 4,
     .outputs = outputs_four_bar,
     .exact = exact_four_bar,
     .distance = distance_relative,
     .words = "trajectory error (IFToMM)",
     .source = "elliptic functions; IFToMM A02"},
    {.number = "V10",
     .key = "v10-four-bar-40",
     .title = "N-four-bar, N = 40",
     .file = "v10-four-bar",
     .overrides = "n=40",
     .gate = 'O',
     .h0 = 0.01,
     .levels = STEPS(0, 3, 6),
     .duration = LASTS(0, 3, 20),
     .sample_time = 0.05,
     .output_count = 4,
     .outputs = outputs_four_bar,
     .exact = exact_four_bar,
     .distance = distance_relative,
     .words = "trajectory error (IFToMM)",
     .source = "elliptic functions; IFToMM A02"},
    {.number = "V11",
     .key = "v11-andrews",
     .title = "Andrews' squeezer, 0.03 s",
     .file = "v11-andrews",
     .overrides = "",
     .gate = 'O',
     .h0 = 0.0001,
     .levels = STEPS(0, 5, 7),
     .output_count = 4,
     .outputs = outputs_andrews,
     .table = &pabd_reference_andrews,
     .distance = distance_scaled,
     .scale = 0.007,
     .words = "rms place of F and E over the crank",
     .source = "IVP test set"},
    {.number = "V13",
     .key = "v13-flyball",
     .title = "Flyball governor",
     .file = "v13-flyball",
     .overrides = "",
     .gate = 'O',
     .h0 = 0.005,
     .levels = STEPS(0, 5, 7),
     .duration = LASTS(0, 2, 10),
     .output_count = 3,
     .outputs = outputs_flyball,
     .table = &pabd_reference_flyball,
     .distance = distance_relative,
     .words = "trajectory error at the tabulated times",
     .source = "IFToMM A05; reduced model"},
    {.number = "V14",
     .key = "v14-slider-crank",
     .title = "Slider-crank, universal joint",
     .file = "v14-slider-crank",
     .overrides = "joint=universal",
     .gate = 'O',
     .h0 = 0.01,
     .levels = STEPS(0, 5, 7),
     .output_count = 3,
     .outputs = outputs_crank,
     .table = &pabd_reference_slider_crank,
     .from_table = crank_from_table,
     .distance = distance_scaled,
     .scale = 1,
     .words = "rms angle (rad) and place at the tabulated times",
     .source = "IFToMM; reduced model"},
    {.number = "V14",
     .key = "v14-slider-crank-balls",
     .title = "Slider-crank, rod without roll",
     .file = "v14-slider-crank",
     .overrides = "joint=balls",
     .gate = 'O',
     .h0 = 0.01,
     .levels = STEPS(0, 5, 7),
     .output_count = 3,
     .outputs = outputs_crank,
     .table = &pabd_reference_slider_crank_balls,
     .from_table = crank_balls_from_table,
     .distance = distance_scaled,
     .scale = 1,
     .words = "rms angle (rad) and place at the tabulated times",
     .source = "reduced model"},
    {.number = "V15",
     .key = "v15-hanging",
     .title = "Hanging chain 100:1, gaps",
     .file = "v15-hanging",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(2, 4, 6),
     .measure = measure_gap,
     .scale = 1,
     .words = "largest gap over a link",
     .source = "statics"},
    {.number = "V15",
     .key = "v15-catenary",
     .title = "Catenary of ten rods at rest",
     .file = "v15-catenary",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 4, 6),
     .measure = measure_move,
     .scale = 1,
     .words = "largest move over a rod",
     .source = "statics"},
    {.number = "V15",
     .key = "v15-sweeps",
     .title = "Sweeps on a chain, 10:1",
     .file = "v15-sequential",
     .overrides = "n=10,ratio=10",
     .gate = 'B',
     .ladder = PABD_LADDER_SETTING,
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 10, 11),
     .measure = measure_first_step,
     .settings = sweep_settings,
     .theory = chain_theory,
     .green = 0.05,
     .amber = 0.51,
     .words = "rate below that of Gauss-Seidel by (Jacobi: 0.5)",
     .source = "spectral radius"},
    {.number = "V16",
     .key = "v16-heavy-chain-1",
     .title = "Swinging chain 1:1, 1 s",
     .file = "v16-heavy-chain",
     .overrides = "ratio=1",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 5, 7),
     .output_count = 2,
     .outputs = outputs_end,
     .distance = distance_scaled,
     .scale = 10,
     .words = "against its own finest step",
     .source = "self-consistency"},
    {.number = "V16",
     .key = "v16-heavy-chain-1000",
     .title = "Swinging chain 1000:1, 1 s",
     .file = "v16-heavy-chain",
     .overrides = "ratio=1000",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 5, 7),
     .output_count = 2,
     .outputs = outputs_end,
     .distance = distance_scaled,
     .scale = 10,
     .words = "against its own finest step",
     .source = "self-consistency"},
    {.number = "V17",
     .key = "v17-multiplier",
     .title = "Multiplier steps on one row",
     .file = "v17-multiplier",
     .overrides = "",
     .gate = 'X',
     .ladder = PABD_LADDER_SETTING,
     .h0 = 1.0 / 60,
     .levels = STEPS(4, 8, 8),
     .measure = measure_contraction,
     .settings = multiplier_settings,
     .theory = multiplier_theory,
     .words = "gap over that of free fall, against 0.264706^j",
     .source = "derivation"},
    ABSENT("V18", "v18-bicycle", "Bicycle", "needs wheels that roll on a knife edge; no engine here has that contact"),
    {.number = "V19",
     .key = "v19-braking",
     .title = "Car stops with locked wheels",
     .file = "v19-car",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 5, 7),
     .measure = measure_braking,
     .words = "relative error of the way",
     .source = "v^2 / (2 mu g)"},
    {.number = "V19",
     .key = "v19-rollover",
     .title = "Car rolls over from 1.364 g",
     .file = "v19-car",
     .overrides = "speed=0,friction=3,t=2",
     .gate = 'B',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 240,
     .levels = STEPS(0, 4, 4),
     .variants = rollover_variants,
     .measure = measure_rollover,
     .green = 0,
     .amber = 0,
     .words = "wrong outcomes",
     .source = "track / (2 h)"},
    {.number = "V20",
     .key = "v20-impact-0",
     .title = "Central impact, e = 0",
     .file = "v20-impact",
     .overrides = "e=0",
     .gate = 'T',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 240,
     .levels = STEPS(2, 4, 4),
     .variants = mass_variants,
     .measure = measure_impact,
     .words = "velocity error over the closing speed",
     .source = "momentum, restitution"},
    {.number = "V20",
     .key = "v20-impact-05",
     .title = "Central impact, e = 0.5",
     .file = "v20-impact",
     .overrides = "e=0.5",
     .gate = 'T',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 240,
     .levels = STEPS(2, 4, 4),
     .variants = mass_variants,
     .measure = measure_impact,
     .words = "velocity error over the closing speed",
     .source = "momentum, restitution"},
    {.number = "V20",
     .key = "v20-impact-1",
     .title = "Central impact, e = 1",
     .file = "v20-impact",
     .overrides = "e=1",
     .gate = 'T',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 240,
     .levels = STEPS(0, 4, 4),
     .variants = mass_variants,
     .measure = measure_impact,
     .words = "velocity error over the closing speed",
     .source = "momentum, restitution"},
    {.number = "V22",
     .key = "v22-bounce-05",
     .title = "Bouncing ball, e = 0.5",
     .file = "v22-bounce",
     .overrides = "e=0.5",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 5, 7),
     .measure = measure_bounce,
     .words = "relative error of two heights",
     .source = "h0 e^(2n)"},
    {.number = "V22",
     .key = "v22-bounce-1",
     .title = "Bouncing ball, e = 1",
     .file = "v22-bounce",
     .overrides = "e=1,t=3",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 5, 7),
     .measure = measure_bounce,
     .words = "relative error of two heights",
     .source = "h0 e^(2n)"},
    {.number = "V23",
     .key = "v23-elastic",
     .title = "216 elastic balls",
     .file = "v23-spheres",
     .overrides = "elastic=true",
     .gate = 'T',
     .h0 = 0.01,
     .levels = STEPS(0, 3, 5),
     .duration = LASTS(0, 2, 10),
     .measure = measure_elastic_spheres,
     .green = 1e-2,
     .amber = 1e-1,
     .words = "rms energy error over the energy",
     .source = "SimBenchmark 666"},
    {.number = "V23",
     .key = "v23-inelastic",
     .title = "216 balls fall and rest",
     .file = "v23-spheres",
     .overrides = "elastic=false",
     .gate = 'T',
     .h0 = 0.01,
     .levels = STEPS(0, 3, 5),
     .duration = LASTS(0, 2, 10),
     .measure = measure_sunk_spheres,
     .green = 1e-3,
     .amber = 1.13e-2,
     .words = "mean squared penetration (m^2)",
     .source = "SimBenchmark 666: 1.55e-6 ODE at 0.1 ms, 1.13e-2 MuJoCo"},
    {.number = "V25",
     .key = "v25-incline",
     .title = "Box slides down 30 degrees",
     .file = "v25-incline",
     .overrides = "",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(2, 5, 7),
     .output_count = 1,
     .outputs = outputs_along,
     .exact = exact_incline,
     .distance = distance_scaled,
     .scale = 4.7125744734,
     .words = "rms error over the way",
     .source = "g (sin b - mu cos b)"},
    {.number = "V25",
     .key = "v25-stick",
     .title = "Stick or slide at 30 degrees",
     .file = "v25-incline",
     .overrides = "",
     .gate = 'T',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 240,
     .levels = STEPS(2, 4, 4),
     .variants = stick_variants,
     .measure = measure_stick,
     .scale = 4.7125744734,
     .words = "error of the way",
     .source = "tan b = mu"},
    {.number = "V25",
     .key = "v25-cone",
     .title = "Friction alike in all directions",
     .file = "v25-cone",
     .overrides = "",
     .gate = 'T',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 960,
     .levels = STEPS(0, 7, 7),
     .variants = cone_variants,
     .measure = measure_cone,
     .words = "error of the way over the friction's",
     .source = "Coulomb's cone"},
    {.number = "V27",
     .key = "v27-rolling",
     .title = "25 balls on a driven box",
     .file = "v27-rolling",
     .overrides = "",
     .gate = 'O',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 4, 6),
     .output_count = 2,
     .outputs = outputs_rolling,
     .exact = exact_rolling,
     .distance = distance_scaled,
     .scale = 2.954,
     .words = "rms velocity error over the end speed",
     .source = "SimBenchmark rolling"},
    {.number = "V29",
     .key = "v29-stack",
     .title = "Stacks at rest",
     .file = "v29-stack",
     .overrides = "",
     .gate = 'T',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 60,
     .levels = STEPS(2, 5, 5),
     .variants = stack_variants,
     .measure = measure_move,
     .scale = 1,
     .words = "largest move over an edge",
     .source = "statics"},
    {.number = "V31",
     .key = "v31-arch",
     .title = "Arch of ten stones",
     .file = "v31-arch",
     .overrides = "",
     .gate = 'B',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 240,
     .levels = STEPS(0, 2, 2),
     .variants = arch_variants,
     .measure = measure_arch,
     .green = 0,
     .amber = 0,
     .words = "wrong outcomes 3 % above and below the limit",
     .source = "Milankovitch; least thickness with ten stones 0.107460"},
    {.number = "V32",
     .key = "v32-rocking",
     .title = "Rocking block",
     .file = "v32-rocking",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(2, 5, 7),
     .measure = measure_rocking,
     .green = 0.02,
     .amber = 0.1,
     .words = "relative error of first impact and three amplitudes",
     .source = "Housner"},
    {.number = "V34",
     .key = "v34-painleve",
     .title = "Painleve's rod",
     .file = "v34-painleve",
     .overrides = "",
     .gate = 'B',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 1.0 / 960,
     .levels = STEPS(2, 4, 4),
     .variants = paradox_variants,
     .measure = measure_gain,
     .green = 1e-3,
     .amber = 1e-2,
     .words = "energy gained over the start's",
     .source = "energy"},
    {.number = "V35",
     .key = "v35-dominoes",
     .title = "Dominoes of three sizes",
     .file = "v35-dominoes",
     .overrides = "",
     .gate = 'B',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 0.002,
     .levels = STEPS(0, 3, 3),
     .variants = size_variants,
     .measure = measure_dominoes,
     .green = 0.05,
     .amber = 0.2,
     .words = "speed over sqrt(g H) against the smallest row's",
     .source = "scaling"},
    {.number = "V36",
     .key = "v36-tower",
     .title = "Tower of planks stands",
     .file = "v36-tower",
     .overrides = "",
     .gate = 'B',
     .ladder = PABD_LADDER_VARIANTS,
     .h0 = 0.01,
     .levels = STEPS(0, 2, 3),
     .duration = LASTS(0, 5, 60),
     .variants = layer_variants,
     .measure = measure_stands,
     .scale = 0.005,
     .green = 0,
     .amber = 0,
     .words = "falls",
     .source = "SimBenchmark, FCLib's planks"},
    ABSENT("V37", "v37-frozen", "Frozen contact problems",
           "FCLib's problem sets are HDF5 files that do not come with this suite"),
    {.number = "L1",
     .key = "v40-pair",
     .title = "Momentum: isolated pair",
     .file = "v40-pair",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(1, 3, 5),
     .measure = measure_momentum,
     .green = 1e-4,
     .amber = 1e-2,
     .words = "momentum error over the largest of a body",
     .source = "law"},
    {.number = "L2",
     .key = "v41-free-chain",
     .title = "Momentum: free chain",
     .file = "v41-free-chain",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(1, 3, 5),
     .measure = measure_momentum,
     .green = 1e-4,
     .amber = 1e-2,
     .words = "momentum error over the largest of a body",
     .source = "law"},
    {.number = "L3",
     .key = "v42-collision",
     .title = "Momentum: two boxes collide",
     .file = "v42-collision",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(1, 3, 5),
     .measure = measure_momentum,
     .green = 1e-4,
     .amber = 1e-2,
     .words = "momentum error over the largest of a body",
     .source = "law"},
    {.number = "L4",
     .key = "v42-energy",
     .title = "Energy: two boxes collide",
     .file = "v42-collision",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(1, 3, 5),
     .measure = measure_gain,
     .green = 1e-4,
     .amber = 1e-2,
     .words = "largest rise of energy",
     .source = "law"},
    {.number = "L5",
     .key = "v41-energy",
     .title = "Energy: free chain",
     .file = "v41-free-chain",
     .overrides = "",
     .gate = 'T',
     .h0 = 1.0 / 60,
     .levels = STEPS(0, 4, 6),
     .measure = measure_gain,
     .green = 1e-3,
     .amber = 1e-1,
     .words = "largest rise of energy",
     .source = "law"},
};
const int32_t pabd_row_count = (int32_t)(sizeof pabd_rows / sizeof pabd_rows[0]);
