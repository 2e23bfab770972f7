/* tests/unit/http_hosts.c -- tests of peer/http/hosts.h: which Host headers are accepted. */
#include "peer/http/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    static const struct
    {
        const char *host;
        bool allowed;
    } row[] = {{"127.0.0.1", true},
               {"127.0.0.1:7200", true},
               {"10.9.8.7:80", true},
               {"[::1]:7200", true},
               {"[::1]", true},
               {"[fe80::1]:7200", true},
               {"localhost", true},
               {"LocalHost:7200", true},
               {"localhost.:7200", true},
               {"node7", true},
               {"NODE7:7200", true},
               {"a.example", true},
               {"x.a.example:7200", true},
               {"evil.example", false},
               {"localhost.evil.example", false},
               {"node7.evil.example", false},
               {"127.0.0.1.evil.example", false},
               {"xa.example", false},
               {"a.example.evil.example", false},
               {"2130706433", false},
               {"127.1", false},
               {"0x7f.0.0.1", false},
               {"[evil.example]", false},
               {"[::1]evil.example", false},
               {"[::1", false},
               {"localhost:7200@evil.example", false},
               {"localhost:evil", false},
               {"evil.example,localhost", false},
               {".", false},
               {":7200", false},
               {"", false}};
    struct hosts h = {.n = 0};
    hosts_add(&h, "node7");
    hosts_add(&h, "A.example.:7100");
    hosts_add(&h, "10.0.0.1:7100"); /* An IP address is always accepted and is not stored. */
    assert_int_equal(h.n, 2);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (hosts_allow(&h, row[i].host) != row[i].allowed)
            fail_msg("%s: expected %d", row[i].host, row[i].allowed);
}

static void test_limits(void **state)
{
    (void)state;
    static struct hosts h;
    char name[600];
    memset(name, 'a', sizeof name);
    name[HOSTS_NAME_MAX + 1] = '\0';
    hosts_add(&h, name);
    assert_int_equal(h.n, 0);
    assert_false(hosts_allow(&h, name));
    for (int i = 0; i < 2 * HOSTS_MAX; i++) {
        snprintf(name, sizeof name, "host-%d.example:7100", i);
        hosts_add(&h, name);
    }
    assert_int_equal(h.n, HOSTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
