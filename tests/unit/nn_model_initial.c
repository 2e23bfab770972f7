/* tests/unit/nn_model_initial.c -- initial values of models: the same for the same seed, with
 * the right distribution. */
#include "tests/unit/nn_model.h"

static void test_initial_values(void **state)
{
    (void)state;
    open_model("lenet5", &mnist);
    static float a[61706], b[61706];
    model_params(&m, 7, a);
    model_params(&m, 7, b);
    assert_memory_equal(a, b, sizeof a);
    model_params(&m, 8, b);
    assert_memory_not_equal(a, b, sizeof a);
    static const size_t fan_in[] = {25, 25, 150, 150, 400, 400, 120, 120, 84, 84};
    for (size_t i = 0; i < m.n_segments; i++) {
        const struct segment *s = &m.segments[i];
        double bound = 1 / sqrt((double)fan_in[i]);
        for (size_t j = 0; j < s->n; j++)
            assert_true(fabs((double)a[s->offset + j]) <= bound * 1.000001);
        if (s->n < 1000)
            continue;
        double variance = vec_norm2(a + s->offset, s->n) / (double)s->n;
        assert_true(fabs(variance / (bound * bound / 3) - 1) <= 0.1);
    }
}

/* Returns the root mean square of the initial values of a segment, which is found by its name. */
static double deviation_of(const float *x, const char *name)
{
    for (size_t i = 0; i < m.n_segments; i++)
        if (strcmp(m.segments[i].name, name) == 0)
            return sqrt(vec_norm2(x + m.segments[i].offset, m.segments[i].n)
                        / (double)m.segments[i].n);
    fail_msg("no segment %s", name);
    return 0;
}

static void test_initial_normals(void **state)
{
    (void)state;
    open_model("resnet:20", &cifar);
    float *x = malloc(m.n_params * sizeof *x);
    assert_non_null(x);
    model_params(&m, 7, x);
    double he = sqrt(2.0 / (9 * 64));
    assert_true(fabs(deviation_of(x, "layer3.1.conv1.weight") / he - 1) <= 0.02);
    assert_true(deviation_of(x, "bn1.weight") == 1);
    assert_true(deviation_of(x, "bn1.running_var") == 1);
    assert_true(deviation_of(x, "bn1.running_mean") == 0);
    assert_true(fabs(deviation_of(x, "fc.weight") * sqrt(3.0) * 8 - 1) <= 0.1);
    /* A seed must always give the same initial values, whatever the position of a segment in the
     * parameter vector. */
    const struct segment *fc = &m.segments[57];
    assert_true(vec_hash(x + fc->offset, fc->n) == 0xfac7ffe9df81eafa);
    free(x);
    open_model("gpt:2x32", &text);
    x = malloc(m.n_params * sizeof *x);
    assert_non_null(x);
    model_params(&m, 7, x);
    assert_true(fabs(deviation_of(x, "transformer.wte.weight") / 0.02 - 1) <= 0.05);
    assert_true(fabs(deviation_of(x, "transformer.h.1.mlp.c_proj.weight") / 0.01 - 1) <= 0.05);
    assert_true(deviation_of(x, "transformer.h.1.mlp.c_fc.bias") == 0);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_initial_normals),
    };
    return cmocka_run_group_tests(tests, NULL, close_last);
}
