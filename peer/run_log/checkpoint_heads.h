/* peer/run_log/checkpoint_heads.h -- reads the metadata of the checkpoints in a directory, without
 * their data. */
#ifndef PEER_RUN_LOG_CHECKPOINT_HEADS_H
#define PEER_RUN_LOG_CHECKPOINT_HEADS_H

#include "gossip/wire/wire.h"
#include "peer/checkpoints/checkpoint_store.h"

/* Metadata of one checkpoint file. */
struct checkpoint_head
{
    bool there; /* True if the checkpoint file exists and its header can be read. */
    /* Step counter of the peer at the checkpoint. 0: not known. */
    uint64_t round;
    char name[WIRE_NAME_MAX + 1]; /* Name of the peer that wrote the checkpoint. */
    /* Public key of the peer in hexadecimal. "": not known. */
    char owner[2 * WIRE_ID_BYTES + 1];
};

/* Reads the metadata of both checkpoints in `dir` into head[], indexed by slot (file 0 or 1). Does
 * not read or check the saved states. */
void checkpoint_heads_read(const char *dir, struct checkpoint_head head[SLOTS]);

/* Reads the public keys of the members that the checkpoints in `dir` list. A member that both
 * checkpoints list occurs twice. The caller frees `*id`. Returns the number of keys, 0 if none can
 * be read. */
size_t checkpoint_heads_members(const char *dir, uint8_t (**id)[WIRE_ID_BYTES]);

/* Reads the step counters of both checkpoints in `dir` into round[], the larger one first. 0: no
 * readable checkpoint. */
void checkpoint_heads_rounds(const char *dir, uint64_t round[SLOTS]);

#endif
