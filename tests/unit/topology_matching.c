/* tests/unit/topology_matching.c -- schedules in which a peer has one partner per round: the pairs
 * of each round, how much a pass contracts the differences, which schedules average exactly, and in
 * which families every round consists of pairs. */
#include "tests/unit/test_share.h"
#include "topology/round_schedule.h"
#include "topology/topology.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 5, DENSE = 40 };

static struct round_schedule build(const char *spec, uint32_t n, uint64_t seed)
{
    struct round_schedule r;
    if (round_schedule_build(&r, spec, n, seed) != 0)
        fail_msg("%s, n = %u: is not built", spec, n);
    return r;
}

/* Checks that each peer has at most one partner in a round, and that both partners move half of the
 * distance to each other. */
static void expect_matchings(const struct round_schedule *r, const char *spec)
{
    uint32_t *partners = calloc(r->n, sizeof *partners);
    for (uint32_t k = 0; k < r->n_rounds; k++) {
        memset(partners, 0, r->n * sizeof *partners);
        assert_true(r->first[k] < r->first[k + 1]);
        for (size_t i = r->first[k]; i < r->first[k + 1]; i++) {
            const struct round_schedule_edge *e = &r->edge[i];
            if (e->a >= e->b || e->b >= r->n || 2 * e->over != e->under || partners[e->a]++ > 0
                || partners[e->b]++ > 0)
                fail_msg("%s, n = %u: %u-%u in round %u", spec, r->n, e->a, e->b, k);
        }
    }
    free(partners);
}

/* Computes the product of the mixing matrices of all rounds, column by column. Returns the largest
 * difference between an element and 1/n. */
static double product(const struct round_schedule *r, double p[DENSE][DENSE])
{
    double worst = 0;
    for (uint32_t c = 0; c < r->n; c++) {
        double x[DENSE] = {0}, next[DENSE];
        x[c] = 1;
        for (uint32_t k = 0; k < r->n_rounds; k++) {
            memcpy(next, x, sizeof x);
            for (size_t i = r->first[k]; i < r->first[k + 1]; i++) {
                const struct round_schedule_edge *e = &r->edge[i];
                next[e->a] += round_schedule_weight(e) * (x[e->b] - x[e->a]);
                next[e->b] += round_schedule_weight(e) * (x[e->a] - x[e->b]);
            }
            memcpy(x, next, sizeof x);
        }
        for (uint32_t v = 0; v < r->n; v++) {
            p[v][c] = x[v];
            worst = fmax(worst, fabs(x[v] - 1.0 / r->n));
        }
    }
    return worst;
}

/* Returns the largest |P x| / |x| over vectors x with mean 0, where P is the product of the mixing
 * matrices. Uses many steps of the power method on P^T P. */
static double greatest(double p[DENSE][DENSE], uint32_t n)
{
    double x[DENSE], y[DENSE], norm = 0;
    for (uint32_t v = 0; v < n; v++)
        x[v] = sin(1 + 7.3 * v);
    for (int step = 0; step < 20000; step++) {
        double mean = 0, length = 0;
        for (uint32_t v = 0; v < n; v++)
            mean += x[v] / n;
        for (uint32_t v = 0; v < n; v++)
            length += (x[v] - mean) * (x[v] - mean);
        for (uint32_t v = 0; v < n; v++)
            x[v] = (x[v] - mean) / sqrt(length);
        norm = 0;
        for (uint32_t v = 0; v < n; v++) {
            y[v] = 0;
            for (uint32_t c = 0; c < n; c++)
                y[v] += p[v][c] * x[c];
            norm += y[v] * y[v];
        }
        memset(x, 0, sizeof x);
        for (uint32_t v = 0; v < n; v++)
            for (uint32_t c = 0; c < n; c++)
                x[c] += p[v][c] * y[v];
        if (!(norm > 1e-24))
            return 0;
    }
    return sqrt(norm);
}

/* A schedule must be marked as exact if and only if the product of its mixing matrices gives the
 * mean. round_schedule_share() must give the contraction of this product. */
static void test_passes(void **state)
{
    static const char *const specs[] = {
        "one-peer-exponential", "rotation:3", "matching:2", "matching",
        "matching:24",          "base:1",     "base:3",     NULL};
    static double p[DENSE][DENSE];
    (void)state;
    for (size_t i = 0; specs[i] != NULL; i++)
        for (uint32_t n = 2; n <= DENSE; n++) {
            if (!test_share_has(i * DENSE + n))
                continue;
            struct round_schedule r = build(specs[i], n, SEED);
            double share, worst = product(&r, p);
            if (strncmp(specs[i], "base", 4) != 0)
                expect_matchings(&r, specs[i]);
            assert_int_equal(round_schedule_share(&r, &share), 0);
            /* With 2^m peers, some random matchings happen to be the matchings of a hypercube,
             * which are exact. */
            bool lucky = (n & (n - 1)) == 0 && strncmp(specs[i], "matching", 8) == 0;
            if (r.exact != round_schedule_exact(specs[i], n) || (r.exact && worst > 1e-12)
                || (!r.exact && !lucky && worst < 1e-12))
                fail_msg("%s, n = %u: exact is %d, and elements are %g off", specs[i], n, r.exact,
                         worst);
            if (!(fabs(share - greatest(p, n)) <= 1e-6))
                fail_msg("%s, n = %u: share %.9f, want %.9f", specs[i], n, share, greatest(p, n));
            round_schedule_close(&r);
        }
}

static void test_one_peer(void **state)
{
    double share;
    (void)state;
    static const uint32_t known[][2] = {{2, 1},  {3, 2},     {8, 3},    {9, 4},
                                        {64, 6}, {1000, 10}, {1024, 10}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct round_schedule r = build("one-peer-exponential", known[i][0], SEED);
        assert_int_equal(r.n_rounds, known[i][1]);
        expect_matchings(&r, "one-peer-exponential");
        assert_int_equal(r.exact, known[i][0] != 3 && known[i][0] != 9 && known[i][0] != 1000);
        for (size_t e = 0; e < r.first[r.n_rounds]; e++)
            assert_int_equal(r.edge[e].a ^ r.edge[e].b, 1u << r.edge[e].round);
        round_schedule_close(&r);
    }
    struct round_schedule r =
        /* For 3 peers, the rounds of one-peer-exponential have the edges 0-1 and then 0-2. In the
         * worst case x_0 = x_1, a pass halves the difference between the values x_1 and x_2 of
         * peers 1 and 2. */
        build("one-peer-exponential", 3, SEED);
    assert_int_equal(round_schedule_share(&r, &share), 0);
    assert_true(fabs(share - 0.5) < 1e-9);
    round_schedule_close(&r);
    assert_false(round_schedule_exact("ring", 8));
    assert_false(round_schedule_exact("nonesuch", 8));
    assert_true(round_schedule_exact("one-peer-exponential", 1));
}

/* In "rotation:K", every log2(n) rounds are the schedule "one-peer-exponential" for some order of
 * the peers. The first order is by number. There are K orders, or as many as fit into
 * ROUND_SCHEDULE_ROUNDS_MAX rounds. */
static void expect_rotation(const char *spec, uint32_t n, uint32_t orders, uint32_t bits)
{
    struct round_schedule r = build(spec, n, SEED), again = build(spec, n, SEED);
    struct round_schedule other = build(spec, n, SEED + 1),
                          plain = build("one-peer-exponential", n, SEED);
    size_t each = plain.first[bits];
    assert_int_equal(r.n_rounds, orders * bits);
    expect_matchings(&r, spec);
    assert_memory_equal(r.edge, plain.edge, each * sizeof *r.edge);
    /* In each order of the peers, round k must have as many pairs as round k of
     * "one-peer-exponential". */
    for (uint32_t k = 0; k <= r.n_rounds; k++)
        assert_int_equal(r.first[k], k / bits * each + plain.first[k % bits]);
    assert_memory_equal(r.edge, again.edge, r.first[r.n_rounds] * sizeof *r.edge);
    if (n > 8)
        assert_memory_not_equal(r.edge, other.edge, r.first[r.n_rounds] * sizeof *r.edge);
    round_schedule_close(&r);
    round_schedule_close(&again);
    round_schedule_close(&other);
    round_schedule_close(&plain);
}

static void test_rotation(void **state)
{
    (void)state;
    expect_rotation("rotation:2", 2, 2, 1);
    expect_rotation("rotation:24", 2, 24, 1);
    expect_rotation("rotation:3", 8, 3, 3);
    expect_rotation("rotation:3", 11, 3, 4);
    expect_rotation("rotation:24", 16, 6, 4);
    expect_rotation("rotation:24", 100, 3, 7);
    expect_rotation("rotation:24", 1024, 2, 10);
}

/* In "rotation:K" with 2^m peers, the m rounds of each order give all peers the exact mean. */
static void test_each_order_is_exact(void **state)
{
    static double p[DENSE][DENSE];
    (void)state;
    for (uint32_t bits = 1; bits <= 5; bits++) {
        struct round_schedule r = build("rotation:4", 1u << bits, SEED);
        assert_int_equal(r.n_rounds, 4 * bits);
        for (uint32_t k = 0; k < 4; k++) {
            struct round_schedule part = {
                .n = r.n, .n_rounds = bits, .first = r.first + (size_t)k * bits, .edge = r.edge};
            assert_true(product(&part, p) < 1e-12);
        }
        round_schedule_close(&r);
    }
}

/* rotation:R runs the rounds of one-peer-exponential in R orders of the peers: first by number,
 * then in random orders. In a round of a random order each pair of peers must be matched equally
 * often. The test draws 3,000 schedules and counts the pairs of the first round of the second
 * order. Each count must be within five standard deviations of its expected value. */
static void test_orders_are_uniform(void **state)
{
    enum { N = 8, DRAWS = 3000 };
    static uint32_t count[N][N];
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct round_schedule r = build("rotation:2", N, seed);
        for (size_t i = r.first[3]; i < r.first[4]; i++)
            count[r.edge[i].a][r.edge[i].b]++;
        round_schedule_close(&r);
    }
    double mean = DRAWS / 7.0, most = 5 * sqrt(mean * 6 / 7);
    for (uint32_t a = 0; a < N; a++)
        for (uint32_t b = a + 1; b < N; b++)
            assert_true(fabs(count[a][b] - mean) <= most);
}

/* round_schedule_pairs() must be true if and only if the rounds of a family are matchings for every
 * number of peers. */
static void test_pairs_are_said(void **state)
{
    static const char *const pairs[] = {"one-peer-exponential", "rotation", "matching:2", NULL};
    static const char *const others[] = {"base:1",    "ring",     "complete",
                                         "edges:0-1", "nonesuch", NULL};
    (void)state;
    for (size_t i = 0; pairs[i] != NULL; i++)
        assert_true(round_schedule_pairs(pairs[i]));
    for (size_t i = 0; others[i] != NULL; i++)
        assert_false(round_schedule_pairs(others[i]));
}

/* Each round of "matching:K" has as many pairs as possible. With an odd number of peers, one
 * peer waits. */
static void test_matching(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 1024; n += 1 + n / 50) {
        struct round_schedule r = build("matching:5", n, SEED),
                              again = build("matching:5", n, SEED);
        struct round_schedule other = build("matching:5", n, SEED + 1);
        assert_int_equal(r.n_rounds, 5);
        expect_matchings(&r, "matching:5");
        for (uint32_t k = 0; k < 5; k++)
            assert_int_equal(r.first[k + 1] - r.first[k], n / 2);
        size_t bytes = r.first[5] * sizeof *r.edge;
        assert_memory_equal(r.edge, again.edge, bytes);
        assert_true(n < 10 || memcmp(r.edge, other.edge, bytes) != 0);
        round_schedule_close(&r);
        round_schedule_close(&again);
        round_schedule_close(&other);
    }
}

/* In "matching:K", each pair of peers is equally likely in every round, and so is each peer that
 * waits. The test draws 3,000 schedules, and each count must be within five standard deviations of
 * its expected value. */
static void uniform(uint32_t n, double p)
{
    enum { N = 9, ROUNDS = 3, DRAWS = 3000 };
    static uint32_t count[ROUNDS][N][N];
    memset(count, 0, sizeof count);
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct round_schedule r = build("matching:3", n, seed);
        for (size_t i = 0; i < r.first[ROUNDS]; i++)
            count[r.edge[i].round][r.edge[i].a][r.edge[i].b]++;
        round_schedule_close(&r);
    }
    double most = 5 * sqrt(DRAWS * p * (1 - p));
    for (uint32_t k = 0; k < ROUNDS; k++)
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = a + 1; b < n; b++)
                if (!(fabs(count[k][a][b] - DRAWS * p) <= most))
                    fail_msg("n = %u, round %u: %u-%u came %u times, want %g", n, k, a, b,
                             count[k][a][b], DRAWS * p);
}

static void test_matching_is_uniform(void **state)
{
    (void)state;
    uniform(8, 1.0 / 7);
    uniform(9, 1.0 / 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_one_peer),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_each_order_is_exact),
        cmocka_unit_test(test_orders_are_uniform),
        cmocka_unit_test(test_pairs_are_said),
        cmocka_unit_test(test_matching),
        cmocka_unit_test(test_matching_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
