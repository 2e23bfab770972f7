/* nn/model_spec.h -- the text that names a model, parsed and printed.
 *
 *   spec = "logreg" | "lenet5" | "mlp:" size "-" size { "-" size }
 *
 * Specs come from the command line and from the text of a run, which a peer
 * may have sent: nothing in them is trusted. Internal to nn/model.c, but for
 * model_spec(), which nn/model.h declares.
 */
#ifndef NN_MODEL_SPEC_H
#define NN_MODEL_SPEC_H

#include "nn/model.h"

#include <errno.h>

enum {
    MODEL_REFUSED = -EINVAL,
    MODEL_SIZES_MAX = 32
};

enum model_kind { MODEL_LOGREG, MODEL_MLP, MODEL_LENET5 };

/* Widths of an mlp: input, hidden, output. n is 0 for other models. */
struct model_sizes
{
    size_t n;
    uint32_t size[MODEL_SIZES_MAX];
};

/* 0, or MODEL_REFUSED with a sentence. */
__attribute__((warn_unused_result)) int
model_parse(const char *spec, enum model_kind *kind, struct model_sizes *sizes,
            char error[MODEL_ERROR_MAX]);

void model_print(enum model_kind kind, const struct model_sizes *sizes,
                 char spec[MODEL_SPEC_MAX]);

#endif
