/* peer/node/edge/edges_beat.c -- sends this peer's step counter to neighbours (BEAT) when no delta
 * carries it. */
#include "peer/node/edge/edges_state.h"

/* Limits how often a BEAT (report of this peer's progress) with unchanged values is repeated on a
 * session, so that few BEATs wait behind a long delta. The first AGAIN equal BEATs are all sent,
 * because the neighbour ignores BEATs until it has an edge to this peer. After these only
 * repetitions number 16, 32, 64 and so on are sent. */
enum { AGAIN = 8 };

static bool is_worth_saying(const struct edges *es, struct neighbour *b)
{
    struct neighbour_told *t = &b->told;
    bool same = t->link == b->link->number && t->beat == es->beat && t->due == es->due
                && t->settled == es->settled;
    uint32_t n = same ? t->n + 1 : 1;
    *t = (struct neighbour_told){b->link->number, es->beat, es->due, es->settled, n};
    return n <= AGAIN || (n & (n - 1)) == 0;
}

/* The BEAT is queued behind the deltas of the session, so that it does not overtake them. */
void edges_say_word(struct edges *es, struct neighbour *b)
{
    uint8_t out[32];
    struct wire_beat m = {.run_round = es->beat, .checkpoint = es->due, .settled = es->settled};
    if (is_worth_saying(es, b))
        sessions_send(es->sessions, b->link, true, out, wire_put_beat(out, sizeof out, &m), NULL);
}

void edges_say_beat(struct edges *es, uint64_t beat, uint64_t due, uint32_t settled)
{
    es->beat = beat;
    es->due = due;
    es->settled = settled;
    for (size_t i = 0; i < es->n && run_staleness(&es->workshop->run) > 0; i++) {
        struct neighbour *b = es->at[i];
        if (b->edge.state == EDGE_OPEN && b->link != NULL && !b->edge.resend_cur)
            edges_say_word(es, b);
    }
}
