/* tests/unit/sim_serve.c -- --mixer ps in simulated nodes.
 *
 * Compares it with a naive parameter server, and tests bytes, staleness, deaths of workers and
 * servers, and lost sessions. */
#include "gossip/collectives/ps.h"
#include "peer/node/collectives/round_protocol_state.h"
#include "peer/node/state.h"
#include "peer/sim/state.h"
#include "sim_rig.h"

enum {
    DIM = 211,
    ROUNDS = 30,
    MOST = 2000 * 1000 /* Largest number of simulated events of one call of rig_run(). */
};

static const char *const codecs[] = {"none", "qsgd:4", "topk:0.1"};
static const enum run_policy policies[] = {RUN_SYNC, RUN_ASYNC, RUN_SSP + 1};
enum { N_CODECS = 3, N_POLICIES = 3 };

static uint32_t ps(void)
{
    for (uint32_t i = 0; mixer_all[i] != NULL; i++)
        if (mixer_all[i] == &mixer_ps)
            return i;
    fail_msg("no ps");
    return 0;
}

static void rig_serve(struct rig *r, uint32_t n, size_t dim, const char *codec,
                      enum run_policy policy)
{
    rig_init(r, n, dim, "complete", codec, 0);
    memcpy(r->config.run.final_compress, "none", sizeof "none");
    r->config.run.mixer = ps();
    r->config.run.policy = policy;
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    r->config.jitter_us = 2000;
    r->eta = 0.1f;
}

/* ---- the naive server ---- */

struct naive
{
    struct compress *codec;
    /* z: model of the server. a: model that all workers have. x, p: model and update of one worker.
     * e: error feedback of each worker, PEERS x dim. */
    float *z, *a, *x, *p, *e, *zero;
    uint8_t *bytes;
};

static void naive_open(struct naive *v, const struct rig *r)
{
    uint32_t n = r->config.n_peers;
    assert_int_equal(compress_open(&v->codec, r->config.run.compress, r->segment, 1), 0);
    v->z = calloc(r->dim, sizeof *v->z);
    v->a = calloc(r->dim, sizeof *v->a);
    v->x = calloc(r->dim, sizeof *v->x);
    v->p = calloc(r->dim, sizeof *v->p);
    v->zero = calloc(r->dim, sizeof *v->zero);
    v->e = calloc(n * r->dim, sizeof *v->e);
    v->bytes = malloc(compress_bound(v->codec));
    assert_true(v->z && v->a && v->x && v->p && v->zero && v->e && v->bytes);
}

static void naive_close(struct naive *v)
{
    compress_close(v->codec);
    free(v->z);
    free(v->a);
    free(v->x);
    free(v->p);
    free(v->zero);
    free(v->e);
    free(v->bytes);
}

/* Encodes x - from with the codec, decodes the message, and adds the result to `to`. */
static void code(struct naive *v, const float *x, const float *from, float *to)
{
    size_t len;
    struct compress_input in = {.x = x, .x_hat = from};
    assert_int_equal(compress_encode(v->codec, &in, v->bytes, &len, NULL), 0);
    compress_apply(v->codec, v->bytes, len, to);
}

/* Makes one round of pushes (updates to the server) and pulls (the new model). memory: a worker
 * adds to its push what earlier pushes left out. last: the pull is not compressed. */
static void naive_round(struct naive *v, const struct rig *r, bool memory, bool last)
{
    uint32_t n = r->config.n_peers;
    float *sum = calloc(r->dim, sizeof *sum), *sent = calloc(r->dim, sizeof *sent);
    assert_true(sum && sent);
    for (uint32_t i = 0; i < n; i++) {
        float *e = v->e + i * r->dim;
        for (size_t k = 0; k < r->dim; k++) {
            v->x[k] = v->a[k] - r->eta * (v->a[k] - r->c[i * r->dim + k]);
            v->p[k] = (memory ? e[k] : 0) + (v->x[k] - v->a[k]);
        }
        memset(sent, 0, r->dim * sizeof *sent);
        code(v, v->p, v->zero, sent);
        for (size_t k = 0; k < r->dim; k++) {
            e[k] = v->p[k] - sent[k];
            sum[k] += sent[k];
        }
    }
    for (size_t k = 0; k < r->dim; k++)
        v->z[k] += sum[k] / (float)n;
    if (last)
        memcpy(v->a, v->z, r->dim * sizeof *v->a);
    else
        code(v, v->z, v->a, v->a);
    free(sum);
    free(sent);
}

static void is_naive(const struct rig *r)
{
    struct naive v;
    naive_open(&v, r);
    for (uint64_t t = 1; t <= ROUNDS; t++)
        naive_round(&v, r, r->config.run.error_feedback, t == ROUNDS);
    for (size_t k = 0; k < r->dim; k++)
        if (!(fabsf(rig_model(r, 0)[k] - v.a[k]) <= 1e-5f))
            fail_msg("%s, %u peers: float %zu is %g, expected %g", r->config.run.compress,
                     r->config.n_peers, k, (double)rig_model(r, 0)[k], (double)v.a[k]);
    naive_close(&v);
}

/* A naive parameter server, which this file defines, gives the same models as mixer ps, because
 * topk draws no random numbers. */
static void test_the_naive_server(void **state)
{
    static const char *const codec[] = {"none", "topk:0.1"};
    static const uint32_t peers[] = {1, 2, 3, 8};
    (void)state;
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
            for (int memory = 0; memory < 2; memory++) {
                struct rig r;
                rig_serve(&r, peers[i], DIM, codec[c], RUN_SYNC);
                r.config.run.error_feedback = memory;
                rig_run(&r, MOST);
                rig_ended_well(&r, 0);
                rig_all_equal(&r);
                is_naive(&r);
                rig_close(&r);
            }
}

/* A worker's update that was lost with its session must be sent again, and be added once. */
static void test_lost_sessions(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_CODECS; c++)
        for (size_t p = 0; p < N_POLICIES; p++) {
            struct rig r;
            rig_serve(&r, 4, DIM, codecs[c], policies[p]);
            r.config.cut_rate = 0.02;
            rig_run(&r, MOST);
            rig_ended_well(&r, policies[p] == RUN_SYNC ? 0 : 1e-3);
            if (policies[p] == RUN_SYNC && strcmp(codecs[c], "qsgd:4") != 0)
                is_naive(&r);
            const struct centre *s = parameter_server_centre(sim_node(r.world, 0)->round_protocol);
            assert_non_null(s);
            assert_int_equal(s->n_pushes, 4 * ROUNDS);
            rig_close(&r);
        }
}

/* Running statistics are averaged with the parameters. No averaged variance may be below the
 * smallest variance that a local step found. */
static void test_statistics(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_CODECS; c++)
        for (size_t p = 0; p < N_POLICIES; p++) {
            struct rig r;
            rig_serve(&r, 4, DIM, codecs[c], policies[p]);
            rig_with_statistics(&r, 5, 5, 10);
            rig_run(&r, MOST);
            rig_ended_well(&r, 0);
            rig_all_equal(&r);
            for (size_t k = DIM + 5; k < DIM + 10; k++)
                assert_true(rig_model(&r, 0)[k] >= r.lowest);
            rig_close(&r);
        }
}

/* With N peers and d parameters, all peers together must send 2 d (N - 1) floats per round, half of
 * them from the server. This is the textbook formula. */
static void test_bytes_are_the_formula(void **state)
{
    enum { N = 8, LARGE = 200 * 1000 };
    struct rig r;
    (void)state;
    rig_serve(&r, N, LARGE, "none", RUN_SYNC);
    rig_run(&r, MOST);
    rig_ended_well(&r, 0);
    for (uint32_t i = 0; i < N; i++) {
        double sent = (double)rig_progress(&r, i).bytes_sent;
        double want = 4.0 * ROUNDS * LARGE * (i == 0 ? N - 1 : 1);
        if (!(sent >= want && sent <= 1.01 * want + 200e3))
            fail_msg("peer-%u sent %g bytes, expected %g", i, sent, want);
    }
    rig_close(&r);
}

/* ---- staleness ---- */

/* Returns the largest number of rounds by which the fastest peer was ahead of the slowest one
 * during the run. */
static uint64_t largest_lead(enum run_policy policy)
{
    enum { N = 4, SLOW = 2 };
    uint64_t lead = 0;
    struct rig r;
    rig_serve(&r, N, DIM, "none", policy);
    rig_open(&r);
    sim_slow(r.world, SLOW, 20);
    do {
        uint64_t least = ROUNDS, most = 0;
        for (uint32_t i = 0; i < N; i++) {
            uint64_t round = rig_progress(&r, i).round;
            least = round < least ? round : least;
            most = round > most ? round : most;
        }
        lead = most - least > lead ? most - least : lead;
    } while (sim_step(r.world));
    rig_ended_well(&r, 0);
    rig_close(&r);
    return lead;
}

static void test_staleness(void **state)
{
    (void)state;
    assert_int_equal(largest_lead(RUN_SYNC), 1);
    assert_in_range(largest_lead(RUN_SSP + 1), 2, 3);
    assert_in_range(largest_lead(RUN_SSP + 4), 5, 6);
    assert_true(largest_lead(RUN_ASYNC) > 10);
}

/* ---- faults ---- */

/* A worker or the server dies at various times. The dead process stays away, restarts with its
 * identity, or restarts as a new peer. The models of the live peers must end within the target of
 * the consensus distance. */
static void test_deaths_and_restarts(void **state)
{
    enum { N = 5 };
    (void)state;
    for (uint64_t s = 0; s < 3 * 3 * 3 * 3 * 2; s++) {
        uint32_t dead = s % 2 == 0 ? 0 : 3;
        const char *codec = codecs[s / 2 % 3];
        enum run_policy policy = policies[s / 6 % 3];
        uint64_t back = s / 18 % 3, at = 2 + 7 * (s / 54);
        struct rig r;
        rig_serve(&r, N, DIM, codec, policy);
        r.config.seed = 1 + s;
        r.config.run.quorum = 0.5;
        rig_open(&r);
        while (rig_progress(&r, dead).round < at)
            assert_true(sim_step(r.world));
        rig_run(&r, sim_events(r.world) + 5 * at + s % 11);
        sim_kill(r.world, dead);
        rig_run(&r, sim_events(r.world) + 10 * at);
        if (back > 0)
            assert_int_equal(
                back == 1 ? sim_restart(r.world, dead) : sim_restart_as_new(r.world, dead), 0);
        rig_run(&r, sim_events(r.world) + MOST);
        rig_ended_well(&r, r.config.run.final_drift);
        rig_close(&r);
    }
}

/* A worker must report that it waits for the server. The server must report which worker it waits
 * for. */
static void test_who_is_waited_for(void **state)
{
    enum { N = 4 };
    (void)state;
    for (uint32_t stopped = 0; stopped < N; stopped += 2) {
        struct rig r;
        struct node_wait w;
        rig_serve(&r, N, DIM, "none", RUN_SYNC);
        rig_open(&r);
        while (rig_progress(&r, stopped).round < 5)
            assert_true(sim_step(r.world));
        sim_stop(r.world, stopped, true);
        int64_t until_us = sim_now_us(r.world) + 700 * 1000;
        while (sim_now_us(r.world) < until_us)
            assert_true(sim_step(r.world));
        for (uint32_t i = 0; i < N; i++) {
            const uint8_t *whom = sim_id(r.world, i == 0 ? stopped : 0);
            if (i == stopped)
                continue;
            node_wait(sim_node(r.world, i), &w);
            assert_int_equal(w.what, NODE_WAITS_NEIGHBOUR);
            assert_memory_equal(w.id, whom, WIRE_ID_BYTES);
        }
        sim_stop(r.world, stopped, false);
        rig_run(&r, MOST);
        rig_ended_well(&r, 0);
        rig_close(&r);
    }
}

/* A worker cannot reach the server for 40 s. The worker must continue alone, and return to the
 * other peers after this time. */
static void test_a_link_that_is_cut(void **state)
{
    struct rig r;
    int64_t until_us;
    (void)state;
    rig_serve(&r, 4, DIM, "topk:0.1", RUN_SYNC);
    r.config.sessions = true;
    rig_open(&r);
    while (rig_progress(&r, 2).round < 5)
        assert_true(sim_step(r.world));
    sim_cut(r.world, 0, 2, true);
    sim_cut(r.world, 2, 0, true);
    until_us = sim_now_us(r.world) + 40 * 1000 * 1000;
    while (sim_now_us(r.world) < until_us)
        assert_true(sim_step(r.world));
    assert_true(sim_node(r.world, 2)->round_protocol->n_alone > 0);
    sim_cut(r.world, 0, 2, false);
    sim_cut(r.world, 2, 0, false);
    rig_run(&r, sim_events(r.world) + MOST);
    rig_ended_well(&r, r.config.run.final_drift);
    rig_close(&r);
}

/* ---- arbitrary messages ---- */

enum { LIAR = 2 };

static uint64_t some_round(struct rng *rng)
{
    static const uint64_t far[] = {0, 1, ROUNDS, ROUNDS + 1, UINT64_MAX};
    uint64_t pick = rng_u64(rng) % 12;
    return pick < 5 ? far[pick] : rng_u64(rng) % ROUNDS;
}

/* Writes a random message of a server or worker. Its payload has the right length, almost the right
 * length, or is random. */
static size_t some_word(struct rng *rng, uint8_t *out, size_t cap)
{
    static uint8_t payload[4 * DIM + 8];
    struct wire_round_protocol m = {
        .word = (enum wire_round_protocol_word)(rng_u64(rng) % WIRE_ROUND_PROTOCOL_END),
        .round = some_round(rng),
        .attempt = (uint32_t)rng_u64(rng) % 3,
        .view = some_round(rng)};
    static const size_t sizes[] = {1, 4 * DIM, 4 * DIM + 1, 16, 4 * DIM + 4};
    bool coded = m.word == WIRE_ROUND_PROTOCOL_PUSH || m.word == WIRE_ROUND_PROTOCOL_PULL;
    for (size_t k = 0; k < sizeof payload; k++)
        payload[k] = (uint8_t)(rng_u64(rng) % 3 == 0 ? rng_u64(rng) : 1);
    m.payload.p = payload;
    if (coded || m.word == WIRE_ROUND_PROTOCOL_RESULT)
        m.payload.n = sizes[rng_u64(rng) % (sizeof sizes / sizeof *sizes)];
    size_t head = wire_put_round_protocol(out, cap, &m);
    memcpy(out + head, payload, m.payload.n);
    return head + m.payload.n;
}

static void lie_once(struct rig *r, struct rng *rng)
{
    struct sim_world *w = r->world;
    uint32_t n = w->n_links, at = n > 0 ? (uint32_t)(rng_u64(rng) % n) : 0;
    for (uint32_t k = 0; k < n; k++) {
        const struct sim_link *l = &w->links[(at + k) % n];
        int side = l->end[0] == LIAR ? 1 : 0;
        struct sim_peer *to = &w->peers[l->end[side]];
        if (!l->up || l->end[1 - side] != LIAR || !sim_lives(to))
            continue;
        uint8_t *bytes = malloc(WIRE_HEAD_MAX + 4 * DIM + 8);
        assert_non_null(bytes);
        size_t len = some_word(rng, bytes, WIRE_HEAD_MAX);
        sim_post(w, to,
                 (struct sim_event){.at_us = sim_now_us(w),
                                    .type = NODE_RECV,
                                    .link = (at + k) % n,
                                    .bytes = bytes,
                                    .n_bytes = len});
        return;
    }
}

/* Whatever a Byzantine worker or server sends, no peer may crash or wait without end, and all
 * models must be finite. */
static void test_a_liar(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 36; s++) {
        struct rig r;
        struct rng rng = rng_stream(rng_key(77, RNG_TEST, s, 0));
        rig_serve(&r, 4, DIM, codecs[s % 3], policies[s / 3 % 3]);
        r.config.seed = 1 + s;
        r.config.run.rounds = 10 * ROUNDS;
        r.quiet = true;
        rig_open(&r);
        for (uint64_t k = 1; k < MOST && sim_step(r.world); k++)
            if (k % 50 == 0 && k < 4000)
                lie_once(&r, &rng);
        for (uint32_t i = 0; i < 4; i++) {
            int code;
            if (!sim_ended(r.world, i, &code))
                fail_msg("seed %d: peer-%u has not ended", (int)s, i);
            assert_true(vec_finite(rig_model(&r, i), rig_floats(&r)));
        }
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_naive_server),
        cmocka_unit_test(test_lost_sessions),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_staleness),
        cmocka_unit_test(test_bytes_are_the_formula),
        cmocka_unit_test(test_deaths_and_restarts),
        cmocka_unit_test(test_who_is_waited_for),
        cmocka_unit_test(test_a_link_that_is_cut),
        cmocka_unit_test(test_a_liar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
