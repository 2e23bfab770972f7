/* peer/run/options.h -- the command line, from tables: rows in, checked values out.
 *
 * A command names its options once, in rows; parsing, range checks, the
 * environment and --help all read the same rows. A command that takes run
 * flags has a row for each run key, of the core and of its trainer (peer/run/run.h),
 * as well, and their values are handed to run_flags_set().
 *
 *   command line  >  environment (HEARSAY_MIN_PEERS=4)  >  --config FILE  >  the row's fallback
 *
 * Of two rivals (--rounds and --epochs) one may be given; one on the command line
 * hides the other in the environment and in the file.
 *
 * Syntax is getopt_long's: `--name value`, `--name=value`, `-n value`, `--`.
 * Names are never abbreviated, so that adding an option breaks no script. An
 * option given twice takes its last value, but for one that takes many; an empty
 * environment variable is one that is not set. Pure but for getopt's own globals: the environment and
 * files come through functions, texts go to the caller's buffers.
 */
#ifndef PEER_RUN_OPTIONS_H
#define PEER_RUN_OPTIONS_H

#include "peer/run/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OPTIONS_MAX = 80,           /* Rows of one command, the run's included. */
    OPTIONS_EXPANDED_MAX = 2,   /* Values that `expand` may replace. */
    OPTIONS_OPERANDS_MAX = 256, /* Values of a row that takes many. */
    OPTIONS_ERROR_MAX = 512,    /* Bytes of an error's text. */
    OPTIONS_HELP_MAX = 32768,   /* Bytes of a help text. */
    OPTIONS_FILE_MAX = 32768    /* Bytes of a --config, with the NUL. */
};

enum option_kind {
    OPTION_FLAG,   /* No value; in the environment 1/0, yes/no, true/false, on/off. */
    OPTION_TEXT,   /* Any text but the empty one. */
    OPTION_UINT,   /* Whole number in [min, max]. */
    OPTION_REAL,   /* Finite number in [min, max]. */
    OPTION_CHOICE, /* One of `arg`, which reads "sync|async". */
    OPTION_OPERAND /* Positional text, in the rows' order; not in the environment. */
};

struct option_row
{
    const char *name; /* "min-peers". NULL ends the rows. */
    char short_name;  /* 'j', or 0. */
    enum option_kind kind;
    const char *arg;      /* How help calls the value: "N", "FILE"; the choices of a CHOICE. */
    const char *fallback; /* Value when not given; NULL: none (text is NULL, number 0). */
    const char *help;     /* A phrase without full stop. */
    double min, max;      /* UINT and REAL; max <= min: from min up to any value. */
    bool required;        /* Must be given (or set in the environment). */
    const char *rival;    /* The option of which this takes the place: not both; or NULL. */
    bool many; /* An OPERAND that takes all arguments left. One row at most (options_operands()). */
    /* Former name of the option, or NULL. Flags, variables and settings may still use it; help does not show it. */
    const char *former;
};

struct options;

/* One subcommand: a line of the table in peer/cmd/main.c. */
struct command
{
    const char *name;    /* "local", or two words: "key new". */
    const char *group;   /* Heading in `hearsay --help`. NULL: that of the command before. */
    const char *summary; /* One line, for `hearsay --help`. */
    const char *usage;   /* Behind "hearsay local": "[options]". */
    const char *notes;   /* Ends its --help: examples; or NULL. */
    /* Its own rows. One that is named like a run key takes the key's place and is not
     * handed to run_flags_set(). */
    const struct option_row *rows;
    bool takes_run_flags;
    const struct run_trainer *trainer; /* Whose keys it takes besides the core's; or NULL. */
    const char *const *keys;           /* The run keys that it takes, up to NULL; or NULL: all. */
    /* The option whose value a stray argument may be: "peers" of "hearsay local 8"; or NULL. */
    const char *stray;
    const char *no_key; /* Said of the others where they are given: "--policy: ...". */
    int (*run)(const struct options *o); /* Returns the exit code. */
};

enum option_source {
    OPTION_UNSET,
    OPTION_DEFAULT,
    OPTION_FILE,
    OPTION_ENVIRONMENT,
    OPTION_COMMAND_LINE
};

struct option_value
{
    const struct option_row *row;
    const char *text; /* Borrowed from the row, the file, environment or argv. */
    enum option_source source;
};

struct options
{
    const struct command *command;
    const struct options_world *world;
    uint32_t n;
    struct option_value values[OPTIONS_MAX];
    const char *operand[OPTIONS_OPERANDS_MAX]; /* What the row that takes many has. */
    uint32_t n_operands;
    struct option_row run_rows[OPTIONS_MAX]; /* Made from the run keys. */
    uint32_t n_run_rows;
    struct run_flags run; /* The run flags that were given. */
    struct options_expanded
    {
        const char *name; /* The run key; NULL: this place is free. */
        char text[RUN_VALUE_MAX];
    } expanded[OPTIONS_EXPANDED_MAX]; /* What `expand` made of values. */
    char file[OPTIONS_FILE_MAX];      /* The text of --config, taken apart. */
};

/* What parsing needs of the world, each NULL for none. */
struct options_world
{
    char *(*env)(const char *name); /* getenv */
    /* Replace a run flag's value before it is checked ("edges:FILE" becomes
     * the edges). 1: replaced; 0: nothing to do; -EINVAL: a sentence. At most
     * OPTIONS_EXPANDED_MAX keys of a command line may be replaced. */
    int (*expand)(const char *key, const char *value, char out[RUN_VALUE_MAX],
                  char error[OPTIONS_ERROR_MAX]);
    /* Read all of a file as a text that ends with NUL: 0, or a negative errno with a sentence. */
    int (*read)(const char *path, char out[OPTIONS_FILE_MAX], char error[OPTIONS_ERROR_MAX]);
    /* All commands, the last without a name: a flag that only others have is said to be theirs. */
    const struct command *commands;
};

enum options_result { OPTIONS_OK = 0, OPTIONS_WANT_HELP = 1 };

/* Read argv[1..argc), argv[0] being ignored, and the environment. Returns
 * OPTIONS_OK with every value checked, OPTIONS_WANT_HELP where --help or -h came
 * before any error, or -EINVAL with one sentence in `error` that names the option,
 * what was found and what was expected. *o borrows argv and the command, and must not be moved. */
int options_parse(struct options *o, const struct command *command, int argc, char **argv,
                  const struct options_world *world, char error[OPTIONS_ERROR_MAX]);

/* A command's help: usage, every option with default and environment name.
 * Returns its length; asserts that it fits. */
size_t options_help(const struct command *command, char out[OPTIONS_HELP_MAX]);

/* A command's flags, and what may stand behind each: for completion. */
struct options_words_sink
{
    /* `name` is NULL for an operand. `words`, borrowed for the call, is NULL for a flag without
     * a value; else words with blanks between them: values, beginnings of values, which end
     * with a colon, and FILE or DIR for paths; "" where nothing is known of the value. */
    void (*row)(void *self, const char *name, const char *words);
    void *self;
};
enum { OPTIONS_WORDS_MAX = 256 };
void options_words(const struct command *command, const struct options_words_sink *sink);
/* --config and --print-config, which every command has that takes run flags. */
extern const struct option_row options_shared_rows[];

/* What was given as a --config, with defaults as comments: the same command reads the same settings
 * from it. Returns its length; where that is not under cap, *out is cut. */
size_t options_config_text(const struct options *o, char *out, size_t cap);

/* Does what stands for its default stand for a value? (Not "0" rounds.) */
bool options_has_default(const struct options *o, const struct option_value *v);

/* How help and errors call a run key's value: "N", "X", "SPEC", or its choices. */
const char *options_key_arg(const struct run_key *key);

/* Returns whether `name` is the present or the former name of the option. */
bool options_named(const struct option_row *row, const char *name);

/* Is this the name of a run key that the command takes? */
bool options_takes_key(const struct command *command, const char *name);

/* Values by name; a name that the command has no such row for is a bug of ours
 * (assert). Text is NULL, a number 0, a flag false where nothing is given and
 * there is no fallback. Run keys are texts. */
const char *options_text(const struct options *o, const char *name);
uint64_t options_uint(const struct options *o, const char *name);
double options_real(const struct options *o, const char *name);
bool options_flag(const struct options *o, const char *name);
/* All values of the row that takes many, in their order; borrowed. Returns how many. */
uint32_t options_operands(const struct options *o, const char *const **operands);
/* By the command line, the environment or the file, not by the fallback. */
bool options_given(const struct options *o, const char *name);

/* "min-peers" -> "HEARSAY_MIN_PEERS". Asserts that it fits. */
void options_env_name(const char *name, char *out, size_t cap);

/* Is a variable of the environment, "HEARSAY_TOPLOGY", an option of none of the commands (up
 * to one without a name)? Then *meant is the name that it may have been meant to be, which
 * belongs to a row or a run key, or NULL where none is near. */
bool options_stray(const struct command *commands, const char *variable, const char **meant);

/* The commands with a flag of this name, "peer, sim"; false: none has it (commands may be NULL). */
enum { OPTIONS_OWNERS_MAX = 120 };
bool options_owners(const struct command *commands, const char *name, char out[OPTIONS_OWNERS_MAX]);

#endif
