/* nn/layers/loss.c -- softmax cross-entropy and its gradient, one row of logits at a time. */
#include "nn/layers/loss.h"

#include "nn/math/vec.h"
#include "nn/math/vec_math.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

enum {
    LANES = 16,
    CHUNK = 256 /* Number of exponentials of a row of logits that are computed at once. */
};

/* Returns the sum of 16 partial sums, added in pairs. */
static double lanes_sum(const double l[LANES])
{
    double s[4];
    for (size_t j = 0; j < 4; j++)
        s[j] = (l[j] + l[j + 8]) + (l[j + 4] + l[j + 12]);
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* Returns the largest of z[0..n). Ignores NaN. */
VEC_CLONES static float largest(const float *z, size_t n)
{
    float l[LANES];
    for (size_t j = 0; j < LANES; j++)
        l[j] = -INFINITY;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            l[j] = z[i + j] > l[j] ? z[i + j] : l[j];
    for (; i < n; i++)
        l[0] = z[i] > l[0] ? z[i] : l[0];
    for (size_t j = 1; j < LANES; j++)
        l[0] = l[j] > l[0] ? l[j] : l[0];
    return l[0];
}

/* Returns true if z[label] is the largest element and no element is NaN. If several elements are
 * equally large, only the first of them counts as the largest. */
VEC_CLONES static bool is_right(const float *z, size_t n, size_t label)
{
    float z_label = z[label];
    uint32_t wrong = 0;
    for (size_t j = 0; j < label; j++)
        wrong |= (uint32_t) !(z[j] < z_label);
    for (size_t j = label; j < n; j++)
        wrong |= (uint32_t) !(z[j] <= z_label);
    return wrong == 0;
}

/* Returns the sum of v[0..n), computed in double, so that the probabilities of many classes still
 * add up to 1. */
VEC_CLONES static double sum_of(const float *v, size_t n)
{
    double l[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            l[j] += (double)v[i + j];
    for (size_t j = 0; i < n; i++, j++)
        l[j] += (double)v[i];
    return lanes_sum(l);
}

/* Computes e[j] = exp(z[j] - top) for j < n, where `top` is the largest logit of the row. e may be
 * the same memory as z. */
VEC_CLONES static void exponentials(float *e, const float *z, float top, size_t n)
{
    for (size_t j = 0; j < n; j++)
        e[j] = vec_exp(z[j] - top);
}

VEC_CLONES static void scale_less(float *d, float s, float less, size_t n)
{
    for (size_t j = 0; j < n; j++)
        d[j] = d[j] * s - less;
}

/* Returns sum_j exp(z_j - top), where `top` is the largest z_j. The sum therefore neither overflows
 * nor becomes 0. If e is not NULL, the terms are also written to e[], because the gradient needs
 * them. */
static double sum_exp(const float *z, float top, size_t n, float *e)
{
    float chunk[CHUNK];
    double sum = 0;
    for (size_t j = 0; j < n; j += CHUNK) {
        size_t m = n - j < CHUNK ? n - j : CHUNK;
        float *to = e != NULL ? e + j : chunk;
        exponentials(to, z + j, top, m);
        sum += sum_of(to, m);
    }
    return sum;
}

/* d_logits may be the same memory as the logits, because all values of a row are read before the
 * gradient of that row is written. */
struct loss loss_softmax(const struct loss_batch *b, float *d_logits)
{
    struct loss loss = {0};
    size_t n = b->n_classes;
    double scale = 1.0 / (double)(b->n_mean ? b->n_mean : b->n);
    double smoothing = (double)b->smoothing, share = smoothing / (double)n;
    assert(smoothing >= 0 && smoothing < 1);
    for (size_t i = 0; i < b->n; i++) {
        const float *z = b->logits + i * n;
        /* d (gradient) may be the same memory as z (logits): the gradient then replaces the
         * logits. */
        float *d = d_logits != NULL ? d_logits + i * n : NULL;
        size_t label = b->labels[i];
        assert(label < n);
        float top = largest(z, n);
        double target = (1 - smoothing) * (double)z[label];
        if (smoothing > 0)
            target += share * sum_of(z, n);
        loss.n_right += is_right(z, n, label);
        double sum = sum_exp(z, top, n, d);
        loss.sum += log(sum) + (double)top - target;
        if (d == NULL)
            continue;
        scale_less(d, (float)(scale / sum), (float)(share * scale), n);
        d[label] -= (float)((1 - smoothing) * scale);
    }
    return loss;
}
