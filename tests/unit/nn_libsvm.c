/* tests/unit/nn_libsvm.c -- the reader of libsvm files: valid and invalid rows, data kinds, broken
 * files. */
#include "nn_rows.h"

static const struct rows_format svm = {"libsvm", libsvm_parse, libsvm_read};

enum { MUTATIONS = 6000 };

static const char small[] = "-1 3:1 11:0.5 14:-2e-3 \n"
                            "+1 1:+4.25\t2:.5  15:7.\r\n"
                            "\n"
                            "# a comment\n"
                            "   \t\n"
                            "1\n"
                            "-1 2:1e2#3:1\n"
                            "-1.0 1:0 15:9";

static void test_rows(void **state)
{
    (void)state;
    struct dataset d = rows_take(&svm, rows_reader(&svm), small);
    rows_check(&d);
    assert_string_equal(d.kind, "libsvm/15x2/pm");
    assert_int_equal(d.shape.form, DATA_SPARSE);
    assert_int_equal(d.n, 5);
    const uint16_t labels[] = {0, 1, 1, 0, 0};
    const size_t start[] = {0, 3, 6, 6, 7, 9};
    const uint32_t column[] = {2, 10, 13, 0, 1, 14, 1, 0, 14};
    const float entry[] = {1, 0.5f, -2e-3f, 4.25f, 0.5f, 7, 100, 0, 9};
    assert_memory_equal(d.labels, labels, sizeof labels);
    assert_memory_equal(d.start, start, sizeof start);
    assert_memory_equal(d.column, column, sizeof column);
    assert_memory_equal(d.entry, entry, sizeof entry);
    assert_int_equal(d.longest, 3);
    assert_int_equal(d.n_files, 1);
    dataset_close(&d);
}

/* If the given data kind does not fix the labels, the labels that are found in the file become part
 * of the resulting kind. */
static void test_open_kinds(void **state)
{
    (void)state;
    static const struct
    {
        const char *text, *kind;
        uint16_t last;
    } cases[] = {
        {"1 1:1\n-1\n", "libsvm/1x2/pm", 0},
        {"0 1:1\n1 2:1", "libsvm/2x2/0", 1},
        {"1 1:1\n2 2:1", "libsvm/2x2/1", 1},
        {"+3 1:1\n1.000 7:1", "libsvm/7x2/in-1.3", 0},
        {"7 1:1\n0 7:1\n7", "libsvm/7x2/in-0.7", 1},
        {"1 16777216:1\n4096 7:1", "libsvm/16777216x2/in-1.4096", 1},
        {"0 1:1\n4095 7:1", "libsvm/7x2/in-0.4095", 1},
        {"0.000e+00 1:1\n4.e0 2:1\n5 7:1", "libsvm/7x3/in-0.4-5", 2},
        {"0 1:1\n000000000000000000000001. 7:1", "libsvm/7x2/0", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dataset d = rows_take(&svm, rows_reader(&svm), cases[i].text);
        assert_string_equal(d.kind, cases[i].kind);
        assert_int_equal(d.labels[d.n - 1], cases[i].last);
        dataset_close(&d);
    }
}

static void test_given_features_and_divide(void **state)
{
    (void)state;
    struct reader r = rows_reader(&svm);
    r.features = 20;
    r.divide = 16;
    struct dataset d = rows_take(&svm, r, "0 1:8\n1 20:1\n");
    assert_string_equal(d.kind, "libsvm/20x2/0/16");
    assert_true(d.entry[0] >= 0.5f && d.entry[0] <= 0.5f);
    dataset_close(&d);
    rows_refuse(&svm, r, "0 1:8\n1 21:1\n",
                "f0: line 2, entry: found \"21:1\", expected an index of at most 20");
    /* The divisor of values is part of the data kind. The values of a file that is opened with this
     * kind are divided by this divisor. */
    r.divide = 0.1;
    d = rows_take(&svm, r, "0 1:8\n1 20:1\n");
    assert_string_equal(d.kind, "libsvm/20x2/0/0.1");
    r = rows_reader(&svm);
    r.kind = d.kind;
    struct dataset again = rows_take(&svm, r, "0 1:8\n1 20:1\n");
    assert_string_equal(again.kind, d.kind);
    assert_memory_equal(again.entry, d.entry, 2 * sizeof *d.entry);
    dataset_close(&d);
    dataset_close(&again);
}

static void test_fixed_kind(void **state)
{
    (void)state;
    struct reader r = rows_reader(&svm);
    r.kind = "libsvm/123x2/pm";
    /* With a fixed data kind, a file may have rows of one class only. */
    struct dataset d = rows_take(&svm, r, "+1 3:1\n");
    assert_string_equal(d.kind, "libsvm/123x2/pm");
    assert_int_equal(d.shape.channels, 123);
    dataset_close(&d);
    d = rows_take(&svm, r, "+1\n");
    assert_int_equal(d.start[1], 0);
    dataset_close(&d);
    rows_refuse(&svm, r, "+1 124:1\n",
                "f0: line 1, entry: found \"124:1\", expected an "
                "index of at most 123 (libsvm/123x2/pm)");
    rows_refuse(&svm, r, "+1\n0 1:1\n", "f0: line 2, label: found \"0\", expected -1 or +1");
    r.kind = "libsvm/9x6/1";
    rows_refuse(&svm, r, "0 1:1",
                "f0: line 1, label: found \"0\", expected a whole number "
                "from 1 to 6");
    rows_refuse(&svm, r, "7 1:1",
                "f0: line 1, label: found \"7\", expected a whole number "
                "from 1 to 6");
    r.kind = "libsvm/9x6/0/16";
    rows_refuse(&svm, r, "6 1:1",
                "f0: line 1, label: found \"6\", expected a whole number "
                "from 0 to 5");
    d = rows_take(&svm, r, "5 1:8\n");
    assert_true(d.entry[0] >= 0.5f && d.entry[0] <= 0.5f);
    dataset_close(&d);
    r.divide = 8;
    rows_refuse(&svm, r, "5 1:8", "f0: found divide=8, expected 16 (libsvm/9x6/0/16)");
    r.divide = 1;
    r.features = 8;
    rows_refuse(&svm, r, "5 1:8", "f0: found features=8, expected 9 (libsvm/9x6/0/16)");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "found no rows in 0 bytes, expected lines \"label index:value ...\""},
        {"\n \r\n# 1 2:3\n", "found no rows in 12 bytes, expected lines \"label index:value ...\""},
        {"1\n2\n", "found 2 rows without an entry, expected index:value"},
        {"1 1:1\n1 2:1\n", "labels: found one class, expected at least 2"},
        {"0 1:1\n1.5 2:1\n", "line 2, label: found \"1.5\", expected a whole number"},
        {"1 1:1\n\nabc 2:1", "line 3, label: found \"abc\", expected a whole number"},
        {"1.5 1:1", "line 1, label: found \"1.5\", expected a whole number"},
        {"1e-1 1:1", "line 1, label: found \"1e-1\", expected a whole number"},
        {"1,3 1:1", "line 1, label: found \"1,3\", expected a whole number"},
        {"+ 1:1", "line 1, label: found \"+\", expected a whole number"},
        {"1:1 2:1", "line 1, label: found \"1:1\", expected a whole number"},
        {"-2 1:1", "line 1, label: found \"-2\", expected -1, or 0 to 4096"},
        {"4097 1:1", "line 1, label: found \"4097\", expected -1, or 0 to 4096"},
        {"99999999999999999999 1:1", "line 1, label: found \"99999999999999999999\", "
                                     "expected -1, or 0 to 4096"},
        {"0 1:1\n-1 1:1", "line 2, label: found \"-1\", expected 0 to 4096 as in the lines "
                          "before: -1 is allowed only if all labels are -1 or +1"},
        {"-1 1:1\n2 1:1", "line 2, label: found \"2\", expected -1 or +1: -1 is allowed only if "
                          "all labels are -1 or +1"},
        {"1 qid:3 1:1", "line 1, entry: found \"qid:3\", expected index:value: ranking "
                        "data (qid) are not supported, because they have no classes"},
        {"1 0:1", "line 1, entry: found \"0:1\", expected index:value with an index of at "
                  "least 1"},
        {"1 -1:1", "line 1, entry: found \"-1:1\", expected index:value with an index of "
                   "at least 1"},
        {"1 5", "line 1, entry: found \"5\", expected index:value with an index of at "
                "least 1"},
        {"1 2:1 2:1", "line 1, entry: found \"2:1\", expected an index above 2, "
                      "because the indices of a row must ascend"},
        {"1 16777217:1",
         "line 1, entry: found \"16777217:1\", expected an index of at most 16777216"},
        {"1 99999999999999999999:1", "line 1, entry: found \"99999999999999999999:1\", "
                                     "expected an index of at most 16777216"},
        {"1 1:", "line 1, entry: found \"1:\", expected index:value with a decimal number"},
        {"1 1:x", "line 1, entry: found \"1:x\", expected index:value with a decimal number"},
        {"1 1:nan", "line 1, entry: found \"1:nan\", expected index:value with a decimal "
                    "number"},
        {"1 1:inf", "line 1, entry: found \"1:inf\", expected index:value with a decimal "
                    "number"},
        {"1 1:0x10", "line 1, entry: found \"1:0x10\", expected index:value with a decimal "
                     "number"},
        {"1 1:1,5", "line 1, entry: found \"1:1,5\", expected index:value with a decimal "
                    "number"},
        {"1 1: 2", "line 1, entry: found \"1:\", expected index:value with a decimal number"},
        {"1 1:1e39", "line 1, entry: found \"1:1e39\", expected a value in a float's range"},
        {"1 1:-1e999", "line 1, entry: found \"1:-1e999\", expected a value in a float's range"},
        {"1 1:\x01\xff", "line 1, entry: found \"1:\\x01\\xff\", expected index:value with a "
                         "decimal number"},
        {"1 1:1\r2:1", "line 1, entry: found \"1:1\\x0d2:1\", expected index:value with a "
                       "decimal number"},
        {"a234567890123456789012345678901234567890123456789 1:1",
         "line 1, label: found \"a234567890123456789012345678901234567\"..., expected a "
         "whole number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sentence[DATA_ERROR_MAX + 8];
        snprintf(sentence, sizeof sentence, "f0: %s", cases[i][1]);
        rows_refuse(&svm, rows_reader(&svm), cases[i][0], sentence);
    }
}

static void test_files(void **state)
{
    (void)state;
    struct reader r = rows_reader(&svm);
    r.n_paths = 3;
    const char *text[] = {"0 1:1\n1 2:1", "1 4:1\n", "0\n0\n0 3:1\n"};
    size_t n[] = {11, 6, 10};
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(rows_parse(&svm, r, &d, text, n, error), 0);
    assert_string_equal(d.kind, "libsvm/4x2/0");
    const uint32_t file[] = {0, 0, 1, 2, 2, 2};
    assert_int_equal(d.n_files, 3);
    assert_memory_equal(d.file, file, sizeof file);
    dataset_close(&d);
    text[1] = "1 4:1\n1 x\n";
    n[1] = strlen(text[1]);
    assert_int_equal(rows_parse(&svm, r, &d, text, n, error), -EINVAL);
    assert_string_equal(error, "f1: line 2, entry: found \"x\", expected index:value with an "
                               "index of at least 1");
    n[1] = 0;
    assert_int_equal(rows_parse(&svm, r, &d, text, n, error), -EINVAL);
    assert_memory_equal(error, "f1: found no rows", 17);
}

static void test_looks(void **state)
{
    (void)state;
    static const struct rows_look cases[] = {
        {"-1 3:1 11:1\n+1 5:1\n", true, true},
        /* A text that is cut off within a token is recognised as libsvm data. */
        {"-1 3:1 11:1\n+1 5:1 6", false, true},
        /* The text is a whole file. Its last token is invalid, so it is not recognised as libsvm
         * data. */
        {"-1 3:1 11:1\n+1 5:1 6", true, false},
        /* The beginning of one long line is recognised as libsvm data. */
        {"1 3:1 11:1 14:", false, true},
        {"# comment\n\n2 1:0.5\n", true, true},
        /* Rows with errors are recognised as libsvm data if they resemble no other format. */
        {"1 0:1\n1.5 2:1 2:2\n", true, true},
        {"1\n2\n3\n", true, false},
        {"1 2 3\n4 5 6\n", true, false},
        {"0,1,2\n", true, false},
        {"Time 12:30 is noon\n", true, false},
        {"", true, false},
        {"", false, false},
    };
    rows_check_looks(libsvm_looks, cases, sizeof cases / sizeof *cases);
}

static void test_gz(void **state)
{
    (void)state;
    struct scratch s;
    struct dataset d;
    scratch_open(&s);
    rows_read_both(&svm, rows_reader(&svm), &s, small, &d);
    assert_int_equal(d.n, 5);
    dataset_close(&d);
    rows_truncate_gz(&svm, rows_reader(&svm), &s, small);
    struct reader r = rows_reader(&svm);
    const char *path = scratch_path(&s, "missing");
    char error[DATA_ERROR_MAX];
    r.paths = &path;
    assert_int_equal(libsvm_read(&d, &r, error), -ENOENT);
    rows_is_empty(&d);
    scratch_close(&s);
}

static void test_broken(void **state)
{
    (void)state;
    uint64_t s = ref_seed();
    struct reader r = rows_reader(&svm);
    size_t taken = rows_truncate(&svm, r, small);
    assert_true(taken > 10 && taken < strlen(small));
    taken = rows_mutate(&svm, r, small, MUTATIONS, s);
    assert_true(taken > MUTATIONS / 50 && taken < MUTATIONS);
    r.kind = "libsvm/15x2/pm/0.5";
    taken = rows_mutate(&svm, r, small, MUTATIONS, s);
    assert_true(taken > MUTATIONS / 50 && taken < MUTATIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_open_kinds),
        cmocka_unit_test(test_given_features_and_divide),
        cmocka_unit_test(test_fixed_kind),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_gz),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
