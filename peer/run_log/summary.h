/* peer/run_log/summary.h -- result of a peer's run: verdict and content of summary.json.
 *
 * summary.json has the keys of the last metrics line, the final accuracy, and
 *
 *   "summary": true, "name", "test_loss", "resets", "violations", "distrusted", "exchanges",
 *   "accuracy_round", "accuracy_samples", "checkpoints", "checkpoint_s", "strangers", "verdict",
 *   "diverged", "unlearnt", "interrupted", "resumes_at",
 *   "model": name of the model file or null,
 *   "run": the run description; and, added by the caller, "finished" and "exit_code"
 *
 *   "verdict": {"kind": "consensus", "text": "consensus of 6 of 8 peers ...", "exit_code": 0,
 *               "n_among": 6, "n_members": 8, "dead": ["peer-3"], "absent": ["peer-5"],
 *               "relative_drift": 4.1e-07, "exact": true, "at_most": false,
 *               "rounds_skipped": 12, "finite": true}
 *
 * Values of "kind": see peer/node/result/verdict.h.
 */
#ifndef PEER_RUN_LOG_SUMMARY_H
#define PEER_RUN_LOG_SUMMARY_H

#include "peer/node/result/verdict.h"
#include "peer/run_log/run_log.h"
#include "peer/uv/driver.h"

/* Returns the "verdict" object of summary.json. The caller releases it with json_decref(). NULL:
 * memory is short. */
json_t *diary_verdict(const struct verdict *o, const struct verdict_facts *f);

/* Determines the verdict `o` of a node that ended with `exit_code`. Files that could not be written
 * turn the verdict into a failure. `f` gets the facts on which the verdict is based; its pointers
 * are valid as long as `d` and `n`. Tries a last time to write metrics lines and run.txt. Returns
 * true if the run is finished for this directory: the model is written, and a new start must not
 * overwrite it, even if other peers failed or metrics lines were lost. */
bool diary_decide_verdict(struct run_log *d, const struct node *n, int exit_code,
                          struct verdict_facts *f, struct verdict *o);

/* Returns the content of summary.json. The caller releases it with json_decref(). NULL: memory is
 * short. */
json_t *diary_summary(const struct run_log *d, struct uv_driver *driver,
                      const struct verdict_facts *f, const struct verdict *o);

#endif
