/* peer/cmd/train.h -- state and output of `hearsay train`.
 *
 * Files under --out: model.safetensors, as peers write it (metadata: run, round, name, version),
 * and metrics.jsonl. The file metrics.jsonl begins with a line that marks the start of the
 * process (peer/uv/metrics.h). It then has a line for each epoch, and a line for each evaluation
 * within an epoch:
 *
 *   {"round": 1875, "epoch": 1.0, "lr": 0.0195, "loss": 0.31,
 *    "accuracy": 0.91, "test_loss": 0.11, "test_accuracy": 0.967,
 *    "test_round": 1875, "test_samples": 10000, "seconds": 6.1, "samples_per_s": 9950.2}
 *
 * Loss and accuracy are means over the batches since the previous line. The test_* values belong
 * to the held-out set, and are null (test_samples 0) if there was no evaluation. For text there
 * are also bits_per_character and test_bits_per_character: loss / ln 2.
 *
 * --json prints one object to stdout at the end: the keys of the last line, and model, data,
 * n_params, threads, rounds, epochs, ms_per_step, train_seconds, peak_rss_bytes, diverged (why
 * training diverged, or null), unlearnt (why the model is no better than guessing, or null),
 * out, run, finished, exit_code. The object is also written to summary.json.
 */
#ifndef PEER_CMD_TRAIN_H
#define PEER_CMD_TRAIN_H

#include "nn/train/outer_optimiser.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/train_checkpoint.h"
#include "peer/cmd/training.h"
#include "peer/node/step/evaluation.h"
#include "peer/node/step/rollback.h"
#include "peer/output/disk_reservation.h"
#include "peer/run_log/lines.h"

#include <stdio.h>

/* Sums of loss, accuracy and time over several local steps. */
struct cmd_train_sums
{
    /* Sums of loss and accuracy, both weighted by the number of samples, and sum of the time in
     * seconds. */
    double loss, accuracy, seconds;
    uint64_t rows, steps;
};

struct cmd_train
{
    const struct options *o;
    struct cmd_training training;
    struct cmd_progress_reading reading;
    struct disk_reservation reserve; /* Disk space reserved for the model. */
    /* Disk space reserved for summary.json, so that the last lines of metrics.jsonl cannot use up
     * the disk. */
    struct disk_reservation last;
    struct run run;
    struct schedule schedule;
    struct trainer trainer;
    struct outer_optimiser outer; /* State of the outer optimiser (--outer). All zeros: none. */
    /* x: the model. before: with --outer, the model before the local steps of the round. */
    float *x, *before;
    uint64_t round, epoch; /* Number of rounds and number of epochs that are done. */
    /* Schedule that decides when to evaluate the model. Used only if --evaluate-every is not
     * given. */
    struct evaluation plan;
    /* True if the schedule `plan` decides when to evaluate: --evaluate-every is not given. */
    bool planned;
    /* tested_at: round of the last evaluation. next_test: with --evaluate-every, the epoch of the
     * next evaluation. */
    uint64_t tested_at, next_test;
    /* Number of training samples. An epoch has this number of samples. */
    uint64_t samples;
    /* since: sums over the steps since the last line of metrics.jsonl. all: sums over the steps
     * since the start of the run. */
    struct cmd_train_sums since, all;
    /* Sums that the last line of metrics.jsonl reported. The progress line shows them until there
     * are new steps. */
    struct cmd_train_sums shown;
    /* Result of the last evaluation. n_samples 0: there was no evaluation yet. */
    struct trainer_report tested;
    /* True if the evaluation `tested` was made in the present round, and no line of metrics.jsonl
     * has it yet. */
    bool fresh;
    uint64_t begin_ns;
    struct cmd_progress progress;
    struct divergence verdict; /* Divergence detector, which receives the loss of every round. */
    /* Copy of a good model, to which training returns if it diverges. If it diverges a second time,
     * the run ends. */
    struct rollback rollback;
    char diverged[DIVERGENCE_TEXT]; /* Reason why training diverged. "": it did not diverge. */
    /* Reason why the trained model is judged no better than guessing. "": it is better. */
    char unlearnt[DIVERGENCE_TEXT];
    const char *out;                  /* Output directory. NULL: no files are written. */
    struct cmd_out dir;               /* Output directory of --out, if it was given. */
    struct cmd_train_checkpoint keep; /* Writer of checkpoints and of the model file. */
    uint64_t from_round;              /* Round at which this process started to train. */
    struct run_log_lines lines;       /* Writer of metrics.jsonl, if files are written. */
    bool over; /* True if the run has a result, and the result has been written. */
    bool is_text;
};

/* Returns the number of training samples in one round. */
static inline uint64_t cmd_train_round_samples(const struct cmd_train *t)
{
    return (uint64_t)sgd_samples(&t->run) * run_steps(&t->run);
}

/* Shows the progress of training after a round, if it is time (cmd_progress_due()) or with `force`.
 * Call cmd_train_end_line() before any other output; it leaves the progress line on the
 * terminal. */
void cmd_train_show(struct cmd_train *t, bool force);
void cmd_train_end_line(struct cmd_train *t);

/* If `news` is true, prints the message in t->lines.news about the writing of metrics.jsonl. */
void cmd_train_report_writer(struct cmd_train *t, bool news);

/* Writes a line to metrics.jsonl. Shows the progress if it is time (cmd_progress_due()), or if this
 * was the last round. */
void cmd_train_write_line(struct cmd_train *t);

/* Prints the result on stdout and writes summary.json. `exit_code`: exit code with which the run
 * ends. Returns CMD_OK, or CMD_FAILED if the output could not be written. */
int cmd_train_result(struct cmd_train *t, int exit_code);

/* Reports that the run was interrupted: the round from which the same command resumes, and the
 * figures so far (test_* are from the last evaluation). With --json also prints the closing object,
 * with "interrupted": true. Writes no summary.json, because there is no result. Returns CMD_OK or
 * CMD_FAILED. */
int cmd_train_interrupted(struct cmd_train *t);

#endif
