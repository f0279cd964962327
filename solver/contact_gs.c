/* Coloured contact-wise Gauss-Seidel with soft steps and relax passes: our own sequential impulse, in velocities.
 *
 * A frame: manifolds are coloured greedily in row order (a movable body has at most one manifold per color), sorted by
 * color and point count and packed into groups of LANES manifolds, one manifold a lane. A substep: v* = v + h f/m plus
 * the velocity change that the impulses of the substep before had made (their warm start); a soft, frictionless pass
 * that removes part of the overlap; poses; a relax pass without bias, with friction, at the new arms, gaps and
 * effective masses, so that the push-out leaves no velocity behind. Small classes at rest take more of both, with
 * friction in the soft passes as well and anchored where the contact last slid: else tall structures sway and creep.
 * Joints are rows of the same passes, solved one after the other ahead of the contacts. Soft constraint as in Catto,
 * "Soft constraints" (2011) and "Solver2D" (2024). State between substeps is (v, L): L is kept by the rotation.
 *
 * Invariant: lanes and groups of one color share no movable body, so neither the number of threads nor of lanes changes
 * a bit. */
#include <assert.h>
#include <omp.h>
#include <stdlib.h>

#include "lanes.h"
#include "restitution.h"
#include "state.h"

enum {
  COLORS = 24, /* then the serial overflow */
  COLOR_SERIAL = COLORS,
  BUCKETS = 8 * (COLORS + 1), /* color, round or flat, points */
  POINTS = 4,
  SERIAL_BODIES = 700 /* fewer are done by one thread: the barriers after each color would cost more than they share */
};

/* Layout of a group in the pool, in vectors. Header, then `points` blocks. */
enum {
  G_NORMAL = 0,  /* 3, from b to a */
  G_TANGENT = 3, /* 3; the second one is normal x tangent */
  G_MU = 6,
  G_FIXED = 7, /* 1 where one of the bodies cannot move: stiffer */
  G_RESTITUTION = 8,
  G_HEADER = 9,
  P_ARM_A = 0,     /* 3: core of a about its center, world; turned along with the body */
  P_ARM_B = 3,     /* 3 */
  P_GAP = 6,       /* m */
  P_NORMAL = 7,    /* N s: normal impulse */
  P_TANGENT = 8,   /* 2, N s */
  P_FLAT = 10,     /* size of a block of a flat group */
  P_OFFSET_A = 10, /* m: round shapes, contact point = core - offset_a n */
  P_OFFSET_B = 11, /* m: core + offset_b n */
  P_REBOUND = 12,  /* m/s: restitution times impact speed, owed at the end of the substep; 0: none */
  P_ROUND = 13
};

/* Planar arrays of the bodies of the class, rows = local index. */
enum {
  B_POS = 0,          /* 3 */
  B_ROT = 3,          /* 4 */
  B_STAR = 7,         /* 3, m/s: v* */
  B_SPIN_STAR = 10,   /* 3, kg m^2/s: L* */
  B_CHANGE = 13,      /* 3, m/s: v - v* at the end of the substep before */
  B_SPIN_CHANGE = 16, /* 3 */
  B_INERTIA = 19,     /* 3 */
  B_INV_INERTIA = 22, /* 3 */
  B_FALL = 25,        /* 3, m/s^2: gravity and applied force over mass */
  B_TORQUE = 28,      /* 3 */
  B_COUNT = 31
};

/* Velocity record of a body: v, 1/m, w, -; inverse inertia (world) xx yy zz xy xz yz, -, -. One cache line in float. */
enum { RECORD = 16, R_INERTIA = 8, MOTION = 8 };

typedef struct gs_group {
  int32_t at;                       /* first vector in the pool */
  int32_t points;                   /* blocks: the most of its lanes */
  int32_t used;                     /* lanes in use */
  int32_t block;                    /* vectors a block: P_FLAT or P_ROUND */
  int32_t slip;                     /* first vector in `slip`: 2 a block */
  int32_t a[LANES], b[LANES];       /* local bodies */
  int32_t row[LANES], count[LANES]; /* first contact row and how many */
} gs_group;

typedef struct gs_softness { /* of one kind of contact: velocity bias per overlap, scale of mass, scale of impulse */
  real rate, mass_scale, impulse_scale;
} gs_softness;

typedef struct gs_joint { /* work of one bond row */
  int32_t bond, a, b;
  vec3 impulse; /* N s or N m s on a, world; distance rows: x along the line */
  vec3 arm_a, arm_b, axis, error;
} gs_joint;

typedef struct gs_state {
  void *memory;
  /* sizes of creation */
  int32_t body_capacity, contact_capacity, group_capacity, pool_capacity, slip_capacity, bond_capacity;
  /* bodies: local indices 0 .. movable - 1, then from `fixed_first` the immovable ones, then two spare records */
  int32_t movable, movable_padded, fixed_first, fixed_count, idle, world;
  int32_t *local;     /* [body_count] local index of a body */
  uint32_t *colors;   /* [body_capacity] colors taken */
  uint8_t *isotropic; /* [body_capacity/LANES] all inertia tensors of the block are multiples of one */
  real *record;       /* [body_capacity][RECORD] */
  real *motion;       /* [body_capacity][MOTION] displacement and rotation vector of this substep: d, -, theta, - */
  real *body;         /* [B_COUNT][body_capacity] */
  real *joint_share;  /* [body_capacity][MOTION] what joints have added in this substep: to v, -, to L, - */
  /* manifolds of the frame */
  int32_t *first, *count, *order;
  uint8_t *key;
  gs_group *group;
  lanes *pool;
  lanes *slip; /* m: how far the bodies have slipped along the tangents since the contact last slid */
  int32_t group_count, color_first[COLORS + 2], round_first[COLORS + 2];
  int32_t has_restitution;
  gs_joint *joint;
  int32_t joint_count;
  gs_softness soft[2], soft_joint;
  real anchor_rate;      /* 1/s */
  vec3 gravity;          /* m/s^2 */
  real bounce_threshold; /* m/s */
  real h, pushout_speed; /* s, m/s */
  int32_t point_count;
} gs_state;

/* -- memory
 * -------------------------------------------------------------------------------------------------------------------
 */

static size_t carve(gs_state *g, char *base, int32_t body_count) {
  int sim_has_joints = g->bond_capacity > 1;
  size_t at = 0;
#define CARVE(member, type, rows)                         \
  {                                                       \
    if (base) g->member = (type *)(void *)(base + at);    \
    at += (sizeof(type) * (size_t)(rows) + 63) / 64 * 64; \
  }
  CARVE(local, int32_t, body_count + 1)
  CARVE(colors, uint32_t, g->body_capacity)
  CARVE(isotropic, uint8_t, g->body_capacity / LANES + 1)
  CARVE(record, real, (size_t)g->body_capacity * RECORD)
  CARVE(motion, real, (size_t)g->body_capacity * MOTION)
  CARVE(joint_share, real, sim_has_joints ? (size_t)g->body_capacity * MOTION : 1)
  CARVE(body, real, (size_t)g->body_capacity * B_COUNT)
  CARVE(first, int32_t, g->contact_capacity)
  CARVE(count, int32_t, g->contact_capacity)
  CARVE(order, int32_t, g->contact_capacity)
  CARVE(key, uint8_t, g->contact_capacity)
  CARVE(group, gs_group, g->group_capacity)
  CARVE(pool, lanes, g->pool_capacity)
  CARVE(slip, lanes, g->slip_capacity)
  CARVE(joint, gs_joint, g->bond_capacity)
#undef CARVE
  return at;
}

pabd_status pabd_contact_gs_create(pabd_sim *sim) {
  if (sim->params.global_step != PABD_STEP_CONTACT_GS && sim->params.global_step != PABD_STEP_AUTO) return PABD_OK;
  gs_state *g = calloc(1, sizeof *g);
  if (!g) return PABD_ERR_MEMORY;
  sim->gs = g;
  int32_t body_count = sim->view.body_count;
  g->body_capacity = (body_count + 3 * LANES) / LANES * LANES;
  g->contact_capacity = sim->capacity_contact;
  g->bond_capacity = sim->view.bond_count + 1;
  /* A color's flat and its round manifolds each leave at most one group that is not full. Lanes of a group are sorted
   * by points, so the padding of all groups of a run together is below one group of four points. */
  int32_t partial = 2 * (COLORS + 1), most = g->contact_capacity < partial ? g->contact_capacity : partial;
  g->group_capacity = g->contact_capacity / LANES + most + 1;
  g->pool_capacity = (g->contact_capacity / LANES + 1) * (G_HEADER + P_ROUND) + most * (G_HEADER + POINTS * P_ROUND);
  g->slip_capacity = 2 * (g->contact_capacity / LANES + 1 + most * POINTS);
  size_t bytes = carve(g, NULL, body_count);
  g->memory = aligned_alloc(64, bytes);
  if (!g->memory) return PABD_ERR_MEMORY; /* pabd_sim_destroy frees g */
  memset(g->memory, 0, bytes);
  carve(g, g->memory, body_count);
  sim->stats.bytes += (int64_t)bytes;
  return PABD_OK;
}

void pabd_contact_gs_destroy(pabd_sim *sim) {
  gs_state *g = sim->gs;
  if (!g) return;
  free(g->memory);
  free(g);
  sim->gs = NULL;
}

/* -- bodies
 * -------------------------------------------------------------------------------------------------------------------
 */

static real *plane(const gs_state *g, int32_t field) {
  return g->body + (size_t)field * (size_t)g->body_capacity;
}
static void put3(const gs_state *g, int32_t field, int32_t i, vec3 v) {
  plane(g, field)[i] = v.x, plane(g, field + 1)[i] = v.y, plane(g, field + 2)[i] = v.z;
}
static vec3 get3(const gs_state *g, int32_t field, int32_t i) {
  return v3(plane(g, field)[i], plane(g, field + 1)[i], plane(g, field + 2)[i]);
}
static quat get_rot(const gs_state *g, int32_t i) {
  return quat_make(plane(g, B_ROT)[i], plane(g, B_ROT + 1)[i], plane(g, B_ROT + 2)[i], plane(g, B_ROT + 3)[i]);
}
static void put_rot(const gs_state *g, int32_t i, quat q) {
  plane(g, B_ROT)[i] = q.w, plane(g, B_ROT + 1)[i] = q.x, plane(g, B_ROT + 2)[i] = q.y, plane(g, B_ROT + 3)[i] = q.z;
}
LANES_FN lanes block_get(const gs_state *g, int32_t field, int32_t i) {
  return *(const lanes *)(const void *)(g->body + (size_t)field * (size_t)g->body_capacity + i);
}
LANES_FN void block_put(const gs_state *g, int32_t field, int32_t i, lanes a) {
  *(lanes *)(void *)(g->body + (size_t)field * (size_t)g->body_capacity + i) = a;
}
LANES_FN lanes3 block_get3(const gs_state *g, int32_t field, int32_t i) {
  return l3(block_get(g, field, i), block_get(g, field + 1, i), block_get(g, field + 2, i));
}
LANES_FN void block_put3(const gs_state *g, int32_t field, int32_t i, lanes3 a) {
  block_put(g, field, i, a.x), block_put(g, field + 1, i, a.y), block_put(g, field + 2, i, a.z);
}

static void put_record(const gs_state *g, int32_t i, vec3 v, real inv_mass, vec3 w, sym3 inv_inertia) {
  real *r = g->record + (size_t)i * RECORD;
  r[0] = v.x, r[1] = v.y, r[2] = v.z, r[3] = inv_mass, r[4] = w.x, r[5] = w.y, r[6] = w.z, r[7] = R(0);
  r[8] = inv_inertia.xx, r[9] = inv_inertia.yy, r[10] = inv_inertia.zz;
  r[11] = inv_inertia.xy, r[12] = inv_inertia.xz, r[13] = inv_inertia.yz, r[14] = r[15] = R(0);
}

static void prepare_bodies(pabd_sim *sim, gs_state *g, const pabd_range *range) {
  const pabd_view *v = &sim->view;
  g->movable = range->body_count;
  g->movable_padded = (range->body_count + LANES - 1) / LANES * LANES;
  g->fixed_first = g->movable_padded;
  g->fixed_count = v->body_count - sim->stats.dynamic_count;
  g->idle = g->fixed_first + g->fixed_count; /* partner of unused lanes */
  g->world = g->idle + 1;
  assert(g->world < g->body_capacity);
  sym3 none = sym3_make(R(0), R(0), R(0), R(0), R(0), R(0));
  vec3 zero = v3(R(0), R(0), R(0));
#pragma omp for schedule(static)
  for (int32_t k = 0; k < g->movable_padded; ++k) {
    if (k >= g->movable) {
      put_record(g, k, zero, R(0), zero, none);
      for (int32_t f = 0; f < B_COUNT; ++f) plane(g, f)[k] = R(0);
      put_rot(g, k, quat_make(R(1), R(0), R(0), R(0)));
      continue;
    }
    int32_t i = v->body_order[range->body_first + k];
    g->local[i] = k;
    put3(g, B_POS, k, v->pos[i]);
    put_rot(g, k, v->rot[i]);
    put3(g, B_STAR, k, v->vel[i]);
    put3(g, B_SPIN_STAR, k, v->spin[i]);
    put3(g, B_INERTIA, k, v->inertia[i]);
    put3(g, B_INV_INERTIA, k, v->inv_inertia[i]);
    put3(g, B_FALL, k, v3_madd(v->gravity, v->inv_mass[i], v->load_force[i]));
    put3(g, B_TORQUE, k, v->load_torque[i]);
    put_record(g, k, v->vel[i], v->inv_mass[i], v->omega[i], sym3_rotate_diagonal(v->rot[i], v->inv_inertia[i]));
    g->colors[k] = 0;
  }
#pragma omp for schedule(static)
  for (int32_t k = 0; k < g->movable_padded / LANES; ++k) {
    int same = 1;
    for (int32_t i = k * LANES; i < (k + 1) * LANES; ++i) {
      vec3 I = get3(g, B_INERTIA, i);
      same &= real_abs(I.x - I.y) <= R(4) * PABD_EPSILON * I.x && real_abs(I.x - I.z) <= R(4) * PABD_EPSILON * I.x;
    }
    g->isotropic[k] = (uint8_t)same;
  }
#pragma omp single
  {
    for (int32_t k = 0; k < g->fixed_count; ++k) {
      int32_t i = v->body_order[sim->stats.dynamic_count + k], l = g->fixed_first + k;
      g->local[i] = l;
      put_record(g, l, v->vel[i], R(0), v->omega[i], none);
      put3(g, B_POS, l, v->pos[i]);
      put_rot(g, l, v->rot[i]);
      real *m = g->motion + (size_t)l * MOTION;
      vec3 d = v3_scale(g->h, v->vel[i]), turn = v3_scale(g->h, v->omega[i]);
      m[0] = d.x, m[1] = d.y, m[2] = d.z, m[3] = R(0), m[4] = turn.x, m[5] = turn.y, m[6] = turn.z, m[7] = R(0);
    }
    /* a mass of its own keeps unused lanes free of 0/0 */
    put_record(g, g->idle, zero, R(1), zero, none);
    put_record(g, g->world, zero, R(0), zero, none);
    put3(g, B_POS, g->world, zero);
    put_rot(g, g->world, quat_make(R(1), R(0), R(0), R(0)));
    memset(g->motion + (size_t)g->idle * MOTION, 0, 2 * MOTION * sizeof *g->motion);
  }
}

LANES_FN void block_index(int32_t i, int32_t index[LANES]) {
  for (int k = 0; k < LANES; ++k) index[k] = i + k;
}

/* v* = v + h f/m, L* = L + h torque, and the start v* + change, as w at the present rotation. */
LANES_FN void block_begin(const gs_state *g, int32_t i, lanes3 v, lanes3 spin, lanes3 change, lanes3 spin_change,
                          const lanes3 axis[3]) {
  lanes h = lanes_all(g->h);
  v = l3_madd(v, h, block_get3(g, B_FALL, i));
  spin = l3_madd(spin, h, block_get3(g, B_TORQUE, i));
  block_put3(g, B_STAR, i, v);
  block_put3(g, B_SPIN_STAR, i, spin);
  v = l3_add(v, change);
  lanes3 w = lanes_diagonal_mul(axis, block_get3(g, B_INV_INERTIA, i), l3_add(spin, spin_change));
  int32_t index[LANES];
  block_index(i, index);
  lanes r[8];
  lanes_load8(g->record, RECORD, index, r);
  lanes out[8] = {v.x, v.y, v.z, r[3], w.x, w.y, w.z, r[7]};
  lanes_store8(g->record, RECORD, index, INT32_MAX, 0, LANES, out);
}

LANES_FN lanes_quat block_rot(const gs_state *g, int32_t i) {
  return (lanes_quat){block_get(g, B_ROT, i), block_get(g, B_ROT + 1, i), block_get(g, B_ROT + 2, i),
                      block_get(g, B_ROT + 3, i)};
}

/* First substep: the records hold what the carried impulses do to bodies at rest. */
static void begin_frame(gs_state *g) {
#pragma omp for schedule(static)
  for (int32_t k = 0; k < g->movable_padded / LANES; ++k) {
    int32_t i = k * LANES, index[LANES];
    block_index(i, index);
    lanes r[8];
    lanes_load8(g->record, RECORD, index, r);
    lanes3 axis[3];
    lanes_axes(block_rot(g, i), axis);
    lanes3 spin = lanes_diagonal_mul(axis, block_get3(g, B_INERTIA, i), l3(r[4], r[5], r[6]));
    block_begin(g, i, block_get3(g, B_STAR, i), block_get3(g, B_SPIN_STAR, i), l3(r[0], r[1], r[2]), spin, axis);
  }
}

/* End of a substep (is_end: note the change that the impulses made) and start of the next (is_begin). At the very end v
 * and L go to STAR and SPIN_STAR. */
static void turn_substep(gs_state *g, int is_end, int is_begin, int is_last) {
#pragma omp for schedule(static)
  for (int32_t k = 0; k < g->movable_padded / LANES; ++k) {
    int32_t i = k * LANES, index[LANES];
    block_index(i, index);
    lanes r[8];
    lanes_load8(g->record, RECORD, index, r);
    lanes3 axis[3], v = l3(r[0], r[1], r[2]);
    lanes_axes(block_rot(g, i), axis);
    lanes3 spin = lanes_diagonal_mul(axis, block_get3(g, B_INERTIA, i), l3(r[4], r[5], r[6]));
    lanes3 change = block_get3(g, B_CHANGE, i), spin_change = block_get3(g, B_SPIN_CHANGE, i);
    if (is_end) {
      change = l3_sub(v, block_get3(g, B_STAR, i));
      spin_change = l3_sub(spin, block_get3(g, B_SPIN_STAR, i));
      if (g->joint_count > 0) { /* joints are warm started by their impulses at the new arms */
        lanes share[8];
        lanes_load8(g->joint_share, MOTION, index, share);
        change = l3_sub(change, l3(share[0], share[1], share[2]));
        spin_change = l3_sub(spin_change, l3(share[4], share[5], share[6]));
      }
      block_put3(g, B_CHANGE, i, change);
      block_put3(g, B_SPIN_CHANGE, i, spin_change);
    }
    if (is_begin) block_begin(g, i, v, spin, change, spin_change, axis);
    if (is_last) {
      block_put3(g, B_STAR, i, v);
      block_put3(g, B_SPIN_STAR, i, spin);
    }
  }
}

/* Poses of the next substep. L is kept: w at mid-rotation advances the rotation (two fixed-point passes), w at the new
 * one follows. */
static void integrate(gs_state *g) {
#pragma omp for schedule(static)
  for (int32_t k = 0; k < g->movable_padded / LANES; ++k) {
    int32_t i = k * LANES, index[LANES];
    block_index(i, index);
    lanes r[8], h = lanes_all(g->h), half = lanes_all(R(0.5) * g->h);
    lanes_load8(g->record, RECORD, index, r);
    lanes3 v = l3(r[0], r[1], r[2]), w = l3(r[4], r[5], r[6]), turn = l3_scale(h, w), axis[3];
    lanes_quat q = block_rot(g, i);
    if (!g->isotropic[k]) {
      lanes3 inv_inertia = block_get3(g, B_INV_INERTIA, i), mid = w;
      lanes_axes(q, axis);
      lanes3 spin = lanes_diagonal_mul(axis, block_get3(g, B_INERTIA, i), w);
      for (int pass = 0; pass < 2; ++pass) {
        lanes_axes(lanes_quat_normalize(lanes_quat_mul(lanes_quat_exp(l3_scale(half, mid)), q)), axis);
        mid = lanes_diagonal_mul(axis, inv_inertia, spin);
      }
      turn = l3_scale(h, mid);
      q = lanes_quat_normalize(lanes_quat_mul(lanes_quat_exp(turn), q));
      lanes_axes(q, axis);
      w = lanes_diagonal_mul(axis, inv_inertia, spin);
      lanes_sym3 inverse = lanes_diagonal(axis, inv_inertia);
      lanes tensor[8] = {inverse.xx, inverse.yy, inverse.zz,      inverse.xy,
                         inverse.xz, inverse.yz, lanes_all(R(0)), lanes_all(R(0))};
      lanes_store8(g->record + R_INERTIA, RECORD, index, INT32_MAX, 0, LANES, tensor);
      lanes out[8] = {r[0], r[1], r[2], r[3], w.x, w.y, w.z, r[7]};
      lanes_store8(g->record, RECORD, index, INT32_MAX, 0, LANES, out);
    } else {
      q = lanes_quat_normalize(lanes_quat_mul(lanes_quat_exp(turn), q));
    }
    lanes3 d = l3_scale(h, v);
    block_put3(g, B_POS, i, l3_add(block_get3(g, B_POS, i), d));
    block_put(g, B_ROT, i, q.w), block_put(g, B_ROT + 1, i, q.x);
    block_put(g, B_ROT + 2, i, q.y), block_put(g, B_ROT + 3, i, q.z);
    lanes m[8] = {d.x, d.y, d.z, lanes_all(R(0)), turn.x, turn.y, turn.z, lanes_all(R(0))};
    lanes_store8(g->motion, MOTION, index, INT32_MAX, 0, LANES, m);
  }
  /* kinematic bodies, for joints that hang on them */
#pragma omp single
  for (int32_t k = g->fixed_first; k < g->fixed_first + g->fixed_count && g->joint_count > 0; ++k) {
    const real *m = g->motion + (size_t)k * MOTION;
    put3(g, B_POS, k, v3_add(get3(g, B_POS, k), v3(m[0], m[1], m[2])));
    put_rot(g, k, quat_normalize(quat_mul(quat_exp(v3(m[4], m[5], m[6])), get_rot(g, k))));
  }
}

/* -- contacts: groups
 * ----------------------------------------------------------------------------------------------------------- */

/* Manifolds: runs of at most four rows of one pair with one normal. */
static int32_t find_manifolds(const pabd_sim *sim, gs_state *g, const pabd_range *range) {
  const pabd_view *v = &sim->view;
  int32_t stride = v->stride_contact, count = 0, end = range->contact_first + range->contact_count;
  for (int32_t c = range->contact_first; c < end; ++count) {
    int32_t n = 1;
    while (n < POINTS && c + n < end && v->contact_key[c + n] == v->contact_key[c] &&
           v->contact_a[c + n] == v->contact_a[c] && v->contact_b[c + n] == v->contact_b[c] &&
           v->contact_normal[c + n] == v->contact_normal[c] &&
           v->contact_normal[stride + c + n] == v->contact_normal[stride + c] &&
           v->contact_normal[2 * stride + c + n] == v->contact_normal[2 * stride + c])
      ++n;
    g->first[count] = c;
    g->count[count] = n;
    c += n;
  }
  return count;
}

/* Greedy coloring in row order (contacts with immovable bodies from the last color down, so that they are solved last
 * and heavy loads do not end in the ground), then a counting sort into buckets of (color, flat or round, points
 * descending), then groups. */
static void make_groups(pabd_sim *sim, gs_state *g, const pabd_range *range) {
  const pabd_view *v = &sim->view;
  int32_t count = find_manifolds(sim, g, range), bucket_first[BUCKETS + 1] = {0}, next[BUCKETS];
  uint32_t all_used = 0;
  for (int32_t m = 0; m < count; ++m) {
    int32_t c = g->first[m], a = g->local[v->contact_a[c]], b = g->local[v->contact_b[c]];
    uint32_t taken = (a < g->movable ? g->colors[a] : 0u) | (b < g->movable ? g->colors[b] : 0u);
    uint32_t free_colors = ~taken & ((1u << COLORS) - 1u);
    int is_ground = a >= g->movable || b >= g->movable;
    int32_t color = !free_colors ? COLOR_SERIAL
                    : is_ground  ? 31 - __builtin_clz(free_colors)
                                 : __builtin_ctz(free_colors);
    if (free_colors) {
      uint32_t bit = 1u << color;
      all_used |= bit;
      if (a < g->movable) g->colors[a] |= bit;
      if (b < g->movable) g->colors[b] |= bit;
    }
    int is_round = v->contact_offset_a[c] != R(0) || v->contact_offset_b[c] != R(0) || v->contact_restitution[c] > R(0);
    g->key[m] = (uint8_t)(8 * color + 4 * is_round + (POINTS - g->count[m]));
    ++bucket_first[g->key[m] + 1];
  }
  for (int32_t k = 0; k < BUCKETS; ++k) {
    next[k] = bucket_first[k];
    bucket_first[k + 1] += bucket_first[k];
  }
  for (int32_t m = 0; m < count; ++m) g->order[next[g->key[m]]++] = m;

  g->group_count = 0;
  int32_t at = 0, slip = 0;
  for (int32_t color = 0; color <= COLORS; ++color) {
    g->color_first[color] = g->group_count;
    for (int32_t is_round = 0; is_round < 2; ++is_round) {
      if (is_round) g->round_first[color] = g->group_count;
      int32_t k = bucket_first[8 * color + 4 * is_round], end = bucket_first[8 * color + 4 * is_round + 4];
      for (; k < end; k += LANES) {
        gs_group *group = &g->group[g->group_count++];
        group->at = at;
        group->slip = slip;
        group->used = end - k < LANES ? end - k : LANES;
        group->block = is_round ? P_ROUND : P_FLAT;
        group->points = g->count[g->order[k]];
        for (int32_t l = 0; l < LANES; ++l)
          group->row[l] = l < group->used ? g->order[k + l] : -1; /* a manifold, for now */
        at += G_HEADER + group->points * group->block;
        slip += 2 * group->points;
      }
    }
  }
  g->color_first[COLORS + 1] = g->group_count;
  assert(g->group_count <= g->group_capacity && at <= g->pool_capacity && slip <= g->slip_capacity);
  sim->stats.colors = __builtin_popcount(all_used);
  sim->stats.color_overflow = bucket_first[BUCKETS] - bucket_first[8 * COLOR_SERIAL];
}

LANES_FN lanes3 lanes_rotate(const lanes3 axis[3], lanes3 v) {
  return l3_madd(l3_madd(l3_scale(v.x, axis[0]), v.y, axis[1]), v.z, axis[2]);
}

/* Copies the rows of a group's manifolds into its lanes; unused lanes and points get a gap that never closes. */
static void fill_group(const pabd_sim *sim, const gs_state *g, gs_group *group, real unscale) {
  const pabd_view *v = &sim->view;
  int32_t stride = v->stride_contact;
  lanes *vectors = g->pool + group->at;
  memset(vectors, 0, sizeof *vectors * (size_t)(G_HEADER + group->points * group->block));
  real(*header)[LANES] = (real(*)[LANES])(void *)vectors;
  real(*slip)[LANES] = (real(*)[LANES])(void *)(g->slip + group->slip);
  memset(slip, 0, sizeof *slip * (size_t)(2 * group->points));
  real rot[2][4][LANES] __attribute__((aligned(64))) = {{{0}}};
  for (int32_t k = 0; k < group->points; ++k) vectors[G_HEADER + k * group->block + P_GAP] = lanes_all(R(1e30));
  for (int32_t l = 0; l < LANES; ++l) {
    int32_t m = group->row[l];
    if (m < 0) {
      group->a[l] = group->b[l] = g->idle;
      group->count[l] = 0;
      continue;
    }
    int32_t c = g->first[m], a = g->local[v->contact_a[c]], b = g->local[v->contact_b[c]];
    group->row[l] = c;
    group->count[l] = g->count[m];
    group->a[l] = a, group->b[l] = b;
    for (int32_t d = 0; d < 3; ++d) {
      header[G_NORMAL + d][l] = v->contact_normal[d * stride + c];
      header[G_TANGENT + d][l] = v->contact_tangent[d * stride + c];
    }
    header[G_MU][l] = v->contact_mu[c];
    header[G_FIXED][l] = a < g->movable && b < g->movable ? R(0) : R(1);
    header[G_RESTITUTION][l] = v->contact_restitution[c];
    quat qa = v->rot[v->contact_a[c]], qb = v->rot[v->contact_b[c]];
    rot[0][0][l] = qa.w, rot[0][1][l] = qa.x, rot[0][2][l] = qa.y, rot[0][3][l] = qa.z;
    rot[1][0][l] = qb.w, rot[1][1][l] = qb.x, rot[1][2][l] = qb.y, rot[1][3][l] = qb.z;
    for (int32_t k = 0; k < g->count[m]; ++k, ++c) {
      real(*p)[LANES] = header + G_HEADER + k * group->block;
      for (int32_t d = 0; d < 3; ++d) {
        p[P_ARM_A + d][l] = v->contact_core_a[d * stride + c];
        p[P_ARM_B + d][l] = v->contact_core_b[d * stride + c];
      }
      p[P_GAP][l] = v->contact_gap[c];
      real scale = g->h * unscale;
      p[P_NORMAL][l] = scale * v->contact_lambda[c];
      p[P_TANGENT][l] = scale * v->contact_lambda[stride + c];
      p[P_TANGENT + 1][l] = scale * v->contact_lambda[2 * stride + c];
      slip[2 * k][l] = v->contact_slip[c];
      slip[2 * k + 1][l] = v->contact_slip[stride + c];
      if (group->block == P_ROUND) {
        p[P_OFFSET_A][l] = v->contact_offset_a[c];
        p[P_OFFSET_B][l] = v->contact_offset_b[c];
      }
    }
  }
  /* cores to world axes */
  for (int32_t side = 0; side < 2; ++side) {
    lanes_quat q;
    memcpy(&q, rot[side], sizeof q);
    lanes3 axis[3];
    lanes_axes(q, axis);
    for (int32_t k = 0; k < group->points; ++k) {
      lanes *p = vectors + G_HEADER + k * group->block + (side ? P_ARM_B : P_ARM_A);
      lanes3 arm = lanes_rotate(axis, l3(p[0], p[1], p[2]));
      p[0] = arm.x, p[1] = arm.y, p[2] = arm.z;
    }
  }
}

/* -- contacts: passes
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct lanes_body {
  lanes3 v, w;
  lanes inv_mass;
  lanes_sym3 inv_inertia;
} lanes_body;

LANES_FN lanes_body load_body(const gs_state *g, const int32_t *index) {
  lanes r[8], t[8];
  lanes_load8(g->record, RECORD, index, r);
  lanes_load8(g->record + R_INERTIA, RECORD, index, t);
  return (lanes_body){l3(r[0], r[1], r[2]), l3(r[4], r[5], r[6]), r[3], {t[0], t[1], t[2], t[3], t[4], t[5]}};
}
LANES_FN void store_body(const gs_state *g, const int32_t *index, const lanes_body *b, int first, int end) {
  lanes r[8] = {b->v.x, b->v.y, b->v.z, b->inv_mass, b->w.x, b->w.y, b->w.z, lanes_all(R(0))};
  lanes_store8(g->record, RECORD, index, g->movable, first, end, r);
}

/* Adds impulse p n at the contact; J_a = I_a^-1 (r_a x n). */
LANES_FN void apply(lanes_body *a, lanes_body *b, lanes p, lanes3 n, lanes3 Ja, lanes3 Jb) {
  a->v = l3_madd(a->v, p * a->inv_mass, n);
  a->w = l3_madd(a->w, p, Ja);
  b->v = l3_madd(b->v, -(p * b->inv_mass), n);
  b->w = l3_madd(b->w, -p, Jb);
}

LANES_FN lanes3 get_lanes3(const lanes *p) {
  return l3(p[0], p[1], p[2]);
}

/* Keeps the new value in lanes first .. end only (serial groups work lane by lane). */
LANES_FN lanes keep(lanes_mask active, int is_serial, lanes value, lanes before) {
  return is_serial ? lanes_select(active, value, before) : value;
}
LANES_FN lanes_mask active_lanes(int first, int end) {
  lanes_mask mask;
  for (int l = 0; l < LANES; ++l) mask[l] = l >= first && l < end ? -1 : 0;
  return mask;
}

/* Contact points of a and b about the centers. */
LANES_FN void contact_arms(const lanes *p, lanes3 n, int is_round, lanes3 *ra, lanes3 *rb) {
  *ra = get_lanes3(p + P_ARM_A);
  *rb = get_lanes3(p + P_ARM_B);
  if (is_round) {
    *ra = l3_madd(*ra, -p[P_OFFSET_A], n);
    *rb = l3_madd(*rb, p[P_OFFSET_B], n);
  }
}

/* Carried impulses on bodies at rest: the change of velocity they stand for. */
LANES_FN void warm_lanes(const gs_state *g, gs_group *group, int is_round, int first, int end) {
  lanes *vectors = g->pool + group->at;
  lanes_body a = load_body(g, group->a), b = load_body(g, group->b);
  lanes3 n = get_lanes3(vectors + G_NORMAL), t1 = get_lanes3(vectors + G_TANGENT), t2 = l3_cross(n, t1);
  for (int32_t k = 0; k < group->points; ++k) {
    const lanes *p = vectors + G_HEADER + k * (is_round ? P_ROUND : P_FLAT);
    lanes3 ra, rb, f = l3_madd(l3_madd(l3_scale(p[P_NORMAL], n), p[P_TANGENT], t1), p[P_TANGENT + 1], t2);
    contact_arms(p, n, is_round, &ra, &rb);
    apply(&a, &b, lanes_all(R(1)), f, lanes_sym3_mul(a.inv_inertia, l3_cross(ra, f)),
          lanes_sym3_mul(b.inv_inertia, l3_cross(rb, f)));
  }
  store_body(g, group->a, &a, first, end);
  store_body(g, group->b, &b, first, end);
}

/* Friction: both tangents at once by one scalar step, then back onto the cone, so that it opposes the slip. (The
 * inverse of the 2x2 matrix turns it aside: a box that slides along its side then goes 11 % too far.) Step: no
 * eigenvalue is above max(K11, K22) + |K12|. */
LANES_FN void friction(lanes_body *a, lanes_body *b, lanes *p, lanes3 ra, lanes3 rb, lanes3 t1, lanes3 t2, lanes masses,
                       lanes limit, lanes *slip, lanes rate, lanes_mask active, int is_serial) {
  lanes3 qa1 = l3_cross(ra, t1), qb1 = l3_cross(rb, t1), qa2 = l3_cross(ra, t2), qb2 = l3_cross(rb, t2);
  lanes3 Ja1 = lanes_sym3_mul(a->inv_inertia, qa1), Jb1 = lanes_sym3_mul(b->inv_inertia, qb1);
  lanes3 Ja2 = lanes_sym3_mul(a->inv_inertia, qa2), Jb2 = lanes_sym3_mul(b->inv_inertia, qb2);
  lanes K11 = masses + (l3_dot(qa1, Ja1) + l3_dot(qb1, Jb1)), K22 = masses + (l3_dot(qa2, Ja2) + l3_dot(qb2, Jb2));
  lanes K12 = l3_dot(qa1, Ja2) + l3_dot(qb1, Jb2);
  lanes3 apart = l3_sub(a->v, b->v);
  lanes s1 = l3_dot(t1, apart) + (l3_dot(qa1, a->w) - l3_dot(qb1, b->w));
  lanes s2 = l3_dot(t2, apart) + (l3_dot(qa2, a->w) - l3_dot(qb2, b->w));
  if (slip) s1 += rate * slip[0], s2 += rate * slip[1];
  lanes step = R(1) / (lanes_max(K11, K22) + lanes_max(K12, -K12));
  lanes b1 = p[P_TANGENT], b2 = p[P_TANGENT + 1], a1 = b1 - step * s1, a2 = b2 - step * s2;
  lanes size = lanes_sqrt(a1 * a1 + a2 * a2);
  lanes_mask slides = size > limit;
  lanes scale = lanes_select(slides, limit / size, lanes_all(R(1)));
  a1 = scale * a1, a2 = scale * a2;
  if (slip) {
    lanes none = lanes_all(R(0));
    slip[0] = keep(active, is_serial, lanes_select(slides, none, slip[0]), slip[0]);
    slip[1] = keep(active, is_serial, lanes_select(slides, none, slip[1]), slip[1]);
  }
  p[P_TANGENT] = keep(active, is_serial, a1, b1);
  p[P_TANGENT + 1] = keep(active, is_serial, a2, b2);
  lanes d1 = a1 - b1, d2 = a2 - b2;
  lanes3 push = l3_madd(l3_scale(d1, t1), d2, t2);
  a->v = l3_madd(a->v, a->inv_mass, push);
  b->v = l3_madd(b->v, -b->inv_mass, push);
  a->w = l3_madd(l3_madd(a->w, d1, Ja1), d2, Ja2);
  b->w = l3_madd(l3_madd(b->w, -d1, Jb1), -d2, Jb2);
}

/* Bias pass, frictionless unless is_rough: P <- max(0, P - ms (v_n + bias)/K - is P). Open: the velocity that just
 * closes the gap. */
LANES_FN void bias_lanes(const gs_state *g, gs_group *group, int is_round, int is_serial, int first, int end,
                         int is_rough) {
  lanes *vectors = g->pool + group->at;
  lanes_body a = load_body(g, group->a), b = load_body(g, group->b);
  lanes3 n = get_lanes3(vectors + G_NORMAL);
  lanes_mask active = active_lanes(first, end), is_fixed = vectors[G_FIXED] > R(0);
  lanes rate = lanes_select(is_fixed, lanes_all(g->soft[1].rate), lanes_all(g->soft[0].rate));
  lanes mass_scale = lanes_select(is_fixed, lanes_all(g->soft[1].mass_scale), lanes_all(g->soft[0].mass_scale));
  lanes impulse_scale =
      lanes_select(is_fixed, lanes_all(g->soft[1].impulse_scale), lanes_all(g->soft[0].impulse_scale));
  lanes inv_h = lanes_all(R(1) / g->h), one = lanes_all(R(1)), none = lanes_all(R(0)),
        slowest = lanes_all(-g->pushout_speed);
  lanes masses = a.inv_mass + b.inv_mass;
  lanes3 t1 = get_lanes3(vectors + G_TANGENT), t2 = l3_cross(n, t1);
  lanes *slip = g->slip + group->slip;
  for (int32_t k = 0; k < group->points; ++k) {
    lanes *p = vectors + G_HEADER + k * (is_round ? P_ROUND : P_FLAT);
    lanes3 ra, rb;
    contact_arms(p, n, is_round, &ra, &rb);
    lanes3 qa = l3_cross(ra, n), qb = l3_cross(rb, n);
    lanes3 Ja = lanes_sym3_mul(a.inv_inertia, qa), Jb = lanes_sym3_mul(b.inv_inertia, qb);
    lanes K = masses + (l3_dot(qa, Ja) + l3_dot(qb, Jb));
    lanes speed = l3_dot(n, l3_sub(a.v, b.v)) + (l3_dot(qa, a.w) - l3_dot(qb, b.w));
    lanes gap = p[P_GAP], before = p[P_NORMAL];
    lanes_mask is_open = gap > none;
    lanes bias = lanes_select(is_open, gap * inv_h, lanes_max(rate * gap, slowest));
    lanes ms = lanes_select(is_open, one, mass_scale), is = lanes_select(is_open, none, impulse_scale);
    lanes after = lanes_max(before - ms * (speed + bias) / K - is * before, none);
    p[P_NORMAL] = keep(active, is_serial, after, before);
    apply(&a, &b, after - before, n, Ja, Jb);
    if (is_rough)
      friction(&a, &b, p, ra, rb, t1, t2, masses, vectors[G_MU] * after, is_round ? NULL : slip + 2 * k,
               lanes_all(g->anchor_rate), active, is_serial);
  }
  store_body(g, group->a, &a, first, end);
  store_body(g, group->b, &b, first, end);
}

/* A turned arm minus the arm, to second order in the rotation vector. */
LANES_FN lanes3 turned(lanes3 turn, lanes3 r) {
  lanes3 once = l3_cross(turn, r);
  return l3_madd(once, lanes_all(R(0.5)), l3_cross(turn, once));
}

/* Gaps and arms follow the motion of the substep. */
LANES_FN void advance_lanes(const gs_state *g, gs_group *group, int is_round, int is_serial, int first, int end,
                            int is_rough) {
  lanes *vectors = g->pool + group->at;
  lanes3 n = get_lanes3(vectors + G_NORMAL);
  lanes_mask active = active_lanes(first, end);
  lanes ma[8], mb[8];
  lanes_load8(g->motion, MOTION, group->a, ma);
  lanes_load8(g->motion, MOTION, group->b, mb);
  lanes3 apart = l3_sub(l3(ma[0], ma[1], ma[2]), l3(mb[0], mb[1], mb[2]));
  lanes3 t1 = get_lanes3(vectors + G_TANGENT), t2 = l3_cross(n, t1);
  lanes *slip = g->slip + group->slip;
  lanes3 turn_a = l3(ma[4], ma[5], ma[6]), turn_b = l3(mb[4], mb[5], mb[6]);
  for (int32_t k = 0; k < group->points; ++k) {
    lanes *p = vectors + G_HEADER + k * (is_round ? P_ROUND : P_FLAT);
    lanes3 ra = get_lanes3(p + P_ARM_A), rb = get_lanes3(p + P_ARM_B), da = turned(turn_a, ra), db = turned(turn_b, rb);
    lanes3 moved = l3_add(apart, l3_sub(da, db));
    p[P_GAP] = keep(active, is_serial, p[P_GAP] + l3_dot(n, moved), p[P_GAP]);
    if (is_rough && !is_round) {
      slip[2 * k] = keep(active, is_serial, slip[2 * k] + l3_dot(t1, moved), slip[2 * k]);
      slip[2 * k + 1] = keep(active, is_serial, slip[2 * k + 1] + l3_dot(t2, moved), slip[2 * k + 1]);
    }
    p[P_ARM_A] = keep(active, is_serial, ra.x + da.x, ra.x);
    p[P_ARM_A + 1] = keep(active, is_serial, ra.y + da.y, ra.y);
    p[P_ARM_A + 2] = keep(active, is_serial, ra.z + da.z, ra.z);
    p[P_ARM_B] = keep(active, is_serial, rb.x + db.x, rb.x);
    p[P_ARM_B + 1] = keep(active, is_serial, rb.y + db.y, rb.y);
    p[P_ARM_B + 2] = keep(active, is_serial, rb.z + db.z, rb.z);
  }
}

/* Relax pass at the new poses: no bias, friction within the cone. is_advance: the first pass of a substep moves arms
 * and gaps. */
LANES_FN void relax_lanes(const gs_state *g, gs_group *group, int is_round, int is_serial, int first, int end,
                          int is_advance, int is_rough) {
  if (is_advance) advance_lanes(g, group, is_round, is_serial, first, end, is_rough);
  lanes *slip = g->slip + group->slip;
  lanes *vectors = g->pool + group->at;
  lanes3 n = get_lanes3(vectors + G_NORMAL), t1 = get_lanes3(vectors + G_TANGENT), t2 = l3_cross(n, t1);
  lanes_mask active = active_lanes(first, end);
  int32_t block = is_round ? P_ROUND : P_FLAT;
  lanes_body a = load_body(g, group->a), b = load_body(g, group->b);
  lanes masses = a.inv_mass + b.inv_mass, mu = vectors[G_MU], inv_h = lanes_all(R(1) / g->h), none = lanes_all(R(0));
  for (int32_t k = 0; k < group->points; ++k) {
    lanes *p = vectors + G_HEADER + k * block;
    lanes3 ra, rb;
    contact_arms(p, n, is_round, &ra, &rb);
    lanes3 qa = l3_cross(ra, n), qb = l3_cross(rb, n);
    lanes3 Ja = lanes_sym3_mul(a.inv_inertia, qa), Jb = lanes_sym3_mul(b.inv_inertia, qb);
    lanes K = masses + (l3_dot(qa, Ja) + l3_dot(qb, Jb));
    lanes speed = l3_dot(n, l3_sub(a.v, b.v)) + (l3_dot(qa, a.w) - l3_dot(qb, b.w));
    lanes before = p[P_NORMAL], after = lanes_max(before - (speed + lanes_max(p[P_GAP], none) * inv_h) / K, none);
    p[P_NORMAL] = keep(active, is_serial, after, before);
    apply(&a, &b, after - before, n, Ja, Jb);

    friction(&a, &b, p, ra, rb, t1, t2, masses, mu * after, is_rough && !is_round ? slip + 2 * k : NULL, none, active,
             is_serial);
  }
  store_body(g, group->a, &a, first, end);
  store_body(g, group->b, &b, first, end);
}

LANES_FN lanes deceleration_lanes(const gs_state *g, lanes3 n, const lanes_body *a, const lanes_body *b) {
  lanes all;
  for (int32_t l = 0; l < LANES; ++l)
    all[l] = bounce_deceleration(g->gravity, v3(n.x[l], n.y[l], n.z[l]), a->inv_mass[l], b->inv_mass[l]);
  return all;
}

/* Rebound speed that each contact will owe: from its normal velocity at the start of a substep, before forces act. */
LANES_FN void approach_lanes(const gs_state *g, gs_group *group, int first, int end) {
  (void)first, (void)end;
  lanes *vectors = g->pool + group->at;
  lanes_body a = load_body(g, group->a), b = load_body(g, group->b);
  lanes3 n = get_lanes3(vectors + G_NORMAL);
  for (int32_t k = 0; k < group->points; ++k) {
    lanes *p = vectors + G_HEADER + k * P_ROUND;
    lanes3 ra, rb;
    contact_arms(p, n, 1, &ra, &rb);
    lanes speed = l3_dot(n, l3_sub(a.v, b.v)) + (l3_dot(l3_cross(ra, n), a.w) - l3_dot(l3_cross(rb, n), b.w));
    lanes deceleration = deceleration_lanes(g, n, &a, &b);
    for (int32_t l = 0; l < LANES; ++l) {
      real e = vectors[G_RESTITUTION][l], rebound = R(0);
      if (e > R(0) && speed[l] < -g->bounce_threshold)
        rebound = e * bounce_impact(speed[l], p[P_GAP][l], deceleration[l], g->h);
      p[P_REBOUND][l] = rebound;
    }
  }
}

/* Restitution: a contact that carried an impulse and came in faster than the threshold leaves at its rebound speed. The
 * impulse of the bounce is not noted: it must not be carried to the next substep. */
LANES_FN void restitution_lanes(const gs_state *g, gs_group *group, int first, int end) {
  lanes *vectors = g->pool + group->at;
  lanes_body a = load_body(g, group->a), b = load_body(g, group->b);
  lanes3 n = get_lanes3(vectors + G_NORMAL);
  lanes masses = a.inv_mass + b.inv_mass, none = lanes_all(R(0));
  for (int32_t k = 0; k < group->points; ++k) {
    const lanes *p = vectors + G_HEADER + k * P_ROUND;
    lanes3 ra, rb;
    contact_arms(p, n, 1, &ra, &rb);
    lanes3 qa = l3_cross(ra, n), qb = l3_cross(rb, n);
    lanes3 Ja = lanes_sym3_mul(a.inv_inertia, qa), Jb = lanes_sym3_mul(b.inv_inertia, qb);
    lanes K = masses + (l3_dot(qa, Ja) + l3_dot(qb, Jb));
    lanes speed = l3_dot(n, l3_sub(a.v, b.v)) + (l3_dot(qa, a.w) - l3_dot(qb, b.w));
    lanes_mask bounces = (p[P_NORMAL] > none) & (p[P_REBOUND] > none);
    lanes deceleration = deceleration_lanes(g, n, &a, &b), leave;
    for (int32_t l = 0; l < LANES; ++l) leave[l] = bounce_leave(p[P_REBOUND][l], p[P_GAP][l], deceleration[l], g->h);
    lanes push = lanes_select(bounces, lanes_max((leave - speed) / K, none), none);
    apply(&a, &b, push, n, Ja, Jb);
  }
  store_body(g, group->a, &a, first, end);
  store_body(g, group->b, &b, first, end);
}

/* A pass over all groups: the serial ones lane by lane, then colors one after the other, groups of a color in any
 * order. */
#define RUN_COLOR_GROUPS(g, first_group, end_group, call)                                     \
  {                                                                                           \
    int32_t color_end = (end_group);                                                          \
    _Pragma("omp for schedule(static)") for (int32_t k = (first_group); k < color_end; ++k) { \
      gs_group *group = &(g)->group[k];                                                       \
      enum { is_serial = 0, first = 0, end = LANES };                                         \
      call;                                                                                   \
    }                                                                                         \
  }
#define RUN_SERIAL_GROUPS(g, first_group, end_group, call)                      \
  _Pragma("omp single") for (int32_t k = (first_group); k < (end_group); ++k) { \
    gs_group *group = &(g)->group[k];                                           \
    enum { is_serial = 1 };                                                     \
    for (int first = 0; first < group->used; ++first) {                         \
      int end = first + 1;                                                      \
      (void)end;                                                                \
      call;                                                                     \
    }                                                                           \
  }
#define RUN_GROUPS(g, flat_call, round_call)                                                              \
  for (int32_t turn = 0; turn <= COLORS; ++turn) {                                                        \
    int32_t color = turn == 0 ? COLOR_SERIAL : turn - 1;                                                  \
    int32_t c0 = (g)->color_first[color], c1 = (g)->round_first[color], c2 = (g)->color_first[color + 1]; \
    if (color < COLORS) {                                                                                 \
      if (c1 > c0) RUN_COLOR_GROUPS(g, c0, c1, flat_call)                                                 \
      if (c2 > c1) RUN_COLOR_GROUPS(g, c1, c2, round_call)                                                \
    } else {                                                                                              \
      if (c1 > c0) RUN_SERIAL_GROUPS(g, c0, c1, flat_call)                                                \
      if (c2 > c1) RUN_SERIAL_GROUPS(g, c1, c2, round_call)                                               \
    }                                                                                                     \
  }

static void warm_pass(gs_state *g) {
  RUN_GROUPS(g, warm_lanes(g, group, 0, first, end), warm_lanes(g, group, 1, first, end))
}
static void bias_pass(gs_state *g, int is_rough) {
  if (is_rough)
    RUN_GROUPS(g, bias_lanes(g, group, 0, is_serial, first, end, 1), bias_lanes(g, group, 1, is_serial, first, end, 1))
  else
    RUN_GROUPS(g, bias_lanes(g, group, 0, is_serial, first, end, 0), bias_lanes(g, group, 1, is_serial, first, end, 0))
}
#define RELAX_GROUPS(g, is_advance, is_rough)                                          \
  RUN_GROUPS(g, relax_lanes(g, group, 0, is_serial, first, end, is_advance, is_rough), \
             relax_lanes(g, group, 1, is_serial, first, end, is_advance, is_rough))
static void relax_pass(gs_state *g, int is_advance, int is_rough) {
  if (is_rough) {
    if (is_advance)
      RELAX_GROUPS(g, 1, 1)
    else
      RELAX_GROUPS(g, 0, 1)
  } else {
    if (is_advance)
      RELAX_GROUPS(g, 1, 0)
    else
      RELAX_GROUPS(g, 0, 0)
  }
}
static void advance_pass(gs_state *g) { /* for runs without relax passes */
  RUN_GROUPS(g, advance_lanes(g, group, 0, is_serial, first, end, 1),
             advance_lanes(g, group, 1, is_serial, first, end, 1))
}
static void approach_pass(gs_state *g) {
  RUN_GROUPS(g, (void)group, approach_lanes(g, group, first, end))
}
static void restitution_pass(gs_state *g) {
  RUN_GROUPS(g, (void)group, restitution_lanes(g, group, first, end))
}

/* -- joints
 * ----------------------------------------------------------------------------------------------------------------------
 */

typedef struct joint_body { /* one end, from and to its record */
  vec3 v, w;
  vec3 dv, dL; /* m/s, kg m^2/s: added since it was loaded */
  real inv_mass;
  sym3 inv_inertia;
} joint_body;

static joint_body load_end(const gs_state *g, int32_t i) {
  const real *r = g->record + (size_t)i * RECORD;
  return (joint_body){v3(r[0], r[1], r[2]),
                      v3(r[4], r[5], r[6]),
                      v3(R(0), R(0), R(0)),
                      v3(R(0), R(0), R(0)),
                      r[3],
                      sym3_make(r[8], r[9], r[10], r[11], r[12], r[13])};
}
static void store_end(const gs_state *g, int32_t i, const joint_body *b) {
  if (i >= g->movable) return;
  real *r = g->record + (size_t)i * RECORD, *share = g->joint_share + (size_t)i * MOTION;
  r[0] = b->v.x, r[1] = b->v.y, r[2] = b->v.z, r[4] = b->w.x, r[5] = b->w.y, r[6] = b->w.z;
  share[0] += b->dv.x, share[1] += b->dv.y, share[2] += b->dv.z;
  share[4] += b->dL.x, share[5] += b->dL.y, share[6] += b->dL.z;
}

/* Arms, axis and error of a row at the present poses. Error: y_a - y_b; directions: rotation vector from v to u. */
static void joint_geometry(const pabd_view *v, const gs_state *g, gs_joint *t) {
  int32_t j = t->bond;
  quat qa = get_rot(g, t->a), qb = get_rot(g, t->b);
  t->arm_a = quat_rotate(qa, v->bond_local_a[j]);
  t->arm_b = quat_rotate(qb, v->bond_local_b[j]);
  if (v->bond_kind[j] == PABD_BOND_DIRECTION) {
    t->error = v3_cross(t->arm_b, t->arm_a);
    t->axis = v3_unit(t->arm_a, v3(R(0), R(0), R(1)));
    return;
  }
  vec3 apart = v3_add(v3_sub(get3(g, B_POS, t->a), get3(g, B_POS, t->b)), v3_sub(t->arm_a, t->arm_b));
  t->error = apart;
  if (v->bond_kind[j] == PABD_BOND_LINE) {
    /* both bodies feel the force at b's point */
    t->axis = quat_rotate(qa, v->bond_axis_local[j]);
    t->arm_a = v3_sub(t->arm_a, apart);
  } else if (v->bond_kind[j] != PABD_BOND_POINT) {
    t->axis = v3_unit(apart, v3(R(0), R(0), R(1)));
  }
}

static void push_end(joint_body *b, vec3 impulse, vec3 moment) {
  vec3 dv = v3_scale(b->inv_mass, impulse);
  b->v = v3_add(b->v, dv);
  b->w = v3_add(b->w, sym3_mul(b->inv_inertia, moment));
  b->dv = v3_add(b->dv, dv);
  b->dL = v3_add(b->dL, moment);
}
static void push_ends(joint_body *a, joint_body *b, const gs_joint *t, int is_angular, vec3 p) {
  vec3 none = v3(R(0), R(0), R(0)), back = v3_neg(p);
  push_end(a, is_angular ? none : p, is_angular ? p : v3_cross(t->arm_a, p));
  push_end(b, is_angular ? none : back, is_angular ? back : v3_cross(t->arm_b, back));
}
static vec3 relative_velocity(const joint_body *a, const joint_body *b, const gs_joint *t, int is_angular) {
  if (is_angular) return v3_sub(a->w, b->w);
  return v3_sub(v3_add(a->v, v3_cross(a->w, t->arm_a)), v3_add(b->v, v3_cross(b->w, t->arm_b)));
}
/* Velocity change along the unit direction e of unit impulses along f. */
static real coupling(const joint_body *a, const joint_body *b, const gs_joint *t, int is_angular, vec3 e, vec3 f) {
  if (is_angular) return v3_dot(e, v3_add(sym3_mul(a->inv_inertia, f), sym3_mul(b->inv_inertia, f)));
  vec3 wa = sym3_mul(a->inv_inertia, v3_cross(t->arm_a, f)), wb = sym3_mul(b->inv_inertia, v3_cross(t->arm_b, f));
  return (a->inv_mass + b->inv_mass) * v3_dot(e, f) + v3_dot(e, v3_add(v3_cross(wa, t->arm_a), v3_cross(wb, t->arm_b)));
}

/* One row block of a joint: bias pass (soft, removes error) or relax pass (rigid, velocities only). */
static void solve_joint(const pabd_sim *sim, const gs_state *g, gs_joint *t, int is_relax) {
  const pabd_view *v = &sim->view;
  int32_t j = t->bond;
  uint32_t kind = v->bond_kind[j];
  joint_body a = load_end(g, t->a), b = load_end(g, t->b);
  gs_softness soft = g->soft_joint;
  if (is_relax) soft.rate = R(0), soft.mass_scale = R(1), soft.impulse_scale = R(0);
  int is_angular = kind == PABD_BOND_DIRECTION;
  if (kind == PABD_BOND_SPRING) {
    if (is_relax) return; /* its force belongs to the end of the substep, which the bias pass has found */
    /* implicit spring and damper: P = -h (k (x + h u) + c u), u the velocity after the impulse */
    real h = g->h, k = v->bond_stiffness[j], c = v->bond_damping[j], x = v3_norm(t->error) - v->bond_rest[j];
    real inverse = h * (c + h * k);
    if (!(inverse > R(0))) return;
    real softness = R(1) / inverse, u = v3_dot(t->axis, relative_velocity(&a, &b, t, 0));
    real K = coupling(&a, &b, t, 0, t->axis, t->axis);
    real change = -(u + h * k * x * softness + softness * t->impulse.x) / (K + softness);
    t->impulse.x += change;
    push_ends(&a, &b, t, 0, v3_scale(change, t->axis));
  } else if (kind == PABD_BOND_DISTANCE) {
    /* tension between bounds; a rope with slack and a strut with a gap may close it within the substep */
    real x = v3_norm(t->error) - v->bond_rest[j], bias = soft.rate * x;
    int is_open = (v->bond_low[j] >= R(0) && x < R(0)) || (v->bond_high[j] <= R(0) && x > R(0));
    if (is_open) bias = x / g->h, soft.mass_scale = R(1), soft.impulse_scale = R(0);
    real u = v3_dot(t->axis, relative_velocity(&a, &b, t, 0)), K = coupling(&a, &b, t, 0, t->axis, t->axis);
    if (!(K > R(0))) return;
    real before = t->impulse.x, after = before - soft.mass_scale * (u + bias) / K - soft.impulse_scale * before;
    /* impulse along the axis = minus tension */
    after = real_clamp(after, -v->bond_high[j] * g->h, -v->bond_low[j] * g->h);
    t->impulse.x = after;
    push_ends(&a, &b, t, 0, v3_scale(after - before, t->axis));
  } else if (kind == PABD_BOND_POINT) {
    vec3 u = relative_velocity(&a, &b, t, 0), bias = v3_scale(soft.rate, t->error);
    vec3 ex = v3(R(1), R(0), R(0)), ey = v3(R(0), R(1), R(0)), ez = v3(R(0), R(0), R(1));
    sym3 K = sym3_make(coupling(&a, &b, t, 0, ex, ex), coupling(&a, &b, t, 0, ey, ey), coupling(&a, &b, t, 0, ez, ez),
                       coupling(&a, &b, t, 0, ex, ey), coupling(&a, &b, t, 0, ex, ez), coupling(&a, &b, t, 0, ey, ez));
    vec3 wanted = sym3_mul(sym3_inverse(K), v3_add(u, bias));
    vec3 change = v3_sub(v3_scale(-soft.mass_scale, wanted), v3_scale(soft.impulse_scale, t->impulse));
    t->impulse = v3_add(t->impulse, change);
    push_ends(&a, &b, t, 0, change);
  } else { /* line and direction: the two rows normal to the axis */
    vec3 e1 = v3_tangent(t->axis), e2 = v3_cross(t->axis, e1), u = relative_velocity(&a, &b, t, is_angular);
    real K11 = coupling(&a, &b, t, is_angular, e1, e1), K22 = coupling(&a, &b, t, is_angular, e2, e2),
         K12 = coupling(&a, &b, t, is_angular, e1, e2);
    real r1 = v3_dot(e1, u) + soft.rate * v3_dot(e1, t->error), r2 = v3_dot(e2, u) + soft.rate * v3_dot(e2, t->error);
    real inv_det = R(1) / (K11 * K22 - K12 * K12);
    vec3 wanted = v3_add(v3_scale((K22 * r1 - K12 * r2) * inv_det, e1), v3_scale((K11 * r2 - K12 * r1) * inv_det, e2));
    vec3 held = v3_madd(t->impulse, -v3_dot(t->axis, t->impulse), t->axis);
    vec3 change = v3_sub(v3_scale(-soft.mass_scale, wanted), v3_scale(soft.impulse_scale, held));
    t->impulse = v3_add(t->impulse, change);
    push_ends(&a, &b, t, is_angular, change);
  }
  store_end(g, t->a, &a);
  store_end(g, t->b, &b);
}

static int is_scalar_row(uint32_t kind) {
  return kind == PABD_BOND_DISTANCE || kind == PABD_BOND_SPRING;
}

static void prepare_joints(const pabd_sim *sim, gs_state *g, const pabd_range *range, real unscale) {
  const pabd_view *v = &sim->view;
  g->joint_count = range->bond_count;
  for (int32_t k = 0; k < range->bond_count; ++k) {
    gs_joint *t = &g->joint[k];
    int32_t j = v->bond_order[range->bond_first + k];
    t->bond = j;
    t->a = v->bond_a[j] < 0 ? g->world : g->local[v->bond_a[j]];
    t->b = g->local[v->bond_b[j]];
    t->impulse = v3_scale(-g->h * unscale, v->bond_lambda[j]); /* lambda > 0 pulls: minus the force on a */
    joint_geometry(v, g, t);
  }
}

/* Warm start: a joint's impulse of the substep before at its present arms. (As a change of velocity per body, like that
 * of contacts, it would keep the old arms: a pendulum then gains 60 % of its energy in 5 s.) */
static void warm_joints(const pabd_sim *sim, gs_state *g) {
  if (g->joint_count == 0) return;
#pragma omp single
  memset(g->joint_share, 0, sizeof *g->joint_share * (size_t)g->movable_padded * MOTION);
#pragma omp single
  for (int32_t k = 0; k < g->joint_count; ++k) {
    gs_joint *t = &g->joint[k];
    joint_geometry(&sim->view, g, t);
    uint32_t kind = sim->view.bond_kind[t->bond];
    joint_body a = load_end(g, t->a), b = load_end(g, t->b);
    push_ends(&a, &b, t, kind == PABD_BOND_DIRECTION,
              is_scalar_row(kind) ? v3_scale(t->impulse.x, t->axis) : t->impulse);
    store_end(g, t->a, &a);
    store_end(g, t->b, &b);
  }
}

static void joint_pass(const pabd_sim *sim, gs_state *g, int is_relax, int is_advance) {
  if (g->joint_count == 0) return;
#pragma omp single
  for (int32_t k = 0; k < g->joint_count; ++k) {
    if (is_advance) joint_geometry(&sim->view, g, &g->joint[k]);
    solve_joint(sim, g, &g->joint[k], is_relax);
  }
}

/* -- the step
 * ---------------------------------------------------------------------------------------------------------------------
 */

/* Velocity bias per overlap, mass and impulse scales of a soft constraint of angular frequency w and damping ratio
 * zeta. */
static gs_softness soften(real w, real zeta, real h) {
  real a = R(2) * zeta + h * w, b = h * w * a;
  return (gs_softness){w / a, b / (R(1) + b), R(1) / (R(1) + b)};
}

static void write_back(pabd_sim *sim, gs_state *g, const pabd_range *range) {
  const pabd_view *v = &sim->view;
  int32_t stride = v->stride_contact;
  real inv_h = R(1) / g->h;
#pragma omp for schedule(static)
  for (int32_t k = 0; k < g->movable; ++k) {
    int32_t i = v->body_order[range->body_first + k];
    const real *r = g->record + (size_t)k * RECORD;
    v->pos[i] = get3(g, B_POS, k);
    v->rot[i] = quat_normalize(get_rot(g, k));
    v->vel[i] = get3(g, B_STAR, k);
    v->spin[i] = get3(g, B_SPIN_STAR, k);
    v->omega[i] = v3(r[4], r[5], r[6]);
  }
#pragma omp for schedule(static)
  for (int32_t k = 0; k < g->group_count; ++k) {
    const gs_group *group = &g->group[k];
    real(*header)[LANES] = (real(*)[LANES])(void *)(g->pool + group->at);
    real(*slip)[LANES] = (real(*)[LANES])(void *)(g->slip + group->slip);
    for (int32_t l = 0; l < group->used; ++l)
      for (int32_t p = 0; p < group->count[l]; ++p) {
        real(*block)[LANES] = header + G_HEADER + p * group->block;
        int32_t c = group->row[l] + p;
        v->contact_lambda[c] = inv_h * block[P_NORMAL][l];
        v->contact_lambda[stride + c] = inv_h * block[P_TANGENT][l];
        v->contact_lambda[2 * stride + c] = inv_h * block[P_TANGENT + 1][l];
        v->contact_slip[c] = slip[2 * p][l];
        v->contact_slip[stride + c] = slip[2 * p + 1][l];
      }
  }
#pragma omp single
  for (int32_t k = 0; k < g->joint_count; ++k) {
    gs_joint *t = &g->joint[k];
    joint_geometry(v, g, t);
    v->bond_lambda[t->bond] = v3_scale(-inv_h, t->impulse);
    uint32_t kind = v->bond_kind[t->bond];
    vec3 e = t->error;
    if (kind == PABD_BOND_LINE) e = v3_madd(e, -v3_dot(e, t->axis), t->axis);
    real off = v3_norm(e);
    if (is_scalar_row(kind)) {
      off = off - v->bond_rest[t->bond];
      if (v->bond_low[t->bond] >= R(0)) off = real_max(off, R(0));
      if (v->bond_high[t->bond] <= R(0)) off = real_min(off, R(0));
    }
    v->bond_error[t->bond] = kind == PABD_BOND_SPRING ? R(0) : real_abs(off);
    if ((double)v->bond_error[t->bond] > sim->stats.bond_error && kind != PABD_BOND_DIRECTION)
      sim->stats.bond_error = (double)v->bond_error[t->bond];
  }
}

static int is_at_rest(const pabd_sim *sim, const pabd_range *range) {
  if (range->body_count > sim->params.gs_rest_bodies || range->contact_count == 0) return 0;
  float speed = 0.0f;
  for (int32_t k = 0; k < sim->island_count; ++k)
    if (sim->island_class[k] == PABD_CLASS_GS && sim->island_speed[k] > speed) speed = sim->island_speed[k];
  return speed <= (float)sim->params.gs_rest_speed;
}

void pabd_step_contact_gs(pabd_sim *sim, const pabd_range *range) {
  gs_state *g = sim->gs;
  const pabd_params *params = &sim->params;
  pabd_view *v = &sim->view;
  /* Small classes at rest are solved further: friction in the bias passes as well, anchored. Large or fast ones would
   * pay more for it than it brings. */
  int is_rest = is_at_rest(sim, range);
  int32_t substeps = is_rest ? params->gs_rest_substeps : params->gs_substeps,
          threads = range->body_count < SERIAL_BODIES ? 1 : params->threads;
  int32_t passes = is_rest ? params->gs_rest_passes : params->gs_passes;
  int32_t relax_passes = is_rest ? params->gs_rest_relax_passes : params->gs_relax_passes;
  real h = v->h_frame / (real)substeps, two_pi = R(6.2831853071795865);
  g->h = h, g->pushout_speed = (real)params->gs_pushout_speed, g->anchor_rate = (real)params->gs_rest_anchor;
  v->h = h;
  real frequency = R(0.25) / h, zeta = (real)params->gs_damping_ratio;
  if (!is_rest) frequency = real_min(frequency, (real)params->gs_frequency);
  g->soft[0] = soften(two_pi * frequency, zeta, h);
  g->soft[1] = soften(R(2) * two_pi * frequency, zeta, h);
  /* joints as stiff as the substep allows, damped to settle without ringing */
  g->soft_joint = soften(two_pi * R(0.25) / h, R(2), h);
  /* the fill of the rows has decayed the multipliers for the augmented Lagrangian; impulses are carried whole */
  real decay = params->warm_start && params->multipliers ? (real)(params->alpha * params->gamma) : R(0);
  real unscale = decay > R(0) ? R(1) / decay : R(0);
  g->gravity = v->gravity, g->bounce_threshold = bounce_threshold(v->gravity, h);

  /* each stage is done by all threads; `omp for` and `omp single` inside share the work and end with a barrier */
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int is_first = omp_get_thread_num() == 0;
    double begin = is_first ? pabd_stage_begin(sim) : 0.0;
#define STAGE_END(name)                  \
  if (is_first) {                        \
    pabd_stage_end(sim, name, 0, begin); \
    begin = pabd_stage_begin(sim);       \
  }
    prepare_bodies(sim, g, range);
#pragma omp single
    {
      make_groups(sim, g, range);
      prepare_joints(sim, g, range, unscale);
      g->has_restitution = 0;
      g->point_count = 0;
    }
    STAGE_END("gs_color")
#pragma omp for schedule(static)
    for (int32_t k = 0; k < g->group_count; ++k) fill_group(sim, g, &g->group[k], unscale);
#pragma omp single
    for (int32_t k = 0; k < g->group_count; ++k) {
      const gs_group *group = &g->group[k];
      const real *e = (const real *)(const void *)(g->pool + group->at + G_RESTITUTION);
      for (int32_t l = 0; l < group->used; ++l) {
        g->has_restitution |= e[l] > R(0);
        g->point_count += group->count[l];
      }
    }
    if (g->has_restitution) approach_pass(g);
      /* bodies at rest: what the carried impulses do to them */
#pragma omp for schedule(static)
    for (int32_t k = 0; k < g->movable; ++k) {
      real *r = g->record + (size_t)k * RECORD;
      r[0] = r[1] = r[2] = r[4] = r[5] = r[6] = R(0);
    }
    warm_pass(g);
    begin_frame(g);
    warm_joints(sim, g);
    STAGE_END("gs_prepare")

    for (int32_t substep = 0; substep < substeps; ++substep) {
      int is_last = substep == substeps - 1;
      for (int32_t pass = 0; pass < passes; ++pass) {
        joint_pass(sim, g, 0, 0);
        bias_pass(g, is_rest);
      }
      STAGE_END("gs_bias")
      integrate(g);
      STAGE_END("gs_bodies")
      for (int32_t pass = 0; pass < relax_passes; ++pass) {
        joint_pass(sim, g, 1, pass == 0);
        relax_pass(g, pass == 0, is_rest);
      }
      if (relax_passes == 0) advance_pass(g);
      STAGE_END("gs_relax")
      if (g->has_restitution) {
        turn_substep(g, 1, 0, 0);
        restitution_pass(g);
        approach_pass(g);
        turn_substep(g, 0, !is_last, is_last);
      } else {
        turn_substep(g, 1, !is_last, is_last);
      }
      if (!is_last) warm_joints(sim, g);
      STAGE_END("gs_bodies")
    }
    write_back(sim, g, range);
    STAGE_END("gs_store")
#undef STAGE_END
  }
  sim->stats.contact_evaluations += (int64_t)g->point_count * substeps * (passes + relax_passes);
}
