/* The exact global step: islands of the direct class, each solved by Newton with block elimination (direct_core.h).
 *
 * This file is the glue: joints as rows (from the scene's joints), one island at a time as local bodies, joints and
 * contacts, its elimination order (cached while the island's graph stays the same), precision (double where joints
 * close loops), and the exchange of state with the view. Between frames bodies and multipliers are kept in double here;
 * the view holds their rounded values, and a view that no longer equals them (somebody else stepped the body) wins.
 * Memory is taken at creation, linear in bodies, joints and contacts; an island whose matrix needs more blocks than
 * there are is handed to the Jacobi step and counted in stats.overflow_fill. */
#include "direct.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "direct_order.h"
#include "state.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#define CACHED_ISLANDS 1024
#define BLOCKS_PER_BODY 64  /* of looped or touching islands; params.fill_cap overrides the whole */
#define BLOCKS_PER_JOINT 10 /* of a tree: two diagonals, three edges */
#define SHARED_BODIES 2048  /* fill_cap = 0: bodies of the largest looped or touching island that is provided for */

typedef struct cached_order {
  uint64_t key;
  int64_t begin, end; /* integers of the pool */
  direct_order order;
} cached_order;

typedef struct direct {
  direct_body *bodies;              /* [body_count] */
  direct_joint *joints;             /* [joint_count] */
  uint8_t *joint_coupled;           /* [joint_count] scratch of one island */
  direct_joint_state *joint_before; /* [joint_count] of the island at work, at the frame's start */
  direct_capacity capacity;
  int32_t has_loops;
  /* one island at work */
  int32_t *local_body;                                                            /* [capacity.bodies] */
  int32_t *island_joint;                                                          /* [joint_count] */
  int32_t (*joint_body)[2];                                                       /* [joint_count] */
  direct_contact *contacts;                                                       /* [capacity.contacts] */
  int32_t (*pair)[2];                                                             /* [capacity.contacts] */
  int32_t *tree_parent, *tree_joint, *depth, *parent, *queue, *link_first, *link; /* [...] */
  double *mass, *subtree;
  int32_t *scratch;      /* of the order builder */
  int32_t *pool;         /* [pool_room] cached orders */
  int32_t *order_memory; /* [order_room] order of an island that is not cached */
  int64_t pool_room, order_room;
  cached_order cache[CACHED_ISLANDS];
  void *core_real, *core_double; /* numeric memory in the library's precision, and in double */
  void *memory[32];
  int32_t memory_count;
  size_t bytes;
} direct;

/* ---- joints as rows
 * ------------------------------------------------------------------------------------------------------------------ */

static void add_row(direct_joint *d, direct_row_kind kind, direct_role role, int i, int j) {
  assert(d->row_count < DIRECT_ROWS);
  int r = d->row_count++;
  d->kind[r] = (uint8_t)kind, d->role[r] = (uint8_t)role, d->i[r] = (uint8_t)i, d->j[r] = (uint8_t)j;
}
static void add_point(direct_joint *d, direct_role role) {
  for (int k = 0; k < 3; ++k) add_row(d, DIRECT_POINT, role, k, 0);
  d->is_point = 1;
}
static void lock_rotation(direct_joint *d) {
  for (int k = 0; k < 3; ++k) add_row(d, DIRECT_DIRECTION, DIRECT_HARD, k, (k + 1) % 3);
}

static direct_joint make_joint(const pabd_joint *j) {
  direct_joint d;
  memset(&d, 0, sizeof d);
  d.body_a = j->body_a, d.body_b = j->body_b;
  d.anchor_a = j->frame_a.p, d.anchor_b = j->frame_b.p;
  d.frame_a = j->frame_a.q, d.frame_b = j->frame_b.q;
  d.rest = j->rest, d.stiffness = j->stiffness, d.damping = j->damping;
  d.lower = j->lower, d.upper = j->upper;
  d.motor = j->motor, d.motor_target = j->motor_target, d.motor_max = j->motor_max;
  d.motor_amplitude = j->motor_amplitude, d.motor_frequency = j->motor_frequency, d.motor_phase = j->motor_phase;
  switch (j->kind) {
    case PABD_SPHERICAL:
      add_point(&d, DIRECT_HARD);
      d.is_ball = 1;
      return d;
    case PABD_HINGE:
      add_point(&d, DIRECT_HARD);
      add_row(&d, DIRECT_DIRECTION, DIRECT_HARD, 0, 2);
      add_row(&d, DIRECT_DIRECTION, DIRECT_HARD, 1, 2);
      if (j->stiffness > 0.0 || j->damping > 0.0) add_row(&d, DIRECT_ANGLE, DIRECT_SPRING, 2, 0);
      if (j->has_limits) add_row(&d, DIRECT_SWING, DIRECT_LIMIT, 0, 0);
      if (j->motor != PABD_MOTOR_NONE) add_row(&d, DIRECT_SWING, DIRECT_MOTOR, 0, 0);
      break;
    case PABD_SLIDER:
      add_row(&d, DIRECT_LINE, DIRECT_HARD, 0, 0);
      add_row(&d, DIRECT_LINE, DIRECT_HARD, 1, 0);
      lock_rotation(&d);
      if (j->stiffness > 0.0 || j->damping > 0.0) add_row(&d, DIRECT_LINE, DIRECT_SPRING, 2, 0);
      if (j->has_limits) add_row(&d, DIRECT_LINE, DIRECT_LIMIT, 2, 0);
      if (j->motor != PABD_MOTOR_NONE) add_row(&d, DIRECT_LINE, DIRECT_MOTOR, 2, 0);
      break;
    case PABD_FIXED:
      add_point(&d, DIRECT_HARD);
      lock_rotation(&d);
      break;
    case PABD_UNIVERSAL:
      add_point(&d, DIRECT_HARD);
      add_row(&d, DIRECT_DIRECTION, DIRECT_HARD, 0, 1);
      break;
    case PABD_DISTANCE:
      if (j->has_limits) {
        add_row(&d, DIRECT_DISTANCE, DIRECT_LIMIT, 0, 0);
      } else if (j->rest > 0.0) {
        add_row(&d, DIRECT_DISTANCE, DIRECT_HARD, 0, 0);
      } else { /* no length: the anchors coincide */
        add_point(&d, DIRECT_HARD);
        d.is_ball = 1;
        return d;
      }
      break;
    case PABD_SPRING:
      if (j->rest > 0.0)
        add_row(&d, DIRECT_DISTANCE, DIRECT_SPRING, 0, 0);
      else
        add_point(&d, DIRECT_SPRING);
      break;
    default:
      break;
  }
  d.coupled = 1;
  return d;
}

/* Does the joint graph (with the ground as one node) contain a loop? */
static int find_loops(const pabd_view *v, const pabd_joint *joints, int32_t count, int32_t *parent) {
  for (int32_t i = 0; i <= v->body_count; ++i) parent[i] = i;
  for (int32_t k = 0; k < count; ++k) {
    int32_t end[2] = {joints[k].body_a, joints[k].body_b};
    for (int side = 0; side < 2; ++side) {
      if (end[side] < 0 || v->motion[end[side]] != PABD_DYNAMIC) end[side] = v->body_count;
      while (parent[end[side]] != end[side]) end[side] = parent[end[side]] = parent[parent[end[side]]];
    }
    if (end[0] == end[1]) return 1;
    parent[end[0]] = end[1];
  }
  return 0;
}

/* ---- memory
 * ---------------------------------------------------------------------------------------------------------------------------
 */

static void *take(direct *d, size_t count, size_t size) {
  size_t bytes = (count * size + 127) & ~(size_t)63;
  assert(d->memory_count < (int32_t)(sizeof d->memory / sizeof d->memory[0]));
  void *p = aligned_alloc(64, bytes);
  if (!p) return NULL;
  memset(p, 0, bytes);
  d->memory[d->memory_count++] = p;
  d->bytes += bytes;
  return p;
}

void pabd_direct_destroy(pabd_sim *sim) {
  direct *d = sim->direct;
  if (!d) return;
  for (int32_t k = 0; k < d->memory_count; ++k) free(d->memory[k]);
  free(d);
  sim->direct = NULL;
}

pabd_status pabd_direct_create(pabd_sim *sim) {
  const pabd_params *params = &sim->params;
  const pabd_view *v = &sim->view;
  if (params->global_step != PABD_STEP_DIRECT && params->global_step != PABD_STEP_AUTO) return PABD_OK;
  direct *d = calloc(1, sizeof *d);
  if (!d) return PABD_ERR_MEMORY;
  sim->direct = d;
  d->bytes = sizeof *d;
  int32_t bodies = v->body_count, joints = sim->joint_count;

  direct_capacity *c = &d->capacity;
  int32_t touching = bodies; /* bodies of the largest island with contacts */
  if (params->global_step == PABD_STEP_AUTO && params->direct_max_bodies < touching)
    touching = params->direct_max_bodies;
  if (touching > SHARED_BODIES && params->fill_cap == 0) touching = SHARED_BODIES;
  int64_t contacts = (int64_t)params->contacts_per_body * touching + 256;
  if (contacts > sim->capacity_contact) contacts = sim->capacity_contact;
  int64_t blocks = params->fill_cap;
  if (blocks == 0) blocks = (int64_t)BLOCKS_PER_BODY * touching + (int64_t)BLOCKS_PER_JOINT * joints + bodies;
  if (blocks > INT32_MAX / 16) blocks = INT32_MAX / 16;
  c->joints = joints;
  c->contacts = (int32_t)contacts;
  c->bodies = bodies + 1; /* with the world */
  c->nodes = bodies + joints;
  c->blocks = (int32_t)blocks;

  d->bodies = take(d, (size_t)bodies, sizeof *d->bodies);
  d->joints = take(d, (size_t)joints, sizeof *d->joints);
  d->joint_coupled = take(d, (size_t)joints, sizeof *d->joint_coupled);
  d->joint_before = take(d, (size_t)joints, sizeof *d->joint_before);
  d->local_body = take(d, (size_t)c->bodies, sizeof *d->local_body);
  d->island_joint = take(d, (size_t)joints, sizeof *d->island_joint);
  d->joint_body = take(d, (size_t)joints, sizeof *d->joint_body);
  d->contacts = take(d, (size_t)contacts, sizeof *d->contacts);
  d->pair = take(d, (size_t)contacts, sizeof *d->pair);
  d->tree_parent = take(d, (size_t)c->bodies, sizeof *d->tree_parent);
  d->tree_joint = take(d, (size_t)c->bodies, sizeof *d->tree_joint);
  d->depth = take(d, (size_t)c->bodies, sizeof *d->depth);
  d->parent = take(d, (size_t)c->bodies, sizeof *d->parent);
  d->queue = take(d, (size_t)c->bodies, sizeof *d->queue);
  d->link_first = take(d, (size_t)c->bodies + 1, sizeof *d->link_first);
  d->link = take(d, 2 * ((size_t)joints + (size_t)contacts), sizeof *d->link);
  d->mass = take(d, (size_t)c->bodies, sizeof *d->mass);
  d->subtree = take(d, (size_t)c->bodies, sizeof *d->subtree);
  d->order_room = direct_order_size(c->nodes, joints, c->contacts, c->blocks);
  d->pool_room = d->order_room;
  d->scratch = take(d, (size_t)direct_order_scratch(c->nodes, c->blocks), sizeof *d->scratch);
  d->pool = take(d, (size_t)d->pool_room, sizeof *d->pool);
  d->order_memory = take(d, (size_t)d->order_room, sizeof *d->order_memory);
  for (int32_t k = 0; k < d->memory_count; ++k)
    if (!d->memory[k]) return PABD_ERR_MEMORY;
  if (d->memory_count < 21) return PABD_ERR_MEMORY; /* one of them failed */
  d->has_loops = find_loops(v, sim->joints, joints, d->local_body);
#ifdef PABD_REAL_DOUBLE
  d->core_real = d->core_double = take(d, direct_core_bytes_double(c), 1);
#else
  d->core_real = take(d, direct_core_bytes_float(c), 1);
  if (d->has_loops) d->core_double = take(d, direct_core_bytes_double(c), 1);
#endif
  if (!d->core_real || (d->has_loops && !d->core_double)) return PABD_ERR_MEMORY;
  for (int32_t k = 0; k < joints; ++k) {
    d->joints[k] = make_joint(&sim->joints[k]);
    /* a start angle beyond half a turn is taken as it is between the limits */
    if (sim->joints[k].has_limits) d->joints[k].state.angle = 0.5 * (d->joints[k].lower + d->joints[k].upper);
    if (!isfinite(d->joints[k].state.angle)) d->joints[k].state.angle = 0.0;
  }
  sim->stats.bytes += (int64_t)d->bytes;
  return PABD_OK;
}

/* ---- state
 * ---------------------------------------------------------------------------------------------------------------------------
 */

static int same3(dvec3 a, vec3 b) {
  return (real)a.x == b.x && (real)a.y == b.y && (real)a.z == b.z;
}
static dvec3 wide3(vec3 a) {
  dvec3 d;
  d.x = (double)a.x, d.y = (double)a.y, d.z = (double)a.z;
  return d;
}
static dquat wide4(quat a) {
  dquat d;
  d.w = (double)a.w, d.x = (double)a.x, d.y = (double)a.y, d.z = (double)a.z;
  return d;
}
static double length(dvec3 a) {
  return sqrt(a.x * a.x + a.y * a.y + a.z * a.z);
}
static vec3 narrow3(dvec3 a) {
  return v3((real)a.x, (real)a.y, (real)a.z);
}

/* Brings a body's double state up to date with the view. */
static void load_body(const pabd_sim *sim, direct_body *d, int32_t i) {
  const pabd_view *v = &sim->view;
  d->motion = (int32_t)v->motion[i];
  if (v->motion[i] != PABD_DYNAMIC) {
    d->p = wide3(v->pos_frame[i]), d->q = wide4(v->rot_frame[i]);
    d->v = wide3(v->vel[i]), d->w = wide3(v->omega[i]);
    if (v->motion[i] == PABD_STATIC) memset(&d->v, 0, sizeof d->v), memset(&d->w, 0, sizeof d->w);
    d->step_h = 0.0;
    return;
  }
  quat q = v->rot[i];
  int same = d->mass > 0.0 && same3(d->p, v->pos[i]) && same3(d->v, v->vel[i]) && same3(d->L, v->spin[i]) &&
             (real)d->q.w == q.w && (real)d->q.x == q.x && (real)d->q.y == q.y && (real)d->q.z == q.z;
  d->mass = (double)v->mass[i];
  d->inertia = wide3(v->inertia[i]);
  vec3 force = v3_madd(v->load_force[i], v->mass[i], v->gravity);
  d->force = wide3(force), d->torque = wide3(v->load_torque[i]);
  d->is_foreign = !same;
  if (same) return;
  d->p = wide3(v->pos[i]), d->q = wide4(v->rot[i]);
  double s = 1.0 / sqrt(d->q.w * d->q.w + d->q.x * d->q.x + d->q.y * d->q.y + d->q.z * d->q.z);
  d->q.w *= s, d->q.x *= s, d->q.y *= s, d->q.z *= s;
  d->v = wide3(v->vel[i]), d->L = wide3(v->spin[i]);
  d->step_h = 0.0;
}

static void store_body(pabd_sim *sim, const direct_body *d, int32_t i) {
  pabd_view *v = &sim->view;
  v->pos[i] = narrow3(d->p);
  v->rot[i] = quat_make((real)d->q.w, (real)d->q.x, (real)d->q.y, (real)d->q.z);
  v->vel[i] = narrow3(d->v);
  v->spin[i] = narrow3(d->L);
  vec3 L = quat_unrotate(v->rot[i], v->spin[i]);
  v->omega[i] = quat_rotate(v->rot[i], v3_mul(v->inv_inertia[i], L));
  v->vel_prev[i] = narrow3(d->v_prev), v->spin_prev[i] = narrow3(d->L_prev);
  v->step_prev[i] = narrow3(d->step), v->turn_prev[i] = narrow3(d->turn);
  v->step_prev_h[i] = (real)d->step_h;
}

/* ---- one island
 * ----------------------------------------------------------------------------------------------------------------------
 */

/* Local index of a body that the island touches; fixed ones are added at first sight. */
static int32_t localize(pabd_sim *sim, direct *d, direct_island *island, int32_t body) {
  direct_body *b = &d->bodies[body];
  if (b->local >= 0 && b->local < island->local_count && d->local_body[b->local] == body) return b->local;
  load_body(sim, b, body);
  b->local = island->local_count;
  d->local_body[island->local_count++] = body;
  return b->local;
}

static int is_dynamic_local(const direct_island *island, int32_t local) {
  return local < island->body_count;
}

static void gather_bodies(pabd_sim *sim, direct *d, direct_island *island, int32_t first, int32_t count) {
  const pabd_view *v = &sim->view;
  island->body_count = island->local_count = 0;
  for (int32_t k = 0; k < count; ++k) localize(sim, d, island, v->body_order[first + k]);
  island->body_count = island->local_count;
  island->body = d->local_body;
}

static void gather_joints(pabd_sim *sim, direct *d, direct_island *island, int32_t first, int32_t count) {
  const pabd_view *v = &sim->view;
  int32_t world = -1, last = -1, n = 0;
  for (int32_t k = 0; k < count; ++k) {
    int32_t j = v->bond_joint[v->bond_order[first + k]];
    if (j == last) continue; /* the bonds of a joint follow each other */
    last = j;
    const direct_joint *joint = &d->joints[j];
    int32_t a;
    if (joint->body_a < 0) {
      if (world < 0) {
        world = island->local_count;
        d->local_body[island->local_count++] = -1;
      }
      a = world;
    } else {
      a = localize(sim, d, island, joint->body_a);
    }
    d->joint_body[n][0] = a;
    d->joint_body[n][1] = localize(sim, d, island, joint->body_b);
    d->island_joint[n++] = j;
  }
  island->joint_count = n;
  island->joint = d->island_joint;
}

static dvec3 plane3(const real *p, int32_t stride, int32_t i) {
  dvec3 r;
  r.x = (double)p[i], r.y = (double)p[stride + i], r.z = (double)p[2 * stride + i];
  return r;
}

static void gather_contacts(pabd_sim *sim, direct *d, direct_island *island, int32_t first, int32_t count) {
  const pabd_view *v = &sim->view;
  int32_t stride = v->stride_contact, pairs = 0;
  /* the decay of warm start is for methods that do not converge */
  double decay = sim->params.alpha * sim->params.gamma, scale = decay > 0.0 ? 1.0 / decay : 0.0;
  for (int32_t k = 0; k < count; ++k) {
    int32_t c = first + k;
    direct_contact *t = &d->contacts[k];
    t->a = localize(sim, d, island, v->contact_a[c]);
    t->b = localize(sim, d, island, v->contact_b[c]);
    t->normal = plane3(v->contact_normal, stride, c);
    t->tangent = plane3(v->contact_tangent, stride, c);
    t->core_a = plane3(v->contact_core_a, stride, c);
    t->core_b = plane3(v->contact_core_b, stride, c);
    t->offset_a = (double)v->contact_offset_a[c], t->offset_b = (double)v->contact_offset_b[c];
    t->gap = (double)v->contact_gap[c];
    t->bias = (double)v->contact_bias0[c];
    t->mu = (double)v->contact_mu[c];
    for (int q = 0; q < 3; ++q) t->lambda[q] = scale * (double)v->contact_lambda[q * stride + c];
    if (k == 0 || t->a != d->contacts[k - 1].a || t->b != d->contacts[k - 1].b) {
      d->pair[pairs][0] = is_dynamic_local(island, t->a) ? t->a : -1;
      d->pair[pairs][1] = is_dynamic_local(island, t->b) ? t->b : -1;
      ++pairs;
    }
    t->pair = pairs - 1;
  }
  island->contact_count = count, island->pair_count = pairs;
  island->contact = d->contacts;
}

/* Links of the island's bodies: joint k as k, pair p as joint_count + p. CSR by body. */
static void gather_links(direct *d, const direct_island *island) {
  int32_t n = island->body_count, links = island->joint_count + island->pair_count;
  int32_t *first = d->link_first;
  memset(first, 0, sizeof *first * (size_t)(n + 1));
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t k = 0; k < links; ++k) {
      const int32_t *end = k < island->joint_count ? d->joint_body[k] : d->pair[k - island->joint_count];
      for (int side = 0; side < 2; ++side) {
        int32_t body = end[side];
        if (body < 0 || body >= n) continue;
        if (pass == 0)
          first[body + 1] += 1;
        else
          d->link[first[body]++] = k;
      }
    }
    if (pass == 0)
      for (int32_t i = 0; i < n; ++i) first[i + 1] += first[i];
  }
  for (int32_t i = n; i > 0; --i) first[i] = first[i - 1];
  first[0] = 0;
}

/* Breadth-first forest over all links from the ground (or from the heaviest body where there is no ground): depth,
 * parent, the mass on the side away from the ground. */
static void make_forest(direct *d, const direct_island *island) {
  int32_t n = island->body_count, head = 0, tail = 0;
  for (int32_t i = 0; i < n; ++i) {
    d->depth[i] = -1, d->parent[i] = -1;
    d->mass[i] = d->bodies[island->body[i]].mass;
    d->subtree[i] = d->mass[i];
  }
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t k = d->link_first[i]; k < d->link_first[i + 1]; ++k) {
      int32_t link = d->link[k];
      const int32_t *end = link < island->joint_count ? d->joint_body[link] : d->pair[link - island->joint_count];
      if (end[0] >= 0 && end[0] < n && end[1] >= 0 && end[1] < n) continue;
      d->depth[i] = 1;
      d->queue[tail++] = i;
      break;
    }
  }
  if (tail == 0 && n > 0) {
    int32_t root = 0;
    for (int32_t i = 1; i < n; ++i)
      if (d->mass[i] > d->mass[root]) root = i;
    d->depth[root] = 1;
    d->queue[tail++] = root;
  }
  while (head < tail) {
    int32_t i = d->queue[head++];
    for (int32_t k = d->link_first[i]; k < d->link_first[i + 1]; ++k) {
      int32_t link = d->link[k];
      const int32_t *end = link < island->joint_count ? d->joint_body[link] : d->pair[link - island->joint_count];
      int32_t other = end[0] == i ? end[1] : end[0];
      if (other < 0 || other >= n || d->depth[other] >= 0) continue;
      d->depth[other] = d->depth[i] + 1, d->parent[other] = i;
      d->queue[tail++] = other;
    }
  }
  for (int32_t k = tail - 1; k >= 0; --k) {
    int32_t i = d->queue[k];
    if (d->parent[i] >= 0) d->subtree[d->parent[i]] += d->subtree[i];
  }
}

/* Mass that a contact carries: its far side in the forest; the lighter side where it closes a loop. */
static void set_supports(const pabd_view *v, direct *d, direct_island *island) {
  double gravity = length(wide3(v->gravity));
  for (int32_t k = 0; k < island->contact_count; ++k) {
    direct_contact *c = &d->contacts[k];
    int32_t a = d->pair[c->pair][0], b = d->pair[c->pair][1];
    if (a < 0 || b < 0)
      c->support = d->subtree[a < 0 ? b : a];
    else if (d->parent[a] == b)
      c->support = d->subtree[a];
    else if (d->parent[b] == a)
      c->support = d->subtree[b];
    else
      c->support = d->subtree[a] < d->subtree[b] ? d->subtree[a] : d->subtree[b];
    /* a force that another solver left may be the spike of an impact over one of its short substeps: as a start for a
     * whole frame it would throw the bodies apart. Twice the weight is kept. */
    if ((a >= 0 && d->bodies[island->body[a]].is_foreign) || (b >= 0 && d->bodies[island->body[b]].is_foreign)) {
      double most = 2.0 * c->support * gravity;
      if (c->lambda[0] > most)
        for (int q = 2; q >= 0; --q) c->lambda[q] *= most / c->lambda[0];
    }
  }
}

/* A tree of ball joints without contacts: bodies are renumbered, children first. Returns 0 where the fast path does not
 * apply. */
static int make_tree(direct *d, direct_island *island) {
  int32_t n = island->body_count;
  if (island->contact_count > 0 || island->joint_count > n) return 0;
  int32_t inner = 0;
  for (int32_t k = 0; k < island->joint_count; ++k) {
    if (!d->joints[island->joint[k]].is_ball) return 0;
    inner += is_dynamic_local(island, d->joint_body[k][0]) && is_dynamic_local(island, d->joint_body[k][1]);
  }
  if (inner != n - 1) return 0; /* connected, so a tree; and at most one joint to a fixed body */
  gather_links(d, island);
  make_forest(d, island);
  /* queue holds the bodies, parents first; the new index counts from its end */
  int32_t *index = d->depth;
  for (int32_t k = 0; k < n; ++k) index[d->queue[k]] = n - 1 - k;
  for (int32_t i = 0; i < n; ++i) d->tree_parent[i] = d->tree_joint[i] = -1;
  for (int32_t k = 0; k < island->joint_count; ++k) {
    int32_t a = d->joint_body[k][0], b = d->joint_body[k][1];
    if (a >= n || b >= n) {
      int32_t i = index[a >= n ? b : a];
      d->tree_parent[i] = a >= n ? a : b, d->tree_joint[i] = k;
    } else {
      int32_t i = index[a] < index[b] ? a : b, p = i == a ? b : a;
      d->tree_parent[index[i]] = index[p], d->tree_joint[index[i]] = k;
    }
  }
  for (int32_t k = 0; k < n; ++k) d->queue[k] = island->body[d->queue[k]];
  for (int32_t k = 0; k < n; ++k) {
    d->local_body[n - 1 - k] = d->queue[k];
    d->bodies[d->queue[k]].local = n - 1 - k;
  }
  island->is_tree = 1;
  island->tree_parent = d->tree_parent, island->tree_joint = d->tree_joint;
  return 1;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ hash >> 32;
}

/* Elimination order, from the cache where the island's graph is that of the last frame. 0: the fill is over the cap. */
static int find_order(direct *d, direct_island *island, int32_t slot, int64_t *cursor, int *cache_valid) {
  uint64_t key = mix(1469598103934665603u, (uint64_t)island->body_count);
  key = mix(key, (uint64_t)island->joint_count << 32 | (uint64_t)island->pair_count);
  for (int32_t i = 0; i < island->body_count; ++i) key = mix(key, (uint64_t)island->body[i]);
  for (int32_t k = 0; k < island->joint_count; ++k) key = mix(key, (uint64_t)island->joint[k]);
  for (int32_t k = 0; k < island->pair_count; ++k)
    key = mix(key, (uint64_t)(uint32_t)d->pair[k][0] << 32 | (uint32_t)d->pair[k][1]);
  cached_order *cached = slot < CACHED_ISLANDS ? &d->cache[slot] : NULL;
  if (cached && *cache_valid && cached->key == key && cached->begin == *cursor && cached->end > cached->begin) {
    island->order = cached->order;
    *cursor = cached->end;
    return 1;
  }
  *cache_valid = 0; /* what follows in the pool is overwritten */
  if (cached) cached->key = 0, cached->begin = cached->end = 0;
  direct_graph graph = {
      island->body_count, island->joint_count,          island->pair_count, (const int32_t(*)[2])d->joint_body,
      d->joint_coupled,   (const int32_t(*)[2])d->pair, d->depth,           d->mass};
  for (int32_t k = 0; k < island->joint_count; ++k) d->joint_coupled[k] = (uint8_t)d->joints[island->joint[k]].coupled;
  /* the builder knows fixed bodies as -1 */
  for (int32_t k = 0; k < island->joint_count; ++k)
    for (int side = 0; side < 2; ++side)
      if (!is_dynamic_local(island, d->joint_body[k][side])) d->joint_body[k][side] = -1;
  if (cached) {
    int64_t used = direct_order_build(&graph, d->capacity.blocks, d->scratch, d->pool + *cursor, d->pool_room - *cursor,
                                      &island->order);
    if (used >= 0) {
      cached->key = key, cached->begin = *cursor, cached->end = *cursor + used, cached->order = island->order;
      *cursor += used;
      return 1;
    }
  }
  return direct_order_build(&graph, d->capacity.blocks, d->scratch, d->order_memory, d->order_room, &island->order) >=
         0;
}

#ifndef PABD_REAL_DOUBLE
static int has_cut(const direct_island *island) {
  for (int32_t k = 0; k < island->joint_count; ++k)
    if (island->order.cut[k]) return 1;
  return 0;
}
#endif

static void store_island(pabd_sim *sim, direct *d, const direct_island *island, int32_t contact_first) {
  pabd_view *v = &sim->view;
  for (int32_t i = 0; i < island->body_count; ++i) store_body(sim, &d->bodies[island->body[i]], island->body[i]);
  for (int32_t k = 0; k < island->contact_count; ++k)
    for (int q = 0; q < 3; ++q)
      v->contact_lambda[q * v->stride_contact + contact_first + k] = (real)d->contacts[k].lambda[q];
  pabd_stats *stats = &sim->stats;
  stats->newton_iterations += island->counts.iterations, stats->newton_failures += island->counts.failures;
  stats->ladder_halvings += island->counts.halvings, stats->ladder_bdf2 += island->counts.bdf2;
  stats->ladder_euler += island->counts.euler, stats->ladder_exhausted += island->counts.exhausted;
  stats->ladder_limited += island->counts.limited;
  stats->contact_evaluations += (int64_t)island->counts.iterations * island->contact_count;
  if (island->error > stats->bond_error) stats->bond_error = island->error;
  sim->driver_work += island->driver_work;
}

/* Did an unconverged step throw a body? Faster than any contact or load explains: three times the island's highest
 * speed before it, with what the loads add in a frame, and 1 m/s more. A NaN is wild too. */
static int is_wild(const pabd_view *v, const direct *d, const direct_island *island) {
  double fastest = 0.0, after = 0.0;
  for (int32_t i = 0; i < island->body_count; ++i) {
    const direct_body *b = &d->bodies[island->body[i]];
    dvec3 before = wide3(v->vel[island->body[i]]);
    double load = (double)v->h_frame / b->mass * length(b->force);
    fastest = fmax(fastest, length(before) + load);
    double speed = length(b->v);
    if (!(speed <= after)) after = speed;
  }
  return !(after <= 3.0 * fastest + 1.0);
}

/* The Jacobi step takes the island's frame, from the state in the view. */
static void hand_over(pabd_sim *sim, int32_t k) {
  pabd_range range = {sim->island_body_first[k],    sim->island_body_count[k], sim->island_contact_first[k],
                      sim->island_contact_count[k], sim->island_bond_first[k], sim->island_bond_count[k]};
  pabd_step_jacobi(sim, &range);
}

static void step_island(pabd_sim *sim, direct *d, int32_t k, int32_t *slot, int64_t *cursor, int *cache_valid) {
  const pabd_params *params = &sim->params;
  int32_t contact_first = sim->island_contact_first[k], contact_count = sim->island_contact_count[k];
  direct_island island;
  memset(&island, 0, sizeof island);
  gather_bodies(sim, d, &island, sim->island_body_first[k], sim->island_body_count[k]);
  int fits = contact_count <= d->capacity.contacts;
  if (fits) {
    gather_joints(sim, d, &island, sim->island_bond_first[k], sim->island_bond_count[k]);
    gather_contacts(sim, d, &island, contact_first, contact_count);
    if (!make_tree(d, &island)) {
      gather_links(d, &island);
      make_forest(d, &island);
      set_supports(&sim->view, d, &island);
      fits = find_order(d, &island, (*slot)++, cursor, cache_valid);
    }
  }
  if (!fits) {
    sim->stats.overflow_fill += 1;
    hand_over(sim, k);
    return;
  }
  island.h_frame = (double)sim->view.h_frame, island.time = sim->time;
  island.substeps = contact_count > 0 ? params->direct_contact_substeps : params->direct_substeps;
  /* a stack that lands on its edges falls at one step a frame and stands at four (24 rough starts: 14 against 24); a
   * chain that lands gains energy by the change of step instead (0.0006 against 0.005 of its fall) */
  if (contact_count > 0 && island.joint_count == 0 && sim->island_speed[k] > (float)params->direct_impact_speed &&
      island.substeps < params->direct_impact_substeps)
    island.substeps = params->direct_impact_substeps;
  island.integrator = params->integrator;
  island.max_iterations = params->direct_max_iterations;
  for (int32_t j = 0; j < island.joint_count; ++j) d->joint_before[j] = d->joints[island.joint[j]].state;
#ifdef PABD_REAL_DOUBLE
  direct_core_step_double(d->core_double, &d->capacity, &island, d->bodies, d->joints);
#else
  if (!island.is_tree && d->core_double && has_cut(&island))
    direct_core_step_double(d->core_double, &d->capacity, &island, d->bodies, d->joints);
  else
    direct_core_step_float(d->core_real, &d->capacity, &island, d->bodies, d->joints);
#endif
  if (island.counts.exhausted > 0 && is_wild(&sim->view, d, &island)) {
    sim->stats.ladder_exhausted += island.counts.exhausted;
    for (int32_t j = 0; j < island.joint_count; ++j) d->joints[island.joint[j]].state = d->joint_before[j];
    hand_over(sim, k);
    return;
  }
  store_island(sim, d, &island, contact_first);
}

/* Products of tiny off-plane terms become denormal numbers, which cost a hundred times a normal one: they are flushed
 * to zero here. */
static unsigned flush_denormals(void) {
#if defined(__SSE__)
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040u);
  return before;
#else
  return 0;
#endif
}
static void restore_denormals(unsigned before) {
#if defined(__SSE__)
  _mm_setcsr(before);
#else
  (void)before;
#endif
}

void pabd_step_direct(pabd_sim *sim, const pabd_range *range) {
  direct *d = sim->direct;
  assert(d);
  double begin = pabd_stage_begin(sim);
  int32_t slot = 0;
  int64_t cursor = 0;
  int cache_valid = 1;
  unsigned control = flush_denormals();
  for (int32_t k = 0; k < sim->island_count; ++k) {
    if (sim->island_class[k] != PABD_CLASS_DIRECT) continue;
    if (sim->island_body_first[k] < range->body_first ||
        sim->island_body_first[k] >= range->body_first + range->body_count)
      continue;
    step_island(sim, d, k, &slot, &cursor, &cache_valid);
  }
  restore_denormals(control);
  pabd_stage_end(sim, "direct", 0, begin);
}
