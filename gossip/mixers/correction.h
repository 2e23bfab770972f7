/* gossip/mixers/correction.h -- models move towards replicas: x += gamma w (b - a).
 *
 * The step of CHOCO-SGD, and of every mixer's last phase. a is our replica on an
 * edge and b theirs; both ends hold both bit for bit, and compute w and gamma from
 * the two deltas alone, so that the exchange is equal and opposite and the mean of
 * the models is kept.
 *
 * In the last phase, where nothing but the graph slows consensus down, with momentum (heavy
 * ball, as in second-order diffusion: Muthukrishnan, Ghosh, Schultz 1998). Its velocity is
 * the edge's, not the peer's: what an exchange did is equal and opposite at the two ends, and
 * so is what is left of it in the next. Whatever edges fail and whoever is ahead, the mean
 * stands. Where all edges commit, the velocities of a peer add up to x(k) - x(k-1).
 */
#ifndef GOSSIP_MIXERS_CORRECTION_H
#define GOSSIP_MIXERS_CORRECTION_H

#include <stdbool.h>
#include <stddef.h>

struct mixing;
struct mixing_task;

/* One neighbour's term of the sum. */
struct correction
{
    const float *a, *b;
    float coefficient; /* gamma w, with --tolerate shortened (clip.h); 0 where refused. */
    float *velocity;   /* NULL: the term has no momentum, and never had any. */
    float momentum;    /* That of this exchange. */
    double d2;         /* Out: |b - a|^2 is added. */
    double w;          /* The edge's weight. */
    double limit2;     /* The term is refused where d2 is over it; 0: no limit. */
    bool refused;      /* Out: x is, but for rounding, as without the term. */
    bool ruled;        /* Its step is gamma's, and not one of the mixer's own. */
    struct mixing_task *task;
};

/* x += sum of coefficient (b - a) over n terms, in their order, in one pass over x; or, with
 * a velocity v, v = momentum v + coefficient (b - a) and x += v. A term
 * that turns out to be over its limit is taken back: what was added of it until then is
 * no longer than the limit, so that x loses no digits by it. */
void correction_pass(float *x, size_t dim, struct correction *term, size_t n);

/* Worker, in a mixer's mix: correct x by every task that commits and for which
 * corrects() says so, by the step size that step() gives it; where that is 0, and where there
 * is no step(), each edge's gamma takes its step. m->local2 becomes the sum
 * of |b - a|^2, and stays what it was where there was no such task. */
void correction_mix(struct mixing *m, bool (*corrects)(const struct mixing_task *t),
                    double (*step)(const struct mixing *m, const struct mixing_task *t));

#endif
