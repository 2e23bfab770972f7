/* peer/node/quarantine.h -- who broke the protocol is not spoken with for a while.
 *
 * A second, and each time twice as long, up to five minutes; who has behaved for ten minutes begins
 * anew. We do not call it before either (dial.c), but it may call us: such a session ends
 * before a word is said, so that what it repeats costs nobody a line, or a model's worth of bytes.
 */
#ifndef PEER_NODE_QUARANTINE_H
#define PEER_NODE_QUARANTINE_H

#include "gossip/wire/wire.h"

enum { QUARANTINE_IDS = 64 /* The latest violators; older ones are forgotten. */ };

struct quarantine
{
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        int64_t since_us, for_us; /* for_us 0: an empty place. */
    } at[QUARANTINE_IDS];
};

/* It broke the protocol now. */
void quarantine_add(struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);
/* Is it one of those that did, however long ago? */
bool quarantine_knows(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES]);
/* Is it not spoken with now? */
bool quarantine_holds(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

#endif
