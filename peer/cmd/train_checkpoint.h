/* peer/cmd/train_checkpoint.h -- writes the checkpoints and the model of `hearsay train`.
 *
 *   Before training: resumes from the newest checkpoint under --out, if there is one.
 *   During training: writes a checkpoint every --checkpoint, on a separate thread
 *     (peer/uv/writer.h).
 *   On Ctrl-C: writes a checkpoint of the round at which the run stops.
 *   After training: writes the model. If the disk fails, keeps the model in memory and tries again
 *     for --disk-timeout.
 *
 * Checkpoints have the same file format as checkpoints of a peer
 * (peer/checkpoints/checkpoint_store.h), with the sections "train", "model" and the trainer's own
 * sections. Batches are a function of the round, so a resumed run gives bit for bit the same result
 * as a run without interruption. If training diverges after a restart, it cannot return to a model
 * older than the checkpoint.
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
    bool writes; /* True if the writer thread is running. */
    uv_loop_t loop;
    struct uv_writer writer;
    struct state copy;
    /* Time at which the last checkpoint was made, by uv_hrtime(), in nanoseconds. */
    uint64_t last_ns;
    uint64_t kept;            /* Round of the newest checkpoint on disk. 0: none. */
    struct log_backoff warns; /* Limits how often failed writes are reported. */
};

/* Loads the checkpoints, resumes from the newest one, and starts the writer thread. The caller must
 * have locked --out and made the trainer and the initial model. Returns CMD_OK, or an exit code
 * after a message on stderr. */
int cmd_train_checkpoint_open(struct cmd_train *t);

/* Writes a checkpoint if the interval of --checkpoint is over. Called after each round. */
void cmd_train_checkpoint_round(struct cmd_train *t);

/* Writes a checkpoint of the present round, and waits until it is on disk. Called when the run
 * stops early. */
void cmd_train_checkpoint_stop(struct cmd_train *t);

/* Writes the model file. Tries again until it succeeds, a signal asks to stop, or --disk-timeout is
 * over. Returns CMD_OK, or an exit code after a message on stderr. */
int cmd_train_write_model(struct cmd_train *t);

/* Writes the lines of metrics.jsonl that still wait in memory. Tries again until all are written, a
 * signal asks to stop, or --disk-timeout is over. Returns CMD_OK, or CMD_FAILED after a message on
 * stderr if lines are lost. */
__attribute__((warn_unused_result)) int cmd_train_flush_metrics(struct cmd_train *t);

/* Frees the checkpoints in memory. `over`: the run has a result. The checkpoint files are then
 * deleted. */
void cmd_train_checkpoint_close(struct cmd_train *t, bool over);

#endif
