/* The convolution: square kernel, stride 1, `pad` zeros on every side.
 *
 * Samples are taken in tiles of a few. For each tile the patches that the
 * kernel sees are laid out as columns (im2col), and the layer is one product:
 *
 *   out [o][columns] = weight [o][c*k*k] * col [c*k*k][columns]
 *   columns = (sample of the tile, oh, ow)
 *
 * Backward builds the same columns again, which is cheaper than keeping those
 * of a whole batch: d weight^T += col * d_out^T (the transpose, because its
 * long side suits the kernels: a fifth faster); d col = weight^T * d_out is
 * folded back onto the input (col2im).
 *
 * Scratch:  [ padded input of a tile | columns | d weight^T ]
 */
#include "nn/layer.h"

#include "nn/blas.h"

#include <assert.h>
#include <string.h>

enum {
    COPY_FLOATS = LAYER_SLACK /* Rows are copied in blocks of this. */
};

/* The sizes of one pass, worked out once. */
struct geometry
{
    size_t n, tile;       /* Samples of the batch, of a tile. */
    size_t c, o, k;       /* Channels in and out, kernel. */
    size_t h, w, pad;     /* Input map. */
    size_t ph, pw;        /* Padded input map. */
    size_t oh, ow, plane; /* Output map, oh * ow. */
    size_t patch;         /* c * k * k */
};

static struct geometry geometry(const struct layer *l, uint32_t n)
{
    struct geometry g = {.n = n, .c = l->in.c, .o = l->out.c, .k = l->kernel,
                         .h = l->in.h, .w = l->in.w, .pad = l->pad,
                         .oh = l->out.h, .ow = l->out.w};
    g.ph = g.h + 2 * g.pad;
    g.pw = g.w + 2 * g.pad;
    assert(g.oh + g.k == g.ph + 1 && g.ow + g.k == g.pw + 1);
    g.plane = g.oh * g.ow;
    g.patch = g.c * g.k * g.k;
    g.tile = LAYER_TILE_BYTES / sizeof(float) / (g.patch * g.plane);
    if (g.tile < 1)
        g.tile = 1;
    if (g.tile > n)
        g.tile = n;
    return g;
}

static size_t padded_floats(const struct geometry *g)
{
    return g->pad ? g->c * g->tile * g->ph * g->pw + LAYER_SLACK : 0;
}

static size_t columns_floats(const struct geometry *g)
{
    return g->patch * g->tile * g->plane + LAYER_SLACK;
}

static void conv_params(const struct layer *l, size_t *rows, size_t *cols)
{
    *rows = l->out.c;
    *cols = (size_t)l->in.c * l->kernel * l->kernel;
}

static size_t conv_scratch(const struct layer *l, uint32_t n)
{
    struct geometry g = geometry(l, n);
    return padded_floats(&g) + columns_floats(&g) + g.patch * g.o;
}

/* The maps that a tile's patches are cut from, and where they lie. */
struct source
{
    const float *maps;
    size_t channel; /* Floats from one channel to the next. */
};

/* Where the tile of `t` samples from `first` on is found: in place, or copied
 * into a frame of zeros at `padded`. */
static struct source tile_source(const struct geometry *g, const float *in,
                                 size_t first, size_t t, float *padded)
{
    if (g->pad == 0)
        return (struct source){in + first * g->h * g->w, g->n * g->h * g->w};
    memset(padded, 0, padded_floats(g) * sizeof *padded);
    for (size_t c = 0; c < g->c; c++)
        for (size_t s = 0; s < t; s++) {
            const float *from = in + (c * g->n + first + s) * g->h * g->w;
            float *to = padded + (c * g->tile + s) * g->ph * g->pw +
                        g->pad * g->pw + g->pad;
            for (size_t y = 0; y < g->h; y++)
                memcpy(to + y * g->pw, from + y * g->w, g->w * sizeof *to);
        }
    return (struct source){padded, g->tile * g->ph * g->pw};
}

/* Copy one block; of constant size, so that it is a few moves and no call. */
static inline void copy_block(float *restrict to, const float *restrict from)
{
    memcpy(to, from, COPY_FLOATS * sizeof *to);
}

/* Copy `rows` rows of `width`, `stride` apart, to lie side by side. Whole
 * blocks are copied; what runs over is overwritten by the next row. One and
 * two blocks are loops of their own: gcc would make a call of the third. */
VEC_CLONES static void pack_rows(float *restrict to, const float *restrict from,
                                 size_t rows, size_t width, size_t stride)
{
    if (width <= COPY_FLOATS) {
        for (size_t r = 0; r < rows; r++, to += width, from += stride)
            copy_block(to, from);
    } else if (width <= 2 * COPY_FLOATS) {
        for (size_t r = 0; r < rows; r++, to += width, from += stride) {
            copy_block(to, from);
            copy_block(to + COPY_FLOATS, from + COPY_FLOATS);
        }
    } else {
        for (size_t r = 0; r < rows; r++, to += width, from += stride)
            for (size_t j = 0; j < width; j += COPY_FLOATS)
                copy_block(to + j, from + j);
    }
}

VEC_CLONES static void add_rows(float *restrict to, const float *restrict from,
                                size_t rows, size_t width, size_t stride)
{
    for (size_t r = 0; r < rows; r++, to += stride, from += width)
        for (size_t j = 0; j < width; j++)
            to[j] += from[j];
}

/* Columns in ascending order of address: pack_rows() runs over. */
static void im2col(const struct geometry *g, struct source src, size_t t,
                   float *col)
{
    for (size_t c = 0; c < g->c; c++)
        for (size_t i = 0; i < g->k * g->k; i++) {
            const float *from = src.maps + c * src.channel +
                                (i / g->k) * g->pw + i % g->k;
            for (size_t s = 0; s < t; s++, col += g->plane)
                pack_rows(col, from + s * g->ph * g->pw, g->oh, g->ow, g->pw);
        }
}

/* The transpose of im2col: add the columns onto maps[c][..][ph][pw]. */
static void col2im(const struct geometry *g, const float *col, size_t t,
                   float *maps, size_t channel)
{
    for (size_t c = 0; c < g->c; c++)
        for (size_t i = 0; i < g->k * g->k; i++) {
            float *to = maps + c * channel + (i / g->k) * g->pw + i % g->k;
            for (size_t s = 0; s < t; s++, col += g->plane)
                add_rows(to + s * g->ph * g->pw, col, g->oh, g->ow, g->pw);
        }
}

static void conv_forward(const struct layer *l, const struct layer_pass *p)
{
    struct geometry g = geometry(l, p->n);
    float *padded = p->scratch, *col = padded + padded_floats(&g);
    for (size_t first = 0; first < g.n; first += g.tile) {
        size_t t = g.n - first < g.tile ? g.n - first : g.tile;
        size_t columns = t * g.plane;
        float *out = p->out + first * g.plane;
        im2col(&g, tile_source(&g, p->in, first, t, padded), t, col);
        blas_gemm(&(struct blas_gemm){.m = g.o,
                                      .n = columns,
                                      .k = g.patch,
                                      .a = p->x + l->weight,
                                      .lda = g.patch,
                                      .b = col,
                                      .ldb = columns,
                                      .c = out,
                                      .ldc = g.n * g.plane});
        for (size_t o = 0; o < g.o; o++)
            layer_bias(out + o * g.n * g.plane, columns, p->x[l->bias + o],
                       l->relu);
    }
}

/* Gradient by a tile's input: columns, then folded onto the maps. */
static void conv_backward_in(const struct geometry *g, const struct layer *l,
                             const struct layer_pass *p, size_t first, size_t t)
{
    float *padded = p->scratch, *col = padded + padded_floats(g);
    size_t columns = t * g->plane, map = g->h * g->w;
    blas_gemm(&(struct blas_gemm){.m = g->patch,
                                  .n = columns,
                                  .k = g->o,
                                  .a = p->x + l->weight,
                                  .lda = g->patch,
                                  .a_transposed = true,
                                  .b = p->d_out + first * g->plane,
                                  .ldb = g->n * g->plane,
                                  .c = col,
                                  .ldc = columns});
    float *d_in = p->d_in + first * map;
    if (g->pad == 0) {
        for (size_t c = 0; c < g->c; c++)
            memset(d_in + c * g->n * map, 0, t * map * sizeof *d_in);
        col2im(g, col, t, d_in, g->n * map);
        return;
    }
    memset(padded, 0, padded_floats(g) * sizeof *padded);
    col2im(g, col, t, padded, g->tile * g->ph * g->pw);
    for (size_t c = 0; c < g->c; c++)
        for (size_t s = 0; s < t; s++)
            for (size_t y = 0; y < g->h; y++)
                memcpy(d_in + (c * g->n + s) * map + y * g->w,
                       padded + (c * g->tile + s) * g->ph * g->pw +
                           (y + g->pad) * g->pw + g->pad,
                       g->w * sizeof *d_in);
}

/* to [cols][rows] = the transpose of from [rows][cols]. */
static void transpose(float *restrict to, const float *restrict from,
                      size_t rows, size_t cols)
{
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < rows; r++)
            to[c * rows + r] = from[r * cols + c];
}

static void conv_backward(const struct layer *l, const struct layer_pass *p)
{
    struct geometry g = geometry(l, p->n);
    float *padded = p->scratch, *col = padded + padded_floats(&g);
    float *d_weight = col + columns_floats(&g);
    if (l->relu)
        layer_relu_mask(p->d_out, p->out, g.o * g.n * g.plane);
    for (size_t o = 0; o < g.o; o++)
        p->grad[l->bias + o] =
            layer_sum(p->d_out + o * g.n * g.plane, g.n * g.plane);
    for (size_t first = 0; first < g.n; first += g.tile) {
        size_t t = g.n - first < g.tile ? g.n - first : g.tile;
        size_t columns = t * g.plane;
        im2col(&g, tile_source(&g, p->in, first, t, padded), t, col);
        blas_gemm(&(struct blas_gemm){.m = g.patch,
                                      .n = g.o,
                                      .k = columns,
                                      .a = col,
                                      .lda = columns,
                                      .b = p->d_out + first * g.plane,
                                      .ldb = g.n * g.plane,
                                      .b_transposed = true,
                                      .c = d_weight,
                                      .ldc = g.o,
                                      .beta = first > 0 ? 1.0f : 0.0f});
        if (p->d_in != NULL)
            conv_backward_in(&g, l, p, first, t);
    }
    transpose(p->grad + l->weight, d_weight, g.patch, g.o);
}

const struct layer_op layer_conv = {
    .name = "conv",
    .maps_in = true,
    .maps_out = true,
    .params = conv_params,
    .scratch = conv_scratch,
    .forward = conv_forward,
    .backward = conv_backward,
};
