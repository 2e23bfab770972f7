/* peer/cmd/checkpoint.h -- opens the checkpoints in the output directory DIR of one peer, and
 * applies --checkpoint.
 *
 *   DIR/checkpoint-0.safetensors, checkpoint-1.safetensors    peer/checkpoints/checkpoint_store.h
 *
 * The caller must have locked DIR. With --checkpoint off a peer writes no checkpoints, but still
 * resumes from checkpoints that are in DIR.
 */
#ifndef PEER_CMD_CHECKPOINT_H
#define PEER_CMD_CHECKPOINT_H

#include "peer/checkpoints/checkpoint_store.h"
#include "peer/cmd/cmd.h"
#include "peer/uv/driver.h"

struct cmd_checkpoint
{
    bool open;
    struct disk disk;
    struct checkpoint_store slots;
    struct checkpoint_store_found found;
    /* Interval between checkpoints, from --checkpoint, in microseconds. 0: no checkpoints are
     * written. */
    int64_t every_us;
    bool warned; /* True: cmd_checkpoint_data_changed() has returned its warning. */
};

/* The rounds from which `hearsay local --out DIR` with n peers would resume. `last`: newest round
 * for which any peer has a checkpoint. `round`, if `all`: newest round for which every peer has a
 * checkpoint. `round`, if not `all`: round of the newest checkpoint of the peer that is furthest
 * behind; 0 if a peer has no checkpoint. */
struct cmd_checkpoint_rounds
{
    bool there; /* True if at least one peer of the run has a checkpoint. */
    /* True if the run is in lock step (all peers do the same round), and every peer has a
     * checkpoint of `round`. False: each peer resumes from its own newest checkpoint. */
    bool all;
    uint64_t round, last;
};

/* Finds the rounds of the checkpoints of n peers, in the directories DIR/peer-0, DIR/peer-1 and so
 * on. */
void cmd_checkpoint_rounds(struct cmd_checkpoint_rounds *c, const char *dir, uint32_t n,
                           bool lock_step);

/* Loads the checkpoints from the directory `dir`, which is borrowed. Returns CMD_OK, or an exit
 * code after a message on stderr. In both cases the caller must call cmd_checkpoint_close(), after
 * all writing of checkpoints there has stopped. */
int cmd_checkpoint_open(struct cmd_checkpoint *k, const struct options *o, const char *dir);

/* Refuses checkpoints that another peer has written (checkpoint_store_check_owner()). `id`:
 * identity of this peer. Returns CMD_OK, or CMD_USAGE after a message on stderr. */
int cmd_checkpoint_check_owner(const struct cmd_checkpoint *k, const struct options *o,
                               const uint8_t id[WIRE_ID_BYTES]);

/* Returns a warning if the training files or the held-out share have changed since the loaded
 * checkpoints were written. `trained_on`: text that identifies the present files and share
 * (cmd_training_trained_on()). Returns NULL if nothing has changed, if the checkpoints do not say
 * it, or if the warning was returned before. */
const char *cmd_checkpoint_data_changed(struct cmd_checkpoint *k, const char *trained_on);

/* Puts the checkpoint interval and the loaded checkpoints into the configuration of a peer's
 * driver. */
void cmd_checkpoint_configure(struct cmd_checkpoint *k, struct uv_driver_config *c);

/* Frees the checkpoints in memory. `over`: the run has ended. The checkpoint files are then
 * deleted, because no peer will resume from them. */
void cmd_checkpoint_close(struct cmd_checkpoint *k, bool over);

#endif
