/* tests/unit/nn_lines.c -- parsers of numbers, of quoted cells, and of the part of a data kind that
 * has features, classes and labels. The parsers must refuse a text or read it as a slower
 * implementation does. */
#include "nn/data/labels.h"

#include "nn/data/quote.h"
#include "nn/math/number.h"

#include "nn_rows.h"

static bool take(const char *text, double *v)
{
    return number_is((const uint8_t *)text, strlen(text), v);
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0",
                                          "-0",
                                          "+0",
                                          "1",
                                          "007",
                                          "1.",
                                          ".5",
                                          "-.5",
                                          "1e5",
                                          "1E+5",
                                          "1.5e-5",
                                          "0.1",
                                          "3.14159265358979323846",
                                          "9007199254740993",
                                          "9007199254740992",
                                          "123456789012345678901234567890",
                                          "1e22",
                                          "1e23",
                                          "1e-22",
                                          "1e-23",
                                          "1e308",
                                          "1e309",
                                          "-1e309",
                                          "4.9e-324",
                                          "1e-400",
                                          "0e99999999999",
                                          "0.000000000000000000000000000001",
                                          "1e99999999999999999999",
                                          "1e-99999999999999999999",
                                          "2.2250738585072011e-308",
                                          "179769313486231580793e289",
                                          "00000000000000000000000000000000000000000000000000001",
                                          "0.3",
                                          "16777217",
                                          "1e4294967297",
                                          "1e-4294967295",
                                          "1.00000005960464477539062501"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double v = -7;
        assert_true(take(numbers[i], &v));
        if (!same(v, strtod(numbers[i], NULL)))
            fail_msg("%s", numbers[i]);
    }
    static const char *const others[] = {"",    "+",   "-",     ".",     "e5", ".e5", "1e",
                                         "1e+", "--1", "1.2.3", "1,5",   " 1", "1 ",  "0x10",
                                         "inf", "nan", "1f",    "1_000", "١"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        double v;
        if (take(others[i], &v))
            fail_msg("%s", others[i]);
    }
}

/* A number ends at the first byte that is not part of it. A number that is too long is refused. */
static void test_number_ends(void **state)
{
    (void)state;
    const uint8_t text[] = "12e+x";
    double v;
    assert_ptr_equal(number_read(text, text + 5, &v), text + 2);
    assert_ptr_equal(number_read(text, text + 1, &v), text + 1);
    assert_null(number_read(text, text, &v));
    char longest[NUMBER_MAX + 2];
    memset(longest, '1', sizeof longest);
    longest[NUMBER_MAX] = '\0';
    assert_true(take(longest, &v) && same(v, strtod(longest, NULL)));
    longest[NUMBER_MAX] = '1';
    longest[NUMBER_MAX + 1] = '\0';
    assert_false(take(longest, &v));
}

static void test_random_numbers(void **state)
{
    (void)state;
    struct rng g = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    for (int i = 0; i < 100000; i++) {
        char text[64];
        uint64_t bits = rng_u64(&g) & 0xbfffffffffffffffu;
        double x, v;
        memcpy(&x, &bits, sizeof x);
        int form = (int)rng_below(&g, 4);
        if (form == 0)
            snprintf(text, sizeof text, "%.17g", x);
        else if (form == 1)
            snprintf(text, sizeof text, "%.*f", (int)rng_below(&g, 12), rng_normal(&g) * 1e3);
        else if (form == 2)
            snprintf(text, sizeof text, "%.*e", (int)rng_below(&g, 20), rng_normal(&g));
        else
            snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(bits >> 40),
                     (unsigned long long)rng_below(&g, 1000000), (int)rng_below(&g, 60) - 30);
        assert_true(take(text, &v));
        if (!same(v, strtod(text, NULL)))
            fail_msg("%s: %.17g", text, v);
    }
}

static void test_to_float(void **state)
{
    (void)state;
    float x;
    assert_true(number_to_float(3.4028234663852886e38, 1, &x) && isfinite(x));
    assert_true(number_to_float(1e40, 100, &x));
    assert_false(number_to_float(1e40, 1, &x));
    assert_false(number_to_float(-3.5e38, 1, &x));
    assert_false(number_to_float((double)INFINITY, 1, &x));
    assert_true(number_to_float(1e-60, 1, &x) && x >= 0 && x <= 0);
    assert_true(number_to_float(1, 3, &x) && x >= 1 / 3.0f && x <= 1 / 3.0f);
}

static void test_quote(void **state)
{
    (void)state;
    assert_string_equal(quote_bytes(NULL, 0).text, "nothing");
    assert_string_equal(quote_bytes((const uint8_t *)"a \"b\"", 5).text, "\"a \"b\"\"");
    assert_string_equal(quote_bytes((const uint8_t *)"\0\n\x7f\xff", 4).text,
                        "\"\\x00\\x0a\\x7f\\xff\"");
    uint8_t many[300];
    memset(many, 0x80, sizeof many);
    for (size_t n = 1; n <= sizeof many; n++) {
        size_t len = strlen(quote_bytes(many, n).text);
        assert_true(len <= QUOTE_SHOWN + 5);
    }
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct
    {
        const char *text, *format;
        struct kind_rows kind;
    } good[] = {
        {"libsvm",
         "libsvm",
         {.fixed = false,
          .features = 0,
          .n_classes = 0,
          .scheme = LABELS_OPEN,
          .hash = 0,
          .divide = 1}},
        {"libsvm/123x2/pm",
         "libsvm",
         {.fixed = true,
          .features = 123,
          .n_classes = 2,
          .scheme = LABELS_PM,
          .hash = 0,
          .divide = 1}},
        {"csv/64x10/0/16",
         "csv",
         {.fixed = true,
          .features = 64,
          .n_classes = 10,
          .scheme = LABELS_ZERO,
          .hash = 0,
          .divide = 16}},
        {"csv/1x4096/1/0.1",
         "csv",
         {.fixed = true,
          .features = 1,
          .n_classes = 4096,
          .scheme = LABELS_ONE,
          .hash = 0,
          .divide = 0.1}},
        {"csv/16777216x3/names-0123456789abcdef/1e-05",
         "csv",
         {.fixed = true,
          .features = 16777216,
          .n_classes = 3,
          .scheme = LABELS_NAMES,
          .hash = 0x0123456789abcdef,
          .divide = 1e-5}},
        {"csv/3x5/in-0-2.7.4096/2",
         "csv",
         {.fixed = true,
          .features = 3,
          .n_classes = 5,
          .scheme = LABELS_LIST,
          .list = "0-2.7.4096",
          .divide = 2}},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct kind_rows k;
        assert_true(kind_rows_parse(good[i].text, good[i].format, &k));
        assert_memory_equal(&k.features, &good[i].kind.features,
                            sizeof k - offsetof(struct kind_rows, features));
        char text[DATA_KIND_MAX];
        assert_int_equal(k.fixed, good[i].kind.fixed);
        assert_true(!k.fixed || kind_rows_print(&k, good[i].format, text));
        assert_true(!k.fixed || strcmp(text, good[i].text) == 0);
    }
    static const char *const bad[] = {"",
                                      "cs",
                                      "csv ",
                                      "csv/",
                                      "csv/64x10",
                                      "csv/64x10/",
                                      "csv/64x10/2",
                                      "csv/064x10/0",
                                      "csv/0x10/0",
                                      "csv/64x1/0",
                                      "csv/64x3/pm",
                                      "csv/64x4097/0",
                                      "csv/16777217x2/0",
                                      "csv/64x10/0/",
                                      "csv/64x10/0/1",
                                      "csv/64x10/0/1e1",
                                      "csv/64x10/0/0",
                                      "csv/64x10/0/-2",
                                      "csv/64x10/0/nan",
                                      "csv/64x10/0/16/",
                                      "csv/64x10/0/1e999",
                                      "csv/64x10/pmx",
                                      "csv/64x10/names-",
                                      "csv/64x10/names-0123456789ABCDEF",
                                      "csv/64x10/names-0123456789",
                                      "csv/64x10/names-0123456789abcdef0",
                                      "csv/3x5/in-",
                                      "csv/3x4/in-0-2.7.9",
                                      "csv/3x2/in-0.1",
                                      "csv/3x2/in-5.3",
                                      "csv/3x2/in-3.3",
                                      "csv/3x2/in-3.05",
                                      "csv/3x2/in-3.4097",
                                      "csv/3x2/in-3.5.",
                                      "csv/3x2/in-3.5-5",
                                      "csv/99999999999999x2/0",
                                      "libsvm/1x2/pm"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kind_rows k;
        if (kind_rows_parse(bad[i], "csv", &k))
            fail_msg("%s", bad[i]);
    }
    struct kind_rows k = {.fixed = true,
                          .features = 1 << 24,
                          .n_classes = 4096,
                          .scheme = LABELS_NAMES,
                          .hash = 1,
                          .divide = 1.2345678901234567e-300};
    char text[DATA_KIND_MAX];
    /* The data kind is one byte longer than DATA_KIND_MAX allows. */
    assert_false(kind_rows_print(&k, "csv", text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_number_ends),
        cmocka_unit_test(test_random_numbers), cmocka_unit_test(test_to_float),
        cmocka_unit_test(test_quote),          cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
