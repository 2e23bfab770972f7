/* tests/unit/compress_topk.c -- compares the exact selection of the largest values with qsort(). */
#include "compress/codecs/select.h"

#include "tests/unit/compress_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { N_MAX = 1 << 20 };

static float v[N_MAX];
static uint32_t order[N_MAX];

/* Orders positions by descending magnitude, then by ascending index. */
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

/* Reference: writes the positions of the k largest values that are not 0 to order[], in ascending
 * order. Returns their number. */
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
            fail_msg("n=%zu k=%zu: %zu-th position is %u, not %u", n, k, i, p->index[i], order[i]);
        assert_true(p->value[i] == v[order[i]]);
        rest2 -= (double)v[order[i]] * (double)v[order[i]];
    }
    double slack = 1e-9 * vec_norm2(v, n);
    assert_true(fabs(p->rest2 - rest2) <= slack);
}

/* Compares the fast and the plain selection with the reference. Returns whether the fast one fell
 * back to the plain one. */
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
    static const size_t sizes[] = {1, 2, 3, 15, 16, 17, 100, 1023, 8191, 8192, 8193, 8209, 40000};
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

/* With ordinary data, the fast selection must not fall back to the plain one. */
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

/* The fast selection finds its threshold in a sample. Large values only at the sampled positions
 * make the threshold far too high. Small values only at these positions make it far too low, so
 * that too many candidates pass. In both cases the selection must fall back to the plain one. */
static void test_forced_fallback(void **state)
{
    (void)state;
    enum { N = 100000 };
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
    /* If fewer than k values differ from 0, all of these are selected, without a fallback. */
    vector_fill(v, N, VECTOR_SPARSE, 3);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_oracle),
        cmocka_unit_test(test_fast_path),
        cmocka_unit_test(test_forced_fallback),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
