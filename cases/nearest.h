/* "Did you mean": the known word nearest to a misspelt one. */
#ifndef PABD_CASES_NEAREST_H
#define PABD_CASES_NEAREST_H

/* The better match for `word` of `candidate` and `best` (which may be NULL), or `best` where the candidate is too far
 * off: at most a third of its letters wrong, and at least one letter right. Call it once a candidate. */
const char *nearest(const char *word, const char *candidate, const char *best);

#endif
