/* peer/cmd/logits.h -- computes a model's logits for every sample of a data set, batch by
 * batch. */
#ifndef PEER_CMD_LOGITS_H
#define PEER_CMD_LOGITS_H

#include "nn/data/dataset.h"
#include "nn/models/model.h"

struct cmd_logits
{
    const struct model *m;
    const float *x;
    const struct dataset *set;
    /* Callback for each batch, called in the order of the samples. `logits` has shape
     * [n][n_rows][n_classes], covers samples `at` to `at + n - 1`, and is borrowed for the call.
     * Returns 0; a negative errno stops the pass over the data set. */
    int (*take)(void *self, size_t at, uint32_t n, const float *logits);
    void *self;
};

/* Runs the model over all samples of `a->set` in order and gives each batch to `a->take`.
 * Returns 0, -ENOMEM, or the negative errno that `take` returned. */
__attribute__((warn_unused_result)) int cmd_logits(const struct cmd_logits *a);

#endif
