/* tests/unit/api_figures.c -- the loss and number of samples that a program reports for its
 * local steps, and the figures about the run that the library returns. */
#include "tests/unit/api_rig.h"

#include <jansson.h>

enum { N = 3, ROUNDS = 12, SAMPLES = 32 };

/* A peer that reports a loss and a number of samples for each round. */
struct said
{
    struct rig_peer peer;
    double (*loss)(uint64_t round);
    uint64_t samples;
    uint64_t turns; /* Number of rounds in which the library asked the program to train. */
    /* Number of times that the library passed a wrong round number to the program. The right number
     * is the number of rounds trained before. */
    uint64_t late;
};

static double unknown(uint64_t round)
{
    (void)round;
    return (double)NAN;
}

static double falling(uint64_t round)
{
    return 1 / (1 + (double)round);
}

static void *train(void *self)
{
    struct said *s = self;
    struct rig_peer *p = &s->peer;
    p->code = hearsay_wait(p->h, -1);
    while (p->code == HEARSAY_OK) {
        uint64_t round = hearsay_rounds_done(p->h);
        struct hearsay_did did = {.loss = s->loss(round), .samples = s->samples};
        s->late += round != s->turns++;
        for (uint32_t k = 0; k < hearsay_steps(p->h); k++)
            rig_step(p);
        p->code = hearsay_round(p->h, &did, -1);
    }
    return NULL;
}

/* The main loop of a program that makes no local steps. */
static void *stand_still(void *self)
{
    struct said *s = self;
    s->peer.code = hearsay_wait(s->peer.h, -1);
    while (s->peer.code == HEARSAY_OK)
        s->peer.code = hearsay_round(s->peer.h, NULL, -1);
    return NULL;
}

/* Runs all N peers to the end in one simulation, each with `loop` in its own thread. The handles
 * stay open. */
static void run_all(struct said *s, void *(*loop)(void *))
{
    struct hearsay *h[N] = {0};
    for (uint32_t i = 0; i < N; i++)
        h[i] = s[i].peer.h;
    if (hearsay_open_simulated(h, N, NULL) != HEARSAY_OK)
        fail_msg("%s", hearsay_error(h[0]));
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(pthread_create(&s[i].peer.thread, NULL, loop, &s[i]), 0);
    for (uint32_t i = 0; i < N; i++)
        rig_join(&s[i].peer);
}

static void expect_consensus(const struct said *s)
{
    for (uint32_t i = 0; i < N; i++)
        if (s[i].peer.code != HEARSAY_OVER || hearsay_exit_code(s[i].peer.h) != 0)
            fail_msg("peer-%u: %d, %s%s", i, s[i].peer.code, hearsay_error(s[i].peer.h),
                     hearsay_verdict(s[i].peer.h));
}

static void simulate(struct said *s, double (*loss)(uint64_t), uint64_t samples)
{
    for (uint32_t i = 0; i < N; i++) {
        s[i] = (struct said){.loss = loss, .samples = samples};
        rig_init(&s[i].peer, i, false,
                 "topology=ring compress=none rounds=12 local-steps=2 final-drift=1e-3");
    }
    run_all(s, train);
}

static void close_all(struct said *s)
{
    for (uint32_t i = 0; i < N; i++)
        hearsay_close(s[i].peer.h);
}

/* A NaN loss with 0 samples means that the loss is unknown. A NaN loss with samples means
 * divergence. */
static void test_an_unknown_loss_is_no_divergence(void **state)
{
    static struct said silent[N], diverged[N];
    (void)state;
    simulate(silent, unknown, 0);
    expect_consensus(silent);
    for (uint32_t i = 0; i < N; i++) {
        struct hearsay_figures f = {.size = sizeof f};
        assert_int_equal(silent[i].turns, ROUNDS);
        assert_int_equal(hearsay_figures(silent[i].peer.h, &f), HEARSAY_OK);
        assert_true(isnan(f.loss));
    }
    close_all(silent);
    simulate(diverged, unknown, SAMPLES);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(hearsay_exit_code(diverged[i].peer.h), 3);
        assert_non_null(strstr(hearsay_verdict(diverged[i].peer.h), "the loss is not a number"));
    }
    close_all(diverged);
}

static void test_figures_are_of_the_round_they_name(void **state)
{
    static struct said s[N];
    (void)state;
    simulate(s, falling, SAMPLES);
    for (uint32_t i = 0; i < N; i++) {
        struct hearsay_figures f = {.size = sizeof f};
        assert_int_equal(s[i].peer.code, HEARSAY_OVER);
        assert_int_equal(s[i].late, 0);
        assert_int_equal(hearsay_rounds_done(s[i].peer.h), ROUNDS);
        assert_int_equal(hearsay_rounds(s[i].peer.h), ROUNDS);
        assert_int_equal(hearsay_figures(s[i].peer.h, &f), HEARSAY_OK);
        assert_int_equal(f.round, ROUNDS);
        assert_int_equal(f.rounds_done, ROUNDS);
        assert_int_equal(f.rounds_skipped, 0);
        assert_true(f.loss == falling(ROUNDS - 1));
        assert_true(f.relative_drift <= 1e-3);
    }
    close_all(s);
}

/* hearsay_figures() writes at most `size` bytes, so a caller that was built with an older header
 * gets only the fields that it knows. */
static void test_figures_of_an_older_caller(void **state)
{
    static struct said s[N];
    struct hearsay_figures f;
    const uint8_t *behind = (const uint8_t *)&f.drift;
    (void)state;
    simulate(s, falling, SAMPLES);
    memset(&f, 0x5a, sizeof f);
    f.size = offsetof(struct hearsay_figures, drift);
    assert_int_equal(hearsay_figures(s[0].peer.h, &f), HEARSAY_OK);
    assert_int_equal(f.round, ROUNDS);
    for (size_t i = 0; i < sizeof f - offsetof(struct hearsay_figures, drift); i++)
        assert_int_equal(behind[i], 0x5a);
    f.size = sizeof f.size - 1;
    assert_int_equal(hearsay_figures(s[0].peer.h, &f), HEARSAY_USAGE);
    close_all(s);
}

/* hearsay_figures_json() has the values of hearsay_figures(). A value that is not known is null. */
static void test_figures_as_json(void **state)
{
    static struct said s[N];
    struct hearsay_figures f = {.size = sizeof f};
    (void)state;
    assert_string_equal(hearsay_figures_json(NULL), "");
    struct hearsay *early = hearsay_new();
    assert_string_equal(hearsay_figures_json(early), "");
    assert_non_null(strstr(hearsay_error(early), "hearsay_figures_json"));
    hearsay_close(early);
    simulate(s, falling, SAMPLES);
    assert_int_equal(hearsay_figures(s[0].peer.h, &f), HEARSAY_OK);
    json_t *j = json_loads(hearsay_figures_json(s[0].peer.h), 0, NULL);
    const struct
    {
        const char *name;
        double value;
    } row[] = {{"round", (double)f.round},
               {"rounds", ROUNDS},
               {"settle_rounds", (double)f.settle_rounds},
               {"drift", f.drift},
               {"relative_drift", f.relative_drift},
               {"loss", f.loss},
               {"n_live", f.n_live},
               {"n_edges", f.n_edges},
               {"bytes_sent", (double)f.bytes_sent},
               {"bytes_copied", (double)f.bytes_copied},
               {"wait_s", f.wait_s}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!(json_number_value(json_object_get(j, row[i].name)) == row[i].value))
            fail_msg("%s is %.17g, expected %.17g", row[i].name,
                     json_number_value(json_object_get(j, row[i].name)), row[i].value);
    assert_string_equal(json_string_value(json_object_get(j, "phase")), f.phase);
    assert_string_equal(json_string_value(json_object_get(j, "codec")), f.codec);
    assert_true(isnan(f.accuracy) && json_is_null(json_object_get(j, "accuracy")));
    json_decref(j);
    close_all(s);
}

/* All models are zeros, so they are in consensus. A distance relative to the norm of the models
 * cannot be computed, because the norm is 0. */
static void test_zeros_agree(void **state)
{
    static struct said s[N];
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        rig_init(&s[i].peer, i, false, "topology=ring rounds=12");
        memset(s[i].peer.x, 0, sizeof s[i].peer.x);
    }
    run_all(s, stand_still);
    expect_consensus(s);
    close_all(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unknown_loss_is_no_divergence),
        cmocka_unit_test(test_figures_are_of_the_round_they_name),
        cmocka_unit_test(test_figures_of_an_older_caller),
        cmocka_unit_test(test_figures_as_json),
        cmocka_unit_test(test_zeros_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
