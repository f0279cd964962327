/* The test engine as it is. */
#define FAKE_NAME "fake"
#include "fake.h"
