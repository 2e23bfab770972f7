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

#include "peer/cmd/cmd.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/train_checkpoint.h"
#include "peer/cmd/training.h"
#include "peer/node/evaluation.h"
#include "peer/node/rollback.h"
#include "peer/output/disk_reservation.h"
#include "peer/run_log/lines.h"

#include <stdio.h>

/* Sums over training steps. */
struct cmd_train_sums
{
    /* Sums of loss and accuracy, each weighted by the number of samples, and of seconds. */
    double loss, accuracy, seconds;
    uint64_t rows, steps;
};

struct cmd_train
{
    const struct options *o;
    struct cmd_training training;
    struct cmd_progress_reading reading;
    struct disk_reservation reserve; /* Disk space reserved for the model. */
    /* Disk space reserved for the summary, so that the last lines of metrics cannot use it up. */
    struct disk_reservation last;
    struct run run;
    struct schedule schedule;
    struct trainer trainer;
    float *x;
    uint64_t round, epoch; /* Number of rounds and of epochs done. */
    /* Schedule of evaluations. Used if --evaluate-every is not given. */
    struct evaluation plan;
    bool planned; /* The option --evaluate-every is not given. */
    /* Round of the last evaluation, and with --evaluate-every the epoch of the next one. */
    uint64_t tested_at, next_test;
    /* Number of training samples, which is the length of an epoch. */
    uint64_t samples;
    /* Sums over the steps since the last line of metrics, and since the start of the run. */
    struct cmd_train_sums since, all;
    /* Sums over the steps of the last line of metrics. Displayed until there are new steps. */
    struct cmd_train_sums shown;
    /* Result of the last evaluation. n_samples 0: there was none. */
    struct trainer_report tested;
    /* The result in `tested` is of the present round and not in a line of metrics yet. */
    bool fresh;
    uint64_t begin_ns;
    struct cmd_progress progress;
    struct divergence verdict; /* Divergence detector, which receives the loss of every step. */
    struct rollback rollback;  /* Good model to which training returns once after divergence. */
    char diverged[DIVERGENCE_TEXT]; /* Why training diverged. "": it did not. */
    /* Why the trained model is no better than guessing. "": it is better. */
    char unlearnt[DIVERGENCE_TEXT];
    const char *out;                  /* Output directory. NULL: no files are written. */
    struct cmd_out dir;               /* Output directory of --out, if it was given. */
    struct cmd_train_checkpoint keep; /* Checkpoints and the storing of the model. */
    uint64_t from_round;              /* Round at which this process started to train. */
    struct run_log_lines lines;       /* Writer of metrics.jsonl, if files are written. */
    bool over;                        /* The run has a result, which has been written. */
    bool is_text;
};

/* Shows the progress of training after a step, if it is time or with `force`. cmd_train_end_line()
 * must be called before other output, and leaves the line on the terminal. */
void cmd_train_show(struct cmd_train *t, bool force);
void cmd_train_end_line(struct cmd_train *t);

/* If `news`, prints the message of the metrics writer (t->lines.news). */
void cmd_train_report_writer(struct cmd_train *t, bool news);

/* Writes a line to metrics.jsonl, and shows the progress if it is time. */
void cmd_train_write_line(struct cmd_train *t);

/* Prints the result on stdout and writes summary.json, for a run that ends with `exit_code`.
 * Returns CMD_OK, or CMD_FAILED if the output could not be written. */
int cmd_train_result(struct cmd_train *t, int exit_code);

/* Reports an interrupted run: from where the same command resumes, and the figures so far
 * (test_* are of the last evaluation). With --json prints the closing object with "interrupted":
 * true. Writes no summary.json, because there is no result. Returns CMD_OK or CMD_FAILED. */
int cmd_train_interrupted(struct cmd_train *t);

#endif
