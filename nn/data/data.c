/* nn/data/data.c -- reads the training set and the held-out set of a data spec.
 *
 *   spec --sniff--> KIND:PATH --parse--> files --read--> train --+-- test files --> test
 *                                                                +-- else a share is split off
 *
 * The training set is read first. The held-out files must have the same kind (nn/data/kind.h) as
 * the training files.
 */
#include "nn/data/data.h"

#include "nn/data/files.h"
#include "nn/data/format.h"
#include "nn/data/glyphs.h"
#include "nn/data/labels.h"
#include "nn/data/split.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDOUT 0.1 /* Default share of the samples that is held out. */

/* The held-out images have the same seed as the training images and higher numbers, so no image is
 * in both sets. */
static int open_glyphs(struct data *d, uint64_t seed, char error[DATA_ERROR_MAX])
{
    int err = glyphs_draw(&d->train, GLYPHS_TRAIN, seed, 0);
    if (err == 0)
        err = glyphs_draw(&d->test, GLYPHS_TEST, seed, GLYPHS_TRAIN);
    if (err < 0)
        snprintf(error, DATA_ERROR_MAX, "glyphs: no memory for %d images",
                 GLYPHS_TRAIN + GLYPHS_TEST);
    return err;
}

/* Parses a data spec such as "csv:PATH". If the spec is only a PATH, detects the name of the format
 * from the files first. */
static int parse_spec(struct data_spec *s, const char *spec, char error[DATA_ERROR_MAX])
{
    int err = data_spec_parse(s, spec, error);
    if (err < 0 || s->format != NULL)
        return err;
    char kind[DATA_KIND_MAX], whole[DATA_SPEC_MAX + DATA_KIND_MAX];
    err = data_sniff(spec, kind, error);
    if (err < 0)
        return err;
    snprintf(whole, sizeof whole, "%s:%s", kind, spec);
    return data_spec_parse(s, whole, error);
}

/* Checks that the data of the spec can have the kind `wanted` of the run's data, such as
 * "csv/64x10/0". Sets `kind`, which the readers must follow, to `wanted` if `wanted` says more than
 * the spec, else to the kind in the spec. */
static int check_kind(const struct data_spec *s, const char *spec, const char *wanted,
                      char kind[DATA_KIND_MAX], char error[DATA_ERROR_MAX])
{
    snprintf(kind, DATA_KIND_MAX, "%s", s->format->family->name);
    if (s->format->family->shape.form == DATA_TEXT)
        snprintf(kind, DATA_KIND_MAX, "text/%u", s->context);
    if (wanted == NULL)
        return 0;
    if (!data_kind_agrees(kind, wanted)) {
        snprintf(error, DATA_ERROR_MAX, "found data of kind %.60s (%.120s), expected %.60s",
                 kind_brief(kind).text, spec, kind_brief(wanted).text);
        return -EINVAL;
    }
    if (!data_kind_fixed(kind))
        snprintf(kind, DATA_KIND_MAX, "%s", wanted);
    return 0;
}

/* Reads the files of one set (training or held-out) with the reader of the format. */
static int read_set(struct dataset *d, const struct data_spec *s, struct reader *r,
                    const struct files *f, char error[DATA_ERROR_MAX])
{
    r->paths = (const char *const *)f->path;
    r->n_paths = f->n;
    return s->format->read(d, r, error);
}

/* Returns whether a data set consists of table rows without labels. */
static bool is_bare(const struct dataset *d)
{
    return d->labels == NULL && (d->shape.form == DATA_ROWS || d->shape.form == DATA_SPARSE);
}

/* Tells the reader which rows to expect if labels are to be predicted. With label=none in the spec
 * the rows have no labels. Otherwise the files show whether the rows have labels. */
static void ask_bare(struct reader *r)
{
    bool none = r->label != NULL && strcmp(r->label, "none") == 0;
    r->rows = none ? READER_BARE : READER_MAYBE;
    r->label = none ? NULL : r->label;
}

/* Gives the training set the kind (nn/data/kind.h) of the held-out set, which lists the labels of
 * both sets, and renumbers the classes of the training set accordingly. */
static void join_labels(struct dataset *train, const struct dataset *test)
{
    struct kind_rows from, to;
    const char *family = train->shape.form == DATA_SPARSE ? "libsvm" : "csv";
    if (strcmp(train->kind, test->kind) == 0)
        return;
    bool rows =
        kind_rows_parse(train->kind, family, &from) && kind_rows_parse(test->kind, family, &to);
    assert(rows);
    labels_move(&from, &to, train->labels, train->n);
    dataset_kind(train, test->kind);
}

/* Decides which samples evaluate a trained model, if the spec names no held-out files. The choice
 * depends on whether the model was trained on the files of the spec. */
static void hold_out_of(struct data *d, const struct data_trained *trained)
{
    if (trained->hash != d->hash)
        d->held_out = DATA_HELD_OTHER;
    else if (!(trained->share > 0))
        d->held_out = DATA_HELD_NONE;
    else
        d->share = trained->share;
}

static bool holds_all(const struct data *d)
{
    return d->held_out == DATA_HELD_OTHER || d->held_out == DATA_HELD_NONE;
}

/* Reads the training files and the held-out files, which must have the same kind (nn/data/kind.h).
 * Without held-out files, a share of the samples is held out. */
static int read_both(struct data *d, const struct data_spec *s, struct reader *r,
                     const struct files *train, const struct files *test,
                     const struct data_trained *trained, char error[DATA_ERROR_MAX])
{
    enum reader_rows rows = r->rows;
    r->rows = test->n > 0 ? READER_LABELLED : rows;
    r->progress.hash = &d->hash;
    int err = read_set(&d->train, s, r, train, error);
    r->progress.hash = NULL;
    if (err == 0 && r->columns != NULL)
        columns_end_set(r->columns);
    if (err < 0 || is_bare(&d->train))
        return err;
    r->rows = rows;
    d->held_out = test->n > 0 ? DATA_HELD_FILES : DATA_HELD_SHARE;
    if (test->n == 0) {
        d->share = s->holdout > 0 ? s->holdout : HOLDOUT;
        if (trained != NULL && !(s->holdout > 0) && !(s->validate > 0))
            hold_out_of(d, trained);
        if (holds_all(d))
            return 0;
        d->holdout = d->share;
        return data_split(&d->train, &d->test, d->share, s->path, error);
    }
    char kind[DATA_KIND_MAX];
    snprintf(kind, sizeof kind, "%s", d->train.kind);
    r->kind = kind;
    r->names = d->train.names;
    r->label_known = true;
    err = read_set(&d->test, s, r, test, error);
    if (err == 0 && r->columns != NULL)
        columns_end_set(r->columns);
    if (err == 0 && r->more_labels)
        join_labels(&d->train, &d->test);
    return err;
}

/* Implements validate=: replaces the held-out samples by a share of the training samples. A user
 * can then choose, for example, the learning rate by samples that are used neither for training nor
 * for the final test. */
static int validate(struct data *d, double share, const char *path, char error[DATA_ERROR_MAX])
{
    if (!(share > 0))
        return 0;
    dataset_close(&d->test);
    d->held_out = DATA_HELD_SHARE;
    d->share = share;
    return data_split(&d->train, &d->test, share, path, error);
}

/* Makes all samples of the files the test set, because they are only used to evaluate a trained
 * model or to predict labels. The samples were read and scaled in the same way as a training
 * set. */
static void take_all(struct data *d)
{
    if (!holds_all(d))
        d->held_out = DATA_HELD_FILES;
    d->share = 0;
    dataset_close(&d->test);
    d->test = d->train;
    d->train = (struct dataset){0};
}

/* Computes mean and deviation of the training images and adds them to the kind, the text that
 * describes the data. All peers, the held-out set and later evaluations then use the same figures.
 * The figures are computed from exact counts of pixel values, so they do not depend on the order of
 * the images. */
static void fit_images(struct dataset *train, struct dataset *test)
{
    uint64_t count[256] = {0};
    size_t n = train->n * dataset_dim(train);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        count[train->pixels[i]]++;
    for (int p = 0; p < 256; p++)
        sum += p / 255.0 * (double)count[p];
    double mean = sum / (double)n;
    for (int p = 0; p < 256; p++)
        squares += (p / 255.0 - mean) * (p / 255.0 - mean) * (double)count[p];
    char kind[DATA_KIND_MAX];
    kind_idx_print(&train->shape, mean, sqrt(squares / (double)n), kind);
    dataset_kind(train, kind);
    dataset_kind(test, kind);
}

/* Appends a sentence to the notes for the user. A sentence that does not fit is left out. */
static void add_note(struct data *d, const char *sentence)
{
    size_t n = strlen(d->note);
    if (sentence[0] != '\0' && n + strlen(sentence) + 3 < sizeof d->note)
        snprintf(d->note + n, sizeof d->note - n, "%s%s", n > 0 ? "; " : "", sentence);
}

/* Warns about each column of categories in which every category is new to the model. The model has
 * learnt nothing about them. */
static void note_unseen(struct data *d, const struct columns *c)
{
    char name[64], sentence[READER_NOTE_MAX];
    for (size_t i = 0; i < c->n; i++) {
        if (!c->at[i].unseen)
            continue;
        schema_column(&d->schema, i, name);
        snprintf(sentence, sizeof sentence,
                 "warning: none of the values of %s were seen in training", name);
        add_note(d, sentence);
    }
}

/* Finds the files of a spec, and reads and scales both sets. All options are passed to the reader,
 * which uses only the options of its format. */
static int open_files(struct data *d, const struct data_spec *s, const char *kind,
                      const struct data_request *request, char error[DATA_ERROR_MAX])
{
    struct files train, test;
    int err = files_find(&train, &test, s, error);
    if (err < 0)
        return err;
    struct scale scale;
    struct kind_rows rows;
    char names_note[READER_NOTE_MAX] = "", scale_note[SCALE_NOTE_MAX];
    bool is_csv = kind_rows_parse(kind, "csv", &rows);
    err = scale_open(&scale, kind, s->scale, s->divide, error);
    if (err == 0 && is_csv && schema_of_kind(&d->schema, &rows, request->schema) < 0)
        err = file_no_memory(error, s->path);
    struct reader r = {.kind = kind,
                       .columns = scale.strict ? NULL : &scale.columns,
                       .label = s->label,
                       .header = s->header,
                       .divide = s->divide,
                       .features = s->features,
                       .context = s->context,
                       .names = request->names,
                       .more_labels = request->part && request->kind == NULL,
                       .schema = &d->schema,
                       .note = names_note,
                       .progress = {request->progress, request->self, NULL}};
    if (request->bare)
        ask_bare(&r);
    if (err == 0)
        err = read_both(d, s, &r, &train, &test, request->trained, error);
    bool all = is_bare(&d->train) || holds_all(d);
    if (err == 0 && is_bare(&d->train) && scale.hash != 0)
        err = file_error(
            error, s->path,
            "found no labels, expected KIND:TRAINING,test=PATH with the training files as "
            "TRAINING and these files as PATH. The training files are needed for the "
            "means and scales of the columns, for which the run description has no room");
    if (err == 0 && d->held_out == DATA_HELD_OTHER && scale.hash != 0)
        err = file_error(
            error, s->path,
            "found files that are not the training files, expected KIND:TRAINING,test=PATH with "
            "the training files as TRAINING and these files as PATH. The training files are needed "
            "for the means and scales of the columns, for which the run description has no room");
    if (err == 0)
        err = all ? 0 : validate(d, s->validate, s->path, error);
    if (err == 0 && d->train.shape.form == DATA_IMAGES && !data_kind_fixed(kind))
        fit_images(&d->train, &d->test);
    if (err == 0)
        err = scale_sets(&scale, &d->train, &d->test, &d->schema, s->path, scale_note, error);
    if (err == 0) {
        add_note(d, names_note);
        if (is_csv && rows.fixed && !rows.named && d->schema.named)
            add_note(d, "the run, or the model file, does not name its columns: the columns of the "
                        "table are assumed to be in the order of training");
        note_unseen(d, &scale.columns);
        add_note(d, scale_note);
    }
    if (err == 0 && all)
        take_all(d);
    d->moments = scale.moments;
    scale.moments = (struct column_statistics){0};
    if (err == 0 && d->moments.rows > 0 && schema_copy(&d->moments.schema, &d->schema) < 0)
        err = file_no_memory(error, s->path);
    scale_close(&scale);
    files_close(&train);
    files_close(&test);
    return err;
}

/* Returns whether the kind (nn/data/kind.h) of a table contains the mean of every column. */
static bool has_means(const char *kind)
{
    struct kind_rows rows;
    return kind_rows_parse(kind, "csv", &rows) && rows.scale == COLUMNS_SCALE_STANDARD
           && rows.columns != NULL;
}

/* Reads the files again with the kind (text that describes the data) that the first reading has
 * determined. The first reading stored values as differences from a provisional mean, rounded to
 * float32. With the means in the kind, the values get the same bits as at a peer that knows the
 * kind before it reads. */
static int read_again(struct data *d, const struct data_spec *s, const struct data_request *request,
                      char error[DATA_ERROR_MAX])
{
    struct data first = *d;
    struct data_request again = *request;
    char kind[DATA_KIND_MAX];
    snprintf(kind, sizeof kind, "%s", first.train.kind);
    dataset_close(&first.train);
    dataset_close(&first.test);
    memset(d, 0, sizeof *d);
    again.schema = first.schema.named ? &first.schema : NULL;
    int err = open_files(d, s, kind, &again, error);
    memcpy(d->note, first.note, sizeof d->note);
    column_statistics_close(&d->moments);
    d->moments = first.moments;
    schema_close(&first.schema);
    return err;
}

int data_open(struct data *d, const struct data_request *request, char error[DATA_ERROR_MAX])
{
    memset(d, 0, sizeof *d);
    struct data_spec s;
    char kind[DATA_KIND_MAX];
    int err = parse_spec(&s, request->spec, error);
    if (err == 0)
        err = check_kind(&s, request->spec, request->kind, kind, error);
    if (err == 0)
        err = s.path != NULL ? open_files(d, &s, kind, request, error)
                             : open_glyphs(d, request->seed, error);
    if (err == 0 && s.path != NULL && !data_kind_fixed(kind) && has_means(d->train.kind))
        err = read_again(d, &s, request, error);
    if (err == 0 && s.path == NULL)
        err = validate(d, s.validate, "glyphs", error);
    if (err < 0)
        data_close(d);
    return err;
}

void data_close(struct data *d)
{
    dataset_close(&d->train);
    dataset_close(&d->test);
    schema_close(&d->schema);
    column_statistics_close(&d->moments);
}
