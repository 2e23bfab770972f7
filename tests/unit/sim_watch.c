/* tests/unit/sim_watch.c -- however many peers die at once, the others must notice soon and rebuild
 * the graph without them. This also holds if the sessions of the dead peers do not end but fall
 * silent. No live peer may be taken for dead. */
#include "sim_rig.h"

#include "peer/node/state.h"

enum { SECOND = 1000 * 1000, SOON_US = 10 * SECOND };

static void rig_cluster(struct rig *r, uint32_t n, const char *topology)
{
    rig_init(r, n, 50, topology, "topk:0.1", 0);
    r->eta = 0.05f;
    r->config.sessions = true;
    r->config.step_us = 200 * 1000;
    r->config.run.rounds = 1000;
    rig_open(r);
}

/* Returns the number of open edges of a live peer, or -1 if the peer's graph does not have n_live
 * members. */
static int edges_open_of(const struct rig *r, uint32_t peer, uint32_t n_live)
{
    const struct node *n = sim_node(r->world, peer);
    size_t self;
    static uint32_t at[WIRE_MEMBERS_MAX];
    return members_vertices(n->env.members, at, &self) == n_live ? (int)edges_count_open(n->edges)
                                                                 : -1;
}

/* Returns whether each live peer knows n_live members and has exactly two open edges, as in a
 * closed ring of these members. */
static bool repaired(const struct rig *r, uint32_t n_live)
{
    for (uint32_t i = 0; i < r->config.n_peers; i++)
        if (sim_node(r->world, i) != NULL && edges_open_of(r, i, n_live) != 2)
            return false;
    return true;
}

/* Counts the cases in which a live peer regards another live peer as suspect or dead. */
static uint32_t n_accused_falsely(const struct rig *r)
{
    uint32_t count = 0, n = r->config.n_peers;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n && sim_node(r->world, i) != NULL; k++) {
            const struct members *m = sim_node(r->world, i)->env.members;
            if (sim_node(r->world, k) != NULL)
                count += members_find(m, sim_id(r->world, k))->state != MEMBER_ALIVE;
        }
    return count;
}

/* Peers 1 to n_dead, which are neighbours on the ring, die at once. The graph must be repaired
 * within SOON_US. */
static void deaths(uint32_t n, uint32_t n_dead, bool silent)
{
    struct rig r;
    rig_cluster(&r, n, "ring");
    sim_run_to(r.world, 10 * SECOND);
    assert_true(repaired(&r, n));
    for (uint32_t i = 1; i <= n_dead; i++)
        if (silent)
            sim_power_off(r.world, i);
        else
            sim_kill(r.world, i);
    int64_t t = 10 * SECOND;
    while (!repaired(&r, n - n_dead) && t < 60 * SECOND) {
        sim_run_to(r.world, t += SECOND / 10);
        assert_int_equal(n_accused_falsely(&r), 0);
    }
    fprintf(stderr, "%u of %u %s: repaired after %.1f s\n", n_dead, n,
            silent ? "fell silent" : "died", (double)(t - 10 * SECOND) * 1e-6);
    assert_true(t - 10 * SECOND <= SOON_US);
    rig_close(&r);
}

static void test_many_deaths(void **state)
{
    (void)state;
    deaths(16, 1, false);
    deaths(16, 10, false);
    deaths(64, 32, false);
    deaths(64, 60, false);
}

static void test_silent_deaths(void **state)
{
    (void)state;
    deaths(16, 1, true);
    deaths(16, 10, true);
    deaths(64, 32, true);
    deaths(64, 48, true);
    deaths(64, 60, true);
}

/* Only paths between pairs of peers are cut: between 2 and 3 in both directions, and from 5 to 6. A
 * peer must ask others before it accuses a peer that the others still hear. */
static void test_asks_before_it_accuses(void **state)
{
    struct rig r;
    (void)state;
    rig_cluster(&r, 8, "ring");
    sim_run_to(r.world, 10 * SECOND);
    sim_cut(r.world, 2, 3, true);
    sim_cut(r.world, 3, 2, true);
    /* Only one direction is cut: messages from peer 6 to peer 5 still arrive. */
    sim_cut(r.world, 5, 6, true);
    for (int64_t t = 10 * SECOND; t < 60 * SECOND; t += SECOND / 10) {
        sim_run_to(r.world, t);
        assert_int_equal(n_accused_falsely(&r), 0);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_deaths),
        cmocka_unit_test(test_silent_deaths),
        cmocka_unit_test(test_asks_before_it_accuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
