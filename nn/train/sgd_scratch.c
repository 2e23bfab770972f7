/* nn/train/sgd_scratch.c -- allocates all memory and threads of a trainer's steps at once, so that
 * a step allocates nothing. tests/unit/nn_alloc.c checks this. */
#include "nn/train/sgd_scratch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Allocates n floats. The address and the size are rounded up to whole cache lines, so that two
 * threads never write to the same cache line. */
static float *floats(size_t n)
{
    return aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
}

/* Makes the plan for evaluations, for the largest batch that fits into `room` floats, but at least
 * for one sample. An evaluation needs less memory per sample than training, because it computes no
 * gradients. */
static int plan_evaluation(struct model_plan *plan, const struct model *m, size_t room)
{
    uint32_t fits = 1, beyond = SGD_EVAL_BATCH_MAX + 1;
    while (beyond - fits > 1) {
        uint32_t n = fits + (beyond - fits) / 2;
        int err = model_plan_init(plan, m, n, false);
        if (err)
            return err;
        if (plan->n_floats <= room)
            fits = n;
        else
            beyond = n;
        model_plan_close(plan);
    }
    return model_plan_init(plan, m, fits, false);
}

/* Makes the plans for training and evaluation. A plan gives each buffer of a model pass its place
 * in memory, for a number of samples. The plan for training is made for part 0, the largest part of
 * a batch, so every other part fits, too. */
static int plan_passes(struct sgd_scratch *s, const struct model *m)
{
    uint32_t n = (uint32_t)sgd_scratch_cut(s->batch, s->threads, 1);
    int err = model_plan_init(&s->train, m, n, true);
    return err ? err : plan_evaluation(&s->eval, m, s->train.n_floats);
}

/* Cuts the model's segments (tensors) to the range of this thread, and stores the pieces in
 * p->segment. */
static void cut_segments(struct sgd_part *p, const struct model *m)
{
    for (size_t i = 0; i < m->n_segments; i++) {
        struct segment piece = m->segments[i];
        size_t end = piece.offset + piece.n;
        size_t from = piece.offset > p->from ? piece.offset : p->from;
        size_t to = end < p->to ? end : p->to;
        if (from >= to)
            continue;
        piece.offset = from;
        piece.n = to - from;
        p->segment[p->n_segments++] = piece;
    }
}

/* Allocates the memory of one thread. After a failure, sgd_scratch_close() frees the rest. */
static bool part_open(struct sgd_part *p, const struct sgd_scratch *s, const struct model *m)
{
    size_t most = s->train.n > s->eval.n ? s->train.n : s->eval.n;
    size_t entries = m->sparse ? s->train.n * s->longest + 1 : 1;
    size_t room = s->train.n_floats > s->eval.n_floats ? s->train.n_floats : s->eval.n_floats;
    p->arena = floats(room);
    p->grad = floats(m->n_params + LAYER_SLACK);
    p->label = calloc(most * m->n_rows, sizeof *p->label);
    p->start = calloc((size_t)s->train.n + 1, sizeof *p->start);
    p->column = calloc(entries, sizeof *p->column);
    p->value = calloc(entries, sizeof *p->value);
    p->segment = calloc(m->n_segments, sizeof *p->segment);
    if (p->segment == NULL)
        return false;
    cut_segments(p, m);
    return p->arena != NULL && p->grad != NULL && p->label != NULL && p->start != NULL
           && p->column != NULL && p->value != NULL;
}

static void part_close(struct sgd_part *p)
{
    free(p->arena);
    free(p->grad);
    free(p->label);
    free(p->start);
    free(p->column);
    free(p->value);
    free(p->segment);
}

/* Opens the memory of all threads. Each thread's range of the vector is a whole number of cache
 * lines of 16 floats. */
static int open_parts(struct sgd_scratch *s, const struct model *m)
{
    size_t lines = (m->n_params + 15) / 16;
    for (uint32_t k = 0; k < s->threads; k++) {
        struct sgd_part *p = &s->part[k];
        p->from = sgd_scratch_cut(lines, s->threads, k) * 16;
        p->to = sgd_scratch_cut(lines, s->threads, k + 1) * 16;
        p->from = p->from < m->n_params ? p->from : m->n_params;
        p->to = p->to < m->n_params ? p->to : m->n_params;
        if (!part_open(p, s, m))
            return -ENOMEM;
    }
    return 0;
}

/* Makes the model's plans first, because they determine the sizes of the allocations. Starts the
 * threads last, when all memory is allocated. */
int sgd_scratch_open(struct sgd_scratch **out, const struct model *m, uint32_t batch,
                     uint32_t threads, size_t longest)
{
    assert(threads >= 1 && threads <= SGD_THREADS_MAX && threads <= batch);
    *out = NULL;
    struct sgd_scratch *s = calloc(1, sizeof *s);
    if (s == NULL)
        return -ENOMEM;
    *s = (struct sgd_scratch){.n_params = m->n_params,
                              .longest = longest,
                              .batch = batch,
                              .threads = threads,
                              .index = calloc(batch, sizeof *s->index),
                              .part = calloc(threads, sizeof *s->part)};
    int err = s->index != NULL && s->part != NULL ? plan_passes(s, m) : -ENOMEM;
    if (err == 0)
        err = open_parts(s, m);
    if (err == 0)
        err = parallel_for_open(&s->team, threads);
    if (err) {
        sgd_scratch_close(s);
        return err;
    }
    *out = s;
    return 0;
}

/* sgd_scratch_close() also frees what sgd_scratch_open() had allocated before it failed. */
void sgd_scratch_close(struct sgd_scratch *s)
{
    if (s == NULL)
        return;
    parallel_for_close(s->team);
    for (uint32_t k = 0; s->part != NULL && k < s->threads; k++)
        part_close(&s->part[k]);
    model_plan_close(&s->train);
    model_plan_close(&s->eval);
    free(s->index);
    free(s->part);
    free(s);
}
