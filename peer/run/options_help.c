/* peer/run/options_help.c -- writes the --help text of a command from its table of options.
 *
 * The name, value, default and environment variable of an option come from the same row that the
 * parser uses. For a run key they come from its row in the key table. */
#include "peer/run/options.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    HELP_COLUMN = 27, /* Column at which the help phrases begin. */
    HELP_WIDTH = 96,
    /* Size of the buffer for "-n, --name VALUE" or for the name of an environment variable, in
     * bytes. */
    NAME_MAX_BYTES = 96
};

/* Help text that is being written into the caller's buffer. `out` NULL: nothing is written. */
struct page
{
    char *out;
    size_t n;
};

static void put(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct page *p, const char *format, ...)
{
    if (p->out == NULL) /* put_options() has no buffer if it only counts the options. */
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(p->out + p->n, OPTIONS_HELP_MAX - p->n, format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < OPTIONS_HELP_MAX - p->n);
    p->n += (size_t)n;
}

/* Writes the words of `text`, in lines of at most HELP_WIDTH columns that are indented to
 * HELP_COLUMN. `column`: column at which the first word begins. */
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

/* Writes a name and its help text on the same line. If the name is too long, the help text begins
 * on the next line. */
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

/* Writes one option, such as "-n, --name VALUE   help (default 8; HEARSAY_NAME)". `mark`: text at
 * the beginning of the parentheses, such as "run; " for a run key. */
static void put_option(struct page *p, const struct option_row *row, const char *mark)
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
    snprintf(text, sizeof text, "%s (%s%s%s%s%s)", row->help, mark,
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

/* ---- Grouping options by topic. ---- */

/* Topics of the help of a command with many options: one paragraph each, in this order. An option
 * belongs to the first topic that names it. The last topic takes the options that no topic names.
 * --help shows only the first topic, and --help all shows every topic. */
static const struct topic
{
    const char *heading;
    /* Names of the topic's options, each with a blank before and after it. NULL: all remaining
     * options. */
    const char *names;
} topics[] = {
    {"most used options",
     " peers bootstrap key listen data shard model epochs min-peers compress out "},
    {"data and model", " init norm augment partition evaluate-every evaluate-samples "},
    {"training", " rounds batch lr schedule warmup optimiser momentum momentum-kind nesterov beta2 "
                 "weight-decay clip "
                 "label-smoothing learners learner-momentum seed threads "},
    {"exchange between peers",
     " topology mixer local-steps outer post-local one-step-last trigger policy overlap gamma "
     "drift-target bandwidth collective "
     "centre-momentum error-feedback factor-masking "},
    {"end of the run", " final-drift final-topology final-compress quorum quorum-timeout "},
    {"faults and attacks", " straggler-timeout member-ttl byzantine max-pull "},
    {"addresses and membership", " name advertise identity members token "},
    {"files and output", " fresh check checkpoint disk-timeout metrics json config print-config "},
    {"diagnosis", " log-level trace "},
    {"other options", NULL}};

enum {
    N_TOPICS = sizeof topics / sizeof *topics,
    /* A command with at most this number of options has a help text without topics. */
    FEW_OPTIONS = 25
};

static bool topic_has(size_t topic, const char *name)
{
    char word[NAME_MAX_BYTES];
    snprintf(word, sizeof word, " %s ", name);
    return topics[topic].names != NULL && strstr(topics[topic].names, word) != NULL;
}

/* Returns the index in topics[] of the topic to which an option belongs. */
static size_t topic_of(const char *name)
{
    size_t topic = 0;
    while (topic + 1 < N_TOPICS && !topic_has(topic, name))
        topic++;
    return topic;
}

/* Writes the options of one topic, or the options of all topics if `topic` is N_TOPICS. Returns the
 * number of options. */
static size_t put_options(struct page *p, const struct command *command, size_t topic)
{
    size_t n = 0;
    const struct option_row *tables[] = {command->rows,
                                         command->takes_run_flags ? options_shared_rows : NULL};
    for (size_t t = 0; t < 2 && tables[t] != NULL; t++)
        for (const struct option_row *row = tables[t]; row->name != NULL; row++)
            if (has_kind(row, false) && (topic == N_TOPICS || topic_of(row->name) == topic)) {
                put_option(p, row, "");
                n++;
            }
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(command->trainer, i)) != NULL; i++)
        if (options_takes_key(command, key->name)
            && (topic == N_TOPICS || topic_of(key->name) == topic)) {
            struct option_row row = {.name = key->name,
                                     .kind = OPTION_TEXT,
                                     .arg = options_key_arg(key),
                                     .fallback = run_key_has_default(key) ? key->fallback : NULL,
                                     .help = key->help};
            put_option(p, &row, command->keys == NULL ? "run; " : "");
            n++;
        }
    return n;
}

static size_t count_options(const struct command *command)
{
    struct page none = {.out = NULL};
    return put_options(&none, command, N_TOPICS);
}

/* Writes the options of all topics, or without `all` only the options of the first topic. `n`:
 * number of all options. */
static void put_topics(struct page *p, const struct command *command, size_t n, bool all)
{
    /* A command that takes all run keys trains together with other peers, so its help explains
     * what the mark 'run' after an option means. */
    if (command->keys == NULL)
        put(p, "Options marked 'run' must be the same for all peers. A peer that joins a run may "
               "leave them\n"
               "out. ");
    put(p, "Each option can also be set in the environment. The command line takes precedence.\n");
    for (size_t topic = 0; topic < (all ? N_TOPICS : 1); topic++) {
        size_t before = p->n;
        put(p, "\n%s:\n", topics[topic].heading);
        if (put_options(p, command, topic) == 0)
            p->n = before; /* Remove the heading of a topic that has no options. */
    }
    p->out[p->n] = '\0';
    put(p, "\n");
    put_row(p, "-h, --help", all ? "print the most used options and exit" : "print this and exit");
    char text[NAME_MAX_BYTES];
    snprintf(text, sizeof text, "print all %zu options and exit", n);
    put_row(p, "--help all", text);
}

size_t options_help(const struct command *command, bool all, char out[OPTIONS_HELP_MAX])
{
    struct page p = {.out = out};
    size_t n = count_options(command);
    put(&p, "usage: hearsay %s %s\n\n%s\n\n", command->name, command->usage, command->summary);
    put_operands(&p, command->rows);
    if (n > FEW_OPTIONS)
        put_topics(&p, command, n, all);
    else {
        put(&p, "options (each can also be set in the environment; the command line takes "
                "precedence):\n");
        put_options(&p, command, N_TOPICS);
        put_row(&p, "-h, --help", "print this and exit");
    }
    if (command->notes != NULL)
        put(&p, "\n%s", command->notes);
    return p.n;
}
