/* Status codes and error text, shared by every folder.
 *
 * Three kinds of trouble, three mechanisms: a programmer's mistake asserts; bad input or a missing environment returns
 * a status and one clear line of text; a simulation whose numbers go wrong is a *result* (PABD_DIVERGED, or a flag in
 * the statistics), never an abort. */
#ifndef PABD_STATUS_H
#define PABD_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text): the one list of status codes. */
#define PABD_STATUS_LIST(X)                \
  X(PABD_OK, "ok")                         \
  X(PABD_ERR_INPUT, "bad input")           \
  X(PABD_ERR_MEMORY, "out of memory")      \
  X(PABD_ERR_IO, "input/output error")     \
  X(PABD_ERR_UNAVAILABLE, "not available") \
  X(PABD_ERR_UNSUPPORTED, "not supported") \
  X(PABD_ERR_INTERNAL, "internal error")   \
  X(PABD_DIVERGED, "diverged")

typedef enum pabd_status {
#define PABD_STATUS_ENUM(name, text) name,
  PABD_STATUS_LIST(PABD_STATUS_ENUM)
#undef PABD_STATUS_ENUM
      PABD_STATUS_COUNT
} pabd_status;

/* One line of text for a person: file, key, what is wrong, what is allowed. Owned by the caller; empty when all is
 * well. */
typedef struct pabd_error {
  char text[512];
} pabd_error;

/* Text of a status code. Never NULL. */
const char *pabd_status_text(pabd_status status);

/* Writes a formatted line into `error` (may be NULL) and returns `status`, so that a failure is one statement. */
pabd_status pabd_fail(pabd_error *error, pabd_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

#ifdef __clang_analyzer__
/* Static analysis sees one file at a time and would think that a failure may return PABD_OK. */
#define pabd_fail(error, status, ...) ((void)pabd_fail(error, status, __VA_ARGS__), (status))
#endif

/* Propagates any status but PABD_OK. */
#define PABD_TRY(call)                                      \
  do {                                                      \
    pabd_status pabd_try_status = (call);                   \
    if (pabd_try_status != PABD_OK) return pabd_try_status; \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif
