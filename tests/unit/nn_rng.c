/* tests/unit/nn_rng.c -- random numbers: outputs that are known, access by index, uniform
 * distribution. */
#include "nn_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The published outputs of SplitMix64 seeded with 1234567. */
static void test_splitmix(void **state)
{
    (void)state;
    static const uint64_t want[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u,
                                    16408922859458223821u};
    struct rng r = rng_stream(1234567);
    for (uint64_t i = 0; i < 5; i++) {
        assert_true(rng_at(1234567, i) == want[i]);
        assert_true(rng_u64(&r) == want[i]);
    }
}

/* The keys of two random streams differ if any argument differs, or if two arguments are
 * swapped. */
static void test_keys(void **state)
{
    (void)state;
    uint64_t keys[3 * 3 * 3 * 3];
    size_t n = 0;
    for (uint64_t seed = 0; seed < 3; seed++)
        for (int purpose = RNG_INIT; purpose < RNG_INIT + 3; purpose++)
            for (uint64_t i = 0; i < 9; i++)
                keys[n++] = rng_key(seed, (enum rng_purpose)purpose, i / 3, i % 3);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
}

/* Chi-square test of 2^14 draws in 16 bins. With 15 degrees of freedom, 37.7 is exceeded by
 * chance once in 1000 times. The seeds are fixed. */
static void uniform(const uint32_t bins[16], uint32_t n)
{
    double expect = n / 16.0, chi2 = 0;
    for (size_t i = 0; i < 16; i++)
        chi2 += (bins[i] - expect) * (bins[i] - expect) / expect;
    if (!(chi2 <= 37.7))
        fail_msg("chi-square %g", chi2);
}

static void test_uniform(void **state)
{
    (void)state;
    uint32_t unit[16] = {0}, at[16] = {0}, below[16] = {0}, high[16] = {0};
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    for (uint64_t i = 0; i < 1 << 14; i++) {
        double u = rng_unit(&r);
        float v = rng_unit_at(42, i);
        assert_true(u >= 0 && u < 1 && v >= 0 && v < 1);
        unit[(size_t)(u * 16)]++;
        at[(size_t)(v * 16)]++;
        below[rng_below(&r, 48) / 3]++;
        /* Counts the top four bits of the first random number of each of many consecutive keys. */
        high[rng_at(i, 0) >> 60]++;
    }
    uniform(unit, 1 << 14);
    uniform(at, 1 << 14);
    uniform(below, 1 << 14);
    uniform(high, 1 << 14);
}

/* With n = 3 * 2^62, a quarter of all 64-bit draws must be rejected. If draws were taken modulo n
 * instead, half of them would be in the lowest third of the range. */
static void test_below_edges(void **state)
{
    (void)state;
    struct rng r = rng_stream(5);
    uint64_t n = UINT64_C(3) << 62, lowest = 0;
    for (int i = 0; i < 3000; i++) {
        assert_true(rng_below(&r, 1) == 0);
        uint64_t x = rng_below(&r, n);
        assert_true(x < n);
        lowest += x < n / 3;
    }
    /* The expected number of draws in each bin is 1000. The range is +- 4.6 standard deviations. */
    assert_in_range(lowest, 880, 1120);
}

static void test_normal(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 1, 0));
    double sum = 0, sum2 = 0, sum4 = 0;
    int n = 1 << 16;
    for (int i = 0; i < n; i++) {
        double x = rng_normal(&r);
        sum += x;
        sum2 += x * x;
        sum4 += x * x * x * x;
    }
    /* The tolerances of mean and variance are about five standard errors. */
    assert_true(fabs(sum / n) <= 0.02);
    assert_true(fabs(sum2 / n - 1) <= 0.03);
    assert_true(fabs(sum4 / n - 3) <= 0.2);
}

static void test_shuffle(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 100, 1023};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint32_t v[1023], seen[1023] = {0};
        for (uint32_t i = 0; i < sizes[s]; i++)
            v[i] = i;
        struct rng r = rng_stream(9);
        rng_shuffle(&r, v, sizes[s]);
        for (size_t i = 0; i < sizes[s]; i++) {
            assert_true(v[i] < sizes[s]);
            seen[v[i]]++;
        }
        for (size_t i = 0; i < sizes[s]; i++)
            assert_int_equal(seen[i], 1);
    }
}

/* A shuffle gives all six orders of three elements equally often. */
static void test_shuffle_is_fair(void **state)
{
    (void)state;
    uint32_t count[27] = {0};
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 2, 0));
    for (int i = 0; i < 6000; i++) {
        uint32_t v[3] = {0, 1, 2};
        rng_shuffle(&r, v, 3);
        count[v[0] * 9 + v[1] * 3 + v[2]]++;
    }
    static const size_t orders[] = {5, 7, 11, 15, 19, 21};
    for (size_t i = 0; i < 6; i++)
        /* The expected number of occurrences of each order is 1000. The range is +- 4.5 standard
         * deviations. */
        assert_in_range(count[orders[i]], 870, 1130);
}

static void test_hash(void **state)
{
    (void)state;
    static const char *const names[] = {"",   "\0", "a",          "b",         "ab",
                                        "ba", "aa", "fc1.weight", "fc2.weight"};
    static const size_t lengths[] = {0, 1, 1, 1, 2, 2, 2, 10, 10};
    for (size_t i = 0; i < 9; i++)
        for (size_t j = 0; j < 9; j++)
            assert_true((rng_hash(names[i], lengths[i]) == rng_hash(names[j], lengths[j]))
                        == (i == j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splitmix),        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_uniform),         cmocka_unit_test(test_below_edges),
        cmocka_unit_test(test_normal),          cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_shuffle_is_fair), cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
