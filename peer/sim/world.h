/* peer/sim/world.h -- the simulator: many nodes, a simulated network, virtual time.
 *
 * The simulator is the second driver of a node; the first is the TCP driver (peer/uv). It runs
 * the same node code, and the nodes exchange real messages, which one node encodes and another
 * decodes. Sockets and cryptography are not simulated: a hash replaces the Ed25519 signature, and
 * messages are not encrypted. A job runs on one of `threads` threads as soon as it is created,
 * and is reported done after its simulated time. Code that reads the results of a job waits for
 * it, so results do not depend on the number of threads.
 *
 * Effects of a node become events of nodes after a delay, which stands on the arrow:
 *
 *   node_step() -> sends  --latency, bandwidth--> RECV
 *               -> work   --steps x step_us-----> WORKED
 *               -> dial   --latency------------->  LINK_UP at both ends
 *
 * Pending events are in a heap; a counter orders events of equal time. Messages of one
 * direction of a link arrive in order. A world depends only on its configuration: equal seeds
 * give equal runs.
 */
#ifndef PEER_SIM_WORLD_H
#define PEER_SIM_WORLD_H

#include "peer/node/node.h"
#include "peer/node/result/consensus.h"

enum { SIM_LEAST_BYTES_PER_S = 1 };

struct attack;

/* Properties of the path from one peer to another. */
struct sim_path
{
    int64_t latency_us; /* One-way latency of the path, in microseconds. */
    /* Maximum jitter in microseconds, uniformly distributed and added to the latency. */
    int64_t jitter_us;
    /* Bandwidth in bytes per second, at least SIM_LEAST_BYTES_PER_S. 0: no limit. */
    double bytes_per_s;
    /* Probability that a segment is lost and must be sent again (peer/sim/session.c). */
    double loss;
    /* Bandwidth of the sending host's uplink and the receiving host's downlink, in bytes per
     * second, shared by all sessions of the host. 0: no limit. */
    double uplink, downlink;
    /* Bytes that TCP, IP and Ethernet add to each segment. 0: only the bytes of the message take
     * bandwidth, without headers and without the tags of the encryption. */
    uint32_t headers;
};

struct sim_config
{
    uint32_t n_peers;
    uint64_t seed; /* Seed of the network: jitter and faults. */
    struct run run;
    int64_t latency_us; /* One-way latency of every path, in microseconds. */
    /* Maximum jitter in microseconds, uniformly distributed and added to the latency. */
    int64_t jitter_us;
    /* Bandwidth in bytes per second of each link and direction, at least SIM_LEAST_BYTES_PER_S.
     * 0: no limit. */
    double bytes_per_s;
    int64_t step_us; /* Time of one local step in microseconds. */
    /* Factor by which the local steps of the peer with the highest number take longer than those of
     * other peers. 0: no straggler. */
    double straggler;
    double step_spread; /* The speeds of peers differ by a factor of up to 1 + step_spread. */
    double cut_rate;    /* Probability that a delta is lost together with its session. */
    /* Age of a peer's last checkpoint at which the peer writes the next one, in microseconds. 0:
     * no checkpoints. */
    int64_t checkpoint_us;
    int64_t disk_us; /* Time to write a checkpoint, in microseconds. */
    /* True: the network has sessions like TCP, which can be half-open (peer/sim/faults.h).
     * False: the plain network, where a session is up or down at both ends at once. */
    bool sessions;
    /* Sets the properties of one path. On entry *p has the values of this configuration.
     * Requires `sessions`. May be NULL. */
    void (*path)(void *self, uint32_t from, uint32_t to, struct sim_path *p);
    uint64_t evaluate_every, evaluate_samples;
    /* Number of threads for jobs of different peers, including the caller's thread. 0 stands for 1.
     * If `attack` or `worked` is set, the number is always 1, because both read models and replicas
     * after each job. */
    uint32_t threads;
    /* Attack of the Byzantine members (peer/sim/attack.h), and n_peers flags that select these
     * members. NULL: all peers are honest. `liar` must outlive the world. */
    const struct attack *attack;
    const bool *liar;

    /* Creates the trainer of a peer. Returns 0, or a negative errno with a message in `error`. */
    int (*make_trainer)(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX]);
    void *self;
    /* Changes the configuration of a peer's node before it starts: its options, and whether it
     * starts with the run or gets the run from another peer. NULL: every peer starts with `run`. */
    void (*configure)(void *self, uint32_t peer, struct node_config *c);
    /* Called when a peer has new metrics. May read the world. May be NULL. */
    void (*measured)(void *self, uint32_t peer);
    /* Callback that receives a note (message for users) of a peer. May be NULL. */
    void (*note)(void *self, uint32_t peer, const struct node_note *note);
    /* Called after a job of the peer (local steps, mixing and encoding) has run, and before the
     * node gets NODE_WORKED. The model x and the replicas are then as the job left them. May be
     * NULL. */
    void (*worked)(void *self, uint32_t peer);
    /* Called on thread `thread` (0: the caller's) when a job of the peer (local steps, mixing and
     * encoding) begins there. May be NULL. */
    void (*works)(void *self, uint32_t peer, uint32_t thread);
    /* Called before a node gets an event. `other`: the peer at the other end of the event's
     * link, or `peer` itself if the event has no link. May be NULL. */
    void (*watch)(void *self, uint32_t peer, const struct node_event *ev, uint32_t other);
    /* Called after the node has handled the event, and before the effects of the step (sends,
     * dials, notes, ...) are carried out. May be NULL. */
    void (*stepped)(void *self, uint32_t peer, const struct node_event *ev,
                    const struct node_effects *fx);
    /* Resolves a bootstrap name as seen by a peer: stores at most NODE_SEEDS_MAX addresses and
     * returns their number. NULL: names are never resolved. */
    uint32_t (*resolve)(void *self, uint32_t peer, const char *name,
                        const char *address[NODE_SEEDS_MAX]);
};

struct sim_world; /* An opaque simulated world. */

/* Creates a world in *w. Returns 0, -EINVAL or -ENOMEM. */
int sim_open(struct sim_world **w, const struct sim_config *config);
void sim_close(struct sim_world *w);

/* Delivers the earliest pending event. Returns false if none is pending or all nodes have ended. */
bool sim_step(struct sim_world *w);

/* Delivers all events up to the world time t_us, then sets the world time to t_us. Returns false if
 * no event is pending or all nodes have ended. */
bool sim_run_to(struct sim_world *w, int64_t t_us);

/* Returns the time of the earliest pending event. INT64_MAX: none. */
int64_t sim_next_us(const struct sim_world *w);
/* Returns whether all nodes have ended. In a network with sessions, events may still be pending
 * then. */
bool sim_over(const struct sim_world *w);
int64_t sim_now_us(const struct sim_world *w);
uint64_t sim_events(const struct sim_world *w);
/* Returns a hash of all events delivered so far. Two worlds with the same configuration and seed
 * must give equal hashes. */
uint64_t sim_trace(const struct sim_world *w);

/* Returns a peer's metrics in *p without waiting for its job. Asserts that the peer has a node. */
void sim_progress(const struct sim_world *w, uint32_t peer, struct node_progress *p);
/* Returns the node of a peer after waiting for its job. NULL: the peer was killed. */
const struct node *sim_node(const struct sim_world *w, uint32_t peer);
/* Returns the node of a peer without waiting for its job. Only functions that may be called while a
 * job runs may be used on the result. */
const struct node *sim_node_at_work(const struct sim_world *w, uint32_t peer);
/* Returns the current identity of a peer. */
const uint8_t *sim_id(const struct sim_world *w, uint32_t peer);
/* Returns whether a peer has ended or was killed. *exit_code: its exit code, valid only if it
 * ended by itself. */
bool sim_ended(const struct sim_world *w, uint32_t peer, int *exit_code);

/* Returns whether a peer was asked to leave (sim_ask_to_leave()) and has ended by itself. Such a
 * peer is no longer a member. */
bool sim_left(const struct sim_world *w, uint32_t peer);

/* Returns the bytes that a peer has sent and received. Messages on the way when a session breaks,
 * and messages to a peer that has ended, do not count as received. */
void sim_totals(const struct sim_world *w, uint32_t peer, uint64_t *sent, uint64_t *received);

/* Computes the exact consensus distance of the honest peers that have a model and have not left.
 * NaN: no such peer, or out of memory. O(n d). */
void sim_drift(const struct sim_world *w, struct consensus *c);

#endif
