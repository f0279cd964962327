/* The harness end to end: pabd-bench with the fake engines of tests/engines, in a project folder of its own.
 *
 * Every way an engine can misbehave must end as the right record, with the right exit code, and leave no partial file.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "files.h"
#include "record_check.h"
#include "test.h"
#include "trajectory.h"

#define ENGINES PABD_BUILD_DIR "/tests/engines"

static char root[64], output[65536], errors[65536];

static const char *program(void) {
  const char *given = getenv("PABD_BENCH");
  return given ? given : PABD_BUILD_DIR "/pabd-bench";
}

static void remove_root(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  if (root[0] && system(command) != 0) fprintf(stderr, "%s is left\n", root);
}

static void write_text(const char *name, const char *text) {
  char path[PABD_PATH_SIZE];
  pabd_path_format(path, "%s/%s", root, name);
  char *slash = strrchr(path, '/');
  *slash = 0;
  pabd_make_folders(path, NULL);
  *slash = '/';
  if (pabd_file_write_whole(path, text, strlen(text), NULL) != PABD_OK) abort();
}

/* A project with two cases, presets and plans. */
static void set_up(void) {
  if (root[0]) return;
  snprintf(root, sizeof root, "/tmp/pabd-runs-XXXXXX");
  if (!mkdtemp(root)) abort();
  atexit(remove_root);
  write_text(
      "cases/fall.json",
      "{\"schema\": 1, \"family\": \"sanity\", \"title\": \"Fall\", \"claim\": \"A ball falls.\", \"tags\": "
      "[\"quick\"],"
      " \"params\": {\"height\": {\"type\": \"real\", \"default\": 10, \"range\": [1, 100], \"unit\": \"m\","
      " \"meaning\": \"of the ball\"}},"
      " \"duration\": 0.5, \"energy_ref\": {\"rule\": \"height\"},"
      " \"bodies\": [{\"name\": \"ground\", \"motion\": \"static\", \"position\": [0, 0, -1],"
      " \"shape\": {\"kind\": \"box\", \"size\": [20, 20, 2]}},"
      " {\"name\": \"ball\", \"position\": [0, 0, \"$height\"], \"mass\": 1,"
      " \"shape\": {\"kind\": \"sphere\", \"radius\": 0.1}}],"
      " \"metrics\": [{\"kind\": \"energy\"}, {\"kind\": \"free_fall\", \"body\": \"ball\"}],"
      " \"expect\": [{\"metric\": \"free_fall_err_end\", \"op\": \"<=\", \"bound\": 1e-9, \"engines\": [\"fake:*\", "
      "\"fake\"],"
      " \"reason\": \"the test engine flies exactly\"},"
      " {\"metric\": \"counter.frames\", \"op\": \"==\", \"bound\": 30, \"tolerance\": 0, \"engines\": [\"other\"],"
      " \"reason\": \"counters can be bound\"}]}");
  write_text(
      "cases/swing.json",
      "{\"schema\": 1, \"family\": \"sanity\", \"title\": \"Swing\", \"claim\": \"A bob on a hinge.\", \"tags\": "
      "[\"slow\"],"
      " \"params\": {}, \"duration\": 0.5, \"energy_ref\": {\"rule\": \"hanging\"},"
      " \"bodies\": [{\"name\": \"bob\", \"position\": [1, 0, 0], \"mass\": 1,"
      " \"shape\": {\"kind\": \"sphere\", \"radius\": 0.1}}],"
      " \"joints\": [{\"kind\": \"hinge\", \"name\": \"pin\", \"a\": \"world\", \"b\": \"bob\", \"anchor\": [0, 0, 0],"
      " \"axis\": [0, 1, 0]}], \"metrics\": [{\"kind\": \"joints\"}], \"expect\": []}");
  write_text(
      "baselines/presets/fake.json",
      "{\"engine\": \"fake\", \"presets\": {\"default\": {\"source\": \"test\", \"settings\": {\"mode\": \"good\"}},"
      " \"half\": {\"source\": \"test\", \"settings\": {\"gain\": 0.5}},"
      " \"nan\": {\"source\": \"test\", \"settings\": {\"mode\": \"nan\", \"at\": 12}}}}");
}

static void read_back(const char *name, char *out, size_t size) {
  char path[PABD_PATH_SIZE], *text;
  pabd_path_format(path, "%s/%s", root, name);
  out[0] = 0;
  if (pabd_file_read(path, &text, NULL, NULL) != PABD_OK) return;
  snprintf(out, size, "%s", text);
  free(text);
}

/* Runs `pabd-bench <arguments>` in the test's project; %s in `format` as printf. Returns the exit code. */
static int bench(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int bench(const char *format, ...) {
  char arguments[2048], command[4096];
  va_list list;
  set_up();
  va_start(list, format);
  vsnprintf(arguments, sizeof arguments, format, list);
  va_end(list);
  snprintf(command, sizeof command, "%s %s --root %s --engines-dir %s >%s/out.txt 2>%s/err.txt </dev/null", program(),
           arguments, root, ENGINES, root, root);
  int state = system(command);
  read_back("out.txt", output, sizeof output);
  read_back("err.txt", errors, sizeof errors);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* The record <out>/records/<name>.json, checked; NULL with a failed check when it is not there. */
static cJSON *record_of(const char *out, const char *name) {
  char path[PABD_PATH_SIZE];
  cJSON *record;
  pabd_error error = {""};
  pabd_path_format(path, "%s/%s/records/%s.json", root, out, name);
  CHECK_MSG(pabd_record_read(path, &record, &error) == PABD_OK, "%s", error.text);
  return record;
}

static const cJSON *at(const cJSON *record, const char *block, const char *key) {
  if (block) record = cJSON_GetObjectItemCaseSensitive(record, block);
  return cJSON_GetObjectItemCaseSensitive(record, key);
}

static const char *text_at(const cJSON *record, const char *block, const char *key) {
  const char *text = cJSON_GetStringValue(at(record, block, key));
  return text ? text : "(none)";
}

static double number_at(const cJSON *record, const char *block, const char *key) {
  const cJSON *item = at(record, block, key);
  if (cJSON_IsObject(item)) item = cJSON_GetObjectItemCaseSensitive(item, "value");
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Files in <out>/records, hidden ones too; -1 when there is no such folder. */
static int files_in(const char *out) {
  char path[PABD_PATH_SIZE];
  int count = 0;
  pabd_path_format(path, "%s/%s/records", root, out);
  DIR *dir = opendir(path);
  if (!dir) return -1;
  for (struct dirent *e; (e = readdir(dir));) count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(dir);
  return count;
}

static void sleep_ms(long ms) {
  struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&pause, NULL);
}

static int count_lines(const char *text) {
  int count = 0;
  for (; *text; ++text) count += *text == '\n';
  return count;
}

TEST(a_good_run) {
  CHECK_INT(bench("run fall --engine fake --out %s/good --strict", (set_up(), root)), 0);
  cJSON *r = record_of("good", "fall__fake-default__r0");
  REQUIRE(r != NULL);
  CHECK_STR(text_at(r, NULL, "status"), "ok");
  CHECK_STR(text_at(r, NULL, "verdict"), "pass");
  CHECK_STR(text_at(r, "engine", "preset"), "default");
  CHECK_STR(text_at(r, "engine", "label"), "fake:default");
  CHECK_INT(number_at(r, "timing", "frames_done"), 30);
  CHECK_INT(number_at(r, "timing", "samples"), 28);
  CHECK(cJSON_IsTrue(at(r, "timing", "timing_valid")));
  CHECK_NEAR(number_at(r, "metrics", "free_fall_err_end"), 0, 1e-9);
  CHECK(number_at(r, "metrics", "step_ms_p50") > 0);
  CHECK_NEAR(number_at(r, "metrics", "collide_ms_mean"), 0.001, 1e-12);
  CHECK_NEAR(number_at(r, "metrics", "solve_ms_p99"), 0.002, 1e-12);
  CHECK_INT(cJSON_GetArraySize(at(at(r, "series", "step_ms"), NULL, "values")), 31);
  CHECK_INT(number_at(at(r, "counters", "frames"), NULL, "max"), 30);
  const cJSON *second = cJSON_GetArrayItem(at(r, NULL, "expect"), 1);
  CHECK(cJSON_IsFalse(cJSON_GetObjectItem(second, "binds")) && cJSON_IsTrue(cJSON_GetObjectItem(second, "ok")));
  CHECK_CONTAINS(text_at(r, "env", "command"), "pabd-bench");
  CHECK_INT(cJSON_GetArraySize(at(r, NULL, "warnings")), 0);
  CHECK_STR(text_at(at(r, "engine", "params"), NULL, "threads"), "1");
  cJSON_Delete(r);
  CHECK_INT(files_in("good"), 1);
}

/* The engine's mode, what the record must say, and the frames that were done. */
TEST(misbehavior_is_a_record) {
  static const struct {
    const char *mode, *status, *verdict, *reason;
    int frames;
  } table[] = {{"crash", "crashed", "fail", "Segmentation fault in step() of frame 10", 9},
               {"abort", "crashed", "fail", "its last words: assertion failed: the end is near", 9},
               {"exit", "crashed", "fail", "exit status 3 in step() of frame 10", 9},
               {"error", "crashed", "fail", "internal error: out of luck", 9},
               {"hang", "timeout", "fail", "over the time limit of 1.5 s in step() of frame 10", 9},
               {"nan", "diverged", "fail", "frame 10: vy of body 1 'ball' is nan", 10},
               {"fly", "diverged", "fail", "frame 10: a body is out of all bounds", 10},
               {"diverged", "diverged", "fail", "the engine says so: residual is 1e300", 10},
               {"refuse", "na", "none", "balls must be red", 0},
               {"slow", "ok", "pass", "", 30},
               {"shout", "ok", "pass", "", 30},
               {"destroy", "ok", "pass", "", 30},
               {"fork", "ok", "pass", "", 30}};
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    char name[128];
    /* The bound on "fake" binds whatever the overrides. The path in the name has a hash: ask the record list instead.
     */
    CHECK_INT(bench("run fall --engine fake:mode=%s --out %s/bad-%s --json %s/bad.json --time-limit 1.5", table[k].mode,
                    root, table[k].mode, root),
              0);
    read_back("bad.json", output, sizeof output);
    cJSON *list = cJSON_Parse(output), *r = cJSON_GetArrayItem(list, 0);
    pabd_error error = {""};
    CHECK_INT(cJSON_GetArraySize(list), 1);
    CHECK_MSG(pabd_record_check(table[k].mode, r, &error) == PABD_OK, "%s", error.text);
    CHECK_MSG(strcmp(text_at(r, NULL, "status"), table[k].status) == 0, "%s: status %s", table[k].mode,
              text_at(r, NULL, "status"));
    CHECK_MSG(strcmp(text_at(r, NULL, "verdict"), table[k].verdict) == 0, "%s: verdict %s", table[k].mode,
              text_at(r, NULL, "verdict"));
    CHECK_CONTAINS(text_at(r, NULL, "reason"), table[k].reason);
    CHECK_MSG(number_at(r, "timing", "frames_done") == table[k].frames, "%s: %g frames", table[k].mode,
              number_at(r, "timing", "frames_done"));
    CHECK(cJSON_IsTrue(at(r, "timing", "timing_valid")) == (strcmp(table[k].status, "ok") == 0));
    /* What was judged before the end is kept. */
    if (table[k].frames >= 9)
      CHECK_MSG(isfinite(number_at(r, "metrics", "energy_rel_err_max")), "%s: no metrics", table[k].mode);
    snprintf(name, sizeof name, "bad-%s", table[k].mode);
    CHECK_INT(files_in(name), 1);
    cJSON_Delete(list);
  }
}

TEST(output_of_an_engine_stays_out_of_ours) {
  CHECK_INT(bench("run fall --engine fake:mode=shout --out %s/shout --json -", root), 0);
  cJSON *list = cJSON_Parse(output);
  REQUIRE(list != NULL); /* nothing but the list on standard output */
  CHECK_CONTAINS(text_at(cJSON_GetArrayItem(list, 0), NULL, "output"), "of the engine says ?? something");
  CHECK(strstr(errors, "of the engine says") == NULL);
  cJSON_Delete(list);
}

TEST(lies_are_noted) {
  CHECK_INT(bench("run fall --engine fake:mode=liar --out %s/liar --json -", root), 0);
  cJSON *list = cJSON_Parse(output), *r = cJSON_GetArrayItem(list, 0);
  char *warnings = cJSON_PrintUnformatted(at(r, NULL, "warnings"));
  CHECK_CONTAINS(warnings, "static body 0 'ground' is 0.5 m from its place");
  CHECK_CONTAINS(warnings, "has length 1.5");
  CHECK_CONTAINS(warnings, "not believed");
  CHECK_CONTAINS(warnings, "frame 9: the engine dropped 17 pairs");
  CHECK_CONTAINS(warnings, "1000000 stages");
  CHECK_STR(text_at(r, "timing", "clock"), "harness");
  CHECK(number_at(r, "metrics", "step_ms_max") < 1e3);
  CHECK(number_at(r, "metrics", "collide_ms_max") < 1);
  free(warnings);
  cJSON_Delete(list);
  /* An engine's own clock counts when it can be true. */
  CHECK_INT(bench("run fall --engine fake:mode=self --out %s/self --json -", root), 0);
  list = cJSON_Parse(output);
  CHECK_STR(text_at(cJSON_GetArrayItem(list, 0), "timing", "clock"), "engine");
  CHECK_NEAR(number_at(cJSON_GetArrayItem(list, 0), "metrics", "step_ms_p50"), 1e-6, 0);
  cJSON_Delete(list);
}

TEST(strict_turns_a_missed_bound_into_exit_code_1) {
  CHECK_INT(bench("run fall --engine fake:half --out %s/strict", root), 0);
  CHECK_CONTAINS(errors, "free_fall_err_end");
  CHECK_CONTAINS(errors, "expected <= 1e-09");
  CHECK_INT(bench("run fall --engine fake:half --out %s/strict --strict", root), 1); /* from the record that is there */
  CHECK_CONTAINS(errors, "1 already there");
  CHECK_INT(bench("run fall --engine fake --out %s/strict --strict", root), 0);
  cJSON *r = record_of("strict", "fall__fake-half__r0");
  CHECK_STR(text_at(r, NULL, "verdict"), "fail");
  CHECK(cJSON_IsFalse(at(r, "timing", "timing_valid")));
  cJSON_Delete(r);
}

TEST(bad_input_is_one_line_and_exit_code_2) {
  static const struct {
    const char *arguments, *said;
  } table[] = {{"run fal --engine fake", "nearest: fall"},
               {"run fall --engine fak", "nearest: fake"},
               {"run fall --engine fake:defalt", "nearest: default"},
               {"run fall --engine fake:mod=nan", "nearest: mode"},
               {"run fall --engine fake:mode=nanny", "allowed: good"},
               {"run fall --engine fake:at=1.5", "whole number"},
               {"run fall --engine fake:at=-1", "out of range"},
               {"run fall:hight=3 --engine fake", "height"},
               {"run fall:height=1000 --engine fake", "height"},
               {"run fall:height --engine fake", "key=value"},
               {"run fall --engine fake --repeat 0", "1 .. 1000"},
               {"run fall --engine fake --repat 3", "nearest: --repeat"},
               {"run fall --engine fake --out", "needs a value"},
               {"run --engine fake", "which case"},
               {"run --tag nonsense --engine fake", "no case carries the tag"},
               {"run fall --engine fake:mode=bad-input", "mode=bad-input is refused"},
               {"run 'x*' --engine fake", "matches"},
               {"run --plan nowhere", "no plan"},
               {"run --plan bad-plan", "unknown or ill-typed 'case'"},
               {"run --plan no-json", "not a JSON object"},
               {"run --plan empty", "'runs'"},
               {"rn fall", "nearest: run"},
               {"list case", "Allowed: cases"},
               {"describe fal", "nearest: fall"},
               {"export", "needs one trajectory"},
               {"export /dev/null --csv -", "not a regular file"},
               {"check", "no records found"},
               {"determinism", "which case"}};
  set_up();
  write_text("harness/plans/bad-plan.json", "{\"runs\": [{\"case\": [\"fall\"], \"engines\": [\"fake\"]}]}");
  write_text("harness/plans/no-json.json", "{\"runs\": [");
  write_text("harness/plans/empty.json", "{}");
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    /* --out belongs to run only, and one row of the table tests its absence. */
    int takes_out = strncmp(table[k].arguments, "run ", 4) == 0 && !strstr(table[k].arguments, "--out");
    const char *place = takes_out ? " --quiet --out " : "";
    int code = strncmp(table[k].arguments, "export", 6) == 0 || strncmp(table[k].arguments, "check", 5) == 0 ||
                       strstr(table[k].arguments, "--out")
                   ? -2
                   : bench("%s%s%s%s", table[k].arguments, place, takes_out ? root : "", takes_out ? "/none" : "");
    if (code == -2) { /* commands without --root */
      char command[1024];
      snprintf(command, sizeof command, "%s %s >%s/out.txt 2>%s/err.txt", program(), table[k].arguments, root, root);
      int state = system(command);
      code = WEXITSTATUS(state);
      read_back("err.txt", errors, sizeof errors);
    }
    CHECK_MSG(code == 2, "'%s' ended with %d: %s", table[k].arguments, code, errors);
    CHECK_CONTAINS(errors, table[k].said);
    CHECK_MSG(count_lines(errors) == 1, "'%s' printed %d lines: %s", table[k].arguments, count_lines(errors), errors);
  }
  CHECK(files_in("none") <= 0);
}

TEST(what_is_there_is_not_run_again) {
  set_up();
  char path[PABD_PATH_SIZE], engines[PABD_PATH_SIZE], command[PABD_PATH_SIZE * 3];
  struct stat before, after;
  pabd_path_format(path, "%s/resume/records/fall__fake-default__r0.json", root);
  CHECK_INT(bench("run fall --engine fake --out %s/resume", root), 0);
  REQUIRE(stat(path, &before) == 0);
  sleep_ms(20);
  CHECK_INT(bench("run fall --engine fake --out %s/resume", root), 0);
  CHECK_CONTAINS(errors, "1 already there");
  stat(path, &after);
  CHECK(before.st_ino == after.st_ino);
  CHECK_INT(bench("run fall --engine fake --out %s/resume --force", root), 0);
  CHECK_CONTAINS(errors, "1 ok");
  stat(path, &after);
  CHECK(before.st_ino != after.st_ino);
  /* A record that is damaged, or of another warm-up, is made again in its place. */
  pabd_file_write_whole(path, "{\"schema\": 1", 12, NULL);
  CHECK_INT(bench("run fall --engine fake --out %s/resume", root), 0);
  CHECK_CONTAINS(errors, "1 ok");
  CHECK_INT(bench("run fall --engine fake --out %s/resume --warmup 5", root), 0);
  CHECK_CONTAINS(errors, "1 ok");
  /* A trajectory is asked for that the record lacks. */
  CHECK_INT(bench("run fall --engine fake --out %s/resume --warmup 5 --trajectory", root), 0);
  CHECK_CONTAINS(errors, "1 ok");
  CHECK_INT(bench("run fall --engine fake --out %s/resume --warmup 5 --trajectory", root), 0);
  CHECK_CONTAINS(errors, "1 already there");
  /* Other settings, parameters and threads have records of their own. */
  CHECK_INT(files_in("resume"), 2);
  CHECK_INT(bench("run fall fall:height=20 --engine fake --engine fake:at=3 --out %s/resume --threads 2", root), 0);
  CHECK_CONTAINS(errors, "4 ok");
  CHECK_INT(files_in("resume"), 6);
  /* An engine that was built anew is another engine. */
  pabd_path_format(engines, "%s/engines", root);
  snprintf(command, sizeof command, "mkdir -p %s && cp %s/fake.so %s/", engines, ENGINES, engines);
  REQUIRE(system(command) == 0);
  snprintf(command, sizeof command,
           "%s run fall --engine fake --out %s/resume2 --root %s --engines-dir %s 2>>%s/err.txt", program(), root, root,
           engines, root);
  CHECK_INT(system(command), 0);
  CHECK_INT(system(command), 0);
  char append[PABD_PATH_SIZE * 2];
  snprintf(append, sizeof append, "printf x >>%s/fake.so", engines);
  REQUIRE(system(append) == 0);
  CHECK_INT(system(command), 0);
  read_back("err.txt", errors, sizeof errors);
  CHECK_CONTAINS(errors, "done: 1 already there\n1 runs"); /* second time; the third ran again: */
  CHECK_CONTAINS(strstr(errors, "already there"), "1 ok");
  /* A time-out is tried again when there is more time. */
  CHECK_INT(bench("run fall --engine fake:mode=hang --out %s/late --time-limit 0.3", root), 0);
  CHECK_INT(bench("run fall --engine fake:mode=hang --out %s/late --time-limit 0.3", root), 0);
  CHECK_CONTAINS(errors, "1 already there");
  CHECK_INT(bench("run fall --engine fake:mode=hang --out %s/late --time-limit 0.4", root), 0);
  CHECK_CONTAINS(errors, "1 timeout");
}

TEST(what_an_engine_cannot_do_is_na) {
  set_up();
  unsetenv("CI"); /* these tests run on build servers too, where a missing engine is a failure: tested below */
  write_text("engines/text.so", "not a library");
  CHECK_INT(bench("run fall swing --engine fake --engine fake_limited --engine fake_absent --engine fake_broken "
                  "--engine fake_old "
                  "--engine fake_small --engine pabd-nothing.so --engine %s/engines/text.so --out %s/na --strict",
                  root, root),
            0);
  static const struct {
    const char *name, *reason;
  } table[] = {{"swing__fake-default__r0", "cannot do what the scene needs: hinge"},
               {"fall__fake_limited__r0", "cannot do what the scene needs: sphere, box"},
               {"fall__fake_absent__r0", "not available: needs a quantum computer"},
               {"fall__fake_broken__r0", "not available: crashed while it was probed"},
               {"fall__fake_old__r0", "table version 999"},
               {"fall__fake_small__r0", "table of 16 bytes"},
               {"fall__pabd-nothing__r0", "no such file"},
               {"fall__text__r0", "cannot load"}};
  for (size_t k = 0; k < sizeof table / sizeof table[0]; ++k) {
    cJSON *r = record_of("na", table[k].name);
    if (!r) continue;
    CHECK_STR(text_at(r, NULL, "status"), "na");
    CHECK_STR(text_at(r, NULL, "verdict"), "none");
    CHECK_CONTAINS(text_at(r, NULL, "reason"), table[k].reason);
    cJSON_Delete(r);
  }
  /* On a build server a missing engine is a failure. */
  setenv("CI", "true", 1);
  CHECK_INT(bench("run fall --engine fake_absent --out %s/na --force", root), 1);
  CHECK_INT(bench("run swing --engine fake --out %s/na --force", root), 0);
  unsetenv("CI");
}

/* Starts a slow run in the background and returns its process number. */
static pid_t start_slow(const char *out) {
  set_up();
  pid_t child = fork();
  if (child == 0) {
    char folder[PABD_PATH_SIZE];
    pabd_path_format(folder, "%s/%s", root, out);
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    execl(program(), program(), "run", "fall", "--engine", "fake", "--engine", "fake:mode=slow", "--engine",
          "fake:mode=hang", "--repeat", "1", "--seed", "1", "--trajectory", "--root", root, "--engines-dir", ENGINES,
          "--out", folder, (char *)NULL);
    _exit(127);
  }
  return child;
}

/* Children of a process, by the kernel's list. */
static int children_of(pid_t parent, pid_t *out, int capacity) {
  char path[128];
  int count = 0;
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)parent, (long)parent);
  FILE *stream = fopen(path, "r");
  long number;
  while (stream && count < capacity && fscanf(stream, "%ld", &number) == 1) out[count++] = (pid_t)number;
  if (stream) fclose(stream);
  return count;
}

/* Gone, or dead and only not yet collected by whoever inherited it. */
static int is_gone(pid_t process) {
  char path[64], state = 'Z';
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
  FILE *stream = fopen(path, "r");
  if (!stream) return 1;
  if (fscanf(stream, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
  fclose(stream);
  return state == 'Z' || state == 'X';
}

/* Waits until the run hangs in its engine, then returns the engine's process. */
static pid_t wait_for_child(pid_t harness) {
  pid_t child = 0, now = 0;
  int steady = 0;
  for (int k = 0; k < 400 && steady < 40; ++k) {
    sleep_ms(10);
    if (children_of(harness, &now, 1) == 1 && now == child)
      ++steady;
    else
      steady = 0, child = now;
  }
  return child;
}

/* All records are whole, no hidden files are left, and `missing` is not there. */
static void check_no_partial_files(const char *out, int leftovers_allowed) {
  char folder[PABD_PATH_SIZE], path[PABD_PATH_SIZE];
  pabd_path_format(folder, "%s/%s/records", root, out);
  DIR *dir = opendir(folder);
  REQUIRE(dir != NULL);
  for (struct dirent *e; (e = readdir(dir));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    pabd_error error = {""};
    pabd_path_format(path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] == '.') {
      CHECK_MSG(leftovers_allowed, "%s is left", e->d_name);
    } else if (strstr(e->d_name, ".json")) {
      CHECK_MSG(pabd_record_check_file(path, &error) == PABD_OK, "%s", error.text);
      CHECK_MSG(!strstr(e->d_name, "timeout"), "%s", e->d_name);
    } else {
      pabd_trajectory t;
      CHECK_MSG(pabd_trajectory_read(path, &t, &error) == PABD_OK, "%s", error.text);
      pabd_trajectory_free(&t);
    }
  }
  closedir(dir);
}

TEST(an_interrupt_leaves_no_partial_record) {
  static const int signals[] = {SIGINT, SIGTERM};
  for (int k = 0; k < 2; ++k) {
    char out[32];
    snprintf(out, sizeof out, "stop%d", k);
    pid_t harness = start_slow(out), engine = wait_for_child(harness);
    CHECK(engine > 0);
    kill(harness, signals[k]);
    int state = 0;
    waitpid(harness, &state, 0);
    CHECK_MSG(WIFEXITED(state) && WEXITSTATUS(state) == 130, "wait status %d", state);
    CHECK(is_gone(engine));
    check_no_partial_files(out, 0);
    CHECK(files_in(out) <= 4); /* the two good runs, with trajectories; never the one that hung */
  }
}

TEST(a_killed_harness_leaves_no_partial_record) {
  pid_t harness = start_slow("killed"), engine = wait_for_child(harness);
  CHECK(engine > 0);
  kill(harness, SIGKILL);
  waitpid(harness, NULL, 0);
  for (int k = 0; k < 100 && !is_gone(engine); ++k) sleep_ms(10);
  CHECK(is_gone(engine)); /* the kernel ends it with its parent */
  check_no_partial_files("killed", 0);
  int before = files_in("killed");
  CHECK_INT(bench("run fall --engine fake --engine fake:mode=slow --out %s/killed --trajectory", root), 0);
  CHECK(files_in("killed") >= before);
  CHECK_INT(files_in("killed"), 4);
  check_no_partial_files("killed", 0);
}

TEST(kills_at_random_moments_leave_whole_records) {
  /* Many short runs; the harness is killed somewhere in the middle, again and again. Each time it goes on from there.
   */
  set_up();
  for (int k = 0; k < 12; ++k) {
    pid_t harness = fork();
    if (harness == 0) {
      char folder[PABD_PATH_SIZE];
      pabd_path_format(folder, "%s/random", root);
      if (!freopen("/dev/null", "w", stderr)) _exit(1);
      execl(program(), program(), "run", "fall", "--engine", "fake:mode=slow,at=30", "--repeat", "300", "--trajectory",
            "--root", root, "--engines-dir", ENGINES, "--out", folder, (char *)NULL);
      _exit(127);
    }
    sleep_ms(40 + 17 * k);
    kill(harness, SIGKILL);
    waitpid(harness, NULL, 0);
    if (files_in("random") >= 0) check_no_partial_files("random", 1);
  }
  int after_kills = files_in("random");
  CHECK_MSG(after_kills > 0 && after_kills < 600, "%d files: the kills came too early or too late to test anything",
            after_kills);
  CHECK_INT(bench("run fall --engine fake:mode=slow,at=30 --repeat 300 --trajectory --out %s/random", root), 0);
  CHECK_INT(files_in("random"), 600);
  check_no_partial_files("random", 0);
}

TEST(trajectories_lie_beside_their_record) {
  CHECK_INT(bench("run fall --engine fake --out %s/traj --trajectory=7 --trajectory-double", root), 0);
  cJSON *r = record_of("traj", "fall__fake-default__r0");
  REQUIRE(r != NULL);
  CHECK_STR(text_at(r, NULL, "trajectory"), "fall__fake-default__r0.traj");
  cJSON_Delete(r);
  char path[PABD_PATH_SIZE];
  pabd_path_format(path, "%s/traj/records/fall__fake-default__r0.traj", root);
  pabd_trajectory t;
  pabd_error error = {""};
  REQUIRE(pabd_trajectory_read(path, &t, &error) == PABD_OK);
  CHECK_INT(t.header.sample_count, 6); /* 0, 7, 14, 21, 28 and the last */
  CHECK_INT(t.frames[5], 30);
  CHECK_INT(t.header.stride, 7);
  double time = 14 / 60.0;
  CHECK_NEAR(t.poses[(2 * 2 + 1) * 7 + 2], 10 - 0.5 * 9.81 * time * time, 1e-12);
  pabd_trajectory_free(&t);
  char command[PABD_PATH_SIZE * 2];
  snprintf(command, sizeof command, "%s export %s --csv %s/t.csv", program(), path, root);
  CHECK_INT(system(command), 0);
  read_back("t.csv", output, sizeof output);
  CHECK_INT(count_lines(output), 1 + 6 * 2);
  /* A run that ends early keeps what it has. */
  CHECK_INT(bench("run fall --engine fake:nan --out %s/traj --trajectory", root), 0);
  pabd_path_format(path, "%s/traj/records/fall__fake-nan__r0.traj", root);
  REQUIRE(pabd_trajectory_read(path, &t, &error) == PABD_OK);
  CHECK_INT(t.header.sample_count, 12); /* frames 0 .. 11; frame 12 is not a number */
  CHECK_INT(t.header.frame_count, 12);
  pabd_trajectory_free(&t);
}

TEST(repeats_are_interleaved_by_seed) {
  CHECK_INT(bench("run fall --engine fake --engine fake:half --repeat 6 --seed 5 --dry-run"), 0);
  static char first[sizeof output];
  memcpy(first, output, sizeof first);
  CHECK_INT(count_lines(first), 12);
  CHECK_INT(bench("run fall --engine fake --engine fake:half --repeat 6 --seed 5 --dry-run"), 0);
  CHECK_STR(output, first);
  int differs = 0;
  for (int seed = 6; seed < 10; ++seed) {
    bench("run fall --engine fake --engine fake:half --repeat 6 --seed %d --dry-run", seed);
    differs |= strcmp(output, first) != 0;
  }
  CHECK(differs);
  /* Rounds: both engines with repeat k before any with k + 1. */
  for (char *line = strtok(first, "\n"), *mark; line; line = strtok(NULL, "\n")) {
    static int n;
    char wanted[16];
    snprintf(wanted, sizeof wanted, "r%d", n++ / 2);
    mark = strrchr(line, ' ') + 1;
    CHECK_STR(mark, wanted);
  }
  CHECK_INT(bench("run fall --engine fake --engine fake:half --repeat 2 --seed 18446744073 --out %s/order", root), 0);
  cJSON *r = record_of("order", "fall__fake-half__r1");
  CHECK_STR(text_at(r, "run", "order_seed"), "18446744073");
  CHECK_INT(number_at(r, "run", "repeat"), 1);
  CHECK(number_at(r, "run", "order") >= 2);
  cJSON_Delete(r);
}

TEST(plans) {
  set_up();
  write_text(
      "harness/plans/small.json",
      "{\"plan\": \"small\", \"runs\": [{\"why\": \"w\", \"cases\": [\"fall\"], \"params\": {\"height\": [5, 10]},"
      " \"engines\": [\"fake:default\", \"fake:half\"], \"settings\": {\"at\": [10, 20]}, \"threads\": [1, 2], "
      "\"repeat\": 2},"
      " {\"tag\": \"slow\", \"engines\": [\"fake_*\"]}]}");
  CHECK_INT(bench("run --plan small --dry-run"), 0);
  CHECK_INT(count_lines(output), 2 * 2 * 2 * 2 * 2 + 5);
  CHECK_CONTAINS(output, "fall:height=5  fake:half:at=20  2 threads  r1\n");
  CHECK_CONTAINS(output, "swing  fake_limited  r0\n");
  CHECK_INT(bench("run --plan small fall --engine fake:half --repeat 1 --threads 1 --dry-run"), 0);
  CHECK_INT(count_lines(output), 4);
  CHECK_INT(bench("run --plan small swing --dry-run"), 0);
  CHECK_INT(count_lines(output), 5);
  CHECK_INT(bench("run --plan small 'chain*' --dry-run"), 2);
  CHECK_CONTAINS(errors, "nothing in the plan matches");
  CHECK_INT(bench("run --plan small fall --repeat 1"), 0); /* into results/<plan> */
  CHECK_INT(files_in("results/small"), 16);
}

TEST(the_same_bits_or_the_first_difference) {
  CHECK_INT(bench("determinism fall --engine fake --threads 1,2,3 --quiet --json %s/same.json", root), 0);
  CHECK_CONTAINS(output, "same  fall  fake:default: ");
  CHECK_CONTAINS(output, "in 6 runs (threads 1, 2, 3; 30 frames, ok)");
  read_back("same.json", output, sizeof output);
  cJSON *list = cJSON_Parse(output);
  CHECK(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "same")));
  cJSON_Delete(list);
  CHECK_INT(bench("determinism fall --engine fake:mode=thread-bits,at=13 --quiet"), 1);
  CHECK_CONTAINS(output, "2 threads, run 0 against 1 threads, run 0: frame 13, body 0 'ground', x: ");
  CHECK_INT(bench("determinism fall --engine fake:mode=random-bits --threads 1 --repeat 4 --quiet"), 1);
  CHECK_CONTAINS(output, "DIFF");
  CHECK_INT(bench("determinism fall --engine fake:nan --quiet"), 0); /* the same NaN at the same frame */
  CHECK_INT(bench("determinism swing --engine fake --quiet"), 0);
  CHECK_CONTAINS(output, "na    swing");
}

TEST(sweeps_are_traced_where_the_engine_can) {
  CHECK_INT(bench("run fall --engine fake --trace-frames 3..5 --out %s/trace", root), 0);
  cJSON *r = record_of("trace", "fall__fake-default-trace__r0");
  REQUIRE(r != NULL);
  const cJSON *residual = at(at(r, "series", "trace.residual"), NULL, "values");
  const cJSON *frame = at(at(r, "series", "trace.frame"), NULL, "values");
  CHECK_INT(cJSON_GetArraySize(residual), 12); /* 4 sweeps in each of 3 frames */
  CHECK_NEAR(cJSON_GetArrayItem(residual, 3)->valuedouble, 0.25, 0);
  CHECK_INT(cJSON_GetArrayItem(frame, 0)->valuedouble, 3);
  CHECK_INT(cJSON_GetArrayItem(frame, 11)->valuedouble, 5);
  CHECK_NEAR(cJSON_GetArrayItem(at(at(r, "series", "trace.momentum_y"), NULL, "values"), 0)->valuedouble, 2, 0);
  CHECK(cJSON_IsFalse(at(r, "timing", "timing_valid")));
  CHECK(cJSON_IsArray(at(r, "run", "trace_frames")));
  cJSON_Delete(r);
}

TEST(lists_and_descriptions) {
  CHECK_INT(bench("list"), 0);
  CHECK_CONTAINS(output, "fall");
  CHECK_CONTAINS(output, "presets: default*, half, nan");
  CHECK_CONTAINS(output, "not available: needs a quantum computer");
  CHECK_CONTAINS(output, "Plans");
  CHECK_INT(bench("describe fall:height=50 fake"), 0);
  CHECK_CONTAINS(output, "height = 50 m");
  CHECK_CONTAINS(output, "free_fall_err_end <= 1e-09");
  CHECK_CONTAINS(output, "gain = 1");
  CHECK_CONTAINS(output, "cannot: capsule");
  CHECK_INT(bench("run --help"), 0);
  CHECK_CONTAINS(output, "Examples:");
  CHECK_INT(bench("list --help"), 0);
}

TEST(check_finds_broken_records) {
  CHECK_INT(bench("run fall --engine fake --repeat 3 --out %s/check", root), 0);
  char command[512];
  snprintf(command, sizeof command, "%s check %s/check >%s/out.txt", program(), root, root);
  int state = system(command);
  CHECK_INT(WEXITSTATUS(state), 0);
  write_text("check/records/fall__fake-default__r1.json", "{\"schema\": 1}");
  state = system(command);
  CHECK_INT(WEXITSTATUS(state), 1);
  read_back("out.txt", output, sizeof output);
  CHECK_CONTAINS(output, "r1.json: status is missing");
  CHECK_CONTAINS(output, "2 good, 1 bad");
}

TEST(an_engine_by_path_brings_its_presets) {
  set_up();
  char command[1024];
  snprintf(command, sizeof command, "mkdir -p %s/mine && cp %s/fake.so %s/mine/mine.so", root, ENGINES, root);
  REQUIRE(system(command) == 0);
  write_text("mine/mine.presets.json", "{\"presets\": {\"only\": {\"default\": true, \"settings\": {\"at\": 7}}}}");
  CHECK_INT(bench("run fall --engine %s/mine/mine.so --out %s/path", root, root), 0);
  cJSON *r = record_of("path", "fall__fake-only__r0");
  REQUIRE(r != NULL);
  CHECK_STR(text_at(at(r, "engine", "params"), NULL, "at"), "7");
  cJSON_Delete(r);
}

TEST(results_that_cannot_be_written_end_the_command) {
  set_up();
  write_text("blocked", "a file, not a folder");
  CHECK_INT(bench("run fall --engine fake --out %s/blocked", root), 2);
  CHECK_CONTAINS(errors, "blocked");
}
