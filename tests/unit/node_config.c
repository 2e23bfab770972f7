/* tests/unit/node_config.c -- tests of the parser of settings files (peer/run/options_config.h).
 * SEED= replays the random texts. */
#include "peer/run/options_config.h"

#include "nn/math/rng.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char error[OPTIONS_ERROR_MAX];

static void lines_are_names_and_values(void **state)
{
    (void)state;
    char text[] = "\xef\xbb\xbf# a comment\n\n  lr = 0.05  # half\r\n\ttopology=ring\nname = \"a # "
                  "\\\"b\\\" \\\\c\"# d\n"
                  "path = /a#b/c d #e\nempty = \"\"\nlast = 1=2";
    static const struct
    {
        const char *name, *value;
        unsigned line;
    } want[] = {{"lr", "0.05", 3},       {"topology", "ring", 4}, {"name", "a # \"b\" \\c", 5},
                {"path", "/a#b/c d", 6}, {"empty", "", 7},        {"last", "1=2", 8}};
    char *at = text;
    unsigned line = 0;
    struct options_setting s;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_int_equal(options_setting_next(&at, &line, &s, error), 1);
        assert_string_equal(s.name, want[i].name);
        assert_string_equal(s.value, want[i].value);
        assert_int_equal(s.line, want[i].line);
    }
    assert_int_equal(options_setting_next(&at, &line, &s, error), 0);
    assert_int_equal(options_setting_next(&at, &line, &s, error), 0);
}

static void what_is_no_setting_is_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"[a]", "section"},          {"lr", "name = value"},       {"= 1", "a name"},
        {"lr =", "a value"},         {"lr = # 1", "a value"},      {"a = \"b", "no quote"},
        {"a = \"b\\", "backslash"},  {"a = \"\\n\"", "backslash"}, {"a = \"b\" c", "nothing after"},
        {"a = \"b\\\"", "no quote"}, {"a\x1b = 1", "control"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        unsigned line = 0;
        struct options_setting s;
        char *at = text;
        snprintf(text, sizeof text, "\n%s\nok = 1\n", bad[i][0]);
        assert_int_equal(options_setting_next(&at, &line, &s, error), -EINVAL);
        assert_int_equal(line, 2);
        assert_non_null(strstr(error, bad[i][1]));
    }
}

/* For any text, the parser reaches the end of the text, and all names and values that it returns
 * lie within the text. */
static void any_text_ends(void **state)
{
    (void)state;
    static const char letters[] = "ab=\"\\# \t\n[]1";
    const char *given = getenv("SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 1;
    print_message("SEED=%llu\n", (unsigned long long)seed);
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0, 0));
    for (int round = 0; round < 20000; round++) {
        size_t n = rng_below(&r, 40);
        /* The block of memory has exactly the size of the text, so that a sanitizer detects reading
         * too far. */
        char *text = malloc(n + 1), *at = text;
        for (size_t i = 0; i < n; i++)
            text[i] = letters[rng_below(&r, sizeof letters - 1)];
        text[n] = '\0';
        unsigned line = 0;
        struct options_setting s;
        int more;
        while ((more = options_setting_next(&at, &line, &s, error)) > 0) {
            assert_true(s.name >= text && s.name[0] != '\0' && s.name + strlen(s.name) <= text + n);
            assert_true(s.value > s.name && s.value + strlen(s.value) <= text + n);
        }
        assert_true(at <= text + n && line <= n + 1);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_names_and_values),
        cmocka_unit_test(what_is_no_setting_is_refused),
        cmocka_unit_test(any_text_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
