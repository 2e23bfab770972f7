/* peer/run_log/model.h -- writes a model and its metadata to a safetensors file. */
#ifndef PEER_RUN_LOG_MODEL_H
#define PEER_RUN_LOG_MODEL_H

#include "nn/data/data.h"
#include "nn/data/labels.h"
#include "nn/data/schema.h"
#include "nn/files/file.h"
#include "peer/node/node.h"
#include "peer/output/outdir.h"

enum {
    DIARY_MODEL_CLASSES_MAX = 1 << 16, /* Longest text of class names that is stored, in bytes. */
    /* Size of the text that identifies the training files, in bytes. */
    DIARY_MODEL_TRAINED_MAX = 48
};

/* Properties of a model's training data that are not in the run description. All zeros: not
 * known. */
struct run_log_source
{
    /* Names of the classes. NULL: the data have none. */
    const struct labels *classes;
    /* Names of a table's columns. NULL: none. */
    const struct schema *columns;
    /* Identity of the training files. `hash` is 0 if the data have no files. */
    struct data_trained trained;
};

/* A model to be written to a file. All pointers are borrowed. */
struct diary_model
{
    /* Parameters, and the `n_segments` segments (layers) that they consist of. */
    const float *x;
    const struct segment *segments;
    size_t n_segments;
    /* Run in which the model was trained. */
    const struct run *run;
    uint64_t round; /* Number of rounds for which the model has been trained. */
    /* True: the model is the final model of its peer (node_model_is_final()), or of `hearsay train`
     * after its last round. */
    bool final;
    /* Name of the peer that trained the model. */
    const char *name;
    struct run_log_source source;
};

/* Writes a model as safetensors. Its metadata:
 *
 *   run: run description in its canonical form;
 *   round, name, version: round of the model, name of the peer, version of the program;
 *   final: "true". Missing if the model is not final;
 *   data: kind of the run's data (nn/data/kind.h);
 *   input: how inputs are made from raw data, as JSON (peer/run_log/input.h);
 *   trained_on: 16 hex digits of the hash of the training files, and the share of their samples
 *     that was held out (struct data_trained), such as "0123456789abcdef 0.1". Missing if the data
 *     come from no files;
 *   classes: names of the classes, separated by newlines, if they are UTF-8 and have at most
 *     DIARY_MODEL_CLASSES_MAX bytes. Missing if classes have no names;
 *   columns: names of a table's columns (peer/run_log/columns.h). Missing if they have no names;
 *   label: name of the label's column. Missing if columns have no names.
 *
 * The keys data, input and trained_on are missing if the run has no data kind that determines the
 * shape of the samples.
 * Returns 0, or a negative errno with a message. */
__attribute__((warn_unused_result)) int diary_model_write(const char *path,
                                                          const struct diary_model *s,
                                                          char error[FILE_ERROR_MAX]);

/* Returns whether the file `path` is a final model of the run with the description `run`. */
bool diary_model_is_final(const char *path, const char *run);

/* Writes the value of the metadata key trained_on, which identifies the training files, to `text`.
 * Returns `text`. */
const char *diary_model_trained(const struct data_trained *trained,
                                char text[DIARY_MODEL_TRAINED_MAX]);

/* Writes the model of the node `n`, as diary_model_write() does. Returns 1 if the model is written;
 * 0 if the node has no model, and no file is written; or a negative errno with a message. */
__attribute__((warn_unused_result)) int diary_model_of_node(const char *path, const struct node *n,
                                                            const char *name,
                                                            const struct run_log_source *source,
                                                            char error[FILE_ERROR_MAX]);

#endif
