/* tests/unit/api_run.c -- programs that train their own models with libhearsay: over TCP and
 * simulated, with and without copies of the model, peers that leave early, values that are not
 * finite, evaluations and checkpoints. */
#include "tests/unit/api_rig.h"

#include <sys/wait.h>

static const char run_words[] = "topology=ring compress=topk:0.3 rounds=40 local_steps=2 seed=7";

static void simulate(struct rig_peer *p, uint32_t n, bool separate, const char *words,
                     const char *network)
{
    struct hearsay *h[RIG_PEERS] = {0};
    for (uint32_t i = 0; i < n; i++) {
        rig_init(&p[i], i, separate, words);
        h[i] = p[i].h;
    }
    if (hearsay_open_simulated(h, n, network) != HEARSAY_OK)
        fail_msg("%s", hearsay_error(h[0]));
    rig_run_all(p, n);
}

static void expect_near(const struct rig_peer *p, double mean)
{
    for (int k = 0; k < RIG_N; k++)
        if (!(fabs((double)p->x[k] - mean) < 0.2))
            fail_msg("coordinate %d is %g, expected near %g", k, (double)p->x[k], mean);
}

/* ---- Equal bits over TCP and in the simulator ------------------------------------------------ */

static void test_tcp_and_simulation_have_the_same_bits(void **state)
{
    static struct rig_peer tcp[4], sim[4];
    char key[64];
    float x[4][RIG_N];
    (void)state;
    simulate(sim, 4, false, run_words, "latency-us=3000");
    for (uint32_t i = 0; i < 4; i++)
        rig_copy_model(&sim[i], x[i]);
    expect_near(&sim[0], 2.5);
    rig_close_all(sim, 4);
    rig_key(key);
    rig_open_tcp(tcp, 4, run_words, key);
    rig_run_all(tcp, 4);
    for (uint32_t i = 0; i < 4; i++)
        rig_expect_same(&tcp[i], x[i], "over TCP");
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(tcp[i].rounds, 40);
    rig_close_all(tcp, 4);
    unlink(key);
}

static void test_two_simulations_and_tensors_apart_have_the_same_bits(void **state)
{
    static struct rig_peer p[RIG_PEERS];
    float x[RIG_N];
    (void)state;
    simulate(p, 5, false, run_words, NULL);
    rig_copy_model(&p[3], x);
    struct hearsay_figures f = {.size = sizeof f};
    assert_int_equal(hearsay_figures(p[3].h, &f), HEARSAY_OK);
    assert_int_equal(f.bytes_copied, 0);
    assert_int_equal(f.round, 40);
    assert_true(f.bytes_sent > 0 && f.drift >= 0);
    rig_close_all(p, 5);
    simulate(p, 5, true, run_words, NULL);
    rig_expect_same(&p[3], x, "with tensors apart");
    assert_int_equal(hearsay_figures(p[3].h, &f), HEARSAY_OK);
    /* The library copies the model twice in each round, and the final model once. */
    assert_int_equal(f.bytes_copied, (2 * 40 + 1) * RIG_N * sizeof(float));
    rig_close_all(p, 5);
}

/* With overlap=1, corrections reach the tensors one round late. The models still end near the
 * mean of the peers' optima. */
static void test_overlap_and_async_reach_consensus(void **state)
{
    static struct rig_peer p[RIG_PEERS];
    (void)state;
    simulate(p, 4, false, "topology=ring compress=qsgd:8 rounds=60 overlap=1", "latency-us=20000");
    expect_near(&p[2], 2.5);
    rig_close_all(p, 4);
    simulate(p, 4, false, "topology=complete compress=qsgd:8 rounds=60 policy=async", NULL);
    assert_int_equal(hearsay_exit_code(p[0].h), 0);
    rig_close_all(p, 4);
}

/* ---- Calls of hearsay_wait() and hearsay_round() --------------------------------------------- */

static void test_a_timeout_leaves_the_steps_handed_over(void **state)
{
    struct rig_peer p;
    char key[64], text[128];
    (void)state;
    rig_key(key);
    rig_init(&p, 0, false, "rounds=3 local-steps=1 min-peers=2 listen=127.0.0.1:0");
    snprintf(text, sizeof text, "key=%s", key);
    assert_int_equal(hearsay_options(p.h, text), HEARSAY_OK);
    struct hearsay_did did = {.loss = 1};
    assert_int_equal(hearsay_wait(p.h, 0), HEARSAY_USAGE);
    assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
    assert_int_equal(hearsay_open(p.h), HEARSAY_USAGE);
    assert_int_equal(hearsay_set(p.h, "rounds", "4"), HEARSAY_USAGE);
    /* hearsay_round() is refused because the run has not begun. */
    assert_int_equal(hearsay_round(p.h, &did, 0), HEARSAY_USAGE);
    assert_int_equal(hearsay_wait(p.h, 0.01), HEARSAY_TIMEOUT);
    hearsay_interrupt(p.h);
    assert_int_equal(hearsay_wait(p.h, -1), HEARSAY_INTERRUPTED);
    hearsay_close(p.h); /* The program closes its peer before the run has a second member. */
    unlink(key);
}

static void test_who_leaves_is_gone_and_the_others_go_on(void **state)
{
    static struct rig_peer p[3];
    char key[64];
    (void)state;
    rig_key(key);
    rig_open_tcp(p, 3, "topology=complete compress=none rounds=60 quorum=0.3 patience=1", key);
    p[2].stop_at = 20;
    for (uint32_t i = 0; i < 3; i++)
        rig_start(&p[i]);
    for (uint32_t i = 0; i < 3; i++)
        rig_join(&p[i]);
    assert_int_equal(p[2].code, HEARSAY_OVER);
    assert_non_null(strstr(hearsay_verdict(p[2].h), "stop"));
    /* The peer did 19 rounds, because it left before its 20th round. */
    assert_int_equal(p[2].rounds, 19);
    struct hearsay_figures f = {.size = sizeof f};
    assert_int_equal(hearsay_figures(p[2].h, &f), HEARSAY_OK);
    assert_int_equal(f.rounds_done, 19);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(p[i].code, HEARSAY_OVER);
        assert_int_equal(hearsay_exit_code(p[i].h), 0);
        assert_int_equal(p[i].rounds, 60);
    }
    assert_memory_equal(p[0].x, p[1].x, 0);
    rig_close_all(p, 3);
    unlink(key);
}

static void test_what_is_not_finite_is_refused_by_name_and_can_be_mended(void **state)
{
    static struct rig_peer p[2];
    struct hearsay *h[2];
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_init(&p[i], i, false, "topology=ring compress=none rounds=10");
        h[i] = p[i].h;
    }
    assert_int_equal(hearsay_open_simulated(h, 2, NULL), HEARSAY_OK);
    rig_start(&p[1]);
    assert_int_equal(hearsay_wait(h[0], -1), HEARSAY_OK);
    float was = p[0].x[RIG_A];
    p[0].x[RIG_A] = (float)NAN;
    assert_int_equal(hearsay_round(h[0], NULL, -1), HEARSAY_NOT_FINITE);
    assert_non_null(strstr(hearsay_error(h[0]), "tensor b"));
    p[0].x[RIG_A] = was;
    /* The call that failed with HEARSAY_NOT_FINITE left the tensors to the program, which
     * corrects the value and continues. */
    rig_start(&p[0]);
    rig_join(&p[0]);
    rig_join(&p[1]);
    assert_int_equal(p[0].code, HEARSAY_OVER);
    for (int k = 0; k < RIG_N; k++)
        assert_true(isfinite(p[1].x[k]));
    rig_close_all(p, 2);
}

/* ---- Callbacks ------------------------------------------------------------------------- */

struct judge
{
    int calls, fails_at;
};

static int evaluate(void *self, uint64_t samples, struct hearsay_score *score)
{
    struct judge *j = self;
    (void)samples;
    score->accuracy = 0.25;
    score->loss = 2;
    score->samples = 100;
    return ++j->calls == j->fails_at;
}

static void test_evaluations_are_the_callers(void **state)
{
    static struct rig_peer p[2];
    struct hearsay *h[2];
    struct judge judge = {.fails_at = 2};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_init(&p[i], i, i == 0, "topology=ring compress=none rounds=10 evaluate-every=2");
        h[i] = p[i].h;
    }
    assert_int_equal(hearsay_on_evaluate(h[0], evaluate, &judge), HEARSAY_OK);
    assert_int_equal(hearsay_open_simulated(h, 2, NULL), HEARSAY_OK);
    rig_start(&p[1]);
    rig_train(&p[0]);
    /* The second evaluation fails on purpose, so the library call that made it returns
     * HEARSAY_CALLBACK. */
    assert_int_equal(p[0].code, HEARSAY_CALLBACK);
    struct hearsay_figures f = {.size = sizeof f};
    p[0].code = hearsay_wait(h[0], -1);
    while (p[0].code == HEARSAY_OK)
        p[0].code = hearsay_round(h[0], NULL, -1);
    rig_join(&p[1]);
    assert_int_equal(p[0].code, HEARSAY_OVER);
    assert_int_equal(hearsay_figures(h[0], &f), HEARSAY_OK);
    assert_true(judge.calls >= 4);
    assert_float_equal(f.accuracy, 0.25, 0);
    assert_int_equal(hearsay_figures(h[1], &f), HEARSAY_OK);
    /* The accuracy is NaN because this peer has no evaluation callback. */
    assert_true(isnan(f.accuracy));
    rig_close_all(p, 2);
}

struct meddler
{
    struct hearsay *h;
    int leave, wait, set;
};

static int meddle(void *self, uint64_t samples, struct hearsay_score *score)
{
    struct meddler *m = self;
    (void)samples;
    (void)score;
    m->leave = hearsay_leave(m->h, 0);
    m->wait = hearsay_wait(m->h, 0);
    m->set = hearsay_set(m->h, "rounds", "2");
    hearsay_close(m->h);
    return 0;
}

static void test_callbacks_may_ask_and_nothing_else(void **state)
{
    static struct rig_peer p[2];
    struct hearsay *h[2];
    struct meddler m = {0};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_init(&p[i], i, false, "topology=ring compress=none rounds=6 evaluate-every=2");
        h[i] = p[i].h;
    }
    m.h = h[0];
    assert_int_equal(hearsay_on_evaluate(h[0], meddle, &m), HEARSAY_OK);
    assert_int_equal(hearsay_open_simulated(h, 2, NULL), HEARSAY_OK);
    rig_run_all(p, 2);
    assert_int_equal(m.leave, HEARSAY_USAGE);
    assert_int_equal(m.wait, HEARSAY_USAGE);
    assert_int_equal(m.set, HEARSAY_USAGE);
    assert_int_equal(p[0].rounds, 6);
    rig_close_all(p, 2);
}

static void test_no_handle_is_no_crash(void **state)
{
    struct hearsay_figures f = {.size = sizeof f};
    size_t n = 1;
    uint64_t round = 1;
    (void)state;
    assert_int_equal(hearsay_open(NULL), HEARSAY_USAGE);
    assert_int_equal(hearsay_wait(NULL, 0), HEARSAY_USAGE);
    assert_int_equal(hearsay_round(NULL, NULL, 0), HEARSAY_USAGE);
    assert_int_equal(hearsay_leave(NULL, 0), HEARSAY_USAGE);
    assert_int_equal(hearsay_figures(NULL, &f), HEARSAY_USAGE);
    assert_int_equal(hearsay_keep(NULL, &n, 1), HEARSAY_USAGE);
    assert_int_equal(hearsay_open_simulated(NULL, 3, NULL), HEARSAY_USAGE);
    assert_null(hearsay_kept(NULL, &n, &round));
    assert_int_equal(n + round, 0);
    assert_int_equal(hearsay_steps(NULL), 0);
    assert_int_equal(hearsay_rounds(NULL) + hearsay_rounds_done(NULL) + hearsay_shares(NULL), 0);
    assert_int_equal(hearsay_share(NULL, 9, NULL, 0) + hearsay_port(NULL), 0);
    assert_string_equal(hearsay_run(NULL), "");
    assert_string_equal(hearsay_verdict(NULL), "");
    assert_int_equal(hearsay_exit_code(NULL), -1);
    hearsay_interrupt(NULL);
    hearsay_close(NULL);
}

/* ---- Combinations that are refused ----------------------------------------------------------- */

static void expect_refusal(struct rig_peer *p, const char *what)
{
    rig_train(p);
    assert_int_equal(p->code, HEARSAY_USAGE);
    if (strstr(hearsay_error(p->h), what) == NULL)
        fail_msg("found '%s', expected '%s' in it", hearsay_error(p->h), what);
}

/* The first peer has the tensors a, b and c. Each other peer differs in one property, and the
 * error names this property. */
static void test_tensors_that_differ_are_refused_by_name(void **state)
{
    enum { PEERS = 7 };
    static struct rig_peer p[PEERS];
    static const char *const said[PEERS] = {
        "",
        "found d (float32 of 1, trained) as tensor 3, expected another tensor there; to compare, "
        "print name, type and shape of each tensor at both peers",
        "found c (float32 of 1, a statistic) as tensor 3, expected float32 of 1, trained (guessed "
        "from a hash of 8 bits); found 41 floats, 40 of them trained, expected 41 and 41",
        "found 2 tensors, expected 3; found 40 floats, 40 of them trained, expected 41 and 41",
        "found d (float32 of 1, trained) after the 3 tensors of the run; found 42 floats",
        "found c (float16 of 1, trained) as tensor 3, expected float32 of 1, trained (guessed from "
        "a hash of 8 bits)",
        "found c (bfloat16 of 1, trained) as tensor 3, expected float32 of 1, trained (guessed "
        "from a hash of 8 bits)",
    };
    const uint64_t one[] = {1};
    static float c[PEERS], d;
    char key[64], text[160];
    (void)state;
    rig_key(key);
    for (uint32_t i = 0; i < PEERS; i++) {
        enum hearsay_type type = i == 5   ? HEARSAY_FLOAT16
                                 : i == 6 ? HEARSAY_BFLOAT16
                                          : HEARSAY_FLOAT32;
        enum hearsay_role role = i == 2 ? HEARSAY_STATISTIC : HEARSAY_TRAINED;
        rig_init(&p[i], i, false, i == 0 ? "rounds=1000000 compress=none topology=complete" : "");
        int code = i == 3 ? HEARSAY_OK
                          : hearsay_tensor(p[i].h, i == 1 ? "d" : "c", &c[i], type, role, 1, one);
        assert_int_equal(code, HEARSAY_OK);
        if (i == 4)
            assert_int_equal(hearsay_tensor(p[i].h, "d", &d, HEARSAY_FLOAT32, role, 1, one), 0);
        snprintf(text, sizeof text, "listen=127.0.0.1:0 key=%s name=p%u", key, i);
        assert_int_equal(hearsay_options(p[i].h, text), HEARSAY_OK);
        if (i > 0) {
            snprintf(text, sizeof text, "bootstrap=127.0.0.1:%u", hearsay_port(p[0].h));
            assert_int_equal(hearsay_options(p[i].h, text), HEARSAY_OK);
        }
        assert_int_equal(hearsay_open(p[i].h), HEARSAY_OK);
    }
    rig_start(&p[0]);
    for (uint32_t i = 1; i < PEERS; i++)
        expect_refusal(&p[i], said[i]);
    hearsay_interrupt(p[0].h);
    rig_join(&p[0]);
    assert_int_equal(p[0].code, HEARSAY_INTERRUPTED);
    rig_close_all(p, PEERS);
    unlink(key);
}

/* In a simulation, one peer whose model differs makes the call fail for all peers. */
static void test_simulated_peers_that_differ_are_refused(void **state)
{
    static struct rig_peer p[3];
    struct hearsay *h[3];
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        rig_init(&p[i], i, false, i == 2 ? "rounds=4" : "rounds=3");
        h[i] = p[i].h;
    }
    assert_int_equal(hearsay_open_simulated(h, 3, NULL), HEARSAY_USAGE);
    const char *what = "peer-2 and peer-0 have different runs: rounds=3";
    if (strstr(hearsay_error(h[0]), what) == NULL)
        fail_msg("found '%s', expected '%s' in it", hearsay_error(h[0]), what);
    rig_close_all(p, 3);
}

/* The peers of a simulation share a process, so the error shows the tensors of both peers. */
static void test_simulated_peers_with_other_tensors_are_named(void **state)
{
    static const char *const said[] = {
        "tensor 3 is c (float16 of 2, trained) at peer-1 and c (float32 of 2, trained) at peer-0",
        "tensor 3 is missing at peer-1 and c (float32 of 2, trained) at peer-0",
        "tensor 3 is c (float32 of 1, trained) at peer-1 and c (float32 of 2, trained) at peer-0",
    };
    static float c[2][2];
    const uint64_t two[] = {2}, one[] = {1};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        static struct rig_peer p[2];
        struct hearsay *h[2];
        for (uint32_t i = 0; i < 2; i++) {
            rig_init(&p[i], i, false, "rounds=3");
            h[i] = p[i].h;
            enum hearsay_type type = i == 1 && k == 0 ? HEARSAY_FLOAT16 : HEARSAY_FLOAT32;
            if (i == 0 || k != 1)
                assert_int_equal(hearsay_tensor(h[i], "c", c[i], type, HEARSAY_TRAINED, 1,
                                                i == 1 && k == 2 ? one : two),
                                 HEARSAY_OK);
        }
        assert_int_equal(hearsay_open_simulated(h, 2, NULL), HEARSAY_USAGE);
        if (strstr(hearsay_error(h[0]), said[k]) == NULL)
            fail_msg("found '%s', expected '%s' in it", hearsay_error(h[0]), said[k]);
        rig_close_all(p, 2);
    }
}

static void expect_open_error(const char *words, const char *what)
{
    struct rig_peer p;
    rig_init(&p, 0, false, words);
    assert_int_equal(hearsay_open(p.h), HEARSAY_USAGE);
    if (strstr(hearsay_error(p.h), what) == NULL)
        fail_msg("'%s': found '%s', expected '%s' in it", words, hearsay_error(p.h), what);
    hearsay_close(p.h);
}

static void test_what_is_wrong_is_named(void **state)
{
    struct rig_peer p;
    const uint64_t dims[] = {2, 0};
    float v;
    char key[64], text[128];
    (void)state;
    rig_key(key);
    expect_open_error("rounds=3", "--key");
    snprintf(text, sizeof text, "key=%s topology=rnig rounds=3", key);
    expect_open_error(text, "--topology");
    snprintf(text, sizeof text, "key=%s colour=blue", key);
    expect_open_error(text, "--colour");
    snprintf(text, sizeof text, "key=%s", key);
    expect_open_error(text, "--rounds");
    snprintf(text, sizeof text, "key=%s.none rounds=3", key);
    expect_open_error(text, "No such file");
    snprintf(text, sizeof text, "key=%s rounds=3 listen=nowhere", key);
    expect_open_error(text, "--listen");
    snprintf(text, sizeof text, "key=%s rounds=3 overlap=layer listen=127.0.0.1:0", key);
    rig_init(&p, 0, false, text);
    assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
    expect_refusal(&p, "--overlap layer");
    hearsay_close(p.h);
    rig_init(&p, 0, false, "");
    assert_int_equal(hearsay_options(p.h, "rounds"), HEARSAY_USAGE);
    assert_int_equal(hearsay_tensor(p.h, "a", &v, HEARSAY_FLOAT32, HEARSAY_TRAINED, 0, NULL),
                     HEARSAY_USAGE);
    assert_non_null(strstr(hearsay_error(p.h), "twice"));
    assert_int_equal(hearsay_tensor(p.h, "c", &v, HEARSAY_FLOAT32, HEARSAY_TRAINED, 2, dims),
                     HEARSAY_USAGE);
    assert_int_equal(hearsay_tensor(p.h, "c d", &v, HEARSAY_FLOAT32, HEARSAY_TRAINED, 0, NULL),
                     HEARSAY_USAGE);
    assert_int_equal(hearsay_tensor(p.h, "c", NULL, HEARSAY_FLOAT32, HEARSAY_TRAINED, 0, NULL),
                     HEARSAY_USAGE);
    hearsay_close(p.h);
    unlink(key);
}

static void test_a_child_has_no_part_in_it(void **state)
{
    struct rig_peer p;
    char key[64], text[128];
    int status;
    (void)state;
    rig_key(key);
    snprintf(text, sizeof text, "key=%s rounds=2 listen=127.0.0.1:0 final-drift=0", key);
    rig_init(&p, 0, false, text);
    assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
    pid_t child = fork();
    if (child == 0) {
        bool good =
            hearsay_wait(p.h, 1) == HEARSAY_FORKED && hearsay_leave(p.h, 1) == HEARSAY_FORKED;
        hearsay_close(p.h);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rig_train(&p);
    assert_int_equal(p.code, HEARSAY_OVER);
    hearsay_close(p.h);
    unlink(key);
}

/* ---- Checkpoints --------------------------------------------------------------------------- */

static void rm_dir(const char *dir)
{
    char text[160];
    snprintf(text, sizeof text, "rm -rf '%s'", dir);
    assert_int_equal(system(text), 0);
}

static void test_a_checkpoint_holds_the_callers_bytes(void **state)
{
    struct rig_peer p;
    char key[64], dir[96], text[320], file[128];
    size_t n;
    uint64_t round;
    (void)state;
    rig_key(key);
    snprintf(dir, sizeof dir, "%s.out", key);
    snprintf(text, sizeof text,
             "key=%s rounds=200 listen=127.0.0.1:0 out=%s checkpoint=0.001 compress=none", key,
             dir);
    rig_init(&p, 0, false, text);
    assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
    assert_int_equal(hearsay_wait(p.h, -1), HEARSAY_OK);
    assert_null(hearsay_kept(p.h, &n, &round));
    for (uint64_t r = 0; r < 50; r++) {
        uint64_t mine[2] = {r, 12345};
        assert_int_equal(hearsay_rounds_done(p.h), r);
        rig_step(&p);
        assert_int_equal(hearsay_keep(p.h, mine, sizeof mine), HEARSAY_OK);
        assert_int_equal(hearsay_round(p.h, NULL, -1), HEARSAY_OK);
    }
    /* hearsay_round() never receives this local step, so no model file may contain it. */
    rig_step(&p);
    hearsay_close(p.h);
    snprintf(file, sizeof file, "%s/model.safetensors", dir);
    assert_int_not_equal(access(file, F_OK), 0);
    rig_init(&p, 0, false, text);
    assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
    assert_int_equal(hearsay_wait(p.h, -1), HEARSAY_OK);
    assert_int_equal(hearsay_exit_code(p.h), -1);
    uint64_t at = hearsay_rounds_done(p.h), got[2] = {0};
    const void *kept = hearsay_kept(p.h, &n, &round);
    assert_true(at > 0 && at <= 50);
    assert_non_null(kept);
    assert_int_equal(n, sizeof got);
    memcpy(got, kept, n);
    assert_int_equal(got[0], round);
    /* The program stored the bytes that hearsay_kept() returns in the last completed round. Rounds
     * count from 0, so after `at` rounds this round has the number `at` - 1. */
    assert_int_equal(round, at - 1);
    assert_int_equal(got[1], 12345);
    rig_train(&p);
    assert_int_equal(p.code, HEARSAY_OVER);
    assert_int_equal(access(file, F_OK), 0);
    hearsay_close(p.h);
    /* A new hearsay_open() fails, because the run in this output directory has finished. */
    rig_init(&p, 0, false, text);
    assert_int_equal(hearsay_open(p.h), HEARSAY_USAGE);
    assert_non_null(strstr(hearsay_error(p.h), "its run has finished, and the model is in "));
    assert_non_null(strstr(hearsay_error(p.h), "name another directory, or move this one aside"));
    hearsay_close(p.h);
    rm_dir(dir);
    unlink(key);
}

/* A peer without run options takes the run from another peer. After a restart without a checkpoint,
 * it must know the run from its output directory: after --quorum-timeout without other peers, the
 * run has ended without it. */
static void test_a_restarted_peer_knows_its_run(void **state)
{
    static struct rig_peer p[2];
    char key[64], dir[96], text[320];
    (void)state;
    rig_key(key);
    snprintf(dir, sizeof dir, "%s.out", key);
    snprintf(text, sizeof text,
             "key=%s name=giver rounds=1000 listen=127.0.0.1:0 min-peers=2 quorum-timeout=1", key);
    rig_init(&p[0], 0, false, text);
    assert_int_equal(hearsay_open(p[0].h), HEARSAY_OK);
    snprintf(text, sizeof text,
             "key=%s name=taker listen=127.0.0.1:0 bootstrap=127.0.0.1:%u out=%s checkpoint=off "
             "quorum-timeout=5",
             key, hearsay_port(p[0].h), dir);
    rig_init(&p[1], 1, false, text);
    assert_int_equal(hearsay_open(p[1].h), HEARSAY_OK);
    p[0].stop_at = 50;
    rig_start(&p[0]);
    assert_int_equal(hearsay_wait(p[1].h, -1), HEARSAY_OK);
    for (int r = 0; r < 3; r++) {
        rig_step(&p[1]);
        assert_int_equal(hearsay_round(p[1].h, NULL, -1), HEARSAY_OK);
    }
    hearsay_close(p[1].h);
    rig_join(&p[0]);
    hearsay_close(p[0].h);
    rig_init(&p[1], 1, false, text);
    assert_int_equal(hearsay_open(p[1].h), HEARSAY_OK);
    assert_int_equal(hearsay_wait(p[1].h, 20), HEARSAY_OVER);
    assert_int_equal(hearsay_exit_code(p[1].h), 3);
    hearsay_close(p[1].h);
    rm_dir(dir);
    unlink(key);
}

static void test_many_opens_and_closes(void **state)
{
    char key[64], text[128];
    (void)state;
    rig_key(key);
    snprintf(text, sizeof text, "key=%s rounds=2 listen=127.0.0.1:0 final-drift=0", key);
    for (int i = 0; i < 50; i++) {
        struct rig_peer p;
        rig_init(&p, 0, i % 2 == 0, text);
        assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
        if (i % 3 > 0)
            assert_int_equal(hearsay_wait(p.h, i % 3 == 1 ? -1 : 0) > HEARSAY_TIMEOUT, 0);
        hearsay_close(p.h);
    }
    unlink(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp_and_simulation_have_the_same_bits),
        cmocka_unit_test(test_two_simulations_and_tensors_apart_have_the_same_bits),
        cmocka_unit_test(test_overlap_and_async_reach_consensus),
        cmocka_unit_test(test_a_timeout_leaves_the_steps_handed_over),
        cmocka_unit_test(test_who_leaves_is_gone_and_the_others_go_on),
        cmocka_unit_test(test_what_is_not_finite_is_refused_by_name_and_can_be_mended),
        cmocka_unit_test(test_evaluations_are_the_callers),
        cmocka_unit_test(test_callbacks_may_ask_and_nothing_else),
        cmocka_unit_test(test_no_handle_is_no_crash),
        cmocka_unit_test(test_tensors_that_differ_are_refused_by_name),
        cmocka_unit_test(test_simulated_peers_that_differ_are_refused),
        cmocka_unit_test(test_simulated_peers_with_other_tensors_are_named),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_a_child_has_no_part_in_it),
        cmocka_unit_test(test_a_checkpoint_holds_the_callers_bytes),
        cmocka_unit_test(test_a_restarted_peer_knows_its_run),
        cmocka_unit_test(test_many_opens_and_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
