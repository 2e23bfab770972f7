/* peer/node/edge/delayed_exchange.h -- detects edges that mix outdated replicas.
 *
 * An exchange moves both models by gamma w (b - a), where a and b are the replicas of the models
 * when the deltas of the exchange were made. If that was long ago, the exchange may move models
 * apart that are close now. An exchange is old if its edge was paused while the other edges
 * continued. Without lock step it is also old if its edge was open but slower than the other edges.
 * The consensus phase ignores estimates of the distance that were made before an old exchange.
 *
 * The state of an edge changes with these events (SCHEDULE_BRIEF_US is 1 s):
 *
 *   - normal to stale: the edge opens after more than 1 s in which it was not open.
 *   - normal to late: a delta arrives more than 1 s after the previous delta or the opening of the
 *     edge, and this peer's own delta of the exchange is more than 2 rounds old.
 *   - late to stale: the exchange is committed, and its squared distance D^2 exceeds the limit
 *     most2.
 *   - late to normal: the exchange is committed, and D^2 is at most most2.
 *   - stale to normal: after 2 exchanges or more, this peer's last delta left at most most2 (as a
 *     squared length) unsent. After 64 exchanges a stale edge becomes normal in any case.
 *
 * The distance D = |b - a| of the replicas decides whether a late exchange matters. If all deltas
 * of an edge take long, every exchange is late, but it still brings the two models together.
 */
#ifndef PEER_NODE_EDGE_DELAYED_EXCHANGE_H
#define PEER_NODE_EDGE_DELAYED_EXCHANGE_H

#include "gossip/exchange/edge.h"

/* State of one edge (see the list at the top of this file): stale if `is` is set, late if `late` is
 * set, else normal. */
struct delayed_exchange
{
    bool is; /* True: the edge is stale, that is, it mixes outdated replicas. */
    /* Number of exchanges of the edge that were complete when the edge became stale (began to mix
     * outdated replicas). */
    uint64_t since;
    /* Time at which the edge opened or the neighbour's last delta arrived, whichever is later, in
     * microseconds. */
    int64_t came_us;
    /* True: the neighbour's last delta was late, and its exchange is not evaluated yet. */
    bool late;
    /* Number of complete exchanges of the edge when the late delta arrived, which belongs to the
     * next exchange. */
    uint64_t done;
};

/* Returns whether this peer, at step counter `beat`, has done at most 2 rounds since it made its
 * last delta for the edge. In lock step the replicas of the edge are then up to date. Time does not
 * matter: after a restart from checkpoints the edge may have been closed for hours. */
bool delayed_exchange_rested(const struct edge *e, uint64_t beat);

/* Records that the edge opens at time now_us. open_us: last time at which it was open. */
void delayed_exchange_opened(struct delayed_exchange *s, const struct edge *e, int64_t open_us,
                             int64_t now_us);
/* Records that the neighbour's delta has arrived at time now_us. beat: step counter of this
 * peer. */
void delayed_exchange_delta(struct delayed_exchange *s, const struct edge *e, uint64_t beat,
                            int64_t now_us);
/* Returns whether the open edge is stale (mixes outdated replicas) after the last job, and updates
 * its state. most2: squared distance that is small enough to ignore. */
bool delayed_exchange_look(struct delayed_exchange *s, const struct edge *e, double most2);

#endif
