/* tests/unit/nn_layer_pool.c -- pooling layers, and layers that only move, join or transform
 * single values. */
#include "nn/layers/layer.h"

#include "nn_layer_ref.h"

static struct layer maxpool(uint32_t c, uint32_t h, uint32_t w, bool relu)
{
    return (struct layer){.kind = LAYER_MAXPOOL,
                          .in = {c, 2 * h, 2 * w},
                          .out = {c, h, w},
                          .with = LAYER_NONE,
                          .relu = relu};
}

/* The numbers of channels are below, at and between multiples of the vector length. */
static void test_maxpool(void **state)
{
    (void)state;
    static const uint32_t channels[] = {1, 2, 3, 6, 15, 16, 17, 31, 32, 40, 64};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        gradient_check(maxpool(channels[i], 1, 1, false), ref_maxpool);
        gradient_check(maxpool(channels[i], 3, 2, true), ref_maxpool);
        gradient_check(maxpool(channels[i], 2, 5, false), ref_maxpool);
    }
}

/* Runs max pooling once forward and backward. */
static void pool_once(const struct layer *l, const float *in, float *out, float *d_out, float *d_in)
{
    float *keep = gradient_floats(layer_maxpool.keep(l, 1));
    struct layer_pass p = {
        .n = 1, .training = true, .in = in, .out = out, .d_out = d_out, .d_in = d_in, .keep = keep};
    layer_maxpool.forward(l, &p);
    layer_maxpool.backward(l, &p);
    free(keep);
}

/* In max pooling, the first of equal maxima gets the whole gradient. If the ReLU makes the output
 * 0, no input gets a gradient. */
static void test_maxpool_tie(void **state)
{
    (void)state;
    struct layer l = maxpool(1, 1, 4, false);
    float in[16 + LAYER_SLACK] = {1, 2, 5, 5, -1, -3, 0, -7, 2, 2, 5, 5, -1, -1, -2, 0};
    float out[4 + LAYER_SLACK], d_in[16 + LAYER_SLACK];
    float d_out[4 + LAYER_SLACK] = {3, 7, 9, 4};
    pool_once(&l, in, out, d_out, d_in);
    const float want[16] = {0, 3, 7, 0, 9, 0, 4, 0};
    assert_memory_equal(out, ((float[]){2, 5, -1, 0}), 4 * sizeof *out);
    assert_memory_equal(d_in, want, sizeof want);
    l.relu = true;
    pool_once(&l, in, out, d_out, d_in);
    const float shut[16] = {0, 3, 7};
    assert_memory_equal(out, ((float[]){2, 5, 0, 0}), 4 * sizeof *out);
    assert_memory_equal(d_in, shut, sizeof shut);
}

/* In max pooling, a NaN wins against every other value of its window, and gets the gradient. */
static void test_maxpool_nan(void **state)
{
    (void)state;
    for (size_t at = 0; at < 4; at++)
        for (int relu = 0; relu < 2; relu++) {
            struct layer l = maxpool(2, 1, 1, relu == 1);
            float in[8 + LAYER_SLACK], out[2 + LAYER_SLACK];
            float d_out[2 + LAYER_SLACK] = {1, 1}, d_in[8 + LAYER_SLACK];
            for (size_t i = 0; i < 8; i++)
                in[i] = i % 3 == 0 ? INFINITY : (float)i;
            in[2 * at] = NAN;
            pool_once(&l, in, out, d_out, d_in);
            assert_true(isnan(out[0]));
            assert_true(out[1] == out[1]);
            for (size_t i = 0; i < 4; i++)
                assert_true(d_in[2 * i] == (i == at ? 1.0f : 0.0f));
        }
}

static void test_avgpool(void **state)
{
    (void)state;
    static const uint32_t channels[] = {1, 3, 16, 64, 67};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        gradient_check((struct layer){.kind = LAYER_AVGPOOL,
                                      .in = {channels[i], 5, 3},
                                      .out = {channels[i], 1, 1},
                                      .with = LAYER_NONE},
                       ref_avgpool);
}

static void test_flatten(void **state)
{
    (void)state;
    static const struct shape shapes[] = {{1, 1, 1},  {3, 2, 5},  {16, 5, 5},
                                          {17, 1, 1}, {6, 33, 2}, {40, 4, 5}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        gradient_check((struct layer){.kind = LAYER_FLATTEN,
                                      .in = shapes[i],
                                      .out = {(uint32_t)shape_size(shapes[i]), 1, 1},
                                      .with = LAYER_NONE},
                       ref_flatten);
}

static void test_shortcut(void **state)
{
    (void)state;
    static const struct shape shapes[][2] = {{{1, 2, 2}, {2, 1, 1}},   {{3, 4, 6}, {6, 2, 3}},
                                             {{16, 4, 4}, {32, 2, 2}}, {{4, 3, 5}, {8, 3, 5}},
                                             {{5, 6, 2}, {8, 3, 1}},   {{7, 4, 2}, {7, 2, 1}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        gradient_check((struct layer){.kind = LAYER_SHORTCUT,
                                      .in = shapes[i][0],
                                      .out = shapes[i][1],
                                      .with = LAYER_NONE},
                       ref_shortcut);
}

static void test_add(void **state)
{
    (void)state;
    gradient_check((struct layer){.kind = LAYER_ADD, .in = {3, 5, 7}, .out = {3, 5, 7}}, ref_add);
}

static void test_gelu(void **state)
{
    (void)state;
    gradient_check(
        (struct layer){.kind = LAYER_GELU, .in = {37, 3, 1}, .out = {37, 3, 1}, .with = LAYER_NONE},
        ref_gelu);
}

/* GELU is the identity with slope 1 far above 0, and 0 with slope 0 far below. */
static void test_gelu_far(void **state)
{
    (void)state;
    struct layer l = {.kind = LAYER_GELU, .in = {6, 1, 1}, .out = {6, 1, 1}};
    float in[6 + LAYER_SLACK] = {-1e20f, -50, 0, 50, 1e12f, NAN};
    float out[6 + LAYER_SLACK], d_in[6 + LAYER_SLACK];
    float d_out[6 + LAYER_SLACK] = {1, 1, 1, 1, 1, 1};
    struct layer_pass p = {.n = 1, .in = in, .out = out, .d_out = d_out, .d_in = d_in};
    layer_gelu.forward(&l, &p);
    layer_gelu.backward(&l, &p);
    const float want[5] = {0, 0, 0, 50, 1e12f}, slope[5] = {0, 0, 0.5f, 1, 1};
    for (size_t i = 0; i < 5; i++) {
        assert_true(out[i] == want[i]);
        assert_true(fabsf(d_in[i] - slope[i]) <= 1e-30f);
    }
    assert_true(isnan(out[5]) && isnan(d_in[5]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maxpool),     cmocka_unit_test(test_maxpool_tie),
        cmocka_unit_test(test_maxpool_nan), cmocka_unit_test(test_avgpool),
        cmocka_unit_test(test_flatten),     cmocka_unit_test(test_shortcut),
        cmocka_unit_test(test_add),         cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_gelu_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
