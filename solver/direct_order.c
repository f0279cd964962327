/* Elimination order of an island's matrix: minimum degree on bodies and joints, with the fill that follows from it.
 *
 * Joints of a spanning forest are eliminated right after the body they hang on their parent; a joint that closes a loop
 * waits until all bodies of its loop (below the loop's highest body) are gone, for before that its rows may look
 * dependent although they are not. On a tree the result is the leaf-to-root elimination. Ties go to the body farthest
 * from the ground, then to the lower index. Invariant: the neighbor list of a live node holds exactly its live
 * neighbors in the partly eliminated graph, sorted. */
#include "direct_order.h"

#include <string.h>

typedef struct builder {
  const direct_graph *graph;
  int32_t nodes, bodies;
  /* growing neighbor lists in two halves, one in use */
  int32_t *start, *size, *room;
  int32_t *half[2], half_room, top, in_use;
  /* heap of eligible nodes */
  int32_t *heap, *place, heap_count;
  /* joint forest */
  int32_t *parent, *level, *tree_joint, *is_cut;
  /* loops waiting for their bodies */
  int32_t *watch_head, *watch_next, *cursor_a, *cursor_b, *top_body;
  int32_t *gone;
  int32_t *merged, *order, *queue;
} builder;

#define BUILDER_ARRAYS 20

int64_t direct_order_scratch(int32_t nodes, int32_t blocks) {
  return (int64_t)BUILDER_ARRAYS * nodes + 2 * (4 * (int64_t)blocks + 8 * (int64_t)nodes) + 64;
}

int64_t direct_order_size(int32_t nodes, int32_t joints, int32_t pairs, int32_t blocks) {
  return 2 * (int64_t)nodes + 1 + blocks / 2 + 4 * (int64_t)joints + pairs;
}

/* ---- neighbor lists
 * ------------------------------------------------------------------------------------------------------------ */

static int32_t *list_of(const builder *b, int32_t node) {
  return b->half[b->in_use] + b->start[node];
}

/* Moves all live lists to the other half. */
static void compact(builder *b) {
  int32_t *to = b->half[1 - b->in_use], top = 0;
  for (int32_t x = 0; x < b->nodes; ++x) {
    if (b->gone[x]) continue;
    memcpy(to + top, list_of(b, x), sizeof *to * (size_t)b->size[x]);
    b->start[x] = top;
    b->room[x] = b->size[x];
    top += b->size[x];
  }
  b->in_use = 1 - b->in_use;
  b->top = top;
}

/* Replaces a list. 0: no room. */
static int list_set(builder *b, int32_t node, const int32_t *values, int32_t count) {
  if (count > b->room[node]) {
    int32_t room = count + 4;
    if (b->top + room > b->half_room) {
      b->size[node] = 0;
      compact(b);
    }
    if (b->top + room > b->half_room) return 0;
    b->start[node] = b->top;
    b->room[node] = room;
    b->top += room;
  }
  memcpy(list_of(b, node), values, sizeof *values * (size_t)count);
  b->size[node] = count;
  return 1;
}

static int add_neighbor(builder *b, int32_t x, int32_t y) {
  int32_t *list = list_of(b, x), n = b->size[x], at = 0;
  while (at < n && list[at] < y) ++at;
  if (at < n && list[at] == y) return 1;
  memcpy(b->merged, list, sizeof *list * (size_t)at);
  b->merged[at] = y;
  memcpy(b->merged + at + 1, list + at, sizeof *list * (size_t)(n - at));
  return list_set(b, x, b->merged, n + 1);
}
static int link_nodes(builder *b, int32_t x, int32_t y) {
  return add_neighbor(b, x, y) && add_neighbor(b, y, x);
}

/* ---- heap
 * ----------------------------------------------------------------------------------------------------------------------------
 */

static int before(const builder *b, int32_t x, int32_t y) {
  if (b->size[x] != b->size[y]) return b->size[x] < b->size[y];
  int32_t dx = x < b->bodies ? b->graph->depth[x] : 0, dy = y < b->bodies ? b->graph->depth[y] : 0;
  if (dx != dy) return dx > dy;
  return x < y;
}
static void heap_put(builder *b, int32_t at, int32_t node) {
  b->heap[at] = node;
  b->place[node] = at;
}
static void sift(builder *b, int32_t node) {
  int32_t at = b->place[node];
  while (at > 0 && before(b, node, b->heap[(at - 1) / 2])) {
    heap_put(b, at, b->heap[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  for (;;) {
    int32_t child = 2 * at + 1;
    if (child >= b->heap_count) break;
    if (child + 1 < b->heap_count && before(b, b->heap[child + 1], b->heap[child])) ++child;
    if (!before(b, b->heap[child], node)) break;
    heap_put(b, at, b->heap[child]);
    at = child;
  }
  heap_put(b, at, node);
}
static void heap_add(builder *b, int32_t node) {
  heap_put(b, b->heap_count++, node);
  sift(b, node);
}
static void heap_remove(builder *b, int32_t node) {
  int32_t at = b->place[node], last = b->heap[--b->heap_count];
  b->place[node] = -1;
  if (last == node) return;
  heap_put(b, at, last);
  sift(b, last);
}

/* ---- joint forest and loops
 * ---------------------------------------------------------------------------------------------------- */

/* Breadth first from the ground, then from the heaviest body of what is left. */
static void make_forest(builder *b) {
  const direct_graph *g = b->graph;
  int32_t head = 0, tail = 0;
  for (int32_t i = 0; i < b->bodies; ++i) b->parent[i] = -1, b->level[i] = 0, b->tree_joint[i] = -1;
  for (int32_t j = 0; j < g->joint_count; ++j) {
    b->is_cut[j] = 1;
    for (int side = 0; side < 2; ++side) {
      int32_t body = g->joint_body[j][side];
      if (body < 0 || g->joint_body[j][1 - side] >= 0 || b->level[body] > 0) continue;
      b->level[body] = 1, b->tree_joint[body] = j, b->is_cut[j] = 0;
      b->queue[tail++] = body;
    }
  }
  for (;;) {
    while (head < tail) {
      int32_t body = b->queue[head++], *list = list_of(b, body);
      for (int32_t k = 0; k < b->size[body]; ++k) {
        if (list[k] < b->bodies) continue;
        int32_t j = list[k] - b->bodies;
        int32_t other = g->joint_body[j][0] == body ? g->joint_body[j][1] : g->joint_body[j][0];
        if (other < 0 || b->level[other] > 0) continue;
        b->level[other] = b->level[body] + 1, b->parent[other] = body, b->tree_joint[other] = j, b->is_cut[j] = 0;
        b->queue[tail++] = other;
      }
    }
    int32_t root = -1;
    for (int32_t i = 0; i < b->bodies && tail < b->bodies; ++i)
      if (b->level[i] == 0 && (root < 0 || g->mass[i] > g->mass[root])) root = i;
    if (root < 0) break;
    b->level[root] = 1;
    b->queue[tail++] = root;
  }
}

/* Moves a loop's two cursors up past bodies that are gone. 1: the loop's bodies are all gone. */
static int loop_ready(builder *b, int32_t j) {
  int32_t top = b->top_body[j];
  for (int side = 0; side < 2; ++side) {
    int32_t *cursor = side ? &b->cursor_b[j] : &b->cursor_a[j];
    while (*cursor >= 0 && *cursor != top && b->gone[*cursor]) *cursor = b->parent[*cursor];
    if (*cursor >= 0 && *cursor != top) {
      b->watch_next[j] = b->watch_head[*cursor];
      b->watch_head[*cursor] = j;
      return 0;
    }
  }
  return 1;
}

static void begin_loops(builder *b) {
  const direct_graph *g = b->graph;
  for (int32_t j = 0; j < g->joint_count; ++j) {
    if (!b->is_cut[j]) continue;
    int32_t x = g->joint_body[j][0], y = g->joint_body[j][1];
    b->cursor_a[j] = x, b->cursor_b[j] = y;
    while (x != y) { /* a fixed body is -1, above every root */
      int32_t lx = x < 0 ? 0 : b->level[x], ly = y < 0 ? 0 : b->level[y];
      if (lx >= ly)
        x = b->parent[x];
      else
        y = b->parent[y];
    }
    b->top_body[j] = x;
    if (loop_ready(b, j)) heap_add(b, b->bodies + j);
  }
}

/* ---- elimination
 * -------------------------------------------------------------------------------------------------------------------
 */

/* Takes a node out: its neighbors become neighbors of each other. Writes them to `out`; returns their number or -1. */
static int32_t eliminate(builder *b, int32_t x, int32_t *out, int64_t room) {
  int32_t count = b->size[x];
  if (count > room) return -1;
  memcpy(out, list_of(b, x), sizeof *out * (size_t)count);
  b->gone[x] = 1;
  for (int32_t k = 0; k < count; ++k) {
    int32_t y = out[k], n = b->size[y], i = 0, j = 0, m = 0;
    const int32_t *list = list_of(b, y);
    while (i < n || j < count) {
      int32_t next;
      if (j >= count || (i < n && list[i] < out[j]))
        next = list[i++];
      else if (i >= n || out[j] < list[i])
        next = out[j++];
      else
        next = list[i++], ++j;
      if (next != x && next != y) b->merged[m++] = next;
    }
    if (!list_set(b, y, b->merged, m)) return -1;
    if (b->place[y] >= 0) sift(b, y);
  }
  return count;
}

static int32_t *take(int32_t **scratch, int64_t count) {
  int32_t *p = *scratch;
  *scratch += count;
  return p;
}

/* Edge between two nodes, by their positions. */
static int32_t find_edge(const int32_t *position, const int32_t *first, const int32_t *neighbor, int32_t x, int32_t y) {
  int32_t p = position[x], q = position[y];
  if (p > q) {
    int32_t t = p;
    p = q, q = t;
  }
  int32_t low = first[p], high = first[p + 1];
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (neighbor[middle] < q)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int64_t direct_order_build(const direct_graph *g, int32_t max_blocks, int32_t *scratch, int32_t *memory, int64_t room,
                           direct_order *result) {
  builder b;
  memset(&b, 0, sizeof b);
  int32_t nodes = g->body_count + g->joint_count;
  b.graph = g, b.nodes = nodes, b.bodies = g->body_count;
  int32_t **arrays[BUILDER_ARRAYS] = {&b.start,      &b.size,     &b.room,       &b.heap,     &b.place,
                                      &b.parent,     &b.level,    &b.tree_joint, &b.is_cut,   &b.watch_head,
                                      &b.watch_next, &b.cursor_a, &b.cursor_b,   &b.top_body, &b.gone,
                                      &b.merged,     &b.order,    &b.queue,      NULL,        NULL};
  for (int k = 0; k < BUILDER_ARRAYS; ++k)
    if (arrays[k]) *arrays[k] = take(&scratch, nodes);
  int32_t *position = take(&scratch, nodes);
  b.half_room = 4 * max_blocks + 8 * nodes;
  b.half[0] = take(&scratch, b.half_room), b.half[1] = take(&scratch, b.half_room);

  for (int32_t x = 0; x < nodes; ++x) {
    b.start[x] = 8 * x, b.size[x] = 0, b.room[x] = 8;
    b.place[x] = -1, b.watch_head[x] = -1, b.gone[x] = 0;
  }
  b.top = 8 * nodes;
  for (int32_t j = 0; j < g->joint_count; ++j) {
    int32_t x = g->joint_body[j][0], y = g->joint_body[j][1], node = g->body_count + j;
    if (x >= 0 && !link_nodes(&b, x, node)) return -1;
    if (y >= 0 && !link_nodes(&b, y, node)) return -1;
  }
  make_forest(&b); /* needs bodies with their joints only */
  for (int32_t j = 0; j < g->joint_count; ++j) {
    int32_t x = g->joint_body[j][0], y = g->joint_body[j][1];
    if (g->joint_coupled[j] && x >= 0 && y >= 0 && !link_nodes(&b, x, y)) return -1;
  }
  for (int32_t p = 0; p < g->pair_count; ++p) {
    int32_t x = g->pair[p][0], y = g->pair[p][1];
    if (x >= 0 && y >= 0 && !link_nodes(&b, x, y)) return -1;
  }
  for (int32_t i = 0; i < b.bodies; ++i) heap_add(&b, i);
  begin_loops(&b);

  /* result: order, first, joint edges, cuts, pair edges, neighbors (last: of unknown length) */
  int32_t *at = memory;
  int64_t fixed = 2 * (int64_t)nodes + 1 + 4 * (int64_t)g->joint_count + g->pair_count;
  if (fixed > room) return -1;
  int32_t *order = take(&at, nodes), *first = take(&at, nodes + 1),
          *joint_edge = take(&at, 3 * (int64_t)g->joint_count);
  int32_t *cut = take(&at, g->joint_count), *pair_edge = take(&at, g->pair_count), *neighbor = at;
  int64_t edge_room = room - fixed;
  if (edge_room > (max_blocks - nodes) / 2) edge_room = (max_blocks - nodes) / 2;
  int32_t edges = 0, done = 0;
  while (done < nodes) {
    if (b.heap_count == 0) return -1; /* cannot happen: bodies are always eligible, and then every joint */
    int32_t x = b.heap[0];
    heap_remove(&b, x);
    for (;;) {
      first[done] = edges, order[done] = x, position[x] = done;
      ++done;
      int32_t count = eliminate(&b, x, neighbor + edges, edge_room - edges);
      if (count < 0) return -1;
      edges += count;
      if (x >= b.bodies) break;
      int32_t waiting = b.watch_head[x];
      while (waiting >= 0) {
        int32_t next = b.watch_next[waiting];
        if (loop_ready(&b, waiting)) heap_add(&b, b.bodies + waiting);
        waiting = next;
      }
      if (b.tree_joint[x] < 0) break;
      x = b.bodies + b.tree_joint[x];
    }
  }
  first[nodes] = edges;
  for (int32_t p = 0; p < nodes; ++p) {
    for (int32_t e = first[p]; e < first[p + 1]; ++e) neighbor[e] = position[neighbor[e]];
    for (int32_t e = first[p] + 1; e < first[p + 1]; ++e) {
      int32_t value = neighbor[e], f = e;
      for (; f > first[p] && neighbor[f - 1] > value; --f) neighbor[f] = neighbor[f - 1];
      neighbor[f] = value;
    }
  }
  for (int32_t j = 0; j < g->joint_count; ++j) {
    int32_t x = g->joint_body[j][0], y = g->joint_body[j][1], node = g->body_count + j;
    joint_edge[3 * j + 0] = x >= 0 ? find_edge(position, first, neighbor, x, node) : -1;
    joint_edge[3 * j + 1] = y >= 0 ? find_edge(position, first, neighbor, y, node) : -1;
    joint_edge[3 * j + 2] = x >= 0 && y >= 0 && g->joint_coupled[j] ? find_edge(position, first, neighbor, x, y) : -1;
    cut[j] = b.is_cut[j];
  }
  for (int32_t p = 0; p < g->pair_count; ++p) {
    int32_t x = g->pair[p][0], y = g->pair[p][1];
    pair_edge[p] = x >= 0 && y >= 0 ? find_edge(position, first, neighbor, x, y) : -1;
  }
  result->node_count = nodes, result->edge_count = edges;
  result->order = order, result->first = first, result->neighbor = neighbor;
  result->joint_edge = joint_edge, result->pair_edge = pair_edge, result->cut = cut;
  return (neighbor + edges) - memory;
}
