/* tests/unit/gossip_exact.c -- tests the mixer `dpsgd`, which averages whole models.
 *
 * Tested are its results for logistic regression, that the mean of the models is kept in any order
 * of events, and the change to the consensus phase. */
#define WORLD_MOST 8
#include "gossip/mixers/dpsgd.h"
#include "gossip_choco_world.h"

static struct world w; /* Static, because struct world is too large for a stack. */

static void open_exact(uint32_t n, const char *spec, double step, float spread)
{
    world_open(&w,
               &(struct world_how){
                   .n = n, .spec = spec, .mixer = &mixer_dpsgd, .step = step, .spread = spread});
}

/* ---- against the textbook ---- */

enum { ROWS = 12, ROUNDS = 40 };

/* Logistic regression on rows of random entries. A row's label is the sign of its first entry, and
 * for odd peers the opposite. Returns entry k of a row of peer i. */
static float entry(uint32_t i, size_t row, size_t k)
{
    return 2 * rng_unit_at(rng_key(i, RNG_TEST, 21, row), k) - 1;
}

static void logistic_step(uint32_t i, const float *at, float *x)
{
    double grad[DIM] = {0};
    for (size_t row = 0; row < ROWS; row++) {
        double y = (entry(i, row, 0) > 0) == (i % 2 == 0) ? 1 : -1, z = 0;
        for (size_t k = 0; k < DIM; k++)
            z += (double)at[k] * (double)entry(i, row, k);
        for (size_t k = 0; k < DIM; k++)
            grad[k] -= y / (1 + exp(y * z)) * (double)entry(i, row, k) / ROWS;
    }
    for (size_t k = 0; k < DIM; k++)
        x[k] -= (float)(0.2 * grad[k]);
}

static void local_logistic(struct world *world, uint32_t i, float *x)
{
    float at[DIM];
    (void)world;
    memcpy(at, x, sizeof at);
    logistic_step(i, at, x);
}

/* Reference for an exchange on a complete graph: x_i = (1 - step) x_i + step * mean. */
static void naive_round(double x[MOST][DIM], uint32_t n, double step)
{
    for (size_t k = 0; k < DIM; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < n; i++)
            mean += x[i][k] / n;
        for (uint32_t i = 0; i < n; i++)
            x[i][k] += step * (mean - x[i][k]);
    }
}

static void naive_step(double x[MOST][DIM], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float at[DIM], moved[DIM] = {0};
        for (size_t k = 0; k < DIM; k++)
            at[k] = (float)x[i][k];
        logistic_step(i, at, moved);
        for (size_t k = 0; k < DIM; k++)
            x[i][k] += (double)moved[k];
    }
}

static void as_naive(uint32_t n, const char *spec, double step, double tolerance)
{
    static double x[MOST][DIM];
    double first = 0, moved = 0;
    open_exact(n, spec, step, 1);
    w.local = local_logistic;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < DIM; k++)
            x[i][k] = (double)w.peer[i].c.x[k];
    first = x[0][0];
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0)
            naive_round(x, n, step);
        naive_step(x, n);
        beat(&w);
        double worst = 0;
        for (uint32_t i = 0; i < n; i++)
            for (size_t k = 0; k < DIM; k++) {
                double off = fabs((double)w.peer[i].c.x[k] - x[i][k]);
                worst = !(off <= worst) ? off : worst;
            }
        if (!(worst <= tolerance))
            fail_msg("%u peers, %s, step %g, round %d: off by %g", n, spec, step, round, worst);
        check_replicas(&w);
    }
    for (size_t k = 0; k < DIM; k++)
        moved = fmax(moved, fabs(x[0][k] - first));
    assert_true(moved > 0.1); /* The local steps must have changed the model. */
    world_end(&w);
}

static void test_textbook(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 8; n += 3) {
        as_naive(n, "none", 1, 2e-6);
        as_naive(n, "none", 1.4, 2e-6);
        as_naive(n, "fp16", 1, 5e-3);
    }
}

/* After one exchange of whole models on a complete graph all models are equal, up to rounding. */
static void test_one_exchange(void **state)
{
    (void)state;
    open_exact(6, "none", 1, 1);
    beats(&w, 2);
    assert_true(spread(&w) <= 1e-9);
    assert_int_equal(distinct_replicas(&w, 0), 1);
    world_end(&w);
}

/* ---- in any order ---- */

/* Messages are delayed at random, and jobs (computations of a round) of different peers overlap.
 * One end of an edge always subtracts what the other end adds, so the mean of models is kept. */
static void test_random_events(void **state)
{
    static const char *const spec[] = {"none", "fp16"};
    (void)state;
    for (size_t s = 0; s < 4; s++) {
        open_exact(4, spec[s % 2], s < 2 ? 1 : 1.2, 1);
        w.step = 0.1f;
        random_events(&w, false);
        check_replicas(&w);
        world_end(&w);
    }
}

/* An edge that missed rounds receives the next model, which does not depend on the missed
 * models. */
static void test_missed(void **state)
{
    (void)state;
    open_exact(4, "none", 1, 1);
    w.step = 0.1f;
    beats(&w, 3);
    hold(&w, 0, 1, true);
    beats(&w, 5);
    assert_int_equal(distinct_replicas(&w, 0), 2);
    hold(&w, 0, 1, false);
    w.step = 0;
    beats(&w, 4);
    assert_true(spread(&w) <= 1e-8);
    check_replicas(&w);
    world_end(&w);
}

/* ---- the consensus phase ---- */

/* In the consensus phase, corrections start from the models that were sent last in training, and
 * may have momentum. */
static void test_last_phase(void **state)
{
    (void)state;
    open_exact(5, "none", 1, 1);
    w.step = 0.1f;
    beats(&w, 10);
    w.step = 0;
    for (uint32_t i = 0; i < w.n; i++) {
        w.peer[i].codec = DELTA_FINAL;
        w.peer[i].momentum = WIRE_MOMENTUM_ONE / 10;
    }
    beats(&w, 30);
    assert_true(spread(&w) <= 1e-6);
    check_replicas(&w);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook),      cmocka_unit_test(test_one_exchange),
        cmocka_unit_test(test_random_events), cmocka_unit_test(test_missed),
        cmocka_unit_test(test_last_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
