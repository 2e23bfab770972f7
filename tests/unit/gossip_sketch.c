/* tests/unit/gossip_sketch.c -- the projection, windows of averaging, who is
 * late, and messages that are to be refused. */
#include "tests/unit/gossip_sketch_world.h"

/* ---- the projection ---- */

static void test_linear(void **state)
{
    struct sketch k;
    float x[DIM], y[DIM], z[DIM], sx[SKETCH_K], sy[SKETCH_K], sz[SKETCH_K];
    (void)state;
    assert_int_equal(sketch_init(&k, 5, DIM), 0);
    fill(x, DIM, 1);
    fill(y, DIM, 2);
    for (size_t i = 0; i < DIM; i++)
        z[i] = 2 * x[i] - 3 * y[i];
    sketch_project(&k, x, sx);
    sketch_project(&k, y, sy);
    sketch_project(&k, z, sz);
    for (size_t i = 0; i < SKETCH_K; i++)
        if (!(fabsf(sz[i] - (2 * sx[i] - 3 * sy[i])) <= 1e-4f))
            fail_msg("element %zu: %g", i, (double)sz[i]);
    memset(z, 0, sizeof z);
    sketch_project(&k, z, sz);
    assert_true(vec_norm2(sz, SKETCH_K) == 0);
    z[DIM - 1] = 2; /* One column: one sign in one bucket. */
    sketch_project(&k, z, sz);
    assert_true(vec_norm2(sz, SKETCH_K) == 4);
    sketch_close(&k);
}

/* Over many seeds: no bias, and the promised sqrt(2/k) of error. */
static void test_norm(void **state)
{
    enum { SEEDS = 400 };
    float x[4 * DIM], s[SKETCH_K];
    double sum = 0, sum2 = 0;
    (void)state;
    fill(x, 4 * DIM, 3);
    double exact = vec_norm2(x, 4 * DIM);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sketch k;
        assert_int_equal(sketch_init(&k, seed, 4 * DIM), 0);
        sketch_project(&k, x, s);
        double off = vec_norm2(s, SKETCH_K) / exact - 1;
        sum += off;
        sum2 += off * off;
        sketch_close(&k);
    }
    double rms = sqrt(sum2 / SEEDS), promised = sqrt(2.0 / SKETCH_K);
    print_message("bias %.4f, rms error %.4f, promised %.4f\n", sum / SEEDS, rms, promised);
    if (!(fabs(sum / SEEDS) <= 4 * promised / sqrt(SEEDS)) || !(fabs(rms / promised - 1) <= 0.15))
        fail();
}

/* ---- all in lock step, and not ---- */

static void lock_step_on(const char *topology)
{
    struct cluster c;
    cluster_init(&c, topology, true);
    assert_true(isnan(c.k[0].figures.xi) && isnan(c.k[0].figures.own));
    beat(&c);
    double q = sum_q(&c), worst = 0;
    uint64_t beats = c.k[0].n_beats;
    while (c.k[0].window == 0) {
        double off = sums_off(&c);
        worst = !(off <= worst) ? off : worst;
        assert_true(fabs(sum_q(&c) / q - 1) <= 1e-5);
        beat(&c);
        assert_true(c.round < 200);
    }
    assert_int_equal(c.round, beats + 1);  /* K exchanges, and the beat that begins. */
    assert_true(isnan(c.k[0].figures.xi)); /* The first window has no u yet. */
    assert_true(c.k[0].figures.own > 0);
    while (c.k[0].window == 1)
        beat(&c);
    print_message("%s: K = %d, sums off by %.2g, Xi %.4f, of the sketches "
                  "%.4f\n",
                  topology, (int)beats, worst, c.k[0].figures.xi, sketched_xi(&c));
    assert_true(worst <= 1e-5);
    assert_int_equal(c.k[0].figures.round, 0); /* When the window before began. */
    assert_int_equal(c.k[0].figures.own_round, beats);
    assert_int_equal(c.k[0].figures.own_window, 2);
    check_figures(&c, 0.03);
    double own2 = 0;
    for (uint32_t i = 0; i < N; i++) /* The peers' own distances make up Xi. */
        own2 += c.k[i].figures.own * c.k[i].figures.own / N;
    assert_true(fabs(sqrt(own2) / sketched_xi(&c) - 1) <= 0.03);
    cluster_close(&c);
}

static void test_lock_step(void **state)
{
    (void)state;
    lock_step_on("complete");
    lock_step_on("ring");
    lock_step_on("torus");
    lock_step_on("exponential");
}

/* Exchanges are put off at random, and committed at one end before the other:
 * once both have, the sums are what they were. */
static void test_aborted(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cluster c;
        struct rng r = rng_stream(rng_key(seed, RNG_TEST, 7, 0));
        cluster_init(&c, "ring", false);
        for (int t = 0; t < 12; t++) { /* Less than a window. */
            for (size_t s = 0; s < c.n_slots; s++)
                for (int end = 0; end < 2; end++)
                    if (c.slot[s].full && !c.slot[s].done[end] && rng_below(&r, 10) < 6)
                        commit(&c, &c.slot[s], end);
            for (uint32_t i = 0; i < N; i++)
                beat_one(&c, i);
            for (size_t s = 0; s < c.n_slots; s++)
                say(&c, &c.slot[s]);
            c.round++;
        }
        for (size_t s = 0; s < c.n_slots; s++)
            for (int end = 0; end < 2; end++)
                if (!c.slot[s].done[end])
                    commit(&c, &c.slot[s], end);
        double off = sums_off(&c);
        if (!(off <= 1e-5))
            fail_msg("seed %d: sums off by %g", (int)seed, off);
        cluster_close(&c);
    }
}

/* Peers that do a beat whenever they like, without lock step, find the same. */
static void test_own_pace(void **state)
{
    struct cluster c;
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 8, 0));
    (void)state;
    cluster_init(&c, "ring", false);
    for (int t = 0; t < 12000 && c.k[0].figures.own_window < 6; t++) {
        uint32_t i = (uint32_t)rng_below(&r, N);
        for (size_t s = 0; s < c.n_slots; s++)
            for (int end = 0; end < 2; end++)
                if (c.slot[s].full && !c.slot[s].done[end]
                    && (end == 0 ? c.slot[s].i : c.slot[s].j) == i)
                    commit(&c, &c.slot[s], end);
        beat_one(&c, i);
        for (size_t s = 0; s < c.n_slots; s++)
            if (c.slot[s].i == i || c.slot[s].j == i)
                say(&c, &c.slot[s]);
        c.round++;
    }
    assert_true(c.k[0].figures.own_window >= 6);
    check_figures(&c, 0.05);
    cluster_close(&c);
}

/* In lock step an edge that skips a beat costs the sums nothing; a peer all of
 * whose edges do costs them a little, since then its neighbours' momentum has
 * no opposite. The window after is right again. */
static void test_skipped_in_lock_step(void **state)
{
    struct cluster c;
    (void)state;
    cluster_init(&c, "ring", true);
    for (int t = 0; t < 6; t++) {
        c.slot[3].skips = t == 2;
        beat(&c);
    }
    assert_true(sums_off(&c) <= 1e-5);
    for (size_t s = 0; s < c.n_slots; s++)
        c.slot[s].skips = c.slot[s].i == 3 || c.slot[s].j == 3;
    beat(&c);
    for (size_t s = 0; s < c.n_slots; s++)
        c.slot[s].skips = false;
    double off = sums_off(&c);
    print_message("sums off by %.2g\n", off);
    assert_true(off > 1e-5 && off <= 0.2);
    uint64_t window = c.k[0].figures.own_window + 4;
    while (c.k[0].figures.own_window < window && c.round < 300)
        beat(&c);
    assert_true(sums_off(&c) <= 1e-5);
    check_figures(&c, 0.03);
    cluster_close(&c);
}

/* ---- who is late, or elsewhere ---- */

/* Runs until every peer has had `windows` more, and says how many beats. */
static uint64_t recover(struct cluster *c, uint64_t windows)
{
    uint64_t want[N], begin = c->round;
    for (uint32_t i = 0; i < N; i++)
        want[i] = c->k[i].figures.own_window + windows;
    for (uint32_t i = 0; i < N; i++)
        while (c->k[i].figures.own_window < want[i]) {
            beat(c);
            if (c->round > begin + 400)
                fail_msg("peer %u is stuck in window %u", i, c->k[i].window);
        }
    return c->round - begin;
}

/* A peer restarts and knows no window: it joins that of the others. */
static void late_joiner(const char *topology, bool lock_step)
{
    struct cluster c;
    cluster_init(&c, topology, lock_step);
    c.away[3] = true;
    for (int t = 0; t < 100; t++)
        beat(&c);
    assert_true(c.k[0].window > 2);
    sketch_close(&c.k[3]);
    open_peer(&c, 3);
    c.away[3] = false;
    uint64_t beats = recover(&c, 4);
    print_message("%s: four windows in %d beats, K = %d\n", topology, (int)beats,
                  (int)c.k[0].n_beats);
    for (uint32_t i = 0; i < N; i++) /* None is more than one ahead. */
        assert_true(c.k[i].window - c.k[0].window + 1 <= 2);
    check_figures(&c, 0.05);
    cluster_close(&c);
}

static void test_late_joiner(void **state)
{
    (void)state;
    late_joiner("ring", true);
    late_joiner("complete", true);
    late_joiner("ring", false);
}

/* Whatever window a peer believes in, all meet again. (24 bits of its number
 * travel.) */
static void test_mismatched_windows(void **state)
{
    static const uint32_t ahead[] = {1, 2, 1000, (1u << 24) - 1, UINT32_MAX};
    (void)state;
    for (size_t a = 0; a < sizeof ahead / sizeof ahead[0]; a++) {
        struct cluster c;
        cluster_init(&c, "ring", true);
        for (int t = 0; t < 30; t++)
            beat(&c);
        double own = c.k[5].figures.own;
        c.k[5].window += ahead[a];
        for (int t = 0; t < 12; t++) { /* A window left unmixed says nothing. */
            beat(&c);
            assert_true(fabs(c.k[5].figures.own / own - 1) <= 0.5);
        }
        (void)recover(&c, 5);
        for (uint32_t i = 0; i < N; i++)
            if (((c.k[i].window - c.k[0].window + 1) & 0xffffff) > 2)
                fail_msg("ahead by %u: peer %u is in window %u, peer 0 in %u", ahead[a], i,
                         c.k[i].window, c.k[0].window);
        check_figures(&c, 0.05);
        cluster_close(&c);
    }
}

/* All others have gone on before anything was mixed: so do we, but |s - m| = 0
 * is no distance. */
static void test_left_behind(void **state)
{
    struct sketch k;
    struct sketch_pair l, *pair = &l;
    float x[DIM];
    (void)state;
    fill(x, DIM, 4);
    assert_int_equal(sketch_init(&k, 1, DIM), 0);
    sketch_pair_init(&l);
    struct sketch_moment now = {.view = 1, .reach = 1, .pair = &pair, .n_pairs = 1};
    sketch_beat(&k, x, &now);
    assert_true(k.open && k.window == 0);
    l = (struct sketch_pair){.view = 1, .window = 0, .through = true};
    sketch_beat(&k, x, &now);
    assert_int_equal(k.window, 1);
    assert_true(isnan(k.figures.own) && k.figures.own_window == 0);
    sketch_close(&k);
}

/* The members change: all begin anew, and the old view's messages are dead. */
static void test_view_change(void **state)
{
    struct cluster c;
    (void)state;
    cluster_init(&c, "ring", true);
    for (int t = 0; t < 40; t++)
        beat(&c);
    c.view = UINT64_C(6) << VIEW;
    for (uint32_t i = 0; i < N; i += 2)
        beat_one(&c, i); /* Some hear of it earlier. */
    (void)recover(&c, 3);
    assert_true(c.k[0].view == c.view && c.k[7].view == c.view);
    assert_true(c.k[0].window >= 2 && c.k[0].window <= 4);
    check_figures(&c, 0.03);
    cluster_close(&c);
}

/* Nobody else: the mean is our own. */
static void test_alone(void **state)
{
    struct sketch k;
    float x[DIM];
    (void)state;
    fill(x, DIM, 4);
    assert_int_equal(sketch_init(&k, 1, DIM), 0);
    struct sketch_moment now = {.view = 1, .alone = true, .round = 7};
    sketch_beat(&k, x, &now);
    assert_true(k.figures.xi == 0 && k.figures.relative == 0 && k.figures.own == 0);
    assert_int_equal(k.figures.round, 7);
    struct sketch_pair l;
    struct sketch_message m;
    sketch_pair_init(&l);
    sketch_put(&k, &l, &m);
    assert_int_equal(m.tag, 0); /* No window is open. */
    assert_int_equal(m.n, 0);
    now.alone = false; /* Cut off: the figures stay as they were. */
    now.round = 8;
    sketch_beat(&k, x, &now);
    assert_int_equal(k.figures.round, 7);
    sketch_close(&k);
}

/* ---- messages ---- */

static void test_valid(void **state)
{
    struct cluster c;
    (void)state;
    cluster_init(&c, "ring", true);
    for (int t = 0; t < 4; t++) {
        beat(&c);
        const struct sketch *k = &c.k[0];
        const struct sketch_message good = c.slot[0].said[0];
        struct sketch_message m = good;
        assert_true(good.tag != 0 && sketch_valid(k, &good));
        assert_int_equal(good.bytes[0], t > 0); /* Raw first, then fine. */
        m.tag = 0;
        assert_false(sketch_valid(k, &m));
        m.n = 0;
        assert_true(sketch_valid(k, &m)); /* None at all. */
        m = good, m.n = 0;
        assert_false(sketch_valid(k, &m));
        for (size_t n = 0; n <= SKETCH_BYTES_MAX + 1; n++) {
            m = good, m.n = n;
            assert_int_equal(sketch_valid(k, &m), n == good.n);
        }
        m = good, m.n = SIZE_MAX;
        assert_false(sketch_valid(k, &m));
        for (int coding = 0; coding < 256; coding++) {
            m = good, m.bytes[0] = (uint8_t)coding;
            assert_int_equal(sketch_valid(k, &m), coding == good.bytes[0]);
        }
        m = good, m.u = (float)NAN;
        assert_false(sketch_valid(k, &m));
        m = good, m.q = (float)INFINITY;
        assert_false(sketch_valid(k, &m));
        m = good, m.u = -1; /* Averages may pass zero on their way. */
        assert_true(sketch_valid(k, &m));
        if (t > 0)
            continue;
        float nan = (float)NAN; /* Raw floats fill the end of the message. */
        m = good;
        memcpy(m.bytes + m.n - sizeof nan, &nan, sizeof nan);
        assert_false(sketch_valid(k, &m));
    }
    assert_true(sketch_nominal(&c.k[0]) < SKETCH_BYTES_MAX);
    cluster_close(&c);
}

/* Whatever a hostile neighbour's valid message says, what we send stays valid:
 * else the others would hang up on us. */
static void test_hostile_averages(void **state)
{
    struct cluster c;
    (void)state;
    cluster_init(&c, "ring", true);
    float huge[SKETCH_K];
    struct segment all = {.name = "x", .n = SKETCH_K, .rows = 1, .cols = SKETCH_K};
    struct compress *raw;
    assert_int_equal(compress_open(&raw, "none", &all, 1), 0);
    for (int t = 0; t < 300; t++) {
        for (size_t s = 0; s < c.n_slots; s++) {
            struct sketch_message *m = &c.slot[s].said[0];
            if (c.slot[s].i != 0 || m->tag == 0)
                continue;
            m->u = t % 7 < 3 ? 3.4e38f : -3.4e38f;
            m->q = t % 5 < 3 ? 3.4e38f : -3.4e38f;
            if (m->bytes[0] == 0 && t > 100) { /* A raw one, of huge numbers. */
                struct compress_stat stat;
                float zero[SKETCH_K] = {0};
                for (size_t e = 0; e < SKETCH_K; e++)
                    huge[e] = 1e18f;
                struct compress_input in = {.x = huge, .x_hat = zero};
                assert_int_equal(compress_encode(raw, &in, m->bytes + 1, &m->n, &stat), 0);
                m->n++;
            }
        }
        beat(&c); /* Asserts that every message put is valid. */
    }
    compress_close(raw);
    cluster_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_lock_step),
        cmocka_unit_test(test_aborted),
        cmocka_unit_test(test_own_pace),
        cmocka_unit_test(test_skipped_in_lock_step),
        cmocka_unit_test(test_late_joiner),
        cmocka_unit_test(test_mismatched_windows),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_view_change),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_hostile_averages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
