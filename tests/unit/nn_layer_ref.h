/* tests/unit/nn_layer_ref.h -- reference layers for nn_gradient.h: naive loops in double
 * precision, written from the definitions and without code of nn/. */
#ifndef TESTS_UNIT_NN_LAYER_REF_H
#define TESTS_UNIT_NN_LAYER_REF_H

#include "nn_gradient.h"

/* Returns the index of element (sample, y, x, channel) in an array of the shape s. */
static inline size_t ref_at(struct shape s, size_t sample, size_t y, size_t x, size_t c)
{
    return ((sample * s.h + y) * s.w + x) * s.c + c;
}

static inline double ref_relu(const struct layer *l, double v)
{
    return l->relu && v < 0 ? 0 : v;
}

/* Reference for a dense layer. The input rows are dense here, even if the layer reads sparse
 * rows. */
static inline void ref_dense(const struct layer *l, const struct gradient_values *v, double *out)
{
    size_t i_n = l->in.c, o_n = l->out.c;
    for (size_t place = 0; place < v->n * shape_places(l->in); place++)
        for (size_t o = 0; o < o_n; o++) {
            double sum = l->bias ? v->x[l->at[1] + o] : 0;
            for (size_t i = 0; i < i_n; i++)
                sum += v->x[l->at[0] + o * i_n + i] * v->in[place * i_n + i];
            out[place * o_n + o] = ref_relu(l, sum);
        }
}

static inline void ref_maxpool(const struct layer *l, const struct gradient_values *v, double *out)
{
    for (size_t i = 0; i < v->n * shape_size(l->out); i++) {
        size_t c = i % l->out.c, place = i / l->out.c;
        size_t x = place % l->out.w, y = place / l->out.w % l->out.h;
        size_t s = place / shape_places(l->out);
        double top = -INFINITY;
        for (size_t k = 0; k < 4; k++)
            top = fmax(top, v->in[ref_at(l->in, s, 2 * y + k / 2, 2 * x + k % 2, c)]);
        out[i] = ref_relu(l, top);
    }
}

static inline void ref_avgpool(const struct layer *l, const struct gradient_values *v, double *out)
{
    size_t places = shape_places(l->in);
    for (size_t i = 0; i < v->n * (size_t)l->in.c; i++) {
        size_t s = i / l->in.c, c = i % l->in.c;
        double sum = 0;
        for (size_t k = 0; k < places; k++)
            sum += v->in[(s * places + k) * l->in.c + c];
        out[i] = sum / (double)places;
    }
}

static inline void ref_flatten(const struct layer *l, const struct gradient_values *v, double *out)
{
    for (size_t s = 0; s < v->n; s++)
        for (size_t c = 0; c < l->in.c; c++)
            for (size_t y = 0; y < l->in.h; y++)
                for (size_t x = 0; x < l->in.w; x++)
                    *out++ = v->in[ref_at(l->in, s, y, x, c)];
}

static inline void ref_shortcut(const struct layer *l, const struct gradient_values *v, double *out)
{
    size_t step = l->in.h / l->out.h, before = (l->out.c - l->in.c) / 2;
    for (size_t i = 0; i < v->n * shape_size(l->out); i++)
        out[i] = 0;
    for (size_t s = 0; s < v->n; s++)
        for (size_t y = 0; y < l->out.h; y++)
            for (size_t x = 0; x < l->out.w; x++)
                for (size_t c = 0; c < l->in.c; c++)
                    out[ref_at(l->out, s, y, x, before + c)] =
                        v->in[ref_at(l->in, s, step * y, step * x, c)];
}

static inline void ref_add(const struct layer *l, const struct gradient_values *v, double *out)
{
    for (size_t i = 0; i < v->n * shape_size(l->out); i++)
        out[i] = v->in[i] + v->with[i];
}

static inline void ref_gelu(const struct layer *l, const struct gradient_values *v, double *out)
{
    double scale = sqrt(2 / acos(-1.0));
    for (size_t i = 0; i < v->n * shape_size(l->out); i++) {
        double x = v->in[i];
        out[i] = x / 2 * (1 + tanh(scale * (x + 0.044715 * x * x * x)));
    }
}

/* Returns the index of the mean that normalises value i: by channel, by group or by position. */
static inline size_t ref_norm_set(const struct layer *l, size_t i)
{
    size_t c = l->in.c, sample = i / shape_size(l->in);
    switch (l->norm) {
    case NORM_BATCH:
        return i % c;
    case NORM_GROUP:
        return sample * l->groups + i % c / (c / l->groups);
    case NORM_PLACE:
        return i / c;
    }
    abort();
}

struct ref_moments
{
    double n, mean, var; /* var: the biased variance, which divides by the number of values. */
};

static inline void ref_norm_moments(const struct layer *l, const struct gradient_values *v,
                                    struct ref_moments *m, size_t size)
{
    memset(m, 0, size * sizeof *m);
    for (size_t i = 0; i < size; i++) {
        m[ref_norm_set(l, i)].n++;
        m[ref_norm_set(l, i)].mean += v->in[i];
    }
    for (size_t i = 0; i < size; i++)
        m[i].mean /= m[i].n;
    for (size_t i = 0; i < size; i++) {
        struct ref_moments *k = &m[ref_norm_set(l, i)];
        k->var += (v->in[i] - k->mean) * (v->in[i] - k->mean) / k->n;
    }
}

static inline void ref_norm(const struct layer *l, const struct gradient_values *v, double *out)
{
    size_t size = v->n * shape_size(l->in), c = l->in.c;
    struct ref_moments *m = gradient_alloc(size, sizeof *m);
    ref_norm_moments(l, v, m, size);
    for (size_t i = 0; i < size; i++) {
        struct ref_moments k = m[ref_norm_set(l, i)];
        if (l->norm == NORM_BATCH && !v->training) {
            k.mean = v->x[l->at[2] + i % c];
            k.var = fmax(v->x[l->at[3] + i % c], 0);
        }
        double x_hat = (v->in[i] - k.mean) / sqrt(k.var + 1e-5);
        double y = x_hat * v->x[l->at[0] + i % c] + v->x[l->at[1] + i % c];
        out[i] = ref_relu(l, v->with != NULL ? y + v->with[i] : y);
    }
    free(m);
}

#endif
