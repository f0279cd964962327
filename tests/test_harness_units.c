/* Parts of the harness on their own: names, files, statistics, metrics, trajectories, command lines, bounds, presets.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli.h"
#include "expect.h"
#include "files.h"
#include "names.h"
#include "plan.h"
#include "progress.h"
#include "record.h"
#include "record_check.h"
#include "stats.h"
#include "test.h"
#include "trajectory.h"

/* A folder of this test process's own. */
static const char *scratch(void) {
  static char path[64];
  if (!path[0]) {
    snprintf(path, sizeof path, "/tmp/pabd-harness-XXXXXX");
    if (!mkdtemp(path)) abort();
  }
  return path;
}

static const char *in_scratch(const char *name) {
  static char path[4][256];
  static int next;
  next = (next + 1) % 4;
  snprintf(path[next], sizeof path[next], "%s/%s", scratch(), name);
  return path[next];
}

static int entries(const char *folder) {
  int count = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir && (e = readdir(dir));)
    count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  if (dir) closedir(dir);
  return count;
}

TEST(nearest_name_is_the_one_meant) {
  static const char *const names[] = {"stack", "stack-rough", "chain", "pile", "pendulum", "slide"};
  CHECK_STR(pabd_nearest("stak", names, 6), "stack");
  CHECK_STR(pabd_nearest("chian", names, 6), "chain");
  CHECK_STR(pabd_nearest("pend", names, 6), "pendulum");
  CHECK_STR(pabd_nearest("rough", names, 6), "stack-rough");
  CHECK_STR(pabd_nearest("SLIDE", names, 6), "slide");
  CHECK(pabd_nearest("elephant", names, 6) == NULL);
  CHECK(pabd_nearest("", names, 6) == NULL);
  CHECK_INT(pabd_edit_distance("kitten", "sitting"), 3);
  CHECK_INT(pabd_edit_distance("ab", "ba"), 1);
  CHECK_INT(pabd_edit_distance("", "abc"), 3);
}

TEST(globs_and_lists) {
  CHECK(pabd_glob_match("stack*", "stack-rough"));
  CHECK(pabd_glob_match("?ack", "rack"));
  CHECK(!pabd_glob_match("stack", "stack-rough"));
  CHECK(pabd_list_match("pabd:jacobi, bullet:*", "bullet:advised"));
  CHECK(!pabd_list_match("pabd:jacobi,,", "pabd:hard"));
  CHECK(!pabd_list_match("", "pabd"));
  CHECK(pabd_list_match("*", "pabd"));
}

TEST(quantiles_and_summary) {
  double values[] = {5, 1, 4, 2, 3, NAN, INFINITY};
  pabd_summary s = pabd_summarize(values, 7);
  CHECK_INT(s.count, 5);
  CHECK_NEAR(s.mean, 3, 0);
  CHECK_NEAR(s.p50, 3, 0);
  CHECK_NEAR(s.p95, 4.8, 1e-12);
  CHECK_NEAR(s.max, 5, 0);
  CHECK_NEAR(s.min, 1, 0);
  CHECK(isnan(pabd_summarize(values, 0).p50));
  CHECK(isnan(pabd_summarize(values + 5, 2).mean));
  double one = 7;
  CHECK_NEAR(pabd_quantile(&one, 1, 0.99), 7, 0);
}

TEST(metrics_and_series_keep_order_and_values) {
  pabd_metrics m;
  pabd_metrics_init(&m);
  for (int k = 0; k < 100; ++k) {
    char key[16];
    snprintf(key, sizeof key, "key%d", k);
    CHECK_INT(pabd_metrics_set(&m, key, k, "m", "lower"), PABD_OK);
  }
  CHECK_INT(pabd_metrics_set(&m, "key3", -3, "s", "info"), PABD_OK);
  CHECK_INT(m.metric_count, 100);
  CHECK_NEAR(pabd_metrics_get(&m, "key3")->value, -3, 0);
  CHECK_STR(pabd_metrics_get(&m, "key3")->unit, "s");
  CHECK_NEAR(pabd_metrics_get(&m, "key99")->value, 99, 0);
  CHECK(pabd_metrics_get(&m, "none") == NULL);
  for (int k = 0; k < 5000; ++k) {
    pabd_series_append(&m, "a", "m", k);
    if (k % 3 == 0) pabd_series_append(&m, "b", "s", -k);
  }
  CHECK_INT(m.series_count, 2);
  CHECK_INT(m.series[0].count, 5000);
  CHECK_INT(m.series[1].count, 1667);
  int wrong = 0;
  for (int k = 0; k < 5000; ++k) wrong += m.series[0].values[k] != k;
  for (int k = 0; k < 1667; ++k) wrong += m.series[1].values[k] != -3 * k;
  CHECK_INT(wrong, 0);
  pabd_metrics_free(&m);
  CHECK_INT(m.metric_count, 0);
}

TEST(files_are_whole_or_not_there) {
  pabd_error error = {""};
  const char *folder = in_scratch("deep/er/folder");
  CHECK_INT(pabd_make_folders(folder, &error), PABD_OK);
  CHECK_INT(pabd_make_folders(folder, &error), PABD_OK);
  char path[300];
  snprintf(path, sizeof path, "%s/a.json", folder);
  CHECK_INT(pabd_file_write_whole(path, "one", 3, &error), PABD_OK);
  CHECK_INT(pabd_file_write_whole(path, "second", 6, &error), PABD_OK);
  char *text;
  size_t size;
  REQUIRE(pabd_file_read(path, &text, &size, &error) == PABD_OK);
  CHECK_STR(text, "second");
  CHECK_INT(size, 6);
  free(text);
  CHECK_INT(entries(folder), 1);
  /* Abandoned: the old file stays, nothing else does. */
  pabd_new_file file;
  REQUIRE(pabd_new_file_open(&file, path, &error) == PABD_OK);
  CHECK_INT(pabd_write_all(file.descriptor, "third", 5, &error), PABD_OK);
  CHECK_INT(entries(folder), 1 + (file.hidden[0] != 0));
  pabd_new_file_abandon(&file);
  CHECK_INT(entries(folder), 1);
  REQUIRE(pabd_file_read(path, &text, NULL, &error) == PABD_OK);
  CHECK_STR(text, "second");
  free(text);
  /* Trouble is one line that names the file. */
  CHECK_INT(pabd_file_write_whole("/nowhere/at/all.json", "x", 1, &error), PABD_ERR_IO);
  CHECK_CONTAINS(error.text, "/nowhere/at/all.json");
  CHECK_INT(pabd_file_read(folder, &text, NULL, &error), PABD_ERR_IO);
  CHECK(text == NULL);
}

/* A device or a pipe is written to; a file renamed to it would take its place (as root, that of /dev/null). */
TEST(pipes_and_devices_are_never_replaced) {
  pabd_error error = {""};
  const char *folder = in_scratch("pipe");
  char path[300], got[8] = "";
  struct stat info;
  REQUIRE(pabd_make_folders(folder, &error) == PABD_OK);
  snprintf(path, sizeof path, "%s/fifo", folder);
  REQUIRE(mkfifo(path, 0600) == 0);
  int reader = open(path, O_RDWR | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK_INT(pabd_file_write_whole(path, "text", 4, &error), PABD_OK);
  CHECK_INT(stat(path, &info), 0);
  CHECK(S_ISFIFO(info.st_mode));
  CHECK_INT(read(reader, got, 4), 4);
  CHECK_STR(got, "text");
  CHECK_INT(entries(folder), 1);
  close(reader);
}

TEST(leftovers_of_dead_processes_are_removed) {
  const char *folder = in_scratch("left");
  pabd_make_folders(folder, NULL);
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  char dead[300], alive[300], other[300];
  snprintf(dead, sizeof dead, "%s/.x.json.%ld.tmp", folder, (long)child);
  snprintf(alive, sizeof alive, "%s/.x.json.%ld.tmp", folder, (long)getpid());
  snprintf(other, sizeof other, "%s/.x.tmp", folder);
  pabd_file_write_whole(dead, "", 0, NULL);
  pabd_file_write_whole(alive, "", 0, NULL);
  pabd_file_write_whole(other, "", 0, NULL);
  pabd_remove_leftovers(folder);
  CHECK(!pabd_is_file(dead));
  CHECK(pabd_is_file(alive));
  CHECK(pabd_is_file(other));
}

TEST(hashes_are_fnv1a) {
  CHECK(pabd_hash_bytes(PABD_HASH_START, "a", 1) == 0xaf63dc4c8601ec8cull); /* published test vectors */
  CHECK(pabd_hash_bytes(PABD_HASH_START, "foobar", 6) == 0x85944171f73967e8ull);
  CHECK(pabd_hash_text(pabd_hash_text(PABD_HASH_START, "ab"), "c") !=
        pabd_hash_text(pabd_hash_text(PABD_HASH_START, "a"), "bc"));
}

TEST(trajectories_come_back_as_written) {
  pabd_error error = {""};
  const char *path = in_scratch("t.traj");
  for (uint32_t value_size = 4; value_size <= 8; value_size += 4) {
    pabd_trajectory_header header = {.value_size = value_size, .body_count = 2, .stride = 3, .frame_time = 0.5};
    double pose[14];
    int descriptor = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
    REQUIRE(descriptor >= 0);
    pabd_write_all(descriptor, &header, sizeof header, &error);
    for (uint32_t frame = 0; frame <= 6; frame += 3) {
      for (int k = 0; k < 14; ++k) pose[k] = frame + k / 7.0;
      CHECK_INT(pabd_trajectory_append(descriptor, frame, 2, value_size, pose, &error), PABD_OK);
    }
    header.sample_count = 3;
    header.frame_count = 6;
    CHECK_INT(pabd_trajectory_write_header(descriptor, header, &error), PABD_OK);
    close(descriptor);
    pabd_trajectory t;
    REQUIRE(pabd_trajectory_read(path, &t, &error) == PABD_OK);
    CHECK_INT(t.header.sample_count, 3);
    CHECK_INT(t.header.frame_count, 6);
    CHECK_INT(t.frames[2], 6);
    CHECK_NEAR(t.header.frame_time, 0.5, 0);
    CHECK_NEAR(t.poses[2 * 14 + 13], 6 + 13 / 7.0, value_size == 8 ? 0 : 1e-6); /* float keeps 7 digits */
    char *csv = NULL;
    size_t csv_size;
    FILE *stream = open_memstream(&csv, &csv_size);
    CHECK_INT(pabd_trajectory_write_csv(&t, stream, &error), PABD_OK);
    fclose(stream);
    CHECK_CONTAINS(csv, "frame,time,body,x,y,z,qw,qx,qy,qz\n0,0,0,0,");
    CHECK_CONTAINS(csv, "\n6,3,1,7,");
    free(csv);
    pabd_trajectory_free(&t);
  }
}

TEST(damaged_trajectories_are_refused) {
  pabd_error error = {""};
  const char *path = in_scratch("bad.traj");
  pabd_trajectory t;
  CHECK_INT(pabd_trajectory_read(in_scratch("none.traj"), &t, &error), PABD_ERR_IO);
  pabd_file_write_whole(path, "short", 5, NULL);
  CHECK_INT(pabd_trajectory_read(path, &t, &error), PABD_ERR_INPUT);
  /* A header that promises more than the file holds, even so much that a product would overflow. */
  pabd_trajectory_header header = {
      .version = 1, .value_size = 8, .body_count = 4000000000u, .sample_count = 4000000000u};
  memcpy(header.magic, PABD_TRAJECTORY_MAGIC, 8);
  pabd_file_write_whole(path, &header, sizeof header, NULL);
  CHECK_INT(pabd_trajectory_read(path, &t, &error), PABD_ERR_INPUT);
  CHECK_CONTAINS(error.text, "cut short");
  header.value_size = 5;
  pabd_file_write_whole(path, &header, sizeof header, NULL);
  CHECK_INT(pabd_trajectory_read(path, &t, &error), PABD_ERR_INPUT);
  header.version = 9;
  pabd_file_write_whole(path, &header, sizeof header, NULL);
  CHECK_INT(pabd_trajectory_read(path, &t, &error), PABD_ERR_INPUT);
  CHECK_CONTAINS(error.text, "version 9");
}

static int nothing(const pabd_arguments *a) {
  (void)a;
  return 0;
}

TEST(command_lines) {
  static const pabd_option options[] = {{"engine", "NAME", ""}, {"force", NULL, ""},    {"trajectory", "[N]", ""},
                                        {"repeat", "N", ""},    {"threads", "N,N", ""}, {NULL, NULL, NULL}};
  static const pabd_command command = {"run", "", "", "", options, nothing};
  static pabd_arguments a;
  pabd_error error = {""};
  char *good[] = {"stack",      "--engine",       "pabd", "--force", "--engine=bullet:x", "--trajectory", "pile",
                  "--repeat=3", "--threads=1..4", "--",   "--odd"};
  REQUIRE(pabd_arguments_parse(&command, 11, good, &a, &error) == PABD_OK);
  CHECK_INT(a.word_count, 3);
  CHECK_STR(a.words[1], "pile");
  CHECK_STR(a.words[2], "--odd");
  const char *engines[4];
  CHECK_INT(pabd_argument_list(&a, "engine", engines, 4), 2);
  CHECK_STR(engines[1], "bullet:x");
  CHECK(pabd_argument(&a, "force") != NULL);
  CHECK_STR(pabd_argument(&a, "trajectory"), "");
  int64_t number;
  CHECK_INT(pabd_argument_int(&a, "repeat", 1, 10, 1, &number, &error), PABD_OK);
  CHECK_INT(number, 3);
  CHECK_INT(pabd_argument_int(&a, "repeat", 1, 2, 1, &number, &error), PABD_ERR_INPUT);
  CHECK_CONTAINS(error.text, "1 .. 2");
  int32_t counts[4], count;
  CHECK_INT(pabd_argument_counts(&a, "threads", counts, 4, &count, &error), PABD_OK);
  CHECK_INT(count, 2);
  CHECK_INT(counts[1], 4);
  static char *const bad[][2] = {{"--engin", NULL}, {"--engine", NULL}, {"--force=1", NULL}, {"-x", NULL}};
  static const char *const said[] = {"nearest: --engine", "needs a value", "takes no value", "unknown option"};
  for (int k = 0; k < 4; ++k) {
    CHECK_INT(pabd_arguments_parse(&command, 1, (char **)bad[k], &a, &error), PABD_ERR_INPUT);
    CHECK_CONTAINS(error.text, said[k]);
  }
  static char *const lists[] = {"--threads=1,2,8", "--threads=0", "--threads=1,",
                                "--threads=2..",   "--threads=a", "--threads=1.5"};
  for (int k = 0; k < 6; ++k) {
    pabd_arguments_parse(&command, 1, (char **)&lists[k], &a, &error);
    CHECK_INT(pabd_argument_counts(&a, "threads", counts, 4, &count, &error), k == 0 ? PABD_OK : PABD_ERR_INPUT);
    CHECK_INT(count, k == 0 ? 3 : 0);
  }
  char line[200];
  char *words[] = {"/some/where/pabd-bench", "run", "a b", "it's", "stack:gap=-0.001", ""};
  pabd_quote_command(6, words, line, sizeof line);
  CHECK_STR(line, "pabd-bench run 'a b' 'it'\\''s' stack:gap=-0.001 ''");
  pabd_quote_command(6, words, line, 12); /* must not overrun */
  CHECK(strlen(line) < 12);
}

TEST(bounds_bind_and_hold) {
  pabd_catalog_engine engine = {.desc = {.name = "pabd"}};
  pabd_preset preset = {.name = "jacobi"};
  pabd_key_value override = {"sweeps", "5"};
  pabd_plan_engine plain = {.engine = &engine, .preset = &preset};
  pabd_plan_engine changed = {.engine = &engine, .preset = &preset, .override_count = 1, .overrides = &override};
  CHECK(pabd_expect_binds("bullet,pabd:jacobi", &plain));
  CHECK(!pabd_expect_binds("pabd:jacobi", &changed));
  CHECK(pabd_expect_binds("pabd", &changed));
  CHECK(pabd_expect_binds("*", &plain));
  CHECK(!pabd_expect_binds("pabd:hard, bullet", &plain));
  CHECK(!pabd_expect_binds("pabd-double", &plain));
  CHECK(!pabd_expect_binds("", &plain));
  pabd_case_expect e = {.op = "<=", .bound = 1, .tolerance = 0.25};
  CHECK(pabd_expect_holds(&e, 1) && !pabd_expect_holds(&e, 1.01) && !pabd_expect_holds(&e, NAN));
  strcpy(e.op, "<");
  CHECK(!pabd_expect_holds(&e, 1) && pabd_expect_holds(&e, 0.99));
  strcpy(e.op, ">=");
  CHECK(pabd_expect_holds(&e, 1) && !pabd_expect_holds(&e, 0.99) && !pabd_expect_holds(&e, NAN));
  strcpy(e.op, ">");
  CHECK(!pabd_expect_holds(&e, 1) && pabd_expect_holds(&e, 1.01));
  strcpy(e.op, "==");
  CHECK(pabd_expect_holds(&e, 1.25) && pabd_expect_holds(&e, 0.75) && !pabd_expect_holds(&e, 1.26));
}

TEST(settings_are_checked_against_their_description) {
  static pabd_engine_desc d = {.name = "e",
                               .setting_count = 4,
                               .settings = {{.key = "sweeps", .type = "int", .range = "1 .. 100"},
                                            {.key = "erp", .type = "real", .range = "0 .. inf"},
                                            {.key = "solver", .type = "choice", .range = "si | pgs | dantzig"},
                                            {.key = "split", .type = "bool", .range = "0 | 1"}}};
  static const struct {
    const char *key, *value;
    int good;
  } table[] = {{"sweeps", "5", 1}, {"sweeps", "0", 0},   {"sweeps", "2.5", 0}, {"sweeps", "5x", 0},
               {"sweeps", "", 0},  {"sweeps", "inf", 0}, {"erp", "1e300", 1},  {"erp", "-1", 0},
               {"erp", "nan", 0},  {"solver", "pgs", 1}, {"solver", "pg", 0},  {"solver", "si |", 0},
               {"split", "1", 1},  {"split", "2", 0},    {"sweep", "5", 0}};
  pabd_error error;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    pabd_status status = pabd_engine_check_setting(&d, table[k].key, table[k].value, &error);
    CHECK_MSG((status == PABD_OK) == table[k].good, "%s=%s: %s", table[k].key, table[k].value,
              pabd_status_text(status));
  }
  CHECK_CONTAINS(error.text, "nearest: sweeps");
}

TEST(capabilities_that_a_scene_needs) {
  pabd_scene scene;
  pabd_scene_init(&scene);
  pabd_body body = pabd_body_default();
  body.mass = 1;
  body.inertia = (pabd_dvec3){1, 1, 1};
  pabd_scene_add_body(&scene, &body);
  CHECK(pabd_scene_needs(&scene) == 0);
  pabd_shape sphere = pabd_shape_default(PABD_SPHERE), box = pabd_shape_default(PABD_BOX);
  pabd_scene_add_shape(&scene, &sphere);
  CHECK(pabd_scene_needs(&scene) == PABD_CAN_SPHERE);
  pabd_scene_add_shape(&scene, &box);
  CHECK(pabd_scene_needs(&scene) == (PABD_CAN_SPHERE | PABD_CAN_BOX | PABD_CAN_COMPOUND));
  pabd_joint hinge = pabd_joint_default(PABD_HINGE);
  hinge.body_a = PABD_WORLD;
  hinge.has_limits = 1;
  pabd_scene_add_joint(&scene, &hinge);
  CHECK(pabd_scene_needs(&scene) & PABD_CAN_HINGE && pabd_scene_needs(&scene) & PABD_CAN_LIMITS);
  CHECK(!(pabd_scene_needs(&scene) & (PABD_CAN_RESTITUTION | PABD_CAN_PAIR_MATERIALS | PABD_CAN_MOTORS)));
  pabd_scene_set_materials(&scene, 2, 0.5, 0);
  scene.restitution[3] = 0.5;
  scene.friction[3] = 0.1;
  CHECK(pabd_scene_needs(&scene) & PABD_CAN_RESTITUTION && pabd_scene_needs(&scene) & PABD_CAN_PAIR_MATERIALS);
  char names[200];
  pabd_capability_list(PABD_CAN_HINGE | PABD_CAN_WORLDS, names, sizeof names);
  CHECK_STR(names, "hinge, worlds");
  pabd_scene_free(&scene);
}

TEST(order_is_by_case_then_round_and_follows_the_seed) {
  pabd_run runs[24], again[24];
  int32_t place[24][3];
  int differs = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    for (int k = 0; k < 24; ++k) runs[k] = (pabd_run){.case_index = k / 12, .engine_index = k % 4, .repeat = k / 4 % 3};
    pabd_plan plan = {.order_seed = seed, .run_count = 24, .runs = runs};
    pabd_plan_order(&plan);
    for (int k = 0; k < 24; ++k) {
      CHECK_INT(runs[k].case_index, k / 12);
      CHECK_INT(runs[k].repeat, k / 4 % 3);
      if (seed == 2) differs |= runs[k].engine_index != place[k][0];
      place[k][0] = runs[k].engine_index;
    }
    for (int k = 0; k < 24; ++k)
      again[k] = (pabd_run){.case_index = k / 12, .engine_index = k % 4, .repeat = k / 4 % 3};
    pabd_plan repeat = {.order_seed = seed, .run_count = 24, .runs = again};
    pabd_plan_order(&repeat);
    CHECK(memcmp(runs, again, sizeof runs) == 0);
  }
  CHECK(differs);
}

/* A record that is right, as a tree to break. */
static cJSON *good_record(void) {
  static const char text[] =
      "{\"schema\":1,\"status\":\"ok\",\"reason\":\"\",\"verdict\":\"pass\",\"run\":{\"key\":\"0123456789abcdef\","
      "\"name\":\"n\","
      "\"plan\":\"\",\"repeat\":0,\"threads\":1,\"time_limit\":300,\"order\":0,\"order_seed\":\"1\",\"trace_frames\":"
      "null},"
      "\"case\":{\"id\":\"c\",\"family\":\"f\",\"title\":\"\",\"claim\":\"\",\"tags\":\"\",\"hash\":"
      "\"0123456789abcdef\","
      "\"label\":\"c\",\"params\":{\"n\":{\"value\":1,\"initial\":1,\"unit\":\"1\"}},\"seed\":null,\"duration\":1,"
      "\"frame_time\":0.1,\"frame_count\":10,\"settle_time\":null,\"energy_ref\":1,\"energy_rule\":\"\",\"body_count\":"
      "1,"
      "\"joint_count\":0},\"engine\":{\"name\":\"e\",\"version\":\"\",\"preset\":\"\",\"preset_source\":\"\",\"label\":"
      "\"e\","
      "\"precision\":\"\",\"device\":\"\",\"license\":\"\",\"build\":\"\",\"library_hash\":\"0123456789abcdef\","
      "\"capabilities\":[],\"overrides\":{},\"params\":{\"a\":\"1\"}},\"env\":{\"commit\":\"c\",\"dirty\":null,\"cpu\":"
      "\"c\","
      "\"cores\":1,\"compiler\":\"c\",\"flags\":\"\",\"governor\":\"g\",\"gpu\":\"g\",\"driver\":\"d\",\"os\":\"o\","
      "\"loadavg\":1,\"date\":\"d\",\"command\":\"\"},\"state_hash\":\"0123456789abcdef\",\"metrics\":{\"m\":{"
      "\"value\":1,"
      "\"unit\":\"m\",\"better\":\"lower\"}},\"expect\":[{\"metric\":\"m\",\"op\":\"<=\",\"bound\":2,\"tolerance\":0,"
      "\"reason\":\"\",\"engines\":\"*\",\"binds\":true,\"ok\":true,\"value\":1}],\"timing\":{\"timing_valid\":true,"
      "\"why\":\"\","
      "\"clock\":\"harness\",\"warmup\":2,\"samples\":8,\"frames_done\":10,\"metrics_frame\":10,\"wall_s\":1},"
      "\"stages\":{\"s\":"
      "{\"part\":\"solve\",\"unit\":\"ms\",\"p50\":1,\"p95\":1,\"max\":1,\"mean\":null}},\"counters\":{\"k\":{\"unit\":"
      "\"1\","
      "\"last\":1,\"mean\":1,\"max\":1}},\"warnings\":[\"w\"],\"output\":\"\",\"trajectory\":null,\"series\":{\"s\":{"
      "\"unit\":\"m\","
      "\"values\":[1,null,2]}}}";
  return cJSON_Parse(text);
}

TEST(the_validator_accepts_a_good_record) {
  pabd_error error = {""};
  cJSON *record = good_record();
  REQUIRE(record != NULL);
  CHECK_INT(pabd_record_check("r", record, &error), PABD_OK);
  CHECK_STR(error.text, "");
  cJSON_Delete(record);
}

TEST(the_validator_misses_no_missing_key) {
  /* Every key of every block, removed one at a time, must be noticed. Contents of open maps are not keys of the schema.
   */
  static const char *const blocks[] = {"", "run", "case", "engine", "env", "timing"};
  int tried = 0;
  for (int b = 0; b < 6; ++b) {
    for (int n = 0;; ++n) {
      cJSON *record = good_record();
      cJSON *block = blocks[b][0] ? cJSON_GetObjectItem(record, blocks[b]) : record;
      if (n >= cJSON_GetArraySize(block)) {
        cJSON_Delete(record);
        break;
      }
      char key[64];
      snprintf(key, sizeof key, "%s", cJSON_GetArrayItem(block, n)->string);
      cJSON_DeleteItemFromArray(block, n);
      pabd_error error = {""};
      CHECK_MSG(pabd_record_check("r", record, &error) == PABD_ERR_INPUT, "removed %s.%s unnoticed", blocks[b], key);
      CHECK_CONTAINS(error.text, key);
      ++tried;
      cJSON_Delete(record);
    }
  }
  CHECK(tried > 70);
}

/* Replaces record.block.key (or record.key) by the JSON text. */
static void replace(cJSON *record, const char *block, const char *key, const char *value) {
  cJSON *at = block[0] ? cJSON_GetObjectItem(record, block) : record;
  if (cJSON_IsArray(at)) at = at->child;
  cJSON_ReplaceItemInObjectCaseSensitive(at, key, cJSON_Parse(value));
}

TEST(the_validator_rejects_broken_records) {
  static const struct {
    const char *block, *key, *value;
  } table[] = {{"", "schema", "2"},
               {"", "status", "\"fine\""},
               {"", "status", "\"crashed\""}, /* without a reason, and with a verdict of pass */
               {"", "verdict", "\"maybe\""},
               {"", "verdict", "\"fail\""},
               {"", "verdict", "\"none\""},
               {"", "reason", "\"two\\nlines\""},
               {"", "state_hash", "\"xyz\""},
               {"", "state_hash", "null"},
               {"", "warnings", "[1]"},
               {"run", "repeat", "-1"},
               {"run", "repeat", "0.5"},
               {"run", "key", "\"0123\""},
               {"case", "id", "\"\""},
               {"case", "hash", "17"},
               {"case", "params", "{\"n\":{\"value\":null,\"unit\":\"1\"}}"},
               {"engine", "params", "{\"a\":1}"},
               {"env", "cores", "\"two\""},
               {"metrics", "m", "{\"value\":1,\"unit\":\"m\",\"better\":\"smaller\"}"},
               {"metrics", "m", "{\"value\":\"1\",\"unit\":\"m\",\"better\":\"lower\"}"},
               {"metrics", "m", "{\"value\":1,\"unit\":\"\",\"better\":\"lower\"}"},
               {"series", "s", "{\"unit\":\"m\",\"values\":[1,\"2\"]}"},
               {"series", "s", "{\"unit\":\"m\"}"},
               {"stages", "s", "{\"part\":\"other\",\"unit\":\"ms\",\"p50\":1,\"p95\":1,\"max\":1,\"mean\":1}"},
               {"counters", "k", "{\"unit\":\"1\",\"last\":1,\"mean\":1}"},
               {"expect", "op", "\"~\""},
               {"expect", "ok", "false"},   /* the verdict still says pass */
               {"expect", "value", "null"}, /* ok without a value */
               {"timing", "frames_done", "9"},
               {"timing", "frames_done", "11"},
               {"timing", "timing_valid", "false"}, /* without why */
               {"timing", "why", "\"x\""}};
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    cJSON *record = good_record();
    pabd_error error = {""};
    replace(record, table[k].block, table[k].key, table[k].value);
    CHECK_MSG(pabd_record_check("file.json", record, &error) == PABD_ERR_INPUT, "%s.%s = %s passed", table[k].block,
              table[k].key, table[k].value);
    CHECK_CONTAINS(error.text, "file.json: ");
    cJSON_Delete(record);
  }
}

TEST(the_validator_rejects_texts_that_are_cut) {
  cJSON *record = good_record();
  char *text = cJSON_PrintUnformatted(record);
  size_t size = strlen(text);
  pabd_error error = {""};
  CHECK_INT(pabd_record_check_text("r", text, size, &error), PABD_OK);
  int accepted = 0;
  for (size_t k = 0; k < size; k += 7) accepted += pabd_record_check_text("r", text, k, NULL) == PABD_OK;
  CHECK_INT(accepted, 0);
  char *doubled = malloc(size + 3);
  sprintf(doubled, "%s}", text);
  CHECK_INT(pabd_record_check_text("r", doubled, size + 1, &error), PABD_ERR_INPUT);
  CHECK_INT(pabd_record_check_text("r", "[]", 2, &error), PABD_ERR_INPUT);
  CHECK_INT(pabd_record_check_text("r", "", 0, &error), PABD_ERR_INPUT);
  free(doubled);
  free(text);
  cJSON_Delete(record);
}

/* Presets: what files may and may not say. Root folder of its own with the two layouts. */
static pabd_status load_presets(const char *text, const char *engine, pabd_presets *out, pabd_error *error) {
  pabd_places places;
  memset(&places, 0, sizeof places);
  snprintf(places.root, sizeof places.root, "%s", in_scratch("root"));
  char path[PABD_PATH_SIZE];
  pabd_path_format(path, "%s/baselines/presets", places.root);
  pabd_make_folders(path, NULL);
  pabd_path_format(path, "%s/baselines/presets/%s.json", places.root, engine);
  pabd_file_write_whole(path, text, strlen(text), NULL);
  static pabd_engine_desc d;
  memset(&d, 0, sizeof d);
  d.is_available = 1;
  snprintf(d.name, sizeof d.name, "%s", engine);
  d.setting_count = 1;
  d.settings[0] = (pabd_setting_text){.key = "iterations", .type = "int", .range = "1 .. 100"};
  return pabd_presets_load(&places, &d, out, error);
}

TEST(preset_files) {
  pabd_presets p;
  pabd_error error = {""};
  REQUIRE(load_presets(
              "{\"engine\":\"e\",\"presets\":{\"a\":{\"source\":\"s\",\"settings\":{\"iterations\":10}},"
              "\"b\":{\"default\":true,\"settings\":{\"iterations\":\"20\"}},\"c\":{\"settings\":{\"iteration\":1}}}}",
              "e", &p, &error) == PABD_OK);
  CHECK_INT(p.count, 3);
  CHECK_STR(p.presets[0].settings[0].value, "10");
  CHECK_STR(pabd_presets_default(&p)->name, "b");
  CHECK_STR(p.presets[1].fault, "");
  CHECK_CONTAINS(p.presets[2].fault, "nearest: iterations");
  pabd_catalog_engine engine = {.desc = {.name = "e"}, .presets = p};
  const pabd_preset *found;
  CHECK_INT(pabd_catalog_find_preset(&engine, "a", &found, &error), PABD_OK);
  CHECK_INT(pabd_catalog_find_preset(&engine, "c", &found, &error), PABD_ERR_INPUT);
  CHECK_INT(pabd_catalog_find_preset(&engine, "x", &found, &error), PABD_ERR_INPUT);
  CHECK_CONTAINS(error.text, "no preset 'x'");
  pabd_presets_free(&p);
  static const char *const bad[] = {"",
                                    "[]",
                                    "{",
                                    "{\"presets\":[]}",
                                    "{\"presets\":{\"a\":1}}",
                                    "{\"presets\":{\"a\":{\"setting\":{}}}}",
                                    "{\"presets\":{\"a\":{\"settings\":{\"iterations\":[1]}}}}",
                                    "{\"presets\":{\"a:b\":{\"settings\":{}}}}"};
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; ++k) {
    CHECK_MSG(load_presets(bad[k], "e", &p, &error) == PABD_ERR_INPUT, "accepted %s", bad[k]);
    CHECK_CONTAINS(error.text, "e.json");
    CHECK_INT(p.count, 0);
  }
}
