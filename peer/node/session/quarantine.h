/* peer/node/session/quarantine.h -- refuses sessions with protocol violators for a time.
 *
 * The first violation of a peer leads to a quarantine of 1 s. Each further violation doubles the
 * time, up to 5 min. If the peer behaves for 10 min after the end of a quarantine, its next one
 * lasts 1 s again.
 *
 * During a quarantine this peer does not dial the violator (dial.c). If the violator dials, this
 * peer closes the session before any message. A repeated violation thus causes neither log lines
 * nor the transfer of a model.
 */
#ifndef PEER_NODE_SESSION_QUARANTINE_H
#define PEER_NODE_SESSION_QUARANTINE_H

#include "gossip/wire/wire.h"

/* Maximum number of violators in the table. If the table is full, a new violator replaces the
 * oldest one. */
enum { QUARANTINE_IDS = 64 };

/* The latest violators of the protocol. A struct of zeros is empty. */
struct quarantine
{
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        /* Start and length of the last quarantine, in microseconds. If for_us is 0, the entry is
         * free. */
        int64_t since_us, for_us;
    } at[QUARANTINE_IDS];
};

/* Begins a quarantine for peer `id`, which has just violated the protocol. */
void quarantine_add(struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);
/* Returns whether peer `id` is in the table of violators, even if its quarantine is over. */
bool quarantine_knows(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether peer `id` is in quarantine now. */
bool quarantine_holds(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

#endif
