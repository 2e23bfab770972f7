/* peer/cmd/inspect_file.c -- reads the tensors of a model file, and the run description in its
 * metadata. */
#include "nn/files/file.h"
#include "peer/cmd/inspect.h"
#include "peer/cmd/run_parse.h"
#include "peer/cmd/training.h"
#include "peer/run_log/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* State while the tensors of the file are read one after the other. */
struct walk
{
    struct cmd_inspect *in;
    const struct safetensors_tensor *last; /* Tensor that is being read at present. */
    bool no_memory;
};

static struct cmd_inspect_tensor *begin_tensor(struct walk *w, const struct safetensors_tensor *t)
{
    struct cmd_inspect_tensor *to = cmd_inspect_add(w->in);
    w->last = t;
    w->no_memory |= to == NULL;
    if (to == NULL)
        return NULL;
    snprintf(to->name, sizeof to->name, "%s", t->name);
    to->n_dims = t->n_dims;
    memcpy(to->dims, t->dims, sizeof to->dims);
    snprintf(to->dtype, sizeof to->dtype, "%.15s", t->dtype_name);
    to->n = t->n;
    to->n_bytes = t->end - t->begin;
    w->in->n_floats += t->n;
    return to;
}

static void take(void *self, const struct safetensors_tensor *t, const double *x, size_t n)
{
    struct walk *w = self;
    struct cmd_inspect_tensor *to =
        t != w->last || w->no_memory ? NULL : &w->in->tensors[w->in->n_tensors - 1];
    if (to == NULL)
        to = w->no_memory ? NULL : begin_tensor(w, t);
    if (to == NULL)
        return;
    to->read = x != NULL;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            to->n_bad++;
            continue;
        }
        to->sum += x[i];
        to->norm2 += x[i] * x[i];
    }
}

/* Reads the run description from the metadata. If it cannot be parsed, the tensors are shown
 * without it, and this is not an error. */
static void read_run(struct cmd_inspect *in)
{
    const char *text = safetensors_value(&in->info, "run");
    char why[RUN_ERROR_MAX];
    if (text == NULL)
        return;
    in->has_run = cmd_run_parse(&in->run, text, strlen(text), in->run_why) == 0;
    if (!in->has_run || cmd_run_is_layout(&in->run))
        return;
    snprintf(in->kind, sizeof in->kind, "%.*s", DATA_KIND_MAX - 1, sgd_values(&in->run)->data);
    in->has_model = cmd_training_model(&in->model, &in->run, why) == 0;
    struct kind_rows k;
    bool rows =
        kind_rows_parse(in->kind, "csv", &k) && diary_columns_read(&in->info, &in->schema) == 0;
    if (rows && k.columns != NULL && columns_parse(&in->columns, k.columns, k.scale) < 0)
        in->columns = (struct columns){0};
    in->unnamed = rows && !in->schema.named;
}

static bool same_shape(const struct cmd_inspect_tensor *t, const struct segment *s)
{
    bool same = t->n_dims == s->n_dims;
    for (uint32_t i = 0; i < t->n_dims && same; i++)
        same = t->dims[i] == s->dims[i];
    return same;
}

/* Finds for each tensor of the file the segment (named tensor) of the run's model with the same name
 * and shape. Sets in->unlike to the first tensor without such a counterpart. */
static void compare(struct cmd_inspect *in)
{
    for (size_t i = 0; i < in->n_tensors; i++) {
        struct cmd_inspect_tensor *t = &in->tensors[i];
        for (size_t k = 0; k < in->model.n_segments; k++)
            if (strcmp(in->model.segments[k].name, t->name) == 0
                && same_shape(t, &in->model.segments[k]))
                t->segment = &in->model.segments[k];
        if (t->segment == NULL && in->unlike == NULL)
            in->unlike = t->name;
    }
    for (size_t k = 0; k < in->model.n_segments && in->unlike == NULL; k++) {
        size_t i = 0;
        while (i < in->n_tensors && in->tensors[i].segment != &in->model.segments[k])
            i++;
        if (i == in->n_tensors)
            in->unlike = in->model.segments[k].name;
    }
}

int cmd_inspect_file(struct cmd_inspect *in, const struct options *o, const char *path)
{
    static const char *const of_specs[] = {"data", "norm"};
    char why[FILE_ERROR_MAX];
    struct stat st;
    struct walk w = {.in = in};
    struct safetensors_walker walker = {.take = take, .self = &w};
    for (size_t i = 0; i < sizeof of_specs / sizeof *of_specs; i++)
        if (options_given(o, of_specs[i]))
            return cmd_fail(o, CMD_USAGE,
                            "--%s: only allowed with a model SPEC: %s is a file "
                            "that already contains this information",
                            of_specs[i], path);
    in->path = path;
    int err = safetensors_info(path, &in->info, why);
    if (err == 0)
        err = safetensors_walk(path, &walker, why);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", why);
    if (w.no_memory)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    in->file_bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    for (size_t i = 0; i < in->n_tensors; i++)
        in->n_bad += in->tensors[i].n_bad;
    read_run(in);
    if (in->has_model)
        compare(in);
    return CMD_OK;
}
