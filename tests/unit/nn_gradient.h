/* tests/unit/nn_gradient.h -- compares a layer with a reference in double precision, and its
 * gradients with central differences of the reference.
 *
 *   gradient_check(layer, ref)   for batches of 1, 2, 3 and 5 samples:
 *
 *   forward     the output equals the reference, also without `training` and `keep`
 *   backward    of the objective <out, d_out> with random d_out: d_in, d_with and every trained
 *               parameter, element by element
 *   contract    the layer writes only its own output and gradients, and overwrites what was there.
 *               `add` adds instead. A NULL d_in or d_with changes no other gradient.
 *
 * In double precision a step of 1e-6 gives about nine correct digits, and rarely crosses a kink (a
 * change of the largest input of a maximum, or of the sign at a ReLU). Buffers are no longer than
 * the layer asks for, so that a sanitizer detects a write beyond their end. Inputs are normal
 * deviates, so layers that read token ids cannot be checked.
 */
#ifndef TESTS_UNIT_NN_GRADIENT_H
#define TESTS_UNIT_NN_GRADIENT_H

#include "nn/layers/layer.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    GRADIENT_CHECKS = 60 /* Largest number of elements of a tensor that are compared. */
};

static const double gradient_tol = 2e-5;

/* Parameters and inputs of a layer in double precision, for a reference. Their layouts are the ones
 * of the layer, but sparse input rows are dense here. */
struct gradient_values
{
    uint32_t n;
    bool training;
    double *x, *in, *with;
};

typedef void (*gradient_ref)(const struct layer *l, const struct gradient_values *v, double *out);

/* n floats, LAYER_SLACK unused floats behind them, and the same n values in double precision. */
struct gradient_run
{
    size_t n;
    float *f;
    double *d;
};

struct gradient_bed
{
    struct layer l;
    const struct layer_op *op;
    gradient_ref ref;
    struct layer_param params[LAYER_PARAMS_MAX];
    size_t n_params;
    /* d_out: weights of the outputs in the objective. */
    struct gradient_run x, in, with, out, d_out;
    struct gradient_run grad, d_in, d_with; /* Gradients that the layer computes. */
    struct sparse_rows rows;
    float *spoiled; /* Copy of d_out for the layer, because the layer may overwrite it. */
    size_t n_keep, n_scratch;
    float *keep, *scratch;
    struct gradient_values v;
    struct layer_pass p;
};

static inline void *gradient_alloc(size_t n, size_t size)
{
    assert(n < SIZE_MAX / 1024 && size < 512);
    void *p = aligned_alloc(64, (n * size + 127) / 64 * 64);
    if (p == NULL)
        abort();
    return p;
}

/* Sets n floats and the LAYER_SLACK unused floats behind them to NaN. */
static inline void gradient_poison(float *f, size_t n)
{
    for (size_t i = 0; i < n + LAYER_SLACK; i++)
        f[i] = NAN;
}

/* Allocates n + LAYER_SLACK floats, all NaN. The last LAYER_SLACK floats must not be used. */
static inline float *gradient_floats(size_t n)
{
    size_t size = (n + LAYER_SLACK) * sizeof(float);
    void *p = NULL;
    if (posix_memalign(&p, 64, size) != 0)
        abort();
    gradient_poison(p, n);
    return p;
}

static inline struct gradient_run gradient_run(size_t n)
{
    return (struct gradient_run){n, gradient_floats(n), gradient_alloc(n, sizeof(double))};
}

/* Fills a gradient_run with normal deviates of the given standard deviation and mean. */
static inline void gradient_noise(struct gradient_run *r, uint64_t key, double scale, double mean)
{
    struct rng rng = rng_stream(key);
    for (size_t i = 0; i < r->n; i++) {
        r->f[i] = (float)(mean + scale * rng_normal(&rng));
        r->d[i] = (double)r->f[i];
    }
}

/* Parameters are stored one after the other, with one unused float between them. */
static inline void gradient_params(struct gradient_bed *b)
{
    b->n_params = b->op->params ? b->op->params(&b->l, b->params) : 0;
    size_t at = 1;
    for (size_t i = 0; i < b->n_params; i++) {
        size_t n = 1;
        for (size_t d = 0; d < b->params[i].n_dims; d++)
            n *= b->params[i].dims[d];
        b->l.at[i] = at;
        at += n + 1;
    }
    b->x = gradient_run(at);
    b->grad = gradient_run(at);
}

static inline size_t gradient_param_size(const struct gradient_bed *b, size_t i)
{
    size_t end = i + 1 < b->n_params ? b->l.at[i + 1] : b->x.n;
    return end - 1 - b->l.at[i];
}

/* Sets two thirds of the entries, and all of row 1, to zero. Stores the other entries as sparse
 * rows. */
static inline void gradient_sparsify(struct gradient_bed *b, uint64_t key)
{
    size_t c = b->l.in.c, e = 0;
    size_t *start = gradient_alloc(b->v.n + 1, sizeof *start);
    uint32_t *column = gradient_alloc(b->in.n, sizeof *column);
    float *value = gradient_alloc(b->in.n, sizeof *value);
    for (size_t i = 0; i < b->in.n; i++) {
        if (i % c == 0)
            start[i / c] = e;
        if (rng_at(key, i) % 3 != 0 || i / c == 1) {
            b->in.d[i] = 0;
            continue;
        }
        column[e] = (uint32_t)(i % c);
        value[e++] = b->in.f[i];
    }
    start[b->v.n] = e;
    b->rows = (struct sparse_rows){start, column, value};
}

static inline void gradient_open(struct gradient_bed *b, struct layer l, gradient_ref ref,
                                 uint32_t n)
{
    *b = (struct gradient_bed){.l = l, .op = layer_op(l.kind), .ref = ref};
    bool sparse = l.kind == LAYER_SPARSE, with = l.with != LAYER_NONE;
    uint64_t key = rng_key(n, RNG_TEST, (uint64_t)l.kind, shape_size(l.in));
    gradient_params(b);
    b->v.n = n;
    struct gradient_run *runs[] = {&b->in, &b->d_in, &b->with, &b->d_with, &b->out, &b->d_out};
    for (size_t i = 0; i < 6; i++)
        *runs[i] = gradient_run(n * shape_size(i < 2 ? l.in : l.out));
    gradient_noise(&b->x, key, 0.5, l.kind == LAYER_NORM ? 1 : 0);
    gradient_noise(&b->in, key + 1, 1, 0);
    gradient_noise(&b->with, key + 2, 1, 0);
    gradient_noise(&b->d_out, key + 3, 1, 0);
    if (sparse)
        gradient_sparsify(b, key + 4);
    b->v.x = b->x.d;
    b->v.in = b->in.d;
    b->v.with = with ? b->with.d : NULL;
    b->spoiled = gradient_floats(b->d_out.n);
    b->p = (struct layer_pass){.n = n,
                               .x = b->x.f,
                               .grad = b->grad.f,
                               .in = sparse ? NULL : b->in.f,
                               .with = with ? b->with.f : NULL,
                               .rows = sparse ? &b->rows : NULL,
                               .out = b->out.f,
                               .d_out = b->spoiled};
}

static inline void gradient_close(struct gradient_bed *b)
{
    const struct gradient_run *runs[] = {&b->x,     &b->in,   &b->with, &b->out,
                                         &b->d_out, &b->grad, &b->d_in, &b->d_with};
    for (size_t i = 0; i < 8; i++) {
        free(runs[i]->f);
        free(runs[i]->d);
    }
    free((void *)b->rows.start);
    free((void *)b->rows.column);
    free((void *)b->rows.value);
    free(b->spoiled);
    free(b->keep);
    free(b->scratch);
}

static inline void gradient_near(const struct gradient_bed *b, const char *what, size_t i,
                                 double got, double want)
{
    if (!(fabs(got - want) <= gradient_tol * (1 + fabs(want))))
        fail_msg("%s, batch of %u, %s[%zu]: %.9g, expected %.9g", b->op->name, (unsigned)b->v.n,
                 what, i, got, want);
}

/* --- forward --- */

/* Prepares the buffers of a pass. All of them are filled with NaN again, so that no value of an
 * earlier pass is used. */
static inline void gradient_buffers(struct gradient_bed *b, bool training)
{
    free(b->keep);
    free(b->scratch);
    size_t n_keep = b->op->keep ? b->op->keep(&b->l, b->v.n) : 0;
    b->n_scratch = b->op->scratch ? b->op->scratch(&b->l, b->v.n, training) : 0;
    b->keep = training ? gradient_floats(n_keep) : NULL;
    b->scratch = gradient_floats(b->n_scratch);
    b->p.keep = b->keep;
    b->p.scratch = b->scratch;
    b->p.training = b->v.training = training;
    gradient_poison(b->out.f, b->out.n);
}

static inline void gradient_forward(struct gradient_bed *b, bool training)
{
    gradient_buffers(b, training);
    b->op->forward(&b->l, &b->p);
    b->ref(&b->l, &b->v, b->out.d);
    for (size_t i = 0; i < b->out.n; i++)
        gradient_near(b, training ? "out" : "out, not training", i, (double)b->out.f[i],
                      b->out.d[i]);
}

/* --- backward --- */

static inline double gradient_objective(const struct gradient_bed *b)
{
    double sum = 0;
    b->ref(&b->l, &b->v, b->out.d);
    for (size_t i = 0; i < b->out.n; i++)
        sum += b->out.d[i] * b->d_out.d[i];
    return sum;
}

static inline double gradient_slope(const struct gradient_bed *b, double *v)
{
    double h = 1e-6, v0 = *v;
    *v = v0 + h;
    double up = gradient_objective(b);
    *v = v0 - h;
    double down = gradient_objective(b);
    *v = v0;
    return (up - down) / (2 * h);
}

/* Compares up to GRADIENT_CHECKS elements of got[n], or all of them if n is small, with the slopes
 * of the objective by the elements of at[n]. */
static inline void gradient_slopes(const struct gradient_bed *b, const char *what, const float *got,
                                   double *at, size_t n)
{
    struct rng r = rng_stream(rng_key(n, RNG_TEST, 0, b->v.n));
    size_t checks = n < GRADIENT_CHECKS ? n : GRADIENT_CHECKS;
    for (size_t i = 0; i < checks; i++) {
        size_t j = checks == n ? i : (size_t)rng_below(&r, n);
        gradient_near(b, what, j, (double)got[j], gradient_slope(b, &at[j]));
    }
}

static inline void gradient_backward(struct gradient_bed *b)
{
    memcpy(b->spoiled, b->d_out.f, b->d_out.n * sizeof(float));
    gradient_poison(b->scratch, b->n_scratch);
    gradient_poison(b->grad.f, b->grad.n);
    b->op->backward(&b->l, &b->p);
}

static inline void gradient_check_params(const struct gradient_bed *b)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n_params; i++) {
        const float *grad = b->grad.f + b->l.at[i];
        size_t n = gradient_param_size(b, i);
        /* The unused float between two parameters must stay NaN. */
        assert_true(isnan(b->grad.f[at]));
        assert_true(vec_finite(grad, n));
        if (b->params[i].trained)
            gradient_slopes(b, b->params[i].of, grad, b->x.d + b->l.at[i], n);
        at = b->l.at[i] + n;
    }
    assert_true(isnan(b->grad.f[at]));
}

/* A second pass with `add` must add the same gradient to the values that the array already has. */
static inline void gradient_check_add(struct gradient_bed *b, float *to, size_t n, bool *add,
                                      const char *what)
{
    float *first = gradient_floats(n), *grad = gradient_floats(b->grad.n);
    memcpy(first, to, n * sizeof *first);
    memcpy(grad, b->grad.f, b->grad.n * sizeof *grad);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)(i % 7) - 3.0f;
    *add = true;
    gradient_backward(b);
    *add = false;
    for (size_t i = 0; i < n; i++)
        gradient_near(b, what, i, (double)to[i], (double)first[i] + (double)(i % 7) - 3);
    assert_memory_equal(grad, b->grad.f, b->grad.n * sizeof *grad);
    free(first);
    free(grad);
}

/* If d_in and d_with are NULL, the gradients of the parameters have the same bits as when the layer
 * also computes these two. */
static inline void gradient_check_alone(struct gradient_bed *b)
{
    float *grad = gradient_floats(b->grad.n);
    memcpy(grad, b->grad.f, b->grad.n * sizeof *grad);
    struct layer_pass p = b->p;
    b->p.d_in = b->p.d_with = NULL;
    gradient_backward(b);
    b->p = p;
    assert_memory_equal(grad, b->grad.f, b->grad.n * sizeof *grad);
    free(grad);
}

/* The layer has not changed its inputs: they still equal their copies in double precision. */
static inline void gradient_check_inputs(const struct gradient_bed *b)
{
    const struct gradient_run *runs[] = {&b->x, &b->with, &b->in};
    for (size_t r = 0; r < (b->p.in != NULL ? 3u : 2u); r++)
        for (size_t i = 0; i < runs[r]->n; i++)
            assert_true((double)runs[r]->f[i] == runs[r]->d[i]);
}

static inline void gradient_check_batch(struct layer l, gradient_ref ref, uint32_t n)
{
    struct gradient_bed b;
    gradient_open(&b, l, ref, n);
    gradient_forward(&b, false);
    gradient_forward(&b, true);
    if (l.kind != LAYER_SPARSE)
        b.p.d_in = b.d_in.f;
    if (l.with != LAYER_NONE)
        b.p.d_with = b.d_with.f;
    gradient_backward(&b);
    gradient_check_params(&b);
    if (b.p.d_in != NULL)
        gradient_slopes(&b, "d_in", b.d_in.f, b.in.d, b.in.n);
    if (b.p.d_with != NULL)
        gradient_slopes(&b, "d_with", b.d_with.f, b.with.d, b.with.n);
    if (b.p.d_in != NULL)
        gradient_check_add(&b, b.d_in.f, b.in.n, &b.p.add_in, "added d_in");
    if (b.p.d_with != NULL)
        gradient_check_add(&b, b.d_with.f, b.with.n, &b.p.add_with, "added d_with");
    gradient_check_alone(&b);
    gradient_check_inputs(&b);
    gradient_close(&b);
}

static inline void gradient_check(struct layer l, gradient_ref ref)
{
    static const uint32_t sizes[] = {1, 2, 3, 5};
    for (size_t i = 0; i < 4; i++)
        gradient_check_batch(l, ref, sizes[i]);
}

#endif
