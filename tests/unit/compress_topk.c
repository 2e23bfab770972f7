/* Exact selection against qsort, and the coding of positions. */
#include "compress/rice.h"
#include "compress/select.h"

#include "tests/unit/compress_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum {
    N_MAX = 1 << 20
};

static float v[N_MAX];
static uint32_t order[N_MAX];

/* Largest magnitude first, then lowest index. */
static int by_magnitude(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a;
    uint32_t j = *(const uint32_t *)b;
    float x = fabsf(v[i]);
    float y = fabsf(v[j]);
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

static int by_index(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a;
    uint32_t j = *(const uint32_t *)b;
    return (i > j) - (i < j);
}

/* order[0..returned) becomes the k largest non-zero of v, by index. */
static size_t oracle(size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort(order, n, sizeof order[0], by_magnitude);
    while (k > 0 && v[order[k - 1]] == 0.0f)
        k--;
    qsort(order, k, sizeof order[0], by_index);
    return k;
}

static void pick_open(struct codec_pick *p, size_t n, size_t k)
{
    *p = (struct codec_pick){
        .index = malloc((k + CODEC_CHUNK) * sizeof *p->index),
        .value = malloc((k + CODEC_CHUNK) * sizeof *p->value),
        .scratch = malloc(select_scratch(n, k)),
    };
    assert_non_null(p->index);
    assert_non_null(p->value);
    assert_non_null(p->scratch);
}

static void pick_close(struct codec_pick *p)
{
    free(p->index);
    free(p->value);
    free(p->scratch);
}

static void check_pick(const struct codec_pick *p, size_t n, size_t k)
{
    assert_int_equal(p->k, k);
    double rest2 = vec_norm2(v, n);
    for (size_t i = 0; i < k; i++) {
        if (p->index[i] != order[i])
            fail_msg("n=%zu k=%zu: %zu-th position is %u, not %u", n, k, i,
                     p->index[i], order[i]);
        assert_true(p->value[i] == v[order[i]]);
        rest2 -= (double)v[order[i]] * (double)v[order[i]];
    }
    double slack = 1e-9 * vec_norm2(v, n);
    assert_true(fabs(p->rest2 - rest2) <= slack);
}

/* Both ways against the oracle; says whether the fast one fell back. */
static bool check_select(size_t n, size_t k)
{
    struct codec_source s = {.x = v, .n = n};
    struct codec_pick p;
    bool fell_back;
    size_t want = oracle(n, k);
    pick_open(&p, n, k);
    assert_int_equal(select_top(&s, k, &p, &fell_back), 0);
    check_pick(&p, n, want);
    assert_int_equal(select_top_histogram(&s, k, &p), 0);
    check_pick(&p, n, want);
    pick_close(&p);
    return fell_back;
}

static void test_against_oracle(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,   2,    3,    15,   16,   17,   100,
                                   1023, 8191, 8192, 8193, 8209, 40000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int kind = 0; kind < VECTOR_KINDS; kind++) {
            size_t n = sizes[i];
            vector_fill(v, n, (enum vector_kind)kind, 11);
            check_select(n, 1);
            check_select(n, (n + 99) / 100);
            check_select(n, (n + 1) / 2);
            check_select(n, n);
        }
}

/* On ordinary data the fast way suffices. */
static void test_fast_path(void **state)
{
    (void)state;
    static const size_t share[] = {1000, 100, 10, 2};
    for (size_t i = 0; i < 4; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            vector_fill(v, 300000, VECTOR_LAPLACE, seed);
            assert_false(check_select(300000, 300000 / share[i]));
        }
    vector_fill(v, N_MAX, VECTOR_GAUSS, 0);
    assert_false(check_select(N_MAX, N_MAX / 100));
}

/* Large values only where the sample looks: the threshold is far too high.
 * Small ones only there: far too low, and there is no room. */
static void test_forced_fallback(void **state)
{
    (void)state;
    enum {
        N = 100000
    };
    for (int high = 0; high < 2; high++) {
        vector_fill(v, N, VECTOR_GAUSS, 3);
        for (size_t j = 0; j < select_lines(N); j++)
            for (size_t i = 0; i < SELECT_LINE; i++)
                v[select_line_at(N, j) + i] *= high ? 1e6f : 1e-6f;
        assert_true(check_select(N, N / 5));
    }
    vector_fill(v, N, VECTOR_CONSTANT, 3);
    assert_true(check_select(N, N / 100));
    vector_fill(v, N, VECTOR_TIES, 3);
    assert_true(check_select(N, N / 100));
    vector_fill(v, N, VECTOR_SPARSE, 3); /* Fewer than k: no fallback. */
    assert_false(check_select(N, N / 5));
}

static void test_refuses(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p64f};
    for (size_t n = 1000; n <= 100000; n *= 100)
        for (size_t j = 0; j < 4; j++) {
            struct codec_source s = {.x = v, .n = n};
            struct codec_pick p;
            vector_fill(v, n, j % 2 ? VECTOR_GAUSS : VECTOR_CONSTANT, 5);
            v[n * 2 / 3] = bad[j];
            pick_open(&p, n, n / 10);
            assert_int_equal(select_top(&s, n / 10, &p, NULL), -ERANGE);
            assert_int_equal(select_top_histogram(&s, n / 10, &p), -ERANGE);
            pick_close(&p);
        }
}

/* Positions survive at every parameter, and the best one keeps the bound. */
static void check_rice(const uint32_t *index, size_t k, size_t n)
{
    unsigned best = rice_best(index, k, n);
    size_t room = k * 8 + n / 8 + 64;
    uint8_t *bytes = malloc(room);
    uint32_t *back = malloc(k * sizeof *back);
    assert_non_null(bytes);
    assert_non_null(back);
    size_t least = SIZE_MAX;
    for (unsigned b = 0; b <= RICE_B_MAX; b++) {
        size_t len = rice_put(index, k, b, bytes);
        assert_true(len <= room);
        least = len < least ? len : least;
        if (b == best)
            assert_true(len <= rice_bound(k, n));
        uint8_t *exact = malloc(len); /* So that reading too far is seen. */
        assert_non_null(exact);
        memcpy(exact, bytes, len);
        struct rice_reader r = {.src = exact, .len = len, .n = n, .b = b};
        assert_true(rice_get(&r, back, k));
        assert_true(rice_ended(&r));
        assert_memory_equal(back, index, k * sizeof *back);
        r = (struct rice_reader){.src = exact, .len = len - 1, .n = n, .b = b};
        assert_false(rice_get(&r, back, k));
        r = (struct rice_reader){.src = exact, .len = len, .b = b};
        r.n = index[k - 1]; /* The last position is out of range. */
        assert_false(rice_get(&r, back, k));
        free(exact);
    }
    assert_int_equal(rice_put(index, k, best, bytes), least);
    free(bytes);
    free(back);
}

static void test_rice(void **state)
{
    (void)state;
    enum {
        N = 5000
    };
    static uint32_t index[N];
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    static const double share[] = {0.001, 0.01, 0.1, 0.5, 1.0};
    for (size_t s = 0; s < 5; s++) {
        size_t k = 0;
        for (uint32_t i = 0; i < N; i++)
            if (rng_unit(&r) < share[s] || (i == N - 1 && k == 0))
                index[k++] = i;
        check_rice(index, k, N);
    }
    for (uint32_t at = 0; at < N; at += 49) { /* One position, anywhere. */
        index[0] = at;
        check_rice(index, 1, N);
    }
    for (uint32_t k = 1; k < N; k *= 3) { /* All at the end, all at the start. */
        for (uint32_t i = 0; i < k; i++)
            index[i] = N - k + i;
        check_rice(index, k, N);
        for (uint32_t i = 0; i < k; i++)
            index[i] = i;
        check_rice(index, k, N);
    }
}

/* A reader of noise says no or stays in range. */
static void test_rice_noise(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(2, RNG_TEST, 0, 0));
    for (size_t trial = 0; trial < 20000; trial++) {
        uint8_t bytes[24];
        uint32_t index[40];
        size_t len = rng_below(&r, sizeof bytes + 1);
        for (size_t i = 0; i < len; i++)
            bytes[i] = trial % 3 == 0 ? 0 : (uint8_t)rng_u64(&r);
        struct rice_reader in = {.src = bytes + sizeof bytes - len, .len = len,
                                 .n = 1 + rng_below(&r, 1000),
                                 .b = (unsigned)rng_below(&r, RICE_B_MAX + 1)};
        memmove(bytes + sizeof bytes - len, bytes, len);
        size_t k = 1 + rng_below(&r, 40);
        if (!rice_get(&in, index, k))
            continue;
        assert_true(index[0] < in.n);
        for (size_t i = 1; i < k; i++)
            assert_true(index[i] > index[i - 1] && index[i] < in.n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_oracle),
        cmocka_unit_test(test_fast_path),
        cmocka_unit_test(test_forced_fallback),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_rice),
        cmocka_unit_test(test_rice_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
