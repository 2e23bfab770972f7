/* tests/unit/topology_spec.c -- topology specs: canonical texts, error messages, and files that
 * list edges. */
#include "topology/topology.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *spec, const char *want)
{
    char canonical[TOPOLOGY_SPEC_MAX], again[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX] = "";
    if (topology_canonical(spec, canonical, error))
        fail_msg("%s: %s", spec, error);
    assert_string_equal(canonical, want);
    assert_int_equal(topology_canonical(canonical, again, error), 0);
    assert_string_equal(again, want);
}

static void test_canonical(void **state)
{
    (void)state;
    expect("ring", "ring");
    expect("torus", "torus");
    expect("torus:04x8", "torus:4x8");
    expect("complete", "complete");
    expect("star", "star");
    expect("exponential", "exponential");
    expect("regular:004", "regular:4");
    expect("base:01", "base:1");
    expect("path", "path");
    expect("grid", "grid");
    expect("grid:04x8", "grid:4x8");
    /* The canonical text of "tree" is "tree:2". The text contains the default value, because a
     * later version may change the default. */
    expect("tree", "tree:2");
    expect("tree:03", "tree:3");
    expect("trees", "trees");
    expect("hypercube", "hypercube");
    expect("bipartite", "bipartite");
    expect("bipartite:03,5", "bipartite:3,5");
    expect("er:1e-2", "er:0.01");
    expect("er:1.0", "er:1");
    expect("small-world", "small-world:4,0.1");
    expect("small-world:06,.50", "small-world:6,0.5");
    expect("small-world:6,-0", "small-world:6,0");
    expect("one-peer-exponential", "one-peer-exponential");
    expect("rotation", "rotation:4");
    expect("matching", "matching:8");
    expect("matching:02", "matching:2");
    expect("edges:2-1,0-1,1-2", "edges:0-1,1-2");
    expect("edges:10-9,2-10,2-3", "edges:2-3,2-10,9-10");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      ":",
                                      "rin",
                                      "rings",
                                      "ring:",
                                      "ring:x",
                                      "ring:4",
                                      "Ring",
                                      " ring",
                                      "complete:3",
                                      "star:3",
                                      "exponential:2",
                                      "torus:",
                                      "torus:4",
                                      "torus:0x3",
                                      "torus:3x0",
                                      "torus:3x",
                                      "torus:3x4x5",
                                      "torus:-3x4",
                                      "torus:3 x4",
                                      "torus:9999999x1",
                                      "regular",
                                      "regular:",
                                      "regular:0",
                                      "regular:1",
                                      "regular:-4",
                                      "regular:4.5",
                                      "regular:4x",
                                      "regular:99999999999999999999",
                                      "base",
                                      "base:",
                                      "base:0",
                                      "base:1x",
                                      "base:1000001",
                                      "path:3",
                                      "grid:4",
                                      "grid:0x4",
                                      "tree:",
                                      "tree:1",
                                      "tree:2x",
                                      "trees:2",
                                      "hypercube:3",
                                      "bipartite:",
                                      "bipartite:3",
                                      "bipartite:0,3",
                                      "bipartite:3,0",
                                      "bipartite:3,4,5",
                                      "bipartite:3x4",
                                      "er",
                                      "er:",
                                      "er:0",
                                      "er:-0.5",
                                      "er:1.5",
                                      "er:nan",
                                      "er:0.5x",
                                      "small-world:",
                                      "small-world:4",
                                      "small-world:4,",
                                      "small-world:3,0.1",
                                      "small-world:0,0.1",
                                      "small-world:4,1.1",
                                      "small-world:4,-0.1",
                                      "small-world:4,nan",
                                      "one-peer-exponential:2",
                                      "rotation:1",
                                      "rotation:25",
                                      "rotation:4,",
                                      "matching:",
                                      "matching:1",
                                      "matching:25",
                                      "matching:4x",
                                      "edges",
                                      "edges:",
                                      "edges:missing",
                                      "edges:0",
                                      "edges:0-",
                                      "edges:0-0",
                                      "edges:0-1,",
                                      "edges:,0-1",
                                      "edges:0-1,,1-2",
                                      "edges:0-1;1-2",
                                      "edges:0--1",
                                      "edges:0-1000001",
                                      NULL};
    for (size_t i = 0; bad[i]; i++) {
        char canonical[TOPOLOGY_SPEC_MAX] = "untouched", error[TOPOLOGY_ERROR_MAX] = "";
        struct graph g;
        if (topology_canonical(bad[i], canonical, error) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        assert_string_equal(canonical, "untouched");
        assert_non_null(strstr(error, "expected"));
        assert_int_equal(graph_build(&g, bad[i], 8, 1), -EINVAL);
    }
    struct graph g;
    assert_int_equal(graph_build(&g, "ring", 0, 1), -EINVAL);
    assert_int_equal(graph_build(&g, "complete", 100000, 1), -EINVAL);
    assert_int_equal(graph_build(&g, "bipartite", 200000, 1), -EINVAL);
    assert_int_equal(graph_build(&g, "er:0.9", 100000, 1), -EINVAL);
    assert_int_equal(graph_build(&g, "small-world:90000,0.1", 100000, 1), -EINVAL);
}

/* Error messages show the text that was found, shortened and printable. */
static void test_error_text(void **state)
{
    (void)state;
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX], spec[3000];
    assert_int_equal(topology_canonical("regular:0", canonical, error), -EINVAL);
    assert_string_equal(error,
                        "regular: found '0', expected K neighbours, 2 or more, as in regular:4");
    /* The error message for an unknown family lists all families and suggests the most similar
     * name. */
    assert_int_equal(topology_canonical("smal-world:4,0.1", canonical, error), -EINVAL);
    for (size_t i = 0; topology_all[i] != NULL; i++)
        assert_non_null(strstr(error, topology_all[i]->name));
    assert_int_equal(strncmp(error, "unknown kind: found 'smal-world:4,0.1', expected ring", 40),
                     0);
    assert_string_equal(strstr(error, " or edges"),
                        " or edges:FILE, did you mean small-world:4,0.1?");
    assert_int_equal(topology_canonical("mathcing", canonical, error), -EINVAL);
    assert_non_null(strstr(error, ", did you mean matching?"));
    memset(spec, '\n', sizeof spec);
    spec[sizeof spec - 1] = '\0';
    assert_int_equal(topology_canonical(spec, canonical, error), -EINVAL);
    assert_null(strchr(error, '\n'));
}

static void expect_file(const char *text, const char *want)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX] = "";
    if (topology_edges_text(text, strlen(text), canonical, error))
        fail_msg("'%s': %s", text, error);
    assert_string_equal(canonical, want);
}

static void refuse_file(const char *text, const char *part)
{
    char canonical[TOPOLOGY_SPEC_MAX] = "untouched", error[TOPOLOGY_ERROR_MAX] = "";
    if (topology_edges_text(text, strlen(text), canonical, error) != -EINVAL)
        fail_msg("'%s' was taken", text);
    if (!strstr(error, part))
        fail_msg("'%s': error '%s' does not say '%s'", text, error, part);
    assert_string_equal(canonical, "untouched");
}

static void test_file(void **state)
{
    (void)state;
    expect_file("0 1\n1 2\n", "edges:0-1,1-2");
    expect_file("0 1\n1 2", "edges:0-1,1-2");
    expect_file("# a path\n\n  2\t1  # the end\r\n1 0\r\n", "edges:0-1,1-2");
    expect_file("5 3", "edges:3-5");
    refuse_file("", "no edge found");
    refuse_file("# only words\n", "no edge found");
    refuse_file("0 1\n1\n", "line 2: found '1'");
    refuse_file("0 1\n\n1 2 3\n", "line 3");
    refuse_file("0 1\n1 x\n", "line 2");
    refuse_file("1-2\n", "line 1");
    refuse_file("4 4\n", "two different peers");
    /* The reader does not take the second number of an edge from the next line. */
    refuse_file("0\n1\n", "line 1");
    refuse_file("-1 2\n", "line 1");
    refuse_file("1 2000000\n", "line 1");
}

/* A NUL byte does not end the text, so the bytes after it are not ignored. */
static void test_file_with_nul(void **state)
{
    (void)state;
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    static const char text[] = "0 1\0\n1 2\n";
    assert_int_equal(topology_edges_text(text, sizeof text - 1, canonical, error), -EINVAL);
    assert_non_null(strstr(error, "line 1"));
}

/* A run description has room for about 250 edges. A file with more edges is refused, and no edge
 * is dropped. */
static void test_too_many_edges(void **state)
{
    (void)state;
    char text[20000], canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    size_t fits = 0;
    for (uint32_t n = 150; n <= 400; n++) {
        size_t at = 0;
        for (uint32_t i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%u %u\n", i, (i + 1) % n);
        if (topology_edges_text(text, at, canonical, error)) {
            assert_non_null(strstr(error, "do not fit"));
            break;
        }
        struct graph g;
        assert_int_equal(graph_build(&g, canonical, n, 1), 0);
        /* The graph that is read from the file is the ring of n peers that this test wrote. */
        assert_int_equal(g.first[n], 2 * n);
        graph_close(&g);
        fits = n;
    }
    assert_in_range(fits, 180, 300);
}

/* A run may have fewer or more peers than the file names. The graph is then connected, and keeps
 * each edge of the file between two peers that exist. */
static void test_edges_and_peers(void **state)
{
    (void)state;
    struct graph g;
    assert_int_equal(graph_build(&g, "edges:0-1,1-2,2-3,3-0,0-2", 4, 1), 0);
    assert_int_equal(g.first[4], 10);
    graph_close(&g);
    /* Without peer 3, which is the hub of the file's graph, the graph is the path 0-1-2. */
    assert_int_equal(graph_build(&g, "edges:0-3,3-1,3-2", 3, 1), 0);
    assert_int_equal(g.first[3], 4);
    assert_int_equal(graph_degree(&g, 1), 2);
    graph_close(&g);
    /* The graph keeps the edges 0-1 and 2-3 of the spec, and adds 0-2, 2-4 and 4-5 to connect all
     * six peers. */
    assert_int_equal(graph_build(&g, "edges:0-1,2-3", 6, 1), 0);
    assert_int_equal(g.first[6], 10);
    assert_int_equal(graph_degree(&g, 2), 3);
    graph_close(&g);
}

static void test_peers_of_a_spec(void **state)
{
    (void)state;
    assert_int_equal(topology_peers("torus:4x8"), 32);
    assert_int_equal(topology_peers("grid:4x8"), 32);
    assert_int_equal(topology_peers("bipartite:3,5"), 8);
    assert_int_equal(topology_peers("edges:0-1,1-7,2-3"), 8);
    static const char *const any[] = {"ring", "torus", "regular:4", "nonsense", "edges:", NULL};
    for (size_t i = 0; any[i]; i++)
        assert_int_equal(topology_peers(any[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_error_text),      cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_with_nul),   cmocka_unit_test(test_too_many_edges),
        cmocka_unit_test(test_edges_and_peers), cmocka_unit_test(test_peers_of_a_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
