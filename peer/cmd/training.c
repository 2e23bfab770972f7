/* peer/cmd/training.c -- opens the data, model and shard of a run, and makes the run's trainer from
 * them. */
#include "peer/cmd/training.h"

#include "compress/compress.h"
#include "nn/data/spec.h"
#include "nn/files/safetensors.h"
#include "nn/math/rng.h"
#include "peer/run_log/columns.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_MAX = 1000000000 };

int cmd_training_init(struct cmd_training *t, const char *data_spec, const char *shard,
                      const char *name, char error[RUN_ERROR_MAX])
{
    char why[DATA_ERROR_MAX];
    *t = (struct cmd_training){.data_spec = data_spec, .peer_key = rng_hash(name, strlen(name))};
    int err = shard_spec_parse(&t->shard_spec, shard, why);
    if (err < 0)
        snprintf(error, RUN_ERROR_MAX, "--shard: %.280s", why);
    return err;
}

/* Checks that --data is given if the data kind needs it. Also checks that the kind of --data is the
 * kind in the run, as far as it is known before the data are read. Returns 0, or a negative errno
 * with a message in `error`. */
static int check_kind(const struct cmd_training *t, const char *kind, char error[RUN_ERROR_MAX])
{
    char why[DATA_ERROR_MAX], given[DATA_KIND_MAX];
    if (t->data_spec == NULL && strcmp(kind, "glyphs") != 0) {
        snprintf(error, RUN_ERROR_MAX, "--data is missing: the run's data set is '%s'",
                 kind_brief(kind).text);
        return -EINVAL;
    }
    int err = t->data_spec != NULL ? data_kind(t->data_spec, given, why) : 0;
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--data: %.300s", why);
        return err;
    }
    if (t->data_spec == NULL || data_kind_agrees(given, kind))
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--data: found '%s', but the run's data set is '%s'",
             kind_brief(given).text, kind_brief(kind).text);
    return -EINVAL;
}

int cmd_training_check_files(const struct cmd_training *t, char error[RUN_ERROR_MAX])
{
    /* `s` is static, because struct data_spec is too large for the stack. */
    static struct data_spec s;
    char why[DATA_ERROR_MAX];
    if (t->data_spec == NULL)
        return 0;
    int err = data_spec_parse(&s, t->data_spec, why);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--data: %.300s", why);
        return err;
    }
    const char *const path[] = {s.path, s.test};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        if (path[i] == NULL || access(path[i], R_OK) == 0)
            continue;
        err = -errno;
        snprintf(error, RUN_ERROR_MAX, "--data: cannot read %.200s: %s", path[i], strerror(-err));
        return err;
    }
    return 0;
}

/* Sets t->order, which is the order of a table's columns in the model's inputs. With --init the
 * order is taken from the file of the initial model. Otherwise, if the table has been read before,
 * its own order is used. In all other cases t->order does not change. Returns 0, or a negative
 * errno with a message in `error`. */
static int find_order(struct cmd_training *t, char error[RUN_ERROR_MAX])
{
    char why[FILE_ERROR_MAX];
    struct safetensors_info info;
    if (t->init_path != NULL && !t->order.named) {
        int err = safetensors_info(t->init_path, &info, why);
        if (err < 0) {
            snprintf(error, RUN_ERROR_MAX, "--init: %.300s", why);
            return err;
        }
        err = diary_columns_read(&info, &t->order);
        safetensors_info_close(&info);
        if (err < 0)
            snprintf(error, RUN_ERROR_MAX, "--init %.200s: %s", t->init_path,
                     err == -ENOMEM ? "out of memory"
                                    : "\"columns\" in its metadata: expected distinct names");
        return err;
    }
    if (t->has_data && t->data.schema.named && t->init_path == NULL) {
        schema_close(&t->order);
        t->order = t->data.schema;
        t->data.schema = (struct schema){0};
    }
    return 0;
}

int cmd_training_data(struct cmd_training *t, const char *kind, uint64_t seed,
                      char error[RUN_ERROR_MAX])
{
    char why[DATA_ERROR_MAX];
    int err = check_kind(t, kind, error);
    if (err < 0)
        return err;
    /* Data of this kind that are in memory are used again, except generated data (glyphs) of
     * another seed. */
    if (t->has_data && data_kind_agrees(t->data.train.kind, kind)
        && (t->seed == seed || strcmp(kind, "glyphs") != 0))
        return 0;
    err = find_order(t, error);
    if (err < 0)
        return err;
    char told[DATA_NOTE_MAX] = "";
    if (t->has_data) {
        memcpy(told, t->data.note, sizeof told);
        data_close(&t->data);
    }
    t->has_data = false;
    struct data_request request = {.spec = t->data_spec != NULL ? t->data_spec : kind,
                                   .kind = data_kind_fixed(kind) ? kind : NULL,
                                   .seed = seed,
                                   .part = t->shard_spec.mode == SHARD_OWN,
                                   .schema = &t->order,
                                   .progress = t->reading != NULL ? cmd_progress_read : NULL,
                                   .self = t->reading};
    err = data_open(&t->data, &request, why);
    if (t->reading != NULL)
        cmd_progress_read_end(t->reading);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--data: %.300s", why);
        return err;
    }
    /* Print the note about the data only once: the same files may be read a second time for the
     * run's column statistics, and then give the same note. */
    if (t->reading != NULL && t->data.note[0] != '\0' && strcmp(t->data.note, told) != 0)
        fprintf(t->reading->out, "--data: %s\n", t->data.note);
    if (t->reading != NULL && t->shard_spec.mode == SHARD_OWN && strchr(kind, ':') != NULL)
        fprintf(t->reading->out, "--shard own: column means, scales and categories come from the "
                                 "run, not from this file\n");
    t->has_data = true;
    t->seed = seed;
    return 0;
}

uint64_t cmd_training_rounds(const struct cmd_training *t, const struct run *run, double epochs)
{
    assert(t->has_data);
    uint32_t n = run->min_peers;
    if (t->shard_spec.mode == SHARD_PART && t->shard_spec.n_parts > n)
        n = t->shard_spec.n_parts;
    double samples = (double)t->data.train.n;
    if (t->shard_spec.mode == SHARD_OWN)
        samples *= n;
    double a_step = (double)sgd_samples(run) * n, a_round = a_step * run_steps(run);
    /* Number of rounds that have only one local step (--post-local, --one-step-last). */
    double single = fmin((double)(run->post_local + run->one_step_last), epochs * samples / a_step);
    double rounds = ceil(single + (epochs * samples - single * a_step) / a_round);
    if (!(rounds >= 1))
        return 1;
    return rounds < ROUNDS_MAX ? (uint64_t)rounds : ROUNDS_MAX;
}

int cmd_training_model(struct model *m, const struct run *run, char error[RUN_ERROR_MAX])
{
    char why[MODEL_ERROR_MAX];
    struct data_shape shape;
    if (!data_kind_fixed(sgd_values(run)->data)) {
        snprintf(
            error, RUN_ERROR_MAX,
            "--data: '%.63s' does not give the number of features and classes, expected a kind "
            "with its sizes, such as mnist, libsvm/123x2/pm (123 features, 2 classes), "
            "csv/64x10/0 or idx/1x28x28/10",
            sgd_values(run)->data);
        return -EINVAL;
    }
    int err = data_shape(sgd_values(run)->data, &shape);
    assert(err == 0);
    err = model_init(m, sgd_values(run)->model, sgd_values(run)->norm, &shape, why);
    if (err < 0)
        snprintf(error, RUN_ERROR_MAX, "--model: %.300s", err == -ENOMEM ? "out of memory" : why);
    return err;
}

static int out_of_memory(const char *what, char error[RUN_ERROR_MAX])
{
    snprintf(error, RUN_ERROR_MAX, "out of memory for %s", what);
    return -ENOMEM;
}

struct run_log_source cmd_training_source(const struct cmd_training *t)
{
    const struct cmd_training *of = t->of != NULL ? t->of : t;
    struct run_log_source source = {NULL, NULL, {0, 0}};
    if (of->has_data)
        source = (struct run_log_source){of->data.train.names,
                                         of->data.schema.named ? &of->data.schema : NULL,
                                         {of->data.hash, of->data.holdout}};
    return source;
}

const char *cmd_training_trained_on(const struct cmd_training *t,
                                    char text[DIARY_MODEL_TRAINED_MAX])
{
    struct data_trained trained = cmd_training_source(t).trained;
    return trained.hash != 0 ? diary_model_trained(&trained, text) : NULL;
}

const char *cmd_training_error_text(int err, const char *why)
{
    return err == -ENOMEM   ? "out of memory for the trainer"
           : err == -EAGAIN ? "cannot start more threads"
                            : why;
}

/* ---- The file of the initial model ---- */

/* Reads the file of the initial model into `*x`, which the caller frees. Writes the hash of the
 * model to `text`, in the form of the run description. Returns 0, or a negative errno with a
 * message in `error`. */
static int read_init(const struct cmd_training *t, const struct model *m, float **x,
                     char text[SGD_INIT_MAX], char error[RUN_ERROR_MAX])
{
    char why[DATA_ERROR_MAX];
    *x = calloc(m->n_params, sizeof **x);
    if (*x == NULL)
        return out_of_memory("the initial model", error);
    int err = safetensors_read(t->init_path, m->segments, m->n_segments, *x, why);
    if (err < 0) {
        free(*x);
        *x = NULL;
        snprintf(error, RUN_ERROR_MAX, "--init: %.300s", why);
        return err;
    }
    snprintf(text, SGD_INIT_MAX, "%016" PRIx64, vec_hash(*x, m->n_params));
    return 0;
}

/* Reads the initial model of --init, and checks that the run starts from exactly this model.
 * Returns 0, or a negative errno with a message in `error`. */
static int take_init(struct cmd_training *t, const struct run *run, char error[RUN_ERROR_MAX])
{
    char text[SGD_INIT_MAX];
    bool wanted = strcmp(sgd_values(run)->init, "none") != 0;
    if (t->init_path == NULL && !wanted)
        return 0;
    if (t->init_path == NULL) {
        snprintf(error, RUN_ERROR_MAX,
                 "--init is missing: the run starts from a given model (init=%s); every peer needs "
                 "its file",
                 sgd_values(run)->init);
        return -EINVAL;
    }
    int err = read_init(t, &t->model, &t->init, text, error);
    if (err < 0)
        return err;
    if (strcmp(text, sgd_values(run)->init) != 0) {
        snprintf(error, RUN_ERROR_MAX,
                 "--init %.160s: found the model %s, but the run starts with %s%s", t->init_path,
                 text, wanted ? "" : "no file: init=", sgd_values(run)->init);
        return -EINVAL;
    }
    struct kind_rows kind;
    bool rows = kind_rows_parse(sgd_values(run)->data, "csv", &kind);
    if (rows && kind.named && t->order.named && t->order.hash != kind.names_hash) {
        char list[SCHEMA_WHY_MAX];
        schema_list(&t->order, list);
        snprintf(
            error, RUN_ERROR_MAX,
            "--init %.100s: found a model for the columns %.140s, expected the columns of the run",
            t->init_path, list);
        return -EINVAL;
    }
    return 0;
}

/* ---- Runs that depend on files ---- */

static int set_and_fill(struct run_flags *flags, const char *name, const char *value,
                        struct run *run, char error[RUN_ERROR_MAX])
{
    int err = run_flags_set(flags, name, value, error);
    return err < 0 ? err : run_from_flags(run, flags, error);
}

static int fix_init(struct cmd_training *t, struct run_flags *flags, struct run *run,
                    char error[RUN_ERROR_MAX])
{
    char text[SGD_INIT_MAX];
    struct model m;
    float *x = NULL;
    int err = cmd_training_model(&m, run, error);
    if (err < 0)
        return err;
    err = read_init(t, &m, &x, text, error);
    free(x);
    model_close(&m);
    return err < 0 ? err : set_and_fill(flags, "init", text, run, error);
}

int cmd_training_rules(const struct model *m, const char *flag, const char *spec,
                       char error[RUN_ERROR_MAX])
{
    char rule[COMPRESS_SPEC_MAX];
    if (!compress_idle_rule(spec, m->segments, m->n_segments, rule))
        return 0;
    snprintf(error, RUN_ERROR_MAX,
             "--%s: rule '%.120s': found no tensor of %.60s that matches '%.*s', expected at "
             "least one",
             flag, rule, m->spec, (int)strcspn(rule, "="), rule);
    return -EINVAL;
}

static int check_rules(const struct run *run, const char *flag, const char *spec,
                       char error[RUN_ERROR_MAX])
{
    struct model m;
    /* A spec without a semicolon has no rules for single tensors, so there is nothing to check. */
    if (strchr(spec, ';') == NULL)
        return 0;
    int err = cmd_training_model(&m, run, error);
    if (err < 0)
        return err;
    err = cmd_training_rules(&m, flag, spec, error);
    model_close(&m);
    return err;
}

/* Checks that every rule of the given codecs matches a tensor of the run's model. A peer that may
 * join a cluster skips this check if --model was not given, because the cluster's model may be
 * another one. */
static int check_codecs(const struct cmd_training *t, const struct run_flags *flags,
                        const struct run *run, char error[RUN_ERROR_MAX])
{
    if (t->joins && run_flags_value(flags, "model")[0] == '\0')
        return 0;
    int err = check_rules(run, "compress", run_flags_value(flags, "compress"), error);
    return err < 0 ? err
                   : check_rules(run, "final-compress", run_flags_value(flags, "final-compress"),
                                 error);
}

int cmd_training_complete_run(struct cmd_training *t, struct run_flags *flags, double epochs,
                              struct run *run, char error[RUN_ERROR_MAX])
{
    char text[24];
    int err = run_from_flags(run, flags, error);
    bool open = err == 0 && !data_kind_fixed(sgd_values(run)->data);
    if (err == 0 && (open || run->rounds == 0))
        err = cmd_training_data(t, sgd_values(run)->data, run->seed, error);
    if (err == 0 && open)
        err = set_and_fill(flags, "data", t->data.train.kind, run, error);
    if (err == 0 && run->rounds == 0) {
        snprintf(text, sizeof text, "%" PRIu64, cmd_training_rounds(t, run, epochs));
        err = set_and_fill(flags, "rounds", text, run, error);
    }
    if (err == 0)
        err = check_codecs(t, flags, run, error);
    return err == 0 && t->init_path != NULL ? fix_init(t, flags, run, error) : err;
}

/* ---- Making the trainer ---- */

static void close_trainer(struct cmd_training *t)
{
    if (!t->has_trainer)
        return;
    sgd_trainer_close(&t->sgd);
    shard_close(&t->shard);
    t->has_trainer = false;
}

void cmd_training_share(struct cmd_training *t, struct cmd_training *of, uint32_t threads)
{
    assert(threads >= 1 && threads <= THREAD_POOL_MAX);
    t->of = of;
    of->shared = threads;
}

void cmd_training_set_thread(struct cmd_training *t, uint32_t thread)
{
    const struct cmd_training *of = t->of != NULL ? t->of : t;
    if (of->shared == 0)
        return;
    assert(thread < of->shared);
    t->sgd.config.scratch = of->scratch[thread];
}

/* Returns the configuration of the SGD trainer for a run. If the peer `t` shares the data, model
 * and scratch memory of another peer (t->of), the configuration points to those. */
static struct sgd_config sgd_config(struct cmd_training *t, const struct run *run)
{
    struct cmd_training *of = t->of != NULL ? t->of : t;
    const struct sgd_values *v = sgd_values(run);
    return (struct sgd_config){
        .model = &of->model,
        .train = &of->data.train,
        .test = &of->data.test,
        .shard = &t->shard,
        .scratch = of->scratch[0],
        .init = of->init,
        .seed = run->seed,
        .batch = v->batch,
        .threads = t->threads,
        .optimiser = {.kind = v->optimiser,
                      .momentum = v->momentum,
                      .beta2 = v->beta2,
                      .nesterov = v->nesterov,
                      .weight_decay = v->weight_decay,
                      .clip = v->clip / sqrt((double)run->min_peers * v->learners)},
        .momentum = momentum_kind_all[v->momentum_kind],
        .schedule = {.kind = v->schedule,
                     .lr = v->lr,
                     .warmup = v->warmup,
                     .rounds = run_full_rounds(run)},
        .label_smoothing = v->label_smoothing,
        .learners = v->learners,
        .learner_momentum = v->learner_momentum,
    };
}

/* Creates the model. If other peers share it, also creates scratch memory for each thread and one
 * table that assigns samples to peers. Returns 0, or a negative errno with a message in `error`. */
static int make_common(struct cmd_training *t, const struct run *run,
                       const struct shard_split *split, char error[RUN_ERROR_MAX])
{
    size_t longest =
        t->data.train.longest > t->data.test.longest ? t->data.train.longest : t->data.test.longest;
    int err = cmd_training_model(&t->model, run, error);
    if (err == 0)
        err = take_init(t, run, error);
    if (err < 0 || t->shared == 0)
        return err;
    assert(t->threads <= 1);
    for (uint32_t i = 0; i < t->shared; i++)
        if (sgd_scratch_open(&t->scratch[i], &t->model, sgd_values(run)->batch, 1, longest) < 0)
            return out_of_memory("the model's activations", error);
    if (shard_owners_open(&t->owners, &t->data.train, split, run->seed) < 0)
        return out_of_memory("the shards", error);
    return 0;
}

static void close_common(struct cmd_training *t)
{
    for (uint32_t i = 0; i < t->shared; i++)
        sgd_scratch_close(t->scratch[i]);
    if (t->owners != NULL)
        shard_owners_close(t->owners);
    free(t->init);
    model_close(&t->model);
    memset(t->scratch, 0, sizeof t->scratch);
    t->owners = NULL;
    t->init = NULL;
}

static int check_threads(const struct cmd_training *t, const struct run *run,
                         char error[RUN_ERROR_MAX])
{
    const struct sgd_values *v = sgd_values(run);
    uint32_t most = v->learners > 1 ? v->learners : v->batch;
    if (t->threads <= most)
        return 0;
    snprintf(error, RUN_ERROR_MAX,
             "--threads: found %" PRIu32 ", expected at most the value of %s, %" PRIu32, t->threads,
             v->learners > 1 ? "--learners" : "--batch", most);
    return -EINVAL;
}

/* Returns whether --partition, and not --shard, is the reason why the data could not be split.
 * --partition is the reason if it splits by a file, or if it splits by labels and the data set has
 * no labels. */
static bool is_partition_error(const struct shard_split *split, const struct dataset *set)
{
    return split->fall == SHARD_FILE || (shard_split_by_label(split) && set->labels == NULL);
}

/* Makes the model, the shard and the trainer. The data must have been read. Returns 0, or a
 * negative errno with a message in `error`. */
static int make(struct cmd_training *t, const struct run *run, char error[RUN_ERROR_MAX])
{
    char why[MODEL_ERROR_MAX];
    static_assert((int)DATA_ERROR_MAX <= (int)MODEL_ERROR_MAX, "one buffer for all");
    struct cmd_training *of = t->of != NULL ? t->of : t;
    struct shard_config shard = {.spec = t->shard_spec,
                                 .seed = run->seed,
                                 .peer = t->peer_key,
                                 .local_steps = run_steps_most(run),
                                 .post_local = run->post_local,
                                 .one_step_from = run_one_step_from(run)};
    int err = check_threads(t, run, error);
    if (err < 0)
        return err;
    err = shard_split_parse(&shard.split, sgd_values(run)->skew, why);
    if (err == 0 && of == t && (err = make_common(t, run, &shard.split, error)) < 0)
        return err;
    shard.owners = of->owners;
    if (err == 0)
        err = shard_open(&t->shard, &shard, &of->data.train, why);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--%s: %.300s",
                 is_partition_error(&shard.split, &of->data.train) ? "partition" : "shard",
                 err == -ENOMEM ? "out of memory" : why);
        return err;
    }
    struct sgd_config config = sgd_config(t, run);
    err = augment_parse(&config.augment, sgd_values(run)->augment, why);
    if (err == 0)
        err = sgd_trainer_init(&t->sgd, &config, why);
    if (err < 0) {
        shard_close(&t->shard);
        snprintf(error, RUN_ERROR_MAX, "%.300s", cmd_training_error_text(err, why));
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
        err = cmd_training_data(t, sgd_values(run)->data, run->seed, error);
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
    schema_close(&t->order);
    t->has_data = false;
}
