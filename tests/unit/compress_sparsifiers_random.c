/* tests/unit/compress_sparsifiers_random.c -- tests selectors with random draws: no bias, the
 * documented variance, or contraction. */
#include "tests/unit/compress_chosen.h"

enum { N_MAX = 1000000 };

static float v[N_MAX];

enum { D = 64, DRAWS = 4096 };

struct moments
{
    double sum[D], e2, k;
};

static void draw_many(const char *spec, struct moments *m)
{
    struct bench_rig r;
    *m = (struct moments){0};
    rig_open(&r, spec, D);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        for (size_t i = 0; i < D; i++) {
            m->sum[i] += (double)r.out[i];
            m->k += r.out[i] != 0.0f;
        }
        m->e2 += vec_dist2(v, r.out, D);
    }
    rig_close(&r);
}

/* Returns whether the mean over all draws agrees with v, given the variance of each element. */
static bool unbiased(const struct moments *m, const double var[D])
{
    double worst = 0.0, square = 0.0;
    size_t free = 0;
    for (size_t i = 0; i < D; i++) {
        double off = fabs(m->sum[i] / DRAWS - (double)v[i]);
        /* An element whose variance is 0 is not random, so it must be exact. */
        if (var[i] == 0.0) {
            if (!(off <= 1e-6 * fabs((double)v[i])))
                return false;
            continue;
        }
        double z = off / sqrt(var[i] / DRAWS);
        worst = fmax(worst, z);
        square += z * z;
        free++;
    }
    double middle = (double)free;
    return worst < 5.0 && fabs(square - middle) <= 6.0 * sqrt(2.0 * middle);
}

static void test_randk_unbiased(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec, *biased;
        double k;
    } known[] = {{"randk:0.25,scale=unbiased", "randk:0.25", 16},
                 {"randk:0.05,scale=unbiased", "randk:0.05", 4},
                 {"randk:0.5,scale=unbiased", "randk:0.5", 32}};
    for (size_t j = 0; j < 3; j++) {
        struct moments m;
        double var[D];
        double omega = D / known[j].k - 1.0;
        vector_fill(v, D, VECTOR_GAUSS, j);
        for (size_t i = 0; i < D; i++)
            var[i] = (double)v[i] * (double)v[i] * omega;
        draw_many(known[j].spec, &m);
        assert_true(unbiased(&m, var));
        double measured = m.e2 / DRAWS / vec_norm2(v, D);
        if (!(fabs(measured - omega) <= 0.05 * omega))
            fail_msg("%s: omega %g, not %g", known[j].spec, measured, omega);
        draw_many(known[j].biased, &m);
        assert_false(unbiased(&m, var)); /* A biased variant of the codec must fail the test. */
    }
}

/* randk divides 61 positions into 7 strata of 8 or 9 positions and sends one position of each. Each
 * sent value is multiplied by the size of its stratum. */
static void test_randk_strata(void **state)
{
    (void)state;
    enum { N = 61 };
    struct bench_rig r;
    double sum[N] = {0};
    double hits = 0.0;
    for (size_t i = 0; i < N; i++)
        v[i] = 1.0f;
    /* The 61 positions form 7 strata of 8 or 9 positions each. */
    rig_open(&r, "randk:0.1,scale=unbiased", N);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        for (size_t i = 0; i < N; i++) {
            assert_true(r.out[i] == 0.0f || r.out[i] == 8.0f || r.out[i] == 9.0f);
            sum[i] += (double)r.out[i];
            hits += r.out[i] != 0.0f;
        }
    }
    rig_close(&r);
    assert_true(hits == 7.0 * DRAWS);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(sum[i] / DRAWS - 1.0) <= 5.0 * sqrt(8.0 / DRAWS));
}

static void test_randk_size(void **state)
{
    (void)state;
    struct bench_rig r;
    vector_fill(v, 1000000, VECTOR_GAUSS, 1);
    rig_open(&r, "randk", 1000000);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_int_equal(r.len, 40008 + 1);
    assert_int_equal(compress_bound(r.c), r.len);
    assert_int_equal(compress_nominal(r.c), r.len);
    rig_close(&r);
    /* With warm=W the message also contains k, in three bytes. */
    rig_open(&r, "randk,warm=3", 1000000);
    struct compress_input in = {.round = 3, .x = v, .x_hat = r.out};
    memset(r.out, 0, 4000000);
    assert_int_equal(compress_encode(r.c, &in, r.bytes, &r.len, &r.stat), 0);
    assert_int_equal(r.len, 40008 + 2 + 1);
    assert_true(compress_validate(r.c, r.bytes, r.len));
    rig_close(&r);
}

/* Values that are not sent are not read and may be NaN, unless the error is requested. */
static void test_randk_reads(void **state)
{
    (void)state;
    enum { N = 5000 };
    static const char *const specs[] = {"randk:0.01", "randk:0.1+fp16", "randk:0.1,scale=unbiased"};
    for (size_t j = 0; j < sizeof specs / sizeof specs[0]; j++) {
        struct bench_rig r;
        vector_fill(v, N, VECTOR_GAUSS, 1);
        rig_open(&r, specs[j], N);
        uint8_t *bytes = malloc(compress_bound(r.c));
        assert_non_null(bytes);
        assert_int_equal(rig_code(&r, 3, v), 0);
        for (size_t i = 0; i < N; i++) {
            v[i] = r.out[i] == 0.0f ? NAN : v[i];
            r.out[i] = 0.0f;
        }
        size_t len;
        struct compress_input in = {.draw = 3, .x = v, .x_hat = r.out};
        assert_int_equal(compress_encode(r.c, &in, bytes, &len, NULL), 0);
        assert_int_equal(len, r.len);
        assert_memory_equal(bytes, r.bytes, len);
        assert_int_equal(compress_encode(r.c, &in, bytes, &len, &r.stat), -ERANGE);
        free(bytes);
        rig_close(&r);
    }
}

/* Reference: finds probabilities proportional to |v|, at most 1 and with sum k, by bisection. */
static void probabilities(size_t n, double k, double *p)
{
    double low = 0.0, high = 1e30;
    for (int step = 0; step < 300; step++) {
        double kappa = low > 0.0 ? sqrt(low * high) : 1e-30;
        double sum = 0.0;
        for (size_t i = 0; i < n; i++) {
            p[i] = fmin(1.0, kappa * fabs((double)v[i]));
            sum += p[i];
        }
        if (sum < k)
            low = kappa;
        else
            high = kappa;
    }
}

static void test_wangni_unbiased(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec, *scaled;
        double k;
        enum vector_kind kind;
    } known[] = {
        {"wangni:0.05+none,scale=raw", "wangni:0.05+none", 4, VECTOR_GAUSS},
        {"wangni:0.05,scale=raw", "wangni:0.05", 4, VECTOR_GAUSS},
        {"wangni:0.25+none,scale=raw", "wangni:0.25+none", 16, VECTOR_LAPLACE},
        {"wangni:0.5+none,scale=raw", "wangni:0.5+none", 32, VECTOR_GAUSS},
        {"wangni:0.5+none,scale=raw", "wangni:0.5+none", 32, VECTOR_HEAVY},
    };
    for (size_t j = 0; j < sizeof known / sizeof known[0]; j++) {
        struct moments m;
        double p[D], var[D];
        double total = 0.0;
        vector_fill(v, D, known[j].kind, 7);
        probabilities(D, known[j].k, p);
        for (size_t i = 0; i < D; i++) {
            var[i] = (double)v[i] * (double)v[i] * (1.0 / p[i] - 1.0);
            total += var[i];
        }
        draw_many(known[j].spec, &m);
        if (!unbiased(&m, var))
            fail_msg("%s: biased", known[j].spec);
        if (!(fabs(m.e2 / DRAWS - total) <= 0.05 * total))
            fail_msg("%s: variance %g, not %g", known[j].spec, m.e2 / DRAWS, total);
        if (!(fabs(m.k / DRAWS - known[j].k) <= 0.05 * known[j].k))
            fail_msg("%s: %g taken", known[j].spec, m.k / DRAWS);
        draw_many(known[j].scaled, &m);
        /* Values that are sent without the factor 1/p have a biased mean. */
        assert_false(unbiased(&m, var));
    }
}

/* If no probability is limited to 1, the relative variance omega is |v|_1^2 / (k |v|^2) - 1. This
 * also holds if only signs are sent. */
static void test_wangni_omega(void **state)
{
    (void)state;
    enum { N = 2000 };
    static const struct
    {
        const char *raw, *raw_sign, *none, *sign;
        double k;
    } known[] = {{"wangni:0.01+none,scale=raw", "wangni:0.01,scale=raw", "wangni:0.01+none",
                  "wangni:0.01", 20},
                 {"wangni:0.05+none,scale=raw", "wangni:0.05,scale=raw", "wangni:0.05+none",
                  "wangni:0.05", 100}};
    for (size_t j = 0; j < 2; j++) {
        const char *const specs[] = {known[j].raw, known[j].raw_sign, known[j].none, known[j].sign};
        double mean[4] = {0};
        double l1 = 0.0;
        vector_fill(v, N, j == 0 ? VECTOR_LAPLACE : VECTOR_GAUSS, 9);
        for (size_t i = 0; i < N; i++)
            l1 += fabs((double)v[i]);
        double omega = l1 * l1 / (known[j].k * vec_norm2(v, N)) - 1.0;
        for (size_t s = 0; s < 4; s++) {
            struct bench_rig r;
            rig_open(&r, specs[s], N);
            for (uint64_t draw = 0; draw < 1000; draw++) {
                assert_int_equal(rig_code(&r, draw, v), 0);
                mean[s] += 1e-3 * r.stat.e2 / r.stat.x2;
                assert_true(s < 2 || r.stat.e2 <= r.stat.x2 * (1.0 + 1e-6));
            }
            rig_close(&r);
        }
        if (!(fabs(mean[0] - omega) <= 0.03 * omega) || !(fabs(mean[1] - mean[0]) <= 1e-4 * omega))
            fail_msg("omega %g and %g, not %g", mean[0], mean[1], omega);
        if (!(mean[2] <= 1.0 - 1.0 / (1.0 + omega) + 1e-3) || !(fabs(mean[3] - mean[2]) <= 1e-6))
            fail_msg("left %g and %g; 1/(1+omega) is %g", mean[2], mean[3], 1.0 / (1.0 + omega));
    }
}

/* Each message of wangni with scale=ls contracts, with signs or with full values, and the number of
 * positions keeps its limit. */
static void test_wangni_contracts(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "wangni",     "wangni+none",     "wangni:0.1",           "wangni:0.1+none",
        "wangni:0.5", "wangni:0.5+none", "wangni:0.3/ef+qsgd:4", "wangni:1"};
    static const size_t lengths[] = {1, 2, 5, 64, 3000};
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++)
        for (size_t l = 0; l < 5; l++)
            for (int kind = 0; kind < VECTOR_KINDS; kind++) {
                struct bench_rig r;
                size_t n = lengths[l];
                vector_fill(v, n, (enum vector_kind)kind, 3);
                rig_open(&r, specs[s], n);
                for (uint64_t draw = 0; draw < 20; draw++) {
                    assert_int_equal(rig_code(&r, draw, v), 0);
                    double e2 = vec_dist2(v, r.out, n);
                    double x2 = vec_norm2(v, n);
                    if (!(e2 <= x2 * (1.0 + 1e-6)))
                        fail_msg("%s: n=%zu vector=%d draw=%d: %g", specs[s], n, kind, (int)draw,
                                 e2 / x2);
                    assert_true(fabs(r.stat.e2 - e2) <= 1e-5 * e2 + 1e-12 * x2);
                }
                rig_close(&r);
            }
}

/* Elements in different chunks have different random numbers, too. */
static void test_wangni_numbers(void **state)
{
    (void)state;
    enum { N = 64 * CODEC_CHUNK };
    size_t hits[CODEC_CHUNK] = {0};
    struct chosen c;
    vector_fill(v, N, VECTOR_CONSTANT, 1);
    chosen_open(&c, "wangni:0.1", N);
    assert_int_equal(chosen_select(&c, v, N, 1, 0), 0);
    for (size_t i = 0; i < c.pick.k; i++)
        hits[c.pick.index[i] % CODEC_CHUNK]++;
    /* About 6.4 of 64 positions are expected at each offset in a chunk. */
    for (size_t i = 0; i < CODEC_CHUNK; i++)
        assert_true(hits[i] < 32);
    chosen_close(&c);
}

/* Compares the contraction of wangni with a share of 10 % with known values, for Gaussian and for
 * Laplacian data. */
static void test_wangni_delta(void **state)
{
    (void)state;
    enum { N = 65536 };
    static const struct
    {
        enum vector_kind kind;
        double delta;
    } known[] = {{VECTOR_GAUSS, 0.157}, {VECTOR_LAPLACE, 0.200}};
    for (size_t j = 0; j < 2; j++) {
        struct bench_rig r;
        double mean = 0.0;
        rig_open(&r, "wangni:0.1+none", N);
        for (uint64_t seed = 0; seed < 8; seed++) {
            vector_fill(v, N, known[j].kind, seed);
            mean += rig_delta(&r, seed, v) / 8;
        }
        rig_close(&r);
        if (!(fabs(mean - known[j].delta) <= 0.005))
            fail_msg("vector %d: delta %g", (int)known[j].kind, mean);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_randk_unbiased),   cmocka_unit_test(test_randk_strata),
        cmocka_unit_test(test_randk_size),       cmocka_unit_test(test_randk_reads),
        cmocka_unit_test(test_wangni_unbiased),  cmocka_unit_test(test_wangni_omega),
        cmocka_unit_test(test_wangni_contracts), cmocka_unit_test(test_wangni_numbers),
        cmocka_unit_test(test_wangni_delta),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
