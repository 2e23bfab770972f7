/* nn/layers/conv.c -- the convolution: square kernel, stride 1 or 2, `pad` zeros on every side.
 *
 * Convolutions that winograd_fits() accepts are computed by nn/layers/winograd.c. This file
 * computes all others as matrix products. One factor is the input map itself, without a copy. The
 * kernel at one output position covers `kernel` runs of kernel * c consecutive floats, one run per
 * row of the map. The runs of the next position start stride * c floats further. The drawing shows
 * the runs of one position in brackets:
 *
 *   frame [ph][pw][c]: a map with its padding       a row of the output
 *      . [. . .] . . .    k = kernel * c,           [ow][o]
 *      . [. . .] . . .    `kernel` such runs
 *      . [. . .] . . .
 *
 *   forward               out (ow x o)         = positions (ow x runs) * weight (runs x o)
 *   gradient of weights   d_weight (run x o)  += positions^T           * d_out (.. x o)
 *   gradient of input     columns (ow x runs)  = d_out (ow x o) * weight^T; the columns are
 *                         then added to the frame, run by run
 *
 * The weights are in the order [kernel row][kernel column][c].
 *
 *   scratch:  [ frame | weights | columns of some rows ]
 *
 * In the columns, each run is padded with zeros to whole vectors. The loop that adds a run to the
 * frame also adds these zeros to the floats after the run, which does not change them.
 */
#include "nn/layers/layer.h"

#include "nn/layers/winograd.h"
#include "nn/math/tile.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    /* Approximate number of floats in the column matrix that is computed at once. */
    COLUMNS_FLOATS = 1 << 14
};

/* Sizes of one pass, and pointers to its areas of the scratch memory. */
struct geometry
{
    size_t c, o, kernel, stride, pad;
    /* Height and width of the map, of the frame (map with its padding), and of the output. */
    size_t h, w, ph, pw, oh, ow;
    /* Number of floats in one row of the kernel, which are consecutive in the map: kernel * c. */
    size_t run;
    size_t map, out; /* Number of floats of one sample, in the input map and in the output. */
    /* wide: floats in a row of the column matrix. rows: number of output rows whose columns are
     * computed at once. */
    size_t wide, rows;
    size_t frame_floats;
    float *frame, *weights, *columns;
};

/* Rounds a number of floats up to whole vectors, so that the next area of the scratch memory begins
 * at an aligned address. */
static size_t whole(size_t floats)
{
    return (floats + LAYER_SLACK - 1) / LAYER_SLACK * LAYER_SLACK;
}

static struct geometry geometry(const struct layer *l, float *scratch)
{
    struct geometry g = {.c = l->in.c,
                         .o = l->out.c,
                         .kernel = l->kernel,
                         .stride = l->stride,
                         .pad = l->pad,
                         .h = l->in.h,
                         .w = l->in.w,
                         .oh = l->out.h,
                         .ow = l->out.w};
    g.ph = g.h + 2 * g.pad;
    g.pw = g.w + 2 * g.pad;
    assert(g.kernel <= g.ph && (g.ph - g.kernel) / g.stride + 1 == g.oh);
    assert(g.kernel <= g.pw && (g.pw - g.kernel) / g.stride + 1 == g.ow);
    g.run = g.kernel * g.c;
    g.map = g.h * g.w * g.c;
    g.out = g.oh * g.ow * g.o;
    g.wide = g.kernel * whole(g.run);
    g.rows = COLUMNS_FLOATS / (g.ow * g.wide);
    g.rows = g.rows < 1 ? 1 : g.rows < g.oh ? g.rows : g.oh;
    g.frame_floats = g.pad > 0 ? whole(g.ph * g.pw * g.c) + LAYER_SLACK : 0;
    if (scratch != NULL) {
        g.frame = scratch;
        g.weights = g.frame + g.frame_floats;
        g.columns = g.weights + whole(g.wide * g.o);
    }
    return g;
}

static size_t conv_params(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX])
{
    uint32_t k = l->kernel, fan_in = l->in.c * k * k;
    float bound = 1.0f / sqrtf((float)fan_in);
    p[0] = (struct layer_param){.of = "weight",
                                .n_dims = 4,
                                .dims = {l->out.c, l->in.c, k, k},
                                .decays = true,
                                .trained = true,
                                .bound = bound};
    p[1] = (struct layer_param){
        .of = "bias", .n_dims = 1, .dims = {l->out.c}, .trained = true, .bound = bound};
    return l->bias ? 2 : 1;
}

static size_t conv_scratch(const struct layer *l, uint32_t n, bool training)
{
    if (winograd_fits(l))
        return winograd_scratch(l, n, training);
    struct geometry g = geometry(l, NULL);
    size_t columns = training ? g.rows * g.ow * g.wide : 0;
    return g.frame_floats + whole(g.wide * g.o) + columns;
}

static double conv_products(const struct layer *l)
{
    return (double)shape_size(l->out) * l->in.c * l->kernel * l->kernel;
}

/* Reorders weights [o][c][rows][cols] to [rows][cols][c][o]. */
static void pack_weights(const struct geometry *g, const float *weights)
{
    size_t taps = g->kernel * g->kernel;
    for (size_t o = 0; o < g->o; o++)
        for (size_t c = 0; c < g->c; c++)
            for (size_t i = 0; i < taps; i++)
                g->weights[(i * g->c + c) * g->o + o] = *weights++;
}

/* Reorders weights [rows][cols][c][o] back to [o][c][rows][cols]. */
static void unpack_weights(const struct geometry *g, float *weights)
{
    size_t taps = g->kernel * g->kernel;
    for (size_t o = 0; o < g->o; o++)
        for (size_t c = 0; c < g->c; c++)
            for (size_t i = 0; i < taps; i++)
                *weights++ = g->weights[(i * g->c + c) * g->o + o];
}

/* Reorders weights [o][c][rows][cols] to [o][rows][cols][c]. Each [cols][c] is padded with zeros to
 * whole vectors. */
static void turn_weights(const struct geometry *g, const float *weights)
{
    size_t k = g->kernel, run = g->wide / k;
    memset(g->weights, 0, g->o * g->wide * sizeof *g->weights);
    for (size_t o = 0; o < g->o; o++)
        for (size_t c = 0; c < g->c; c++)
            for (size_t i = 0; i < k * k; i++)
                g->weights[o * g->wide + i / k * run + i % k * g->c + c] = *weights++;
}

/* Sets the frame (padded map) to 0. This is done once per pass and not for each sample: only the
 * inside of the frame is overwritten, so the padding stays 0. */
static void clear_frame(const struct geometry *g)
{
    memset(g->frame, 0, g->frame_floats * sizeof *g->frame);
}

/* Returns a map with zero padding around it. If the layer has no padding, returns the map
 * itself. */
static const float *framed(const struct geometry *g, const float *map)
{
    if (g->pad == 0)
        return map;
    float *to = g->frame + (g->pad * g->pw + g->pad) * g->c;
    for (size_t y = 0; y < g->h; y++)
        memcpy(to + y * g->pw * g->c, map + y * g->w * g->c, g->w * g->c * sizeof *to);
    return g->frame;
}

static void conv_forward(const struct layer *l, const struct layer_pass *p)
{
    if (winograd_fits(l)) {
        winograd_forward(l, p);
        return;
    }
    struct geometry g = geometry(l, p->scratch);
    pack_weights(&g, p->x + l->at[0]);
    clear_frame(&g);
    for (size_t s = 0; s < p->n; s++) {
        const float *frame = framed(&g, p->in + s * g.map);
        for (size_t y = 0; y < g.oh; y++)
            tile_product(&(struct tile_product){.m = g.ow,
                                                .n = g.o,
                                                .k = g.run,
                                                .a = frame + y * g.stride * g.pw * g.c,
                                                .a_row = g.stride * g.c,
                                                .a_col = 1,
                                                .runs = g.kernel,
                                                .a_run = g.pw * g.c,
                                                .b = g.weights,
                                                .ldb = g.o,
                                                .c = p->out + s * g.out + y * g.ow * g.o,
                                                .ldc = g.o,
                                                .bias = l->bias ? p->x + l->at[1] : NULL,
                                                .relu = l->relu});
    }
}

/* Computes the gradient of the weights: for each kernel row, one product over all positions of a
 * sample. */
static void d_weight(const struct layer *l, const struct layer_pass *p)
{
    struct geometry g = geometry(l, p->scratch);
    clear_frame(&g);
    for (size_t s = 0; s < p->n; s++) {
        const float *frame = framed(&g, p->in + s * g.map);
        for (size_t i = 0; i < g.kernel; i++)
            tile_product(&(struct tile_product){.m = g.run,
                                                .n = g.o,
                                                .k = g.ow,
                                                .a = frame + i * g.pw * g.c,
                                                .a_row = 1,
                                                .a_col = g.stride * g.c,
                                                .runs = g.oh,
                                                .a_run = g.stride * g.pw * g.c,
                                                .b = p->d_out + s * g.out,
                                                .ldb = g.o,
                                                .c = g.weights + i * g.run * g.o,
                                                .ldc = g.o,
                                                .add = s > 0});
    }
    unpack_weights(&g, p->grad + l->at[0]);
}

/* Adds the columns of one output row to the padded map, beginning at `frame`. The columns are the
 * gradients of the inputs that each output reads. */
VEC_CLONES static void add_columns(const struct geometry *g, float *frame,
                                   const float *restrict from)
{
    size_t row = g->pw * g->c, vectors = g->wide / g->kernel / LAYER_SLACK;
    for (size_t x = 0; x < g->ow; x++, frame += g->stride * g->c)
        for (size_t i = 0; i < g->kernel; i++) {
            float *restrict to = frame + i * row;
            for (size_t v = 0; v < vectors; v++)
                for (size_t j = 0; j < LAYER_SLACK; j++)
                    *to++ += *from++;
        }
}

/* Copies the inside of the frame (a map with its zero padding) to a map. With `add`, adds it to the
 * map instead. */
static void unframe(const struct geometry *g, float *map, bool add)
{
    const float *from = g->frame + (g->pad * g->pw + g->pad) * g->c;
    for (size_t y = 0; y < g->h; y++)
        layer_give(map + y * g->w * g->c, from + y * g->pw * g->c, g->w * g->c, add);
}

/* Computes the columns (gradients of the inputs that each output reads) of `count` output rows from
 * row y on, and adds them to the frame. */
static void add_rows(const struct geometry *g, const float *d_out, float *frame, size_t y,
                     size_t count)
{
    tile_product(&(struct tile_product){.m = count * g->ow,
                                        .n = g->wide,
                                        .k = g->o,
                                        .a = d_out + y * g->ow * g->o,
                                        .a_row = g->o,
                                        .a_col = 1,
                                        .b = g->weights,
                                        .ldb = g->wide,
                                        .c = g->columns,
                                        .ldc = g->wide});
    for (size_t i = 0; i < count; i++)
        add_columns(g, frame + (y + i) * g->stride * g->pw * g->c,
                    g->columns + i * g->ow * g->wide);
}

/* Computes the gradient of the input. Its columns are added to a frame (map with its padding), or
 * to d_in itself if the layer has no padding. */
static void d_in(const struct layer *l, const struct layer_pass *p)
{
    struct geometry g = geometry(l, p->scratch);
    turn_weights(&g, p->x + l->at[0]);
    for (size_t s = 0; s < p->n; s++) {
        float *map = p->d_in + s * g.map;
        if (g.pad > 0)
            clear_frame(&g);
        else if (!p->add_in)
            memset(map, 0, g.map * sizeof *map);
        for (size_t y = 0; y < g.oh; y += g.rows) {
            size_t count = g.oh - y < g.rows ? g.oh - y : g.rows;
            add_rows(&g, p->d_out + s * g.out, g.pad > 0 ? g.frame : map, y, count);
        }
        if (g.pad > 0)
            unframe(&g, map, p->add_in);
    }
}

static void conv_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t places = (size_t)p->n * shape_places(l->out);
    bool winograd = winograd_fits(l);
    if (l->relu)
        layer_relu_mask(p->d_out, p->out, places * l->out.c);
    if (l->bias)
        layer_column_sums(p->grad + l->at[1], p->d_out, places, l->out.c);
    (winograd ? winograd_d_weight : d_weight)(l, p);
    if (p->d_in != NULL)
        (winograd ? winograd_d_in : d_in)(l, p);
}

const struct layer_op layer_conv = {
    .name = "conv",
    .params = conv_params,
    .scratch = conv_scratch,
    .forward = conv_forward,
    .backward = conv_backward,
    .products = conv_products,
};
