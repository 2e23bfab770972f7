/* peer/sim/state.h -- the inside of a simulated world, shared by peer/sim/ only.
 *
 *   world.c    the nodes: their lives, a step of theirs, what they ask for
 *   network.c  lags, addresses, names; the plain network, whose sessions are whole
 *   session.c  the network with sessions: connect, accept, half-open, resets
 *   checkpoints.c  checkpoints of each peer, and their state after a kill
 *   faults.c   what goes wrong from outside: kills, cuts, stops
 *   insider.c  who may be a member, and what holders of the key do beside their nodes
 */
#ifndef PEER_SIM_STATE_H
#define PEER_SIM_STATE_H

#include "nn/math/crew.h"
#include "nn/math/rng.h"
#include "nn/math/state.h"
#include "peer/sim/attack.h"
#include "peer/sim/heap.h"
#include "peer/sim/world.h"

enum {
    SIM_GIVE_UP_US = 3 * 1000 * 1000,  /* A dial, and a handshake, as in peer/uv/link.c. */
    SIM_DRAIN_US = 1000 * 1000,        /* An end that hung up waits so long for the other. */
    SIM_UNACKED_US = 30 * 1000 * 1000, /* TCP_USER_TIMEOUT of peer/uv/link.c. */
    SIM_SEGMENT = 1448,                /* Bytes of one of TCP's over Ethernet. */
    SIM_RESEND_US = 200 * 1000, /* Linux' least retransmission timeout, beside a round trip. */
    SIM_RESOLVE_US = 500,
    SIM_UNIX_S = 1700000000,   /* The wall clock when a world begins. */
    SIM_HEARD_US = 250 * 1000, /* Who receives a message for longer hears of it so often. */
    SIM_MIXING = 4,            /* A local step takes so many times as long as a job without any. */
    SIM_PARTS = 3              /* So many parts of a delta a job tells of, at most. */
};

/* A checkpoint, whole or not there. */
struct sim_slot
{
    struct state state; /* As it was written, */
    struct state view;  /* and to be read. */
    uint64_t beat;      /* 0: empty. */
};

/* What survives a kill: two checkpoints, the newer first. A third is on its way. */
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
    struct attacker *attacker; /* NULL: it is honest. */
    char name[WIRE_NAME_MAX + 1], address[WIRE_NAME_MAX + 8];
    const char *advertise;
    uint8_t id[WIRE_ID_BYTES];
    int64_t wake_us; /* The earliest TIMER that is queued already; INT64_MAX: none. */
    double slowness; /* Its local steps take so many times as long as step_us, */
    double fault;    /* and through a fault so many times as long as that. */
    uint64_t sent, received;
    int64_t up_us, down_us;                /* When its host's uplink is free, and its downlink. */
    const char *seed_name[NODE_SEEDS_MAX]; /* Names that it has asked to resolve. */
    bool ended;
    bool asked; /* It has been asked to leave. */
    int exit_code;
    bool off;               /* Its host is: nothing is sent, not even a reset. */
    bool stopped;           /* Its loop stands still: what comes waits in `late`. */
    bool hung;              /* Its worker does: WORKED waits there. */
    bool full;              /* Its disk is: nothing can be stored. */
    size_t part[SIM_PARTS]; /* The job has told of n_parts parts of a delta, by so many bytes. */
    size_t n_parts;
    struct crew_job job; /* The node's, on a thread of the crew; sim_await() first. */
    struct sim_queue late;
    struct sim_checkpoints checkpoints;
};

/* Where one end of a session stands. */
enum sim_end { SIM_END_NONE, SIM_END_UP, SIM_END_DRAINING, SIM_END_GONE };

struct sim_link
{
    uint32_t end[2];     /* Peers; the first has dialled. */
    bool up;             /* The plain network knows only this, */
    bool drains;         /* and that what is on its way still arrives: one end has left. */
    int64_t clear_us[2]; /* When the last message from end k has arrived: none overtakes it. */

    /* The network with sessions, end by end. */
    uint32_t boot[2]; /* Which of the peer's lives has it. */
    enum sim_end state[2];
    uint32_t tag; /* In the dial. */
    bool over;    /* The dialler has been told that it failed. */
    bool hole;    /* Nothing passes any more, and nobody is told. */
    int64_t dialled_us;
    int64_t bulk_us[2], wire_us[2]; /* clear_us of the bulk lane; when the line is free. */
    int64_t unacked_us[2];          /* Since when what end k said is held; 0: it is not. */
};

struct sim_world
{
    struct sim_config config;
    struct rng rng;
    struct sim_peer *peers;
    struct record *known;
    struct records *records; /* Shared by all nodes' tables. */
    struct commons *commons; /* Shared by all nodes. */
    struct sim_link *links;
    uint32_t n_links, cap_links;
    struct crew *crew;
    struct sim_heap heap;
    struct sim_queue held; /* Sent into a cut, in order. */
    uint16_t *cut;         /* n x n, from and to: so many cuts lie over each other. */
    struct node_effects *fx;
    int64_t now_us;
    uint64_t n_events, trace;
    uint32_t n_ended;
};

/* world.c */
void sim_post(struct sim_world *w, struct sim_peer *p, struct sim_event e);
/* A message is on its way to this end from one time to the other. */
void sim_hear(struct sim_world *w, struct sim_peer *to, uint32_t link, int64_t from_us,
              int64_t at_us);
int sim_start_peer(struct sim_world *w, struct sim_peer *p);
void sim_draw_id(struct sim_peer *p);
/* The toy signature by this identity. */
void sim_sign(const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
              uint8_t out[WIRE_SIGNATURE_BYTES]);
void sim_close_node(struct sim_world *w, struct sim_peer *p);
/* Its job has run: what that wrote can be read. */
void sim_await(const struct sim_world *w, struct sim_peer *p);
/* A peer leaves: all its sessions end with it. */
void sim_end_peer(struct sim_world *w, struct sim_peer *p, bool clean);
/* Give the node an event, and carry out what it asks for. */
void sim_deliver(struct sim_world *w, struct sim_peer *p, const struct sim_event *e);
static inline bool sim_lives(const struct sim_peer *p)
{
    return p->node != NULL && !p->ended;
}

/* checkpoints.c */
/* Begins to write the state of the node as a checkpoint. The write takes sim_config.disk_us. */
void checkpoints_begin_write(struct sim_world *w, struct sim_peer *p);
/* The write has ended: it replaces the older of the two checkpoints. */
void checkpoints_end_write(struct sim_peer *p);
/* The peer was killed during the write: the two older checkpoints remain. */
void checkpoints_lose_write(struct sim_peer *p);
/* Deletes all checkpoints of the peer. */
void checkpoints_wipe(struct sim_peer *p);
void checkpoints_close(struct sim_peer *p);
/* Adds the checkpoints of the peer to c->resume, the newest first. */
void checkpoints_resume(struct sim_peer *p, struct node_config *c);

/* network.c */
void sim_path(struct sim_world *w, uint32_t from, uint32_t to, struct sim_path *path);
int64_t sim_lag(struct sim_world *w, const struct sim_path *path);
uint64_t sim_socket_bytes(size_t n); /* With what the channel adds: headers and tags. */
/* What a line carries for a message of n bytes: with headers, the records that the channel makes of it,
 * in segments. What is no message, such as a connect, has no bytes and is one segment. */
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
/* Fill in what the name of this event stands for now. */
void network_resolved(struct sim_world *w, struct sim_peer *p, const struct sim_event *e,
                      const char *address[NODE_SEEDS_MAX], struct node_event *ev);

/* session.c: the same, and more. */
void session_dial(struct sim_world *w, struct sim_peer *p, const struct node_dial *d);
void session_send(struct sim_world *w, struct sim_peer *p, const struct node_send *s,
                  uint8_t *bytes, size_t n);
void session_hang_up(struct sim_world *w, struct sim_peer *p, uint32_t link, bool violation);
void session_take(struct sim_world *w, struct sim_peer *p, struct sim_event *e);
/* One end goes without a word to its node; where the host still runs the other hears. */
void session_drop_end(struct sim_world *w, uint32_t link, int side, bool clean);
/* One end is told that the session is over; its other end learns it by itself. */
void session_reset_end(struct sim_world *w, uint32_t link, int side, int64_t in_us);
/* Both are, at once. */
void session_break(struct sim_world *w, uint32_t link);
/* Paths have come back: what was held goes on its way. */
void session_heal(struct sim_world *w);
bool session_blocked(const struct sim_world *w, const struct sim_link *l, int from_side);

#endif
