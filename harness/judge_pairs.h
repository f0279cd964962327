/* Which shapes touch or overlap, and how deep: the judge's own broad phase over its exact gaps. */
#ifndef PABD_JUDGE_PAIRS_H
#define PABD_JUDGE_PAIRS_H

#include "pabd_scene.h"

#define PABD_TOUCH_GAP 1e-3   /* m: pairs nearer than this count as contacts */
#define PABD_DEPTH_FLOOR 1e-4 /* m: shallower overlaps are not listed */

typedef struct pabd_pair_finder pabd_pair_finder;

/* What one sweep over all pairs of shapes that may collide has found. */
typedef struct pabd_pair_summary {
  double deepest;       /* m, >= 0 */
  int32_t touching;     /* pairs with gap <= PABD_TOUCH_GAP */
  int32_t depth_count;  /* pairs deeper than PABD_DEPTH_FLOOR */
  const double *depths; /* [depth_count] m; the finder's, until the next sweep */
} pabd_pair_summary;

/* NULL when memory is out. The scene must outlive it. */
pabd_pair_finder *pabd_pair_finder_create(const pabd_scene *scene);
/* pose [body_count][7]. Static bodies are taken from the scene: they do not move, whatever an engine says. */
pabd_status pabd_pair_finder_sweep(pabd_pair_finder *finder, const double *pose, pabd_pair_summary *out);
/* May any two bodies collide at all; with `only_support`: any dynamic body with a static or kinematic one? By the
 * filters alone, wherever they are. A search that grows too long says yes. */
int pabd_pair_finder_can_touch(const pabd_pair_finder *finder, int only_support);
void pabd_pair_finder_destroy(pabd_pair_finder *finder);

#endif
