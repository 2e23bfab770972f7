/* nn/model.h -- a network over one flat parameter vector.
 *
 *   logreg                 one dense layer
 *   mlp:784-512-512-10     dense layers with ReLU between; the first and last
 *                          size are the data's
 *   lenet5                 LeCun et al. 1998 as it is trained today: ReLU and
 *                          max-pooling; 61,706 parameters on 28x28x1
 *
 *   x:  [ conv1.weight | conv1.bias | ... | fc3.weight | fc3.bias ]
 *
 * Segments carry PyTorch's names and layouts (conv [out, in, kh, kw], dense
 * [out, in]), so that a model file loads there as it is.
 *
 * A model is immutable: any number of trainers share one. A pass works in an
 * arena of floats that the caller owns, and allocates nothing:
 *
 *   [ input | out of layer 1 | ... | out of layer L | d | d' | scratch ]
 *
 * d and d' take turns as gradient by a layer's output and by its input. The
 * caller fills the input (in the layout that model_input() describes) and
 * reads the logits.
 */
#ifndef NN_MODEL_H
#define NN_MODEL_H

#include "nn/layer.h"

enum {
    MODEL_SPEC_MAX = 256,
    MODEL_ERROR_MAX = 320,
    MODEL_LAYERS_MAX = 64,
    MODEL_WIDTH_MAX = 1 << 16 /* Of a layer of an mlp. */
};

struct model
{
    char spec[MODEL_SPEC_MAX]; /* Canonical. */
    struct shape in;
    uint32_t n_classes;
    struct layer layers[MODEL_LAYERS_MAX];
    size_t n_layers;
    struct segment segments[2 * MODEL_LAYERS_MAX];
    size_t n_segments;
    size_t n_params;
    bool maps_in; /* The input is [c][n][h][w], not [n][c][h][w]. */
};

/* Check a spec and write its canonical text ("mlp:0784-10" gives
 * "mlp:784-10"). 0, or -EINVAL with a sentence that says what was found. */
__attribute__((warn_unused_result)) int
model_spec(const char *spec, char canonical[MODEL_SPEC_MAX],
           char error[MODEL_ERROR_MAX]);

/* Build a model for images of shape `in` and n_classes >= 2 classes. 0, or
 * -EINVAL with a sentence: a bad spec, or one that does not fit the data. */
__attribute__((warn_unused_result)) int
model_init(struct model *m, const char *spec, struct shape in,
           uint32_t n_classes, char error[MODEL_ERROR_MAX]);

/* The initial model, a function of the seed alone: uniform in
 * +-1/sqrt(fan-in), weights and biases, as PyTorch's layers begin. */
void model_params(const struct model *m, uint64_t seed, float *x);

/* Floats that an arena needs for batches of up to n samples: for the forward
 * pass alone, or with `backward`. Grows with n. */
size_t model_arena(const struct model *m, uint32_t n, bool backward);

/* One pass over a batch. */
struct model_pass
{
    uint32_t n;
    const float *x; /* Parameters. */
    float *grad;    /* Gradient, n_params floats; all of it is written. */
    float *arena;
    size_t n_arena; /* At least model_arena(). */
};

/* Put sample i of a batch of n, given as [c][h][w], in its place in the
 * arena's input. */
void model_input(const struct model *m, const struct model_pass *p, uint32_t i,
                 const float *sample);

/* Input -> logits [n][n_classes], which lie in the arena until the next pass
 * and may be overwritten by their gradient. */
float *model_forward(const struct model *m, const struct model_pass *p);

/* After model_forward() with the same pass: d_logits -> grad. Spoils
 * d_logits. */
void model_backward(const struct model *m, const struct model_pass *p,
                    float *d_logits);

#endif
