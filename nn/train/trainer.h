/* nn/train/trainer.h -- the interface between a node and the training of its model.
 *
 * A node knows its model only through this interface. There are three kinds of trainers: the SGD
 * trainer of nn/ (nn/train/sgd_trainer.h), a program that uses libhearsay (peer/api), and trainers of
 * tests. The caller owns the vector x. The trainer owns its momentum, its data and its scratch
 * memory. Calls come from one thread at a time.
 *
 *   init() or state transfer --> x --> steps() --> exchange --> steps() --> ... --> evaluate()
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
    /* Memory for the model, n_params floats, that outlives the node. NULL: the node allocates it. */
    float *x;
    void *self;
    /* Loss, in nats, of a model that gives every answer the same probability: ln(number of
     * answers). 0: not defined. */
    double guess;
    uint32_t batch; /* Samples of one local step; 0: not known. */

    /* Writes the run's initial model, which depends on the run alone, so that every peer writes the
     * same bits. `begins` is an exception. */
    void (*init)(void *self, float *x);

    /* Returns whether x is the run's initial model, to the last bit. x may come from an
     * untrusted peer. May be NULL: then init() writes the initial model. If the function exists,
     * init() may write another model, and the node gets the right one from other peers before
     * training. O(n_params). */
    bool (*begins)(void *self, const float *x);

    /* Makes n_steps local steps on x, with the learning rate of round `round` of the run. Batches are
     * a function of (run seed, peer, round, step), so that a peer that skips rounds draws the same
     * batches in later rounds. */
    void (*steps)(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report);

    /* Sets a function that the last local step of the next steps() calls when the trained parameters
     * x[from..] are final, because their layers are finished. `from` decreases from call to call. The
     * function may never be called. May be NULL: then it is never called. */
    void (*watch)(void *self, void (*done)(void *arg, size_t from), void *arg);

    /* Sets a function that is called after each batch of steps() and evaluate(), from the
     * computing thread, so that a watchdog sees progress. May be NULL: then a job has no sign of
     * progress until it ends. */
    void (*signs)(void *self, void (*sign)(void *arg), void *arg);

    /* Resets the momentum of the trained coordinates with sent[k] != 0, because a message has sent
     * their whole update (factor masking of DGC, Lin et al. 2018). May be NULL: then there is no
     * momentum. */
    void (*sent)(void *self, const float *sent);

    /* Computes loss and accuracy on the held-out set, or on max_samples samples spread over it (0:
     * all). Does not change x. */
    void (*evaluate)(void *self, const float *x, uint64_t max_samples,
                     struct trainer_report *report);

    /* Reports new live members. With --shard auto the samples are assigned again. keys[0..n): a
     * 64-bit key per member; own: the key of this peer. May be NULL if the shard does not depend
     * on the members. Returns 0, or -ENOMEM: nothing has changed. */
    int (*members)(void *self, const uint64_t *keys, size_t n, uint64_t own);

    /* Reads or writes the trainer's state besides x (momentum, step counts) in its own sections of a
     * checkpoint (nn/math/state.h). Called between other calls. If reading fails, the trainer can
     * only be closed. May be NULL: then there is no such state. */
    void (*state)(void *self, struct state *s);
};

#endif
