/* tests/unit/nn_conv_winograd.c -- Winograd's transforms: every build of the kernels that this
 * CPU can run against the matrices of the paper (Lavin and Gray 2016, section 4.1), and the
 * whole method on one tile. All builds give equal bits. */
#include "nn/layers/winograd_transform.h"
#include "nn/math/rng.h"
#include "nn_ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

enum {
    C = 48,       /* Number of channels of the maps. */
    COLUMNS = 32, /* Number of channels that one call transforms, from channel FIRST on. */
    FIRST = 16,
    W = 6,
    TILES = W / 2,
    APART = TILES * COLUMNS + 16,
    XI = 16,
    LANES = WINOGRAD_LANES
};

static const double at[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
static const double bt[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
static const double gm[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

static float rows[4][W * C], matrix[XI * APART], out[2][W * C], bias[C], weights[9 * LANES],
    u[XI * LANES];

static void near(float got, double want)
{
    if (!(fabs((double)got - want) <= 2e-6))
        fail_msg("%.8g, not %.8g", (double)got, want);
}

typedef void each_fn(const struct winograd_kernels *kernels);

static void with_all(each_fn *each)
{
    ref_uniform(rng_key(11, RNG_TEST, 1, 0), &rows[0][0], sizeof rows / sizeof(float));
    ref_uniform(rng_key(11, RNG_TEST, 2, 0), bias, C);
    ref_uniform(rng_key(11, RNG_TEST, 3, 0), weights, 9 * LANES);
    size_t n_here = 0;
    for (size_t i = 0; winograd_all[i] != NULL; i++)
        if (winograd_all[i]->runs_here()) {
            each(winograd_all[i]);
            n_here++;
        }
    assert_true(n_here >= 1 && winograd_kernels()->runs_here());
}

static struct winograd_strip strip(void)
{
    struct winograd_strip s = {
        .w = W, .channels = C, .columns = COLUMNS, .apart = APART, .matrix = matrix};
    for (size_t i = 0; i < 4; i++)
        s.in[i] = rows[i] + FIRST;
    for (size_t i = 0; i < 2; i++)
        s.out[i] = out[i] + FIRST;
    return s;
}

/* Returns the value of channel FIRST + c at column x of row i, or 0 if this position is outside of
 * the map. */
static double place(size_t i, size_t x, size_t c)
{
    return x < W ? (double)rows[i][x * C + FIRST + c] : 0;
}

static void matrix_is_clean(void)
{
    for (size_t xi = 0; xi < XI; xi++)
        for (size_t i = TILES * COLUMNS; i < APART; i++)
            assert_true(matrix[xi * APART + i] == 77);
}

static void spoil(float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = 77;
}

static void in(const struct winograd_kernels *kernels)
{
    struct winograd_strip s = strip();
    spoil(matrix, XI * APART);
    kernels->strip_in(&s);
    for (size_t xi = 0; xi < XI; xi++)
        for (size_t t = 0; t < TILES; t++)
            for (size_t c = 0; c < COLUMNS; c++) {
                double want = 0;
                for (size_t i = 0; i < 4; i++)
                    /* In the first column the position 2 * t + j - 1 can be -1, which wraps around
                     * to a large value. place() returns 0 for all positions outside of the map. */
                    for (size_t j = 0; j < 4; j++)
                        want += bt[xi / 4][i] * bt[xi % 4][j] * place(i, 2 * t + j - 1, c);
                near(matrix[xi * APART + t * COLUMNS + c], want);
            }
    matrix_is_clean();
}

static void test_in(void **state)
{
    (void)state;
    with_all(in);
}

/* Returns output (i, j) of the 2x2 outputs of tile t. */
static double inverse(size_t t, size_t c, size_t i, size_t j)
{
    double y = 0;
    for (size_t xi = 0; xi < XI; xi++)
        y += at[i][xi / 4] * at[j][xi % 4] * (double)matrix[xi * APART + t * COLUMNS + c];
    return y;
}

static void check_out(const struct winograd_kernels *kernels, bool biased, bool add, bool relu)
{
    static float before[2][W * C];
    struct winograd_strip s = strip();
    ref_uniform(rng_key(11, RNG_TEST, 4, 0), matrix, XI * APART);
    ref_uniform(rng_key(11, RNG_TEST, 5, 0), &before[0][0], 2 * W * C);
    memcpy(out, before, sizeof out);
    s.bias = biased ? bias + FIRST : NULL;
    s.add = add;
    s.relu = relu;
    kernels->strip_out(&s);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < W * C; k++) {
            size_t x = k / C, c = k % C;
            if (c < FIRST) {
                assert_true(out[i][k] == before[i][k]);
                continue;
            }
            double y = inverse(x / 2, c - FIRST, i, x % 2);
            y += (biased ? (double)bias[c] : 0) + (add ? (double)before[i][k] : 0);
            near(out[i][k], relu && y < 0 ? 0 : y);
        }
}

static void outs(const struct winograd_kernels *kernels)
{
    for (unsigned bits = 0; bits < 8; bits++)
        check_out(kernels, bits & 1, bits & 2, bits & 4);
}

static void test_out(void **state)
{
    (void)state;
    with_all(outs);
}

/* Checks the transform of the output gradient: it is `A dY A^T`, except that elements with exactly
 * one index of 3 have the opposite sign. */
static void gradient(const struct winograd_kernels *kernels)
{
    struct winograd_strip s = strip();
    spoil(matrix, XI * APART);
    kernels->strip_gradient(&s);
    for (size_t xi = 0; xi < XI; xi++)
        for (size_t t = 0; t < TILES; t++)
            for (size_t c = 0; c < COLUMNS; c++) {
                double want = (xi / 4 == 3) == (xi % 4 == 3) ? 1 : -1, sum = 0;
                for (size_t i = 0; i < 2; i++)
                    for (size_t j = 0; j < 2; j++)
                        sum += at[i][xi / 4] * at[j][xi % 4] * place(i, 2 * t + j, c);
                near(matrix[xi * APART + t * COLUMNS + c], want * sum);
            }
    matrix_is_clean();
}

static void test_gradient(void **state)
{
    (void)state;
    with_all(gradient);
}

static void weights_both(const struct winograd_kernels *kernels)
{
    kernels->weights_in(u, LANES, weights);
    for (size_t xi = 0; xi < XI; xi++)
        for (size_t lane = 0; lane < LANES; lane++) {
            double want = 0;
            for (size_t k = 0; k < 9; k++)
                want += gm[xi / 4][k / 3] * gm[xi % 4][k % 3] * (double)weights[k * LANES + lane];
            near(u[xi * LANES + lane], want);
        }
    float back[9 * LANES];
    ref_uniform(rng_key(11, RNG_TEST, 6, 0), u, XI * LANES);
    kernels->weights_out(back, u, LANES);
    for (size_t k = 0; k < 9; k++)
        for (size_t lane = 0; lane < LANES; lane++) {
            double want = 0;
            for (size_t xi = 0; xi < XI; xi++) {
                double sign = (xi / 4 == 3) == (xi % 4 == 3) ? 1 : -1;
                want += sign * gm[xi / 4][k / 3] * gm[xi % 4][k % 3] * (double)u[xi * LANES + lane];
            }
            near(back[k * LANES + lane], want);
        }
}

static void test_weights(void **state)
{
    (void)state;
    with_all(weights_both);
}

/* The transforms consist of additions and multiplications by powers of two in a fixed order. All
 * builds therefore give the same bits as the plain build. */
static void same_bits(const struct winograd_kernels *kernels)
{
    static float v[XI * APART], y[2][W * C], g[9 * LANES];
    const struct winograd_kernels *plain = kernels;
    for (size_t i = 0; winograd_all[i] != NULL; i++)
        plain = winograd_all[i];
    struct winograd_strip s = strip();
    void (*const strips[2])(const struct winograd_strip *) = {kernels->strip_in,
                                                              kernels->strip_gradient};
    void (*const plains[2])(const struct winograd_strip *) = {plain->strip_in,
                                                              plain->strip_gradient};
    for (size_t i = 0; i < 2; i++) {
        spoil(matrix, XI * APART);
        plains[i](&s);
        memcpy(v, matrix, sizeof v);
        strips[i](&s);
        assert_memory_equal(v, matrix, sizeof v);
    }
    s.bias = bias;
    plain->strip_out(&s);
    memcpy(y, out, sizeof y);
    kernels->strip_out(&s);
    assert_memory_equal(y, out, sizeof y);
    plain->weights_in(u, LANES, weights);
    memcpy(v, u, sizeof u);
    kernels->weights_in(u, LANES, weights);
    assert_memory_equal(v, u, sizeof u);
    plain->weights_out(g, u, LANES);
    kernels->weights_out(weights, u, LANES);
    assert_memory_equal(g, weights, sizeof g);
}

static void test_same_bits(void **state)
{
    (void)state;
    with_all(same_bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in),        cmocka_unit_test(test_out),
        cmocka_unit_test(test_gradient),  cmocka_unit_test(test_weights),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
