/* peer/http/snapshot_graph.c -- computes all edges of the graph from the topology spec, the
 * members and the seed. */
#include "peer/http/snapshot_graph.h"

#include "topology/topology.h"

#include <stdio.h>
#include <string.h>

/* Lists each edge of the graph once. If the graph has more than SNAPSHOT_GRAPH_EDGES edges, they
 * are only counted. */
static void list_edges(struct snapshot_graph *out, const struct graph *g)
{
    out->n_edges = g->first[g->n] / 2;
    out->whole = out->n_edges <= SNAPSHOT_GRAPH_EDGES;
    uint32_t k = 0;
    for (uint32_t v = 0; out->whole && v < g->n; v++)
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            if (g->neighbour[i] > v) {
                out->edge[k][0] = (uint16_t)v;
                out->edge[k++][1] = (uint16_t)g->neighbour[i];
            }
}

void snapshot_graph_make(struct snapshot_graph *out, const char *topology, uint32_t n,
                         uint64_t seed)
{
    struct graph g;
    if (topology == NULL) {
        out->topology[0] = '\0';
        return;
    }
    if (out->n_vertices == n && out->seed == seed && strcmp(out->topology, topology) == 0)
        return;
    out->topology[0] = '\0';
    if (graph_build(&g, topology, n, seed) != 0)
        return;
    snprintf(out->topology, sizeof out->topology, "%s", topology);
    out->n_vertices = n;
    out->seed = seed;
    list_edges(out, &g);
    graph_close(&g);
}
