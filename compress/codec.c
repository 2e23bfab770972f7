/* compress/codec.c -- the table of all codecs, and what several of them share.
 *
 * A codec is found by its place in this table and by nothing else: the parser,
 * `hearsay compressors` and the tests iterate over it. Its order is the order in
 * which users see codecs; it is not on the wire and may change.
 */
#include "compress/codec.h"

#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <math.h>

/* A codec is a file without a header: these names are all that is known of it outside. */
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

/* Asks memory for what comes later: most that load are on their way through a whole model. */
uint32_t codec_load(float *restrict v, const float *x, const float *x_hat, size_t n)
{
    return simd_load(v, x, x_hat, n, SIMD_AHEAD).max;
}

/* In integers, since both ends must come to the same k: a product of doubles may round either
 * way where keep * n is a whole number. */
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

/* Decodes by the very function that the receiver uses, so that the error counted is the error
 * made. */
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

/* pow() may differ in the last bit between two C libraries. That is harmless: a message whose k
 * follows the round says its k. */
uint64_t codec_warm_share(uint64_t billionths, uint64_t warm, uint64_t round)
{
    if (round >= warm)
        return billionths;
    double t = (double)(round + 1) / (double)(warm + 1);
    double share = 1e9 * pow((double)billionths * 1e-9, t);
    return share < 1e9 ? (uint64_t)share : UINT64_C(1000000000);
}
