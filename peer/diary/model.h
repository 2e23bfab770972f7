/* peer/diary/model.h -- a model on its way to a safetensors file, with what says whose it is. */
#ifndef PEER_DIARY_MODEL_H
#define PEER_DIARY_MODEL_H

#include "nn/data/labels.h"
#include "nn/files/file.h"
#include "peer/node/node.h"
#include "peer/store/outdir.h"

enum { DIARY_MODEL_CLASSES_MAX = 1 << 16 };

/* A model on its way to a file. */
struct diary_model
{
    const float *x;
    const struct segment *segments;
    size_t n_segments;
    const struct run *run;
    uint64_t round; /* The model has been through so many rounds. */
    const char *name;
    const struct labels *classes; /* Their names, where the run's data have such; or NULL. */
};

/* Write a model as safetensors, with the metadata "run" (its canonical text),
 * "round", "name" and "version", and where classes have names "classes": these, with newlines between
 * (if they are UTF-8, and of DIARY_MODEL_CLASSES_MAX bytes at most). 0, or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int diary_model_write(const char *path,
                                                          const struct diary_model *s,
                                                          char error[FILE_ERROR_MAX]);

/* The same of a node's model. 0 and nothing written while it has none; 1 where it is there. */
__attribute__((warn_unused_result)) int diary_model_of_node(const char *path, const struct node *n,
                                                            const char *name,
                                                            const struct labels *classes,
                                                            char error[FILE_ERROR_MAX]);

/* The model that another peer has handed to this node, as DIR/handed/NAME.safetensors; its path goes
 * to `path`. It is of our own run, and its classes are ours. 0, or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int diary_model_handed(char path[OUTDIR_PATH_MAX],
                                                           const char *dir, const struct node *n,
                                                           const struct labels *classes,
                                                           char error[FILE_ERROR_MAX]);

#endif
