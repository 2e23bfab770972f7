/* tests/unit/gossip_mixer.c -- tests the mixer `average`, which averages compressed model updates.
 *
 * Tested are agreement with the textbook algorithm in lock step, that no update is lost in any
 * order of events, the momentum masking of DGC, and the consensus phase. */
#define WORLD_MOST 8
#include "gossip_choco_world.h"

#include "nn/train/optimiser.h"

static struct world w; /* Static, because struct world is too large for a stack. */

static void open_average(uint32_t n, const char *spec, bool error_feedback)
{
    world_open(
        &w, &(struct world_how){
                .n = n, .spec = spec, .mixer = &mixer_average, .error_feedback = error_feedback});
}

/* ---- the table ---- */

static void test_table(void **state)
{
    (void)state;
    assert_string_equal(mixer_all[0]->name, "choco"); /* The default mixer is choco. */
    assert_ptr_equal(mixer_all[1], &mixer_average);
    assert_false(mixer_all[0]->updates);
    assert_string_equal(mixer_all[2]->name, "dpsgd");
    assert_true(mixer_all[2]->whole && !mixer_all[2]->updates);
    for (size_t i = 0; mixer_all[i] != NULL; i++) {
        const struct mixer *m = mixer_all[i];
        assert_true(m->name && m->open && m->close && m->plan);
        assert_true(m->valid && m->apply && m->mix && m->encode);
    }
}

/* ---- in step ---- */

/* Peer i minimises a quadratic with its minimum at centre(i) and second derivatives from 1/4 to
 * 1. */
static float centre(uint32_t i, size_t k)
{
    return 2 * rng_unit_at(rng_key(i, RNG_TEST, 5, 0), k) - 1;
}

static void descend(uint32_t i, float *x)
{
    for (size_t k = 0; k < DIM; k++)
        x[k] -= 0.1f * (0.25f + 0.75f * (float)k / DIM) * (x[k] - centre(i, k));
}

static float seen[MOST][DIM]; /* x of each peer after mixing and before its local step. */

static void local_quadratic(struct world *world, uint32_t i, float *x)
{
    (void)world;
    memcpy(seen[i], x, sizeof seen[i]);
    descend(i, x);
}

/* The algorithm of Stich, Cordonnier, Jaggi 2018 in its parallel form: one common x, and one error
 * memory e per peer. */
struct textbook
{
    struct compress *q;
    bool memory;
    double x[DIM], e[MOST][DIM];
};

static void textbook_round(struct textbook *t, uint64_t round)
{
    double sum[DIM] = {0};
    uint8_t *msg = malloc(compress_bound(t->q));
    assert_non_null(msg);
    for (uint32_t i = 0; i < w.n; i++) {
        float x[DIM], p[DIM], zero[DIM] = {0}, c[DIM] = {0};
        size_t len;
        struct compress_stat stat;
        for (size_t k = 0; k < DIM; k++)
            x[k] = (float)t->x[k];
        descend(i, x);
        for (size_t k = 0; k < DIM; k++)
            p[k] = (float)(t->e[i][k] + ((double)x[k] - t->x[k]));
        /* Draws random numbers as gossip/mixers/job.c does, from the key, the round and turn 0. */
        struct compress_input in = {
            .draw = rng_at(rng_at(i, round), 0), .round = round, .x = p, .x_hat = zero};
        assert_int_equal(compress_encode(t->q, &in, msg, &len, &stat), 0);
        compress_apply(t->q, msg, len, c);
        for (size_t k = 0; k < DIM; k++) {
            sum[k] += (double)c[k];
            t->e[i][k] = t->memory ? (double)p[k] - (double)c[k] : 0;
        }
    }
    for (size_t k = 0; k < DIM; k++)
        t->x[k] += sum[k] / w.n;
    free(msg);
}

static double off_textbook(const struct textbook *t)
{
    double worst = 0;
    for (uint32_t i = 0; i < w.n; i++)
        for (size_t k = 0; k < DIM; k++) {
            double d = fabs((double)seen[i][k] - t->x[k]);
            if (!(d <= worst))
                worst = d;
        }
    return worst;
}

/* Runs the mixer and the textbook algorithm for 50 rounds and compares them. Returns |x - x*|^2 at
 * the end, where x* minimises the mean of all quadratics. */
static double as_textbook(uint32_t n, const char *spec, double tolerance, bool memory)
{
    struct textbook t = {.memory = memory};
    char canonical[COMPRESS_SPEC_MAX], error[COMPRESS_ERROR_MAX];
    assert_int_equal(compress_canonical(spec, canonical, error), 0);
    assert_int_equal(compress_open(&t.q, canonical, segments, 2), 0);
    open_average(n, spec, memory);
    w.local = local_quadratic;
    for (size_t k = 0; k < DIM; k++)
        t.x[k] = (double)w.peer[0].c.x[k];
    for (uint64_t round = 1; round <= 50; round++) {
        beat(&w);
        /* Compares each x after mixing, before the local step of this round, with the textbook's
         * x. */
        double off = off_textbook(&t);
        if (!(off <= tolerance))
            fail_msg("%u peers, %s, memory %d, round %d: off by %g", n, spec, memory, (int)round,
                     off);
        textbook_round(&t, round);
        check_replicas(&w);
    }
    double left = 0;
    for (size_t k = 0; k < DIM; k++) {
        double best = 0;
        for (uint32_t i = 0; i < n; i++)
            best += (double)centre(i, k) / n;
        left += (t.x[k] - best) * (t.x[k] - best);
    }
    compress_close(t.q);
    drain(&w);
    check_mean(&w, 1e-4);
    world_close(&w);
    return left;
}

static void test_textbook(void **state)
{
    static const struct
    {
        const char *spec;
        double tolerance; /* Rounding may move a value to the next level of a quantiser. */
    } row[] = {{"none", 1e-5}, {"topk:0.05", 1e-5}, {"randk:0.1", 1e-5}, {"qsgd:4", 0.02}};
    (void)state;
    for (size_t s = 0; s < sizeof row / sizeof row[0]; s++)
        for (uint32_t n = 4; n <= 8; n += 2) {
            double with = as_textbook(n, row[s].spec, row[s].tolerance, true);
            double without = as_textbook(n, row[s].spec, row[s].tolerance, false);
            print_message("%u peers, %-16s |x - x*|^2 %8.3g with memory, "
                          "%8.3g without\n",
                          n, row[s].spec, with, without);
        }
}

/* ---- sums of sent updates ---- */

/* told[i]: sum of the updates that peer i has sent. done[i]: sum of its local updates. */
static double told[MOST][DIM], done[MOST][DIM];

static void local_noise(struct world *world, uint32_t i, float *x)
{
    for (size_t k = 0; k < DIM; k++) {
        float was = x[k];
        x[k] += 0.1f * (float)rng_normal(&world->rng);
        done[i][k] += (double)x[k] - (double)was;
    }
}

static void sum_told(struct world *world, uint32_t i)
{
    const float *sent = mixing_sent(&world->peer[i].c);
    for (size_t k = 0; k < DIM && sent != NULL; k++)
        told[i][k] += (double)sent[k];
}

/* For each peer, the sum of all updates sent, plus the memory of unsent updates, equals the sum
 * of its local updates. */
static void test_nothing_is_lost(void **state)
{
    static const char *const specs[] = {"topk:0.02", "randk:0.05", "sign:64", "qsgd:3"};
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        open_average(4, specs[s], true);
        memset(told, 0, sizeof told);
        memset(done, 0, sizeof done);
        w.local = local_noise;
        w.encoded = sum_told;
        for (int t = 0; t < 300; t++)
            beat(&w);
        double e2 = 0, d2 = 0;
        for (uint32_t i = 0; i < w.n; i++) {
            const struct mixing *c = &w.peer[i].c;
            for (size_t k = 0; k < DIM; k++) {
                double e = told[i][k] + (double)average_withheld(c)[k] - done[i][k];
                e2 += e * e;
                d2 += done[i][k] * done[i][k];
            }
        }
        if (!(sqrt(e2 / d2) <= 1e-5))
            fail_msg("%s: %g of all updates is missing", specs[s], sqrt(e2 / d2));
        check_mean(&w, 1e-3);
        /* In lock step all edges share one memory of unsent updates (error feedback). At this time
         * the last delta is encoded but not committed, so the memory still contains it. Minus this
         * delta, the memory must equal average_withheld(), the part of the updates that x does not
         * contain. */
        const struct replica *h = w.peer[0].e[1].a;
        assert_int_equal(distinct_replicas(&w, 0), 1);
        struct packet *p = w.peer[0].e[1].cur.payload;
        float memory[DIM], sent[DIM] = {0};
        compress_apply(w.peer[0].c.codec[DELTA_RUN], p->bytes, p->len, sent);
        for (size_t k = 0; k < DIM; k++)
            memory[k] = h->memory[k] - sent[k];
        assert_memory_equal(memory, average_withheld(&w.peer[0].c), sizeof memory);
        world_close(&w);
    }
}

/* Without error feedback, the mean of the models moves only by the parts of updates that are
 * sent. */
static void test_without_memory(void **state)
{
    (void)state;
    open_average(4, "topk:0.02", false);
    w.step = 0.1f;
    for (int t = 0; t < 100; t++)
        beat(&w);
    assert_null(average_withheld(&w.peer[0].c));
    assert_null(w.peer[0].e[1].a->memory);
    drain(&w);
    check_mean(&w, 1e-4);
    world_close(&w);
}

/* ---- DGC: Lin et al. 2018, sections 3.1 and 3.2 ---- */

static float velocity[MOST][DIM];
static bool touched[MOST][DIM];

static void local_momentum(struct world *world, uint32_t i, float *x)
{
    for (size_t k = 0; k < DIM; k++) {
        float was = x[k];
        velocity[i][k] = 0.9f * velocity[i][k] + (float)rng_normal(&world->rng);
        x[k] -= 0.01f * velocity[i][k];
        done[i][k] += (double)x[k] - (double)was;
    }
}

static void mask(struct world *world, uint32_t i)
{
    const struct mixing *c = &world->peer[i].c;
    const float *sent = mixing_sent(c);
    size_t n = 0;
    assert_non_null(sent);
    optimiser_forget(velocity[i], sent, DIM);
    for (size_t k = 0; k < DIM; k++) {
        touched[i][k] |= sent[k] != 0;
        n += sent[k] != 0;
        /* If a value is sent, its velocity and its entry in the memory of unsent updates must be
         * 0. */
        if (sent[k] != 0)
            assert_true(velocity[i][k] == 0 && average_withheld(c)[k] == 0);
        /* If a value was never sent, its unsent rest is the sum of all its updates. */
        else if (!touched[i][k])
            assert_true(fabs((double)average_withheld(c)[k] - done[i][k]) <= 1e-5);
    }
    assert_int_equal(n, 7); /* The codec sends 2 % of 333 values, rounded up. */
}

static void test_dgc(void **state)
{
    (void)state;
    memset(velocity, 0, sizeof velocity);
    memset(touched, 0, sizeof touched);
    memset(done, 0, sizeof done);
    open_average(4, "topk:0.02", true);
    w.local = local_momentum;
    w.encoded = mask;
    for (int t = 0; t < 40; t++)
        beat(&w);
    size_t left = 0;
    for (size_t k = 0; k < DIM; k++)
        left += !touched[0][k];
    /* Some values must have been sent, and some must never have been sent. */
    assert_in_range(left, 1, DIM - 100);
    world_close(&w);
}

/* ---- out of step ---- */

static double largest_gap(void)
{
    double worst = 0;
    for (uint32_t i = 1; i < w.n; i++)
        for (size_t k = 0; k < DIM; k++) {
            double d = fabs((double)w.peer[i].c.x[k] - (double)w.peer[0].c.x[k]);
            if (!(d <= worst))
                worst = d;
        }
    return worst;
}

/* An edge that missed rounds gets the missed updates later. The models must then be equal again,
 * and contain all updates. */
static void test_catches_up(void **state)
{
    (void)state;
    open_average(4, "topk:0.1", true);
    w.step = 0.1f;
    for (int t = 0; t < 5; t++)
        beat(&w);
    hold(&w, 0, 3, true);
    for (int t = 0; t < 10; t++)
        beat(&w);
    assert_int_equal(distinct_replicas(&w, 0), 2);
    assert_true(largest_gap() > 0.1);
    hold(&w, 0, 3, false);
    for (int t = 0; t < 10; t++) {
        beat(&w);
        check_replicas(&w);
    }
    w.step = 0;
    /* Rounds without local steps empty the memories of unsent updates. */
    for (int t = 0; t < 60; t++)
        beat(&w);
    drain(&w);
    double gap = largest_gap();
    if (!(gap <= 1e-5))
        fail_msg("models differ by %g", gap);
    check_mean(&w, 1e-4);
    world_close(&w);
}

/* A peer without open edges applies its own updates and no others. */
static void test_alone(void **state)
{
    (void)state;
    open_average(2, "topk:0.02", true);
    w.step = 0.1f;
    for (int t = 0; t < 5; t++)
        beat(&w);
    float withheld[DIM], was[DIM];
    struct peer *p = &w.peer[0];
    hold(&w, 0, 1, true);
    /* Deltas that arrived before the edge stopped delivering messages are still committed in
     * this step. After it, both ends of the edge wait. */
    beat(&w);
    memcpy(withheld, average_withheld(&p->c), sizeof withheld);
    for (int t = 0; t < 3; t++) {
        memcpy(was, p->c.x, sizeof was);
        beat(&w);
        assert_null(mixing_sent(&p->c));
        /* The model x of a peer without open edges moves by the whole local update. */
        assert_true(vec_dist2(was, p->c.x, DIM) > 0.5 * 0.01 * DIM);
        assert_memory_equal(withheld, average_withheld(&p->c), sizeof withheld);
    }
    hold(&w, 0, 1, false);
    for (int t = 0; t < 20; t++)
        beat(&w);
    drain(&w);
    check_replicas(&w);
    check_mean(&w, 1e-4);
    world_close(&w);
}

/* After a reset of an edge, its replicas a and b start at x0 again. The memory of unsent updates is
 * kept. Updates that were sent before the reset are not sent again. */
static void test_reset(void **state)
{
    (void)state;
    open_average(4, "topk:0.1", true);
    w.step = 0.1f;
    for (int t = 0; t < 60; t++)
        beat(&w);
    struct peer *p = &w.peer[0];
    float memory[DIM];
    memcpy(memory, average_withheld(&p->c), sizeof memory);
    double history = vec_dist2(p->c.x, p->c.x0, DIM);
    agree(&w, 0, 3, true);
    w.step = 0;
    job_start(&w, 0);
    assert_memory_equal(p->e[3].a->v, p->c.x0, sizeof memory);
    assert_memory_equal(p->e[3].a->memory, memory, sizeof memory);
    job_finish(&w, 0);
    double sent = (double)p->e[3].cur.head.x2;
    if (!(sent <= 1.1 * vec_norm2(memory, DIM) && sent < 0.5 * history))
        fail_msg("sends %g, of %g ever", sent, history);
    for (int t = 0; t < 60; t++)
        beat(&w);
    check_replicas(&w);
    /* The reset lost one exchange, so the models may differ by one local update. */
    double gap = largest_gap();
    if (!(gap <= 1))
        fail_msg("models differ by %g", gap);
    drain(&w);
    world_close(&w);
}

/* ---- any order ---- */

static void random_run(uint64_t seed, const char *spec, bool memory, bool resets)
{
    open_average(4, spec, memory);
    w.rng = rng_stream(rng_key(seed, RNG_TEST, 6, 0));
    w.step = 0.01f;
    random_events(&w, resets);
    check_replicas(&w);
    if (!resets)
        check_mean(&w, 1e-3);
    /* Each coordinate makes about 60 random steps of size 0.01, so it moves by far less than 1. */
    for (uint32_t i = 0; i < 4; i++) {
        double moved = sqrt(vec_dist2(w.peer[i].c.x, w.peer[i].c.x0, DIM) / DIM);
        if (!(moved <= 1))
            fail_msg("seed %d, %s: moved by %g", (int)seed, spec, moved);
    }
    world_close(&w);
}

static void test_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        print_message("seed %d\n", (int)seed);
        random_run(seed, "topk:0.1", true, false);
        random_run(seed, "topk:0.1", true, true);
        random_run(seed, "qsgd:4", false, false);
        random_run(seed, "sign:64", true, true);
    }
}

/* ---- the consensus phase is CHOCO's ---- */

static void test_last_phase(void **state)
{
    (void)state;
    open_average(4, "topk:0.05", true);
    w.step = 0.1f;
    hold(&w, 0, 2, true); /* Peers 0 and 2 exchange nothing for a while, so the models differ. */
    for (int t = 0; t < 20; t++)
        beat(&w);
    hold(&w, 0, 2, false);
    /* Peer 3 trains for three rounds longer than the others. On its edges, it therefore sends an
     * update while the other end sends a correction. */
    for (int t = 0; t < 6; t++) {
        for (uint32_t i = 0; i < 4; i++)
            w.peer[i].codec = i == 3 && t < 3 ? DELTA_RUN : DELTA_FINAL;
        beat(&w);
        check_replicas(&w);
        w.step = 0;
    }
    double first = spread(&w);
    for (int t = 0; t < 40; t++) {
        beat(&w);
        check_replicas(&w);
    }
    assert_null(mixing_sent(&w.peer[0].c));
    if (!(spread(&w) <= 1e-10 * DIM))
        fail_msg("%g of %g is left", spread(&w), first);
    drain(&w);
    check_mean(&w, 1e-4);
    world_close(&w);
}

/* ---- divergence ---- */

static float bad_value;

static void local_bad(struct world *world, uint32_t i, float *x)
{
    x[5] = i == 0 && world->peer[0].round == 3 ? bad_value : x[5] + 0.1f;
}

static void test_divergence(void **state)
{
    static const float values[] = {(float)NAN, (float)INFINITY, 3e38f};
    (void)state;
    for (size_t v = 0; v < 3; v++)
        for (int memory = 0; memory < 2; memory++) {
            open_average(2, "none", memory);
            bad_value = values[v];
            w.local = local_bad;
            beat(&w);
            beat(&w);
            job_start(&w, 0);
            mixing_finish(&w.peer[0].c);
            w.peer[0].works = false;
            assert_true(w.peer[0].c.diverged);
            assert_null(mixing_sent(&w.peer[0].c));
            assert_null(w.peer[0].e[1].cur.payload);
            world_close(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_textbook),
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_dgc),
        cmocka_unit_test(test_catches_up),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_last_phase),
        cmocka_unit_test(test_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
