/* tests/unit/gossip_choco.c -- tests the mixer `choco`.
 *
 * Tested are shared and separate replicas, resets, random event orders, the consensus step size,
 * hashes of replicas, divergence, and the pass that adds corrections. */
#include "gossip_choco_world.h"

#include <errno.h>

/* ---- in step, and out of it ---- */

/* In lock step, an exchange costs one encoding and one packet for all edges of a peer together,
 * because the edges share one replica of its model. An edge that misses a round gets a replica of
 * its own. It shares the common replica again only after a reset of all edges. */
static void test_replicas(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 4, "topk:0.1", 0.3, 1);
    struct peer *p = &w.peer[0];
    for (uint64_t t = 0; t < 5; t++) {
        beat(&w);
        assert_int_equal(p->n_encoded, t + 1);
        assert_int_equal(distinct_replicas(&w, 0), 1);
        assert_int_equal(p->e[1].a->refs, 3);
        assert_ptr_equal(p->e[1].cur.payload, p->e[3].cur.payload);
        assert_int_equal(p->e[1].cur.payload->refs, 3);
        /* Packets in use: this round's delta and, from the second round on, also the previous
         * round's delta. */
        assert_int_equal(p->c.packets.live, t == 0 ? 1 : 2);
        check_replicas(&w);
    }
    float *was = malloc(DIM * sizeof *was);
    assert_non_null(was);
    hold(&w, 0, 3, true);
    /* The deltas of round 4 had arrived before edge 3 stopped delivering messages, so every edge
     * commits once more. */
    for (uint64_t t = 0; t < 4; t++) {
        beat(&w);
        memcpy(was, p->e[3].a->v, t == 0 ? DIM * sizeof *was : 0);
        /* Edge 3, which delivers no messages, keeps its replica. The other edges continue with a
         * common replica. */
        assert_int_equal(distinct_replicas(&w, 0), t < 1 ? 1 : 2);
        assert_int_equal(distinct_replicas(&w, 1), 1);
        assert_memory_equal(was, p->e[3].a->v, DIM * sizeof *was);
        assert_int_equal(p->e[3].a->refs, t < 1 ? 3 : 1);
        /* No delta is made for edge 3, which delivers no messages. Each round therefore has one
         * encoding. */
        assert_int_equal(p->n_encoded, 6 + t);
        check_replicas(&w);
    }
    assert_int_equal(p->e[3].round + 3, p->e[1].round);
    hold(&w, 0, 3, false);
    deliver(&w, 0, 3);
    deliver(&w, 3, 0);
    for (uint64_t t = 0; t < 5; t++) {
        uint64_t encoded = p->n_encoded;
        beat(&w);
        /* Edge 3 delivers messages again, but has its own replica of this peer's model. Each
         * round therefore encodes two deltas. */
        assert_int_equal(p->n_encoded, encoded + 2);
        check_replicas(&w);
    }
    free(was);
    drain(&w);
    check_replicas(&w);
    check_mean(&w, 1e-4);
    world_close(&w);
}

/* Each edge of peer 0 in turn delivers no message for three rounds and then continues. Edges share
 * one replica of a peer's model while all of them deliver its deltas. An edge that has missed
 * rounds needs a replica of its own. */
static void test_every_edge_alone(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 4, "qsgd:4", 0, 1);
    beat(&w);
    for (uint32_t j = 1; j < 4; j++) {
        hold(&w, 0, j, true);
        for (int t = 0; t < 3; t++) {
            beat(&w);
            check_replicas(&w);
        }
        hold(&w, 0, j, false);
        for (int t = 0; t < 3; t++) {
            deliver(&w, 0, j);
            deliver(&w, j, 0);
            beat(&w);
            check_replicas(&w);
        }
        assert_int_equal(distinct_replicas(&w, 0), j < 3 ? j + 1 : 3);
    }
    drain(&w);
    check_replicas(&w);
    check_mean(&w, 1e-4);
    world_close(&w);
}

/* One job (computation of one round) commits two different deltas of a replica that two edges
 * share. After that each edge must have a replica of its own. */
static void test_one_replica_two_deltas(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 3, "topk:0.1", 0.3, 1);
    w.step = 0.1f;
    struct peer *p = &w.peer[0];
    beats(&w, 3);
    /* This job commits the exchange of the paused edge, but makes no new delta for it. */
    p->e[2].state = EDGE_PAUSED;
    job_start(&w, 0);
    job_finish(&w, 0);
    p->e[2].state = EDGE_OPEN; /* The edge is open again, so this job makes a delta for it. */
    job_start(&w, 0);
    job_finish(&w, 0);
    assert_ptr_equal(p->e[1].a, p->e[2].a);
    assert_ptr_not_equal(p->e[1].cur.payload, p->e[2].cur.payload);
    for (uint32_t j = 1; j < 3; j++) {
        job_start(&w, j);
        job_finish(&w, j);
        deliver(&w, j, 0);
    }
    assert_true(edge_ready(&p->e[1]) && edge_ready(&p->e[2]));
    beats(&w, 3);
    assert_ptr_not_equal(p->e[1].a, p->e[2].a);
    drain(&w);
    check_replicas(&w);
    check_mean(&w, 1e-4);
    world_close(&w);
}

/* After a reset, both replicas of an edge start at x0. All edges that are reset together share a
 * replica. */
static void test_reset(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 4, "topk:0.1", 0, 1);
    struct peer *p = &w.peer[0];
    beats(&w, 3);
    for (uint32_t j = 1; j < 4; j++)
        agree(&w, 0, j, true);
    assert_false(edge_ready(&p->e[1]));
    assert_true(p->e[1].cur.payload == NULL && p->e[1].prev.payload == NULL);
    job_start(&w, 0);
    for (uint32_t j = 1; j < 4; j++) {
        assert_memory_equal(p->e[j].a->v, p->c.x0, DIM * sizeof(float));
        assert_memory_equal(p->e[j].b, p->c.x0, DIM * sizeof(float));
        assert_false(p->e[j].gamma.begun);
    }
    assert_int_equal(distinct_replicas(&w, 0), 1);
    assert_int_equal(p->e[1].a->refs, 3);
    job_finish(&w, 0);
    assert_int_equal(p->e[1].cur.head.round, 0);
    assert_int_equal(p->e[1].cur.head.epoch, p->e[1].epoch);
    beats(&w, 3);
    check_replicas(&w);

    agree(&w, 0, 2, true); /* If only one edge is reset, it gets its own replica. */
    beat(&w);
    assert_int_equal(distinct_replicas(&w, 0), 2);
    assert_int_equal(distinct_replicas(&w, 2), 2);
    beats(&w, 3);
    check_replicas(&w);
    drain(&w);
    check_replicas(&w);
    world_close(&w);
}

/* An edge is reset while a job (computation of one round) uses it. The job's exchange must not
 * count, its delta must not be sent, and no packet may be lost. */
static void test_reset_overtakes_job(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 3, "topk:0.1", 0, 1);
    struct peer *p = &w.peer[0];
    beats(&w, 3);
    uint64_t done = p->e[1].n_exchanges;
    job_start(&w, 0);
    agree(&w, 0, 1, true);
    job_finish(&w, 0);
    assert_int_equal(p->e[1].n_exchanges, done);
    assert_int_equal(p->e[1].round, 0);
    assert_null(p->e[1].cur.payload);
    /* Edge 2 was not reset, so its exchange in this job counts. */
    assert_int_equal(p->e[2].n_exchanges, done + 1);
    assert_non_null(p->e[2].cur.payload);
    beats(&w, 5);
    drain(&w);
    check_replicas(&w);
    world_close(&w);
}

/* ---- any order ---- */

static void random_run(uint64_t seed, const char *spec, double gamma, bool resets)
{
    struct world w;
    world_init(&w, 4, spec, gamma, 1);
    w.rng = rng_stream(rng_key(seed, RNG_TEST, 3, 0));
    w.step = 0.01f;
    random_events(&w, resets);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t j = 0; j < i; j++) {
            assert_int_equal(edge_to(&w, i, j)->round, edge_to(&w, j, i)->round);
            assert_int_equal(edge_to(&w, i, j)->n_mismatches, 0);
        }
    check_replicas(&w);
    if (!resets)
        check_mean(&w, 1e-3);
    world_close(&w);
}

static void test_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        print_message("seed %d\n", (int)seed);
        random_run(seed, "topk:0.1", 0, false);
        random_run(seed, "qsgd:4", 0.5, false);
        random_run(seed, "sign:64", 0, true);
    }
}

/* Without local steps the models must converge to their mean. */
static void test_consensus(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 4, "qsgd:4", 0, 1);
    double before = spread(&w);
    beats(&w, 40);
    double after = spread(&w);
    if (!(after <= 1e-6 * before))
        fail_msg("%g of %g is left", after, before);
    world_end(&w);
}

/* ---- gamma ---- */

/* The consensus step size gamma depends on the codec. All levels of the codec list count as one
 * codec, so gamma continues when the level changes. With any other codec gamma starts again. Both
 * ends of an edge must have the same gamma, whichever level each of them uses. */
static void test_rungs(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, &(struct world_how){.n = 2, .spec = "none", .spread = 1, .ladder = true});
    w.step = 0.1f;
    const struct gamma *g = &edge_to(&w, 0, 1)->gamma;
    for (uint32_t i = 0; i < 2; i++)
        w.peer[i].codec = DELTA_RUNG + 2;
    beats(&w, 20);
    double delta = g->delta, value = g->value;
    assert_true(delta < 0.4);
    for (uint32_t t = 0; t < 3 * CODEC_LEVELS_RUNGS; t++) {
        w.peer[0].codec = DELTA_RUNG + t % CODEC_LEVELS_RUNGS;
        w.peer[1].codec = DELTA_RUNG + t * 5 % CODEC_LEVELS_RUNGS;
        beat(&w);
        check_replicas(&w);
        /* The contraction `delta` is a moving average, so it changes by at most a tenth per
         * exchange. */
        assert_true(fabs(g->delta - delta) <= 0.1 + 1e-9);
        assert_true(g->value >= 0.5 * g->delta - 1e-12 && g->value <= 1.5 * g->delta + 1e-12);
        if (t > 0)
            assert_true(g->value <= 1.05 * value + 0.05);
        delta = g->delta;
        value = g->value;
    }
    /* If one end of an edge changes its codec, gamma restarts at both ends. */
    w.peer[1].codec = DELTA_FINAL;
    beats(&w, 2);
    check_replicas(&w);
    w.peer[0].codec = DELTA_FINAL;
    beats(&w, 2);
    assert_true(g->delta > 0.99 && g->value == 1); /* fp16 is nearly exact, so gamma is 1. */
    world_close(&w);
}

/* Two models grow by 10 % per round. Each is large in its own half of the coordinates, and `common`
 * times as large in the other half. */
static float common;

static void local_growth(struct world *w, uint32_t i, float *x)
{
    for (size_t k = 0; k < DIM; k++)
        x[k] = k % 2 == i % 2 ? powf(1.1f, (float)w->peer[i].round)
                              : common * powf(1.1f, (float)w->peer[i].round);
}

static uint32_t runaways(float of_common, double gamma)
{
    struct world w;
    common = of_common;
    world_init(&w, 2, "none", gamma, 0);
    w.local = local_growth;
    beats(&w, 60);
    check_replicas(&w);
    uint32_t n = edge_to(&w, 0, 1)->gamma.n_runaways;
    assert_int_equal(n, edge_to(&w, 1, 0)->gamma.n_runaways);
    world_close(&w);
    return n;
}

/* Two replicas a and b that grow apart are a runaway only if they have no more in common than
 * unrelated models, that is if D^2 = |b - a|^2 exceeds |a|^2 + |b|^2. */
static void test_runaway(void **state)
{
    (void)state;
    /* D^2 = |b - a|^2 is 0.8 (|a|^2 + |b|^2), which is no runaway. */
    assert_int_equal(runaways(0.1f, 0.01), 0);
    /* D^2 = |b - a|^2 is 1.2 (|a|^2 + |b|^2), which is a runaway. */
    assert_true(runaways(-0.1f, 0.01) > 0);
    assert_true(runaways(-0.1f, 0) > 0);
}

/* ---- the replicas' hash ---- */

static void hash_run(bool tamper)
{
    struct world w;
    world_init(&w, 3, "topk:0.1", 0.3, 1);
    for (int t = 0; t < MIXING_HASH_EVERY + 2; t++) {
        if (tamper && t == 10)
            w.peer[1].e[0].b[DIM - 1] += 1e-3f;
        for (uint32_t i = 0; i < 3; i++)
            for (uint32_t j = 0; j < 3; j++)
                if (i != j && t > 0) {
                    const struct edge *e = edge_to(&w, i, j);
                    assert_int_equal(e->cur.head.hash != 0, e->cur.head.round == MIXING_HASH_EVERY);
                    /* The hashes of the replicas have been sent, but not compared. */
                    assert_int_equal(e->n_mismatches, 0);
                }
        beat(&w);
    }
    /* Both ends must detect that their replicas differ. */
    assert_int_equal(edge_to(&w, 0, 1)->n_mismatches, tamper);
    assert_int_equal(edge_to(&w, 1, 0)->n_mismatches, tamper);
    assert_int_equal(edge_to(&w, 0, 2)->n_mismatches, 0);
    assert_int_equal(edge_to(&w, 2, 1)->n_mismatches, 0);
    world_close(&w);
}

static void test_hash(void **state)
{
    (void)state;
    hash_run(false);
    hash_run(true);
}

/* ---- divergence ---- */

/* Sets n values of the model x to `value`, so that its difference x - a from the replica, or the
 * squared norm of this difference, is not finite. The peer must then send nothing. */
static void diverge(float value, size_t n)
{
    struct world w;
    world_init(&w, 2, "none", 1, 1);
    beat(&w);
    for (size_t k = 0; k < n; k++)
        w.peer[0].c.x[5 + k] = value;
    job_start(&w, 0);
    mixing_finish(&w.peer[0].c);
    w.peer[0].works = false;
    assert_true(w.peer[0].c.diverged);
    assert_null(w.peer[0].e[1].cur.payload);
    world_close(&w);
}

static void test_divergence(void **state)
{
    (void)state;
    diverge((float)NAN, 1);
    diverge((float)INFINITY, 1);
    diverge(3e38f, 1);
    diverge(1e25f, 1);
    /* Each square is a finite float, but the sum of all 300 squares is not. */
    diverge(0x1p63f, 300);
}

/* ---- the outlier filter ---- */

/* Local steps of two peers. Models are about x0 + 1 in rounds 1 to 3. Local steps do not move them
 * afterwards, except in round 4, when the model of peer 1 moves by `jump` in all DIM
 * coordinates. */
static float jump;

static void local_jump(struct world *w, uint32_t i, float *x)
{
    uint64_t round = w->peer[i].round;
    for (size_t k = 0; k < DIM; k++)
        if (round <= 3)
            x[k] = w->peer[i].c.x0[k] + 1 + 1e-4f * (float)i;
        else if (round == 4 && i == 1)
            x[k] += jump;
}

/* Returns whether peer 0 refuses the exchange with the jump. Peer 0 measured |x - x0| in its first
 * mixing, when its model was next to x0, and would measure it again only four mixings later. */
static bool refuses_jump(float by, uint32_t tolerate)
{
    struct world w;
    jump = by;
    world_init(&w, 2, "none", 0.3, 1e-4f);
    w.local = local_jump;
    w.peer[0].c.tolerate = tolerate;
    beats(&w, 4);
    assert_false(w.peer[0].c.task[0].distrusted);
    assert_true(w.peer[0].c.way2 < 1e-3);
    beat(&w);
    bool refused = w.peer[0].c.task[0].distrusted;
    /* A refused exchange has moved nothing, so it does not lower the limit of later ones. */
    assert_false(edge_to(&w, 0, 1)->trust.warned);
    if (!refused) {
        assert_true(fabs((double)w.peer[0].c.x[0] - (double)w.peer[0].c.x0[0] - 1) > 0.1);
        check_mean(&w, 1e-3);
    }
    world_close(&w);
    return refused;
}

/* The limit of the outlier filter is twice the distance |x - x0|, which is 1 per coordinate here.
 * |x - x0| is measured again before an exchange is refused, but not with --byzantine. */
static void test_measures_before_refusing(void **state)
{
    (void)state;
    assert_false(refuses_jump(1.5f, 0));
    assert_true(refuses_jump(2.5f, 0));
    assert_true(refuses_jump(1.5f, 1));
}

/* ---- the fused pass ---- */

static void test_mix_terms(void **state)
{
    static const size_t size[] = {1,  2,   3,    7,    8,    15,   16,   17,   31,
                                  33, 255, 1023, 2047, 2048, 2049, 4095, 4097, 5000};
    enum { TERMS = 5 };
    static float velocity[TERMS][5000], moved[TERMS][5000];
    (void)state;
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (size_t n = 0; n <= TERMS; n++) {
            size_t d = size[s];
            struct rng rng = rng_stream(rng_key(s, RNG_TEST, n, 4));
            struct correction term[TERMS];
            float *v = malloc((2 * TERMS + 2) * d * sizeof *v);
            assert_non_null(v);
            for (size_t k = 0; k < (2 * TERMS + 2) * d; k++)
                v[k] = (float)rng_normal(&rng);
            float *x = v, *want = v + d;
            memcpy(want, x, d * sizeof *x);
            for (size_t t = 0; t < n; t++) {
                const float *a = v + (2 + 2 * t) * d, *b = a + d;
                term[t] = (struct correction){.a = a, .b = b, .coefficient = (float)rng_unit(&rng)};
                if (t % 2 == 1) {
                    term[t].velocity = velocity[t];
                    term[t].momentum = 0.75f;
                }
                for (size_t k = 0; k < d; k++) {
                    moved[t][k] = term[t].coefficient * (b[k] - a[k]);
                    velocity[t][k] = (float)rng_normal(&rng);
                    moved[t][k] += t % 2 == 1 ? 0.75f * velocity[t][k] : 0;
                    want[k] += moved[t][k];
                }
            }
            correction_pass(x, d, term, n);
            for (size_t k = 0; k < d; k++)
                if (!(fabsf(x[k] - want[k]) <= 1e-5f))
                    fail_msg("size %zu, %zu: %g, expected %g", d, k, (double)x[k], (double)want[k]);
            for (size_t t = 1; t < n; t += 2)
                for (size_t k = 0; k < d; k++)
                    assert_true(fabsf(velocity[t][k] - moved[t][k])
                                <= 1e-6f * (1 + fabsf(moved[t][k])));
            for (size_t t = 0; t < n; t++) {
                double d2 = 0;
                for (size_t k = 0; k < d; k++) {
                    double e = (double)term[t].b[k] - (double)term[t].a[k];
                    d2 += e * e;
                }
                if (!(fabs(term[t].d2 - d2) <= 1e-6 * d2))
                    fail_msg("size %zu: %g, expected %g", d, term[t].d2, d2);
            }
            free(v);
        }
}

/* A term whose length exceeds its limit in a later block changes neither x nor its velocity. */
static void test_mix_restores(void **state)
{
    enum { N = 5000 };
    static float x[N], a[N], b[N], v[N], x_before[N], v_before[N];
    struct rng rng = rng_stream(rng_key(1, RNG_TEST, 5, 4));
    (void)state;
    for (size_t k = 0; k < N; k++) {
        a[k] = (float)rng_normal(&rng);
        b[k] = (float)rng_normal(&rng);
        x[k] = x_before[k] = (float)rng_normal(&rng);
        v[k] = v_before[k] = (float)rng_normal(&rng);
    }
    struct correction t = {
        .a = a, .b = b, .coefficient = 0.3f, .velocity = v, .momentum = 0.75f, .limit2 = N};
    correction_pass(x, N, &t, 1);
    assert_true(t.refused);
    for (size_t k = 0; k < N; k++) {
        assert_true(fabsf(x[k] - x_before[k]) <= 1e-5f);
        assert_true(fabsf(v[k] - v_before[k]) <= 1e-5f);
    }
}

/* An invalid codec specification is refused, and no memory leaks (LeakSanitizer checks that). */
static void test_bad_spec(void **state)
{
    struct mixing c;
    struct mixing_config config = {
        .segments = segments, .n_segments = 2, .spec = {"fp16", "none", "tpk"}};
    (void)state;
    assert_int_equal(mixing_init(&c, &config), -EINVAL);
}

/* ---- packets ---- */

static void test_packets(void **state)
{
    struct packet_pool pool;
    (void)state;
    packet_pool_init(&pool, 10);
    struct packet *p = packet_get(&pool), *q = packet_get(&pool);
    assert_true(p != NULL && q != NULL && p != q);
    assert_int_equal(pool.live, 2);
    assert_int_equal(p->cap, 10);
    p->len = 3;
    memcpy(p->bytes, "abc", 3);
    size_t n;
    assert_memory_equal(packet_bytes(p, &n), "abc", 3);
    assert_int_equal(n, 3);
    packet_hold(p);
    packet_release(p);
    assert_int_equal(pool.live, 2);
    packet_release(p);
    assert_int_equal(pool.live, 1);
    struct packet *again = packet_get(&pool);
    assert_ptr_equal(again, p); /* A packet that was released is used again. */
    assert_int_equal(again->len, 0);
    packet_release(NULL);
    packet_release(again);
    packet_release(q);
    packet_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_mix_terms),
        cmocka_unit_test(test_mix_restores),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_every_edge_alone),
        cmocka_unit_test(test_one_replica_two_deltas),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_reset_overtakes_job),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_consensus),
        cmocka_unit_test(test_rungs),
        cmocka_unit_test(test_runaway),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_measures_before_refusing),
        cmocka_unit_test(test_bad_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
