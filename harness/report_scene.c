/* Pictures of scenes as SVG. See report_scene.h.
 *
 * Shapes become convex pieces: the faces of a box that look at the viewer, the disc of a sphere, the outline of a
 * capsule, cylinder or hull. Pieces are drawn from back to front. Small scenes are ordered by pairs (two convex bodies
 * that do not overlap are separated by a face of one of them, which says which one is in front); large ones by depth,
 * and there an item buffer finds the pieces that can be seen at all, so that the picture of a pile holds its outer
 * bodies only. */
#include "report_scene.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICTURE_WIDTH 1000.0  /* units of the viewBox */
#define PAIR_ORDER_LIMIT 300  /* shapes ordered by pairs: O(n^2) */
#define OUTLINE_MAX 32        /* corners of a drawn piece */
#define BUFFER_WIDTH 480      /* item buffer, cells */
#define VISIBLE_TEST_FROM 150 /* shapes from which on hidden pieces are dropped */

/* The viewer looks from 25 degrees to the right of -y and 22 degrees above: x runs right, y into the picture, z up. */
#define AZIMUTH (25.0 * 3.14159265358979323846 / 180.0)
#define ELEVATION (22.0 * 3.14159265358979323846 / 180.0)

typedef struct screen_axes {
  pabd_dvec3 right, up, eye;
} screen_axes;

typedef struct piece {
  int shape;        /* index of the drawn shape */
  int corner_count; /* 0: a disc */
  double corner[OUTLINE_MAX][2];
  double depth[OUTLINE_MAX]; /* towards the viewer */
  double center[2], radius;  /* disc */
  double shade;              /* 0 dark .. 1 light */
  int visible;
} piece;

typedef struct drawn_shape {
  const pabd_shape *shape;
  pabd_dpose pose;        /* shape frame in the world */
  pabd_dvec3 axis[3];     /* of its box */
  double half[3];         /* of its box */
  double low[2], high[2]; /* on the screen */
  double depth;
  int first_piece, piece_count;
} drawn_shape;

static double dot(pabd_dvec3 a, pabd_dvec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
static pabd_dvec3 sub(pabd_dvec3 a, pabd_dvec3 b) {
  return (pabd_dvec3){a.x - b.x, a.y - b.y, a.z - b.z};
}
static pabd_dvec3 add_scaled(pabd_dvec3 a, double s, pabd_dvec3 b) {
  return (pabd_dvec3){a.x + s * b.x, a.y + s * b.y, a.z + s * b.z};
}

static screen_axes axes_of_view(void) {
  double ca = cos(AZIMUTH), sa = sin(AZIMUTH), ce = cos(ELEVATION), se = sin(ELEVATION);
  return (screen_axes){.right = {ca, sa, 0}, .up = {-se * sa, se * ca, ce}, .eye = {ce * sa, -ce * ca, se}};
}

static pabd_dpose body_pose(const pabd_scene *scene, const double *pose, int32_t body) {
  if (!pose) return scene->bodies[body].pose;
  const double *p = pose + 7 * (size_t)body;
  return (pabd_dpose){.p = {p[0], p[1], p[2]}, .q = {p[3], p[4], p[5], p[6]}};
}

static int finite_pose(const pabd_dpose *pose) {
  return isfinite(pose->p.x) && isfinite(pose->p.y) && isfinite(pose->p.z) && isfinite(pose->q.w) &&
         isfinite(pose->q.x) && isfinite(pose->q.y) && isfinite(pose->q.z);
}

/* Half extents of the box around a shape in its own frame. */
static void shape_half(const pabd_scene *scene, const pabd_shape *shape, double half[3]) {
  switch (shape->kind) {
    case PABD_BOX:
      half[0] = shape->half.x, half[1] = shape->half.y, half[2] = shape->half.z;
      return;
    case PABD_CAPSULE:
      half[0] = half[1] = shape->radius, half[2] = shape->half_length + shape->radius;
      return;
    case PABD_CYLINDER:
      half[0] = half[1] = shape->radius, half[2] = shape->half_length;
      return;
    case PABD_HULL:
      half[0] = half[1] = half[2] = 0;
      for (int32_t k = 0; k < shape->vertex_count; ++k) {
        pabd_dvec3 v = scene->vertices[shape->first_vertex + k];
        half[0] = fmax(half[0], fabs(v.x)), half[1] = fmax(half[1], fabs(v.y)), half[2] = fmax(half[2], fabs(v.z));
      }
      return;
    default:
      half[0] = half[1] = half[2] = shape->radius;
  }
}

/* Ground: a plane, or a static box much larger than what stands on it. It is drawn as a floor, not as a body. */
static int is_ground(const pabd_scene *scene, const pabd_shape *shape) {
  if (shape->kind == PABD_PLANE) return 1;
  return shape->kind == PABD_BOX && scene->bodies[shape->body].motion == PABD_STATIC && shape->half.x >= 20 &&
         shape->half.y >= 20;
}

static pabd_dpose world_pose(const pabd_scene *scene, const double *pose, const pabd_shape *shape) {
  return pabd_dpose_mul(body_pose(scene, pose, shape->body), shape->local);
}

/* Screen box of a shape, by its own box. */
static void screen_box(const pabd_scene *scene, const pabd_shape *shape, pabd_dpose pose, double low[2],
                       double high[2]) {
  screen_axes axes = axes_of_view();
  double half[3], reach[2] = {0, 0};
  shape_half(scene, shape, half);
  for (int k = 0; k < 3; ++k) {
    pabd_dvec3 axis = pabd_dquat_rotate(pose.q, (pabd_dvec3){k == 0, k == 1, k == 2});
    reach[0] += half[k] * fabs(dot(axis, axes.right));
    reach[1] += half[k] * fabs(dot(axis, axes.up));
  }
  double center[2] = {dot(pose.p, axes.right), dot(pose.p, axes.up)};
  for (int k = 0; k < 2; ++k) low[k] = center[k] - reach[k], high[k] = center[k] + reach[k];
}

static void widen(pabd_scene_view *view, const double low[2], const double high[2], const pabd_scene *scene,
                  const pabd_shape *shape, pabd_dpose pose) {
  for (int k = 0; k < 2; ++k) {
    view->low[k] = view->has_bounds ? fmin(view->low[k], low[k]) : low[k];
    view->high[k] = view->has_bounds ? fmax(view->high[k], high[k]) : high[k];
  }
  double half[3], center[3] = {pose.p.x, pose.p.y, pose.p.z};
  shape_half(scene, shape, half);
  double reach = fmax(half[0], fmax(half[1], half[2]));
  for (int k = 0; k < 3; ++k) {
    view->floor_low[k] = view->has_bounds ? fmin(view->floor_low[k], center[k] - reach) : center[k] - reach;
    view->floor_high[k] = view->has_bounds ? fmax(view->floor_high[k], center[k] + reach) : center[k] + reach;
  }
  view->has_bounds = 1;
}

void pabd_scene_view_start(pabd_scene_view *view, const pabd_scene *scene) {
  *view = (pabd_scene_view){0};
  for (int32_t s = 0; s < scene->shape_count; ++s) {
    const pabd_shape *shape = &scene->shapes[s];
    if (is_ground(scene, shape)) continue;
    pabd_dpose pose = world_pose(scene, NULL, shape);
    double low[2], high[2];
    screen_box(scene, shape, pose, low, high);
    widen(view, low, high, scene, shape, pose);
  }
  if (!view->has_bounds) *view = (pabd_scene_view){{-1, -1}, {1, 1}, {0, 0}, {0, 0}, {-1, -1, -1}, {1, 1, 1}, 1};
  for (int k = 0; k < 2; ++k) view->start_low[k] = view->low[k], view->start_high[k] = view->high[k];
}

/* Is a body near enough to the start picture to be shown? */
static int inside(const pabd_scene_view *view, const double low[2], const double high[2]) {
  double size = fmax(view->start_high[0] - view->start_low[0], view->start_high[1] - view->start_low[1]);
  double allowed = 0.7 * size;
  for (int k = 0; k < 2; ++k)
    if (!(low[k] > view->start_low[k] - allowed && high[k] < view->start_high[k] + allowed)) return 0;
  return 1;
}

void pabd_scene_view_include(pabd_scene_view *view, const pabd_scene *scene, const double *pose) {
  for (int32_t s = 0; s < scene->shape_count; ++s) {
    const pabd_shape *shape = &scene->shapes[s];
    pabd_dpose body = body_pose(scene, pose, shape->body);
    if (is_ground(scene, shape) || !finite_pose(&body)) continue;
    pabd_dpose world = world_pose(scene, pose, shape);
    double low[2], high[2];
    screen_box(scene, shape, world, low, high);
    if (inside(view, low, high)) widen(view, low, high, scene, shape, world);
  }
}

/* ---- pieces ---- */

static void put_corner(piece *p, const screen_axes *axes, pabd_dvec3 world) {
  if (p->corner_count == OUTLINE_MAX) return;
  p->corner[p->corner_count][0] = dot(world, axes->right);
  p->corner[p->corner_count][1] = dot(world, axes->up);
  p->depth[p->corner_count++] = dot(world, axes->eye);
}

/* Light from the upper left front. */
static double shade_of(const screen_axes *axes, pabd_dvec3 normal) {
  double light = -0.42 * dot(normal, axes->right) + 0.78 * dot(normal, axes->up) + 0.46 * dot(normal, axes->eye);
  return 0.30 + 0.70 * fmax(0.0, fmin(1.0, light));
}

static int add_box(piece *out, int shape_index, const screen_axes *axes, const drawn_shape *d) {
  int count = 0;
  for (int k = 0; k < 3; ++k) {
    double facing = dot(d->axis[k], axes->eye);
    if (fabs(facing) < 1e-6) continue;
    double side = facing > 0 ? 1 : -1;
    int a = (k + 1) % 3, b = (k + 2) % 3;
    pabd_dvec3 middle = add_scaled(d->pose.p, side * d->half[k], d->axis[k]);
    piece *p = &out[count++];
    *p = (piece){.shape = shape_index, .visible = 1};
    static const int sign[4][2] = {{1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
    for (int c = 0; c < 4; ++c)
      put_corner(
          p, axes,
          add_scaled(add_scaled(middle, sign[c][0] * d->half[a], d->axis[a]), sign[c][1] * d->half[b], d->axis[b]));
    pabd_dvec3 normal = {side * d->axis[k].x, side * d->axis[k].y, side * d->axis[k].z};
    p->shade = shade_of(axes, normal);
  }
  return count;
}

static int compare_points(const void *a, const void *b) {
  const double *p = a, *q = b;
  if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
  return p[1] < q[1] ? -1 : p[1] > q[1];
}

static double turn(const double *a, const double *b, const double *c) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/* Convex outline (monotone chain) of screen points [count][2], sorted in place; at most OUTLINE_MAX corners are kept.
 */
static void outline_of(piece *p, double (*point)[2], int count, double depth) {
  qsort(point, (size_t)count, sizeof *point, compare_points);
  int *chain = malloc(sizeof *chain * (2 * (size_t)count + 1));
  if (!chain) return;
  int size = 0;
  for (int pass = 0; pass < 2; ++pass) {
    int start = size;
    for (int k = 0; k < count; ++k) {
      int i = pass ? count - 1 - k : k;
      while (size - start >= 2 && turn(point[chain[size - 2]], point[chain[size - 1]], point[i]) <= 0) --size;
      chain[size++] = i;
    }
    --size; /* the last one starts the other half */
  }
  int step = (size + OUTLINE_MAX - 1) / OUTLINE_MAX;
  if (step < 1) step = 1;
  for (int k = 0; k < size && p->corner_count < OUTLINE_MAX; k += step) {
    p->corner[p->corner_count][0] = point[chain[k]][0];
    p->corner[p->corner_count][1] = point[chain[k]][1];
    p->depth[p->corner_count++] = depth;
  }
  free(chain);
}

/* Capsule and cylinder: outline of two end circles; hull: outline of its vertices. */
static int add_outline(piece *out, int shape_index, const screen_axes *axes, const pabd_scene *scene,
                       const drawn_shape *d) {
  const pabd_shape *shape = d->shape;
  enum { ring = 24 };
  int count = shape->kind == PABD_HULL ? shape->vertex_count : 2 * ring;
  if (count < 3) return 0;
  double(*point)[2] = malloc(sizeof *point * (size_t)count);
  if (!point) return 0;
  for (int k = 0; k < count; ++k) {
    pabd_dvec3 world;
    if (shape->kind == PABD_HULL) {
      world = pabd_dpose_apply(d->pose, scene->vertices[shape->first_vertex + k]);
    } else {
      double angle = 2 * 3.14159265358979323846 * (k % ring) / ring, end = k < ring ? 1 : -1;
      pabd_dvec3 middle = add_scaled(d->pose.p, end * shape->half_length, d->axis[2]);
      if (shape->kind == PABD_CAPSULE) { /* the end ball's disc faces the viewer */
        world = add_scaled(add_scaled(middle, shape->radius * cos(angle), axes->right), shape->radius * sin(angle),
                           axes->up);
      } else {
        world = add_scaled(add_scaled(middle, shape->radius * cos(angle), d->axis[0]), shape->radius * sin(angle),
                           d->axis[1]);
      }
    }
    point[k][0] = dot(world, axes->right);
    point[k][1] = dot(world, axes->up);
  }
  out[0] = (piece){.shape = shape_index, .visible = 1, .shade = 0.62};
  outline_of(&out[0], point, count, d->depth);
  free(point);
  int pieces = out[0].corner_count >= 3;
  if (pieces && shape->kind == PABD_CYLINDER) { /* the lid that looks at the viewer */
    double end = dot(d->axis[2], axes->eye) > 0 ? 1 : -1;
    pabd_dvec3 normal = {end * d->axis[2].x, end * d->axis[2].y, end * d->axis[2].z};
    out[1] = (piece){.shape = shape_index, .visible = 1, .shade = shade_of(axes, normal)};
    for (int k = 0; k < ring; ++k) {
      double angle = 2 * 3.14159265358979323846 * k / ring;
      pabd_dvec3 world = add_scaled(d->pose.p, end * shape->half_length, d->axis[2]);
      world =
          add_scaled(add_scaled(world, shape->radius * cos(angle), d->axis[0]), shape->radius * sin(angle), d->axis[1]);
      put_corner(&out[1], axes, world);
    }
    pieces = 2;
  }
  return pieces;
}

static int add_disc(piece *out, int shape_index, const screen_axes *axes, const drawn_shape *d) {
  out[0] = (piece){.shape = shape_index, .visible = 1, .shade = 0.66, .radius = d->shape->radius};
  out[0].center[0] = dot(d->pose.p, axes->right);
  out[0].center[1] = dot(d->pose.p, axes->up);
  out[0].depth[0] = d->depth;
  return 1;
}

/* ---- order ---- */

/* > 0: a is nearer to the viewer than b; 0: undecided. Decided by the face direction that separates the two boxes best.
 */
static int nearer(const drawn_shape *a, const drawn_shape *b, const screen_axes *axes) {
  pabd_dvec3 apart = sub(a->pose.p, b->pose.p);
  double best = -DBL_MAX;
  int side = 0;
  for (int k = 0; k < 6; ++k) {
    pabd_dvec3 axis = k < 3 ? a->axis[k] : b->axis[k - 3];
    double reach = 0;
    for (int m = 0; m < 3; ++m)
      reach += a->half[m] * fabs(dot(a->axis[m], axis)) + b->half[m] * fabs(dot(b->axis[m], axis));
    double distance = dot(apart, axis), separation = fabs(distance) - reach;
    double facing = dot(axis, axes->eye);
    if (separation > best + 1e-9 && fabs(facing) > 1e-3) {
      best = separation;
      side = distance * facing > 0 ? 1 : -1;
    }
  }
  return side;
}

static int overlap_on_screen(const drawn_shape *a, const drawn_shape *b) {
  return a->low[0] < b->high[0] && b->low[0] < a->high[0] && a->low[1] < b->high[1] && b->low[1] < a->high[1];
}

static int compare_depth(const void *a, const void *b) {
  const drawn_shape *p = *(drawn_shape *const *)a, *q = *(drawn_shape *const *)b;
  return p->depth < q->depth ? -1 : p->depth > q->depth;
}

/* Draws everything behind `k` first (depth-first; cycles of overlapping bodies are cut where they are met). */
static void visit(int k, drawn_shape **list, int count, const screen_axes *axes, char *state, drawn_shape **out,
                  int *out_count) {
  state[k] = 1;
  for (int m = 0; m < count; ++m)
    if (!state[m] && overlap_on_screen(list[k], list[m]) && nearer(list[k], list[m], axes) > 0)
      visit(m, list, count, axes, state, out, out_count);
  out[(*out_count)++] = list[k];
}

static void order_shapes(drawn_shape **list, int count, const screen_axes *axes) {
  qsort(list, (size_t)count, sizeof *list, compare_depth);
  if (count > PAIR_ORDER_LIMIT || count < 2) return;
  char *state = calloc((size_t)count, 1);
  drawn_shape **out = malloc(sizeof *out * (size_t)count);
  int out_count = 0;
  if (state && out) {
    for (int k = 0; k < count; ++k)
      if (!state[k]) visit(k, list, count, axes, state, out, &out_count);
    memcpy(list, out, sizeof *out * (size_t)count);
  }
  free(state);
  free(out);
}

/* ---- hidden pieces ---- */

/* Marks the pieces that own a cell of the item buffer. */
static void find_visible(piece *pieces, int piece_count, const pabd_scene_view *view, double scale_to_cells, int width,
                         int height) {
  float *nearest = malloc(sizeof *nearest * (size_t)width * (size_t)height);
  int *owner = malloc(sizeof *owner * (size_t)width * (size_t)height);
  if (nearest && owner) {
    for (int k = 0; k < width * height; ++k) nearest[k] = -FLT_MAX, owner[k] = -1;
    for (int n = 0; n < piece_count; ++n) {
      piece *p = &pieces[n];
      double low[2] = {DBL_MAX, DBL_MAX}, high[2] = {-DBL_MAX, -DBL_MAX};
      if (p->corner_count == 0) {
        for (int k = 0; k < 2; ++k) low[k] = p->center[k] - p->radius, high[k] = p->center[k] + p->radius;
      }
      for (int c = 0; c < p->corner_count; ++c)
        for (int k = 0; k < 2; ++k) low[k] = fmin(low[k], p->corner[c][k]), high[k] = fmax(high[k], p->corner[c][k]);
      int x0 = (int)fmax(0, floor((low[0] - view->low[0]) * scale_to_cells));
      int x1 = (int)fmin(width - 1, ceil((high[0] - view->low[0]) * scale_to_cells));
      int y0 = (int)fmax(0, floor((low[1] - view->low[1]) * scale_to_cells));
      int y1 = (int)fmin(height - 1, ceil((high[1] - view->low[1]) * scale_to_cells));
      /* Depth over a flat piece: depth = d0 + gx (x - x0) + gy (y - y0), from three of its corners. */
      double gx = 0, gy = 0;
      if (p->corner_count >= 3) {
        double ax = p->corner[1][0] - p->corner[0][0], ay = p->corner[1][1] - p->corner[0][1];
        double bx = p->corner[2][0] - p->corner[0][0], by = p->corner[2][1] - p->corner[0][1];
        double determinant = ax * by - ay * bx;
        double da = p->depth[1] - p->depth[0], db = p->depth[2] - p->depth[0];
        if (fabs(determinant) > 1e-12) gx = (da * by - db * ay) / determinant, gy = (db * ax - da * bx) / determinant;
      }
      for (int y = y0; y <= y1; ++y) {
        for (int x = x0; x <= x1; ++x) {
          double q[2] = {view->low[0] + (x + 0.5) / scale_to_cells, view->low[1] + (y + 0.5) / scale_to_cells};
          double depth;
          if (p->corner_count == 0) {
            double dx = q[0] - p->center[0], dy = q[1] - p->center[1], rest = p->radius * p->radius - dx * dx - dy * dy;
            if (rest < 0) continue;
            depth = p->depth[0] + sqrt(rest);
          } else {
            int positive = 0, negative = 0;
            for (int c = 0; c < p->corner_count; ++c) {
              double t = turn(p->corner[c], p->corner[(c + 1) % p->corner_count], q);
              positive += t > 0, negative += t < 0;
            }
            if (positive && negative) continue;
            depth = p->depth[0] + gx * (q[0] - p->corner[0][0]) + gy * (q[1] - p->corner[0][1]);
          }
          int cell = y * width + x;
          if (depth > nearest[cell]) nearest[cell] = (float)depth, owner[cell] = n;
        }
      }
    }
    for (int n = 0; n < piece_count; ++n) pieces[n].visible = 0;
    for (int k = 0; k < width * height; ++k)
      if (owner[k] >= 0) pieces[owner[k]].visible = 1;
  }
  free(nearest);
  free(owner);
}

/* ---- drawing ---- */

typedef struct canvas {
  pabd_text *out;
  screen_axes axes;
  double low[2], scale, height; /* unit = scale * m; y runs down */
} canvas;

static int canvas_x(const canvas *c, double right) {
  return (int)lround((right - c->low[0]) * c->scale);
}
static int canvas_y(const canvas *c, double up) {
  return (int)lround(c->height - (up - c->low[1]) * c->scale);
}

static void path_points(const canvas *c, const double (*corner)[2], int count) {
  int last_x = 0, last_y = 0;
  for (int k = 0; k < count; ++k) {
    int x = canvas_x(c, corner[k][0]), y = canvas_y(c, corner[k][1]);
    if (k == 0)
      pabd_text_add(c->out, "M%d %d", x, y);
    else
      pabd_text_add(c->out, "%s%d %d", k == 1 ? "l" : " ", x - last_x, y - last_y);
    last_x = x, last_y = y;
  }
  pabd_text_add(c->out, "z");
}

/* Color of a body: heavier is darker. Static ones are gray, kinematic ones ochre. */
static void body_color(const pabd_body *body, double low_mass, double high_mass, double shade, char text[8]) {
  double light[3] = {200, 216, 232}, dark[3] = {52, 88, 132}, color[3];
  double t = high_mass > low_mass * 1.001 ? log(body->mass / low_mass) / log(high_mass / low_mass) : 0.25;
  for (int k = 0; k < 3; ++k) {
    color[k] = light[k] + t * (dark[k] - light[k]);
    if (body->motion == PABD_STATIC) color[k] = (double[]){190, 188, 182}[k];
    if (body->motion == PABD_KINEMATIC) color[k] = (double[]){222, 178, 98}[k];
    double bright = 0.45 + 0.55 * shade;
    color[k] = fmax(0, fmin(255, color[k] * bright + 255 * 0.10 * shade));
  }
  snprintf(text, 8, "#%02x%02x%02x", (int)color[0] & 255, (int)color[1] & 255, (int)color[2] & 255);
}

/* The part of a ground that lies under the picture, with a grid whose width is a power of ten (m), returned. */
static double draw_ground(const canvas *c, const pabd_scene_view *view, pabd_dpose pose, double top) {
  double extent = 0;
  for (int k = 0; k < 2; ++k) extent = fmax(extent, view->floor_high[k] - view->floor_low[k]);
  double grid = pow(10, floor(log10(fmax(extent, 1e-3)) + 0.35));
  if (extent / grid < 3) grid /= grid > 0 ? 2 : 1;
  double margin = 0.06 * extent + 0.2 * grid;
  double low[2] = {view->floor_low[0] - margin, view->floor_low[1] - margin};
  double high[2] = {view->floor_high[0] + margin, view->floor_high[1] + margin};
  /* Work in the ground's own frame: exact for a level floor, near enough for a slope. */
  pabd_dvec3 x_axis = pabd_dquat_rotate(pose.q, (pabd_dvec3){1, 0, 0});
  pabd_dvec3 y_axis = pabd_dquat_rotate(pose.q, (pabd_dvec3){0, 1, 0});
  pabd_dvec3 origin = add_scaled(pose.p, top, pabd_dquat_rotate(pose.q, (pabd_dvec3){0, 0, 1}));
  for (int k = 0; k < 2; ++k) low[k] -= k ? origin.y : origin.x, high[k] -= k ? origin.y : origin.x;
  double corner[4][2];
  for (int k = 0; k < 4; ++k) {
    pabd_dvec3 w =
        add_scaled(add_scaled(origin, k == 0 || k == 3 ? low[0] : high[0], x_axis), k < 2 ? low[1] : high[1], y_axis);
    corner[k][0] = dot(w, c->axes.right), corner[k][1] = dot(w, c->axes.up);
  }
  pabd_text_add(c->out, "<path fill=\"#eceae4\" d=\"");
  path_points(c, (const double(*)[2])corner, 4);
  pabd_text_add(c->out, "\"/><path stroke=\"#cfccc2\" stroke-width=\"2\" fill=\"none\" d=\"");
  for (int k = 0; k < 2; ++k) {
    for (double t = ceil(low[k] / grid) * grid; t <= high[k]; t += grid) {
      for (int end = 0; end < 2; ++end) {
        double along = end ? high[1 - k] : low[1 - k];
        pabd_dvec3 w = add_scaled(add_scaled(origin, k ? along : t, x_axis), k ? t : along, y_axis);
        pabd_text_add(c->out, "%s%d %d", end ? "L" : "M", canvas_x(c, dot(w, c->axes.right)),
                      canvas_y(c, dot(w, c->axes.up)));
      }
    }
  }
  pabd_text_add(c->out, "\"/>");
  return grid;
}

/* Soft shadow of a body's box straight down onto a level ground. */
static void draw_shadow(const canvas *c, const drawn_shape *d, double ground) {
  if (d->pose.p.z < ground - 1e-3) return;
  double point[8][2];
  for (int k = 0; k < 8; ++k) {
    pabd_dvec3 w = d->pose.p;
    for (int m = 0; m < 3; ++m) w = add_scaled(w, (k >> m & 1 ? 1 : -1) * d->half[m], d->axis[m]);
    w.z = ground;
    point[k][0] = dot(w, c->axes.right), point[k][1] = dot(w, c->axes.up);
  }
  piece p = {0};
  outline_of(&p, point, 8, 0);
  if (p.corner_count >= 3) path_points(c, (const double(*)[2])p.corner, p.corner_count);
}

static void draw_joints(const canvas *c, const pabd_scene *scene, const double *pose, const pabd_scene_view *view) {
  for (int32_t j = 0; j < scene->joint_count; ++j) {
    const pabd_joint *joint = &scene->joints[j];
    double end[2][2];
    int usable = 1;
    for (int side = 0; side < 2; ++side) {
      int32_t body = side ? joint->body_b : joint->body_a;
      pabd_dpose frame = side ? joint->frame_b : joint->frame_a;
      pabd_dpose at = body == PABD_WORLD ? (pabd_dpose){.q = {1, 0, 0, 0}} : body_pose(scene, pose, body);
      usable &= finite_pose(&at);
      pabd_dvec3 w = pabd_dpose_apply(at, frame.p);
      end[side][0] = dot(w, c->axes.right), end[side][1] = dot(w, c->axes.up);
      for (int k = 0; k < 2 && usable; ++k)
        usable &= end[side][k] > view->low[k] - 1 && end[side][k] < view->high[k] + 1;
    }
    if (!usable) continue;
    int x0 = canvas_x(c, end[0][0]), y0 = canvas_y(c, end[0][1]), x1 = canvas_x(c, end[1][0]),
        y1 = canvas_y(c, end[1][1]);
    int long_by_design = joint->kind == PABD_DISTANCE || joint->kind == PABD_SPRING || joint->kind == PABD_SLIDER;
    if (abs(x0 - x1) + abs(y0 - y1) > 3) /* an open joint shows as a red line */
      pabd_text_add(c->out, "<path d=\"M%d %dL%d %d\" stroke=\"%s\" stroke-width=\"%d\"/>", x0, y0, x1, y1,
                    long_by_design ? "#333" : "#D55E00", long_by_design ? 3 : 6);
    double radius = fmax(3.0, fmin(7.0, 0.05 * c->scale));
    pabd_text_add(c->out, "<circle cx=\"%d\" cy=\"%d\" r=\"%.0f\" fill=\"%s\"/>", x1, y1, radius,
                  joint->body_a == PABD_WORLD ? "#000" : "#fff");
    if (joint->body_a == PABD_WORLD) pabd_text_add(c->out, "<path d=\"M%d %dl-14 -22h28z\" fill=\"#444\"/>", x0, y0);
  }
}

static void mass_text(double mass, char text[32]) {
  if (mass >= 1000)
    snprintf(text, 32, "%.3g t", mass / 1000);
  else if (mass < 1)
    snprintf(text, 32, "%.3g g", mass * 1000);
  else
    snprintf(text, 32, "%.3g kg", mass);
}

/* Masses beside the bodies where there are few of them and they differ. */
static void draw_masses(const canvas *c, const pabd_scene *scene, drawn_shape *const *list, int count, double width) {
  int32_t last = -1;
  for (int k = 0; k < count; ++k) {
    const pabd_body *body = &scene->bodies[list[k]->shape->body];
    if (body->motion != PABD_DYNAMIC || list[k]->shape->body == last) continue;
    last = list[k]->shape->body;
    char text[32];
    mass_text(body->mass, text);
    double size = (list[k]->high[0] - list[k]->low[0]) * c->scale;
    if (size < 24) continue;
    int x = canvas_x(c, dot(list[k]->pose.p, c->axes.right)), y = canvas_y(c, dot(list[k]->pose.p, c->axes.up));
    int font = (int)fmax(width / 34, fmin(width / 22, size / 4));
    pabd_text_add(c->out,
                  "<text x=\"%d\" y=\"%d\" font-size=\"%d\" text-anchor=\"middle\" fill=\"#111\" stroke=\"#fff\" "
                  "stroke-width=\"%d\" paint-order=\"stroke\" font-family=\"sans-serif\">%s</text>",
                  x, y + font / 3, font, font / 4, text);
  }
}

int pabd_scene_draw(pabd_text *out, const pabd_scene *scene, const double *pose, const pabd_scene_view *view,
                    const char *alternative) {
  canvas c = {.out = out, .axes = axes_of_view()};
  int outside = 0, count = 0, piece_count = 0;
  double low_mass = DBL_MAX, high_mass = 0;
  int32_t dynamic_count = 0;
  for (int32_t b = 0; b < scene->body_count; ++b) {
    if (scene->bodies[b].motion != PABD_DYNAMIC) continue;
    ++dynamic_count;
    low_mass = fmin(low_mass, scene->bodies[b].mass), high_mass = fmax(high_mass, scene->bodies[b].mass);
  }

  /* Ground first: the view reserves room for its visible part. */
  const pabd_shape *ground = NULL;
  for (int32_t s = 0; s < scene->shape_count && !ground; ++s)
    if (is_ground(scene, &scene->shapes[s])) ground = &scene->shapes[s];
  double size[2] = {view->high[0] - view->low[0], view->high[1] - view->low[1]};
  double margin = 0.04 * fmax(size[0], size[1]) + 1e-6;
  for (int k = 0; k < 2; ++k) c.low[k] = view->low[k] - margin;
  double width = size[0] + 2 * margin, tall = size[1] + 2 * margin;
  if (ground) { /* the floor reaches a little below the lowest body */
    double extra = 0.08 * fmax(size[0], size[1]);
    c.low[1] -= extra, tall += extra;
    c.low[0] -= extra, width += 2 * extra;
  }
  /* Between 3:1 and 1:1.5, filled up with empty space. */
  if (tall < width / 3.0) c.low[1] -= (width / 3.0 - tall) / 2, tall = width / 3.0;
  if (tall > width * 1.5) c.low[0] -= (tall / 1.5 - width) / 2, width = tall / 1.5;
  c.scale = PICTURE_WIDTH / width;
  c.height = tall * c.scale;

  drawn_shape *shapes = calloc((size_t)scene->shape_count + 1, sizeof *shapes);
  drawn_shape **list = malloc(sizeof *list * ((size_t)scene->shape_count + 1));
  piece *pieces = malloc(sizeof *pieces * (3 * (size_t)scene->shape_count + 1));
  if (!shapes || !list || !pieces) {
    out->failed = 1;
    goto done;
  }

  /* Shapes to pieces. */
  for (int32_t s = 0; s < scene->shape_count; ++s) {
    const pabd_shape *shape = &scene->shapes[s];
    if (is_ground(scene, shape)) continue;
    pabd_dpose body = body_pose(scene, pose, shape->body);
    drawn_shape *d = &shapes[count];
    *d = (drawn_shape){.shape = shape, .first_piece = piece_count};
    if (!finite_pose(&body)) {
      ++outside;
      continue;
    }
    d->pose = world_pose(scene, pose, shape);
    screen_box(scene, shape, d->pose, d->low, d->high);
    if (!inside(view, d->low, d->high)) {
      outside += scene->bodies[shape->body].motion == PABD_DYNAMIC;
      continue;
    }
    shape_half(scene, shape, d->half);
    for (int k = 0; k < 3; ++k) d->axis[k] = pabd_dquat_rotate(d->pose.q, (pabd_dvec3){k == 0, k == 1, k == 2});
    d->depth = dot(d->pose.p, c.axes.eye);
    if (shape->kind == PABD_BOX)
      d->piece_count = add_box(pieces + piece_count, count, &c.axes, d);
    else if (shape->kind == PABD_SPHERE)
      d->piece_count = add_disc(pieces + piece_count, count, &c.axes, d);
    else
      d->piece_count = add_outline(pieces + piece_count, count, &c.axes, scene, d);
    piece_count += d->piece_count;
    list[count] = d;
    ++count;
  }
  order_shapes(list, count, &c.axes);
  if (count >= VISIBLE_TEST_FROM) {
    pabd_scene_view whole = *view;
    for (int k = 0; k < 2; ++k) whole.low[k] = c.low[k];
    int rows = (int)ceil(BUFFER_WIDTH * tall / width) + 1;
    find_visible(pieces, piece_count, &whole, BUFFER_WIDTH / width, BUFFER_WIDTH + 1, rows);
  }

  pabd_text_add(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">",
                PICTURE_WIDTH, c.height, pabd_text_escape(out, alternative));
  pabd_text_add(out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>", PICTURE_WIDTH, c.height);
  double grid = 0;
  if (ground) {
    pabd_dpose at = world_pose(scene, pose, ground);
    double top = ground->kind == PABD_PLANE ? 0 : ground->half.z;
    grid = draw_ground(&c, view, at, top);
    double tilt = pabd_dquat_rotate(at.q, (pabd_dvec3){0, 0, 1}).z;
    if (tilt > 0.9999 && count <= VISIBLE_TEST_FROM) {
      pabd_text_add(out, "<path fill=\"#8c8a84\" fill-opacity=\".35\" d=\"");
      for (int k = 0; k < count; ++k) draw_shadow(&c, list[k], at.p.z + top);
      pabd_text_add(out, "\"/>");
    }
  }
  pabd_text_add(out, "<g stroke=\"#1d2a36\" stroke-width=\"%s\" stroke-linejoin=\"round\">",
                count < 40    ? "2.5"
                : count < 400 ? "1.5"
                              : "1");
  for (int k = 0; k < count; ++k) {
    const drawn_shape *d = list[k];
    const pabd_body *body = &scene->bodies[d->shape->body];
    for (int n = 0; n < d->piece_count; ++n) {
      const piece *p = &pieces[d->first_piece + n];
      if (!p->visible) continue;
      char color[8];
      body_color(body, low_mass, high_mass, p->shade, color);
      if (p->corner_count == 0) {
        int x = canvas_x(&c, p->center[0]), y = canvas_y(&c, p->center[1]);
        double r = p->radius * c.scale;
        pabd_text_add(out, "<circle cx=\"%d\" cy=\"%d\" r=\"%.1f\" fill=\"%s\"/>", x, y, r, color);
        body_color(body, low_mass, high_mass, 1.0, color);
        if (r > 8)
          pabd_text_add(out, "<circle cx=\"%.0f\" cy=\"%.0f\" r=\"%.1f\" fill=\"%s\" stroke=\"none\"/>", x - 0.28 * r,
                        y - 0.32 * r, 0.42 * r, color);
      } else {
        pabd_text_add(out, "<path fill=\"%s\" d=\"", color);
        path_points(&c, p->corner, p->corner_count);
        pabd_text_add(out, "\"/>");
      }
    }
  }
  pabd_text_add(out, "</g>");
  if (scene->joint_count <= 200) draw_joints(&c, scene, pose, view);
  if (dynamic_count > 1 && dynamic_count <= 14 && high_mass > 1.001 * low_mass)
    draw_masses(&c, scene, list, count, PICTURE_WIDTH);
  if (grid > 0)
    pabd_text_add(out,
                  "<text x=\"990\" y=\"%.0f\" font-size=\"26\" text-anchor=\"end\" fill=\"#555\" "
                  "font-family=\"sans-serif\">grid %g m</text>",
                  c.height - 10, grid);
  pabd_text_add(out, "</svg>\n");
done:
  free(shapes);
  free(list);
  free(pieces);
  return outside;
}
