/* tests/unit/uvdriver_signal_debounce.c -- tests which sequences of signals count as one request,
 * as two, or as none. */
#include "peer/uv/signal_debounce.h"
#include "tests/unit/uvdriver_fake.h"

#include <unistd.h>

static void test_twice(void **state)
{
    (void)state;
    /* The first signal comes near time 0, which must not count as the time of an earlier signal. */
    enum { BEGIN = 7 };
    static const struct
    {
        int number;
        int64_t at_us;
        bool echo;
    } row[] = {
        {SIGTERM, BEGIN, false},
        {SIGTERM, BEGIN, true},
        {SIGTERM, BEGIN + UV_TWICE_US - 1, true},
        /* A repeated signal counts as an echo only within UV_TWICE_US of the first signal. Echoes
         * do not extend that interval. */
        {SIGTERM, BEGIN + UV_TWICE_US, false},
        {SIGTERM, BEGIN + UV_TWICE_US + 1, true},
        /* A signal with another number counts as a new request. */
        {SIGINT, BEGIN + UV_TWICE_US + 2, false},
        {SIGINT, BEGIN + UV_TWICE_US + 3, true},
        {SIGINT, BEGIN + 3 * UV_TWICE_US, false},
    };
    struct uv_twice t = {0};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_int_equal(uv_twice(&t, row[i].number, row[i].at_us), row[i].echo);
}

/* Ctrl-C reaches a whole process group, and may arrive while a child writes its result. A child
 * must ignore it then. */
static void test_signals_at_the_end(void **state)
{
    (void)state;
    static struct fake alone, leashed;
    struct sigaction now;
    int leash[2];
    fake_init(&alone, 'a');
    fake_init(&leashed, 'l');
    assert_int_equal(pipe(leash), 0);
    alone.config.signals = leashed.config.signals = true;
    leashed.config.leash_fd = leash[0]; /* The driver takes over the file descriptor. */
    fake_open(&alone);
    fake_exit(&alone);
    FAKE_RUN_UNTIL(uv_driver_done(alone.driver));
    assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
    /* SIGTERM must not end a process that writes its result. */
    assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    fake_open(&leashed);
    fake_exit(&leashed);
    FAKE_RUN_UNTIL(uv_driver_done(leashed.driver));
    assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    fake_close(&alone);
    fake_close(&leashed);
    close(leash[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twice),
        cmocka_unit_test_setup_teardown(test_signals_at_the_end, fake_setup, fake_teardown),
    };
    if (!fake_descriptors(128))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
