/* tests/unit/nn_decentlam.c -- DecentLaM momentum: the published update on peers that are
 * averaged, the form with several local steps, the bias of peers with different data, and the
 * mixing matrices for which differences between models vanish. */
#include "nn/train/decentlam.h"

#include "nn_peers.h"

enum { ROUNDS = 50 };

/* Makes local steps in double precision from x[] to y[]. */
static void naive_steps(double x[PEERS][DIM], double y[PEERS][DIM], double lr, uint32_t steps,
                        const struct optimiser *o)
{
    memcpy(y, x, PEERS * sizeof *x);
    for (uint32_t i = 0; i < PEERS; i++)
        for (uint32_t s = 0; s < steps; s++)
            for (size_t k = 0; k < DIM; k++)
                y[i][k] -= lr * (y[i][k] - centre(i, k) + o->weight_decay * y[i][k]);
}

/* Checks that the model of each peer before the local steps of a round equals x[]. These models
 * contain the momentum already. Returns the largest |x[i][k]|. */
static double same_models(const struct peer p[PEERS], double x[PEERS][DIM], uint64_t round)
{
    double most = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++) {
            most = fmax(most, fabs(x[i][k]));
            if (!(fabs((double)p[i].change.begin[k] - x[i][k]) <= 1e-5))
                fail_msg("round %d, peer %u: x[%zu] is %.7g, expected %.7g", (int)round, i, k,
                         (double)p[i].change.begin[k], x[i][k]);
        }
    return most;
}

/* ---- against the published update: y = x - lr g, g' = (x - W y) / lr, u = beta u + g',
 * x = x - lr u ---- */

static void as_published(const struct optimiser *o)
{
    const double lr = 0.05;
    static struct peer p[PEERS];
    double x[PEERS][DIM] = {{0}}, u[PEERS][DIM] = {{0}}, y[PEERS][DIM], moved = 0;
    peers_open(p, &momentum_decentlam);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < PEERS; i++)
            peer_steps(&p[i], i, round, lr, 1, o);
        moved = fmax(moved, same_models(p, x, round));
        peers_exchange(p);
        naive_steps(x, y, lr, 1, o);
        ring_mean(y);
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++) {
                u[i][k] = o->momentum * u[i][k] + (x[i][k] - y[i][k]) / lr;
                x[i][k] -= lr * u[i][k];
            }
    }
    assert_true(moved > 0.2);
    peers_close(p);
}

static void test_textbook(void **state)
{
    (void)state;
    for (int nesterov = 0; nesterov < 2; nesterov++)
        for (double beta = 0.5; beta < 1; beta += 0.4)
            as_published(&(struct optimiser){.momentum = beta,
                                             .nesterov = nesterov != 0,
                                             .weight_decay = 0.1,
                                             .use = MOMENTUM_IGNORED});
}

/* ---- several local steps, and a learning rate that changes ---- */

/* DecentLaM in one formula: x(t+1) = W y(t) + beta (x(t) - x(t-1)), where W is the mixing matrix,
 * beta the momentum, and y(t) the model after the local steps. */
static void as_heavy_ball(const struct optimiser *o, uint32_t most)
{
    static struct peer p[PEERS];
    double x[PEERS][DIM] = {{0}}, last[PEERS][DIM] = {{0}}, y[PEERS][DIM], moved = 0;
    peers_open(p, &momentum_decentlam);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double lr = 0.02 * (double)(1 + round % 4);
        uint32_t n = round % 3 == 0 ? 1 : most;
        for (uint32_t i = 0; i < PEERS; i++)
            peer_steps(&p[i], i, round, lr, n, o);
        moved = fmax(moved, same_models(p, x, round));
        peers_exchange(p);
        naive_steps(x, y, lr, n, o);
        ring_mean(y);
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++) {
                double next = y[i][k] + o->momentum * (x[i][k] - last[i][k]);
                last[i][k] = x[i][k];
                x[i][k] = next;
            }
    }
    assert_true(moved > 0.2 && moved < 3); /* The models stay near the minima of the losses. */
    peers_close(p);
}

static void test_local_steps(void **state)
{
    (void)state;
    for (uint32_t most = 1; most <= 7; most += 3)
        for (double beta = 0.5; beta < 1; beta += 0.4)
            as_heavy_ball(&(struct optimiser){.momentum = beta, .use = MOMENTUM_IGNORED}, most);
}

/* ---- the bias of different data ---- */

/* Returns how far the models of all peers are from their mean after 400 rounds at a constant
 * learning rate. */
static double spread(const struct momentum_kind *kind, double lr)
{
    static struct peer p[PEERS];
    const struct optimiser o = {.momentum = 0.9, .use = kind->use};
    double sum = 0;
    if (kind->learn != NULL)
        peers_open(p, kind);
    else
        memset(p, 0, sizeof p);
    for (uint64_t round = 0; round < 400; round++) {
        for (uint32_t i = 0; i < PEERS; i++) {
            if (kind->learn != NULL) {
                peer_steps(&p[i], i, round, lr, 1, &o);
                continue;
            }
            struct segment all = {.n = DIM, .trained = true};
            float grad[DIM];
            for (size_t k = 0; k < DIM; k++)
                grad[k] = p[i].x[k] - (float)centre(i, k);
            optimiser_step(&o, &(struct optimiser_step){&all, 1, p[i].x, grad, p[i].m, NULL, 0, lr,
                                                        NULL, NULL});
        }
        peers_exchange(p);
    }
    for (size_t k = 0; k < DIM; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < PEERS; i++)
            mean += (double)p[i].x[k] / PEERS;
        for (uint32_t i = 0; i < PEERS; i++)
            sum += ((double)p[i].x[k] - mean) * ((double)p[i].x[k] - mean);
    }
    peers_close(p);
    return sqrt(sum);
}

/* With local momentum the distance between the models is up to 1 / (1 - 0.9) = 10 times the
 * distance without momentum. With decentlam it equals the distance without momentum. Here it must
 * be less than a fifth of the distance with local momentum. */
static void test_bias(void **state)
{
    (void)state;
    double local = spread(&momentum_local, 0.02), lam = spread(&momentum_decentlam, 0.02);
    print_message("# distance between models: %.3g with local momentum, %.3g with decentlam\n",
                  local, lam);
    assert_true(lam > 0 && lam < 0.2 * local);
}

/* ---- convergence of the exchange ---- */

/* Simulates one component of the differences between models. In round t the exchange multiplies the
 * component by l[t % n_rounds]. Gradients are 0. Returns the size of the component after 3000
 * rounds, or after fewer if it exceeds 1e15. */
static double left(const double *l, uint64_t n_rounds, double beta)
{
    struct optimiser o = {.momentum = beta, .use = MOMENTUM_IGNORED};
    struct segment all = {.n = 1, .trained = true};
    struct round_momentum q;
    float x = 1, m = 0, grad = 0;
    assert_int_equal(round_momentum_init(&q, &momentum_decentlam, 1), 0);
    for (uint64_t round = 0; round < 3000 && fabsf(x) < 1e15f; round++) {
        struct optimiser_step step = {&all, 1, &x, &grad, &m, NULL, 0, 0.1, NULL, NULL};
        (void)round_momentum_begin(&q, &o, &step, round, 1);
        optimiser_step(&o, &step);
        x *= (float)l[round % n_rounds];
    }
    round_momentum_close(&q);
    return fabs((double)x);
}

/* With a mixing matrix that is the same in every round, differences between models vanish for every
 * eigenvalue from -(1 + 2 beta) to 1. They can grow if the matrix changes: here three rounds do not
 * mix and the fourth mixes completely (decentlam.h). */
static void test_where_it_dies_out(void **state)
{
    (void)state;
    for (double beta = 0.1; beta < 0.96; beta += 0.17)
        for (double l = -1; l < 0.95; l += 0.1)
            if (!(left(&l, 1, beta) < 1e-3))
                fail_msg("beta %g, eigenvalue %g: %g left", beta, l, left(&l, 1, beta));
    double beyond = -(1 + 2 * 0.9) - 0.01;
    assert_true(left(&beyond, 1, 0.9) > 1e6);
    static const double of_four[] = {1, 1, 1, 0};
    assert_true(left(of_four, 4, 0.9) > 1e6);
    assert_true(left(of_four, 4, 0.5) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook), cmocka_unit_test(test_local_steps),
        cmocka_unit_test(test_bias), cmocka_unit_test(test_where_it_dies_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
