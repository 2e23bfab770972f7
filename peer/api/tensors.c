/* peer/api/tensors.c -- table of the caller's tensors, and copies to and from the flat vector. */
#include "peer/api/tensors.h"

#include "nn/math/half.h"
#include "nn/math/rng.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int refuse(char error[TENSORS_ERROR_MAX], int err,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, TENSORS_ERROR_MAX, format, args);
    va_end(args);
    return err;
}

static int no_memory(char error[TENSORS_ERROR_MAX])
{
    return refuse(error, -ENOMEM, "out of memory for the tensors");
}

void tensors_close(struct tensors *t)
{
    free(t->tensor);
    free(t->segment);
    *t = (struct tensors){0};
}

/* ---- Adding tensors to the table ---- */

static bool name_ok(const char *name)
{
    size_t n = strnlen(name, HEARSAY_NAME_MAX + 1);
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    return n >= 1 && n <= HEARSAY_NAME_MAX;
}

static const struct tensor *find(const struct tensors *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->tensor[i].name, name) == 0)
            return &t->tensor[i];
    return NULL;
}

static size_t width(enum hearsay_type type)
{
    return type == HEARSAY_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

/* Returns the number of elements of a tensor. 0: a dimension is 0, or the tensor is too large for
 * this machine. */
static size_t count(const struct tensor *one)
{
    size_t n = 1;
    for (uint32_t i = 0; i < one->n_dims; i++) {
        if (one->dims[i] == 0 || n > SIZE_MAX / sizeof(float) / one->dims[i])
            return 0;
        n *= one->dims[i];
    }
    return n;
}

static int check(const struct tensors *t, const struct tensor *one, char error[TENSORS_ERROR_MAX])
{
    if (!name_ok(one->name))
        return refuse(error, -EINVAL,
                      "tensor %zu: found the name '%.40s', expected 1 to %d printable bytes "
                      "without blanks",
                      t->n, one->name, HEARSAY_NAME_MAX);
    if (strcmp(one->name, "__metadata__") == 0)
        return refuse(error, -EINVAL,
                      "tensor %s: found a name that model files use for their metadata, expected "
                      "another name",
                      one->name);
    if (find(t, one->name) != NULL)
        return refuse(error, -EINVAL, "tensor %s: found twice, expected once", one->name);
    if (one->data == NULL || (uintptr_t)one->data % width(one->type) != 0)
        return refuse(error, -EINVAL,
                      "tensor %s: found data at %p, expected an address that is a multiple of %zu",
                      one->name, one->data, width(one->type));
    if (count(one) == 0)
        return refuse(error, -EINVAL, "tensor %s: found a shape without elements, or with too many",
                      one->name);
    if (t->n == TENSORS_MAX)
        return refuse(error, -EINVAL, "tensor %s: found more than %d tensors", one->name,
                      TENSORS_MAX);
    return 0;
}

int tensors_add(struct tensors *t, const struct tensor *one, char error[TENSORS_ERROR_MAX])
{
    int err = check(t, one, error);
    if (err < 0)
        return err;
    if (t->n == t->cap) {
        size_t cap = t->cap > 0 ? 2 * t->cap : 64;
        struct tensor *grown = realloc(t->tensor, cap * sizeof *grown);
        if (grown == NULL)
            return no_memory(error);
        t->tensor = grown;
        t->cap = cap;
    }
    t->tensor[t->n] = *one;
    t->tensor[t->n++].n = count(one);
    return 0;
}

/* ---- Finding the order of the tensors in memory ---- */

static enum segment_type segment_type(enum hearsay_type type)
{
    switch (type) {
    case HEARSAY_FLOAT32:
        return SEGMENT_FLOAT32;
    case HEARSAY_FLOAT16:
        return SEGMENT_FLOAT16;
    case HEARSAY_BFLOAT16:
        return SEGMENT_BFLOAT16;
    }
    return SEGMENT_FLOAT32;
}

static void make_segment(struct segment *s, const struct tensor *one)
{
    *s = (struct segment){.offset = one->offset,
                          .n = one->n,
                          .rows = one->n_dims > 1 ? one->dims[0] : 1,
                          .n_dims = one->n_dims,
                          .decays = one->n_dims > 1,
                          .trained = one->role == HEARSAY_TRAINED,
                          .nonnegative = one->role == HEARSAY_VARIANCE,
                          .type = one->role == HEARSAY_OPAQUE ? SEGMENT_OPAQUE
                                                              : segment_type(one->type)};
    s->cols = s->n / s->rows;
    memcpy(s->name, one->name, sizeof s->name);
    memcpy(s->dims, one->dims, sizeof s->dims);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)(*(struct tensor *const *)a)->data;
    uintptr_t y = (uintptr_t)(*(struct tensor *const *)b)->data;
    return (x > y) - (x < y);
}

/* Checks that no two tensors overlap in memory. In a round the library would write the shared bytes
 * twice, with different values. */
static int check_overlap(const struct tensors *t, char error[TENSORS_ERROR_MAX])
{
    const struct tensor **at = malloc(t->n * sizeof *at);
    int err = at != NULL ? 0 : no_memory(error);
    for (size_t i = 0; i < t->n && err == 0; i++)
        at[i] = &t->tensor[i];
    if (err == 0)
        qsort(at, t->n, sizeof *at, by_address);
    for (size_t i = 1; i < t->n && err == 0; i++)
        if ((uintptr_t)at[i]->data - (uintptr_t)at[i - 1]->data
            < at[i - 1]->n * width(at[i - 1]->type))
            err = refuse(
                error, -EINVAL,
                "tensors %s and %s: found shared memory, expected memory of its own for each",
                at[i - 1]->name, at[i]->name);
    free(at);
    return err;
}

/* Decides whether the flat vector x can be the caller's own memory: the tensors must be float32 and
 * contiguous in the order that they have in x. */
static void find_flat(struct tensors *t, struct tensor *const *in_order)
{
    float *first = in_order[0]->data;
    t->flat = first;
    for (size_t i = 0; i < t->n; i++)
        if (in_order[i]->type != HEARSAY_FLOAT32
            || (uintptr_t)in_order[i]->data
                   != (uintptr_t)first + in_order[i]->offset * sizeof(float))
            t->flat = NULL;
}

/* Gives each tensor its offset in the flat vector x, in the order of `in_order`, and makes the list
 * of segments of x. */
static int place(struct tensors *t, struct tensor *const *in_order, char error[TENSORS_ERROR_MAX])
{
    free(t->segment);
    t->n_floats = t->dim = 0;
    t->segment = calloc(t->n, sizeof *t->segment);
    if (t->segment == NULL)
        return no_memory(error);
    for (size_t i = 0; i < t->n; i++) {
        in_order[i]->offset = t->n_floats;
        make_segment(&t->segment[i], in_order[i]);
        t->n_floats += in_order[i]->n;
        t->dim += in_order[i]->role == HEARSAY_TRAINED ? in_order[i]->n : 0;
    }
    find_flat(t, in_order);
    return 0;
}

/* Returns the group that tensors of this role belong to: 0 trained tensors, 1 statistics, 2 opaque
 * tensors. In the flat vector x, group 0 comes first and group 2 last. */
static int role_group(enum hearsay_role role)
{
    switch (role) {
    case HEARSAY_TRAINED:
        return 0;
    case HEARSAY_STATISTIC:
    case HEARSAY_VARIANCE:
        return 1;
    case HEARSAY_OPAQUE:
        return 2;
    }
    return 2;
}

int tensors_lay(struct tensors *t, char error[TENSORS_ERROR_MAX])
{
    size_t at = 0;
    struct tensor **in_order = calloc(t->n + 1, sizeof *in_order);
    if (in_order == NULL)
        return no_memory(error);
    for (int part = 0; part < 3; part++)
        for (size_t i = 0; i < t->n; i++)
            if (role_group(t->tensor[i].role) == part)
                in_order[at++] = &t->tensor[i];
    int err = t->n == 0 || in_order[0]->role != HEARSAY_TRAINED
                  ? refuse(error, -EINVAL, "found no tensor that is trained, expected at least one")
                  : check_overlap(t, error);
    if (err == 0)
        err = place(t, in_order, error);
    free(in_order);
    return err;
}

static void shape_text(const uint32_t *dims, uint32_t n_dims, char out[96])
{
    size_t at = (size_t)snprintf(out, 96, "%s", n_dims == 0 ? "a scalar" : "");
    for (uint32_t i = 0; i < n_dims && at < 80; i++)
        at += (size_t)snprintf(out + at, 96 - at, i > 0 ? "x%u" : "%u", (unsigned)dims[i]);
}

static int same(const struct tensor *one, const struct segment *s, char error[TENSORS_ERROR_MAX])
{
    char found[96], expected[96];
    shape_text(one->dims, one->n_dims, found);
    shape_text(s->dims, s->n_dims, expected);
    if (strcmp(found, expected) != 0)
        return refuse(error, -EINVAL, "tensor %s: found the shape %s, expected the model's %s",
                      one->name, found, expected);
    if (one->type != HEARSAY_FLOAT32)
        return refuse(
            error, -EINVAL,
            "tensor %s: found %s, expected float32: `hearsay peer` holds the model in float32, and "
            "all peers of a run must have the same types",
            one->name, one->type == HEARSAY_FLOAT16 ? "float16" : "bfloat16");
    if ((one->role == HEARSAY_TRAINED) != s->trained)
        return refuse(error, -EINVAL, "tensor %s: found a tensor that is %strained, expected %s",
                      one->name, s->trained ? "not " : "",
                      s->trained ? "a parameter" : "a running statistic");
    return 0;
}

int tensors_lay_as(struct tensors *t, const struct segment *s, size_t n,
                   char error[TENSORS_ERROR_MAX])
{
    struct tensor **in_order = calloc(n + 1, sizeof *in_order);
    int err = in_order != NULL ? 0 : no_memory(error);
    for (size_t i = 0; i < n && err == 0; i++) {
        in_order[i] = (struct tensor *)find(t, s[i].name);
        err = in_order[i] == NULL
                  ? refuse(error, -EINVAL, "found no tensor %s, which the model has", s[i].name)
                  : same(in_order[i], &s[i], error);
        if (err == 0)
            in_order[i]->role = s[i].nonnegative ? HEARSAY_VARIANCE : in_order[i]->role;
    }
    if (err == 0 && t->n != n)
        err = refuse(error, -EINVAL, "found %zu tensors, expected the model's %zu", t->n, n);
    if (err == 0)
        err = check_overlap(t, error);
    if (err == 0)
        err = place(t, in_order, error);
    free(in_order);
    return err;
}

/* Returns tensor number `i` in the order of the flat vector x. */
static const struct tensor *tensor_at(const struct tensors *t, size_t i)
{
    return find(t, t->segment[i].name);
}

/* Hashes everything about a tensor that peers must agree on. `before`: hash of the tensors before
 * it. */
static uint64_t hash_one(const struct tensor *one, uint64_t before)
{
    char text[HEARSAY_NAME_MAX + 160], shape[96];
    shape_text(one->dims, one->n_dims, shape);
    int n = snprintf(text, sizeof text, "%016llx %s %s %d %d", (unsigned long long)before,
                     one->name, shape, (int)one->type, (int)one->role);
    return rng_hash(text, (size_t)n);
}

/* Hashes the tensors in the order that they have in the flat vector x, so another order gives
 * another hash. */
uint64_t tensors_layout(const struct tensors *t)
{
    uint64_t hash = rng_hash("hearsay", 7);
    for (size_t i = 0; i < t->n; i++)
        hash = hash_one(tensor_at(t, i), hash);
    return hash;
}

static void short_hash(const struct tensor *one, char digits[3])
{
    snprintf(digits, 3, "%02x", (unsigned)(hash_one(one, 0) & 0xff));
}

void tensors_outline(const struct tensors *t, char out[TENSORS_OUTLINE])
{
    size_t n = t->n < TENSORS_OUTLINED ? t->n : TENSORS_OUTLINED;
    for (size_t i = 0; i < n; i++)
        short_hash(tensor_at(t, i), out + 2 * i);
}

static void describe_form(const struct tensor *one, char out[TENSORS_ERROR_MAX])
{
    static const char *const types[] = {"float32", "float16", "bfloat16"};
    static const char *const roles[] = {"trained", "a statistic", "a variance", "opaque"};
    char shape[96];
    shape_text(one->dims, one->n_dims, shape);
    snprintf(out, TENSORS_ERROR_MAX, "%s of %s, %s", types[one->type], shape, roles[one->role]);
}

void tensors_describe(const struct tensors *t, size_t i, char out[TENSORS_ERROR_MAX])
{
    char form[TENSORS_ERROR_MAX];
    describe_form(tensor_at(t, i), form);
    snprintf(out, TENSORS_ERROR_MAX, "%s (%.200s)", t->segment[i].name, form);
}

/* If the short hash of the tensor `one` is `digits`, increments `*n_fit` and describes the tensor
 * in `out`. */
static void try_fit(const struct tensor *one, const char *digits, size_t *n_fit,
                    char out[TENSORS_ERROR_MAX])
{
    char own[3];
    short_hash(one, own);
    if (memcmp(own, digits, 2) != 0)
        return;
    (*n_fit)++;
    describe_form(one, out);
}

bool tensors_guess(const struct tensors *t, size_t i, const char *digits,
                   char out[TENSORS_ERROR_MAX])
{
    const struct tensor *own = tensor_at(t, i);
    size_t n_fit = 0;
    for (enum hearsay_type type = HEARSAY_FLOAT32; type <= HEARSAY_BFLOAT16; type++) {
        struct tensor other = *own;
        other.type = type;
        if (type != own->type)
            try_fit(&other, digits, &n_fit, out);
    }
    for (enum hearsay_role role = HEARSAY_TRAINED; role <= HEARSAY_OPAQUE; role++) {
        struct tensor other = *own;
        other.role = role;
        if (role != own->role)
            try_fit(&other, digits, &n_fit, out);
    }
    struct tensor turned = *own;
    for (uint32_t k = 0; k < own->n_dims; k++)
        turned.dims[k] = own->dims[own->n_dims - 1 - k];
    if (memcmp(turned.dims, own->dims, sizeof own->dims) != 0)
        try_fit(&turned, digits, &n_fit, out);
    return n_fit == 1;
}

bool tensors_first_difference(const struct tensors *a, const struct tensors *b, size_t *i)
{
    size_t n = a->n < b->n ? a->n : b->n;
    for (*i = 0; *i < n && hash_one(tensor_at(a, *i), 0) == hash_one(tensor_at(b, *i), 0);)
        ++*i;
    return *i < a->n || *i < b->n;
}

/* ---- Checking values for NaN and infinity ---- */

static float half_at(enum hearsay_type type, uint16_t h)
{
    return type == HEARSAY_FLOAT16 ? half_of_float16(h) : half_of_bfloat16(h);
}

static uint16_t half_of(enum hearsay_type type, float v)
{
    return type == HEARSAY_FLOAT16 ? half_to_float16(v) : half_to_bfloat16(v);
}

static bool finite_16(const struct tensor *one)
{
    const uint16_t *h = one->data;
    uint16_t exponent = one->type == HEARSAY_FLOAT16 ? 0x7c00u : 0x7f80u;
    for (size_t k = 0; k < one->n; k++)
        if ((h[k] & exponent) == exponent)
            return false;
    return true;
}

const struct tensor *tensors_first_not_finite(const struct tensors *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct tensor *one = &t->tensor[i];
        bool finite = one->type == HEARSAY_FLOAT32 ? vec_finite(one->data, one->n) : finite_16(one);
        if (!finite)
            return one;
    }
    return NULL;
}

/* ---- Copying values between tensors and the flat vector ---- */

void tensors_read(struct tensors *t, float *x)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct tensor *one = &t->tensor[i];
        const uint16_t *h = one->data;
        if (one->type == HEARSAY_FLOAT32)
            memmove(x + one->offset, one->data, one->n * sizeof *x);
        for (size_t k = 0; k < one->n && one->type != HEARSAY_FLOAT32; k++)
            x[one->offset + k] = half_at(one->type, h[k]);
    }
}

void tensors_gather(struct tensors *t, float *x)
{
    if (t->flat != NULL)
        return;
    for (size_t i = 0; i < t->n; i++) {
        const struct tensor *one = &t->tensor[i];
        const uint16_t *h = one->data;
        float *to = x + one->offset;
        t->bytes_copied += one->n * width(one->type);
        if (one->type == HEARSAY_FLOAT32)
            memcpy(to, one->data, one->n * sizeof *to);
        for (size_t k = 0; k < one->n && one->type != HEARSAY_FLOAT32; k++)
            to[k] += half_at(one->type, h[k]) - half_at(one->type, half_of(one->type, to[k]));
    }
}

void tensors_scatter(struct tensors *t, const float *x)
{
    if (t->flat != NULL)
        return;
    for (size_t i = 0; i < t->n; i++) {
        const struct tensor *one = &t->tensor[i];
        const float *from = x + one->offset;
        uint16_t *h = one->data;
        t->bytes_copied += one->n * width(one->type);
        if (one->type == HEARSAY_FLOAT32)
            memcpy(one->data, from, one->n * sizeof *from);
        for (size_t k = 0; k < one->n && one->type != HEARSAY_FLOAT32; k++)
            h[k] = half_of(one->type, from[k]);
    }
}
