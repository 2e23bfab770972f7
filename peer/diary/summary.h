/* peer/diary/summary.h -- how a peer's run ended: its verdict, and summary.json.
 *
 * The last metrics line with the final accuracy and
 *
 *   "summary": true, "name", "test_loss", "resets", "violations", "distrusted", "exchanges",
 *   "accuracy_round", "accuracy_samples", "checkpoints", "checkpoint_s", "strangers", "verdict",
 *   "diverged", "unlearnt", "interrupted", "resumes_at", "model": its file's name or null,
 *   "handed_to": who has it where this disk did not take it, or null, "run": its canonical text;
 *   and, by whoever writes it, "finished" and "exit_code"
 *
 *   "verdict": {"kind": "consensus", "text": "consensus of 6 of 8 peers ...", "exit_code": 0,
 *               "n_among": 6, "n_members": 8, "dead": ["peer-3", "peer-5"],
 *               "relative_drift": 4.1e-07, "exact": true, "at_most": false,
 *               "rounds_skipped": 12, "finite": true}
 *
 * The kinds are those of peer/node/outcome.h.
 */
#ifndef PEER_DIARY_SUMMARY_H
#define PEER_DIARY_SUMMARY_H

#include "peer/diary/diary.h"
#include "peer/node/outcome.h"
#include "peer/uv/driver.h"

json_t *diary_verdict(const struct outcome *o, const struct outcome_facts *f);

/* The word of a node that has ended with this code, unless files are missing, which fail it. `f` and
 * `o` are filled in; what they point to is the diary's. True: started again the run has nothing more to
 * do for this directory, whatever became of the others, or of a line of metrics: its model is there, and
 * would be replaced by another one. */
bool diary_judge(struct diary *d, const struct node *n, int exit_code, struct outcome_facts *f,
                 struct outcome *o);

/* NULL without memory. */
json_t *diary_summary(const struct diary *d, struct uv_driver *driver,
                      const struct outcome_facts *f, const struct outcome *o);

#endif
