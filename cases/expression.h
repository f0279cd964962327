/* Small arithmetic expressions in case files: "$n * 0.5", "$direction == 'x' ? 0 : 45".
 *
 * Numbers, 'texts', pi, $parameters; ?: || && == != < <= > >= + - * / % ^ ! and unary minus, parentheses; functions abs
 * sqrt exp log sin cos tan asin acos atan atan2 floor round min max deg rad (rad(x): degrees to radians). Angles are
 * radians. No loops, no assignment, no names but these: an expression always ends and touches nothing. */
#ifndef PABD_CASES_EXPRESSION_H
#define PABD_CASES_EXPRESSION_H

#include "pabd_case.h"

typedef struct expression_value {
  int is_text;
  double number;
  char text[PABD_KEY_SIZE];
} expression_value;

/* Evaluates `text` with the parameters in force. PABD_ERR_INPUT with the cause (without file or key) in `error`. A
 * number that is not finite is an error. */
pabd_status expression_evaluate(const char *text, const pabd_case_param *params, int32_t param_count,
                                expression_value *out, pabd_error *error);

#endif
