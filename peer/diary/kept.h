/* peer/diary/kept.h -- from which rounds a directory's checkpoints go on. */
#ifndef PEER_DIARY_KEPT_H
#define PEER_DIARY_KEPT_H

#include "peer/keep/slots.h"

/* The rounds of the checkpoints in `dir`, the newest first, as their files say; 0: there is none.
 * Nothing else of a file is looked at. */
void diary_kept_rounds(const char *dir, uint64_t round[SLOTS]);

#endif
