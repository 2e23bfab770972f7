/* peer/cmd/train.h -- `hearsay train`: what is counted while it runs, and how it is said.
 *
 * Under --out: model.safetensors, as peers write it (metadata: run, round,
 * name, version), and metrics.jsonl with a line an epoch:
 *
 *   {"round": 1875, "epoch": 1.0, "lr": 0.0195, "loss": 0.31,
 *    "accuracy": 0.91, "test_loss": 0.11, "test_accuracy": 0.967,
 *    "test_samples": 10000, "seconds": 6.1, "samples_per_s": 9950.2}
 *
 * Loss and accuracy are the means of the batches since the last line, test_*
 * of the held-out set, null where it was not asked. Of a text there are
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
#include "peer/cmd/events.h"
#include "peer/cmd/lines.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/reserve.h"
#include "peer/cmd/train_keep.h"
#include "peer/cmd/training.h"
#include "peer/node/rollback.h"

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
    struct cmd_reserve reserve; /* The model's room on the disk. */
    struct cmd_reserve last;    /* The summary's room, which late lines must not take. */
    struct run run;
    struct schedule schedule;
    struct trainer trainer;
    float *x;
    uint64_t round, epoch;            /* Done. */
    uint64_t tested_at, next_test;    /* The round of the last evaluation; the epoch of the next. */
    uint64_t samples;                 /* An epoch has so many. */
    struct cmd_train_sums since, all; /* Since the last line; since the start. */
    struct trainer_report tested;     /* n_samples 0: not now. */
    uint64_t begin_ns, drawn_ns;
    struct verdict verdict;      /* Fed with the loss of every step. */
    struct rollback rollback;    /* What it goes back to, once. */
    char diverged[VERDICT_TEXT]; /* How training ran away; "": it did not. */
    char unlearnt[VERDICT_TEXT]; /* That it ended no better than guessing, likewise. */
    const char *out;             /* NULL: no files. */
    struct cmd_out dir;          /* What --out names, if it was given. */
    struct cmd_train_keep keep;  /* Its checkpoints. */
    uint64_t from_round;         /* Where this start began. */
    struct cmd_lines lines;      /* metrics.jsonl, where there are files. */
    struct cmd_events events;    /* --tensorboard, */
    struct cmd_train_sums shown; /* and what is not there yet. */
    uint64_t shown_ns;
    bool over; /* The run has a result, which is on disk. */
    bool is_text, drawn;
};

/* On a terminal: redraw the line of the epoch under way, if it is time; and
 * before other words, leave it standing. */
void cmd_train_draw(struct cmd_train *t);
void cmd_train_break(struct cmd_train *t);

/* What there is to say of metrics.jsonl: t->lines.news. */
void cmd_train_tell(struct cmd_train *t, bool news);

/* An epoch's line, for people and in metrics.jsonl. */
void cmd_train_say(struct cmd_train *t);

/* The figures since the last ones go to --tensorboard, if it is time: once a second, and where the
 * epoch ends, with those of the held-out set. */
void cmd_train_events(struct cmd_train *t, bool epoch_ends);

/* The closing words on stdout, and summary.json, of a run that ends with this exit code. Returns
 * CMD_OK, or CMD_FAILED where they could not be written. */
int cmd_train_result(struct cmd_train *t, int exit_code);

/* The same of a run that was interrupted: from where the same command goes on; with --json the closing
 * object, with "interrupted": true and null for what only an end would tell. No summary.json: there is
 * no result. CMD_OK or CMD_FAILED. */
int cmd_train_interrupted(struct cmd_train *t);

#endif
