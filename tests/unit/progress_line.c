/* tests/unit/progress_line.c -- tests of peer/progress/progress_line.h: a progress line is complete
 * in a log, and fits the width of a terminal. */
#include "peer/progress/progress_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct progress_line line(void)
{
    struct progress_line l = {.n = 0};
    gauge_add(&l, "training", "");
    gauge_add(&l, "42 %", "42 %");
    gauge_add(&l, "round 168/400", "168/400");
    gauge_add(&l, "accuracy 93.41 % @160", "acc 93.41 %");
    gauge_add(&l, "", "");
    gauge_add(&l, "relative drift 1.20e-02 @164", "drift 1.2e-02");
    return l;
}

static void test_plain(void **state)
{
    (void)state;
    char out[GAUGE_LINE];
    struct progress_line l = line(), none = {.n = 0};
    gauge_plain(&l, out);
    assert_string_equal(out, "training  42 %  round 168/400  accuracy 93.41 % @160  "
                             "relative drift 1.20e-02 @164");
    gauge_plain(&none, out);
    assert_string_equal(out, "");
}

/* A wide terminal gets the full texts, a narrower one the brief texts, and an even narrower one not
 * all of them. One column is left free, and no text is cut. */
static void test_columns(void **state)
{
    (void)state;
    char out[GAUGE_LINE];
    struct progress_line l = line();
    gauge_draw(&l, 0.5, 200, out);
    assert_non_null(strstr(out, "[===============>              ]  training  42 %"));
    assert_non_null(strstr(out, "relative drift 1.20e-02 @164"));
    gauge_draw(&l, 0.5, 65, out);
    assert_non_null(strstr(out, "]  42 %  168/400  acc 93.41 %  drift 1.2e-02"));
    gauge_draw(&l, 0.5, 50, out);
    assert_non_null(strstr(out, "]  42 %  168/400  acc 93.41 %"));
    assert_null(strstr(out, "drift"));
    for (uint32_t columns = 0; columns < 200; columns++) {
        gauge_draw(&l, 0.5, columns, out);
        assert_true(strlen(out) < (columns > 0 ? columns : 1));
        size_t n = strlen(out);
        assert_true(columns < 30 || out[0] == '[');
        assert_true(columns < 10 || out[n - 1] != ' ');
    }
}

static void test_share(void **state)
{
    (void)state;
    char out[GAUGE_LINE];
    struct progress_line l = {.n = 0};
    gauge_add(&l, "x", "x");
    gauge_draw(&l, 0, 24, out);
    assert_string_equal(out, "[>                 ]  x");
    gauge_draw(&l, 1, 24, out);
    assert_string_equal(out, "[==================]  x");
    gauge_draw(&l, 7, 24, out);
    assert_string_equal(out, "[==================]  x");
    gauge_draw(&l, -1, 24, out);
    assert_string_equal(out, "[>                 ]  x");
}

/* Texts that are too long are cut, so that the largest number of texts (GAUGE_FIGURES) fits in the
 * line. */
static void test_long(void **state)
{
    (void)state;
    char text[1000], out[GAUGE_LINE];
    struct progress_line l = {.n = 0};
    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < GAUGE_FIGURES; i++)
        gauge_add(&l, text, text);
    gauge_plain(&l, out);
    assert_int_equal(strlen(out), GAUGE_FIGURES * (GAUGE_FIGURE - 1) + 2 * (GAUGE_FIGURES - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_share), cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
