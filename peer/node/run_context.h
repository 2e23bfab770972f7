/* peer/node/run_context.h -- the run that this peer takes part in, and what working on it needs.
 *
 * Owned here: the run, its text, the trainer, the model with its mixer (gossip/mixers/mixing.h),
 * the ladder of --compress auto, a pool for copies of the model. All of it is built when a run
 * is taken and goes when ours gives way to the cluster's:
 *
 *    no run --take--> ready --close--> (has_run) --take--> ready
 *
 * workshop.c opens and closes it. While a job runs, the worker owns the trainer, the model and
 * the ladder (job.c). Policy reads the mixer by the questions below only.
 */
#ifndef PEER_NODE_RUN_CONTEXT_H
#define PEER_NODE_RUN_CONTEXT_H

#include "gossip/exchange/layers.h"
#include "gossip/mixers/mixing.h"
#include "peer/node/sessions.h"

struct run_context
{
    struct env *env;
    bool has_run, ready; /* A run is known; all that it needs is built. */
    bool begun;          /* Others have begun it, and some of them live (node.c). */
    bool lacks;          /* But its initial model is not ours: mixing.x0 is another one, or in the
                          * middle of being fetched. initial.c and resume.c end that. */
    struct run run;
    char run_text[WIRE_RUN_MAX + 1];
    size_t n_run_text;
    struct trainer trainer;
    struct mixing mixing;
    struct packet_pool models; /* For copies of the model, */
    struct packet_pool pieces; /* and of pieces of it, or sketches. */
    struct layers layers;      /* The model's, as an observer may ask for them. */
    bool by_drift;             /* --compress auto: deltas take the ladder's rung. */
    struct codec_levels ladder;
    double norm2;     /* |x|^2, once somebody has asked since x last moved; */
    bool has_norm2;   /* then this is so. */
    double settling2; /* |x|^2 as the consensus phase began; 0: it has not. */
    float *
        before; /* With by_drift, --max-pull or --local-steps auto: x before the local steps of a job. Else NULL. */
};

/* Whose run counts. Who has none takes the other's; one that has begun, here or elsewhere, wins over
 * one that has not; of two that have not, the end that dialled gives way, or, where they are alike but for
 * the model that they begin with, the one that layout_compare_initial() puts last; two that have begun are
 * strangers. So a run that has begun is never left for another, and who comes late joins the first that
 * it meets. `started`: we have begun ours. Fills *run where it is to be taken. */
enum sessions_run run_context_judge(const struct run_context *w, const struct wire_hello *h,
                                    bool dialled, bool started, struct run *run);

/* Build what the run needs. On failure the node ends. Ours must have been closed. */
void run_context_take(struct run_context *w, const struct run *run);
void run_context_close(struct run_context *w);

/* Is mixing.x0 the run's initial model? Then it is lacking no more, and our model is that. O(n_params). */
bool run_context_begins(struct run_context *w);

/* ---- questions ---- */

/* May their delta be stored? Copies its sketch to *sketch. */
bool run_context_valid(const struct run_context *w, const struct wire_delta *d,
                       struct sketch_message *sketch);

/* What deltas come in now, in training (rung: as the last job left it, or NULL) or in the last
 * phase, cut where it is longer; "" before a run. */
void run_context_codec(const struct run_context *w, const char *rung, bool settling,
                       char text[WIRE_CODEC_MAX + 1]);

/* How many drift windows have given a figure. */
uint64_t run_context_window(const struct run_context *w);
/* Has one that began later than `begun`? */
bool run_context_known(const struct run_context *w, uint64_t begun);
/* Windows that begin from now on are later than this; `anew`: the next job begins one. */
uint64_t run_context_begun(const struct run_context *w, bool anew);

/* With what the rounding of float32 may hide of it, a relative distance is a bound. It changes
 * nothing that is far above 2^-24 times the root of the neighbours. */
double run_context_rounded(const struct run_context *w, double relative);

/* A bound in the consensus phase on our own distance, |x_i - mean| / |mean|: at
 * most what it was when the last window began, since mixing alone only
 * contracts. In lock step, once one window of the consensus phase has let the fast
 * modes of the graph die, it shrinks as our differences with the neighbours
 * do; twice that is still a bound. INFINITY where no window after `settling` is known. */
double run_context_distance(const struct run_context *w, uint64_t settling);

/* The round, with those of the consensus phase, whose models that distance is of. */
uint64_t run_context_measured(const struct run_context *w);

/* Was `bound`, of the models of that round, none? Mixing contracts, but a codec that leaves out much
 * may part models that were one before it does: then a window that began later says so. */
bool run_context_refutes(const struct run_context *w, uint64_t settling, double bound,
                         uint64_t round);

/* Some replica is of no model yet: mixing parts models, whatever they measured before. */
bool run_context_lags(const struct run_context *w, const struct edge *e, double most);

/* In the consensus phase: are models known to be apart? For mixers that ask. */
void run_context_settle(struct run_context *w, bool apart);

/* Has the consensus phase shrunk our model to nothing? Mixing keeps the mean of all models, but where one
 * answers each with noise, or with its negative: and what is relative to nothing is no drift. O(dim). */
bool run_context_vanished(struct run_context *w);
/* |x|^2. Between two jobs it is found once: whoever moves x says so. */
double run_context_norm2(struct run_context *w);
void run_context_moved(struct run_context *w);

#endif
