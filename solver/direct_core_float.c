/* The core of the exact island solver in single precision; empty in the double build of the library. */
#ifndef PABD_REAL_DOUBLE
#define DIRECT_NAME(name) name##_float
#include "direct_core.h"
#else
typedef int direct_core_float_unused; /* ISO C wants a declaration */
#endif
