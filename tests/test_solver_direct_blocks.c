/* The numeric core of the exact island solver, opened up: the Newton matrix against finite differences of its own right
 * side (every row kind, role and integrator; sticking contacts), block elimination against a dense solve with pivoting
 * (trees, loops, contacts), the fast path of ball-joint trees against the general one, and the elimination order.
 *
 * The core is compiled here in double under a name of its own, in both builds of the test: finite differences need the
 * digits. */
#ifndef PABD_REAL_DOUBLE
#define PABD_REAL_DOUBLE
#endif
#define DIRECT_NAME(name) name##_test
#include "direct_core.h"
#include "direct_order.h"
#include "test.h"

#define MAX_BODIES 8
#define MAX_JOINTS 12
#define MAX_CONTACTS 8
#define MAX_UNKNOWNS (6 * MAX_BODIES + DIRECT_ROWS * MAX_JOINTS)

/* An island made by hand, with the core's memory. Local body `body_count` is the world. */
typedef struct bench {
  direct_island island;
  direct_body bodies[MAX_BODIES];
  direct_joint joints[MAX_JOINTS];
  direct_contact contacts[MAX_CONTACTS];
  int32_t body[MAX_BODIES + 1], joint[MAX_JOINTS], joint_end[MAX_JOINTS][2], pair[MAX_CONTACTS][2];
  int32_t tree_parent[MAX_BODIES], tree_joint[MAX_BODIES];
  int32_t scratch[100000], order[100000];
  direct_capacity capacity;
  core core;
  void *memory;
  uint64_t state;
} bench;

static double draw(bench *s) { /* uniform in -1..1 */
  s->state += 0x9e3779b97f4a7c15u;
  uint64_t z = s->state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1.0;
}
static dvec3 draw3(bench *s, double size) {
  double x = draw(s), y = draw(s), z = draw(s);
  return d3(size * x, size * y, size * z);
}
static dquat draw_rotation(bench *s, double angle) {
  dvec3 v = draw3(s, 0.5 * angle);
  return dq_normalize(dq(1.0, v.x, v.y, v.z));
}

static bench *bench_new(uint64_t seed, int32_t bodies) {
  bench *s = calloc(1, sizeof *s);
  s->state = seed;
  for (int32_t i = 0; i < bodies; ++i) {
    direct_body *b = &s->bodies[i];
    b->motion = PABD_DYNAMIC;
    b->mass = exp(draw(s));
    b->inertia = d3(b->mass * (0.2 + 0.05 * draw(s)), b->mass * (0.2 + 0.05 * draw(s)), b->mass * 0.2);
    b->p = draw3(s, 1.0), b->q = draw_rotation(s, 3.0);
    b->v = draw3(s, 1.0), b->L = draw3(s, 0.3);
    b->force = draw3(s, 5.0), b->torque = draw3(s, 1.0);
    b->step_h = 0.01, b->step = d3_scale(0.01, draw3(s, 1.0)), b->turn = d3_scale(0.01, draw3(s, 2.0));
    b->v_prev = draw3(s, 1.0), b->L_prev = draw3(s, 0.3);
    s->body[i] = i;
  }
  s->body[bodies] = -1;
  s->island.body_count = bodies, s->island.local_count = bodies + 1;
  s->island.body = s->body, s->island.joint = s->joint, s->island.contact = s->contacts;
  return s;
}

/* A joint between a (-1: world) and b at random frames; rows are added by the caller. */
static direct_joint *bench_joint(bench *s, int32_t a, int32_t b) {
  int32_t k = s->island.joint_count++;
  direct_joint *j = &s->joints[k];
  s->joint[k] = k;
  s->joint_end[k][0] = a, s->joint_end[k][1] = b;
  j->body_a = a, j->body_b = b, j->coupled = 1;
  j->anchor_a = draw3(s, 0.5), j->anchor_b = draw3(s, 0.5);
  j->frame_a = draw_rotation(s, 2.0), j->frame_b = draw_rotation(s, 2.0);
  j->lower = -0.1, j->upper = 0.1;
  return j;
}
static void row(bench *s, direct_joint *j, int kind, int role, int axis_a, int axis_b) {
  int r = j->row_count++;
  j->kind[r] = (uint8_t)kind, j->role[r] = (uint8_t)role, j->i[r] = (uint8_t)axis_a, j->j[r] = (uint8_t)axis_b;
  j->state.lambda[r] = 20.0 * draw(s);
}
static void ball_rows(bench *s, direct_joint *j) {
  for (int k = 0; k < 3; ++k) row(s, j, DIRECT_POINT, DIRECT_HARD, k, 0);
  j->is_point = 1;
}
static void bench_contact(bench *s, int32_t a, int32_t b, double offset) {
  int32_t k = s->island.contact_count++;
  direct_contact *c = &s->contacts[k];
  dvec3 n = d3(0.36, 0.48, 0.8);
  c->a = a, c->b = b < 0 ? s->island.body_count : b;
  c->normal = n, c->tangent = d3(0.8, -0.6, 0.0);
  c->core_a = draw3(s, 0.5), c->core_b = draw3(s, 0.5);
  c->offset_a = c->offset_b = offset;
  c->gap = -0.01, c->mu = 1e9; /* sticks */
  c->lambda[0] = 30.0, c->lambda[1] = draw(s), c->lambda[2] = draw(s);
  c->support = 2.0;
  int new_pair = k == 0 || s->contacts[k - 1].a != c->a || s->contacts[k - 1].b != c->b;
  if (new_pair) s->pair[s->island.pair_count][0] = a, s->pair[s->island.pair_count][1] = b, s->island.pair_count++;
  c->pair = s->island.pair_count - 1;
}

/* Elimination order and memory; then a step of the given scheme begins. */
static int bench_begin(bench *s, scheme kind) {
  direct_island *island = &s->island;
  s->capacity = (direct_capacity){MAX_BODIES + 1, MAX_JOINTS, MAX_CONTACTS, MAX_BODIES + MAX_JOINTS, 400};
  uint8_t coupled[MAX_JOINTS];
  int32_t depth[MAX_BODIES];
  double mass[MAX_BODIES];
  for (int32_t k = 0; k < island->joint_count; ++k) coupled[k] = (uint8_t)s->joints[k].coupled;
  for (int32_t i = 0; i < island->body_count; ++i) depth[i] = 1 + i, mass[i] = s->bodies[i].mass;
  direct_graph graph = {island->body_count,
                        island->joint_count,
                        island->pair_count,
                        (const int32_t(*)[2])s->joint_end,
                        coupled,
                        (const int32_t(*)[2])s->pair,
                        depth,
                        mass};
  if (direct_order_scratch(s->capacity.nodes, 400) > 100000) return 0;
  if (direct_order_build(&graph, 400, s->scratch, s->order, 100000, &island->order) < 0) return 0;
  core *w = &s->core;
  if (!s->memory) {
    size_t bytes = carve(NULL, NULL, &s->capacity);
    s->memory = aligned_alloc(64, bytes);
    memset(s->memory, 0, bytes);
  }
  memset(w, 0, sizeof *w);
  carve(w, s->memory, &s->capacity);
  w->island = w->result = island, w->bodies = s->bodies, w->joints = s->joints;
  for (int32_t i = 0; i < island->body_count; ++i) w->at[i] = &s->bodies[i];
  w->fixed[0].motion = PABD_STATIC, w->fixed[0].q.w = 1.0;
  w->at[island->body_count] = &w->fixed[0];
  if (!island->is_tree) rows_attach(w);
  step_coefficients(&w->step, kind, 0.01, 1.0);
  step_begin(w);
  return 1;
}
static void bench_free(bench *s) {
  free(s->memory);
  free(s);
}

/* Some iterate well away from the start of the step. */
static void perturb_iterate(bench *s, double size) {
  for (int32_t i = 0; i < s->island.body_count; ++i) {
    body_work *b = &s->core.body[i];
    b->dp = v3_add(b->dp, v3_from(draw3(s, size)));
    b->dq = quat_normalize(quat_mul(quat_from(draw_rotation(s, size)), b->dq));
  }
}

static void assemble(core *w) {
  const direct_order *o = &w->island->order;
  memset(w->blocks, 0, sizeof *w->blocks * (size_t)(o->node_count + 2 * o->edge_count));
  memset(w->rhs, 0, sizeof *w->rhs * (size_t)o->node_count);
  if (w->island->contact_count > 0) contacts_evaluate(w, 0);
  stamp_bodies(w);
  for (int32_t k = 0; k < w->island->joint_count; ++k) stamp_joint(w, k);
  stamp_contacts(w);
}

/* The matrix in full, by node: unknown u of node x is at start[x] + u. Returns the number of unknowns. */
static int dense(const core *w, double *matrix, double *rhs, int *start) {
  const direct_order *o = &w->island->order;
  int n = 0;
  for (int32_t x = 0; x < o->node_count; ++x) start[x] = n, n += w->size[w->position[x]];
  memset(matrix, 0, sizeof *matrix * (size_t)(n * n));
  for (int32_t x = 0; x < o->node_count; ++x) {
    int32_t p = w->position[x];
    for (int r = 0; r < w->size[p]; ++r) {
      if (rhs) rhs[start[x] + r] = w->rhs[p].r[r];
      for (int c = 0; c < w->size[p]; ++c) matrix[(start[x] + r) * n + start[x] + c] = w->blocks[p].r[r][c];
    }
    for (int32_t e = o->first[p]; e < o->first[p + 1]; ++e) {
      int32_t q = o->neighbor[e], y = o->order[q];
      const block *upper = &w->blocks[o->node_count + 2 * e], *lower = upper + 1;
      for (int r = 0; r < w->size[p]; ++r)
        for (int c = 0; c < w->size[q]; ++c) {
          matrix[(start[x] + r) * n + start[y] + c] = upper->r[r][c];
          matrix[(start[y] + c) * n + start[x] + r] = lower->r[c][r];
        }
    }
  }
  return n;
}

static double residual[2][MAX_UNKNOWNS], matrix[MAX_UNKNOWNS * MAX_UNKNOWNS],
    scratch_matrix[MAX_UNKNOWNS * MAX_UNKNOWNS];

/* Largest difference between the matrix and minus the central difference of the right side, over all columns of bodies
 * and of active rows, relative to the largest entry of the row. */
static double tangent_error(bench *s) {
  core *w = &s->core;
  int start[MAX_BODIES + MAX_JOINTS];
  assemble(w);
  int n = dense(w, matrix, NULL, start);
  double worst = 0.0;
  for (int32_t x = 0; x < w->island->order.node_count; ++x) {
    int is_body = x < w->island->body_count, joint = x - w->island->body_count;
    for (int u = 0; u < w->size[w->position[x]]; ++u) {
      double eps = is_body ? 1e-6 : 1e-3;
      if (!is_body && w->joint[joint].row[u].state != ROW_ON) continue;
      for (int side = 0; side < 2; ++side) {
        double by = side ? eps : -eps;
        if (is_body) {
          body_work *b = &w->body[x], saved = *b;
          double *to = u % 3 == 0 ? &b->dp.x : u % 3 == 1 ? &b->dp.y : &b->dp.z;
          if (u < 3) *to += by;
          vec3 t = v3(u == 3 ? by / 2 : 0, u == 4 ? by / 2 : 0, u == 5 ? by / 2 : 0);
          b->dq = quat_normalize(quat_mul(quat_make(1, t.x, t.y, t.z), b->dq));
          assemble(w);
          dense(w, scratch_matrix, residual[side], start);
          *b = saved;
        } else {
          double *lambda = &w->joint[joint].row[u].lambda, saved = *lambda;
          *lambda += by;
          assemble(w);
          dense(w, scratch_matrix, residual[side], start);
          *lambda = saved;
        }
      }
      for (int r = 0; r < n; ++r) {
        int row_node = 0;
        while (row_node + 1 < w->island->order.node_count && start[row_node + 1] <= r) ++row_node;
        /* the proximal term of a row that may be redundant is in the matrix alone, by intent */
        if (!is_body && row_node == x) {
          const direct_joint *j = &w->joints[w->island->joint[joint]];
          if (j->role[u] != DIRECT_SPRING) continue;
        }
        double scale = 1.0, found = matrix[r * n + start[x] + u];
        for (int c = 0; c < n; ++c) scale = fmax(scale, fabs(matrix[r * n + c]));
        double expected = -(residual[1][r] - residual[0][r]) / (2 * eps), error = fabs(found - expected) / scale;
        if (error > worst) worst = error;
      }
    }
  }
  return worst;
}

static const scheme schemes[] = {SCHEME_EULER, SCHEME_MOMENTUM, SCHEME_BDF2};

TEST(tangent_of_a_free_body) {
  for (int k = 0; k < 3; ++k) {
    bench *s = bench_new(7 + (uint64_t)k, 1);
    REQUIRE(bench_begin(s, schemes[k]));
    perturb_iterate(s, 0.3);
    CHECK_NEAR(tangent_error(s), 0, 2e-7);
    bench_free(s);
  }
}

typedef struct joint_rows {
  const char *name;
  int points;     /* 1: three hard point rows first */
  int rows[4][4]; /* kind, role, axis of a, axis of b; role -1 ends */
} joint_rows;
static const joint_rows row_sets[] = {
    {"ball", 1, {{0, -1, 0, 0}}},
    {"directions",
     0,
     {{DIRECT_DIRECTION, DIRECT_HARD, 0, 1},
      {DIRECT_DIRECTION, DIRECT_HARD, 1, 2},
      {DIRECT_DIRECTION, DIRECT_HARD, 2, 0},
      {0, -1, 0, 0}}},
    {"hinge", 1, {{DIRECT_DIRECTION, DIRECT_HARD, 0, 2}, {DIRECT_DIRECTION, DIRECT_HARD, 1, 2}, {0, -1, 0, 0}}},
    {"hinge spring", 0, {{DIRECT_ANGLE, DIRECT_SPRING, 2, 0}, {0, -1, 0, 0}}},
    {"hinge limit", 0, {{DIRECT_SWING, DIRECT_LIMIT, 0, 0}, {0, -1, 0, 0}}},
    {"hinge motor", 0, {{DIRECT_SWING, DIRECT_MOTOR, 0, 0}, {0, -1, 0, 0}}},
    {"lines", 0, {{DIRECT_LINE, DIRECT_HARD, 0, 0}, {DIRECT_LINE, DIRECT_HARD, 1, 0}, {0, -1, 0, 0}}},
    {"slider spring", 0, {{DIRECT_LINE, DIRECT_SPRING, 2, 0}, {0, -1, 0, 0}}},
    {"slider limit", 0, {{DIRECT_LINE, DIRECT_LIMIT, 2, 0}, {0, -1, 0, 0}}},
    {"slider motor", 0, {{DIRECT_LINE, DIRECT_MOTOR, 2, 0}, {0, -1, 0, 0}}},
    {"distance", 0, {{DIRECT_DISTANCE, DIRECT_HARD, 0, 0}, {0, -1, 0, 0}}},
    {"distance spring", 0, {{DIRECT_DISTANCE, DIRECT_SPRING, 0, 0}, {0, -1, 0, 0}}},
    {"rope", 0, {{DIRECT_DISTANCE, DIRECT_LIMIT, 0, 0}, {0, -1, 0, 0}}},
    {"point spring", 0, {{DIRECT_POINT, DIRECT_SPRING, 0, 0}, {DIRECT_POINT, DIRECT_SPRING, 1, 0}, {0, -1, 0, 0}}},
};

/* The angle's gradient is the axis only where both axes coincide, which the hinge's other rows see to: so they shall at
 * the iterate. */
static void align_axes(bench *s, direct_joint *j) {
  dquat axes[2] = {dq(1, 0, 0, 0), dq(1, 0, 0, 0)};
  for (int side = 0; side < 2; ++side) {
    int32_t i = side ? j->body_b : j->body_a;
    if (i >= 0) axes[side] = dq_normalize(dq_mul(dq_from(s->core.body[i].dq), s->bodies[i].q));
  }
  dquat turn = dq_normalize(dq(1, 0, 0, 0.2)); /* about z */
  j->frame_b = dq_mul(dq_conj(axes[1]), dq_mul(axes[0], dq_mul(j->frame_a, turn)));
  rows_begin(&s->core);
}

TEST(tangent_of_every_row_kind) {
  for (size_t set = 0; set < sizeof row_sets / sizeof *row_sets; ++set) {
    const joint_rows *rows = &row_sets[set];
    for (int k = 0; k < 3; ++k) {
      for (int world = 0; world < 2; ++world) {
        bench *s = bench_new(100 + set, 2);
        direct_joint *j = bench_joint(s, world ? -1 : 0, 1);
        if (rows->points) ball_rows(s, j);
        for (int r = 0; r < 4 && rows->rows[r][1] >= 0; ++r) {
          row(s, j, rows->rows[r][0], rows->rows[r][1], rows->rows[r][2], rows->rows[r][3]);
          if (rows->rows[r][0] == DIRECT_POINT) j->is_point = 1;
        }
        j->stiffness = 50.0, j->damping = 2.0, j->rest = 0.3;
        j->motor = PABD_MOTOR_RATE, j->motor_target = 0.7, j->motor_max = 1e9;
        j->state.limit_active = 1;
        REQUIRE(bench_begin(s, schemes[k]));
        perturb_iterate(s, 0.2);
        if (j->kind[0] == DIRECT_ANGLE) align_axes(s, j);
        double error = tangent_error(s);
        CHECK_MSG(error < 2e-6, "%s, scheme %d, to %s: matrix is off its finite difference by %g", rows->name, k,
                  world ? "the world" : "a body", error);
        bench_free(s);
      }
    }
  }
}

TEST(tangent_of_sticking_contacts) {
  for (int offset = 0; offset < 2; ++offset) {
    bench *s = bench_new(31, 2);
    bench_contact(s, 0, 1, offset ? 0.2 : 0.0);
    bench_contact(s, 0, 1, offset ? 0.2 : 0.0);
    bench_contact(s, 0, -1, 0.0);
    REQUIRE(bench_begin(s, SCHEME_EULER));
    for (int32_t i = 0; i < 2; ++i) {
      body_work *b = &s->core.body[i];
      b->dp = v3_from(draw3(s, 1e-3));
      if (offset) b->dq = quat_make(1, 0, 0, 0); /* rolling of the surface point is exact at the start pose */
    }
    for (int32_t k = 0; k < 3; ++k) s->core.contact[k].reference = 10.0; /* all closed */
    CHECK_NEAR(tangent_error(s), 0, 2e-6);
    for (int32_t k = 0; k < 3; ++k) CHECK(s->core.contact[k].state == CONTACT_STICK);
    bench_free(s);
  }
}

/* Gauss with partial pivoting. */
static void solve_dense(double *a, double *b, int n) {
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int r = k + 1; r < n; ++r)
      if (fabs(a[r * n + k]) > fabs(a[pivot * n + k])) pivot = r;
    for (int c = 0; c < n; ++c) {
      double t = a[k * n + c];
      a[k * n + c] = a[pivot * n + c], a[pivot * n + c] = t;
    }
    double t = b[k];
    b[k] = b[pivot], b[pivot] = t;
    for (int r = k + 1; r < n; ++r) {
      double f = a[r * n + k] / a[k * n + k];
      for (int c = k; c < n; ++c) a[r * n + c] -= f * a[k * n + c];
      b[r] -= f * b[k];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    for (int c = k + 1; c < n; ++c) b[k] -= a[k * n + c] * b[c];
    b[k] /= a[k * n + k];
  }
}

/* Largest difference of the eliminated solution from the dense one, relative to the largest of its node's entries. */
static double elimination_error(bench *s) {
  core *w = &s->core;
  int start[MAX_BODIES + MAX_JOINTS];
  double expected[MAX_UNKNOWNS] = {0}, worst = 0.0;
  assemble(w);
  int n = dense(w, matrix, expected, start);
  solve_dense(matrix, expected, n);
  eliminate(w);
  for (int32_t x = 0; x < w->island->order.node_count; ++x) {
    int32_t p = w->position[x];
    double size = 1e-12, error = 0.0;
    for (int u = 0; u < w->size[p]; ++u) {
      size = fmax(size, fabs(expected[start[x] + u]));
      error = fmax(error, fabs(expected[start[x] + u] - w->rhs[p].r[u]));
    }
    worst = fmax(worst, error / size);
  }
  return worst;
}

TEST(elimination_of_a_tree) {
  bench *s = bench_new(55, 6);
  static const int parent[] = {-1, 0, 0, 1, 1, 4};
  for (int32_t i = 0; i < 6; ++i) {
    direct_joint *j = bench_joint(s, parent[i], i);
    ball_rows(s, j);
    if (i % 2) row(s, j, DIRECT_DIRECTION, DIRECT_HARD, 0, 2), row(s, j, DIRECT_DIRECTION, DIRECT_HARD, 1, 2);
    if (i == 3) row(s, j, DIRECT_ANGLE, DIRECT_SPRING, 2, 0), j->stiffness = 10;
  }
  REQUIRE(bench_begin(s, SCHEME_MOMENTUM));
  for (int32_t k = 0; k < 6; ++k) CHECK(!s->island.order.cut[k]);
  perturb_iterate(s, 0.1);
  CHECK_NEAR(elimination_error(s), 0, 1e-9);
  bench_free(s);
}

TEST(elimination_of_loops_with_contacts) {
  bench *s = bench_new(56, 5);
  static const int ends[][2] = {{-1, 0}, {0, 1}, {1, 2}, {2, 3}, {3, 4}, {-1, 4}, {1, 3}};
  int32_t count = (int32_t)(sizeof ends / sizeof *ends);
  for (int32_t k = 0; k < count; ++k) {
    direct_joint *j = bench_joint(s, ends[k][0], ends[k][1]);
    ball_rows(s, j);
    if (k == 2) row(s, j, DIRECT_DIRECTION, DIRECT_HARD, 0, 2), row(s, j, DIRECT_DIRECTION, DIRECT_HARD, 1, 2);
  }
  bench_contact(s, 0, 3, 0.0);
  bench_contact(s, 0, 3, 0.0);
  bench_contact(s, 2, -1, 0.0);
  REQUIRE(bench_begin(s, SCHEME_EULER));
  int32_t cuts = 0;
  for (int32_t k = 0; k < count; ++k) cuts += s->island.order.cut[k] != 0;
  CHECK_INT(cuts, 2); /* seven joints, five bodies */
  perturb_iterate(s, 0.05);
  CHECK_NEAR(elimination_error(s), 0, 1e-8);
  bench_free(s);
}

TEST(elimination_of_a_doubled_joint) { /* twice the same hinge: singular but for the proximal term */
  bench *s = bench_new(57, 2);
  for (int k = 0; k < 2; ++k) {
    direct_joint *j = bench_joint(s, 0, 1);
    ball_rows(s, j);
    row(s, j, DIRECT_DIRECTION, DIRECT_HARD, 0, 2), row(s, j, DIRECT_DIRECTION, DIRECT_HARD, 1, 2);
    if (k) {
      s->joints[1].anchor_a = s->joints[0].anchor_a, s->joints[1].anchor_b = s->joints[0].anchor_b;
      s->joints[1].frame_a = s->joints[0].frame_a, s->joints[1].frame_b = s->joints[0].frame_b;
    }
  }
  REQUIRE(bench_begin(s, SCHEME_EULER));
  CHECK_INT(s->island.order.cut[0] + s->island.order.cut[1], 1);
  assemble(&s->core);
  eliminate(&s->core);
  /* the step of the bodies satisfies the linearized rows, though the forces in the doubled rows are not unique */
  int start[MAX_BODIES + MAX_JOINTS];
  double right[MAX_UNKNOWNS] = {0};
  core *w = &s->core;
  double x[MAX_UNKNOWNS] = {0};
  for (int32_t node = 0, n = 0; node < 4; ++node)
    for (int u = 0; u < w->size[w->position[node]]; ++u) x[n++] = w->rhs[w->position[node]].r[u];
  assemble(w);
  int n = dense(w, matrix, right, start);
  for (int r = 0; r < n; ++r) {
    double sum = -right[r], scale = fabs(right[r]) + 1e-9;
    for (int c = 0; c < n; ++c) sum += matrix[r * n + c] * x[c], scale = fmax(scale, fabs(matrix[r * n + c] * x[c]));
    CHECK_NEAR(sum / scale, 0, 1e-5);
  }
  bench_free(s);
}

TEST(tree_path_equals_the_general_one) {
  static const int parent[] = {1, 4, 4, 4, 5, -1}; /* children first */
  for (int free_root = 0; free_root < 2; ++free_root) {
    for (int k = 0; k < 3; ++k) {
      bench *s[2];
      for (int path = 0; path < 2; ++path) {
        s[path] = bench_new(60, 6);
        bench *t = s[path];
        for (int32_t i = 0; i < 6; ++i) {
          t->tree_parent[i] = parent[i], t->tree_joint[i] = -1;
          if (parent[i] < 0 && free_root) continue;
          t->tree_joint[i] = t->island.joint_count;
          if (parent[i] < 0) t->tree_parent[i] = 6;
          /* some joints with the child as a */
          direct_joint *j = i % 2 && parent[i] >= 0 ? bench_joint(t, i, parent[i]) : bench_joint(t, parent[i], i);
          ball_rows(t, j);
        }
        t->island.is_tree = path;
        t->island.tree_parent = t->tree_parent, t->island.tree_joint = t->tree_joint;
        REQUIRE(bench_begin(t, schemes[k]));
        perturb_iterate(t, 0.2);
        if (path)
          tree_solve(&t->core);
        else
          rows_solve(&t->core);
      }
      for (int32_t i = 0; i < 6; ++i) {
        const body_work *a = &s[0]->core.body[i], *b = &s[1]->core.body[i];
        CHECK_NEAR(v3_norm(v3_sub(a->step, b->step)), 0, 1e-9 * (1 + v3_norm(a->step)));
        CHECK_NEAR(v3_norm(v3_sub(a->turn, b->turn)), 0, 1e-9 * (1 + v3_norm(a->turn)));
        if (s[1]->tree_joint[i] < 0) continue;
        const joint_work *t = &s[0]->core.joint[s[1]->tree_joint[i]];
        const tree_work *u = &s[1]->core.tree[i];
        vec3 general = v3(t->row[0].lambda, t->row[1].lambda, t->row[2].lambda);
        CHECK_NEAR(v3_norm(v3_sub(general, v3_scale(u->sign, u->force))), 0, 1e-8 * (1 + v3_norm(general)));
      }
      bench_free(s[0]), bench_free(s[1]);
    }
  }
}
