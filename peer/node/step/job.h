/* peer/node/step/job.h -- the worker's job: plans it, does it on the worker thread, reports its
 * results.
 *
 *   idle --job_start() or job_last()--> working --job_work(), on the worker--> job_over(),
 *    ^                                                                         job_done()
 *    +-----------------------------------------------------------------------------+
 *
 * A job mixes the exchanges that are complete, takes local steps and encodes the next deltas. With
 * --overlap 1 a round of training is two jobs. The second job follows at once, so that the deltas
 * of the first job travel during the local steps (delayed mixing, algorithm 1 in Koloskova, Lin,
 * Stich, Jaggi 2020). With x the model, a and b the replicas of an edge, w its mixing weight and Q
 * the codec:
 *
 *   --overlap 0   one job:   mix     x += gamma w (b - a)
 *                            steps   x += local steps
 *                            encode  send Q(x - a)
 *
 *   --overlap 1   1st job:   mix     x += gamma w (b - a)
 *                            encode  send Q(x - a)
 *                 2nd job:   steps   x += local steps
 *
 * With --overlap 1 the deltas therefore describe the models before the local steps. The next round
 * computes its correction gamma w (b - a) from them, and adds it to the model after the local
 * steps. In both orders an exchange is equal and opposite at its two ends, so the mean of the
 * models is kept.
 *
 * With --overlap layer a round is one job with the numbers of --overlap 0. Fragments of its deltas
 * are sent during the backward pass of the last local step (parts.h).
 *
 * struct job is written by job.c and job_figures.c only; resume.c restores parts of it. While
 * `working` is true, the worker owns what job_work() writes, the trainer and the model. The loop
 * thread may then read `working` and `figures`, and use `goodput`.
 */
#ifndef PEER_NODE_STEP_JOB_H
#define PEER_NODE_STEP_JOB_H

#include "peer/node/finish/evidence.h"
#include "peer/node/join/model_server.h"
#include "peer/node/step/bandwidth_estimate.h"
#include "peer/node/step/evaluation.h"
#include "peer/node/step/phases.h"
#include "peer/node/step/rollback.h"

/* The part of a round that one job does. */
enum job_part {
    JOB_WHOLE, /* One job does the whole round. */
    JOB_AHEAD, /* The first of two jobs of a round with --overlap 1: mixing and encoding. */
    JOB_STEPS  /* The second of two jobs of a round with --overlap 1: evaluation and local steps. */
};

/* The job of a peer that runs now or ran last, and what is kept from one job to the next. */
struct job
{
    struct env *env;
    struct run_context *workshop;
    struct edges *edges;
    struct phases *phases;
    struct model_server *orders;
    bool working;       /* True: a job has been started and its end was not reported yet. */
    enum job_part part; /* The part of the round that the current or last job does. */

    /* True: in the last job fewer edges were open than --byzantine needs, and the user was
     * warned. */
    bool few;
    bool first; /* True: this peer has done no round of the run before this job. */
    /* steps: the round to which this job belongs takes local steps. evaluate: the round evaluates
     * the model. With --overlap 1 the two jobs of a round have the same values. */
    bool steps, evaluate;
    uint32_t n_steps; /* Number of local steps of the round. */
    /* Number of rounds of training that were over when the job was planned. */
    uint64_t round;
    uint64_t evaluate_samples; /* Number of samples to evaluate. 0: all held-out samples. */
    uint64_t evaluate_beat;    /* Round count of the model that is evaluated. */
    /* Copy of the model for the model server, which the worker fills after mixing. NULL: no model
     * was requested. */
    struct packet *snapshot;
    bool at_window;    /* True: the copy is made only if a drift window begins with this job. */
    bool members;      /* True: the trainer has not received the current keys[] yet. */
    int members_error; /* Result of the last attempt to pass keys[] to the trainer: 0 or -ENOMEM. */
    uint64_t *keys;    /* Hashes of the names of all live members, for --shard auto. Owned. */
    size_t n_keys, cap_keys;
    /* Copy of what the worker must know of the edges to compute sketches. */
    struct sketch_moment moment;
    struct sketch_pair **pairs; /* Sketches of the edges; `moment` points to the array. Owned. */
    size_t cap_pairs;
    /* Reports of the trainer about the local steps and about the evaluation. */
    struct trainer_report trained, tested;
    /* Time of local steps, of mixing and encoding, and of the evaluation in this round, in
     * microseconds. */
    int64_t compute_us, mix_us, evaluate_us;

    /* Estimate of the capacity of the links. Used by the loop thread only. */
    struct bandwidth_estimate goodput;
    struct divergence verdict; /* Evidence for the verdict `diverged`. */
    /* Copy of the last good model, to which training returns after divergence. */
    struct rollback rollback;
    int64_t (*clock_us)(void); /* The worker's clock: monotonic, in microseconds. */
    int64_t signed_us; /* Time of the job's last progress report, or its start, by clock_us(). */
    /* True: the job may be long for a known reason, so the worker reports its progress. */
    bool signs;
    /* Number of encoded bytes of this job's delta that the worker has announced to the loop
     * thread. */
    size_t told;
    uint32_t n_parts; /* Number of fragments of this job's delta that the worker has announced. */
    /* True: training diverged in this job, and x was set back to the model of rollback.round. */
    bool ran_away;
    bool last; /* True: this is the last job of the run, which computes `evidence`. */
    struct finish_evidence evidence; /* Evidence of the final model, for the certificate. */
    struct node_progress figures;    /* Figures that jobs produce, for drivers (node_progress()). */
};

/* Initialises *j. All pointers are borrowed and must outlive *j. */
void job_init(struct job *j, struct env *env, struct run_context *w, struct edges *es,
              struct phases *ph, struct model_server *o);
/* Frees everything that belongs to the run. Called when the run is given up or the node is closed.
 * No job may be running. */
void job_close(struct job *j);

/* Assigns the samples to the members that are alive now (--shard auto). The next job passes the
 * assignment to the trainer. */
void job_share(struct job *j);

/* Plans a job of the current phase and requests it from the driver. If memory is exhausted, the
 * node ends. */
void job_start(struct job *j);
/* Plans the last job. It exchanges nothing, measures the drift, and evaluates the model on all
 * samples. */
void job_last(struct job *j);
/* Does the job. Called on the worker thread. clock_us: a monotonic clock, in microseconds. */
void job_work(struct job *j, int64_t (*clock_us)(void));
/* Sends fragments of the deltas (--overlap layer). Called when the job is in its last local step
 * and has encoded the last n bytes of a delta. */
void job_part(struct job *j, size_t n);
/* Ends the job after the worker has returned: passes its deltas to the edges, or frees them. Also
 * called if the node has ended. */
void job_over(struct job *j);
/* Processes the results of a job. Called after job_over(). Returns false if the model diverged so
 * far that it cannot be sent; the node then ends. */
bool job_done(struct job *j);
/* Copies the results of the job to j->figures. Called by job_done() only; in job_figures.c. */
void job_report(struct job *j);
/* Returns whether the training program left the run during the job. The job then has no results. */
bool job_abandoned(const struct job *j);
/* Returns whether the first of two jobs of a round is done (--overlap 1): its deltas are encoded,
 * and the local steps have not begun. The caller sends the deltas and calls job_go_on(). */
bool job_is_half_done(const struct job *j);
/* Starts the second job of the round, which takes the local steps. */
void job_go_on(struct job *j);

/* Judges the whole training before the last job and warns if it diverged or if nothing was learnt.
 * This is needed because a small consensus distance does not show that the model is good. */
void job_judge(struct job *j);
/* Returns whether training, or mixing in the consensus phase, has diverged. */
bool job_diverged(const struct job *j);

#endif
