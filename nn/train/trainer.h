/* nn/train/trainer.h -- the interface between a node and the training of its model.
 *
 * A node runs the protocol of one peer and knows its model only through this interface. There are
 * three kinds of trainers:
 *
 *   the SGD trainer      nn/train/sgd_trainer.h: trains a built-in model
 *   a program            peer/api: a program that uses libhearsay does the local steps itself
 *   trainers of tests    for example a quadratic function
 *
 * The caller owns x, the vector of all parameters. The trainer owns its momentum, its data and its
 * scratch memory. All calls come from one thread at a time:
 *
 *   init() or state transfer --> x --> steps() --> exchange --> steps() --> ... --> evaluate()
 */
#ifndef NN_TRAIN_TRAINER_H
#define NN_TRAIN_TRAINER_H

#include "nn/math/vec.h"

/* Result of steps() or of evaluate(). */
struct trainer_report
{
    /* Mean loss of the rows. If n_samples is 0, the loss is NaN and means "not known", so the check
     * for divergence ignores it. */
    double loss;
    double accuracy; /* Share of rows that the model classifies correctly, in [0, 1]. */
    /* Share of the evaluated rows that have the most frequent label. A model that ignores its
     * inputs can reach this accuracy. Set by evaluate() only. 0: not known. */
    double majority;
    /* Number of rows that were trained on or evaluated: one row per sample or, in a text, one row
     * per byte of each sample. */
    uint64_t n_samples;
    /* True: the training program left the run during steps(), so the node leaves the run, too. x is
     * unchanged, unless x is memory of the training program, which may have changed it. */
    bool abandoned;
};

struct state; /* An object that reads or writes a checkpoint (nn/math/state.h). */

enum { TRAINER_COMPANIONS = 2 /* Largest number of companion vectors. */ };

/* A trainer as the node sees it: the properties of its model, and then its functions. */
struct trainer
{
    size_t n_params; /* Number of floats of the parameter vector x. */
    /* Segments of x: one per tensor. Borrowed from the trainer. Segments that are not trained come
     * last, so the trained parameters are the first segments_trained() floats of x. */
    const struct segment *segments;
    size_t n_segments;
    /* Memory for x, n_params floats, which must outlive the node. NULL: the node allocates x. */
    float *x;
    /* Companion vectors: vectors that peers exchange and mix in addition to x, such as the momentum
     * (--momentum-kind averaged). Each has as many floats as there are trained parameters, all 0 at
     * first. Memory of the trainer. steps() and state() use them, and between the calls the node
     * mixes them. Entries from the first NULL on are unused. All NULL: peers exchange x only. */
    float *companion[TRAINER_COMPANIONS];
    /* True: there is one companion vector, and its sum over all peers must stay constant, also if
     * peers die or return. If an edge is reset or closed, the node therefore takes back the changes
     * that this edge made to the companion vector (gossip/mixers/mixing.h). The companion vector of
     * a new peer must begin as 0. */
    bool conserved;
    /* The trainer's own state: the first argument of each function pointer of this struct. */
    void *self;
    /* Loss, in nats, of a model that gives every answer the same probability: ln(number of
     * answers). 0: not defined. */
    double guess;
    uint32_t batch; /* Number of samples of one local step. 0: not known. */

    /* Writes the run's initial model to x. The model depends on the run only, so every peer writes
     * the same bits. Exception: if begins() is not NULL, init() may write a different model, and
     * begins() returns whether x is the initial model. */
    void (*init)(void *self, float *x);

    /* Returns whether x is the run's initial model, bit for bit. x may come from an untrusted peer.
     * NULL: the model that init() writes is the initial model. If the function returns false for
     * the model of init(), the node fetches the initial model from another peer before training.
     * O(n_params). */
    bool (*begins)(void *self, const float *x);

    /* Does n_steps local steps on x, with the learning rate of round `round` of the run. Each batch
     * is a function of (run seed, peer, round, step), so a peer that skips rounds still draws the
     * same batches in later rounds. */
    void (*steps)(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report);

    /* Replaces the running statistics in x by their mean over n_batches >= 1 batches of the
     * training samples: the first batches that steps() would draw in round `round`. Changes neither
     * the trained parameters nor the trainer's state. Costs as much as training on n_batches
     * batches. NULL: the model has no running statistics, or the trainer cannot compute them. */
    void (*statistics)(void *self, float *x, uint64_t round, uint32_t n_batches);

    /* Sets a function done() for the next call of steps(). During the last local step, the backward
     * pass finishes the layers from the last to the first. Whenever all trained parameters from
     * index `from` on have their final values, the trainer calls done(arg, from). `from` decreases
     * from call to call. A trainer may never call done(). NULL: the trainer does not support
     * this. */
    void (*watch)(void *self, void (*done)(void *arg, size_t from), void *arg);

    /* Sets a function that the trainer calls after each batch of steps(), statistics() and
     * evaluate(), on the computing thread. The calls show a watchdog that the job makes progress.
     * NULL: the trainer does not support this, so the watchdog sees no progress before the job
     * ends. */
    void (*signs)(void *self, void (*sign)(void *arg), void *arg);

    /* For each trained coordinate k with sent[k] != 0, sets the momentum to 0: a delta has just
     * sent the whole update of this coordinate (factor masking of DGC, Lin et al. 2018). NULL: the
     * trainer has no momentum. */
    void (*sent)(void *self, const float *sent);

    /* Computes loss and accuracy of x on the held-out set, or on max_samples samples spread over
     * the set. max_samples 0: all samples. Does not change x. */
    void (*evaluate)(void *self, const float *x, uint64_t max_samples,
                     struct trainer_report *report);

    /* Reports that the live members have changed. With --shard auto the trainer then assigns the
     * samples again. keys[0..n): a 64-bit key per member; own: the key of this peer. NULL: the
     * samples of the trainer do not depend on the members. Returns 0, or -ENOMEM and nothing has
     * changed. */
    int (*members)(void *self, const uint64_t *keys, size_t n, uint64_t own);

    /* Reads or writes the trainer's state other than x (momentum, step counts) in its own sections
     * of a checkpoint (nn/math/state.h). Called when no other call is running. If reading fails,
     * the trainer can only be closed. NULL: the trainer has no such state. */
    void (*state)(void *self, struct state *s);

    /* Reports that training diverged in the last steps(), and that the node has set x and state()
     * back to an earlier round (peer/node/step/rollback.h). Edges and neighbours are not set back.
     * NULL: no part of the trainer depends on edges or neighbours. */
    void (*rolled_back)(void *self);
};

#endif
