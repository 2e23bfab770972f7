/* tests/unit/sim_settle.c -- the last phase ends where it should, and not much later. */
#include "sim_rig.h"

/* Models that drew near slowly would show an end that comes too early: each beat of the last phase
 * brings them closer by two per cent or so. The exact distance is under the target, and not by
 * so much that the phase could have ended long before. */
static void slow_end(const char *topology, uint32_t n, double gamma, double target)
{
    struct rig r;
    struct consensus c;
    rig_init(&r, n, 400, topology, "fp16", gamma);
    snprintf(r.config.run.final_compress, sizeof r.config.run.final_compress, "fp16");
    r.config.run.rounds = 8;
    r.config.run.final_drift = target;
    rig_open(&r);
    rig_run(&r, 2 * 1000 * 1000);
    rig_ended_well(&r, target);
    sim_drift(r.world, &c);
    print_message("%s of %u: target %g, exact %.3g, %d rounds\n", topology, n, target,
                  c.trained.relative, (int)rig_progress(&r, 0).settle_rounds);
    assert_true(rig_progress(&r, 0).settle_rounds >= 10);
    assert_true(c.trained.relative > target / 10);
    rig_close(&r);
}

static void test_slow_end(void **state)
{
    (void)state;
    slow_end("ring", 8, 0.1, 0.3);
    slow_end("ring", 8, 0.1, 0.1);
    slow_end("ring", 6, 0.05, 0.2);
    slow_end("complete", 4, 0.02, 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
