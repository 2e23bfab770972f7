/* tests/unit/sim_layers.c -- the option --overlap layer: fragments of a delta are sent while the
 * last local step is still in its backward pass.
 *
 * Models must equal those without overlap, bit for bit. Also tested: the time that is saved,
 * faults, and runs that send no fragments. */
#include "peer/node/inspect.h"
#include "sim_rig.h"

enum { LAYERS = 5, DIM = 500, PEERS = 6 };

static const size_t layer_end[LAYERS] = {20, 100, 110, 300, DIM};

static struct segment layers[LAYERS + 2];
static size_t n_segments;
static float scratch[DIM + 64];
static uint64_t n_calls, n_parts, n_runaways;
static uint64_t runs_away; /* Round in which the training of peer 0 diverges once. 0: never. */

struct watcher
{
    void (*done)(void *arg, size_t from);
    void *arg;
};

static struct watcher watcher[PEERS + 2];

static void watch(void *self, void (*done)(void *arg, size_t from), void *arg)
{
    const struct rig_peer *p = self;
    watcher[p->index] = (struct watcher){done, arg};
}

/* Makes local steps and writes the result to x layer by layer. An element is not final before it is
 * reported. */
static void layered_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                          struct trainer_report *report)
{
    const struct rig_peer *p = self;
    size_t n = rig_floats(p->rig);
    struct watcher w = watcher[p->index];
    memcpy(scratch, x, n * sizeof *x);
    rig_steps(self, scratch, round, n_steps, report);
    for (size_t i = LAYERS; i-- > 0;) {
        size_t from = layers[i].offset;
        memcpy(x + from, scratch + from, layers[i].n * sizeof *x);
        n_calls += w.done != NULL;
        if (w.done != NULL)
            w.done(w.arg, from);
    }
    memcpy(x + DIM, scratch + DIM, (n - DIM) * sizeof *x);
    watcher[p->index].done = NULL;
    report->loss = runs_away > 0 && round == runs_away && p->index == 0 ? 1e6 : 1;
}

static int layered_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                           char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->segments = layers;
    t->n_segments = n_segments;
    t->steps = layered_steps;
    t->watch = watch;
    return err;
}

static void one_byte_is_a_part(void *self, uint32_t peer, struct node_config *n)
{
    (void)self, (void)peer;
    n->part_least = 1;
}

static void count_parts(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct wire_batch batch;
    struct wire_message m;
    (void)self, (void)peer, (void)other;
    if (ev->type != NODE_RECV || !wire_read(ev->recv.bytes, ev->recv.len, &batch, &m)
        || m.type != WIRE_PART)
        return;
    n_parts++;
}

static void count_runaways(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self;
    n_runaways += peer == 0 && strstr(note->text, "training diverged") != NULL;
}

static void open_layers(struct rig *r, const char *topology, const char *compress,
                        enum run_overlap overlap)
{
    rig_init(r, PEERS, DIM, topology, compress, 0);
    rig_with_statistics(r, 3, 3, 1);
    n_calls = n_parts = n_runaways = 0;
    for (size_t i = 0; i < LAYERS; i++) {
        size_t from = i > 0 ? layer_end[i - 1] : 0, n = layer_end[i] - from;
        layers[i] = (struct segment){.name = "x",
                                     .offset = from,
                                     .n = n,
                                     .rows = 1,
                                     .cols = n,
                                     .n_dims = 1,
                                     .trained = true};
    }
    layers[LAYERS] = r->segment[1];
    layers[LAYERS + 1] = r->segment[2];
    n_segments = LAYERS + 2;
    r->eta = 0.05f;
    r->noise = 0.3f;
    r->config.make_trainer = layered_trainer;
    r->config.configure = one_byte_is_a_part;
    r->config.watch = count_parts;
    r->config.note = count_runaways;
    r->config.run.overlap = overlap;
    r->config.run.final_drift = 1e-3;
    r->config.step_us = 1000;
}

/* ---- equal models ---- */

static void same_models(const char *topology, const char *compress, uint32_t local_steps,
                        enum run_policy policy)
{
    static float model[2][PEERS][DIM + 6];
    uint64_t parts = 0, bytes[2] = {0, 0};
    static const enum run_overlap overlap[2] = {RUN_OVERLAP_NONE, RUN_OVERLAP_LAYER};
    for (size_t k = 0; k < 2; k++) {
        struct rig r;
        open_layers(&r, topology, compress, overlap[k]);
        r.config.run.local_steps = local_steps;
        r.config.run.policy = policy;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        for (uint32_t i = 0; i < PEERS; i++) {
            uint64_t sent, received;
            memcpy(model[k][i], rig_model(&r, i), sizeof model[k][i]);
            sim_totals(r.world, i, &sent, &received);
            bytes[k] += sent;
        }
        parts = n_parts;
        assert_int_equal(n_runaways, runs_away > 0);
        rig_close(&r);
    }
    print_message("%s %s: %llu parts; bytes %llu, in parts %llu\n", topology, compress,
                  (unsigned long long)parts, (unsigned long long)bytes[0],
                  (unsigned long long)bytes[1]);
    assert_true(parts > 100 * PEERS);
    for (uint32_t i = 0; i < PEERS; i++)
        if (memcmp(model[0][i], model[1][i], sizeof model[0][i]) != 0)
            fail_msg("%s %s: another model at peer %u", topology, compress, i);
}

/* If each layer is compressed by itself, sending fragments must not change a bit of the models. The
 * tested codecs are: one without state, one with random draws, one for matrices with memory, and a
 * list of rules, which encodes the layers in another order than that of the vector. */
static void parts_change_no_bit(void **state)
{
    (void)state;
    same_models("ring", "none,scope=layer", 1, RUN_SYNC);
    same_models("ring", "qsgd:4,scope=layer", 3, RUN_SYNC);
    same_models("exponential", "topk:0.1+qsgd:4,scope=layer", 1, RUN_SYNC);
    same_models("complete", "lowrank:1", 2, RUN_SYNC);
    same_models("ring", "sign,scope=layer;<50=fp16,scope=layer", 1, RUN_SYNC);
    same_models("base:1", "qsgd:8,scope=layer", 1, RUN_SYNC);
}

/* The local steps diverge, which is known only after all fragments were sent. The fragments must
 * not be used, and the delta must describe the model before the steps. */
static void a_runaway_is_sent_whole(void **state)
{
    (void)state;
    runs_away = 70;
    same_models("ring", "topk:0.1,scope=layer", 1, RUN_SYNC);
    same_models("ring", "none,scope=layer", 2, RUN_SYNC);
    runs_away = 0;
}

/* Without --overlap layer, no layer is reported and no fragment is sent. */
static void others_have_no_parts(void **state)
{
    (void)state;
    for (enum run_overlap overlap = RUN_OVERLAP_NONE; overlap <= RUN_OVERLAP_ROUND; overlap++) {
        struct rig r;
        open_layers(&r, "ring", "qsgd:4", overlap);
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        assert_int_equal(n_calls, 0);
        assert_int_equal(n_parts, 0);
        rig_close(&r);
    }
}

/* ---- time ---- */

/* Returns the simulated time of a round, in units of a local step. */
static double round_steps(enum run_overlap overlap, uint32_t local_steps, double bytes_per_s)
{
    enum { ROUNDS = 200, BEGIN = 10 };
    struct rig r;
    open_layers(&r, "ring", "none,scope=layer", overlap);
    r.config.sessions = true;
    r.config.bytes_per_s = bytes_per_s;
    r.config.run.rounds = ROUNDS;
    r.config.run.final_drift = 0;
    r.config.run.local_steps = local_steps;
    rig_open(&r);
    int64_t begun_us = 0;
    uint64_t n;
    do {
        if (!sim_step(r.world))
            fail_msg("the run ended before round %d", ROUNDS);
        n = rig_progress(&r, 0).round;
        if (n == BEGIN && begun_us == 0)
            begun_us = sim_now_us(r.world);
    } while (n < ROUNDS);
    double us = (double)(sim_now_us(r.world) - begun_us) / (ROUNDS - BEGIN);
    rig_close(&r);
    return us / (double)r.config.step_us;
}

/* With --overlap layer, a round must take about half a local step less than without overlap, for
 * any number of local steps. The reason is that the simulator reports the first fragments as ready
 * when the second half of the last local step begins. */
static void half_a_step_is_hidden(void **state)
{
    static const struct
    {
        uint32_t steps;
        double bytes_per_s;
    } rows[] = {{1, 4e6}, {4, 4e6}, {1, 1.5e6}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double whole = round_steps(RUN_OVERLAP_NONE, rows[i].steps, rows[i].bytes_per_s);
        double layer = round_steps(RUN_OVERLAP_LAYER, rows[i].steps, rows[i].bytes_per_s);
        print_message("%u steps, %g MB/s: a round takes %.2f, with --overlap layer %.2f\n",
                      rows[i].steps, rows[i].bytes_per_s / 1e6, whole, layer);
        if (!(whole - layer >= 0.35 && whole - layer <= 0.55))
            fail_msg("row %zu: %g against %g", i, layer, whole);
    }
}

/* ---- faults ---- */

static uint64_t seed_given(void)
{
    const char *given = getenv("SEED");
    return given != NULL ? strtoull(given, NULL, 10) : 1;
}

/* Sessions are lost between two fragments of a delta, or between the last fragment and the DELTA
 * message that completes it. Both ends or neither end must do an exchange, so that the sum of all
 * models equals the sum of the local updates. */
static void the_mean_stands(void **state)
{
    static const enum run_policy policy[] = {RUN_SYNC, RUN_ASYNC};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct rig r;
        open_layers(&r, "ring", "topk:0.1", RUN_OVERLAP_LAYER);
        r.config.seed = seed_given() + k;
        r.config.run.rounds = 400;
        r.config.run.policy = policy[k];
        r.config.latency_us = 2000;
        r.config.cut_rate = 0.1;
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-2);
        assert_true(n_parts > 500);
        double worst = 0;
        for (size_t j = 0; j < r.dim; j++) {
            double sum = 0;
            for (uint32_t i = 0; i < PEERS; i++)
                sum += (double)rig_model(&r, i)[j];
            worst = fmax(worst, fabs(sum - r.moved[j]));
        }
        print_message("SEED=%llu: %llu parts; the sum of the models is off by %.2g\n",
                      (unsigned long long)r.config.seed - k, (unsigned long long)n_parts, worst);
        assert_true(worst <= 1e-3);
        rig_close(&r);
    }
}

/* Sessions end and are opened again during the last step of a job. Layers that finish then must not
 * be sent over new sessions, because the other ends lack the first fragments. */
static void another_session_begins_anew(void **state)
{
    enum { RESETS = 80, STEP_US = 4000 * 1000 };
    struct rig r;
    (void)state;
    open_layers(&r, "ring", "qsgd:4", RUN_OVERLAP_LAYER);
    r.config.seed = seed_given();
    r.config.sessions = true;
    r.config.step_us = STEP_US;
    r.config.latency_us = 1000;
    r.config.run.rounds = RESETS;
    struct rng rng = rng_stream(rng_key(r.config.seed, RNG_TEST, RESETS, 1));
    rig_open(&r);
    for (int k = 1; k < RESETS; k++) {
        int64_t us = (int64_t)(STEP_US * ((double)k + rng_unit(&rng)));
        uint32_t a = (uint32_t)rng_below(&rng, PEERS);
        if (!sim_run_to(r.world, us))
            break;
        sim_reset(r.world, a, (a + 1) % PEERS, 0, 0);
    }
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    print_message("SEED=%llu: %llu parts\n", (unsigned long long)r.config.seed,
                  (unsigned long long)n_parts);
    assert_true(n_parts > 500);
    for (uint32_t i = 0; i < PEERS; i++) {
        assert_int_equal(rig_progress(&r, i).violations, 0);
        assert_int_equal(rig_progress(&r, i).resets, 0);
        assert_int_equal(rig_progress(&r, i).rounds_skipped, 0);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_change_no_bit),  cmocka_unit_test(a_runaway_is_sent_whole),
        cmocka_unit_test(others_have_no_parts), cmocka_unit_test(half_a_step_is_hidden),
        cmocka_unit_test(the_mean_stands),      cmocka_unit_test(another_session_begins_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
