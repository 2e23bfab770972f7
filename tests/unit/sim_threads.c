/* tests/unit/sim_threads.c -- a simulated world must be the same on any number of threads: models,
 * figures and events, also if models are read or peers are killed while jobs run. */
#include "nn/math/thread_pool.h"
#include "sim_rig.h"

enum { N = 9, DIM = 257 };

struct seen
{
    /* `rig` must be the first member of the struct, because the `self` of the trainer points to
     * it. */
    struct rig rig;
    uint64_t figures;
    /* Number of jobs of each thread, written by that thread only. */
    uint32_t threads[THREAD_POOL_MAX];
};

/* Adds the figures of a peer to a hash, which depends on their order. */
static void measured(void *self, uint32_t peer)
{
    struct seen *s = self;
    struct node_progress p;
    sim_progress(s->rig.world, peer, &p);
    double v[] = {(double)peer,   (double)p.round, p.drift,          p.relative_drift,
                  p.own_distance, p.gamma,         (double)p.n_live, (double)p.exchanges};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        /* NaNs may differ in their sign, so they are replaced by a number. */
        v[i] = isnan(v[i]) ? -1 : v[i];
    s->figures = rng_at(s->figures ^ rng_hash(v, sizeof v), s->rig.config.n_peers);
}

static void works(void *self, uint32_t peer, uint32_t thread)
{
    struct seen *s = self;
    (void)peer;
    assert(thread < THREAD_POOL_MAX);
    s->threads[thread]++;
}

/* Settings of one simulated world. */
struct world
{
    const char *topology, *compress;
    uint32_t policy, overlap, local_steps;
    double step_spread, cut_rate;
    bool sessions;
    /* Number of simulated events after which a peer is killed. The peer returns 200 events later.
     * 0: never. */
    uint64_t kill_at;
    uint64_t look_every; /* Number of events between two comparisons of the models. 0: never. */
};

static void run_world(struct seen *s, const struct world *w, uint32_t threads)
{
    struct rig *r = &s->rig;
    struct consensus c;
    *s = (struct seen){.figures = 0};
    rig_init(r, N, DIM, w->topology, w->compress, 0);
    r->quiet = true;
    r->eta = 0.05f;
    r->noise = 0.5f;
    r->config.run.rounds = 40;
    r->config.run.policy = w->policy;
    r->config.run.overlap = w->overlap;
    r->config.run.local_steps = w->local_steps;
    r->config.step_spread = w->step_spread;
    r->config.cut_rate = w->cut_rate;
    r->config.sessions = w->sessions;
    r->config.measured = measured;
    r->config.works = works;
    r->config.threads = threads;
    rig_open(r);
    for (uint64_t k = 1; sim_events(r->world) < 200000 && sim_step(r->world); k++) {
        if (w->look_every > 0 && k % w->look_every == 0)
            sim_drift(r->world, &c);
        if (k == w->kill_at)
            sim_kill(r->world, 2);
        if (w->kill_at > 0 && k == w->kill_at + 200)
            assert_int_equal(sim_restart(r->world, 2), 0);
    }
    assert_non_null(sim_node(r->world, 2));
}

static void same(const struct world *w)
{
    struct seen one, many;
    run_world(&one, w, 1);
    for (uint32_t threads = 2; threads <= 4; threads += 2) {
        run_world(&many, w, threads);
        assert_int_equal(sim_events(many.rig.world), sim_events(one.rig.world));
        assert_int_equal(sim_trace(many.rig.world), sim_trace(one.rig.world));
        assert_int_equal(sim_now_us(many.rig.world), sim_now_us(one.rig.world));
        assert_int_equal(many.figures, one.figures);
        uint32_t jobs = 0;
        for (uint32_t i = 0; i < THREAD_POOL_MAX; i++) {
            assert_true(i < threads || many.threads[i] == 0);
            jobs += many.threads[i];
        }
        assert_int_equal(jobs, one.threads[0]);
        for (uint32_t i = 0; i < N; i++)
            assert_memory_equal(rig_model(&many.rig, i), rig_model(&one.rig, i),
                                DIM * sizeof(float));
        rig_close(&many.rig);
    }
    rig_close(&one.rig);
}

static void test_lock_step(void **state)
{
    (void)state;
    same(&(struct world){.topology = "torus:3x3", .compress = "qsgd:4", .local_steps = 1});
    same(&(struct world){
        .topology = "ring", .compress = "auto", .local_steps = 3, .step_spread = 1});
}

/* Without lock step, the models depend on the order in which messages arrive. */
static void test_without_lock_step(void **state)
{
    (void)state;
    same(&(struct world){.topology = "ring",
                         .compress = "topk:0.1",
                         .policy = RUN_ASYNC,
                         .local_steps = 2,
                         .step_spread = 3});
}

static void test_overlap(void **state)
{
    (void)state;
    same(&(struct world){
        .topology = "ring", .compress = "qsgd:4", .overlap = RUN_OVERLAP_ROUND, .local_steps = 2});
    same(&(struct world){
        .topology = "ring", .compress = "none", .overlap = RUN_OVERLAP_LAYER, .local_steps = 2});
}

static void test_faults(void **state)
{
    (void)state;
    same(&(struct world){
        .topology = "ring", .compress = "qsgd:4", .local_steps = 1, .cut_rate = 0.1});
    same(&(struct world){.topology = "ring",
                         .compress = "qsgd:4",
                         .local_steps = 1,
                         .sessions = true,
                         .kill_at = 700});
}

static void test_looks(void **state)
{
    (void)state;
    same(&(struct world){.topology = "ring",
                         .compress = "qsgd:4",
                         .local_steps = 1,
                         .step_spread = 1,
                         .look_every = 7});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_step), cmocka_unit_test(test_without_lock_step),
        cmocka_unit_test(test_overlap),   cmocka_unit_test(test_faults),
        cmocka_unit_test(test_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
