/* tests/unit/nn_peers.h -- peers on a ring that average their models, each with a quadratic loss of
 * its own, for tests of the kinds of momentum (nn/train/momentum_kind.h). */
#ifndef TESTS_UNIT_NN_PEERS_H
#define TESTS_UNIT_NN_PEERS_H

#include "nn/math/rng.h"
#include "nn/train/round_momentum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PEERS = 5, DIM = 17 };

/* Coordinate k of the minimum of the loss of peer i. */
static inline double centre(uint32_t i, size_t k)
{
    return 2 * (double)rng_unit_at(rng_key(i, RNG_TEST, 31, 0), k) - 1;
}

/* Makes one exchange on a ring in double precision: x_i becomes the mean of x_i and the models of
 * its two neighbours. */
static inline void ring_mean(double x[PEERS][DIM])
{
    double was[PEERS][DIM];
    memcpy(was, x, sizeof was);
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            x[i][k] = (was[i][k] + was[(i + 1) % PEERS][k] + was[(i + PEERS - 1) % PEERS][k]) / 3;
}

/* One peer with the tested optimiser. */
struct peer
{
    struct round_momentum change;
    uint64_t n_learnt; /* Number of updates of the optimiser's moments m and v. */
    float x[DIM], m[DIM], v[DIM];
};

static inline void peers_open(struct peer p[PEERS], const struct momentum_kind *kind)
{
    memset(p, 0, PEERS * sizeof *p);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(round_momentum_init(&p[i].change, kind, DIM), 0);
}

static inline void peers_close(struct peer p[PEERS])
{
    for (uint32_t i = 0; i < PEERS; i++)
        round_momentum_close(&p[i].change);
}

/* Makes the local steps of one round of peer i. */
static inline void peer_steps(struct peer *p, uint32_t i, uint64_t round, double lr, uint32_t n,
                              const struct optimiser *o)
{
    struct segment all = {.n = DIM, .decays = true, .trained = true};
    float grad[DIM];
    struct optimiser_step step = {.segments = &all,
                                  .n_segments = 1,
                                  .x = p->x,
                                  .grad = grad,
                                  .m = p->m,
                                  .v = o->kind != OPTIMISER_SGD ? p->v : NULL,
                                  .lr = lr};
    p->n_learnt += round_momentum_begin(&p->change, o, &step, round, n);
    step.t = p->n_learnt + 1;
    for (uint32_t s = 0; s < n; s++) {
        for (size_t k = 0; k < DIM; k++)
            grad[k] = p->x[k] - (float)centre(i, k);
        optimiser_step(o, &step);
    }
}

/* Makes one exchange on the ring. The mean is computed in double precision and then rounded once,
 * so that differences in a test come from the momentum and not from the exchange. */
static inline void peers_exchange(struct peer p[PEERS])
{
    double x[PEERS][DIM];
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            x[i][k] = (double)p[i].x[k];
    ring_mean(x);
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            p[i].x[k] = (float)x[i][k];
}

#endif
