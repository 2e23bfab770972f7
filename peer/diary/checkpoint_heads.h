/* peer/diary/checkpoint_heads.h -- reads the heads of the checkpoints in a directory. */
#ifndef PEER_DIARY_CHECKPOINT_HEADS_H
#define PEER_DIARY_CHECKPOINT_HEADS_H

#include "gossip/wire/wire.h"
#include "peer/keep/slots.h"

/* Contents of the head of one checkpoint. */
struct checkpoint_head
{
    bool there;                        /* The file exists and its head can be read. */
    uint64_t round;                    /* Step counter of the peer. 0: not known. */
    char name[WIRE_NAME_MAX + 1];      /* Name of the peer. */
    char owner[2 * WIRE_ID_BYTES + 1]; /* Public key of the peer in hexadecimal. "": not known. */
};

/* Reads the head of each checkpoint in `dir` to head[], indexed by slot. Reads nothing else. */
void checkpoint_heads_read(const char *dir, struct checkpoint_head head[SLOTS]);

/* Reads the keys of the peers that were in the graph when the checkpoints in `dir` were taken. The
 * caller frees *id. Returns the number of keys; 0 if they cannot be read. */
size_t checkpoint_heads_members(const char *dir, uint8_t (**id)[WIRE_ID_BYTES]);

/* Reads the step counters of the checkpoints in `dir`, the newest first. 0: no readable
 * checkpoint. */
void checkpoint_heads_rounds(const char *dir, uint64_t round[SLOTS]);

#endif
