/* tests/unit/compress_sparsifiers.c -- tests each selector of positions against a simple reference
 * and against its documented properties. */
#include "compress/coding/bytes.h"

#include "tests/unit/compress_chosen.h"

enum { N_MAX = 1 << 20, WARM = 4 };

static float v[N_MAX];
static bool want[N_MAX]; /* True at the positions that the reference selects. */
static uint32_t order[N_MAX];

/* Asserts that the selector has selected exactly the positions in want[]. */
static void check_wanted(const struct chosen *c, size_t n, const char *what)
{
    size_t k = 0;
    chosen_check(c, v, n, what);
    for (size_t i = 0; i < n; i++) {
        bool taken = k < c->pick.k && c->pick.index[k] == i;
        if (taken != want[i])
            fail_msg("%s: n=%zu: element %zu (%g) is %staken", what, n, i, (double)v[i],
                     taken ? "" : "not ");
        k += taken;
    }
}

static void check_once(const char *spec, size_t n)
{
    struct chosen c;
    chosen_open(&c, spec, n);
    assert_int_equal(chosen_select(&c, v, n, 1, 0), 0);
    check_wanted(&c, n, spec);
    chosen_close(&c);
}

/* Orders positions by descending magnitude, then by ascending index. */
static int by_magnitude(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a;
    uint32_t j = *(const uint32_t *)b;
    float x = fabsf(v[i]);
    float y = fabsf(v[j]);
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

/* Reference for top-k: marks the ceil(share * size) largest elements of the given sign. sign 0: of
 * all elements that are not zero. */
static void want_top(size_t n, double share, int sign)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0.0f && (float)sign * v[i] >= 0.0f)
            order[size++] = (uint32_t)i;
    size_t k = (size_t)ceil(share * (double)(sign ? size : n) - 1e-9);
    qsort(order, size, sizeof order[0], by_magnitude);
    for (size_t i = 0; i < size && i < k; i++)
        want[order[i]] = true;
}

static const size_t sizes[] = {1, 2, 3, 17, 100, 1023, 1024, 1025, 8193, 30000};
static const double shares[] = {0.001, 0.01, 0.1, 0.5, 1.0};
enum { SIZES = sizeof sizes / sizeof sizes[0], SHARES = sizeof shares / sizeof shares[0] };

/* A check that for_all() calls for all sizes and kinds of vectors. Before each call, for_all()
 * fills v[0..n). */
typedef void check_fn(size_t n, int kind);

static void for_all(check_fn *body)
{
    for (size_t i = 0; i < SIZES; i++)
        for (int kind = 0; kind < VECTOR_KINDS; kind++) {
            vector_fill(v, sizes[i], (enum vector_kind)kind, 21);
            body(sizes[i], kind);
        }
}

/* ---- thresholds ---- */

static void check_thr(size_t n, int kind)
{
    static const char *const specs[] = {"thr", "thr:0.5", "thr:1.25", "thr:0.000000001",
                                        "thr:1000000"};
    static const double t[] = {0.001, 0.5, 1.25, 1e-9, 1e6};
    (void)kind;
    for (size_t j = 0; j < 5; j++) {
        for (size_t i = 0; i < n; i++)
            want[i] = fabs((double)v[i]) >= t[j];
        check_once(specs[j], n);
    }
}

static void check_adath(size_t n, int kind)
{
    (void)kind;
    for (size_t j = 0; j < SHARES; j++) {
        char spec[64];
        double max = 0.0;
        snprintf(spec, sizeof spec, "adath:%g", shares[j]);
        for (size_t i = 0; i < n; i++)
            max = fmax(max, fabs((double)v[i]));
        for (size_t i = 0; i < n; i++)
            want[i] = v[i] != 0.0f && fabs((double)v[i]) >= shares[j] * max;
        check_once(spec, n);
    }
}

static void check_adaq(size_t n, int kind)
{
    (void)kind;
    for (size_t j = 0; j < SHARES; j++) {
        char spec[64];
        snprintf(spec, sizeof spec, "adaq:%g", shares[j]);
        memset(want, 0, n * sizeof want[0]);
        want_top(n, shares[j], 1);
        want_top(n, shares[j], -1);
        check_once(spec, n);
    }
}

static void check_topk(size_t n, int kind)
{
    (void)kind;
    for (size_t j = 0; j < SHARES; j++) {
        char spec[64];
        snprintf(spec, sizeof spec, "topk:%g", shares[j]);
        memset(want, 0, n * sizeof want[0]);
        want_top(n, shares[j], 0);
        check_once(spec, n);
    }
}

static void test_thr(void **state)
{
    (void)state;
    for_all(check_thr);
}

static void test_adath(void **state)
{
    (void)state;
    for_all(check_adath);
}

static void test_adaq(void **state)
{
    (void)state;
    for_all(check_adaq);
}

static void test_topk(void **state)
{
    (void)state;
    for_all(check_topk);
}

/* If no value reaches the threshold, the message is a single byte, and the whole vector remains as
 * error. */
static void test_nothing(void **state)
{
    (void)state;
    static const char *const specs[] = {"thr:5", "thr:5/ef+sign", "thr:5/bitmap+qsgd:4"};
    for (size_t i = 0; i < 3; i++) {
        struct bench_rig r;
        rig_open(&r, specs[i], 1000);
        vector_fill(v, 1000, VECTOR_TIES, 1);
        assert_int_equal(rig_code(&r, 1, v), 0);
        assert_int_equal(r.len, 1);
        assert_int_equal(r.bytes[0], 0);
        assert_true(r.stat.x2 == vec_norm2(v, 1000));
        assert_true(r.stat.e2 == r.stat.x2);
        rig_close(&r);
    }
}

/* ---- a sampled quantile ---- */

/* If the threshold is computed from a sample, the selection contains the largest values and all
 * ties of the smallest selected one. If not, the selection equals that of topk. */
static void check_aji(size_t n, int kind)
{
    for (size_t j = 0; j < SHARES; j++) {
        struct chosen c;
        char spec[64];
        float least = INFINITY;
        size_t more = 0, nonzero = 0;
        size_t share = codec_share((uint64_t)(1e9 * shares[j] + 0.5), n);
        snprintf(spec, sizeof spec, "aji:%g", shares[j]);
        chosen_open(&c, spec, n);
        assert_int_equal(chosen_select(&c, v, n, 1, 0), 0);
        chosen_check(&c, v, n, spec);
        for (size_t i = 0; i < c.pick.k; i++)
            least = fminf(least, fabsf(c.pick.value[i]));
        for (size_t i = 0; i < n; i++) {
            more += fabsf(v[i]) >= least;
            nonzero += v[i] != 0.0f;
        }
        assert_true(least > 0.0f); /* Zeros are never sent. */
        if (more != c.pick.k) {    /* The selector has fallen back to topk. */
            memset(want, 0, n * sizeof want[0]);
            want_top(n, shares[j], 0);
            check_wanted(&c, n, spec);
        }
        if (nonzero > 0 && c.pick.k == 0)
            fail_msg("%s: n=%zu vector=%d: nothing is sent", spec, n, kind);
        if (n <= 8192 && c.pick.k < share && c.pick.k < nonzero)
            fail_msg("%s: n=%zu vector=%d: the sample was all, but k=%zu", spec, n, kind, c.pick.k);
        chosen_close(&c);
    }
}

/* Marks the positions that compress/codecs/aji.c samples. */
static void mark_sample(size_t n, size_t m, bool *looks)
{
    memset(looks, 0, n * sizeof looks[0]);
    for (uint64_t j = 0; j < m; j++) {
        uint64_t from = j * n / m, to = (j + 1) * n / m;
        looks[from + ((rng_at(0, j) >> 32) * (to - from) >> 32)] = true;
    }
}

static void test_aji(void **state)
{
    (void)state;
    enum { N = 100000, M = 8192 };
    static bool looks[N];
    struct chosen c;
    for_all(check_aji);

    chosen_open(&c, "aji", N_MAX);
    /* The share of selected positions is near the requested 1 %. */
    for (uint64_t seed = 0; seed < 3; seed++) {
        vector_fill(v, N_MAX, seed == 0 ? VECTOR_GAUSS : VECTOR_LAPLACE, seed);
        assert_int_equal(chosen_select(&c, v, N_MAX, 1, 0), 0);
        double part = (double)c.pick.k / N_MAX;
        if (!(fabs(part - 0.01) <= 5.0 * 0.01 / sqrt(0.01 * N_MAX / 32)))
            fail_msg("seed %d: sent %g", (int)seed, part);
    }
    chosen_close(&c);

    chosen_open(&c, "aji", N);
    mark_sample(N, M, looks);
    vector_fill(v, N, VECTOR_GAUSS, 1);
    /* The sampled quantile is zero, so the selector falls back to topk. */
    for (size_t i = 0; i < N; i++)
        v[i] = looks[i] ? 0.0f : v[i];
    assert_int_equal(chosen_select(&c, v, N, 1, 0), 0);
    memset(want, 0, sizeof want);
    want_top(N, 0.01, 0);
    check_wanted(&c, N, "a zero quantile");
    /* The sampled values are larger than all others, so their quantile selects no other value. */
    for (size_t i = 0; i < N; i++)
        v[i] = looks[i] ? 100.0f + (float)i : 1.0f;
    assert_int_equal(chosen_select(&c, v, N, 1, 0), 0);
    assert_int_equal(c.pick.k, (M + 99) / 100);
    /* The sampled quantile is far too low, so the selector falls back to topk. */
    for (size_t i = 0; i < N; i++)
        v[i] = looks[i] ? 1e-6f : 100.0f + (float)i;
    assert_int_equal(chosen_select(&c, v, N, 1, 0), 0);
    memset(want, 0, sizeof want);
    want_top(N, 0.01, 0);
    check_wanted(&c, N, "too low a quantile");
    chosen_close(&c);
}

/* ---- properties of all sparsifiers ---- */

static const char *const all[] = {"topk", "randk", "thr", "aji", "adaq", "adath", "wangni"};
enum { ALL = sizeof all / sizeof all[0] };

/* Returns the number of positions in a message. */
static size_t sent(const struct bench_rig *r, bool seeded)
{
    uint32_t k = 0;
    size_t at = seeded ? 9 : 1;
    if (r->bytes[0] == 1)
        assert_true(bytes_get_varint(r->bytes + at, r->len - at, &k) > 0);
    return k;
}

/* With warm=W the share falls from round to round: share^((round + 1) / (W + 1)). */
static void test_warm(void **state)
{
    (void)state;
    static const char *const warming[] = {"topk", "randk", "aji", "adaq", "wangni"};
    enum { N = 20000 };
    vector_fill(v, N, VECTOR_GAUSS, 1);
    for (size_t j = 0; j < 5; j++) {
        struct bench_rig r;
        char spec[64];
        snprintf(spec, sizeof spec, "%s,warm=%d", warming[j], WARM);
        rig_open(&r, spec, N);
        for (uint64_t round = 0; round < WARM + 3; round++) {
            double power = fmin(1.0, (double)(round + 1) / (WARM + 1));
            double k = ceil(pow(0.01, power) * N);
            double slack = 1.0;
            if (strcmp(warming[j], "wangni") == 0)
                slack = 6.0 * sqrt(k);
            if (strcmp(warming[j], "aji") == 0)
                slack = 5.0 * k / sqrt(k * 8192 / N);
            struct compress_input in = {.draw = 1, .round = round, .x = v, .x_hat = r.out};
            memset(r.out, 0, N * sizeof *r.out);
            assert_int_equal(compress_encode(r.c, &in, r.bytes, &r.len, &r.stat), 0);
            assert_true(compress_validate(r.c, r.bytes, r.len));
            assert_true(r.len <= compress_bound(r.c));
            size_t found = sent(&r, strcmp(warming[j], "randk") == 0);
            if (!(fabs((double)found - k) <= slack))
                fail_msg("%s: round %d: %zu sent, not %g", spec, (int)round, found, k);
        }
        double nominal = (double)compress_nominal(r.c);
        if (!(fabs(nominal - (double)r.len) <= 0.25 * (double)r.len))
            fail_msg("%s: nominal %g, was %zu", spec, nominal, r.len);
        rig_close(&r);
    }
}

static void test_zeros(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 7, 1000, 10000};
    for (size_t j = 0; j < ALL; j++)
        for (size_t l = 0; l < 4; l++) {
            struct bench_rig r;
            vector_fill(v, lengths[l], VECTOR_ZERO, 1);
            rig_open(&r, all[j], lengths[l]);
            assert_int_equal(rig_code(&r, 1, v), 0);
            assert_true(r.stat.x2 == 0.0 && r.stat.e2 == 0.0);
            for (size_t i = 0; i < lengths[l]; i++)
                assert_true(r.out[i] == 0.0f);
            if (strcmp(all[j], "randk") != 0)
                assert_int_equal(r.len, 1);
            rig_close(&r);
        }
}

static void test_refusals(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p64f, -0x1p64f};
    static const size_t lengths[] = {1, 1000, 20000};
    for (size_t j = 0; j < ALL; j++)
        for (size_t l = 0; l < 3; l++) {
            size_t n = lengths[l];
            struct chosen c;
            vector_fill(v, n, VECTOR_GAUSS, 1);
            chosen_open(&c, all[j], n);
            for (size_t i = 0; i < 15; i++) {
                size_t place = i % 3 * (n - 1) / 2;
                float was = v[place];
                v[place] = bad[i / 3];
                assert_int_equal(chosen_select(&c, v, n, 1, 0), -ERANGE);
                v[place] = was;
            }
            assert_int_equal(chosen_select(&c, v, n, 1, 0), 0);
            chosen_close(&c);
        }
}

/* Selectors choose positions by the difference x - x_hat, not by x. */
static void test_differences(void **state)
{
    (void)state;
    enum { N = 20000 };
    static float x[N], x_hat[N];
    vector_fill(x, N, VECTOR_LAPLACE, 1);
    vector_fill(x_hat, N, VECTOR_GAUSS, 2);
    for (size_t i = 0; i < N; i++)
        v[i] = x[i] - x_hat[i];
    for (size_t j = 0; j < ALL; j++) {
        struct chosen a, b;
        struct codec_source s = {.x = x, .x_hat = x_hat, .n = N, .key = 5};
        chosen_open(&a, all[j], N);
        chosen_open(&b, all[j], N);
        assert_int_equal(chosen_select(&a, v, N, 5, 0), 0);
        b.pick.scaled = false;
        assert_int_equal(b.f->select(b.arg, &s, &b.pick), 0);
        if (b.f->measure != NULL)
            assert_int_equal(b.f->measure(&s, &b.pick), 0);
        assert_int_equal(a.pick.k, b.pick.k);
        assert_true(a.pick.k > 0);
        assert_memory_equal(a.pick.index, b.pick.index, 4 * a.pick.k);
        assert_memory_equal(a.pick.value, b.pick.value, 4 * a.pick.k);
        chosen_check(&b, v, N, all[j]);
        chosen_close(&a);
        chosen_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thr),      cmocka_unit_test(test_adath),
        cmocka_unit_test(test_adaq),     cmocka_unit_test(test_topk),
        cmocka_unit_test(test_nothing),  cmocka_unit_test(test_aji),
        cmocka_unit_test(test_warm),     cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
