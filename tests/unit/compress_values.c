/* tests/unit/compress_values.c -- tests random draws, levels and rounding of single codecs. */
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { N_MAX = 160000 };

static float v[N_MAX];

/* Adjacent values of a message, and one value in successive messages, are drawn independently. */
static void test_draws_uncorrelated(void **state)
{
    (void)state;
    enum { N = 1024 };
    struct bench_rig r;
    rig_open(&r, "qsgd:2:0:max,round=sr,scale=raw", N);
    for (size_t i = 0; i < N; i++)
        /* All values but the first are rounded up with probability 1/2. */
        v[i] = i == 0 ? 1.0f : 0.5f;
    double same_next = 0.0;
    double same_draw = 0.0;
    static float last[N];
    const size_t draws = 200;
    for (uint64_t draw = 0; draw <= draws; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        for (size_t i = 1; i < N && draw > 0; i++) {
            same_next += i > 1 && r.out[i] == r.out[i - 1];
            same_draw += r.out[i] == last[i];
        }
        memcpy(last, r.out, sizeof last);
    }
    double trials = (double)draws * (N - 1);
    double slack = 5.0 * 0.5 / sqrt(trials);
    assert_true(fabs(same_next / (trials - (double)draws) - 0.5) <= slack);
    assert_true(fabs(same_draw / trials - 0.5) <= slack);
    rig_close(&r);
}

/* randk selects one position of each stratum, so each coordinate is sent with a probability of
 * about k/n. */
static void test_randk_marginals(void **state)
{
    (void)state;
    enum { N = 101, DRAWS = 20000 };
    static size_t hits[N];
    struct bench_rig r;
    rig_open(&r, "randk:0.2", N);
    memset(hits, 0, sizeof hits);
    for (size_t i = 0; i < N; i++)
        v[i] = 1.0f;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        size_t k = 0;
        assert_int_equal(rig_code(&r, draw, v), 0);
        for (size_t i = 0; i < N; i++) {
            /* randk sends the selected values as they are. */
            assert_true(r.out[i] == 0.0f || r.out[i] == 1.0f);
            hits[i] += r.out[i] == 1.0f;
            k += r.out[i] == 1.0f;
        }
        assert_int_equal(k, 21);
    }
    /* The strata have 4 or 5 positions, so each position is sent with probability 1/4 or 1/5. */
    for (size_t i = 0; i < N; i++) {
        double p = (double)hits[i] / DRAWS;
        assert_true(fabs(p - 0.2) <= 0.015 || fabs(p - 0.25) <= 0.015);
    }
    rig_close(&r);
}

/* If only one value of a block is not 0, the norm of the block equals its absolute value. The value
 * must then get the highest level s, and never s + 1. The naive formula gives s + 1 in one of seven
 * blocks. Level s - 1 may occur rarely, if the quotient is rounded to just below s. There are 10^7
 * blocks with s = 127, and 10^6 each with s = 1 and s = 7. */
static void test_level_overflow(void **state)
{
    (void)state;
    static const char *const specs[] = {"qsgd:8:8:l2,round=sr,scale=raw",
                                        "qsgd:2:8:l2,round=sr,scale=raw",
                                        "qsgd:4:8:l2,round=sr,scale=raw"};
    const size_t rounds = 10000000 / (N_MAX / 8);
    size_t naive = 0, short_of = 0;
    memset(v, 0, sizeof v);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < N_MAX / 8; i++) { /* |a| is in [1, 2). */
            uint64_t bits = rng_at(round + 1, i);
            float a = 1.0f + (float)(bits >> 41) * 0x1p-23f;
            v[8 * i + 3] = bits & 1 ? -a : a;
            naive += floorf(127.0f / sqrtf(a * a) * a) != 127.0f;
        }
        for (size_t s = 0; s < (round % 10 == 0 ? 3 : 1); s++) {
            struct bench_rig r;
            rig_open(&r, specs[s], N_MAX);
            assert_int_equal(rig_code(&r, round, v), 0);
            for (size_t i = 0; i < N_MAX; i++) {
                float a = fabsf(v[i]);
                short_of += fabsf(r.out[i]) < 0.9999f * a;
                if (!(fabsf(r.out[i]) <= a + 3e-7f * a))
                    fail_msg("%s: %zu: %a became %a", specs[s], i, (double)v[i], (double)r.out[i]);
            }
            rig_close(&r);
        }
    }
    assert_true(short_of < 1000);
    /* The naive formula gives wrong levels for these data, so the test would detect it. */
    assert_true(naive > 1000000);
}

/* Tests blocks in which a single value is not 0, for further options of qsgd and with fewer blocks
 * than test_level_overflow(). */
static void test_lone_values(void **state)
{
    (void)state;
    enum { N = N_MAX };
    static const char *const specs[] = {"qsgd:2:8:max,scale=raw", "qsgd:4:8:max,round=sr,scale=raw",
                                        "qsgd:8:8:l2,scale=raw",  "qsgd:16:8:l2,scale=raw",
                                        "qsgd:2:8:l2,round=sr",   "qsgd:6:8:max,levels=16"};
    struct rng rng = rng_stream(rng_key(4, RNG_TEST, 0, 0));
    memset(v, 0, N * sizeof *v);
    for (size_t i = 3; i < N; i += 8)
        v[i] = (float)rng_normal(&rng);
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        struct bench_rig r;
        rig_open(&r, specs[s], N);
        assert_int_equal(rig_code(&r, s, v), 0);
        for (size_t i = 0; i < N; i++)
            if (!(fabsf(r.out[i] - v[i]) <= 3e-7f * fabsf(v[i])))
                fail_msg("%s: %zu: %a became %a", specs[s], i, (double)v[i], (double)r.out[i]);
        rig_close(&r);
    }
}

/* fp16 rounds to nearest even, also among its subnormals. */
static void test_fp16_rounding(void **state)
{
    (void)state;
    static const float pairs[][2] = {
        /* A block of fp16 has a scale. In this block the largest value is 1.5, so neighbouring
         * values of the scaled format differ by 2^-10 near 1, and by 2^-38 near 0. */
        {1.0f + 0x1p-11f, 1.0f},
        {1.0f + 0x1.8p-10f, 1.0f + 0x1p-9f},
        {-1.0f - 0x1.2p-11f, -1.0f - 0x1p-10f},
        {0x1p-38f, 0x1p-38f},
        {0x1.8p-38f, 0x1p-37f},
        {0x1p-39f, 0.0f},
        {-0x1p-39f, 0.0f},
        {-0x1.0002p-39f, -0x1p-38f},
        {0x1.ffcp-1f, 0x1.ffcp-1f},
        {0x1.fffp-1f, 1.0f},
    };
    enum { N = sizeof pairs / sizeof pairs[0] };
    struct bench_rig r;
    rig_open(&r, "fp16", N + 1);
    for (size_t i = 0; i < N; i++)
        v[i] = pairs[i][0];
    v[N] = 1.5f;
    assert_int_equal(rig_code(&r, 1, v), 0);
    for (size_t i = 0; i < N; i++)
        if (!(r.out[i] == pairs[i][1]))
            fail_msg("%a became %a, expected %a", (double)pairs[i][0], (double)r.out[i],
                     (double)pairs[i][1]);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_uncorrelated), cmocka_unit_test(test_randk_marginals),
        cmocka_unit_test(test_level_overflow),     cmocka_unit_test(test_lone_values),
        cmocka_unit_test(test_fp16_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
