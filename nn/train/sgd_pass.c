/* nn/train/sgd_pass.c -- loads the samples of a batch into the model's input, and runs one pass
 * over them. */
#include "nn/train/sgd_pass.h"

#include "nn/math/rng.h"

#include <string.h>

static size_t sample_of(const struct sgd_batch *b, uint32_t i)
{
    return b->index != NULL ? b->index[i] : b->first + i;
}

/* Returns the sparse rows of a batch. If the samples are consecutive, the rows of the data set are
 * used in place. If the samples are given by indices, the rows are copied into the memory of
 * `p`. */
static struct sparse_rows load_rows(struct sgd_part *p, const struct sgd_batch *b)
{
    const struct dataset *set = b->set;
    if (b->index == NULL)
        return (struct sparse_rows){set->start + b->first, set->column, set->entry};
    p->start[0] = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        size_t from = set->start[b->index[i]], at = p->start[i];
        size_t n = set->start[b->index[i] + (size_t)1] - from;
        memcpy(p->column + at, set->column + from, n * sizeof *p->column);
        memcpy(p->value + at, set->entry + from, n * sizeof *p->value);
        p->start[i + 1] = at + n;
    }
    return (struct sparse_rows){p->start, p->column, p->value};
}

/* Writes the augmented samples of the batch to the input of the pass, and their labels to
 * p->label. */
static void load_batch(struct sgd_part *p, struct model_pass *pass, const struct sgd_batch *b)
{
    if (b->model->sparse)
        pass->rows = load_rows(p, b);
    for (uint32_t i = 0; i < b->n; i++) {
        size_t sample = sample_of(b, i);
        dataset_labels(b->set, sample, p->label + (size_t)i * b->model->n_rows);
        if (b->model->sparse)
            continue;
        uint64_t key = rng_key(b->seed, RNG_AUGMENT, b->peer, b->position + i);
        augment_sample(b->augment, b->set, sample, key, model_input(b->model, pass, i));
    }
}

struct loss sgd_pass_run(struct sgd_part *p, const struct model_plan *plan, const float *x,
                         const struct sgd_batch *b)
{
    struct model_pass pass = {.n = b->n,
                              .x = x,
                              .grad = p->grad,
                              .plan = plan,
                              .arena = p->arena,
                              .done = b->done,
                              .done_self = b->done_self};
    load_batch(p, &pass, b);
    float *logits = model_forward(b->model, &pass);
    struct loss_batch l = {.n = (size_t)b->n * b->model->n_rows,
                           .n_classes = b->model->n_classes,
                           .logits = logits,
                           .labels = p->label,
                           .smoothing = b->smoothing,
                           .n_mean = b->n_mean};
    struct loss loss = loss_softmax(&l, plan->training ? logits : NULL);
    if (plan->training)
        model_backward(b->model, &pass, logits);
    return loss;
}
