/* peer/node/step/phases.h -- holds the phase of a peer, and carries out the decisions of the
 * schedule.
 *
 * schedule.h contains the rules and a diagram of the phases. phases_update() passes to the schedule
 * what this peer knows, updates struct phases, and returns what the node must do. struct phases
 * holds the phase, the numbers of rounds, and the progress of the consensus phase. It is defined in
 * phases_state.h and written by phases.c, job_watchdog.c, run_ended.c and scheduler_view.c.
 *
 * A process may start, or start again, when other members have already finished:
 *
 *   - All live members have finished: this peer takes their model as its final model. This peer
 *     claims consensus if the model is within --final-drift of the models of the members that sent
 *     it.
 *   - Some members have finished: this peer fetches a model, and takes part in the consensus phase
 *     of the members that have not finished.
 *   - Some members have finished, and no member can provide a model: the run ended without this
 *     peer, even if this peer has a checkpoint.
 *
 * A round is over for this peer if it was over when the peer joined, if the peer did it, or if the
 * peer skipped it because the run was too far ahead. For the numbers of these rounds:
 *
 *   joined + done + skipped = round
 */
#ifndef PEER_NODE_STEP_PHASES_H
#define PEER_NODE_STEP_PHASES_H

#include "peer/node/edge/edges.h"
#include "peer/node/join/checkpoint.h"
#include "peer/node/join/join.h"
#include "peer/node/membership/quorum.h"
#include "peer/node/round_protocol.h"
#include "peer/node/schedule.h"

/* Task of the node after phases_update(). */
enum phases_next {
    PHASES_WAIT,  /* Wait for the next event. */
    PHASES_BEGUN, /* Tell the other members that training has begun. */
    PHASES_JOB,   /* Start a job of the current phase. */
    /* The model is final. Start the last job, which measures the drift and evaluates the model. */
    PHASES_LAST_JOB,
    PHASES_END /* End the node, because no member needs this peer any more. */
};

struct phases;

/* Snapshot of the phases for other modules. Times are node time in microseconds. */
struct phases_status
{
    /* Phase of this peer. Never NODE_LEFT: when the node has ended, env->over is set instead. */
    enum node_phase phase;
    /* Number of rounds of training that are over for this peer: done, skipped, or missed before it
     * joined. */
    uint64_t round;
    uint64_t joined, done, skipped; /* The three parts of `round`, see the top of this file. */
    uint64_t settle_rounds;         /* Rounds of the consensus phase that are done. */
    int64_t idle_since_us;          /* Time at which the last job of this peer ended. */
    /* Time at which phases_update() must be called again. INT64_MAX: only at the next event. */
    int64_t wake_us;
    /* Number of vertices of the graph when this peer's model became final. 0: it is not final. */
    uint32_t n_ended;
    bool copies;  /* True: the job that just ended must be followed by a copy for a checkpoint. */
    bool stalled; /* True: this peer's worker has run one job for too long. */
    bool away;    /* True: the run ended while this peer was absent, so this peer ends, too. */
    /* True: the model is final and this process has not mixed it. The model was fetched, or stored
     * by an earlier process. */
    bool final;
    bool taken; /* True: this peer fetched its model from other members. */
    /* True: no neighbour is left to mix with, and this peer waits for the finish protocol. */
    bool stranded;
    /* Bound on the consensus distance that is computed from the edges (distance_bound.h). INFINITY:
     * the bound is not used. */
    double edge_bound;
};

/* Whether this peer can still expect a certificate, the evidence that the run has succeeded
 * (certificate.h). */
enum certificate_prospect {
    /* No certificate (agreement of the members that the run ended with success) can be expected: it
     * exists already, too few voters are left, or the run needs none. */
    CERTIFICATE_CLOSED,
    CERTIFICATE_POSSIBLE, /* A certificate can still be expected. */
    /* A certificate can still be expected. This peer has ended within the target --final-drift and
     * waits for it. */
    CERTIFICATE_AWAITED
};

/* Inputs of phases_update() about the end of the run. */
struct phases_input
{
    bool diverged; /* True: training diverged, so more rounds are useless. */
    enum certificate_prospect prospect;
    /* Certificate of the run (evidence of its success). NULL: none is known. Borrowed until the
     * next call. */
    const struct finish_proposal *certificate;
};

/* Returns the state of a peer in NODE_JOINING, or NULL if memory is exhausted. The pointer
 * arguments are borrowed and must outlive the phases. */
struct phases *phases_open(struct env *env, const struct sessions *s, struct run_context *w,
                           struct edges *es, struct join *j, struct checkpoint *c, struct quorum *q,
                           const struct round_protocol *p);
/* Frees *ph. NULL is allowed. */
void phases_close(struct phases *ph);
/* Starts the timers. Called once, at the first event of the node. */
void phases_start(struct phases *ph);
/* Resets the numbers of rounds. Called in the phase NODE_JOINING, when another run replaces the run
 * of this peer. */
void phases_forget(struct phases *ph);

/* Examines the state of all modules, makes the next decision and returns what the node must do.
 * Must not be called while a job runs. */
enum phases_next phases_update(struct phases *ph, const struct phases_input *in);

/* Called when an attempt of the finish protocol was aborted, and attempt number `attempt`, from 1,
 * begins. The peer stays in the consensus phase, or returns to it. For the next 32 rounds, doubled
 * for each earlier abort, the distance of the models does not count, so the phase lasts at least
 * that long. */
void phases_reopen(struct phases *ph, uint32_t attempt);
/* Called when the decided certificate does not cover the final model of this peer. The peer stays
 * in the consensus phase, or returns to it, and fetches a model that the certificate covers. */
void phases_uncovered(struct phases *ph);
/* Called while a job runs. If the worker hangs, announces this to the other members. */
void phases_watch_job(struct phases *ph);
/* Called when a long job reports progress. The time after which the worker counts as hung is then
 * measured from this report. */
void phases_sign(struct phases *ph);

/* Called when this peer has taken back the final model of an earlier process, and the counters of a
 * checkpoint if there is one. Marks the model as final, and sets the round to the last one. The
 * rounds after the checkpoint count as done. Without a checkpoint, all rounds count as over when
 * this process joined. */
void phases_restore_final(struct phases *ph);
/* Called when a fetched model (join_fetched()) is complete. This peer joins the run at the round of
 * this model, or at the last round if the model is later. The model becomes final if it is of the
 * last round or later, and a certificate covers it or all other members have finished. */
void phases_join(struct phases *ph);
/* Returns whether the job that is being planned must begin a drift window, a period in which peers
 * estimate the consensus distance. Clears the request for the window, so the function may be called
 * only once per job. */
bool phases_take_window(struct phases *ph);
/* Called when the deltas of this round were sent before its local steps (--overlap 1). Announces
 * the next step counter already now, because neighbours wait for no other data of this round. */
void phases_ahead(struct phases *ph);
/* Called when a job is done. Updates the numbers of rounds, announces the step counter, and decides
 * whether a checkpoint is due. `steps`: the job took local steps, so a round of training is
 * over. */
void phases_job_done(struct phases *ph, bool steps);

/* Writes or reads the numbers of rounds, for a checkpoint. */
void phases_state(struct phases *ph, struct state *s);
/* Called when this peer has loaded its own checkpoint. Stores is_old: whether the model may be too
 * old for the run. */
void phases_resumed(struct phases *ph, bool is_old);
/* Called when this peer has given up its own checkpoints, because it cannot resume from them. The
 * peer then counts as one that was in the run before, and the time limit for too few members begins
 * again. */
void phases_lost_checkpoint(struct phases *ph);

/* Prints a debug note about the end of the node. Called in the step in which the node ends.
 * `asked`: the user or the program has requested the end. */
void phase_log_left(const struct phases *ph, bool asked);

/* ---- questions ---- */

struct phases_status phases_status(const struct phases *ph);
enum node_phase phases_phase(const struct phases *ph);
uint64_t phases_round(const struct phases *ph);

/* Returns an upper bound on |x - mean| / |mean| of this peer's model x in the consensus phase.
 * INFINITY: not known. */
double phases_own_distance(const struct phases *ph);
/* Returns the step counter: rounds of training plus rounds of the consensus phase. Lock step
 * compares it between neighbours. */
uint64_t phases_beat(const struct phases *ph);
/* Returns the step counter after the job that is being planned. */
uint64_t phases_next_beat(const struct phases *ph);
/* Returns whether lock step must wait until this peer's checkpoint is on disk. */
bool phases_writes(const struct phases *ph);
/* Returns how long the worker has run its current job, in microseconds. 0: no job runs. */
int64_t phases_busy_us(const struct phases *ph);
/* Returns how long the current job has reported no progress, in microseconds. 0: no job runs. This
 * peer and its neighbours compare this duration with a limit to judge whether the worker is
 * stalled. */
int64_t phases_stuck_us(const struct phases *ph);

#endif
