/* peer/run/options_completion.c -- lists a command's flags and their possible values, for shell
 * completion.
 *
 * The possible values are taken from the placeholder of the value in the help text. For example,
 * "sync|async|ssp:N" gives the words `sync` and `async` and the prefix `ssp:`. "FILE" and "DIR"
 * mean paths. "N" gives no word. */
#include "peer/run/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* List of possible values, separated by blanks. */
struct words
{
    char text[OPTIONS_COMPLETION_MAX];
    size_t n;
};

static void add(struct words *w, const char *word, size_t n)
{
    int written = snprintf(w->text + w->n, sizeof w->text - w->n, "%s%.*s", w->n > 0 ? " " : "",
                           (int)n, word);
    assert(written > 0 && (size_t)written < sizeof w->text - w->n);
    w->n += (size_t)written;
}

/* Returns how many characters of one alternative of a placeholder can be typed literally: all of
 * "sync", "ssp:" of "ssp:N", and none of "RATE" or "i/n". */
static size_t literal(const char *text, size_t n)
{
    size_t k = 0;
    while (k < n && strchr("abcdefghijklmnopqrstuvwxyz0123456789+-.:", text[k]) != NULL)
        k++;
    return k == n || (k > 0 && text[k - 1] == ':') ? k : 0;
}

static void add_alternatives(struct words *w, const char *arg)
{
    if (strcmp(arg, "FILE") == 0 || strcmp(arg, "MODEL") == 0 || strcmp(arg, "DIR") == 0) {
        add(w, arg[0] == 'D' ? "DIR" : "FILE", arg[0] == 'D' ? 3 : 4);
        return;
    }
    for (;;) {
        size_t n = strcspn(arg, "|"), k = literal(arg, n);
        if (k > 0)
            add(w, arg, k);
        if (arg[n] == '\0')
            return;
        arg += n + 1;
    }
}

/* Passes one flag and its possible values to the sink. `arg`: placeholder of the value, NULL for a
 * flag without a value. `word`: one more possible value, or NULL. */
static void completion_report(const struct options_completion_sink *sink, const char *name,
                              const char *arg, const char *word)
{
    struct words w = {.n = 0};
    if (arg != NULL)
        add_alternatives(&w, arg);
    if (word != NULL)
        add(&w, word, strlen(word));
    sink->row(sink->self, name, arg != NULL ? w.text : NULL);
}

void options_completions(const struct command *command, const struct options_completion_sink *sink)
{
    const struct run_key *key;
    for (const struct option_row *row = command->rows; row->name != NULL; row++)
        completion_report(sink, row->kind == OPTION_OPERAND ? NULL : row->name,
                          row->kind == OPTION_FLAG ? NULL
                          : row->arg != NULL       ? row->arg
                                                   : "VALUE",
                          NULL);
    for (size_t i = 0; command->takes_run_flags && (key = run_key_at(command->trainer, i)) != NULL;
         i++)
        if (options_takes_key(command, key->name))
            completion_report(sink, key->name, options_key_arg(key),
                              key->kind == RUN_CHOICE ? NULL : key->word);
}
