/* tests/unit/compress_unbiased.c -- tests with a z-test that the mean of C(v) is v for codecs that
 * claim it.
 *
 * The z-test must also detect known mistakes of other implementations. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SIDE = 8, N_MAX = 4 * SIDE * SIDE, DRAWS = 4096 };

/* Number of elements of the vectors. Codecs of matrices get 256 elements instead of 64, because
 * they send a matrix of 8 x 8 uncompressed. */
static size_t n = SIDE * SIDE;
static float v[N_MAX];

/* A function that writes one random draw of C(v). */
typedef void draw_fn(void *self, uint64_t draw, float *out);

struct verdict
{
    /* Largest |z|, where z is the deviation of a coordinate's mean in standard deviations. */
    double worst;
    double z2; /* Sum of z^2 over all coordinates, about n if C is unbiased. */
    bool unbiased;
};

/* Tests whether the mean of each coordinate over DRAWS draws is v. The standard deviation is
 * estimated from the draws. An error that is rare may occur in no draw of a coordinate, so the
 * estimated variance is at least (largest error of all draws)^2 / DRAWS. */
static struct verdict z_test(draw_fn *draw_one, void *self)
{
    static double sum[N_MAX], squares[N_MAX];
    static float out[N_MAX];
    double largest = 0.0;
    struct verdict verdict = {0};
    memset(sum, 0, sizeof sum);
    memset(squares, 0, sizeof squares);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        draw_one(self, rng_key(6, RNG_TEST, draw, 0), out);
        for (size_t i = 0; i < n; i++) {
            double e = (double)out[i] - (double)v[i];
            sum[i] += e;
            squares[i] += e * e;
            largest = fmax(largest, fabs(e));
        }
    }
    for (size_t i = 0; i < n; i++) {
        double mean = sum[i] / DRAWS;
        double variance = squares[i] / DRAWS - mean * mean;
        double rounding = 1e-6 * fabs((double)v[i]);
        variance = fmax(variance, largest * largest / DRAWS);
        double z = fmax(fabs(mean) - rounding, 0.0) / sqrt(variance / DRAWS);
        if (!(largest > 0.0))
            z = mean == 0.0 ? 0.0 : INFINITY;
        verdict.worst = z > verdict.worst || !(z == z) ? z : verdict.worst;
        verdict.z2 += z * z;
    }
    verdict.unbiased = verdict.worst < 5.0 && verdict.z2 < (double)n + 6.0 * sqrt(2.0 * (double)n);
    return verdict;
}

static void draw_codec(void *self, uint64_t draw, float *out)
{
    struct bench_rig *r = self;
    assert_int_equal(rig_code(r, draw, v), 0);
    memcpy(out, r->out, n * sizeof *out);
}

static void check_codec(const char *spec)
{
    bool by_tensor = spec_codec(spec)->body != NULL;
    size_t side = by_tensor ? 2 * SIDE : SIDE;
    struct segment square = {.n = side * side, .rows = side, .cols = side};
    struct bench_rig r;
    n = square.n;
    rig_open_model(&r, spec, &square, 1);
    static const enum vector_kind kinds[] = {VECTOR_GAUSS, VECTOR_SPARSE, VECTOR_HEAVY,
                                             VECTOR_CONSTANT};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        vector_fill(v, n, kinds[k], 5);
        struct verdict verdict = z_test(draw_codec, &r);
        if (!verdict.unbiased)
            fail_msg("%s on vector %d: largest |z| %.1f, sum of z^2 %.0f", spec, (int)kinds[k],
                     verdict.worst, verdict.z2);
    }
    rig_close(&r);
    n = SIDE * SIDE;
}

/* Tests each codec with its options for unbiased messages. */
static void test_codecs(void **state)
{
    (void)state;
    size_t tested = 0;
    for (size_t i = 0; codec_all[i] != NULL; i++) {
        char spec[SPEC_LONG];
        const char *options = codec_all[i]->unbiased;
        if (options == NULL)
            continue;
        spec_and(spec, codec_all[i]->name, *options == '\0' ? "" : ",");
        size_t len = strlen(spec);
        spec_and(spec + len, "", options);
        check_codec(spec);
        tested++;
    }
    assert_true(tested >= 2);
}

static void test_further(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "qsgd:4:0:l2,round=sr,scale=raw",
        "qsgd:2:0:max,round=sr,scale=raw",
        "qsgd:6:0:l2,round=sr,scale=raw,levels=16",
        "qsgd:3:8:l2,round=sr,scale=raw",
        "randk:0.3,scale=unbiased",
        "wangni:0.3+none,scale=raw",
        "tern:8,clip=0,round=sr,scale=raw",
        "dorefa:1,round=sr,scale=raw",
        "dorefa:2:16,round=sr,scale=raw",
        "atomo:1,scale=raw",
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        check_codec(specs[i]);
}

/* The z-test must detect biased codecs. */
static void test_biased(void **state)
{
    (void)state;
    static const char *const specs[] = {"qsgd:4:0:l2,round=sr,scale=inv1w",
                                        "qsgd:2:0:l2,round=sr,scale=ls",
                                        "qsgd:2:0:max",
                                        "sign:0",
                                        "topk:0.5",
                                        "randk:0.5",
                                        "nat",
                                        "tern,clip=0,round=sr",
                                        "tern,clip=1,round=sr,scale=raw",
                                        "wangni:0.3",
                                        "onebit",
                                        "3lc",
                                        "dorefa:1,round=sr"};
    vector_fill(v, n, VECTOR_GAUSS, 5);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct bench_rig r;
        rig_open(&r, specs[i], n);
        if (z_test(draw_codec, &r).unbiased)
            fail_msg("%s passes for unbiased", specs[i]);
        rig_close(&r);
    }
}

/* ---- mutants ---- */

struct mutant
{
    double levels; /* Number of levels of QSGD. */
    size_t k;      /* Number of elements that randk keeps. */
    bool wrong;
};

/* QSGD as in section 3.1 of the paper. A value between the levels l and l + 1 becomes l + 1 with a
 * probability equal to its fractional part, else l. The wrong variant, printed in a survey, has the
 * two probabilities swapped. */
static void draw_qsgd(void *self, uint64_t draw, float *out)
{
    const struct mutant *m = self;
    double norm = sqrt(vec_norm2(v, n));
    for (size_t i = 0; i < n; i++) {
        double a = m->levels * fabs((double)v[i]) / norm;
        double fraction = a - floor(a);
        bool up = (double)rng_unit_at(draw, i) < fraction;
        double level = floor(a) + (up != m->wrong ? 1.0 : 0.0);
        out[i] = (float)(copysign(norm, (double)v[i]) / m->levels * level);
    }
}

/* randk: sends one element of each of k strata, multiplied by n/k. The wrong variant does not
 * multiply. */
static void draw_randk(void *self, uint64_t draw, float *out)
{
    const struct mutant *m = self;
    size_t width = n / m->k;
    memset(out, 0, n * sizeof *out);
    for (size_t j = 0; j < m->k; j++) {
        size_t at = j * width + rng_at(draw, j) % width;
        out[at] = v[at] * (m->wrong ? 1.0f : (float)width);
    }
}

static void test_mutants(void **state)
{
    (void)state;
    static const double levels[] = {1, 4, 7, 16};
    vector_fill(v, n, VECTOR_GAUSS, 5);
    for (size_t i = 0; i < 4; i++) {
        struct mutant right = {.levels = levels[i]};
        struct mutant swapped = {.levels = levels[i], .wrong = true};
        assert_true(z_test(draw_qsgd, &right).unbiased);
        assert_false(z_test(draw_qsgd, &swapped).unbiased);
    }
    for (size_t k = 1; k <= n / 2; k *= 2) {
        struct mutant right = {.k = k};
        struct mutant unscaled = {.k = k, .wrong = true};
        assert_true(z_test(draw_randk, &right).unbiased);
        assert_false(z_test(draw_randk, &unscaled).unbiased);
    }
}

/* A coordinate of 0.01 in a vector of norm 1 must decode to 0.01 on average. With one level and
 * swapped probabilities, QSGD decodes it to 0.99 on average. */
static void test_swapped_example(void **state)
{
    (void)state;
    struct mutant swapped = {.levels = 1, .wrong = true};
    float out[N_MAX];
    double sum = 0.0;
    memset(v, 0, sizeof v);
    v[0] = 1.0f;
    v[1] = 0.01f;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        draw_qsgd(&swapped, draw, out);
        sum += (double)out[1] / DRAWS;
    }
    assert_true(fabs(sum - 0.99) <= 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codecs),          cmocka_unit_test(test_further),
        cmocka_unit_test(test_biased),          cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_swapped_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
