/* tests/unit/nn_quasi_global.c -- quasi-global momentum: comparison with the algorithm of the
 * paper, the momentum after an exchange has changed the trainer's model, a restart, and for which
 * eigenvalues of the mixing matrix differences between models vanish. */
#include "nn/train/quasi_global.h"

#include "nn/math/state.h"
#include "nn_training.h"

#include <errno.h>

/* ---- against the paper: peers on a ring, each with a quadratic loss of its own ---- */

enum { PEERS = 5, DIM = 17, ROUNDS = 30 };

static double centre(uint32_t i, size_t k)
{
    return 2 * (double)rng_unit_at(rng_key(i, RNG_TEST, 31, 0), k) - 1;
}

/* Returns the learning rate of a round, which rises and falls. The number of local steps also
 * varies by round. */
static double rate(uint64_t round)
{
    return 0.02 * (double)(1 + round % 4);
}

static uint32_t n_steps(uint64_t round, uint32_t most)
{
    return round % 3 == 0 ? 1 : most;
}

/* Makes one exchange on a ring in double precision: x_i becomes the mean of x_i and the models of
 * its two neighbours. */
static void ring_mean(double x[PEERS][DIM])
{
    double was[PEERS][DIM];
    memcpy(was, x, sizeof was);
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            x[i][k] = (was[i][k] + was[(i + 1) % PEERS][k] + was[(i + PEERS - 1) % PEERS][k]) / 3;
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

struct peer
{
    struct quasi_global global;
    float x[DIM], m[DIM];
};

static void real_steps(struct peer *p, uint32_t i, uint64_t round, uint32_t steps,
                       const struct optimiser *o)
{
    struct segment all = {.n = DIM, .trained = true};
    float grad[DIM];
    quasi_global_begin(&p->global, p->x, round, rate(round) * steps, o->momentum, p->m);
    for (uint32_t s = 0; s < steps; s++) {
        for (size_t k = 0; k < DIM; k++)
            grad[k] = p->x[k] - (float)centre(i, k);
        struct optimiser_step step = {.segments = &all,
                                      .n_segments = 1,
                                      .x = p->x,
                                      .grad = grad,
                                      .m = p->m,
                                      .lr = rate(round)};
        optimiser_step(o, &step);
    }
}

/* Makes one exchange of the models of the tested trainers, in double precision and then rounded.
 * The exchange thus adds no error, and the test compares only the momentum. */
static void real_exchange(struct peer *p)
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

static void as_naive(const struct optimiser *o, uint32_t most)
{
    static struct peer p[PEERS];
    double x[PEERS][DIM] = {{0}}, m[PEERS][DIM] = {{0}}, moved = 0;
    memset(p, 0, sizeof p);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(quasi_global_init(&p[i].global, DIM), 0);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < PEERS; i++)
            real_steps(&p[i], i, round, n_steps(round, most), o);
        real_exchange(p);
        naive_round(x, m, round, n_steps(round, most), o);
        for (uint32_t i = 0; i < PEERS; i++)
            for (size_t k = 0; k < DIM; k++) {
                moved = fmax(moved, fabs(x[i][k]));
                if (!(fabs((double)p[i].x[k] - x[i][k]) <= 2e-5))
                    fail_msg("mu %g, nesterov %d, %u steps, round %d, peer %u: x[%zu] is %.7g, "
                             "expected %.7g",
                             o->momentum, o->nesterov, most, (int)round, i, k, (double)p[i].x[k],
                             x[i][k]);
            }
    }
    assert_true(moved > 0.2);
    for (uint32_t i = 0; i < PEERS; i++)
        quasi_global_close(&p[i].global);
}

static void test_textbook(void **state)
{
    (void)state;
    for (uint32_t most = 1; most <= 4; most += 3)
        for (int nesterov = 0; nesterov < 2; nesterov++) {
            as_naive(&(struct optimiser){.momentum = 0.9, .nesterov = nesterov, .held = true},
                     most);
            as_naive(&(struct optimiser){.momentum = 0.5, .nesterov = nesterov, .held = true},
                     most);
        }
}

/* ---- the trainer ---- */

static void bed_open_global(struct bed *b, const char *spec, const char *kind)
{
    bed_open_on(b, spec, kind, 1);
    b->config.optimiser =
        (struct optimiser){.momentum = 0.8, .nesterov = true, .weight_decay = 1e-4, .held = true};
}

/* Checks the momentum of the trainer after a round. was: momentum before the round. from, to: model
 * before and after the round. way: learning rate times number of local steps of the round. */
static void momentum_is(const struct bed *b, const float *was, const float *from, const float *to,
                        double way)
{
    size_t n = segments_trained(b->model.segments, b->model.n_segments);
    for (size_t k = 0; k < n; k++) {
        double want = 0.8 * (double)was[k] + 0.2 * ((double)from[k] - (double)to[k]) / way;
        if (!(fabs((double)b->trainer.momentum[k] - want) <= 1e-5 * fmax(fabs(want), 1)))
            fail_msg("m[%zu] is %g, expected %g", k, (double)b->trainer.momentum[k], want);
    }
    for (size_t k = n; k < b->model.n_params; k++)
        assert_true(b->trainer.momentum[k] == 0); /* Running statistics have no momentum. */
}

/* Between rounds the exchange moves the model, and the momentum m contains this change divided
 * by the learning rate and the number of local steps of the round. Skipped rounds and the first
 * round do not change m. */
static void check_rounds(const char *spec, const char *kind)
{
    struct bed b;
    bed_open_global(&b, spec, kind);
    bed_start(&b);
    size_t size = b.model.n_params * sizeof *b.x;
    float *was = vector(&b), *from = vector(&b), *to = vector(&b);
    static const struct
    {
        uint64_t round;
        uint32_t n;
        bool learns;
    } row[] = {{0, 3, false}, {1, 1, true},  {2, 4, true},  {2, 2, false},
               {4, 1, false}, {3, 1, false}, {4, 2, true},  {40, 1, false},
               {41, 1, true}, {42, 0, true}, {43, 1, false}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        memcpy(was, b.trainer.momentum, size);
        memcpy(to, b.x, size);
        (void)steps(&b, row[k].round, row[k].n);
        if (row[k].learns) {
            double lr = schedule_lr(&b.config.schedule, row[k - 1].round);
            momentum_is(&b, was, from, to, lr * row[k - 1].n);
            assert_memory_not_equal(b.trainer.momentum, was, size);
        } else {
            assert_memory_equal(b.trainer.momentum, was, size);
        }
        memcpy(from, to, size);
        for (size_t i = 0; i < b.model.n_params; i++)
            b.x[i] += 1e-3f * (float)(i % 7);
    }
    free(was);
    free(from);
    free(to);
    bed_close(&b);
}

static void test_rounds(void **state)
{
    (void)state;
    check_rounds("mlp:784-32-10", "mnist");
    check_rounds("resnet:8", "cifar10");
}

/* Local steps use the momentum, which is constant within a round. A single peer still reaches an
 * accuracy of 97 %. */
static void test_learns(void **state)
{
    (void)state;
    struct bed b;
    bed_open_global(&b, "mlp:784-32-10", "mnist");
    bed_start(&b);
    for (uint64_t round = 0; round < 40; round++)
        (void)steps(&b, round, 4);
    assert_true(evaluate(&b, 0).accuracy > 0.97);
    bed_close(&b);
}

/* A trainer with several threads, or with a callback that reports final layers, makes the same
 * steps as a trainer with one thread and no callback. */
static void done(void *arg, size_t from)
{
    *(size_t *)arg += from > 0;
}

static void test_ways_to_step(void **state)
{
    (void)state;
    struct bed one, layers, threads;
    size_t n_calls = 0;
    bed_open_global(&one, "lenet5", "mnist");
    bed_open_global(&layers, "lenet5", "mnist");
    bed_open_global(&threads, "lenet5", "mnist");
    threads.config.threads = 3;
    bed_start(&one);
    bed_start(&layers);
    bed_start(&threads);
    for (uint64_t round = 0; round < 3; round++) {
        layers.face.watch(layers.face.self, done, &n_calls);
        (void)steps(&one, round, 2);
        (void)steps(&layers, round, 2);
        (void)steps(&threads, round, 2);
        same_x(&one, &layers);
    }
    assert_true(n_calls > 3);
    double apart = sqrt(vec_dist2(one.x, threads.x, one.face.n_params));
    assert_true(apart <= 1e-5 * sqrt(vec_norm2(one.x, one.face.n_params)));
    bed_close(&one);
    bed_close(&layers);
    bed_close(&threads);
}

/* ---- restart from a saved state ---- */

/* Another trainer that reads the saved state continues with the same bits. */
static void test_restart(void **state)
{
    (void)state;
    struct bed a, b;
    struct state w = {0}, r;
    bed_open_global(&a, "mlp:784-32-10", "mnist");
    bed_open_global(&b, "mlp:784-32-10", "mnist");
    bed_start(&a);
    bed_start(&b);
    for (uint64_t round = 0; round < 5; round++)
        (void)steps(&a, round, 2);
    state_write(&w);
    a.face.state(a.face.self, &w);
    assert_int_equal(state_end(&w), 0);
    memcpy(b.x, a.x, a.face.n_params * sizeof *a.x);
    state_read(&r, w.bytes, w.n, w.section, w.n_sections);
    b.face.state(b.face.self, &r);
    assert_int_equal(state_end(&r), 0);
    for (uint64_t round = 5; round < 9; round++) {
        (void)steps(&a, round, 2);
        (void)steps(&b, round, 2);
        same_x(&a, &b);
    }
    assert_true(vec_norm2(a.trainer.momentum, a.face.n_params) > 0);
    state_close(&w);
    bed_close(&a);
    bed_close(&b);
}

/* A saved state is refused if it has an invalid value or comes from a trainer with local
 * momentum. */
static void test_bad_state(void **state)
{
    (void)state;
    static const double way[] = {-1, (double)NAN, (double)INFINITY};
    for (size_t k = 0; k < 4; k++) {
        struct bed a, b;
        struct state w = {0}, r;
        bed_open_global(&a, "logreg", "mnist");
        bed_open_global(&b, "logreg", "mnist");
        a.config.optimiser.held = k < 3;
        bed_start(&a);
        bed_start(&b);
        if (k < 3)
            a.trainer.global.way = way[k];
        state_write(&w);
        a.face.state(a.face.self, &w);
        assert_int_equal(state_end(&w), 0);
        state_read(&r, w.bytes, w.n, w.section, w.n_sections);
        b.face.state(b.face.self, &r);
        assert_int_equal(state_end(&r), -EINVAL);
        state_close(&w);
        bed_close(&a);
        bed_close(&b);
    }
}

/* ---- convergence of the exchange with quasi-global momentum ---- */

/* Simulates one component of the differences between models, which belongs to the eigenvalue l of
 * the mixing matrix. Gradients are 0. Returns the size of the component after 3000 rounds. */
static double left(double l, double mu)
{
    struct optimiser o = {.momentum = mu, .held = true};
    struct segment all = {.n = 1, .trained = true};
    struct quasi_global q;
    float x = 1, m = 0, grad = 0;
    assert_int_equal(quasi_global_init(&q, 1), 0);
    for (uint64_t round = 0; round < 3000 && fabsf(x) < 1e15f; round++) {
        quasi_global_begin(&q, &x, round, 0.1, mu, &m);
        struct optimiser_step step = {&all, 1, &x, &grad, &m, NULL, 0, 0.1};
        optimiser_step(&o, &step);
        x *= (float)l;
    }
    quasi_global_close(&q);
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
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_ways_to_step),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_bad_state),
        cmocka_unit_test(test_where_it_dies_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
