/* A small test framework: one header, one program per subject.
 *
 *   #include "test.h"
 *   TEST(sphere_volume) {
 *     CHECK(count == 3);
 *     CHECK_NEAR(volume, 4.18879, 1e-5);   // absolute tolerance
 *   }
 *
 * The header brings main(): without arguments it runs all tests in the order written, with arguments those named;
 * --list lists them. Every failed check prints one line; a check does not end its test, REQUIRE does. The last line of
 * output is "N passed, N failed" (", N skipped" if a test called SKIP). A crash names the test that was running. */
#ifndef PABD_TEST_H
#define PABD_TEST_H

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_CAPACITY 512
#define TEST_PRINTED_FAILURES 20 /* per test; the rest are counted, so that a loop of checks cannot flood the log */

typedef struct test_entry {
  const char *name;
  void (*run)(void);
} test_entry;

static test_entry test_entries[TEST_CAPACITY];
static int test_count;
static int test_failures; /* of the running test */
static int test_skipped;
static const char *volatile test_running = "(none)";

__attribute__((unused)) static void test_register(const char *name, void (*run)(void)) {
  if (test_count == TEST_CAPACITY) {
    fprintf(stderr, "test.h: more than %d tests in one program\n", TEST_CAPACITY);
    exit(2);
  }
  test_entries[test_count++] = (test_entry){name, run};
}

__attribute__((unused, format(printf, 3, 4))) static void test_fail(const char *file, int line, const char *format,
                                                                    ...) {
  if (++test_failures > TEST_PRINTED_FAILURES) return;
  va_list arguments;
  va_start(arguments, format);
  printf("%s:%d: %s: ", file, line, test_running);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  fflush(stdout);
}

__attribute__((unused)) static int test_near(const char *file, int line, const char *text, double a, double b,
                                             double tolerance) {
  if (fabs(a - b) <= tolerance) return 1; /* false for NaN on either side */
  test_fail(file, line, "%s: %.17g is not within %g of %.17g (off by %g)", text, a, tolerance, b, a - b);
  return 0;
}

__attribute__((unused)) static int test_text(const char *file, int line, const char *text, const char *a,
                                             const char *b) {
  if (a && b && strcmp(a, b) == 0) return 1;
  test_fail(file, line, "%s: \"%s\" is not \"%s\"", text, a ? a : "(null)", b ? b : "(null)");
  return 0;
}

__attribute__((unused)) static int test_contains(const char *file, int line, const char *text, const char *a,
                                                 const char *b) {
  if (a && b && strstr(a, b)) return 1;
  test_fail(file, line, "%s: \"%s\" does not contain \"%s\"", text, a ? a : "(null)", b ? b : "(null)");
  return 0;
}

__attribute__((unused)) static int test_equal(const char *file, int line, const char *text, intmax_t a, intmax_t b) {
  if (a == b) return 1;
  test_fail(file, line, "%s: %" PRIdMAX " is not %" PRIdMAX, text, a, b);
  return 0;
}

/* Identity: lets a check stand alone as a statement and still have a value. */
__attribute__((unused)) static int test_result(int result) {
  return result;
}

/* clang-format off */
#define TEST(name)                                                                                                     \
  static void test_##name(void);                                                                                       \
  __attribute__((constructor)) static void test_register_##name(void) { test_register(#name, test_##name); }           \
  static void test_##name(void)

#define CHECK(condition) test_result((condition) ? 1 : (test_fail(__FILE__, __LINE__, "%s is false", #condition), 0))
/* As CHECK, with a printf message that says what was found. */
#define CHECK_MSG(condition, ...) test_result((condition) ? 1 : (test_fail(__FILE__, __LINE__, __VA_ARGS__), 0))
#define CHECK_NEAR(a, b, tolerance) test_near(__FILE__, __LINE__, #a " ~ " #b, (double)(a), (double)(b), (double)(tolerance))
#define CHECK_STR(a, b) test_text(__FILE__, __LINE__, #a " == " #b, (a), (b))
#define CHECK_CONTAINS(a, b) test_contains(__FILE__, __LINE__, #a, (a), (b))
#define CHECK_INT(a, b) test_equal(__FILE__, __LINE__, #a " == " #b, (intmax_t)(a), (intmax_t)(b))
/* The rest of the test makes no sense without this. */
#define REQUIRE(condition)                                                                                             \
  do {                                                                                                                 \
    if (!CHECK(condition)) return;                                                                                     \
  } while (0)
/* Ends a test that cannot run on this machine. Never for something that is merely unfinished. */
#define SKIP(reason)                                                                                                   \
  do {                                                                                                                 \
    printf("SKIP %s: %s\n", test_running, reason);                                                                     \
    test_skipped = 1;                                                                                                  \
    return;                                                                                                            \
  } while (0)
/* clang-format on */

#if !defined(__SANITIZE_ADDRESS__)
static void test_crash(int number) {
  static const char head[] = "\ncrashed in test ";
  const char *name = test_running;
  ssize_t ignored = write(STDOUT_FILENO, head, sizeof head - 1);
  ignored += write(STDOUT_FILENO, name, strlen(name));
  ignored += write(STDOUT_FILENO, "\n", 1);
  (void)ignored;
  signal(number, SIG_DFL);
  raise(number);
}
#endif

int main(int argc, char **argv) {
  int passed = 0, failed = 0, skipped = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
#if !defined(__SANITIZE_ADDRESS__)
  static const int signals[] = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL};
  for (size_t k = 0; k < sizeof signals / sizeof signals[0]; ++k) signal(signals[k], test_crash);
#endif
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (int k = 0; k < test_count; ++k) puts(test_entries[k].name);
    return 0;
  }
  for (int a = 1; a < argc; ++a) {
    int known = 0;
    for (int k = 0; k < test_count; ++k) known |= strcmp(argv[a], test_entries[k].name) == 0;
    if (!known) {
      fprintf(stderr, "%s: no test \"%s\" (see --list)\n", argv[0], argv[a]);
      return 2;
    }
  }
  for (int k = 0; k < test_count; ++k) {
    int wanted = argc == 1;
    for (int a = 1; a < argc; ++a) wanted |= strcmp(argv[a], test_entries[k].name) == 0;
    if (!wanted) continue;
    test_failures = test_skipped = 0;
    test_running = test_entries[k].name;
    test_entries[k].run();
    if (test_failures > TEST_PRINTED_FAILURES)
      printf("%s: %d more failed checks\n", test_running, test_failures - TEST_PRINTED_FAILURES);
    if (test_failures)
      ++failed;
    else if (test_skipped)
      ++skipped;
    else
      ++passed;
  }
  if (skipped)
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  else
    printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}

#endif
