/* peer/run/options_words.c -- a command's flags and the words that may stand behind each, for a
 * shell that completes them.
 *
 * What help shows as the value says it all: "sync|async|ssp:N" are two words and the
 * beginning of a third, "FILE" and "DIR" are paths, and "N" is the user's to know.
 */
#include "peer/run/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* One text of words with blanks between them. */
struct words
{
    char text[OPTIONS_WORDS_MAX];
    size_t n;
};

static void add(struct words *w, const char *word, size_t n)
{
    int written = snprintf(w->text + w->n, sizeof w->text - w->n, "%s%.*s", w->n > 0 ? " " : "",
                           (int)n, word);
    assert(written > 0 && (size_t)written < sizeof w->text - w->n);
    w->n += (size_t)written;
}

/* How much of one alternative is written as it stands: all of "sync", "ssp:" of "ssp:N", and
 * nothing of "RATE" or "i/n". */
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

/* `arg` is NULL for a flag without a value, `word` what else may stand there, or NULL. */
static void tell(const struct options_words_sink *sink, const char *name, const char *arg,
                 const char *word)
{
    struct words w = {.n = 0};
    if (arg != NULL)
        add_alternatives(&w, arg);
    if (word != NULL)
        add(&w, word, strlen(word));
    sink->row(sink->self, name, arg != NULL ? w.text : NULL);
}

void options_words(const struct command *command, const struct options_words_sink *sink)
{
    const struct run_key *key;
    for (const struct option_row *row = command->rows; row->name != NULL; row++)
        tell(sink, row->kind == OPTION_OPERAND ? NULL : row->name,
             row->kind == OPTION_FLAG ? NULL
             : row->arg != NULL       ? row->arg
                                      : "VALUE",
             NULL);
    for (size_t i = 0; command->takes_run_flags && (key = run_key_at(command->trainer, i)) != NULL;
         i++)
        if (options_takes_key(command, key->name))
            tell(sink, key->name, options_key_arg(key), key->word);
}
