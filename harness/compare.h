/* Comparison of two sets of records: one finding a metric of a configuration that both have. The command is in
 * compare.c, the text and JSON of a comparison in compare_write.c. */
#ifndef PABD_COMPARE_H
#define PABD_COMPARE_H

#include "compare_stats.h"
#include "record_set.h"
#include "report_text.h"

typedef struct pabd_finding {
  char key[128]; /* metric, or stage.<name>, counter.<name>, status, verdict, state_hash */
  char unit[16];
  char better[8];
  pabd_ratio ratio;
  char before[24], after[24]; /* texts of values that are no numbers (status, hash); empty for numbers */
  pabd_change change;
  char why[160]; /* of the change, where the numbers do not tell; may be empty */
} pabd_finding;

typedef struct pabd_pairing {
  const pabd_record_group *before, *after;
  int32_t finding_count, finding_capacity;
  pabd_finding *findings;
} pabd_pairing;

typedef struct pabd_comparison {
  pabd_record_set before, after;
  pabd_rules rules;
  int any_case, any_machine; /* compare across changed case files, and times across machines */
  int32_t pairing_count;
  pabd_pairing *pairings;
  int32_t only_before_count, only_after_count;
  const pabd_record_group **only_before, **only_after;
  pabd_text warnings; /* one line each */
  int32_t counts[PABD_CHANGE_COUNT];
} pabd_comparison;

/* Fills everything from .before, .after, .rules and the switches. PABD_ERR_INPUT when no configuration matches. */
pabd_status pabd_compare(pabd_comparison *comparison, pabd_error *error);
void pabd_comparison_free(pabd_comparison *comparison);

/* Markdown: counts, warnings, and a table of what differs (`all`: of everything). */
void pabd_comparison_markdown(const pabd_comparison *comparison, int all, pabd_text *out);
/* NULL when memory is out. */
cJSON *pabd_comparison_json(const pabd_comparison *comparison);

#endif
