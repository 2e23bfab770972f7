/* peer/diary/model.h -- a model on its way to a safetensors file, with what says whose it is. */
#ifndef PEER_DIARY_MODEL_H
#define PEER_DIARY_MODEL_H

#include "nn/data/data.h"
#include "nn/data/labels.h"
#include "nn/data/schema.h"
#include "nn/files/file.h"
#include "peer/node/node.h"
#include "peer/store/outdir.h"

enum { DIARY_MODEL_CLASSES_MAX = 1 << 16 };

/* What a model has been trained on, as far as its run does not say it. Zeros: not known. */
struct diary_source
{
    const struct labels *classes; /* Names of the classes; NULL: the run's data have none. */
    const struct schema *columns; /* Names of a table's columns; NULL: they have none. */
    struct data_trained trained;  /* The training files; hash 0: none. */
};

/* A model on its way to a file. */
struct diary_model
{
    const float *x;
    const struct segment *segments;
    size_t n_segments;
    const struct run *run;
    uint64_t round; /* The model has been through so many rounds. */
    const char *name;
    struct diary_source source;
};

/* Write a model as safetensors. Its metadata:
 *
 *   run           the run's canonical text
 *   round, name, version
 *   data          the kind of the run's data (nn/data/kind.h). This and the next three: not of a run
 *   input         how inputs are made of raw data, JSON (peer/diary/input.h)     that has other data
 *   trained_on    where there are files: their hash, 16 hex digits, and the share of their samples that was
 *                 held out (struct data_trained): "0123456789abcdef 0.1"
 *   classes       names of classes, newlines between them, where they have names: if they are UTF-8, and of
 *                 DIARY_MODEL_CLASSES_MAX bytes at most
 *   columns, label   names of a table's columns and of its label's column, where they have names
 *                 (peer/diary/columns.h)
 *
 * 0, or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int diary_model_write(const char *path,
                                                          const struct diary_model *s,
                                                          char error[FILE_ERROR_MAX]);

/* The same of a node's model. 0 and nothing written while it has none; 1 where it is there. */
__attribute__((warn_unused_result)) int diary_model_of_node(const char *path, const struct node *n,
                                                            const char *name,
                                                            const struct diary_source *source,
                                                            char error[FILE_ERROR_MAX]);

/* The model that another peer has handed to this node, as DIR/handed/NAME.safetensors; its path goes
 * to `path`. It is of our own run, and its classes are ours. 0, or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int diary_model_handed(char path[OUTDIR_PATH_MAX],
                                                           const char *dir, const struct node *n,
                                                           const struct diary_source *source,
                                                           char error[FILE_ERROR_MAX]);

#endif
