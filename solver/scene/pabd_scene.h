/* A scene: bodies, shapes, joints, materials and drivers as plain data in SI units.
 *
 * Every engine gets the same scene, and the judge reads the same scene. Conventions (the project's contract): right
 * handed, z up; quaternions w, x, y, z, unit, body to world; velocities in the world frame; a body's position is that
 * of its centre of mass and its frame is its *principal* frame (the inertia tensor is diagonal in it). Friction and
 * restitution belong to a pair of materials, never to an engine's combining rule.
 *
 * Memory: a scene owns its arrays. `pabd_scene_add_*` may grow them; engines treat a scene as const and copy what they
 * need. Plain C, no pointers into other objects, so an out-of-tree engine needs this header and nothing else. */
#ifndef PABD_SCENE_H
#define PABD_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "pabd_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pabd_dvec3 {
  double x, y, z;
} pabd_dvec3;

typedef struct pabd_dquat {
  double w, x, y, z;
} pabd_dquat;

/* Rigid placement: y = p + q X q*. */
typedef struct pabd_dpose {
  pabd_dvec3 p;
  pabd_dquat q;
} pabd_dpose;

#define PABD_WORLD (-1) /* "body" index of the fixed world in joints */
#define PABD_NAME_SIZE 24

typedef enum pabd_motion {
  PABD_DYNAMIC,   /* moved by forces */
  PABD_STATIC,    /* never moves */
  PABD_KINEMATIC, /* moves with its given velocities, whatever it meets */
  PABD_MOTION_COUNT
} pabd_motion;

typedef struct pabd_body {
  char name[PABD_NAME_SIZE]; /* may be empty; unique where it is used by a case */
  pabd_motion motion;
  double mass; /* kg, > 0 for dynamic bodies */
  pabd_dvec3
      inertia;     /* kg m^2, principal moments about the centre of mass, in the body frame; > 0, triangle inequality */
  pabd_dpose pose; /* start pose of the centre of mass and the principal frame */
  pabd_dvec3 linear;  /* start velocity of the centre of mass, m/s, world frame */
  pabd_dvec3 angular; /* start angular velocity, rad/s, world frame */
  int32_t group;      /* collision group: bodies of the same group > 0 ignore each other; 0 = none */
  int32_t world;      /* index of the independent world it lives in (batches); 0 in a single world */
} pabd_body;

typedef enum pabd_shape_kind {
  PABD_SPHERE,   /* radius */
  PABD_CAPSULE,  /* radius, half_length of its segment, along local z */
  PABD_BOX,      /* half extents `half` */
  PABD_PLANE,    /* solid half space below local z = 0; static bodies only */
  PABD_CYLINDER, /* radius, half_length, along local z */
  PABD_HULL,     /* convex hull of scene vertices first_vertex .. + vertex_count */
  PABD_SHAPE_KIND_COUNT
} pabd_shape_kind;

/* A body may carry several shapes (a compound); a body without shapes does not collide. */
typedef struct pabd_shape {
  pabd_shape_kind kind;
  int32_t body;
  int32_t material;
  int32_t first_vertex, vertex_count; /* hull only: range in pabd_scene.vertices, shape frame */
  pabd_dpose local;                   /* shape frame in the body frame */
  pabd_dvec3 half;                    /* box: half extents, m */
  double radius;                      /* m */
  double half_length;                 /* m */
} pabd_shape;

typedef enum pabd_joint_kind {
  PABD_SPHERICAL, /* anchors coincide */
  PABD_HINGE,     /* anchors coincide, frame z axes align: turns about z */
  PABD_SLIDER,    /* frames align in rotation, b's anchor stays on a's z axis: slides along z */
  PABD_FIXED,     /* frames coincide */
  PABD_DISTANCE,  /* |anchor a - anchor b| = rest; with limits: between lower and upper (a rope has lower 0) */
  PABD_SPRING,    /* force -stiffness (d - rest) - damping d' along the line of the anchors */
  PABD_UNIVERSAL, /* anchors coincide, a's frame x axis stays normal to b's frame y axis */
  PABD_JOINT_KIND_COUNT
} pabd_joint_kind;

typedef enum pabd_motor_kind {
  PABD_MOTOR_NONE,
  PABD_MOTOR_RATE,     /* drives the free coordinate at `motor_target` rad/s or m/s, at most `motor_max` N m or N */
  PABD_MOTOR_POSITION, /* servo: drives the free coordinate to `motor_target` (+ motor_amplitude sin(motor_frequency t +
                          motor_phase)) rad or m */
  PABD_MOTOR_KIND_COUNT
} pabd_motor_kind;

/* The free coordinate of a hinge is the angle of b's frame relative to a's about a's z (right hand), of a slider the
 * position of b's anchor along a's z, both 0 where the frames coincide. */
typedef struct pabd_joint {
  char name[PABD_NAME_SIZE];
  pabd_joint_kind kind;
  int32_t body_a, body_b;      /* body_a may be PABD_WORLD: its frame is then given in world coordinates. b is a body */
  pabd_dpose frame_a, frame_b; /* anchor and axes in each body's frame */
  double rest;                 /* m; distance and spring */
  double stiffness, damping; /* N/m and N s/m (rad: N m/rad, N m s/rad): spring, or a spring on the free coordinate of a
                                hinge or slider about `rest`; 0 = none */
  int32_t has_limits;
  double lower, upper; /* limits of the free coordinate, rad or m; for PABD_DISTANCE of the distance */
  pabd_motor_kind motor;
  double motor_target, motor_max, motor_amplitude, motor_frequency, motor_phase; /* motor_max = INFINITY: no bound */
  int32_t collide; /* 0 (default): the two bodies ignore each other */
} pabd_joint;

/* A force or torque on a body, constant over [start, end), in the world frame at the centre of mass. */
typedef struct pabd_load {
  int32_t body;
  pabd_dvec3 force, torque; /* N, N m */
  double start, end;        /* s */
} pabd_load;

typedef struct pabd_scene {
  pabd_dvec3 gravity; /* m/s^2 */
  double frame_time;  /* one step (frame), s; 1/60 */

  int32_t body_count, body_capacity;
  pabd_body *bodies;
  int32_t shape_count, shape_capacity;
  pabd_shape *shapes; /* sorted by body */
  int32_t joint_count, joint_capacity;
  pabd_joint *joints;
  int32_t load_count, load_capacity;
  pabd_load *loads;
  int32_t vertex_count, vertex_capacity;
  pabd_dvec3 *vertices; /* of hulls, shape frame, m */
  int32_t ignored_count, ignored_capacity;
  int32_t (*ignored)[2]; /* pairs of bodies that do not collide, beside joined ones and groups */

  int32_t material_count; /* >= 1 */
  double *friction;       /* [material_count * material_count], symmetric: Coulomb coefficient of the pair */
  double *restitution;    /* [material_count * material_count], symmetric */
} pabd_scene;

/* Empty scene with gravity (0, 0, -9.81), frame time 1/60 and one material (friction 0.5, restitution 0). */
pabd_status pabd_scene_init(pabd_scene *scene);
/* Frees the arrays; `scene` may be zeroed or NULL. */
void pabd_scene_free(pabd_scene *scene);
/* Replaces the material table by count x count entries of the given values. */
pabd_status pabd_scene_set_materials(pabd_scene *scene, int32_t count, double friction, double restitution);

/* A body at rest at the origin (dynamic, mass 0: set it, or call pabd_scene_mass_from_density). Fill it and add it. */
pabd_body pabd_body_default(void);
pabd_shape pabd_shape_default(pabd_shape_kind kind);
pabd_joint pabd_joint_default(pabd_joint_kind kind);

/* Each appends a copy and returns its index, or a negative value when memory is out. Shapes must be added in body
 * order. */
int32_t pabd_scene_add_body(pabd_scene *scene, const pabd_body *body);
int32_t pabd_scene_add_shape(pabd_scene *scene, const pabd_shape *shape);
int32_t pabd_scene_add_joint(pabd_scene *scene, const pabd_joint *joint);
int32_t pabd_scene_add_load(pabd_scene *scene, const pabd_load *load);
int32_t pabd_scene_add_vertices(pabd_scene *scene, const pabd_dvec3 *vertices, int32_t count);
int32_t pabd_scene_ignore_pair(pabd_scene *scene, int32_t body_a, int32_t body_b);

/* Index of the body or joint of that name, or -1. */
int32_t pabd_scene_find_body(const pabd_scene *scene, const char *name);
int32_t pabd_scene_find_joint(const pabd_scene *scene, const char *name);

/* Sets the joint's frames from one world frame (anchor and axes, z = axis) at the bodies' start poses. */
void pabd_joint_place(const pabd_scene *scene, pabd_joint *joint, pabd_dpose world_frame);

/* Volume (m^3), and mass moments per unit density of a shape about its own frame (closed form; hull by tetrahedra). */
double pabd_shape_volume(const pabd_scene *scene, const pabd_shape *shape);
/* Principal inertia of a single shape of the given mass whose frame is the body frame (sphere, capsule, box, cylinder).
 */
pabd_dvec3 pabd_shape_inertia(const pabd_shape *shape, double mass);

/* Mass moments of one solid or of several, in one common frame. */
typedef struct pabd_mass_moments {
  double mass;       /* kg */
  pabd_dvec3 center; /* centre of mass, m */
  double inertia[6]; /* kg m^2 about the centre of mass: xx, yy, zz, xy, xz, yz (tensor entries: xy = -sum m x y) */
} pabd_mass_moments;

/* Moments of a shape of uniform density (kg/m^3) in the frame that `local` refers to (the body's). A plane has none. */
pabd_mass_moments pabd_shape_mass_moments(const pabd_scene *scene, const pabd_shape *shape, double density);
/* Moments of both together (parallel axes). */
pabd_mass_moments pabd_mass_moments_add(pabd_mass_moments a, pabd_mass_moments b);
/* Principal moments, and the rotation from the principal frame to the moments' frame; identity where the tensor is
 * diagonal already, so that a box keeps its frame. */
pabd_dvec3 pabd_mass_moments_principal(const pabd_mass_moments *moments, pabd_dquat *rotation);
/* Sets a body's mass and inertia from its shapes (all added; overlaps count twice) and moves its frame to the centre of
 * mass and principal axes: the pose, and the `local` of its shapes, follow, the solid stays where it is. `densities`
 * has one entry a shape of the body, in order. Call it before joints are placed. PABD_ERR_INPUT when the body has no
 * solid shape. */
pabd_status pabd_scene_mass_from_densities(pabd_scene *scene, int32_t body, const double *densities);
pabd_status pabd_scene_mass_from_density(pabd_scene *scene, int32_t body, double density);

/* Do the two bodies never collide: same body, both immovable, different worlds, same group, joined, or listed? The
 * lookup is O(joints + ignored); engines build their own tables from the same rule (pabd_scene_filter_pairs). */
int pabd_scene_ignores(const pabd_scene *scene, int32_t body_a, int32_t body_b);
/* All filtered pairs that come from joints and from `ignored`, as sorted unique (low, high) pairs, malloc'ed into
 * *pairs. */
pabd_status pabd_scene_filter_pairs(const pabd_scene *scene, int32_t (**pairs)[2], int32_t *count);

/* Checks what any engine may assume: indices, finite numbers, positive masses and inertias (triangle inequality), unit
 * quaternions, planes static, limits ordered. On failure `error` names the object ("body 7 'bob': mass = -1 must be > 0
 * kg"). */
pabd_status pabd_scene_check(const pabd_scene *scene, pabd_error *error);

/* Small maths in double that every user of scenes needs. */
pabd_dvec3 pabd_dquat_rotate(pabd_dquat q, pabd_dvec3 v);
pabd_dquat pabd_dquat_mul(pabd_dquat a, pabd_dquat b);
pabd_dquat pabd_dquat_conj(pabd_dquat q);
pabd_dquat pabd_dquat_from_rotation_vector(pabd_dvec3 r);
pabd_dquat pabd_dquat_normalize(pabd_dquat q);
pabd_dpose pabd_dpose_mul(pabd_dpose a, pabd_dpose b); /* a then b in a's frame */
pabd_dpose pabd_dpose_inverse(pabd_dpose a);
pabd_dvec3 pabd_dpose_apply(pabd_dpose a, pabd_dvec3 point);

#ifdef __cplusplus
}
#endif
#endif
