/* tests/unit/compress_quantisers_wire.c -- tests the messages of bf16, int8, dyn8, qnt and nat.
 *
 * Tested are rounding, the meaning of each byte, and invalid messages. */
#include "tests/unit/compress_vectors.h"

#include "compress/codec.h"
#include "compress/compress.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { N_MAX = 65536 };

static float v[N_MAX];

static const struct codec *find(const char *name)
{
    for (size_t i = 0; codec_all[i] != NULL; i++)
        if (strcmp(codec_all[i]->name, name) == 0)
            return codec_all[i];
    fail_msg("no codec %s", name);
    return NULL;
}

/* ---- rounding ---- */

struct becomes
{
    float from, to;
};

static void check_rounding(const char *spec, const struct becomes *b, size_t n)
{
    struct bench_rig r;
    rig_open(&r, spec, n);
    for (size_t i = 0; i < n; i++)
        v[i] = b[i].from;
    assert_int_equal(rig_code(&r, 1, v), 0);
    for (size_t i = 0; i < n; i++)
        if (!(r.out[i] == b[i].to) || signbit(r.out[i]) != signbit(b[i].to))
            fail_msg("%s: %a became %a, expected %a", spec, (double)b[i].from, (double)r.out[i],
                     (double)b[i].to);
    rig_close(&r);
}

static void test_bf16_rounding(void **state)
{
    (void)state;
    static const struct becomes pairs[] = {
        /* The value is halfway between two bf16 values, and is rounded to the even one. */
        {1.0f + 0x1p-8f, 1.0f},
        {1.0f + 0x1.8p-7f, 1.0f + 0x1p-6f},
        {-1.0f - 0x1.02p-8f, -1.0f - 0x1p-7f},
        {1.0f + 0x1.fep-9f, 1.0f},
        {0x1.ffp0f, 2.0f}, /* The rounded mantissa overflows, so the exponent increases by 1. */
        {-0x1.fep63f, -0x1.fep63f},
        {0x1.fefffep63f, 0x1.fep63f},
        {0x1p-126f, 0x1p-126f},
        {0x1p-133f, 0x1p-133f}, /* Subnormal bf16 values are multiples of 2^-133. */
        {0x1.8p-133f, 0x1p-132f},
        {0x1p-134f, 0.0f},
        {-0x1p-134f, 0.0f},
        {-0x1.0002p-134f, -0x1p-133f},
        {0x1p-149f, 0.0f},
    };
    check_rounding("bf16", pairs, sizeof pairs / sizeof pairs[0]);
}

static void test_int8_rounding(void **state)
{
    (void)state;
    static const struct becomes pairs[] = {
        {-127.0f, -127.0f}, {0.5f, 0.0f},     {1.5f, 2.0f},      {-2.5f, -2.0f},
        {-0.5f, 0.0f},      {126.6f, 127.0f}, {-63.49f, -63.0f}, {0x1p-100f, 0.0f},
    };
    struct becomes scaled[sizeof pairs / sizeof pairs[0]];
    enum { N = sizeof pairs / sizeof pairs[0] };
    static const int powers[] = {0, -100, -149, 50};
    for (size_t p = 0; p < sizeof powers / sizeof powers[0]; p++) {
        for (size_t i = 0; i < N; i++) {
            bool whole = pairs[i].from == truncf(pairs[i].from);
            float from = powers[p] == -149 && !whole ? 0.0f : pairs[i].from;
            scaled[i].from = ldexpf(from, powers[p]);
            scaled[i].to = from == 0.0f ? 0.0f : ldexpf(pairs[i].to, powers[p]);
        }
        check_rounding("int8", scaled, N);
    }
}

/* Tests all small multiples of the smallest float. The scale is then a subnormal float itself, so
 * it is rounded coarsely. */
static void test_int8_subnormal_scales(void **state)
{
    (void)state;
    struct bench_rig r;
    rig_open(&r, "int8", 2);
    for (unsigned steps = 1; steps <= 20000; steps++) {
        v[0] = ldexpf((float)steps, -149);
        v[1] = -ldexpf(1.0f, -149);
        assert_int_equal(rig_code(&r, 1, v), 0);
        double half = 0.51 * ldexp(1.0 + steps / 127.0, -149);
        if (!(fabs((double)r.out[0] - (double)v[0]) <= half)
            || !(fabsf(r.out[1] - v[1]) <= fabsf(v[1])))
            fail_msg("%u steps: %a became %a, %a %a", steps, (double)v[0], (double)r.out[0],
                     (double)v[1], (double)r.out[1]);
    }
    rig_close(&r);
}

/* The error of a value is at most M / 254, where M is the largest value of the block. */
static void test_int8_errors(void **state)
{
    (void)state;
    struct bench_rig r;
    rig_open(&r, "int8:512", 512);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        vector_fill(v, 512, VECTOR_LAPLACE, seed);
        float max = 0.0f;
        for (size_t i = 0; i < 512; i++)
            max = fmaxf(max, fabsf(v[i]));
        assert_int_equal(rig_code(&r, 1, v), 0);
        for (size_t i = 0; i < 512; i++)
            assert_true(fabsf(v[i] - r.out[i]) <= max / 254.0f * 1.0001f);
    }
    rig_close(&r);
}

static void test_nat_rounding(void **state)
{
    (void)state;
    static const struct becomes near[] = {
        {1.0f, 1.0f},           {1.4999f, 1.0f},
        {1.5f, 2.0f},           {-3.1f, -4.0f},
        {0.0f, 0.0f},           {0x1.7p62f, 0x1p62f},
        {0x1p-126f, 0x1p-126f}, {-0x1.8p-126f, -0x1p-125f},
        {0x1.fp-127f, 0.0f},    {-0x1p-149f, 0.0f}, /* Subnormal floats become 0. */
    };
    check_rounding("nat,round=near", near, sizeof near / sizeof near[0]);
    static const struct becomes scaled[] = {
        {-2.0f, -2.0f * (8.0f / 9.0f)}, /* A power of two is rounded without a random draw. */
        {0x1p-126f, 0x1p-126f * (8.0f / 9.0f)},
        {0x1.fp-127f, 0.0f},
        {-0x1p-149f, 0.0f},
    };
    check_rounding("nat", scaled, sizeof scaled / sizeof scaled[0]);
}

/* ---- the codes of dyn8 ---- */

/* Reference: returns the value of a dyn8 code relative to the scale, by the definition of the
 * format. */
static double tree_entry(unsigned code)
{
    int zeros = 0;
    if (code == 0)
        return 0.0;
    while ((code >> (6 - zeros) & 1) == 0)
        zeros++;
    double parts = ldexp(1.0, 6 - zeros);
    double fraction = ((double)code - parts + 0.5) / parts;
    return pow(10.0, -zeros) * (0.1 + 0.9 * fraction) / 0.99296875;
}

static void test_dyn8_entries(void **state)
{
    (void)state;
    static const int64_t arg[CODEC_ARGS_MAX] = {0};
    const struct codec_values *f = find("dyn8")->values;
    uint8_t message[4 + 256] = {0, 0, 0x40, 0x40}; /* The scale of this message is the float 3. */
    float out[256];
    for (unsigned i = 0; i < 256; i++)
        message[4 + i] = (uint8_t)i;
    f->decode(arg, message, 256, 0, 256, out);
    for (unsigned i = 0; i < 256; i++) {
        double expected = 3.0 * tree_entry(i & 127) * (i < 128 ? 1 : -1);
        if (!(fabs((double)out[i] - expected) <= 1e-6 * fabs(expected)))
            fail_msg("code %u is %.9g, expected %.9g", i, (double)out[i], expected);
        assert_true(i == 0 || i > 127 || out[i] > out[i - 1]);
    }
    assert_true(out[127] == 3.0f);
    assert_true(fabs((double)out[1] / 3.0 - 0.55e-6 / 0.99296875) < 1e-12);
}

static void test_dyn8_nearest(void **state)
{
    (void)state;
    enum { N = 4000 };
    struct bench_rig r;
    struct rng rng = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    rig_open(&r, "dyn8", N);
    v[0] = -7.5f;
    for (size_t i = 1; i < N; i++)
        v[i] = (float)(7.5 * pow(10.0, -7.5 * rng_unit(&rng)) * (i % 2 == 0 ? 1 : -1));
    for (size_t z = 1; z < 7; z++) /* Values of dyn8 at the limits between two decades. */
        v[z] = (float)(7.5 * 0.1028 * pow(10.0, 1 - (double)z));
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(r.out[0] == v[0]);
    for (size_t i = 0; i < N; i++) {
        double a = fabs((double)v[i]), best = a;
        for (unsigned c = 1; c < 128; c++)
            best = fmin(best, fabs(a - 7.5 * tree_entry(c)));
        double e = fabs((double)v[i] - (double)r.out[i]);
        if (!(e <= best + 2e-6 * a))
            fail_msg("%g became %g, and %g is the least error", (double)v[i], (double)r.out[i],
                     best);
    }
    rig_close(&r);
}

/* ---- the codebook ---- */

struct bucket
{
    double sum, n;
    float mean;
};

/* Lists the distinct decoded values in the order of their first use. Returns their number. */
static size_t buckets_of(const struct bench_rig *r, struct bucket *b)
{
    size_t k = 0;
    for (size_t i = 0; i < r->n; i++) {
        size_t c = 0;
        while (c < k && b[c].mean != r->out[i])
            c++;
        if (c == k) {
            assert_true(k < 256);
            b[k++] = (struct bucket){.mean = r->out[i]};
        }
        b[c].sum += (double)v[i];
        b[c].n += 1.0;
    }
    return k;
}

static void test_qnt_means_and_masses(void **state)
{
    (void)state;
    static struct bucket b[256];
    for (size_t n = 4096; n <= N_MAX; n *= 4) {
        struct bench_rig r;
        rig_open(&r, "qnt:64", n);
        vector_fill(v, n, VECTOR_GAUSS, 2);
        assert_int_equal(rig_code(&r, 1, v), 0);
        size_t k = buckets_of(&r, b);
        assert_int_equal(k, 64);
        for (size_t c = 0; c < k; c++) {
            double mean = b[c].sum / b[c].n;
            if (!(fabs((double)b[c].mean - mean) <= 1e-6 * fabs(mean)))
                fail_msg("n=%zu: %g is the mean %g", n, (double)b[c].mean, mean);
            double mass = b[c].n * 64.0 / (double)n;
            if (!(mass > 0.6 && mass < 1.6))
                fail_msg("n=%zu: a bucket has %.2f of its mass", n, mass);
        }
        rig_close(&r);
    }
}

/* Nine tenths of the vector are zeros. One mean of the codebook must be used for the zeros, and the
 * other means for the other values. */
static void test_qnt_of_atoms(void **state)
{
    (void)state;
    static struct bucket b[256];
    struct bench_rig r;
    rig_open(&r, "qnt", 16000);
    vector_fill(v, 16000, VECTOR_SPARSE, 2);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(buckets_of(&r, b) >= 200);
    for (size_t i = 0; i < 16000; i++)
        assert_true(v[i] != 0.0f || fabsf(r.out[i]) < 1e-6f);
    assert_true(r.stat.e2 <= 1e-3 * r.stat.x2);
    rig_close(&r);
    /* A vector of six distinct values needs six means and has no error. */
    rig_open(&r, "qnt:8", 16000);
    vector_fill(v, 16000, VECTOR_TIES, 2);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_int_equal(buckets_of(&r, b), 6);
    assert_true(r.stat.e2 <= 1e-12 * r.stat.x2);
    rig_close(&r);
}

static void test_qnt_arguments(void **state)
{
    (void)state;
    static const char *const bad[] = {"qnt:3",   "qnt:48",   "qnt:512", "qnt:0",  "qnt:1",
                                      "qnt:100", "qnt:16:9", "int8:12", "dyn8:3", "nat:1024"};
    char canonical[COMPRESS_SPEC_MAX], error[COMPRESS_ERROR_MAX];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(compress_canonical(bad[i], canonical, error), -EINVAL);
    static const char *const same[][2] = {
        {"qnt", "qnt:256:0"},
        {"int8", "int8:256"},
        {"dyn8", "dyn8:0"},
        {"nat,round=sr,scale=inv1w", "nat"},
        {"nat,scale=raw", "nat,scale=raw"},
        {"nat,round=near,scale=raw", "nat,round=near"},
        {"nat,round=near,scale=inv1w", "nat,round=near,scale=inv1w"},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_int_equal(compress_canonical(same[i][0], canonical, error), 0);
        assert_string_equal(canonical, same[i][1]);
    }
}

/* ---- the largest values ---- */

static void test_limit(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        float max;
        bool refused;
    } cases[] = {
        {"bf16", 0x1.fefffep63f, false},
        {"bf16", 0x1.ffp63f, true},
        {"int8", 0x1.ff8p63f, false},
        {"dyn8", 0x1.fffffep63f, false},
        {"qnt", 0x1.fffffep63f, false},
        {"nat", 0x1.fffffep63f, false},
        {"nat,round=near", 0x1.7ffffep63f, false},
        {"nat,round=near", 0x1.8p63f, true},
        {"nat,round=near,scale=inv1w", 0x1.8p63f, false},
        {"nat,scale=raw", 0x1p63f, false},
        {"nat,scale=raw", 0x1.fffffep63f, true},
        {"bf16", 0x1p64f, true},
        {"int8", 0x1p64f, true},
        {"dyn8", 0x1p64f, true},
        {"qnt", 0x1p64f, true},
        {"nat", 0x1p64f, true},
        {"dyn8", NAN, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench_rig r;
        rig_open(&r, cases[i].spec, 9);
        for (size_t j = 0; j < 9; j++)
            v[j] = j == 4 ? -cases[i].max : 1.0f;
        int err = rig_code(&r, 2, v);
        if (err != (cases[i].refused ? -ERANGE : 0))
            fail_msg("%s of %a: %d", cases[i].spec, (double)cases[i].max, err);
        for (size_t j = 0; j < 9 && err == 0; j++)
            assert_true(fabsf(r.out[j]) < CODEC_LIMIT);
        rig_close(&r);
    }
}

/* ---- adding a decoded message equals decoding it and adding ---- */

static void test_add_is_decode(void **state)
{
    (void)state;
    enum { N = 1019 };
    static const char *const names[] = {"bf16", "int8", "dyn8", "nat"};
    static const int64_t arg[CODEC_ARGS_MAX] = {0};
    static uint8_t bytes[4 * N];
    static float y[N], z[N], c[N], work[N];
    vector_fill(v, N, VECTOR_HEAVY, 1);
    struct codec_block b = {.v = v, .n = N, .key = 1, .work = work};
    for (size_t i = 0; i < N; i++)
        b.max = fmaxf(b.max, fabsf(v[i]));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct codec *codec = find(names[i]);
        double e2 = codec->values->encode_all != NULL ? codec->values->encode_all(arg, &b, 1, bytes)
                                                      : codec->values->encode(arg, &b, bytes);
        assert_true(e2 >= 0.0);
        codec->values->decode(arg, bytes, N, 0, N, c);
        vector_fill(y, N, VECTOR_GAUSS, 2);
        memcpy(z, y, sizeof y);
        codec->values->add(arg, bytes, N, 0, N, y);
        for (size_t j = 0; j < N; j++)
            z[j] += c[j];
        assert_memory_equal(y, z, sizeof y);
    }
}

/* ---- invalid messages ---- */

struct edit
{
    const char *what, *spec;
    size_t n;
    enum vector_kind kind;
    /* Offset of the changed bytes in the body, which follows the first byte of the message. */
    size_t at;
    size_t n_bytes;
    uint8_t bytes[8];
};

/* Each message has 9 Gaussian values. int8 and dyn8 have 4 + 9 bytes, bf16 has 18, nat has 9 + 2,
 * and qnt has 8 means and 27 bits. */
static const struct edit edits[] = {
    {"-0", "bf16", 9, VECTOR_GAUSS, 2, 2, {0x00, 0x80}},
    {"2^64", "bf16", 9, VECTOR_GAUSS, 2, 2, {0x80, 0x5f}},
    {"-2^64", "bf16", 9, VECTOR_GAUSS, 16, 2, {0x80, 0xdf}},
    {"NaN", "bf16", 9, VECTOR_GAUSS, 16, 2, {0xc0, 0x7f}},
    {"infinity", "bf16", 9, VECTOR_GAUSS, 16, 2, {0x80, 0xff}},
    {"code -128", "int8", 9, VECTOR_GAUSS, 12, 1, {0x80}},
    {"code -128", "int8", 9, VECTOR_DENORMAL, 12, 1, {0x80}},
    {"scale 2^64", "int8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0x80, 0x5f}},
    {"127 scales are 2^64", "int8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0x80, 0x5c}},
    {"scale < 0", "int8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0x80, 0xbf}},
    {"scale -0", "int8", 9, VECTOR_ZERO, 0, 4, {0, 0, 0, 0x80}},
    {"scale NaN", "int8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0xc0, 0x7f}},
    {"scale 0", "int8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0, 0}},
    {"no code 127", "int8", 9, VECTOR_ONE_HOT, 4, 8, {1, 2, 3, 126, 4, 5, 6, 7}},
    {"code -0", "dyn8", 9, VECTOR_ONE_HOT, 5, 1, {0x80}},
    {"scale 2^64", "dyn8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0x80, 0x5f}},
    {"scale < 0", "dyn8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0x80, 0xbf}},
    {"scale NaN", "dyn8", 9, VECTOR_GAUSS, 0, 4, {1, 0, 0x80, 0x7f}},
    {"scale 0", "dyn8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0, 0}},
    {"no code 127", "dyn8", 9, VECTOR_ONE_HOT, 4, 8, {0, 9, 8, 126, 0, 0, 1, 2}},
    {"mean 2^64", "qnt:8", 9, VECTOR_GAUSS, 28, 4, {0, 0, 0x80, 0x5f}},
    {"mean NaN", "qnt:8", 9, VECTOR_GAUSS, 28, 4, {0, 0, 0xc0, 0x7f}},
    {"mean -infinity", "qnt:8", 9, VECTOR_GAUSS, 0, 4, {0, 0, 0x80, 0xff}},
    {"mean -0", "qnt:8", 9, VECTOR_CONSTANT, 28, 4, {0, 0, 0, 0x80}},
    {"falling means", "qnt:8", 9, VECTOR_GAUSS, 28, 4, {0, 0, 0x20, 0xc1}},
    {"rising means", "qnt:8", 9, VECTOR_CONSTANT, 28, 4, {0, 0, 0x80, 0x3f}},
    {"bits behind", "qnt:8", 9, VECTOR_CONSTANT, 35, 1, {0x08}},
    {"code 0 unused", "qnt:2", 9, VECTOR_ALTERNATING, 8, 2, {0xff, 0x01}},
    {"code 1 unused", "qnt:2", 9, VECTOR_ALTERNATING, 8, 2, {0, 0}},
    {"a gap in the codes", "qnt:8", 9, VECTOR_CONSTANT, 32, 1, {2}},
    {"mean 2^64", "qnt:8", 1, VECTOR_GAUSS, 0, 4, {0, 0, 0x80, 0x5f}},
    {"2^64", "nat,scale=raw", 9, VECTOR_GAUSS, 8, 1, {191}},
    {"2^65", "nat", 9, VECTOR_GAUSS, 8, 1, {192}},
    {"infinity", "nat", 9, VECTOR_GAUSS, 0, 1, {255}},
    {"bits behind", "nat", 9, VECTOR_GAUSS, 10, 1, {0x02}},
    {"sign of zero", "nat", 9, VECTOR_ZERO, 9, 2, {0x04, 0x00}},
    {"sign of zero", "nat", 9, VECTOR_ZERO, 9, 2, {0x00, 0x01}},
};

static void check_edit(const struct edit *e)
{
    struct bench_rig r;
    rig_open(&r, e->spec, e->n);
    vector_fill(v, e->n, e->kind == VECTOR_ZERO ? VECTOR_GAUSS : e->kind, 1);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_true(1 + e->at + e->n_bytes <= r.len);
    /* If the block has only zeros, a message whose bytes after the first are all 0 is valid. */
    if (e->kind == VECTOR_ZERO) {
        memset(r.bytes + 1, 0, r.len - 1);
        assert_true(compress_validate(r.c, r.bytes, r.len));
    }
    assert_memory_not_equal(r.bytes + 1 + e->at, e->bytes, e->n_bytes);
    memcpy(r.bytes + 1 + e->at, e->bytes, e->n_bytes);
    if (compress_validate(r.c, r.bytes, r.len))
        fail_msg("%s with %s was taken", e->spec, e->what);
    rig_close(&r);
}

static void test_hostile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        check_edit(&edits[i]);
}

/* A message with one flipped bit is refused, or decodes to finite values in range. */
static void test_flips(void **state)
{
    (void)state;
    static const char *const specs[] = {"bf16", "int8:8", "dyn8", "qnt:16", "nat", "nat,scale=raw"};
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        struct bench_rig r;
        size_t refused = 0;
        rig_open(&r, specs[s], 43);
        vector_fill(v, 43, VECTOR_HEAVY, 1);
        assert_int_equal(rig_code(&r, 1, v), 0);
        for (size_t bit = 0; bit < 8 * r.len; bit++) {
            r.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            memset(r.out, 0, 43 * sizeof *r.out);
            bool proper = compress_validate(r.c, r.bytes, r.len);
            if (proper)
                compress_apply(r.c, r.bytes, r.len, r.out);
            for (size_t i = 0; i < 43; i++)
                assert_true(fabsf(r.out[i]) < CODEC_LIMIT);
            refused += !proper;
            r.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
        assert_true(refused > 0);
        for (size_t len = 0; len < r.len; len++)
            assert_false(compress_validate(r.c, r.bytes, len));
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_rounding),
        cmocka_unit_test(test_int8_rounding),
        cmocka_unit_test(test_int8_subnormal_scales),
        cmocka_unit_test(test_int8_errors),
        cmocka_unit_test(test_nat_rounding),
        cmocka_unit_test(test_dyn8_entries),
        cmocka_unit_test(test_dyn8_nearest),
        cmocka_unit_test(test_qnt_means_and_masses),
        cmocka_unit_test(test_qnt_of_atoms),
        cmocka_unit_test(test_qnt_arguments),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_add_is_decode),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
