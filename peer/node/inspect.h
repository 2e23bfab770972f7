/* peer/node/inspect.h -- what a test may see of a node's inside, read only.
 *
 * Vectors are those that the last job has left: after node_work() and before its WORKED
 * they are one exchange further than the edge's own count, and so are `epoch` and `round`.
 */
#ifndef PEER_NODE_INSPECT_H
#define PEER_NODE_INSPECT_H

#include "gossip/exchange/edge.h"
#include "peer/node/node.h"

struct node_edge
{
    uint8_t id[WIRE_ID_BYTES];
    enum edge_state state;
    bool wanted; /* By the present topology. */
    bool linked; /* A session carries it. */
    /* True while the edge exchanges nothing, because this peer distrusts the data of the other
     * end. */
    bool barred;
    uint64_t epoch, round;
    const float *a, *b; /* The replicas at that round; NULL: none yet. */
    /* The job that runs commits this edge's exchange `round` - 1, by so much of b - a; the
     * second is NaN where the mixer moves x by something else. */
    bool commits;
    float coefficient;
    uint64_t n_resets;
};

struct node_size
{
    uint32_t n_steps; /* Local steps of the present job. */
    size_t n_links, n_members, n_edges, n_packets;
    uint64_t beat;     /* Rounds done, the consensus phase's included. */
    size_t n_vertices; /* Members of the topology. */
    bool trains;       /* A job with local steps is running, */
    bool ahead;        /* or the one that makes their deltas first (--overlap). */
};

/* Is the member of this id one of the topology, as this node sees it? */
bool node_counts(const struct node *n, const uint8_t id[WIRE_ID_BYTES]);
size_t node_n_edges(const struct node *n);
void node_edge(const struct node *n, size_t i, struct node_edge *e);
void node_size(const struct node *n, struct node_size *s);

#endif
