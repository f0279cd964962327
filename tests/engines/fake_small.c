/* A test engine whose table is too small. */
#define FAKE_NAME "fake_small"
#define FAKE_SIZE 16
#include "fake.h"
