/* tests/unit/nn_csv.c -- tables in CSV files: quotes, separators, headers, label columns, class
 * names, broken files. */
#include "nn_rows.h"

/* Returns the number of the class that has this label name. */
static uint16_t named(const struct labels *names, const char *name)
{
    return labels_class(names, (const uint8_t *)name, strlen(name));
}

static const struct rows_format csv = {"csv", csv_parse, csv_read};

enum { MUTATIONS = 6000 };

static const char small[] = "height, \"the \"\"width\"\"\" ,species\r\n"
                            "5.1,3.5,\"Iris setosa\"\r\n"
                            "\r\n"
                            "  \n"
                            " 4.9 , \"3.0\" , Iris versicolor \n"
                            "-1e-2,+.5,Iris setosa\n"
                            "7,8,\"Iris, \"\"or not\"\"\"";

static void rows_equal(const struct dataset *d, const float *rows, size_t n)
{
    assert_int_equal(d->n * d->shape.channels, n);
    assert_memory_equal(d->rows, rows, n * sizeof *rows);
}

static void test_rows(void **state)
{
    (void)state;
    struct dataset d = rows_take(&csv, rows_reader(&csv), small);
    rows_check(&d);
    assert_int_equal(d.shape.form, DATA_ROWS);
    const float rows[] = {5.1f, 3.5f, 4.9f, 3, -1e-2f, 0.5f, 7, 8};
    /* Class names are sorted in ASCII order, where a space is before a comma. */
    const uint16_t labels[] = {0, 1, 0, 2};
    rows_equal(&d, rows, 8);
    assert_memory_equal(d.labels, labels, sizeof labels);
    static const char joined[] = "Iris setosa\nIris versicolor\nIris, \"or not\"";
    char kind[DATA_KIND_MAX];
    snprintf(kind, sizeof kind, "csv/2x3/names-%016llx",
             (unsigned long long)rng_hash(joined, sizeof joined - 1));
    assert_string_equal(d.kind, kind);
    assert_int_equal(named(d.names, "Iris, \"or not\""), 2);
    dataset_close(&d);
}

/* Each text of the table, read with the header and label options of its row, must give the data
 * kind and labels of its row. */
static void test_shapes(void **state)
{
    (void)state;
    static const struct
    {
        const char *text, *header, *label, *kind;
        double divide;
        uint16_t first, last;
        float value; /* First number of the first row of data in the table. */
    } cases[] = {
        {"1,2,0\n3,4,1\n", "auto", NULL, "csv/2x2/0", 1, 0, 1, 1},
        {"1;2;0\n3;4;1", "auto", NULL, "csv/2x2/0", 1, 0, 1, 1},
        {"1\t2\t-1\n3\t4\t+1", "auto", NULL, "csv/2x2/pm", 1, 0, 1, 1},
        {"\xef\xbb\xbf"
         "1,2,1\n3,4,3",
         "auto", NULL, "csv/2x2/in-1.3", 1, 0, 1, 1},
        {"1,2,0\n3,4,1\n", "no", "1", "csv/2x2/in-1.3", 1, 0, 1, 2},
        {"1,2,5.000000000000000000e+00\n3,4,-0.0e+00\n", "auto", NULL, "csv/2x2/in-0.5", 1, 1, 0,
         1},
        {"1,2,1.000e+00\n3,4,-1e0\n", "auto", NULL, "csv/2x2/pm", 1, 1, 0, 1},
        {"1,2,0\n3,4,1\n", "auto", "3", "csv/2x2/0", 1, 0, 1, 1},
        {"9,8,7\n1,2,0\n3,4,1\n", "yes", NULL, "csv/2x2/0", 1, 0, 1, 1},
        {"2019,2020,label\n1,2,0\n3,4,1\n", "yes", NULL, "csv/2x2/0", 1, 0, 1, 1},
        {"a,?,nan\n1,2,0\n3,4,1\n", "auto", NULL, "csv/2x2/0", 1, 0, 1, 1},
        {",b,\n1,2,0\n3,4,1\n", "auto", NULL, "csv/2x2/0", 1, 0, 1, 1},
        {"y,b,c\n0,2,16\n1,4,8\n", "auto", "y", "csv/2x2/0/16", 16, 0, 1, 2.0f / 16},
        {"y,b,c\n0,2,16\n1,4,8\n", "yes", "c", "csv/2x2/in-8.16", 1, 1, 0, 0},
        {"\"a,b\",\"7\"\n1,0\n2,1\n", "auto", "a,b", "csv/1x2/1", 1, 0, 1, 0},
        {"yy,,y\n1,2,0\n3,4,1\n", "auto", "y", "csv/2x2/0", 1, 0, 1, 1},
        {"1.0,2,\"0\"\n3,4,1.00\n", "auto", NULL, "csv/2x2/0", 1, 0, 1, 1},
        {"1.5,0\n\n\r\n2.5,1\r", "auto", NULL, "csv/1x2/0", 1, 0, 1, 1.5f},
        {"\n\n1.5,0\n2.5,1\r\n\n", "auto", NULL, "csv/1x2/0", 1, 0, 1, 1.5f},
        {"\"1.5\"\t\"0\"\n2.5 \t 1", "auto", NULL, "csv/1x2/0", 1, 0, 1, 1.5f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reader r = rows_reader(&csv);
        r.header = cases[i].header;
        r.label = cases[i].label;
        r.divide = cases[i].divide;
        struct dataset d = rows_take(&csv, r, cases[i].text);
        assert_string_equal(d.kind, cases[i].kind);
        assert_int_equal(d.n, 2);
        assert_int_equal(d.labels[0], cases[i].first);
        assert_int_equal(d.labels[1], cases[i].last);
        assert_true(d.rows[0] >= cases[i].value && d.rows[0] <= cases[i].value);
        assert_null(d.names);
        dataset_close(&d);
    }
}

/* A file with "\r\n" line ends gives the same rows and labels as the same file with "\n". So does a
 * file with carriage returns before separators, as after a program has appended a column to the
 * lines of a file with "\r\n". */
static void carriage_returns_around_cells_are_ignored(void **state)
{
    (void)state;
    static const char plain[] = "height,width,species,site\n5.5,1,oak,2\n1,2,ash,3\n2,3,oak,4\n";
    static const char *const texts[] = {
        "height,width,species,site\r\n5.5,1,oak,2\r\n1,2,ash,3\r\n2,3,oak,4\r\n",
        "height,width,species\r,site\n5.5,1,oak\r,2\n1,2,ash\r,3\n2,3,oak\r,4\n",
        "height,width\r,species,site\r\n5.5,1\r,oak,2\r\n1,2\r,ash,3\r\n2,3\r,oak,4\r\n",
        "\"height\"\r,width,\"species\"\r,site\r\r\n5.5,1,\"oak\"\r,2\n\r\r\n1,2,ash,3\n2,3,oak,"
        "4\r\r",
    };
    struct reader r = rows_reader(&csv);
    r.label = "species";
    struct dataset wanted = rows_take(&csv, r, plain);
    assert_int_equal(named(wanted.names, "ash"), 0);
    assert_int_equal(named(wanted.names, "oak"), 1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dataset d = rows_take(&csv, r, texts[i]);
        assert_string_equal(d.kind, wanted.kind);
        assert_int_equal(d.shape.channels, 3);
        rows_equal(&d, wanted.rows, wanted.n * 3);
        assert_memory_equal(d.labels, wanted.labels, wanted.n * sizeof *d.labels);
        dataset_close(&d);
    }
    dataset_close(&wanted);
}

/* A fixed data kind has only a hash of the class names, so a file must have all of them. If the
 * reader is given the names, a file may have only some of them. */
static void test_names(void **state)
{
    (void)state;
    static const char all[] = "1,b\n2,a\n3,c\n4,b\n";
    struct dataset train = rows_take(&csv, rows_reader(&csv), all), test;
    struct reader r = rows_reader(&csv);
    r.kind = train.kind;
    assert_int_equal(named(train.names, "a"), 0);
    test = rows_take(&csv, r, "5,c\n6,a\n7,b\n");
    assert_string_equal(test.kind, train.kind);
    dataset_close(&test);
    rows_refuse(&csv, r, "5,c\n6,b\n",
                "f0: labels: found 2 label names (\"b\", \"c\"), expected exactly the 3 names "
                "that the run "
                "started with: every file must have all of them (the run stores only their hash)");
    rows_refuse(
        &csv, r, "5,c\n6,b\n7,d",
        "f0: labels: found 3 label names (\"b\", \"c\", \"d\"), expected exactly the 3 names "
        "that the run "
        "started with: every file must have all of them (the run stores only their hash)");
    r.names = train.names;
    test = rows_take(&csv, r, "5,c\n6,b\n");
    assert_string_equal(test.kind, train.kind);
    assert_int_equal(test.labels[0], 2);
    assert_int_equal(test.labels[1], 1);
    dataset_close(&test);
    rows_refuse(&csv, r, "5,c\n6,d\n",
                "f0: line 2, column 2 (label): found \"d\", expected "
                "one of the 3 names of the training set");
    dataset_close(&train);
}

static void test_fixed_kind(void **state)
{
    (void)state;
    struct reader r = rows_reader(&csv);
    r.kind = "csv/2x6/0/16";
    struct dataset d = rows_take(&csv, r, "8,4,5\n");
    assert_int_equal(d.labels[0], 5);
    assert_true(d.rows[0] >= 0.5f && d.rows[0] <= 0.5f);
    dataset_close(&d);
    rows_refuse(&csv, r, "8,4,6\n",
                "f0: line 1, column 3 (label): found \"6\", expected a "
                "whole number from 0 to 5");
    rows_refuse(&csv, r, "8,4,x\n",
                "f0: line 1, column 3 (label): found \"x\", expected a "
                "whole number from 0 to 5");
    rows_refuse(&csv, r, "8,4,1,1\n",
                "f0: line 1: found 4 cells, expected 3 (csv/2x6/0/16 and a label)");
    r.kind = "csv/2x6/0/1e-30";
    rows_refuse(&csv, r, "0,1e9,5\n",
                "f0: line 1, column 2: found \"1e9\", expected a value in a float's range after "
                "division by 1e-30 (divide)");
}

/* End of the error message if the last column is not a valid label and the spec does not name
 * one. */
#define LABEL_HINT " (is another column the label? csv:PATH,label=NAME or label=NUMBER)"
/* Hint at the end of an error message, which asks whether the first row is a header. It is given if
 * the reader took the first row for data and found a cell that is not a number. */
#define HEADER_HINT " (is the first row a header? csv:PATH,header=yes)"

/* A text that is refused, and its error message. */
struct refusal
{
    const char *text, *sentence, *header, *label;
};

static void test_refused(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"", "found no rows, expected at least 1", 0, 0},
        {"\n \r\n\t\n", "found no rows, expected at least 1", 0, 0},
        {"a,b,c\n", "found no rows after the header, expected at least 1", 0, 0},
        {"1 2 3\n",
         "line 1: found 1 cell, expected at least 2: values and a label, with "
         "commas, semicolons or tabs between",
         0, 0},
        {"1,2,0\n1,2\n", "line 2: found 2 cells, expected 3", 0, 0},
        {"1,2,0\n1,2,3,4\n", "line 2: found 4 cells, expected 3", 0, 0},
        {"1,2,0\n\n1,x\n", "line 3: found 2 cells, expected 3", 0, 0},
        {"1,2,0\n1,2,1,\n", "line 2: found 4 cells, expected 3", 0, 0},
        {"1,2,0\n1,x,1\n", "line 2, column 2: found \"x\", expected a number", 0, 0},
        {"1,2,0\n1,,1\n", "line 2, column 2: found nothing, expected a number", 0, 0},
        {"1,2,0\nNA,1,1\n", "line 2, column 1: found \"NA\", expected a number", 0, 0},
        {"1,2,0\nnan,1,1\n", "line 2, column 1: found \"nan\", expected a number", 0, 0},
        {"1,2,0\n1,0x1,1\n", "line 2, column 2: found \"0x1\", expected a number", 0, 0},
        {"1,2,0\n1,1e40,1\n",
         "line 2, column 2: found \"1e40\", expected a value in a float's range", 0, 0},
        {"1,?,0\n1,2,1\n2,3,0\n", "line 1, column 2: found \"?\", expected a number" HEADER_HINT, 0,
         0},
        {"1,,0\n1,2,1\n", "line 1, column 2: found nothing, expected a number" HEADER_HINT, 0, 0},
        {"\n1, nan ,0\n1,2,1\n", "line 2, column 2: found \"nan\", expected a number" HEADER_HINT,
         0, 0},
        {"1,\"-Inf\",0\n1,2,1\n", "line 1, column 2: found \"-Inf\", expected a number" HEADER_HINT,
         0, 0},
        {"NA,N/A,yes\n1,2,no\n", "line 1, column 1: found \"NA\", expected a number" HEADER_HINT, 0,
         0},
        {"nan,?,\n1,2,1\n", "line 1, column 1: found \"nan\", expected a number" HEADER_HINT, 0, 0},
        {"1,2,?\n1,2,1\n",
         "line 2, column 3 (label): found \"1\", expected a name as in the lines "
         "before" LABEL_HINT HEADER_HINT,
         0, 0},
        {"1,x,0\n1,2,1\n",
         "line 1, column 2: found \"x\", expected a number (is column 2 the label? "
         "csv:PATH,label=2)" HEADER_HINT,
         0, 0},
        {"2019,2020,label\n1,2,0\n3,4,1\n",
         "line 2, column 3 (label): found \"0\", expected a name as in the lines "
         "before" LABEL_HINT HEADER_HINT,
         0, 0},
        {",2019,label\n0,1,a\n", "line 1, column 1: found nothing, expected a number" HEADER_HINT,
         0, 0},
        {"1,?,0\n1,2,1\n", "line 1, column 2: found \"?\", expected a number", "no", 0},
        {"a,b,c\n1,2,0\n",
         "line 1, column 1: found \"a\", expected a number (is column 1 the label? "
         "csv:PATH,label=1)",
         "no", 0},
        {"kind,x,y\nold,1,2.5\nnew,2,3.5\n",
         "line 2, column 1: found \"old\", expected a number (is column 1 the label? "
         "csv:PATH,label=1)",
         0, 0},
        {"x,kind,y\n,old,2.5\n", "line 2, column 1: found nothing, expected a number", 0, 0},
        {"x,kind,y\n1,old,2.5\n", "line 2, column 2: found \"old\", expected a number", 0, "y"},
        {"kind,x,y\n1,5,2.5\n",
         "line 2, column 3 (label): found \"2.5\", expected a whole number or a name", 0, "3"},
        {"1,2,0\n1,2,0\n", "labels: found one class, expected at least 2", 0, 0},
        {"1,a\n1,a\n", "labels: found one class, expected at least 2", 0, 0},
        {"1,2,0.5\n",
         "line 1, column 3 (label): found \"0.5\", expected a whole number or a "
         "name" LABEL_HINT,
         0, 0},
        {"1,2,0\n1,2,b\n",
         "line 2, column 3 (label): found \"b\", expected a whole number "
         "as in the lines before" LABEL_HINT,
         0, 0},
        {"1,2,0\n1,2,0.5\n",
         "line 2, column 3 (label): found \"0.5\", expected a whole number" LABEL_HINT, 0, 0},
        {"1,a\n2,b\n3,7\n",
         "line 3, column 2 (label): found \"7\", expected a name as in "
         "the lines before" LABEL_HINT,
         0, 0},
        {"1,a\n2,\n",
         "line 2, column 2 (label): found nothing, expected a name of 1 to 128 "
         "printable bytes" LABEL_HINT,
         0, 0},
        {"1,a\n2,\"b\nc\"\n",
         "line 2, column 2 (label): found \"b\\x0ac\", expected a name "
         "of 1 to 128 printable bytes" LABEL_HINT,
         0, 0},
        {"1,2,0\n\n\"1,2,1\n3,4,0\n", "line 3: found a quote that is never closed", 0, 0},
        {"1,2,0\n1,\"\n\n,1\n", "line 2: found a quote that is never closed", 0, 0},
        {"1,2,0\n\"1\"x,2,1\n", "line 2: found \"x\" after a closing quote, expected a comma", 0,
         0},
        {"1;2;0\n\"1\",2,1\n", "line 2: found \",\" after a closing quote, expected a semicolon", 0,
         0},
        {"1\t2\t0\n\"1\" 2\t1\n", "line 2: found \"2\" after a closing quote, expected a tab", 0,
         0},
        {"1,2,0\n\"1\n\",2,1\n", "line 2, column 1: found \"1\\x0a\", expected a number", 0, 0},
        {"1,2,0\n1\r2,2,1\n", "line 2, column 1: found \"1\\x0d2\", expected a number", 0, 0},
        {"1,2,0\n3,4,1\n", "found 3 columns, expected column 4 to be the label", 0, "4"},
        {"1,2,0\n3,4,1\n", "found 3 columns, expected column 0 to be the label", 0, "0"},
        {"1,2,0\n3,4,1\n",
         "found 3 columns, expected column 99999999999999999999 to be the "
         "label",
         0, "99999999999999999999999"},
        {"1,2,0\n3,4,1\n",
         "line 1: found columns \"1\", \"2\", \"0\", expected one named \"y\", the label", 0, "y"},
        {"Alter,Klasse\n3,1\n",
         "line 1: found columns \"Alter\", \"Klasse\", expected one named \"klasse\", the label, "
         "did "
         "you mean \"Klasse\"?",
         0, "klasse"},
        {"a,a\n3,1\n",
         "line 1: found columns \"a\", \"a\", expected one named \"klasse\", the label", 0,
         "klasse"},
        {"\n\ny,y,z\n3,4,1\n", "line 3: found 2 columns named \"y\", expected one, the label", 0,
         "y"},
        {"y,y,z\n3,4,1\n",
         "label=y is a name, but header=no says that there are no names: expected a column number",
         "no", "y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sentence[DATA_ERROR_MAX + 8];
        snprintf(sentence, sizeof sentence, "f0: %s", cases[i].sentence);
        struct reader r = rows_reader(&csv);
        r.label = cases[i].label;
        r.header = cases[i].header ? cases[i].header : "auto";
        rows_refuse(&csv, r, cases[i].text, sentence);
    }
}

/* More class names than DATA_CLASSES_MAX are refused, and so is a name that is too long. */
static void test_name_limits(void **state)
{
    (void)state;
    size_t n = 0, cap = 64 * 1024;
    char *text = malloc(cap);
    for (int i = 0; i < DATA_CLASSES_MAX; i++)
        n += (size_t)snprintf(text + n, cap - n, "1,a%d\n", i);
    struct dataset d = rows_take(&csv, rows_reader(&csv), text);
    assert_int_equal(d.shape.n_classes, DATA_CLASSES_MAX);
    dataset_close(&d);
    snprintf(text + n, cap - n, "1,b\n");
    rows_refuse(&csv, rows_reader(&csv), text,
                "f0: line 4097, column 2 (label): found \"b\", "
                "expected at most 4096 different labels" LABEL_HINT);
    for (int quoted = 0; quoted < 2; quoted++) {
        memset(text, 'n', cap);
        memcpy(text, quoted ? "1,a\n1,\"\"\"" : "1,a\n1,", quoted ? 9 : 6);
        snprintf(text + (quoted ? 9 : 6) + 200, 4, quoted ? "\"\n" : "\n");
        struct reader r = rows_reader(&csv);
        char error[DATA_ERROR_MAX] = "";
        assert_int_equal(rows_parse_text(&csv, r, &d, text, error), -EINVAL);
        assert_non_null(strstr(error, "expected a name of 1 to 128 printable bytes"));
    }
    free(text);
}

static void test_files(void **state)
{
    (void)state;
    struct reader r = rows_reader(&csv);
    r.n_paths = 3;
    r.label = "y";
    const char *text[] = {"y,b\n0,1\n1,2\n", "5;3\n1;4\n", "\"y\", b \n7,5"};
    size_t n[] = {12, 8, 11};
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(rows_parse(&csv, r, &d, text, n, error), 0);
    assert_string_equal(d.kind, "csv/1x4/in-0-1.5.7");
    const float rows[] = {1, 2, 3, 4, 5};
    const uint16_t labels[] = {0, 1, 2, 1, 3};
    const uint32_t file[] = {0, 0, 1, 1, 2};
    rows_equal(&d, rows, 5);
    assert_memory_equal(d.labels, labels, sizeof labels);
    assert_memory_equal(d.file, file, sizeof file);
    assert_int_equal(d.n_files, 3);
    dataset_close(&d);
    text[2] = "b,y\n5,7\n";
    n[2] = 8;
    assert_int_equal(rows_parse(&csv, r, &d, text, n, error), 0);
    rows_equal(&d, rows, 5);
    assert_memory_equal(d.labels, labels, sizeof labels);
    dataset_close(&d);
    text[2] = "B,y\n5,7\n";
    assert_int_equal(rows_parse(&csv, r, &d, text, n, error), -EINVAL);
    assert_string_equal(error, "f2: line 1: no column \"b\" (case counts); found \"B\", \"y\", "
                               "expected \"b\", \"y\"");
    text[2] = "1,2,3\n";
    n[2] = 6;
    assert_int_equal(rows_parse(&csv, r, &d, text, n, error), -EINVAL);
    assert_string_equal(error, "f2: line 1: found 3 cells, expected 2");
    rows_is_empty(&d);
}

static void test_looks(void **state)
{
    (void)state;
    static const struct rows_look cases[] = {
        {"0,1,6,15\n0,0,10,16\n", true, true},
        {"a,b,c\n1,2,x\n3,,y\n", true, true},
        {"1,2\n", true, true},
        {"1;2\n3;4\n5;", false, true},
        {"1;2\n3;4\n5;", true, true},
        {"1;2\n3;4\n5", true, false},
        {"1\t2\tx y\n", true, true},
        /* The text is the first part of one long line, and is recognised as CSV. */
        {"0.5,1,2,3,", false, true},
        /* The text is a whole file, a header without rows, and is not recognised as CSV. */
        {"a,b,c\n", true, false},
        {"a,b,1\nc,d,1\n", true, false},
        {"Well, then,\nhe said, go\n", true, false},
        {"1,2\n1,2,3\n", true, false},
        {"1,\"2\n", true, false},
        {"1\n2\n", true, false},
        {"", true, false},
        {"", false, false},
        {"1", false, false},
    };
    rows_check_looks(csv_looks, cases, sizeof cases / sizeof *cases);
}

static void test_gz(void **state)
{
    (void)state;
    struct scratch s;
    struct dataset d;
    scratch_open(&s);
    rows_read_both(&csv, rows_reader(&csv), &s, small, &d);
    assert_int_equal(d.n, 4);
    dataset_close(&d);
    rows_truncate_gz(&csv, rows_reader(&csv), &s, small);
    scratch_close(&s);
}

static void test_broken(void **state)
{
    (void)state;
    uint64_t s = ref_seed();
    struct reader r = rows_reader(&csv);
    size_t taken = rows_truncate(&csv, r, small);
    assert_true(taken > 10 && taken < strlen(small));
    taken = rows_mutate(&csv, r, small, MUTATIONS, s);
    assert_true(taken > MUTATIONS / 50 && taken < MUTATIONS);
    r.label = "species";
    rows_mutate(&csv, r, small, MUTATIONS, s);
    r.label = "1";
    r.kind = "csv/2x3/0/3";
    static const char numbers[] = "0;2;16\r\n1;4;\"8\"\n2;-1e2;.5\n\n1;1;1";
    rows_truncate(&csv, r, numbers);
    taken = rows_mutate(&csv, r, numbers, MUTATIONS, s);
    assert_true(taken > MUTATIONS / 50 && taken < MUTATIONS);
}

/* The name of a class is the label as it is written in the files. */
static void classes_have_the_files_names(void **state)
{
    (void)state;
    static const struct
    {
        const char *kind, *first, *second;
    } cases[] = {{"csv/2x3/0", "0", "1"},
                 {"csv/2x3/1", "1", "2"},
                 {"csv/2x2/pm", "-1", "+1"},
                 {"libsvm/2x2/1", "1", "2"},
                 {"mnist", "0", "1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char first[8], second[8];
        struct dataset d = {.names = NULL};
        snprintf(d.kind, sizeof d.kind, "%s", cases[i].kind);
        assert_string_equal(dataset_class(&d, 0, first), cases[i].first);
        assert_string_equal(dataset_class(&d, 1, second), cases[i].second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_have_the_files_names),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(carriage_returns_around_cells_are_ignored),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_fixed_kind),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_name_limits),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_gz),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
