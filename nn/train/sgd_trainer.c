/* nn/train/sgd_trainer.c -- mini-batch training behind the trainer interface: a local step, an
 * evaluation, and how threads divide each of them.
 *
 * With one learner, the threads first divide the batch and then the parameter vector:
 *
 *   thread k   samples of part k -> activations -> gradient k       (step_gradient)
 *              ------------------------------------------
 *              range k of the vector: gradients added in order  (step_add)
 *              range k of x, momentum: updated                  (step_update)
 *
 * Between the gradients and the sums, all threads wait for each other. No other locks are needed.
 *
 * With several learners, the threads divide the vector, then the learners, then the vector:
 *
 *   range k of the vector: velocity of the centre               (centre_pull)
 *   thread k   a learner's batch -> gradient k -> its model     (learner_step)
 *              ... and the next learners, until all have stepped
 *   range k of x, the centre: moved                             (centre_move)
 */
#include "nn/train/sgd_trainer.h"

#include "nn/layers/loss.h"
#include "nn/math/state.h"
#include "nn/train/averaged_momentum.h"
#include "nn/train/sgd_pass.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the report of loss and accuracy --- */

/* Adds the losses of all parts of a batch to the report. The order of the parts is fixed, so the
 * sum has the same bits every time. */
static void report_add(struct trainer_report *r, const struct sgd_scratch *s, uint64_t n_rows)
{
    for (uint32_t k = 0; k < s->threads; k++) {
        r->loss += s->part[k].loss.sum;
        r->accuracy += (double)s->part[k].loss.n_right;
    }
    r->n_samples += n_rows;
}

/* Divides the sums in the report by the number of rows, which makes them means. */
static void report_finish(struct trainer_report *r)
{
    if (r->n_samples == 0)
        return;
    r->loss /= (double)r->n_samples;
    r->accuracy /= (double)r->n_samples;
}

/* --- training with one learner --- */

/* State of one local step, shared by all threads. */
struct step
{
    struct sgd_trainer *t;
    /* Number of the batch's first sample in the peer's endless sequence of samples. */
    uint64_t position;
    uint32_t learner; /* Learner that the batch belongs to. */
    struct optimiser_step update;
    /* True: the segments of a layer are updated as soon as the backward pass has finished it. */
    bool by_layer;
    /* The first `n_left` segments are not updated yet. They are updated at the end of the step. */
    size_t n_left;
};

/* Scales the changes of the running statistics of one part of a batch by `share`, the part's share
 * of the batch. The sum over all parts is then the weighted mean. Parameters are not scaled,
 * because their gradients are already divided by the size of the whole batch. */
static void weigh_statistics(const struct model *m, float *grad, float share)
{
    for (size_t i = segments_trained(m->segments, m->n_segments); i < m->n_params; i++)
        grad[i] *= share;
}

/* Updates the parameters from index `from` on. Then calls t->done, which reports that these
 * parameters have their final values of the step. */
static void step_layer(void *self, size_t from)
{
    struct step *step = self;
    struct sgd_trainer *t = step->t;
    size_t end = step->n_left;
    struct optimiser_step update = step->update;
    while (step->n_left > 0 && update.segments[step->n_left - 1].offset >= from)
        step->n_left--;
    update.segments += step->n_left;
    update.n_segments = end - step->n_left;
    optimiser_step(&t->config.optimiser, &update);
    t->done(t->done_arg, from);
}

/* Updates everything that step_layer() has not updated: the first `n_left` segments, and the
 * running statistics. */
static void step_others(const struct step *step)
{
    const struct optimiser *o = &step->t->config.optimiser;
    struct optimiser_step update = step->update;
    size_t n = update.n_segments;
    update.n_segments = step->n_left;
    optimiser_step(o, &update);
    while (n > 0 && !step->update.segments[n - 1].trained)
        n--;
    update.segments = step->update.segments + n;
    update.n_segments = step->update.n_segments - n;
    optimiser_step(o, &update);
}

/* Returns a part of this step's samples: `n` of them, from number `from` on. Each part's gradient
 * is divided by the rows of the whole batch, so the gradients of the parts can simply be added. */
static struct sgd_batch training_batch(const struct step *step, size_t from, uint32_t n)
{
    const struct sgd_config *c = &step->t->config;
    return (struct sgd_batch){.model = c->model,
                              .set = c->train,
                              .n = n,
                              .index = c->scratch->index + from,
                              .augment = &c->augment,
                              .seed = c->seed,
                              .peer = c->shard->peer,
                              .position = step->position + from,
                              .smoothing = (float)c->label_smoothing,
                              .n_mean = (size_t)c->batch * c->model->n_rows};
}

/* Runs part k of the batch through the model, which gives gradient k. */
static void step_gradient(void *self, uint32_t k)
{
    struct step *step = self;
    const struct sgd_config *c = &step->t->config;
    struct sgd_scratch *s = c->scratch;
    struct sgd_part *p = &s->part[k];
    size_t from = sgd_scratch_cut(c->batch, s->threads, k);
    size_t to = sgd_scratch_cut(c->batch, s->threads, k + 1);
    p->loss = (struct loss){0};
    p->idle = from == to;
    if (p->idle)
        return;
    struct sgd_batch b = training_batch(step, from, (uint32_t)(to - from));
    b.done = step->by_layer ? step_layer : NULL;
    b.done_self = step;
    p->loss = sgd_pass_run(p, &s->train, step->update.x, &b);
    if (b.n < c->batch)
        weigh_statistics(c->model, p->grad, (float)b.n / (float)c->batch);
}

/* Adds the gradients of all parts of the batch to the gradient of part 0, for range k of the
 * parameters. Works in chunks of a few pages, which stay in the cache. */
static void step_add(void *self, uint32_t k)
{
    enum { CHUNK = 4096 };
    const struct step *step = self;
    struct sgd_scratch *s = step->t->config.scratch;
    const struct sgd_part *p = &s->part[k];
    for (size_t i = p->from; s->threads > 1 && i < p->to; i += CHUNK) {
        size_t n = p->to - i < CHUNK ? p->to - i : CHUNK;
        for (uint32_t j = 1; j < s->threads; j++)
            if (!s->part[j].idle)
                vec_axpy(s->part[0].grad + i, 1, s->part[j].grad + i, n);
    }
}

/* Updates the parameters in range k of x. The segments are cut to the range, so no two threads
 * write the same float. */
static void step_update(void *self, uint32_t k)
{
    const struct step *step = self;
    const struct sgd_config *c = &step->t->config;
    struct optimiser_step update = step->update;
    update.segments = c->scratch->part[k].segment;
    update.n_segments = c->scratch->part[k].n_segments;
    optimiser_step(&c->optimiser, &update);
}

/* Adds the gradients for range k of the parameters, and updates these parameters directly
 * afterwards, while the sums are still in the cache. Used only without clipping, which needs the
 * complete gradient before any update. */
static void step_add_update(void *self, uint32_t k)
{
    step_add(self, k);
    step_update(self, k);
}

/* Runs one step on all threads. parallel_for_run() returns after all threads have finished, so the
 * gradients are complete before the sums begin, and the sums before the updates. */
static void run_step(struct step *step)
{
    const struct sgd_config *c = &step->t->config;
    struct sgd_scratch *s = c->scratch;
    bool stores = c->optimiser.use == MOMENTUM_UPDATED || c->optimiser.use == MOMENTUM_MIXED;
    step->t->t += stores;
    /* With constant moments (MOMENTUM_HELD), the steps of a round do not store their moments, so
     * t->t does not change. Each step computes temporary moments that contain its own gradient, and
     * uses the step number t->t + 1 for them. */
    step->update.t = step->t->t + !stores;
    parallel_for_run(s->team, step_gradient, step);
    if (step->by_layer) {
        step_others(step);
        /* Clipping needs the norm of the complete gradient, so all updates come after clipping. */
    } else if (c->optimiser.clip > 0) {
        parallel_for_run(s->team, step_add, step);
        optimiser_clip(&c->optimiser, c->model->segments, c->model->n_segments, s->part[0].grad);
        parallel_for_run(s->team, step_update, step);
    } else {
        parallel_for_run(s->team, step_add_update, step);
    }
}

/* Decides whether parameters are updated layer by layer during the backward pass. Clipping and
 * several threads prevent this, because they need the complete gradient before the first update. */
static void begin_layers(struct step *step)
{
    const struct sgd_config *c = &step->t->config;
    step->by_layer = step->t->done != NULL && c->optimiser.clip == 0 && c->scratch->threads == 1;
    step->n_left = 0;
    step->update.segments = c->model->segments;
    step->update.n_segments = c->model->n_segments;
    while (step->n_left < c->model->n_segments && c->model->segments[step->n_left].trained)
        step->n_left++;
}

/* Reports to the job watchdog that a batch is done. */
static void sign(const struct sgd_trainer *t)
{
    if (t->sign != NULL)
        t->sign(t->sign_arg);
}

/* --- training with several learners --- */

static void centre_pull(void *self, uint32_t k)
{
    const struct step *step = self;
    const struct sgd_part *p = &step->t->config.scratch->part[k];
    learners_pull(&step->t->learners, p->from, p->to);
}

static void centre_move(void *self, uint32_t k)
{
    const struct step *step = self;
    const struct sgd_part *p = &step->t->config.scratch->part[k];
    learners_move(&step->t->learners, step->update.x, p->from, p->to);
}

/* Runs on thread k one step of learner number `step->learner` + k, with a whole batch and its own
 * gradient, momentum and model. */
static void learner_step(void *self, uint32_t k)
{
    const struct step *step = self;
    struct sgd_trainer *t = step->t;
    const struct sgd_config *c = &t->config;
    const struct model *m = c->model;
    struct sgd_part *p = &c->scratch->part[k];
    uint32_t j = step->learner + k;
    p->loss = (struct loss){0};
    if (j >= c->learners)
        return;
    struct sgd_batch b = training_batch(step, (size_t)k * c->batch, c->batch);
    struct optimiser_step update = step->update;
    update.x = learners_begin(&t->learners, j, k, step->update.x);
    update.grad = p->grad;
    update.m += j * m->n_params;
    update.v = update.v != NULL ? update.v + j * m->n_params : NULL;
    update.segments = m->segments;
    update.n_segments = m->n_segments;
    p->loss = sgd_pass_run(p, &c->scratch->train, update.x, &b);
    if (c->optimiser.clip > 0)
        optimiser_clip(&c->optimiser, m->segments, m->n_segments, p->grad);
    optimiser_step(&c->optimiser, &update);
    learners_end(&t->learners, j, k, step->update.x);
}

/* Runs one step of each learner. As many learners as there are threads compute at the same time.
 * Their losses are added in the order of the learners. */
static void run_learners(struct step *step, struct trainer_report *report)
{
    struct sgd_trainer *t = step->t;
    const struct sgd_config *c = &t->config;
    struct sgd_scratch *s = c->scratch;
    step->update.t = ++t->t;
    parallel_for_run(s->team, centre_pull, step);
    for (step->learner = 0; step->learner < c->learners; step->learner += s->threads) {
        uint32_t left = c->learners - step->learner, n = left < s->threads ? left : s->threads;
        shard_samples(c->shard, step->position, n * c->batch, s->index);
        parallel_for_run(s->team, learner_step, step);
        report_add(report, s, (uint64_t)n * c->batch * c->model->n_rows);
        step->position += (uint64_t)n * c->batch;
        sign(t);
    }
    parallel_for_run(s->team, centre_move, step);
}

static void trainer_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                          struct trainer_report *report)
{
    struct sgd_trainer *t = self;
    struct sgd_config *c = &t->config;
    struct sgd_scratch *s = c->scratch;
    struct step step = {.t = t,
                        .update = {.x = x,
                                   .grad = s->part[0].grad,
                                   .m = t->momentum,
                                   .v = t->second,
                                   .lr = schedule_lr(&c->schedule, shard_rounds(c->shard, round))}};
    *report = (struct trainer_report){0};
    if (t->change.kind != NULL
        && round_momentum_begin(&t->change, &c->optimiser, &step.update, round, n_steps))
        t->t++;
    if (c->momentum->tracked && n_steps > 0)
        tracking_momentum_begin(&t->tracking, &step.update);
    if (c->optimiser.use == MOMENTUM_MIXED && t->second != NULL)
        averaged_momentum_admit(&c->optimiser, t->momentum, t->second,
                                segments_trained(c->model->segments, c->model->n_segments));
    for (uint32_t i = 0; i < n_steps; i++) {
        step.position = shard_step(c->shard, round, i) * c->batch * c->learners;
        if (c->learners > 1) {
            run_learners(&step, report);
            continue;
        }
        shard_batch(c->shard, round, i, c->batch, s->index);
        if (i + 1 == n_steps)
            begin_layers(&step);
        run_step(&step);
        report_add(report, s, (uint64_t)c->batch * c->model->n_rows);
        sign(t);
    }
    if (c->momentum->tracked && n_steps > 0)
        tracking_momentum_end(&t->tracking, n_steps);
    t->done = NULL;
    report_finish(report);
}

/* The gradient of a running statistic is its difference from the value of the batch. After batch i,
 * counted from 0, a step of 1 / (i + 1) makes the statistic the mean of the first i + 1 values. */
static void trainer_statistics(void *self, float *x, uint64_t round, uint32_t n_batches)
{
    struct sgd_trainer *t = self;
    const struct sgd_config *c = &t->config;
    const struct model *m = c->model;
    struct sgd_scratch *s = c->scratch;
    struct step step = {.t = t, .update = {.x = x, .grad = s->part[0].grad}};
    size_t trained = segments_trained(m->segments, m->n_segments);
    for (uint32_t i = 0; i < n_batches; i++) {
        step.position = (shard_step(c->shard, round, 0) * c->learners + i) * c->batch;
        shard_samples(c->shard, step.position, c->batch, s->index);
        parallel_for_run(s->team, step_gradient, &step);
        parallel_for_run(s->team, step_add, &step);
        vec_axpy(x + trained, -1.0f / (float)(i + 1), s->part[0].grad + trained,
                 m->n_params - trained);
        sign(t);
    }
}

static void trainer_watch(void *self, void (*done)(void *arg, size_t from), void *arg)
{
    struct sgd_trainer *t = self;
    t->done = done;
    t->done_arg = arg;
}

static void trainer_signs(void *self, void (*each)(void *arg), void *arg)
{
    struct sgd_trainer *t = self;
    t->sign = each;
    t->sign_arg = arg;
}

static void trainer_init(void *self, float *x)
{
    struct sgd_trainer *t = self;
    const struct model *m = t->config.model;
    if (t->config.init != NULL)
        memcpy(x, t->config.init, m->n_params * sizeof *x);
    else
        model_params(m, t->config.seed, x);
}

static void trainer_sent(void *self, const float *sent)
{
    struct sgd_trainer *t = self;
    const struct model *m = t->config.model;
    size_t n = segments_trained(m->segments, m->n_segments);
    for (uint32_t j = 0; j < t->config.learners; j++)
        optimiser_forget(t->momentum + j * m->n_params, sent, n);
    if (t->config.learners > 1)
        learners_forget(&t->learners, sent);
}

static int trainer_members(void *self, const uint64_t *keys, size_t n, uint64_t own)
{
    struct sgd_trainer *t = self;
    return shard_members(t->config.shard, keys, n, own);
}

static void learner_states(struct sgd_trainer *t, struct state *s)
{
    size_t n = t->config.model->n_params;
    for (uint32_t j = 0; j < t->config.learners; j++) {
        state_floats(s, t->momentum + j * n, n, "learners.%u.momentum", (unsigned)j);
        if (t->second != NULL)
            state_floats(s, t->second + j * n, n, "learners.%u.second", (unsigned)j);
    }
    learners_state(&t->learners, s);
}

static void trainer_state(void *self, struct state *s)
{
    struct sgd_trainer *t = self;
    size_t n = t->config.model->n_params;
    state_section(s, "optimizer");
    state_u64(s, &t->t);
    if (t->change.kind != NULL)
        round_momentum_state(&t->change, s);
    if (t->config.learners > 1) {
        learner_states(t, s);
        return;
    }
    state_floats(s, t->momentum, n, "optimizer.momentum");
    if (t->second != NULL)
        state_floats(s, t->second, n, "optimizer.second");
    if (t->config.momentum->tracked)
        tracking_momentum_state(&t->tracking, s);
}

static void trainer_rolled_back(void *self)
{
    struct sgd_trainer *t = self;
    tracking_momentum_rolled_back(&t->tracking);
}

/* --- evaluating a model --- */

enum { SPREAD = 8 /* Number of consecutive samples in a group that is evaluated together. */ };

struct evaluation
{
    const struct sgd_trainer *t;
    const float *x;
    size_t n;
};

/* Returns the index in the held-out set of sample number `at` of an evaluation, which uses e->n
 * samples. If the set has more samples, groups of SPREAD consecutive samples are taken from the
 * whole set at equal distances, because files may be sorted by label. */
static size_t place(const struct evaluation *e, size_t at)
{
    size_t all = e->t->config.test->n, block = at / SPREAD;
    size_t blocks = (e->n + SPREAD - 1) / SPREAD, room = all - e->n;
    return e->n == all ? at : at + room * block / blocks;
}

/* Evaluates part k of the held-out samples, without augmentation and label smoothing. Only part 0,
 * which is at least as long as any other part, reports progress to the watchdog. */
static void evaluate_part(void *self, uint32_t k)
{
    static const struct augment as_it_is = {.crop = false};
    const struct evaluation *e = self;
    const struct sgd_config *c = &e->t->config;
    struct sgd_scratch *s = c->scratch;
    struct sgd_part *p = &s->part[k];
    size_t begin = sgd_scratch_cut(e->n, s->threads, k);
    size_t end = sgd_scratch_cut(e->n, s->threads, k + 1);
    p->loss = (struct loss){0};
    size_t most = s->eval.n, n;
    for (size_t at = begin; at < end; at += n) {
        /* If only some samples are evaluated, a batch must stay within one group of SPREAD samples,
         * because only the samples of a group are consecutive. */
        if (e->n < c->test->n)
            most = s->eval.n < SPREAD - at % SPREAD ? s->eval.n : SPREAD - at % SPREAD;
        n = end - at < most ? end - at : most;
        struct sgd_batch b = {.model = c->model,
                              .set = c->test,
                              .n = (uint32_t)n,
                              .first = place(e, at),
                              .augment = &as_it_is};
        struct loss loss = sgd_pass_run(p, &s->eval, e->x, &b);
        p->loss.sum += loss.sum;
        p->loss.n_right += loss.n_right;
        if (k == 0)
            sign(e->t);
    }
}

/* Returns the share of the evaluated samples that have the most frequent label. Returns 0 for a
 * text, because its samples do not have one label each. */
static double majority(const struct evaluation *e)
{
    const struct dataset *d = e->t->config.test;
    uint32_t count[DATA_CLASSES_MAX] = {0}, most = 0;
    if (d->labels == NULL)
        return 0;
    for (size_t at = 0; at < e->n; at++) {
        uint32_t n = ++count[d->labels[place(e, at)]];
        most = n > most ? n : most;
    }
    return (double)most / (double)e->n;
}

static void trainer_evaluate(void *self, const float *x, uint64_t max_samples,
                             struct trainer_report *report)
{
    struct sgd_trainer *t = self;
    struct sgd_scratch *s = t->config.scratch;
    size_t n = t->config.test->n;
    if (max_samples != 0 && max_samples < n)
        n = (size_t)max_samples;
    struct evaluation e = {t, x, n};
    parallel_for_run(s->team, evaluate_part, &e);
    *report = (struct trainer_report){0};
    report_add(report, s, (uint64_t)n * t->config.model->n_rows);
    report_finish(report);
    report->majority = majority(&e);
}

/* --- making and closing the trainer --- */

/* Checks that the data have the shape that the model expects. With other data, samples would be
 * read beyond their end. */
static int check_shape(const struct model *m, const struct dataset *d, char error[MODEL_ERROR_MAX])
{
    const struct data_shape *a = &m->data, *b = &d->shape;
    if (a->form == b->form && a->channels == b->channels && a->height == b->height
        && a->width == b->width && a->n_classes == b->n_classes)
        return 0;
    snprintf(error, MODEL_ERROR_MAX,
             "model \"%.80s\" is for %s of %ux%ux%u and %u classes, but the data (%.63s) are %s of "
             "%ux%ux%u and %u classes",
             m->spec, data_form_name(a->form), (unsigned)a->channels, (unsigned)a->height,
             (unsigned)a->width, (unsigned)a->n_classes, d->kind, data_form_name(b->form),
             (unsigned)b->channels, (unsigned)b->height, (unsigned)b->width,
             (unsigned)b->n_classes);
    return -EINVAL;
}

/* Opens the trainer's own scratch. With one learner there are at most as many threads as samples in
 * a batch. With several learners there are at most as many threads as learners. Further threads
 * would be idle. */
static int open_scratch(struct sgd_trainer *t)
{
    struct sgd_config *c = &t->config;
    uint32_t most = c->learners > 1 ? c->learners : c->batch;
    uint32_t threads = c->threads == 0 ? 1 : c->threads < most ? c->threads : most;
    int err =
        sgd_scratch_open(&t->own, c->model, sgd_trainer_samples(c->batch, c->learners, threads),
                         threads, c->train->longest);
    c->scratch = t->own;
    return err;
}

/* Allocates the momentum of each learner, and the state of the kind of momentum or of several
 * learners. */
static int open_memory(struct sgd_trainer *t)
{
    const struct sgd_config *c = &t->config;
    size_t n = c->model->n_params, all = n * c->learners;
    size_t n_trained = segments_trained(c->model->segments, c->model->n_segments);
    bool adam = c->optimiser.kind != OPTIMISER_SGD;
    struct learners_config several = {.n = c->learners,
                                      .at_once = c->scratch->threads,
                                      .n_params = n,
                                      .n_trained = n_trained,
                                      .momentum = c->learner_momentum};
    t->momentum = calloc(all, sizeof *t->momentum);
    t->second = adam ? calloc(all, sizeof *t->second) : NULL;
    if (t->momentum == NULL || (adam && t->second == NULL))
        return -ENOMEM;
    if (c->momentum->learn != NULL)
        return round_momentum_init(&t->change, c->momentum, n_trained);
    if (c->momentum->tracked)
        return tracking_momentum_init(&t->tracking, n_trained);
    return c->learners > 1 ? learners_init(&t->learners, &several) : 0;
}

int sgd_trainer_init(struct sgd_trainer *t, const struct sgd_config *config,
                     char error[MODEL_ERROR_MAX])
{
    memset(t, 0, sizeof *t);
    error[0] = '\0';
    t->config = *config;
    const struct model *m = config->model;
    if (check_shape(m, config->train, error) != 0 || check_shape(m, config->test, error) != 0)
        return -EINVAL;
    t->config.learners = config->learners > 0 ? config->learners : 1;
    assert(config->batch > 0 && t->config.learners <= LEARNERS_MAX);
    if (config->momentum == NULL)
        t->config.momentum = &momentum_local;
    t->config.optimiser.use = t->config.momentum->use;
    assert(t->config.learners == 1
           || (t->config.momentum->learn == NULL && !t->config.momentum->exchanged));
    int err = config->scratch != NULL ? 0 : open_scratch(t);
    if (err)
        return err;
    const struct sgd_scratch *s = t->config.scratch;
    assert(s->n_params == m->n_params
           && s->batch >= sgd_trainer_samples(config->batch, t->config.learners, s->threads)
           && (!m->sparse || s->longest >= config->train->longest));
    err = open_memory(t);
    if (err != 0)
        sgd_trainer_close(t);
    return err;
}

void sgd_trainer_close(struct sgd_trainer *t)
{
    free(t->momentum);
    free(t->second);
    round_momentum_close(&t->change);
    tracking_momentum_close(&t->tracking);
    learners_close(&t->learners);
    sgd_scratch_close(t->own);
    memset(t, 0, sizeof *t);
}

struct trainer sgd_trainer_face(struct sgd_trainer *t)
{
    const struct model *m = t->config.model;
    const struct momentum_kind *kind = t->config.momentum;
    float *first = kind->tracked ? t->tracking.companion : kind->exchanged ? t->momentum : NULL;
    float *second = kind->exchanged && !kind->tracked ? t->second : NULL;
    bool has_statistics = segments_trained(m->segments, m->n_segments) < m->n_params;
    return (struct trainer){.n_params = m->n_params,
                            .segments = m->segments,
                            .n_segments = m->n_segments,
                            .companion = {first, second},
                            .conserved = kind->tracked,
                            .self = t,
                            .guess = log((double)m->n_classes),
                            .batch = t->config.batch * t->config.learners,
                            .init = trainer_init,
                            .steps = trainer_steps,
                            .statistics = has_statistics ? trainer_statistics : NULL,
                            .watch = trainer_watch,
                            .signs = trainer_signs,
                            .sent = trainer_sent,
                            .evaluate = trainer_evaluate,
                            .members = trainer_members,
                            .state = trainer_state,
                            .rolled_back = kind->tracked ? trainer_rolled_back : NULL};
}
