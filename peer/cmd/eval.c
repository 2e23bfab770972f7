/* peer/cmd/eval.c -- `hearsay eval MODEL --data SPEC`: evaluates a saved model on the held-out
 * set.
 *
 * The metadata of the model file describe the model (peer/cmd/loaded.h).
 */
#include "nn/data/data.h"
#include "nn/files/safetensors.h"
#include "nn/math/number.h"
#include "nn/train/sgd_trainer.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/eval_logits.h"
#include "peer/cmd/files.h"
#include "peer/cmd/loaded.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/training.h"
#include "peer/node/step/divergence.h"
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

/* Batch size for which the trainer allocates memory. The command does not train, and evaluates with
 * the largest batch that fits into this memory. */
enum { EVAL_BATCH = 64 };

/* clang-format off */
const struct option_row cmd_eval_rows[] = {
    CMD_ROW_MODEL_FILE,
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "data to evaluate on, of the same kind as in training (default: glyphs for a run on glyphs). Evaluates the held-out files that SPEC names. Otherwise evaluates the held-out share of the training files, or all rows of other files"},
    CMD_ROW_MODEL_SPEC,
    CMD_ROW_MODEL_NORM,
    {.name = "logits", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "write the logits of the evaluated samples to this file, in their order: float32, little-endian, [rows][classes]; for text, one row per byte"},
    CMD_ROW_THREADS,
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

/* State of `hearsay eval`. evaluation_close() frees everything in it. */
struct evaluation
{
    struct cmd_loaded loaded;
    struct shard shard;
    struct sgd_trainer trainer;
    bool has_shard, has_trainer;
    struct trainer_report report;
};

static void evaluation_close(struct evaluation *e)
{
    if (e->has_trainer)
        sgd_trainer_close(&e->trainer);
    if (e->has_shard)
        shard_close(&e->shard);
    cmd_loaded_close(&e->loaded);
}

/* ---- Reading data and model, and evaluating ---- */

/* Evaluates the model with the same code as a peer. The trainer requires a training set and a
 * shard, but the evaluation uses no samples from them. */
static int evaluate(const struct options *o, struct evaluation *e)
{
    char error[MODEL_ERROR_MAX];
    struct shard_config shard = {.spec = {.mode = SHARD_OWN}, .local_steps = 1};
    const struct data *d = &e->loaded.data;
    const struct dataset *train = d->train.n > 0 ? &d->train : &d->test;
    int err = shard_open(&e->shard, &shard, train, error);
    if (err != 0)
        return cmd_fail(o, CMD_FAILED, "%s", err == -ENOMEM ? "out of memory" : error);
    e->has_shard = true;
    static_assert((int)EVAL_BATCH >= (int)SGD_THREADS_MAX, "each thread has at least one sample");
    struct sgd_config config = {.model = &e->loaded.model,
                                .train = train,
                                .test = &e->loaded.data.test,
                                .shard = &e->shard,
                                .batch = EVAL_BATCH,
                                .threads = (uint32_t)options_uint(o, "threads")};
    err = sgd_trainer_init(&e->trainer, &config, error);
    if (err != 0)
        return cmd_fail(o, CMD_FAILED, "%s", cmd_training_error_text(err, error));
    e->has_trainer = true;
    struct trainer face = sgd_trainer_face(&e->trainer);
    face.evaluate(face.self, e->loaded.x, 0, &e->report);
    return CMD_OK;
}

static int write_logits(const struct options *o, const struct evaluation *e)
{
    const char *path = options_text(o, "logits");
    int err = path != NULL
                  ? cmd_eval_logits(path, &e->loaded.model, e->loaded.x, &e->loaded.data.test)
                  : 0;
    return err < 0 ? cmd_cannot_write(o, "logits", path, err) : CMD_OK;
}

/* ---- Printing the result ---- */

static double bits(const struct evaluation *e)
{
    return e->report.loss / log(2);
}

/* Texts that say whether the evaluated samples were held out of training, indexed by enum
 * data_held_out. */
static const struct
{
    const char *json, *text;
} held_out[] = {
    [DATA_HELD_DRAWN] = {"drawn", "generated separately from the training samples"},
    [DATA_HELD_FILES] = {"files", "the held-out files that --data names"},
    [DATA_HELD_SHARE] = {"share", "held out of training if training had the same --data"},
    [DATA_HELD_OTHER] = {"other",
                         "all samples of --data, because its files are not the training files of "
                         "the peer that wrote the model"},
    [DATA_HELD_NONE] = {"none", "all samples of --data, on which the model was trained"}};

/* Returns the text that says whether the evaluated samples were held out of training. This is
 * certain if the model file names the same training files and the same held-out share as --data.
 * Otherwise the text depends on how the samples were chosen. */
static const char *held_out_text(const struct cmd_loaded *l)
{
    return l->data.held_out == DATA_HELD_SHARE && l->trained.hash == l->data.hash
                   && fabs(l->trained.share - l->data.share) < 1e-9
               ? "held out when the model was trained on these files"
               : held_out[l->data.held_out].text;
}

static int print_json(const struct options *o, const char *path, const struct evaluation *e)
{
    json_t *j = json_pack(
        "{s:o, s:s, s:s, s:s, s:I, s:I, s:f, s:o, s:o}", "file", uv_metrics_text(path), "model",
        sgd_values(&e->loaded.run)->model, "data", e->loaded.data.test.kind, "held_out",
        held_out[e->loaded.data.held_out].json, "n_params", (json_int_t)e->loaded.model.n_params,
        "samples", (json_int_t)e->report.n_samples, "accuracy", e->report.accuracy, "majority",
        uv_metrics_number(e->report.majority > 0 ? e->report.majority : (double)NAN), "loss",
        uv_metrics_number(e->report.loss));
    int err = j != NULL ? 0 : -1;
    if (err == 0 && e->loaded.model.data.form == DATA_TEXT)
        err = json_object_set_new(j, "bits_per_character", uv_metrics_number(bits(e)));
    if (err == 0)
        err = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(j);
    putchar('\n');
    return err != 0 ? cmd_fail(o, CMD_FAILED, "cannot write JSON") : CMD_OK;
}

static void print_text(const struct evaluation *e)
{
    char percent[CMD_PROGRESS_TEXT], number[CMD_PROGRESS_TEXT];
    printf("accuracy  %s\nloss      %s\n", cmd_progress_percent(percent, e->report.accuracy),
           isfinite(e->report.loss) ? cmd_progress_number(number, "%.6f", e->report.loss)
                                    : number_said(e->report.loss, number));
    bool is_text = e->loaded.model.data.form == DATA_TEXT;
    if (e->report.majority > 0)
        printf("majority  %s of the samples have the most frequent label\n",
               cmd_progress_percent(percent, e->report.majority));
    if (is_text)
        printf("bits      %s a character\n", cmd_progress_number(number, "%.4f", bits(e)));
    printf("%s %" PRIu64 " of %s: ", is_text ? "bytes    " : "samples  ", e->report.n_samples,
           kind_brief(e->loaded.data.test.kind).text);
    if (e->loaded.data.held_out == DATA_HELD_SHARE)
        printf("a share of %g of the files, ", e->loaded.data.share);
    printf("%s\nmodel     %s, %zu parameters\n", held_out_text(&e->loaded),
           sgd_values(&e->loaded.run)->model, e->loaded.model.n_params);
}

static void warn_majority(const struct options *o, const struct evaluation *e)
{
    char why[DIVERGENCE_TEXT];
    if (divergence_majority(&e->report, why))
        cmd_fail(o, CMD_OK, "warning: the model is no better than guessing: %s", why);
}

/* Runs the command: reads the run, the data and the model, evaluates the model, and prints the
 * result. Returns the exit code. */
static int evaluate_file(const struct options *o, struct evaluation *e)
{
    const char *path = options_text(o, "file");
    int code = cmd_loaded_run(&e->loaded, o, NULL);
    code = code ? code : cmd_loaded_data(&e->loaded, o);
    code = code ? code : cmd_loaded_model(&e->loaded, o);
    code = code ? code : evaluate(o, e);
    code = code ? code : write_logits(o, e);
    if (code)
        return code;
    if (options_flag(o, "json"))
        code = print_json(o, path, e);
    else
        print_text(e);
    warn_majority(o, e);
    return code ? code : cmd_finish(o);
}

int cmd_eval(const struct options *o)
{
    static struct evaluation e;
    int code = evaluate_file(o, &e);
    evaluation_close(&e);
    return code;
}
