/* Reads the scene of a case: materials, bodies with shapes, generators, joints, loads, ignored pairs.
 *
 * Order in the scene: bodies of "bodies" first, then what each generator of "generate" adds, in the order of the file;
 * the joints of generators, then those of "joints". */
#ifndef PABD_CASES_SCENE_READ_H
#define PABD_CASES_SCENE_READ_H

#include "read.h"

#define CASE_BODY_MAX 2000000
#define CASE_HULL_VERTEX_MAX 256
#define CASE_MATERIAL_MAX 64

/* Builds `scene` (initialized, empty) from the case's top object. Ends with pabd_scene_check. */
pabd_status read_scene(reader *r, const cJSON *top, pabd_scene *scene);

/* Adds a body with one shape of uniform density and the given mass; a negative result means that memory is out. */
int32_t add_solid(pabd_scene *scene, const pabd_body *body, const pabd_shape *shape);
/* Rotation that takes z to `axis` by the shortest way (axis need not be unit, must not be zero). */
pabd_dquat rotation_to_axis(pabd_dvec3 from, pabd_dvec3 to);

#endif
