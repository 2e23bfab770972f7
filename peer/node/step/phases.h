/* peer/node/step/phases.h -- the phase of a peer: shows the schedule its view and follows its decision.
 *
 * schedule.h contains the rules and draws the phases. phases_update() shows the schedule what this
 * peer knows, updates the state below and returns what the node must do. struct phases holds the
 * phase, the rounds and how they ended, the quorum, and the progress of the consensus phase. It is
 * written by phases.c, job_watchdog.c and run_ended.c. In addition, resume.c restores it from a
 * checkpoint, and `checkpoint` has its own functions (checkpoint.h).
 *
 * A process may start, or start again, when other members have already finished:
 *
 *   members that have finished    result
 *   all live members              this peer takes their model as its final model. It claims
 *                                 consensus if that model is within --final-drift of its sources'
 *                                 models.
 *   some                          this peer fetches a model, and ends in the consensus phase with
 *                                 the members that have not finished
 *   some, and no member can       the run ended without this peer, even if it has a checkpoint
 *   provide a model
 *
 * Every round that is over for this peer was over before it joined, was done by it, or was skipped
 * by it because the run was too far ahead:
 *
 *   joined + done + skipped = round
 */
#ifndef PEER_NODE_STEP_PHASES_H
#define PEER_NODE_STEP_PHASES_H

#include "peer/node/edge/distance_bound.h"
#include "peer/node/edge/edges.h"
#include "peer/node/join/checkpoint.h"
#include "peer/node/join/join.h"
#include "peer/node/membership/quorum.h"
#include "peer/node/round_protocol.h"
#include "peer/node/schedule.h"
#include "peer/node/session/round_quorum.h"
#include "peer/node/step/waits.h"

/* State of the phases of one peer. Times are node time in microseconds (clock.h). "Round count"
 * means rounds of training plus rounds of the consensus phase. */
struct phases
{
    struct env *env;
    const struct sessions *sessions;
    struct run_context *workshop;
    struct edges *edges;
    struct join *join;
    const struct round_protocol *round_protocol; /* Round protocol of the run. Set by node.c. */

    enum node_phase phase; /* Never NODE_LEFT: when the node has ended, env->over is set instead. */
    /* Number of rounds of training that are over for this peer: done, skipped, or missed before it
     * joined. */
    uint64_t round;
    /* joined: number of rounds that were over when this peer joined. done: rounds that it did.
     * skipped: rounds that it skipped. */
    uint64_t joined, done, skipped;
    bool resumed; /* True: the model comes from this peer's own checkpoint and may be old. */
    bool taken;   /* True: the model was fetched from other members. */
    bool final;   /* True: the fetched model is final, because all other members had finished. */
    uint64_t settle_rounds; /* Rounds of the consensus phase that are done. */
    bool steps;             /* True: the current or next job takes local steps. */
    /* True: no new deltas are made, and exchanges that are half done are completed. */
    bool draining;
    /* Hops around this peer within which all peers are near the mean, by schedule_settled() at the
     * last decision. */
    uint32_t settled;
    /* A drift figure counts only if its drift window has a higher number than this. */
    uint64_t settling_window;
    /* True: the next job of the consensus phase must begin a new drift window. Set in lock step
     * only, and cleared when that job is planned. */
    bool window_due;
    /* Time at which this peer first had both a model and enough members to begin. 0: one of the two
     * is missing. */
    int64_t gathered_us;
    /* Time since which too few members are present to begin. 0: enough members are present. */
    int64_t missed_us;
    int64_t idle_since_us; /* Time at which the last job of this peer ended. */
    int64_t job_us;        /* Time at which the current job began. 0: no job runs. */
    int64_t signed_us;     /* Last time at which a job reported progress. */
    int64_t longest_us;    /* Duration of the longest job so far, without jobs that hung. */
    int64_t worked_us;     /* Total duration so far of all jobs with local steps. */
    /* Usual wait for neighbours before a round in lock step: average over the last rounds, in
     * microseconds. */
    int64_t usual_us;
    int64_t n_paced; /* Number of rounds in the average `usual_us`, at most 16. */
    /* Time at which this peer announces its round count again, if it still waits. */
    int64_t say_us;
    int64_t wake_us; /* Time at which phases_update() must be called again. INT64_MAX: none. */
    /* Time at which the consensus phase first waited for members with stalled workers. 0: never. */
    int64_t hung_us;
    /* The distance of the models does not count before this round of the consensus phase. 0: it
     * always counts. Set when an attempt of the finish protocol is aborted, because the estimates
     * of the distance were wrong. */
    uint64_t mix_until;
    uint32_t n_ended; /* Number of vertices of the graph when this peer's model became final. */
    bool stalled;     /* True: this peer's worker has run one job for too long. */

    bool away; /* True: the run ended while this peer was absent, so this peer ends, too. */
    struct checkpoint checkpoint;
    /* True: the next round count was announced before the end of the round. Only the round's local
     * steps are left then (--overlap 1). */
    bool ahead;
    /* Time at which the next round count was last announced early (phases_ahead()). */
    int64_t ahead_us;
    bool copies; /* True: the job that just ended must be followed by a copy for a checkpoint. */

    struct quorum quorum;
    /* Filter of the round counts that neighbours claim: counts that most peers do not confirm are
     * not believed. */
    struct round_quorum believe;

    /* Upper bound on the distance of this peer's model to the mean, relative to the length of the
     * model. The bound stays valid until an event that may move models apart. INFINITY: not
     * known. */
    double bound;
    uint64_t bound_round; /* Round count at which the models were measured for `bound`. */
    /* Hash of the members (edges->view), and number of edge resets, at the last update of
     * `bound`. */
    uint64_t bound_view, bound_resets;
    uint32_t bound_members; /* Number of members of the graph to which `bound` belongs. */
    /* Lower bound on the largest distance of any peer to the mean, relative to the length of the
     * model. Computed from the final models of neighbours and from the distances along the
     * edges. */
    double left;
    /* True: the distance is not known, and phases_own_distance() is INFINITY. The consensus phase
     * ended without confirmation by the neighbours, or the model has shrunk to nothing. */
    bool unheard;
    /* Bound on the consensus distance that is computed from the edges. Used while there are no
     * figures from sketches. */
    struct distance_bound chain;
    bool near; /* True: the bound on the consensus distance is below the target. */
    /* Round count of the first models that are known to be below the target. */
    uint64_t near_round;

    /* The following fields describe the consensus phase at the time of its last progress. */
    bool trained; /* True: all live members had finished training. */
    /* Least distance of this peer's model to the mean model so far in the consensus phase. */
    double best;
    double best_local2; /* Least sum so far of the squared distances to the neighbours' models. */
    /* Values at the last progress: hops within which all are near the mean (`settled`), hash of the
     * members (edges->view), number of drift windows, and number of rounds of the consensus phase
     * (settle_rounds). */
    uint32_t best_settled;
    uint64_t best_view, best_window, best_rounds;
    int64_t better_us; /* Time of the last progress of the consensus phase. */

    /* True: this peer has ended within the target and waits for a certificate (certificate.h). Set by
     * node.c. */
    bool certificate_awaited;
    /* Certificate of the run. NULL: none is known. Borrowed. Set by node.c. */
    const struct finish_proposal *certificate;
    int64_t told_us; /* Reference time for the next message about waiting (wait_log.h). */
    int64_t skip_us; /* No message about skipped rounds is printed before this time. */
    /* The schedule's view of the edges. Array with room for cap_seen entries. Owned. */
    struct schedule_edge *seen;
    size_t cap_seen;
    struct waits waits; /* The neighbour for which this peer waits by the last decision. */
};

/* Task of the node after phases_update(). */
enum phases_next {
    PHASES_WAIT,  /* Nothing. */
    PHASES_BEGUN, /* Tell the other members that training has begun. */
    PHASES_JOB,   /* Start a job of the current phase. */
    /* The model is final. Start the last job, which measures the drift and evaluates the model. */
    PHASES_LAST_JOB,
    PHASES_END /* End the node, because no member needs this peer any more. */
};

/* Initialises *ph in NODE_JOINING. All pointers are borrowed and must outlive *ph. */
void phases_init(struct phases *ph, struct env *env, const struct sessions *s,
                 struct run_context *w, struct edges *es, struct join *j);
void phases_close(struct phases *ph);
/* Starts the timers. Called once, at the first event of the node. */
void phases_start(struct phases *ph);

/* Examines the state of all modules, makes the next decision and returns what the node must do.
 * Must not be called while a job runs. `diverged`: training diverged, so more rounds are
 * useless. */
enum phases_next phases_update(struct phases *ph, bool diverged);

/* Called when the attempt of the finish protocol before `attempt` was aborted. The consensus phase
 * continues for at least 32 rounds, doubled for each earlier abort. */
void phases_reopen(struct phases *ph, uint32_t attempt);
/* Called while a job runs. If the worker hangs, announces this to the other members. */
void phases_watch_job(struct phases *ph);
/* Called when the running job reports progress, although it is long. */
void phases_sign(struct phases *ph);

/* Called when this peer has taken back the final model of an earlier process, and the counters of a
 * checkpoint. The rounds after the checkpoint count as done by this peer. */
void phases_restore_final(struct phases *ph);
/* Called when a model of round ph->join->round was fetched. This peer joins while the run is under
 * way, or at its end. */
void phases_join(struct phases *ph);
/* Returns whether the job that is being planned must begin a drift window. Clears the request, so
 * it may be called only once per job. */
bool phases_take_window(struct phases *ph);
/* Called when the deltas of this round were sent before its local steps (--overlap 1). Announces
 * the next round count, because neighbours need nothing more from this peer to reach it. */
void phases_ahead(struct phases *ph);
/* Called when a job is done. `steps`: the job took local steps, so a round of training is over. */
void phases_job_done(struct phases *ph, bool steps);

/* ---- questions ---- */

/* Returns an upper bound on |x - mean| / |mean| of this peer's model x in the consensus phase.
 * INFINITY: not known. */
double phases_own_distance(const struct phases *ph);
/* Returns the round count: rounds of training plus rounds of the consensus phase. Lock step
 * compares it between neighbours. */
uint64_t phases_beat(const struct phases *ph);
/* Returns the round count after the job that is being planned. */
uint64_t phases_next_beat(const struct phases *ph);
/* Returns whether lock step must wait until this peer's checkpoint is on disk. */
bool phases_writes(const struct phases *ph);
/* Returns how long the worker has run its current job, in microseconds. 0: no job runs. */
int64_t phases_busy_us(const struct phases *ph);
/* Returns how long the current job has reported no progress, in microseconds. 0: no job runs. By
 * this time this peer and its neighbours decide whether the worker is stalled. */
int64_t phases_stuck_us(const struct phases *ph);

#endif
