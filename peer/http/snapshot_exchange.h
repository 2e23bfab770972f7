/* peer/http/snapshot_exchange.h -- passes the newest snapshot to the HTTP thread without locks.
 *
 *   loop thread                                      HTTP thread
 *   snapshot_exchange_blank() ... fill ... snapshot_exchange_publish()       snapshot_exchange_read()
 *        [ back ]  <---swap--->  [ middle ]  <---swap--->  [ front ]
 *
 * There are three buffers: one is being written, one is the newest complete snapshot, and one is being
 * read. A swap is one atomic exchange. The loop never waits for a reader, and a reader may use its
 * snapshot for any time.
 */
#ifndef PEER_HTTP_SNAPSHOT_EXCHANGE_H
#define PEER_HTTP_SNAPSHOT_EXCHANGE_H

#include "peer/http/snapshot.h"

#include <stdatomic.h>

enum { SNAPSHOT_EXCHANGE_PLACES = 3 };

struct snapshot_exchange
{
    struct snapshot *place; /* SNAPSHOT_EXCHANGE_PLACES of them. */
    unsigned back;          /* The loop thread's. */
    unsigned front;         /* The HTTP thread's. */
    atomic_uint middle;     /* Neither's: a place, and whether it has not been read yet. */
    uint64_t n;             /* Published so far; the loop thread's. */
};

/* 0 or -ENOMEM. */
int snapshot_exchange_open(struct snapshot_exchange *b);
void snapshot_exchange_close(struct snapshot_exchange *b);

/* Returns the buffer for the next snapshot. It contains an older snapshot or zeros. */
struct snapshot *snapshot_exchange_blank(struct snapshot_exchange *b);
/* Publishes the filled buffer as the newest snapshot and numbers it. */
void snapshot_exchange_publish(struct snapshot_exchange *b);

/* The newest that is whole; all zeros before the first. Valid until the next call. */
const struct snapshot *snapshot_exchange_read(struct snapshot_exchange *b);

#endif
