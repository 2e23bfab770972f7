/* peer/cmd/checkpoint.h -- connects the checkpoints of one peer with --checkpoint and its output
 * directory.
 *
 *   DIR/checkpoint-0.safetensors, checkpoint-1.safetensors    peer/checkpoints/checkpoint_store.h
 *
 * The caller has locked the directory. A peer resumes from checkpoints found there even with
 * --checkpoint off, which only turns off writing new ones.
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
    /* Interval between checkpoints in microseconds, from --checkpoint. 0: no checkpoints are
     * written. */
    int64_t every_us;
};

/* The checkpoints from which `hearsay local --out DIR` with n peers would resume. `round`: if
 * `all` is set, the newest round for which every peer has a checkpoint; otherwise the smallest
 * of the peers' newest checkpoint rounds (0: some peer is without a checkpoint). `last`: the
 * largest of the peers' newest checkpoint rounds. */
struct cmd_checkpoint_rounds
{
    bool there; /* At least one peer of the run has a checkpoint. */
    /* The run is in lock step and every peer has a checkpoint of `round`. False: each peer
     * resumes from its own newest checkpoint. */
    bool all;
    uint64_t round, last;
};

/* Finds the rounds of the checkpoints in DIR/peer-0, DIR/peer-1 and so on, of n peers. */
void cmd_checkpoint_rounds(struct cmd_checkpoint_rounds *c, const char *dir, uint32_t n,
                           bool lock_step);

/* Loads the checkpoints in the directory `dir`, which is borrowed. Returns CMD_OK, or an exit
 * code after a message on stderr. Call cmd_checkpoint_close() in both cases, after everything
 * that writes checkpoints there has stopped. */
int cmd_checkpoint_open(struct cmd_checkpoint *k, const struct options *o, const char *dir);

/* Refuses checkpoints that belong to another peer (checkpoint_store_check_owner()). `id`: identity of this
 * peer. Returns CMD_OK, or CMD_USAGE after a message on stderr. */
int cmd_checkpoint_check_owner(const struct cmd_checkpoint *k, const struct options *o,
                               const uint8_t id[WIRE_ID_BYTES]);

/* Passes the checkpoint interval and the checkpoints that were found to the configuration of a
 * peer's driver. */
void cmd_checkpoint_configure(struct cmd_checkpoint *k, struct uv_driver_config *c);

/* Frees the checkpoints in memory. `over`: the run has ended, so the checkpoint files are
 * deleted, because no peer will resume from them. */
void cmd_checkpoint_close(struct cmd_checkpoint *k, bool over);

#endif
