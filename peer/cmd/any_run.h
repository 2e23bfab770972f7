/* peer/cmd/any_run.h -- runs that commands look at: of our trainer, or of a program that brings its model. */
#ifndef PEER_CMD_ANY_RUN_H
#define PEER_CMD_ANY_RUN_H

#include "nn/models/model.h"
#include "peer/run/run.h"

/* As run_from_text(), with the keys of either; the sentence of a refusal is that of our trainer's. */
__attribute__((warn_unused_result)) int cmd_any_run(struct run *run, const char *text, size_t n,
                                                    char error[RUN_ERROR_MAX]);

/* Are its tensors known to the program that trains it alone? */
bool cmd_any_run_foreign(const struct run *run);

/* As cmd_training_model(). Of tensors that nobody knows here there are two segments at most: all that is
 * trained, and what is not. */
__attribute__((warn_unused_result)) int cmd_any_run_model(struct model *m, const struct run *run,
                                                          char error[RUN_ERROR_MAX]);

#endif
