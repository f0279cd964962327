/* Recursive descent, one function a precedence level; values are numbers or short texts.
 *
 * Invariant: recursion is bounded by DEPTH_MAX and every loop consumes input, so any text ends in time linear in its
 * length. Both branches of a ?: are evaluated: there are no side effects, and 1/0 in the branch not taken is harmless
 * because only the result must be finite. */
#include "expression.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

#define DEPTH_MAX 100
#define LENGTH_MAX 1000
#define PI 3.14159265358979323846

typedef struct parser {
  const char *start, *at;
  const pabd_case_param *params;
  int32_t param_count;
  int depth;
  pabd_error *error;
} parser;

typedef expression_value value;

static pabd_status parse_choice(parser *p, value *out);

static pabd_status fail_at(parser *p, const char *what) {
  return pabd_fail(p->error, PABD_ERR_INPUT, "%s at character %d of \"%.60s\"", what, (int)(p->at - p->start) + 1,
                   p->start);
}

static void skip_blanks(parser *p) {
  while (*p->at == ' ' || *p->at == '\t') ++p->at;
}

static int accept(parser *p, const char *token) {
  skip_blanks(p);
  size_t length = strlen(token);
  if (strncmp(p->at, token, length) != 0) return 0;
  p->at += length;
  return 1;
}

static value number(double x) {
  value v;
  memset(&v, 0, sizeof v);
  v.number = x;
  return v;
}

static pabd_status need_number(parser *p, const value *v) {
  return v->is_text ? fail_at(p, "a text where a number is needed,") : PABD_OK;
}

static size_t name_length(const char *s) {
  size_t n = 0;
  while (isalnum((unsigned char)s[n]) || s[n] == '_') ++n;
  return n;
}

static pabd_status parse_parameter(parser *p, value *out) {
  size_t length = name_length(p->at);
  if (length == 0) return fail_at(p, "a parameter name is missing after '$'");
  char name[PABD_KEY_SIZE];
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), p->at);
  for (int32_t i = 0; i < p->param_count; ++i) {
    const pabd_case_param *param = &p->params[i];
    if (strcmp(param->key, name) != 0) continue;
    p->at += length;
    *out = number(0.0);
    if (strcmp(param->type, "choice") == 0) {
      out->is_text = 1;
      snprintf(out->text, sizeof out->text, "%s", param->value);
    } else if (strcmp(param->type, "bool") == 0) {
      out->number = strcmp(param->value, "true") == 0;
    } else {
      out->number = strtod(param->value, NULL);
    }
    return PABD_OK;
  }
  const char *near = NULL;
  for (int32_t i = 0; i < p->param_count; ++i) near = nearest(name, p->params[i].key, near);
  return pabd_fail(p->error, PABD_ERR_INPUT, "\"$%s\" is not a parameter of this case%s%s%s", name,
                   near ? " (did you mean \"$" : "", near ? near : "", near ? "\"?)" : "");
}

typedef struct function {
  const char *name;
  int arity;
  double (*one)(double);
  double (*two)(double, double);
} function;

static double to_degrees(double x) {
  return x * 180.0 / PI;
}

static double to_radians(double x) {
  return x * PI / 180.0;
}

static const function functions[] = {
    {"abs", 1, fabs, NULL},       {"sqrt", 1, sqrt, NULL},      {"exp", 1, exp, NULL},     {"log", 1, log, NULL},
    {"sin", 1, sin, NULL},        {"cos", 1, cos, NULL},        {"tan", 1, tan, NULL},     {"asin", 1, asin, NULL},
    {"acos", 1, acos, NULL},      {"atan", 1, atan, NULL},      {"floor", 1, floor, NULL}, {"round", 1, round, NULL},
    {"deg", 1, to_degrees, NULL}, {"rad", 1, to_radians, NULL}, {"atan2", 2, NULL, atan2}, {"min", 2, NULL, fmin},
    {"max", 2, NULL, fmax},
};

static pabd_status parse_name(parser *p, value *out) {
  size_t length = name_length(p->at);
  if (length == 2 && strncmp(p->at, "pi", 2) == 0) {
    p->at += 2;
    *out = number(PI);
    return PABD_OK;
  }
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    const function *f = &functions[i];
    if (strlen(f->name) != length || strncmp(f->name, p->at, length) != 0) continue;
    p->at += length;
    if (!accept(p, "(")) return fail_at(p, "'(' is missing");
    value a = number(0.0), b = a;
    PABD_TRY(parse_choice(p, &a));
    PABD_TRY(need_number(p, &a));
    if (f->arity == 2) {
      if (!accept(p, ",")) return fail_at(p, "',' and a second argument are missing");
      PABD_TRY(parse_choice(p, &b));
      PABD_TRY(need_number(p, &b));
    }
    if (!accept(p, ")")) return fail_at(p, "')' is missing");
    *out = number(f->arity == 2 ? f->two(a.number, b.number) : f->one(a.number));
    return PABD_OK;
  }
  return pabd_fail(p->error, PABD_ERR_INPUT, "unknown name \"%.*s\" in \"%.60s\" (parameters are written $name)",
                   (int)(length < 40 ? length : 40), p->at, p->start);
}

static pabd_status parse_primary(parser *p, value *out) {
  skip_blanks(p);
  if (accept(p, "(")) {
    PABD_TRY(parse_choice(p, out));
    return accept(p, ")") ? PABD_OK : fail_at(p, "')' is missing");
  }
  if (accept(p, "$")) return parse_parameter(p, out);
  if (*p->at == '\'') {
    const char *end = strchr(p->at + 1, '\'');
    if (end == NULL) return fail_at(p, "the closing ' is missing");
    *out = number(0.0);
    out->is_text = 1;
    size_t length = (size_t)(end - p->at - 1);
    if (length >= sizeof out->text) return fail_at(p, "a text that is too long");
    memcpy(out->text, p->at + 1, length);
    p->at = end + 1;
    return PABD_OK;
  }
  if (isdigit((unsigned char)*p->at) || *p->at == '.') {
    char *end;
    double x = strtod(p->at, &end);
    if (end == p->at) return fail_at(p, "not a number");
    p->at = end;
    *out = number(x);
    return PABD_OK;
  }
  if (isalpha((unsigned char)*p->at)) return parse_name(p, out);
  return fail_at(p, *p->at == '\0' ? "a value is missing" : "not a value");
}

static pabd_status parse_unary(parser *p, value *out) {
  // Every cycle of the recursion passes through here.
  if (++p->depth > DEPTH_MAX) return fail_at(p, "nested too deeply");
  skip_blanks(p);
  pabd_status status;
  if (accept(p, "-")) {
    status = parse_unary(p, out);
    if (status == PABD_OK) status = need_number(p, out);
    if (status == PABD_OK) out->number = -out->number;
  } else if (p->at[0] == '!' && p->at[1] != '=') {
    ++p->at;
    status = parse_unary(p, out);
    if (status == PABD_OK) status = need_number(p, out);
    if (status == PABD_OK) out->number = out->number == 0.0;
  } else {
    status = parse_primary(p, out);
    if (status == PABD_OK && accept(p, "^")) {  // binds tighter than a minus on its left, and to the right
      value exponent = number(0.0);
      status = need_number(p, out);
      if (status == PABD_OK) status = parse_unary(p, &exponent);
      if (status == PABD_OK) status = need_number(p, &exponent);
      if (status == PABD_OK) out->number = pow(out->number, exponent.number);
    }
  }
  --p->depth;
  return status;
}

static pabd_status parse_product(parser *p, value *out) {
  PABD_TRY(parse_unary(p, out));
  for (;;) {
    char op = accept(p, "*") ? '*' : accept(p, "/") ? '/' : accept(p, "%") ? '%' : 0;
    if (op == 0) return PABD_OK;
    value right = number(0.0);
    PABD_TRY(need_number(p, out));
    PABD_TRY(parse_unary(p, &right));
    PABD_TRY(need_number(p, &right));
    out->number = op == '*'   ? out->number * right.number
                  : op == '/' ? out->number / right.number
                              : fmod(out->number, right.number);
  }
}

static pabd_status parse_sum(parser *p, value *out) {
  PABD_TRY(parse_product(p, out));
  for (;;) {
    char op = accept(p, "+") ? '+' : accept(p, "-") ? '-' : 0;
    if (op == 0) return PABD_OK;
    value right = number(0.0);
    PABD_TRY(need_number(p, out));
    PABD_TRY(parse_product(p, &right));
    PABD_TRY(need_number(p, &right));
    out->number = op == '+' ? out->number + right.number : out->number - right.number;
  }
}

static pabd_status parse_comparison(parser *p, value *out) {
  static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">"};
  PABD_TRY(parse_sum(p, out));
  int op = 0;
  while (op < 6 && !accept(p, operators[op])) ++op;
  if (op == 6) return PABD_OK;
  value right = number(0.0);
  PABD_TRY(parse_sum(p, &right));
  if (out->is_text != right.is_text) return fail_at(p, "a text compared with a number,");
  if (out->is_text && op > 1) return fail_at(p, "texts can only be compared with == and !=,");
  double d = out->is_text ? (double)(strcmp(out->text, right.text) != 0) : out->number - right.number;
  int truth = op == 0   ? d == 0.0
              : op == 1 ? d != 0.0
              : op == 2 ? d <= 0.0
              : op == 3 ? d >= 0.0
              : op == 4 ? d < 0.0
                        : d > 0.0;
  *out = number(truth);
  return PABD_OK;
}

static pabd_status parse_and(parser *p, value *out) {
  PABD_TRY(parse_comparison(p, out));
  while (accept(p, "&&")) {
    value right = number(0.0);
    PABD_TRY(need_number(p, out));
    PABD_TRY(parse_comparison(p, &right));
    PABD_TRY(need_number(p, &right));
    *out = number(out->number != 0.0 && right.number != 0.0);
  }
  return PABD_OK;
}

static pabd_status parse_or(parser *p, value *out) {
  PABD_TRY(parse_and(p, out));
  while (accept(p, "||")) {
    value right = number(0.0);
    PABD_TRY(need_number(p, out));
    PABD_TRY(parse_and(p, &right));
    PABD_TRY(need_number(p, &right));
    *out = number(out->number != 0.0 || right.number != 0.0);
  }
  return PABD_OK;
}

static pabd_status parse_choice(parser *p, value *out) {
  if (++p->depth > DEPTH_MAX) return fail_at(p, "nested too deeply");
  PABD_TRY(parse_or(p, out));
  if (accept(p, "?")) {
    value yes = number(0.0), no = yes;
    PABD_TRY(need_number(p, out));
    PABD_TRY(parse_choice(p, &yes));
    if (!accept(p, ":")) return fail_at(p, "':' is missing");
    PABD_TRY(parse_choice(p, &no));
    *out = out->number != 0.0 ? yes : no;
  }
  --p->depth;
  return PABD_OK;
}

pabd_status expression_evaluate(const char *text, const pabd_case_param *params, int32_t param_count,
                                expression_value *out, pabd_error *error) {
  if (strlen(text) > LENGTH_MAX) {
    return pabd_fail(error, PABD_ERR_INPUT, "an expression of more than %d characters", LENGTH_MAX);
  }
  *out = number(0.0);
  parser p = {text, text, params, param_count, 0, error};
  PABD_TRY(parse_choice(&p, out));
  skip_blanks(&p);
  if (*p.at != '\0') return fail_at(&p, "something that does not belong there");
  if (!out->is_text && !isfinite(out->number)) {
    return pabd_fail(error, PABD_ERR_INPUT, "\"%.60s\" is %g, not a finite number", text, out->number);
  }
  return PABD_OK;
}
