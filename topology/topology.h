/* topology/topology.h -- graphs of peers, their mixing weights and spectral gap.
 *
 * A topology says which peers exchange model updates with each other. Its graph is a pure function
 * of the specification, the number of peers and a seed, so every peer computes the same graph. The
 * vertices are the numbers 0 to n - 1. Vertex i is the i-th live member in sorted order. Graphs are
 * undirected, without loops and multiple edges. A graph is stored as adjacency lists (compressed
 * sparse rows):
 *
 *   arrays:                       first[n + 1], neighbour[first[n]]
 *   neighbours of v, ascending:   neighbour[first[v]] to neighbour[first[v + 1] - 1]
 *
 * The mixing weights are those of Metropolis-Hastings: w_ij = 1 / (1 + max(d_i, d_j)) for an edge
 * between vertices of degrees d_i and d_j (Xiao, Boyd 2004). The weight w_ii of a vertex itself is
 * 1 minus the sum of its other weights. Topologies that change every round (round_schedule.h) have
 * other weights. Their graph is the union of the edges of all rounds.
 */
#ifndef TOPOLOGY_TOPOLOGY_H
#define TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Size of a buffer for a canonical specification in bytes, including the final NUL. There is
     * room for about 250 edges of "edges:". The specification is a part of the run description,
     * which must not exceed WIRE_RUN_MAX bytes. */
    TOPOLOGY_SPEC_MAX = 1400,
    /* Size of a buffer for an error sentence in bytes, including the final NUL. */
    TOPOLOGY_ERROR_MAX = 440,
    TOPOLOGY_NUMBER_MAX = 1000000 /* Largest number that a specification may contain. */
};

struct topology_edges; /* A list of edges under construction (topology/family.h). */
/* A list of edges under construction, each with its round (topology/family.h). */
struct topology_turns;

/* A family of graphs, such as "torus". The array topology_all[] lists all families and ends with
 * NULL. In all functions, `arg` is the text after the colon of a specification, or NULL if there is
 * no colon. */
struct topology
{
    /* Name before the colon of a specification: "ring", "torus", "regular", ... */
    const char *name;
    /* One line of help: the syntax and a description, such as "regular:K -- a random graph". */
    const char *help;

    /* Checks `arg` and writes its canonical form to out[0..cap), or "" if there is no argument.
     * Returns 0, or -EINVAL with a sentence in `error`. */
    int (*canonical)(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX]);
    /* Adds the edges of the graph of n >= 2 vertices to `e`. `arg` is canonical. Loops and
     * duplicate edges are allowed, because the caller drops them. Returns 0, -EINVAL or -ENOMEM. */
    int (*build)(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed);
    /* Replaces build() for a topology that changes every round (round_schedule.h). Adds the edges
     * of all rounds for n >= 2 vertices to `t` and sets *n_rounds, at least 1. Returns 0, -EINVAL
     * or -ENOMEM. */
    int (*rounds)(struct topology_turns *t, uint32_t *n_rounds, const char *arg, uint32_t n,
                  uint64_t seed);
    /* Only for a family with rounds(). Returns true if one pass through all rounds averages n >= 2
     * peers exactly for every seed: each element of the product of the mixing matrices is 1/n.
     * NULL: no pass is exact. */
    bool (*exact)(uint32_t n);
    /* True: in each round each vertex has at most one edge, with weight 1/2, for every n. Only for
     * a family with rounds(). */
    bool pairs;
    /* Returns the number of peers that the graph with a canonical `arg` has (torus:4x8: 32), or 0
     * if any number is possible. If this pointer is NULL, any number is possible. */
    uint32_t (*peers)(const char *arg);
};
extern const struct topology *const topology_all[];

/* An undirected graph as adjacency lists (see the top of this file). */
struct graph
{
    uint32_t n; /* Number of vertices. */
    /* Index in `neighbour` at which the list of each vertex begins. n + 1 elements. */
    uint32_t *first;
    /* Neighbours of vertex 0, then of vertex 1, and so on. first[n] elements. */
    uint32_t *neighbour;
};

/* Checks a specification ("ring", "torus:4x8", "regular:4", "base:1", "edges:0-1,1-2", ...) and
 * writes its canonical text. Returns 0, or -EINVAL with one sentence in `error`. A specification is
 * never a file path. For "edges:FILE" the command line reads the file and passes its content to
 * topology_edges_text(). */
int topology_canonical(const char *spec, char canonical[TOPOLOGY_SPEC_MAX],
                       char error[TOPOLOGY_ERROR_MAX]);

/* Returns the number of peers that a specification is made for: 32 for "torus:4x8", 3 for
 * "edges:0-1,1-2". Returns 0 if any number is possible, or if the specification is invalid. */
uint32_t topology_peers(const char *spec);

/* Parses the content of an edge file and writes the canonical specification. Each line is an edge
 * "i j", and # begins a comment. The last line needs no newline. Returns 0, or -EINVAL with one
 * sentence that names the line. O(len log len). */
int topology_edges_text(const char *text, size_t len, char canonical[TOPOLOGY_SPEC_MAX],
                        char error[TOPOLOGY_ERROR_MAX]);

/* Builds the graph of n peers, which is connected for every n >= 1, because peers join and leave.
 * If the family has no graph of n vertices (regular:4 with n = 4, a torus with prime n), a similar
 * graph is built, which the comment on the family describes. Returns 0, -EINVAL (invalid
 * specification, n = 0, or degrees with a sum above UINT32_MAX) or -ENOMEM. */
int graph_build(struct graph *g, const char *spec, uint32_t n, uint64_t seed);
void graph_close(struct graph *g);

/* Returns the number of neighbours of vertex v. */
uint32_t graph_degree(const struct graph *g, uint32_t v);

/* graph_connected() returns true if every vertex can reach every other vertex. graph_eccentricity()
 * returns the number of hops from v to the vertex farthest from it, in O(m) for m edges.
 * graph_diameter() returns the largest eccentricity of all vertices, in O(n m). The last two return
 * UINT32_MAX if the graph is not connected. All three allocate memory. If that fails, they report a
 * graph that is not connected. */
bool graph_connected(const struct graph *g);
uint32_t graph_eccentricity(const struct graph *g, uint32_t v);
uint32_t graph_diameter(const struct graph *g);

/* Builds a tree of shortest paths to the vertex `root`. parent[v] becomes the first neighbour of v
 * that is one hop closer to the root, and parent[root] becomes root. The graph must be connected.
 * O(m) for m edges. Returns 0 or -ENOMEM. */
int graph_tree(const struct graph *g, uint32_t root, uint32_t *parent);

/* Returns the Metropolis-Hastings weight of an edge between vertices of degrees d_i and d_j. */
static inline double topology_weight(uint32_t d_i, uint32_t d_j)
{
    return 1.0 / (1.0 + (double)(d_i > d_j ? d_i : d_j));
}

/* Returns how far the model at vertex v is from the mean of all models in the long run, in units of
 * the length of a local step. The computation assumes that in each round every peer moves by an
 * independent random step of length 1, and that the models are then mixed exactly by W. The result
 * is the root mean square of the distance before mixing, where e_v is the unit vector of v:
 *
 *   spread^2 = sum over k >= 0 of |W^k (e_v - 1/n)|^2
 *
 * The sum ends when a term is below 1e-4 of the sum, or after 4096 terms. On graphs with a small
 * spectral gap the result is therefore too small: by 1 % on a ring of 64 vertices, by 10 % on a
 * ring of 256. Returns 0 for one vertex, and a negative number if memory runs out. O(m) per term
 * for m edges.
 */
double graph_spread(const struct graph *g, uint32_t v);

/* Extreme eigenvalues of the mixing matrix W: lambda_2 is the second largest, lambda_n the
 * smallest, and gap is the spectral gap 1 - max(|lambda_2|, |lambda_n|). The gap of a graph that is
 * not connected is 0. A graph of one vertex has the eigenvalues 0 and 0 and the gap 1. The error is
 * 1e-9 or less (Lanczos iteration). */
struct spectrum
{
    double lambda_2, lambda_n, gap;
};
/* Computes the extreme eigenvalues of the mixing matrix. Returns 0 or -ENOMEM. */
int graph_spectrum(const struct graph *g, struct spectrum *s);

/* Returns the momentum m in [0, 1) with which gossip x(k+1) = W x(k) + m (x(k) - x(k-1)) converges
 * to the mean fastest (heavy ball method, Polyak 1964). The error shrinks by the factor sqrt(m) per
 * round. On a ring of n vertices this factor is 1 - O(1/n), compared with 1 - O(1/n^2) without
 * momentum. */
double spectrum_momentum(const struct spectrum *s);

#endif
