/* tests/unit/nn_schema.c -- columns with names: tables are matched by their column names, and data
 * kinds and column statistics contain these names. */
#include "nn/data/data.h"
#include "nn_scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct scratch s;
static char error[DATA_ERROR_MAX];

static void put(const char *name, const char *text)
{
    scratch_put(&s, name, text, strlen(text));
}

static int setup(void **state)
{
    (void)state;
    scratch_open(&s);
    put("train", "a,b,c,y\n1,10,100,0\n2,20,300,1\n3,10,200,1\n4,50,100,0\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

/* Opens csv:DIR/NAME with the options `rest`, in which a path after ",test=" is relative to DIR. */
static int open_as(struct data *d, const char *name, const char *rest, struct data_request r)
{
    char spec[2000];
    int n = snprintf(spec, sizeof spec, "csv:%s/%s", s.dir, name);
    if (strncmp(rest, ",test=", 6) == 0)
        snprintf(spec + n, sizeof spec - (size_t)n, ",test=%s/%s", s.dir, rest + 6);
    else
        snprintf(spec + n, sizeof spec - (size_t)n, "%s", rest);
    r.spec = spec;
    return data_open(d, &r, error);
}

static void opened(struct data *d, const char *name, const char *rest, struct data_request r)
{
    if (open_as(d, name, rest, r) < 0)
        fail_msg("%s", error);
}

static void same_rows(const struct dataset *a, const struct dataset *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->stride, b->stride);
    assert_memory_equal(a->rows, b->rows, a->n * a->stride * sizeof *a->rows);
    if (a->labels != NULL && b->labels != NULL)
        assert_memory_equal(a->labels, b->labels, a->n * sizeof *a->labels);
}

/* Tables with the same cells give the same held-out set, bit for bit, whatever the order of their
 * columns. */
static void test_held_out_files_are_matched_by_name(void **state)
{
    (void)state;
    static const struct
    {
        const char *text, *label, *note;
    } cases[] = {
        {"a,b,c,y\n5,6,7,0\n8,9,1,1\n", "", NULL},
        {"b,a,c,y\n6,5,7,0\n9,8,1,1\n", "",
         "columns are in another order, and are matched by name"},
        {"y,c,b,a\n0,7,6,5\n1,1,9,8\n", "", "matched by name"},
        {"y,c,b,a\n0,7,6,5\n1,1,9,8\n", ",label=y", "matched by name"},
        {"y,c,b,a\n0,7,6,5\n1,1,9,8\n", ",label=4", "matched by name"},
        {"a,zz,b,c,y\n5,x,6,7,0\n8,y,9,1,1\n", "", "column \"zz\" is ignored"},
        {"a,zz,b,c,u,y\n5,x,6,7,,0\n8,y,9,1,,1\n", "", "columns \"zz\", \"u\" are ignored"},
        {"\xef\xbb\xbf\"b\" ; a\t;c ;y \r\n6;5;7;0\r\n9;8;1;1\r\n", "", "matched by name"},
        {"\" b \",a,c,y\n6,5,7,0\n9,8,1,1\n", "", "matched by name"},
        {"b,a,c,y,\n6,5,7,0,\n9,8,1,1,\n", "", "matched by name"},
        {"a,b,c,y,\n5,6,7,0\n8,9,1,1\n", "", NULL},
        {"5,6,7,0\n8,9,1,1\n", "",
         "found no header, so the columns of this file are assumed to be in the order of \"a\", "
         "\"b\", \"c\" and the label \"y\""},
    };
    struct data want;
    put("test", cases[0].text);
    opened(&want, "train", ",test=test", (struct data_request){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct data d;
        char rest[64];
        put("test", cases[i].text);
        snprintf(rest, sizeof rest, ",test=test%s", cases[i].label);
        opened(&d, "train", rest, (struct data_request){0});
        assert_string_equal(d.test.kind, want.train.kind);
        same_rows(&d.test, &want.test);
        if (cases[i].note == NULL ? strstr(d.note, "test") != NULL
                                  : strstr(d.note, cases[i].note) == NULL)
            fail_msg("case %zu: found the note \"%s\"", i, d.note);
        data_close(&d);
    }
    data_close(&want);
}

static void test_other_names_are_refused_with_both_lists(void **state)
{
    (void)state;
    static const struct
    {
        const char *text, *rest, *sentence;
    } cases[] = {
        {"a,b,d,y\n5,6,7,0\n", ",test=test",
         "line 1: no column \"c\"; found \"a\", \"b\", \"d\", \"y\", expected \"a\", \"b\", \"c\", "
         "\"y\""},
        {"a,b,y\n5,6,0\n", ",test=test",
         "line 1: no column \"c\"; found \"a\", \"b\", \"y\", expected \"a\", \"b\", \"c\", \"y\""},
        {"A,b,c,y\n5,6,7,0\n", ",test=test", "line 1: no column \"a\" (case counts); found \"A\""},
        {"a,b,c [K],y\n5,6,7,0\n", ",test=test",
         "line 1: no column \"c\"; found \"a\", \"b\", \"c [K]\""},
        {"a,b,c,z\n5,6,7,0\n", ",test=test", "line 1: no label \"y\"; found"},
        {"a,b,c\n5,6,7\n", ",test=test", "line 1: no label \"y\"; found"},
        {"b,a,c,b,y\n5,6,7,8,0\n", ",test=test",
         "line 1: found columns 1 and 4 both named \"b\", expected names that differ"},
        {"5,6,7,8,0\n", ",test=test", "line 1: found 5 cells, expected 4"},
        {"5,6,7\n", ",test=test", "line 1: found 3 cells, expected 4"},
        {"b,a,c,y,\n6,5,7,0,\n9,8,1,1,4\n", ",test=test", "line 3: found 5 cells, expected 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct data d;
        put("test", cases[i].text);
        if (open_as(&d, "train", cases[i].rest, (struct data_request){0}) != -EINVAL)
            fail_msg("case %zu is taken", i);
        if (strstr(error, cases[i].sentence) == NULL)
            fail_msg("case %zu: found \"%s\"", i, error);
    }
}

/* A data kind contains short tags of the column names, so another peer can match its columns
 * without knowing the names. */
static void test_tags_of_a_kind_match_columns(void **state)
{
    (void)state;
    struct data train, d;
    opened(&train, "train", ",holdout=0.5", (struct data_request){0});
    char kind[DATA_KIND_MAX];
    strcpy(kind, train.train.kind);
    assert_non_null(strstr(kind, "/columns-"));
    assert_true(data_kind_fixed(kind));
    put("own", "y,b,new,c,a\n0,10,1,100,1\n1,20,1,300,2\n1,10,1,200,3\n0,50,1,100,4\n");
    opened(&d, "own", ",holdout=0.5", (struct data_request){.kind = kind});
    assert_string_equal(d.train.kind, kind);
    same_rows(&d.train, &train.train);
    same_rows(&d.test, &train.test);
    assert_non_null(strstr(d.note, "matched by name; column \"new\" is ignored"));
    /* The names of the columns come from the header of the file. */
    assert_string_equal(schema_name(&d.schema.names, 0), "a");
    assert_string_equal(schema_name(&d.schema.names, 3), "y");
    data_close(&d);
    /* A table without a label column, as for prediction, is matched by name, too. */
    put("bare", "c,a,b\n100,1,10\n300,2,20\n");
    opened(&d, "bare", "", (struct data_request){.kind = kind, .bare = true});
    assert_null(d.test.labels);
    assert_true(d.test.n == 2 && d.test.stride == 3);
    data_close(&d);
    put("own", "y,b,c,d\n0,10,100,1\n1,20,300,2\n");
    assert_int_equal(open_as(&d, "own", "", (struct data_request){.kind = kind}), -EINVAL);
    assert_non_null(strstr(error,
                           "line 1: no column 1 of the run (before \"b\", known only by a hash "
                           "of its name); not in the run: \"d\"; found \"y\", \"b\", \"c\", "
                           "\"d\""));
    put("own", "y,a,c\n0,10,100\n1,20,300\n");
    assert_int_equal(open_as(&d, "own", "", (struct data_request){.kind = kind}), -EINVAL);
    assert_non_null(strstr(error,
                           "line 1: no column 2 of the run (after \"a\", before \"c\", known "
                           "only by a hash of its name); found \"y\", \"a\", \"c\""));
    put("own", "y,b,c,a\n0,10,100,1\n1,20,300,2\n");
    assert_int_equal(open_as(&d, "own", ",label=b", (struct data_request){.kind = kind}), -EINVAL);
    put("own", "1,10,100,0\n2,20,300,1\n");
    opened(&d, "own", "", (struct data_request){.kind = kind});
    assert_non_null(strstr(d.note, "found no header"));
    data_close(&d);
    data_close(&train);
}

/* With a data kind that has no names, columns are taken in the order of the file, and a note
 * says so. */
static void test_kinds_without_names_take_any_header(void **state)
{
    (void)state;
    struct data d;
    put("own", "1,10,100,0\n2,20,300,1\n3,10,200,1\n4,50,100,0\n");
    opened(&d, "own", ",holdout=0.5", (struct data_request){0});
    char kind[DATA_KIND_MAX];
    strcpy(kind, d.train.kind);
    assert_null(strstr(kind, "columns"));
    assert_string_equal(d.note, "");
    data_close(&d);
    opened(&d, "train", ",holdout=0.5", (struct data_request){.kind = kind});
    assert_string_equal(d.train.kind, kind);
    assert_non_null(strstr(d.note, "does not name its columns"));
    data_close(&d);
}

/* The data kind of a wide table has room only for one hash of all names. Another file then needs
 * the same order of columns, or the names from a model file. */
static void test_wide_tables_have_a_hash(void **state)
{
    (void)state;
    enum { N = 400 };
    static char text[64 * N], turned[64 * N];
    for (int row = -1; row < 4; row++)
        for (int i = 0; i <= N; i++) {
            char a[32], b[32];
            int k = i == N ? N : N - 1 - i;
            snprintf(a, sizeof a, row < 0 ? "name%d%s" : "%d%s",
                     row < 0  ? i
                     : i == N ? row % 2
                              : row * i % 9,
                     i == N ? "\n" : ",");
            snprintf(b, sizeof b, row < 0 ? "name%d%s" : "%d%s",
                     row < 0  ? k
                     : i == N ? row % 2
                              : row * k % 9,
                     i == N ? "\n" : ",");
            strcat(text, a);
            strcat(turned, b);
        }
    put("wide", text);
    put("turned", turned);
    struct data wide, d;
    opened(&wide, "wide", ",holdout=0.5,scale=none", (struct data_request){0});
    char kind[DATA_KIND_MAX];
    strcpy(kind, wide.train.kind);
    assert_null(strchr(kind, '='));
    opened(&d, "wide", ",holdout=0.5,scale=none", (struct data_request){.kind = kind});
    data_close(&d);
    assert_int_equal(open_as(&d, "turned", ",scale=none", (struct data_request){.kind = kind}),
                     -EINVAL);
    assert_non_null(
        strstr(error, "expected different names or another order (the run has only a hash"));
    opened(&d, "turned", ",holdout=0.5,scale=none",
           (struct data_request){.kind = kind, .schema = &wide.schema});
    same_rows(&d.train, &wide.train);
    data_close(&d);
    data_close(&wide);
}

/* With the data kind "csv", which fixes no columns, the caller can give the order of the columns,
 * for example the order in the initial model. */
static void test_an_open_kind_takes_a_known_order(void **state)
{
    (void)state;
    struct data train, d;
    opened(&train, "train", ",holdout=0.5", (struct data_request){0});
    put("own", "y,b,c,a\n0,10,100,1\n1,20,300,2\n1,10,200,3\n0,50,100,4\n");
    opened(&d, "own", ",holdout=0.5", (struct data_request){.schema = &train.schema});
    assert_string_equal(d.train.kind, train.train.kind);
    same_rows(&d.train, &train.train);
    data_close(&d);
    data_close(&train);
}

static void test_names_may_be_any_text(void **state)
{
    (void)state;
    struct data d;
    put("own", "\"a,\"\"b\"\"\",Gr\xc3\xb6\xc3\x9f"
               "e,\xe6\xb8\xa9,y\n1,2,3,0\n2,4,1,1\n");
    put("test", "\xe6\xb8\xa9,\"a,\"\"b\"\"\",Gr\xc3\xb6\xc3\x9f"
                "e,y\n3,1,2,0\n1,2,4,1\n");
    opened(&d, "own", ",test=test", (struct data_request){0});
    same_rows(&d.train, &d.test);
    assert_string_equal(schema_name(&d.schema.names, 0), "a,\"b\"");
    assert_string_equal(schema_name(&d.schema.names, 1), "Gr\xc3\xb6\xc3\x9f"
                                                         "e");
    data_close(&d);
    put("test", "y,Gr\xf6\xdf"
                /* The text of this file is in Latin-1. */
                "e,\"a,\"\"b\"\"\",z\n0,2,1,3\n1,4,2,1\n");
    put("own", "\"a,\"\"b\"\"\",Gr\xc3\xb6\xc3\x9f"
               "e,z,y\n1,2,3,0\n2,4,1,1\n");
    opened(&d, "own", ",test=test", (struct data_request){0});
    same_rows(&d.train, &d.test);
    data_close(&d);
}

static void test_unseen_categories_are_told(void **state)
{
    (void)state;
    struct data d;
    put("own", "colour,x,y\nred,1,0\nblue,2,1\nred,1,0\n");
    put("test", "x,colour,y\n1,green,0\n2,black,1\n");
    opened(&d, "own", ",test=test", (struct data_request){0});
    assert_non_null(
        strstr(d.note, "none of the values of column \"colour\" were seen in training"));
    data_close(&d);
    put("test", "x,colour,y\n1,green,0\n2,red,1\n");
    opened(&d, "own", ",test=test", (struct data_request){0});
    assert_null(strstr(d.note, "none of the values"));
    data_close(&d);
}

/* Two files have the same rows with their columns in two orders. Their statistics pool to the data
 * kind of one file. */
static void test_moments_are_pooled_by_name(void **state)
{
    (void)state;
    struct data a, b, c;
    struct column_statistics all, back;
    char why[COLUMN_STATISTICS_WHY_MAX], kind[DATA_KIND_MAX];
    const char *wrong;
    static uint8_t bytes[COLUMN_STATISTICS_BYTES_MAX];
    put("train", "a,w,c,y\n1,u,100,0\n2,v,300,1\n3,u,200,1\n4,v,100,0\n");
    put("own", "y,c,w,a\n0,100,u,1\n1,300,v,2\n1,200,u,3\n0,100,v,4\n");
    opened(&a, "train", ",test=train", (struct data_request){0});
    opened(&b, "own", ",test=own,label=y", (struct data_request){0});
    assert_false(column_statistics_differ(&a.moments, &b.moments, why));
    assert_false(column_statistics_differ(&b.moments, &a.moments, why));
    size_t n = column_statistics_print(&b.moments, bytes, sizeof bytes);
    assert_true(n > 0);
    assert_int_equal(column_statistics_parse(&back, bytes, n, &wrong), 0);
    assert_string_equal(schema_name(&back.schema.names, 0), "c");
    assert_int_equal(column_statistics_reorder(&back, &a.schema), 0);
    const struct column_statistics *of[] = {&a.moments, &back};
    assert_int_equal(column_statistics_pool(&all, of, 2, 0), 0);
    column_statistics_settle(&all);
    assert_int_equal(column_statistics_kind(&all, kind, why), 0);
    assert_string_equal(kind, a.train.kind);
    column_statistics_close(&all);
    column_statistics_close(&back);
    /* Column statistics are refused if their column names do not fit the hash of the names. */
    for (size_t i = 32; i < 50; i++) {
        bytes[i] ^= 1;
        assert_int_equal(column_statistics_parse(&back, bytes, n, &wrong), -EINVAL);
        bytes[i] ^= 1;
    }
    put("own", "a,w,d,y\n1,u,100,0\n2,v,300,1\n");
    opened(&c, "own", ",test=own", (struct data_request){0});
    assert_true(column_statistics_differ(&c.moments, &a.moments, why));
    assert_string_equal(
        why,
        "no column \"c\"; found \"a\", \"w\", \"d\", \"y\", expected \"a\", \"w\", \"c\", \"y\"");
    data_close(&c);
    put("own", "a,w,c,d,y\n1,u,100,7,0\n2,v,300,8,1\n");
    opened(&c, "own", ",test=own", (struct data_request){0});
    assert_true(column_statistics_differ(&a.moments, &c.moments, why));
    assert_non_null(strstr(why, "no column \"d\""));
    assert_false(column_statistics_differ(&c.moments, &a.moments, why));
    /* Reordering columns to another schema drops the column "d", which that schema does not
     * have. */
    assert_int_equal(column_statistics_reorder(&c.moments, &a.schema), 0);
    of[1] = &c.moments;
    assert_int_equal(column_statistics_pool(&all, of, 2, 0), 0);
    assert_int_equal(all.columns.n, 3);
    column_statistics_close(&all);
    data_close(&c);
    /* If a file has no column names, its columns are taken in their order. */
    put("own", "1,u,100,0\n2,v,300,1\n");
    opened(&c, "own", ",test=own", (struct data_request){0});
    assert_false(column_statistics_differ(&c.moments, &a.moments, why));
    data_close(&c);
    data_close(&a);
    data_close(&b);
}

static void test_kinds_of_strangers(void **state)
{
    (void)state;
    static const struct
    {
        const char *kind;
        bool fixed;
    } cases[] = {
        {"csv/2x2/0/columns-0123456789abcdef", true},
        {"csv/2x2/0/columns-0123456789abcdef/16", true},
        {"csv/2x2/0/columns-0123456789abcdef=AAABBBCCC", true},
        {"csv/2x2/0/columns-0123456789abcdef=AAABBBCCC/standard:1,2", true},
        {"csv/2x2/0/columns-0123456789abcdef=AAABBBCCC/standard-0123456789abcdef", true},
        {"csv/2x2/0/columns-0123456789abcdef=AAABBB/standard:1,2", false},
        {"csv/2x2/0/columns-0123456789abcdef=AAABBBCCCDDD/standard:1,2", false},
        {"csv/2x2/0/columns-0123456789abcdef=AAABBBCCCDDD", false},
        {"csv/2x2/0/columns-0123456789abcdef=AAABBBCC", false},
        {"csv/2x2/0/columns-0123456789abcdef=", false},
        {"csv/2x2/0/columns-0123456789abcdeF", false},
        {"csv/2x2/0/columns-0123456789abcde", false},
        {"csv/2x2/0/columns-", false},
        {"csv/2x2/0/columns-0123456789abcdef/", false},
        {"csv/2x2/0/columns-0123456789abcdef/columns-0123456789abcdef", false},
        {"csv/2x2/columns-0123456789abcdef/0", false},
        {"libsvm/2x2/0/columns-0123456789abcdef", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (data_kind_fixed(cases[i].kind) != cases[i].fixed)
            fail_msg("%s", cases[i].kind);
    assert_string_equal(kind_brief(cases[3].kind).text, "csv/2x2/0/standard");
    assert_string_equal(kind_brief(cases[1].kind).text, "csv/2x2/0/16");
    assert_string_equal(kind_brief("csv/2x2/0/standard:1,2").text, "csv/2x2/0/standard");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_held_out_files_are_matched_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_names_are_refused_with_both_lists, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_tags_of_a_kind_match_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kinds_without_names_take_any_header, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wide_tables_have_a_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_open_kind_takes_a_known_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_may_be_any_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unseen_categories_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moments_are_pooled_by_name, setup, teardown),
        cmocka_unit_test(test_kinds_of_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
