/* Elimination order and fill of one island's matrix (direct_order.c). */
#ifndef PABD_DIRECT_ORDER_H
#define PABD_DIRECT_ORDER_H

#include "direct.h"

/* The island's graph. Joints link bodies (local, or -1 for a fixed one); pairs are contacts between bodies, -1
 * likewise. */
typedef struct direct_graph {
  int32_t body_count, joint_count, pair_count;
  const int32_t (*joint_body)[2];
  const uint8_t *joint_coupled; /* the bodies of the joint share a block */
  const int32_t (*pair)[2];
  const int32_t *depth; /* [body_count] distance from the ground: among equals the farthest body goes first */
  const double *mass;   /* [body_count] */
} direct_graph;

/* Integers that the builder needs beside its result. */
int64_t direct_order_scratch(int32_t nodes, int32_t blocks);
/* Integers of a result at most. */
int64_t direct_order_size(int32_t nodes, int32_t joints, int32_t pairs, int32_t blocks);
/* Builds the order into `memory` (`room` integers) and returns the integers used, or -1 when blocks or room do not
 * suffice. */
int64_t direct_order_build(const direct_graph *graph, int32_t max_blocks, int32_t *scratch, int32_t *memory,
                           int64_t room, direct_order *order);

#endif
