/* compress/codecs/atomo.c -- body codec "atomo": a random selection of singular triples.
 *
 * ATOMO with spectral atoms (Wang, Sievert, Liu, Charles, Papailiopoulos, Wright 2018):
 *
 *   M = sum_i sigma_i u_i v_i^T          singular value decomposition of the tensor
 *   C = beta * sum of (sigma_i / p_i) u_i v_i^T over the triples drawn
 *
 * A singular triple is (sigma_i, u_i, v_i). It is drawn with probability p_i, independently of the
 * other triples. p_i is proportional to sigma_i and at most 1, and all p_i sum to min(r, rank).
 * Triples for which p_i would exceed 1 are always drawn, and the rest of the sum is divided among
 * the other triples (algorithm 1 of the paper).
 *
 *   scale=raw  beta = 1: unbiased, with 1 + omega = sum(sigma^2 / p) / sum(sigma^2)
 *   scale=ls   beta = <M, C> / |C|^2 of the triples drawn: the error is never above |M|^2, and on
 *              average at least as good as delta = 1 / (1 + omega)
 *
 * Message: the number of triples (varint), then P and Q (matrix.h) with the columns u_i and scaled
 * v_i. If no triple is drawn, nothing is sent. Vectors and small tensors are sent as plain floats.
 *
 * For a matrix of m rows and n columns, the decomposition costs O(m n min(m, n)). The codec
 * `lowrank` costs only O(r m n).
 */
#include "compress/codec.h"

#include "compress/codecs/matrix.h"
#include "compress/coding/bytes.h"

#include "nn/math/blas.h"
#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>

/* Indices of the codec's arguments in `arg`, the array of argument values that its functions
 * get. */
enum { ATOMO_R, ATOMO_SCALE };
enum { SCALE_LS, SCALE_RAW };

static const char *const scale_choices[] = {"ls", "raw", NULL};

static const struct codec_param atomo_params[] = {
    {.name = "r",
     .kind = CODEC_INTEGER,
     .low = 1,
     .high = 64,
     .step = 1,
     .preset = 3,
     .wants = "an integer from 1 to 64"},
    {.name = "scale",
     .kind = CODEC_CHOICE,
     .option = true,
     .choices = scale_choices,
     .preset = SCALE_LS,
     .wants = "ls or raw"},
    {.name = NULL},
};

/* Returns the smaller of the number of rows and the number of columns. */
static size_t shorter(const struct codec_shape *shape)
{
    return shape->rows < shape->cols ? shape->rows : shape->cols;
}

/* Returns true if the matrix is sent as factors. Factors must take less than half the size of plain
 * floats, and the sizes of the matrix must fit into the integers of LAPACK. */
static bool atomo_pays(const int64_t *arg, const struct codec_shape *shape)
{
    return matrix_pays(shape, (size_t)arg[ATOMO_R]) && shape->n <= INT_MAX
           && shorter(shape) <= BLAS_SVD_MAX;
}

/* Returns the largest number of triples in a message. The number of drawn triples has the mean r
 * and exceeds 4 r + 32 with a probability below 1e-15 (Bernstein's inequality). If more are drawn,
 * those with the smallest singular values are left out. */
static size_t most(const int64_t *arg, const struct codec_shape *shape)
{
    size_t limit = 4 * (size_t)arg[ATOMO_R] + 32;
    return limit < shorter(shape) ? limit : shorter(shape);
}

static size_t atomo_bound(const int64_t *arg, const struct codec_shape *shape)
{
    return atomo_pays(arg, shape) ? BYTES_VARINT_MAX + matrix_size(shape, most(arg, shape))
                                  : matrix_plain_size(shape);
}

static size_t atomo_nominal(const int64_t *arg, const struct codec_shape *shape)
{
    return atomo_pays(arg, shape) ? 1 + matrix_size(shape, (size_t)arg[ATOMO_R])
                                  : matrix_plain_size(shape);
}

/* ---- Encoding a matrix ---- */

/* One drawn singular triple of the matrix: the singular value sigma_i and its vectors u_i and
 * v_i. */
struct triple
{
    size_t i; /* Index of the triple; sigma_i descends with i. */
    /* Factor of u_i v_i^T in the decoded matrix. The encoder scales the matrix by a power of two
     * before the decomposition, and this factor belongs to the scaled matrix. */
    double scale;
};

/* Working space of the encoder. All its arrays are in the scratch memory. */
struct spectrum
{
    struct blas_svd svd;
    /* Scratch memory for one column of a factor. The array has max(rows, cols) elements. */
    double *column;
    /* Probability of each singular triple (sigma_i, u_i, v_i). The array has min(rows, cols)
     * elements. */
    double *p;
    /* Singular triples that were drawn. The array has room for most() triples. */
    struct triple *taken;
    size_t n_taken;
};

/* The arrays in the scratch memory, in the order of their addresses. */
enum part { PART_A, PART_S, PART_U, PART_VT, PART_WORK, PART_COLUMN, PART_P, PART_TAKEN, PARTS };

/* Computes the size in bytes of each array in the scratch memory, rounded up to a multiple of 64.
 * Returns the sum of the sizes. */
static size_t part_sizes(size_t size[PARTS], const int64_t *arg, const struct codec_shape *shape)
{
    size_t m = shape->rows, n = shape->cols, k = shorter(shape), sum = 0;
    size[PART_A] = m * n * sizeof(float);
    size[PART_S] = k * sizeof(float);
    size[PART_U] = m * k * sizeof(float);
    size[PART_VT] = k * n * sizeof(float);
    size[PART_WORK] = blas_svd_work(m, n);
    size[PART_COLUMN] = (m > n ? m : n) * sizeof(double);
    size[PART_P] = k * sizeof(double);
    size[PART_TAKEN] = most(arg, shape) * sizeof(struct triple);
    for (int i = 0; i < PARTS; i++) {
        size[i] = (size[i] + 63) / 64 * 64;
        sum += size[i];
    }
    return sum;
}

static size_t atomo_scratch(const int64_t *arg, const struct codec_shape *shape)
{
    size_t size[PARTS];
    return atomo_pays(arg, shape) ? part_sizes(size, arg, shape) : matrix_plain_scratch(shape);
}

/* Places the arrays of the encoder in the scratch memory. */
static struct spectrum lay_out(const int64_t *arg, const struct codec_shape *shape, char *scratch)
{
    size_t size[PARTS];
    void *at[PARTS];
    part_sizes(size, arg, shape);
    for (int i = 0; i < PARTS; i++) {
        at[i] = scratch;
        scratch += size[i];
    }
    return (struct spectrum){
        .svd = {.m = shape->rows,
                .n = shape->cols,
                .a = at[PART_A],
                .s = at[PART_S],
                .u = at[PART_U],
                .vt = at[PART_VT],
                .work = at[PART_WORK]},
        .column = at[PART_COLUMN],
        .p = at[PART_P],
        .taken = at[PART_TAKEN],
    };
}

/* Returns the numerical rank: how many of the k singular values exceed the rounding error of the
 * decomposition. */
static size_t rank_of(const struct blas_svd *d, size_t k)
{
    float least = d->s[0] * (float)(d->m > d->n ? d->m : d->n) * FLT_EPSILON;
    size_t rank = 0;
    while (rank < k && d->s[rank] > least)
        rank++;
    return rank;
}

/* Computes the probabilities p[i] of the descending singular values s[0..rank): proportional to
 * s[i], at most 1, with the sum min(r, rank). */
static void fill_water(double *p, const float *s, size_t rank, size_t r)
{
    double left = 0.0; /* Sum of the singular values s[i..rank). */
    size_t certain = 0;
    for (size_t i = 0; i < rank; i++)
        left += (double)s[i];
    while (certain < rank && (rank <= r || (double)(r - certain) * (double)s[certain] >= left)) {
        left -= (double)s[certain];
        p[certain++] = 1.0;
    }
    for (size_t i = certain; i < rank; i++)
        p[i] = fmin(1.0, (double)(r - certain) * (double)s[i] / left);
}

/* Draws each triple with its probability. Sets triple.scale of each drawn triple, by the rule of
 * scale=raw or scale=ls (see the top of this file). Draws at most `limit` triples. */
static void draw_triples(struct spectrum *w, const int64_t *arg, size_t rank, size_t limit,
                         uint64_t key)
{
    /* dot is the inner product <M, C> of the matrix and its decoded form, and c2 is |C|^2, both for
     * the scale factor beta = 1. With scale=ls, beta is dot / c2. */
    double dot = 0.0, c2 = 0.0;
    fill_water(w->p, w->svd.s, rank, (size_t)arg[ATOMO_R]);
    for (size_t i = 0; i < rank && w->n_taken < limit; i++) {
        double u = (double)(rng_at(key, i) >> 11) * 0x1p-53;
        if (!(u < w->p[i]))
            continue;
        double sigma = (double)w->svd.s[i], scale = sigma / w->p[i];
        w->taken[w->n_taken++] = (struct triple){i, scale};
        dot += sigma * scale;
        c2 += scale * scale;
    }
    if (arg[ATOMO_SCALE] == SCALE_LS)
        for (size_t i = 0; i < w->n_taken; i++)
            w->taken[i].scale *= dot / c2;
}

/* Writes the factors P and Q of the drawn triples. The matrix was multiplied by a power of two
 * before its decomposition; the factor `back` undoes this. */
static void put_factors(const struct spectrum *w, const struct codec_shape *shape, double back,
                        uint8_t *dst)
{
    size_t m = shape->rows, n = shape->cols, k = shorter(shape);
    for (size_t t = 0; t < w->n_taken; t++) {
        const struct triple *triple = &w->taken[t];
        for (size_t i = 0; i < m; i++)
            w->column[i] = (double)w->svd.u[i * k + triple->i];
        matrix_put(dst + matrix_p_at(shape, t), w->column, m, 1.0);
        for (size_t j = 0; j < n; j++)
            w->column[j] = (double)w->svd.vt[triple->i * n + j];
        matrix_put(dst + matrix_q_at(shape, w->n_taken, t), w->column, n, triple->scale * back);
    }
}

/* If the decomposition fails, nothing is sent. The replica stays correct, and the next message
 * contains the difference again. */
static int encode_triples(const int64_t *arg, const struct codec_shape *shape,
                          const struct codec_source *s, struct spectrum *w, uint8_t *dst,
                          struct compress_stat *stat)
{
    uint32_t max = matrix_load(w->svd.a, s, 0, shape->n);
    if (max >= CODEC_LIMIT_BITS)
        return -ERANGE;
    stat->x2 = stat->e2 = vec_norm2(w->svd.a, shape->n);
    int e = bytes_exponent(bytes_to_float(max));
    matrix_scale(w->svd.a, bytes_pow2(-e), shape->n);
    if (max == 0 || blas_svd(&w->svd) != 0)
        return 0;
    size_t rank = rank_of(&w->svd, shorter(shape));
    draw_triples(w, arg, rank, most(arg, shape), s->key);
    size_t count = w->n_taken;
    uint8_t *factors = dst + bytes_put_varint(dst, (uint32_t)count);
    put_factors(w, shape, (double)bytes_pow2(e), factors);
    if (count == 0 || matrix_is_nothing(shape, count, factors)) {
        w->n_taken = 0;
        return 0;
    }
    if (!matrix_check(shape, count, factors))
        return -ERANGE;
    double e2 = matrix_error2(shape, count, factors, s);
    if (arg[ATOMO_SCALE] == SCALE_LS && !(e2 < stat->x2))
        /* Nothing is sent if the decoded matrix would not reduce the error, which happens if the
         * values are too small for the precision of floats. */
        w->n_taken = 0;
    else
        stat->e2 = e2;
    return 0;
}

static int atomo_encode(const int64_t *arg, const struct codec_shape *shape,
                        const struct codec_source *s, const struct codec_desk *desk, uint8_t *dst,
                        size_t *len, struct compress_stat *stat)
{
    if (!atomo_pays(arg, shape))
        return matrix_plain_encode(s, desk->scratch, dst, len, stat);
    struct spectrum w = lay_out(arg, shape, desk->scratch);
    int err = encode_triples(arg, shape, s, &w, dst, stat);
    uint32_t count = (uint32_t)w.n_taken;
    *len = count == 0 ? 0 : bytes_put_varint(dst, count) + matrix_size(shape, count);
    return err;
}

/* ---- Checking and decoding a message ---- */

/* Reads the number of triples at the start of src[0..len) into *count. Returns the number of bytes
 * read, or 0 if the number of triples is not valid. */
static size_t get_count(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                        size_t len, size_t *count)
{
    uint32_t sent = 0;
    size_t head = bytes_get_varint(src, len, &sent);
    *count = sent;
    return sent >= 1 && sent <= most(arg, shape) ? head : 0;
}

static size_t atomo_check(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                          size_t len)
{
    if (!atomo_pays(arg, shape))
        return matrix_plain_check(shape, src, len);
    size_t count = 0;
    size_t head = get_count(arg, shape, src, len, &count);
    if (head == 0 || len - head < matrix_size(shape, count)
        || !matrix_check(shape, count, src + head))
        return 0;
    return head + matrix_size(shape, count);
}

static size_t atomo_apply(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                          size_t len, struct target *t)
{
    if (!atomo_pays(arg, shape))
        return matrix_plain_apply(shape, src, t);
    size_t count = 0;
    size_t head = get_count(arg, shape, src, len, &count);
    assert(head != 0);
    matrix_apply(shape, count, src + head, t);
    return head + matrix_size(shape, count);
}

static const struct codec_body atomo_body = {
    .by_tensor = true,
    .bound = atomo_bound,
    .nominal = atomo_nominal,
    .scratch = atomo_scratch,
    .encode = atomo_encode,
    .check = atomo_check,
    .apply = atomo_apply,
};

extern const struct codec codec_atomo;
const struct codec codec_atomo = {
    .name = "atomo",
    .about = "about r singular triples of each matrix, drawn with probability proportional to "
             "their size",
    .class = CODEC_EXPECTED,
    .bound = "each message: delta >= 0; E delta >= r / (r + min(rows, cols))",
    .unbiased = "scale=raw",
    .source = "Wang et al. 2018",
    .params = atomo_params,
    .body = &atomo_body,
};
