/* compress/codecs/wangni.c -- selector "wangni": elements drawn in proportion to |v|.
 *
 * Element v_i is chosen with probability p_i = min(1, kappa |v_i|). The constant kappa is such that
 * all p_i sum to K = ceil(keep * n) (Wangni et al. 2018, algorithm 3). An element with p_i = 1 is
 * called saturated. kappa is found by iteration: solve as if no element were saturated, count the
 * elements that are, solve again for the rest, and repeat until no further element is saturated.
 * For all elements that are not saturated, v_i / p_i is sign(v_i) / kappa, so one bit per element
 * is enough.
 *
 *   scale=raw  sends v_i / p_i: unbiased, with variance sum v_i^2 (1 / p_i - 1). If no element is
 *              saturated, omega = |v|_1^2 / (K |v|^2) - 1. This is far above 1 for small shares,
 *              so the codec is not a contraction
 *   scale=ls   sends saturated values unchanged, and the others times beta = <v, q> / |q|^2 over
 *              them, where q are the values of raw. A contraction for every draw. The mean of |v|
 *              is preserved. One beta for all values, including the saturated ones, would not be
 *              better
 *
 * The default values codec is sign:0, because all values sent have the same magnitude unless some
 * are saturated. With the default share, a saturated value is at least 100 times the mean of |v|.
 * If none is saturated, sign:0 adds no error with either scale, and takes one bit per value instead
 * of 32. If some are saturated, sign:0 replaces all magnitudes by their mean, which is the scale of
 * least squared error. The codec is then still a contraction, but scale=raw is no longer unbiased.
 * A codec that is unbiased for all data is "wangni+none,scale=raw".
 *
 * With scale=ls and sign:0, the contraction delta for k chosen elements is (sum of the chosen
 * |v_i|)^2 / (k |v|^2). By Jensen's inequality E delta >= (sum of all p_i |v_i|)^2 / (K |v|^2),
 * because (sum)^2 / k is convex. If no element is saturated, this is K |v|^2 / |v|_1^2 = 1 / (1 +
 * omega), which is at least keep.
 *
 * If a draw chooses more than K + 6 sqrt(K) + 16 elements, it is repeated with another random
 * stream. This happens at most once in 10^7 draws (Bernstein's inequality), so the bias of
 * scale=raw is below 1e-7.
 */
#include "compress/codec.h"

#include "compress/codecs/keep.h"
#include "compress/codecs/scan.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <errno.h>
#include <math.h>

/* Index of the argument `scale` in `arg`, the array of argument values. */
enum { WANGNI_SCALE = KEEP_OPTIONS };
enum { SCALE_LS, SCALE_RAW };
enum {
    LANES = 8,
    /* Largest number of passes over the values to find kappa, the factor in the probabilities
     * min(1, kappa |v|). A kappa that is not exact is allowed, because scale=raw is unbiased with
     * any kappa. */
    SOLVE_MAX = 8,
    /* Largest number of times that the elements of one message are drawn. The last draw stops when
     * the arrays are full. */
    DRAWS_MAX = 4
};

/* A kappa (factor in the probabilities min(1, kappa |v|)) with which all elements except zeros are
 * chosen: kappa |v| >= 1 for the smallest positive float. For |v| below CODEC_LIMIT the product is
 * still finite. */
#define KAPPA_ALL 0x1p900

static const char *const scale_choices[] = {"ls", "raw", NULL};

static const struct codec_param wangni_params[] = {
    KEEP_PARAMS,
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = SCALE_LS,
     .wants = "ls or raw"},
    {.name = NULL},
};

/* Returns the largest number of elements that may be chosen out of n, if the wanted number is
 * `wanted`. */
static size_t wangni_limit(size_t wanted, size_t n)
{
    size_t most = wanted + 16 + (size_t)(6.0 * sqrt((double)wanted));
    return most < n ? most : n;
}

static size_t wangni_most(const int64_t *arg, size_t n)
{
    return wangni_limit(keep_most(arg, n), n);
}

/* ---- Finding kappa, the factor in the probabilities min(1, kappa |v|) ---- */

/* Computes the sum of |v| (*l1) and the largest |v| (*max). Returns 0 or -ERANGE. */
static int weigh_all(const struct codec_source *s, double *l1, float *max)
{
    float v[CODEC_CHUNK];
    uint32_t top = 0;
    *l1 = 0.0;
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        struct simd_sums sums =
            simd_load(v, s->x + at, codec_x_hat(s, at), count, SIMD_L1 | SIMD_AHEAD);
        top = sums.max > top ? sums.max : top;
        *l1 += sums.l1;
    }
    *max = bytes_to_float(top);
    return top < CODEC_LIMIT_BITS ? 0 : -ERANGE;
}

/* Sums over all elements for a given kappa, each as LANES partial sums: the number of saturated
 * elements, those with kappa |v| >= 1, and the sum of |v| over all others. */
struct weights
{
    double sum[LANES], saturated[LANES];
};

/* Adds n elements to the sums in `w`. Counts are doubles like the sums, because the loop vectorises
 * only if all lanes have the same type. */
VEC_CLONES static void weigh_chunk(struct weights *restrict w, const float *restrict v, size_t n,
                                   double kappa)
{
    struct weights l = *w;
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            double a = (double)__builtin_fabsf(v[i + j]);
            l.sum[j] += kappa * a >= 1.0 ? 0.0 : a;
            l.saturated[j] += kappa * a >= 1.0 ? 1.0 : 0.0;
        }
    for (size_t i = whole; i < n; i++) {
        double a = (double)__builtin_fabsf(v[i]);
        l.sum[0] += kappa * a >= 1.0 ? 0.0 : a;
        l.saturated[0] += kappa * a >= 1.0 ? 1.0 : 0.0;
    }
    *w = l;
}

/* Computes sums over all elements for a given kappa. The next approximation of kappa is computed
 * from these sums. */
static void weigh_rest(const struct codec_source *s, double kappa, double *sum, size_t *saturated)
{
    float v[CODEC_CHUNK];
    struct weights w = {0};
    double over = 0.0;
    for (size_t at = 0, count; at < s->n; at += count) {
        scan_load(s, at, v, &count);
        weigh_chunk(&w, v, count, kappa);
    }
    *sum = 0.0;
    for (size_t j = 0; j < LANES; j++) {
        *sum += w.sum[j];
        over += w.saturated[j];
    }
    *saturated = (size_t)over;
}

/* Finds kappa such that the probabilities min(1, kappa |v|) sum to `wanted`, the expected number of
 * chosen elements. Sets *kappa to 0 if all of v is zero. One pass is enough unless an element is
 * saturated, that is, has the probability 1. Returns 0 or -ERANGE. */
static int solve_kappa(const struct codec_source *s, size_t wanted, double *kappa)
{
    double sum;
    size_t saturated;
    size_t before = 0;
    float max;
    int err = weigh_all(s, &sum, &max);
    *kappa = 0.0;
    if (err != 0 || sum == 0.0)
        return err;
    *kappa = wanted < s->n ? (double)wanted / sum : KAPPA_ALL;
    for (int i = 1; i < SOLVE_MAX && *kappa * (double)max >= 1.0; i++) {
        weigh_rest(s, *kappa, &sum, &saturated);
        if (saturated == before || saturated >= wanted)
            break;
        before = saturated;
        *kappa = sum > 0.0 ? (double)(wanted - saturated) / sum : KAPPA_ALL;
    }
    return 0;
}

/* ---- Drawing the elements ---- */

/* Writes n <= CODEC_CHUNK random numbers of 31 bits to u, for the elements from index `first` on.
 * Each 64-bit random word gives two numbers. */
VEC_CLONES static void draw_coins(int32_t *restrict u, uint64_t key, size_t first, size_t n)
{
    for (size_t i = 0; i < (n + 1) / 2; i++) {
        uint64_t bits = rng_at(key, first / 2 + i);
        u[2 * i] = (int32_t)((uint32_t)bits >> 1);
        u[2 * i + 1] = (int32_t)(bits >> 33);
    }
}

/* Marks the chosen elements: those with u / 2^31 < kappa |v|, where u is a random number of 31
 * bits. An element with kappa |v| >= 1 is always chosen. */
VEC_CLONES static void mark_drawn(uint8_t *restrict mark, const float *restrict v,
                                  const int32_t *restrict u, size_t n, double kappa)
{
    double scale = kappa * 0x1p31;
    for (size_t i = 0; i < n; i++)
        mark[i] = (double)u[i] < scale * (double)__builtin_fabsf(v[i]);
}

/* Draws elements and writes their values to pick->truth. If more than `most` elements are drawn,
 * returns false, or, if `last` is true, keeps the first `most` elements and returns true. */
static bool draw_pick(const struct codec_source *s, double kappa, uint64_t key, size_t most,
                      bool last, struct codec_pick *pick)
{
    float v[CODEC_CHUNK];
    int32_t u[CODEC_CHUNK];
    uint8_t mark[CODEC_CHUNK];
    uint32_t local[CODEC_CHUNK];
    pick->k = 0;
    pick->rest2 = 0.0;
    for (size_t at = 0, count; at < s->n; at += count) {
        scan_load(s, at, v, &count);
        draw_coins(u, key, at, count);
        mark_drawn(mark, v, u, count, kappa);
        size_t m = scan_marked(mark, count, local);
        if (m > most - pick->k) {
            if (!last)
                return false;
            m = most - pick->k;
        }
        for (size_t i = 0; i < m; i++) {
            pick->index[pick->k] = (uint32_t)at + local[i];
            pick->truth[pick->k++] = v[local[i]];
            v[local[i]] = 0.0f;
        }
        pick->rest2 += vec_norm2(v, count);
    }
    return true;
}

/* Sets pick->value, the values to send with scale=ls or scale=raw (see the top of this file). */
static void set_values(const int64_t *arg, double kappa, struct codec_pick *pick)
{
    double sum = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < pick->k; i++) {
        double a = fabs((double)pick->truth[i]);
        bool over = kappa * a >= 1.0;
        sum += over ? 0.0 : a;
        n += !over;
    }
    /* With scale=ls, a value that is not saturated is sent with the mean magnitude of all such
     * values. This equals beta / kappa with beta = <v, q> / |q|^2, because all values q of
     * scale=raw have the magnitude 1 / kappa. */
    double each = arg[WANGNI_SCALE] == SCALE_RAW ? 1.0 / kappa : n > 0 ? sum / (double)n : 0.0;
    for (size_t i = 0; i < pick->k; i++) {
        float v = pick->truth[i];
        bool over = kappa * fabs((double)v) >= 1.0;
        pick->value[i] = over ? v : copysignf((float)each, v);
    }
    pick->scaled = true;
}

static int wangni_select(const int64_t *arg, const struct codec_source *s, struct codec_pick *pick)
{
    size_t wanted = keep_count(arg, s->n, s->round);
    size_t most = wangni_limit(wanted, s->n);
    double kappa;
    uint64_t key = s->key;
    int err = solve_kappa(s, wanted, &kappa);
    if (err != 0)
        return err;
    for (int i = 1; !draw_pick(s, kappa, key, most, i == DRAWS_MAX, pick); i++)
        key = rng_at(s->key, UINT64_MAX - (uint64_t)i);
    set_values(arg, kappa, pick);
    return 0;
}

static const struct codec_selector wangni_selector = {
    .coder = "sign:0",
    .most = wangni_most,
    .typical = keep_typical,
    .select = wangni_select,
};

extern const struct codec codec_wangni;
const struct codec codec_wangni = {
    .name = "wangni",
    .about = "elements drawn with probability proportional to |v|, sent with one common magnitude",
    .class = CODEC_EXPECTED,
    .bound = "E delta >= keep |v|^2 n / |v|_1^2 if kappa |v| <= 1",
    .unbiased = "scale=raw",
    .source = "Wangni et al. 2018",
    .params = wangni_params,
    .selector = &wangni_selector,
};
