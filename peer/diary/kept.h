/* peer/diary/kept.h -- reads the heads of the checkpoints in a directory. */
#ifndef PEER_DIARY_KEPT_H
#define PEER_DIARY_KEPT_H

#include "gossip/wire/wire.h"
#include "peer/keep/slots.h"

/* Contents of the head of one checkpoint. */
struct diary_kept
{
    bool there;                        /* The file exists and its head can be read. */
    uint64_t round;                    /* Step counter of the peer. 0: not known. */
    char name[WIRE_NAME_MAX + 1];      /* Name of the peer. */
    char owner[2 * WIRE_ID_BYTES + 1]; /* Public key of the peer in hexadecimal. "": not known. */
};

/* Reads the head of each checkpoint in `dir` to kept[], indexed by slot. Reads nothing else. */
void diary_kept_look(const char *dir, struct diary_kept kept[SLOTS]);

/* Reads the keys of the peers that were in the graph when the checkpoints in `dir` were taken. The
 * caller frees *id. Returns the number of keys; 0 if they cannot be read. */
size_t diary_kept_members(const char *dir, uint8_t (**id)[WIRE_ID_BYTES]);

/* Reads the step counters of the checkpoints in `dir`, the newest first. 0: no readable
 * checkpoint. */
void diary_kept_rounds(const char *dir, uint64_t round[SLOTS]);

#endif
