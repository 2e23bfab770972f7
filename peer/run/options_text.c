/* peer/run/options_text.c -- names of options as environment variables, and suggestions for
 * mistyped names. */
#include "peer/run/options.h"

#include "nn/math/spelling.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    ENV_PREFIX = 8, /* Length of the prefix "HEARSAY_" of environment variables. */
    /* Size of the buffer for the name of an environment variable, in bytes with the NUL. */
    ENV_NAME_MAX = 64
};

void options_env_name(const char *name, char *out, size_t cap)
{
    int n = snprintf(out, cap, "HEARSAY_%s", name);
    assert(n > 0 && (size_t)n < cap);
    for (char *p = out; *p != '\0'; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

bool options_named(const struct option_row *row, const char *name)
{
    return strcmp(row->name, name) == 0 || (row->former != NULL && strcmp(row->former, name) == 0);
}

/* State of the search for the option to which an environment variable belongs. `found`: the
 * variable belongs to an option. `meant`: name of the most similar option so far. */
struct stray
{
    const char *variable, *meant;
    bool found;
};

/* Compares s->variable with the environment variables of one option. `former`: the option's former
 * name, or NULL. A former name is accepted but never suggested. */
static void try_name(struct stray *s, const char *name, const char *former)
{
    char known[ENV_NAME_MAX], best[ENV_NAME_MAX];
    if (former != NULL) {
        options_env_name(former, known, sizeof known);
        s->found |= strcmp(s->variable, known) == 0;
    }
    options_env_name(name, known, sizeof known);
    s->found |= strcmp(s->variable, known) == 0;
    if (!spelling_enough(s->variable + ENV_PREFIX, known + ENV_PREFIX))
        return;
    if (s->meant != NULL)
        options_env_name(s->meant, best, sizeof best);
    if (s->meant == NULL
        || spelling_distance(s->variable, known) < spelling_distance(s->variable, best))
        s->meant = name;
}

bool options_unknown_variable(const struct command *commands, const char *variable,
                              const char **meant)
{
    struct stray s = {.variable = variable};
    if (strncmp(variable, "HEARSAY_", ENV_PREFIX) != 0)
        return false;
    /* HEARSAY_LIBRARY belongs to no option: the Python package reads it. */
    if (strcmp(variable, "HEARSAY_LIBRARY") == 0)
        return false;
    for (const struct command *c = commands; c->name != NULL; c++) {
        const struct run_key *key;
        for (const struct option_row *row = c->rows; row->name != NULL; row++)
            if (row->kind != OPTION_OPERAND)
                try_name(&s, row->name, row->former);
        for (const struct option_row *row = options_shared_rows; row->name != NULL; row++)
            try_name(&s, row->name, row->former);
        for (size_t k = 0; c->takes_run_flags && (key = run_key_at(c->trainer, k)) != NULL; k++)
            try_name(&s, key->name, key->former);
    }
    *meant = s.meant;
    return !s.found;
}

static bool has_flag(const struct command *c, const char *name)
{
    for (const struct option_row *row = c->rows; row->name != NULL; row++)
        if (row->kind != OPTION_OPERAND && options_named(row, name))
            return true;
    return false;
}

bool options_commands_with_flag(const struct command *commands, const char *name,
                                char out[OPTIONS_COMMANDS_MAX])
{
    size_t n = 0;
    out[0] = '\0';
    for (const struct command *c = commands; c != NULL && c->name != NULL; c++)
        if (has_flag(c, name) && n < OPTIONS_COMMANDS_MAX)
            n += (size_t)snprintf(out + n, OPTIONS_COMMANDS_MAX - n, "%s%s", n > 0 ? ", " : "",
                                  c->name);
    return n > 0;
}
