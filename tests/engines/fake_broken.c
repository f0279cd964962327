/* A test engine that crashes when it is asked who it is. */
#define FAKE_NAME "fake_broken"
#define FAKE_PROBE abort()
#include "fake.h"
