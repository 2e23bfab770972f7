/* nn/layers/winograd.c -- 3x3 convolutions by Winograd's method: divides the work into blocks that
 * stay in the cache. The transforms are in winograd_transform.c. */
#include "nn/layers/winograd.h"

#include "nn/layers/winograd_transform.h"
#include "nn/math/tile.h"

#include <assert.h>
#include <string.h>

enum {
    XI = 16, /* Number of matrices: one for each of the 4x4 elements of a transformed tile. */
    TAPS = 9,
    /* Unused floats after each of the 16 matrices. Without them, the sizes of the matrices would be
     * powers of two. The same element of all matrices would then be in the same set of the cache,
     * and the matrices would evict each other. */
    APART = 16,
    /* Approximate number of transformed weights in one slice (group of output channels that is
     * processed at a time). */
    U_FLOATS = 1 << 20,
    /* If a slice (group of output channels) has more transformed weights than this, the weights do
     * not stay in the cache and are read again for each block of tiles. */
    U_CACHED = 1 << 16,
    /* Approximate number of floats in the transformed inputs and outputs of a block (group of tiles
     * processed together). */
    BLOCK_FLOATS = 1 << 17,
    /* Least number of tiles in a block whose transformed weights do not fit in the cache. The
     * number is twice as large if there are several slices of output channels, because each block
     * then computes the transformed weights again. */
    BLOCK_TILES = 128,
    WEIGHTS_FLOATS = TAPS * WINOGRAD_LANES * WINOGRAD_LANES
};

/* Sizes and scratch areas of one pass, from maps of `from` channels to maps of `to` channels. */
struct winograd
{
    const struct winograd_kernels *kernels;
    size_t h, w, from, to;
    /* Number of strips (rows of 2x2 tiles) in the batch, and number of tiles in a strip. */
    size_t strips, strip_tiles;
    /* Number of strips (rows of tiles) in a block, and of output channels in a slice. */
    size_t block, slice;
    size_t apart_u, apart_v, apart_m;
    float *zeros, *weights, *u, *v, *m;
    size_t floats; /* Size of the scratch memory of the pass, in floats. */
};

/* Returns the number of output channels in a slice: all channels, or fewer if their transformed
 * weights would be more than U_FLOATS. */
static size_t slice_channels(size_t from, size_t to)
{
    size_t fit = U_FLOATS / (XI * from) / WINOGRAD_LANES * WINOGRAD_LANES;
    return fit < WINOGRAD_LANES ? WINOGRAD_LANES : layer_lesser(fit, to);
}

/* Returns the number of strips (rows of 2x2 tiles) in a block: as many as keep the transformed
 * inputs and outputs in the cache. If each block must read or compute the transformed weights
 * again, a block has more strips. This extra work then costs less than the products. */
static size_t block_strips(const struct winograd *g)
{
    size_t tiles = BLOCK_FLOATS / (XI * (g->from + g->slice));
    size_t enough = g->slice < g->to ? 2 * BLOCK_TILES : BLOCK_TILES;
    if (XI * g->from * g->slice > U_CACHED && tiles < enough)
        tiles = enough;
    size_t strips = tiles / g->strip_tiles;
    return strips < 1 ? 1 : layer_lesser(strips, g->strips);
}

static struct winograd plan_blocks(const struct layer *l, uint32_t n, bool back, float *scratch)
{
    struct winograd g = {.kernels = winograd_kernels(),
                         .h = l->in.h,
                         .w = l->in.w,
                         .from = back ? l->out.c : l->in.c,
                         .to = back ? l->in.c : l->out.c};
    g.strips = (size_t)n * g.h / 2;
    g.strip_tiles = g.w / 2;
    g.slice = slice_channels(g.from, g.to);
    g.block = block_strips(&g);
    size_t tiles = g.block * g.strip_tiles;
    g.apart_u = g.from * g.slice + APART;
    g.apart_v = tiles * g.from + APART;
    g.apart_m = tiles * g.slice + APART;
    g.floats = g.w * g.from + WEIGHTS_FLOATS + XI * (g.apart_u + g.apart_v + g.apart_m);
    if (scratch != NULL) {
        g.zeros = scratch;
        g.weights = g.zeros + g.w * g.from;
        g.u = g.weights + WEIGHTS_FLOATS;
        g.v = g.u + XI * g.apart_u;
        g.m = g.v + XI * g.apart_v;
    }
    return g;
}

/* A tile has 2x2 outputs, so height and width must be even. A vector holds 16 channels, so the
 * numbers of channels must be multiples of 16. */
bool winograd_fits(const struct layer *l)
{
    return l->kernel == 3 && l->stride == 1 && l->pad == 1 && l->in.c % WINOGRAD_LANES == 0
           && l->out.c % WINOGRAD_LANES == 0 && l->in.h % 2 == 0 && l->in.w % 2 == 0;
}

size_t winograd_scratch(const struct layer *l, uint32_t n, bool training)
{
    size_t forward = plan_blocks(l, n, false, NULL).floats;
    size_t back = training ? plan_blocks(l, n, true, NULL).floats : 0;
    return forward > back ? forward : back;
}

/* Transforms `count` strips (rows of 2x2 tiles) of the input maps, starting at strip `first`.
 * Writes the result to g->v. */
static void maps_in(const struct winograd *g, const float *maps, size_t first, size_t count)
{
    size_t row = g->w * g->from;
    struct winograd_strip s = {
        .w = g->w, .channels = g->from, .columns = g->from, .apart = g->apart_v, .matrix = g->v};
    for (size_t i = first; i < first + count; i++) {
        size_t y = i % (g->h / 2) * 2;
        const float *at = maps + 2 * i * row;
        s.in[0] = y > 0 ? at - row : g->zeros;
        s.in[1] = at;
        s.in[2] = at + row;
        s.in[3] = y + 2 < g->h ? at + 2 * row : g->zeros;
        g->kernels->strip_in(&s);
        s.matrix += g->strip_tiles * g->from;
    }
}

/* Output maps of a convolution, and what to do with each output before it is stored. */
struct target
{
    float *maps;
    const float *bias;
    bool add, relu;
};

/* Transforms the products in g->m to outputs, for one slice of output channels. Applies bias and
 * ReLU. */
static void maps_out(const struct winograd *g, const struct target *to, size_t slice, size_t first,
                     size_t count)
{
    size_t columns = layer_lesser(g->slice, g->to - slice), row = g->w * g->to;
    struct winograd_strip s = {.w = g->w,
                               .channels = g->to,
                               .columns = columns,
                               .apart = g->apart_m,
                               .matrix = g->m,
                               .add = to->add,
                               .relu = to->relu};
    if (to->bias != NULL)
        s.bias = to->bias + slice;
    for (size_t i = first; i < first + count; i++) {
        s.out[0] = to->maps + 2 * i * row + slice;
        s.out[1] = s.out[0] + row;
        g->kernels->strip_out(&s);
        s.matrix += g->strip_tiles * columns;
    }
}

/* Transforms the gradient of the outputs, for one slice of output channels. Writes the result to
 * g->m. */
static void gradient_in(const struct winograd *g, const float *maps, size_t slice, size_t first,
                        size_t count)
{
    size_t columns = layer_lesser(g->slice, g->to - slice), row = g->w * g->to;
    struct winograd_strip s = {
        .w = g->w, .channels = g->to, .columns = columns, .apart = g->apart_m, .matrix = g->m};
    for (size_t i = first; i < first + count; i++) {
        s.in[0] = maps + 2 * i * row + slice;
        s.in[1] = s.in[0] + row;
        g->kernels->strip_gradient(&s);
        s.matrix += g->strip_tiles * columns;
    }
}

/* Writes the transpose of from[rows][cols] to to[cols][rows]. */
static void transpose(float *restrict to, size_t ld_to, const float *restrict from, size_t ld_from,
                      size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            to[j * ld_to + i] = from[i * ld_from + j];
}

/* Transforms the weights of one slice of output channels. `weights` is [o][c][9], and the result
 * g->u is a matrix c x (channels of the slice). One vector holds 16 output channels. */
static void weights_forward(const struct winograd *g, const float *weights, size_t slice)
{
    size_t columns = layer_lesser(g->slice, g->to - slice), row = g->from * TAPS;
    for (size_t o = 0; o < columns; o += WINOGRAD_LANES)
        for (size_t c = 0; c < g->from; c += WINOGRAD_LANES) {
            transpose(g->weights, WINOGRAD_LANES, weights + (slice + o) * row + c * TAPS, row,
                      WINOGRAD_LANES, WINOGRAD_LANES * TAPS);
            for (size_t i = 0; i < WINOGRAD_LANES; i++)
                g->kernels->weights_in(g->u + (c + i) * columns + o, g->apart_u,
                                       g->weights + i * TAPS * WINOGRAD_LANES);
        }
}

/* Transforms the gradient of the transformed weights, in g->u, to the gradient of the weights, for
 * one slice of output channels. */
static void weights_gradient(const struct winograd *g, float *grad, size_t slice)
{
    size_t columns = layer_lesser(g->slice, g->to - slice), row = g->from * TAPS;
    for (size_t o = 0; o < columns; o += WINOGRAD_LANES)
        for (size_t c = 0; c < g->from; c += WINOGRAD_LANES) {
            for (size_t i = 0; i < WINOGRAD_LANES; i++)
                g->kernels->weights_out(g->weights + i * TAPS * WINOGRAD_LANES,
                                        g->u + (c + i) * columns + o, g->apart_u);
            transpose(grad + (slice + o) * row + c * TAPS, row, g->weights, WINOGRAD_LANES,
                      WINOGRAD_LANES * TAPS, WINOGRAD_LANES);
        }
}

/* Transforms the weights of one slice of input channels for the gradient of the input. `weights` is
 * [o][c][9], and the result g->u is a matrix o x (channels of the slice). One vector holds 16 input
 * channels. products() rotates the weights by 180 degrees. */
static void weights_back(const struct winograd *g, const float *weights, size_t slice)
{
    size_t columns = layer_lesser(g->slice, g->to - slice), row = g->to * TAPS;
    for (size_t o = 0; o < g->from; o++)
        for (size_t c = 0; c < columns; c += WINOGRAD_LANES) {
            transpose(g->weights, WINOGRAD_LANES, weights + o * row + (slice + c) * TAPS, TAPS,
                      WINOGRAD_LANES, TAPS);
            g->kernels->weights_in(g->u + o * columns + c, g->apart_u, g->weights);
        }
}

/* Multiplies transformed inputs by transformed weights: g->m = g->v * g->u, for `count` strips.
 * With `turned`, the weights are rotated by 180 degrees: in each 4x4 matrix, the first and last row
 * are swapped, and so are the first and last column. */
static void products(const struct winograd *g, size_t slice, size_t count, bool turned)
{
    static const size_t swap[4] = {3, 1, 2, 0};
    size_t columns = layer_lesser(g->slice, g->to - slice);
    for (size_t xi = 0; xi < XI; xi++) {
        size_t of = turned ? 4 * swap[xi / 4] + swap[xi % 4] : xi;
        tile_product(&(struct tile_product){.m = count * g->strip_tiles,
                                            .n = columns,
                                            .k = g->from,
                                            .a = g->v + xi * g->apart_v,
                                            .a_row = g->from,
                                            .a_col = 1,
                                            .b = g->u + of * g->apart_u,
                                            .ldb = columns,
                                            .c = g->m + xi * g->apart_m,
                                            .ldc = columns});
    }
}

/* Computes the gradient of the transformed weights: g->u = g->v^T * g->m, where g->m holds the
 * transformed gradient of the outputs. With `add`, adds the product to g->u. */
static void gradient_products(const struct winograd *g, size_t slice, size_t count, bool add)
{
    size_t columns = layer_lesser(g->slice, g->to - slice);
    for (size_t xi = 0; xi < XI; xi++)
        tile_product(&(struct tile_product){.m = g->from,
                                            .n = columns,
                                            .k = count * g->strip_tiles,
                                            .a = g->v + xi * g->apart_v,
                                            .a_row = 1,
                                            .a_col = g->from,
                                            .b = g->m + xi * g->apart_m,
                                            .ldb = columns,
                                            .c = g->u + xi * g->apart_u,
                                            .ldc = columns,
                                            .add = add});
}

typedef void weights_fn(const struct winograd *g, const float *weights, size_t slice);

/* Computes the convolution of all maps, forward or for the gradient of the input. If all output
 * channels are one slice, the weights are transformed only once. */
static void convolve(const struct winograd *g, const float *maps, const float *weights,
                     const struct target *to, bool back)
{
    weights_fn *make = back ? weights_back : weights_forward;
    memset(g->zeros, 0, g->w * g->from * sizeof *g->zeros);
    for (size_t first = 0; first < g->strips; first += g->block) {
        size_t count = layer_lesser(g->block, g->strips - first);
        maps_in(g, maps, first, count);
        for (size_t slice = 0; slice < g->to; slice += g->slice) {
            if (first == 0 || g->slice < g->to)
                make(g, weights, slice);
            products(g, slice, count, back);
            maps_out(g, to, slice, first, count);
        }
    }
}

void winograd_forward(const struct layer *l, const struct layer_pass *p)
{
    struct winograd g = plan_blocks(l, p->n, false, p->scratch);
    struct target to = {.maps = p->out, .bias = l->bias ? p->x + l->at[1] : NULL, .relu = l->relu};
    convolve(&g, p->in, p->x + l->at[0], &to, false);
}

void winograd_d_in(const struct layer *l, const struct layer_pass *p)
{
    struct winograd g = plan_blocks(l, p->n, true, p->scratch);
    struct target to = {.maps = p->d_in, .add = p->add_in};
    convolve(&g, p->d_out, p->x + l->at[0], &to, true);
}

/* Computes the gradient of the weights. If the whole batch is one block, the inputs are transformed
 * only once. */
void winograd_d_weight(const struct layer *l, const struct layer_pass *p)
{
    struct winograd g = plan_blocks(l, p->n, false, p->scratch);
    memset(g.zeros, 0, g.w * g.from * sizeof *g.zeros);
    for (size_t slice = 0; slice < g.to; slice += g.slice) {
        for (size_t first = 0; first < g.strips; first += g.block) {
            size_t count = layer_lesser(g.block, g.strips - first);
            if (slice == 0 || g.block < g.strips)
                maps_in(&g, p->in, first, count);
            gradient_in(&g, p->d_out, slice, first, count);
            gradient_products(&g, slice, count, first > 0);
        }
        weights_gradient(&g, p->grad + l->at[0], slice);
    }
}
