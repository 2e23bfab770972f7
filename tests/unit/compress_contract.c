/* Every compressor through one contract: sizes, vectors, replicas, errors. */
#include "compress/codec.h"

#include "tests/unit/compress_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* What is proved of |v - C(v)|^2. */
enum proof {
    PROOF_NONE,   /* No contraction (raw). */
    PROOF_SHRINK, /* At most |v|^2, for every draw. */
    PROOF_BLOCK,  /* And delta >= 1 / block: the largest value is exact. */
    PROOF_SIGN,   /* |v|^2 - |v|_1^2 / n a block, exactly. */
    PROOF_SHARE,  /* delta >= k / n. */
    PROOF_HALF,   /* delta >= 1 - 2^-22 less the subnormals' part. */
    PROOF_EXACT
};

static const struct {
    const char *spec;
    enum proof proof;
    size_t block;  /* 0: all. */
    double keep;
    bool random;
} all[] = {
    {"none", PROOF_EXACT, 0, 1, false},
    {"fp16", PROOF_HALF, 0, 1, false},
    {"sign", PROOF_SIGN, 512, 1, false},
    {"sign:8", PROOF_SIGN, 8, 1, false},
    {"sign:0", PROOF_SIGN, 0, 1, false},
    {"sign:8192", PROOF_SIGN, 8192, 1, false},
    {"qsgd:4", PROOF_BLOCK, 512, 1, false},
    {"qsgd:2:64", PROOF_BLOCK, 64, 1, false},
    {"qsgd:8:0", PROOF_BLOCK, 0, 1, false},
    {"qsgd:16:2048", PROOF_BLOCK, 2048, 1, false},
    {"qsgd:3:1024:l2", PROOF_SHRINK, 0, 1, false},
    {"qsgd:4,round=sr", PROOF_SHRINK, 0, 1, true},
    {"qsgd:5:64:l2,round=sr", PROOF_SHRINK, 0, 1, true},
    {"qsgd:4:512:l2,round=sr,scale=raw", PROOF_NONE, 0, 1, true},
    {"qsgd:6:0:l2,round=sr,scale=inv1w,levels=16", PROOF_NONE, 0, 1, true},
    {"topk:0.01", PROOF_SHARE, 0, 0.01, false},
    {"topk:0.3", PROOF_SHARE, 0, 0.3, false},
    {"topk:1", PROOF_EXACT, 0, 1, false},
    {"topk:0.01+qsgd:4", PROOF_SHRINK, 0, 1, false},
    {"topk:0.05+fp16", PROOF_SHRINK, 0, 1, false},
    {"topk:0.01+sign", PROOF_SHRINK, 0, 1, false},
    {"topk:0.5+qsgd:3:8:l2,round=sr", PROOF_SHRINK, 0, 1, true},
    {"randk:0.1", PROOF_SHRINK, 0, 1, true},
    {"randk:0.1+qsgd:4", PROOF_SHRINK, 0, 1, true},
    {"randk:1+sign", PROOF_SHRINK, 0, 1, true},
};

static const size_t sizes[] = {1,   2,   3,   5,   7,    8,    15,   16,
                               17,  31,  32,  33,  63,   255,  256,  257,
                               511, 512, 513, 1023, 4097, 8191, 8193, 65536};

enum {
    N_SPECS = sizeof all / sizeof all[0],
    N_SIZES = sizeof sizes / sizeof sizes[0],
    N_MAX = 65536
};

static float v[N_MAX], x[N_MAX], x_hat[N_MAX];

/* Where we are, for a failure's message. */
static const char *at_spec;
static size_t at_n;
static int at_kind;

static void check(bool ok, const char *what)
{
    if (!ok)
        fail_msg("%s: n=%zu vector=%d: %s", at_spec, at_n, at_kind, what);
}

static bool close_to(double a, double b, double tol)
{
    return fabs(a - b) <= tol * fabs(b);
}

/* The largest error the proof allows. */
static double allowed(size_t i, double x2)
{
    size_t n = at_n;
    size_t block = all[i].block == 0 || all[i].block > n ? n : all[i].block;
    switch (all[i].proof) {
    case PROOF_EXACT:
        return 0.0;
    case PROOF_SHRINK:
        return x2;
    case PROOF_BLOCK:
        return x2 * (1.0 - 1.0 / (double)block);
    case PROOF_SHARE:
        return x2 * (1.0 - ceil(all[i].keep * (double)n) / (double)n);
    case PROOF_HALF:
        return x2 * (0x1p-22 + 1024 * 0x1p-76);
    case PROOF_SIGN: {
        double e2 = 0.0;
        for (size_t at = 0; at < n; at += block) {
            size_t m = n - at < block ? n - at : block;
            double l1 = 0.0;
            for (size_t j = 0; j < m; j++)
                l1 += fabs((double)v[at + j]);
            e2 += vec_norm2(v + at, m) - l1 * l1 / (double)m;
        }
        return e2;
    }
    case PROOF_NONE:
        return INFINITY;
    }
    return NAN;
}

/* Zero or one vector of every kind through one compressor. */
static void check_vector(struct bench_rig *r, size_t i)
{
    check(rig_code(r, 5, v) == 0, "encode");
    double x2 = vec_norm2(v, r->n);
    double e2 = vec_dist2(v, r->out, r->n);
    check(close_to(r->stat.x2, x2, 1e-9), "x2 is not |v|^2");
    check(close_to(r->stat.e2, e2, 1e-6), "e2 is not |v - C(v)|^2");
    if (!(x2 > 0.0)) {
        check(r->len == 1, "a zero difference is not one byte");
        return;
    }
    bool denormal = at_kind == VECTOR_DENORMAL && all[i].proof != PROOF_NONE;
    double most = denormal && all[i].proof != PROOF_EXACT ? x2 : allowed(i, x2);
    check(e2 <= most * (1.0 + 1e-5) + 1e-12 * x2, "more error than proved");
    uint8_t *first = malloc(r->len);
    assert_non_null(first);
    size_t len = r->len;
    memcpy(first, r->bytes, len);
    check(rig_code(r, 5, v) == 0 && r->len == len &&
              memcmp(first, r->bytes, len) == 0,
          "one draw gave two messages");
    if (at_kind == VECTOR_GAUSS && r->n >= 63) {
        check(rig_code(r, 6, v) == 0, "encode");
        bool same = r->len == len && memcmp(first, r->bytes, len) == 0;
        check(same != all[i].random, "another draw, but the same message");
    }
    free(first);
}

/* x_hat is not zero: two holders of a replica stay equal bit for bit, and the
 * difference shrinks as told. */
static void check_replica(struct bench_rig *r)
{
    float *a = r->out;
    float *b = malloc(r->n * sizeof *b);
    assert_non_null(b);
    for (size_t round = 0; round < 3; round++) {
        memcpy(a, x_hat, r->n * sizeof *a);
        memcpy(b, x_hat, r->n * sizeof *b);
        check(compress_encode(r->c, round, x, x_hat, r->bytes, &r->len,
                              &r->stat) == 0,
              "encode");
        check(memcmp(a, x_hat, r->n * sizeof *a) == 0, "encode wrote x_hat");
        check(compress_validate(r->c, r->bytes, r->len), "own message refused");
        compress_apply(r->c, r->bytes, r->len, a);
        compress_apply(r->c, r->bytes, r->len, b);
        check(memcmp(a, b, r->n * sizeof *a) == 0, "replicas differ");
        /* x_hat + C is rounded to a float, once an element. */
        double left = sqrt(vec_dist2(x, a, r->n));
        double slack = sqrt((double)r->n) * 0x1p-22;
        check(fabs(left - sqrt(r->stat.e2)) <= slack, "e2 is not what is left");
        memcpy(x_hat, a, r->n * sizeof *a);
    }
    free(b);
}

static void check_refusals(struct bench_rig *r)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p64f, -3e38f};
    for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
        size_t at = j * 7919 % r->n;
        float keep = v[at];
        v[at] = bad[j];
        check(rig_code(r, 1, v) == -ERANGE, "a bad value is not refused");
        v[at] = keep;
    }
}

static void test_contract(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SPECS; i++)
        for (size_t j = 0; j < N_SIZES; j++) {
            struct bench_rig r;
            at_spec = all[i].spec;
            at_n = sizes[j];
            rig_open(&r, at_spec, at_n);
            for (at_kind = 0; at_kind < VECTOR_KINDS; at_kind++) {
                vector_fill(v, at_n, (enum vector_kind)at_kind, 1);
                check_vector(&r, i);
            }
            at_kind = VECTOR_GAUSS;
            vector_fill(v, at_n, VECTOR_GAUSS, 2);
            check_refusals(&r);
            vector_fill(x, at_n, VECTOR_GAUSS, 3);
            vector_fill(x_hat, at_n, VECTOR_LAPLACE, 4);
            check_replica(&r);
            rig_close(&r);
        }
}

/* Units of a layer scope: as if each segment were compressed alone. */
static void test_layer_scope(void **state)
{
    (void)state;
    static const size_t n[] = {1500, 1, 700, 10, 2048};
    struct segment s[5] = {0};
    size_t d = 0;
    for (size_t i = 0; i < 5; i++) {
        s[i] = (struct segment){.offset = d, .n = n[i], .rows = 1, .cols = n[i]};
        d += n[i];
    }
    vector_fill(v, d, VECTOR_LAPLACE, 1);
    memset(v + 1501, 0, 700 * sizeof *v); /* One layer stands still. */
    for (size_t i = 0; i < N_SPECS; i++) {
        struct compress *c;
        struct compress_stat stat;
        size_t len;
        at_spec = all[i].spec;
        assert_int_equal(compress_open(&c, at_spec, COMPRESS_LAYER, s, 5), 0);
        assert_int_equal(compress_dim(c), d);
        uint8_t *bytes = malloc(compress_bound(c));
        assert_non_null(bytes);
        memset(x_hat, 0, d * sizeof *x_hat);
        assert_int_equal(compress_encode(c, 9, v, x_hat, bytes, &len, &stat), 0);
        check(compress_validate(c, bytes, len), "own message refused");
        compress_apply(c, bytes, len, x_hat);
        check(close_to(stat.e2, vec_dist2(v, x_hat, d), 1e-6), "e2");
        double sum = 0.0;
        size_t sum_len = 0;
        for (size_t j = 0; j < 5; j++) {
            struct bench_rig r;
            rig_open(&r, at_spec, n[j]);
            assert_int_equal(rig_code(&r, 9, v + s[j].offset), 0);
            sum += r.stat.x2;
            sum_len += r.len;
            if (!all[i].random)
                check(memcmp(r.out, x_hat + s[j].offset, n[j] * sizeof *x_hat) == 0,
                      "a layer is not what it is alone");
            rig_close(&r);
        }
        check(close_to(stat.x2, sum, 1e-12), "x2 is not the layers' sum");
        check(len == sum_len, "length is not the layers' sum");
        free(bytes);
        compress_close(c);
    }
}

/* C(2^k x) = 2^k C(x), bit for bit. */
static void test_scale_equivariance(void **state)
{
    (void)state;
    static const int powers[] = {-60, -30, 30, 60};
    enum {
        N = 4097
    };
    static float once[N];
    for (size_t i = 0; i < N_SPECS; i++)
        for (size_t p = 0; p < 4; p++) {
            struct bench_rig r;
            at_spec = all[i].spec;
            at_n = N;
            at_kind = powers[p];
            rig_open(&r, at_spec, N);
            vector_fill(v, N, VECTOR_LAPLACE, 7);
            assert_int_equal(rig_code(&r, 3, v), 0);
            memcpy(once, r.out, sizeof once);
            size_t len = r.len;
            for (size_t j = 0; j < N; j++)
                v[j] = ldexpf(v[j], powers[p]);
            check(rig_code(&r, 3, v) == 0 && r.len == len, "length changed");
            for (size_t j = 0; j < N; j++)
                check(r.out[j] == ldexpf(once[j], powers[p]), "not 2^k C(x)");
            rig_close(&r);
        }
}

/* Every codec of the table is in the list above. */
static void test_all_listed(void **state)
{
    (void)state;
    for (size_t i = 0; codec_all[i] != NULL; i++) {
        bool found = false;
        for (size_t j = 0; j < N_SPECS; j++)
            found |= strncmp(all[j].spec, codec_all[i]->name,
                             strlen(codec_all[i]->name)) == 0;
        if (!found)
            fail_msg("%s is not in the contract loop", codec_all[i]->name);
        assert_true((codec_all[i]->values == NULL) !=
                    (codec_all[i]->selector == NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_layer_scope),
        cmocka_unit_test(test_scale_equivariance),
        cmocka_unit_test(test_all_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
