/* Reference energies: the largest fall energy that a scene can turn into motion, by rule.
 *
 * The path of a body is the shortest way from a joint held by the world, anchor to anchor through the bodies, to its
 * centre of mass, all distances taken at the start (a distance joint adds its rest length). For the chain this is i +
 * 1/2 for link i and n + 1/2 for the end cube, whatever way the chain hangs, so one chain has one reference. A body
 * that no joint ties to the world counts with its height |z| instead. Invariant: depends on the scene alone. */
#include "energy_ref.h"

#include <math.h>
#include <stdlib.h>

static double distance(pabd_dvec3 a, pabd_dvec3 b) {
  return sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z));
}

/* Where, and how far along its best path, a body is entered. */
typedef struct entry {
  double path;        /* m to the anchor; INFINITY: not reached */
  pabd_dvec3 anchor;  /* world frame, at the start */
  double root_height; /* z of the world anchor that this path begins at */
  int queued;
} entry;

/* Breadth-first with corrections: a body whose path got shorter is queued (again). A chain needs one visit a body. */
typedef struct search {
  const pabd_scene *scene;
  entry *entries; /* [body_count] */
  int32_t *queue; /* [body_count], a ring */
  int32_t head, waiting;
  int32_t *first;    /* [body_count + 1]: joints of body i are incident[first[i]] .. incident[first[i + 1] - 1] */
  int32_t *incident; /* [2 joint_count] */
} search;

static void list_incident(search *s) {
  const pabd_scene *scene = s->scene;
  for (int32_t i = 0; i <= scene->body_count; ++i) s->first[i] = 0;
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    if (scene->joints[j].body_a != PABD_WORLD) ++s->first[scene->joints[j].body_a];
    ++s->first[scene->joints[j].body_b];
  }
  // Ends of the ranges; filling backwards then moves each entry to the start of its range.
  for (int32_t i = 1; i <= scene->body_count; ++i) s->first[i] += s->first[i - 1];
  for (int32_t j = scene->joint_count - 1; j >= 0; --j) {
    if (scene->joints[j].body_a != PABD_WORLD) s->incident[--s->first[scene->joints[j].body_a]] = j;
    s->incident[--s->first[scene->joints[j].body_b]] = j;
  }
}

/* Offers the way over `joint` to its other side. */
static void relax(search *s, const pabd_joint *joint, int32_t from) {
  const pabd_scene *scene = s->scene;
  int32_t to = joint->body_a == from ? joint->body_b : joint->body_a;
  if (to == PABD_WORLD) return;
  pabd_dvec3 at_a = joint->frame_a.p, at_b = pabd_dpose_apply(scene->bodies[joint->body_b].pose, joint->frame_b.p);
  if (joint->body_a != PABD_WORLD) at_a = pabd_dpose_apply(scene->bodies[joint->body_a].pose, at_a);
  pabd_dvec3 leave = joint->body_a == from ? at_a : at_b, arrive = joint->body_a == from ? at_b : at_a;
  entry next = {0.0, arrive, at_a.z, 1};
  if (from != PABD_WORLD) {
    next.path = s->entries[from].path + distance(s->entries[from].anchor, leave);
    next.root_height = s->entries[from].root_height;
  }
  if (joint->kind == PABD_DISTANCE) next.path += joint->has_limits ? joint->upper : joint->rest;
  if (!(next.path < s->entries[to].path)) return;
  if (!s->entries[to].queued) {
    s->queue[(s->head + s->waiting) % scene->body_count] = to;
    ++s->waiting;
  }
  s->entries[to] = next;
}

static void find_paths(search *s) {
  const pabd_scene *scene = s->scene;
  for (int32_t i = 0; i < scene->body_count; ++i) s->entries[i] = (entry){INFINITY, {0, 0, 0}, 0.0, 0};
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    if (scene->joints[j].body_a == PABD_WORLD) relax(s, &scene->joints[j], PABD_WORLD);
  }
  // A knotted net could be corrected for ever; the reference is only a scale, so its paths may stay a little long.
  int64_t visits_left = 50 * (int64_t)scene->body_count;
  while (s->waiting > 0 && visits_left-- > 0) {
    int32_t from = s->queue[s->head];
    s->head = (s->head + 1) % scene->body_count;
    --s->waiting;
    s->entries[from].queued = 0;
    for (int32_t k = s->first[from]; k < s->first[from + 1]; ++k) relax(s, &scene->joints[s->incident[k]], from);
  }
}

static double kinetic_energy(const pabd_body *b) {
  pabd_dvec3 w = pabd_dquat_rotate(pabd_dquat_conj(b->pose.q), b->angular), v = b->linear;
  return 0.5 * b->mass * (v.x * v.x + v.y * v.y + v.z * v.z) +
         0.5 * (b->inertia.x * w.x * w.x + b->inertia.y * w.y * w.y + b->inertia.z * w.z * w.z);
}

pabd_status energy_reference(const pabd_scene *scene, energy_rule rule, double *out) {
  int32_t n = scene->body_count;
  double g = sqrt(scene->gravity.x * scene->gravity.x + scene->gravity.y * scene->gravity.y +
                  scene->gravity.z * scene->gravity.z);
  search s = {scene, NULL, NULL, 0, 0, NULL, NULL};
  s.entries = malloc((size_t)n * sizeof *s.entries);
  s.queue = malloc((size_t)n * sizeof *s.queue);
  s.first = malloc(((size_t)n + 1) * sizeof *s.first);
  s.incident = malloc((2 * (size_t)scene->joint_count + 1) * sizeof *s.incident);
  pabd_status status = s.entries && s.queue && s.first && s.incident ? PABD_OK : PABD_ERR_MEMORY;
  if (status == PABD_OK) {
    list_incident(&s);
    find_paths(&s);
    *out = 0.0;
    for (int32_t i = 0; i < n; ++i) {
      const pabd_body *b = &scene->bodies[i];
      if (b->motion != PABD_DYNAMIC) continue;
      double drop = 0.0;
      if (rule == ENERGY_HEIGHT) {
        drop = b->pose.p.z;
      } else if (rule == ENERGY_HANGING || rule == ENERGY_REACH) {
        double path = s.entries[i].path + distance(s.entries[i].anchor, b->pose.p);
        drop = isfinite(path) ? path : fabs(b->pose.p.z);
        if (rule == ENERGY_REACH && isfinite(path)) drop += b->pose.p.z - s.entries[i].root_height;
      }
      *out += b->mass * g * drop + kinetic_energy(b);
    }
  }
  free(s.entries);
  free(s.queue);
  free(s.first);
  free(s.incident);
  return status;
}
