/* peer/node/edge/delayed_exchange.c -- detects edges that mix outdated replicas. */
#include "peer/node/edge/delayed_exchange.h"

#include "peer/node/timers.h"

#include <assert.h>

enum { FEW = 2 }; /* Number of rounds that normally pass while a delta is on its way. */

static const struct edge_sent *last_sent(const struct edge *e)
{
    return e->cur.payload != NULL ? &e->cur : &e->prev;
}

bool delayed_exchange_rested(const struct edge *e, uint64_t beat)
{
    const struct edge_sent *sent = last_sent(e);
    return sent->payload != NULL && beat <= sent->head.run_round + FEW;
}

static void begin(struct delayed_exchange *s, const struct edge *e)
{
    s->is = true;
    s->since = e->n_exchanges;
}

/* An edge that was reset, or has sent no delta yet, has no outdated replicas. A short interruption
 * does not matter, because other peers have done only a few rounds in that time. */
void delayed_exchange_opened(struct delayed_exchange *s, const struct edge *e, int64_t open_us,
                             int64_t now_us)
{
    assert(s->came_us <= now_us && open_us <= now_us);
    s->came_us = now_us;
    bool said = !e->reset && (e->n_exchanges > 0 || e->cur.payload != NULL);
    if (said && now_us - open_us > SCHEDULE_BRIEF_US)
        begin(s, e);
}

void delayed_exchange_delta(struct delayed_exchange *s, const struct edge *e, uint64_t beat,
                            int64_t now_us)
{
    const struct edge_sent *cur = &e->cur;
    bool behind = cur->payload != NULL && beat > cur->head.run_round + FEW;
    if (behind && now_us - s->came_us > SCHEDULE_BRIEF_US) {
        s->late = true;
        s->done = e->n_exchanges;
    }
    s->came_us = now_us;
}

/* Returns whether a stale edge (one that mixes outdated replicas) stays stale: for at least LEAST
 * exchanges, in which both ends send new deltas, and then until this peer's last delta left little
 * of the model unsent. With a sparse codec this may take many exchanges. After MOST exchanges the
 * edge is therefore no longer stale in any case. */
static bool goes_on(const struct delayed_exchange *s, const struct edge *e, double most2)
{
    enum { LEAST = 2, MOST = 64 };
    const struct edge_sent *sent = last_sent(e);
    uint64_t done = e->n_exchanges - s->since;
    bool near = sent->payload != NULL && (double)sent->head.e2 <= most2;
    return s->is && done < MOST && !(done >= LEAST && near);
}

bool delayed_exchange_look(struct delayed_exchange *s, const struct edge *e, double most2)
{
    /* A reset of the edge does not reset its number of exchanges. */
    assert(!s->is || s->since <= e->n_exchanges);
    assert(!s->late || s->done <= e->n_exchanges);
    if (s->late && e->n_exchanges > s->done) {
        s->late = false;
        if (!(e->gamma.d2 <= most2))
            begin(s, e);
    }
    s->is = goes_on(s, e, most2);
    return s->is;
}
