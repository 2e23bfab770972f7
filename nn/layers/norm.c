/* nn/layers/norm.c -- the normalisation layer: its parameters, and the choice of its
 * implementation. */
#include "nn/layers/norm.h"

/* Returns the implementation for the norm of the layer. Batch and group norm sum over columns,
 * layer norm over rows. */
static const struct layer_op *norm_op(const struct layer *l)
{
    switch (l->norm) {
    case NORM_BATCH:
    case NORM_GROUP:
        return &layer_norm_columns;
    case NORM_PLACE:
        return &layer_norm_place;
    }
    assert(false); /* Cannot be reached: the switch has a case for each value of enum norm_kind. */
    return NULL;
}

static struct layer_param norm_param(const struct layer *l, const char *of, float value,
                                     bool trained)
{
    return (struct layer_param){
        .of = of, .n_dims = 1, .dims = {l->in.c}, .trained = trained, .value = value};
}

/* Only batch norm has running statistics. They are segments without a gradient. A negative variance
 * in a model file is refused. */
static size_t norm_params(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX])
{
    p[0] = norm_param(l, "weight", 1, true);
    p[1] = norm_param(l, "bias", 0, true);
    p[2] = norm_param(l, "running_mean", 0, false);
    p[3] = norm_param(l, "running_var", 1, false);
    p[3].nonnegative = true;
    return l->norm == NORM_BATCH ? 4 : 2;
}

static size_t norm_keep(const struct layer *l, uint32_t n)
{
    return norm_op(l)->keep(l, n);
}

static size_t norm_scratch(const struct layer *l, uint32_t n, bool training)
{
    return norm_op(l)->scratch(l, n, training);
}

static void norm_forward(const struct layer *l, const struct layer_pass *p)
{
    assert((l->with == LAYER_NONE) == (p->with == NULL));
    norm_op(l)->forward(l, p);
}

static void norm_backward(const struct layer *l, const struct layer_pass *p)
{
    assert(p->training && p->keep != NULL);
    norm_op(l)->backward(l, p);
}

const struct layer_op layer_norm = {
    .name = "norm",
    .params = norm_params,
    .keep = norm_keep,
    .scratch = norm_scratch,
    .forward = norm_forward,
    .backward = norm_backward,
};
