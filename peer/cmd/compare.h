/* peer/cmd/compare.h -- `hearsay compare`: its runs (compare.c), and what came of them (compare_result.c).
 *
 *   OUT/ARM/lr-X/choose-seed-N   where several learning rates are given: one run with each, on nine
 *                                tenths of the training samples, judged by the tenth that is left
 *   OUT/ARM/lr-X/seed-N          with the one that was chosen: seeds N, N + 1, ...
 *   OUT/ARM/lr-X/seed-N.log      what that run said
 *   OUT/compare.html, compare.csv
 *   OUT/.lock                    held while we live: two at once are refused
 */
#ifndef PEER_CMD_COMPARE_H
#define PEER_CMD_COMPARE_H

#include "peer/cmd/batch.h"
#include "peer/gauge/gauge.h"
#include "peer/report/comparison.h"
#include "peer/run/arms.h"

struct compare_choice
{
    bool asked; /* There were several to choose from. */
    bool made;  /* False: the runs to choose by are not all done, or none of them is any good. */
    uint32_t rate;
};

struct compare
{
    const struct options *o;
    const char *out, *path;
    struct arms arms;
    struct compare_choice choice[ARMS_MAX];
    struct report_trial *tune;  /* By arm and rate; owned. */
    struct report_trial *trial; /* By arm and seed; owned. */
    struct gauge gauge;
    uint32_t n_runs, n_done;
    bool interrupted;
    char program[4096]; /* This very one. */
};

/* OUT/ARM/lr-X/seed-N, `choosing` with "choose-" before it and `end` behind it. False where it is too
 * long. */
bool cmd_compare_path(const struct compare *c, uint32_t arm, uint32_t rate, uint64_t seed,
                      bool choosing, const char *end, char *out, size_t cap);

/* That of an arm's learning rates whose run has the best accuracy on the samples that it was
 * to be chosen by; of equals the one of least loss on them, and then the first. Runs without consensus
 * are out. Not made: a run is not done. */
struct compare_choice cmd_compare_choose(const struct report_trial *tune, uint32_t n);

/* Print all of it, and write the page and the table. Returns the exit code. */
int cmd_compare_result(struct compare *c);

#endif
