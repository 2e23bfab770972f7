/* peer/cmd/run_parse.h -- parses run descriptions of both kinds: SGD runs, which use hearsay's own
 * trainer, and layout runs, in which a program brings its own model through libhearsay. */
#ifndef PEER_CMD_RUN_PARSE_H
#define PEER_CMD_RUN_PARSE_H

#include "nn/models/model.h"
#include "peer/run/run.h"

/* Parses the run description `text` of `n` bytes like run_from_text(), first as an SGD run, and
 * then as a layout run (with the model of a program). Returns 0. If both fail, returns -EINVAL with
 * the message for an SGD run. */
__attribute__((warn_unused_result)) int cmd_run_parse(struct run *run, const char *text, size_t n,
                                                      char error[RUN_ERROR_MAX]);

/* Returns true if a program brings its own model through libhearsay (a layout run). Only that
 * program knows the tensors of the model. */
bool cmd_run_is_layout(const struct run *run);

/* Builds the model of `run` like cmd_training_model(). The model of a layout run gets only one
 * segment (named tensor) for all trained parameters, and a second one for untrained parameters if
 * there are any. Returns 0, or a negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_run_model(struct model *m, const struct run *run,
                                                      char error[RUN_ERROR_MAX]);

#endif
