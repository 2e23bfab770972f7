/* nn/layers/attention.c -- causal attention with many heads (Vaswani et al. 2017, section 3.2):
 *
 *   S = q k^T / sqrt(d)      of a sample's head; no key later than its query
 *   P = softmax(S)           by rows; d = C / heads
 *   out = P v
 *
 *   in   [n][T][3C] = q | k | v, head j in channels j d .. of each
 *   out  [n][T][C]
 *   keep [n][heads][T][2]: of each row of S the largest and 1 / sum of exp
 *
 * P is not kept, as in Dao et al. 2022: backward makes it again, bit for bit,
 * which costs less than fetching it from memory. Rows go in blocks; a block
 * looks at keys up to its last row only, so about half of S is never
 * made. Within a block, what lies in the future is made, and masked. */
#include "nn/layers/layer.h"

#include "nn/math/blas.h"
#include "nn/math/vec_math.h"

#include <string.h>

enum {
    BLOCK = 32, /* Number of rows of S in a block. A multiple of LANES. */
    LANES = 16
};

/* One attention head of one sample. All arrays except `out` have 3C floats per time step. */
struct head
{
    size_t times, d, stride, out_stride;
    float scale;
    const float *q, *k, *v;
    float *out, *keep; /* keep is NULL in evaluation. */
};

/* A block of S: rows from..from + rows, and keys 0..keys. */
struct block
{
    size_t from, rows, keys;
    /* whole: number of keys, rounded up to whole vectors; stride: floats from one row to the
     * next. */
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

/* s = a[rows][d] b[keys][d]^T */
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

/* The largest of s[n], n a multiple of LANES. NaN may get lost here; it makes
 * the sum of exponentials NaN. */
VEC_CLONES static float row_most(const float *s, size_t n)
{
    float most[LANES];
    memcpy(most, s, sizeof most);
    for (size_t j = LANES; j < n; j += LANES)
        for (size_t k = 0; k < LANES; k++)
            most[k] = s[j + k] > most[k] ? s[j + k] : most[k];
    return lanes_most(most);
}

/* s = exp(scale (s - most)); returns its sum: lanes in float, then pairwise,
 * about n / 16 + 4 roundings at worst. */
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

/* Sets the positions after row r of a block to minus infinity, whose exponential is 0. The
 * positions that pad the row to whole vectors are set in the same way. */
static void row_mask(const struct block *b, float *s, size_t r)
{
    for (size_t j = b->from + r + 1; j < b->whole; j++)
        s[j] = -INFINITY;
}

/* S to P. */
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

/* s = P = exp(scale (s - most)) inverse; d_s, which comes as dP, becomes dS =
 * scale P (dP - dot), where dot = sum of P dP over the row. */
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

/* Dot product with float sums in lanes, as in row_exp(). */
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

/* The sum of P dP over a row is <out, d_out>, as out = P v and dP = d_out v^T:
 * shorter. */
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

/* Computes d (+)= p[rows][keys]^T a[rows][d] for all keys of a block. */
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

/* The block of rows that is the last comes first: it has all keys, and so
 * writes all of d_k and d_v, to which the others add. d_in is its head's q, and
 * `apart` floats on its k, then its v. */
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
        blas_gemm(&(struct blas_gemm){.m = b.rows, /* d_q = dS k */
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

/* Half of the full product counts, because attention is causal. */
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
