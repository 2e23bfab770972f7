/* tests/unit/gossip_choco_statistics.c -- tests jobs of a model with running statistics.
 *
 * The statistics must be averaged, and the weights must be the same as without statistics. */
#include "gossip_choco_world.h"
#include "tests/unit/gossip_seeds.h"

static struct world w, plain; /* Static, because struct world is too large for a stack. */

static const struct
{
    const char *spec;
    const struct mixer *mixer;
} kinds[] = {{"topk:0.1", NULL},           {"qsgd:4", NULL},           {"none", NULL},
             {"topk:0.1", &mixer_average}, {"qsgd:4", &mixer_average}, {"none", &mixer_average}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void open_kind(struct world *world, size_t kind, uint32_t n, bool statistics)
{
    world_open(world, &(struct world_how){.n = n,
                                          .spec = kinds[kind].spec,
                                          .spread = kinds[kind].mixer == NULL,
                                          .mixer = kinds[kind].mixer,
                                          .error_feedback = true,
                                          .statistics = statistics});
}

/* ---- payloads ---- */

/* Without running statistics, a payload is exactly the message of the compressor. */
static void test_nothing_beside(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < 3; kind++) {
        struct compress *q;
        struct compress_stat stat;
        char canonical[COMPRESS_SPEC_MAX], error[COMPRESS_ERROR_MAX];
        uint8_t msg[4 * DIM + 64];
        size_t len, n;
        assert_int_equal(compress_canonical(kinds[kind].spec, canonical, error), 0);
        assert_int_equal(compress_open(&q, canonical, segments, TRAINED), 0);
        assert_true(compress_bound(q) <= sizeof msg);
        open_kind(&w, kind, 2, false);
        for (uint64_t round = 1; round <= 5; round++) {
            struct peer *p = &w.peer[0];
            float x_hat[DIM];
            w.step = 0.1f;
            job_start(&w, 0);
            memcpy(x_hat, p->e[1].a->v, sizeof x_hat);
            job_finish(&w, 0);
            struct compress_input in = {
                .draw = rng_at(rng_at(0, round), 0), .round = round, .x = p->c.x, .x_hat = x_hat};
            assert_int_equal(compress_encode(q, &in, msg, &len, &stat), 0);
            const uint8_t *got = packet_bytes(p->e[1].cur.payload, &n);
            assert_int_equal(n, len);
            assert_memory_equal(got, msg, n);
            assert_true(mixing_valid(&p->c, DELTA_RUN, got, n));
            job_start(&w, 1);
            job_finish(&w, 1);
            deliver(&w, 0, 1);
            deliver(&w, 1, 0);
        }
        compress_close(q);
        world_close(&w);
    }
}

/* With running statistics, a model's deltas and weights are the same as without them. Statistics
 * are sent in the first ten rounds and not in the next ten. */
static void test_weights_do_not_notice(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        open_kind(&w, kind, 4, true);
        open_kind(&plain, kind, 4, false);
        w.step = plain.step = 0.1f;
        w.peer[1].codec = plain.peer[1].codec = kinds[kind].mixer == NULL ? DELTA_FINAL : DELTA_RUN;
        for (int t = 0; t < 20; t++) {
            w.with = t < 10 ? 3 : 0;
            beat(&w);
            beat(&plain);
            for (uint32_t i = 0; i < 4; i++) {
                const struct peer *p = &w.peer[i], *q = &plain.peer[i];
                assert_memory_equal(p->c.x, q->c.x, DIM * sizeof(float));
                assert_int_equal(q->c.n_floats, DIM);
                for (uint32_t j = 0; j < 4; j++) {
                    size_t m, n;
                    if (i == j)
                        continue;
                    const uint8_t *a = packet_bytes(p->e[j].cur.payload, &m);
                    const uint8_t *b = packet_bytes(q->e[j].cur.payload, &n);
                    size_t head = statistics_length(&p->c.statistics, a);
                    assert_int_equal(a[0], head > 1);
                    assert_int_equal(head, w.with > 0 ? 1 + 4 * STATS : 1);
                    assert_int_equal(m, head + n);
                    assert_memory_equal(a + head, b, n);
                    assert_true(p->e[j].cur.head.x2 == q->e[j].cur.head.x2);
                    assert_true(p->e[j].cur.head.e2 == q->e[j].cur.head.e2);
                    if (head > 1)
                        assert_memory_equal(a + 1, p->c.x + DIM, 4 * STATS);
                }
            }
        }
        world_close(&w);
        world_close(&plain);
    }
}

/* In one round a peer makes deltas for three edges that share a replica. The first and the third
 * delta carry statistics and must share one packet. The second carries none and must have a packet
 * of its own. */
static void test_groups(void **state)
{
    (void)state;
    open_kind(&w, 0, 4, true);
    beat(&w);
    struct mixing *c = &w.peer[0].c;
    assert_int_equal(mixing_begin(c, 3), 0);
    c->n_tasks = 3;
    for (uint32_t j = 1; j < 4; j++)
        c->task[j - 1] = (struct mixing_task){.edge = edge_to(&w, 0, j),
                                              .commit = edge_ready(edge_to(&w, 0, j)),
                                              .encode = true,
                                              .statistics = j != 2};
    c->n_tasks = 3;
    struct mixing_announcement says = {.run_round = 2, .degree = 3};
    assert_int_equal(mixing_plan(c, &says), 0);
    mixing_mix(c);
    mixing_encode(c);
    assert_ptr_equal(c->task[0].made, c->task[2].made);
    assert_ptr_not_equal(c->task[0].made, c->task[1].made);
    assert_int_equal(c->task[0].made->bytes[0], 1);
    assert_int_equal(c->task[1].made->bytes[0], 0);
    assert_int_equal(c->task[0].made->len, c->task[1].made->len + 4 * STATS);
    mixing_finish(c);
    world_close(&w);
}

/* A payload is valid only if all its bytes are used, to the last one. */
static void test_valid(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < 3; kind++) {
        size_t n;
        open_kind(&w, kind, 2, true);
        beat(&w);
        const struct mixing *c = &w.peer[1].c;
        const uint8_t *good = packet_bytes(w.peer[0].e[1].cur.payload, &n);
        for (size_t len = 0; len <= n; len++) {
            uint8_t *exact = malloc(len > 0 ? len : 1);
            assert_non_null(exact);
            memcpy(exact, good, len);
            assert_int_equal(mixing_valid(c, DELTA_RUN, exact, len), len == n);
            free(exact);
        }
        static const float bad[] = {(float)NAN, INFINITY, -1, 1e30f};
        uint8_t *spoilt = malloc(n + 1);
        assert_non_null(spoilt);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            memcpy(spoilt, good, n);
            /* Replaces the last statistic of the message, which is a variance. */
            memcpy(spoilt + 1 + 4 * (STATS - 1), &bad[i], 4);
            assert_false(mixing_valid(c, DELTA_RUN, spoilt, n));
        }
        memcpy(spoilt, good, n);
        spoilt[n] = 0;
        assert_false(mixing_valid(c, DELTA_RUN, spoilt, n + 1));
        spoilt[0] = 2;
        assert_false(mixing_valid(c, DELTA_RUN, spoilt, n));
        /* With the flag 0, no statistics follow, so the delta begins at the next byte. */
        spoilt[0] = 0;
        assert_false(mixing_valid(c, DELTA_RUN, spoilt, n));
        /* Refused: the run does not use this codec. */
        assert_false(mixing_valid(c, DELTA_RUNG, good, n));
        free(spoilt);
        world_close(&w);
    }
}

/* Statistics are attached to every n-th delta. The interval n is the smallest one with which they
 * take at most 1/20 of the bytes. */
static void test_every(void **state)
{
    static const struct
    {
        size_t n_bytes, message;
        uint64_t every;
    } row[] = {{0, 1000, 1},   {1, 1000, 1},   {50, 1000, 1},    {51, 1000, 2},
               {100, 1000, 2}, {101, 1000, 3}, {1000, 1000, 20}, {5000, 1, 100000}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        assert_int_equal(mixing_every(row[i].n_bytes, row[i].message), row[i].every);
}

/* ---- averaging ---- */

/* On a complete graph of four peers all weights are 1/4, so the statistics are equal after one
 * exchange. The codec, gamma and mixer have no influence. */
static void test_one_exchange(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        open_kind(&w, kind, 4, true);
        for (uint32_t i = 0; i < 4; i++)
            for (size_t k = 0; k < STATS; k++) {
                float *x = &w.peer[i].c.x[DIM + k];
                w.statistics_sum[k] -= (double)*x;
                *x = (float)(i * i) * 1000 + (float)k;
                w.statistics_sum[k] += (double)*x;
            }
        beat(&w);
        beat(&w); /* The mean of the first statistic is 1,000 (0 + 1 + 4 + 9) / 4 = 3,500. */
        for (uint32_t i = 0; i < 4; i++) {
            const struct mixing *c = &w.peer[i].c;
            for (size_t k = 0; k < STATS; k++) {
                double off = fabs((double)c->x[DIM + k] - 3500 - (double)k);
                if (!(off <= 0.01))
                    fail_msg("kind %zu, peer %u: off by %g", kind, i, off);
            }
            assert_true(statistics_apart(&c->statistics) > 0.5);
        }
        beat(&w);
        for (uint32_t i = 0; i < 4; i++)
            assert_true(statistics_apart(&w.peer[i].c.statistics) <= 1e-6);
        drain(&w);
        check_statistics(&w, 0.01);
        world_close(&w);
    }
}

/* A reset of an edge does not change `owed`, the amounts still to be subtracted from statistics. */
static void test_reset(void **state)
{
    (void)state;
    open_kind(&w, 0, 2, true);
    beat(&w);
    struct mixing *c = &w.peer[0].c;
    c->statistics.owed[MEANS] = 0.5f;
    agree(&w, 0, 1, true);
    job_start(&w, 0);
    job_finish(&w, 0);
    assert_true(c->statistics.owed[MEANS] == 0.5f);
    assert_true(c->x[DIM + MEANS] == 1);
    world_close(&w);
}

static void random_run(uint64_t seed, size_t kind, bool resets)
{
    open_kind(&w, kind, 4, true);
    w.rng = rng_stream(rng_key(seed, RNG_TEST, 3, kind));
    w.statistics_rng = rng_stream(rng_key(seed, RNG_TEST, 10, kind));
    w.step = 0.01f;
    w.with = 3 - seed % 2;
    random_events(&w, resets);
    check_replicas(&w);
    if (!resets) {
        double owed = 0;
        for (uint32_t i = 0; i < 4; i++)
            for (size_t k = 0; k < STATS; k++)
                owed = fmax(owed, (double)w.peer[i].c.statistics.owed[k]);
        check_mean(&w, 1e-3);
        check_statistics(&w, 1e-4 * (1000 + owed));
    }
    world_close(&w);
}

static void check_any_order(uint64_t seed)
{
    for (size_t kind = 0; kind < KINDS; kind++)
        for (int resets = 0; resets < 2; resets++)
            random_run(seed, kind, resets);
}

static void test_any_order(void **state)
{
    (void)state;
    for_seeds(check_any_order, 6);
}

/* ---- divergence ---- */

/* If a statistic is not valid, nothing is sent, whether the delta would carry statistics or not. */
static void test_divergence(void **state)
{
    static const float values[] = {(float)NAN, INFINITY, -1e-6f, 1e30f};
    (void)state;
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        open_kind(&w, 2, 2, true);
        beat(&w);
        w.with = v % 2 ? 3 : 0;
        w.peer[0].c.x[DIM + STATS - 1] = values[v];
        job_start(&w, 0);
        mixing_finish(&w.peer[0].c);
        w.peer[0].works = false;
        assert_true(w.peer[0].c.diverged);
        assert_null(w.peer[0].e[1].cur.payload);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_beside),
        cmocka_unit_test(test_weights_do_not_notice),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_every),
        cmocka_unit_test(test_one_exchange),
        cmocka_unit_test(test_reset),
        cmocka_unit_test_teardown(test_any_order, print_seed),
        cmocka_unit_test(test_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
