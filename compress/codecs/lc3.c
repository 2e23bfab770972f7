/* compress/codecs/lc3.c -- body codec "3lc": ternary digits with run-length coded zeros (3LC).
 *
 * Body of a unit:  M f32 | length of the stream in bytes (varint) | stream (quartic.h)
 *
 * The scale M is s times the largest |v|, with 1 <= s < 2, and v / M is rounded to -1, 0 or 1 (Lim,
 * Andersen, Kaminsky 2019). Thus a value with 2 |v| > M is decoded as M with the sign of the value,
 * and any other value as 0. A larger s gives more zeros and a shorter stream. No error is larger
 * than the value itself. The value of largest magnitude, max, is never decoded as 0, and its error
 * is (s - 1) max. Therefore the contraction delta is at least (1 - (s - 1)^2) max^2 / |v|^2.
 *
 * The encoder makes two passes over x and x_hat, one chunk at a time, and does not store the
 * difference.
 */
#include "compress/codec.h"

#include "compress/codecs/quartic.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <errno.h>
#include <math.h>

enum {
    /* Index of the argument `s` in `arg`, the array of argument values. `s` is stored in
     * billionths. */
    LC3_S
};

static const struct codec_param lc3_params[] = {
    {.name = "s",
     .kind = CODEC_DECIMAL,
     .low = INT64_C(1000000000),
     .high = INT64_C(1999999999),
     .preset = INT64_C(1000000000),
     .wants = "in [1, 2)"},
    {.name = NULL},
};

static size_t lc3_bound(const int64_t *arg, const struct codec_shape *shape)
{
    (void)arg;
    size_t most = quartic_size(shape->n);
    return 4 + bytes_varint_size((uint32_t)most) + most;
}

/* Estimates the size of a message for Gaussian values. `max` is the expected largest of n values
 * (extreme-value theory), and p is the share of bytes that are not zero bytes. A byte that is not a
 * zero byte costs one byte, and a run of r zero bytes costs r / 14 bytes, rounded up. */
static size_t lc3_nominal(const int64_t *arg, const struct codec_shape *shape)
{
    double s = (double)arg[LC3_S] / 1e9;
    double bytes = (double)quartic_size(shape->n);
    double tries = log(2.0 * (double)shape->n + 2.0);
    double max = sqrt(2.0 * tries) - (log(tries) + 1.377) / (2.0 * sqrt(2.0 * tries));
    double zero = erf(s / 2.0 * max / sqrt(2.0));
    double p = 1.0 - pow(zero, QUARTIC_DIGITS);
    double runs = (1.0 - p) / (1.0 - pow(1.0 - p, QUARTIC_RUN_MAX));
    double stream = fmin(bytes, 1.0 + bytes * p * (1.0 + runs));
    return 4 + bytes_varint_size((uint32_t)stream) + (size_t)stream;
}

/* Returns the largest magnitude and |v|^2 of the unit, in a first pass over x and x_hat. */
static struct simd_sums measure_unit(const struct codec_source *s)
{
    float v[CODEC_CHUNK];
    struct simd_sums all = {.max = 0};
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        struct simd_sums part = simd_load(v, s->x + at, codec_x_hat(s, at), count, SIMD_AHEAD);
        all.max = part.max > all.max ? part.max : all.max;
        all.x2 += part.x2;
    }
    return all;
}

/* Returns the scale M = s * max, where s is the argument of the codec and `max` the largest
 * magnitude. M stays below 2 max even if s * max is rounded up, so the largest value is never
 * decoded as 0. */
static float scale_of(const int64_t *arg, float max)
{
    uint32_t m = bytes_of_float((float)((double)arg[LC3_S] / 1e9 * (double)max));
    uint32_t most = bytes_of_float(max + max) - 1;
    return bytes_to_float(m < most ? m : most);
}

/* Writes the stream of a unit, in a second pass over x and x_hat. Returns the end of the stream. */
static uint8_t *put_stream(uint8_t *dst, const struct codec_source *s, float m,
                           struct quartic_sent *sent)
{
    struct quartic_writer w = {.at = dst};
    uint8_t digit[QUARTIC_GROUP];
    uint8_t bytes[QUARTIC_BYTES];
    float v[CODEC_CHUNK], limit[CODEC_CHUNK];
    for (size_t i = 0; i < CODEC_CHUNK && i < s->n; i++)
        limit[i] = m;
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        size_t in = at % QUARTIC_GROUP;
        codec_load(v, s->x + at, codec_x_hat(s, at), count);
        quartic_digits(digit + in, v, limit, count, sent);
        if (in + count == QUARTIC_GROUP || at + count == s->n) {
            quartic_put(bytes, digit, in + count);
            quartic_write(&w, bytes, quartic_size(in + count));
        }
    }
    quartic_finish(&w);
    return w.at;
}

static int lc3_encode(const int64_t *arg, const struct codec_shape *shape,
                      const struct codec_source *s, const struct codec_desk *desk, uint8_t *dst,
                      size_t *len, struct compress_stat *stat)
{
    (void)desk;
    *len = 0;
    *stat = (struct compress_stat){0};
    struct simd_sums sums = measure_unit(s);
    if (sums.max >= CODEC_LIMIT_BITS)
        return -ERANGE;
    if (sums.max == 0)
        return 0;
    float m = scale_of(arg, bytes_to_float(sums.max));
    if (!(m < CODEC_LIMIT))
        return -ERANGE;
    /* The message contains the length of the stream before the stream, but the length is known only
     * after the stream has been written. Room for the longest possible length is therefore left
     * free. */
    struct quartic_sent sent = {.n = 0};
    uint8_t *stream = dst + 4 + bytes_varint_size((uint32_t)quartic_size(shape->n));
    size_t stream_len = (size_t)(put_stream(stream, s, m, &sent) - stream);
    bytes_put_float(dst, m);
    size_t head = 4 + bytes_put_varint(dst + 4, (uint32_t)stream_len);
    memmove(dst + head, stream, stream_len);
    *len = head + stream_len;
    double scale = (double)m;
    double taken = scale * (2.0 * quartic_sum(&sent) - (double)sent.n * scale);
    *stat = (struct compress_stat){.x2 = sums.x2, .e2 = fmax(0.0, sums.x2 - taken)};
    return 0;
}

/* A unit that is all zeros sends nothing, so a scale of 0 is invalid. */
static size_t lc3_check(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                        size_t len)
{
    (void)arg;
    if (len < 4)
        return 0;
    uint32_t m = bytes_get_u32(src);
    /* The bit pattern of the scale is compared, so that negative scales and NaN are rejected
     * too. */
    if (m == 0 || m >= CODEC_LIMIT_BITS)
        return 0;
    uint32_t stream_len;
    size_t head = 4 + bytes_get_varint(src + 4, len - 4, &stream_len);
    if (head == 4 || stream_len > len - head)
        return 0;
    bool proper = quartic_check_runs(src + head, stream_len, shape->n);
    return proper ? head + stream_len : 0;
}

/* Decodes one group of digits (quartic.h) at a time, so that a small buffer is enough. */
static size_t lc3_apply(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                        size_t len, struct target *t)
{
    (void)arg;
    uint32_t stream_len = 0;
    float m = bytes_get_float(src);
    size_t head = 4 + bytes_get_varint(src + 4, len - 4, &stream_len);
    struct quartic_reader r = {.at = src + head};
    uint8_t bytes[QUARTIC_BYTES];
    float v[CODEC_CHUNK];
    for (size_t start = 0; start < shape->n; start += QUARTIC_GROUP) {
        size_t left = shape->n - start;
        size_t group = left < QUARTIC_GROUP ? left : QUARTIC_GROUP;
        quartic_read(&r, bytes, quartic_size(group));
        for (size_t at = 0; at < group; at += CODEC_CHUNK) {
            size_t count = group - at < CODEC_CHUNK ? group - at : CODEC_CHUNK;
            quartic_get(bytes, group, at, count, m, v);
            target_add(t, start + at, v, count);
        }
    }
    return head + stream_len;
}

static const struct codec_body lc3_body = {
    .bound = lc3_bound,
    .nominal = lc3_nominal,
    .encode = lc3_encode,
    .check = lc3_check,
    .apply = lc3_apply,
};

extern const struct codec codec_lc3;
const struct codec codec_lc3 = {
    .name = "3lc",
    .about = "minus, zero or plus the largest |v|, with run-length coded zeros",
    .class = CODEC_CONTRACTION,
    .bound = "delta >= max^2 / |v|^2 >= 1/n; for s > 1, (1 - (s-1)^2) times these bounds",
    .source = "Lim, Andersen, Kaminsky 2019 (3LC)",
    .params = lc3_params,
    .body = &lc3_body,
};
