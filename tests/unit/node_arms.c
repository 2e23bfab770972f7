/* tests/unit/node_arms.c -- the file of hearsay compare taken apart: peer/run/arms.h. */
#include "peer/run/arms.h"
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
    {.name = "peers", .kind = OPTION_UINT, .arg = "N", .fallback = "8", .help = "how many"},
    {.name = "epochs", .kind = OPTION_REAL, .arg = "X", .fallback = "10", .help = "passes", .rival = "rounds"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR", .help = "where to"},
    {.name = "evaluate-every", .kind = OPTION_UINT, .arg = "N", .help = "rounds"},
    {.name = "wide", .kind = OPTION_FLAG, .help = "a flag"},
    {.name = NULL},
};
/* clang-format on */
static const struct command commands[] = {
    {.name = "local", .rows = rows, .takes_run_flags = true, .trainer = &sgd_keys},
    {.name = "sim", .rows = rows, .takes_run_flags = true, .trainer = &sgd_keys},
    {.name = NULL}};

static struct arms a;
static char error[OPTIONS_ERROR_MAX];

static int opened(const char *text, const char *set)
{
    error[0] = '\0';
    return arms_open(&a, "f", text, &set, set != NULL, commands, error);
}

static void refused(const char *text, const char *set, const char *said)
{
    int err = opened(text, set);
    if (err != -EINVAL || strstr(error, said) == NULL)
        print_message("%s: err %d, \"%s\", expected \"%s\"\n", text, err, error, said);
    assert_int_equal(err, -EINVAL);
    assert_non_null(strstr(error, said));
}

static char flags[2048];

static void add(void *self, const char *name, const char *value)
{
    (void)self;
    size_t n = strlen(flags);
    snprintf(flags + n, sizeof flags - n, " %s%s%s", name, value != NULL ? "=" : "",
             value != NULL ? value : "");
}

static const char *flags_of(uint32_t arm, uint32_t rate, bool validate)
{
    const struct grid_sink sink = {.flag = add};
    flags[0] = '\0';
    arms_flags(&a, arm, rate, validate, 7, "OUT", &sink);
    return flags;
}

static void lists_are_axes_and_the_last_goes_fastest(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "two,batch=8,momentum=0", "two,batch=8,momentum=0.9",
                                        "two,batch=16,momentum=0", "two,batch=16,momentum=0.9"};
    assert_int_equal(
        opened("seeds = 3 # so many\nseed=5\nlr = 0.1, 0.01\n[one]\n[ two ] # b\nbatch "
               "= 8,16\nmomentum = 0, 0.9\nmodel = \"logreg\"\n",
               NULL),
        0);
    assert_int_equal(a.n_arms, 5);
    assert_int_equal(a.n_seeds, 3);
    assert_int_equal(a.seed, 5);
    assert_string_equal(a.command->name, "sim");
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(a.arm[i].name, names[i]);
        assert_int_equal(arms_rates(&a, i), 2);
    }
    assert_string_equal(flags_of(3, 1, false),
                        " batch=16 momentum=0 model=logreg lr=0.01 seed=7 out=OUT");
    assert_string_equal(flags_of(0, 0, false), " lr=0.1 seed=7 out=OUT");
    arms_close(&a);
}

static void an_arm_wins_over_the_top_and_a_set_over_both(void **state)
{
    (void)state;
    static const char text[] = "epochs = 3\nbatch = 4\n[one]\nbatch = 8\n[two]\nrounds = 40\n";
    assert_int_equal(opened(text, NULL), 0);
    assert_string_equal(flags_of(0, 0, false), " epochs=3 batch=8 seed=7 out=OUT");
    assert_string_equal(flags_of(1, 0, false),
                        " batch=4 rounds=40 evaluate-every=2 seed=7 out=OUT");
    arms_close(&a);
    assert_int_equal(opened(text, "rounds=5"), 0);
    assert_string_equal(flags_of(0, 0, false), " batch=8 rounds=5 evaluate-every=1 seed=7 out=OUT");
    arms_close(&a);
    assert_int_equal(opened(text, "seeds=9"), 0);
    assert_int_equal(a.n_seeds, 9);
    arms_close(&a);
    assert_int_equal(opened(text, "batch=1,2"), 0);
    assert_int_equal(a.n_arms, 4);
    arms_close(&a);
}

static void rates_are_chosen_by_training_samples(void **state)
{
    (void)state;
    assert_int_equal(opened("data = csv:a,label=2\nwide = true\nlr = 0.1, 1e-3, 0.01\n", NULL), 0);
    assert_int_equal(a.n_arms, 1);
    assert_string_equal(a.arm[0].name, "run");
    assert_string_equal(flags_of(0, 1, true),
                        " wide data=csv:a,label=2,validate=0.1 lr=1e-3 seed=7 out=OUT");
    assert_string_equal(flags_of(0, 1, false), " data=csv:a,label=2 wide lr=1e-3 seed=7 out=OUT");
    assert_true(arms_rate_at_edge(&a, 0, 0));
    assert_true(arms_rate_at_edge(&a, 0, 1));
    assert_false(arms_rate_at_edge(&a, 0, 2));
    arms_close(&a);
    assert_int_equal(opened("", NULL), 0);
    assert_string_equal(flags_of(0, 0, true), " data=glyphs,validate=0.1 seed=7 out=OUT");
    assert_false(arms_rate_at_edge(&a, 0, 0));
    arms_close(&a);
}

static void names_of_directories_stay_in_theirs(void **state)
{
    (void)state;
    char dir[ARMS_NAME_MAX];
    assert_int_equal(opened("lr = a/b\n[../x]\n[.]\n[50%]\n[compare.csv]\n", NULL), 0);
    assert_string_equal(a.arm[0].dir, "%2E.%2Fx");
    assert_string_equal(a.arm[1].dir, "%2E");
    assert_string_equal(a.arm[2].dir, "50%25");
    assert_string_equal(a.arm[3].dir, "compare%2Ecsv");
    arms_rate_dir(&a, 0, 0, dir);
    assert_string_equal(dir, "lr-a%2Fb");
    arms_close(&a);
}

static void budgets_are_read(void **state)
{
    (void)state;
    assert_int_equal(opened("rounds = 9\nbudget = bytes, seconds:2.5\n", NULL), 0);
    assert_int_equal(a.n_budgets, 2);
    assert_true(a.budget[0].bytes && !(a.budget[0].most > 0));
    assert_true(!a.budget[1].bytes && a.budget[1].most > 2.4 && a.budget[1].most < 2.6);
    arms_close(&a);
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
    (void)state;
    refused("\nbacth = 3\n", NULL,
            "f line 2: found the key 'bacth', which is no flag of hearsay sim, "
            "did you mean batch?");
    refused("[x]\nseed = 3\n", NULL, "f line 2: seed: found in an arm");
    refused("out = d\n", NULL, "f line 1: out: each run has a directory of its own");
    refused("batch = 1,,2\n", NULL, "f line 1: batch: found no value between two commas");
    refused("batch = 1, 1\n", NULL, "f line 1: batch: found '1' twice");
    refused("lr = 0.1, 0.10\n", NULL, "f line 1: lr: found '0.10' twice");
    refused("batch = 1\nbatch = 2\n", NULL, "f line 2: batch is set twice");
    refused("[a]\n[a]\n", NULL, "f line 2: found the section [a] twice");
    refused("[a\n", NULL, "f line 1: expected a ]");
    refused("[]\n", NULL, "f line 1: found a section without a name");
    refused("[a] b\n", NULL, "f line 1: expected nothing behind the ]");
    refused("batch\n", NULL, "f line 1: expected name = value");
    refused("command = train\n", NULL, "f line 1: command: found 'train', expected sim or local");
    refused("seeds = 0\n", NULL, "f line 1: seeds: found '0', expected a whole number from 1");
    char text[400] = "rounds = 2\n[";
    for (int k = 0; k < 300; k++)
        strcat(text, "x");
    strcat(text, "]\nlr = 1\n[b]\nlr = 1\n");
    refused(text, NULL, "an arm whose name is too long");
    refused("budget = time\n", NULL, "f line 1: budget: found 'time', expected bytes, seconds");
    refused("budget = bytes\nepochs = 2\n", NULL,
            "f line 1: budget: found neither rounds nor evaluate-every in the arm");
    refused("budget = bytes:-1\n", NULL, "f line 1: budget: found 'bytes:-1'");
    refused("lr = 1, 2\n[a]\nlr = 1\n[b]\n", NULL, "expected as many for each");
    refused("", "batch", "--set: expected name = value");
    refused("", "bacth=1", "--set: found the key 'bacth'");
    refused("seeds = 1000\nbatch = 1,2,3,4\nmomentum = 0,0.5,0.9\n", NULL, "found 12012 runs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_axes_and_the_last_goes_fastest),
        cmocka_unit_test(an_arm_wins_over_the_top_and_a_set_over_both),
        cmocka_unit_test(rates_are_chosen_by_training_samples),
        cmocka_unit_test(names_of_directories_stay_in_theirs),
        cmocka_unit_test(budgets_are_read),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
