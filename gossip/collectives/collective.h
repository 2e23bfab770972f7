/* gossip/collectives/collective.h -- schedules of all-reduce: which rank sends what to which rank.
 *
 * Each of n ranks holds a vector. After the last step all ranks hold the sum of all vectors,
 * bitwise equal. A schedule is a pure function of (n, rank, step) and moves no data itself. The
 * vector is cut into equal parts (collective_span()). In one step a rank does the following:
 *
 *   1. all SENDs, from the vector as it was before the step
 *   2. wait for all parts that other ranks send to it in this step
 *   3. all ADDs and SETs, in the order of the list
 *
 * A rank sends at most one part per step to each other rank. An ADD or SET whose `peer` is the
 * rank itself uses the rank's own vector from before step 0. All-to-all needs this to add in the
 * order of the ranks everywhere. In the other schedules each part is summed at one rank and
 * passed on, or two ranks add the same two numbers, which commutes. So all ranks get the same
 * bits.
 *
 * In this table N is the length of the vector in bytes, n > 1, and L is log2 n, rounded up:
 *
 *   schedule        sent per rank                total           steps
 *   ring            2 (n-1)/n N                  2 (n-1) N       2 (n-1)
 *   round-robin     2 (n-1)/n N                  2 (n-1) N       2 (n-1)
 *   butterfly       L N (n a power of two)       n L N           L
 *   tree            N up, and down to children   2 (n-1) N       2 L
 *   master-worker   N; rank 0: (n-1) N           2 (n-1) N       2
 *   all-to-all      (n-1) N                      n (n-1) N       1
 *
 * If n is not a power of two, the butterfly first adds the vectors of the excess ranks to those of
 * other ranks. This takes two more steps, with N bytes in each direction per excess rank.
 *
 * Sources. Ring: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms". Butterfly
 * (recursive doubling), tree (binomial) and round-robin (pairwise exchange): Thakur,
 * Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH".
 */
#ifndef GOSSIP_COLLECTIVES_COLLECTIVE_H
#define GOSSIP_COLLECTIVES_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

enum {
    COLLECTIVE_RANKS_MAX = 256, /* Maximum number of ranks of a collective. */
    COLLECTIVE_OPS_MAX = 2 * COLLECTIVE_RANKS_MAX
};

enum collective_act {
    COLLECTIVE_SEND, /* Operation: send part `part` of the rank's own vector to rank `peer`. */
    /* Operation: add the part that `peer` sent in this step to part `part` of the rank's vector. */
    COLLECTIVE_ADD,
    /* Operation: replace part `part` of the rank's vector by the part that `peer` sent in this
     * step. */
    COLLECTIVE_SET
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
    /* All functions of a schedule accept a number n of ranks from 2 to COLLECTIVE_RANKS_MAX. */
    uint32_t (*parts)(uint32_t n); /* Returns the number of parts into which the vector is cut. */
    uint32_t (*steps)(uint32_t n);
    /* Lists what `rank` sends, adds and sets in a step of the schedule: fills
     * op[0..COLLECTIVE_OPS_MAX) and returns the number of operations. */
    size_t (*ops)(uint32_t n, uint32_t rank, uint32_t step, struct collective_op *op);
};

/* All schedules, terminated by NULL, in the order of the choices of the run key `collective`
 * (peer/run/core.c). */
extern const struct collective *const collective_all[];

/* Cuts a vector of dim floats into `parts` parts: part k consists of the floats [*from, *to). */
void collective_span(size_t dim, uint32_t parts, uint32_t k, size_t *from, size_t *to);

/* Returns the number of floats of a vector of dim floats that a rank sends in all steps. n >= 1. */
uint64_t collective_floats(const struct collective *c, uint32_t n, uint32_t rank, size_t dim);

#endif
