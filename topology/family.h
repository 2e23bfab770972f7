/* topology/family.h -- internal interface of topology/: functions for writing a graph family. */
#ifndef TOPOLOGY_FAMILY_H
#define TOPOLOGY_FAMILY_H

#include "topology/round_schedule.h"
#include "topology/topology.h"

/* A list of undirected edges in any order. Duplicates and loops are allowed; topology_edges_graph()
 * drops them. */
struct topology_edges
{
    uint32_t (*pair)[2];
    size_t n, cap;
};

/* Appends one edge. Returns 0 or -ENOMEM. */
int topology_edges_add(struct topology_edges *e, uint32_t a, uint32_t b);

/* Builds the graph `g` with n vertices from a list of edges. On failure (-EINVAL: too many edges,
 * or -ENOMEM) `g` is empty. O(n + m log degree) for m edges. */
int topology_edges_graph(const struct topology_edges *e, uint32_t n, struct graph *g);

/* Edges of all rounds of a pass (rota.h), in any order, without duplicates. */
struct topology_turns
{
    struct round_schedule_edge *edge;
    size_t n, cap;
};

/* Appends one edge of a round. Returns 0 or -ENOMEM. */
int topology_turns_add(struct topology_turns *t, struct round_schedule_edge e);

/* Adds the edges of all rounds of a family with a round schedule. Returns the error of the
 * family's rounds(). */
int topology_turns_union(struct topology_edges *e, const struct topology *family, const char *arg,
                         uint32_t n, uint64_t seed);

/* Returns the family that a specification names, or NULL. Sets *arg to the text after the colon,
 * or NULL if there is no colon. */
const struct topology *topology_family(const char *spec, const char **arg);

/* Reads a decimal integer at *text without sign or spaces, at most TOPOLOGY_NUMBER_MAX, and
 * advances *text past it. Returns false if the text has no such number. */
bool topology_number(const char **text, uint32_t *value);

/* Implements canonical() of topology.h for families without an argument: accepts "ring", not
 * "ring:3". */
int topology_no_argument(const char *family, const char *arg, char *out,
                         char error[TOPOLOGY_ERROR_MAX]);

/* Sides of a grid, for families whose peers are arranged in rows and columns. Their argument is
 * "RxC" or absent.
 *
 * topology_sides_canonical() implements canonical() of topology.h. topology_sides_peers() returns R
 * * C. topology_sides_for() sets the sides for n peers: R and C if R * C = n, otherwise the factors
 * of n that are closest to each other, provided that the long side is at most twice the short one
 * (16: 4x4, 32: 4x8). It returns false if n has no such factors. */
struct topology_sides
{
    uint32_t rows, cols;
};
int topology_sides_canonical(const char *family, const char *arg, char *out, size_t cap,
                             char error[TOPOLOGY_ERROR_MAX]);
uint32_t topology_sides_peers(const char *arg);
bool topology_sides_for(const char *arg, uint32_t n, struct topology_sides *s);

/* Argument of a family that is one integer in [least, most]. `wanted` describes the valid argument
 * in the error message. topology_one_number() implements canonical() of topology.h for such a
 * family. */
struct topology_one
{
    const char *family;
    uint32_t least, most;
    const char *wanted;
};
int topology_one_number(const struct topology_one *one, const char *arg, char *out, size_t cap,
                        char error[TOPOLOGY_ERROR_MAX]);

/* Writes an error sentence "FAMILY: found 'X', expected Y". Returns -EINVAL. `found` may be any
 * text: it is shortened, and unprintable characters are replaced. */
int topology_refuse(char error[TOPOLOGY_ERROR_MAX], const char *family, const char *found,
                    const char *expected);

extern const struct topology topology_ring, topology_path, topology_star, topology_tree,
    topology_trees, topology_grid, topology_torus, topology_hypercube, topology_exponential,
    topology_bipartite, topology_complete, topology_regular, topology_er, topology_small_world,
    topology_base, topology_one_peer, topology_rotation, topology_matching, topology_edges_family;

#endif
