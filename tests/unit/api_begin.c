/* tests/unit/api_begin.c -- programs with models of different initial values: all peers of a run
 * start from the model of one peer. */
#include "tests/unit/api_rig.h"

static const char run_words[] = "topology=ring compress=topk:0.3 rounds=40 local_steps=2 seed=7";

/* Gives each peer different initial values, as a random generator without a fixed seed does. */
static void spread(struct rig_peer *p)
{
    for (int k = 0; k < RIG_N; k++)
        *(k < RIG_A ? p->x + k : rig_b(p) + (k - RIG_A)) += 0.1f * (float)(p->i + 1);
}

static uint32_t n_taken, n_late;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void hear(void *self, int level, const char *text)
{
    (void)self, (void)level;
    pthread_mutex_lock(&lock);
    n_taken += strstr(text, "took the initial model from ") != NULL;
    n_late += strstr(text, "joined the run at round ") != NULL;
    pthread_mutex_unlock(&lock);
}

/* Index of the peer with the option "initial". UINT32_MAX: none. */
static uint32_t initial = UINT32_MAX;

static void simulate(struct rig_peer *p, uint32_t n, bool alike, const char *words,
                     float first[RIG_N])
{
    struct hearsay *h[RIG_PEERS] = {0};
    for (uint32_t i = 0; i < n; i++) {
        rig_init(&p[i], i, i == 1, words);
        h[i] = p[i].h;
        spread(&p[i]);
        if (i == initial)
            assert_int_equal(hearsay_set(h[i], "initial", "true"), HEARSAY_OK);
        if (i == (initial < n ? initial : 0))
            rig_copy_model(&p[i], first);
        if (alike) {
            memcpy(p[i].x, first, sizeof p[i].x);
            memcpy(p[i].apart, first + RIG_A, sizeof p[i].apart);
        }
        assert_int_equal(hearsay_on_note(h[i], hear, NULL), HEARSAY_OK);
    }
    n_taken = 0;
    if (hearsay_open_simulated(h, n, NULL) != HEARSAY_OK)
        fail_msg("%s", hearsay_error(h[0]));
}

static void test_simulated_peers_begin_with_the_first_ones_model(void **state)
{
    static struct rig_peer p[4];
    static const char *const words[] = {
        "topology=ring compress=topk:0.3 rounds=40 local_steps=2 seed=7",
        "topology=complete compress=none rounds=30 mixer=allreduce",
        "topology=complete compress=none rounds=30 mixer=ps",
    };
    float first[RIG_N], x[4][RIG_N];
    (void)state;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        simulate(p, 4, true, words[w], first);
        rig_run_all(p, 4);
        assert_int_equal(n_taken, 0);
        for (uint32_t i = 0; i < 4; i++)
            rig_copy_model(&p[i], x[i]);
        rig_close_all(p, 4);
        simulate(p, 4, false, words[w], first);
        rig_run_all(p, 4);
        assert_int_equal(n_taken, 3);
        for (uint32_t i = 0; i < 4; i++)
            rig_expect_same(&p[i], x[i], words[w]);
        rig_close_all(p, 4);
    }
}

/* In a simulation, every peer has the initial model of the first peer before its first local
 * step. */
static void test_what_is_given_first_is_the_model(void **state)
{
    static struct rig_peer p[3];
    float first[RIG_N];
    (void)state;
    simulate(p, 3, false, run_words, first);
    for (uint32_t i = 0; i < 3; i++)
        rig_start(&p[i]);
    for (uint32_t i = 0; i < 3; i++)
        rig_join(&p[i]);
    for (uint32_t i = 0; i < 3; i++)
        assert_memory_equal(p[i].first, first, sizeof first);
    rig_close_all(p, 3);
}

static void test_the_peer_that_asks_for_it_gives_its_model(void **state)
{
    static struct rig_peer p[3];
    float first[RIG_N];
    (void)state;
    for (initial = 0; initial < 3; initial++) {
        simulate(p, 3, false, run_words, first);
        for (uint32_t i = 0; i < 3; i++)
            rig_start(&p[i]);
        for (uint32_t i = 0; i < 3; i++)
            rig_join(&p[i]);
        assert_int_equal(n_taken, 2);
        for (uint32_t i = 0; i < 3; i++)
            assert_memory_equal(p[i].first, first, sizeof first);
        rig_close_all(p, 3);
    }
    initial = UINT32_MAX;
}

static void test_options_are_listed(void **state)
{
    struct hearsay_option one;
    size_t n = 0;
    bool listen = false, model = false;
    (void)state;
    for (; hearsay_option_at(n, &one) == HEARSAY_OK; n++) {
        struct hearsay *h = hearsay_new();
        assert_true(one.name[0] != '\0' && one.values[0] != '\0' && one.about[0] != '\0');
        assert_int_equal(hearsay_set(h, one.name, "x"), HEARSAY_OK);
        listen |= strcmp(one.name, "listen") == 0 && strcmp(one.fallback, "0.0.0.0:7100") == 0;
        model |= strcmp(one.name, "lr") == 0 && one.needs_model;
        assert_true(strcmp(one.name, "rounds") != 0 || !one.needs_model);
        assert_string_not_equal(one.name, "begin");
        hearsay_close(h);
    }
    assert_true(n > 50 && listen && model);
    assert_int_equal(hearsay_option_at(SIZE_MAX, &one), HEARSAY_USAGE);
    assert_int_equal(hearsay_option_at(0, NULL), HEARSAY_USAGE);
}

static void open_tcp(struct rig_peer *p, uint32_t n, const char *words, const char *key)
{
    char text[512];
    n_taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        rig_init(&p[i], i, i == 1, words);
        spread(&p[i]);
        snprintf(text, sizeof text, "listen=127.0.0.1:0 name=peer-%u key=%s min-peers=%u", i, key,
                 n);
        assert_int_equal(hearsay_options(p[i].h, text), HEARSAY_OK);
        assert_int_equal(hearsay_on_note(p[i].h, hear, NULL), HEARSAY_OK);
        if (i > 0) {
            snprintf(text, sizeof text, "bootstrap=127.0.0.1:%u", hearsay_port(p[0].h));
            assert_int_equal(hearsay_options(p[i].h, text), HEARSAY_OK);
        }
        if (hearsay_open(p[i].h) != HEARSAY_OK)
            fail_msg("peer-%u: %s", i, hearsay_error(p[i].h));
    }
}

/* Over TCP, all peers start from the model of the peer without a bootstrap list. */
static void test_over_tcp_the_one_without_a_list_gives_its_model(void **state)
{
    static struct rig_peer p[4];
    float first[RIG_N], x[4][RIG_N];
    char key[64];
    (void)state;
    simulate(p, 4, true, run_words, first);
    rig_run_all(p, 4);
    for (uint32_t i = 0; i < 4; i++)
        rig_copy_model(&p[i], x[i]);
    rig_close_all(p, 4);
    rig_key(key);
    open_tcp(p, 4, run_words, key);
    rig_run_all(p, 4);
    assert_int_equal(n_taken, 3);
    for (uint32_t i = 0; i < 4; i++)
        rig_expect_same(&p[i], x[i], "over TCP");
    rig_close_all(p, 4);
    unlink(key);
}

/* ---- Late joins and restarts ----------------------------------------------------------------- */

static bool is_over;

static void *train_and_tell(void *self)
{
    rig_train(self);
    pthread_mutex_lock(&lock);
    is_over = true;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static bool look(void)
{
    pthread_mutex_lock(&lock);
    bool over = is_over;
    pthread_mutex_unlock(&lock);
    return over;
}

/* A peer with other initial values that joins late takes over the model of the run, and then
 * trains for a few rounds. */
static void test_who_comes_late_takes_the_initial_model_first(void **state)
{
    static struct rig_peer p[2];
    char key[64], text[160];
    (void)state;
    rig_key(key);
    n_taken = n_late = 0;
    is_over = false;
    for (uint32_t i = 0; i < 2; i++) {
        rig_init(&p[i], i, false, i == 0 ? "rounds=1000000000 compress=topk:0.3 quorum=0" : "");
        spread(&p[i]);
        assert_int_equal(hearsay_on_note(p[i].h, hear, NULL), HEARSAY_OK);
        snprintf(text, sizeof text, "listen=127.0.0.1:0 name=peer-%u key=%s", i, key);
        assert_int_equal(hearsay_options(p[i].h, text), HEARSAY_OK);
    }
    assert_int_equal(hearsay_open(p[0].h), HEARSAY_OK);
    assert_int_equal(hearsay_wait(p[0].h, -1), HEARSAY_OK);
    for (int r = 0; r < 100; r++) {
        rig_step(&p[0]);
        assert_int_equal(hearsay_round(p[0].h, NULL, -1), HEARSAY_OK);
    }
    snprintf(text, sizeof text, "bootstrap=127.0.0.1:%u", hearsay_port(p[0].h));
    assert_int_equal(hearsay_options(p[1].h, text), HEARSAY_OK);
    assert_int_equal(hearsay_open(p[1].h), HEARSAY_OK);
    p[1].stop_at = 5;
    assert_int_equal(pthread_create(&p[1].thread, NULL, train_and_tell, &p[1]), 0);
    while (!look()) {
        rig_step(&p[0]);
        assert_int_equal(hearsay_round(p[0].h, NULL, -1), HEARSAY_OK);
    }
    rig_join(&p[1]);
    assert_int_equal(p[1].code, HEARSAY_OVER);
    assert_int_equal(n_taken, 1);
    assert_int_equal(n_late, 1);
    assert_int_equal(p[1].rounds, 4);
    for (int k = 0; k < RIG_N;
         /* The late peer has started with the current model of the first peer, not with the initial
          * values of the first peer. */
         k++)
        assert_true(fabsf(p[1].first[k] - 1) < 0.1f);
    rig_close_all(p, 2);
    unlink(key);
}

static void rm_dir(const char *dir)
{
    char text[160];
    snprintf(text, sizeof text, "rm -rf '%s'", dir);
    assert_int_equal(system(text), 0);
}

static void open_with_out(struct rig_peer *p, float more, const char *key, const char *dir)
{
    char text[320];
    snprintf(text, sizeof text,
             "key=%s rounds=200 listen=127.0.0.1:0 out=%s checkpoint=0.001 compress=none", key,
             dir);
    rig_init(p, 0, false, text);
    for (int k = 0; k < RIG_N; k++)
        p->x[k] += more;
    if (hearsay_open(p->h) != HEARSAY_OK)
        fail_msg("%s", hearsay_error(p->h));
    if (hearsay_wait(p->h, -1) != HEARSAY_OK)
        fail_msg("%s", hearsay_error(p->h));
}

/* A program that restarts with other initial values resumes from its checkpoint, although no
 * other peer has the model. */
static void test_a_program_that_begins_otherwise_goes_on(void **state)
{
    struct rig_peer p;
    char key[64], dir[96];
    (void)state;
    rig_key(key);
    snprintf(dir, sizeof dir, "%s.out", key);
    open_with_out(&p, 0, key, dir);
    for (uint64_t r = 0; r < 50; r++) {
        rig_step(&p);
        assert_int_equal(hearsay_round(p.h, NULL, -1), HEARSAY_OK);
    }
    hearsay_close(p.h);
    open_with_out(&p, 100, key, dir);
    uint64_t at = hearsay_rounds_done(p.h);
    assert_true(at > 0 && at <= 50);
    for (int k = 0; k < RIG_N; k++)
        assert_true(fabsf(p.x[k]) < 20);
    rig_train(&p);
    assert_int_equal(p.code, HEARSAY_OVER);
    hearsay_close(p.h);
    rm_dir(dir);
    unlink(key);
}

/* A program was stopped before its first checkpoint, and restarts with other initial values in the
 * same output directory. The restart must succeed, although the directory records a run with the
 * former initial values. */
static void test_a_program_without_a_checkpoint_begins_again(void **state)
{
    struct rig_peer p;
    char key[64], dir[96], text[320];
    (void)state;
    rig_key(key);
    snprintf(dir, sizeof dir, "%s.out", key);
    for (int start = 0; start < 2; start++) {
        snprintf(text, sizeof text,
                 "key=%s rounds=20 listen=127.0.0.1:0 out=%s checkpoint=off compress=none", key,
                 dir);
        rig_init(&p, 0, false, text);
        p.x[0] += (float)start;
        p.stop_at = start == 0 ? 5 : 0;
        if (hearsay_open(p.h) != HEARSAY_OK)
            fail_msg("%s", hearsay_error(p.h));
        rig_train(&p);
        if (p.code != HEARSAY_OVER)
            fail_msg("start %d: %s", start, hearsay_error(p.h));
        assert_int_equal(p.rounds, start == 0 ? 4 : 20);
        hearsay_close(p.h);
    }
    /* A run that differs in more than the initial values is another run, so its start in this
     * output directory fails. */
    rig_init(&p, 0, false, text);
    assert_int_equal(hearsay_set(p.h, "out", dir), HEARSAY_OK);
    snprintf(text, sizeof text, "rm -f '%s/summary.json'", dir);
    assert_int_equal(system(text), 0);
    assert_int_equal(hearsay_options(p.h, "rounds=21"), HEARSAY_OK);
    p.x[0] += 7;
    assert_int_equal(hearsay_open(p.h), HEARSAY_OK);
    assert_int_equal(hearsay_wait(p.h, -1), HEARSAY_USAGE);
    assert_non_null(strstr(hearsay_error(p.h), "has another run"));
    hearsay_close(p.h);
    rm_dir(dir);
    unlink(key);
}

/* A peer that takes its run from other peers reads the run.txt in its output directory. A damaged
 * run.txt is reported as such. */
static void test_a_damaged_run_is_refused(void **state)
{
    struct rig_peer p;
    char key[64], dir[96], text[320];
    (void)state;
    rig_key(key);
    snprintf(dir, sizeof dir, "%s.out", key);
    snprintf(text, sizeof text,
             "mkdir '%s' && printf 'command=libhearsay\\nrounds=many\\n' >'%s/run.txt'", dir, dir);
    assert_int_equal(system(text), 0);
    snprintf(text, sizeof text, "key=%s listen=127.0.0.1:0 bootstrap=127.0.0.1:1 out=%s", key, dir);
    rig_init(&p, 0, false, text);
    assert_int_equal(hearsay_open(p.h), HEARSAY_USAGE);
    assert_non_null(strstr(hearsay_error(p.h), "cannot read its run.txt: "));
    assert_non_null(strstr(hearsay_error(p.h), "many"));
    hearsay_close(p.h);
    rm_dir(dir);
    unlink(key);
}

/* ---- Tensors of 16-bit floats ---------------------------------------------------------------- */

static void *train_half(void *self)
{
    struct hearsay *h = self;
    int code = hearsay_wait(h, -1);
    while (code == HEARSAY_OK)
        code = hearsay_round(h, NULL, -1);
    return code == HEARSAY_OVER ? h : NULL;
}

static void test_tensors_of_16_bits_take_it_exactly(void **state)
{
    static uint16_t half[2][3] = {{0x3c00, 0xc100, 0x0001}, {0x4200, 0x0000, 0x3555}};
    const uint64_t dims[] = {3};
    struct hearsay *h[2];
    pthread_t thread[2];
    void *good;
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        h[i] = hearsay_new();
        assert_int_equal(hearsay_options(h[i], "topology=ring compress=none rounds=4"), HEARSAY_OK);
        assert_int_equal(
            hearsay_tensor(h[i], "a", half[i], HEARSAY_FLOAT16, HEARSAY_TRAINED, 1, dims),
            HEARSAY_OK);
    }
    assert_int_equal(hearsay_open_simulated(h, 2, NULL), HEARSAY_OK);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, train_half, h[i]), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], &good), 0);
        assert_non_null(good);
        hearsay_close(h[i]);
    }
    /* No peer trains, so all peers must hold exactly the initial model at the end. */
    const uint16_t first[3] = {0x3c00, 0xc100, 0x0001};
    assert_memory_equal(half[0], first, sizeof first);
    assert_memory_equal(half[1], first, sizeof first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simulated_peers_begin_with_the_first_ones_model),
        cmocka_unit_test(test_what_is_given_first_is_the_model),
        cmocka_unit_test(test_the_peer_that_asks_for_it_gives_its_model),
        cmocka_unit_test(test_options_are_listed),
        cmocka_unit_test(test_over_tcp_the_one_without_a_list_gives_its_model),
        cmocka_unit_test(test_who_comes_late_takes_the_initial_model_first),
        cmocka_unit_test(test_a_program_that_begins_otherwise_goes_on),
        cmocka_unit_test(test_a_program_without_a_checkpoint_begins_again),
        cmocka_unit_test(test_a_damaged_run_is_refused),
        cmocka_unit_test(test_tensors_of_16_bits_take_it_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
