/* tests/unit/node_limits.c -- tests of peer/node/session/limits.h: the limits on repeated dials,
 * messages and warnings. */
#include "peer/node/session/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t *id(uint8_t n)
{
    static uint8_t of[WIRE_ID_BYTES];
    of[0] = n;
    return of;
}

static void test_interval_doubles_up_to_its_limit(void **state)
{
    static const int64_t want[] = {10, 20, 40, 45, 45};
    struct backoff b = {0};
    int64_t now = 1000;
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        backoff_wait(&b, 10, 45, now);
        assert_int_equal(b.gap_us, want[i]);
        assert_int_equal(b.next_us, now + want[i]);
        backoff_check(&b, 10, 45);
        now = b.next_us;
    }
    /* A lower limit applies at once, and the interval begins again after it was set to 0. */
    assert_int_equal(backoff_grow(&b, 10, 15), 15);
    assert_int_equal(b.next_us, now);
    b.gap_us = 0;
    assert_int_equal(backoff_grow(&b, 10, 45), 10);
}

static void test_quota_is_renewed_after_its_interval(void **state)
{
    struct quota q = {0};
    (void)state;
    for (int64_t now = 1000; now <= 1200; now += 100) {
        for (int i = 0; i < 3; i++, q.n++)
            assert_true(quota_left(&q, 3, 100, now + 20 * i));
        assert_false(quota_left(&q, 3, 100, now + 99));
    }
}

static void test_cases_are_remembered_for_their_time(void **state)
{
    static struct recent r;
    memset(&r, 0, sizeof r);
    (void)state;
    assert_false(recent_add(&r, 4, id(1), 7, 200, 100));
    assert_true(recent_add(&r, 4, id(1), 7, 300, 150));
    assert_int_equal(r.at[0].last_us, 150);
    assert_int_equal(r.at[0].until_us, 200);
    assert_false(recent_add(&r, 4, id(1), 8, 300, 150));
    assert_false(recent_add(&r, 4, id(2), 7, 300, 150));
    assert_true(recent_add(&r, 4, id(1), 7, 300, 199));
    assert_false(recent_add(&r, 4, id(1), 7, 300, 200));
}

/* The next case replaces the oldest one, also if the oldest one has occurred again. */
static void test_full_list_forgets_the_oldest_case(void **state)
{
    static struct recent r;
    (void)state;
    for (uint8_t i = 0; i < 4; i++)
        assert_false(recent_add(&r, 4, id(i), 0, INT64_MAX, i));
    assert_true(recent_add(&r, 4, id(0), 0, INT64_MAX, 4));
    assert_false(recent_add(&r, 4, id(9), 0, INT64_MAX, 5));
    for (uint8_t i = 1; i < 4; i++)
        assert_true(recent_add(&r, 4, id(i), 0, INT64_MAX, 6));
    assert_false(recent_add(&r, 4, id(0), 0, INT64_MAX, 7));
    assert_int_equal(r.n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval_doubles_up_to_its_limit),
        cmocka_unit_test(test_quota_is_renewed_after_its_interval),
        cmocka_unit_test(test_cases_are_remembered_for_their_time),
        cmocka_unit_test(test_full_list_forgets_the_oldest_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
