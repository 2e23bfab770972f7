/* tests/unit/node_evaluation.c -- tests of peer/node/step/evaluation.h: in which rounds a model is
 * evaluated during training, and how much that costs. */
#include "peer/node/step/evaluation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t count(const struct evaluation *e, uint64_t rounds)
{
    uint64_t n = 0;
    for (uint64_t r = 0; r <= rounds; r++)
        n += evaluation_due(e, rounds, r);
    return n;
}

/* In a long run the model is evaluated after each tenth of the rounds but the last. */
static void test_tenths(void **state)
{
    (void)state;
    static const uint64_t rounds[] = {10, 11, 19, 25, 99, 100, 1875, 12500};
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        struct evaluation e = evaluation_plan(rounds[i], 1000000);
        assert_int_equal(e.samples, EVALUATION_SAMPLES);
        assert_int_equal(count(&e, rounds[i]), EVALUATION_PARTS - 1);
        assert_false(evaluation_due(&e, rounds[i], 0));
        assert_false(evaluation_due(&e, rounds[i], rounds[i]));
    }
    struct evaluation e = evaluation_plan(1000, 1000000);
    for (uint64_t r = 1; r < 1000; r++)
        assert_int_equal(evaluation_due(&e, 1000, r), r % 100 == 0);
    /* In a run of fewer rounds than EVALUATION_PARTS (10) the model is evaluated after each round
     * but the last. */
    e = evaluation_plan(4, 1000000);
    assert_int_equal(count(&e, 4), 3);
}

/* Evaluating a sample is assumed to take a third of the time of training on it. All evaluations
 * together must then take at most 2 % of the training time. If EVALUATION_LEAST samples fit into
 * these 2 %, the model must be evaluated at least once. */
static void test_cost(void **state)
{
    (void)state;
    for (uint64_t rounds = 1; rounds < 1000000; rounds = rounds * 3 / 2 + 1)
        for (uint64_t each = 1; each < 10000; each = 3 * each + 1) {
            struct evaluation e = evaluation_plan(rounds, each);
            uint64_t n = rounds < 5000 ? count(&e, rounds) : e.parts > 0 ? e.parts - 1 : 0;
            double trained = (double)rounds * (double)each;
            double evaluated = (double)n * (double)e.samples / 3;
            assert_true(evaluated <= 0.0200001 * trained);
            assert_true(n == 0 || e.samples >= EVALUATION_LEAST);
            assert_true(n > 0 || rounds == 1 || trained < EVALUATION_LEAST / 0.06);
            assert_true(n <= EVALUATION_PARTS - 1);
        }
    /* 0 training samples per round mean that the number is not known. */
    assert_int_equal(evaluation_plan(1000, 0).parts, 1);
}

static void test_every(void **state)
{
    (void)state;
    struct evaluation e = {.every = 7, .samples = 5}, none = {.every = 0};
    for (uint64_t r = 0; r < 100; r++) {
        assert_int_equal(evaluation_due(&e, 50, r), r > 0 && r % 7 == 0);
        assert_false(evaluation_due(&none, 50, r));
    }
}

/* evaluation_passed() returns whether an evaluation was due between two rounds, for a caller that
 * does not look in every round. Two evaluations in this interval count as one. */
static void test_passed(void **state)
{
    (void)state;
    struct evaluation e = evaluation_plan(1000, 1000);
    assert_false(evaluation_passed(&e, 1000, 0, 99));
    assert_true(evaluation_passed(&e, 1000, 0, 101));
    assert_false(evaluation_passed(&e, 1000, 101, 199));
    assert_true(evaluation_passed(&e, 1000, 101, 400));
    assert_false(evaluation_passed(&e, 1000, 950, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tenths), cmocka_unit_test(test_cost),
                                       cmocka_unit_test(test_every), cmocka_unit_test(test_passed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
