/* peer/cmd/checkpoint.h -- the checkpoints of one peer: --checkpoint, and those that are there.
 *
 *   DIR/checkpoint-0.safetensors, checkpoint-1.safetensors    peer/keep/slots.h
 *
 * The directory is locked by then. What is found there is gone on from, also with
 * --checkpoint off, which only writes none.
 */
#ifndef PEER_CMD_CHECKPOINT_H
#define PEER_CMD_CHECKPOINT_H

#include "peer/cmd/cmd.h"
#include "peer/keep/slots.h"
#include "peer/uv/driver.h"

struct cmd_checkpoint
{
    bool open;
    struct disk disk;
    struct slots slots;
    struct slots_found found;
    int64_t every_us; /* --checkpoint; 0: off. */
};

/* What the same command finds: `local --out DIR` with n peers. */
struct cmd_checkpoint_common
{
    bool there; /* Somebody has one; */
    bool all;   /* all have one of this round, in lock step; else of these, each its own: */
    uint64_t round, last;
};
void cmd_checkpoint_common(struct cmd_checkpoint_common *c, const char *dir, uint32_t n,
                           bool lock_step);

/* Look for checkpoints in `dir`, which is borrowed. CMD_OK; else an exit code with a line on
 * stderr. Close it in any case, after whoever writes there. */
int cmd_checkpoint_open(struct cmd_checkpoint *k, const struct options *o, const char *dir);

/* Refuses checkpoints of another peer (slots_check_owner()). Returns CMD_OK, or CMD_USAGE with a
 * line on stderr. */
int cmd_checkpoint_check_owner(const struct cmd_checkpoint *k, const struct options *o,
                               const uint8_t id[WIRE_ID_BYTES]);

/* Tell a peer's driver of them. */
void cmd_checkpoint_tell(struct cmd_checkpoint *k, struct uv_driver_config *c);

/* `over`: the run is, and nobody will go on from them. */
void cmd_checkpoint_close(struct cmd_checkpoint *k, bool over);

#endif
