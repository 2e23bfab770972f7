/* tests/unit/sim_late.c -- a peer that joins late must train with the learning rate of the run's
 * round, not with the learning rate of the first rounds. */
#include "nn/train/optimiser.h"
#include "sim_rig.h"

enum { PEERS = 5, LATE = 4, DIM = 50, ROUNDS = 1000, SECOND = 1000 * 1000 };

static const struct schedule schedule = {
    .kind = SCHEDULE_COSINE, .lr = 0.2, .warmup = 100, .rounds = ROUNDS};
/* First round, last round and number of rounds in which each peer trained. */
static uint64_t first[PEERS], last[PEERS], count[PEERS];
/* Learning rate of the peer's last steps. */
static double rate[PEERS];

/* Makes gradient steps on the loss |x - c|^2 / 2 and records the round. */
static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    const struct rig_peer *p = self;
    const float *c = p->rig->c + p->index * DIM;
    double lr = schedule_lr(&schedule, (double)round);
    for (uint32_t s = 0; s < n_steps; s++)
        for (size_t k = 0; k < DIM; k++)
            x[k] -= (float)lr * (x[k] - c[k]);
    if (count[p->index]++ == 0)
        first[p->index] = round;
    else
        assert_true(round > last[p->index]);
    last[p->index] = round;
    rate[p->index] = lr;
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->steps = steps;
    return err;
}

static void run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us && sim_step(r->world))
        ;
}

/* Four peers train for 15 s, at 50 ms or more per round. Then a fifth peer starts for the first
 * time. The fifth peer must train in the round of the others and with their learning rate. */
static void late(const char *topology, enum run_policy policy)
{
    struct rig r;
    memset(count, 0, sizeof count);
    rig_init(&r, PEERS, DIM, topology, "qsgd:4", 0);
    r.config.make_trainer = make_trainer;
    r.config.step_us = 50 * 1000;
    r.config.run.min_peers = PEERS - 1;
    r.config.run.rounds = ROUNDS;
    r.config.run.policy = policy;
    r.config.run.final_drift = 1e-3;
    rig_open(&r);
    sim_kill(r.world, LATE);
    run_until(&r, 15 * SECOND);
    assert_int_equal(count[LATE], 0);
    uint64_t others = last[0];
    /* For the other peers, the warm-up of the learning rate is over. */
    assert_true(others > 150);
    assert_int_equal(sim_restart(r.world, LATE), 0);
    run_until(&r, 25 * SECOND);
    assert_true(count[LATE] > 0);
    assert_true(first[LATE] >= others);
    uint64_t behind = last[0] > last[LATE] ? last[0] - last[LATE] : last[LATE] - last[0];
    if (!(behind <= 20 && fabs(rate[0] - rate[LATE]) <= 0.01))
        fail_msg("%s: round %d at rate %g beside round %d at rate %g", topology, (int)last[LATE],
                 rate[LATE], (int)last[0], rate[0]);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

static void test_late(void **state)
{
    (void)state;
    late("ring", RUN_SYNC);
    late("complete", RUN_SYNC);
    late("ring", RUN_ASYNC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
