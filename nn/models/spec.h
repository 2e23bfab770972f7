/* nn/models/spec.h -- the text that names a model, parsed and printed.
 *
 *   spec = "logreg" | "lenet5" | "mlp:" size "-" size { "-" size }
 *        | "vgg11" [ ":bn" ] | "resnet:" layers
 *        | "lstm:" [ layers "x" ] width | "gpt:" [ layers "x" ] width
 *
 * Specs come from the command line and from the text of a run, which a peer
 * may have sent: nothing in them is trusted. Internal to nn/models/, but for
 * what nn/models/model.h declares.
 */
#ifndef NN_MODELS_SPEC_H
#define NN_MODELS_SPEC_H

#include "nn/models/model.h"

#include <errno.h>

enum {
    MODEL_REFUSED = -EINVAL,
    MODEL_SIZES_MAX = 32,
    MODEL_RESNET_MAX = 1202, /* Layers: the paper's deepest. */
    MODEL_HEAD = 32          /* Channels of one head of attention. */
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

/* Numbers after the name. mlp: the widths. vgg11: n is 1 with norms, else 0. resnet: layers.
 * lstm, gpt: layers, width. */
struct model_sizes
{
    size_t n;
    uint32_t size[MODEL_SIZES_MAX];
};

/* 0, or MODEL_REFUSED with a sentence. */
__attribute__((warn_unused_result)) int model_parse(const char *spec, enum model_kind *kind,
                                                    struct model_sizes *sizes,
                                                    char error[MODEL_ERROR_MAX]);

void model_print(enum model_kind kind, const struct model_sizes *sizes, char spec[MODEL_SPEC_MAX]);

#endif
