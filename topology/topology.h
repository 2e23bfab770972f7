/* topology/topology.h -- who talks to whom: graphs, mixing weights, spectral gap.
 *
 * A graph is a pure function of (spec, number of peers, seed). Vertices are
 * 0..n-1, the places of the live members in their sorted order; this folder
 * knows nothing of networks. Graphs are undirected and simple.
 *
 *   adjacency, compressed sparse rows:   first[n + 1], neighbour[first[n]]
 *   neighbours of v: neighbour[first[v] .. first[v + 1]), ascending
 *
 * Mixing weights are Metropolis-Hastings: w_ij = 1 / (1 + max(d_i, d_j)), the
 * self-weight takes the rest (Xiao, Boyd 2004). Families whose edges change by round
 * (rota.h) have weights of their own; as a graph they are the union of their rounds.
 */
#ifndef TOPOLOGY_TOPOLOGY_H
#define TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes of a canonical spec, with the NUL: about 250 edges of "edges:". It
     * is part of the run's text, which WIRE_RUN_MAX limits. */
    TOPOLOGY_SPEC_MAX = 1400,
    TOPOLOGY_ERROR_MAX = 440,
    TOPOLOGY_NUMBER_MAX = 1000000 /* No number in a spec may be larger. */
};

struct topology_edges; /* topology/family.h: edges being collected, */
struct topology_turns; /* and those of rounds. */

/* A family of graphs, one line of topology_all[], NULL-terminated. `arg` is
 * what stands behind the spec's colon, NULL where there is none. */
struct topology
{
    const char *name; /* "ring", "torus", "regular", ...; what stands in front of the colon. */
    const char
        *help; /* One line, "regular:K -- a random graph": how it is written, and what it is. */

    /* Check arg and write it canonically to out[0..cap), "" for none. 0, or
     * -EINVAL with a sentence in error. */
    int (*canonical)(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX]);
    /* Add the edges for n >= 2 vertices; loops and doubles are dropped by the
     * caller. arg is canonical. 0, -EINVAL or -ENOMEM. */
    int (*build)(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed);
    /* In place of build() where edges change by round: add those of all rounds for n >= 2
     * vertices, and set *n_rounds, 1 or more. Returns the same. */
    int (*rounds)(struct topology_turns *t, uint32_t *n_rounds, const char *arg, uint32_t n,
                  uint64_t seed);
    /* With rounds(): is the product of a pass for n >= 2 peers 1/n in every place, whatever the seed?
     * NULL: never. */
    bool (*exact)(uint32_t n);
    /* With rounds(): has no vertex more than one edge in a round, whose weight is 1/2, for any n? */
    bool pairs;
    /* How many peers a canonical arg is made for, 0 for any; NULL: any. */
    uint32_t (*peers)(const char *arg);
};
extern const struct topology *const topology_all[];

struct graph
{
    uint32_t n;
    uint32_t *first;     /* n + 1 */
    uint32_t *neighbour; /* first[n] */
};

/* Check a spec ("ring", "torus:4x8", "regular:4", "base:1", "edges:0-1,1-2", ...) and write its
 * canonical text. Returns 0 or
 * -EINVAL with one sentence in error. A spec is the graph's identity, never a
 * path: the command line reads a user's "edges:FILE" and hands the edges
 * themselves to topology_edges_text(). */
int topology_canonical(const char *spec, char canonical[TOPOLOGY_SPEC_MAX],
                       char error[TOPOLOGY_ERROR_MAX]);

/* How many peers a spec is made for ("torus:4x8": 32, "edges:0-1,1-2": 3);
 * 0 for any number, and for a bad spec. */
uint32_t topology_peers(const char *spec);

/* Read the text of an edge file, "i j" lines with # comments, and write the
 * canonical spec. Returns 0 or -EINVAL with one sentence that names the line.
 * Needs no final newline; O(len log len). */
int topology_edges_text(const char *text, size_t len, char canonical[TOPOLOGY_SPEC_MAX],
                        char error[TOPOLOGY_ERROR_MAX]);

/* Build the graph for n peers. Any n >= 1 gives a connected graph, since peers
 * come and go: where the family has none for this n (regular:4 with n = 4,
 * torus with a prime n) the nearest sensible one of it is taken, and the
 * family's docstring says which. Returns 0, -EINVAL (a bad spec, no peers, or
 * more than UINT32_MAX ends of edges) or -ENOMEM. */
int graph_build(struct graph *g, const char *spec, uint32_t n, uint64_t seed);
void graph_close(struct graph *g);

uint32_t graph_degree(const struct graph *g, uint32_t v);

/* Hops to the vertex farthest from v, and from any; UINT32_MAX where some
 * vertex cannot be reached. O(m) and O(n m). These and graph_connected()
 * allocate scratch; without memory they answer as if disconnected. */
bool graph_connected(const struct graph *g);
uint32_t graph_eccentricity(const struct graph *g, uint32_t v);
uint32_t graph_diameter(const struct graph *g);

/* A tree of shortest paths to `root`: parent[v] is v's first neighbour that is a hop
 * nearer to it, parent[root] is root. g must be connected. O(m). 0 or -ENOMEM. */
int graph_tree(const struct graph *g, uint32_t root, uint32_t *parent);

/* The Metropolis-Hastings weight of an edge between degrees d_i and d_j. */
static inline double topology_weight(uint32_t d_i, uint32_t d_j)
{
    return 1.0 / (1.0 + (double)(d_i > d_j ? d_i : d_j));
}

/* How far apart models come under exact exchange, at this vertex: if in every
 * round each peer moves by an independent step of length 1 and then mixes by W,
 * the rms distance from the mean before it mixes,
 *
 *   spread^2 = sum over k >= 0 of |W^k (e_v - 1/n)|^2
 *
 * to 1 % or by 4096 rounds of it. 0 for one vertex; a negative number without
 * memory. O(edges) a round. */
double graph_spread(const struct graph *g, uint32_t v);

/* Eigenvalues of the mixing matrix W that matter: the second largest, the
 * smallest, and gap = 1 - max(|lambda_2|, |lambda_n|) (0 if disconnected; of
 * one vertex: 0, 0 and 1). By Lanczos iteration, to 1e-9 or better. */
struct spectrum
{
    double lambda_2, lambda_n, gap;
};
int graph_spectrum(const struct graph *g, struct spectrum *s); /* 0 or -ENOMEM. */

/* The momentum m, in [0, 1), with which x(k+1) = W x(k) + m (x(k) - x(k-1)) brings vertices
 * together fastest (heavy ball; Polyak 1964): the errors shrink by sqrt(m) a round, on a
 * ring of n by 1 - O(1/n) where without momentum it is 1 - O(1/n^2). */
double spectrum_momentum(const struct spectrum *s);

#endif
