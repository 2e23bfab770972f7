/* peer/cmd/inspect.c -- `hearsay inspect FILE|SPEC`: shows the contents of a model file, or the
 * model that a spec describes. */
#include "peer/cmd/inspect.h"

#include "nn/files/file.h"
#include "nn/math/number.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/run_parse.h"
#include "peer/run/key.h"
#include "peer/run_log/input.h"
#include "peer/secure/hash.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/uv/metrics.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_TEXT = 21 * SAFETENSORS_DIMS_MAX, RUN_ID_BYTES = 8 };

/* clang-format off */
const struct option_row cmd_inspect_rows[] = {
    {.name = "what", .kind = OPTION_OPERAND, .arg = "FILE|SPEC", .required = true,
     .help = "a safetensors file, or a model spec such as resnet:20; a name with a slash is a file"},
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC",
     .help = "with a SPEC: data that determine the shapes. Default: glyphs, cifar10, text or a table, the first of these that the model accepts"},
    {.name = "norm", .kind = OPTION_CHOICE, .arg = "batch|group|layer", .fallback = "batch",
     .help = "with a SPEC: normalisation layers of the model"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

struct cmd_inspect_tensor *cmd_inspect_add(struct cmd_inspect *in)
{
    if (in->n_tensors == in->cap) {
        size_t cap = in->cap > 0 ? 2 * in->cap : 64;
        struct cmd_inspect_tensor *more = realloc(in->tensors, cap * sizeof *more);
        if (more == NULL)
            return NULL;
        in->tensors = more;
        in->cap = cap;
    }
    struct cmd_inspect_tensor *t = &in->tensors[in->n_tensors++];
    *t = (struct cmd_inspect_tensor){.n = 0};
    return t;
}

/* ---- Figures of a model ---- */

/* Returns the number of multiply-adds in the forward pass of one sample. Returns NaN if the model
 * has a sparse layer, because its work depends on the sample. */
static double multiply_adds(const struct model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct layer_op *op = layer_op(m->layers[i].kind);
        if (m->layers[i].kind == LAYER_SPARSE)
            return NAN;
        sum += op->products != NULL ? op->products(&m->layers[i]) : 0;
    }
    return sum;
}

static void run_id(const struct run *run, char out[2 * RUN_ID_BYTES + 1])
{
    char text[WIRE_RUN_MAX + 1];
    uint8_t hash[HASH_BYTES];
    size_t n = run_text(run, text);
    hash_128(text, n, hash);
    for (int i = 0; i < RUN_ID_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

/* Returns the value of `key` in the metadata of the model file. Returns NULL if the key is missing,
 * or if a spec is inspected. */
static const char *metadata_value(const struct cmd_inspect *in, const char *key)
{
    return in->path != NULL ? safetensors_value(&in->info, key) : NULL;
}

/* ---- Printing text ---- */

static void shape_text(const struct cmd_inspect_tensor *t, char out[SHAPE_TEXT])
{
    size_t at = (size_t)snprintf(out, SHAPE_TEXT, "%s", t->n_dims == 0 ? "scalar" : "");
    for (uint32_t i = 0; i < t->n_dims; i++)
        at +=
            (size_t)snprintf(out + at, SHAPE_TEXT - at, "%s%" PRIu64, i > 0 ? "x" : "", t->dims[i]);
}

/* Widens the name column and the shape column to their longest text. `*name` and `*shape`: widths
 * in characters; on entry the least widths. */
static void widths(const struct cmd_inspect *in, int *name, int *shape)
{
    char text[SHAPE_TEXT], q[RUN_QUOTE_MAX + 4];
    for (size_t i = 0; i < in->n_tensors; i++) {
        shape_text(&in->tensors[i], text);
        int n = (int)strlen(run_quote(q, in->tensors[i].name)), s = (int)strlen(text);
        *name = n > *name ? n : *name;
        *shape = s > *shape ? s : *shape;
    }
}

static void print_tensors(const struct cmd_inspect *in)
{
    int name = 6, shape = 5;
    char text[SHAPE_TEXT], q[RUN_QUOTE_MAX + 4];
    widths(in, &name, &shape);
    printf("\n%-*s  %-*s  dtype    %11s  trained%s\n", name, "tensor", shape, "shape", "bytes",
           in->path != NULL ? "           sum          norm  finite" : "");
    for (size_t i = 0; i < in->n_tensors; i++) {
        const struct cmd_inspect_tensor *t = &in->tensors[i];
        shape_text(t, text);
        printf("%-*s  %-*s  ", name, run_quote(q, t->name), shape, text);
        printf("%-7s  %11" PRIu64 "  %-7s", run_quote(q, t->dtype), t->n_bytes,
               t->segment == NULL    ? "-"
               : t->segment->trained ? "yes"
                                     : "no");
        if (in->path != NULL && !t->read)
            printf("  %12s  %12s  -", "-", "-");
        else if (in->path != NULL && t->n_bad > 0)
            printf("  %12s  %12s  no: %" PRIu64 " values", "-", "-", t->n_bad);
        else if (in->path != NULL)
            printf("  %12.6g  %12.6g  yes", t->sum, sqrt(t->norm2));
        putchar('\n');
    }
}

/* Prints a list of numbers, such as "0.4914, 0.4822, 0.4465". */
static void print_numbers(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("%s%.6g", i > 0 ? ", " : "", json_number_value(json_array_get(list, i)));
}

/* Prints how each column of a table is converted to inputs: one line per column, for the first
 * SHOWN columns. */
static void print_columns(const json_t *columns)
{
    enum { SHOWN = 16 };
    size_t n = json_array_size(columns);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const json_t *c = json_array_get(columns, i), *hashes = json_object_get(c, "hashes");
        if (json_object_get(c, "mean") != NULL)
            printf("           %zu: (value - %.9g) / %.9g\n", i + 1,
                   json_number_value(json_object_get(c, "mean")),
                   json_number_value(json_object_get(c, "scale")));
        else if (hashes != NULL)
            printf("           %zu: one of %zu categories\n", i + 1, json_array_size(hashes));
        else
            printf("           %zu: categories, by hash\n", i + 1);
    }
    if (n > SHOWN)
        printf("           and %zu more columns (--json shows all)\n", n - SHOWN);
}

/* Prints a name as a JSON string, in UTF-8 and with control characters escaped. */
static void print_name(const char *name)
{
    json_t *j = json_string(name);
    char *text = j != NULL ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
    fputs(text != NULL ? text : "?", stdout);
    free(text);
    json_decref(j);
}

/* Prints the description of the model's inputs. The file may be from an untrusted source, so a
 * metadata key that is missing or has another type counts as empty. */
static void print_input(const json_t *j)
{
    char q[RUN_QUOTE_MAX + 4];
    const char *form = json_string_value(json_object_get(j, "form"));
    const json_t *shape = json_object_get(j, "shape"), *classes = json_object_get(j, "classes"),
                 *columns = json_object_get(j, "columns"), *mean = json_object_get(j, "mean");
    printf("input      %s ", run_quote(q, form != NULL ? form : "?"));
    for (size_t i = 0; i < json_array_size(shape); i++)
        printf("%s%" JSON_INTEGER_FORMAT, i > 0 ? "x" : "",
               json_integer_value(json_array_get(shape, i)));
    if (mean != NULL) {
        printf(", (value / 255 - mean) / std, mean ");
        print_numbers(mean);
        printf(", std ");
        print_numbers(json_object_get(j, "std"));
    }
    double divide = json_number_value(json_object_get(j, "divide"));
    if (fabs(divide - 1) > 0 && divide > 0)
        printf(", values / %.9g", divide);
    putchar('\n');
    print_columns(columns);
    if (json_array_size(classes) == 0)
        return;
    enum { CLASSES_SHOWN = 10 };
    size_t n = json_array_size(classes);
    printf("classes    %zu: ", n);
    for (size_t i = 0; i < n && i < CLASSES_SHOWN; i++) {
        const char *name = json_string_value(json_array_get(classes, i));
        fputs(i > 0 ? ", " : "", stdout);
        print_name(name != NULL ? name : "?");
    }
    puts(n > CLASSES_SHOWN ? ", ..." : "");
}

/* Returns the kind of column i: "numbers" or "categories". Sets `*n` to the number of inputs that
 * the column becomes. */
static const char *column_kind(const struct cmd_inspect *in, uint32_t i, uint32_t *n)
{
    const struct column *c = i < in->columns.n ? &in->columns.at[i] : NULL;
    bool categories = c != NULL && c->form == COLUMN_CATEGORIES;
    *n = !categories ? 1 : c->hashed ? COLUMNS_BUCKETS : c->n_categories;
    return categories ? "categories" : "numbers";
}

static void print_column_names(const struct cmd_inspect *in)
{
    if (in->unnamed)
        puts("columns    the model file does not name its columns");
    for (uint32_t i = 0; i < in->schema.n; i++) {
        uint32_t n;
        const char *kind = column_kind(in, i, &n);
        fputs(i > 0 ? ", " : "columns    ", stdout);
        print_name(schema_name(&in->schema.names, i));
        if (strcmp(kind, "categories") == 0)
            printf(" (%" PRIu32 " categories)", n);
    }
    if (in->schema.has_label) {
        fputs("; label ", stdout);
        print_name(schema_name(&in->schema.names, in->schema.n));
    }
    if (in->schema.n > 0)
        putchar('\n');
}

static void print_file(const struct cmd_inspect *in)
{
    char size[CMD_PROGRESS_TEXT], q[RUN_QUOTE_MAX + 4], id[2 * RUN_ID_BYTES + 1];
    const char *round = metadata_value(in, "round"), *name = metadata_value(in, "name"),
               *version = metadata_value(in, "version");
    printf("file       %s, %s\n", in->path, cmd_progress_bytes(size, in->file_bytes));
    if (name != NULL)
        printf("written    by %s", run_quote(q, name));
    if (name != NULL && version != NULL)
        printf(", hearsay %s", run_quote(q, version));
    if (name != NULL)
        putchar('\n');
    if (in->has_run) {
        run_id(&in->run, id);
        if (cmd_run_is_layout(&in->run))
            printf("run        %s: model of a program with libhearsay, seed=%" PRIu64 "\n", id,
                   in->run.seed);
        else
            printf("run        %s: model=%s data=%s seed=%" PRIu64 "\n", id,
                   sgd_values(&in->run)->model, in->kind, in->run.seed);
    } else
        printf("run        %s\n", in->run_why[0] ? in->run_why : "not described in the metadata");
    print_column_names(in);
    if (round != NULL && in->has_run)
        printf("round      %s of %" PRIu64 "\n", run_quote(q, round), in->run.rounds);
    else if (round != NULL)
        printf("round      %s\n", run_quote(q, round));
    printf("finite     %s\n", in->n_bad == 0 ? "yes" : "no");
    if (in->unlike != NULL)
        printf("mismatch   tensor %s differs from the model of the run\n",
               run_quote(q, in->unlike));
}

static void print_text(const struct cmd_inspect *in)
{
    if (in->path != NULL)
        print_file(in);
    else
        printf("model      %s for %s\n", in->model.spec, in->kind);
    printf("parameters %" PRIu64 " in %zu tensor%s", in->n_floats, in->n_tensors,
           number_plural(in->n_tensors));
    if (in->has_model && in->unlike == NULL)
        printf(", %zu of them trained", segments_trained(in->model.segments, in->model.n_segments));
    putchar('\n');
    if (in->input != NULL)
        print_input(in->input);
    double work = in->has_model ? multiply_adds(&in->model) : NAN;
    if (isfinite(work))
        printf("work       %.6g multiply-adds per sample (forward pass, matrix products only)\n",
               work);
    if (in->path == NULL)
        printf("layers     %zu\n", in->model.n_layers);
    print_tensors(in);
}

/* ---- Printing JSON ---- */

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

static json_t *tensor_json(const struct cmd_inspect_tensor *t)
{
    bool sums = t->read && t->n_bad == 0;
    json_t *shape = json_array();
    for (uint32_t i = 0; i < t->n_dims; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->dims[i]));
    return json_pack("{s:s, s:o, s:s, s:I, s:o, s:o, s:o, s:o}", "name", t->name, "shape", shape,
                     "dtype", t->dtype, "bytes", (json_int_t)t->n_bytes, "trained",
                     t->segment != NULL ? json_boolean(t->segment->trained) : json_null(), "finite",
                     t->read ? json_boolean(t->n_bad == 0) : json_null(), "sum",
                     uv_metrics_number(sums ? t->sum : NAN), "norm",
                     uv_metrics_number(sums ? sqrt(t->norm2) : NAN));
}

/* Returns the columns of the table on which the model was trained, as a JSON array. Returns null if
 * the file has no column names. */
static json_t *columns_json(const struct cmd_inspect *in)
{
    json_t *array = in->schema.n > 0 ? json_array() : json_null();
    for (uint32_t i = 0; i < in->schema.n; i++) {
        uint32_t n;
        const char *kind = column_kind(in, i, &n);
        json_array_append_new(array, json_pack("{s:s, s:s, s:I}", "name",
                                               schema_name(&in->schema.names, i), "kind", kind,
                                               "inputs", (json_int_t)n));
    }
    return array;
}

/* Returns all results of the command as one JSON object. Keys without a value are null. */
static json_t *all_json(const struct cmd_inspect *in)
{
    bool fits = in->has_model && in->unlike == NULL;
    char id[2 * RUN_ID_BYTES + 1];
    if (in->has_run)
        run_id(&in->run, id);
    json_t *tensors = json_array();
    for (size_t i = 0; i < in->n_tensors; i++)
        json_array_append_new(tensors, tensor_json(&in->tensors[i]));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:O?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, "
        "s:o, s:o}",
        "file", uv_metrics_text(in->path), "bytes",
        in->path != NULL ? json_integer((json_int_t)in->file_bytes) : json_null(), "model",
        text_or_null(in->has_model                                 ? in->model.spec
                     : in->has_run && !cmd_run_is_layout(&in->run) ? sgd_values(&in->run)->model
                                                                   : NULL),
        "data", text_or_null(in->kind[0] ? in->kind : NULL), "input", in->input, "trained_on",
        text_or_null(metadata_value(in, "trained_on")), "run",
        text_or_null(metadata_value(in, "run")), "run_id", text_or_null(in->has_run ? id : NULL),
        "round", text_or_null(metadata_value(in, "round")), "name",
        text_or_null(metadata_value(in, "name")), "version",
        text_or_null(metadata_value(in, "version")), "finite",
        in->path != NULL ? json_boolean(in->n_bad == 0) : json_null(), "n_params",
        (json_int_t)in->n_floats, "n_trained",
        fits ? json_integer((json_int_t)segments_trained(in->model.segments, in->model.n_segments))
             : json_null(),
        "multiply_adds", uv_metrics_number(in->has_model ? multiply_adds(&in->model) : NAN),
        "unlike", text_or_null(in->unlike), "columns", columns_json(in), "label",
        text_or_null(in->schema.has_label ? schema_name(&in->schema.names, in->schema.n) : NULL),
        "tensors", tensors);
}

static int print_json(const struct options *o, const struct cmd_inspect *in)
{
    json_t *j = all_json(in);
    int err = j != NULL ? json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;
    json_decref(j);
    putchar('\n');
    return err != 0 ? cmd_fail(o, CMD_FAILED, "cannot write JSON") : CMD_OK;
}

/* ---- Running the command ---- */

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* Decides whether the operand is a model spec or a file, and inspects it. An operand with a slash
 * is a file. Any other operand that is a valid spec is taken as a spec, even if a file has the same
 * name. */
static int look(struct cmd_inspect *in, const struct options *o)
{
    const char *what = options_text(o, "what");
    char canonical[MODEL_SPEC_MAX], why[MODEL_ERROR_MAX];
    if (strchr(what, '/') == NULL && model_spec(what, canonical, why) == 0)
        return cmd_inspect_spec(in, o, canonical);
    if (strchr(what, '/') != NULL || ends_in(what, ".safetensors") || file_exists(what))
        return cmd_inspect_file(in, o, what);
    return cmd_fail(o, CMD_USAGE, "no file of that name, and no %s", why);
}

/* Sets in->input, the description of the model's inputs. It is taken from the file. If the file has
 * no description, or a spec is inspected, it is derived from the data kind. */
static void find_input(struct cmd_inspect *in)
{
    const char *text = metadata_value(in, "input"), *classes = metadata_value(in, "classes");
    struct kind_rows rows;
    in->input = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (json_is_object(in->input) || !data_kind_fixed(in->kind))
        return;
    json_decref(in->input);
    struct labels *names = classes != NULL && kind_rows_parse(in->kind, "csv", &rows)
                               ? labels_split(&rows, classes)
                               : NULL;
    in->input = diary_input(in->kind, names);
    labels_close(names);
}

int cmd_inspect(const struct options *o)
{
    static struct cmd_inspect in;
    int code = look(&in, o);
    if (code == CMD_OK)
        find_input(&in);
    if (code == CMD_OK && options_flag(o, "json"))
        code = print_json(o, &in);
    else if (code == CMD_OK)
        print_text(&in);
    if (in.has_model)
        model_close(&in.model);
    json_decref(in.input);
    schema_close(&in.schema);
    columns_close(&in.columns);
    safetensors_info_close(&in.info);
    free(in.tensors);
    return code != CMD_OK ? code : cmd_finish(o);
}
