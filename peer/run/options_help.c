/* peer/run/options_help.c -- writes --help from a command's option rows.
 *
 * Name, value, default and environment variable of an option come from the row that the parser
 * uses, and those of a run key from its row in the key table. */
#include "peer/run/options.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    HELP_COLUMN = 27, /* Column where the help phrases begin. */
    HELP_WIDTH = 96,
    /* Size of "-n, --name VALUE" or of an environment variable's name, in bytes. */
    NAME_MAX_BYTES = 96
};

/* A text being written into the caller's buffer. */
struct page
{
    char *out;
    size_t n;
};

static void put(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(p->out + p->n, OPTIONS_HELP_MAX - p->n, format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < OPTIONS_HELP_MAX - p->n);
    p->n += (size_t)n;
}

/* Writes the words of `text`, wrapped at HELP_WIDTH and indented to HELP_COLUMN. `column`: position
 * of the first word. */
static void put_wrapped(struct page *p, int column, const char *text)
{
    bool first = true;
    while (*text != '\0') {
        int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n > HELP_WIDTH) {
            put(p, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
            first = true;
        }
        put(p, "%s%.*s", first ? "" : " ", n, text);
        column += n + !first;
        first = false;
        text += n;
        text += strspn(text, " ");
    }
    put(p, "\n");
}

/* Writes a name and its help text next to it, or on the next line if the name is too long. */
static void put_row(struct page *p, const char *name, const char *text)
{
    int n = (int)strlen(name);
    put(p, "  %s", name);
    if (n + 3 > HELP_COLUMN)
        put(p, "\n%*s", HELP_COLUMN, "");
    else
        put(p, "%*s", HELP_COLUMN - n - 2, "");
    put_wrapped(p, HELP_COLUMN, text);
}

/* Writes an option: "-n, --name VALUE   help (default 8; HEARSAY_NAME)". */
static void put_option(struct page *p, const struct option_row *row)
{
    char name[NAME_MAX_BYTES], env[NAME_MAX_BYTES], text[1024];
    bool flag = row->kind == OPTION_FLAG;
    char dash[5] = {0};
    if (row->short_name != 0)
        snprintf(dash, sizeof dash, "-%c, ", row->short_name);
    snprintf(name, sizeof name, "%s--%s%s%s", dash, row->name, flag ? "" : " ",
             flag               ? ""
             : row->arg != NULL ? row->arg
                                : "VALUE");
    options_env_name(row->name, env, sizeof env);
    bool shown = !flag && row->fallback != NULL && row->fallback[0] != '\0';
    snprintf(text, sizeof text, "%s (%s%s%s%s)", row->help,
             shown           ? "default "
             : row->required ? "must be given; "
                             : "",
             shown ? row->fallback : "", shown ? "; " : "", env);
    put_row(p, name, text);
}

static bool has_kind(const struct option_row *row, bool operands)
{
    return (row->kind == OPTION_OPERAND) == operands;
}

static void put_operands(struct page *p, const struct option_row *rows)
{
    bool any = false;
    for (const struct option_row *row = rows; row->name != NULL; row++) {
        if (!has_kind(row, true))
            continue;
        put_row(p, row->arg, row->help);
        any = true;
    }
    if (any)
        put(p, "\n");
}

static void put_run_key(struct page *p, const struct run_key *key)
{
    struct option_row row = {.name = key->name,
                             .kind = OPTION_TEXT,
                             .arg = options_key_arg(key),
                             .fallback = key->fallback,
                             .help = key->help};
    if (!run_key_has_default(key))
        row.fallback = NULL;
    put_option(p, &row);
}

static void put_run_keys(struct page *p, const struct command *command)
{
    if (command->keys != NULL) /* A command that runs without peers. */
        put(p, "\nthe run:\n");
    else
        put(p, "\nthe run (must agree on all peers; a peer given none of them takes the "
               "cluster's):\n");
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(command->trainer, i)) != NULL; i++)
        if (options_takes_key(command, key->name))
            put_run_key(p, key);
}

size_t options_help(const struct command *command, char out[OPTIONS_HELP_MAX])
{
    struct page p = {.out = out};
    put(&p, "usage: hearsay %s %s\n\n%s\n\n", command->name, command->usage, command->summary);
    put_operands(&p, command->rows);
    put(&p, "options (each can come from the environment; the command line wins):\n");
    for (const struct option_row *row = command->rows; row->name != NULL; row++)
        if (has_kind(row, false))
            put_option(&p, row);
    for (const struct option_row *row = options_shared_rows; row->name != NULL; row++)
        if (command->takes_run_flags)
            put_option(&p, row);
    put_row(&p, "-h, --help", "print this and exit");
    if (command->takes_run_flags)
        put_run_keys(&p, command);
    if (command->notes != NULL)
        put(&p, "\n%s", command->notes);
    return p.n;
}
