/* peer/node/edge/edges.h -- the neighbours of a node in the graph, and the protocol of the edge to
 * each.
 *
 * struct edges owns all neighbours, in the order of the member table, and the protocol state of
 * each edge (gossip/exchange/edge.h). It is defined in edges_state.h. Only the files edges*.c,
 * rounds.c, parts.c and averaging_pass.c write it. During a job the mixer also changes the edges
 * that take part. Other modules read `const struct neighbour *` and struct edges_status.
 *
 * States of an edge (enum edge_state). An EDGE message asks the neighbour to open the edge:
 *
 *   - CLOSED to ASKING: there is a session, and EDGE is sent.
 *   - ASKING to OPEN: both EDGEs are here (edge_agree()).
 *   - OPEN to PAUSED: the session is silent for SILENT_US.
 *   - PAUSED to OPEN: a message arrives on the session that was silent.
 *   - OPEN or ASKING to PAUSED: the session is lost, or EDGE_CLOSE arrives.
 *   - PAUSED or DONE to ASKING: a new session exists, or EDGE_CLOSE has arrived. EDGE is sent.
 *   - OPEN to ASKING: the replicas differ. The epoch is set to 0, and EDGE is sent.
 *   - OPEN to PAUSED: the neighbour is distrusted. The epoch is set to 0, EDGE_CLOSE is sent, and
 *     EDGE only after a while (edges_trust.c).
 *   - OPEN or ASKING to PAUSED: the consensus phase begins, and the edge was suspect in training.
 *     The epoch is set to 0, and EDGE_CLOSE is sent.
 *   - Any state to DONE: the neighbour's model is final (edges_finish()).
 *
 * An edge exists while the topology, which is computed from the current members, contains it. An
 * edge uses the session with its neighbour. If there is no session, edges_update() asks sessions.h
 * to call the neighbour.
 *
 * The *step counter* of a peer is the number of rounds that it has done: the rounds of training,
 * then those of the consensus phase. Fields and arguments that hold a step counter are named `beat`
 * or `run_round`. All times are node time in microseconds (env.h).
 */
#ifndef PEER_NODE_EDGE_EDGES_H
#define PEER_NODE_EDGE_EDGES_H

#include "peer/node/edge/averaging_pass.h"
#include "peer/node/edge/delayed_exchange.h"
#include "peer/node/edge/flap_damping.h"
#include "peer/node/edge/pace.h"
#include "peer/node/join/checkpoint.h"
#include "peer/node/run_context.h"

enum {
    /* Largest number of rounds in a pass (ROUND_SCHEDULE_ROUNDS_MAX). A pass is the sequence of
     * rounds that is repeated if the topology changes by round. */
    EDGES_ROUNDS_MAX = 24,
    /* Largest number of rounds of the consensus phase that this peer accepts in a message. An
     * honest peer ends the phase long before. */
    EDGES_BEATS_MORE = 1 << 24
};

/* Contents of a BEAT message, with which a neighbour reports its progress. */
struct neighbour_word
{
    uint64_t beat; /* Step counter of the neighbour. 0: no BEAT has arrived. */
    /* Number of hops around the neighbour within which all peers are known to be under
     * --final-drift. */
    uint32_t settled;
};

/* The last BEAT message (report of this peer's progress) to a neighbour, stored to limit how often
 * an equal BEAT is repeated. */
struct neighbour_told
{
    uint32_t link; /* Number of the session on which the BEAT was sent. */
    /* Values that the last BEAT carried. beat: step counter of this peer. due: step counter at
     * which this peer takes its next checkpoint (0: none). */
    uint64_t beat, due;
    /* settled: number of hops that the BEAT announced, within which all peers are near the mean. n:
     * number of successive attempts to send a BEAT with these values, the first one included. Some
     * repetitions are not sent. */
    uint32_t settled, n;
};

/* Fragments of an unfinished delta that were sent to a neighbour before the DELTA message
 * (parts.h). */
struct neighbour_part
{
    uint32_t link;         /* Number of the session on which the fragments were sent. */
    uint64_t epoch, round; /* Epoch and round of the edge to which the delta belongs. */
    /* Number of bytes sent so far, which are the last bytes of the delta. 0: nothing was sent. */
    size_t n;
};

/* A neighbour in the topology, and the edge to it. */
struct neighbour
{
    struct edge edge;
    const struct link *link; /* Session that the edge uses. NULL: there is none. */
    bool wanted;             /* True: the topology of the current members contains the edge. */
    /* True: the consensus phase has begun, and only the topology of training contains the edge. Its
     * pending exchange is completed, and no new exchange begins (edges_last.c). */
    bool aside;
    /* True: an EDGE message must be sent, which asks the neighbour to open the edge. */
    bool must_ask;
    int64_t lost_us; /* Time at which the session was lost. Valid while there is no session. */
    /* Last time at which the edge was OPEN or DONE. Time of its creation if it was never OPEN. */
    int64_t open_us;
    /* Largest step counter of the neighbour in an EDGE or BEAT message since the edge last
     * opened. */
    uint64_t beat;
    /* Last time at which the edge opened, a delta was accepted, or a BEAT raised the neighbour's
     * step counter. */
    int64_t beat_us;
    /* The neighbour's latest BEAT with an even step counter, and its latest BEAT with an odd
     * one. */
    struct neighbour_word said[2];
    /* Last time at which a part of an incomplete message arrived from the neighbour. 0: never. */
    int64_t coming_us;
    struct flap_damping absence; /* Recent absences of the neighbour, and their penalty. */
    /* Last checkpoint announcement of the neighbour that this peer accepted. */
    struct checkpoint_word word;
    struct delayed_exchange stale; /* Whether the edge is late or stale, and since when. */
    /* True: this peer does not wait for the neighbour now, and the user was informed. */
    bool excused;
    /* True: this peer has stopped waiting for the neighbour at some time since the edge was
     * created. */
    bool was_excused;
    /* Consensus step size of the edge after the last job. This is a copy, because the worker may
     * change edge.gamma while a job runs. */
    double gamma;
    /* Time until which the edge is closed for distrust. 0: it was never closed. In the consensus
     * phase this time is ignored unless the edge was closed only once (edges_trust.c). */
    int64_t barred_us;
    uint32_t n_barred; /* Number of times that the edge was closed for distrust. */
    /* True: the neighbour was distrusted, and the edge has completed fewer than 32 exchanges (WELL)
     * since (edges_trust.c). */
    bool distrusted;
    /* True: the edge stays closed in the consensus phase. Cleared if the distrust ends before that
     * phase. */
    bool for_good;
    double least2; /* Value recorded by edges_came_closer(). 0: none. */
    /* Number of runaways of the edge that were reported to the user. In a runaway the distance
     * between the two replicas grows without bound (gossip/exchange/gamma.h). */
    uint32_t n_runaways;
    struct neighbour_part part;
    struct neighbour_told told;
    /* Mixing weight of the edge in each round of a pass (the sequence of rounds that the topology
     * repeats), as packed by round_schedule_word(). 0: the edge is not used in that round. */
    uint32_t turn[EDGES_ROUNDS_MAX];
};

struct edges;

/* State of the graph and of all edges together, for other modules. */
struct edges_status
{
    /* Hash of the members (members_view()) for which the edges were chosen. 0: none chosen yet. */
    uint64_t view;
    uint32_t n_members;    /* Number of vertices of the graph, this peer included. */
    uint32_t eccentricity; /* Hops from this peer to the farthest member. */
    /* Number of rounds in a pass, the sequence of rounds that the topology repeats (rounds.h). 0:
     * the topology is constant. */
    uint32_t n_rounds;
    double momentum; /* Momentum of the consensus phase. Valid if edges_gap() is not 0. */
    /* Expected distance of this peer's model from the mean of all models, in units of the length of
     * a local step (graph_spread() in topology/topology.h). Set with --compress auto only. */
    double spread;
    /* Mean speed of the peers in local steps per second, as estimated for --local-steps auto. */
    double pace;
    /* Step counter of the earliest checkpoint that a neighbour has announced within the limit of
     * checkpoint_word(). 0, or a step counter in the past: none. */
    uint64_t heard_due;
    /* Step counter of the earliest checkpoint that a neighbour has announced, also beyond the limit
     * of checkpoint_word(). 0, or a step counter in the past: none. */
    uint64_t heard_any;
    int64_t opened_us; /* Last time at which any edge of this peer opened. */
    /* Last time at which any edge of this peer opened, or a delta was accepted on one of them. */
    int64_t exchange_us;
    /* Last time at which this peer stopped waiting for a neighbour. Only the first time for each
     * neighbour is recorded. 0: never. */
    int64_t excused_us;
    /* Number of resets of all edges. A reset begins a new epoch of an edge, with new replicas at
     * both ends. The first epoch of an edge is no reset. */
    uint64_t n_resets;
    /* Number of times that some edge was closed for distrust. Edges to neighbours that trained for
     * many more rounds than this peer are not counted. */
    uint64_t n_distrusted;
    /* Total bytes of fragments that were sent before their delta was complete, over all edges. */
    uint64_t bytes_ahead;
};

/* Returns the state of a peer without edges, or NULL if memory is exhausted. The pointer arguments
 * are borrowed. */
struct edges *edges_open(struct env *env, struct sessions *s, struct run_context *w);
/* Frees *es after edges_close_all(). NULL is allowed. */
void edges_close(struct edges *es);
/* Drops all edges without a message to the neighbours. Called when the run is closed. */
void edges_close_all(struct edges *es);

/* ---- events ---- */

/* edges_edge(), edges_edge_close(), edges_delta() and edges_part() handle a message that arrived on
 * session l. An invalid message ends the session. */
void edges_edge(struct edges *es, const struct link *l, const struct wire_edge *m);
void edges_edge_close(struct edges *es, const struct link *l);
void edges_delta(struct edges *es, const struct link *l, const struct wire_delta *d);
void edges_part(struct edges *es, const struct link *l, const struct wire_part *m);

/* Records that part of a message, but not yet all of it, arrived on session l. */
void edges_coming(struct edges *es, const struct link *l);
/* Handles a BEAT message that arrived on session l. An invalid message ends the session. */
void edges_beat(struct edges *es, const struct link *l, const struct wire_beat *m);
/* Pauses the edge that used session l, which is lost. */
void edges_lost(struct edges *es, const struct link *l);
/* Called when a message has arrived on session l. Reopens the edge that was paused because l was
 * silent. */
void edges_heard(struct edges *es, const struct link *l);
/* Records that the model of the peer at session l is final. The edge becomes DONE as soon as no
 * ready exchange on it waits for a job (edges_finish()). */
void edges_ending(struct edges *es, const struct link *l);
/* Opens all edges again with an EDGE message. Called when an attempt of the finish protocol was
 * aborted, because this peer and its neighbours then mix again. */
void edges_reopen(struct edges *es);
/* To be called when training begins: forgets earlier absences of neighbours. */
void edges_begin(struct edges *es);
/* Pauses edges after SILENT_US without a message on their session, and updates the flap damping. To
 * be called at every tick. */
void edges_tick(struct edges *es);

/* Returns whether the members have changed since the edges were chosen, or an edge that only the
 * topology of training contains has to be dropped. */
bool edges_outdated(const struct edges *es);
/* Chooses the edges for the current members: adds new edges, and drops edges that the topology no
 * longer contains. Must not be called while a job runs. */
void edges_rebuild(struct edges *es);
/* Brings all edges up to date: attaches sessions, sends EDGE messages, and sends deltas that are
 * ready. */
void edges_update(struct edges *es);
/* Dials each neighbour that has no session with this peer. Used while this peer has no model and
 * must open no edge. */
void edges_call(struct edges *es);

/* ---- calls from other modules ---- */

/* Sets edge i to DONE: no further exchange takes place. */
void edges_finish(struct edges *es, size_t i);
/* Reports this peer's progress by a BEAT to each neighbour with an open edge. Two exceptions: a
 * delta that is about to be sent to the neighbour carries the same values, or the policy is
 * `async`. beat: step counter. due: step counter of the next checkpoint; 0: none. settled: number
 * of hops around this peer within which all peers are near the mean. */
void edges_say_beat(struct edges *es, uint64_t beat, uint64_t due, uint32_t settled);
/* Starts the consensus phase. Chooses new edges if the consensus phase has another topology than
 * training. To be called between jobs. */
void edges_settle(struct edges *es);
/* Records whether this peer waits for neighbour i; excused true: it does not. The caller informs
 * the user. */
void edges_excuse(struct edges *es, size_t i, bool excused);
/* Adds the task of edge i to the job that is being planned. */
void edges_join(struct edges *es, size_t i, const struct mixing_moment *now);
/* Returns what edge i stores for sketches (random projections of models), to be used by the job
 * that is being planned. */
struct sketch_pair *edges_sketch(struct edges *es, size_t i);
/* Copies the consensus step size of each edge to the neighbour's field `gamma`, and drops edges
 * that the topology no longer contains. To be called after a job. */
void edges_job_done(struct edges *es);
/* Records that a job with `steps` local steps took took_us microseconds (pace_worked()). */
void edges_worked(struct edges *es, uint32_t steps, int64_t took_us);
/* Resets each edge whose two ends were found to have different replicas. */
void edges_reset_mismatched(struct edges *es);
/* To be called after a job. Closes each edge on which the job refused an exchange or found the
 * neighbour suspect. The time for which an edge is closed doubles with each repetition. Ends the
 * distrust of neighbours that have behaved well since (edges_trust.c). skipped: number of rounds
 * that this peer has skipped so far. */
void edges_judge(struct edges *es, uint64_t skipped);
/* Closes each edge that is still in use although edges_bars() is true: an edge that was suspect in
 * training may be open when the consensus phase begins, and stays closed from then on. A pending
 * exchange is discarded. No job may be running. */
void edges_shut_barred(struct edges *es);
/* Returns whether the edge to b is kept closed now because b was distrusted. */
bool edges_bars(const struct edges *es, const struct neighbour *b);
/* Returns whether the edge to b is not open, and b counts as Byzantine: the edge is closed for
 * distrust (edges_bars()), or b has violated the protocol (quarantine_knows()). */
bool edges_found_out(const struct edges *es, const struct neighbour *b);
/* Returns whether b is proven to be Byzantine, and not only suspect. edges_found_out() must be true
 * and, in addition, b has violated the protocol or the edge to b was never suspect. */
bool edges_proven(const struct edges *es, const struct neighbour *b);
/* Returns whether a new runaway of edge i was found since the last call. In a runaway the distance
 * between the two replicas grows without bound (gossip/exchange/gamma.h). */
bool edges_new_runaway(struct edges *es, size_t i);

/* ---- checkpoints (resume.h) ---- */

/* Writes the state of all edges to a checkpoint. */
void edges_write(struct edges *es, struct state *s);
/* Chooses the edges for the current members, at step counter `beat`. If the members and neighbours
 * are the same as in the checkpoint, restores the state of the edges from the checkpoint. Otherwise
 * all edges start with a reset. */
void edges_read(struct edges *es, uint64_t beat, struct state *s);

/* ---- questions ---- */

/* Returns the specification of the topology that is used now. It may differ between training and
 * the consensus phase. */
const char *edges_topology(const struct edges *es);
const struct neighbour *edges_at(const struct edges *es, size_t i);
/* Returns the largest step counter that b has announced in a message, including deltas that have
 * arrived and are not committed yet. */
uint64_t neighbour_beat(const struct neighbour *b);
/* Returns the number of hops around b within which all peers are known to be under --final-drift,
 * as announced in b's last committed delta or in a later BEAT. BEATs for step counters after `beat`
 * are ignored, because their time of arrival is not reproducible. */
uint32_t neighbour_settled(const struct neighbour *b, uint64_t beat);
/* Computes the spectral gap of the current graph, and the momentum of the consensus phase, from the
 * eigenvalues of the mixing matrix. Does nothing if the graph changes from round to round, or if
 * both values are known. An iterative method with O(n) per iteration on a graph of n members. Ends
 * the node if memory is exhausted. */
void edges_measure_gap(struct edges *es);
/* Returns the spectral gap of the current graph's mixing matrix. 0: it was not computed. */
double edges_gap(const struct edges *es);
/* Returns the neighbour at the other end of session l, or NULL. */
const struct neighbour *edges_of(const struct edges *es, const struct link *l);
/* Returns whether there is an edge on which this peer's replica differs from its model by more than
 * `most`, relative to |x| (mixing_lags()). */
bool edges_lag(const struct edges *es, double most);
/* Returns whether an open edge mixes outdated replicas (delayed_exchange.h), so that mixing may
 * move models apart that were close. most2: squared distance that is small enough to ignore. */
bool edges_stale(struct edges *es, double most2);
/* Returns whether edges have come closer since the last call that returned true. An edge has come
 * closer if |b - a|^2, the squared distance of the two replicas in its last exchange, is below
 * `factor` times the value recorded for the edge, or if no value is recorded yet. One edge is
 * enough. With --byzantine all edges must have come closer, because a part of the peers can agree
 * with each other while Byzantine neighbours keep it apart from the others. Edges without exchange
 * in their epoch, to neighbours that have ended, or closed for distrust do not count. If the result
 * is true, the values of the edges that came closer are recorded. */
bool edges_came_closer(struct edges *es, double factor);
/* Forgets the values that edges_came_closer() has recorded. */
void edges_forget_distances(struct edges *es);
/* edges_count() returns the number of all edges, edges_count_open() the number of open edges. */
size_t edges_count(const struct edges *es);
size_t edges_count_open(const struct edges *es);
/* Returns the sum of the payload lengths of this peer's latest deltas on all open edges, in bytes.
 * O(degree). */
size_t edges_delta_bytes(const struct edges *es);
/* Returns the present state of all edges together. */
struct edges_status edges_status(const struct edges *es);
/* Returns this peer's place in the spanning trees along which sketches (random projections of
 * models) are added up. */
const struct tree_aggregation_place *edges_place(const struct edges *es);
/* Returns the averaging pass (a sequence of rounds that computes the mean) that is under way, or
 * the last such pass. */
const struct averaging_pass *edges_pass(const struct edges *es);
/* With --local-steps auto: returns the number of local steps in the next round (pace_steps()). */
uint32_t edges_local_steps(const struct edges *es, uint32_t average, uint32_t most);

#endif
