/* tests/unit/compress_positions.c -- tests the codes of ascending positions.
 *
 * The bytes are compared with references that write one bit at a time. The cost must be exact, and
 * invalid messages must be refused. */
#include "compress/codec.h"
#include "compress/coding/bytes.h"
#include "compress/coding/positions.h"
#include "compress/compress.h"

#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    N_MAX = 20000,
    N_COST = 1000000,
    ROOM = 1 << 16,
    HEAD_MAX = 11 /* Largest size of the head of encoded positions: two varints and a byte. */
};

static const enum positions_how hows[] = {POSITIONS_AUTO, POSITIONS_RICE, POSITIONS_EF,
                                          POSITIONS_BITMAP};
enum { HOWS = sizeof hows / sizeof hows[0] };

static uint32_t set[N_COST], back[N_COST + CODEC_CHUNK];
static uint8_t bytes[2 * N_COST];

/* ---- references: a bit at a time ---- */

struct bits
{
    uint8_t at[ROOM];
    size_t n;
};
static struct bits ref;

static void add_bit(struct bits *b, unsigned bit)
{
    assert_true(b->n < 8 * (size_t)ROOM);
    if (b->n % 8 == 0)
        b->at[b->n / 8] = 0;
    b->at[b->n / 8] = (uint8_t)(b->at[b->n / 8] | bit << (b->n % 8));
    b->n++;
}

static void add_low(struct bits *b, uint32_t v, unsigned n_bits)
{
    for (unsigned i = 0; i < n_bits; i++)
        add_bit(b, v >> i & 1);
}

static void pad(struct bits *b)
{
    while (b->n % 8 != 0)
        add_bit(b, 0);
}

static void ref_rice(const uint32_t *index, size_t k, unsigned b)
{
    ref.n = 0;
    for (size_t i = 0; i < k; i++) {
        uint32_t gap = i > 0 ? index[i] - index[i - 1] - 1 : index[0];
        for (uint32_t j = 0; j < gap >> b; j++)
            add_bit(&ref, 0);
        add_bit(&ref, 1);
        add_low(&ref, gap, b);
    }
}

static void ref_elias(const uint32_t *index, size_t k, size_t n)
{
    unsigned b = (unsigned)floor(log2((double)n / (double)k));
    size_t i = 0;
    ref.n = 0;
    for (uint32_t high = 0; high <= (n - 1) >> b; high++) {
        for (; i < k && index[i] >> b == high; i++)
            add_bit(&ref, 1);
        if (high < (n - 1) >> b)
            add_bit(&ref, 0);
    }
    pad(&ref);
    for (i = 0; i < k; i++)
        add_low(&ref, index[i], b);
    pad(&ref);
}

static void ref_bitmap(const uint32_t *index, size_t k, size_t n)
{
    size_t i = 0;
    ref.n = 0;
    for (size_t p = 0; p < n; p++)
        if (i < k && index[i] == p) {
            add_bit(&ref, 1);
            i++;
        } else {
            add_bit(&ref, 0);
        }
    pad(&ref);
}

/* Returns the best Rice parameter: the lowest of those with the shortest stream. */
static unsigned ref_best(const uint32_t *index, size_t k)
{
    unsigned best = 0;
    uint64_t least = UINT64_MAX;
    for (unsigned b = 0; b <= RICE_B_MAX; b++) {
        uint64_t bits = 0;
        for (size_t i = 0; i < k; i++) {
            uint32_t gap = i > 0 ? index[i] - index[i - 1] - 1 : index[0];
            bits += (gap >> b) + 1 + b;
        }
        assert_int_equal(bits, rice_bits(index, k, b));
        if (bits < least) {
            least = bits;
            best = b;
        }
    }
    return best;
}

/* Compares the len encoded bytes of set[0..k) with a reference: the head, and the stream in
 * `ref`. */
static void check_against_ref(enum positions_how how, size_t k, size_t n, size_t len)
{
    uint8_t head[HEAD_MAX];
    unsigned code = 0;
    switch (how) {
    case POSITIONS_AUTO:
    case POSITIONS_RICE:
        code = ref_best(set, k);
        ref_rice(set, k, code);
        break;
    case POSITIONS_EF:
        code = 32 + (unsigned)floor(log2((double)n / (double)k));
        ref_elias(set, k, n);
        break;
    case POSITIONS_BITMAP:
        code = 64;
        ref_bitmap(set, k, n);
        break;
    }
    size_t stream = (ref.n + 7) / 8;
    size_t used = bytes_put_varint(head, (uint32_t)k);
    head[used++] = (uint8_t)code;
    used += bytes_put_varint(head + used, (uint32_t)stream);
    if (len != used + stream || memcmp(bytes, head, used) != 0
        || memcmp(bytes + used, ref.at, stream) != 0)
        fail_msg("%s, k=%zu, n=%zu: not the reference's bytes", positions_names[how], k, n);
}

/* ---- reading ---- */

/* Reads all positions, `step` at a time. Returns true if no call reports an error. */
static bool read_all(enum positions_how how, size_t most, size_t n, const uint8_t *src, size_t len,
                     size_t step, struct positions *p)
{
    if (!positions_open(p, how, most, n, src, len))
        return false;
    for (size_t at = 0; at < p->k; at += step) {
        size_t count = p->k - at < step ? p->k - at : step;
        if (!positions_next(p, back + at, count))
            return false;
    }
    return positions_end(p);
}

/* Returns whether src[0..len) is accepted. Accepted positions must ascend and be in range, and
 * encoding them must give the same bytes, because a set has one encoding. The bytes are at the end
 * of a heap block, so that a sanitizer detects a read beyond them. */
static bool check_foreign(enum positions_how how, size_t most, size_t n, const uint8_t *src,
                          size_t len)
{
    static uint8_t again[ROOM];
    struct positions p;
    uint8_t *exact = malloc(len + 1);
    assert_non_null(exact);
    memcpy(exact + 1, src, len);
    bool proper = read_all(how, most, n, exact + 1, len, CODEC_CHUNK, &p);
    free(exact);
    if (!proper)
        return false;
    assert_true(p.k >= 1 && p.k <= most && p.used <= len);
    for (size_t i = 0; i < p.k; i++)
        assert_true(back[i] < n && (i == 0 || back[i] > back[i - 1]));
    assert_true(positions_bound(how, p.k, n) <= ROOM);
    size_t own = positions_put(how, back, p.k, n, again);
    if (own != p.used || memcmp(again, src, own) != 0)
        fail_msg("%s, k=%zu, n=%zu: a second encoding is accepted", positions_names[how], p.k, n);
    return true;
}

/* Encodes and decodes set[0..k) with each code. Checks that decoding fails if the limit of the
 * number of positions, or of their values, is lower. */
static void check_set(size_t k, size_t n)
{
    static const size_t steps[] = {CODEC_CHUNK, 1, 3, 513};
    size_t length[HOWS];
    for (size_t h = 0; h < HOWS; h++) {
        struct positions p;
        size_t bound = positions_bound(hows[h], k, n);
        uint8_t *exact = malloc(bound);
        assert_non_null(exact);
        size_t len = positions_put(hows[h], set, k, n, exact);
        length[h] = len;
        assert_true(len <= bound);
        memcpy(bytes, exact, len);
        free(exact);
        check_against_ref(hows[h], k, n, len);
        for (size_t s = 0; s < 4; s++) {
            assert_true(read_all(hows[h], k, n, bytes, len, steps[s], &p));
            assert_int_equal(p.used, len);
            assert_memory_equal(back, set, k * sizeof *set);
        }
        assert_true(check_foreign(hows[h], n, n, bytes, len));
        if (k > 1)
            assert_false(check_foreign(hows[h], k - 1, n, bytes, len));
        assert_false(check_foreign(hows[h], n, set[k - 1], bytes, len));
        assert_false(check_foreign(hows[h], n, set[k / 2], bytes, len));
        bytes[len] = 0x5a; /* A byte behind the encoded positions is ignored. */
        assert_true(check_foreign(hows[h], n, n, bytes, len + 1));
    }
    /* The automatic choice of a code takes no more bytes than the shortest one. */
    assert_int_equal(length[0], length[1]);
    assert_true(length[0] <= length[2] && length[0] <= length[3]);
}

/* Chooses each of n positions with probability `share`, and at least one position. */
static size_t random_set(struct rng *r, size_t n, double share)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (rng_unit(r) < share)
            set[k++] = (uint32_t)i;
    if (k == 0)
        set[k++] = (uint32_t)rng_below(r, n);
    return k;
}

static void test_round_trips(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 1000, 4096, N_MAX};
    static const double share[] = {0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0};
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t n = sizes[s];
        for (size_t i = 0; i < sizeof share / sizeof share[0]; i++)
            check_set(random_set(&r, n, share[i]), n);
        set[0] = (uint32_t)n - 1; /* The set consists of the last possible position only. */
        check_set(1, n);
        set[0] = 0;
        check_set(1, n);
        for (size_t k = 1; k < n; k = 3 * k + 1) {
            for (size_t i = 0; i < k; i++) /* The set consists of the first k positions. */
                set[i] = (uint32_t)i;
            check_set(k, n);
            /* The set has the first positions, and in addition the last possible one. */
            set[k - 1] = (uint32_t)n - 1;
            check_set(k, n);
            for (size_t i = 0; i < k; i++) /* The set consists of the last k positions. */
                set[i] = (uint32_t)(n - k + i);
            check_set(k, n);
        }
        for (size_t step = 2; step <= 64 && step <= n; step *= 2) {
            size_t k = 0;
            for (size_t i = step - 1; i < n; i += step)
                set[k++] = (uint32_t)i;
            check_set(k, n);
        }
    }
}

/* Tests vectors of the largest possible length, 2^32 - 1. */
static void test_far(void **state)
{
    (void)state;
    static const uint32_t far[] = {0, 1, 0x7fffffffu, 0x80000000u, 0xfffffffdu, 0xfffffffeu};
    for (size_t k = 1; k <= 6; k++)
        for (size_t h = 0; h < 3; h++) {
            struct positions p;
            const uint32_t *from = far + 6 - k;
            size_t len = positions_put(hows[h], from, k, UINT32_MAX, bytes);
            assert_true(len <= positions_bound(hows[h], k, UINT32_MAX));
            assert_true(read_all(hows[h], k, UINT32_MAX, bytes, len, 2, &p));
            assert_memory_equal(back, from, k * sizeof *from);
            assert_false(read_all(hows[h], k, UINT32_MAX - 1, bytes, len, 2, &p));
        }
}

/* ---- cost ---- */

static double cost(enum positions_how how, size_t k)
{
    struct positions p;
    size_t len = positions_put(how, set, k, N_COST, bytes);
    assert_true(positions_open(&p, how, k, N_COST, bytes, len));
    size_t nominal = positions_nominal(how, k, N_COST);
    assert_true(fabs((double)nominal - (double)len) <= 0.01 * (double)len);
    return 8.0 * (double)len / (double)k;
}

/* Compares the bits per position of random sets with known values, and with the entropy. */
static void test_costs(void **state)
{
    (void)state;
    static const struct
    {
        double share, rice, ef, bitmap;
    } known[] = {{0.01, 8.108, 8.5625, 100.0}, {0.1, 4.756, 5.25, 10.0}};
    for (size_t i = 0; i < 2; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct rng r = rng_stream(rng_key(seed, RNG_TEST, 1, i));
            /* Chooses exactly share * n positions. All such subsets are equally likely. */
            size_t k = 0;
            size_t want = (size_t)(known[i].share * N_COST + 0.5);
            for (size_t p = 0; p < N_COST; p++)
                if (rng_below(&r, N_COST - p) < want - k)
                    set[k++] = (uint32_t)p;
            assert_int_equal(k, want);
            double d = (double)k, n = N_COST;
            double least = (lgamma(n + 1) - lgamma(d + 1) - lgamma(n - d + 1)) / (d * log(2.0));
            double rice = cost(POSITIONS_RICE, k);
            double ef = cost(POSITIONS_EF, k);
            double bitmap = cost(POSITIONS_BITMAP, k);
            if (!(fabs(rice - known[i].rice) <= 0.01) || !(rice >= least)
                || !(fabs(ef - known[i].ef) <= 0.01) || !(fabs(bitmap - known[i].bitmap) <= 0.02))
                fail_msg("share %g: %.4f, %.4f, %.4f bits, least %.4f", known[i].share, rice, ef,
                         bitmap, least);
        }
}

/* Makes a set of positions with gaps that are expensive to encode. Most gaps are equal to 2^b - 1,
 * or multiples of 2^b, or random. */
static size_t gap_set(struct rng *r, size_t n)
{
    size_t k = 0;
    uint64_t p = rng_below(r, 4) == 0 ? n - 1 : rng_below(r, n);
    uint64_t high = UINT64_C(1) << rng_below(r, 9);
    uint64_t kind = rng_below(r, 3);
    for (; p < n; k++) {
        set[k] = (uint32_t)p;
        uint64_t gap = kind == 0   ? high - 1
                       : kind == 1 ? high * rng_below(r, 3)
                                   : rng_below(r, high);
        if (rng_below(r, 64) == 0)
            gap = rng_below(r, n);
        p += 1 + gap;
    }
    return k;
}

/* No encoding is longer than the bound for its number of positions or for a larger number. */
static void test_bounds(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(2, RNG_TEST, 0, 0));
    for (size_t trial = 0; trial < 100000; trial++) {
        size_t n = 1 + rng_below(&r, trial % 50 == 0 ? 5000 : 300);
        size_t k = trial % 4 == 0 ? random_set(&r, n, rng_unit(&r)) : gap_set(&r, n);
        size_t most = k + rng_below(&r, n - k + 1);
        size_t length[HOWS];
        for (size_t h = 0; h < HOWS; h++) {
            struct positions p;
            length[h] = positions_put(hows[h], set, k, n, bytes);
            if (length[h] > positions_bound(hows[h], most, n))
                fail_msg("trial %zu, %s: above the bound", trial, positions_names[hows[h]]);
            assert_true(read_all(hows[h], most, n, bytes, length[h], CODEC_CHUNK, &p));
            assert_memory_equal(back, set, k * sizeof *set);
        }
        assert_true(length[0] <= length[1] && length[0] <= length[2] && length[0] <= length[3]);
        /* Length of the stream without its head, which positions_bound() also counts. */
        uint64_t bits;
        rice_best(set, k, n, &bits);
        assert_true((bits + 7) / 8 <= rice_bound(most, n));
    }
    for (size_t n = 1; n < 200; n++)
        for (size_t most = 1; most <= n; most++)
            for (size_t k = 1; k <= most; k++) {
                assert_true(rice_bound(k, n) <= rice_bound(most, n));
                assert_true(elias_size(k, n) <= elias_bound(most, n));
                assert_true(elias_bound(k, n) <= elias_bound(most, n));
            }
}

/* ---- messages from other peers ---- */

/* An encoding with a truncation, a flipped bit, an inserted byte or a removed byte must be refused,
 * or be the valid encoding of other positions. */
static void test_edits(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 8, 13, 64, 100, 257, 700};
    struct rng r = rng_stream(rng_key(3, RNG_TEST, 0, 0));
    static uint8_t edited[ROOM];
    for (size_t s = 0; s < 8; s++)
        for (size_t j = 0; j < 12; j++) {
            size_t n = sizes[s];
            size_t k = j % 2 ? gap_set(&r, n) : random_set(&r, n, rng_unit(&r));
            for (size_t h = 0; h < HOWS; h++) {
                size_t len = positions_put(hows[h], set, k, n, bytes);
                for (size_t cut = 0; cut < len; cut++)
                    assert_false(check_foreign(hows[h], n, n, bytes, cut));
                for (size_t i = 0; i < 8 * len; i++) {
                    memcpy(edited, bytes, len);
                    edited[i / 8] ^= (uint8_t)(1u << (i % 8));
                    check_foreign(hows[h], n, n, edited, len);
                    check_foreign(hows[(h + 1 + i) % HOWS], n, n, edited, len);
                }
                for (size_t i = 0; i < len; i++) {
                    memcpy(edited, bytes, i);
                    edited[i] = (uint8_t)rng_u64(&r);
                    memcpy(edited + i + 1, bytes + i, len - i);
                    check_foreign(hows[h], n, n, edited, len + 1);
                    memcpy(edited + i, bytes + i + 1, len - i - 1);
                    check_foreign(hows[h], n, n, edited, len - 1);
                }
            }
        }
}

/* Decodes random streams, each after a head that may be valid. */
static void test_noise(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(4, RNG_TEST, 0, 0));
    size_t accepted[HOWS] = {0};
    for (size_t trial = 0; trial < 200000; trial++) {
        size_t h = trial % HOWS;
        size_t n = 1 + rng_below(&r, 40);
        size_t k = 1 + rng_below(&r, n);
        unsigned code = h < 2    ? (unsigned)rng_below(&r, 6)
                        : h == 2 ? 32 + elias_low_bits(k, n)
                                 : 64;
        size_t stream = h < 2    ? 1 + rng_below(&r, rice_bound(k, n))
                        : h == 2 ? elias_size(k, n)
                                 : bitmap_size(n);
        size_t len = bytes_put_varint(bytes, (uint32_t)k);
        bytes[len++] = (uint8_t)code;
        len += bytes_put_varint(bytes + len, (uint32_t)stream);
        for (size_t i = 0; i < stream; i++)
            bytes[len++] = (uint8_t)(rng_u64(&r) & rng_u64(&r));
        accepted[h] += check_foreign(hows[h], n, n, bytes, len);
    }
    for (size_t h = 0; h < HOWS; h++)
        /* Some of the random streams must be valid, so that the test covers valid streams. */
        assert_true(accepted[h] > 100);
}

/* Fails if bytes[0..len), an encoding of set[0..k) that was edited by hand, is accepted. */
static void refused(enum positions_how how, size_t n, size_t len, const char *what)
{
    if (check_foreign(how, n, n, bytes, len))
        fail_msg("%s: %s is accepted", positions_names[how], what);
}

static void test_rules(void **state)
{
    (void)state;
    enum {
        N = 100, /* A bitmap of 100 bits has four padding bits. */
        K = 5
    };
    static const uint32_t some[K] = {3, 17, 40, 41, 90};
    memcpy(set, some, sizeof some);
    size_t len = positions_put(POSITIONS_BITMAP, set, K, N, bytes);
    assert_int_equal(len, 3 + 13);
    bytes[3] |= 1; /* Sets the bit of position 0, so that the bitmap has six positions, not five. */
    refused(POSITIONS_BITMAP, N, len, "a bit too many");
    /* Clears the bits of positions 0 and 3, so that the bitmap has four positions. */
    bytes[3] &= 0xf6;
    refused(POSITIONS_BITMAP, N, len, "a bit too few");
    bytes[3 + 12] |= 0x10; /* Sets the bit of position 100, which is padding. */
    refused(POSITIONS_BITMAP, N, len, "a bit in the padding");

    len = positions_put(POSITIONS_EF, set, K, N, bytes);
    /* Elias-Fano code of 5 positions with 4 low bits each: the stream has 11 bits for the high
     * parts of the positions, and 5 * 4 = 20 bits for the low parts. */
    assert_int_equal(bytes[1], 32 + 4);
    assert_int_equal(len, 3 + 2 + 3);
    bytes[1]--;
    refused(POSITIONS_EF, N, len, "another number of low bits");
    bytes[1] += 2;
    refused(POSITIONS_EF, N, len, "another number of low bits");
    bytes[1]--;
    bytes[2]++;
    refused(POSITIONS_EF, N, len + 1, "a longer stream");
    bytes[2]--;
    uint8_t high = bytes[3];
    /* Sets the lowest 0 bit in the first byte of the high parts. */
    bytes[3] = (uint8_t)(high | (high + 1));
    refused(POSITIONS_EF, N, len, "a high bit too many");
    bytes[3] = (uint8_t)(high & (high - 1));
    refused(POSITIONS_EF, N, len, "a high bit too few");
    bytes[3] = high;
    bytes[4] |= 0x80;
    refused(POSITIONS_EF, N, len, "a bit in the high padding");
    bytes[4] &= 0x7f;
    bytes[7] |= 0x80;
    refused(POSITIONS_EF, N, len, "a bit in the low padding");
    bytes[7] &= 0x7f;
    assert_true(check_foreign(POSITIONS_EF, N, N, bytes, len));
    for (size_t h = 0; h < HOWS; h++)
        if (hows[h] != POSITIONS_EF)
            refused(hows[h], N, len, "another code");

    uint64_t bits;
    unsigned best = rice_best(set, K, N, &bits);
    for (unsigned b = 0; b <= RICE_B_MAX; b++) {
        size_t stream = (size_t)((rice_bits(set, K, b) + 7) / 8);
        bytes[0] = K;
        bytes[1] = (uint8_t)b;
        bytes[2] = (uint8_t)stream;
        rice_put(set, K, b, bytes + 3, stream);
        for (size_t h = 0; h < 2; h++) {
            bool ok = check_foreign(hows[h], N, N, bytes, 3 + stream);
            assert_int_equal(ok, b == best);
        }
    }
    len = positions_put(POSITIONS_AUTO, set, K, N, bytes);
    if (bits % 8 != 0) {
        bytes[len - 1] |= 0x80;
        refused(POSITIONS_AUTO, N, len, "padding that is not zero");
        bytes[len - 1] &= 0x7f;
    }
    bytes[2]++;
    bytes[len] = 0;
    refused(POSITIONS_AUTO, N, len + 1, "a byte too many in the stream");
    bytes[0] = 0;
    refused(POSITIONS_AUTO, N, len, "no position");

    struct positions p; /* A stream that exceeds the bound is refused before it is read. */
    bytes[0] = K;
    bytes[1] = 5;
    bytes[2] = (uint8_t)(rice_bound(K, N) + 1);
    memset(bytes + 3, 0, 100);
    assert_false(positions_open(&p, POSITIONS_RICE, K, N, bytes, 103));
    bytes[2]--;
    assert_true(positions_open(&p, POSITIONS_RICE, K, N, bytes, 103));
    assert_false(positions_next(&p, back, K));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_far),
        cmocka_unit_test(test_costs),       cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_edits),       cmocka_unit_test(test_noise),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
