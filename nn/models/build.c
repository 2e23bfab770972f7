/* nn/models/build.c -- adds layers to a model, and assigns names and positions to its tensors.
 *
 * Layers and tensors are appended to growing arrays. Positions of tensors are known only at the
 * end, because untrained tensors come after all others (build_place()).
 */
#include "nn/models/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int build_last(const struct build *b)
{
    /* If no layer was added, the result is -1, which is LAYER_INPUT. */
    return (int)b->m->n_layers - 1;
}

struct shape build_shape(const struct build *b, int at)
{
    return at == LAYER_INPUT ? b->m->in : b->m->layers[at].out;
}

/* Makes room in the array *v for `more` elements after the first n. Returns false if there is no
 * memory. */
static bool reserve(void **v, size_t *cap, size_t n, size_t more, size_t size)
{
    if (n + more <= *cap)
        return true;
    size_t grown = 2 * (n + more);
    void *p = realloc(*v, grown * size);
    if (p == NULL)
        return false;
    *v = p;
    *cap = grown;
    return true;
}

/* Makes room for more segments. Segments and their initial distributions are two arrays with the
 * same indices, so both grow together. model_close() frees both. */
static bool reserve_segments(struct build *b, size_t more)
{
    struct model *m = b->m;
    /* Capacity of each of the two arrays m->segments and m->begins. */
    size_t cap = b->segments_cap;
    if (!reserve((void **)&m->begins, &cap, m->n_segments, more, sizeof *m->begins))
        return false;
    cap = b->segments_cap;
    if (!reserve((void **)&m->segments, &cap, m->n_segments, more, sizeof *m->segments))
        return false;
    b->segments_cap = cap;
    return true;
}

/* Lists the parameter tensors of a layer. Most kinds of layers have none. */
static size_t layer_params(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX])
{
    const struct layer_op *op = layer_op(l->kind);
    return op->params != NULL ? op->params(l, p) : 0;
}

/* Appends a tensor as a segment. Its shape as a matrix, for codecs that need one, has the first
 * dimension as rows and all other dimensions as columns. */
static void add_segment(struct model *m, const char *name, const struct layer_param *p)
{
    struct segment *s = &m->segments[m->n_segments];
    *s = (struct segment){.n_dims = p->n_dims,
                          .decays = p->decays,
                          .trained = p->trained,
                          .nonnegative = p->nonnegative,
                          .rows = p->n_dims > 1 ? p->dims[0] : 1,
                          .cols = 1};
    for (uint32_t i = 0; i < p->n_dims; i++) {
        s->dims[i] = p->dims[i];
        if (i > 0 || p->n_dims == 1)
            s->cols *= p->dims[i];
    }
    s->n = s->rows * s->cols;
    int len = snprintf(s->name, sizeof s->name, "%s.%s", name, p->of);
    assert(len > 0 && (size_t)len < sizeof s->name);
    m->begins[m->n_segments] = (struct model_begin){
        .kind = BEGIN_UNIFORM, .spread = p->bound, .value = p->value, .n = s->n};
    m->n_segments++;
}

/* If memory runs out, no layer is added and LAYER_INPUT is returned. Callers continue, and
 * model_init() reports the failure at the end. The functions that build networks therefore need no
 * error check after each layer. */
int build_add(struct build *b, struct layer l, const char *name)
{
    struct model *m = b->m;
    struct layer_param params[LAYER_PARAMS_MAX];
    if (l.from == BUILD_LAST)
        l.from = build_last(b);
    assert(l.with == LAYER_NONE || l.with != l.from);
    if (b->failed
        || !reserve((void **)&m->layers, &b->layers_cap, m->n_layers, 1, sizeof *m->layers)
        || !reserve_segments(b, LAYER_PARAMS_MAX)) {
        b->failed = true;
        return LAYER_INPUT;
    }
    l.in = build_shape(b, l.from);
    size_t n = layer_params(&l, params);
    for (size_t i = 0; i < n; i++)
        add_segment(m, name, &params[i]);
    m->layers[m->n_layers++] = l;
    return build_last(b);
}

/* Only weights begin with random values. Tensors of one dimension (biases) begin at 0. */
void build_normal(struct build *b, double std)
{
    struct model *m = b->m;
    if (b->failed)
        return;
    struct layer_param params[LAYER_PARAMS_MAX];
    struct layer *l = &m->layers[m->n_layers - 1];
    size_t n = layer_params(l, params);
    for (size_t i = 0; i < n; i++) {
        struct model_begin *begin = &m->begins[m->n_segments - n + i];
        begin->kind = BEGIN_NORMAL;
        begin->spread = params[i].n_dims > 1 ? (float)std : 0;
        begin->value = 0;
    }
}

static int by_offset(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void build_place(struct build *b)
{
    struct model *m = b->m;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < m->n_segments; i++) {
            if (m->segments[i].trained != (pass == 0))
                continue;
            m->segments[i].offset = m->begins[i].at = m->n_params;
            m->n_params += m->segments[i].n;
        }
    size_t next = 0;
    for (size_t i = 0; i < m->n_layers; i++) {
        struct layer_param params[LAYER_PARAMS_MAX];
        size_t n = layer_params(&m->layers[i], params);
        for (size_t k = 0; k < n; k++)
            m->layers[i].at[k] = m->begins[next++].at;
    }
    assert(next == m->n_segments);
    qsort(m->segments, m->n_segments, sizeof *m->segments, by_offset);
}

/* Appends a dense layer. If the layer reads the sparse input of the model, its kind is
 * LAYER_SPARSE, which has the same parameters. */
int build_dense(struct build *b, uint32_t width, bool relu, const char *name)
{
    int last = build_last(b);
    struct shape in = build_shape(b, last);
    bool sparse = last == LAYER_INPUT && b->m->sparse;
    return build_add(b,
                     (struct layer){.kind = sparse ? LAYER_SPARSE : LAYER_DENSE,
                                    .from = last,
                                    .with = LAYER_NONE,
                                    .out = {width, in.h, in.w},
                                    .bias = true,
                                    .relu = relu},
                     name);
}

/* Appends a 2x2 max-pooling layer, which halves height and width. */
int build_maxpool(struct build *b, bool relu)
{
    struct shape in = build_shape(b, build_last(b));
    return build_add(b,
                     (struct layer){.kind = LAYER_MAXPOOL,
                                    .from = BUILD_LAST,
                                    .with = LAYER_NONE,
                                    .relu = relu,
                                    .out = {in.c, in.h / 2, in.w / 2}},
                     "");
}
