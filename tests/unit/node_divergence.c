/* tests/unit/node_divergence.c -- tests of peer/node/step/divergence.h, which decides whether
 * training has diverged or has learnt nothing. */
#include "peer/node/step/divergence.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 32 };

static char why[DIVERGENCE_TEXT];

/* Adds `rounds` equal losses, from round `first` on. */
static void losses(struct divergence *v, uint64_t first, int rounds, double loss)
{
    for (int i = 0; i < rounds; i++)
        divergence_loss(v, first + (uint64_t)i, loss, BATCH, 0);
}

static struct divergence begun_at(double loss)
{
    struct divergence v;
    divergence_init(&v);
    losses(&v, 0, 10, loss);
    return v;
}

/* Training has diverged if most of the newest losses exceed the mean of the first ten losses by
 * more than 1 nat. */
static void test_loss(void **state)
{
    static const struct
    {
        double first, last;
        int rounds;
        bool away;
    } row[] = {
        {2.3, 0.1, 100, false},
        {2.3, 2.3, 100, false}, /* A model that learns nothing does not diverge. */
        {2.3, 3.2, 100, false},
        {2.3, 3.4, 100, true},
        {2.3, 3.4, 20, true},
        /* A rise of 1 nat counts only in a run of at least 30 rounds. This run has 29. */
        {2.3, 3.4, 19, false},
        /* In a run of fewer than 30 rounds only a loss above three times the first losses
         * counts. */
        {2.3, 6.8, 19, false},
        {2.3, 40, 19, true},
        {0.01, 0.5, 100, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct divergence v = begun_at(row[i].first);
        losses(&v, 10, row[i].rounds, row[i].last);
        if (divergence_ran_away(&v, why) != row[i].away)
            fail_msg("row %zu: loss %g after %g", i, row[i].last, row[i].first);
    }
    struct divergence v = begun_at(2.3);
    losses(&v, 10, 200, 41.8);
    assert_true(divergence_ran_away(&v, why));
    assert_string_equal(why, "the training loss ended at 41.8, having begun at 2.3");
}

static const struct trainer_report untested = {.n_samples = 0};

/* A model has learnt nothing if its accuracy equals the share of the most frequent label, even if
 * its loss is far below that of guessing. The test set must have at least 100 samples, and labels
 * that differ. */
static void test_majority(void **state)
{
    static const struct
    {
        struct trainer_report tested;
        bool nothing;
    } row[] = {{{.accuracy = 0.97, .majority = 0.97, .n_samples = 4000}, true},
               {{.accuracy = 0.96, .majority = 0.97, .n_samples = 100}, true},
               {{.accuracy = 0.971, .majority = 0.97, .n_samples = 4000}, false},
               {{.accuracy = 0.97, .majority = 0.97, .n_samples = 99}, false},
               {{.accuracy = 1, .majority = 1, .n_samples = 4000}, false},
               {{.accuracy = 0.97, .majority = 0, .n_samples = 4000}, false}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct divergence v = begun_at(0.69);
        losses(&v, 10, 80, 0.13);
        /* A run of 90 rounds is too short to be judged. */
        assert_false(divergence_learnt_nothing(&v, 0.6931, &row[i].tested, why));
        losses(&v, 90, 20, 0.13);
        if (divergence_learnt_nothing(&v, 0.6931, &row[i].tested, why) != row[i].nothing)
            fail_msg("row %zu", i);
        if (i == 0)
            assert_string_equal(
                why, "the accuracy is 97.00 %, and always guessing the most frequent label gives "
                     "97.00 %");
    }
}

/* A model has learnt nothing if the average of the newest losses is at least 0.99 of the loss of
 * guessing. Earlier losses do not matter. Runs of fewer than 100 rounds, or with an unknown loss of
 * guessing, are not judged. */
static void test_nothing_learnt(void **state)
{
    static const struct
    {
        double first, last, guess;
        int rounds;
        bool nothing;
    } row[] = {{2.305, 2.3, 2.3026, 100, true},  {2.305, 2.27, 2.3026, 100, false},
               {4.1, 2.29, 2.3026, 100, true},   {0.1, 2.9, 2.3026, 100, true},
               {2.305, 2.3, 2.3026, 89, false},  {2.305, 2.3, 2.3026, 90, true},
               {2.305, 2.3, 0, 100, false},      {0.693, 0.69, 0.6931, 100, true},
               {2.305, 0.01, 2.3026, 100, false}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct divergence v = begun_at(row[i].first);
        losses(&v, 10, row[i].rounds, row[i].last);
        if (divergence_learnt_nothing(&v, row[i].guess, &untested, why) != row[i].nothing)
            fail_msg("row %zu: loss %g, guessing %g", i, row[i].last, row[i].guess);
    }
    struct divergence v = begun_at(2.4);
    assert_false(divergence_learnt_nothing(&v, 2.3026, &untested, why));
    losses(&v, 10, 200, 2.4);
    assert_true(divergence_learnt_nothing(&v, 2.3026, &untested, why));
    assert_string_equal(why, "the training loss ended at 2.4, and guessing has a loss of 2.303");
}

/* A single bad batch of four samples does not show that a good model has learnt nothing. Many bad
 * batches do. */
static void test_small_batches(void **state)
{
    struct divergence v;
    (void)state;
    divergence_init(&v);
    for (uint64_t i = 0; i < 5000; i++)
        divergence_loss(&v, i, i < 100 ? 2.3 : i % 40 == 39 ? 30 : 0.05, 4, 0);
    /* Every 40th loss is 30, also the last one, and the others are 0.05: a few bad batches do not
     * count. */
    assert_false(divergence_learnt_nothing(&v, 2.3026, &untested, why));
    for (uint64_t i = 5000; i < 6500; i++)
        divergence_loss(&v, i, 2.305, 4, 0);
    assert_true(divergence_learnt_nothing(&v, 2.3026, &untested, why));
}

/* Losses of single samples are noisy. If every third loss is large, training has not diverged,
 * although the mean has risen. If all of the newest losses are large, it has diverged. */
static void test_noise(void **state)
{
    struct divergence v;
    (void)state;
    divergence_init(&v);
    losses(&v, 0, 10, 0.1);
    for (uint64_t i = 10; i < 400; i++)
        divergence_loss(&v, i, i % 3 == 0 ? 9 : 0.1, 1, 0);
    /* The mean of the losses is 3, but most losses are small, so training has not diverged. */
    assert_false(divergence_ran_away(&v, why));
    losses(&v, 400, 100, 9);
    assert_true(divergence_ran_away(&v, why));
}

/* Returns a run with the losses 2.4, 3104, 6208 and 9312, and 13808 in all later rounds. */
static struct divergence exploded(int rounds, uint64_t n_samples)
{
    struct divergence v;
    divergence_init(&v);
    divergence_loss(&v, 0, 2.4, n_samples, 0);
    for (int i = 1; i < rounds; i++)
        divergence_loss(&v, (uint64_t)i, i < 4 ? 3104 * i : 13808, n_samples, 0);
    return v;
}

/* Losses that explode within the first ten rounds are compared with the first loss, because their
 * mean is too high. */
static void test_first_rounds(void **state)
{
    (void)state;
    for (uint64_t n_samples = 1; n_samples < 100; n_samples *= 3) {
        struct divergence v = exploded(100, n_samples);
        assert_true(divergence_ran_away(&v, why));
        assert_non_null(strstr(why, "ended at 1.381e+04, having begun at 2.4"));
    }
    struct divergence v;
    /* The first loss is 10, and the mean of the first ten losses is 2.8. Later losses must be
     * compared with the lower of these two values. */
    divergence_init(&v);
    for (uint64_t i = 0; i < 10; i++)
        divergence_loss(&v, i, i == 0 ? 10 : 2, BATCH, 0);
    losses(&v, 10, 100, 3.7);
    assert_false(divergence_ran_away(&v, why));
    losses(&v, 110, 100, 3.9);
    assert_true(divergence_ran_away(&v, why));
}

/* The first loss may be low by chance if it is of a single sample, but not if it is of 64
 * samples. */
static void test_first_by_chance(void **state)
{
    static const struct
    {
        uint64_t n_samples;
        bool away;
    } row[] = {{1, false}, {64, true}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct divergence v;
        divergence_init(&v);
        divergence_loss(&v, 0, 0.3, row[i].n_samples, 0);
        losses(&v, 1, 100, 2.3);
        if (divergence_ran_away(&v, why) != row[i].away)
            fail_msg("%llu samples", (unsigned long long)row[i].n_samples);
    }
}

/* A short run has diverged if its newest losses are all more than three times the first losses, and
 * more than 1 nat above them. The newest losses are the last third, but at least two and at most
 * ten. */
static void test_short(void **state)
{
    static const struct
    {
        int before, after;
        double loss;
        bool away;
    } row[] = {
        {1, 1, 3104, false}, {1, 2, 3104, true}, {4, 2, 40, true},   {5, 2, 40, false},
        {10, 5, 40, true},   {12, 5, 40, false}, {19, 10, 40, true}, {90, 10, 40, true},
        {90, 9, 40, false},  {4, 2, 3.4, false}, {4, 2, 6, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct divergence v;
        divergence_init(&v);
        losses(&v, 0, row[i].before, 2.3);
        losses(&v, (uint64_t)row[i].before, row[i].after, row[i].loss);
        if (divergence_ran_away(&v, why) != row[i].away)
            fail_msg("row %zu: %d losses of %g after %d", i, row[i].after, row[i].loss,
                     row[i].before);
    }
    struct divergence v = exploded(3, BATCH);
    assert_true(divergence_ran_away(&v, why));
    assert_string_equal(why, "the training loss ended at 6208, having begun at 2.4");
    divergence_init(&v);
    /* The later losses, 0.9, exceed three times the first loss, 0.01, but not 0.01 + 1 nat, so the
     * run has not diverged. */
    losses(&v, 0, 10, 0.01);
    losses(&v, 10, 19, 0.9);
    assert_false(divergence_ran_away(&v, why));
}

/* A peer that joined late does not know the losses of the first rounds, so no loss counts as
 * divergence. */
static void test_joined_late(void **state)
{
    struct divergence v;
    (void)state;
    divergence_init(&v);
    losses(&v, 500, 10, 0.1);
    losses(&v, 510, 100, 9);
    assert_false(divergence_ran_away(&v, why));
}

/* A shard with one label is learnt within ten rounds. Its loss rises again when models are mixed,
 * which is not a divergence if the loss stays near that of guessing. A trained model that begins
 * with a low loss gets no such allowance. */
static void test_one_label(void **state)
{
    static const struct
    {
        double first, next, last, guess;
        bool away;
    } row[] = {{2.3, 0.1, 1.95, 2.3026, false}, {2.3, 0.1, 1.95, 0, true},
               {2.3, 0.1, 3.2, 2.3026, false},  {2.3, 0.1, 3.4, 2.3026, true},
               {0.1, 0.1, 1.95, 2.3026, true},  {9, 0.1, 3.4, 2.3026, true}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct divergence v;
        divergence_init(&v);
        for (uint64_t r = 0; r < 110; r++)
            divergence_loss(&v, r,
                            r == 0   ? row[i].first
                            : r < 10 ? row[i].next
                                     : row[i].last,
                            BATCH, row[i].guess);
        if (divergence_ran_away(&v, why) != row[i].away)
            fail_msg("row %zu", i);
    }
}

/* Training has diverged if the consensus distance in the last tenth of the rounds exceeds the norm
 * of the mean model, and three times the largest distance in the third quarter of the rounds
 * (`half`). */
static void test_distance(void **state)
{
    static const struct
    {
        double half, xi, relative;
        uint64_t round;
        bool away;
    } row[] = {
        {1, 5, 0.9, 950, false},
        {1, 5, 1.1, 950, true},
        {1, 5, 1.1, 900, true},
        /* Round 899 of 1000 is before the last tenth of the run, so its distance does not count. */
        {1, 5, 1.1, 899, false},
        {1, 5, 1.1, 1000, true},        /* Round 1000 is the beginning of the consensus phase. */
        {1, 5, (double)NAN, 950, true}, /* The norm of the mean model is not known. */
        /* The distance 5 is less than three times 2, the largest distance in the third quarter of
         * the run. */
        {2, 5, 1.1, 950, false},
        {(double)NAN, 5, 1.1, 950, false},
        {0, 0, (double)NAN, 950, false},
        {1, (double)NAN, (double)NAN, 950, false}, /* The consensus distance is not known. */
        {1, (double)NAN, 3, 950, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct divergence v = begun_at(2.3);
        divergence_drift(&v, row[i].half, 0.1, 600, 1000);
        /* A smaller distance in the third quarter of the run has no effect, because the largest one
         * counts. */
        divergence_drift(&v, row[i].half / 2, 0.1, 700, 1000);
        divergence_drift(&v, 0.01, 0.1, 499, 1000);
        divergence_drift(&v, 99, 0.1, 750, 1000);
        divergence_drift(&v, row[i].xi, row[i].relative, row[i].round, 1000);
        if (divergence_ran_away(&v, why) != row[i].away)
            fail_msg("row %zu", i);
    }
    struct divergence v = begun_at(2.3);
    divergence_drift(&v, 1, 0.3, 500, 1000);
    divergence_drift(&v, 9, 3.11, 960, 1000);
    /* The small distance in the consensus phase does not hide the divergence. */
    divergence_drift(&v, 0.1, 0.01, 1000, 1000);
    assert_true(divergence_ran_away(&v, why));
    assert_string_equal(why, "at round 960 the consensus distance exceeded the norm of "
                             "the mean model (relative drift 3.11)");
}

static void test_nothing_known(void **state)
{
    struct divergence v;
    (void)state;
    divergence_init(&v);
    assert_false(divergence_ran_away(&v, why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_nothing_learnt),
        cmocka_unit_test(test_majority),
        cmocka_unit_test(test_small_batches),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_first_rounds),
        cmocka_unit_test(test_first_by_chance),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_joined_late),
        cmocka_unit_test(test_one_label),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_nothing_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
