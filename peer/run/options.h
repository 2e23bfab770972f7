/* peer/run/options.h -- command-line parser that is driven by tables. The input is a table of
 * option rows, and the output is a list of checked values.
 *
 * A command lists its options once, in rows. Parsing, range checks, environment variables and
 * --help all use the same rows. A command that takes run flags also has a row for each run key of
 * the core and of its trainer (peer/run/run.h). The values of these rows go to run_flags_set().
 * Precedence of sources:
 *
 *   command line  >  environment (HEARSAY_MIN_PEERS=4)  >  --config FILE  >  default of the row
 *
 * Two options that exclude each other, such as --rounds and --epochs, are called rivals. Only one
 * of them may be given. If both are given in different sources, the source of higher precedence
 * wins.
 *
 * The syntax is the one of getopt_long: `--name value`, `--name=value`, `-n value`, `--`. Names
 * cannot be abbreviated, so that a new option breaks no script. If an option is given twice, the
 * last value counts, except for an operand that takes many values. An empty environment variable
 * counts as not set. The functions have no side effects except on getopt's globals: the environment
 * and files are read through callbacks, and texts go to the caller's buffers. */
#ifndef PEER_RUN_OPTIONS_H
#define PEER_RUN_OPTIONS_H

#include "peer/run/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Largest number of rows in a command's table of options, with the run keys. */
    OPTIONS_MAX = 80,
    /* Largest number of values of one command line that options_io.expand replaces. */
    OPTIONS_EXPANDED_MAX = 2,
    OPTIONS_OPERANDS_MAX = 256, /* Largest number of values of an operand that takes many values. */
    OPTIONS_ERROR_MAX = 512,    /* Size of the buffer for an error message, in bytes. */
    OPTIONS_HELP_MAX = 32768,   /* Size of the buffer for a help text, in bytes. */
    /* Size of the buffer for the text of a --config file, in bytes with the NUL. */
    OPTIONS_FILE_MAX = 32768
};

enum option_kind {
    /* An option without a value. In the environment and in a --config file the value is 1/0,
     * yes/no, true/false or on/off. */
    OPTION_FLAG,
    OPTION_TEXT,   /* The value is any text that is not empty. */
    OPTION_UINT,   /* The value is a whole number in [min, max]. */
    OPTION_REAL,   /* The value is a finite real number in [min, max]. */
    OPTION_CHOICE, /* The value is one of the words in `arg`, such as "sync|async". */
    /* A positional argument. The arguments on the command line are assigned to the operands in the
     * order of the table of options. Operands are never read from the environment. */
    OPTION_OPERAND
};

/* One row in a command's table of options: an option or a positional argument. */
struct option_row
{
    /* Name of the option without dashes, such as "min-peers". NULL ends a table. */
    const char *name;
    char short_name; /* One-letter name of the option, such as 'j'. 0: none. */
    enum option_kind kind;
    /* Placeholder of the value in help texts, such as "N" or "FILE". For OPTION_CHOICE: the allowed
     * words. */
    const char *arg;
    /* Default value. NULL: no default; then options_text() returns NULL, and options_uint() returns
     * 0. */
    const char *fallback;
    const char *help; /* Help text of the option, as a phrase without a full stop. */
    /* Smallest and largest value of an OPTION_UINT or OPTION_REAL. If max <= min there is no upper
     * limit. */
    double min, max;
    /* True: parsing fails unless the option is given on the command line, in the environment or in
     * the --config file. */
    bool required;
    /* Name of another option that must not be given together with this one. NULL: none. */
    const char *rival;
    /* True for an operand that takes all remaining arguments (options_operands()). At most one row
     * of a command may have this set. */
    bool many;
    /* Former name of the option, still accepted on the command line, in the environment and in
     * --config files. Help texts show only `name`. NULL: none. */
    const char *former;
};

struct options;

/* One subcommand, such as `hearsay peer`: an entry of the command table in peer/cmd/main.c. */
struct command
{
    /* Name of the command as one or two words: "local", "key new". */
    const char *name;
    /* Heading above the command in `hearsay --help`. NULL: the same heading as the previous
     * command. */
    const char *group;
    const char *summary; /* One-line summary in `hearsay --help`. */
    /* Usage text that follows the command's name, such as "[options]". */
    const char *usage;
    const char *notes; /* Text at the end of the command's --help, such as examples. NULL: none. */
    /* Table of the command's own options. If an option has the name of a run key, it replaces the
     * key, and its value is not passed to run_flags_set(). */
    const struct option_row *rows;
    /* True if the run keys are also options of this command. */
    bool takes_run_flags;
    /* Trainer of the command, which adds its run keys to the core keys. NULL: none. */
    const struct run_trainer *trainer;
    /* Names of the run keys that the command takes, terminated by NULL. A NULL pointer: all run
     * keys. */
    const char *const *keys;
    /* Option to suggest in the error message for an unexpected argument. Example: "peers", so that
     * `hearsay local 8` suggests --peers 8. NULL: none. */
    const char *stray;
    /* Explanation for the error message when a user gives a run key that the command does not take.
     * The message reads "--policy: " and this text. */
    const char *no_key;
    int (*run)(const struct options *o); /* Runs the command and returns the exit code. */
};

/* Source of an option's value, in order of rising precedence. */
enum option_source {
    OPTION_UNSET,
    OPTION_DEFAULT,
    OPTION_FILE,
    OPTION_ENVIRONMENT,
    OPTION_COMMAND_LINE
};

/* Value of one option of the command after parsing. */
struct option_value
{
    /* The option's row in the command's table, in options_shared_rows, or in options.run_rows. */
    const struct option_row *row;
    /* Text of the value. Borrowed from the row (the default), the --config file, the environment or
     * argv. */
    const char *text;
    enum option_source source;
};

/* Result of options_parse(). The struct must not be moved or copied, because it contains pointers
 * to itself. */
struct options
{
    /* The command and the callbacks that were passed to options_parse(). Borrowed. */
    const struct command *command;
    const struct options_io *world;
    /* Values of all options and operands of the command, `n` in total. */
    uint32_t n;
    struct option_value values[OPTIONS_MAX];
    /* Values of the operand that takes many values, `n_operands` in total. */
    const char *operand[OPTIONS_OPERANDS_MAX];
    uint32_t n_operands;
    /* Table rows that options_parse() made from the run keys, `n_run_rows` in total. */
    struct option_row run_rows[OPTIONS_MAX];
    uint32_t n_run_rows;
    struct run_flags run; /* Values of the run flags that were given. */
    struct options_expanded
    {
        /* Name of the run key whose value was replaced. NULL: this entry is unused. */
        const char *name;
        char text[RUN_VALUE_MAX];
        /* Values with which options_io.expand replaced the given values, one entry per run key. */
    } expanded[OPTIONS_EXPANDED_MAX];
    /* Text of the --config file. Parsing cuts it into names and values in place. */
    char file[OPTIONS_FILE_MAX];
};

/* Callbacks through which the parser reads the environment and files. Each pointer may be NULL:
 * then that source is not used. */
struct options_io
{
    /* Returns the value of an environment variable or NULL, like getenv(). */
    char *(*env)(const char *name);
    /* Replaces the value of a run flag before the value is checked. For example, "edges:FILE"
     * becomes the list of edges in that file. Returns 1 if the value was replaced, 0 if it stays,
     * or -EINVAL with a message. At most OPTIONS_EXPANDED_MAX keys of a command line may be
     * replaced. */
    int (*expand)(const char *key, const char *value, char out[RUN_VALUE_MAX],
                  char error[OPTIONS_ERROR_MAX]);
    /* Reads a whole file into `out` as a NUL-terminated text. Returns 0, or a negative errno with a
     * message. */
    int (*read)(const char *path, char out[OPTIONS_FILE_MAX], char error[OPTIONS_ERROR_MAX]);
    /* Table of all commands, terminated by an entry without a name. If a flag is unknown, the error
     * message names the other commands that have it. */
    const struct command *commands;
};

/* Result of options_parse() if no error occurred. OPTIONS_WANT_HELP: --help or -h was given.
 * OPTIONS_WANT_ALL_HELP: --help all was given. */
enum options_result { OPTIONS_OK = 0, OPTIONS_WANT_HELP = 1, OPTIONS_WANT_ALL_HELP = 2 };

/* Parses argv[1..argc), the environment and the --config file. Returns OPTIONS_OK if every value is
 * valid. Returns OPTIONS_WANT_HELP or OPTIONS_WANT_ALL_HELP if --help or -h comes before any error.
 * Otherwise returns -EINVAL with a message that names the option, what was found and what was
 * expected. `*o` borrows `argv`, `command` and `world`, and must not be moved. */
int options_parse(struct options *o, const struct command *command, int argc, char **argv,
                  const struct options_io *world, char error[OPTIONS_ERROR_MAX]);

/* Writes the help text of a command: its usage, and each option with its default and environment
 * variable. For a command with more than 25 options the text has only the most used options, or
 * with `all` every option, grouped by topic. Returns the length of the text. Asserts that the text
 * fits into `out`. */
size_t options_help(const struct command *command, bool all, char out[OPTIONS_HELP_MAX]);

/* Callback that receives the flags of a command and the possible values of each flag, for shell
 * completion. */
struct options_completion_sink
{
    /* Called once per flag or operand. `name` is NULL for an operand. `words` is NULL for a flag
     * without a value. Otherwise `words` is a list of possible values, separated by blanks. An
     * entry is a whole value, a prefix that ends in a colon, or FILE or DIR for a path. An empty
     * list means that no values can be suggested. `words` is valid only during the call. */
    void (*row)(void *self, const char *name, const char *words);
    void *self;
};
/* Size of the list `words` in options_completion_sink, in bytes. */
enum { OPTIONS_COMPLETION_MAX = 256 };
/* Calls `sink->row` once for each flag and operand of a command. */
void options_completions(const struct command *command, const struct options_completion_sink *sink);
/* Table rows of the options --config and --print-config. Every command that takes run flags has
 * these options. */
extern const struct option_row options_shared_rows[];

/* Writes the options of `o` as a --config file. Options that were not given appear as comments with
 * their defaults. The same command with this file has the same settings. Returns the length of the
 * text. If the length is `cap` or more, the text is truncated. */
size_t options_config_text(const struct options *o, char *out, size_t cap);

/* Returns whether the default of an option is a usable value. For example, the default "0" of
 * "rounds" is not usable: it means that no number of rounds is given. */
bool options_has_default(const struct options *o, const struct option_value *v);

/* Returns the placeholder that stands for a run key's value in help texts and errors: "N", "X",
 * "SPEC", or the allowed words "a|b|c". */
const char *options_key_arg(const struct run_key *key);

/* Returns whether `name` is the present or the former name of the option. */
bool options_named(const struct option_row *row, const char *name);

/* Returns whether `name` is a run key that the command takes. */
bool options_takes_key(const struct command *command, const char *name);

/* Each of the functions from options_text() to options_flag() returns the value of the option
 * `name`. If the option was not given and has no default, the result is NULL for a text, 0 for a
 * number, and false for a flag. The values of run keys are texts. Asserts that the command has an
 * option of this name. */
const char *options_text(const struct options *o, const char *name);
uint64_t options_uint(const struct options *o, const char *name);
double options_real(const struct options *o, const char *name);
bool options_flag(const struct options *o, const char *name);
/* Returns the number of values of the operand that takes many values, and points `*operands` at
 * these values in the order given. The array is borrowed. */
uint32_t options_operands(const struct options *o, const char *const **operands);
/* Returns whether the option was given on the command line, in the environment or in the --config
 * file. False: its value is the default. */
bool options_given(const struct options *o, const char *name);

/* Writes the name of an option's environment variable: "min-peers" becomes "HEARSAY_MIN_PEERS".
 * Asserts that the name fits into `cap` bytes. */
void options_env_name(const char *name, char *out, size_t cap);

/* Returns whether the environment variable `variable` begins with "HEARSAY_" but belongs to no
 * option of any command, such as the misspelled "HEARSAY_TOPLOGY". `*meant` is then set to the most
 * similar option name, or NULL. This name points into a table of options or of run keys. `commands`
 * is terminated by a command without a name. */
bool options_unknown_variable(const struct command *commands, const char *variable,
                              const char **meant);

/* Writes a list of the commands that have a flag named `name`, such as "peer, sim". Returns false
 * if no command has it. `commands` may be NULL. */
enum { OPTIONS_COMMANDS_MAX = 120 };
bool options_commands_with_flag(const struct command *commands, const char *name,
                                char out[OPTIONS_COMMANDS_MAX]);

#endif
