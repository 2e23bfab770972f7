#include "nn/model_spec.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* In the order of enum model_kind. */
static const struct
{
    const char *name;
    bool has_sizes;
} kinds[] = {{"logreg", false}, {"mlp", true}, {"lenet5", false}};

enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

/* All refusals end here: the spec (cut short where it is long), and why. */
static int refuse(char error[MODEL_ERROR_MAX], const char *spec,
                  const char *why)
{
    snprintf(error, MODEL_ERROR_MAX, "model \"%.80s\": %s", spec, why);
    return MODEL_REFUSED;
}

/* One decimal number in 1..MODEL_WIDTH_MAX. Returns the character behind it,
 * or NULL. */
static const char *parse_size(const char *p, uint32_t *size)
{
    uint32_t v = 0;
    const char *begin = p;
    for (; *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (uint32_t)(*p - '0');
        if (v > MODEL_WIDTH_MAX)
            return NULL;
    }
    *size = v;
    return p > begin && v > 0 ? p : NULL;
}

static int parse_sizes(const char *spec, const char *p,
                       struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    for (;;) {
        if (sizes->n == MODEL_SIZES_MAX)
            return refuse(error, spec, "more than 32 sizes");
        p = parse_size(p, &sizes->size[sizes->n]);
        if (p == NULL)
            return refuse(error, spec,
                          "expected sizes from 1 to 65536 with \"-\" "
                          "between, as in mlp:784-512-10");
        sizes->n++;
        if (*p == '\0')
            break;
        if (*p++ != '-')
            return refuse(error, spec,
                          "expected only digits and \"-\" after \"mlp:\"");
    }
    if (sizes->n < 2)
        return refuse(error, spec, "expected at least two sizes");
    return 0;
}

int model_parse(const char *spec, enum model_kind *kind,
                struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    sizes->n = 0;
    size_t n_name = strcspn(spec, ":");
    for (size_t i = 0; i < N_KINDS; i++) {
        if (strlen(kinds[i].name) != n_name ||
            strncmp(spec, kinds[i].name, n_name) != 0)
            continue;
        *kind = (enum model_kind)i;
        if (kinds[i].has_sizes != (spec[n_name] == ':'))
            return refuse(error, spec,
                          kinds[i].has_sizes ? "expected sizes, as in "
                                               "mlp:784-512-10"
                                             : "takes nothing after its name");
        return kinds[i].has_sizes
                   ? parse_sizes(spec, spec + n_name + 1, sizes, error)
                   : 0;
    }
    return refuse(error, spec, "expected logreg, mlp:SIZES or lenet5");
}

void model_print(enum model_kind kind, const struct model_sizes *sizes,
                 char spec[MODEL_SPEC_MAX])
{
    size_t at = (size_t)snprintf(spec, MODEL_SPEC_MAX, "%s", kinds[kind].name);
    for (size_t i = 0; i < sizes->n; i++)
        at += (size_t)snprintf(spec + at, MODEL_SPEC_MAX - at, "%c%u",
                               i ? '-' : ':', (unsigned)sizes->size[i]);
    assert(at < MODEL_SPEC_MAX); /* 32 sizes of 8 characters fit... */
}

int model_spec(const char *spec, char canonical[MODEL_SPEC_MAX],
               char error[MODEL_ERROR_MAX])
{
    enum model_kind kind;
    struct model_sizes sizes;
    int err = model_parse(spec, &kind, &sizes, error);
    if (err == 0)
        model_print(kind, &sizes, canonical);
    return err;
}
