/* nn/models/model.h -- a network over one flat parameter vector.
 *
 *   logreg                 one dense layer; also on sparse rows
 *   mlp:784-512-512-10     dense layers with ReLU between them; the first and last
 *                          size are the data's; also on sparse rows
 *   lenet5, lenet5:bn      LeCun et al. 1998 in today's form: ReLU and
 *                          max-pooling; 61,706 parameters on 28x28x1; bn: with a
 *                          norm layer after each pooling layer
 *   vgg11, vgg11:bn        Simonyan, Zisserman 2015, configuration A for
 *                          32x32 images, one dense layer at the end; bn: with a
 *                          norm layer after each convolution
 *   resnet:20              He et al. 2016, section 4.2, for 32x32 images:
 *                          6k + 2 layers, option A shortcuts, convolutions
 *                          without bias
 *   lstm:256, lstm:2x256   an LSTM on bytes of text: embedding, LSTM layers of this
 *                          width, dense layer
 *   gpt:4x128              a decoder-only transformer on bytes of text (Radford
 *                          et al. 2019): 4 blocks of width 128, one head per
 *                          32 channels
 *
 *   x:  [ conv1.weight | bn1.weight | ... | fc.bias | bn1.running_mean | ... ]
 *           trained                               |  running statistics
 *
 * Segments have the names and layouts of PyTorch's modules (tests/pytorch_models.py), so that
 * PyTorch loads a model file without conversion. The running statistics of batch norms are
 * segments, too. They come after all other segments and are not trained. Their "gradient" is
 * (running - batch statistic), and nn/train/optimiser.h moves them a tenth of this distance.
 *
 * A model is immutable, so any number of trainers can share one. A pass uses an arena of floats
 * that the caller owns and allocates nothing (checked by tests/unit/nn_alloc.c). A plan, which is
 * made once, assigns places in the arena. In a plan for training, every output has its own place,
 * and gradients share places. In a plan for forward passes, outputs share places, too. Two buffers
 * share a place only if they are not in use at the same time.
 */
#ifndef NN_MODELS_MODEL_H
#define NN_MODELS_MODEL_H

#include "nn/data/shape.h"
#include "nn/layers/layer.h"

enum {
    MODEL_SPEC_MAX = 256,
    MODEL_ERROR_MAX = 320,
    MODEL_WIDTH_MAX = 1 << 16 /* Largest width of a layer of an mlp. */
};

/* Kind of the norm layers of a convolutional network. MODEL_GROUP_NORM: 8 channels per group, but 3
 * and 4 in the two norm layers of lenet5:bn. MODEL_LAYER_NORM: one group of all channels. */
enum model_norm { MODEL_BATCH_NORM, MODEL_GROUP_NORM, MODEL_LAYER_NORM };

struct model
{
    char spec[MODEL_SPEC_MAX]; /* Model spec in canonical form. */
    struct data_shape data;
    struct shape in; /* Shape of one sample. The data determine it. */
    bool sparse;     /* True: the input of the model is sparse rows. */
    uint32_t n_classes;
    /* Number of rows of logits per sample: 1, or the context length for a model of text. */
    uint32_t n_rows;
    struct layer *layers;
    size_t n_layers;
    struct segment *segments;
    /* Initial distribution of each segment, in the order in which segments were added. Used only
     * inside nn/models/. */
    struct model_begin *begins;
    size_t n_segments;
    size_t n_params;
};

/* Checks a spec and writes its canonical text ("mlp:0784-10" becomes "mlp:784-10"). Returns 0, or
 * -EINVAL with an error message. */
__attribute__((warn_unused_result)) int model_spec(const char *spec, char canonical[MODEL_SPEC_MAX],
                                                   char error[MODEL_ERROR_MAX]);

/* Returns whether the model of a valid spec has norm layers, see enum model_norm. */
bool model_has_norm(const char *spec);

/* Builds a model for data of this shape. Returns 0; -EINVAL with an error message if the spec is
 * invalid or does not fit the data; or -ENOMEM. */
__attribute__((warn_unused_result)) int model_init(struct model *m, const char *spec,
                                                   enum model_norm norm,
                                                   const struct data_shape *data,
                                                   char error[MODEL_ERROR_MAX]);
void model_close(struct model *m);

/* Computes the initial parameters, a function of the seed alone. The distributions are the usual
 * ones: uniform in +-1/sqrt(fan-in) for weights and biases; He et al.'s normal distribution for
 * resnet and vgg11; N(0, 0.02) for gpt. */
void model_params(const struct model *m, uint64_t seed, float *x);

/* Positions of all buffers in an arena, for batches of up to n samples. */
struct model_plan
{
    uint32_t n;
    bool training;
    size_t n_floats; /* Size of the arena in floats. */
    size_t *out;     /* Position of each layer's output in the arena. */
    /* Position in the arena of the gradient of each layer's output, or MODEL_NOWHERE if it is not
     * needed. Only in training. */
    size_t *d_out;
    /* Position in the arena of the values that each layer stores for its backward pass. Only in
     * training. */
    size_t *keep;
    size_t *last_reader; /* For each layer's output, the last layer that reads it. */
    size_t scratch;
};

/* Value of model_plan.d_out[i] if the gradient of layer i's output is not needed. */
#define MODEL_NOWHERE SIZE_MAX

/* Makes a plan for batches of up to n samples. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int model_plan_init(struct model_plan *plan,
                                                        const struct model *m, uint32_t n,
                                                        bool training);
void model_plan_close(struct model_plan *plan);

/* Input, output and memory of one forward and backward pass over a batch. */
struct model_pass
{
    uint32_t n;     /* Number of samples, 1 to plan->n. */
    const float *x; /* Parameters of the model: the flat vector x. */
    float *grad;    /* Gradient, n_params floats. model_backward() overwrites all of it. */
    const struct model_plan *plan;
    float *arena;            /* Memory of plan->n_floats floats, aligned to 64 bytes. */
    struct sparse_rows rows; /* Input of a model with sparse input (model.sparse). */
    /* Called in the backward pass after each layer that has parameters. At that time the gradient
     * of the trained parameters from `from` on is complete, and x[from..] is not read any more.
     * `from` decreases from call to call. May be NULL. */
    void (*done)(void *self, size_t from);
    void *done_self;
};

/* Returns the address of sample i of the input, [h][w][c] floats. dataset_sample() of
 * nn/data/dataset.h writes samples in this form. A pass does not change the input. */
static inline float *model_input(const struct model *m, const struct model_pass *p, uint32_t i)
{
    return p->arena + i * shape_size(m->in);
}

/* Computes the logits [n][n_rows][n_classes]. They are valid in the arena until the next pass, and
 * may be overwritten by their gradient. */
float *model_forward(const struct model *m, const struct model_pass *p);

/* Computes p->grad from the gradient of the logits. Called after model_forward() with the same
 * pass, and with a plan for training. Overwrites d_logits. */
void model_backward(const struct model *m, const struct model_pass *p, float *d_logits);

#endif
