/* tests/unit/node_grid.c -- --sweep and --seeds taken apart: peer/run/grid.h. */
#include "peer/run/grid.h"
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
    {.name = "peers", .kind = OPTION_UINT, .arg = "N", .fallback = "8", .help = "how many", .min = 1, .max = 64},
    {.name = "epochs", .kind = OPTION_REAL, .arg = "X", .fallback = "10", .help = "passes", .rival = "rounds"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR", .help = "where to"},
    {.name = "fresh", .kind = OPTION_FLAG, .help = "anew"},
    GRID_ROWS,
    {.name = "json", .kind = OPTION_FLAG, .help = "as JSON"},
    {.name = NULL},
};
/* clang-format on */
static const struct command tool = {
    .name = "tool", .rows = rows, .takes_run_flags = true, .trainer = &sgd_keys};

static char *environment(const char *name)
{
    return strcmp(name, "HEARSAY_LR") == 0      ? "0.5"
           : strcmp(name, "HEARSAY_SWEEP") == 0 ? "momentum=0.8"
                                                : NULL;
}

static struct options o;
static struct grid g;
static char error[OPTIONS_ERROR_MAX];

/* grid_open() of a command line, which must be good as such. */
static int open_grid(const char *const *argv, bool with_environment)
{
    static const struct options_world plain, full = {.env = environment};
    char *words[16] = {"tool"};
    int n = 1;
    for (; argv[n - 1] != NULL; n++)
        words[n] = (char *)(uintptr_t)argv[n - 1];
    error[0] = '\0';
    assert_int_equal(options_parse(&o, &tool, n, words, with_environment ? &full : &plain, error),
                     OPTIONS_OK);
    assert_true(grid_asked(&o));
    return grid_open(&g, &o, error);
}

/* The flags of a run as one text. */
static char flags[2048];

static void add(void *self, const char *name, const char *value)
{
    (void)self;
    size_t n = strlen(flags);
    snprintf(flags + n, sizeof flags - n, " --%s%s%s", name, value != NULL ? "=" : "",
             value != NULL ? value : "");
}

static const char *flags_of(uint32_t setting, uint64_t seed)
{
    const struct grid_sink sink = {.flag = add};
    flags[0] = '\0';
    grid_flags(&g, setting, seed, "DIR", &sink);
    return flags;
}

static void a_grid_has_every_pair_and_the_last_axis_goes_fastest(void **state)
{
    (void)state;
    static const char *const names[] = {"lr=0.01,batch=16", "lr=0.01,batch=32", "lr=0.1,batch=16",
                                        "lr=0.1,batch=32"};
    /* Two flags, and one with a blank between, are the same. */
    static const char *const lines[][4] = {{"--sweep", "lr=0.01,0.1", "--sweep=batch=16,32"},
                                           {"--sweep", "  lr=0.01,0.1 \t batch=16,32 "}};
    for (int k = 0; k < 2; k++) {
        char name[GRID_NAME_MAX];
        assert_int_equal(open_grid(lines[k], false), 0);
        assert_int_equal(g.n_settings, 4);
        assert_int_equal(g.n_seeds, 1);
        assert_int_equal(g.seed, 1);
        for (uint32_t s = 0; s < 4; s++) {
            assert_true(grid_name(&g, s, name));
            assert_string_equal(name, names[s]);
        }
        assert_string_equal(grid_value(&g, 2, 0), "0.1");
        assert_string_equal(grid_value(&g, 2, 1), "16");
    }
}

static void a_run_has_the_flags_given_its_setting_its_seed_and_its_directory(void **state)
{
    (void)state;
    static const char *const line[] = {
        "--peers=4", "--fresh", "--json", "--sweep", "lr=0.01,0.1", "--seeds=3",  "--seed",
        "7",         "--out",   "all",    "--model", "logreg",      "--rounds=5", NULL};
    assert_int_equal(open_grid(line, false), 0);
    assert_int_equal(g.seed, 7);
    assert_int_equal(g.n_seeds, 3);
    const char *text = flags_of(1, 9);
    assert_non_null(strstr(text, " --peers=4 --fresh "));
    assert_non_null(strstr(text, " --model=logreg"));
    assert_non_null(strstr(text, " --rounds=5"));
    assert_non_null(strstr(text, " --lr=0.1 --seed=9 --out=DIR"));
    assert_null(strstr(text, "--seed=7"));
    assert_null(strstr(text, "--json"));
    assert_null(strstr(text, "--seeds"));
    assert_null(strstr(text, "--sweep"));
    assert_null(strstr(text, "--epochs")); /* A default is nobody's word. */
}

static void seeds_alone_are_one_setting_without_a_name(void **state)
{
    (void)state;
    char name[GRID_NAME_MAX];
    static const char *const line[] = {"--seeds", "2", NULL};
    assert_int_equal(open_grid(line, false), 0);
    assert_int_equal(g.n_settings, 1);
    assert_true(grid_name(&g, 0, name));
    assert_string_equal(name, "");
    assert_string_equal(flags_of(0, 2), " --seed=2 --out=DIR");
}

static void what_a_name_cannot_have_is_written_otherwise(void **state)
{
    (void)state;
    char name[GRID_NAME_MAX], longest[300];
    static const char *const line[] = {"--sweep", "data=mnist:/a/b%,glyphs", NULL};
    assert_int_equal(open_grid(line, false), 0);
    assert_true(grid_name(&g, 0, name));
    assert_string_equal(name, "data=mnist:%2Fa%2Fb%25");
    assert_string_equal(grid_value(&g, 0, 0), "mnist:/a/b%");
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "data=", 5);
    longest[GRID_NAME_MAX - 1] = '\0'; /* So many characters, and the NUL. */
    const char *const fits[] = {"--sweep", longest, NULL};
    assert_int_equal(open_grid(fits, false), 0);
    longest[GRID_NAME_MAX - 1] = 'x';
    longest[GRID_NAME_MAX] = '\0';
    assert_int_equal(open_grid(fits, false), -EINVAL);
    assert_non_null(strstr(error, "too long for the name of a directory"));
}

static void the_environment_gives_way_to_the_command_line(void **state)
{
    (void)state;
    static const char *const line[] = {"--sweep", "lr=0.01,0.1", NULL};
    assert_int_equal(open_grid(line, true), 0);
    assert_int_equal(g.n_axes, 1); /* HEARSAY_SWEEP is hidden, and HEARSAY_LR swept over. */
    assert_string_equal(flags_of(0, 1), " --lr=0.01 --seed=1 --out=DIR");
    static const char *const other[] = {"--seeds", "2", NULL};
    assert_int_equal(open_grid(other, true), 0);
    assert_string_equal(flags_of(0, 1), " --lr=0.5 --momentum=0.8 --seed=1 --out=DIR");
}

static void what_is_wrong_is_refused_in_one_sentence(void **state)
{
    (void)state;
    static const struct
    {
        const char *line[5], *said;
    } cases[] = {
        {{"--sweep", "lr"}, "--sweep: found 'lr', expected KEY=VALUE,VALUE,..."},
        {{"--sweep", "=1"}, "--sweep: found '=1', expected KEY=VALUE"},
        {{"--sweep", "  "}, "--sweep: found blanks only"},
        {{"--sweep", "lrr=1"},
         "--sweep: found the key 'lrr', which is no flag of hearsay tool, did you mean lr?"},
        {{"--sweep", "nonesuch=1"}, "which is no flag of hearsay tool"},
        {{"--sweep", "json=1"}, "--sweep: --json takes no value"},
        {{"--sweep", "seed=1,2"}, "--sweep: found the key 'seed': --seeds N takes N seeds"},
        {{"--sweep", "out=a,b"}, "--sweep: found the key 'out': each run has"},
        {{"--sweep", "sweep=a"}, "--sweep: found the key 'sweep'"},
        {{"--sweep", "config=a"}, "--sweep: found the key 'config'"},
        {{"--sweep", "lr=1", "--sweep", "lr=2"}, "--sweep: found the key 'lr' twice"},
        {{"--sweep", "lr=1,2,1"}, "--sweep lr: found '1' twice"},
        {{"--sweep", "lr=1,,2"}, "--sweep lr: found no value between two commas"},
        {{"--sweep", "lr=1,"}, "--sweep lr: found no value"},
        {{"--sweep", "lr="}, "--sweep lr: found no value"},
        {{"--sweep", "lr=1,2", "--lr", "3"}, "--lr and --sweep lr=... contradict each other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(open_grid(cases[i].line, false), -EINVAL);
        if (strstr(error, cases[i].said) == NULL)
            fail_msg("'%s' is not in '%s'", cases[i].said, error);
        assert_null(strchr(error, '\n'));
    }
}

static void there_is_a_limit_to_runs_keys_and_text(void **state)
{
    (void)state;
    char many[4][2048], text[GRID_TEXT_MAX + 64];
    static const char *const keys[] = {"lr", "batch", "momentum"};
    for (int k = 0; k < 3; k++) {
        size_t n = (size_t)snprintf(many[k], sizeof many[k], "%s=", keys[k]);
        for (int i = 0; i < 22; i++)
            n += (size_t)snprintf(many[k] + n, sizeof many[k] - n, "%s%d", i > 0 ? "," : "", i + 1);
    }
    const char *const two[] = {"--sweep", many[0], "--sweep", many[1], "--seeds=20", NULL};
    assert_int_equal(open_grid(two, false), 0);
    const char *const three[] = {"--sweep", many[0], "--sweep", many[1], "--seeds=21", NULL};
    assert_int_equal(open_grid(three, false), -EINVAL);
    assert_non_null(strstr(error, "more than 10000 runs"));
    size_t n = (size_t)snprintf(text, sizeof text, "lr=");
    for (int i = 0; i <= GRID_VALUES_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", i > 0 ? "," : "", i);
    const char *const values[] = {"--sweep", text, NULL};
    assert_int_equal(open_grid(values, false), -EINVAL);
    assert_non_null(strstr(error, "more than 256 values"));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text, "data=", 5);
    assert_int_equal(open_grid(values, false), -EINVAL);
    assert_non_null(strstr(error, "more than 8191 characters"));
    const char *const axes[] = {
        "--sweep", "lr=1 batch=1 momentum=0 beta2=0 clip=0 warmup=0 rounds=1 gamma=1 pull=1", NULL};
    assert_int_equal(open_grid(axes, false), -EINVAL);
    assert_non_null(strstr(error, "more than 8 keys"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_has_every_pair_and_the_last_axis_goes_fastest),
        cmocka_unit_test(a_run_has_the_flags_given_its_setting_its_seed_and_its_directory),
        cmocka_unit_test(seeds_alone_are_one_setting_without_a_name),
        cmocka_unit_test(what_a_name_cannot_have_is_written_otherwise),
        cmocka_unit_test(the_environment_gives_way_to_the_command_line),
        cmocka_unit_test(what_is_wrong_is_refused_in_one_sentence),
        cmocka_unit_test(there_is_a_limit_to_runs_keys_and_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
