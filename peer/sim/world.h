/* peer/sim/world.h -- DRIVER 2: many nodes, a simulated network, virtual time.
 *
 * A heap of pending events, ties broken by a counter; the very node of the real
 * driver, and the very bytes of its messages: encoded by one node, decoded by
 * another. Left out are sockets, the channel's cryptography (a toy signature
 * stands in for Ed25519, since the simulated are not hostile) and a peer's own
 * thread: a job is begun at once, on one of `threads`, and reported done after the
 * time it is simulated to take. Whoever looks at what a job works on waits for it, so
 * that a world is the same with any number of threads.
 *
 *   node_step() -> sends  --latency, bandwidth--> RECV
 *               -> work   --steps x step_us-----> WORKED
 *               -> dial   --latency------------->  LINK_UP at both ends
 *
 * Messages of one direction of a link arrive in order. A world is a function
 * of its configuration: equal seeds give equal runs.
 */
#ifndef PEER_SIM_WORLD_H
#define PEER_SIM_WORLD_H

#include "peer/node/consensus.h"
#include "peer/node/node.h"

enum { SIM_LEAST_BYTES_PER_S = 1 };

struct attack;

/* The way from one peer to another. */
struct sim_path
{
    int64_t latency_us; /* One way. */
    int64_t jitter_us;  /* Uniform, added to the latency. */
    double bytes_per_s; /* 0: no limit, else SIM_LEAST_BYTES_PER_S or more. */
    double loss;        /* Chance that a segment is lost, and sent again: peer/sim/session.c. */
    /* The sending and the receiving host, each shared by all its sessions; 0: no limit. */
    double uplink, downlink;
    /* What TCP, IP and the line add to each segment, in bytes. 0: of a message the lines carry nothing
     * but itself, not even what the channel adds. */
    uint32_t headers;
};

struct sim_config
{
    uint32_t n_peers;
    uint64_t seed; /* The network's: jitter and faults. */
    struct run run;
    int64_t latency_us; /* One way. */
    int64_t jitter_us;  /* Uniform, added to the latency. */
    double
        bytes_per_s;  /* On each link, each way; 0: no limit, else SIM_LEAST_BYTES_PER_S or more. */
    int64_t step_us;  /* One local step. */
    double straggler; /* The last peer's are so many times slower; 0: they are not. */
    double step_spread;    /* Peers' speeds differ by up to this factor - 1. */
    double cut_rate;       /* Chance that a delta is lost with its session. */
    int64_t checkpoint_us; /* Age of a checkpoint when the next is due; 0: there are none. */
    int64_t disk_us;       /* One is on disk so long after it was taken. */
    bool sessions;         /* The network has sessions (peer/sim/faults.h). */
    /* Change what is so for this way only; *p is as it is for all. Wants sessions. May be NULL. */
    void (*path)(void *self, uint32_t from, uint32_t to, struct sim_path *p);
    uint64_t evaluate_every, evaluate_samples;
    /* Jobs of different peers run on so many threads, that of the caller among them; 0: one. With
     * `attack` or `worked`, which look at vectors as they are after each job, it is one. */
    uint32_t threads;
    /* Members that lie (peer/sim/attack.h): what they do, and which of the n_peers do. NULL:
     * nobody does. `liar` must outlive the world. */
    const struct attack *attack;
    const bool *liar;

    /* The trainer of a peer. 0, or a negative errno with a sentence. */
    int (*make_trainer)(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX]);
    void *self;
    /* Change what a peer is given before it starts: its flags, whether it brings
     * the run. May be NULL: then everybody brings `run`. */
    void (*configure)(void *self, uint32_t peer, struct node_config *c);
    /* New figures of a peer; may look at the world. May be NULL. */
    void (*measured)(void *self, uint32_t peer);
    /* A line for people. May be NULL. */
    void (*note)(void *self, uint32_t peer, const struct node_note *note);
    /* A job of this peer has run, and is not reported yet: x and the replicas are as it left
     * them. May be NULL. */
    void (*worked)(void *self, uint32_t peer);
    /* A job of this peer begins, on this thread: 0 is the caller's. Called there. May be NULL. */
    void (*works)(void *self, uint32_t peer, uint32_t thread);
    /* A node is about to be given this event. `other` is the peer at the other end of the
     * event's link, or this one. May be NULL. */
    void (*watch)(void *self, uint32_t peer, const struct node_event *ev, uint32_t other);
    /* What a bootstrap name stands for now, as seen by this peer: at most NODE_SEEDS_MAX
     * addresses; returns how many. NULL: names are never resolved. */
    uint32_t (*resolve)(void *self, uint32_t peer, const char *name,
                        const char *address[NODE_SEEDS_MAX]);
};

struct sim_world; /* Opaque. */

/* 0, -EINVAL or -ENOMEM. */
int sim_open(struct sim_world **w, const struct sim_config *config);
void sim_close(struct sim_world *w);

/* Deliver the earliest pending event. False: nothing is pending, or every
 * node has ended. */
bool sim_step(struct sim_world *w);

/* Deliver everything that is due until t_us, which is then the time. False: there is
 * nothing more to come. */
bool sim_run_to(struct sim_world *w, int64_t t_us);

/* When the earliest pending event is due; INT64_MAX: there is none. */
int64_t sim_next_us(const struct sim_world *w);
/* Nobody lives any more. With sessions, what is on its way then is still pending. */
bool sim_over(const struct sim_world *w);
int64_t sim_now_us(const struct sim_world *w);
uint64_t sim_events(const struct sim_world *w);
/* A hash of every event delivered so far: equal seeds must give equal ones. */
uint64_t sim_trace(const struct sim_world *w);

/* The figures of a peer, without waiting for its job. Asserts that it has a node. */
void sim_progress(const struct sim_world *w, uint32_t peer, struct node_progress *p);
/* The node of a peer, whose job, if there is one, has been waited for; NULL once it has been killed. */
const struct node *sim_node(const struct sim_world *w, uint32_t peer);
/* Its present identity. */
const uint8_t *sim_id(const struct sim_world *w, uint32_t peer);
/* Has it ended by itself, and with which exit code? */
bool sim_ended(const struct sim_world *w, uint32_t peer, int *exit_code);

/* Has it ended since it was asked to leave, and is there still its node? It is no member then. */
bool sim_left(const struct sim_world *w, uint32_t peer);

/* All bytes that the peer has sent, and those that have reached it. What is on
 * its way when a session breaks, or for a peer that has ended, reaches nobody. */
void sim_totals(const struct sim_world *w, uint32_t peer, uint64_t *sent, uint64_t *received);

/* The exact consensus distance over the honest peers that have a model and have not left; NaN
 * where there is none, or no memory. O(n d). */
void sim_drift(const struct sim_world *w, struct consensus *c);

#endif
