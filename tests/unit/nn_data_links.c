/* tests/unit/nn_data_links.c -- directories in which a file has several names, by symbolic and
 * hard links. */
#include "nn/data/data.h"

#include "nn_scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static struct scratch s;
static char error[DATA_ERROR_MAX];

static int open_all(struct data *d)
{
    static char spec[4000];
    snprintf(spec, sizeof spec, "csv:%s,scale=none", s.dir);
    return data_open(d, &(struct data_request){.spec = spec}, error);
}

/* Writes the table "1,0\n2,1\n...": n rows with the values `from`, `from` + 1, ... */
static void put_table(const char *name, int from, int n)
{
    char text[4096] = "";
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%d\n", from + i, i % 2);
    scratch_put(&s, name, text, strlen(text));
}

static void link_to(const char *name, const char *target, bool hard)
{
    char from[900];
    snprintf(from, sizeof from, "%s", scratch_path(&s, target));
    scratch_remove(&s, name);
    assert_int_equal(
        hard ? link(from, scratch_path(&s, name)) : symlink(target, scratch_path(&s, name)), 0);
}

/* A file that has several names in the directory is read once. */
static void test_links(void **state)
{
    (void)state;
    struct data d;
    scratch_count(&s, 1);
    put_table("b.csv", 0, 20);
    for (int hard = 0; hard < 2; hard++) {
        link_to("a.csv", "b.csv", hard);
        link_to("c.csv", "b.csv", hard);
        assert_int_equal(open_all(&d), 0);
        assert_true(d.train.n + d.test.n == 20 && d.train.n_files == 1);
        data_close(&d);
    }
    put_table("d.test.csv", 30, 4);
    link_to("a.csv", "d.test.csv",
            /* A held-out file that also has another name must not be used for training under that
             * name. */
            false);
    link_to("e.test.csv", "d.test.csv", true);
    assert_int_equal(open_all(&d), 0);
    assert_true(d.train.n == 20 && d.test.n == 4);
    data_close(&d);
    scratch_remove(&s, "b.csv");
    scratch_remove(&s, "c.csv");
    assert_true(open_all(&d) < 0);
    assert_non_null(strstr(error,
                           "found no file to train on, expected at least one (held out because "
                           "of their names: 2 files; other files: 1, which are duplicates"));
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
