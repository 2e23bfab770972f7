/* peer/node/inspect.h -- read access to internal state of a node, for tests and traces.
 *
 * Only node_n_edges() and node_edge_state() may be called while a job runs on another thread.
 *
 * An edge counts an exchange only at the event NODE_WORKED, but node_work() has already applied the
 * exchange to the vectors. Between node_work() and NODE_WORKED, node_edge() therefore returns the
 * vectors, the epoch and the round after the exchange.
 */
#ifndef PEER_NODE_INSPECT_H
#define PEER_NODE_INSPECT_H

#include "gossip/exchange/edge.h"
#include "peer/node/node.h"

/* State of one edge. */
struct node_edge
{
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the neighbour. */
    enum edge_state state;
    bool wanted; /* True: the current topology contains the edge. */
    bool linked; /* True: there is a session with the neighbour. */
    /* True while the edge exchanges nothing, because this peer distrusts the data of the other
     * end. */
    bool barred;
    uint64_t epoch, round; /* Epoch of the edge, and number of exchanges committed in the epoch. */
    /* Replicas of this peer's model (a) and of the neighbour's model (b). NULL: the edge has no
     * replicas yet, or they are about to be reset. */
    const float *a, *b;
    /* True: the running job commits an exchange, which the replicas a and b already include. */
    bool commits;
    /* Factor of the exchange that the running job commits: the job moves the model x by
     * coefficient * (b - a), with the replicas a and b after the exchange. NaN: the job commits no
     * exchange of this edge, or the mixer moves x in another way. */
    float coefficient;
    uint64_t n_resets; /* Number of resets of the edge so far. */
};

/* State of one edge. An exchange that a running job applies is not included until the job has
 * ended. */
struct node_edge_state
{
    const uint8_t
        *id; /* Identity of the neighbour: WIRE_ID_BYTES bytes, valid until the next step. */
    enum edge_state state;
    uint64_t round; /* Number of exchanges committed in the epoch of the edge. */
};

/* Sizes and progress of a node. */
struct node_size
{
    uint32_t n_steps; /* Number of local steps of the current or last job. */
    /* Numbers of open links, members, edges, and packets of deltas that are in use. */
    size_t n_links, n_members, n_edges, n_packets;
    uint64_t beat;     /* Step counter of this peer. */
    size_t n_vertices; /* Number of vertices of the topology, including this peer. */
    bool trains;       /* True: a job with local steps is running. */
    bool ahead; /* True: a job that makes deltas before local steps is running (--overlap 1). */
};

/* Returns whether the member `id` is a vertex of the topology, as this node sees it. */
bool node_counts(const struct node *n, const uint8_t id[WIRE_ID_BYTES]);
/* Returns the number of edges. 0: there is no run yet. */
size_t node_n_edges(const struct node *n);
/* Sets *e to the state of the i-th edge, i < node_n_edges(). */
void node_edge(const struct node *n, size_t i, struct node_edge *e);
/* Sets *e to the state of the i-th edge, i < node_n_edges(). */
void node_edge_state(const struct node *n, size_t i, struct node_edge_state *e);
/* Fills *s with the current sizes and progress of the node. */
void node_size(const struct node *n, struct node_size *s);

#endif
