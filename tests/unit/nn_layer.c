/* Each layer: its output against naive loops in double, its gradients against
 * central differences of those loops. Every buffer that the layer must write
 * holds NaN before. */
#include "nn_ref.h"

#include "nn/blas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* Elements of each gradient that are looked at. */
static const size_t max_checks = 150;

static const double tol = 3e-5; /* Float sums of up to a few thousand terms. */

struct bed
{
    struct layer l;
    size_t n, n_params, n_in, n_out, n_scratch;
    double *x, *in, *d_out, *out; /* [n][c][h][w] */
    struct layer_pass p;          /* The same in float, in the layer's layout. */
    float *xf, *inf, *outf, *d_outf, *d_inf, *gradf, *scratch;
};

/* Noise in `d`, and in `f` the same in the layer's layout. */
static void fill(uint64_t key, struct shape s, size_t n, bool maps, double *d,
                 float *f)
{
    size_t total = n * shape_size(s);
    float *plain = ref_alloc(total, sizeof *plain);
    ref_noise(key, 1, d, plain, total);
    for (size_t i = 0; i < total; i++)
        f[ref_place(s, n, maps, i)] = plain[i];
    free(plain);
}

static void bed_open(struct bed *b, struct layer l, size_t n)
{
    const struct layer_op *op = layer_op(l.kind);
    size_t rows, cols;
    op->params(&l, &rows, &cols);
    l.bias = rows * cols;
    *b = (struct bed){.l = l, .n = n, .n_params = rows * cols + rows,
                      .n_in = n * shape_size(l.in),
                      .n_out = n * shape_size(l.out),
                      .n_scratch = op->scratch(&l, (uint32_t)n)};
    b->x = ref_alloc(b->n_params, sizeof *b->x);
    b->in = ref_alloc(b->n_in, sizeof *b->in);
    b->out = ref_alloc(b->n_out, sizeof *b->out);
    b->d_out = ref_alloc(b->n_out, sizeof *b->d_out);
    b->xf = ref_alloc(b->n_params, sizeof(float));
    b->gradf = ref_alloc(b->n_params, sizeof(float));
    b->inf = ref_alloc(b->n_in + LAYER_SLACK, sizeof(float));
    b->d_inf = ref_alloc(b->n_in, sizeof(float));
    b->outf = ref_alloc(b->n_out, sizeof(float));
    b->d_outf = ref_alloc(b->n_out, sizeof(float));
    b->scratch = ref_alloc(b->n_scratch, sizeof(float));
    ref_poison(b->inf, b->n_in + LAYER_SLACK);
    uint64_t key = rng_key(1, RNG_TEST, (uint64_t)l.kind, 1);
    ref_noise(key, 0.3, b->x, b->xf, b->n_params);
    fill(key + 1, l.in, n, op->maps_in, b->in, b->inf);
    fill(key + 2, l.out, n, op->maps_out, b->d_out, b->d_outf);
    b->p = (struct layer_pass){.n = (uint32_t)n, .x = b->xf, .grad = b->gradf,
                               .in = b->inf, .out = b->outf,
                               .d_out = b->d_outf, .d_in = b->d_inf,
                               .scratch = b->scratch};
}

static void bed_close(struct bed *b)
{
    void *all[] = {b->x, b->in, b->out, b->d_out, b->xf, b->gradf, b->inf,
                   b->d_inf, b->outf, b->d_outf, b->scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* <out, d_out>, whose gradient by out is d_out. */
static double objective(const struct bed *b)
{
    double sum = 0;
    ref_forward(&b->l, b->n, b->x, b->in, b->out);
    for (size_t i = 0; i < b->n_out; i++)
        sum += b->out[i] * b->d_out[i];
    return sum;
}

static double slope(const struct bed *b, double *v)
{
    double h = 1e-6, v0 = *v;
    *v = v0 + h;
    double up = objective(b);
    *v = v0 - h;
    double down = objective(b);
    *v = v0;
    return (up - down) / (2 * h);
}

static void near(const char *what, size_t i, double got, double want)
{
    if (!ref_near(got, want, tol))
        fail_msg("%s[%zu]: %.9g, expected %.9g", what, i, got, want);
}

static void check_gradients(struct bed *b)
{
    bool maps = layer_op(b->l.kind)->maps_in;
    struct rng r = rng_stream(rng_key(1, RNG_TEST, (uint64_t)b->l.kind, 4));
    size_t checks = b->n_params < max_checks ? b->n_params : max_checks;
    for (size_t c = 0; c < checks; c++) {
        size_t i = checks < max_checks ? c : (size_t)rng_below(&r, b->n_params);
        near("grad", i, (double)b->gradf[i], slope(b, &b->x[i]));
    }
    checks = b->n_in < max_checks ? b->n_in : max_checks;
    for (size_t c = 0; c < checks; c++) {
        size_t i = checks < max_checks ? c : (size_t)rng_below(&r, b->n_in);
        near("d_in", i, (double)b->d_inf[ref_place(b->l.in, b->n, maps, i)],
             slope(b, &b->in[i]));
    }
}

static void check_layer(struct layer l, size_t n)
{
    struct bed b;
    bed_open(&b, l, n);
    const struct layer_op *op = layer_op(l.kind);
    ref_poison(b.outf, b.n_out);
    ref_poison(b.scratch, b.n_scratch);
    op->forward(&b.l, &b.p);
    ref_forward(&b.l, n, b.x, b.in, b.out);
    for (size_t i = 0; i < b.n_out; i++)
        near("out", i, (double)b.outf[ref_place(l.out, n, op->maps_out, i)],
             b.out[i]);
    ref_poison(b.gradf, b.n_params);
    ref_poison(b.d_inf, b.n_in);
    ref_poison(b.scratch, b.n_scratch);
    op->backward(&b.l, &b.p);
    assert_true(vec_finite(b.gradf, b.n_params));
    assert_true(vec_finite(b.d_inf, b.n_in));
    check_gradients(&b);
    bed_close(&b);
}

static struct layer conv(struct shape in, uint32_t o, uint32_t k, uint32_t pad)
{
    return (struct layer){.kind = LAYER_CONV, .in = in,
                          .out = {o, in.h + 2 * pad - k + 1,
                                  in.w + 2 * pad - k + 1},
                          .kernel = k, .pad = pad};
}

static void test_conv_valid(void **state)
{
    (void)state;
    check_layer(conv((struct shape){1, 1, 1}, 1, 1, 0), 1);
    check_layer(conv((struct shape){2, 6, 7}, 3, 2, 0), 1);
    check_layer(conv((struct shape){3, 9, 18}, 2, 2, 0), 4); /* Width 17. */
    check_layer(conv((struct shape){1, 4, 37}, 2, 3, 0), 2); /* Width 35. */
    check_layer(conv((struct shape){6, 14, 14}, 16, 5, 0), 3);
}

static void test_conv_padded(void **state)
{
    (void)state;
    check_layer(conv((struct shape){3, 5, 4}, 4, 3, 1), 3);
    struct layer l = conv((struct shape){2, 8, 9}, 5, 3, 1);
    l.relu = true;
    check_layer(l, 2);
}

/* More samples than a tile holds, the last tile not full, with and without
 * padding: 28x28 by 5x5 is three samples to the tile. */
static void test_conv_tiles(void **state)
{
    (void)state;
    check_layer(conv((struct shape){1, 28, 28}, 6, 5, 2), 5);
    check_layer(conv((struct shape){1, 32, 32}, 2, 5, 0), 7);
}

static struct layer dense(uint32_t in, uint32_t out, bool relu)
{
    return (struct layer){.kind = LAYER_DENSE, .in = {in, 1, 1},
                          .out = {out, 1, 1}, .relu = relu};
}

static void test_dense(void **state)
{
    (void)state;
    check_layer(dense(1, 1, false), 1);
    check_layer(dense(7, 5, true), 3);
    check_layer(dense(33, 17, false), 15);
    check_layer(dense(64, 31, true), 8);
}

static void test_maxpool(void **state)
{
    (void)state;
    struct layer l = {.kind = LAYER_MAXPOOL, .in = {3, 4, 10},
                      .out = {3, 2, 5}};
    check_layer(l, 3);
    l.relu = true;
    check_layer(l, 2);
    l = (struct layer){.kind = LAYER_MAXPOOL, .in = {2, 6, 36},
                       .out = {2, 3, 18}, .relu = true};
    check_layer(l, 2);
}

/* Of equal maxima the first takes the gradient, all of it. */
static void test_maxpool_tie(void **state)
{
    (void)state;
    struct layer l = {.kind = LAYER_MAXPOOL, .in = {1, 2, 4}, .out = {1, 1, 2}};
    float in[8] = {1, 2, 5, 5, 2, 2, 5, 5}, out[2], d_in[8];
    float d_out[2] = {3, 7};
    struct layer_pass p = {.n = 1, .in = in, .out = out, .d_out = d_out,
                           .d_in = d_in};
    layer_maxpool.forward(&l, &p);
    layer_maxpool.backward(&l, &p);
    const float want[8] = {0, 3, 7, 0, 0, 0, 0, 0};
    assert_memory_equal(d_in, want, sizeof want);
}

static void test_flatten(void **state)
{
    (void)state;
    check_layer((struct layer){.kind = LAYER_FLATTEN, .in = {3, 2, 5},
                               .out = {30, 1, 1}}, 4);
}

/* A NaN survives ReLU, so that a model that diverged shows in its loss. */
static void test_relu_keeps_nan(void **state)
{
    (void)state;
    float v[17];
    ref_poison(v, 17);
    layer_bias(v, 17, 1, true);
    for (size_t i = 0; i < 17; i++)
        assert_true(isnan(v[i]));
}

static void test_sum(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 8, 9, 31, 1023};
    double d[1023];
    float f[1023];
    ref_noise(rng_key(1, RNG_TEST, 9, 9), 1, d, f, 1023);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double sum = 0;
        for (size_t j = 0; j < sizes[i]; j++)
            sum += d[j];
        near("sum", sizes[i], (double)layer_sum(f, sizes[i]), sum);
    }
}

static int setup(void **state)
{
    (void)state;
    blas_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_valid),
        cmocka_unit_test(test_conv_padded),
        cmocka_unit_test(test_conv_tiles),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_maxpool),
        cmocka_unit_test(test_maxpool_tie),
        cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_relu_keeps_nan),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
