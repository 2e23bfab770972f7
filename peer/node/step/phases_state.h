/* peer/node/step/phases_state.h -- state of the phases, for the files of this folder. */
#ifndef PEER_NODE_STEP_PHASES_STATE_H
#define PEER_NODE_STEP_PHASES_STATE_H

#include "peer/node/edge/distance_bound.h"
#include "peer/node/session/sessions.h"
#include "peer/node/step/phases.h"
#include "peer/node/step/waits.h"

/* State of the phases of one peer. Times are node time in microseconds (env.h). "Step counter"
 * means rounds of training plus rounds of the consensus phase. */
struct phases
{
    struct env *env;
    const struct sessions *sessions;
    struct run_context *workshop;
    struct edges *edges;
    struct join *join;
    struct checkpoint *checkpoint;
    struct quorum *quorum;
    /* Protocol by which a mixer without edges combines models. */
    const struct round_protocol *round_protocol;

    /* Phase of this peer. Never NODE_LEFT: when the node has ended, env->over is set instead. */
    enum node_phase phase;
    /* Number of rounds of training that are over for this peer: done, skipped, or missed before it
     * joined. */
    uint64_t round;
    /* joined: number of rounds that were over when this peer joined. done: rounds that it did.
     * skipped: rounds that it skipped. */
    uint64_t joined, done, skipped;
    /* Files that earlier processes of this peer left: node_config.past, or NODE_PAST_MEMBER after
     * this peer gave up its checkpoints. */
    enum node_past past;
    bool resumed; /* True: the model comes from this peer's own checkpoint and may be old. */
    bool taken;   /* True: the model was fetched from other members. */
    /* True: the model is final and this process has not mixed it. The model was fetched, or stored
     * by an earlier process. */
    bool final;
    uint64_t settle_rounds; /* Rounds of the consensus phase that are done. */
    bool steps;             /* True: the current or next job takes local steps. */
    /* True: this peer is about to end the consensus phase. It makes no new deltas, and completes
     * exchanges that are half done. */
    bool draining;
    /* Number of hops around this peer within which all peers were near the mean at the last
     * decision (schedule_settled()). 0: this peer was not known to be near it. */
    uint32_t settled;
    /* Number of a drift window, a period in which peers estimate the consensus distance. Only
     * figures of windows with higher numbers count. UINT64_MAX: no figures count. */
    uint64_t settling_window;
    /* True: the next job of the consensus phase must begin a new drift window (a period of
     * measurement of the drift). Set in lock step only, and cleared when that job is planned. */
    bool window_due;
    /* Time at which this peer first had both a model and enough members to begin. 0: the model is
     * missing, or too few members are present. */
    int64_t gathered_us;
    /* Time since which too few members are present to begin. 0: enough members are present. */
    int64_t missed_us;
    int64_t idle_since_us; /* Time at which the last job of this peer ended. */
    int64_t job_us;        /* Time at which the current job began. 0: no job runs. */
    int64_t signed_us;     /* Last time at which a job reported progress. */
    /* Duration of the longest job so far, without jobs that hung, in microseconds. */
    int64_t longest_us;
    /* Total duration so far of all jobs with local steps, in microseconds. */
    int64_t worked_us;
    /* Usual wait for neighbours before a round in lock step: average over the last rounds, in
     * microseconds. */
    int64_t usual_us;
    int64_t n_paced; /* Number of rounds whose waits are averaged in usual_us, at most 16. */
    /* Time at which this peer announces its step counter again, if it still waits. */
    int64_t say_us;
    /* Time at which phases_update() must be called again. INT64_MAX: only at the next event. */
    int64_t wake_us;
    /* Time at which the consensus phase first waited for members with stalled workers. 0: never. */
    int64_t hung_us;
    /* First round of the consensus phase in which the distance of the models counts. 0: the
     * distance always counts. Set when an attempt of the finish protocol is aborted, because the
     * estimates of the distance were wrong. */
    uint64_t mix_until;
    /* Number of vertices of the graph when this peer's model became final. 0: it is not final. */
    uint32_t n_ended;
    bool stalled; /* True: this peer's worker has run one job for too long. */

    bool away; /* True: the run ended while this peer was absent, so this peer ends, too. */
    /* True: with --overlap 1, the next step counter was announced already, before the local steps
     * of this round. */
    bool ahead;
    /* Last time at which the next step counter was announced before the local steps of the round
     * (phases_ahead()). */
    int64_t ahead_us;
    bool copies; /* True: the job that just ended must be followed by a copy for a checkpoint. */

    /* Filter of the step counters that neighbours claim: values that most peers do not confirm are
     * not believed. */
    struct round_quorum believe;

    /* Upper bound on the distance of this peer's model to the mean, relative to the length of the
     * model. The bound stays valid until an event that may move models apart. INFINITY: not
     * known. */
    double bound;
    /* Step counter at which the models were measured for `bound`, the bound on the distance. */
    uint64_t bound_round;
    /* Values at the last check of whether the bound on the distance is still valid. bound_view:
     * hash of the members (edges->view). bound_resets: number of edge resets. */
    uint64_t bound_view, bound_resets;
    /* Number of vertices of the graph at the last check of whether the bound on the distance is
     * still valid. */
    uint32_t bound_members;
    /* Least distance from the mean, relative to the length of the model, that this peer may claim
     * (distance_bound_apart()). */
    double apart;
    /* Bound on the consensus distance that is computed from the edges (distance_bound.h). In lock
     * step with a constant graph and without --byzantine, the bound is always used. Otherwise, the
     * bound is used only if the distances from sketches are missing or false. */
    struct distance_bound chain;
    bool near; /* True: the bound on the consensus distance is below the target. */
    /* Step counter of the first models whose distance from the mean is known to be below the
     * target. */
    uint64_t near_round;

    /* The following fields describe the progress of the consensus phase. */
    bool trained; /* True: at the last update, all live members had finished training. */
    /* Least known distance from the mean at any progress since begin_anew(). Relative to |mean|. */
    double best;
    /* Copies made at the last progress of the consensus phase. best_settled: `settled`. best_view:
     * hash of the members for which the edges were chosen. best_window: number of drift windows
     * that had given a result. best_rounds: `settle_rounds`. */
    uint32_t best_settled;
    uint64_t best_view, best_window, best_rounds;
    int64_t better_us; /* Time of the last progress of the consensus phase. */

    /* Copies of the last inputs of phases_update() (struct phases_input). */
    enum certificate_prospect prospect;
    /* Certificate of the run (evidence of its success). NULL: none is known. Borrowed. */
    const struct finish_proposal *certificate;
    /* Time at which the delay before the next message about a wait begins. */
    int64_t told_us;
    int64_t skip_us; /* No message about skipped rounds is printed before this time. */
    /* The schedule's view of the edges. Array with room for cap_seen entries. Owned. */
    struct schedule_edge *seen;
    size_t cap_seen;
    struct waits waits; /* Cause of the present wait, by the last decision of the schedule. */
};

/* ---- the parts of the module phases, which phases.c calls ---- */

/* phases.c: returns whether the neighbour's model is final. */
bool phases_has_ended(const struct phases *ph, const struct neighbour *b);
/* scheduler_view.c: returns whether, in a run without lock step, this peer owes the neighbour a
 * delta: the neighbour's delta of the next exchange has arrived, and this peer's has not been
 * made. */
bool scheduler_view_owed(const struct phases *ph, const struct neighbour *b);
/* Writes the schedule's views of all neighbours to ph->seen. If memory is exhausted, returns false,
 * and the node ends. */
bool scheduler_view_edges(struct phases *ph);

/* job_watchdog.c measures this peer's jobs and decides when a worker hangs. A hanging worker is
 * *stalled*: the peer reports itself to the other members, which then continue without it. The file
 * writes the fields `stalled`, `longest_us`, `signed_us`, `usual_us`, `n_paced` and `hung_us`. */

/* Returns the mean duration of this peer's jobs with local steps, in microseconds. 0: there was no
 * such job yet. */
int64_t job_watchdog_mean_us(const struct phases *ph);
/* Returns the duration in microseconds after which a job of this peer or of a neighbour counts as
 * hanging. INT64_MAX: there is no limit (--straggler-timeout 0). */
int64_t job_watchdog_limit_us(const struct phases *ph);
/* Updates ph->usual_us, the usual wait for neighbours before a round. Called before each job with
 * local steps. */
void job_watchdog_learn_pace(struct phases *ph, const struct schedule_view *v);
/* Returns whether the consensus phase waits for live members with stalled workers. The phase waits
 * for at most SCHEDULE_STALL_US in all. */
bool job_watchdog_awaits(struct phases *ph);
/* Called when a job has ended after took_us microseconds. If the worker was reported as stalled,
 * informs the other members that it works again. */
void job_watchdog_done(struct phases *ph, int64_t took_us);

/* wait_log.c prints messages about waiting: for which peers this peer waits, and for which it no
 * longer waits. */

/* Prints a message for each neighbour for which lock step stops waiting, or starts waiting again.
 * Records the change with edges_excuse(), so that it is printed once. */
void wait_log_excused(const struct phases *ph, const struct schedule_view *v);
/* Prints a message about the state of the quorum. Called when the state has changed, and by
 * wait_log_wait() while this peer is below the quorum. Returns the new value of ph->told_us. */
int64_t wait_log_quorum(const struct phases *ph);
/* Prints what the peer waits for after decision d. Prints nothing before node time told_us +
 * WAIT_LOG_US, or told_us + WAIT_LOG_MEMBERS_US while this peer waits for enough members to begin.
 * Returns the new value of ph->told_us. */
int64_t wait_log_wait(const struct phases *ph, const struct schedule_decision *d);

/* phase_log.c: prints a debug note about the change of phase to which a decision leads, such as
 * "phase TRAINING -> CONSENSUS (all 400 rounds are done)". Called before the change. `v`: the view
 * from which the schedule has made the decision. */
void phase_log_decided(const struct phases *ph, const struct schedule_view *v,
                       const struct schedule_decision *d);

#endif
