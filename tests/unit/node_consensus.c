/* tests/unit/node_consensus.c -- tests of peer/node/result/consensus.h: the exact consensus
 * distance against its definition. */
#include "peer/node/result/consensus.h"

#include "nn/math/rng.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

enum { MODELS = 5, DIM = 33 };

struct models
{
    float x[MODELS][DIM];
    size_t n, dim;
    /* Number of calls of get(), and number of the first call that returns NULL. */
    size_t calls, missing_from;
};

static void draw(struct models *m, size_t n, size_t dim)
{
    struct rng r = rng_stream(rng_key(1, RNG_TEST, n, dim));
    *m = (struct models){.n = n, .dim = dim, .missing_from = SIZE_MAX};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < dim; k++)
            m->x[i][k] = (float)rng_normal(&r) + (float)k;
}

static const float *get(void *self, size_t i)
{
    struct models *m = self;
    assert_true(i < m->n);
    return m->calls++ < m->missing_from ? m->x[i] : NULL;
}

static struct consensus measure(struct models *m, size_t n_trained)
{
    struct consensus c;
    assert_int_equal(consensus_measure(&c, m->n, n_trained, m->dim, get, m), 0);
    assert_int_equal(c.n, m->n);
    return c;
}

/* Compares a result with the definition, computed for the coordinates `from` to `to` - 1. Without
 * coordinates the result must be NaN. */
static void check_part(const struct models *m, const struct consensus_part *p, size_t from,
                       size_t to)
{
    double xi2 = 0, mean2 = 0;
    assert_int_equal(p->dim, to - from);
    if (from == to) {
        assert_true(isnan(p->xi) && isnan(p->mean_norm) && isnan(p->relative));
        return;
    }
    for (size_t k = from; k < to; k++) {
        double mean = 0;
        for (size_t i = 0; i < m->n; i++)
            mean += (double)m->x[i][k] / (double)m->n;
        mean2 += mean * mean;
        for (size_t i = 0; i < m->n; i++)
            xi2 += pow((double)m->x[i][k] - mean, 2) / (double)m->n;
    }
    assert_true(fabs(p->xi - sqrt(xi2)) <= 1e-9 * (1 + sqrt(xi2)));
    assert_true(fabs(p->mean_norm - sqrt(mean2)) <= 1e-9 * sqrt(mean2));
    assert_true(fabs(p->relative - sqrt(xi2 / mean2)) <= 1e-9 * (1 + sqrt(xi2 / mean2)));
}

static void test_definition(void **state)
{
    (void)state;
    static const size_t dims[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, DIM};
    for (size_t n = 1; n <= MODELS; n++)
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
            for (size_t n_trained = 0; n_trained <= dims[i]; n_trained++) {
                struct models m;
                draw(&m, n, dims[i]);
                struct consensus c = measure(&m, n_trained);
                check_part(&m, &c.trained, 0, n_trained);
                check_part(&m, &c.statistics, n_trained, dims[i]);
            }
}

/* Equal models, or a single model, have the distance 0, even if all their values are 0. */
static void test_equal(void **state)
{
    (void)state;
    for (size_t n = 1; n <= MODELS; n++) {
        struct models m = {.n = n, .dim = DIM, .missing_from = SIZE_MAX};
        struct consensus c = measure(&m, 20);
        assert_true(c.trained.xi == 0 && c.trained.relative == 0);
        assert_true(c.statistics.xi == 0 && c.statistics.relative == 0);
    }
}

/* The statistics do not influence the distance of the trained parameters, and the parameters do not
 * influence the distance of the statistics. */
static void test_apart(void **state)
{
    (void)state;
    struct models m;
    draw(&m, 3, DIM);
    struct consensus a = measure(&m, 20);
    m.x[1][20] = NAN;
    struct consensus b = measure(&m, 20);
    assert_memory_equal(&a.trained, &b.trained, sizeof a.trained);
    assert_true(isnan(b.statistics.xi) && isnan(b.statistics.relative));
    draw(&m, 3, DIM);
    m.x[2][19] = 1e6f;
    b = measure(&m, 20);
    assert_memory_equal(&a.statistics, &b.statistics, sizeof a.statistics);
    assert_true(b.trained.xi > 1e5);
}

/* consensus_measure() reads all models twice. If get() has no model in one of these reads, the
 * measurement fails and its result is unchanged. */
static void test_missing(void **state)
{
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        struct models m;
        draw(&m, 3, DIM);
        m.missing_from = k;
        struct consensus c, before;
        memset(&c, 7, sizeof c);
        before = c;
        assert_int_equal(consensus_measure(&c, 3, 20, DIM, get, &m), -EIO);
        assert_memory_equal(&c, &before, sizeof c);
        assert_int_equal(m.calls, k + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
