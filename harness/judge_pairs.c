/* Broad phase of the judge: a uniform hash grid for the many, a plain loop for the few large ones.
 *
 * Cells are as wide as the largest bounding ball of the many, so that shapes that touch lie in neighboring cells; each
 * pair of cells is visited from one side. Shapes that are larger (grounds, planes, the ball of a pile) are tested
 * against everything. Independent worlds of a batch may lie in the same place, so the world is part of a cell's name.
 * Invariant: every pair of shapes with a gap below PABD_TOUCH_GAP that may collide is counted exactly once. */
#include "judge_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geometry.h"
#include "vec3.h"

typedef struct cell {
  int64_t x, y, z;
  int32_t world;
} cell;

struct pabd_pair_finder {
  const pabd_scene *scene;
  int32_t shape_count;
  pabd_solid *solids;     /* [shape_count] placed by the sweep; static ones at creation */
  pabd_dvec3 *low, *high; /* [shape_count] bounds, m */
  pabd_dvec3 *centers;    /* [shape_count] middle of the bounding ball in the shape's frame, m */
  int32_t *large;         /* [large_count] shapes outside the grid */
  int32_t *small;         /* [small_count] shapes in the grid */
  int32_t large_count, small_count;
  double cell_size; /* m */
  cell *cells;      /* [small_count] */
  uint32_t bucket_mask;
  int32_t *bucket_first; /* [bucket_mask + 2] into `bucketed` */
  int32_t *bucketed;     /* [small_count] indices into `small`, by bucket */
  int32_t *filter_first; /* [body_count + 1] into `filter_other` */
  int32_t *filter_other; /* the higher body of each filtered pair, by the lower, ascending */
  double *depths;        /* [depth_capacity] m */
  int32_t depth_count, depth_capacity;
  pabd_pair_summary summary;
  pabd_status status;
};

static int is_filtered(const pabd_pair_finder *f, int32_t body_a, int32_t body_b) {
  const pabd_body *a = &f->scene->bodies[body_a], *b = &f->scene->bodies[body_b];
  if (body_a == body_b || a->world != b->world) return 1;
  if (a->motion != PABD_DYNAMIC && b->motion != PABD_DYNAMIC) return 1;
  if (a->group > 0 && a->group == b->group) return 1;
  int32_t lower = body_a < body_b ? body_a : body_b, higher = body_a < body_b ? body_b : body_a;
  int32_t from = f->filter_first[lower], to = f->filter_first[lower + 1];
  while (from < to) {
    int32_t middle = from + (to - from) / 2;
    if (f->filter_other[middle] == higher) return 1;
    if (f->filter_other[middle] < higher) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return 0;
}

static void visit(pabd_pair_finder *f, int32_t i, int32_t j) {
  const pabd_dvec3 *low = f->low, *high = f->high;
  if (low[i].x > high[j].x + PABD_TOUCH_GAP || low[j].x > high[i].x + PABD_TOUCH_GAP ||
      low[i].y > high[j].y + PABD_TOUCH_GAP || low[j].y > high[i].y + PABD_TOUCH_GAP ||
      low[i].z > high[j].z + PABD_TOUCH_GAP || low[j].z > high[i].z + PABD_TOUCH_GAP)
    return;
  if (is_filtered(f, f->scene->shapes[i].body, f->scene->shapes[j].body)) return;
  double gap = pabd_solid_gap_within(&f->solids[i], &f->solids[j], PABD_TOUCH_GAP);
  if (!(gap <= PABD_TOUCH_GAP)) return;
  ++f->summary.touching;
  double depth = -gap;
  if (depth > f->summary.deepest) f->summary.deepest = depth;
  if (depth <= PABD_DEPTH_FLOOR) return;
  if (f->depth_count == f->depth_capacity) {
    int32_t wanted = f->depth_capacity ? 2 * f->depth_capacity : 256;
    double *moved = realloc(f->depths, (size_t)wanted * sizeof *moved);
    if (!moved) {
      f->status = PABD_ERR_MEMORY;
      return;
    }
    f->depths = moved;
    f->depth_capacity = wanted;
  }
  f->depths[f->depth_count++] = depth;
}

static uint32_t bucket_of(const pabd_pair_finder *f, cell c) {
  uint64_t h = (uint64_t)c.x * 0x9e3779b97f4a7c15ull ^ (uint64_t)c.y * 0xc2b2ae3d27d4eb4full ^
               (uint64_t)c.z * 0x165667b19e3779f9ull ^ (uint64_t)(uint32_t)c.world * 0xd6e8feb86659fd93ull;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ull;
  return (uint32_t)(h >> 32) & f->bucket_mask;
}

/* Fills the buckets by counting. */
static void fill_grid(pabd_pair_finder *f) {
  int32_t *first = f->bucket_first;
  memset(first, 0, ((size_t)f->bucket_mask + 2) * sizeof *first);
  for (int32_t k = 0; k < f->small_count; ++k) {
    int32_t i = f->small[k];
    const pabd_solid *s = &f->solids[i];
    pabd_dvec3 c = f->centers[i];
    pabd_dvec3 p = v3_madd(v3_madd(v3_madd(s->p, c.x, s->axis[0]), c.y, s->axis[1]), c.z, s->axis[2]);
    f->cells[k] = (cell){(int64_t)floor(p.x / f->cell_size), (int64_t)floor(p.y / f->cell_size),
                         (int64_t)floor(p.z / f->cell_size), f->scene->bodies[f->scene->shapes[i].body].world};
    ++first[bucket_of(f, f->cells[k]) + 1];
  }
  for (uint32_t b = 0; b <= f->bucket_mask; ++b) first[b + 1] += first[b];
  /* From the back, so that the counts become starts and each bucket keeps the order of shapes. */
  for (int32_t k = f->small_count - 1; k >= 0; --k) f->bucketed[--first[bucket_of(f, f->cells[k]) + 1]] = k;
  /* first[b + 1] now is the start of bucket b: move down by one. */
  memmove(first, first + 1, ((size_t)f->bucket_mask + 1) * sizeof *first);
  first[f->bucket_mask + 1] = f->small_count;
}

static void sweep_grid(pabd_pair_finder *f) {
  /* The own cell, then the 13 neighbors on one side. */
  static const int8_t neighbors[14][3] = {{0, 0, 0},   {1, 0, 0},  {-1, 1, 0}, {0, 1, 0},  {1, 1, 0},
                                          {-1, -1, 1}, {0, -1, 1}, {1, -1, 1}, {-1, 0, 1}, {0, 0, 1},
                                          {1, 0, 1},   {-1, 1, 1}, {0, 1, 1},  {1, 1, 1}};
  for (int32_t k = 0; k < f->small_count; ++k) {
    for (int d = 0; d < 14; ++d) {
      cell c = f->cells[k];
      c.x += neighbors[d][0], c.y += neighbors[d][1], c.z += neighbors[d][2];
      uint32_t bucket = bucket_of(f, c);
      for (int32_t e = f->bucket_first[bucket]; e < f->bucket_first[bucket + 1]; ++e) {
        int32_t other = f->bucketed[e];
        const cell *o = &f->cells[other];
        if (o->x != c.x || o->y != c.y || o->z != c.z || o->world != c.world) continue;
        if (d == 0 && other <= k) continue;
        visit(f, f->small[k], f->small[other]);
      }
    }
  }
}

static void place(pabd_pair_finder *f, int32_t shape, const double *pose) {
  f->solids[shape] = pabd_solid_place(f->scene, &f->scene->shapes[shape], pose);
  pabd_solid_bounds(&f->solids[shape], &f->low[shape], &f->high[shape]);
}

pabd_status pabd_pair_finder_sweep(pabd_pair_finder *f, const double *pose, pabd_pair_summary *out) {
  const pabd_scene *scene = f->scene;
  f->summary = (pabd_pair_summary){0, 0, 0, NULL};
  f->depth_count = 0;
  f->status = PABD_OK;
  for (int32_t i = 0; i < f->shape_count; ++i) {
    int32_t body = scene->shapes[i].body;
    if (scene->bodies[body].motion != PABD_STATIC) place(f, i, pose + 7 * (size_t)body);
  }
  for (int32_t k = 0; k < f->large_count; ++k) {
    for (int32_t m = k + 1; m < f->large_count; ++m) visit(f, f->large[k], f->large[m]);
    for (int32_t m = 0; m < f->small_count; ++m) visit(f, f->large[k], f->small[m]);
  }
  if (f->small_count > 0) {
    fill_grid(f);
    sweep_grid(f);
  }
  f->summary.depth_count = f->depth_count;
  f->summary.depths = f->depths;
  *out = f->summary;
  return f->status;
}

int pabd_pair_finder_can_touch(const pabd_pair_finder *f, int only_support) {
  /* The first pair answers for most scenes; only where nearly all is filtered the loop runs on. */
  const pabd_scene *scene = f->scene;
  int64_t visits_left = 20000000;
  for (int32_t i = 0; i < f->shape_count; ++i) {
    int32_t a = scene->shapes[i].body;
    int is_dynamic = scene->bodies[a].motion == PABD_DYNAMIC;
    if (only_support && is_dynamic) continue;
    for (int32_t j = is_dynamic ? i + 1 : 0; j < f->shape_count; ++j) {
      if (!is_filtered(f, a, scene->shapes[j].body) || --visits_left == 0) return 1;
    }
  }
  return 0;
}

static int compare_descending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Chooses the cell size so that a few per cent of the shapes at most are larger than a cell. */
static pabd_status split_by_size(pabd_pair_finder *f) {
  size_t n = (size_t)f->shape_count;
  double *bound = malloc((n + 1) * sizeof *bound), *sorted = malloc((n + 1) * sizeof *sorted);
  if (!bound || !sorted) {
    free(bound);
    free(sorted);
    return PABD_ERR_MEMORY;
  }
  for (size_t i = 0; i < n; ++i) {
    bound[i] = pabd_shape_bound(f->scene, &f->scene->shapes[i], &f->centers[i]);
    sorted[i] = bound[i];
  }
  qsort(sorted, n, sizeof *sorted, compare_descending);
  size_t most = 16 + n / 64;
  double limit = most < n ? sorted[most] : 0;
  if (!isfinite(limit)) limit = 0; /* nothing but planes */
  f->cell_size = 2.000001 * limit + PABD_TOUCH_GAP;
  for (size_t i = 0; i < n; ++i) {
    if (bound[i] > limit) {
      f->large[f->large_count++] = (int32_t)i;
    } else {
      f->small[f->small_count++] = (int32_t)i;
    }
  }
  free(bound);
  free(sorted);
  return PABD_OK;
}

static pabd_status list_filters(pabd_pair_finder *f) {
  int32_t(*pairs)[2], count;
  PABD_TRY(pabd_scene_filter_pairs(f->scene, &pairs, &count));
  f->filter_first = calloc((size_t)f->scene->body_count + 2, sizeof *f->filter_first);
  f->filter_other = malloc(((size_t)count + 1) * sizeof *f->filter_other);
  pabd_status status = f->filter_first && f->filter_other ? PABD_OK : PABD_ERR_MEMORY;
  if (status == PABD_OK) {
    for (int32_t k = 0; k < count; ++k) {
      ++f->filter_first[pairs[k][0] + 1];
      f->filter_other[k] = pairs[k][1];
    }
    for (int32_t i = 0; i < f->scene->body_count; ++i) f->filter_first[i + 1] += f->filter_first[i];
  }
  free(pairs);
  return status;
}

pabd_pair_finder *pabd_pair_finder_create(const pabd_scene *scene) {
  pabd_pair_finder *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  size_t n = (size_t)scene->shape_count + 1;
  f->scene = scene;
  f->shape_count = scene->shape_count;
  uint32_t buckets = 16;
  while (buckets < 2 * n && buckets < 1u << 30) buckets *= 2;
  f->bucket_mask = buckets - 1;
  f->solids = malloc(n * sizeof *f->solids);
  f->low = malloc(n * sizeof *f->low);
  f->high = malloc(n * sizeof *f->high);
  f->centers = malloc(n * sizeof *f->centers);
  f->large = malloc(n * sizeof *f->large);
  f->small = malloc(n * sizeof *f->small);
  f->cells = malloc(n * sizeof *f->cells);
  f->bucketed = malloc(n * sizeof *f->bucketed);
  f->bucket_first = malloc(((size_t)buckets + 1) * sizeof *f->bucket_first);
  if (!f->solids || !f->low || !f->high || !f->centers || !f->large || !f->small || !f->cells || !f->bucketed ||
      !f->bucket_first || split_by_size(f) != PABD_OK || list_filters(f) != PABD_OK) {
    pabd_pair_finder_destroy(f);
    return NULL;
  }
  for (int32_t i = 0; i < scene->shape_count; ++i) {
    pabd_dpose at = scene->bodies[scene->shapes[i].body].pose;
    const double pose[7] = {at.p.x, at.p.y, at.p.z, at.q.w, at.q.x, at.q.y, at.q.z};
    place(f, i, pose);
  }
  return f;
}

void pabd_pair_finder_destroy(pabd_pair_finder *f) {
  if (!f) return;
  free(f->solids);
  free(f->low);
  free(f->high);
  free(f->centers);
  free(f->large);
  free(f->small);
  free(f->cells);
  free(f->bucketed);
  free(f->bucket_first);
  free(f->filter_first);
  free(f->filter_other);
  free(f->depths);
  free(f);
}
