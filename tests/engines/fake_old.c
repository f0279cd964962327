/* A test engine built against another version of the table. */
#define FAKE_NAME "fake_old"
#define FAKE_ABI 999
#include "fake.h"
