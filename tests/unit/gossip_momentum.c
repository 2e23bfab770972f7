/* tests/unit/gossip_momentum.c -- tests exchanges of the consensus phase with momentum: both ends
 * move by opposite amounts in any order of events. */
#include "tests/unit/gossip_choco_world.h"
#include "tests/unit/gossip_seeds.h"

#include "nn/math/state.h"

/* Starts the consensus phase at all peers. Odd peers announce half of the given momentum, because
 * in a real run peers may announce different momentum for some time. */
static void settle(struct world *w, double momentum)
{
    for (uint32_t i = 0; i < w->n; i++) {
        w->peer[i].codec = DELTA_FINAL;
        w->peer[i].momentum = (uint32_t)(momentum * WIRE_MOMENTUM_ONE) / (1 + i % 2);
    }
}

static bool both_stand(struct world *w, uint32_t i, uint32_t j)
{
    const struct edge *x = edge_to(w, i, j), *y = edge_to(w, j, i);
    return i != j && x->round == y->round && !x->reset && !y->reset && !w->peer[i].works
           && !w->peer[j].works;
}

/* Checks that the velocities at both ends of an edge are opposite. Returns the number of edges with
 * a velocity. */
static uint32_t check_velocities(struct world *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            const float *v = edge_to(w, i, j)->velocity, *u = edge_to(w, j, i)->velocity;
            if (!both_stand(w, i, j))
                continue;
            for (size_t k = 0; k < DIM; k++)
                assert_true((v != NULL ? v[k] : 0) == -(u != NULL ? u[k] : 0));
            n += v != NULL && vec_norm2(v, DIM) > 0;
        }
    return n;
}

static void random_run(uint64_t seed, const char *spec, double momentum, bool resets)
{
    struct world w;
    world_init(&w, 4, spec, 0, 1);
    w.rng = rng_stream(rng_key(seed, RNG_TEST, 3, 0));
    settle(&w, momentum);
    random_events(&w, resets);
    check_replicas(&w);
    assert_true(check_velocities(&w) > 0);
    if (!resets)
        check_mean(&w, 1e-3);
    world_close(&w);
}

static void check_any_order(uint64_t seed)
{
    random_run(seed, "qsgd:4", 0.7, false);
    random_run(seed, "topk:0.1", 0.3, false);
    random_run(seed, "qsgd:4", 0.5, true);
}

static void test_any_order(void **state)
{
    (void)state;
    for_seeds(check_any_order, 6);
}

/* An exchange must use the smaller momentum of its two ends. If one end has no momentum, neither
 * end may use momentum. */
static void test_lesser_counts(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 2, "none", 1, 1);
    settle(&w, 0.5);
    beats(&w, 3);
    float was[DIM];
    struct edge *e = edge_to(&w, 0, 1);
    memcpy(was, e->velocity, sizeof was);
    double before = vec_norm2(was, DIM);
    beat(&w);
    /* The new velocity must be v / 4 + w (b - a), where v is the old velocity, w = 1/2 the mixing
     * weight, and a and b the replicas of this end's and of the other end's model. */
    for (size_t k = 0; k < DIM; k++) {
        float want = 0.25f * was[k] + 0.5f * (e->b[k] - e->a->v[k]);
        if (!(fabsf(e->velocity[k] - want) <= 1e-6f))
            fail_msg("%zu: %g, expected %g", k, (double)e->velocity[k], (double)want);
    }
    w.peer[1].momentum = 0;
    beats(&w, 3);
    for (size_t k = 0; k < DIM; k++) {
        float want = 0.5f * (e->b[k] - e->a->v[k]);
        if (!(fabsf(e->velocity[k] - want) <= 1e-6f))
            fail_msg("%zu: %g, expected %g", k, (double)e->velocity[k], (double)want);
    }
    assert_true(before > 0);
    world_end(&w);
}

/* Exchanges of training have no momentum, even if the peers announce one. */
static void test_training_has_none(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 3, "qsgd:4", 0, 1);
    settle(&w, 0.9);
    for (uint32_t i = 0; i < 3; i++)
        w.peer[i].codec = DELTA_RUN;
    beats(&w, 6);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t j = 0; j < 3; j++)
            assert_true(i == j || edge_to(&w, i, j)->velocity == NULL);
    world_close(&w);
}

/* A reset of an edge clears its velocity at both ends, because the other end may have lost its
 * own. */
static void test_reset(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 3, "qsgd:4", 0, 1);
    settle(&w, 0.9);
    beats(&w, 8);
    assert_int_equal(check_velocities(&w), 3);
    agree(&w, 0, 1, true);
    beat(&w);
    assert_true(vec_norm2(edge_to(&w, 0, 1)->velocity, DIM) == 0);
    assert_true(vec_norm2(edge_to(&w, 0, 2)->velocity, DIM) > 0);
    beats(&w, 8);
    world_end(&w);
}

/* ---- a restart ---- */

static void edges_of(struct world *w, uint32_t i, struct edge **e)
{
    for (uint32_t j = 0, n = 0; j < w->n; j++)
        if (j != i)
            e[n++] = edge_to(w, i, j);
}

static void pass_state(struct world *from, struct world *to, uint32_t i)
{
    struct edge *e[MOST], *f[MOST];
    struct state s = {0}, r = {0};
    edges_of(from, i, e);
    edges_of(to, i, f);
    state_write(&s);
    mixing_state(&from->peer[i].c, &s);
    mixing_edges_state(&from->peer[i].c, e, from->n - 1, &s);
    assert_int_equal(state_end(&s), 0);
    state_read(&r, s.bytes, s.n, s.section, s.n_sections);
    mixing_state(&to->peer[i].c, &r);
    mixing_edges_state(&to->peer[i].c, f, to->n - 1, &r);
    if (state_end(&r) != 0)
        fail_msg("%s", r.why);
    state_close(&s);
}

/* A checkpoint restores the velocity of each edge bit for bit. */
static void test_state(void **state)
{
    struct world w, u;
    (void)state;
    world_init(&w, 3, "qsgd:4", 0, 1);
    world_init(&u, 3, "qsgd:4", 0, 1);
    settle(&w, 0.9);
    beats(&w, 8);
    drain(&w);
    for (uint32_t i = 0; i < 3; i++)
        pass_state(&w, &u, i);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t j = 0; j < 3; j++)
            if (i != j)
                assert_memory_equal(edge_to(&u, i, j)->velocity, edge_to(&w, i, j)->velocity,
                                    DIM * sizeof(float));
    world_close(&w);
    world_close(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_any_order, print_seed),
        cmocka_unit_test(test_lesser_counts),
        cmocka_unit_test(test_training_has_none),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
