/* Small pictures of a scene as SVG: orthographic view from the front right above, flat shading, painter's order. */
#ifndef PABD_REPORT_SCENE_H
#define PABD_REPORT_SCENE_H

#include "pabd_scene.h"
#include "report_text.h"

/* What the picture shows, in screen coordinates (m): the same view for the start and all engines makes them comparable.
 */
typedef struct pabd_scene_view {
  double low[2], high[2]; /* shown region: right, up */
  double start_low[2], start_high[2];
  double floor_low[3], floor_high[3]; /* world box of everything shown; the drawn part of the ground lies under it */
  int has_bounds;
} pabd_scene_view;

/* A view of the scene's start poses. */
void pabd_scene_view_start(pabd_scene_view *view, const pabd_scene *scene);
/* Widens the view by other poses ([body_count][7]); bodies far outside of the start picture do not count. */
void pabd_scene_view_include(pabd_scene_view *view, const pabd_scene *scene, const double *pose);
/* Appends one <svg> element. `pose` NULL: start poses. `alternative`: text for readers who cannot see it (escaped
 * here). Returns the number of moving bodies outside of the picture (thrown or fallen away, or not finite). */
int pabd_scene_draw(pabd_text *out, const pabd_scene *scene, const double *pose, const pabd_scene_view *view,
                    const char *alternative);

#endif
