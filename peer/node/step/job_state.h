/* peer/node/step/job_state.h -- state of the job, for job.c and job_figures.c. */
#ifndef PEER_NODE_STEP_JOB_STATE_H
#define PEER_NODE_STEP_JOB_STATE_H

#include "peer/node/step/bandwidth_estimate.h"
#include "peer/node/step/job.h"
#include "peer/node/step/rollback.h"

/* The part of a round that one job does. */
enum job_part {
    JOB_WHOLE, /* One job does the whole round. */
    JOB_AHEAD, /* The first of two jobs of a round with --overlap 1: mixing and encoding. */
    JOB_STEPS  /* The second of two jobs of a round with --overlap 1: evaluation and local steps. */
};

/* The current or last job of a peer, and the data that are kept from one job to the next. While
 * `working` is true, the loop thread may read `working` and `figures`, and use `goodput`. */
struct job
{
    struct env *env;
    struct run_context *workshop;
    struct edges *edges;
    struct phases *phases;
    struct model_server *orders;
    bool working;       /* True: a job has been started and its end was not reported yet. */
    enum job_part part; /* The part of the round that the current or last job does. */

    /* True: the last job ran with fewer open edges than --byzantine needs, and the user was
     * warned. */
    bool few;
    bool first; /* True: this peer has done no round of the run before this job. */
    /* steps: the round to which this job belongs takes local steps. evaluate: the round evaluates
     * the model. With --overlap 1 the two jobs of a round have the same values. */
    bool steps, evaluate;
    uint32_t n_steps; /* Number of local steps of the round. */
    /* True: the job computes the running statistics again if its exchanges move the model far
     * (renew_statistics()). It belongs to the consensus phase, and the trainer can compute
     * statistics. False if the mixer has a round protocol, because later deltas then carry no
     * statistics that exchanges could average. */
    bool renews;
    /* Number of rounds of training that were over when the job was planned. */
    uint64_t round;
    uint64_t evaluate_samples; /* Number of samples to evaluate. 0: all held-out samples. */
    uint64_t evaluate_beat;    /* Step counter of the model that is evaluated. */
    /* Packet that the worker fills with a copy of the model after mixing, for the model server.
     * NULL: no copy was requested, or no packet was free. */
    struct packet *snapshot;
    /* True: the worker fills `snapshot`, the copy of the model for the model server, only if a
     * drift window (a period in which peers estimate the drift) begins with this job. */
    bool at_window;
    /* True: the trainer has not received the current member hashes in keys[] yet. */
    bool members;
    /* Result of the last attempt to pass keys[], the hashes of the members' names, to the trainer:
     * 0 or -ENOMEM. */
    int members_error;
    uint64_t *keys; /* Hashes of the names of all live members, for --shard auto. Owned. */
    size_t n_keys, cap_keys;
    /* Copy of what the worker must know of the edges to compute sketches (random projections of
     * models). */
    struct sketch_moment moment;
    /* Pointers to what the edges store for sketches (random projections of models). Only the array
     * is owned. */
    struct sketch_pair **pairs;
    size_t cap_pairs;
    /* Reports of the trainer about the local steps and about the evaluation. */
    struct trainer_report trained, tested;
    /* Time of local steps, of mixing and encoding, and of the evaluation in this round, in
     * microseconds. */
    int64_t compute_us, mix_us, evaluate_us;

    /* Estimate of the capacity of the links. Used by the loop thread only. */
    struct bandwidth_estimate goodput;
    struct divergence verdict; /* Losses and drift figures, from which divergence is judged. */
    /* Copy of the last good model, to which training returns after divergence. */
    struct rollback rollback;
    int64_t (*clock_us)(void); /* The worker's clock: monotonic, in microseconds. */
    /* Time of the job's last progress report, or of its start if there was none, by clock_us(). */
    int64_t signed_us;
    /* True: the job may be long for a known reason, so the worker reports its progress. */
    bool signs;
    /* Number of encoded bytes of this job's delta that the worker has announced to the loop
     * thread. */
    size_t told;
    uint32_t n_parts; /* Number of fragments of this job's delta that the worker has announced. */
    /* True: training diverged in this job, so the last good copy of the model, which was made in
     * round rollback.round, was restored. */
    bool ran_away;
    /* True: this is the last job of the run, which computes the evidence of the final model. */
    bool last;
    /* Evidence about the final model, for the certificate of the run's success. */
    struct finish_evidence evidence;
    struct node_progress figures; /* Figures that jobs produce, for drivers (node_progress()). */
};

/* Copies the results of the job to j->figures. Called by job_done() only; in job_figures.c. */
void job_report(struct job *j);

#endif
