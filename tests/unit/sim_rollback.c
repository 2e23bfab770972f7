/* tests/unit/sim_rollback.c -- the training of one peer diverges in the middle of a run, once or
 * twice.
 *
 * The steps of peer BAD set its model to NaN. No other peer may receive such a model. The peer must
 * roll back and continue. The second time it must end, and the others must continue without it. */
#include "nn/math/vec.h"
#include "peer/node/result/verdict.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 512, ROUNDS = 120, BAD = 3 };

static uint64_t at[2]; /* Rounds in which the training of peer BAD diverges. */
static uint64_t n_back, n_ends;

static void bad_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                      struct trainer_report *report)
{
    rig_steps(self, x, round, n_steps, report);
    report->loss = 1;
    for (size_t k = 0; k < DIM && (round == at[0] || round == at[1]); k++)
        x[k] = (float)NAN;
}

static int make(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    if (peer == BAD)
        t->steps = bad_steps;
    return err;
}

static void hear(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self;
    bool back = strstr(note->text, "training diverged") != NULL;
    assert_true(!back || peer == BAD);
    n_back += back;
    n_ends += strstr(note->text, "training has diverged before, so the run ends") != NULL;
}

static void run(struct rig *r, uint64_t first, uint64_t second)
{
    rig_init(r, PEERS, DIM, "torus", "topk:0.1", 0);
    r->eta = 0.05f;
    r->quiet = true;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.make_trainer = make;
    r->config.note = hear;
    at[0] = first;
    at[1] = second;
    n_back = n_ends = 0;
    rig_run(r, UINT64_MAX);
}

static void check_finite(const struct rig *r)
{
    for (uint32_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++)
            assert_true(isfinite(rig_model(r, i)[k]));
}

/* The training diverges once. All peers must end well, and each simulation must give the same
 * bits. */
static void once_it_goes_on(void **state)
{
    uint64_t hash[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig r;
        run(&r, 50, UINT64_MAX);
        assert_true(n_back == 1 && n_ends == 0);
        rig_ended_well(&r, 1e-3);
        check_finite(&r);
        hash[i] = vec_hash(rig_model(&r, 0), DIM);
        rig_close(&r);
    }
    assert_int_equal(hash[0], hash[1]);
}

/* The training diverges twice. The peer must end with its last good model, report how it ended, and
 * not hinder the others. */
static void twice_is_the_end(void **state)
{
    struct rig r;
    int code;
    (void)state;
    run(&r, 50, 53);
    assert_true(n_back == 2 && n_ends == 1);
    check_finite(&r);
    assert_true(sim_ended(r.world, BAD, &code));
    assert_int_equal(code, 3);
    struct node_progress p = rig_progress(&r, BAD);
    assert_int_equal(p.round, 54);
    assert_string_equal(p.diverged,
                        "the training loss ended at 1, having begun at 1; the model is of round 0");
    for (uint32_t i = 0; i < PEERS; i++) {
        if (i == BAD)
            continue;
        struct verdict_facts f;
        assert_true(sim_ended(r.world, i, &code));
        assert_int_equal(code, 0);
        p = rig_progress(&r, i);
        assert_true(p.rounds_done == ROUNDS && p.settle_rounds < 500);
        node_facts(sim_node(r.world, i), &f);
        assert_true(f.n_among == PEERS - 1 && f.n_failed == 1 && f.n_members == PEERS);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_it_goes_on),
        cmocka_unit_test(twice_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
