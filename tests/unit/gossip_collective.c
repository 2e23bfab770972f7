/* tests/unit/gossip_collective.c -- runs each all-reduce schedule among 2 to 40 ranks in a simple
 * simulation. */
#include "gossip/collectives/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 40, DIM = 97 };

struct rank
{
    float own[DIM], v[DIM], before[DIM];
    struct collective_op op[COLLECTIVE_OPS_MAX];
    size_t n_ops;
};
static struct rank at[RANKS];

/* Fills the vectors of n ranks with numbers that give another sum in another order of addition. */
static void begin(uint32_t n)
{
    uint32_t h = 1;
    for (uint32_t r = 0; r < n; r++)
        for (size_t k = 0; k < DIM; k++) {
            h = h * 1664525u + 1013904223u;
            at[r].own[k] = at[r].v[k] = ((float)(h >> 8) - 8e6f) / (float)(1u << (h >> 28));
        }
}

/* Returns the operation with which `from` sends to `to` in this step. Exactly one must exist. */
static const struct collective_op *sent(uint32_t from, uint32_t to)
{
    const struct collective_op *found = NULL;
    for (size_t i = 0; i < at[from].n_ops; i++)
        if (at[from].op[i].act == COLLECTIVE_SEND && at[from].op[i].peer == to) {
            assert_null(found);
            found = &at[from].op[i];
        }
    return found;
}

static void receive(const struct collective *c, uint32_t n, uint32_t r,
                    const struct collective_op *op)
{
    const float *from = at[r].own;
    size_t first, end;
    if (op->peer != r) {
        const struct collective_op *s = sent(op->peer, r);
        assert_non_null(s);
        assert_int_equal(s->part, op->part);
        from = at[op->peer].before;
    }
    collective_span(DIM, c->parts(n), op->part, &first, &end);
    for (size_t k = first; k < end; k++)
        at[r].v[k] = op->act == COLLECTIVE_ADD ? at[r].v[k] + from[k] : from[k];
}

/* Runs one step of the schedule at all ranks. Returns the number of messages. */
static size_t do_step(const struct collective *c, uint32_t n, uint32_t step)
{
    size_t n_sent = 0, n_got = 0;
    for (uint32_t r = 0; r < n; r++) {
        at[r].n_ops = c->ops(n, r, step, at[r].op);
        assert_true(at[r].n_ops <= COLLECTIVE_OPS_MAX);
        memcpy(at[r].before, at[r].v, sizeof at[r].v);
    }
    for (uint32_t r = 0; r < n; r++)
        for (size_t i = 0; i < at[r].n_ops; i++) {
            const struct collective_op *op = &at[r].op[i];
            assert_true(op->peer < n && op->part < c->parts(n));
            if (op->act == COLLECTIVE_SEND) {
                assert_true(op->peer != r);
                n_sent++;
            } else {
                receive(c, n, r, op);
                n_got += op->peer != r;
            }
        }
    assert_int_equal(n_sent, n_got);
    return n_sent;
}

static void check_sum(const struct collective *c, uint32_t n)
{
    for (size_t k = 0; k < DIM; k++) {
        double sum = 0, size = 0;
        for (uint32_t r = 0; r < n; r++) {
            sum += (double)at[r].own[k];
            size += (double)(at[r].own[k] < 0 ? -at[r].own[k] : at[r].own[k]);
        }
        double off = (double)at[0].v[k] - sum;
        if (!((off < 0 ? -off : off) <= 1e-6 * size))
            fail_msg("%s of %u: float %zu is %g, expected %g", c->name, n, k, (double)at[0].v[k],
                     sum);
    }
    for (uint32_t r = 1; r < n; r++)
        if (memcmp(at[r].v, at[0].v, sizeof at[r].v) != 0)
            fail_msg("%s of %u: rank %u has other bits than rank 0", c->name, n, r);
}

static void test_everybody_has_the_sum(void **state)
{
    (void)state;
    for (const struct collective *const *c = collective_all; *c != NULL; c++)
        for (uint32_t n = 2; n <= RANKS; n++) {
            begin(n);
            for (uint32_t step = 0; step < (*c)->steps(n); step++)
                /* Each step of an all-reduce schedule must send at least one message. */
                assert_true(do_step(*c, n, step) > 0);
            check_sum(*c, n);
        }
}

static uint32_t log2_up(uint32_t n)
{
    uint32_t l = 0;
    while (1u << l < n)
        l++;
    return l;
}

static bool power(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static uint32_t children(uint32_t n, uint32_t rank)
{
    uint32_t count = 0;
    for (uint32_t far = 1; far < n && rank % (2 * far) == 0; far *= 2)
        count += rank + far < n;
    return count;
}

/* Returns the number of floats that a rank sends, according to the table at the head of
 * collective.h. n must divide dim. UINT64_MAX: the table has no formula for this case. */
static uint64_t formula(const char *name, uint32_t n, uint32_t rank, uint64_t dim)
{
    if (strcmp(name, "ring") == 0 || strcmp(name, "round-robin") == 0)
        return 2 * (n - 1) * (dim / n);
    if (strcmp(name, "butterfly") == 0)
        return power(n) ? log2_up(n) * dim : UINT64_MAX;
    if (strcmp(name, "tree") == 0)
        return dim * (children(n, rank) + (rank > 0));
    if (strcmp(name, "master-worker") == 0)
        return rank > 0 ? dim : (n - 1) * dim;
    if (strcmp(name, "all-to-all") == 0)
        return (n - 1) * dim;
    fail_msg("%s has no formula here", name);
    return 0;
}

static uint64_t formula_of_all(const char *name, uint32_t n, uint64_t dim)
{
    if (strcmp(name, "all-to-all") == 0)
        return (uint64_t)n * (n - 1) * dim;
    if (strcmp(name, "butterfly") != 0)
        return 2 * (uint64_t)(n - 1) * dim;
    uint32_t m = power(n) ? n : 1u << (log2_up(n) - 1);
    return (uint64_t)m * log2_up(m) * dim + 2 * (uint64_t)(n - m) * dim;
}

static void test_traffic_is_the_formula(void **state)
{
    (void)state;
    for (const struct collective *const *c = collective_all; *c != NULL; c++)
        for (uint32_t n = 2; n <= RANKS; n++) {
            size_t dim = 3 * (size_t)n;
            uint64_t all = 0;
            for (uint32_t r = 0; r < n; r++) {
                uint64_t floats = collective_floats(*c, n, r, dim);
                uint64_t want = formula((*c)->name, n, r, dim);
                all += floats;
                if (want != UINT64_MAX && floats != want)
                    fail_msg("%s of %u, rank %u: %llu floats, expected %llu", (*c)->name, n, r,
                             (unsigned long long)floats, (unsigned long long)want);
            }
            assert_int_equal(all, formula_of_all((*c)->name, n, dim));
            assert_int_equal(collective_floats(*c, 1, 0, dim), 0);
        }
}

/* The parts cover the vector once, in order, and differ by at most one float. This also holds if
 * the vector is shorter than the number of parts. */
static void test_spans(void **state)
{
    (void)state;
    static const size_t dims[] = {0, 1, 2, 7, 39, 40, 41, 1023};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (uint32_t parts = 1; parts <= RANKS; parts++) {
            size_t at_float = 0, from, to;
            for (uint32_t k = 0; k < parts; k++) {
                collective_span(dims[d], parts, k, &from, &to);
                assert_int_equal(from, at_float);
                assert_true(to - from == dims[d] / parts || to - from == dims[d] / parts + 1);
                at_float = to;
            }
            assert_int_equal(at_float, dims[d]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody_has_the_sum),
        cmocka_unit_test(test_traffic_is_the_formula),
        cmocka_unit_test(test_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
