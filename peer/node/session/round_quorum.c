/* peer/node/session/round_quorum.c -- how far the run is, according to most of the peers that this
 * peer hears.
 *
 * A peer learns the step counters (edges.h) of other peers from their messages. One member can
 * claim any number. A peer that believed the claim would skip all rounds up to it. This peer
 * therefore believes a claim only as far as other peers confirm it:
 *
 *   - With 2 or more open edges: the largest step counter that more than half of the neighbours
 *     reach. With exactly two neighbours this is the smaller one of their step counters.
 *   - With 2 or more sessions: the largest step counter that more than half of the members with a
 *     session reach. The step counter of each member is extrapolated from its last message, by the
 *     member's speed. Members that have finished are left out, because their step counters no
 *     longer grow.
 *   - With 1 open edge and at most 1 session: the largest step counter that the neighbour can have
 *     reached. This is the sum of this peer's step counter, of schedule_lead(), and of the rounds
 *     that the neighbour can have done since it was last at most schedule_lead() rounds ahead. The
 *     neighbour is assumed to be at most FASTER times as fast as this peer.
 *
 * If several cases apply, the largest of their step counters is believed. If a neighbour claims
 * more, and its claim is more than schedule_lead() rounds ahead of this peer, round_quorum_look()
 * replaces the claim before the schedule sees it. The new value is the believed step counter if
 * this is also more than schedule_lead() rounds ahead. Else the new value is this peer's own step
 * counter, so that this peer neither waits for the neighbour nor skips to its claim. False claims
 * of fewer than half of the neighbours and sessions thus have no effect. Peers that were cut off
 * from the run still catch up with it, because they hear most of the other peers.
 *
 * If a peer trained alone while most others could not, it is ahead of them. The others do not skip
 * rounds, because no other peer confirms its claim. The peer that is ahead waits for them instead.
 * A peer is ahead in this sense if more than half of the members with a session, and at least half
 * of its neighbours, are more than schedule_lead() rounds behind. A minority of false claims cannot
 * make it wait in this way.
 *
 * A joining peer believes the round of the model that it has fetched. If this round is more than
 * LEAD rounds ahead of the round that most members have reached, the peer joins at the round of
 * most members instead. If only one member has begun the run, its claim is used.
 */
#include "peer/node/session/sessions_state.h"

#include "peer/node/mark.h"

#include <assert.h>

enum {
    /* Another peer is assumed to be at most FASTER times as fast as this peer. */
    FASTER = 8,
    /* Largest possible schedule_lead(). No two peers in lock step are more than this number of
     * rounds apart. */
    LEAD = 80
};

uint64_t round_quorum_most(uint64_t *claim, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && claim[j - 1] < claim[j]; j--) {
            uint64_t t = claim[j];
            claim[j] = claim[j - 1];
            claim[j - 1] = t;
        }
    return n > 0 ? claim[n / 2] : 0;
}

/* ---- sessions ---- */

static bool counts(const struct link *l)
{
    return link_open(l) && !l->mute && l->same_run && l->started;
}

/* Returns the step counter that the member has probably reached now: the one in its last message,
 * extrapolated by the member's speed between its last two messages. If there was only one message,
 * returns the step counter in it. */
static uint64_t now_at(const struct link *l, int64_t now_us)
{
    int64_t between_us = l->said_us - l->before_us;
    if (l->before_us == 0 || between_us <= 0 || l->round <= l->before || now_us <= l->said_us)
        return l->round;
    double pace = (double)(l->round - l->before) / (double)between_us;
    double more = pace * (double)(now_us - l->said_us);
    return l->round + (more < 0x1p40 ? (uint64_t)more : UINT64_C(1) << 40);
}

/* Sets claim[] to the step counters of the members with a session, and returns their number.
 * finished false: leaves out members that have finished. */
static size_t claims(const struct sessions *s, bool finished, uint64_t claim[NODE_LINKS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_links; i++)
        if (counts(&s->links[i]) && (finished || !s->links[i].finished))
            claim[n++] = now_at(&s->links[i], s->env->now_us);
    return n;
}

uint64_t round_quorum_sessions(const struct sessions *s, size_t *n)
{
    uint64_t claim[NODE_LINKS_MAX];
    *n = claims(s, true, claim);
    return round_quorum_most(claim, *n);
}

const struct link *round_quorum_furthest(const struct sessions *s)
{
    size_t n;
    uint64_t most = round_quorum_sessions(s, &n);
    const struct link *best = NULL;
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (counts(l) && l->round <= most + LEAD && (best == NULL || l->round > best->round))
            best = l;
    }
    return best;
}

uint64_t round_quorum_joined(const struct sessions *s, uint64_t round)
{
    size_t n;
    uint64_t most = round_quorum_sessions(s, &n);
    MARK_IF(n > 0 && round > most + LEAD,
            "round_quorum: the round of a fetched model is not believed");
    return n > 0 && round > most + LEAD ? most : round;
}

/* ---- edges ---- */

void round_quorum_worked(struct round_quorum *b, int64_t took_us)
{
    assert(took_us >= 0);
    if (b->fastest_us == 0 || took_us < b->fastest_us)
        b->fastest_us = took_us > 0 ? took_us : 1;
}

/* For a peer with a single neighbour: returns the largest step counter that the neighbour can have
 * reached. In lock step a neighbour gets far ahead only while it has no contact with this peer, or
 * while this peer is paused. The limit is computed once, when the contact returns, so that later
 * claims do not increase it. While this peer does not know its own speed, every claim is
 * believed. */
static uint64_t can_have_done(struct round_quorum *b, const struct schedule_view *v, uint64_t beat,
                              int64_t driver_us)
{
    MARK_IF(b->fastest_us > 0, "round_quorum: one neighbour claims rounds");
    if (b->fastest_us == 0)
        return beat;
    if (!b->far)
        b->most = v->beat + schedule_lead(v)
                  + (uint64_t)(FASTER * (driver_us - b->near_us) / b->fastest_us);
    b->far = true;
    return b->most;
}

/* Returns the largest step counter that this peer believes (see the top of this file). Open edges
 * give the exact step counters of neighbours. Reports over sessions are up to half a second old. */
static uint64_t believed(struct round_quorum *b, const struct sessions *s,
                         const struct schedule_view *v)
{
    uint64_t claim[NODE_LINKS_MAX], most = 0;
    size_t n = 0, n_sessions = claims(s, false, claim);
    uint64_t by_sessions = round_quorum_most(claim, n_sessions);
    for (size_t i = 0; i < v->n_edges && n < NODE_LINKS_MAX; i++)
        if (v->edge[i].state == SCHEDULE_EDGE_OPEN)
            claim[n++] = v->edge[i].beat;
    if (n == 1 && n_sessions < 2)
        return can_have_done(b, v, claim[0], s->env->driver_us);
    if (n > 1)
        most = round_quorum_most(claim, n);
    return n_sessions > 1 && by_sessions > most ? by_sessions : most;
}

/* Returns whether more than half of the unfinished members with a session have a step counter below
 * `beat`. False with fewer than 2 such members. */
static bool most_behind(const struct sessions *s, uint64_t beat)
{
    uint64_t claim[NODE_LINKS_MAX];
    size_t n = claims(s, false, claim), n_behind = 0;
    for (size_t i = 0; i < n; i++)
        n_behind += claim[i] < beat;
    return n > 1 && 2 * n_behind > n;
}

static bool far_behind(const struct schedule_view *v, const struct schedule_edge *e)
{
    return e->state == SCHEDULE_EDGE_OPEN && !e->gathers && e->beat + schedule_lead(v) < v->beat;
}

/* Returns whether this peer trained alone and is ahead of the run: most members with a session, and
 * at least half of the neighbours, are behind by more rounds than lock step allows
 * (schedule_lead()). */
static bool alone_ahead(const struct sessions *s, const struct schedule_view *v,
                        const struct schedule_edge *edge)
{
    uint64_t lead = schedule_lead(v);
    size_t n_open = 0, n_behind = 0;
    for (size_t i = 0; i < v->n_edges; i++) {
        n_open += (edge[i].state == SCHEDULE_EDGE_OPEN) && !edge[i].gathers;
        n_behind += far_behind(v, &edge[i]);
    }
    return n_behind > 0 && 2 * n_behind >= n_open
           && most_behind(s, v->beat > lead ? v->beat - lead : 0);
}

/* Makes lock step wait for neighbours that are far behind, by raising their step counters to the
 * limit of lock step. In training this includes flapping neighbours: a failure of the network, not
 * of the neighbours, made them absent. In the consensus phase it does not include them, because no
 * rounds are lost if this peer continues. */
static void wait_for_most(const struct schedule_view *v, struct schedule_edge *edge)
{
    for (size_t i = 0; i < v->n_edges; i++)
        if (far_behind(v, &edge[i])) {
            MARK("round_quorum: this peer is ahead of most");
            edge[i].beat = v->beat - schedule_lead(v);
            edge[i].flapping &= v->phase != NODE_TRAINING;
        }
}

void round_quorum_look(struct round_quorum *b, const struct sessions *s,
                       const struct schedule_view *v, struct schedule_edge *edge)
{
    uint64_t near = v->beat + schedule_lead(v);
    assert(schedule_lead(v) <= LEAD && b->near_us <= s->env->driver_us);
    bool open = false, far = false;
    for (size_t i = 0; i < v->n_edges; i++) {
        open |= (edge[i].state == SCHEDULE_EDGE_OPEN);
        far |= (edge[i].state == SCHEDULE_EDGE_OPEN) && edge[i].beat > near;
    }
    if (open && !far) {
        b->far = false;
        /* The first messages after a pause of this process are as old as the pause, so they do not
         * show that the neighbour is near now. */
        if (b->near_us == 0 || !failure_detector_stood(s))
            b->near_us = s->env->driver_us;
    }
    if (!v->lock_step || v->phase == NODE_JOINING)
        return;
    if (alone_ahead(s, v, edge))
        wait_for_most(v, edge);
    if (!far)
        return;
    uint64_t known = believed(b, s, v);
    for (size_t i = 0; i < v->n_edges; i++)
        if (edge[i].beat > near && edge[i].beat > known)
            edge[i].beat = known > near ? known : v->beat;
}
