/* The parameter struct, made from params.def. */
#ifndef PABD_PARAMS_H
#define PABD_PARAMS_H

#include <stdint.h>

#include "pabd_status.h"

/* Every parameter as one field: int32_t for PARAM_INT and PARAM_CHOICE, double for PARAM_REAL. */
typedef struct pabd_params {
#define PARAM_INT(name, initial, low, high, unit, meaning, source) int32_t name;
#define PARAM_REAL(name, initial, low, high, unit, meaning, source) double name;
#define PARAM_CHOICE(name, initial, choices, meaning, source) int32_t name;
#include "params.def"
#undef PARAM_INT
#undef PARAM_REAL
#undef PARAM_CHOICE
} pabd_params;

/* Values of PARAM_CHOICE parameters, in the order of their lists (checked by a unit test). */
enum { PABD_STEP_JACOBI, PABD_STEP_CONTACT_GS, PABD_STEP_DIRECT, PABD_STEP_AUTO };
enum { PABD_LOCAL_MASS, PABD_LOCAL_HESSIAN, PABD_LOCAL_FROBENIUS, PABD_LOCAL_SKEW };
enum { PABD_PREDICT_MOMENTUM, PABD_PREDICT_LINEAR };
enum { PABD_VELOCITY_MOMENTUM, PABD_VELOCITY_LEMMA1 };
enum { PABD_STIFFNESS_LOAD, PABD_STIFFNESS_FIXED, PABD_STIFFNESS_MASS, PABD_STIFFNESS_RAMP };
enum { PABD_ACCEL_NONE, PABD_ACCEL_NESTEROV, PABD_ACCEL_CHEBYSHEV };
enum { PABD_INTEGRATOR_AUTO, PABD_INTEGRATOR_EULER, PABD_INTEGRATOR_ENERGY_MOMENTUM, PABD_INTEGRATOR_BDF2 };

/* One row of the table, for --help, range checks and records. */
typedef struct pabd_param_info {
  const char *name, *type, *initial, *range, *unit, *meaning, *source;
} pabd_param_info;

pabd_params pabd_params_default(void);
int32_t pabd_params_count(void);
const pabd_param_info *pabd_params_info(int32_t index);
/* Sets one parameter from text. PABD_ERR_INPUT with one line (key, value, what is allowed, nearest key) on failure. */
pabd_status pabd_params_set(pabd_params *params, const char *key, const char *value, pabd_error *error);
/* Text of the value in force. */
void pabd_params_get(const pabd_params *params, int32_t index, char *buffer, int32_t size);

#endif
