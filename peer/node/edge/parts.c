/* peer/node/edge/parts.c -- sends fragments of deltas, and records how many bytes were sent over
 * each edge. */
#include "peer/node/edge/parts.h"

#include "peer/node/edge/edges_state.h"

#include <assert.h>
#include <string.h>

/* Returns a packet with a copy of the bytes, valid until the next step of the node. Returns NULL if
 * there is no memory or too many packets are in use. No fragment is then sent, and the DELTA
 * carries the whole payload. */
static struct packet *copy_of(struct edges *es, struct bytes bytes)
{
    bool room = es->n_parts < EDGES_PARTS_MAX;
    struct packet *p = room ? packet_get(&es->workshop->mixing.packets) : NULL;
    if (p == NULL)
        return NULL;
    assert(bytes.n <= p->cap);
    memcpy(p->bytes, bytes.p, bytes.n);
    p->len = bytes.n;
    es->part[es->n_parts++] = p;
    return p;
}

static void send_part(struct edges *es, struct neighbour *b, struct packet *body)
{
    uint8_t head[WIRE_HEAD_MAX];
    struct wire_part m = {.epoch = b->part.epoch, .round = b->part.round, .after = b->part.n};
    m.payload.p = packet_bytes(body, &m.payload.n);
    sessions_send(es->sessions, b->link, true, head, wire_put_part(head, sizeof head, &m), body);
    b->part.n += m.payload.n;
}

static const struct mixing_task *task_of(const struct edges *es, const struct neighbour *b)
{
    const struct mixing *m = &es->workshop->mixing;
    for (size_t i = 0; i < m->n_tasks; i++)
        if (m->task[i].edge == &b->edge && mixing_has_parts(m, &m->task[i]))
            return &m->task[i];
    return NULL;
}

/* Returns whether the fragment in front of the last `after` bytes of the delta can be sent to b.
 * The conditions are that the edge is open, that this job makes a delta for it, and that all
 * earlier fragments were sent on its current session. */
static bool takes(const struct edges *es, struct neighbour *b, size_t after)
{
    const struct edge *e = &b->edge;
    const struct mixing_task *t = task_of(es, b);
    bool open = e->state == EDGE_OPEN && b->link != NULL && b->link->hung_up == NULL
                && !e->resend_prev && !e->resend_cur && !edges_bars(es, b);
    if (t == NULL || !open || e->epoch != t->epoch || e->reset)
        /* This job makes no delta for the edge, or the delta cannot be sent: the edge is not open,
         * or was reset during the job. */
        return false;
    uint64_t round = mixing_edge_round(t);
    if (after == 0)
        b->part = (struct neighbour_part){
            .link = b->link->number, .epoch = e->epoch, .round = round, .n = 0};
    return b->part.n == after && b->part.link == b->link->number && b->part.epoch == e->epoch
           && b->part.round == round;
}

void parts_begin(struct edges *es)
{
    es->parts_told = 0;
}

void parts_send(struct edges *es, size_t n)
{
    const struct mixing *m = &es->workshop->mixing;
    size_t after = es->parts_told;
    if (m->parts.of == NULL || n <= after)
        return;
    struct packet *body = copy_of(es, mixing_parts(m, after, n));
    for (size_t i = 0; i < es->n && body != NULL; i++)
        if (takes(es, es->at[i], after)) {
            send_part(es, es->at[i], body);
            es->bytes_ahead += n - after;
        }
    es->parts_told = n;
}

bool parts_complete(struct edges *es, struct neighbour *b, const struct edge_sent *sent)
{
    struct neighbour_part p = b->part;
    assert(b->link != NULL && sent->payload != NULL);
    bool begun = p.n > 0 && p.n <= sent->n_parts && p.link == b->link->number
                 && p.epoch == sent->head.epoch && p.round == sent->head.round;
    size_t n_bytes;
    const uint8_t *bytes = packet_bytes(sent->payload, &n_bytes);
    bool any = begun && n_bytes > p.n;
    struct packet *rest = any ? copy_of(es, (struct bytes){bytes, n_bytes - p.n}) : NULL;
    if (rest != NULL)
        send_part(es, b, rest);
    /* If the delta is sent again, its DELTA message contains the whole payload, and no fragment. */
    b->part.n = 0;
    return begun && (rest != NULL || !any);
}

void parts_release(struct edges *es)
{
    while (es->n_parts > 0)
        packet_release(es->part[--es->n_parts]);
}
