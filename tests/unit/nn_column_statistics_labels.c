/* tests/unit/nn_column_statistics_labels.c -- class labels whose numbers have gaps: how they are
 * pooled over the members of a run, and their wire format. */
#include "nn/data/column_statistics.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

enum { COLUMNS = 5 };

/* Makes column statistics of two rows, whose labels are the ones of the data kind `k`. */
static void make(struct column_statistics *m, const struct kind_rows *k)
{
    struct columns c;
    assert_int_equal(columns_open(&c, COLUMNS), 0);
    c.label = COLUMNS;
    assert_int_equal(column_statistics_open(m, k, &c), 0);
    columns_close(&c);
    m->wanted = COLUMNS_SCALE_NONE;
    m->rows = 2;
}

/* The classes of a run are all labels that occur in the data of any member. If one of two members
 * may be Byzantine, it may invent large labels. Labels above the smaller one of the members'
 * largest labels then do not count. A list of labels survives printing and parsing. */
static void test_classes_with_gaps(void **state)
{
    (void)state;
    static const struct
    {
        const char *a, *b; /* Labels of the two members, as a list: "0-1.5" is 0, 1 and 5. */
        const char *kind, *kind_of_liars;
    } cases[] = {
        {"0-1.5", "0-1", "csv/5x3/in-0-1.5", "csv/5x2/0"},
        {"0-1.5", "2-4.6", "csv/5x7/0", "csv/5x5/1"},
        {"1.3", "2", "csv/5x3/1", "csv/5x2/1"},
        {"2.4", "2.4", "csv/5x2/in-2.4", "csv/5x2/in-2.4"},
        {"4096", "3", "csv/5x2/in-3.4096", "csv/5x3/1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *list[2] = {cases[i].a, cases[i].b};
        struct column_statistics m[2], all;
        const struct column_statistics *of[2] = {&m[0], &m[1]};
        char kind[DATA_KIND_MAX], why[COLUMN_STATISTICS_WHY_MAX];
        for (int k = 0; k < 2; k++) {
            struct label_set set;
            struct kind_rows rest = {.scheme = LABELS_LIST};
            uint8_t bytes[2048];
            const char *wrong = NULL;
            struct column_statistics back;
            rest.n_classes = label_set_parse(&set, list[k], strlen(list[k]));
            assert_true(rest.n_classes > 0);
            strcpy(rest.list, list[k]);
            make(&m[k], &rest);
            size_t n = column_statistics_print(&m[k], bytes, sizeof bytes);
            int err = column_statistics_parse(&back, bytes, n, &wrong);
            assert_int_equal(err, rest.n_classes >= 2 ? 0 : -EINVAL);
            if (err == 0)
                assert_string_equal(back.list, list[k]);
            column_statistics_close(&back);
        }
        for (uint32_t liars = 0; liars < 2; liars++) {
            assert_int_equal(column_statistics_pool(&all, of, 2, liars), 0);
            column_statistics_settle(&all);
            assert_int_equal(column_statistics_kind(&all, kind, why), 0);
            assert_string_equal(kind, liars > 0 ? cases[i].kind_of_liars : cases[i].kind);
            column_statistics_close(&all);
        }
        column_statistics_close(&m[0]);
        column_statistics_close(&m[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes_with_gaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
