/* peer/cmd/drift_files.c -- `hearsay drift FILE FILE ...`: computes the exact consensus distance
 * of model files. */
#include "gossip/wire/wire.h"
#include "nn/files/safetensors.h"
#include "peer/cmd/drift.h"
#include "peer/cmd/run_parse.h"
#include "peer/cmd/training.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Model files that are compared. All must have the model that the metadata of the first file
 * describe. */
struct files
{
    const struct options *o;
    struct model model;
    bool has_model;
    float **x; /* Parameters from each of the `n` files: arrays of model.n_params floats. */
    size_t n;
    struct consensus exact;
    struct drift_compare look;
};

/* Refuses a path that is no model file. Users often give a peer's address here, so the error
 * message then suggests --bootstrap. */
static int check_path(const struct options *o, const char *path)
{
    if (access(path, F_OK) != 0 && wire_address_ok(path))
        return cmd_fail(
            o, CMD_USAGE,
            "%s: found an address, expected a model file; for a peer, give --bootstrap %s", path,
            path);
    if (file_is_directory(path))
        return cmd_fail(o, CMD_USAGE,
                        "%s is a directory, expected a file, such as %s/model.safetensors", path,
                        path);
    return CMD_OK;
}

/* Reads the run description from the metadata of the first file, and builds its model. Returns
 * CMD_OK, or an exit code after a message on stderr. */
static int read_model(struct files *f, const char *path)
{
    char why[FILE_ERROR_MAX], error[RUN_ERROR_MAX];
    struct safetensors_info info;
    struct run run;
    int err = safetensors_info(path, &info, why);
    if (err != 0)
        return cmd_fail(f->o, cmd_exit_of(err), "%s", why);
    const char *text = safetensors_value(&info, "run");
    int code = CMD_OK;
    if (text == NULL)
        code =
            cmd_fail(f->o, CMD_USAGE,
                     "%s: found no \"run\" in its metadata, expected a model file of a peer", path);
    else if (cmd_run_parse(&run, text, strlen(text), error) == 0 && cmd_run_is_layout(&run))
        code = cmd_fail(f->o, CMD_USAGE,
                        "%s: the model belongs to a program that uses the library, and only that "
                        "program knows its tensors; use drift --exact while the run is active",
                        path);
    else if (cmd_run_parse(&run, text, strlen(text), error) != 0
             || cmd_training_model(&f->model, &run, error) < 0)
        code = cmd_fail(f->o, CMD_USAGE, "%s: %s", path, error);
    else
        f->has_model = true;
    safetensors_info_close(&info);
    return code;
}

static int read_files(struct files *f)
{
    char why[FILE_ERROR_MAX];
    const struct options *o = f->o;
    f->x = calloc(o->n_operands, sizeof *f->x);
    for (uint32_t i = 0; i < o->n_operands && f->x != NULL; i++) {
        const char *path = o->operand[i];
        int code = check_path(o, path);
        if (code == CMD_OK && i == 0)
            code = read_model(f, path);
        if (code != CMD_OK)
            return code;
        f->x[i] = malloc(f->model.n_params * sizeof *f->x[i]);
        if (f->x[i] == NULL)
            break;
        int err = safetensors_read(path, f->model.segments, f->model.n_segments, f->x[i], why);
        if (err != 0)
            return cmd_fail(o, cmd_exit_of(err), "%s", why);
        f->n++;
    }
    return f->n == o->n_operands ? CMD_OK : cmd_fail(o, CMD_FAILED, "out of memory for the models");
}

static const float *model_of(void *self, size_t i)
{
    return ((struct files *)self)->x[i];
}

static int compare(struct files *f)
{
    const struct model *m = &f->model;
    size_t n_trained = segments_trained(m->segments, m->n_segments);
    int err = consensus_measure(&f->exact, f->n, n_trained, m->n_params, model_of, f);
    if (err == 0)
        err = drift_compare_vectors(&f->look, m->segments, m->n_segments,
                                    (const float *const *)f->x, f->n, options_flag(f->o, "layers"));
    f->look.files = true;
    for (size_t i = 0; i < f->n; i++)
        f->look.name[i] = f->o->operand[i];
    return err == 0 ? CMD_OK : cmd_fail(f->o, CMD_FAILED, "out of memory to compare the models");
}

int drift_files(const struct options *o)
{
    struct files f = {.o = o, .exact = consensus_none};
    if (o->n_operands < 2)
        return cmd_fail(o, CMD_USAGE,
                        "found one model, expected two or more: a single model has no drift");
    int code = read_files(&f);
    if (code == CMD_OK)
        code = compare(&f);
    if (code == CMD_OK && options_flag(o, "json"))
        drift_print_look_json(&f.look, &f.exact, options_flag(o, "layers"));
    else if (code == CMD_OK)
        drift_print_look(&f.look, &f.exact, options_flag(o, "layers"));
    for (uint32_t i = 0; f.x != NULL && i < o->n_operands; i++)
        free(f.x[i]);
    free(f.x);
    drift_comparison_close(&f.look);
    if (f.has_model)
        model_close(&f.model);
    int flushed = cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
