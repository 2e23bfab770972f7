/* tests/unit/sim_fetch.c -- a late peer fetches the model in pieces from several sources: how fast,
 * and what happens if sources die, stall or send wrong data.
 *
 * Each link carries RATE bytes/s. The model has 16 pieces, so that their transfer takes most of the
 * time. All peers train towards almost the same point. */
#include "gossip/exchange/piece.h"
#include "sim_rig.h"
#include "test_share.h"

enum { SECOND = 1000 * 1000, DIM = 320 * 1000, RATE = 80 * 1000, SOURCES = 4 };

/* A Byzantine source: factors by which the simulation multiplies the values in its MODEL
 * messages. */
struct lie
{
    uint32_t liar;
    float pieces, sketches;
    /* Number of the only piece of the model that is changed. UINT32_MAX: all pieces are changed. */
    uint32_t only;
};

static struct lie lie;
static uint32_t n_struck, n_givers;
static uint64_t n_pieces;   /* Number of pieces that have reached the joining peer. */
static uint64_t last_round; /* Round of the last piece that has reached the joining peer. */
static uint32_t joiner;

static void hear(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self, (void)peer;
    unsigned n;
    n_struck += strstr(note->text, "the model pieces from it are discarded") != NULL;
    const char *with = strstr(note->text, "with a model fetched from ");
    if (with != NULL && sscanf(with, "with a model fetched from %u member", &n) == 1)
        n_givers = n;
}

/* Changes the messages of the Byzantine source on arrival. The source holds the cluster key, so the
 * channel accepts them. */
static void tamper(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    static struct wire_batch batch;
    struct wire_message m;
    (void)self;
    if (peer != joiner || ev->type != NODE_RECV
        || !wire_read(ev->recv.bytes, ev->recv.len, &batch, &m) || m.type != WIRE_MODEL)
        return;
    n_pieces += m.model.key == 0;
    last_round = m.model.round;
    if (other != lie.liar)
        return;
    bool spared = m.model.key == 0 && lie.only != UINT32_MAX && m.model.piece != lie.only;
    float factor = m.model.key != 0 ? lie.sketches : spared ? 1 : lie.pieces;
    for (size_t i = 0; i < m.model.payload.n / 4; i++) {
        float v;
        memcpy(&v, m.model.payload.p + 4 * i, 4);
        v *= factor;
        memcpy((uint8_t *)ev->recv.bytes + (m.model.payload.p - ev->recv.bytes) + 4 * i, &v, 4);
    }
}

/* The bootstrap list of the joining peer has one address. The joining peer takes the run
 * description from the peer there. */
static void configure(void *self, uint32_t peer, struct node_config *c)
{
    static const char *const name[] = {"first"};
    (void)self;
    if (peer != joiner)
        return;
    c->n_known = 0;
    c->bootstrap = name;
    c->n_bootstrap = 1;
}

static uint32_t resolve(void *self, uint32_t peer, const char *name,
                        const char *address[NODE_SEEDS_MAX])
{
    (void)self, (void)peer, (void)name;
    address[0] = "peer-0:1";
    return 1;
}

/* Opens a cluster of n training peers. One more peer starts after 60 s, when the training peers are
 * near the point towards which they train. */
static void open_cluster(struct rig *r, uint32_t n)
{
    rig_init(r, n + 1, DIM, "complete", "topk:0.0005", 0);
    joiner = n;
    n_struck = n_givers = 0;
    n_pieces = 0;
    for (size_t i = 1; i <= n; i++)
        for (size_t k = 0; k < DIM; k++)
            r->c[i * DIM + k] = r->c[k] + 0.05f * r->c[i * DIM + k];
    r->eta = 0.1f;
    r->config.step_us = SECOND;
    r->config.latency_us = 5000;
    r->config.bytes_per_s = RATE;
    r->config.sessions = true;
    r->config.note = hear;
    r->config.watch = tamper;
    r->config.configure = configure;
    r->config.resolve = resolve;
    r->config.run.rounds = 1000;
    r->config.run.min_peers = 1;
    rig_open(r);
    sim_kill(r->world, joiner);
    (void)sim_run_to(r->world, 60 * SECOND);
    assert_int_equal(sim_restart_as_new(r->world, joiner), 0);
}

static bool has_joined(const struct rig *r)
{
    return rig_progress(r, joiner).joined_round > 0;
}

/* Returns the seconds until the joining peer has a model. -1: no model after `us`. */
static double join_within(struct rig *r, int64_t us)
{
    int64_t begun = sim_now_us(r->world);
    while (!has_joined(r) && sim_now_us(r->world) < begun + us && sim_step(r->world))
        ;
    return has_joined(r) ? (double)(sim_now_us(r->world) - begun) / SECOND : -1;
}

/* Returns |x - mean|^2 of a peer, divided by the average of |x - mean|^2 over the sources. Source
 * `but` is left out of the mean and the average. */
static double distance(const struct rig *r, uint32_t peer, uint32_t but)
{
    double own2 = 0, all2 = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < joiner; i++)
        n += i != but;
    for (size_t k = 0; k < DIM; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < joiner; i++)
            mean += i != but ? (double)rig_model(r, i)[k] / n : 0;
        for (uint32_t i = 0; i < joiner; i++) {
            double e = (double)rig_model(r, i)[k] - mean;
            all2 += i != but ? e * e / n : 0;
        }
        double e = (double)rig_model(r, peer)[k] - mean;
        own2 += e * e;
    }
    return own2 / all2;
}

static double fetch_from(uint32_t n)
{
    struct rig r;
    open_cluster(&r, n);
    double took = join_within(&r, 60 * SECOND);
    assert_true(took > 0);
    assert_int_equal(n_givers, n);
    rig_close(&r);
    return took;
}

/* From four sources a model takes about a fourth of the time. On one link, 16 pieces of 80 KB take
 * 16 s. */
static void test_time(void **state)
{
    (void)state;
    lie = (struct lie){.liar = UINT32_MAX};
    double one = fetch_from(1), two = fetch_from(2), four = fetch_from(4);
    print_message("a model took %.2f s from one source, %.2f from two, %.2f from four\n", one, two,
                  four);
    assert_true(one > 16 && two < 0.65 * one && four < 0.4 * one);
}

/* A model made of pieces from several sources must be about as near to the mean as the model of one
 * source. */
static void test_as_good(void **state)
{
    struct rig r;
    (void)state;
    lie = (struct lie){.liar = UINT32_MAX};
    open_cluster(&r, SOURCES);
    assert_true(join_within(&r, 60 * SECOND) > 0);
    double d2 = distance(&r, joiner, UINT32_MAX);
    print_message("|z - mean|^2 is %.2f times that of a source\n", d2);
    /* The fetched model is some rounds old, and the other peers have trained further meanwhile. The
     * joining peer may therefore be farther from the mean than the other peers. */
    assert_true(d2 < 4);
    assert_int_equal(n_struck, 0);
    /* The last pieces of the model may be requested from two sources. */
    assert_in_range(n_pieces, 16, 22);
    assert_int_equal(rig_progress(&r, joiner).violations, 0);
    rig_close(&r);
}

/* One of four sources sends wrong data. The joined model must come from the others, and a source of
 * wrong pieces must be reported. */
static void test_liar(void **state)
{
    /* Rows of the table. Rows 1 and 4: the source sends wrong pieces and wrong sketches. Rows 2 and
     * 3: only wrong pieces. Row 5: only wrong sketches. */
    static const struct lie lies[] = {{1, -10, -10, UINT32_MAX},
                                      {2, -10, 1, UINT32_MAX},
                                      {3, 100, 1, UINT32_MAX},
                                      {0, -1, -1, UINT32_MAX},
                                      {1, 1, 1000, UINT32_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct rig r;
        if (!test_share_has(i))
            continue;
        lie = lies[i];
        open_cluster(&r, SOURCES);
        assert_true(join_within(&r, 60 * SECOND) > 0);
        double d2 = distance(&r, joiner, UINT32_MAX);
        print_message("lie %zu: %.2f times as far as a source, %u struck\n", i, d2, n_struck);
        assert_true(d2 < 4);
        assert_int_equal(n_struck, lie.pieces != 1);
        assert_int_equal(n_givers, SOURCES - (lie.pieces != 1));
        rig_close(&r);
    }
}

/* A source that sends a single wrong piece must be detected. */
static void test_one_piece(void **state)
{
    struct rig r;
    (void)state;
    uint32_t first = 0, n_places = 0;
    lie = (struct lie){.pieces = 50, .sketches = 1, .only = UINT32_MAX};
    for (lie.only = 0; lie.only < 16; lie.only += 5) {
        if (!test_share_has(lie.only / 5))
            continue;
        n_places++;
        for (lie.liar = 0; lie.liar < SOURCES; lie.liar++) {
            open_cluster(&r, SOURCES);
            assert_true(join_within(&r, 60 * SECOND) > 0);
            assert_true(distance(&r, joiner, UINT32_MAX) < 4);
            first += n_struck;
            rig_close(&r);
            if (n_struck > 0)
                /* The joining peer requested the changed piece from the Byzantine source, and has
                 * reported that source. */
                break;
        }
    }
    assert_int_equal(first, n_places);
}

/* One of two sources sends wrong data, so the two sources contradict each other. The joining peer
 * must discard the pieces of the source that is wrong. */
static void test_liar_of_two(void **state)
{
    (void)state;
    for (uint32_t liar = 0; liar < 2; liar++) {
        struct rig r;
        lie = (struct lie){liar, -10, -10, UINT32_MAX};
        open_cluster(&r, 2);
        assert_true(join_within(&r, 60 * SECOND) > 0);
        assert_true(distance(&r, joiner, UINT32_MAX) < 8);
        assert_int_equal(n_struck, 1);
        rig_close(&r);
    }
}

/* During the transfer of the model one source dies and another one stops. The pieces that they have
 * not sent must come from the other sources. */
static void test_lost_sources(void **state)
{
    struct rig r;
    (void)state;
    lie = (struct lie){.liar = UINT32_MAX};
    open_cluster(&r, SOURCES);
    (void)sim_run_to(r.world, sim_now_us(r.world) + 3 * SECOND);
    assert_false(has_joined(&r));
    assert_true(n_pieces > 0 && n_pieces < 16);
    sim_kill(r.world, 1);
    sim_stop(r.world, 2, true);
    assert_true(join_within(&r, 20 * SECOND) > 0);
    assert_int_equal(n_struck, 0);
    rig_close(&r);
}

/* A peer joins early in the run and is replaced 4 s later, when the members have done many more
 * rounds. The members still have the copy of the model that they made for the first process. The
 * second process must get the pieces of a later model. */
static void test_early_copy(void **state)
{
    struct rig r;
    (void)state;
    lie = (struct lie){.liar = UINT32_MAX};
    rig_init(&r, SOURCES + 1, 48, "complete", "none", 0);
    joiner = SOURCES;
    r.config.step_us = SECOND / 50;
    r.config.latency_us = 5000;
    r.config.sessions = true;
    r.config.watch = tamper;
    r.config.configure = configure;
    r.config.resolve = resolve;
    r.config.run.rounds = 100 * 1000;
    r.config.run.min_peers = 1;
    rig_open(&r);
    sim_kill(r.world, joiner);
    while (rig_progress(&r, 0).round < 20 && sim_step(r.world))
        ;
    assert_int_equal(sim_restart_as_new(r.world, joiner), 0);
    assert_true(join_within(&r, 10 * SECOND) > 0);
    uint64_t early = last_round;
    sim_kill(r.world, joiner);
    (void)sim_run_to(r.world, sim_now_us(r.world) + 4 * SECOND);
    last_round = 0;
    assert_int_equal(sim_restart_as_new(r.world, joiner), 0);
    assert_true(join_within(&r, 4 * SECOND) > 0);
    uint64_t round = rig_progress(&r, 0).round;
    print_message("pieces of round %llu, then of round %llu at round %llu\n",
                  (unsigned long long)early, (unsigned long long)last_round,
                  (unsigned long long)round);
    assert_true(round > 2 * early);
    assert_true(5 * last_round >= 4 * (round - 50));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time),        cmocka_unit_test(test_as_good),
        cmocka_unit_test(test_liar),        cmocka_unit_test(test_one_piece),
        cmocka_unit_test(test_liar_of_two), cmocka_unit_test(test_lost_sources),
        cmocka_unit_test(test_early_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
