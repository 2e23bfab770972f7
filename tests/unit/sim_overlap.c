/* tests/unit/sim_overlap.c -- the option --overlap 1: deltas are exchanged during the local
 * steps.
 *
 * Tests how long rounds take, how much the drift grows, and that the mean is kept. sim_choco.c
 * tests that the result is delayed mixing, and sim_resume.c that a run continues after a
 * restart. */
#include "peer/node/inspect.h"
#include "sim_rig.h"

static uint64_t seed_given(void)
{
    const char *given = getenv("SEED");
    return given != NULL ? strtoull(given, NULL, 10) : 1;
}

/* ---- time ---- */

enum { STEP_US = 1000, ROUNDS = 200 };

/* Returns the simulated time that a training round takes, in units of a local step. */
static double round_steps(uint32_t overlap, uint32_t local_steps, int64_t latency_us,
                          double bytes_per_s, bool sessions)
{
    struct rig r;
    rig_init(&r, 6, 500, "ring", "none", 0);
    r.eta = 0.05f;
    r.config.sessions = sessions;
    r.config.step_us = STEP_US;
    r.config.latency_us = latency_us;
    r.config.bytes_per_s = bytes_per_s;
    r.config.run.rounds = ROUNDS;
    r.config.run.local_steps = local_steps;
    r.config.run.overlap = overlap;
    r.config.run.quorum = 0.5;
    rig_open(&r);
    int64_t begun_us = 0;
    /* Rounds before this one are not timed, because the run is still starting. */
    uint64_t begun = 10, n;
    do {
        if (!sim_step(r.world))
            fail_msg("the run ended before round %d", ROUNDS);
        n = rig_progress(&r, 0).round;
        if (n == begun && begun_us == 0)
            begun_us = sim_now_us(r.world);
    } while (n < ROUNDS);
    double us = (double)(sim_now_us(r.world) - begun_us) / (double)(ROUNDS - begun);
    rig_close(&r);
    return us / STEP_US;
}

/* With overlap, a round takes as long as its local steps or the transfer of its delta, whichever is
 * longer. Without overlap, a round takes the sum of both times. In a network with sessions, the
 * simulated job that mixes models takes another quarter of a local step. */
static void rounds_take_the_longer(void **state)
{
    static const struct
    {
        uint32_t steps;
        int64_t latency_us;
        double bytes_per_s, way; /* way: transfer time of a delta, in units of a local step. */
        bool sessions;
    } rows[] = {{10, 4000, 0, 4, false},  {10, 4000, 0, 4, true},     {1, 4000, 0, 4, false},
                {4, 12000, 0, 12, true},  {10, 0, 400e3, 5.49, true}, {2, 0, 400e3, 5.49, false},
                {10, 9500, 0, 9.5, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double took[2], steps = rows[i].steps, way = rows[i].way;
        for (uint32_t overlap = 0; overlap < 2; overlap++)
            took[overlap] = round_steps(overlap, rows[i].steps, rows[i].latency_us,
                                        rows[i].bytes_per_s, rows[i].sessions);
        print_message("%2g steps, %4g of way: a round takes %.2f, with --overlap %.2f\n", steps,
                      way, took[0], took[1]);
        double longer = (steps > way ? steps : way) + (rows[i].sessions ? 0.25 : 0);
        if (!(fabs(took[0] - steps - way) <= 0.35))
            fail_msg("row %zu: %g without overlap", i, took[0]);
        if (!(fabs(took[1] - longer) <= 0.1))
            fail_msg("row %zu: %g with overlap, expected %g", i, took[1], longer);
    }
}

/* ---- drift ---- */

enum { PEERS = 16, DIM = 96, DRIFT_ROUNDS = 400 };

static float velocity[PEERS][DIM];

/* Makes local steps with momentum 0.9 and with different noise in each step. */
static void momentum_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                           struct trainer_report *report)
{
    struct rig_peer *p = self;
    struct rig *r = p->rig;
    float *v = velocity[p->index];
    const float *c = r->c + p->index * DIM;
    rig_record(r, p->index, x, round);
    for (uint32_t s = 0; s < n_steps; s++)
        for (size_t k = 0; k < DIM; k++) {
            float noise = r->noise * rig_gauss(p, round * n_steps + s, k);
            v[k] = 0.9f * v[k] + (x[k] - c[k] + noise);
            x[k] -= r->eta * v[k];
        }
    *report = (struct trainer_report){.n_samples = 1};
}

static int momentum_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                            char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    memset(velocity[peer], 0, sizeof velocity[peer]);
    t->steps = momentum_steps;
    return err;
}

/* Returns the mean squared distance of the models from their mean. The distance is measured before
 * local steps, and averaged over the second half of a run. */
static double drift2(const char *compress, uint32_t local_steps, uint32_t overlap)
{
    struct rig r;
    double sum = 0;
    rig_init(&r, PEERS, DIM, "ring", compress, 0);
    r.eta = 0.0035f;
    r.noise = 1;
    r.config.run.rounds = DRIFT_ROUNDS;
    r.config.run.local_steps = local_steps;
    r.config.run.overlap = overlap;
    r.config.step_us = 10000;
    r.config.make_trainer = momentum_trainer;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, (double)INFINITY);
    assert_int_equal(r.n_errors, DRIFT_ROUNDS);
    for (uint64_t t = DRIFT_ROUNDS / 2; t < r.n_errors; t++)
        sum += r.error2[t];
    for (uint32_t i = 0; i < PEERS; i++)
        assert_true(rig_progress(&r, i).diverged[0] == '\0');
    rig_close(&r);
    return sum / (DRIFT_ROUNDS - DRIFT_ROUNDS / 2) / PEERS;
}

/* With each codec, models may be only a little farther apart with overlap than without, and gamma
 * auto must still find a value. */
static void drift_is_a_little_larger(void **state)
{
    static const char *const codec[] = {"none", "qsgd:4", "sign", "topk:0.1"};
    const double most1 = 1.3, most10 = 1.7;
    (void)state;
    for (size_t i = 0; i < sizeof codec / sizeof codec[0]; i++) {
        double one = drift2(codec[i], 1, 0), ten = drift2(codec[i], 10, 0);
        double one_over = drift2(codec[i], 1, 1), ten_over = drift2(codec[i], 10, 1);
        print_message("%-10s squared drift %.3g -> %.3g (%.2f) with one step, %.3g -> %.3g (%.2f) "
                      "with ten\n",
                      codec[i], one, one_over, one_over / one, ten, ten_over, ten_over / ten);
        if (!(one_over <= most1 * one && ten_over <= most10 * ten))
            fail_msg("%s: %g, %g", codec[i], one_over / one, ten_over / ten);
    }
}

/* ---- the mean ---- */

/* Sessions are lost with their deltas. Each exchange must be done at both ends or at neither, so
 * that the sum of all models equals the sum of the local updates. No round may wait until a lost
 * announcement is repeated. */
static void the_mean_stands(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 8, 60, "ring", "topk:0.1", 0.2);
    rig_with_statistics(&r, 3, 3, 1);
    r.eta = 0.05f;
    r.noise = 0.3f;
    r.config.seed = seed_given();
    r.config.run.rounds = 500;
    r.config.run.final_drift = 1e-3;
    r.config.run.overlap = 1;
    r.config.run.local_steps = 3;
    r.config.step_us = 10 * 1000;
    /* The latency is longer than the local steps take, so that some exchanges are given up. */
    r.config.latency_us = 40 * 1000;
    r.config.cut_rate = 0.2;
    rig_open(&r);
    while (rig_progress(&r, 0).round < 450 && sim_step(r.world))
        ;
    double seconds = (double)sim_now_us(r.world) * 1e-6;
    sim_lose(r.world, 0);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    uint64_t exchanges = 0;
    for (uint32_t i = 0; i < 8; i++)
        exchanges += rig_progress(&r, i).exchanges / 2;
    assert_true(exchanges > 500 && exchanges < 8 * 400);
    double worst = 0;
    for (size_t k = 0; k < r.dim; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < 8; i++)
            sum += (double)rig_model(&r, i)[k];
        worst = fmax(worst, fabs(sum - r.moved[k]));
    }
    print_message("SEED=%llu: %llu exchanges in %.1f s; the sum of the models is off by %.2g\n",
                  (unsigned long long)r.config.seed, (unsigned long long)exchanges, seconds, worst);
    assert_true(worst <= 1e-3);
    /* The 450 rounds should take 25 s. Waiting until lost step announcements are repeated would add
     * 7 s. */
    assert_true(seconds <= 29);
    rig_close(&r);
}

/* ---- bytes on the network ---- */

enum { SAMPLES = 5 };

static uint64_t n_evaluated, n_held_up;

/* Counts in `n_evaluated` all evaluations of the model. Counts in `n_held_up` those in a job that
 * also commits an exchange. Such an evaluation delays the next delta, for which neighbours wait. */
static void evaluate(void *self, const float *x, uint64_t most, struct trainer_report *report)
{
    struct rig_peer *p = self;
    struct node_edge e;
    node_edge(sim_node(p->rig->world, p->index), 0, &e);
    n_evaluated += most == SAMPLES;
    n_held_up += most == SAMPLES && e.commits;
    rig_evaluate(self, x, most, report);
}

static int evaluating_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                              char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->evaluate = evaluate;
    return err;
}

/* Each requested evaluation must be made once. With overlap it must not delay a delta. */
static void evaluations_come_later(void **state)
{
    (void)state;
    for (uint32_t overlap = 0; overlap < 2; overlap++) {
        struct rig r;
        n_evaluated = n_held_up = 0;
        rig_init(&r, 3, 40, "ring", "none", 0);
        r.eta = 0.05f;
        r.config.make_trainer = evaluating_trainer;
        r.config.evaluate_every = 10;
        r.config.evaluate_samples = SAMPLES;
        r.config.run.overlap = overlap;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, (double)INFINITY);
        assert_int_equal(n_evaluated, 3 * 9);
        assert_int_equal(n_held_up, overlap ? 0 : 3 * 9);
        rig_close(&r);
    }
}

/* Peers must send as many bytes with overlap as without, because overlap needs no further
 * messages. */
static void nothing_more_is_sent(void **state)
{
    uint64_t bytes[2] = {0, 0};
    (void)state;
    for (uint32_t overlap = 0; overlap < 2; overlap++) {
        struct rig r;
        rig_init(&r, 6, 400, "ring", "qsgd:4", 0);
        r.eta = 0.05f;
        r.noise = 0.3f;
        r.config.run.rounds = 300;
        r.config.run.overlap = overlap;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, (double)INFINITY);
        for (uint32_t i = 0; i < 6; i++) {
            uint64_t sent, received;
            sim_totals(r.world, i, &sent, &received);
            bytes[overlap] += sent;
        }
        rig_close(&r);
    }
    print_message("bytes sent: %llu, with --overlap %llu\n", (unsigned long long)bytes[0],
                  (unsigned long long)bytes[1]);
    assert_true(fabs((double)bytes[1] / (double)bytes[0] - 1) <= 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_take_the_longer), cmocka_unit_test(drift_is_a_little_larger),
        cmocka_unit_test(the_mean_stands), cmocka_unit_test(evaluations_come_later),
        cmocka_unit_test(nothing_more_is_sent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
