/* gossip/exchange/edge.c -- the protocol of an edge: both ends agree on epoch and round after a
 * lost session; received deltas are checked and stored. */
#include "gossip/exchange/edge.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int edge_init(struct edge *e, const uint8_t self[WIRE_ID_BYTES], const uint8_t other[WIRE_ID_BYTES],
              size_t cap)
{
    *e = (struct edge){.low = memcmp(self, other, WIRE_ID_BYTES) < 0, .cap = cap};
    memcpy(e->id, other, WIRE_ID_BYTES);
    e->got[0].bytes = malloc(cap);
    e->got[1].bytes = malloc(cap);
    e->spare = malloc(cap);
    if (e->got[0].bytes != NULL && e->got[1].bytes != NULL && e->spare != NULL)
        return 0;
    edge_close(e);
    return -ENOMEM;
}

void edge_forget_parts(struct edge *e)
{
    e->got[0].n_parts = e->got[1].n_parts = 0;
}

/* Forgets the deltas of both ends, so that none of them is sent again or applied. Called before an
 * edge begins a new epoch, and when the edge closes. */
static void forget_deltas(struct edge *e)
{
    packet_release(e->cur.payload);
    packet_release(e->prev.payload);
    e->cur.payload = e->prev.payload = NULL;
    e->got[0].full = e->got[1].full = false;
    edge_forget_parts(e);
    e->run_round = 0;
    e->settled = 0;
}

void edge_close(struct edge *e)
{
    forget_deltas(e);
    free(e->got[0].bytes);
    free(e->got[1].bytes);
    free(e->spare);
    e->got[0].bytes = e->got[1].bytes = e->spare = NULL;
    e->state = EDGE_CLOSED;
}

void edge_ask(struct edge *e, uint64_t nonce, uint64_t boot, bool anew, struct wire_edge *m)
{
    e->state = EDGE_ASKING;
    e->nonce = nonce != 0 ? nonce : 1; /* In the field `answers`, 0 means "no answer". */
    e->asked = true;
    e->said = e->restored;
    e->said_first = !e->has_heard;
    if (anew)
        /* An epoch of 0 never matches the neighbour's epoch, so both ends reset the edge. */
        e->epoch = 0;
    *m = (struct wire_edge){.epoch = e->epoch,
                            .round = e->round,
                            .nonce = e->nonce,
                            .answers = e->heard ? e->theirs.nonce : 0,
                            .boot = boot,
                            .restored = e->said,
                            .first = e->said_first};
}

bool edge_hear(struct edge *e, const struct wire_edge *m)
{
    bool is_answer = m->answers != 0;
    bool crosses = !is_answer && e->asked;
    bool is_pair = crosses && e->said_first && m->first;
    e->has_heard = true;
    if ((is_answer && m->answers != e->nonce) || (crosses && !is_pair && e->low))
        return false;
    e->heard = true;
    e->theirs = *m;
    /* edge_pause() may have cleared `asked` since this peer sent the request that is answered. */
    if (is_answer)
        e->asked = true;
    return !is_answer && !is_pair;
}

/* Returns the number of the next epoch, equal at both ends: a hash of both boot ids and nonces, in
 * the order of the two identities. The result is never 0, because 0 means "no epoch". */
static uint64_t next_epoch(const struct edge *e, uint64_t our_boot)
{
    uint64_t own = rng_at(our_boot, e->nonce);
    uint64_t other = rng_at(e->theirs.boot, e->theirs.nonce);
    return e->low ? rng_at(own, other) | 1 : rng_at(other, own) | 1;
}

/* Returns whether this epoch can continue on the new session (rule 3 of edge.h). If only one end
 * was restored from a checkpoint, it may lack exchanges that the other end has applied, and the
 * epoch cannot continue. There is one exception: the same two processes have already continued this
 * epoch over an earlier session. If one of them then lacks deltas, the other one still stores
 * them. */
static bool both_know(const struct edge *e)
{
    bool met = e->met_boot != 0 && e->met_boot == e->theirs.boot;
    return e->said == e->theirs.restored || met;
}

/* Continues or resets the edge, by rule 3 at the top of edge.h. If one end needs a delta again that
 * is no longer stored, the edge is reset, because a newly encoded delta would differ. If the
 * neighbour has not reset the edge, its next delta is of the old epoch, and this peer answers it
 * with an EDGE message (edges_delta()). */
bool edge_agree(struct edge *e, uint64_t our_boot)
{
    if (!e->asked || !e->heard)
        return false;
    uint64_t theirs = e->theirs.round;
    bool same = e->epoch != 0 && e->epoch == e->theirs.epoch && both_know(e);
    bool ahead = same && theirs + 1 == e->round;
    bool behind = same && theirs == e->round + 1 && e->cur.payload != NULL;
    e->asked = e->heard = false;
    e->state = EDGE_OPEN;
    if (same && (theirs == e->round || ahead || behind)) {
        e->resend_cur = e->cur.payload != NULL;
        e->resend_prev = ahead && e->prev.payload != NULL;
        if (!ahead || e->resend_prev) {
            e->met_boot = e->theirs.boot;
            return true;
        }
    }
    e->met_boot = 0;
    forget_deltas(e);
    e->n_resets += e->opened; /* The first epoch of an edge does not count as a reset. */
    e->opened = true;
    e->restored = false;
    e->epoch = next_epoch(e, our_boot);
    e->round = 0;
    e->reset = true;
    e->resend_cur = e->resend_prev = false;
    return true;
}

/* If a neighbour was only silent, the exchange continues where it stopped. After a lost session,
 * both ends must send an EDGE message again. */
void edge_pause(struct edge *e, bool link_lost)
{
    if (link_lost)
        e->asked = e->heard = e->has_heard = false;
    if (e->state == EDGE_OPEN || (e->state == EDGE_ASKING && link_lost))
        e->state = EDGE_PAUSED;
}

/* Decides whether a delta or fragment with this epoch and round is expected now, a repeat, of
 * another epoch, or impossible. */
static enum edge_verdict place_of(const struct edge *e, uint64_t epoch, uint64_t round)
{
    if (epoch != e->epoch || e->epoch == 0)
        return EDGE_STALE;
    if (round < e->round)
        return EDGE_REPEAT;
    /* The neighbour needs this peer's delta to commit an exchange. The neighbour can therefore be
     * ahead by one round at most. */
    if (round > e->round + 1)
        return EDGE_VIOLATION;
    /* The neighbour claims to have committed the current round. This is impossible, because this
     * peer has not made its delta of that round yet. */
    if (round == e->round + 1 && e->cur.payload == NULL)
        return EDGE_VIOLATION;
    return e->got[round % 2].full ? EDGE_REPEAT : EDGE_ACCEPT;
}

enum edge_verdict edge_check(const struct edge *e, const struct wire_delta *d)
{
    enum edge_verdict v = place_of(e, d->epoch, d->round);
    bool proper = d->codec < DELTA_CODECS && d->degree > 0 && d->payload.n <= e->cap;
    return v != EDGE_STALE && d->round >= e->round && !proper ? EDGE_VIOLATION : v;
}

enum edge_verdict edge_part(struct edge *e, const struct wire_part *m)
{
    enum edge_verdict v = place_of(e, m->epoch, m->round);
    struct edge_got *g = &e->got[m->round % 2];
    if (v != EDGE_ACCEPT)
        return v;
    if (m->after == 0)
        g->n_parts = 0;
    if (m->after != g->n_parts || m->payload.n > e->cap - g->n_parts)
        return EDGE_VIOLATION;
    g->n_parts += m->payload.n;
    memcpy(g->bytes + e->cap - g->n_parts, m->payload.p, m->payload.n);
    return EDGE_ACCEPT;
}

void edge_gather(struct edge *e, struct wire_delta *d)
{
    struct edge_got *g = &e->got[d->round % 2];
    if (d->payload.n == 0 && g->n_parts > 0) {
        memmove(g->bytes, g->bytes + e->cap - g->n_parts, g->n_parts);
        d->payload = (struct bytes){g->bytes, g->n_parts};
    }
    g->n_parts = 0;
}

void edge_store(struct edge *e, const struct wire_delta *d, const struct sketch_message *sketch)
{
    struct edge_got *g = &e->got[d->round % 2];
    assert(!g->full && d->payload.n <= e->cap);
    /* edge_gather() may already have put the payload into this buffer, so source and destination of
     * the copy may overlap. */
    memmove(g->bytes, d->payload.p, d->payload.n);
    g->n_bytes = d->payload.n;
    g->head = *d;
    /* The byte ranges in the received header *d point into the message, which is not kept. The
     * range of the payload must therefore point to the copy of the payload. The caller has already
     * copied the sketch. */
    g->head.payload = (struct bytes){g->bytes, g->n_bytes};
    g->head.sketch = (struct bytes){0};
    g->sketch = *sketch;
    g->full = true;
    e->restored = false;
}

bool edge_ready(const struct edge *e)
{
    return e->epoch != 0 && e->cur.payload != NULL && e->got[e->round % 2].full && !e->reset;
}

bool edge_wants_delta(const struct edge *e)
{
    return e->cur.payload == NULL;
}

const struct edge_got *edge_theirs(const struct edge *e)
{
    return &e->got[e->round % 2];
}

uint8_t *edge_take(struct edge *e)
{
    struct edge_got *g = &e->got[e->round % 2];
    assert(g->full);
    /* The slot of the delta that the job takes gets the spare buffer. A delta of a new epoch can
     * then be stored while the job still reads the old buffer. */
    uint8_t *taken = g->bytes;
    g->bytes = e->spare;
    e->spare = taken;
    return taken;
}

void edge_advance(struct edge *e)
{
    struct edge_got *g = &e->got[e->round % 2];
    e->settled = g->head.settled;
    e->run_round = g->head.run_round;
    g->full = false;
    /* The neighbour may not have committed this round yet, so this peer keeps its delta of the
     * round for one more round. */
    packet_release(e->prev.payload);
    e->prev = e->cur;
    e->cur.payload = NULL;
    assert(!e->restored); /* A commit needs a received delta. */
    e->round++;
    e->n_exchanges++;
}
