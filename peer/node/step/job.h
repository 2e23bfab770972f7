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
 * Stich, Jaggi 2020). With x the model, a this peer's replica, b the neighbour's replica, w the
 * mixing weight of the edge and Q the codec:
 *
 *   --overlap 0   one job:   mix     x += gamma w (b - a)
 *                            steps   x += local steps
 *                            encode  send Q(x - a)
 *
 *   --overlap 1   1st job:   mix     x += gamma w (b - a)
 *                            encode  send Q(x - a)
 *                 2nd job:   steps   x += local steps
 *
 * With --overlap 1 the deltas therefore describe the models before the local steps. The correction
 * gamma w (b - a) that follows from these deltas is added in the next round, after the local steps.
 * In both orders an exchange adds opposite corrections to the models at its two ends, so the mean
 * of the models does not change.
 *
 * With --overlap layer a round is one job in the order of --overlap 0. Fragments of its deltas are
 * sent during the backward pass of the last local step (parts.h).
 *
 * struct job is defined in job_state.h, and written by job.c and job_figures.c only. While a job
 * runs, the worker owns the trainer, the model, and all fields that job_work() writes.
 */
#ifndef PEER_NODE_STEP_JOB_H
#define PEER_NODE_STEP_JOB_H

#include "peer/node/finish/finish.h"
#include "peer/node/join/model_server.h"
#include "peer/node/step/evaluation.h"
#include "peer/node/step/phases.h"

struct job;

/* Returns the state of a peer that has done no job, or NULL if memory is exhausted. The pointer
 * arguments are borrowed and must outlive the job. */
struct job *job_open(struct env *env, const struct sessions *s, struct run_context *w,
                     struct edges *es, struct phases *ph, struct model_server *o);
/* Frees *j after job_drop(). NULL is allowed. */
void job_close(struct job *j);
/* Frees all data of the job that belong to the run. Called when the run is given up or the node is
 * closed. No job may be running. */
void job_drop(struct job *j);

/* Assigns the samples to the members that are alive now (--shard auto). The next job passes the
 * assignment to the trainer. */
void job_share(struct job *j);

/* Plans a job of the current phase and requests it from the driver. If memory is exhausted, the
 * node ends. */
void job_start(struct job *j);
/* Plans the last job and requests it from the driver. This job exchanges no deltas, measures the
 * drift, and evaluates the model on all held-out samples. */
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
/* Returns whether the training program left the run during the job. The job then has no results. */
bool job_abandoned(const struct job *j);
/* Returns whether the first of two jobs of a round is done (--overlap 1): its deltas are encoded,
 * and the local steps have not begun. The caller sends the deltas and calls job_go_on(). */
bool job_is_half_done(const struct job *j);
/* Starts the second job of the round, which takes the local steps. */
void job_go_on(struct job *j);

/* Judges the whole training before the last job, and warns if training diverged. A small consensus
 * distance alone does not show that the model is good. After the last job, job_done() also warns if
 * nothing was learnt. */
void job_judge(struct job *j);
/* Returns whether training, or mixing in the consensus phase, has diverged. */
bool job_diverged(const struct job *j);
/* Returns whether training diverged again after a rollback. The model is then the last good
 * copy. */
bool job_has_failed(const struct job *j);
/* Passes a NODE_CARRIED event, which reports the throughput of a link, to the bandwidth
 * estimate. */
void job_carried(struct job *j, const struct node_event *ev);
/* Writes or reads the totals over the whole run and the results of the last evaluation, for a
 * checkpoint. */
void job_state(struct job *j, struct state *s);

/* Returns whether a job was started and its end was not reported yet. May be called while the
 * worker runs, like job_figures(). */
bool job_is_running(const struct job *j);
/* Returns whether the round of the current or last job takes local steps. */
bool job_takes_steps(const struct job *j);
/* Returns the number of local steps of the round of the current or last job. */
uint32_t job_n_steps(const struct job *j);
/* Returns whether the current job makes deltas before the local steps of its round (--overlap
 * 1). */
bool job_is_ahead(const struct job *j);
/* Returns the figures that jobs produce, for drivers (node_progress()). */
const struct node_progress *job_figures(const struct job *j);
/* Returns the evidence of the final model. Valid after the job of job_last(). */
const struct finish_evidence *job_evidence(const struct job *j);

#endif
