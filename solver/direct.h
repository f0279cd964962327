/* The exact island solver: what its glue (direct.c), its ordering (direct_order.c) and its numeric core share.
 *
 * The core (direct_core.h) is compiled once in single and once in double precision, whatever the library's `real` is:
 * trees of joints and contacts run in the library's precision, joint loops always in double. So everything here is free
 * of `real`: state and constants are doubles, which the core rounds to its own working precision at the start of a
 * step. State is exact to double between steps. */
#ifndef PABD_DIRECT_H
#define PABD_DIRECT_H

#include <stdint.h>

#include "pabd_scene.h"
#include "params.h"

#define DIRECT_ROWS 8 /* rows of one joint at most; also the width of a block */

typedef pabd_dvec3 dvec3;
typedef pabd_dquat dquat;

/* One body: constants, state, history. v and L are state; omega follows from L. */
typedef struct direct_body {
  int32_t motion;      /* pabd_motion */
  int32_t local;       /* index in the island at work, -1 outside */
  int32_t is_foreign;  /* 1: another solver, or the caller, moved it since its last step here */
  double mass;         /* kg */
  dvec3 inertia;       /* kg m^2, principal */
  dvec3 force, torque; /* N, N m: gravity and loads of this frame */
  dvec3 p, v, L;       /* m, m/s, kg m^2/s */
  dquat q;             /* body to world */
  dvec3 w;             /* rad/s, world; prescribed for kinematic bodies */
  double step_h;       /* s: length of the last step, 0 = no history */
  dvec3 step,
      turn; /* m; rad, Cayley vector of R_n R_(n-1)^T (world = body axes of the turn: stored in the body frame) */
  dvec3 v_prev, L_prev; /* one step back */
} direct_body;

typedef enum direct_row_kind {
  DIRECT_POINT,     /* axis row_i of the world: e . (p_b + x_b - p_a - x_a) */
  DIRECT_DIRECTION, /* axis row_i of a . axis row_j of b */
  DIRECT_LINE,      /* axis row_i of a . (p_b + x_b - p_a - x_a) */
  DIRECT_DISTANCE,  /* |p_b + x_b - p_a - x_a| */
  DIRECT_ANGLE,     /* angle of b about a's z */
  DIRECT_SWING /* direction row with the axis of a turned by the target angle: sin(target - angle) or its negative */
} direct_row_kind;

typedef enum direct_role { DIRECT_HARD, DIRECT_SPRING, DIRECT_LIMIT, DIRECT_MOTOR } direct_role;

/* One joint as rows, made from the scene's joint at creation. Rows 0..2 are the point rows where `is_point`. */
/* What a joint carries from step to step. */
typedef struct direct_joint_state {
  double lambda[DIRECT_ROWS]; /* N or N m: force along +row on b */
  double angle;               /* rad: free coordinate of hinges, unwrapped */
  double motor_force_step;    /* sign of the motor's bound in force: -1, 0, +1 */
  int32_t limit_active;       /* +1: upper, -1: lower limit holds, 0: free */
} direct_joint_state;

typedef struct direct_joint {
  int32_t body_a, body_b; /* a may be -1, the world */
  int32_t is_ball;        /* three hard point rows and nothing else */
  int32_t is_point;       /* rows 0..2 are point rows */
  int32_t row_count;
  int32_t coupled; /* geometric stiffness links the two bodies: the pair needs a block */
  uint8_t kind[DIRECT_ROWS], role[DIRECT_ROWS], i[DIRECT_ROWS], j[DIRECT_ROWS];
  dvec3 anchor_a, anchor_b; /* m, body frames */
  dquat frame_a, frame_b;   /* joint frame to body frame */
  double rest, stiffness, damping, lower, upper;
  int32_t motor; /* pabd_motor_kind */
  double motor_target, motor_max, motor_amplitude, motor_frequency, motor_phase;
  direct_joint_state state;
} direct_joint;

/* One contact of the island at work; indices are local. The tangential multipliers follow the frame's tangents. */
typedef struct direct_contact {
  int32_t a, b;          /* local bodies; at least one is dynamic */
  int32_t pair;          /* local pair */
  dvec3 normal, tangent; /* normal from b to a */
  dvec3 core_a, core_b;  /* m, body frames */
  double offset_a, offset_b, gap, bias, mu;
  double lambda[3]; /* N: normal >= 0, tangents; force on a */
  double support;   /* kg: mass on the far side from the ground */
} direct_contact;

/* Elimination order and fill of one island's matrix: nodes 0 .. body_count - 1 are bodies, then joints. */
typedef struct direct_order {
  int32_t node_count, edge_count;
  const int32_t *order;      /* [node_count] nodes by position */
  const int32_t *first;      /* [node_count + 1] by position: into neighbor */
  const int32_t *neighbor;   /* [edge_count] positions of later neighbors, ascending */
  const int32_t *joint_edge; /* [joint_count][3] edge of (a, joint), (b, joint), (a, b); -1 = none */
  const int32_t *pair_edge;  /* [pair_count] edge of the pair of a contact, -1 where one side is fixed */
  const int32_t *cut;        /* [joint_count] 1: closes a loop */
} direct_order;

typedef struct direct_counts {
  int32_t iterations, failures, halvings, bdf2, euler, exhausted;
  int32_t limited; /* steps whose velocities were scaled down by an unexplained rise of energy */
} direct_counts;

/* One island and one frame. */
typedef struct direct_island {
  int32_t body_count, local_count; /* dynamic bodies first; then fixed ones it touches (the world: -1) */
  const int32_t *body;             /* [local_count] local to global */
  int32_t joint_count;
  const int32_t *joint; /* [joint_count] global joint */
  int32_t contact_count, pair_count;
  direct_contact *contact;    /* sorted by pair */
  int32_t is_tree;            /* ball joints only, a tree, no contacts: bodies come children first */
  const int32_t *tree_parent; /* [body_count] local parent, -1 = none (free root) */
  const int32_t *tree_joint;  /* [body_count] local joint to the parent, -1 */
  direct_order order;
  /* the frame */
  double h_frame, time;
  int32_t substeps, integrator, max_iterations;
  /* results */
  direct_counts counts;
  double driver_work; /* J */
  double error;       /* m: largest |C| of hard point rows at the end */
} direct_island;

typedef struct direct_capacity {
  int32_t bodies, joints, contacts, nodes, blocks; /* of one island; blocks of DIRECT_ROWS x DIRECT_ROWS */
} direct_capacity;

/* The numeric core, twice. `memory` holds direct_core_bytes_*(capacity) bytes, 64-byte aligned. */
size_t direct_core_bytes_float(const direct_capacity *capacity);
size_t direct_core_bytes_double(const direct_capacity *capacity);
void direct_core_step_float(void *memory, const direct_capacity *capacity, direct_island *island, direct_body *bodies,
                            direct_joint *joints);
void direct_core_step_double(void *memory, const direct_capacity *capacity, direct_island *island, direct_body *bodies,
                             direct_joint *joints);

#endif
