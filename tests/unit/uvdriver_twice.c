/* tests/unit/uvdriver_twice.c -- which signals are one request, and which are two. */
#include "peer/uv/twice.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_twice(void **state)
{
    (void)state;
    enum { BEGIN = 7 }; /* A clock may be young: what never came is no first signal. */
    static const struct
    {
        int number;
        int64_t at_us;
        bool echo;
    } row[] = {
        {SIGTERM, BEGIN, false},
        {SIGTERM, BEGIN, true},
        {SIGTERM, BEGIN + UV_TWICE_US - 1, true},
        {SIGTERM, BEGIN + UV_TWICE_US, false}, /* Echoes do not put it off. */
        {SIGTERM, BEGIN + UV_TWICE_US + 1, true},
        {SIGINT, BEGIN + UV_TWICE_US + 2, false}, /* Another kind is another request. */
        {SIGINT, BEGIN + UV_TWICE_US + 3, true},
        {SIGINT, BEGIN + 3 * UV_TWICE_US, false},
    };
    struct uv_twice t = {0};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_int_equal(uv_twice(&t, row[i].number, row[i].at_us), row[i].echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
