/* peer/node/edge/edges_trust.c -- closes edges to distrusted neighbours for a while.
 *
 * gossip/exchange/outlier_filter.h decides whether an exchange is refused or an edge is suspect. A
 * refused exchange closes the edge for 0.5 s, and a suspicion closes it for 5 s. Both times double
 * each time that the edge is closed, up to 23 hours. In the consensus phase the reason for which
 * the edge was closed decides whether it opens again:
 *
 *   - Refused in training, because the neighbour's model was too far away: the edge opens again.
 *     This peer may not have trained enough to judge the model.
 *   - Refused in the consensus phase, and not refused before: the edge opens again. The first
 *     exchange of its new epoch has a larger limit.
 *   - Refused in the consensus phase, and refused before: the edge stays closed.
 *   - Suspect, because the neighbour pulls this peer and does not come closer: the edge stays
 *     closed, or is closed again if it has opened during training. Further training would not
 *     correct this.
 *
 * After 32 exchanges (WELL) in a new epoch, an edge counts as neither refused nor suspect before.
 * The time for which it would be closed again still doubles.
 */
#include "peer/node/edge/edges_state.h"

#include "peer/node/mark.h"

#include <assert.h>

/* Number of exchanges in the current epoch that end the distrust of the neighbour. An edge that was
 * closed for distrust opens again with a new epoch. */
enum { WELL = 32 };

static bool last_phase(const struct edges *es)
{
    return es->beat >= es->workshop->run.rounds;
}

/* Returns whether the edge to b is closed for distrust. In the consensus phase there are two cases:
 * `for_good` is set, or the edge was closed only once and barred_us is not over. After further
 * distrust barred_us may be hours away. The consensus phase does not wait that long, and ignores
 * it. */
bool edges_bars(const struct edges *es, const struct neighbour *b)
{
    bool closed = es->env->now_us < b->barred_us;
    return last_phase(es) ? b->for_good || (closed && b->n_barred == 1) : closed;
}

bool edges_found_out(const struct edges *es, const struct neighbour *b)
{
    bool known = edges_bars(es, b) || quarantine_knows(es->sessions, b->edge.id);
    return known && b->edge.state != EDGE_OPEN;
}

/* A suspect edge does not prove that the neighbour is Byzantine. An attacker can move this peer and
 * most of its neighbours, within the limits of clipping. The edge to an honest neighbour that was
 * not moved is then much longer than the other edges, and becomes suspect (outlier_filter.h). Once
 * an edge has been suspect, exchanges on it are refused at a smaller distance
 * (outlier_filter_limit2()). An honest neighbour may exceed this distance, so a refused exchange is
 * no proof either. */
bool edges_proven(const struct edges *es, const struct neighbour *b)
{
    bool suspect = b->edge.trust.warned && !quarantine_knows(es->sessions, b->edge.id);
    return edges_found_out(es, b) && !suspect;
}

/* Returns whether b has probably trained for more than 5/4 of the rounds in which this peer has
 * trained. In lock step, b counts as having trained in all rounds so far. Otherwise the step
 * counter that b announced is used. Always false in the consensus phase.
 *
 * The outlier filter measures distances in units of this peer's own distance from the initial
 * model, so it cannot judge a neighbour that trained for longer. The announcement of b may be
 * false. The result therefore decides only which message is printed when the edge is closed, and
 * whether the closing is counted in `n_distrusted`. */
static bool is_ahead(const struct edges *es, const struct neighbour *b, uint64_t skipped)
{
    uint64_t own = es->workshop->mixing.announced.run_round;
    uint64_t other = es->workshop->run.policy == RUN_SYNC ? own : b->edge.run_round;
    return !last_phase(es) && 4 * other > 5 * (own - skipped);
}

static void tell(const struct edges *es, const struct neighbour *b, bool ahead, int64_t us)
{
    const struct member *m = members_find(es->env->members, b->edge.id);
    env_note(es->env, ahead ? NOTE_INFO : NOTE_WARNING,
             "%s %s: no exchanges with it for the next %g s",
             m != NULL ? m->record->name : "a neighbour",
             ahead ? "has trained for more rounds than this peer, which cannot check its delta yet"
                   : "sent a delta that no model of this run can produce",
             (double)us * 1e-6);
}

/* Closes the edge to b, and discards a pending exchange. EDGE_CLOSE tells the neighbour not to wait
 * for this peer. */
static void shut(struct edges *es, struct neighbour *b)
{
    uint8_t out[16];
    b->edge.epoch = b->edge.n_distrusted = 0;
    b->edge.suspect = false;
    edges_pause(es, b, true, "its data are implausible");
    b->must_ask = true;
    if (b->link != NULL)
        sessions_send(es->sessions, b->link, true, out, wire_put_edge_close(out, sizeof out), NULL);
}

void edges_shut_barred(struct edges *es)
{
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        bool in_use = b->edge.state == EDGE_OPEN || b->edge.state == EDGE_ASKING;
        bool has_epoch = b->edge.epoch != 0 && b->edge.state != EDGE_DONE;
        if (!(in_use || has_epoch) || !edges_bars(es, b))
            continue;
        MARK("edges_trust: an open edge is closed for the consensus phase");
        shut(es, b);
    }
}

/* Closes the edge to b for a time that doubles each time, up to 23 hours. `ahead`: result of
 * is_ahead(). */
static void bar(struct edges *es, struct neighbour *b, bool ahead)
{
    int64_t first_us = b->edge.suspect ? EDGE_SUSPECT_US : EDGE_REFUSED_US;
    int64_t us = b->n_barred < 18 ? first_us << b->n_barred : EDGE_CLOSED_MAX_US;
    us = us < EDGE_CLOSED_MAX_US ? us : EDGE_CLOSED_MAX_US;
    assert(us > 0 && b->edge.n_distrusted > 0);
    MARK_IF(ahead, "edges_trust: a neighbour is ahead");
    MARK_IF(b->edge.suspect, "edges_trust: a neighbour is suspect");
    MARK_IF(last_phase(es), "edges_trust: distrust in the consensus phase");
    MARK_IF(b->n_barred > 0, "edges_trust: repeated distrust");
    b->n_barred++;
    b->for_good |= b->edge.suspect || (last_phase(es) && b->distrusted);
    b->distrusted = true;
    es->n_distrusted += !ahead;
    b->barred_us = es->env->now_us + us;
    shut(es, b);
    tell(es, b, ahead, us);
}

void edges_judge(struct edges *es, uint64_t skipped)
{
    for (size_t i = 0; i < es->n; i++) {
        struct neighbour *b = es->at[i];
        MARK_IF(b->distrusted && b->edge.n_distrusted == 0 && b->edge.epoch != 0
                    && b->edge.round >= WELL,
                "edges_trust: trusts again");
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
