/* peer/node/phases.h -- the phases of a run: a view for the schedule, and what it decided.
 *
 * A process that begins, again or late, when others have finished:
 *
 *   all who live have    it takes their model (join.h) as its final one, in consensus where the
 *                        models of those that gave it are under --final-drift from it
 *   some have            it takes a model, and ends in the consensus phase with those who have not
 *   none of them is      its run ended while it was away, whatever it has from its checkpoint
 *   there to give one
 *
 * Owned here, and written by phases.c, labour.c and deserted.c only: the phase, the rounds and what
 * became of them, the quorum, how far the consensus phase has come. The rules are in schedule.h, which also draws
 * the phases. phases_update() shows it what this peer knows, notes what follows for itself
 * and says what the node has to do.
 *
 *    joined + done + skipped = round
 *
 * holds at all times: a round was over when this peer came, or it did it, or it claimed it
 * because the others were that far ahead.
 */
#ifndef PEER_NODE_PHASES_H
#define PEER_NODE_PHASES_H

#include "peer/node/checkpoint.h"
#include "peer/node/distance_bound.h"
#include "peer/node/edges.h"
#include "peer/node/join.h"
#include "peer/node/quorum.h"
#include "peer/node/round_protocol.h"
#include "peer/node/round_quorum.h"
#include "peer/node/schedule.h"
#include "peer/node/waits.h"

struct phases
{
    struct env *env;
    const struct sessions *sessions;
    struct run_context *workshop;
    struct edges *edges;
    struct join *join;
    const struct round_protocol *round_protocol; /* Set by node.c. */

    enum node_phase phase; /* But NODE_LEFT: see env.over. */
    uint64_t round;        /* The run's, claimed. */
    uint64_t joined, done, skipped;
    bool resumed;             /* Its model is that of a checkpoint, which may be old. */
    bool taken;               /* It was had from others, */
    bool final;               /* who had all finished with it. */
    uint64_t settle_rounds;   /* The consensus phase's. */
    bool steps;               /* The next job takes local steps. */
    bool draining;            /* No new deltas: what is half done is finished. */
    uint32_t settled;         /* schedule_settled() at the last look. */
    uint64_t settling_window; /* Figures of windows after this one count. */
    bool window_due;          /* The next job begins one: the first of a consensus phase in
                               * lock step. */
    int64_t gathered_us;      /* Since when there are members enough; 0: there are not. */
    int64_t missed_us;        /* And since when there are not; 0: there are. */
    int64_t idle_since_us;    /* When the last job ended. */
    int64_t job_us;           /* When the present job began, */
    int64_t signed_us;        /* and when it, or one before it, was last seen to get on. */
    int64_t longest_us;       /* The longest job of ours, */
    int64_t worked_us;        /* and all that took local steps, together. */
    int64_t usual_us;         /* So long we wait for neighbours before a round of lock step,
                               * averaged over the last rounds, */
    int64_t n_paced;          /* which are so many. */
    int64_t say_us;           /* When our beat is said again to those who may wait for it. */
    int64_t wake_us;          /* Something is due then; INT64_MAX: nothing. */
    int64_t
        hung_us; /* When the consensus phase first waited for workers that hang; 0: it has not. */
    uint32_t n_ended; /* So many members were vertices when our model was final. */
    bool stalled;     /* Our worker has been at its job for too long. */

    bool away; /* The run ended elsewhere while we were away: so does ours. */
    struct checkpoint checkpoint;
    bool ahead;       /* The next beat has been said: only the local steps are left to do. */
    int64_t ahead_us; /* It was said then. */
    bool copies;      /* With the job that was just done a checkpoint has to be taken. */

    struct quorum quorum;
    struct round_quorum believe;

    /* A bound on our distance once known stays one, until something parts the models. */
    double bound;
    uint64_t bound_round; /* The bound was measured at the beginning of this round, */
    bool by_edges;        /* and not by sketches (chain.h): it may be far above the distance. */
    uint64_t bound_view, bound_resets;
    double left;  /* We are so far from it at least, by who is final, or by the edges. */
    bool unheard; /* It ended late, or last, and most neighbours did not say that they are
                          * near; or our model has vanished: nothing is known of it. */
    struct distance_bound chain; /* What the edges say of it, where sketches do not. */
    bool near;                   /* It is under the target: */
    uint64_t near_round; /* the models of this round were the first of which that is known. */

    /* What counts as progress in the consensus phase, and when there was some. */
    bool trained;
    double best; /* The least distance so far. */
    double best_local2;
    uint32_t best_settled;
    uint64_t best_view, best_window, best_rounds;
    int64_t better_us;

    int64_t told_us;            /* When a wait was last spoken of. */
    int64_t skip_us;            /* Skipped rounds are not spoken of again before this. */
    struct schedule_edge *seen; /* The view's edges; cap_seen of them. */
    size_t cap_seen;
    struct waits waits; /* Whom the last decision waits for. */
};

/* What is to be done. */
enum phases_next {
    PHASES_WAIT,     /* Nothing. */
    PHASES_BEGUN,    /* The run has begun: tell the others. */
    PHASES_JOB,      /* A job of this phase. */
    PHASES_LAST_JOB, /* Nothing more is mixed: measure and test. */
    PHASES_END       /* Nobody needs us any more. */
};

void phases_init(struct phases *ph, struct env *env, const struct sessions *s,
                 struct run_context *w, struct edges *es, struct join *j);
void phases_close(struct phases *ph);
void phases_start(struct phases *ph);

/* Look at everything, while no job runs. diverged: training ran away, there is no use in
 * going on with the consensus phase. */
enum phases_next phases_update(struct phases *ph, bool diverged);

/* While a job runs: does its worker hang? The others are told. */
void phases_watch_job(struct phases *ph);
/* Our job, which is long, gets on. */
void phases_sign(struct phases *ph);

/* The model is others', of the round that join.h says: we join in the middle, or at the end. */
void phases_join(struct phases *ph);
/* A job begins: has it to begin a drift window? Asked once. */
bool phases_take_window(struct phases *ph);
/* The deltas of this round are out before its local steps (--overlap): neighbours need nothing more
 * of us for the next beat. */
void phases_ahead(struct phases *ph);
/* A job is done; it took local steps or not. */
void phases_job_done(struct phases *ph, bool steps);

/* ---- questions ---- */

/* See run_context_distance(). */
double phases_own_distance(const struct phases *ph);
/* Rounds claimed, those of the consensus phase included: what lock step counts. */
uint64_t phases_beat(const struct phases *ph);
/* The beat after the job that is being planned. */
uint64_t phases_next_beat(const struct phases *ph);
/* Lock step has to wait until our checkpoint is on disk. */
bool phases_writes(const struct phases *ph);
/* The worker has been at its job for so long; 0: it waits. */
int64_t phases_busy_us(const struct phases *ph);
/* How long nothing has been seen of it: what is judged, here and by neighbours. */
int64_t phases_stuck_us(const struct phases *ph);

#endif
