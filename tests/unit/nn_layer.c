/* tests/unit/nn_layer.c -- the table of layer kinds, and the bias and ReLU functions that layers
 * share. */
#include "nn/layers/layer.h"

#include "nn_gradient.h"

static const size_t all_rows[] = {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 300, 5000};
static const size_t all_cols[] = {1,  2,  3,  6,  10, 16, 17,  31,  32,
                                  33, 48, 63, 64, 65, 96, 127, 128, 200};

enum {
    N_ROWS = sizeof all_rows / sizeof all_rows[0],
    N_COLS = sizeof all_cols / sizeof all_cols[0]
};

static struct gradient_run noise(size_t n, uint64_t key)
{
    struct gradient_run r = gradient_run(n);
    gradient_noise(&r, rng_key(key, RNG_TEST, n, 0), 1, 0);
    return r;
}

static void run_close(struct gradient_run *r)
{
    free(r->f);
    free(r->d);
}

/* Each layer kind has its own set of operations, and every set has the mandatory operations. */
static void test_table(void **state)
{
    (void)state;
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        const struct layer_op *op = layer_op((enum layer_kind)kind);
        assert_non_null(op->name);
        assert_non_null(op->forward);
        assert_non_null(op->backward);
        for (int other = 0; other < kind; other++)
            assert_ptr_not_equal(op, layer_op((enum layer_kind)other));
    }
    assert_ptr_equal(layer_op(LAYER_NORM), &layer_norm);
    assert_ptr_equal(layer_op(LAYER_ATTENTION), &layer_attention);
}

static void check_bias(size_t rows, size_t cols, bool biased, bool relu)
{
    struct gradient_run v = noise(rows * cols, 1), bias = noise(cols, 2);
    layer_bias(v.f, biased ? bias.f : NULL, rows, cols, relu);
    for (size_t i = 0; i < v.n; i++) {
        float y = (float)v.d[i] + (biased ? bias.f[i % cols] : 0.0f);
        assert_true(v.f[i] == (relu && y < 0 ? 0 : y));
    }
    for (size_t i = 0; i < LAYER_SLACK; i++)
        assert_true(isnan(v.f[v.n + i]));
    run_close(&v);
    run_close(&bias);
}

static void test_bias(void **state)
{
    (void)state;
    for (size_t r = 0; r + 1 < N_ROWS; r++)
        for (size_t c = 0; c < N_COLS; c++)
            for (int form = 0; form < 4; form++)
                check_bias(all_rows[r], all_cols[c], form % 2, form / 2);
}

/* A NaN passes through the ReLU, so that the loss shows that a model has diverged. */
static void test_relu_keeps_nan(void **state)
{
    (void)state;
    for (size_t cols = 1; cols < 40; cols += 6)
        for (int biased = 0; biased < 2; biased++) {
            struct gradient_run v = noise(5 * cols, 3), bias = noise(cols, 4);
            v.f[3 * cols] = NAN;
            layer_bias(v.f, biased ? bias.f : NULL, 5, cols, true);
            for (size_t i = 0; i < v.n; i++)
                assert_int_equal(isnan(v.f[i]) != 0, i == 3 * cols);
            run_close(&v);
            run_close(&bias);
        }
}

/* The gradient passes the ReLU only where the output is above zero, not where it is 0, -0 or
 * NaN. */
static void test_relu_mask(void **state)
{
    (void)state;
    for (size_t n = 0; n < 70; n++) {
        struct gradient_run d = noise(n, 5), out = noise(n, 6);
        for (size_t i = 0; i < n; i += 5)
            out.f[i] = i % 3 == 0 ? 0.0f : i % 3 == 1 ? -0.0f : NAN;
        layer_relu_mask(d.f, out.f, n);
        for (size_t i = 0; i < n; i++)
            assert_true(d.f[i] == (out.f[i] > 0 ? (float)d.d[i] : 0.0f));
        run_close(&d);
        run_close(&out);
    }
}

static void check_sums(size_t rows, size_t cols)
{
    struct gradient_run v = noise(rows * cols, 7);
    float *sum = gradient_floats(cols);
    layer_column_sums(sum, v.f, rows, cols);
    for (size_t c = 0; c < cols; c++) {
        double want = 0, size = 0;
        for (size_t r = 0; r < rows; r++) {
            want += v.d[r * cols + c];
            size += fabs(v.d[r * cols + c]);
        }
        assert_true(fabs((double)sum[c] - want) <= 0x1p-20 * size);
    }
    assert_true(isnan(sum[cols]));
    free(sum);
    run_close(&v);
}

static void test_column_sums(void **state)
{
    (void)state;
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t c = 0; c < N_COLS; c++)
            check_sums(all_rows[r], all_cols[c]);
}

static void test_transpose(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_COLS; i++)
        for (size_t j = 0; j < N_COLS; j++) {
            size_t rows = all_cols[i], cols = all_cols[j];
            struct gradient_run v = noise(rows * cols, 8);
            float *to = gradient_floats(v.n);
            layer_transpose(to, v.f, rows, cols);
            for (size_t k = 0; k < v.n; k++)
                assert_true(to[k % cols * rows + k / cols] == v.f[k]);
            assert_true(isnan(to[v.n]));
            free(to);
            run_close(&v);
        }
}

static void test_give(void **state)
{
    (void)state;
    for (size_t n = 0; n < 70; n++) {
        struct gradient_run to = noise(n, 9), from = noise(n, 10);
        layer_give(to.f, from.f, n, true);
        for (size_t i = 0; i < n; i++)
            assert_true(to.f[i] == (float)to.d[i] + from.f[i]);
        layer_give(to.f, from.f, n, false);
        assert_memory_equal(to.f, from.f, n * sizeof *to.f);
        assert_true(isnan(to.f[n]));
        run_close(&to);
        run_close(&from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),       cmocka_unit_test(test_bias),
        cmocka_unit_test(test_relu_mask),   cmocka_unit_test(test_relu_keeps_nan),
        cmocka_unit_test(test_column_sums), cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
