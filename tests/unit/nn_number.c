/* tests/unit/nn_number.c -- parsers of numbers and of choices: which texts they accept, and which
 * they refuse. */
#include "nn/math/number.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void digits_end_where_they_end(void **state)
{
    (void)state;
    uint64_t v = 7;
    const char *text = "0064x";
    assert_ptr_equal(number_digits(text, 64, &v), text + 4);
    assert_true(v == 64);
    assert_null(number_digits(text, 63, &v));
    assert_null(number_digits("", 9, &v));
    assert_null(number_digits("x1", 9, &v));
    assert_null(number_digits("-1", 9, &v));
    assert_null(number_digits("5", 3, &v)); /* The limit is 3, so the single digit 5 is refused. */
    assert_true(v == 64);
    assert_non_null(number_digits("18446744073709551615", UINT64_MAX, &v));
    assert_true(v == UINT64_MAX);
    assert_null(number_digits("18446744073709551616", UINT64_MAX, &v));
    assert_null(number_digits("99999999999999999999999", UINT64_MAX, &v));
}

/* For random limits, the limit itself and the number one below it are accepted, and the number one
 * above it is refused. */
static void limits_are_exact(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    for (int i = 0; i < 2000; i++) {
        uint64_t most = rng_below(&r, 1000000000000), v = 0;
        char text[32];
        for (int by = -1; by <= 1; by++) {
            uint64_t n = most + (uint64_t)by;
            if (most == 0 && by < 0)
                continue;
            snprintf(text, sizeof text, "%llu", (unsigned long long)n);
            assert_true((number_digits(text, most, &v) != NULL) == (by <= 0));
            assert_true(by > 0 || v == n);
        }
    }
}

static void plain_numbers_have_one_spelling(void **state)
{
    (void)state;
    uint32_t v = 7;
    assert_null(number_plain("01", 100, &v));
    assert_null(number_plain("00", 100, &v));
    assert_null(number_plain("101", 100, &v));
    assert_null(number_plain("", 100, &v));
    assert_true(v == 7);
    assert_string_equal(number_plain("0/3", 100, &v), "/3");
    assert_true(v == 0);
    assert_string_equal(number_plain("100", 100, &v), "");
    assert_true(v == 100);
}

static void whole_texts_only(void **state)
{
    (void)state;
    static const char *const bad[] = {"", " 1", "1 ", "+1", "-1", "0x1", "1.0", "1e3"};
    uint64_t u = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(number_whole(bad[i], &u));
    assert_true(u == 7);
    assert_true(number_whole("007", &u) && u == 7);
    static const char *const unreal[] = {"",   " 1", "1 ",   "nan", "inf", "0x1p3",
                                         "1e", "e",  "1e9x", "--1", ".",   "1e999"};
    double d = 7;
    for (size_t i = 0; i < sizeof unreal / sizeof unreal[0]; i++)
        assert_false(number_real(unreal[i], &d));
    assert_true(d == 7);
    assert_true(number_real("-1.5E-3", &d) && d == -1.5e-3);
    assert_true(number_real("+.5", &d) && d == 0.5);
}

static void reals_read_back(void **state)
{
    (void)state;
    static const struct
    {
        double v;
        const char *text;
    } known[] = {{0, "0"},        {100, "100"},   {0.05, "0.05"},    {1e-6, "1e-06"},
                 {1e15, "1e+15"}, {-2.5, "-2.5"}, {123456, "123456"}};
    char text[NUMBER_TEXT_MAX];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        number_real_text(known[i].v, text);
        assert_string_equal(text, known[i].text);
    }
    struct rng r = rng_stream(rng_key(2, RNG_TEST, 0, 0));
    for (int i = 0; i < 5000; i++) {
        double v = (rng_unit(&r) - 0.5) * pow(10, (double)rng_below(&r, 600) - 300), back;
        number_real_text(v, text);
        assert_true(number_real(text, &back) && back == v);
    }
    number_real_text(-1.7976931348623157e308, text);
    assert_string_equal(text, "-1.7976931348623157e+308");
}

static void choices_have_places(void **state)
{
    (void)state;
    static const char choices[] = "sync|async|a";
    static const char *const bad[] = {"", "s", "syn", "syncs", "|", "sync|async", "Sync"};
    static const char *const name[] = {"sync", "async", "a"};
    uint32_t number;
    for (int i = 0; i < 3; i++) {
        size_t n;
        assert_int_equal(number_choice(choices, name[i]), i);
        const char *at = number_choice_at(choices, (uint64_t)i, &n, &number);
        assert_true(n == strlen(name[i]) && memcmp(at, name[i], n) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(number_choice(choices, bad[i]), -1);
}

/* The last of several choices may be a word with a number, such as "ssp:N". number_choice() returns
 * an index of its own for each number. */
static void choices_have_numbers(void **state)
{
    (void)state;
    static const char choices[] = "sync|async|ssp:N";
    static const char *const bad[] = {"ssp",      "ssp:",   "ssp:N",  "ssp:0", "ssp:01",
                                      "ssp:4097", "ssp:1x", "ssp:-1", "ss:1",  "sync:1"};
    static const struct
    {
        const char *text;
        int place;
    } good[] = {{"sync", 0}, {"async", 1}, {"ssp:1", 2}, {"ssp:2", 3}, {"ssp:4096", 4097}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t n;
        uint32_t number;
        assert_int_equal(number_choice(choices, good[i].text), good[i].place);
        const char *at = number_choice_at(choices, (uint64_t)good[i].place, &n, &number);
        assert_true(good[i].place >= 2
                        ? n == 5 && memcmp(at, "ssp:N", 5) == 0 && (int)number == good[i].place - 1
                        : n == strlen(good[i].text));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(number_choice(choices, bad[i]), -1);
}

static void one_is_singular(void **state)
{
    (void)state;
    assert_string_equal(number_plural(0), "s");
    assert_string_equal(number_plural(1), "");
    assert_string_equal(number_plural(2), "s");
    assert_string_equal(number_plural(UINT64_MAX), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_end_where_they_end),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(plain_numbers_have_one_spelling),
        cmocka_unit_test(whole_texts_only),
        cmocka_unit_test(reals_read_back),
        cmocka_unit_test(choices_have_places),
        cmocka_unit_test(choices_have_numbers),
        cmocka_unit_test(one_is_singular),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
