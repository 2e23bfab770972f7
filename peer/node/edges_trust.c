/* peer/node/edges_trust.c -- who was distrusted is left alone, and asked again later. */
#include "peer/node/edges.h"

/* In the last phase no training would mend what it does: it has no other chance. */
bool edges_bars(const struct edges *es, const struct neighbour *b)
{
    bool last = b->n_barred > 0 && es->beat >= es->workshop->run.rounds;
    return last || es->env->now_us < b->barred_us;
}

bool edges_found_out(const struct edges *es, const struct neighbour *b)
{
    bool known = edges_bars(es, b) || quarantine_knows(&es->sessions->quarantine, b->edge.id);
    return known && b->edge.state != EDGE_OPEN;
}

/* For 5 s, and for twice as long each time, up to 23 hours. */
static void bar(struct edges *es, struct neighbour *b)
{
    enum { FIRST_S = 5, DOUBLINGS = 14 };
    const struct member *m = members_find(es->env->members, b->edge.id);
    int64_t s = (int64_t)FIRST_S << (b->n_barred < DOUBLINGS ? b->n_barred : DOUBLINGS);
    uint8_t out[16];
    b->n_barred++;
    es->n_distrusted++;
    b->barred_us = es->env->now_us + s * 1000000;
    b->edge.epoch = b->edge.n_distrusted = 0;
    edge_pause(&b->edge, true);
    b->must_ask = true;
    if (b->link != NULL) /* They need not wait for us meanwhile. */
        sessions_send(es->sessions, b->link, true, out, wire_put_edge_close(out, sizeof out), NULL);
    env_note(es->env, NOTE_WARNING,
             "%s sends what no model of this run can be: nothing is exchanged with it for %lld s",
             m != NULL ? m->record->name : "a neighbour", (long long)s);
}

void edges_bar_distrusted(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++)
        if (es->at[i]->edge.n_distrusted > 0)
            bar(es, es->at[i]);
}
