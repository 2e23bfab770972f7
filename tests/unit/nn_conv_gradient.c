/* tests/unit/nn_conv_gradient.c -- gradients of convolutions, by both implementations, are compared
 * with central differences of a plain convolution in double precision (nn_gradient.h). */
#include "nn_gradient.h"
#include "nn_layer_ref.h"

/* Returns one output value: the inputs under the kernel times the weights, which have PyTorch's
 * order [out channel][in channel][row][column]. */
static double conv_at(const struct layer *l, const struct gradient_values *v, const size_t at[4])
{
    const double *weight = v->x + l->at[0];
    size_t k = l->kernel;
    double sum = l->bias ? v->x[l->at[1] + at[3]] : 0;
    for (size_t c = 0; c < l->in.c; c++)
        for (size_t i = 0; i < k * k; i++) {
            /* Index of the input row in the map with padding. */
            size_t y = at[1] * l->stride + i / k;
            size_t x = at[2] * l->stride + i % k;
            if (y < l->pad || x < l->pad || y >= l->in.h + l->pad || x >= l->in.w + l->pad)
                continue;
            sum += weight[(at[3] * l->in.c + c) * k * k + i]
                   * v->in[ref_at(l->in, at[0], y - l->pad, x - l->pad, c)];
        }
    return ref_relu(l, sum);
}

static void ref_conv(const struct layer *l, const struct gradient_values *v, double *out)
{
    for (size_t s = 0; s < v->n; s++)
        for (size_t y = 0; y < l->out.h; y++)
            for (size_t x = 0; x < l->out.w; x++)
                for (size_t o = 0; o < l->out.c; o++)
                    *out++ = conv_at(l, v, (size_t[4]){s, y, x, o});
}

static struct layer conv(struct shape in, uint32_t o, uint32_t kernel, uint32_t stride,
                         uint32_t pad)
{
    return (struct layer){
        .kind = LAYER_CONV,
        .with = LAYER_NONE,
        .in = in,
        .out = {o, (in.h + 2 * pad - kernel) / stride + 1, (in.w + 2 * pad - kernel) / stride + 1},
        .kernel = kernel,
        .stride = stride,
        .pad = pad};
}

static void check(struct layer l)
{
    gradient_check(l, ref_conv);
    l.bias = l.relu = true;
    gradient_check(l, ref_conv);
}

static void test_winograd(void **state)
{
    (void)state;
    check(conv((struct shape){16, 4, 6}, 16, 3, 1, 1));
    check(conv((struct shape){32, 2, 2}, 48, 3, 1, 1));
}

static void test_products(void **state)
{
    (void)state;
    check(conv((struct shape){1, 8, 8}, 6, 5, 1, 2));
    check(conv((struct shape){6, 7, 7}, 16, 5, 1, 0));
    check(conv((struct shape){3, 6, 6}, 17, 3, 1, 1));
    check(conv((struct shape){16, 6, 6}, 32, 3, 2, 1));
    check(conv((struct shape){5, 4, 3}, 7, 1, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
