/* peer/cmd/eval_logits.h -- a model's answers to a whole set, as a file of floats.
 *
 *   [rows][classes] float32, little-endian     rows: samples in their order,
 *                                              of a text one for each byte
 */
#ifndef PEER_CMD_EVAL_LOGITS_H
#define PEER_CMD_EVAL_LOGITS_H

#include "nn/data/dataset.h"
#include "nn/models/model.h"

/* Writes the logits of all samples in `set` to `path`. Returns 0, or a negative errno; a regular
 * file then keeps its former contents (nn/files/replace.h). */
__attribute__((warn_unused_result)) int cmd_eval_logits(const char *path, const struct model *m,
                                                        const float *x, const struct dataset *set);

#endif
