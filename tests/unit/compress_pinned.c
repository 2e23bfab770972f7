/* tests/unit/compress_pinned.c -- tests the contraction of each compressor on standard data.
 *
 * The data have 65,536 independent elements, and results are means of 8 seeds. Expected figures are
 * analytic if there is a formula (sign: 2/pi and 1/2, topk: 2 (t phi(t) + Q(t))). The others were
 * measured with an independent program. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SIDE = 256, D = SIDE * SIDE, SEEDS = 8 };

#define GAUSS   VECTOR_GAUSS
#define LAPLACE VECTOR_LAPLACE
#define HEAVY   VECTOR_HEAVY

/* The vectors data[kind][seed] are filled once and used for all compressors. */
static float data[3][SEEDS][D];

static void fill_data(void)
{
    static const enum vector_kind kinds[] = {GAUSS, LAPLACE, HEAVY};
    for (size_t k = 0; k < 3; k++)
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            vector_fill(data[k][seed], D, kinds[k], seed + 1);
}

/* Returns the contraction of a codec for a square matrix, averaged over all seeds. */
static double mean_delta(const char *spec, enum vector_kind kind)
{
    size_t k = kind == GAUSS ? 0 : kind == LAPLACE ? 1 : 2;
    struct segment square = {.n = D, .rows = SIDE, .cols = SIDE};
    double sum = 0.0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct bench_rig r; /* A new codec has no memory of earlier seeds. */
        rig_open_model(&r, spec, &square, 1);
        sum += rig_delta(&r, seed, data[k][seed]);
        rig_close(&r);
    }
    return sum / SEEDS;
}

static const struct pin
{
    const char *spec;
    enum vector_kind kind;
    double delta, tol;
} pins[] = {
    {"none", GAUSS, 1.0, 1e-12},
    {"fp16", GAUSS, 1.0, 1e-6},
    {"topk:0.01", GAUSS, 0.0845, 0.005},
    {"topk:0.1", GAUSS, 0.4393, 0.005},
    {"topk:0.01+qsgd:4", GAUSS, 0.083, 0.005},
    {"topk:0.1+qsgd:4", GAUSS, 0.433, 0.005},
    {"randk:0.01", GAUSS, 0.010, 0.0005},
    {"randk:0.1", GAUSS, 0.1, 0.0015},
    {"sign:0", GAUSS, 0.6366, 0.005},
    {"sign", GAUSS, 0.6366, 0.005},
    {"qsgd:4", GAUSS, 0.982, 0.005},
    {"qsgd:4,round=sr", GAUSS, 0.965, 0.005},
    {"qsgd:4:512:l2,round=sr", GAUSS, 0.388, 0.005},
    {"qsgd:4:512:l2,round=sr,scale=inv1w", GAUSS, 0.329, 0.005},
    {"qsgd:8:512:l2,round=sr", GAUSS, 0.995, 0.002},
    {"qsgd:2,round=sr", GAUSS, 0.388, 0.005},
    {"qsgd:2", GAUSS, 0.4395, 0.005}, /* The contraction was measured with 2^24 values. */
    /* Counter-example: this codec is unbiased, but no contraction. Its error is larger than that of
     * sending nothing. */
    {"qsgd:4:512:l2,round=sr,scale=raw", GAUSS, -0.58, 0.02},
    {"int8", GAUSS, 0.99996, 0.00002},
    {"int8:4096", GAUSS, 0.9999, 0.00005},
    {"dyn8", GAUSS, 0.999, 0.0008},
    /* The contraction is computed from the quantiles of the normal distribution. */
    {"qnt", GAUSS, 0.99926, 0.0001},
    {"qnt:16", GAUSS, 0.97778, 0.001},
    {"bf16", GAUSS, 1.0, 0x1p-16},
    {"nat", GAUSS, 0.923, 0.005},
    {"nat,scale=raw", GAUSS, 0.919, 0.005},
    {"onebit", GAUSS, 0.636, 0.005},
    {"tern,round=sr", GAUSS, 0.49, 0.005},
    {"tern,round=sr,scale=raw", GAUSS, -0.009, 0.005},
    /* For Gaussian data, the contraction of tern:512,clip=0 equals that of qsgd:2. */
    {"tern:512,clip=0", GAUSS, 0.4395, 0.005},
    {"tern:512,clip=0,round=sr", GAUSS, 0.388, 0.005},
    {"3lc", GAUSS, 0.089, 0.02},
    {"3lc:1.75", GAUSS, 0.0015, 0.0015},
    {"wangni:0.1", GAUSS, 0.157, 0.005},
    {"wangni:0.1,scale=raw", GAUSS, -4.4, 0.1},
    {"randk:0.1,scale=unbiased", GAUSS, -8.0, 0.1},
    /* For Gaussian data, the contraction of aji:0.1 equals that of topk:0.1. */
    {"aji:0.1", GAUSS, 0.4393, 0.005},
    {"lowrank:1", GAUSS, 0.0078, 0.0005},
    {"lowrank:4", GAUSS, 0.031, 0.001},
    {"onebit", LAPLACE, 0.500, 0.005},
    {"tern,round=sr", LAPLACE, 0.49, 0.005},
    {"wangni:0.1", LAPLACE, 0.200, 0.005},
    {"wangni:0.1,scale=raw", LAPLACE, -3.0, 0.1},
    {"3lc", LAPLACE, 0.042, 0.01},
    {"onebit", HEAVY, 0.085, 0.005},
    {"tern,round=sr", HEAVY, 0.38, 0.01},
    {"wangni:0.1+none,scale=raw", HEAVY, 0.78, 0.02},
    {"3lc", HEAVY, 0.096, 0.02},
    {"sign:0", LAPLACE, 0.500, 0.005},
    {"topk:0.01", LAPLACE, 0.162, 0.005},
    {"topk:0.1", LAPLACE, 0.595, 0.005},
    {"topk:0.01+qsgd:4", LAPLACE, 0.161, 0.005},
    {"qsgd:4", LAPLACE, 0.962, 0.005},
    {"qsgd:4,round=sr", LAPLACE, 0.927, 0.005},
    {"topk:0.01", HEAVY, 0.66, 0.02},
    {"topk:0.1", HEAVY, 0.975, 0.005},
    {"sign:0", HEAVY, 0.085, 0.005},
};

static void test_pinned_contraction(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        double delta = mean_delta(pins[i].spec, pins[i].kind);
        if (!(fabs(delta - pins[i].delta) <= pins[i].tol))
            fail_msg("%s on vector %d: delta %.5f, expected %.5f within %g", pins[i].spec,
                     (int)pins[i].kind, delta, pins[i].delta, pins[i].tol);
    }
}

/* With a least-squares scale, no message has a larger error than sending nothing. With scale=raw,
 * each message has a larger error. */
static void test_every_draw(void **state)
{
    (void)state;
    struct bench_rig r;
    rig_open(&r, "qsgd:4:512:l2,round=sr", D);
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        assert_true(rig_delta(&r, seed, data[2][seed]) >= -1e-6);
    rig_close(&r);
    rig_open(&r, "qsgd:4:512:l2,round=sr,scale=raw", D);
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        assert_true(rig_delta(&r, seed, data[0][seed]) < -0.5);
    rig_close(&r);
}

/* The error of topk is the sum of the smallest squares. If all values but one are sent, it is the
 * smallest square. */
static void test_topk_identity(void **state)
{
    (void)state;
    struct bench_rig r;
    const float *v = data[0][0];
    rig_open(&r, "topk:0.99", 100);
    double least = INFINITY;
    for (size_t i = 0; i < 100; i++)
        least = fmin(least, (double)v[i] * (double)v[i]);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(fabs(r.stat.e2 - least) <= 1e-12 * least);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pinned_contraction),
        cmocka_unit_test(test_every_draw),
        cmocka_unit_test(test_topk_identity),
    };
    fill_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
