/* peer/node/edge/averaging_pass.c -- checks in each job whether an averaging pass is still
 * exact. */
#include "peer/node/edge/averaging_pass.h"

#include "peer/node/edge/edges_state.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"
#include "peer/node/edge/rounds.h"
#include "peer/node/mark.h"
#include "peer/node/membership/quorum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

bool averaging_pass_counts(const struct edges *es)
{
    const struct run *run = &es->workshop->run;
    bool whole = strcmp(run->final_compress, "none") == 0;
    /* For models with 16-bit values, passes do not count as exact: peers may compute means that
     * differ in the last digit of float32, and these may be rounded to different 16-bit values.
     * Estimates of the consensus distance then end the consensus phase. */
    bool held_in_16_bits = es->workshop->mixing.rounded != NULL;
    return es->last && es->n_rounds > 0 && es->exact && whole && !held_in_16_bits
           && (run->gamma_auto || run->gamma == 1);
}

/* ---- is the pass still exact? ---- */

static bool same_end(const struct wire_delta *d, uint64_t clean, uint64_t beat)
{
    return d->run_round == beat && d->codec == DELTA_FINAL && d->clean == clean;
}

/* Returns whether a job at step counter `beat` keeps the pass exact on edge b. An edge of this
 * round must have both deltas, made for this round. Any other edge must have no pending
 * exchange. */
static bool edge_is_clean(const struct edges *es, const struct neighbour *b, uint64_t beat)
{
    const struct edge *e = &b->edge;
    uint64_t clean = es->pass.clean;
    if (!rounds_turn(es, b, beat))
        return e->cur.payload == NULL;
    return edge_ready(e) && same_end(&e->cur.head, clean, beat)
           && same_end(&edge_theirs(e)->head, clean, beat);
}

/* Returns how often this peer has reset an edge, closed an edge for distrust, or computed running
 * statistics again. A pass in which this number grows is not exact, for two reasons. After a reset
 * or for distrust, one end refuses an exchange and keeps its model, but the other end changes its
 * own. New running statistics differ from those of the other peers until the next pass averages
 * them. */
static uint64_t amiss(const struct edges *es)
{
    return es->n_resets + es->n_distrusted + es->workshop->n_renewed;
}

static bool job_is_clean(const struct edges *es, uint64_t beat)
{
    const struct averaging_pass *p = &es->pass;
    bool clean = p->clean != 0 && p->beat == beat && p->view == es->view && p->n_amiss == amiss(es);
    for (size_t i = 0; i < es->n && clean; i++)
        clean = edge_is_clean(es, edges_at(es, i), beat);
    return clean;
}

/* ---- begin and end of a pass ---- */

/* Checks what holds between two calls. O(1). */
static void pass_check(const struct averaging_pass *p)
{
    assert(!p->over || p->over_beat > 0);
    assert(p->bound == 0 || p->over_beat > 0);
    assert(p->over_beat <= p->beat);
}

/* Returns whether this job must not begin an averaging pass, because only one of the two ends of an
 * exchange would have it in its model. The deltas of this job are made for step counter `first`.
 * These exchanges prevent the pass:
 *
 *   - An exchange that is pending and not ready: the neighbour may have committed it already. Edges
 *     that are DONE are ignored.
 *   - A ready exchange, which this job commits, if the neighbour's delta was made for `first` or
 *     later. This delta did not exist when the neighbour's pass began, so the exchange is in this
 *     peer's model only.
 *
 * A ready exchange with an earlier delta of the neighbour does not prevent the pass. The
 * neighbour's job commits that exchange before the neighbour's pass, or the neighbour's pass is not
 * exact.
 */
static bool half_done(const struct edges *es, uint64_t first)
{
    for (size_t i = 0; i < es->n; i++) {
        const struct edge *e = &edges_at(es, i)->edge;
        bool whole = edge_ready(e) && edge_theirs(e)->head.run_round < first;
        if (e->cur.payload != NULL && !whole && e->state != EDGE_DONE)
            return true;
    }
    return false;
}

static bool commits(const struct edges *es)
{
    for (size_t i = 0; i < es->n; i++)
        if (edge_ready(&edges_at(es, i)->edge))
            return true;
    return false;
}

static void begin(struct edges *es, uint64_t first)
{
    struct averaging_pass *p = &es->pass;
    const struct mixing *m = &es->workshop->mixing;
    p->clean = half_done(es, first) ? 0 : rng_at(es->view, first) | 1;
    p->view = es->view;
    p->n_amiss = amiss(es);
    p->norm2 = vec_norm2(m->x, m->dim);
    p->over = false;
}

/* Returns whether this peer's model is the mean of all models, and still is after this job. Three
 * conditions must hold: (1) an exact pass is complete (`over`); (2) the job commits no exchange;
 * (3) since the pass began no member has joined or died and no edge was reset, because such an
 * event changes the mean. Condition 3 is dropped once a member has finished: a member finishes only
 * when it knows that all peers have the mean. */
static bool stays(const struct edges *es)
{
    const struct averaging_pass *p = &es->pass;
    bool same = p->view == es->view && p->n_amiss == amiss(es);
    return p->over && !commits(es) && (same || member_counts_ended(es->env));
}

/* Returns whether the last exact pass of this peer is known to have been exact at all peers: a
 * member has finished, and the pass ended at most two cycles ago with the current members. The news
 * of the end may arrive after this peer has begun another pass. The result is still true then,
 * because exchanges between equal models change nothing. */
static bool is_again(const struct edges *es, uint64_t beat)
{
    const struct averaging_pass *p = &es->pass;
    bool lately = p->over_beat > 0 && beat <= p->over_beat + 2 * rounds_cycle(es);
    return lately && p->over_view == es->view && member_counts_ended(es->env);
}

void averaging_pass_look(struct edges *es, uint64_t beat)
{
    struct averaging_pass *p = &es->pass;
    p->over |= averaging_pass_counts(es) && is_again(es, beat);
    pass_check(p);
}

void averaging_pass_plan(struct edges *es, uint64_t beat)
{
    struct averaging_pass *p = &es->pass;
    if (!averaging_pass_counts(es)) {
        *p = (struct averaging_pass){.clean = 0};
        return;
    }
    assert(beat + 1 >= p->beat); /* A round is repeated only if its job counted no round. */
    p->over = stays(es) || is_again(es, beat);
    MARK_IF(p->clean != 0 && !job_is_clean(es, beat), "averaging_pass: not exact");
    if (p->clean != 0 && !job_is_clean(es, beat))
        p->clean = 0;
    if (p->clean != 0 && rounds_place(es, beat) + 1 == es->n_rounds) {
        MARK("averaging_pass: exact");
        p->over = true;
        p->over_beat = beat + 1;
        p->over_view = es->view;
        p->bound = 0;
        p->clean = 0;
    }
    if (rounds_place(es, beat + 1) == 0 && !(p->over && member_counts_ended(es->env)))
        begin(es, beat + 1);
    p->beat = beat + 1;
    pass_check(p);
}

/* Sets `bound` to the bound on the rounding error of the pass. An exchange rounds in five places,
 * each by at most 2^-24 of a model's length. No model is assumed to be longer than twice the larger
 * of two lengths: that of this peer's model at the start of the pass, and that at its end. The
 * errors are independent, so their squares add up (sketch_rounding()). */
void averaging_pass_done(struct edges *es)
{
    struct averaging_pass *p = &es->pass;
    const struct mixing *m = &es->workshop->mixing;
    uint32_t n = 0;
    if (!p->over || p->bound > 0)
        return;
    /* This job reset or distrusted an edge, or replaced running statistics: the pass was not
     * exact. */
    if (p->n_amiss != amiss(es)) {
        p->over = false;
        p->over_beat = 0;
        return;
    }
    for (size_t i = 0; i < es->n; i++)
        for (uint32_t k = 0; k < es->n_rounds; k++)
            n += edges_at(es, i)->turn[k] > 0;
    double norm2 = vec_norm2(m->x, m->dim), longest = 2 * fmax(1, sqrt(p->norm2 / norm2));
    p->bound = norm2 > 0 ? 0x1p-24 * longest * sqrt(1 + 5 * (double)n) : (double)INFINITY;
    pass_check(p);
}

/* ---- questions ---- */

/* Returns whether the neighbour's delta of the pending exchange may still arrive before the next
 * job. A neighbour sends its deltas for a step counter first, and then its BEAT for this step
 * counter, so no delta follows the BEAT. */
static bool comes(const struct neighbour *b, uint64_t beat)
{
    bool said = b->said[0].beat >= beat || b->said[1].beat >= beat;
    return b->edge.cur.payload != NULL && !edge_ready(&b->edge) && !said;
}

bool averaging_pass_needs(const struct edges *es, const struct neighbour *b, uint64_t beat)
{
    const struct averaging_pass *p = &es->pass;
    const struct edge *e = &b->edge;
    bool begins = averaging_pass_counts(es) && rounds_place(es, beat + 1) == 0;
    bool goes_on = p->clean != 0 && p->view == es->view;
    if (!(begins || goes_on) || e->state == EDGE_DONE)
        return false;
    return comes(b, beat) || (rounds_turn(es, b, beat + 1) && e->state != EDGE_OPEN);
}

double averaging_pass_bound(const struct edges *es)
{
    const struct averaging_pass *p = &es->pass;
    return p->over && p->bound > 0 ? p->bound : (double)INFINITY;
}
