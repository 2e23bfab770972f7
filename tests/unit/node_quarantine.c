/* tests/unit/node_quarantine.c -- tests of peer/node/session/quarantine.c: a peer that violates the
 * protocol is kept away, for a longer time after each violation. */
#include "peer/node/session/sessions_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int64_t second = 1000 * 1000;

static const uint8_t *id(uint32_t n)
{
    static uint8_t of[WIRE_ID_BYTES];
    memset(of, 0, sizeof of);
    memcpy(of, &n, sizeof n);
    return of;
}

static void test_grows(void **state)
{
    static struct quarantine q;
    int64_t now = 5 * second;
    (void)state;
    assert_false(quarantine_holds(&q, id(1), now));
    for (int64_t s = 1; s <= 1024; s *= 2) {
        int64_t want = s < 300 ? s : 300;
        quarantine_add(&q, id(1), now);
        assert_true(quarantine_holds(&q, id(1), now + want * second - 1));
        assert_false(quarantine_holds(&q, id(2), now));
        now += want * second;
        assert_false(quarantine_holds(&q, id(1), now));
    }
    now += 600 * second; /* After 10 minutes without a violation the quarantine is short again. */
    quarantine_add(&q, id(1), now);
    assert_false(quarantine_holds(&q, id(1), now + second));
}

/* If the table is full, a new entry must replace the entry with the oldest violation. */
static void test_full(void **state)
{
    static struct quarantine q;
    (void)state;
    for (uint32_t i = 0; i < QUARANTINE_IDS; i++)
        quarantine_add(&q, id(i), 1 + i);
    quarantine_add(&q, id(0), QUARANTINE_IDS + 1);
    quarantine_add(&q, id(1000), QUARANTINE_IDS + 2);
    for (uint32_t i = 0; i < QUARANTINE_IDS; i++)
        assert_true(quarantine_holds(&q, id(i), QUARANTINE_IDS + 3) == (i != 1));
    assert_true(quarantine_holds(&q, id(1000), QUARANTINE_IDS + 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
