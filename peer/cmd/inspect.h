/* peer/cmd/inspect.h -- result of `hearsay inspect`, which describes the contents of a model file
 * or of a model spec.
 *
 *   inspect_file.c   FILE  -> tensors with statistics, the run, the author, the round
 *   inspect_spec.c   SPEC  -> tensors that the model would have, its multiply-adds
 *   inspect.c        the command and its output
 */
#ifndef PEER_CMD_INSPECT_H
#define PEER_CMD_INSPECT_H

#include "nn/data/schema.h"
#include "nn/files/safetensors.h"
#include "nn/models/model.h"
#include "peer/cmd/cmd.h"

/* One tensor of the model file or of the model spec. */
struct cmd_inspect_tensor
{
    char name[2 * SEGMENT_NAME_MAX]; /* Name of the tensor. A longer name is cut. */
    uint32_t n_dims;
    uint64_t dims[SAFETENSORS_DIMS_MAX];
    /* Number of elements of the tensor, and number of bytes that they take in a file. */
    uint64_t n, n_bytes;
    char dtype[16]; /* Element type, such as "F32". A longer name is cut. */
    bool read; /* True if the tensor's values were read. Only floating-point values are read. */
    /* Segment (named tensor) of the run's model that has the name and shape of this tensor. NULL:
     * not known. */
    const struct segment *segment;
    /* Number of values of the tensor that are NaN or infinite. */
    uint64_t n_bad;
    /* Sum and sum of squares of the tensor's finite values. 0 for a model spec. */
    double sum, norm2;
};

struct cmd_inspect
{
    const char *path; /* Path of the model file. NULL: the command inspects a model spec. */
    uint64_t file_bytes;
    /* Tensors, in the order of their data in the file. Owned. */
    struct cmd_inspect_tensor *tensors;
    size_t n_tensors, cap;
    uint64_t n_floats, n_bad;
    struct safetensors_info info; /* Metadata in the header of the model file. */
    struct run run;               /* Run description from the metadata. Valid if has_run. */
    bool has_run;
    /* Reason why the run description could not be parsed. "": it was parsed, or the file has no run
     * description. */
    char run_why[RUN_ERROR_MAX];
    struct model model; /* Model of the run or of the model spec. Valid if has_model. */
    bool has_model;
    /* Name of a tensor that is only in the file or only in the model of its run. NULL: file and run
     * have the same tensors. */
    const char *unlike;
    char kind[DATA_KIND_MAX]; /* Data kind for which the model was made. "": not known. */
    /* Description of how inputs are computed from raw data (peer/run_log/input.h). It is read from
     * the file or derived from the data kind. NULL: not known. Owned. */
    struct json_t *input;
    /* Column names from the metadata of the file. All zeros: the file has no column names. */
    struct schema schema;
    bool unnamed; /* True if the model is for tables, but the file has no column names. */
    /* Types of the table's columns, from the run description. n is 0 if the description does not
     * contain them. */
    struct columns columns;
};

/* Reads the whole model file `path` into `in`. Returns CMD_OK, or an exit code after a message on
 * stderr. */
int cmd_inspect_file(struct cmd_inspect *in, const struct options *o, const char *path);

/* Builds the model of `spec` and describes it in `in`. The data kind is the one of --data, or else
 * the first of the default kinds that suits the model. --norm selects the normalisation layers.
 * Returns CMD_OK, or an exit code after a message on stderr. */
int cmd_inspect_spec(struct cmd_inspect *in, const struct options *o, const char *spec);

/* Appends a tensor with all fields zero to `in->tensors`. Returns NULL if there is no memory. */
struct cmd_inspect_tensor *cmd_inspect_add(struct cmd_inspect *in);

#endif
