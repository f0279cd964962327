/* A test engine that can do next to nothing: every scene with a shape is `na`. */
#define FAKE_NAME "fake_limited"
#define FAKE_CAPABILITIES PABD_CAN_PLANE
#include "fake.h"
