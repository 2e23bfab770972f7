/* peer/cmd/eval.c -- `hearsay eval MODEL --data SPEC`: a saved model on the held-out set.
 *
 * The file's metadata carry the run's canonical text (key "run"): it says what
 * the model is, what kind of data it was trained on and how that is
 * normalised. Only where the data lie has to be told. A file without, as
 * PyTorch writes it, is read with --model.
 */
#include "nn/data/data.h"
#include "nn/files/safetensors.h"
#include "nn/train/sgd_trainer.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/eval_logits.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/training.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/uv/metrics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The trainer gets memory for training batches of this size. Nothing is trained here, and
 * an evaluation takes the largest batch that fits in the same memory. */
enum { EVAL_BATCH = 64 };

/* clang-format off */
const struct option_row cmd_eval_rows[] = {
    {.name = "file", .kind = OPTION_OPERAND, .arg = "MODEL", .required = true,
     .help = "a model that a peer or hearsay train wrote: model.safetensors; or any such file, with --model"},
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "glyphs, KIND:PATH or a PATH alone; must be of the run's kind (default: glyphs for a run on glyphs)"},
    {.name = "model", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "what the file holds, in place of what its run says: for files written elsewhere"},
    {.name = "norm", .kind = OPTION_TEXT, .arg = "batch|group|layer", .help = "with --model: its norms (default batch)"},
    {.name = "logits", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "write the held-out set's logits there, in the samples' order: float32, little-endian, "
             "[rows][classes] and nothing else; a text has a row a byte"},
    CMD_ROW_THREADS,
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

/* All that an evaluation holds; cleaned up as a whole. */
struct evaluation
{
    struct run run;
    char data_spec[RUN_VALUE_MAX]; /* --data says this, with its kind; "": it was not given. */
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
    model_close(&e->model);
    free(e->x);
}

/* What the world could not give is 1, bad input is 2. */
static int exit_of(int err)
{
    return err == -ENOMEM || err == -EIO || err == -EAGAIN ? CMD_FAILED : CMD_USAGE;
}

/* ---- What the model is ------------------------------------------------ */

/* The run from the file's metadata. */
static int read_run(const struct options *o, const char *path, struct run *run)
{
    char why[DATA_ERROR_MAX], error[RUN_ERROR_MAX];
    struct safetensors_info info;
    int err = safetensors_info(path, &info, why);
    if (err != 0)
        return cmd_fail(o, exit_of(err), "%s", why);
    const char *text = safetensors_value(&info, "run");
    int code = CMD_OK;
    if (text == NULL)
        code = cmd_fail(o, CMD_USAGE,
                        "%s: no \"run\" among its metadata: say with --model what it holds", path);
    else if (run_from_text(run, &sgd_keys, text, strlen(text), error))
        code = cmd_fail(o, CMD_USAGE, "%s: %s", path, error);
    safetensors_info_close(&info);
    return code;
}

/* The run of --model, --norm and --data, the rest being defaults. */
static int make_run(const struct options *o, const struct evaluation *e, struct run *run)
{
    static const char *const names[] = {"model", "norm"};
    char error[RUN_ERROR_MAX];
    static struct run_flags flags = {.trainer = &sgd_keys};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (options_given(o, names[i])
            && run_flags_set(&flags, names[i], options_text(o, names[i]), error))
            return cmd_fail(o, CMD_USAGE, "%s", error);
    if (e->data_spec[0] && run_flags_set(&flags, "data", e->data_spec, error))
        return cmd_fail(o, CMD_USAGE, "%s", error);
    return run_from_flags(run, &flags, error) ? cmd_fail(o, CMD_USAGE, "%s", error) : CMD_OK;
}

/* --data, a path alone with its kind. */
static int read_data_spec(const struct options *o, struct evaluation *e)
{
    char error[OPTIONS_ERROR_MAX];
    const char *given = options_text(o, "data");
    if (given == NULL)
        return CMD_OK;
    int replaced = cmd_expand("data", given, e->data_spec, error);
    if (replaced < 0)
        return cmd_fail(o, CMD_USAGE, "--data: %s", error);
    if (replaced == 0
        && snprintf(e->data_spec, sizeof e->data_spec, "%s", given) >= (int)sizeof e->data_spec)
        return cmd_fail(o, CMD_USAGE, "--data: found %zu characters, expected fewer than %d",
                        strlen(given), RUN_VALUE_MAX);
    return CMD_OK;
}

static int read_what(const struct options *o, struct evaluation *e)
{
    const char *path = options_text(o, "file");
    if (file_is_directory(path))
        return cmd_fail(o, CMD_USAGE,
                        "%s is a directory, expected a file, such as %s/model.safetensors", path,
                        path);
    if (options_given(o, "norm") && !options_given(o, "model"))
        return cmd_fail(o, CMD_USAGE, "--norm: only with --model: the file's run says it");
    int code = read_data_spec(o, e);
    if (code != CMD_OK)
        return code;
    return options_given(o, "model") ? make_run(o, e, &e->run) : read_run(o, path, &e->run);
}

/* ---- Data, model, evaluation ------------------------------------------ */

/* The data named by --data, which must be of the run's kind. */
static int open_data(const struct options *o, struct evaluation *e)
{
    char kind[DATA_KIND_MAX], error[DATA_ERROR_MAX];
    struct cmd_progress_reading reading = {.out = stderr};
    const char *given = e->data_spec[0] ? e->data_spec : NULL;
    if (given == NULL && strcmp(sgd_values(&e->run)->data, "glyphs") != 0)
        return cmd_fail(o, CMD_USAGE, "--data is missing: the model's run is on %s",
                        kind_brief(sgd_values(&e->run)->data).text);
    if (given && data_kind(given, kind, error))
        return cmd_fail(o, CMD_USAGE, "--data: %s", error);
    if (given && !data_kind_agrees(kind, sgd_values(&e->run)->data))
        return cmd_fail(o, CMD_USAGE, "--data is %.100s, but the model's run has %s", given,
                        kind_brief(sgd_values(&e->run)->data).text);
    struct data_request request = {
        .spec = given ? given : sgd_values(&e->run)->data,
        .kind = data_kind_fixed(sgd_values(&e->run)->data) ? sgd_values(&e->run)->data : NULL,
        .seed = e->run.seed,
        .progress = cmd_progress_read,
        .self = &reading};
    int err = data_open(&e->data, &request, error);
    cmd_progress_read_end(&reading);
    if (err != 0)
        return cmd_fail(o, exit_of(err), "--data: %s", error);
    if (e->data.note[0] != '\0')
        fprintf(stderr, "--data: %s\n", e->data.note);
    e->has_data = true;
    return CMD_OK;
}

/* The run's model, with the parameters in the file. */
static int open_model(const struct options *o, const char *path, struct evaluation *e)
{
    char error[MODEL_ERROR_MAX], why[DATA_ERROR_MAX];
    int err = model_init(&e->model, sgd_values(&e->run)->model, sgd_values(&e->run)->norm,
                         &e->data.test.shape, error);
    if (err != 0)
        return cmd_fail(o, exit_of(err), "%s: %s", path, err == -ENOMEM ? "out of memory" : error);
    e->x = calloc(e->model.n_params, sizeof *e->x);
    if (e->x == NULL)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    err = safetensors_read(path, e->model.segments, e->model.n_segments, e->x, why);
    return err != 0 ? cmd_fail(o, exit_of(err), "%s", why) : CMD_OK;
}

/* The same code that peers evaluate with. A trainer wants a shard, which an
 * evaluation never draws from. */
static int evaluate(const struct options *o, struct evaluation *e)
{
    char error[MODEL_ERROR_MAX];
    struct shard_config shard = {.spec = {.mode = SHARD_OWN}, .local_steps = 1};
    int err = shard_open(&e->shard, &shard, &e->data.train, error);
    if (err != 0)
        return cmd_fail(o, CMD_FAILED, "%s", err == -ENOMEM ? "out of memory" : error);
    e->has_shard = true;
    static_assert((int)EVAL_BATCH >= (int)SGD_THREADS_MAX, "a thread has a sample");
    struct sgd_config config = {.model = &e->model,
                                .train = &e->data.train,
                                .test = &e->data.test,
                                .shard = &e->shard,
                                .batch = EVAL_BATCH,
                                .threads = (uint32_t)options_uint(o, "threads")};
    err = sgd_trainer_init(&e->trainer, &config, error);
    if (err != 0)
        return cmd_fail(o, CMD_FAILED, "%s", cmd_training_why(err, error));
    e->has_trainer = true;
    struct trainer face = sgd_trainer_face(&e->trainer);
    face.evaluate(face.self, e->x, 0, &e->report);
    return CMD_OK;
}

static int write_logits(const struct options *o, const struct evaluation *e)
{
    const char *path = options_text(o, "logits");
    int err = path != NULL ? cmd_eval_logits(path, &e->model, e->x, &e->data.test) : 0;
    return err < 0 ? cmd_fail(o, CMD_FAILED, "--logits %s: %s", path, strerror(-err)) : CMD_OK;
}

/* ---- Output ----------------------------------------------------------- */

static double bits(const struct evaluation *e)
{
    return e->report.loss / log(2);
}

/* What the samples are to the training set, by enum data_held_out. */
static const struct
{
    const char *json, *text;
} held_out[] = {[DATA_HELD_DRAWN] = {"drawn", "drawn apart from those for training"},
                [DATA_HELD_FILES] = {"files", "the files that --data has as held out"},
                [DATA_HELD_SHARE] = {"share", "left out where training had this same --data"}};

static int print_json(const struct options *o, const char *path, const struct evaluation *e)
{
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:o}", "file", path, "model",
                  sgd_values(&e->run)->model, "data", e->data.test.kind, "held_out",
                  held_out[e->data.held_out].json, "n_params", (json_int_t)e->model.n_params,
                  "samples", (json_int_t)e->report.n_samples, "accuracy", e->report.accuracy,
                  "loss", uv_metrics_number(e->report.loss));
    int err = j != NULL ? 0 : -1;
    if (err == 0 && e->model.data.form == DATA_TEXT)
        err = json_object_set_new(j, "bits_per_character", uv_metrics_number(bits(e)));
    if (err == 0)
        err = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(j);
    putchar('\n');
    return err != 0 ? cmd_fail(o, CMD_FAILED, "cannot write JSON (a path that is not UTF-8?)")
                    : CMD_OK;
}

static void print_text(const struct evaluation *e)
{
    char percent[CMD_PROGRESS_TEXT], number[CMD_PROGRESS_TEXT];
    printf("accuracy  %s\nloss      %s\n", cmd_progress_percent(percent, e->report.accuracy),
           cmd_progress_number(number, "%.6f", e->report.loss));
    bool is_text = e->model.data.form == DATA_TEXT;
    if (is_text)
        printf("bits      %s a character\n", cmd_progress_number(number, "%.4f", bits(e)));
    printf("%s %" PRIu64 " of %s: ", is_text ? "bytes    " : "samples  ", e->report.n_samples,
           kind_brief(e->data.test.kind).text);
    if (e->data.held_out == DATA_HELD_SHARE)
        printf("a share of %g of the files, ", e->data.share);
    printf("%s\nmodel     %s, %zu parameters\n", held_out[e->data.held_out].text,
           sgd_values(&e->run)->model, e->model.n_params);
}

static int evaluate_file(const struct options *o, struct evaluation *e)
{
    const char *path = options_text(o, "file");
    int code = read_what(o, e);
    code = code ? code : open_data(o, e);
    code = code ? code : open_model(o, path, e);
    code = code ? code : evaluate(o, e);
    code = code ? code : write_logits(o, e);
    if (code)
        return code;
    if (options_flag(o, "json"))
        code = print_json(o, path, e);
    else
        print_text(e);
    return code ? code : cmd_finish(o);
}

int cmd_eval(const struct options *o)
{
    static struct evaluation e;
    int code = evaluate_file(o, &e);
    evaluation_close(&e);
    return code;
}
