/* compress/codecs/lowrank.c -- body codec "lowrank": a matrix as two thin factors (PowerSGD).
 *
 * M is the difference of one tensor as a matrix of m rows and n columns. The encoder does one step
 * of power iteration for rank r (Vogels, Karimireddy, Jaggi 2019, algorithm 1):
 *
 *   P = M Q;  orthonormalise P;  Q' = M^T P;  C = P Q'^T = P P^T M
 *
 * Message: the factors P and Q' (matrix.h), which take 4 r (m + n) bytes. Vectors and small tensors
 * are sent as plain floats.
 *
 * C is a projection of M, so the squared error |M - C|^2 = |M|^2 - |Q'|^2 never exceeds |M|^2. If Q
 * is Gaussian, |C|^2 is on average at least r / min(m, n) of |M|^2, even for a matrix without
 * structure. The encoder remembers Q' and uses it as the Q of the next message ("warm start"). The
 * differences of a model change slowly, so one step per message follows the leading singular
 * vectors. Each remembered column is scaled by a power of two, so that it cannot grow without
 * bound.
 *
 * A column of Q that is zero is drawn at random. If a column of M Q is zero (less than 1e-6 of its
 * possible size), the column of P is drawn at random instead. Without this rule, an encoder with a
 * remembered Q that is orthogonal to M would never send anything. No quantity is compared with an
 * absolute size, and M is scaled by powers of two. Thus 2^k M gives the same P and 2^k Q', bit for
 * bit.
 */
#include "compress/codec.h"

#include "compress/codecs/factors.h"
#include "compress/codecs/matrix.h"
#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    LOWRANK_R /* Index of the argument `r`, the rank, in `arg`, the array of argument values. */
};
enum {
    RANK_MAX = 64, /* Largest rank. */
    /* Number of floats in the buffer for one tile: FACTORS_PANEL rows of CODEC_CHUNK elements, and
     * the padding that factors.h needs. */
    BUFFER = FACTORS_PANEL * CODEC_CHUNK + FACTORS_LANES
};

static const struct codec_param lowrank_params[] = {
    {.name = "r",
     .kind = CODEC_INTEGER,
     .low = 1,
     .high = RANK_MAX,
     .step = 1,
     .preset = 2,
     .wants = "an integer from 1 to 64"},
    {.name = NULL},
};

/* State of one step of power iteration, the method of this codec, for one tensor. */
struct step
{
    struct codec_shape shape;
    const struct codec_source *s;
    /* The factors P, Q and Q'. Q' (q_next) is computed from the matrix divided by a power of two,
     * so that the largest element of the matrix is in [1, 2). */
    struct factors f;
    /* Buffer for one tile (some rows, or a part of a row) of the matrix, BUFFER floats. */
    float *buffer;
    uint32_t max_bits; /* Bit pattern of the largest magnitude in the matrix. */
    double x2;         /* Sum of squares of the matrix, |M|^2. */
};

/* Returns true if two factors of rank r take less than half the size of the matrix. Otherwise the
 * matrix is sent as plain floats. */
static bool lowrank_pays(const int64_t *arg, const struct codec_shape *shape)
{
    return matrix_pays(shape, (size_t)arg[LOWRANK_R]);
}

static size_t lowrank_bound(const int64_t *arg, const struct codec_shape *shape)
{
    return lowrank_pays(arg, shape) ? matrix_size(shape, (size_t)arg[LOWRANK_R])
                                    : matrix_plain_size(shape);
}

static size_t lowrank_scratch(const int64_t *arg, const struct codec_shape *shape)
{
    if (!lowrank_pays(arg, shape))
        return matrix_plain_scratch(shape);
    size_t r = (size_t)arg[LOWRANK_R], stride = factors_stride(shape->cols);
    return r * (shape->rows + stride) * sizeof(double) + (r * stride + BUFFER) * sizeof(float);
}

static size_t lowrank_memory(const int64_t *arg, const struct codec_shape *shape)
{
    return lowrank_pays(arg, shape) ? (size_t)arg[LOWRANK_R] * shape->cols : 0;
}

/* Places the factors and the tile buffer in the scratch memory. */
static struct step lay_out(const struct codec_shape *shape, size_t r, void *scratch)
{
    struct factors f = {.m = shape->rows,
                        .n = shape->cols,
                        .r = r,
                        .stride = factors_stride(shape->cols),
                        .q_next = scratch};
    f.q = (float *)(f.q_next + r * f.stride);
    float *buffer = f.q + r * f.stride;
    f.p = (double *)(buffer + BUFFER);
    return (struct step){.shape = *shape, .f = f, .buffer = buffer};
}

/* ---- Choosing and storing the factor Q ---- */

/* Fills v with normally distributed random numbers. */
static void draw_column(double *v, size_t n, uint64_t key)
{
    struct rng r = rng_stream(key);
    for (size_t i = 0; i < n; i++)
        v[i] = rng_normal(&r);
}

static bool all_zero(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0.0f)
            return false;
    return true;
}

/* Sets the factor Q to the one remembered from the last message. A column that contains only
 * zeros is replaced by a random column. Before the first message, all columns are zero. */
static void choose_start(struct step *w, const float *memory)
{
    size_t n = w->f.n;
    memset(w->f.q, 0, w->f.r * w->f.stride * sizeof *w->f.q);
    for (size_t k = 0; k < w->f.r; k++, memory += n) {
        float *q = w->f.q + k * w->f.stride;
        if (!all_zero(memory, n)) {
            memcpy(q, memory, n * sizeof *q);
            continue;
        }
        draw_column(w->f.q_next, n, rng_at(w->s->key, k));
        for (size_t j = 0; j < n; j++)
            q[j] = (float)w->f.q_next[j];
    }
}

/* Stores the Q' of a message as the Q of the next message. Each column is scaled by a power of two
 * so that its largest element is below 2. */
static void remember(const struct step *w, const uint8_t *message, float *memory)
{
    size_t n = w->f.n;
    for (size_t k = 0; k < w->f.r; k++, memory += n) {
        const uint8_t *q = message + matrix_q_at(&w->shape, w->f.r, k);
        float max = 0.0f;
        for (size_t j = 0; j < n; j++) {
            memory[j] = bytes_get_float(q + 4 * j);
            max = fmaxf(max, fabsf(memory[j]));
        }
        matrix_scale(memory, bytes_pow2(-bytes_exponent(max)), n);
    }
}

/* ---- Product of matrix and factor, P = M Q ---- */

/* Computes the factor P = M Q, and the sum of squares (x2) and the largest magnitude (max_bits)
 * of the matrix M to compress. Returns false if an element of the difference is not finite or
 * too large. Each tile is first scaled so that its largest element is in [1, 2), so that very
 * small and very large differences lose no precision in floats. */
static bool multiply_by_q(struct step *w)
{
    const struct codec_source *s = w->s;
    memset(w->f.p, 0, w->f.r * w->f.m * sizeof *w->f.p);
    for (size_t at = 0; at < w->shape.n;) {
        struct matrix_tile t = matrix_tile_at(&w->shape, at);
        struct simd_sums sums =
            simd_load(w->buffer, s->x + at, codec_x_hat(s, at), t.n, SIMD_AHEAD);
        uint32_t max = sums.max;
        if (max >= CODEC_LIMIT_BITS)
            return false;
        at += t.n;
        if (max == 0)
            continue;
        w->max_bits = max > w->max_bits ? max : w->max_bits;
        w->x2 += sums.x2;
        int e = bytes_exponent(bytes_to_float(max));
        matrix_scale(w->buffer, bytes_pow2(-e), t.n);
        memset(w->buffer + t.n, 0, FACTORS_LANES * sizeof *w->buffer);
        factors_add_p(&w->f, &t, w->buffer, (double)bytes_pow2(e));
    }
    return true;
}

/* ---- Making the columns of the factor P orthonormal ---- */

/* Returns the dot product of a and b, in eight partial sums that are added in a fixed order. */
VEC_CLONES static double dot_of(const double *a, const double *b, size_t n)
{
    double l[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            l[j] += a[i + j] * b[i + j];
    for (size_t j = 0; i < n; i++, j++)
        l[j] += a[i] * b[i];
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

VEC_CLONES static void subtract(double *restrict y, double s, const double *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] -= s * x[i];
}

/* Makes column k of the factor P orthogonal to the k columns before it. Subtracts the components
 * twice, because one pass is inaccurate if little of the column remains. Returns the norm of the
 * remainder. */
static double clear_before(const struct step *w, size_t k)
{
    size_t m = w->f.m;
    double *p = w->f.p + k * m;
    for (int sweep = 0; sweep < 2; sweep++)
        for (size_t j = 0; j < k; j++)
            subtract(p, dot_of(w->f.p + j * m, p, m), w->f.p + j * m, m);
    return sqrt(dot_of(p, p, m));
}

/* Makes the columns of the factor P orthogonal unit vectors, by the modified Gram-Schmidt
 * method. matrix_pays() guarantees that the columns have more than 2 r elements for rank r, so a
 * random column always has a component orthogonal to the other columns. */
static void orthonormalise(const struct step *w)
{
    size_t m = w->f.m, n = w->f.n;
    for (size_t k = 0; k < w->f.r; k++) {
        double *p = w->f.p + k * m;
        double size = sqrt(w->x2 * vec_norm2(w->f.q + k * w->f.stride, n));
        double norm = clear_before(w, k);
        if (!(norm > 1e-6 * size)) {
            draw_column(p, m, rng_at(w->s->key, RANK_MAX + k));
            norm = clear_before(w, k);
        }
        assert(norm > 0.0);
        for (size_t i = 0; i < m; i++)
            p[i] /= norm;
    }
}

/* ---- Product of transposed matrix and factor, Q' = M^T P ---- */

/* Writes the difference x - x_hat times `scale` to v. */
VEC_CLONES static void load_scaled(float *restrict v, const float *restrict x,
                                   const float *restrict x_hat, size_t n, float scale)
{
    if (x_hat == NULL)
        for (size_t i = 0; i < n; i++)
            v[i] = x[i] * scale;
    else
        for (size_t i = 0; i < n; i++)
            v[i] = (x[i] - x_hat[i]) * scale;
}

/* Loads the tile t of the difference, multiplied by `shift`, into the buffer. The last panel, a
 * group of FACTORS_PANEL rows, is filled up with rows of zeros. */
static void load_block(const struct step *w, const struct matrix_tile *t, float shift)
{
    const struct codec_source *s = w->s;
    size_t n = w->f.n;
    /* Number of elements that are contiguous both in the matrix and in the buffer that receives the
     * tile (part of the matrix). */
    size_t run = t->cols == n ? t->n : t->cols;
    for (size_t done = 0; done < t->n; done += run) {
        size_t at = t->row * n + t->col + done / t->cols * n;
        load_scaled(w->buffer + done, s->x + at, codec_x_hat(s, at), run, shift);
    }
    size_t panels = (t->rows + FACTORS_PANEL - 1) / FACTORS_PANEL;
    size_t end = panels * FACTORS_PANEL * t->cols + FACTORS_LANES;
    memset(w->buffer + t->n, 0, (end - t->n) * sizeof *w->buffer);
}

/* Computes Q' = M^T P, where P is read from the message, in which it is rounded to floats. The
 * receiver uses this rounded P, too, so this Q' gives the smallest error. */
static void multiply_by_p(const struct step *w, const uint8_t *message, float shift)
{
    size_t m = w->f.m, n = w->f.n;
    memset(w->f.q_next, 0, w->f.r * w->f.stride * sizeof *w->f.q_next);
    for (size_t col = 0; col < n; col += CODEC_CHUNK) {
        struct matrix_tile t = {.col = col, .cols = n - col};
        t.cols = t.cols < CODEC_CHUNK ? t.cols : CODEC_CHUNK;
        size_t fit = (BUFFER - FACTORS_LANES) / t.cols / FACTORS_PANEL * FACTORS_PANEL;
        for (; t.row < m; t.row += t.rows) {
            t.rows = m - t.row < fit ? m - t.row : fit;
            t.n = t.rows * t.cols;
            load_block(w, &t, shift);
            factors_add_q(&w->f, &t, w->buffer, message);
        }
    }
}

/* ---- Functions of the codec ---- */

/* Returns the squared error |M - C|^2 between the matrix M and its decoded form C. The formula
 * |M|^2 - |Q'|^2 is inaccurate if the result is small, or if products of floats underflow. In these
 * cases the message is decoded and compared with M. */
static double projection_error2(const struct step *w, const uint8_t *message)
{
    double q2 = 0.0;
    for (size_t k = 0; k < w->f.r; k++) {
        const double *q = w->f.q_next + k * w->f.stride;
        q2 += dot_of(q, q, w->f.n);
    }
    int e = bytes_exponent(bytes_to_float(w->max_bits));
    double e2 = w->x2 - ldexp(q2, 2 * e);
    return e2 > 0.125 * w->x2 && e > -60 ? e2 : matrix_error2(&w->shape, w->f.r, message, w->s);
}

/* The memory of the encoder is written last, so an error leaves it unchanged. */
static int encode_factors(struct step *w, const struct codec_desk *desk, uint8_t *dst, size_t *len,
                          struct compress_stat *stat)
{
    choose_start(w, desk->memory);
    if (!multiply_by_q(w))
        return -ERANGE;
    *len = 0;
    *stat = (struct compress_stat){.x2 = w->x2, .e2 = w->x2};
    if (w->max_bits == 0)
        return 0;
    orthonormalise(w);
    matrix_put(dst, w->f.p, w->f.r * w->f.m, 1.0);
    int e = bytes_exponent(bytes_to_float(w->max_bits));
    multiply_by_p(w, dst, bytes_pow2(-e));
    for (size_t k = 0; k < w->f.r; k++)
        matrix_put(dst + matrix_q_at(&w->shape, w->f.r, k), w->f.q_next + k * w->f.stride, w->f.n,
                   (double)bytes_pow2(e));
    double e2 = projection_error2(w, dst);
    if (!(e2 < w->x2))
        /* Nothing is sent if the decoded matrix would not reduce the error, which happens if the
         * values are too small for the precision of floats. */
        return 0;
    if (!matrix_check(&w->shape, w->f.r, dst))
        return -ERANGE;
    *len = matrix_size(&w->shape, w->f.r);
    stat->e2 = e2;
    remember(w, dst, desk->memory);
    return 0;
}

static int lowrank_encode(const int64_t *arg, const struct codec_shape *shape,
                          const struct codec_source *s, const struct codec_desk *desk, uint8_t *dst,
                          size_t *len, struct compress_stat *stat)
{
    if (!lowrank_pays(arg, shape))
        return matrix_plain_encode(s, desk->scratch, dst, len, stat);
    struct step w = lay_out(shape, (size_t)arg[LOWRANK_R], desk->scratch);
    w.s = s;
    return encode_factors(&w, desk, dst, len, stat);
}

static size_t lowrank_check(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                            size_t len)
{
    if (!lowrank_pays(arg, shape))
        return matrix_plain_check(shape, src, len);
    size_t r = (size_t)arg[LOWRANK_R];
    size_t size = matrix_size(shape, r);
    return len >= size && matrix_check(shape, r, src) ? size : 0;
}

static size_t lowrank_apply(const int64_t *arg, const struct codec_shape *shape, const uint8_t *src,
                            size_t len, struct target *t)
{
    if (!lowrank_pays(arg, shape))
        return matrix_plain_apply(shape, src, t);
    size_t r = (size_t)arg[LOWRANK_R];
    assert(len >= matrix_size(shape, r));
    matrix_apply(shape, r, src, t);
    return matrix_size(shape, r);
}

static const struct codec_body lowrank_body = {
    .by_tensor = true,
    .bound = lowrank_bound,
    .nominal = lowrank_bound,
    .scratch = lowrank_scratch,
    .memory = lowrank_memory,
    .encode = lowrank_encode,
    .check = lowrank_check,
    .apply = lowrank_apply,
};

extern const struct codec codec_lowrank;
const struct codec codec_lowrank = {
    .name = "lowrank",
    .about = "two factors of rank r that approximate each matrix; warm start from the previous "
             "message",
    .class = CODEC_EXPECTED,
    .bound = "each message: delta >= 0; from a fresh start E delta >= "
             "r / min(rows, cols)",
    .source = "Vogels, Karimireddy, Jaggi 2019",
    .params = lowrank_params,
    .body = &lowrank_body,
};
