#include "peer/cmd_training.h"

#include "nn/rng.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MAX = 1000000000 };

int cmd_training_init(struct cmd_training *t, const char *data_spec,
                      const char *shard, const char *name,
                      char error[RUN_ERROR_MAX])
{
    char why[DATA_ERROR_MAX];
    *t = (struct cmd_training){.data_spec = data_spec,
                               .peer_key = rng_hash(name, strlen(name))};
    int err = shard_spec_parse(&t->shard_spec, shard, why);
    if (err < 0)
        snprintf(error, RUN_ERROR_MAX, "--shard: %.280s", why);
    return err;
}

int cmd_training_data(struct cmd_training *t, const char *kind, uint64_t seed,
                      char error[RUN_ERROR_MAX])
{
    char why[DATA_ERROR_MAX], given[DATA_KIND_MAX];
    const char *spec = t->data_spec ? t->data_spec : kind;
    int err = data_kind(spec, given, why);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--data: %.300s", why);
        return err;
    }
    if (strcmp(given, kind) != 0) {
        snprintf(error, RUN_ERROR_MAX, "--data: found '%s', but the run's data set is '%s'", given, kind);
        return -EINVAL;
    }
    if (t->has_data && (t->seed == seed || strcmp(kind, "glyphs") != 0))
        return 0;
    if (t->has_data)
        data_close(&t->data);
    t->has_data = false;
    err = data_open(&t->data, spec, seed, why);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--data: %.300s", why);
        return err;
    }
    t->has_data = true;
    t->seed = seed;
    return 0;
}

uint64_t cmd_training_rounds(const struct cmd_training *t,
                             const struct run *run, double epochs)
{
    assert(t->has_data);
    uint32_t n = run->min_peers;
    if (t->shard_spec.mode == SHARD_PART && t->shard_spec.n_parts > n)
        n = t->shard_spec.n_parts;
    double samples = (double)t->data.train.n;
    if (t->shard_spec.mode == SHARD_OWN)
        samples *= n;
    double a_round = (double)run->batch * run->local_steps * n;
    double rounds = ceil(epochs * samples / a_round);
    if (!(rounds >= 1))
        return 1;
    return rounds < ROUNDS_MAX ? (uint64_t)rounds : ROUNDS_MAX;
}

int cmd_training_fix_rounds(struct cmd_training *t, struct run_flags *flags,
                            double epochs, struct run *run,
                            char error[RUN_ERROR_MAX])
{
    char text[24];
    int err = run_from_flags(run, flags, error);
    if (err < 0 || run->rounds > 0)
        return err;
    err = cmd_training_data(t, run->data, run->seed, error);
    if (err < 0)
        return err;
    snprintf(text, sizeof text, "%llu", (unsigned long long)cmd_training_rounds(t, run, epochs));
    err = run_flags_set(flags, "rounds", text, error);
    return err < 0 ? err : run_from_flags(run, flags, error);
}

static void close_trainer(struct cmd_training *t)
{
    if (!t->has_trainer)
        return;
    sgd_trainer_close(&t->sgd);
    shard_close(&t->shard);
    t->has_trainer = false;
}

void cmd_training_share(struct cmd_training *t, struct cmd_training *of)
{
    t->of = of;
    of->shared = true;
}

static struct sgd_config sgd_config(struct cmd_training *t, const struct run *run)
{
    struct cmd_training *of = t->of != NULL ? t->of : t;
    static const enum schedule_kind kind[] = {
        [RUN_COSINE] = SCHEDULE_COSINE, [RUN_STEP] = SCHEDULE_STEP, [RUN_CONSTANT] = SCHEDULE_CONSTANT};
    return (struct sgd_config){
        .model = &of->model,
        .train = &of->data.train,
        .test = &of->data.test,
        .shard = &t->shard,
        .scratch = of->has_scratch ? &of->scratch : NULL,
        .seed = run->seed,
        .batch = run->batch,
        .optimiser = {.momentum = run->momentum,
                      .nesterov = run->nesterov,
                      .weight_decay = run->weight_decay,
                      .clip = run->clip / sqrt((double)run->min_peers)},
        .schedule = {.kind = kind[run->schedule],
                     .lr = run->lr,
                     .warmup = run->warmup,
                     .rounds = run->rounds},
    };
}

int cmd_training_model(struct model *m, const struct run *run, char error[RUN_ERROR_MAX])
{
    char why[MODEL_ERROR_MAX];
    struct shape in;
    uint32_t n_classes;
    int err = data_shape(run->data, &in.c, &in.h, &in.w, &n_classes);
    assert(err == 0); /* A run's data set is one of the table. */
    err = model_init(m, run->model, in, n_classes, why);
    if (err < 0)
        snprintf(error, RUN_ERROR_MAX, "--model: %.300s", why);
    return err;
}

static int out_of_memory(const char *what, char error[RUN_ERROR_MAX])
{
    snprintf(error, RUN_ERROR_MAX, "out of memory for %s", what);
    return -ENOMEM;
}

/* The model; and, where others share ours, one scratch and one table of owners
 * for all. */
static int make_common(struct cmd_training *t, const struct run *run,
                       const struct shard_split *split, char error[RUN_ERROR_MAX])
{
    int err = cmd_training_model(&t->model, run, error);
    if (err < 0 || !t->shared)
        return err;
    if (sgd_scratch_init(&t->scratch, &t->model, run->batch) < 0)
        return out_of_memory("the model's activations", error);
    t->has_scratch = true;
    if (shard_owners_open(&t->owners, &t->data.train, split, run->seed) < 0)
        return out_of_memory("the shards", error);
    return 0;
}

static void close_common(struct cmd_training *t)
{
    if (t->has_scratch)
        sgd_scratch_close(&t->scratch);
    if (t->owners != NULL)
        shard_owners_close(t->owners);
    t->has_scratch = false;
    t->owners = NULL;
}

/* Model, shard, trainer, once the data are there. */
static int make(struct cmd_training *t, const struct run *run,
                char error[RUN_ERROR_MAX])
{
    char why[MODEL_ERROR_MAX];
    static_assert((int)DATA_ERROR_MAX <= (int)MODEL_ERROR_MAX, "one buffer for all");
    struct cmd_training *of = t->of != NULL ? t->of : t;
    struct shard_config shard = {.spec = t->shard_spec, .seed = run->seed,
                                 .peer = t->peer_key, .local_steps = run->local_steps};
    int err = shard_split_parse(&shard.split, run->skew, why);
    if (err == 0 && of == t && (err = make_common(t, run, &shard.split, error)) < 0)
        return err;
    shard.owners = of->owners;
    if (err == 0)
        err = shard_open(&t->shard, &shard, &of->data.train, why);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--shard: %.300s", err == -ENOMEM ? "out of memory" : why);
        return err;
    }
    struct sgd_config config = sgd_config(t, run);
    err = sgd_trainer_init(&t->sgd, &config, why);
    if (err < 0) {
        shard_close(&t->shard);
        snprintf(error, RUN_ERROR_MAX, "%.300s", err == -ENOMEM ? "out of memory for the trainer" : why);
    }
    return err;
}

int cmd_training_make(void *self, const struct run *run, struct trainer *out,
                      char error[RUN_ERROR_MAX])
{
    struct cmd_training *t = self;
    int err = 0;
    close_trainer(t);
    close_common(t);
    if (t->of == NULL)
        err = cmd_training_data(t, run->data, run->seed, error);
    if (err == 0)
        err = make(t, run, error);
    if (err < 0)
        return err;
    t->has_trainer = true;
    *out = sgd_trainer_face(&t->sgd);
    return 0;
}

void cmd_training_close(struct cmd_training *t)
{
    close_trainer(t);
    close_common(t);
    if (t->has_data)
        data_close(&t->data);
    t->has_data = false;
}
