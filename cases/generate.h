/* Generators: families of bodies that would be tedious to list (stacks, chains, grids, walls, rings).
 *
 * Each reads its own keys from one object of "generate" and appends bodies, shapes and joints. Names are numbered from
 * 0 behind a prefix ("box0", "link3", "joint2"). */
#ifndef PABD_CASES_GENERATE_H
#define PABD_CASES_GENERATE_H

#include "read.h"

/* `materials`: names of the case's materials (for "material"), ended by NULL. */
pabd_status generate(reader *r, const cJSON *object, const char *const *materials, pabd_scene *scene);

/* One draw of splitmix64 (public domain generator by S. Vigna; state advances by the golden ratio), as a double in [0,
 * 1). */
double splitmix64_uniform(uint64_t *state);

#endif
