/* peer/cmd/sweep_result.h -- what came of a sweep: a table, or one JSON object.
 *
 *   {"sweep": {"lr": ["0.01", "0.1"]}, "seeds": [1, 2, 3],
 *    "settings": [{"setting": "lr=0.01", "values": {"lr": "0.01"}, "out": "OUT/lr=0.01",
 *                  "n_done": 3, "n_apart": 0, "n_failed": 0, "n_left": 0,
 *                  "accuracy_mean": 0.98, "accuracy_deviation": 0.001, of a sample: null of fewer than 2
 *                  "accuracy_worst": 0.978, "accuracy_best": 0.982,
 *                  "relative_drift_worst": 2e-7, "bytes_sent_mean": 1e6, "seconds_mean": 12.1,
 *                  "runs": [{"seed": 1, "state": "done", "exit_code": 0, "accuracy": 0.98,
 *                            "relative_drift": 1e-7, "bytes_sent": 1, "seconds": 1.2, "verdict": "...",
 *                            "out": "OUT/lr=0.01/seed-1"}, ...]}, ...],
 *    "best": "lr=0.1", or null
 *    "n_runs": 6, "n_done": 6, "n_apart": 0, "n_failed": 0, "n_left": 0,
 *    "interrupted": false, "exit_code": 0, "out": "OUT"}
 *
 * Means are of the runs that are done: one that missed consensus, diverged or failed is counted and
 * named, and in none of them. Where a figure of one of these is not known, the mean is null.
 */
#ifndef PEER_CMD_SWEEP_RESULT_H
#define PEER_CMD_SWEEP_RESULT_H

#include "peer/cmd/sweep.h"

enum cmd_sweep_state {
    SWEEP_LEFT,  /* Not begun, or interrupted. */
    SWEEP_DONE,  /* Exit code 0. */
    SWEEP_APART, /* It ended without consensus, or diverged. */
    SWEEP_FAILED,
    SWEEP_STATES
};

struct cmd_sweep_run
{
    enum cmd_sweep_state state;
    int exit_code;
    double accuracy, drift, bytes, seconds; /* NaN: not known. */
    char verdict[256];                      /* What the run said; or "". */
};

struct cmd_sweep_result
{
    const struct cmd_sweep_face *face;
    const struct grid *grid;
    const char *out;
    struct cmd_sweep_run *run; /* Setting by setting, n_seeds each; owned. */
    bool interrupted;
};

__attribute__((warn_unused_result)) int cmd_sweep_result_open(struct cmd_sweep_result *r,
                                                              const struct grid *grid,
                                                              const struct cmd_sweep_face *face,
                                                              const char *out);
void cmd_sweep_result_close(struct cmd_sweep_result *r);

struct cmd_sweep_run *cmd_sweep_result_at(const struct cmd_sweep_result *r, uint32_t setting,
                                          uint32_t seed);

/* OUT/SETTING/seed-SEED, of the seed-th seed. False where it is too long. */
bool cmd_sweep_result_dir(const struct cmd_sweep_result *r, uint32_t setting, uint32_t seed,
                          char *out, size_t cap);

/* The process of a run ended with that code (128 + a signal's number where one ended it): read what it
 * left in its directory. */
void cmd_sweep_result_take(struct cmd_sweep_result *r, uint32_t setting, uint32_t seed, int code);

/* Print all of it. Returns the exit code. */
int cmd_sweep_result_print(const struct cmd_sweep_result *r, const struct options *o);

#endif
