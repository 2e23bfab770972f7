/* nn/models/init.c -- builds the network of a spec, and computes its initial parameters.
 *
 * This file is on top of the other files of the folder. model.h defines a model, spec.h its text,
 * and build.h the functions that build networks. Only this file turns a text into a network.
 */
#include "nn/math/blas.h"
#include "nn/math/dirichlet.h"
#include "nn/models/build.h"

#include <assert.h>
#include <string.h>

/* The functions that build models, one for each kind of model. */
static int (*const build[MODEL_KINDS])(struct build *, const struct model_sizes *, char *) = {
    [MODEL_LOGREG] = build_logreg, [MODEL_MLP] = build_mlp,       [MODEL_LENET5] = build_lenet5,
    [MODEL_VGG11] = build_vgg11,   [MODEL_RESNET] = build_resnet, [MODEL_LSTM] = build_lstm,
    [MODEL_GPT] = build_gpt,
};

/* The spec and the data may come from different peers. The build functions check that the spec fits
 * the data. If model_init() fails, it has freed the partly built model. */
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

/* Each segment draws from its own stream, numbered in the order in which segments were added. Two
 * models that begin with the same layers therefore have the same initial values in these layers. */
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
