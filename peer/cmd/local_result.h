/* peer/cmd/local_result.h -- result of a local cluster, as a table or one JSON object.
 *
 *   {"peers": [{"name": "peer-0", "exit_code": 0, "accuracy": 0.988,
 *               "test_loss": 0.04, "accuracy_round": 412, "accuracy_samples": 10000,
 *               "loss": 0.02, "round": 400,
 *               "settle_rounds": 12, "bytes_sent": 1, "bytes_received": 1,
 *               "compute_s": 9.1, "wait_s": 1.2, "mix_s": 0.4,
 *               "resets": 0, "violations": 0, "exchanges": 800,
 *               "model": "model.safetensors"}, ...],   or null
 *    "verdict": {...},                             see peer/run_log/summary.h
 *    "n_peers": 8, "n_models": 8,
 *    "accuracy_min": 0.987, "accuracy_max": 0.989,
 *    "drift": 0.0123, "relative_drift": 0.0004,    exact, from the model files
 *    "statistics_drift": 0.0021,                   drift of running means and variances,
 *    "statistics_relative_drift": 0.0001,          null without any
 *    "estimated_relative_drift": 0.0004,           mean of the peers' own estimates
 *    "estimated_round": 408,                       for the newest round that has any
 *    "rounds": 400, "settle_rounds": 12,           settle_rounds: consensus phase
 *    "seconds": 41.2,                              since this start
 *    "bytes_sent": 1, "bytes_received": 1,         since this start, all peers, at the sockets
 *    "starts": 2, "seconds_in_all": 60.1,          including earlier starts of the run
 *    "bytes_sent_in_all": 2, "bytes_received_in_all": 2,
 *    "out": "DIR", "run": {"batch": "32", ...},
 *    "interrupted": false, "finished": true, "exit_code": 0}
 *
 * Peers that ended without a summary are left out of minima, maxima and means. Values that are
 * not known are null.
 */
#ifndef PEER_CMD_LOCAL_RESULT_H
#define PEER_CMD_LOCAL_RESULT_H

#include "gossip/wire/wire.h"
#include "nn/models/model.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/earlier_starts.h"
#include "peer/cmd/progress.h"
#include "peer/node/node.h"
#include "peer/node/result/consensus.h"
#include "peer/node/result/verdict.h"

#include <jansson.h>

struct cmd_local_result
{
    uint32_t n;
    const char *out;
    bool is_temporary; /* True if the user did not give --out. The directory is then temporary. */
    /* True if the caller must delete the directory: it is temporary and the run has ended in
     * consensus. */
    bool delete_files;
    char (*name)[WIRE_NAME_MAX + 1];
    struct cmd_progress_row *row;
    int *exit_code;
    /* For each peer: true if this process has ended it, because it was stopped (SIGSTOP) for longer
     * than --quorum-timeout. */
    bool *given_up;
    /* True if at least one peer could not start or has failed. A peer that a user or the system
     * killed during training has not failed. */
    bool failed;
    /* For each peer: the summary line that it has printed. NULL: no summary received. */
    json_t **summary;
    struct run run;
    struct model model;
    double seconds;
    struct cmd_earlier_starts past; /* Bytes sent and seconds used by earlier starts of the run. */
    /* Exact consensus distance of the models of all peers that ended the run. n == 0: no such peer
     * has a model. */
    struct consensus consensus;
    struct verdict_facts facts;
    struct verdict outcome;
};

/* Prepares the result of n peers. `out`: buffer for the path of the output directory, borrowed; the
 * caller may fill it in later. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int cmd_local_result_open(struct cmd_local_result *r,
                                                              uint32_t n, const char *out);
void cmd_local_result_close(struct cmd_local_result *r);

/* Resets the displayed figures, exit codes and summaries of all peers to their values before the
 * first line from a peer. */
void cmd_local_result_forget(struct cmd_local_result *r);

/* A note (message for users) that a peer process has printed. */
struct cmd_local_note
{
    enum note_level level;
    char module[NODE_MODULE_MAX];
    char text[NODE_NOTE_MAX];
};

/* Reads one JSON line that peer i has printed. The values are used only for display. If the line is
 * a note (message for users), stores the note in `*note` and returns true. `note` may be NULL. */
bool cmd_local_result_line(struct cmd_local_result *r, uint32_t i, const char *text,
                           struct cmd_local_note *note);

/* Reads and compares the model files, computes the verdict, prints the result and writes
 * summary.json. Returns the exit code of the verdict, or another exit code if a step failed. */
int cmd_local_result_print(struct cmd_local_result *r, const struct options *o, bool json);

/* Reports that the run was interrupted: the round from which the same command resumes, and a table
 * of what is known so far. With --json, prints an object with "interrupted": true, "resumes_at"
 * (that round or null), and null for values that only a finished run has. Writes no file. `given`:
 * the user gave --out. Returns CMD_INTERRUPTED. */
int cmd_local_result_interrupted(struct cmd_local_result *r, const struct options *o, bool given);

#endif
