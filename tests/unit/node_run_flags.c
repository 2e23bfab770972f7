/* tests/unit/node_run_flags.c -- tests of dependencies between run flags: "auto" values, flags that
 * need other flags, and data kinds whose shape only the files determine. */
#include "tests/unit/node_run_flags.h"
#include "nn/math/rng.h"

#include <math.h>
static void autos_are_resolved(void **state)
{
    (void)state;
    static const char *const final_of[][2] = {{"none", "none"},
                                              {"fp16", "fp16"},
                                              {"qsgd:4", "qsgd:4"},
                                              {"qsgd:8", "qsgd:8"},
                                              {"sign", "qsgd:4"},
                                              {"topk:0.01", "qsgd:4"},
                                              {"topk:0.01+qsgd:4", "qsgd:4"},
                                              {"randk:0.01", "qsgd:4"},
                                              {"lowrank:2", "qsgd:4"},
                                              {"thr", "qsgd:4"},
                                              {"int8", "int8"},
                                              {"auto", "qsgd:4"},
                                              {"topk:0.01;bias=fp16", "qsgd:4"}};
    for (size_t i = 0; i < sizeof final_of / sizeof final_of[0]; i++) {
        struct run_flags f = plain_flags();
        set(&f, "compress", final_of[i][0]);
        assert_string_equal(make(&f).final_compress, codec(final_of[i][1]));
        set(&f, "final-compress", "auto"); /* An explicit "auto" is equal to the default. */
        struct run r = make(&f);
        assert_string_equal(r.final_compress, codec(final_of[i][1]));
        assert_int_equal(run_check_flags(&r, &f, error), 0);
    }
    static const char *const warmup_of[][2] = {{"1", "0"},    {"9", "0"},      {"10", "1"},
                                               {"999", "99"}, {"1000", "100"}, {"100000", "100"}};
    for (size_t i = 0; i < sizeof warmup_of / sizeof warmup_of[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        set(&f, "rounds", warmup_of[i][0]);
        assert_true(made(&f).warmup == strtoull(warmup_of[i][1], NULL, 10));
        set(&f, "warmup", "77"); /* An explicit number is not replaced by the default. */
        assert_true(made(&f).warmup == 77);
    }
}

/* The choices of --mixer are the names in mixer_all, in the same order. */
static void mixers_are_the_tables(void **state)
{
    (void)state;
    size_t n = 0, n_choices = 1;
    for (; mixer_all[n] != NULL; n++) {
        struct run_flags f = plain_flags();
        set(&f, "mixer", mixer_all[n]->name);
        assert_int_equal(make(&f).mixer, n);
    }
    const struct run_key *key = NULL;
    for (size_t k = 0; key == NULL || strcmp(key->name, "mixer") != 0; k++)
        key = run_key_at(&sgd_keys, k);
    for (const char *p = key->choices; (p = strchr(p, '|')) != NULL; p++)
        n_choices++;
    assert_int_equal(n_choices, n);
}

/* The value `auto` of --compress chooses among codec levels, which only the mixer CHOCO
 * supports. */
static void auto_is_of_choco(void **state)
{
    (void)state;
    struct run_flags f = plain_flags();
    struct run r = {.seed = 77}, untouched = r;
    set(&f, "compress", RUN_AUTO);
    assert_string_equal(make(&f).compress, "auto");
    assert_true(make(&f).drift_target == 1);
    set(&f, "drift-target", "0.1");
    assert_true(make(&f).drift_target == 0.1);
    set(&f, "policy", "async");
    assert_string_equal(make(&f).compress, "auto");
    set(&f, "policy", "sync");
    set(&f, "mixer", "average");
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_true(strncmp(error, "--mixer average: needs a codec in --compress, not auto", 53) == 0);
    assert_memory_equal(&r, &untouched, sizeof r);
}

/* The default codec is "auto" for CHOCO, qsgd:4 for mixers of updates, "none" for all others. */
static void auto_is_the_default_of_choco(void **state)
{
    (void)state;
    for (size_t i = 0; mixer_all[i] != NULL; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        set(&f, "rounds", "10");
        set(&f, "mixer", mixer_all[i]->name);
        struct run r = make(&f);
        const char *coarse = mixer_all[i]->whole ? "fp16" : "sign";
        bool none = mixer_all[i]->whole || mixer_all[i]->round_protocol;
        assert_string_equal(r.compress, none                    ? "none"
                                        : mixer_all[i]->updates ? codec("qsgd:4")
                                                                : RUN_AUTO);
        if (mixer_all[i]->round_protocol)
            continue;
        set(&f, "compress", coarse);
        assert_string_equal(make(&f).compress, codec(coarse));
    }
}

/* A mixer that sends whole models accepts only the codecs none and fp16, and does not send layers
 * one by one. */
static void whole_models_are_whole(void **state)
{
    (void)state;
    static const char *const bad[][3] = {{"compress", "qsgd:4", "expected none or fp16"},
                                         {"compress", "auto", "expected none or fp16"},
                                         {"compress", "topk:0.1", "expected none or fp16"},
                                         {"overlap", "layer", "--overlap 1"}};
    struct run r = {.seed = 77}, untouched = r;
    for (size_t k = 0; mixer_all[k] != NULL; k++)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0] && mixer_all[k]->whole; i++) {
            struct run_flags f = {.trainer = &sgd_keys};
            set(&f, "rounds", "10");
            set(&f, "mixer", mixer_all[k]->name);
            set(&f, bad[i][0], bad[i][1]);
            assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
            assert_non_null(strstr(error, bad[i][2]));
            assert_non_null(strstr(error, mixer_all[k]->name));
            assert_memory_equal(&r, &untouched, sizeof r);
        }
}

/* A flag that only one mixer has is refused with other mixers, even if its value is the default. */
static void flags_of_another_mixer_are_refused(void **state)
{
    (void)state;
    static const char *const own[][3] = {{"error-feedback", "true", "built in"},
                                         {"error-feedback", "false", "built in"},
                                         {"factor-masking", "true", "average"},
                                         {"factor-masking", "false", "average"}};
    static const char *const overlap[] = {"0", "1", "layer"};
    struct run r = {.seed = 77}, untouched = r;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        struct run_flags f = plain_flags(), alone = {.trainer = &sgd_keys};
        struct run choco = make(&f);
        char flag[64];
        snprintf(flag, sizeof flag, "--%s", own[i][0]);
        set(&f, own[i][0], own[i][1]);
        set(&alone, own[i][0], own[i][1]);
        assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
        assert_true(strncmp(error, flag, strlen(flag)) == 0 && strstr(error, own[i][2]) != NULL);
        assert_memory_equal(&r, &untouched, sizeof r);
        assert_int_equal(run_check_flags(&choco, &alone, error), -EINVAL);
        assert_true(strncmp(error, flag, strlen(flag)) == 0);
        set(&f, "mixer", "average");
        struct run average = make(&f);
        assert_int_equal(run_check_flags(&average, &alone, error), 0);
    }
    struct run_flags f = plain_flags();
    set(&f, "mixer", "average");
    set(&f, "policy", "async");
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_non_null(strstr(error, "--policy sync"));
    for (size_t i = 0; i < sizeof overlap / sizeof overlap[0]; i++) {
        f = plain_flags();
        set(&f, "overlap", overlap[i]);
        assert_int_equal(make(&f).overlap, i);
        set(&f, "policy", "async");
        assert_int_equal(make(&f).overlap, i);
        set(&f, "policy", "sync");
        set(&f, "mixer", "average");
        assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
        assert_non_null(
            strstr(error, "--overlap: only with --mixer choco: other mixers send the result"));
    }
}

/* With --overlap layer, a layer is sent before all gradients are known. Settings that need all of
 * them, such as --clip or --local-steps auto, are refused. */
static void layers_must_stand_when_they_are_done(void **state)
{
    static const struct
    {
        const char *key, *value, *why;
    } rows[] = {{"local-steps", "auto", "--overlap layer: needs a number for --local-steps"},
                {"clip", "2.5", "--overlap layer: cannot be combined with --clip 2.5"},
                {"topology", "base:1", NULL},
                {"byzantine", "0", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = plain_flags();
        struct run r;
        set(&f, "overlap", "layer");
        set(&f, rows[i].key, rows[i].value);
        int err = run_from_flags(&r, &f, error);
        if (rows[i].why == NULL ? err != 0 : err != -EINVAL || strstr(error, rows[i].why) == NULL)
            fail_msg("--%s %s: %s", rows[i].key, rows[i].value, error);
    }
}

static void rounds_may_come_later(void **state)
{
    (void)state;
    struct run_flags f = {.trainer = &sgd_keys};
    set(&f, "batch", "16");
    struct run r = make(&f);
    assert_true(r.rounds == 0 && sgd_values(&r)->batch == 16 && r.local_steps == 1);
    set(&f, "rounds", "300");
    r = make(&f);
    assert_true(r.rounds == 300 && sgd_values(&r)->warmup == 30);
}

static void data_alone_says_nothing_of_the_run(void **state)
{
    (void)state;
    struct run_flags f = {.trainer = &sgd_keys};
    assert_false(run_flags_any(&f));
    set(&f, "data", "mnist:/some/where");
    assert_false(run_flags_any(&f));
    set(&f, "seed", "1");
    assert_true(run_flags_any(&f));
}

/* A flag that has no effect in a run is refused if it is given, even with its default value. */
static void useless_flags_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][4] = {
        /* Columns: a flag, its value, another flag that it needs, and the value that this other
         * flag must have. */
        {"norm", "batch", "model", "resnet:20"},   {"norm", "group", "model", "vgg11:bn"},
        {"beta2", "0.999", "optimiser", "adam"},   {"beta2", "0.9", "optimiser", "adamw"},
        {"drift-target", "1", "compress", "auto"}, {"drift-target", "0.5", "compress", "auto"}};
    struct run r = {.seed = 77}, untouched = r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct run_flags f = plain_flags(), alone = {.trainer = &sgd_keys};
        set(&f, "compress", "sign");
        struct run plain = make(&f);
        char flag[64];
        snprintf(flag, sizeof flag, "--%s: only with --%s", bad[i][0], bad[i][2]);
        set(&f, bad[i][0], bad[i][1]);
        set(&alone, bad[i][0], bad[i][1]);
        assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
        /* Only the first 16 characters of the error message are compared. The text after "only
         * with" varies, for example "--norm: only with a --model that ...". */
        assert_true(strncmp(error, flag, 16) == 0 && strstr(error, bad[i][2]) != NULL);
        assert_memory_equal(&r, &untouched, sizeof r);
        assert_int_equal(run_check_flags(&plain, &alone, error), -EINVAL);
        set(&f, bad[i][2], bad[i][3]);
        struct run useful = make(&f);
        assert_int_equal(run_check_flags(&useful, &alone, error), 0);
    }
    struct run_flags f = plain_flags();
    set(&f, "optimiser", "adam");
    assert_true(made(&f).nesterov);
    set(&f, "nesterov", "false");
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_true(strncmp(error, "--nesterov: only with --optimiser sgd", 37) == 0);
    set(&f, "optimiser", "sgd");
    assert_false(made(&f).nesterov);
    f = plain_flags();
    set(&f, "model", "vgg11"); /* The plain vgg11 has no normalisation layers. */
    set(&f, "norm", "layer");
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
}

/* An orphan is a flag that has an effect only with another flag, which was not given. A peer with
 * an orphan cannot start a run, but may join one. If the other flag was given, or if the flags have
 * another error, the flag does not count as an orphan. */
static void orphans_may_join(void **state)
{
    (void)state;
    static const char *const own[][5] = {
        /* Columns: a flag, its value, the key that it depends on, a value of that key with which
         * the flag has an effect, and a value with which the flag has no effect. */
        {"beta2", "0.9", "optimiser", "adam", "sgd"},
        {"norm", "group", "model", "resnet:20", "logreg"},
        {"factor-masking", "true", "mixer", "average", "choco"}};
    char why[RUN_ERROR_MAX], want[RUN_ERROR_MAX];
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        struct run_flags f = plain_flags(), good = plain_flags(), other = plain_flags();
        struct run r;
        assert_false(run_flags_orphan(&f, why));
        set(&f, own[i][0], own[i][1]);
        assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
        assert_true(run_flags_orphan(&f, why));
        assert_string_equal(why, error);
        /* When a peer joins a run, each of its flags is compared with that run, even a flag that
         * needs another flag, which was not given. */
        set(&good, own[i][2], own[i][3]);
        set(&good, own[i][0], own[i][1]);
        r = make(&good);
        assert_int_equal(run_check_flags(&r, &f, error), 0);
        set(&other, own[i][2], own[i][4]);
        r = make(&other);
        assert_int_equal(run_check_flags(&r, &f, error), -EINVAL);
        snprintf(want, sizeof want, "--%s: only with", own[i][0]);
        assert_true(strncmp(error, want, strlen(want)) == 0);
        snprintf(want, sizeof want, ", and the cluster's run has %s=%s", own[i][2], own[i][4]);
        assert_non_null(strstr(error, want));
        /* A flag without the flag on which it depends is called an orphan. If that other flag is
         * given, even with a wrong value, the flag is not an orphan. */
        set(&f, own[i][2], own[i][4]);
        assert_false(run_flags_orphan(&f, why));
    }
    struct run_flags f = plain_flags(), r_flags = plain_flags();
    /* The flag --drift-target needs --compress auto, which is the default. */
    set(&f, "drift-target", "0.5");
    assert_false(run_flags_orphan(&f, why));
    assert_true(make(&f).drift_target == 0.5);
    set(&r_flags, "compress", "auto");
    set(&r_flags, "drift-target", "0.25");
    struct run r = make(&r_flags);
    assert_int_equal(run_check_flags(&r, &f, error), -EINVAL);
    assert_string_equal(
        error, "--drift-target 0.5 contradicts the cluster's run, which has drift-target=0.25");
    set(&f, "policy", "async"); /* No run may have async with --mixer average. */
    set(&f, "mixer", "average");
    assert_false(run_flags_orphan(&f, why));
}

static void choices_are_the_enums(void **state)
{
    (void)state;
    static const char *const norms[] = {"batch", "group", "layer"};
    static const char *const optimisers[] = {"sgd", "adam", "adamw"};
    static const enum model_norm norm[] = {MODEL_BATCH_NORM, MODEL_GROUP_NORM, MODEL_LAYER_NORM};
    static const enum optimiser_kind kind[] = {OPTIMISER_SGD, OPTIMISER_ADAM, OPTIMISER_ADAMW};
    struct run_flags f = plain_flags();
    set(&f, "model", "resnet:20");
    for (size_t i = 0; i < 3; i++) {
        set(&f, "norm", norms[i]);
        set(&f, "optimiser", optimisers[i]);
        struct run r = make(&f);
        assert_true(sgd_values(&r)->norm == norm[i] && sgd_values(&r)->optimiser == kind[i]);
    }
}

static void only_images_are_augmented(void **state)
{
    (void)state;
    static const char *const data[][2] = {
        {"glyphs", "yes"},
        {"mnist:d", "yes"},
        {"cifar100", "yes"},
        {"idx/1x32x32/10", "yes"},
        {"text/64", ""},
        {"csv/64x10/0", ""},
        /* For csv:d the shape is not known, because the files are not read yet. */
        {"libsvm/123x2/pm", ""},
        {"csv:d", "yes"}};
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        struct run_flags f = plain_flags();
        struct run r;
        set(&f, "data", data[i][0]);
        set(&f, "augment", "none");
        make(&f);
        set(&f, "augment", "crop+flip");
        int err = run_from_flags(&r, &f, error);
        assert_int_equal(err, data[i][1][0] ? 0 : -EINVAL);
        if (err != 0)
            assert_true(strncmp(error, "--augment crop+flip: ", 21) == 0
                        && strstr(error, data[i][0]) != NULL);
    }
}

/* With --byzantine B, every peer needs 2 B + 2 neighbours, and the run needs lock step and a mixer
 * of models. The error message names graphs with enough neighbours. */
static void tolerance_wants_neighbours(void **state)
{
    (void)state;
    static const struct
    {
        const char *tolerate, *topology, *peers;
        const char *why; /* Part of the error message. NULL: no error. */
    } rows[] = {{"1", "torus", "16", NULL},
                {"1", "torus", "9", NULL},
                {"1", "torus", "8",
                 "'torus' of 8 peers some have only 3: use --topology "
                 "regular:4 or complete, with 5 peers or more, or torus with 9 peers or more"},
                {"1", "ring", "16", "every peer needs 4 neighbours, but in 'ring' of 16 peers"},
                {"1", "complete", "5", NULL},
                {"1", "complete", "4", "needs 4 neighbours"},
                /* With --min-peers 1 the number of peers is not known, so the neighbours cannot be
                 * counted. */
                {"1", "complete", "1", NULL},
                {"1", "ring", "1", "needs 4 neighbours"},
                {"2", "torus", "16",
                 "needs 6 neighbours, but in 'torus' of 16 peers some have only 4: "
                 "use --topology regular:6 or complete, with 7 peers or more"},
                {"2", "regular:6", "16", NULL},
                {"0", "ring", "3", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = plain_flags();
        struct run r;
        set(&f, "byzantine", rows[i].tolerate);
        set(&f, "topology", rows[i].topology);
        set(&f, "min-peers", rows[i].peers);
        int err = run_from_flags(&r, &f, error);
        assert_int_equal(err, rows[i].why != NULL ? -EINVAL : 0);
        if (rows[i].why != NULL && strstr(error, rows[i].why) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", error, rows[i].why);
    }
    struct run r;
    struct run_flags f = plain_flags();
    set(&f, "byzantine", "1");
    set(&f, "topology", "complete");
    set(&f, "policy", "async");
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_non_null(strstr(error, "needs --policy sync"));
    set(&f, "policy", "sync");
    set(&f, "mixer", "average");
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_non_null(strstr(error, "--byzantine: only with --mixer choco"));
    f = plain_flags();
    set(&f, "max-pull", "1");
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_non_null(strstr(error, "--max-pull: only with --byzantine"));
    set(&f, "topology", "torus");
    set(&f, "min-peers", "16");
    set(&f, "byzantine", "1");
    assert_int_equal(run_from_flags(&r, &f, error), 0);
    assert_true(r.pull == 1 && r.tolerate == 1);
}

/* The flag --final-topology is accepted with some settings of other flags, and refused with
 * others. */
static void last_phase_has_a_graph(void **state)
{
    static const struct
    {
        /* why: text that the error message must contain. NULL: the flags are accepted. */
        const char *last, *key, *value, *why;
    } rows[] = {{"base:1", "seed", "1", NULL},
                {"complete", "compress", "topk:0.01", NULL},
                {"base:1", "compress", "topk:0.01", NULL},
                {"base:1", "overlap", "1", NULL},
                {"base:1", "gamma", "1", NULL},
                {"complete", "gamma", "0.5", NULL},
                {"base:1", "gamma", "0.5", "needs --gamma auto or 1"},
                {"base:1", "policy", "async", "needs --policy sync"},
                {"complete", "policy", "ssp:2", "needs --policy sync"},
                {"base:1", "mixer", "average", "needs --mixer choco"},
                {"base:1", "final-drift", "0", "needs a consensus phase"},
                {"base:1", "final-compress", "topk:0.1",
                 "--final-compress topk:0.1: too lossy for --final-topology base:1"},
                {"base:1", "final-compress", "qsgd:4", NULL},
                {"base:0", "seed", "1", "--final-topology"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = plain_flags();
        struct run r;
        set(&f, rows[i].key, rows[i].value);
        int err = run_flags_set(&f, "final-topology", rows[i].last, error);
        err = err == 0 ? run_from_flags(&r, &f, error) : err;
        assert_int_equal(err, rows[i].why != NULL ? -EINVAL : 0);
        if (rows[i].why != NULL && strstr(error, rows[i].why) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", error, rows[i].why);
    }
    struct run_flags f = plain_flags();
    set(&f, "byzantine", "1");
    set(&f, "topology", "complete");
    set(&f, "final-topology", "base:1");
    struct run r;
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_non_null(strstr(error, "cannot be combined with --byzantine"));
    f = plain_flags();
    r = make(&f);
    assert_string_equal(run_final_topology(&r), r.topology);
    assert_string_equal(r.final_topology, "same");
    set(&f, "final-topology", "base:2");
    r = make(&f);
    assert_string_equal(run_final_topology(&r), "base:2");
    /* The consensus phase needs no codec: one exact averaging pass without compression is
     * enough. */
    assert_string_equal(r.final_compress, "none");
}

/* A --drift-target below the rounding error is refused, because no peer can measure such a
 * distance. The error message names the least value that is allowed. */
static void drift_is_no_less_than_rounding(void **state)
{
    static const struct
    {
        const char *drift, *topology, *why; /* why: part of the error. NULL: no error. */
    } rows[] = {{"0", "ring", NULL},
                {"2.1e-7", "ring", NULL},
                {"2e-7", "ring", "found 2e-07, expected at least 2.08e-07"},
                {"2.1e-7", "complete", "a peer with 15 neighbours"},
                {"4.8e-7", "complete", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run_flags f = plain_flags();
        struct run r;
        set(&f, "final-drift", rows[i].drift);
        set(&f, "topology", rows[i].topology);
        set(&f, "min-peers", "16");
        int err = run_from_flags(&r, &f, error);
        assert_int_equal(err, rows[i].why != NULL ? -EINVAL : 0);
        if (rows[i].why != NULL && strstr(error, rows[i].why) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", error, rows[i].why);
    }
}

/* A learning rate is unchanged after it was written into a run description and read back. */
static void reals_are_exact(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    char text[64];
    for (int i = 0; i < 3000; i++) {
        struct run_flags f = plain_flags();
        double v = rng_unit(&r) * pow(10, -(double)rng_below(&r, 12));
        snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.4e", v);
        set(&f, "lr", text);
        struct run run = make(&f), back;
        assert_true(sgd_values(&run)->lr == strtod(text, NULL));
        char canonical[WIRE_RUN_MAX + 1];
        size_t n = run_text(&run, canonical);
        assert_int_equal(run_from_text(&back, &sgd_keys, canonical, n, error), 0);
        assert_true(sgd_values(&back)->lr == sgd_values(&run)->lr);
    }
}

/* No key of the trainer has a core key's name, and struct run_flags has room for all keys. */
static void keys_have_one_owner(void **state)
{
    (void)state;
    const struct run_key *a, *b;
    size_t i = 0, n_own = 0;
    while (sgd_keys.keys[n_own].name != NULL)
        n_own++;
    for (; (a = run_key_at(&sgd_keys, i)) != NULL; i++)
        for (size_t k = 0; k < i && (b = run_key_at(&sgd_keys, k)) != NULL; k++)
            assert_string_not_equal(a->name, b->name);
    assert_true(i > n_own && i <= RUN_KEYS_MAX);
    for (i = 0; (a = run_key_at(NULL, i)) != NULL; i++)
        assert_ptr_equal(a, run_key_at(&sgd_keys, n_own + i));
    assert_null(run_key_at(&sgd_keys, n_own + i));
}

/* The data kind "libsvm" is open: only the files determine its shape. A run with an open kind is
 * not fixed yet. An open kind agrees with every run that has a fixed shape of the same kind. */
static void open_kinds_agree_with_fixed_ones(void **state)
{
    (void)state;
    struct run_flags open = plain_flags(), fixed = plain_flags(), other = plain_flags();
    char text[WIRE_RUN_MAX + 1];
    set(&open, "data", "libsvm:some/file");
    assert_string_equal(made(&open).data, "libsvm");
    set(&fixed, "data", "libsvm/123x2/pm");
    struct run r = make(&fixed), back;
    size_t n = run_text(&r, text);
    assert_int_equal(run_from_text(&back, &sgd_keys, text, n, error), 0);
    assert_string_equal(sgd_values(&back)->data, "libsvm/123x2/pm");
    assert_int_equal(run_check_flags(&back, &open, error), 0);
    assert_int_equal(run_check_flags(&back, &fixed, error), 0);
    static const char *const others[] = {"csv", "libsvm/122x2/pm", "mnist:dir", "glyphs"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        set(&other, "data", others[i]);
        assert_int_equal(run_check_flags(&back, &other, error), -EINVAL);
        assert_non_null(strstr(error, "which has data=libsvm/123x2/pm"));
    }
    /* A run description from another peer is refused if its data kind is open, so that the shape of
     * the data is not known. */
    char changed[WIRE_RUN_MAX + 1];
    char *at = strstr(text, "libsvm/123x2/pm");
    assert_non_null(at);
    int length = snprintf(changed, sizeof changed, "%.*slibsvm%s", (int)(at - text), text,
                          at + strlen("libsvm/123x2/pm"));
    assert_int_equal(run_from_text(&back, &sgd_keys, changed, (size_t)length, error), -EINVAL);
    assert_non_null(strstr(error, "does not determine the shapes of the data"));
}

/* run_with_flags() keeps the run's value of each flag that is not given. A flag does not change the
 * run if it gives the run's value in another spelling, or a data kind without the shape that the
 * run states. */
static void flags_over_a_run(void **state)
{
    (void)state;
    struct run_flags founder = plain_flags(), none = {.trainer = &sgd_keys}, given = none;
    char text[WIRE_RUN_MAX + 1], same[WIRE_RUN_MAX + 1];
    set(&founder, "data", "libsvm/123x2/pm");
    set(&founder, "seed", "77");
    struct run r = make(&founder), made;
    run_text(&r, text);
    assert_int_equal(run_with_flags(&made, &r, &none, error), 0);
    run_text(&made, same);
    assert_string_equal(same, text);
    set(&given, "data", "libsvm:elsewhere");
    set(&given, "seed", "77");
    assert_int_equal(run_with_flags(&made, &r, &given, error), 0);
    run_text(&made, same);
    assert_string_equal(same, text);
    set(&given, "lr", "0.5");
    assert_int_equal(run_with_flags(&made, &r, &given, error), 0);
    assert_true(sgd_values(&made)->lr == 0.5 && made.seed == 77 && made.rounds == r.rounds);
    /* The combination of --mixer average with --policy async is refused. */
    set(&given, "mixer", "average");
    set(&given, "policy", "async");
    assert_int_equal(run_with_flags(&made, &r, &given, error), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autos_are_resolved),
        cmocka_unit_test(mixers_are_the_tables),
        cmocka_unit_test(auto_is_of_choco),
        cmocka_unit_test(auto_is_the_default_of_choco),
        cmocka_unit_test(whole_models_are_whole),
        cmocka_unit_test(flags_of_another_mixer_are_refused),
        cmocka_unit_test(layers_must_stand_when_they_are_done),
        cmocka_unit_test(rounds_may_come_later),
        cmocka_unit_test(data_alone_says_nothing_of_the_run),
        cmocka_unit_test(useless_flags_are_refused),
        cmocka_unit_test(tolerance_wants_neighbours),
        cmocka_unit_test(drift_is_no_less_than_rounding),
        cmocka_unit_test(last_phase_has_a_graph),
        cmocka_unit_test(orphans_may_join),
        cmocka_unit_test(choices_are_the_enums),
        cmocka_unit_test(only_images_are_augmented),
        cmocka_unit_test(keys_have_one_owner),
        cmocka_unit_test(reals_are_exact),
        cmocka_unit_test(open_kinds_agree_with_fixed_ones),
        cmocka_unit_test(flags_over_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
