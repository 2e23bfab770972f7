/* peer/http/snapshot_exchange.h -- passes the newest snapshot to the HTTP thread without locks.
 *
 *   event loop                                            HTTP thread
 *   snapshot_exchange_blank() ... fill                    snapshot_exchange_read()
 *   snapshot_exchange_publish()
 *        [ back ]  <---swap--->  [ middle ]  <---swap--->  [ front ]
 *
 * There are three buffers: one is being written, one is the newest complete snapshot, and one is
 * being read. A swap is one atomic exchange. The event loop never waits for a reader, and a reader
 * may use its snapshot as long as it needs.
 */
#ifndef PEER_HTTP_SNAPSHOT_EXCHANGE_H
#define PEER_HTTP_SNAPSHOT_EXCHANGE_H

#include "peer/http/snapshot.h"

#include <stdatomic.h>

enum { SNAPSHOT_EXCHANGE_PLACES = 3 };

struct snapshot_exchange
{
    struct snapshot *place; /* Array of the SNAPSHOT_EXCHANGE_PLACES buffers. */
    unsigned back;          /* Index of the buffer that the event loop writes. */
    unsigned front;         /* Index of the buffer that the HTTP thread reads. */
    /* Index of the third buffer, which neither thread uses now. An additional bit is set if the
     * HTTP thread has not read the snapshot in this buffer. Both threads access `middle`. */
    atomic_uint middle;
    uint64_t n; /* Number of published snapshots. Used by the event loop only. */
};

/* Allocates the buffers. Returns 0 or -ENOMEM. */
int snapshot_exchange_open(struct snapshot_exchange *b);
void snapshot_exchange_close(struct snapshot_exchange *b);

/* Returns the buffer for the next snapshot. The buffer contains an older snapshot or zeros. */
struct snapshot *snapshot_exchange_blank(struct snapshot_exchange *b);
/* Publishes the filled buffer as the newest snapshot and numbers it. */
void snapshot_exchange_publish(struct snapshot_exchange *b);

/* Returns the newest complete snapshot, all zeros before the first one. Valid until the next call
 * of this function. */
const struct snapshot *snapshot_exchange_read(struct snapshot_exchange *b);

#endif
