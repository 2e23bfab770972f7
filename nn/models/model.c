#include "nn/models/model.h"

#include "nn/math/blas.h"
#include "nn/math/dirichlet.h"
#include "nn/models/build.h"

#include <stdlib.h>
#include <string.h>

static int (*const build[MODEL_KINDS])(struct build *, const struct model_sizes *, char *) = {
    [MODEL_LOGREG] = build_logreg, [MODEL_MLP] = build_mlp,       [MODEL_LENET5] = build_lenet5,
    [MODEL_VGG11] = build_vgg11,   [MODEL_RESNET] = build_resnet, [MODEL_LSTM] = build_lstm,
    [MODEL_GPT] = build_gpt,
};

int model_init(struct model *m, const char *spec, enum model_norm norm,
               const struct data_shape *data, char error[MODEL_ERROR_MAX])
{
    memset(m, 0, sizeof *m);
    m->data = *data;
    m->in = (struct shape){data->channels, data->height, data->width};
    m->sparse = data->form == DATA_SPARSE;
    m->n_classes = data->n_classes;
    assert(shape_size(m->in) > 0 && m->n_classes >= 2);
    enum model_kind kind;
    struct model_sizes sizes;
    int err = model_parse(spec, &kind, &sizes, error);
    if (err)
        return err;
    model_print(kind, &sizes, m->spec);
    struct build b = {.m = m, .norm = norm};
    err = build[kind](&b, &sizes, error);
    if (err == 0 && b.failed)
        err = -ENOMEM;
    if (err) {
        model_close(m);
        return err;
    }
    build_place(&b);
    m->n_rows = (uint32_t)shape_places(m->layers[m->n_layers - 1].out);
    blas_init();
    return 0;
}

void model_close(struct model *m)
{
    free(m->layers);
    free(m->segments);
    free(m->begins);
    memset(m, 0, sizeof *m);
}

void model_params(const struct model *m, uint64_t seed, float *x)
{
    for (size_t i = 0; i < m->n_segments; i++) {
        const struct model_begin *b = &m->begins[i];
        uint64_t key = rng_key(seed, RNG_INIT, i, 0);
        struct rng r = rng_stream(key);
        for (size_t j = 0; j < b->n; j++) {
            float u = b->kind == BEGIN_NORMAL && b->spread > 0 ? (float)dirichlet_normal(&r)
                                                               : 2.0f * rng_unit_at(key, j) - 1.0f;
            x[b->at + j] = b->value + u * b->spread;
        }
    }
}

/* --- passes --- */

/* The part of a layer's pass that both directions share. */
static struct layer_pass layer_at(const struct model *m, const struct model_pass *p, size_t i)
{
    const struct layer *l = &m->layers[i];
    const struct model_plan *a = p->plan;
    struct layer_pass pass = {.n = p->n,
                              .training = a->training,
                              .x = p->x,
                              .grad = p->grad,
                              .rows = &p->rows,
                              .in = p->arena,
                              .out = p->arena + a->out[i],
                              .scratch = p->arena + a->scratch};
    if (l->from != LAYER_INPUT)
        pass.in += a->out[l->from];
    if (l->with != LAYER_NONE)
        pass.with = p->arena + (l->with == LAYER_INPUT ? 0 : a->out[l->with]);
    if (a->training)
        pass.keep = p->arena + a->keep[i];
    return pass;
}

float *model_forward(const struct model *m, const struct model_pass *p)
{
    assert(p->n > 0 && p->n <= p->plan->n);
    for (size_t i = 0; i < m->n_layers; i++) {
        struct layer_pass pass = layer_at(m, p, i);
        layer_op(m->layers[i].kind)->forward(&m->layers[i], &pass);
    }
    return p->arena + p->plan->out[m->n_layers - 1];
}

/* Where the gradient by the output of layer `of` is gathered, for its reader
 * i; NULL where nobody needs it. Readers come in falling order: the last one
 * writes, the others add. */
static float *gradient_of(const struct model_pass *p, int of, size_t i, bool *add)
{
    const struct model_plan *a = p->plan;
    if (of < 0 || a->d_out[of] == MODEL_NOWHERE)
        return NULL;
    *add = a->last_reader[of] != i;
    return p->arena + a->d_out[of];
}

void model_backward(const struct model *m, const struct model_pass *p, float *d_logits)
{
    const struct model_plan *a = p->plan;
    assert(a->training && p->grad != NULL);
    for (size_t i = m->n_layers; i-- > 0;) {
        const struct layer *l = &m->layers[i];
        struct layer_pass pass = layer_at(m, p, i);
        if (i + 1 == m->n_layers)
            pass.d_out = d_logits;
        else if (a->d_out[i] == MODEL_NOWHERE)
            continue;
        else
            pass.d_out = p->arena + a->d_out[i];
        pass.d_in = gradient_of(p, l->from, i, &pass.add_in);
        pass.d_with = gradient_of(p, l->with, i, &pass.add_with);
        layer_op(l->kind)->backward(l, &pass);
    }
}
