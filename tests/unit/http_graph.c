/* tests/unit/http_graph.c -- tests of peer/http/snapshot_graph.h: the edges of all peers, as one
 * peer reports them. */
#include "peer/http/snapshot_graph.h"

#include "tests/unit/http_rig.h"
#include "topology/topology.h"

static struct snapshot_graph out, before;

/* Checks that `out` has each edge of the graph once and in order, unless there are too many
 * edges. */
static void expect_graph(const char *spec, uint32_t n, uint64_t seed)
{
    struct graph g;
    assert_int_equal(graph_build(&g, spec, n, seed), 0);
    snapshot_graph_make(&out, spec, n, seed);
    assert_string_equal(out.topology, spec);
    assert_int_equal(out.n_vertices, n);
    assert_int_equal(out.n_edges, g.first[n] / 2);
    assert_int_equal(out.whole, out.n_edges <= SNAPSHOT_GRAPH_EDGES);
    uint32_t k = 0;
    for (uint32_t v = 0; v < n && out.whole; v++)
        for (uint32_t i = g.first[v]; i < g.first[v + 1]; i++)
            if (g.neighbour[i] > v) {
                assert_int_equal(out.edge[k][0], v);
                assert_int_equal(out.edge[k++][1], g.neighbour[i]);
            }
    assert_int_equal(k, out.whole ? out.n_edges : 0);
    graph_close(&g);
}

static void test_graphs(void **state)
{
    (void)state;
    static const char *const spec[] = {"ring",        "star",      "torus", "complete",
                                       "exponential", "regular:4", "base:1"};
    static const uint32_t size[] = {1, 2, 3, 4, 7, 64, 100, 128, 129, 1024};
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (size_t k = 0; k < sizeof size / sizeof *size; k++)
            expect_graph(spec[i], size[k], 7);
    expect_graph("complete", 128, 7);
    assert_true(out.whole);
    expect_graph("complete", 129, 7);
    assert_false(out.whole);
}

/* The graph is computed again when the members, the seed or the topology have changed, and only
 * then. */
static void test_changes(void **state)
{
    (void)state;
    expect_graph("regular:4", 64, 1);
    before = out;
    out.edge[0][0] = 999;
    snapshot_graph_make(&out, "regular:4", 64, 1);
    assert_int_equal(out.edge[0][0], 999);
    expect_graph("regular:4", 64, 2);
    assert_memory_not_equal(out.edge, before.edge, sizeof out.edge);
    expect_graph("regular:4", 63, 2);
    expect_graph("ring", 63, 2);
    snapshot_graph_make(&out, NULL, 63, 2);
    assert_string_equal(out.topology, "");
    expect_graph("ring", 63, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graphs),
                                       cmocka_unit_test(test_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
