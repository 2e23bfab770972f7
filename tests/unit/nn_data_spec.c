/* tests/unit/nn_data_spec.c -- data specs and data kinds: each has one canonical spelling, each
 * invalid one gives an error message, and no file is opened to check them. */
#include "nn/data/spec.h"

#include "nn/data/data.h"
#include "nn/math/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* Number of calls of open() and stat(). This program replaces both functions by ones that count and
 * find no file. */
static size_t n_looks;

int open(const char *path, int flags, ...)
{
    (void)path;
    (void)flags;
    n_looks++;
    errno = ENOENT;
    return -1;
}

int stat(const char *restrict path, struct stat *restrict st)
{
    (void)path;
    (void)st;
    n_looks++;
    errno = ENOENT;
    return -1;
}

/* Returns the kind of a spec. NULL: the spec is refused. */
static const char *kind_of(const char *spec)
{
    static char kind[DATA_KIND_MAX];
    char error[DATA_ERROR_MAX] = "";
    int err = data_kind(spec, kind, error);
    assert_true(err == 0 || err == -EINVAL);
    assert_true((err == 0) == (error[0] == '\0'));
    assert_null(strchr(error, '\n'));
    return err == 0 ? kind : NULL;
}

static void refused(const char *spec, const char *said)
{
    char kind[DATA_KIND_MAX], error[DATA_ERROR_MAX] = "";
    int err = data_kind(spec, kind, error);
    if (err != -EINVAL || !strstr(error, said))
        print_error("%s: err %d, \"%s\", expected \"%s\"\n", spec, err, error, said);
    assert_int_equal(err, -EINVAL);
    assert_non_null(strstr(error, said));
}

static void test_kind(void **state)
{
    (void)state;
    static const char *const right[][2] = {
        {"glyphs", "glyphs"},
        {"mnist:/a/b:c", "mnist"},
        {"idx:x", "idx"},
        {"cifar10:.", "cifar10"},
        {"cifar100:a,b", "cifar100"},
        {"libsvm:a,features=9,divide=2.5,test=b,c", "libsvm"},
        {"csv:a,label=x=y,header=no,holdout=.25", "csv"},
        {"csv:x,y=1,label=3", "csv"}, /* y is not an option, so the path is "x,y=1". */
        {"text:a", "text/128"},
        {"text:a,context=64,holdout=1e-3", "text/64"},
        {"text:a,test=b,context=7", "text/7"},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_non_null(kind_of(right[i][0]));
        assert_string_equal(kind_of(right[i][0]), right[i][1]);
        assert_false(data_is_path(right[i][0]));
    }
    static const char *const wrong[] = {
        "",        ":",        ":x",      "mnist:", "glyphs:", "glyphs:x",     "glyphsx",
        "mnis:x",  "mnistt:x", "MNIST:x", "text",   "csv:",    "csv:,label=1", "/a/b",
        "./mnist", "a.csv",    "mnist ",  " mnist"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refused(wrong[i], "expected");
        refused(wrong[i], wrong[i][0] ? wrong[i] : "nothing");
    }
}

static void test_options(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"csv:f,label=1,foo=2",
         "found option \"foo\", expected test or holdout or validate or label or "
         "header or divide or scale with csv"},
        {"mnist:d,label=2",
         "found option \"label\", expected test or holdout or validate with mnist"},
        {"glyphs,holdout=0.5", "found option \"holdout\", expected validate with glyphs"},
        {"csv:f,divide=2,divide=3", "option divide: found twice, expected once"},
        {"csv:f,test=a,holdout=0.1", "options test and holdout: found both"},
        {"csv:f,test=", "option test: found nothing, expected a PATH"},
        {"csv:f,label=", "option label: found nothing, expected a column"},
        {"csv:f,header=maybe", "option header: found \"maybe\", expected yes, no or auto"},
        {"csv:f,holdout=0", "option holdout: found \"0\", expected a share above 0 and below 1"},
        {"csv:f,holdout=1", "option holdout: found \"1\""},
        {"csv:f,holdout=nan", "option holdout: found \"nan\""},
        {"csv:f,holdout=.1x", "option holdout: found \".1x\""},
        {"csv:f,holdout=", "option holdout: found nothing"},
        {"csv:f,divide=0", "option divide: found \"0\", expected a number above 0"},
        {"csv:f,divide=-1", "option divide: found \"-1\""},
        {"csv:f,divide=1e999", "option divide: found \"1e999\""},
        {"csv:f,divide=2,5", "option divide: found \"2,5\""},
        {"csv:f,scale=auto",
         "option scale: found \"auto\", expected standard (only csv), max or none"},
        {"csv:f,scale=", "option scale: found nothing"},
        {"libsvm:f,scale=standard", "option scale: found \"standard\""},
        {"mnist:d,scale=max",
         "found option \"scale\", expected test or holdout or validate with mnist"},
        {"csv:f,scale=max,divide=2", "options divide and scale: found both, expected one of them"},
        {"csv:f,scale=max,scale=max", "option scale: found twice, expected once"},
        {"libsvm:f,features=0", "option features: found \"0\", expected a whole number from 1"},
        {"libsvm:f,features=16777217", "option features: found \"16777217\""},
        {"libsvm:f,features=99999999999999999999", "option features"},
        {"libsvm:f,features=1e3", "option features: found \"1e3\""},
        {"libsvm:f,features=-1", "option features: found \"-1\""},
        {"text:f,context=4097", "option context: found \"4097\", expected a whole number from 1 "
                                "to 4096"},
        {"text:f,context=007", "option context: found \"007\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(wrong[i][0], wrong[i][1]);
}

/* A path in a spec may contain commas. The path ends before the next known option. */
static void test_parse(void **state)
{
    (void)state;
    struct data_spec s;
    char error[DATA_ERROR_MAX];
    const char *text = "csv:/a,b=c,d.csv,label=x,y,test=/e,f=1,divide=16,holdout";
    /* The value of divide= is the text "16,holdout", which is no number. */
    assert_int_equal(data_spec_parse(&s, text, error), -EINVAL);
    text = "csv:/a,b=c,d.csv,label=x,y,test=/e,f=1,divide=16";
    assert_int_equal(data_spec_parse(&s, text, error), 0);
    assert_string_equal(s.path, "/a,b=c,d.csv");
    assert_string_equal(s.label, "x,y");
    assert_string_equal(s.test, "/e,f=1");
    assert_string_equal(s.header, "auto");
    assert_true(s.divide >= 16 && s.divide <= 16 && s.holdout <= 0 && s.context == 128);
    char key[32];
    assert_true(data_spec_stray(s.path, key));
    assert_string_equal(key, "b");
    assert_false(data_spec_stray("/a,B=c", key));
    assert_int_equal(data_spec_parse(&s, "some/dir,holdout=0.5", error), 0);
    assert_null(s.format);
    assert_string_equal(s.path, "some/dir");
    char longest[DATA_SPEC_MAX + 8];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "csv:", 4);
    longest[DATA_SPEC_MAX] = '\0';
    refused(longest, "found a data spec of 4096 bytes, expected fewer than 4096");
    longest[DATA_SPEC_MAX - 1] = '\0';
    assert_string_equal(kind_of(longest), "csv");
}

static void test_is_path(void **state)
{
    (void)state;
    static const char *const paths[] = {"/a",      "a",          ".",        "../x:y",
                                        "./mnist", "csv/x.csv",  "a-b:c",    "a.csv,label=2",
                                        "mnist/",  "glyphs.csv", "text/0x1", "idx/1x28x28/1"};
    static const char *const others[] = {"",         ":",          "glyphs", "mnist",
                                         "mnist:x",  "foo:x",      "text",   "csv/64x10/0",
                                         "text/128", "glyphs,x=1", "idx",    "libsvm/1x2/pm"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_true(data_is_path(paths[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(data_is_path(others[i]));
}

static bool has_shape(const char *kind, struct data_shape want)
{
    struct data_shape s;
    return data_shape(kind, &s) == 0 && s.form == want.form && s.channels == want.channels
           && s.height == want.height && s.width == want.width && s.n_classes == want.n_classes;
}

static void test_shape(void **state)
{
    (void)state;
    static const struct
    {
        const char *kind;
        struct data_shape shape;
    } right[] = {
        {"glyphs", {DATA_IMAGES, 1, 28, 28, 10}},
        {"mnist", {DATA_IMAGES, 1, 28, 28, 10}},
        {"cifar10", {DATA_IMAGES, 3, 32, 32, 10}},
        {"cifar100", {DATA_IMAGES, 3, 32, 32, 100}},
        {"idx/1x28x30/47", {DATA_IMAGES, 1, 28, 30, 47}},
        {"idx/1x1024x1/4096", {DATA_IMAGES, 1, 1024, 1, 4096}},
        {"idx/1x28x28/10/0.2860~0.3530", {DATA_IMAGES, 1, 28, 28, 10}},
        {"idx/1x28x28/10/1.0000~1.0000", {DATA_IMAGES, 1, 28, 28, 10}},
        {"libsvm/123x2/pm", {DATA_SPARSE, 123, 1, 1, 2}},
        {"libsvm/16777216x4096/1", {DATA_SPARSE, 16777216, 1, 1, 4096}},
        {"csv/64x10/0/16", {DATA_ROWS, 64, 1, 1, 10}},
        {"csv/4x3/names-0123456789abcdef/2.5", {DATA_ROWS, 4, 1, 1, 3}},
        {"text/1", {DATA_TEXT, 1, 1, 1, 256}},
        {"text/4096", {DATA_TEXT, 1, 4096, 1, 256}},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_true(has_shape(right[i].kind, right[i].shape));
        assert_true(data_kind_fixed(right[i].kind));
        assert_string_equal(kind_of(right[i].kind), right[i].kind);
        assert_true(data_kind_agrees(right[i].kind, right[i].kind));
    }
    static const char *const open_kinds[] = {"idx", "libsvm", "csv"};
    for (size_t i = 0; i < 3; i++) {
        assert_false(data_kind_fixed(open_kinds[i]));
        assert_string_equal(kind_of(open_kinds[i]), open_kinds[i]);
    }
}

/* Data kinds that are almost valid, too long, too large or not printable are refused. */
static void test_strict(void **state)
{
    (void)state;
    static const char *const wrong[] = {"mnist/",
                                        "mnist/1x28x28/10",
                                        "glyphs/1",
                                        "cifar10/",
                                        "idx/",
                                        "idx/1x28x28",
                                        "idx/1x28x28/",
                                        "idx/1x28x28/1",
                                        "idx/1x28x28/4097",
                                        "idx/2x28x28/10",
                                        "idx/3x28x28/10",
                                        "idx/01x28x28/10",
                                        "idx/1x028x28/10",
                                        "idx/1x0x28/10",
                                        "idx/1x1025x28/10",
                                        "idx/1x28x28/10 ",
                                        "idx/1x28x28/10/2",
                                        "idx/1x28x28/10/",
                                        "idx/1x28x28/10/0.286~0.3530",
                                        "idx/1x28x28/10/0.2860~0.3530 ",
                                        "idx/1x28x28/10/0.2860~0.35301",
                                        "idx/1x28x28/10/0.2860~0.0000",
                                        "idx/1x28x28/10/1.0001~0.3530",
                                        "idx/1x28x28/10/2.2860~0.3530",
                                        "idx/1x28x28/10/-.2860~0.3530",
                                        "idx/1x28x28/10/0.2860",
                                        "idx/1x28x28/10/0.2860~",
                                        "idx/1x28x28/10/0..860~0.3530",
                                        "idx/1x28x28/10/0.2860~0.3530/0",
                                        "mnist/0.2860~0.3530",
                                        "idx/1x+28x28/10",
                                        "idx/1X28X28/10",
                                        "idx/1x99999999999999999999x28/10",
                                        "text/",
                                        "text/0",
                                        "text/4097",
                                        "text/0128",
                                        "text/-1",
                                        "text/128/",
                                        "text/1e2",
                                        "libsvm/",
                                        "libsvm/0x2/pm",
                                        "libsvm/16777217x2/pm",
                                        "libsvm/9x1/0",
                                        "libsvm/9x4097/0",
                                        "libsvm/9x3/pm",
                                        "libsvm/9x2/2",
                                        "libsvm/9x2/pm/1",
                                        "libsvm/9x2/pm/0",
                                        "libsvm/9x2/pm/16.0",
                                        "libsvm/9x2/pm/+16",
                                        "libsvm/9x2/pm/1e1",
                                        "libsvm/9x2/pm/inf",
                                        "libsvm/9x2/pm/nan",
                                        "libsvm/9x2/pm/0x10",
                                        "libsvm/9x2/pm/",
                                        "libsvm/9x2",
                                        "csv/9x2/names-",
                                        "csv/9x2/names-0123456789ABCDEF",
                                        "csv/9x2/names-0123456789abcde",
                                        "csv/9x2/names-0123456789abcdef0",
                                        "csv//x",
                                        "csv/9x2/0\n",
                                        "csv/9x2/\x1b[2J",
                                        "csv/9x2/%s%n"};
    struct data_shape shape = {.channels = 77};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(data_kind_fixed(wrong[i]));
        assert_int_equal(data_shape(wrong[i], &shape), -EINVAL);
        assert_null(kind_of(wrong[i]));
        assert_false(data_kind_agrees(wrong[i], wrong[i]));
        assert_int_equal(shape.channels, 77);
    }
    char kind[DATA_KIND_MAX], error[DATA_ERROR_MAX];
    assert_int_equal(data_kind("x\x1b[2J\xff\n", kind, error), -EINVAL);
    for (const char *p = error; *p; p++)
        assert_true(*p >= 0x20 && *p < 0x7f);
    char longest[4 * DATA_SPEC_MAX];
    memset(longest, '/', sizeof longest);
    memcpy(longest, "csv", 3);
    longest[sizeof longest - 1] = '\0';
    assert_null(kind_of(longest));
    assert_false(data_kind_fixed(longest));
}

static void test_agrees(void **state)
{
    (void)state;
    assert_true(data_kind_agrees("csv", "csv/64x10/0"));
    assert_true(data_kind_agrees("csv/64x10/0/16", "csv"));
    assert_true(data_kind_agrees("csv", "csv"));
    assert_true(data_kind_agrees("idx", "idx/1x2x2/10"));
    assert_true(data_kind_agrees("idx", "idx/1x2x2/10/0.1000~0.2000"));
    assert_true(data_kind_agrees("idx", "mnist") && data_kind_agrees("mnist", "idx"));
    assert_false(data_kind_agrees("mnist", "idx/1x28x28/10"));
    assert_false(data_kind_agrees("idx/1x28x28/10", "idx/1x28x28/10/0.5000~0.5000"));
    assert_true(data_kind_agrees("mnist", "mnist"));
    assert_false(data_kind_agrees("csv", "libsvm"));
    assert_false(data_kind_agrees("csv", "libsvm/64x10/0"));
    assert_false(data_kind_agrees("csv/64x10/0", "csv/64x10/1"));
    assert_false(data_kind_agrees("csv/64x10/0", "csv/64x10/0/16"));
    assert_false(data_kind_agrees("mnist", "glyphs"));
    assert_false(data_kind_agrees("text/64", "text/128"));
    assert_false(data_kind_agrees("text", "text/128"));
    assert_false(data_kind_agrees("", ""));
}

/* Random combinations of pieces of valid specs either give an error message, or give a data kind
 * that is canonical and whose shape is within the limits. */
static void test_random(void **state)
{
    (void)state;
    static const char *const pieces[] = {"csv",
                                         "libsvm",
                                         "text",
                                         "idx",
                                         "mnist",
                                         "glyphs",
                                         ":",
                                         "/",
                                         ",",
                                         "=",
                                         "1x",
                                         "x",
                                         "28",
                                         "0",
                                         "2",
                                         "10",
                                         "pm",
                                         "names-",
                                         "0123456789abcdef",
                                         "label=",
                                         "test=",
                                         "holdout=0.5",
                                         "divide=",
                                         "context=",
                                         "features=",
                                         "header=yes",
                                         "99999999999",
                                         "\xff",
                                         "-",
                                         "%s",
                                         "."};
    enum { N = sizeof pieces / sizeof *pieces };
    struct rng r = rng_stream(rng_key(5, RNG_TEST, 0, 0));
    size_t n_right = 0;
    for (int i = 0; i < 200000; i++) {
        char spec[256] = "";
        size_t at = 0;
        for (uint64_t k = rng_below(&r, 9) + 1; k > 0; k--)
            at += (size_t)snprintf(spec + at, sizeof spec - at, "%s", pieces[rng_below(&r, N)]);
        const char *kind = kind_of(spec);
        struct data_shape s;
        if (!kind)
            continue;
        n_right++;
        char again[DATA_KIND_MAX];
        memcpy(again, kind, sizeof again);
        assert_string_equal(kind_of(again), again);
        if (data_shape(again, &s) == 0)
            assert_true(s.n_classes >= 2 && s.n_classes <= DATA_CLASSES_MAX && s.channels >= 1
                        && s.channels <= DATA_FEATURES_MAX && s.height >= 1 && s.width >= 1);
    }
    assert_true(n_right > 1000);
}

/* This test runs last, because data_open() opens files. The test shows that the calls of open() and
 * stat() are counted, and that the tests before it made none. */
static void test_no_file(void **state)
{
    (void)state;
    assert_int_equal(n_looks, 0);
    struct data d;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(data_open(&d, &(struct data_request){.spec = "csv:x"}, error), -ENOENT);
    assert_true(n_looks > 0);
    assert_int_equal(data_open(&d, &(struct data_request){.spec = "csv:x,foo=1"}, error), -ENOENT);
    assert_non_null(strstr(error, "no option \"foo\""));
    n_looks = 0;
    static const char *const pathless[] = {"mnist", "csv", "text/128", "csv/64x10/0", "idx"};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(data_open(&d, &(struct data_request){.spec = pathless[i]}, error),
                         -EINVAL);
        assert_non_null(strstr(error, "expected"));
    }
    assert_int_equal(data_open(&d, &(struct data_request){.spec = "csv:x", .kind = "mnist"}, error),
                     -EINVAL);
    assert_string_equal(error, "found data of kind csv (csv:x), expected mnist");
    assert_int_equal(n_looks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kind),    cmocka_unit_test(test_options),
        cmocka_unit_test(test_parse),   cmocka_unit_test(test_is_path),
        cmocka_unit_test(test_shape),   cmocka_unit_test(test_strict),
        cmocka_unit_test(test_agrees),  cmocka_unit_test(test_random),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
