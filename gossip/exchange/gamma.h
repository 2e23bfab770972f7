/* gossip/exchange/gamma.h -- the consensus step size of one edge.
 *
 * Fixed, or by a rule with no parameter for the user. With E_i = |x_i - a| after
 * encoding, D = |b - a|, rho = sqrt((E_i^2 + E_j^2) / 2) / D (the residual
 * ratio), and delta_i = 1 - E_i^2 / |x_i - a_before|^2, the contraction that the
 * sender of a delta measured:
 *
 *   first exchange:  gamma = min(1, 1.5 delta),  delta = min(delta_i, delta_j)
 *   then:            gamma <- min(1, gamma clip((0.6 / rho)^0.1, 0.9, 1.05)),
 *                    held between delta/2 and 3 delta/2, delta smoothed over
 *                    some ten exchanges
 *
 * The ratio finds the step size within those bounds; they are there because it
 * can be fooled. While all peers learn alike, what their replicas lag behind by
 * is the same everywhere: rho is large, and alone it would take gamma to zero
 * just when the models begin to part (seen: 1e-4 after 100 rounds, where 0.03
 * was right). And what travels well may hide what does not: then rho is small,
 * and gamma would go to 1 for parameters whose replicas lag. Step sizes found by
 * hand, of every codec tried, are 0.6 to 1 of the contraction.
 *
 * The last resort is a *runaway*: the distance D of an edge that grows for
 * GAMMA_WINDOWS windows in a row, each by half or more, until the two models
 * have no more in common than strangers' (D^2 > |a|^2 + |b|^2). Then gamma is
 * halved, and its upper bound comes back by a hundredth an exchange.
 *
 * rho is that of the exchange before, so that D comes for free out of the pass
 * that mixes. Everything it is made of is held by both ends bit for bit, and
 * only + - * / sqrt are used, which IEEE 754 rounds alike everywhere: so both
 * ends compute the same gamma, the exchange is equal and opposite, and the
 * mean of the cluster is kept.
 */
#ifndef GOSSIP_EXCHANGE_GAMMA_H
#define GOSSIP_EXCHANGE_GAMMA_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GAMMA_WINDOW = 8, /* Exchanges between looks at the growth of D. */
    GAMMA_WINDOWS = 2 /* Looks in a row that find it grown, until the edge is judged. */
};

struct gamma
{
    double value;        /* The step size of the last exchange. */
    bool fixed;          /* By the user, for ever. */
    bool begun;          /* The rule has had an exchange that told it something. */
    uint32_t codecs;     /* The last exchange's: with other ones gamma begins anew. */
    double e2;           /* E_i^2 + E_j^2 of the last exchange. */
    double d2;           /* D^2 of it: filled in by the mixing pass. */
    double delta;        /* The lesser contraction of the two ends, smoothed. */
    double most;         /* Gamma's upper bound: 1 but after a runaway. */
    double mark;         /* D^2 at the last look. */
    uint32_t age;        /* Exchanges since then. */
    uint32_t grown;      /* Looks in a row that found it grown. */
    uint32_t n_runaways; /* For the owner, who tells the user. */
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

/* Before gamma_next(): which share of a momentum does this exchange bear? All while rho is small,
 * and nothing where replicas lag by as much as the models differ: what they lag behind would be
 * carried on, round after round (on a ring of 32 such models part without end). */
double gamma_bears(const struct gamma *g, const struct gamma_exchange *x);

/* The mixing pass's |b - a|^2 of this exchange. True where it has grown for so
 * long that gamma_judge() has to be called. */
bool gamma_measured(struct gamma *g, double d2);

/* |a|^2 + |b|^2 is n2: is D^2 more than that? Then the edge runs away. True:
 * gamma was halved (a fixed one stays: the user's word goes). */
bool gamma_judge(struct gamma *g, double n2);

#endif
