/* The solver's state: the view that kernels see and the simulation that owns it.
 *
 * All arrays come from fields.def and are carved from one allocation; the view (pointers and scalars) is passed to
 * kernels by pointer on the CPU and by value on a device (static check: below 4 KB). Row capacities are fixed at
 * creation. Islands are sorted into classes by their global step; each class owns a contiguous range of body_order,
 * bond_order and of the contacts, and each global step (jacobi.c, contact_gs.c, direct.c) works on its class's ranges
 * only. */
#ifndef PABD_STATE_H
#define PABD_STATE_H

#include "pabd.h"
#include "real.h"

/* Kinds of rows, with their capacities. */
#define PABD_ROWS_LIST(X) \
  X(body)                 \
  X(body_plus1) X(shape) X(node) X(vertex) X(material2) X(filter) X(pair) X(pair4) X(contact) X(end) X(bond) X(bond_end)

typedef struct pabd_motion8 { /* displacement and rotation of one body: one half cache line in float */
  vec3 d;                     /* m */
  real pad;
  quat q; /* 1 */
} pabd_motion8;

/* The 13-number block H = [a b^T; b D] (x) I3 of one body, about its centre of mass, in world axes at the substep's
 * start, and what the local step needs of it. S = D - b b^T/a. Paper section 4.3. */
typedef struct pabd_block {
  real a;  /* N/m */
  vec3 b;  /* N */
  sym3 Pi; /* N m: second moments of mass over h^2 */
  sym3 S;  /* N m: D - b b^T/a; D itself is S + b b^T/a; D' = S^-1, b' = -S^-1 b/a, a' = 1/a + b^T S^-1 b/a^2 */
} pabd_block;

/* World frame of a shape and its sizes: all that the narrow phase reads of it, one cache line in float. */
typedef struct pabd_shape_frame {
  vec3 pos;   /* m */
  mat3 rot;   /* 1: shape to world; columns are the shape's axes */
  vec3 half;  /* m: half extents of a box; (radius, half length, 0) of round shapes */
  real reach; /* m: h_frame |w| r / 2 of its body, the spin part of the speculative margin */
} pabd_shape_frame;

/* Inner node of the hierarchy with the bounds of both children: one cache line in float. */
typedef struct pabd_node {
  vec3 lo[2], hi[2];   /* m: bounds of the children */
  int32_t left, right; /* child: >= 0 inner node, ~i leaf i (in sorted order); the left child ends at leaf `split` */
  int32_t split, last; /* leaves: left child ends at split, the right one is split + 1 .. last */
} pabd_node;

typedef struct pabd_wrench {
  vec3 force, torque;
} pabd_wrench;

typedef enum pabd_bond_kind {
  PABD_BOND_POINT,     /* r = y_a - y_b, 3 rows */
  PABD_BOND_LINE,      /* r normal to the axis of a, 2 rows; force at b's point on both bodies */
  PABD_BOND_DIRECTION, /* r = R_a u - R_b v, moments in N m */
  PABD_BOND_DISTANCE,  /* |y_a - y_b| against rest, bounds on the tension */
  PABD_BOND_SPRING,    /* the same, finite stiffness and damping, no multiplier */
  PABD_BOND_KIND_COUNT
} pabd_bond_kind;

/* Class of an island: who steps it. */
enum { PABD_CLASS_FREE, PABD_CLASS_JACOBI, PABD_CLASS_GS, PABD_CLASS_DIRECT, PABD_CLASS_COUNT };

typedef struct pabd_view {
#define FIELD(type, name, rows, planes, unit, writer) type *name;
#include "fields.def"
#undef FIELD
  /* strides of planar fields = capacities */
  int32_t stride_contact;
  /* live counts */
  int32_t body_count, shape_count, node_count, pair_count, contact_count, bond_count, filter_count, material_count;
  int32_t old_count; /* contacts of the frame before */
  /* collision, set each frame by collide.c */
  int32_t leaf_count, big_count; /* shapes in the hierarchy; shapes handled apart */
  int32_t shape_bits, world_bits,
      morton_bits;              /* layout of the sort keys: world | Morton code (3 x morton_bits) | shape */
  int32_t pair_slots;           /* partners a leaf may note in pair_scratch during counting */
  vec3 morton_lo, morton_scale; /* m, cells/m */
  /* scalars of the present substep */
  real h, inv_h2; /* s, 1/s^2 */
  real h_frame;   /* s */
  vec3 gravity;   /* m/s^2 */
  real alpha, delta, kappa_fixed, kappa_angle_fixed, stiffness_scale, beta, growth, bond_factor, dual_damping,
      joint_cap;
  real margin, margin_max, edge_bias, pushout_speed;
  real mass_total, kappa_most; /* kg: of all dynamic bodies; N/m: bound of the load rule */
  real warm_scale;             /* 1: part of the multipliers carried to the next frame, alpha gamma */
  real omega_max;              /* rad/s: beyond this a body counts as diverged */
  int32_t stiffness_rule, local_step, prediction, velocity_rule, multipliers, stamp_open, predict_passes;
  int32_t substep, substep_count; /* kinematic bodies move by (substep + 1)/substep_count of the frame */
  int32_t report_now;             /* 1: body_sweep also computes the residual and the rigidity defect */
} pabd_view;

/* Rows of one class: ranges of body_order, of the contacts and of bond_order. */
typedef struct pabd_range {
  int32_t body_first, body_count;
  int32_t contact_first, contact_count;
  int32_t bond_first, bond_count;
} pabd_range;

/* Kernel numbers, from kernels.def. */
typedef enum pabd_kernel {
#define KERNEL(name, rows, reads, writes) PABD_K_##name,
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
  PABD_KERNEL_COUNT
} pabd_kernel;

/* A device that holds the state and does the frames of a simulation (backend_cuda.cu). */
typedef struct pabd_device_ops {
  pabd_status (*step)(pabd_sim *sim);
  pabd_status (*fetch)(pabd_sim *sim, int32_t contacts); /* state (and contact rows) into the host's fields */
  void (*destroy)(pabd_sim *sim);
} pabd_device_ops;

struct pabd_sim {
  pabd_view view;
  pabd_params params;
  pabd_stats stats;
  pabd_range range[PABD_CLASS_COUNT];
  int32_t capacity_body, capacity_body_plus1, capacity_shape, capacity_node, capacity_vertex, capacity_material2,
      capacity_filter, capacity_pair, capacity_pair4, capacity_contact, capacity_end, capacity_bond, capacity_bond_end;
  void *memory; /* the one allocation of all fields */
  size_t memory_bytes;
  pabd_joint *joints; /* [joint_count] copy of the scene's joints (direct solver, drivers) */
  int32_t joint_count;
  pabd_load *loads;
  int32_t load_count;
  int32_t *joint_bond_first; /* [joint_count + 1] first bond of a joint */
  int64_t frame;             /* frames done */
  double time;               /* s */
  double driver_work;        /* J */
  /* islands (host): [island_count] */
  int32_t island_count;
  int32_t *island_class, *island_body_count, *island_contact_count, *island_bond_count; /* [capacity_body] */
  int32_t *island_body_first, *island_contact_first, *island_bond_first; /* into the class's ordered lists */
  float *island_speed;                       /* [island_count] m/s: fastest closing of a candidate contact */
  float *island_mass_low, *island_mass_high; /* [island_count] kg: lightest and heaviest body */
  int32_t *scratch;                          /* [scratch_count] integers for host passes (union-find, counting sorts) */
  size_t scratch_count;
  int32_t stage_same;            /* stages of this frame so far that stand as in the last frame's table */
  double stage_end_ms;           /* when the last stage of this frame ended; 0 before the first (timers.c) */
  void *gs;                      /* contact_gs.c's own state */
  void *direct;                  /* direct.c's own state */
  const pabd_device_ops *device; /* NULL: all on the CPU */
  void *device_state;
  const pabd_contact_point *frozen; /* copy, or NULL */
  int32_t frozen_count;
  pabd_sweep_fn trace;
  void *trace_user;
  double stage_start;
};

#ifdef __cplusplus
extern "C" {
#endif

/* -- backend_cpu.c: launchers
 * ------------------------------------------------------------------------------------------------- */
/* Runs kernel k for rows [first, first + count) of its range (bodies through body_order, bonds through bond_order). */
void pabd_launch(pabd_sim *sim, pabd_kernel k, int32_t first, int32_t count);
const char *pabd_kernel_name(pabd_kernel k);
/* One row of a kernel, serially (tests). */
void pabd_kernel_row(pabd_kernel k, int32_t i, const pabd_view *view);

/* -- stage timers (timers.c)
 * -------------------------------------------------------------------------------------------------------- */
/* Wall clock between begin and end is added to the timer of that name (a string literal). */
double pabd_stage_begin(pabd_sim *sim);
void pabd_stage_end(pabd_sim *sim, const char *name, int32_t is_collide, double begin);

/* -- primitives.c: integer primitives, deterministic for any thread count
 * ------------------------------------------------------- */
int32_t pabd_scan_exclusive(int32_t *values, int32_t count); /* in place; returns the sum */
void pabd_sort_u64(uint64_t *keys, uint64_t *scratch, int32_t count,
                   int32_t threads); /* radix sort, ascending, in place */

/* -- stages of a frame (step.c calls them in this order)
 * -------------------------------------------------------------------------- */
void pabd_collide(pabd_sim *sim); /* collide.c: bounds, LBVH, pairs, manifolds */
void pabd_islands(pabd_sim *sim); /* islands.c: islands, classes, body_order, bond_order, pair_first, contact counts */
void pabd_contacts_fill(pabd_sim *sim); /* contacts.c: contact rows from manifolds, warm start, gather lists */
void pabd_apply_loads(pabd_sim *sim);   /* step.c: loads of this frame into load_force, load_torque */
void pabd_clear_stats(pabd_sim *sim);   /* step.c: what counts within one frame */
void pabd_contacts_save(pabd_sim *sim); /* contacts.c: keep multipliers for the next frame */
void pabd_step_free(pabd_sim *sim, const pabd_range *range);       /* jacobi.c: bodies without rows */
void pabd_step_jacobi(pabd_sim *sim, const pabd_range *range);     /* jacobi.c: the paper's method */
void pabd_step_contact_gs(pabd_sim *sim, const pabd_range *range); /* contact_gs.c */
void pabd_step_direct(pabd_sim *sim, const pabd_range *range);     /* direct.c */
pabd_status pabd_contact_gs_create(pabd_sim *sim);                 /* takes its memory; PABD_ERR_MEMORY */
void pabd_contact_gs_destroy(pabd_sim *sim);
pabd_status pabd_direct_create(pabd_sim *sim);
void pabd_direct_destroy(pabd_sim *sim);

#ifdef __cplusplus
}
#endif
#endif
