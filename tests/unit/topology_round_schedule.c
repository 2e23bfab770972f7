/* tests/unit/topology_round_schedule.c -- the rounds of a pass: they keep the contract of
 * round_schedule.h, and a pass of base:K gives every peer exactly the mean.
 *
 * The product of the matrices of a pass is computed modulo two primes. Its elements are fractions
 * in [0, 1]. Their denominators divide D, the product of the common denominators of the weights of
 * each round. An element x / D therefore differs from 1/n by y / (D n) with |y| <= D n. If y is 0
 * modulo both primes, and D n is less than the product of the primes, then y is 0 and the element
 * is exactly 1/n. */
#include "topology/round_schedule.h"
#include "topology/topology.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

__extension__ typedef unsigned __int128 u128;

enum { EXACT_PEERS = 200, EXACT_K = 5, SEED = 7 };

static const uint64_t primes[] = {(UINT64_C(1) << 61) - 1, (UINT64_C(1) << 31) - 1};

static void check(bool ok, const char *what, const char *spec, uint32_t n)
{
    if (!ok)
        fail_msg("%s with n = %u: %s", spec, n, what);
}

/* ---- arithmetic modulo a prime ---- */

static uint64_t times(uint64_t a, uint64_t b, uint64_t p)
{
    return (uint64_t)((u128)a * b % p);
}

static uint64_t power(uint64_t a, uint64_t e, uint64_t p)
{
    uint64_t r = 1;
    for (; e > 0; e /= 2, a = times(a, a, p))
        r = e % 2 ? times(r, a, p) : r;
    return r;
}

static uint64_t inverse(uint64_t a, uint64_t p)
{
    return power(a % p, p - 2, p);
}

static u128 gcd(u128 a, u128 b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* Returns D, the product over all rounds of the common denominator of the round's weights. Returns
 * 0 if D times the number of peers is too large for the test, which computes modulo two primes: it
 * must be less than the product of these primes. */
static u128 denominator(const struct round_schedule *r)
{
    u128 limit = (u128)primes[0] * primes[1], all = 1;
    for (uint32_t k = 0; k < r->n_rounds; k++) {
        u128 common = 1;
        for (size_t i = r->first[k]; i < r->first[k + 1]; i++)
            common = common / gcd(common, r->edge[i].under) * r->edge[i].under;
        if (common >= limit / all)
            return 0;
        all *= common;
    }
    return all < limit / r->n ? all : 0;
}

/* ---- the product of the matrices of several rounds ---- */

/* Computes next = W x modulo p, where W is the matrix of one round. x and next have n rows of n
 * columns. */
static void multiply(const struct round_schedule *r, uint32_t round, uint64_t p, const uint64_t *x,
                     uint64_t *next)
{
    memcpy(next, x, (size_t)r->n * r->n * sizeof *x);
    for (size_t i = r->first[round]; i < r->first[round + 1]; i++) {
        const struct round_schedule_edge *e = &r->edge[i];
        uint64_t w = times(e->over, inverse(e->under, p), p);
        const uint64_t *a = x + (size_t)e->a * r->n, *b = x + (size_t)e->b * r->n;
        uint64_t *to_a = next + (size_t)e->a * r->n, *to_b = next + (size_t)e->b * r->n;
        for (uint32_t c = 0; c < r->n; c++) {
            uint64_t by = times(w, b[c] + p - a[c], p);
            to_a[c] = (to_a[c] + by) % p;
            to_b[c] = (to_b[c] + p - by) % p;
        }
    }
}

/* Multiplies the mixing matrices of n_rounds rounds, from round `begin` on. Returns whether every
 * element of the product is 1/n modulo p. */
static bool is_mean(const struct round_schedule *r, uint32_t begin, uint32_t n_rounds, uint64_t p)
{
    size_t n2 = (size_t)r->n * r->n;
    uint64_t *x = calloc(2 * n2, sizeof *x), *all = x, *next = x + n2, want = inverse(r->n, p);
    assert_non_null(x);
    for (uint32_t v = 0; v < r->n; v++)
        x[(size_t)v * r->n + v] = 1;
    for (uint32_t k = 0; k < n_rounds; k++) {
        multiply(r, (begin + k) % r->n_rounds, p, x, next);
        uint64_t *t = x;
        x = next;
        next = t;
    }
    bool mean = true;
    for (size_t i = 0; i < n2; i++)
        mean &= x[i] == want;
    free(all);
    return mean;
}

/* ---- the rounds of one pass ---- */

/* Checks the mixing matrix of each round. The matrix is symmetric by construction, because an edge
 * moves the values of both ends by equal amounts. Each peer must keep a part of its own value, and
 * have at most k neighbours. */
static void check_rounds(const struct round_schedule *r, const char *spec, uint32_t k)
{
    double *own = calloc(r->n, sizeof *own);
    uint32_t *degree = calloc(r->n, sizeof *degree);
    for (uint32_t round = 0; round < r->n_rounds; round++) {
        for (uint32_t v = 0; v < r->n; v++)
            own[v] = 1, degree[v] = 0;
        check(r->first[round] < r->first[round + 1], "no round is empty", spec, r->n);
        for (size_t i = r->first[round]; i < r->first[round + 1]; i++) {
            const struct round_schedule_edge *e = &r->edge[i];
            check(e->round == round && e->a < e->b && e->b < r->n, "edges are edges", spec, r->n);
            check(e->over > 0 && e->over < e->under, "weights are in (0, 1)", spec, r->n);
            check(i == r->first[round] || r->edge[i - 1].a < e->a || r->edge[i - 1].b < e->b,
                  "edges are ordered, none twice", spec, r->n);
            own[e->a] -= round_schedule_weight(e);
            own[e->b] -= round_schedule_weight(e);
            degree[e->a]++;
            degree[e->b]++;
        }
        for (uint32_t v = 0; v < r->n; v++)
            check(own[v] > 1e-12 && degree[v] <= k, "rows and degrees", spec, r->n);
    }
    free(own);
    free(degree);
}

static void check_length(const struct round_schedule *r, const char *spec, uint32_t k)
{
    double most = 2 * log(r->n) / log(k + 1) + 2;
    check(r->n_rounds <= most + 1e-9, "at most 2 log n + 2 rounds", spec, r->n);
    check((r->n_rounds == 0) == (r->n == 1), "rounds", spec, r->n);
}

static void test_a_pass_is_the_mean(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= EXACT_K; k++)
        for (uint32_t n = 1; n <= EXACT_PEERS; n++) {
            struct round_schedule r;
            char spec[32];
            snprintf(spec, sizeof spec, "base:%u", k);
            assert_int_equal(round_schedule_build(&r, spec, n, SEED), 0);
            check_length(&r, spec, k);
            check_rounds(&r, spec, k);
            check(denominator(&r) > 0, "denominators are in reach of the primes", spec, n);
            for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
                check(n == 1 || is_mean(&r, 0, r.n_rounds, primes[i]), "the mean", spec, n);
            round_schedule_close(&r);
        }
}

/* After a whole pass, which gives the exact mean, further rounds change nothing. If the rounds of a
 * pass begin in its middle and continue with its beginning, their product may not be the mean. */
static void test_order_matters(void **state)
{
    (void)state;
    struct round_schedule r;
    assert_int_equal(round_schedule_build(&r, "base:1", 5, SEED), 0);
    assert_true(is_mean(&r, 0, r.n_rounds + 1, primes[0]));
    assert_false(is_mean(&r, 0, r.n_rounds - 1, primes[0]));
    assert_false(is_mean(&r, 2, r.n_rounds, primes[0]));
    assert_true(is_mean(&r, 2, 2 * r.n_rounds, primes[0]));
    round_schedule_close(&r);
}

static void test_lengths(void **state)
{
    (void)state;
    static const struct
    {
        /* rounds: number of rounds of an exact averaging pass of n peers with base:1, base:2 and
         * base:4. */
        uint32_t n, rounds[3];
    } known[] = {{8, {3, 3, 2}},    {16, {4, 4, 2}},     {64, {6, 6, 3}}, {25, {9, 6, 2}},
                 {100, {11, 8, 3}}, {1000, {16, 12, 5}}, {2, {1, 1, 1}},  {3, {3, 1, 1}}};
    static const char *const specs[] = {"base:1", "base:2", "base:4"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (size_t k = 0; k < 3; k++) {
            struct round_schedule r;
            assert_int_equal(round_schedule_build(&r, specs[k], known[i].n, SEED), 0);
            if (r.n_rounds != known[i].rounds[k])
                fail_msg("%s, n = %u: %u rounds, want %u", specs[k], known[i].n, r.n_rounds,
                         known[i].rounds[k]);
            round_schedule_close(&r);
        }
}

/* ---- the graph of all rounds together ---- */

static bool has_edge(const struct graph *g, uint32_t a, uint32_t b)
{
    for (uint32_t i = g->first[a]; i < g->first[a + 1]; i++)
        if (g->neighbour[i] == b)
            return true;
    return false;
}

/* Returns the largest number of neighbours that a vertex has in all rounds together. */
static uint32_t most_partners(const char *spec, uint32_t n)
{
    struct round_schedule r;
    struct graph g;
    uint32_t most = 0;
    assert_int_equal(round_schedule_build(&r, spec, n, SEED), 0);
    assert_int_equal(graph_build(&g, spec, n, SEED), 0);
    size_t found = 0;
    for (size_t i = 0; i < r.first[r.n_rounds]; i++)
        check(has_edge(&g, r.edge[i].a, r.edge[i].b), "the graph has the edge", spec, n);
    for (uint32_t v = 0; v < n; v++) {
        most = graph_degree(&g, v) > most ? graph_degree(&g, v) : most;
        for (uint32_t i = g.first[v]; i < g.first[v + 1]; i++)
            for (size_t e = 0; e < r.first[r.n_rounds]; e++)
                if (r.edge[e].a == v && r.edge[e].b == g.neighbour[i]) {
                    found++;
                    break;
                }
    }
    check(2 * found == g.first[n], "and no other", spec, n);
    graph_close(&g);
    round_schedule_close(&r);
    return most;
}

static void test_union(void **state)
{
    (void)state;
    assert_int_equal(most_partners("base:1", 8), 3);
    assert_int_equal(most_partners("base:1", 64), 6);
    assert_int_equal(most_partners("base:1", 25), 5);
    assert_int_equal(most_partners("base:1", 100), 7);
    assert_int_equal(most_partners("base:1", 1000), 10);
    assert_int_equal(most_partners("base:2", 1000), 12);
    assert_int_equal(most_partners("base:4", 1000), 16);
    assert_int_equal(most_partners("base:7", 8), 7);
}

static void test_load(void **state)
{
    (void)state;
    struct round_schedule r;
    assert_int_equal(round_schedule_build(&r, "base:1", 8, SEED), 0);
    for (uint32_t v = 0; v < 8; v++) {
        assert_int_equal(round_schedule_load(&r, v).busy, 3);
        assert_int_equal(round_schedule_load(&r, v).ends, 3);
    }
    round_schedule_close(&r);
    assert_int_equal(round_schedule_build(&r, "base:2", 9, SEED), 0);
    assert_int_equal(round_schedule_load(&r, 4).busy, 2);
    assert_int_equal(round_schedule_load(&r, 4).ends, 4);
    round_schedule_close(&r);
}

static void test_specs(void **state)
{
    (void)state;
    struct round_schedule r;
    assert_true(round_schedule_of("base:1"));
    assert_false(round_schedule_of("ring"));
    assert_false(round_schedule_of("base:0"));
    assert_int_equal(round_schedule_build(&r, "ring", 8, SEED), 0);
    assert_int_equal(r.n_rounds, 0);
    round_schedule_close(&r);
    assert_int_equal(round_schedule_build(&r, "base:1", 0, SEED), -EINVAL);
    assert_int_equal(round_schedule_build(&r, "base:x", 8, SEED), -EINVAL);
    assert_int_equal(round_schedule_build(&r, "base:99999", 100000, SEED), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pass_is_the_mean),
        cmocka_unit_test(test_order_matters),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
