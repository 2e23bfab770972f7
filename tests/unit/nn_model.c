/* Models: specs, segments, initial values, and the gradient of the mean loss
 * by the whole chain of layers against central differences. */
#include "nn_ref.h"

#include "nn/loss.h"
#include "nn/model.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const struct shape mnist = {1, 28, 28}, cifar = {3, 32, 32};

static char error[MODEL_ERROR_MAX];
static struct model m;

static void open_model(const char *spec, struct shape in, uint32_t n_classes)
{
    error[0] = '\0';
    if (model_init(&m, spec, in, n_classes, error) != 0)
        fail_msg("%s: %s", spec, error);
}

static void refused(const char *spec, const char *word)
{
    strcpy(error, "");
    assert_int_equal(model_init(&m, spec, mnist, 10, error), -EINVAL);
    if (strstr(error, word) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", spec, error, word);
}

static void test_bad_specs(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "x", "logreg:", "logreg:10", "lenet", "lenet55", "lenet5:", "mlp",
        "mlp:", "mlp:784", "mlp:-784-10", "mlp:784-10-", "mlp:784--10",
        "mlp:784-0-10", "mlp:784-1e3-10", "mlp:784 -10", "mlp:784-65537-10",
        "mlp:784-99999999999999999999-10", "mlp:+784-10", "MLP:784-10",
        "mlp:1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1"};
    char canonical[MODEL_SPEC_MAX];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char quoted[96];
        snprintf(quoted, sizeof quoted, "\"%.80s\"", bad[i]);
        refused(bad[i], quoted);
        assert_int_equal(model_spec(bad[i], canonical, error), -EINVAL);
    }
    char long_spec[4096];
    memset(long_spec, 'x', sizeof long_spec);
    long_spec[sizeof long_spec - 1] = '\0';
    refused(long_spec, "xx");
}

/* A model that does not fit the data: the message names both sizes. */
static void test_misfits(void **state)
{
    (void)state;
    refused("mlp:783-10", "783");
    refused("mlp:783-10", "784");
    refused("mlp:784-32-11", "11 outputs");
    refused("mlp:784-32-11", "10 classes");
    struct shape wide = {1, 28, 30};
    assert_int_equal(model_init(&m, "lenet5", wide, 10, error), -EINVAL);
    assert_non_null(strstr(error, "28x30"));
}

static void test_canonical(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"logreg", "logreg"}, {"lenet5", "lenet5"},
        {"mlp:0784-0064-10", "mlp:784-64-10"},
        {"mlp:65536-1", "mlp:65536-1"}};
    char got[MODEL_SPEC_MAX];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(model_spec(pairs[i][0], got, error), 0);
        assert_string_equal(got, pairs[i][1]);
    }
    open_model("mlp:0784-10", mnist, 10);
    assert_string_equal(m.spec, "mlp:784-10");
}

static void test_segments(void **state)
{
    (void)state;
    open_model("lenet5", mnist, 10);
    assert_int_equal(m.n_params, 61706);
    static const char *const names[] = {
        "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
        "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
        "fc3.weight", "fc3.bias"};
    assert_int_equal(m.n_segments, 10);
    size_t end = 0;
    for (size_t i = 0; i < m.n_segments; i++) {
        const struct segment *s = &m.segments[i];
        assert_string_equal(s->name, names[i]);
        assert_int_equal(s->offset, end);
        assert_int_equal(s->rows * s->cols, s->n);
        size_t dims = 1;
        for (uint32_t d = 0; d < s->n_dims; d++)
            dims *= s->dims[d];
        assert_int_equal(dims, s->n);
        assert_int_equal(s->decays, i % 2 == 0);
        assert_true(s->trained);
        end += s->n;
    }
    assert_int_equal(end, m.n_params);
    const struct segment *s = &m.segments[2];
    assert_true(s->n_dims == 4 && s->dims[0] == 16 && s->dims[1] == 6 &&
                s->dims[2] == 5 && s->dims[3] == 5);
    assert_true(m.segments[4].dims[0] == 120 && m.segments[4].dims[1] == 400);
    open_model("lenet5", cifar, 10);
    assert_int_equal(m.n_params, 62006);
    open_model("mlp:784-512-512-10", mnist, 10);
    assert_int_equal(m.n_params, 669706);
    open_model("logreg", mnist, 10);
    assert_int_equal(m.n_params, 7850);
}

static void test_initial_values(void **state)
{
    (void)state;
    open_model("lenet5", mnist, 10);
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

/* --- gradients --- */

enum {
    BATCH = 3
};

struct bed
{
    double *x, *in, *act[2];
    float *xf, *gradf, *inf, *arena;
    size_t n_in, n_arena;
    uint8_t labels[BATCH];
};

/* Mean loss, by naive loops. */
static double ref_loss(const struct bed *b)
{
    const double *in = b->in;
    double *z = NULL, loss = 0;
    for (size_t i = 0; i < m.n_layers; i++) {
        z = b->act[i % 2];
        ref_forward(&m.layers[i], BATCH, b->x, in, z);
        in = z;
    }
    for (size_t s = 0; s < BATCH; s++, z += m.n_classes) {
        double sum = 0;
        for (size_t j = 0; j < m.n_classes; j++)
            sum += exp(z[j]);
        loss += log(sum) - z[b->labels[s]];
    }
    return loss / BATCH;
}

static void bed_open(struct bed *b)
{
    size_t largest = 0;
    for (size_t i = 0; i < m.n_layers; i++)
        if (shape_size(m.layers[i].out) > largest)
            largest = shape_size(m.layers[i].out);
    b->n_in = shape_size(m.in);
    b->n_arena = model_arena(&m, BATCH, true);
    b->x = ref_alloc(m.n_params, sizeof(double));
    b->in = ref_alloc(BATCH * b->n_in, sizeof(double));
    for (size_t i = 0; i < 2; i++)
        b->act[i] = ref_alloc(BATCH * largest, sizeof(double));
    b->xf = ref_alloc(m.n_params, sizeof(float));
    b->gradf = ref_alloc(m.n_params, sizeof(float));
    b->inf = ref_alloc(BATCH * b->n_in, sizeof(float));
    b->arena = ref_alloc(b->n_arena, sizeof(float));
    ref_poison(b->arena, b->n_arena);
    ref_poison(b->gradf, m.n_params);
    model_params(&m, 3, b->xf);
    for (size_t i = 0; i < m.n_params; i++)
        b->x[i] = (double)b->xf[i];
    ref_noise(rng_key(1, RNG_TEST, 5, 0), 1, b->in, b->inf, BATCH * b->n_in);
    for (size_t i = 0; i < BATCH; i++)
        b->labels[i] = (uint8_t)((i * 2 + 1) % m.n_classes);
}

static void bed_close(struct bed *b)
{
    void *all[] = {b->x, b->in, b->act[0], b->act[1],
                   b->xf, b->gradf, b->inf, b->arena};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* The float gradient of element i against the slope of ref_loss(). The
 * tolerance is absolute in units of the segment's largest gradient. */
static void check_at(struct bed *b, size_t i, double scale)
{
    double h = 1e-6, x0 = b->x[i];
    b->x[i] = x0 + h;
    double up = ref_loss(b);
    b->x[i] = x0 - h;
    double down = ref_loss(b);
    b->x[i] = x0;
    double want = (up - down) / (2 * h), got = (double)b->gradf[i];
    if (!(fabs(got - want) <= 2e-5 * scale + 1e-8))
        fail_msg("%s: grad[%zu] is %.9g, expected %.9g", m.spec, i, got, want);
}

static void check_gradient(uint32_t per_segment)
{
    struct bed b;
    bed_open(&b);
    struct model_pass p = {.n = BATCH, .x = b.xf, .grad = b.gradf,
                           .arena = b.arena, .n_arena = b.n_arena};
    for (uint32_t i = 0; i < BATCH; i++)
        model_input(&m, &p, i, b.inf + i * b.n_in);
    float *z = model_forward(&m, &p);
    struct loss_batch batch = {BATCH, m.n_classes, z, b.labels};
    double loss = loss_softmax(&batch, z).sum / BATCH;
    assert_true(ref_near(loss, ref_loss(&b), 1e-5));
    model_backward(&m, &p, z);
    assert_true(vec_finite(b.gradf, m.n_params)); /* All of it is written. */
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 6, 0));
    for (size_t i = 0; i < m.n_segments; i++) {
        const struct segment *s = &m.segments[i];
        double scale = 0;
        for (size_t j = 0; j < s->n; j++)
            scale = fmax(scale, fabs((double)b.gradf[s->offset + j]));
        assert_true(scale > 0);
        for (uint32_t c = 0; c < per_segment; c++)
            check_at(&b, s->offset + (size_t)rng_below(&r, s->n), scale);
    }
    bed_close(&b);
}

static void test_gradient_logreg(void **state)
{
    (void)state;
    open_model("logreg", (struct shape){3, 4, 5}, 7);
    check_gradient(100);
}

static void test_gradient_mlp(void **state)
{
    (void)state;
    open_model("mlp:12-9-17-4", (struct shape){1, 3, 4}, 4);
    check_gradient(100);
    open_model("mlp:784-64-32-10", mnist, 10);
    check_gradient(20);
}

static void test_gradient_lenet5(void **state)
{
    (void)state;
    open_model("lenet5", mnist, 10);
    check_gradient(15);
    open_model("lenet5", cifar, 10);
    check_gradient(8);
}

/* Forward alone takes less memory and gives the same logits. */
static void test_forward_only(void **state)
{
    (void)state;
    open_model("lenet5", cifar, 10);
    struct bed b;
    bed_open(&b);
    struct model_pass p = {.n = BATCH, .x = b.xf, .grad = b.gradf,
                           .arena = b.arena, .n_arena = b.n_arena};
    for (uint32_t i = 0; i < BATCH; i++)
        model_input(&m, &p, i, b.inf + i * b.n_in);
    float want[BATCH * 10];
    memcpy(want, model_forward(&m, &p), sizeof want);
    p.grad = NULL;
    p.n_arena = model_arena(&m, BATCH, false);
    assert_true(p.n_arena < b.n_arena);
    assert_memory_equal(model_forward(&m, &p), want, sizeof want);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_specs),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_gradient_logreg),
        cmocka_unit_test(test_gradient_mlp),
        cmocka_unit_test(test_gradient_lenet5),
        cmocka_unit_test(test_forward_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
