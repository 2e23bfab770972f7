/* tests/unit/nn_thread_pool.c -- thread pools: each job runs once, and is complete after it has
 * been awaited, in every order of awaiting. */
#include "nn/math/thread_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { JOBS = 500 };

/* One job of a thread pool. A job has no lock, so a race that is found here is a fault of the
 * thread pool. */
struct task
{
    struct thread_pool_job job;
    uint32_t count, member, sum;
    /* Job that had been awaited before this job was given to the pool. NULL: no such job. */
    const struct task *before;
};

static void run(void *self, uint32_t member)
{
    struct task *t = self;
    t->count++;
    t->member = member;
    t->sum = 1 + (t->before != NULL ? t->before->sum : 0);
}

static void check_order(uint32_t n_members, int step)
{
    static struct task task[JOBS];
    struct thread_pool *c;
    memset(task, 0, sizeof task);
    assert_int_equal(thread_pool_open(&c, n_members), 0);
    for (size_t i = 0; i < JOBS; i++) {
        task[i].job = (struct thread_pool_job){.run = run, .self = &task[i]};
        if (i >= 10) {
            thread_pool_await(c, &task[i - 10].job);
            task[i].before = &task[i - 10];
        }
        thread_pool_give(c, &task[i].job);
    }
    for (size_t k = 0, i = 0; k < JOBS; k++, i = (i + (size_t)step) % JOBS) {
        thread_pool_await(c, &task[i].job);
        thread_pool_await(c, &task[i].job); /* A job that is complete can be awaited again. */
        assert_int_equal(task[i].count, 1);
        assert_int_equal(task[i].sum, i / 10 + 1);
        assert_true(task[i].member < n_members);
    }
    thread_pool_close(c);
}

static void test_orders(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 5; n++) {
        check_order(n, 1);
        check_order(n, JOBS - 1); /* Case: the jobs are awaited in reverse order. */
        check_order(n, 7);
    }
}

static void test_never_given(void **state)
{
    struct thread_pool_job job = {.run = run};
    struct thread_pool *c;
    (void)state;
    assert_int_equal(thread_pool_open(&c, 2), 0);
    thread_pool_await(c, &job);
    thread_pool_close(c);
    thread_pool_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders),
                                       cmocka_unit_test(test_never_given)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
