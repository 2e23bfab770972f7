/* topology/random.c -- random graphs: Erdos-Renyi and small-world.
 *
 * If a random graph of these families is not connected, edges are added. The components are ordered
 * by their lowest peer. Each component except the first gets one edge, from a random peer of this
 * component to a random peer of the components before it.
 *
 * A probability is compared with 53 random bits, without rounding, so that all machines draw the
 * same graph.
 */
#include "nn/math/number.h"
#include "nn/math/rng.h"
#include "topology/family.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Connecting the components ---- */

/* Returns the lowest vertex of the component of v (union-find with path halving). */
static uint32_t lowest(uint32_t *parent, uint32_t v)
{
    for (; parent[v] != v; v = parent[v])
        parent[v] = parent[parent[v]];
    return v;
}

/* Sets parent[v] to the lowest vertex of the component of v, for each vertex v. */
static void find_components(const struct topology_edges *e, uint32_t n, uint32_t *parent)
{
    for (uint32_t v = 0; v < n; v++)
        parent[v] = v;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t a = lowest(parent, e->pair[i][0]), b = lowest(parent, e->pair[i][1]);
        parent[a > b ? a : b] = a > b ? b : a;
    }
    for (uint32_t v = 0; v < n; v++)
        parent[v] = lowest(parent, v);
}

/* Sorts the vertices by component into order[], with a counting sort. component[v] is the lowest
 * vertex of the component of v. `at` is scratch of n elements. */
static void sort_components(uint32_t n, const uint32_t *component, uint32_t *at, uint32_t *order)
{
    uint32_t before = 0;
    for (uint32_t v = 0; v < n; v++)
        at[v] = 0;
    for (uint32_t v = 0; v < n; v++)
        at[component[v]]++;
    for (uint32_t v = 0; v < n; v++) {
        uint32_t size = at[v];
        at[v] = before;
        before += size;
    }
    for (uint32_t v = 0; v < n; v++)
        order[at[component[v]]++] = v;
}

/* Connects the graph by adding edges, one fewer than the graph has components. Returns 0 or
 * -ENOMEM. The cost is close to O(n + m) for m edges. */
static int join_components(struct topology_edges *e, uint32_t n, struct rng *rng)
{
    uint32_t *component = malloc(3 * (size_t)n * sizeof *component), *order = component + 2 * n;
    if (component == NULL)
        return -ENOMEM;
    find_components(e, n, component);
    sort_components(n, component, component + n, order);
    int err = 0;
    for (uint32_t begin = 0, end; begin < n && err == 0; begin = end) {
        for (end = begin + 1; end < n && component[order[end]] == component[order[begin]]; end++)
            ;
        if (begin > 0) {
            uint32_t one = order[begin + rng_below(rng, end - begin)];
            err = topology_edges_add(e, order[rng_below(rng, begin)], one);
        }
    }
    free(component);
    return err;
}

/* ---- er:P: each pair is an edge with probability P, independently of the others. This is
 * Gilbert's G(n, p), usually named after Erdos and Renyi. O(n^2). ---- */

static int er_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    double p;
    char text[NUMBER_TEXT_MAX];
    if (arg == NULL || !number_real(arg, &p) || !(p > 0 && p <= 1))
        return topology_refuse(error, "er", arg != NULL ? arg : "",
                               "a probability in (0, 1], as in er:0.3");
    number_real_text(p, text);
    snprintf(out, cap, "%s", text);
    return 0;
}

static int er_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    double p;
    if (!number_real(arg, &p) || (double)n * (n - 1) * p > UINT32_MAX / 2)
        /* The graph would have too many edges: the sum of all degrees must fit into the 32 bits of
         * graph.first. */
        return -EINVAL;
    struct rng rng = rng_stream(rng_key(seed, RNG_TOPOLOGY, n, rng_hash("er", 2)));
    int err = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n && err == 0; j++)
            if (rng_unit(&rng) < p)
                err = topology_edges_add(e, i, j);
    return err != 0 ? err : join_components(e, n, &rng);
}

const struct topology topology_er = {
    .name = "er",
    .help = "er:P -- Erdos-Renyi: each pair is an edge with probability P",
    .canonical = er_canonical,
    .build = er_build,
};

/* ---- small-world:K,P: a ring in which each peer is joined to the K nearest peers (K / 2 on either
 * side). Then the far end of each edge is moved to a random peer with probability P (Watts,
 * Strogatz 1998).
 *
 * With K + 1 peers or fewer the graph is complete. ---- */

enum {
    /* Largest number of draws of a new end for an edge. If all of them are invalid, the edge is not
     * moved. */
    FAR_TRIES = 64,
    K_DEFAULT = 4
};
static const double p_default = 0.1;

/* Edges of a small-world graph, ordered by the peer that drew them. far[i * half + k] is the far
 * end of edge k of peer i, for k < half. */
struct world
{
    uint32_t n, half;
    uint32_t *far;
};

/* Returns true if peer `other` is the far end of one of the edges that peer i drew. */
static bool has_drawn(const struct world *w, uint32_t i, uint32_t other)
{
    for (uint32_t k = 0; k < w->half; k++)
        if (w->far[(size_t)i * w->half + k] == other)
            return true;
    return false;
}

/* Moves the far end of edge k of peer i to a random peer that is not yet a neighbour of i. After
 * FAR_TRIES failed draws the edge stays. */
static void move_end(const struct world *w, uint32_t i, uint32_t k, struct rng *rng)
{
    for (uint32_t t = 0; t < FAR_TRIES; t++) {
        uint32_t other = (uint32_t)rng_below(rng, w->n);
        if (other == i || has_drawn(w, i, other) || has_drawn(w, other, i))
            continue;
        w->far[(size_t)i * w->half + k] = other;
        return;
    }
}

/* Draws a small-world graph. Edges are moved in the order of Watts and Strogatz (1998): first the
 * edges to the nearest neighbours of all peers, then the edges to the second nearest neighbours,
 * and so on. */
static int draw_world(const struct world *w, double p, struct topology_edges *e, struct rng *rng)
{
    for (uint32_t k = 0; k < w->half; k++)
        for (uint32_t i = 0; i < w->n; i++)
            w->far[(size_t)i * w->half + k] = (uint32_t)(((uint64_t)i + k + 1) % w->n);
    for (uint32_t k = 0; k < w->half; k++)
        for (uint32_t i = 0; i < w->n; i++)
            if (rng_unit(rng) < p)
                move_end(w, i, k, rng);
    int err = 0;
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t k = 0; k < w->half && err == 0; k++)
            err = topology_edges_add(e, i, w->far[(size_t)i * w->half + k]);
    return err;
}

static int world_numbers(const char *arg, uint32_t *k, double *p)
{
    if (!topology_number(&arg, k) || *arg++ != ',' || !number_real(arg, p) || *k < 2 || *k % 2 != 0
        || !(*p >= 0 && *p <= 1))
        return -EINVAL;
    return 0;
}

static int world_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    uint32_t k = K_DEFAULT;
    double p = p_default;
    char text[NUMBER_TEXT_MAX];
    if (arg != NULL && world_numbers(arg, &k, &p) != 0)
        return topology_refuse(error, "small-world", arg,
                               "K,P: an even number of neighbours and the share of edges that are "
                               "moved, 0 to 1, as in small-world:4,0.1");
    /* This expression turns -0 into 0, so that the text is never "-0". */
    number_real_text(p == 0 ? 0 : p, text);
    snprintf(out, cap, "%u,%s", k, text);
    return 0;
}

static int world_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    uint32_t k;
    double p;
    if (world_numbers(arg, &k, &p) != 0)
        return -EINVAL;
    if (n <= k + 1)
        return topology_complete.build(e, NULL, n, seed);
    if ((uint64_t)n * k > UINT32_MAX)
        /* The graph would have too many edges: the sum of all degrees must fit into the 32 bits of
         * graph.first. */
        return -EINVAL;
    struct rng rng = rng_stream(rng_key(seed, RNG_TOPOLOGY, n, rng_hash("small-world", 11)));
    struct world w = {.n = n, .half = k / 2};
    w.far = malloc((size_t)n * w.half * sizeof *w.far);
    if (w.far == NULL)
        return -ENOMEM;
    int err = draw_world(&w, p, e, &rng);
    free(w.far);
    return err != 0 ? err : join_components(e, n, &rng);
}

const struct topology topology_small_world = {
    .name = "small-world",
    .help =
        "small-world[:K,P] -- a ring with edges to the K nearest peers (default 4); each edge is "
        "moved to a random peer with probability P (default 0.1)",
    .canonical = world_canonical,
    .build = world_build,
};
