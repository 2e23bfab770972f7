/* nn/train/sgd_scratch.h -- the memory and the threads of a trainer's steps. Internal to nn/train.
 *
 *   batch      [ part 0 | part 1 | ... ]     thread k runs part k with its own activations (arena)
 *   gradients  [ grad 0 ] [ grad 1 ] ...     thread k writes gradient k, as long as the vector x
 *   vector x   [ range 0 | range 1 | ... ]   thread k adds all gradients in range k and updates x
 *                                            there
 */
#ifndef NN_TRAIN_SGD_SCRATCH_H
#define NN_TRAIN_SGD_SCRATCH_H

#include "nn/layers/loss.h"
#include "nn/math/parallel_for.h"
#include "nn/models/model.h"

enum { SGD_EVAL_BATCH_MAX = 256, SGD_THREADS_MAX = 64 };

/* Memory of one thread: for a pass over its part of a batch, and for the range of the parameter
 * vector that it sums and updates. */
struct sgd_part
{
    float *arena;
    /* Gradient, n_params floats. The gradient of part 0 becomes the sum of the gradients of all
     * parts. */
    float *grad;
    uint16_t *label; /* Class of each row of the part. */
    /* Copy of the part's sparse rows: index in `column` and `value` at which each row begins,
     * train.n + 1 entries. */
    size_t *start;
    /* Column of each entry of the copied sparse rows, at most train.n * longest entries. */
    uint32_t *column;
    float *value;            /* Value of each entry of the copied sparse rows. */
    size_t from, to;         /* Range of parameters [from, to) that the thread updates. */
    struct segment *segment; /* The model's segments (tensors), cut to the range [from, to). */
    size_t n_segments;
    bool idle; /* True: the thread had no sample of the last batch. */
    struct loss loss;
};

struct sgd_scratch
{
    size_t n_params, longest;
    uint32_t batch, threads;
    /* Plans of a model pass over one part of a batch, for training and for evaluation. Both plans
     * use the arena of the part. */
    struct model_plan train, eval;
    uint32_t *index;       /* Indices of the samples of a batch, `batch` entries. */
    struct sgd_part *part; /* Memory of each thread, `threads` entries. */
    struct parallel_for *team;
};

/* Allocates scratch for trainers of this model. longest: largest number of entries in a row of
 * sparse data, else 0. batch: largest batch. threads: 1 to SGD_THREADS_MAX, and at most `batch`.
 * An evaluation uses the largest batch that fits in the same memory. Returns 0, -ENOMEM or
 * -EAGAIN (no threads). */
__attribute__((warn_unused_result)) int sgd_scratch_open(struct sgd_scratch **s,
                                                         const struct model *m, uint32_t batch,
                                                         uint32_t threads, size_t longest);
void sgd_scratch_close(struct sgd_scratch *s);

/* Divides n items into `parts` parts. Returns the first item of part k, for k from 0 to `parts`.
 * Part 0 is at least as large as any other part. */
static inline size_t sgd_scratch_cut(size_t n, uint32_t parts, uint32_t k)
{
    return (n * k + parts - 1) / parts;
}

#endif
