/* The test framework itself: does a failed check count, and does each check see what it should see? */
#include "test.h"

static int silently(int result) {
  /* A check that was meant to fail: take its mark off again. */
  int failures = test_failures;
  test_failures = 0;
  return result == 0 && failures == 1;
}

TEST(checks_fail_when_they_should) {
  printf("(five failed checks follow on purpose)\n");
  int all = silently(CHECK(1 == 2));
  all &= silently(CHECK_NEAR(1.0, 1.1, 0.05));
  all &= silently(CHECK_NEAR(NAN, NAN, 1.0));
  all &= silently(CHECK_STR("a", "b"));
  all &= silently(CHECK_INT(3, 4));
  REQUIRE(all);
}

TEST(checks_pass_when_they_should) {
  CHECK(1);
  CHECK_NEAR(1.0, 1.01, 0.02);
  CHECK_STR("same", "same");
  CHECK_CONTAINS("a needle here", "needle");
  CHECK_INT(-1, -1);
}
