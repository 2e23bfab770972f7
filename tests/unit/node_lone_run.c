/* tests/unit/node_lone_run.c -- tests of a node during its run: reset of edges, skipped rounds,
 * calls of its trainer, and the end. */
#include "tests/unit/node_lone_world.h"

#include "gossip/mixers/mixer.h"

enum { LOW_ID = 0x10, ROUNDS = 100000 };

/* Makes a node in the middle of its run with `n_actors` neighbours. */
static struct lone *training_with(uint32_t n_actors)
{
    struct lone *w = lone_new(n_actors, LOW_ID, ROUNDS);
    lone_open(w);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    for (uint32_t i = 0; i < n_actors; i++)
        assert_true(w->actor[i].n_delta > 10);
    return w;
}

/* ---- edges ---- */

/* The hash in a neighbour's delta shows that the replicas at the two ends of the edge differ. The
 * edge is reset, and the node sends an EDGE message without an epoch. */
static void test_mismatch_begins_anew(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    uint64_t epoch = a->delta.epoch;
    uint32_t n_edge = a->n_edge;
    lone_run(w, 5 * SECOND);
    assert_int_equal(a->n_edge, n_edge);
    assert_int_equal(lone_edge_to(w, 0)->resets, 0);
    a->lies = true;
    lone_run(w, 10 * SECOND);
    assert_false(a->lies);
    assert_int_equal(a->n_edge, n_edge + 1);
    assert_int_equal(a->edge.epoch, 0);
    assert_true(a->delta.epoch != epoch && a->delta.round < 1000);
    assert_int_equal(lone_edge_to(w, 0)->resets, 1);
    assert_int_equal(lone_progress(w).resets, 1);
    lone_close(w);
}

/* A node that resets an edge sends an EDGE message without waiting for one of the neighbour. The
 * neighbour may have noticed the same mismatch and wait, too. */
static void test_mismatch_is_said(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    uint32_t n_edge = a->n_edge;
    for (a->lies = true; a->lies;)
        lone_run(w, LONE_STEP_US / 4);
    a->follows = false;
    lone_run(w, SECOND);
    assert_int_equal(a->n_edge, n_edge + 1);
    assert_int_equal(a->edge.epoch, 0);
    lone_close(w);
}

/* The first delta of an epoch (a period between resets of an edge) contains the whole change since
 * the initial model of the run. At the start of the run there is no change yet, so the codec of the
 * run is used. After a reset the change is large, so the catch-up codec is used. */
static void test_catch_up_codec(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    struct lone_actor *a = &w->actor[0];
    assert_int_equal(a->first.codec, DELTA_RUN);
    uint64_t epoch = a->first.epoch;
    a->lies = true;
    lone_run(w, 10 * SECOND);
    assert_true(a->first.epoch != epoch);
    assert_int_equal(a->first.codec, DELTA_CATCHUP);
    assert_int_equal(a->delta.codec, DELTA_RUN);
    lone_close(w);
}

/* ---- rounds ---- */

/* All neighbours report that they are 500 rounds ahead. The node must continue in their round,
 * without training the rounds in between. */
static void test_rounds_are_caught_up(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    uint64_t round = lone_progress(w).round, n_steps = w->n_steps;
    w->actor[0].ahead = w->actor[1].ahead = 500;
    lone_run(w, 3 * LONE_STEP_US);
    w->actor[0].ahead = w->actor[1].ahead = 0;
    lone_run(w, SECOND);
    assert_true(lone_progress(w).round >= round + 500);
    assert_true(w->n_steps < n_steps + 100);
    lone_close(w);
}

/* Simulated peer 0 reports that it is 500 rounds ahead, and peer 1 is in step with the node. The
 * node must skip no round, because it must not believe a single claim. */
static void test_one_word_skips_nothing(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    uint64_t round = lone_progress(w).round;
    w->actor[0].ahead = 500;
    lone_run(w, 20 * LONE_STEP_US);
    struct node_progress p = lone_progress(w);
    assert_true(p.round > round && p.round < round + 30);
    assert_int_equal(p.rounds_skipped, 0);
    lone_close(w);
}

/* ---- the trainer ---- */

/* With --shard auto, the training samples of a dead member are assigned to the live members. */
static void test_shares_of_the_dead(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    assert_int_equal(w->n_keys, 3);
    w->actor[1].answers = false;
    lone_disconnect(w, w->actor[1].link, false);
    lone_run(w, 15 * SECOND);
    assert_int_equal(lone_progress(w).n_live, 2);
    assert_int_equal(w->n_keys, 2);
    lone_close(w);
}

/* If the trainer has no memory for a new share of the data, the node requests the share again with
 * the next job. */
static void test_share_is_asked_for_again(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    w->share_fails = 3;
    w->actor[1].answers = false;
    lone_disconnect(w, w->actor[1].link, false);
    lone_run(w, 15 * SECOND);
    assert_int_equal(w->share_fails, 0);
    assert_int_equal(w->n_keys, 2);
    uint64_t n_shares = w->n_shares;
    lone_run(w, SECOND);
    assert_int_equal(w->n_shares, n_shares);
    lone_close(w);
}

/* If the run has factor masking, the trainer is told which values of the model were sent. */
static void test_momentum_is_masked(void **state)
{
    (void)state;
    for (int masks = 0; masks < 2; masks++) {
        struct lone *w = lone_new(1, LOW_ID, ROUNDS);
        while (strcmp(mixer_all[w->run.mixer]->name, "average") != 0)
            w->run.mixer++;
        w->run.error_feedback = true;
        w->run.factor_masking = masks;
        lone_open(w);
        lone_run(w, 15 * SECOND);
        assert_true(lone_progress(w).round > 10);
        assert_int_equal(w->n_masked > 10, masks);
        lone_close(w);
    }
}

/* A delta contains the number of open edges of its sender, because the mixing weights depend on
 * that number. */
static void test_degree_is_of_open_edges(void **state)
{
    (void)state;
    struct lone *w = training_with(2);
    assert_int_equal(w->actor[0].delta.degree, 2);
    w->actor[1].answers = false;
    lone_disconnect(w, w->actor[1].link, false);
    lone_run(w, SECOND); /* After 1 s the neighbour still counts as alive. */
    assert_int_equal(lone_progress(w).n_live, 3);
    assert_int_equal(w->actor[0].delta.degree, 1);
    lone_close(w);
}

/* A loss that is not finite ends the run with an exit code other than 0, although the model is
 * finite. */
static void test_loss_not_finite(void **state)
{
    (void)state;
    static const float bad[] = {(float)NAN, (float)INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct lone *w = training_with(1);
        w->loss = bad[i];
        lone_run(w, 60 * SECOND);
        assert_true(w->over);
        assert_int_not_equal(w->exit_code, 0);
        assert_true(w->n_notes > 0);
        lone_close(w);
    }
}

/* A model with a value that is not finite counts as divergence, whatever the loss is. */
static void test_model_not_finite(void **state)
{
    (void)state;
    struct lone *w = training_with(1);
    w->pull = (float)INFINITY;
    lone_run(w, 60 * SECOND);
    assert_true(w->over);
    assert_int_not_equal(w->exit_code, 0);
    lone_close(w);
}

/* During training an evaluation uses at most evaluate_samples samples of the test set. The last
 * evaluation uses all samples: the trainer is given the limit 0. */
static void test_last_evaluation_takes_all(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, 1000);
    w->config.evaluate_every = 100;
    w->config.evaluate_samples = 7;
    lone_open(w);
    while (lone_progress(w).round < 950)
        lone_run(w, LONE_STEP_US);
    assert_int_equal(w->n_evaluations, 9);
    assert_int_equal(w->evaluated_most, 7);
    lone_run(w, 60 * SECOND);
    assert_true(w->over && w->wrote_model);
    assert_int_equal(w->exit_code, 0);
    assert_int_equal(w->n_evaluations, 10);
    assert_int_equal(w->evaluated_most, 0);
    lone_close(w);
}

/* ---- jobs that are long for a reason ---- */

/* A job must report progress once per second if its duration cannot be predicted from earlier jobs:
 * an evaluation, or the first local steps. Otherwise it would exceed its time limit and count as
 * hanging. Other jobs must not report progress. */
static void test_long_jobs_sign(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.evaluate_every = 10;
    w->config.sign = lone_signed;
    w->config.sign_self = w;
    w->n_batches = 20;
    lone_tick_us = SECOND / 4;
    lone_open(w);
    while (w->n_steps < 1)
        lone_run(w, LONE_STEP_US / 4);
    /* The job takes 5 s (20 batches of 0.25 s), and progress is reported once per second. */
    assert_in_range(w->n_signs, 4, 6);
    w->n_signs = 0;
    while (w->n_evaluations < 1) {
        assert_int_equal(w->n_signs, 0);
        lone_run(w, LONE_STEP_US / 4);
    }
    assert_in_range(w->n_signs, 4, 6);
    lone_tick_us = 0;
    lone_close(w);
}

/* A job that makes progress does not count as hanging, however long it takes. A job whose progress
 * stops does. */
static void test_signs_count(void **state)
{
    (void)state;
    for (int until = 0; until < 2; until++) {
        struct lone *w = lone_new(1, LOW_ID, ROUNDS);
        struct lone_actor *a = &w->actor[0];
        w->config.worker_limit_us = 3 * SECOND;
        lone_open(w);
        lone_run(w, 15 * SECOND);
        w->step_us = 40 * SECOND;
        while (w->work_us < w->now_us + 35 * SECOND)
            lone_run(w, LONE_STEP_US);
        w->step_us = LONE_STEP_US;
        while (w->work_us > w->now_us + SECOND) {
            struct node_event ev = {.type = NODE_SIGNED};
            if (until == 0 || w->work_us > w->now_us + 20 * SECOND)
                lone_step(w, &ev);
            lone_run(w, SECOND);
            assert_true(a->told_stalled || a->busy_ms <= 4500);
        }
        assert_int_equal(a->told_stalled, until == 1);
        assert_int_equal(lone_said(w, "has run one job"), until == 1);
        lone_run(w, 3 * SECOND);
        assert_int_equal(a->told.state, RECORD_RUNNING);
        lone_close(w);
    }
}

/* ---- limits ---- */

/* Limits for the length of received messages: the bulk limit has room for a model or a delta, and a
 * message head. */
static void test_bulk_limit(void **state)
{
    (void)state;
    enum { HEAD = WIRE_HEAD_MAX + WIRE_SKETCH_MAX };
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.found = false;
    lone_open(w);
    /* The size of the model is not known yet, so the length limit of bulk messages has no room for
     * a model. */
    assert_int_equal(node_bulk_max(w->node), HEAD);
    lone_hello_of(w, 0, lone_connect(w, 0, false, 0), &w->run);
    size_t model = LONE_DIM * sizeof(float);
    assert_true(node_run(w->node) != NULL);
    assert_true(node_bulk_max(w->node) >= HEAD + model);
    assert_true(node_bulk_max(w->node) <= HEAD + 2 * model);
    assert_int_equal(node_control_max(w->node), WIRE_CONTROL_MAX);
    lone_close(w);
}

/* ---- the consensus phase ---- */

/* In lock step a new measurement of the consensus distance (a window) starts with the consensus
 * phase, even if another one started shortly before. The new measurement must describe models that
 * no longer train. The tag of a sketch names the window to which the sketch belongs. */
static void test_window_of_the_last_phase(void **state)
{
    (void)state;
    for (uint64_t rounds = 40; rounds < 47; rounds++) {
        struct lone *w = lone_new(1, LOW_ID, rounds);
        struct lone_actor *a = &w->actor[0];
        w->run.final_drift = 1e-3;
        lone_open(w);
        lone_run(w, 60 * SECOND);
        assert_true(w->over);
        assert_int_equal(w->exit_code, 0);
        assert_true(a->window[0] != 0 && a->window[1] != 0);
        assert_int_equal((a->window[1] >> 16) - (a->window[0] >> 16), 1);
        lone_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mismatch_begins_anew),
        cmocka_unit_test(test_mismatch_is_said),
        cmocka_unit_test(test_catch_up_codec),
        cmocka_unit_test(test_rounds_are_caught_up),
        cmocka_unit_test(test_one_word_skips_nothing),
        cmocka_unit_test(test_shares_of_the_dead),
        cmocka_unit_test(test_share_is_asked_for_again),
        cmocka_unit_test(test_momentum_is_masked),
        cmocka_unit_test(test_degree_is_of_open_edges),
        cmocka_unit_test(test_loss_not_finite),
        cmocka_unit_test(test_model_not_finite),
        cmocka_unit_test(test_last_evaluation_takes_all),
        cmocka_unit_test(test_long_jobs_sign),
        cmocka_unit_test(test_signs_count),
        cmocka_unit_test(test_bulk_limit),
        cmocka_unit_test(test_window_of_the_last_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
