/* nn/files/safetensors.c -- reading a model file: all of its header is checked before a float.
 *
 *   length -> JSON -> tensors (shapes, offsets) -> they tile the data -> they are
 *   the model's segments -> floats, finite -> x
 *
 * Each step refuses what the next one would trip over, and x changes at the last.
 */
#include "nn/files/safetensors.h"

#include "nn/files/file.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LENGTH = 8,     /* Bytes of the header's length. */
    HEADER_MIN = 2, /* Bytes of a header: "{}". */
    COUNTER = 8,    /* Bytes of a counter. */
    DIMS_MAX = 8    /* Dimensions of a tensor in a file; ours have at most 4. */
};

/* One tensor as the header describes it. */
struct tensor
{
    const char *name;    /* Borrowed from the JSON. */
    uint64_t begin, end; /* Bytes of the data. */
    uint32_t n_dims;
    uint64_t dims[DIMS_MAX];
    bool counter; /* An int64 that is passed over. */
};

/* A header that has been checked: its tensors tile the data of the file. */
struct header
{
    json_t *root;
    struct tensor *tensors; /* Ascending by `begin`. */
    size_t n, n_counters;
    uint64_t n_bytes; /* The data behind the header. */
};

/* Names in the tensors are borrowed from the JSON, so both go together. */
static void header_close(struct header *h)
{
    json_decref(h->root);
    free(h->tensors);
    *h = (struct header){0};
}

static uint64_t float_bytes(const struct header *h)
{
    return h->n_bytes - h->n_counters * COUNTER;
}

/* One number of a JSON array, not negative. */
static bool get_number(const json_t *array, size_t i, uint64_t *v)
{
    const json_t *j = json_array_get(array, i);
    if (!json_is_integer(j) || json_integer_value(j) < 0)
        return false;
    *v = (uint64_t)json_integer_value(j);
    return true;
}

/* The dimensions, with their product held against overflow at each step. */
static int parse_shape(struct tensor *t, const json_t *shape, uint64_t *n_floats, const char *path,
                       char error[FILE_ERROR_MAX])
{
    if (!json_is_array(shape) || json_array_size(shape) > DIMS_MAX)
        return file_error(error, path, "shape of %.48s: expected an array of at most %d numbers",
                          t->name, DIMS_MAX);
    t->n_dims = (uint32_t)json_array_size(shape);
    *n_floats = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        if (!get_number(shape, i, &t->dims[i]))
            return file_error(error, path, "shape of %.48s: expected whole numbers, none negative",
                              t->name);
        if (t->dims[i] != 0 && *n_floats > (UINT64_MAX / sizeof(float)) / t->dims[i])
            return file_error(error, path,
                              "shape of %.48s: found more floats than "
                              "there can be",
                              t->name);
        *n_floats *= t->dims[i];
    }
    return 0;
}

/* How many batches a batch norm of PyTorch has seen: its state_dict has it, and
 * nothing here needs it. */
static bool is_counter(const char *name, const char *dtype, const json_t *shape)
{
    static const char last[] = "num_batches_tracked";
    const char *dot = strrchr(name, '.');
    return strcmp(dot != NULL ? dot + 1 : name, last) == 0 && strcmp(dtype, "I64") == 0
           && json_is_array(shape) && json_array_size(shape) == 0;
}

/* {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]} */
static int parse_tensor(struct tensor *t, const char *name, const json_t *j, const char *path,
                        char error[FILE_ERROR_MAX])
{
    t->name = name;
    const char *dtype = json_string_value(json_object_get(j, "dtype"));
    if (dtype == NULL)
        return file_error(error, path, "dtype of %.48s: found none, expected F32", name);
    const json_t *shape = json_object_get(j, "shape");
    t->counter = is_counter(name, dtype, shape);
    if (strcmp(dtype, "F32") != 0 && !t->counter)
        return file_error(error, path, "dtype of %.48s: found %.16s, expected F32", name, dtype);
    uint64_t n_floats = 0;
    int err = parse_shape(t, shape, &n_floats, path, error);
    if (err < 0)
        return err;
    const json_t *offsets = json_object_get(j, "data_offsets");
    if (json_array_size(offsets) != 2 || !get_number(offsets, 0, &t->begin)
        || !get_number(offsets, 1, &t->end) || t->begin > t->end)
        return file_error(error, path,
                          "data_offsets of %.48s: expected [begin, end] with 0 <= begin "
                          "<= end",
                          name);
    uint64_t n_bytes = t->counter ? COUNTER : n_floats * sizeof(float);
    if (t->end - t->begin != n_bytes)
        return file_error(error, path,
                          "data_offsets of %.48s: found %llu bytes, expected %llu for its "
                          "shape",
                          name, (unsigned long long)(t->end - t->begin),
                          (unsigned long long)n_bytes);
    return 0;
}

/* In the order of the file, so that it is read front to back. */
static int compare_begin(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end; /* Empty ones first. */
}

/* Do the tensors lie one behind the other, without gap or overlap? */
static int check_tiling(struct header *h, const char *path, char error[FILE_ERROR_MAX])
{
    qsort(h->tensors, h->n, sizeof *h->tensors, compare_begin);
    uint64_t at = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (h->tensors[i].begin != at)
            return file_error(error, path,
                              "data_offsets of %.48s: found begin %llu, expected %llu: "
                              "tensors must follow each other",
                              h->tensors[i].name, (unsigned long long)h->tensors[i].begin,
                              (unsigned long long)at);
        at = h->tensors[i].end;
    }
    if (at != h->n_bytes)
        return file_error(error, path, "data: found %llu bytes, expected %llu as the header says",
                          (unsigned long long)h->n_bytes, (unsigned long long)at);
    return 0;
}

/* "__metadata__" is a map of strings, or missing. */
static int check_meta(const json_t *meta, const char *path, char error[FILE_ERROR_MAX])
{
    if (meta == NULL)
        return 0;
    if (!json_is_object(meta) || json_object_size(meta) > SAFETENSORS_META_MAX)
        return file_error(error, path, "__metadata__: expected a map of at most %d strings",
                          SAFETENSORS_META_MAX);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)meta, key, value) if (!json_is_string(value)) return file_error(
        error, path, "__metadata__.%.48s: expected a string", key);
    return 0;
}

static int parse_header(struct header *h, const char *path, char error[FILE_ERROR_MAX])
{
    assert(json_is_object(h->root)); /* It begins with '{'. */
    size_t n = json_object_size(h->root);
    if (n > SAFETENSORS_TENSORS_MAX)
        return file_error(error, path, "header: found %zu tensors, expected at most %d", n,
                          SAFETENSORS_TENSORS_MAX);
    h->tensors = calloc(n + 1, sizeof *h->tensors);
    if (h->tensors == NULL)
        return file_no_memory(error, path);
    const char *key;
    json_t *value;
    json_object_foreach(h->root, key, value)
    {
        int err = strcmp(key, "__metadata__") == 0
                      ? check_meta(value, path, error)
                      : parse_tensor(&h->tensors[h->n++], key, value, path, error);
        if (err < 0)
            return err;
    }
    for (size_t i = 0; i < h->n; i++)
        h->n_counters += h->tensors[i].counter;
    return check_tiling(h, path, error);
}

/* The length, and the header's bytes as JSON. */
static int load_header(struct header *h, struct file *f, const char *path,
                       char error[FILE_ERROR_MAX])
{
    uint8_t b[LENGTH + 1]; /* And the header's first byte. */
    size_t got;
    int err = file_get(f, b, sizeof b, &got, error);
    if (err < 0)
        return err;
    if (got < sizeof b)
        return file_error(error, path,
                          "no safetensors file: found %zu bytes, expected %d "
                          "and a JSON header",
                          got, LENGTH);
    if (b[LENGTH] != '{')
        return file_error(error, path,
                          "no safetensors file: found the byte 0x%02x behind its "
                          "first %d, expected the '{' of a header",
                          b[LENGTH], LENGTH);
    uint64_t n = 0, bound = file_bound(f) - LENGTH;
    for (size_t i = 0; i < LENGTH; i++)
        n |= (uint64_t)b[i] << (8 * i);
    uint64_t most = bound < SAFETENSORS_HEADER_MAX ? bound : SAFETENSORS_HEADER_MAX;
    if (n < HEADER_MIN || n > most)
        return file_error(error, path, "header length: found %llu, expected %d to %llu",
                          (unsigned long long)n, HEADER_MIN, (unsigned long long)most);
    char *text = malloc((size_t)n);
    if (text == NULL)
        return file_no_memory(error, path);
    text[0] = '{';
    err = file_get(f, text + 1, (size_t)n - 1, &got, error);
    json_error_t why = {0};
    if (err == 0)
        h->root = json_loadb(text, got + 1, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (err == 0 && h->root == NULL)
        return file_error(error, path, "header: found no JSON: %.100s", why.text);
    h->n_bytes = bound - n;
    return err;
}

/* Open a file and check all of its header. On success the file stands at the
 * first byte of the data. */
static int open_checked(struct header *h, struct file **f, const char *path,
                        char error[FILE_ERROR_MAX])
{
    *h = (struct header){0};
    int err = file_open_plain(f, path, error);
    if (err < 0)
        return err;
    err = load_header(h, *f, path, error);
    if (err == 0)
        err = parse_header(h, path, error);
    if (err < 0) {
        header_close(h);
        file_close(*f);
        *f = NULL;
    }
    return err;
}

/* A shape for a sentence: "6x1x5x5". */
struct shape_text
{
    char text[DIMS_MAX * 21 + 8];
};

static struct shape_text shape_text(const uint64_t *dims, uint32_t n_dims)
{
    struct shape_text out = {"a scalar"};
    size_t at = 0;
    for (uint32_t i = 0; i < n_dims; i++)
        at += (size_t)snprintf(out.text + at, sizeof out.text - at, i ? "x%llu" : "%llu",
                               (unsigned long long)dims[i]);
    return out;
}

/* The same number of floats in another shape is another tensor: a transposed weight would load
 * and be nonsense. */
static int check_shape(const struct tensor *t, const struct segment *s, const char *path,
                       char error[FILE_ERROR_MAX])
{
    uint64_t dims[DIMS_MAX] = {0};
    for (uint32_t i = 0; i < s->n_dims; i++)
        dims[i] = s->dims[i];
    if (t->n_dims == s->n_dims && memcmp(t->dims, dims, sizeof dims) == 0)
        return 0;
    return file_error(error, path, "shape of %.48s: found %.60s, expected %.60s", t->name,
                      shape_text(t->dims, t->n_dims).text, shape_text(dims, s->n_dims).text);
}

/* The segment of that name. A model has few hundred, so looking at all of them is fast enough. */
static const struct segment *find_segment(const struct segment *s, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].name, name) == 0)
            return &s[i];
    return NULL;
}

/* Do the file's tensors and the model's segments agree? Names are unique on
 * both sides, so equal counts and each tensor found is enough. */
static int check_segments(const struct header *h, const struct segment *s, size_t n,
                          const char *path, char error[FILE_ERROR_MAX])
{
    for (size_t i = 0; i < h->n; i++) {
        const struct tensor *t = &h->tensors[i];
        if (t->counter)
            continue;
        const struct segment *to = find_segment(s, n, t->name);
        if (to == NULL)
            return file_error(error, path, "tensor %.48s: the model has none of that name",
                              t->name);
        int err = check_shape(t, to, path, error);
        if (err < 0)
            return err;
    }
    size_t found = h->n - h->n_counters;
    if (found != n)
        return file_error(error, path, "header: found %zu tensors, expected %zu", found, n);
    return 0;
}

/* Little-endian bytes to floats, in place. */
static void from_wire(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t b[sizeof(float)];
        memcpy(b, x + i, sizeof b);
        uint32_t bits =
            (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        memcpy(x + i, &bits, sizeof bits);
    }
}

/* Read one tensor's bytes to `dst`. */
static int read_bytes(struct file *f, const struct tensor *t, void *dst, const char *path,
                      char error[FILE_ERROR_MAX])
{
    size_t n_bytes = (size_t)(t->end - t->begin), got;
    int err = file_get(f, dst, n_bytes, &got, error);
    if (err == 0 && got < n_bytes)
        return file_error(error, path, "data of %.48s: found %zu bytes, expected %zu", t->name, got,
                          n_bytes);
    return err;
}

/* Read one tensor into its place. */
static int read_tensor(struct file *f, const struct tensor *t, const struct segment *to, float *x,
                       const char *path, char error[FILE_ERROR_MAX])
{
    float *dst = x + to->offset;
    size_t n_bytes = (size_t)(t->end - t->begin);
    int err = read_bytes(f, t, dst, path, error);
    if (err < 0)
        return err;
    from_wire(dst, n_bytes / sizeof(float));
    if (!vec_finite(dst, n_bytes / sizeof(float)))
        return file_error(error, path,
                          "data of %.48s: found NaN or infinity, expected finite values", t->name);
    for (size_t i = 0; i < to->n && to->nonnegative; i++)
        if (dst[i] < 0)
            return file_error(error, path,
                              "data of %.48s: found %g at place %zu, expected no negative value",
                              t->name, (double)dst[i], i);
    return 0;
}

/* Floats go to a copy first: x changes only once the last of them has been read and found
 * finite. */
int safetensors_read(const char *path, const struct segment *s, size_t n, float *x,
                     char error[FILE_ERROR_MAX])
{
    struct header h;
    struct file *f;
    int err = open_checked(&h, &f, path, error);
    if (err < 0)
        return err;
    err = check_segments(&h, s, n, path, error);
    float *y = err == 0 ? malloc((size_t)h.n_bytes + 1) : NULL; /* As large as the model. */
    if (err == 0 && y == NULL)
        err = file_no_memory(error, path);
    for (size_t i = 0; i < h.n && err == 0; i++) {
        const struct tensor *t = &h.tensors[i];
        uint8_t counter[COUNTER];
        err = t->counter ? read_bytes(f, t, counter, path, error)
                         : read_tensor(f, t, find_segment(s, n, t->name), y, path, error);
    }
    if (err == 0)
        memcpy(x, y, (size_t)float_bytes(&h));
    free(y);
    header_close(&h);
    file_close(f);
    return err;
}

/* Copy the metadata out of the JSON. */
static int copy_meta(struct safetensors_info *info, json_t *meta, const char *path,
                     char error[FILE_ERROR_MAX])
{
    info->meta = calloc(json_object_size(meta) + 1, sizeof *info->meta);
    if (info->meta == NULL)
        return file_no_memory(error, path);
    const char *key;
    json_t *value;
    json_object_foreach(meta, key, value)
    {
        struct safetensors_meta *m = &info->meta[info->n_meta++];
        m->key = strdup(key);
        m->value = strdup(json_string_value(value));
        if (m->key == NULL || m->value == NULL)
            return file_no_memory(error, path);
    }
    return 0;
}

int safetensors_info(const char *path, struct safetensors_info *info, char error[FILE_ERROR_MAX])
{
    *info = (struct safetensors_info){0};
    struct header h;
    struct file *f;
    int err = open_checked(&h, &f, path, error);
    if (err < 0)
        return err;
    info->n_tensors = h.n - h.n_counters;
    info->n_floats = float_bytes(&h) / sizeof(float);
    err = copy_meta(info, json_object_get(h.root, "__metadata__"), path, error);
    if (err < 0)
        safetensors_info_close(info);
    header_close(&h);
    file_close(f);
    return err;
}

/* The first of that key; JSON objects were refused if they had it twice. */
const char *safetensors_value(const struct safetensors_info *info, const char *key)
{
    for (size_t i = 0; i < info->n_meta; i++)
        if (strcmp(info->meta[i].key, key) == 0)
            return info->meta[i].value;
    return NULL;
}

void safetensors_info_close(struct safetensors_info *info)
{
    for (size_t i = 0; i < info->n_meta; i++) {
        free((char *)info->meta[i].key);
        free((char *)info->meta[i].value);
    }
    free(info->meta);
    *info = (struct safetensors_info){0};
}
