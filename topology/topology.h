/* topology/topology.h -- graphs of peers, their mixing weights and spectral gap.
 *
 * A topology says which peers exchange with each other. A graph is a pure function of
 * (specification, number of peers, seed). Vertices are 0..n-1: the positions of the live members
 * in their sorted order. This folder does not use the network. Graphs are undirected, without
 * loops and multiple edges.
 *
 *   adjacency lists (compressed sparse rows):   first[n + 1], neighbour[first[n]]
 *   neighbours of v, ascending:                 neighbour[first[v] .. first[v + 1])
 *
 * Mixing weights are Metropolis-Hastings: w_ij = 1 / (1 + max(d_i, d_j)) for vertices of degrees
 * d_i and d_j. The self-weight w_ii is 1 minus the other weights of the row (Xiao, Boyd 2004).
 * Families with a round schedule (rota.h) have other weights; their graph is the union of all
 * rounds.
 */
#ifndef TOPOLOGY_TOPOLOGY_H
#define TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Size of a canonical specification in bytes, including the final NUL. Enough for about 250
     * edges of "edges:". The specification is part of the run description, which WIRE_RUN_MAX
     * limits. */
    TOPOLOGY_SPEC_MAX = 1400,
    TOPOLOGY_ERROR_MAX = 440,
    TOPOLOGY_NUMBER_MAX = 1000000 /* Largest number that a specification may contain. */
};

struct topology_edges; /* A list of edges (topology/family.h). */
struct topology_turns; /* A list of edges, each with its round (topology/family.h). */

/* A family of graphs, such as "torus". topology_all[] lists all families and ends with NULL. `arg`
 * is the text after the colon of a specification, or NULL if there is no colon. */
struct topology
{
    /* Name before the colon of a specification: "ring", "torus", "regular", ... */
    const char *name;
    const char
        /* One line of help: the syntax and a description, for example "regular:K -- a random
         * graph". */
        *help;

    /* Checks `arg` and writes its canonical form to out[0..cap) ("" for no argument). Returns 0, or
     * -EINVAL with a sentence in `error`. */
    int (*canonical)(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX]);
    /* Adds the edges of the graph for n >= 2 vertices. `arg` is canonical. The caller drops loops
     * and duplicate edges. Returns 0, -EINVAL or -ENOMEM. */
    int (*build)(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed);
    /* For a family with a round schedule (rota.h), instead of build(): adds the edges of all
     * rounds for n >= 2 vertices and sets *n_rounds (at least 1). Returns 0, -EINVAL or -ENOMEM. */
    int (*rounds)(struct topology_turns *t, uint32_t *n_rounds, const char *arg, uint32_t n,
                  uint64_t seed);
    /* For a family with rounds(): returns true if a pass averages n >= 2 peers exactly for every
     * seed, that is, each element of the matrix product is 1/n. NULL: no pass is exact. */
    bool (*exact)(uint32_t n);
    /* For a family with rounds(): true if, for any n, each vertex has at most one edge in a round
     * and that edge has weight 1/2. */
    bool pairs;
    /* Returns the number of peers that a canonical `arg` is made for, or 0 for any number. NULL:
     * any number. */
    uint32_t (*peers)(const char *arg);
};
extern const struct topology *const topology_all[];

struct graph
{
    uint32_t n;
    /* Start of each vertex's list in the array `neighbour`; n + 1 elements. */
    uint32_t *first;
    uint32_t *neighbour; /* Lists of neighbours, vertex after vertex; first[n] elements. */
};

/* Checks a specification ("ring", "torus:4x8", "regular:4", "base:1", "edges:0-1,1-2", ...) and
 * writes its canonical text. Returns 0, or -EINVAL with one sentence in `error`. A specification
 * identifies a graph and is never a file path. For "edges:FILE" the command line reads the file and
 * passes its text to topology_edges_text(). */
int topology_canonical(const char *spec, char canonical[TOPOLOGY_SPEC_MAX],
                       char error[TOPOLOGY_ERROR_MAX]);

/* Returns the number of peers that a specification is made for ("torus:4x8": 32, "edges:0-1,1-2":
 * 3). Returns 0 if any number is possible, or if the specification is invalid. */
uint32_t topology_peers(const char *spec);

/* Parses the text of an edge file (lines "i j", comments begin with #) and writes the canonical
 * specification. The text needs no final newline. Returns 0, or -EINVAL with one sentence that
 * names the line. O(len log len). */
int topology_edges_text(const char *text, size_t len, char canonical[TOPOLOGY_SPEC_MAX],
                        char error[TOPOLOGY_ERROR_MAX]);

/* Builds the graph for n peers. The graph is connected for any n >= 1, because peers join and
 * leave. If the family has no graph for n peers (regular:4 with n = 4, a torus with prime n), a
 * similar graph of the family is built; the comment on the family says which. Returns 0, -EINVAL
 * (invalid specification, n = 0, or degrees that sum to more than UINT32_MAX) or -ENOMEM. */
int graph_build(struct graph *g, const char *spec, uint32_t n, uint64_t seed);
void graph_close(struct graph *g);

uint32_t graph_degree(const struct graph *g, uint32_t v);

/* graph_connected() returns whether every vertex can reach every other. graph_eccentricity()
 * returns the number of hops from v to the vertex farthest from it, in O(m). graph_diameter()
 * returns the largest eccentricity, in O(n m). Both return UINT32_MAX if a vertex cannot be
 * reached. All three allocate scratch memory; if that fails, they report a disconnected graph. */
bool graph_connected(const struct graph *g);
uint32_t graph_eccentricity(const struct graph *g, uint32_t v);
uint32_t graph_diameter(const struct graph *g);

/* Builds a tree of shortest paths to `root`: parent[v] is the first neighbour of v that is one hop
 * closer to the root, and parent[root] is root. The graph must be connected. O(m). Returns 0 or
 * -ENOMEM. */
int graph_tree(const struct graph *g, uint32_t root, uint32_t *parent);

/* Returns the Metropolis-Hastings weight of an edge between vertices of degrees d_i and d_j. */
static inline double topology_weight(uint32_t d_i, uint32_t d_j)
{
    return 1.0 / (1.0 + (double)(d_i > d_j ? d_i : d_j));
}

/* Returns how far the model at vertex v is from the mean in the long run, with exact exchange, in
 * units of a local step. Model: in each round every peer moves by an independent random step of
 * length 1, then mixes by W. The result is the root mean square distance before mixing:
 *
 *   spread^2 = sum over k >= 0 of |W^k (e_v - 1/n)|^2
 *
 * The sum is computed to 1 %, or over 4096 rounds. Returns 0 for one vertex, and a negative number
 * if memory runs out. O(m) per round. */
double graph_spread(const struct graph *g, uint32_t v);

/* Extreme eigenvalues of the mixing matrix W: the second largest, the smallest, and the spectral
 * gap 1 - max(|lambda_2|, |lambda_n|). The gap is 0 for a disconnected graph. One vertex has 0, 0
 * and gap 1. Computed by Lanczos iteration to 1e-9 or better. */
struct spectrum
{
    double lambda_2, lambda_n, gap;
};
int graph_spectrum(const struct graph *g, struct spectrum *s); /* Returns 0 or -ENOMEM. */

/* Returns the momentum m in [0, 1) with which x(k+1) = W x(k) + m (x(k) - x(k-1)) reaches the mean
 * fastest (heavy ball, Polyak 1964). The error shrinks by the factor sqrt(m) per round. On a ring
 * of n vertices this factor is 1 - O(1/n), compared with 1 - O(1/n^2) without momentum. */
double spectrum_momentum(const struct spectrum *s);

#endif
