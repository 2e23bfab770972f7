/* tests/unit/nn_quasi_global.c -- quasi-global momentum: the algorithms of the paper on peers that
 * are averaged, with SGD, Adam and AdamW, and the eigenvalues for which differences between models
 * vanish. */
#include "nn/train/quasi_global.h"

#include "nn_peers.h"

/* ---- against the paper: peers on a ring, each with a quadratic loss of its own ---- */

enum { ROUNDS = 50 };

/* Returns the learning rate of a round. It rises and falls, and the number of local steps also
 * varies by round. */
static double rate(uint64_t round)
{
    return 0.02 * (double)(1 + round % 4);
}

static uint32_t n_steps(uint64_t round, uint32_t most)
{
    return round % 3 == 0 ? 1 : most;
}

/* Makes one round of Lin et al. 2021, algorithm 1, in the order of the paper: the momentum is
 * updated after the exchange. */
static void naive_round(double x[PEERS][DIM], double m[PEERS][DIM], uint64_t round, uint32_t steps,
                        const struct optimiser *o)
{
    double begin[PEERS][DIM], mu = o->momentum, lr = rate(round);
    memcpy(begin, x, sizeof begin);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t s = 0; s < steps; s++)
            for (size_t k = 0; k < DIM; k++) {
                double g = x[i][k] - centre(i, k), u = mu * m[i][k] + g;
                x[i][k] -= lr * (o->nesterov ? g + mu * u : u);
            }
    ring_mean(x);
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            m[i][k] = mu * m[i][k] + (1 - mu) * (begin[i][k] - x[i][k]) / (lr * steps);
}

/* Makes one round of the authors' program for Adam (quasi_global.h), in double precision. n_learnt:
 * number of updates of the moments before this round. */
static void naive_adam(double x[PEERS][DIM], double m[PEERS][DIM], double v[PEERS][DIM],
                       uint64_t round, uint32_t steps, uint64_t n_learnt, const struct optimiser *o)
{
    double begin[PEERS][DIM], b1 = o->momentum, b2 = o->beta2, lr = rate(round);
    double t = (double)n_learnt + 1;
    bool decoupled = o->kind == OPTIMISER_ADAMW;
    memcpy(begin, x, sizeof begin);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t s = 0; s < steps; s++)
            for (size_t k = 0; k < DIM; k++) {
                double g = x[i][k] - centre(i, k) + (decoupled ? 0 : o->weight_decay * x[i][k]);
                double first = (b1 * m[i][k] + g) / (1 - pow(b1, t));
                double second = (b2 * v[i][k] + (1 - b2) * g * g) / (1 - pow(b2, t));
                x[i][k] -= decoupled ? lr * o->weight_decay * x[i][k] : 0;
                x[i][k] -= lr * first / (sqrt(second) + 1e-8);
            }
    ring_mean(x);
    for (uint32_t i = 0; i < PEERS; i++) {
        double norm2 = 0;
        for (size_t k = 0; k < DIM; k++)
            norm2 += (begin[i][k] - x[i][k]) * (begin[i][k] - x[i][k]);
        for (size_t k = 0; k < DIM; k++) {
            double d = (begin[i][k] - x[i][k]) / (sqrt(norm2) + 1e-8);
            m[i][k] = b1 * m[i][k] + (1 - b1) * d;
            v[i][k] = b2 * v[i][k] + (1 - b2) * d * d;
        }
    }
}

static void as_naive(const struct optimiser *o, uint32_t most)
{
    static struct peer p[PEERS];
    double x[PEERS][DIM] = {{0}}, m[PEERS][DIM] = {{0}}, v[PEERS][DIM] = {{0}}, moved = 0;
    peers_open(p, &momentum_qg);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t n = n_steps(round, most);
        for (uint32_t i = 0; i < PEERS; i++)
            peer_steps(&p[i], i, round, rate(round), n, o);
        peers_exchange(p);
        if (o->kind == OPTIMISER_SGD)
            naive_round(x, m, round, n, o);
        else
            naive_adam(x, m, v, round, n, round, o);
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++) {
                moved = fmax(moved, fabs(x[i][k]));
                if (!(fabs((double)p[i].x[k] - x[i][k]) <= 1e-5))
                    fail_msg("optimiser %d, mu %g, nesterov %d, %u steps, round %d, peer %u: "
                             "x[%zu] is %.7g, expected %.7g",
                             o->kind, o->momentum, o->nesterov, most, (int)round, i, k,
                             (double)p[i].x[k], x[i][k]);
            }
    }
    assert_true(moved > 0.2);
    peers_close(p);
}

static void test_textbook(void **state)
{
    (void)state;
    for (uint32_t most = 1; most <= 4; most += 3)
        for (int nesterov = 0; nesterov < 2; nesterov++) {
            as_naive(
                &(struct optimiser){.momentum = 0.9, .nesterov = nesterov, .use = MOMENTUM_HELD},
                most);
            as_naive(
                &(struct optimiser){.momentum = 0.5, .nesterov = nesterov, .use = MOMENTUM_HELD},
                most);
        }
}

static void test_textbook_of_adam(void **state)
{
    (void)state;
    for (uint32_t most = 1; most <= 4; most += 3)
        for (int w = 0; w < 2; w++) {
            struct optimiser o = {.kind = w ? OPTIMISER_ADAMW : OPTIMISER_ADAM,
                                  .momentum = 0.9,
                                  .beta2 = 0.99,
                                  .weight_decay = 0.1,
                                  .use = MOMENTUM_HELD};
            as_naive(&o, most);
            o.momentum = 0.5;
            as_naive(&o, most);
        }
}

/* ---- convergence of the exchange with quasi-global momentum ---- */

/* Simulates one component of the differences between models, which belongs to the eigenvalue l of
 * the mixing matrix. Gradients are 0. Returns the size of the component after 3000 rounds. */
static double left(double l, double mu)
{
    struct optimiser o = {.momentum = mu, .use = MOMENTUM_HELD};
    struct segment all = {.n = 1, .trained = true};
    struct round_momentum q;
    float x = 1, m = 0, grad = 0;
    assert_int_equal(round_momentum_init(&q, &momentum_qg, 1), 0);
    for (uint64_t round = 0; round < 3000 && fabsf(x) < 1e15f; round++) {
        struct optimiser_step step = {&all, 1, &x, &grad, &m, NULL, 0, 0.1, NULL, NULL};
        (void)round_momentum_begin(&q, &o, &step, round, 1);
        optimiser_step(&o, &step);
        x *= (float)l;
    }
    round_momentum_close(&q);
    return fabs((double)x);
}

static void test_where_it_dies_out(void **state)
{
    (void)state;
    double worst = 1;
    for (double mu = 0.05; mu < 0.96; mu += 0.05) {
        double bound = (1 + mu) / (1 + 3 * mu - 2 * mu * mu);
        worst = fmin(worst, bound);
        for (double l = 0.9; l > -bound; l -= 0.1)
            if (!(left(l, mu) < 1e-3))
                fail_msg("mu %g, eigenvalue %g: %g left", mu, l, left(l, mu));
        assert_true(left(-bound + 0.01, mu) < 1e-3);
        assert_true(bound > 0.985 || left(-bound - 0.01, mu) > 1e6);
    }
    assert_true(worst > 0.74 && worst < 0.75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook),
        cmocka_unit_test(test_textbook_of_adam),
        cmocka_unit_test(test_where_it_dies_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
