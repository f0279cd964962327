/* The judge: metrics of a case from poses and velocities alone, in double, the same for every engine.
 *
 * Each metric kind of the case is one pair of functions (a frame's part, the end's part) below; keys, windows and
 * reference energies are the project's contract (harness/README.md). Series are thinned to at most 600 points; error
 * series keep the largest value of each bin. */
#include "judge.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geometry.h"

typedef pabd_dvec3 vec;
enum { SERIES_POINTS = 600, BIG_SCENE = 1500, BIG_STRIDE = 5 };

static vec sub(vec a, vec b) {
  return (vec){a.x - b.x, a.y - b.y, a.z - b.z};
}
static vec add(vec a, vec b) {
  return (vec){a.x + b.x, a.y + b.y, a.z + b.z};
}
static vec scale(double s, vec a) {
  return (vec){s * a.x, s * a.y, s * a.z};
}
static double dot(vec a, vec b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static vec cross(vec a, vec b) {
  return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static double norm(vec a) {
  return sqrt(dot(a, a));
}

struct pabd_judge {
  const pabd_case *c;
  const pabd_scene *scene;
  int32_t n;
  double *pose, *velocity, *pose0, *pose_before; /* [n][7], [n][6]: this frame's, start, one frame ago; copies */
  double *pose_window;                           /* [n][7]: at the start of the creep window */
  int32_t frame;
  double time;
  /* energy, J */
  double energy0, energy_min, energy_before, gain_max, rise_sum, rel_max, rel_sum2, rel_end, load_work,
      kinetic_settled_max, kinetic;
  int64_t rel_count;
  double gain_settled_max, energy_min_settled, rel_settled_max;
  /* momentum */
  vec linear0, angular0;
  double lin_err, ang_err, largest_linear, largest_angular;
  /* penetration, m */
  double pen_max, pen_settled_max, pairs_sum;
  int64_t pairs_frames;
  double *depths; /* of the last judged frame, [depth_count] */
  int32_t depth_count, depth_capacity, touching;
  int32_t (*filter)[2], filter_count;
  pabd_placed *placed; /* [shape_count] */
  int32_t *order;      /* [shape_count] shapes by lower x */
  /* joints */
  double joint_max, joint_settled_max, joint_sum2, joint_ang_max, joint_ang_settled_max;
  int64_t joint_count;
  /* others, one slot per metric of the case */
  struct {
    double value, extra, before, before2;
    double times[32];
    int32_t count;
    int done;
  } slot[24];
  double x_momentum0, impact_momentum;
  double com_move, quat_err;
  vec com0;
  pabd_metrics series;
  double bin_energy, bin_pen, bin_joint; /* largest of the current bin */
  int32_t bin;
};

static vec position(const double *pose, int32_t i) {
  return (vec){pose[7 * i], pose[7 * i + 1], pose[7 * i + 2]};
}
static pabd_dquat rotation(const double *pose, int32_t i) {
  return (pabd_dquat){pose[7 * i + 3], pose[7 * i + 4], pose[7 * i + 5], pose[7 * i + 6]};
}
static pabd_dpose pose_of(const double *pose, int32_t i) {
  if (i < 0) return (pabd_dpose){{0, 0, 0}, {1, 0, 0, 0}};
  return (pabd_dpose){position(pose, i), rotation(pose, i)};
}
static vec linear(const pabd_judge *j, int32_t i) {
  return (vec){j->velocity[6 * i], j->velocity[6 * i + 1], j->velocity[6 * i + 2]};
}
static vec angular(const pabd_judge *j, int32_t i) {
  return (vec){j->velocity[6 * i + 3], j->velocity[6 * i + 4], j->velocity[6 * i + 5]};
}
static int is_dynamic(const pabd_judge *j, int32_t i) {
  return j->scene->bodies[i].motion == PABD_DYNAMIC;
}
static vec spin_of(const pabd_judge *j, int32_t i) { /* I w, world */
  pabd_dquat q = rotation(j->pose, i);
  vec w = pabd_dquat_rotate(pabd_dquat_conj(q), angular(j, i)), inertia = j->scene->bodies[i].inertia;
  return pabd_dquat_rotate(q, (vec){inertia.x * w.x, inertia.y * w.y, inertia.z * w.z});
}
static int has_kind(const pabd_judge *j, const char *kind) {
  for (int32_t k = 0; k < j->c->metric_count; ++k)
    if (strcmp(j->c->metrics[k].kind, kind) == 0) return 1;
  return 0;
}
static int is_settled(const pabd_judge *j) {
  return j->c->settle_time >= 0 && j->time >= j->c->settle_time - 1e-9;
}

/* ---------------------------------------------------------------- joints */

/* Angle of b's frame relative to a's about a's z. */
static double hinge_angle(pabd_dpose a, pabd_dpose b) {
  vec xa = pabd_dquat_rotate(a.q, (vec){1, 0, 0}), ya = pabd_dquat_rotate(a.q, (vec){0, 1, 0}),
      xb = pabd_dquat_rotate(b.q, (vec){1, 0, 0});
  return atan2(dot(xb, ya), dot(xb, xa));
}
/* The free coordinate of a hinge (rad) or slider (m). */
static double coordinate(const pabd_joint *joint, pabd_dpose a, pabd_dpose b) {
  if (joint->kind == PABD_SLIDER) return dot(sub(b.p, a.p), pabd_dquat_rotate(a.q, (vec){0, 0, 1}));
  return hinge_angle(a, b);
}
/* Position error (m) and angle error (rad) of a joint from its definition (pabd_scene.h). */
static double joint_error(const pabd_judge *j, const pabd_joint *joint, double *angle) {
  pabd_dpose a = pabd_dpose_mul(pose_of(j->pose, joint->body_a), joint->frame_a),
             b = pabd_dpose_mul(pose_of(j->pose, joint->body_b), joint->frame_b);
  vec gap = sub(b.p, a.p), za = pabd_dquat_rotate(a.q, (vec){0, 0, 1}), zb = pabd_dquat_rotate(b.q, (vec){0, 0, 1});
  pabd_dquat relative = pabd_dquat_mul(pabd_dquat_conj(a.q), b.q);
  double turned = 2 * atan2(sqrt(relative.x * relative.x + relative.y * relative.y + relative.z * relative.z),
                            fabs(relative.w)),
         error = norm(gap);
  *angle = 0;
  switch (joint->kind) {
    case PABD_SPHERICAL:
      break;
    case PABD_HINGE:
      *angle = atan2(norm(cross(za, zb)), dot(za, zb));
      break;
    case PABD_UNIVERSAL:
      *angle = fabs(
          asin(fmax(-1, fmin(1, dot(pabd_dquat_rotate(a.q, (vec){1, 0, 0}), pabd_dquat_rotate(b.q, (vec){0, 1, 0}))))));
      break;
    case PABD_FIXED:
      *angle = turned;
      break;
    case PABD_SLIDER:
      *angle = turned;
      error = norm(sub(gap, scale(dot(gap, za), za)));
      break;
    case PABD_DISTANCE: {
      double d = norm(gap);
      error = joint->has_limits ? fmax(fmax(d - joint->upper, joint->lower - d), 0) : fabs(d - joint->rest);
      break;
    }
    default:
      return 0; /* a spring has no error */
  }
  if (joint->has_limits && (joint->kind == PABD_HINGE || joint->kind == PABD_SLIDER)) {
    double x = coordinate(joint, a, b), over = fmax(fmax(x - joint->upper, joint->lower - x), 0);
    if (joint->kind == PABD_SLIDER) error = fmax(error, over);
    if (joint->kind == PABD_HINGE) *angle = fmax(*angle, over);
  }
  return error;
}

static void judge_joints(pabd_judge *j) {
  double worst = 0, worst_angle = 0;
  for (int32_t k = 0; k < j->scene->joint_count; ++k) {
    double angle, error = joint_error(j, &j->scene->joints[k], &angle);
    worst = fmax(worst, error), worst_angle = fmax(worst_angle, angle);
    j->joint_sum2 += error * error;
    j->joint_count += 1;
  }
  j->joint_max = fmax(j->joint_max, worst), j->joint_ang_max = fmax(j->joint_ang_max, worst_angle);
  if (is_settled(j))
    j->joint_settled_max = fmax(j->joint_settled_max, worst),
    j->joint_ang_settled_max = fmax(j->joint_ang_settled_max, worst_angle);
  j->bin_joint = fmax(j->bin_joint, worst);
}

/* ---------------------------------------------------------------- energy and momentum */

static double kinetic_of(const pabd_judge *j, int32_t i) {
  vec v = linear(j, i);
  return 0.5 * j->scene->bodies[i].mass * dot(v, v) + 0.5 * dot(angular(j, i), spin_of(j, i));
}
static double spring_energy(const pabd_judge *j) {
  double sum = 0;
  for (int32_t k = 0; k < j->scene->joint_count; ++k) {
    const pabd_joint *joint = &j->scene->joints[k];
    if (!(joint->stiffness > 0)) continue;
    pabd_dpose a = pabd_dpose_mul(pose_of(j->pose, joint->body_a), joint->frame_a),
               b = pabd_dpose_mul(pose_of(j->pose, joint->body_b), joint->frame_b);
    double x = joint->kind == PABD_SPRING ? norm(sub(b.p, a.p)) : coordinate(joint, a, b);
    sum += 0.5 * joint->stiffness * (x - joint->rest) * (x - joint->rest);
  }
  return sum;
}
/* Work of the applied loads over the last frame: constant force times displacement, torque times turn. */
static void add_load_work(pabd_judge *j) {
  double middle = j->time - 0.5 * j->scene->frame_time;
  for (int32_t k = 0; k < j->scene->load_count; ++k) {
    const pabd_load *load = &j->scene->loads[k];
    if (middle < load->start || middle >= load->end || !is_dynamic(j, load->body)) continue;
    int32_t i = load->body;
    j->load_work += dot(load->force, sub(position(j->pose, i), position(j->pose_before, i)));
    pabd_dquat d = pabd_dquat_mul(rotation(j->pose, i), pabd_dquat_conj(rotation(j->pose_before, i)));
    double sign = d.w < 0 ? -1 : 1, sine = sqrt(d.x * d.x + d.y * d.y + d.z * d.z), angle = 2 * atan2(sine, fabs(d.w));
    if (sine > 0)
      j->load_work += sign * angle / sine * (load->torque.x * d.x + load->torque.y * d.y + load->torque.z * d.z);
  }
}
static void judge_energy(pabd_judge *j, double driver_work) {
  double kinetic = 0, potential = 0;
  for (int32_t i = 0; i < j->n; ++i) {
    if (!is_dynamic(j, i)) continue;
    kinetic += kinetic_of(j, i);
    potential -= j->scene->bodies[i].mass * dot(j->scene->gravity, position(j->pose, i));
  }
  j->kinetic = kinetic;
  if (is_settled(j)) j->kinetic_settled_max = fmax(j->kinetic_settled_max, kinetic);
  if (j->frame > 0) add_load_work(j);
  double energy = kinetic + potential + spring_energy(j) - j->load_work - driver_work, reference = j->c->energy_ref;
  if (j->frame == 0) j->energy0 = j->energy_min = j->energy_before = energy;
  double relative = (energy - j->energy0) / reference;
  j->gain_max = fmax(j->gain_max, (energy - j->energy_min) / reference);
  j->energy_min = fmin(j->energy_min, energy);
  if (energy > j->energy_before) j->rise_sum += energy - j->energy_before;
  j->energy_before = energy;
  j->rel_end = relative;
  j->rel_max = fmax(j->rel_max, fabs(relative));
  j->rel_sum2 += relative * relative;
  j->rel_count += 1;
  if (is_settled(j)) {
    j->energy_min_settled = fmin(j->energy_min_settled, energy);
    j->gain_settled_max = fmax(j->gain_settled_max, (energy - j->energy_min_settled) / reference);
    j->rel_settled_max = fmax(j->rel_settled_max, fabs(relative));
  }
  j->bin_energy = relative; /* signed: the last of the bin */
}
static void judge_momentum(pabd_judge *j) {
  vec p = {0, 0, 0}, l = {0, 0, 0};
  for (int32_t i = 0; i < j->n; ++i) {
    if (!is_dynamic(j, i)) continue;
    vec pi = scale(j->scene->bodies[i].mass, linear(j, i)), li = add(cross(position(j->pose, i), pi), spin_of(j, i));
    p = add(p, pi), l = add(l, li);
    j->largest_linear = fmax(j->largest_linear, norm(pi)), j->largest_angular = fmax(j->largest_angular, norm(li));
  }
  if (j->frame == 0) j->linear0 = p, j->angular0 = l;
  j->lin_err = fmax(j->lin_err, norm(sub(p, j->linear0)));
  j->ang_err = fmax(j->ang_err, norm(sub(l, j->angular0)));
}

/* ---------------------------------------------------------------- penetration */

static int compare_pairs(const void *a, const void *b) {
  const int32_t *x = a, *y = b;
  return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : x[1] != y[1] ? (x[1] < y[1] ? -1 : 1) : 0;
}
static int ignored(const pabd_judge *j, int32_t a, int32_t b) {
  const pabd_body *x = &j->scene->bodies[a], *y = &j->scene->bodies[b];
  if (a == b || (x->motion != PABD_DYNAMIC && y->motion != PABD_DYNAMIC) || x->world != y->world ||
      (x->group > 0 && x->group == y->group))
    return 1;
  int32_t key[2] = {a < b ? a : b, a < b ? b : a};
  return j->filter_count > 0 &&
         bsearch(key, j->filter, (size_t)j->filter_count, sizeof *j->filter, compare_pairs) != NULL;
}
static const pabd_placed *sort_placed;
static int compare_order(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  double lx = sort_placed[x].lo[0], ly = sort_placed[y].lo[0];
  return lx != ly ? (lx < ly ? -1 : 1) : (x > y) - (x < y);
}
static void add_depth(pabd_judge *j, double gap) {
  if (gap < 1e-3) j->touching += 1;
  if (!(gap < 0)) return;
  if (j->depth_count == j->depth_capacity) {
    int32_t wanted = j->depth_capacity ? 2 * j->depth_capacity : 1024;
    double *more = realloc(j->depths, sizeof *more * (size_t)wanted);
    if (!more) return; /* the maximum below is still right for what was kept; memory out ends the run elsewhere */
    j->depths = more, j->depth_capacity = wanted;
  }
  j->depths[j->depth_count++] = -gap;
}
/* All overlapping pairs of bodies: sweep along x over the bounds of shapes, big shapes against all. A compound's pair
 * counts each overlapping pair of its shapes. */
static void judge_penetration(pabd_judge *j) {
  const pabd_scene *s = j->scene;
  j->depth_count = j->touching = 0;
  double extent_sum = 0;
  int32_t extent_count = 0;
  for (int32_t k = 0; k < s->shape_count; ++k) {
    j->placed[k] = pabd_place(s, &s->shapes[k], j->pose + 7 * s->shapes[k].body);
    if (s->shapes[k].kind != PABD_PLANE) extent_sum += j->placed[k].hi[0] - j->placed[k].lo[0], extent_count += 1;
  }
  double big = extent_count > 0 ? 20 * extent_sum / extent_count : 0; /* a ground box is swept apart */
  int32_t small = 0, end = s->shape_count;
  for (int32_t k = 0; k < s->shape_count; ++k) {
    if (j->placed[k].hi[0] - j->placed[k].lo[0] <= big)
      j->order[small++] = k;
    else
      j->order[--end] = k;
  }
  sort_placed = j->placed;
  qsort(j->order, (size_t)small, sizeof *j->order, compare_order);
  for (int32_t a = 0; a < s->shape_count; ++a) {
    const pabd_placed *pa = &j->placed[j->order[a]];
    int32_t first = a < small ? a + 1 : 0, last = a < small ? small : (a < s->shape_count ? a : 0);
    for (int32_t b = first; b < last; ++b) {
      const pabd_placed *pb = &j->placed[j->order[b]];
      if (a < small && pb->lo[0] > pa->hi[0] + 1e-3) break;
      if (pb->lo[1] > pa->hi[1] + 1e-3 || pa->lo[1] > pb->hi[1] + 1e-3 || pb->lo[2] > pa->hi[2] + 1e-3 ||
          pa->lo[2] > pb->hi[2] + 1e-3 || pa->lo[0] > pb->hi[0] + 1e-3 || pb->lo[0] > pa->hi[0] + 1e-3)
        continue;
      int32_t body_a = s->shapes[j->order[a]].body, body_b = s->shapes[j->order[b]].body;
      if (ignored(j, body_a, body_b)) continue;
      add_depth(j, pabd_placed_gap(pa, pb, NULL));
    }
  }
  double worst = 0;
  for (int32_t k = 0; k < j->depth_count; ++k) worst = fmax(worst, j->depths[k]);
  j->pen_max = fmax(j->pen_max, worst);
  if (is_settled(j)) j->pen_settled_max = fmax(j->pen_settled_max, worst);
  j->bin_pen = fmax(j->bin_pen, worst);
  j->pairs_sum += j->touching, j->pairs_frames += 1;
}

/* ---------------------------------------------------------------- kinds with a slot of their own */

static vec com_of(const pabd_judge *j, int32_t except) {
  vec sum = {0, 0, 0};
  double mass = 0;
  for (int32_t i = 0; i < j->n; ++i) {
    if (!is_dynamic(j, i) || i == except) continue;
    sum = add(sum, scale(j->scene->bodies[i].mass, position(j->pose, i)));
    mass += j->scene->bodies[i].mass;
  }
  return mass > 0 ? scale(1 / mass, sum) : sum;
}
static double x_momentum(const pabd_judge *j) {
  double sum = 0;
  for (int32_t i = 0; i < j->n; ++i)
    if (is_dynamic(j, i)) sum += j->scene->bodies[i].mass * linear(j, i).x;
  return sum;
}
static double tilt_of(const pabd_judge *j, int32_t i) {
  vec now = pabd_dquat_rotate(rotation(j->pose, i), (vec){0, 0, 1}),
      then = pabd_dquat_rotate(rotation(j->pose0, i), (vec){0, 0, 1});
  return atan2(norm(cross(now, then)), dot(now, then));
}
/* A stacked body: dynamic with a box shape (a thrown ball does not count as fallen). */
static int is_box(const pabd_judge *j, int32_t i) {
  for (int32_t k = 0; k < j->scene->shape_count; ++k)
    if (j->scene->shapes[k].body == i) return j->scene->shapes[k].kind == PABD_BOX;
  return 0;
}
static void survive_frame(pabd_judge *j, int32_t m) {
  const pabd_case_metric *metric = &j->c->metrics[m];
  if (j->slot[m].done) return;
  for (int32_t i = 0; i < j->n; ++i) {
    if (!is_dynamic(j, i) || !is_box(j, i)) continue;
    vec moved = sub(position(j->pose, i), position(j->pose0, i));
    double degrees = tilt_of(j, i) * 57.29577951308232;
    int fell = ((i == metric->body || metric->body < 0) && moved.z < -metric->number[0]) ||
               degrees > metric->number[1] || hypot(moved.x, moved.y) > metric->number[2] ||
               moved.z > metric->number[3];
    if (fell) {
      j->slot[m].value = j->time, j->slot[m].done = 1;
      return;
    }
  }
  j->slot[m].value = j->time;
}
/* First low point of z by the parabola through three frames. */
static void first_low_frame(pabd_judge *j, int32_t m) {
  double z = j->pose[7 * j->c->metrics[m].body + 2];
  if (j->frame >= 2 && !j->slot[m].done && j->slot[m].before < z && j->slot[m].before <= j->slot[m].before2) {
    double a = j->slot[m].before2, b = j->slot[m].before, c = z, curve = a - 2 * b + c,
           shift = curve > 0 ? 0.5 * (a - c) / curve : 0;
    j->slot[m].value = j->time + (shift - 1) * j->scene->frame_time;
    j->slot[m].extra = b - 0.25 * (a - c) * shift;
    j->slot[m].done = 1;
  }
  j->slot[m].before2 = j->slot[m].before, j->slot[m].before = z;
}
static void flips_frame(pabd_judge *j, int32_t m) {
  int32_t i = j->c->metrics[m].body;
  double value = dot(pabd_dquat_rotate(rotation(j->pose, i), j->c->metrics[m].axis), spin_of(j, i)),
         before = j->slot[m].before;
  if (j->frame > 0 && (value < 0) != (before < 0) && j->slot[m].count < 32)
    j->slot[m].times[j->slot[m].count++] = j->time - j->scene->frame_time * value / (value - before);
  j->slot[m].before = value;
}
static void creep_frame(pabd_judge *j, int32_t m) {
  const pabd_case_metric *metric = &j->c->metrics[m];
  if (j->time < metric->number[0] - 1e-9) return;
  if (!j->slot[m].done) {
    memcpy(j->pose_window, j->pose, sizeof *j->pose * 7 * (size_t)j->n);
    j->slot[m].done = 1;
  }
  for (int32_t i = 0; i < j->n; ++i) {
    if (!is_dynamic(j, i) || (metric->body >= 0 && metric->body != i)) continue;
    vec moved = sub(position(j->pose, i), position(j->pose_window, i));
    j->slot[m].value = fmax(j->slot[m].value, hypot(moved.x, moved.y));
  }
}

static pabd_status slots_frame(pabd_judge *j) {
  for (int32_t m = 0; m < j->c->metric_count; ++m) {
    const char *kind = j->c->metrics[m].kind;
    if (strcmp(kind, "survive") == 0) survive_frame(j, m);
    if (strcmp(kind, "first_low") == 0) first_low_frame(j, m);
    if (strcmp(kind, "flips") == 0) flips_frame(j, m);
    if (strcmp(kind, "creep") == 0) creep_frame(j, m);
    if (strcmp(kind, "com") == 0) j->com_move = fmax(j->com_move, norm(sub(com_of(j, -1), j->com0)));
    if (strcmp(kind, "pile") == 0 && fabs(j->time - j->c->metrics[m].number[0]) < 0.5 * j->scene->frame_time)
      j->impact_momentum = x_momentum(j);
    if (strcmp(kind, "gap_series") == 0) {
      for (int32_t k = 0; k < j->scene->joint_count && k < 24; ++k) {
        if (j->c->metrics[m].joint >= 0 && j->c->metrics[m].joint != k) continue;
        char key[64];
        double angle;
        snprintf(key, sizeof key, "joint_gap_%d", k);
        if (j->frame % j->bin == 0)
          PABD_TRY(pabd_series_append(&j->series, key, "m", joint_error(j, &j->scene->joints[k], &angle)));
      }
    }
  }
  return PABD_OK;
}

/* ---------------------------------------------------------------- interface */

pabd_judge *pabd_judge_create(const pabd_case *c) {
  pabd_judge *j = calloc(1, sizeof *j);
  if (!j) return NULL;
  const pabd_scene *s = &c->scene;
  j->c = c, j->scene = s, j->n = s->body_count;
  size_t n = (size_t)s->body_count + 1;
  j->pose = calloc(n, 7 * sizeof(double)), j->pose0 = calloc(n, 7 * sizeof(double)),
  j->pose_before = calloc(n, 7 * sizeof(double));
  j->pose_window = calloc(n, 7 * sizeof(double)), j->velocity = calloc(n, 6 * sizeof(double));
  j->placed = calloc((size_t)s->shape_count + 1, sizeof *j->placed),
  j->order = calloc((size_t)s->shape_count + 1, sizeof *j->order);
  pabd_metrics_init(&j->series);
  j->bin = c->frame_count > SERIES_POINTS ? (c->frame_count + SERIES_POINTS - 1) / SERIES_POINTS : 1;
  j->energy_min_settled = INFINITY;
  j->impact_momentum = NAN;
  if (!j->pose || !j->pose0 || !j->pose_before || !j->pose_window || !j->velocity || !j->placed || !j->order ||
      pabd_scene_filter_pairs(s, &j->filter, &j->filter_count) != PABD_OK) {
    pabd_judge_destroy(j);
    return NULL;
  }
  return j;
}

void pabd_judge_destroy(pabd_judge *j) {
  if (!j) return;
  free(j->pose), free(j->pose0), free(j->pose_before), free(j->pose_window), free(j->velocity);
  free(j->placed), free(j->order), free(j->filter), free(j->depths);
  pabd_metrics_free(&j->series);
  free(j);
}

/* Is every number finite and every body within 1e6 m of its start? */
static int is_sane(const pabd_judge *j, const double *pose, const double *velocity) {
  for (int32_t k = 0; k < 7 * j->n; ++k)
    if (!isfinite(pose[k])) return 0;
  for (int32_t k = 0; k < 6 * j->n; ++k)
    if (!isfinite(velocity[k])) return 0;
  for (int32_t i = 0; i < j->n && j->frame > 0; ++i)
    if (norm(sub(position(pose, i), position(j->pose0, i))) > 1e6) return 0;
  return 1;
}

static pabd_status append_series(pabd_judge *j) {
  if (j->frame % j->bin != 0) return PABD_OK;
  PABD_TRY(pabd_series_append(&j->series, "t", "s", j->time));
  PABD_TRY(pabd_series_append(&j->series, "energy_rel_err", "1", j->bin_energy));
  if (has_kind(j, "penetration")) PABD_TRY(pabd_series_append(&j->series, "penetration", "m", j->bin_pen));
  if (has_kind(j, "joints")) PABD_TRY(pabd_series_append(&j->series, "joint_pos_err", "m", j->bin_joint));
  j->bin_pen = j->bin_joint = 0;
  return PABD_OK;
}

pabd_status pabd_judge_frame(pabd_judge *j, int32_t frame, const double *pose, const double *velocity,
                             double driver_work) {
  j->frame = frame;
  j->time = frame * j->scene->frame_time;
  if (!is_sane(j, pose, velocity) || !isfinite(driver_work)) return PABD_DIVERGED;
  memcpy(j->pose_before, frame == 0 ? pose : j->pose, sizeof *pose * 7 * (size_t)j->n);
  memcpy(j->pose, pose, sizeof *pose * 7 * (size_t)j->n);
  memcpy(j->velocity, velocity, sizeof *velocity * 6 * (size_t)j->n);
  for (int32_t i = 0; i < j->n; ++i) {
    pabd_dquat q = rotation(pose, i);
    j->quat_err = fmax(j->quat_err, fabs(sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z) - 1));
  }
  if (frame == 0) {
    memcpy(j->pose0, pose, sizeof *pose * 7 * (size_t)j->n);
    j->com0 = com_of(j, -1);
    j->x_momentum0 = x_momentum(j);
  }
  judge_energy(j, driver_work);
  judge_momentum(j);
  if (j->scene->joint_count > 0) judge_joints(j);
  int last = frame >= j->c->frame_count;
  if (has_kind(j, "penetration") && (j->n <= BIG_SCENE || frame % BIG_STRIDE == 0 || last)) judge_penetration(j);
  PABD_TRY(slots_frame(j));
  return append_series(j);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static pabd_status finish_penetration(pabd_judge *j, pabd_metrics *out) {
  /* statistics over the pairs deeper than 0.1 mm of the last judged frame */
  qsort(j->depths, (size_t)j->depth_count, sizeof *j->depths, compare_doubles);
  int32_t first = 0, over = 0;
  while (first < j->depth_count && j->depths[first] <= 1e-4) ++first;
  int32_t count = j->depth_count - first;
  double sum = 0;
  for (int32_t k = first; k < j->depth_count; ++k) sum += j->depths[k], over += j->depths[k] > 0.01;
  double p99 = count > 0 ? j->depths[first + (int32_t)ceil(0.99 * count) - 1] : 0;
  PABD_TRY(pabd_metrics_set(out, "penetration_max", j->pen_max, "m", "lower"));
  if (j->c->settle_time >= 0)
    PABD_TRY(pabd_metrics_set(out, "penetration_settled_max", j->pen_settled_max, "m", "lower"));
  PABD_TRY(pabd_metrics_set(out, "penetration_mean_end", count > 0 ? sum / count : 0, "m", "lower"));
  PABD_TRY(pabd_metrics_set(out, "penetration_p99_end", p99, "m", "lower"));
  PABD_TRY(pabd_metrics_set(out, "pairs_over_10mm_end", over, "1", "lower"));
  return pabd_metrics_set(out, "contact_pairs_mean", j->pairs_frames > 0 ? j->pairs_sum / (double)j->pairs_frames : 0,
                          "1", "info");
}

static pabd_status finish_energy(pabd_judge *j, pabd_metrics *out) {
  PABD_TRY(pabd_metrics_set(out, "energy_rel_err_end", fabs(j->rel_end), "1", "lower"));
  PABD_TRY(pabd_metrics_set(out, "energy_rel_end", j->rel_end, "1", "info"));
  PABD_TRY(pabd_metrics_set(out, "energy_rel_err_max", j->rel_max, "1", "lower"));
  PABD_TRY(pabd_metrics_set(out, "energy_rel_err_rms", j->rel_count > 0 ? sqrt(j->rel_sum2 / (double)j->rel_count) : 0,
                            "1", "lower"));
  PABD_TRY(pabd_metrics_set(out, "energy_gain_max", j->gain_max, "1", "lower"));
  PABD_TRY(pabd_metrics_set(out, "energy_rise_sum", j->rise_sum / j->c->energy_ref, "1", "lower"));
  if (j->c->settle_time < 0) return PABD_OK;
  PABD_TRY(pabd_metrics_set(out, "energy_gain_settled_max", j->gain_settled_max, "1", "lower"));
  return pabd_metrics_set(out, "energy_rel_err_settled_max", j->rel_settled_max, "1", "lower");
}

static pabd_status finish_joints(pabd_judge *j, pabd_metrics *out) {
  PABD_TRY(pabd_metrics_set(out, "joint_pos_err_max", j->joint_max, "m", "lower"));
  PABD_TRY(pabd_metrics_set(out, "joint_pos_err_rms",
                            j->joint_count > 0 ? sqrt(j->joint_sum2 / (double)j->joint_count) : 0, "m", "lower"));
  PABD_TRY(pabd_metrics_set(out, "joint_ang_err_max", j->joint_ang_max, "rad", "lower"));
  if (j->c->settle_time < 0) return PABD_OK;
  PABD_TRY(pabd_metrics_set(out, "joint_pos_err_settled_max", j->joint_settled_max, "m", "lower"));
  return pabd_metrics_set(out, "joint_ang_err_settled_max", j->joint_ang_settled_max, "rad", "lower");
}

static pabd_status finish_pile(pabd_judge *j, const pabd_case_metric *m, pabd_metrics *out) {
  double spread = 0;
  int32_t count = 0, lost = 0;
  for (int32_t i = 0; i < j->n; ++i) {
    if (!is_dynamic(j, i)) continue;
    vec p = position(j->pose, i);
    if (p.z < -0.5 || norm(p) > 1000) lost += 1;
    if (i == m->body) continue;
    spread += p.x * p.x + p.y * p.y, count += 1;
  }
  PABD_TRY(pabd_metrics_set(out, "com_height_end", com_of(j, m->body).z, "m", "info"));
  PABD_TRY(pabd_metrics_set(out, "spread_end", count > 0 ? sqrt(spread / count) : 0, "m", "info"));
  PABD_TRY(pabd_metrics_set(out, "bodies_lost", lost, "1", "lower"));
  if (m->body < 0 || j->x_momentum0 == 0 || isnan(j->impact_momentum)) return PABD_OK;
  return pabd_metrics_set(out, "impact_momentum_kept", j->impact_momentum / j->x_momentum0, "1", "info");
}

/* Weight below joint k of a hanging chain: bodies of its own and of all later joints. */
static double tension_of(const pabd_judge *j, int32_t k) {
  double mass = 0;
  for (int32_t i = k; i < j->scene->joint_count; ++i) mass += j->scene->bodies[j->scene->joints[i].body_b].mass;
  return mass * norm(j->scene->gravity);
}

static pabd_status finish_kind(pabd_judge *j, int32_t m, pabd_metrics *out) {
  const pabd_case_metric *metric = &j->c->metrics[m];
  const char *kind = metric->kind;
  int32_t i = metric->body;
  vec moved = i >= 0 ? sub(position(j->pose, i), position(j->pose0, i)) : (vec){0, 0, 0};
  if (strcmp(kind, "energy") == 0) return finish_energy(j, out);
  if (strcmp(kind, "penetration") == 0) return finish_penetration(j, out);
  if (strcmp(kind, "joints") == 0) return finish_joints(j, out);
  if (strcmp(kind, "pile") == 0) return finish_pile(j, metric, out);
  if (strcmp(kind, "momentum") == 0) {
    double reference = j->c->momentum_ref > 0 ? j->c->momentum_ref : j->largest_linear;
    PABD_TRY(pabd_metrics_set(out, "lin_mom_err", reference > 0 ? j->lin_err / reference : j->lin_err, "1", "lower"));
    return pabd_metrics_set(out, "ang_mom_err", j->largest_angular > 0 ? j->ang_err / j->largest_angular : j->ang_err,
                            "1", "lower");
  }
  if (strcmp(kind, "survive") == 0) return pabd_metrics_set(out, "survive_s", j->slot[m].value, "s", "higher");
  if (strcmp(kind, "first_low") == 0) {
    PABD_TRY(pabd_metrics_set(out, "first_low_s", j->slot[m].done ? j->slot[m].value : NAN, "s", "equal"));
    return pabd_metrics_set(out, "first_low_z", j->slot[m].done ? j->slot[m].extra : NAN, "m", "info");
  }
  if (strcmp(kind, "stop_distance") == 0) return pabd_metrics_set(out, "stop_distance", norm(moved), "m", "equal");
  if (strcmp(kind, "creep") == 0) return pabd_metrics_set(out, "creep", j->slot[m].value, "m", "lower");
  if (strcmp(kind, "com") == 0) return pabd_metrics_set(out, "com_move_max", j->com_move, "m", "lower");
  if (strcmp(kind, "settle_kinetic") == 0) {
    PABD_TRY(pabd_metrics_set(out, "kinetic_end", j->kinetic, "J", "lower"));
    return pabd_metrics_set(out, "kinetic_settled_max", j->kinetic_settled_max, "J", "lower");
  }
  if (strcmp(kind, "free_fall") == 0) {
    const pabd_body *b = &j->scene->bodies[i];
    vec expected = add(scale(j->time, b->linear), scale(0.5 * j->time * j->time, j->scene->gravity));
    return pabd_metrics_set(out, "free_fall_err_end", norm(sub(moved, expected)), "m", "lower");
  }
  if (strcmp(kind, "contraction") == 0) {
    PABD_TRY(pabd_metrics_set(out, "gap_end", position(j->pose, i).z, "m", "info"));
    return pabd_metrics_set(out, "gap_ratio_end", position(j->pose, i).z / position(j->pose0, i).z, "1", "equal");
  }
  if (strcmp(kind, "flips") == 0) {
    double first = j->slot[m].count > 0 ? j->slot[m].times[0] : NAN, worst = 0;
    int32_t expected = 0;
    for (double t = metric->reference; metric->number[0] > 0 && t < j->time; t += metric->number[0], ++expected) {
      if (expected >= j->slot[m].count) continue;
      worst = fmax(worst, fabs(j->slot[m].times[expected] - t));
    }
    if (metric->number[0] > 0 && j->slot[m].count < expected) worst = NAN; /* a flip is missing */
    PABD_TRY(pabd_metrics_set(out, "flips", j->slot[m].count, "1", "equal"));
    PABD_TRY(pabd_metrics_set(out, "first_flip_s", first, "s", "equal"));
    return pabd_metrics_set(out, "flip_s_err_max", worst, "s", "lower");
  }
  if (strcmp(kind, "hanging_gap") == 0) {
    double worst = 0, angle;
    for (int32_t k = 0; k < j->scene->joint_count; ++k)
      worst =
          fmax(worst, fabs(joint_error(j, &j->scene->joints[k], &angle) * metric->number[0] / tension_of(j, k) - 1));
    return pabd_metrics_set(out, "hanging_gap_rel_err", worst, "1", "lower");
  }
  if (strcmp(kind, "position") == 0) {
    double along = dot(metric->axis, moved);
    PABD_TRY(pabd_metrics_set(out, "position_end", along, "m", "info"));
    return isnan(metric->reference)
               ? PABD_OK
               : pabd_metrics_set(out, "position_err_end", fabs(along - metric->reference), "m", "lower");
  }
  return PABD_OK; /* gap_series: series only */
}

pabd_status pabd_judge_finish(pabd_judge *j, pabd_metrics *out) {
  for (int32_t m = 0; m < j->c->metric_count; ++m) PABD_TRY(finish_kind(j, m, out));
  PABD_TRY(pabd_metrics_set(out, "quat_norm_err_max", j->quat_err, "1", "lower"));
  PABD_TRY(pabd_metrics_set(out, "simulated_s", j->time, "s", "info"));
  for (int32_t k = 0; k < j->series.series_count; ++k) {
    const pabd_series *series = &j->series.series[k];
    for (int32_t t = 0; t < series->count; ++t)
      PABD_TRY(pabd_series_append(out, series->key, series->unit, series->values[t]));
  }
  return PABD_OK;
}

double pabd_judge_gap(const pabd_scene *scene, const pabd_shape *shape_a, const double *pose_a,
                      const pabd_shape *shape_b, const double *pose_b, pabd_dvec3 *normal) {
  pabd_placed a = pabd_place(scene, shape_a, pose_a), b = pabd_place(scene, shape_b, pose_b);
  return pabd_placed_gap(&a, &b, normal);
}

uint64_t pabd_state_hash(uint64_t seed, const double *pose, const double *velocity, int32_t body_count) {
  uint64_t hash = seed ? seed : 14695981039346656037ull;
  const unsigned char *bytes[2] = {(const unsigned char *)pose, (const unsigned char *)velocity};
  const size_t sizes[2] = {sizeof(double) * 7 * (size_t)body_count, sizeof(double) * 6 * (size_t)body_count};
  for (int part = 0; part < 2; ++part)
    for (size_t k = 0; k < sizes[part]; ++k) hash = (hash ^ bytes[part][k]) * 1099511628211ull;
  return hash;
}
