/* Islands and classes: which bodies are linked by joints and contact candidates, and which global step each island
 * gets.
 *
 * Union-find over dynamic bodies (fixed ones do not link). Islands are numbered by their lowest body. Then everything
 * is brought into class order by stable counting sorts: body_order, bond_order and the contact rows (pair_first), so
 * that each global step works on contiguous ranges; within the direct class each island's rows are contiguous too. */
#include <assert.h>
#include <string.h>

#include "state.h"

static int32_t find_root(int32_t *parent, int32_t i) {
  while (parent[i] != i) {
    parent[i] = parent[parent[i]];
    i = parent[i];
  }
  return i;
}
static void unite(int32_t *parent, int32_t a, int32_t b) {
  a = find_root(parent, a), b = find_root(parent, b);
  /* the lower index becomes the root: the result does not depend on the order of links */
  if (a < b) parent[b] = a;
  if (b < a) parent[a] = b;
}
static int is_dynamic(const pabd_view *v, int32_t i) {
  return i >= 0 && v->motion[i] == PABD_DYNAMIC;
}

/* The global step of one island. */
static int32_t choose_class(const pabd_sim *sim, int32_t island) {
  int32_t bodies = sim->island_body_count[island], contacts = sim->island_contact_count[island];
  int32_t bonds = sim->island_bond_count[island];
  if (contacts == 0 && bonds == 0) return PABD_CLASS_FREE;
  switch (sim->params.global_step) {
    case PABD_STEP_JACOBI:
      return PABD_CLASS_JACOBI;
    case PABD_STEP_CONTACT_GS:
      return PABD_CLASS_GS;
    case PABD_STEP_DIRECT:
      return PABD_CLASS_DIRECT;
    default:
      break;
  }
  /* auto: exact where elimination is cheap (trees of joints of any size; small islands with loops or contacts). Hard
   * impacts make the exact contact solve cycle between contact states (measured in the pile: 2 % of energy gained, 1 m
   * of overlap), so fast islands go to contact-gs; but not a small one of uneven masses, such as a mass-ratio stack
   * that is hit, which contact-gs cannot hold. */
  if (contacts == 0) return PABD_CLASS_DIRECT;
  if (bodies > sim->params.direct_max_bodies) return PABD_CLASS_GS;
  int fast = sim->island_speed[island] > (float)sim->params.direct_max_speed;
  int uneven = bodies <= 8 && sim->island_mass_high[island] > 4.0f * sim->island_mass_low[island] &&
               sim->island_speed[island] < 12.0f * (float)sim->params.direct_max_speed;
  return fast && bonds == 0 && !uneven ? PABD_CLASS_GS : PABD_CLASS_DIRECT;
}

static int32_t pair_body(const pabd_view *v, int32_t p, int side) {
  uint64_t key = v->pair_key[p];
  return v->shape_body[side == 0 ? (int32_t)(key >> 32) : (int32_t)(key & 0xffffffffu)];
}

/* How fast the surfaces of a candidate pair close: along the normal by the bodies' velocities, plus what their spins
 * can add. */
static float closing_speed(const pabd_view *v, int32_t p, int32_t a, int32_t b) {
  vec3 n = v->manifold_normal[p], relative = v3_sub(v->vel[a], v->vel[b]);
  real spin = v3_norm(v->omega[a]) * v->radius[a] + v3_norm(v->omega[b]) * v->radius[b];
  return (float)(spin - v3_dot(n, relative));
}

/* Island of a link between two bodies, of which at least one is dynamic; -1 for none. */
static int32_t link_island(const pabd_view *v, int32_t a, int32_t b) {
  return is_dynamic(v, a) ? v->island[a] : (is_dynamic(v, b) ? v->island[b] : -1);
}

void pabd_islands(pabd_sim *sim) {
  double begin = pabd_stage_begin(sim);
  pabd_view *v = &sim->view;
  int32_t n = v->body_count;
  int32_t *parent = sim->scratch, *key = sim->scratch + n;
  assert(sim->scratch_count >= (size_t)(3 * n + 8));
  /* links */
  for (int32_t i = 0; i < n; ++i) parent[i] = i;
  int32_t link_count = sim->frozen ? sim->frozen_count : v->pair_count;
  for (int32_t p = 0; p < link_count; ++p) {
    if (!sim->frozen && v->manifold_count[p] == 0) continue;
    int32_t a = sim->frozen ? sim->frozen[p].body_a : pair_body(v, p, 0),
            b = sim->frozen ? sim->frozen[p].body_b : pair_body(v, p, 1);
    if (is_dynamic(v, a) && is_dynamic(v, b)) unite(parent, a, b);
  }
  for (int32_t j = 0; j < sim->joint_count; ++j) {
    int32_t a = sim->joints[j].body_a, b = sim->joints[j].body_b;
    if (is_dynamic(v, a) && is_dynamic(v, b)) unite(parent, a, b);
  }
  /* numbers */
  sim->island_count = 0;
  for (int32_t i = 0; i < n; ++i) {
    v->island[i] = -1;
    if (!is_dynamic(v, i)) continue;
    int32_t root = find_root(parent, i);
    if (root == i) {
      int32_t island = sim->island_count++;
      sim->island_body_count[island] = sim->island_contact_count[island] = sim->island_bond_count[island] = 0;
      sim->island_speed[island] = 0.0f;
      sim->island_mass_low[island] = sim->island_mass_high[island] = (float)v->mass[i];
      v->island[i] = island;
    } else {
      v->island[i] = v->island[root]; /* the root is lower, so it has its number */
    }
    int32_t island = v->island[i];
    sim->island_body_count[island] += 1;
    if ((float)v->mass[i] < sim->island_mass_low[island]) sim->island_mass_low[island] = (float)v->mass[i];
    if ((float)v->mass[i] > sim->island_mass_high[island]) sim->island_mass_high[island] = (float)v->mass[i];
  }
  for (int32_t p = 0; p < link_count; ++p) {
    int32_t count = sim->frozen ? 1 : v->manifold_count[p];
    if (count == 0) continue;
    int32_t a = sim->frozen ? sim->frozen[p].body_a : pair_body(v, p, 0),
            b = sim->frozen ? sim->frozen[p].body_b : pair_body(v, p, 1);
    int32_t island = link_island(v, a, b);
    if (island < 0) continue;
    sim->island_contact_count[island] += count;
    float speed = sim->frozen ? 0.0f : closing_speed(v, p, a, b);
    if (speed > sim->island_speed[island]) sim->island_speed[island] = speed;
  }
  for (int32_t j = 0; j < v->bond_count; ++j) {
    int32_t island = link_island(v, v->bond_a[j], v->bond_b[j]);
    if (island >= 0) sim->island_bond_count[island] += 1;
  }
  /* classes, and each island's place: class by class, island by island */
  int32_t class_bodies[PABD_CLASS_COUNT] = {0}, class_contacts[PABD_CLASS_COUNT] = {0},
          class_bonds[PABD_CLASS_COUNT] = {0};
  pabd_stats *stats = &sim->stats;
  stats->island_count = sim->island_count;
  stats->island_jacobi = stats->island_gs = stats->island_direct = 0;
  for (int32_t k = 0; k < sim->island_count; ++k) {
    int32_t c = choose_class(sim, k);
    sim->island_class[k] = c;
    class_bodies[c] += sim->island_body_count[k];
    class_contacts[c] += sim->island_contact_count[k];
    class_bonds[c] += sim->island_bond_count[k];
    stats->island_jacobi += c == PABD_CLASS_JACOBI;
    stats->island_gs += c == PABD_CLASS_GS;
    stats->island_direct += c == PABD_CLASS_DIRECT;
  }
  int32_t body = 0, contact = 0, bond = 0;
  for (int32_t c = 0; c < PABD_CLASS_COUNT; ++c) {
    pabd_range *r = &sim->range[c];
    r->body_first = body, r->contact_first = contact, r->bond_first = bond;
    r->body_count = class_bodies[c], r->contact_count = class_contacts[c], r->bond_count = class_bonds[c];
    body += class_bodies[c], contact += class_contacts[c], bond += class_bonds[c];
  }
  stats->dynamic_count = body;
  stats->bodies_free = class_bodies[PABD_CLASS_FREE], stats->bodies_jacobi = class_bodies[PABD_CLASS_JACOBI];
  stats->bodies_gs = class_bodies[PABD_CLASS_GS], stats->bodies_direct = class_bodies[PABD_CLASS_DIRECT];
  int32_t next_body[PABD_CLASS_COUNT], next_contact[PABD_CLASS_COUNT], next_bond[PABD_CLASS_COUNT];
  for (int32_t c = 0; c < PABD_CLASS_COUNT; ++c) {
    next_body[c] = sim->range[c].body_first, next_contact[c] = sim->range[c].contact_first,
    next_bond[c] = sim->range[c].bond_first;
  }
  for (int32_t k = 0; k < sim->island_count; ++k) {
    int32_t c = sim->island_class[k];
    sim->island_body_first[k] = next_body[c], next_body[c] += sim->island_body_count[k];
    sim->island_contact_first[k] = next_contact[c], next_contact[c] += sim->island_contact_count[k];
    sim->island_bond_first[k] = next_bond[c], next_bond[c] += sim->island_bond_count[k];
  }
  /* bodies and bonds: direct islands one by one, the other classes in index order; fixed bodies at the end */
  int32_t *cursor = key; /* [island_count] */
  for (int32_t k = 0; k < sim->island_count; ++k) cursor[k] = sim->island_body_first[k];
  int32_t class_cursor[PABD_CLASS_COUNT];
  for (int32_t c = 0; c < PABD_CLASS_COUNT; ++c) class_cursor[c] = sim->range[c].body_first;
  int32_t fixed = body;
  for (int32_t i = 0; i < n; ++i) {
    if (v->island[i] < 0) {
      v->body_order[fixed++] = i;
      continue;
    }
    int32_t c = sim->island_class[v->island[i]];
    v->body_order[c == PABD_CLASS_DIRECT ? cursor[v->island[i]]++ : class_cursor[c]++] = i;
  }
  for (int32_t k = 0; k < sim->island_count; ++k) cursor[k] = sim->island_bond_first[k];
  for (int32_t c = 0; c < PABD_CLASS_COUNT; ++c) class_cursor[c] = sim->range[c].bond_first;
  for (int32_t j = 0; j < v->bond_count; ++j) {
    int32_t island = link_island(v, v->bond_a[j], v->bond_b[j]);
    if (island < 0) continue; /* between fixed bodies: nothing to solve */
    int32_t c = sim->island_class[island];
    v->bond_order[c == PABD_CLASS_DIRECT ? cursor[island]++ : class_cursor[c]++] = j;
  }
  /* contact rows; an overflowing capacity drops the last rows, counted */
  for (int32_t k = 0; k < sim->island_count; ++k) cursor[k] = sim->island_contact_first[k];
  for (int32_t c = 0; c < PABD_CLASS_COUNT; ++c) class_cursor[c] = sim->range[c].contact_first;
  int32_t rows = 0;
  for (int32_t p = 0; p < link_count; ++p) {
    int32_t count = sim->frozen ? 1 : v->manifold_count[p];
    int32_t a = sim->frozen ? sim->frozen[p].body_a : pair_body(v, p, 0),
            b = sim->frozen ? sim->frozen[p].body_b : pair_body(v, p, 1);
    int32_t island = count > 0 ? link_island(v, a, b) : -1;
    if (!sim->frozen) v->pair_first[p] = -1;
    if (island < 0) continue;
    int32_t c = sim->island_class[island];
    int32_t *at = c == PABD_CLASS_DIRECT ? &cursor[island] : &class_cursor[c];
    if (sim->frozen) {
      if (*at < sim->capacity_contact) sim->scratch[2 * n + 8 + *at] = p;
    } else {
      v->pair_first[p] = *at;
    }
    *at += count;
    rows += count;
  }
  if (sim->frozen)
    for (int32_t c = 0; c < rows && c < sim->capacity_contact; ++c) sim->scratch[c] = sim->scratch[2 * n + 8 + c];
  v->contact_count = rows < sim->capacity_contact ? rows : sim->capacity_contact;
  stats->overflow_contacts = rows - v->contact_count;
  stats->contact_count = v->contact_count;
  stats->pair_count = v->pair_count;
  if (stats->overflow_contacts > 0) { /* clip every range to the rows that exist */
    for (int32_t c = 0; c < PABD_CLASS_COUNT; ++c) {
      pabd_range *r = &sim->range[c];
      int32_t end = r->contact_first + r->contact_count;
      if (end > v->contact_count) end = v->contact_count;
      r->contact_count = end > r->contact_first ? end - r->contact_first : 0;
    }
    for (int32_t k = 0; k < sim->island_count; ++k) {
      int32_t end = sim->island_contact_first[k] + sim->island_contact_count[k];
      if (end > v->contact_count) end = v->contact_count;
      int32_t left = end - sim->island_contact_first[k];
      sim->island_contact_count[k] = left > 0 ? left : 0;
    }
  }
  pabd_stage_end(sim, "islands", 1, begin);
}
