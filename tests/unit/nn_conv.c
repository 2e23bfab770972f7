/* tests/unit/nn_conv.c -- convolutions against plain loops in double precision: output and both
 * gradients, for both implementations (Winograd in nn/layers/winograd.h, and matrix products in
 * nn/layers/conv.c). */
#include "nn/layers/layer.h"
#include "nn/layers/winograd.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    GUARD = 64, /* Number of guard floats after each array. A layer must not change them. */
    ARRAYS = 5
};

static const float guard = 12345.0f;

/* All arrays of one forward and backward pass. GUARD floats with the value `guard` follow each
 * of them. */
struct pass
{
    struct layer l;
    struct layer_pass p;
    /* `arrays` has: output, gradient by the input, gradient by the weights, scratch memory,
     * gradient by the output. */
    float *x, *in, *arrays[ARRAYS];
    size_t floats[ARRAYS];
};

static float *uniform(size_t n, uint64_t what, float scale)
{
    float *v = malloc((n + GUARD) * sizeof *v);
    assert_non_null(v);
    uint64_t key = rng_key(7, RNG_TEST, what, n);
    for (size_t i = 0; i < n; i++)
        v[i] = scale * (2 * rng_unit_at(key, i) - 1);
    for (size_t i = 0; i < GUARD; i++)
        v[n + i] = guard;
    return v;
}

/* Returns an array of n NaN values, which a layer must overwrite before it reads them. */
static float *unwritten(size_t n)
{
    float *v = uniform(n, 0, 0);
    for (size_t i = 0; i < n; i++)
        v[i] = NAN;
    return v;
}

struct shape_of
{
    uint32_t c, o, h, w, kernel, stride, pad;
};

struct options
{
    bool relu, bias, add_in;
};

static struct layer make_layer(struct shape_of s, struct options of)
{
    uint32_t oh = (s.h + 2 * s.pad - s.kernel) / s.stride + 1;
    uint32_t ow = (s.w + 2 * s.pad - s.kernel) / s.stride + 1;
    struct layer l = {.kind = LAYER_CONV,
                      .in = {s.c, s.h, s.w},
                      .out = {s.o, oh, ow},
                      .kernel = s.kernel,
                      .stride = s.stride,
                      .pad = s.pad,
                      .bias = of.bias,
                      .relu = of.relu};
    l.at[0] = 3; /* Arbitrary place of the layer's weights in the parameter vector. */
    l.at[1] = 3 + (size_t)s.c * s.o * s.kernel * s.kernel + 2;
    return l;
}

static void open_pass(struct pass *t, struct shape_of s, struct options of, uint32_t n)
{
    *t = (struct pass){.l = make_layer(s, of)};
    size_t n_in = n * shape_size(t->l.in), n_out = n * shape_size(t->l.out);
    size_t n_x = t->l.at[1] + s.o;
    size_t n_scratch = layer_conv.scratch(&t->l, n, true);
    size_t floats[ARRAYS] = {n_out, n_in, n_x, n_scratch, n_out};
    memcpy(t->floats, floats, sizeof floats);
    t->x = uniform(n_x, 1, 0.3f);
    t->in = uniform(n_in, 2, 1);
    t->arrays[0] = unwritten(n_out);
    t->arrays[1] = of.add_in ? uniform(n_in, 3, 1) : unwritten(n_in);
    t->arrays[2] = unwritten(n_x);
    t->arrays[3] = unwritten(n_scratch);
    t->arrays[4] = uniform(n_out, 4, 1);
    t->p = (struct layer_pass){.n = n,
                               .training = true,
                               .x = t->x,
                               .grad = t->arrays[2],
                               .in = t->in,
                               .out = t->arrays[0],
                               .d_out = t->arrays[4],
                               .d_in = t->arrays[1],
                               .add_in = of.add_in,
                               .scratch = t->arrays[3]};
}

static void close_pass(struct pass *t)
{
    for (size_t i = 0; i < ARRAYS; i++) {
        for (size_t j = 0; j < GUARD; j++)
            assert_true(t->arrays[i][t->floats[i] + j] == guard);
        free(t->arrays[i]);
    }
    free(t->x);
    free(t->in);
}

/* Buffers of the reference computation in double precision. d_out is 0 where the output of the ReLU
 * is 0. */
struct reference
{
    size_t n_out, n_in, n_x;
    double *out, *d_in, *grad, *d_out;
};

static double *zeros(size_t n)
{
    double *v = calloc(n, sizeof *v);
    assert_non_null(v);
    return v;
}

static struct reference open_reference(const struct pass *t)
{
    struct reference r = {t->floats[0],        t->floats[1],        t->floats[2],
                          zeros(t->floats[0]), zeros(t->floats[1]), zeros(t->floats[2]),
                          zeros(t->floats[0])};
    for (size_t i = 0; i < r.n_in; i++)
        r.d_in[i] = t->p.add_in ? (double)t->p.d_in[i] : 0;
    return r;
}

static void close_reference(struct reference *r)
{
    free(r->out);
    free(r->d_in);
    free(r->grad);
    free(r->d_out);
}

typedef void term_fn(const struct pass *t, struct reference *r, size_t out, size_t in,
                     size_t weight);

/* Calls `term` for each pair of a weight and an input that contributes to this output. */
static void each_output(const struct pass *t, struct reference *r, size_t out, size_t s, size_t y,
                        size_t x, term_fn *term)
{
    const struct layer *l = &t->l;
    for (size_t c = 0; c < l->in.c; c++)
        for (size_t i = 0; i < l->kernel; i++)
            for (size_t j = 0; j < l->kernel; j++) {
                /* A negative position wraps to a large value, which is outside of the map. */
                size_t iy = y * l->stride + i - l->pad;
                size_t ix = x * l->stride + j - l->pad;
                if (iy >= l->in.h || ix >= l->in.w)
                    continue;
                size_t o = out % l->out.c;
                size_t in = ((s * l->in.h + iy) * l->in.w + ix) * l->in.c + c;
                term(t, r, out, in, l->at[0] + ((o * l->in.c + c) * l->kernel + i) * l->kernel + j);
            }
}

static void each_term(const struct pass *t, struct reference *r, term_fn *term)
{
    size_t out = 0;
    for (size_t s = 0; s < t->p.n; s++)
        for (size_t y = 0; y < t->l.out.h; y++)
            for (size_t x = 0; x < t->l.out.w; x++)
                for (size_t o = 0; o < t->l.out.c; o++)
                    each_output(t, r, out++, s, y, x, term);
}

static void forward_term(const struct pass *t, struct reference *r, size_t out, size_t in,
                         size_t weight)
{
    r->out[out] += (double)t->in[in] * (double)t->x[weight];
}

static void backward_term(const struct pass *t, struct reference *r, size_t out, size_t in,
                          size_t weight)
{
    r->grad[weight] += r->d_out[out] * (double)t->in[in];
    r->d_in[in] += r->d_out[out] * (double)t->x[weight];
}

static void forward_ref(const struct pass *t, struct reference *r)
{
    each_term(t, r, forward_term);
    for (size_t i = 0; i < r->n_out; i++) {
        if (t->l.bias)
            r->out[i] += (double)t->x[t->l.at[1] + i % t->l.out.c];
        if (t->l.relu && r->out[i] < 0)
            r->out[i] = 0;
    }
}

/* If the layer has a ReLU, the gradient d_out is set to 0 where the output of the tested layer is
 * not positive. The output of the reference is not used for this, because its sign may differ near
 * 0. */
static void backward_ref(const struct pass *t, struct reference *r)
{
    for (size_t i = 0; i < r->n_out; i++) {
        bool off = t->l.relu && !(t->p.out[i] > 0);
        r->d_out[i] = off ? 0 : (double)t->p.d_out[i];
        if (t->l.bias)
            r->grad[t->l.at[1] + i % t->l.out.c] += r->d_out[i];
    }
    each_term(t, r, backward_term);
}

/* Fails unless all values are within 1e-5 times the largest expected magnitude. */
static void close_to(const char *what, const struct pass *t, const float *got, const double *want,
                     size_t n)
{
    double most = 1e-3;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-5 * most))
            fail_msg("%s of %u->%u at %ux%u, kernel %u stride %u pad %u, n %u: "
                     "[%zu] is %g, not %g",
                     what, t->l.in.c, t->l.out.c, t->l.in.h, t->l.in.w, t->l.kernel, t->l.stride,
                     t->l.pad, t->p.n, i, (double)got[i], want[i]);
}

static void check(struct shape_of s, struct options of, uint32_t n)
{
    struct pass t;
    open_pass(&t, s, of, n);
    struct reference r = open_reference(&t);
    forward_ref(&t, &r);
    layer_conv.forward(&t.l, &t.p);
    close_to("out", &t, t.p.out, r.out, r.n_out);
    backward_ref(&t, &r);
    layer_conv.backward(&t.l, &t.p);
    size_t weights = t.l.at[1] - 2 - t.l.at[0];
    close_to("d_in", &t, t.p.d_in, r.d_in, r.n_in);
    close_to("d_weight", &t, t.p.grad + t.l.at[0], r.grad + t.l.at[0], weights);
    if (of.bias)
        close_to("d_bias", &t, t.p.grad + t.l.at[1], r.grad + t.l.at[1], s.o);
    /* Gradients of other layers in the vector must stay NaN. */
    for (size_t i = 0; i < t.l.at[1]; i++)
        if (i < t.l.at[0] || i >= t.l.at[0] + weights)
            assert_true(isnan(t.p.grad[i]));
    close_reference(&r);
    close_pass(&t);
}

static const struct shape_of shapes[] = {
    /* Shapes to which Winograd's method applies: one tile, one strip of tiles, several strips,
     * incomplete blocks. */
    {16, 16, 2, 2, 3, 1, 1},
    {16, 32, 4, 4, 3, 1, 1},
    {32, 16, 6, 2, 3, 1, 1},
    {16, 16, 8, 10, 3, 1, 1},
    {48, 16, 4, 8, 3, 1, 1},
    {32, 48, 8, 8, 3, 1, 1},
    {16, 16, 32, 32, 3, 1, 1},
    {64, 64, 8, 8, 3, 1, 1},
    /* Each of these shapes violates one condition of Winograd's method. */
    {17, 16, 4, 4, 3, 1, 1},
    {16, 17, 4, 6, 3, 1, 1},
    {16, 16, 5, 4, 3, 1, 1},
    {16, 16, 4, 7, 3, 1, 1},
    {16, 16, 6, 6, 3, 1, 0},
    {16, 16, 4, 4, 3, 1, 2},
    {16, 32, 8, 8, 3, 2, 1},
    {32, 48, 9, 7, 3, 2, 1},
    {16, 16, 7, 7, 3, 2, 0},
    /* Shapes of other kinds of layers: layers on images, layers of LeNet, single pixels, kernels as
     * large as their maps. */
    {3, 16, 8, 8, 3, 1, 1},
    {3, 1, 5, 9, 3, 2, 1},
    {1, 6, 12, 12, 5, 1, 2},
    {6, 16, 9, 8, 5, 1, 0},
    {1, 1, 1, 1, 1, 1, 0},
    {6, 3, 4, 5, 1, 1, 0},
    {16, 32, 6, 6, 1, 2, 0},
    {3, 17, 5, 5, 5, 1, 0},
    {1, 3, 1, 1, 3, 1, 1},
    {48, 6, 3, 3, 3, 2, 1},
    {17, 48, 3, 4, 1, 1, 1},
    {6, 6, 2, 2, 5, 2, 2},
    /* The map of this shape is so large that its input gradient is computed for some rows at a
     * time. */
    {17, 6, 13, 11, 3, 1, 1},
};

enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void test_shapes(void **state)
{
    (void)state;
    static const uint32_t ns[] = {1, 2, 3, 5};
    for (size_t i = 0; i < N_SHAPES; i++)
        for (size_t j = 0; j < 4; j++) {
            size_t bits = i + j;
            check(shapes[i], (struct options){bits & 1, bits & 2, (bits + j) & 2}, ns[j]);
        }
}

static void test_options(void **state)
{
    (void)state;
    static const struct shape_of few[] = {
        {16, 32, 4, 4, 3, 1, 1}, {6, 5, 6, 5, 3, 1, 1}, {3, 4, 7, 7, 5, 2, 0}};
    for (size_t i = 0; i < 3; i++)
        for (unsigned bits = 0; bits < 8; bits++)
            check(few[i], (struct options){bits & 1, bits & 2, bits & 4}, 3);
}

/* With many channels, Winograd's method transforms the weights in slices. */
static void test_slices(void **state)
{
    (void)state;
    check((struct shape_of){512, 160, 2, 2, 3, 1, 1}, (struct options){true, true, true}, 3);
    check((struct shape_of){160, 512, 2, 4, 3, 1, 1}, (struct options){false, true, false}, 2);
}

/* Winograd's method is used for the first eight shapes only. */
static void test_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct layer l = make_layer(shapes[i], (struct options){0});
        assert_int_equal(winograd_fits(&l), i < 8);
    }
}

/* The output and input gradient of a sample have the same bits in every batch. The weight
 * gradients of single samples add up to the weight gradient of the batch. */
static void check_alone(struct shape_of of, uint32_t n)
{
    struct pass t, one;
    struct options options = {.relu = true, .bias = true};
    open_pass(&t, of, options, n);
    size_t n_in = shape_size(t.l.in), n_out = shape_size(t.l.out);
    double *sum = zeros(t.floats[2]);
    float *d_out = uniform(n * n_out, 4, 1);
    layer_conv.forward(&t.l, &t.p);
    layer_conv.backward(&t.l, &t.p);
    for (size_t s = 0; s < n; s++) {
        open_pass(&one, of, options, 1);
        memcpy(one.in, t.in + s * n_in, n_in * sizeof *one.in);
        memcpy(one.p.d_out, d_out + s * n_out, n_out * sizeof *d_out);
        memcpy(one.x, t.x, t.floats[2] * sizeof *one.x);
        layer_conv.forward(&one.l, &one.p);
        layer_conv.backward(&one.l, &one.p);
        assert_memory_equal(one.p.out, t.p.out + s * n_out, n_out * sizeof *d_out);
        assert_memory_equal(one.p.d_in, t.p.d_in + s * n_in, n_in * sizeof *d_out);
        for (size_t i = 0; i < t.floats[2]; i++)
            sum[i] += (double)one.p.grad[i];
        close_pass(&one);
    }
    close_to("sum of d_weight", &t, t.p.grad + t.l.at[0], sum + t.l.at[0],
             t.l.at[1] - 2 - t.l.at[0]);
    free(sum);
    free(d_out);
    close_pass(&t);
}

static void test_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++)
        check_alone(shapes[i], 3);
}

/* Tests Winograd's method with several blocks of tiles, with the weights in one slice and in
 * several slices. */
static void test_blocks(void **state)
{
    (void)state;
    check_alone((struct shape_of){64, 32, 4, 6, 3, 1, 1}, 33);
    check_alone((struct shape_of){512, 160, 2, 16, 3, 1, 1}, 33);
}

/* A pass may leave out the gradient by its input, as in a first layer. A pass without training
 * needs no more scratch memory than layer_conv.scratch() returns. */
static void test_without(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct pass t;
        open_pass(&t, shapes[i], (struct options){.bias = true}, 2);
        size_t n = layer_conv.scratch(&t.l, 2, false);
        assert_true(n <= t.floats[3]);
        free(t.arrays[3]);
        t.p.scratch = t.arrays[3] = unwritten(n);
        t.floats[3] = n;
        t.p.training = false;
        layer_conv.forward(&t.l, &t.p);
        for (size_t j = 0; j < t.floats[0]; j++)
            assert_true(!isnan(t.p.out[j]));
        close_pass(&t);
        open_pass(&t, shapes[i], (struct options){.bias = true}, 2);
        t.p.d_in = NULL;
        layer_conv.forward(&t.l, &t.p);
        layer_conv.backward(&t.l, &t.p);
        assert_true(isnan(t.arrays[1][0]));
        close_pass(&t);
    }
}

/* A NaN in one sample passes through the ReLU, and does not reach other samples. */
static void test_nan(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct pass t;
        open_pass(&t, shapes[i], (struct options){.relu = true}, 3);
        size_t n_out = shape_size(t.l.out), nans = 0;
        t.in[shape_size(t.l.in)] = NAN;
        layer_conv.forward(&t.l, &t.p);
        for (size_t j = 0; j < 3 * n_out; j++) {
            bool is = isnan(t.p.out[j]);
            assert_false(is && j / n_out != 1);
            nans += is;
        }
        assert_true(nans > 0);
        close_pass(&t);
    }
}

static void test_params(void **state)
{
    (void)state;
    struct layer l =
        make_layer((struct shape_of){6, 16, 14, 14, 5, 1, 0}, (struct options){.bias = true});
    struct layer_param p[LAYER_PARAMS_MAX];
    assert_int_equal(layer_conv.params(&l, p), 2);
    assert_string_equal(p[0].of, "weight");
    assert_int_equal(p[0].n_dims, 4);
    static const uint32_t dims[4] = {16, 6, 5, 5};
    assert_memory_equal(p[0].dims, dims, sizeof dims);
    assert_true(p[0].decays && p[0].trained);
    assert_true(fabsf(p[0].bound - 1 / sqrtf(150)) <= 1e-7f);
    assert_string_equal(p[1].of, "bias");
    assert_int_equal(p[1].n_dims, 1);
    assert_int_equal(p[1].dims[0], 16);
    assert_true(!p[1].decays && p[1].trained && p[1].bound == p[0].bound);
    assert_true(layer_conv.products(&l) == 16 * 100 * 150);
    l.bias = false;
    assert_int_equal(layer_conv.params(&l, p), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),  cmocka_unit_test(test_options),
        cmocka_unit_test(test_slices),  cmocka_unit_test(test_fits),
        cmocka_unit_test(test_alone),   cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_without), cmocka_unit_test(test_nan),
        cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
