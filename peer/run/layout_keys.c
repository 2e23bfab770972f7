/* peer/run/layout_keys.c -- table of the run keys that describe the tensors of a model that a
 * program provides. */
#include "peer/run/layout_keys.h"

#include "peer/run/key.h"

#include <assert.h>
#include <stdio.h>

static_assert(sizeof(struct layout_values) <= RUN_OWN_MAX, "struct layout_values does not fit in "
                                                           "the run's space for trainer keys");

const struct layout_values *layout_values(const struct run *r)
{
    assert(r->trainer == &layout_keys);
    return (const void *)r->own;
}

void layout_copy_initial(struct run *to, const struct run *from)
{
    struct layout_values *v = (void *)to->own;
    assert(to->trainer == &layout_keys);
    memcpy(v->begin, layout_values(from)->begin, sizeof v->begin);
}

/* Two runs have an order only if they differ in nothing but the hash of the initial model. To
 * find out, the hash of `a` is copied into `alike`, a copy of `b`, and the texts are compared. */
int layout_compare_initial(const struct run *a, const struct run *b)
{
    char text_a[WIRE_RUN_MAX + 1], text_b[WIRE_RUN_MAX + 1];
    if (a->trainer != &layout_keys || b->trainer != &layout_keys)
        return 0;
    struct run alike = *b;
    layout_copy_initial(&alike, a);
    run_text(a, text_a);
    run_text(&alike, text_b);
    return strcmp(text_a, text_b) == 0 ? strcmp(layout_values(a)->begin, layout_values(b)->begin)
                                       : 0;
}

static int canonical(const char *name, const char *value, size_t n_digits, char out[RUN_VALUE_MAX],
                     char error[RUN_ERROR_MAX])
{
    char expected[32];
    size_t digits = strspn(value, "0123456789abcdef");
    snprintf(expected, sizeof expected, "%zu hexadecimal digits", n_digits);
    if (digits != n_digits || value[digits] != '\0')
        return run_refuse(error, name, value, expected);
    memcpy(out, value, n_digits + 1);
    return 0;
}

static int canonical_tensors(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    return canonical("tensors", value, LAYOUT_HASH - 1, out, error);
}

static int canonical_outline(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    size_t n = strlen(value);
    bool digits =
        n > 0 && n < LAYOUT_OUTLINE && n % 2 == 0 && strspn(value, "0123456789abcdef") == n;
    if (!digits && strcmp(value, "none") != 0)
        return run_refuse(error, "outline", value, "none, or 2 to 192 hexadecimal digits");
    memcpy(out, value, n + 1);
    return 0;
}

static int canonical_begin(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    return canonical("begin", value, LAYOUT_BEGIN - 1, out, error);
}

#define LAYOUT_MOST ((uint64_t)1 << 40)
#define FIELD(f)    RUN_OWN_FIELD(struct layout_values, f)

/* clang-format off */
static const struct run_key keys[] = {
    {.name = "tensors", .kind = RUN_TEXT, .fallback = "0000000000000000",
     .help = "hash of the tensors' names, shapes, types and roles",
     .canonical = canonical_tensors, FIELD(tensors)},
    {.name = "begin", .kind = RUN_TEXT, .fallback = "00000000000000000000000000000000",
     .help = "hash of the tensors' initial values",
     .canonical = canonical_begin, FIELD(begin)},
    {.name = "outline", .kind = RUN_TEXT, .fallback = "none",
     .help = "a few digits of each tensor's hash",
     .canonical = canonical_outline, FIELD(outline)},
    {.name = "trained", .kind = RUN_UINT, .fallback = "0",
     .help = "number of trained parameters in all tensors",
     .min = 0, .max = LAYOUT_MOST, FIELD(trained)},
    {.name = "floats", .kind = RUN_UINT, .fallback = "0",
     .help = "number of floats in all tensors, including running statistics",
     .min = 0, .max = LAYOUT_MOST, FIELD(floats)},
    {.name = NULL}};
/* clang-format on */

static int check(const struct run *r, char error[RUN_ERROR_MAX])
{
    const struct layout_values *v = layout_values(r);
    char found[24];
    snprintf(found, sizeof found, "%llu", (unsigned long long)v->trained);
    return v->trained <= v->floats
               ? 0
               : run_refuse(error, "trained", found, "at most the number of floats of the model");
}

const struct run_trainer layout_keys = {.keys = keys, .check = check};
