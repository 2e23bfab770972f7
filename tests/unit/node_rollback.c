/* tests/unit/node_rollback.c -- tests of peer/node/step/rollback.h: training that diverges goes
 * back to the last good model, and other training is not disturbed. */
#include "peer/node/step/rollback.h"

#include <assert.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { TRAINED = 3, N = 4 };

/* State of a trainer: one counter. The tests set the trainer's loss on held-out samples. */
static uint64_t count;
static double held_out_loss;
static uint64_t n_held_out, n_evaluated;

static void evaluate(void *self, const float *x, uint64_t most, struct trainer_report *r)
{
    (void)self, (void)x;
    assert_in_range(most, 1, 64);
    n_evaluated++;
    *r = (struct trainer_report){.loss = held_out_loss, .n_samples = n_held_out};
}

static void keep(void *self, struct state *s)
{
    (void)self;
    state_section(s, "count");
    state_u64(s, &count);
}

static const struct segment segments[] = {{.name = "x", .n = TRAINED, .trained = true},
                                          {.name = "var", .offset = TRAINED, .n = N - TRAINED}};
static const struct trainer trainer = {
    .n_params = N, .segments = segments, .n_segments = 2, .evaluate = evaluate, .state = keep};

static struct rollback begin(void)
{
    struct rollback r;
    assert_int_equal(rollback_open(&r, &trainer), 0);
    count = n_evaluated = 0;
    n_held_out = 10;
    held_out_loss = 1;
    return r;
}

/* Trains one round, after which every parameter is `v`. Returns whether this led to a rollback. */
static bool train(struct rollback *r, uint64_t round, float *x, float v, double loss)
{
    struct trainer_report report = {.loss = loss, .n_samples = 100};
    rollback_mark(r, x, round);
    for (size_t i = 0; i < N; i++)
        x[i] = v;
    count++;
    return rollback_look(r, x, &report);
}

/* Trains the rounds 0 to `rounds` - 1 with a loss of 2. The parameters grow slowly, beginning at
 * 1. */
static void good(struct rollback *r, float *x, uint64_t rounds)
{
    for (uint64_t round = 0; round < rounds; round++)
        assert_false(train(r, round, x, 1 + (float)round / 1000, 2));
}

static void test_goes_back(void **state)
{
    static const struct
    {
        float v;
        double loss;
        bool away;
    } rows[] = {{1, (double)NAN, true}, {1, (double)INFINITY, true},
                {NAN, 2, true},         {INFINITY, 2, true},
                {1e20f, 2, true},       {1, 2 + 0.2 + 1, false},
                {1, 99 * 3.2, false},   {1, 101 * 3.2, true},
                {1, -1e9, false},       {1.5f, 2, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rollback r = begin();
        float x[N] = {1, 1, 1, 1};
        good(&r, x, 70); /* The rollback module copies the model in rounds 0 and 64. */
        assert_int_equal(r.round, 64);
        if (train(&r, 70, x, rows[i].v, rows[i].loss) != rows[i].away)
            fail_msg("%g, loss %g", (double)rows[i].v, rows[i].loss);
        assert_int_equal(r.n, rows[i].away);
        /* Each parameter was 1.063 before round 64. */
        float want = rows[i].away ? 1.063f : rows[i].v;
        for (size_t k = 0; k < N; k++)
            assert_true(x[k] == want);
        assert_int_equal(count, rows[i].away ? 64 : 71);
        rollback_close(&r);
    }
}

/* A running statistic of the model that is not finite counts as divergence, too. Statistics are not
 * part of the consensus distance, so no other check would notice it. */
static void test_statistics(void **state)
{
    struct rollback r = begin();
    float x[N] = {1, 1, 1, 1};
    struct trainer_report report = {.loss = 2, .n_samples = 100};
    (void)state;
    rollback_mark(&r, x, 0);
    x[N - 1] = (float)NAN;
    assert_true(rollback_look(&r, x, &report));
    assert_true(x[N - 1] == 1);
    rollback_close(&r);
}

/* The learning rate is far too large. After the first step the model is finite, and so is the
 * training loss, which was measured before that step. The loss on held-out samples shows the
 * divergence. */
static void test_the_first_step(void **state)
{
    struct rollback r = begin();
    float x[N] = {0};
    (void)state;
    held_out_loss = 1e6;
    assert_true(train(&r, 0, x, 1e6f, 2));
    assert_true(x[0] == 0 && r.loss == 1e6 && r.first == 2);
    held_out_loss = 2;
    /* The previous model is all zeros, so every change is large in relation to it. The held-out
     * loss shows that this round did not diverge. */
    assert_false(train(&r, 1, x, 0.01f, 2));
    assert_int_equal(n_evaluated, 2);
    assert_false(train(&r, 2, x, 0.02f, 2));
    assert_false(train(&r, 3, x, 0.3f, 2));
    assert_int_equal(n_evaluated, 2);
    held_out_loss = (double)NAN;
    n_held_out = 0; /* Without held-out samples there is no held-out loss to judge by. */
    assert_false(train(&r, 4, x, 100, 2));
    assert_int_equal(n_evaluated, 3);
    n_held_out = 1;
    assert_true(train(&r, 5, x, 1e6f, 2));
    assert_int_equal(r.n, 2);
    rollback_close(&r);
}

/* The model must not be copied after a round with a large loss, or when a neighbour has moved the
 * model far away. */
static void test_what_is_kept(void **state)
{
    struct rollback r = begin();
    float x[N] = {1, 1, 1, 1};
    (void)state;
    good(&r, x, 64);
    assert_int_equal(r.round, 0);
    /* The rollback module copies the model at the start of round 64, because round 63 was good. */
    assert_false(train(&r, 64, x, 1, 5));
    assert_int_equal(r.round, 64);
    for (uint64_t round = 65; round < 130; round++)
        assert_false(train(&r, round, x, 1, 5));
    assert_int_equal(r.round, 64);
    assert_false(train(&r, 130, x, 1, 2));
    x[0] = 1e6f; /* Mixing with a neighbour has moved one parameter far away. */
    assert_true(train(&r, 131, x, 1e6f, 1e6));
    assert_int_equal(r.round, 64);
    assert_true(x[0] == 1.063f);
    rollback_close(&r);
}

/* A peer that joined later, or whose first loss is not finite, has no first loss to compare
 * with. */
static void test_no_first_loss(void **state)
{
    struct rollback r = begin();
    float x[N] = {1, 1, 1, 1};
    char why[DIVERGENCE_TEXT], said[ROLLBACK_TEXT];
    (void)state;
    assert_true(train(&r, 7, x, 1, (double)NAN));
    assert_int_equal(r.round, 7);
    rollback_say(&r, said);
    assert_string_equal(said,
                        "round 7: training diverged (the loss is not a number) and returns to the "
                        "model of round 7; if training diverges again, the run ends");
    assert_true(isnan(r.first));
    assert_false(train(&r, 8, x, 1, 0.5));
    assert_true(train(&r, 9, x, 1, 1e3));
    rollback_why(&r, why);
    assert_string_equal(
        why, "the training loss ended at 1000, having begun at 0.5; the model is of round 7");
    rollback_say(&r, said);
    assert_string_equal(
        said, "round 9: training diverged (the loss is 1000, and began at 0.5) and returns "
              "to the model of round 7; training has diverged before, so the run ends");
    assert_true(train(&r, 10, x, 1, (double)INFINITY));
    rollback_why(&r, why);
    assert_string_equal(
        why, "the loss is infinite since round 10, having begun at 0.5; the model is of round 7");
    rollback_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_back),      cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_the_first_step), cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_no_first_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
