/* topology/family.h -- functions shared by the files that define graph families. Internal header of
 * topology/. */
#ifndef TOPOLOGY_FAMILY_H
#define TOPOLOGY_FAMILY_H

#include "topology/round_schedule.h"
#include "topology/topology.h"

/* A list of n undirected edges in any order. Duplicates and loops are allowed, because
 * topology_edges_graph() drops them. */
struct topology_edges
{
    /* The two vertices of each edge. n edges are in use, and there is room for `cap` edges. */
    uint32_t (*pair)[2];
    size_t n, cap;
};

/* Appends one edge. Returns 0 or -ENOMEM. */
int topology_edges_add(struct topology_edges *e, uint32_t a, uint32_t b);

/* Builds the graph `g` with n vertices from a list of edges. Returns 0, -EINVAL (too many edges) or
 * -ENOMEM. After an error `g` is empty. O(n + m log degree) for m edges. */
int topology_edges_graph(const struct topology_edges *e, uint32_t n, struct graph *g);

/* A list of n edges, each with its round and weight (round_schedule.h), in any order. No edge may
 * be twice in one round. */
struct topology_turns
{
    struct round_schedule_edge *edge;
    size_t n, cap;
};

/* Appends one edge with its round and weight. Returns 0 or -ENOMEM. */
int topology_turns_add(struct topology_turns *t, struct round_schedule_edge e);

/* Collects the edges of all rounds in one list, for a topology that changes every round. Returns 0
 * or the error of topology.rounds(). */
int topology_turns_union(struct topology_edges *e, const struct topology *family, const char *arg,
                         uint32_t n, uint64_t seed);

/* Returns the family that a specification names, or NULL if no family has the name. Sets *arg to
 * the text after the colon, or to NULL if there is no colon. */
const struct topology *topology_family(const char *spec, const char **arg);

/* Reads a decimal integer in [0, TOPOLOGY_NUMBER_MAX] without sign or spaces at *text, and advances
 * *text past it. Returns false if there is no such integer. */
bool topology_number(const char **text, uint32_t *value);

/* Implements topology.canonical() for a family without an argument: "ring" is valid, "ring:3" is
 * not. */
int topology_no_argument(const char *family, const char *arg, char *out,
                         char error[TOPOLOGY_ERROR_MAX]);

/* Number of rows and columns, for families that arrange the peers in a grid. The argument of such a
 * family is "RxC" or absent. Three functions serve these families:
 *
 * topology_sides_canonical() implements topology.canonical(). topology_sides_peers() returns R * C.
 * topology_sides_for() sets the sides for n peers. If R * C = n, the sides are R and C. Otherwise
 * they are the two factors of n that are closest to each other: 4x4 for 16 peers, 4x8 for 32. If
 * the long side would be more than twice the short side, topology_sides_for() returns false.
 */
struct topology_sides
{
    uint32_t rows, cols;
};
int topology_sides_canonical(const char *family, const char *arg, char *out, size_t cap,
                             char error[TOPOLOGY_ERROR_MAX]);
uint32_t topology_sides_peers(const char *arg);
bool topology_sides_for(const char *arg, uint32_t n, struct topology_sides *s);

/* Describes the argument of a family that takes one integer in [least, most]. topology_one_number()
 * implements topology.canonical() for such a family. `wanted` describes a valid argument, for the
 * error message. */
struct topology_one
{
    const char *family;
    uint32_t least, most;
    const char *wanted;
};
int topology_one_number(const struct topology_one *one, const char *arg, char *out, size_t cap,
                        char error[TOPOLOGY_ERROR_MAX]);

/* Writes an error sentence "FAMILY: found 'X', expected Y" and returns -EINVAL. `found` may be any
 * text: it is shortened, and unprintable characters are replaced. */
int topology_refuse(char error[TOPOLOGY_ERROR_MAX], const char *family, const char *found,
                    const char *expected);

extern const struct topology topology_ring, topology_path, topology_star, topology_tree,
    topology_trees, topology_grid, topology_torus, topology_hypercube, topology_exponential,
    topology_bipartite, topology_complete, topology_regular, topology_er, topology_small_world,
    topology_base, topology_one_peer, topology_rotation, topology_matching, topology_edges_family;

#endif
