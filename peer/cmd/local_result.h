/* peer/cmd/local_result.h -- what came of a local cluster: a table, or one JSON object.
 *
 *   {"peers": [{"name": "peer-0", "exit_code": 0, "accuracy": 0.988,
 *               "test_loss": 0.04, "accuracy_round": 412, "accuracy_samples": 10000, "loss": 0.02, "round": 400,
 *               "settle_rounds": 12, "bytes_sent": 1, "bytes_received": 1,
 *               "compute_s": 9.1, "wait_s": 1.2, "mix_s": 0.4,
 *               "resets": 0, "violations": 0, "exchanges": 800,
 *               "model": "model.safetensors"}, ...],   or null
 *    "verdict": {...},                             peer/diary/summary.h
 *    "n_peers": 8, "n_models": 8,
 *    "accuracy_min": 0.987, "accuracy_max": 0.989,
 *    "drift": 0.0123, "relative_drift": 0.0004,    exact, from the model files
 *    "statistics_drift": 0.0021,                   the same of running means and
 *    "statistics_relative_drift": 0.0001,          variances: null without them
 *    "estimated_relative_drift": 0.0004,           the peers' own, their mean,
 *    "estimated_round": 408,                       of the newest round that one is of
 *    "rounds": 400, "settle_rounds": 12,
 *    "seconds": 41.2,                              since this start,
 *    "bytes_sent": 1, "bytes_received": 1,         and so are these, sums at the sockets
 *    "starts": 2, "seconds_in_all": 60.1,          with the former starts of the run
 *    "bytes_sent_in_all": 2, "bytes_received_in_all": 2,
 *    "out": "DIR", "run": {"batch": "32", ...},
 *    "interrupted": false, "finished": true, "exit_code": 0}
 *
 * Figures of peers that ended without a summary are left out; what is not
 * known is null.
 */
#ifndef PEER_CMD_LOCAL_RESULT_H
#define PEER_CMD_LOCAL_RESULT_H

#include "gossip/wire/wire.h"
#include "nn/models/model.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/local_past.h"
#include "peer/cmd/progress.h"
#include "peer/node/consensus.h"
#include "peer/node/outcome.h"

#include <jansson.h>

struct cmd_local_result
{
    uint32_t n;
    const char *out;
    bool unwanted;  /* --out was not given: nobody has asked for the files. */
    bool discarded; /* They have been of no more use since a good end: the caller removes them. */
    char (*name)[WIRE_NAME_MAX + 1];
    struct cmd_progress_row *row;
    int *exit_code;
    bool *given_up;   /* We ended it: it was stopped, and stayed so. */
    bool failed;      /* A peer could not begin, or ended otherwise than by the run or by a kill. */
    json_t **summary; /* NULL: none came. */
    struct run run;
    struct model model;
    double seconds;
    struct cmd_local_past past; /* Before this start. */
    struct consensus consensus; /* It is of the peers for which the run ended; n == 0: no model. */
    struct outcome_facts facts;
    struct outcome outcome;
};

/* `out` is borrowed and may be filled in later. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int cmd_local_result_open(struct cmd_local_result *r,
                                                              uint32_t n, const char *out);
void cmd_local_result_close(struct cmd_local_result *r);

/* Back to the beginning: no line has come. */
void cmd_local_result_forget(struct cmd_local_result *r);

/* One JSON line of peer i; whatever it says is only shown. Returns a warning to
 * show, valid until the next call, or NULL. */
const char *cmd_local_result_line(struct cmd_local_result *r, uint32_t i, const char *text);

/* Read the models, compare, judge, print, and keep that as summary.json. Returns the exit code: that of the verdict, unless
 * something failed here. */
int cmd_local_result_print(struct cmd_local_result *r, const struct options *o, bool json);

/* The run was interrupted: say from where the same command goes on (`given`: --out was), and print the
 * same table of what is known by now, or with --json the same object, with "interrupted": true, null for what only an end would tell, and
 * "resumes_at": that round, or null. No file. Returns CMD_INTERRUPTED. */
int cmd_local_result_interrupted(struct cmd_local_result *r, const struct options *o, bool given);

#endif
