/* topology/regular.c -- the family regular:K, random graphs in which each peer has K neighbours.
 *
 * The graph is drawn by the pairing model (Bollobas 1980): each vertex gets K half-edges, all
 * half-edges are shuffled, and successive ones are joined to edges. A pair (a, b) that would be a
 * loop or a duplicate edge is called bad. It is repaired by switching: the bad pair and a random
 * edge (c, d) become the edges (a, c) and (b, d), if both are new. All K-regular graphs are nearly
 * equally likely. A graph that is not connected is drawn again.
 *
 * If K is more than half of n - 1, the complement of the graph is drawn. It has fewer edges, so
 * switching succeeds more often. With K = 2 a connected graph is one cycle, so a random order of
 * the vertices is drawn.
 *
 * If no K-regular graph exists, a similar graph is built. For n <= K + 1 it is the complete graph.
 * If n and K are both odd, one random vertex has degree K + 1.
 */
#include "nn/math/rng.h"
#include "topology/family.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Largest number of draws of a graph. At most one in ten draws fails, so this limit is never
     * reached. */
    ATTEMPTS_MAX = 1000,
    /* Largest number of attempts to repair one bad pair, that is, a loop or a duplicate edge. */
    SWITCHES_MAX = 10000
};

/* A graph that is being drawn. degree[v] is the wanted degree of vertex v, and have[v] its present
 * degree. Row v of `neighbour` holds its have[v] neighbours so far. Each row has `width` elements:
 * the wanted degree plus 1, because one vertex may have one neighbour more than the others. `edge`
 * holds each edge once. */
struct draw
{
    uint32_t n, width, n_edges;
    uint32_t *degree, *have, *neighbour, *half_edge;
    uint32_t (*edge)[2];
    struct rng rng;
};

/* Returns true if the drawn graph has an edge between a and b. */
static bool adjacent(const struct draw *d, uint32_t a, uint32_t b)
{
    const uint32_t *row = d->neighbour + (size_t)a * d->width;
    for (uint32_t i = 0; i < d->have[a]; i++)
        if (row[i] == b)
            return true;
    return false;
}

/* Adds b to the list of neighbours of a. The caller must also add a to the list of b. */
static void link_end(struct draw *d, uint32_t a, uint32_t b)
{
    d->neighbour[(size_t)a * d->width + d->have[a]++] = b;
}

static void unlink_end(struct draw *d, uint32_t a, uint32_t b)
{
    uint32_t *row = d->neighbour + (size_t)a * d->width;
    uint32_t i = 0;
    while (row[i] != b)
        i++;
    row[i] = row[--d->have[a]];
}

/* Stores the edge (a, b) as number `at` of the list of edges, and in the rows of neighbours of both
 * vertices. */
static void set_edge(struct draw *d, uint32_t at, uint32_t a, uint32_t b)
{
    d->edge[at][0] = a;
    d->edge[at][1] = b;
    link_end(d, a, b);
    link_end(d, b, a);
}

/* Returns true if (a, b) may become an edge: a and b are different and not yet neighbours. */
static bool new_edge(const struct draw *d, uint32_t a, uint32_t b)
{
    return a != b && !adjacent(d, a, b);
}

/* Repairs the bad pair (a, b), a loop or duplicate edge, by switching with a random edge (c, e):
 * the edges (a, c) and (b, e) take the place of the pair and of the edge. All degrees stay the
 * same, and the graphs stay nearly equally likely. Drawing all pairs again until none is bad would
 * take far too long. Returns false if no switch was found. */
static bool switch_pair(struct draw *d, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < SWITCHES_MAX && d->n_edges > 0; i++) {
        uint32_t at = (uint32_t)rng_below(&d->rng, d->n_edges);
        uint32_t side = (uint32_t)rng_below(&d->rng, 2);
        uint32_t c = d->edge[at][side], e = d->edge[at][1 - side];
        if (!new_edge(d, a, c) || !new_edge(d, b, e))
            continue;
        unlink_end(d, c, e);
        unlink_end(d, e, c);
        set_edge(d, at, a, c);
        set_edge(d, d->n_edges++, b, e);
        return true;
    }
    return false;
}

/* Draws a simple graph with the wanted degrees. Returns false if a bad pair (a loop or duplicate
 * edge) could not be repaired. */
static bool draw_pairs(struct draw *d)
{
    size_t n_halves = 0, n_bad = 0;
    for (uint32_t v = 0; v < d->n; v++) {
        d->have[v] = 0;
        for (uint32_t i = 0; i < d->degree[v]; i++)
            d->half_edge[n_halves++] = v;
    }
    assert(n_halves % 2 == 0);
    rng_shuffle(&d->rng, d->half_edge, n_halves);
    d->n_edges = 0;
    for (size_t i = 0; i < n_halves; i += 2) {
        uint32_t a = d->half_edge[i], b = d->half_edge[i + 1];
        if (new_edge(d, a, b)) {
            set_edge(d, d->n_edges++, a, b);
        } else {
            /* Bad pairs (loops and duplicate edges) are stored at the start of half_edge[], which
             * has already been read. */
            d->half_edge[2 * n_bad] = a;
            d->half_edge[2 * n_bad++ + 1] = b;
        }
    }
    for (size_t i = 0; i < n_bad; i++)
        if (!switch_pair(d, d->half_edge[2 * i], d->half_edge[2 * i + 1]))
            return false;
    return true;
}

/* Adds the drawn edges to `e`. If the complement was drawn, adds the edges that were not drawn
 * instead. */
static int collect_edges(const struct draw *d, bool complement, struct topology_edges *e)
{
    e->n = 0;
    int err = 0;
    for (uint32_t i = 0; i < d->n_edges && !complement && err == 0; i++)
        err = topology_edges_add(e, d->edge[i][0], d->edge[i][1]);
    for (uint32_t a = 0; a < d->n && complement; a++)
        for (uint32_t b = a + 1; b < d->n && err == 0; b++)
            if (!adjacent(d, a, b))
                err = topology_edges_add(e, a, b);
    return err;
}

/* Sets *yes to true if the graph with these edges is connected. Returns 0 or a negative errno. */
static int is_connected(const struct topology_edges *e, uint32_t n, bool *yes)
{
    struct graph g;
    int err = topology_edges_graph(e, n, &g);
    if (err != 0)
        return err;
    *yes = graph_connected(&g);
    graph_close(&g);
    return 0;
}

/* Draws graphs until one is connected. This takes few draws, because almost every random regular
 * graph of degree 3 or more is connected. */
static int draw_until_connected(struct draw *d, bool complement, struct topology_edges *e)
{
    for (uint32_t i = 0; i < ATTEMPTS_MAX; i++) {
        if (!draw_pairs(d))
            continue;
        bool connected = false;
        int err = collect_edges(d, complement, e);
        if (err == 0)
            err = is_connected(e, d->n, &connected);
        if (err != 0 || connected)
            return err;
    }
    return -EINVAL;
}

/* Draws a k-regular graph. If n and k are both odd, the sum of all degrees would be odd, which is
 * impossible. One random vertex then gets one more neighbour. Returns 0 or a negative errno. */
static int draw_regular(struct topology_edges *e, uint32_t k, uint32_t n, struct rng rng)
{
    bool complement = k > (n - 1) / 2;
    uint32_t sparse = complement ? n - 1 - k : k;
    size_t n_halves = (size_t)n * (sparse + 1);
    struct draw d = {.n = n, .width = sparse + 1, .rng = rng};
    d.degree = malloc(n * sizeof *d.degree);
    d.have = malloc(n * sizeof *d.have);
    d.neighbour = malloc(n_halves * sizeof *d.neighbour);
    d.half_edge = malloc(n_halves * sizeof *d.half_edge);
    d.edge = malloc(n_halves * sizeof *d.edge);
    int err = -ENOMEM;
    if (d.degree != NULL && d.have != NULL && d.neighbour != NULL && d.half_edge != NULL
        && d.edge != NULL) {
        for (uint32_t v = 0; v < n; v++)
            d.degree[v] = sparse;
        if ((uint64_t)n * k % 2 == 1) {
            uint32_t v = (uint32_t)rng_below(&d.rng, n);
            d.degree[v] = complement ? sparse - 1 : sparse + 1;
        }
        err = draw_until_connected(&d, complement, e);
    }
    free(d.degree);
    free(d.have);
    free(d.neighbour);
    free(d.half_edge);
    free(d.edge);
    return err;
}

/* Adds a cycle through all vertices in a random order. */
static int random_cycle(struct topology_edges *e, uint32_t n, struct rng rng)
{
    uint32_t *order = malloc(n * sizeof *order);
    int err = order != NULL ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < n && err == 0; i++)
        order[i] = i;
    if (err == 0)
        rng_shuffle(&rng, order, n);
    for (uint32_t i = 0; i < n && err == 0; i++)
        err = topology_edges_add(e, order[i], order[(i + 1) % n]);
    free(order);
    return err;
}

static int regular_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    uint32_t k = 0;
    if (!topology_number(&arg, &k))
        return -EINVAL;
    if (n <= k + 1)
        return topology_complete.build(e, NULL, n, seed);
    struct rng rng = rng_stream(rng_key(seed, RNG_TOPOLOGY, n, k));
    return k == 2 ? random_cycle(e, n, rng) : draw_regular(e, k, n, rng);
}

static int regular_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    static const struct topology_one one = {"regular", 2, TOPOLOGY_NUMBER_MAX,
                                            "K neighbours, 2 or more, as in regular:4"};
    return topology_one_number(&one, arg, out, cap, error);
}

const struct topology topology_regular = {
    .name = "regular",
    .help = "regular:K -- a random graph in which each peer has K neighbours",
    .canonical = regular_canonical,
    .build = regular_build,
};
