/* peer/cmd/train_checkpoint.h -- checkpoints of `hearsay train`, and the storing of its model.
 *
 *   before    resumes from the newest checkpoint under --out, if there is one
 *   training  writes a checkpoint every --checkpoint, on a separate thread (peer/uv/writer.h)
 *   Ctrl-C    writes a checkpoint of the round at which the run stops
 *   after     writes the model; if the disk fails, keeps it in memory and tries again for
 *             --disk-timeout
 *
 * Checkpoints have the file format of a peer's checkpoints (peer/checkpoints/checkpoint_store.h), with the
 * sections "train", "model" and the trainer's own sections. Batches are a function of the round,
 * so a resumed run continues bit for bit as it would have without the interruption. If training
 * diverges after a restart, it returns at the earliest to the model of the checkpoint.
 */
#ifndef PEER_CMD_TRAIN_CHECKPOINT_H
#define PEER_CMD_TRAIN_CHECKPOINT_H

#include "peer/cmd/checkpoint.h"
#include "peer/uv/log_backoff.h"
#include "peer/uv/writer.h"

struct cmd_train;

struct cmd_train_checkpoint
{
    struct cmd_checkpoint files;
    bool writes; /* The writer thread is running. */
    uv_loop_t loop;
    struct uv_writer writer;
    struct state copy;
    uint64_t last_ns;         /* Time at which the last checkpoint was taken, by uv_hrtime(). */
    uint64_t kept;            /* Round of the newest checkpoint on disk. 0: none. */
    struct log_backoff warns; /* Limits how often failures are reported. */
};

/* Loads the checkpoints, resumes from the newest one, and starts the writer. --out must be
 * locked, and the trainer and the initial model must exist. Returns CMD_OK, or an exit code
 * after a message on stderr. */
int cmd_train_checkpoint_open(struct cmd_train *t);

/* Called after each round: writes a checkpoint if it is time. */
void cmd_train_checkpoint_round(struct cmd_train *t);

/* Called when the run stops: writes a checkpoint of this round and waits until it is on disk. */
void cmd_train_checkpoint_stop(struct cmd_train *t);

/* Writes the model, and tries again until it succeeds, a signal asks to stop, or --disk-timeout is
 * over. Returns CMD_OK, or an exit code after a message on stderr. */
int cmd_train_write_model(struct cmd_train *t);

/* Writes the lines of metrics that wait in memory, with the same retries as
 * cmd_train_write_model(). Returns CMD_OK, or CMD_FAILED after a message on stderr if lines are
 * lost. */
__attribute__((warn_unused_result)) int cmd_train_flush_metrics(struct cmd_train *t);

/* Closes the checkpoints. `over`: the run has a result, so the checkpoint files are deleted. */
void cmd_train_checkpoint_close(struct cmd_train *t, bool over);

#endif
