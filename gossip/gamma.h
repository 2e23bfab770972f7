/* gossip/gamma.h -- the consensus step size of one edge.
 *
 * Fixed, or by the residual-ratio rule, with no parameter for the user. With
 * E_i = |x_i - a| after encoding, D = |b - a|, and
 * rho = sqrt((E_i^2 + E_j^2) / 2) / D:
 *
 *   first exchange:  gamma = min(1, 1.5 min(delta_i, delta_j))
 *   then:            gamma <- min(1, gamma clip((0.6 / rho)^0.1, 0.9, 1.05))
 *
 * rho is that of the exchange before, so that D comes for free out of the pass
 * that mixes. Everything it is made of is held by both ends bit for bit, and
 * only + - * / sqrt are used, which IEEE 754 rounds alike everywhere: so both
 * ends compute the same gamma, the exchange is equal and opposite, and the
 * mean of the cluster is kept.
 */
#ifndef GOSSIP_GAMMA_H
#define GOSSIP_GAMMA_H

#include <stdbool.h>
#include <stdint.h>

struct gamma
{
    double value;
    bool fixed;
    bool begun;
    uint32_t codecs; /* Of the last exchange: a new codec begins anew. */
    double e2;       /* E_i^2 + E_j^2 of the last exchange. */
    double d2;       /* D^2 of it: filled in by the mixing pass. */
    double delta;    /* The lesser contraction of the two ends, smoothed. */
};

/* What an exchange tells the rule; symmetric in the two ends. */
struct gamma_exchange
{
    double x2_own, e2_own;     /* |x - a|^2 before and after our delta. */
    double x2_other, e2_other; /* Theirs, as announced. */
    uint32_t codecs;           /* Names the pair of codecs, whoever is who. */
};

/* fixed_value > 0: that, for ever. 0: the rule. */
void gamma_init(struct gamma *g, double fixed_value);

/* The step size for this exchange. */
double gamma_next(struct gamma *g, const struct gamma_exchange *x);

/* The mixing pass's |b - a|^2 of this exchange. */
void gamma_measured(struct gamma *g, double d2);

#endif
