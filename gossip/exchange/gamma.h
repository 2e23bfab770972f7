/* gossip/exchange/gamma.h -- the consensus step size gamma of one edge.
 *
 * Gamma is fixed by the user, or follows an adaptive rule without parameters. Notation, for the
 * edge between peers i and j with the models x_i and x_j:
 *
 *   a, b      replicas of x_i and x_j on this edge
 *   E_i       |x_i - a| after peer i has encoded its delta: what the delta leaves unsent
 *   E_j       |x_j - b| after peer j has encoded its delta
 *   D         |b - a|
 *   rho       residual ratio, sqrt((E_i^2 + E_j^2) / 2) / D
 *   delta_i   contraction that peer i measured: 1 - E_i^2 / |x_i - a|^2, with a before its delta
 *
 * The rule:
 *
 *   first exchange:   gamma = min(1, 1.5 delta),  delta = min(delta_i, delta_j)
 *   later exchanges:  gamma <- min(1, gamma clip((0.6 / rho)^0.1, 0.9, 1.05)),
 *                     limited to [delta/2, 3 delta/2], with delta averaged over about ten exchanges
 *
 * The bounds [delta/2, 3 delta/2] exist because rho alone can be misleading in two ways. If all
 * peers learn alike, all replicas lag behind their models by the same vector. Rho is then large
 * although the models are close, and would take gamma to 0 (measured: 1e-4 after 100 rounds, where
 * 0.03 was right). If one large component of the model is transmitted well, it hides the other
 * components. Rho is then small and would take gamma to 1, although the other components of the
 * replicas lag. Step sizes found by hand were 0.6 to 1 times the contraction for every codec tried.
 *
 * A *runaway* is an edge on which D grows by more than half in each of GAMMA_WINDOWS windows (of
 * GAMMA_WINDOW exchanges) in a row, until the two models are no closer than unrelated models (D^2 >
 * |a|^2 + |b|^2). Half of gamma then becomes an upper bound of gamma, which rises by 1 % per
 * exchange until it is 1.
 *
 * Some runs need a mixing matrix without negative eigenvalues (*positive semidefinite*). In these
 * runs gamma is also at most
 *
 *   (1 + max(d_i, d_j)) / (d_i + d_j)
 *
 * for an edge between peers of the degrees d_i and d_j. With the Metropolis-Hastings weight w = 1 /
 * (1 + max(d_i, d_j)), gamma w is then at most 1 / (d_i + d_j). The mixing matrix is 1 - L, where L
 * is the Laplacian with the edge weights gamma w. L has the same nonzero eigenvalues as a matrix
 * with one row and one column for each edge. The row of edge e, with its gamma w, has 2 gamma w in
 * the column of e, +-gamma w in the columns of the d_i + d_j - 2 edges that share a peer with e,
 * and 0 elsewhere. The absolute values of a row have a sum of gamma w (d_i + d_j) <= 1, so L has no
 * eigenvalue above 1 (Anderson, Morley 1985, for weighted edges). The two ends of an edge know both
 * degrees. On even rings, tori with even sides and hypercubes, each larger gamma that is common to
 * all edges gives a negative eigenvalue.
 *
 * Rho is taken from the previous exchange, because D is a by-product of the mixing in that
 * exchange. Both ends have all inputs bit for bit, and the rule uses only + - * / sqrt, which IEEE
 * 754 rounds alike on every machine. Both ends therefore compute the same gamma, the two
 * corrections are equal and opposite, and the mean of all models is kept.
 */
#ifndef GOSSIP_EXCHANGE_GAMMA_H
#define GOSSIP_EXCHANGE_GAMMA_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Length of a window in exchanges. At the end of each window, the growth of the distance D = |b
     * - a| is measured. */
    GAMMA_WINDOW = 8,
    /* Number of successive windows of GAMMA_WINDOW exchanges in which the distance D of the
     * replicas must have grown before gamma_judge() tests whether the replicas are too far
     * apart. */
    GAMMA_WINDOWS = 2
};

/* State of the step size of one edge. Both ends compute the same values. */
struct gamma
{
    double value; /* Step size of the last exchange, or the fixed step size. */
    bool fixed; /* True: the user has set a constant step size, so the adaptive rule is not used. */
    bool begun; /* True: the adaptive rule has a start value of gamma greater than 0. */
    /* Number that identifies the pair of codecs of the last exchange. Gamma restarts if the pair
     * changes. */
    uint32_t codecs;
    /* E_i^2 + E_j^2: the squared residuals |x - a|^2 of both ends after the last exchange's
     * deltas. */
    double e2;
    /* D^2 = |b - a|^2, the squared distance of the two replicas in the last exchange. 0 until
     * gamma_measured() has set it. */
    double d2;
    /* Moving average, over exchanges, of the lesser of the two ends' contractions. */
    double delta;
    /* Upper bound of the step size gamma. 1, unless it was lowered because the replicas of the edge
     * moved too far apart (a runaway, top of this file). */
    double most;
    /* D^2 = |b - a|^2, the squared distance of the two replicas, at the end of the last window of
     * GAMMA_WINDOW exchanges. 0: no window has ended. */
    double mark;
    uint32_t age; /* Number of exchanges in the current window of GAMMA_WINDOW exchanges. */
    /* Number of successive windows of GAMMA_WINDOW exchanges in which the distance D = |b - a| of
     * the two replicas grew by more than half. */
    uint32_t grown;
    /* Number of times that this edge was a runaway, an edge whose replicas move too far apart (top
     * of this file). The owner of the edge prints a warning when the number grows. */
    uint32_t n_runaways;
};

/* Input of the gamma rule from one exchange. The neighbour's end has the same values, with the
 * `own` and `other` fields swapped. */
struct gamma_exchange
{
    /* Squared distance |x - a|^2 of this peer's model from its replica, before (x2) and after (e2)
     * this peer's delta is applied. */
    double x2_own, e2_own;
    /* Squared distance of the neighbour's model from its replica, before (x2) and after (e2) the
     * neighbour's delta is applied. Announced in that delta. */
    double x2_other, e2_other;
    /* Number that identifies the pair of codecs of the two deltas, the same at both ends. */
    uint32_t codecs;
    /* Upper bound of an adaptive step size in this exchange: 1 or gamma_semidefinite(). */
    double most;
};

/* Returns the bound of gamma, at most 1, for an edge between peers of the degrees d_i and d_j, both
 * at least 1. If all edges obey it, the mixing matrix has no negative eigenvalue (top of this
 * file). */
double gamma_semidefinite(uint32_t d_i, uint32_t d_j);

/* Initialises gamma. fixed_value: the constant step size; 0 selects the adaptive rule. */
void gamma_init(struct gamma *g, double fixed_value);

/* Returns the step size gamma for exchange *x, and stores what the next exchange needs. Called once
 * per committed exchange, before the models are mixed. */
double gamma_next(struct gamma *g, const struct gamma_exchange *x);

/* Returns the share of the momentum that this exchange may use, in [0, 1]. The share depends on the
 * residual ratio rho (top of this file), with D of the previous exchange: 1 for a small rho, 0 if
 * rho is at least 1/2 or D is unknown. With a large rho, the replicas lag behind the models.
 * Momentum would repeat the lag in each round, and the models would move apart without bound.
 * Called before gamma_next(). */
double gamma_bears(const struct gamma *g, const struct gamma_exchange *x);

/* Records d2 = D^2, where D = |b - a| is the distance of the two replicas in this exchange. Returns
 * true if D has grown in GAMMA_WINDOWS windows in a row, so that the caller must call
 * gamma_judge(). */
bool gamma_measured(struct gamma *g, double d2);

/* Tests whether the edge is a runaway: the squared distance D^2 of its replicas exceeds n2 = |a|^2
 * + |b|^2. If so, counts a runaway, and limits an adaptive gamma to half of its value. A fixed
 * gamma is not changed. Returns true if gamma was limited. */
bool gamma_judge(struct gamma *g, double n2);

#endif
