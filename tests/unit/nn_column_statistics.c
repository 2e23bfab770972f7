/* tests/unit/nn_column_statistics.c -- statistics of table columns: the pooled statistics of
 * several members equal the statistics of all their rows, and hostile bytes are refused. */
#include "nn/data/data.h"
#include "nn/math/rng.h"

#include "nn_ref.h"
#include "nn_scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

enum { COLUMNS = 5, ROWS = 240, PARTS = 7 };

static const struct kind_rows two_classes = {
    .fixed = true, .n_classes = 2, .scheme = LABELS_ZERO, .divide = 1};

/* Computes the column statistics of n rows of numbers. */
static void make(struct column_statistics *m, const float *rows, size_t n,
                 const struct kind_rows *k)
{
    struct columns c;
    assert_int_equal(columns_open(&c, COLUMNS), 0);
    for (size_t i = 0; i < COLUMNS; i++)
        c.at[i].form = COLUMN_NUMBERS;
    assert_int_equal(column_statistics_open(m, k, &c), 0);
    columns_close(&c);
    m->wanted = COLUMNS_SCALE_STANDARD;
    m->rows = n;
    columns_moments(&m->columns, rows, n, m->of);
}

static bool close_to(double a, double b, double width)
{
    return fabs(a - b) <= 1e-12 * fmax(width, fabs(b));
}

/* Draws columns with missing values and with means that are up to a million standard deviations
 * from 0. */
static void draw_rows(uint64_t seed, float *rows)
{
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
        uint64_t r = rng_at(seed, i);
        double mean = pow(10, (double)(rng_at(seed, 9000 + i % COLUMNS) % 7)) - 1;
        rows[i] = r % 11 == 0 ? NAN : (float)(mean + (double)(r >> 40) / (double)(1 << 24));
    }
}

/* Divides the rows at random into parts, one for each member, and draws the order of pooling. Two
 * parts have one row each. No part has more rows than COLUMN_STATISTICS_WEIGHT times the median
 * part, because test_weight() tests larger parts. */
static void cut(uint64_t seed, size_t end[PARTS], size_t order[PARTS])
{
    enum { LEAST = 5 };
    for (size_t i = 0, from = 0; i < PARTS; from = end[i++]) {
        size_t spare = ROWS - from - LEAST * (PARTS - i);
        size_t n = i == 1 || i == 4 ? 1 : LEAST + rng_at(seed, 100 + i) % (spare + 1);
        end[i] = i + 1 == PARTS ? ROWS : from + n;
        order[i] = i;
    }
    for (size_t i = PARTS - 1; i > 0; i--) {
        size_t j = rng_at(seed, 200 + i) % (i + 1), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
}

/* Pooled statistics equal the statistics of all rows, for every division into parts and every
 * order. */
static void test_union(void **state)
{
    (void)state;
    uint64_t seed = ref_seed();
    static float rows[ROWS * COLUMNS];
    for (uint64_t k = 0; k < 300; k++) {
        struct column_statistics whole, all, part[PARTS];
        const struct column_statistics *of[PARTS];
        size_t end[PARTS], order[PARTS];
        double width[COLUMNS];
        draw_rows(seed + k, rows);
        cut(seed + k, end, order);
        make(&whole, rows, ROWS, &two_classes);
        for (size_t i = 0; i < PARTS; i++) {
            size_t from = i > 0 ? end[i - 1] : 0;
            make(&part[i], rows + from * COLUMNS, end[i] - from, &two_classes);
        }
        for (size_t i = 0; i < PARTS; i++)
            of[i] = &part[order[i]];
        assert_int_equal(column_statistics_pool(&all, of, PARTS, 0), 0);
        assert_int_equal(all.rows, ROWS);
        for (size_t i = 0; i < COLUMNS; i++) {
            const struct column_moments *a = &all.of[i], *b = &whole.of[i];
            width[i] = fmax(fabs(b->low), fabs(b->high));
            assert_true(a->n >= b->n && a->n <= b->n && a->low >= b->low && a->low <= b->low
                        && a->high >= b->high && a->high <= b->high);
            if (!close_to(a->mean, b->mean, width[i]) || !(fabs(a->m2 - b->m2) <= 1e-6 * b->m2))
                fail_msg("seed %llu, column %zu: %.17g, %.17g, expected %.17g, %.17g",
                         (unsigned long long)(seed + k), i, a->mean, a->m2, b->mean, b->m2);
        }
        for (size_t i = 0; i < PARTS; i++)
            column_statistics_close(&part[i]);
        column_statistics_close(&whole);
        column_statistics_close(&all);
    }
}

/* A member that reports 10^12 rows has at most 64 times the weight of the median member. */
static void test_weight(void **state)
{
    (void)state;
    struct column_statistics m[3], all;
    const struct column_statistics *of[3] = {&m[0], &m[1], &m[2]};
    float rows[10 * COLUMNS];
    for (size_t i = 0; i < 10 * COLUMNS; i++)
        rows[i] = (float)(i / COLUMNS);
    for (size_t i = 0; i < 3; i++)
        make(&m[i], rows, 10, &two_classes);
    m[1].rows = COLUMN_STATISTICS_ROWS_MAX;
    m[1].of[0] = (struct column_moments){(double)COLUMN_STATISTICS_ROWS_MAX, 100, 0, 100, 100};
    assert_int_equal(column_statistics_pool(&all, of, 3, 0), 0);
    assert_true(all.of[0].n <= 10 * (COLUMN_STATISTICS_WEIGHT + 2) + 1e-6);
    assert_true(
        close_to(all.of[0].mean,
                 (2 * 4.5 + COLUMN_STATISTICS_WEIGHT * 100) / (COLUMN_STATISTICS_WEIGHT + 2), 100));
    column_statistics_close(&all);
    assert_int_equal(column_statistics_pool(&all, of, 2, 0),
                     /* With two members, the larger one weighs at most COLUMN_STATISTICS_WEIGHT
                      * times the smaller one. */
                     0);
    assert_true(all.of[0].n <= 10 * (COLUMN_STATISTICS_WEIGHT + 1) + 1e-6);
    column_statistics_close(&all);
    for (size_t i = 0; i < 3; i++)
        column_statistics_close(&m[i]);
}

/* With one Byzantine member of five, no pooled mean or variance leaves the range of the other
 * four members. */
static void test_liars(void **state)
{
    (void)state;
    uint64_t seed = ref_seed();
    static float rows[ROWS * COLUMNS];
    for (uint64_t k = 0; k < 100; k++) {
        struct column_statistics m[5], all;
        const struct column_statistics *of[5];
        size_t liar = rng_at(seed, k) % 5;
        draw_rows(seed + k, rows);
        for (size_t i = 0; i < 5; i++) {
            make(&m[i], rows + i * 40 * COLUMNS, 40, &two_classes);
            of[i] = &m[i];
        }
        double sign = k % 2 == 0 ? 1 : -1;
        for (size_t i = 0; i < COLUMNS; i++)
            m[liar].of[i] =
                (struct column_moments){1e9, sign * 1e30, k % 3 == 0 ? 0 : 1e50, -1e38f, 1e38f};
        m[liar].rows = 1000000000;
        m[liar].n_classes = 900;
        assert_int_equal(column_statistics_pool(&all, of, 5, 1), 0);
        assert_int_equal(all.n_classes, 2);
        for (size_t i = 0; i < COLUMNS; i++) {
            double low = INFINITY, high = -INFINITY, least = INFINITY, most = 0;
            for (size_t j = 0; j < 5; j++) {
                if (j == liar)
                    continue;
                low = fmin(low, m[j].of[i].mean);
                high = fmax(high, m[j].of[i].mean);
                least = fmin(least, m[j].of[i].m2 / m[j].of[i].n);
                most = fmax(most, m[j].of[i].m2 / m[j].of[i].n);
            }
            double variance = all.of[i].m2 / all.of[i].n;
            assert_true(all.of[i].mean >= low && all.of[i].mean <= high);
            assert_true(variance >= least * (1 - 1e-12) && variance <= most * (1 + 1e-12));
        }
        column_statistics_close(&all);
        for (size_t i = 0; i < 5; i++)
            column_statistics_close(&m[i]);
    }
}

/* ---- Columns of categories. ---- */

/* Makes statistics of one column with n categories. Their names are "w" and a number, counted from
 * `first` on. */
static void make_words(struct column_statistics *m, uint32_t first, uint32_t n)
{
    struct columns c;
    const char *expected;
    char word[16];
    assert_int_equal(columns_open(&c, 1), 0);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(word, sizeof word, "w%u", (unsigned)(first + i));
        assert_int_equal(columns_note(&c, 0, (const uint8_t *)word, strlen(word), &expected), 0);
    }
    assert_int_equal(column_statistics_open(m, &two_classes, &c), 0);
    m->wanted = COLUMNS_SCALE_STANDARD;
    m->rows = n + 1;
    columns_close(&c);
}

static void check_words(uint32_t first, uint32_t n, uint32_t second, uint32_t k, uint32_t liars,
                        bool hashed, uint32_t want)
{
    struct column_statistics a, b, all;
    const struct column_statistics *of[3] = {&a, &b, &a};
    make_words(&a, first, n);
    make_words(&b, second, k);
    assert_int_equal(column_statistics_pool(&all, of, liars > 0 ? 3 : 2, liars), 0);
    assert_int_equal(all.columns.at[0].hashed, hashed);
    assert_int_equal(all.columns.at[0].n_categories, want);
    for (uint32_t i = 1; i < want; i++)
        assert_true(all.columns.at[0].category[i] > all.columns.at[0].category[i - 1]);
    column_statistics_close(&a);
    column_statistics_close(&b);
    column_statistics_close(&all);
}

static void test_words(void **state)
{
    (void)state;
    check_words(0, 4, 2, 4, 0, false, 6);
    check_words(0, 4, 0, 4, 0, false, 4);
    check_words(0, 40, 40, 24, 0, false, 64);
    /* Together the members have 65 categories, one more than the limit, so the column maps
     * categories to inputs by hash. */
    check_words(0, 40, 40, 25, 0, true, 0);
    /* Case: one member alone has more than 64 categories. */
    check_words(0, 3, 100, 70, 0, true, 0);
    /* With one possible Byzantine member, categories that only one of three members has are
     * ignored. */
    check_words(0, 4, 2, 60, 1, false, 4);
    check_words(0, 4, 100, 70, 1, false, 4);
}

/* ---- Which statistics can be pooled ---- */

static void differ(const struct column_statistics *a, const struct column_statistics *b,
                   const char *want)
{
    char why[COLUMN_STATISTICS_WHY_MAX] = "";
    if (column_statistics_differ(a, b, why) != (want != NULL)
        || (want != NULL && strcmp(why, want) != 0))
        fail_msg("found \"%s\", expected \"%s\"", why, want != NULL ? want : "");
}

static void test_differ(void **state)
{
    (void)state;
    static const float rows[2 * COLUMNS] = {0};
    struct column_statistics a, b;
    make(&a, rows, 2, &two_classes);
    make(&b, rows, 2, &two_classes);
    differ(&a, &b, NULL);
    b.columns.at[3].form = COLUMN_OPEN;
    differ(&a, &b, NULL);
    b.columns.at[3].form = COLUMN_CATEGORIES;
    /* at[3] is column 5 of the file: the message counts columns from 1, and column 1 is the label,
     * which at[] does not contain. */
    differ(&a, &b, "column 5: found numbers, expected categories");
    b.columns.label = 4;
    differ(&a, &b,
           "found 6 columns and the label in column 1, expected 6 columns and "
           "the label in column 5");
    b.columns.label = 0;
    b.columns.at[3].form = COLUMN_NUMBERS;
    b.columns.n--;
    differ(&a, &b,
           "found 6 columns and the label in column 1, expected 5 columns and "
           "the label in column 1");
    b.columns.n++;
    b.wanted = COLUMNS_SCALE_MAX;
    differ(&a, &b, "found scale=standard, expected scale=max");
    b.wanted = a.wanted;
    b.sparse = true;
    differ(&a, &b, "found csv, expected libsvm");
    b.sparse = false;
    b.scheme = LABELS_ONE;
    b.n_classes = 7;
    differ(&a, &b, NULL);
    b.scheme = LABELS_PM;
    differ(&a, &b, "labels: found 0, 1, ..., expected -1 and +1");
    a.scheme = b.scheme = LABELS_NAMES;
    a.n_classes = 7;
    differ(&a, &b, NULL);
    b.names = 1;
    differ(&a, &b,
           "labels: found 7 label names, expected 7, of which at least one is spelt differently "
           "(members send only a hash of their label names, so compare the files): every file must "
           "have all label names of the run");
    column_statistics_close(&a);
    column_statistics_close(&b);
}

/* Some members lack the first or the last label in their part of the data. Their statistics can be
 * pooled with the others. */
static void test_classes(void **state)
{
    (void)state;
    static const struct
    {
        enum labels_scheme a, b, is;
        uint32_t n_a, n_b, n;
    } cases[] = {{LABELS_ZERO, LABELS_ZERO, LABELS_ZERO, 3, 7, 7},
                 {LABELS_ONE, LABELS_ONE, LABELS_ONE, 3, 7, 7},
                 {LABELS_ZERO, LABELS_ONE, LABELS_ZERO, 3, 7, 8},
                 {LABELS_ONE, LABELS_ZERO, LABELS_ZERO, 6, 7, 7},
                 {LABELS_ZERO, LABELS_ONE, LABELS_ZERO, 2, 2, 3},
                 {LABELS_PM, LABELS_PM, LABELS_PM, 2, 2, 2}};
    static const float rows[2 * COLUMNS] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kind_rows k = {.scheme = cases[i].a, .n_classes = cases[i].n_a};
        struct column_statistics a, b, all;
        const struct column_statistics *of[2] = {&a, &b};
        make(&a, rows, 2, &k);
        k = (struct kind_rows){.scheme = cases[i].b, .n_classes = cases[i].n_b};
        make(&b, rows, 2, &k);
        assert_int_equal(column_statistics_pool(&all, of, 2, 0), 0);
        assert_int_equal(all.scheme, cases[i].is);
        assert_int_equal(all.n_classes, cases[i].n);
        column_statistics_close(&all);
        assert_int_equal(column_statistics_pool(&all, of, 2, 1), 0);
        assert_true(all.n_classes >= 2);
        column_statistics_close(&a);
        column_statistics_close(&b);
        column_statistics_close(&all);
    }
}

/* ---- Wire format. ---- */

static size_t print_sample(uint8_t *out, size_t cap)
{
    static const float rows[3 * COLUMNS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, NAN, 14, 15};
    struct column_statistics m;
    make(&m, rows, 3, &two_classes);
    m.columns.at[1].form = COLUMN_OPEN;
    m.of[1] = (struct column_moments){0};
    m.columns.at[3].form = COLUMN_CATEGORIES;
    m.columns.at[3].n_categories = 2;
    m.columns.at[3].category = calloc(2, sizeof(uint32_t));
    assert_non_null(m.columns.at[3].category);
    m.columns.at[3].category[1] = 77;
    m.of[3] = (struct column_moments){0};
    m.columns.at[4].form = COLUMN_CATEGORIES;
    m.columns.at[4].hashed = true;
    m.columns.at[4].n_gaps = 9;
    m.of[4] = (struct column_moments){0};
    size_t n = column_statistics_print(&m, out, cap);
    column_statistics_close(&m);
    return n;
}

static int parse(const uint8_t *p, size_t n, struct column_statistics *m, const char **wrong)
{
    /* The bytes are copied into a block of exactly their size, so that a sanitizer detects a
     * read beyond it. */
    uint8_t *exact = malloc(n > 0 ? n : 1);
    assert_non_null(exact);
    memcpy(exact, p, n);
    int err = column_statistics_parse(m, exact, n, wrong);
    free(exact);
    return err;
}

static void test_bytes(void **state)
{
    (void)state;
    uint8_t bytes[512], again[512];
    const char *wrong;
    struct column_statistics m;
    size_t n = print_sample(bytes, sizeof bytes);
    assert_int_equal(n, 32 + 2 * 49 + 9 + 18 + 9);
    assert_int_equal(print_sample(again, n - 1), 0);
    assert_int_equal(parse(bytes, n, &m, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(m.columns.at[4].n_gaps, 9);
    assert_true(m.of[0].mean >= 6 && m.of[0].mean <= 6 && m.of[2].n >= 2 && m.of[2].n <= 2);
    assert_int_equal(column_statistics_print(&m, again, sizeof again), n);
    assert_memory_equal(again, bytes, n);
    column_statistics_close(&m);
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(parse(bytes, k, &m, &wrong), -EINVAL);
        assert_non_null(wrong);
    }
    bytes[n] = 0;
    assert_int_equal(parse(bytes, n + 1, &m, &wrong), -EINVAL);
    assert_string_equal(wrong, "column statistics with extra bytes at the end");
}

/* Received statistics that no column of numbers can have are refused, each with its own message. */
static void test_hostile(void **state)
{
    (void)state;
    enum { HEAD = 32, N = HEAD + 9, MEAN = N + 8, M2 = MEAN + 8, LOW = M2 + 8, HIGH = LOW + 8 };
    enum { WORDS = HEAD + 49 + 9 + 49 };
    static const struct
    {
        size_t at;
        double value;
        /* Size of the field in bytes. `value` is stored as an integer if `number`, else as a
         * double. */
        size_t n_bytes;
        bool number;
        const char *wrong;
    } cases[] = {
        {0, 1, 1, true, "column statistics of another version"},
        {1, 2, 1, true, "column statistics with an unknown scale"},
        /* Case: libsvm data have scale=standard, which is not allowed. */
        {1, 1, 1, true, "column statistics with an unknown scale"},
        {2, 0, 1, true, "column statistics with an unknown scale"},
        {2, 4, 1, true, "column statistics with an unknown scale"},
        {3, 0, 1, true, "column statistics with an unknown label scheme"},
        {3, 6, 1, true, "column statistics with an unknown label scheme"},
        {3, 5, 1, true, "column statistics with an invalid list of labels"},
        {4, 1, 4, true, "column statistics with an invalid number of classes"},
        {4, 4e9, 4, true, "column statistics with an invalid number of classes"},
        {8, 1, 8, true,
         "column statistics with a hash of label names, although labels are numbers"},
        {16, 0, 8, true, "column statistics with an invalid number of rows"},
        {16, 2e12, 8, true, "column statistics with an invalid number of rows"},
        {24, 6, 4, true, "column statistics with no columns or too many"},
        {28, 0, 4, true, "column statistics with no columns or too many"},
        {28, 481, 4, true, "column statistics with no columns or too many"},
        {28, 4, 4, true, "column statistics with extra bytes at the end"},
        {28, 6, 4, true, "column statistics that are cut off"},
        {HEAD, 4, 1, true, "column statistics with a column of unknown type"},
        {HEAD + 1, 2e12, 8, true, "column statistics with too many empty cells"},
        {N, 4, 8, true, "column statistics with more numbers in a column than rows"},
        {N, 0, 8, true, "column statistics with an invalid range"},
        {MEAN, (double)NAN, 8, false, "column statistics with a value that is not a number"},
        {MEAN, (double)INFINITY, 8, false, "column statistics with a value that is not a number"},
        {MEAN, 11.001, 8, false, "column statistics with a mean outside of the range"},
        {MEAN, .999, 8, false, "column statistics with a mean outside of the range"},
        {M2, (double)NAN, 8, false, "column statistics with a value that is not a number"},
        {M2, -1e-9, 8, false, "column statistics with a negative sum of squares"},
        /* Sum of the squared distances of a column's values from their mean. With three values in a
         * range of length 10, it is at most 3 (10 / 2)^2 = 75. */
        {M2, 75.1, 8, false, "column statistics with a sum of squares beyond the range"},
        {LOW, (double)INFINITY, 8, false, "column statistics with a value that is not a number"},
        {HIGH, (double)NAN, 8, false, "column statistics with a value that is not a number"},
        {HIGH, 1e39, 8, false, "column statistics beyond a float's range"},
        {LOW, -1e39, 8, false, "column statistics beyond a float's range"},
        {HIGH, 0, 8, false, "column statistics with an invalid range"},
        {WORDS + 9, 0, 1, true, "column statistics with no categories or too many"},
        {WORDS + 9, 65, 1, true, "column statistics with no categories or too many"},
        {WORDS + 10, 77, 4, true, "column statistics with categories out of order"},
        {WORDS + 14, 1 << 18, 4, true, "column statistics with categories out of order"},
    };
    uint8_t good[512];
    size_t n = print_sample(good, sizeof good);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[512];
        const char *wrong = NULL;
        struct column_statistics m;
        memcpy(bytes, good, n);
        uint64_t whole = cases[i].number ? (uint64_t)cases[i].value : 0;
        if (cases[i].number)
            for (size_t k = 0; k < cases[i].n_bytes; k++)
                bytes[cases[i].at + k] = (uint8_t)(whole >> 8 * k);
        else
            memcpy(bytes + cases[i].at, &cases[i].value, 8);
        if (parse(bytes, n, &m, &wrong) != -EINVAL || strcmp(wrong, cases[i].wrong) != 0)
            fail_msg("case %zu: found \"%s\", expected \"%s\"", i,
                     wrong != NULL ? wrong : "nothing", cases[i].wrong);
        assert_true(m.of == NULL && m.columns.at == NULL);
    }
}

/* Statistics in which random bytes were changed are refused with a reason, or parse and print to
 * the same bytes. */
static void test_random_bytes(void **state)
{
    (void)state;
    uint64_t seed = ref_seed();
    uint8_t good[512], bytes[512], again[512];
    size_t n = print_sample(good, sizeof good), n_good = 0;
    for (uint64_t k = 0; k < 20000; k++) {
        const char *wrong = NULL;
        struct column_statistics m;
        memcpy(bytes, good, n);
        for (uint64_t j = 0; j <= k % 3; j++)
            bytes[rng_at(seed + k, 2 * j) % n] = (uint8_t)rng_at(seed + k, 2 * j + 1);
        int err = parse(bytes, n, &m, &wrong);
        assert_true((err == 0) == (wrong == NULL));
        n_good += err == 0;
        if (err == 0) {
            assert_int_equal(column_statistics_print(&m, again, sizeof again), n);
            assert_memory_equal(again, bytes, n);
        }
        column_statistics_close(&m);
    }
    assert_true(n_good > 100);
}

/* ---- Statistics of files. ---- */

static struct scratch s;
static char error[DATA_ERROR_MAX];

static void open_file(struct data *d, const char *format, const char *name)
{
    char spec[2000];
    snprintf(spec, sizeof spec, "%s:%s/%s,test=%s/%s", format, s.dir, name, s.dir, name);
    if (data_open(d, &(struct data_request){.spec = spec}, error) < 0)
        fail_msg("%s: %s", name, error);
}

/* Pools the statistics of n files. The resulting data kind must equal the kind of one file that has
 * the lines of all of them. */
static void check_files(const char *format, const char *head, const char *const *part, size_t n)
{
    struct data d[4], whole;
    struct column_statistics all;
    const struct column_statistics *of[4];
    char text[2000], kind[DATA_KIND_MAX], why[COLUMN_STATISTICS_WHY_MAX], name[32];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", head);
    for (size_t i = 0; i < n; i++) {
        char one[1000];
        snprintf(one, sizeof one, "%s%s", head, part[i]);
        snprintf(name, sizeof name, "p%zu", i);
        scratch_put(&s, name, one, strlen(one));
        open_file(&d[i], format, name);
        assert_true(d[i].moments.rows > 0);
        of[i] = &d[i].moments;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", part[i]);
    }
    scratch_put(&s, "whole", text, at);
    open_file(&whole, format, "whole");
    for (size_t i = 1; i < n; i++)
        assert_false(column_statistics_differ(of[i], of[0], why));
    assert_int_equal(column_statistics_pool(&all, of, n, 0), 0);
    column_statistics_settle(&all);
    assert_int_equal(column_statistics_kind(&all, kind, why), 0);
    assert_string_equal(kind, whole.train.kind);
    assert_string_not_equal(kind, d[0].train.kind);
    /* Each of the files can be opened with the pooled data kind. */
    for (size_t i = 0; i < n; i++) {
        struct data again;
        char spec[2000];
        snprintf(spec, sizeof spec, "%s:%s/p%zu,test=%s/whole", format, s.dir, i, s.dir);
        if (data_open(&again, &(struct data_request){.spec = spec, .kind = kind}, error) < 0)
            fail_msg("%s", error);
        assert_true(again.moments.rows == 0 && again.train.n == d[i].train.n);
        data_close(&again);
        data_close(&d[i]);
    }
    data_close(&whole);
    column_statistics_close(&all);
}

static void test_files(void **state)
{
    (void)state;
    static const char *const tables[] = {
        "red,1000,0,1\nred,?,0,2\ngreen,3000,0,1\n",
        "blue,5000,0,3\nblue,5100,0,2\n",
        "?,-7000,?,2\ngreen,80,1,1\n",
    };
    static const char *const sparse[] = {"1 1:0.5 2:1\n2 2:3\n", "1 4:5000\n3 1:-7\n"};
    scratch_open(&s);
    check_files("csv", "colour,height,flag,class\n", tables, 3);
    /* Only one of the two files needs scaling, but the pooled data kind scales both. */
    check_files("libsvm", "", sparse, 2);
    scratch_close(&s);
}

/* A data kind that is too long for a run description is refused with a message. */
static void test_no_room(void **state)
{
    (void)state;
    struct column_statistics m;
    struct columns c;
    char kind[DATA_KIND_MAX], why[COLUMN_STATISTICS_WHY_MAX];
    assert_int_equal(columns_open(&c, 300), 0);
    assert_int_equal(column_statistics_open(&m, &two_classes, &c), 0);
    columns_close(&c);
    m.wanted = COLUMNS_SCALE_STANDARD;
    m.rows = 2;
    for (size_t i = 0; i < 300; i++)
        m.of[i] = (struct column_moments){2, 1234, 2 * 99.0 * 99.0, 1135, 1333};
    column_statistics_settle(&m);
    assert_int_equal(column_statistics_kind(&m, kind, why), -EINVAL);
    assert_non_null(strstr(why, "take 2399 characters, and the run description has room for 960"));
    column_statistics_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_union),        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_liars),        cmocka_unit_test(test_words),
        cmocka_unit_test(test_differ),       cmocka_unit_test(test_classes),
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_random_bytes), cmocka_unit_test(test_files),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
