/* peer/run/options.c -- parses the command line, the environment and the --config file, using a
 * command's table of options.
 *
 * getopt_long splits argv into options. Its own error messages are replaced by messages that name
 * the flag, and abbreviated names are refused. Other files compare names (options_text.c) and write
 * --help (options_help.c). */
#include "peer/run/options.h"

#include "nn/math/number.h"
#include "nn/math/spelling.h"
#include "peer/run/options_config.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum {
    FORMER_MAX = 16, /* Largest number of options of one command that have a former name. */
    /* Value that getopt_long returns for the first option in options.values[]. For the option with
     * index i it returns LONG_BASE + i. These values are larger than any one-letter name. */
    LONG_BASE = 256,
    /* Value that getopt_long returns for --help. */
    LONG_HELP = 255,
    /* Size of the buffer for the name of an environment variable or of a flag, in bytes with the
     * NUL. */
    ENV_NAME_MAX = 64
};

/* ---- Finding options in the tables. ---- */

static const struct option_row *find_row(const struct option_row *rows, const char *name)
{
    for (; rows->name != NULL; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

const char *options_key_arg(const struct run_key *key)
{
    switch (key->kind) {
    case RUN_UINT:
        return "N";
    case RUN_REAL:
        return "X";
    case RUN_TEXT:
        return "SPEC";
    case RUN_CHOICE:
        return key->choices;
    }
    return NULL;
}

bool options_takes_key(const struct command *command, const char *name)
{
    if (!command->takes_run_flags || find_row(command->rows, name) != NULL)
        return false;
    const char *const *key = command->keys;
    while (key != NULL && *key != NULL && strcmp(*key, name) != 0)
        key++;
    /* A command without a table of keys (NULL) takes all run keys. */
    return key == NULL || *key != NULL;
}

static void add_rows(struct options *o, const struct option_row *rows)
{
    for (const struct option_row *row = rows; row->name != NULL; row++) {
        assert(o->n < OPTIONS_MAX);
        o->values[o->n++].row = row;
    }
}

/* Fills `o->values` with one entry per option: first the command's own options, then the options
 * that several commands share, then the run keys. */
static void collect_rows(struct options *o, const struct command *command)
{
    *o = (struct options){.command = command, .run.trainer = command->trainer};
    add_rows(o, command->rows);
    if (command->takes_run_flags)
        add_rows(o, options_shared_rows);
    const struct run_key *key;
    for (size_t k = 0; (key = run_key_at(command->trainer, k)) != NULL; k++) {
        if (!options_takes_key(command, key->name))
            continue;
        assert(o->n < OPTIONS_MAX);
        /* The parser accepts any text as the value of a run key, and run_flags_set() checks the
         * value later. */
        struct option_row *row = &o->run_rows[o->n_run_rows++];
        *row = (struct option_row){.name = key->name,
                                   .kind = OPTION_TEXT,
                                   .arg = options_key_arg(key),
                                   .fallback = key->fallback,
                                   .former = key->former,
                                   .help = key->help};
        o->values[o->n++].row = row;
    }
    for (uint32_t i = 0; i < o->n; i++) {
        o->values[i].text = o->values[i].row->fallback;
        o->values[i].source = o->values[i].text != NULL ? OPTION_DEFAULT : OPTION_UNSET;
    }
}

static bool is_run_row(const struct options *o, const struct option_row *row)
{
    return row >= o->run_rows && row < o->run_rows + o->n_run_rows;
}

static struct option_value *find_value(struct options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (options_named(o->values[i].row, name))
            return &o->values[i];
    return NULL;
}

static bool is_rival(const struct option_row *row, const struct option_row *of)
{
    return row->rival != NULL && strcmp(row->rival, of->name) == 0;
}

/* Returns whether an option that excludes option `v` was given in a source of higher precedence
 * than `source`. If two options exclude each other, only one of their two table rows names the
 * other option. Therefore both rows are checked. */
static bool excluding_option_wins(const struct options *o, const struct option_value *v,
                                  enum option_source source)
{
    for (uint32_t i = 0; i < o->n; i++) {
        const struct option_value *w = &o->values[i];
        if (w->source > source && (is_rival(v->row, w->row) || is_rival(w->row, v->row)))
            return true;
    }
    return false;
}

/* ---- Checking one value. ---- */

/* Returns whether `v` is in the range of the option. If max <= min there is no upper limit. */
static bool in_range(const struct option_row *row, double v)
{
    return v >= row->min && (row->max <= row->min || v <= row->max);
}

static void expected_number(const struct option_row *row, char *out, size_t cap)
{
    const char *kind = row->kind == OPTION_UINT ? "a whole number" : "a number";
    if (row->max > row->min)
        snprintf(out, cap, "%s from %.15g to %.15g", kind, row->min, row->max);
    else if (row->kind == OPTION_UINT && row->min > 0)
        snprintf(out, cap, "%s from %.15g on", kind, row->min);
    else if (row->kind == OPTION_REAL)
        snprintf(out, cap, "%s of %.15g or more", kind, row->min);
    else
        snprintf(out, cap, "%s", kind);
}

/* Returns whether `text` is a valid value for the option `row`. `expected` receives a description
 * of valid values, for the end of the error message. */
static bool value_is_valid(const struct option_row *row, const char *text, char *expected,
                           size_t cap)
{
    uint64_t u;
    double d;
    bool on;
    char room[SPELLING_CHOICES_MAX], question[SPELLING_QUESTION_MAX];
    struct spelling near = {.found = text};
    switch (row->kind) {
    case OPTION_UINT:
        expected_number(row, expected, cap);
        return number_whole(text, &u) && in_range(row, (double)u);
    case OPTION_REAL:
        expected_number(row, expected, cap);
        return number_real(text, &d) && in_range(row, d);
    case OPTION_CHOICE:
        spelling_try_choices(&near, row->arg, room);
        snprintf(expected, cap, "%s%s", row->arg,
                 spelling_question(&near, question, sizeof question));
        return number_choice(row->arg, text) >= 0;
    case OPTION_FLAG:
        snprintf(expected, cap, "1 or 0");
        return options_read_flag(text, &on);
    case OPTION_TEXT:
    case OPTION_OPERAND:
        snprintf(expected, cap, "%s", row->arg != NULL ? row->arg : "a value");
        return text[0] != '\0';
    }
    assert(false && "unknown kind of option");
    return false;
}

/* Writes the name under which a user has given a value, for an error message: the flag "--peers",
 * the variable "HEARSAY_PEERS", or the operand "FILE". */
static const char *place(const struct option_row *row, enum option_source source,
                         char out[ENV_NAME_MAX])
{
    if (row->kind == OPTION_OPERAND)
        snprintf(out, ENV_NAME_MAX, "%s", row->arg);
    else if (source == OPTION_ENVIRONMENT)
        options_env_name(row->name, out, ENV_NAME_MAX);
    else
        snprintf(out, ENV_NAME_MAX, "--%s", row->name);
    return out;
}

/* Returns the buffer for the value with which options_io.expand replaces the value of the run key
 * `name`. If an option is given twice, both values use the same buffer. */
static struct options_expanded *expanded(struct options *o, const char *name)
{
    struct options_expanded *e = o->expanded;
    while (e->name != NULL && strcmp(e->name, name) != 0)
        e++;
    assert(e < o->expanded + OPTIONS_EXPANDED_MAX);
    e->name = name;
    return e;
}

/* Checks a run flag's value and stores it in `o->run`. If options_io.expand replaces the value,
 * `*text` points to the new value: for a file of edges, to the edges themselves. */
static int take_run_flag(struct options *o, const char *name, const char **text,
                         char error[OPTIONS_ERROR_MAX])
{
    if (o->world->expand != NULL) {
        char made[RUN_VALUE_MAX], broken[OPTIONS_ERROR_MAX];
        int replaced = o->world->expand(name, *text, made, broken);
        if (replaced < 0) {
            snprintf(error, OPTIONS_ERROR_MAX, "--%s: %.*s", name, OPTIONS_ERROR_MAX - ENV_NAME_MAX,
                     broken);
            return replaced;
        }
        if (replaced > 0)
            *text = memcpy(expanded(o, name)->text, made, sizeof made);
    }
    char why[RUN_ERROR_MAX];
    if (run_flags_set(&o->run, name, *text, why) == 0)
        return 0;
    snprintf(error, OPTIONS_ERROR_MAX, "%s", why);
    return -EINVAL;
}

/* Adds one value of an operand that takes many values. The operand's own entry `*v` always has the
 * first of these values. */
static int add_operand(struct options *o, struct option_value *v, char error[OPTIONS_ERROR_MAX])
{
    if (o->n_operands == OPTIONS_OPERANDS_MAX) {
        snprintf(error, OPTIONS_ERROR_MAX, "found more than %d values of %s", OPTIONS_OPERANDS_MAX,
                 v->row->kind == OPTION_OPERAND ? v->row->arg : v->row->name);
        return -EINVAL;
    }
    o->operand[o->n_operands++] = v->text;
    v->text = o->operand[0];
    return 0;
}

/* Checks the value `text` and stores it with its source. Returns 0, or -EINVAL with a message. */
static int take_value(struct options *o, struct option_value *v, const char *text,
                      enum option_source source, char error[OPTIONS_ERROR_MAX])
{
    char where[ENV_NAME_MAX], expected[160];
    if (!value_is_valid(v->row, text, expected, sizeof expected)) {
        snprintf(error, OPTIONS_ERROR_MAX, "%s: found '%.120s', expected %s",
                 place(v->row, source, where), text, expected);
        return -EINVAL;
    }
    if (is_run_row(o, v->row) && take_run_flag(o, v->row->name, &text, error) != 0) {
        if (source == OPTION_ENVIRONMENT) {
            /* `error` names the flag, but the user has set an environment variable. The name of the
             * variable is therefore put in front of the message. */
            char why[OPTIONS_ERROR_MAX];
            memcpy(why, error, sizeof why);
            snprintf(error, OPTIONS_ERROR_MAX, "%s: %.*s", place(v->row, source, where),
                     OPTIONS_ERROR_MAX - ENV_NAME_MAX - 3, why);
        }
        return -EINVAL;
    }
    v->text = text;
    v->source = source;
    return v->row->many ? add_operand(o, v, error) : 0;
}

/* ---- Reading the command line. ---- */

static bool is_run_key(const struct command *command, const char *name)
{
    const struct run_key *key;
    for (size_t k = 0; (key = run_key_at(command->trainer, k)) != NULL; k++)
        if (strcmp(key->name, name) == 0 || (key->former != NULL && strcmp(key->former, name) == 0))
            return true;
    return false;
}

/* Returns the flag with the name most similar to the mistyped `name`, or NULL if no flag is
 * similar. */
static const char *nearest_flag(const struct options *o, const char *name)
{
    struct spelling near = {.found = name};
    for (uint32_t i = 0; i < o->n && name[0]; i++)
        if (o->values[i].row->kind != OPTION_OPERAND)
            spelling_try(&near, o->values[i].row->name);
    return spelling_meant(&near);
}

/* Writes the error message for an unknown flag. A run key that this command does not take, and a
 * flag that only other commands have, get special messages. For any other flag the message suggests
 * the most similar name. */
static void unknown_flag(const struct options *o, const char *element,
                         char error[OPTIONS_ERROR_MAX])
{
    char name[ENV_NAME_MAX] = "";
    size_t n = strcspn(element, "=");
    if (element[1] == '-' && n - 2 < sizeof name)
        memcpy(name, element + 2, n - 2);
    if (o->command->takes_run_flags && is_run_key(o->command, name)) {
        snprintf(error, OPTIONS_ERROR_MAX, "--%s: %s", name, o->command->no_key);
        return;
    }
    char owners[OPTIONS_COMMANDS_MAX];
    if (options_commands_with_flag(o->world->commands, name, owners)) {
        snprintf(error, OPTIONS_ERROR_MAX, "--%s is a flag of hearsay %s only", name, owners);
        return;
    }
    const char *best = nearest_flag(o, name);
    snprintf(error, OPTIONS_ERROR_MAX, "unknown flag %.*s%s%s%s", n < 120 ? (int)n : 120, element,
             best != NULL ? ", did you mean --" : "", best != NULL ? best : "",
             best != NULL ? "?" : "");
}

/* Writes the error message for the argument `element`, which getopt_long has refused. */
static void refused(const struct options *o, int answer, int which, const char *element,
                    char error[OPTIONS_ERROR_MAX])
{
    const struct option_row *row = which >= LONG_BASE ? o->values[which - LONG_BASE].row : NULL;
    for (uint32_t i = 0; i < o->n && row == NULL && which > 0; i++)
        if (o->values[i].row->short_name == which)
            row = o->values[i].row;
    if (answer == ':' && row != NULL)
        snprintf(error, OPTIONS_ERROR_MAX, "--%s needs a value (%s)", row->name,
                 row->arg != NULL ? row->arg : "VALUE");
    else if (row != NULL && row->kind == OPTION_FLAG)
        snprintf(error, OPTIONS_ERROR_MAX, "--%s takes no value, found '%.120s'", row->name,
                 element);
    else
        unknown_flag(o, element, error);
}

/* Stores a positional argument as the first operand that has no value yet. If every operand has a
 * value, the argument goes to the operand that takes many values. */
static int take_operand(struct options *o, const char *text, char error[OPTIONS_ERROR_MAX])
{
    for (uint32_t i = 0; i < o->n; i++) {
        struct option_value *v = &o->values[i];
        if (v->row->kind == OPTION_OPERAND && (v->row->many || v->source != OPTION_COMMAND_LINE))
            return take_value(o, v, text, OPTION_COMMAND_LINE, error);
    }
    const char *stray = o->command->stray;
    const struct option_value *meant = stray != NULL ? find_value(o, stray) : NULL;
    char expected[160];
    bool suited = meant != NULL && value_is_valid(meant->row, text, expected, sizeof expected);
    snprintf(error, OPTIONS_ERROR_MAX, "unexpected argument '%.120s'%s%s%s%.120s%s", text,
             suited ? ", did you mean --" : "", suited ? stray : "", suited ? " " : "",
             suited ? text : "", suited ? "?" : "");
    return -EINVAL;
}

/* Stores an option that getopt_long has found in the argument `element`. `i`: index of the option
 * in o->values[]. Returns 0, or -EINVAL with a message. */
static int take_option(struct options *o, uint32_t i, const char *element, const char *text,
                       char error[OPTIONS_ERROR_MAX])
{
    struct option_value *v = &o->values[i];
    const char *name = v->row->name, *former = v->row->former;
    bool is_long = element[0] == '-' && element[1] == '-';
    if (is_long && strncmp(element + 2, name, strlen(name)) != 0
        && (former == NULL || strncmp(element + 2, former, strlen(former)) != 0)) {
        /* getopt_long accepts an abbreviated name, but hearsay does not. */
        unknown_flag(o, element, error);
        return -EINVAL;
    }
    if (v->row->kind == OPTION_FLAG)
        text = "1";
    else if (text[0] == '-' && text[1] == '-' && strchr(element, '=') == NULL) {
        /* In "--out --json" the value of --out is missing. In "--out=--json" the value is
         * "--json". */
        snprintf(error, OPTIONS_ERROR_MAX, "--%s needs a value (%s), found the flag %.120s", name,
                 v->row->arg != NULL ? v->row->arg : "VALUE", text);
        return -EINVAL;
    }
    return take_value(o, v, text, OPTION_COMMAND_LINE, error);
}

/* Converts the command's options to the tables `longs` and `shorts` that getopt_long needs. */
static void getopt_tables(const struct options *o,
                          struct option longs[OPTIONS_MAX + FORMER_MAX + 2],
                          char shorts[2 * OPTIONS_MAX + 8])
{
    size_t n = 0, s = 0;
    /* The leading '-' makes getopt_long return positional arguments in order, with result 1. The
     * ':' makes its result ':' for a missing value, and '?' only for an unknown flag. */
    shorts[s++] = '-';
    shorts[s++] = ':';
    shorts[s++] = 'h';
    longs[n++] = (struct option){"help", no_argument, NULL, LONG_HELP};
    for (uint32_t i = 0; i < o->n; i++) {
        const struct option_row *row = o->values[i].row;
        if (row->kind == OPTION_OPERAND)
            continue;
        bool flag = row->kind == OPTION_FLAG;
        const char *names[] = {row->name, row->former};
        for (size_t k = 0; k < 2 && names[k] != NULL; k++) {
            assert(n < OPTIONS_MAX + FORMER_MAX + 1);
            longs[n++] = (struct option){names[k], flag ? no_argument : required_argument, NULL,
                                         LONG_BASE + (int)i};
        }
        if (row->short_name != 0) {
            shorts[s++] = row->short_name;
            if (!flag)
                shorts[s++] = ':';
        }
    }
    longs[n] = (struct option){NULL, 0, NULL, 0};
    shorts[s] = '\0';
}

/* Returns the index in o->values[] of the option for which getopt_long has returned `answer`. */
static uint32_t row_of(const struct options *o, int answer)
{
    if (answer >= LONG_BASE)
        return (uint32_t)(answer - LONG_BASE);
    uint32_t i = 0;
    while (i < o->n && o->values[i].row->short_name != answer)
        i++;
    assert(i < o->n);
    return i;
}

static int read_command_line(struct options *o, int argc, char **argv,
                             char error[OPTIONS_ERROR_MAX])
{
    struct option longs[OPTIONS_MAX + FORMER_MAX + 2];
    char shorts[2 * OPTIONS_MAX + 8];
    getopt_tables(o, longs, shorts);
    opterr = 0;
    optind = 0; /* With optind = 0, glibc's getopt_long starts again from the first argument. */
    for (;;) {
        const char *element = optind == 0 ? argv[1] : argv[optind];
        int answer = getopt_long(argc, argv, shorts, longs, NULL);
        int err = 0;
        if (answer == -1)
            break;
        if (answer == 'h' || (answer == LONG_HELP && strcmp(element, "--help") == 0))
            return optind < argc && strcmp(argv[optind], "all") == 0 ? OPTIONS_WANT_ALL_HELP
                                                                     : OPTIONS_WANT_HELP;
        if (answer == LONG_HELP) {
            unknown_flag(o, element, error);
            return -EINVAL;
        }
        if (answer == '?' || answer == ':') {
            refused(o, answer, optopt, element, error);
            return -EINVAL;
        }
        if (answer == 1)
            err = take_operand(o, optarg, error);
        else
            err = take_option(o, row_of(o, answer), element, optarg, error);
        if (err != 0)
            return err;
    }
    for (int i = optind; i < argc; i++) /* All arguments after "--" are operands. */
        if (take_operand(o, argv[i], error) != 0)
            return -EINVAL;
    return OPTIONS_OK;
}

/* ---- Reading the environment. ---- */

/* Reads from the environment those options that the command line has not set. Returns 0, or -EINVAL
 * with a message. */
static int read_environment(struct options *o, char error[OPTIONS_ERROR_MAX])
{
    for (uint32_t i = 0; i < o->n; i++) {
        struct option_value *v = &o->values[i];
        if (v->row->kind == OPTION_OPERAND || v->source == OPTION_COMMAND_LINE
            || excluding_option_wins(o, v, OPTION_ENVIRONMENT))
            continue;
        char name[ENV_NAME_MAX];
        options_env_name(v->row->name, name, sizeof name);
        const char *text = o->world->env(name);
        if ((text == NULL || text[0] == '\0') && v->row->former != NULL) {
            options_env_name(v->row->former, name, sizeof name);
            text = o->world->env(name);
        }
        if (text != NULL && text[0] != '\0'
            && take_value(o, v, text, OPTION_ENVIRONMENT, error) != 0)
            return -EINVAL;
    }
    return 0;
}

/* ---- Reading the --config file. ---- */

/* Stores one setting of the --config file. Ignores the setting if the command line or the
 * environment has set this option, or an option that excludes it. `seen`: for each option, the line
 * of the file that sets it; 0: none so far. */
static int take_setting(struct options *o, const struct options_setting *s, unsigned *seen,
                        char error[OPTIONS_ERROR_MAX])
{
    char element[ENV_NAME_MAX];
    struct option_value *v = find_value(o, s->name);
    bool shared = v != NULL && find_row(options_shared_rows, s->name) != NULL;
    if (v == NULL || v->row->kind == OPTION_OPERAND || shared) {
        snprintf(element, sizeof element, "--%.60s", s->name);
        if (shared)
            snprintf(error, OPTIONS_ERROR_MAX,
                     "%s: only allowed on the command line, not in a "
                     "configuration file",
                     element);
        else
            unknown_flag(o, element, error);
        return -EINVAL;
    }
    if (seen[v - o->values] > 0) {
        snprintf(error, OPTIONS_ERROR_MAX, "--%s is set twice: line %u sets it, too", s->name,
                 seen[v - o->values]);
        return -EINVAL;
    }
    seen[v - o->values] = s->line;
    if (v->source > OPTION_FILE || excluding_option_wins(o, v, OPTION_FILE))
        return 0;
    return take_value(o, v, s->value, OPTION_FILE, error);
}

/* Reads from the --config file those options that neither the command line nor the environment has
 * set. */
static int read_file(struct options *o, char error[OPTIONS_ERROR_MAX])
{
    char why[OPTIONS_ERROR_MAX], *at = o->file;
    unsigned line = 0, seen[OPTIONS_MAX] = {0};
    struct options_setting s;
    const char *path = o->command->takes_run_flags ? options_text(o, "config") : NULL;
    if (path == NULL || o->world->read == NULL)
        return 0;
    if (o->world->read(path, o->file, why) != 0) {
        snprintf(error, OPTIONS_ERROR_MAX, "--config: %.480s", why);
        return -EINVAL;
    }
    int more;
    while ((more = options_setting_next(&at, &line, &s, why)) > 0)
        if (take_setting(o, &s, seen, why) != 0) {
            more = -EINVAL;
            break;
        }
    if (more < 0)
        snprintf(error, OPTIONS_ERROR_MAX, "%.120s line %u: %.360s", path, line, why);
    return more;
}

/* Checks that every required option was given on the command line, in the environment or in the
 * --config file. */
static int check_required(const struct options *o, char error[OPTIONS_ERROR_MAX])
{
    for (uint32_t i = 0; i < o->n; i++) {
        const struct option_value *v = &o->values[i];
        if (!v->row->required || v->source != OPTION_UNSET)
            continue;
        bool operand = v->row->kind == OPTION_OPERAND;
        snprintf(error, OPTIONS_ERROR_MAX, "%s%s%s%s is missing", operand ? "" : "--",
                 operand ? "" : v->row->name, operand ? "" : " ",
                 v->row->arg != NULL ? v->row->arg : "");
        return -EINVAL;
    }
    return 0;
}

/* Refuses two options that exclude each other. If they come from different sources, the source of
 * higher precedence has won before this check. */
static int check_rivals(struct options *o, char error[OPTIONS_ERROR_MAX])
{
    for (uint32_t i = 0; i < o->n; i++) {
        const struct option_value *v = &o->values[i], *w = NULL;
        char one[ENV_NAME_MAX], other[ENV_NAME_MAX];
        if (v->row->rival != NULL && v->source >= OPTION_FILE)
            w = find_value(o, v->row->rival);
        if (w == NULL || w->source < OPTION_FILE)
            continue;
        snprintf(error, OPTIONS_ERROR_MAX, "%s and %s contradict each other",
                 place(w->row, w->source, one), place(v->row, v->source, other));
        return -EINVAL;
    }
    return 0;
}

/* The sources are read in order of falling precedence. Each source sets only options that no
 * earlier source has set. */
int options_parse(struct options *o, const struct command *command, int argc, char **argv,
                  const struct options_io *world, char error[OPTIONS_ERROR_MAX])
{
    collect_rows(o, command);
    o->world = world;
    int err = argc > 1 ? read_command_line(o, argc, argv, error) : OPTIONS_OK;
    if (err != 0)
        return err;
    if (world->env != NULL && read_environment(o, error) != 0)
        return -EINVAL;
    err = read_file(o, error);
    if (err == 0)
        err = check_rivals(o, error);
    return err < 0 ? err : check_required(o, error);
}
