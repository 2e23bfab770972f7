/* peer/node/delayed_exchange.h -- exchanges that were begun long ago, and may part models that were near.
 *
 * An exchange moves both models by w (b - a): by replicas, as they were when its deltas were made.
 * Mostly that was a moment ago. It was not where an edge is open again after it was away, nor
 * where it stayed open and nothing came through: without lock step the other edges go on.
 *
 *   open again after more than BRIEF ----------------------------------> stale
 *   a delta that came more than BRIEF after the one before, and
 *     some beats after ours was made --> late --mixed, D^2 > most2-----> stale
 *   stale --two exchanges, of which the last leaves little unsent------> not any more
 *
 * Whether a late one matters is told by the distance D of the replicas that it mixes: an edge
 * whose every delta takes long is late each time, and draws its ends together all the same.
 */
#ifndef PEER_NODE_DELAYED_EXCHANGE_H
#define PEER_NODE_DELAYED_EXCHANGE_H

#include "gossip/exchange/edge.h"

struct delayed_exchange
{
    bool is;         /* Its replicas are of back then, */
    uint64_t since;  /* when so many exchanges had been done. */
    int64_t came_us; /* When it opened, or the last delta of theirs came. */
    bool late;       /* That one was late; it is mixed as the exchange after */
    uint64_t done;   /* so many. */
};

/* In lock step at this beat: have we not moved on since the edge's last delta? So it is where both come
 * from checkpoints of one beat. Others of the same beat may have gone on around the edge. */
bool delayed_exchange_rested(const struct edge *e, uint64_t beat);

/* The edge is open again, for now_us, and was last at open_us. */
void delayed_exchange_opened(struct delayed_exchange *s, const struct edge *e, int64_t open_us,
                             int64_t now_us);
/* A delta of theirs is here at our own `beat`. */
void delayed_exchange_delta(struct delayed_exchange *s, const struct edge *e, uint64_t beat,
                            int64_t now_us);
/* Is the open edge stale, after the last job? most2: a squared distance that hardly matters. */
bool delayed_exchange_look(struct delayed_exchange *s, const struct edge *e, double most2);

#endif
