/* tests/unit/topology_contract.c -- every family of graphs keeps the contract of topology.h for
 * every number of peers. */
#include "nn/math/rng.h"
#include "topology/topology.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SMALL = 40, SEED = 7 };

static const char *const specs[] = {
    "ring",
    "torus",
    "torus:4x8",
    "torus:2x2",
    "torus:1x5",
    "torus:2x7",
    "complete",
    "exponential",
    "regular:2",
    "regular:3",
    "regular:4",
    "regular:7",
    "regular:20",
    "regular:37",
    "edges:0-1,1-2,2-5",
    "edges:3-39,3-7",
    "base:1",
    "base:2",
    "base:30",
    "star",
    "path",
    "tree",
    "tree:2",
    "tree:5",
    "trees",
    "grid",
    "grid:4x8",
    "grid:3x13",
    "hypercube",
    "bipartite",
    "bipartite:1,39",
    "bipartite:30,10",
    "er:0.001",
    "er:0.1",
    "er:1",
    "small-world",
    "small-world:2,1",
    "small-world:6,0.5",
    "one-peer-exponential",
    "rotation",
    "rotation:24",
    "matching",
    "matching:2",
    "matching:24",
    NULL,
};
static const uint32_t larger[] = {64, 97, 128, 255, 256, 1009, 0};

static void check(bool ok, const char *what, const char *spec, uint32_t n)
{
    if (!ok)
        fail_msg("%s with n = %u, seed %d: %s", spec, n, SEED, what);
}

static bool has_edge(const struct graph *g, uint32_t a, uint32_t b)
{
    for (uint32_t i = g->first[a]; i < g->first[a + 1]; i++)
        if (g->neighbour[i] == b)
            return true;
    return false;
}

static void check_simple(const struct graph *g, const char *spec)
{
    check(g->first[0] == 0, "first[0] is 0", spec, g->n);
    for (uint32_t v = 0; v < g->n; v++) {
        double sum = 0.0;
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            uint32_t w = g->neighbour[i];
            check(w < g->n, "neighbours are vertices", spec, g->n);
            check(w != v, "no loops", spec, g->n);
            check(i == g->first[v] || g->neighbour[i - 1] < w, "ascending, no doubles", spec, g->n);
            check(has_edge(g, w, v), "symmetric", spec, g->n);
            sum += topology_weight(graph_degree(g, v), graph_degree(g, w));
        }
        /* The weights of the neighbours sum to less than 1, so a peer's own model has a weight
         * above 0. */
        check(sum < 1.0 && sum >= 0.0, "weights of others sum to less than 1", spec, g->n);
    }
}

static bool same(const struct graph *a, const struct graph *b)
{
    return a->n == b->n && memcmp(a->first, b->first, (a->n + 1) * sizeof *a->first) == 0
           && memcmp(a->neighbour, b->neighbour, a->first[a->n] * sizeof *a->neighbour) == 0;
}

static void one(const char *spec, uint32_t n)
{
    struct graph g, again;
    check(graph_build(&g, spec, n, SEED) == 0, "builds", spec, n);
    check(graph_build(&again, spec, n, SEED) == 0, "builds again", spec, n);
    check(g.n == n, "has n vertices", spec, n);
    check_simple(&g, spec);
    check(graph_connected(&g), "connected", spec, n);
    check(same(&g, &again), "the same for the same arguments", spec, n);
    graph_close(&g);
    graph_close(&again);
}

static void test_contract(void **state)
{
    (void)state;
    for (size_t i = 0; specs[i]; i++) {
        for (uint32_t n = 1; n <= SMALL; n++)
            one(specs[i], n);
        for (size_t k = 0; larger[k]; k++)
            one(specs[i], larger[k]);
    }
}

/* Every family in topology_all[] is among the tested specs. */
static void test_all_families_are_tested(void **state)
{
    (void)state;
    for (size_t i = 0; topology_all[i]; i++) {
        bool found = false;
        size_t n = strlen(topology_all[i]->name);
        for (size_t k = 0; specs[k]; k++)
            found = found || strncmp(specs[k], topology_all[i]->name, n) == 0;
        check(found, "is tested", topology_all[i]->name, 0);
        check(strncmp(topology_all[i]->help, topology_all[i]->name, n) == 0,
              "help begins with the name", topology_all[i]->name, 0);
    }
}

/* Computes the distances between all vertices, in hops, by the algorithm of Floyd and Warshall. */
static void oracle(const struct graph *g, uint32_t hops[SMALL][SMALL])
{
    for (uint32_t a = 0; a < g->n; a++)
        for (uint32_t b = 0; b < g->n; b++)
            hops[a][b] = a == b ? 0 : has_edge(g, a, b) ? 1 : 1000;
    for (uint32_t k = 0; k < g->n; k++)
        for (uint32_t a = 0; a < g->n; a++)
            for (uint32_t b = 0; b < g->n; b++)
                if (hops[a][k] + hops[k][b] < hops[a][b])
                    hops[a][b] = hops[a][k] + hops[k][b];
}

static void test_distances(void **state)
{
    (void)state;
    static uint32_t hops[SMALL][SMALL];
    for (size_t i = 0; specs[i]; i++)
        for (uint32_t n = 1; n <= SMALL; n += 3) {
            struct graph g;
            assert_int_equal(graph_build(&g, specs[i], n, SEED), 0);
            oracle(&g, hops);
            uint32_t diameter = 0;
            for (uint32_t a = 0; a < n; a++) {
                uint32_t max = 0;
                for (uint32_t b = 0; b < n; b++)
                    max = hops[a][b] > max ? hops[a][b] : max;
                check(graph_eccentricity(&g, a) == max, "eccentricity", specs[i], n);
                diameter = max > diameter ? max : diameter;
            }
            check(graph_diameter(&g) == diameter, "diameter", specs[i], n);
            uint32_t parent[SMALL];
            uint32_t root = n / 2;
            assert_int_equal(graph_tree(&g, root, parent), 0);
            for (uint32_t a = 0; a < n; a++)
                check(a == root ? parent[a] == root
                                : has_edge(&g, a, parent[a])
                                      && hops[parent[a]][root] + 1 == hops[a][root],
                      "tree", specs[i], n);
            graph_close(&g);
        }
}

static void test_disconnected(void **state)
{
    (void)state;
    uint32_t first[] = {0, 1, 2, 3, 4}, neighbour[] = {1, 0, 3, 2};
    struct graph g = {.n = 4, .first = first, .neighbour = neighbour};
    assert_false(graph_connected(&g));
    assert_int_equal(graph_diameter(&g), UINT32_MAX);
    assert_int_equal(graph_eccentricity(&g, 2), UINT32_MAX);
}

/* Finds the smallest and the largest degree, and the number of vertices with the largest degree. */
static void degrees(const char *spec, uint32_t n, uint32_t *min, uint32_t *max, uint32_t *at_max)
{
    struct graph g;
    assert_int_equal(graph_build(&g, spec, n, SEED), 0);
    *min = UINT32_MAX;
    *max = *at_max = 0;
    for (uint32_t v = 0; v < n; v++) {
        uint32_t d = graph_degree(&g, v);
        *min = d < *min ? d : *min;
        if (d > *max)
            *max = d, *at_max = 0;
        *at_max += d == *max;
    }
    graph_close(&g);
}

static void expect_degree(const char *spec, uint32_t n, uint32_t degree)
{
    uint32_t min, max, at_max;
    degrees(spec, n, &min, &max, &at_max);
    if (min != degree || max != degree)
        fail_msg("%s, n = %u: degrees %u to %u, want %u", spec, n, min, max, degree);
}

static void test_degrees(void **state)
{
    (void)state;
    expect_degree("ring", 1, 0);
    expect_degree("ring", 2, 1);
    expect_degree("ring", 3, 2);
    expect_degree("ring", 64, 2);
    expect_degree("torus", 2, 1);
    expect_degree("torus", 4, 2);
    expect_degree("torus", 9, 4);
    expect_degree("torus", 16, 4);
    /* 8 peers form a torus of 2 x 4, in which each peer has three neighbours. */
    expect_degree("torus", 8, 3);
    /* 13 is prime, so 13 peers do not form a grid. The torus is therefore twisted. */
    expect_degree("torus", 13, 4);
    /* With the sides 2x7 in the spec, the torus of 14 peers is not twisted. */
    expect_degree("torus:2x7", 14, 3);
    /* Without sides in the spec, the torus of 14 peers is twisted. */
    expect_degree("torus", 14, 4);
    expect_degree("torus:1x14", 14, 2);
    expect_degree("complete", 17, 16);
    /* In the exponential graph of 16 peers, neighbours are at the distances +-1, +-2, +-4 and 8. */
    expect_degree("exponential", 16, 7);
    expect_degree("exponential", 2, 1);
    for (uint32_t n = 6; n <= SMALL; n++)
        expect_degree("regular:4", n, 4);
    for (uint32_t n = 4; n <= SMALL; n += 2)
        expect_degree("regular:3", n, 3);
    /* With too few peers for K = 4 neighbours, the graph is complete. */
    expect_degree("regular:4", 4, 3);
    expect_degree("regular:4", 5, 4);
    expect_degree("regular:38", 40, 38);
    expect_degree("regular:30", 1009, 30);
}

/* In "regular:K", if n and K are both odd, exactly one vertex has K + 1 neighbours. */
static void test_odd_regular(void **state)
{
    (void)state;
    for (uint32_t n = 5; n <= SMALL; n += 2) {
        uint32_t min, max, at_max;
        degrees("regular:3", n, &min, &max, &at_max);
        assert_int_equal(min, 3);
        assert_int_equal(max, 4);
        assert_int_equal(at_max, 1);
    }
    uint32_t min, max, at_max;
    degrees("regular:31", 39, &min, &max, &at_max);
    assert_int_equal(min, 31);
    assert_int_equal(max, 32);
    assert_int_equal(at_max, 1);
}

static void test_seeds_differ(void **state)
{
    (void)state;
    struct graph a, b;
    assert_int_equal(graph_build(&a, "regular:4", 20, 1), 0);
    assert_int_equal(graph_build(&b, "regular:4", 20, 2), 0);
    assert_false(same(&a, &b));
    graph_close(&a);
    graph_close(&b);
}

/* Over many seeds, each pair of peers is an edge with the probability K / (n - 1). */
static void test_regular_is_uniform(void **state)
{
    (void)state;
    enum { N = 10, DRAWS = 2000 };
    static uint32_t count[N][N];
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct graph g;
        assert_int_equal(graph_build(&g, "regular:3", N, seed), 0);
        for (uint32_t v = 0; v < N; v++)
            for (uint32_t i = g.first[v]; i < g.first[v + 1]; i++)
                count[v][g.neighbour[i]]++;
        graph_close(&g);
    }
    /* An edge has the probability 1/3, so the standard deviation of its count in 2000 draws is
     * sqrt(2000 * 2/9) = 21. A count may differ from the mean by five standard deviations. */
    for (uint32_t a = 0; a < N; a++)
        for (uint32_t b = 0; b < a; b++)
            assert_in_range(count[a][b], 2000 / 3 - 106, 2000 / 3 + 106);
}

/* One in 550 cubic graphs of 8 vertices is not connected (two K4). Such a graph is never drawn. */
static void test_regular_is_connected(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct graph g;
        assert_int_equal(graph_build(&g, "regular:3", 8, seed), 0);
        if (!graph_connected(&g))
            fail_msg("regular:3, n = 8, seed %u: not connected", (unsigned)seed);
        graph_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_all_families_are_tested),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_disconnected),
        cmocka_unit_test(test_degrees),
        cmocka_unit_test(test_odd_regular),
        cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_regular_is_uniform),
        cmocka_unit_test(test_regular_is_connected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
