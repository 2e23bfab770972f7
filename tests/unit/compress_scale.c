/* tests/unit/compress_scale.c -- tests that a compressor's results do not depend on scale, signs,
 * order and threads. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N = 4097, THREADS = 4 };

static float v[N], once[N], order[N];
static struct tested list[SPECS_MAX];
static size_t n_specs;

/* Opens a compressor for six tensors, so that codecs of matrices have matrices to encode. */
static void open_tensors(struct bench_rig *r, const char *spec)
{
    static const struct segment s[] = {
        {.offset = 0, .n = 1200, .rows = 30, .cols = 40},
        {.offset = 1200, .n = 800, .rows = 8, .cols = 100},
        {.offset = 2000, .n = 97, .rows = 1, .cols = 97},
        {.offset = 2097, .n = 1000, .rows = 100, .cols = 10},
        {.offset = 3097, .n = 900, .rows = 30, .cols = 30},
        {.offset = 3997, .n = 100, .rows = 1, .cols = 100},
    };
    rig_open_model(r, spec, s, 6);
    assert_int_equal(r->n, N);
}

/* Scaling by a power of two commutes with each codec: C(2^k x) = 2^k C(x), bit for bit. A codec
 * with an absolute constant, or with a square that overflows, fails this test. */
static void test_scale_equivariance(void **state)
{
    (void)state;
    static const int powers[] = {-60, -30, 30, 60};
    for (size_t i = 0; i < n_specs; i++) {
        if (list[i].traits & SPEC_UNSCALED)
            continue;
        for (size_t p = 0; p < 4; p++)
            for (int heavy = 0; heavy < 2; heavy++) {
                struct bench_rig a, b;
                int k = powers[p];
                open_tensors(&a, list[i].spec);
                open_tensors(&b, list[i].spec);
                vector_fill(v, N, heavy ? VECTOR_HEAVY : VECTOR_LAPLACE, 7);
                /* Scales the values to about 1 at most, so that they are still valid when
                 * multiplied by 2^60. */
                for (size_t j = 0; j < N; j++)
                    v[j] *= heavy ? 0x1p-9f : 0x1p-3f;
                assert_int_equal(rig_code(&a, 3, v), 0);
                memcpy(once, a.out, sizeof once);
                for (size_t j = 0; j < N; j++)
                    v[j] = ldexpf(v[j], k);
                if (rig_code(&b, 3, v) != 0)
                    fail_msg("%s: 2^%d x is refused", list[i].spec, k);
                if (a.len != b.len)
                    fail_msg("%s: 2^%d changed the length", list[i].spec, k);
                for (size_t j = 0; j < N; j++)
                    if (!(b.out[j] == ldexpf(once[j], k)))
                        fail_msg("%s: element %zu of C(2^%d x) is %a, of 2^%d "
                                 "C(x) %a",
                                 list[i].spec, j, k, (double)b.out[j], k,
                                 (double)ldexpf(once[j], k));
                double e2 = ldexp(a.stat.e2, 2 * k);
                double x2 = ldexp(a.stat.x2, 2 * k);
                if (!(fabs(b.stat.e2 - e2) <= 1e-6 * e2 + 1e-13 * x2))
                    fail_msg("%s: 2^%d: e2 is %g, expected %g", list[i].spec, k, b.stat.e2, e2);
                rig_close(&a);
                rig_close(&b);
            }
    }
}

/* Changing signs commutes with the codec: C(-x) = -C(x), and C(Dx) = D C(x) for a diagonal matrix D
 * of signs. */
static void test_sign_flips(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "topk:0.05", "topk:0.05/ef", "topk:0.3+sign:0", "sign", "sign:0", "qsgd:4", "fp16", "none"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct bench_rig r;
        rig_open(&r, specs[i], N);
        vector_fill(v, N, VECTOR_LAPLACE, 8);
        assert_int_equal(rig_code(&r, 3, v), 0);
        memcpy(once, r.out, sizeof once);
        for (size_t j = 0; j < N; j++)
            v[j] = rng_at(5, j) % 2 ? v[j] : -v[j];
        assert_int_equal(rig_code(&r, 3, v), 0);
        for (size_t j = 0; j < N; j++)
            if (!(r.out[j] == (rng_at(5, j) % 2 ? once[j] : -once[j])))
                fail_msg("%s: the size of element %zu hangs on its sign", specs[i], j);
        rig_close(&r);
    }
}

/* Permuting the vector commutes with the codec: C(Px) = P C(x) for a permutation P, if the whole
 * vector is one block and all values differ. */
static void test_permutations(void **state)
{
    (void)state;
    static const char *const specs[] = {"topk:0.05", "topk:0.3/bitmap", "topk:0.3+fp16", "sign:0",
                                        "none"};
    uint32_t p[N];
    struct rng rng = rng_stream(rng_key(9, RNG_TEST, 0, 0));
    for (size_t j = 0; j < N; j++)
        p[j] = (uint32_t)j;
    rng_shuffle(&rng, p, N);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct bench_rig r;
        rig_open(&r, specs[i], N);
        vector_fill(v, N, VECTOR_LAPLACE, 10);
        assert_int_equal(rig_code(&r, 3, v), 0);
        memcpy(once, r.out, sizeof once);
        for (size_t j = 0; j < N; j++)
            order[j] = v[p[j]];
        assert_int_equal(rig_code(&r, 3, order), 0);
        for (size_t j = 0; j < N; j++)
            if (!(fabsf(r.out[j] - once[p[j]]) <= 1e-6f * fabsf(once[p[j]])))
                fail_msg("%s: element %zu hangs on its place", specs[i], j);
        rig_close(&r);
    }
}

/* One holder of a replica, which applies messages in its own thread. */
struct holder
{
    const struct bench_rig *from;
    float *x_hat;
    bool proper;
};

static void *hold(void *arg)
{
    struct holder *h = arg;
    for (int times = 0; times < 3; times++) {
        h->proper = compress_validate(h->from->c, h->from->bytes, h->from->len);
        if (h->proper)
            compress_apply(h->from->c, h->from->bytes, h->from->len, h->x_hat);
    }
    return NULL;
}

/* Several threads apply a message to their own replicas while the sender encodes the next message.
 * Each replica must equal the one that a single thread computes. */
static void test_threads(void **state)
{
    (void)state;
    static float replica[THREADS][N];
    for (size_t i = 0; i < n_specs; i++) {
        struct bench_rig r;
        struct holder h[THREADS], alone;
        pthread_t thread[THREADS];
        open_tensors(&r, list[i].spec);
        vector_fill(v, N, VECTOR_LAPLACE, 11);
        vector_fill(once, N, VECTOR_GAUSS, 12);
        assert_int_equal(rig_code(&r, 4, v), 0);
        uint8_t *next = malloc(compress_bound(r.c));
        assert_non_null(next);
        for (size_t t = 0; t < THREADS; t++) {
            memcpy(replica[t], once, sizeof once);
            h[t] = (struct holder){.from = &r, .x_hat = replica[t]};
            assert_int_equal(pthread_create(&thread[t], NULL, hold, &h[t]), 0);
        }
        struct compress_input in = {.draw = 5, .x = v, .x_hat = once};
        struct compress_stat stat;
        size_t len;
        assert_int_equal(compress_encode(r.c, &in, next, &len, &stat), 0);
        for (size_t t = 0; t < THREADS; t++)
            assert_int_equal(pthread_join(thread[t], NULL), 0);
        alone = (struct holder){.from = &r, .x_hat = once};
        hold(&alone);
        for (size_t t = 0; t < THREADS; t++)
            if (!h[t].proper || memcmp(replica[t], once, sizeof once) != 0)
                fail_msg("%s: a thread's replica differs", list[i].spec);
        free(next);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_equivariance),
        cmocka_unit_test(test_sign_flips),
        cmocka_unit_test(test_permutations),
        cmocka_unit_test(test_threads),
    };
    n_specs = specs_all(list);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
