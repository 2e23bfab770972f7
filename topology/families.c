/* topology/families.c -- graphs given by a formula: ring, star, complete, exponential, torus.
 *
 * All of these graphs except the star and the rectangular torus are circulant: vertex i is a
 * neighbour of the vertices i + s and i - s (mod n), for each s of a fixed set of steps.
 */
#include "topology/family.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

int topology_no_argument(const char *family, const char *arg, char *out,
                         char error[TOPOLOGY_ERROR_MAX])
{
    out[0] = '\0';
    return arg != NULL ? topology_refuse(error, family, arg, "no argument") : 0;
}

/* Adds an edge between each vertex i and i + step (mod n). An edge may be added twice, if n = 2 or
 * step = n / 2. Duplicates are dropped when the graph is built. */
static int add_step(struct topology_edges *e, uint32_t n, uint32_t step)
{
    int err = 0;
    for (uint32_t i = 0; i < n && err == 0; i++)
        err = topology_edges_add(e, i, (uint32_t)(((uint64_t)i + step) % n));
    return err;
}

/* ---- ring: each peer has two neighbours. Two peers: one edge. Three peers: a triangle. ---- */

static int ring_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("ring", arg, out, error);
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

/* ---- star: the first vertex (the hub) is a neighbour of every other vertex. If the hub dies, the
 * next member becomes vertex 0 and the graph is rebuilt around it. ---- */

static int star_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("star", arg, out, error);
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
    .help = "star -- the first peer is connected to every other",
    .canonical = star_canonical,
    .build = star_build,
};

/* ---- complete: every peer is a neighbour of every other. ---- */

static int complete_canonical(const char *arg, char *out, size_t cap,
                              char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("complete", arg, out, error);
}

/* n is at most 65,536, because the sum of all degrees must fit into 32 bits (graph.first). */
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
    .help = "complete -- every peer is connected to every other",
    .canonical = complete_canonical,
    .build = complete_build,
};

/* ---- exponential: vertex i is a neighbour of i +- 2^k for all 2^k < n. Each vertex has about 2
 * log2(n) neighbours, and the diameter is about log2(n). The edges are undirected. In the graph of
 * Ying et al. 2021 they are directed. ---- */

static int exponential_canonical(const char *arg, char *out, size_t cap,
                                 char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("exponential", arg, out, error);
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
    .help = "exponential -- peer i is connected to the peers i +- 1, 2, 4, 8, ...",
    .canonical = exponential_canonical,
    .build = exponential_build,
};

/* ---- torus: `rows` x `cols` peers, with peer i in row i / cols and column i % cols. Each row and
 * each column is closed to a ring. A side of length 2 gives one edge, not two.
 *
 * "torus:RxC" is this graph for R * C peers. For any other number n of peers, and for "torus", the
 * sides are the two factors of n that are closest to each other: 4x4 for 16 peers, 4x8 for 32. If
 * the long side would be more than twice the short side (a prime n, or 14 = 2 * 7), the graph is a
 * twisted torus: peer i is a neighbour of i +- 1 and of i +- round(sqrt(n)). A peer then has four
 * neighbours for every n, so the death of one peer does not turn a torus into a ring. ----
 */

/* Parses "RxC", with nothing after it. Returns 0 or -EINVAL. */
static int read_sides(const char *arg, struct topology_sides *s)
{
    const char *p = arg;
    if (!topology_number(&p, &s->rows) || *p++ != 'x' || !topology_number(&p, &s->cols)
        || *p != '\0' || s->rows == 0 || s->cols == 0)
        return -EINVAL;
    return 0;
}

int topology_sides_canonical(const char *family, const char *arg, char *out, size_t cap,
                             char error[TOPOLOGY_ERROR_MAX])
{
    struct topology_sides s;
    char wanted[64];
    out[0] = '\0';
    if (arg == NULL)
        return 0;
    snprintf(wanted, sizeof wanted, "RxC, two sides of 1 or more, as in %.16s:4x8", family);
    if (read_sides(arg, &s) != 0)
        return topology_refuse(error, family, arg, wanted);
    snprintf(out, cap, "%ux%u", s.rows, s.cols);
    return 0;
}

/* If R * C does not fit into 32 bits, the result is 0, which means any number of peers. */
uint32_t topology_sides_peers(const char *arg)
{
    struct topology_sides s;
    if (read_sides(arg, &s) != 0 || (uint64_t)s.rows * s.cols > UINT32_MAX)
        return 0;
    return s.rows * s.cols;
}

bool topology_sides_for(const char *arg, uint32_t n, struct topology_sides *s)
{
    if (arg != NULL && read_sides(arg, s) == 0 && (uint64_t)s->rows * s->cols == n)
        return true;
    for (s->rows = (uint32_t)lround(sqrt((double)n)); n % s->rows != 0 || s->rows > n / s->rows;)
        s->rows--;
    s->cols = n / s->rows;
    return s->cols <= 2 * s->rows;
}

static int torus_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    return topology_sides_canonical("torus", arg, out, cap, error);
}

/* Adds an edge from each vertex to its right and to its lower neighbour, wrapping around at the
 * borders. Thus each edge of the torus is added once. A side of length 1 gives loops, edges from a
 * vertex to itself, which topology_edges_graph() drops. */
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
    struct topology_sides s;
    if (topology_sides_for(arg, n, &s))
        return add_grid(e, s.rows, s.cols);
    int err = add_step(e, n, 1);
    return err != 0 ? err : add_step(e, n, (uint32_t)lround(sqrt((double)n)));
}

const struct topology topology_torus = {
    .name = "torus",
    .help = "torus[:RxC] -- a grid closed in both directions, four neighbours per peer",
    .canonical = torus_canonical,
    .build = torus_build,
    .peers = topology_sides_peers,
};
