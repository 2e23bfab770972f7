/* nn/layers/pool.c -- 2x2 max-pooling, and the mean over all positions.
 *
 * The channels of a position are consecutive floats, which are processed RUN at a time. If the
 * number of channels is not a multiple of RUN, the last run ends where the position ends, so it
 * overlaps the run before it. If a position has fewer channels than RUN, it is processed as one
 * run, which writes beyond its end. Addresses are processed in ascending order, so the next
 * position (or the slack after the array) overwrites these floats.
 *
 * The forward pass stores one integer per output: which of its four inputs is the largest. Inputs 0
 * and 1 are in the upper row of the window, and 2 and 3 in the lower row. NOBODY means that no
 * input counts, because the ReLU gave 0. The backward pass reads only these integers and the
 * gradient.
 */
#include "nn/layers/layer.h"

#include <string.h>

enum { RUN = LAYER_SLACK, NOBODY = 4 };

/* Integer that is stored in an array of floats: the index of the largest of four inputs. */
typedef int32_t word __attribute__((may_alias));

/* Distances in floats between the four inputs of an output: from an input to its right neighbour,
 * and to the input below it. */
struct window
{
    size_t next, down;
};

static struct window window_of(const struct layer *l)
{
    assert(l->in.h == 2 * l->out.h && l->in.w == 2 * l->out.w);
    return (struct window){l->in.c, (size_t)l->in.w * l->in.c};
}

/* Channels are processed in runs of RUN. Returns the first channel of run r, for a position with c
 * channels. The last run may overlap the run before it. */
static inline size_t run_at(size_t r, size_t c)
{
    return (r + 1) * RUN <= c || c < RUN ? r * RUN : c - RUN;
}

/* Computes RUN outputs of max-pooling. Of equal values the first wins, as in PyTorch. NaN wins over
 * all values. */
static inline __attribute__((always_inline)) void pool_run(float *restrict out,
                                                           word *restrict which,
                                                           const float *restrict in,
                                                           struct window w, bool relu, bool keep)
{
    const float *restrict b = in + w.next;
    const float *restrict c = in + w.down, *restrict d = c + w.next;
    for (size_t j = 0; j < RUN; j++) {
        float m = in[j];
        int32_t k = 0;
        bool more = (b[j] > m) | (b[j] != b[j]);
        m = more ? b[j] : m;
        k = more ? 1 : k;
        more = (c[j] > m) | (c[j] != c[j]);
        m = more ? c[j] : m;
        k = more ? 2 : k;
        more = (d[j] > m) | (d[j] != d[j]);
        m = more ? d[j] : m;
        k = more ? 3 : k;
        if (relu) {
            k = m <= 0.0f ? NOBODY : k;
            m = m < 0.0f ? 0.0f : m;
        }
        out[j] = m;
        if (keep)
            which[j] = k;
    }
}

/* Computes one row of outputs. `in` is the beginning of the upper of the two input rows. */
VEC_CLONES static void pool_row(float *out, word *which, const float *in, const struct layer *l)
{
    struct window w = window_of(l);
    size_t c = w.next, runs = (c + RUN - 1) / RUN;
    for (size_t x = 0; x < l->out.w; x++)
        for (size_t r = 0; r < runs; r++) {
            size_t j = run_at(r, c), to = x * c + j;
            const float *from = in + 2 * x * c + j;
            word *kept = which == NULL ? NULL : which + to;
            if (l->relu && which != NULL)
                pool_run(out + to, kept, from, w, true, true);
            else if (l->relu)
                pool_run(out + to, kept, from, w, true, false);
            else
                pool_run(out + to, kept, from, w, false, which != NULL);
        }
}

static size_t maxpool_keep(const struct layer *l, uint32_t n)
{
    return n * shape_size(l->out) + RUN;
}

static void maxpool_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t rows = p->n * (size_t)l->out.h, width = (size_t)l->out.w * l->out.c;
    word *which = (word *)p->keep;
    for (size_t r = 0; r < rows; r++)
        pool_row(p->out + r * width, which == NULL ? NULL : which + r * width,
                 p->in + 4 * r * width, l);
}

/* Writes the gradient of RUN inputs at place k (0 to 3) of their 2x2 windows. The loop must not be
 * unrolled, because gcc would then not vectorise it. */
static inline __attribute__((always_inline)) void give_run(float *restrict to,
                                                           const float *restrict d,
                                                           const word *restrict which, int32_t k)
{
#pragma GCC unroll 1
    for (size_t j = 0; j < RUN; j++) {
        float v = d[j];
        to[j] = which[j] == k ? v : 0.0f;
    }
}

/* Writes the gradient of one row of inputs, given one row of output gradients `d`. k = 0: the upper
 * of the two input rows. k = 2: the lower one. */
VEC_CLONES static void give_row(float *to, const float *d, const word *which, const struct layer *l,
                                int32_t k)
{
    size_t c = l->in.c, runs = (c + RUN - 1) / RUN;
    for (size_t x = 0; x < l->out.w; x++)
        for (size_t r = 0; r < runs; r++) {
            size_t j = run_at(r, c), from = x * c + j;
            float *left = to + 2 * x * c + j;
            give_run(left, d + from, which + from, k);
            give_run(left + c, d + from, which + from, k + 1);
        }
}

static void add_row(float *to, const float *d, const word *which, const struct layer *l, int32_t k)
{
    size_t c = l->in.c;
    for (size_t i = 0; i < l->out.w * c; i++) {
        int32_t side = which[i] - k;
        if (side == 0 || side == 1)
            to[(2 * (i / c) + (size_t)side) * c + i % c] += d[i];
    }
}

static void maxpool_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t rows = p->n * (size_t)l->out.h, width = (size_t)l->out.w * l->out.c;
    const word *which = (const word *)p->keep;
    if (p->d_in == NULL)
        return;
    for (size_t r = 0; r < rows; r++)
        for (int32_t k = 0; k < NOBODY; k += 2)
            (p->add_in ? add_row : give_row)(p->d_in + (4 * r + (size_t)k) * width,
                                             p->d_out + r * width, which + r * width, l, k);
}

const struct layer_op layer_maxpool = {
    .name = "maxpool",
    .keep = maxpool_keep,
    .forward = maxpool_forward,
    .backward = maxpool_backward,
};

/* --- average pooling: the mean over all positions --- */

static void avgpool_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t places = shape_places(l->in), c = l->in.c;
    for (size_t i = 0; i < p->n; i++) {
        float *out = p->out + i * c;
        layer_column_sums(out, p->in + i * places * c, places, c);
        for (size_t j = 0; j < c; j++)
            out[j] /= (float)places;
    }
}

static void avgpool_backward(const struct layer *l, const struct layer_pass *p)
{
    size_t places = shape_places(l->in), c = l->in.c;
    if (p->d_in == NULL)
        return;
    for (size_t i = 0; i < p->n; i++) {
        float *d = p->d_out + i * c;
        for (size_t j = 0; j < c; j++)
            d[j] /= (float)places;
        for (size_t k = 0; k < places; k++)
            layer_give(p->d_in + (i * places + k) * c, d, c, p->add_in);
    }
}

const struct layer_op layer_avgpool = {
    .name = "avgpool",
    .forward = avgpool_forward,
    .backward = avgpool_backward,
};
