/* peer/run_log/input.c -- describes the inputs of a data kind as JSON, for programs that apply a
 * model. */
#include "peer/run_log/input.h"

#include "nn/data/columns.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cifar10_names[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                            "dog",      "frog",       "horse", "ship", "truck"};

/* Returns `x` as a JSON number with the fewest digits that read back as the same float, such as
 * 0.1307. */
static json_t *short_real(float x)
{
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        float back = strtof(text, NULL);
        if (back >= x && back <= x)
            break;
    }
    return json_real(strtod(text, NULL));
}

static void put_images(json_t *j, const char *kind, const struct data_shape *shape)
{
    struct kind_normalisation k = kind_normalisation(kind);
    json_t *mean = json_array(), *std = json_array();
    for (uint32_t c = 0; c < shape->channels; c++) {
        json_array_append_new(mean, short_real(k.mean[c]));
        json_array_append_new(std, short_real(k.std[c]));
    }
    json_object_set_new(j, "values", json_pack("[i, i]", 0, 255));
    json_object_set_new(j, "mean", mean);
    json_object_set_new(j, "std", std);
}

static json_t *column_json(const struct column *c)
{
    if (c->form != COLUMN_CATEGORIES)
        return json_pack("{s:s, s:f, s:f}", "form", "numbers", "mean", c->mean, "scale", c->scale);
    if (c->hashed)
        return json_pack("{s:s, s:i}", "form", "hashed", "inputs", (int)COLUMNS_BUCKETS);
    json_t *hashes = json_array();
    for (uint32_t i = 0; i < c->n_categories; i++)
        json_array_append_new(hashes, json_integer((json_int_t)c->category[i]));
    return json_pack("{s:s, s:o}", "form", "categories", "hashes", hashes);
}

static json_t *columns_json(const struct kind_rows *k)
{
    struct columns c = {0};
    if (k->columns == NULL)
        return json_null();
    if (columns_parse(&c, k->columns, k->scale) < 0)
        return NULL;
    json_t *list = json_array();
    for (uint32_t i = 0; i < c.n; i++)
        json_array_append_new(list, column_json(&c.at[i]));
    columns_close(&c);
    return list;
}

static void put_rows(json_t *j, const struct kind_rows *k)
{
    char hash[24];
    bool scaled = k->scale != COLUMNS_SCALE_AUTO;
    snprintf(hash, sizeof hash, "%016" PRIx64, k->columns_hash);
    json_object_set_new(j, "divide", json_real(k->divide));
    json_object_set_new(j, "scale",
                        json_string(columns_scale_name[scaled ? k->scale : COLUMNS_SCALE_NONE]));
    json_object_set_new(j, "columns", columns_json(k));
    if (scaled && k->columns == NULL)
        json_object_set_new(j, "columns_hash", json_string(hash));
}

/* Returns a JSON array of the labels that `hearsay predict` prints for the classes. NULL: memory is
 * short, or a name is not UTF-8. */
static json_t *classes_json(const struct kind_rows *rows, uint32_t n, const struct labels *names)
{
    struct kind_rows k = *rows;
    json_t *list = json_array();
    if (k.scheme == LABELS_OPEN || (k.scheme == LABELS_NAMES && names == NULL))
        k.scheme = LABELS_ZERO;
    for (uint32_t i = 0; i < n; i++) {
        char number[8];
        const char *text = labels_text(&k, names, (uint16_t)i, number);
        if (json_array_append_new(list, json_string(text)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *shape_json(const struct data_shape *s)
{
    switch (s->form) {
    case DATA_IMAGES:
        return json_pack("[i, i, i]", (int)s->channels, (int)s->height, (int)s->width);
    case DATA_ROWS:
    case DATA_SPARSE:
        return json_pack("[i]", (int)s->channels);
    case DATA_TEXT:
        return json_pack("[i]", (int)s->height);
    }
    assert(false);
    return NULL;
}

json_t *diary_input(const char *kind, const struct labels *names)
{
    static const char *const forms[] = {[DATA_IMAGES] = "images",
                                        [DATA_ROWS] = "rows",
                                        [DATA_SPARSE] = "sparse",
                                        [DATA_TEXT] = "text"};
    struct data_shape shape;
    struct kind_rows rows = {.divide = 1};
    const struct kind_family *family = kind_family_of(kind, &shape);
    assert(family != NULL && shape.n_classes > 0);
    json_t *j = json_pack("{s:s, s:o}", "form", forms[shape.form], "shape", shape_json(&shape));
    if (shape.form == DATA_IMAGES)
        put_images(j, kind, &shape);
    if (shape.form == DATA_ROWS || shape.form == DATA_SPARSE) {
        bool ok = kind_rows_parse(kind, family->name, &rows);
        assert(ok);
        put_rows(j, &rows);
    }
    json_t *classes =
        shape.form == DATA_TEXT ? json_null() : classes_json(&rows, shape.n_classes, names);
    json_object_set_new(j, "classes", classes);
    if (family == &kind_families[KIND_CIFAR10]) {
        json_t *list = json_array();
        for (size_t i = 0; i < sizeof cifar10_names / sizeof *cifar10_names; i++)
            json_array_append_new(list, json_string(cifar10_names[i]));
        json_object_set_new(j, "names", list);
    }
    return j;
}
