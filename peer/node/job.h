/* peer/node/job.h -- what the worker does: planned, done, reported. A machine of its own.
 *
 *    idle --job_start / job_last--> working --(worker: node_work)--> WORKED: job_done--> idle
 *
 * With --overlap 1 a round of training is two jobs (delayed mixing, as algorithm 1 of CHOCO-SGD for
 * deep learning has it: Koloskova, Lin, Stich, Jaggi 2020). The second follows at once, so that the
 * deltas of the first are on their way during the local steps:
 *
 *   --overlap 0   mix  steps  encode                x' = x + gamma w (b - a);  x' + steps;  Q(x' - a)
 *   --overlap 1   mix  encode --deltas out-> steps  x' = x + gamma w (b - a);  Q(x' - a);  x' + steps
 *
 * With --overlap layer it is one job, and the same numbers as without, but its deltas go out in parts
 * while the last local step is on its way back through the layers (parts.h).
 *
 * What the next round mixes is then of the model before the steps, and adds to what they did: in
 * either order an exchange is equal and opposite, and keeps the mean.
 *
 * Owned here, and written by job.c and job_figures.c only: what the job does, what came of it, and the figures
 * of all jobs. While it is `working` the worker owns what job_work() writes, the trainer and
 * the model; the loop may read `working` and the figures.
 */
#ifndef PEER_NODE_JOB_H
#define PEER_NODE_JOB_H

#include "peer/node/bandwidth_estimate.h"
#include "peer/node/evaluation.h"
#include "peer/node/model_server.h"
#include "peer/node/phases.h"
#include "peer/node/rollback.h"

enum job_part {
    JOB_WHOLE, /* All that the phase asks for. */
    JOB_AHEAD, /* What comes before the local steps, and the deltas: */
    JOB_STEPS  /* they follow. */
};

struct job
{
    struct env *env;
    struct run_context *workshop;
    struct edges *edges;
    struct phases *phases;
    struct model_server *orders;
    bool working;
    enum job_part part; /* What the present job does, or the last one did. */

    bool few;             /* The user has been told that --byzantine has too few edges. */
    bool first;           /* No job with local steps has been done before. */
    bool steps, evaluate; /* In a job of its round, whichever that is. */
    uint32_t n_steps;     /* So many local steps. */
    uint64_t round;       /* Local rounds done when it was planned. */
    uint64_t evaluate_samples;
    uint64_t evaluate_beat;  /* The model that is evaluated is that after so many rounds. */
    struct packet *snapshot; /* A copy of the model, taken now, */
    bool at_window;          /* or only if a drift window begins. */
    bool members;            /* keys[] are new to the trainer. */
    int members_error;       /* What it said to them: 0 or -ENOMEM. */
    uint64_t *keys;
    size_t n_keys, cap_keys;
    struct sketch_moment moment; /* The worker's copy of what it needs to know of the edges. */
    struct sketch_pair **pairs;
    size_t cap_pairs;
    struct trainer_report trained, tested;
    int64_t compute_us, mix_us, evaluate_us;

    struct bandwidth_estimate goodput; /* The loop's, at all times. */
    struct divergence verdict;
    struct rollback rollback;
    int64_t (*clock_us)(void);    /* The worker's, */
    int64_t signed_us;            /* by which it last gave a sign. */
    bool signs;                   /* The present job may be long for a good reason. */
    size_t told;                  /* By the worker: so many bytes of the delta are there, */
    uint32_t n_parts;             /* in so many parts. */
    bool ran_away;                /* In this job training did, and x is that of rollback.round. */
    struct node_progress figures; /* Those that jobs make. */
};

void job_init(struct job *j, struct env *env, struct run_context *w, struct edges *es,
              struct phases *ph, struct model_server *o);
/* The run is given up: what was made for it goes. No job may be running. */
void job_close(struct job *j);

/* --shard auto: the samples are shared out among who lives now. The next job tells the trainer. */
void job_share(struct job *j);

void job_start(struct job *j); /* Plan a job of the present phase. */
void job_last(struct job *j);  /* Nothing more is mixed: measure and test. */
/* On the worker's thread. */
void job_work(struct job *j, int64_t (*clock_us)(void));
/* It is at its last local step, and says that there are n bytes of a delta (--overlap layer). */
void job_part(struct job *j, size_t n);
/* The worker is done, whatever comes of it. */
void job_over(struct job *j);
/* Report what came of it. False: it diverged, and the node ends. */
bool job_done(struct job *j);
/* For job_done(), in job_figures.c: what came of it, into j->figures. */
void job_report(struct job *j);
/* The worker is done, and whoever trains has gone: nothing came of it. */
bool job_abandoned(const struct job *j);
/* The deltas of this round are made, and its local steps have not begun: job_go_on() does that,
 * once the deltas have been sent. */
bool job_is_half_done(const struct job *j);
void job_go_on(struct job *j);

/* Agreement on a model says nothing of what it is worth: say whether training ran away. */
void job_judge(struct job *j);
bool job_diverged(const struct job *j);

#endif
