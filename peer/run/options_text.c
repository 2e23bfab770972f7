/* peer/run/options_text.c -- names: how near two are, and how the environment spells one.
 *
 * Who mistypes a flag gets the nearest one proposed. Distance counts swapped
 * neighbours as one mistake, since that is how fingers err ("loacl").
 */
#include "peer/run/options.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    DISTANCE_MAX = 63, /* Bytes of a text that is compared. */
    ENV_PREFIX = 8,    /* Letters of "HEARSAY_". */
    ENV_NAME_MAX = 64  /* Bytes of "HEARSAY_...", with the NUL. */
};

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

size_t options_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > DISTANCE_MAX || nb > DISTANCE_MAX)
        return na + nb;
    /* now[j] is the distance of the first i bytes of a to the first j of b; a swap
     * looks two rows back, so three rows of the table are kept. */
    size_t rows[3][DISTANCE_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]
                && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        size_t *spare = before; /* The oldest row is written next. */
        before = last;
        last = now;
        now = spare;
    }
    return last[nb];
}

/* Short names bear one mistake, longer ones one more for each four letters; what has
 * nothing of b left is not near. */
bool options_near(const char *a, const char *b)
{
    size_t n = strlen(b), d = options_distance(a, b);
    return d <= (n + 2) / 4 + 1 && d < n;
}

void options_env_name(const char *name, char *out, size_t cap)
{
    int n = snprintf(out, cap, "HEARSAY_%s", name);
    assert(n > 0 && (size_t)n < cap);
    for (char *p = out; *p != '\0'; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* A search for the option that a variable names, and for the nearest one. */
struct stray
{
    const char *variable, *meant;
    bool found;
};

static void try_name(struct stray *s, const char *name)
{
    char known[ENV_NAME_MAX], best[ENV_NAME_MAX];
    options_env_name(name, known, sizeof known);
    s->found |= strcmp(s->variable, known) == 0;
    if (!options_near(s->variable + ENV_PREFIX, known + ENV_PREFIX))
        return;
    if (s->meant != NULL)
        options_env_name(s->meant, best, sizeof best);
    if (s->meant == NULL
        || options_distance(s->variable, known) < options_distance(s->variable, best))
        s->meant = name;
}

bool options_stray(const struct command *commands, const char *variable, const char **meant)
{
    struct stray s = {.variable = variable};
    if (strncmp(variable, "HEARSAY_", ENV_PREFIX) != 0)
        return false;
    for (const struct command *c = commands; c->name != NULL; c++) {
        const struct run_key *key;
        for (const struct option_row *row = c->rows; row->name != NULL; row++)
            if (row->kind != OPTION_OPERAND)
                try_name(&s, row->name);
        for (size_t k = 0; c->takes_run_flags && (key = run_key_at(c->trainer, k)) != NULL; k++)
            try_name(&s, key->name);
    }
    *meant = s.meant;
    return !s.found;
}

static bool has_flag(const struct command *c, const char *name)
{
    for (const struct option_row *row = c->rows; row->name != NULL; row++)
        if (row->kind != OPTION_OPERAND && strcmp(row->name, name) == 0)
            return true;
    return false;
}

bool options_owners(const struct command *commands, const char *name, char out[OPTIONS_OWNERS_MAX])
{
    size_t n = 0;
    out[0] = '\0';
    for (const struct command *c = commands; c != NULL && c->name != NULL; c++)
        if (has_flag(c, name) && n < OPTIONS_OWNERS_MAX)
            n += (size_t)snprintf(out + n, OPTIONS_OWNERS_MAX - n, "%s%s", n > 0 ? ", " : "",
                                  c->name);
    return n > 0;
}
