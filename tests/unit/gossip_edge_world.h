/* tests/unit/gossip_edge_world.h -- the two ends of one edge, to test its protocol: in one scenario
 * step by step, with lost sessions at every possible point, and with random events and checks of
 * invariants.
 *
 *   end 0 --queue[0]--> end 1       messages of one session, in order;
 *   end 0 <--queue[1]-- end 1       a cut loses messages that are under way
 *
 * An end does what the node and CHOCO do with an edge, without the vectors: a job commits and
 * encodes, and messages may arrive while it runs. Each payload is unique, so that the logs of
 * commits show which end applied which payload. */
#ifndef TESTS_UNIT_GOSSIP_EDGE_WORLD_H
#define TESTS_UNIT_GOSSIP_EDGE_WORLD_H

#include "gossip/exchange/edge.h"
#include "nn/math/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    PAYLOAD = 16, /* Length of a payload in bytes. */
    QUEUE = 512,
    LOG = 16384
};

enum kind { SAY_EDGE, SAY_CLOSE, SAY_DELTA };

struct message
{
    enum kind kind;
    uint64_t sent; /* Time at which the message was sent (world.now). */
    struct wire_edge edge;
    struct wire_delta delta;
    uint64_t tag; /* A number that stands for the sketch of the delta. */
    uint8_t payload[PAYLOAD];
};

struct queue
{
    struct message at[QUEUE];
    uint32_t first, n;
};

struct commit
{
    uint64_t epoch, round, own, other;
};

struct job
{
    bool runs, commit, encode;
    uint64_t epoch, round;
    const uint8_t *theirs; /* Payload of the other end's delta that the job took from the edge. */
    /* Copy of the payload *theirs, which must not change while the job runs. */
    uint8_t copy[PAYLOAD];
    size_t n;
    uint64_t other;
    struct packet *ours;
    struct edge_sent made;
};

struct end
{
    uint8_t id[WIRE_ID_BYTES];
    uint64_t boot, serial;
    struct packet_pool pool;
    bool present, linked;
    bool stored; /* The other end's EDGE message arrived while this end had no edge. */
    struct wire_edge early;
    struct edge e;
    struct job job;
    uint32_t n_log;
    struct commit *log;
};

struct world
{
    struct end end[2];
    struct queue queue[2];
    bool up;
    uint64_t now; /* Time in steps. Only tests with a latency advance it. */
    struct rng rng;
    uint64_t n_edges_sent, limit; /* limit: first round for which no delta is made. */
    uint64_t seed;
};

/* ---- one end ---- */

static inline void put(struct world *w, int from, const struct message *m)
{
    struct queue *q = &w->queue[from];
    if (!w->up)
        return;
    if (q->n == QUEUE)
        fail_msg("seed %llu: messages without end", (unsigned long long)w->seed);
    struct message *slot = &q->at[(q->first + q->n++) % QUEUE];
    *slot = *m;
    slot->sent = w->now;
    w->n_edges_sent += m->kind == SAY_EDGE;
}

static inline void end_ask(struct world *w, int k, bool anew)
{
    struct end *d = &w->end[k];
    struct message m = {.kind = SAY_EDGE};
    edge_ask(&d->e, rng_u64(&w->rng), d->boot, anew, &m.edge);
    put(w, k, &m);
}

/* Records the other end's EDGE message, answers it if necessary, and opens the edge if the two ends
 * agree. */
static inline void end_hear(struct world *w, int k, const struct wire_edge *theirs)
{
    struct end *d = &w->end[k];
    if (edge_hear(&d->e, theirs))
        end_ask(w, k, false);
    (void)edge_agree(&d->e, d->boot);
}

/* Sends the deltas of an edge that are marked to be sent, as edges_update() in the node does. */
static inline void end_send(struct world *w, int k)
{
    struct end *d = &w->end[k];
    struct edge *e = &d->e;
    if (!d->present || !d->linked || e->state != EDGE_OPEN)
        return;
    struct edge_sent *sent[2] = {e->resend_prev ? &e->prev : NULL, e->resend_cur ? &e->cur : NULL};
    for (int i = 0; i < 2; i++) {
        if (sent[i] == NULL || sent[i]->payload == NULL)
            continue;
        struct message m = {.kind = SAY_DELTA, .delta = sent[i]->head, .tag = sent[i]->sketch.tag};
        assert_int_equal(sent[i]->payload->len, PAYLOAD);
        memcpy(m.payload, sent[i]->payload->bytes, PAYLOAD);
        put(w, k, &m);
    }
    e->resend_prev = e->resend_cur = false;
}

static inline void end_open(struct world *w, int k)
{
    struct end *d = &w->end[k];
    assert_int_equal(edge_init(&d->e, d->id, w->end[1 - k].id, PAYLOAD), 0);
    d->present = true;
    if (!d->linked)
        return;
    end_ask(w, k, false);
    if (d->stored) {
        d->stored = false;
        end_hear(w, k, &d->early);
    }
}

/* The job must have ended, because the node closes edges only between jobs. */
static inline void end_close(struct world *w, int k)
{
    struct end *d = &w->end[k];
    assert_false(d->job.runs);
    edge_close(&d->e);
    d->present = false;
    put(w, k, &(struct message){.kind = SAY_CLOSE});
}

static inline void job_start(struct world *w, int k)
{
    struct end *d = &w->end[k];
    struct edge *e = &d->e;
    struct job *j = &d->job;
    if (!d->present || j->runs)
        return;
    *j = (struct job){.commit = edge_ready(e)};
    uint64_t round = e->round + j->commit;
    j->encode = e->state == EDGE_OPEN && (j->commit || edge_wants_delta(e)) && round < w->limit;
    j->runs = j->commit || j->encode || e->reset;
    j->epoch = e->epoch;
    j->round = e->round;
    if (j->commit) {
        const struct edge_got *g = edge_theirs(e);
        assert_int_equal(g->head.round, e->round);
        assert_int_equal(g->head.epoch, e->epoch);
        j->n = g->n_bytes;
        memcpy(&j->other, g->bytes, sizeof j->other);
        /* The stored sketch must be the one that arrived with the delta of this job. */
        assert_int_equal(g->sketch.tag, j->other);
        memcpy(j->copy, g->bytes, j->n);
        j->theirs = edge_take(e);
        j->ours = e->cur.payload;
        packet_hold(j->ours);
    }
    e->reset = false;
    if (!j->encode)
        return;
    struct packet *p = packet_get(&d->pool);
    uint64_t word = d->boot << 32 | ++d->serial;
    p->len = PAYLOAD;
    memset(p->bytes, (int)d->serial, PAYLOAD);
    memcpy(p->bytes, &word, sizeof word);
    j->made = (struct edge_sent){.payload = p,
                                 .sketch.tag = word,
                                 .head = {.epoch = j->epoch,
                                          .round = round,
                                          .degree = 2,
                                          .run_round = round,
                                          .settled = (uint32_t)round}};
}

/* Logs a commit. Rounds must be in order, and the other end must have applied the same two
 * deltas. */
static inline void log_commit(struct world *w, int k, const struct commit *c)
{
    struct end *d = &w->end[k], *o = &w->end[1 - k];
    const struct commit *last = d->n_log > 0 ? &d->log[d->n_log - 1] : NULL;
    uint64_t due = last != NULL && last->epoch == c->epoch ? last->round + 1 : 0;
    assert_int_equal(c->round, due); /* Each round must be committed once, in order. */
    for (uint32_t i = o->n_log; i-- > 0 && o->n_log - i < 8;)
        if (o->log[i].epoch == c->epoch && o->log[i].round == c->round) {
            assert_int_equal(o->log[i].own, c->other);
            assert_int_equal(o->log[i].other, c->own);
        }
    assert_true(d->n_log < LOG);
    d->log[d->n_log++] = *c;
}

static inline void job_finish(struct world *w, int k)
{
    struct end *d = &w->end[k];
    struct edge *e = &d->e;
    struct job *j = &d->job;
    if (!j->runs)
        return;
    bool current = e->epoch == j->epoch && !e->reset;
    if (j->commit)
        /* Messages that arrived during the job must not have changed the payload. */
        assert_memory_equal(j->theirs, j->copy, j->n);
    if (j->commit && current) {
        struct commit c = {j->epoch, j->round, 0, j->other};
        memcpy(&c.own, j->ours->bytes, sizeof c.own);
        log_commit(w, k, &c);
        edge_advance(e);
        assert_int_equal(e->settled, j->round);
        assert_int_equal(e->run_round, j->round);
    }
    packet_release(j->ours);
    if (j->encode && current) {
        assert_null(e->cur.payload);
        e->cur = j->made;
        e->resend_cur = true;
    } else {
        packet_release(j->made.payload);
    }
    j->runs = false;
    end_send(w, k);
}

static inline void hear_delta(struct world *w, int k, const struct message *m)
{
    struct edge *e = &w->end[k].e;
    struct wire_delta d = m->delta;
    struct sketch_message sketch = {.tag = m->tag};
    d.payload = (struct bytes){m->payload, PAYLOAD};
    switch (edge_check(e, &d)) {
    case EDGE_ACCEPT:
        edge_store(e, &d, &sketch);
        assert_int_equal(edge_check(e, &d), EDGE_REPEAT);
        break;
    case EDGE_REPEAT:
        break;
    case EDGE_STALE:
        if (e->state == EDGE_OPEN)
            end_ask(w, k, false);
        break;
    case EDGE_VIOLATION:
        fail_msg("seed %llu: an honest end was taken for a hostile one",
                 (unsigned long long)w->seed);
    }
}

static inline void deliver(struct world *w, int from)
{
    int k = 1 - from;
    struct end *d = &w->end[k];
    struct queue *q = &w->queue[from];
    if (!w->up || q->n == 0 || !d->linked)
        return;
    struct message m = q->at[q->first];
    q->first = (q->first + 1) % QUEUE;
    q->n--;
    switch (m.kind) {
    case SAY_EDGE:
        if (!d->present) {
            d->stored = true;
            d->early = m.edge;
            return;
        }
        end_hear(w, k, &m.edge);
        end_send(w, k);
        break;
    case SAY_CLOSE:
        d->stored = false;
        if (!d->present)
            return;
        edge_pause(&d->e, true);
        end_ask(w, k, false);
        break;
    case SAY_DELTA:
        if (d->present)
            hear_delta(w, k, &m);
        break;
    }
}

/* ---- the link ---- */

static inline void notice_loss(struct world *w, int k)
{
    struct end *d = &w->end[k];
    if (w->up || !d->linked)
        return;
    d->linked = d->stored = false;
    if (d->present)
        edge_pause(&d->e, true);
}

static inline void cut(struct world *w)
{
    w->up = false;
    w->queue[0].n = w->queue[1].n = 0;
}

static inline void link_up(struct world *w)
{
    if (w->up)
        return;
    for (int k = 0; k < 2; k++)
        notice_loss(w, k);
    w->up = true;
    for (int k = 0; k < 2; k++) {
        w->end[k].linked = true;
        if (w->end[k].present)
            end_ask(w, k, false);
    }
}

/* Kills an end of the edge without warning, and starts it again without any memory. */
static inline void restart(struct world *w, int k)
{
    struct end *d = &w->end[k];
    cut(w);
    notice_loss(w, k);
    /* Finishes the running job of the killed end, so that the test leaks no memory. */
    job_finish(w, k);
    if (d->present)
        edge_close(&d->e);
    d->boot++;
    d->serial = 0;
    d->present = false;
    end_open(w, k);
}

static inline void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){
        .seed = seed, .limit = UINT64_MAX, .rng = rng_stream(rng_key(seed, RNG_TEST, 0, 0))};
    for (int k = 0; k < 2; k++) {
        struct end *d = &w->end[k];
        d->id[5] = (uint8_t)((unsigned)k ^ (seed & 1));
        d->boot = 100u * (unsigned)(k + 1);
        packet_pool_init(&d->pool, PAYLOAD);
        d->log = calloc(LOG, sizeof *d->log);
        assert_non_null(d->log);
    }
    for (int k = 0; k < 2; k++)
        end_open(w, k);
    assert_true(w->end[0].e.low != w->end[1].e.low);
}

static inline void world_close(struct world *w)
{
    for (int k = 0; k < 2; k++) {
        job_finish(w, k);
        if (w->end[k].present)
            edge_close(&w->end[k].e);
        packet_pool_close(&w->end[k].pool); /* Asserts that all packets were returned. */
        free(w->end[k].log);
    }
}

/* ---- invariants ---- */

static inline void check(const struct world *w)
{
    const struct edge *a = &w->end[0].e, *b = &w->end[1].e;
    if (!w->end[0].present || !w->end[1].present || a->epoch == 0 || a->epoch != b->epoch)
        return;
    uint64_t apart = a->round > b->round ? a->round - b->round : b->round - a->round;
    if (apart > 1)
        fail_msg("seed %llu: rounds %llu and %llu", (unsigned long long)w->seed,
                 (unsigned long long)a->round, (unsigned long long)b->round);
}

/* Makes events of both ends in turn, without any loss, until both have completed `more` further
 * exchanges. The ends must then agree in everything. */
static inline void run_fair(struct world *w, uint64_t more)
{
    struct edge *a = &w->end[0].e, *b = &w->end[1].e;
    link_up(w);
    for (int k = 0; k < 2; k++)
        if (!w->end[k].present)
            end_open(w, k);
    uint64_t edges = w->n_edges_sent;
    w->limit = UINT64_MAX;
    for (int i = 0; i < 400; i++) {
        deliver(w, 0);
        deliver(w, 1);
        job_start(w, i % 2);
        job_finish(w, 1 - i % 2);
        check(w);
        if (i == 60 && w->limit == UINT64_MAX)
            w->limit = (a->round > b->round ? a->round : b->round) + more;
    }
    if (w->n_edges_sent - edges > 8)
        fail_msg("seed %llu: %llu EDGE messages, and no end", (unsigned long long)w->seed,
                 (unsigned long long)(w->n_edges_sent - edges));
    if (a->state != EDGE_OPEN || b->state != EDGE_OPEN || a->epoch != b->epoch
        || a->round != b->round || a->round != w->limit)
        fail_msg("seed %llu: states %d %d, epochs %llx %llx, rounds %llu %llu "
                 "of %llu",
                 (unsigned long long)w->seed, a->state, b->state, (unsigned long long)a->epoch,
                 (unsigned long long)b->epoch, (unsigned long long)a->round,
                 (unsigned long long)b->round, (unsigned long long)w->limit);
    assert_int_equal(w->queue[0].n + w->queue[1].n, 0);
    assert_true(a->cur.payload == NULL && b->cur.payload == NULL);
    const struct end *x = &w->end[0], *y = &w->end[1];
    /* Compares the logs of the two ends, commit by commit, for the present epoch. */
    for (uint64_t r = 1; r <= a->round; r++) {
        const struct commit *p = &x->log[x->n_log - r], *q = &y->log[y->n_log - r];
        assert_int_equal(p->epoch, a->epoch);
        assert_int_equal(q->epoch, a->epoch);
        assert_int_equal(p->round, q->round);
        assert_true(p->own == q->other && p->other == q->own);
    }
}

/* Checks a run in which only links broke: after the first exchange the epoch must not have changed.
 * Before it, a lost EDGE message may leave only one end with an epoch. The edge is then reset,
 * which costs nothing. */
static inline void check_one_epoch(const struct world *w)
{
    const struct end *a = &w->end[0], *b = &w->end[1];
    assert_int_equal(a->n_log, b->n_log);
    for (uint32_t i = 0; i < a->n_log; i++)
        if (a->log[i].epoch != a->log[0].epoch)
            fail_msg("seed %llu: a reset without need", (unsigned long long)w->seed);
}

#endif
