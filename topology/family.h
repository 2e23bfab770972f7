/* topology/family.h -- inside topology/ only: edges being collected, numbers in specs. */
#ifndef TOPOLOGY_FAMILY_H
#define TOPOLOGY_FAMILY_H

#include "topology/rota.h"
#include "topology/topology.h"

/* Undirected edges in any order, each once or more, loops allowed: what is
 * double or a loop is dropped when the graph is made of them. */
struct topology_edges
{
    uint32_t (*pair)[2];
    size_t n, cap;
};

/* Append one edge. 0 or -ENOMEM. */
int topology_edges_add(struct topology_edges *e, uint32_t a, uint32_t b);

/* Make g, of n vertices, from the edges. On failure (-EINVAL: too many;
 * -ENOMEM) g holds nothing. O(n + m log degree). */
int topology_edges_graph(const struct topology_edges *e, uint32_t n, struct graph *g);

/* Edges of the rounds of a pass, in any order, none of them twice. */
struct topology_turns
{
    struct rota_edge *edge;
    size_t n, cap;
};

/* Append one edge. 0 or -ENOMEM. */
int topology_turns_add(struct topology_turns *t, struct rota_edge e);

/* Add the edges of all rounds of a family that has some. Returns as its rounds() does. */
int topology_turns_union(struct topology_edges *e, const struct topology *family, const char *arg,
                         uint32_t n, uint64_t seed);

/* The family that a spec names, and its argument, NULL without one; NULL: there is none. */
const struct topology *topology_family(const char *spec, const char **arg);

/* Read a whole number of at most TOPOLOGY_NUMBER_MAX, no sign, no blank, at
 * *text and move *text behind it. */
bool topology_number(const char **text, uint32_t *value);

/* canonical() of topology.h for families that take no argument, "ring" and not "ring:3". */
int topology_no_argument(const char *family, const char *arg, char *out,
                         char error[TOPOLOGY_ERROR_MAX]);

/* For families that stand in rows and columns: canonical() of an argument "RxC" or none, the peers it
 * is made for, and the sides for n peers: as asked where R * C is n, else those that are nearest to each
 * other, if the long side is at most twice the short one (16: 4x4, 32: 4x8). False: there are none. */
struct topology_sides
{
    uint32_t rows, cols;
};
int topology_sides_canonical(const char *family, const char *arg, char *out, size_t cap,
                             char error[TOPOLOGY_ERROR_MAX]);
uint32_t topology_sides_peers(const char *arg);
bool topology_sides_for(const char *arg, uint32_t n, struct topology_sides *s);

/* For families whose argument is one whole number, from `least` to `most`: canonical() of topology.h.
 * `wanted` completes the sentence of topology_refuse(). */
struct topology_one
{
    const char *family;
    uint32_t least, most;
    const char *wanted;
};
int topology_one_number(const struct topology_one *one, const char *arg, char *out, size_t cap,
                        char error[TOPOLOGY_ERROR_MAX]);

/* Write a sentence; returns -EINVAL. What was found may be anything: it is
 * cut short and made printable. */
int topology_refuse(char error[TOPOLOGY_ERROR_MAX], const char *family, const char *found,
                    const char *expected);

extern const struct topology topology_ring, topology_path, topology_star, topology_tree,
    topology_trees, topology_grid, topology_torus, topology_hypercube, topology_exponential,
    topology_bipartite, topology_complete, topology_regular, topology_er, topology_small_world,
    topology_base, topology_one_peer, topology_rotation, topology_matching, topology_edges_family;

#endif
