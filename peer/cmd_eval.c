/* peer/cmd_eval.c -- `hearsay eval MODEL --data SPEC`: a saved model on the held-out set.
 *
 * The file's metadata carry the run's canonical text (key "run"): it says what
 * the model is, what kind of data it was trained on and how that is
 * normalised. Only where the data lie has to be told.
 */
#include "nn/data.h"
#include "nn/safetensors.h"
#include "nn/sgd_trainer.h"
#include "peer/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVAL_BATCH = 256 };

const struct option_row cmd_eval_rows[] = {
    {.name = "file", .kind = OPTION_OPERAND, .arg = "MODEL", .required = true,
     .help = "a model that a peer wrote: model.safetensors"},
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "glyphs, mnist:DIR or cifar10:DIR; must be of the run's kind (default: glyphs for a run on glyphs)"},
    CMD_ROW_JSON,
    {.name = NULL},
};

/* All that an evaluation holds; cleaned up as a whole. */
struct evaluation
{
    struct run run;
    struct model model;
    struct data data;
    struct shard shard;
    struct sgd_trainer trainer;
    bool has_data, has_shard, has_trainer;
    float *x;
    struct trainer_report report;
};

static void evaluation_close(struct evaluation *e)
{
    if (e->has_trainer)
        sgd_trainer_close(&e->trainer);
    if (e->has_shard)
        shard_close(&e->shard);
    if (e->has_data)
        data_close(&e->data);
    free(e->x);
}

/* What the world could not give is 1, bad input is 2. */
static int exit_of(int r)
{
    return r == -ENOMEM || r == -EIO ? CMD_FAILED : CMD_USAGE;
}

/* The run from the file's metadata. */
static int read_run(const struct options *o, const char *path, struct run *run)
{
    char why[DATA_ERROR_MAX], error[RUN_ERROR_MAX];
    struct safetensors_info info;
    int r = safetensors_info(path, &info, why);
    if (r)
        return cmd_fail(o, exit_of(r), "%s", why);
    const char *text = safetensors_value(&info, "run");
    int code = CMD_OK;
    if (!text)
        code = cmd_fail(o, CMD_USAGE, "%s: no \"run\" among its metadata, expected a model that a peer wrote", path);
    else if (run_from_text(run, text, strlen(text), error))
        code = cmd_fail(o, CMD_USAGE, "%s: %s", path, error);
    safetensors_info_close(&info);
    return code;
}

/* The data named by --data, which must be of the run's kind. */
static int open_data(const struct options *o, struct evaluation *e)
{
    char kind[DATA_KIND_MAX], error[DATA_ERROR_MAX];
    const char *given = options_text(o, "data");
    const char *spec = given ? given : e->run.data; /* Enough where no directory is needed. */
    if (data_kind(spec, kind, error))
        return given ? cmd_fail(o, CMD_USAGE, "--%s", error)
                     : cmd_fail(o, CMD_USAGE, "--data is missing: the model's run is on %s", e->run.data);
    if (strcmp(kind, e->run.data) != 0)
        return cmd_fail(o, CMD_USAGE, "--data is %.100s, but the model's run has %s",
                        spec, e->run.data);
    int r = data_open(&e->data, spec, e->run.seed, error);
    if (r)
        return cmd_fail(o, exit_of(r), "%s", error);
    e->has_data = true;
    return CMD_OK;
}

/* The run's model, with the parameters in the file. */
static int open_model(const struct options *o, const char *path, struct evaluation *e)
{
    char error[MODEL_ERROR_MAX], why[DATA_ERROR_MAX];
    const struct dataset *set = &e->data.test;
    struct shape in = {set->channels, set->height, set->width};
    if (model_init(&e->model, e->run.model, in, set->n_classes, error))
        return cmd_fail(o, CMD_USAGE, "%s: %s", path, error);
    e->x = calloc(e->model.n_params, sizeof *e->x);
    if (!e->x)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    int r = safetensors_read(path, e->model.segments, e->model.n_segments, e->x, why);
    return r ? cmd_fail(o, exit_of(r), "%s", why) : CMD_OK;
}

/* The same code that peers evaluate with. A trainer wants a shard, which an
 * evaluation never draws from. */
static int evaluate(const struct options *o, struct evaluation *e)
{
    char error[MODEL_ERROR_MAX];
    struct shard_config shard = {.spec = {.mode = SHARD_OWN}, .local_steps = 1};
    int r = shard_open(&e->shard, &shard, &e->data.train, error);
    if (r)
        return cmd_fail(o, CMD_FAILED, "%s", r == -ENOMEM ? "out of memory" : error);
    e->has_shard = true;
    struct sgd_config config = {.model = &e->model, .train = &e->data.train,
                                .test = &e->data.test, .shard = &e->shard,
                                .batch = EVAL_BATCH};
    r = sgd_trainer_init(&e->trainer, &config, error);
    if (r)
        return cmd_fail(o, CMD_FAILED, "%s", r == -ENOMEM ? "out of memory" : error);
    e->has_trainer = true;
    struct trainer face = sgd_trainer_face(&e->trainer);
    face.evaluate(face.self, e->x, 0, &e->report);
    return CMD_OK;
}

static int print_json(const struct options *o, const char *path, const struct evaluation *e)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:I, s:f}", "file", path, "model", e->run.model,
                          "data", e->run.data, "n_params", (json_int_t)e->model.n_params,
                          "samples", (json_int_t)e->report.n_samples,
                          "accuracy", e->report.accuracy);
    /* JSON has no infinity, and an absurd model has no finite loss. */
    json_t *loss = isfinite(e->report.loss) ? json_real(e->report.loss) : json_null();
    int r = j ? json_object_set_new(j, "loss", loss) : -1;
    r = r ? r : json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(j);
    putchar('\n');
    return r ? cmd_fail(o, CMD_FAILED, "cannot write JSON (a path that is not UTF-8?)") : CMD_OK;
}

static int evaluate_file(const struct options *o, struct evaluation *e)
{
    const char *path = options_text(o, "file");
    int code = read_run(o, path, &e->run);
    code = code ? code : open_data(o, e);
    code = code ? code : open_model(o, path, e);
    code = code ? code : evaluate(o, e);
    if (code)
        return code;
    if (options_flag(o, "json")) {
        code = print_json(o, path, e);
        return code ? code : cmd_finish(o);
    }
    printf("accuracy  %.4f\nloss      %.6f\nsamples   %" PRIu64 " of %s, held out\nmodel     %s, %zu parameters\n",
           e->report.accuracy, e->report.loss, e->report.n_samples, e->run.data,
           e->run.model, e->model.n_params);
    return cmd_finish(o);
}

int cmd_eval(const struct options *o)
{
    static struct evaluation e;
    int code = evaluate_file(o, &e);
    evaluation_close(&e);
    return code;
}
