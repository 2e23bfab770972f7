/* tests/unit/compress_ternary_wire.c -- tests the messages of onebit, thr2, dorefa, tern and 3lc.
 *
 * Digits and runs are compared with a plain reference. Lengths must be exact, and invalid messages
 * must be refused. */
#include "compress/codecs/quartic.h"

#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MILLION = 1000000, BYTES = MILLION / 5 };

static uint8_t digits[MILLION + QUARTIC_GROUP];
static uint8_t packed[BYTES + 1], stream[BYTES + 1], again[BYTES + 1];
static float v[MILLION];

/* Reference: returns digit i of a packed vector of n digits. The layout is drawn in
 * compress/codecs/quartic.h. */
static unsigned digit_ref(const uint8_t *src, size_t n, size_t i)
{
    static const unsigned power[] = {81, 27, 9, 3, 1};
    size_t start = i / 5120 * 5120;
    size_t r = n - start < 5120 ? n - start : 5120;
    size_t m = (r + 4) / 5;
    size_t in = i - start;
    return src[start / 5 + in % m] / power[in / m] % 3;
}

static void pack_all(size_t n)
{
    static uint8_t group[QUARTIC_GROUP];
    for (size_t at = 0; at < n; at += QUARTIC_GROUP) {
        size_t r = n - at < QUARTIC_GROUP ? n - at : QUARTIC_GROUP;
        memcpy(group, digits + at, r);
        quartic_put(packed + at / 5, group, r);
    }
}

static void draw_digits(size_t n, uint64_t zeros_of_8, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, n, 0));
    for (size_t i = 0; i < n; i++)
        digits[i] = rng_below(&r, 8) < zeros_of_8 ? 1 : (uint8_t)rng_below(&r, 3);
}

static void test_quartic(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,    2,    3,    4,    5,    6,     9,    10,
                                   11,   16,   19,   20,   21,   1024,  1025, 2047,
                                   5119, 5120, 5121, 5123, 9999, 10240, 12345};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t n = sizes[s];
        bool any;
        draw_digits(n, 0, s);
        digits[0] = 2;
        pack_all(n);
        assert_true(quartic_check(packed, n, &any) && any);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(digit_ref(packed, n, i), digits[i]);
        for (size_t at = 0; at < n; at += CODEC_CHUNK) {
            float out[CODEC_CHUNK];
            size_t count = n - at < CODEC_CHUNK ? n - at : CODEC_CHUNK;
            quartic_get(packed, n, at, count, 2.5f, out);
            for (size_t i = 0; i < count; i++)
                assert_true(out[i] == 2.5f * (float)(digits[at + i] - 1));
        }
    }
}

/* Each byte up to 242 decodes to its five ternary digits. Larger bytes are refused. */
static void test_quartic_bytes(void **state)
{
    (void)state;
    bool any;
    for (unsigned b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        assert_int_equal(quartic_check(&byte, 5, &any), b <= 242);
        float out[5];
        if (b > 242)
            continue;
        assert_int_equal(any, b != 121);
        quartic_get(&byte, 5, 0, 5, 1.0f, out);
        unsigned sum = 0;
        for (size_t i = 0; i < 5; i++)
            sum = 3 * sum + (unsigned)(out[i] + 1.0f);
        assert_int_equal(sum, b);
    }
}

/* For each length, all values of a byte are tested. Those whose padding is zero are accepted, and
 * no others. */
static void test_quartic_padding(void **state)
{
    (void)state;
    bool any;
    for (size_t n = 1; n < 40; n++) {
        size_t m = (n + 4) / 5;
        memset(digits, 1, n);
        pack_all(n);
        assert_true(quartic_check(packed, n, &any) && !any);
        for (size_t i = 0; i < m; i++) {
            size_t proper = 0, expected = 1;
            uint8_t keep = packed[i];
            for (size_t fifth = 0; fifth < 5; fifth++)
                expected *= fifth * m + i < n ? 3 : 1;
            for (unsigned b = 0; b < 256; b++) {
                packed[i] = (uint8_t)b;
                proper += quartic_check(packed, n, &any);
            }
            assert_int_equal(proper, expected);
            packed[i] = keep;
        }
    }
}

/* ---- runs ---- */

static size_t write_all(size_t n_bytes)
{
    struct quartic_writer w = {.at = stream};
    for (size_t at = 0; at < n_bytes; at += QUARTIC_BYTES)
        quartic_write(&w, packed + at, n_bytes - at < QUARTIC_BYTES ? n_bytes - at : QUARTIC_BYTES);
    quartic_finish(&w);
    return (size_t)(w.at - stream);
}

/* Reference for write_all(): writes the run-length coded stream byte by byte. Returns its
 * length. */
static size_t write_ref(size_t n_bytes)
{
    size_t len = 0;
    for (size_t i = 0; i < n_bytes;) {
        size_t run = 0;
        while (i + run < n_bytes && packed[i + run] == 121 && run < 14)
            run++;
        if (run >= 2)
            again[len++] = (uint8_t)(243 + run - 2);
        else
            again[len++] = packed[i];
        i += run >= 2 ? run : 1;
    }
    return len;
}

static void test_runs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        size_t n = 1 + seed * 97;
        size_t m = (n + 4) / 5;
        draw_digits(n, seed % 9, seed);
        if (seed % 4 == 3) /* The vector has few digits that are not 0, and they are far apart. */
            for (size_t i = 0; i < n; i++)
                digits[i] = i % (60 + seed) != 7 ? 1 : 2;
        digits[n / 2] = 0;
        pack_all(n);
        size_t len = write_all(m);
        assert_int_equal(len, write_ref(m));
        assert_memory_equal(stream, again, len);
        assert_true(quartic_check_runs(stream, len, n));
        struct quartic_reader r = {.at = stream};
        /* Reads 100 bytes per call. Any number of bytes per call must work. */
        for (size_t at = 0; at < m; at += 100)
            quartic_read(&r, again + at, m - at < 100 ? m - at : 100);
        assert_true(r.at == stream + len && r.zeros == 0);
        assert_memory_equal(again, packed, m);
        for (size_t cut = 0; cut < len; cut++)
            assert_false(quartic_check_runs(stream, cut, n));
        stream[len] = 121;
        assert_false(quartic_check_runs(stream, len + 1, n));
    }
}

/* One million zeros take ceil(200000 / 14) = 14286 bytes: 200,000 bytes of five zeros, of which one
 * run byte replaces 14. */
static void test_runs_of_zeros(void **state)
{
    (void)state;
    memset(digits, 1, MILLION);
    pack_all(MILLION);
    size_t len = write_all(BYTES);
    assert_int_equal(len, 14286);
    /* The run-length coded stream of a vector of zeros is refused, because such a vector is never
     * sent. */
    assert_false(quartic_check_runs(stream, len, MILLION));
    packed[70000] = 0;
    assert_int_equal(write_all(BYTES), 5000 + 1 + 9286);
}

static void test_3lc_length(void **state)
{
    (void)state;
    struct bench_rig r;
    rig_open(&r, "3lc", MILLION);
    vector_fill(v, MILLION, VECTOR_ONE_HOT, 1);
    assert_int_equal(rig_code(&r, 1, v), 0);
    /* The only value that is not 0, number 333,333, is in byte 65 * 1024 + 533 = 67,093. */
    assert_int_equal(r.len, 1 + 4 + 2 + 4793 + 1 + 9494);
    assert_true(vec_dist2(v, r.out, MILLION) <= 0.0);
    vector_fill(v, MILLION, VECTOR_CONSTANT, 1);
    assert_int_equal(rig_code(&r, 1, v), 0);
    assert_int_equal(r.len, 1 + 4 + 3 + 200000);
    assert_int_equal(compress_bound(r.c), r.len);
    vector_fill(v, MILLION, VECTOR_GAUSS, 1);
    assert_int_equal(rig_code(&r, 1, v), 0);
    double nominal = (double)compress_nominal(r.c);
    assert_true(fabs(nominal / (double)r.len - 1.0) <= 0.25);
    rig_close(&r);
}

/* ---- messages from outside ---- */

/* The bytes of the floats 1, 2^63, 2^64, -1, -0, infinity, NaN and 0, little-endian. */
#define ONE          0, 0, 0x80, 0x3f
#define HALF_LIMIT   0, 0, 0, 0x5f
#define LIMIT        0, 0, 0x80, 0x5f
#define MINUS_ONE    0, 0, 0x80, 0xbf
#define MINUS_ZERO   0, 0, 0, 0x80
#define INF          0, 0, 0x80, 0x7f
#define NOT_A_NUMBER 0, 0, 0xc0, 0x7f
#define ZERO         0, 0, 0, 0

static const struct
{
    const char *spec;
    size_t n, len;
    uint8_t bytes[24];
    bool proper;
} cases[] = {
    /* Message of onebit: mean of the values >= 0 | mean of the values < 0 | one sign bit per
     * value. */
    {"onebit", 3, 10, {1, ONE, ONE, 2}, true},
    {"onebit", 3, 10, {1, ONE, ZERO, 0}, true},
    {"onebit", 3, 10, {1, ZERO, ONE, 7}, true},
    {"onebit", 3, 10, {1, ZERO, ONE, 3}, true}, /* Accepted: the mean of values >= 0 may be 0. */
    /* Accepted: the means of both signs may round to 0. */
    {"onebit", 3, 10, {1, ZERO, ZERO, 0}, true},
    {"onebit", 3, 10, {1, HALF_LIMIT, HALF_LIMIT, 2}, true},
    /* Refused: the message has a mean of negative values, but no negative value. */
    {"onebit", 3, 10, {1, ONE, ONE, 0}, false},
    /* Refused: the message has a mean of positive values, but no positive value. */
    {"onebit", 3, 10, {1, ONE, ONE, 7}, false},
    {"onebit", 3, 10, {1, ONE, ZERO, 2}, false}, /* Refused: the second value would decode to -0. */
    {"onebit", 3, 10, {1, ONE, ONE, 10}, false}, /* Refused: an unused padding bit is set. */
    {"onebit", 3, 10, {1, MINUS_ONE, ONE, 2}, false},
    {"onebit", 3, 10, {1, ONE, MINUS_ONE, 2}, false},
    {"onebit", 3, 10, {1, MINUS_ZERO, ONE, 2}, false},
    {"onebit", 3, 10, {1, ONE, MINUS_ZERO, 0}, false},
    {"onebit", 3, 10, {1, INF, ONE, 2}, false},
    {"onebit", 3, 10, {1, ONE, NOT_A_NUMBER, 2}, false},
    {"onebit", 3, 10, {1, LIMIT, ONE, 2}, false},
    {"onebit", 3, 10, {1, ONE, LIMIT, 2}, false},
    {"onebit", 3, 9, {1, ONE, ONE}, false},
    {"onebit", 8, 10, {1, ZERO, ONE, 0xff}, true},
    {"onebit", 8, 10, {1, ONE, ONE, 0xff}, false},
    {"onebit", 9, 11, {1, ONE, ONE, 0xff, 0}, true},
    /* Refused: the message has a mean of positive values, but no positive value. */
    {"onebit", 9, 11, {1, ONE, ONE, 0xff, 1}, false},

    /* Message of thr2: scale | two bytes of codes. The first byte has the codes of values 0, 2 and
     * 4, the second those of values 1 and 3. The rest is padding. */
    {"thr2", 5, 7, {1, ONE, 0x3e, 0x0b}, true},
    /* Refused: the code of value 0 is 01, which does not exist. */
    {"thr2", 5, 7, {1, ONE, 0x3d, 0x0b}, false},
    /* Refused: the code of value 4 is 01, which does not exist. */
    {"thr2", 5, 7, {1, ONE, 0x1e, 0x0b}, false},
    {"thr2", 5, 7, {1, ONE, 0xbe, 0x0b}, false}, /* Refused: the unused padding bits are not 0. */
    {"thr2", 5, 7, {1, ONE, 0x3e, 0x2b}, false}, /* Refused: the unused padding bits are not 0. */
    {"thr2", 5, 7, {1, ONE, 0x3e, 0x8b}, false}, /* Refused: the unused padding bits are not 0. */
    /* Refused: all values are 0, but the scale is not. */
    {"thr2", 5, 7, {1, ONE, 0, 0}, false},
    {"thr2", 5, 7, {1, ZERO, 0, 0}, true},
    {"thr2", 5, 7, {1, ZERO, 0x02, 0}, false},
    {"thr2", 5, 7, {1, MINUS_ONE, 0x3e, 0x0b}, false},
    {"thr2", 5, 7, {1, MINUS_ZERO, 0, 0}, false},
    {"thr2", 5, 7, {1, INF, 0x3e, 0x0b}, false},
    {"thr2", 5, 7, {1, NOT_A_NUMBER, 0x3e, 0x0b}, false},
    {"thr2", 5, 7, {1, LIMIT, 0x3e, 0x0b}, false},
    {"thr2", 5, 7, {1, HALF_LIMIT, 0x3e, 0x0b}, true},
    {"thr2,form=mxnet", 5, 3, {1, 0x3e, 0x0b}, true},
    {"thr2,form=mxnet", 5, 3, {1, 0, 0}, true},
    {"thr2,form=mxnet", 5, 3, {1, 0x3e, 0x07}, false},
    {"thr2,form=mxnet", 5, 3, {1, 0xbe, 0x0b}, false},

    {"dorefa:6", 1, 6, {1, ONE, 63}, true},
    {"dorefa:6", 1, 6, {1, ONE, 64}, false}, /* Refused: the unused padding bits are not 0. */
    {"dorefa:6", 1, 6, {1, ZERO, 0}, true},
    {"dorefa:6", 1, 6, {1, ZERO, 1}, false},
    /* Refused: the largest value would be 63 * 2^63. */
    {"dorefa:6", 1, 6, {1, HALF_LIMIT, 32}, false},
    {"dorefa:6", 1, 6, {1, MINUS_ONE, 32}, false},
    {"dorefa:6", 1, 6, {1, MINUS_ZERO, 0}, false},
    {"dorefa:6", 1, 6, {1, INF, 32}, false},
    {"dorefa:6", 1, 6, {1, NOT_A_NUMBER, 32}, false},
    {"dorefa:1", 1, 6, {1, HALF_LIMIT, 1}, true},
    {"dorefa:1", 1, 6, {1, ONE, 2}, false},

    /* Message of tern: scale | two bytes of digits. The first byte has the digits of values 0, 2, 4
     * and 6, the second those of values 1, 3 and 5. The rest is padding. */
    {"tern", 7, 7, {1, ONE, 1, 4}, true},
    {"tern", 7, 7, {1, ONE, 241, 238}, true},
    {"tern", 7, 7, {1, ONE, 242, 238}, false}, /* Refused: the unused padding digits are not 0. */
    {"tern", 7, 7, {1, ONE, 241, 239}, false},
    {"tern", 7, 7, {1, ONE, 241, 235}, false},
    {"tern", 7, 7, {1, ONE, 243, 238}, false},
    {"tern", 7, 7, {1, ONE, 255, 238}, false},
    /* Refused: all values are 0, but the scale is not. */
    {"tern", 7, 7, {1, ONE, 121, 121}, false},
    {"tern", 7, 7, {1, ZERO, 121, 121}, true},
    {"tern", 7, 7, {1, ZERO, 1, 4}, false},
    {"tern", 7, 7, {1, MINUS_ONE, 1, 4}, false},
    {"tern", 7, 7, {1, MINUS_ZERO, 121, 121}, false},
    {"tern", 7, 7, {1, INF, 1, 4}, false},
    {"tern", 7, 7, {1, NOT_A_NUMBER, 1, 4}, false},
    {"tern", 7, 7, {1, LIMIT, 1, 4}, false},
    {"tern", 7, 7, {1, HALF_LIMIT, 1, 4}, true},

    /* Message of 3lc: scale | length of the stream | stream. The 200 digits take 40 bytes. */
    /* Accepted: runs of 14, 14 and 11 zero bytes, with another byte after or before them. */
    {"3lc", 200, 10, {1, ONE, 4, 255, 255, 252, 0}, true},
    {"3lc", 200, 10, {1, ONE, 4, 0, 255, 255, 252}, true},
    /* A run of 39 zero bytes must be written as 14, 14, 11. Refused, in this order: 14 14 1 10, 14
     * 14 10 1, 14 11 14, 11 14 14. */
    {"3lc", 200, 11, {1, ONE, 5, 0, 255, 255, 121, 251}, false},
    {"3lc", 200, 11, {1, ONE, 5, 0, 255, 255, 251, 121}, false},
    {"3lc", 200, 10, {1, ONE, 4, 0, 255, 252, 255}, false},
    {"3lc", 200, 10, {1, ONE, 4, 0, 252, 255, 255}, false},
    /* Refused: the runs have one zero byte too many. */
    {"3lc", 200, 10, {1, ONE, 4, 0, 255, 255, 253}, false},
    /* Refused: the runs have one zero byte too few. */
    {"3lc", 200, 10, {1, ONE, 4, 0, 255, 255, 251}, false},
    {"3lc", 200, 10, {1, ONE, 4, 0, 255, 255, 255}, false},
    {"3lc", 200, 9, {1, ONE, 3, 255, 255, 253}, false}, /* Refused: all 40 bytes are zero. */
    {"3lc", 200, 10, {1, ONE, 4, 255, 255, 252, 121}, false},
    {"3lc", 200, 9, {1, ONE, 4, 0, 255, 255}, false}, /* Refused: the message is cut off. */
    {"3lc", 200, 11, {1, ONE, 4, 0, 255, 255, 252, 0}, false},
    {"3lc", 200, 11, {1, ONE, 5, 0, 255, 255, 252, 0}, false},
    {"3lc", 200, 11, {1, ONE, 0x84, 0, 0, 255, 255, 252}, false},
    {"3lc", 200, 11, {1, ONE, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, false},
    {"3lc", 200, 6, {1, ONE, 0}, false},
    {"3lc", 200, 5, {1, ONE}, false},
    {"3lc", 200, 4, {1, 0, 0, 0x80}, false},
    {"3lc", 200, 10, {1, ZERO, 4, 0, 255, 255, 252}, false},
    {"3lc", 200, 10, {1, MINUS_ONE, 4, 0, 255, 255, 252}, false},
    {"3lc", 200, 10, {1, MINUS_ZERO, 4, 0, 255, 255, 252}, false},
    {"3lc", 200, 10, {1, INF, 4, 0, 255, 255, 252}, false},
    {"3lc", 200, 10, {1, NOT_A_NUMBER, 4, 0, 255, 255, 252}, false},
    {"3lc", 200, 10, {1, LIMIT, 4, 0, 255, 255, 252}, false},
    {"3lc", 200, 10, {1, HALF_LIMIT, 4, 0, 255, 255, 252}, true},
    {"3lc", 7, 8, {1, ONE, 2, 1, 4}, true},
    {"3lc", 7, 8, {1, ONE, 2, 2, 4}, false}, /* Refused: the unused padding digits are not 0. */
    {"3lc", 7, 8, {1, ONE, 2, 1, 5}, false},
    {"3lc", 7, 8, {1, ONE, 2, 121, 4}, true},
    {"3lc", 7, 8, {1, ONE, 2, 121, 121}, false},
    /* Refused: all digits are 0, but the scale is not. */
    {"3lc", 7, 7, {1, ONE, 1, 243}, false},
    /* Refused: two consecutive bytes 121 must be written as a run, byte 243. */
    {"3lc", 20, 10, {1, ONE, 4, 0, 121, 121, 0}, false},
    {"3lc", 20, 9, {1, ONE, 3, 0, 243, 0}, true},
};

static void test_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench_rig r;
        rig_open(&r, cases[i].spec, cases[i].n);
        /* The block has exactly the size of the message, so that a sanitizer detects reads beyond
         * it. */
        uint8_t *exact = malloc(cases[i].len);
        assert_non_null(exact);
        memcpy(exact, cases[i].bytes, cases[i].len);
        bool proper = compress_validate(r.c, exact, cases[i].len);
        if (proper != cases[i].proper)
            fail_msg("case %zu of %s should %spass", i, cases[i].spec,
                     cases[i].proper ? "" : "not ");
        memset(r.out, 0, r.n * sizeof *r.out);
        if (proper)
            compress_apply(r.c, exact, cases[i].len, r.out);
        for (size_t j = 0; j < r.n; j++)
            assert_true(fabsf(r.out[j]) < 0x1p64f);
        free(exact);
        rig_close(&r);
    }
}

/* Each decoded vector has one encoding. A message in which one byte is changed is refused or
 * decodes to another vector. */
static void test_one_encoding(void **state)
{
    (void)state;
    static const char *const specs[] = {"onebit",          "onebit:16", "thr2",
                                        "thr2,form=mxnet", "dorefa:3",  "tern",
                                        "tern:16",         "3lc",       "3lc:1.5"};
    enum { N = 43 };
    float before[N];
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct bench_rig r;
            rig_open(&r, specs[i], N);
            vector_fill(v, N, seed % 2 ? VECTOR_GAUSS : VECTOR_SPARSE, seed);
            assert_int_equal(rig_code(&r, seed, v), 0);
            memcpy(before, r.out, sizeof before);
            for (size_t at = 0; at < 255 * r.len; at++) {
                uint8_t *byte = &r.bytes[at / 255];
                uint8_t keep = *byte;
                *byte = (uint8_t)(keep + 1 + at % 255);
                memset(r.out, 0, sizeof before);
                if (compress_validate(r.c, r.bytes, r.len)) {
                    compress_apply(r.c, r.bytes, r.len, r.out);
                    if (memcmp(before, r.out, sizeof before) == 0)
                        fail_msg("%s: byte %zu as %u means the same", specs[i], at / 255,
                                 (unsigned)*byte);
                }
                *byte = keep;
            }
            rig_close(&r);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quartic),         cmocka_unit_test(test_quartic_bytes),
        cmocka_unit_test(test_quartic_padding), cmocka_unit_test(test_runs),
        cmocka_unit_test(test_runs_of_zeros),   cmocka_unit_test(test_3lc_length),
        cmocka_unit_test(test_chosen),          cmocka_unit_test(test_one_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
