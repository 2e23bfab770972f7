/* peer/diary/kept.h -- from which rounds a directory's checkpoints go on. */
#ifndef PEER_DIARY_KEPT_H
#define PEER_DIARY_KEPT_H

#include "gossip/wire/wire.h"
#include "peer/keep/slots.h"

/* What the head of a checkpoint says of it. */
struct diary_kept
{
    bool there; /* There is a file, and its head can be read. */
    uint64_t round;
    char name[WIRE_NAME_MAX + 1];      /* The peer's. */
    char owner[2 * WIRE_ID_BYTES + 1]; /* Its public key in hexadecimal. "": not known. */
};

/* Reads the heads of the checkpoints in `dir`, by slot. The rest of a file is not looked at. */
void diary_kept_look(const char *dir, struct diary_kept kept[SLOTS]);

/* Reads the keys of the peers that were in the graph when the checkpoints in `dir` were taken: *id is
 * for free(). Returns how many; 0 where they cannot be read. */
size_t diary_kept_members(const char *dir, uint8_t (**id)[WIRE_ID_BYTES]);

/* The rounds of the checkpoints in `dir`, the newest first, as their files say; 0: there is none.
 * Nothing else of a file is looked at. */
void diary_kept_rounds(const char *dir, uint64_t round[SLOTS]);

#endif
