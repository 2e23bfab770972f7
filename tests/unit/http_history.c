/* tests/unit/http_history.c -- tests of peer/http/history.h: the thinned history of a run against
 * the full one. */
#include "peer/http/history.h"

#include "tests/unit/http_rig.h"

/* Number of rounds between evaluations. Not a power of two, unlike every stride of the history (the
 * number of rounds per stored point). */
enum { EVERY = 37 };

static struct history_point point_of(uint64_t i)
{
    return (struct history_point){.round = i,
                                  .settle_rounds = i / 3,
                                  .time_s = (double)i * 0.5,
                                  .loss = 1.0 / (double)i,
                                  .accuracy = i % EVERY == 0 ? 0.5 + 1e-6 * (double)i : NAN,
                                  .relative_drift = i > 10 ? 1e-3 : NAN,
                                  .drift_round = i > 10 ? i - 10 : 0,
                                  .bytes_sent = 1000 * i};
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Checks that all values of a history point belong to the point's round. */
static void check_point(const struct history_point *p)
{
    struct history_point want = point_of(p->round);
    assert_true(p->settle_rounds == want.settle_rounds && p->drift_round == want.drift_round
                && p->bytes_sent == want.bytes_sent);
    assert_true(same(p->time_s, want.time_s) && same(p->loss, want.loss));
    assert_true(same(p->accuracy, want.accuracy) && same(p->relative_drift, want.relative_drift));
}

/* Checks the history after `i` rounds: its size is limited, its points are in order, and each group
 * of `stride` rounds has one point. This point is the last evaluated round of the group or, if no
 * round of the group was evaluated, the last round of the group. */
static void check(const struct history *h, uint64_t i)
{
    uint64_t stride = (uint64_t)1 << h->thinned;
    const struct history_point *newest = history_newest(h);
    assert_true(h->n + (newest != NULL) <= HISTORY_MAX);
    assert_true(h->n == i / stride);
    assert_true(h->thinned == 0 || h->n >= HISTORY_MAX / 2 - 1);
    for (size_t k = 0; k < h->n; k++) {
        const struct history_point *p = &h->point[k];
        uint64_t first = k * stride + 1, last = (k + 1) * stride;
        check_point(p);
        assert_true(p->round >= first && p->round <= last);
        if (last / EVERY > (first - 1) / EVERY)
            assert_int_equal(p->round, last / EVERY * EVERY);
        else
            assert_int_equal(p->round, last);
    }
    bool has_last = h->n > 0 && h->point[h->n - 1].round == i;
    assert_true((newest == NULL) == has_last);
    if (newest == NULL)
        return;
    check_point(newest);
    assert_int_equal(newest->round, i);
}

static void test_thinned(void **state)
{
    (void)state;
    static struct history h, copy;
    assert_null(history_newest(&h));
    for (uint64_t i = 1; i <= 70000; i++) {
        struct history_point p = point_of(i);
        history_add(&h, &p);
        if (i < 1100 || i % 997 == 0 || (i & (i - 1)) == 0)
            check(&h, i);
    }
    history_copy(&copy, &h);
    check(&copy, 70000);
    assert_true(h.thinned >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_thinned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
