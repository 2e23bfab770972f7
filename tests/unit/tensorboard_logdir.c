/* tests/unit/tensorboard_logdir.c -- places and files of running peers (peer/tensorboard/logdir). */
#include "peer/tensorboard/figures.h"
#include "peer/tensorboard/logdir.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char base[64];

static int enter(void **state)
{
    (void)state;
    strcpy(base, "/tmp/logdir-XXXXXX");
    return mkdtemp(base) == NULL || chdir(base) < 0;
}

static int leave(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", base);
    return chdir("/") < 0 || system(command) != 0;
}

static struct logdir_start start_of(const char *run, bool goes_on)
{
    return (struct logdir_start){.dir = ".",
                                 .name = "a",
                                 .run = run,
                                 .goes_on = goes_on,
                                 .step = 8,
                                 .wall_s = 1700000000.5,
                                 .pid = 7};
}

/* Open, close, and compare where it was. */
static void expect(const char *run, bool goes_on, double wall_s, const char *path)
{
    struct logdir l;
    struct logdir_start s = start_of(run, goes_on);
    s.wall_s = wall_s;
    assert_int_equal(logdir_open(&l, &s), 0);
    assert_string_equal(l.path, path);
    logdir_close(&l);
}

static size_t contents(const char *path, uint8_t bytes[4096])
{
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, bytes, 4096);
    close(fd);
    assert_true(n >= 0);
    return (size_t)n;
}

static void test_places(void **state)
{
    (void)state;
    uint8_t before[4096], after[4096], record[EVENT_RECORD_MAX];
    const char *first = "./a/events.out.tfevents.1700000000.r1.7";
    expect("r1", false, 1700000000.5, first);
    size_t n = contents(first, before);
    assert_int_equal(n, event_begin(record, 1700000000.5));
    assert_memory_equal(before, record, n);
    /* Begun anew, another run, another run gone on with: each has its own. */
    expect("r1", false, 1700000001, "./a@2/events.out.tfevents.1700000001.r1.7");
    expect("r2", false, 1700000001, "./a@3/events.out.tfevents.1700000001.r2.7");
    expect("r3", true, 1700000001, "./a@4/events.out.tfevents.1700000001.r3.7");
    /* Gone on with: the newest place of that run, behind the first record what is done once more. */
    expect("r1", true, 1700000002, "./a@2/events.out.tfevents.1700000002.r1.7");
    size_t head = event_begin(record, 1700000002);
    n = contents("./a@2/events.out.tfevents.1700000002.r1.7", after);
    size_t again = event_again(record, 1700000002, 8);
    assert_int_equal(n, head + again);
    assert_memory_equal(after + head, record, again);
    /* What was there is as it was. */
    n = contents(first, after);
    assert_memory_equal(before, after, n);
}

/* The very same file is never written again, and files of others are in nobody's way. */
static void test_taken(void **state)
{
    (void)state;
    struct logdir l;
    struct logdir_start s = start_of("r1", true);
    expect("r1", false, s.wall_s, "./a/events.out.tfevents.1700000000.r1.7");
    assert_int_equal(logdir_open(&l, &s), -EEXIST);
    assert_int_equal(l.fd, -1);
    assert_int_equal(mkdir("a@2", 0700), 0);
    assert_int_equal(symlink("nowhere", "a@3"), 0);
    expect("r1", false, s.wall_s, "./a@4/events.out.tfevents.1700000000.r1.7");
    s.dir = "missing";
    assert_int_equal(logdir_open(&l, &s), -ENOENT);
    char name[LOGDIR_PATH_MAX];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    s.name = name;
    assert_int_equal(logdir_open(&l, &s), -ENAMETOOLONG);
}

static void limit_files(rlim_t most)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = most < r.rlim_max ? most : r.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* Half of a record fits: it is cut off, and the next one can be read. */
static void test_full(void **state)
{
    (void)state;
    uint8_t record[EVENT_RECORD_MAX], head[EVENT_RECORD_MAX], bytes[4096];
    struct logdir l;
    struct logdir_start s = start_of("r1", false);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(0);
    assert_true(logdir_open(&l, &s) < 0);
    assert_int_equal(access("a", F_OK), -1); /* It has left no place behind. */
    limit_files(RLIM_INFINITY);
    assert_int_equal(logdir_open(&l, &s), 0);
    size_t n_head = event_begin(head, s.wall_s);
    size_t n = event_drift(record, 1.0, 3, 0.5, 0.25);
    limit_files((rlim_t)(n_head + n / 2));
    assert_int_equal(logdir_put(&l, record, n), -ENOSPC);
    assert_int_equal(contents(l.path, bytes), n_head);
    assert_true(logdir_put(&l, record, n) < 0);
    limit_files(RLIM_INFINITY);
    assert_int_equal(logdir_put(&l, record, 0), 0);
    assert_int_equal(logdir_put(&l, record, n), 0);
    assert_int_equal(contents(l.path, bytes), n_head + n);
    assert_memory_equal(bytes + n_head, record, n);
    logdir_close(&l);
    assert_int_equal(logdir_put(&l, record, n), -EBADF);
}

/* Each figure has a tag of its own, and what is not known has none. */
static void test_figures(void **state)
{
    (void)state;
    uint8_t record[EVENT_RECORD_MAX];
    double figure[EVENT_FIGURES], end[EVENT_ENDS];
    for (size_t i = 0; i < EVENT_FIGURES; i++)
        figure[i] = (double)NAN;
    assert_int_equal(event_round(record, 0.0, 1, figure), 0);
    size_t one = 0;
    for (size_t i = 0; i < EVENT_FIGURES; i++) {
        figure[i] = 1.0;
        size_t n = event_round(record, 0.0, 1, figure);
        assert_true(n > one && n <= EVENT_RECORD_MAX);
        one = n;
    }
    for (size_t i = 0; i < EVENT_ENDS; i++)
        end[i] = 1.0;
    assert_true(event_end_of_run(record, 0.0, 1, end) > 0);
    assert_int_equal(event_drift(record, 0.0, 1, (double)NAN, (double)NAN), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_places, enter, leave),
        cmocka_unit_test_setup_teardown(test_taken, enter, leave),
        cmocka_unit_test_setup_teardown(test_full, enter, leave),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
