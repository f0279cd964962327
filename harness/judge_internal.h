/* The judge's inside, shared by its files: state of the run, what is measured once a frame for all, the metric kinds.
 *
 * Each kind of metric is three functions (begin, frame, finish) in the table `pabd_judge_kinds`; judge.c calls them.
 * `finish` may be called at any time and often: it reads and never changes. */
#ifndef PABD_JUDGE_INTERNAL_H
#define PABD_JUDGE_INTERNAL_H

#include "judge.h"
#include "judge_joints.h"
#include "judge_pairs.h"

#define PABD_TRACK_CAPACITY 80
#define PABD_SERIES_POINTS 600 /* most values of a series in a record, besides frame 0 */

/* Sums over the dynamic bodies. */
typedef struct pabd_totals {
  double mass;             /* kg */
  double kinetic;          /* J */
  double potential;        /* J, of gravity, about the origin */
  double spring;           /* J, of spring joints and of springs on free coordinates */
  pabd_dvec3 center;       /* m, of mass */
  pabd_dvec3 momentum;     /* kg m/s */
  pabd_dvec3 angular;      /* kg m^2/s, about the origin */
  double largest_momentum; /* kg m/s, of one body */
} pabd_totals;

/* One value a frame, [frame_count + 1], NAN where not measured. */
typedef struct pabd_track {
  char key[PABD_KEY_SIZE]; /* of the series; empty: only for the judge's own use */
  char unit[16];
  int is_error; /* thinned by the largest size in each bucket; else by the last value */
  double *values;
} pabd_track;

/* Largest and mean square, over the run and from the settle time on. */
typedef struct pabd_tally {
  double max, settled_max;
  double sum_squares, settled_sum_squares;
  int64_t count, settled_count;
} pabd_tally;

struct pabd_judge_kind;

/* One metric of the case at work. */
typedef struct pabd_watch {
  const struct pabd_judge_kind *kind;
  const pabd_case_metric *metric;
  int32_t ordinal; /* 0 for the first of its kind; later ones get _2, _3 behind their keys */
  int32_t track[4];
  pabd_tally tally[4];
  double number[8];
  int32_t flag[4];
  pabd_dvec3 vector[6];
  void *data; /* malloc'ed, freed by the judge */
} pabd_watch;

struct pabd_judge {
  const pabd_case *c;
  const pabd_scene *scene;
  int32_t frame; /* the last one that was judged; -1 before the start */
  int is_diverged;
  double time;    /* s, of that frame */
  int is_settled; /* time >= settle time */

  double *pose, *velocity;           /* [body_count][7], [body_count][6] of that frame */
  double *last_pose, *last_velocity; /* of the frame before */
  double quaternion_err;             /* largest | |q| - 1 | of the run */

  pabd_totals start, now; /* start: by the scene, not by the engine's frame 0 */
  double load_work;       /* J, of applied loads since the start */
  double driver_work;     /* J, as the engine says */
  double momentum_scale;  /* kg m/s: largest momentum of one body in the run */

  int needs_joints;
  pabd_joint_state *joints; /* [joint_count] */
  double *angles;           /* [joint_count] unwrapped, of the frame before; NAN at the start */

  pabd_pair_finder *pairs; /* NULL: nobody asked */
  pabd_pair_summary found; /* of the last sweep */
  int is_swept;            /* were pairs looked for in this frame? */
  int32_t sweep_stride;

  int32_t track_count;
  pabd_track tracks[PABD_TRACK_CAPACITY];
  int32_t watch_count;
  pabd_watch watches[24];
};

typedef struct pabd_judge_kind {
  const char *name;
  pabd_status (*begin)(pabd_judge *judge, pabd_watch *watch);
  void (*frame)(pabd_judge *judge, pabd_watch *watch);
  pabd_status (*finish)(const pabd_judge *judge, const pabd_watch *watch, pabd_metrics *out);
} pabd_judge_kind;

/* By file: judge_balance.c, judge_contacts.c, judge_gaps.c, judge_events.c. */
extern const pabd_judge_kind pabd_judge_energy, pabd_judge_momentum, pabd_judge_com, pabd_judge_settle_kinetic;
extern const pabd_judge_kind pabd_judge_penetration, pabd_judge_pile;
extern const pabd_judge_kind pabd_judge_joint_errors, pabd_judge_gap_series, pabd_judge_hanging_gap;
extern const pabd_judge_kind pabd_judge_survive, pabd_judge_first_low, pabd_judge_stop_distance, pabd_judge_creep,
    pabd_judge_flips, pabd_judge_free_fall, pabd_judge_contraction, pabd_judge_position;

/* Services of judge.c. */
pabd_status pabd_judge_track(pabd_judge *judge, const char *key, const char *unit, int is_error, int32_t *out);
void pabd_judge_note(pabd_judge *judge, int32_t track, double value);
pabd_status pabd_judge_needs_pairs(pabd_judge *judge);
void pabd_tally_add(const pabd_judge *judge, pabd_tally *tally, double value);
double pabd_tally_rms(const pabd_tally *tally);
int pabd_judge_has_settle(const pabd_judge *judge);
pabd_status pabd_judge_put(const pabd_watch *watch, pabd_metrics *out, const char *key, double value, const char *unit,
                           const char *better);
pabd_dvec3 pabd_body_position(const double *pose, int32_t body);
pabd_dquat pabd_body_rotation(const double *pose, int32_t body); /* normalized */
pabd_dvec3 pabd_body_angular_momentum(const pabd_scene *scene, const double *pose, const double *velocity,
                                      int32_t body); /* about its own center */
/* Judge_balance.c. */
void pabd_judge_balance_start(pabd_judge *judge);
void pabd_judge_balance_frame(pabd_judge *judge);
/* Part of the frame that ended now in which the load acts, 0..1. */
double pabd_load_share(const pabd_judge *judge, const pabd_load *load);

#endif
