/* topology/families.c -- the graphs with a formula: ring, star, torus, complete, exponential.
 *
 * All but the star and the rectangular torus are circulant graphs: i is a neighbour of
 * i +- s (mod n) for each s of a set of steps.
 */
#include "topology/family.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* The canonical form of a family that takes no argument, "ring" and not "ring:3". */
static int no_argument(const char *family, const char *arg, char *out,
                       char error[TOPOLOGY_ERROR_MAX])
{
    out[0] = '\0';
    return arg != NULL ? topology_refuse(error, family, arg, "nothing behind the name") : 0;
}

/* Join every i with i + step, modulo n. An edge that this gives twice (n = 2, or a step of n /
 * 2) is made one when the graph is built. */
static int add_step(struct topology_edges *e, uint32_t n, uint32_t step)
{
    int err = 0;
    for (uint32_t i = 0; i < n && err == 0; i++)
        err = topology_edges_add(e, i, (uint32_t)(((uint64_t)i + step) % n));
    return err;
}

/* ---- ring: two neighbours each; 2 peers: one edge; 3: a triangle. ---- */

static int ring_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return no_argument("ring", arg, out, error);
}

static int ring_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    return add_step(e, n, 1);
}

const struct topology topology_ring = {
    .name = "ring",
    .help = "ring -- each peer has two neighbours",
    .canonical = ring_canonical,
    .build = ring_build,
};

/* ---- star: the first vertex, the hub, with every other. If the hub dies the next member is first:
 * the graph is made anew around it. ---- */

static int star_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return no_argument("star", arg, out, error);
}

static int star_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    int err = 0;
    for (uint32_t i = 1; i < n && err == 0; i++)
        err = topology_edges_add(e, 0, i);
    return err;
}

const struct topology topology_star = {
    .name = "star",
    .help = "star -- the first peer with every other",
    .canonical = star_canonical,
    .build = star_build,
};

/* ---- complete: everybody with everybody. ---- */

static int complete_canonical(const char *arg, char *out, size_t cap,
                              char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return no_argument("complete", arg, out, error);
}

/* Ends of edges are counted in 32 bits (graph.first), which limits n to 65,536. */
static int complete_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    if ((uint64_t)n * (n - 1) > UINT32_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++)
            if (topology_edges_add(e, i, j) != 0)
                return -ENOMEM;
    return 0;
}

const struct topology topology_complete = {
    .name = "complete",
    .help = "complete -- every peer with every other",
    .canonical = complete_canonical,
    .build = complete_build,
};

/* ---- exponential: i with i +- 2^k, all 2^k < n; about 2 log2(n) neighbours
 * and as few hops (Ying et al. 2021, there directed; edges here run both
 * ways). ---- */

static int exponential_canonical(const char *arg, char *out, size_t cap,
                                 char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return no_argument("exponential", arg, out, error);
}

static int exponential_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    int err = 0;
    for (uint64_t step = 1; step < n && err == 0; step *= 2)
        err = add_step(e, n, (uint32_t)step);
    return err;
}

const struct topology topology_exponential = {
    .name = "exponential",
    .help = "exponential -- peer i with i +- 1, 2, 4, 8, ...",
    .canonical = exponential_canonical,
    .build = exponential_build,
};

/* ---- torus: rows x cols, peer i at (i / cols, i % cols), both directions
 * closed; a side of 2 gives one edge, not two.
 *
 * "torus:RxC" is that grid for R * C peers. For any other number, and for
 * "torus", the grid is the one whose sides are nearest to each other, if
 * the long side is at most twice the short one (16: 4x4, 32: 4x8). A number
 * that factors worse (a prime, 2 * 7) gets the twisted torus instead: i with
 * i +- 1 and i +- round(sqrt(n)), four neighbours for every n, so that the
 * death of one peer does not turn a good graph into a ring. ---- */

/* Read "RxC", and nothing behind it. */
static int torus_sides(const char *arg, uint32_t *rows, uint32_t *cols)
{
    const char *p = arg;
    if (!topology_number(&p, rows) || *p++ != 'x' || !topology_number(&p, cols) || *p != '\0'
        || *rows == 0 || *cols == 0)
        return -EINVAL;
    return 0;
}

static int torus_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    uint32_t rows, cols;
    out[0] = '\0';
    if (arg == NULL)
        return 0;
    if (torus_sides(arg, &rows, &cols) != 0)
        return topology_refuse(error, "torus", arg, "RxC, two sides of 1 or more, as in torus:4x8");
    snprintf(out, cap, "%ux%u", rows, cols);
    return 0;
}

/* Join each vertex with the one to its right and the one below, around the edges: that is every
 * edge of the torus once. A side of 1 gives loops, which are dropped. */
static int add_grid(struct topology_edges *e, uint32_t rows, uint32_t cols)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            if (topology_edges_add(e, r * cols + c, r * cols + (c + 1) % cols) != 0
                || topology_edges_add(e, r * cols + c, (r + 1) % rows * cols + c) != 0)
                return -ENOMEM;
    return 0;
}

static int torus_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)seed;
    uint32_t rows, cols;
    if (arg != NULL && torus_sides(arg, &rows, &cols) == 0 && (uint64_t)rows * cols == n)
        return add_grid(e, rows, cols);
    uint32_t root = (uint32_t)lround(sqrt((double)n));
    for (rows = root; n % rows != 0 || rows > n / rows; rows--)
        ;
    cols = n / rows;
    if (cols <= 2 * rows)
        return add_grid(e, rows, cols);
    int err = add_step(e, n, 1);
    return err != 0 ? err : add_step(e, n, root);
}

/* "torus:4x8" is made for 32 peers; 0 (any number) if the product is no 32-bit number. */
static uint32_t torus_peers(const char *arg)
{
    uint32_t rows, cols;
    if (torus_sides(arg, &rows, &cols) != 0 || (uint64_t)rows * cols > UINT32_MAX)
        return 0;
    return rows * cols;
}

const struct topology topology_torus = {
    .name = "torus",
    .help = "torus[:RxC] -- a grid closed both ways, four neighbours",
    .canonical = torus_canonical,
    .build = torus_build,
    .peers = torus_peers,
};
