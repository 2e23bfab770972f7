/* tests/unit/nn_data_named.c -- files whose names show a format that their first bytes do not:
 * they are read, or refused with line and column, and never left out silently. */
#include "nn/data/data.h"

#include "nn_scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static struct scratch s;

static const char *const table = "1,2,0\n3,4,1\n5,6,0\n1,x,1\nx,NA,0\nnan,1,1\n";
static const char *const whole = "1,2,0\n3,4,1\n5,6,0\n";

static void put(const char *name, const char *text)
{
    scratch_put(&s, name, text, strlen(text));
}

/* Opens "KIND:DIR[rest]", or "DIR[rest]" if `kind` is "". The data set must have n samples, or
 * if n is 0, opening must fail with an error message that contains `sentence`. */
static void look(const char *kind, const char *rest, size_t n, const char *sentence)
{
    char spec[900], error[DATA_ERROR_MAX] = "";
    struct data d;
    snprintf(spec, sizeof spec, "%s%s%s%s", kind, *kind ? ":" : "", s.dir, rest);
    int err = data_open(&d, &(struct data_request){.spec = spec}, error);
    if ((err == 0) != (n > 0) || !strstr(error, sentence))
        print_error("%s: err %d, \"%s\", expected \"%s\"\n", spec, err, error, sentence);
    assert_int_equal(d.train.n + d.test.n, n);
    assert_true((err == 0) == (n > 0));
    assert_non_null(strstr(error, sentence));
    data_close(&d);
}

static void test_table(void **state)
{
    (void)state;
    static const char *const named[] = {"b.csv", "b.CSV", "b.data",    "b.tra",
                                        "b.tes", "c.tsv", "b.test.csv"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        char wanted[120], rest[40];
        scratch_count(&s, 1);
        /* The name of this file has no ending in common with the names of the other files. */
        put("a-00", whole);
        put("README", "Nothing but\nwords\n");
        put("d.names", "1. height\n2. width\n");
        look("csv", "", 3, "");
        put(named[i], table);
        snprintf(wanted, sizeof wanted, "%s: line 4, column 2: found \"x\", expected a number",
                 named[i]);
        look("csv", "", 0, wanted);
        snprintf(rest, sizeof rest, "/%s", named[i]);
        /* The first bytes of the file are also valid as plain text, but the file is read as CSV. */
        look("", rest, 0, wanted);
    }
}

static void test_alike(void **state)
{
    (void)state;
    scratch_count(&s, 1);
    put("a-00", whole);
    /* The name of this file differs from a-00 in digits only, so it must be CSV data, too. */
    put("a-01", table);
    put("b-01", "other\n");
    look("csv", "", 0, "a-01: line 4, column 2: found \"x\", expected a number");
    scratch_count(&s, 1);
    put("a.txt", "1 1:2\n-1 2:1\n");
    /* The contents of a.txt show that the ending .txt means libsvm data in this directory. */
    put("b.TXT", "1 1:2\n-1 2:?\n");
    put("Readme.txt", "Nothing but\nwords\n");
    look("libsvm", "", 0, "b.TXT: line 2");
    put("b.TXT", "1 1:2\n-1 1:1\n");
    look("libsvm", "", 4, "");
    put("c.svm", "1 1:2\n-1 x\n");
    look("libsvm", "", 0, "c.svm: line 2");
}

/* Plain text has no invalid lines, so only the first bytes of a file decide whether it is text. An
 * empty file is accepted. */
static void test_text(void **state)
{
    (void)state;
    char words[402] = "";
    memset(words, 'a', sizeof words - 1);
    scratch_count(&s, 1);
    put("a.txt", words);
    put("b.txt", "");
    scratch_put(&s, "picture.png", "\0\1\2", 3);
    look("text", ",context=4", 100, "");
    scratch_put(&s, "b.txt", "\0\1\2", 3);
    look("text", ",context=4", 0, "b.txt: found no text at the start of the file, although");
}

/* The contents of a file take precedence over its name. If the contents are valid as a table and as
 * plain text, the file is read as a table. */
static void test_told(void **state)
{
    (void)state;
    scratch_count(&s, 1);
    put("README.md", "Nothing but\nwords\n");
    put("two.csv", table);
    look("", "", 0, "two.csv: line 4");
    put("rows", "1 1:2\n-1 4:1\n");
    look("", "", 2, "");
    put("three.csv", "1 1:2\n-1 4:1\n");
    look("", "/three.csv", 2, "");
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
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
