/* tests/unit/nn_ref.h -- layers by naive loops in double: what nn/ is held to.
 *
 * All values are [n][c][h][w], whatever layout the fast layer uses. Gradients
 * are checked against central differences of these functions: in double a step
 * of 1e-6 leaves about nine digits, and hardly ever crosses a kink (a maximum
 * that changes hands, a ReLU that opens). */
#ifndef TESTS_UNIT_NN_REF_H
#define TESTS_UNIT_NN_REF_H

#include "nn/layer.h"
#include "nn/rng.h"

#include <math.h>
#include <stdlib.h>

static inline void *ref_alloc(size_t n, size_t size)
{
    void *p = aligned_alloc(64, (n * size + 63) / 64 * 64 + 64);
    if (p == NULL)
        abort();
    return p;
}

/* n normal deviates, in both precisions (equal values). */
static inline void ref_noise(uint64_t key, double scale, double *d, float *f,
                             size_t n)
{
    struct rng r = rng_stream(key);
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)(scale * rng_normal(&r));
        d[i] = (double)f[i];
    }
}

/* Something that must be overwritten before it is used. */
static inline void ref_poison(float *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f[i] = NAN;
}

static inline double ref_conv_at(const struct layer *l, const double *x,
                                 const double *in, const size_t at[3])
{
    double sum = x[l->bias + at[0]];
    for (size_t c = 0; c < l->in.c; c++)
        for (size_t i = 0; i < l->kernel; i++)
            for (size_t j = 0; j < l->kernel; j++) {
                size_t y = at[1] + i, z = at[2] + j; /* Padded coordinates. */
                if (y < l->pad || y >= l->in.h + l->pad || z < l->pad ||
                    z >= l->in.w + l->pad)
                    continue;
                sum += x[l->weight + ((at[0] * l->in.c + c) * l->kernel + i) *
                                         l->kernel + j] *
                       in[(c * l->in.h + y - l->pad) * l->in.w + z - l->pad];
            }
    return sum;
}

static inline double ref_pool_at(const struct layer *l, const double *in,
                                 const size_t at[3])
{
    double top = -INFINITY;
    for (size_t i = 0; i < 4; i++) {
        size_t y = 2 * at[1] + i / 2, z = 2 * at[2] + i % 2;
        top = fmax(top, in[(at[0] * l->in.h + y) * l->in.w + z]);
    }
    return top;
}

static inline double ref_dense_at(const struct layer *l, const double *x,
                                  const double *in, size_t o)
{
    size_t n = shape_size(l->in);
    double sum = x[l->bias + o];
    for (size_t i = 0; i < n; i++)
        sum += x[l->weight + o * n + i] * in[i];
    return sum;
}

static inline double ref_at(const struct layer *l, const double *x,
                            const double *in, size_t o)
{
    size_t map = (size_t)l->out.h * l->out.w;
    size_t at[3] = {o / map, o % map / l->out.w, o % l->out.w};
    switch (l->kind) {
    case LAYER_CONV:
        return ref_conv_at(l, x, in, at);
    case LAYER_DENSE:
        return ref_dense_at(l, x, in, o);
    case LAYER_MAXPOOL:
        return ref_pool_at(l, in, at);
    case LAYER_FLATTEN:
        return in[o];
    }
    abort();
}

static inline void ref_forward(const struct layer *l, size_t n, const double *x,
                               const double *in, double *out)
{
    size_t n_in = shape_size(l->in), n_out = shape_size(l->out);
    for (size_t s = 0; s < n; s++)
        for (size_t o = 0; o < n_out; o++) {
            double y = ref_at(l, x, in + s * n_in, o);
            out[s * n_out + o] = l->relu && y < 0 ? 0 : y;
        }
}

/* Where element i of [n][c][hw] lies in a layer's layout. */
static inline size_t ref_place(struct shape s, size_t n, bool maps, size_t i)
{
    size_t map = (size_t)s.h * s.w, c = i / map % s.c;
    size_t sample = i / (map * s.c);
    return maps ? (c * n + sample) * map + i % map : i;
}

/* |got - want| within tol of want's size, and not NaN. */
static inline bool ref_near(double got, double want, double tol)
{
    return fabs(got - want) <= tol * (1 + fabs(want));
}

#endif
