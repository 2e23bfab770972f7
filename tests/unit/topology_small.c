/* tests/unit/topology_small.c -- small graphs, for which several families give the same graph: two
 * peers, tori with a side of two, even rings. */
#include "topology/topology.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST = 64, SEED = 3 };

static double weight(const struct graph *g, uint32_t a, uint32_t b)
{
    for (uint32_t i = g->first[a]; i < g->first[a + 1]; i++)
        if (g->neighbour[i] == b)
            return topology_weight(graph_degree(g, a), graph_degree(g, b));
    return 0;
}

static struct spectrum spectrum_of(const struct graph *g)
{
    struct spectrum s;
    assert_int_equal(graph_spectrum(g, &s), 0);
    return s;
}

static void near(double got, double want, const char *what, const char *spec, uint32_t n)
{
    if (!(fabs(got - want) <= 1e-9))
        fail_msg("%s, n = %u: %s is %.12g, want %.12g", spec, n, what, got, want);
}

/* With two peers, the graph of every family is one edge of weight 1/2, so one exchange gives both
 * peers the mean. */
static void test_pairs(void **state)
{
    static const char *const specs[] = {"ring",        "path",     "star",     "torus",
                                        "grid",        "tree",     "trees",    "hypercube",
                                        "exponential", "complete", "regular:4"};
    (void)state;
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        struct graph g;
        assert_int_equal(graph_build(&g, specs[k], 2, SEED), 0);
        near(weight(&g, 0, 1), 0.5, "w_01", specs[k], 2);
        near(weight(&g, 1, 0), 0.5, "w_10", specs[k], 2);
        near(spectrum_of(&g).gap, 1, "the gap", specs[k], 2);
        graph_close(&g);
    }
}

/* In a torus of 2 rows, the peers above and below a peer are the same peer, which counts once. All
 * vertices of a torus of R x C have the same degree d, and all weights are 1 / (1 + d). For a < R
 * and b < C there is the eigenvalue
 *
 *   (1 + s_R(a) + s_C(b)) / (1 + d),
 *
 * with s_2(a) = cos(pi a), and s_C(b) = 2 cos(2 pi b / C) for C >= 3. */
static void side_two(const char *spec, uint32_t cols)
{
    struct graph g;
    uint32_t n = 2 * cols, d = cols > 2 ? 3 : 2;
    double top = -1, bottom = 1;
    assert_int_equal(graph_build(&g, spec, n, SEED), 0);
    for (uint32_t v = 0; v < n; v++) {
        assert_int_equal(graph_degree(&g, v), d);
        near(weight(&g, v, (v + cols) % n), 1.0 / (1 + d), "across", spec, n);
        near(weight(&g, v, v / cols * cols + (v + 1) % cols), 1.0 / (1 + d), "along", spec, n);
    }
    for (uint32_t k = 1; k < n; k++) {
        double angle = 2 * 3.14159265358979323846 * (k % cols) / cols;
        double along = cols > 2 ? 2 * cos(angle) : cos(angle);
        double lambda = (1 + (k < cols ? 1 : -1) + along) / (1 + d);
        top = fmax(top, lambda);
        bottom = fmin(bottom, lambda);
    }
    struct spectrum s = spectrum_of(&g);
    near(s.lambda_2, top, "lambda_2", spec, n);
    near(s.lambda_n, bottom, "lambda_n", spec, n);
    graph_close(&g);
}

static void test_sides_of_two(void **state)
{
    (void)state;
    side_two("torus:2x2", 2);
    side_two("torus", 2);
    side_two("torus:2x3", 3);
    side_two("torus:2x4", 4);
    side_two("torus", 4);
    side_two("torus:2x7", 7);
}

/* The smallest eigenvalue of an even ring is -1/3 up to rounding, and no ring has a smaller one.
 * An exact exchange thus shrinks the differences that alternate along the ring by a factor of
 * three. An algorithm such as D2, which needs eigenvalues above -1/3, cannot run on even rings. */
static void test_even_rings(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= MOST; n++) {
        struct graph g;
        assert_int_equal(graph_build(&g, "ring", n, SEED), 0);
        for (uint32_t v = 0; v < n; v++)
            near(1 - weight(&g, v, (v + 1) % n) - weight(&g, v, (v + n - 1) % n), 1.0 / 3,
                 "the self-weight", "ring", n);
        double lowest = spectrum_of(&g).lambda_n;
        if (n % 2 == 0)
            near(lowest, -1.0 / 3, "lambda_n", "ring", n);
        else
            assert_true(lowest > -1.0 / 3 + 1e-4);
        graph_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_sides_of_two),
        cmocka_unit_test(test_even_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
