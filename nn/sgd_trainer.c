#include "nn/sgd_trainer.h"

#include "nn/loss.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- scratch --- */

static float *floats(size_t n)
{
    return aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
}

/* Without gradients a pass needs less, so more samples fit. */
static uint32_t eval_batch(const struct model *m, uint32_t batch, size_t arena)
{
    uint32_t n = batch;
    while (n < SGD_EVAL_BATCH_MAX && model_arena(m, n + 1, false) <= arena)
        n++;
    return n;
}

int sgd_scratch_init(struct sgd_scratch *s, const struct model *m,
                     uint32_t batch)
{
    assert(batch > 0);
    memset(s, 0, sizeof *s);
    s->n_params = m->n_params;
    s->batch = batch;
    s->n_arena = model_arena(m, batch, true);
    s->eval_batch = eval_batch(m, batch, s->n_arena);
    s->arena = floats(s->n_arena);
    s->grad = floats(m->n_params);
    s->sample = floats(shape_size(m->in));
    s->index = malloc(s->eval_batch * sizeof *s->index);
    s->label = malloc(s->eval_batch);
    if (s->arena && s->grad && s->sample && s->index && s->label)
        return 0;
    sgd_scratch_close(s);
    return -ENOMEM;
}

void sgd_scratch_close(struct sgd_scratch *s)
{
    free(s->arena);
    free(s->grad);
    free(s->sample);
    free(s->index);
    free(s->label);
    memset(s, 0, sizeof *s);
}

/* --- steps --- */

/* Samples index[0..n) of `set`, into the arena's input and label[]. */
static void load(const struct sgd_config *c, const struct dataset *set,
                 const struct model_pass *p)
{
    struct sgd_scratch *s = c->scratch;
    for (uint32_t i = 0; i < p->n; i++) {
        dataset_sample(set, s->index[i], s->sample);
        model_input(c->model, p, i, s->sample);
        s->label[i] = set->labels[s->index[i]];
    }
}

/* Forward pass and loss over the batch in index[]; with p->grad, gradient. */
static struct loss batch_loss(const struct sgd_config *c,
                              const struct dataset *set,
                              const struct model_pass *p)
{
    load(c, set, p);
    float *logits = model_forward(c->model, p);
    struct loss_batch b = {.n = p->n, .n_classes = c->model->n_classes,
                           .logits = logits, .labels = c->scratch->label};
    struct loss loss = loss_softmax(&b, p->grad != NULL ? logits : NULL);
    if (p->grad != NULL)
        model_backward(c->model, p, logits);
    return loss;
}

static void add_loss(struct trainer_report *r, struct loss loss, uint64_t n)
{
    r->loss += loss.sum;
    r->accuracy += (double)loss.n_right;
    r->n_samples += n;
}

/* Sums to means. */
static void finish(struct trainer_report *r)
{
    if (r->n_samples == 0)
        return;
    r->loss /= (double)r->n_samples;
    r->accuracy /= (double)r->n_samples;
}

static void trainer_init(void *self, float *x)
{
    struct sgd_trainer *t = self;
    model_params(t->config.model, t->config.seed, x);
}

static void trainer_steps(void *self, float *x, uint64_t round,
                          uint32_t n_steps, struct trainer_report *report)
{
    struct sgd_trainer *t = self;
    struct sgd_config *c = &t->config;
    struct sgd_scratch *s = c->scratch;
    struct model_pass p = {.n = c->batch, .x = x, .grad = s->grad,
                           .arena = s->arena, .n_arena = s->n_arena};
    struct optimiser_step step = {.segments = c->model->segments,
                                  .n_segments = c->model->n_segments,
                                  .x = x,
                                  .grad = s->grad,
                                  .m = t->momentum,
                                  .lr = schedule_lr(&c->schedule, round)};
    *report = (struct trainer_report){0};
    for (uint32_t i = 0; i < n_steps; i++) {
        shard_batch(c->shard, round, i, c->batch, s->index);
        add_loss(report, batch_loss(c, c->train, &p), c->batch);
        if (c->optimiser.clip > 0)
            optimiser_clip(&c->optimiser, step.segments, step.n_segments,
                           s->grad);
        optimiser_step(&c->optimiser, &step);
    }
    finish(report);
}

static void trainer_sent(void *self, const float *sent)
{
    struct sgd_trainer *t = self;
    optimiser_forget(t->momentum, sent, t->config.model->n_params);
}

static void trainer_evaluate(void *self, const float *x, uint64_t max_samples,
                             struct trainer_report *report)
{
    struct sgd_trainer *t = self;
    struct sgd_config *c = &t->config;
    struct sgd_scratch *s = c->scratch;
    size_t n = c->test->n;
    if (max_samples != 0 && max_samples < n)
        n = (size_t)max_samples;
    *report = (struct trainer_report){0};
    for (size_t at = 0; at < n; at += s->eval_batch) {
        uint32_t batch = n - at < s->eval_batch ? (uint32_t)(n - at)
                                                : s->eval_batch;
        for (uint32_t i = 0; i < batch; i++)
            s->index[i] = (uint32_t)at + i;
        struct model_pass p = {.n = batch, .x = x, .arena = s->arena,
                               .n_arena = s->n_arena};
        add_loss(report, batch_loss(c, c->test, &p), batch);
    }
    finish(report);
}

static void trainer_members(void *self, const uint64_t *keys, size_t n,
                            uint64_t own)
{
    struct sgd_trainer *t = self;
    t->members_error = shard_members(t->config.shard, keys, n, own);
}

/* --- the trainer --- */

static int check_shape(const struct model *m, const struct dataset *d,
                       char error[MODEL_ERROR_MAX])
{
    if (d->channels == m->in.c && d->height == m->in.h &&
        d->width == m->in.w && d->n_classes == m->n_classes)
        return 0;
    snprintf(error, MODEL_ERROR_MAX,
             "model \"%.80s\" is for %ux%ux%u inputs and %u classes, but the "
             "data (%s) has %ux%ux%u and %u",
             m->spec, (unsigned)m->in.c, (unsigned)m->in.h, (unsigned)m->in.w,
             (unsigned)m->n_classes, d->kind, (unsigned)d->channels,
             (unsigned)d->height, (unsigned)d->width, (unsigned)d->n_classes);
    return -EINVAL;
}

int sgd_trainer_init(struct sgd_trainer *t, const struct sgd_config *config,
                     char error[MODEL_ERROR_MAX])
{
    memset(t, 0, sizeof *t);
    error[0] = '\0';
    t->config = *config;
    const struct model *m = config->model;
    if (check_shape(m, config->train, error) != 0 ||
        check_shape(m, config->test, error) != 0)
        return -EINVAL;
    if (config->scratch == NULL) {
        int err = sgd_scratch_init(&t->own, m, config->batch);
        if (err)
            return err;
        t->config.scratch = &t->own;
    }
    assert(t->config.scratch->n_params == m->n_params);
    assert(config->batch > 0 && t->config.scratch->batch >= config->batch);
    t->momentum = calloc(m->n_params, sizeof *t->momentum);
    if (t->momentum == NULL) {
        sgd_trainer_close(t);
        return -ENOMEM;
    }
    return 0;
}

void sgd_trainer_close(struct sgd_trainer *t)
{
    free(t->momentum);
    sgd_scratch_close(&t->own);
    memset(t, 0, sizeof *t);
}

struct trainer sgd_trainer_face(struct sgd_trainer *t)
{
    const struct model *m = t->config.model;
    return (struct trainer){.n_params = m->n_params,
                            .segments = m->segments,
                            .n_segments = m->n_segments,
                            .self = t,
                            .init = trainer_init,
                            .steps = trainer_steps,
                            .sent = trainer_sent,
                            .evaluate = trainer_evaluate,
                            .members = trainer_members};
}
