/* tests/unit/nn_training.h -- small data sets, one of each form, and a trainer
 * on one of them. */
#ifndef TESTS_UNIT_NN_TRAINING_H
#define TESTS_UNIT_NN_TRAINING_H

#include "nn/math/rng.h"
#include "nn/train/sgd_trainer.h"
#include "nn_ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    N_TRAIN = 200,
    N_TEST = 333, /* Number of test samples, not a multiple of any batch size. */
    BATCH = 16,
    N_FEATURES = 60, /* Features per row, six for each of ten classes. */
    CONTEXT = 12
};

/* Makes images of ten classes: the class decides which of ten stripes is bright on a noisy
 * background. */
static inline void fill_images(struct dataset *d, uint64_t key)
{
    size_t dim = dataset_dim(d), plane = (size_t)d->shape.height * d->shape.width;
    for (size_t i = 0; i < d->n; i++)
        for (size_t j = 0; j < dim; j++) {
            uint64_t noise = rng_at(key, i * dim + j) % 128;
            bool bright = j % plane * 14 / plane == d->labels[i] + 2u;
            d->pixels[i * dim + j] = (uint8_t)(noise + (bright ? 100 : 0));
        }
}

/* Returns feature j of row i: at least 1 if the feature belongs to the class `label`, else
 * mostly 0. Dense and sparse rows have the same features. */
static inline float feature(uint64_t key, size_t i, size_t j, uint32_t label)
{
    uint64_t bits = rng_at(key, i * N_FEATURES + j);
    if (j / 6 == label)
        return 1 + (float)(bits % 8) / 8;
    return bits % 5 == 0 ? (float)(bits % 7) / 8 : 0;
}

static inline void fill_rows(struct dataset *d, uint64_t key)
{
    for (size_t i = 0; i < d->n; i++)
        for (size_t j = 0; j < N_FEATURES; j++)
            d->rows[i * N_FEATURES + j] = feature(key, i, j, d->labels[i]);
}

static inline void fill_sparse(struct dataset *d, uint64_t key)
{
    size_t at = 0;
    for (size_t i = 0; i < d->n; i++) {
        d->start[i] = at;
        for (size_t j = 0; j < N_FEATURES; j++) {
            float v = feature(key, i, j, d->labels[i]);
            d->column[at] = (uint32_t)j;
            d->entry[at] = v;
            at += v != 0;
        }
        d->longest = at - d->start[i] > d->longest ? at - d->start[i] : d->longest;
    }
    d->start[d->n] = at;
}

/* Makes a text that repeats itself, with random changes. */
static inline void fill_text(struct dataset *d, uint64_t key)
{
    for (size_t i = 0; i <= d->n * CONTEXT; i++)
        d->text[i] = rng_at(key, i) % 16 == 0 ? '?' : (uint8_t) "gossip "[i % 7];
}

/* Makes a data set of n samples of the kind "mnist", "cifar10", "csv/60x10/0", "libsvm/60x10/0"
 * or "text/12". */
static inline void fill_set(struct dataset *d, const char *kind, size_t n, uint64_t who)
{
    uint64_t key = rng_key(1, RNG_TEST, who, 0);
    assert_int_equal(dataset_init(d, kind, n, n * N_FEATURES), 0);
    for (size_t i = 0; i < n && d->labels; i++)
        d->labels[i] = (uint16_t)(rng_at(key ^ 1, i) % 10);
    switch (d->shape.form) {
    case DATA_IMAGES:
        fill_images(d, key);
        break;
    case DATA_ROWS:
        fill_rows(d, key);
        break;
    case DATA_SPARSE:
        fill_sparse(d, key);
        break;
    case DATA_TEXT:
        fill_text(d, key);
        break;
    }
}

struct bed
{
    struct model model;
    struct dataset train, test;
    struct shard shard;
    struct sgd_config config;
    struct sgd_trainer trainer;
    struct trainer face;
    float *x;
};

/* Opens a trainer's test bed. The caller may then change b->config, and starts the bed with
 * bed_start(). */
static inline void bed_open_on(struct bed *b, const char *spec, const char *kind, uint64_t peer)
{
    static char error[MODEL_ERROR_MAX];
    memset(b, 0, sizeof *b);
    fill_set(&b->train, kind, N_TRAIN, 1);
    fill_set(&b->test, kind, N_TEST, 2);
    if (model_init(&b->model, spec, MODEL_BATCH_NORM, &b->train.shape, error) != 0)
        fail_msg("%s on %s: %s", spec, kind, error);
    struct shard_config shard = {
        .spec = {.mode = SHARD_OWN}, .seed = 5, .peer = peer, .local_steps = 4};
    char why[DATA_ERROR_MAX];
    assert_int_equal(shard_open(&b->shard, &shard, &b->train, why), 0);
    b->config =
        (struct sgd_config){.model = &b->model,
                            .train = &b->train,
                            .test = &b->test,
                            .shard = &b->shard,
                            .seed = 5,
                            .batch = BATCH,
                            .optimiser = {.momentum = 0.9, .nesterov = true, .weight_decay = 1e-4},
                            .schedule = {SCHEDULE_COSINE, 0.02, 2, 40}};
}

static inline void bed_open(struct bed *b, const char *spec, uint64_t peer)
{
    bed_open_on(b, spec, "mnist", peer);
}

static inline float *vector(const struct bed *b)
{
    float *v = calloc(b->model.n_params, sizeof *v);
    assert_non_null(v);
    return v;
}

static inline void bed_start(struct bed *b)
{
    char error[MODEL_ERROR_MAX];
    assert_int_equal(sgd_trainer_init(&b->trainer, &b->config, error), 0);
    b->face = sgd_trainer_face(&b->trainer);
    b->x = vector(b);
    b->face.init(b->face.self, b->x);
}

static inline void bed_close(struct bed *b)
{
    free(b->x);
    sgd_trainer_close(&b->trainer);
    shard_close(&b->shard);
    dataset_close(&b->train);
    dataset_close(&b->test);
    model_close(&b->model);
}

static inline struct trainer_report steps(struct bed *b, uint64_t round, uint32_t n)
{
    struct trainer_report r;
    b->face.steps(b->face.self, b->x, round, n, &r);
    return r;
}

static inline struct trainer_report evaluate(struct bed *b, uint64_t max_samples)
{
    struct trainer_report r;
    b->face.evaluate(b->face.self, b->x, max_samples, &r);
    return r;
}

static inline void same_x(const struct bed *a, const struct bed *b)
{
    assert_memory_equal(a->x, b->x, a->face.n_params * sizeof *a->x);
}

#endif
