/* tests/unit/node_options.c -- tests of the command-line parser (peer/run/options.h). */
#include "nn/math/number.h"
#include "peer/run/options.h"
#include "peer/sgd/sgd_keys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
static const struct option_row rows[] = {
    {.name = "peers", .short_name = 'n', .kind = OPTION_UINT, .arg = "N", .fallback = "8",
     .help = "number of peers", .min = 1, .max = 64},
    {.name = "skip", .kind = OPTION_UINT, .arg = "N", .help = "any number"},
    {.name = "epochs", .former = "passes", .kind = OPTION_REAL, .arg = "X", .help = "passes", .min = 0, .max = 100},
    {.name = "hours", .kind = OPTION_UINT, .arg = "H", .help = "how long", .rival = "epochs"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR", .help = "where to"},
    {.name = "json", .short_name = 'j', .kind = OPTION_FLAG, .help = "as JSON"},
    {.name = "colour", .kind = OPTION_CHOICE, .arg = "auto|on|off", .fallback = "auto", .help = "paint"},
    {.name = "file", .kind = OPTION_OPERAND, .arg = "FILE", .required = true, .help = "the file"},
    {.name = "other", .kind = OPTION_OPERAND, .arg = "OTHER", .help = "another"},
    {.name = NULL},
};
/* clang-format on */
static const struct command tool = {.name = "tool",
                                    .summary = "a tool",
                                    .usage = "FILE [options]",
                                    .notes = "example:\n  hearsay tool x\n",
                                    .stray = "peers",
                                    .rows = rows};

/* clang-format off */
static const struct option_row run_rows[] = {
    {.name = "data", .kind = OPTION_TEXT, .arg = "SPEC", .help = "this command's own"},
    {.name = "key", .kind = OPTION_TEXT, .arg = "FILE", .help = "key", .required = true},
    {.name = NULL},
};
/* clang-format on */
static const struct command runner = {.name = "runner",
                                      .summary = "runs",
                                      .usage = "[options]",
                                      .rows = run_rows,
                                      .takes_run_flags = true,
                                      .trainer = &sgd_keys};

/* clang-format off */
static const struct option_row many_rows[] = {
    {.name = "first", .kind = OPTION_OPERAND, .arg = "FIRST", .help = "one"},
    {.name = "rest", .kind = OPTION_OPERAND, .arg = "REST", .help = "others", .required = true, .many = true},
    {.name = "out", .kind = OPTION_TEXT, .arg = "FILE", .help = "where to"},
    {.name = NULL},
};
/* clang-format on */
static const struct command gatherer = {
    .name = "gatherer", .summary = "takes many", .usage = "FIRST REST...", .rows = many_rows};

static const struct option_row no_rows[] = {{.name = NULL}};
static const char *const alone_keys[] = {"model", "topology", "data", NULL};
static const struct command alone = {.name = "alone",
                                     .summary = "takes some keys",
                                     .usage = "[options]",
                                     .rows = no_rows,
                                     .takes_run_flags = true,
                                     .trainer = &sgd_keys,
                                     .keys = alone_keys,
                                     .no_key = "of others"};

enum { ARGS_MAX = OPTIONS_OPERANDS_MAX + 16 };
static struct options o;
static char error[OPTIONS_ERROR_MAX];

/* Environment variables of a test: name, value, name, value, ..., NULL. */
static const char *const *environment;
static char *env(const char *name)
{
    for (size_t i = 0; environment && environment[i]; i += 2)
        if (strcmp(environment[i], name) == 0)
            return (char *)(uintptr_t)environment[i + 1];
    return NULL;
}

static int expand(const char *key, const char *value, char out[RUN_VALUE_MAX],
                  char why[OPTIONS_ERROR_MAX])
{
    if (strcmp(key, "data") == 0 && value[0] == '/') {
        snprintf(out, RUN_VALUE_MAX, "mnist:%s", value);
        return 1;
    }
    if (strcmp(key, "topology") != 0 || strcmp(value, "edges:f") != 0) {
        snprintf(why, OPTIONS_ERROR_MAX, "gone: no such file");
        return strcmp(value, "edges:gone") == 0 ? -EINVAL : 0;
    }
    strcpy(out, "edges:0-1");
    return 1;
}

/* Contents of the only file in these tests. NULL: the file does not exist. */
static const char *file;
static int read_file(const char *path, char out[OPTIONS_FILE_MAX], char why[OPTIONS_ERROR_MAX])
{
    (void)path;
    snprintf(why, OPTIONS_ERROR_MAX, "there is none");
    snprintf(out, OPTIONS_FILE_MAX, "%s", file != NULL ? file : "");
    return file != NULL ? 0 : -ENOENT;
}

static const struct option_row other_rows[] = {
    {.name = "bandwidth", .kind = OPTION_TEXT, .help = "the others' own"},
    {.name = "pear", .kind = OPTION_FLAG, .help = "nearer to --peers than to anything"},
    {.name = "where", .kind = OPTION_OPERAND, .help = "no flag"},
    {.name = NULL},
};
static const struct command commands[] = {{.name = "alpha", .rows = other_rows},
                                          {.name = "beta", .rows = other_rows + 1},
                                          {.name = NULL}};
static const struct options_io world = {
    .env = env, .expand = expand, .read = read_file, .commands = commands};

/* Parses the words of `line`, which are separated by blanks, as arguments of the command. */
static int parse(const struct command *c, const char *line)
{
    static char words[2048];
    static char *argv[ARGS_MAX];
    int argc = 0;
    snprintf(words, sizeof words, "x %s", line);
    for (char *p = strtok(words, " "); p; p = strtok(NULL, " "))
        argv[argc++] = p;
    argv[argc] = NULL;
    strcpy(error, "nothing");
    return options_parse(&o, c, argc, argv, &world, error);
}

static void accept_(const struct command *c, const char *line)
{
    if (parse(c, line) != OPTIONS_OK)
        fail_msg("'%s' was refused: %s", line, error);
}

static void refuse(const struct command *c, const char *line, const char *want)
{
    int r = parse(c, line);
    if (r != -EINVAL)
        fail_msg("'%s' gave %d, want an error", line, r);
    assert_string_equal(error, want);
}

static void test_defaults(void **state)
{
    (void)state;
    accept_(&tool, "f");
    assert_int_equal(options_uint(&o, "peers"), 8);
    assert_int_equal(options_uint(&o, "skip"), 0);
    assert_true(options_real(&o, "epochs") == 0.0);
    assert_null(options_text(&o, "out"));
    assert_null(options_text(&o, "other"));
    assert_false(options_flag(&o, "json"));
    assert_string_equal(options_text(&o, "colour"), "auto");
    assert_false(options_given(&o, "peers"));
}

static void test_given(void **state)
{
    (void)state;
    accept_(&tool,
            "--peers 3 f --epochs=2.5e0 -j --out - g --colour off --skip 18446744073709551615");
    assert_int_equal(options_uint(&o, "peers"), 3);
    assert_true(options_given(&o, "peers"));
    assert_true(options_uint(&o, "skip") == UINT64_MAX);
    assert_true(options_real(&o, "epochs") == 2.5);
    assert_string_equal(options_text(&o, "out"), "-");
    assert_true(options_flag(&o, "json"));
    assert_string_equal(options_text(&o, "colour"), "off");
    assert_string_equal(options_text(&o, "file"), "f");
    assert_string_equal(options_text(&o, "other"), "g");
    accept_(&tool, "-n4 -- --json");
    assert_int_equal(options_uint(&o, "peers"), 4);
    assert_string_equal(options_text(&o, "file"), "--json");
    accept_(&tool, "-jn 5 f --peers 6"); /* If an option is given twice, the last value counts. */
    assert_int_equal(options_uint(&o, "peers"), 6);
    assert_true(options_flag(&o, "json"));
    accept_(&tool, "f --out=--odd");
    assert_string_equal(options_text(&o, "out"), "--odd");
}

static void test_numbers(void **state)
{
    (void)state;
    refuse(&tool, "f --peers 0", "--peers: found '0', expected a whole number from 1 to 64");
    refuse(&tool, "f --peers 65", "--peers: found '65', expected a whole number from 1 to 64");
    static const char *const bad[] = {
        "-1", "+1", "1.0", "1e1", "0x4", "4x", "x", "18446744073709551616", NULL};
    char line[64], want[128];
    for (size_t i = 0; bad[i]; i++) {
        snprintf(line, sizeof line, "f --peers %s", bad[i]);
        snprintf(want, sizeof want, "--peers: found '%s', expected a whole number from 1 to 64",
                 bad[i]);
        refuse(&tool, line, want);
    }
    refuse(&tool, "f --skip 18446744073709551616",
           "--skip: found '18446744073709551616', expected a whole number");
    refuse(&tool, "f --skip x", "--skip: found 'x', expected a whole number");
    static const char *const odd[] = {"-0.1",  "100.5", "nan", "inf", "1e999",
                                      "0x1p3", "1,5",   "1e",  ".",   NULL};
    for (size_t i = 0; odd[i]; i++) {
        snprintf(line, sizeof line, "f --epochs %s", odd[i]);
        snprintf(want, sizeof want, "--epochs: found '%s', expected a number from 0 to 100",
                 odd[i]);
        refuse(&tool, line, want);
    }
    uint64_t u = 7;
    double d = 7.0;
    assert_false(number_whole("", &u));
    assert_false(number_whole(" 1", &u));
    assert_false(number_real("", &d));
    assert_false(number_real(" 1", &d));
    assert_false(number_real("1e999", &d));
    assert_false(number_whole("18446744073709551616", &u));
    assert_true(u == 7 && d == 7.0);
    assert_true(number_real("-1.5E-3", &d) && d == -1.5e-3);
}

static void test_errors(void **state)
{
    (void)state;
    refuse(&tool, "f --foo", "unknown flag --foo");
    refuse(&tool, "f --foo=3", "unknown flag --foo");
    refuse(&tool, "f --pers 3", "unknown flag --pers, did you mean --peers?");
    refuse(&tool, "f --peer 3",
           "unknown flag --peer, did you mean --peers?"); /* Flag names cannot be abbreviated. */
    refuse(&tool, "f --p 3", "unknown flag --p");
    refuse(&tool, "f --hel", "unknown flag --hel");
    refuse(&tool, "f --file x", "unknown flag --file"); /* FILE is an operand, not a flag. */
    refuse(&tool, "f -x", "unknown flag -x");
    refuse(&tool, "f --bandwidth 3", "--bandwidth is a flag of hearsay alpha only");
    refuse(&tool, "f --pear", "--pear is a flag of hearsay alpha, beta only");
    refuse(&tool, "f --where 3", "unknown flag --where");
    refuse(&tool, "f --out", "--out needs a value (DIR)");
    refuse(&tool, "f -n", "--peers needs a value (N)");
    refuse(&tool, "f --out --json", "--out needs a value (DIR), found the flag --json");
    refuse(&tool, "f --out=", "--out: found '', expected DIR");
    refuse(&tool, "f --json=1", "--json takes no value, found '--json=1'");
    refuse(&tool, "f --colour blue", "--colour: found 'blue', expected auto|on|off");
    refuse(&tool, "f --colour o", "--colour: found 'o', expected auto|on|off, did you mean on?");
    refuse(&tool, "f --colour auto|on", "--colour: found 'auto|on', expected auto|on|off");
    refuse(&tool, "f g h", "unexpected argument 'h'");
    /* The message about an unexpected argument suggests --peers only if the argument is a valid
     * number of peers (1 to 64). */
    refuse(&tool, "f g -- h", "unexpected argument 'h'");
    refuse(&tool, "f g 65", "unexpected argument '65'");
    refuse(&tool, "f g 64", "unexpected argument '64', did you mean --peers 64?");
    refuse(&tool, "--json", "FILE is missing");
    refuse(&tool, "", "FILE is missing");
    refuse(&runner, "", "--key FILE is missing");
    /* The error message names the placeholder that the help shows for the flag's value, such as
     * SPEC. */
    refuse(&runner, "--data", "--data needs a value (SPEC)");
    refuse(&runner, "--lr", "--lr needs a value (X)");
    refuse(&runner, "--policy --seed 3",
           "--policy needs a value (sync|async|ssp:N), found the flag --seed");
    refuse(&runner, "stray --key k", "unexpected argument 'stray'");
}

/* An error message is short, however long the argument is. */
static void test_long_arguments(void **state)
{
    (void)state;
    static char word[4000];
    memset(word, 'a', sizeof word - 1);
    memcpy(word, "--", 2);
    char *argv[] = {"x", word, NULL};
    assert_int_equal(options_parse(&o, &tool, 2, argv, &world, error), -EINVAL);
    assert_true(strlen(error) < 200);
    char *peers[] = {"x", "--peers", word + 2, NULL};
    assert_int_equal(options_parse(&o, &tool, 3, peers, &world, error), -EINVAL);
    assert_true(strlen(error) < 300);
}

static void test_environment(void **state)
{
    (void)state;
    static const char *const set[] = {"HEARSAY_PEERS", "5",           "HEARSAY_JSON",
                                      "yes",           "HEARSAY_OUT", "",
                                      "HEARSAY_FILE",  "not read",    NULL};
    environment = set;
    accept_(&tool, "f");
    assert_int_equal(options_uint(&o, "peers"), 5);
    assert_true(options_given(&o, "peers"));
    assert_true(options_flag(&o, "json"));
    assert_null(options_text(&o, "out"));
    accept_(&tool, "f --peers 6");
    assert_int_equal(options_uint(&o, "peers"), 6);
    refuse(&tool, "", "FILE is missing");

    static const char *const bad[] = {"HEARSAY_PEERS", "0", NULL};
    environment = bad;
    refuse(&tool, "f", "HEARSAY_PEERS: found '0', expected a whole number from 1 to 64");
    /* The valid value on the command line replaces the invalid value of the environment
     * variable. */
    accept_(&tool, "f --peers 2");

    static const char *const flag[] = {"HEARSAY_JSON", "maybe", NULL};
    environment = flag;
    refuse(&tool, "f", "HEARSAY_JSON: found 'maybe', expected 1 or 0");
    static const char *const off[] = {"HEARSAY_JSON",      "off", "HEARSAY_KEY", "k",
                                      "HEARSAY_MIN_PEERS", "4",   NULL};
    environment = off;
    accept_(&tool, "f");
    assert_false(options_flag(&o, "json"));
    accept_(&runner, "");
    assert_string_equal(options_text(&o, "key"), "k");
    assert_string_equal(options_text(&o, "min-peers"), "4");
    environment = NULL;
}

/* Values are taken from the command line, the environment, the file and the defaults, in this order
 * of precedence. */
static void test_file(void **state)
{
    (void)state;
    file = "key = from-file\nlr = 0.1\nbatch = 7\nseed = 5\ndata = /d\n";
    static const char *const set[] = {"HEARSAY_BATCH", "8", "HEARSAY_SEED", "6", NULL};
    environment = set;
    accept_(&runner, "--config f --seed 9");
    /* The required option --key has its value from the file. */
    assert_string_equal(options_text(&o, "key"), "from-file");
    assert_true(options_given(&o, "lr"));
    assert_string_equal(run_flags_value(&o.run, "lr"), "0.1");
    assert_string_equal(run_flags_value(&o.run, "batch"), "8");
    assert_string_equal(run_flags_value(&o.run, "seed"), "9");
    assert_string_equal(run_flags_value(&o.run, "mixer"), "");
    /* The command `runner` has its own option `data`, whose value is not changed. The value of a
     * run key `data` would be expanded (see test_expand()). */
    assert_string_equal(options_text(&o, "data"), "/d");
    environment = NULL;
    refuse(&runner, "", "--key FILE is missing"); /* Without --config no file is read. */
    file = "key = k\nlr = 1\nlrr = 1\n";
    refuse(&runner, "--config f", "f line 3: unknown flag --lrr, did you mean --lr?");
    file = "key = k\nlr = -1\n";
    refuse(&runner, "--config f", "f line 2: --lr: found '-1', expected a number from 0 to 1000");
    /* The valid value on the command line replaces the invalid value of the file. */
    accept_(&runner, "--config f --lr 1");
    file = "print-config = true\n";
    refuse(
        &runner, "--config f",
        "f line 1: --print-config: only allowed on the command line, not in a configuration file");
    file = NULL;
    refuse(&runner, "--config f", "--config: there is none");
    refuse(&tool, "f --config f", "unknown flag --config");
}

/* options_config_text() writes a settings file with the options that were given. Texts are in
 * quotes, numbers are not. Options that were not given become comments with their defaults. */
static void test_config_text(void **state)
{
    (void)state;
    char text[OPTIONS_FILE_MAX], again[OPTIONS_FILE_MAX], small[10];
    accept_(&runner, "--key a\\\"b --lr 0.5 --data 007 --model mlp:784-10");
    size_t n = options_config_text(&o, text, sizeof text);
    assert_int_equal(n, strlen(text));
    assert_non_null(strstr(text, "\nkey = \"a\\\\\\\"b\"\n"));
    assert_non_null(strstr(text, "\nlr = 0.5\n"));
    assert_non_null(strstr(text, "\nmodel = \"mlp:784-10\"\n"));
    assert_non_null(strstr(text, "\ndata = \"007\"\n"));
    assert_non_null(strstr(text, "\n# mixer = \"choco\"\n"));
    assert_null(strstr(text, "rounds"));
    assert_null(strstr(text, "config"));
    file = text;
    accept_(&runner, "--config f");
    options_config_text(&o, again, sizeof again);
    assert_string_equal(again, text);
    assert_int_equal(options_config_text(&o, small, sizeof small), n);
    assert_int_equal(strlen(small), sizeof small - 1);
    file = NULL;
}

/* Two options may exclude each other (--epochs and --hours). Setting both on the command line, or
 * both in the environment, is an error. An option on the command line overrides the other option in
 * the environment. */
static void test_rivals(void **state)
{
    (void)state;
    accept_(&tool, "f --hours 3");
    accept_(&tool, "f --epochs 2");
    refuse(&tool, "f --hours 3 --epochs 2", "--epochs and --hours contradict each other");
    static const char *const hours[] = {"HEARSAY_HOURS", "3", NULL};
    environment = hours;
    accept_(&tool, "f --epochs 2");
    assert_false(options_given(&o, "hours"));
    assert_true(options_given(&o, "epochs"));
    static const char *const epochs[] = {"HEARSAY_EPOCHS", "no number", NULL};
    environment = epochs;
    accept_(&tool, "f --hours 3");
    assert_false(options_given(&o, "epochs"));
    static const char *const both[] = {"HEARSAY_HOURS", "3", "HEARSAY_EPOCHS", "2", NULL};
    environment = both;
    refuse(&tool, "f", "HEARSAY_EPOCHS and HEARSAY_HOURS contradict each other");
    accept_(&tool, "f --hours 4");
    environment = NULL;
}

static void test_strays(void **state)
{
    (void)state;
    const struct command all[] = {tool, alone, {.name = NULL}};
    static const char *const known[] = {"HEARSAY_PEERS", "HEARSAY_POLICY", "HEARSAY_TOPOLOGY",
                                        "HEARSAY",       "TOPLOGY",        "XHEARSAY_TOPLOGY"};
    const char *meant;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_false(options_unknown_variable(all, known[i], &meant));
    assert_true(options_unknown_variable(all, "HEARSAY_TOPLOGY", &meant));
    assert_string_equal(meant, "topology");
    assert_true(options_unknown_variable(all, "HEARSAY_LOCAL_STEP", &meant));
    assert_string_equal(meant, "local-steps");
    assert_true(options_unknown_variable(all, "HEARSAY_SERVICE_HOST", &meant));
    assert_null(meant);
    /* FILE is an operand, and only options have environment variables. */
    assert_true(options_unknown_variable(all, "HEARSAY_FILE", &meant));
    assert_true(options_unknown_variable(all, "HEARSAY_", &meant));
    /* HEARSAY_LIBRARY is known, because the Python package reads it. */
    assert_false(options_unknown_variable(all, "HEARSAY_LIBRARY", &meant));
    assert_null(meant);
}

/* Returns the value of a run key in the parsed options. */
static const char *run_value(const char *name)
{
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(o.run.trainer, i)) != NULL; i++)
        if (strcmp(key->name, name) == 0)
            return o.run.value[i];
    fail_msg("no run key %s", name);
    return NULL;
}

static void test_run_flags(void **state)
{
    (void)state;
    accept_(&runner, "--key k");
    assert_false(run_flags_any(&o.run));
    accept_(&runner, "--key k --topology torus:02x3 --seed=9");
    assert_true(run_flags_any(&o.run));
    assert_string_equal(run_value("topology"), "torus:2x3");
    assert_string_equal(run_value("seed"), "9");
    assert_true(options_given(&o, "topology"));
    assert_false(options_given(&o, "momentum"));
    assert_int_equal(parse(&runner, "--key k --topology ring:x"), -EINVAL);
    assert_non_null(strstr(error, "topology"));
    assert_non_null(strstr(error, "'x'"));

    static const char *const bad[] = {"HEARSAY_TOPOLOGY", "ring:x", NULL};
    environment = bad;
    assert_int_equal(parse(&runner, "--key k"), -EINVAL);
    assert_int_equal(strncmp(error, "HEARSAY_TOPOLOGY: ", 18), 0);
    environment = NULL;
}

/* If a command has an option with the name of a run key, the option hides the run key. The value of
 * the option is not part of the run. */
static void test_own_row_takes_a_keys_place(void **state)
{
    (void)state;
    accept_(&runner, "--key k --data anything");
    assert_string_equal(options_text(&o, "data"), "anything");
    assert_string_equal(run_value("data"), "");
    static const char *const set[] = {"HEARSAY_DATA", "anything", NULL};
    environment = set;
    accept_(&runner, "--key k");
    environment = NULL;
    assert_string_equal(options_text(&o, "data"), "anything");
    assert_false(run_flags_any(&o.run));
}

static void test_expand(void **state)
{
    (void)state;
    accept_(&runner, "--key k --topology edges:f");
    assert_string_equal(options_text(&o, "topology"), "edges:0-1");
    assert_string_equal(run_value("topology"), "edges:0-1");
    refuse(&runner, "--key k --topology edges:gone", "--topology: gone: no such file");
    /* Values of `topology` and `data` are expanded: a file name becomes its contents, /b becomes
     * mnist:/b. If a key is given several times, only its last value is expanded. */
    accept_(&alone, "--data /a --topology edges:f --data /b");
    assert_string_equal(options_text(&o, "topology"), "edges:0-1");
    assert_string_equal(options_text(&o, "data"), "mnist:/b");
    assert_string_equal(run_value("data"), "mnist");
    accept_(&alone, "--data /a --data glyphs");
    assert_string_equal(options_text(&o, "data"), "glyphs");
}

/* A command may take only some of the run keys. */
static void test_some_keys(void **state)
{
    (void)state;
    static char text[OPTIONS_HELP_MAX];
    accept_(&alone, "--model logreg");
    assert_string_equal(run_value("model"), "logreg");
    refuse(&alone, "--policy sync", "--policy: of others");
    refuse(&alone, "--lr=1", "--lr: of others");
    refuse(&alone, "--polcy sync", "unknown flag --polcy");
    refuse(&alone, "--modl x", "unknown flag --modl, did you mean --model?");
    static const char *const set[] = {"HEARSAY_POLICY", "sync", "HEARSAY_MODEL", "logreg", NULL};
    environment = set; /* HEARSAY_POLICY may be for another command, so it is ignored. */
    accept_(&alone, "");
    environment = NULL;
    assert_string_equal(run_value("policy"), "");
    assert_string_equal(run_value("model"), "logreg");
    options_help(&alone, true, text);
    const struct run_key *k;
    for (size_t i = 0; (k = run_key_at(&sgd_keys, i)) != NULL; i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--%s ", k->name);
        assert_true(options_takes_key(&alone, k->name) == (strstr(text, flag) != NULL));
    }
    assert_true(options_takes_key(&alone, "data") && !options_takes_key(&alone, "lr"));
    assert_true(options_takes_key(&runner, "lr") && !options_takes_key(&runner, "data"));
    assert_false(options_takes_key(&tool, "lr"));
}

static void test_help(void **state)
{
    (void)state;
    /* With --help the operand FILE may be missing. */
    assert_int_equal(parse(&tool, "--help"), OPTIONS_WANT_HELP);
    assert_int_equal(parse(&tool, "f -h --foo"), OPTIONS_WANT_HELP);
    refuse(&tool, "f --foo --help", "unknown flag --foo");
    static char text[OPTIONS_HELP_MAX];
    size_t n = options_help(&tool, true, text);
    assert_int_equal(n, strlen(text));
    static const char *const parts[] = {"usage: hearsay tool FILE [options]\n",
                                        "a tool",
                                        "-n, --peers N",
                                        "(default 8; HEARSAY_PEERS)",
                                        "--colour auto|on|off",
                                        "HEARSAY_JSON",
                                        "FILE  ",
                                        "-h, --help",
                                        "example:\n",
                                        NULL};
    for (size_t i = 0; parts[i]; i++)
        if (!strstr(text, parts[i]))
            fail_msg("help lacks '%s':\n%s", parts[i], text);
    assert_null(strstr(text, "HEARSAY_FILE"));
    options_help(&runner, true, text);
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(&sgd_keys, i)) != NULL; i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--%s ", key->name);
        assert_non_null(strstr(text, flag));
    }
    assert_non_null(strstr(text, "this command's own"));
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        assert_true(strcspn(line, "\n") <= 100);
}

static void test_env_name(void **state)
{
    (void)state;
    char name[32];
    options_env_name("min-peers", name, sizeof name);
    assert_string_equal(name, "HEARSAY_MIN_PEERS");
}

/* An operand that is declared with `many` takes all further arguments as its values, even if they
 * look like options, up to a limit. */
static void test_many(void **state)
{
    (void)state;
    const char *const *rest;
    char line[1024] = "a";
    accept_(&gatherer, "a b --out x c -- --d");
    assert_string_equal(options_text(&o, "first"), "a");
    assert_string_equal(options_text(&o, "rest"), "b");
    assert_int_equal(options_operands(&o, &rest), 3);
    assert_string_equal(rest[0], "b");
    assert_string_equal(rest[1], "c");
    assert_string_equal(rest[2], "--d");
    refuse(&gatherer, "a", "REST is missing");
    accept_(&tool, "f");
    assert_int_equal(options_operands(&o, &rest), 0);
    for (int i = 0; i < OPTIONS_OPERANDS_MAX; i++)
        strcat(line, " b");
    accept_(&gatherer, line);
    assert_int_equal(options_operands(&o, &rest), OPTIONS_OPERANDS_MAX);
    refuse(&gatherer, strcat(line, " b"), "found more than 256 values of REST");
}

/* An option takes its former name on the command line, in the environment and in a file. Help does
 * not show the former name, and no suggestion for a mistyped flag names it. */
static void test_former_names(void **state)
{
    static const char *const former[] = {"HEARSAY_PASSES", "3", NULL};
    static const char *const both[] = {"HEARSAY_PASSES", "3", "HEARSAY_EPOCHS", "4", NULL};
    static char text[OPTIONS_HELP_MAX];
    (void)state;
    accept_(&tool, "f --passes 2");
    assert_true(options_real(&o, "epochs") == 2 && options_given(&o, "epochs"));
    accept_(&tool, "f --passes=2 --epochs 5");
    assert_true(options_real(&o, "epochs") == 5);
    environment = former;
    accept_(&tool, "f");
    assert_true(options_real(&o, "epochs") == 3);
    environment = both;
    accept_(&tool, "f");
    assert_true(options_real(&o, "epochs") == 4);
    environment = NULL;
    refuse(&tool, "f --passes 101", "--epochs: found '101', expected a number from 0 to 100");
    refuse(&tool, "f --pases 1", "unknown flag --pases");
    options_help(&tool, true, text);
    assert_null(strstr(text, "--passes"));
}

/* For a command with many options, --help shows the most used options. --help all shows each option
 * once. */
static void test_topics(void **state)
{
    static char text[OPTIONS_HELP_MAX];
    (void)state;
    assert_int_equal(parse(&runner, "--help"), OPTIONS_WANT_HELP);
    assert_int_equal(parse(&runner, "--help all"), OPTIONS_WANT_ALL_HELP);
    options_help(&runner, false, text);
    assert_non_null(strstr(text, "--model SPEC"));
    assert_null(strstr(text, "--momentum X"));
    assert_non_null(strstr(text, "--help all"));
    options_help(&runner, true, text);
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(&sgd_keys, i)) != NULL; i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "\n  --%s ", key->name);
        char *first = strstr(text, flag);
        if (first == NULL || strstr(first + 1, flag) != NULL)
            fail_msg("--help all does not show --%s exactly once", key->name);
    }
    /* Each run key has a topic in the help, so the heading for keys without a topic is missing. */
    assert_null(strstr(text, "other options"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_config_text),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_long_arguments),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_run_flags),
        cmocka_unit_test(test_own_row_takes_a_keys_place),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_some_keys),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_former_names),
        cmocka_unit_test(test_topics),
        cmocka_unit_test(test_env_name),
        cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_strays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
