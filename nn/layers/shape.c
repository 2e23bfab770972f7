/* nn/layers/shape.c -- layers without parameters: flatten, shortcut and add, which only copy or add
 * values, and GELU. */
#include "nn/layers/layer.h"

#include "nn/math/vec_math.h"

#include <string.h>

/* --- flatten: reorders each sample from [hw][c] to [c][hw] --- */

/* Writes the transpose of from[rows][cols] to to[cols][rows]. `add`: adds the transpose to to[]
 * instead. Processes squares that stay in the L1 cache. */
static void transpose(float *restrict to, const float *restrict from, const size_t size[2],
                      bool add)
{
    enum { SQUARE = 16 };
    size_t rows = size[0], cols = size[1];
    for (size_t r0 = 0; r0 < rows; r0 += SQUARE)
        for (size_t c0 = 0; c0 < cols; c0 += SQUARE)
            for (size_t c = c0; c < cols && c < c0 + SQUARE; c++)
                for (size_t r = r0; r < rows && r < r0 + SQUARE; r++)
                    to[c * rows + r] = from[r * cols + c] + (add ? to[c * rows + r] : 0.0f);
}

static void flatten_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t places = shape_places(l->in), c = l->in.c;
    for (size_t i = 0; i < p->n; i++)
        transpose(p->out + i * places * c, p->in + i * places * c, (size_t[2]){places, c}, false);
}

static void flatten_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t places = shape_places(l->in), c = l->in.c;
    for (size_t i = 0; i < p->n && p->d_in != NULL; i++)
        transpose(p->d_in + i * places * c, p->d_out + i * places * c, (size_t[2]){c, places},
                  p->add_in);
}

const struct layer_op layer_flatten = {
    .name = "flatten",
    .forward = flatten_forward,
    .backward = flatten_backward,
};

/* --- shortcut of a residual block (He et al. 2016, section 3.3, option A) --- */

/* Returns the index in the input of the position that is copied to position (y, x) of sample i's
 * output. */
static size_t shortcut_from(const struct layer *l, size_t i, size_t y, size_t x)
{
    size_t step = l->in.h / l->out.h;
    return ((i * l->in.h + step * y) * l->in.w + step * x) * l->in.c;
}

static size_t shortcut_before(const struct layer *l)
{
    assert(l->out.c >= l->in.c && l->in.h % l->out.h == 0
           && l->in.w / l->out.w == l->in.h / l->out.h);
    return (l->out.c - l->in.c) / 2;
}

/* Takes every second position if the output has half the height and width. Half of the new channels
 * come before the old channels and half after them. New channels are zero, as in the code of He et
 * al. 2016. */
static void shortcut_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t before = shortcut_before(l);
    float *out = p->out;
    memset(out, 0, p->n * shape_size(l->out) * sizeof *out);
    for (size_t i = 0; i < p->n; i++)
        for (size_t y = 0; y < l->out.h; y++)
            for (size_t x = 0; x < l->out.w; x++, out += l->out.c)
                memcpy(out + before, p->in + shortcut_from(l, i, y, x), l->in.c * sizeof *out);
}

static void shortcut_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t before = shortcut_before(l);
    const float *d = p->d_out;
    if (p->d_in == NULL)
        return;
    if (!p->add_in)
        memset(p->d_in, 0, p->n * shape_size(l->in) * sizeof *d);
    for (size_t i = 0; i < p->n; i++)
        for (size_t y = 0; y < l->out.h; y++)
            for (size_t x = 0; x < l->out.w; x++, d += l->out.c)
                layer_give(p->d_in + shortcut_from(l, i, y, x), d + before, l->in.c, p->add_in);
}

const struct layer_op layer_shortcut = {
    .name = "shortcut",
    .forward = shortcut_forward,
    .backward = shortcut_backward,
};

/* --- add: the sum of two inputs --- */

VEC_CLONES static void sum_of(float *restrict out, const float *restrict a, const float *restrict b,
                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static void add_forward(const struct layer *l, const struct layer_pass *p)
{
    sum_of(p->out, p->in, p->with, p->n * shape_size(l->out));
}

/* Adding has the derivative 1, so both inputs get the gradient of the output unchanged. */
static void add_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t n = p->n * shape_size(l->out);
    if (p->d_in != NULL)
        layer_give(p->d_in, p->d_out, n, p->add_in);
    if (p->d_with != NULL)
        layer_give(p->d_with, p->d_out, n, p->add_with);
}

const struct layer_op layer_add = {
    .name = "add",
    .forward = add_forward,
    .backward = add_backward,
};

/* --- GELU in its tanh form (Hendrycks, Gimpel 2016):
 *
 *     x (1 + tanh u) / 2 = x sigmoid(2 u),  u = sqrt(2 / pi) (x + 0.044715 x^3)
 *
 * The code uses the sigmoid, which needs one exponential and has no cancellation at x < 0. */

#define GELU_SCALE 1.5957691216057308f /* The constant 2 sqrt(2 / pi). */
#define GELU_CUBE  0.044715f

/* Returns the factor by which GELU multiplies x: sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715
 * x^3). */
static inline float gelu_share(float x)
{
    return vec_sigmoid(GELU_SCALE * (x + GELU_CUBE * x * x * x));
}

VEC_CLONES static void gelu(float *restrict out, const float *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] * gelu_share(in[i]);
}

/* Returns the derivative of GELU. x is limited to [-10, 10]: beyond that the derivative is 0 or 1,
 * and its terms would overflow. */
static inline float gelu_slope(float x)
{
    x = vec_math_select(x > 10.0f, 10.0f, x);
    x = vec_math_select(x < -10.0f, -10.0f, x);
    float s = gelu_share(x);
    float d = GELU_SCALE * (1.0f + 3.0f * GELU_CUBE * x * x);
    return s + x * s * (1.0f - s) * d;
}

VEC_CLONES static void gelu_back(float *restrict d_in, const float *restrict d_out,
                                 const float *restrict in, size_t n, bool add)
{
    if (add)
        for (size_t i = 0; i < n; i++)
            d_in[i] += d_out[i] * gelu_slope(in[i]);
    else
        for (size_t i = 0; i < n; i++)
            d_in[i] = d_out[i] * gelu_slope(in[i]);
}

static void gelu_forward(const struct layer *l, const struct layer_pass *p)
{
    gelu(p->out, p->in, p->n * shape_size(l->out));
}

static void gelu_backward(const struct layer *l, const struct layer_pass *p)
{
    if (p->d_in != NULL)
        gelu_back(p->d_in, p->d_out, p->in, p->n * shape_size(l->out), p->add_in);
}

const struct layer_op layer_gelu = {
    .name = "gelu",
    .forward = gelu_forward,
    .backward = gelu_backward,
};
