/* tests/unit/nn_tables_written.c -- the ways in which tables may be written: notations of numbers,
 * text encodings, line ends. */
#include "nn_tables.h"

/* A separator, the cells of one column in a table, and the numbers that they must be read as,
 * without scaling. */
struct written
{
    const char *separator, *cells[3];
    float value[3];
};

static void put_written(const struct written *w, const char *name)
{
    char text[1000];
    size_t at = 0;
    for (int i = 0; i < 3; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%d\n", w->cells[i], w->separator,
                               i % 2);
    put(name, text);
}

static void test_notations(void **state)
{
    (void)state;
    static const struct written cases[] = {
        {";", {"0,134", "-1,250", "3"}, {0.134f, -1.25f, 3}},
        {";", {"0,134", "1,250", "2,5"}, {0.134f, 1.25f, 2.5f}},
        {",", {"\"1,957.25\"", "\"12\"", "-3.5"}, {1957.25f, 12, -3.5f}},
        /* In this table the comma separates cells, so it cannot be a decimal mark. */
        {",", {"\"1,957\"", "\"12\"", "3"}, {1957, 12, 3}},
        /* In this table the comma does not separate cells, so it is a decimal mark. */
        {";", {"1,957", "12", "3"}, {1.957f, 12, 3}},
        /* Groups of thousands do not begin with 0, so the point is a decimal mark. */
        {";", {"1.713", "0.250", "3"}, {1.713f, 0.25f, 3}},
        /* Groups of thousands have three digits, so the point is a decimal mark. */
        {"\t", {"1.713", "12.5", "3"}, {1.713f, 12.5f, 3}},
        {";", {"1.713", "1234.567", "3"}, {1.713f, 1234.567f, 3}},
        /* Numbers with groups of thousands have no exponent, so the point is a decimal mark. */
        {";", {"1.713e+02", "2.370e+00", "3"}, {171.3f, 2.37f, 3}},
        {";", {"1.713", "1.234.567", "3"}, {1713, 1234567, 3}},
        {",", {"1.713 \xe2\x82\xac", "3 \xe2\x82\xac", "4 \xe2\x82\xac"}, {1.713f, 3, 4}},
        /* The cell 12,5 shows that the comma is the decimal mark of this column. */
        {"\t", {"1,957", "12,5", "3"}, {1.957f, 12.5f, 3}},
        {"\t", {"1,957", "1,234,567", "3"}, {1957, 1234567, 3}},
        {";", {"1.957,25", "12", "1.000"}, {1957.25f, 12, 1000}},
        {",", {"1.957", "2.100", "3.000"}, {1.957f, 2.1f, 3}},
        {",", {"1 957.25", "12 000 000", "3"}, {1957.25f, 12e6f, 3}},
        {";", {"1 957,25", "12", "3"}, {1957.25f, 12, 3}},
        {",",
         {"1\xc2\xa0"
          "957",
          "12", "3"},
         {1957, 12, 3}},
        {",",
         {"1\xe2\x80\xaf"
          "957.5",
          "12", "3"},
         {1957.5f, 12, 3}},
        {",", {"1'957.25", "12", "3"}, {1957.25f, 12, 3}},
        {",",
         {"1\xe2\x80\x99"
          "957",
          "12", "3"},
         {1957, 12, 3}},
        {",", {"1_000", "12", "3_000_000"}, {1000, 12, 3e6f}},
        {",", {"\"12,34,567\"", "\"1,23,456.5\"", "3"}, {1234567, 123456.5f, 3}},
        {",", {"$19.5", "-$3", "$1e3"}, {19.5f, -3, 1000}},
        {",", {"EUR 3", "3.5 EUR", "EUR4"}, {3, 3.5f, 4}},
        {",", {"3.1%", "-4 %", "5%"}, {3.1f, -4, 5}},
        {",", {"3 kg", "4.5kg", "5 kg"}, {3, 4.5f, 5}},
        {",",
         {"\xe2\x88\x92"
          "5.5",
          "+3", "1"},
         {-5.5f, 3, 1}},
        {",", {"(12.5)", "3", "(1)"}, {-12.5f, 3, -1}},
        {",", {"($12.5)", "$3", "$0"}, {-12.5f, 3, 0}},
        {",", {"+3", ".5", "5."}, {3, 0.5f, 5}},
        {",", {"1e3", "-.5e-1", "+1E+2"}, {1000, -0.05f, 100}},
        {";", {"1,5e3", "2", "-0,5e-1"}, {1500, 2, -0.05f}},
        {",", {"0x1f", "0xA", "-0x2"}, {31, 10, -2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct data d;
        scratch_count(&s, 1);
        put_written(&cases[i], "a");
        put_written(&cases[i], "test");
        opened(&d, "a", ",scale=none", NULL);
        if (dataset_dim(&d.train) != 1)
            fail_msg("case %zu, %s: %s", i, cases[i].cells[0], d.train.kind);
        for (size_t k = 0; k < 3; k++) {
            check_sample(&d.train, k, &cases[i].value[k], 1);
            check_sample(&d.test, k, &cases[i].value[k], 1);
        }
        data_close(&d);
    }
}

static void test_no_notation(void **state)
{
    (void)state;
    static const struct
    {
        struct written w;
        const char *sentence;
    } cases[] = {
        {{"\t", {"1,957", "2,000", "3"}, {0}},
         "a: line 1, column 1: found \"1,957\", expected a number with one meaning, but the cell "
         "may "
         "mean 1957 or 1.957: leave out commas between thousands (\"1957\"), or write this cell "
         "with one more decimal (\"1,9570\")"},
        {{";", {"987", "1.713", "2.370"}, {0}},
         "a: line 2, column 1: found \"1.713\", expected a number with one meaning, but the cell "
         "may "
         "mean 1713 or 1.713: leave out points between thousands (\"1713\"), or write this cell "
         "with one more decimal (\"1.7130\")"},
        {{";", {"3 \xe2\x82\xac", "-12.000 \xe2\x82\xac", "3 \xe2\x82\xac"}, {0}},
         "the cell may mean -12000 or -12: leave out points between thousands (\"12000\"), or "
         "write this "
         "cell with one more decimal (\"12.0000\")"},
        {{"\t", {"987", "1.713", "2.370"}, {0}},
         "found \"1.713\", expected a number with one meaning"},
        {{";", {"1,713", "2.370", "3"}, {0}},
         "found \"1,713\", expected a number with one meaning"},
        {{";", {"0,5", "0.5", "3"}, {0}},
         "a: line 2, column 1: found \"0.5\", expected a number with a "
         "decimal comma, as in the rows above"},
        {{",", {"0.5", "\"0,5\"", "3"}, {0}},
         "a: line 2, column 1: found \"0,5\", expected a number "
         "with a decimal point, as in the rows above"},
        {{",", {"\"1,000.5\"", "1 000", "3"}, {0}},
         "expected a number with the separators of the rows "
         "above"},
        {{",", {"$3", "EUR 3", "3"}, {0}},
         "expected a number of the same unit as in the rows above"},
        {{",", {"3%", "3", "3"}, {0}}, "expected a number with the unit that the rows above have"},
        {{",", {"3", "3%", "3"}, {0}}, "expected a number without a unit, as in the rows above"},
        {{",", {"3 kg", "3 g", "3"}, {0}},
         "expected a number of the same unit as in the rows above"},
        {{",", {"1.2.3", "2.0", "3"}, {0}},
         "a: line 1, column 1: found \"1.2.3\", expected a number "
         "such as 1957.25 or 1,957.25, or a category with a letter in it (v1.2.3)"},
        {{",", {"3", "3-", "3"}, {0}},
         "a: line 2, column 1: found \"3-\", expected a number such as"},
        {{",", {"\"1,2,3\"", "3", "3"}, {0}}, "found \"1,2,3\", expected a number such as"},
        {{",", {"12 34", "3", "3"}, {0}}, "found \"12 34\", expected a number such as"},
        {{",", {"$1.2.3", "3", "3"}, {0}}, "found \"$1.2.3\", expected a number such as"},
        {{",", {"0x1f", "3", "3"}, {0}}, "found \"3\", expected a number"},
        {{",", {"red", "1 957", "3"}, {0}}, "found \"1 957\", expected a category"},
        {{",", {"1 957", "red", "3"}, {0}}, "found \"red\", expected a number"},
        {{";", {"1,5e39", "1", "3"}, {0}}, "found \"1,5e39\", expected a value in a float's range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_count(&s, 1);
        put_written(&cases[i].w, "a");
        put_written(&cases[i].w, "test");
        refused("a", "", NULL, cases[i].sentence);
    }
}

/* All columns of a file together determine the decimal mark, but each column has its own unit, such
 * as %. A first row of numbers with units is data, not a header. */
static void test_notations_of_a_file(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a", "0,134;1,250;3 %;1\n-1,250;2,500;4 %;0\n7;9;5 %;1\n");
    put("test", "0,5;1,000;3 %;1\n");
    opened(&d, "a", ",scale=none", NULL);
    assert_int_equal(d.train.n, 3);
    check_sample(&d.train, 0, (float[]){0.134f, 1.25f, 3}, 3);
    check_sample(&d.train, 1, (float[]){-1.25f, 2.5f, 4}, 3);
    check_sample(&d.test, 0, (float[]){0.5f, 1, 3}, 3);
    data_close(&d);
    /* In column `price` the comma is a decimal mark, so 1.000 in column `n` is one thousand. */
    put("a", "price;n;y\n12,50;1.000;0\n1.200,75;2.000;1\n");
    put("test", "price;n;y\n0,5;3.000;1\n");
    opened(&d, "a", ",scale=none", NULL);
    check_sample(&d.train, 0, (float[]){12.5f, 1000}, 2);
    check_sample(&d.test, 0, (float[]){0.5f, 3000}, 2);
    data_close(&d);
    /* A held-out file must write numbers in the same way as the training files. */
    put("test", "price;n;y\n0.5;3;1\n");
    refused("a", "", NULL,
            "test: line 2, column 1 (\"price\"): found \"0.5\", expected a number with a "
            "decimal comma");
}

/* A point in a number may be a decimal mark or separate thousands. The other columns of the files
 * of a run decide which one it is. A file that is opened for a trained model (commands eval and
 * predict) is read by its own cells alone. */
static void test_points_of_a_file(void **state)
{
    (void)state;
    struct data d;
    char kind[DATA_KIND_MAX];
    scratch_count(&s, 1);
    /* The file has the format of the wine quality set of UCI. */
    put("a", "f;v;d;y\n7;0.27;1.001;0\n8;0.30;1.713;1\n");
    put("test", "f;v;d;y\n7;0.27;1.002;0\n");
    opened(&d, "a", ",scale=none", NULL);
    check_sample(&d.train, 1, (float[]){8, 0.3f, 1.713f}, 3);
    data_close(&d);
    opened(&d, "a", "", NULL);
    strcpy(kind, d.train.kind);
    data_close(&d);
    opened(&d, "a", "", kind);
    data_close(&d);
    /* Numbers in a held-out file are read in the notation of the training files. */
    put("test", "f;v;d;y\n7;1;1.002;0\n");
    opened(&d, "a", ",scale=none", NULL);
    check_sample(&d.test, 0, (float[]){7, 1, 1.002f}, 3);
    data_close(&d);
    put("a", "f;v;d;y\n7;1;1.001;0\n8;2;1.713;1\n");
    refused("a", "", kind,
            "a: line 2, column 3 (\"d\"): found \"1.001\", expected a number with one");
    /* With divide=, the data kind does not say which notation of numbers the table has, but
     * ambiguous numbers are still refused. */
    refused("a", ",divide=2", NULL,
            "a: line 2, column 3: found \"1.001\", expected a number with one meaning");
    put("a", "f;v;d;y\n7;1;1.001;0\n8;2.5;1.713;1\n");
    put("test", "f;v;d;y\n7;0.5;1.002;0\n");
    opened(&d, "a", ",divide=2", NULL);
    check_sample(&d.train, 0, (float[]){3.5f, 0.5f, 0.5005f}, 3);
    strcpy(kind, d.train.kind);
    data_close(&d);
    put("a", "f;v;d;y\n7;1;1.001;0\n8;2;1.713;1\n");
    refused("a", "", kind, "a: line 2, column 3: found \"1.001\", expected a number with one");
    /* The other columns have points and commas as decimal marks, so 1.001 is ambiguous. */
    put("a", "f;v;d;y\n0,5;0.5;1.001;0\n");
    refused("a", "", NULL,
            "a: line 2, column 3 (\"d\"): found \"1.001\", expected a number with one");
    /* The comma in 1,957 is read as a decimal mark only because the separator is a semicolon, so
     * 1.001 stays ambiguous. */
    put("a", "f;v;d;y\n1,957;2;1.001;0\n");
    refused("a", "", NULL,
            "a: line 2, column 3 (\"d\"): found \"1.001\", expected a number with one");
}

struct text
{
    const char *p;
    size_t n;
};

#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

/* One table is written in several encodings, with several line ends and with a line that names the
 * separator. Each file must give the same data set and class names. */
static void test_encodings(void **state)
{
    (void)state;
    static const char utf8[] = "x;y\n1;K\xc3\xb6ln\n2;\xe2\x82\xac\n3;K\xc3\xb6ln\n";
    static const struct
    {
        struct text text;
        const char *note;
    } cases[] = {
        {{utf8, sizeof utf8 - 1}, ""},
        {TEXT("\xef\xbb\xbfsep=;\r\nx;y\r\n1;K\xc3\xb6ln\r\n2;\xe2\x82\xac\r\n3;K\xc3\xb6ln\r\n"),
         ""},
        {TEXT("\"sep=;\"\nx;y\n1;K\xc3\xb6ln\n2;\xe2\x82\xac\n3;K\xc3\xb6ln\n"), ""},
        {TEXT("x\ty\r1\tK\xc3\xb6ln\r2\t\xe2\x82\xac\r3\tK\xc3\xb6ln\r"), ""},
        {TEXT("x,y\n1,K\xf6ln\n2,\x80\n3,K\xf6ln\n"),
         "the files are not in UTF-8, and are read as Windows-1252"},
        {TEXT("\xff\xfex\0\t\0y\0\n\0"
              "1\0\t\0K\0\xf6\0l\0n\0\n\0"
              "2\0\t\0\xac\x20\n\0"
              "3\0\t\0K\0\xf6\0l\0n\0\n\0"),
         "the files are not in UTF-8, and are read as UTF-16"},
        {TEXT("\xfe\xff\0x\0\t\0y\0\r\0"
              "1\0\t\0K\0\xf6\0l\0n\0\r\0"
              "2\0\t\x20\xac\0\r\0"
              "3\0\t\0K\0\xf6\0l\0n\0\r"),
         "the files are not in UTF-8, and are read as UTF-16"},
        {TEXT("x\0\t\0y\0\n\0"
              "1\0\t\0K\0\xf6\0l\0n\0\n\0"
              "2\0\t\0\xac\x20\n\0"
              "3\0\t\0K\0\xf6\0l\0n\0\n\0"),
         "the files are not in UTF-8, and are read as UTF-16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct data d;
        char spec[1200], out[8], kind[DATA_KIND_MAX];
        scratch_count(&s, 1);
        scratch_put(&s, "a.csv", cases[i].text.p, cases[i].text.n);
        scratch_put(&s, "test", utf8, sizeof utf8 - 1);
        snprintf(spec, sizeof spec, "%s/a.csv,test=%s/test", s.dir, s.dir);
        if (data_sniff(spec, kind, error) < 0 || strcmp(kind, "csv") != 0)
            fail_msg("case %zu: %s, %s", i, kind, error);
        if (open_table(&d, "csv", "a.csv", "", NULL) < 0)
            fail_msg("case %zu: %s", i, error);
        assert_string_equal(d.note, cases[i].note);
        assert_true(d.train.n == 3 && d.train.shape.n_classes == 2
                    && d.test.labels[1] == d.train.labels[1]);
        assert_string_equal(dataset_class(&d.train, d.train.labels[0], out), "K\xc3\xb6ln");
        assert_string_equal(dataset_class(&d.train, d.train.labels[1], out), "\xe2\x82\xac");
        data_close(&d);
    }
}

/* libsvm rows are read with a byte order mark, in UTF-16, and with carriage returns as line
 * ends. */
static void test_encodings_of_libsvm(void **state)
{
    (void)state;
    static const struct text cases[] = {TEXT("\xef\xbb\xbf"
                                             "1 1:2\n-1 2:1\n"),
                                        TEXT("1 1:2\r-1 2:1\r"),
                                        TEXT("\xff\xfe"
                                             "1\0 \0"
                                             "1\0:\0"
                                             "2\0\n\0-\0"
                                             "1\0 \0"
                                             "2\0:\0"
                                             "1\0\n\0")};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct data d;
        char kind[DATA_KIND_MAX], spec[1200];
        scratch_count(&s, 1);
        scratch_put(&s, "a", cases[i].p, cases[i].n);
        put("test", "1 1:2\n");
        snprintf(spec, sizeof spec, "%s/a", s.dir);
        assert_int_equal(data_sniff(spec, kind, error), 0);
        assert_string_equal(kind, "libsvm");
        if (open_table(&d, "libsvm", "a", "", NULL) < 0)
            fail_msg("case %zu: %s", i, error);
        assert_true(d.train.n == 2 && strcmp(d.train.kind, "libsvm/2x2/pm") == 0);
        data_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notations),           cmocka_unit_test(test_no_notation),
        cmocka_unit_test(test_notations_of_a_file), cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_encodings_of_libsvm), cmocka_unit_test(test_points_of_a_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
