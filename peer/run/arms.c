/* peer/run/arms.c -- the file of `hearsay compare` taken apart and multiplied out. */
#include "peer/run/arms.h"

#include "nn/math/near.h"
#include "nn/math/number.h"
#include "peer/run/options_config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALIDATE ",validate=0.1"
enum {
    EVALUATIONS =
        20 /* A run has so many where nothing else is said: curves are drawn through them. */
};

/* What the runs do not get, and who has it. */
static const struct
{
    const char *name, *why; /* NULL: the comparison's own, at the top. */
} ours[] = {
    {"command", NULL},
    {"seeds", NULL},
    {"seed", NULL},
    {"budget", NULL},
    {"out", "each run has a directory of its own in --out of hearsay compare"},
    {"config", "this file is the settings"},
    {"print-config", "it is a run's alone"},
    {"sweep", "a list of values is swept: lr = 0.01, 0.1"},
    {"fresh", "runs that are there are kept: another --out begins anew"},
    {"json", "it is a flag of hearsay compare"},
    {"tensorboard", "runs side by side would write into one directory; hearsay report makes event "
                    "files later"},
    {"metrics", "runs side by side would listen at one port"},
};
enum { OURS = sizeof ours / sizeof *ours };

static size_t find_ours(const char *name)
{
    size_t i = 0;
    while (i < OURS && strcmp(ours[i].name, name) != 0)
        i++;
    return i;
}

/* ---- Sentences. ---- */

struct reading
{
    struct arms *a;
    const char *path;
    char *error;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct reading *r, unsigned line,
                                                        const char *format, ...)
{
    char why[OPTIONS_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (line > 0)
        snprintf(r->error, OPTIONS_ERROR_MAX, "%.120s line %u: %.360s", r->path, line, why);
    else
        snprintf(r->error, OPTIONS_ERROR_MAX, "--set: %.480s", why);
    return -EINVAL;
}

/* ---- Lines. ---- */

/* A text kept; NULL: no room, of which a file with its own limit has enough. */
static char *keep(struct arms *a, const char *text, size_t n)
{
    if (n + 1 > sizeof a->text - a->n_text)
        return NULL;
    char *kept = a->text + a->n_text;
    memcpy(kept, text, n);
    kept[n] = '\0';
    a->n_text += n + 1;
    return kept;
}

static char *trimmed(char *p)
{
    static const char blanks[] = " \t\r";
    p += strspn(p, blanks);
    size_t n = strlen(p);
    while (n > 0 && strchr(blanks, p[n - 1]) != NULL)
        p[--n] = '\0';
    return p;
}

/* As words, or as numbers: 0.1 and 0.10 are one. */
static bool are_same(const char *a, const char *b)
{
    char *end_a, *end_b;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    bool numbers = *end_a == '\0' && *end_b == '\0' && a[0] != '\0';
    return strcmp(a, b) == 0 || (numbers && x >= y && x <= y);
}

/* Cut a list at its commas, in place. */
static int take_values(const struct reading *r, struct arms_setting *s, char *value, bool whole)
{
    for (char *at = value, *comma; at != NULL; at = comma) {
        comma = whole ? NULL : strchr(at, ',');
        if (comma != NULL)
            *comma++ = '\0';
        at = trimmed(at);
        if (at[0] == '\0')
            return refuse(r, s->line, "%s: found no value between two commas or at an end", s->key);
        for (uint32_t i = 0; i < s->n; i++)
            if (are_same(s->value[i], at))
                return refuse(r, s->line, "%s: found '%.80s' twice, expected it once", s->key, at);
        if (s->n == ARMS_VALUES_MAX)
            return refuse(r, s->line, "%s: found more than %d values, expected at most so many",
                          s->key, ARMS_VALUES_MAX);
        s->value[s->n++] = at;
    }
    return 0;
}

static int add_setting(const struct reading *r, uint32_t section, unsigned line, char *text)
{
    struct arms *a = r->a;
    struct options_setting found;
    char why[OPTIONS_ERROR_MAX];
    unsigned number = 0;
    const char *equals = strchr(text, '=');
    bool whole = equals != NULL && equals[1 + strspn(equals + 1, " \t\r")] == '"';
    if (options_setting_next(&text, &number, &found, why) <= 0)
        return refuse(r, line, "%s", why);
    if (a->n_settings == ARMS_SETTINGS_MAX)
        return refuse(r, line, "found more than %d settings, expected at most so many",
                      ARMS_SETTINGS_MAX);
    for (uint32_t i = 0; i < a->n_settings; i++)
        if (a->setting[i].section == section && (a->setting[i].line > 0) == (line > 0)
            && strcmp(a->setting[i].key, found.name) == 0)
            return refuse(r, line, "%.80s is set twice%s", found.name,
                          line > 0 ? " in its section" : "");
    struct arms_setting *s = &a->setting[a->n_settings++];
    *s = (struct arms_setting){.key = found.name, .section = section, .line = line};
    return take_values(r, s, found.value, whole || strcmp(found.name, "data") == 0);
}

/* "[name]", and perhaps a comment behind it. */
static int add_section(const struct reading *r, unsigned line, char *text)
{
    struct arms *a = r->a;
    char *end = strchr(text, ']');
    if (end == NULL)
        return refuse(r, line, "expected a ] at the end of a section's name");
    char *behind = end + 1 + strspn(end + 1, " \t\r");
    *end = '\0';
    char *name = trimmed(text + 1);
    if (*behind != '\0' && *behind != '#')
        return refuse(r, line, "expected nothing behind the ] of a section");
    if (name[0] == '\0')
        return refuse(r, line, "found a section without a name, expected [NAME]");
    for (const char *c = name; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            return refuse(r, line, "found a control character");
    for (uint32_t i = 1; i < a->n_sections; i++)
        if (strcmp(a->section[i], name) == 0)
            return refuse(r, line, "found the section [%.80s] twice, expected it once", name);
    if (a->n_sections == ARMS_SECTIONS_MAX)
        return refuse(r, line, "found more than %d sections, expected at most so many",
                      ARMS_SECTIONS_MAX - 1);
    a->section[a->n_sections++] = name;
    return 0;
}

static int read_lines(const struct reading *r, const char *text)
{
    unsigned line = 0;
    int err = 0;
    for (const char *p = text; *p != '\0' && err == 0;) {
        size_t n = strcspn(p, "\n");
        char *kept = keep(r->a, p, n);
        line++;
        if (kept == NULL)
            return refuse(r, line, "the file is too long");
        kept += strspn(kept, " \t\r");
        if (kept[0] == '[')
            err = add_section(r, line, kept);
        else if (kept[0] != '\0' && kept[0] != '#')
            err = add_setting(r, r->a->n_sections - 1, line, kept);
        p += n + (p[n] == '\n');
    }
    return err;
}

/* ---- What is the comparison's own. ---- */

/* A setting of the top, as --set has it or else the file; NULL. */
static const struct arms_setting *top(const struct arms *a, const char *key)
{
    const struct arms_setting *found = NULL;
    for (uint32_t i = 0; i < a->n_settings; i++)
        if (a->setting[i].section == 0 && strcmp(a->setting[i].key, key) == 0
            && (found == NULL || a->setting[i].line == 0))
            found = &a->setting[i];
    return found;
}

static int take_command(const struct reading *r, const struct command *commands)
{
    const struct arms_setting *s = top(r->a, "command");
    const char *name = s != NULL ? s->value[0] : "sim";
    if (s != NULL && (s->n > 1 || (strcmp(name, "sim") != 0 && strcmp(name, "local") != 0)))
        return refuse(r, s->line, "command: found '%.80s', expected sim or local",
                      s->n > 1 ? s->value[1] : name);
    while (commands->name != NULL && strcmp(commands->name, name) != 0)
        commands++;
    assert(commands->name != NULL);
    r->a->command = commands;
    return 0;
}

static int take_number(const struct reading *r, const char *key, uint64_t low, uint64_t high,
                       uint64_t fallback, uint64_t *out)
{
    const struct arms_setting *s = top(r->a, key);
    *out = fallback;
    if (s == NULL)
        return 0;
    if (s->n == 1 && number_whole(s->value[0], out) && *out >= low && *out <= high)
        return 0;
    return refuse(r, s->line,
                  "%s: found '%.80s', expected a whole number from %" PRIu64 " to %" PRIu64, key,
                  s->value[s->n - 1], low, high);
}

/* "bytes", "seconds:20". */
static bool read_budget(struct arms_budget *b, const char *text)
{
    size_t n = strcspn(text, ":");
    b->bytes = strncmp(text, "bytes", n) == 0 && n == strlen("bytes");
    b->most = 0;
    if (!b->bytes && !(strncmp(text, "seconds", n) == 0 && n == strlen("seconds")))
        return false;
    return text[n] == '\0' || (number_real(text + n + 1, &b->most) && b->most > 0);
}

static int take_budgets(const struct reading *r)
{
    const struct arms_setting *s = top(r->a, "budget");
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        if (r->a->n_budgets == ARMS_BUDGETS_MAX)
            return refuse(r, s->line, "budget: found more than %d, expected at most so many",
                          ARMS_BUDGETS_MAX);
        if (!read_budget(&r->a->budget[r->a->n_budgets++], s->value[i]))
            return refuse(r, s->line,
                          "budget: found '%.80s', expected bytes, seconds, bytes:N or seconds:X",
                          s->value[i]);
    }
    return 0;
}

/* Between two evaluations accuracy is on a line: without some there is none. */
static int check_points(const struct reading *r)
{
    for (uint32_t i = 0; r->a->n_budgets > 0 && i < r->a->n_arms; i++)
        if (arms_value(r->a, i, "rounds") == NULL && arms_value(r->a, i, "evaluate-every") == NULL)
            return refuse(r, top(r->a, "budget")->line,
                          "budget: found neither rounds nor evaluate-every in the arm '%.60s', "
                          "expected one: accuracy is known where a run is evaluated",
                          r->a->arm[i].name);
    return 0;
}

/* ---- Keys. ---- */

static const struct option_row *find_row(const struct command *c, const char *key)
{
    for (const struct option_row *row = c->rows; row->name != NULL; row++)
        if (strcmp(row->name, key) == 0)
            return row;
    return NULL;
}

/* options_takes_key() is of run keys only. */
static bool is_key(const struct command *c, const char *name)
{
    const struct run_key *key;
    if (find_row(c, name) != NULL)
        return true;
    for (size_t k = 0; (key = run_key_at(c->trainer, k)) != NULL; k++)
        if (strcmp(key->name, name) == 0)
            return options_takes_key(c, name);
    return false;
}

static int refuse_unknown(const struct reading *r, const struct arms_setting *s)
{
    const struct command *c = r->a->command;
    char question[NEAR_QUESTION_MAX];
    struct near near = {.found = s->key};
    for (const struct option_row *row = c->rows; row->name != NULL; row++)
        if (find_ours(row->name) == OURS)
            near_try(&near, row->name);
    const struct run_key *key;
    for (size_t k = 0; (key = run_key_at(c->trainer, k)) != NULL; k++)
        near_try(&near, key->name);
    for (size_t i = 0; i < OURS; i++)
        if (ours[i].why == NULL)
            near_try(&near, ours[i].name);
    return refuse(r, s->line, "found the key '%.80s', which is no flag of hearsay %s%s", s->key,
                  c->name, near_question(&near, question, sizeof question));
}

static int check_keys(const struct reading *r)
{
    for (uint32_t i = 0; i < r->a->n_settings; i++) {
        const struct arms_setting *s = &r->a->setting[i];
        size_t which = find_ours(s->key);
        if (which < OURS && ours[which].why != NULL)
            return refuse(r, s->line, "%s: %s", s->key, ours[which].why);
        if (which < OURS && s->section > 0)
            return refuse(r, s->line,
                          "%s: found in an arm, expected above the first: all arms share it",
                          s->key);
        if (which == OURS && !is_key(r->a->command, s->key))
            return refuse_unknown(r, s);
    }
    return 0;
}

/* ---- Arms. ---- */

/* How much a setting weighs in an arm of a section; 0: it is not of it. */
static int weight(const struct arms_setting *s, uint32_t section)
{
    return s->line == 0 ? 3 : s->section == section ? 2 : s->section == 0 ? 1 : 0;
}

static bool are_rivals(const struct command *c, const char *a, const char *b)
{
    const struct option_row *x = find_row(c, a), *y = find_row(c, b);
    return (x != NULL && x->rival != NULL && strcmp(x->rival, b) == 0)
           || (y != NULL && y->rival != NULL && strcmp(y->rival, a) == 0);
}

/* Does nothing weigh more that is of the same key, or a rival's? */
static bool counts(const struct arms *a, const struct arms_setting *s, uint32_t section)
{
    int w = weight(s, section);
    if (w == 0 || find_ours(s->key) < OURS)
        return false;
    for (uint32_t i = 0; i < a->n_settings; i++) {
        const struct arms_setting *t = &a->setting[i];
        if (weight(t, section) > w
            && (strcmp(t->key, s->key) == 0 || are_rivals(a->command, t->key, s->key)))
            return false;
    }
    return true;
}

static bool append(char out[ARMS_NAME_MAX], const char *text)
{
    size_t n = strlen(out), m = strlen(text);
    if (n + m >= ARMS_NAME_MAX)
        return false;
    memcpy(out + n, text, m + 1);
    return true;
}

/* A name as that of a directory: a slash is %2F there, and a dot %2E in front, and in the names of files
 * that lie beside. */
static bool write_dir(char out[ARMS_NAME_MAX], const char *name)
{
    size_t n = 0;
    bool file = strncmp(name, "compare.", 8) == 0;
    for (const char *p = name; *p != '\0'; p++) {
        bool odd = *p == '/' || *p == '%' || (*p == '.' && (p == name || file));
        if (n + 4 > ARMS_NAME_MAX)
            return false;
        n += (size_t)snprintf(out + n, ARMS_NAME_MAX - n, odd ? "%%%02X" : "%c",
                              (unsigned)(unsigned char)*p);
    }
    return n > 0;
}

/* One choice of values: `which` of them, the last key going fastest. */
static bool make_arm(const struct arms *a, struct arm *arm, uint32_t section,
                     const struct arms_setting *const *of, uint32_t n, uint32_t which)
{
    bool fits = section == 0 || append(arm->name, a->section[section]);
    uint32_t stride = 1;
    for (uint32_t i = 0; i < n; i++)
        stride *= of[i]->n;
    for (uint32_t i = 0; i < n && fits; i++) {
        stride /= of[i]->n;
        const char *value = of[i]->value[which / stride % of[i]->n];
        arm->pair[arm->n++] = (struct arms_pair){of[i]->key, value};
        if (of[i]->n > 1)
            fits = append(arm->name, arm->name[0] != '\0' ? "," : "")
                   && append(arm->name, of[i]->key) && append(arm->name, "=")
                   && append(arm->name, value);
    }
    if (fits && arm->name[0] == '\0')
        fits = append(arm->name, "run");
    return fits && write_dir(arm->dir, arm->name);
}

static int add_arms(const struct reading *r, uint32_t section)
{
    struct arms *a = r->a;
    const struct arms_setting *of[OPTIONS_MAX], *lr = NULL;
    uint32_t n = 0, n_choices = 1;
    for (uint32_t i = 0; i < a->n_settings; i++) {
        const struct arms_setting *s = &a->setting[i];
        if (!counts(a, s, section))
            continue;
        if (strcmp(s->key, "lr") == 0) {
            lr = s;
            continue;
        }
        assert(n < OPTIONS_MAX); /* Keys are the command's, each once. */
        of[n++] = s;
        n_choices *= s->n;
        if (n_choices > ARMS_MAX - a->n_arms)
            return refuse(r, s->line, "%s: found more than %d arms, expected at most so many",
                          s->key, ARMS_MAX);
    }
    for (uint32_t k = 0; k < n_choices; k++) {
        struct arm *arm = &a->arm[a->n_arms++];
        arm->lr = lr;
        if (!make_arm(a, arm, section, of, n, k))
            return refuse(r, n > 0 ? of[n - 1]->line : 1,
                          "found an arm whose name is too long for a directory (%.80s...)",
                          arm->name);
        for (uint32_t i = 0; i + 1 < a->n_arms; i++)
            if (strcmp(a->arm[i].name, arm->name) == 0)
                return refuse(r, n > 0 ? of[n - 1]->line : 1,
                              "found two arms of the name '%.80s', expected one", arm->name);
    }
    return 0;
}

/* One that had more learning rates to choose from would be favoured. */
static int check_rates(const struct reading *r)
{
    const struct arms *a = r->a;
    for (uint32_t i = 1; i < a->n_arms; i++)
        if (arms_rates(a, i) != arms_rates(a, 0))
            return refuse(r, a->arm[i].lr != NULL ? a->arm[i].lr->line : a->arm[0].lr->line,
                          "lr: found %u values for the arm '%.60s' and %u for '%.60s', expected as "
                          "many for each, so that none is favoured",
                          (unsigned)arms_rates(a, i), a->arm[i].name, (unsigned)arms_rates(a, 0),
                          a->arm[0].name);
    uint64_t runs = (uint64_t)a->n_arms * (a->n_seeds + arms_rates(a, 0));
    return runs <= ARMS_RUNS_MAX
               ? 0
               : refuse(r, 1, "found %" PRIu64 " runs, expected at most %d", runs, ARMS_RUNS_MAX);
}

static int read_all(const struct reading *r, const char *text, const char *const *sets,
                    uint32_t n_sets, const struct command *commands)
{
    uint64_t n_seeds = 1;
    int err = read_lines(r, text);
    for (uint32_t i = 0; i < n_sets && err == 0; i++) {
        char *kept = keep(r->a, sets[i], strlen(sets[i]));
        err = kept != NULL ? add_setting(r, 0, 0, kept) : refuse(r, 0, "too long");
    }
    err = err == 0 ? take_command(r, commands) : err;
    err = err == 0 ? check_keys(r) : err;
    err = err == 0 ? take_number(r, "seed", 0, UINT64_C(1) << 53, 1, &r->a->seed) : err;
    err = err == 0 ? take_number(r, "seeds", 1, 1000, 1, &n_seeds) : err;
    r->a->n_seeds = (uint32_t)n_seeds;
    err = err == 0 ? take_budgets(r) : err;
    uint32_t n = r->a->n_sections;
    for (uint32_t s = n > 1 ? 1 : 0; s < n && err == 0; s++)
        err = add_arms(r, s);
    err = err == 0 ? check_points(r) : err;
    return err == 0 ? check_rates(r) : err;
}

int arms_open(struct arms *a, const char *path, const char *text, const char *const *sets,
              uint32_t n_sets, const struct command *commands, char error[OPTIONS_ERROR_MAX])
{
    struct reading r = {.a = a, .path = path, .error = error};
    memset(a, 0, sizeof *a);
    a->n_sections = 1;
    a->section[0] = "";
    a->arm = calloc(ARMS_MAX, sizeof *a->arm);
    if (a->arm == NULL) {
        snprintf(error, OPTIONS_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    int err = read_all(&r, text, sets, n_sets, commands);
    if (err < 0)
        arms_close(a);
    return err;
}

void arms_close(struct arms *a)
{
    free(a->arm);
    a->arm = NULL;
    a->n_arms = 0;
}

/* ---- Learning rates. ---- */

uint32_t arms_rates(const struct arms *a, uint32_t arm)
{
    return a->arm[arm].lr != NULL ? a->arm[arm].lr->n : 1;
}

const char *arms_rate(const struct arms *a, uint32_t arm, uint32_t i)
{
    return a->arm[arm].lr != NULL ? a->arm[arm].lr->value[i] : NULL;
}

void arms_rate_dir(const struct arms *a, uint32_t arm, uint32_t i, char out[ARMS_NAME_MAX])
{
    char name[ARMS_NAME_MAX];
    const char *rate = arms_rate(a, arm, i);
    snprintf(name, sizeof name, "lr-%.60s", rate != NULL ? rate : "default");
    if (!write_dir(out, name))
        assert(false && "a name that is too long");
}

bool arms_rate_at_edge(const struct arms *a, uint32_t arm, uint32_t i)
{
    bool least = true, greatest = true;
    double x, y;
    if (arms_rates(a, arm) < 2 || !number_real(arms_rate(a, arm, i), &x))
        return false;
    for (uint32_t k = 0; k < arms_rates(a, arm); k++) {
        if (!number_real(arms_rate(a, arm, k), &y))
            return false;
        least &= x <= y;
        greatest &= x >= y;
    }
    return least || greatest;
}

/* ---- Flags. ---- */

const char *arms_value(const struct arms *a, uint32_t arm, const char *key)
{
    const struct arm *of = &a->arm[arm];
    for (uint32_t i = 0; i < of->n; i++)
        if (strcmp(of->pair[i].key, key) == 0)
            return of->pair[i].value;
    return NULL;
}

/* Curves need points: where the file does not say how many, a run of known length has EVALUATIONS. */
static void put_evaluations(const struct arms *a, uint32_t arm, const struct grid_sink *sink)
{
    char text[24];
    uint64_t rounds;
    const char *given = arms_value(a, arm, "rounds");
    if (arms_value(a, arm, "evaluate-every") != NULL || given == NULL
        || !number_whole(given, &rounds))
        return;
    uint64_t every = rounds / EVALUATIONS;
    snprintf(text, sizeof text, "%" PRIu64, every > 0 ? every : 1);
    sink->flag(sink->self, "evaluate-every", text);
}

void arms_flags(const struct arms *a, uint32_t arm, uint32_t rate, bool validate, uint64_t seed,
                const char *out, const struct grid_sink *sink)
{
    char text[RUN_VALUE_MAX + sizeof VALIDATE];
    const struct arm *of = &a->arm[arm];
    const char *data = arms_value(a, arm, "data"), *lr = arms_rate(a, arm, rate);
    for (uint32_t i = 0; i < of->n; i++) {
        const struct option_row *row = find_row(a->command, of->pair[i].key);
        bool flag = row != NULL && row->kind == OPTION_FLAG, on = true;
        if (validate && strcmp(of->pair[i].key, "data") == 0)
            continue;
        bool known = !flag || options_read_flag(of->pair[i].value, &on);
        if (on) /* What is no truth is refused as a flag with a value is. */
            sink->flag(sink->self, of->pair[i].key, flag && known ? NULL : of->pair[i].value);
    }
    if (validate) {
        snprintf(text, sizeof text, "%.*s%s", RUN_VALUE_MAX - 1, data != NULL ? data : "glyphs",
                 VALIDATE);
        sink->flag(sink->self, "data", text);
    }
    put_evaluations(a, arm, sink);
    if (lr != NULL)
        sink->flag(sink->self, "lr", lr);
    snprintf(text, sizeof text, "%" PRIu64, seed);
    sink->flag(sink->self, "seed", text);
    sink->flag(sink->self, "out", out);
}
