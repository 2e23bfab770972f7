/* tests/unit/gossip_sketch.c -- tests the estimator of the consensus distance.
 *
 * Tested are the projection, drift windows (the rounds that give one estimate), tree aggregation
 * after a disturbance, and the rejection of invalid messages. */
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
    z[DIM - 1] = 2; /* One element of the model changes one bucket of the sketch. */
    sketch_project(&k, z, sz);
    assert_true(vec_norm2(sz, SKETCH_K) == 4);
    sketch_close(&k);
}

/* Reference for sketch_project(), element by element. Both must give the same bits. */
static void project_ref(const struct sketch *k, const float *x, float out[SKETCH_K])
{
    double sum[SKETCH_K] = {0};
    for (size_t i = 0; i < k->dim; i++) {
        uint64_t h = rng_at(k->key, i);
        sum[h % SKETCH_K] += h >> 63 ? (double)x[i] : -(double)x[i];
    }
    for (size_t i = 0; i < SKETCH_K; i++)
        out[i] = (float)sum[i];
}

static void test_reference(void **state)
{
    static const size_t sizes[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 255, 256, 257, 511, 1023};
    float x[1023], s[SKETCH_K], expected[SKETCH_K];
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sketch k;
        assert_int_equal(sketch_init(&k, 9 + i, sizes[i]), 0);
        fill(x, sizes[i], 4 + i);
        x[0] = -0.0f;
        sketch_project(&k, x, s);
        project_ref(&k, x, expected);
        assert_memory_equal(s, expected, sizeof s);
        sketch_close(&k);
    }
}

/* Over many seeds, the squared norm of a sketch has no bias and a relative rms error of
 * sqrt(2/k). */
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
    /* A drift window (the rounds that give one estimate) takes K exchanges, and one more step that
     * begins it. */
    assert_int_equal(c.round, beats + 1);
    /* The first drift window (the rounds that give one estimate) must give no estimate of the
     * consensus distance Xi. */
    assert_true(isnan(c.k[0].figures.xi));
    assert_true(c.k[0].figures.own > 0);
    while (c.k[0].window == 1)
        beat(&c);
    print_message("%s: K = %d, sums off by %.2g, Xi %.4f, of the sketches "
                  "%.4f\n",
                  topology, (int)beats, worst, c.k[0].figures.xi, sketched_xi(&c));
    assert_true(worst <= 1e-5);
    /* The estimate is for the round in which the previous drift window (the rounds that give one
     * estimate) began. */
    assert_int_equal(c.k[0].figures.round, 0);
    assert_int_equal(c.k[0].figures.own_round, beats);
    assert_int_equal(c.k[0].figures.own_window, 2);
    check_figures(&c, 0.03);
    double own2 = 0;
    /* Xi^2 is the mean of all peers' squared distances from the mean model. */
    for (uint32_t i = 0; i < N; i++)
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
    /* Star, tree and bottleneck graphs. On these, the distance of vertex 0 from the others says
     * little about the speed of averaging. */
    lock_step_on("edges:0-1,0-2,0-3,0-4,0-5,0-6,0-7");
    lock_step_on("edges:0-1,1-2,2-3,0-4,4-5,5-6,6-7");
    lock_step_on("edges:0-1,0-2,1-2,0-3,3-4,4-5,4-6,5-6,5-7,6-7");
}

/* Checks |mean|, the norm of the mean model by which distances are divided. Every coordinate of a
 * model is a random number plus `offset`. With a small offset the consensus distance is up to three
 * times |mean|, and |mean|^2 must not be computed as the small difference of two large numbers.
 * far: factor by which the model of peer 0 is longer. With a large factor, the squared distance of
 * the other peers' models from the mean is much smaller than the squared consensus distance. */
static void norm_of_mean(bool lock_step, double offset, float far, uint64_t key, double tolerance)
{
    struct cluster c;
    double relative;
    cluster_init(&c, "complete", lock_step);
    for (uint32_t i = 0; i < N; i++) {
        c.k[i].key = key;
        for (size_t d = 0; d < DIM; d++)
            c.x[i][d] = (c.x[i][d] - 3 + (float)offset) * (i == 0 ? far : 1);
    }
    for (int t = 0; t < 60; t++)
        beat(&c);
    check_figures(&c, 0.03);
    double exact = exact_xi(&c, &relative) / relative;
    for (uint32_t i = 0; i < N; i++) {
        const struct sketch_figures *f = &c.k[i].figures;
        if (!(fabs(f->xi / f->relative / exact - 1) <= tolerance)
            || !(fabs(f->own / f->own_relative / exact - 1) <= tolerance))
            fail_msg("offset %g, key %d, peer %u: |mean| %g and %g, exact %g", offset, (int)key, i,
                     f->xi / f->relative, f->own / f->own_relative, exact);
    }
    cluster_close(&c);
}

static void test_norm_of_mean(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        norm_of_mean(i % 2, 0.1 * (i / 2), 1, (uint64_t)i, 0.15);
        norm_of_mean(i % 2, 3, 1, (uint64_t)i, 0.02);
        norm_of_mean(i % 2, 3, 20, (uint64_t)i, 0.15);
    }
}

/* The first step of a drift window (the rounds that give one estimate) has no momentum, because no
 * step comes before it. The step mixes raw values, so that the result is the weighted average of
 * the neighbours' sketches, up to rounding. */
static void test_first_beat_is_plain(void **state)
{
    struct cluster c;
    (void)state;
    cluster_init(&c, "ring", true);
    beat(&c);
    beat(&c);
    for (uint32_t i = 0; i < N; i++)
        for (size_t e = 0; e < SKETCH_K; e++) {
            float m = c.k[i].s[e];
            for (size_t s = 0; s < c.n_slots; s++)
                if (c.slot[s].i == i || c.slot[s].j == i)
                    m += (float)weight(&c, &c.slot[s])
                         * (c.k[c.slot[s].i + c.slot[s].j - i].s[e] - c.k[i].s[e]);
            if (!(fabsf(c.k[i].at.m[e] - m) <= 1e-3f))
                fail_msg("peer %u: %g for %g", i, (double)c.k[i].at.m[e], (double)m);
        }
    cluster_close(&c);
}

/* The caller begins a drift window (the rounds that give one estimate) before the present one has
 * ended. The unfinished window must give no estimate. */
static void test_anew(void **state)
{
    struct cluster c;
    (void)state;
    cluster_init(&c, "ring", true);
    while (c.k[0].window == 0)
        beat(&c);
    beat(&c);
    struct sketch_figures before = c.k[0].figures;
    uint64_t begun = sketch_begun(&c.k[0], true);
    c.anew = true;
    beat(&c);
    c.anew = false;
    for (uint32_t i = 0; i < N; i++) {
        assert_true(c.k[i].began);
        assert_int_equal(c.k[i].round, c.round - 1);
        assert_int_equal(c.k[i].figures.own_window, before.own_window);
    }
    assert_true(isnan(c.k[0].figures.xi));
    while (c.k[0].window == 2)
        beat(&c);
    assert_true(c.k[0].figures.own_begun > begun);
    assert_int_equal(c.k[0].figures.own_round, before.own_round + c.k[0].n_beats + 2);
    /* An estimate of the consensus distance Xi averages distances that the window before has
     * measured. That window was not finished and has none, so there is no estimate. */
    assert_true(isnan(c.k[0].figures.xi));
    while (c.k[0].window == 3)
        beat(&c);
    check_figures(&c, 0.03);
    cluster_close(&c);
}

/* ---- not in step: by surveys ---- */

/* A missing round, a missing neighbour, changed members or a run without lock step must be noticed
 * at the next step. The peer is then disturbed: it stops averaging and takes part in tree
 * aggregation. */
static void test_disturbances(void **state)
{
    (void)state;
    enum { NOTHING, NO_LOCK_STEP, ROUND_SKIPPED, OTHER_MEMBERS, CUT_OFF, ALL };
    for (int what = 0; what < ALL; what++) {
        struct cluster c;
        cluster_init(&c, "ring", what != NO_LOCK_STEP);
        for (int t = 0; t < 4; t++)
            beat(&c);
        assert_int_equal(c.k[0].disturbed, what == NO_LOCK_STEP);
        if (what == ROUND_SKIPPED)
            c.round++;
        if (what == OTHER_MEMBERS)
            c.view = UINT64_C(6) << VIEW;
        for (uint32_t i = 1; i < N; i++)
            c.away[i] = what == CUT_OFF;
        beat(&c);
        for (uint32_t i = 0; i < N; i++)
            if (!c.away[i] && c.k[i].disturbed != (what != NOTHING))
                fail_msg("%d: peer %u", what, i);
        cluster_close(&c);
    }
}

/* Runs one step in which each commit is delayed with probability late/10, so that one end may
 * commit before the other. Sometimes resets an edge, so that a commit of one end never happens at
 * the other. */
static void lossy_beat(struct cluster *c, struct rng *r, uint64_t late)
{
    for (size_t s = 0; s < c->n_slots; s++)
        for (int end = 0; end < 2; end++)
            if (c->slot[s].full && !c->slot[s].done[end] && !is_away(c, &c->slot[s])
                && rng_below(r, 10) >= late)
                commit(c, &c->slot[s], end);
    for (uint32_t i = 0; i < N; i++)
        if (!c->away[i])
            beat_one(c, i);
    for (size_t s = 0; s < c->n_slots; s++) {
        if (late > 0 && rng_below(r, 30) == 0) {
            sketch_pair_reset(&c->slot[s].pair[0]);
            sketch_pair_reset(&c->slot[s].pair[1]);
            c->slot[s].full = false;
        }
        if (!is_away(c, &c->slot[s]))
            say(c, &c->slot[s]);
    }
    c->round++;
}

/* Runs steps until each peer has an estimate of a later round than the present one. */
static void recover(struct cluster *c, struct rng *r, uint64_t late)
{
    uint64_t begin = c->round;
    for (uint32_t i = 0; i < N; i++)
        while (isnan(c->k[i].figures.xi) || c->k[i].figures.round <= begin) {
            lossy_beat(c, r, late);
            if (c->round > begin + 2000)
                fail_msg("peer %u knows nothing after round %d", i, (int)begin);
        }
}

static void test_lossy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cluster c;
        struct rng r = rng_stream(rng_key(seed, RNG_TEST, 7, 0));
        print_message("seed %d\n", (int)seed);
        cluster_init(&c, seed % 2 ? "ring" : "torus", seed != 3);
        recover(&c, &r, 2 * seed - 1);
        check_figures(&c, 1e-4); /* Tree aggregation is exact for the sketches. */
        cluster_close(&c);
    }
}

/* An edge skips one exchange. All peers must soon notice that and stop averaging sketches. No
 * estimate until then may be wrong. */
static void test_disturbed(void **state)
{
    struct cluster c;
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 8, 0));
    double truth;
    (void)state;
    cluster_init(&c, "ring", true);
    truth = sketched_xi(&c);
    for (int t = 0; t < 60; t++) {
        /* An exchange is skipped in the middle of the second drift window, which is the first that
         * gives an estimate. */
        c.slot[3].skips = t == 13;
        beat(&c);
        for (uint32_t i = 0; i < N; i++)
            if (!isnan(c.k[i].figures.xi) && !(fabs(c.k[i].figures.xi / truth - 1) <= 0.03))
                fail_msg("peer %u: %g for %g", i, c.k[i].figures.xi, truth);
        if (t == 13 + 5)
            for (uint32_t i = 0; i < N; i++)
                assert_true(c.k[i].disturbed);
    }
    recover(&c, &r, 0);
    check_figures(&c, 1e-4);
    cluster_close(&c);
}

/* Peer 3 is away for 100 steps and restarts without any state. Its neighbours tell it that the
 * cluster uses tree aggregation. All estimates must become right again. */
static void late_joiner(const char *topology, bool lock_step)
{
    struct cluster c;
    struct rng r = rng_stream(rng_key(2, RNG_TEST, 8, 0));
    cluster_init(&c, topology, lock_step);
    c.away[3] = true;
    for (int t = 0; t < 100; t++)
        beat(&c);
    sketch_close(&c.k[3]);
    open_peer(&c, 3);
    c.away[3] = false;
    recover(&c, &r, 0);
    check_figures(&c, 1e-4);
    cluster_close(&c);
}

static void test_late_joiner(void **state)
{
    (void)state;
    late_joiner("ring", true);
    late_joiner("complete", true);
    late_joiner("ring", false);
}

/* The set of members changes. Messages with the old set must be ignored, whenever they arrive. */
static void test_view_change(void **state)
{
    struct cluster c;
    struct rng r = rng_stream(rng_key(3, RNG_TEST, 8, 0));
    (void)state;
    cluster_init(&c, "ring", true);
    for (int t = 0; t < 40; t++)
        beat(&c);
    c.view = UINT64_C(6) << VIEW;
    c.built = 2;
    for (uint32_t i = 0; i < N; i += 2)
        /* Peers with even numbers see the change of members one step before the other peers. */
        beat_one(&c, i);
    for (size_t s = 0; s < c.n_slots; s++)
        place_pairs(&c, &c.slot[s]);
    recover(&c, &r, 0);
    check_figures(&c, 1e-4);
    cluster_close(&c);
}

/* A single peer is its own mean, so its distance from the mean is 0. A consensus distance is not
 * measured. */
static void test_alone(void **state)
{
    struct sketch k;
    float x[DIM];
    (void)state;
    fill(x, DIM, 4);
    assert_int_equal(sketch_init(&k, 1, DIM), 0);
    struct sketch_moment now = {
        .view = 1, .place = {.n = 1, .lock_step = true}, .alone = true, .round = 7};
    sketch_beat(&k, x, &now);
    assert_true(isnan(k.figures.xi) && isnan(k.figures.relative) && k.figures.own == 0);
    assert_int_equal(k.figures.round, 7);
    struct sketch_pair l;
    struct sketch_message m;
    sketch_pair_init(&l);
    sketch_put(&k, &l, &m);
    assert_int_equal(m.tag, 0); /* A single peer sends no sketch. */
    assert_int_equal(m.n, 0);
    /* A peer that now has neighbours, but has done no exchange, keeps its last estimate. */
    now.alone = false;
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
        /* The first sketch of a drift window (the rounds that give one estimate) consists of raw
         * floats. Later ones are 4-bit differences. */
        assert_int_equal(good.bytes[0], t > 0);
        m.tag = 0;
        assert_false(sketch_valid(k, &m));
        m.n = 0;
        assert_true(sketch_valid(k, &m)); /* A message without a sketch is valid. */
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
            bool same = coding == good.bytes[0];
            bool word = good.bytes[0] == 0 && (coding == 3 || coding == 4 || coding == 5);
            /* Codings 3 to 5 mark messages of tree aggregation. Like coding 0, they contain raw
             * floats. */
            assert_int_equal(sketch_valid(k, &m), same || word);
        }
        m = good, m.u = (float)NAN;
        assert_false(sketch_valid(k, &m));
        m = good, m.q = (float)INFINITY;
        assert_false(sketch_valid(k, &m));
        /* The average u of squared distances may be negative before it converges. */
        m = good, m.u = -1;
        assert_true(sketch_valid(k, &m));
        if (t > 0)
            continue;
        /* The message contains a raw sketch. The test changes its last float to NaN. */
        float nan = (float)NAN;
        m = good;
        memcpy(m.bytes + m.n - sizeof nan, &nan, sizeof nan);
        assert_false(sketch_valid(k, &m));
    }
    assert_true(sketch_nominal(&c.k[0]) < SKETCH_BYTES_MAX);
    cluster_close(&c);
}

/* Peer 0 sends valid messages with absurd values. The messages of its neighbours must stay valid,
 * because otherwise other peers would end their sessions with these neighbours. */
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
            const struct sketch_message said = *m;
            if (c.slot[s].i != 0 || m->tag == 0)
                continue;
            m->u = t % 7 < 3 ? 3.4e38f : -3.4e38f;
            m->q = t % 5 < 3 ? 3.4e38f : -3.4e38f;
            bool raw_one = m->bytes[0] == 0 || m->bytes[0] == 3;
            if (raw_one && t > 100) { /* Replaces the sketch by one with huge elements. */
                struct compress_stat stat;
                float zero[SKETCH_K] = {0};
                for (size_t e = 0; e < SKETCH_K; e++)
                    huge[e] = 1e18f;
                struct compress_input in = {.x = huge, .x_hat = zero};
                assert_int_equal(compress_encode(raw, &in, m->bytes + 1, &m->n, &stat), 0);
                m->n++;
            }
            if (!sketch_valid(&c.k[0], m))
                /* Restores the original message, because a neighbour would refuse the changed
                 * one. */
                *m = said;
        }
        beat(&c); /* beat() asserts that each new message is valid. */
        for (size_t i = 1; i < N; i++) {
            /* The peers ignore absurd values, so their averages still describe the real models. */
            double n2 = vec_norm2(c.x[i], DIM);
            assert_true(fabs(c.k[i].at.u) <= 1e3 * n2 && c.k[i].at.q <= 1e3 * n2);
        }
    }
    compress_close(raw);
    cluster_close(&c);
}

/* The estimated consensus distance Xi of n peers must be wrong if the squared distance of this
 * peer's own model from the mean exceeds 2 n Xi^2. Such an estimate must not be published. */
static void test_too_small_a_drift(void **state)
{
    struct cluster c;
    size_t n_none = 0;
    (void)state;
    cluster_init(&c, "ring", true);
    for (int t = 0; t < 100; t++) {
        beat(&c);
        for (size_t i = 0; i < N; i++) {
            const struct sketch_figures *f = &c.k[i].figures;
            c.k[i].at.u = c.k[i].before[0].u = c.k[i].before[1].u = -1e6;
            n_none += f->own_window > 2 && isnan(f->xi);
            assert_false(f->xi == 0 && f->own > 0);
        }
    }
    assert_true(n_none > 0);
    cluster_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_lock_step),
        cmocka_unit_test(test_norm_of_mean),
        cmocka_unit_test(test_first_beat_is_plain),
        cmocka_unit_test(test_anew),
        cmocka_unit_test(test_disturbances),
        cmocka_unit_test(test_lossy),
        cmocka_unit_test(test_disturbed),
        cmocka_unit_test(test_late_joiner),
        cmocka_unit_test(test_view_change),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_hostile_averages),
        cmocka_unit_test(test_too_small_a_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
