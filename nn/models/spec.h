/* nn/models/spec.h -- the text that names a model, parsed and printed.
 *
 *   spec = "logreg" | "lenet5" [ ":bn" ] | "mlp:" size "-" size { "-" size }
 *        | "vgg11" [ ":bn" ] | "resnet:" layers
 *        | "lstm:" [ layers "x" ] width | "gpt:" [ layers "x" ] width
 *
 * Specs come from the command line and from the run description, which another peer may have sent,
 * so they are not trusted. Internal to nn/models/, except what nn/models/model.h declares.
 */
#ifndef NN_MODELS_SPEC_H
#define NN_MODELS_SPEC_H

#include "nn/models/model.h"

#include <errno.h>

enum {
    MODEL_REFUSED = -EINVAL,
    MODEL_SIZES_MAX = 32,
    /* Largest number of layers of a resnet, as in the deepest model of the ResNet paper. */
    MODEL_RESNET_MAX = 1202,
    MODEL_HEAD = 32 /* Number of channels of each attention head. */
};

enum model_kind {
    MODEL_LOGREG,
    MODEL_MLP,
    MODEL_LENET5,
    MODEL_VGG11,
    MODEL_RESNET,
    MODEL_LSTM,
    MODEL_GPT,
    MODEL_KINDS
};

/* The n numbers in a spec, size[0..n). mlp: the widths. resnet: the number of layers. lstm and gpt:
 * the number of layers, then the width. lenet5 and vgg11 have no numbers; n is then 1 for a model
 * with norm layers, else 0. */
struct model_sizes
{
    size_t n;
    uint32_t size[MODEL_SIZES_MAX];
};

/* Parses a spec. Returns 0, or MODEL_REFUSED with an error message. */
__attribute__((warn_unused_result)) int model_parse(const char *spec, enum model_kind *kind,
                                                    struct model_sizes *sizes,
                                                    char error[MODEL_ERROR_MAX]);

void model_print(enum model_kind kind, const struct model_sizes *sizes, char spec[MODEL_SPEC_MAX]);

#endif
