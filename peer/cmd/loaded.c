/* peer/cmd/loaded.c -- reads a saved model: its run description, its data and its parameters. */
#include "peer/cmd/loaded.h"

#include "nn/files/safetensors.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/run_parse.h"
#include "peer/run_log/columns.h"
#include "peer/sgd/sgd_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the class names from the metadata of the model file. Names that do not match the hash in
 * the run description are ignored with a warning. */
static void read_classes(const struct options *o, const char *path,
                         const struct safetensors_info *info, struct cmd_loaded *l)
{
    struct kind_rows kind;
    const char *text = safetensors_value(info, "classes");
    if (text == NULL)
        return;
    if (kind_rows_parse(sgd_values(&l->run)->data, "csv", &kind))
        l->classes = labels_split(&kind, text);
    if (l->classes == NULL)
        cmd_fail(o, CMD_OK, "warning: %s: its class names do not match its run and are ignored",
                 path);
}

/* Reads the identity of the training files from the metadata: their hash, and the share of samples
 * that was held out. If the value is invalid, the result is all zeros. */
static void read_trained(const struct safetensors_info *info, struct data_trained *t)
{
    const char *text = safetensors_value(info, "trained_on");
    char *end = NULL;
    *t = (struct data_trained){0};
    if (text == NULL || strspn(text, "0123456789abcdef") != 16 || text[16] != ' ')
        return;
    double share = strtod(text + 17, &end);
    if (*end == '\0' && end > text + 17 && share >= 0 && share < 1)
        *t = (struct data_trained){strtoull(text, NULL, 16), share};
}

/* Reads the column names from the metadata of the model file. Names that do not match the run
 * description are ignored with a warning. Returns CMD_OK, or CMD_FAILED after a message on
 * stderr. */
static int read_columns(const struct options *o, const char *path,
                        const struct safetensors_info *info, struct cmd_loaded *l)
{
    struct kind_rows kind;
    int err = diary_columns_read(info, &l->columns);
    if (err == -ENOMEM)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    bool rows = kind_rows_parse(sgd_values(&l->run)->data, "csv", &kind);
    if (err == 0
        && (!l->columns.named || (rows && kind.named && l->columns.hash == kind.names_hash)))
        return CMD_OK;
    schema_close(&l->columns);
    cmd_fail(o, CMD_OK,
             "warning: %s: its column names do not match those of its run and are ignored", path);
    return CMD_OK;
}

/* Reads from the metadata of the model file: the run description, the names of classes and columns,
 * and the identity of the training files. Returns CMD_OK, or an exit code after a message on
 * stderr. */
static int read_run(const struct options *o, const char *path, struct cmd_loaded *l)
{
    char why[DATA_ERROR_MAX], error[RUN_ERROR_MAX];
    struct safetensors_info info;
    int err = safetensors_info(path, &info, why);
    if (err != 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", why);
    const char *text = safetensors_value(&info, "run");
    int code = CMD_OK;
    if (text == NULL)
        code = cmd_fail(o, CMD_USAGE, "%s: the metadata have no \"run\"; give --model SPEC", path);
    else if (cmd_run_parse(&l->run, text, strlen(text), error))
        code = cmd_fail(o, CMD_USAGE, "%s: %s", path, error);
    else if (cmd_run_is_layout(&l->run))
        code = cmd_fail(o, CMD_USAGE,
                        "%s: the model belongs to a program that uses the library; only that "
                        "program can run it (if it is a hearsay model, give --model SPEC)",
                        path);
    else {
        read_classes(o, path, &info, l);
        code = read_columns(o, path, &info, l);
    }
    read_trained(&info, &l->trained);
    safetensors_info_close(&info);
    return code;
}

/* Returns true if the option `name` was given. Returns false if the command does not have that
 * option: commands for models without normalisation layers have no --norm. */
static bool given(const struct options *o, const char *name)
{
    const struct option_row *row = o->command->rows;
    while (row->name != NULL && strcmp(row->name, name) != 0)
        row++;
    return row->name != NULL && options_given(o, name);
}

/* Builds a run description from --model, --norm and --data. Without --data, the data kind is
 * `kind`. All other run keys have their defaults. Returns CMD_OK, or CMD_USAGE after a message on
 * stderr. */
static int make_run(const struct options *o, const struct cmd_loaded *l, const char *kind,
                    struct run *run)
{
    static const char *const names[] = {"model", "norm"};
    char error[RUN_ERROR_MAX];
    static struct run_flags flags = {.trainer = &sgd_keys};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (given(o, names[i]) && run_flags_set(&flags, names[i], options_text(o, names[i]), error))
            return cmd_fail(o, CMD_USAGE, "%s", error);
    const char *data = l->data_spec[0] ? l->data_spec : kind;
    if (data != NULL && run_flags_set(&flags, "data", data, error))
        return cmd_fail(o, CMD_USAGE, "%s", error);
    return run_from_flags(run, &flags, error) ? cmd_fail(o, CMD_USAGE, "%s", error) : CMD_OK;
}

/* Reads --data into l->data_spec. If it is only a path, adds the data kind. Returns CMD_OK, or
 * CMD_USAGE after a message on stderr. */
static int read_data_spec(const struct options *o, struct cmd_loaded *l)
{
    char error[OPTIONS_ERROR_MAX];
    const char *given = options_text(o, "data");
    if (given == NULL)
        return CMD_OK;
    int replaced = cmd_expand("data", given, l->data_spec, error);
    if (replaced < 0)
        return cmd_fail(o, CMD_USAGE, "--data: %s", error);
    if (replaced == 0
        && snprintf(l->data_spec, sizeof l->data_spec, "%s", given) >= (int)sizeof l->data_spec)
        return cmd_fail(o, CMD_USAGE, "--data: found %zu characters, expected fewer than %d",
                        strlen(given), RUN_VALUE_MAX);
    return CMD_OK;
}

int cmd_loaded_run(struct cmd_loaded *l, const struct options *o, const char *kind)
{
    const char *path = options_text(o, "file");
    if (file_is_directory(path))
        return cmd_fail(o, CMD_USAGE,
                        "%s is a directory, expected a file, such as %s/model.safetensors", path,
                        path);
    if (given(o, "norm") && !options_given(o, "model"))
        return cmd_fail(o, CMD_USAGE,
                        "--norm: only allowed with --model, because the model file already names "
                        "its normalisation layers");
    int code = read_data_spec(o, l);
    if (code != CMD_OK)
        return code;
    return options_given(o, "model") ? make_run(o, l, kind, &l->run) : read_run(o, path, l);
}

int cmd_loaded_data(struct cmd_loaded *l, const struct options *o)
{
    char kind[DATA_KIND_MAX], error[DATA_ERROR_MAX];
    struct cmd_progress_reading reading = {.out = stderr};
    const char *given = l->data_spec[0] ? l->data_spec : NULL;
    if (given == NULL && strcmp(sgd_values(&l->run)->data, "glyphs") != 0)
        return cmd_fail(o, CMD_USAGE, "--data is missing: the model was trained on %s",
                        kind_brief(sgd_values(&l->run)->data).text);
    if (given && data_kind(given, kind, error))
        return cmd_fail(o, CMD_USAGE, "--data: %s", error);
    if (given && !data_kind_agrees(kind, sgd_values(&l->run)->data))
        return cmd_fail(o, CMD_USAGE, "--data is %.100s, but the model's run has %s", given,
                        kind_brief(sgd_values(&l->run)->data).text);
    struct data_request request = {
        .spec = given ? given : sgd_values(&l->run)->data,
        .kind = data_kind_fixed(sgd_values(&l->run)->data) ? sgd_values(&l->run)->data : NULL,
        .seed = l->run.seed,
        .names = l->classes,
        .trained = l->trained.hash != 0 ? &l->trained : NULL,
        .schema = &l->columns,
        .bare = l->bare && data_kind_fixed(sgd_values(&l->run)->data),
        .progress = cmd_progress_read,
        .self = &reading};
    int err = data_open(&l->data, &request, error);
    cmd_progress_read_end(&reading);
    if (err != 0)
        return cmd_fail(o, cmd_exit_of(err), "--data: %s", error);
    if (l->data.note[0] != '\0')
        fprintf(stderr, "--data: %s\n", l->data.note);
    l->has_data = true;
    return CMD_OK;
}

/* Finds the shape of the samples that the model needs. If the data were read, they have this shape.
 * Otherwise the data kind must determine the shape. Returns CMD_OK, or CMD_USAGE after a message on
 * stderr. */
static int find_shape(const struct options *o, const struct cmd_loaded *l, struct data_shape *shape)
{
    const char *kind = sgd_values(&l->run)->data;
    if (l->has_data)
        *shape = l->data.test.shape;
    else if (data_shape(kind, shape) != 0)
        return cmd_fail(
            o, CMD_USAGE,
            "--data: '%.60s' does not give the number of features and classes, expected a "
            "kind with its sizes, such as text/128 or csv/64x10/0",
            kind);
    return CMD_OK;
}

int cmd_loaded_model(struct cmd_loaded *l, const struct options *o)
{
    char error[MODEL_ERROR_MAX], why[DATA_ERROR_MAX];
    const char *path = options_text(o, "file");
    struct data_shape shape;
    int code = find_shape(o, l, &shape);
    if (code != CMD_OK)
        return code;
    int err =
        model_init(&l->model, sgd_values(&l->run)->model, sgd_values(&l->run)->norm, &shape, error);
    if (err != 0)
        return cmd_fail(o, cmd_exit_of(err), "%s: %s", path,
                        err == -ENOMEM ? "out of memory" : error);
    l->x = calloc(l->model.n_params, sizeof *l->x);
    if (l->x == NULL)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    err = safetensors_read(path, l->model.segments, l->model.n_segments, l->x, why);
    return err != 0 ? cmd_fail(o, cmd_exit_of(err), "%s", why) : CMD_OK;
}

void cmd_loaded_close(struct cmd_loaded *l)
{
    if (l->has_data)
        data_close(&l->data);
    labels_close(l->classes);
    schema_close(&l->columns);
    model_close(&l->model);
    free(l->x);
}
