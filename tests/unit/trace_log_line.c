/* tests/unit/trace_log_line.c -- the line that --log-level writes for a message: levels, dates, and
 * that a message is one line. */
#include "peer/trace/log_line.h"

#include "nn/math/rng.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_a_line_has_five_fields(void **state)
{
    char line[LOG_LINE_SIZE];
    (void)state;
    log_line("2026-11-28T13:29:58.123Z", NOTE_WARNING, "wait_log", "peer-0", "waiting for peer-1",
             line);
    assert_string_equal(line,
                        "2026-11-28T13:29:58.123Z warning wait_log peer-0: waiting for peer-1");
}

/* A message is one line, whatever bytes it contains, and however long it is. */
static void test_a_message_is_one_line(void **state)
{
    static char text[2 * LOG_LINE_SIZE];
    char line[LOG_LINE_SIZE];
    (void)state;
    log_line("0.5", NOTE_DEBUG, "m", "s", "a\nb\tc\rd\x1b[1m", line);
    assert_string_equal(line, "0.5 debug m s: a b c d [1m");
    memset(text, 'x', sizeof text - 1);
    log_line("0.5", NOTE_DEBUG, "m", "s", text, line);
    assert_int_equal(strlen(line), LOG_LINE_SIZE - 1);
}

static void test_levels_have_names(void **state)
{
    static const enum note_level rising[] = {NOTE_DEBUG, NOTE_INFO, NOTE_WARNING, NOTE_ERROR};
    static const char *const name[] = {"debug", "info", "warning", "error"};
    enum note_level level = NOTE_INFO;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(log_level_name(rising[i]), name[i]);
        assert_true(log_level_read(name[i], &level));
        assert_int_equal(level, rising[i]);
        assert_true(i == 0 || rising[i] > rising[i - 1]);
    }
    assert_false(log_level_read("Debug", &level));
    assert_false(log_level_read("", &level));
    assert_int_equal(level, NOTE_ERROR);
}

/* Dates agree with the C library, for days around the ends of years, centuries and February, and
 * for random times up to the year 9999. */
static void test_dates_are_those_of_the_library(void **state)
{
    static const int64_t special[] = {0,          951782399,  951782400,  951868800,   1709164800,
                                      1709251199, 4107542399, 4107542400, 253402300799};
    (void)state;
    for (uint64_t k = 0; k < 20000; k++) {
        size_t n = sizeof special / sizeof *special;
        int64_t s = k < n ? special[k] : (int64_t)(rng_at(5, k) % UINT64_C(253402300800));
        int64_t ms = (int64_t)(k % 1000);
        char found[LOG_TIME_SIZE], day[32], expected[64];
        time_t seconds = (time_t)s;
        struct tm tm;
        assert_non_null(gmtime_r(&seconds, &tm));
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(expected, sizeof expected, "%s.%03" PRId64 "Z", day, ms);
        log_time_text(s * 1000 + ms, found);
        assert_string_equal(found, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_has_five_fields),
        cmocka_unit_test(test_a_message_is_one_line),
        cmocka_unit_test(test_levels_have_names),
        cmocka_unit_test(test_dates_are_those_of_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
