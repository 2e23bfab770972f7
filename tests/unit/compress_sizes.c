/* tests/unit/compress_sizes.c -- tests the size of messages: exact sizes, the cost of positions,
 * and upper bounds. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MILLION = 1000000, SMALL_MAX = 300 };

static float v[MILLION];

/* Sizes in bytes of messages of one million Gaussian values. In each row, `+ 1` is the first byte
 * of the message. If all messages of a codec have the same length, compress_bound() and
 * compress_nominal() must return this length. */
static void test_exact_sizes(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        size_t len;
    } sizes[] = {
        {"none", 4000000 + 1},
        /* 977 bytes of the message are exponents, one per block of 1024 values. */
        {"fp16", 2000000 + 977 + 1},
        {"sign:0", 125004 + 1},
        {"sign", 125000 + 4 * 1954 + 1},
        {"qsgd:4", 507816 + 1},
        {"qsgd:2:0", 250004 + 1},
        {"qsgd:8", 1000000 + 4 * 1954 + 1},
        {"bf16", 2000000 + 1},
        {"int8", 1015628 + 1},
        {"int8:0", 1000004 + 1},
        {"dyn8", 1000004 + 1},
        {"qnt", 1001024 + 1},
        {"qnt:16", 500064 + 1},
        {"nat", 1125000 + 1},
        {"onebit", 125008 + 1},
        {"thr2", 250004 + 1},
        {"thr2,form=mxnet", 250000 + 1},
        {"dorefa", 750004 + 1},
        {"randk:0.01", 40008 + 1},
        {"randk:0.1+qsgd:4", 8 + 50000 + 4 * 196 + 1},
    };
    vector_fill(v, MILLION, VECTOR_GAUSS, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bench_rig r;
        rig_open(&r, sizes[i].spec, MILLION);
        assert_int_equal(rig_code(&r, 1, v), 0);
        if (r.len != sizes[i].len || compress_bound(r.c) != r.len || compress_nominal(r.c) != r.len)
            fail_msg("%s: %zu bytes, bound %zu, nominal %zu, expected %zu", sizes[i].spec, r.len,
                     compress_bound(r.c), compress_nominal(r.c), sizes[i].len);
        rig_close(&r);
    }
}

/* Returns log2 of the binomial coefficient n over k. */
static double log2_choose(double n, double k)
{
    return (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / log(2.0);
}

/* With Rice codes, a position takes 8.108 bits if 1 % of all positions are sent, and 4.756 bits if
 * 10 % are. With Elias-Fano codes it takes 8.563 and 5.25 bits. No code is below the entropy. */
static void test_position_bits(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        double k, values, bits, tol;
    } pins[] = {
        {"topk:0.01/rice", 1e4, 4e4, 8.108, 0.011},
        {"topk:0.1/rice", 1e5, 4e5, 4.756, 0.011},
        {"topk:0.01", 1e4, 4e4, 8.108, 0.011},
        {"topk:0.1", 1e5, 4e5, 4.756, 0.011},
        {"topk:0.01/ef", 1e4, 4e4, 8.563, 0.02},
        {"topk:0.1/ef", 1e5, 4e5, 5.25, 0.02},
        {"topk:0.01/bitmap", 1e4, 4e4, 100.0, 0.01},
        {"topk:0.1/bitmap", 1e5, 4e5, 10.0, 0.01},
        {"topk:0.01+qsgd:4", 1e4, 5000 + 4 * 20, 8.108, 0.011},
        {"topk:0.01+sign", 1e4, 1250 + 4 * 20, 8.108, 0.011},
        {"topk:0.01+fp16", 1e4, 20000 + 10, 8.108, 0.011},
    };
    vector_fill(v, MILLION, VECTOR_GAUSS, 2);
    for (size_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        struct bench_rig r;
        rig_open(&r, pins[i].spec, MILLION);
        assert_int_equal(rig_code(&r, 1, v), 0);
        /* Bytes of a message besides positions and values: 1 for the compressor, 2 for k, 1 for the
         * code of the positions, and 2 for the length of the stream. */
        double head = 1 + 2 + 1 + 2;
        double bits = 8.0 * ((double)r.len - head - pins[i].values) / pins[i].k;
        double least = log2_choose(MILLION, pins[i].k) / pins[i].k;
        double nominal = (double)compress_nominal(r.c) / (double)r.len;
        if (!(fabs(bits - pins[i].bits) <= pins[i].tol) || !(bits >= least))
            fail_msg("%s: %.4f bits a position, expected %.3f, at least %.3f", pins[i].spec, bits,
                     pins[i].bits, least);
        if (!(fabs(nominal - 1.0) <= 0.02))
            fail_msg("%s: nominal is %.3f of %zu bytes", pins[i].spec, nominal, r.len);
        rig_close(&r);
    }
}

/* For LeNet-5, messages must be at least 30 times smaller with sign, and 200 times with
 * topk:0.01+qsgd:4. */
static void test_budget(void **state)
{
    (void)state;
    const size_t d = 61706;
    vector_fill(v, d, VECTOR_GAUSS, 3);
    struct bench_rig r;
    rig_open(&r, "sign", d);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(4.0 * (double)d / (double)r.len >= 30.0);
    rig_close(&r);
    rig_open(&r, "topk:0.01+qsgd:4", d);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(4.0 * (double)d / (double)r.len >= 200.0);
    rig_close(&r);
}

/* Fills a vector with positions or values that are far from random. */
static void fill_odd(struct rng *r, size_t n)
{
    size_t how = rng_below(r, 6);
    size_t hot = 1 + rng_below(r, n < 8 ? n : 8);
    if (how == 5) {
        vector_fill(v, n, (enum vector_kind)rng_below(r, VECTOR_KINDS), rng_u64(r));
        return;
    }
    memset(v, 0, n * sizeof *v);
    for (size_t i = 0; i < hot; i++) {
        size_t at = how == 0   ? n - 1 - i % n
                    : how == 1 ? i % n
                    : how == 2 ? (i == 0 ? n - 1 : i - 1)
                               : rng_below(r, n);
        v[at] = (float)rng_normal(r);
    }
    for (size_t i = 0; how >= 3 && i < n; i++)
        /* Sets many values to 1, or scales them by 2^40, so that the message has long runs of
         * one code. */
        if (rng_below(r, 8) < how)
            v[i] = how == 3 ? 1.0f : v[i] * 0x1p40f;
}

/* No message of 10^5 unusual vectors is longer than its bound. rig_code() asserts that, and that
 * the bytes after the buffer are unchanged. */
static void test_bounds(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    const size_t tries = 100000 / n_specs / 20 + 1;
    struct rng rng = rng_stream(rng_key(6, RNG_TEST, 0, 0));
    for (size_t i = 0; i < n_specs; i++)
        for (size_t shape = 0; shape < 20; shape++) {
            size_t n = 1 + rng_below(&rng, shape < 10 ? 40 : SMALL_MAX);
            size_t rows = 1 + rng_below(&rng, n < 20 ? n : 20);
            n = n / rows * rows;
            struct segment s = {.n = n, .rows = rows, .cols = n / rows};
            struct bench_rig r;
            rig_open_model(&r, list[i].spec, &s, 1);
            for (size_t t = 0; t < tries; t++) {
                fill_odd(&rng, n);
                if (rig_code(&r, t, v) != 0)
                    fail_msg("%s: n=%zu is refused", list[i].spec, n);
                rig_check_fences(&r);
            }
            rig_close(&r);
        }
}

/* The positions with the longest code: all but one are at the start, and one is the last possible
 * position. */
static void test_bound_of_gaps(void **state)
{
    (void)state;
    static const char *const specs[] = {"topk:0.01", "topk:0.01/rice", "topk:0.01/ef",
                                        "topk:0.01/bitmap"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (size_t n = 1; n <= MILLION; n = n * 3 + 1) {
            struct bench_rig r;
            size_t k = (n + 99) / 100;
            rig_open(&r, specs[i], n);
            memset(v, 0, n * sizeof *v);
            for (size_t j = 0; j + 1 < k; j++)
                v[j] = 1.0f;
            v[n - 1] = 2.0f;
            assert_int_equal(rig_code(&r, 0, v), 0);
            assert_true(r.out[n - 1] == 2.0f);
            /* Even for the positions with the longest code, a message has at most 1.2 times the
             * nominal size plus 8 bytes. */
            if (strcmp(specs[i], "topk:0.01") == 0)
                assert_true((double)r.len <= 8.0 + 1.2 * (double)compress_nominal(r.c));
            rig_close(&r);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_sizes),   cmocka_unit_test(test_position_bits),
        cmocka_unit_test(test_budget),        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_bound_of_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
