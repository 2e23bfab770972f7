/* tests/unit/node_run_schedules.c -- tests of run flags for momentum, pairs, learners and local
 * steps: which combinations are allowed. */
#include "nn/train/round_momentum.h"
#include "peer/run/outer.h"
#include "tests/unit/node_run_flags.h"

/* Flags that each --momentum-kind must accept or refuse. The error message must give the reason. */
static void momentum_is_of_a_kind(void **state)
{
    static const struct
    {
        const char *flags[4][2];
        /* Text that the error message must contain, by momentum kind: the fields qg, decentlam and
         * tracking are for the kinds of these names, and `exchanged` is for the kind averaged.
         * NULL: the flags are accepted. If tracking is NULL, `exchanged` is also for the kind
         * tracking. */
        const char *qg, *decentlam, *exchanged, *tracking;
    } rows[] = {
        {{{"seed", "1"}}, NULL, NULL, NULL, NULL},
        {{{"mixer", "dpsgd"}}, NULL, NULL, "needs --mixer choco", NULL},
        {{{"mixer", "dpsgd"}, {"topology", "base:1"}},
         NULL,
         "needs a --topology with the same edges",
         "needs --mixer choco",
         NULL},
        {{{"topology", "base:1"}}, NULL, "needs a --topology with the same edges", NULL, NULL},
        {{{"topology", "rotation:2"}, {"mixer", "gossip"}},
         NULL,
         "needs a --topology with the same",
         "needs --mixer choco",
         NULL},
        {{{"topology", "exponential"}, {"final-topology", "base:1"}}, NULL, NULL, NULL, NULL},
        {{{"mixer", "dpsgd"}, {"policy", "async"}},
         NULL,
         "needs --policy sync",
         "needs --mixer choco",
         NULL},
        {{{"policy", "async"}}, NULL, "needs --policy sync", "needs --policy sync", NULL},
        {{{"policy", "ssp:3"}}, NULL, "needs --policy sync", "needs --policy sync", NULL},
        {{{"mixer", "allreduce"}, {"topology", "complete"}, {"compress", "none"}},
         NULL,
         NULL,
         "needs --mixer choco",
         NULL},
        {{{"mixer", "sma"}},
         NULL,
         "needs --mixer choco, dpsgd or allreduce",
         "needs --mixer choco",
         NULL},
        {{{"mixer", "average"}, {"compress", "topk:0.1"}},
         NULL,
         "needs --mixer choco, dpsgd or",
         "needs --mixer choco",
         NULL},
        {{{"overlap", "1"}, {"local-steps", "7"}},
         NULL,
         "cannot be combined with --overlap 1",
         "needs --overlap 0",
         NULL},
        {{{"overlap", "layer"}, {"local-steps", "7"}}, NULL, NULL, "needs --overlap 0", NULL},
        {{{"byzantine", "1"}, {"topology", "complete"}},
         NULL,
         NULL,
         "cannot be combined with --byzantine",
         NULL},
        {{{"trigger", "2"}},
         NULL,
         "cannot be combined with --trigger",
         "cannot be combined with --trigger",
         NULL},
        {{{"outer", "nesterov:0.7:0.9"}},
         "cannot be combined with --outer",
         "cannot be combined with --outer",
         "cannot be combined with --outer",
         NULL},
        {{{"momentum", "0.95"}}, NULL, NULL, NULL, NULL},
        {{{"momentum", "0.96"}}, NULL, "needs a --momentum of at most 0.95", NULL, NULL},
        {{{"compress", "qsgd:4"}}, NULL, NULL, NULL, NULL},
        {{{"compress", "topk:0.95"}}, NULL, NULL, NULL, NULL},
        {{{"compress", "auto"}},
         NULL,
         "needs a precise codec in --compress",
         NULL,
         "needs a codec in --compress that leaves out at most 10 % of a delta's squared norm"},
        {{{"compress", "topk:0.4"}},
         NULL,
         "needs a precise codec in --compress",
         NULL,
         "needs a codec in --compress that leaves out at most 10 % of a delta's squared norm"},
        {{{"compress", "qsgd:3"}}, NULL, "needs a precise codec in --compress", NULL, NULL},
        {{{"compress", "topk:0.8"}}, NULL, "needs a precise codec in --compress", NULL, NULL},
        {{{"momentum", "0"}},
         "needs a --momentum above 0",
         "needs a --momentum above 0",
         "needs a --momentum above 0",
         NULL},
        {{{"local-steps", "auto"}},
         "needs a number for --local-steps",
         "needs a number for --local",
         "needs a number for --local",
         NULL},
        {{{"mixer", "average"}, {"compress", "topk:0.1"}, {"factor-masking", "true"}},
         "cannot be combined with --factor-masking true",
         "cannot be combined with --factor-masking true",
         "cannot be combined with --factor-masking true",
         NULL},
        {{{"mixer", "dpsgd"}, {"gamma", "1.3"}},
         "--gamma of at most 1",
         "--gamma of at most 1",
         "needs --mixer choco",
         NULL},
        {{{"gamma", "1.01"}},
         "needs a --gamma of at most 1",
         "needs a --gamma of at most 1",
         NULL,
         NULL},
        {{{"optimiser", "adam"}}, NULL, "needs --optimiser sgd", NULL, "needs --optimiser sgd"},
        {{{"optimiser", "adamw"}}, NULL, "needs --optimiser sgd", NULL, "needs --optimiser sgd"},
        {{{"optimiser", "adam"}, {"beta2", "0.811"}},
         NULL,
         "needs --optimiser sgd",
         NULL,
         "needs --optimiser sgd"},
        {{{"optimiser", "adam"}, {"beta2", "0.81"}},
         NULL,
         "needs --optimiser sgd",
         "needs a --beta2 above the square of --momentum",
         "needs --optimiser sgd"},
        {{{"optimiser", "adamw"}, {"mixer", "dpsgd"}},
         NULL,
         "needs --optimiser sgd",
         "needs --mixer choco",
         "needs --optimiser sgd"},
        {{{"nesterov", "false"}},
         NULL,
         "--nesterov: only with --optimiser sgd and a --momentum-kind",
         NULL,
         NULL}};
    (void)state;
    for (size_t i = 0; i < 4 * sizeof rows / sizeof rows[0]; i++) {
        static const char *const kinds[] = {"qg", "decentlam", "averaged", "tracking"};
        const char *const whys[] = {rows[i / 4].qg, rows[i / 4].decentlam, rows[i / 4].exchanged,
                                    rows[i / 4].tracking != NULL ? rows[i / 4].tracking
                                                                 : rows[i / 4].exchanged};
        const char *name = kinds[i % 4], *why = whys[i % 4];
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", "500");
        set(&f, "min-peers", "8");
        for (size_t k = 0; k < 4 && rows[i / 4].flags[k][0] != NULL; k++)
            set(&f, rows[i / 4].flags[k][0], rows[i / 4].flags[k][1]);
        assert_int_equal(run_from_flags(&r, &f, error), 0);
        assert_ptr_equal(momentum_kind_all[sgd_values(&r)->momentum_kind], &momentum_local);
        set(&f, "momentum-kind", name);
        int err = run_from_flags(&r, &f, error);
        if (err != (why != NULL ? -EINVAL : 0) || (err != 0 && strstr(error, why) == NULL)
            || (err != 0 && strstr(error, name) == NULL))
            fail_msg("row %zu, %s: %d, \"%s\"", i / 4, name, err, err != 0 ? error : "");
        assert_true(err != 0
                    || strcmp(momentum_kind_all[sgd_values(&r)->momentum_kind]->name, name) == 0);
    }
}

/* The choices of --momentum-kind have the names and the order of momentum_kind_all[]. Kinds that a
 * coarse codec would disturb have qsgd:4 as the default codec. */
static void momentum_kinds_have_names(void **state)
{
    (void)state;
    size_t n = 0;
    while (momentum_kind_all[n] != NULL) {
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", "500");
        set(&f, "min-peers", "8");
        set(&f, "momentum-kind", momentum_kind_all[n]->name);
        assert_int_equal(run_from_flags(&r, &f, error), 0);
        assert_int_equal(sgd_values(&r)->momentum_kind, n);
        /* The default codec is accepted with every kind of momentum. */
        const struct momentum_kind *kind = momentum_kind_all[n++];
        bool precise = kind->needs_constant_mixing || kind->tracked;
        assert_true(strncmp(r.compress, precise ? "qsgd:4" : "auto", precise ? 6 : 5) == 0);
    }
    assert_true(n == 5);
}

/* --momentum-kind auto is qg if the shards may differ and qg suits the other keys, else local. The
 * run description contains the result. If qg does not suit the other keys, a message names the key
 * that prevents it. */
static void auto_momentum_follows_the_shards(void **state)
{
    static const struct
    {
        bool own_data;
        const char *flags[3][2];
        const char *kind;
        const char *why; /* Start of the message that says why qg does not suit. NULL: qg suits. */
    } rows[] = {
        {false, {{"partition", "iid"}}, "local", NULL},
        {false, {{"partition", "dirichlet:0.1"}}, "qg", NULL},
        {false, {{"partition", "label:2"}, {"topology", "base:1"}}, "qg", NULL},
        {false, {{"partition", "file"}, {"mixer", "dpsgd"}}, "qg", NULL},
        {true, {{"partition", "iid"}}, "qg", NULL},
        {true, {{"mixer", "gossip"}}, "qg", NULL},
        {true, {{"gamma", "1"}, {"overlap", "1"}}, "qg", NULL},
        {true, {{"local-steps", "5"}, {"policy", "async"}}, "qg", NULL},
        {true,
         {{"local-steps", "auto"}},
         "local",
         "--momentum-kind qg: needs a number for --local-steps"},
        {true, {{"momentum", "0"}}, "local", "--momentum-kind qg: needs a --momentum above 0"},
        {true, {{"gamma", "1.2"}}, "local", "--momentum-kind qg: needs a --gamma of at most 1"},
        {true,
         {{"outer", "nesterov:1:0.5"}},
         "local",
         "--momentum-kind qg: cannot be combined with --outer"},
        {true, {{"learners", "2"}}, "local", "--learners 2: needs --momentum-kind local"},
        {true,
         {{"optimiser", "adam"}},
         "local",
         "--momentum-kind auto: chooses qg only with --optimiser sgd"},
        {true,
         {{"optimiser", "adamw"}, {"partition", "label:1"}},
         "local",
         "--momentum-kind auto: chooses qg only with --optimiser sgd"},
        {true,
         {{"mixer", "average"}, {"compress", "topk:0.1"}},
         "local",
         "--momentum-kind auto: chooses qg only with --mixer choco"},
        {true,
         {{"mixer", "allreduce"}},
         "local",
         "--momentum-kind auto: chooses qg only with --mixer choco"},
        {true,
         {{"mixer", "sma"}},
         "local",
         "--momentum-kind auto: chooses qg only with --mixer choco"},
        {true,
         {{"mixer", "ps"}},
         "local",
         "--momentum-kind auto: chooses qg only with --mixer choco"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys, .own_data = rows[i].own_data};
        struct run r, same;
        char text[WIRE_RUN_MAX + 1], line[64];
        set(&f, "rounds", "500");
        set(&f, "min-peers", "8");
        set(&f, "momentum-kind", "auto");
        for (size_t k = 0; k < 3 && rows[i].flags[k][0] != NULL; k++)
            set(&f, rows[i].flags[k][0], rows[i].flags[k][1]);
        if (run_from_flags(&r, &f, error) != 0)
            fail_msg("row %zu: %s", i, error);
        if (strcmp(momentum_kind_all[sgd_values(&r)->momentum_kind]->name, rows[i].kind) != 0)
            fail_msg("row %zu: expected %s", i, rows[i].kind);
        int err = sgd_check_auto_qg(&r, error);
        assert_int_equal(err, rows[i].why != NULL ? -EINVAL : 0);
        if (err != 0 && strstr(error, rows[i].why) != error)
            fail_msg("row %zu: found '%s', expected '%s'", i, error, rows[i].why);
        size_t n = run_text(&r, text);
        snprintf(line, sizeof line, "\nmomentum-kind=%s\n", rows[i].kind);
        assert_non_null(strstr(text, line));
        assert_int_equal(run_from_text(&same, &sgd_keys, text, n, error), 0);
    }
}

/* A peer that joins or resumes with --momentum-kind auto takes the kind of the run. A run
 * description never contains auto. */
static void auto_momentum_accepts_the_run(void **state)
{
    static struct run_flags begins, joins;
    struct run r, with;
    char text[WIRE_RUN_MAX + 1];
    (void)state;
    joins = (struct run_flags){.trainer = &sgd_keys, .own_data = true};
    set(&joins, "momentum-kind", "auto");
    for (size_t i = 0; momentum_kind_all[i] != NULL; i++) {
        begins = (struct run_flags){.trainer = &sgd_keys};
        set(&begins, "rounds", "500");
        set(&begins, "min-peers", "8");
        set(&begins, "momentum-kind", momentum_kind_all[i]->name);
        assert_int_equal(run_from_flags(&r, &begins, error), 0);
        assert_int_equal(run_check_flags(&r, &joins, error), 0);
        assert_int_equal(run_with_flags(&with, &r, &joins, error), 0);
        assert_int_equal(sgd_values(&with)->momentum_kind, i);
    }
    set(&begins, "momentum-kind", "qg");
    set(&joins, "momentum-kind", "local");
    assert_int_equal(run_from_flags(&r, &begins, error), 0);
    assert_int_equal(run_check_flags(&r, &joins, error), -EINVAL);
    assert_non_null(strstr(error, "--momentum-kind local contradicts the cluster's run"));
    size_t n = run_text(&r, text);
    char *at = strstr(text, "momentum-kind=qg");
    assert_non_null(at);
    memmove(at + sizeof "momentum-kind=auto" - 1, at + sizeof "momentum-kind=qg" - 1,
            n - (size_t)(at - text) - (sizeof "momentum-kind=qg" - 1) + 1);
    memcpy(at, "momentum-kind=auto", sizeof "momentum-kind=auto" - 1);
    assert_int_equal(run_from_text(&with, &sgd_keys, text, strlen(text), error), -EINVAL);
}

/* Each text of --outer must have one canonical spelling, or be refused with the expected form. */
static void outer_texts(void **state)
{
    static const struct
    {
        /* canonical: the spelling that must result. NULL: the text is refused. */
        const char *text, *canonical;
    } rows[] = {{"none", "none"},
                {"nesterov:0.7:0.9", "nesterov:0.7:0.9"},
                {"nesterov:1:0", "nesterov:1:0"},
                {"nesterov:.70:5e-1", "nesterov:0.7:0.5"},
                {"nesterov:10:0.999", "nesterov:10:0.999"},
                {"nesterov:1:-0", "nesterov:1:0"},
                {"nesterov:0:0.9", NULL},
                {"nesterov:1e-6:0.9", "nesterov:1e-06:0.9"},
                {"nesterov:1e-46:0.9", NULL},
                {"nesterov:-1:0.9", NULL},
                {"nesterov:10.1:0.9", NULL},
                {"nesterov:0.7:1", NULL},
                {"nesterov:0.7:-0.1", NULL},
                {"nesterov:0.7", NULL},
                {"nesterov:0.7:", NULL},
                {"nesterov::0.9", NULL},
                {"nesterov:0.7:0.9:1", NULL},
                {"nesterov:0.7 :0.9", NULL},
                {"nesterov:nan:0.9", NULL},
                {"nesterov", NULL},
                {"none:1:0", NULL},
                {"adam:0.7:0.9", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        int err = run_flags_set(&f, "outer", rows[i].text, error);
        if (rows[i].canonical == NULL) {
            assert_int_equal(err, -EINVAL);
            assert_non_null(strstr(error, "expected none, or nesterov:LR:MOMENTUM"));
        } else if (err != 0 || strcmp(run_flags_value(&f, "outer"), rows[i].canonical) != 0) {
            fail_msg("%s: %d, \"%s\"", rows[i].text, err, run_flags_value(&f, "outer"));
        }
    }
}

/* Flags that --outer must accept or refuse. The error message must give the reason. */
static void outer_needs_the_mean(void **state)
{
    static const struct
    {
        const char *flags[4][2];
        const char *why; /* Part of the error message. NULL: the flags are accepted. */
    } rows[] = {{{{"local-steps", "30"}, {"optimiser", "adamw"}}, NULL},
                {{{"overlap", "1"}, {"local-steps", "7"}}, NULL},
                {{{"local-steps", "auto"}}, NULL},
                {{{"policy", "async"}}, NULL},
                {{{"policy", "ssp:3"}}, NULL},
                {{{"mixer", "dpsgd"}}, NULL},
                {{{"mixer", "gossip"}}, NULL},
                {{{"mixer", "average"}, {"compress", "topk:0.1"}}, NULL},
                {{{"mixer", "allreduce"}}, NULL},
                {{{"mixer", "ps"}}, NULL},
                {{{"learners", "2"}}, NULL},
                {{{"byzantine", "1"}, {"topology", "complete"}, {"max-pull", "1"}}, NULL},
                {{{"overlap", "layer"}},
                 "--outer nesterov:0.7:0.9: cannot be combined with "
                 "--overlap layer"},
                {{{"mixer", "sma"}},
                 "--outer nesterov:0.7:0.9: cannot be combined with --mixer "
                 "sma"},
                {{{"mixer", "average"}, {"compress", "topk:0.1"}, {"factor-masking", "true"}},
                 "cannot be combined with --factor-masking true"},
                {{{"momentum-kind", "qg"}}, "--momentum-kind qg: cannot be combined with --outer"},
                {{{"momentum-kind", "decentlam"}},
                 "--momentum-kind decentlam: cannot be combined with --outer"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", "500");
        set(&f, "min-peers", "8");
        for (size_t k = 0; k < 4 && rows[i].flags[k][0] != NULL; k++)
            set(&f, rows[i].flags[k][0], rows[i].flags[k][1]);
        assert_int_equal(run_from_flags(&r, &f, error), 0);
        assert_false(run_has_outer(&r));
        set(&f, "outer", "nesterov:0.7:0.9");
        int err = run_from_flags(&r, &f, error);
        if (err != (rows[i].why != NULL ? -EINVAL : 0)
            || (err != 0 && strstr(error, rows[i].why) == NULL))
            fail_msg("row %zu: %d, \"%s\"", i, err, err != 0 ? error : "");
        if (err == 0) {
            struct run_outer o = run_outer_of(&r);
            assert_true(o.lr == 0.7 && o.momentum == 0.9);
        }
    }
}

/* --gamma auto is limited if an outer momentum could amplify differences between models: the outer
 * learning rate is above 2 (1 - momentum), and the mixing matrix may have negative eigenvalues. */
static void large_outer_momenta_limit_gamma(void **state)
{
    static const struct
    {
        const char *outer, *key, *value;
        bool limited;
    } rows[] = {{"nesterov:0.7:0.9", "topology", "ring", true},
                {"nesterov:0.7:0.9", "topology", "torus", true},
                {"nesterov:0.7:0.9", "topology", "star", true},
                {"nesterov:0.7:0.9", "topology", "regular:4", true},
                {"nesterov:0.7:0.9", "topology", "hypercube", true},
                {"nesterov:0.7:0.9", "topology", "complete", false},
                {"nesterov:0.7:0.9", "topology", "base:1", false},
                {"nesterov:0.7:0.9", "topology", "base:2", false},
                {"nesterov:0.7:0.9", "topology", "matching:4", false},
                {"nesterov:0.7:0.9", "gamma", "1", false},
                {"nesterov:0.7:0.9", "gamma", "0.5", false},
                {"nesterov:0.7:0.9", "compress", "topk:0.01", true},
                {"nesterov:0.7:0.9", "mixer", "dpsgd", true},
                {"none", "topology", "torus", false},
                {"nesterov:3:0", "topology", "torus", false},
                {"nesterov:0.7:0.5", "topology", "torus", false},
                {"nesterov:1:0.5", "topology", "torus", false},
                {"nesterov:1.01:0.5", "topology", "torus", true},
                {"nesterov:0.19:0.9", "topology", "torus", false},
                {"nesterov:0.21:0.9", "topology", "torus", true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", "500");
        set(&f, "outer", rows[i].outer);
        set(&f, rows[i].key, rows[i].value);
        assert_int_equal(run_from_flags(&r, &f, error), 0);
        if (run_outer_limits_gamma(&r) != rows[i].limited)
            fail_msg("row %zu: expected %d", i, rows[i].limited);
    }
}

/* The mixer gossip takes the mean of two models. It needs a topology of pairs, and no --gamma other
 * than 1. */
static void pairs_want_pairs(void **state)
{
    static const struct
    {
        const char *flags[3][2];
        const char *why; /* Part of the error message. NULL: the flags are accepted. */
    } rows[] = {
        {{{"seed", "1"}}, NULL},
        {{{"topology", "matching:3"}}, NULL},
        {{{"topology", "rotation:2"}, {"compress", "fp16"}}, NULL},
        {{{"topology", "one-peer-exponential"}, {"gamma", "1"}}, NULL},
        {{{"momentum-kind", "qg"}}, NULL},
        {{{"topology", "ring"}},
         "--topology ring: cannot be combined with --mixer gossip: each peer needs exactly one"},
        {{{"topology", "base:1"}}, "--topology base:1: cannot be combined with --mixer gossip"},
        {{{"gamma", "0.5"}}, "--gamma 0.5: cannot be combined with --mixer gossip"},
        {{{"compress", "qsgd:4"}}, "cannot be combined with --mixer gossip"},
        {{{"policy", "async"}}, "needs --policy sync"},
        {{{"overlap", "1"}}, "cannot be combined with --overlap 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", "500");
        set(&f, "min-peers", "8");
        set(&f, "mixer", "gossip");
        for (size_t k = 0; k < 3 && rows[i].flags[k][0] != NULL; k++)
            set(&f, rows[i].flags[k][0], rows[i].flags[k][1]);
        int err = run_from_flags(&r, &f, error);
        if (err != (rows[i].why != NULL ? -EINVAL : 0)
            || (err != 0 && strstr(error, rows[i].why) == NULL))
            fail_msg("row %zu: %d, \"%s\"", i, err, err != 0 ? error : "");
        if (i == 0)
            assert_string_equal(r.topology, "rotation:4");
    }
}

/* Flags that --learners, several learners in one process, must accept or refuse. The error message
 * must give the reason. */
static void learners_are_several(void **state)
{
    static const struct
    {
        const char *flags[4][2];
        const char *why; /* Part of the error message. NULL: the flags are accepted. */
    } rows[] = {
        {{{"learners", "4"}}, NULL},
        {{{"learners", "64"}, {"mixer", "sma"}, {"learner-momentum", "0"}}, NULL},
        {{{"learners", "2"},
          {"mixer", "average"},
          {"compress", "topk:0.1"},
          {"factor-masking", "true"}},
         NULL},
        {{{"learners", "2"}, {"local-steps", "auto"}, {"overlap", "0"}}, NULL},
        {{{"learners", "2"}, {"overlap", "1"}, {"optimiser", "adam"}}, NULL},
        {{{"learners", "1"}, {"momentum-kind", "qg"}}, NULL},
        {{{"learners", "1"}, {"overlap", "layer"}}, NULL},
        {{{"learners", "2"}, {"momentum-kind", "qg"}}, "--learners 2: needs --momentum-kind local"},
        {{{"learners", "3"}, {"overlap", "layer"}},
         "--learners 3: cannot be combined with --overlap layer"},
        {{{"learner-momentum", "0.5"}}, "--learner-momentum: only with --learners above 1"},
        {{{"learners", "1"}, {"learner-momentum", "0.9"}},
         "--learner-momentum: only with --learners above 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", "500");
        set(&f, "min-peers", "8");
        for (size_t k = 0; k < 4 && rows[i].flags[k][0] != NULL; k++)
            set(&f, rows[i].flags[k][0], rows[i].flags[k][1]);
        int err = run_from_flags(&r, &f, error);
        if (err != (rows[i].why != NULL ? -EINVAL : 0)
            || (err != 0 && strstr(error, rows[i].why) == NULL))
            fail_msg("row %zu: %d, \"%s\"", i, err, err != 0 ? error : "");
        if (err == 0)
            assert_int_equal(sgd_samples(&r), 32 * strtoul(rows[i].flags[0][1], NULL, 10));
    }
}

/* Tests which values --post-local N and --one-step-last N accept, also together with other flags.
 * The flags give the first or the last N rounds one local step each. Also checks the number of
 * local steps of the run. */
static void rounds_of_one_step(void **state)
{
    static const struct
    {
        /* why: text that the error message must contain. NULL: the flags are accepted. */
        const char *post, *last, *steps, *rounds, *why;
    } rows[] = {{"10", NULL, "4", "100", NULL},
                {"0", NULL, "4", "100", NULL},
                {"99", NULL, "2", "100", NULL},
                {NULL, "10", "4", "100", NULL},
                {NULL, "99", "2", "100", NULL},
                {"10", "20", "4", "100", NULL},
                {"1", "98", "4", "100", NULL},
                {"100", NULL, "4", "100",
                 "--post-local 100: expected less than the 100 rounds of the run, "},
                {"1000", "0", "4", "100", "--post-local 1000: expected less than the 100 rounds"},
                {NULL, "100", "4", "100", "--one-step-last 100: expected less than the 100 rounds"},
                {"0", "101", "4", "100", "--one-step-last 101: expected less than the 100 rounds"},
                {"40", "60", "4", "100",
                 "--post-local 40 and --one-step-last 60: expected less than the 100 "
                 "rounds of the run together, otherwise no round has --local-steps 4"},
                {"10", NULL, "1", "100", "--post-local: only with --local-steps above 1"},
                {"0", NULL, "1", "100", "--post-local: only with --local-steps above 1"},
                {"10", NULL, "auto", "100", "--post-local: only with --local-steps above 1"},
                {NULL, "10", "1", "100", "--one-step-last: only with --local-steps above 1"},
                {NULL, "10", "auto", "100", "--one-step-last: only with --local-steps above 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", rows[i].rounds);
        set(&f, "local-steps", rows[i].steps);
        if (rows[i].post != NULL)
            set(&f, "post-local", rows[i].post);
        if (rows[i].last != NULL)
            set(&f, "one-step-last", rows[i].last);
        int err = run_from_flags(&r, &f, error);
        if (err != (rows[i].why != NULL ? -EINVAL : 0)
            || (err != 0 && strstr(error, rows[i].why) == NULL))
            fail_msg("row %zu: %d, \"%s\"", i, err, err != 0 ? error : "");
        uint64_t n = 0, post = rows[i].post != NULL ? strtoull(rows[i].post, NULL, 10) : 0;
        uint64_t last = rows[i].last != NULL ? strtoull(rows[i].last, NULL, 10) : 0;
        for (uint64_t round = 0; err == 0 && round < r.rounds; round++) {
            bool single = round < post || round >= r.rounds - last;
            assert_int_equal(run_steps_before(&r, round), n);
            assert_int_equal(run_steps_at(&r, round), single ? 1 : r.local_steps);
            n += run_steps_at(&r, round);
        }
        if (err == 0) {
            assert_int_equal(run_steps_before(&r, r.rounds), n);
            /* The default warm-up of the step size is a tenth of the local steps of the run, and
             * not of its rounds. */
            assert_int_equal(sgd_values(&r)->warmup, n / r.local_steps / 10);
        }
    }
}

/* Flags that --trigger must accept or refuse, and its default codec. The error message must give
 * the reason. */
static void trigger_needs_replicas(void **state)
{
    static const struct
    {
        const char *key, *value, *error;
    } rows[] = {{"mixer", "average", "--trigger 2: needs --mixer choco"},
                {"mixer", "dpsgd", "--trigger 2: needs --mixer choco"},
                {"mixer", "allreduce", "--trigger 2: needs --mixer choco"},
                {"compress", "auto", "--trigger 2: needs a codec in --compress, not auto"},
                {"overlap", "layer", "--trigger 2: cannot be combined with --overlap layer"},
                {"topology", "base:1", "--trigger 2: needs a --topology with the same edges"},
                {"momentum-kind", "decentlam",
                 "--momentum-kind decentlam: cannot be combined with --trigger"},
                {"overlap", "1", NULL},
                {"compress", "topk:0.1", NULL},
                {"policy", "async", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        struct run r;
        set(&f, "rounds", "100");
        set(&f, "trigger", "2");
        set(&f, rows[i].key, rows[i].value);
        int err = run_from_flags(&r, &f, error);
        if (rows[i].error == NULL)
            assert_true(err == 0 && r.trigger == 2 && strcmp(r.compress, "auto") != 0);
        else if (err == 0 || strstr(error, rows[i].error) == NULL)
            fail_msg("%s %s: %d, %s", rows[i].key, rows[i].value, err, error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(momentum_is_of_a_kind),
                                       cmocka_unit_test(momentum_kinds_have_names),
                                       cmocka_unit_test(auto_momentum_follows_the_shards),
                                       cmocka_unit_test(auto_momentum_accepts_the_run),
                                       cmocka_unit_test(outer_texts),
                                       cmocka_unit_test(outer_needs_the_mean),
                                       cmocka_unit_test(large_outer_momenta_limit_gamma),
                                       cmocka_unit_test(trigger_needs_replicas),
                                       cmocka_unit_test(pairs_want_pairs),
                                       cmocka_unit_test(learners_are_several),
                                       cmocka_unit_test(rounds_of_one_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
