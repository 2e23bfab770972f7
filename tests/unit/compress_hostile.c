/* Messages from outside: refused, or applied inside x_hat and finite. */
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const specs[] = {
    "none",
    "fp16",
    "sign:64",
    "sign:0",
    "qsgd:4",
    "qsgd:3:64:l2,round=sr,scale=raw",
    "qsgd:6:0:l2,levels=16",
    "topk:0.1",
    "topk:0.5+qsgd:4",
    "topk:0.05+sign",
    "topk:1+fp16",
    "randk:0.1",
    "randk:0.3+qsgd:5",
};

enum {
    N_SPECS = sizeof specs / sizeof specs[0],
    N_MAX = 1200,
    MUTATIONS = 4000 /* Of each compressor. */
};

static float v[N_MAX];

/* One honest message, and the compressor it is for. */
struct honest
{
    const char *spec;
    struct compress *c;
    size_t n, len;
    uint8_t *bytes;
    float *out; /* Exactly n floats, to see one written beside them. */
};

static void honest_open(struct honest *h, const char *spec, bool layers,
                        uint64_t seed)
{
    struct segment s[3] = {{.offset = 0, .n = 90, .rows = 9, .cols = 10},
                           {.offset = 90, .n = 1, .rows = 1, .cols = 1},
                           {.offset = 91, .n = 42, .rows = 1, .cols = 42}};
    if (seed % 3 == 2) { /* Long enough for several blocks. */
        s[2].n = N_MAX - 91;
        s[2].cols = s[2].n;
    }
    *h = (struct honest){.spec = spec, .n = s[2].offset + s[2].n};
    int err = compress_open(&h->c, spec, layers ? COMPRESS_LAYER : COMPRESS_MODEL,
                            s, 3);
    assert_int_equal(err, 0);
    h->bytes = malloc(compress_bound(h->c));
    h->out = calloc(h->n, sizeof *h->out);
    assert_non_null(h->bytes);
    assert_non_null(h->out);
    vector_fill(v, h->n, seed % 2 ? VECTOR_GAUSS : VECTOR_SPARSE, seed);
    struct compress_stat stat;
    err = compress_encode(h->c, seed, v, h->out, h->bytes, &h->len, &stat);
    assert_int_equal(err, 0);
}

static void honest_close(struct honest *h)
{
    compress_close(h->c);
    free(h->bytes);
    free(h->out);
}

/* Offer bytes from a buffer of exactly their length. Returns what validate
 * said; if it agreed, C is in out. */
static bool offer(struct honest *h, const uint8_t *bytes, size_t len)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, len);
    memset(h->out, 0, h->n * sizeof *h->out);
    bool proper = compress_validate(h->c, exact, len);
    if (proper) {
        compress_apply(h->c, exact, len, h->out);
        for (size_t i = 0; i < h->n; i++)
            if (!(fabsf(h->out[i]) <= 0x1p64f))
                fail_msg("%s: element %zu became %g", h->spec, i,
                         (double)h->out[i]);
    }
    free(exact);
    return proper;
}

static void test_truncations(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SPECS; i++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct honest h;
            honest_open(&h, specs[i], seed >= 3, seed);
            assert_true(offer(&h, h.bytes, h.len));
            for (size_t len = 0; len < h.len; len++)
                if (offer(&h, h.bytes, len))
                    fail_msg("%s: %zu of %zu bytes pass", specs[i], len, h.len);
            uint8_t *longer = calloc(h.len + 1, 1);
            assert_non_null(longer);
            memcpy(longer, h.bytes, h.len);
            if (offer(&h, longer, h.len + 1))
                fail_msg("%s: a trailing byte passes", specs[i]);
            free(longer);
            honest_close(&h);
        }
}

/* A codec without positions has one encoding of each C: a changed message is
 * refused or means something else. */
static void test_bit_flips(void **state)
{
    (void)state;
    static float before[N_MAX];
    for (size_t i = 0; i < N_SPECS; i++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            struct honest h;
            honest_open(&h, specs[i], seed == 1, seed + 3);
            assert_true(offer(&h, h.bytes, h.len));
            memcpy(before, h.out, h.n * sizeof *before);
            bool dense = strstr(specs[i], "k:") == NULL;
            for (size_t bit = 0; bit < 8 * h.len; bit++) {
                h.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                bool proper = offer(&h, h.bytes, h.len);
                if (proper && dense &&
                    memcmp(before, h.out, h.n * sizeof *before) == 0)
                    fail_msg("%s: bit %zu means nothing", specs[i], bit);
                h.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            honest_close(&h);
        }
}

static const uint8_t interesting[] = {0x00, 0x01, 0x7f, 0x80, 0x88, 0xff,
                                      0x3f, 0x5f, 0x78, 0x7c, 31,   32};

/* One change to m[0..*len), which has room for `room` bytes. */
static void mutate(struct rng *r, uint8_t *m, size_t *len, size_t room)
{
    size_t at = rng_below(r, *len + 1);
    size_t some = 1 + rng_below(r, 8);
    switch (rng_below(r, 6)) {
    case 0: /* A byte that means something somewhere. */
        if (at < *len)
            m[at] = interesting[rng_below(r, sizeof interesting)];
        break;
    case 1: /* A head byte, where counts and parameters are. */
        m[rng_below(r, *len < 10 ? *len : 10)] = (uint8_t)rng_u64(r);
        break;
    case 2: /* A run of one byte. */
        for (size_t i = at; i < *len && i < at + some; i++)
            m[i] = interesting[at % sizeof interesting];
        break;
    case 3: /* Cut out. */
        some = some < *len - at ? some : *len - at;
        memmove(m + at, m + at + some, *len - at - some);
        *len -= some;
        break;
    case 4: /* Put in. */
        some = some < room - *len ? some : room - *len;
        memmove(m + at + some, m + at, *len - at);
        for (size_t i = 0; i < some; i++)
            m[at + i] = (uint8_t)rng_u64(r);
        *len += some;
        break;
    default: /* Swap bytes for others of the message. */
        for (size_t i = at; i < *len && i < at + some; i++)
            m[i] = m[rng_below(r, *len)];
        break;
    }
    if (*len == 0)
        m[(*len)++] = 1;
}

static void test_mutations(void **state)
{
    (void)state;
    size_t passed = 0;
    for (size_t i = 0; i < N_SPECS; i++) {
        struct rng r = rng_stream(rng_key(i, RNG_TEST, 0, 0));
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct honest h;
            honest_open(&h, specs[i], seed >= 3, seed);
            size_t room = h.len + 64;
            uint8_t *m = malloc(room);
            assert_non_null(m);
            for (size_t j = 0; j < MUTATIONS / 6; j++) {
                size_t len = h.len;
                memcpy(m, h.bytes, len);
                for (size_t times = 1 + rng_below(&r, 4); times > 0; times--)
                    mutate(&r, m, &len, room);
                passed += offer(&h, m, len);
            }
            free(m);
            honest_close(&h);
        }
    }
    assert_true(passed > 1000); /* The mutator gets past the first check. */
}

/* Cases picked by hand, each against a compressor of a known layout. */
static void test_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t n, len;
        uint8_t bytes[24]; /* The rest is zeros. */
        bool proper;
    } cases[] = {
        {"none", 1, 1, {0}, true},
        {"none", 1, 1, {1}, false},
        {"none", 1, 1, {2}, false},
        {"none", 1, 0, {0}, false},
        {"none", 1, 2, {0, 0}, false},
        {"none", 1, 5, {1, 0, 0, 0x80, 0x3f}, true},
        {"none", 1, 5, {1, 0, 0, 0, 0x80}, false},          /* -0 */
        {"none", 1, 5, {1, 0, 0, 0xc0, 0x7f}, false},       /* NaN */
        {"none", 1, 5, {1, 0, 0, 0x80, 0xff}, false},       /* -inf */
        {"none", 1, 5, {1, 0, 0, 0x80, 0x5f}, false},       /* 2^64 */
        {"fp16", 1, 4, {1, 127, 0x00, 0x78}, true},
        {"fp16", 1, 4, {1, 127, 0x01, 0x78}, false},        /* Above 2^15. */
        {"fp16", 1, 4, {1, 127, 0x00, 0x80}, false},        /* -0 */
        {"fp16", 1, 4, {1, 191, 0x00, 0x10}, false},        /* 2^64 */
        {"fp16", 1, 4, {1, 0, 0x01, 0x00}, false},          /* Zero block. */
        {"sign:0", 3, 6, {1, 0, 0, 0x80, 0x3f, 7}, true},
        {"sign:0", 3, 6, {1, 0, 0, 0x80, 0x3f, 8}, false},  /* Padding. */
        {"sign:0", 3, 6, {1, 0, 0, 0x80, 0xbf, 1}, false},  /* Negative. */
        {"sign:0", 3, 6, {1, 0, 0, 0, 0, 1}, false},        /* Zero scale. */
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x0f}, true},
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x08}, false}, /* -0 */
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x1f}, false}, /* Padding. */
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0, 0x5f, 0x01}, true},     /* 2^63 */
        {"qsgd:4:0", 1, 6, {1, 0, 0, 0, 0x5f, 0x02}, false},    /* 2^64 */
        {"qsgd:4:0,levels=5", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x05}, true},
        {"qsgd:4:0,levels=5", 1, 6, {1, 0, 0, 0x80, 0x3f, 0x06}, false},
        /* k | b | stream's bytes | stream | one f32 a position */
        {"topk:0.1", 20, 9, {1, 1, 4, 1, 0x1f, 0, 0, 0x80, 0x3f}, true},
        {"topk:0.1", 20, 9, {1, 1, 5, 1, 0x1f, 0, 0, 0x80, 0x3f}, true},
        {"topk:0.1", 20, 9, {1, 1, 5, 1, 0x3f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 4, 1, 0x3f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 4, 1, 0x00, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 1, 32, 1, 0x1f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 0, 4, 1, 0x1f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 9, {1, 3, 4, 1, 0x1f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 10, {1, 0x81, 0, 4, 1, 0x1f, 0, 0, 0x80, 0x3f}, false},
        {"topk:0.1", 20, 10, {1, 1, 4, 2, 0x1f, 0, 0, 0, 0x80, 0x3f}, false},
        /* Whole, but three of two; whole, but at a parameter so poor that
         * the stream is longer than any of one position has to be. */
        {"topk:0.1", 20, 17, {1, 3, 0, 1, 7}, false},
        {"topk:0.1", 20, 13, {1, 2, 0, 1, 3}, true},
        {"topk:0.1", 20, 11, {1, 1, 0, 3, 0, 0, 0x08}, false},
        {"topk:0.1", 20, 4, {1, 1, 4, 0xff}, false},
        {"topk:0.1", 20, 7, {1, 0xff, 0xff, 0xff, 0xff, 0x0f, 4}, false},
        {"topk:0.1", 20, 8, {1, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x0f}, false},
        {"randk:0.1", 10, 13, {1, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0}, true},
        {"randk:0.1", 10, 8, {1, 9, 9, 9, 9, 9, 9, 9}, false},
        {"randk:0.1", 10, 9, {1, 9, 9, 9, 9, 9, 9, 9, 9}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct segment all = {.n = cases[i].n, .rows = 1, .cols = cases[i].n};
        struct honest h = {.spec = cases[i].spec, .n = cases[i].n};
        assert_int_equal(compress_open(&h.c, h.spec, COMPRESS_MODEL, &all, 1), 0);
        h.out = calloc(h.n, sizeof *h.out);
        assert_non_null(h.out);
        if (offer(&h, cases[i].bytes, cases[i].len) != cases[i].proper)
            fail_msg("case %zu of %s should %spass", i, h.spec,
                     cases[i].proper ? "" : "not ");
        honest_close(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
