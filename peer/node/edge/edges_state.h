/* peer/node/edge/edges_state.h -- state of the edges, for the files of this folder.
 *
 * The header also declares the functions by which these files call each other. Other folders
 * include edges.h (tests/lint_layers.sh).
 */
#ifndef PEER_NODE_EDGE_EDGES_STATE_H
#define PEER_NODE_EDGE_EDGES_STATE_H

#include "peer/node/edge/edges.h"

enum {
    /* Largest number of packets with fragments of deltas that one step of the node sends. */
    EDGES_PARTS_MAX = 64
};

/* The last EDGE message (a request to open the edge) that arrived on a session while this peer had
 * no edge to the sender or kept the edge closed. The message is used if this peer opens the edge
 * later. */
struct early_edge
{
    bool heard;    /* True: an EDGE message has arrived and has not been used yet. */
    uint32_t link; /* Number of the session on which the EDGE message arrived. */
    struct wire_edge edge;
};

struct edges
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    struct neighbour **at; /* The neighbours, in the order of the member table. */
    size_t n, cap;         /* Used and allocated length of the array of neighbours. */
    /* Hash of the members (members_view()) for which the edges were chosen. 0: none chosen yet. */
    uint64_t view;
    /* Number of rounds in a pass, the sequence of rounds that the topology repeats (rounds.h). 0:
     * the topology is constant. */
    uint32_t n_rounds;
    /* True: one pass of rounds computes the exact mean of all models (struct round_schedule). */
    bool exact;
    uint32_t eccentricity; /* Hops from this peer to the farthest member. */
    /* Place of this peer in the spanning trees along which sketches (random projections of models)
     * are added up. */
    struct tree_aggregation_place place;
    /* Number of the graph (place.built) whose spectral gap and momentum are stored. */
    uint64_t measured;
    /* Spectral gap of the mixing matrix, and momentum of the consensus phase derived from it. */
    double gap, momentum;
    /* Expected distance of this peer's model from the mean of all models, in units of the length of
     * a local step (graph_spread() in topology/topology.h). Set with --compress auto only. */
    double spread;
    uint64_t beat; /* Step counter of this peer, as phases.c last reported it. */
    uint64_t due;  /* Step counter of this peer's next checkpoint. 0: none. */
    /* Number of hops around this peer within which all peers are known to be under
     * --final-drift. */
    uint32_t settled;
    bool last; /* True: the consensus phase has begun. */
    /* The averaging pass (a sequence of rounds that computes the mean) that is under way, or the
     * last such pass. Written by averaging_pass.c only. */
    struct averaging_pass pass;
    /* Speeds in local steps per second for --local-steps auto: measured in this peer's jobs, and
     * received with deltas. */
    struct pace pace;
    /* Step counter of the earliest checkpoint that a neighbour has announced and
     * checkpoint_word() accepts. 0, or a step counter that this peer has reached already: no
     * checkpoint is planned. */
    uint64_t heard_due;
    /* Step counter of the earliest checkpoint that a neighbour has announced, also beyond the limit
     * of checkpoint_word(). 0, or a step counter that this peer has reached already: no checkpoint
     * is planned. */
    uint64_t heard_any;
    int64_t opened_us; /* Last time at which any edge of this peer opened. */
    /* Last time at which any edge of this peer opened, or a delta was accepted on one of them. */
    int64_t exchange_us;
    /* Number of resets of all edges. A reset begins a new epoch of an edge, with new replicas at
     * both ends. The first epoch of an edge is no reset. */
    uint64_t n_resets;
    /* Number of times that some edge was closed for distrust. Edges to neighbours that trained for
     * many more rounds than this peer are not counted. */
    uint64_t n_distrusted;
    /* Last time at which this peer stopped waiting for a neighbour. Only the first time for each
     * neighbour is recorded. 0: never. */
    int64_t excused_us;
    /* EDGE messages that arrived before this peer could open the edge. The index is the slot of the
     * session (sessions_slot()). */
    struct early_edge early[NODE_LINKS_MAX];
    /* Packets with fragments of deltas that the current step of the node sends. */
    struct packet *part[EDGES_PARTS_MAX];
    /* n_parts: number of packets in part[]. parts_told: number of bytes of the current job's delta
     * that parts_send() has handled. */
    size_t n_parts, parts_told;
    /* Total bytes of fragments that were sent before their delta was complete, over all edges. */
    uint64_t bytes_ahead;
};

/* Pauses the edge to b (edge_pause()). link_lost: the session is lost, or one end has closed the
 * edge. `why`: the reason for a debug note. */
void edges_pause(struct edges *es, struct neighbour *b, bool link_lost, const char *why);
/* Sends neighbour b a BEAT with the values that edges_say_beat() last stored. The edge must be
 * open. Equal BEATs are repeated with decreasing frequency. */
void edges_say_word(struct edges *es, struct neighbour *b);
/* Sets `aside` of each neighbour to whether (1) the consensus phase has begun, (2) only the
 * topology of training contains the edge, and (3) edges_gave_up() is false. n_vertices: number of
 * vertices of the current graph. */
void edges_set_aside(struct edges *es, size_t n_vertices);
/* Returns whether the edge has been neither OPEN nor DONE for more than SCHEDULE_LOST_US. If only
 * the topology of training contains the edge, this peer then drops it. */
bool edges_gave_up(const struct edges *es, const struct neighbour *b);
/* Stores the values of a BEAT of neighbour b. neighbour_settled() reads them later. */
void edges_hear_word(struct neighbour *b, const struct wire_beat *m);

#endif
