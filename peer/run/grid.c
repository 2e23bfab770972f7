/* peer/run/grid.c -- --sweep and --seeds taken apart, and the flags of each run put together. */
#include "peer/run/grid.h"

#include "nn/math/near.h"
#include "nn/math/number.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What no run may have of its own, and why; and what is not handed to the runs. */
static const struct
{
    const char *name, *why;
} ours[] = {
    {"seed", "--seeds N takes N seeds, from --seed on"},
    {"out", "each run has a directory of its own in it"},
    {"config", "a file of settings is read once, for all runs"},
    {"sweep", "it cannot sweep itself"},
    {"seeds", "all settings have the same seeds"},
    {"json", NULL},
    {"print-config", NULL},
};

enum { OURS = sizeof ours / sizeof *ours };

static size_t find_ours(const char *name)
{
    size_t i = 0;
    while (i < OURS && strcmp(ours[i].name, name) != 0)
        i++;
    return i;
}

bool grid_asked(const struct options *o)
{
    return options_given(o, "sweep") || options_given(o, "seeds");
}

/* ---- Axes. ---- */

__attribute__((format(printf, 2, 3))) static int refuse(char error[OPTIONS_ERROR_MAX],
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, OPTIONS_ERROR_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

static const struct option_value *find_value(const struct options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (o->values[i].row->kind != OPTION_OPERAND && strcmp(o->values[i].row->name, name) == 0)
            return &o->values[i];
    return NULL;
}

/* Nobody knows the key: which may have been meant? */
static int refuse_unknown(const struct options *o, const char *key, char error[OPTIONS_ERROR_MAX])
{
    char question[NEAR_QUESTION_MAX];
    struct near near = {.found = key};
    for (uint32_t i = 0; i < o->n; i++)
        if (o->values[i].row->kind != OPTION_OPERAND && o->values[i].row->kind != OPTION_FLAG
            && find_ours(o->values[i].row->name) == OURS)
            near_try(&near, o->values[i].row->name);
    return refuse(error, "--sweep: found the key '%.80s', which is no flag of hearsay %s%s", key,
                  o->command->name, near_question(&near, question, sizeof question));
}

/* Can the key be swept? A value from where --sweep is, too, contradicts it; elsewhere it gives way. */
static int check_key(const struct grid *g, const char *key, char error[OPTIONS_ERROR_MAX])
{
    const struct option_value *v = find_value(g->o, key);
    size_t i = find_ours(key);
    if (v == NULL)
        return refuse_unknown(g->o, key, error);
    if (v->row->kind == OPTION_FLAG)
        return refuse(error, "--sweep: --%s takes no value, so that there is nothing to sweep",
                      key);
    if (i < OURS)
        return refuse(error, "--sweep: found the key '%s': %s", key, ours[i].why);
    for (uint32_t a = 0; a < g->n_axes; a++)
        if (strcmp(g->axis[a].key, key) == 0)
            return refuse(error, "--sweep: found the key '%s' twice, expected it once", key);
    if (v->source >= OPTION_FILE && v->source >= find_value(g->o, "sweep")->source)
        return refuse(error, "--%s and --sweep %s=... contradict each other", key, key);
    return 0;
}

/* "KEY=V,V,...", cut apart in place. */
static int add_axis(struct grid *g, char *text, char error[OPTIONS_ERROR_MAX])
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return refuse(error, "--sweep: found '%.80s', expected KEY=VALUE,VALUE,...", text);
    *equals = '\0';
    if (g->n_axes == GRID_AXES_MAX)
        return refuse(error, "--sweep: found more than %d keys, expected at most so many",
                      GRID_AXES_MAX);
    int err = check_key(g, text, error);
    if (err < 0)
        return err;
    struct grid_axis *a = &g->axis[g->n_axes++];
    *a = (struct grid_axis){.key = text};
    for (char *at = equals + 1, *comma; at != NULL; at = comma) {
        comma = strchr(at, ',');
        if (comma != NULL)
            *comma++ = '\0';
        if (at[0] == '\0')
            return refuse(error, "--sweep %s: found no value between two commas or at an end",
                          a->key);
        for (uint32_t i = 0; i < a->n; i++)
            if (strcmp(a->value[i], at) == 0)
                return refuse(error, "--sweep %s: found '%.80s' twice, expected it once", a->key,
                              at);
        if (a->n == GRID_VALUES_MAX)
            return refuse(error, "--sweep %s: found more than %d values, expected at most so many",
                          a->key, GRID_VALUES_MAX);
        a->value[a->n++] = at;
    }
    return 0;
}

/* All --sweep: axes stand behind each other, or with blanks between. */
static int add_axes(struct grid *g, char error[OPTIONS_ERROR_MAX])
{
    static const char blanks[] = " \t";
    const char *const *given;
    uint32_t n = options_operands(g->o, &given);
    char *to = g->text;
    for (uint32_t i = 0; i < n; i++)
        for (const char *p = given[i] + strspn(given[i], blanks); *p != '\0';
             p += strspn(p, blanks)) {
            size_t len = strcspn(p, blanks);
            if (len + 1 > (size_t)(g->text + sizeof g->text - to))
                return refuse(error, "--sweep: found more than %d characters, expected fewer",
                              GRID_TEXT_MAX - 1);
            memcpy(to, p, len);
            to[len] = '\0';
            int err = add_axis(g, to, error);
            if (err < 0)
                return err;
            to += len + 1;
            p += len;
        }
    if (n > 0 && g->n_axes == 0)
        return refuse(error, "--sweep: found blanks only, expected KEY=VALUE,VALUE,...");
    return 0;
}

int grid_open(struct grid *g, const struct options *o, char error[OPTIONS_ERROR_MAX])
{
    char name[GRID_NAME_MAX];
    g->o = o;
    g->n_axes = 0;
    g->n_settings = 1;
    g->n_seeds = (uint32_t)options_uint(o, "seeds");
    int err = add_axes(g, error);
    if (err < 0)
        return err;
    if (!number_whole(options_text(o, "seed"), &g->seed)) /* The key's row has been checked. */
        assert(false && "a seed that is no number");
    for (uint32_t a = 0; a < g->n_axes; a++) {
        if ((uint64_t)g->n_settings * g->axis[a].n * g->n_seeds > GRID_RUNS_MAX)
            return refuse(error, "--sweep: found more than %d runs, expected at most so many",
                          GRID_RUNS_MAX);
        g->n_settings *= g->axis[a].n;
    }
    for (uint32_t s = 0; s < g->n_settings; s++)
        if (!grid_name(g, s, name))
            return refuse(error,
                          "--sweep: found a setting that is too long for the name of a directory "
                          "(%.80s...), expected fewer than %d characters",
                          name, GRID_NAME_MAX);
    return 0;
}

/* ---- Settings and runs. ---- */

/* The last axis goes fastest. */
const char *grid_value(const struct grid *g, uint32_t setting, uint32_t axis)
{
    for (uint32_t a = g->n_axes; a-- > axis + 1;)
        setting /= g->axis[a].n;
    return g->axis[axis].value[setting % g->axis[axis].n];
}

/* Appends a text, what a directory's name cannot have written as %2F. False: no room. */
static bool append(char out[GRID_NAME_MAX], size_t *n, const char *text)
{
    for (; *text != '\0'; text++) {
        char piece[4] = {*text};
        if (*text == '/' || *text == '%')
            snprintf(piece, sizeof piece, "%%%02X", (unsigned)(unsigned char)*text);
        if (*n + strlen(piece) >= GRID_NAME_MAX)
            return false;
        *n += (size_t)snprintf(out + *n, GRID_NAME_MAX - *n, "%s", piece);
    }
    return true;
}

bool grid_name(const struct grid *g, uint32_t setting, char out[GRID_NAME_MAX])
{
    size_t n = 0;
    bool fits = true;
    out[0] = '\0';
    for (uint32_t a = 0; a < g->n_axes && fits; a++)
        fits = append(out, &n, a > 0 ? "," : "") && append(out, &n, g->axis[a].key)
               && append(out, &n, "=") && append(out, &n, grid_value(g, setting, a));
    return fits;
}

static bool is_swept(const struct grid *g, const char *name)
{
    uint32_t a = 0;
    while (a < g->n_axes && strcmp(g->axis[a].key, name) != 0)
        a++;
    return a < g->n_axes;
}

void grid_flags(const struct grid *g, uint32_t setting, uint64_t seed, const char *out,
                const struct grid_sink *sink)
{
    char text[24];
    for (uint32_t i = 0; i < g->o->n; i++) {
        const struct option_value *v = &g->o->values[i];
        const char *name = v->row->name;
        bool flag = v->row->kind == OPTION_FLAG;
        if (v->source < OPTION_FILE || v->row->kind == OPTION_OPERAND || find_ours(name) < OURS
            || is_swept(g, name) || (flag && !options_flag(g->o, name)))
            continue;
        sink->flag(sink->self, name, flag ? NULL : v->text);
    }
    for (uint32_t a = 0; a < g->n_axes; a++)
        sink->flag(sink->self, g->axis[a].key, grid_value(g, setting, a));
    snprintf(text, sizeof text, "%" PRIu64, seed);
    sink->flag(sink->self, "seed", text);
    sink->flag(sink->self, "out", out);
}
