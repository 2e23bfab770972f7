/* peer/http/snapshot_graph.h -- computes all edges of the communication graph, for the live
 * page. */
#ifndef PEER_HTTP_SNAPSHOT_GRAPH_H
#define PEER_HTTP_SNAPSHOT_GRAPH_H

#include "peer/http/snapshot.h"

/* Sets *g to the graph of `topology` over n vertices, with the functions that nodes use for their
 * own edges. Each edge is listed once, smaller vertex first, in ascending order. O(1) if *g is that
 * graph already. If `topology` is NULL or memory is short, *g becomes a graph that is not known
 * (topology ""). Initialise *g with zeros. */
void snapshot_graph_make(struct snapshot_graph *g, const char *topology, uint32_t n, uint64_t seed);

#endif
