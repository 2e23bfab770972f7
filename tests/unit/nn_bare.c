/* tests/unit/nn_bare.c -- data sets of rows without labels, and lists of class names that are
 * written as one text and read back. */
#include "nn/data/data.h"
#include "nn_rows.h"

static const struct rows_format csv = {"csv", csv_parse, csv_read};
static const struct rows_format svm = {"libsvm", libsvm_parse, libsvm_read};

static const char named[] = "1,5,b\n2,6,a\n3,7,c\n4,8,b\n";

static struct reader reader_of(const struct rows_format *f, const char *kind, enum reader_rows rows)
{
    struct reader r = rows_reader(f);
    r.kind = kind;
    r.rows = rows;
    return r;
}

/* CSV rows without labels are recognised by their number of cells, or because the caller says so.
 * Both cases are tested with and without a header. */
static void test_csv(void **state)
{
    (void)state;
    static const char *const texts[] = {"9,10\n11,12\n", "x,y\n9,10\n11,12\n"};
    struct dataset train = rows_take(&csv, rows_reader(&csv), named);
    for (int k = 0; k < 4; k++) {
        struct reader r = reader_of(&csv, train.kind, k < 2 ? READER_MAYBE : READER_BARE);
        r.names = k == 0 ? train.names : NULL;
        struct dataset d = rows_take(&csv, r, texts[k % 2]);
        const float rows[] = {9, 10, 11, 12};
        char number[8];
        rows_check(&d);
        assert_int_equal(d.n, 2);
        assert_null(d.labels);
        assert_memory_equal(d.rows, rows, sizeof rows);
        assert_string_equal(d.kind, train.kind);
        assert_string_equal(dataset_class(&d, 1, number), k == 0 ? "b" : "1");
        dataset_close(&d);
    }
    /* With READER_MAYBE a file may have labels or not. If it has labels, they are kept. If the
     * reader is given the class names, the file need not contain all classes. */
    struct reader r = reader_of(&csv, train.kind, READER_MAYBE);
    r.names = train.names;
    struct dataset d = rows_take(&csv, r, "9,10,c\n11,12,a\n");
    assert_int_equal(d.labels[0], 2);
    dataset_close(&d);
    rows_refuse(&csv, r, "9,10,c,1\n",
                "f0: line 1: found 4 cells, expected 3 (csv/2x3/names-"
                "1069c2544f5b8225 and a label, or one cell fewer without a label)");
    dataset_close(&train);
}

/* Rows with too many cells, too few cells or a cell that is no number are refused. Truncated and
 * mutated files are refused or give a valid data set. */
static void test_csv_broken(void **state)
{
    (void)state;
    struct dataset train = rows_take(&csv, rows_reader(&csv), "1,5,0\n2,6,1\n");
    struct reader r = reader_of(&csv, train.kind, READER_BARE);
    rows_refuse(&csv, r, "1,2\n3,4,0\n", "f0: line 2: found 3 cells, expected 2");
    rows_refuse(&csv, r, "1,2,0\n",
                "f0: line 1: found 3 cells, expected 2 (csv/2x2/0, and no label)");
    rows_refuse(&csv, r, "1,x\n", "f0: line 1, column 2: found \"x\", expected a number");
    r.rows = READER_LABELLED;
    rows_refuse(&csv, r, "1,2\n", "f0: line 1: found 2 cells, expected 3 (csv/2x2/0 and a label)");
    r.rows = READER_MAYBE;
    assert_true(rows_truncate(&csv, r, "1,2\n3,4\n\"5\",6\n") > 0);
    (void)rows_mutate(&csv, r, "1,2\n3,4\n\"5\",6\n", 2000, 1);
    dataset_close(&train);
}

/* In libsvm files, the first row decides whether all rows have labels. */
static void test_libsvm(void **state)
{
    (void)state;
    struct reader r = reader_of(&svm, "libsvm/5x2/pm", READER_MAYBE);
    struct dataset d = rows_take(&svm, r, "# rows\n1:1 3:2\n2:4 # one\n5:0.5\n\n");
    const size_t start[] = {0, 2, 3, 4};
    rows_check(&d);
    assert_int_equal(d.n, 3);
    assert_null(d.labels);
    assert_memory_equal(d.start, start, sizeof start);
    dataset_close(&d);
    d = rows_take(&svm, r, "-1 1:1 3:2\n+1\n");
    assert_int_equal(d.labels[1], 1);
    dataset_close(&d);
    rows_refuse(
        &svm, r, "1:1\n+1 2:1\n",
        "f0: line 2, entry: found \"+1\", expected index:value with an index of at least 1");
    rows_refuse(&svm, r, "+1 2:1\n1:1\n", "f0: line 2, label: found \"1:1\", expected -1 or +1");
    rows_refuse(&svm, r, "1:1\n\n2:1\n",
                "f0: line 2: found an empty line, expected index:value; delete the line, or write "
                "1:0 if it is a row of zeros");
    r.rows = READER_LABELLED;
    rows_refuse(&svm, r, "1:1\n", "f0: line 1, label: found \"1:1\", expected -1 or +1");
    r.rows = READER_MAYBE;
    (void)rows_mutate(&svm, r, "1:1 3:2\n2:4 # one\n5:0.5\n", 2000, 1);
}

/* The names of all classes are written as one text and read back. The reader refuses a text whose
 * hash differs from the hash in the data kind. */
static void test_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {"a\nb",    "a\nb\nc\nd", "b\na\nc", "a\na\nc",
                                        "a\nb\nd", "",           "a\n\nc",  "a\nb\nc\x01"};
    struct dataset train = rows_take(&csv, rows_reader(&csv), named);
    struct kind_rows k;
    assert_true(kind_rows_parse(train.kind, "csv", &k));
    char *text = labels_join(train.names);
    assert_string_equal(text, "a\nb\nc");
    struct labels *names = labels_split(&k, text);
    assert_non_null(names);
    assert_int_equal(labels_class(names, (const uint8_t *)"c", 1), 2);
    struct reader r = reader_of(&csv, train.kind, READER_LABELLED);
    r.names = names;
    struct dataset d = rows_take(&csv, r, "9,10,c\n");
    assert_int_equal(d.labels[0], 2);
    dataset_close(&d);
    labels_close(names);
    free(text);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(labels_split(&k, wrong[i]));
    assert_true(kind_rows_parse("csv/2x2/0", "csv", &k));
    assert_null(labels_split(&k, "a\nb"));
    dataset_close(&train);
}

static void test_open(void **state)
{
    (void)state;
    struct scratch s;
    struct data old, new;
    char error[DATA_ERROR_MAX], spec[512];
    static const char table[] = "a,b,word,y\n1,100,x,p\n3,300,z,q\n5,500,x,p\n7,700,x,q\n",
                      bare[] = "a,b,word\n3,300,z\n5,500,x\n";
    scratch_open(&s);
    scratch_put(&s, "old.csv", table, strlen(table));
    scratch_put(&s, "new.csv", bare, strlen(bare));
    snprintf(spec, sizeof spec, "csv:%s,holdout=0.25", scratch_path(&s, "old.csv"));
    struct data_request request = {.spec = spec};
    assert_int_equal(data_open(&old, &request, error), 0);
    char kind[DATA_KIND_MAX];
    snprintf(kind, sizeof kind, "%s", old.train.kind);
    for (int k = 0; k < 3; k++) {
        if (k == 0)
            snprintf(spec, sizeof spec, "csv:%s", scratch_path(&s, "new.csv"));
        else if (k == 1)
            snprintf(spec, sizeof spec, "csv:%s,label=none", scratch_path(&s, "new.csv"));
        else
            snprintf(spec, sizeof spec, "csv:%s,test=%s", scratch_path(&s, "old.csv"),
                     scratch_path(&s, "new.csv"));
        request = (struct data_request){
            .spec = spec, .kind = kind, .names = k == 0 ? old.train.names : NULL, .bare = true};
        int err = data_open(&new, &request, error);
        if (err < 0)
            fail_msg("%s", error);
        float x[4], y[4];
        char number[8];
        assert_null(new.test.labels);
        assert_int_equal(new.test.n, 2);
        assert_int_equal(new.train.n, k == 2 ? 4 : 0);
        assert_string_equal(new.test.kind, kind);
        assert_string_equal(dataset_class(&new.test, 1, number), k == 1 ? "1" : "q");
        /* New data are scaled with the statistics of the run, so the row `3,300,z` gets the same
         * inputs as in the training file. */
        dataset_sample(&new.test, 0, x);
        bool found = false;
        for (size_t i = 0; i < old.train.n + old.test.n; i++) {
            bool in_train = i < old.train.n;
            dataset_sample(in_train ? &old.train : &old.test, in_train ? i : i - old.train.n, y);
            found |= memcmp(x, y, sizeof x) == 0;
        }
        assert_true(found);
        data_close(&new);
        request.bare = false;
        if (k == 0)
            assert_int_equal(data_open(&new, &request, error), -EINVAL);
    }
    data_close(&old);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),    cmocka_unit_test(test_csv_broken),
        cmocka_unit_test(test_libsvm), cmocka_unit_test(test_names),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
