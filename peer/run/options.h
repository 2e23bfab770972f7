/* peer/run/options.h -- command-line parser driven by tables: option rows in, checked values out.
 *
 * A command lists its options once, in rows. Parsing, range checks, environment variables and
 * --help all use the same rows. A command that takes run flags also has a row for each run key of
 * the core and of its trainer (peer/run/run.h). The values of these rows go to run_flags_set().
 * Precedence of sources:
 *
 *   command line  >  environment (HEARSAY_MIN_PEERS=4)  >  --config FILE  >  default of the row
 *
 * Two options that exclude each other (--rounds and --epochs) are rivals: one of them may be given.
 * A rival from a source of higher precedence replaces the other.
 *
 * The syntax is that of getopt_long: `--name value`, `--name=value`, `-n value`, `--`. Names cannot
 * be abbreviated, so that a new option breaks no script. If an option is given twice, the last
 * value counts, except for an operand that takes many values. An empty environment variable counts
 * as not set. The functions have no side effects except on getopt's globals: environment and files
 * are read through callbacks, and texts go to the caller's buffers.
 */
#ifndef PEER_RUN_OPTIONS_H
#define PEER_RUN_OPTIONS_H

#include "peer/run/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OPTIONS_MAX = 80,           /* Largest number of rows of a command, run keys included. */
    OPTIONS_EXPANDED_MAX = 2,   /* Largest number of values that `expand` may replace. */
    OPTIONS_OPERANDS_MAX = 256, /* Largest number of values of an operand that takes many. */
    OPTIONS_ERROR_MAX = 512,    /* Size of an error message, in bytes. */
    OPTIONS_HELP_MAX = 32768,   /* Size of a help text, in bytes. */
    OPTIONS_FILE_MAX = 32768    /* Size of a --config file, in bytes with the NUL. */
};

enum option_kind {
    /* Option without a value. In environment and file: 1/0, yes/no, true/false, on/off. */
    OPTION_FLAG,
    OPTION_TEXT,   /* Any text except the empty one. */
    OPTION_UINT,   /* Whole number in [min, max]. */
    OPTION_REAL,   /* Finite number in [min, max]. */
    OPTION_CHOICE, /* One of the words in `arg`, such as "sync|async". */
    /* Positional argument, in the order of the rows. Not read from the environment. */
    OPTION_OPERAND
};

/* One option or positional argument of a command. */
struct option_row
{
    /* Name of the option without dashes, such as "min-peers". NULL ends a table. */
    const char *name;
    char short_name; /* One-letter name such as 'j'. 0: none. */
    enum option_kind kind;
    /* Placeholder of the value in help texts, such as "N" or "FILE". For OPTION_CHOICE: the
     * choices. */
    const char *arg;
    /* Default value. NULL: none, so that a text is NULL and a number 0. */
    const char *fallback;
    const char *help; /* Help text: a phrase without full stop. */
    /* Range of OPTION_UINT and OPTION_REAL. max <= min: no upper limit. */
    double min, max;
    /* The option must be given, on the command line, in the environment or in the file. */
    bool required;
    /* Name of the option that excludes this one. NULL: none. */
    const char *rival;
    /* An operand that takes all remaining arguments (options_operands()). At most one row of a
     * command. */
    bool many;
    /* Former name of the option. Flags, environment and settings files may use it; help shows only `name`.
     * NULL: none. */
    const char *former;
};

struct options;

/* One subcommand, such as `hearsay peer`. An entry of the table in peer/cmd/main.c. */
struct command
{
    /* Name of the command, one word or two: "local", "key new". */
    const char *name;
    /* Heading in `hearsay --help`. NULL: the heading of the command before. */
    const char *group;
    const char *summary; /* One line for `hearsay --help`. */
    /* Usage text after "hearsay local", such as "[options]". */
    const char *usage;
    const char *notes; /* End of the command's --help, such as examples. NULL: none. */
    /* Option rows of the command itself. A row with the name of a run key replaces the key, and its
     * value is not handed to run_flags_set(). */
    const struct option_row *rows;
    /* True if the command also takes run keys as options. */
    bool takes_run_flags;
    /* Trainer of the command, which adds its run keys to those of the core. NULL: none. */
    const struct run_trainer *trainer;
    /* Names of the run keys that the command takes, ended by NULL. NULL: all. */
    const char *const *keys;
    /* Option that an unexpected argument probably belongs to, for the error message: "peers" for
     * `hearsay local 8`. NULL: none. */
    const char *stray;
    /* Error message for a run key that the command does not take: "--policy: ...". */
    const char *no_key;
    int (*run)(const struct options *o); /* Runs the command and returns the exit code. */
};

/* Source of a value, in order of rising precedence. */
enum option_source {
    OPTION_UNSET,
    OPTION_DEFAULT,
    OPTION_FILE,
    OPTION_ENVIRONMENT,
    OPTION_COMMAND_LINE
};

/* Value of one row after parsing. */
struct option_value
{
    /* Row of the option: one of the command, a shared row, or one in `run_rows`. */
    const struct option_row *row;
    /* Value, borrowed from the row, the file, the environment or argv. */
    const char *text;
    enum option_source source;
};

/* Result of options_parse(). Must not be moved or copied, because it points into itself. */
struct options
{
    /* Command and outside access given to options_parse(), borrowed. */
    const struct command *command;
    const struct options_io *world;
    /* One value per row, `n` in total. */
    uint32_t n;
    struct option_value values[OPTIONS_MAX];
    /* Values of the operand that takes many. */
    const char *operand[OPTIONS_OPERANDS_MAX];
    uint32_t n_operands;
    /* Rows made from the run keys. */
    struct option_row run_rows[OPTIONS_MAX];
    uint32_t n_run_rows;
    struct run_flags run; /* Run flags that were given. */
    struct options_expanded
    {
        const char *name; /* Name of the run key. NULL: unused entry. */
        char text[RUN_VALUE_MAX];
        /* Values that `expand` has replaced. */
    } expanded[OPTIONS_EXPANDED_MAX];
    /* Text of the --config file, split in place. */
    char file[OPTIONS_FILE_MAX];
};

/* Access to the outside that parsing needs. Each pointer may be NULL: not available. */
struct options_io
{
    char *(*env)(const char *name); /* Like getenv(). */
    /* Replaces the value of a run flag before it is checked; for example "edges:FILE" becomes the
     * edges in the file. Returns 1 if the value was replaced, 0 if it stays, or -EINVAL with a
     * message. At most OPTIONS_EXPANDED_MAX keys of a command line may be replaced. */
    int (*expand)(const char *key, const char *value, char out[RUN_VALUE_MAX],
                  char error[OPTIONS_ERROR_MAX]);
    /* Reads a whole file as a NUL-terminated text. Returns 0, or a negative errno with a
     * message. */
    int (*read)(const char *path, char out[OPTIONS_FILE_MAX], char error[OPTIONS_ERROR_MAX]);
    /* All commands, ended by one without a name. Used to tell the user which command has a flag
     * that this one lacks. */
    const struct command *commands;
};

/* OPTIONS_WANT_HELP: --help or -h was given. OPTIONS_WANT_ALL_HELP: --help all was given. */
enum options_result { OPTIONS_OK = 0, OPTIONS_WANT_HELP = 1, OPTIONS_WANT_ALL_HELP = 2 };

/* Parses argv[1..argc), the environment and the --config file. Returns OPTIONS_OK with every value
 * checked; OPTIONS_WANT_HELP or OPTIONS_WANT_ALL_HELP if --help or -h comes before any error; or
 * -EINVAL with a message that names the option, what was found and what was expected. `*o` borrows `argv`, `command` and
 * `world`, and must not be moved. */
int options_parse(struct options *o, const struct command *command, int argc, char **argv,
                  const struct options_io *world, char error[OPTIONS_ERROR_MAX]);

/* Writes the help text of a command: usage, and options with default and environment variable. A command
 * with more than 25 options shows only the most used ones, or with `all` every option by topic. Returns
 * the length. Asserts that the text fits. */
size_t options_help(const struct command *command, bool all, char out[OPTIONS_HELP_MAX]);

/* Receives a command's flags and the possible values of each, for shell completion. */
struct options_completion_sink
{
    /* Called once per flag or operand. `name` is NULL for an operand. `words` is NULL for a flag
     * without a value. Otherwise `words` lists possible values, separated by blanks: whole values,
     * prefixes that end in a colon, FILE or DIR for paths, or "" if any value is possible. `words`
     * is valid during the call. */
    void (*row)(void *self, const char *name, const char *words);
    void *self;
};
/* Size of the list of words, in bytes. */
enum { OPTIONS_COMPLETION_MAX = 256 };
/* Calls `sink->row` for each flag and operand of a command. */
void options_completions(const struct command *command, const struct options_completion_sink *sink);
/* Rows of --config and --print-config, which every command with run flags has. */
extern const struct option_row options_shared_rows[];

/* Writes the given settings as a --config file, with the defaults as comments. The same command
 * reads the same settings from that file. Returns the length of the text; if it is `cap` or more,
 * the text is truncated. */
size_t options_config_text(const struct options *o, char *out, size_t cap);

/* Returns whether the default of an option is a usable value. The default "0" of "rounds" is not:
 * it means that no value is given. */
bool options_has_default(const struct options *o, const struct option_value *v);

/* Returns the placeholder of a run key's value in help and errors: "N", "X", "SPEC", or the
 * choices. */
const char *options_key_arg(const struct run_key *key);

/* Returns whether `name` is the present or the former name of the option. */
bool options_named(const struct option_row *row, const char *name);

/* Returns whether `name` is a run key that the command takes. */
bool options_takes_key(const struct command *command, const char *name);

/* The next four functions return the value of an option by name. If nothing is given and there is
 * no default, a text is NULL, a number 0 and a flag false. Run keys are texts. A name without a row
 * in the command is a programming error (assert). */
const char *options_text(const struct options *o, const char *name);
uint64_t options_uint(const struct options *o, const char *name);
double options_real(const struct options *o, const char *name);
bool options_flag(const struct options *o, const char *name);
/* Returns the number of values of the operand that takes many, and stores the values in
 * `*operands`, in order. The array is borrowed. */
uint32_t options_operands(const struct options *o, const char *const **operands);
/* Returns whether the option was set on the command line, in the environment or in the file, and
 * not by its default. */
bool options_given(const struct options *o, const char *name);

/* Writes the environment variable of an option: "min-peers" becomes "HEARSAY_MIN_PEERS". Asserts
 * that it fits in `cap` bytes. */
void options_env_name(const char *name, char *out, size_t cap);

/* Returns true if an environment variable such as "HEARSAY_TOPLOGY" has our prefix but belongs to
 * no option of any command. `*meant` is then the most similar option name, or NULL. The name
 * belongs to a row or a run key. `commands` ends with a command without a name. */
bool options_unknown_variable(const struct command *commands, const char *variable,
                              const char **meant);

/* Writes the names of the commands that have a flag of this name, such as "peer, sim". Returns
 * false if no command has it. `commands` may be NULL. */
enum { OPTIONS_COMMANDS_MAX = 120 };
bool options_commands_with_flag(const struct command *commands, const char *name,
                                char out[OPTIONS_COMMANDS_MAX]);

#endif
