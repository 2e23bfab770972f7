/* topology/graph.c -- properties of a graph: degrees, and distances by breadth-first search.
 *
 * graph_diameter() searches from every vertex, in O(n m) for n vertices and m edges. This is fast
 * enough for simulated clusters of some thousand vertices. Only commands that print a graph need
 * the diameter. A peer that trains does not.
 */
#include "topology/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void graph_close(struct graph *g)
{
    free(g->first);
    free(g->neighbour);
    *g = (struct graph){.n = 0};
}

uint32_t graph_degree(const struct graph *g, uint32_t v)
{
    assert(v < g->n);
    return g->first[v + 1] - g->first[v];
}

/* Returns the number of hops from vertex `from` to the farthest vertex, or UINT32_MAX if a vertex
 * cannot be reached. `queue` and `hops` are scratch arrays of n elements. */
static uint32_t hops_to_farthest(const struct graph *g, uint32_t from, uint32_t *queue,
                                 uint32_t *hops)
{
    memset(hops, 0xff, g->n * sizeof *hops);
    uint32_t head = 0, tail = 0;
    hops[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        uint32_t v = queue[head++];
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            uint32_t w = g->neighbour[i];
            if (hops[w] == UINT32_MAX) {
                hops[w] = hops[v] + 1;
                queue[tail++] = w;
            }
        }
    }
    return tail == g->n ? hops[queue[tail - 1]] : UINT32_MAX;
}

/* Returns the largest number of hops from any of the vertices [begin, end) to the vertex farthest
 * from it, or UINT32_MAX if the graph is not connected. The search stops at the first vertex that
 * does not reach all others. */
static uint32_t farthest(const struct graph *g, uint32_t begin, uint32_t end)
{
    uint32_t *scratch = malloc(2 * (size_t)g->n * sizeof *scratch);
    uint32_t max = scratch != NULL ? 0 : UINT32_MAX;
    for (uint32_t v = begin; v < end && max != UINT32_MAX; v++) {
        uint32_t hops = hops_to_farthest(g, v, scratch, scratch + g->n);
        max = hops > max ? hops : max;
    }
    free(scratch);
    return max;
}

uint32_t graph_eccentricity(const struct graph *g, uint32_t v)
{
    assert(v < g->n);
    return farthest(g, v, v + 1);
}

uint32_t graph_diameter(const struct graph *g)
{
    return farthest(g, 0, g->n);
}

bool graph_connected(const struct graph *g)
{
    return farthest(g, 0, 1) != UINT32_MAX;
}

int graph_tree(const struct graph *g, uint32_t root, uint32_t *parent)
{
    uint32_t *scratch = malloc(2 * (size_t)g->n * sizeof *scratch);
    if (scratch == NULL)
        return -ENOMEM;
    uint32_t *hops = scratch + g->n, most = hops_to_farthest(g, root, scratch, hops);
    assert(most != UINT32_MAX);
    for (uint32_t v = 0; v < g->n; v++) {
        uint32_t i = g->first[v];
        while (v != root && hops[g->neighbour[i]] + 1 != hops[v])
            i++;
        parent[v] = v == root ? root : g->neighbour[i];
    }
    free(scratch);
    return 0;
}
