/* topology/round_schedule.h -- round schedules: topologies that change every round.
 *
 * Some families are not one graph but a *pass*: a sequence of rounds that is repeated during the
 * whole run. Each round has its own edges and weights (not Metropolis-Hastings). For such a
 * family, graph_build() returns the union of the rounds:
 *
 *   round 0     0-1   2-3             matrix of a round   W_r: symmetric, rows sum to 1,
 *         1     0-2   1-3                                 all elements at least 0
 *   union       0-1 2-3 0-2 1-3       matrix of a pass    the product W_(R-1) ... W_0
 *
 * A schedule is a pure function of (specification, number of peers, seed). Round t of the run
 * uses round t mod n_rounds of the pass. Weights are fractions, so one can prove that the
 * product of a pass is exactly the averaging matrix.
 */
#ifndef TOPOLOGY_ROUND_SCHEDULE_H
#define TOPOLOGY_ROUND_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An edge in one round: peers a < b each move towards the other by the weight over / under, in (0,
 * 1). */
struct round_schedule_edge
{
    uint32_t round, a, b, over, under;
};

struct round_schedule
{
    /* Number of vertices, and number of rounds in a pass. n_rounds is 0 if the topology does not
     * change. */
    uint32_t n, n_rounds;
    /* True: a pass averages exactly, that is, each element of the matrix product is 1/n. */
    bool exact;
    size_t *first; /* Start of each round in the array `edge`; n_rounds + 1 elements. */
    /* Edges of all rounds. Round r has edge[first[r]] to edge[first[r + 1] - 1], sorted by a, then
     * b. */
    struct round_schedule_edge *edge;
};

/* Largest number of rounds in a pass, for topologies of up to 1,024 vertices. */
enum { ROUND_SCHEDULE_ROUNDS_MAX = 24 };

/* Returns true if the specification names a family with a round schedule, not a constant graph.
 * False if it is invalid. */
bool round_schedule_of(const char *spec);

/* Returns true if a pass of this family averages n peers exactly. For n = 1 this is true for
 * every family with rounds. False for other families and for an invalid specification. */
bool round_schedule_exact(const char *spec, uint32_t n);

/* Returns true if, for any number of peers, each peer has at most one partner in a round and the
 * two partners average with weight 1/2. False if the specification is invalid. */
bool round_schedule_pairs(const char *spec);

/* Builds the schedule for n peers. It has no rounds if the topology does not change or if n = 1.
 * Returns 0, -EINVAL or -ENOMEM, as graph_build() does. O(m log m) for m edges in all rounds. */
int round_schedule_build(struct round_schedule *r, const char *spec, uint32_t n, uint64_t seed);
void round_schedule_close(struct round_schedule *r);

static inline double round_schedule_weight(const struct round_schedule_edge *e)
{
    return (double)e->over / e->under;
}

/* Packs the weight of an edge into the number that a delta announces: the weight is (1 + more) / (1
 * + degree), packed as more << ROUND_SCHEDULE_MORE | degree. The result is never 0. Both parts are below
 * 2^ROUND_SCHEDULE_MORE if the topology has at most 2^ROUND_SCHEDULE_MORE vertices. (An edge of a constant topology has
 * more = 0.) */
enum { ROUND_SCHEDULE_MORE = 16 };
static inline uint32_t round_schedule_word(const struct round_schedule_edge *e)
{
    return (e->over - 1) << ROUND_SCHEDULE_MORE | (e->under - 1);
}

/* Computes the largest share of the consensus distance that can remain after a pass, without
 * compression: the maximum of |P x| / |x| over all x with mean 0, where P is the product of the
 * pass. Sets *share to this number in [0, 1); it is 0 if the pass is exact. Uses Lanczos
 * iteration. Returns 0 or -ENOMEM. */
int round_schedule_share(const struct round_schedule *r, double *share);

/* Load of one vertex in a pass: `busy` is the number of rounds in which the vertex has an edge,
 * `ends` is its number of edges summed over all rounds. */
struct round_schedule_load
{
    uint32_t busy, ends;
};
struct round_schedule_load round_schedule_load(const struct round_schedule *r, uint32_t v);

#endif
