/* tests/unit/nn_vec.c -- vector kernels are compared with naive loops, on odd sizes. */
#include "nn_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 100, 255, 1023};

enum { N_SIZES = sizeof sizes / sizeof sizes[0], LONGEST = 1023 };

static double ad[LONGEST], bd[LONGEST];
static float a[LONGEST], b[LONGEST];

static int setup(void **state)
{
    (void)state;
    ref_noise(rng_key(1, RNG_TEST, 1, 0), 1, ad, a, LONGEST);
    ref_noise(rng_key(1, RNG_TEST, 2, 0), 1, bd, b, LONGEST);
    return 0;
}

static void test_sums(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SIZES; s++) {
        double dot = 0, norm2 = 0, dist2 = 0;
        for (size_t i = 0; i < sizes[s]; i++) {
            dot += ad[i] * bd[i];
            norm2 += ad[i] * ad[i];
            dist2 += (ad[i] - bd[i]) * (ad[i] - bd[i]);
        }
        assert_true(ref_near(vec_dot(a, b, sizes[s]), dot, 1e-12));
        assert_true(ref_near(vec_norm2(a, sizes[s]), norm2, 1e-12));
        /* vec_dist2() rounds a - b to a float before it squares it. */
        assert_true(ref_near(vec_dist2(a, b, sizes[s]), dist2, 1e-6));
    }
}

/* In an update such as x += a y, each element is rounded in only one way, so fast and naive code
 * give equal bits. Floats after the end do not change. */
static void test_updates(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SIZES; s++) {
        float got[LONGEST], want[LONGEST];
        memcpy(got, b, sizeof got);
        memcpy(want, b, sizeof want);
        vec_axpy(got, 0.3f, a, sizes[s]);
        for (size_t i = 0; i < sizes[s]; i++) {
            volatile float product = 0.3f * a[i];
            want[i] = want[i] + product;
        }
        assert_memory_equal(got, want, sizeof want);
        vec_add_diff(got, -0.7f, a, b, sizes[s]);
        for (size_t i = 0; i < sizes[s]; i++) {
            volatile float diff = a[i] - b[i];
            volatile float product = -0.7f * diff;
            want[i] = want[i] + product;
        }
        assert_memory_equal(got, want, sizeof want);
    }
}

static void test_finite(void **state)
{
    (void)state;
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float v[33];
    memcpy(v, a, sizeof v);
    v[3] = 3.4e38f;
    v[4] = 1e-45f;
    assert_true(vec_finite(v, 33));
    assert_true(vec_finite(v, 0));
    for (size_t i = 0; i < 33; i++)
        for (size_t k = 0; k < 4; k++) {
            float keep = v[i];
            v[i] = bad[k];
            assert_false(vec_finite(v, 33));
            assert_true(vec_finite(v, i));
            v[i] = keep;
        }
}

/* Every bit of every element changes the hash, and so do the length and the order. */
static void test_hash(void **state)
{
    (void)state;
    float v[19];
    memcpy(v, a, sizeof v);
    uint64_t h = vec_hash(v, 19);
    assert_true(vec_hash(v, 19) == h);
    assert_true(vec_hash(v, 18) != h);
    for (size_t i = 0; i < 19; i++)
        for (uint32_t bit = 0; bit < 32; bit++) {
            uint32_t word, flipped;
            memcpy(&word, &v[i], sizeof word);
            flipped = word ^ (UINT32_C(1) << bit);
            memcpy(&v[i], &flipped, sizeof word);
            assert_true(vec_hash(v, 19) != h);
            memcpy(&v[i], &word, sizeof word);
        }
    /* The hash is computed in four chains, each over every fourth element. Exchanging two elements
     * of different chains must change the hash, too. */
    for (size_t i = 1; i < 19; i++) {
        float t = v[0];
        v[0] = v[i];
        v[i] = t;
        assert_true(vec_hash(v, 19) != h);
        v[i] = v[0];
        v[0] = t;
    }
    float zero = 0.0f, minus = -0.0f;
    assert_true(vec_hash(&zero, 1) != vec_hash(&minus, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_finite),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
