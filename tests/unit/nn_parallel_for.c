/* tests/unit/nn_parallel_for.c -- teams of threads: each part of a run, that is of one parallel
 * loop, is computed once, on a thread of its own, and is complete when the run returns. */
#include "nn/math/parallel_for.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TEAM_MAX = 9 };

struct board
{
    uint64_t count[TEAM_MAX][16]; /* Result of each part, in a cache line of its own. */
    /* Sum of the parts' results in the previous parallel-for. All parts may read it. */
    uint64_t sum;
    pthread_t who[TEAM_MAX];
};

static void add(void *self, uint32_t part)
{
    struct board *b = self;
    b->count[part][0] += b->sum + part + 1;
    b->who[part] = pthread_self();
}

static void subtract(void *self, uint32_t part)
{
    struct board *b = self;
    b->count[part][0] -= part;
}

/* Each parallel loop uses the results of the previous loop without a lock, so that a race found
 * here is a fault of parallel_for. */
static void check_runs(uint32_t n)
{
    struct parallel_for *t;
    struct board b;
    memset(&b, 0, sizeof b);
    uint64_t want[TEAM_MAX] = {0}, want_sum = 0;
    assert_int_equal(parallel_for_open(&t, n), 0);
    for (int run = 0; run < 200; run++) {
        parallel_for_run(t, add, &b);
        parallel_for_run(t, subtract, &b);
        b.sum = 0;
        for (uint32_t k = 0; k < n; k++) {
            want[k] += want_sum + 1;
            b.sum += b.count[k][0] % 1000;
            assert_true(b.count[k][0] == want[k]);
        }
        want_sum = b.sum;
    }
    for (uint32_t k = n; k < TEAM_MAX; k++)
        assert_true(b.count[k][0] == 0);
    assert_true(pthread_equal(b.who[0], pthread_self()));
    for (uint32_t k = 1; k < n; k++)
        for (uint32_t j = 0; j < k; j++)
            assert_false(pthread_equal(b.who[k], b.who[j]));
    parallel_for_close(t);
}

static void test_runs(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= TEAM_MAX; n += n < 4 ? 1 : 5)
        check_runs(n);
}

/* A team of threads can be opened and closed without running a loop, and NULL can be closed. */
static void test_idle(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < TEAM_MAX; n++) {
        struct parallel_for *t;
        assert_int_equal(parallel_for_open(&t, n), 0);
        parallel_for_close(t);
    }
    parallel_for_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
