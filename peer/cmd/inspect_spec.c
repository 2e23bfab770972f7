/* peer/cmd/inspect_spec.c -- lists the tensors that a model of a given spec has for a given kind of
 * data. */
#include "nn/data/data.h"
#include "nn/math/number.h"
#include "peer/cmd/inspect.h"
#include "peer/cmd/progress.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the files of --data to find their full data kind. Called if the kind in `spec` does not
 * determine the shape of the samples. */
static int read_kind(const struct options *o, const char *spec, char kind[DATA_KIND_MAX])
{
    /* `data` is static, because struct data is too large for the stack. */
    static struct data data;
    char why[DATA_ERROR_MAX];
    struct cmd_progress_reading reading = {.out = stderr};
    struct data_request request = {
        .spec = spec, .seed = 1, .progress = cmd_progress_read, .self = &reading};
    int err = data_open(&data, &request, why);
    cmd_progress_read_end(&reading);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "--data: %s", why);
    memcpy(kind, data.test.kind, DATA_KIND_MAX);
    data_close(&data);
    return CMD_OK;
}

/* Finds the data kind of --data. Reads the files if the shape of the samples is not known
 * otherwise. Returns CMD_OK, or an exit code after a message on stderr. */
static int find_kind(const struct options *o, char kind[DATA_KIND_MAX])
{
    static char made[RUN_VALUE_MAX];
    char why[OPTIONS_ERROR_MAX], error[DATA_ERROR_MAX];
    const char *spec = options_text(o, "data");
    int replaced = cmd_expand("data", spec, made, why);
    if (replaced < 0)
        return cmd_fail(o, CMD_USAGE, "--data: %s", why);
    if (replaced > 0)
        spec = made;
    if (data_kind(spec, kind, error) < 0)
        return cmd_fail(o, CMD_USAGE, "--data: %s", error);
    return data_kind_fixed(kind) ? CMD_OK : read_kind(o, spec, kind);
}

/* Returns the i-th data kind to try for a model if --data is not given. The first kind is the
 * default of a run. The last kind is a table, for a multi-layer perceptron such as "mlp:4-16-3":
 * its number of features is the first number of the model spec, and its number of classes the last.
 * Returns NULL if there are no more kinds. */
static const char *default_kind(const char *spec, size_t i, char made[DATA_KIND_MAX])
{
    static const char *const kinds[] = {"glyphs", "cifar10", "text/128"};
    static const size_t n = sizeof kinds / sizeof *kinds;
    const char *colon = strchr(spec, ':'), *last = strrchr(spec, '-');
    uint64_t features, classes;
    if (i < n)
        return kinds[i];
    if (i > n || colon == NULL || last == NULL
        || number_digits(colon + 1, DATA_FEATURES_MAX, &features) == NULL
        || number_digits(last + 1, DATA_CLASSES_MAX, &classes) == NULL)
        return NULL;
    snprintf(made, DATA_KIND_MAX, "csv/%lux%lu/0", (unsigned long)features, (unsigned long)classes);
    return made;
}

static int build(struct cmd_inspect *in, const char *spec, const char *kind, enum model_norm norm,
                 char why[MODEL_ERROR_MAX])
{
    struct data_shape shape;
    int err = data_shape(kind, &shape);
    snprintf(in->kind, sizeof in->kind, "%s", kind);
    if (err == 0)
        err = model_init(&in->model, spec, norm, &shape, why);
    else
        snprintf(why, MODEL_ERROR_MAX, "the input shape is not known; give --data");
    in->has_model = err == 0;
    return err;
}

static int build_default(struct cmd_inspect *in, const char *spec, enum model_norm norm,
                         char why[MODEL_ERROR_MAX])
{
    char made[DATA_KIND_MAX], later[MODEL_ERROR_MAX];
    const char *kind = default_kind(spec, 0, made);
    int err = build(in, spec, kind, norm, why);
    for (size_t i = 1; err == -EINVAL && (kind = default_kind(spec, i, made)) != NULL; i++)
        err = build(in, spec, kind, norm, later);
    return err;
}

static int list_tensors(struct cmd_inspect *in, const struct options *o)
{
    for (size_t i = 0; i < in->model.n_segments; i++) {
        const struct segment *s = &in->model.segments[i];
        struct cmd_inspect_tensor *t = cmd_inspect_add(in);
        if (t == NULL)
            return cmd_fail(o, CMD_FAILED, "out of memory");
        snprintf(t->name, sizeof t->name, "%s", s->name);
        t->n_dims = s->n_dims;
        for (uint32_t k = 0; k < s->n_dims; k++)
            t->dims[k] = s->dims[k];
        t->n = s->n;
        t->n_bytes = s->n * sizeof(float);
        snprintf(t->dtype, sizeof t->dtype, "F32");
        t->segment = s;
        in->n_floats += s->n;
    }
    return CMD_OK;
}

int cmd_inspect_spec(struct cmd_inspect *in, const struct options *o, const char *spec)
{
    char why[MODEL_ERROR_MAX], kind[DATA_KIND_MAX];
    int norm = number_choice("batch|group|layer", options_text(o, "norm"));
    /* The parser of options has already refused any value of --norm except these three words. */
    assert(norm >= 0);
    if (options_given(o, "norm") && !model_has_norm(spec))
        return cmd_fail(
            o, CMD_USAGE,
            "--norm: only with a model that has normalisation layers, such as resnet:20");
    int code = options_given(o, "data") ? find_kind(o, kind) : CMD_OK;
    if (code != CMD_OK)
        return code;
    int err = options_given(o, "data") ? build(in, spec, kind, (enum model_norm)norm, why)
                                       : build_default(in, spec, (enum model_norm)norm, why);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", err == -ENOMEM ? "out of memory" : why);
    return list_tensors(in, o);
}
