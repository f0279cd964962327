/* The engine table: the one door by which every solver enters the suite, ours included.
 *
 * An engine is a shared object that exports `pabd_engine_entry`. The harness loads it at run time, gives it a scene and
 * settings, steps it frame by frame and reads poses and velocities; it never links an engine. Everything the judge
 * reports comes from poses and velocities; what an engine says of itself (stats, contacts) is recorded beside, labelled
 * as the engine's own. All calls for one world come from one thread. */
#ifndef PABD_ENGINE_H
#define PABD_ENGINE_H

#include <stdint.h>

#include "pabd_scene.h"
#include "pabd_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PABD_ENGINE_ABI 1u

/* What an engine can express. A scene that needs a missing capability gives status `na` with the reason. */
enum {
  PABD_CAN_SPHERE = 1u << 0,
  PABD_CAN_CAPSULE = 1u << 1,
  PABD_CAN_BOX = 1u << 2,
  PABD_CAN_PLANE = 1u << 3,
  PABD_CAN_CYLINDER = 1u << 4,
  PABD_CAN_HULL = 1u << 5,
  PABD_CAN_COMPOUND = 1u << 6,
  PABD_CAN_SPHERICAL = 1u << 7,
  PABD_CAN_HINGE = 1u << 8,
  PABD_CAN_SLIDER = 1u << 9,
  PABD_CAN_FIXED = 1u << 10,
  PABD_CAN_DISTANCE = 1u << 11,
  PABD_CAN_SPRING = 1u << 12,
  PABD_CAN_UNIVERSAL = 1u << 13,
  PABD_CAN_LIMITS = 1u << 14,
  PABD_CAN_MOTORS = 1u << 15,
  PABD_CAN_RESTITUTION = 1u << 16,
  PABD_CAN_KINEMATIC = 1u << 17,
  PABD_CAN_LOADS = 1u << 18,
  PABD_CAN_FRICTION_CONE = 1u << 19,  /* Coulomb's cone, isotropic; absent = pyramid or other law */
  PABD_CAN_PAIR_MATERIALS = 1u << 20, /* any friction table, not only one value */
  PABD_CAN_REPORT_CONTACTS = 1u << 21,
  PABD_CAN_SET_CONTACTS = 1u << 22, /* frozen-contacts mode */
  PABD_CAN_THREADS = 1u << 23,
  PABD_CAN_DETERMINISM = 1u << 24, /* same bits for any thread count */
  PABD_CAN_TRACE = 1u << 25,       /* calls back once a sweep */
  PABD_CAN_WORLDS = 1u << 26       /* independent worlds in one scene */
};

/* Filled by `probe`; strings live as long as the library. */
typedef struct pabd_engine_info {
  const char *name;      /* as on the command line */
  const char *version;   /* of the engine itself */
  const char *precision; /* "float", "double" */
  const char *device;    /* "cpu", or the GPU's name */
  const char *license;
  const char *build; /* "source: flags" or "prebuilt: where from" */
  uint64_t capabilities;
} pabd_engine_info;

/* One setting as text, "key" = "value". */
typedef struct pabd_setting {
  const char *key;
  const char *value;
} pabd_setting;

/* Description of a setting, for --help, range checks and records. */
typedef struct pabd_setting_info {
  const char *key;
  const char *type;    /* "int", "real", "bool", "choice" */
  const char *initial; /* default value as text */
  const char *range;   /* "0 .. 1", "a | b | c" */
  const char *unit;    /* SI symbol, "1" for none */
  const char *meaning;
  const char *source; /* where the value or the choice comes from */
} pabd_setting_info;

/* A contact point as an engine or the frozen-contacts mode sees it. The normal points from b to a, gap > 0 apart. */
typedef struct pabd_contact {
  int32_t body_a, body_b;
  uint32_t feature;  /* stable id within the pair, or 0 */
  pabd_dvec3 point;  /* world, m: midway between the two surfaces */
  pabd_dvec3 normal; /* world, from b to a */
  double gap;        /* m */
  double friction;   /* Coulomb coefficient of the pair */
  double restitution;
  pabd_dvec3 force; /* on a, N, of the last substep (output only) */
} pabd_contact;

#define PABD_STAGE_MAX 32
#define PABD_COUNTER_MAX 48

typedef struct pabd_stage_time {
  const char *name;   /* the kernel's or stage's name */
  int32_t is_collide; /* 1: belongs to collide_ms; 0: to solve_ms */
  double ms;          /* wall time in the last frame */
} pabd_stage_time;

typedef struct pabd_counter {
  const char *name; /* e.g. "contacts", "sweeps", "overflow_contacts", "residual", "driver_work" */
  const char *unit;
  double value;
} pabd_counter;

/* What the engine says of its last frame. Counters named in the contract: "contacts", "bytes", "bytes_per_body",
 * "bytes_per_contact", "overflow" (things dropped for lack of capacity), "driver_work" (J, cumulative work of motors
 * and kinematic bodies since the start; applied loads are not in it), "rigidity_defect" (before the projection). */
typedef struct pabd_engine_stats {
  int32_t stage_count;
  pabd_stage_time stages[PABD_STAGE_MAX];
  int32_t counter_count;
  pabd_counter counters[PABD_COUNTER_MAX];
  double self_ms; /* external engines: their own step time of the last frame; 0 = the harness's clock counts */
} pabd_engine_stats;

/* One call a sweep, while a frame runs: state after that sweep. Arrays are the engine's, valid during the call. */
typedef struct pabd_trace {
  int32_t frame, substep, sweep; /* sweep counts main sweeps, then relax sweeps */
  const char *phase;             /* "sweep", "relax", "dual", "newton" */
  int32_t body_count, joint_count;
  const double *pose;     /* [body_count][7]: p, q(w,x,y,z) of the iterate */
  const double *momentum; /* [body_count][3]: linear momentum that the iterate implies, kg m/s */
  double residual;        /* gradient norm |T^T g|, N (moments over the body's radius of gyration), infinity norm */
  double joint_error;     /* largest |C| over hard joint rows, m */
  double gap_min;         /* smallest contact gap, m */
  double lambda_max;      /* largest multiplier, N */
  double objective;       /* of the step, J; NAN where the method has none */
} pabd_trace;
typedef void (*pabd_trace_fn)(const pabd_trace *trace, void *user);

typedef struct pabd_engine {
  uint32_t abi;  /* PABD_ENGINE_ABI */
  uint32_t size; /* sizeof(pabd_engine) */
  /* Can it run here? PABD_OK, or PABD_ERR_UNAVAILABLE with the reason. `info` is filled in both cases as far as known.
   */
  pabd_status (*probe)(pabd_engine_info *info, pabd_error *error);
  /* All settings; their order is the order in records. */
  const pabd_setting_info *(*settings)(int32_t *count);
  /* A world from a scene (copied). Unknown keys and bad values: PABD_ERR_INPUT; a scene it cannot express:
   * PABD_ERR_UNSUPPORTED with the reason; nothing is left allocated then. "threads" is a setting of every engine that
   * can. */
  pabd_status (*create)(const pabd_scene *scene, const pabd_setting *settings, int32_t setting_count, void **world,
                        pabd_error *error);
  /* One frame of scene->frame_time. PABD_DIVERGED when the engine itself sees that its numbers are gone. */
  pabd_status (*step)(void *world, pabd_error *error);
  /* pose [body_count][7]: p, q (w, x, y, z) of the centre of mass and principal frame; velocity [body_count][6]:
   * linear, angular, world frame. Body order of the scene. */
  void (*read)(void *world, double *pose, double *velocity);
  void (*stats)(void *world, pabd_engine_stats *stats);
  /* Value in force of setting `index` as text into buffer (all are recorded, defaults too). */
  void (*setting_value)(void *world, int32_t index, char *buffer, int32_t size);
  /* Optional (NULL when the capability is missing). Returns the number of contacts; writes at most `capacity`. */
  int32_t (*contacts)(void *world, pabd_contact *contacts, int32_t capacity);
  /* Optional: the contacts of the next frames are these, instead of collision detection. count < 0 ends the mode. */
  pabd_status (*set_contacts)(void *world, const pabd_contact *contacts, int32_t count, pabd_error *error);
  /* Optional. */
  void (*set_trace)(void *world, pabd_trace_fn trace, void *user);
  /* `world` may be NULL. */
  void (*destroy)(void *world);
} pabd_engine;

/* The exported function. Returned table: static, const. */
typedef const pabd_engine *(*pabd_engine_entry_fn)(void);
#define PABD_ENGINE_ENTRY_NAME "pabd_engine_entry"
#if defined(__GNUC__)
#define PABD_ENGINE_EXPORT __attribute__((visibility("default")))
#else
#define PABD_ENGINE_EXPORT
#endif

#ifdef __cplusplus
}
#endif
#endif
