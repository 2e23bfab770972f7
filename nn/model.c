#include "nn/model.h"

#include "nn/blas.h"
#include "nn/model_spec.h"
#include "nn/rng.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- building --- */

static struct shape flat(uint32_t n)
{
    return (struct shape){n, 1, 1};
}

/* Where the next layer begins: at the end of the last, or at the input. */
static struct shape end_shape(const struct model *m)
{
    return m->n_layers ? m->layers[m->n_layers - 1].out : m->in;
}

static void add_segment(struct model *m, const char *name, const char *part,
                        const struct segment *like)
{
    assert(m->n_segments < 2 * MODEL_LAYERS_MAX);
    struct segment *s = &m->segments[m->n_segments++];
    *s = *like;
    s->offset = m->n_params;
    s->n = s->rows * s->cols;
    s->trained = true;
    int len = snprintf(s->name, sizeof s->name, "%s.%s", name, part);
    assert(len > 0 && (size_t)len < sizeof s->name);
    m->n_params += s->n;
}

/* How many layers of a kind there are: layers of one kind are numbered. */
static unsigned count_layers(const struct model *m, enum layer_kind kind)
{
    unsigned n = 0;
    for (size_t i = 0; i < m->n_layers; i++)
        n += m->layers[i].kind == kind;
    return n;
}

static void add_layer(struct model *m, struct layer l)
{
    assert(m->n_layers < MODEL_LAYERS_MAX);
    const struct layer_op *op = layer_op(l.kind);
    m->layers[m->n_layers++] = l;
    struct layer *layer = &m->layers[m->n_layers - 1];
    size_t rows, cols;
    op->params(&l, &rows, &cols);
    if (rows == 0)
        return;
    char name[SEGMENT_NAME_MAX / 2];
    (void)snprintf(name, sizeof name, "%s%u", op->name,
                   count_layers(m, l.kind));
    struct segment weight = {.rows = rows, .cols = cols, .n_dims = 2,
                             .dims = {(uint32_t)rows, (uint32_t)cols},
                             .decays = true};
    if (l.kind == LAYER_CONV) {
        weight.n_dims = 4;
        weight.dims[1] = l.in.c;
        weight.dims[2] = weight.dims[3] = l.kernel;
    }
    layer->weight = m->n_params;
    add_segment(m, name, "weight", &weight);
    layer->bias = m->n_params;
    add_segment(m, name, "bias",
                &(struct segment){.rows = 1, .cols = rows, .n_dims = 1,
                                  .dims = {(uint32_t)rows}});
}

static void add_dense(struct model *m, uint32_t width, bool relu)
{
    add_layer(m, (struct layer){.kind = LAYER_DENSE, .in = end_shape(m),
                                .out = flat(width), .relu = relu});
}

static void add_conv(struct model *m, uint32_t channels, uint32_t kernel,
                     uint32_t pad)
{
    struct shape in = end_shape(m);
    struct shape out = {channels, in.h + 2 * pad - kernel + 1,
                        in.w + 2 * pad - kernel + 1};
    add_layer(m, (struct layer){.kind = LAYER_CONV, .in = in, .out = out,
                                .kernel = kernel, .pad = pad});
}

static void add_maxpool(struct model *m, bool relu)
{
    struct shape in = end_shape(m), out = {in.c, in.h / 2, in.w / 2};
    add_layer(m, (struct layer){.kind = LAYER_MAXPOOL, .in = in, .out = out,
                                .relu = relu});
}

static void add_flatten(struct model *m)
{
    struct shape in = end_shape(m);
    add_layer(m, (struct layer){.kind = LAYER_FLATTEN, .in = in,
                                .out = flat((uint32_t)shape_size(in))});
}

/* The sizes of a logreg follow from the data, those of an mlp must agree. */
static int build_mlp(struct model *m, const struct model_sizes *sizes,
                     char error[MODEL_ERROR_MAX])
{
    size_t inputs = shape_size(m->in);
    uint32_t last = sizes->size[sizes->n - 1];
    if (sizes->size[0] != inputs) {
        snprintf(error, MODEL_ERROR_MAX,
                 "model \"%.80s\" takes %u inputs, but the data has %zu "
                 "(%ux%ux%u)",
                 m->spec, (unsigned)sizes->size[0], inputs, (unsigned)m->in.c,
                 (unsigned)m->in.h, (unsigned)m->in.w);
        return MODEL_REFUSED;
    }
    if (last != m->n_classes) {
        snprintf(error, MODEL_ERROR_MAX,
                 "model \"%.80s\" has %u outputs, but the data has %u classes",
                 m->spec, (unsigned)last, (unsigned)m->n_classes);
        return MODEL_REFUSED;
    }
    for (size_t i = 1; i < sizes->n; i++)
        add_dense(m, sizes->size[i], i + 1 < sizes->n);
    return 0;
}

static int build_logreg(struct model *m, const struct model_sizes *sizes,
                        char error[MODEL_ERROR_MAX])
{
    (void)sizes;
    (void)error;
    add_dense(m, m->n_classes, false);
    return 0;
}

/* 28x28 is padded to the 32x32 that the paper has. ReLU comes after pooling,
 * with which it commutes. */
static int build_lenet5(struct model *m, const struct model_sizes *sizes,
                        char error[MODEL_ERROR_MAX])
{
    (void)sizes;
    if (m->in.h != m->in.w || (m->in.h != 28 && m->in.h != 32)) {
        snprintf(error, MODEL_ERROR_MAX,
                 "model \"lenet5\" takes images of 28x28 or 32x32, but the "
                 "data has %ux%u",
                 (unsigned)m->in.h, (unsigned)m->in.w);
        return MODEL_REFUSED;
    }
    add_conv(m, 6, 5, m->in.h == 28 ? 2 : 0);
    add_maxpool(m, true);
    add_conv(m, 16, 5, 0);
    add_maxpool(m, true);
    add_flatten(m);
    add_dense(m, 120, true);
    add_dense(m, 84, true);
    add_dense(m, m->n_classes, false);
    return 0;
}

static int (*const build[])(struct model *, const struct model_sizes *,
                            char *) = {
    [MODEL_LOGREG] = build_logreg,
    [MODEL_MLP] = build_mlp,
    [MODEL_LENET5] = build_lenet5,
};

int model_init(struct model *m, const char *spec, struct shape in,
               uint32_t n_classes, char error[MODEL_ERROR_MAX])
{
    assert(shape_size(in) > 0 && n_classes >= 2);
    memset(m, 0, sizeof *m);
    m->in = in;
    m->n_classes = n_classes;
    enum model_kind kind;
    struct model_sizes sizes;
    int err = model_parse(spec, &kind, &sizes, error);
    if (err)
        return err;
    model_print(kind, &sizes, m->spec);
    err = build[kind](m, &sizes, error);
    if (err)
        return err;
    m->maps_in = layer_op(m->layers[0].kind)->maps_in;
    blas_init();
    return 0;
}

void model_params(const struct model *m, uint64_t seed, float *x)
{
    size_t fan_in = 1;
    for (size_t i = 0; i < m->n_segments; i++) {
        const struct segment *s = &m->segments[i];
        if (s->n_dims > 1)
            fan_in = s->cols; /* A bias has its weight's: it follows it. */
        float bound = (float)(1.0 / sqrt((double)fan_in));
        uint64_t key = rng_key(seed, RNG_INIT, i, 0);
        for (size_t j = 0; j < s->n; j++)
            x[s->offset + j] = (2.0f * rng_unit_at(key, j) - 1.0f) * bound;
    }
}

/* --- the arena --- */

/* Offsets in the arena, in floats. */
struct layout
{
    size_t out[MODEL_LAYERS_MAX]; /* Without `backward` two take turns. */
    size_t d[2], scratch, total;
};

/* Reserve a buffer: aligned to a cache line, with slack behind it. */
static size_t take(size_t *end, size_t n)
{
    size_t at = *end;
    *end += (n + LAYER_SLACK + 15) / 16 * 16;
    return at;
}

static struct layout layout(const struct model *m, uint32_t n, bool backward)
{
    struct layout a;
    size_t end = 0, largest = 0, scratch = 0;
    take(&end, n * shape_size(m->in));
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct layer *l = &m->layers[i];
        size_t out = n * shape_size(l->out);
        size_t needs = layer_op(l->kind)->scratch(l, n);
        if (backward)
            a.out[i] = take(&end, out);
        if (out > largest)
            largest = out;
        if (needs > scratch)
            scratch = needs;
    }
    for (size_t i = 0; i < 2; i++)
        a.d[i] = take(&end, largest);
    for (size_t i = 0; i < m->n_layers && !backward; i++)
        a.out[i] = a.d[i % 2];
    a.scratch = take(&end, scratch);
    a.total = end;
    return a;
}

size_t model_arena(const struct model *m, uint32_t n, bool backward)
{
    return layout(m, n, backward).total;
}

void model_input(const struct model *m, const struct model_pass *p, uint32_t i,
                 const float *sample)
{
    assert(i < p->n);
    size_t map = (size_t)m->in.h * m->in.w, channels = m->in.c;
    if (!m->maps_in) {
        map *= channels;
        channels = 1;
    }
    for (size_t c = 0; c < channels; c++)
        memcpy(p->arena + (c * p->n + i) * map, sample + c * map,
               map * sizeof *sample);
}

/* The part of a layer's pass that both directions share. */
static struct layer_pass layer_at(const struct layout *a,
                                  const struct model_pass *p, size_t i)
{
    return (struct layer_pass){.n = p->n, .x = p->x, .grad = p->grad,
                               .in = p->arena + (i ? a->out[i - 1] : 0),
                               .out = p->arena + a->out[i],
                               .scratch = p->arena + a->scratch};
}

float *model_forward(const struct model *m, const struct model_pass *p)
{
    struct layout a = layout(m, p->n, p->grad != NULL);
    assert(p->n > 0 && a.total <= p->n_arena);
    for (size_t i = 0; i < m->n_layers; i++) {
        struct layer_pass pass = layer_at(&a, p, i);
        layer_op(m->layers[i].kind)->forward(&m->layers[i], &pass);
    }
    return p->arena + a.out[m->n_layers - 1];
}

void model_backward(const struct model *m, const struct model_pass *p,
                    float *d_logits)
{
    assert(p->grad != NULL);
    struct layout a = layout(m, p->n, true);
    float *d_out = d_logits;
    for (size_t i = m->n_layers; i-- > 0;) {
        struct layer_pass pass = layer_at(&a, p, i);
        pass.d_out = d_out;
        pass.d_in = i ? p->arena + a.d[i % 2] : NULL; /* Data has no gradient. */
        layer_op(m->layers[i].kind)->backward(&m->layers[i], &pass);
        d_out = pass.d_in;
    }
}
