/* peer/diary/model.h -- writes a model and its metadata to a safetensors file. */
#ifndef PEER_DIARY_MODEL_H
#define PEER_DIARY_MODEL_H

#include "nn/data/data.h"
#include "nn/data/labels.h"
#include "nn/data/schema.h"
#include "nn/files/file.h"
#include "peer/node/node.h"
#include "peer/store/outdir.h"

enum { DIARY_MODEL_CLASSES_MAX = 1 << 16 };

/* The part of the description of a model's training data that is not in the run description. All
 * zeros: not known. */
struct diary_source
{
    const struct labels *classes; /* Names of the classes. NULL: the data have none. */
    const struct schema *columns; /* Names of a table's columns. NULL: none. */
    struct data_trained trained;  /* Training files. hash is 0 if there are none. */
};

/* A model that is written to a file. */
struct diary_model
{
    const float *x;
    const struct segment *segments;
    size_t n_segments;
    const struct run *run;
    uint64_t round; /* Rounds that the model has been trained. */
    const char *name;
    struct diary_source source;
};

/* Writes a model as safetensors. Its metadata:
 *
 *   run          run description in its canonical form
 *   round, name, version
 *   data         kind of the run's data (nn/data/kind.h)
 *   input        how inputs are made from raw data, as JSON (peer/diary/input.h)
 *   trained_on   16 hex digits of the hash of the training files, and the share of their samples
 *                that was held out (struct data_trained): "0123456789abcdef 0.1". Missing without
 *                files
 *   classes      names of the classes, separated by newlines, if they are UTF-8 and have at most
 *                DIARY_MODEL_CLASSES_MAX bytes. Missing if classes have no names
 *   columns      names of a table's columns (peer/diary/columns.h). Missing if they have no names
 *   label        name of the label's column. Missing if columns have no names
 *
 * The keys data, input and trained_on are missing if the data of the run have no fixed kind.
 * Returns 0, or a negative errno with a message. */
__attribute__((warn_unused_result)) int diary_model_write(const char *path,
                                                          const struct diary_model *s,
                                                          char error[FILE_ERROR_MAX]);

/* Writes the model of a node as diary_model_write() does. Returns 0, and writes nothing, if the
 * node has no model; 1 if the model is written; or a negative errno with a message. */
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
