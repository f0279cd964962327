/* The command `describe`: a case with claim, parameters, metrics and bounds, or an engine with capabilities, settings
 * and presets. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "catalog.h"
#include "commands.h"
#include "names.h"

/* Prints text broken at spaces, `indent` columns in; the first line goes on where the cursor is. */
static void print_wrapped(const char *text, int indent, int width) {
  int column = indent;
  while (*text) {
    int length = (int)strcspn(text, " \n");
    if (column > indent && column + 1 + length > width) {
      printf("\n%*s", indent, "");
      column = indent;
    }
    column += length + (column > indent);
    printf("%s%.*s", column > indent + length ? " " : "", length, text);
    text += length;
    text += strspn(text, " \n");
  }
  printf("\n");
}

static void describe_case(const pabd_case *c) {
  printf("%s: %s\n  ", c->id, c->title);
  print_wrapped(c->claim, 2, 110);
  printf("\n  family %s, tags %s, hash %s\n", c->family, c->tags[0] ? c->tags : "none", c->hash);
  printf("  %g s, %d frames of 1/%.6g s, %d bodies, %d shapes, %d joints; gravity (%g, %g, %g) m/s^2\n", c->duration,
         c->frame_count, 1 / c->scene.frame_time, c->scene.body_count, c->scene.shape_count, c->scene.joint_count,
         c->scene.gravity.x, c->scene.gravity.y, c->scene.gravity.z);
  if (c->settle_time >= 0) printf("  metrics named _settled begin at %g s\n", c->settle_time);
  printf("  energy reference %.6g J (%s)\n", c->energy_ref, c->energy_rule);
  printf("\n  Parameters (pabd-bench run %s:key=value,...):\n", c->id);
  for (int32_t k = 0; k < c->param_count; ++k) {
    const pabd_case_param *p = &c->params[k];
    char left[160];
    snprintf(left, sizeof left, "%s = %s%s%s", p->key, p->value, strcmp(p->unit, "1") == 0 ? "" : " ",
             strcmp(p->unit, "1") == 0 ? "" : p->unit);
    printf("    %-24s %-6s %-24s ", left, p->type, p->range);
    print_wrapped(p->meaning, 60, 120);
  }
  if (c->param_count == 0) printf("    none\n");
  printf("\n  Metrics:\n");
  for (int32_t k = 0; k < c->metric_count; ++k) {
    const pabd_case_metric *m = &c->metrics[k];
    printf("    %s", m->kind);
    if (m->body >= 0 && m->body < c->scene.body_count) {
      const char *name = c->scene.bodies[m->body].name;
      printf(name[0] ? "  body %d '%s'" : "  body %d", m->body, name);
    }
    if (m->joint >= 0) printf("  joint %d", m->joint);
    if (isfinite(m->reference)) printf("  reference %.10g", m->reference);
    printf("\n");
  }
  printf("\n  Expected:\n");
  for (int32_t k = 0; k < c->expect_count; ++k) {
    const pabd_case_expect *e = &c->expects[k];
    printf("    %s %s %.6g", e->metric, e->op, e->bound);
    if (strcmp(e->op, "==") == 0) printf(" within %.3g", e->tolerance);
    printf("  binds %s\n      ", e->engines[0] ? e->engines : "no engine");
    print_wrapped(e->reason, 6, 110);
  }
  if (c->expect_count == 0) printf("    nothing: the case only measures\n");
}

static void describe_engine(const pabd_catalog_engine *engine) {
  const pabd_engine_desc *d = &engine->desc;
  if (d->is_available)
    printf("%s: version %s, %s, on %s, license %s\n", d->name, d->version, d->precision, d->device, d->license);
  else
    printf("%s: not available: %s\n", d->name, d->why);
  printf("  library %s\n", d->file);
  if (d->build[0]) printf("  built %s\n", d->build);
  char can[600], cannot[600];
  uint64_t all = 0;
  for (int32_t bit = 0; pabd_capability_name(bit); ++bit) all |= (uint64_t)1 << bit;
  pabd_capability_list(d->capabilities, can, sizeof can);
  pabd_capability_list(all & ~d->capabilities, cannot, sizeof cannot);
  if (d->is_available) {
    printf("  can:    ");
    print_wrapped(can[0] ? can : "nothing", 10, 110);
    printf("  cannot: ");
    print_wrapped(cannot[0] ? cannot : "-", 10, 110);
  }
  printf("\n  Settings (pabd-bench run CASE --engine %s:key=value,...):\n", d->name);
  for (int32_t k = 0; k < d->setting_count; ++k) {
    const pabd_setting_text *s = &d->settings[k];
    char left[200];
    int has_unit = s->unit[0] && strcmp(s->unit, "1") != 0;
    snprintf(left, sizeof left, "%s = %s%s%s", s->key, s->initial, has_unit ? " " : "", has_unit ? s->unit : "");
    printf("    %-28s %-6s %-22s ", left, s->type, s->range);
    print_wrapped(s->meaning, 62, 120);
    if (s->source[0]) {
      printf("%*ssource: ", 62, "");
      print_wrapped(s->source, 62, 120);
    }
  }
  if (d->setting_count == 0) printf("    none\n");
  const pabd_preset *initial = pabd_presets_default(&engine->presets);
  printf("\n  Presets%s%s:\n", engine->presets.file[0] ? " in " : "", engine->presets.file);
  for (int32_t k = 0; k < engine->presets.count; ++k) {
    const pabd_preset *p = &engine->presets.presets[k];
    printf("    %s%s\n      ", p->name, p == initial ? " (used when none is named)" : "");
    print_wrapped(p->source[0] ? p->source : "no source given", 6, 110);
    if (p->fault[0]) printf("      cannot be used: %s\n", p->fault);
    for (int32_t j = 0; j < p->setting_count; ++j)
      printf("%s%s=%s", j ? ", " : "      ", p->settings[j].key, p->settings[j].value);
    printf("%s", p->setting_count ? "\n" : "");
  }
  if (engine->presets.count == 0) printf("    none\n");
}

/* Loads "CASE[:key=value,...]", so that the effect of parameters on a case can be looked at. */
static pabd_status load_case(const pabd_catalog *catalog, const char *text, pabd_case *c, pabd_error *error) {
  char spec[1024], path[PABD_PATH_SIZE];
  const char *pairs[64];
  int32_t count = 0;
  snprintf(spec, sizeof spec, "%s", text);
  char *rest = strchr(spec, ':');
  if (rest) *rest++ = 0;
  for (char *pair; count < 64 && (pair = strsep(&rest, ","));) pairs[count++] = pair;
  pabd_catalog_case_path(catalog, spec, path);
  return pabd_case_load(path, pairs, count, c, error);
}

static int describe_one(pabd_catalog *catalog, const char *text) {
  pabd_error error = {""};
  char name[PABD_PATH_SIZE], **found = NULL;
  int32_t count = 0;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
  size_t length = strlen(name);
  int is_library = length > 3 && strcmp(name + length - 3, ".so") == 0, is_engine = is_library;
  for (int32_t k = 0; k < catalog->engine_name_count; ++k) is_engine |= strcmp(catalog->engine_names[k], name) == 0;
  pabd_status status;
  if (is_engine) {
    const pabd_catalog_engine *engine;
    status = pabd_catalog_engine_open(catalog, name, &engine, &error);
    if (status == PABD_OK) describe_engine(engine);
  } else {
    pabd_case c;
    status = pabd_catalog_find_cases(catalog, name, &found, &count, &error);
    if (status != PABD_OK) {
      /* A misspelt engine gets its nearest name too. */
      const char *near_case = pabd_nearest(name, (const char *const *)catalog->case_ids, catalog->case_count);
      const char *near = pabd_nearest(name, (const char *const *)catalog->engine_names, catalog->engine_name_count);
      if (near && (!near_case || pabd_edit_distance(name, near) < pabd_edit_distance(name, near_case)))
        near_case = near;
      pabd_fail(&error, PABD_ERR_INPUT, "no case or engine '%.100s'%s%s (pabd-bench list shows all)", name,
                near_case ? "; nearest: " : "", near_case ? near_case : "");
    } else if (pabd_is_glob(name)) {
      for (int32_t k = 0; k < count && status == PABD_OK; ++k) {
        status = load_case(catalog, found[k], &c, &error);
        if (status != PABD_OK) break;
        printf("%s", k ? "\n" : "");
        describe_case(&c);
        pabd_case_free(&c);
      }
    } else {
      status = load_case(catalog, text, &c, &error);
      if (status == PABD_OK) {
        describe_case(&c);
        pabd_case_free(&c);
      }
    }
    pabd_free_names(found, count);
  }
  return status == PABD_OK ? 0 : pabd_complain(&error);
}

static int describe(const pabd_arguments *a) {
  pabd_error error = {""};
  pabd_catalog catalog;
  if (a->word_count == 0) {
    pabd_fail(&error, PABD_ERR_INPUT, "describe: which case or engine? (pabd-bench list shows all)");
    return pabd_complain(&error);
  }
  if (pabd_catalog_open(pabd_argument(a, "root"), pabd_argument(a, "engines-dir"), &catalog, &error) != PABD_OK)
    return pabd_complain(&error);
  int code = 0;
  for (int32_t k = 0; k < a->word_count && code == 0; ++k) {
    if (k) printf("\n");
    code = describe_one(&catalog, a->words[k]);
  }
  pabd_catalog_close(&catalog);
  return code;
}

static const pabd_option describe_options[] = {PABD_PLACE_OPTIONS, {NULL, NULL, NULL}};
const pabd_command pabd_command_describe = {"describe",
                                            "CASE[:key=value,...]|ENGINE...",
                                            "show a case or an engine in full",
                                            "Shows a case with its claim, parameters (range, unit, meaning), metrics "
                                            "and bounds; or an engine with what it can\n"
                                            "and cannot do, all its settings and its presets with their sources.\n\n"
                                            "Examples:\n"
                                            "  pabd-bench describe stack\n"
                                            "  pabd-bench describe pile:n=20\n"
                                            "  pabd-bench describe pabd\n"
                                            "  pabd-bench describe ./my_engine.so",
                                            describe_options,
                                            describe};
