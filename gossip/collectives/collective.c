/* gossip/collectives/collective.c -- the six schedules of all-reduce. */
#include "gossip/collectives/collective.h"

#include <stdbool.h>

static size_t put(struct collective_op *op, size_t at, enum collective_act act, uint32_t peer,
                  uint32_t part)
{
    op[at] = (struct collective_op){.act = act, .peer = peer, .part = part};
    return at + 1;
}

static uint32_t whole(uint32_t n)
{
    (void)n;
    return 1;
}

static uint32_t as_many(uint32_t n)
{
    return n;
}

static uint32_t twice_around(uint32_t n)
{
    return 2 * (n - 1);
}

/* Returns log2 n, rounded up. */
static uint32_t log2_up(uint32_t n)
{
    uint32_t l = 0;
    while (((uint64_t)1 << l) < n)
        l++;
    return l;
}

/* ---- ring: partial sums travel around the ring once, then the complete sums do ---- */

static size_t ring_ops(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op)
{
    uint32_t next = (rank + 1) % n, before = (rank + n - 1) % n;
    bool gathers = step >= n - 1;
    uint32_t s = gathers ? step - (n - 1) : step;
    uint32_t out = (rank + n + gathers - s) % n, in = (before + n + gathers - s) % n;
    size_t k = put(op, 0, COLLECTIVE_SEND, next, out);
    return put(op, k, gathers ? COLLECTIVE_SET : COLLECTIVE_ADD, before, in);
}

/* ---- round-robin: in step s a rank sends to the s-th rank after it, receives from the s-th
 * before ---- */

static size_t robin_ops(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op)
{
    bool gathers = step >= n - 1;
    uint32_t s = gathers ? step - (n - 1) + 1 : step + 1;
    uint32_t to = (rank + s) % n, from = (rank + n - s) % n;
    size_t k = put(op, 0, COLLECTIVE_SEND, to, gathers ? rank : to);
    return gathers ? put(op, k, COLLECTIVE_SET, from, from)
                   : put(op, k, COLLECTIVE_ADD, from, rank);
}

/* ---- butterfly: partners at distance 1, 2, 4, ... add each other's sums ---- */

static uint32_t power_below(uint32_t n)
{
    uint32_t m = 1;
    while (m <= n / 2)
        m *= 2;
    return m;
}

static uint32_t butterfly_steps(uint32_t n)
{
    uint32_t m = power_below(n);
    return log2_up(m) + (m < n ? 2 : 0);
}

/* Butterfly schedule. If the number n of ranks is not a power of two, let m be the largest power of
 * two below n. Rank r >= m sends its vector to rank r - m in the first step, and receives the sum
 * from that rank in the last step. */
static size_t butterfly_ops(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op)
{
    uint32_t m = power_below(n), folds = m < n, last = butterfly_steps(n) - 1;
    bool before = folds && step == 0, after = folds && step == last;
    if (before || after) {
        bool out = rank >= m;
        uint32_t peer = out ? rank - m : rank + m;
        if (peer >= n)
            return 0;
        return put(op, 0,
                   out == before ? COLLECTIVE_SEND
                   : before      ? COLLECTIVE_ADD
                                 : COLLECTIVE_SET,
                   peer, 0);
    }
    if (rank >= m)
        return 0;
    uint32_t peer = rank ^ (1u << (step - folds));
    return put(op, put(op, 0, COLLECTIVE_SEND, peer, 0), COLLECTIVE_ADD, peer, 0);
}

/* ---- tree: a binomial tree, up to rank 0 and down again ---- */

static uint32_t tree_steps(uint32_t n)
{
    return 2 * log2_up(n);
}

static size_t tree_ops(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op)
{
    uint32_t levels = log2_up(n);
    bool down = step >= levels;
    uint32_t far = 1u << (down ? 2 * levels - 1 - step : step);
    uint32_t place = rank % (2 * far);
    if (place == far)
        return put(op, 0, down ? COLLECTIVE_SET : COLLECTIVE_SEND, rank - far, 0);
    if (place == 0 && rank + far < n)
        return put(op, 0, down ? COLLECTIVE_SEND : COLLECTIVE_ADD, rank + far, 0);
    return 0;
}

/* ---- master-worker: all ranks send to rank 0, which sends the sum to all ---- */

static uint32_t master_steps(uint32_t n)
{
    (void)n;
    return 2;
}

static size_t master_ops(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op)
{
    size_t k = 0;
    if (rank > 0)
        return put(op, 0, step == 0 ? COLLECTIVE_SEND : COLLECTIVE_SET, 0, 0);
    for (uint32_t peer = 1; peer < n; peer++)
        k = put(op, k, step == 0 ? COLLECTIVE_ADD : COLLECTIVE_SEND, peer, 0);
    return k;
}

/* ---- all-to-all: each rank sends its whole vector to each other rank ---- */

static uint32_t all_steps(uint32_t n)
{
    (void)n;
    return 1;
}

static size_t all_ops(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op)
{
    size_t k = 0;
    (void)step;
    for (uint32_t peer = 0; peer < n; peer++)
        if (peer != rank)
            k = put(op, k, COLLECTIVE_SEND, peer, 0);
    for (uint32_t peer = 0; peer < n; peer++)
        k = put(op, k, peer == 0 ? COLLECTIVE_SET : COLLECTIVE_ADD, peer, 0);
    return k;
}

/* ---- the table ---- */

static const struct collective ring = {"ring", as_many, twice_around, ring_ops};
static const struct collective butterfly = {"butterfly", whole, butterfly_steps, butterfly_ops};
static const struct collective tree = {"tree", whole, tree_steps, tree_ops};
static const struct collective round_robin = {"round-robin", as_many, twice_around, robin_ops};
static const struct collective master_worker = {"master-worker", whole, master_steps, master_ops};
static const struct collective all_to_all = {"all-to-all", whole, all_steps, all_ops};

const struct collective *const collective_all[] = {&ring,          &butterfly,  &tree, &round_robin,
                                                   &master_worker, &all_to_all, NULL};

void collective_span(size_t dim, uint32_t parts, uint32_t k, size_t *from, size_t *to)
{
    /* The first `more` parts of the vector have `each` + 1 floats, the others `each` floats. */
    size_t each = dim / parts, more = dim % parts;
    *from = k * each + (k < more ? k : more);
    *to = *from + each + (k < more);
}

uint64_t collective_floats(const struct collective *c, uint32_t n, uint32_t rank, size_t dim)
{
    struct collective_op op[COLLECTIVE_OPS_MAX];
    uint64_t sum = 0;
    for (uint32_t step = 0; n > 1 && step < c->steps(n); step++) {
        size_t k = c->ops(n, rank, step, op), from, to;
        for (size_t i = 0; i < k; i++) {
            collective_span(dim, c->parts(n), op[i].part, &from, &to);
            sum += op[i].act == COLLECTIVE_SEND ? to - from : 0;
        }
    }
    return sum;
}
