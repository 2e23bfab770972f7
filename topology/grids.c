/* topology/grids.c -- the families path, grid, (incomplete) hypercube and bipartite.
 *
 * The vertices of these graphs can have different degrees, because vertices at a border have fewer
 * neighbours. The graphs of families.c have no border.
 */
#include "topology/family.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* ---- path: a ring that is cut between the last peer and the first. ---- */

static int path_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("path", arg, out, error);
}

static int path_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    int err = 0;
    for (uint32_t i = 0; i + 1 < n && err == 0; i++)
        err = topology_edges_add(e, i, i + 1);
    return err;
}

const struct topology topology_path = {
    .name = "path",
    .help = "path -- a line of peers: a ring cut at one edge",
    .canonical = path_canonical,
    .build = path_build,
};

/* ---- grid: `rows` x `cols` peers, with peer i in row i / cols and column i % cols. Each peer has
 * edges to its left, right, upper and lower neighbour. A grid is a torus with rows and columns that
 * are not closed.
 *
 * "grid:RxC" is this graph for R * C peers. For any other number of peers, and for "grid", the
 * sides are the factors of n that a torus would have (families.c). If n has no such factors, the
 * grid has ceil(sqrt(n)) columns and the last row is incomplete (13 peers: rows of 4, 4, 4 and 1).
 * ----
 */

static int grid_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    return topology_sides_canonical("grid", arg, out, cap, error);
}

static int grid_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)seed;
    struct topology_sides s;
    int err = 0;
    if (!topology_sides_for(arg, n, &s))
        s.cols = (uint32_t)ceil(sqrt((double)n));
    for (uint32_t i = 0; i < n && err == 0; i++) {
        if (i % s.cols + 1 < s.cols && i + 1 < n)
            err = topology_edges_add(e, i, i + 1);
        if (err == 0 && n - i > s.cols)
            err = topology_edges_add(e, i, i + s.cols);
    }
    return err;
}

const struct topology topology_grid = {
    .name = "grid",
    .help = "grid[:RxC] -- a grid with borders: up to four neighbours per peer",
    .canonical = grid_canonical,
    .build = grid_build,
    .peers = topology_sides_peers,
};

/* ---- hypercube: peers whose numbers differ in exactly one bit are neighbours.
 *
 * If n is not a power of two, this is the incomplete hypercube (Katseff 1988): the hypercube of the
 * next power of two without the numbers of n and above. The graph is connected, because clearing
 * one bit of a number gives a smaller neighbour, and so on down to 0. ----
 */

static int hypercube_canonical(const char *arg, char *out, size_t cap,
                               char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("hypercube", arg, out, error);
}

static int hypercube_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    int err = 0;
    for (uint64_t bit = 1; bit < n; bit *= 2)
        for (uint64_t i = 0; i + bit < n && err == 0; i++)
            if ((i & bit) == 0)
                err = topology_edges_add(e, (uint32_t)i, (uint32_t)(i + bit));
    return err;
}

const struct topology topology_hypercube = {
    .name = "hypercube",
    .help = "hypercube -- each peer is connected to the peers whose numbers differ in one bit; "
            "incomplete unless the number of peers is a power of two",
    .canonical = hypercube_canonical,
    .build = hypercube_build,
};

/* ---- bipartite: each peer of one part is a neighbour of each peer of the other part.
 *
 * "bipartite" has two parts: the first half and the second half of the peers. "bipartite:A,B" has
 * parts of A and B peers. For another number of peers the parts have the same ratio, with at least
 * one peer each. ----
 */

static int bipartite_parts(const char *arg, uint32_t *a, uint32_t *b)
{
    const char *p = arg;
    if (!topology_number(&p, a) || *p++ != ',' || !topology_number(&p, b) || *p != '\0' || *a == 0
        || *b == 0)
        return -EINVAL;
    return 0;
}

static int bipartite_canonical(const char *arg, char *out, size_t cap,
                               char error[TOPOLOGY_ERROR_MAX])
{
    uint32_t a, b;
    out[0] = '\0';
    if (arg == NULL)
        return 0;
    if (bipartite_parts(arg, &a, &b) != 0)
        return topology_refuse(error, "bipartite", arg,
                               "A,B, two parts of 1 or more, as in bipartite:3,5");
    snprintf(out, cap, "%u,%u", a, b);
    return 0;
}

static int bipartite_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)seed;
    uint32_t a = 1, b = 1;
    int err = arg != NULL ? bipartite_parts(arg, &a, &b) : 0;
    if (err != 0)
        return err;
    uint64_t all = (uint64_t)a + b, left = ((uint64_t)n * a + all / 2) / all;
    left = left < 1 ? 1 : left > n - 1 ? n - 1 : left;
    if (left * (n - left) > UINT32_MAX / 2)
        /* The graph would have too many edges: the sum of all degrees must fit into the 32 bits of
         * graph.first. */
        return -EINVAL;
    for (uint32_t i = 0; i < left; i++)
        for (uint32_t j = (uint32_t)left; j < n && err == 0; j++)
            err = topology_edges_add(e, i, j);
    return err;
}

static uint32_t bipartite_peers(const char *arg)
{
    uint32_t a, b;
    return bipartite_parts(arg, &a, &b) == 0 ? a + b : 0;
}

const struct topology topology_bipartite = {
    .name = "bipartite",
    .help = "bipartite[:A,B] -- each peer of one half (or of A peers) is connected to each peer of "
            "the other",
    .canonical = bipartite_canonical,
    .build = bipartite_build,
    .peers = bipartite_peers,
};
