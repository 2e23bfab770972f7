/* peer/http/snapshot_graph.h -- the whole graph at one time, as this peer knows it. */
#ifndef PEER_HTTP_SNAPSHOT_GRAPH_H
#define PEER_HTTP_SNAPSHOT_GRAPH_H

#include "peer/http/snapshot.h"

/* Makes *g the graph of `topology` over n vertices, as each node makes it for its own edges: edges by
 * vertices, each once, the lesser first, ascending. O(1) where *g is that one already. topology NULL,
 * or no memory: *g is unknown. Begin with zeros. */
void snapshot_graph_make(struct snapshot_graph *g, const char *topology, uint32_t n, uint64_t seed);

#endif
