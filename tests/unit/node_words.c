/* tests/unit/node_words.c -- tests of options_completions() in peer/run/options.h: completions of
 * flags and of their values. */
#include "peer/run/options.h"
#include "peer/sgd/sgd_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
static const struct option_row rows[] = {
    {.name = "json", .kind = OPTION_FLAG, .help = "as JSON"},
    {.name = "peers", .kind = OPTION_UINT, .arg = "N", .help = "how many"},
    {.name = "nameless", .kind = OPTION_TEXT, .help = "a value that help calls VALUE"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR", .help = "where to"},
    {.name = "key", .kind = OPTION_TEXT, .arg = "FILE", .help = "the key"},
    {.name = "shard", .kind = OPTION_TEXT, .arg = "i/n|own|auto", .help = "which"},
    {.name = "bandwidth", .kind = OPTION_TEXT, .arg = "auto|RATE|off", .help = "how fast"},
    {.name = "token", .kind = OPTION_TEXT, .arg = "TOKEN|@FILE", .help = "a token"},
    {.name = "policy", .kind = OPTION_CHOICE, .arg = "sync|ssp:N|0|a+b", .help = "who waits"},
    {.name = "last", .kind = OPTION_TEXT, .arg = "off|", .help = "an empty alternative"},
    {.name = "file", .kind = OPTION_OPERAND, .arg = "MODEL", .help = "the model"},
    {.name = "where", .kind = OPTION_OPERAND, .arg = "HOST:PORT", .help = "an address"},
    {.name = NULL},
};
static const char expected[] =
    "json: none\n"
    "peers: \n"
    "nameless: \n"
    "out: DIR\n"
    "key: FILE\n"
    "shard: own auto\n"
    "bandwidth: auto off\n"
    "token: \n"
    "policy: sync ssp: 0 a+b\n"
    "last: off\n"
    "operand: FILE\n"
    "operand: \n";
static const struct option_row own[] = {
    {.name = "data", .kind = OPTION_TEXT, .arg = "FILE", .help = "in place of the run's"},
    {.name = NULL},
};
/* clang-format on */

struct told
{
    char text[8192];
    size_t n;
};

static void take(void *self, const char *name, const char *words)
{
    struct told *t = self;
    t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "%s: %s\n",
                             name != NULL ? name : "operand", words != NULL ? words : "none");
    assert_true(t->n < sizeof t->text);
}

static void test_rows(void **state)
{
    (void)state;
    static const struct command tool = {.name = "tool", .rows = rows};
    struct told t = {.n = 0};
    options_completions(&tool, &(struct options_completion_sink){.row = take, .self = &t});
    assert_string_equal(t.text, expected);
}

/* The list for shell completion must have each key of a run once. The completions of a key are its
 * choices, and the word that it accepts instead of a number, such as "auto". */
static void test_keys(void **state)
{
    (void)state;
    static const struct command runner = {
        .name = "runner", .rows = own, .takes_run_flags = true, .trainer = &sgd_keys};
    struct told t = {.n = 0};
    options_completions(&runner, &(struct options_completion_sink){.row = take, .self = &t});
    assert_non_null(strstr(t.text, "\nmixer: choco average dpsgd allreduce gossip sma ps\n"));
    assert_non_null(strstr(t.text, "\npolicy: sync async ssp:\n"));
    assert_non_null(strstr(t.text, "\ngamma: auto\n"));
    assert_non_null(strstr(t.text, "\nseed: \n"));
    assert_null(strstr(t.text, ": none\n"));
    assert_int_equal(strncmp(t.text, "data: FILE\n", 11), 0);
    assert_null(strstr(t.text, "\ndata: "));
    const struct run_key *key;
    for (size_t i = 0; (key = run_key_at(&sgd_keys, i)) != NULL; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n%s: ", key->name);
        const char *once = strstr(t.text, line);
        if (strcmp(key->name, "data") == 0)
            continue;
        assert_non_null(once);
        assert_null(strstr(once + 1, line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
