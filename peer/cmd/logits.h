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
    /* Callback that receives the logits of one batch. The batches come in the order of the samples.
     * `logits` has the shape [n][n_rows][n_classes], is for the samples `at` to `at` + n - 1, and
     * is borrowed during the call. Returns 0. A negative errno ends the computation. */
    int (*take)(void *self, size_t at, uint32_t n, const float *logits);
    void *self;
};

/* Runs the model over all samples of `a->set` in order, and passes the logits of each batch to
 * `a->take`. Returns 0, -ENOMEM, or the negative errno that `take` returned. */
__attribute__((warn_unused_result)) int cmd_logits(const struct cmd_logits *a);

#endif
