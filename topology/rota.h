/* topology/rota.h -- graphs that change by round: whose turn it is, and with which weight.
 *
 * Some families are no one graph but a *pass* of rounds, gone through again and again. Each
 * round has edges and weights of its own (not those of Metropolis and Hastings), and the
 * graph that graph_build() gives of such a family is the union of the rounds:
 *
 *   round 0     0-1   2-3             of each round     W_r symmetric, rows sum to 1,
 *         1     0-2   1-3                               all elements at least 0
 *   union       0-1 2-3 0-2 1-3       of the pass       the product W_(R-1) ... W_0
 *
 * Like a graph a rota is a pure function of (spec, number of peers, seed); the run's round t
 * is round t mod n_rounds of the pass. Weights are fractions, so that a product can be shown
 * to be exactly what it should be.
 */
#ifndef TOPOLOGY_ROTA_H
#define TOPOLOGY_ROTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In this round a and b, of which a is the smaller, each move towards the other by the weight
 * over / under, which is in (0, 1). */
struct rota_edge
{
    uint32_t round, a, b, over, under;
};

struct rota
{
    uint32_t n, n_rounds;   /* Vertices; rounds of a pass, 0 where there is none. */
    bool exact;             /* The product of a pass is 1/n in every place: it is the mean. */
    size_t *first;          /* n_rounds + 1; the edges of round r are */
    struct rota_edge *edge; /* edge[first[r]] to edge[first[r + 1] - 1], ordered by a and b. */
};

/* No pass has more rounds, of 1,024 vertices. */
enum { ROTA_ROUNDS_MAX = 24 };

/* Is the spec that of a family of rounds? False for a bad spec. */
bool rota_of(const char *spec);

/* And is a pass of it, for n peers, exactly the mean? Of one peer: yes, if it is of such a family. */
bool rota_exact(const char *spec, uint32_t n);

/* Has a peer at most one partner a round, and do both take the mean of the two, however many peers there are?
 * False for a bad spec. */
bool rota_pairs(const char *spec);

/* The pass of a spec for n peers; of one whose graph stands still, and of one peer, it has no
 * rounds. Returns as graph_build() does. O(m log m) for m edges in all rounds. */
int rota_build(struct rota *r, const char *spec, uint32_t n, uint64_t seed);
void rota_close(struct rota *r);

static inline double rota_weight(const struct rota_edge *e)
{
    return (double)e->over / e->under;
}

/* The weight as the two numbers that a delta announces: (1 + more) / (1 + degree), where an edge of a
 * graph that stands still has more = 0. In one: more << ROTA_MORE | degree, never 0. Both are less
 * than 2^ROTA_MORE where there are at most as many vertices. */
enum { ROTA_MORE = 16 };
static inline uint32_t rota_word(const struct rota_edge *e)
{
    return (e->over - 1) << ROTA_MORE | (e->under - 1);
}

/* How much of the consensus distance a pass leaves, at most and without compression: the greatest
 * |P x| / |x| of its product P, of all x whose mean is 0; 0 where it is exact. *share is in [0, 1).
 * By Lanczos' iteration; 0 or -ENOMEM. */
int rota_share(const struct rota *r, double *share);

/* In how many rounds of the pass has vertex v an edge, and how many ends of edges in all? */
struct rota_load
{
    uint32_t busy, ends;
};
struct rota_load rota_load(const struct rota *r, uint32_t v);

#endif
