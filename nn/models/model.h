/* nn/models/model.h -- a network over one flat parameter vector.
 *
 *   logreg                 one dense layer; on sparse rows, too
 *   mlp:784-512-512-10     dense layers with ReLU between; the first and last
 *                          size are the data's; on sparse rows, too
 *   lenet5                 LeCun et al. 1998 as it is trained today: ReLU and
 *                          max-pooling; 61,706 parameters on 28x28x1
 *   vgg11, vgg11:bn        Simonyan, Zisserman 2015, configuration A for
 *                          32x32 images, one dense layer at the end; plain or
 *                          with a norm behind each convolution
 *   resnet:20              He et al. 2016, section 4.2, for 32x32 images:
 *                          6k + 2 layers, option A shortcuts, no bias before
 *                          a norm
 *   lstm:256, lstm:2x256   an LSTM on bytes of text: embedding, layers of this
 *                          width, dense
 *   gpt:4x128              a decoder-only transformer on bytes of text (Radford
 *                          et al. 2019): 4 blocks of width 128, a head for
 *                          each 32 channels
 *
 *   x:  [ conv1.weight | bn1.weight | ... | fc.bias | bn1.running_mean | ... ]
 *           trained                               |  running statistics
 *
 * Segments carry the names and layouts of the textbook modules in PyTorch
 * (README), so that a model file loads there as it is. Running statistics of
 * batch norms are segments, too, which lie behind all others and are never
 * trained: their "gradient" is (running - batch's), and nn/train/optimiser.h moves
 * them a tenth.
 *
 * A model is immutable: any number of trainers share one. A pass works in an
 * arena of floats that the caller owns, laid out by a plan that is made once,
 * and allocates nothing (tests/unit/nn_alloc.c counts). In a plan for training
 * every output has a place of its own; gradients share places, as do all
 * outputs in a plan that only runs forward: two share where their lives do not
 * overlap.
 */
#ifndef NN_MODELS_MODEL_H
#define NN_MODELS_MODEL_H

#include "nn/data/shape.h"
#include "nn/layers/layer.h"

enum {
    MODEL_SPEC_MAX = 256,
    MODEL_ERROR_MAX = 320,
    MODEL_WIDTH_MAX = 1 << 16 /* The widest layer of an mlp. */
};

/* Normalisation of a convolutional network. MODEL_GROUP_NORM: 8 channels per group;
 * MODEL_LAYER_NORM: one group. */
enum model_norm { MODEL_BATCH_NORM, MODEL_GROUP_NORM, MODEL_LAYER_NORM };

struct model
{
    char spec[MODEL_SPEC_MAX]; /* Canonical. */
    struct data_shape data;
    struct shape in; /* One sample's, from the data. */
    bool sparse;     /* The input are sparse rows. */
    uint32_t n_classes;
    uint32_t n_rows; /* Rows of logits a sample: 1, or the context. */
    struct layer *layers;
    size_t n_layers;
    struct segment *segments;
    struct model_begin *begins; /* How each segment begins, as added; internal. */
    size_t n_segments;
    size_t n_params;
};

/* Check a spec and write its canonical text ("mlp:0784-10" gives
 * "mlp:784-10"). 0, or -EINVAL with a sentence that says what was found. */
__attribute__((warn_unused_result)) int model_spec(const char *spec, char canonical[MODEL_SPEC_MAX],
                                                   char error[MODEL_ERROR_MAX]);

/* Has this (good) spec norms that a model_norm chooses? */
bool model_has_norm(const char *spec);

/* Build a model for data of this shape. 0; -EINVAL with a sentence: a bad spec,
 * or one that does not fit the data; or -ENOMEM. */
__attribute__((warn_unused_result)) int model_init(struct model *m, const char *spec,
                                                   enum model_norm norm,
                                                   const struct data_shape *data,
                                                   char error[MODEL_ERROR_MAX]);
void model_close(struct model *m);

/* The initial model, a function of the seed alone, as the textbook modules
 * begin: uniform in +-1/sqrt(fan-in), weights and biases; He et al.'s normal
 * for resnet and vgg11; N(0, 0.02) for gpt. */
void model_params(const struct model *m, uint64_t seed, float *x);

/* Places of all buffers in an arena, for batches of up to n samples. */
struct model_plan
{
    uint32_t n;
    bool training;
    size_t n_floats;     /* Floats of the arena; below, places in it. */
    size_t *out;         /* Each layer's output ... */
    size_t *d_out;       /* ... its gradient (training) ... */
    size_t *keep;        /* ... and what it keeps (training). */
    size_t *last_reader; /* For each output, the last layer that reads it. */
    size_t scratch;
};

/* Place of the output gradient of a layer whose gradient is not used. */
#define MODEL_NOWHERE SIZE_MAX

/* 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int model_plan_init(struct model_plan *plan,
                                                        const struct model *m, uint32_t n,
                                                        bool training);
void model_plan_close(struct model_plan *plan);

/* One pass over a batch. */
struct model_pass
{
    uint32_t n;     /* 1 to plan->n. */
    const float *x; /* Parameters. */
    float *grad;    /* n_params floats; model_backward() writes all of it. */
    const struct model_plan *plan;
    float *arena;            /* plan->n_floats, aligned to 64 bytes. */
    struct sparse_rows rows; /* The input of a model that is `sparse`. */
    /* Backward, after each layer that has parameters: grad[from..] of the trained ones is whole,
     * and backward reads x[from..] no more. `from` falls. May be NULL. */
    void (*done)(void *self, size_t from);
    void *done_self;
};

/* Returns the place of sample i in the input, [h][w][c] floats (dataset_sample() of
 * nn/data/dataset.h writes it). A pass does not change the input. */
static inline float *model_input(const struct model *m, const struct model_pass *p, uint32_t i)
{
    return p->arena + i * shape_size(m->in);
}

/* Input -> logits [n][n_rows][n_classes], which lie in the arena until the next
 * pass and may be overwritten by their gradient. */
float *model_forward(const struct model *m, const struct model_pass *p);

/* After model_forward() with the same pass, in a plan for training:
 * d_logits -> grad. Spoils d_logits. */
void model_backward(const struct model *m, const struct model_pass *p, float *d_logits);

#endif
