/* tests/unit/topology_spectrum.c -- spectra of mixing matrices are compared with closed forms and
 * with a dense eigenvalue routine. */
#include "topology/topology.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DENSE = 40, SEED = 11 };
static const double pi = 3.14159265358979323846;
static const double tolerance = 1e-9;

static void near(double got, double want, const char *what, const char *spec, uint32_t n)
{
    double d = fabs(got - want);
    if (!(d <= tolerance))
        fail_msg("%s, n = %u: %s is %.12g, want %.12g", spec, n, what, got, want);
}

static struct spectrum spectrum_of(const char *spec, uint32_t n)
{
    struct graph g;
    struct spectrum s;
    assert_int_equal(graph_build(&g, spec, n, SEED), 0);
    assert_int_equal(graph_spectrum(&g, &s), 0);
    graph_close(&g);
    return s;
}

/* Eigenvalue j of a circulant graph is (1 + sum of cos(2 pi j k / n) over the neighbours k of
 * vertex 0) / (1 + d), where d is the degree. */
static void circulant(const char *spec, uint32_t n)
{
    struct graph g;
    assert_int_equal(graph_build(&g, spec, n, SEED), 0);
    double top = -1.0, bottom = 1.0;
    for (uint32_t j = 1; j < n; j++) {
        double sum = 1.0;
        for (uint32_t i = g.first[0]; i < g.first[1]; i++)
            sum += cos(2 * pi * (double)((uint64_t)j * g.neighbour[i] % n) / n);
        sum /= 1.0 + graph_degree(&g, 0);
        top = fmax(top, sum);
        bottom = fmin(bottom, sum);
    }
    graph_close(&g);
    struct spectrum s = spectrum_of(spec, n);
    near(s.lambda_2, top, "lambda_2", spec, n);
    near(s.lambda_n, bottom, "lambda_n", spec, n);
    near(s.gap, 1.0 - fmax(fabs(top), fabs(bottom)), "gap", spec, n);
}

static void test_circulants(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 70; n++) {
        circulant("ring", n);
        circulant("complete", n);
        circulant("exponential", n);
    }
    circulant("ring", 1000);
    circulant("exponential", 1000);
    /* 997 is prime, so the torus of 997 peers is twisted and a circulant graph. */
    circulant("torus", 997);
}

/* The matrix of a star is 1 - L / n, and its Laplacian L has the eigenvalues 0, 1 (n - 2 times)
 * and n. */
static void test_star(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 70; n++) {
        struct spectrum s = spectrum_of("star", n);
        near(s.lambda_2, 1.0 - 1.0 / n, "lambda_2", "star", n);
        near(s.lambda_n, 0.0, "lambda_n", "star", n);
        near(s.gap, 1.0 / n, "gap", "star", n);
    }
}

/* The spectral gaps of some graphs must equal known values. */
static void test_known_gaps(void **state)
{
    (void)state;
    static const struct
    {
        const char *spec;
        uint32_t n;
        double gap;
    } known[] = {{"ring", 4, 2.0 / 3},
                 {"ring", 8, .195262},
                 {"ring", 16, .050747},
                 {"ring", 32, .012810},
                 {"ring", 64, .003210},
                 {"torus", 9, .6},
                 {"torus", 16, .4},
                 {"torus:4x8", 32, .117157},
                 {"torus", 64, .117157},
                 {"complete", 9, 1.0},
                 {NULL, 0, 0}};
    for (size_t i = 0; known[i].spec; i++) {
        double gap = spectrum_of(known[i].spec, known[i].n).gap, d = fabs(gap - known[i].gap);
        if (!(d <= 1e-6))
            fail_msg("%s, n = %u: gap %.7f, want %.7f", known[i].spec, known[i].n, gap,
                     known[i].gap);
    }
    struct spectrum s = spectrum_of("ring", 8);
    double d = fabs(2.0 / (2.0 - s.lambda_2 - s.lambda_n) - 1.308);
    assert_true(d <= 5e-4); /* The step size of PowerGossip for a ring of 8 peers is 1.308. */
}

/* ---- momentum ---- */

/* Starts from random values and makes `rounds` rounds of exact averaging with momentum m. Returns
 * the consensus distance that remains. */
static double left(const struct graph *g, double m, int rounds)
{
    static double x[DENSE * 4], before[DENSE * 4], next[DENSE * 4];
    uint64_t noise = SEED;
    double mean = 0, sum = 0;
    assert_true(g->n <= DENSE * 4);
    for (uint32_t v = 0; v < g->n; v++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        x[v] = (double)(noise >> 40);
        mean += x[v] / g->n;
    }
    for (uint32_t v = 0; v < g->n; v++)
        before[v] = x[v] -= mean;
    for (int r = 0; r < rounds; r++) {
        for (uint32_t v = 0; v < g->n; v++) {
            next[v] = x[v] + m * (x[v] - before[v]);
            for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
                uint32_t j = g->neighbour[i];
                next[v] += topology_weight(graph_degree(g, v), graph_degree(g, j)) * (x[j] - x[v]);
            }
        }
        memcpy(before, x, sizeof x);
        memcpy(x, next, sizeof x);
    }
    for (uint32_t v = 0; v < g->n; v++)
        sum += x[v] * x[v];
    return sqrt(sum);
}

/* The chosen momentum is never worse than no momentum, and much better if the spectral gap is
 * small. A larger or smaller momentum is not better in the long run. */
static void test_momentum(void **state)
{
    static const struct
    {
        const char *spec;
        uint32_t n;
        /* Largest allowed consensus distance after the rounds with momentum, divided by the
         * distance after as many rounds without momentum. */
        double most;
    } known[] = {{"ring", 8, 1e-6},       {"ring", 64, 1e-6},        {"torus", 64, 1e-9},
                 {"regular:4", 40, 1e-9}, {"exponential", 64, 1e-3}, {NULL, 0, 0}};
    (void)state;
    for (size_t i = 0; known[i].spec != NULL; i++) {
        struct graph g;
        struct spectrum s = spectrum_of(known[i].spec, known[i].n);
        double m = spectrum_momentum(&s);
        int rounds = (int)(30 / (1 - sqrt(m)));
        assert_int_equal(graph_build(&g, known[i].spec, known[i].n, SEED), 0);
        double best = left(&g, m, rounds), plain = left(&g, 0, rounds);
        if (!(best <= known[i].most * plain))
            fail_msg("%s, n = %u: %g is left, %g without", known[i].spec, known[i].n, best, plain);
        assert_true(best <= left(&g, m + 0.1 * (1 - m), rounds));
        assert_true(best <= left(&g, m - 0.1 * (1 - m), rounds));
        graph_close(&g);
    }
    struct spectrum apart = {.lambda_2 = 1}, one = {.gap = 1};
    near(spectrum_momentum(&apart), 0, "momentum", "none", 2);
    near(spectrum_momentum(&one), 0, "momentum", "complete", 1);
}

/* ---- comparison with dense matrices ---- */

/* Computes all eigenvalues of a dense symmetric matrix by the cyclic Jacobi method, in
 * descending order. */
static void jacobi(double a[DENSE][DENSE], uint32_t n, double values[DENSE])
{
    for (int sweep = 0; sweep < 60; sweep++)
        for (uint32_t p = 0; p < n; p++)
            for (uint32_t q = p + 1; q < n; q++) {
                if (fabs(a[p][q]) < 1e-300)
                    continue;
                double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                for (uint32_t k = 0; k < n; k++) {
                    double x = a[k][p], y = a[k][q];
                    a[k][p] = c * x - s * y;
                    a[k][q] = s * x + c * y;
                }
                for (uint32_t k = 0; k < n; k++) {
                    double x = a[p][k], y = a[q][k];
                    a[p][k] = c * x - s * y;
                    a[q][k] = s * x + c * y;
                }
            }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && values[at - 1] < a[i][i]; at--)
            values[at] = values[at - 1];
        values[at] = a[i][i];
    }
}

static void dense(const char *spec, uint32_t n)
{
    static double w[DENSE][DENSE];
    double values[DENSE];
    struct graph g;
    assert_int_equal(graph_build(&g, spec, n, SEED), 0);
    memset(w, 0, sizeof w);
    for (uint32_t v = 0; v < n; v++) {
        w[v][v] = 1.0;
        for (uint32_t i = g.first[v]; i < g.first[v + 1]; i++) {
            uint32_t u = g.neighbour[i];
            w[v][u] = topology_weight(graph_degree(&g, v), graph_degree(&g, u));
            w[v][v] -= w[v][u];
        }
    }
    graph_close(&g);
    jacobi(w, n, values);
    struct spectrum s = spectrum_of(spec, n);
    near(1.0, values[0], "lambda_1", spec, n);
    near(s.lambda_2, values[1], "lambda_2", spec, n);
    near(s.lambda_n, values[n - 1], "lambda_n", spec, n);
}

static void test_against_dense(void **state)
{
    (void)state;
    static const char *const specs[] = {"torus",
                                        "torus:3x5",
                                        "regular:3",
                                        "regular:4",
                                        "regular:7",
                                        "edges:0-1,0-2,0-3,0-4,0-5",
                                        "edges:0-9,1-8,2-7,3-6,4-5",
                                        NULL};
    for (size_t i = 0; specs[i]; i++)
        for (uint32_t n = 2; n <= DENSE; n += 1 + n / 4)
            dense(specs[i], n);
}

static void test_one_peer(void **state)
{
    (void)state;
    struct spectrum s = spectrum_of("ring", 1);
    assert_true(s.lambda_2 == 0.0 && s.lambda_n == 0.0 && s.gap == 1.0);
}

static void test_disconnected(void **state)
{
    (void)state;
    uint32_t first[] = {0, 1, 2, 3, 4}, neighbour[] = {1, 0, 3, 2};
    struct graph g = {.n = 4, .first = first, .neighbour = neighbour};
    struct spectrum s;
    assert_int_equal(graph_spectrum(&g, &s), 0);
    assert_true(s.lambda_2 == 1.0 && s.gap == 0.0);
}

/* With 10,000 peers the ring is the hardest graph: its spectral gap is 1.3e-7. */
static void test_large(void **state)
{
    (void)state;
    uint32_t n = 10000;
    struct spectrum s = spectrum_of("ring", n);
    near(s.lambda_2, (1 + 2 * cos(2 * pi / n)) / 3, "lambda_2", "ring", n);
    near(s.lambda_n, -1.0 / 3, "lambda_n", "ring", n);
    s = spectrum_of("torus", n);
    near(s.lambda_2, (3 + 2 * cos(2 * pi / 100)) / 5, "lambda_2", "torus", n);
    near(s.lambda_n, -3.0 / 5, "lambda_n", "torus", n);
    s = spectrum_of("regular:4", n);
    /* Random regular graphs are nearly Ramanujan graphs. With the degree 4, lambda_2 is therefore
     * about (1 + 2 sqrt 3) / 5. */
    assert_true(s.lambda_2 < (1 + 2 * sqrt(3)) / 5 + 0.01 && s.lambda_2 > 0.85);
}

/* If all vertices are alike, the square of graph_spread() is 1/n times the sum of 1 / (1 -
 * lambda^2) over the eigenvalues of W other than 1. */
static void test_spread_of_rings(void **state)
{
    static const uint32_t sizes[] = {2, 3, 4, 8, 25};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t n = sizes[i];
        struct graph g;
        double sum = 0;
        assert_int_equal(graph_build(&g, "ring", n, SEED), 0);
        for (uint32_t k = 1; k < n; k++) {
            double lambda = n == 2 ? 0 : (1 + 2 * cos(2 * pi * k / n)) / 3;
            sum += 1 / (1 - lambda * lambda) / n;
        }
        double got = graph_spread(&g, n / 2);
        if (!(fabs(got - sqrt(sum)) <= 0.01 * sqrt(sum)))
            fail_msg("ring of %u: spread %.6g, want %.6g", n, got, sqrt(sum));
        graph_close(&g);
    }
}

/* If one round averages exactly, as in a complete graph, only the newest local step contributes to
 * the spread of the models. A single peer has no spread. */
static void test_spread_of_others(void **state)
{
    struct graph g;
    (void)state;
    assert_int_equal(graph_build(&g, "complete", 5, SEED), 0);
    near(graph_spread(&g, 0), sqrt(0.8), "spread", "complete", 5);
    graph_close(&g);
    assert_int_equal(graph_build(&g, "ring", 1, SEED), 0);
    near(graph_spread(&g, 0), 0, "spread", "ring", 1);
    graph_close(&g);
    /* In a star, the centre averages with all peers, but a leaf averages with the centre only. The
     * spread of a leaf is therefore larger. */
    assert_int_equal(graph_build(&g, "edges:0-1,0-2,0-3,0-4,0-5", 6, SEED), 0);
    assert_true(graph_spread(&g, 1) > graph_spread(&g, 0));
    graph_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_circulants),      cmocka_unit_test(test_star),
        cmocka_unit_test(test_known_gaps),      cmocka_unit_test(test_momentum),
        cmocka_unit_test(test_against_dense),   cmocka_unit_test(test_one_peer),
        cmocka_unit_test(test_disconnected),    cmocka_unit_test(test_large),
        cmocka_unit_test(test_spread_of_rings), cmocka_unit_test(test_spread_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
