/* nn/files/safetensors.c -- reads a model file. The whole header is checked before any float is
 * read.
 *
 *   length -> JSON -> tensors (shapes, offsets) -> they cover the data without gaps ->
 *   they are the model's segments -> floats, all finite -> x
 *
 * Each step relies on what the steps before it have checked. x changes in the last step only.
 */
#include "nn/files/safetensors.h"

#include "nn/files/file.h"
#include "nn/files/safetensors_header.h"
#include "nn/math/half.h"
#include "nn/math/number.h"
#include "nn/math/spelling.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WALK_VALUES = 1 << 12 };

static const struct safetensors_rules model_file = {.tensors_max = SAFETENSORS_TENSORS_MAX,
                                                    .header_max = SAFETENSORS_HEADER_MAX};

/* Reads and checks the header: the length and the first byte of the JSON in one read, then the
 * rest. */
static int load_header(struct safetensors_header *h, struct file *f, const char *path,
                       char error[FILE_ERROR_MAX])
{
    uint8_t b[SAFETENSORS_LENGTH + 1];
    uint64_t n;
    size_t got;
    int err = file_get(f, b, sizeof b, &got, error);
    if (err < 0)
        return err;
    if (got < sizeof b)
        return file_error(
            error, path,
            "not a safetensors file: found %zu bytes, expected %d bytes and a JSON header", got,
            SAFETENSORS_LENGTH);
    err = safetensors_header_length(b, file_bound(f), &model_file, &n, path, error);
    if (err < 0)
        return err;
    struct safetensors_text text = {malloc((size_t)n), 0};
    if (text.text == NULL)
        return file_no_memory(error, path);
    text.text[0] = '{';
    err = file_get(f, text.text + 1, (size_t)n - 1, &got, error);
    text.n = got + 1;
    if (err == 0)
        err = safetensors_header_read(h, &model_file, &text, file_bound(f) - SAFETENSORS_LENGTH - n,
                                      path, error);
    free(text.text);
    return err;
}

/* Opens a file and checks its whole header. On success the next byte to read is the first byte of
 * the data. `input` true: from now on the program refuses to overwrite this file
 * (nn/files/replace.h). */
static int open_checked(struct safetensors_header *h, struct file **f, const char *path, bool input,
                        char error[FILE_ERROR_MAX])
{
    int err = input ? file_open_plain(f, path, error) : file_open_no_input(f, path, error);
    if (err < 0)
        return err;
    err = load_header(h, *f, path, error);
    if (err < 0) {
        file_close(*f);
        *f = NULL;
    }
    return err;
}

/* The shape of a tensor for error messages, such as "6x1x5x5". */
struct shape_text
{
    char text[SAFETENSORS_DIMS_MAX * 21 + 8];
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

/* Refuses a tensor whose shape differs from the model's, even if it has the right number of floats.
 * A transposed weight would otherwise be loaded without an error and give wrong results. */
static int check_shape(const struct safetensors_tensor *t, const struct segment *s,
                       const char *path, char error[FILE_ERROR_MAX])
{
    uint64_t dims[SAFETENSORS_DIMS_MAX] = {0};
    for (uint32_t i = 0; i < s->n_dims; i++)
        dims[i] = s->dims[i];
    if (t->n_dims == s->n_dims && memcmp(t->dims, dims, sizeof dims) == 0)
        return 0;
    return file_error(error, path, "shape of %.48s: found %.60s, expected %.60s", t->name,
                      shape_text(t->dims, t->n_dims).text, shape_text(dims, s->n_dims).text);
}

/* Returns the segment with this name, or NULL. A linear search is fast enough, because a model has
 * a few hundred segments. */
static const struct segment *find_segment(const struct segment *s, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].name, name) == 0)
            return &s[i];
    return NULL;
}

/* Refuses a tensor that the model does not have. The error message lists the names of the model, as
 * far as there is room, and suggests the most similar name. If a part of the tensor's name after a
 * dot is a name of the model, the message suggests this part ("fc.bias" for "module.fc.bias"). */
static int refuse_name(const char *name, const struct segment *s, size_t n, const char *path,
                       char error[FILE_ERROR_MAX])
{
    enum { LIST_MAX = 80 };
    char question[SEGMENT_NAME_MAX + 24], list[LIST_MAX + SEGMENT_NAME_MAX + 2] = "";
    struct spelling near = {.found = name};
    size_t at = 0, listed = 0;
    for (; listed < n && at < LIST_MAX; listed++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at > 0 ? ", " : "",
                               s[listed].name);
    for (size_t i = 0; i < n; i++)
        spelling_try(&near, s[i].name);
    for (const char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
        if (find_segment(s, n, dot + 1) != NULL)
            near = (struct spelling){.found = dot + 1, .best = find_segment(s, n, dot + 1)->name};
    spelling_question(&near, question, sizeof question);
    if (listed < n)
        return file_error(error, path,
                          "tensor %.48s: the model has no tensor of that name%s%s %s and %zu more",
                          name, question, question[0] ? " It has" : ", but", list, n - listed);
    return file_error(error, path, "tensor %.48s: the model has no tensor of that name%s%s %s",
                      name, question, question[0] ? " It has" : ", but", list);
}

/* Returns the first segment of the model for which the file has no tensor. NULL: there is none. */
static const struct segment *missing(const struct safetensors_header *h, const struct segment *s,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < h->n && strcmp(h->tensors[k].name, s[i].name) != 0)
            k++;
        if (k == h->n)
            return &s[i];
    }
    return NULL;
}

static int check_dtype(const struct safetensors_tensor *t, const char *path,
                       char error[FILE_ERROR_MAX])
{
    if (t->dtype != SAFETENSORS_U8 && t->dtype != SAFETENSORS_OTHER)
        return 0;
    return file_error(error, path,
                      "dtype of %.48s: found %.16s, expected F32, or F16, BF16 or F64, which are "
                      "converted to float32",
                      t->name, t->dtype_name);
}

/* Checks that the file has exactly the model's segments. Names are unique in the file and in the
 * model, so it is enough that each tensor is found and that the counts are equal. */
static int check_segments(const struct safetensors_header *h, const struct segment *s, size_t n,
                          const char *path, char error[FILE_ERROR_MAX])
{
    for (size_t i = 0; i < h->n; i++) {
        const struct safetensors_tensor *t = &h->tensors[i];
        if (t->dtype == SAFETENSORS_COUNT)
            continue;
        int err = check_dtype(t, path, error);
        if (err < 0)
            return err;
        const struct segment *to = find_segment(s, n, t->name);
        if (to == NULL)
            return refuse_name(t->name, s, n, path, error);
        err = check_shape(t, to, path, error);
        if (err < 0)
            return err;
    }
    size_t found = h->n - h->n_counters;
    if (found == n)
        return 0;
    const struct segment *lacks = missing(h, s, n);
    assert(lacks != NULL);
    return file_error(error, path,
                      "header: found %zu tensor%s, expected %zu: tensor %s of the model is missing",
                      found, number_plural(found), n, lacks->name);
}

/* ---- Reading the values of tensors ---- */

enum { VALUE_BYTES_MAX = 8 };

/* Returns the size in bytes of one value of this dtype, or 0 if hearsay does not read values of
 * this dtype. */
static size_t value_bytes(enum safetensors_dtype dtype)
{
    switch (dtype) {
    case SAFETENSORS_F32:
        return 4;
    case SAFETENSORS_F16:
    case SAFETENSORS_BF16:
        return 2;
    case SAFETENSORS_F64:
        return 8;
    case SAFETENSORS_U8:
    case SAFETENSORS_OTHER:
    case SAFETENSORS_COUNT:
        return 0;
    }
    assert(false);
    return 0;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Converts little-endian bytes to doubles, without rounding. */
static void from_wire(enum safetensors_dtype dtype, const uint8_t *b, double *x, size_t n)
{
    size_t width = value_bytes(dtype);
    for (size_t i = 0; i < n; i++, b += width) {
        uint64_t bits = 0;
        for (size_t k = 0; k < width; k++)
            bits |= (uint64_t)b[k] << (8 * k);
        if (dtype == SAFETENSORS_F64)
            memcpy(x + i, &bits, sizeof bits);
        else if (dtype == SAFETENSORS_F16)
            x[i] = (double)half_of_float16((uint16_t)bits);
        else if (dtype == SAFETENSORS_BF16)
            x[i] = (double)half_of_bfloat16((uint16_t)bits);
        else
            x[i] = (double)float_of((uint32_t)bits);
    }
}

static int read_bytes(struct file *f, const struct safetensors_tensor *t, void *dst, size_t n,
                      const char *path, char error[FILE_ERROR_MAX])
{
    size_t got;
    int err = file_get(f, dst, n, &got, error);
    if (err == 0 && got < n)
        return file_error(error, path, "data of %.48s: the file ends early", t->name);
    return err;
}

/* Skips the bytes of a tensor. */
static int skip_tensor(struct file *f, const struct safetensors_tensor *t, const char *path,
                       char error[FILE_ERROR_MAX])
{
    uint8_t b[4096];
    int err = 0;
    for (uint64_t left = t->end - t->begin; left > 0 && err == 0;) {
        size_t n = left < sizeof b ? (size_t)left : sizeof b;
        err = read_bytes(f, t, b, n, path, error);
        left -= n;
    }
    return err;
}

/* Reads the values of one tensor and passes them to w->take() in pieces. If hearsay does not read
 * values of this dtype, take() gets one empty piece. */
static int walk_tensor(struct file *f, const struct safetensors_tensor *t,
                       const struct safetensors_walker *w, const char *path,
                       char error[FILE_ERROR_MAX])
{
    uint8_t b[WALK_VALUES * VALUE_BYTES_MAX];
    double x[WALK_VALUES];
    size_t width = value_bytes(t->dtype);
    uint64_t left = t->n;
    if (width == 0) {
        w->take(w->self, t, NULL, 0);
        return skip_tensor(f, t, path, error);
    }
    do {
        size_t n = left < WALK_VALUES ? (size_t)left : WALK_VALUES;
        int err = read_bytes(f, t, b, n * width, path, error);
        if (err < 0)
            return err;
        from_wire(t->dtype, b, x, n);
        w->take(w->self, t, x, n);
        left -= n;
    } while (left > 0);
    return 0;
}

/* Destination of a tensor's values, and the number of values stored so far. */
struct filling
{
    float *to;
    size_t at;
};

static void fill(void *self, const struct safetensors_tensor *t, const double *x, size_t n)
{
    struct filling *f = self;
    (void)t;
    for (size_t i = 0; i < n; i++)
        f->to[f->at++] = (float)x[i];
}

/* Reads one tensor into its segment of x, and checks that its values are finite and, where
 * required, not negative. */
static int read_tensor(struct file *f, const struct safetensors_tensor *t, const struct segment *to,
                       float *x, const char *path, char error[FILE_ERROR_MAX])
{
    struct filling filling = {.to = x + to->offset};
    struct safetensors_walker w = {.take = fill, .self = &filling};
    const float *dst = filling.to;
    /* The tensor has the shape of the segment `to`, because check_segments() refuses a file with
     * another shape. */
    assert(t->n == to->n);
    int err = walk_tensor(f, t, &w, path, error);
    if (err < 0)
        return err;
    if (!vec_finite(dst, to->n))
        return file_error(error, path,
                          "data of %.48s: found NaN or infinity, expected finite values%s", t->name,
                          t->dtype == SAFETENSORS_F64 ? " within float32's range" : "");
    for (size_t i = 0; i < to->n && to->nonnegative; i++)
        if (dst[i] < 0)
            return file_error(error, path,
                              "data of %.48s: found %g at place %zu, expected no negative value",
                              t->name, (double)dst[i], i);
    return 0;
}

/* Reads a model. `input` true: from now on the program refuses to overwrite this file
 * (nn/files/replace.h). All floats are read into a buffer first. x changes only after the last
 * float has been read and found finite. */
static int read_model(const char *path, bool input, const struct segment *s, size_t n, float *x,
                      char error[FILE_ERROR_MAX])
{
    struct safetensors_header h;
    struct file *f;
    int err = open_checked(&h, &f, path, input, error);
    if (err < 0)
        return err;
    err = check_segments(&h, s, n, path, error);
    size_t n_bytes = err == 0 ? (size_t)h.n_elements * sizeof(float) : 0;
    float *y = err == 0 ? malloc(n_bytes + 1) : NULL; /* Buffer for all floats of the model. */
    if (err == 0 && y == NULL)
        err = file_no_memory(error, path);
    for (size_t i = 0; i < h.n && err == 0; i++) {
        const struct safetensors_tensor *t = &h.tensors[i];
        err = t->dtype == SAFETENSORS_COUNT
                  ? skip_tensor(f, t, path, error)
                  : read_tensor(f, t, find_segment(s, n, t->name), y, path, error);
    }
    if (err == 0)
        memcpy(x, y, n_bytes);
    free(y);
    safetensors_header_close(&h);
    file_close(f);
    return err;
}

int safetensors_read(const char *path, const struct segment *s, size_t n, float *x,
                     char error[FILE_ERROR_MAX])
{
    return read_model(path, true, s, n, x, error);
}

int safetensors_read_no_input(const char *path, const struct segment *s, size_t n, float *x,
                              char error[FILE_ERROR_MAX])
{
    return read_model(path, false, s, n, x, error);
}

int safetensors_walk(const char *path, const struct safetensors_walker *w,
                     char error[FILE_ERROR_MAX])
{
    struct safetensors_header h;
    struct file *f;
    int err = open_checked(&h, &f, path, true, error);
    if (err < 0)
        return err;
    for (size_t i = 0; i < h.n && err == 0; i++)
        err = h.tensors[i].dtype == SAFETENSORS_COUNT
                  ? skip_tensor(f, &h.tensors[i], path, error)
                  : walk_tensor(f, &h.tensors[i], w, path, error);
    safetensors_header_close(&h);
    file_close(f);
    return err;
}

int safetensors_info(const char *path, struct safetensors_info *info, char error[FILE_ERROR_MAX])
{
    *info = (struct safetensors_info){0};
    struct safetensors_header h;
    struct file *f;
    int err = open_checked(&h, &f, path, false, error);
    if (err < 0)
        return err;
    info->n_tensors = h.n - h.n_counters;
    info->n_floats = h.n_elements;
    err = safetensors_header_meta(&h, &info->meta, &info->n_meta, path, error);
    if (err < 0)
        safetensors_info_close(info);
    safetensors_header_close(&h);
    file_close(f);
    return err;
}

const char *safetensors_value(const struct safetensors_info *info, const char *key)
{
    return safetensors_meta_value(info->meta, info->n_meta, key);
}

void safetensors_info_close(struct safetensors_info *info)
{
    safetensors_meta_close(info->meta, info->n_meta);
    *info = (struct safetensors_info){0};
}
