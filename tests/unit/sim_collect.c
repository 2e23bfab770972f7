/* tests/unit/sim_collect.c -- mixer allreduce in simulated nodes: the models are the mean, bytes
 * equal the formula, and faults (deaths, lost sessions, stopped peers). */
#include "gossip/collectives/collective.h"
#include "gossip/mixers/mixer.h"
#include "sim_rig.h"
#include "test_share.h"

enum {
    DIM = 211,
    ROUNDS = 30,
    MOST = 1000 * 1000 /* Largest number of simulated events. No run of this file reaches it. */
};

static uint32_t allreduce(void)
{
    for (uint32_t i = 0; mixer_all[i] != NULL; i++)
        if (strcmp(mixer_all[i]->name, "allreduce") == 0)
            return i;
    fail_msg("no allreduce");
    return 0;
}

static void rig_collective(struct rig *r, uint32_t n, size_t dim, uint32_t collective)
{
    rig_init(r, n, dim, "complete", "none", 0);
    memcpy(r->config.run.final_compress, r->config.run.compress, sizeof r->config.run.compress);
    r->config.run.mixer = allreduce();
    r->config.run.collective = collective;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.jitter_us = 2000;
    r->eta = 0.1f;
}

/* Checks that the final model is the result of gradient descent on the mean of the losses. Each
 * step is `x <- mean of x - eta (x - c_i)` over the peers i. */
static void is_gradient_descent(const struct rig *r)
{
    uint32_t n = r->config.n_peers;
    for (size_t k = 0; k < r->dim; k++) {
        double c = 0, x = 0;
        for (uint32_t i = 0; i < n; i++)
            c += (double)r->c[i * r->dim + k] / n;
        for (uint64_t t = 0; t < ROUNDS; t++)
            x -= (double)r->eta * (x - c);
        if (!(fabs((double)rig_model(r, 0)[k] - x) <= 1e-5))
            fail_msg("float %zu is %g, expected %g", k, (double)rig_model(r, 0)[k], x);
    }
}

static void test_models_are_the_mean(void **state)
{
    static const uint32_t peers[] = {1, 2, 3, 5, 8};
    (void)state;
    for (uint32_t c = 0; collective_all[c] != NULL; c++)
        for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
            struct rig r;
            if (!test_share_has(c * 5 + i))
                continue;
            rig_collective(&r, peers[i], DIM, c);
            rig_run(&r, MOST);
            rig_ended_well(&r, 0);
            rig_all_equal(&r);
            is_gradient_descent(&r);
            rig_close(&r);
        }
}

/* Running statistics are averaged with the parameters, and every averaged variance must stay
 * positive. */
static void test_statistics(void **state)
{
    struct rig r;
    (void)state;
    rig_collective(&r, 4, DIM, 0);
    rig_with_statistics(&r, 5, 5, 10);
    rig_run(&r, MOST);
    rig_ended_well(&r, 0);
    rig_all_equal(&r);
    for (size_t k = DIM + 5; k < DIM + 10; k++)
        assert_true(rig_model(&r, 0)[k] > 0);
    rig_close(&r);
}

/* Apart from framing and synchronisation, a peer must send as many bytes as the schedule of its
 * collective prescribes. */
static void test_bytes_are_the_formula(void **state)
{
    enum { N = 8, LARGE = 200 * 1000 };
    (void)state;
    for (uint32_t c = 0; collective_all[c] != NULL; c++) {
        struct rig r;
        rig_collective(&r, N, LARGE, c);
        rig_run(&r, MOST);
        rig_ended_well(&r, 0);
        for (uint32_t i = 0; i < N; i++) {
            double sent = (double)rig_progress(&r, i).bytes_sent;
            double want = 4.0 * ROUNDS * (double)collective_floats(collective_all[c], N, i, LARGE);
            if (!(sent >= want && sent <= 1.01 * want + 200e3))
                fail_msg("%s: peer-%u sent %g bytes, expected %g", collective_all[c]->name, i, sent,
                         want);
        }
        rig_close(&r);
    }
}

/* A peer dies at various times. The remaining peers must end with one model and do all rounds. */
static void test_deaths(void **state)
{
    enum { N = 5 };
    (void)state;
    for (uint32_t c = 0; collective_all[c] != NULL; c++)
        for (uint32_t dead = 0; dead < N; dead += 2) {
            struct rig r;
            rig_collective(&r, N, DIM, c);
            r.config.seed = 1 + dead;
            r.config.run.quorum = 0.5;
            rig_open(&r);
            while (rig_progress(&r, dead).round < 3 + dead)
                assert_true(sim_step(r.world));
            uint64_t more = sim_events(r.world) + 7 * (c + 1) + 3 * dead;
            rig_run(&r, more); /* The run is stopped in the middle of an all-reduce. */
            sim_kill(r.world, dead);
            rig_run(&r, MOST);
            rig_ended_well(&r, 0);
            rig_all_equal(&r);
            rig_close(&r);
        }
}

/* A peer is killed and restarted before its absence is noticed. All peers must end with equal
 * models. */
static void test_restarts(void **state)
{
    (void)state;
    for (uint32_t c = 0; collective_all[c] != NULL; c++)
        for (uint64_t at = 2; at < 20; at += 3) {
            struct rig r;
            if (!test_share_has(c * 6 + at / 3))
                continue;
            rig_collective(&r, 5, DIM, c);
            r.config.seed = 1 + at;
            rig_open(&r);
            while (rig_progress(&r, 2).round < at)
                assert_true(sim_step(r.world));
            rig_run(&r, sim_events(r.world) + 5 * at);
            sim_kill(r.world, 2);
            rig_run(&r, sim_events(r.world) + 40 * at);
            assert_int_equal(sim_restart(r.world, 2), 0);
            rig_run(&r, MOST);
            rig_ended_well(&r, 0);
            rig_all_equal(&r);
            rig_close(&r);
        }
}

/* Sessions break all the time. Messages that are lost with a session must be sent again. */
static void test_lost_sessions(void **state)
{
    (void)state;
    for (uint32_t c = 0; collective_all[c] != NULL; c++) {
        struct rig r;
        rig_collective(&r, 4, DIM, c);
        r.config.cut_rate = 0.02;
        rig_run(&r, MOST);
        rig_ended_well(&r, 0);
        rig_all_equal(&r);
        is_gradient_descent(&r);
        rig_close(&r);
    }
}

/* A peer is stopped. The others must report that they wait for a peer, and at least one must name
 * the stopped peer. When the stopped peer continues, all must end well. */
static void test_who_is_waited_for(void **state)
{
    enum { N = 4, STOPPED = 2 };
    (void)state;
    for (uint32_t c = 0; collective_all[c] != NULL; c++) {
        struct rig r;
        struct node_wait w;
        rig_collective(&r, N, DIM, c);
        rig_open(&r);
        while (rig_progress(&r, STOPPED).round < 5)
            assert_true(sim_step(r.world));
        const uint8_t *id = sim_id(r.world, STOPPED);
        sim_stop(r.world, STOPPED, true);
        int64_t until_us = sim_now_us(r.world) + 700 * 1000;
        while (sim_now_us(r.world) < until_us)
            assert_true(sim_step(r.world));
        uint32_t n_named = 0, n_waiting = 0;
        for (uint32_t i = 0; i < N; i++) {
            if (i == STOPPED)
                continue;
            node_wait(sim_node(r.world, i), &w);
            n_waiting += w.what == NODE_WAITS_NEIGHBOUR;
            n_named += w.what == NODE_WAITS_NEIGHBOUR && memcmp(w.id, id, WIRE_ID_BYTES) == 0;
        }
        if (n_waiting < N - 1 || n_named == 0)
            fail_msg("%s: %u of %d say that they wait, %u for whom it is", collective_all[c]->name,
                     n_waiting, N - 1, n_named);
        sim_stop(r.world, STOPPED, false);
        rig_run(&r, MOST);
        rig_ended_well(&r, 0);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_are_the_mean),   cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_bytes_are_the_formula), cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_lost_sessions),         cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_who_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
