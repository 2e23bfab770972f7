/* gossip/collectives/collective.h -- all-reduce: who sends which part of a vector to whom, step by step.
 *
 * n ranks hold a vector each; after the last step every one holds the sum of all, bit for bit the
 * same. A schedule is a pure function of (n, rank, step); it moves nothing itself. The vector is cut
 * into equal parts (collective_span()). One step of a rank:
 *
 *   1. its SENDs, of its vector as it stands before the step
 *   2. all that it is sent in this step has come
 *   3. its ADDs and SETs, in their order
 *
 * A rank sends another at most one part in a step. An ADD or SET whose peer is the rank itself takes
 * its own vector as it was before step 0: that is how all-to-all adds up in the order of the ranks
 * everywhere. Elsewhere a part is summed at one rank and then handed on, or two ranks add the same
 * two numbers, which commutes. So equal sums need no agreement.
 *
 * With N the vector's bytes, n > 1 and L = log2 n rounded up:
 *
 *                   sent by a rank               in all          steps
 *   ring            2 (n-1)/n N                  2 (n-1) N       2 (n-1)
 *   round-robin     2 (n-1)/n N                  2 (n-1) N       2 (n-1)
 *   butterfly       L N (n a power of two)       n L N           L
 *   tree            N up, and down to children   2 (n-1) N       2 L
 *   master-worker   N; rank 0: (n-1) N           2 (n-1) N       2
 *   all-to-all      (n-1) N                      n (n-1) N       1
 *
 * Where n is no power of two the butterfly folds the ranks above the largest one below it into the
 * others, two steps more, with N each way for every rank that is folded.
 *
 * Sources: ring: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms"; butterfly
 * (recursive doubling), tree (binomial) and round-robin (pairwise exchange): Thakur, Rabenseifner and
 * Gropp 2005, "Optimization of collective communication operations in MPICH".
 */
#ifndef GOSSIP_COLLECTIVES_COLLECTIVE_H
#define GOSSIP_COLLECTIVES_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

enum {
    COLLECTIVE_RANKS_MAX = 256, /* No more ranks have a collective. */
    COLLECTIVE_OPS_MAX = 2 * COLLECTIVE_RANKS_MAX
};

enum collective_act {
    COLLECTIVE_SEND, /* Send `part` to `peer`. */
    COLLECTIVE_ADD,  /* Add what `peer` sent in this step to `part`, */
    COLLECTIVE_SET   /* or put it there. */
};

struct collective_op
{
    enum collective_act act;
    uint32_t peer;
    uint32_t part;
};

struct collective
{
    const char *name;
    /* In all three n is from 2 to COLLECTIVE_RANKS_MAX. */
    uint32_t (*parts)(uint32_t n); /* The vector is cut into so many. */
    uint32_t (*steps)(uint32_t n);
    /* What `rank` does in a step: fills op[0..COLLECTIVE_OPS_MAX), returns how many. */
    size_t (*ops)(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op);
};

/* Ends with NULL. The order is that of the choices of the run key `collective` (peer/run/core.c). */
extern const struct collective *const collective_all[];

/* Floats [*from, *to) of a vector of dim are part k of `parts`. */
void collective_span(size_t dim, uint32_t parts, uint32_t k, size_t *from, size_t *to);

/* How many floats of a vector of dim floats a rank sends in all steps. n >= 1. */
uint64_t collective_floats(const struct collective *c, uint32_t n, uint32_t rank, size_t dim);

#endif
