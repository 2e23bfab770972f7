/* peer/cmd/main.c -- main(): finds the subcommand, parses its options and runs the command. */
#include "peer/cmd/cmd.h"

#include "nn/files/file.h"
#include "nn/files/replace.h"
#include "nn/math/spelling.h"
#include "peer/cmd/log.h"
#include "peer/cmd/version.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/trace/log_line.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command commands[] = {
    {.name = "local",
     .group = "First steps",
     .usage = "[--peers N] [options]",
     .summary = "train with several peers on this machine",
     .notes = "examples:\n"
              "  hearsay local --peers 8 --topology ring --compress topk:0.01 --data mnist:DIR\n"
              "  hearsay-lab sweep lr=0.01,0.03,0.1 --seeds 3 --out sweep -- local --peers 4\n",
     .rows = cmd_local_rows,
     .takes_run_flags = true,
     .trainer = &sgd_keys,
     .stray = "peers",
     .run = cmd_local},
    {.name = "peer",
     .usage = "--key FILE [--bootstrap HOST:PORT,...] [options]",
     .summary = "run one peer of a cluster",
     .notes =
         "examples:\n"
         "  hearsay key new cluster.key\n"
         "  hearsay peer --listen 0.0.0.0:7100 --key cluster.key --data mnist:DIR --shard 1/2\n"
         "  hearsay peer --bootstrap a.example:7100 --key cluster.key --data mnist:DIR --shard "
         "2/2\n",
     .rows = cmd_peer_rows,
     .takes_run_flags = true,
     .trainer = &sgd_keys,
     .stray = "bootstrap",
     .run = cmd_peer},
    {.name = "key new",
     .usage = "FILE",
     .summary = "write a new cluster key to a file",
     .rows = cmd_key_new_rows,
     .run = cmd_key_new},
    {.name = "status",
     .usage = "--bootstrap HOST:PORT,... --key FILE [--watch] [--json]",
     .summary = "show the members of a cluster and the progress of each; --watch refreshes it",
     .notes = "examples:\n"
              "  hearsay status --bootstrap a.example:7100 --key cluster.key\n"
              "  hearsay status --bootstrap a.example:7100 --key cluster.key --watch\n",
     .rows = cmd_status_rows,
     .stray = "bootstrap",
     .run = cmd_status},
    {.name = "predict",
     .usage = "MODEL --data SPEC [--out FILE]",
     .summary = "write the labels that a saved model gives to samples",
     .notes = "examples:\n"
              "  hearsay predict out/peer-0/model.safetensors --data mnist:DIR --out labels.csv\n"
              "  hearsay predict model.safetensors --data csv:new.csv --probabilities\n",
     .rows = cmd_predict_rows,
     .stray = "data",
     .run = cmd_predict},
    {.name = "train",
     .group = "More ways to train",
     .usage = "[options]",
     .summary = "train in one process, without other peers",
     .notes =
         "examples:\n"
         "  hearsay train --model lenet5 --data mnist:DIR --epochs 10 --out lenet5\n"
         "  hearsay train --model logreg --data libsvm:a9a,test=a9a.t --lr 0.5\n"
         "  hearsay train --model gpt:4x128 --data text:FILE --optimiser adamw --lr 0.001\n"
         "Ctrl-C ends the command with exit code 130, and stores the model so far under --out.\n",
     .rows = cmd_train_rows,
     .takes_run_flags = true,
     .trainer = &sgd_keys,
     .keys = cmd_train_keys,
     .no_key = "applies to several peers only; use hearsay local",
     .stray = "data",
     .run = cmd_train},
    {.name = "sim",
     .usage = "[--peers N] [options]",
     .summary = "train several peers over a simulated network",
     .notes = "example:\n"
              "  hearsay sim --peers 100 --topology torus --compress qsgd:4 --model logreg\n",
     .rows = cmd_sim_rows,
     .takes_run_flags = true,
     .trainer = &sgd_keys,
     .stray = "peers",
     .run = cmd_sim},
    {.name = "drift",
     .group = "More about a cluster",
     .usage = "--bootstrap HOST:PORT,... --key FILE [--exact] [--layers] [--watch] [--json], or "
              "MODEL MODEL...",
     .summary = "measure the consensus distance of the peers' models",
     .notes =
         "examples:\n"
         "  hearsay drift --bootstrap a.example:7100 --key cluster.key --watch\n"
         "  hearsay drift --bootstrap a.example:7100 --key cluster.key --exact --layers\n"
         "  hearsay drift --layers out/peer-*/model.safetensors\n"
         "Exit code 0: the requested figures were printed; 1: --exact or --layers could not\n"
         "compare models of one round (stderr has the reason), or --watch lost all peers; 130:\n"
         "Ctrl-C ended --watch.\n",
     .rows = cmd_drift_rows,
     .run = cmd_drift},
    {.name = "probe",
     .usage = "HOST:PORT [--key FILE] [--json]",
     .summary = "test the connection to one peer: name, TCP, key, version, run, clock",
     .notes = "example:\n  hearsay probe a.example:7100 --key cluster.key\nExit code 0: each step "
              "worked for at least one address; 1: a step failed for all.\n",
     .rows = cmd_probe_rows,
     .stray = "key",
     .run = cmd_probe},
    {.name = "key identity",
     .usage = "FILE",
     .summary = "print the identity (public key) of a peer, for a members file",
     .notes = "example:\n"
              "  hearsay key identity peer-b/identity.key >>members.txt\n",
     .rows = cmd_key_identity_rows,
     .run = cmd_key_identity},
    {.name = "key invite",
     .usage = "--identity FILE [--for TIME] [--out FILE]",
     .summary = "print a token that lets a peer join although the members file does not list it",
     .notes = "example:\n"
              "  hearsay key invite --identity peer-a/identity.key --for 1h >token\n"
              "  hearsay peer --bootstrap a.example:7100 --key cluster.key --token @token\n",
     .rows = cmd_key_invite_rows,
     .run = cmd_key_invite},
    {.name = "eval",
     .group = "Model files",
     .usage = "MODEL --data SPEC [options]",
     .summary = "loss and accuracy of a saved model",
     .notes = "examples:\n"
              "  hearsay eval out/peer-0/model.safetensors --data mnist:DIR\n"
              "  hearsay eval from-pytorch.safetensors --model resnet:20 --data cifar10:DIR\n",
     .rows = cmd_eval_rows,
     .stray = "data",
     .run = cmd_eval},
    {.name = "generate",
     .usage = "MODEL [--prompt TEXT] [options]",
     .summary = "generate text with an lstm or gpt that was trained on text",
     .notes = "example:\n"
              "  hearsay generate gpt/model.safetensors --prompt \"ROMEO:\" --temperature 0.8\n",
     .rows = cmd_generate_rows,
     .stray = "prompt",
     .run = cmd_generate},
    {.name = "inspect",
     .usage = "FILE|SPEC [options]",
     .summary = "show the contents of a model file, or the layers of a model spec",
     .notes = "examples:\n"
              "  hearsay inspect out/peer-0/model.safetensors\n"
              "  hearsay inspect resnet:20 --data cifar10:DIR\n",
     .rows = cmd_inspect_rows,
     .stray = "data",
     .run = cmd_inspect},
    {.name = "topology",
     .group = "Reference and tools",
     .usage = "SPEC [--peers N] [options]",
     .summary = "describe a graph: degree, diameter, spectral gap, traffic",
     .notes = "examples:\n"
              "  hearsay topology ring --peers 64\n"
              "  hearsay topology torus:4x8 --peers 32 --model lenet5 --compress topk:0.01\n"
              "  hearsay topology regular:4 --peers 16 --dot | neato -Tsvg > graph.svg\n",
     .rows = cmd_topology_rows,
     .stray = "peers",
     .run = cmd_topology},
    {.name = "compressors",
     .usage = "[--compress SPEC...] [options]",
     .summary = "list the compressors: what they send, bounds, bytes, speed",
     .notes =
         "examples:\n"
         "  hearsay compressors\n"
         "  hearsay compressors --measure --bandwidth 1Gbit\n"
         "  hearsay compressors --model lenet5 --compress \"topk:0.01+qsgd:4 none;bias=fp16\"\n",
     .rows = cmd_compressors_rows,
     .stray = "compress",
     .run = cmd_compressors},
    {.name = "fields",
     .usage = "[--json]",
     .summary = "list the fields of JSON outputs and Prometheus, with unit and meaning",
     .notes = "example:\n"
              "  hearsay fields | grep drift\n",
     .rows = cmd_fields_rows,
     .run = cmd_fields},
    {.name = "completion",
     .usage = "bash",
     .summary = "print a script with which bash completes commands, flags and values",
     .notes = "example:\n"
              "  source <(hearsay completion bash)\n",
     .rows = cmd_completion_rows,
     .run = cmd_completion},
    {.name = NULL},
};

/* Commands that have moved from hearsay to hearsay-lab. The error message tells the user the new
 * command. */
static const struct
{
    const char *name, *now;
} moved[] = {
    {"compare", "hearsay-lab compare"},
    {"report", "hearsay-lab report"},
    {"sweep", "hearsay-lab sweep"},
    {"tensorboard", "hearsay-lab tensorboard"},
    {NULL, NULL},
};

/* Former names of commands. They still work, but help texts do not list them. */
static const struct
{
    const char *name, *now[2];
} aliases[] = {
    {"keygen", {"key", "new"}},
    {"identity", {"key", "identity"}},
    {"invite", {"key", "invite"}},
    {"top", {"status", "--watch"}},
};

/* Prints a message of the command in the form of --log-level. A message that ends the command is an
 * error. A text that begins with "warning: " is a warning. */
__attribute__((format(printf, 3, 0))) static void print_log(const struct options *o, int exit_code,
                                                            const char *format, va_list args)
{
    static const char warning[] = "warning: ";
    char text[LOG_LINE_SIZE], source[64];
    vsnprintf(text, sizeof text, format, args);
    bool warns = strncmp(text, warning, sizeof warning - 1) == 0;
    snprintf(source, sizeof source, "hearsay %s", o->command->name);
    cmd_log_print(exit_code != CMD_OK ? NOTE_ERROR
                  : warns             ? NOTE_WARNING
                                      : NOTE_INFO,
                  "command", source, warns ? text + sizeof warning - 1 : text);
}

int cmd_fail(const struct options *o, int exit_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (cmd_log_given()) {
        print_log(o, exit_code, format, args);
        va_end(args);
        return exit_code;
    }
    /* Lock stderr, so that the message stays one line even if several threads print. */
    flockfile(stderr);
    fprintf(stderr, "hearsay %s: ", o->command->name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(args);
    return exit_code;
}

int cmd_finish(const struct options *o)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CMD_OK;
    return cmd_fail(o, CMD_FAILED, "cannot write to stdout: %s", strerror(errno));
}

/* Flushes `out` and reports a write error. Returns an exit code. */
static int print_end(FILE *out)
{
    if (fflush(out) != 0 || ferror(out)) {
        fprintf(stderr, "hearsay: cannot write to stdout: %s\n", strerror(errno));
        return CMD_FAILED;
    }
    return CMD_OK;
}

/* Returns the command with the name argv[0], or with the two words argv[0] and argv[1]. Sets
 * `*n_words` to the number of words of its name. Returns NULL if no command has that name. */
static const struct command *find_command(int argc, char **argv, int *n_words)
{
    for (size_t i = 0; commands[i].name; i++) {
        const char *second = strchr(commands[i].name, ' ');
        size_t n = strcspn(commands[i].name, " ");
        bool first = strncmp(commands[i].name, argv[0], n) == 0 && argv[0][n] == '\0';
        *n_words = second != NULL ? 2 : 1;
        if (first && (second == NULL || (argc > 1 && strcmp(second + 1, argv[1]) == 0)))
            return &commands[i];
    }
    return NULL;
}

/* Returns true if `name` is the first word of a command with two words, such as "key". */
static bool is_command_group(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; commands[i].name; i++)
        if (strncmp(commands[i].name, name, n) == 0 && commands[i].name[n] == ' ')
            return true;
    return false;
}

/* Prints one line for each two-word command that begins with `name`. */
static void print_command_group(FILE *out, const char *name)
{
    size_t n = strlen(name);
    fprintf(out, "usage: hearsay %s COMMAND [options]\n\n", name);
    for (size_t i = 0; commands[i].name; i++)
        if (strncmp(commands[i].name, name, n) == 0 && commands[i].name[n] == ' ')
            fprintf(out, "  %-13s %s\n", commands[i].name, commands[i].summary);
}

static int unknown_command(const char *name)
{
    struct spelling near = {.found = name};
    char question[64];
    for (size_t i = 0; moved[i].name != NULL; i++)
        if (strcmp(moved[i].name, name) == 0) {
            fprintf(stderr, "hearsay %s is now %s (see %s --help)\n", name, moved[i].now,
                    moved[i].now);
            return CMD_USAGE;
        }
    for (size_t i = 0; commands[i].name; i++)
        spelling_try(&near, commands[i].name);
    fprintf(stderr, "hearsay: unknown command %s%s (see hearsay --help)\n", name,
            spelling_question(&near, question, sizeof question));
    return CMD_USAGE;
}

/* Handles a two-word command with a second word that is missing or unknown. argv[0] is a valid
 * first word. Returns the exit code. */
static int unknown_subcommand(int argc, char **argv)
{
    bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (argc > 1 && !help) {
        fprintf(stderr, "hearsay: unknown command %.40s %.40s (see hearsay %.40s --help)\n",
                argv[0], argv[1], argv[0]);
        return CMD_USAGE;
    }
    print_command_group(help ? stdout : stderr, argv[0]);
    return help ? print_end(stdout) : CMD_USAGE;
}

/* Replaces a former name of a command in argv[0] by the two words of its present name. */
static void apply_alias(int *argc, char ***argv)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp((*argv)[0], aliases[i].name) == 0) {
            char **words = calloc((size_t)*argc + 2, sizeof *words);
            if (words == NULL)
                abort();
            words[0] = (char *)aliases[i].now[0];
            words[1] = (char *)aliases[i].now[1];
            memcpy(words + 2, *argv + 1, (size_t)(*argc - 1) * sizeof *words);
            /* The array `words` is never freed, because the options point into it until the program
             * ends. */
            *argv = words;
            ++*argc;
            return;
        }
}

static int print_text(const char *text)
{
    fputs(text, stdout);
    return print_end(stdout);
}

static int program_help(FILE *out)
{
    fputs("usage: hearsay COMMAND [options]\n\n"
          "Train one model on many machines with no server: peers run local SGD on their\n"
          "own data and gossip compressed differences of their models.\n\n",
          out);
    for (size_t i = 0; commands[i].name; i++) {
        if (commands[i].group != NULL)
            fprintf(out, "%s%s:\n", i > 0 ? "\n" : "", commands[i].group);
        fprintf(out, "  %-13s %s\n", commands[i].name, commands[i].summary);
    }
    fputs(
        "\nhearsay COMMAND --help  lists a command's options; each can come from the\n"
        "environment as HEARSAY_ and its name (HEARSAY_MIN_PEERS=4).\n"
        "hearsay-lab             compares and draws runs (Python: peer/api/python/hearsay/lab).\n"
        "hearsay --version       prints the version and what it was built with (--json: as JSON).\n"
        "Exit codes: 0 ok, 1 failed, 2 bad usage or input, 3 no consensus, 130 interrupted.\n",
        out);
    return print_end(out);
}

/* Handles `hearsay --version`. Unknown words after it are an error, so that a mistyped command line
 * is noticed. Returns the exit code. */
static int version(int argc, char **argv)
{
    bool as_json = argc == 3 && strcmp(argv[2], "--json") == 0;
    if (argc == 2 || as_json)
        return version_print(as_json);
    fprintf(stderr, "hearsay --version: found '%.80s', expected --json or nothing\n",
            argv[strcmp(argv[2], "--json") == 0 ? 3 : 2]);
    return CMD_USAGE;
}

static int command_help(const struct command *c, bool all)
{
    static char text[OPTIONS_HELP_MAX];
    options_help(c, all, text);
    return print_text(text);
}

/* Handles `hearsay help [COMMAND]`. Returns the exit code. */
static int help(int argc, char **argv)
{
    int n_words;
    if (argc < 3)
        return program_help(stdout);
    argc -= 2;
    argv += 2;
    apply_alias(&argc, &argv);
    const struct command *c = find_command(argc, argv, &n_words);
    if (c == NULL && is_command_group(argv[0])) {
        if (argc > 1)
            return unknown_subcommand(argc, argv);
        print_command_group(stdout, argv[0]);
        return print_end(stdout);
    }
    return c != NULL ? command_help(c, false) : unknown_command(argv[0]);
}

extern char **environ;

/* Warns about HEARSAY_* environment variables that belong to no option of any command. Such a
 * variable is not an error, because it may be meant for another version of the program, or come
 * from the parent process. */
static void warn_unknown_variables(const struct command *c)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        char name[64], proposal[64];
        const char *meant;
        size_t n = strcspn(*variable, "=");
        if (n >= sizeof name)
            continue;
        memcpy(name, *variable, n);
        name[n] = '\0';
        if (!options_unknown_variable(commands, name, &meant))
            continue;
        if (meant != NULL)
            options_env_name(meant, proposal, sizeof proposal);
        fprintf(stderr,
                "hearsay %s: warning: environment variable %s does not match an option of any "
                "command%s%s%s\n",
                c->name, name, meant != NULL ? ", did you mean " : "",
                meant != NULL ? proposal : "", meant != NULL ? "?" : "");
    }
}

/* Reads a --config file. This is the `read` callback of struct options_io. */
static int read_settings(const char *path, char out[OPTIONS_FILE_MAX],
                         char error[OPTIONS_ERROR_MAX])
{
    char why[FILE_ERROR_MAX];
    int err = file_read_text(path, out, OPTIONS_FILE_MAX, why);
    snprintf(error, OPTIONS_ERROR_MAX, "%s", err < 0 ? why : "");
    return err;
}

/* Handles --print-config: prints the options in the form of a --config file. Returns the exit
 * code. */
static int print_settings(const struct options *o)
{
    static char text[OPTIONS_FILE_MAX];
    if (options_config_text(o, text, sizeof text) < sizeof text)
        return print_text(text);
    return cmd_fail(o, CMD_USAGE, "--print-config: the configuration is longer than %d bytes",
                    OPTIONS_FILE_MAX - 1);
}

static int run_command(const struct command *c, int argc, char **argv)
{
    static struct options options;
    static const struct options_io world = {
        .env = getenv, .expand = cmd_expand, .read = read_settings, .commands = commands};
    char error[OPTIONS_ERROR_MAX];
    switch (options_parse(&options, c, argc, argv, &world, error)) {
    case OPTIONS_OK:
        cmd_log_open(&options);
        warn_unknown_variables(c);
        if (c->takes_run_flags && options_flag(&options, "print-config"))
            return print_settings(&options);
        return c->run(&options);
    case OPTIONS_WANT_HELP:
        return command_help(c, false);
    case OPTIONS_WANT_ALL_HELP:
        return command_help(c, true);
    default:
        fprintf(stderr, "hearsay %s: %s (see hearsay %s --help)\n", c->name, error, c->name);
        return CMD_USAGE;
    }
}

/* Opens /dev/null in place of each standard stream that is closed. Otherwise a file opened later
 * could get the descriptor, and receive the output of that stream. stdin gets a descriptor for
 * writing only, and stdout and stderr one for reading only, so that each use of the stream still
 * fails. */
static void keep_streams_apart(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* Unblocks all signals. A parent may have started this program with blocked signals. SIGTERM and
 * Ctrl-C would then never arrive, and SIGCHLD would not report to `hearsay local` that a peer has
 * exited. */
static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(int argc, char **argv)
{
    keep_streams_apart();
    unblock_signals();
    replace_protect_inputs();
    /* SIGXFSZ is ignored, so that exceeding the file size limit is a write error and does not kill
     * the process. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        program_help(stderr);
        return CMD_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0
        || strcmp(argv[1], "help") == 0)
        return help(argc, argv);
    if (strcmp(argv[1], "--version") == 0)
        return version(argc, argv);
    if (argv[1][0] == '-') {
        fprintf(stderr, "hearsay: unknown flag %s (see hearsay --help)\n", argv[1]);
        return CMD_USAGE;
    }
    int n_words;
    argc--;
    argv++;
    apply_alias(&argc, &argv);
    const struct command *c = find_command(argc, argv, &n_words);
    if (c != NULL)
        return run_command(c, argc - n_words + 1, argv + n_words - 1);
    return is_command_group(argv[0]) ? unknown_subcommand(argc, argv) : unknown_command(argv[0]);
}
