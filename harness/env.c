/* Where and how a run was made: commit, processor, compiler, governor, GPU, system, load.
 *
 * What cannot be found out is written as "unknown", never guessed. "dirty" tells of changes in tracked files only. */
#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "build_info.h"

#define TEXT_SIZE 256

typedef struct fixed_facts {
  int is_known;
  int is_dirty; /* -1: unknown */
  long cores;
  char commit[TEXT_SIZE], cpu[TEXT_SIZE], governor[TEXT_SIZE], gpu[TEXT_SIZE], driver[TEXT_SIZE], os[TEXT_SIZE];
} fixed_facts;

static fixed_facts facts;

/* First line of a file or a command's output, without the line's end. */
static int first_line(FILE *stream, char *out) {
  if (!fgets(out, TEXT_SIZE, stream)) return 0;
  out[strcspn(out, "\r\n")] = 0;
  return out[0] != 0;
}

static void line_of_file(const char *path, char *out) {
  FILE *stream = fopen(path, "re");
  if (!stream || !first_line(stream, out)) snprintf(out, TEXT_SIZE, "unknown");
  if (stream) fclose(stream);
}

/* Value of the first line that starts with `key`, after the separator and spaces. */
static void value_of_file(const char *path, const char *key, char separator, char *out) {
  char line[TEXT_SIZE];
  FILE *stream = fopen(path, "re");
  snprintf(out, TEXT_SIZE, "unknown");
  while (stream && fgets(line, sizeof line, stream)) {
    if (strncmp(line, key, strlen(key)) != 0) continue;
    const char *value = strchr(line, separator);
    if (!value) continue;
    value += 1 + strspn(value + 1, " \t\"");
    snprintf(out, TEXT_SIZE, "%.*s", (int)strcspn(value, "\"\r\n"), value);
    break;
  }
  if (stream) fclose(stream);
}

static int run_git(const char *root, const char *arguments, char *out) {
  char command[TEXT_SIZE + 1200];
  if (strchr(root, '\'')) return -1;
  snprintf(command, sizeof command, "git -C '%s' %s 2>/dev/null", root, arguments);
  FILE *stream = popen(command, "re");
  if (!stream) return -1;
  out[0] = 0;
  first_line(stream, out);
  char rest[TEXT_SIZE];
  while (fgets(rest, sizeof rest, stream)) continue;
  return pclose(stream) == 0 ? 0 : -1;
}

static void gather(const char *root) {
  char line[TEXT_SIZE];
  facts.is_known = 1;
  if (run_git(root, "rev-parse HEAD", facts.commit) != 0) snprintf(facts.commit, TEXT_SIZE, "unknown");
  facts.is_dirty = run_git(root, "status --porcelain --untracked-files=no", line) != 0 ? -1 : line[0] != 0;
  value_of_file("/proc/cpuinfo", "model name", ':', facts.cpu);
  facts.cores = sysconf(_SC_NPROCESSORS_ONLN);
  line_of_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", facts.governor);
  value_of_file("/etc/os-release", "PRETTY_NAME", '=', facts.os);
  struct utsname system_name;
  if (uname(&system_name) == 0) {
    size_t used = strlen(facts.os);
    snprintf(facts.os + used, sizeof facts.os - used, ", %.60s %.60s %.30s", system_name.sysname, system_name.release,
             system_name.machine);
  }
  /* The kernel module tells of the GPU without any library; "none" is a fact too. */
  snprintf(facts.gpu, TEXT_SIZE, "none");
  snprintf(facts.driver, TEXT_SIZE, "none");
  FILE *stream = popen("cat /proc/driver/nvidia/gpus/*/information 2>/dev/null", "re");
  while (stream && fgets(line, sizeof line, stream)) {
    if (strncmp(line, "Model:", 6) != 0) continue;
    const char *value = line + 6 + strspn(line + 6, " \t");
    snprintf(facts.gpu, TEXT_SIZE, "%.*s", (int)strcspn(value, "\r\n"), value);
    line_of_file("/proc/driver/nvidia/version", facts.driver);
  }
  if (stream) pclose(stream);
}

cJSON *pabd_env_json(const char *root, const char *command) {
  if (!facts.is_known) gather(root);
  cJSON *env = cJSON_CreateObject();
  if (!env) return NULL;
  double load[3] = {0, 0, 0};
  char date[64] = "unknown";
  time_t now = time(NULL);
  struct tm parts;
  if (gmtime_r(&now, &parts)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
  cJSON_AddStringToObject(env, "commit", facts.commit);
  if (facts.is_dirty < 0)
    cJSON_AddNullToObject(env, "dirty");
  else
    cJSON_AddBoolToObject(env, "dirty", facts.is_dirty);
  cJSON_AddStringToObject(env, "cpu", facts.cpu);
  cJSON_AddNumberToObject(env, "cores", (double)facts.cores);
  cJSON_AddStringToObject(env, "compiler", PABD_BUILD_COMPILER);
  cJSON_AddStringToObject(env, "flags", PABD_BUILD_FLAGS);
  cJSON_AddStringToObject(env, "governor", facts.governor);
  cJSON_AddStringToObject(env, "gpu", facts.gpu);
  cJSON_AddStringToObject(env, "driver", facts.driver);
  cJSON_AddStringToObject(env, "os", facts.os);
  if (getloadavg(load, 3) < 1)
    cJSON_AddNullToObject(env, "loadavg");
  else
    cJSON_AddNumberToObject(env, "loadavg", load[0]);
  cJSON_AddStringToObject(env, "date", date);
  cJSON_AddStringToObject(env, "command", command);
  return env;
}
