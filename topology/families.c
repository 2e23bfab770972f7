/* topology/families.c -- the regular grids: ring, torus, complete, exponential.
 *
 * All but the rectangular torus are circulant graphs: i is a neighbour of
 * i +- s (mod n) for each s of a set of steps.
 */
#include "topology/family.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static int no_argument(const char *family, const char *arg, char *out,
                       char error[TOPOLOGY_ERROR_MAX])
{
    out[0] = '\0';
    return arg ? topology_refuse(error, family, arg, "nothing behind the name") : 0;
}

/* Every i with i + step. */
static int add_step(struct topology_edges *e, uint32_t n, uint32_t step)
{
    int r = 0;
    for (uint32_t i = 0; i < n && !r; i++)
        r = topology_edges_add(e, i, (uint32_t)(((uint64_t)i + step) % n));
    return r;
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

/* ---- complete: everybody with everybody. ---- */

static int complete_canonical(const char *arg, char *out, size_t cap,
                              char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return no_argument("complete", arg, out, error);
}

static int complete_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    if ((uint64_t)n * (n - 1) > UINT32_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++)
            if (topology_edges_add(e, i, j))
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
    int r = 0;
    for (uint64_t step = 1; step < n && !r; step *= 2)
        r = add_step(e, n, (uint32_t)step);
    return r;
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

static int torus_sides(const char *arg, uint32_t *rows, uint32_t *cols)
{
    const char *p = arg;
    if (!topology_number(&p, rows) || *p++ != 'x' || !topology_number(&p, cols) || *p || *rows == 0
        || *cols == 0)
        return -EINVAL;
    return 0;
}

static int torus_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    uint32_t rows, cols;
    out[0] = '\0';
    if (!arg)
        return 0;
    if (torus_sides(arg, &rows, &cols))
        return topology_refuse(error, "torus", arg, "RxC, two sides of 1 or more, as in torus:4x8");
    snprintf(out, cap, "%ux%u", rows, cols);
    return 0;
}

static int add_grid(struct topology_edges *e, uint32_t rows, uint32_t cols)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            if (topology_edges_add(e, r * cols + c, r * cols + (c + 1) % cols)
                || topology_edges_add(e, r * cols + c, (r + 1) % rows * cols + c))
                return -ENOMEM;
    return 0;
}

static int torus_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)seed;
    uint32_t rows, cols;
    if (arg && torus_sides(arg, &rows, &cols) == 0 && (uint64_t)rows * cols == n)
        return add_grid(e, rows, cols);
    uint32_t root = (uint32_t)lround(sqrt((double)n));
    for (rows = root; n % rows != 0 || rows > n / rows; rows--)
        ;
    cols = n / rows;
    if (cols <= 2 * rows)
        return add_grid(e, rows, cols);
    int r = add_step(e, n, 1);
    return r ? r : add_step(e, n, root);
}

static uint32_t torus_peers(const char *arg)
{
    uint32_t rows, cols;
    if (torus_sides(arg, &rows, &cols) || (uint64_t)rows * cols > UINT32_MAX)
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
