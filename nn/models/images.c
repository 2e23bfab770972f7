/* nn/models/images.c -- the networks for images and rows.
 *
 * Each network follows its paper or torchvision layer by layer, with the names of PyTorch's
 * modules, so that PyTorch loads a model file (tests/pytorch_models.py).
 */
#include "nn/math/number.h"
#include "nn/models/build.h"

#include <math.h>
#include <stdio.h>

/* Refuses data whose shape the model cannot take. The error message names models that take data of
 * this shape. */
static int refuse_form(const struct build *b, const char *expected, char error[MODEL_ERROR_MAX])
{
    enum data_form form = b->m->data.form;
    snprintf(error, MODEL_ERROR_MAX, "model \"%.80s\" takes %s, but the data is %s; choose %s",
             b->m->spec, expected, data_form_name(form),
             form == DATA_TEXT ? "lstm:256 or gpt:4x128" : "logreg or mlp:SIZES");
    return MODEL_REFUSED;
}

/* --- logistic regression and multilayer perceptrons --- */

/* Appends a layer that reorders the features from [h][w][c] to PyTorch's order c, h, w. With one
 * channel both orders are equal, and only the shape of the input is changed. */
static void flatten(struct build *b)
{
    struct shape in = build_shape(b, build_last(b));
    struct shape flat = {(uint32_t)shape_size(in), 1, 1};
    if (shape_places(in) == 1 || b->m->sparse)
        return;
    if (in.c == 1 && build_last(b) == LAYER_INPUT)
        b->m->in = flat;
    else
        build_add(b,
                  (struct layer){
                      .kind = LAYER_FLATTEN, .from = BUILD_LAST, .with = LAYER_NONE, .out = flat},
                  "");
}

/* Builds logistic regression: one dense layer. */
int build_logreg(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    (void)sizes;
    if (b->m->data.form == DATA_TEXT)
        return refuse_form(b, "images or rows", error);
    flatten(b);
    build_dense(b, b->m->n_classes, false, "fc1");
    return 0;
}

/* Checks that the first width of an mlp is the number of inputs of the data, and the last one the
 * number of classes. */
static int check_mlp(const struct model *m, const struct model_sizes *sizes,
                     char error[MODEL_ERROR_MAX])
{
    size_t inputs = shape_size(m->in);
    uint32_t last = sizes->size[sizes->n - 1];
    if (sizes->size[0] != inputs) {
        snprintf(error, MODEL_ERROR_MAX,
                 "model \"%.80s\" takes %u inputs, but the data has %zu "
                 "(%ux%ux%u): expected mlp:%zu-...-%u",
                 m->spec, (unsigned)sizes->size[0], inputs, (unsigned)m->in.c, (unsigned)m->in.h,
                 (unsigned)m->in.w, inputs, (unsigned)m->n_classes);
        return MODEL_REFUSED;
    }
    if (last != m->n_classes) {
        snprintf(error, MODEL_ERROR_MAX,
                 "model \"%.80s\" has %u output%s, but the data has %u classes: expected "
                 "mlp:%zu-...-%u",
                 m->spec, (unsigned)last, number_plural(last), (unsigned)m->n_classes, inputs,
                 (unsigned)m->n_classes);
        return MODEL_REFUSED;
    }
    return 0;
}

/* Builds a multilayer perceptron: dense layers, with ReLU after each layer except the last. */
int build_mlp(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    if (b->m->data.form == DATA_TEXT)
        return refuse_form(b, "images or rows", error);
    if (check_mlp(b->m, sizes, error) != 0)
        return MODEL_REFUSED;
    flatten(b);
    for (size_t i = 1; i < sizes->n; i++) {
        char name[BUILD_NAME_MAX];
        snprintf(name, sizeof name, "fc%u", (unsigned)i);
        build_dense(b, sizes->size[i], i + 1 < sizes->n, name);
    }
    return 0;
}

/* --- convolutional networks --- */

/* Checks that the images are square and that their side is in the list `sides`, which ends with
 * 0. */
static int check_images(const struct build *b, const uint32_t *sides, const char *expected,
                        char error[MODEL_ERROR_MAX])
{
    const struct model *m = b->m;
    if (m->data.form != DATA_IMAGES)
        return refuse_form(b, "images", error);
    for (; *sides != 0; sides++)
        if (m->in.h == *sides && m->in.w == *sides)
            return 0;
    snprintf(error, MODEL_ERROR_MAX, "model \"%.80s\" takes images of %s, but the data has %ux%u",
             m->spec, expected, (unsigned)m->in.h, (unsigned)m->in.w);
    return MODEL_REFUSED;
}

/* Appends a convolution. If the stride is not given (0), it is 1. */
static int conv(struct build *b, struct layer l, uint32_t channels, const char *name)
{
    l.kind = LAYER_CONV;
    l.with = LAYER_NONE;
    if (l.from == BUILD_LAST)
        l.from = build_last(b);
    if (l.stride == 0)
        l.stride = 1;
    struct shape in = build_shape(b, l.from);
    l.out = (struct shape){channels, (in.h + 2 * l.pad - l.kernel) / l.stride + 1,
                           (in.w + 2 * l.pad - l.kernel) / l.stride + 1};
    return build_add(b, l, name);
}

/* Sets the initial weights of the last convolution to a normal distribution that keeps the signal's
 * variance through ReLUs (He et al. 2015). The variance uses the fan-out, as in the code of He et
 * al. 2016 (PyTorch: kaiming_normal_, fan_out). */
static void he_normal(struct build *b)
{
    if (b->failed)
        return;
    const struct layer *l = &b->m->layers[b->m->n_layers - 1];
    build_normal(b, sqrt(2.0 / ((double)l->out.c * l->kernel * l->kernel)));
}

/* Appends a norm layer, which adds the output of layer `with` (LAYER_NONE: adds nothing). `groups`:
 * number of groups of group norm. `relu`: the layer then applies ReLU. */
static int norm_with_groups(struct build *b, int with, uint32_t groups, bool relu, const char *name)
{
    struct shape out = build_shape(b, build_last(b));
    struct layer l = {
        .kind = LAYER_NORM, .from = BUILD_LAST, .with = with, .out = out, .relu = relu};
    switch (b->norm) {
    case MODEL_BATCH_NORM:
        l.norm = NORM_BATCH;
        break;
    case MODEL_GROUP_NORM:
        l.norm = NORM_GROUP;
        l.groups = groups;
        break;
    case MODEL_LAYER_NORM:
        l.norm = NORM_GROUP;
        l.groups = 1;
        break;
    }
    return build_add(b, l, name);
}

/* Appends a norm layer with 8 channels per group, which adds the output of layer `with` and then
 * applies ReLU. */
static int norm(struct build *b, int with, const char *name)
{
    struct shape out = build_shape(b, build_last(b));
    return norm_with_groups(b, with, out.c / 8, true, name);
}

/* Images of 28x28 are padded to 32x32, the size in the LeNet-5 paper. ReLU is applied after
 * max-pooling, which gives the same result as before it and costs less. lenet5:bn has a norm layer
 * after each pooling layer. Its group norm has 2 and 4 groups, as in the program of Takezawa et al.
 * 2022. */
int build_lenet5(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    static const uint32_t sides[] = {28, 32, 0};
    bool with_norm = sizes->n > 0;
    if (check_images(b, sides, "28x28 or 32x32", error) != 0)
        return MODEL_REFUSED;
    struct layer five = {.from = BUILD_LAST, .kernel = 5, .bias = true};
    five.pad = b->m->in.h == 28 ? 2 : 0;
    conv(b, five, 6, "conv1");
    build_maxpool(b, true);
    if (with_norm)
        norm_with_groups(b, LAYER_NONE, 2, false, "bn1");
    five.pad = 0;
    conv(b, five, 16, "conv2");
    build_maxpool(b, true);
    if (with_norm)
        norm_with_groups(b, LAYER_NONE, 4, false, "bn2");
    flatten(b);
    build_dense(b, 120, true, "fc1");
    build_dense(b, 84, true, "fc2");
    build_dense(b, b->m->n_classes, false, "fc3");
    return 0;
}

/* In torchvision's names each convolution, norm, ReLU and pooling layer has a number. The count
 * `at` therefore also includes layers that this program merges into other layers. */
int build_vgg11(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    static const uint32_t sides[] = {32, 0};
    static const uint32_t plan[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
    if (check_images(b, sides, "32x32", error) != 0)
        return MODEL_REFUSED;
    bool with_norm = sizes->n > 0;
    unsigned at = 0;
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        if (plan[i] == 0) {
            build_maxpool(b, false);
            at++;
            continue;
        }
        /* If a pooling layer follows, ReLU is applied after the pooling, with the same result. */
        bool pooled = plan[i + 1] == 0;
        char name[BUILD_NAME_MAX];
        snprintf(name, sizeof name, "features.%u", at);
        conv(b,
             (struct layer){.from = BUILD_LAST,
                            .kernel = 3,
                            .pad = 1,
                            .bias = true,
                            .relu = !with_norm && !pooled},
             plan[i], name);
        he_normal(b);
        if (with_norm) {
            snprintf(name, sizeof name, "features.%u", at + 1);
            norm(b, LAYER_NONE, name);
        } else if (pooled) {
            build_maxpool(b, true);
            i++;
            at++;
        }
        at += with_norm ? 3 : 2;
    }
    build_dense(b, b->m->n_classes, false, "classifier");
    return 0;
}

/* Appends two convolutions and the shortcut past them (He et al. 2016, figure 2). If the shape
 * changes, the shortcut is option A of section 3.3. */
static void basic_block(struct build *b, uint32_t channels, const char *name)
{
    char part[BUILD_NAME_MAX];
    int in = build_last(b), past = in;
    struct shape from = build_shape(b, in);
    struct layer three = {
        .from = BUILD_LAST, .kernel = 3, .pad = 1, .stride = from.c == channels ? 1 : 2};
    snprintf(part, sizeof part, "%s.conv1", name);
    conv(b, three, channels, part);
    he_normal(b);
    snprintf(part, sizeof part, "%s.bn1", name);
    three.from = norm(b, LAYER_NONE, part);
    three.stride = 1;
    if (from.c != channels)
        past = build_add(b,
                         (struct layer){.kind = LAYER_SHORTCUT,
                                        .from = in,
                                        .with = LAYER_NONE,
                                        .out = {channels, from.h / 2, from.w / 2}},
                         "");
    snprintf(part, sizeof part, "%s.conv2", name);
    conv(b, three, channels, part);
    he_normal(b);
    snprintf(part, sizeof part, "%s.bn2", name);
    norm(b, past, part);
}

/* Builds three stages of 16, 32 and 64 channels. Height and width halve from stage to stage. */
int build_resnet(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    static const uint32_t sides[] = {28, 32, 0};
    if (check_images(b, sides, "28x28 or 32x32", error) != 0)
        return MODEL_REFUSED;
    conv(b, (struct layer){.from = BUILD_LAST, .kernel = 3, .pad = 1}, 16, "conv1");
    he_normal(b);
    norm(b, LAYER_NONE, "bn1");
    for (uint32_t stage = 0; stage < 3; stage++)
        for (uint32_t i = 0; i < (sizes->size[0] - 2) / 6; i++) {
            /* `name` is shorter than BUILD_NAME_MAX, because basic_block() appends the names of
             * layers, such as ".conv1", to it. */
            char name[BUILD_NAME_MAX - 12];
            snprintf(name, sizeof name, "layer%u.%u", (unsigned)stage + 1, (unsigned)i);
            basic_block(b, 16u << stage, name);
        }
    build_add(b,
              (struct layer){
                  .kind = LAYER_AVGPOOL, .from = BUILD_LAST, .with = LAYER_NONE, .out = {64, 1, 1}},
              "");
    build_dense(b, b->m->n_classes, false, "fc");
    return 0;
}
