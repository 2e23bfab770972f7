/* peer/http/snapshot.h -- all that a peer tells over HTTP, as plain values of one moment.
 *
 * The loop thread fills one in (peer/run_log/monitor.c) and hands it over (board.h); what is read from it is
 * text for others (prometheus.h, status.h, health.h). It holds no pointer to anything that changes.
 */
#ifndef PEER_HTTP_SNAPSHOT_H
#define PEER_HTTP_SNAPSHOT_H

#include "peer/http/history.h"
#include "peer/node/node.h"

enum {
    SNAPSHOT_KINDS = 48,  /* Kinds of violations, and of refused connections. */
    SNAPSHOT_STATES = 4,  /* enum member_state. */
    SNAPSHOT_RUN_ID = 16, /* Characters of a run's number: half of the BLAKE2b-128 of its text. */
    SNAPSHOT_ID = 2 * WIRE_ID_BYTES,
    SNAPSHOT_GRAPH_EDGES = 8192, /* The graph of 128 members that all talk to all has 8,128. */
    SNAPSHOT_NO_VERTEX = UINT16_MAX
};

struct snapshot_member
{
    char name[WIRE_NAME_MAX + 1], id[SNAPSHOT_ID + 1];
    enum member_state state;
    bool own, connected;
    bool has_round; /* The member reported its round: the number of rounds that it has finished. */
    uint64_t round;
    uint16_t vertex; /* Vertex of the member in the graph. SNAPSHOT_NO_VERTEX: none. */
};

struct snapshot_edge
{
    char name[WIRE_NAME_MAX + 1], id[SNAPSHOT_ID + 1]; /* The neighbour's; "" where not known. */
    uint32_t state;                                    /* enum edge_state. */
    uint64_t round, resets;
    double gamma;
    uint64_t bytes_sent, bytes_received; /* At the sockets of our sessions with it. */
    struct node_neighbour neighbour;
};

/* All edges of the graph, of this peer and of all others. */
struct snapshot_graph
{
    char topology[RUN_VALUE_MAX]; /* "": not known. */
    uint64_t seed;
    uint32_t n_vertices, n_edges; /* Edges: each once. */
    bool whole;                   /* edge[] has all of them, or none. */
    uint16_t edge[SNAPSHOT_GRAPH_EDGES][2];
};

struct snapshot_count
{
    const char *what; /* A literal. */
    uint64_t n;
};

struct snapshot
{
    uint64_t number;  /* Grows from one snapshot to the next; 0: the loop has not begun. */
    int64_t taken_us; /* Time of the snapshot by the monotonic clock, in microseconds. */
    double time_s;    /* Since the process began. */

    /* Name and identity of this peer. They never change. */
    char name[WIRE_NAME_MAX + 1], id[SNAPSHOT_ID + 1];

    bool has_run;
    char run[WIRE_RUN_MAX + 1], run_id[SNAPSHOT_RUN_ID + 1];
    uint32_t min_peers;
    double final_drift; /* 0: no consensus phase. */

    struct node_progress figures; /* rung and rung_by are literals, or NULL. */
    char codec[WIRE_CODEC_MAX + 1];
    double age_s; /* Since the last job ended. */
    uint64_t
        /* Step counter at the last evaluation, including rounds of the consensus phase. */
        accuracy_round;

    uint32_t n_members, n_edges, n_violations, n_refused;
    struct snapshot_member member[WIRE_MEMBERS_MAX];
    uint32_t in_state[SNAPSHOT_STATES]; /* Members by enum member_state. */
    struct snapshot_edge edge[WIRE_EDGES_MAX];
    struct snapshot_count violation[SNAPSHOT_KINDS];
    struct snapshot_count refused[SNAPSHOT_KINDS]; /* Connections that became no session. */

    uint64_t checkpoints;   /* Stored by this process. */
    double checkpoint_s;    /* Seconds that they took from training. */
    uint64_t unkept;        /* Could not be stored since the last that was. */
    uint64_t lines_missing; /* Lines that are not in metrics.jsonl: lost, or they still wait. */
    bool unstored;          /* The model could not be stored, and is in memory. */
    double disk_free_bytes; /* Free bytes on the file system of --out. NaN: not known. */

    struct node_wait wait;
    struct snapshot_graph graph;
    struct history history;
};

/* "alive", "suspect", "dead", "left". */
const char *snapshot_member_state(enum member_state state);
/* "members", "neighbour" and so on; NULL for nothing. */
const char *snapshot_wait(enum node_waits_for what);

/* Text as it is kept: the hexadecimal digits of n bytes. out: 2 n + 1 characters. */
void snapshot_hex(char *out, const uint8_t *bytes, size_t n);

#endif
