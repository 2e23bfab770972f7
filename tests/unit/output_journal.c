/* tests/unit/output_journal.c -- tests of peer/output/journal.h: lines of metrics.jsonl while the
 * disk is full. */
#include "peer/output/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/hearsay-journal-XXXXXX", path[64];
static struct journal j;

static int set_up(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    journal_close(&j);
    unlink(path);
    return rmdir(dir);
}

/* Limits the size of a file to `bytes`. RLIM_INFINITY: no limit. */
static void disk(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int put(const char *line)
{
    journal_put(&j, line);
    return journal_write(&j);
}

static void holds(const char *want)
{
    char text[4096];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(text, want);
}

/* The file may grow to `full` bytes. No line is ever torn. When the disk has room again, all lines
 * are written. */
static void test_full_disk(void **state)
{
    (void)state;
    for (int brief = 0; brief < 2; brief++)
        for (rlim_t full = 1; full <= 12; full++) {
            unlink(path);
            journal_open(&j, dir, JOURNAL_BYTES, brief);
            assert_int_equal(put("one"), 0);
            disk(full);
            int err = put("three");
            assert_int_equal(err, full < 10 ? -EFBIG : 0);
            holds(full < 10 ? "one\n" : "one\nthree\n");
            assert_int_equal(put("4"), -EFBIG * (full < 12));
            assert_int_equal(j.n_waiting, full < 10 ? 2 : full < 12);
            disk(RLIM_INFINITY);
            assert_int_equal(put("five"), 0);
            holds("one\nthree\n4\nfive\n");
            assert_int_equal(j.n_waiting + j.n_lost, 0);
            assert_int_equal(j.n_late, full < 10 ? 2 : full < 12);
            journal_close(&j);
        }
}

/* The disk has room for only some of the waiting lines. The lines that fit completely are written,
 * and count as late (`n_late`). */
static void test_part(void **state)
{
    (void)state;
    journal_open(&j, dir, JOURNAL_BYTES, false);
    disk(0);
    assert_int_equal(put("one"), -EFBIG);
    assert_int_equal(put("two"), -EFBIG);
    assert_int_equal(put("three"), -EFBIG);
    disk(10);
    assert_int_equal(journal_write(&j), -EFBIG);
    holds("one\ntwo\n");
    assert_int_equal(j.n_waiting, 1);
    assert_int_equal(j.n_late, 2);
    disk(RLIM_INFINITY);
    assert_int_equal(journal_write(&j), 0);
    holds("one\ntwo\nthree\n");
    assert_int_equal(j.n_late, 3);
    assert_int_equal(journal_write(&j), 0); /* No line is waiting, so nothing is written. */
}

/* If the memory for waiting lines is full, the oldest lines are kept and the new line is lost.
 * After the first lost line all further lines are lost, until the disk has room. */
static void test_bound(void **state)
{
    (void)state;
    journal_open(&j, dir, 9, false);
    disk(0);
    assert_int_equal(put("one"), -EFBIG);
    assert_int_equal(put("two"), -EFBIG);
    assert_int_equal(put("three"), -EFBIG);
    /* An empty line would fit on the disk, but is lost, because the line before it is lost. */
    assert_int_equal(put(""), -EFBIG);
    assert_int_equal(j.n_waiting, 2);
    assert_int_equal(j.n_lost, 2);
    disk(RLIM_INFINITY);
    assert_int_equal(journal_write(&j), 0);
    assert_int_equal(put("five"), 0);
    assert_int_equal(put("longer than it"), 0);
    assert_int_equal(put(NULL), 0);
    assert_int_equal(put("six"), 0);
    holds("one\ntwo\nfive\nsix\n");
    assert_int_equal(j.n_late, 2);
    assert_int_equal(j.n_lost, 4);
}

/* The directory does not exist, so lines wait. They are written when the directory appears. */
static void test_missing_directory(void **state)
{
    (void)state;
    assert_int_equal(rmdir(dir), 0);
    journal_open(&j, dir, JOURNAL_BYTES, false);
    assert_int_equal(put("one"), -ENOENT);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(put("two"), 0);
    holds("one\ntwo\n");
    assert_int_equal(j.n_late, 1);
}

static void test_closed(void **state)
{
    (void)state;
    journal_open(&j, NULL, 0, false);
    assert_int_equal(put("one"), 0);
    assert_int_equal(j.n_waiting + j.n_lost, 0);
    journal_open(&j, dir, JOURNAL_BYTES, false);
    assert_int_equal(put("one"), 0);
    disk(0);
    assert_int_equal(put("two"), -EFBIG);
    disk(RLIM_INFINITY);
    journal_close(&j);
    assert_int_equal(j.n_lost, 1);
    holds("one\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
