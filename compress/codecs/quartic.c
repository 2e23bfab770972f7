/* compress/codecs/quartic.c -- packs ternary digits five to a byte, with runs of zeros.
 *
 * Five digits of base 3 give a byte of at most 242. The 13 larger bytes stand for runs of zero
 * bytes. Loops over digits have no branches: it is unpredictable whether a value becomes zero, and
 * mispredicted branches would cost more than the arithmetic.
 */
#include "compress/codecs/quartic.h"

#include "compress/coding/bytes.h"

#include "nn/math/vec.h"

#include <assert.h>

enum {
    RUN_2 = QUARTIC_MAX + 1, /* Byte that stands for a run of two zero bytes. */
    /* Byte that stands for the longest run, 14 zero bytes. Its value is 255. */
    RUN_MOST = RUN_2 + QUARTIC_RUN_MAX - 2,
    MASK_BYTES = 64, /* Number of bytes that one 64-bit mask describes, one bit for each. */
    LANES = QUARTIC_LANES
};

/* ---- Computing, packing and unpacking digits ---- */

double quartic_sum(const struct quartic_sent *sent)
{
    double sum = 0.0;
    for (size_t j = 0; j < LANES; j++)
        sum += sent->sum[j];
    return sum;
}

/* Returns |v| if v becomes the digit for +1 or -1, otherwise 0. Uses a mask instead of a branch. */
static inline double sent_of(float v, float limit)
{
    float a = __builtin_fabsf(v);
    uint32_t take = 0u - (uint32_t)(a + a > limit);
    return (double)bytes_to_float(bytes_of_float(a) & take);
}

/* Digits (bytes) and sums (doubles) are computed in two loops, because the compiler does not
 * vectorise a combined loop. */
VEC_CLONES void quartic_digits(uint8_t *restrict digit, const float *restrict v,
                               const float *restrict limit, size_t n,
                               struct quartic_sent *restrict sent)
{
    double sum[LANES] = {0};
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++) {
        float a = __builtin_fabsf(v[i]);
        uint32_t take = a + a > limit[i];
        uint32_t sign = bytes_of_float(v[i]) >> 31;
        digit[i] = (uint8_t)(1u + take - 2u * (take & sign));
        k += take;
    }
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sum[j] += sent_of(v[i + j], limit[i + j]);
    for (size_t j = 0; i < n; i++, j++)
        sum[j] += sent_of(v[i], limit[i]);
    for (size_t j = 0; j < LANES; j++)
        sent->sum[j] += sum[j];
    sent->n += k;
}

/* Packs a group of 5 m digits into m bytes. Byte i packs the digits i, m + i, 2m + i, 3m + i and
 * 4m + i, by Horner's rule. */
VEC_CLONES static void put_fifths(uint8_t *restrict dst, const uint8_t *restrict digit, size_t m)
{
    for (size_t i = 0; i < m; i++) {
        unsigned sum = digit[i];
        sum = 3 * sum + digit[m + i];
        sum = 3 * sum + digit[2 * m + i];
        sum = 3 * sum + digit[3 * m + i];
        dst[i] = (uint8_t)(3 * sum + digit[4 * m + i]);
    }
}

void quartic_put(uint8_t *dst, uint8_t *digit, size_t n)
{
    size_t m = quartic_size(n);
    memset(digit + n, 1, QUARTIC_DIGITS * m - n);
    put_fifths(dst, digit, m);
}

/* Returns digit number `fifth` (0 to 4) of byte b: the first ternary digit of the fractional part
 * of b / 3^(5 - fifth). `third` is 2^16 / 3^(5 - fifth), rounded up. The rounding changes the
 * fraction by at most 255 / 2^16. This is below 1/243, so the digit is right. */
static inline uint8_t digit_of(uint8_t b, uint16_t third)
{
    uint16_t fraction = (uint16_t)(b * third);
    return (uint8_t)((uint32_t)fraction * 3u >> 16);
}

/* Factors `third` of digit_of(): for digit number i of a byte, 2^16 / 3^(5 - i), rounded up. */
static const uint16_t thirds[QUARTIC_DIGITS] = {270, 810, 2428, 7282, 21846};

/* Decodes the digit number `fifth` of each of n bytes to v[i] = scale * (digit - 1). `third`
 * belongs to that digit (see digit_of()). */
VEC_CLONES static void get_fifth(const uint8_t *restrict src, size_t n, uint16_t third, float scale,
                                 float *restrict v)
{
    uint8_t digit[CODEC_CHUNK];
    for (size_t i = 0; i < n; i++)
        digit[i] = digit_of(src[i], third);
    for (size_t i = 0; i < n; i++)
        v[i] = scale * (float)((int32_t)digit[i] - 1);
}

void quartic_get(const uint8_t *src, size_t n, size_t at, size_t count, float scale, float *v)
{
    size_t start = at / QUARTIC_GROUP * QUARTIC_GROUP;
    size_t group = n - start < QUARTIC_GROUP ? n - start : QUARTIC_GROUP;
    size_t m = quartic_size(group);
    src += start / QUARTIC_DIGITS;
    /* A group of digits is divided into five fifths. Element i of the first fifth is the first
     * digit of byte i, element i of the second fifth is the second digit, and so on. Each iteration
     * decodes elements of one fifth only. */
    for (size_t in = at - start; count > 0;) {
        size_t fifth = in / m;
        size_t from = in % m;
        size_t some = m - from < count ? m - from : count;
        get_fifth(src + from, some, thirds[fifth], scale, v);
        in += some;
        v += some;
        count -= some;
    }
}

/* Returns true if byte number i of the packed digits has valid padding: each of its digits past the
 * end of the vector is 1 (the code of the value 0). The byte must be at most 242. */
static bool byte_padded(size_t n, size_t i, uint8_t byte)
{
    size_t start = i / QUARTIC_BYTES * QUARTIC_GROUP;
    size_t group = n - start < QUARTIC_GROUP ? n - start : QUARTIC_GROUP;
    size_t m = quartic_size(group);
    for (size_t fifth = 0; fifth < QUARTIC_DIGITS; fifth++)
        if (fifth * m + i % QUARTIC_BYTES >= group && digit_of(byte, thirds[fifth]) != 1)
            return false;
    return true;
}

/* Returns the index of the first byte that may contain padding. Padding is possible in the last
 * four bytes only. */
static size_t first_padded(size_t n_bytes)
{
    return n_bytes > QUARTIC_DIGITS - 1 ? n_bytes - (QUARTIC_DIGITS - 1) : 0;
}

/* Returns true if all bytes are at most QUARTIC_MAX, so that no byte stands for a run of zero
 * bytes. Sets *any to true if some digit is not zero. */
VEC_CLONES static bool in_range(const uint8_t *src, size_t n_bytes, bool *any)
{
    unsigned bad = 0;
    unsigned other = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        bad |= src[i] > QUARTIC_MAX;
        other |= src[i] ^ (unsigned)QUARTIC_ZERO;
    }
    *any = other != 0;
    return bad == 0;
}

bool quartic_check(const uint8_t *src, size_t n, bool *any)
{
    size_t n_bytes = quartic_size(n);
    if (!in_range(src, n_bytes, any))
        return false;
    for (size_t i = first_padded(n_bytes); i < n_bytes; i++)
        if (!byte_padded(n, i, src[i]))
            return false;
    return true;
}

/* ---- Replacing runs of zero bytes ---- */

/* Writes the zero bytes that are pending, as run bytes. The longest possible runs come first, so
 * that each number of zero bytes has exactly one form. */
static void put_run(struct quartic_writer *w)
{
    for (; w->zeros >= QUARTIC_RUN_MAX; w->zeros -= QUARTIC_RUN_MAX)
        *w->at++ = RUN_MOST;
    if (w->zeros == 1)
        *w->at++ = QUARTIC_ZERO;
    else if (w->zeros > 1)
        *w->at++ = (uint8_t)(RUN_2 + w->zeros - 2);
    w->zeros = 0;
}

/* Sets n masks of 64 bits, one bit for each byte of src: 1 if the byte is not a zero byte. The
 * writer then finds the length of a run of zero bytes by counting the zero bits of a mask. */
VEC_CLONES static void masks_of(uint64_t *restrict mask, const uint8_t *restrict src, size_t n)
{
    uint8_t flag[MASK_BYTES];
    for (size_t at = 0; at < n; at++) {
        for (size_t i = 0; i < MASK_BYTES; i++)
            flag[i] = src[MASK_BYTES * at + i] != QUARTIC_ZERO;
        uint64_t bits = 0;
        for (size_t i = 0; i < 8; i++)
            bits |= (bytes_get_u64(flag + 8 * i) * UINT64_C(0x0102040810204080) >> 56) << 8 * i;
        mask[at] = bits;
    }
}

static void write_byte(struct quartic_writer *w, uint8_t byte)
{
    if (byte == QUARTIC_ZERO) {
        w->zeros++;
        return;
    }
    put_run(w);
    *w->at++ = byte;
}

void quartic_write(struct quartic_writer *w, const uint8_t *src, size_t n_bytes)
{
    uint64_t mask[QUARTIC_BYTES / MASK_BYTES];
    assert(n_bytes <= QUARTIC_BYTES);
    size_t whole = n_bytes / MASK_BYTES;
    masks_of(mask, src, whole);
    for (size_t at = 0; at < whole; at++) {
        /* Number of bytes, out of the 64 that the mask describes, that have been written or counted
         * as zero bytes. */
        size_t done = 0;
        for (uint64_t left = mask[at]; left != 0; left &= left - 1) {
            size_t i = (size_t)__builtin_ctzll(left);
            w->zeros += i - done;
            put_run(w);
            *w->at++ = src[MASK_BYTES * at + i];
            done = i + 1;
        }
        w->zeros += MASK_BYTES - done;
    }
    for (size_t i = MASK_BYTES * whole; i < n_bytes; i++)
        write_byte(w, src[i]);
}

void quartic_finish(struct quartic_writer *w)
{
    put_run(w);
}

/* Returns the number of zero bytes that one byte of the stream stands for. Returns 0 if the byte
 * itself packs a digit that is not zero. */
static inline size_t zeros_of(uint8_t byte)
{
    if (byte > QUARTIC_MAX)
        return (size_t)(byte - RUN_2) + 2;
    return byte == QUARTIC_ZERO;
}

/* A run byte for fewer than 14 zero bytes must not be followed by another run: that would be a
 * second encoding of the same zeros. The zero bytes of a run are always valid padding. */
bool quartic_check_runs(const uint8_t *src, size_t len, size_t n)
{
    size_t n_bytes = quartic_size(n);
    size_t tail = first_padded(n_bytes);
    size_t done = 0;
    bool any = false;
    bool closed = false; /* True: the previous byte ended a run, so that no other run may follow. */
    for (size_t i = 0; i < len; i++) {
        size_t zeros = zeros_of(src[i]);
        if (zeros > 0 && closed)
            return false;
        closed = zeros > 0 && src[i] != RUN_MOST;
        any |= zeros == 0;
        if (zeros == 0 && done >= tail && done < n_bytes && !byte_padded(n, done, src[i]))
            return false;
        done += zeros > 0 ? zeros : 1;
    }
    return done == n_bytes && any;
}

/* Fills the output with zero bytes. Then stores the bytes that are not zero bytes. */
void quartic_read(struct quartic_reader *r, uint8_t *dst, size_t n_bytes)
{
    memset(dst, QUARTIC_ZERO, n_bytes);
    size_t done = 0;
    while (done + r->zeros < n_bytes) {
        done += r->zeros;
        uint8_t byte = *r->at++;
        r->zeros = zeros_of(byte);
        if (r->zeros == 0)
            dst[done++] = byte;
    }
    r->zeros -= n_bytes - done;
}
