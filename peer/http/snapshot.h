/* peer/http/snapshot.h -- all values that a peer serves over HTTP, as they were at one time.
 *
 * The event loop fills in a snapshot (peer/run_log/monitor.c) and passes it to the HTTP thread
 * (snapshot_exchange.h). The HTTP thread makes pages from it (prometheus.h, status.h, health.h). A
 * snapshot has no pointers to data that may change.
 */
#ifndef PEER_HTTP_SNAPSHOT_H
#define PEER_HTTP_SNAPSHOT_H

#include "peer/http/history.h"
#include "peer/node/figure.h"

enum {
    SNAPSHOT_KINDS = 48, /* Length of the arrays `violation` and `refused`. */
    SNAPSHOT_STATES = 4, /* Number of values of enum member_state. */
    /* Length of a run's id in hexadecimal digits: the first half of the BLAKE2b-128 hash of the run
     * description. */
    SNAPSHOT_RUN_ID = 16,
    SNAPSHOT_ID = 2 * WIRE_ID_BYTES,
    /* Largest number of edges in struct snapshot_graph. The complete graph of 128 members has
     * 8,128. */
    SNAPSHOT_GRAPH_EDGES = 8192,
    SNAPSHOT_NO_VERTEX = UINT16_MAX
};

struct snapshot_member
{
    char name[WIRE_NAME_MAX + 1], id[SNAPSHOT_ID + 1];
    enum member_state state;
    bool own, connected;
    bool has_round; /* True: the member has reported how many rounds it has finished (`round`). */
    uint64_t round;
    uint16_t vertex; /* Vertex of the member in the graph. SNAPSHOT_NO_VERTEX: none. */
};

struct snapshot_edge
{
    /* Name and identity of the neighbour. "": not known. */
    char name[WIRE_NAME_MAX + 1], id[SNAPSHOT_ID + 1];
    uint32_t state; /* State of the edge: a value of enum edge_state. */
    uint64_t round, resets;
    double gamma;
    /* Bytes of all sessions of this peer with the neighbour, counted at the sockets. */
    uint64_t bytes_sent, bytes_received;
    struct node_neighbour neighbour;
};

/* All edges of the graph, including edges between two other peers. */
struct snapshot_graph
{
    char topology[RUN_VALUE_MAX]; /* Canonical topology spec. "": not known. */
    uint64_t seed;
    uint32_t n_vertices, n_edges; /* n_edges counts each edge once, not once per end. */
    /* True: edge[] has all edges. False: edge[] is empty, because there are too many edges. */
    bool whole;
    uint16_t edge[SNAPSHOT_GRAPH_EDGES][2];
};

struct snapshot_count
{
    /* Name of what is counted: a kind of protocol violation, or a reason such as "slow" for which
     * connections were refused. A string literal. */
    const char *what;
    uint64_t n;
};

struct snapshot
{
    uint64_t number;  /* Sequence number of the snapshot. 0: the event loop has not started yet. */
    int64_t taken_us; /* Time of the snapshot by the monotonic clock, in microseconds. */

    /* Name and identity of this peer. They never change. */
    char name[WIRE_NAME_MAX + 1], id[SNAPSHOT_ID + 1];

    /* Figures of the peer. The texts `rung` (codec) and `rung_by` (why this codec was chosen) are
     * string literals or NULL. The pointer to the codec's text is not valid in a snapshot:
     * snapshot_figures() sets it in the copy that it makes. */
    struct figure_values figures;
    /* Run description and id of the run. Valid if figures.has_run is true. */
    char run[WIRE_RUN_MAX + 1], run_id[SNAPSHOT_RUN_ID + 1];
    char codec[WIRE_CODEC_MAX + 1];

    uint32_t n_members, n_edges, n_violations, n_refused;
    struct snapshot_member member[WIRE_MEMBERS_MAX];
    uint32_t in_state[SNAPSHOT_STATES]; /* Number of members in each state. */
    struct snapshot_edge edge[WIRE_EDGES_MAX];
    struct snapshot_count violation[SNAPSHOT_KINDS];
    /* Numbers of connections that did not become a session, by reason. */
    struct snapshot_count refused[SNAPSHOT_KINDS];

    struct node_wait wait;
    struct snapshot_graph graph;
    struct history history;
};

/* Copies the figures of a snapshot for a page that is made at now_us, in microseconds of the
 * monotonic clock. Ages are increased by the age of the snapshot. *v borrows *s. */
void snapshot_figures(struct figure_values *v, const struct snapshot *s, int64_t now_us);

/* Returns the name of a member's state: "alive", "suspect", "dead" or "left". */
const char *snapshot_member_state(enum member_state state);
/* Returns the name of what a node waits for, such as "members" or "neighbour". NULL: it does not
 * wait. */
const char *snapshot_wait(enum node_waits_for what);

/* Writes n bytes as hexadecimal digits to `out`, which has room for 2 n + 1 characters. */
void snapshot_hex(char *out, const uint8_t *bytes, size_t n);

#endif
