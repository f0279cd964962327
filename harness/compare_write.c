/* A comparison as Markdown and as JSON. See compare.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "record.h"

static void add_number(pabd_text *out, double value, int digits) {
  if (isnan(value))
    pabd_text_add(out, "-");
  else
    pabd_text_add(out, "%.*g", digits, value);
}

/* "|" would end the cell. */
static void add_cell(pabd_text *out, const char *text) {
  for (; *text; ++text) pabd_text_add(out, *text == '|' ? "\\|" : "%c", *text);
}

static void add_row(pabd_text *out, const pabd_pairing *pairing, const pabd_finding *f) {
  pabd_text_add(out, "| ");
  add_cell(out, pairing->after->label);
  pabd_text_add(out, " | ");
  add_cell(out, pairing->after->engine);
  if (pairing->after->threads > 1) pabd_text_add(out, ", %d threads", pairing->after->threads);
  int has_unit = f->unit[0] && strcmp(f->unit, "1") != 0;
  pabd_text_add(out, has_unit ? " | %s [%s] | " : " | %s | ", f->key, f->unit);
  if (f->before[0] || f->after[0]) {
    pabd_text_add(out, "%s | %s | - | - | ", f->before, f->after);
  } else {
    add_number(out, f->ratio.before, 5);
    pabd_text_add(out, " (%d) | ", f->ratio.before_count);
    add_number(out, f->ratio.after, 5);
    pabd_text_add(out, " (%d) | ", f->ratio.after_count);
    add_number(out, f->ratio.ratio, 4);
    pabd_text_add(out, " | ");
    add_number(out, f->ratio.low, 4);
    if (!isnan(f->ratio.low)) {
      pabd_text_add(out, " .. ");
      add_number(out, f->ratio.high, 4);
    }
    pabd_text_add(out, " | ");
  }
  pabd_text_add(out, f->change == PABD_CHANGE_WORSE ? "**%s**" : "%s", pabd_change_text(f->change));
  if (f->why[0]) {
    pabd_text_add(out, ": ");
    add_cell(out, f->why);
  }
  pabd_text_add(out, " |\n");
}

/* Rows in the order in which a reader needs them. Undecided ones are many and say little: only with `all`. */
static const pabd_change order[] = {PABD_CHANGE_WORSE,        PABD_CHANGE_BETTER,    PABD_CHANGE_OTHER,
                                    PABD_CHANGE_INCOMPARABLE, PABD_CHANGE_UNDECIDED, PABD_CHANGE_NONE};

static int is_shown(const pabd_finding *f, int all) {
  if (all) return 1;
  if (f->change == PABD_CHANGE_OTHER) return strcmp(f->key, "state_hash") == 0 || strncmp(f->key, "counter.", 8) == 0;
  return f->change == PABD_CHANGE_WORSE || f->change == PABD_CHANGE_BETTER;
}

static void add_only(pabd_text *out, const char *which, const pabd_record_group *const *groups, int32_t count) {
  if (!count) return;
  pabd_text_add(out, "\nOnly in the %s records (%d): ", which, count);
  for (int32_t k = 0; k < count && k < 12; ++k)
    pabd_text_add(out, "%s%s on %s", k ? "; " : "", groups[k]->label, groups[k]->engine);
  pabd_text_add(out, count > 12 ? "; ...\n" : "\n");
}

void pabd_comparison_markdown(const pabd_comparison *c, int all, pabd_text *out) {
  int32_t shown = 0;
  pabd_text_add(out, "# Comparison\n\nOld: `%s` (%d records). New: `%s` (%d records). %d configurations in both.\n\n",
                c->before.source, c->before.record_count, c->after.source, c->after.record_count, c->pairing_count);
  const char *separator = "";
  for (size_t k = 0; k < sizeof order / sizeof *order; ++k) {
    pabd_text_add(out, "%s%d %s", separator, c->counts[order[k]], pabd_change_text(order[k]));
    separator = ", ";
  }
  pabd_text_add(out, ".\n");
  for (const char *at = c->warnings.data; at && *at;) {
    const char *end = strchr(at, '\n');
    pabd_text_add(out, "\nWarning: %.*s\n", (int)(end - at), at);
    at = end + 1;
  }
  add_only(out, "old", c->only_before, c->only_before_count);
  add_only(out, "new", c->only_after, c->only_after_count);
  for (size_t k = 0; k < sizeof order / sizeof *order; ++k) {
    for (int32_t j = 0; j < c->pairing_count; ++j) {
      const pabd_pairing *pairing = &c->pairings[j];
      for (int32_t i = 0; i < pairing->finding_count; ++i) {
        const pabd_finding *f = &pairing->findings[i];
        if (f->change != order[k] || !is_shown(f, all)) continue;
        if (shown++ == 0)
          pabd_text_add(
              out,
              "\n| case | engine | metric | old (launches) | new (launches) | new/old | 95 %% interval | verdict |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
        add_row(out, pairing, f);
      }
    }
  }
  if (shown == 0) pabd_text_add(out, "\nNothing got better or worse.\n");
  pabd_text_add(
      out,
      "\nRules: a time changed when the median ratio is beyond %.3g and its interval beyond %.3g (at least %d "
      "launches a side); a simulated metric when it differs by more than %.3g %% and more than %.3g in its "
      "unit.\n",
      c->rules.time_ratio, c->rules.time_interval, c->rules.least_count, 100 * c->rules.accuracy, c->rules.floor);
}

/* NAN and infinity become null. */
static void put_number(cJSON *object, const char *key, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(object, key, value);
  else
    cJSON_AddNullToObject(object, key);
}

static cJSON *finding_json(const pabd_finding *f) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "key", f->key);
  cJSON_AddStringToObject(object, "unit", f->unit);
  cJSON_AddStringToObject(object, "better", f->better);
  if (f->before[0] || f->after[0]) {
    cJSON_AddStringToObject(object, "old", f->before);
    cJSON_AddStringToObject(object, "new", f->after);
  } else {
    put_number(object, "old", f->ratio.before);
    put_number(object, "new", f->ratio.after);
  }
  cJSON_AddNumberToObject(object, "old_count", f->ratio.before_count);
  cJSON_AddNumberToObject(object, "new_count", f->ratio.after_count);
  put_number(object, "ratio", f->ratio.ratio);
  put_number(object, "low", f->ratio.low);
  put_number(object, "high", f->ratio.high);
  cJSON_AddStringToObject(object, "verdict", pabd_change_text(f->change));
  cJSON_AddStringToObject(object, "why", f->why);
  return object;
}

static void put_only(cJSON *root, const char *key, const pabd_record_group *const *groups, int32_t count) {
  cJSON *list = cJSON_AddArrayToObject(root, key);
  for (int32_t k = 0; k < count; ++k) cJSON_AddItemToArray(list, cJSON_CreateString(groups[k]->key));
}

cJSON *pabd_comparison_json(const pabd_comparison *c) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddNumberToObject(root, "schema", 1);
  cJSON_AddStringToObject(root, "old", c->before.source);
  cJSON_AddStringToObject(root, "new", c->after.source);
  cJSON *rules = cJSON_AddObjectToObject(root, "rules");
  cJSON_AddNumberToObject(rules, "time_ratio", c->rules.time_ratio);
  cJSON_AddNumberToObject(rules, "time_interval", c->rules.time_interval);
  cJSON_AddNumberToObject(rules, "accuracy", c->rules.accuracy);
  cJSON_AddNumberToObject(rules, "floor", c->rules.floor);
  cJSON_AddNumberToObject(rules, "least_count", c->rules.least_count);
  cJSON *counts = cJSON_AddObjectToObject(root, "counts");
  for (int k = 0; k < PABD_CHANGE_COUNT; ++k)
    cJSON_AddNumberToObject(counts, pabd_change_text((pabd_change)k), c->counts[k]);
  cJSON *warnings = cJSON_AddArrayToObject(root, "warnings");
  for (const char *at = c->warnings.data; at && *at;) {
    char line[1024];
    const char *end = strchr(at, '\n');
    snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
    cJSON_AddItemToArray(warnings, cJSON_CreateString(line));
    at = end + 1;
  }
  put_only(root, "only_old", c->only_before, c->only_before_count);
  put_only(root, "only_new", c->only_after, c->only_after_count);
  cJSON *list = cJSON_AddArrayToObject(root, "configurations");
  for (int32_t k = 0; k < c->pairing_count; ++k) {
    const pabd_pairing *pairing = &c->pairings[k];
    cJSON *entry = cJSON_CreateObject(), *metrics;
    cJSON_AddStringToObject(entry, "key", pairing->after->key);
    cJSON_AddStringToObject(entry, "case", pairing->after->label);
    cJSON_AddStringToObject(entry, "engine", pairing->after->engine);
    cJSON_AddNumberToObject(entry, "threads", pairing->after->threads);
    cJSON_AddNumberToObject(entry, "old_records", pairing->before->record_count);
    cJSON_AddNumberToObject(entry, "new_records", pairing->after->record_count);
    metrics = cJSON_AddArrayToObject(entry, "metrics");
    for (int32_t j = 0; j < pairing->finding_count; ++j)
      cJSON_AddItemToArray(metrics, finding_json(&pairing->findings[j]));
    cJSON_AddItemToArray(list, entry);
  }
  return root;
}
