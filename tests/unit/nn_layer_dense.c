/* tests/unit/nn_layer_dense.c -- dense layers with dense and with sparse input rows. */
#include "nn/layers/layer.h"

#include "nn/math/blas.h"
#include "nn_layer_ref.h"

static struct layer dense(enum layer_kind kind, uint32_t i, uint32_t o)
{
    return (struct layer){
        .kind = kind, .in = {i, 1, 1}, .out = {o, 1, 1}, .with = LAYER_NONE, .bias = true};
}

/* Compares a dense layer with the reference, with and without bias and ReLU. */
static void check_all(struct layer l)
{
    for (int form = 0; form < 4; form++) {
        l.bias = form % 2 == 0;
        l.relu = form / 2 == 1;
        gradient_check(l, ref_dense);
    }
}

static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {2, 33}, {33, 2}, {31, 17}, {64, 8}, {16, 48}};

static void test_dense(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_all(dense(LAYER_DENSE, sizes[i][0], sizes[i][1]));
}

/* A dense layer computes its outputs at each pixel of a map. Cases: many more rows than outputs,
 * and a last block of rows that is not full. */
static void test_places(void **state)
{
    (void)state;
    struct layer l = dense(LAYER_DENSE, 12, 20);
    l.in.h = l.out.h = 7;
    check_all(l);
    l.in.h = l.out.h = 131;
    l.in.w = l.out.w = 3;
    check_all(l);
}

/* The scratch memory never shrinks as the batch grows, so the arena of a large batch also fits a
 * smaller one. */
static void test_scratch_grows(void **state)
{
    (void)state;
    static const uint32_t outs[] = {1, 10, 64, 300};
    for (size_t i = 0; i < 4; i++) {
        struct layer l = dense(LAYER_DENSE, 37, outs[i]);
        size_t before = 0;
        for (uint32_t n = 1; layer_dense.scratch != NULL && n < 400; n++) {
            size_t size = layer_dense.scratch(&l, n, true);
            assert_true(size >= before);
            before = size;
        }
    }
}

static void test_sparse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_all(dense(LAYER_SPARSE, sizes[i][0], sizes[i][1]));
    check_all(dense(LAYER_SPARSE, 123, 2));
    check_all(dense(LAYER_SPARSE, 50, 130));
}

/* A NaN in an input row makes all outputs of this row NaN, even after the ReLU, and changes no
 * other row. */
static void check_nan(enum layer_kind kind)
{
    struct gradient_bed b;
    struct layer l = dense(kind, 9, 6);
    l.relu = true;
    gradient_open(&b, l, ref_dense, 3);
    size_t row = 2;
    if (kind == LAYER_SPARSE)
        ((float *)b.rows.value)[b.rows.start[row]] = NAN;
    else
        b.in.f[row * 9 + 4] = NAN;
    gradient_buffers(&b, true);
    b.op->forward(&b.l, &b.p);
    for (size_t i = 0; i < b.out.n; i++)
        assert_int_equal(isnan(b.out.f[i]) != 0, i / 6 == row);
    gradient_close(&b);
}

static void test_nan(void **state)
{
    (void)state;
    check_nan(LAYER_DENSE);
    check_nan(LAYER_SPARSE);
}

/* Dense and sparse layers have the same initial values as PyTorch's Linear. */
static void test_params(void **state)
{
    (void)state;
    static const enum layer_kind kinds[] = {LAYER_DENSE, LAYER_SPARSE};
    for (size_t k = 0; k < 2; k++) {
        struct layer l = dense(kinds[k], 16, 3);
        struct layer_param p[LAYER_PARAMS_MAX];
        const struct layer_op *op = layer_op(kinds[k]);
        assert_int_equal(op->params(&l, p), 2);
        assert_string_equal(p[0].of, "weight");
        assert_string_equal(p[1].of, "bias");
        assert_int_equal(p[0].n_dims, 2);
        assert_int_equal(p[0].dims[0], 3);
        assert_int_equal(p[0].dims[1], 16);
        assert_int_equal(p[1].n_dims, 1);
        assert_int_equal(p[1].dims[0], 3);
        assert_true(p[0].decays && !p[1].decays);
        assert_true(p[0].trained && p[1].trained);
        assert_true(p[0].bound == 0.25f && p[1].bound == 0.25f);
        l.bias = false;
        assert_int_equal(op->params(&l, p), 1);
    }
}

static void test_products(void **state)
{
    (void)state;
    struct layer l = dense(LAYER_DENSE, 16, 3);
    l.in.h = l.out.h = 5;
    assert_true(layer_dense.products(&l) == 5.0 * 16 * 3);
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
        cmocka_unit_test(test_dense),         cmocka_unit_test(test_places),
        cmocka_unit_test(test_scratch_grows), cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_nan),           cmocka_unit_test(test_params),
        cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
