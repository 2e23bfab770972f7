/* peer/node/edge/distance_bound.c -- computes the bound on the consensus distance from the
 * edges. */
#include "peer/node/edge/distance_bound.h"

#include "peer/node/edge/edges_state.h"

#include "nn/math/vec.h"
#include "peer/node/mark.h"
#include "peer/node/membership/quorum.h"

#include <assert.h>
#include <math.h>

/* Sets *d2 and *e2 for the edge's last exchange. *d2 is D^2, the squared distance between the two
 * replicas. *e2 is E^2, the squared length of what this peer's delta left unsent. Both are infinite
 * if the edge is not open or had no exchange. */
static void measure(const struct edge *e, double *d2, double *e2)
{
    bool has = e->state == EDGE_OPEN && e->prev.payload != NULL && e->gamma.d2 > 0;
    *d2 = has ? e->gamma.d2 : (double)INFINITY;
    *e2 = has ? (double)e->prev.head.e2 : (double)INFINITY;
}

/* For models with 16-bit values: sets *d2 to the squared distance between the two replicas of
 * the edge, and *e2 to the squared distance of this peer's model from its replica. All values
 * are first rounded to 16 bits (D' and E' in distance_bound.h). Must not be called while a job
 * runs. O(dim). */
static void measure_held(const struct mixing *m, const struct edge *e, double *d2, double *e2)
{
    measure(e, d2, e2);
    bool has = isfinite(*d2) && e->a != NULL && e->b != NULL;
    *d2 = has ? mixing_held_dist2(m, e->a->v, e->b) : (double)INFINITY;
    *e2 = has ? mixing_held_dist2(m, m->x, e->a->v) : (double)INFINITY;
}

bool distance_bound_at_once(const struct edges *es)
{
    const struct run *run = &es->workshop->run;
    return run->policy == RUN_SYNC && run->tolerate == 0 && edges_gap(es) > 0;
}

/* Returns the factor by which L must be multiplied to bound the consensus distance of n_members
 * models. L is an upper bound on the distance between the models of any two neighbours
 * (distance_bound.h). */
static double reach(const struct edges *es, size_t n_members)
{
    double along = (double)(n_members - 1);
    bool held_in_16_bits = es->workshop->mixing.rounded != NULL;
    return distance_bound_at_once(es) && !held_in_16_bits
               ? fmin(along, sqrt(1 / (2 * edges_gap(es))))
               : along;
}

/* Returns L_i of this peer, relative to |x| (distance_bound.h). The models of two neighbours i and
 * j are at most (L_i + L_j) / 2 apart. INFINITY: not known. */
static double neighbours_bound(const struct edges *es)
{
    const struct mixing *m = &es->workshop->mixing;
    double most_d2 = 0, most_e2 = 0, d2, e2;
    size_t n = 0;
    if (m->mixer->updates || es->n == 0)
        return (double)INFINITY;
    for (size_t i = 0; i < es->n; i++) {
        const struct neighbour *b = edges_at(es, i);
        const struct edge *e = &b->edge;
        if (b->aside)
            /* The edge belongs to training only, so its values are outdated. */
            continue;
        if (e->state == EDGE_DONE || b->distrusted || edges_found_out(es, b))
            /* A distrusted neighbour takes no part in the consensus. */
            continue;
        if (m->rounded != NULL)
            measure_held(m, e, &d2, &e2);
        else
            measure(e, &d2, &e2);
        n++;
        most_d2 = fmax(most_d2, d2);
        most_e2 = fmax(most_e2, e2);
    }
    double n_d = m->rounded != NULL ? 1 : 3;
    double link = n_d * sqrt(most_d2) + 2 * sqrt(most_e2), norm2 = run_context_norm2(es->workshop);
    return n > 0 && norm2 > 0 ? link / sqrt(norm2) : (double)INFINITY;
}

double distance_bound_bound(const struct edges *es, size_t n_members)
{
    return n_members < 2 ? (double)INFINITY : reach(es, n_members) * neighbours_bound(es);
}

/* Returns whether the neighbour has ended its run and its final model can be judged: the neighbour
 * is neither failed nor distrusted, and its edge does not belong to training only. Always false
 * without lock step, where the last report of the neighbour may be lost. */
static bool has_ended(const struct edges *es, const struct neighbour *b)
{
    const struct member *other = members_find(es->env->members, b->edge.id);
    bool failed = other != NULL && other->record->state == RECORD_FAILED;
    return es->workshop->run.policy == RUN_SYNC && b->edge.state == EDGE_DONE && !failed
           && !b->aside && !b->distrusted;
}

/* Returns how many neighbours have a final model that is farther than twice the target from this
 * peer's model. The error of the replica of a final model, about sqrt(gamma.e2), is subtracted from
 * its distance. O(dim) for each neighbour. */
static size_t n_final_models_apart(const struct edges *es)
{
    const struct mixing *m = &es->workshop->mixing;
    double most = 2 * es->workshop->run.final_drift * sqrt(run_context_norm2(es->workshop));
    size_t n = 0;
    for (size_t i = 0; i < es->n; i++) {
        const struct edge *e = &edges_at(es, i)->edge;
        if (has_ended(es, edges_at(es, i)) && e->b != NULL)
            n += sqrt(mixing_held_dist2(m, m->x, e->b)) - sqrt(e->gamma.e2) > most;
    }
    return n;
}

double distance_bound_apart(const struct edges *es)
{
    const struct run *run = &es->workshop->run;
    double most = 0, d2, e2, norm2 = run_context_norm2(es->workshop);
    if (run->policy != RUN_SYNC)
        return 0;
    if (run->tolerate > 0) {
        bool apart = n_final_models_apart(es) > run->tolerate;
        MARK_IF(apart, "distance_bound: this peer was moved away from final models");
        return apart ? (double)INFINITY : 0;
    }
    for (size_t i = 0; i < es->n; i++) {
        const struct neighbour *b = edges_at(es, i);
        measure(&b->edge, &d2, &e2);
        /* An edge without a recent exchange has outdated replicas, so it is left out. */
        if (b->aside || !isfinite(d2) || b->edge.run_round + 2 < es->beat)
            continue;
        most = fmax(most, fmax(sqrt(d2) / 2 - sqrt(e2), sqrt(e2)));
    }
    return norm2 > 0 ? most / sqrt(norm2) : 0;
}

void distance_bound_begin(struct distance_bound *c)
{
    *c = (struct distance_bound){
        .bound = (double)INFINITY, .now = (double)INFINITY, .before = (double)INFINITY};
}

/* Returns whether a neighbour has ended without having reported that it was near the mean. */
static bool ended_apart(const struct edges *es)
{
    for (size_t i = 0; i < es->n; i++) {
        const struct neighbour *b = edges_at(es, i);
        if (has_ended(es, b) && neighbour_settled(b, es->beat) == 0)
            return true;
    }
    return false;
}

size_t distance_bound_ended_apart(const struct edges *es)
{
    size_t n = 0;
    for (size_t i = 0; i < es->n; i++) {
        const struct neighbour *b = edges_at(es, i);
        /* A peer that ends reports 0 after its last job, even if it was near the mean before. */
        n += has_ended(es, b) && b->edge.settled == 0 && b->said[0].settled == 0
             && b->said[1].settled == 0;
    }
    return n;
}

/* Returns whether all neighbours have ended and were near the mean, and no neighbour is distrusted.
 * The last bound on the consensus distance then stays valid. */
static bool all_ended(const struct edges *es)
{
    for (size_t i = 0; i < es->n; i++) {
        const struct neighbour *b = edges_at(es, i);
        if (!b->aside && (b->edge.state != EDGE_DONE || b->distrusted || edges_found_out(es, b)))
            return false;
    }
    return es->n > 0 && !ended_apart(es);
}

void distance_bound_look(struct distance_bound *c, const struct edges *es, uint64_t rounds,
                         double distance, double most)
{
    MARK_IF(all_ended(es), "distance_bound: all neighbours ended near");
    if (all_ended(es))
        return;
    assert(rounds >= c->round && c->since <= c->round);
    bool waits = (distance_bound_at_once(es) || !(distance <= most)) && !ended_apart(es);
    size_t n_members = member_counts_vertices(es->env);
    if (rounds != c->round)
        c->before = c->now;
    c->round = rounds;
    c->now = waits && n_members >= 2 ? neighbours_bound(es) : (double)INFINITY;
    double bound = reach(es, n_members) * fmax(c->now, c->before);
    /* No open edge leads to a member that has ended, so the edges no longer show the distance of
     * all members. The bound must not decrease then, unless it already counts as evidence
     * (`counts`). */
    bool ended = member_counts_ended(es->env);
    MARK_IF(ended && !c->counts && bound < c->bound,
            "distance_bound: a smaller bound after an end does not count");
    if (ended && !c->counts)
        bound = fmax(bound, c->bound);
    bool near = bound <= most;
    if (near && !c->near)
        c->since = rounds;
    c->near = near;
    MARK_IF(ended_apart(es), "distance_bound: a neighbour ended outside the target");
    bool late = near && rounds - c->since >= DISTANCE_BOUND_ROUNDS;
    c->bound = near && (late || distance_bound_at_once(es)) ? bound : (double)INFINITY;
    if (late && !c->counts) {
        MARK("distance_bound: bound from the edges, without sketches");
        env_note(es->env, NOTE_WARNING,
                 "sketches (projections of models) are missing or invalid: the consensus distance "
                 "is estimated from the exchanges with neighbours alone, and is below %.2e",
                 bound);
        c->counts = true;
    }
}
