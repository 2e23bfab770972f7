/* Softmax cross-entropy against values worked out by hand. */
#include "nn_ref.h"

#include "nn/loss.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Logits ln 1, ln 2, ln 5 are odds of 1/8, 2/8, 5/8. */
static void test_by_hand(void **state)
{
    (void)state;
    float z[6] = {0, 0.69314718f, 1.6094379f, 0, 0.69314718f, 1.6094379f};
    const uint8_t labels[2] = {1, 2};
    float d[6];
    struct loss_batch b = {2, 3, z, labels};
    struct loss loss = loss_softmax(&b, d);
    assert_true(ref_near(loss.sum, log(4) + log(1.6), 1e-6));
    assert_int_equal(loss.n_right, 1);
    const double want[6] = {0.0625, -0.375, 0.3125, 0.0625, 0.125, -0.1875};
    for (size_t i = 0; i < 6; i++)
        assert_true(ref_near((double)d[i], want[i], 1e-6));
}

/* Huge logits overflow nothing, and the gradient may replace the logits. */
static void test_stable_in_place(void **state)
{
    (void)state;
    float z[3] = {3e38f, -3e38f, 1};
    const uint8_t labels[1] = {0};
    struct loss_batch b = {1, 3, z, labels};
    struct loss loss = loss_softmax(&b, z);
    assert_true(loss.sum == 0 && loss.n_right == 1);
    assert_true(z[0] == 0 && z[1] == 0 && z[2] == 0);
}

/* The first of equal logits is the answer, as argmax has it. */
static void test_tie(void **state)
{
    (void)state;
    const float z[4] = {1, 1, 1, 1};
    const uint8_t labels[2] = {0, 1};
    struct loss_batch b = {2, 2, z, labels};
    struct loss loss = loss_softmax(&b, NULL);
    assert_int_equal(loss.n_right, 1);
    assert_true(ref_near(loss.sum, 2 * log(2), 1e-12));
}

static void test_nan_is_wrong(void **state)
{
    (void)state;
    const float z[9] = {NAN, 1, 2, 3, NAN, 1, 2, 1, NAN};
    const uint8_t labels[3] = {0, 0, 0};
    for (size_t i = 0; i < 3; i++) {
        struct loss_batch b = {1, 3, z + 3 * i, labels};
        struct loss loss = loss_softmax(&b, NULL);
        assert_true(isnan(loss.sum));
        assert_int_equal(loss.n_right, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_stable_in_place),
        cmocka_unit_test(test_tie),
        cmocka_unit_test(test_nan_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
