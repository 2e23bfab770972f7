/* tests/unit/nn_golden.h -- what tests/golden/nn_*.h hold: PyTorch's figures.
 *
 * Both sides compute parameters and inputs from a hash; what is compared is
 * listed here. PyTorch's are in double precision.
 *
 *   key    of a tensor: FNV-1a of its name, begun with the model's salt
 *   word   i of a key: the counter key + i * 0x9e3779b1 through the finaliser
 *          of MurmurHash3
 *   unit   a word's upper 24 bits as a float in [-1, 1)
 *
 *   parameter i   centre + scale * unit(name, i), in PyTorch's layout
 *   input i       unit("input", i), i running as [n][c][h][w]; of a text the
 *                 upper 8 bits of the word
 *   label i       upper 24 bits of word("labels", i), modulo the classes
 *
 * A tensor of up to GOLDEN_ALL_OF values is listed whole, of others
 * GOLDEN_SPREAD values: number j lies at j * n / GOLDEN_SPREAD. `norm` is its
 * length and `dot` its inner product with unit("dot", i).
 */
#ifndef TESTS_UNIT_NN_GOLDEN_H
#define TESTS_UNIT_NN_GOLDEN_H

#include "nn/models/model.h"

/* How far we may be off. PyTorch's own float32 is off by at most a tenth of
 * these (tests/golden/make_nn.py prints it): they leave room for products that
 * are summed in another order or by Winograd's transforms, and are far from
 * what a wrong term, a forgotten bias or a transposed tensor does. */
#define GOLDEN_LOSS  1e-5 /* Relative. */
#define GOLDEN_LOGIT 1e-4 /* A part of the largest logit. */
#define GOLDEN_GRAD  1e-4 /* Norm and dot of a gradient, of its norm ... */
#define GOLDEN_VALUE 5e-4 /* ... a value, of the root of its mean square ... */
#define GOLDEN_FLOOR                                                                               \
    1e-6 /* ... each with this of the model's steepest tensor:
                           * a bias before a batch norm has the gradient 0. */

enum { GOLDEN_ALL_OF = 32, GOLDEN_SPREAD = 16 };

struct golden_tensor
{
    const char *name;
    uint32_t n_dims, dims[4];
    float centre, scale; /* How the parameter's values are spread. */
    /* Norm and inner product of the gradient. For running statistics: of (running - statistics
     * of this batch). */
    double norm, dot;
    const double *values;
};

struct golden_model
{
    const char *name, *spec;
    enum model_norm norm;
    struct data_shape data;
    uint32_t n, salt;
    double loss, largest; /* Logit, in absolute value. */
    const double *logits; /* In training; of a text, each row's inner */
    const double *tested; /* product with unit("dot", i); in evaluation. */
    const struct golden_tensor *tensors;
    size_t n_tensors;
};

#endif
