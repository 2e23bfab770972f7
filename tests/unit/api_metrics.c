/* tests/unit/api_metrics.c -- the option "metrics" of libhearsay: an address in use is refused,
 * signals still go to the program's own thread, and a simulation refuses the option. */
#include "tests/unit/api_rig.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>

static char page[96]; /* HOST:PORT of the metrics page, from the peer's last message about it. */

static void on_note(void *self, int level, const char *text)
{
    (void)self, (void)level;
    (void)sscanf(text, "a live page is at http://%95[0-9.:]", page);
}

static void open_one(struct rig_peer *p, const char *key, const char *metrics)
{
    char text[320];
    snprintf(text, sizeof text, "key=%s rounds=1000000 min-peers=1 listen=127.0.0.1:0 metrics=%s",
             key, metrics);
    rig_init(p, 0, false, text);
    assert_int_equal(hearsay_on_note(p->h, on_note, NULL), HEARSAY_OK);
}

/* Returns the set of signals that a thread of this process blocks. */
static unsigned long long blocked(const char *task)
{
    char path[128], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        (void)sscanf(line, "SigBlk: %llx", &mask);
    if (f != NULL)
        fclose(f);
    return mask;
}

static int count_threads(unsigned long long with)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks != NULL && (e = readdir(tasks)) != NULL;)
        n += e->d_name[0] != '.' && (blocked(e->d_name) & with) == with;
    if (tasks != NULL)
        closedir(tasks);
    return n;
}

static void test_an_address_is_taken_once(void **state)
{
    struct rig_peer a, b;
    char key[64];
    (void)state;
    rig_key(key);
    open_one(&a, key, "0");
    assert_int_equal(hearsay_open(a.h), HEARSAY_OK);
    assert_int_equal(hearsay_wait(a.h, -1), HEARSAY_OK);
    assert_int_equal(strncmp(page, "127.0.0.1:", 10), 0);
    open_one(&b, key, page);
    assert_int_equal(hearsay_open(b.h), HEARSAY_USAGE);
    assert_non_null(strstr(hearsay_error(b.h), "--metrics: cannot listen on 127.0.0.1:"));
    assert_int_equal(hearsay_set(b.h, "metrics", "0"), HEARSAY_OK);
    /* The failed hearsay_open() has no lasting effect, so the next one succeeds. */
    assert_int_equal(hearsay_open(b.h), HEARSAY_OK);
    hearsay_close(a.h);
    hearsay_close(b.h);
    unlink(key);
}

static void test_signals_are_the_programs(void **state)
{
    struct rig_peer p;
    char key[64];
    (void)state;
    rig_key(key);
    if (count_threads(0) != 1)
        skip(); /* The test needs /proc and a process with one thread. */
    open_one(&p, key, "0");
    assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
    assert_int_equal(hearsay_wait(p.h, -1), HEARSAY_OK);
    int n = count_threads(0);
    /* The process has at least the threads of the caller, the peer, its worker and the metrics
     * page. */
    assert_true(n >= 4);
    assert_int_equal(count_threads(1ULL << (SIGTERM - 1) | 1ULL << (SIGINT - 1)), n - 1);
    hearsay_close(p.h);
    unlink(key);
}

static void test_a_simulation_serves_nothing(void **state)
{
    struct rig_peer p;
    (void)state;
    rig_init(&p, 0, false, "rounds=5 metrics=0");
    assert_int_equal(hearsay_open_simulated(&p.h, 1, NULL), HEARSAY_USAGE);
    assert_non_null(strstr(hearsay_error(p.h), "metrics"));
    hearsay_close(p.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_is_taken_once),
        cmocka_unit_test(test_signals_are_the_programs),
        cmocka_unit_test(test_a_simulation_serves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
