/* tests/unit/sim_initial.c -- agreement on the initial model of a run whose programs begin with
 * different models.
 *
 * The run description names the model by a hash. Cases: proposals that differ in this hash alone,
 * members that serve wrong bytes, and a founder that dies. */
#include "peer/run/layout_keys.h"
#include "sim_rig.h"
#include "test_share.h"

enum { PEERS = 5, DIM = 70000, PIECES = 5 };

static uint32_t n_taken[PEERS], n_refused, n_given_up, n_strange, n_resumed;
/* Value that all coordinates of each peer's model had at its first local step. */
static float first[PEERS];
/* Peer whose pieces of the initial model get a wrong number on arrival, so that they are not used.
 * PEERS: no peer. */
static uint32_t mute;
/* Peer whose pieces of the initial model get wrong bytes on arrival. PEERS: no peer. */
static uint32_t liar;
/* Number of pieces of the initial model that reached each peer, and the sender of the last one. */
static uint32_t n_pieces[PEERS], giver_of[PEERS];
/* Hash of the initial model that each peer proposes. Its third digit is the number of the peer. */
static char begin[PEERS][LAYOUT_BEGIN];

static void hear(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self;
    n_taken[peer] += strstr(note->text, "took the initial model from ") != NULL;
    n_refused += strstr(note->text, "does not have the hash that the run names") != NULL;
    n_strange += strstr(note->text, "that peer belongs to another run") != NULL;
    n_resumed += strstr(note->text, "resuming from the checkpoint") != NULL;
    n_given_up += strstr(note->text, "the run is abandoned") != NULL;
}

/* If true, piece 3 of the initial model gets an unused number on arrival. The next piece, which is
 * shorter, gets the number 3. */
static bool relabel;

/* Changes the piece number in a received MODEL message. Between the number and the floats are the
 * key, `certified` and the length of the payload. */
static void give_number(const struct wire_message *m, uint8_t *floats, uint8_t other)
{
    uint8_t *number = floats - (m->model.payload.n > UINT16_MAX ? 5 : 3) - 3;
    assert_int_equal(*number, m->model.piece);
    *number = other;
}

/* Changes received pieces of the initial model: pieces from `liar` get wrong bytes, pieces from
 * `mute` get a wrong number. */
static void watch(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    static struct wire_batch batch;
    struct wire_message m;
    (void)self;
    if (ev->type != NODE_RECV || !wire_read(ev->recv.bytes, ev->recv.len, &batch, &m)
        || m.type != WIRE_MODEL || m.model.round != WIRE_ROUND_INITIAL)
        return;
    n_pieces[peer] += other != mute;
    giver_of[peer] = other;
    uint8_t *floats = (uint8_t *)ev->recv.bytes + (m.model.payload.p - ev->recv.bytes);
    if (other == liar)
        floats[5] ^= 1;
    if (other == mute) /* The receiver does not use a piece with an unexpected number. */
        give_number(&m, floats, 9);
    if (relabel && m.model.piece >= 3)
        give_number(&m, floats, m.model.piece == 3 ? 9 : 3);
    relabel &= m.model.piece != 4;
}

static float drawn; /* Constant that each program adds to the initial values of its model. */

static void fill(void *self, float *x)
{
    const struct rig_peer *p = self;
    for (size_t k = 0; k < DIM; k++)
        x[k] = (float)(p->index + 1) + drawn;
}

/* For each peer i, `founder[i]` is the peer whose model the run of peer i begins with. */
static uint32_t founder[PEERS];

static bool begins(void *self, const float *x)
{
    const struct rig_peer *p = self;
    for (size_t k = 0; k < DIM; k++)
        if (x[k] != (float)(founder[p->index] + 1))
            return false;
    return true;
}

static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    struct rig_peer *p = self;
    if (round == 0)
        first[p->index] = x[DIM - 1];
    rig_steps(self, x, round, n_steps, report);
}

static int make(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    founder[peer] = (uint32_t)(layout_values(run)->begin[2] - '0');
    t->init = fill;
    t->begins = begins;
    t->steps = steps;
    return err;
}

static void make_run(struct run *run, const char *hash, const char *min_peers)
{
    struct run_flags *f = calloc(1, sizeof *f);
    char error[RUN_ERROR_MAX];
    assert_non_null(f);
    f->trainer = &layout_keys;
    const char *const words[][2] = {
        {"topology", "complete"}, {"compress", "none"},     {"rounds", "30"},   {"begin", hash},
        {"trained", "70000"},     {"min-peers", min_peers}, {"floats", "70000"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_int_equal(run_flags_set(f, words[i][0], words[i][1], error), 0);
    if (run_from_flags(run, f, error) != 0)
        fail_msg("%s", error);
    free(f);
}

static const char *least = "5";

/* Lets each peer propose a run that begins with its own model. */
static void propose(void *self, uint32_t peer, struct node_config *c)
{
    (void)self;
    make_run(&c->run, begin[peer], least);
}

static void prepare(struct rig *r, uint32_t n, const char *order)
{
    rig_init(r, n, DIM, "complete", "none", 1);
    r->eta = 0.05f;
    r->config.sessions = true;
    r->config.make_trainer = make;
    r->config.note = hear;
    r->config.watch = watch;
    liar = mute = PEERS;
    n_refused = n_given_up = n_strange = n_resumed = 0;
    drawn = 0;
    for (uint32_t i = 0; i < PEERS; i++) {
        n_taken[i] = n_pieces[i] = 0;
        first[i] = 0;
        snprintf(begin[i], sizeof begin[i], "0%c%u%029d", order[i], i, 0);
    }
    make_run(&r->config.run, begin[0], least);
    r->config.configure = propose;
}

static void expect_first(uint32_t n, uint32_t giver)
{
    for (uint32_t i = 0; i < n; i++)
        if (first[i] != (float)(giver + 1))
            fail_msg("peer-%u began with %g, expected that of peer-%u", i, (double)first[i], giver);
}

/* ---- The owner of the initial model ---- */

/* In every order of sessions and proposals, all peers take the model with the smallest hash. */
static void test_all_agree_on_the_first(void **state)
{
    static const char *const orders[] = {"01234", "43210", "31024", "24013", "10432"};
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
            struct rig r;
            if (!test_share_has((seed - 1) * 5 + k))
                continue;
            prepare(&r, PEERS, orders[k]);
            r.config.seed = seed;
            r.config.jitter_us = 20000;
            rig_run(&r, UINT64_MAX);
            rig_ended_well(&r, 1);
            uint32_t giver = (uint32_t)(strchr(orders[k], '0') - orders[k]);
            expect_first(PEERS, giver);
            assert_int_equal(n_taken[giver] + n_refused + n_given_up, 0);
            for (uint32_t i = 0; i < PEERS; i++)
                assert_true(i == giver || n_taken[i] >= 1);
            rig_close(&r);
        }
}

/* ---- Wrong bytes, and none ---- */

static void bring_first(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = 600 * INT64_C(1000000);
}

/* Peers 0 to n_same - 1 begin with the model that the run names. */
static uint32_t n_same;

static void fill_by_place(void *self, float *x)
{
    (void)self;
    for (size_t k = 0; k < DIM; k++)
        x[k] = 1;
}

static int make_right(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                      char error[RUN_ERROR_MAX])
{
    int err = make(self, peer, run, t, error);
    if (peer < n_same)
        t->init = fill_by_place;
    return err;
}

/* Only the last peer lacks the initial model, and one of the others may serve wrong bytes. The last
 * peer must end up with the right model, whichever peer it asks first. */
static void test_who_serves_wrong_bytes_is_not_believed(void **state)
{
    uint32_t refused = 0;
    float *x = calloc(DIM, sizeof *x);
    (void)state;
    assert_non_null(x);
    for (uint32_t who = 0; who < PEERS; who++) {
        struct rig r;
        prepare(&r, PEERS, "01234");
        n_same = PEERS - 1;
        r.config.make_trainer = make_right;
        r.config.configure = bring_first;
        liar = who < PEERS - 1 ? who : PEERS;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1);
        expect_first(PEERS, 0);
        assert_int_equal(n_taken[PEERS - 1], 1);
        assert_int_equal(n_pieces[PEERS - 1], PIECES * (1 + n_refused));
        refused += n_refused;
        if (who == 0)
            memcpy(x, rig_model(&r, 2), DIM * sizeof *x);
        assert_memory_equal(x, rig_model(&r, 2), DIM * sizeof *x);
        rig_close(&r);
    }
    /* Wrong bytes were refused in one case only: the case in which the last peer first asked the
     * peer that serves them. */
    assert_int_equal(refused, 1);
    free(x);
}

/* The only other peer serves wrong bytes. The run must not begin with them, and must begin when the
 * bytes are right. */
static void test_a_single_liar_is_waited_out(void **state)
{
    struct rig r;
    (void)state;
    least = "2";
    prepare(&r, 2, "01234");
    r.config.configure = bring_first;
    liar = 0;
    rig_open(&r);
    sim_run_to(r.world, 100 * INT64_C(1000000));
    /* From time to time the last peer again requests the model from the peer that serves wrong
     * bytes. */
    assert_in_range(n_refused, 2, 4);
    assert_true(first[0] == 0 && first[1] == 0);
    liar = PEERS;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1);
    expect_first(2, 0);
    least = "5";
    rig_close(&r);
}

/* The source of the initial model stops in the middle of the transfer. The missing pieces must come
 * from the next source, and received pieces must not be fetched again. */
static void test_who_falls_silent_is_replaced(void **state)
{
    struct rig r;
    uint32_t source;
    (void)state;
    prepare(&r, PEERS, "01234");
    n_same = PEERS - 1;
    r.config.make_trainer = make_right;
    r.config.configure = bring_first;
    r.config.bytes_per_s = 1e6;
    rig_open(&r);
    while (n_pieces[PEERS - 1] < 2)
        assert_true(sim_step(r.world));
    source = giver_of[PEERS - 1];
    mute = source;
    while (n_taken[PEERS - 1] == 0 && sim_now_us(r.world) < 60 * INT64_C(1000000))
        assert_true(sim_step(r.world));
    assert_int_equal(n_taken[PEERS - 1], 1);
    assert_int_equal(n_pieces[PEERS - 1], PIECES);
    assert_int_equal(n_refused, 0);
    assert_int_not_equal(giver_of[PEERS - 1], source);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1);
    expect_first(PEERS, 0);
    rig_close(&r);
}

/* A source sends a piece whose size does not fit the number of the piece. Such a piece is a
 * protocol violation that ends the session. The receiving peer must still obtain the model. */
static void test_a_piece_of_another_size_is_a_violation(void **state)
{
    struct rig r;
    (void)state;
    least = "2";
    prepare(&r, 2, "01234");
    r.config.configure = bring_first;
    relabel = true;
    rig_run(&r, UINT64_MAX);
    assert_false(relabel);
    assert_int_equal(rig_progress(&r, 1).violations, 1);
    assert_int_equal(n_taken[1], 1);
    assert_int_equal(n_refused, 0);
    expect_first(2, 0);
    least = "5";
    rig_close(&r);
}

/* ---- The founder dies ---- */

/* The founder (peer 0) dies when only peer 1 has its model. Peer 1 must give the model to the
 * others. */
static void test_another_one_has_it(void **state)
{
    struct rig r;
    (void)state;
    least = "3";
    prepare(&r, 4, "01234");
    r.config.configure = bring_first;
    rig_open(&r);
    /* Cut paths keep peers 2 and 3 from fetching the initial model from the founder of the run. */
    sim_cut(r.world, 0, 2, true);
    sim_cut(r.world, 0, 3, true);
    while (n_taken[1] == 0)
        assert_true(sim_step(r.world));
    sim_kill(r.world, 0);
    assert_int_equal(n_taken[2] + n_taken[3], 0);
    rig_run(&r, UINT64_MAX);
    assert_int_equal(n_taken[2] + n_taken[3], 2);
    for (uint32_t i = 1; i < 4; i++)
        assert_true(first[i] == 1);
    rig_ended_well(&r, 1);
    least = "5";
    rig_close(&r);
}

/* The founder (the peer whose model the run begins with) dies before any peer has its whole model.
 * The others must agree on another model. */
static void test_nobody_has_it(void **state)
{
    struct rig r;
    (void)state;
    least = "3";
    prepare(&r, 4, "03124");
    r.config.bytes_per_s = 1e6;
    rig_open(&r);
    while (n_pieces[1] + n_pieces[2] + n_pieces[3] == 0)
        assert_true(sim_step(r.world));
    sim_kill(r.world, 0);
    rig_run(&r, UINT64_MAX);
    assert_true(n_given_up >= 1);
    for (uint32_t i = 1; i < 4; i++)
        /* All peers took the model of peer 2, whose hash is the smallest after the hash of the dead
         * founder. */
        assert_true(first[i] == 3);
    rig_ended_well(&r, 1);
    least = "5";
    rig_close(&r);
}

/* ---- Late, and again ---- */

static void run_to(struct rig *r, uint64_t round)
{
    r->config.step_us = 200000;
    rig_open(r);
    while (n_taken[4] == 0 || rig_progress(r, 4).round < round)
        assert_true(sim_step(r->world));
}

/* Peer 4 is killed in the middle of the run and restarted. Its new process must take the initial
 * model again, and then the current model from the other peers. */
static void test_who_is_killed_comes_back(void **state)
{
    struct rig r;
    (void)state;
    prepare(&r, PEERS, "01234");
    run_to(&r, 10);
    sim_kill(r.world, 4);
    assert_int_equal(sim_restart(r.world, 4), 0);
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1);
    assert_int_equal(n_taken[4], 2);
    assert_int_equal(n_strange, 0);
    rig_close(&r);
}

/* One peer, or all peers, are killed and restart with other initial values. They must resume from
 * their checkpoints, which contain the initial model. */
static void test_checkpoints_have_it(void **state)
{
    struct rig r;
    (void)state;
    for (uint32_t n_killed = 1; n_killed <= PEERS; n_killed += PEERS - 1) {
        prepare(&r, PEERS, "01234");
        r.config.checkpoint_us = 500000;
        run_to(&r, 20);
        drawn = 100;
        for (uint32_t i = PEERS - n_killed; i < PEERS; i++)
            sim_kill(r.world, i);
        for (uint32_t i = PEERS - n_killed; i < PEERS; i++)
            assert_int_equal(sim_restart(r.world, i), 0);
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1);
        assert_int_equal(n_resumed, n_killed);
        for (uint32_t i = 0; i < PEERS; i++)
            assert_int_equal(n_taken[i], i > 0);
        rig_close(&r);
    }
}

/* ---- Two runs that have begun ---- */

/* Peers 0 and 1 know each other, and so do peers 2 and 3. Peer 4 knows one peer of each pair. */
static void know_few(void *self, uint32_t peer, struct node_config *c)
{
    static const char *const name[] = {"few"};
    propose(self, peer, c);
    c->n_known = 0;
    c->bootstrap = name;
    c->n_bootstrap = 1;
}

static uint32_t few(void *self, uint32_t peer, const char *name,
                    const char *address[NODE_SEEDS_MAX])
{
    static const char *const of[][2] = {
        {"peer-0:1", "peer-1:1"}, {"peer-2:1", "peer-3:1"}, {"peer-0:1", "peer-2:1"}};
    (void)self, (void)name;
    memcpy(address, of[peer / 2], sizeof of[0]);
    return 2;
}

static void open_two_runs(struct rig *r, const char *order)
{
    least = "2";
    prepare(r, PEERS, order);
    r->config.configure = know_few;
    r->config.resolve = few;
    r->config.step_us = 1000000;
    rig_open(r);
    sim_kill(r->world, 4);
    while (rig_progress(r, 0).round < 3 || rig_progress(r, 2).round < 3)
        assert_true(sim_step(r->world));
    assert_int_equal(sim_restart_as_new(r->world, 4), 0);
    least = "5";
}

/* Two pairs of peers have begun different runs, and a new peer knows both. The new peer must join
 * the first run that it meets and stay there. The peers of the other run must not become
 * members. */
static void test_who_meets_two_runs_joins_one(void **state)
{
    static const char *const orders[] = {"01234", "20134", "43210"};
    (void)state;
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        struct rig r;
        open_two_runs(&r, orders[k]);
        while (!sim_over(r.world) && n_taken[4] < 3)
            assert_true(sim_step(r.world));
        assert_int_equal(n_taken[4], 1);
        assert_int_equal(n_pieces[4], PIECES);
        assert_true(rig_progress(&r, 4).joined_round > 0);
        /* Peer 4 has joined one of the two runs. Peer 4 and the peers of the other run must report
         * once that their runs differ. */
        assert_in_range(n_strange, 1, 4);
        for (uint32_t i = 0; i < PEERS; i++) {
            int code = 1;
            assert_true(sim_ended(r.world, i, &code) && code == 0);
            assert_int_equal(rig_progress(&r, i).violations, 0);
        }
        rig_close(&r);
    }
}

/* ---- Order of runs ---- */

static void test_order(void **state)
{
    struct run *run = calloc(3, sizeof *run);
    (void)state;
    assert_non_null(run);
    make_run(&run[0], "0000000000000000000000000000000a", "3");
    make_run(&run[1], "1000000000000000000000000000000a", "3");
    make_run(&run[2], "0000000000000000000000000000000a", "4");
    assert_true(layout_compare_initial(&run[0], &run[1]) < 0);
    assert_true(layout_compare_initial(&run[1], &run[0]) > 0);
    assert_int_equal(layout_compare_initial(&run[0], &run[0]), 0);
    assert_int_equal(layout_compare_initial(&run[0], &run[2]), 0);
    /* The two run descriptions differ in min_peers, too. */
    assert_int_equal(layout_compare_initial(&run[1], &run[2]), 0);
    layout_copy_initial(&run[1], &run[0]);
    assert_int_equal(layout_compare_initial(&run[1], &run[0]), 0);
    free(run);
}

/* ---- Another kind of run ---- */

/* A run description with the keys of another trainer is recognised as a run of another trainer, not
 * as an invalid text. */
static void test_other_kind(void **state)
{
    static const struct run_key other_keys[] = {{.name = "zeal"}, {.name = NULL}};
    static const struct run_trainer other = {.keys = other_keys};
    char text[WIRE_RUN_MAX + 1], found[RUN_KEY_MAX + 1];
    const char *expected = NULL;
    struct run *run = calloc(1, sizeof *run);
    (void)state;
    assert_non_null(run);
    make_run(run, "0000000000000000000000000000000a", "3");
    size_t n = run_text(run, text);
    assert_true(run_text_is_of_other_trainer(&other, text, n, found, &expected));
    assert_string_equal(found, "begin");
    assert_string_equal(expected, "zeal");
    /* The run description `text` has the keys of the trainer `layout_keys`. Compared with this
     * trainer, the description must not count as the run of another trainer. */
    assert_false(run_text_is_of_other_trainer(&layout_keys, text, n, found, &expected));
    assert_false(run_text_is_of_other_trainer(NULL, text, n, found, &expected));
    /* `topology` is a run key that belongs to no trainer. */
    const char *last = strstr(text, "\ntopology=");
    assert_non_null(last);
    for (size_t less = 0; less <= (size_t)(last - text) + 1; less++)
        assert_false(run_text_is_of_other_trainer(&other, text, less, found, &expected));
    *strchr(text, '=') = '\n';
    assert_false(run_text_is_of_other_trainer(&other, text, n, found, &expected));
    free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_agree_on_the_first),
        cmocka_unit_test(test_who_serves_wrong_bytes_is_not_believed),
        cmocka_unit_test(test_a_single_liar_is_waited_out),
        cmocka_unit_test(test_who_falls_silent_is_replaced),
        cmocka_unit_test(test_a_piece_of_another_size_is_a_violation),
        cmocka_unit_test(test_another_one_has_it),
        cmocka_unit_test(test_nobody_has_it),
        cmocka_unit_test(test_who_is_killed_comes_back),
        cmocka_unit_test(test_checkpoints_have_it),
        cmocka_unit_test(test_who_meets_two_runs_joins_one),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_other_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
