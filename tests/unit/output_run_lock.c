/* tests/unit/output_run_lock.c -- tests of peer/output/run_lock.h, which finds out whether a
 * directory belongs to a run. */
#include "peer/output/run_lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char run[] = "batch=32\nlr=0.02\nrounds=300\n";
static char text[RUN_IDENTITY_TEXT_MAX], why[RUN_IDENTITY_WHY_MAX];

static void test_text(void **state)
{
    (void)state;
    const struct run_identity_flag flags[] = {
        {"peers", "8"}, {"data", NULL}, {"shard", "a\nb=\033[2J"}, {NULL, NULL}};
    run_identity_write(text, "local", flags, run);
    assert_string_equal(text, "command=local\n--peers=8\n--shard=a?b=?[2J\nbatch=32\nlr=0.02\n"
                              "rounds=300\n");
    assert_string_equal(run_identity_run_text(text), run);
    run_identity_write(text, "train", NULL, run);
    assert_string_equal(text, "command=train\nbatch=32\nlr=0.02\nrounds=300\n");
    assert_string_equal(run_identity_run_text(text), run);
    assert_string_equal(run_identity_run_text("command=local\n--peers=8\n"), "");
    assert_string_equal(run_identity_run_text(""), "");
    assert_string_equal(run_identity_run_text("command=local"), "");
}

static void test_longest(void **state)
{
    (void)state;
    char value[2 * RUN_IDENTITY_VALUE_MAX], longest[WIRE_RUN_MAX + 1];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    memset(longest, 'k', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const struct run_identity_flag flags[] = {{"a", value}, {"b", value}, {"c", value},
                                              {"d", value}, {"e", value}, {"f", value},
                                              {NULL, NULL}};
    run_identity_write(text, "local", flags, longest);
    assert_non_null(strstr(text, longest));
    assert_int_equal(run_identity_differ(text, "", why), 8);
}

static void test_differences(void **state)
{
    (void)state;
    static const struct
    {
        const char *there, *here, *why;
        size_t n;
    } rows[] = {
        {"", "", "", 0},
        {"a=1\nb=2\n", "a=1\nb=2\n", "", 0},
        /* The order of the lines in a run description is ignored. */
        {"a=1\nb=2\n", "b=2\na=1", "", 0},
        {"lr=0.02\nn=3\n", "lr=0.05\nn=3\n", "lr=0.02 there, 0.05 here", 1},
        {"a=1\nb=2\n", "a=2\nb=3\n", "a=1 there, 2 here; b=2 there, 3 here", 2},
        {"a=1\n", "a=1\n--peers=4\n", "--peers=none there, 4 here", 1},
        {"a=1\n--peers=4\n", "a=1\n", "--peers=4 there, none here", 1},
        {"a=1\n", "a=12\n", "a=1 there, 12 here", 1},
        {"a=\n", "a=1\n", "a= there, 1 here", 1},
        {"junk\n", "a=1\n", "junk= there, none here; a=none there, 1 here", 2},
        {"command=sim\nlr=1\n", "command=local\nlr=2\n", "command=sim there, local here", 1},
        {"a=\033\n", "a=1\n", "a=? there, 1 here", 1},
        {"a=1\nb=1\nc=1\nd=1\ne=1\nf=1\ng=1\nh=1\n", "",
         "a=1 there, none here; b=1 there, none here; c=1 there, none here; d=1 there, none here; "
         "e=1 there, none here; f=1 there, none here; and 2 more",
         8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(run_identity_differ(rows[i].there, rows[i].here, why), rows[i].n);
        assert_string_equal(why, rows[i].why);
    }
}

/* Two run descriptions have long values that begin alike. The error message must show the part in
 * which the values differ. */
static void test_long_values(void **state)
{
    (void)state;
    char there[256], here[256];
    snprintf(there, sizeof there, "topology=%0120d1\n", 0);
    snprintf(here, sizeof here, "topology=%0120d2\n", 0);
    assert_int_equal(run_identity_differ(there, here, why), 1);
    assert_non_null(strstr(why, "topology=...0"));
    assert_non_null(strstr(why, "01 there, ...0"));
    assert_non_null(strstr(why, "02 here"));
    assert_true(strlen(why) < 160);
    /* The value in one run description is the beginning of the value in the other. */
    snprintf(there, sizeof there, "topology=%0120d\n", 0);
    snprintf(here, sizeof here, "topology=%0120d,1\n", 0);
    assert_int_equal(run_identity_differ(there, here, why), 1);
    assert_non_null(strstr(why, "0 there, ...0"));
    assert_non_null(strstr(why, "0,1 here"));
    /* The two values differ at their first character. */
    snprintf(there, sizeof there, "topology=1%0120d\n", 0);
    assert_int_equal(run_identity_differ(there, here, why), 1);
    assert_non_null(strstr(why, "topology=10"));
    assert_non_null(strstr(why, "0... there, 00"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_long_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
