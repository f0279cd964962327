/* The validation suite itself: orders and lights from made-up levels, and the ci subset on our solver. */
#include "validate.h"

#include <cjson/cJSON.h>

#include "test.h"

static const pabd_row *row_of(const char *key) {
  for (int32_t k = 0; k < pabd_row_count; ++k)
    if (strcmp(pabd_rows[k].key, key) == 0) return &pabd_rows[k];
  return NULL;
}

/* A ladder of five steps with errors scale h^order. */
static pabd_cell made_up(double scale, double order) {
  pabd_cell cell = {.level_count = 5, .best = NAN, .best_x = NAN, .order = NAN, .time_low = NAN, .time_high = NAN};
  for (int k = 0; k < 5; ++k) {
    double h = 1.0 / (60 << k);
    cell.levels[k] = (pabd_level){
        .x = h, .error = scale * pow(h, order), .consistency = NAN, .value = NAN, .wall_s = 0.01 * (1 << k)};
  }
  return cell;
}

TEST(order_and_lights_of_a_ladder) {
  const pabd_row *row = row_of("v08-pendulum");
  REQUIRE(row != NULL);
  pabd_cell cell = made_up(10, 2);
  pabd_validate_judge(row, 0, &cell);
  CHECK_NEAR(cell.order, 2, 1e-9);
  CHECK(cell.is_monotone);
  CHECK(cell.light == PABD_GREEN);
  CHECK_NEAR(cell.best, 10.0 / (960.0 * 960.0), 1e-12);
  CHECK_NEAR(cell.time_low, 0.01, 1e-12);  /* 10/3600 < 1e-1 at the first step */
  CHECK_NEAR(cell.time_high, 0.02, 1e-12); /* 10/14400 < 1e-3 at the second */
  cell = made_up(10, 1);
  pabd_validate_judge(row, 0, &cell);
  CHECK_NEAR(cell.order, 1, 1e-9);
  CHECK(cell.light == PABD_AMBER);
  cell = made_up(1000, 1);
  pabd_validate_judge(row, 0, &cell);
  CHECK(cell.light == PABD_RED);
  cell = made_up(10, -1); /* grows with finer steps */
  pabd_validate_judge(row, 0, &cell);
  CHECK(!cell.is_monotone);
}

TEST(worst_variant_decides) {
  const pabd_row *row = row_of("v25-stick");
  REQUIRE(row != NULL);
  pabd_cell cell = made_up(1e-9, 0);
  cell.levels[2].error = 0.05;
  pabd_validate_judge(row, 0, &cell);
  CHECK(cell.light == PABD_AMBER);
  cell = made_up(1e-9, 0);
  cell.levels[3].error = NAN; /* a run that failed */
  pabd_validate_judge(row, 0, &cell);
  CHECK(cell.light == PABD_RED);
}

TEST(exact_rows_have_their_own_gate) {
  const pabd_row *row = row_of("v01-free-fall");
  REQUIRE(row != NULL);
  pabd_cell cell = made_up(1e-9, 0);
  pabd_validate_judge(row, 0, &cell);
  CHECK(cell.light == PABD_AMBER);
  cell = made_up(1e-9, 0);
  pabd_validate_judge(row, 1, &cell);
  CHECK(cell.light == PABD_GREEN);
}

TEST(every_row_is_well_formed) {
  int32_t numbers = 0;
  for (int32_t k = 0; k < pabd_row_count; ++k) {
    const pabd_row *row = &pabd_rows[k];
    CHECK(strchr("XOTB", row->gate) != NULL);
    CHECK(row->missing || row->measure || (row->outputs && row->distance));
    CHECK(row->levels[PABD_EFFORT_FULL] <= PABD_VALIDATE_LEVELS);
    CHECK(row->levels[PABD_EFFORT_CI] <= row->levels[PABD_EFFORT_QUICK]);
    for (int32_t j = 0; j < k; ++j) CHECK(strcmp(row->key, pabd_rows[j].key) != 0);
    if (row->variants) {
      int32_t count = 0;
      while (row->variants[count]) ++count;
      CHECK(row->levels[PABD_EFFORT_FULL] <= count);
    }
    if (row->missing) continue;
    char path[300];
    pabd_error error = {""};
    pabd_case c;
    snprintf(path, sizeof path, "cases/validation/%s.json", row->file);
    CHECK(pabd_case_load(path, NULL, 0, &c, &error) == PABD_OK);
    CHECK_STR(error.text, "");
    if (!error.text[0]) pabd_case_free(&c);
    ++numbers;
  }
  CHECK(numbers >= 28);
}

/* Light and error of one cell of validate.json. */
static const char *light_in(const cJSON *top, const char *row, const char *engine, double *error) {
  const cJSON *one;
  cJSON_ArrayForEach(one, cJSON_GetObjectItem(top, "cells")) {
    if (strcmp(cJSON_GetObjectItem(one, "row")->valuestring, row) != 0) continue;
    if (strcmp(cJSON_GetObjectItem(one, "engine")->valuestring, engine) != 0) continue;
    const cJSON *value = cJSON_GetObjectItem(one, "error");
    *error = cJSON_IsNumber(value) ? value->valuedouble : NAN;
    return cJSON_GetObjectItem(one, "light")->valuestring;
  }
  return "absent";
}

TEST(ci_subset_on_our_solver) {
  char folder[] = "/tmp/pabd-validate-XXXXXX", command[400], path[400];
  REQUIRE(mkdtemp(folder) != NULL);
  snprintf(command, sizeof command, "%s/pabd-bench validate --subset ci --quiet --out %s >%s/out 2>&1", PABD_BUILD_DIR,
           folder, folder);
  CHECK(system(command) == 0);
  snprintf(path, sizeof path, "%s/validate.json", folder);
  char *text = NULL;
  size_t size;
  REQUIRE(pabd_file_read(path, &text, &size, NULL) == PABD_OK);
  cJSON *top = cJSON_Parse(text);
  free(text);
  REQUIRE(top != NULL);
  static const struct {
    const char *row, *engine;
    double most;
  } bounds[] = {{"v01-free-fall", "pabd-double:auto", 1e-12}, {"v02-spring-map", "pabd-double:auto", 1e-12},
                {"v02-spring", "pabd-double:auto", 1e-4},     {"v03-free-body", "pabd-double:auto", 1e-3},
                {"v08-pendulum", "pabd-double:auto", 5e-3},   {"v15-hanging", "pabd-double:auto", 1e-9},
                {"v08-pendulum", "pabd:auto", 1e-2},          {"v17-multiplier", "pabd:jacobi", 1e-5},
                {"v25-incline", "pabd-double:auto", 1e-2},    {"v40-pair", "pabd-double:auto", 1e-8},
                {"v41-free-chain", "pabd-double:auto", 1e-9}};
  for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; ++k) {
    double error = NAN;
    const char *light = light_in(top, bounds[k].row, bounds[k].engine, &error);
    if (!(error <= bounds[k].most))
      test_fail(__FILE__, __LINE__, "%s on %s: %s, error %g is above %g", bounds[k].row, bounds[k].engine, light, error,
                bounds[k].most);
  }
  cJSON_Delete(top);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  CHECK(system(command) == 0);
}
