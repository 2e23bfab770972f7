/* nn/train/trainer.h -- the trainer seam: all that a node sees of a model.
 *
 * nn/ is one trainer (nn/train/sgd_trainer.h), a test's quadratic is another, a
 * program that brings its own model is a third. The vector x belongs to the
 * caller; momentum, data order and scratch belong to the trainer. Calls come
 * from one thread at a time.
 */
#ifndef NN_TRAIN_TRAINER_H
#define NN_TRAIN_TRAINER_H

#include "nn/math/vec.h"

struct trainer_report
{
    /* Mean loss of the rows. NaN: not known (n_samples is 0), so nothing is judged by it. */
    double loss;
    double accuracy; /* Share of rows with the right label, in [0, 1]. */
    /* Share of the evaluated rows that have the most frequent label: the accuracy of a model that
     * ignores its inputs. Set by evaluate() only. 0: not known. */
    double majority;
    /* Number of rows. A sample is one row. In a text, each byte of a sample is one. */
    uint64_t n_samples;
    /* The training program has left, and steps() has not trained: the node leaves the run. x is
     * unchanged. If the memory of x is the trainer's, x is as the training program left it. */
    bool abandoned;
};

struct state; /* nn/math/state.h */

struct trainer
{
    size_t n_params;
    /* Borrowed from the implementation. Segments that are not trained come
     * last: the trained parameters are the first segments_trained() floats. */
    const struct segment *segments;
    size_t n_segments;
    float *x; /* Memory for the model, n_params floats, that outlives the node: where it lies is
               * the trainer's to say. NULL: the node's own. */
    void *self;
    /* Loss, in nats, of a model that gives every answer the same probability: ln(number of
     * answers). 0: not defined. */
    double guess;
    uint32_t batch; /* Samples of one local step; 0: not known. */

    /* Write the run's initial model, a function of the run alone: every peer
     * writes the same bits. But see `begins`. */
    void (*init)(void *self, float *x);

    /* Returns whether x is the run's initial model, to the last bit. x may come from an
     * untrusted peer. May be NULL: then init() writes the initial model. If the function exists,
     * init() may write another model, and the node gets the right one from other peers before
     * training. O(n_params). */
    bool (*begins)(void *self, const float *x);

    /* n_steps local SGD steps on x, at learning-rate schedule position
     * `round` (of the run, not of the peer's age). Batches are a function of
     * (run seed, peer, round, step), so a peer that skips rounds still draws
     * what it would have drawn. */
    void (*steps)(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report);

    /* In the last step of the next steps() call done(arg, from), each time that x[from..] of the
     * trained parameters is as steps() will leave it, with falling `from`: their layers are done,
     * and those before go on. Perhaps it is never called. May be NULL: then it never is. */
    void (*watch)(void *self, void (*done)(void *arg, size_t from), void *arg);

    /* Sets a function that is called after each batch of steps() and evaluate(), from the
     * computing thread, so that a watchdog sees progress. May be NULL: then a job has no sign of
     * progress until it ends. */
    void (*signs)(void *self, void (*sign)(void *arg), void *arg);

    /* Trained coordinates with sent[k] != 0 have gone out, and with them all that the
     * momentum held of them: forget it (DGC's factor masking, Lin et al. 2018).
     * May be NULL: then there is no momentum. */
    void (*sent)(void *self, const float *sent);

    /* Loss and accuracy on the held-out set; at most max_samples of it, from all over it
     * (0: all). x is not changed. */
    void (*evaluate)(void *self, const float *x, uint64_t max_samples,
                     struct trainer_report *report);

    /* Reports new live members. With --shard auto the samples are assigned again. keys[0..n): a
     * 64-bit key per member; own: the key of this peer. May be NULL if the shard does not depend
     * on the members. Returns 0, or -ENOMEM: nothing has changed. */
    int (*members)(void *self, const uint64_t *keys, size_t n, uint64_t own);

    /* Between calls: what it keeps besides x (momentum, step counts), for a restart, in
     * sections of its own (nn/math/state.h). Read into a trainer of the same run, which is
     * good for closing only where that fails. May be NULL: then there is nothing. */
    void (*state)(void *self, struct state *s);
};

#endif
