/* compress/codec.c -- the table of all codecs, and functions that several codecs share.
 *
 * The parser, `hearsay compressors` and the tests iterate over codec_all[]. The order of the table
 * is the order in which users see the codecs. Messages do not contain table positions, so the order
 * may change.
 */
#include "compress/codec.h"

#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <math.h>

/* Codec files have no headers. The declarations below are all that other files know about a
 * codec. */
extern const struct codec codec_none, codec_fp16, codec_sign, codec_qsgd, codec_topk, codec_randk;
extern const struct codec codec_onebit, codec_thr2, codec_dorefa, codec_tern, codec_lc3;
extern const struct codec codec_lowrank, codec_atomo;
extern const struct codec codec_thr, codec_aji, codec_wangni, codec_adath, codec_adaq;
extern const struct codec codec_bf16, codec_int8, codec_dyn8, codec_qnt, codec_nat;

const struct codec *const codec_all[] = {
    &codec_none,   &codec_fp16,   &codec_bf16,  &codec_int8,    &codec_dyn8,   &codec_qnt,
    &codec_nat,    &codec_sign,   &codec_qsgd,  &codec_topk,    &codec_randk,  &codec_thr,
    &codec_aji,    &codec_wangni, &codec_adath, &codec_adaq,    &codec_onebit, &codec_thr2,
    &codec_dorefa, &codec_tern,   &codec_lc3,   &codec_lowrank, &codec_atomo,  NULL,
};

const char *codec_level(void)
{
    return simd_level();
}

/* Most callers read through a whole model. The flag SIMD_AHEAD therefore requests that data is
 * prefetched before it is needed, which saves time. */
uint32_t codec_load(float *restrict v, const float *x, const float *x_hat, size_t n)
{
    return simd_load(v, x, x_hat, n, SIMD_AHEAD).max;
}

/* The arithmetic uses integers, because sender and receiver must compute the same number of
 * elements, k. A product of doubles could round to either side when ratio * n is a whole number. */
size_t codec_share(uint64_t billionths, size_t n)
{
    return (size_t)((billionths * n + 999999999u) / 1000000000u);
}

double codec_sum(const double *v, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum;
}

/* The block is decoded by the same function as at the receiver, so the measured error is exactly
 * the receiver's error. */
double codec_error2(const struct codec_values *f, const int64_t *arg, const uint8_t *src,
                    const float *v, size_t n)
{
    float decoded[CODEC_CHUNK];
    double e2 = 0.0;
    for (size_t at = 0; at < n; at += CODEC_CHUNK) {
        size_t count = n - at < CODEC_CHUNK ? n - at : CODEC_CHUNK;
        f->decode(arg, src, n, at, count, decoded);
        e2 += vec_dist2(v + at, decoded, count);
    }
    return e2;
}

/* pow() may differ in its last bit between two C libraries, so two machines may compute different
 * ratios. This is harmless: during a warm-up the message contains the number of elements, so the
 * receiver does not compute the ratio. */
uint64_t codec_warm_share(uint64_t billionths, uint64_t warm, uint64_t round)
{
    if (round >= warm)
        return billionths;
    double t = (double)(round + 1) / (double)(warm + 1);
    double share = 1e9 * pow((double)billionths * 1e-9, t);
    return share < 1e9 ? (uint64_t)share : UINT64_C(1000000000);
}
