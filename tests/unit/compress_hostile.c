/* tests/unit/compress_hostile.c -- tests messages of hostile peers: they must be refused, or decode
 * to finite values without a write outside of the replica x_hat. */
#include "tests/unit/compress_mutate.h"
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    N_MAX = 1200,
    MUTATIONS = 3000 /* Number of modified messages for each compressor. */
};

static float v[N_MAX];
static struct tested list[SPECS_MAX];
static size_t n_specs;

/* A valid message and the compressor that made it. */
struct honest
{
    const char *spec;
    struct compress *c;
    size_t n, len;
    uint8_t *bytes;
    /* Buffer of exactly n floats for decoded values, so that a sanitizer detects a write beyond
     * it. */
    float *out;
};

/* Opens a compressor for three tensors: as one unit, as three units (scope=layer), or with the
 * first and last tensor as one unit. */
static void honest_open(struct honest *h, const struct tested *t, uint64_t seed)
{
    static const char *const tails[] = {"", ",scope=layer", ";mid=none"};
    struct segment s[3] = {{.offset = 0, .n = 90, .rows = 9, .cols = 10},
                           {.name = "mid", .offset = 90, .n = 1, .rows = 1, .cols = 1},
                           {.offset = 91, .n = 42, .rows = 6, .cols = 7}};
    if (seed % 2 == 1) { /* The vector is long enough for several blocks. */
        s[2].n = N_MAX - 91;
        s[2].rows = 1;
        s[2].cols = s[2].n;
    }
    size_t how = seed % 3;
    if (how == 1 && strstr(t->spec, "scope=") != NULL)
        how = 0;
    char text[SPEC_LONG];
    *h = (struct honest){.spec = t->spec, .n = s[2].offset + s[2].n};
    assert_int_equal(compress_open(&h->c, spec_and(text, t->spec, tails[how]), s, 3), 0);
    h->bytes = malloc(compress_bound(h->c));
    h->out = calloc(h->n, sizeof *h->out);
    assert_non_null(h->bytes);
    assert_non_null(h->out);
    vector_fill(v, h->n, seed % 4 < 2 ? VECTOR_GAUSS : VECTOR_SPARSE, seed);
    struct compress_stat stat;
    struct compress_input in = {.draw = seed, .x = v, .x_hat = h->out};
    assert_int_equal(compress_encode(h->c, &in, h->bytes, &h->len, &stat), 0);
}

static void honest_close(struct honest *h)
{
    compress_close(h->c);
    free(h->bytes);
    free(h->out);
}

/* Returns a copy of bytes[0..len) at the end of a page, after which no memory is readable. Valid
 * until the next call. */
static uint8_t *before_nothing(const uint8_t *bytes, size_t len)
{
    static uint8_t *end;
    static size_t cap;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (end == NULL || len > cap) {
        cap = (2 * len / page + 1) * page;
        uint8_t *p =
            mmap(NULL, cap + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(p != MAP_FAILED);
        end = p + cap;
        assert_int_equal(mprotect(end, page, PROT_NONE), 0);
    }
    memcpy(end - len, bytes, len);
    return end - len;
}

/* Gives the bytes to compress_validate(), and to compress_apply() if they are valid. Returns
 * whether they are valid. The decoded values are then in `out`. */
static bool offer(struct honest *h, const uint8_t *bytes, size_t len)
{
    const uint8_t *exact = before_nothing(bytes, len);
    memset(h->out, 0, h->n * sizeof *h->out);
    bool proper = compress_validate(h->c, exact, len);
    if (proper) {
        compress_apply(h->c, exact, len, h->out);
        for (size_t i = 0; i < h->n; i++)
            if (!(fabsf(h->out[i]) <= 0x1p64f))
                fail_msg("%s: element %zu became %g", h->spec, i, (double)h->out[i]);
    }
    return proper;
}

static void test_truncations(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_specs; i++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct honest h;
            honest_open(&h, &list[i], seed);
            assert_true(offer(&h, h.bytes, h.len));
            for (size_t len = 0; len < h.len; len++)
                if (offer(&h, h.bytes, len))
                    fail_msg("%s: %zu of %zu bytes pass", h.spec, len, h.len);
            uint8_t *longer = calloc(h.len + 1, 1);
            assert_non_null(longer);
            memcpy(longer, h.bytes, h.len);
            if (offer(&h, longer, h.len + 1))
                fail_msg("%s: a trailing byte passes", h.spec);
            free(longer);
            honest_close(&h);
        }
}

/* Returns whether each decoded vector has exactly one encoding, so that a changed message is
 * refused or decodes to other values. Codecs with positions from a seed and codecs that may send
 * zeros have several encodings. */
static bool has_one_encoding(const struct tested *t)
{
    return t->codec->values != NULL
           || (t->codec->selector != NULL && t->codec->selector->places == NULL
               && strchr(t->spec, '+') == NULL);
}

static void test_bit_flips(void **state)
{
    (void)state;
    static float before[N_MAX];
    for (size_t i = 0; i < n_specs; i++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            struct honest h;
            honest_open(&h, &list[i], 2 * seed + 2);
            assert_true(offer(&h, h.bytes, h.len));
            memcpy(before, h.out, h.n * sizeof *before);
            bool one_way = has_one_encoding(&list[i]);
            for (size_t bit = 0; bit < 8 * h.len; bit++) {
                h.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                bool proper = offer(&h, h.bytes, h.len);
                if (proper && one_way && memcmp(before, h.out, h.n * sizeof *before) == 0)
                    fail_msg("%s: bit %zu means nothing", h.spec, bit);
                h.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            honest_close(&h);
        }
}

static void test_mutations(void **state)
{
    (void)state;
    size_t passed = 0;
    for (size_t i = 0; i < n_specs; i++) {
        struct rng r = rng_stream(rng_key(i, RNG_TEST, 0, 0));
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct honest h;
            honest_open(&h, &list[i], seed);
            size_t room = h.len + 64;
            uint8_t *m = malloc(room);
            assert_non_null(m);
            for (size_t j = 0; j < MUTATIONS / 6; j++) {
                size_t len = h.len;
                memcpy(m, h.bytes, len);
                for (size_t times = 1 + rng_below(&r, 4); times > 0; times--)
                    len = mutate(&r, m, len, room);
                passed += offer(&h, m, len);
            }
            free(m);
            honest_close(&h);
        }
    }
    assert_true(passed > 50 * n_specs); /* Many of the random changes result in valid messages. */
}

/* Tests chosen messages of compressors with a known layout. */
static void test_chosen(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        size_t n, len;
        uint8_t bytes[24]; /* Bytes of the message that are not listed are 0. */
        bool proper;
    } cases[] = {
        {"none", 1, 1, {0}, true},
        {"none", 1, 1, {1}, false},
        {"none", 1, 1, {2}, false},
        {"none", 1, 0, {0}, false},
        {"none", 1, 2, {0, 0}, false},
        {"none", 1, 5, {1, 0, 0, 0x80, 0x3f}, true},
        {"none", 1, 5, {1, 0, 0, 0, 0x80}, false},    /* Refused: the value is -0. */
        {"none", 1, 5, {1, 0, 0, 0xc0, 0x7f}, false}, /* Refused: the value is a NaN. */
        {"none", 1, 5, {1, 0, 0, 0x80, 0xff}, false}, /* Refused: the value is -infinity. */
        {"none", 1, 5, {1, 0, 0, 0x80, 0x5f}, false}, /* Refused: the value is 2^64. */
        {"fp16", 1, 4, {1, 127, 0x00, 0x78}, true},
        {"fp16", 1, 4, {1, 127, 0x01, 0x78}, false}, /* Refused: the value is above 2^15. */
        {"fp16", 1, 4, {1, 127, 0x00, 0x80}, false}, /* Refused: the value is -0. */
        {"fp16", 1, 4, {1, 191, 0x00, 0x10}, false}, /* Refused: the value is 2^64. */
        /* Refused: the exponent is 0, but the value is not. */
        {"fp16", 1, 4, {1, 0, 0x01, 0x00}, false},
        {"sign:0", 3, 6, {1, 0, 0, 0x80, 0x3f, 7}, true},
        /* Refused: the unused padding bits are not 0. */
        {"sign:0", 3, 6, {1, 0, 0, 0x80, 0x3f, 8}, false},
        {"sign:0", 3, 6, {1, 0, 0, 0x80, 0xbf, 1}, false}, /* Refused: the scale is negative. */
        /* Refused: the scale is 0, but a sign bit is set. */
        {"sign:0", 3, 6, {1, 0, 0, 0, 0, 1}, false},
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x0f}, true},
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x08}, false}, /* Refused: the value is -0. */
        /* Refused: the unused padding bits are not 0. */
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x1f}, false},
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0, 0, 0x00}, true},
        /* Refused: the scale is 0, but the value is not. */
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0, 0, 0x01}, false},
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0, 0x5f, 0x01}, true},  /* Accepted: the value is 2^63. */
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0, 0x5f, 0x02}, false}, /* Refused: the value is 2^64. */
        {"qsgd:4:0,levels=5", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x05}, true},
        {"qsgd:4:0,levels=5", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x06}, false},
        /* Message of topk: k | Rice parameter b | length of the stream | stream | one float per
         * position. */
        {"topk:0.1", 20, 9, {1, 1, 3, 1, 0x1e, 0, 0, 0x80, 0x3f}, true},
        {"topk:0.1", 20, 9, {1, 1, 3, 1, 0x1c, 0, 0, 0x80, 0x3f}, true},
        {"topk:0.1", 20, 9, {1, 1, 3, 1, 0x24, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 3, 1, 0x3e, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 3, 1, 0x00, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 0, 3, 1, 0x1e, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 3, 3, 1, 0x1e, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 3, 1, 0x1e, 0, 0, 0x80, 0x7f}, false},
        {"topk:0.1", 20, 10, {1, 0x81, 0, 3, 1, 0x1e, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 10, {1, 1, 3, 2, 0x1e, 0, 0, 0, 0x80, 0x3f}, false},
        /* These messages have a valid position that is not encoded as a sender must encode it, so
         * they must be refused. In the first ones, the Rice parameter is larger than a sender's,
         * and the stream is not shorter. The others use another code for the position. */
        {"topk:0.1", 20, 9, {1, 1, 4, 1, 0x1f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 5, 1, 0x1f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 32, 1, 0x1f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 10, {1, 1, 36, 2, 1, 15, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 11, {1, 1, 64, 3, 0, 0x80, 0}, false},
        /* topk:0.1 of 20 values may send at most two positions. The first message has three
         * positions. The second has two and is valid. The third has one, with a Rice parameter so
         * bad that the stream exceeds the bound. */
        {"topk:0.1", 20, 17, {1, 3, 0, 1, 7}, false},
        {"topk:0.1", 20, 13, {1, 2, 0, 1, 3}, true},
        {"topk:0.1", 20, 11, {1, 1, 0, 3, 0, 0, 0x08}, false},
        {"topk:0.1", 20, 4, {1, 1, 4, 0xff}, false},
        {"topk:0.1", 20, 7, {1, 0xff, 0xff, 0xff, 0xff, 0x0f, 4}, false},
        {"topk:0.1", 20, 8, {1, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x0f}, false},
        /* Messages with positions in Elias-Fano code: high parts, then low parts. Positions 15 and
         * 19 are valid, the others are not. */
        {"topk:0.1/ef", 20, 10, {1, 1, 36, 2, 1, 15, 0, 0, 0x80, 0x3f}, true},
        {"topk:0.1/ef", 20, 10, {1, 1, 36, 2, 2, 3, 0, 0, 0x80, 0x3f}, true},
        {"topk:0.1/ef", 20, 10, {1, 1, 36, 2, 2, 4, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1/ef", 20, 10, {1, 1, 36, 2, 0, 4, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1/ef", 20, 10, {1, 1, 36, 2, 3, 0, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1/ef", 20, 10, {1, 1, 36, 2, 5, 0, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1/ef", 20, 10, {1, 1, 36, 2, 1, 31, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1/ef", 20, 10, {1, 1, 35, 2, 1, 7, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1/ef", 20, 11, {1, 1, 36, 3, 1, 15, 0, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1/ef", 20, 9, {1, 1, 3, 1, 0x1e, 0, 0, 0x80, 0x3f}, false},
        /* Accepted: the positions 3 and 4 are ascending. */
        {"topk:0.1/ef", 20, 14, {1, 2, 35, 2, 3, 0x23}, true},
        {"topk:0.1/ef", 20, 14, {1, 2, 35, 2, 3, 0x1b}, false}, /* Refused: both positions are 3. */
        /* Refused: the positions 3 and 2 are not ascending. */
        {"topk:0.1/ef", 20, 14, {1, 2, 35, 2, 3, 0x13}, false},
        {"topk:0.1/bitmap", 20, 11, {1, 1, 64, 3, 0, 0x80, 0}, true},
        {"topk:0.1/bitmap", 20, 11, {1, 1, 64, 3, 0, 0x80, 1}, false},
        {"topk:0.1/bitmap", 20, 11, {1, 1, 64, 3, 0, 0x80, 0x10}, false},
        {"topk:0.1/bitmap", 20, 11, {1, 1, 64, 3, 0, 0, 0}, false},
        {"topk:0.1/bitmap", 20, 11, {1, 1, 64, 3, 0, 0, 0x10}, false},
        {"topk:0.1/bitmap", 20, 11, {1, 1, 65, 3, 0, 0x80, 0}, false},
        {"randk:0.1", 10, 13, {1, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0}, true},
        {"randk:0.1", 10, 8, {1, 9, 9, 9, 9, 9, 9, 9}, false},
        {"randk:0.1", 10, 9, {1, 9, 9, 9, 9, 9, 9, 9, 9}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct segment all = {.n = cases[i].n, .rows = 1, .cols = cases[i].n};
        struct honest h = {.spec = cases[i].spec, .n = cases[i].n};
        assert_int_equal(compress_open(&h.c, h.spec, &all, 1), 0);
        h.out = calloc(h.n, sizeof *h.out);
        assert_non_null(h.out);
        if (offer(&h, cases[i].bytes, cases[i].len) != cases[i].proper)
            fail_msg("case %zu of %s should %spass", i, h.spec, cases[i].proper ? "" : "not ");
        honest_close(&h);
    }
}

int main(void)
{
    n_specs = specs_all(list);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
