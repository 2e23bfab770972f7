/* peer/cmd/answers.h -- a model's answers to a whole set, batch by batch. */
#ifndef PEER_CMD_ANSWERS_H
#define PEER_CMD_ANSWERS_H

#include "nn/data/dataset.h"
#include "nn/models/model.h"

struct cmd_answers
{
    const struct model *m;
    const float *x;
    const struct dataset *set;
    /* Takes the logits [n][n_rows][n_classes] of samples at .. at + n, borrowed. 0, or a negative
     * errno, which ends it. */
    int (*take)(void *self, size_t at, uint32_t n, const float *logits);
    void *self;
};

/* All samples in their order. 0 or a negative errno: -ENOMEM, or take()'s. */
__attribute__((warn_unused_result)) int cmd_answers(const struct cmd_answers *a);

#endif
