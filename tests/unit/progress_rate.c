/* tests/unit/progress_rate.c -- tests of peer/progress/progress_rate.h: the rate, the time that is
 * left, and how many progress lines a log gets. */
#include "peer/progress/progress_rate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* At first the rate is not known. Later it is the rate of the last 5 to 10 seconds, whatever the
 * rate was before that. */
static void test_rate(void **state)
{
    (void)state;
    struct progress_rate g = {.begun = false};
    assert_true(isnan(progress_rate_rate(&g)));
    progress_rate_update(&g, 0, 100);
    assert_true(isnan(progress_rate_rate(&g)));
    assert_true(isnan(progress_rate_left_s(&g, 10)));
    for (int i = 1; i <= 200; i++) /* Work advances by 10 units per second for 20 s. */
        progress_rate_update(&g, (uint64_t)i, 100 + 0.1 * i);
    assert_true(fabs(progress_rate_rate(&g) - 10) < 1e-6);
    assert_true(fabs(progress_rate_left_s(&g, 400) - 20) < 1e-6);
    for (int i = 1; i <= 60; i++) /* Work advances by 4 units per second for 15 s. */
        progress_rate_update(&g, 200 + (uint64_t)i, 120 + 0.25 * i);
    assert_true(fabs(progress_rate_rate(&g) - 4) < 1e-6);
    assert_true(progress_rate_left_s(&g, 260) == 0);
    assert_true(progress_rate_left_s(&g, 100) == 0);
}

/* Without progress the rate falls, and the time that is left grows. When the work begins again at a
 * lower count, the rate starts again. */
static void test_standstill(void **state)
{
    (void)state;
    struct progress_rate g = {.begun = false};
    progress_rate_update(&g, 0, 0);
    progress_rate_update(&g, 50, 1);
    double left = progress_rate_left_s(&g, 100);
    progress_rate_update(&g, 50, 9);
    assert_true(progress_rate_rate(&g) < 6 && progress_rate_left_s(&g, 100) > 8 * left);
    progress_rate_update(&g, 10, 10);
    assert_true(isnan(progress_rate_rate(&g)));
    progress_rate_update(&g, 12, 11);
    assert_true(fabs(progress_rate_rate(&g) - 2) < 1e-9);
}

/* Returns the number of progress lines for work that takes `seconds`, if the caller asks for a line
 * ten times per second. */
static uint32_t lines(double seconds, uint64_t total)
{
    struct progress_rate g = {.begun = false};
    uint32_t n = 0;
    for (double s = 0; s <= seconds; s += seconds > 1e5 ? 7 : 0.1)
        n += progress_rate_line_due(&g, (uint64_t)((double)total * s / seconds), total, 0, s);
    return n;
}

static void test_lines(void **state)
{
    (void)state;
    assert_int_equal(lines(0.5, 100), 0);
    assert_in_range(lines(3, 100), 2, 3);
    assert_in_range(lines(20, 1000), 9, 11);
    assert_in_range(lines(1000, 1000000), 10, 20);
    assert_in_range(lines(7 * 24 * 3600, 1000000000), 10, 30);
    /* Without a known total amount of work, the intervals between progress lines only grow. */
    assert_in_range(lines(3600, 0), 8, 11);
}

/* The work has a part of known amount, and then a part without a known end. `more` is the amount of
 * the second part that is done. A progress line must be printed each time that `more` has
 * doubled. */
static void test_more(void **state)
{
    (void)state;
    struct progress_rate g = {.wait_s = 1e9};
    uint32_t n = 0;
    for (uint64_t more = 0; more < 100000; more++)
        n += progress_rate_line_due(&g, 10, 10, more, 2 * (double)more);
    assert_in_range(n, 15, 19);
}

static void test_first_silence(void **state)
{
    (void)state;
    struct progress_rate g = {.wait_s = 2};
    double said[3];
    uint32_t n = 0;
    for (double s = 0; s < 15 && n < 3; s += 0.5)
        if (progress_rate_line_due(&g, 0, 0, 0, s))
            said[n++] = s;
    assert_int_equal(n, 3);
    assert_true(said[0] == 2 && said[1] == 6 && said[2] == 14);
}

static void test_time(void **state)
{
    (void)state;
    static const struct
    {
        double s;
        const char *text;
    } row[] = {{0, "0.0 s"},         {4.16, "4.2 s"},    {9.96, "10 s"},          {59.4, "59 s"},
               {59.6, "1:00"},       {200, "3:20"},      {3599.7, "1:00:00"},     {7510, "2:05:10"},
               {90000, "1 d 01:00"}, {(double)NAN, "-"}, {(double)INFINITY, "-"}, {-1, "-"}};
    char out[PROGRESS_RATE_TIME];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_string_equal(progress_rate_time(out, row[i].s), row[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),          cmocka_unit_test(test_standstill),
        cmocka_unit_test(test_lines),         cmocka_unit_test(test_more),
        cmocka_unit_test(test_first_silence), cmocka_unit_test(test_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
