/* topology/round_schedule.h -- round schedules: topologies that change every round.
 *
 * Some topologies are not one graph but a *pass*: a sequence of rounds that is repeated during the
 * whole run. Each round has its own edges and its own weights, which differ from the
 * Metropolis-Hastings weights of constant graphs. For such a topology, graph_build() returns the
 * union of the edges of all rounds. Example with two rounds and four peers:
 *
 *   round 0     0-1   2-3             matrix of a round   W_r: symmetric, rows sum to 1,
 *         1     0-2   1-3                                 all elements at least 0
 *   union       0-1 2-3 0-2 1-3       matrix of a pass    the product W_(R-1) ... W_0
 *
 * A schedule is a pure function of the specification, the number of peers and a seed. Round t of
 * the run uses round t mod n_rounds of the pass. Weights are fractions of integers, so that tests
 * can prove that the product of a pass is exactly the averaging matrix.
 */
#ifndef TOPOLOGY_ROUND_SCHEDULE_H
#define TOPOLOGY_ROUND_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An edge between peers a < b in one round of a pass. Each of the two peers moves towards the other
 * by the weight `over` / `under`, which is in (0, 1). */
struct round_schedule_edge
{
    uint32_t round, a, b, over, under;
};

/* The schedule of a topology that changes by round: the rounds of one pass, for n peers. */
struct round_schedule
{
    /* Number of peers, and number of rounds in a pass (sequence of rounds that is repeated).
     * n_rounds is 0 if the topology does not change. */
    uint32_t n, n_rounds;
    /* True: after one pass all peers hold the exact mean, because each element of the product of
     * the mixing matrices of its rounds is 1/n. */
    bool exact;
    size_t *first; /* Index in `edge` at which each round begins. n_rounds + 1 elements. */
    /* Edges of all rounds. Round r has edge[first[r]] to edge[first[r + 1] - 1], sorted by a and
     * then by b. */
    struct round_schedule_edge *edge;
};

/* Largest number of rounds in a pass of the families `rotation` and `matching`. */
enum { ROUND_SCHEDULE_ROUNDS_MAX = 24 };

/* Returns true if the specification names a topology that changes every round. Returns false for a
 * constant graph and for an invalid specification. */
bool round_schedule_of(const char *spec);

/* Returns true if one pass of this topology averages n peers exactly. Returns true for n = 1 if the
 * topology changes every round. Returns false for a constant graph and for an invalid
 * specification. */
bool round_schedule_exact(const char *spec, uint32_t n);

/* Returns true if each peer has at most one partner in a round, for any number of peers, and both
 * partners take the mean of their models (weight 1/2). Returns false if the specification is
 * invalid. */
bool round_schedule_pairs(const char *spec);

/* Builds the schedule for n peers. The schedule has no rounds if the topology does not change or if
 * n = 1. Returns 0, -EINVAL (invalid specification or n = 0) or -ENOMEM. O(m log m) for m edges in
 * all rounds. */
int round_schedule_build(struct round_schedule *r, const char *spec, uint32_t n, uint64_t seed);
void round_schedule_close(struct round_schedule *r);

/* Returns the mixing weight of an edge, `over` / `under`. */
static inline double round_schedule_weight(const struct round_schedule_edge *e)
{
    return (double)e->over / e->under;
}

/* Packs the weight `over` / `under` of an edge into the 32-bit number that a delta contains: `over`
 * - 1 in the high 16 bits and `under` - 1 in the low 16 bits. Both fit if the topology has at most
 * 2^16 vertices. The result is never 0. (The same number for an edge of a constant topology has 0
 * in the high bits and a vertex degree in the low bits, because its weight is 1 / (1 + degree).) */
enum { ROUND_SCHEDULE_MORE = 16 };
static inline uint32_t round_schedule_word(const struct round_schedule_edge *e)
{
    return (e->over - 1) << ROUND_SCHEDULE_MORE | (e->under - 1);
}

/* Computes the largest share of the consensus distance that can remain after one pass without
 * compression. This is the maximum of |P x| / |x| over all vectors x with mean 0, where P is the
 * product of the mixing matrices of all rounds of the pass. Sets *share to this number, which is in
 * [0, 1), and 0 if the pass is exact. Returns 0 or -ENOMEM. Uses Lanczos iteration. */
int round_schedule_share(const struct round_schedule *r, double *share);

/* Load of one peer in a pass: `busy` is the number of rounds in which the peer has an edge, and
 * `ends` is its number of edges, summed over all rounds. */
struct round_schedule_load
{
    uint32_t busy, ends;
};
/* Computes the load of peer v (see struct round_schedule_load). */
struct round_schedule_load round_schedule_load(const struct round_schedule *r, uint32_t v);

#endif
