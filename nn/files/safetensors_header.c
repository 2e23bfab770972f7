/* nn/files/safetensors_header.c -- parses and checks the JSON of a header (shapes, offsets,
 * tiling), and writes it. */
#include "nn/files/safetensors_header.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest possible size of a tensor's element, in bytes. The checks for overflow assume this
 * limit. */
enum { ELEMENT_MAX = 16 };

/* Gets entry i of a JSON array as a number. Returns false if it is not a whole number or is
 * negative. */
static bool get_number(const json_t *array, size_t i, uint64_t *v)
{
    const json_t *j = json_array_get(array, i);
    if (!json_is_integer(j) || json_integer_value(j) < 0)
        return false;
    *v = (uint64_t)json_integer_value(j);
    return true;
}

/* Parses the dimensions of a tensor. Their product is checked for overflow after each dimension. */
static int parse_shape(struct safetensors_tensor *t, const json_t *shape, const char *path,
                       char error[FILE_ERROR_MAX])
{
    if (!json_is_array(shape) || json_array_size(shape) > SAFETENSORS_DIMS_MAX)
        return file_error(error, path, "shape of %.48s: expected an array of at most %d numbers",
                          t->name, SAFETENSORS_DIMS_MAX);
    t->n_dims = (uint32_t)json_array_size(shape);
    t->n = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        if (!get_number(shape, i, &t->dims[i]))
            return file_error(error, path, "shape of %.48s: expected whole numbers, none negative",
                              t->name);
        if (t->dims[i] != 0 && t->n > UINT64_MAX / ELEMENT_MAX / t->dims[i])
            return file_error(
                error, path, "shape of %.48s: found more elements than 64 bits can count", t->name);
        t->n *= t->dims[i];
    }
    return 0;
}

/* Returns whether a tensor is the counter of batches that a batch norm of PyTorch has seen. Files
 * made from a state_dict contain such counters. The reader skips these counters. */
static bool is_counter(const char *name, const char *dtype, const json_t *shape)
{
    static const char last[] = "num_batches_tracked";
    const char *dot = strrchr(name, '.');
    return strcmp(dot != NULL ? dot + 1 : name, last) == 0 && strcmp(dtype, "I64") == 0
           && json_is_array(shape) && json_array_size(shape) == 0;
}

/* The known dtypes of the format: https://docs.rs/safetensors, enum Dtype. For an unknown dtype,
 * the size of a tensor in bytes follows from its offsets. */
static const struct
{
    const char *name;
    enum safetensors_dtype dtype;
    uint64_t bytes; /* Size of one element in bytes. */
} dtypes[] = {{"F32", SAFETENSORS_F32, 4},       {"F16", SAFETENSORS_F16, 2},
              {"BF16", SAFETENSORS_BF16, 2},     {"F64", SAFETENSORS_F64, 8},
              {"U8", SAFETENSORS_U8, 1},         {"I8", SAFETENSORS_OTHER, 1},
              {"I16", SAFETENSORS_OTHER, 2},     {"U16", SAFETENSORS_OTHER, 2},
              {"I32", SAFETENSORS_OTHER, 4},     {"U32", SAFETENSORS_OTHER, 4},
              {"I64", SAFETENSORS_OTHER, 8},     {"U64", SAFETENSORS_OTHER, 8},
              {"BOOL", SAFETENSORS_OTHER, 1},    {"C64", SAFETENSORS_OTHER, 8},
              {"F8_E4M3", SAFETENSORS_OTHER, 1}, {"F8_E5M2", SAFETENSORS_OTHER, 1}};

enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static size_t find_dtype(const char *name)
{
    size_t i = 0;
    while (i < N_DTYPES && strcmp(dtypes[i].name, name) != 0)
        i++;
    return i;
}

static int parse_dtype(struct safetensors_tensor *t, const json_t *j, bool bytes, const char *path,
                       char error[FILE_ERROR_MAX])
{
    const char *expected = bytes ? "F32 or U8" : "a name such as F32";
    const char *dtype = json_string_value(json_object_get(j, "dtype"));
    if (dtype == NULL)
        return file_error(error, path, "dtype of %.48s: found none, expected %s", t->name,
                          expected);
    size_t i = find_dtype(dtype);
    t->dtype_name = dtype;
    t->dtype = i < N_DTYPES ? dtypes[i].dtype : SAFETENSORS_OTHER;
    if (!bytes && is_counter(t->name, dtype, json_object_get(j, "shape")))
        t->dtype = SAFETENSORS_COUNT;
    if (bytes && t->dtype != SAFETENSORS_F32 && t->dtype != SAFETENSORS_U8)
        return file_error(error, path, "dtype of %.48s: found %.16s, expected %s", t->name, dtype,
                          expected);
    return 0;
}

/* Parses one tensor: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}. */
static int parse_tensor(struct safetensors_tensor *t, const json_t *j, bool bytes, const char *path,
                        char error[FILE_ERROR_MAX])
{
    int err = parse_dtype(t, j, bytes, path, error);
    if (err == 0)
        err = parse_shape(t, json_object_get(j, "shape"), path, error);
    if (err < 0)
        return err;
    const json_t *offsets = json_object_get(j, "data_offsets");
    if (json_array_size(offsets) != 2 || !get_number(offsets, 0, &t->begin)
        || !get_number(offsets, 1, &t->end) || t->begin > t->end)
        return file_error(error, path,
                          "data_offsets of %.48s: expected [begin, end] with 0 <= begin "
                          "<= end",
                          t->name);
    size_t dtype = find_dtype(t->dtype_name);
    uint64_t n_bytes = dtype < N_DTYPES ? t->n * dtypes[dtype].bytes : t->end - t->begin;
    if (t->end - t->begin != n_bytes)
        return file_error(error, path,
                          "data_offsets of %.48s: found %llu bytes, expected %llu for its "
                          "shape",
                          t->name, (unsigned long long)(t->end - t->begin),
                          (unsigned long long)n_bytes);
    return 0;
}

/* Orders tensors by their position in the file, so that the file is read from front to back. */
static int compare_begin(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    /* If two tensors begin at the same byte, the empty one comes first. */
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Sorts the tensors, and checks that they cover the data without gaps and overlaps. */
static int check_tiling(struct safetensors_header *h, const char *path, char error[FILE_ERROR_MAX])
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

/* Checks that "__metadata__" is missing or a map of strings. */
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

static int parse_header(struct safetensors_header *h, const struct safetensors_rules *rules,
                        const char *path, char error[FILE_ERROR_MAX])
{
    /* The header begins with '{', so the root of the JSON is an object. */
    assert(json_is_object(h->root));
    size_t n = json_object_size(h->root);
    if (n > rules->tensors_max)
        return file_error(error, path, "header: found %zu tensors, expected at most %zu", n,
                          rules->tensors_max);
    h->tensors = calloc(n + 1, sizeof *h->tensors);
    if (h->tensors == NULL)
        return file_no_memory(error, path);
    const char *key;
    json_t *value;
    json_object_foreach(h->root, key, value)
    {
        h->tensors[h->n].name = key;
        int err = strcmp(key, "__metadata__") == 0
                      ? check_meta(value, path, error)
                      : parse_tensor(&h->tensors[h->n++], value, rules->bytes, path, error);
        if (err < 0)
            return err;
    }
    for (size_t i = 0; i < h->n; i++) {
        bool counter = h->tensors[i].dtype == SAFETENSORS_COUNT;
        h->n_counters += counter;
        h->n_elements += counter ? 0 : h->tensors[i].n;
    }
    return check_tiling(h, path, error);
}

int safetensors_header_length(const uint8_t b[SAFETENSORS_LENGTH + 1], uint64_t n_file,
                              const struct safetensors_rules *rules, uint64_t *n, const char *path,
                              char error[FILE_ERROR_MAX])
{
    assert(n_file > SAFETENSORS_LENGTH);
    if (b[SAFETENSORS_LENGTH] != '{')
        return file_error(error, path,
                          "not a safetensors file: found the byte 0x%02x after the first %d bytes, "
                          "expected the '{' of a header",
                          b[SAFETENSORS_LENGTH], SAFETENSORS_LENGTH);
    uint64_t behind = n_file - SAFETENSORS_LENGTH;
    *n = 0;
    for (size_t i = 0; i < SAFETENSORS_LENGTH; i++)
        *n |= (uint64_t)b[i] << (8 * i);
    if (*n < SAFETENSORS_HEADER_MIN || *n > rules->header_max)
        return file_error(error, path, "header length: found %llu, expected %d to %zu",
                          (unsigned long long)*n, SAFETENSORS_HEADER_MIN, rules->header_max);
    if (*n > behind)
        return file_error(error, path,
                          "the file is too short: found %llu bytes after the first %d, expected a "
                          "header of %llu bytes",
                          (unsigned long long)behind, SAFETENSORS_LENGTH, (unsigned long long)*n);
    return 0;
}

int safetensors_header_read(struct safetensors_header *h, const struct safetensors_rules *rules,
                            const struct safetensors_text *text, uint64_t n_data, const char *path,
                            char error[FILE_ERROR_MAX])
{
    assert(text->n > 0 && text->text[0] == '{');
    json_error_t why = {0};
    *h = (struct safetensors_header){.n_bytes = n_data};
    h->root = json_loadb(text->text, text->n, JSON_REJECT_DUPLICATES, &why);
    if (h->root == NULL && json_error_code(&why) == json_error_out_of_memory)
        return file_no_memory(error, path);
    int err = h->root != NULL ? parse_header(h, rules, path, error)
                              : file_error(error, path, "header: not valid JSON: %.100s", why.text);
    if (err < 0)
        safetensors_header_close(h);
    return err;
}

/* The names of the tensors are a part of the JSON, so they are freed together with it. */
void safetensors_header_close(struct safetensors_header *h)
{
    json_decref(h->root);
    free(h->tensors);
    *h = (struct safetensors_header){0};
}

int safetensors_header_meta(const struct safetensors_header *h, struct safetensors_meta **meta,
                            size_t *n, const char *path, char error[FILE_ERROR_MAX])
{
    json_t *map = json_object_get(h->root, "__metadata__");
    *n = 0;
    *meta = calloc(json_object_size(map) + 1, sizeof **meta);
    if (*meta == NULL)
        return file_no_memory(error, path);
    const char *key;
    json_t *value;
    json_object_foreach(map, key, value)
    {
        struct safetensors_meta *m = &(*meta)[(*n)++];
        m->key = strdup(key);
        m->value = strdup(json_string_value(value));
        if (m->key == NULL || m->value == NULL) {
            safetensors_meta_close(*meta, *n);
            *meta = NULL;
            *n = 0;
            return file_no_memory(error, path);
        }
    }
    return 0;
}

/* Keys are unique, because headers with duplicate keys are refused. */
const char *safetensors_meta_value(const struct safetensors_meta *meta, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(meta[i].key, key) == 0)
            return meta[i].value;
    return NULL;
}

void safetensors_meta_close(struct safetensors_meta *meta, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((char *)meta[i].key);
        free((char *)meta[i].value);
    }
    free(meta);
}

/* ---- Writing a header ---- */

static int no_memory(const char *path, char error[FILE_ERROR_MAX])
{
    return file_world_error(error, path, "cannot write", ENOMEM);
}

/* Writes the metadata as "__metadata__". Without metadata the key is missing, as the format
 * requires. */
int safetensors_header_put_meta(struct json_t *root, const struct safetensors_meta *meta,
                                const char *path, char error[FILE_ERROR_MAX])
{
    if (meta == NULL || meta->key == NULL)
        return 0;
    json_t *map = json_object();
    size_t n = 0;
    for (; meta->key != NULL; meta++, n++)
        if (json_object_set_new(map, meta->key, json_string(meta->value)) < 0) {
            json_decref(map);
            return file_error(error, path, "metadata \"%.48s\": expected UTF-8", meta->key);
        }
    if (json_object_set_new(root, "__metadata__", map) < 0)
        return no_memory(path, error);
    return n <= SAFETENSORS_META_MAX
               ? 0
               : file_error(error, path, "metadata: found %zu pairs, expected at most %d", n,
                            SAFETENSORS_META_MAX);
}

/* `bad` collects errors: it is not 0 after any error. Allocations need no check, because jansson
 * refuses NULL in a later call. */
int safetensors_header_put(struct json_t *root, const struct safetensors_tensor *t,
                           const char *path, char error[FILE_ERROR_MAX])
{
    bool floats = t->dtype == SAFETENSORS_F32;
    assert(floats || t->dtype == SAFETENSORS_U8); /* hearsay writes only the dtypes F32 and U8. */
    json_t *shape = json_array();
    uint64_t n = 1;
    int bad = 0;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        bad |= json_array_append_new(shape, json_integer((json_int_t)t->dims[i]));
        n *= t->dims[i];
    }
    assert(n * (floats ? sizeof(float) : 1) == t->end - t->begin);
    json_t *tensor = json_pack("{s:s, s:o, s:[I, I]}", "dtype", floats ? "F32" : "U8", "shape",
                               shape, "data_offsets", (json_int_t)t->begin, (json_int_t)t->end);
    bad |= json_object_set_new(root, t->name, tensor);
    return bad ? no_memory(path, error) : 0;
}

int safetensors_header_text(const struct json_t *root, size_t header_max,
                            struct safetensors_text *text, const char *path,
                            char error[FILE_ERROR_MAX])
{
    *text = (struct safetensors_text){0};
    char *compact = json_dumps(root, JSON_COMPACT);
    if (compact == NULL)
        return no_memory(path, error);
    size_t len = strlen(compact);
    uint64_t padded = (len + SAFETENSORS_ALIGN - 1) / SAFETENSORS_ALIGN * SAFETENSORS_ALIGN;
    int err = 0;
    if (padded > header_max)
        err = file_error(error, path, "metadata: found %zu bytes, expected at most %zu", len,
                         header_max);
    else if ((text->text = malloc(SAFETENSORS_LENGTH + (size_t)padded)) == NULL)
        err = no_memory(path, error);
    if (err == 0) {
        text->n = SAFETENSORS_LENGTH + (size_t)padded;
        memset(text->text, ' ', text->n);
        for (size_t i = 0; i < SAFETENSORS_LENGTH; i++)
            text->text[i] = (char)(padded >> (8 * i));
        memcpy(text->text + SAFETENSORS_LENGTH, compact, len);
    }
    free(compact);
    return err;
}
