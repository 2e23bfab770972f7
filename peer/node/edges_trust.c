/* peer/node/edges_trust.c -- who was distrusted is left alone, and asked again later.
 *
 *   what was seen of it                        barred for  in the consensus phase
 *   refused: its model was too far from ours   0.5 s ...   tried once more: we may not have been
 *                                                          far enough on to judge it
 *   refused in the consensus phase, or suspect:
 *   it pulls, and comes no nearer              5 s ...     for good: no training would mend it
 *   WELL exchanges since                       no more     as any other
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

/* What trust.h goes by is our own way from x0, which says little of one that has come much farther:
 * after we were stopped, have skipped rounds or, without lock step, were slower. By its own word, then:
 * that only chooses what is said, and whether it is counted. */
static bool is_ahead(const struct edges *es, const struct neighbour *b, uint64_t skipped)
{
    uint64_t own = es->workshop->mixing.announced.run_round;
    uint64_t other = es->workshop->run.policy == RUN_SYNC ? own : b->edge.run_round;
    return !last_phase(es) && 4 * other > 5 * (own - skipped);
}

static void tell(const struct edges *es, const struct neighbour *b, bool ahead, int64_t ms)
{
    const struct member *m = members_find(es->env->members, b->edge.id);
    env_note(es->env, NOTE_WARNING, "%s %s: no exchange with it for %g s",
             m != NULL ? m->record->name : "a neighbour",
             ahead ? "is too far ahead in rounds to belong to this run"
                   : "sent a delta that no model of this run can produce",
             (double)ms * 1e-3);
}

/* For so long, and for twice as long each time, up to 23 hours. */
static void bar(struct edges *es, struct neighbour *b, bool ahead)
{
    enum { REFUSED_MS = 500, SUSPECT_MS = 5000, MOST_MS = 82800 * 1000 };
    int64_t first_ms = b->edge.suspect ? SUSPECT_MS : REFUSED_MS;
    int64_t ms = b->n_barred < 18 ? first_ms << b->n_barred : MOST_MS;
    ms = ms < MOST_MS ? ms : MOST_MS;
    uint8_t out[16];
    b->n_barred++;
    b->distrusted = true;
    b->for_good |= b->edge.suspect || last_phase(es);
    es->n_distrusted += !ahead;
    b->barred_us = es->env->now_us + ms * 1000;
    b->edge.epoch = b->edge.n_distrusted = 0;
    b->edge.suspect = false;
    edge_pause(&b->edge, true);
    b->must_ask = true;
    if (b->link != NULL) /* They need not wait for us meanwhile. */
        sessions_send(es->sessions, b->link, true, out, wire_put_edge_close(out, sizeof out), NULL);
    tell(es, b, ahead, ms);
}

void edges_judge(struct edges *es, uint64_t skipped)
{
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        if (b->edge.n_distrusted > 0)
            bar(es, b, is_ahead(es, b, skipped));
        else if (b->edge.epoch != 0 && b->edge.round >= WELL)
            b->distrusted = b->for_good = false;
    }
}

bool edges_new_runaway(struct edges *es, size_t i)
{
    struct neighbour *b = es->at[i];
    bool is_new = b->edge.gamma.n_runaways > b->n_runaways;
    b->n_runaways = b->edge.gamma.n_runaways;
    return is_new;
}
