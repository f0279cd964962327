/* A test engine that cannot run here and says why. */
#define FAKE_NAME "fake_absent"
#define FAKE_PROBE return pabd_fail(error, PABD_ERR_UNAVAILABLE, "needs a quantum computer")
#include "fake.h"
