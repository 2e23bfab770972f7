/* tests/unit/node_run.c -- tests of the run description: one text per run, others are refused. */
#include "tests/unit/node_run_flags.h"

/* Returns flags in which every key but three differs from its default. The exceptions are `policy`,
 * of which the mixer average allows only one, and `momentum-kind` and `nesterov`, of which the
 * optimiser adamw allows only one value each. */
static struct run_flags rich_flags(void)
{
    static const char *const flags[][2] = {
        {"model", "resnet:20"}, {"norm", "group"},           {"init", "0123456789abcdef"},
        {"data", "cifar10"},    {"augment", "crop+flip"},    {"partition", "dirichlet:0.5"},
        {"compress", "fp16"},   {"final-compress", "none"},  {"topology", "regular:4"},
        {"mixer", "average"},   {"error-feedback", "false"}, {"factor-masking", "true"},
        {"gamma", "0.0375"},    {"policy", "sync"},          {"seed", "18446744073709551615"},
        {"rounds", "4690"},     {"min-peers", "8"},          {"batch", "64"},
        {"local-steps", "2"},   {"optimiser", "adamw"},      {"lr", "0.1"},
        {"momentum", "0.95"},   {"beta2", "0.99"},           {"label-smoothing", "0.1"},
        {"clip", "2.5"},        {"weight-decay", "0.0001"},  {"warmup", "50"},
        {"schedule", "step"},   {"final-drift", "0.0005"},   {"quorum", "0.750"}};
    struct run_flags f = {.trainer = &sgd_keys};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        set(&f, flags[i][0], flags[i][1]);
    set(&f, "post-local", "1000");
    set(&f, "one-step-last", "500");
    set(&f, "learners", "3");
    set(&f, "learner-momentum", "0.5");
    const struct run_key *k;
    for (size_t i = 0; (k = run_key_at(&sgd_keys, i)) != NULL; i++)
        if (strcmp(k->name, "policy") != 0 && strcmp(k->name, "nesterov") != 0
            && strcmp(k->name, "momentum-kind") != 0)
            /* Every key except these three must have been set above, to a value other than its
             * default. */
            assert_string_not_equal(f.value[i], k->fallback);
    return f;
}

static void defaults_make_a_good_first_run(void **state)
{
    (void)state;
    struct run_flags f = plain_flags();
    struct run r = make(&f);
    assert_string_equal(sgd_values(&r)->model, "lenet5");
    assert_string_equal(sgd_values(&r)->data, "glyphs");
    assert_string_equal(r.compress, RUN_AUTO);
    assert_true(r.drift_target == 1);
    assert_string_equal(r.final_compress, codec("qsgd:4"));
    assert_string_equal(r.topology, "ring");
    assert_string_equal(sgd_values(&r)->skew, "iid");
    assert_true(r.gamma_auto && sgd_values(&r)->nesterov);
    assert_true(r.policy == RUN_SYNC && sgd_values(&r)->schedule == SCHEDULE_COSINE);
    assert_string_equal(mixer_all[r.mixer]->name, "choco");
    assert_true(r.error_feedback && !r.factor_masking && sgd_values(&r)->clip == 0);
    assert_true(r.seed == 1 && r.rounds == 500 && r.min_peers == 1);
    assert_true(sgd_values(&r)->batch == 32 && sgd_samples(&r) == 32 && r.local_steps == 1
                && sgd_values(&r)->warmup == 50);
    assert_true(sgd_values(&r)->optimiser == OPTIMISER_SGD
                && sgd_values(&r)->norm == MODEL_BATCH_NORM);
    assert_true(sgd_values(&r)->beta2 == 0.999 && sgd_values(&r)->label_smoothing == 0);
    assert_string_equal(sgd_values(&r)->augment, "none");
    assert_string_equal(sgd_values(&r)->init, "none");
    assert_true(sgd_values(&r)->lr == 0.02 && sgd_values(&r)->momentum == 0.9
                && sgd_values(&r)->weight_decay == 0 && r.final_drift == 0.001);
}

static void defaults_may_be_given(void **state)
{
    /* clang-format off */
    /* Columns: a key, another key that it needs, and the value that this other key must have. */
    static const char *const needs[][3] = {
        {"error-feedback", "mixer", "average"}, {"factor-masking", "mixer", "average"},
        {"collective", "mixer", "sma"}, {"centre-momentum", "mixer", "sma"}, {"norm", "model", "resnet:20"},
        {"drift-target", "compress", "auto"}, {"max-pull", "byzantine", "1"}, {"max-pull", "topology", "complete"},
        {"beta2", "optimiser", "adam"}, {"learner-momentum", "learners", "2"}, {"post-local", "local-steps", "2"},
        {"one-step-last", "local-steps", "2"}};
    /* clang-format on */
    (void)state;
    const struct run_key *k;
    for (size_t i = 0; (k = run_key_at(&sgd_keys, i)) != NULL; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        assert_true(strlen(k->help) > 0);
        if (strcmp(k->name, "rounds") == 0)
            continue; /* The default 0 means that no number of rounds is given. */
        set(&f, k->name, k->fallback);
        if (k->kind != RUN_TEXT)
            assert_string_equal(f.value[i], k->fallback);
        struct run_flags plain = plain_flags(), both;
        for (size_t n = 0; n < sizeof needs / sizeof needs[0]; n++)
            if (strcmp(k->name, needs[n][0]) == 0)
                set(&plain, needs[n][1], needs[n][2]);
        both = plain;
        set(&both, k->name, k->fallback);
        struct run r = make(&plain), s = make(&both);
        char tr[WIRE_RUN_MAX + 1], ts[WIRE_RUN_MAX + 1];
        run_text(&r, tr);
        run_text(&s, ts);
        /* A flag that is given with its default value does not change the run. */
        assert_string_equal(tr, ts);
    }
}

static void text_is_as_documented(void **state)
{
    (void)state;
    struct run_flags f = rich_flags();
    struct run r = make(&f);
    char text[WIRE_RUN_MAX + 1];
    size_t n = run_text(&r, text);
    assert_int_equal(n, strlen(text));
    assert_string_equal(text, "augment=crop+flip\n"
                              "batch=64\n"
                              "beta2=0.99\n"
                              "centre-momentum=0.9\n"
                              "clip=2.5\n"
                              "collective=ring\n"
                              "compress=fp16\n"
                              "data=cifar10\n"
                              "drift-target=1\n"
                              "error-feedback=false\n"
                              "factor-masking=true\n"
                              "final-compress=none\n"
                              "final-drift=0.0005\n"
                              "final-topology=same\n"
                              "gamma=0.0375\n"
                              "init=0123456789abcdef\n"
                              "label-smoothing=0.1\n"
                              "learner-momentum=0.5\n"
                              "learners=3\n"
                              "local-steps=2\n"
                              "lr=0.1\n"
                              "min-peers=8\n"
                              "mixer=average\n"
                              "model=resnet:20\n"
                              "momentum=0.95\n"
                              "momentum-kind=local\n"
                              "nesterov=true\n"
                              "norm=group\n"
                              "one-step-last=500\n"
                              "optimiser=adamw\n"
                              "outer=none\n"
                              "overlap=0\n"
                              "policy=sync\n"
                              "post-local=1000\n"
                              "pull=0\n"
                              "quorum=0.75\n"
                              "rounds=4690\n"
                              "schedule=step\n"
                              "seed=18446744073709551615\n"
                              "skew=dirichlet:0.5\n"
                              "tolerate=0\n"
                              "topology=regular:4\n"
                              "trigger=0\n"
                              "warmup=50\n"
                              "weight-decay=0.0001\n");
}

/* In a run description, renamed keys keep their former names, so that peers of the previous version
 * and older checkpoints and files can use it. A description with the new name of such a key is
 * refused. */
static void renamed_keys_keep_their_names_in_the_text(void **state)
{
    (void)state;
    struct run_flags f = rich_flags();
    struct run r = make(&f), back;
    char text[WIRE_RUN_MAX + 1];
    size_t n = run_text(&r, text);
    assert_non_null(strstr(text, "\ntolerate=0\n"));
    char *skew = strstr(text, "\nskew=");
    assert_non_null(skew);
    memmove(skew + 10, skew + 5, strlen(skew + 5) + 1);
    memcpy(skew, "\npartition", 10);
    assert_int_equal(run_from_text(&back, &sgd_keys, text, n + 5, error), -EINVAL);
    assert_string_equal(error, "the run description is not canonical");
}

static void check_round_trip(const struct run_flags *f)
{
    struct run r = make(f), back = {.trainer = &sgd_keys};
    char text[WIRE_RUN_MAX + 1], again[WIRE_RUN_MAX + 1];
    size_t n = run_text(&r, text);
    if (run_from_text(&back, &sgd_keys, text, n, error) != 0)
        fail_msg("%s", error);
    assert_int_equal(run_text(&back, again), n);
    assert_memory_equal(again, text, n);
    assert_true(sgd_values(&back)->lr == sgd_values(&r)->lr && back.gamma == r.gamma
                && back.gamma_auto == r.gamma_auto);
    assert_true(back.seed == r.seed && back.rounds == r.rounds
                && sgd_values(&back)->warmup == sgd_values(&r)->warmup);
    assert_true(sgd_values(&back)->batch == sgd_values(&r)->batch && back.policy == r.policy
                && sgd_values(&back)->schedule == sgd_values(&r)->schedule);
    assert_true(sgd_values(&back)->optimiser == sgd_values(&r)->optimiser
                && sgd_values(&back)->beta2 == sgd_values(&r)->beta2
                && sgd_values(&back)->norm == sgd_values(&r)->norm);
    assert_true(sgd_values(&back)->label_smoothing == sgd_values(&r)->label_smoothing
                && sgd_values(&back)->momentum == sgd_values(&r)->momentum);
    assert_string_equal(sgd_values(&back)->augment, sgd_values(&r)->augment);
    assert_string_equal(sgd_values(&back)->init, sgd_values(&r)->init);
    assert_string_equal(back.compress, r.compress);
    assert_true(back.drift_target == r.drift_target);
    assert_true(sgd_values(&back)->nesterov == sgd_values(&r)->nesterov
                && sgd_values(&back)->clip == sgd_values(&r)->clip && back.mixer == r.mixer);
    assert_true(sgd_values(&back)->learners == sgd_values(&r)->learners
                && sgd_values(&back)->learner_momentum == sgd_values(&r)->learner_momentum);
    assert_true(back.local_steps == r.local_steps && back.post_local == r.post_local
                && back.one_step_last == r.one_step_last);
    assert_true(back.error_feedback == r.error_feedback && back.factor_masking == r.factor_masking);
    assert_int_equal(run_check_flags(&back, f, error), 0);
}

static void runs_pass_there_and_back(void **state)
{
    (void)state;
    struct run_flags f = plain_flags(), g = rich_flags();
    check_round_trip(&f);
    check_round_trip(&g);
    set(&f, "topology", "edges:0-1,1-2,2-0");
    check_round_trip(&f);
    set(&f, "compress", "auto");
    check_round_trip(&f);
    set(&f, "drift-target", "0.125");
    check_round_trip(&f);
}

static void one_spelling_for_each_meaning(void **state)
{
    (void)state;
    static const char *const same[][3] = {{"lr", "0.0500", "0.05"},
                                          {"lr", "5e-2", "0.05"},
                                          {"lr", "100", "100"},
                                          {"lr", "1e2", "100"},
                                          {"weight-decay", "-0", "0"},
                                          {"batch", "0064", "64"},
                                          {"gamma", "1.0", "1"},
                                          {"model", "mlp:0784-10", "mlp:784-10"},
                                          {"partition", "dirichlet:.50", "dirichlet:0.5"},
                                          {"data", "mnist:/some/where", "mnist"},
                                          {"data", "mnist", "mnist"},
                                          {"data", "csv:/some/where", "csv"},
                                          {"data", "text:/some/where,context=64", "text/64"},
                                          {"partition", "label:2", "label:2"},
                                          {"partition", "file", "file"},
                                          {"augment", "flip+crop", "crop+flip"},
                                          {"augment", "none", "none"},
                                          {"init", "none", "none"},
                                          {"label-smoothing", "0.10", "0.1"},
                                          {"compress", "auto", "auto"},
                                          {"drift-target", "5e-2", "0.05"},
                                          {"final-compress", "auto", "auto"},
                                          {"warmup", "auto", "auto"},
                                          {"gamma", "auto", "auto"}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        set(&f, same[i][0], same[i][1]);
        const struct run_key *key;
        for (size_t k = 0; (key = run_key_at(&sgd_keys, k)) != NULL; k++)
            assert_string_equal(f.value[k], strcmp(key->name, same[i][0]) == 0 ? same[i][2] : "");
    }
}

static void later_value_wins(void **state)
{
    (void)state;
    struct run_flags f = plain_flags();
    set(&f, "rounds", "7");
    assert_true(make(&f).rounds == 7);
}

static void bad_values_name_the_flag(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        /* Columns: flag, value, text that the error message must contain. */
        {"batch", "0", "found '0', expected a whole number from 1 to 65536"},
        {"batch", "65537", "found '65537'"},
        {"batch", "-1", "found '-1'"},
        {"batch", " 1", "found ' 1'"},
        {"batch", "+1", "found '+1'"},
        {"batch", "1 ", "found '1 '"},
        {"batch", "0x10", "found '0x10'"},
        {"batch", "99999999999999999999999", "found '99999999999999999999999'"},
        {"seed", "18446744073709551616", "a whole number from 0 to 18446744073709551615"},
        {"rounds", "0", "a whole number from 1 to"},
        {"rounds", "auto", "found 'auto'"},
        {"min-peers", "0", "from 1 to 1024"},
        {"local-steps", "x", "found 'x'"},
        {"warmup", "some", "'auto' or a whole number"},
        {"lr", "nan", "found 'nan', expected a number from 0 to 1000"},
        {"lr", "inf", "found 'inf'"},
        {"lr", "1e400", "found '1e400'"},
        {"lr", "0x1p-4", "found"},
        {"lr", "-0.1", "found '-0.1'"},
        {"lr", " 0.1", "found"},
        {"lr", "0.1x", "found '0.1x'"},
        {"lr", "1e", "found '1e'"},
        {"lr", ".", "found '.'"},
        {"lr", "--1", "found '--1'"},
        {"momentum", "1", "from 0 to 0.9999"},
        {"gamma", "0", "'auto' or a number from"},
        {"gamma", "2.1", "found '2.1'"},
        {"gamma", "Auto", "found 'Auto'"},
        {"final-drift", "-1e-3", "found"},
        {"quorum", "1.01", "from 0 to 1"},
        {"quorum", "half", "found 'half'"},
        {"weight-decay", "2", "from 0 to 1"},
        {"policy", "Sync", "found 'Sync', expected sync|async"},
        {"policy", "s", "sync|async"},
        {"policy", "sync|async", "found 'sync|async'"},
        {"policy", "|", "expected"},
        {"schedule", "linear", "cosine|step|constant"},
        {"nesterov", "yes", "false|true"},
        {"mixer", "mean", "found 'mean', expected choco|average|dpsgd|allreduce|gossip|sma|ps"},
        {"clip", "-1", "found '-1'"},
        {"error-feedback", "off", "false|true"},
        {"factor-masking", "1", "false|true"},
        {"compress", "topk:1.5", "1.5"},
        {"compress", "zip", "zip"},
        {"compress", "Auto", "Auto"},
        {"compress", "auto;bias=fp16", "auto"},
        {"final-compress", "Auto", "Auto"},
        {"drift-target", "0", "found '0', expected a number from 1e-06 to 1e+06"},
        {"drift-target", "2000000", "found '2000000'"},
        {"drift-target", "auto", "found 'auto'"},
        {"final-compress", "topk:", ""},
        {"topology", "ring:x", "x"},
        {"topology", "stars", "star"},
        {"norm", "instance", "found 'instance', expected batch|group|layer"},
        {"optimiser", "rmsprop", "sgd|adam|adamw"},
        {"beta2", "1", "from 0 to 0.999999"},
        {"label-smoothing", "1", "from 0 to 0.9"},
        {"label-smoothing", "-0.1", "found '-0.1'"},
        {"augment", "rotate", "rotate"},
        {"augment", "crop+", ""},
        {"augment", "crop,flip", ""},
        {"init", "model.safetensors", "none or 16 hexadecimal digits"},
        {"init", "0123456789ABCDEF", "hexadecimal"},
        {"init", "0123456789abcde", "hexadecimal"},
        {"init", "0123456789abcdef0", "hexadecimal"},
        {"partition", "label:0", ""},
        {"partition", "label", ""},
        {"partition", "file:1", ""},
        {"data", "csv/0x10/0", ""},
        {"data", "csv:", ""},
        {"data", "text/0", ""},
        {"data", "/some/path", ""},
        {"data", "libsvm/123x2/pm/0", ""},
        {"model", "resnet", "resnet"},
        {"model", "resnet:21", "21"},
        {"model", "vgg11:gn", ""},
        {"model", "gpt:4x130", "130"},
        {"model", "lstm:0", ""},
        {"model", "mlp:", ""},
        {"data", "imagenet", "imagenet"},
        {"data", "mnist:", ""},
        {"data", "glyphs:x", ""},
        {"partition", "dirichlet:0", ""},
        {"partition", "dirichlet:-1", ""},
        {"partition", "dirichlet", ""},
        {"partition", "IID", "IID"},
        {"model", "", "found ''"},
        {"seed", "1\n", "control characters"},
        {"model", "lenet5\nseed=2", "'lenet5?seed=2'"},
        {"data",
         "mnist:a\x7f"
         "b",
         "mnist:a?b"},
        {"data", "mnist:a\tb", "control"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys}, zero = {.trainer = &sgd_keys};
        char flag[64];
        error[0] = '\0';
        if (run_flags_set(&f, bad[i][0], bad[i][1], error) != -EINVAL)
            fail_msg("%s=%s was taken", bad[i][0], bad[i][1]);
        snprintf(flag, sizeof flag, "--%s: ", bad[i][0]);
        if (strncmp(error, flag, strlen(flag)) != 0 || strstr(error, bad[i][2]) == NULL
            || strchr(error, '\n') != NULL)
            fail_msg("%s=%s: '%s' should have '%s'", bad[i][0], bad[i][1], error, bad[i][2]);
        assert_memory_equal(&f, &zero, sizeof f);
    }
    struct run_flags f = {.trainer = &sgd_keys};
    assert_int_equal(run_flags_set(&f, "epochs", "3", error), -EINVAL);
    assert_string_equal(error, "--epochs: no such flag");
    assert_int_equal(run_flags_set(&f, "", "3", error), -EINVAL);
    static char longest[RUN_VALUE_MAX + 1];
    memset(longest, '1', RUN_VALUE_MAX);
    const struct run_key *k;
    for (size_t i = 0; (k = run_key_at(&sgd_keys, i)) != NULL; i++) {
        assert_int_equal(run_flags_set(&f, k->name, longest, error), -EINVAL);
        assert_true(strlen(error) < 300);
    }
}

static void contradictions_name_both_values(void **state)
{
    (void)state;
    static const char *const other[][2] = {{"model", "resnet:32"},
                                           {"norm", "layer"},
                                           {"init", "none"},
                                           {"data", "glyphs"},
                                           {"augment", "none"},
                                           {"optimiser", "adam"},
                                           {"beta2", "0.999"},
                                           {"label-smoothing", "0"},
                                           {"partition", "iid"},
                                           {"compress", "topk:0.01"},
                                           {"final-compress", "fp16"},
                                           {"topology", "ring"},
                                           {"mixer", "choco"},
                                           {"error-feedback", "true"},
                                           {"factor-masking", "false"},
                                           {"clip", "0"},
                                           {"gamma", "auto"},
                                           {"policy", "async"},
                                           {"seed", "2"},
                                           {"rounds", "4691"},
                                           {"min-peers", "3"},
                                           {"batch", "32"},
                                           {"local-steps", "1"},
                                           {"lr", "0.2"},
                                           {"momentum", "0.9"},
                                           {"weight-decay", "0"},
                                           {"warmup", "auto"},
                                           {"schedule", "cosine"},
                                           {"final-drift", "0"}};
    struct run_flags rich = rich_flags();
    struct run r = make(&rich);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        struct run_flags f = {.trainer = &sgd_keys};
        size_t k = 0;
        while (strcmp(run_key_at(&sgd_keys, k)->name, other[i][0]) != 0)
            k++;
        set(&f, other[i][0], other[i][1]);
        const char *mine = strcmp(other[i][0], "warmup") == 0 ? "100" : f.value[k];
        char want[RUN_ERROR_MAX];
        snprintf(want, sizeof want,
                 "--%s %.100s%s contradicts the cluster's run, which has %s=%.100s", other[i][0],
                 mine, strcmp(other[i][0], "rounds") == 0 ? " (or epochs)" : "", other[i][0],
                 rich.value[k]);
        assert_int_equal(run_check_flags(&r, &f, error), -EINVAL);
        assert_string_equal(error, want);
    }
    /* A flag that is not given does not contradict the run. Another spelling of the run's value,
     * such as 0.03750 for 0.0375, does not contradict it either. */
    struct run_flags f = {.trainer = &sgd_keys};
    assert_int_equal(run_check_flags(&r, &f, error), 0);
    set(&f, "gamma", "0.03750");
    set(&f, "data", "cifar10:/elsewhere");
    set(&f, "partition", "dirichlet:5e-1");
    assert_int_equal(run_check_flags(&r, &f, error), 0);
    struct run_flags given = plain_flags(), spelt = {.trainer = &sgd_keys};
    set(&given, "compress", "topk:0.01");
    set(&spelt, "compress", "topk:0.010");
    r = make(&given);
    assert_int_equal(run_check_flags(&r, &spelt, error), 0);
}

/* ---- Texts from untrusted peers. ---- */

/* Parses a copy of the text, which must be refused, or be the canonical text of a run. Returns
 * whether it was accepted. The copy has no NUL at its end, so that a sanitizer detects reading too
 * far. */
static bool is_safe(const char *text, size_t n)
{
    char *copy = malloc(n > 0 ? n : 1);
    struct run r = {.seed = 77}, untouched = r;
    char again[WIRE_RUN_MAX + 1];
    assert_non_null(copy);
    memcpy(copy, text, n);
    error[0] = '\0';
    int err = run_from_text(&r, &sgd_keys, copy, n, error);
    if (err == 0) {
        assert_true(r.rounds >= 1);
        assert_int_equal(run_text(&r, again), n);
        assert_memory_equal(again, copy, n);
    } else {
        assert_int_equal(err, -EINVAL);
        assert_true(error[0] != '\0' && strlen(error) < RUN_ERROR_MAX);
        for (const char *e = error; *e != '\0'; e++)
            assert_true(*e >= 0x20 && *e < 0x7f);
        assert_int_equal(r.seed, untouched.seed);
        assert_int_equal(r.rounds, 0);
    }
    free(copy);
    return err == 0;
}

static size_t some_text(bool rich, char text[WIRE_RUN_MAX + 1])
{
    struct run_flags f = rich ? rich_flags() : plain_flags();
    struct run r = make(&f);
    return run_text(&r, text);
}

static void truncations_are_refused(void **state)
{
    (void)state;
    char text[WIRE_RUN_MAX + 1];
    for (int rich = 0; rich < 2; rich++) {
        size_t n = some_text(rich, text);
        assert_true(is_safe(text, n));
        for (size_t i = 0; i < n; i++)
            assert_false(is_safe(text, i));
        for (size_t i = 1; i < n; i++)
            assert_false(is_safe(text + i, n - i));
        assert_false(is_safe(text, n + 1)); /* The text must not include its final NUL. */
    }
}

/* One byte of the text is changed. The result must be refused, or be the canonical text of another
 * valid run, such as one with seed=2. */
static void mutations_are_refused_or_canonical(void **state)
{
    (void)state;
    char text[WIRE_RUN_MAX + 1];
    size_t taken = 0;
    for (int rich = 0; rich < 2; rich++) {
        size_t n = some_text(rich, text);
        for (size_t i = 0; i < n; i++) {
            char was = text[i];
            for (int b = 0; b < 256; b++) {
                text[i] = (char)b;
                taken += text[i] != was && is_safe(text, n);
            }
            text[i] = was;
        }
    }
    assert_true(taken > 100); /* Many changed texts are valid, such as a changed digit. */
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    char text[WIRE_RUN_MAX + 1], changed[2 * WIRE_RUN_MAX];
    size_t n = some_text(true, text);
    assert_false(is_safe("", 0));
    assert_false(is_safe("\n", 1));
    assert_false(is_safe("=", 1));
    assert_false(is_safe("=\n", 2));
    /* Each line of the text is repeated, moved to the end, or left out. */
    for (size_t at = 0; at < n;) {
        size_t len = (size_t)(strchr(text + at, '\n') - (text + at)) + 1;
        snprintf(changed, sizeof changed, "%s%.*s", text, (int)len, text + at);
        assert_false(is_safe(changed, n + len));
        snprintf(changed, sizeof changed, "%.*s%s%.*s", (int)at, text, text + at + len, (int)len,
                 text + at);
        assert_true(is_safe(changed, n) == (at + len == n));
        snprintf(changed, sizeof changed, "%.*s%s", (int)at, text, text + at + len);
        assert_false(is_safe(changed, n - len));
        at += len;
    }
    static const char *const swaps[][2] = {{"final-compress=none", "final-compress=auto"},
                                           {"warmup=50", "warmup=auto"},
                                           {"lr=0.1", "lr=0.10"},
                                           {"batch=64", "batch=064"},
                                           {"data=cifar10", "data=cifar10:/etc"},
                                           {"data=cifar10", "data=csv"},
                                           {"data=cifar10", "data=idx"},
                                           {"data=cifar10", "data=text/64"},
                                           {"nesterov=true", "nesterov=false"},
                                           {"optimiser=adamw", "optimiser=sgd"},
                                           {"model=resnet:20", "model=vgg11"},
                                           {"augment=crop+flip", "augment=flip+crop"},
                                           {"init=0", "init=A"},
                                           {"init=0", "init="},
                                           {"topology=regular:4", "topology=edges:/etc/passwd"},
                                           {"rounds=4690", "rounds=0"},
                                           {"mixer=average", "mixer=choco"},
                                           {"policy=sync", "policy=async"},
                                           {"compress=fp16", "compress=auto"},
                                           {"drift-target=1", "drift-target=0.5"},
                                           {"\nseed", "\r\nseed"},
                                           {"\nseed", "\n\nseed"},
                                           {"model", "Model"},
                                           {"batch=64\n", "batch=64\nepochs=3\n"}};
    for (size_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++) {
        char *at = strstr(text, swaps[i][0]);
        assert_non_null(at);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, swaps[i][1],
                 at + strlen(swaps[i][0]));
        assert_false(is_safe(changed, strlen(changed)));
    }
    memset(changed, 'a', sizeof changed);
    assert_false(is_safe(changed, WIRE_RUN_MAX));
    assert_false(is_safe(changed, WIRE_RUN_MAX + 1));
    memset(changed, '\n', sizeof changed);
    assert_false(is_safe(changed, WIRE_RUN_MAX));
}

/* A run is refused if its values are within their limits but together too long for a message. */
static void a_run_fits_its_message(void **state)
{
    (void)state;
    struct run_flags f = plain_flags();
    struct run r;
    char edges[RUN_VALUE_MAX], model[RUN_SPEC_MAX], text[WIRE_RUN_MAX + 1];
    int n = snprintf(edges, sizeof edges, "edges:");
    for (int i = 0; n + 8 < (int)sizeof edges; i++)
        n += snprintf(edges + n, sizeof edges - (size_t)n, "%s%d-%d", i ? "," : "", i, i + 1);
    n = snprintf(model, sizeof model, "mlp:65536");
    for (int i = 1; i < 32; i++)
        n += snprintf(model + n, sizeof model - (size_t)n, "-65536");
    set(&f, "topology", edges);
    r = make(&f);
    assert_true(run_text(&r, text) > RUN_VALUE_MAX);
    check_round_trip(&f);
    set(&f, "model", model);
    set(&f, "partition", "dirichlet:0.12345678901234567");
    set(&f, "compress", "topk:0.012345678+qsgd:4");
    const struct run_key *k;
    for (size_t i = 0; (k = run_key_at(&sgd_keys, i)) != NULL; i++)
        if (k->kind == RUN_REAL && strcmp(k->name, "gamma") != 0)
            set(&f, k->name, "0.00012345678901234567");
    struct run untouched = r;
    assert_int_equal(run_from_flags(&r, &f, error), -EINVAL);
    assert_non_null(strstr(error, "at most 2048"));
    assert_memory_equal(&r, &untouched, sizeof r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_make_a_good_first_run),
        cmocka_unit_test(defaults_may_be_given),
        cmocka_unit_test(text_is_as_documented),
        cmocka_unit_test(renamed_keys_keep_their_names_in_the_text),
        cmocka_unit_test(runs_pass_there_and_back),
        cmocka_unit_test(one_spelling_for_each_meaning),
        cmocka_unit_test(later_value_wins),
        cmocka_unit_test(bad_values_name_the_flag),
        cmocka_unit_test(contradictions_name_both_values),
        cmocka_unit_test(truncations_are_refused),
        cmocka_unit_test(mutations_are_refused_or_canonical),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(a_run_fits_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
