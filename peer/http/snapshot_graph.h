/* peer/http/snapshot_graph.h -- computes all edges of the graph, as far as this peer knows it. */
#ifndef PEER_HTTP_SNAPSHOT_GRAPH_H
#define PEER_HTTP_SNAPSHOT_GRAPH_H

#include "peer/http/snapshot.h"

/* Sets *g to the graph of `topology` over n vertices. Each node computes its own edges in the
 * same way. Each edge is listed once, smaller vertex first, in ascending order. O(1) if *g is
 * that graph already. If `topology` is NULL or memory is short, *g becomes unknown. Initialise
 * *g with zeros. */
void snapshot_graph_make(struct snapshot_graph *g, const char *topology, uint32_t n, uint64_t seed);

#endif
