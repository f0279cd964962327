/* The core of the exact island solver in double precision, in both builds of the library: joint loops need it. */
#ifndef PABD_REAL_DOUBLE
#define PABD_REAL_DOUBLE
#endif
#define DIRECT_NAME(name) name##_double
#include "direct_core.h"
