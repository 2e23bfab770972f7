/* peer/node/schedule.h -- decides what a peer does next: a pure function of what the peer knows.
 *
 *   JOINING    waits for a model, for --min-peers and for its edges to open. If all other live
 *       |      members have finished, the peer takes their model and goes straight to FINISHING.
 *       |
 *       v      all edges are open, or SCHEDULE_OPENING_US is over
 *   TRAINING   below the quorum: mixes at a slow pace (SCHEDULE_HOLD_US) and takes no local steps,
 *       |      until the quorum is restored or --quorum-timeout is over
 *       v      the last round is done
 *   CONSENSUS  mixes without local steps; below the quorum at the same slow pace as in training
 *       |
 *       v      all peers are known to be under --final-drift, or there is no progress
 *   draining   (part of CONSENSUS) makes no new deltas; completes exchanges that are half done. If
 *       |      afterwards not all peers are known to be under --final-drift any more, and the finish
 *       |      protocol can still bring this peer under it, the peer mixes again.
 *       v      the model is final: it is measured, evaluated and written
 *   FINISHING  neighbours may still need the last deltas of this peer
 *       |
 *       |      no edge is open any more and all live members have ended, or SCHEDULE_STALL_US is
 *       v      over; the certificate is there, or the wait for it is over
 *   LEFT
 *
 * Near the mean: the distance of a peer's model to the mean of all models is known to be under
 * --final-drift.
 *
 * Step counter: the number of rounds of training plus the number of rounds of the consensus phase.
 * In lock step (--policy sync) peers compare step counters. The lag of a neighbour decides whether
 * this peer waits for it:
 *
 *   - The neighbour is not behind: this peer continues.
 *   - The neighbour is behind by 1 to LEAD rounds: this peer waits. The neighbour is slower, or was
 *     absent for a moment.
 *   - The neighbour is behind by more than LEAD rounds: this peer continues. The neighbour was
 *     absent for long, and will skip to this peer's step counter. Exception: if most members are
 *     that far behind, this peer has trained alone, and waits for them (round_quorum.c).
 *
 * LEAD (schedule_lead()) is more than lock step itself allows between two peers of the graph.
 * Therefore no peer skips rounds that it could have done. Skipped rounds are part of the step
 * counter. No neighbour of the peer with the least step counter is behind it, so waiting never
 * forms a cycle.
 *
 * Sometimes there is no neighbour for which a peer must wait: no edge is open, or the neighbours
 * that are behind come and go. The peer then keeps the pace of its earlier rounds with the others.
 * Without this rule only its own computation would limit its speed. If rounds usually wait for the
 * network, the peer could then finish all remaining rounds alone, and the others would have to skip
 * them.
 */
#ifndef PEER_NODE_SCHEDULE_H
#define PEER_NODE_SCHEDULE_H

#include "peer/node/timers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Phase of a peer. The order matters: the code compares phases with < and >=. */
enum node_phase {
    NODE_JOINING,  /* The peer waits for --min-peers, for a run or for a model. */
    NODE_TRAINING, /* The peer takes local steps and exchanges deltas. */
    /* Consensus phase: gossip without local steps, until --final-drift is reached. */
    NODE_CONSENSUS,
    NODE_FINISHING, /* The peer's model is final, but neighbours may still need its last deltas. */
    NODE_LEFT       /* The peer has ended and does nothing more. */
};

/* State of the edge to a neighbour. */
enum schedule_edge_state {
    /* The edge is not open, for example because no session connects its two ends. */
    SCHEDULE_EDGE_CLOSED,
    SCHEDULE_EDGE_OPEN, /* Both ends exchange deltas over the edge. */
    /* Nothing more has to be exchanged. The neighbour's model is final, or the edge belongs only to
     * the graph of training and has no half-done exchange. */
    SCHEDULE_EDGE_DONE
};

/* The deltas that exist for the next exchange of an edge. */
enum schedule_exchange {
    SCHEDULE_EXCHANGE_EMPTY, /* This peer's delta for the next exchange has not been made. */
    SCHEDULE_EXCHANGE_MADE,  /* Only this peer's delta for the next exchange has been made. */
    /* Without lock step: only the neighbour's delta for the next exchange has arrived. A peer that
     * makes no new deltas (`draining`) still makes its delta for this exchange, because the
     * neighbour waits for it. */
    SCHEDULE_EXCHANGE_OWED,
    /* For the next exchange, this peer's delta is made and the neighbour's has arrived. */
    SCHEDULE_EXCHANGE_COMPLETE
};

/* State of one neighbour as this peer knows it. scheduler_view_edges() fills in the struct. Then
 * round_quorum_look() limits `beat`, the neighbour's step counter, to what other members
 * confirm. */
struct schedule_edge
{
    enum schedule_edge_state state;
    enum schedule_exchange exchange;
    /* Time since the edge was last in the state OPEN or DONE, in microseconds. INT64_MAX: the
     * neighbour counts as Byzantine (edges_found_out()), and this peer does not wait for it. */
    int64_t lost_us;
    /* True: this peer's pending delta was made before its model was known to be near the mean of
     * the models. The exchange may move the model away again. */
    bool old;
    /* True: the next job makes no new delta for this edge. The graph changes by round and does not
     * use the edge in this round, or the edge belongs only to the graph of training. */
    bool idle;
    /* True: an exact averaging pass of the consensus phase needs the next exchange or BEAT of this
     * edge, so lock step waits for it (averaging_pass.h). */
    bool awaited;
    /* True: the run uses exact averaging passes and the edge is not open, so no pass can be
     * exact. */
    bool missing;
    /* True: the graph changes by round, and the neighbour ended at a step counter that this peer
     * has not passed yet. Until then schedule_settled() uses the neighbour's last announcement
     * (`settled`), so the time at which this peer hears of the end does not change the result. */
    bool ends_later;
    bool gathers; /* True: the neighbour is still joining. */
    /* True: flap damping is active. The neighbour comes and goes too often, so no peer waits for
     * it. */
    bool flapping;
    /* Time in microseconds since the neighbour's worker started its job or last showed progress, as
     * the neighbour announced. 0: the worker is idle, or nothing is known. */
    int64_t busy_us;
    /* Time in microseconds without news from the neighbour while this peer waited for it. 0: this
     * peer does not wait for the neighbour. */
    int64_t mute_us;
    uint64_t beat; /* Step counter of the neighbour, by the latest message that contains it. */
    /* Number of hops around the neighbour within which all peers are under --final-drift, by the
     * neighbour's last announcement. 0: the neighbour is not known to be under --final-drift. */
    uint32_t settled;
};

/* Everything that a decision of schedule_next() depends on. */
struct schedule_view
{
    enum node_phase phase; /* Phase of this peer. */
    bool lock_step;        /* True: the run is in lock step (--policy sync). */
    /* Least number of rounds by which a neighbour must be behind for this peer to wait: 1 in lock
     * step, N with --policy ssp:N. 0: this peer never waits. */
    uint32_t staleness;
    /* round: number of rounds of training that this peer did, skipped, or missed before it joined.
     * rounds: number of rounds of the run. */
    uint64_t round, rounds;
    /* Step counter of this peer: rounds of training plus rounds of the consensus phase. */
    uint64_t beat;
    int64_t idle_us; /* Time since this peer's last job ended, in microseconds. */
    /* Least time between two jobs of this peer in the consensus phase, in microseconds. */
    int64_t pace_us;
    /* Least time between two training rounds of a peer that waits for no neighbour, in
     * microseconds. */
    int64_t usual_us;
    /* Time in microseconds that one job of a neighbour's worker may take before the neighbour
     * counts as stuck. */
    int64_t limit_us;
    uint32_t n_live; /* Number of vertices of the graph, including this peer. */
    uint32_t reach;  /* Eccentricity of this peer: hops to the farthest vertex. */

    /* The following fields are used in the phase NODE_JOINING only. */
    bool has_model; /* True: this peer has a model. */
    bool complete;  /* True: --min-peers members are present, or the run has begun. */
    bool behind;    /* True: the run is under way or over, so this peer must fetch a model. */
    bool final; /* True: all other members have finished, and this peer has taken their model. */
    bool quiet; /* True: all edges are open, and none opened within the last QUIET_US. */
    /* Time for which this peer has had a model and enough members to begin, in microseconds. */
    int64_t gathered_us;

    /* True: this peer waits for the round protocol (exchange of a mixer without edges), which has
     * no result for this round yet (round_protocol.h). */
    bool waits_round;
    /* Round of the round protocol's latest result. It may be later than this peer's round. 0: there
     * is no result. */
    uint64_t completed;

    bool writes; /* True: lock step must wait until this peer's checkpoint is on disk. */
    /* True: this peer takes no local steps, because it is below the quorum and --quorum-timeout is
     * not over. Also true while the consensus phase waits for members with stalled workers. */
    bool held;

    /* The following fields are used in the consensus phase and at the end of the run. */
    bool trained; /* True: lock step, or all live members have finished training. */
    /* Upper bound on the distance of this peer's model to the mean, relative to the length of the
     * model. INFINITY: not known. */
    double distance;
    double target; /* --final-drift times a safety margin. 0: there is no consensus phase. */
    /* Time without progress in the consensus phase, in microseconds. 0: too early to judge. */
    int64_t stalled_us;
    /* True: this peer is about to end the consensus phase. It makes no new deltas, and completes
     * exchanges that are half done. */
    bool draining;
    /* True: the losses or the distances between models grow without bound, so more gossip is
     * useless. */
    bool diverged;
    bool away; /* True: as far as this peer knows, the run ended without it. */
    /* True: this peer claims consensus, and a live member has not reported yet how it ended. Also
     * true if this process restarted with the certificate, and has not yet met all members that may
     * need it (phases.c). */
    bool ends_pending;
    /* True: this peer waits for the certificate of the run, the evidence of its success. */
    bool certificate_awaited;
    /* True: this peer is not known to be within --final-drift, but the finish protocol may still
     * make all peers mix again, or provide a certified model. */
    bool may_recover;

    const struct schedule_edge
        *edge; /* The n_edges edges of this peer, sorted by member. Borrowed. */
    size_t n_edges;
};

/* The next action of a peer. */
enum schedule_act {
    SCHEDULE_WAIT,      /* Do nothing until an event, or until wait_us is over. */
    SCHEDULE_GET_MODEL, /* Joining: fetch a model, or take the run's initial model. */
    SCHEDULE_BEGIN,     /* Joining is over: begin training. */
    SCHEDULE_SETTLE,    /* Training is over: enter the consensus phase. */
    SCHEDULE_TRAIN,     /* Start a job that mixes, takes local steps and encodes deltas. */
    SCHEDULE_MIX,       /* Start a job without local steps. */
    /* The model is final. Start the last job, which measures and evaluates it. */
    SCHEDULE_LAST,
    SCHEDULE_LEAVE /* Leave the run. */
};

/* A decision of the schedule. */
struct schedule_decision
{
    enum schedule_act act;
    uint64_t claim; /* Skip to this step counter, then decide again. 0: do not skip. */
    bool drain;     /* True: the consensus phase is over, so no new deltas are made. */
    bool resumes;   /* True: the consensus phase is not over after all: `draining` ends. */
    /* True: the consensus phase ends without having reached the target --final-drift. */
    bool late;
    bool left; /* True: the consensus phase ends because no neighbour is left to mix with. */
    /* With SCHEDULE_WAIT. True: no neighbour is left to mix with, and the peer waits for the finish
     * protocol. */
    bool stranded;
    int64_t wait_us; /* With SCHEDULE_WAIT: decide again after this time. 0: at the next event. */
    /* With SCHEDULE_WAIT: the first neighbour that this peer waits for. NULL: the peer waits for
     * something else. */
    const struct schedule_edge *for_whom;
};

/* Returns what this peer does next. O(n_edges). */
struct schedule_decision schedule_next(const struct schedule_view *v);

/* Returns the number of hops around this peer within which all peers are known to be under
 * --final-drift: 1 plus the least number that a neighbour announced. 0: this peer is not known to
 * be under --final-drift, an edge is missing, or members still train. A result above this peer's
 * eccentricity covers all peers. */
uint32_t schedule_settled(const struct schedule_view *v);

/* Returns whether at least half of the neighbours with an open or done edge have last announced
 * that they are under --final-drift. True if no edge is open or done. */
bool schedule_confirmed(const struct schedule_view *v);

/* Returns whether a neighbour is stuck: its worker has run one job for longer than limit_us, or the
 * neighbour has sent no news for several times limit_us. */
bool schedule_stuck(const struct schedule_view *v, const struct schedule_edge *e);
/* Returns whether lock step does not wait for a neighbour, because the neighbour is stuck (its
 * worker hangs) or flapping (it comes and goes). */
bool schedule_excused(const struct schedule_view *v, const struct schedule_edge *e);

/* Returns whether this peer is alone in lock step: it has neighbours that have not ended, but none
 * for which it must wait, now or in the next rounds. */
bool schedule_alone(const struct schedule_view *v);
/* Returns whether this peer keeps step with its neighbours: there is a neighbour for which this
 * peer may have to wait, and no neighbour is more than one round ahead. A peer that is catching up
 * does not keep step. */
bool schedule_in_step(const struct schedule_view *v);

/* Returns LEAD, in rounds. In lock step this peer waits for a neighbour that is at most LEAD rounds
 * behind, and does not wait for a neighbour that is further behind. */
uint64_t schedule_lead(const struct schedule_view *v);

enum {
    /* Number of hops above the distance of any two peers in any graph. schedule_settled() returns
     * SCHEDULE_FAR + 1 if no neighbour limits its result. */
    SCHEDULE_FAR = 1 << 30
};

#endif
