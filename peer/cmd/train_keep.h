/* peer/cmd/train_keep.h -- what `hearsay train` does so that nothing it has learnt is lost.
 *
 *   before    the newest checkpoint under --out, if there is one: the run goes on from it
 *   training  one more every --checkpoint, on a thread of its own (peer/uv/writer.h)
 *   Ctrl-C    one more, of the round at which the run stops
 *   after     the model; where the disk does not take it, it stays in memory and is tried again
 *             for --patience
 *
 * Checkpoints are files as a peer's are (peer/keep/slots.h), with the sections "train", "model" and
 * the trainer's own. Batches are a function of the round, so that what follows a restart is what would
 * have followed without one, bit for bit. Where training runs away after a restart, it goes back to
 * the checkpoint's model at the earliest.
 */
#ifndef PEER_CMD_TRAIN_KEEP_H
#define PEER_CMD_TRAIN_KEEP_H

#include "peer/cmd/checkpoint.h"
#include "peer/uv/calm.h"
#include "peer/uv/writer.h"

struct cmd_train;

struct cmd_train_keep
{
    struct cmd_checkpoint files;
    bool writes; /* The writer is there. */
    uv_loop_t loop;
    struct uv_writer writer;
    struct state copy;
    uint64_t last_ns;  /* When the last one was taken. */
    uint64_t kept;     /* The round of the newest that is on disk; 0: there is none. */
    struct calm warns; /* When failures are told. */
};

/* --out is ours, and there is a trainer with its first model: look for checkpoints, go on from the
 * newest, and get ready to write more. CMD_OK, or an exit code with a line on stderr. */
int cmd_train_keep_open(struct cmd_train *t);

/* A round is done: write a checkpoint, if it is time. */
void cmd_train_keep_round(struct cmd_train *t);

/* The run stops here: write one now, and wait until it is on disk. */
void cmd_train_keep_stop(struct cmd_train *t);

/* Write the model, as often as it takes, until a signal asks to stop or --patience is over. CMD_OK or an exit code
 * with a line on stderr. */
int cmd_train_keep_model(struct cmd_train *t);

/* Write the lines of metrics that wait, with the same patience. CMD_OK, or CMD_FAILED with a sentence
 * where some are in no file. */
__attribute__((warn_unused_result)) int cmd_train_keep_lines(struct cmd_train *t);

/* `over`: the run has a result, and nobody will go on from its checkpoints. */
void cmd_train_keep_close(struct cmd_train *t, bool over);

#endif
