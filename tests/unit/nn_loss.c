/* tests/unit/nn_loss.c -- softmax cross-entropy is compared with hand-computed values, a loop in
 * double precision, and central differences. */
#include "nn/layers/loss.h"

#include "nn/math/rng.h"
#include "nn_ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

/* The logits ln 1, ln 2, ln 5 have the probabilities 1/8, 2/8, 5/8. */
static void test_by_hand(void **state)
{
    (void)state;
    float z[6] = {0, 0.69314718f, 1.6094379f, 0, 0.69314718f, 1.6094379f};
    const uint16_t labels[2] = {1, 2};
    float d[6];
    struct loss_batch b = {.n = 2, .n_classes = 3, .logits = z, .labels = labels};
    struct loss loss = loss_softmax(&b, d);
    assert_true(ref_near(loss.sum, log(4) + log(1.6), 1e-6));
    assert_int_equal(loss.n_right, 1);
    const double want[6] = {0.0625, -0.375, 0.3125, 0.0625, 0.125, -0.1875};
    for (size_t i = 0; i < 6; i++)
        assert_true(ref_near((double)d[i], want[i], 1e-6));
    /* The gradient of two rows is computed again as if they belonged to a batch of 8 rows, not of
     * 2. The gradient of the mean loss must then be a fourth as large. */
    b.n_mean = 8;
    assert_true(loss_softmax(&b, d).sum == loss.sum);
    for (size_t i = 0; i < 6; i++)
        assert_true(ref_near((double)d[i], want[i] / 4, 1e-6));
}

/* Label smoothing of 0.3 makes the targets 0.1, 0.8, 0.1. */
static void test_smoothing_by_hand(void **state)
{
    (void)state;
    float z[3] = {0, 0.69314718f, 1.6094379f}, d[3];
    const uint16_t labels[1] = {1};
    struct loss_batch b = {
        .n = 1, .n_classes = 3, .logits = z, .labels = labels, .smoothing = 0.3f};
    struct loss loss = loss_softmax(&b, d);
    assert_true(ref_near(loss.sum, log(8) - 0.8 * log(2) - 0.1 * log(5), 1e-6));
    assert_true(ref_near((double)d[0], 0.125 - 0.1, 1e-6));
    assert_true(ref_near((double)d[1], 0.25 - 0.8, 1e-6));
    assert_true(ref_near((double)d[2], 0.625 - 0.1, 1e-6));
}

/* Huge logits must not overflow. The gradient may be written over the logits. */
static void test_stable_in_place(void **state)
{
    (void)state;
    float z[3] = {3e38f, -3e38f, 1};
    const uint16_t labels[1] = {0};
    struct loss_batch b = {.n = 1, .n_classes = 3, .logits = z, .labels = labels};
    struct loss loss = loss_softmax(&b, z);
    assert_true(loss.sum == 0 && loss.n_right == 1);
    assert_true(z[0] == 0 && z[1] == 0 && z[2] == 0);
}

/* If several logits of a row are the largest, the first of them is the predicted class, as with
 * argmax. */
static void test_tie(void **state)
{
    (void)state;
    const float z[4] = {1, 1, 1, 1};
    const uint16_t labels[2] = {0, 1};
    struct loss_batch b = {.n = 2, .n_classes = 2, .logits = z, .labels = labels};
    struct loss loss = loss_softmax(&b, NULL);
    assert_int_equal(loss.n_right, 1);
    assert_true(ref_near(loss.sum, 2 * log(2), 1e-7));
}

/* A NaN at any position of a row makes the loss and the gradient NaN. */
static void test_nan_is_wrong(void **state)
{
    (void)state;
    enum { MOST = 40 };
    for (size_t n = 2; n <= MOST; n++)
        for (size_t at = 0; at < n; at++) {
            float z[MOST] = {5}, d[MOST];
            const uint16_t labels[1] = {0};
            z[at] = NAN;
            struct loss_batch b = {.n = 1, .n_classes = n, .logits = z, .labels = labels};
            struct loss loss = loss_softmax(&b, d);
            assert_true(isnan(loss.sum) && isnan(d[0]));
            assert_int_equal(loss.n_right, 0);
        }
}

enum { ROWS = 9, CLASSES_MAX = 4096 };

/* Computes the loss and the number of right answers as nn/layers/loss.h defines them, in double
 * precision, after adding `by` to the logit at index `at`. */
static double loss_ref(const struct loss_batch *b, size_t at, double by, size_t *n_right)
{
    double total = 0, n = (double)b->n_classes, s = (double)b->smoothing;
    *n_right = 0;
    for (size_t i = 0; i < b->n; i++) {
        static double z[CLASSES_MAX];
        size_t best = 0;
        for (size_t j = 0; j < b->n_classes; j++) {
            size_t k = i * b->n_classes + j;
            z[j] = (double)b->logits[k] + (k == at ? by : 0);
            best = z[j] > z[best] ? j : best;
        }
        double sum = 0, dot = 0;
        for (size_t j = 0; j < b->n_classes; j++) {
            sum += exp(z[j] - z[best]);
            dot += ((j == b->labels[i] ? 1 - s : 0) + s / n) * z[j];
        }
        total += log(sum) + z[best] - dot;
        *n_right += best == b->labels[i];
    }
    return total;
}

static void check_random(size_t n_classes, float smoothing, float spread)
{
    static float z[ROWS * CLASSES_MAX], d[ROWS * CLASSES_MAX];
    uint16_t labels[ROWS];
    struct rng r = rng_stream(rng_key(1, RNG_TEST, n_classes, 0));
    for (size_t i = 0; i < ROWS * n_classes; i++)
        z[i] = spread * (float)rng_normal(&r);
    for (size_t i = 0; i < ROWS; i++) {
        labels[i] = (uint16_t)rng_below(&r, n_classes);
        if (i % 2)
            /* Gives the right class of each odd row a large logit, so that the prediction of
             * most odd rows is right. */
            z[i * n_classes + labels[i]] = 4 * spread;
    }
    struct loss_batch b = {
        .n = ROWS, .n_classes = n_classes, .logits = z, .labels = labels, .smoothing = smoothing};
    size_t n_right, unused;
    double want = loss_ref(&b, SIZE_MAX, 0, &n_right);
    struct loss loss = loss_softmax(&b, d);
    if (!ref_near(loss.sum, want, 3e-7) || loss.n_right != n_right)
        fail_msg("%zu classes: %.12g, expected %.12g", n_classes, loss.sum, want);
    assert_true(loss_softmax(&b, NULL).sum == loss.sum);
    for (int k = 0; k < 60; k++) {
        size_t at = (size_t)rng_below(&r, ROWS * n_classes);
        if (k < ROWS)
            at = (size_t)k * n_classes + labels[k];
        double step = 1e-5;
        double slope = (loss_ref(&b, at, step, &unused) - loss_ref(&b, at, -step, &unused))
                       / (2 * step) / ROWS;
        if (!(fabs((double)d[at] - slope) <= 1e-7))
            fail_msg("%zu classes: gradient %.9g, expected %.9g", n_classes, (double)d[at], slope);
    }
    float *in_place = z;
    (void)loss_softmax(&b, in_place);
    assert_memory_equal(z, d, ROWS * n_classes * sizeof *z);
}

static void test_random(void **state)
{
    (void)state;
    static const size_t classes[] = {2,  3,  7,   8,   10,  15,  16,   17,
                                     31, 33, 100, 255, 256, 257, 1023, 4096};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        check_random(classes[i], 0, 1);
        check_random(classes[i], 0.1f, 3);
        check_random(classes[i], 0.9f, 20);
    }
}

/* Each row of the gradient sums to 0, whatever the smoothing. */
static void test_rows_sum_to_zero(void **state)
{
    (void)state;
    float z[17], d[17];
    const uint16_t labels[1] = {16};
    for (int k = 0; k < 5; k++) {
        double sum = 0;
        for (size_t j = 0; j < 17; j++)
            z[j] = rng_unit_at(7, j + 17 * (size_t)k) * 9;
        struct loss_batch b = {
            .n = 1, .n_classes = 17, .logits = z, .labels = labels, .smoothing = 0.2f * (float)k};
        (void)loss_softmax(&b, d);
        for (size_t j = 0; j < 17; j++)
            sum += (double)d[j];
        assert_true(fabs(sum) <= 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),          cmocka_unit_test(test_smoothing_by_hand),
        cmocka_unit_test(test_stable_in_place),  cmocka_unit_test(test_tie),
        cmocka_unit_test(test_nan_is_wrong),     cmocka_unit_test(test_random),
        cmocka_unit_test(test_rows_sum_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
