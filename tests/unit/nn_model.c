/* tests/unit/nn_model.c -- models: specs, segments, memory plans, and the gradient of the mean loss
 * by each segment of the parameters, compared with central differences. Layers have tests of their
 * own, and nn_golden.c compares whole models with PyTorch. */
#include "tests/unit/nn_model.h"

static void refused_for(const char *spec, const struct data_shape *data, const char *word)
{
    strcpy(error, "");
    model_close(&m);
    assert_int_equal(model_init(&m, spec, MODEL_BATCH_NORM, data, error), -EINVAL);
    if (strstr(error, word) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", spec, error, word);
}

static void refused(const char *spec, const char *word)
{
    refused_for(spec, &mnist, word);
}

/* An error message about a model spec ends with an example of a valid spec. If the kind of model is
 * known, the example is of this kind. */
static void ends_with_example(const char *spec)
{
    char canonical[MODEL_SPEC_MAX], why[MODEL_ERROR_MAX];
    char *question = strstr(error, ", did you mean ");
    if (question != NULL)
        /* Cuts off the question "did you mean ...", which may not end with a valid spec. */
        *question = '\0';
    const char *example = strrchr(error, ' ') + 1;
    size_t name = strcspn(spec, ":");
    if (model_spec(example, canonical, why) != 0)
        fail_msg("%s: \"%s\" ends with no spec", spec, error);
    if (strncmp(example, spec, name) != 0 || example[name] != ':')
        if (strstr(error, "expected one such as") == NULL && strcmp(example, "logreg") != 0
            && strcmp(example, "lenet5") != 0)
            fail_msg("%s: \"%s\" ends with a spec of another kind", spec, error);
}

/* The error message for an unknown kind has one example spec of each kind. */
static void test_unknown_kind(void **state)
{
    (void)state;
    static const char *const kinds[] = {"logreg",    "mlp:784-512-10", "lenet5",   "vgg11:bn",
                                        "resnet:20", "lstm:2x256",     "gpt:4x128"};
    char canonical[MODEL_SPEC_MAX];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        refused("perceptron", kinds[i]);
        assert_int_equal(model_spec(kinds[i], canonical, error), 0);
    }
}

static void test_bad_specs(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "x",
        "logreg:",
        "logreg:10",
        "lenet",
        "lenet55",
        "lenet5:",
        "mlp",
        "mlp:",
        "mlp:784",
        "mlp:-784-10",
        "mlp:784-10-",
        "mlp:784--10",
        "mlp:784-0-10",
        "mlp:784-1e3-10",
        "mlp:784 -10",
        "mlp:784-65537-10",
        "mlp:784-99999999999999999999-10",
        "mlp:+784-10",
        "MLP:784-10",
        "vgg11:",
        "vgg11:gn",
        "vgg",
        "vgg11:bn:",
        "resnet",
        "resnet:",
        "resnet:18",
        "resnet:2",
        "resnet:1208",
        "resnet:020x",
        "resnet:-20",
        "lstm",
        "lstm:",
        "lstm:0",
        "lstm:9x16",
        "lstm:2x",
        "lstm:2x8x8",
        "lstm:x8",
        "lstm:4097",
        "gpt:4x100",
        "gpt:65x128",
        "gpt:4x",
        "gpt:32 ",
        "mlp:1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1"};
    char canonical[MODEL_SPEC_MAX];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char quoted[96];
        snprintf(quoted, sizeof quoted, "\"%.80s\"", bad[i]);
        refused(bad[i], quoted);
        assert_int_equal(model_spec(bad[i], canonical, error), -EINVAL);
        ends_with_example(bad[i]);
    }
    char long_spec[4096];
    memset(long_spec, 'x', sizeof long_spec);
    long_spec[sizeof long_spec - 1] = '\0';
    refused(long_spec, "xx");
}

/* If a model does not fit the data, the error message names both sizes. */
static void test_misfits(void **state)
{
    (void)state;
    refused("mlp:783-10", "783");
    refused("mlp:783-10", "784");
    refused("mlp:784-32-11", "11 outputs");
    refused("mlp:784-32-11", "10 classes");
    refused("mlp:783-10", "expected mlp:784-...-10");
    refused("mlp:784-32-11", "expected mlp:784-...-10");
    struct data_shape wide = {DATA_IMAGES, 1, 28, 30, 10};
    refused_for("lenet5", &wide, "28x30");
    refused_for("resnet:20", &wide, "28x30");
    refused_for("vgg11", &mnist, "28x28");
    refused_for("lenet5", &rows, "rows of numbers");
    refused_for("vgg11:bn", &sparse, "sparse rows");
    refused_for("logreg", &text, "text");
    refused_for("mlp:6-256", &text, "text");
    refused_for("gpt:1x32", &mnist, "text:PATH");
    refused_for("lstm:8", &rows, "text:PATH");
}

static void test_canonical(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"logreg", "logreg"},
                                           {"lenet5", "lenet5"},
                                           {"lenet5:bn", "lenet5:bn"},
                                           {"mlp:0784-0064-10", "mlp:784-64-10"},
                                           {"vgg11", "vgg11"},
                                           {"vgg11:bn", "vgg11:bn"},
                                           {"resnet:020", "resnet:20"},
                                           {"lstm:1x256", "lstm:256"},
                                           {"lstm:256", "lstm:256"},
                                           {"lstm:2x64", "lstm:2x64"},
                                           {"gpt:128", "gpt:1x128"},
                                           {"gpt:4x128", "gpt:4x128"},
                                           {"mlp:65536-1", "mlp:65536-1"}};
    char got[MODEL_SPEC_MAX];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(model_spec(pairs[i][0], got, error), 0);
        assert_string_equal(got, pairs[i][1]);
    }
    open_model("mlp:0784-10", &mnist);
    assert_string_equal(m.spec, "mlp:784-10");
}

static void test_segments(void **state)
{
    (void)state;
    open_model("lenet5", &mnist);
    assert_int_equal(m.n_params, 61706);
    static const char *const names[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                        "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias",
                                        "fc3.weight",   "fc3.bias"};
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
    assert_true(s->n_dims == 4 && s->dims[0] == 16 && s->dims[1] == 6 && s->dims[2] == 5
                && s->dims[3] == 5);
    assert_true(m.segments[4].dims[0] == 120 && m.segments[4].dims[1] == 400);
    open_model("lenet5", &cifar);
    assert_int_equal(m.n_params, 62006);
    open_model("mlp:784-512-512-10", &mnist);
    assert_int_equal(m.n_params, 669706);
    open_model("logreg", &mnist);
    assert_int_equal(m.n_params, 7850);
}

/* Checks the name, the shape and the flags of segment n. The list `dims` ends with a 0. */
static void check_segment(size_t n, const char *name, const uint32_t dims[4], bool decays,
                          bool trained)
{
    assert_true(n < m.n_segments);
    const struct segment *s = &m.segments[n];
    assert_string_equal(s->name, name);
    for (uint32_t d = 0; d < s->n_dims; d++)
        assert_int_equal(s->dims[d], dims[d]);
    assert_true(s->n_dims == 4 || dims[s->n_dims] == 0);
    assert_int_equal(s->decays, decays);
    assert_int_equal(s->trained, trained);
}

static size_t count_trained(void)
{
    size_t n = 0;
    for (size_t i = 0; i < m.n_segments; i++)
        n += m.segments[i].trained ? m.segments[i].n : 0;
    return n;
}

/* The models have as many parameters as the papers state and as PyTorch's modules have. */
static void test_networks(void **state)
{
    (void)state;
    open_model("resnet:20", &cifar);
    assert_int_equal(count_trained(), 269722);
    assert_int_equal(m.n_params, 269722 + 2 * 688);
    assert_int_equal(m.n_segments, 19 * 5 + 2);
    check_segment(0, "conv1.weight", (uint32_t[4]){16, 3, 3, 3}, true, true);
    check_segment(1, "bn1.weight", (uint32_t[4]){16}, false, true);
    check_segment(3, "layer1.0.conv1.weight", (uint32_t[4]){16, 16, 3, 3}, true, true);
    check_segment(54, "layer3.2.conv2.weight", (uint32_t[4]){64, 64, 3, 3}, true, true);
    check_segment(57, "fc.weight", (uint32_t[4]){10, 64}, true, true);
    check_segment(59, "bn1.running_mean", (uint32_t[4]){16}, false, false);
    check_segment(60, "bn1.running_var", (uint32_t[4]){16}, false, false);
    check_segment(96, "layer3.2.bn2.running_var", (uint32_t[4]){64}, false, false);
    static const struct
    {
        const char *spec;
        size_t n;
    } deep[] = {{"resnet:32", 464154},
                {"resnet:44", 658586},
                {"resnet:56", 853018},
                {"resnet:110", 1727962}};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        open_model(deep[i].spec, &cifar);
        assert_int_equal(count_trained(), deep[i].n);
    }
    open_model("vgg11", &cifar);
    assert_int_equal(m.n_params, 9225610);
    static const unsigned plain[] = {0, 3, 6, 8, 11, 13, 16, 18};
    static const unsigned normed[] = {0, 4, 8, 11, 15, 18, 22, 25};
    char name[32];
    for (size_t i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "features.%u.weight", plain[i]);
        assert_string_equal(m.segments[2 * i].name, name);
    }
    assert_string_equal(m.segments[16].name, "classifier.weight");
    open_model("vgg11:bn", &cifar);
    assert_int_equal(count_trained(), 9225610 + 2 * 2752);
    for (size_t i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "features.%u.weight", normed[i]);
        assert_string_equal(m.segments[4 * i].name, name);
        snprintf(name, sizeof name, "features.%u.running_var", normed[i] + 1);
        assert_string_equal(m.segments[8 * 4 + 2 + 2 * i + 1].name, name);
    }
    struct data_shape book = text;
    book.height = 128;
    open_model("gpt:4x128", &book);
    assert_int_equal(m.n_params, 875264);
    assert_int_equal(m.n_rows, 128);
    check_segment(0, "transformer.wte.weight", (uint32_t[4]){256, 128}, true, true);
    check_segment(1, "transformer.wpe.weight", (uint32_t[4]){128, 128}, true, true);
    check_segment(4, "transformer.h.0.attn.c_attn.weight", (uint32_t[4]){384, 128}, true, true);
    check_segment(m.n_segments - 1, "lm_head.weight", (uint32_t[4]){256, 128}, true, true);
    open_model("lstm:256", &book);
    assert_int_equal(m.n_params, 657664);
    check_segment(0, "encoder.weight", (uint32_t[4]){256, 256}, true, true);
    check_segment(1, "rnn.weight_ih_l0", (uint32_t[4]){1024, 256}, true, true);
    check_segment(4, "rnn.bias_hh_l0", (uint32_t[4]){1024}, false, true);
    open_model("lstm:2x16", &book);
    check_segment(6, "rnn.weight_hh_l1", (uint32_t[4]){64, 16}, true, true);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

/* The indices at[] of a layer point to the segments of its parameters. All of them belong to one
 * PyTorch module. */
static void check_layer_order(const struct layer *l)
{
    struct layer_param p[LAYER_PARAMS_MAX];
    const struct layer_op *op = layer_op(l->kind);
    size_t n = op->params ? op->params(l, p) : 0, module = 0;
    for (size_t k = 0; k < n; k++) {
        const struct segment *s = m.segments;
        while (s->offset != l->at[k])
            assert_true(++s < m.segments + m.n_segments);
        assert_true(ends_with(s->name, p[k].of));
        assert_true(k == 0
                    || strncmp(s->name, m.segments[module].name, strlen(s->name) - strlen(p[k].of))
                           == 0);
        module = k == 0 ? (size_t)(s - m.segments) : module;
    }
}

/* Trained segments come first and running statistics last, each in the order of the layers. A
 * network without running statistics has the same trained segments. */
static void check_order(const char *spec, size_t n_norms)
{
    struct model without;
    assert_int_equal(model_init(&without, spec, MODEL_GROUP_NORM, &cifar, error), 0);
    open_model(spec, &cifar);
    size_t n = without.n_segments, end = 0;
    assert_int_equal(m.n_segments, n + 2 * n_norms);
    for (size_t i = 0; i < m.n_segments; i++) {
        const struct segment *s = &m.segments[i];
        assert_int_equal(s->offset, end);
        assert_int_equal(s->trained, i < n);
        assert_int_equal(s->nonnegative, ends_with(s->name, ".running_var"));
        if (i < n)
            assert_memory_equal(s, &without.segments[i], sizeof *s);
        else
            assert_true(ends_with(s->name, (i - n) % 2 ? ".running_var" : ".running_mean"));
        end += s->n;
    }
    assert_int_equal(end, m.n_params);
    assert_int_equal(segments_trained(m.segments, m.n_segments), without.n_params);
    assert_int_equal(count_trained(), without.n_params);
    for (size_t i = 0; i < m.n_layers; i++)
        check_layer_order(&m.layers[i]);
    model_close(&without);
}

static void test_order(void **state)
{
    (void)state;
    check_order("resnet:8", 7);
    check_order("resnet:20", 19);
    check_order("vgg11:bn", 8);
    check_order("vgg11", 0);
    check_order("lenet5", 0);
    check_order("lenet5:bn", 2);
}

/* The setting model_norm decides the kind of normalisation. The open model reports whether it has
 * normalisation layers. */
static void test_norms(void **state)
{
    (void)state;
    model_close(&m);
    assert_int_equal(model_init(&m, "resnet:8", MODEL_GROUP_NORM, &cifar, error), 0);
    assert_int_equal(m.n_params, count_trained());
    assert_int_equal(m.layers[1].groups, 2);
    assert_string_equal(m.segments[1].name, "bn1.weight");
    model_close(&m);
    assert_int_equal(model_init(&m, "vgg11:bn", MODEL_LAYER_NORM, &cifar, error), 0);
    assert_int_equal(m.layers[1].groups, 1);
    model_close(&m);
    assert_int_equal(model_init(&m, "lenet5:bn", MODEL_GROUP_NORM, &cifar, error), 0);
    assert_int_equal(m.layers[2].groups, 2);
    assert_int_equal(m.layers[5].groups, 4);
    assert_true(model_has_norm("resnet:20") && model_has_norm("vgg11:bn"));
    assert_true(model_has_norm("lenet5:bn"));
    assert_false(model_has_norm("vgg11") || model_has_norm("lenet5") || model_has_norm("gpt:4x128")
                 || model_has_norm("nonsense"));
}

/* --- passes --- */

enum { BATCH = 4 };

struct bed
{
    struct model_plan plan;
    float *x, *moved, *grad, *arena, *input;
    uint16_t *labels;
    size_t n_labels;
    size_t start[BATCH + 1];
    uint32_t column[BATCH * 8];
    float value[BATCH * 8];
};

static float *floats(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof *v + 63) / 64 * 64 + 64);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = NAN; /* The model must overwrite every float before it uses it. */
    return v;
}

static void draw_input(struct bed *b)
{
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 5, 0));
    for (size_t i = 0; i < BATCH * shape_size(m.in); i++)
        b->input[i] = m.data.form == DATA_TEXT ? (float)rng_below(&r, 256) : (float)rng_normal(&r);
    for (size_t i = 0; i < b->n_labels; i++)
        b->labels[i] = (uint16_t)rng_below(&r, m.n_classes);
    for (size_t i = 0; i < BATCH; i++) {
        b->start[i + 1] = b->start[i] + i; /* Row i has i entries, so the first row is empty. */
        for (size_t e = b->start[i]; e < b->start[i + 1]; e++) {
            b->column[e] = (uint32_t)(7 * (e - b->start[i]) + i);
            b->value[e] = (float)rng_normal(&r);
        }
    }
}

static void bed_open(struct bed *b, bool training)
{
    memset(b, 0, sizeof *b);
    assert_int_equal(model_plan_init(&b->plan, &m, BATCH, training), 0);
    b->n_labels = (size_t)BATCH * m.n_rows;
    b->x = floats(m.n_params);
    b->moved = floats(m.n_params);
    b->grad = floats(m.n_params);
    b->arena = floats(b->plan.n_floats);
    b->input = floats(BATCH * shape_size(m.in));
    b->labels = calloc(b->n_labels, sizeof *b->labels);
    assert_non_null(b->labels);
    model_params(&m, 3, b->x);
    draw_input(b);
}

static void bed_close(struct bed *b)
{
    void *all[] = {b->x, b->moved, b->grad, b->arena, b->input, b->labels};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    model_plan_close(&b->plan);
}

static struct model_pass bed_pass(struct bed *b, const float *x)
{
    return (struct model_pass){.n = BATCH,
                               .x = x,
                               .grad = b->grad,
                               .plan = &b->plan,
                               .arena = b->arena,
                               .rows = {b->start, b->column, b->value}};
}

static float *forward(struct bed *b, const float *x)
{
    struct model_pass p = bed_pass(b, x);
    size_t dim = m.sparse ? 0 : shape_size(m.in);
    for (uint32_t i = 0; i < BATCH && dim > 0; i++)
        memcpy(model_input(&m, &p, i), b->input + i * dim, dim * sizeof *b->input);
    return model_forward(&m, &p);
}

static double loss_at(struct bed *b, const float *x, float **d_logits)
{
    float *z = forward(b, x);
    struct loss_batch batch = {
        .n = b->n_labels, .n_classes = m.n_classes, .logits = z, .labels = b->labels};
    if (d_logits != NULL)
        *d_logits = z;
    return loss_softmax(&batch, d_logits != NULL ? z : NULL).sum / (double)b->n_labels;
}

/* The slope of the loss along the gradient of one segment is the norm of this gradient. */
static void check_segment_slope(struct bed *b, const struct segment *s, double whole)
{
    const float *g = b->grad + s->offset;
    double length = sqrt(vec_norm2(g, s->n));
    if (!s->trained || length < 1e-3 * whole)
        /* Segments with almost no gradient are skipped, such as a bias before a batch norm. */
        return;
    /* A step of this length along the gradient changes the loss by about 3e-5. */
    double h = 3e-5 / length;
    double loss[2];
    for (int side = 0; side < 2; side++) {
        memcpy(b->moved, b->x, m.n_params * sizeof *b->x);
        vec_axpy(b->moved + s->offset, (float)((side ? -h : h) / length), g, s->n);
        loss[side] = loss_at(b, b->moved, NULL);
    }
    double slope = (loss[0] - loss[1]) / (2 * h);
    /* The tolerance of 8 % allows for the kinks of ReLUs. */
    if (!(fabs(slope / length - 1) <= 0.08))
        fail_msg("%s: %s: slope %g, length of the gradient %g", m.spec, s->name, slope, length);
}

static void check_gradient(const char *spec, const struct data_shape *data)
{
    struct bed b;
    float *d_logits;
    open_model(spec, data);
    bed_open(&b, true);
    (void)loss_at(&b, b.x, &d_logits);
    struct model_pass p = bed_pass(&b, b.x);
    model_backward(&m, &p, d_logits);
    /* The backward pass has written the gradient of every parameter. */
    assert_true(vec_finite(b.grad, m.n_params));
    double whole = sqrt(vec_norm2(b.grad, m.n_params));
    assert_true(whole > 0);
    for (size_t i = 0; i < m.n_segments; i++)
        check_segment_slope(&b, &m.segments[i], whole);
    bed_close(&b);
}

static void test_gradients(void **state)
{
    (void)state;
    struct data_shape small = {DATA_IMAGES, 3, 4, 5, 7};
    check_gradient("logreg", &small);
    check_gradient("mlp:60-9-17-7", &small);
    check_gradient("mlp:12-9-4", &rows);
    check_gradient("logreg", &sparse);
    check_gradient("mlp:50-16-3", &sparse);
    check_gradient("mlp:784-64-32-10", &mnist);
    check_gradient("lenet5", &mnist);
    check_gradient("lenet5", &cifar);
    check_gradient("resnet:8", &cifar);
    check_gradient("resnet:8", &mnist);
    check_gradient("lstm:8", &text);
    check_gradient("lstm:2x16", &text);
    check_gradient("gpt:2x32", &text);
}

/* A memory plan without training needs less memory and gives the same logits. */
static void check_forward_only(const char *spec, const struct data_shape *data)
{
    struct bed both, alone;
    open_model(spec, data);
    bed_open(&both, true);
    bed_open(&alone, false);
    assert_true(alone.plan.n_floats < both.plan.n_floats);
    assert_memory_equal(forward(&alone, alone.x), forward(&both, both.x),
                        both.n_labels * m.n_classes * sizeof(float));
    bed_close(&both);
    bed_close(&alone);
}

static void test_forward_only(void **state)
{
    (void)state;
    check_forward_only("lenet5", &cifar);
    check_forward_only("gpt:2x32", &text);
    check_forward_only("lstm:2x16", &text);
}

/* A training plan of a deep network keeps the outputs of all layers for the backward pass.
 * Gradients share memory, so the plan must need less than 1.3 times as many floats as all outputs
 * together. Scratch memory of layers is not counted. */
static void test_plan_shares(void **state)
{
    (void)state;
    struct model_plan plan;
    open_model("resnet:56", &cifar);
    size_t outputs = 0;
    for (size_t i = 0; i < m.n_layers; i++)
        outputs += 8 * shape_size(m.layers[i].out);
    assert_int_equal(model_plan_init(&plan, &m, 8, true), 0);
    assert_true((double)plan.scratch < 1.3 * (double)outputs);
    model_plan_close(&plan);
    assert_int_equal(model_plan_init(&plan, &m, 8, false), 0);
    assert_true((double)plan.scratch < 0.2 * (double)outputs);
    model_plan_close(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_specs),   cmocka_unit_test(test_unknown_kind),
        cmocka_unit_test(test_misfits),     cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_segments),    cmocka_unit_test(test_networks),
        cmocka_unit_test(test_order),       cmocka_unit_test(test_norms),
        cmocka_unit_test(test_gradients),   cmocka_unit_test(test_forward_only),
        cmocka_unit_test(test_plan_shares),
    };
    return cmocka_run_group_tests(tests, NULL, close_last);
}
