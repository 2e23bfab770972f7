/* tests/unit/nn_golden.h -- format of the golden results of PyTorch in tests/golden/nn_*.h.
 *
 * The test and make_nn.py both compute parameters and inputs from a hash. The golden files hold
 * results only: losses, logits and gradients, which PyTorch computed in double precision.
 *
 *   key of a tensor      FNV-1a of its name, starting with the model's salt
 *   word(key, i)         the counter key + i * 0x9e3779b1 through the finaliser of MurmurHash3
 *   unit(key, i)         the upper 24 bits of word(key, i) as a float in [-1, 1)
 *
 *   parameter i          centre + scale * unit(name, i), in PyTorch's layout
 *   input i              unit("input", i), where i counts in the order [n][c][h][w]; for a text
 *                        model the upper 8 bits of word("input", i)
 *   label i              the upper 24 bits of word("labels", i), modulo the number of classes
 *
 * All values of a tensor are listed if there are up to GOLDEN_ALL_OF, else GOLDEN_SPREAD values:
 * value j has the index j * n / GOLDEN_SPREAD. `norm` is the norm of the tensor and `dot`
 * its inner product with unit("dot", i).
 */
#ifndef TESTS_UNIT_NN_GOLDEN_H
#define TESTS_UNIT_NN_GOLDEN_H

#include "nn/models/model.h"

/* Tolerances. PyTorch's own float32 results differ from its float64 results by at most a tenth of
 * the tolerances (tests/golden/make_nn.py prints how much). The tolerances leave room for sums in
 * another order and for Winograd's transforms, and are far below the effect of a wrong term, a
 * missing bias or a transposed tensor. */
#define GOLDEN_LOSS  1e-5 /* Tolerance of the loss, relative to the loss. */
#define GOLDEN_LOGIT 1e-4 /* Tolerance of a logit, relative to the largest logit. */
#define GOLDEN_GRAD  1e-4 /* Tolerance of `norm` and `dot` of a gradient, relative to its norm. */
/* Tolerance of one value of a gradient, relative to the root mean square of its tensor. */
#define GOLDEN_VALUE 5e-4
/* Tolerance that is added to GOLDEN_GRAD and GOLDEN_VALUE, relative to the model's largest gradient
 * norm. */
#define GOLDEN_FLOOR 1e-6

enum { GOLDEN_ALL_OF = 32, GOLDEN_SPREAD = 16 };

struct golden_tensor
{
    const char *name;
    uint32_t n_dims, dims[4];
    float centre, scale; /* Centre and half-width of the range of the parameter's values. */
    /* Norm of the gradient, and its inner product with the random numbers unit("dot", i). For
     * running statistics, the gradient is their distance from the statistics of the batch. */
    double norm, dot;
    const double *values;
};

struct golden_model
{
    const char *name, *spec;
    enum model_norm norm;
    struct data_shape data;
    uint32_t n, salt;
    double loss, largest; /* largest: the largest absolute value of a logit. */
    /* Logits in training. For a text model: each row's inner product with unit("dot", i). */
    const double *logits;
    const double *tested; /* Logits in evaluation, in the same form as `logits`. */
    const struct golden_tensor *tensors;
    size_t n_tensors;
};

#endif
