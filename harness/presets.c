/* Presets: named groups of engine settings, in JSON files that anybody can edit. */
#include "presets.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pabd_status parse_file(const char *path, cJSON **root, pabd_error *error) {
  char *text;
  size_t size;
  PABD_TRY(pabd_file_read(path, &text, &size, error));
  const char *end = text;
  *root = cJSON_ParseWithLengthOpts(text, size + 1, &end, 1);
  pabd_status status = PABD_OK;
  if (!cJSON_IsObject(*root)) {
    int line = 1;
    for (const char *at = text; at < end && at < text + size; ++at) line += *at == '\n';
    cJSON_Delete(*root);
    *root = NULL;
    status = pabd_fail(error, PABD_ERR_INPUT, "%s:%d: not a JSON object", path, line);
  }
  free(text);
  return status;
}

/* A setting's value as text: whole numbers without a point, others with all their digits. */
static int value_text(const cJSON *value, char out[PABD_VALUE_SIZE]) {
  if (cJSON_IsString(value)) return snprintf(out, PABD_VALUE_SIZE, "%s", value->valuestring) < PABD_VALUE_SIZE;
  if (cJSON_IsBool(value)) return snprintf(out, PABD_VALUE_SIZE, "%d", cJSON_IsTrue(value)) > 0;
  if (!cJSON_IsNumber(value)) return 0;
  for (int digits = 6; digits <= 17; ++digits) {
    snprintf(out, PABD_VALUE_SIZE, "%.*g", digits, value->valuedouble);
    if (strtod(out, NULL) == value->valuedouble) break;
  }
  return 1;
}

static pabd_status read_preset(const char *path, const char *name, const cJSON *from, pabd_preset *preset,
                               pabd_error *error) {
  memset(preset, 0, sizeof *preset);
  if (!cJSON_IsObject(from)) return pabd_fail(error, PABD_ERR_INPUT, "%s: preset '%s' must be an object", path, name);
  if (!name[0] || strlen(name) >= sizeof preset->name || strpbrk(name, ":=,/ "))
    return pabd_fail(error, PABD_ERR_INPUT, "%s: '%s' is no preset name (1 to 63 characters, none of : = , / space)",
                     path, name);
  snprintf(preset->name, sizeof preset->name, "%s", name);
  for (const cJSON *item = from->child; item; item = item->next) {
    const char *key = item->string;
    if (strcmp(key, "name") == 0 || strcmp(key, "preset") == 0 || strcmp(key, "engine") == 0) continue;
    if (strcmp(key, "source") == 0 && cJSON_IsString(item)) {
      snprintf(preset->source, sizeof preset->source, "%s", item->valuestring);
    } else if (strcmp(key, "default") == 0 && cJSON_IsBool(item)) {
      preset->is_default = cJSON_IsTrue(item);
    } else if (strcmp(key, "settings") == 0 && cJSON_IsObject(item)) {
      for (const cJSON *value = item->child; value; value = value->next) {
        if (preset->setting_count == PABD_SETTING_CAPACITY)
          return pabd_fail(error, PABD_ERR_INPUT, "%s: preset '%s' has more than %d settings", path, name,
                           PABD_SETTING_CAPACITY);
        pabd_key_value *setting = &preset->settings[preset->setting_count++];
        if (strlen(value->string) >= sizeof setting->key || !value_text(value, setting->value))
          return pabd_fail(error, PABD_ERR_INPUT,
                           "%s: preset '%s', setting '%.60s' must be a number, true, false or a short text", path, name,
                           value->string);
        snprintf(setting->key, sizeof setting->key, "%s", value->string);
      }
    } else {
      return pabd_fail(error, PABD_ERR_INPUT,
                       "%s: preset '%s': unexpected '%s' (allowed: engine, preset, source, default, settings)", path,
                       name, key);
    }
  }
  return PABD_OK;
}

static pabd_status add_preset(pabd_presets *out, const char *path, const char *name, const cJSON *from,
                              pabd_error *error) {
  pabd_preset *moved = realloc(out->presets, ((size_t)out->count + 1) * sizeof *moved);
  if (!moved) return pabd_fail(error, PABD_ERR_MEMORY, "%s: out of memory", path);
  out->presets = moved;
  PABD_TRY(read_preset(path, name, from, &moved[out->count], error));
  ++out->count;
  return PABD_OK;
}

/* Layout 1: all presets of one engine in one file. */
static pabd_status read_engine_file(const char *path, pabd_presets *out, pabd_error *error) {
  cJSON *root;
  PABD_TRY(parse_file(path, &root, error));
  pabd_status status = PABD_OK;
  const cJSON *presets = cJSON_GetObjectItemCaseSensitive(root, "presets");
  if (!cJSON_IsObject(presets))
    status = pabd_fail(error, PABD_ERR_INPUT, "%s: needs an object 'presets'", path);
  else
    for (const cJSON *item = presets->child; item && status == PABD_OK; item = item->next)
      status = add_preset(out, path, item->string, item, error);
  cJSON_Delete(root);
  return status;
}

/* Layout 2: a folder with one file a preset. */
static pabd_status read_preset_folder(const char *folder, pabd_presets *out, pabd_error *error) {
  char **names;
  int32_t count;
  PABD_TRY(pabd_list_folder(folder, ".json", &names, &count, error));
  pabd_status status = PABD_OK;
  for (int32_t k = 0; k < count && status == PABD_OK; ++k) {
    char path[PABD_PATH_SIZE];
    cJSON *root;
    pabd_path_format(path, "%s/%s.json", folder, names[k]);
    status = parse_file(path, &root, error);
    if (status != PABD_OK) break;
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(root, "preset");
    if (name && (!cJSON_IsString(name) || strcmp(name->valuestring, names[k]) != 0))
      status = pabd_fail(error, PABD_ERR_INPUT, "%s: 'preset' must be the file's name, \"%s\"", path, names[k]);
    else
      status = add_preset(out, path, names[k], root, error);
    cJSON_Delete(root);
  }
  pabd_free_names(names, count);
  return status;
}

static int is_ours(const char *name) {
  return strcmp(name, "pabd") == 0 || strncmp(name, "pabd-", 5) == 0;
}

pabd_status pabd_presets_load(const pabd_places *places, const pabd_engine_desc *engine, pabd_presets *out,
                              pabd_error *error) {
  memset(out, 0, sizeof *out);
  char beside[PABD_PATH_SIZE], of_engine[PABD_PATH_SIZE], ours[PABD_PATH_SIZE];
  size_t length = strlen(engine->file);
  if (length > 3 && strcmp(engine->file + length - 3, ".so") == 0) length -= 3;
  pabd_path_format(beside, "%.*s.presets.json", (int)length, engine->file);
  pabd_path_format(of_engine, "%s/baselines/presets/%s.json", places->root, engine->name);
  pabd_path_format(ours, "%s/solver/presets", places->root);
  pabd_status status = PABD_OK;
  const char *from = "";
  if (pabd_is_file(beside))
    from = beside, status = read_engine_file(beside, out, error);
  else if (pabd_is_file(of_engine))
    from = of_engine, status = read_engine_file(of_engine, out, error);
  else if (is_ours(engine->name) && pabd_is_folder(ours))
    from = ours, status = read_preset_folder(ours, out, error);
  snprintf(out->file, sizeof out->file, "%.*s", PABD_PATH_SIZE - 1, from);
  for (int32_t k = 0; k < out->count && status == PABD_OK && engine->is_available; ++k) {
    pabd_preset *preset = &out->presets[k];
    for (int32_t j = 0; j < preset->setting_count && !preset->fault[0]; ++j) {
      pabd_error cause = {""};
      const pabd_key_value *setting = &preset->settings[j];
      if (pabd_engine_check_setting(engine, setting->key, setting->value, &cause) != PABD_OK)
        snprintf(preset->fault, sizeof preset->fault, "preset '%s': %.300s", preset->name, cause.text);
    }
  }
  if (status != PABD_OK) pabd_presets_free(out);
  return status;
}

void pabd_presets_free(pabd_presets *presets) {
  if (!presets) return;
  free(presets->presets);
  memset(presets, 0, sizeof *presets);
}

const pabd_preset *pabd_presets_default(const pabd_presets *presets) {
  for (int32_t k = 0; k < presets->count; ++k) {
    if (strcmp(presets->presets[k].name, "default") == 0) return &presets->presets[k];
  }
  for (int32_t k = 0; k < presets->count; ++k) {
    if (presets->presets[k].is_default) return &presets->presets[k];
  }
  return NULL;
}
