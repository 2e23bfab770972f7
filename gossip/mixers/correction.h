/* gossip/mixers/correction.h -- moves a model towards its neighbours: x += gamma w (b - a).
 *
 * This is the step of CHOCO-SGD, and of all mixers in the consensus phase. On an edge, a is
 * the peer's own replica and b the neighbour's. Both ends hold bitwise equal replicas
 * and compute w and gamma from the same two deltas. The change is therefore equal and opposite
 * at the two ends, and the mean of the models is kept, unless one end refuses the exchange or
 * --byzantine reduces it at one end.
 *
 * In the consensus phase only the graph limits the convergence, so the step has momentum there
 * (heavy ball, or second-order diffusion: Muthukrishnan, Ghosh, Schultz 1998). The velocity
 * belongs to an edge, not to a peer. The velocities at the two ends of an edge are equal and
 * opposite, so the mean of the models does not change if other edges fail or peers differ in
 * speed. If all edges commit, the sum of a peer's velocities equals x(k) - x(k-1).
 */
#ifndef GOSSIP_MIXERS_CORRECTION_H
#define GOSSIP_MIXERS_CORRECTION_H

#include <stdbool.h>
#include <stddef.h>

struct mixing;
struct mixing_task;

/* One term of the correction x += sum of gamma w (b - a): the contribution of one neighbour. */
struct correction
{
    const float *a, *b;
    /* Factor gamma w. --byzantine reduces it (clip.h). */
    float coefficient;
    /* Momentum state of the edge, dim floats. NULL: the term has never had momentum. */
    float *velocity;
    float momentum; /* Momentum coefficient of this exchange. */
    /* Output: the squared distance |b - a|^2 of the replicas. The caller sets d2 to 0 before. */
    double d2;
    double w; /* Mixing weight of the edge. */
    /* Largest accepted d2, the squared distance of the two replicas. If d2 is larger, the
     * correction of this edge is refused. 0: no limit. */
    double limit2;
    /* Output. True: the squared distance d2 exceeded limit2, so the term does not change x (apart
     * from rounding errors). */
    bool refused;
    /* True: the coefficient contains the adaptive gamma of the edge. False: it contains a constant
     * step size of the mixer. */
    bool ruled;
    struct mixing_task *task;
};

/* Adds n terms to x (dim floats), in order, in one pass over x. Without velocity: x += coefficient
 * (b - a). With velocity v: v = momentum v + coefficient (b - a), then x += v. Each term has a
 * limit for the length of b - a. A term that exceeds its limit in the middle of the pass is removed
 * from x and v again. The part added so far is within the limit, so only rounding errors remain. */
void correction_pass(float *x, size_t dim, struct correction *term, size_t n);

/* Returns the upper bound of an adaptive gamma in a task's exchange, the same at both ends. 1,
 * unless m->semidefinite is set and the exchange belongs to training. */
double correction_most_gamma(const struct mixing *m, const struct mixing_task *t);

/* Corrects m->x by each committed task for which corrects() is true. Called in a mixer's mix(), on
 * the worker. step() returns a constant step size for a task; if it is NULL or returns 0, the
 * edge's adaptive gamma is used. If corrects() is true for any committed task, sets m->local2 to
 * the sum of |b - a|^2 over the tasks that were not refused. */
void correction_mix(struct mixing *m, bool (*corrects)(const struct mixing_task *t),
                    double (*step)(const struct mixing *m, const struct mixing_task *t));

#endif
