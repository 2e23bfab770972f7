/* tests/unit/node_timers.c -- tests of the table of timers in peer/node/timers.h. */
#include "peer/node/timers.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* Each name is unique and ends in _US. Each period is between 1 ms and a day. */
static void test_names_and_periods(void **state)
{
    (void)state;
    for (const struct timer *t = timer_all; t->name != NULL; t++) {
        if (!ends_with(t->name, "_US"))
            fail_msg("%s does not end in _US", t->name);
        if (t->period_us < 1000 || t->period_us > 24 * 3600 * (int64_t)1000 * 1000)
            fail_msg("%s: found %lld us", t->name, (long long)t->period_us);
        for (const struct timer *other = timer_all; other != t; other++)
            if (strcmp(other->name, t->name) == 0 || strcmp(other->purpose, t->purpose) == 0)
                fail_msg("%s and %s have the same name or purpose", other->name, t->name);
    }
}

/* Each purpose is one sentence of at most 35 words that mentions the time or the interval. */
static void test_purposes_are_sentences(void **state)
{
    (void)state;
    for (const struct timer *t = timer_all; t->name != NULL; t++) {
        size_t words = 1;
        for (const char *c = t->purpose; *c != '\0'; c++) {
            words += *c == ' ';
            if ((unsigned char)*c < ' ' || *c == '"' || *c == '|' || *c == '<')
                fail_msg("%s: the purpose has a character that a table cannot have", t->name);
        }
        bool timed = strstr(t->purpose, "this time") != NULL
                     || strstr(t->purpose, "interval") != NULL
                     || strncmp(t->purpose, "Upper limit of ", 15) == 0;
        if (!isupper((unsigned char)t->purpose[0]) || !ends_with(t->purpose, ".") || words > 35
            || strstr(t->purpose, ". ") != NULL || strstr(t->purpose, "  ") != NULL || !timed)
            fail_msg("%s: not one sentence about the time: %s", t->name, t->purpose);
    }
}

/* Each constant must equal the period in the table, also the constant that does not fit into an
 * int. */
static void test_constants(void **state)
{
    (void)state;
#define CHECK(constant, period, text)                                                              \
    assert_string_equal(t->name, #constant);                                                       \
    assert_true(t->period_us == constant);                                                         \
    t++;
    const struct timer *t = timer_all;
    TIMERS(CHECK, CHECK)
    assert_null(t->name);
    assert_true(EDGE_CLOSED_MAX_US == 82800 * (int64_t)1000000);
}

/* Relations between timers on which the protocol depends. */
static void test_order(void **state)
{
    (void)state;
    static const struct
    {
        int64_t less, more;
        const char *why;
    } row[] = {
        {HEARTBEAT_US, ABSENT_US, "a neighbour that is there is not absent between two heartbeats"},
        {ABSENT_US, SILENT_US, "an absent neighbour is damped before its edge pauses"},
        {3 * HEARTBEAT_US, SILENT_US, "a session is not silent because of one lost heartbeat"},
        {3 * HEARTBEAT_US, WAIT_LOG_ANSWER_US,
         "a neighbour that answers is not reported as silent"},
        {PROBE_US, SILENT_US, "a member is probed before it is silent"},
        {CONFIRMED_US, SUSPECT_US, "a second accuser shortens the time until death"},
        {SILENT_US, CALLBACK_UNMET_US,
         "a dead member is suspect before a warning about its address"},
        {SILENT_US, DEAD_LINK_US, "an edge pauses before its session is closed"},
        {REDIAL_MIN_US, REDIAL_RECENT_US, "a back-off grows"},
        {REDIAL_RECENT_US, REDIAL_MAX_US, "a restarting member is dialled more often"},
        {REDIAL_MAX_US * 6 / 5, REFUSAL_VALID_US,
         "a refusing peer dials before its refusal expires"},
        {BOOTSTRAP_ALONE_US, BOOTSTRAP_US, "a peer without a session resolves names more often"},
        {DEAD_REDIAL_ALONE_US, DEAD_REDIAL_US, "a peer that was cut off dials more often"},
        {ENDED_AFTER_PAUSE_US, ENDED_AFTER_CUT_US, "other members may restart after a failure"},
        {SCHEDULE_BRIEF_US, SCHEDULE_LOST_US, "a brief loss is not a long one"},
        {SCHEDULE_LOST_US, SCHEDULE_STALL_US, "a lost neighbour is left out before the phase ends"},
        {SUSPECT_US + SILENT_US, SCHEDULE_LOST_US, "a dead member is declared dead before that"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].less >= row[i].more)
            fail_msg("%s: %lld us, expected less than %lld us", row[i].why, (long long)row[i].less,
                     (long long)row[i].more);
}

/* Reads the page of timers, which deploy/man makes. The caller frees the text. */
static char *read_page(void)
{
    FILE *f = fopen(TIMERS_PAGE, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long n = ftell(f);
    char *text = calloc((size_t)n + 1, 1);
    assert_non_null(text);
    rewind(f);
    assert_int_equal(fread(text, 1, (size_t)n, f), (size_t)n);
    fclose(f);
    return text;
}

/* The manual page of timers has one row for each timer of the program, in the order of the table,
 * and no other. */
static void test_page(void **state)
{
    (void)state;
    char *page = read_page(), want[512];
    const char *at = page;
    size_t n = 0, rows = 0;
    for (const struct timer *t = timer_all; t->name != NULL; t++, n++) {
        snprintf(want, sizeof want, "\n| `%s` | %.9g | %s |\n", t->name,
                 (double)t->period_us * 1e-6, t->purpose);
        const char *found = strstr(at, want);
        if (found == NULL)
            fail_msg("peer/docs/timers.md: expected after the rows before it:%s(run deploy/man)",
                     want);
        else
            at = found + 1;
    }
    for (const char *c = strstr(page, "\n| `"); c != NULL; c = strstr(c + 1, "\n| `"))
        rows++;
    assert_int_equal(rows, n);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_periods),
        cmocka_unit_test(test_purposes_are_sentences),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
