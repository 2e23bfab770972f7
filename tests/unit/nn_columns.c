/* tests/unit/nn_columns.c -- columns of a table: recognition of their cells, their inputs to a
 * model and their text form. */
#include "nn/data/columns.h"
#include "nn/math/rng.h"

#include "nn_ref.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t *bytes(const char *text)
{
    return (const uint8_t *)text;
}

static int note(struct columns *c, size_t i, const char *cell, const char **expected)
{
    return columns_note(c, i, bytes(cell), strlen(cell), expected);
}

static void test_cells(void **state)
{
    (void)state;
    static const struct
    {
        const char *cell;
        enum columns_cell is;
    } cases[] = {
        {"1", COLUMNS_NUMBER},
        {"-1e5", COLUMNS_NUMBER},
        {"20190304", COLUMNS_NUMBER},
        {"", COLUMNS_GAP},
        {"?", COLUMNS_GAP},
        {"NA", COLUMNS_GAP},
        {"n/a", COLUMNS_GAP},
        {"NaN", COLUMNS_GAP},
        {"null", COLUMNS_GAP},
        {"none", COLUMNS_WORD},
        {"??", COLUMNS_WORD},
        {"red", COLUMNS_WORD},
        {"3+", COLUMNS_BROKEN},
        {"10.0.0.1", COLUMNS_BROKEN},
        {"1,957.25", COLUMNS_WRITTEN},
        {"0,134", COLUMNS_WRITTEN},
        {"EUR 3", COLUMNS_WRITTEN},
        {"v1.2.3", COLUMNS_WORD},
        {"A11", COLUMNS_WORD},
        {"30-39", COLUMNS_WORD},
        {"1/2", COLUMNS_WORD},
        {"12 Angry 12", COLUMNS_WORD},
        {"555-12-3456", COLUMNS_WORD},
        {"a-b-c", COLUMNS_WORD},
        {"1-2-", COLUMNS_WORD},
        {"1:2", COLUMNS_WORD},
        {"A/5 21171", COLUMNS_WORD},
        {"2019-03-04", COLUMNS_DATE},
        {"2019-3-4", COLUMNS_DATE},
        {"2019/03/04", COLUMNS_DATE},
        {"4.3.2019", COLUMNS_DATE},
        {"03/04/19", COLUMNS_DATE},
        {"4-Mar-2019", COLUMNS_DATE},
        {"4 March 2019", COLUMNS_DATE},
        {"2019-03-04T10:11:12Z", COLUMNS_DATE},
        {"2019-03-04 10:11", COLUMNS_DATE},
        {"10:11", COLUMNS_DATE},
        {"9:11:12.5", COLUMNS_DATE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].cell);
        /* The cell is copied into a block of exactly its size, so that a sanitizer detects a
         * read beyond it. */
        uint8_t *exact = malloc(n + 1);
        memcpy(exact, cases[i].cell, n);
        exact = realloc(exact, n > 0 ? n : 1);
        if (columns_look(exact, n) != cases[i].is)
            fail_msg("\"%s\" is taken for %d", cases[i].cell, (int)columns_look(exact, n));
        free(exact);
    }
}

/* The first cell that is not missing determines what its column holds. */
static void test_note(void **state)
{
    (void)state;
    struct columns c;
    const char *expected = NULL;
    assert_int_equal(columns_open(&c, 3), 0);
    assert_int_equal(note(&c, 0, "?", &expected), 0);
    assert_int_equal(note(&c, 0, "7", &expected), 0);
    assert_int_equal(note(&c, 0, "NA", &expected), 0);
    assert_int_equal(note(&c, 0, "x", &expected), -EINVAL);
    assert_string_equal(expected, "a number");
    assert_int_equal(note(&c, 0, "2019-03-04", &expected), -EINVAL);
    assert_non_null(strstr(expected, "not a date or time: remove the column"));
    assert_int_equal(note(&c, 1, "inf", &expected), -EINVAL);
    assert_int_equal(note(&c, 1, "red", &expected), 0);
    assert_int_equal(note(&c, 1, "green", &expected), 0);
    assert_int_equal(note(&c, 1, "red", &expected), 0);
    assert_int_equal(note(&c, 1, "5", &expected), -EINVAL);
    assert_string_equal(expected, "a category, because the first cell of the column is a category");
    assert_int_equal(note(&c, 1, "10:11", &expected), -EINVAL);
    assert_int_equal(note(&c, 2, "2019-03-04", &expected), -EINVAL);
    assert_int_equal(c.at[2].form, COLUMN_OPEN);
    assert_int_equal(c.at[0].n_gaps, 2);
    assert_true(columns_gaps(&c) == 2 && columns_have_categories(&c));
    assert_int_equal(columns_inputs(&c), 4);
    c.settled = true;
    assert_int_equal(note(&c, 1, "blue", &expected), 0);
    assert_true(c.at[1].n_categories == 2 && c.at[1].n_unknown == 1);
    assert_true(columns_code(&c, 1, bytes("blue"), 4) <= 0);
    assert_true(columns_code(&c, 1, bytes("?"), 1) <= 0);
    float red = columns_code(&c, 1, bytes("red"), 3),
          green = columns_code(&c, 1, bytes("green"), 5);
    assert_true(red + green >= 3 && red + green <= 3 && fabsf(red - green) >= 1);
    assert_true(isnan(columns_code(&c, 0, bytes("?"), 1)));
    columns_close(&c);
}

/* If a column has more than COLUMNS_CATEGORIES_MAX categories, it maps categories to inputs by
 * hash. */
static void test_many_categories(void **state)
{
    (void)state;
    struct columns c, copy;
    const char *expected;
    char cell[16], text[COLUMNS_TEXT_MAX];
    assert_int_equal(columns_open(&c, 1), 0);
    for (int i = 0; i < COLUMNS_CATEGORIES_MAX; i++) {
        snprintf(cell, sizeof cell, "c%d", i);
        assert_int_equal(note(&c, 0, cell, &expected), 0);
    }
    assert_true(columns_inputs(&c) == COLUMNS_CATEGORIES_MAX && !c.at[0].hashed);
    for (uint32_t i = 1; i < c.at[0].n_categories; i++)
        assert_true(c.at[0].category[i] > c.at[0].category[i - 1]);
    assert_int_equal(note(&c, 0, "c0", &expected), 0);
    assert_false(c.at[0].hashed);
    assert_int_equal(note(&c, 0, "one more", &expected), 0);
    assert_true(columns_inputs(&c) == COLUMNS_BUCKETS && c.at[0].hashed);
    assert_int_equal(columns_print(&c, text, sizeof text), 1);
    assert_string_equal(text, "#");
    assert_int_equal(columns_copy(&copy, &c), 0);
    float at = columns_code(&copy, 0, bytes("never seen"), 10), out[COLUMNS_BUCKETS];
    assert_true(at >= 1 && at <= COLUMNS_BUCKETS);
    columns_expand(&copy, &at, out);
    float sum = 0;
    for (int i = 0; i < COLUMNS_BUCKETS; i++)
        sum += out[i];
    assert_true(sum >= 1 && sum <= 1 && out[(int)at - 1] >= 1);
    columns_close(&copy);
    columns_close(&c);
}

/* Computes the mean and scale of each column from n rows. */
static void fit(struct columns *c, const float *rows, size_t n)
{
    struct column_moments *of = calloc(c->n, sizeof *of);
    assert_non_null(of);
    columns_moments(c, rows, n, of);
    columns_settle(c, of);
    free(of);
}

static bool near(float a, double b)
{
    return fabs((double)a - b) <= 1e-6;
}

/* Checks hand-computed results for three rows of numbers: one column is constant, and one has a
 * missing value. */
static void test_fit(void **state)
{
    (void)state;
    static const float rows[] = {1000, 0.5f, 5, 7000, 0.5f, NAN, 4000, 0.5f, 9};
    static const struct
    {
        enum columns_scale scale;
        const char *text;
        double first, constant, gap;
    } cases[] = {
        {COLUMNS_SCALE_STANDARD, "4000~2400,.5,7~2", -3000.0 / 2400, 0, 0},
        {COLUMNS_SCALE_MAX, "4000~7000,.5~.5,7~9", 1000.0 / 7000, 1, 7.0 / 9},
        {COLUMNS_SCALE_NONE, "4000,.5,7", 1000, 0.5f, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct columns c;
        float copy[9];
        char text[COLUMNS_TEXT_MAX];
        assert_int_equal(columns_open(&c, 3), 0);
        for (int k = 0; k < 3; k++)
            c.at[k].form = COLUMN_NUMBERS;
        c.scale = cases[i].scale;
        memcpy(copy, rows, sizeof rows);
        fit(&c, copy, 3);
        assert_int_equal(columns_print(&c, text, sizeof text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
        columns_apply(&c, copy, 3);
        assert_true(near(copy[0], cases[i].first) && near(copy[1], cases[i].constant)
                    && near(copy[5], cases[i].gap));
        columns_close(&c);
    }
}

/* A column that is constant in the training set may vary in other sets. Values far from the mean
 * are limited to a fixed range. */
static void test_constant_and_far(void **state)
{
    (void)state;
    static const float rows[] = {0, 5000, 1e-3f, 0, 5000, -1e-3f};
    float others[] = {1, 0, 1e30f, 0, 5000, -1e30f};
    struct columns c;
    char text[COLUMNS_TEXT_MAX];
    assert_int_equal(columns_open(&c, 3), 0);
    c.scale = COLUMNS_SCALE_STANDARD;
    fit(&c, rows, 2);
    columns_print(&c, text, sizeof text);
    assert_string_equal(text, "0,5000~5000,~.001");
    columns_apply(&c, others, 2);
    static const float want[] = {1, -1, 1e6f, 0, 0, -1e6f};
    for (int i = 0; i < 6; i++)
        assert_true(near(others[i], (double)want[i]));
    columns_close(&c);
}

/* After standardisation, random columns have mean 0 and deviation 1, up to the rounding of mean and
 * deviation to two digits. */
static void test_random(void **state)
{
    (void)state;
    enum { N = 200, COLUMNS = 5 };
    uint64_t seed = ref_seed();
    for (uint64_t k = 0; k < 200; k++) {
        float *rows = malloc(N * COLUMNS * sizeof *rows);
        struct columns c, again;
        assert_int_equal(columns_open(&c, COLUMNS), 0);
        c.scale = COLUMNS_SCALE_STANDARD;
        for (size_t i = 0; i < N * COLUMNS; i++) {
            uint64_t r = rng_at(seed + k, i);
            double width = pow(10, (double)(rng_at(seed + k, i % COLUMNS + 5000) % 60) - 30);
            double mean =
                width * (double)((int64_t)(rng_at(seed + k, i % COLUMNS + 6000) % 2001) - 1000);
            rows[i] = (float)(mean + width * (double)(r >> 40) / (double)(1 << 24));
        }
        fit(&c, rows, N);
        char text[COLUMNS_TEXT_MAX], same[COLUMNS_TEXT_MAX];
        size_t n = columns_print(&c, text, sizeof text);
        assert_true(n < sizeof text && columns_check(text, c.scale, COLUMNS));
        assert_int_equal(columns_parse(&again, text, c.scale), 0);
        columns_print(&again, same, sizeof same);
        assert_string_equal(same, text);
        assert_true(columns_hash(&again) == columns_hash(&c));
        for (size_t j = 0; j < COLUMNS; j++)
            /* columns_apply() adds the offset that the reader has subtracted from the values.
             * `rows` holds the original values of the file, so the offset is set to 0. */
            again.at[j].offset = 0;
        columns_apply(&again, rows, N);
        for (size_t j = 0; j < COLUMNS; j++) {
            double sum = 0, squares = 0;
            for (size_t i = 0; i < N; i++) {
                sum += (double)rows[i * COLUMNS + j] / N;
                squares += (double)rows[i * COLUMNS + j] * (double)rows[i * COLUMNS + j] / N;
            }
            if (!(fabs(sum) <= 0.06 && fabs(sqrt(squares - sum * sum) - 1) <= 0.06))
                fail_msg("column %zu of %s: mean %g, deviation %g", j, text, sum,
                         sqrt(squares - sum * sum));
        }
        columns_close(&again);
        columns_close(&c);
        free(rows);
    }
}

/* A text form of columns is accepted only in the spelling that columns_print() writes. A truncated
 * or changed text is refused, or means other columns. */
static void test_texts(void **state)
{
    (void)state;
    static const struct
    {
        const char *text;
        enum columns_scale scale;
        size_t n_inputs;
    } good[] = {
        {"0", COLUMNS_SCALE_STANDARD, 1},
        {"2960~280,~.25,.5,#,=AAAaB3", COLUMNS_SCALE_STANDARD, 3 + COLUMNS_BUCKETS + 2},
        {"-1.5~3e38", COLUMNS_SCALE_MAX, 1},
        {"7,=AAA", COLUMNS_SCALE_NONE, 2},
    };
    static const char *const bad[] = {
        "",    ",",   "0,",     "0.5",    "00",      "1e+05",   "~",     "~1",   "~0",
        "~-1", "1~1", "0~2",    "~1e-40", "~1e39",   "1e39",    "nan",   "~inf", "x",
        "=",   "=AA", "=AA!",   "##",     "=aB3AAA", "=AAAAAA", "1~2~3", " 1",   "1 ",
        "+1",  "-0",  "2.96e3", "--1",    "=AAA,",   "-",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(columns_check(good[i].text, good[i].scale, good[i].n_inputs));
        assert_false(columns_check(good[i].text, good[i].scale, good[i].n_inputs + 1));
        struct columns c;
        char text[COLUMNS_TEXT_MAX];
        assert_int_equal(columns_parse(&c, good[i].text, good[i].scale), 0);
        assert_int_equal(columns_print(&c, text, sizeof text), strlen(good[i].text));
        assert_string_equal(text, good[i].text);
        assert_int_equal(columns_inputs(&c), good[i].n_inputs);
        columns_close(&c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t n = 0; n < 4; n++)
            if (columns_check(bad[i], COLUMNS_SCALE_STANDARD, n))
                fail_msg("\"%s\" is taken", bad[i]);
    assert_false(columns_check("1~2", COLUMNS_SCALE_NONE, 1));
}

/* A text form that does not fit into the buffer is cut, and the length of the complete text is
 * returned. */
static void test_cut_text(void **state)
{
    (void)state;
    struct columns c;
    char text[8];
    assert_int_equal(columns_parse(&c, "1~20,3,=AAA", COLUMNS_SCALE_STANDARD), 0);
    assert_int_equal(columns_print(&c, text, sizeof text), 11);
    assert_string_equal(text, "1~20,3,");
    assert_int_equal(columns_print(&c, text, 1), 11);
    assert_string_equal(text, "");
    columns_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_note),
        cmocka_unit_test(test_many_categories),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_constant_and_far),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_cut_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
