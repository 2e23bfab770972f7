/* peer/cmd/eval_logits.h -- writes a model's logits for all samples of a data set to a file of
 * floats.
 *
 * The file is an array [rows][classes] of float32, little-endian. It has one row for each sample,
 * in order, and for text one row for each byte.
 */
#ifndef PEER_CMD_EVAL_LOGITS_H
#define PEER_CMD_EVAL_LOGITS_H

#include "nn/data/dataset.h"
#include "nn/models/model.h"

/* Writes the logits of all samples of `set` to the file `path`. Returns 0 or a negative errno. On
 * error, a regular file at `path` keeps its former contents (nn/files/replace.h). */
__attribute__((warn_unused_result)) int cmd_eval_logits(const char *path, const struct model *m,
                                                        const float *x, const struct dataset *set);

#endif
