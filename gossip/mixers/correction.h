/* gossip/mixers/correction.h -- moves a model towards its neighbours: x += gamma w (b - a).
 *
 * This is the step of CHOCO-SGD, and of all mixers in the consensus phase. On an edge, a is
 * the peer's own replica and b the neighbour's. Both ends hold bitwise equal replicas
 * and compute w and gamma from the same two deltas. The change is therefore equal and opposite
 * at the two ends, and the mean of the models is kept.
 *
 * In the consensus phase the step has momentum (heavy ball, or second-order diffusion:
 * Muthukrishnan, Ghosh, Schultz 1998), because only the graph limits convergence then. The
 * velocity belongs to an edge, not to a peer. Velocities at the two ends are equal and
 * opposite, so failed edges and faster peers do not change the mean. Where all edges
 * commit, the sum of a peer's velocities equals x(k) - x(k-1).
 */
#ifndef GOSSIP_MIXERS_CORRECTION_H
#define GOSSIP_MIXERS_CORRECTION_H

#include <stdbool.h>
#include <stddef.h>

struct mixing;
struct mixing_task;

/* The term of one neighbour in the sum over all edges. */
struct correction
{
    const float *a, *b;
    float
        coefficient; /* Factor gamma w. --byzantine reduces it (clip.h); 0: the term is refused. */
    /* Momentum state of the edge, dim floats. NULL: the term has never had momentum. */
    float *velocity;
    float momentum; /* Momentum coefficient of this exchange. */
    double d2;      /* Output: |b - a|^2 is added to it. */
    double w;       /* Mixing weight of the edge. */
    double limit2;  /* Largest allowed d2. A term over it is refused. 0: no limit. */
    /* Output: the term exceeded its limit. x is unchanged by the term, except for rounding. */
    bool refused;
    /* True: the adaptive gamma rule sets the step. False: the mixer sets a constant step. */
    bool ruled;
    struct mixing_task *task;
};

/* Adds n terms to x (dim floats) in order, in one pass. Without velocity: x += coefficient (b -
 * a). With velocity v: v = momentum v + coefficient (b - a), then x += v. A term found to be
 * over its limit is subtracted again; the part added until then is no longer than the limit, so
 * x loses no precision. */
void correction_pass(float *x, size_t dim, struct correction *term, size_t n);

/* Corrects m->x with each committed task for which corrects() is true. Called on the worker, in
 * a mixer's mix(). step() returns the task's constant step size; with step NULL or a result of
 * 0, the edge's adaptive gamma is used. Sets m->local2 to the sum of |b - a|^2, or leaves it
 * unchanged if no task was corrected. */
void correction_mix(struct mixing *m, bool (*corrects)(const struct mixing_task *t),
                    double (*step)(const struct mixing *m, const struct mixing_task *t));

#endif
