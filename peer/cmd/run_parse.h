/* peer/cmd/run_parse.h -- reads run descriptions of both kinds: runs of hearsay's own SGD trainer,
 * and runs of a program that brings its own model through the library (layout runs). */
#ifndef PEER_CMD_RUN_PARSE_H
#define PEER_CMD_RUN_PARSE_H

#include "nn/models/model.h"
#include "peer/run/run.h"

/* Parses the run description `text` of `n` bytes like run_from_text(), first with the keys of
 * the SGD trainer, then with the keys of a layout run. Returns 0, or -EINVAL with the error
 * message of the SGD trainer's parser. */
__attribute__((warn_unused_result)) int cmd_run_parse(struct run *run, const char *text, size_t n,
                                                      char error[RUN_ERROR_MAX]);

/* Returns true for a layout run. Only the program that trains such a model knows its tensors. */
bool cmd_run_is_layout(const struct run *run);

/* Builds the model of `run` like cmd_training_model(). The model of a layout run gets one
 * segment for all trained parameters, and a second one for the untrained parameters if there are
 * any. Returns 0, or a negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_run_model(struct model *m, const struct run *run,
                                                      char error[RUN_ERROR_MAX]);

#endif
