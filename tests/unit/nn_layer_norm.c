/* tests/unit/nn_layer_norm.c -- normalisation layers: outputs, gradients, running statistics and
 * numerically hard inputs. */
#include "nn/layers/layer.h"

#include "nn_layer_ref.h"

static struct layer norm(enum norm_kind kind, uint32_t c, uint32_t h, uint32_t w)
{
    return (struct layer){.kind = LAYER_NORM,
                          .in = {c, h, w},
                          .out = {c, h, w},
                          .with = LAYER_NONE,
                          .norm = kind,
                          .groups = 1};
}

/* Compares a normalisation layer with the reference, with and without residual and ReLU. */
static void check_all(struct layer l)
{
    for (int form = 0; form < 4; form++) {
        l.relu = form % 2 == 1;
        l.with = form / 2 == 1 ? 0 : LAYER_NONE;
        gradient_check(l, ref_norm);
    }
}

static void test_batch(void **state)
{
    (void)state;
    static const uint32_t channels[] = {1, 2, 3, 7, 16, 17, 33, 64};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        check_all(norm(NORM_BATCH, channels[i], 3, 2));
}

/* Tests several blocks of rows, of which the last block is not full. */
static void test_batch_long(void **state)
{
    (void)state;
    check_all(norm(NORM_BATCH, 16, 11, 13));
    check_all(norm(NORM_BATCH, 6, 28, 10));
    check_all(norm(NORM_BATCH, 272, 4, 2));
}

static void test_group(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 1}, {6, 2}, {16, 2}, {15, 5}, {24, 1}, {64, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct layer l = norm(NORM_GROUP, shapes[i][0], 4, 3);
        l.groups = shapes[i][1];
        check_all(l);
    }
}

static void test_place(void **state)
{
    (void)state;
    static const uint32_t channels[] = {1, 3, 15, 16, 17, 31, 48, 130};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        check_all(norm(NORM_PLACE, channels[i], 7, 1));
}

/* The gradient of a running statistic is its distance from the statistic of the batch. The variance
 * of a batch is the unbiased one, except for a batch of a single value. */
static void test_running(void **state)
{
    (void)state;
    static const uint32_t sides[] = {1, 3};
    for (size_t k = 0; k < 4; k++) {
        struct gradient_bed b;
        uint32_t side = sides[k % 2], n = k / 2 == 0 ? 1 : 4;
        gradient_open(&b, norm(NORM_BATCH, 5, side, side), ref_norm, n);
        gradient_forward(&b, true);
        gradient_backward(&b);
        struct ref_moments m[5 * 4 * 9];
        ref_norm_moments(&b.l, &b.v, m, b.in.n);
        for (size_t c = 0; c < 5; c++) {
            size_t mean = b.l.at[2] + c, var = b.l.at[3] + c;
            double unbias = m[c].n > 1 ? m[c].n / (m[c].n - 1) : 1;
            gradient_near(&b, "running_mean", c, (double)b.grad.f[mean], b.x.d[mean] - m[c].mean);
            gradient_near(&b, "running_var", c, (double)b.grad.f[var],
                          b.x.d[var] - unbias * m[c].var);
        }
        gradient_close(&b);
    }
}

/* A running variance may become negative when peers mix their models. The layer takes it as
 * zero. */
static void test_negative_variance(void **state)
{
    (void)state;
    struct gradient_bed b;
    gradient_open(&b, norm(NORM_BATCH, 3, 2, 2), ref_norm, 2);
    for (size_t c = 0; c < 3; c++) {
        b.x.f[b.l.at[3] + c] = -0.5f;
        b.x.d[b.l.at[3] + c] = -0.5;
        /* The running mean is set to 0, because 1 / deviation = 316 would magnify rounding
         * errors of the mean. */
        b.x.d[b.l.at[2] + c] = 0;
        b.x.f[b.l.at[2] + c] = 0;
    }
    gradient_forward(&b, false);
    gradient_close(&b);
}

/* Sums in single precision suffice if they are taken over differences from a value near the mean.
 * This holds even if the mean is 1000 standard deviations from 0, or if the first value is unlike
 * the others. */
static void test_large_mean(void **state)
{
    (void)state;
    static const enum norm_kind kinds[] = {NORM_BATCH, NORM_GROUP, NORM_PLACE};
    for (size_t k = 0; k < 3; k++)
        for (int jump = 0; jump < 2; jump++) {
            struct gradient_bed b;
            gradient_open(&b, norm(kinds[k], 16, 8, 9), ref_norm, 5);
            for (size_t i = 0; i < b.in.n; i++) {
                b.in.f[i] += jump && i < 3 ? 30.0f : 1024.0f;
                b.in.d[i] = (double)b.in.f[i];
            }
            gradient_buffers(&b, true);
            b.op->forward(&b.l, &b.p);
            ref_norm(&b.l, &b.v, b.out.d);
            for (size_t i = 0; i < b.out.n; i++)
                assert_true(fabs((double)b.out.f[i] - b.out.d[i]) <= 3e-4 * (1 + fabs(b.out.d[i])));
            gradient_close(&b);
        }
}

/* If all values of a channel are equal, the variance is 0 and the output is the bias. */
static void test_constant(void **state)
{
    (void)state;
    struct gradient_bed b;
    gradient_open(&b, norm(NORM_BATCH, 3, 4, 4), ref_norm, 3);
    for (size_t i = 0; i < b.in.n; i++)
        b.in.d[i] = (double)(b.in.f[i] = 0.1f + (float)(i % 3));
    gradient_forward(&b, true);
    b.p.d_in = b.d_in.f;
    gradient_backward(&b);
    assert_true(vec_finite(b.d_in.f, b.d_in.n));
    gradient_close(&b);
}

/* A NaN in an input makes every output NaN whose mean includes this input, even after the ReLU. */
static void test_nan(void **state)
{
    (void)state;
    static const enum norm_kind kinds[] = {NORM_BATCH, NORM_GROUP, NORM_PLACE};
    for (size_t k = 0; k < 3; k++)
        for (int residual = 0; residual < 2; residual++) {
            struct gradient_bed b;
            struct layer l = norm(kinds[k], 4, 5, 3);
            l.relu = true;
            l.with = residual ? 0 : LAYER_NONE;
            l.groups = 2;
            gradient_open(&b, l, ref_norm, 3);
            size_t bad = 4 * 17 + 1;
            b.in.f[bad] = NAN;
            gradient_buffers(&b, true);
            b.op->forward(&b.l, &b.p);
            for (size_t i = 0; i < b.out.n; i++)
                assert_int_equal(isnan(b.out.f[i]) != 0,
                                 ref_norm_set(&l, i) == ref_norm_set(&l, bad));
            gradient_close(&b);
        }
}

/* A NaN in the residual or in the running statistics reaches the output. */
static void test_nan_elsewhere(void **state)
{
    (void)state;
    struct gradient_bed b;
    struct layer l = norm(NORM_BATCH, 4, 2, 2);
    l.relu = true;
    l.with = 0;
    gradient_open(&b, l, ref_norm, 2);
    b.with.f[5] = NAN;
    b.x.f[b.l.at[3] + 2] = NAN;
    gradient_buffers(&b, false);
    b.op->forward(&b.l, &b.p);
    for (size_t i = 0; i < b.out.n; i++)
        assert_int_equal(isnan(b.out.f[i]) != 0, i == 5 || i % 4 == 2);
    gradient_close(&b);
}

static void test_params(void **state)
{
    (void)state;
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    struct layer_param p[LAYER_PARAMS_MAX];
    struct layer l = norm(NORM_BATCH, 12, 4, 4);
    assert_int_equal(layer_norm.params(&l, p), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(p[i].of, names[i]);
        assert_int_equal(p[i].n_dims, 1);
        assert_int_equal(p[i].dims[0], 12);
        assert_false(p[i].decays);
        assert_int_equal(p[i].trained, i < 2);
        assert_int_equal(p[i].nonnegative, i == 3);
        assert_true(p[i].bound == 0.0f);
        assert_true(p[i].value == (i == 0 || i == 3 ? 1.0f : 0.0f));
    }
    l.norm = NORM_GROUP;
    assert_int_equal(layer_norm.params(&l, p), 2);
    l.norm = NORM_PLACE;
    assert_int_equal(layer_norm.params(&l, p), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch),      cmocka_unit_test(test_batch_long),
        cmocka_unit_test(test_group),      cmocka_unit_test(test_place),
        cmocka_unit_test(test_running),    cmocka_unit_test(test_negative_variance),
        cmocka_unit_test(test_large_mean), cmocka_unit_test(test_constant),
        cmocka_unit_test(test_nan),        cmocka_unit_test(test_nan_elsewhere),
        cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
