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

/* For families whose argument is one whole number, `least` or more: canonical() of topology.h.
 * `wanted` completes the sentence of topology_refuse(). */
struct topology_one
{
    const char *family;
    uint32_t least;
    const char *wanted;
};
int topology_one_number(const struct topology_one *one, const char *arg, char *out, size_t cap,
                        char error[TOPOLOGY_ERROR_MAX]);

/* Write a sentence; returns -EINVAL. What was found may be anything: it is
 * cut short and made printable. */
int topology_refuse(char error[TOPOLOGY_ERROR_MAX], const char *family, const char *found,
                    const char *expected);

extern const struct topology topology_ring, topology_star, topology_torus, topology_complete,
    topology_exponential, topology_regular, topology_base, topology_edges_family;

#endif
