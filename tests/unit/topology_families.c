/* tests/unit/topology_families.c -- graph families are compared with closed forms: eigenvalues,
 * degrees, diameters, and averages of random graphs. */
#include "tests/unit/test_share.h"
#include "topology/topology.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 11, MOST = 1024 };
static const double pi = 3.14159265358979323846;

static void near(double got, double want, const char *what, const char *spec, uint32_t n)
{
    if (!(fabs(got - want) <= 1e-9))
        fail_msg("%s, n = %u: %s is %.12g, want %.12g", spec, n, what, got, want);
}

static struct graph build(const char *spec, uint32_t n, uint64_t seed)
{
    struct graph g;
    if (graph_build(&g, spec, n, seed) != 0)
        fail_msg("%s, n = %u: is not built", spec, n);
    return g;
}

static bool has_edge(const struct graph *g, uint32_t a, uint32_t b)
{
    for (uint32_t i = g->first[a]; i < g->first[a + 1]; i++)
        if (g->neighbour[i] == b)
            return true;
    return false;
}

static uint32_t n_edges(const struct graph *g)
{
    return g->first[g->n] / 2;
}

static uint32_t most_neighbours(const struct graph *g)
{
    uint32_t most = 0;
    for (uint32_t v = 0; v < g->n; v++)
        most = graph_degree(g, v) > most ? graph_degree(g, v) : most;
    return most;
}

static void expect_spectrum(const char *spec, uint32_t n, double top, double bottom)
{
    struct spectrum s;
    struct graph g = build(spec, n, SEED);
    assert_int_equal(graph_spectrum(&g, &s), 0);
    near(s.lambda_2, top, "lambda_2", spec, n);
    near(s.lambda_n, bottom, "lambda_n", spec, n);
    near(s.gap, 1 - fmax(fabs(top), fabs(bottom)), "gap", spec, n);
    graph_close(&g);
}

static void expect_diameter(const char *spec, uint32_t n, uint32_t diameter)
{
    struct graph g = build(spec, n, SEED);
    if (graph_diameter(&g) != diameter)
        fail_msg("%s, n = %u: diameter %u, want %u", spec, n, graph_diameter(&g), diameter);
    graph_close(&g);
}

/* Every family gives a connected graph for every number of peers that a cluster may have. */
static void test_connected(void **state)
{
    static const char *const specs[] = {"path",       "grid",
                                        "tree:3",     "trees",
                                        "hypercube",  "bipartite",
                                        "er:0.002",   "small-world:2,0.9",
                                        "matching:2", "one-peer-exponential",
                                        "rotation:3", NULL};
    (void)state;
    for (size_t i = 0; specs[i] != NULL; i++)
        for (uint32_t n = 1; n <= MOST; n++) {
            if (!test_share_has(i * MOST + n))
                continue;
            struct graph g = build(specs[i], n, n);
            if (!graph_connected(&g))
                fail_msg("%s, n = %u: not connected", specs[i], n);
            graph_close(&g);
        }
}

/* The mixing matrix of a path is 1 - L / 3, where the Laplacian L has the eigenvalues 2 - 2 cos(pi
 * k / n) for k = 0 to n - 1. With only two peers, the matrix takes their mean instead. */
static void test_path(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 70; n++)
        expect_spectrum("path", n, (1 + 2 * cos(pi / n)) / 3, (1 + 2 * cos(pi * (n - 1) / n)) / 3);
    expect_spectrum("path", 500, (1 + 2 * cos(pi / 500)) / 3, (1 + 2 * cos(pi * 499 / 500)) / 3);
    expect_diameter("path", 64, 63);
    expect_diameter("path", 2, 1);
}

/* Edges at the border of a grid have other weights than edges inside, except if both sides are 2 or
 * one side is 1. There is thus no closed form to compare with, and every pair of vertices is
 * checked. */
static void expect_grid(const char *spec, uint32_t n, uint32_t cols)
{
    struct graph g = build(spec, n, SEED);
    uint32_t want = 0;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++) {
            uint32_t down = b / cols - a / cols,
                     across = (uint32_t)abs((int)(b % cols) - (int)(a % cols));
            bool edge = down + across == 1;
            want += edge;
            if (has_edge(&g, a, b) != edge)
                fail_msg("%s, n = %u: %u-%u", spec, n, a, b);
        }
    assert_int_equal(n_edges(&g), want);
    graph_close(&g);
}

static void test_grid(void **state)
{
    (void)state;
    expect_grid("grid", 16, 4);
    expect_grid("grid", 32, 8);
    /* The last row of a grid of 13 peers, four per row, has one peer only. */
    expect_grid("grid", 13, 4);
    expect_grid("grid", 7, 3);
    expect_grid("grid", 3, 2);
    expect_grid("grid", 1009, 32);
    expect_grid("grid:2x7", 14, 7);
    /* The sides 2x7 in the spec do not fit 13 peers, so they are ignored. */
    expect_grid("grid:2x7", 13, 4);
    expect_grid("grid:1x9", 9, 9);
    expect_diameter("grid", 64, 14);
    expect_diameter("grid:4x8", 32, 10);
    expect_spectrum("grid", 4, 1.0 / 3, -1.0 / 3);
    expect_spectrum("grid:1x9", 9, (1 + 2 * cos(pi / 9)) / 3, (1 + 2 * cos(pi * 8 / 9)) / 3);
}

/* A hypercube of 2^m vertices has the eigenvalues (1 + m - 2 j) / (1 + m) for j = 0 to m. */
static void test_hypercube(void **state)
{
    (void)state;
    for (uint32_t m = 1; m <= 10; m++) {
        double d = m;
        expect_spectrum("hypercube", 1u << m, (d - 1) / (d + 1), (1 - d) / (d + 1));
        expect_diameter("hypercube", 1u << m, m);
    }
    for (uint32_t n = 2; n <= 130; n++) {
        struct graph g = build("hypercube", n, SEED);
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < a; b++)
                assert_int_equal(has_edge(&g, a, b), __builtin_popcount(a ^ b) == 1);
        graph_close(&g);
    }
}

/* A complete bipartite graph with two halves of m vertices has the eigenvalue 1 once, (1 - m) / (1
 * + m) once, and otherwise 1 / (1 + m). With parts of 1 and n - 1 vertices, it is a star. */
static void test_bipartite(void **state)
{
    (void)state;
    for (uint32_t m = 2; m <= 40; m++)
        expect_spectrum("bipartite", 2 * m, 1.0 / (1 + m), (1.0 - m) / (1 + m));
    /* In a complete bipartite graph whose parts have a < b vertices, each weight is 1 / (1 + b), so
     * W = 1 - L / (1 + b). Apart from 0, the Laplacian L has the eigenvalues a, b and a + b. */
    expect_spectrum("bipartite:3,5", 8, 1 - 3.0 / 6, 1 - 8.0 / 6);
    expect_spectrum("bipartite:1,7", 8, 1 - 1.0 / 8, 0);
    expect_diameter("bipartite", 64, 2);
    expect_diameter("bipartite", 2, 1);
    /* The first part of the bipartite graph has 6 peers, because 17 * 3 / 8 = 6.4. */
    struct graph g = build("bipartite:3,5", 17, SEED);
    assert_int_equal(n_edges(&g), 6 * 11);
    assert_int_equal(graph_degree(&g, 0), 11);
    graph_close(&g);
    /* Each part of the bipartite graph has at least one peer, so no peer is isolated. */
    g = build("bipartite:1,999", 10, SEED);
    assert_int_equal(n_edges(&g), 9);
    graph_close(&g);
    g = build("bipartite:999,1", 10, SEED);
    assert_int_equal(n_edges(&g), 9);
    assert_int_equal(graph_degree(&g, 9), 9);
    graph_close(&g);
}

/* A connected graph with n - 1 edges is a tree. All levels of the tree but the last are full. */
static void test_tree(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 200; n++) {
        struct graph g = build("tree:3", n, SEED);
        assert_int_equal(n_edges(&g), n - 1);
        assert_true(graph_connected(&g) && most_neighbours(&g) <= 4);
        graph_close(&g);
    }
    /* A binary tree of 63 peers has six rows, so the longest path goes five edges up and five
     * down. */
    expect_diameter("tree", 63, 10);
    expect_diameter("tree:3", 40, 6);
    expect_diameter("tree:100", 64, 2);
    /* A tree with up to 99 children per peer is a star if it has 50 peers. */
    expect_spectrum("tree:99", 50, 1 - 1.0 / 50, 0);
}

/* The graph consists of two trees. Every peer but 0 is a leaf of at least one of them, and has one
 * edge in this tree. */
static void test_trees(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= MOST; n++) {
        if (!test_share_has(n - 4))
            continue;
        struct graph g = build("trees", n, SEED);
        double depth = floor(log2(n - 1)) + 1; /* Largest number of edges from peer 0 to a leaf. */
        for (uint32_t v = 1; v < n; v++)
            if (graph_degree(&g, v) > 4)
                fail_msg("trees, n = %u: %u has %u neighbours", n, v, graph_degree(&g, v));
        assert_true(n_edges(&g) <= 2 * (n - 1) && n_edges(&g) > 3 * (n - 1) / 2 - 2);
        if (n <= 300 && !(graph_diameter(&g) <= 2 * depth))
            fail_msg("trees, n = %u: diameter %u", n, graph_diameter(&g));
        graph_close(&g);
    }
    static const uint32_t eight[][2] = {{0, 4}, {2, 4}, {4, 6}, {1, 2}, {2, 3}, {5, 6}, {6, 7},
                                        {3, 7}, {3, 5}, {1, 3}, {5, 6}, {4, 5}, {1, 2}, {0, 1}};
    struct graph g = build("trees", 8, SEED);
    for (size_t i = 0; i < sizeof eight / sizeof *eight; i++)
        assert_true(has_edge(&g, eight[i][0], eight[i][1]));
    /* The edges 5-6 and 1-2 are in both trees of the graph, and count once. */
    assert_int_equal(n_edges(&g), 12);
    graph_close(&g);
}

/* ---- random graphs ---- */

static bool same(const struct graph *a, const struct graph *b)
{
    return memcmp(a->first, b->first, (a->n + 1) * sizeof *a->first) == 0
           && memcmp(a->neighbour, b->neighbour, a->first[a->n] * sizeof *a->neighbour) == 0;
}

static void test_seeds_differ(void **state)
{
    static const char *const specs[] = {"er:0.3", "small-world", "matching", "rotation", NULL};
    (void)state;
    for (size_t i = 0; specs[i] != NULL; i++) {
        struct graph a = build(specs[i], 20, 1), b = build(specs[i], 20, 2);
        assert_false(same(&a, &b));
        graph_close(&a);
        graph_close(&b);
    }
}

/* Each pair of peers is an edge about equally often. The test makes 2,000 draws, and each count
 * must be within five standard deviations sqrt(2000 p (1 - p)). With 12 peers and P = 0.5, a peer
 * is rarely isolated. */
static void test_er(void **state)
{
    enum { N = 12, DRAWS = 2000 };
    static uint32_t count[N][N];
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct graph g = build("er:0.5", N, seed);
        for (uint32_t v = 0; v < N; v++)
            for (uint32_t i = g.first[v]; i < g.first[v + 1]; i++)
                count[v][g.neighbour[i]]++;
        graph_close(&g);
    }
    for (uint32_t a = 0; a < N; a++)
        for (uint32_t b = 0; b < a; b++)
            assert_in_range(count[a][b], 1000 - 112, 1000 + 112);
    struct graph g = build("er:1", 40, SEED);
    assert_int_equal(n_edges(&g), 40 * 39 / 2);
    graph_close(&g);
}

/* If a random graph has several components, as few edges as possible are added to connect it. Here
 * almost no pair is drawn as an edge, so the graph is a tree. A random recursive tree of 300
 * vertices has a depth of about 20, so the diameter must be less than 60. */
static void test_joined(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct graph g = build("er:1e-12", 300, seed);
        assert_int_equal(n_edges(&g), 299);
        assert_true(graph_connected(&g) && graph_diameter(&g) < 60);
        graph_close(&g);
    }
}

/* In a small-world graph, ends of edges that are not rewired stay on the ring. Each of the 2,000
 * ends of 1,000 peers is rewired with probability P = 0.1. The number of rewired ends must be
 * within five standard deviations, about 67, of its expected value. */
static void test_small_world(void **state)
{
    uint32_t stayed = 0;
    (void)state;
    struct graph g = build("small-world", 1000, SEED);
    for (uint32_t v = 0; v < 1000; v++)
        stayed += has_edge(&g, v, (v + 1) % 1000) + has_edge(&g, v, (v + 2) % 1000);
    /* `stayed` counts the ends of edges that are still on the ring. A rewired end may be drawn at
     * the vertex that it had before, and then counts as not rewired. The upper bound is therefore
     * larger by 8. */
    assert_in_range(stayed, 1800 - 67, 1800 + 67 + 8);
    assert_int_equal(n_edges(&g), 2000);
    /* Before edges are rewired, this ring has the diameter 250. */
    assert_true(graph_diameter(&g) < 40);
    graph_close(&g);
    g = build("small-world:6,0", 30, SEED);
    for (uint32_t v = 0; v < 30; v++)
        assert_true(graph_degree(&g, v) == 6 && has_edge(&g, v, (v + 3) % 30));
    graph_close(&g);
    /* A small-world graph of only 7 peers with 6 neighbours each is complete. */
    g = build("small-world:6,0.5", 7, SEED);
    assert_int_equal(n_edges(&g), 21);
    graph_close(&g);
    expect_spectrum("small-world:2,0", 64, (1 + 2 * cos(2 * pi / 64)) / 3, -1.0 / 3);
}

/* ---- momentum of the consensus phase (peer/node/edge/distance_bound.h) ---- */

/* Returns the factor by which an error shrinks per round in the long run, under momentum m. The
 * error is along an eigenvector of the mixing matrix with the eigenvalue lambda. */
static double root_of(double lambda, double m)
{
    double b = lambda + m, d = b * b - 4 * m;
    return d < 0 ? sqrt(m) : (fabs(b) + sqrt(d)) / 2;
}

/* The best momentum m shrinks all differences between models by sqrt(m) per round, also with a tiny
 * spectral gap and with eigenvalues near -1. No other momentum is better. */
static void test_momentum(void **state)
{
    static const struct
    {
        const char *spec;
        uint32_t n;
    } known[] = {{"path", 64},       {"grid", 64},        {"tree", 64},
                 {"bipartite", 64},  {"hypercube", 64},   {"star", 64},
                 {"bipartite", 500}, {"small-world", 64}, {"path", 500}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct spectrum s;
        struct graph g = build(known[i].spec, known[i].n, SEED);
        assert_int_equal(graph_spectrum(&g, &s), 0);
        double m = spectrum_momentum(&s);
        double worst = fmax(root_of(s.lambda_2, m), root_of(s.lambda_n, m));
        assert_true(m >= 0 && m < 1);
        /* At the best momentum, the quadratic equation that root_of() solves has two equal roots:
         * the value under its square root is 0. A rounding error of 1e-16 in this value changes the
         * root by 1e-8. */
        if (!(fabs(worst - sqrt(m)) <= 1e-7))
            fail_msg("%s, n = %u: %.12g, want %.12g", known[i].spec, known[i].n, worst, sqrt(m));
        for (double other = 0; other < 1; other += 1.0 / 64)
            assert_true(fmax(root_of(s.lambda_2, other), root_of(s.lambda_n, other))
                        >= worst - 1e-7);
        graph_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connected),   cmocka_unit_test(test_path),
        cmocka_unit_test(test_grid),        cmocka_unit_test(test_hypercube),
        cmocka_unit_test(test_bipartite),   cmocka_unit_test(test_tree),
        cmocka_unit_test(test_trees),       cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_er),          cmocka_unit_test(test_joined),
        cmocka_unit_test(test_small_world), cmocka_unit_test(test_momentum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
