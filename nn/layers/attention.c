/* nn/layers/attention.c -- causal multi-head attention (Vaswani et al. 2017, section 3.2):
 *
 *   S = q k^T / sqrt(d)      for each sample and head, without keys later than the query
 *   P = softmax(S)           by rows; d = C / heads
 *   out = P v
 *
 *   in   [n][T][3C] = q | k | v; head j has the channels j d to (j + 1) d - 1 of each
 *   out  [n][T][C]
 *   keep [n][heads][T][2]: for each row, the largest q k^T and 1 / (sum of exponentials)
 *
 * P is not stored, as in Dao et al. 2022. The backward pass computes the same bits again, which
 * costs less than reading P from memory. The rows of S are processed in blocks. A block uses only
 * the keys up to its last row, so about half of S is never computed. Within a block, elements whose
 * key is later than the query are computed and then masked.
 */
#include "nn/layers/layer.h"

#include "nn/math/blas.h"
#include "nn/math/vec_math.h"

#include <string.h>

enum {
    /* Number of rows of the scores S that are processed as one block. A multiple of LANES. */
    BLOCK = 32,
    LANES = 16
};

/* One attention head of one sample. One time step takes `stride` = 3C floats in q, k and v, and
 * `out_stride` = C floats in out. */
struct head
{
    size_t times, d, stride, out_stride;
    float scale;
    const float *q, *k, *v;
    /* out: output of the head. keep: values for the backward pass, two floats per time step: the
     * largest score and 1 / (sum of exponentials). NULL in evaluation. */
    float *out, *keep;
};

/* A block of the scores S = q k^T. It has `rows` rows from row `from` on, and the columns of the
 * first `keys` keys. */
struct block
{
    size_t from, rows, keys;
    /* whole: `keys` rounded up to a multiple of LANES. stride: number of floats from one row of the
     * block to the next. */
    size_t whole, stride;
    float *s, *d_s;
};

static size_t whole_lanes(size_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static size_t attention_keep(const struct layer *l, uint32_t n)
{
    return (size_t)n * l->groups * l->in.h * 2;
}

static size_t attention_scratch(const struct layer *l, uint32_t n, bool training)
{
    (void)n;
    return (training ? 2u : 1u) * (size_t)BLOCK * whole_lanes(l->in.h);
}

static struct head head_of(const struct layer *l, const struct layer_pass *p, size_t sample,
                           size_t j)
{
    size_t c = l->out.c, d = c / l->groups, times = l->in.h;
    assert(l->in.c == 3 * c && c % l->groups == 0);
    const float *in = p->in + sample * times * 3 * c + j * d;
    float *keep = p->training ? p->keep : NULL;
    return (struct head){.times = times,
                         .d = d,
                         .stride = 3 * c,
                         .out_stride = c,
                         .scale = 1.0f / sqrtf((float)d),
                         .q = in,
                         .k = in + c,
                         .v = in + 2 * c,
                         .out = p->out + sample * times * c + j * d,
                         .keep = keep != NULL ? keep + (sample * l->groups + j) * 2 * times : NULL};
}

static struct block block_of(const struct head *h, size_t from, float *scratch)
{
    size_t left = h->times - from, rows = left < BLOCK ? left : BLOCK;
    size_t stride = whole_lanes(h->times);
    return (struct block){.from = from,
                          .rows = rows,
                          .keys = from + rows,
                          .whole = whole_lanes(from + rows),
                          .stride = stride,
                          .s = scratch,
                          .d_s = scratch + BLOCK * stride};
}

/* Computes s = a * keys^T for the rows of a block, where `a` is [rows][d] and `keys` is
 * [keys][d]. */
static void products(const struct head *h, const struct block *b, float *s, const float *a,
                     size_t a_stride, const float *keys)
{
    blas_gemm(&(struct blas_gemm){.m = b->rows,
                                  .n = b->keys,
                                  .k = h->d,
                                  .a = a + b->from * a_stride,
                                  .lda = a_stride,
                                  .b = keys,
                                  .ldb = h->stride,
                                  .b_transposed = true,
                                  .c = s,
                                  .ldc = b->stride});
}

static float lanes_most(const float v[LANES])
{
    float most = v[0];
    for (size_t k = 1; k < LANES; k++)
        most = v[k] > most ? v[k] : most;
    return most;
}

static float lanes_sum(const float v[LANES])
{
    float a[LANES];
    memcpy(a, v, sizeof a);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            a[k] += a[k + half];
    return a[0];
}

/* Returns the largest of s[n]; n is a multiple of LANES. A NaN may be missed here, but row_exp()
 * then returns NaN. */
VEC_CLONES static float row_most(const float *s, size_t n)
{
    float most[LANES];
    memcpy(most, s, sizeof most);
    for (size_t j = LANES; j < n; j += LANES)
        for (size_t k = 0; k < LANES; k++)
            most[k] = s[j + k] > most[k] ? s[j + k] : most[k];
    return lanes_most(most);
}

/* Replaces each score s by exp(scale * (s - most)) and returns the sum. `most` is the largest score
 * of the row. The sum is computed in float, as LANES partial sums that are added pairwise, so at
 * most about n / 16 + 4 roundings affect it. */
VEC_CLONES static float row_exp(float *s, size_t n, float scale, float most)
{
    float sum[LANES] = {0};
    for (size_t j = 0; j < n; j += LANES)
        for (size_t k = 0; k < LANES; k++) {
            s[j + k] = vec_exp(scale * (s[j + k] - most));
            sum[k] += s[j + k];
        }
    return lanes_sum(sum);
}

VEC_CLONES static void row_scale(float *s, size_t n, float by)
{
    for (size_t j = 0; j < n; j++)
        s[j] *= by;
}

/* Masks two parts of row r of a block of scores: the keys later than the query, and the padding at
 * the end of the row. The masked scores become minus infinity, so that their exponentials are 0. */
static void row_mask(const struct block *b, float *s, size_t r)
{
    for (size_t j = b->from + r + 1; j < b->whole; j++)
        s[j] = -INFINITY;
}

/* Turns the scores of a block into attention weights: applies the scale and the softmax to each
 * row. */
static void softmax(const struct head *h, const struct block *b)
{
    for (size_t r = 0; r < b->rows; r++) {
        float *s = b->s + r * b->stride;
        row_mask(b, s, r);
        float most = row_most(s, b->whole);
        float inverse = 1.0f / row_exp(s, b->whole, h->scale, most);
        row_scale(s, b->keys, inverse);
        if (h->keep != NULL) {
            h->keep[2 * (b->from + r)] = most;
            h->keep[2 * (b->from + r) + 1] = inverse;
        }
    }
}

static void head_forward(const struct head *h, float *scratch)
{
    for (size_t from = 0; from < h->times; from += BLOCK) {
        struct block b = block_of(h, from, scratch);
        products(h, &b, b.s, h->q, h->stride, h->k);
        softmax(h, &b);
        blas_gemm(&(struct blas_gemm){.m = b.rows,
                                      .n = h->d,
                                      .k = b.keys,
                                      .a = b.s,
                                      .lda = b.stride,
                                      .b = h->v,
                                      .ldb = h->stride,
                                      .c = h->out + from * h->out_stride,
                                      .ldc = h->out_stride});
    }
}

static void attention_forward(const struct layer *l, const struct layer_pass *p)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < l->groups; j++) {
            struct head h = head_of(l, p, i, j);
            head_forward(&h, p->scratch);
        }
}

/* Computes one row of the backward pass of the softmax. s holds the scores, which are replaced by
 * the attention weights P = exp(scale * (s - most)) * inverse. `most` is the largest score and
 * `inverse` is 1 / (sum of the exponentials). d_s holds the gradient of P, which is replaced by the
 * gradient of the scores, scale * P * (d_s - dot). `dot` is the sum of P * d_s over the row. */
VEC_CLONES static void row_backward(float *restrict s, float *restrict d_s, size_t n, float scale,
                                    const float keep[2], float dot)
{
    float most = keep[0], inverse = keep[1];
    for (size_t j = 0; j < n; j++) {
        float p = vec_exp(scale * (s[j] - most)) * inverse;
        s[j] = p;
        d_s[j] = scale * p * (d_s[j] - dot);
    }
}

/* Returns the dot product of a and b, with LANES partial sums in float. */
VEC_CLONES static float row_dot(const float *a, const float *b, size_t n)
{
    float sum[LANES] = {0};
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (size_t k = 0; k < LANES; k++)
            sum[k] += a[j + k] * b[j + k];
    for (size_t k = 0; j < n; j++, k++)
        sum[k] += a[j] * b[j];
    return lanes_sum(sum);
}

/* Computes the backward pass of the softmax for a block: turns scores into attention weights P, and
 * the gradient dP of P into the gradient of the scores. The sum of P dP over a row equals <out,
 * d_out>, because out = P v and dP = d_out v^T. The code uses <out, d_out>, which has fewer
 * terms. */
static void softmax_backward(const struct head *h, const struct block *b, const float *d_out)
{
    for (size_t r = 0; r < b->rows; r++) {
        size_t t = b->from + r, at = t * h->out_stride;
        float *s = b->s + r * b->stride, *d_s = b->d_s + r * b->stride;
        row_mask(b, s, r);
        row_backward(s, d_s, b->keys, h->scale, h->keep + 2 * t,
                     row_dot(h->out + at, d_out + at, h->d));
    }
}

/* Backward pass of one block of scores: computes d = p^T a from p[rows][keys] and a[rows][h->d].
 * For the gradient d of the keys, p is the gradient of the scores and a is q. For the gradient d of
 * the values, p is the attention weights and a is d_out. `add`: adds the result to d. */
static void keys_backward(const struct head *h, const struct block *b, const float *p,
                          const float *a, size_t a_stride, float *d, bool add)
{
    blas_gemm(&(struct blas_gemm){.m = b->keys,
                                  .n = h->d,
                                  .k = b->rows,
                                  .a = p,
                                  .lda = b->stride,
                                  .a_transposed = true,
                                  .b = a + b->from * a_stride,
                                  .ldb = a_stride,
                                  .c = d,
                                  .ldc = h->stride,
                                  .beta = add ? 1.0f : 0.0f});
}

/* Computes the gradient of one head. The last block of rows is processed first. This block uses all
 * keys, so it writes all of d_k and d_v, and the other blocks add to them. d_in points to d_q of
 * the head; d_k is `apart` floats further, and d_v another `apart` floats. */
static void head_backward(const struct head *h, const float *d_out, float *d_in, size_t apart,
                          bool add, float *scratch)
{
    size_t n_blocks = (h->times + BLOCK - 1) / BLOCK;
    for (size_t i = n_blocks; i-- > 0;) {
        struct block b = block_of(h, i * BLOCK, scratch);
        bool more = add || i + 1 < n_blocks;
        products(h, &b, b.s, h->q, h->stride, h->k);
        products(h, &b, b.d_s, d_out, h->out_stride, h->v);
        softmax_backward(h, &b, d_out);
        /* Computes d_q = d_s k, where d_s is the gradient of the scores. */
        blas_gemm(&(struct blas_gemm){.m = b.rows,
                                      .n = h->d,
                                      .k = b.keys,
                                      .a = b.d_s,
                                      .lda = b.stride,
                                      .b = h->k,
                                      .ldb = h->stride,
                                      .c = d_in + b.from * h->stride,
                                      .ldc = h->stride,
                                      .beta = add ? 1.0f : 0.0f});
        keys_backward(h, &b, b.d_s, h->q, h->stride, d_in + apart, more);
        keys_backward(h, &b, b.s, d_out, h->out_stride, d_in + 2 * apart, more);
    }
}

static void attention_backward(const struct layer *l, const struct layer_pass *p)
{
    if (p->d_in == NULL)
        return;
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < l->groups; j++) {
            struct head h = head_of(l, p, i, j);
            head_backward(&h, p->d_out + (h.out - p->out), p->d_in + (h.q - p->in), l->out.c,
                          p->add_in, p->scratch);
        }
}

/* Returns the multiply-adds of the matrix products for one sample. Causal attention uses only the
 * keys up to each query, so this is about half of the number for full attention. */
static double attention_products(const struct layer *l)
{
    return (double)l->in.h * (l->in.h + 1.0) * l->out.c;
}

const struct layer_op layer_attention = {
    .name = "attention",
    .keep = attention_keep,
    .scratch = attention_scratch,
    .forward = attention_forward,
    .backward = attention_backward,
    .products = attention_products,
};
