/* peer/cmd/train.h -- `hearsay train`: what is counted while it runs, and how it is said.
 *
 * Under --out: model.safetensors, as peers write it (metadata: run, round,
 * name, version), and metrics.jsonl with a line an epoch, and one for each evaluation between two:
 *
 *   {"round": 1875, "epoch": 1.0, "lr": 0.0195, "loss": 0.31,
 *    "accuracy": 0.91, "test_loss": 0.11, "test_accuracy": 0.967,
 *    "test_round": 1875, "test_samples": 10000, "seconds": 6.1, "samples_per_s": 9950.2}
 *
 * Loss and accuracy are the means of the batches since the last line, test_*
 * of the held-out set, null (test_samples 0) where it was not asked. Of a text there are
 * bits_per_character and test_bits_per_character, too: loss / ln 2.
 *
 * Before them comes the line of the start (peer/uv/metrics.h).
 *
 * --json closes with one object on stdout: the last line's keys and model,
 * data, n_params, threads, rounds, epochs, ms_per_step, train_seconds,
 * peak_rss_bytes, diverged (null, or how training ran away), unlearnt (likewise), out, run,
 * finished, exit_code. It is kept as summary.json, too.
 */
#ifndef PEER_CMD_TRAIN_H
#define PEER_CMD_TRAIN_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/train_keep.h"
#include "peer/cmd/training.h"
#include "peer/diary/lines.h"
#include "peer/node/evaluation.h"
#include "peer/node/rollback.h"
#include "peer/store/reserve.h"

#include <stdio.h>

/* Sums over steps. */
struct cmd_train_sums
{
    double loss, accuracy, seconds; /* Loss and accuracy times rows. */
    uint64_t rows, steps;
};

struct cmd_train
{
    const struct options *o;
    struct cmd_training training;
    struct cmd_progress_reading reading;
    struct reserve reserve; /* The model's room on the disk. */
    struct reserve last;    /* The summary's room, which late lines must not take. */
    struct run run;
    struct schedule schedule;
    struct trainer trainer;
    float *x;
    uint64_t round, epoch;            /* Done. */
    struct evaluation plan;           /* When to evaluate, where --evaluate-every is not given. */
    bool planned;                     /* It is not. */
    uint64_t tested_at, next_test;    /* The round of the last evaluation; the epoch of the next. */
    uint64_t samples;                 /* An epoch has so many. */
    struct cmd_train_sums since, all; /* Since the last line; since the start. */
    struct cmd_train_sums shown;      /* Those of the last line. */
    struct trainer_report tested;     /* By the last evaluation; n_samples 0: there was none. */
    bool fresh;                       /* It is of this very round, and in no line yet. */
    uint64_t begin_ns;
    struct cmd_progress progress;
    struct verdict verdict;      /* Fed with the loss of every step. */
    struct rollback rollback;    /* What it goes back to, once. */
    char diverged[VERDICT_TEXT]; /* How training ran away; "": it did not. */
    char unlearnt[VERDICT_TEXT]; /* That it ended no better than guessing, likewise. */
    const char *out;             /* NULL: no files. */
    struct cmd_out dir;          /* What --out names, if it was given. */
    struct cmd_train_keep keep;  /* Its checkpoints. */
    uint64_t from_round;         /* Where this start began. */
    struct diary_lines lines;    /* metrics.jsonl, where there are files. */
    bool over;                   /* The run has a result, which is on disk. */
    bool is_text;
};

/* A step is done: show how far it is, if it is time. Before other words, leave that standing. */
void cmd_train_show(struct cmd_train *t, bool force);
void cmd_train_break(struct cmd_train *t);

/* What there is to say of metrics.jsonl: t->lines.news. */
void cmd_train_tell(struct cmd_train *t, bool news);

/* A line in metrics.jsonl, and where it is time one for people. */
void cmd_train_say(struct cmd_train *t);

/* The closing words on stdout, and summary.json, of a run that ends with this exit code. Returns
 * CMD_OK, or CMD_FAILED where they could not be written. */
int cmd_train_result(struct cmd_train *t, int exit_code);

/* The same of a run that was interrupted: from where the same command goes on, and the result so far, in
 * which test_* are of the last evaluation; with --json the closing object, with "interrupted": true. No
 * summary.json: there is no result. CMD_OK or CMD_FAILED. */
int cmd_train_interrupted(struct cmd_train *t);

#endif
