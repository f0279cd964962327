/* The reference energy of a case by its rule; every energy metric is relative to it. */
#ifndef PABD_CASES_ENERGY_REF_H
#define PABD_CASES_ENERGY_REF_H

#include "pabd_case.h"

typedef enum energy_rule {
  ENERGY_HANGING, /* sum of m g times the length of the joints' path from the world to the body */
  ENERGY_REACH,   /* the same, plus the body's start height above the joint that holds it to the world */
  ENERGY_HEIGHT,  /* sum of m g times the start height above z = 0 */
  ENERGY_KINETIC, /* nothing but the kinetic energy of the start */
  ENERGY_GIVEN    /* the number in the file */
} energy_rule;

/* All rules but `given` add the kinetic energy of the start. J; PABD_ERR_MEMORY, or PABD_OK. */
pabd_status energy_reference(const pabd_scene *scene, energy_rule rule, double *out);

#endif
