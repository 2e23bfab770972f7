/* tests/unit/sim_trust.c -- honest peers that were behind the others. Such a peer and the others
 * must not distrust each other, and all must end well.
 *
 * Peer i minimises |x - c_i|^2 / 2 (sim_rig.h) by very small steps, so the models of early rounds
 * are near their start. The distance between a model after 2 rounds and a model after 100 rounds is
 * more than OUTLIER_FILTER_TIMES times the distance of the former from its start. */
#include "peer/node/state.h"
#include "sim_rig.h"
#include "test_share.h"

enum { DIM = 256, LATE = 1, TIMES = 4 };

struct scene
{
    uint32_t n;
    const char *topology;
    enum run_policy policy;
    uint32_t tolerate;
    uint64_t rounds; /* Number of rounds. A round takes 1 ms. */
    /* Times at which peer LATE stops, one for each run, in microseconds after its first round. */
    int64_t from_us[TIMES];
    int64_t for_us; /* Time for which peer LATE is stopped, in microseconds. */
};

static void run_until(struct rig *r, int64_t now_us)
{
    while (sim_now_us(r->world) < now_us && sim_step(r->world))
        ;
}

static void stand_still(struct rig *r, int64_t from_us, int64_t for_us)
{
    rig_open(r);
    while (rig_progress(r, LATE).round == 0)
        assert_true(sim_step(r->world));
    from_us += sim_now_us(r->world);
    run_until(r, from_us);
    sim_stop(r->world, LATE, true);
    run_until(r, from_us + for_us);
    sim_stop(r->world, LATE, false);
    rig_run(r, UINT64_MAX);
}

static void all_end_well_and_nobody_is_accused(const struct rig *r)
{
    rig_ended_well(r, 1e-3);
    for (uint32_t i = 0; i < r->config.n_peers; i++)
        assert_int_equal(rig_progress(r, i).distrusted, 0);
}

/* Returns how often peer LATE has closed an edge because its neighbour was far ahead. */
static uint32_t n_closed_by_late(const struct rig *r)
{
    const struct edges *es = sim_node(r->world, LATE)->edges;
    uint32_t n = 0;
    for (size_t i = 0; i < edges_count(es); i++)
        n += edges_at(es, i)->n_barred;
    return n;
}

static void open_scene(struct rig *r, const struct scene *s)
{
    rig_init(r, s->n, DIM, s->topology, "none", 0);
    r->eta = 0.001f;
    r->config.run.rounds = s->rounds;
    r->config.run.policy = s->policy;
    r->config.run.tolerate = s->tolerate;
    r->config.run.final_drift = 1e-3;
    r->config.run.quorum = 0.5;
}

/* A peer that looks like an outlier is excluded for some time and then tried again. Row 1: training
 * ends before this second try. Row 2: training continues for long after the second try. Row 3: the
 * late peer skips thousands of rounds, which the others do together. */
static const struct scene scenes[] = {
    {3, "ring", RUN_ASYNC, 0, 3000, {2000, 8000, 32000, 512000}, 800000},
    {4, "ring", RUN_ASYNC, 0, 20000, {2000, 8000, 32000, 512000}, 2000000},
    {6, "complete", RUN_SYNC, 1, 15000, {2000, 8000, 32000, 128000}, 8000000}};

static void who_was_behind_is_no_judge(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof scenes / sizeof scenes[0]; k++)
        for (size_t i = 0; i < TIMES; i++) {
            struct rig r;
            if (!test_share_has(k * TIMES + i))
                continue;
            open_scene(&r, &scenes[k]);
            stand_still(&r, scenes[k].from_us[i], scenes[k].for_us);
            all_end_well_and_nobody_is_accused(&r);
            /* After the longest time of training, the peer can judge the models of the others. */
            assert_true((n_closed_by_late(&r) > 0) == (i < TIMES - 1));
            rig_close(&r);
        }
}

/* Without lock step, peer 0 has done thousands of rounds when peer 1 has done some and peer 2 none.
 * Peer 1 has one neighbour that is far ahead and one that is not. All must end well. */
static void who_began_slowly_is_no_judge(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < TIMES; k++) {
        struct rig r;
        open_scene(&r, &(struct scene){3, "ring", RUN_ASYNC, 0, 3000, {0}, 0});
        rig_open(&r);
        sim_slow(r.world, 1, 100 << k);
        sim_slow(r.world, 2, 400 << k);
        run_until(&r, 500000);
        sim_slow(r.world, 1, 1);
        sim_slow(r.world, 2, 1);
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        rig_close(&r);
    }
}

/* All other peers have distrusted one peer with reason, but that peer has behaved normally since.
 * In the consensus phase the others must treat it as any other peer. */
static void who_has_done_well_since_is_as_any(void **state)
{
    struct rig r;
    uint64_t n = 0;
    (void)state;
    rig_init(&r, 6, DIM, "complete", "none", 0);
    r.eta = 0.05f;
    r.config.run.rounds = 10000;
    r.config.run.final_drift = 1e-3;
    for (size_t k = 0; k < DIM; k++)
        r.c[LATE * DIM + k] *= 1e4f;
    rig_open(&r);
    run_until(&r, 400000);
    for (uint32_t i = 0; i < 6; i++)
        n += rig_progress(&r, i).distrusted;
    assert_int_equal(n, 5);
    for (size_t k = 0; k < DIM; k++)
        r.c[LATE * DIM + k] *= 1e-4f;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

/* All peers train on the same data. In the consensus phase the model of one peer moves ten times as
 * far from the initial model as the others, so its neighbours refuse it. The neighbours must try it
 * again, and the run must end well. */
static void who_is_refused_in_the_last_phase_is_tried_again(void **state)
{
    struct rig r;
    uint64_t n = 0;
    (void)state;
    rig_init(&r, 8, DIM, "ring", "none", 0);
    r.eta = 0.05f;
    r.config.run.rounds = 200;
    r.config.run.final_drift = 1e-3;
    for (size_t k = 0; k < 8 * (size_t)DIM; k++)
        r.c[k] = 1;
    rig_open(&r);
    for (int64_t us = 0; rig_progress(&r, LATE).phase != NODE_CONSENSUS; us += 500)
        run_until(&r, us);
    float *x = (float *)(uintptr_t)rig_model(&r, LATE);
    for (size_t k = 0; k < DIM; k++)
        x[k] *= 10;
    rig_run(&r, UINT64_MAX);
    for (uint32_t i = 0; i < 8; i++)
        n += rig_progress(&r, i).distrusted;
    assert_in_range(n, 1, 4);
    rig_ended_well(&r, 1e-3);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_behind_is_no_judge),
        cmocka_unit_test(who_began_slowly_is_no_judge),
        cmocka_unit_test(who_has_done_well_since_is_as_any),
        cmocka_unit_test(who_is_refused_in_the_last_phase_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
