/* tests/unit/nn_sequence.h -- test bed for one layer of a sequence model. Compares the layer with a
 * reference in double precision, and its gradients with central differences of the reference. All
 * memory that the layer must write is filled with NaN before, and is no larger than the layer asks
 * for. */
#ifndef TESTS_UNIT_NN_SEQUENCE_H
#define TESTS_UNIT_NN_SEQUENCE_H

#include "nn/layers/layer.h"
#include "nn/math/blas.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SEQUENCE_CHECKS = 120 /* Largest number of elements of each gradient that are compared. */
};

static const double sequence_tol = 3e-5;

typedef void (*sequence_ref)(const struct layer *l, size_t n, const double *x, const double *in,
                             double *out);

struct sequence
{
    struct layer l;
    const struct layer_op *op;
    size_t n_params, n_in, n_out;
    /* d_out: gradient of the outputs. The objective is the sum of the outputs weighted by d_out. */
    double *x, *in, *d_out, *out;
    float *xf, *inf, *d_outf;
    struct layer_pass p;
};

static inline void *sequence_alloc(size_t n, size_t size)
{
    void *p = malloc(n * size > 0 ? n * size : 1);
    if (p == NULL)
        abort();
    return p;
}

static inline float *sequence_nans(size_t n)
{
    float *f = sequence_alloc(n, sizeof *f);
    for (size_t i = 0; i < n; i++)
        f[i] = NAN;
    return f;
}

static inline void sequence_noise(uint64_t key, double scale, double *d, float *f, size_t n)
{
    struct rng r = rng_stream(key);
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)(scale * rng_normal(&r));
        d[i] = (double)f[i];
    }
}

/* Stores the parameters one after the other. */
static inline void sequence_place(struct sequence *b)
{
    struct layer_param params[LAYER_PARAMS_MAX] = {0};
    size_t n = b->op->params ? b->op->params(&b->l, params) : 0;
    for (size_t i = 0; i < n; i++) {
        size_t size = 1;
        for (size_t d = 0; d < params[i].n_dims; d++)
            size *= params[i].dims[d];
        b->l.at[i] = b->n_params;
        b->n_params += size;
    }
}

static inline void sequence_open(struct sequence *b, struct layer l, uint32_t n)
{
    blas_init();
    *b = (struct sequence){.l = l, .op = layer_op(l.kind)};
    sequence_place(b);
    b->n_in = n * shape_size(l.in);
    b->n_out = n * shape_size(l.out);
    b->x = sequence_alloc(b->n_params, sizeof *b->x);
    b->xf = sequence_alloc(b->n_params, sizeof *b->xf);
    b->in = sequence_alloc(b->n_in, sizeof *b->in);
    b->inf = sequence_alloc(b->n_in, sizeof *b->inf);
    b->d_out = sequence_alloc(b->n_out, sizeof *b->d_out);
    b->d_outf = sequence_alloc(b->n_out, sizeof *b->d_outf);
    b->out = sequence_alloc(b->n_out, sizeof *b->out);
    uint64_t key = rng_key(n, RNG_TEST, (uint64_t)l.kind, b->n_in);
    sequence_noise(key, 0.5, b->x, b->xf, b->n_params);
    sequence_noise(key + 1, 1, b->in, b->inf, b->n_in);
    sequence_noise(key + 2, 1, b->d_out, b->d_outf, b->n_out);
    size_t keep = b->op->keep ? b->op->keep(&l, n) : 0;
    size_t scratch = b->op->scratch ? b->op->scratch(&l, n, true) : 0;
    b->p = (struct layer_pass){.n = n,
                               .training = true,
                               .x = b->xf,
                               .in = b->inf,
                               .grad = sequence_nans(b->n_params),
                               .out = sequence_nans(b->n_out),
                               .d_out = sequence_nans(b->n_out),
                               .d_in = sequence_nans(b->n_in),
                               .keep = sequence_nans(keep),
                               .scratch = sequence_nans(scratch)};
}

static inline void sequence_close(struct sequence *b)
{
    void *all[] = {b->x,      b->xf,    b->in,      b->inf,    b->d_out,  b->d_outf,   b->out,
                   b->p.grad, b->p.out, b->p.d_out, b->p.d_in, b->p.keep, b->p.scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static inline void sequence_forward(struct sequence *b)
{
    b->op->forward(&b->l, &b->p);
}

/* Runs the backward pass on a copy of d_out, which the layer may overwrite. */
static inline void sequence_backward(struct sequence *b)
{
    memcpy(b->p.d_out, b->d_outf, b->n_out * sizeof *b->d_outf);
    b->op->backward(&b->l, &b->p);
}

static inline void sequence_near(const char *what, size_t i, float got, double want)
{
    double off = fabs((double)got - want);
    if (!(off <= sequence_tol * fmax(1, fabs(want))))
        fail_msg("%s[%zu]: %.9g, expected %.9g", what, i, (double)got, want);
}

/* Returns the slope of the objective by *v. The objective is the inner product of the reference's
 * outputs with d_out. The layer must compute this slope as its gradient. */
static inline double sequence_slope(struct sequence *b, sequence_ref ref, double *v)
{
    const double h = 1e-5, v0 = *v;
    double sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        *v = v0 + side * h;
        ref(&b->l, b->p.n, b->x, b->in, b->out);
        for (size_t i = 0; i < b->n_out; i++)
            sum += side * b->out[i] * b->d_out[i];
    }
    *v = v0;
    return sum / (2 * h);
}

static inline void sequence_slopes(struct sequence *b, sequence_ref ref, const char *what,
                                   double *v, const float *grad, size_t n)
{
    struct rng r = rng_stream(rng_key(n, RNG_TEST, 0, 0));
    size_t checks = n < SEQUENCE_CHECKS ? n : SEQUENCE_CHECKS;
    for (size_t c = 0; c < checks; c++) {
        size_t i = checks == n ? c : (size_t)rng_below(&r, n);
        sequence_near(what, i, grad[i], sequence_slope(b, ref, &v[i]));
    }
}

/* Compares the outputs and then the gradients of a layer with the reference. */
static inline void sequence_check(struct layer l, uint32_t n, sequence_ref ref)
{
    struct sequence b;
    sequence_open(&b, l, n);
    sequence_forward(&b);
    ref(&b.l, n, b.x, b.in, b.out);
    for (size_t i = 0; i < b.n_out; i++)
        sequence_near("out", i, b.p.out[i], b.out[i]);
    sequence_backward(&b);
    assert_true(vec_finite(b.p.grad, b.n_params));
    assert_true(vec_finite(b.p.d_in, b.n_in));
    sequence_slopes(&b, ref, "grad", b.x, b.p.grad, b.n_params);
    sequence_slopes(&b, ref, "d_in", b.in, b.p.d_in, b.n_in);
    sequence_close(&b);
}

/* A layer with add_in adds its gradient to what d_in holds. If d_in is NULL, all other results
 * of the layer have the same bits. */
static inline void sequence_check_adds(struct layer l, uint32_t n)
{
    struct sequence b;
    sequence_open(&b, l, n);
    sequence_forward(&b);
    sequence_backward(&b);
    float *d_in = b.p.d_in, *added = sequence_nans(b.n_in);
    uint64_t hash = vec_hash(b.p.grad, b.n_params);
    for (size_t i = 0; i < b.n_in; i++)
        added[i] = (float)(i % 7);
    b.p.d_in = added;
    b.p.add_in = true;
    sequence_forward(&b);
    sequence_backward(&b);
    for (size_t i = 0; i < b.n_in; i++)
        sequence_near("added", i, added[i], (double)d_in[i] + (double)(i % 7));
    b.p.d_in = NULL;
    sequence_forward(&b);
    sequence_backward(&b);
    assert_true(vec_hash(b.p.grad, b.n_params) == hash);
    b.p.d_in = d_in;
    free(added);
    sequence_close(&b);
}

/* An evaluation pass, which gets less memory than a training pass, gives outputs with the same
 * bits. */
static inline void sequence_check_evaluation(struct layer l, uint32_t n)
{
    struct sequence b;
    sequence_open(&b, l, n);
    sequence_forward(&b);
    uint64_t hash = vec_hash(b.p.out, b.n_out);
    float *keep = b.p.keep;
    free(b.p.scratch);
    free(b.p.out);
    b.p.out = sequence_nans(b.n_out);
    b.p.scratch = sequence_nans(b.op->scratch(&l, n, false));
    b.p.keep = NULL;
    b.p.training = false;
    sequence_forward(&b);
    assert_true(vec_hash(b.p.out, b.n_out) == hash);
    b.p.keep = keep;
    sequence_close(&b);
}

/* Outputs up to time t must not depend on inputs after time t. */
static inline void sequence_check_causal(struct layer l, uint32_t n, size_t t)
{
    struct sequence b;
    sequence_open(&b, l, n);
    sequence_forward(&b);
    float *before = sequence_alloc(b.n_out, sizeof *before);
    memcpy(before, b.p.out, b.n_out * sizeof *before);
    for (size_t s = 0; s < n; s++)
        for (size_t j = (t + 1) * l.in.c; j < l.in.h * l.in.c; j++)
            b.inf[s * l.in.h * l.in.c + j] += 1.0f;
    sequence_forward(&b);
    size_t same = 0;
    for (size_t i = 0; i < b.n_out; i++) {
        bool equal = memcmp(&before[i], &b.p.out[i], sizeof *before) == 0;
        if (i / l.out.c % l.out.h <= t)
            assert_true(equal);
        else
            same += equal;
    }
    /* The inputs after time t have changed, so most outputs after time t must have changed, too. */
    assert_true(same < b.n_out / 10 + 1);
    free(before);
    sequence_close(&b);
}

/* The memory that a layer needs grows with the batch, so a memory plan for n samples also fits
 * fewer samples. */
static inline void sequence_check_memory(struct layer l)
{
    const struct layer_op *op = layer_op(l.kind);
    for (uint32_t n = 1; n < 3000; n++)
        for (int training = 0; training < 2; training++) {
            assert_true(op->scratch(&l, n, training) <= op->scratch(&l, n + 1, training));
            assert_true(!op->keep || op->keep(&l, n) <= op->keep(&l, n + 1));
        }
}

#endif
