/* nn/models/model.c -- computes the forward and the backward pass of a model, layer by layer. */
#include "nn/models/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void model_close(struct model *m)
{
    free(m->layers);
    free(m->segments);
    free(m->begins);
    memset(m, 0, sizeof *m);
}

/* --- forward and backward pass --- */

/* Fills in those fields of a layer's pass that the forward and the backward pass need. */
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

/* The order of the layers guarantees that the inputs of each layer are written before it runs. */
float *model_forward(const struct model *m, const struct model_pass *p)
{
    assert(p->n > 0 && p->n <= p->plan->n);
    for (size_t i = 0; i < m->n_layers; i++) {
        struct layer_pass pass = layer_at(m, p, i);
        layer_op(m->layers[i].kind)->forward(&m->layers[i], &pass);
    }
    return p->arena + p->plan->out[m->n_layers - 1];
}

/* Layer i reads the output of layer `of`. Returns where layer i must store the gradient of that
 * output. NULL: the gradient is not needed. Backward passes run in descending order. The first
 * reader of an output overwrites the gradient, and all other readers add to it. *add: layer i must
 * add. */
static float *gradient_of(const struct model_pass *p, int of, size_t i, bool *add)
{
    const struct model_plan *a = p->plan;
    if (of < 0 || a->d_out[of] == MODEL_NOWHERE)
        return NULL;
    *add = a->last_reader[of] != i;
    return p->arena + a->d_out[of];
}

/* Runs the layers in reverse order. When a layer runs, all layers that read its output have already
 * added their gradients. */
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
        if (p->done != NULL && layer_op(l->kind)->params != NULL)
            p->done(p->done_self, l->at[0]);
    }
}
