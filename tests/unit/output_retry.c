/* tests/unit/output_retry.c -- tests of peer/output/retry.h: when storing a model is tried
 * again. */
#include "peer/output/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int64_t s = 1000000;

static void test_intervals(void **state)
{
    (void)state;
    static const struct
    {
        int64_t at_s, wait_s;
        bool say;
    } rows[] = {{100, 1, true},   {101, 2, false},  {103, 4, false},  {107, 8, false},
                {115, 10, true},  {125, 10, false}, {135, 10, true},  {145, 10, false},
                {155, 10, false}, {165, 10, false}, {175, 10, true},  {185, 10, false},
                {195, 10, false}, {205, 10, false}, {215, 10, false}, {225, 10, false},
                {235, 10, true},  {245, 10, false}, {295, 10, true},  {694, 6, true},
                {699, 1, false},  {700, 0, false}};
    struct retry r = {.begun = false};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool say;
        assert_int_equal(retry_failed(&r, rows[i].at_s * s, 600 * s, &say), rows[i].wait_s * s);
        assert_int_equal(say, rows[i].say);
        assert_int_equal(retry_left_us(&r, rows[i].at_s * s), (700 - rows[i].at_s) * s);
    }
}

static void test_no_patience(void **state)
{
    (void)state;
    struct retry r = {.begun = false};
    bool say;
    assert_int_equal(retry_failed(&r, 5 * s, 0, &say), 0);
    assert_true(say);
    assert_int_equal(retry_failed(&r, 6 * s, 0, &say), 0);
    assert_int_equal(retry_left_us(&r, 6 * s), 0);
}

/* If a failed attempt to store a model ends after the time limit for all attempts, no further
 * attempt must be made. */
static void test_late(void **state)
{
    (void)state;
    struct retry r = {.begun = false};
    bool say;
    assert_int_equal(retry_failed(&r, 0, s / 2, &say), s / 2);
    assert_int_equal(retry_failed(&r, 9 * s, s / 2, &say), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_no_patience),
        cmocka_unit_test(test_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
