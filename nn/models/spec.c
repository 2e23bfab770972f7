/* nn/models/spec.c -- parses model specs such as "resnet:20", and prints them in canonical form. */
#include "nn/models/spec.h"

#include "nn/math/number.h"
#include "nn/math/spelling.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Parses one number from 1 to MODEL_WIDTH_MAX. Returns the position after the number, or NULL if it
 * is invalid. */
static const char *parse_size(const char *p, uint32_t *size)
{
    uint64_t v = 0;
    p = number_digits(p, MODEL_WIDTH_MAX, &v);
    *size = (uint32_t)v;
    return v > 0 ? p : NULL;
}

/* ---- Parsers of the text after the name of each kind of model. They return NULL if the text is
 * valid, otherwise words that say what was expected. ---- */

static const char *parse_nothing(const char *p, struct model_sizes *sizes)
{
    (void)sizes;
    return p == NULL ? NULL : "expected nothing after the name";
}

/* Parses the widths of an mlp. At least two are needed: inputs and classes. */
static const char *parse_widths(const char *p, struct model_sizes *sizes)
{
    if (p == NULL)
        return "expected sizes";
    for (;;) {
        if (sizes->n == MODEL_SIZES_MAX)
            return "expected at most 32 sizes";
        p = parse_size(p, &sizes->size[sizes->n]);
        if (p == NULL)
            return "expected sizes from 1 to 65536 with \"-\" between";
        sizes->n++;
        if (*p == '\0')
            break;
        if (*p++ != '-')
            return "expected only digits and \"-\" after \"mlp:\"";
    }
    return sizes->n < 2 ? "expected at least two sizes" : NULL;
}

/* Parses the text after the colon of a spec: no text, or "bn" for a model with norm layers.
 * vgg11:bn is the network vgg11_bn of torchvision. */
static const char *parse_bn(const char *p, struct model_sizes *sizes)
{
    if (p == NULL)
        return NULL;
    sizes->n = 1;
    return strcmp(p, "bn") == 0 ? NULL : "expected nothing or \":bn\" after the name";
}

/* Accepts the depths in the paper of He et al., 6k + 2: three stages of k blocks with two layers
 * each, and two more layers. */
static const char *parse_resnet(const char *p, struct model_sizes *sizes)
{
    sizes->n = 1;
    p = p == NULL ? NULL : parse_size(p, &sizes->size[0]);
    if (p == NULL || *p != '\0' || sizes->size[0] > MODEL_RESNET_MAX || sizes->size[0] < 8
        || sizes->size[0] % 6 != 2)
        return "expected 6k + 2 layers, 8 to 1202";
    return NULL;
}

/* Parses a width with an optional number of layers before it, such as "256" or "2x256". */
static const char *parse_stack(const char *p, struct model_sizes *sizes)
{
    static const char expected[] =
        "expected LAYERSxWIDTH or WIDTH, at most 64 layers, widths up to 4096";
    sizes->n = 2;
    sizes->size[0] = 1;
    p = p == NULL ? NULL : parse_size(p, &sizes->size[1]);
    if (p != NULL && *p == 'x') {
        sizes->size[0] = sizes->size[1];
        p = parse_size(p + 1, &sizes->size[1]);
    }
    if (p == NULL || *p != '\0' || sizes->size[0] > 64 || sizes->size[1] > 4096)
        return expected;
    return NULL;
}

/* At most 8 layers, because nn/layers/lstm.c has parameter names for no more. */
static const char *parse_lstm(const char *p, struct model_sizes *sizes)
{
    const char *why = parse_stack(p, sizes);
    return why == NULL && sizes->size[0] > 8 ? "expected at most 8 layers" : why;
}

/* The width must be a multiple of MODEL_HEAD, because each attention head has this width. */
static const char *parse_gpt(const char *p, struct model_sizes *sizes)
{
    const char *why = parse_stack(p, sizes);
    return why == NULL && sizes->size[1] % MODEL_HEAD != 0
               ? "expected a width that is a multiple of 32"
               : why;
}

/* The kinds of models, in the order of enum model_kind. `parse` gets the text after the colon, or
 * NULL if the spec has no colon. */
static const struct
{
    const char *name;
    const char *example; /* Example of a valid spec of this kind of model, for error messages. */
    /* Character that separates the sizes, as 'x' in "lstm:2x256". 0: this kind of model has no
     * sizes to separate. */
    char between;
    const char *(*parse)(const char *p, struct model_sizes *sizes);
} kinds[MODEL_KINDS] = {
    [MODEL_LOGREG] = {"logreg", "logreg", 0, parse_nothing},
    [MODEL_MLP] = {"mlp", "mlp:784-512-10", '-', parse_widths},
    [MODEL_LENET5] = {"lenet5", "lenet5:bn", 0, parse_bn},
    [MODEL_VGG11] = {"vgg11", "vgg11:bn", 0, parse_bn},
    [MODEL_RESNET] = {"resnet", "resnet:20", 0, parse_resnet},
    [MODEL_LSTM] = {"lstm", "lstm:2x256", 'x', parse_lstm},
    [MODEL_GPT] = {"gpt", "gpt:4x128", 'x', parse_gpt},
};

/* Reports an invalid text after the name of a kind of model, with a valid spec as example. A long
 * spec is shortened. */
static int refuse_sizes(char error[MODEL_ERROR_MAX], const char *spec, const char *why, size_t kind)
{
    snprintf(error, MODEL_ERROR_MAX, "model \"%.80s\": %s, as in %s", spec, why,
             kinds[kind].example);
    return MODEL_REFUSED;
}

static const char *name_at(size_t i)
{
    return i < MODEL_KINDS ? kinds[i].name : NULL;
}

static bool is_valid(const char *spec)
{
    char canonical[MODEL_SPEC_MAX], error[MODEL_ERROR_MAX];
    return model_spec(spec, canonical, error) == 0;
}

/* Reports that the name in `spec` is not the name of a kind of model. The message lists one valid
 * spec per kind. */
static int refuse_name(char error[MODEL_ERROR_MAX], const char *spec)
{
    static const struct spelling_specs specs = {name_at, is_valid};
    char question[SPELLING_QUESTION_MAX];
    size_t at =
        (size_t)snprintf(error, MODEL_ERROR_MAX, "model \"%.80s\": expected one such as ", spec);
    for (size_t i = 0; i < MODEL_KINDS; i++)
        at += (size_t)snprintf(error + at, MODEL_ERROR_MAX - at, "%s%s", kinds[i].example,
                               i + 2 < MODEL_KINDS   ? ", "
                               : i + 1 < MODEL_KINDS ? " or "
                                                     : "");
    at += (size_t)snprintf(error + at, MODEL_ERROR_MAX - at, "%s",
                           spelling_spec(&specs, spec, question));
    assert(at < MODEL_ERROR_MAX);
    return MODEL_REFUSED;
}

/* The name of a spec ends at the first colon. The parser for this kind of model, kinds[i].parse,
 * checks the text after the colon. */
int model_parse(const char *spec, enum model_kind *kind, struct model_sizes *sizes,
                char error[MODEL_ERROR_MAX])
{
    *sizes = (struct model_sizes){0};
    size_t n_name = strcspn(spec, ":");
    for (size_t i = 0; i < MODEL_KINDS; i++) {
        if (strlen(kinds[i].name) != n_name || strncmp(spec, kinds[i].name, n_name) != 0)
            continue;
        *kind = (enum model_kind)i;
        const char *why = kinds[i].parse(spec[n_name] == ':' ? spec + n_name + 1 : NULL, sizes);
        return why == NULL ? 0 : refuse_sizes(error, spec, why, i);
    }
    return refuse_name(error, spec);
}

/* Prints the canonical spec. Two peers compare their canonical specs to find out whether their
 * models are the same. */
void model_print(enum model_kind kind, const struct model_sizes *sizes, char spec[MODEL_SPEC_MAX])
{
    const char *name = kinds[kind].name;
    if (kind == MODEL_VGG11 || kind == MODEL_LENET5) {
        snprintf(spec, MODEL_SPEC_MAX, "%s%s", name, sizes->n ? ":bn" : "");
        return;
    }
    size_t at = (size_t)snprintf(spec, MODEL_SPEC_MAX, "%s", name);
    bool one = kind == MODEL_LSTM && sizes->size[0] == 1;
    for (size_t i = one ? 1 : 0; i < sizes->n; i++)
        at += (size_t)snprintf(spec + at, MODEL_SPEC_MAX - at, "%c%u",
                               i > (one ? 1 : 0) ? kinds[kind].between : ':',
                               (unsigned)sizes->size[i]);
    /* A spec has at most 32 sizes of at most 6 characters, which always fit into MODEL_SPEC_MAX
     * bytes. */
    assert(at < MODEL_SPEC_MAX);
}

int model_spec(const char *spec, char canonical[MODEL_SPEC_MAX], char error[MODEL_ERROR_MAX])
{
    enum model_kind kind;
    struct model_sizes sizes;
    int err = model_parse(spec, &kind, &sizes, error);
    if (err == 0)
        model_print(kind, &sizes, canonical);
    return err;
}

bool model_has_norm(const char *spec)
{
    char error[MODEL_ERROR_MAX];
    enum model_kind kind;
    struct model_sizes sizes;
    if (model_parse(spec, &kind, &sizes, error) != 0)
        return false;
    return kind == MODEL_RESNET || ((kind == MODEL_VGG11 || kind == MODEL_LENET5) && sizes.n == 1);
}
