/* tests/unit/nn_data_files.c -- selection of training files and held-out files, recognition of a
 * path's data kind, and splits of sets without held-out files. */
#include "nn/data/data.h"

#include "nn/data/files.h"
#include "nn/data/labels.h"

#include "nn_scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <cmocka.h>

/* Returns the class of a label name. */
static uint16_t named(const struct labels *names, const char *name)
{
    return labels_class(names, (const uint8_t *)name, strlen(name));
}

static struct scratch s;
static char error[DATA_ERROR_MAX];

static void put(const char *name, const char *text)
{
    scratch_put(&s, name, text, strlen(text));
}

/* Opens "KIND:DIR[rest]", or "DIR[rest]" if `kind` is "". CSV tables are not scaled, so that
 * tests recognise their numbers. */
static int open_rest(struct data *d, const char *kind, const char *rest, const char *wanted)
{
    static char spec[4000];
    error[0] = '\0';
    snprintf(spec, sizeof spec, "%s%s%s%s%s", kind, *kind ? ":" : "", s.dir, rest,
             strcmp(kind, "csv") == 0 ? ",scale=none" : "");
    return data_open(d, &(struct data_request){.spec = spec, .kind = wanted}, error);
}

static void opened(struct data *d, const char *kind, const char *rest)
{
    int err = open_rest(d, kind, rest, NULL);
    if (err < 0)
        print_error("%s %s: %s\n", kind, rest, error);
    assert_int_equal(err, 0);
}

static void refused(const char *kind, const char *rest, const char *a, const char *b)
{
    struct data d;
    int err = open_rest(&d, kind, rest, NULL);
    if (err >= 0 || !strstr(error, a) || !strstr(error, b))
        print_error("%s %s: err %d, \"%s\", expected \"%s\" and \"%s\"\n", kind, rest, err, error,
                    a, b);
    assert_true(err < 0);
    assert_non_null(strstr(error, a));
    assert_non_null(strstr(error, b));
    assert_null(d.train.labels);
    assert_null(d.test.labels);
}

/* Writes the table "1,0\n2,1\n...": n rows with the values `from`, `from` + 1, ... */
static void put_table(const char *name, int from, int n)
{
    char text[4096] = "";
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%d\n", from + i, i % 2);
    put(name, text);
}

static int value(const struct dataset *d, size_t i)
{
    return (int)d->rows[i];
}

static void test_names(void **state)
{
    (void)state;
    static const char *const held_out[] = {
        "a9a.t",          "agaricus.txt.test", "optdigits.tes",
        "test_batch.bin", "test_batch.bin.gz", "t10k-images-idx3-ubyte.gz",
        "T10K-x",         "Test.csv",          "a.TEST.gz",
        "x_val.csv",      "testing",           "emnist-letters-test-images-idx3-ubyte",
        "a-valid.txt",    "validation",        "a.heldout",
        "x.te",           "tests.csv",         "t"};
    static const char *const others[] = {"a9a",
                                         "agaricus.txt.train",
                                         "optdigits.tra",
                                         "data_batch_1.bin",
                                         "train.bin",
                                         "input.txt",
                                         "latest.csv",
                                         "contest.csv",
                                         "value.csv",
                                         "tt.csv",
                                         "a.t2",
                                         "gz",
                                         ".gz",
                                         "valley.csv",
                                         "",
                                         "x.attest"};
    for (size_t i = 0; i < sizeof held_out / sizeof *held_out; i++)
        assert_true(files_held_out(held_out[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(files_held_out(others[i]));
}

/* All files of a directory are read in the order of their names, compressed or not. */
static void test_directory(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put_table("b.csv", 10, 2);
    scratch_put_gz(&s, "a.gz", "1,0\n2,1\n", 8);
    /* The reader takes this file after a.gz, because a compressed file is sorted as its name
     * without .gz. */
    put_table("a-b", 20, 1);
    put_table("c.test.csv", 30, 2);
    put("README.md", "Nothing but\nwords\n");
    put(".hidden.csv", "no table\n");
    assert_int_equal(mkdir(scratch_path(&s, "sub.csv"), 0700), 0);
    opened(&d, "csv", "");
    assert_string_equal(d.train.kind, "csv/1x2/0");
    static const int want[] = {1, 2, 20, 10, 11};
    static const uint32_t file[] = {0, 0, 1, 2, 2};
    assert_true(d.train.n == 5 && d.train.n_files == 3 && d.test.n == 2 && !d.test.file);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(value(&d.train, i), want[i]);
        assert_int_equal(d.train.file[i], file[i]);
    }
    assert_int_equal(value(&d.test, 0), 30);
    data_close(&d);
    /* If the directory has both a and a.gz, only the uncompressed file is read. */
    put_table("a", 40, 2);
    opened(&d, "csv", "");
    assert_true(d.train.n == 5 && value(&d.train, 0) == 40);
    data_close(&d);
    rmdir(scratch_path(&s, "sub.csv"));
}

static void test_test_option(void **state)
{
    (void)state;
    struct data d;
    char rest[900];
    scratch_count(&s, 1);
    put_table("a.csv", 0, 4);
    put_table("b.csv", 10, 3);
    put_table("c.test.csv", 30, 2);
    snprintf(rest, sizeof rest, ",test=%s/b.csv", s.dir);
    /* Neither the test file b.csv nor c.test.csv (held out by its name) is used for training. */
    opened(&d, "csv", rest);
    assert_true(d.train.n == 4 && d.test.n == 3 && value(&d.test, 0) == 10);
    assert_int_equal(d.held_out, DATA_HELD_FILES);
    data_close(&d);
    snprintf(rest, sizeof rest, "/a.csv,test=%s", s.dir);
    opened(&d, "csv", rest); /* If test= names a directory, its held-out files are the test set. */
    assert_true(d.train.n == 4 && d.test.n == 2 && value(&d.test, 0) == 30);
    data_close(&d);
    scratch_remove(&s, "c.test.csv");
    snprintf(rest, sizeof rest, "/a.csv,test=%s", s.dir);
    /* If test= names a directory without held-out files, all of its files are the test set. */
    opened(&d, "csv", rest);
    assert_true(d.train.n == 4 && d.test.n == 7);
    data_close(&d);
    snprintf(rest, sizeof rest, "/a.csv,test=%s/a.csv", s.dir);
    opened(&d, "csv", rest);
    assert_true(d.train.n == 4 && d.test.n == 4);
    data_close(&d);
    refused("csv", ",test=/none", "/none: found no such directory or file", "csv data");
    put("x.csv", "1,2,0\n3,4,1\n");
    snprintf(rest, sizeof rest, "/a.csv,test=%s/x.csv", s.dir);
    refused("csv", rest, "x.csv", "expected 2");
}

static void test_wrong_directories(void **state)
{
    (void)state;
    scratch_count(&s, 1);
    refused("csv", "", "found no matching file among 0, expected a table of numbers", s.dir);
    put_table("test.csv", 0, 4);
    refused("csv", "",
            "found no file to train on, expected at least one (held out because of "
            "their names: 1 files; other files: 0)",
            s.dir);
    put_table("a.csv", 0, 4);
    put("test", "words\n");
    refused("csv", "", "test: found no csv at the start of the file, although the file name",
            "test=");
    struct data d;
    /* With holdout=, no test file is needed, so the invalid file "test" is not read. */
    opened(&d, "csv", ",holdout=0.5");
    assert_true(d.train.n == 2 && d.test.n == 2);
    assert_true(d.held_out == DATA_HELD_SHARE && d.share > 0.49 && d.share < 0.51);
    data_close(&d);
    put("a.csv.gz", "no gzip");
    scratch_remove(&s, "a.csv");
    refused("csv", "", "a.csv.gz", "not a gzip file");
    scratch_count(&s, 1);
    /* This is the only file of the directory. The file is read as CSV, so the CSV reader reports
     * the error. */
    put("only.csv", "1\n2\n");
    refused("csv", "", "only.csv: line 1: found 1 cell", "expected at least 2");
    assert_int_equal(symlink("nowhere", scratch_path(&s, "b.csv")), 0);
    refused("csv", "", "b.csv: cannot open", "No such file");
}

/* ---- Splits into training and held-out data. ---- */

/* holdout= takes exactly the given share, is the same each time, and keeps all rows and their
 * order. */
static void test_split_rows(void **state)
{
    (void)state;
    struct data d, again;
    scratch_count(&s, 1);
    put_table("a.csv", 0, 200);
    put_table("b.csv", 200, 100);
    opened(&d, "csv", "");
    opened(&again, "csv", ",holdout=0.1");
    assert_true(d.train.n == 270 && d.test.n == 30);
    assert_true(d.held_out == DATA_HELD_SHARE && d.share > 0.099 && d.share < 0.101);
    assert_string_equal(d.train.kind, d.test.kind);
    bool seen[300] = {false};
    size_t n_late = 0;
    const struct dataset *both[] = {&d.train, &d.test};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->n; i++) {
            int v = value(both[k], i);
            assert_true(v >= 0 && v < 300 && !seen[v]);
            seen[v] = true;
            assert_true(i == 0 || v > value(both[k], i - 1));
            assert_int_equal(both[k]->labels[i], v % 2);
            assert_int_equal(both[k]->file[i], v >= 200);
            n_late += k == 1 && v >= 150;
        }
    /* The held-out rows come from all parts of the set. */
    assert_true(n_late >= 7 && n_late <= 23);
    assert_memory_equal(d.test.rows, again.test.rows, 30 * sizeof(float));
    data_close(&d);
    data_close(&again);
    opened(&d, "csv", ",holdout=0.9999");
    assert_true(d.train.n == 1 && d.test.n == 299);
    data_close(&d);
    opened(&d, "csv", ",holdout=1e-9");
    assert_true(d.train.n == 299 && d.test.n == 1);
    data_close(&d);
}

/* The validation set replaces the test set and consists of training samples only. */
static void test_validate(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put_table("a.csv", 0, 200);
    put_table("a.test.csv", 200, 100);
    opened(&d, "csv", ",validate=0.25");
    assert_true(d.train.n == 150 && d.test.n == 50);
    bool seen[200] = {false};
    const struct dataset *both[] = {&d.train, &d.test};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->n; i++) {
            int v = value(both[k], i);
            /* Each value occurs once and is below 200, so no sample comes from the test file. */
            assert_true(v >= 0 && v < 200 && !seen[v]);
            seen[v] = true;
        }
    data_close(&d);
}

static void test_split_names(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a.csv", "x,kind\n1,oak\n2,ash\n3,oak\n4,elm\n");
    opened(&d, "csv", ",holdout=0.5");
    assert_true(d.train.n == 2 && d.test.n == 2 && d.train.shape.n_classes == 3);
    assert_int_equal(named(d.train.names, "ash"), 0);
    assert_int_equal(named(d.test.names, "oak"), 2);
    data_close(&d);
    put("a.test.csv", "x,kind\n9,oak\n"); /* A test file need not contain samples of all classes. */
    opened(&d, "csv", "");
    assert_true(d.train.n == 4 && d.test.n == 1 && d.test.labels[0] == 2);
    data_close(&d);
}

static void test_split_sparse(void **state)
{
    (void)state;
    char text[4096] = "";
    size_t at = 0;
    /* Row i of this sparse file has i % 4 entries. The value of the first entry is i. */
    for (int i = 0; i < 60; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%d", i % 2 ? 1 : -1);
        for (int k = 0; k < i % 4; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, " %d:%d", k + 1, k ? 7 : i);
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    scratch_count(&s, 1);
    put("rows", text);
    struct data d;
    opened(&d, "libsvm", ",holdout=0.3");
    assert_string_equal(d.test.kind, "libsvm/3x2/pm");
    assert_true(d.train.n == 42 && d.test.n == 18 && d.train.longest == 3);
    const struct dataset *both[] = {&d.train, &d.test};
    size_t n[4] = {0};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0, begin = 0; i < both[k]->n; i++) {
            assert_int_equal(both[k]->start[i], begin);
            size_t len = both[k]->start[i + 1] - begin;
            assert_true(len <= both[k]->longest && len < 4);
            n[len]++;
            for (size_t j = 0; j < len; j++)
                assert_int_equal(both[k]->column[begin + j], j);
            if (len > 0) {
                assert_int_equal((int)both[k]->entry[begin] % 4, len);
                assert_int_equal(both[k]->labels[i], (int)both[k]->entry[begin] % 2);
            }
            begin += len;
        }
    assert_true(n[0] == 15 && n[1] == 15 && n[2] == 15 && n[3] == 15);
    data_close(&d);
    put("rows", "1 1:2\n");
    refused("libsvm", "", "rows", "expected at least 2");
}

/* The last part of a text is held out. The two parts overlap in one byte, the target of the last
 * training sample. */
static void test_split_text(void **state)
{
    (void)state;
    struct data d;
    char text[102];
    for (int i = 0; i < 101; i++)
        text[i] = (char)('!' + i % 90);
    scratch_count(&s, 1);
    scratch_put(&s, "a.txt", text, 101);
    opened(&d, "text", ",context=5");
    assert_true(d.train.n == 18 && d.test.n == 2);
    assert_memory_equal(d.train.text, text, 91);
    assert_memory_equal(d.test.text, text + 90, 11);
    data_close(&d);
    /* The two parts together use every byte of the text. */
    opened(&d, "text", ",context=50,holdout=0.5");
    assert_true(d.train.n == 1 && d.test.n == 1);
    assert_memory_equal(d.test.text, text + 50, 51);
    data_close(&d);
}

static void test_split_text_short(void **state)
{
    (void)state;
    scratch_count(&s, 1);
    put("a.txt", "0123456789");
    refused("text", ",context=9", "found 1 sample, expected at least 2", s.dir);
    refused("text", ",context=10", "a.txt: found 10 bytes, expected at least 11", "");
    scratch_put_gz(&s, "b.txt.gz", "abcdefghij", 10);
    struct data d;
    opened(&d, "text", ",context=3");
    assert_true(d.train.n == 5 && d.test.n == 1 && d.train.n_files == 2);
    assert_memory_equal(d.train.text, "0123456789abcdef", 16);
    assert_memory_equal(d.test.text, "fghi", 4);
    assert_true(d.train.file[2] == 0 && d.train.file[4] == 1 && d.test.file[0] == 1);
    data_close(&d);
}

static void test_split_images(void **state)
{
    (void)state;
    enum { N = 40, RECORD = 3073 };
    uint8_t *b = calloc(N, RECORD);
    assert_non_null(b);
    for (size_t i = 0; i < N; i++) {
        b[i * RECORD] = (uint8_t)(i % 10);
        memset(b + i * RECORD + 1, (int)i, RECORD - 1);
    }
    scratch_count(&s, 1);
    scratch_put(&s, "any.bin", b, (size_t)N * RECORD);
    struct data d;
    opened(&d, "cifar10", "/any.bin,holdout=0.25");
    assert_true(d.train.n == 30 && d.test.n == 10);
    for (size_t i = 0; i < 30; i++) {
        uint8_t which = d.train.pixels[i * 3072];
        assert_int_equal(d.train.labels[i], which % 10);
        assert_int_equal(d.train.pixels[i * 3072 + 3071], which);
    }
    float out[3072];
    dataset_sample(&d.test, 9, out);
    assert_true(fabs((double)out[2] - (d.test.pixels[9 * 3072] / 255.0 - 0.4465) / 0.2616) <= 1e-6);
    data_close(&d);
    free(b);
}

/* ---- The data kind of a run. ---- */

static void test_run_kind(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put("a", "+1 1:16 3:8\n-1 2:1\n");
    put("a.t", "-1 3:4\n+1\n");
    assert_int_equal(open_rest(&d, "libsvm", "", "libsvm/9x2/pm/16"), 0);
    assert_string_equal(d.test.kind, "libsvm/9x2/pm/16");
    assert_true(fabsf(d.train.entry[0] - 1) <= 0 && dataset_dim(&d.test) == 9);
    data_close(&d);
    static const char *const wrong[][2] = {
        {"libsvm/2x2/pm", "expected an index of at most 2"},
        {"libsvm/3x2/0", "expected a whole number from 0 to 1"},
        {"csv/3x2/pm", "found data of kind libsvm"},
        {"nonsense", "found data of kind libsvm"},
    };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(open_rest(&d, "libsvm", "", wrong[i][0]), -EINVAL);
        assert_non_null(strstr(error, wrong[i][1]));
        assert_null(d.train.labels);
    }
    assert_int_equal(open_rest(&d, "libsvm", ",divide=2", "libsvm/3x2/pm"), -EINVAL);
    assert_non_null(strstr(error, "divide=2"));
    assert_int_equal(open_rest(&d, "libsvm", ",features=4", "libsvm/3x2/pm"), -EINVAL);
    assert_non_null(strstr(error, "features=4"));
    put("a.t", "-1 4:4\n"); /* A held-out file must match the data kind of the training files. */
    refused("libsvm", "", "a.t: line 1", "expected an index of at most 3");
    opened(&d, "libsvm", ",features=4");
    assert_string_equal(d.train.kind, "libsvm/4x2/pm");
    data_close(&d);
}

/* ---- Recognition of a path's data kind. ---- */

static void sniffed(const char *name, const char *want)
{
    char kind[DATA_KIND_MAX] = "", path[700];
    snprintf(path, sizeof path, "%s%s%s", s.dir, *name && *name != ',' ? "/" : "", name);
    error[0] = '\0';
    int err = data_sniff(path, kind, error);
    if (err < 0 || strcmp(kind, want) != 0)
        print_error("%s: err %d, %s \"%s\", expected %s\n", name, err, kind, error, want);
    assert_int_equal(err, 0);
    assert_string_equal(kind, want);
}

static void test_sniff_rows(void **state)
{
    (void)state;
    scratch_count(&s, 1);
    put("README", "Words about\nthe data.\n");
    sniffed("", "text");
    put("table", "1.5,2,0\n3,4,1\n");
    sniffed("", "csv");
    sniffed("table", "csv");
    sniffed("table,label=2", "csv");
    sniffed(",holdout=0.5", "csv");
    scratch_remove(&s, "table");
    scratch_put_gz(&s, "rows.gz", "1 1:2\n-1 4:1\n", 13);
    sniffed("", "libsvm");
    struct data d;
    opened(&d, "", "/rows.gz,holdout=0.5");
    assert_string_equal(d.train.kind, "libsvm/4x2/pm");
    data_close(&d);
    static char packed[200000]; /* Zeros after gzip data are padding. Other bytes are an error. */
    size_t n = scratch_get(&s, "rows.gz", packed, sizeof packed);
    scratch_put(&s, "rows.gz", packed, sizeof packed);
    opened(&d, "", "/rows.gz,holdout=0.5");
    data_close(&d);
    packed[n + 9] = 'x';
    scratch_put(&s, "rows.gz", packed, sizeof packed);
    refused("libsvm", "", "rows.gz",
            "found byte 78 after the gzip data, expected the end of the file");
    scratch_put(&s, "noise", "\0\1\2\3\4\0\0\0\377\376", 10);
    char kind[DATA_KIND_MAX];
    assert_int_equal(data_sniff(scratch_path(&s, "noise"), kind, error), -EINVAL);
    assert_non_null(strstr(error, "/noise: found 1 file of an unknown kind"));
    assert_int_equal(data_sniff(scratch_path(&s, "none"), kind, error), -ENOENT);
    assert_non_null(strstr(error, "/none: found no such directory or file"));
    assert_int_equal(data_sniff(scratch_path(&s, "a,foo=3"), kind, error), -ENOENT);
    assert_non_null(strstr(error, "no option \"foo\""));
    scratch_count(&s, 1);
    assert_int_equal(data_sniff(s.dir, kind, error), -EINVAL);
    assert_non_null(strstr(error, "found 0 files"));
}

static void test_sniff_images(void **state)
{
    (void)state;
    uint8_t *b = calloc(3, 30000);
    assert_non_null(b);
    scratch_count(&s, 1);
    b[3073] = 9;
    scratch_put(&s, "x.bin", b, 3 * 3073);
    sniffed("", "cifar10");
    memset(b, 0, 90000);
    b[1] = 99;
    b[3074] = 19;
    scratch_put(&s, "x.bin", b, 3 * 3074);
    sniffed("", "cifar100");
    memset(b, 0, 90000); /* All pixels are 0, so the file names decide the data kind. */
    scratch_count(&s, 1);
    scratch_put_gz(&s, "data_batch_2.bin.gz", b, 90000);
    sniffed("", "cifar10");
    scratch_count(&s, 1);
    scratch_put_gz(&s, "test.bin.gz", b, 90000);
    sniffed("", "cifar100");
    memset(b, 0, 3000);
    uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
    uint8_t labels[10] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 3};
    memcpy(b, head, 16);
    scratch_count(&s, 1);
    scratch_put_gz(&s, "train-images-idx3-ubyte.gz", b, 16 + 2 * 784);
    scratch_put_gz(&s, "train-labels-idx1-ubyte.gz", labels, 10);
    sniffed("", "idx"); /* IDX files with black images are not taken for MNIST. */
    for (size_t i = 16; i < 16 + 2 * 784; i++)
        b[i] = i % 8 == 0 ? 255 : 0;
    scratch_count(&s, 1);
    scratch_put_gz(&s, "train-images-idx3-ubyte.gz", b, 16 + 2 * 784);
    scratch_put_gz(&s, "train-labels-idx1-ubyte.gz", labels, 10);
    sniffed("", "mnist");
    struct data d;
    opened(&d, "", "");
    assert_string_equal(d.train.kind, "mnist");
    /* Without the t10k files of MNIST, its training set is split. */
    assert_true(d.train.n == 1 && d.test.n == 1);
    data_close(&d);
    labels[9] = 10;
    /* The uncompressed file takes precedence over the .gz file of the same name. */
    scratch_put(&s, "train-labels-idx1-ubyte", labels, 10);
    sniffed("", "idx");
    sniffed("train-images-idx3-ubyte.gz", "idx");
    scratch_remove(&s, "train-labels-idx1-ubyte");
    b[11] = 27;
    scratch_put(&s, "train-images-idx3-ubyte", b, 16 + 2 * 784);
    sniffed("", "idx");
    free(b);
}

/* The images look like those of MNIST. The labels are sorted and have 4 to 12 classes, so only the
 * end of the label file shows how many there are. The set is recognised as MNIST if there are ten
 * classes, or if the test labels contain the class 9. */
static void test_sniff_sorted(void **state)
{
    (void)state;
    enum { N = 80000 };
    uint8_t *labels = calloc(1, 8 + N), *images = calloc(1, 16 + 784);
    static const uint8_t of_labels[4] = {0, 0, 8, 1}, of_images[4] = {0, 0, 8, 3};
    assert_true(labels != NULL && images != NULL);
    memcpy(labels, of_labels, 4);
    memcpy(images, of_images, 4);
    images[7] = 1;
    images[11] = images[15] = 28;
    for (size_t i = 16; i < 16 + 784; i += 8)
        images[i] = 255; /* Now the mean brightness of the images is close to that of MNIST. */
    for (uint32_t classes = 12; classes >= 4; classes -= 2) {
        for (uint32_t i = 0; i < N; i++)
            labels[8 + i] = (uint8_t)(i * classes / N);
        scratch_count(&s, 1);
        scratch_put(&s, "train-images-idx3-ubyte", images, 16 + 784);
        scratch_put_gz(&s, "train-labels-idx1-ubyte.gz", labels, 8 + N);
        sniffed("", classes == 10 ? "mnist" : "idx");
        sniffed("train-images-idx3-ubyte", classes == 10 ? "mnist" : "idx");
    }
    labels[8] = 9;
    scratch_put(&s, "t10k-images-idx3-ubyte", images, 16 + 784);
    scratch_put(&s, "t10k-labels-idx1-ubyte", labels, 9);
    sniffed("", "mnist");
    scratch_remove(&s, "train-labels-idx1-ubyte.gz");
    char kind[DATA_KIND_MAX];
    assert_int_equal(data_sniff(s.dir, kind, error), -ENOENT);
    assert_non_null(strstr(error, "found no train-labels-idx1-ubyte in the same directory"));
    free(labels);
    free(images);
}

static int setup(void **state)
{
    (void)state;
    scratch_open(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_test_option),  cmocka_unit_test(test_wrong_directories),
        cmocka_unit_test(test_split_rows),   cmocka_unit_test(test_validate),
        cmocka_unit_test(test_split_names),  cmocka_unit_test(test_split_sparse),
        cmocka_unit_test(test_split_text),   cmocka_unit_test(test_split_text_short),
        cmocka_unit_test(test_split_images), cmocka_unit_test(test_run_kind),
        cmocka_unit_test(test_sniff_rows),   cmocka_unit_test(test_sniff_images),
        cmocka_unit_test(test_sniff_sorted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
