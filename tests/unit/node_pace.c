/* tests/unit/node_pace.c -- tests of peer/node/edge/pace.h: local steps in proportion to the speed
 * of each peer. */
#include "peer/node/edge/pace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PEERS = 16, AVERAGE = 10, MOST = 40, BEATS = 400 };

/* Simulates one round of a peer whose local step takes `step_us` microseconds. */
static void work(struct pace *p, double step_us)
{
    uint32_t n = pace_steps(p, AVERAGE, MOST);
    pace_worked(p, n, (int64_t)(n * step_us));
}

/* In a ring one peer is five times slower than the others. After a while all peers need about the
 * same time for a round, and the mean number of local steps is AVERAGE. */
static void the_slow_does_less(void **state)
{
    (void)state;
    struct pace p[PEERS] = {{0}};
    double step_us[PEERS], longest = 0, shortest = INFINITY, sum = 0;
    for (int i = 0; i < PEERS; i++)
        step_us[i] = i == 3 ? 5000 : 1000;
    for (int k = 0; k < BEATS; k++)
        for (int i = 0; i < PEERS; i++) {
            work(&p[i], step_us[i]);
            pace_heard(&p[i], p[(i + 1) % PEERS].mean);
            pace_heard(&p[i], p[(i + PEERS - 1) % PEERS].mean);
        }
    for (int i = 0; i < PEERS; i++) {
        uint32_t n = pace_steps(&p[i], AVERAGE, MOST);
        sum += n;
        longest = fmax(longest, n * step_us[i]);
        shortest = fmin(shortest, n * step_us[i]);
    }
    assert_int_equal(pace_steps(&p[3], AVERAGE, MOST), 2);
    /* The peers still need slightly different times for a round. Each peer does a whole number of
     * local steps, and one step of the slow peer is long. */
    assert_true(shortest > 0.75 * longest);
    assert_true(fabs(sum / PEERS - AVERAGE) < 1);
    for (int k = 0; k < BEATS; k++) /* The peer that was slow is now as fast as the others. */
        for (int i = 0; i < PEERS; i++) {
            work(&p[i], 1000);
            pace_heard(&p[i], p[(i + 1) % PEERS].mean);
        }
    for (int i = 0; i < PEERS; i++)
        assert_int_equal(pace_steps(&p[i], AVERAGE, MOST), AVERAGE);
}

/* Without own measurements or reports of neighbours, a peer makes the average number of local
 * steps. */
static void without_word_it_does_the_average(void **state)
{
    (void)state;
    struct pace p = {0};
    assert_int_equal(pace_steps(&p, AVERAGE, MOST), AVERAGE);
    pace_heard(&p, 1e6);
    assert_int_equal(pace_steps(&p, AVERAGE, MOST), AVERAGE);
    pace_worked(&p, 10, 5000);
    assert_int_equal(pace_steps(&p, AVERAGE, MOST), AVERAGE);
    pace_heard(&p, 0);
    assert_int_equal(pace_steps(&p, AVERAGE, MOST), AVERAGE);
    pace_worked(&p, 10, 0); /* A coarse clock measures 0 us for 10 local steps. */
    assert_true(pace_steps(&p, AVERAGE, MOST) >= 1);
}

static void a_liar_moves_it_within_bounds(void **state)
{
    (void)state;
    struct pace fast = {0}, slow = {0};
    for (int k = 0; k < BEATS; k++) {
        work(&fast, 1000);
        work(&slow, 1000);
        pace_heard(&fast, 3e38);
        pace_heard(&slow, 1e-38);
    }
    assert_int_equal(pace_steps(&fast, AVERAGE, MOST), 1);
    assert_int_equal(pace_steps(&slow, AVERAGE, MOST), MOST);
    /* From here on, the neighbours report their true speed. */
    for (int k = 0; k < BEATS / 10; k++) {
        pace_heard(&fast, 1000);
        pace_heard(&slow, 1000);
    }
    assert_int_equal(pace_steps(&fast, AVERAGE, MOST), AVERAGE);
    assert_int_equal(pace_steps(&slow, AVERAGE, MOST), AVERAGE);
}

static void ways_weigh_alike(void **state)
{
    (void)state;
    assert_true(pace_weight(10, 10) == 1);
    assert_true(pace_weight(20, 10) == 0.5);
    assert_true(pace_weight(8, 10) == 1.25);
    /* The ratio 10 / 2 = 5 is limited to the largest weight, 2. */
    assert_true(pace_weight(2, 10) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slow_does_less),
        cmocka_unit_test(without_word_it_does_the_average),
        cmocka_unit_test(a_liar_moves_it_within_bounds),
        cmocka_unit_test(ways_weigh_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
