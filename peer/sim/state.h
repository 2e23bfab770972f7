/* peer/sim/state.h -- private state of a simulated world, for the files in peer/sim only.
 *
 *   world.c        nodes: start, end, steps and their effects
 *   network.c      latencies, addresses, names; the plain network without half-open sessions
 *   session.c      the network with sessions: connect, accept, half-open, resets
 *   checkpoints.c  checkpoints of each peer, which survive a kill
 *   faults.c       injected faults: kills, cuts, stops
 *   insider.c      allow-lists, tokens, and attacks by holders of the cluster key
 */
#ifndef PEER_SIM_STATE_H
#define PEER_SIM_STATE_H

#include "nn/math/rng.h"
#include "nn/math/state.h"
#include "nn/math/thread_pool.h"
#include "peer/sim/attack.h"
#include "peer/sim/heap.h"
#include "peer/sim/world.h"

enum {
    /* Timeout of a dial and of a handshake, in microseconds, equal to the timeouts in
     * peer/uv/link.c. */
    SIM_GIVE_UP_US = 3 * 1000 * 1000,
    /* Time for which an end that closes the session waits for the other end, in microseconds. */
    SIM_DRAIN_US = 1000 * 1000,
    /* Time in microseconds after which unacknowledged data end the session, equal to
     * TCP_USER_TIMEOUT in peer/uv/link.c. */
    SIM_UNACKED_US = 30 * 1000 * 1000,
    SIM_SEGMENT = 1448, /* Payload bytes of a TCP segment over Ethernet. */
    /* Minimum retransmission timeout of Linux, in microseconds. The round-trip time is added to the
     * timeout. */
    SIM_RESEND_US = 200 * 1000,
    SIM_RESOLVE_US = 500,
    SIM_UNIX_S = 1700000000, /* Wall-clock time, in seconds, at which a world begins. */
    /* Interval, in microseconds, of the progress reports to a peer that is receiving a long
     * message. */
    SIM_HEARD_US = 250 * 1000,
    /* Duration of a local step divided by the duration of a job that only mixes and encodes. */
    SIM_MIXING = 4,
    SIM_PARTS = 3 /* Maximum number of fragments into which one job encodes a delta. */
};

/* Memory for one checkpoint of a simulated peer. Contains a complete checkpoint, or none. */
struct sim_slot
{
    struct state state; /* Bytes of one checkpoint, as the node wrote them. */
    /* Reader of the bytes in `state`. A restarted node restores the checkpoint with it. */
    struct state view;
    uint64_t beat; /* Step counter of the checkpoint. 0: the slot is empty. */
};

/* Data that survive a kill: the two last checkpoints, newer first. `writing`: the checkpoint
 * that is being written. */
struct sim_checkpoints
{
    struct sim_slot slot[2], writing;
};

struct sim_peer
{
    struct sim_world *world;
    uint32_t index, boot, n_ids;
    struct node *node;
    struct members_crypto crypto;
    struct attacker *attacker; /* State of a Byzantine peer. NULL: the peer is honest. */
    char name[WIRE_NAME_MAX + 1], address[WIRE_NAME_MAX + 8];
    const char *advertise;
    uint8_t id[WIRE_ID_BYTES];
    /* Time of the earliest queued NODE_TIMER event that is not outdated. INT64_MAX: none. */
    int64_t wake_us;
    /* Factor by which the peer's local steps take longer, constant during the run (step_spread and
     * straggler of struct sim_config). */
    double slowness;
    /* Additional factor by which the peer's jobs take longer, set by sim_slow(). 1: normal
     * speed. */
    double fault;
    /* Relative error of the rate of the peer's clock (sim_set_clock()). 0: exact. */
    double clock_error;
    uint64_t sent, received;
    /* Times at which the host's uplink and downlink have sent all queued bytes, in microseconds. */
    int64_t up_us, down_us;
    /* Bootstrap names that the peer has asked the simulated network to resolve. */
    const char *seed_name[NODE_SEEDS_MAX];
    bool ended;
    bool asked; /* True: the peer has been asked to leave. */
    int exit_code;
    bool off;     /* True: the host is switched off and sends nothing, not even a reset. */
    bool stopped; /* True: the peer's event loop is stopped, and the peer's events wait. */
    bool hung;    /* True: the peer's worker hangs, and the end of its job is delayed. */
    /* True: the disk is full, so models cannot be stored. Checkpoints are not affected. */
    bool full;
    /* The voting state of the finish protocol (the promise) that the peer stored last. Owned.
     * Length 0: none. */
    struct bytes promise;
    /* The peer's last stored model, of n_model floats. Owned. NULL: none. */
    float *model;
    size_t n_model;
    enum node_past past; /* NODE_PAST_FINAL: `model` is a final model. Else NODE_PAST_NONE. */
    /* For each fragment of the delta: number of bytes encoded up to its end (NODE_PART). */
    size_t part[SIM_PARTS];
    size_t n_parts;
    /* Job of the node (local steps, mixing and encoding), running in the thread pool. Call
     * sim_await() before reading its results. */
    struct thread_pool_job job;
    struct sim_queue late;
    struct sim_checkpoints checkpoints;
};

/* State of one end of a session: not up yet, up, closing, or ended. */
enum sim_end { SIM_END_NONE, SIM_END_UP, SIM_END_DRAINING, SIM_END_GONE };

struct sim_link
{
    uint32_t end[2]; /* Numbers of the two peers of the link. Peer end[0] has dialled. */
    /* For each end, the identity of the process that made the session. A later process of the same
     * peer may have another identity. */
    uint8_t id[2][WIRE_ID_BYTES];
    bool up; /* True: the session is up. Used by the plain network only. */
    /* True: the peer at one end has ended by itself, and messages that are under way still arrive.
     * Used by the plain network only. */
    bool drains;
    /* For each end: arrival time of the last message that this end sent. In the network with
     * sessions only control messages count. Later messages arrive no earlier, so that they stay in
     * order. */
    int64_t clear_us[2];

    /* The fields from here on belong to the network with sessions. An array of two has one element
     * per end of the link. */
    /* For each end, the number of process starts of its peer (`boot`) at the time when the session
     * was made. A later process of the peer has a higher number. */
    uint32_t boot[2];
    enum sim_end state[2];
    uint32_t tag; /* Tag that the node gave to the dial. */
    bool over;    /* True: the dialling node has received DIAL_FAILED. */
    /* True: all messages are lost, as if a NAT or firewall had forgotten the connection. */
    bool hole;
    int64_t dialled_us;
    /* bulk_us: arrival time of the last bulk message from each end. wire_us: time at which the
     * line from each end becomes free. */
    int64_t bulk_us[2], wire_us[2];
    /* Time from which on data from each end are held because the path is cut, in microseconds. 0:
     * none are held. */
    int64_t unacked_us[2];
};

struct sim_world
{
    struct sim_config config;
    struct rng rng;
    struct sim_peer *peers;
    struct record *known;
    struct records *records;        /* Record store shared by all nodes' member tables. */
    struct shared_scratch *commons; /* Scratch memory that all nodes of the world share. */
    struct sim_link *links;
    uint32_t n_links, cap_links;
    struct thread_pool *crew;
    struct sim_heap heap;
    struct sim_queue held; /* Events that were sent while their path was cut, in order. */
    /* Matrix of n_peers x n_peers counters: [from * n_peers + to] is the number of active cuts
     * of the path. */
    uint16_t *cut;
    struct node_effects *fx;
    int64_t now_us;
    uint64_t n_events, trace;
    uint32_t n_ended;
};

/* ---- world.c ---- */

void sim_post(struct sim_world *w, struct sim_peer *p, struct sim_event e);
/* Queues NODE_HEARD events for a peer while a message arrives on a link, from from_us to at_us. */
void sim_hear(struct sim_world *w, struct sim_peer *to, uint32_t link, int64_t from_us,
              int64_t at_us);
int sim_start_peer(struct sim_world *w, struct sim_peer *p);
void sim_draw_id(struct sim_peer *p);
/* Writes the simulated (not secure) signature of msg by identity `id`. */
void sim_sign(const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
              uint8_t out[WIRE_SIGNATURE_BYTES]);
void sim_close_node(struct sim_world *w, struct sim_peer *p);
/* Waits until the peer's job has run, so that its results can be read. */
void sim_await(const struct sim_world *w, struct sim_peer *p);
/* Ends the process of a peer and all its sessions. clean: the peer ended by itself and was not
 * killed. */
void sim_end_peer(struct sim_world *w, struct sim_peer *p, bool clean);
/* Passes an event to the node and carries out the resulting effects (sends, dials, notes, ...). */
void sim_deliver(struct sim_world *w, struct sim_peer *p, const struct sim_event *e);
static inline bool sim_lives(const struct sim_peer *p)
{
    return p->node != NULL && !p->ended;
}

/* ---- checkpoints.c ---- */

/* Starts to write the state of the node as a checkpoint. NODE_WRITTEN follows after
 * sim_config.disk_us. */
void checkpoints_begin_write(struct sim_world *w, struct sim_peer *p);
/* Ends the write of a checkpoint, which replaces the older of the peer's two stored checkpoints. */
void checkpoints_end_write(struct sim_peer *p);
/* Discards a checkpoint whose write a kill has interrupted. The two older checkpoints of the peer
 * remain. */
void checkpoints_lose_write(struct sim_peer *p);
/* Stores the model of the peer's node on its disk. Returns false if the disk is full. */
bool checkpoints_keep_model(struct sim_peer *p);
/* Reads the model that the peer `self` (struct sim_peer) stored last (node_config.read_model). */
bool checkpoints_read_model(void *self, const struct segment *segments, size_t n_segments,
                            float *x);
/* Stores the voting state of the finish protocol (the promise) on the disk of the peer `self`
 * (struct sim_peer). Returns false if the disk is full. */
bool checkpoints_keep_promise(void *self, const uint8_t *bytes, size_t n);
void checkpoints_wipe(struct sim_peer *p);
void checkpoints_close(struct sim_peer *p);
/* Adds the checkpoints of the peer to c->resume, the newest first. */
void checkpoints_resume(struct sim_peer *p, struct node_config *c);

/* ---- network.c ---- */

void sim_path(struct sim_world *w, uint32_t from, uint32_t to, struct sim_path *path);
int64_t sim_lag(struct sim_world *w, const struct sim_path *path);
/* Returns the bytes of a message of n bytes at the socket, including headers and tags of the
 * channel. */
uint64_t sim_socket_bytes(size_t n);
/* Returns the bytes that a message of n bytes takes on a line, including channel records and
 * segment headers. A message of 0 bytes, such as a connect, takes one segment. */
size_t sim_line_bytes(const struct sim_path *path, size_t n);
struct sim_peer *sim_peer_at(struct sim_world *w, const char *address);
void sim_count_handshake(struct sim_peer *dialler, struct sim_peer *dialled);
uint32_t sim_new_link(struct sim_world *w, struct sim_link link);
static inline int sim_side(const struct sim_link *l, const struct sim_peer *p)
{
    return l->end[0] == p->index ? 0 : 1;
}
void network_dial(struct sim_world *w, struct sim_peer *p, const struct node_dial *d);
void network_send(struct sim_world *w, struct sim_peer *p, const struct node_send *s);
void network_break(struct sim_world *w, uint32_t link, bool clean);
/* Resolves the bootstrap name of the event e, and stores the addresses in *ev. */
void network_resolved(struct sim_world *w, struct sim_peer *p, const struct sim_event *e,
                      const char *address[NODE_SEEDS_MAX], struct node_event *ev);

/* ---- session.c: dial, send and hang up in the network with sessions ---- */

void session_dial(struct sim_world *w, struct sim_peer *p, const struct node_dial *d);
void session_send(struct sim_world *w, struct sim_peer *p, const struct node_send *s,
                  uint8_t *bytes, size_t n);
void session_hang_up(struct sim_world *w, struct sim_peer *p, uint32_t link, bool violation);
void session_take(struct sim_world *w, struct sim_peer *p, struct sim_event *e);
/* Closes one end of a session without an event to the node there. The other end is notified, unless
 * the host is off. */
void session_drop_end(struct sim_world *w, uint32_t link, int side, bool clean);
/* Notifies one end, after in_us, that the session is over. The other end is not notified. */
void session_reset_end(struct sim_world *w, uint32_t link, int side, int64_t in_us);
/* Notifies both ends at once that the session is over. */
void session_break(struct sim_world *w, uint32_t link);
/* Sends the events that waited because their path was cut, for all paths that are no longer cut. */
void session_heal(struct sim_world *w);
bool session_blocked(const struct sim_world *w, const struct sim_link *l, int from_side);

#endif
