/* peer/node/averaging_pass.c -- looks at each job of a pass: was it as it has to be? */
#include "peer/node/averaging_pass.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"
#include "peer/node/member_counts.h"
#include "peer/node/rounds.h"

#include <math.h>
#include <string.h>

bool averaging_pass_counts(const struct edges *es)
{
    const struct run *run = &es->workshop->run;
    bool whole = strcmp(run->final_compress, "none") == 0;
    /* Means that differ in the last digit of float32 may round to different 16-bit values. The pass
     * is then not exact, so estimates decide. */
    bool held_in_16_bits = es->workshop->mixing.rounded != NULL;
    return es->last && es->n_rounds > 0 && es->exact && whole && !held_in_16_bits
           && (run->gamma_auto || run->gamma == 1);
}

/* ---- was it clean? ---- */

static bool same_end(const struct wire_delta *d, uint64_t clean, uint64_t beat)
{
    return d->run_round == beat && d->codec == DELTA_FINAL && d->clean == clean;
}

/* The edge in a job that commits what was made for this beat: the exchange is there where it has to
 * be, and nowhere else. */
static bool edge_is_clean(const struct edges *es, const struct neighbour *b, uint64_t beat)
{
    const struct edge *e = &b->edge;
    uint64_t clean = es->pass.clean;
    if (!rounds_turn(es, b, beat))
        return e->cur.payload == NULL;
    return edge_ready(e) && same_end(&e->cur.head, clean, beat)
           && same_end(&edge_theirs(e)->head, clean, beat);
}

/* What is refused at one end (gossip/exchange/outlier_filter.h) counts at the other. */
static uint64_t amiss(const struct edges *es)
{
    return es->n_resets + es->n_distrusted;
}

static bool job_is_clean(const struct edges *es, uint64_t beat)
{
    const struct averaging_pass *p = &es->pass;
    bool clean = p->clean != 0 && p->beat == beat && p->view == es->view && p->n_amiss == amiss(es);
    for (size_t i = 0; i < es->n && clean; i++)
        clean = edge_is_clean(es, edges_at(es, i), beat);
    return clean;
}

/* ---- a pass begins, or is over ---- */

/* Is an exchange in one end's model when the pass begins, and not in the other's? One that this job
 * does not finish may have been done by the other end. One that it does finish is the other end's
 * half before its own pass began, unless that was made in the job that began it, or later:
 *
 *   theirs was made for     at their beginning it was        and so it is
 *   a beat before `first`   made: done then, or not clean    in both models, or they say so
 *   `first`, or later       not there                        in ours alone
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

/* Is our model still the mean? Who has finished knows that all have it, so that those who are left
 * need no other; else members that came, or died, have a mean of their own. */
static bool stays(const struct edges *es)
{
    const struct averaging_pass *p = &es->pass;
    bool same = p->view == es->view && p->n_amiss == amiss(es);
    return p->over && !commits(es) && (same || member_counts_ended(es->env));
}

/* We have begun another pass, as not all words came in time, and now somebody has finished: so all
 * had come out of the last one clean, and what was mixed since were equal models. */
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
}

void averaging_pass_plan(struct edges *es, uint64_t beat)
{
    struct averaging_pass *p = &es->pass;
    if (!averaging_pass_counts(es)) {
        *p = (struct averaging_pass){.clean = 0};
        return;
    }
    p->over = stays(es) || is_again(es, beat);
    if (p->clean != 0 && !job_is_clean(es, beat))
        p->clean = 0;
    if (p->clean != 0 && rounds_place(es, beat) + 1 == es->n_rounds) {
        p->over = true;
        p->over_beat = beat + 1;
        p->over_view = es->view;
        p->bound = 0;
        p->clean = 0;
    }
    if (rounds_place(es, beat + 1) == 0 && !(p->over && member_counts_ended(es->env)))
        begin(es, beat + 1);
    p->beat = beat + 1;
}

/* An exchange rounds a model at five places, by 2^-24 at most each: our difference from the replica
 * and its sum, the same at the other end, and the sum that moves the model; each is of about the
 * longest model that took part, which ours was when the pass began, but not of more than twice
 * that. Errors are independent of each other, and hence the root (sketch_rounding()). */
void averaging_pass_done(struct edges *es)
{
    struct averaging_pass *p = &es->pass;
    const struct mixing *m = &es->workshop->mixing;
    uint32_t n = 0;
    if (!p->over || p->bound > 0)
        return;
    if (p->n_amiss != amiss(es)) { /* In this very job. */
        p->over = false;
        p->over_beat = 0;
        return;
    }
    for (size_t i = 0; i < es->n; i++)
        for (uint32_t k = 0; k < es->n_rounds; k++)
            n += edges_at(es, i)->turn[k] > 0;
    double norm2 = vec_norm2(m->x, m->dim), longest = 2 * fmax(1, sqrt(p->norm2 / norm2));
    p->bound = norm2 > 0 ? 0x1p-24 * longest * sqrt(1 + 5 * (double)n) : (double)INFINITY;
}

/* ---- questions ---- */

/* Their half of what is under way. Their word for this beat comes behind all that they have made
 * for it: whoever has said it has made none, and answers in its next job. */
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
