/* peer/node/edges_trust.c -- who was distrusted is left alone, and asked again later.
 *
 *   what is known of the other end            barred for  in the last phase
 *   as far on as we are, or it is the end     5 s ...     for good: no training would mend it
 *   ahead of us, and so is everybody:
 *   we are who cannot tell                    5 s ...     tried once more
 *   WELL exchanges since                      no more     as any other
 */
#include "peer/node/edges.h"

enum { WELL = 32 /* Exchanges of an edge begun anew. */ };

static bool last_phase(const struct edges *es)
{
    return es->beat >= es->workshop->run.rounds;
}

bool edges_bars(const struct edges *es, const struct neighbour *b)
{
    return last_phase(es) ? b->for_good : es->env->now_us < b->barred_us;
}

bool edges_found_out(const struct edges *es, const struct neighbour *b)
{
    bool known = edges_bars(es, b) || quarantine_knows(&es->sessions->quarantine, b->edge.id);
    return known && b->edge.state != EDGE_OPEN;
}

/* Without lock step, the least round that any neighbour is at, by its word: one of them alone may lie. */
static uint64_t least_round(const struct edges *es)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < es->n; i++)
        if (es->at[i]->link != NULL && es->at[i]->edge.run_round < least)
            least = es->at[i]->edge.run_round;
    return least < UINT64_MAX ? least : 0;
}

/* What trust.h goes by is our own way from x0, which says little of those that have come much farther:
 * after we were stopped, have skipped rounds or, without lock step, were the slowest of all that we
 * hear. In lock step nobody's word is needed for that. */
static bool are_ahead(const struct edges *es, uint64_t skipped)
{
    uint64_t own = es->workshop->mixing.announced.run_round;
    uint64_t others = es->workshop->run.policy == RUN_SYNC ? own : least_round(es);
    return !last_phase(es) && 4 * others > 5 * (own - skipped);
}

static void tell(const struct edges *es, const struct neighbour *b, bool ahead, int64_t s)
{
    const struct member *m = members_find(es->env->members, b->edge.id);
    env_note(es->env, NOTE_WARNING, "%s %s: nothing is exchanged with it for %lld s",
             m != NULL ? m->record->name : "a neighbour",
             ahead ? "is so much farther on that its model may be none of this run"
                   : "sends what no model of this run can be",
             (long long)s);
}

/* For 5 s, and for twice as long each time, up to 23 hours. */
static void bar(struct edges *es, struct neighbour *b, bool ahead)
{
    enum { FIRST_S = 5, DOUBLINGS = 14 };
    int64_t s = (int64_t)FIRST_S << (b->n_barred < DOUBLINGS ? b->n_barred : DOUBLINGS);
    uint8_t out[16];
    b->n_barred++;
    b->distrusted = true;
    b->for_good |= !ahead;
    es->n_distrusted += !ahead;
    if (ahead)
        trust_forgive(&b->edge.trust);
    b->barred_us = es->env->now_us + s * 1000000;
    b->edge.epoch = b->edge.n_distrusted = 0;
    edge_pause(&b->edge, true);
    b->must_ask = true;
    if (b->link != NULL) /* They need not wait for us meanwhile. */
        sessions_send(es->sessions, b->link, true, out, wire_put_edge_close(out, sizeof out), NULL);
    tell(es, b, ahead, s);
}

void edges_judge(struct edges *es, uint64_t skipped)
{
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        if (b->edge.n_distrusted > 0)
            bar(es, b, are_ahead(es, skipped));
        else if (b->edge.epoch != 0 && b->edge.round >= WELL)
            b->distrusted = b->for_good = false;
    }
}
