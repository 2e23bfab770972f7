/* tests/unit/nn_tables.c -- how the cells of a table file become the inputs of a model, and the
 * data kinds that describe this. */
#include "nn_tables.h"

/* Checks that the data kind is BASE/columns-...REST and that its columns have names. */
static void is_kind(const char *kind, const char *base, const char *rest)
{
    size_t n = strlen(base);
    const char *names = strncmp(kind, base, n) == 0 ? kind + n : "";
    if (strncmp(names, "/columns-", 9) != 0
        || strcmp(names + 9 + strcspn(names + 9, "/"), rest) != 0)
        fail_msg("%s: expected %s/columns-...%s", kind, base, rest);
}

/* Training and held-out rows are standardised by the mean and standard deviation of the training
 * rows. A missing value becomes the mean. */
static void test_standard(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a", "x,y,class\n100,1,0\n300,1,1\n?,1,0\n");
    put("test", "x,y,class\n400,1,1\nNA,3,0\n");
    opened(&d, "a", "", NULL);
    is_kind(d.train.kind, "csv/2x2/0", "/standard:200~100,1");
    assert_string_equal(d.test.kind, d.train.kind);
    check_sample(&d.train, 0, (float[]){-1, 0}, 2);
    check_sample(&d.train, 1, (float[]){1, 0}, 2);
    check_sample(&d.train, 2, (float[]){0, 0}, 2);
    check_sample(&d.test, 0, (float[]){2, 0}, 2);
    check_sample(&d.test, 1, (float[]){0, 2}, 2);
    assert_string_equal(
        d.note,
        "the label is column \"class\"; 2 empty cells in column \"x\": replaced by the mean of "
        "the column, or counted as no category; all rows have the same number in column \"y\", so "
        "no model can learn from it");
    data_close(&d);
    opened(&d, "a", ",scale=max", NULL);
    is_kind(d.train.kind, "csv/2x2/0", "/max:200~300,1");
    data_close(&d);
    opened(&d, "a", ",scale=none", NULL);
    is_kind(d.train.kind, "csv/2x2/0", "/none:200,1");
    check_sample(&d.train, 2, (float[]){200, 1}, 2);
    data_close(&d);
    refused("a", ",divide=2", NULL, "a: line 4, column 1: found \"?\", expected a number");
    put("a", "x,y,class\n100,1,0\n300,1,1\n200,1,0\n");
    put("test", "400,1,1\n");
    opened(&d, "a", ",scale=none", NULL);
    is_kind(d.train.kind, "csv/2x2/0", "");
    assert_non_null(strstr(d.note, "test: found no header, so the columns of this file are assumed "
                                   "to be in the order of \"x\", \"y\" and the label \"class\""));
    data_close(&d);
    opened(&d, "a", ",divide=2", NULL);
    is_kind(d.train.kind, "csv/2x2/0", "/2");
    data_close(&d);
}

/* Held-out rows do not influence the means of the columns, and are scaled by the statistics of the
 * training rows. */
static void test_share(void **state)
{
    (void)state;
    struct data d;
    char text[4000] = "", spec[900];
    size_t at = 0;
    scratch_count(&s, 1);
    for (int i = 0; i < 200; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%d\n", i * i, i % 2);
    put("a", text);
    snprintf(spec, sizeof spec, "csv:%s/a,holdout=0.5", s.dir);
    assert_int_equal(data_open(&d, &(struct data_request){.spec = spec}, error), 0);
    double sum = 0;
    for (size_t i = 0; i < d.train.n; i++)
        sum += (double)d.train.rows[i] / (double)d.train.n;
    assert_true(d.train.n == 100 && fabs(sum) <= 0.051);
    data_close(&d);
}

/* If a data kind contains column statistics, they determine the inputs for every file, whatever
 * values the file has. */
static void test_of_a_run(void **state)
{
    (void)state;
    static const char kind[] = "csv/4x2/0/standard:10~5,=AAAaB3,~2";
    struct data d;
    scratch_count(&s, 1);
    put("a", "1000,?,3,0\n");
    put("test", "5,red,,1\n");
    opened(&d, "a", "", kind);
    assert_string_equal(d.train.kind, kind);
    check_sample(&d.train, 0, (float[]){198, 0, 0, 1.5f}, 4);
    check_sample(&d.test, 0, (float[]){-1, 0, 0, 0}, 4);
    assert_non_null(strstr(d.note,
                           "column 2: some categories are not in the training set or run, and "
                           "count as no category"));
    data_close(&d);
    refused("a", ",scale=none", kind,
            "found scale=none, expected scale=standard (csv/4x2/0/standard)");
    put("a", "1000,7,3,0\n");
    refused("a", "", kind, "a: line 1, column 2: found \"7\", expected a category");
    put("a", "1,2,0\n");
    refused("a", "", kind, "a: line 1: found 3 cells, expected 4 (csv/4x2/0/standard and a label)");
    put("a", "1,2,?,4,0\n");
    refused("a", "", "csv/4x2/0", "a: line 1, column 3: found \"?\", expected a number");
}

static void test_words(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a",
        /* The words of the first row also occur in later rows, so the row is not a header. */
        "p,x,1\ne,y,2\np,y,3\ne,?,4\n");
    put("test", "e,x,1\np,z,2\n");
    opened(&d, "a", ",label=1", NULL);
    assert_true(d.train.n == 4 && d.train.shape.channels == 3 && d.train.stride == 2);
    assert_non_null(strstr(d.train.kind, "csv/3x2/names-"));
    float out[3], sum = 0;
    dataset_sample(&d.train, 0, out);
    int x = out[0] > 0 ? 0 : 1;
    assert_true(out[x] >= 1 && out[1 - x] <= 0);
    dataset_sample(&d.train, 1, out);
    assert_true(out[1 - x] >= 1 && out[x] <= 0);
    dataset_sample(&d.train, 3, out);
    sum = out[0] + out[1];
    assert_true(sum <= 0);
    dataset_sample(&d.test, 1, out);
    sum = out[0] + out[1];
    assert_true(sum <= 0);
    assert_non_null(strstr(
        d.note, "the label is column 1; categories in column 2, with one input for each category: "
                "3 inputs in total; 1 empty cells in column 2"));
    data_close(&d);
    /* The words of the first row also occur in later rows, so the row is not a header. */
    put("a", "p,x,s\ne,y,t\np,x,t\n");
    put("test", "e,x,s\n");
    opened(&d, "a", ",label=1", NULL);
    assert_true(d.train.n == 3 && d.test.n == 1 && d.train.shape.channels == 4);
    data_close(&d);
    /* The words of the first row do not occur in later rows, so the row is a header. */
    put("a", "colour,size,y\nred,x,0\nblue,x,1\n");
    put("test", "red,x,0\n");
    opened(&d, "a", "", NULL);
    assert_true(d.train.n == 2 && d.train.shape.channels == 3);
    data_close(&d);
}

/* If half of a table is held out, the training half and the held-out half have the same columns.
 * Several files form one table. */
static void test_words_split(void **state)
{
    (void)state;
    struct data d;
    char spec[900];
    scratch_count(&s, 1);
    put("a.csv", "x,1,0\ny,2,1\nx,3,0\nz,4,1\n");
    put("b.csv", "w,1,0\ny,2,1\nx,3,0\nz,4,1\n");
    snprintf(spec, sizeof spec, "csv:%s,holdout=0.5", s.dir);
    assert_int_equal(data_open(&d, &(struct data_request){.spec = spec}, error), 0);
    assert_true(d.train.n == 4 && d.test.n == 4 && d.test.stride == 2);
    for (size_t i = 0; i < 4; i++) {
        float out[5];
        assert_int_equal(dataset_dim(&d.test), 5);
        dataset_sample(&d.test, i, out);
        assert_true(fabsf(out[0] + out[1] + out[2] + out[3] - 1) <= 0);
    }
    data_close(&d);
}

static void test_refused(void **state)
{
    (void)state;
    scratch_count(&s, 1);
    put("test", "1,2,0\n");
    put("a", "x,when,y\n1,2019-03-04,0\n");
    refused("a", "", NULL,
            "a: line 2, column 2 (\"when\"): found \"2019-03-04\", expected a number or "
            "a category, not a date or time: remove the column, or split it into numbers");
    assert_null(strstr(error, "label"));
    refused("a", ",label=y", NULL, "split it into numbers");
    assert_null(strstr(error, "label"));
    put("a", "1,10:30,0\n2,11:30,1\n");
    refused("a", "", NULL, "a: line 1, column 2: found \"10:30\", expected a number or a category");
    put("a", "u,v,y\n1,2,0\n1,?,1\nx,2,0\n");
    refused("a", "", NULL, "a: line 4, column 1 (\"u\"): found \"x\", expected a number");
    put("a", "1,2,0\n1,-inf,1\n");
    refused("a", "", NULL, "a: line 2, column 2: found \"-inf\", expected a number");
    put("a", "1,red,0\n1,5,1\n");
    refused("a", "", NULL, "a: line 2, column 2: found \"5\", expected a category");
    /* With header=no, the words of the first row are categories, so numbers in the same columns are
     * refused. */
    put("a", "u,v,y\n1,2,0\n3,4,1\n");
    refused("a", ",header=no", NULL, "a: line 2, column 1: found \"1\", expected a category");
}

/* A standard deviation that is small compared with the values is not lost in rounding. Values are
 * standardised as in double precision, also in held-out rows and with a given data kind. */
static void test_small_spread(void **state)
{
    (void)state;
    static const double base[] = {1.6e9, 52.5, -4.1e12, 1e15};
    static const double step[] = {1, 1e-7, 0.25, 1};
    for (size_t i = 0; i < sizeof base / sizeof *base; i++) {
        struct data d, again;
        char text[4000], kind[DATA_KIND_MAX];
        size_t at = 0;
        scratch_count(&s, 1);
        for (int k = 0; k < 50; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%.17g,7,%d\n",
                                   base[i] + k * step[i], k % 2);
        put("a", text);
        put("test", text);
        opened(&d, "a", "", NULL);
        snprintf(kind, sizeof kind, "%s", d.train.kind);
        opened(&again, "a", "", kind);
        for (size_t k = 1; k < 50; k++) {
            /* 14.4309 is the standard deviation by numpy: np.std(np.arange(50)). */
            double apart = step[i] / (14.4309 * step[i]);
            float x = d.train.rows[2 * k] - d.train.rows[2 * k - 2];
            assert_true(fabs((double)x - apart) <= 0.05 * apart);
            assert_true(fabsf(d.test.rows[2 * k] - d.train.rows[2 * k]) <= 0);
            assert_memory_equal(&again.train.rows[2 * k], &d.train.rows[2 * k], sizeof(float));
            assert_true(fabsf(d.train.rows[2 * k + 1]) <= 0
                        && fabsf(again.test.rows[2 * k + 1]) <= 0);
        }
        data_close(&again);
        data_close(&d);
    }
}

/* If the numbers of labels have gaps, the number of classes is the number of different labels.
 * Held-out rows and later files of the run must not have other labels. */
static void test_absent_classes(void **state)
{
    (void)state;
    struct data d;
    char kind[DATA_KIND_MAX], out[8], spec[1200];
    scratch_count(&s, 1);
    put("a", "1,0\n2,1\n3,5\n4,5.0\n");
    put("test", "1,5.000e+00\n2,0\n");
    opened(&d, "a", ",scale=none", NULL);
    assert_string_equal(d.train.kind, "csv/1x3/in-0-1.5");
    assert_true(d.train.shape.n_classes == 3 && d.train.labels[3] == 2 && d.test.labels[0] == 2);
    assert_string_equal(dataset_class(&d.train, 2, out), "5");
    assert_string_equal(dataset_class(&d.train, 1, out), "1");
    memcpy(kind, d.train.kind, sizeof kind);
    data_close(&d);
    /* A file that is opened with the data kind of a run need not have all classes. */
    put("a", "9,5\n");
    opened(&d, "a", "", kind);
    assert_true(d.train.labels[0] == 2);
    data_close(&d);
    /* A peer that has only a part of the run's files also counts the labels of its held-out set as
     * classes. */
    put("a", "1,0\n2,5\n3,5\n");
    put("test", "1,7\n2,0\n3,1\n");
    snprintf(spec, sizeof spec, "csv:%s/a,test=%s/test", s.dir, s.dir);
    assert_int_equal(data_open(&d, &(struct data_request){.spec = spec, .part = true}, error), 0);
    assert_true(strncmp(d.train.kind, "csv/1x4/in-0-1.5.7/", 19) == 0);
    assert_string_equal(d.test.kind, d.train.kind);
    assert_true(d.train.labels[0] == 0 && d.train.labels[1] == 2 && d.test.labels[0] == 3);
    assert_true(d.moments.n_classes == 4);
    data_close(&d);
    put("test", "1,2\n");
    put("a", "9,5\n");
    refused("a", "", kind,
            "test: line 1, column 2 (label): found \"2\", expected one of the 3 labels "
            "0-1.5");
}

/* The text form of a table with 400 columns does not fit into a data kind. The data kind contains a
 * hash of the text form instead, so only the same training set gives the same kind. */
static void test_wide(void **state)
{
    (void)state;
    enum { N = 400 };
    static char text[3][8 * N * 3];
    struct data d;
    scratch_count(&s, 1);
    for (int k = 0; k < 3; k++) {
        size_t at = 0;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j <= N; j++)
                at += (size_t)snprintf(text[k] + at, sizeof text[k] - at, "%d%s",
                                       j < N ? i * j + (k == 2 && j == 300 && i == 1 ? 99 : 0)
                                             : i % 2,
                                       j < N ? "," : "\n");
    }
    put("a", text[0]);
    put("test", text[1]);
    opened(&d, "a", "", NULL);
    char kind[DATA_KIND_MAX];
    strcpy(kind, d.train.kind);
    assert_memory_equal(kind, "csv/400x2/0/standard-", 21);
    assert_int_equal(strlen(kind), 37);
    float first = d.test.rows[N + 7];
    data_close(&d);
    opened(&d, "a", "", kind);
    assert_string_equal(d.test.kind, kind);
    assert_true(d.test.rows[N + 7] >= first && d.test.rows[N + 7] <= first);
    data_close(&d);
    put("a", text[2]);
    refused("a", "", kind,
            "a: found a training set with other means, scales or categories than the run: the run "
            "description has no room for 400 columns");
}

/* A table with more than COLUMNS_MAX_N columns is not scaled. */
static void test_widest(void **state)
{
    (void)state;
    size_t n = 2 * (size_t)(COLUMNS_MAX_N + 2);
    char *text = malloc(2 * n + 1);
    struct data d;
    scratch_count(&s, 1);
    for (size_t i = 0; i < 2 * n; i += 2)
        memcpy(text + i, i < n ? "1," : "2,", 2);
    text[n - 2] = '0';
    text[n - 1] = text[2 * n - 1] = '\n';
    text[2 * n - 2] = '1';
    scratch_put(&s, "a", text, 2 * n);
    scratch_put(&s, "test", text, 2 * n);
    opened(&d, "a", "", NULL);
    assert_string_equal(d.train.kind, "csv/16385x2/0");
    data_close(&d);
    free(text);
}

/* Sparse rows stay sparse. Only stored entries are scaled, and only if the ranges of the columns
 * are very different. */
static void test_sparse(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a", "1 1:4000 2:1 4:-0.5\n-1 2:1\n");
    put("test", "1 1:1000 3:7\n");
    assert_int_equal(open_table(&d, "libsvm", "a", ",features=4", NULL), 0);
    assert_string_equal(d.train.kind, "libsvm/4x2/pm/max:~4000,0,0,~.5");
    static const float train[] = {1, 1, -1, 1}, test[] = {0.25f, 7};
    assert_memory_equal(d.train.entry, train, sizeof train);
    assert_memory_equal(d.test.entry, test, sizeof test);
    char kind[DATA_KIND_MAX];
    strcpy(kind, d.train.kind);
    data_close(&d);
    /* The ranges of these columns differ by a factor of 100, which is too little for a warning or
     * scaling. */
    put("a", "1 1:100\n-1 2:1\n");
    assert_int_equal(open_table(&d, "libsvm", "a", ",features=4", NULL), 0);
    assert_string_equal(d.train.kind, "libsvm/4x2/pm");
    assert_string_equal(d.note, "");
    data_close(&d);
    assert_int_equal(open_table(&d, "libsvm", "a", "", kind), 0);
    assert_true(d.train.entry[0] >= 0.025f && d.train.entry[0] <= 0.025f);
    data_close(&d);
    assert_int_equal(open_table(&d, "libsvm", "a", ",features=4,scale=max", NULL), 0);
    assert_string_equal(d.train.kind, "libsvm/4x2/pm/max:~100,0,0,0");
    data_close(&d);
}

/* Warnings and notes name a column by its name, not by its number: the held-out file has its
 * columns in another order than the training file. */
static void test_notes_name_columns(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a", "temp,city,wind,rain\n10,Lyon,1,yes\n12,Turin,?,no\n9,?,4,no\n");
    put("test", "rain,wind,temp,city\nno,3,11,Turin\n");
    opened(&d, "a", "", NULL);
    assert_non_null(strstr(
        d.note,
        "columns are in another order, and are matched by name; the label is column \"rain\"; "
        "categories in column \"city\", with one input for each category: 4 inputs in total; "
        "2 empty cells in 2 columns (\"city\", \"wind\"): replaced by the mean of the column, or "
        "counted as no category"));
    data_close(&d);
    put("a", "small,large,y\n0,0.5,0\n1,1200.5,1\n");
    put("test", "small,large,y\n0,0.5,0\n");
    opened(&d, "a", ",scale=none", NULL);
    assert_non_null(strstr(d.note,
                           "the values of column \"large\" are 1200 times as large as those "
                           "of column \"small\", and"));
    data_close(&d);
}

/* If columns have very different ranges and are not scaled, a warning is given. */
static void test_warning(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a", "0,5,0.5,0\n1,5,1200.5,1\n");
    put("test", "0,5,0.5,0\n");
    opened(&d, "a", ",scale=none", NULL);
    assert_string_equal(d.note, "warning: the values of column 3 are 1200 times as large as those "
                                "of column 1, and nothing is "
                                "scaled (use scale=standard)");
    data_close(&d);
    opened(&d, "a", ",divide=1000", NULL);
    assert_non_null(strstr(d.note, "warning: the values of one column are 1200 times"));
    data_close(&d);
    put("a", "0,5,0.5,0\n1,5,100.5,1\n");
    opened(&d, "a", ",scale=none", NULL);
    assert_string_equal(d.note, "");
    data_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standard),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_of_a_run),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_words_split),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_small_spread),
        cmocka_unit_test(test_absent_classes),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_widest),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_warning),
        cmocka_unit_test(test_notes_name_columns),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
