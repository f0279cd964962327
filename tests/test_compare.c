/* Comparing records: statistics, verdicts, matching and exit codes, on synthetic records whose truth is known. */
#include <sys/wait.h>

#include "compare.h"
#include "files.h"
#include "test.h"

static char root[64], output[65536];

static void remove_root(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  if (root[0] && system(command) != 0) fprintf(stderr, "%s is left\n", root);
}

static uint64_t seed = 1;
/* Uniform in 0..1. */
static double uniform(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(seed >> 11) / 9007199254740992.0;
}
static double noise(void) {
  return uniform() + uniform() + uniform() + uniform() - 2;
}

/* What one synthetic record holds. */
typedef struct facts {
  const char *params, *preset, *cpu, *status, *verdict, *hash, *case_hash, *metric_unit;
  double step_ms, sweep_ms, error, rtf, load;
  int threads;
} facts;
static const facts usual = {.params = "1",
                            .preset = "p",
                            .cpu = "c",
                            .status = "ok",
                            .verdict = "pass",
                            .hash = "0123456789abcdef",
                            .case_hash = "0123456789abcdef",
                            .metric_unit = "m",
                            .step_ms = 1,
                            .sweep_ms = 0.5,
                            .error = 0.002,
                            .rtf = 16,
                            .load = 0,
                            .threads = 1};

static void write_record(const char *folder, int repeat, facts f) {
  char path[PABD_PATH_SIZE], text[4096];
  if (!root[0]) {
    snprintf(root, sizeof root, "/tmp/pabd-compare-XXXXXX");
    if (!mkdtemp(root)) abort();
    atexit(remove_root);
  }
  int is_ok = strcmp(f.status, "ok") == 0, is_valid = is_ok && strcmp(f.verdict, "fail") != 0;
  snprintf(
      text, sizeof text,
      "{\"schema\":1,\"status\":\"%s\",\"reason\":\"%s\",\"verdict\":\"%s\",\"run\":{\"key\":\"0123456789abcdef\","
      "\"name\":\"n\",\"plan\":\"\",\"repeat\":%d,\"threads\":%d,\"time_limit\":10,\"order\":0,\"order_seed\":\"1\","
      "\"trace_frames\":null},\"case\":{\"id\":\"c\",\"family\":\"f\",\"title\":\"t\",\"claim\":\"c\",\"tags\":\"\","
      "\"hash\":\"%s\",\"label\":\"c\",\"params\":{\"n\":{\"value\":%s,\"initial\":1,\"unit\":\"1\"}},\"seed\":null,"
      "\"duration\":1,\"frame_time\":0.1,\"frame_count\":10,\"settle_time\":null,\"energy_ref\":1,\"energy_rule\":"
      "\"\",\"body_count\":1,\"joint_count\":0},\"engine\":{\"name\":\"e\",\"version\":\"\",\"preset\":\"%s\","
      "\"preset_source\":\"\",\"label\":\"e:%s\",\"precision\":\"\",\"device\":\"\",\"license\":\"\",\"build\":\"\","
      "\"library_hash\":\"0123456789abcdef\",\"capabilities\":[],\"overrides\":{},\"params\":{}},\"env\":{\"commit\":"
      "\"c\",\"dirty\":false,\"cpu\":\"%s\",\"cores\":2,\"compiler\":\"c\",\"flags\":\"\",\"governor\":\"g\",\"gpu\":"
      "\"g\",\"driver\":\"d\",\"os\":\"o\",\"loadavg\":%g,\"date\":\"2026-01-01T00:00:00Z\",\"command\":\"\"},"
      "\"state_hash\":\"%s\",\"metrics\":{\"penetration_max\":{\"value\":%.17g,\"unit\":\"%s\",\"better\":\"lower\"},"
      "\"step_ms_p50\":{\"value\":%.17g,\"unit\":\"ms\",\"better\":\"lower\"},\"rtf\":{\"value\":%.17g,\"unit\":\"1\","
      "\"better\":\"higher\"},\"height\":{\"value\":%.17g,\"unit\":\"m\",\"better\":\"info\"}},\"expect\":[%s],"
      "\"timing\":{\"timing_valid\":%s,\"why\":\"%s\",\"clock\":\"harness\",\"warmup\":2,\"samples\":8,\"frames_done\":"
      "10,\"metrics_frame\":10,\"wall_s\":1},\"stages\":{\"sweep\":{\"part\":\"solve\",\"unit\":\"ms\",\"p50\":%.17g,"
      "\"p95\":1,\"max\":1,\"mean\":1}},\"counters\":{\"sweeps\":{\"unit\":\"1\",\"last\":8,\"mean\":8,\"max\":8}},"
      "\"warnings\":[],\"output\":\"\",\"trajectory\":null,\"series\":{}}",
      f.status, is_ok ? "" : "r", f.verdict, repeat, f.threads, f.case_hash, f.params, f.preset, f.preset, f.cpu,
      f.load, f.hash, f.error, f.metric_unit, f.step_ms, f.rtf, f.error,
      strcmp(f.verdict, "none") == 0 ? ""
      : strcmp(f.verdict, "pass") == 0
          ? "{\"metric\":\"penetration_max\",\"op\":\"<=\",\"bound\":2,\"tolerance\":0,\"reason\":\"\","
            "\"engines\":\"*\",\"binds\":true,\"ok\":true,\"value\":1}"
          : "{\"metric\":\"penetration_max\",\"op\":\"<=\",\"bound\":2,\"tolerance\":0,\"reason\":\"\","
            "\"engines\":\"*\",\"binds\":true,\"ok\":false,\"value\":3}",
      is_valid ? "true" : "false", is_valid ? "" : "w", f.sweep_ms);
  pabd_path_format(path, "%s/%s/records", root, folder);
  pabd_make_folders(path, NULL);
  pabd_path_format(path, "%s/%s/records/%s-%s-%s-t%d-r%d.json", root, folder, "c", f.params, f.preset, f.threads,
                   repeat);
  pabd_error error = {""};
  REQUIRE(pabd_file_write_whole(path, text, strlen(text), &error) == PABD_OK);
}

/* `count` repeats with times scattered by `scatter` (relative). */
static void write_repeats(const char *folder, int count, double scatter, facts f) {
  for (int k = 0; k < count; ++k) {
    facts one = f;
    one.step_ms *= 1 + scatter * noise();
    one.sweep_ms *= 1 + scatter * noise();
    one.rtf *= 1 + scatter * noise();
    write_record(folder, k, one);
  }
}

/* Runs `pabd-bench compare ROOT/old ROOT/new <arguments>`. Returns the exit code; standard output in `output`. */
static int compare_folders(const char *old_name, const char *new_name, const char *arguments) {
  char command[1024], path[PABD_PATH_SIZE], *text;
  const char *given = getenv("PABD_BENCH");
  snprintf(command, sizeof command, "%s compare %s/%s %s/%s %s >%s/out.txt 2>&1",
           given ? given : PABD_BUILD_DIR "/pabd-bench", root, old_name, root, new_name, arguments, root);
  int state = system(command);
  pabd_path_format(path, "%s/out.txt", root);
  output[0] = 0;
  if (pabd_file_read(path, &text, NULL, NULL) == PABD_OK) {
    snprintf(output, sizeof output, "%s", text);
    free(text);
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* Verdict of a metric in the first configuration that both folders have, by --json; static text. */
static const char *verdict_of(const char *old_name, const char *new_name, const char *metric, const char *arguments) {
  static char text[64], why[200];
  char all[200];
  snprintf(all, sizeof all, "--json - %s", arguments);
  compare_folders(old_name, new_name, all);
  snprintf(text, sizeof text, "(none)");
  cJSON *root_of = cJSON_Parse(output), *finding;
  cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(root_of, "configurations"), 0);
  cJSON_ArrayForEach(finding, cJSON_GetObjectItem(first, "metrics")) {
    if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(finding, "key")), metric) != 0) continue;
    snprintf(text, sizeof text, "%s", cJSON_GetStringValue(cJSON_GetObjectItem(finding, "verdict")));
    snprintf(why, sizeof why, "%s", cJSON_GetStringValue(cJSON_GetObjectItem(finding, "why")));
  }
  cJSON_Delete(root_of);
  return text;
}

TEST(the_interval_covers_the_truth) {
  /* 400 pairs of samples with a known ratio of medians: a 95 % interval should miss about 20; the percentile bootstrap
   * of small samples is a little narrow, so allow up to 50. */
  int missed = 0;
  for (int trial = 0; trial < 400; ++trial) {
    double a[11], b[13];
    for (int k = 0; k < 11; ++k) a[k] = 10 + noise();
    for (int k = 0; k < 13; ++k) b[k] = 1.2 * (10 + noise());
    pabd_ratio ratio = pabd_ratio_of(a, 11, b, 13);
    CHECK(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high);
    missed += !(ratio.low <= 1.2 && 1.2 <= ratio.high);
  }
  CHECK_MSG(missed <= 50 && missed >= 2, "%d of 400 intervals miss the truth", missed);
}

TEST(ratios_of_special_samples) {
  double a[] = {3, 1, 2}, b[] = {4, 4, 4}, zero[] = {0}, nothing[1], minus[] = {-1};
  pabd_ratio ratio = pabd_ratio_of(a, 3, b, 3);
  CHECK_NEAR(ratio.before, 2, 0);
  CHECK_NEAR(ratio.ratio, 2, 0);
  CHECK(!ratio.is_exact);
  ratio = pabd_ratio_of(b, 3, b, 3);
  CHECK(ratio.is_exact && ratio.ratio == 1 && ratio.low == 1 && ratio.high == 1);
  CHECK(isnan(pabd_ratio_of(zero, 1, b, 3).ratio));
  CHECK(isnan(pabd_ratio_of(minus, 1, b, 3).ratio));
  CHECK(isnan(pabd_ratio_of(nothing, 0, b, 3).ratio));
  double draws[] = {1.3, 1.1, 1.2};
  ratio = pabd_ratio_of_draws(2, 2.4, draws, 3, 9);
  CHECK_NEAR(ratio.ratio, 1.2, 1e-15);
  CHECK(ratio.low >= 1.1 && ratio.low < 1.2 && ratio.high <= 1.3 && ratio.high > 1.2 && ratio.after_count == 9);
}

TEST(the_rule_for_time) {
  pabd_rules rules = pabd_rules_default();
  static const struct {
    double ratio, low, high;
    int higher;
    pabd_change change;
  } table[] = {{1.15, 1.06, 1.2, 0, PABD_CHANGE_WORSE},      {1.15, 1.04, 1.2, 0, PABD_CHANGE_UNDECIDED},
               {1.08, 1.06, 1.09, 0, PABD_CHANGE_NONE},      {1.15, 1.06, 1.2, 1, PABD_CHANGE_BETTER},
               {0.85, 0.80, 0.9, 0, PABD_CHANGE_BETTER},     {0.85, 0.80, 0.9, 1, PABD_CHANGE_WORSE},
               {0.85, 0.80, 0.97, 0, PABD_CHANGE_UNDECIDED}, {1.0, 0.99, 1.01, 0, PABD_CHANGE_NONE},
               {1.0, 0.8, 1.3, 0, PABD_CHANGE_UNDECIDED}};
  for (size_t k = 0; k < sizeof table / sizeof *table; ++k) {
    pabd_ratio ratio = {1, table[k].ratio, table[k].ratio, table[k].low, table[k].high, 5, 5, 0};
    CHECK_STR(pabd_change_text(pabd_change_of_time(&rules, &ratio, table[k].higher)),
              pabd_change_text(table[k].change));
    ratio.after_count = 2;
    CHECK(pabd_change_of_time(&rules, &ratio, table[k].higher) == PABD_CHANGE_UNDECIDED);
  }
}

TEST(the_same_records_show_no_difference) {
  write_repeats("same", 4, 0.01, usual);
  CHECK_INT(compare_folders("same", "same", ""), 0);
  CHECK_CONTAINS(output, "0 worse, 0 better, 0 changed, 0 not comparable, 0 undecided, 9 no difference");
  CHECK_CONTAINS(output, "Nothing got better or worse");
  CHECK_INT(compare_folders("same", "same", "--all"), 0);
  CHECK_CONTAINS(output, "| c | e:p | stage.sweep [ms] |");
}

TEST(times_by_direction) {
  facts slow = usual;
  slow.sweep_ms *= 1.3, slow.rtf /= 1.3;
  write_repeats("fast", 5, 0.01, usual);
  write_repeats("slow", 5, 0.01, slow);
  CHECK_STR(verdict_of("fast", "slow", "stage.sweep", ""), "worse");
  CHECK_STR(verdict_of("fast", "slow", "rtf", ""), "worse");
  CHECK_STR(verdict_of("fast", "slow", "step_ms_p50", ""), "no difference");
  CHECK_STR(verdict_of("slow", "fast", "stage.sweep", ""), "better");
  CHECK_STR(verdict_of("slow", "fast", "rtf", ""), "better");
  CHECK_INT(compare_folders("fast", "slow", ""), 1);
  CHECK_CONTAINS(output, "**worse**");
  CHECK_INT(compare_folders("slow", "fast", ""), 0);
  CHECK_INT(compare_folders("fast", "slow", "--time 0.5"), 0);
}

TEST(times_that_decide_nothing) {
  facts other = usual, loaded = usual, failed = usual;
  other.cpu = "d", other.sweep_ms = 2;
  loaded.load = 3, loaded.sweep_ms = 2;
  failed.verdict = "fail", failed.sweep_ms = 2;
  facts slow = usual;
  slow.sweep_ms = 2;
  write_repeats("base", 5, 0.01, usual);
  write_repeats("other", 5, 0.01, other);
  write_repeats("loaded", 5, 0.01, loaded);
  write_repeats("failed", 5, 0.01, failed);
  write_repeats("few", 2, 0.01, slow);
  CHECK_STR(verdict_of("base", "other", "stage.sweep", ""), "not comparable");
  CHECK_INT(compare_folders("base", "other", ""), 0);
  CHECK_CONTAINS(output, "env.cpu differs: \"c\" was, \"d\" is; times are not compared");
  CHECK_STR(verdict_of("base", "other", "stage.sweep", "--any-machine"), "worse");
  CHECK_STR(verdict_of("base", "loaded", "stage.sweep", ""), "undecided");
  CHECK_STR(verdict_of("base", "few", "stage.sweep", ""), "undecided");
  CHECK_STR(verdict_of("base", "failed", "stage.sweep", ""), "not comparable");
  CHECK_STR(verdict_of("base", "failed", "verdict", ""), "worse");
  CHECK_STR(verdict_of("failed", "base", "verdict", ""), "better");
}

TEST(simulated_metrics_are_compared_across_machines) {
  facts worse = usual, tiny = usual, unit = usual, changed = usual;
  worse.cpu = "d", worse.error *= 1.5, worse.hash = "1123456789abcdef";
  tiny.error *= 1.001;
  unit.metric_unit = "mm";
  changed.case_hash = "1123456789abcdef", changed.error *= 2;
  write_record("before", 0, usual);
  write_record("worse", 0, worse);
  write_record("tiny", 0, tiny);
  write_record("unit", 0, unit);
  write_record("changed", 0, changed);
  CHECK_STR(verdict_of("before", "worse", "penetration_max", ""), "worse");
  CHECK_STR(verdict_of("worse", "before", "penetration_max", ""), "better");
  CHECK_STR(verdict_of("before", "worse", "height", ""), "changed");
  CHECK_STR(verdict_of("before", "worse", "state_hash", ""), "changed");
  CHECK_STR(verdict_of("before", "worse", "penetration_max", "--floor 0.01"), "no difference");
  CHECK_STR(verdict_of("before", "tiny", "penetration_max", ""), "no difference");
  CHECK_STR(verdict_of("before", "tiny", "penetration_max", "--accuracy 0.0001"), "worse");
  CHECK_STR(verdict_of("before", "unit", "penetration_max", ""), "not comparable");
  CHECK_STR(verdict_of("before", "changed", "penetration_max", ""), "not comparable");
  CHECK_STR(verdict_of("before", "changed", "penetration_max", "--any-case"), "worse");
  CHECK_INT(compare_folders("before", "worse", ""), 1);
  CHECK_INT(compare_folders("before", "changed", ""), 0);
}

TEST(scattered_metrics_need_repeats) {
  facts f = usual;
  for (int k = 0; k < 5; ++k) {
    f.hash = "2123456789abcdef";
    f.error = 0.002 * (1 + 0.1 * k);
    write_record("scatter-a", k, f);
    f.error = 0.0021 * (1 + 0.1 * k);
    write_record("scatter-b", k, f);
    f.error = 0.02 * (1 + 0.1 * k);
    write_record("scatter-c", k, f);
  }
  CHECK_STR(verdict_of("scatter-a", "scatter-b", "penetration_max", ""), "undecided");
  CHECK_STR(verdict_of("scatter-a", "scatter-c", "penetration_max", ""), "worse");
}

TEST(an_end_that_is_worse) {
  facts crashed = usual, diverged = usual;
  crashed.status = "crashed", crashed.verdict = "fail";
  diverged.status = "diverged", diverged.verdict = "fail";
  write_record("good", 0, usual);
  write_record("crashed", 0, crashed);
  write_record("diverged", 0, diverged);
  CHECK_STR(verdict_of("good", "crashed", "status", ""), "worse");
  CHECK_STR(verdict_of("crashed", "good", "status", ""), "better");
  CHECK_STR(verdict_of("diverged", "crashed", "status", ""), "worse");
  CHECK_STR(verdict_of("good", "crashed", "penetration_max", ""), "not comparable");
  CHECK_INT(compare_folders("good", "crashed", ""), 1);
}

TEST(configurations_are_matched_by_key) {
  facts f = usual;
  write_record("left", 0, f);
  f.params = "2";
  write_record("left", 0, f);
  write_record("right", 0, f);
  f.threads = 2;
  write_record("right", 0, f);
  f.threads = 1, f.preset = "q";
  write_record("right", 0, f);
  CHECK_INT(compare_folders("left", "right", ""), 0);
  CHECK_CONTAINS(output, "1 configurations in both");
  CHECK_CONTAINS(output, "Only in the old records (1)");
  CHECK_CONTAINS(output, "Only in the new records (2)");
  f.params = "3";
  write_record("elsewhere", 0, f);
  CHECK_INT(compare_folders("left", "elsewhere", ""), 2);
  CHECK_CONTAINS(output, "nothing in common");
  CHECK_INT(compare_folders("left", "elsewhere/records/c-3-q-t1-r0.json", ""), 2);
  CHECK_INT(compare_folders("right", "left/records/c-2-p-t1-r0.json", ""), 0);
}

TEST(bad_input_is_one_line) {
  char path[PABD_PATH_SIZE];
  write_record("fine", 0, usual);
  CHECK_INT(compare_folders("fine", "missing", ""), 2);
  CHECK_CONTAINS(output, "missing");
  CHECK_INT(compare_folders("fine", "fine extra", ""), 2);
  CHECK_INT(compare_folders("fine", "fine", "--time nonsense"), 2);
  CHECK_INT(compare_folders("fine", "fine", "--json /nowhere/x.json"), 2);
  pabd_path_format(path, "%s/empty/records", root);
  pabd_make_folders(path, NULL);
  CHECK_INT(compare_folders("fine", "empty", ""), 2);
  CHECK_CONTAINS(output, "no records in it");
  pabd_path_format(path, "%s/empty/records/broken.json", root);
  REQUIRE(pabd_file_write_whole(path, "{\"schema\": 1", 12, NULL) == PABD_OK);
  CHECK_INT(compare_folders("fine", "empty", ""), 2);
  CHECK_CONTAINS(output, "broken.json");
}
